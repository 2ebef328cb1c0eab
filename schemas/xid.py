"""NVIDIA's Xid and SXid numbers as data (xid.yaml): what each means, who has to act, how bad it is, and what ends it.

The table is checked against itself when it is loaded: a severity that does not fit its action is refused, so that nobody is woken for
something that needs nothing, and nothing that needs a reset stays quiet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, get_args

import yaml

Class = Literal["hardware", "driver", "application", "follows_another", "informational"]
Action = Literal[
    "none",
    "restart_application",
    "check_application",
    "reset_device",
    "drain_and_reset",
    "drain_p2p",
    "restart_fabric",
    "update_software",
    "restart_vm",
    "reboot_node",
    "check_hardware",
    "contact_support",
    "replace_device",
]
Severity = Literal["info", "warning", "critical"]
Clears = Literal["application_end", "quiet", "with_cause", "remapped_rows", "device_reset", "node_reboot", "replacement"]
Architecture = Literal["ampere", "hopper", "blackwell", "grace_blackwell"]
Word = Literal["fatal", "nonfatal", "unsaid"]

FILE: Final = Path(__file__).with_name("xid.yaml")

FITTING: Final[Mapping[Action, frozenset[Severity]]] = {
    "none": frozenset({"info"}),
    "check_application": frozenset({"info", "warning"}),
    "restart_application": frozenset({"warning"}),
    "update_software": frozenset({"warning"}),
    "check_hardware": frozenset({"warning", "critical"}),
    "contact_support": frozenset({"warning", "critical"}),
    "restart_fabric": frozenset({"warning", "critical"}),
    "drain_and_reset": frozenset({"warning", "critical"}),  # NVML: the device goes on, with less of it; reset it when its work is done
    "drain_p2p": frozenset({"warning", "critical"}),
    "reset_device": frozenset({"critical"}),
    "restart_vm": frozenset({"critical"}),
    "reboot_node": frozenset({"critical"}),
    "replace_device": frozenset({"critical"}),
}
"""Which severities an action may have: what takes a device away from its users is critical, what needs nobody is information."""

STRENGTH: Final[Mapping[Action, int]] = {action: i for i, action in enumerate(FITTING)}
"""From nothing to the most drastic: of two actions for one error the stronger is recommended."""

RECOVERY: Final[Mapping[int, Action]] = {
    0: "none",
    1: "reset_device",
    2: "reboot_node",
    3: "drain_p2p",
    4: "drain_and_reset",
    5: "restart_fabric",
    6: "reset_device",
    7: "reboot_node",
}
"""NVML's recovery actions, also the codes in an Xid 154; from 5 on (recover the IMEX domain, bus reset, system reboot) they are of the
newest nvml.h."""


@dataclass(frozen=True, slots=True)
class Row:
    """One number. `follows` None: a cause by itself; empty: a symptom of any other error. `quiet_hours` None: time alone does not end it.

    `source` is `nvidia` where the action is NVIDIA's, `ours` where it gives none, `site` after an override.
    """

    code: int
    mnemonic: str
    says: str
    event_class: Class
    action: Action
    severity: Severity
    clears: Clears
    quiet_hours: float | None
    source: str
    used: bool = True
    note: str = ""
    architectures: tuple[Architecture, ...] = get_args(Architecture)
    recovery_action_since: int | None = None
    follows: frozenset[int] | None = None
    together_with: tuple[tuple[int, Action], ...] = ()


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All rows; `row` answers for every number."""

    xids: Mapping[int, Row]
    unknown: Row
    switch: Mapping[Word, Row]
    switch_says: Mapping[int, str]

    def row(self, code: int) -> Row:
        found = self.xids.get(code)
        return replace(self.unknown, code=code) if found is None else found

    def switch_row(self, code: int, word: Word) -> Row:
        """What an NVSwitch error means; `word` is the severity that its line says."""
        return replace(self.switch[word], code=code, says=self.switch_says.get(code, self.switch[word].says))


@cache
def catalogue() -> Catalogue:
    """The built-in table."""
    return read(FILE.read_text(encoding="utf-8"))


def read(text: str) -> Catalogue:
    """A table from YAML; ValueError naming the number where a row is wrong."""
    raw = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    hours: Mapping[str, float] = raw["quiet_hours"]
    xids = {int(code): _row(int(code), row, hours) for code, row in raw["xids"].items()}
    unused = dict(raw["unused"])
    for code, mnemonic in unused.pop("numbers").items():
        xids[int(code)] = _row(int(code), {**unused, "mnemonic": mnemonic}, hours, used=False)
    sxids = raw["sxids"]
    switch: dict[Word, Row] = {
        word: _row(0, {"mnemonic": "", "says": "An NVSwitch reported an error.", "source": "nvidia", **sxids[word]}, hours)
        for word in get_args(Word)
    }
    return Catalogue(dict(sorted(xids.items())), _row(0, raw["unknown"], hours), switch, dict(sxids["numbers"]))


def _row(code: int, raw: Mapping[str, Any], hours: Mapping[str, float], *, used: bool = True) -> Row:
    follows = raw.get("follows")
    made = Row(
        code=code,
        mnemonic=raw["mnemonic"],
        says=raw["says"],
        event_class=_one_of(code, "class", raw["class"], Class),
        action=_one_of(code, "action", raw["action"], Action),
        severity=_one_of(code, "severity", raw["severity"], Severity),
        clears=_one_of(code, "clears", raw["clears"], Clears),
        quiet_hours=raw.get("quiet_hours", hours.get(raw["clears"])),
        source=raw["source"],
        used=used,
        note=raw.get("note", ""),
        architectures=tuple(_one_of(code, "architectures", a, Architecture) for a in raw.get("architectures", get_args(Architecture))),
        recovery_action_since=raw.get("recovery_action_since"),
        follows=None if follows is None else frozenset(() if follows == "any" else follows),
        together_with=tuple((int(c), _one_of(code, "together_with", a, Action)) for c, a in raw.get("together_with", {}).items()),
    )
    if problem := misfit(made):
        raise ValueError(f"Xid {code}: {problem}")
    return made


def misfit(row: Row) -> str:
    """What in a row contradicts itself; empty where nothing does."""
    if row.severity not in FITTING[row.action]:
        return (
            f"severity {row.severity} does not fit action {row.action}: give {' or '.join(sorted(FITTING[row.action]))}, or another action"
        )
    if row.event_class == "informational" and row.action != "none":
        return f"an informational number cannot ask for {row.action}: give class hardware, driver or application, or action none"
    if row.clears in ("application_end", "quiet") and row.quiet_hours is None:
        return f"clears {row.clears} needs quiet_hours"
    return ""


def _one_of(code: int, key: str, value: str, closed: Any) -> Any:
    if value not in get_args(closed):
        raise ValueError(f"Xid {code}: {key} {value!r} is not known; one of: {', '.join(get_args(closed))}")
    return value
