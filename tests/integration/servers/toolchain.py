"""What a build needs from the machine: programs found or installed, commands run with their output kept.

```
Missing            this machine cannot have the server: says why and what to do
└── BuildFailed    the tools are there, one of them refused: shows the tail of its output
```
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.integration.servers.progress import Progress

HEARTBEAT_SECONDS = 10.0
"""How often a long command says that it is still at work."""

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Missing(Exception):
    """A server cannot be had on this machine, with the reason and the remedy."""

    def __init__(self, server: str, reason: str, remedy: str) -> None:
        super().__init__(f"{server}: {reason}; {remedy}")
        self.server = server
        self.reason = reason
        self.remedy = remedy


class BuildFailed(Missing):
    """A build command refused; the reason ends with the tail of its output."""


def require(server: str, programs: Mapping[str, Sequence[str]], progress: Progress) -> None:
    """See that every program is on PATH, installing what Debian has if we may.

    `programs` maps each to the Debian packages that hold it; an empty list means that a person has to install it.
    """
    absent = {name: packages for name, packages in programs.items() if shutil.which(name) is None}
    if not absent:
        return
    packages = sorted({package for group in absent.values() for package in group})
    if all(absent.values()) and _may_install():
        progress.line(f"{', '.join(absent)} not found: installing {' '.join(packages)}")
        _apt_install(server, packages)
        absent = {name: group for name, group in absent.items() if shutil.which(name) is None}
    if absent:
        raise Missing(server, f"toolchain missing: {', '.join(absent)} not on PATH", _remedy(absent))


def run(
    server: str,
    args: Sequence[str | Path],
    *,
    cwd: Path,
    log: Path,
    env: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    step: str = "",
) -> None:
    """Run one build command at low priority, its output appended to `log`, with a heartbeat for whoever watches."""
    if progress is not None:
        progress.line(step)
    nice = ["nice"] if shutil.which("nice") else []
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*nice, *args],
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            while True:
                try:
                    code = process.wait(HEARTBEAT_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    if progress is not None:
                        progress.line(f"{step} … {tail(log, lines=1)[:80]}".rstrip())
        finally:
            process.kill()
    if code != 0:
        command = " ".join(str(arg) for arg in args)
        raise BuildFailed(
            server,
            f"`{command}` ended with {code}:\n{tail(log)}\n",
            "the whole output is kept in the cache as *.failed.log",
        )


def ask(server: str, args: Sequence[str], *, cwd: Path) -> str:
    """Run a short command and return what it printed."""
    done = subprocess.run(args, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise BuildFailed(server, f"`{' '.join(args)}` ended with {done.returncode}: {said}", "mend what the output names")
    return done.stdout


def tail(log: Path, *, lines: int = 30) -> str:
    """The last lines of a log that say something, without colours: for error texts and heartbeats."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 64 * 1024))
        text = COLOUR.sub("", file.read().decode(errors="replace"))
    return "\n".join([line for line in text.splitlines() if line.strip()][-lines:])


def _may_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _apt_install(server: str, packages: Sequence[str]) -> None:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages]
    for args in (["apt-get", "update", "-q"], install):
        done = subprocess.run(args, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip()[-2000:]
            raise BuildFailed(server, f"`{' '.join(args)}` ended with {done.returncode}: {said}", "install by hand")


def _remedy(absent: Mapping[str, Sequence[str]]) -> str:
    packages = sorted({package for group in absent.values() for package in group})
    by_hand = [name for name, group in absent.items() if not group]
    ways = []
    if packages:
        ways.append(f"as root: apt-get install --no-install-recommends {' '.join(packages)}")
    if by_hand:
        ways.append(f"install {' and '.join(by_hand)} and put it on PATH")
    return "; ".join(ways)
