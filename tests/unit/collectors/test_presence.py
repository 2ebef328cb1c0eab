"""A device that vanishes, comes back or is new between two readings is told once."""

from __future__ import annotations

from collectors.events import device_event
from collectors.presence import Presence
from schemas.identity import NodeRef
from schemas.telemetry import v1

A, B = NodeRef("c", "a"), NodeRef("c", "b")


def kinds(events: list[v1.DeviceEvent]) -> list[tuple[str, str]]:
    return [(event.uid, v1.DeviceEventKind.Name(event.kind).removeprefix("DEVICE_EVENT_KIND_")) for event in events]


def test_the_first_reading_says_nothing() -> None:
    assert Presence("fake").update(A, ["x", "y"], 1) == []


def test_lost_then_returned_then_a_new_one() -> None:
    presence = Presence("fake")
    presence.update(A, ["x", "y"], 1)
    assert kinds(presence.update(A, ["x"], 2)) == [("y", "LOST")]
    assert kinds(presence.update(A, ["x"], 3)) == []
    assert kinds(presence.update(A, ["x", "y", "z"], 4)) == [("y", "RETURNED"), ("z", "ADDED")]


def test_an_empty_reading_loses_every_device() -> None:
    presence = Presence("fake")
    presence.update(A, ["x", "y"], 1)
    assert kinds(presence.update(A, [], 2)) == [("x", "LOST"), ("y", "LOST")]


def test_nodes_do_not_mix() -> None:
    presence = Presence("fake")
    presence.update(A, ["x"], 1)
    assert presence.update(B, ["y"], 2) == []


def test_what_the_plugin_said_is_not_said_again() -> None:
    presence = Presence("fake")
    presence.update(A, ["x", "y"], 1)
    presence.note(device_event(A, "fake", "lost", 2, "gone", uid="y"))
    assert presence.update(A, ["x"], 2) == []
    assert kinds(presence.update(A, ["x", "y"], 3)) == [("y", "RETURNED")]


def test_a_plugin_that_reports_the_return_itself_is_enough() -> None:
    presence = Presence("fake")
    presence.update(A, ["x"], 1)
    presence.note(device_event(A, "fake", "lost", 2, "gone", uid="x"))
    presence.note(device_event(A, "fake", "returned", 3, "back", uid="x"))
    assert kinds(presence.update(A, [], 4)) == [("x", "LOST")]


def test_a_lost_device_is_critical_and_carries_the_source() -> None:
    presence = Presence("fake")
    presence.update(A, ["x"], 1, simulated=True)
    (event,) = presence.update(A, [], 2, simulated=True)
    assert (event.cluster, event.node, event.source, event.at_ns, event.simulated) == ("c", "a", "fake", 2, True)
    assert event.severity == v1.Severity.SEVERITY_CRITICAL


def test_parts_of_a_device_come_and_go_by_being_cut_anew() -> None:
    presence = Presence("fake")
    presence.update(A, ["card", "old", "kept", "other"], 1, parents={"old": "card", "kept": "card"})
    (event,) = presence.update(A, ["card", "new", "kept", "other"], 2, parents={"new": "card", "kept": "card"})
    assert kinds([event]) == [("card", "RECONFIGURED")]
    assert event.severity == v1.Severity.SEVERITY_INFO
    assert dict(event.details) == {"came": "new", "went": "old"}
    assert presence.update(A, ["card", "new", "kept", "other"], 3) == []


def test_what_the_plugin_cut_anew_itself_is_not_said_again() -> None:
    presence = Presence("fake")
    presence.update(A, ["card", "old"], 1, parents={"old": "card"})
    event = device_event(A, "fake", "reconfigured", 2, "cut anew", uid="card")
    event.details["came"], event.details["went"] = "new newer", "old"
    presence.note(event)
    assert presence.update(A, ["card", "new", "newer"], 2, parents={"new": "card", "newer": "card"}) == []


def test_a_card_that_goes_with_its_parts_is_one_loss_and_one_return() -> None:
    presence = Presence("fake")
    parents = {"part1": "card", "part2": "card", "other part": "other"}
    presence.update(A, ["card", "other", *parents], 1, parents=parents)
    assert kinds(presence.update(A, ["other", "other part"], 2)) == [("card", "LOST")]
    assert kinds(presence.update(A, ["card", "other", *parents], 3, parents=parents)) == [("card", "RETURNED")]
    assert kinds(presence.update(A, ["card", "other", *parents, "card2", "part3"], 4, parents=parents | {"part3": "card2"})) == [
        ("card2", "ADDED")
    ]


def test_who_is_still_missing_after_a_maintenance_is_lost_anew() -> None:
    """A maintenance ends the alert about a lost card; that the card is dead must not go under with it."""
    presence = Presence("fake")
    presence.update(A, ["x", "y", "z"], 1)
    assert kinds(presence.update(A, ["x"], 2)) == [("y", "LOST"), ("z", "LOST")]
    presence.say_again()
    assert kinds(presence.update(A, ["x", "z"], 3)) == [("y", "LOST")]
    assert presence.update(A, ["x", "z"], 4) == []
    assert kinds(presence.update(A, ["x", "y", "z"], 5)) == [("y", "RETURNED")]


def test_who_is_still_missing_after_the_driver_was_loaded_anew_is_lost_anew() -> None:
    presence = Presence("fake")
    presence.update(A, ["x", "y"], 1)
    presence.update(A, ["x"], 2)
    presence.note(device_event(A, "fake", "driver_reloaded", 4, "loaded"))
    assert presence.update(A, ["x"], 3) == [], "it was taken before that was said, which would end it"
    assert kinds(presence.update(A, ["x"], 5)) == [("y", "LOST")]
    assert presence.update(A, ["x"], 6) == []
