"""Profiling figures from a page of dcgm-exporter for the nvidia plugin, where NVML's GPM has none: never a second profiling session."""

from __future__ import annotations

from collectors.dcgm import parse
from collectors.dcgm.page import sort
from schemas import exposition
from schemas.values import Absent

FIELDS = tuple(sorted(name for name in parse.of_instances() if name.endswith("_ratio")))
"""The catalogue's fields that a page may give."""


def profiles(page: bytes | str) -> dict[str, dict[str, float]]:
    """Values by UUID (GPU-..., of a MIG instance <its GPU's UUID>/gi<number>), in the catalogue's units and within its ranges. A field
    that DCGM left blank is not there; a device without any is not there either. Never raises."""
    devices = sort(exposition.parse(page)).devices
    found: dict[str, dict[str, float]] = {}
    for seen, parts in parse.instances(devices):
        values, _ = parse.readings(seen, parts)
        good = {
            name: float(value) for name in FIELDS if not isinstance(value := values.get(name, Absent("error")), Absent) and 0 <= value <= 1
        }
        if seen.key.uuid and good:
            found[seen.key.uuid if seen.key.instance is None else f"{seen.key.uuid}/gi{seen.key.instance}"] = good
    return found
