"""What other detectors got wrong (analytics.md section 6, rows 20 to 28), asked of every detector of ours that gives a score."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from streams.operators.detect import bursts
from streams.operators.detect.anomaly import ensemble
from streams.operators.detect.columns import Reader, Taken
from streams.operators.detect.fleet import Fleet
from streams.operators.detect.table import Table
from tests.unit.streams.detect.given import batch, sample

Floats = NDArray[np.float64]
S = 1_000_000_000
T0 = 1_700_000_000 * S
OPTIONS = ensemble.Options()
BURSTS = bursts.Bursts(adapt_seconds=900.0)


def anomaly(series: Floats, at_ns: NDArray[np.int64] | None = None) -> Floats:
    """Scores of `series` (n, k): k series that the ensemble is shown side by side, a point every 10 s."""
    table = Table()
    ensemble.define(table, 1, OPTIONS)
    rows = np.array([table.new_row() for _ in range(series.shape[1])], np.intp)
    when = T0 + 10 * S * np.arange(len(series), dtype=np.int64) if at_ns is None else at_ns
    return np.stack(
        [
            ensemble.score(table, rows, np.full(len(rows), t), values[:, None], OPTIONS).score[:, 0]
            for t, values in zip(when, series, strict=True)
        ]
    )


def burst(growth: Floats, given: NDArray[np.bool_] | None = None) -> Floats:
    """Scores of a counter that grows by `growth` (n,), read every minute; nothing is read where `given` (n,) is false."""
    table = Table()
    bursts.define(table, 1)
    row = np.array([table.new_row()], np.intp)
    counts = np.cumsum(growth)
    if given is not None:
        counts[~given] = np.nan
    when = T0 + 60 * S * np.arange(len(counts), dtype=np.int64)
    epoch = np.ones(1, np.int64)
    return np.array(
        [bursts.score(table, row, when[n : n + 1], epoch, counts[n : n + 1, None], BURSTS).score[0, 0] for n in range(len(counts))]
    )


def noise(points: int, *, seed: int = 5, level: float = 50.0, sigma: float = 2.0) -> Floats:
    return np.random.default_rng(seed).normal(level, sigma, points)


WARM = 260
"""Points after which the ensemble has something to say; counters have after ten minutes."""


def test_row_20_a_series_that_does_not_change_is_not_anomalous_and_a_new_level_becomes_usual() -> None:
    """netdata#12967: the anomaly bit stuck at 100 % on a metric that did not change."""
    flat = np.full(WARM + 600, 50.0)
    stepped = np.where(np.arange(flat.size) < WARM, noise(flat.size), 500.0)
    found = anomaly(np.stack([flat, stepped], axis=1))
    assert np.nanmax(found[:, 0]) == 0.0
    assert found[WARM, 1] > 0.5
    assert (found[WARM + 300 :, 1] < 0.5).all()


def test_row_20_a_rate_of_errors_that_stays_becomes_the_rate() -> None:
    found = burst(np.where(np.arange(110) < 60, 0.0, 240.0))
    assert np.nanmax(found[:60]) < 0.5
    assert (found[60:65] > 0.5).all()
    assert (found[-20:] < 0.5).all()


@pytest.mark.parametrize("level", [0.0, 50.0, -3e-7, 7e11], ids=["zero", "fifty", "tiny", "huge"])
def test_row_21_a_change_after_a_constant_past_is_an_anomaly(level: float) -> None:
    """valkey-timeseries#90: a spread of 0 made the boundary NaN, and nothing was ever beyond it."""
    series = np.full(WARM + 5, level)
    series[WARM:] = level + (abs(level) or 1.0) * 0.1
    found = anomaly(series[:, None])[:, 0]
    assert np.nanmax(found[:WARM]) < 0.5
    assert found[WARM] > 0.5


def test_row_21_a_counter_that_never_moved_and_then_does_is_an_anomaly() -> None:
    growth = np.zeros(60)
    growth[50] = 60
    found = burst(growth)
    assert np.nanmax(found[:50]) < 0.5
    assert found[50] > 0.5


def test_row_21_every_score_lies_between_0_and_1_with_the_boundary_in_the_middle() -> None:
    """valkey-timeseries#91: scores of two detectors could not be compared."""
    spikes = noise(WARM + 40)
    spikes[WARM::10] += np.array([5.0, 50.0, 5e3, 5e9])
    growth = np.zeros(60)
    growth[50:59:4] = 1e3, 1e6, 1e9
    for found in (anomaly(spikes[:, None]), burst(growth)):
        known = found[~np.isnan(found)]
        assert known.size
        assert known.min() >= 0.0
        assert 0.5 < known.max() <= 1.0


@pytest.mark.parametrize("mess", ["late", "twice", "both"])
def test_row_25_what_comes_late_or_twice_changes_nothing(mess: str) -> None:
    """adtk#112: an index that goes back raised an error. Ours: what is not after the newest is left out."""
    clean = noise(WARM + 40)[:, None]
    clean[WARM + 10] += 60.0
    when = T0 + 10 * S * np.arange(len(clean), dtype=np.int64)
    order = np.arange(len(clean)).tolist()
    messy: list[int] = []
    for n in order:
        messy.append(n)
        if mess in ("twice", "both"):
            messy.append(n)
        if mess in ("late", "both") and n > 3:
            messy.append(n - 3)
    once = anomaly(clean, when)
    again = anomaly(clean[messy], when[messy])
    first = [messy.index(n) for n in order]
    np.testing.assert_array_equal(again[first], once)
    assert np.isnan(np.delete(again, first, axis=0)).all(), "nothing is said of what was left out"


@pytest.mark.parametrize("scale", [1e9, 1e-9], ids=["1e9", "1e-9"])
def test_row_26_scores_do_not_depend_on_the_unit(scale: float) -> None:
    """cbhua/peak-over-threshold#3: values of 300 to 1000 broke the fit of the tail."""
    series = np.stack([noise(WARM + 100, level=650.0, sigma=90.0), np.abs(np.cumsum(noise(WARM + 100, level=0.0, sigma=40.0)))], axis=1)
    series[WARM + 20, 0] = 3000.0
    one, other = anomaly(series), anomaly(series * scale)
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)
    assert np.nanmax(one[:, 0]) > 0.5


def test_row_26_one_boundary_is_not_taken_for_all() -> None:
    """cbhua/peak-over-threshold#5: the fit used the wrong variable, and gave the same for every series."""
    quiet, loud = noise(WARM + 1, sigma=0.1), noise(WARM + 1, sigma=10.0)
    quiet[WARM] = loud[WARM] = 58.0
    found = anomaly(np.stack([quiet, loud], axis=1))
    assert found[WARM, 0] > 0.5
    assert found[WARM, 1] < 0.5


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.8e308], ids=["nan", "inf", "-inf", "largest double"])
def test_row_28_what_is_no_measurement_is_neither_a_value_nor_an_anomaly(bad: float) -> None:
    clean = noise(WARM + 40)[:, None]
    holed = clean.copy()
    holed[100::7] = bad
    found = anomaly(holed)[:, 0]
    assert np.isnan(found[100::7]).all()
    kept = np.delete(np.arange(len(clean)), np.arange(100, len(clean), 7))
    when = T0 + 10 * S * kept.astype(np.int64)
    np.testing.assert_array_equal(found[kept], anomaly(clean[kept], when)[:, 0])


def test_row_28_a_counter_that_says_nothing_is_not_a_counter_at_zero() -> None:
    minutes = np.arange(100)
    found = burst(np.full(100, 12.0), (minutes < 40) | (minutes >= 50))
    assert np.isnan(found[44:50]).all(), "what was found last is not held for ever"
    assert np.nanmax(found) < 0.5


@pytest.mark.parametrize("many", [1, 200], ids=["read by message", "read by bytes"])
def test_row_28_infinities_of_a_foreign_producer_are_absent(many: int) -> None:
    devices = [sample(f"nvidia:{n}", power_watts=np.inf if n == 0 else 300.0, temperature_celsius=np.nan) for n in range(many)]
    made = batch(1, *devices)
    columns = Reader(["power_watts", "temperature_celsius"]).read([Taken(made, made.SerializeToString())], Fleet(Table()))
    assert columns.absent is not None
    assert columns.absent[0, 0]
    assert np.isnan(columns.values[0]).all()
    assert np.isfinite(columns.values[1:, 0]).all()
