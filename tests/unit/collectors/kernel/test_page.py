"""The kernel plugin's page says what the code does: its settings, the lines it knows, and the whole catalogue of Xids."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from collectors.kernel.lines import shipped
from collectors.kernel.settings import Kernel
from schemas.xid import catalogue

PAGE = Path(__file__).resolve().parents[4] / "docs" / "guide" / "plugins" / "kernel.md"


def rows(head: str, lines: list[str]) -> str:
    columns = head.count("|") + 1
    return "\n".join([f"| {head} |", f"|{' --- |' * columns}", *(f"| {line} |" for line in lines)])


def settings_table() -> str:
    return rows(
        "setting | default | meaning",
        [
            f"`{name}` | `{field.get_default(call_default_factory=True)}` | {' '.join((field.description or '').split())}".replace(
                "`None`", ""
            )
            for name, field in Kernel.model_fields.items()
        ],
    )


def lines_table() -> str:
    return rows(
        "rule | vendor | on | severity | action | meaning",
        [
            f"`{name}` | {rule.vendor} | {'yes' if rule.enabled else 'no'} | {rule.severity} | `{rule.action}` | {rule.says}"
            for name, rule in shipped().items()
        ],
    )


def table() -> str:
    return rows(
        "Xid | class | severity | action | ends | meaning",
        [
            f"{row.code} | {row.event_class} | {row.severity} | `{row.action}`{' (ours)' * (row.source == 'ours')} | `{row.clears}` | "
            f"{row.says}{' ' + row.note if row.note else ''}"
            for row in catalogue().xids.values()
            if row.used
        ],
    )


def test_the_page_says_what_the_code_does() -> None:
    """Where this fails, put the table that is missing into the page."""
    page = PAGE.read_text(encoding="utf-8")
    for wanted in (settings_table(), lines_table(), table()):
        assert wanted in page


def test_what_the_page_shows_is_accepted() -> None:
    shown = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)]
    settings = [example["collectors"]["plugins"]["kernel"].get("settings", {}) for example in shown]
    assert [sorted(Kernel.model_validate(one).xid_overrides) for one in settings] == [[], [31, 54]]


def test_every_setting_has_its_meaning() -> None:
    assert all(field.description for field in Kernel.model_fields.values())
