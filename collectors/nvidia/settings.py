"""Settings of the nvidia plugin: kill switches for what costs driver time."""

from __future__ import annotations

from pydantic import Field

from schemas.section import Section


class Nvidia(Section):
    """Stands under collectors.plugins.nvidia.settings."""

    profiling: bool = True
    """Read SM, tensor and DRAM activity through GPM (Hopper and newer). Off: absent(not_supported)."""

    link_errors: bool = True
    """Read NVLink states and error counters, several calls for each link, with the slow fields. Off: absent(not_supported)."""

    retry_seconds: float = Field(default=30.0, gt=0)
    """How long to wait before asking again where driver or library are missing."""
