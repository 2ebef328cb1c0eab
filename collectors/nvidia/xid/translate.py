"""Turns parsed lines into what the grouping takes in: sightings with their keys, names of cards, and ends of trouble."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from collectors.nvidia.xid import decode, parse, texts, verdict
from collectors.nvidia.xid.group import Ended, Item, Named, Sighting
from schemas.xid import Catalogue, Row, catalogue

NO_CODE: Final = -1


@dataclass(slots=True)
class Reader:
    """Reads lines in order. What a line says may hang on one before it: the card that a probe began with, the driver that was loaded.

    `driver_branch` is 550 for 550.54.15, None where it is not known.
    """

    rows: Mapping[int, Row] = field(default_factory=dict)
    catalogue: Catalogue = field(default_factory=catalogue)
    driver_branch: int | None = None
    probing: str = ""
    named: Named | None = None

    def read(self, at_ns: int, place: int, line: str) -> Item | None:
        """What the line means; None for all lines that are not NVIDIA's, and for companions that say nothing new."""
        fact = parse.parse(line)
        match fact:
            case None:
                return None
            case parse.Xid():
                return self._xid(at_ns, place, fact)
            case parse.SXid():
                made = partial(verdict.of_sxid, fact, self.catalogue)
                link = "" if fact.link is None else str(fact.link)
                return Sighting(at_ns, place, ("sxid", fact.bdf, fact.code, link), None, "", None, None, fact.text, made)
            case parse.Identity(bdf, uuid):
                self.named = Named(bdf, uuid)
                return self.named
            case parse.Serial(serial):
                return None if self.named is None else self.named._replace(serial=serial)
            case parse.ProbeBegun(bdf):
                self.probing = bdf
                return None
            case parse.ProbeFailed():
                bdf, self.probing = self.probing, ""
                return _plain(at_ns, place, "lost", bdf, "", verdict.FALLEN)
            case parse.Fallen(bdf):
                return _plain(at_ns, place, "lost", bdf, "", verdict.FALLEN)
            case parse.Refused(why, text):
                return _plain(at_ns, place, "vendor_log", "", text, verdict.REFUSED[why])
            case parse.Peermem(text):
                return _plain(at_ns, place, "vendor_log", "", text, verdict.PEERMEM)
            case parse.Loading(version):
                return self._loading(at_ns, place, version)
            case parse.SXidMore():
                return None

    def _xid(self, at_ns: int, place: int, xid: parse.Xid) -> Item:
        code = xid.code
        apart = "" if xid.gpu_instance is None else f"{xid.gpu_instance}/{xid.compute_instance}"
        if code == 74:
            apart += f" {texts.link(xid.text)}"
        elif decode.FIRST <= code <= decode.LAST:
            said = texts.nvlink5(xid.text)
            apart += "" if said is None else f" {said.unit} {said.link} {said.fatal}"
        elif code == 154:
            before, now = texts.recovery_codes(xid.text)
            if now == 0 and before:
                return Ended(at_ns, place, xid.bdf, "recovered", code, f"Xid 154: {xid.text}")
            apart += f" {now}"
        row = self.rows.get(code) or self.catalogue.row(code)
        judge = partial(verdict.of_xid, xid, row, self.driver_branch)
        key = ("xid", xid.bdf, code, apart)
        return Sighting(at_ns, place, key, xid.pid, xid.process, xid.gpu_instance, xid.compute_instance, xid.text, judge)

    def _loading(self, at_ns: int, place: int, version: str) -> Item:
        """The first line of a boot says which driver; a later one also that it was loaded anew."""
        self.driver_branch, self.probing, self.named = branch(version), "", None
        return Ended(at_ns, place, "", "driver_reloaded", None, f"the NVIDIA driver {version} was loaded")


def branch(version: str) -> int | None:
    """550 for 550.54.15."""
    first = version.partition(".")[0]
    return int(first) if first.isascii() and first.isdigit() and len(first) <= 4 else None


def _plain(at_ns: int, place: int, kind: str, bdf: str, text: str, made: verdict.Verdict) -> Sighting:
    return Sighting(at_ns, place, (kind, bdf, NO_CODE, made.mnemonic), None, "", None, None, text, lambda: made)
