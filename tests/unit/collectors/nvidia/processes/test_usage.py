"""What a process did: which call is believed, since when it is asked, and how several samples become one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.nvidia.processes.calls import Activity
from collectors.nvidia.processes.parse import USAGE, averaged
from collectors.nvidia.processes.usage import UsageReader
from collectors.nvidia.reply import Failed
from schemas.values import Absent

NOW_NS = 1_790_000_000_000_000_000
NOW = NOW_NS // 1000
TEN = 10_000_000


class Calls:
    """Answers by call, and what was asked."""

    def __init__(self, newer: list[Activity] | Failed, older: list[Activity] | Failed) -> None:
        self.answers: dict[bool, list[Activity] | Failed] = {True: newer, False: older}
        self.asked: list[tuple[bool, int]] = []

    def activity(self, handle: Any, since_microseconds: int, *, newer: bool) -> list[Activity] | Failed:
        self.asked.append((newer, since_microseconds))
        return self.answers[newer]


def reader(calls: Calls) -> UsageReader:
    return UsageReader(calls, window_seconds=10)  # type: ignore[arg-type]  # only `activity` is used


def at(pid: int, microseconds: int, sm: int = 50) -> Activity:
    return Activity(pid, microseconds, sm, 20, 0, 0)


def test_the_first_question_looks_one_window_back_and_the_next_from_the_newest_sample() -> None:
    calls = Calls([at(5, NOW - 100), at(6, NOW - 300)], [])
    usage = reader(calls)
    usage.read("a", None, NOW_NS, Counter())
    usage.read("a", None, NOW_NS + 10**10, Counter())
    assert calls.asked == [(True, NOW - TEN), (True, NOW - 100)]


def test_a_clock_that_was_set_back_does_not_silence_a_card() -> None:
    calls = Calls([at(5, NOW - 100)], [])
    usage = reader(calls)
    usage.read("a", None, NOW_NS, Counter())
    usage.read("a", None, NOW_NS - 3600 * 10**9, Counter())
    assert calls.asked[-1] == (True, NOW - 3_600_000_000 - TEN)


def test_a_call_that_named_somebody_is_kept_and_its_silence_is_zero() -> None:
    calls = Calls([], [at(5, NOW - 100)])
    usage = reader(calls)
    assert usage.read("a", None, NOW_NS, Counter()).of(5)["sm_utilization_ratio"] == 0.5
    calls.answers[False] = []
    assert usage.read("a", None, NOW_NS + 10**10, Counter()).of(5) == dict.fromkeys(USAGE, 0.0)
    assert [newer for newer, _ in calls.asked] == [True, False, False]


@pytest.mark.parametrize(
    ("newer", "older", "others"),
    [
        ([], [], 0.0),
        ([], Failed(3), 0.0),
        (Failed(13), [], Absent("not_supported")),
        (Failed(13), Failed(3), Absent("not_supported")),
        (Failed(999), [], Absent("error")),
        (Failed(4), [], Absent("no_permission")),
        (Failed(15), [], Absent("lost")),
    ],
    ids=["both empty", "newer empty", "older empty only", "neither is there", "error", "no permission", "lost"],
)
def test_nobody_named_is_zero_only_where_the_call_is_to_be_believed(
    newer: list[Activity] | Failed, older: list[Activity] | Failed, others: object
) -> None:
    assert reader(Calls(newer, older)).read("a", None, NOW_NS, Counter()).others == others


def test_cards_that_went_are_forgotten() -> None:
    calls = Calls([at(5, NOW - 100)], [])
    usage = reader(calls)
    usage.read("a", None, NOW_NS, Counter())
    usage.forget({"b"})
    usage.read("a", None, NOW_NS, Counter())
    assert calls.asked[-1] == (True, NOW - TEN)


def test_samples_of_a_process_are_averaged_and_old_ones_left_out() -> None:
    rejects: Counter[tuple[str, str]] = Counter()
    found = averaged([at(5, 10, 100), at(5, 20, 40), at(5, 30, 80), at(6, 30, 0)], 10, rejects)
    assert found[5]["sm_utilization_ratio"] == pytest.approx(0.6)
    assert found[6]["sm_utilization_ratio"] == 0.0
    assert not rejects


numbers = st.one_of(st.integers(0, 200), st.sampled_from([2**32 - 1, 2**31, 100, 101]))


@given(st.lists(st.builds(Activity, numbers, st.integers(0, 2**64 - 1), numbers, numbers, numbers, numbers), max_size=20), numbers)
def test_no_samples_give_a_share_outside_the_whole(samples: list[Activity], since: int) -> None:
    rejects: Counter[tuple[str, str]] = Counter()
    for fields in averaged(samples, since, rejects).values():
        assert set(fields) == set(USAGE)
        assert all(value == Absent("out_of_range") or (isinstance(value, float) and 0 <= value <= 1) for value in fields.values())
