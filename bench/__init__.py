"""Repeatable measurements, printed as ratios; `make bench-NAME` runs one and writes `bench/out/NAME.json`."""
