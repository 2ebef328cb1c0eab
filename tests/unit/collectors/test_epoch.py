"""A later run has a greater epoch, whatever the clock does."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.epoch import next_epoch


def test_epochs_grow_whatever_the_clock_does(tmp_path: Path) -> None:
    file = tmp_path / "state" / "epoch"
    assert [next_epoch(now, file) for now in (1000, 2000, 1500, 2000, 2001, 5000)] == [1000, 2000, 2001, 2002, 2003, 5000]
    assert next_epoch(7, None) == 7


@pytest.mark.parametrize("text", ["", "nonsense", "-5", "9" * 30, str(2**62), "\u0663"])
def test_nonsense_in_the_file_is_none(text: str, tmp_path: Path) -> None:
    file = tmp_path / "epoch"
    file.write_text(text)
    assert next_epoch(1000, file) == 1000
    assert next_epoch(10, file) == 1001


def test_a_file_that_cannot_be_written_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "plain").touch()
    assert next_epoch(5, tmp_path / "plain" / "epoch") == 5
    assert "cannot be written" in caplog.text
