"""Cuts a fake card into MIG instances as its board allows: placement ids, sizes and names. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from xpulse.testing.nvml.profile import instance_uuid

_FIRST_GI: Final = {7: 0, 4: 1, 3: 1, 2: 3, 1: 7}
"""GPU instance ids by slices, as drivers number them: they depend on the size, and have gaps."""


def cut(device: dict[str, Any], defaults: Mapping[str, Any], layout: Sequence[str | Mapping[str, Any]] | None, generation: int) -> None:
    """Give the card these instances in place of those it has; see State.mig. `generation` makes the names differ from earlier ones."""
    if layout is None:
        device.update(mig_mode=0, mig_mode_pending=0)
        device.setdefault("mig", {})["instances"] = []
        return
    sizes: Mapping[str, Any] = (defaults.get("mig") or {}).get("profiles", {})
    name = device.get("name", defaults.get("name"))
    taken: set[int] = set()
    made = []
    for index, wanted in enumerate(layout):
        own: dict[str, Any] = {"profile": wanted} if isinstance(wanted, str) else dict(wanted)
        profile = own["profile"]
        if profile not in sizes:
            raise ValueError(f"{name} has no MIG profile {profile!r}; it has: {', '.join(sizes) or 'none'}")
        gi = own.get("gi", _free_gi(profile, taken))
        ci = own.get("ci", 0)
        taken.add(gi)
        fixed = {
            "index": index,
            "gi": gi,
            "ci": ci,
            "name": f"{name} MIG {profile}",
            "uuid": instance_uuid(device["uuid"], gi, ci, generation),
        }
        made.append(deepcopy(sizes[profile]) | fixed | own)
    device.update(mig_mode=1, mig_mode_pending=1)
    device.setdefault("mig", {})["instances"] = made


def _free_gi(profile: str, taken: set[int]) -> int:
    slices = re.search(r"(\d+)g\.", profile)
    gi = _FIRST_GI.get(int(slices[1]) if slices else 1, 7)
    while gi in taken:
        gi += 1
    return gi
