"""The built-in rules about what a card says of its own health: each fires on the card's word and clears with it."""

from __future__ import annotations

import pytest

from schemas.telemetry import v1
from streams.operators.detect import events
from streams.rules import load_rules
from tests.unit.streams.detect.given import TIMES, at, batch, run, said, sample, state

RULES = {rule.name: rule for rule in load_rules()}


@pytest.mark.parametrize(
    ("name", "metric", "good", "bad", "words"),
    [
        ("ecc_sram_threshold", "ecc_sram_threshold_exceeded", False, True, "exchange the board"),
        ("row_remap_exhausted", "remapped_row_banks_exhausted", 0, 2, "2 memory banks without a spare row"),
        ("page_retirement_pending", "retired_pages_pending", False, True, "restart the driver"),
        ("recovery_wanted", "recovery_action", 0, 4, "asks to be recovered: drain and reset"),
    ],
)
def test_it_fires_and_clears_with_the_cards_word(name: str, metric: str, good: float, bad: float, words: str) -> None:
    found = run(state(RULES[name]), *[batch(s, sample("v:1", None, **{metric: value})) for s, value in enumerate([good, bad, bad, good])])
    assert said(found) == [(1, name, True), (3, name, False)]
    assert words in found[0].summary


def missing(seconds: float, kind: str, uid: str = "") -> v1.DeviceEvent:
    return v1.DeviceEvent(
        cluster="c1",
        node="n1",
        uid=uid,
        source="nvidia",
        kind=f"DEVICE_EVENT_KIND_{kind}",
        at_ns=at(seconds),
        severity=v1.Severity.SEVERITY_CRITICAL,
        text="a GPU at 0000:3b:00.0 is on the PCI bus",
    )


@pytest.mark.parametrize("uid", ["", "nvidia:GPU-1"])
def test_a_card_that_its_driver_does_not_show_is_missed_until_all_are_shown(uid: str) -> None:
    fresh = events.start([RULES["device_missing"]], TIMES)
    found = events.step(fresh, [missing(0, "MISSING", uid), missing(60, "ADDED")])[1]
    assert said(found) == [(0, "device_missing", True), (60, "device_missing", False)]
    assert "0000:3b:00.0" in found[0].summary
