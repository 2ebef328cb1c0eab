"""`xpulse doctor --node`: what it prints, and how it ends."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from xpulse.cli.doctor import command
from xpulse.doctor import Diagnosis
from xpulse.node_doctor import examine

GOOD = Diagnosis("good", "driver", "590")
BAD = Diagnosis("problem", "kernel log", "it may not\x1b be read", "mount it", "SXids")


@pytest.mark.parametrize(("found", "code"), [([GOOD], 0), ([GOOD, BAD], 1)], ids=["well", "ill"])
def test_it_ends_with_1_where_there_is_a_problem(monkeypatch: pytest.MonkeyPatch, found: list[Diagnosis], code: int) -> None:
    monkeypatch.setattr(examine, "examine", lambda settings: found)
    done = CliRunner().invoke(command, ["--node"], obj=None)
    assert done.exit_code == code, done.output
    assert "driver" in done.output
    if code:
        assert "lost: SXids" in done.output
        assert "→ mount it" in done.output
        assert "\x1b be" not in done.output
