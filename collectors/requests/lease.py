"""A lease file: while it exists the driver is to be let go; its first line, where it has one, says why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MOST: Final = 200


@dataclass(frozen=True, slots=True)
class LeaseFile:
    """`touch FILE` asks, `rm FILE` ends it."""

    path: Path

    def __call__(self) -> str:
        try:
            with self.path.open("rb") as file:
                first = file.readline(_MOST).decode(errors="replace").strip()
        except FileNotFoundError:
            return ""
        except OSError as error:  # it is there, and nobody can say more: who made it wants the driver
            first = error.strerror or "it cannot be read"
        return "".join(c if c.isprintable() else "?" for c in first) or "the lease file exists"
