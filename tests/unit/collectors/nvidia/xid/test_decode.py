"""NVLink 5 errors: the layout by driver, the severity word against the table, and what nobody knows."""

from __future__ import annotations

import pytest

from collectors.nvidia.xid.decode import Decoded, decode, pattern, rows
from collectors.nvidia.xid.texts import NvLink5
from tests.unit.collectors.nvidia.xid.given import action, grouped, severity, xid

V1, V2 = 570, 575


def said(intr_info: int, status: int | None, *, fatal: bool = True) -> NvLink5:
    return NvLink5("UNIT", fatal, None, intr_info, status)


def found(code: int, intr_info: int, status: int | None, driver: int | None) -> tuple[str, str] | None:
    decoded = decode(code, said(intr_info, status), driver)
    return None if decoded is None else (decoded.unit, decoded.action)


@pytest.mark.parametrize(
    ("code", "intr_info", "status", "driver", "wanted"),
    [
        (144, 0b1_00001, 0x2, V1, ("SAW_MVB", "reset_device")),
        (144, 0b1_00001, 0x10, V1, ("SAW_MVB", "reset_device")),
        (144, 0b1_00001, 0x1, V1, ("SAW_MVB", "none")),
        (144, 1, 0x2, V2, ("SAW_MVB", "reset_device")),
        (144, 1, 0x2, V1, None),
        (144, 1, 0x8, V2, ("SAW_MVB", "none")),
        (144, 1, 0x3, V2, ("SAW_MVB", "reset_device")),
        (145, 4, 0x4, V2, ("RLW_REMAP", "as_xid_154")),
        (145, 0b100_00010, 0x8, V1, ("RLW_REMAP", "as_xid_154")),
        (145, 0b110, 0x1, V2, ("RLW_RXPIPE", "none")),
        (145, 0b1000_0110, 0x1, V2, ("RLW_RXPIPE", "reset_device")),
        (145, 0b100_1100_0010, 0x1, V1, ("RLW_RXPIPE", "reset_device")),
        (149, 0x004505C6, 0, V1, ("NETIR_LINK_EVT/NETIR_LINK_DOWN", "reset_device")),
        (149, 0b100110 << 20 | 0b10001, 0, V2, ("NETIR_LINK_EVT/NETIR_LINK_DOWN", "none")),
        (149, 0b10100, 0x3, V2, ("NETIR_MFDE_EVENT", "none")),
        (149, 0b10100, 0x7, V2, ("NETIR_MFDE_EVENT", "reset_device")),
        (150, 0, 0xFFFFFFFF, V2, ("MSE Degraded", "reset_device")),
        (150, 0, 5, V2, None),
        (144, 1, None, V2, None),
        (147, 0b1111111, 1, V2, None),
    ],
)
def test_the_table_by_driver(code: int, intr_info: int, status: int | None, driver: int, wanted: tuple[str, str] | None) -> None:
    assert found(code, intr_info, status, driver) == wanted


def test_without_a_driver_only_what_both_layouts_agree_on_is_believed() -> None:
    assert found(149, 0x004505C6, 0, None) == ("NETIR_LINK_EVT/NETIR_LINK_DOWN", "reset_device")
    assert found(150, 0, 0, None) is not None


def test_the_whole_table_is_there_and_every_row_is_found_by_its_own_pattern() -> None:
    assert sum(len(row.cases) for row in rows()) == 95
    for row in rows():
        for layout, driver in ((0, V1), (1, V2)):
            for case in row.cases:
                status = 0 if case.status is None else max(case.status)
                decoded = decode(row.code, said(row.layouts[layout].value, status), driver)
                assert isinstance(decoded, Decoded)


@pytest.mark.parametrize("text", ["01", "x" * 32, ""])
def test_a_pattern_has_32_bits(text: str) -> None:
    with pytest.raises(ValueError, match="not a pattern of 32 bits"):
        pattern(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SAW_MVB Fatal XC0 i0 Link 08 (0x00000001 0x00000002 0x0)", ("reset_device", "critical", "SAW_MVB")),
        ("SAW_MVB Nonfatal XC0 i0 Link 08 (0x00000001 0x00000004 0x0)", ("none", "info", "SAW_MVB")),
        ("SAW_MVB Nonfatal XC0 i0 Link 08 (0x00000001 0x00000002 0x0)", ("none", "info", "SAW_MVB")),
        ("SAW_MVB Fatal XC0 i0 Link 08 (0x00000001 0x00000004 0x0)", ("reset_device", "critical", "SAW_MVB")),
        ("SAW_MVB Fatal XC0 i0 Link -1 (0x0000007f 0x00000004 0x0)", ("reset_device", "critical", "unknown")),
        ("SAW_MVB Nonfatal XC0 i0 Link -1 (0x0000007f 0x00000004 0x0)", ("none", "info", "unknown")),
        ("a text of another form", ("reset_device", "critical", "")),
    ],
    ids=["fatal", "nonfatal", "word_milder", "word_worse", "unknown_fatal", "unknown_nonfatal", "not_decodable"],
)
def test_the_severity_word_decides_where_the_table_expects_another(text: str, wanted: tuple[str, str, str]) -> None:
    (event,) = grouped((0, xid(144, text)), driver_branch=V2)
    assert (action(event), severity(event), event.details.get("decoded", "")) == wanted


def test_an_error_that_waits_for_an_xid_154() -> None:
    (event,) = grouped((0, xid(145, "RLW_REMAP Nonfatal XC0 i0 Link 08 (0x00000004 0x00000004)")), driver_branch=V2)
    assert (action(event), severity(event), event.details["investigate"]) == ("restart_application", "warning", "link_down_soon")


def test_the_driver_in_the_log_decides_the_layout() -> None:
    line = xid(144, "SAW_MVB Fatal XC0 i0 Link 08 (0x00000021 0x00000002 0x0)")
    loading = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build"
    decoded = [grouped((0, loading.format(v)), (1, line))[-1].details["decoded"] for v in ("570.124.06", "580.65.06")]
    assert decoded == ["SAW_MVB", "unknown"]
