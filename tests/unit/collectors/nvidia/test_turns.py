"""A card whose calls are slow costs the others a tenth of their ticks at most, and none of their values in the ticks they get."""

from __future__ import annotations

import time

from collectors.nvidia.turns import SLOW_SECONDS, Turns
from collectors.worker import FAST
from tests.fakes import nvml
from tests.fakes.nvml.fixtures import fake_nvml, fake_nvml_library
from tests.unit.collectors.nvidia.rig import Rig, absent

__all__ = ["fake_nvml", "fake_nvml_library"]
CARDS = ["a", "b", "c"]


def test_quick_cards_are_read_as_they_are_listed() -> None:
    turns = Turns()
    for at in (0.0, 1.0, 2.0):
        assert turns.order(CARDS, at) == CARDS
        assert [turns.done(uid, at, 0.001) for uid in CARDS] == [None] * 3


def test_a_slow_card_comes_last_and_rests() -> None:
    turns = Turns()
    turns.order(CARDS, 0.0)
    assert turns.done("a", 0.0, 0.5) == "slow"
    turns.done("b", 0.0, 0.001)
    turns.done("c", 0.0, 0.001)
    assert turns.order(CARDS, 1.0) == ["b", "c"]
    assert turns.order(CARDS, 5.0) == ["b", "c", "a"]
    assert turns.done("a", 5.0, 3600.0) is None, "it is known"
    assert turns.order(CARDS, 64.0) == ["b", "c"]
    assert turns.order(CARDS, 65.0) == ["b", "c", "a"], "a minute at most"


def test_it_is_quick_again_after_some_quick_reads() -> None:
    turns = Turns()
    turns.order(CARDS, 0.0)
    turns.done("a", 0.0, 0.5)
    said = []
    for at in (5.0, 6.0, 7.0):
        assert turns.order(CARDS, at)[-1] == "a"
        said.append(turns.done("a", at, 0.001))
    assert said == [None, None, "quick"]


def test_where_all_are_slow_each_gets_its_turn() -> None:
    turns = Turns()
    turns.order(CARDS, 0.0)
    for uid in CARDS:
        turns.done(uid, 0.0, 2.0)
    first = []
    for at in (1.0, 2.0, 3.0):
        first.append(turns.order(CARDS, at)[0])
        turns.done(first[-1], at, 2.0)
    assert sorted(first) == CARDS


def test_who_found_no_room_before_the_deadline_is_first_in_the_next_tick() -> None:
    turns = Turns()
    turns.order(CARDS, 0.0)
    turns.done("a", 0.0, 0.2)
    assert turns.order(CARDS, 1.0) == ["b", "c", "a"]


def test_a_card_that_left_is_forgotten() -> None:
    turns = Turns()
    turns.order(CARDS, 0.0)
    turns.done("a", 0.0, 0.5)
    turns.order(["b", "c"], 1.0)
    assert turns.order(CARDS, 2.0)[0] == "a"


def test_a_slow_card_hides_no_other(fake_nvml: nvml.State) -> None:
    state = nvml.State(fake_nvml.path, "h100", count=3)
    rig = Rig(state)
    rig.read()
    state.latency(30_000, device=0)
    rig.read(slow=False)
    said = [event.text for event in rig.events()]
    assert [f"(limit {SLOW_SECONDS:g} s): it is read less often" in text for text in said] == [True]
    before = len(rig.last.samples[0].samples)
    resting = rig.read(slow=False)
    assert len(resting) == before == 3
    assert [set(absent(sample).values()) >= {"error"} for sample in resting] == [True, False, False]
    rig.at += 300.0
    reading = rig.plugin.read(FAST, time.monotonic() + 0.05)
    assert [sample.HasField("power_watts") for sample in reading.samples[0].samples][1:] == [True, True], "it is not read before them"
    state.latency(0, device=0)
    for _ in range(3):
        back = rig.read(slow=False, seconds=60.0)
    assert all(sample.HasField("power_watts") for sample in back)
    assert "answers quickly again" in rig.events()[-1].text
