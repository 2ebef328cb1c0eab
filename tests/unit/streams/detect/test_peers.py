"""Devices beside their like: who is odd, and who is compared with whom."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from streams.operators.detect import peers
from streams.operators.detect.peers import METRICS, NAMES, Peers, Place
from streams.operators.detect.table import Table
from streams.rules.vocabulary import PEER_METRICS

SECOND = 1_000_000_000
OPTIONS = Peers()
NAN = float("nan")
LIKE: Mapping[str, float] = {
    "power_watts": 500.0,
    "sm_clock_hertz": 1.9e9,
    "temperature_celsius": 60.0,
    "memory_temperature_celsius": 70.0,
    "sm_active_ratio": 0.7,
    "tensor_active_ratio": 0.3,
    "dram_active_ratio": 0.5,
    "utilization_ratio": 0.9,
    "power_limit_watts": 700.0,
    "throttle_reasons": 0.0,
}

Values = NDArray[np.float64]


def alike(n: int = 8, **more: float) -> Values:
    return np.array([[{**LIKE, **more}[name] for name in METRICS]] * n)


def changed(values: Values, device: int, **metrics: float) -> Values:
    made = values.copy()
    for name, value in metrics.items():
        made[device, METRICS.index(name)] = value
    return made


def odd(values: Values, places: list[Place] | None = None, *, points: int = 40, side: str = "below") -> set[tuple[int, str]]:
    """(device, metric) beyond the boundary after so many points of these values."""
    below, above = scores(values, places, points=points)
    found = np.argwhere((below if side == "below" else above) >= 0.5)
    return {(int(d), NAMES[f]) for d, f in found}


def scores(values: Values, places: list[Place] | None = None, *, points: int = 40) -> tuple[Values, Values]:
    table = Table()
    peers.define(table)
    rows = np.array([table.new_row() for _ in values], np.intp)
    where = places or [Place(0, 0, 0)] * len(values)
    at = np.zeros(len(values), np.int64)
    for n in range(points):
        at = np.full(len(values), (n + 1) * 10 * SECOND)
        peers.compare(table, rows, at, values, where, OPTIONS)
    return peers.score(table, rows, at, OPTIONS)


def test_the_metrics_are_those_that_rules_may_name() -> None:
    assert NAMES == PEER_METRICS


def test_alike_is_not_odd() -> None:
    below, above = scores(alike())
    assert below.max() == above.max() == 0.0


@pytest.mark.parametrize(
    ("metric", "value", "side"),
    [
        ("sm_clock_hertz", 1.5e9, "below"),
        ("power_watts", 370.0, "below"),
        ("temperature_celsius", 73.0, "above"),
        ("memory_temperature_celsius", 83.0, "above"),
    ],
)
def test_one_that_is_unlike_for_minutes_is_found_and_nobody_else(metric: str, value: float, side: str) -> None:
    values = changed(alike(), 5, **{metric: value})
    assert odd(values, side=side) == {(5, metric)}
    assert odd(values, side="above" if side == "below" else "below") == set()
    assert odd(values, points=6, side=side) == set(), "not after one minute"


@pytest.mark.parametrize(
    ("metric", "value", "side"),
    [("sm_clock_hertz", 1.7e9, "below"), ("power_watts", 440.0, "below"), ("temperature_celsius", 67.0, "above")],
)
def test_boards_of_one_model_differ_a_little(metric: str, value: float, side: str) -> None:
    assert odd(changed(alike(), 5, **{metric: value}), side=side) == set()


def test_one_wild_point_is_no_habit() -> None:
    table = Table()
    peers.define(table)
    rows = np.array([table.new_row() for _ in range(8)], np.intp)
    found = 0.0
    for n in range(20):
        at = np.full(8, (n + 1) * 10 * SECOND)
        values = changed(alike(), 2, power_watts=1.0) if n == 10 else alike()
        peers.compare(table, rows, at, values, [Place(0, 0, 0)] * 8, OPTIONS)
        found = max(found, float(np.nanmax(peers.score(table, rows, at, OPTIONS)[0])))
    assert 0.0 < found < 0.5


def test_it_clears_when_it_is_like_the_others_again() -> None:
    table = Table()
    peers.define(table)
    rows = np.array([table.new_row() for _ in range(8)], np.intp)
    found = []
    for n in range(100):
        at = np.full(8, (n + 1) * 10 * SECOND)
        peers.compare(table, rows, at, changed(alike(), 2, sm_clock_hertz=1.4e9 if n < 50 else 1.9e9), [Place(0, 0, 0)] * 8, OPTIONS)
        found.append(float(peers.score(table, rows, at, OPTIONS)[0][2, 1]))
    assert found[49] > 0.5
    assert found[70] < 0.35


def test_fewer_than_four_are_not_compared() -> None:
    assert np.isnan(scores(changed(alike(3), 1, sm_clock_hertz=1e9))[0]).all()
    assert odd(changed(alike(4), 1, sm_clock_hertz=1e9)) == {(1, "sm_clock_hertz")}


@pytest.mark.parametrize(
    "other",
    [{"utilization_ratio": 0.05}, {"power_limit_watts": 350.0}, {"utilization_ratio": NAN}],
    ids=["idle", "limited", "load_unknown"],
)
def test_what_is_not_like_is_not_compared(other: Mapping[str, float]) -> None:
    slow = changed(alike(), 3, power_watts=100.0, sm_clock_hertz=4e8, **other)
    below, above = scores(slow)
    assert np.isnan(below[3]).all()
    assert np.nanmax(np.delete(np.maximum(below, above), 3, axis=0)) < 0.1


def test_a_partition_and_a_card_of_another_model_are_not_compared() -> None:
    values = changed(changed(alike(10), 8, sm_clock_hertz=1e9), 9, sm_clock_hertz=1e9)
    places = [Place(0, 0, 0)] * 8 + [Place(-1, 0, 0), Place(1, 0, 0)]
    below, _ = scores(values, places)
    assert np.isnan(below[8:]).all()
    assert np.nanmax(below[:8]) == 0.0


def test_less_power_at_less_load_is_no_fault() -> None:
    assert odd(changed(alike(), 4, utilization_ratio=0.5, power_watts=330.0, sm_active_ratio=0.4, dram_active_ratio=0.3)) == set()


def test_different_work_at_the_same_utilisation_is_no_fault() -> None:
    decoding = {"power_watts": 350.0, "tensor_active_ratio": 0.05, "dram_active_ratio": 0.8}
    assert odd(changed(alike(), 4, **decoding)) == set()
    assert odd(changed(alike(), 4, **decoding), [Place(0, n + 1, 0) for n in range(8)]) == set()


def test_of_those_who_do_the_same_work_one_that_does_less_is_found() -> None:
    slow = changed(alike(), 4, power_watts=350.0, sm_active_ratio=0.3, tensor_active_ratio=0.1)
    assert (4, "sm_active_ratio") in odd(slow, [Place(0, 1, 0)] * 8)
    assert odd(slow) == set(), "whose work is not known"


def test_in_a_tensor_parallel_group_load_itself_may_differ() -> None:
    """One pod over four cards: the slow one computes while the others wait, whatever their utilisation says."""
    slow = changed(alike(4, utilization_ratio=0.6), 1, utilization_ratio=0.99, sm_clock_hertz=1.2e9, power_watts=300.0)
    assert (1, "power_watts") in odd(slow, [Place(0, 1, 7)] * 4)
    assert (1, "power_watts") not in odd(slow)


def test_two_kinds_of_work_make_nobody_odd() -> None:
    values = alike()
    for device in (0, 1, 2):
        values = changed(values, device, power_watts=300.0, sm_clock_hertz=1.4e9)
    assert odd(values) == set()


def test_a_clock_that_is_throttled_gives_its_reason() -> None:
    varied = changed(alike(), 3, sm_clock_hertz=1.2e9, throttle_reasons=1.0)
    for device in range(8):
        varied = changed(varied, device, utilization_ratio=0.25 + 0.09 * device)
    assert odd(varied) == set()


def test_clocks_compare_whatever_the_load() -> None:
    varied = changed(alike(), 3, sm_clock_hertz=1.4e9)
    for device in range(8):
        varied = changed(varied, device, utilization_ratio=0.25 + 0.09 * device)
    assert odd(varied) == {(3, "sm_clock_hertz")}


def test_what_a_device_does_not_say_is_not_compared() -> None:
    below, above = scores(changed(alike(), 3, power_watts=NAN, temperature_celsius=NAN))
    known = ~np.isnan(below[3])
    assert [NAMES[f] for f in np.flatnonzero(~known)] == ["power_watts", "temperature_celsius"]
    assert np.nanmax(np.maximum(below, above)) == 0.0


def test_a_comparison_is_held_for_a_minute() -> None:
    table = Table()
    peers.define(table)
    rows = np.array([table.new_row() for _ in range(4)], np.intp)
    peers.compare(table, rows, np.full(4, 10 * SECOND), alike(4), [Place(0, 0, 0)] * 4, OPTIONS)
    assert not np.isnan(peers.score(table, rows, np.full(4, 70 * SECOND), OPTIONS)[0]).any()
    assert np.isnan(peers.score(table, rows, np.full(4, 71 * SECOND), OPTIONS)[0]).all()


def test_a_group_does_not_depend_on_who_is_looked_at_with_it() -> None:
    rng = np.random.default_rng(0)
    values = alike(13) * rng.uniform(0.9, 1.1, (13, len(METRICS)))
    values[:, METRICS.index("power_limit_watts")] = 700.0
    values[:, METRICS.index("throttle_reasons")] = 0.0
    places = [Place(0, 1, 0)] * 5 + [Place(1, 2, 0)] * 8
    together = scores(values, places)
    np.testing.assert_array_equal(together[0][:5], scores(values[:5], places[:5])[0])
    np.testing.assert_array_equal(together[1][5:], scores(values[5:], places[5:])[1])


@pytest.mark.parametrize("scale", [1e9, 1e-9])
def test_scores_do_not_depend_on_the_unit(scale: float) -> None:
    values = changed(alike(), 5, power_watts=400.0, sm_clock_hertz=1.6e9)
    other = values.copy()
    other[:, :2] *= scale
    np.testing.assert_allclose(scores(values)[0], scores(other)[0], rtol=1e-9)
