"""What the kernel says of processes and of the PCI bus, for every plugin; nothing here knows a vendor."""
