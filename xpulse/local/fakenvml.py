"""`xpulse up --fake-nvml`: a libnvidia-ml.so.1 of our own under the real NVIDIA collector, its cards in motion. Marked simulated."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from xpulse.errors import UsageError

_ASKED: Final = re.compile(r"([a-z][a-z0-9-]*?)(?:x([0-9]{1,9}))?")


@dataclass(frozen=True, slots=True)
class FakeNvml:
    """So many cards of this board; the boards are those of xpulse.testing.nvml."""

    profile: str
    count: int = 1

    @property
    def settings(self) -> dict[str, object]:
        """Of the agent's plugins: the NVIDIA collector and nothing simulated beside it, and its readings marked."""
        nvidia = {"enabled": True, "on_unavailable": "fail", "settings": {"simulated": True}}
        return {"nvidia": nvidia, "simulated": {"enabled": False}}


def fake_nvml(text: str) -> FakeNvml:
    """`h100` or `h100x8`. Raises UsageError."""
    from xpulse.testing.nvml import profile, profiles

    match = _ASKED.fullmatch(text)
    if not match:
        raise UsageError(f"--fake-nvml {text!r}: give BOARD or BOARDxCOUNT as in h100x8; boards: {', '.join(profiles())}")
    asked = FakeNvml(match[1], int(match[2] or 1))
    try:
        profile(asked.profile, asked.count)
    except ValueError as error:
        raise UsageError(f"--fake-nvml {text!r}: {error}") from None
    return asked


@dataclass(frozen=True, slots=True)
class FakeDriver:
    """The built library and where its state lies; the library is kept in the state folder for the next time."""

    asked: FakeNvml
    library: Path
    state_path: Path

    @classmethod
    def build(cls, asked: FakeNvml, state_dir: Path) -> FakeDriver:
        """Raises UsageError where there is no C compiler."""
        from xpulse.testing.nvml import NoCompiler, build, profile

        folder = state_dir / "fake-nvml"
        try:
            library = build(folder, missing=profile(asked.profile).get("missing_symbols", ()))
        except NoCompiler as error:
            raise UsageError(f"--fake-nvml: {error}; or use --simulate 2x8, which needs none") from None
        return cls(asked, library, folder / "state.json")

    def environment(self) -> Mapping[str, str]:
        """What the agent needs to take the library for the driver's."""
        from xpulse.testing.nvml import STATE_VARIABLE

        others = os.environ.get("LD_LIBRARY_PATH")
        return {
            "LD_LIBRARY_PATH": f"{self.library.parent}:{others}" if others else str(self.library.parent),
            STATE_VARIABLE: str(self.state_path),
        }

    @contextmanager
    def running(self, seed: int) -> Iterator[None]:
        """The cards exist and move until the block ends."""
        from xpulse.testing.nvml import State
        from xpulse.testing.nvml.animate import animated

        state = State(self.state_path, self.asked.profile, count=self.asked.count)
        try:
            with animated(state, seed):
                yield
        finally:
            state.remove()
