"""The kernel plugin: what the drivers write into the kernel's log, as device events."""
