"""Small files of a running local stack: each role's health port and process id, so that others find them; gone after a clean end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def _folder(state: Path) -> Path:
    return state / "run"


def _read(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _write(path: Path, number: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_text(f"{number}\n", encoding="ascii")


def write_port(state: Path, role: str, port: int) -> None:
    """A busy documented port harms nothing: the role takes a free one and says here which."""
    _write(_folder(state) / f"{role}.port", port)


def write_pid(state: Path, role: str, pid: int) -> None:
    _write(_folder(state) / f"{role}.pid", pid)


def read_ports(state: Path, roles: Sequence[str]) -> dict[str, int | None]:
    """The port of each role; None where it has not come up yet."""
    return {role: _read(_folder(state) / f"{role}.port") for role in roles}


def read_pid(state: Path, role: str) -> int | None:
    """The process of a role as the supervisor last started it; None where it has not."""
    return _read(_folder(state) / f"{role}.pid")


def write_bus(state: Path, address: str) -> None:
    """The address of the embedded bus: `xpulse topics tail` beside a running stack needs no setting."""
    path = _folder(state) / "bus.address"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_text(f"{address}\n", encoding="ascii")


def read_bus(state: Path) -> str | None:
    """The address of the embedded bus of a running stack; None where none runs."""
    try:
        return (_folder(state) / "bus.address").read_text(encoding="ascii").strip() or None
    except OSError:
        return None


def forget(state: Path) -> None:
    """Remove every such file and their folder."""
    folder = _folder(state)
    for path in [*folder.glob("*.port"), *folder.glob("*.pid"), folder / "bus.address"]:
        path.unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
