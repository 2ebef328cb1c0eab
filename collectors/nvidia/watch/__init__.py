"""What happens to the cards rather than what they measure: NVML's events, the PCI bus, counters that stand still, calls that get slow."""
