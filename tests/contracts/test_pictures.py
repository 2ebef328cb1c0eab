"""The pictures of the guides are made by the project, small, shown, and the same each time; the figures go where they belong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from docs import figures
from tests.contracts.repository import ROOT

pytest.importorskip("matplotlib", reason="pictures need the extra `pictures`")

from docs import drawing, pictures

MOST_BYTES = 150_000
BY_HAND = {"live-view"}
"""Made by `make screenshot` from a real run."""


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_is_there_small_undated_and_shown(name: str) -> None:
    file = drawing.IMAGES / f"{name}.svg"
    text = file.read_text(encoding="utf-8")
    assert len(text.encode()) < MOST_BYTES
    assert "dc:date" not in text
    assert any(f"{name}.svg)" in page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "guide").glob("*.md"))


def test_every_picture_is_made_by_something() -> None:
    assert {file.stem for file in drawing.IMAGES.glob("*.svg")} == set(pictures.PICTURES) | BY_HAND


def test_the_same_drawing_is_the_same_bytes(tmp_path: Path) -> None:
    made = []
    for run in ("first", "second"):
        folder = tmp_path / run
        folder.mkdir()
        figure, axes = drawing.sheet()
        axes[0, 0].plot(*drawing.spiky(np.arange(5000.0), np.sin(np.arange(5000.0) / 100)))
        drawing.level(axes[0, 0], 0.5, "a limit")
        made.append(drawing.save(figure, "x", folder).read_bytes())
    assert made[0] == made[1]
    assert len(made[0]) < 30_000


def test_thinning_keeps_the_peaks() -> None:
    y = np.zeros(10_000)
    y[4321] = 7.0
    assert drawing.spiky(np.arange(10_000.0), y)[1].max() == 7.0


def test_figures_go_into_their_blocks_and_what_was_not_measured_is_no_zero(tmp_path: Path) -> None:
    page = "<!-- figures: nab -->\nstale words\n<!-- end -->\n<!-- figures: fleet -->\nkept\n<!-- end -->\n"
    (tmp_path / "nab.json").write_text(json.dumps({"standard": 75.53, "points_per_second_core": 1_230_000}), encoding="utf-8")
    said = figures.filled(page, tmp_path)
    assert "| **XPulse**, shipped defaults | 75.5 | · | · | · |" in said
    assert "1.23 million points" in said
    assert "kept" in said
    assert "stale words" not in said


def test_every_block_of_a_page_is_of_a_benchmark() -> None:
    used = {
        name
        for page in (ROOT / "docs").rglob("*.md")
        for name in re.findall(r"<!-- figures: ([\w-]+) -->", page.read_text(encoding="utf-8"))
    }
    assert used == set(figures.BLOCKS)
