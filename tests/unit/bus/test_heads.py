"""End offsets from librdkafka's statistics are believed only while the broker speaks."""

from __future__ import annotations

import json

import pytest

from schemas.flow import Partition
from xpulse.bus.heads import note_heads
from xpulse.bus.places import Place

NOW_NS = 10**18


def place(next_offset: int = 5) -> Place:
    return Place(Partition("xpulse.samples", 0), "xpulse.samples", next_offset, next_offset, next_offset, next_offset)


def statistics(hi: int = 9, rxidle_us: int = 100_000, state: str = "UP", ts_us: int = 1_000_000) -> str:
    partitions = {"0": {"broker": 1, "hi_offset": hi}}
    return json.dumps(
        {
            "ts": ts_us,
            "brokers": {"b": {"nodeid": 1, "rxidle": rxidle_us, "state": state}},
            "topics": {"xpulse.samples": {"partitions": partitions}},
        }
    )


def test_a_speaking_broker_is_believed_as_of_when_it_spoke() -> None:
    here = place()
    note_heads(statistics(), [here], NOW_NS, monotonic_ns=1_200_000_000)
    assert here.lag == 4
    assert here.high_at_ns == NOW_NS - 300_000_000


@pytest.mark.parametrize(
    ("told", "monotonic_ns"),
    [
        (statistics(rxidle_us=3_500_000), 1_000_000_000),
        (statistics(state="CONNECT"), 1_000_000_000),
        (statistics(rxidle_us=-1), 1_000_000_000),
        (statistics(hi=-1001), 1_000_000_000),
        (statistics(), 5_000_000_000),
    ],
    ids=["silent", "not connected", "nothing received", "no offset", "old statistics"],
)
def test_otherwise_the_lag_is_unknown(told: str, monotonic_ns: int) -> None:
    here = place()
    here.high = 5
    note_heads(told, [here], NOW_NS, monotonic_ns=monotonic_ns)
    assert here.lag is None
