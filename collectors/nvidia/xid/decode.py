"""Decodes an NVLink 5 error (Xid 144 to 150) by its registers: the layout depends on the driver, the rows are data (nvlink5.yaml)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

import yaml

from collectors.nvidia.xid.texts import NvLink5

FIRST, LAST = 144, 150
_V2_SINCE: Final = 575
"""First driver branch with the second layout of intrInfo."""

_VALUES: Final = frozenset({149, 150})
"""Their errorStatus is a number; that of the others is a set of bits, of which several may be on."""

Advice = Literal["none", "as_xid_154", "reset_device"]
_STRONGER: Final[dict[Advice, int]] = {"none": 0, "as_xid_154": 1, "reset_device": 2}


@dataclass(frozen=True, slots=True)
class Pattern:
    """Holds for a number whose bits under `mask` are `value`."""

    mask: int
    value: int

    def fits(self, number: int) -> bool:
        return number & self.mask == self.value


@dataclass(frozen=True, slots=True)
class Decoded:
    """What the table says of one error. `fatal` is what the severity word should be; `investigate` is empty where nothing is to be done."""

    unit: str
    action: Advice
    fatal: bool
    origin: str
    investigate: str


@dataclass(frozen=True, slots=True)
class _Case:
    status: frozenset[int] | None
    decoded: Decoded


@dataclass(frozen=True, slots=True)
class _Row:
    code: int
    layouts: tuple[Pattern, Pattern]
    strong: tuple[Pattern, Pattern] | None
    cases: tuple[_Case, ...]

    def fits(self, layout: int, intr_info: int) -> bool:
        return self.layouts[layout].fits(intr_info) or (self.strong is not None and self.strong[layout].fits(intr_info))


def pattern(text: str) -> Pattern:
    """From 32 characters, bit 31 first: 0, 1, or - for any."""
    if len(text) != 32 or set(text) - set("01-"):
        raise ValueError(f"{text!r} is not a pattern of 32 bits")
    return Pattern(int("".join("0" if c == "-" else "1" for c in text), 2), int(text.replace("-", "0"), 2))


@cache
def rows() -> tuple[_Row, ...]:
    """The table, read once."""
    raw = yaml.load(
        Path(__file__).with_name("nvlink5.yaml").read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )
    found = []
    for row in raw["rows"]:
        cases = tuple(
            _Case(
                None if case["status"] == "any" else frozenset(case["status"]),
                Decoded(row["unit"], case["action"], case["fatal"], case["origin"], case.get("investigate", "")),
            )
            for case in row["cases"]
        )
        strong = (pattern(row["strong_v1"]), pattern(row["strong_v2"])) if "strong_v1" in row else None
        found.append(_Row(row["xid"], (pattern(row["v1"]), pattern(row["v2"])), strong, cases))
    return tuple(found)


def decode(code: int, said: NvLink5, driver_branch: int | None) -> Decoded | None:
    """What the error asks for; None where the table does not know it.

    `driver_branch` is 550 for 550.54.15. Without it both layouts are tried, and only what they agree on is believed.
    """
    if driver_branch is not None:
        return _decode(code, said, 1 if driver_branch >= _V2_SINCE else 0)
    answers = [found for found in (_decode(code, said, 0), _decode(code, said, 1)) if found is not None]
    return answers[0] if len({(found.action, found.fatal) for found in answers}) == 1 else None


def _decode(code: int, said: NvLink5, layout: int) -> Decoded | None:
    found: list[Decoded] = []
    for row in rows():
        if row.code != code or not row.fits(layout, said.intr_info):
            continue
        strong = row.strong is not None and row.strong[layout].fits(said.intr_info)
        for case in _matching(row, said.error_status):
            decoded = case.decoded
            if strong:
                decoded = Decoded(decoded.unit, "reset_device", True, decoded.origin, decoded.investigate)
            found.append(decoded)
    return max(found, key=lambda decoded: (_STRONGER[decoded.action], decoded.fatal), default=None)


def _matching(row: _Row, status: int | None) -> Iterable[_Case]:
    for case in row.cases:
        if case.status is None or (status is not None and _is_one(row.code, status, case.status)):
            yield case


def _is_one(code: int, status: int, wanted: frozenset[int]) -> bool:
    return status in wanted or (code not in _VALUES and any(status & bit for bit in wanted))
