"""The files of the repository as git has them: tracked, and new ones that are not ignored."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]


@cache
def files() -> tuple[Path, ...]:
    """Absolute paths, sorted; what was deleted and not yet committed is left out."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return tuple(sorted({path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()}))


def name(path: Path) -> str:
    """Relative to the repository's root."""
    return path.relative_to(ROOT).as_posix()


def text(path: Path) -> str | None:
    """The file as text; None where it is not UTF-8 (images, golden bytes)."""
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return None
