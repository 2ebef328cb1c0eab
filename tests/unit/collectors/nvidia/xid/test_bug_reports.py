"""What other tools got wrong about Xids and kernel lines (peers.md D, accelerators.md §23), each with its input and the right answer."""

from __future__ import annotations

import pytest

from schemas.xid import FITTING, catalogue
from tests.unit.collectors.nvidia.xid.given import action, at, grouped, kind, newest, severity, xid


def test_d73_the_same_code_twice_is_seen_twice() -> None:
    """peers.md D6 73 (dcgm-exporter#500, DCGM#235): a gauge shows a code once, and 45 in place of 62."""
    found = newest(grouped((0, xid(62, "0b8e(2d3c)")), (1, xid(45)), (2, xid(62, "0b8e(2d3c)")), 30))
    assert [(e.code, e.count) for e in found] == [(62, 2), (45, 1)]
    assert found[1].caused_by == found[0].id


def test_d74_a_storm_of_45_is_one_symptom() -> None:
    """peers.md D6 74 (NVSentinel#1629, open-gpu-kernel-modules#1150): 168,924 of Xid 45 flagged healthy nodes. Here 20,000 of a cause."""
    lines = [
        (i / 400, f"NVRM: Xid (PCI:0000:3b:00): 45, pid={i % 5}, name=p, Ch {i:08x} caused by previous Xid 149") for i in range(20_000)
    ]
    events = grouped((0, xid(149, "NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6 0x00000000)")), *lines, 400)
    found = newest(events)
    assert [(e.code, e.count, severity(e), action(e)) for e in found] == [
        (149, 1, "critical", "reset_device"),
        (45, 20_000, "info", "none"),
    ]
    assert found[1].caused_by == found[0].id
    assert len(events) < 10


def test_d74_a_burst_of_45_on_a_mid_pack_node_flags_nothing() -> None:
    """peers.md D6 74 (NVSentinel#1748): 11,760 of 45, and none of the ten other errors in the time of any of them."""
    others = [(4_000 * i, xid(43, "Ch 00000008")) for i in range(1, 11)]
    found = newest(grouped(*[(i / 400, xid(45, "Ch 00000001")) for i in range(11_760)], *others, 50_000))
    assert [(e.code, e.count, severity(e), e.caused_by) for e in found if e.code == 45] == [(45, 11_760, "info", "")]
    assert [e.count for e in found if e.code == 43] == [1] * 10
    assert "critical" not in {severity(e) for e in found}


def test_d74_45_alone_is_never_fatal() -> None:
    """peers.md D6 74: 77 healthy nodes in 11 racks were flagged."""
    (event,) = grouped((0, xid(45, "Ch 00000001")), 3)
    assert (severity(event), event.caused_by) == ("info", "")


def test_d57_xid_999_is_a_number_nobody_knows() -> None:
    """peers.md D4 57 (device-plugin#259): Xid=999, taken for an error of the card that has an action."""
    (event,) = grouped((0, xid(999)), 3)
    assert (kind(event), event.code, severity(event), event.mnemonic) == ("xid", 999, "warning", "UNKNOWN")
    assert action(event) not in ("reset_device", "reboot_node", "replace_device")


def test_d76_windows_slide() -> None:
    """peers.md D6 76 (gpud#1287): 12:34:58 and 12:35:00 fell into two windows."""
    minute = 60 - at(0) // 10**9 % 60
    (event,) = newest(grouped((minute - 2, xid(79)), (minute, xid(79)), minute + 400))
    assert (event.count, event.last_at_ns - event.at_ns) == (2, 2 * 10**9)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("GPU recovery action changed from 0x0) None( to 0x2 (Node Reboot Required)", "reboot_node"),
        ("GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)", "reboot_node"),
        ("GPU recovery action changed from 0x0 (None) to 0x1 (PF FLR)", "reset_device"),
        ("GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", "reset_device"),
    ],
)
def test_d77_154_is_read_by_its_code(text: str, wanted: str) -> None:
    """peers.md D6 77 (NVSentinel#1440): `)` before `(` panicked, and R610 has other texts."""
    (event,) = grouped((0, xid(154, text)), 3)
    assert action(event) == wanted


def test_d80_severity_and_action_agree_in_every_row() -> None:
    """peers.md D6 80 (NVSentinel#911, #1826, #1827): fatal with action none; real resets ignored."""
    for row in catalogue().xids.values():
        assert row.severity in FITTING[row.action]
        assert (row.action == "none") == (row.severity == "info" and row.action != "check_application")


def test_d80_145_nonfatal_is_not_fatal() -> None:
    """peers.md D6 80 (NVSentinel#1357): 145 Nonfatal in the line, fatal in DCGM."""
    (event,) = grouped((0, xid(145, "RLW_RSPCOL Nonfatal XC0 i0 Link 3 (0x00000005 0x00000001)")), driver_branch=580)
    assert (severity(event), action(event)) == ("info", "none")


def test_d86_a_fall_off_the_bus_in_three_lines() -> None:
    """peers.md D6 86 (gpud#1209, NVSentinel#155)."""
    lines = (
        "NVRM: The NVIDIA GPU 0000:18:00.0",
        "NVRM: (PCI ID: 10de:2901) installed in this system has",
        "NVRM: fallen off the bus and is not responding to commands.",
        "nvidia: probe of 0000:18:00.0 failed with error -1",
    )
    (event,) = grouped(*[(i / 1e6, line) for i, line in enumerate(lines)], 3)
    assert (kind(event), event.bdf, severity(event), action(event)) == ("lost", "0000:18:00.0", "critical", "reboot_node")


def test_d86_a_fall_off_the_bus_in_one_line() -> None:
    """peers.md D6 86."""
    (event,) = grouped((0, "NVRM: GPU 0000:18:00.0: GPU has fallen off the bus."), 3)
    assert (kind(event), event.bdf) == ("lost", "0000:18:00.0")


def test_d87_one_card_has_one_address() -> None:
    """peers.md D6 87 (gpud#1003): 0000:05:00 and 00000000:05:00.0."""
    lines = [(0, "NVRM: Xid (PCI:0000:05:00): 79, x"), (1, "NVRM: Xid (PCI:00000000:05:00.0): 79, x"), (2, "NVRM: Xid (0000:05:00): 79, x")]
    (event,) = newest(grouped(*lines, 30))
    assert (event.bdf, event.count) == ("0000:05:00.0", 3)


def test_d89_every_row_says_what_ends_it() -> None:
    """peers.md D6 89 (device-plugin#1014, gpud#1072, EKS NMA#266): an Xid 94 cost a card for ever."""
    (event,) = grouped((0, xid(94, "Contained: CE User Channel (0x9). RST: No, D-RST: No")), 3)
    assert (event.details["clears"], event.details["quiet_seconds"], severity(event)) == ("application_end", "3600", "warning")
    (event,) = grouped((0, xid(95)), 3)
    assert event.details["clears"] == "device_reset"


def test_d90_a_loop_of_43_has_its_count() -> None:
    """peers.md D6 90 (EKS NMA#272): a loop of Xid 43 went unhandled."""
    (event,) = newest(grouped(*[(s, f"NVRM: Xid (PCI:0000:3b:00): 43, pid={s}, name=p, Ch 00000008") for s in range(0, 1000, 20)], 2000))
    assert (event.count, kind(event)) == (50, "xid")


def test_a41_a_recovered_card_is_said_to_be_so() -> None:
    """accelerators.md §23 41 (gpud#108): an error that was recovered from kept the card unhealthy."""
    events = grouped((0, xid(95)), (60, xid(154, "GPU recovery action changed from 0x1 (GPU Reset) to 0x0 (None)")))
    assert [kind(e) for e in events] == ["xid", "recovered"]


@pytest.mark.parametrize(("word", "wanted"), [("Fatal", "critical"), ("Nonfatal", "info")])
def test_a41_149_goes_by_its_severity_word(word: str, wanted: str) -> None:
    """accelerators.md §23 41 (gpud#1174)."""
    (event,) = grouped((0, xid(149, f"NETIR_LINK_EVT  {word}   XC0 i0 Link -1 (0x004505c6 0x00000000)")), driver_branch=570)
    assert severity(event) == wanted


@pytest.mark.parametrize(
    "line", ["NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, name=python3, Ch 0000001d", "NVRM: Xid (0000:03:00): 14, Channel 1"]
)
def test_e1_lines_that_gpud_or_nvsentinel_do_not_match(line: str) -> None:
    """peers.md E1: lines with a MIG instance and lines without PCI: are lost by one or both."""
    assert len(grouped((0, line), 3)) == 1


def test_continuations_of_an_sxid_are_no_new_events() -> None:
    """peers.md E1: Severity and Data lines carry the number of the line before."""
    head = "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, "
    rest = (
        "Non-fatal, Link 32 egress non-posted PRIV error (First)",
        "Severity 1 Engine instance 32 Sub-engine instance 00",
        "Data {0x1, 0x0}",
    )
    (event,) = newest(grouped(*[(i / 1e3, head + line) for i, line in enumerate(rest)], 400))
    assert (kind(event), event.count, event.code, severity(event)) == ("sxid", 1, 12028, "info")
    assert (event.uid, event.details["link"], event.details["switch"]) == ("nvidia:n1:0000:05:00.0", "32", "3")
    (fatal,) = grouped((0, head.replace("12028", "20034") + "Fatal, Link 30 LTSSM Fault Up"))
    assert (severity(fatal), action(fatal)) == ("critical", "reset_device")
    (unsaid,) = grouped((0, head + "Link 30 something"))
    assert severity(unsaid) == "warning"


def test_peermem_is_the_application() -> None:
    """peers.md E1: the peer memory module's complaint."""
    (event,) = grouped((0, "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing"))
    assert (kind(event), event.mnemonic, severity(event)) == ("vendor_log", "PEERMEM_INVALID_CONTEXT", "info")
