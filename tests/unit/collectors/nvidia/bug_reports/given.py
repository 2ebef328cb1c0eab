"""A plugin on cards of any board, for the tests that reenact other people's bug reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes import nvml
from tests.fakes.nvml import fixtures
from tests.fakes.nvml.fixtures import fake_nvml_library
from tests.unit.collectors.nvidia.rig import Rig

__all__ = ["Board", "board", "fake_nvml_library"]
Board = Callable[..., Rig]


@pytest.fixture
def board(fake_nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Board]:
    """Makes a rig with cards of a board; settings of the plugin by keyword."""
    made: list[Rig] = []

    def make(profile: str = "h100", count: int = 1, change: Callable[[nvml.State], object] | None = None, **settings: object) -> Rig:
        state = nvml.State(tmp_path / "nvml.json", profile, count=count)
        state.data["pcie_window_us"] = 0
        if change is not None:
            change(state)
        state.set()
        fixtures.loaded(fake_nvml_library, monkeypatch, state)
        made.append(Rig(state, **settings))  # type: ignore[arg-type]  # passed through
        return made[-1]

    yield make
    for rig in made:
        rig.plugin.close()
    fixtures.forget()
