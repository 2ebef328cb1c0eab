"""The cache of built servers: whole entries or none, one builder at a time."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path

import pytest

from tests.integration.servers import cache
from tests.integration.servers.cache import Recipe

RECIPE = Recipe("kafka", "4.3.1", revision=2)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "xpulse-tests"


def write_jar(folder: Path) -> None:
    (folder / "jar").write_text("whole")


def forbidden(folder: Path) -> None:
    raise AssertionError("built a second time")


def test_key_names_server_version_and_recipe() -> None:
    assert RECIPE.key == "kafka-4.3.1-r2"
    assert len({RECIPE.key, Recipe("kafka", "4.4.0", 2).key, Recipe("kafka", "4.3.1", 3).key}) == 3


def test_root_follows_xdg(monkeypatch: pytest.MonkeyPatch, root: Path, tmp_path: Path) -> None:
    assert cache.root() == root
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    default = tmp_path / "home" / ".cache" / "xpulse-tests"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert cache.root() == default
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.root() == default


def test_builds_beside_and_renames(root: Path) -> None:
    seen: list[Path] = []

    def build(folder: Path) -> None:
        seen.append(folder)
        assert not (root / RECIPE.key).exists()
        write_jar(folder)

    entry = cache.obtain(RECIPE, build)

    assert entry == root / RECIPE.key
    assert (entry / "jar").read_text() == "whole"
    assert seen[0].parent == root
    assert not seen[0].exists()


def test_second_time_takes_what_is_there(root: Path) -> None:
    cache.obtain(RECIPE, write_jar)
    assert cache.obtain(RECIPE, forbidden) == root / RECIPE.key


def test_failed_build_leaves_its_log_and_no_entry(root: Path) -> None:
    def build(folder: Path) -> None:
        (folder / cache.BUILD_LOG).write_text("why")
        (folder / "module").mkdir()
        (folder / "module" / "file").touch()
        (folder / "module").chmod(0o555)
        raise RuntimeError("no network")

    with pytest.raises(RuntimeError, match="no network"):
        cache.obtain(RECIPE, build)

    assert sorted(path.name for path in root.iterdir()) == [f"{RECIPE.key}.failed.log", f"{RECIPE.key}.lock"]
    assert (root / f"{RECIPE.key}.failed.log").read_text() == "why"
    cache.obtain(RECIPE, write_jar)
    assert (root / RECIPE.key / "jar").exists()


def test_torn_build_of_a_dead_builder_is_swept(root: Path) -> None:
    torn = root / f"{RECIPE.key}.tmp-dead"
    other = root / "influxdb-2.8.0-r1.tmp-alive"
    torn.mkdir(parents=True)
    other.mkdir()

    cache.obtain(RECIPE, write_jar)

    assert not torn.exists()
    assert other.exists()


def test_second_builder_waits_and_finds_the_entry(root: Path) -> None:
    root.mkdir(parents=True)
    waiting = threading.Event()
    got: list[Path] = []
    with (root / f"{RECIPE.key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = threading.Thread(target=lambda: got.append(cache.obtain(RECIPE, forbidden, on_wait=waiting.set)))
        second.start()
        assert waiting.wait(10)
        assert got == []
        (root / RECIPE.key).mkdir()  # what the first builder's rename does
    second.join(10)
    assert got == [root / RECIPE.key]
