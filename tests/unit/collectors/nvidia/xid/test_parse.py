"""The parser: every shape of line that NVIDIA's drivers write, and any text that nobody wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.nvidia.xid.parse import (
    Fact,
    Fallen,
    Identity,
    Loading,
    Peermem,
    ProbeBegun,
    ProbeFailed,
    Refused,
    Serial,
    SXid,
    SXidMore,
    Xid,
    parse,
)
from collectors.nvidia.xid.texts import NvLink5, cause, nvlink5, recovery_codes

MMU = "Ch 00000007, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_6 faulted @ 0x7f5a_e7504000."
WARP = "Graphics SM Warp Exception on (GPC 1, TPC 3, SM 0): Out Of Range Address"
NETIR = "NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6 0x00000000 0x1 0x2 0x3 0x4 0x5)"


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (
            "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.",
            Xid("0000:3b:00.0", 79, None, None, 1234, "python", "GPU has fallen off the bus."),
        ),
        ("NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.", Xid("0000:01:00.0", 79, text="GPU has fallen off the bus.")),
        (
            "NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, name=python3, Ch 0000001d",
            Xid("0000:01:00.0", 94, 5, None, 7194, "python3", "Ch 0000001d"),
        ),
        (
            f"NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:00): 31, pid='<unknown>', name=<unknown>, {MMU}",
            Xid("0000:01:00.0", 31, 5, 0, None, "", MMU),
        ),
        ("NVRM: Xid (0000:03:00): 14, Channel 00000001", Xid("0000:03:00.0", 14, text="Channel 00000001")),
        ("NVRM: Xid (PCI:0000:06:00.0): 62, 0b8e(2d3c) 00000000", Xid("0000:06:00.0", 62, text="0b8e(2d3c) 00000000")),
        ("NVRM: Xid (PCI:00000000:06:00): 43", Xid("0000:06:00.0", 43)),
        ("NVRM: Xid (PCI:0000:06:00): 43, pid=77, Ch 00000008", Xid("0000:06:00.0", 43, pid=77, text="Ch 00000008")),
        ("NVRM: Xid (PCI:0000:06:00): 43, pid=77, name=python", Xid("0000:06:00.0", 43, pid=77, process="python")),
        (
            "NVRM: Xid (PCI:0000:06:00): 43, pid=9999999999, name=python, Ch 00000008",
            Xid("0000:06:00.0", 43, process="python", text="Ch 00000008"),
        ),
        (f"[   12.345678] NVRM: Xid (PCI:0018:01:00): 149, {NETIR}", Xid("0018:01:00.0", 149, text=NETIR)),
        (f"kernel: NVRM: Xid (PCI:0018:01:00): 13, {WARP}", Xid("0018:01:00.0", 13, text=WARP)),
    ],
    ids=[
        "pid",
        "no_pid",
        "gpu_instance",
        "compute_instance",
        "legacy",
        "function",
        "bare",
        "no_name",
        "no_text",
        "no_such_pid",
        "dmesg",
        "syslog",
    ],
)
def test_an_xid_of_every_shape(line: str, wanted: Xid) -> None:
    assert parse(line) == wanted


@pytest.mark.parametrize(
    ("rest", "name", "text"),
    [
        ("name=nvc:[driver], Ch 00000008", "nvc:[driver]", "Ch 00000008"),
        ("name=my,proc, Ch 00000008", "my,proc", "Ch 00000008"),
        ("name=a, b, Ch 00000008", "a, b", "Ch 00000008"),
        (f"name=a, b, {WARP}", "a, b", WARP),
        (f"name=x, {MMU}", "x", MMU),
        (
            "name=x, NVLink: fatal error detected on link 14(0x100000, 0x0, 0x0)",
            "x",
            "NVLink: fatal error detected on link 14(0x100000, 0x0, 0x0)",
        ),
        ("name=x, something new, Ch 1 that no driver wrote before", "x", "something new, Ch 1 that no driver wrote before"),
        ("name=two words, Ch 00000008", "two words", "Ch 00000008"),
    ],
    ids=["colon", "comma", "comma_blank", "commas_on_both_sides", "commas_behind", "registers", "unknown_text", "blank"],
)
def test_a_name_may_hold_commas_and_colons(rest: str, name: str, text: str) -> None:
    found = parse(f"NVRM: Xid (PCI:0000:06:00): 31, pid=5, {rest}")
    assert isinstance(found, Xid)
    assert (found.pid, found.process, found.text) == (5, name, text)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (
            "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)",
            SXid("0000:05:00.0", 3, 12028, False, 32, "Link 32 egress non-posted PRIV error (First)"),
        ),
        (
            "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
            SXid("0000:05:00.0", 3, 20034, True, 30, "Link 30 LTSSM Fault Up"),
        ),
        ("nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 10003, Host error", SXid("0000:05:00.0", 0, 10003, None, None, "Host error")),
        (
            "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Severity 1 Engine instance 32 Sub-engine instance 00",
            SXidMore("0000:05:00.0", 12028, "Severity 1 Engine instance 32 Sub-engine instance 00"),
        ),
        (
            "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Data {0x00140004, 0x00000000}",
            SXidMore("0000:05:00.0", 12028, "Data {0x00140004, 0x00000000}"),
        ),
        (
            "NVRM: GPU at PCI:0000:91:00: GPU-12345678-aaaa-bbbb-cccc-1234567890ab",
            Identity("0000:91:00.0", "GPU-12345678-aaaa-bbbb-cccc-1234567890ab"),
        ),
        ("NVRM: GPU Board Serial Number: 1650522003820", Serial("1650522003820")),
        ("NVRM: GPU 0000:91:00.0: GPU has fallen off the bus.", Fallen("0000:91:00.0")),
        ("NVRM: The NVIDIA GPU 0000:18:00.0", ProbeBegun("0000:18:00.0")),
        ("NVRM: (PCI ID: 10de:2901) installed in this system has", None),
        ("NVRM: fallen off the bus and is not responding to commands.", ProbeFailed()),
        (
            "NVRM: The NVIDIA GPU 0000:18:00.0 (PCI ID: 10de:2901) installed in this system has "
            "fallen off the bus and is not responding to commands.",
            Fallen("0000:18:00.0"),
        ),
        (
            "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) @ rpc.c:1",
            Refused(
                "RESET_REQUIRED", "nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) @ rpc.c:1"
            ),
        ),
        (
            "NVRM: nvCheckOkFailedNoLog: Check failed: GPU lost from the bus [NV_ERR_GPU_IS_LOST] (0x0000000F)",
            Refused("GPU_IS_LOST", "nvCheckOkFailedNoLog: Check failed: GPU lost from the bus [NV_ERR_GPU_IS_LOST] (0x0000000F)"),
        ),
        (
            "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing",
            Peermem("nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing"),
        ),
        ("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023", Loading("535.129.03")),
        ("NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build", Loading("550.54.15")),
    ],
)
def test_the_lines_beside_xids(line: str, wanted: Fact | None) -> None:
    assert parse(line) == wanted


@pytest.mark.parametrize(
    "line",
    [
        "",
        "usb 1-1: new high-speed USB device",
        "myprog[12]: NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:06:00): , pid=1",
        "NVRM: Xid (PCI:zz:06:00): 79, x",
        "NVRM: Xid (PCI:0000:06:00): 99999999999999999999, x",
        "NVRM: Xid (PCI:0000:06:00): ٧٩, x",
        "NVRM: nvAssertOkFailedNoLog: Assertion failed: Invalid state [NV_ERR_INVALID_STATE]",
        "nvidia-nvswitch0: NV_WARN_NOTHING_TO_DO",
    ],
    ids=["empty", "other", "forged", "no_number", "no_address", "too_large", "foreign_digits", "another_error", "harmless"],
)
def test_what_is_none_of_ours(line: str) -> None:
    assert parse(line) is None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", (0, 2)),
        ("GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)", (0, 2)),
        ("changed from 0x0 (None) to 0x1 (PF FLR)", (0, 1)),
        ("changed) from 0x1 (GPU Reset to 0x0 (None", (1, 0)),
        ("to 0x4", (None, 4)),
        ("changed from None to Reset", (None, None)),
    ],
)
def test_recovery_actions_are_read_by_their_codes(text: str, wanted: tuple[int | None, int | None]) -> None:
    assert recovery_codes(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (NETIR, NvLink5("NETIR_LINK_EVT", True, 8, 0x004505C6, 0)),
        ("RLW_REMAP Nonfatal XC1 i0 Link -1 (0x00000004 0x00000001)", NvLink5("RLW_REMAP", False, None, 4, 1)),
        ("RLW_REMAP Non-fatal XC1 i0 Link -1 (0x00000004)", NvLink5("RLW_REMAP", False, None, 4, None)),
        ("MSE Degraded Fatal XC0 i0 Link -1 (0x00000000 0xFFFFFFFF)", NvLink5("MSE Degraded", True, None, 0, 0xFFFFFFFF)),
        ("something else", None),
    ],
)
def test_the_parts_of_an_nvlink5_error(text: str, wanted: NvLink5 | None) -> None:
    assert nvlink5(text) == wanted


def test_the_cause_that_a_line_names() -> None:
    assert cause("Ch 00000001 caused by previous Xid 149") == 149
    assert cause("Ch 00000001") is None


PIECES = st.sampled_from(
    (
        *("NVRM: ", "Xid (", "PCI:", "0000:3b:00", ".0", " GPU-I:05", " GPU-CI:00", "): ", "79", "144", ", ", "pid=", "'<unknown>'"),
        *("123", "name=", "nvidia-nvswitch3: ", "SXid (", "Fatal", "Link ", "-1", "0x1f", "(", ")", "fallen off the bus"),
        *("NVRM: GPU at ", "GPU-", "\x00", "é", "\ud800"),
    )
)
TEXT = st.one_of(st.text(max_size=200), st.lists(st.one_of(PIECES, st.text(max_size=4)), max_size=25).map("".join))


@given(TEXT)
def test_no_text_raises_or_gives_a_value_out_of_range(line: str) -> None:
    for text in (line, f"NVRM: Xid (PCI:0000:3b:00): 145, {line}"):
        found = parse(text)
        recovery_codes(text)
        cause(text)
        said = nvlink5(text)
        assert said is None or (0 <= said.intr_info < 2**32 and 0 <= (said.error_status or 0) < 2**32)
        if isinstance(found, Xid):
            assert 0 <= found.code < 10**6
            assert found.pid is None or 0 < found.pid <= 2**22
            assert all(i is None or 0 <= i < 10_000 for i in (found.gpu_instance, found.compute_instance))
        elif isinstance(found, SXid):
            assert 0 <= found.code < 10**6
            assert found.link is None or 0 <= found.link < 10_000
