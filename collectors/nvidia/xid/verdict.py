"""Judges an error once: class, action and severity from the catalogue, the decode table, the line itself, and the site's overrides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pydantic import Field, model_validator

from collectors.nvidia.xid import decode, parse, texts
from schemas.section import Section
from schemas.xid import FITTING, RECOVERY, Action, Catalogue, Class, Clears, Row, Severity, Word

SEVERITIES: Final[tuple[Severity, ...]] = ("info", "warning", "critical")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an error means here. `follows` None: a cause by itself; empty: a symptom of any other error of the device.

    `together_with` raises the action where another number comes at about the same time; `carries` is the action that the GPU asks for by
    an Xid 154, and goes to the error that caused it.
    """

    mnemonic: str
    says: str
    event_class: Class
    action: Action
    severity: Severity
    clears: Clears = "quiet"
    quiet_hours: float | None = 24.0
    follows: frozenset[int] | None = None
    together_with: tuple[tuple[int, Action], ...] = ()
    carries: Action | None = None
    details: Mapping[str, str] = field(default_factory=dict)


class Override(Section):
    """What a site thinks of one number; what is not given stays as the catalogue has it."""

    severity: Severity | None = None
    """How bad it is."""

    event_class: Class | None = Field(default=None, alias="class")
    """What it is about: hardware, driver, application, follows_another, informational."""

    action: Action | None = None
    """What is to be done."""

    clears: Clears | None = None
    """What ends it."""

    quiet_hours: float | None = Field(default=None, gt=0)
    """After how many hours without another one it is over."""

    @model_validator(mode="after")
    def _not_empty(self) -> Override:
        if not self.model_fields_set:
            raise ValueError("nothing is overridden; give severity, class, action, clears or quiet_hours")
        return self


def overridden(catalogue: Catalogue, overrides: Mapping[int, Override]) -> dict[int, Row]:
    """The rows that the site changed, by number. Raises ValueError naming the number where severity and action contradict each other."""
    found = {}
    for code, override in overrides.items():
        row = catalogue.row(code)
        changed = {
            key: value
            for key in ("severity", "event_class", "action", "clears", "quiet_hours")
            if (value := getattr(override, key)) is not None
        }
        row = replace(row, **changed, source="site")
        if row.severity != "info" and row.action == "none":
            raise ValueError(f"xid_overrides.{code}: severity {row.severity} with action none tells nobody what to do; give an action too")
        if row.severity == "info" and "info" not in FITTING[row.action]:
            raise ValueError(
                f"xid_overrides.{code}: severity info with action {row.action} would be seen by nobody; give a higher severity"
            )
        found[code] = row
    return found


def of_xid(xid: parse.Xid, row: Row, driver_branch: int | None) -> Verdict:
    """`row` is the catalogue's or the site's. The site's word is final; 154 and NVLink 5 errors are else judged by what the line says."""
    made = _of_row(row)
    if row.source == "site":
        return made
    if xid.code == 154:
        return _of_recovery(xid, made)
    if decode.FIRST <= xid.code <= decode.LAST:
        return _of_nvlink5(xid, made, driver_branch)
    if xid.code == 45 and (named := texts.cause(xid.text)) is not None:
        return replace(made, follows=frozenset({named}), details={"cause_code": str(named)})
    if xid.code == 74 and (link := texts.link(xid.text)) is not None:
        return replace(made, details={"link": str(link)})
    return made


def of_sxid(sxid: parse.SXid, catalogue: Catalogue) -> Verdict:
    word: Word = "unsaid" if sxid.fatal is None else "fatal" if sxid.fatal else "nonfatal"
    details = {"switch": str(sxid.switch), "severity_word": word}
    if sxid.link is not None:
        details["link"] = str(sxid.link)
    return replace(_of_row(catalogue.switch_row(sxid.code, word)), details=details)


FALLEN: Final = Verdict(
    "FALLEN_OFF_THE_BUS",
    "The GPU does not answer on the PCIe bus any more.",
    "hardware",
    "reboot_node",
    "critical",
    "node_reboot",
    None,
    follows=frozenset({79}),
)
REFUSED: Final[Mapping[str, Verdict]] = {
    "RESET_REQUIRED": Verdict(
        "NV_ERR_RESET_REQUIRED",
        "The driver refuses work on a GPU that has to be reset first; the line does not name the GPU.",
        "hardware",
        "reset_device",
        "critical",
        "device_reset",
        None,
        follows=frozenset(),
    ),
    "GPU_IS_LOST": Verdict(
        "NV_ERR_GPU_IS_LOST",
        "The driver refuses work on a GPU that is lost; the line does not name the GPU.",
        "hardware",
        "reboot_node",
        "critical",
        "node_reboot",
        None,
        follows=frozenset(),
    ),
}
PEERMEM: Final = Verdict(
    "PEERMEM_INVALID_CONTEXT",
    "The peer memory module was told to free memory of a context that is gone; its application ended without cleaning up.",
    "application",
    "check_application",
    "info",
    "application_end",
    1.0,
)


def _of_row(row: Row) -> Verdict:
    return Verdict(
        row.mnemonic, row.says, row.event_class, row.action, row.severity, row.clears, row.quiet_hours, row.follows, row.together_with
    )


def _of_recovery(xid: parse.Xid, made: Verdict) -> Verdict:
    _, code = texts.recovery_codes(xid.text)
    if code is None:
        return made
    action = RECOVERY.get(code, "contact_support")
    severity: Severity = "info" if action == "none" else "warning" if action == "drain_and_reset" else "critical"
    return replace(made, action=action, severity=severity, carries=action, details={"recovery_action": f"{code:#x}"})


def _of_nvlink5(xid: parse.Xid, made: Verdict, driver_branch: int | None) -> Verdict:
    """The table's action where the severity word is the one it expects; else the word decides, for it is what the GPU itself said."""
    said = texts.nvlink5(xid.text)
    if said is None:
        return made
    details = {"unit": said.unit, "severity_word": "fatal" if said.fatal else "nonfatal", "intr_info": f"{said.intr_info:#010x}"}
    if said.link is not None:
        details["link"] = str(said.link)
    if said.error_status is not None:
        details["error_status"] = f"{said.error_status:#010x}"
    found = decode.decode(xid.code, said, driver_branch)
    action: Action = "reset_device" if said.fatal else "none"
    if found is not None:
        details |= {"decoded": found.unit, "origin": found.origin} | ({"investigate": found.investigate} if found.investigate else {})
        if found.fatal == said.fatal:
            action = "restart_application" if found.action == "as_xid_154" else found.action
    else:
        details["decoded"] = "unknown"
    severity: Severity = "info" if action == "none" else "warning" if action == "restart_application" else "critical"
    # A fatal error of which the table says that nothing is to be done is a link that its peer took down
    return replace(made, action=action, severity=severity, details=details)
