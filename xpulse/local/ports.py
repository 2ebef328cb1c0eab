"""Where each role of the local stack listens: the port file a role writes when it is up, so that a busy documented port harms nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def _file(state: Path, role: str) -> Path:
    return state / "run" / f"{role}.port"


def write_port(state: Path, role: str, port: int) -> None:
    path = _file(state, role)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_text(f"{port}\n", encoding="ascii")


def read_ports(state: Path, roles: Sequence[str]) -> dict[str, int | None]:
    """The port of each role; None where it has not come up yet."""
    found: dict[str, int | None] = {}
    for role in roles:
        try:
            found[role] = int(_file(state, role).read_text(encoding="ascii"))
        except (OSError, ValueError):
            found[role] = None
    return found


def forget_ports(state: Path) -> None:
    """Remove every port file and, when empty, their folder."""
    folder = state / "run"
    for path in folder.glob("*.port"):
        path.unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
