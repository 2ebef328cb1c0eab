"""The history: a ring per series, idempotent, bounded, absent is not zero."""

from collections import Counter

import numpy as np
import pytest

from forecasting.followed import Followed
from forecasting.series import History
from forecasting.targets import CORE_TEMPERATURE, MEMORY
from tests.unit.forecasting.fleet import SECOND, START_NS, batch

TARGETS = (MEMORY, CORE_TEMPERATURE)


def history(*, steps: int = 16, step_seconds: int = 1, most: int = 100) -> tuple[History, Counter[str]]:
    dropped: Counter[str] = Counter()
    return (
        History(
            TARGETS,
            step_ns=step_seconds * SECOND,
            history_steps=steps,
            max_series=most,
            dropped=dropped,
        ),
        dropped,
    )


def take(h: History, second: int, value: float | None, *, sequence: int | None = None, epoch: int = 1, uid: str = "sim:a") -> None:
    fields = {} if value is None else {"memory_used_bytes": value}
    h.take(batch(START_NS + second * SECOND, {uid: fields}, sequence=second if sequence is None else sequence, epoch=epoch))


def device(h: History, uid: str = "sim:a") -> Followed:
    found = h.device("c0", "n0", uid)
    assert found is not None
    return found


def memory(h: History, second: int) -> list[float]:
    values = h.snapshot([device(h)], 0, START_NS + second * SECOND).values[0]
    return [float(value) for value in values[np.flatnonzero(np.isfinite(values))[0] :]]


def test_steps_without_a_value_are_unknown_never_zero() -> None:
    h, _ = history()
    for second, value in [(0, 1.0), (1, 2.0), (2, None), (3, 4.0)]:
        take(h, second, value)
    assert memory(h, 4) == pytest.approx([1.0, 2.0, np.nan, 4.0], nan_ok=True)
    assert np.isnan(h.snapshot([device(h)], 1, START_NS).values).all()


def test_replayed_and_late_batches_change_nothing_but_fill() -> None:
    h, dropped = history()
    for second, value in [(0, 1.0), (1, 2.0), (3, 4.0), (1, 9.0), (2, 3.0)]:
        take(h, second, value)
    assert memory(h, 4) == [1.0, 2.0, 3.0, 4.0]
    take(h, 40, 5.0)
    take(h, 3, 9.0)
    assert dropped == {"too_old": 1}
    assert memory(h, 41) == [5.0]


def test_the_ring_keeps_one_history() -> None:
    h, _ = history()
    for second in range(40):
        take(h, second, float(second))
    assert memory(h, 40) == list(range(24, 40))
    # second 39 is not over yet: it would stand for less than a step
    assert memory(h, 39) == list(range(24, 39))


@pytest.mark.parametrize(("epoch", "sequence"), [(1, 41), (2, 0)], ids=["same epoch", "restarted agent"])
def test_a_clock_set_back_starts_afresh(epoch: int, sequence: int) -> None:
    h, dropped = history()
    for second in range(30, 41):
        take(h, second, float(second))
    take(h, 5, 500.0, epoch=epoch, sequence=sequence)
    take(h, 6, 600.0, epoch=epoch, sequence=sequence + 1)
    assert dropped == {"clock_set_back": 1}
    assert memory(h, 7) == [500.0, 600.0]


def test_a_spooled_batch_of_an_older_epoch_is_only_late() -> None:
    h, dropped = history()
    for second in (10, 12):
        take(h, second, float(second), epoch=2)
    take(h, 11, 11.0, epoch=1, sequence=900)
    assert memory(h, 13) == [10.0, 11.0, 12.0]
    assert not dropped


def test_bounded_in_series() -> None:
    h, dropped = history(most=4)
    for i in range(3):
        take(h, 0, 1.0, uid=f"sim:{i}")
    assert len(h) == 2
    assert dropped == {"max_series": 1}


def test_silent_devices_are_forgotten_and_their_rows_used_again() -> None:
    h, _ = history(most=2)
    take(h, 0, 1.0, uid="sim:a")
    h.age(START_NS + 4000 * SECOND)
    assert len(h) == 0
    take(h, 4000, 2.0, uid="sim:b")
    assert h.snapshot([device(h, "sim:b")], 0, START_NS + 4001 * SECOND).values[0, -1] == 2.0


def test_equal_node_names_of_two_clusters_do_not_mix() -> None:
    h, _ = history()
    for cluster, value in (("c0", 1.0), ("c1", 2.0)):
        h.take(batch(START_NS, {"sim:a": {"memory_used_bytes": value}}, cluster=cluster))
    assert len(h) == 2
    assert memory(h, 1) == [1.0]
    h.forget(lambda cluster, node: cluster == "c1")
    assert [d.cluster for d in h.devices()] == ["c1"]


def test_limits_are_held_and_end() -> None:
    h, _ = history()
    take(h, 0, 1.0)
    assert device(h).limit("memory_total_bytes", START_NS + 170 * SECOND) == 80e9
    assert device(h).limit("memory_total_bytes", START_NS + 200 * SECOND) is None


def test_seed_fills_only_what_samples_have_not_said() -> None:
    h, _ = history()
    take(h, 3, 4.0)
    times = START_NS + np.arange(5) * SECOND
    h.seed(device(h), 0, times, np.array([1.0, np.nan, 3.0, 99.0, np.nan]))
    assert memory(h, 4) == pytest.approx([1.0, np.nan, 3.0, 4.0], nan_ok=True)
