"""Understands one line of the kernel log that NVIDIA's drivers wrote: any text goes in, a typed fact or None comes out, nothing raises.

The shapes are those of the open kernel modules (krcReportXid and its neighbours), of older drivers without `PCI:` and of lines that
name a MIG instance. A line counts only from its beginning: a process that has such words in its name forges nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from schemas.identity import normal_bdf

MOST_CHARS: Final = 1024
"""A longer line is cut: printk's own records are no longer (LOG_LINE_MAX)."""

_PID_MAX: Final = 1 << 22  # PID_MAX_LIMIT of a 64-bit kernel
_COMM_MAX: Final = 15  # TASK_COMM_LEN without its end
_BDF: Final = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?"
_START: Final = r"(?:\[ *[0-9.]+\] ?)?(?:kernel: ?)?(?:\[ *[0-9.]+\] ?)?"


def _line(pattern: str) -> re.Pattern[str]:
    return re.compile(_START + pattern, re.DOTALL)


_XID_HEAD: Final = _line(
    rf"NVRM: Xid \((?:PCI:)?(?P<bdf>{_BDF})(?: GPU-I:(?P<gi>[0-9]{{1,4}}))?(?: GPU-CI:(?P<ci>[0-9]{{1,4}}))?\): "
    r"(?P<code>[0-9]{1,6})\s*$"
)
_SXID: Final = _line(
    rf"nvidia-nvswitch(?P<switch>[0-9]{{1,4}}): SXid \((?:PCI:)?(?P<bdf>{_BDF})\): (?P<code>[0-9]{{1,6}}),\s*(?P<rest>.*)$"
)
_SXID_WORD: Final = re.compile(r"(?P<word>Fatal|Non-?fatal)(?:,\s*|\s+)", re.IGNORECASE)
_SXID_MORE: Final = re.compile(r"(?:Severity [0-9]|Data \{)")
_SXID_LINK: Final = re.compile(r"Link (?P<link>[0-9]{1,4})\b")
_GPU_AT: Final = _line(rf"NVRM: GPU at (?:PCI:)?(?P<bdf>{_BDF}): (?P<uuid>GPU-[0-9A-Fa-f-]{{8,64}})")
_SERIAL: Final = _line(r"NVRM: GPU Board Serial Number: (?P<serial>[0-9A-Za-z-]{1,64})")
_FALLEN: Final = _line(rf"NVRM: GPU (?P<bdf>{_BDF}): GPU has fallen off the bus")
_PROBE: Final = _line(rf"NVRM: The NVIDIA GPU (?P<bdf>{_BDF})")
_PROBE_END: Final = _line(r"NVRM: (?:.*)fallen off the bus and is not responding to commands")
_REFUSED: Final = _line(r"NVRM: .*\[?NV_ERR_(?P<why>RESET_REQUIRED|GPU_IS_LOST)\b")
_PEERMEM: Final = re.compile(_START + r"(?:\S{1,32} )?\S*nv_get_p2p_free_callback:[0-9]+\s+ERROR detected invalid context", re.DOTALL)
_LOADING: Final = _line(
    r"NVRM: loading NVIDIA UNIX .*?Kernel Module\D*?(?:x86_64|aarch64)?\s+(?P<version>[0-9]{2,4}\.[0-9]{1,4}(?:\.[0-9]{1,4})?)\b"
)

_PID: Final = re.compile(r"pid=(?P<pid>'?<unknown>'?|[0-9]{1,10})(?:,\s*|$)")
_PLAIN: Final = re.compile(r"pid=([0-9]{1,7}), name=([^,<\s]{1,15}), (\S.*\S)$")
"""The common form, whose name holds neither comma nor blank."""

_TEXT_BEGINS: Final = re.compile(
    r"(?:Ch(?:annel)? [0-9a-f]|channel |Graphics |GPU |MMU |An |NVLink|Row |Contained|Uncontained|Timeout |GSP |ESR |errorString|Class |"
    r"[A-Z][A-Z0-9_/]+\s+(?:Fatal|Non)|[0-9a-f]{4,}[( ])"
)
"""How the driver's own texts begin; none of it stands after a comma within such a text."""


class Xid(NamedTuple):
    """An error of a GPU. `pid` is the host's; instance ids are of MIG. `text` is what follows pid and name."""

    bdf: str
    code: int
    gpu_instance: int | None = None
    compute_instance: int | None = None
    pid: int | None = None
    process: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class SXid:
    """An error of an NVSwitch. `fatal` None: the line does not say how bad."""

    bdf: str
    switch: int
    code: int
    fatal: bool | None
    link: int | None
    text: str


@dataclass(frozen=True, slots=True)
class SXidMore:
    """A further line of the SXid before it, no new event."""

    bdf: str
    code: int
    text: str


@dataclass(frozen=True, slots=True)
class Identity:
    """Which card has this PCI address."""

    bdf: str
    uuid: str


@dataclass(frozen=True, slots=True)
class Serial:
    """Board serial of the card that was named just before."""

    serial: str


@dataclass(frozen=True, slots=True)
class Fallen:
    """A card fell off the bus, said without an Xid."""

    bdf: str


@dataclass(frozen=True, slots=True)
class ProbeBegun:
    """First of the three lines about a card that could not be probed; ProbeFailed ends them."""

    bdf: str


@dataclass(frozen=True, slots=True)
class ProbeFailed:
    """The card of the ProbeBegun before it fell off the bus."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The driver refused a call: `why` is RESET_REQUIRED or GPU_IS_LOST; the line names no card."""

    why: str
    text: str


@dataclass(frozen=True, slots=True)
class Peermem:
    """The peer memory module met a context that is gone."""

    text: str


@dataclass(frozen=True, slots=True)
class Loading:
    """The driver is being loaded."""

    version: str


Fact = Xid | SXid | SXidMore | Identity | Serial | Fallen | ProbeBegun | ProbeFailed | Refused | Peermem | Loading


def parse(line: str) -> Fact | None:
    """What the line says, None where it is none of ours."""
    line = line[:MOST_CHARS]
    for word, read in _READERS:
        if word in line:
            fact = read(line)
            if fact is not None:
                return fact
    return None


def _xid(line: str) -> Fact | None:
    end = line.find(",", line.find("): "))
    head, rest = (line, "") if end < 0 else (line[:end], line[end + 1 :].lstrip())
    found = _head(head)
    return None if found is None else Xid(*found, *_process(rest))


@lru_cache(maxsize=256)
def _head(head: str) -> tuple[str, int, int | None, int | None] | None:
    """Address, number and instances: the same in each line of a storm."""
    match = _XID_HEAD.match(head)
    if match is None:
        return None
    gi, ci = match["gi"], match["ci"]
    return normal_bdf(match["bdf"]), int(match["code"]), None if gi is None else int(gi), None if ci is None else int(ci)


def _process(rest: str) -> tuple[int | None, str, str]:
    """pid, name and text of what follows the number. A name may hold `, `: it ends before the last thing that looks like a text."""
    plain = _PLAIN.match(rest)
    if plain is not None:
        said, name, text = plain.groups()
        number = int(said)
        if number <= _PID_MAX and text.find(", ", 0, _COMM_MAX) < 0:
            return number or None, name, text
    rest = rest.strip()
    found = _PID.match(rest)
    pid = None
    if found is not None:
        said = found["pid"]
        if said.isdigit():
            number = int(said)
            pid = number if 0 < number <= _PID_MAX else None
        rest = rest[found.end() :]
    if not rest.startswith("name="):
        return pid, "", rest
    rest = rest[len("name=") :]
    first = end = rest.find(", ")
    if first < 0:
        return pid, _named(rest), ""
    best = -1
    while 0 <= end <= _COMM_MAX and not rest.startswith("<unknown>"):
        if _TEXT_BEGINS.match(rest, end + 2):
            best = end
        end = rest.find(", ", end + 2)
    end = best if best >= 0 else first
    return pid, _named(rest[:end]), rest[end + 2 :].strip()


def _named(name: str) -> str:
    name = name.strip()
    return "" if name.strip("'") == "<unknown>" else name


def _sxid(line: str) -> Fact | None:
    match = _SXID.match(line)
    if match is None:
        return None
    bdf, code, rest = normal_bdf(match["bdf"]), int(match["code"]), match["rest"].strip()
    if _SXID_MORE.match(rest):
        return SXidMore(bdf, code, rest)
    word = _SXID_WORD.match(rest)
    fatal = None
    if word is not None:
        fatal = word["word"].lower() == "fatal"
        rest = rest[word.end() :]
    link = _SXID_LINK.match(rest)
    return SXid(bdf, int(match["switch"]), code, fatal, None if link is None else int(link["link"]), rest)


def _identity(line: str) -> Fact | None:
    match = _GPU_AT.match(line)
    return None if match is None else Identity(normal_bdf(match["bdf"]), match["uuid"])


def _serial(line: str) -> Fact | None:
    match = _SERIAL.match(line)
    return None if match is None else Serial(match["serial"])


def _fallen(line: str) -> Fact | None:
    match = _FALLEN.match(line)
    if match is not None:
        return Fallen(normal_bdf(match["bdf"]))
    whole = _PROBE.match(line)
    if _PROBE_END.match(line) is None:
        return None
    return ProbeFailed() if whole is None else Fallen(normal_bdf(whole["bdf"]))


def _probe(line: str) -> Fact | None:
    match = _PROBE.match(line)
    return None if match is None else ProbeBegun(normal_bdf(match["bdf"]))


def _refused(line: str) -> Fact | None:
    match = _REFUSED.match(line)
    return None if match is None else Refused(match["why"], line[line.index("NVRM: ") + 6 :].strip())


def _peermem(line: str) -> Fact | None:
    match = _PEERMEM.match(line)
    return None if match is None else Peermem(line[line.index("nv_get_p2p_free_callback") :].strip())


def _loading(line: str) -> Fact | None:
    match = _LOADING.match(line)
    return None if match is None else Loading(match["version"])


_READERS: Final[tuple[tuple[str, Callable[[str], Fact | None]], ...]] = (
    ("NVRM: Xid (", _xid),
    (": SXid (", _sxid),
    ("NVRM: GPU at ", _identity),
    ("NVRM: GPU Board Serial", _serial),
    ("fallen off the bus", _fallen),
    ("NVRM: The NVIDIA GPU ", _probe),
    ("NV_ERR_", _refused),
    ("nv_get_p2p_free_callback", _peermem),
    ("NVRM: loading NVIDIA", _loading),
)
"""A literal that the line must hold, so that most lines cost no pattern, and who reads it."""
