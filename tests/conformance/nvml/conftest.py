"""Which library is under test: ours on each of its boards, or the one of --nvml-library (any libnvidia-ml.so.1, a real one too)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pynvml
import pytest

from tests.fakes import nvml
from tests.fakes.nvml import fixtures
from xpulse.testing.nvml import profiles

OURS = [f"{name}x{count}" for name in profiles() for count in (2,)]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--nvml-library", type=Path, metavar="PATH", help="Put this libnvidia-ml.so.1 to the test, whatever drives it, in place of ours."
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "board" in metafunc.fixturenames:
        other = metafunc.config.getoption("--nvml-library", default=None)
        metafunc.parametrize("board", ["other"] if other else OURS, indirect=True)


@pytest.fixture
def board(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The bindings use the library under test, and no session is open; afterwards they have forgotten it."""
    if request.param == "other":
        other = ctypes.CDLL(str(request.config.getoption("--nvml-library")))
        monkeypatch.setattr(pynvml, "nvmlLib", other)
        fixtures.forget()
    else:
        name, _, count = request.param.rpartition("x")
        library: Path = request.getfixturevalue("fake_nvml_library")
        fixtures.loaded(library, monkeypatch, nvml.State(tmp_path / "nvml.json", name, count=int(count)))
    yield str(request.param)
    close_all()
    fixtures.forget()


@pytest.fixture
def handles(board: str) -> list[Any]:
    """A session, and the handles of its devices."""
    pynvml.nvmlInit()
    return [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]


def close_all() -> None:
    """End every session of this process."""
    while True:
        try:
            pynvml.nvmlShutdown()
        except pynvml.NVMLError:
            return
