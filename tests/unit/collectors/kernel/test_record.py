"""Records of the kernel log: kmsg's form and journalctl's JSON, whole, odd and broken."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.kernel.record import Record, of_journal, of_kmsg


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"3,17,5140900,-;NVRM: Xid\n", Record(17, 5140900, 0, 3, "NVRM: Xid")),
        (b"6,339,5140900,-,caller=T12;NET: x\n SUBSYSTEM=pci\n DEVICE=+pci:0000:00:01.0\n", Record(339, 5140900, 0, 6, "NET: x")),
        (b"30,1,2,c;systemd[1]: x\n", Record(1, 2, 3, 6, "systemd[1]: x")),
        (b"4,1,2,-;a\\x0ab \\x5c \\xc3\\xa9 \\xff\n", Record(1, 2, 0, 4, "a\nb \\ é \\xff")),
        (b"4,1,2,-;caf\xc3\xa9 \xff\n", Record(1, 2, 0, 4, "café \\xff")),
        (b"4,1,2,-;\n", Record(1, 2, 0, 4, "")),
        (b"4,1,2,-;a;b,c\n", Record(1, 2, 0, 4, "a;b,c")),
        (b"4,1,2\n", None),
        (b"", None),
        (b"x,1,2,-;y\n", None),
        (b"-4,1,2,-;y\n", None),
    ],
)
def test_a_record_of_kmsg(data: bytes, wanted: Record | None) -> None:
    assert of_kmsg(data) == wanted


ENTRY = {"MESSAGE": "x", "__CURSOR": "c", "_SOURCE_MONOTONIC_TIMESTAMP": "5", "PRIORITY": "4", "SYSLOG_FACILITY": "0"}


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({}, Record(-1, 5, 0, 4, "x")),
        ({"MESSAGE": [78, 255]}, Record(-1, 5, 0, 4, "N\\xff")),
        ({"MESSAGE": ["first", "second"]}, Record(-1, 5, 0, 4, "first")),
        ({"MESSAGE": None}, None),
        ({"MESSAGE": []}, None),
        ({"_SOURCE_MONOTONIC_TIMESTAMP": None, "__MONOTONIC_TIMESTAMP": "7"}, Record(-1, 7, 0, 4, "x")),
        ({"_SOURCE_MONOTONIC_TIMESTAMP": ["6", "7"]}, Record(-1, 6, 0, 4, "x")),
        ({"_SOURCE_MONOTONIC_TIMESTAMP": "x"}, None),
        ({"__CURSOR": None}, None),
        ({"PRIORITY": None, "SYSLOG_FACILITY": None}, Record(-1, 5, 0, 6, "x")),
    ],
)
def test_an_entry_of_the_journal(more: dict[str, object], wanted: Record | None) -> None:
    found = of_journal(json.dumps(ENTRY | more).encode())
    assert found == (None if wanted is None else (wanted, "c"))


@pytest.mark.parametrize("line", [b"", b"{", b"[1]", b"3", b"\xff"])
def test_what_is_no_entry(line: bytes) -> None:
    assert of_journal(line) is None


JSON = st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3), max_leaves=5)


@given(st.binary(max_size=80), st.dictionaries(st.sampled_from(sorted(ENTRY)), JSON))
def test_nothing_raises(data: bytes, entry: dict[str, object]) -> None:
    of_kmsg(data)
    of_kmsg(b"3,1,2,-;" + data)
    of_journal(data)
    of_journal(json.dumps(ENTRY | entry).encode())
