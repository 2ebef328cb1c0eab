"""The Xid catalogue: complete, consistent with itself, and refusing what is not."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from schemas.xid import FILE, RECOVERY, STRENGTH, catalogue, read

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "xid" / "xid_catalog.csv"
TEXT = FILE.read_text(encoding="utf-8")
IMMEDIATE = {"RESET_GPU": "reset_device", "RESTART_BM": "reboot_node", "RESTART_VM": "restart_vm", "RESTART_APP": "restart_application"}


def test_every_number_up_to_172_is_there() -> None:
    rows = catalogue().xids
    assert sorted(rows) == list(range(1, 173))
    assert all(row.mnemonic and row.says.endswith((".", "all.")) for row in rows.values())


def test_what_the_catalogue_does_not_know_is_no_zero() -> None:
    row = catalogue().row(400)
    assert (row.code, row.mnemonic, row.severity, row.action) == (400, "UNKNOWN", "warning", "contact_support")


def test_the_table_agrees_with_the_published_one() -> None:
    if not SHARED.exists():
        pytest.skip(f"{SHARED.parent} is not here")
    with SHARED.open(encoding="utf-8") as file:
        for published in csv.DictReader(file):
            row = catalogue().row(int(published["code"]))
            assert row.mnemonic == published["mnemonic"].split(" / ")[0]
            assert row.used == (published["description"] != "Unused" or row.code in (14, 108))
            wanted = IMMEDIATE.get(published["nvidia_immediate"])
            assert wanted is None or row.action == wanted, row.code
            if published["nvidia_immediate"] == "IGNORE":
                assert row.action in ("none", "check_application"), row.code
            assert (row.recovery_action_since is not None) == bool(published["xid154_link"])


def test_154_follows_exactly_the_errors_that_send_it() -> None:
    rows = catalogue().xids
    assert rows[154].follows == frozenset(code for code, row in rows.items() if row.recovery_action_since is not None)


def test_symptoms_follow_causes_that_exist() -> None:
    rows = catalogue().xids
    symptoms = {code: row.follows for code, row in rows.items() if row.follows is not None}
    assert {45, 94, 95, 154} <= symptoms.keys()
    assert symptoms[45] == frozenset()
    assert all(code not in follows for code, follows in symptoms.items())
    assert all(cause in rows for follows in symptoms.values() for cause in follows)


def test_every_recovery_action_has_a_strength() -> None:
    assert set(RECOVERY.values()) <= STRENGTH.keys()
    assert STRENGTH["none"] == 0
    assert STRENGTH["reset_device"] < STRENGTH["reboot_node"] < STRENGTH["replace_device"]


def test_a_switch_error_goes_by_its_word() -> None:
    found = {word: catalogue().switch_row(20034, word) for word in ("fatal", "nonfatal", "unsaid")}
    assert {word: row.severity for word, row in found.items()} == {"fatal": "critical", "nonfatal": "info", "unsaid": "warning"}
    assert {row.says for row in found.values()} == {"The link went down or came up without being told to."}
    assert catalogue().switch_row(1, "fatal").says == "An NVSwitch reported an error."


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (
            "action: reboot_node, severity: critical",
            "action: none, severity: critical",
            "Xid 79: severity critical does not fit action none",
        ),
        ("action: reboot_node, severity: critical", "action: pray, severity: critical", "Xid 79: action 'pray' is not known"),
        ("class: hardware, action: reboot_node", "class: hard, action: reboot_node", "Xid 79: class 'hard' is not known"),
        ("class: hardware, action: reboot_node", "class: informational, action: reboot_node", "Xid 79: an informational number cannot ask"),
        ("{application_end: 1, quiet: 24, with_cause: 1}", "{application_end: 1}", "needs quiet_hours"),
    ],
)
def test_a_row_that_contradicts_itself_is_refused(old: str, new: str, wanted: str) -> None:
    assert old in TEXT
    with pytest.raises(ValueError, match=wanted):
        read(TEXT.replace(old, new))
