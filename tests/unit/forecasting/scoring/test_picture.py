"""The picture: drawn as PNG and SVG, other people's names escaped, and a clear word where it cannot be drawn."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from forecasting.scoring.metric import MetricScore
from forecasting.scoring.picture import draw, label
from forecasting.scoring.report import Report
from forecasting.scoring.said import Said, Who
from forecasting.targets import MEMORY

pytest.importorskip("matplotlib", reason="the extra `pictures` is not installed")

ROOT = Path(__file__).parents[4]
HOSTILE = 'device/$\\frac{1}{0}$<script>alert("x")</script>&\x1b[31m'


class Grid:
    """As much of Actual as is compared with."""

    def __init__(self, values: np.ndarray[tuple[int, int], np.dtype[np.float64]], who: Who) -> None:
        self.values, self.rows, self.first, self.step_ns = values, {who: 0}, 0, 60_000_000_000

    def bin_of(self, at_ns: int) -> int:
        return at_ns // self.step_ns


def hostile(off: float = 0.0) -> Report:
    """One metric, one series whose name is an attack, forecast twice; the second time wrong by `off`."""
    who = Who("c", HOSTILE)
    found = MetricScore(MEMORY, standing_from=0.3, stepped_in=lambda episode, until_ns: False)
    values = 40e9 + 1e8 * np.arange(100.0)[None, :] + 1e7 * np.sin(np.arange(100.0))
    grid = Grid(values, who)
    made = []
    for start, model in ((50, "holt"), (60, "$x$<b>")):
        p50 = values[0, start + 1 : start + 11] + (off if start == 60 else 1e6)
        at_ns = start * grid.step_ns + 1
        made.append(
            Said(
                who,
                "n",
                "memory_used_bytes",
                "By",
                model,
                at_ns,
                at_ns,
                grid.step_ns,
                at_ns,
                40,
                4e10,
                5e10,
                0.7,
                p50 - 1e8,
                p50,
                p50 + 1e8,
            )
        )
    found.compare(made, grid)  # type: ignore[arg-type]  # a stand-in for the grid of a store
    return Report(0, 1, {"memory_used_bytes": found})


def test_an_svg_holds_names_as_text_and_nothing_of_them_as_markup(tmp_path: Path) -> None:
    draw(hostile(), tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text(encoding="utf-8")
    tree = ET.fromstring(text)
    words = " ".join("".join(node.itertext()) for node in tree.iter("{http://www.w3.org/2000/svg}text"))
    assert "<script" not in text
    assert "</script>" in words
    assert "$x$<b>" in words
    assert "\x1b" not in text


def test_errors_of_very_different_size_are_both_seen_and_their_axis_is_no_formula(tmp_path: Path) -> None:
    draw(hostile(off=1e11), tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text(encoding="utf-8")
    assert "mathdefault" not in text
    assert ">100<" in text


def test_a_png_is_drawn(tmp_path: Path) -> None:
    draw(hostile(), tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_report_is_the_same_file(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        draw(hostile(), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_an_empty_report_is_a_picture_that_says_so(tmp_path: Path) -> None:
    draw(Report(0, 1), tmp_path / "p.svg")
    assert "no forecasts in this period" in (tmp_path / "p.svg").read_text(encoding="utf-8")


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.png or \.svg"):
        draw(Report(0, 1), tmp_path / "p.pdf")


def test_labels_are_short_and_printable() -> None:
    assert label("a\nb\x1b") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"
    assert len(label("x" * 500)) <= 44


def test_scoring_loads_no_drawing_library() -> None:
    script = "import sys, forecasting.scoring.report, forecasting.scoring.picture; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False).returncode == 0


def test_without_the_library_it_says_what_to_type(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from pathlib import Path\n"
        "from forecasting.scoring.picture import NoPictures, draw\n"
        "from forecasting.scoring.report import Report\n"
        "try: draw(Report(0, 1), Path('p.svg'))\n"
        "except NoPictures as error: sys.exit(\"pip install 'xpulse[pictures]'\" not in str(error))\n"
        "sys.exit(1)"
    )
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False).returncode == 0
