"""Grouping: many lines are one event with a count, symptoms stand under their cause in both orders, batches make no difference."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.nvidia.xid import keep
from collectors.nvidia.xid.group import MOST_GROUPS, MOST_OF_DEVICE, Groups, Item, Windows, step
from collectors.nvidia.xid.translate import Reader
from collectors.nvidia.xid.verdict import Override
from schemas.flow import Tick
from schemas.telemetry import v1
from tests.unit.collectors.nvidia.xid.given import ORIGIN, action, at, grouped, items, kind, newest, severity, xid

RECOVERY = "GPU recovery action changed from 0x0 (None) to {} (whatever)"
REMAP = "Row Remapper: New row marked for remapping, reset gpu to activate."


def links(events: Sequence[v1.DeviceEvent]) -> dict[int, int | None]:
    """Which code follows from which, by the newest versions."""
    codes = {event.id: event.code for event in events}
    return {event.code: codes.get(event.caused_by) for event in newest(events)}


def test_an_error_is_sent_at_first_sight() -> None:
    (event,) = grouped((0, xid(79, "GPU has fallen off the bus.")))
    assert (kind(event), event.code, event.count, event.bdf, severity(event), action(event)) == (
        "xid",
        79,
        1,
        "0000:3b:00.0",
        "critical",
        "reboot_node",
    )
    assert (event.process_id, event.process_name, event.mnemonic) == (1234, "python", "ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS")
    assert (event.at_ns, event.first_at_ns, event.last_at_ns, event.boot_id) == (at(0), at(0), at(0), "boot-1")
    assert event.text == "The GPU does not answer on the PCIe bus any more. (GPU has fallen off the bus.)"
    assert v1.EventClass.Name(event.event_class) == "EVENT_CLASS_HARDWARE"


def test_a_symptom_waits_for_its_cause_and_is_sent_without_one() -> None:
    assert grouped((0, xid(45)), 1.9) == []
    assert [(e.code, e.caused_by) for e in grouped((0, xid(45)), 2)] == [(45, "")]


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ([(0, xid(74)), (1, xid(45))], {74: None, 45: 74}),
        ([(0, xid(45)), (1, xid(74))], {45: 74, 74: None}),
        ([(0, xid(45)), 5, (20, xid(74))], {45: 74, 74: None}),
        ([(0, xid(45)), 5, (40, xid(74))], {45: None, 74: None}),
        ([(0, xid(74)), (40, xid(45)), 50], {74: None, 45: None}),
        ([(0, xid(74)), (1, xid(45, bdf="0000:9b:00")), 5], {74: None, 45: None}),
        ([(0, xid(48)), (1, xid(94)), (2, xid(95))], {48: None, 94: 48, 95: 48}),
        ([(0, xid(94)), (1, xid(48))], {94: 48, 48: None}),
        ([(0, xid(94)), 5], {94: None}),
        ([(0, xid(31)), (0, xid(31)), (1, xid(45))], {31: None, 45: 31}),
        ([(0, xid(63, REMAP)), (1, xid(45)), 5], {63: None, 45: None}),
        ([(0, xid(45)), (1, xid(95)), (2, xid(48))], {45: 48, 95: 48, 48: None}),
        ([(0, xid(13)), (0, xid(149)), (1, xid(45, "Ch 00000001 caused by previous Xid 13"))], {13: None, 149: None, 45: 13}),
        ([(0, xid(48)), (1, xid(171)), (1, xid(154, RECOVERY.format("0x1")))], {48: None, 171: 48, 154: 48}),
    ],
    ids=[
        "cause_first", "symptom_first", "long_after", "too_long_after", "too_late", "another_card",
        "dbe_first", "dbe_after", "contained_alone",
        "application", "informational_causes_nothing", "chain", "named", "detail",
    ],
)  # fmt: skip
def test_symptoms_stand_under_their_cause(lines: list[tuple[float, str] | float], wanted: dict[int, int | None]) -> None:
    assert links(grouped(*lines)) == wanted


def test_a_symptom_is_of_the_class_that_follows_another() -> None:
    found = {event.code: event for event in newest(grouped((0, xid(48)), (1, xid(95))))}
    assert v1.EventClass.Name(found[95].event_class) == "EVENT_CLASS_FOLLOWS_ANOTHER"
    assert v1.EventClass.Name(found[48].event_class) == "EVENT_CLASS_HARDWARE"


def test_of_two_causes_the_one_in_the_same_instance_is_likelier() -> None:
    found = newest(grouped((0, xid(79)), (0, xid(31, gi=" GPU-I:05")), (1, xid(45, gi=" GPU-I:05")), (1, xid(45, gi=" GPU-I:06"))))
    codes = {event.id: event.code for event in found}
    assert [(e.gpu_instance_id, codes[e.caused_by]) for e in found if e.code == 45] == [(5, 31), (6, 79)]


def test_an_xid_154_gives_its_action_to_the_error_that_caused_it() -> None:
    found = newest(grouped((0, xid(94)), (3, xid(154, RECOVERY.format("0x2")))))
    assert [(e.code, action(e), severity(e)) for e in found] == [(94, "reboot_node", "critical"), (154, "reboot_node", "critical")]
    assert found[1].caused_by == found[0].id
    assert found[0].details["action_raised_by"] == found[1].id
    assert "quiet_seconds" not in found[0].details


def test_a_weaker_action_lowers_nothing() -> None:
    found = newest(grouped((0, xid(79)), (1, xid(154, RECOVERY.format("0x1")))))
    assert [(e.code, action(e)) for e in found] == [(79, "reboot_node"), (154, "reset_device")]


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("0x1", ("reset_device", "critical")),
        ("0x3", ("drain_p2p", "critical")),
        ("0x4", ("drain_and_reset", "warning")),
        ("0x5", ("restart_fabric", "critical")),
        ("0x6", ("reset_device", "critical")),
        ("0x7", ("reboot_node", "critical")),
        ("0x99", ("contact_support", "critical")),
    ],
)
def test_an_xid_154_alone_speaks_for_itself(code: str, wanted: tuple[str, str]) -> None:
    (event,) = grouped((0, xid(154, RECOVERY.format(code))), 3)
    assert (action(event), severity(event)) == wanted


def test_an_xid_154_to_none_ends_what_was_said_of_the_card() -> None:
    events = grouped(
        (0, xid(95)), (3, xid(95)), (60, xid(154, "GPU recovery action changed from 0x1 (GPU Reset) to 0x0 (None)")), (70, xid(95)), 80
    )
    assert [(kind(e), e.code, e.count, e.bdf) for e in newest(events)] == [
        ("xid", 95, 2, "0000:3b:00.0"),
        ("recovered", 154, 1, "0000:3b:00.0"),
        ("xid", 95, 1, "0000:3b:00.0"),
    ]


def test_rows_being_replaced_change_what_a_double_bit_error_asks_for() -> None:
    found = newest(grouped((0, xid(48)), (1, xid(63, REMAP))))
    assert [(e.code, action(e), severity(e)) for e in found] == [(48, "drain_and_reset", "critical"), (63, "none", "info")]


def test_the_count_grows_under_one_id_every_ten_seconds_and_at_the_end() -> None:
    events = grouped(*[(s, xid(13)) for s in range(25)], 400)
    assert [(e.count, e.first_at_ns, e.last_at_ns) for e in events] == [
        (1, at(0), at(0)), (10, at(0), at(9)), (20, at(0), at(19)), (25, at(0), at(24)),
    ]  # fmt: skip
    assert len({e.id for e in events}) == 1


def test_a_long_silence_and_an_hour_end_an_event() -> None:
    assert [e.count for e in newest(grouped((0, xid(13)), (299, xid(13)), (600, xid(13)), 1000))] == [2, 1]
    assert [e.count for e in newest(grouped(*[(s, xid(13)) for s in range(0, 4000, 200)], 9999))] == [19, 1]


def test_links_and_instances_are_told_apart() -> None:
    one, two = "NVLink: fatal error detected on link 3(0x1, 0x0)", "NVLink: fatal error detected on link 4(0x1, 0x0)"
    assert [e.details["link"] for e in newest(grouped((0, xid(74, one)), (0, xid(74, two)), (1, xid(74, one))))] == ["3", "4"]
    assert len(newest(grouped((0, xid(31, gi=" GPU-I:01")), (0, xid(31, gi=" GPU-I:02"))))) == 2


def test_processes_are_remembered_up_to_a_bound() -> None:
    lines = [(i / 10, f"NVRM: Xid (PCI:0000:3b:00): 43, pid={100 + i}, name=p, Ch 00000008") for i in range(20)]
    (event,) = newest(grouped(*lines, 30))
    assert (event.process_id, event.count) == (100, 20)
    assert event.details["process_ids"] == "100,101,102,103,104,105,106,107"


def test_a_card_is_named_by_the_line_beside() -> None:
    card = "GPU-12345678-aaaa-bbbb-cccc-1234567890ab"
    lines = [(0, f"NVRM: GPU at PCI:0000:3b:00: {card}"), (0, "NVRM: GPU Board Serial Number: 1650522003820"), (0, xid(79))]
    (event,) = grouped(*lines)
    assert (event.uid, event.details["board_serial"]) == (f"nvidia:{card}", "1650522003820")


def test_a_fall_off_the_bus_stands_under_its_xid() -> None:
    line = "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus."
    for lines in ([(0, xid(79)), (0, line)], [(0, line), (1, xid(79))]):
        found = {kind(e): e for e in newest(grouped(*lines))}
        assert found["lost"].caused_by == found["xid"].id


def test_a_line_without_a_card_stands_under_the_card_in_trouble() -> None:
    line = "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062)"
    found = {kind(e): e for e in newest(grouped((0, xid(79)), *[(1 + i / 100, line) for i in range(50)], 30))}
    assert [(e.count, e.caused_by) for e in found.values()] == [(1, ""), (50, found["xid"].id)]
    (alone,) = newest(grouped((0, line), 3))
    assert (severity(alone), action(alone), alone.bdf, alone.HasField("code")) == ("critical", "reset_device", "", False)


def test_a_reload_of_the_driver_ends_everything() -> None:
    events = grouped((0, xid(13)), (5, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27"), (6, xid(13)))
    assert [(kind(e), e.uid) for e in newest(events)] == [("xid", ""), ("driver_reloaded", ""), ("xid", "")]


def test_the_site_has_the_last_word() -> None:
    override = {13: Override.model_validate({"severity": "critical", "class": "hardware", "action": "reset_device"})}
    (event,) = grouped((0, xid(13)), overrides=override)
    assert (severity(event), action(event), v1.EventClass.Name(event.event_class)) == ("critical", "reset_device", "EVENT_CLASS_HARDWARE")


def test_what_is_shown_cannot_hide_or_break_anything() -> None:
    (event,) = grouped((0, "NVRM: Xid (PCI:0000:3b:00): 13, pid=5, name=a\u202eb\ud800\x1b[31m, Graphics " + "x" * 900))
    assert event.process_name == "a\\u202eb\\ud800\\x1b[31m"
    assert len(event.text) == 512
    assert v1.DeviceEvent.FromString(event.SerializeToString()) == event


def test_memory_stays_bounded_whatever_is_logged() -> None:
    reader, state = Reader(), Groups(ORIGIN)
    many = [(i / 1000, xid(144, f"SAW_MVB Fatal XC0 i0 Link {i % 900} (0x1 0x2)")) for i in range(300)]
    more = [(1 + i / 1000, xid(500 + i, bdf=f"0000:{i % 256:02x}:00")) for i in range(1500)]
    step(state, items(*many, reader=reader))
    assert len(state.open) == MOST_OF_DEVICE + 1
    assert state.folded == 300 - MOST_OF_DEVICE
    step(state, items(*more, reader=reader))
    assert len(state.open) == MOST_GROUPS


def test_a_clock_set_back_holds_nothing_up() -> None:
    state = Groups(ORIGIN)
    step(state, items((7200, xid(13)), 7201))
    _, events = step(state, items((10, xid(45)), 10, 20))
    assert [e.code for e in events] == [45]


LINES = st.sampled_from(
    (
        *(xid(code, bdf=bdf) for code in (13, 31, 45, 48, 63, 94, 95, 79) for bdf in ("0000:3b:00", "0000:9b:00")),
        *(xid(154, RECOVERY.format(code)) for code in ("0x0", "0x1", "0x2")),
        xid(154, "GPU recovery action changed from 0x2 (x) to 0x0 (None)"),
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27",
        "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
        "NVRM: Assertion failed [NV_ERR_GPU_IS_LOST]",
        "NVRM: GPU at PCI:0000:3b:00: GPU-12345678-aaaa-bbbb-cccc-1234567890ab",
    )
)
STORY = st.lists(st.one_of(st.tuples(st.floats(0, 20), LINES), st.floats(0, 400)), max_size=30)


def story(drawn: list[tuple[float, str] | float]) -> list[Item]:
    now, made = 0.0, []
    for piece in drawn:
        now += 1e-5 + (piece if isinstance(piece, float) else piece[0])  # no two lines of a kernel have one place
        made.append(now if isinstance(piece, float) else (now, piece[1]))
    return items(*made)


@given(STORY, st.integers(0, 30))
def test_batches_make_no_difference(drawn: list[tuple[float, str] | float], cut: int) -> None:
    lines = story(drawn)
    whole, parts = Groups(ORIGIN), Groups(ORIGIN)
    wanted = step(whole, lines)[1]
    found = step(parts, lines[:cut])[1] + step(parts, lines[cut:])[1]
    assert found == wanted
    assert whole == parts


@given(STORY, st.integers(0, 30))
def test_a_restart_makes_no_difference(drawn: list[tuple[float, str] | float], cut: int) -> None:
    lines = story(drawn)
    end: list[Item] = [Tick(at(10**6))]
    wanted = step(Groups(ORIGIN), lines + end)[1]
    before, after = Groups(ORIGIN), Groups(ORIGIN, Windows())
    found = step(before, lines[:cut])[1]
    keep.restore(after, json.loads(json.dumps(keep.dump(before))))
    found += step(after, lines[cut:] + end)[1]
    assert {e.id: (e.count, e.caused_by, e.action) for e in found} == {e.id: (e.count, e.caused_by, e.action) for e in wanted}


@given(STORY)
def test_every_line_is_counted_once(drawn: list[tuple[float, str] | float]) -> None:
    lines = [*story(drawn), Tick(at(10**6))]
    events = newest(step(Groups(ORIGIN), lines)[1])
    assert sum(e.count for e in events) == sum(1 for item in lines if hasattr(item, "place"))
    ids = {e.id for e in events}
    assert all(not e.caused_by or (e.caused_by in ids and e.caused_by != e.id) for e in events)
