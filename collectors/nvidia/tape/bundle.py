"""The file that a capture makes: JSON lines under gzip, a head, one line a tick, all of it readable by a person.

Head: what made it (versions), what it leaves out, the plugin's settings. Tick: when, what was due, every call with code and bytes,
/proc/meminfo's two numbers where they were read, and the samples that the plugin made of it.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from collectors.nvidia.tape.calls import Said

FORMAT: Final = 1
QUIET: Final[Mapping[str, Any]] = {
    "processes": False,
    "events": False,
    "pci_check": False,
    "slow_read_seconds": 3600.0,
    "dcgm_endpoint": "",
}
"""Settings of a capture and of its replay: no question that names people's programs or is not the driver's. A bundle comes from anybody:
what it says otherwise is not done, so that nobody makes who replays it fetch an address."""

_MOST_LINE_BYTES: Final = 64 << 20
"""One tick of 16 cards is some 200 KB; a longer line is no bundle of ours."""


class BadBundle(ValueError):
    """The file is no bundle that this release reads; the text says what, where and the remedy."""


@dataclass(frozen=True, slots=True)
class Tick:
    """`at` is the monotonic clock in seconds, `samples` the SampleBatch's JSON with the devices that were made of it."""

    taken_at_ns: int
    at: float
    due: tuple[str, ...]
    said: tuple[Said, ...]
    meminfo: str = ""
    driver_epoch: int = 0
    samples: Mapping[str, Any] = field(default_factory=dict)


def write(file: IO[str], head: Mapping[str, Any]) -> None:
    """The head, which comes first."""
    json.dump({"xpulse_capture": FORMAT, **head}, file, sort_keys=True)
    file.write("\n")


def write_tick(file: IO[str], tick: Tick) -> None:
    said = [[one.key, one.code, one.microseconds, *(out.hex() for out in one.outs)] for one in tick.said]
    json.dump(
        {
            "taken_at_ns": tick.taken_at_ns,
            "at": tick.at,
            "due": list(tick.due),
            "meminfo": tick.meminfo,
            "driver_epoch": tick.driver_epoch,
            "calls": said,
            "samples": tick.samples,
        },
        file,
    )
    file.write("\n")


def read(path: Path) -> tuple[dict[str, Any], list[Tick]]:
    """Head and ticks. Raises BadBundle naming file and line; a capture that was cut short gives the ticks it has."""
    try:
        lines = _lines(path)
        head = next(lines, None)
        if not isinstance(head, dict) or "xpulse_capture" not in head:
            raise BadBundle(f"{path} is no capture: make one with `xpulse capture --vendor nvidia`")
        if head["xpulse_capture"] != FORMAT:
            raise BadBundle(f"{path} has format {head['xpulse_capture']}, this release reads {FORMAT}; use the release that made it")
        ticks = [_tick(path, number, line) for number, line in enumerate(lines, 2)]
    except OSError as error:
        raise BadBundle(f"{path} cannot be read: {error.strerror or error}") from None
    if not ticks:
        raise BadBundle(f"{path} has no tick: the capture was ended before its first read; make it again")
    return head, ticks


def _lines(path: Path) -> Iterator[Any]:
    with gzip.open(path, "rb") as file:
        number = 0
        while True:
            number += 1
            try:
                line = file.readline(_MOST_LINE_BYTES)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                if number == 1:
                    raise BadBundle(f"{path} is no capture ({error})") from None
                return
            if not line.endswith(b"\n"):  # the end, or a line that was cut
                return
            try:
                yield json.loads(line)
            except ValueError:
                raise BadBundle(f"{path}, line {number}: not JSON; the file was changed after it was made") from None


def _tick(path: Path, number: int, line: Any) -> Tick:
    try:
        said = tuple(Said(key, code, tuple(bytes.fromhex(out) for out in outs), took) for key, code, took, *outs in line["calls"])
        return Tick(
            int(line["taken_at_ns"]), float(line["at"]), tuple(line["due"]), said, line["meminfo"], line["driver_epoch"], line["samples"]
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadBundle(f"{path}, line {number}: {type(error).__name__}: {error}; the file was changed after it was made") from None
