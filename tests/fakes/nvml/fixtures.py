"""Fixtures with the fake NVML; a test module imports those it uses, by name."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import nvml


def _built(tmp_path_factory: pytest.TempPathFactory, *missing: str) -> Path:
    if nvml.compiler() is None:
        pytest.skip("no C compiler (cc, gcc or clang) to build the fake libnvidia-ml.so.1 with")
    return nvml.build(tmp_path_factory.getbasetemp().parent / "fake-nvml", missing=missing)  # shared by the processes of one user's runs


@pytest.fixture(scope="session")
def fake_nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built library; put its parent into LD_LIBRARY_PATH of a child and FAKE_NVML_STATE beside it."""
    return _built(tmp_path_factory)


@pytest.fixture(scope="session")
def old_nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as a driver without the newest calls would have it."""
    return _built(tmp_path_factory, *nvml.OLD_DRIVER_MISSING)


def loaded(library: Path, monkeypatch: pytest.MonkeyPatch, state: nvml.State) -> None:
    """Have pynvml of this process use `library` with `state`, and no session open."""
    import pynvml

    monkeypatch.setenv(nvml.STATE_VARIABLE, str(state.path))
    fresh = ctypes.CDLL(str(library))
    while fresh.nvmlShutdown() == 0:  # a session that an earlier test left would list that test's cards
        pass
    monkeypatch.setattr(pynvml, "nvmlLib", fresh)
    forget()


def forget() -> None:
    """Have pynvml look its symbols up again: it keeps those of the library it used last."""
    import pynvml

    pynvml._nvmlGetFunctionPointer_cache.clear()


@pytest.fixture
def fake_nvml(fake_nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[nvml.State]:
    """Two H100 in this process; the test changes what they say through the State."""
    state = nvml.State(tmp_path / "nvml.state", count=2)
    loaded(fake_nvml_library, monkeypatch, state)
    yield state
    forget()
