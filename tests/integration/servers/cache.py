"""Keeps what was built outside the checkout, so that a second run starts at once.

A build happens in a folder beside its final place and is renamed at the end: an entry is whole or absent. A lock file
keeps two builders of the same thing apart; the second one waits and then finds the entry made.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BUILD_LOG = "build.log"
"""A build's output, in its folder; that of a failed build is kept beside the entries as `<key>.failed.log`."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is built and how: raise `revision` when the way of building changes, so that old entries are not used."""

    server: str
    version: str
    revision: int

    @property
    def key(self) -> str:
        """The name of the entry's folder."""
        return f"{self.server}-{self.version}-r{self.revision}"


def root() -> Path:
    """The folder of all entries: `$XDG_CACHE_HOME/xpulse-tests`, by default under `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rule: a relative path is not valid and is ignored.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "xpulse-tests"


def obtain(recipe: Recipe, build: Callable[[Path], None], *, on_wait: Callable[[], None] | None = None) -> Path:
    """The entry's folder; `build(folder)` fills it if it is not there yet.

    `on_wait` is called when another builder has the lock, before waiting for it.
    """
    entry = root() / recipe.key
    if entry.is_dir():
        return entry
    entry.parent.mkdir(parents=True, exist_ok=True)
    with _locked(entry.with_name(f"{recipe.key}.lock"), on_wait):
        if not entry.is_dir():
            _build(entry, build)
    return entry


def _build(entry: Path, build: Callable[[Path], None]) -> None:
    prefix = f"{entry.name}.tmp-"
    for torn in entry.parent.glob(f"{prefix}*"):  # we hold the lock, so its builder is dead
        _remove(torn)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=entry.parent))
    try:
        build(folder)
        folder.chmod(0o755)
        folder.rename(entry)
    except BaseException:
        if (log := folder / BUILD_LOG).exists():
            log.replace(entry.with_name(f"{entry.name}.failed.log"))
        _remove(folder)
        raise


@contextmanager
def _locked(path: Path, on_wait: Callable[[], None] | None) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if on_wait is not None:
                on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove(folder: Path) -> None:
    """Remove a tree, read-only folders in it included (the Go module cache makes such)."""
    for path, _, _ in os.walk(folder):
        Path(path).chmod(0o755)
    shutil.rmtree(folder)
