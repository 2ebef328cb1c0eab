"""Finds kcat, the librdkafka command line client, or installs Debian's."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.integration.servers import toolchain
from tests.integration.servers.progress import Progress


def kcat_path() -> Path:
    """Where kcat is on this machine; raises Missing."""
    return prepare(Progress("kcat"))


def prepare(progress: Progress) -> Path:
    """Where kcat is, installed first if it is absent and we may."""
    toolchain.require("kcat", {"kcat": ["kcat"]}, progress)
    return Path(shutil.which("kcat") or "kcat")
