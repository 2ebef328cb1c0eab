"""Who uses a card: NVML's process lists and utilisation samples, joined with what the kernel says of each process."""
