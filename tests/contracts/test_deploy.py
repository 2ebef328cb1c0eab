"""The image installs what was locked: its lock files are part of requirements.lock, complete for the package, and what is copied exists."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.contracts.repository import ROOT

DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")


def pins(file: str) -> dict[str, set[tuple[str, ...]]]:
    """Distribution name to its (version and hashes), one per line that pins it."""
    found: dict[str, set[tuple[str, ...]]] = {}
    text = re.sub(r"\\\n\s*", " ", (ROOT / file).read_text(encoding="utf-8"))
    for line in text.splitlines():
        if match := re.match(r"([\w.-]+)==(\S+)", line):
            hashes = sorted(re.findall(r"--hash=(\S+)", line))
            found.setdefault(match[1].lower(), set()).add((match[2], *hashes))
    return found


@pytest.mark.parametrize("file", ["deploy/runtime.lock", "deploy/build.lock"])
def test_the_image_installs_what_is_locked(file: str) -> None:
    locked, used = pins("requirements.lock"), pins(file)
    assert used
    assert {name: versions for name, versions in used.items() if not versions <= locked.get(name, set())} == {}, "run: deploy/lock.sh"
    assert all(len(pin) > 1 for versions in used.values() for pin in versions), "a pin without a hash"


def test_the_image_has_every_dependency_and_no_tool_of_ours() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    asked = project["project"]["dependencies"] + [line for extra in project["project"]["optional-dependencies"].values() for line in extra]
    used = pins("deploy/runtime.lock").keys()

    def names(lines: list[str]) -> set[str]:
        return {re.split(r"[<>=!~\[; ]", line)[0].lower() for line in lines}

    assert names(asked) - used == set(), "run: deploy/lock.sh"
    assert used & {"pytest", "mypy", "ruff", "hypothesis", "grpcio-tools"} == set()


def test_what_is_copied_exists_and_is_sent_to_the_builder() -> None:
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")}
    copied = [word for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE) for word in line.split()[:-1]]
    assert copied
    assert [word for word in copied if not (ROOT / word).exists()] == []
    assert set(copied) == sent


def test_every_package_is_copied() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = {pattern.rstrip("*") for pattern in project["tool"]["setuptools"]["packages"]["find"]["include"]}
    assert packages <= set(re.findall(r"^COPY (\w+) ", DOCKERFILE, re.MULTILINE))


def test_the_image_is_not_root() -> None:
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    assert re.search(r"^USER 10001:10001$", last, re.MULTILINE)
    assert "--require-hashes" in DOCKERFILE
