"""Rules for lines of any vendor's driver, as data: a text they hold, a pattern, and what it means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import yaml
from pydantic import Field, field_validator, model_validator

from collectors.kernel.careless import careless
from collectors.nvidia.xid.group import Sighting
from collectors.nvidia.xid.verdict import Verdict
from schemas.identity import normal_bdf
from schemas.section import Section
from schemas.xid import FITTING, Action, Class, Clears, Severity

MOST_CHARS: Final = 512
"""Patterns see no more of a line: what a careless one costs grows with the line's length."""

BDF: Final = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"
_GROUPS: Final = frozenset({"bdf", "index", "code", "pid", "process", "detail"})
_START: Final = re.compile(r"(?:\[ *[0-9.]+\] ?)?(?:kernel: ?)?(?:\[ *[0-9.]+\] ?)?")
_U32: Final = 2**32


class LineRule(Section):
    """One kind of line that a driver writes into the kernel's log, and what it means."""

    vendor: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=32)
    """Whose driver writes it."""

    contains: str = Field(min_length=3, max_length=100)
    """A text that every such line holds."""

    pattern: str = Field(min_length=3, max_length=500)
    """A regular expression, from the line's beginning (a time stamp before it is skipped). `{bdf}` stands for a PCI address, other
    braces are doubled. The named groups bdf, index, code, pid, process and detail are taken over."""

    says: str = Field(min_length=1, max_length=200)
    """One sentence: what it means."""

    event_class: Class = Field(alias="class")
    """What it is about: hardware, driver, application, follows_another, informational."""

    action: Action
    """What is to be done."""

    severity: Severity
    """How bad it is; it has to fit the action."""

    clears: Clears = "quiet"
    """What ends it."""

    quiet_hours: float | None = Field(default=None, gt=0)
    """After how many hours without another one it is over."""

    enabled: bool = True
    """False: kept for who switches it on by `enable`."""

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, text: str) -> str:
        try:
            compiled = re.compile(text.format(bdf=BDF))
        except (re.error, KeyError, ValueError, IndexError) as error:
            raise ValueError(f"not a pattern: {error}; double the braces that are not {{bdf}}") from None
        if unknown := set(compiled.groupindex) - _GROUPS:
            raise ValueError(f"no group {', '.join(sorted(unknown))}; known are: {', '.join(sorted(_GROUPS))}")
        if why := careless(text.format(bdf="")):
            raise ValueError(f"{why}; write it otherwise")
        return text

    @model_validator(mode="after")
    def _fits(self) -> LineRule:
        if self.severity not in FITTING[self.action]:
            raise ValueError(
                f"severity {self.severity} does not fit action {self.action}: give {' or '.join(sorted(FITTING[self.action]))}"
            )
        return self


@dataclass(frozen=True, slots=True)
class _Compiled:
    name: str
    contains: str
    pattern: re.Pattern[str]
    verdict: Verdict


@cache
def shipped() -> Mapping[str, LineRule]:
    """The rules that come with us, by name."""
    raw = yaml.load(
        Path(__file__).with_name("lines.yaml").read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )
    return {name: LineRule.model_validate(rule) for name, rule in raw["rules"].items()}


def chosen(own: Mapping[str, LineRule], enable: Sequence[str], disable: Sequence[str]) -> dict[str, LineRule]:
    """The rules that hold; ValueError where `enable` or `disable` name one that there is not. An own rule replaces ours of its name."""
    known = {**shipped(), **own}
    for key, names in (("enable", enable), ("disable", disable)):
        if unknown := sorted(set(names) - known.keys()):
            raise ValueError(f"{key}: no rule {', '.join(unknown)}; known are: {', '.join(sorted(known))}")
    return {name: rule for name, rule in known.items() if (rule.enabled or name in enable) and name not in disable}


class Lines:
    """The compiled rules; the first that fits a line reads it."""

    def __init__(self, rules: Mapping[str, LineRule]) -> None:
        self._rules = tuple(
            _Compiled(
                name,
                rule.contains,
                re.compile(rule.pattern.format(bdf=BDF)),
                Verdict(
                    name,
                    rule.says,
                    rule.event_class,
                    rule.action,
                    rule.severity,
                    rule.clears,
                    rule.quiet_hours,
                    details={"vendor": rule.vendor},
                ),
            )
            for name, rule in rules.items()
        )

    def read(self, at_ns: int, place: int, line: str) -> Sighting | None:
        """What the line means; None where no rule fits."""
        line = line[:MOST_CHARS]
        for rule in self._rules:
            if rule.contains in line:
                start = _START.match(line)
                match = rule.pattern.match(line, start.end() if start is not None else 0)
                if match is not None:
                    return _sighting(at_ns, place, line, rule, match)
        return None


def _sighting(at_ns: int, place: int, line: str, rule: _Compiled, match: re.Match[str]) -> Sighting:
    found = {name: value for name, value in match.groupdict().items() if value is not None}
    code, pid = _u32(found.get("code")), _u32(found.get("pid"))
    index = found.get("index", "")
    verdict = rule.verdict
    if index:
        verdict = Verdict(
            verdict.mnemonic,
            verdict.says,
            verdict.event_class,
            verdict.action,
            verdict.severity,
            verdict.clears,
            verdict.quiet_hours,
            details={**verdict.details, "index": index},
        )
    key = ("vendor_log", _bdf(found.get("bdf", "")), -1 if code is None else code, f"{rule.name} {index}")
    return Sighting(at_ns, place, key, pid, found.get("process", ""), None, None, found.get("detail", line).strip(), lambda: verdict)


def _u32(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= 10 and int(text) < _U32 else None


def _bdf(text: str) -> str:
    try:
        return normal_bdf(text)
    except ValueError:
        return ""
