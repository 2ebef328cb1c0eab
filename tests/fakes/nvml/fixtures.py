"""Fixtures with the fake NVML; a test module imports those it uses, by name."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import nvml


@pytest.fixture(scope="session")
def fake_nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built library; put its parent into LD_LIBRARY_PATH of a child and FAKE_NVML_STATE beside it."""
    if nvml.compiler() is None:
        pytest.skip("no C compiler (gcc or cc) to build the fake libnvidia-ml.so.1 with")
    return nvml.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="session")
def old_nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as a driver without the newest calls would have it."""
    if nvml.compiler() is None:
        pytest.skip("no C compiler (gcc or cc) to build the fake libnvidia-ml.so.1 with")
    return nvml.build(tmp_path_factory.mktemp("old-nvml"), old_driver=True)


def loaded(library: Path, monkeypatch: pytest.MonkeyPatch, state: nvml.State) -> None:
    """Have pynvml of this process use `library` with `state`."""
    import pynvml

    monkeypatch.setenv(nvml.STATE_VARIABLE, str(state.path))
    monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(library)))
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
