"""Slow fields are read less often where the driver takes long for them, and as often as wanted again when it does not."""

from __future__ import annotations

from collectors.nvidia.watch.slow_reads import SlowReads


def ticks(slow: SlowReads, count: int, seconds: float) -> list[str]:
    """R: read, a dot: put off; B and + where the pace was left and found again."""
    told = []
    for _ in range(count):
        if not slow.wanted():
            told.append(".")
            continue
        told.append({"backed_off": "B", "recovered": "+", None: "R"}[slow.done(seconds)])
    return told


def test_a_quick_driver_is_read_each_time() -> None:
    assert "".join(ticks(SlowReads(0.5), 5, 0.4)) == "RRRRR"


def test_a_slow_one_is_read_at_each_second_then_fourth_then_eighth() -> None:
    slow = SlowReads(0.5)
    assert "".join(ticks(slow, 24, 0.6)) == "B.R...R.......R.......R."
    assert slow.every == 8


def test_a_quick_one_comes_back_step_by_step() -> None:
    slow = SlowReads(0.5)
    ticks(slow, 3, 0.6)
    assert slow.every == 4
    assert "".join(ticks(slow, 16, 0.1)) == "...R...R...R.R.R"
    assert "".join(ticks(slow, 4, 0.1)) == ".+RR"
