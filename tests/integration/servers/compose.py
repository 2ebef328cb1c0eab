"""Checks a Compose file with compose-go, the parser inside Docker Compose; no engine is needed."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.integration.servers import cache, toolchain
from tests.integration.servers.progress import Progress

VERSION = "2.16.2"
RECIPE = cache.Recipe("compose-go", VERSION, revision=1)


def compose_check(path: Path) -> tuple[bool, str]:
    """Whether the file is valid, and the resolved model or the precise error."""
    program = prepare(Progress("compose")) / "cmd"
    done = subprocess.run([program, path], cwd=path.parent, capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stdout if done.returncode == 0 else (done.stderr or done.stdout)


def prepare(progress: Progress) -> Path:
    """The cached folder with the checker, the program `cmd`, built where it is not there yet."""

    def build(folder: Path) -> None:
        toolchain.require("compose", {"go": []}, progress)
        toolchain.run(
            "compose",
            ["go", "install", f"github.com/compose-spec/compose-go/v2/cmd@v{VERSION}"],
            cwd=folder,
            log=folder / cache.BUILD_LOG,
            progress=progress,
            step=f"building compose-go {VERSION}",
            env={"GOBIN": str(folder)},
        )

    return cache.obtain(RECIPE, build, on_wait=lambda: progress.line("another process is building it: waiting"))
