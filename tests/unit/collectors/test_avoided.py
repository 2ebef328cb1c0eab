"""What a process hung at: told through shared memory, left out, and tried again less and less often."""

from __future__ import annotations

import os

from collectors.avoided import FIRST_SECONDS, MOST_SECONDS, Avoided
from collectors.whereabouts import Notes, Place, make


def test_a_note_is_seen_by_the_other_side() -> None:
    fd = make()
    writer, reader = Notes(fd), Notes(fd)
    os.close(fd)
    assert reader.read() is None
    writer.note("3", "nvidia:GPU-1")
    assert reader.read() == Place("3", "nvidia:GPU-1")
    writer.note("processes")
    assert reader.read() == Place("processes", "")
    writer.note("x" * 1000, "y")
    found = reader.read()
    assert found is not None
    assert found.key.startswith("xxx")
    writer.note("")
    assert reader.read() is None
    writer.close()
    reader.close()


def test_it_is_left_out_and_tried_again_less_and_less_often() -> None:
    left = Avoided()
    at, waits = 0.0, []
    for _ in range(8):
        waits.append(left.add(Place("3", "gpu"), at))
        assert left.now(at) == {"3": "gpu"}
        assert not left.due(at + waits[-1] - 1)
        at += waits[-1]
        assert left.due(at)
        assert left.now(at) == {}
        assert not left.due(at), "one try a wait"
    assert waits[:3] == [FIRST_SECONDS, 2 * FIRST_SECONDS, 4 * FIRST_SECONDS]
    assert waits[-1] == MOST_SECONDS


def test_what_has_gone_well_for_long_is_forgotten() -> None:
    left = Avoided()
    left.add(Place("3"), 0.0)
    assert left.due(FIRST_SECONDS)
    left.add(Place("5"), 3 * MOST_SECONDS)
    assert left.due(4 * MOST_SECONDS)
    assert left.add(Place("3"), 5 * MOST_SECONDS) == FIRST_SECONDS


def test_several_are_left_out_side_by_side() -> None:
    left = Avoided()
    left.add(Place("3", "a"), 0.0)
    left.add(Place("processes"), 10.0)
    assert left.now(11.0) == {"3": "a", "processes": ""}
    assert left.due(FIRST_SECONDS)
    assert left.now(FIRST_SECONDS) == {"processes": ""}
