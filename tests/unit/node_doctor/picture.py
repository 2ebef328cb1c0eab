"""A picture of a machine: a folder in the place of /, an environment, and what a driver said."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xpulse.doctor import Diagnosis
from xpulse.node_doctor.look import CardLook, DriverLook
from xpulse.node_doctor.where import Where
from xpulse.settings import Settings

GOOD = DriverLook(
    driver="590.48.01",
    library="13.590.48.01",
    cuda="13.1",
    cards=(CardLook(0, 0, "NVIDIA H100", "00000000:4F:00.0", True, True, False, False),),
)


@dataclass(frozen=True)
class Picture(Where):
    """`errors` are the errno of opening a path, `closed` paths that may not be opened: root, as tests often run, may all."""

    errors: Mapping[str, int] = field(default_factory=dict)
    closed: frozenset[str] = frozenset()
    clock: bool | None = True

    def open_error(self, absolute: str | Path, flags: int) -> int:
        there = 0 if self.path(absolute).exists() else errno.ENOENT
        return self.errors.get(str(absolute), there)

    def may(self, absolute: str | Path, mode: int) -> bool:
        return str(absolute) not in self.closed

    def synchronised(self) -> bool | None:
        return self.clock


def picture(root: Path, driver: DriverLook = GOOD, *, settings: Mapping[str, Any] | None = None, **more: Any) -> Picture:
    return Picture(Settings(state_dir=root / "state", **(settings or {})), driver, root, more.pop("environment", {}), **more)


def write(root: Path, path: str, text: str = "") -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def on_bus(root: Path, bdf: str = "0000:4f:00.0", driver: str = "nvidia") -> None:
    folder = f"/sys/bus/pci/devices/{bdf}"
    for name, text in (("vendor", "0x10de\n"), ("device", "0x2330\n"), ("class", "0x030200\n")):
        write(root, f"{folder}/{name}", text)
    if driver:
        (root / folder.lstrip("/") / "driver").symlink_to(f"/sys/bus/pci/drivers/{driver}")


def levels(found: Iterable[Diagnosis]) -> list[tuple[str, str]]:
    return [(each.level, each.subject) for each in found]


def problem(found: Iterable[Diagnosis]) -> Diagnosis:
    (one,) = (each for each in found if each.level == "problem")
    return one
