"""Knows which device sits at which PCI address, so that a kernel line that names only the address finds its card.

What was learned is kept in a file: after a reboot with a dead card the kernel log names its address, and no driver lists it any more.
"""

from __future__ import annotations

import contextlib
import json
import logging
from pathlib import Path
from typing import Final

from collectors.contract import NodeReading
from schemas.identity import NodeRef
from schemas.telemetry import v1

log = logging.getLogger("xpulse.agent")

_MOST: Final = 1024
"""Addresses kept: no node has so many cards; a bound against a file that grows with each hot plug of a year."""


class Addresses:
    """PCI address (dddd:bb:dd.f) to device uid, of the agent's own node. `file` None keeps nothing over a restart."""

    def __init__(self, node: NodeRef, file: Path | None = None) -> None:
        self._node, self._file = node, file
        self._now: dict[str, str] = {}
        self._before = _read(file)

    def learn(self, part: NodeReading) -> None:
        """Take in the identities of a reading; partitions share their parent's address and are left out."""
        if part.node not in (None, self._node):
            return
        changed = False
        for sample in part.samples:
            if not sample.HasField("info") or not sample.info.bdf or sample.info.kind == v1.DeviceKind.DEVICE_KIND_PARTITION:
                continue
            if self._now.get(sample.info.bdf) != sample.uid:
                self._now[sample.info.bdf] = sample.uid
                changed = True
        if changed:
            self._write()

    def resolve(self, event: v1.DeviceEvent) -> None:
        """Set the event's uid where it names only an address. A uid that was learned before this boot is marked so in `details`:
        somebody may have exchanged the card since."""
        if event.uid or not event.bdf or (event.cluster, event.node) != tuple(self._node):
            return
        if uid := self._now.get(event.bdf):
            event.uid = uid
        elif uid := self._before.get(event.bdf, ""):
            event.uid = uid
            event.details["uid_learned"] = "before this start of the agent"

    def _write(self) -> None:
        if self._file is None:
            return
        known = dict(list({**self._before, **self._now}.items())[-_MOST:])
        new = self._file.with_suffix(".new")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            new.write_text(json.dumps(known, sort_keys=True))
            new.replace(self._file)
        except OSError as error:
            log.warning(
                "%s cannot be written (%s): after a reboot kernel lines of a dead card will lack its name", self._file, error.strerror
            )
            self._file = None


def _read(file: Path | None) -> dict[str, str]:
    """What an earlier run wrote; nothing where that cannot be read: it is learned again."""
    if file is None:
        return {}
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(file.read_text())
        if isinstance(found, dict):
            return {str(k): v for k, v in list(found.items())[:_MOST] if isinstance(v, str)}
    return {}
