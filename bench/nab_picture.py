"""Draws what the detectors see: four simulated series with the expected band, the score, and where it says that something is new.

The benchmark's own series may not be shown: their licence does not fit. These are ours, with the same kinds of trouble.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bench.nab_detect import Detected, detect
from streams.operators.detect.anomaly.ensemble import DETECTORS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

STEP_NS: Final = 300_000_000_000
DAYS: Final = 14
PER_DAY: Final = 288
OUT: Final = Path(__file__).parent / "out" / "anomalies.svg"
_BEGIN_NS: Final = 1_767_571_200_000_000_000
"""A Monday: 2026-01-05T00:00Z."""


class Drawn(NamedTuple):
    """A simulated series: what it is, its unit, its values, and where trouble begins."""

    title: str
    unit: str
    values: Floats
    trouble: tuple[int, ...]


def simulated(seed: int = 7) -> list[Drawn]:
    """Two weeks at a point in five minutes: load of a service, a temperature, memory, and power."""
    random = np.random.default_rng(seed)
    n = DAYS * PER_DAY
    at = np.arange(n)
    day = np.sin(2 * np.pi * (at % PER_DAY) / PER_DAY - np.pi / 2)
    weekend = (at // PER_DAY) % 7 >= 5
    load = np.clip(0.45 + 0.3 * day * np.where(weekend, 0.4, 1.0) + random.normal(0, 0.03, n), 0, 1)
    load[2900:2960] = np.clip(0.95 + random.normal(0, 0.01, 60), 0, 1)
    heat = 45 + 25 * load + random.normal(0, 0.6, n)
    heat[3200:] += np.minimum((at[3200:] - 3200) / 40, 16)
    memory = 40e9 + 5e9 * (at % 400 > 200) + random.normal(0, 2e8, n)
    memory[2500:] += 22e9
    power = 180 + 420 * load + random.normal(0, 8, n)
    power[2300:2420] = 96.0 + random.normal(0, 0.5, 120)
    return [
        Drawn("utilisation: a plateau higher than ever", "ratio", load, (2900,)),
        Drawn("temperature: creeps away from its load", "°C", heat, (3200,)),
        Drawn("memory: a step that stays", "GB", memory / 1e9, (2500,)),
        Drawn("power: falls and rests", "W", power, (2300,)),
    ]


def picture(path: Path, seed: int = 7) -> list[Detected]:
    """Draws to `path` (.svg or .png) and returns what was detected. ImportError without matplotlib (the extra `pictures`)."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    drawn = simulated(seed)
    at_ns = _BEGIN_NS + np.arange(DAYS * PER_DAY, dtype=np.int64) * STEP_NS
    found = detect([(at_ns, one.values) for one in drawn])
    days = np.arange(DAYS * PER_DAY) / PER_DAY
    mpl.rcParams["svg.hashsalt"] = "xpulse"  # the same picture gives the same bytes
    figure, axes = pyplot.subplots(2 * len(drawn), 1, figsize=(11, 11), sharex=True, height_ratios=[3, 1] * len(drawn))
    for k, (one, seen) in enumerate(zip(drawn, found, strict=True)):
        series, scores = axes[2 * k], axes[2 * k + 1]
        series.fill_between(days, seen.low, seen.high, color="#8fb8de", alpha=0.45, linewidth=0, label="expected")
        series.plot(days, one.values, color="#1f2d3d", linewidth=0.7)
        low, high = one.values.min(), one.values.max()
        series.set_ylim(low - 0.1 * (high - low), high + 0.15 * (high - low))
        for begin in one.trouble:
            series.axvline(begin / PER_DAY, color="#c0392b", linewidth=0.8, linestyle=":")
        odd = np.flatnonzero(seen.score >= 0.5)
        series.plot(days[odd], one.values[odd], "o", color="#c0392b", markersize=4)
        for i in odd:
            series.annotate(DETECTORS[seen.detector[i]], (days[i], one.values[i]), (4, 4), textcoords="offset points", fontsize=7)
        series.set_title(one.title, loc="left", fontsize=9)
        series.set_ylabel(one.unit, fontsize=8)
        scores.fill_between(days, seen.score, color="#c0392b", alpha=0.5, linewidth=0, step="mid")
        scores.axhline(0.5, color="#555555", linewidth=0.7)
        scores.set_ylim(0, 1)
        scores.set_yticks([0, 0.5, 1])
        scores.tick_params(labelsize=7)
        series.tick_params(labelsize=7)
    axes[-1].set_xlabel("days; dotted: trouble begins; dots: findings and the detector that says so; below: the score and its boundary")
    figure.tight_layout(pad=0.6)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)
    pyplot.close(figure)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """0."""
    parser = argparse.ArgumentParser(prog="python -m bench.nab_picture", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=OUT, help="a .svg or .png file (default bench/out/anomalies.svg)")
    asked = parser.parse_args(arguments)
    picture(asked.out)
    print(f"drawn to {asked.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
