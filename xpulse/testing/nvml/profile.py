"""The boards that the fake knows: JSON files beside this module, and how one card of them becomes many."""

from __future__ import annotations

import json
import uuid
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

_FOLDER: Final = Path(__file__).with_name("profiles")
MOST_DEVICES: Final = 128
_SLOTS_PER_DOMAIN: Final = 28


def profiles() -> tuple[str, ...]:
    """The names of all boards."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.json")))


def profile(name: str, count: int = 1) -> dict[str, Any]:
    """The state of a node with `count` cards of this board: a dict of one's own. Raises ValueError for an unknown board or number."""
    if name not in profiles():
        raise ValueError(f"there is no fake board {name!r}; there are: {', '.join(profiles())}")
    if not 1 <= count <= MOST_DEVICES:
        raise ValueError(f"{count} devices: the fake libnvidia-ml has 1 to {MOST_DEVICES}")
    state: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text())
    if count > 1:
        first = state["devices"][0]
        state["devices"] = [_one_of_many(first, i) for i in range(count)]
    return state


def _one_of_many(first: dict[str, Any], i: int) -> dict[str, Any]:
    """The same board in another slot: what names a card differs, and so do the names of its instances."""
    card = deepcopy(first)
    head, tail = first["uuid"].rsplit("-", 1)
    card["uuid"] = f"{head}-{int(tail, 16) + i:012x}"
    card["bus_id"] = f"{i // _SLOTS_PER_DOMAIN:08X}:{0x10 + 8 * (i % _SLOTS_PER_DOMAIN):02X}:00.0"
    if "serial" in first:
        card["serial"] = str(int(first["serial"]) + i)
    if "module_id" in first:
        card["module_id"] = i
    for instance in card.get("mig", {}).get("instances", ()):
        instance["uuid"] = instance_uuid(card["uuid"], instance["gi"], instance["ci"])
    return card


def instance_uuid(card: str, gi: int, ci: int, generation: int = 0) -> str:
    """A name for an instance that is the same whenever it is made the same way."""
    return f"MIG-{uuid.uuid5(uuid.NAMESPACE_OID, f'{card}/{gi}/{ci}/{generation}')}"
