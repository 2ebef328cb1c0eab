"""What a plugin's process says arrives whole, however the pipe cuts it, and nonsense is noticed."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors import frames
from collectors.contract import NodeReading, Reading
from collectors.events import device_event
from schemas.builder import SampleBuilder
from schemas.identity import NodeRef
from schemas.telemetry import v1

NODE = NodeRef("c", "n")
READING = Reading(
    (
        NodeReading(7, (SampleBuilder("fake:0").set("power_watts", 3.5).build(),), boot_id="b", driver_epoch=3, driver_version="1.0"),
        NodeReading(8, (), node=NODE, simulated=True, processes=()),
        NodeReading(9, (), processes=(v1.ProcessSample(device_uid="fake:0", pid=4),), processes_unknown=("fake:1",)),
    ),
    (device_event(NODE, "fake", "lost", 9, "gone", uid="fake:1"), v1.ContextEvent(entity="device/x", at_ns=1)),
    {("fan_ratio", "not_supported"): 2},
)
STREAM = frames.up(2) + frames.alive() + frames.read(READING, duration_ns=5, skipped=1) + frames.down("why", 2.5) + frames.failed("x")
WORDS = [
    frames.Up(2),
    frames.Alive(),
    frames.Read(READING, 5, 1),
    frames.Down("why", 2.5),
    frames.Failed("x", misconfigured=False),
]


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=6))
@settings(max_examples=60, deadline=None)
def test_words_do_not_depend_on_where_the_stream_is_cut(cuts: list[int]) -> None:
    listener = frames.Listener()
    edges = [0, *sorted(cuts), len(STREAM)]
    heard = [word for start, end in pairwise(edges) for word in listener.feed(STREAM[start:end])]
    assert heard == WORDS


def test_a_reading_that_was_not_finished_is_not_heard() -> None:
    whole = frames.read(READING, duration_ns=5, skipped=0)
    end = len(frames.frame(frames.Kind.END, b'{"duration_ns": 5, "skipped": 0, "rejects": [["fan_ratio", "not_supported", 2]]}'))
    assert list(frames.Listener().feed(whole[:-end])) == []


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x00\x00\x00\x01",
        b"\xff\xff\xff\xff\x01",
        frames.frame(frames.Kind.ALIVE)[:4] + b"\x63",
        frames.frame(frames.Kind.READY, b"{not json"),
        frames.frame(frames.Kind.READY, b'{"other": 1}'),
        frames.frame(frames.Kind.UNAVAILABLE, b"[]"),
        frames.frame(frames.Kind.NODE, b"\xff\xff\xff"),
        frames.frame(frames.Kind.EVENT),
        frames.frame(frames.Kind.EVENT, b"\x7f"),
        frames.frame(frames.Kind.END, b"{}"),
        frames.frame(frames.Kind.END, b'{"rejects": [[1]], "duration_ns": 1, "skipped": 0}'),
        frames.frame(frames.Kind.FAILED, b"\xff"),
    ],
    ids=lambda data: repr(data),
)
def test_nonsense_is_refused(data: bytes) -> None:
    with pytest.raises(frames.Broken):
        list(frames.Listener().feed(data))
