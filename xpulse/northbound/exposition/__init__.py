"""The pull side: /metrics for Prometheus, with the catalogue's names or DCGM's."""
