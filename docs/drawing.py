"""The look of the project's pictures: one theme, colours that colour-blind people tell apart, and the same bytes each time they are made.

matplotlib (extra `pictures`) is imported when something is drawn, so that the rest of the documentation needs none.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

IMAGES: Final = Path(__file__).parent / "images"

# Okabe and Ito's palette: told apart with every common kind of colour blindness, and in grey.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY, PALE = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#555555",
    "#BBBBBB",
)

POINTS: Final = 500
"""Points of a line that a picture shows at most: more cannot be seen, and make the file large."""

_THEME: Final[dict[str, Any]] = {
    "svg.hashsalt": "xpulse",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E5E5E5",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}


def sheet(rows: int = 1, columns: int = 1, *, height: float = 3.0, **more: Any) -> tuple[Figure, NDArray[Any]]:
    """A figure of 8 inches with its axes, shape (rows, columns); `height` in inches."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcdefaults()
    look: Any = matplotlib.rcParams  # typed by every name there is, which a table of ours cannot match
    look.update(_THEME)
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(rows, columns, figsize=(8.0, height), squeeze=False, layout="constrained", **more)
    return figure, axes


def save(figure: Figure, name: str, folder: Path = IMAGES) -> Path:
    """Write the picture as `name`.svg, without the date that would make each run another file."""
    from matplotlib import pyplot

    path = folder / f"{name}.svg"
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": "XPulse, docs.pictures"})
    pyplot.close(figure)
    # a hundredth of a point is finer than any screen, and half of the file
    drawn = re.sub(r"(\d\.\d\d)\d+", r"\1", path.read_text(encoding="utf-8"))
    path.write_text("\n".join(line.rstrip() for line in drawn.splitlines()) + "\n", encoding="utf-8")
    return path


def thinned(x: NDArray[Any], *lines: NDArray[Any], points: int = POINTS) -> tuple[NDArray[Any], ...]:
    """Every nth value, so that no more than `points` are left; lines along the last axis as x is."""
    every = max(1, -(-x.shape[-1] // points))
    return tuple(values[..., ::every] for values in (x, *lines))


def spiky(x: NDArray[np.float64], y: NDArray[np.float64], points: int = POINTS) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each stretch of the line the smallest and the largest value, so that no peak is lost; NaN is passed over."""
    width = max(1, 2 * (-(-x.size // points)))
    chosen: list[int] = []
    for start in range(0, x.size, width):
        part = y[start : start + width]
        if not np.isnan(part).all():
            chosen += sorted({start + int(np.nanargmin(part)), start + int(np.nanargmax(part))})
    return x[chosen], y[chosen]


def span(axes: Axes, start: float, end: float, text: str = "", *, colour: str = ORANGE) -> None:
    """A shaded stretch of time, named at its top."""
    axes.axvspan(start, end, color=colour, alpha=0.15, linewidth=0)
    if text:
        axes.text(start, 1.0, f" {text}", transform=axes.get_xaxis_transform(), va="top", ha="left", fontsize=8, color=GREY)


def level(axes: Axes, y: float, text: str, *, colour: str = RED) -> None:
    """A dashed line across, named beside its right end."""
    axes.axhline(y, color=colour, linestyle="--", linewidth=1)
    axes.text(1.0, y, f" {text}", transform=axes.get_yaxis_transform(), va="center", ha="left", fontsize=8, color=colour)
