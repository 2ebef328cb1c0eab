"""NVIDIA's errors in the kernel log: read line by line, understood by the catalogue, and grouped under what caused them."""
