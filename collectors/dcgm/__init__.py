"""The dcgm plugin: NVIDIA GPUs as dcgm-exporter's metrics pages show them, of this node or of many."""
