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
    at = 0.0
    waits: list[float] = []
    for _ in range(8):
        waits.append(left.again(left.due(at), at) if waits else left.add(Place("3", "gpu"), at))
        assert not left.due(at + waits[-1] - 1)
        at += waits[-1]
        assert left.due(at) == {"3"}
        assert left.now() == {"3": "gpu"}, "until it went well"
    assert waits[:3] == [FIRST_SECONDS, 2 * FIRST_SECONDS, 4 * FIRST_SECONDS]
    assert waits[-1] == MOST_SECONDS


def test_what_has_gone_well_for_long_is_forgotten() -> None:
    left = Avoided()
    left.add(Place("3"), 0.0)
    left.well(left.due(FIRST_SECONDS), FIRST_SECONDS)
    assert left.now() == {}
    assert not left.due(2 * FIRST_SECONDS), "it is read with all others"
    assert left.add(Place("3"), MOST_SECONDS) == 2 * FIRST_SECONDS, "it went well, but not for long"
    left.well({"3"}, 2 * MOST_SECONDS)
    assert left.add(Place("3"), 5 * MOST_SECONDS) == FIRST_SECONDS


def test_several_are_left_out_side_by_side() -> None:
    left = Avoided()
    left.add(Place("3", "a"), 0.0)
    left.add(Place("processes"), 10.0)
    assert left.now() == {"3": "a", "processes": ""}
    assert left.due(FIRST_SECONDS) == {"3"}
    left.well({"3"}, FIRST_SECONDS)
    assert left.now() == {"processes": ""}
    assert left.due(FIRST_SECONDS) == {"processes"}, "what made one answer may have made the others"
