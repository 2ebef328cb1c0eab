"""A tick that begins with the one before says exactly what one made from nothing says."""

from __future__ import annotations

from copy import deepcopy

from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.nvidia.fast_fields import Last, Memory, fast_changes, fast_fields
from collectors.nvidia.reply import Count32, Failed, Replies, Reply
from schemas.builder import SampleBuilder
from tests.unit.collectors.nvidia.test_fast_fields import FAST_REPLIES, PROFILE

ODD: tuple[Reply, ...] = (0, 1, 32, 57, 101, 200_000, -5, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 2**40, Failed(3), Failed(4), Failed(999), "N/A")
changes = st.dictionaries(st.sampled_from([*FAST_REPLIES, "nvlink_tx_bytes", "power_milliwatts"]), st.sampled_from(ODD), max_size=4)
activity = st.dictionaries(
    st.sampled_from(list(PROFILE)), st.sampled_from((0.0, 41.5, 101.5, 700.0, float("nan"), Failed(999))), max_size=3
)


def whole(replies: Replies, profile: Replies, memory: Memory) -> SampleBuilder:
    builder = SampleBuilder("nvidia:x", 3)
    fast_fields(builder, replies, profile, memory, mig=False, seconds=1.0)
    return builder


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(changes, activity), min_size=1, max_size=5))
def test_what_changed_gives_the_same_as_everything(ticks: list[tuple[Replies, Replies]]) -> None:
    replies, profile = dict(FAST_REPLIES) | {"nvlink_tx_bytes": Failed(3), "power_milliwatts": Failed(3)}, dict(PROFILE)
    memory = Memory()
    before = whole(replies, profile, memory)
    before.build()
    last = Last(replies, profile, before)
    for changed, activity_now in ticks:
        replies, profile = replies | changed, profile | activity_now
        other = deepcopy(memory)
        made = fast_changes(last, replies, profile, memory)
        wanted = whole(replies, profile, other)
        if made is None:
            made, memory = whole(replies, profile, memory), other
        assert made.build() == wanted.build()
        assert made.rejects == wanted.rejects
        last = Last(replies, profile, made)


def test_an_equal_tick_is_the_same_again_and_shares_nothing() -> None:
    memory = Memory()
    before = whole(FAST_REPLIES, PROFILE, memory)
    first = before.build()
    again = fast_changes(Last(FAST_REPLIES, PROFILE, before), dict(FAST_REPLIES), dict(PROFILE), memory)
    assert again is not None
    second = again.build()
    assert second == first
    second.power_watts = 1
    assert first.power_watts != 1


def test_what_has_to_be_unwrapped_or_was_not_there_is_made_from_nothing() -> None:
    memory = Memory()
    counting: Replies = FAST_REPLIES | {"pcie_tx_bytes": Count32(5)}
    before = whole(counting, PROFILE, memory)
    before.build()
    assert fast_changes(Last(counting, PROFILE, before), counting, PROFILE, memory) is None
    fresh = Memory()
    other = whole(FAST_REPLIES, PROFILE, fresh)
    assert fast_changes(Last(FAST_REPLIES, PROFILE, other), FAST_REPLIES | {"new": 1}, PROFILE, fresh) is None
    assert fast_changes(Last(FAST_REPLIES, {}, other), FAST_REPLIES, {}, fresh) is None
