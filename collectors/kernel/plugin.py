"""The kernel plugin: reads the kernel's log where it was left, and says what the drivers wrote as few events with counts.

It has no devices and no samples. A reading is remembered as told only when the next one is asked for: what was read and not told,
because the process was killed in between, is read again and gives the same ids.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from collectors.contract import API, Env, Reading, Ready, Unavailable
from collectors.events import device_event
from collectors.kernel import backlog
from collectors.kernel.clock import Clock
from collectors.kernel.journal import Journal
from collectors.kernel.kmsg import Kmsg
from collectors.kernel.lines import Lines, chosen
from collectors.kernel.record import KERNEL
from collectors.kernel.settings import Kernel
from collectors.kernel.source import Batch, Missing, Position, Source
from collectors.kernel.store import Kept, Store
from collectors.nvidia.xid import keep
from collectors.nvidia.xid.event import Origin
from collectors.nvidia.xid.group import Ended, Groups, Item, Windows, step
from collectors.nvidia.xid.translate import Reader, branch
from collectors.nvidia.xid.verdict import overridden
from schemas.catalogue import Cadence
from schemas.flow import Tick
from schemas.telemetry import v1
from schemas.xid import catalogue

log = logging.getLogger("xpulse.agent")

NAME: Final = "kernel"
MOST_RECORDS: Final = 5_000
"""Held at once: memory stays flat however much is logged."""

_SAVE_SECONDS: Final = 30.0
"""How often the place is written down while nothing of interest is logged."""

_STEP_NS: Final = 1_000_000_000
"""Only a clock that is set by more dates the boot anew: a line that is read twice has one time, and stores keep it once."""

_DRIVER: Final = Path("/sys/module/nvidia/version")


def create(settings: Mapping[str, Any], env: Env) -> Plugin:
    """Entry point kernel of xpulse.collectors."""
    return Plugin(Kernel.model_validate(settings), env)


class Plugin:
    """See collectors.contract.Plugin. `sources` replace those of the settings.

    `wall` and `monotonic` give nanoseconds, the latter since the boot.
    """

    api = API

    def __init__(
        self,
        settings: Kernel,
        env: Env,
        *,
        sources: Sequence[Source] = (),
        wall: Callable[[], int] = time.time_ns,
        monotonic: Callable[[], int] = time.monotonic_ns,
        driver_file: Path = _DRIVER,
    ) -> None:
        self._settings, self._env, self._wall, self._monotonic = settings, env, wall, monotonic
        self._sources = tuple(sources) or _sources(settings)
        self._source: Source | None = None
        self._store = Store(settings.state_dir or env.state_dir or _home(), env.node)
        windows = Windows(
            together_ns=_ns(settings.together_seconds),
            longest_ns=_ns(settings.longest_seconds),
            cause_ns=_ns(settings.cause_seconds),
            hold_ns=_ns(settings.hold_seconds),
            update_ns=_ns(settings.update_seconds),
        )
        self._groups = Groups(Origin(env.node, NAME, env.boot_id), windows)
        self._reader = Reader(overridden(catalogue(), settings.xid_overrides), driver_branch=_driver_branch(driver_file))
        self._lines = Lines(chosen(settings.rules, settings.enable, settings.disable))
        self._clock = Clock()
        self._boot_ns = 0
        self._told: Kept | None = None
        self._position: Position | None = None
        self._eventful = False
        self._saved_at = time.monotonic()
        self._rebooted = False
        self._complained = False
        self._loaded = False

    def probe(self) -> Ready | Unavailable:
        kept = self._load()
        reasons = []
        for source in self._sources:
            try:
                source.open(None if kept is None else kept.position)
            except Missing as error:
                reasons.append(str(error))
                continue
            self._source = source
            return Ready(())
        return Unavailable(f"kernel: {'; and '.join(reasons)}", self._settings.retry_seconds)

    def read(self, due: frozenset[Cadence], deadline: float) -> Reading:
        """What was logged since. Raises Missing or OSError where the log is gone."""
        del due  # events have no cadence
        assert self._source is not None
        self._save()
        now_ns, monotonic_ns = self._wall(), self._monotonic()
        if abs(now_ns - monotonic_ns - self._boot_ns) > _STEP_NS:
            self._boot_ns = now_ns - monotonic_ns
        boot_ns = self._boot_ns
        self._clock.look(monotonic_ns // 1000)
        events = self._booted(boot_ns)
        lost = nonsense = 0
        while True:
            batch = self._source.read(MOST_RECORDS, deadline)
            items = self._items(batch, boot_ns)
            self._eventful |= bool(items)
            _, found = step(self._groups, items)
            events += found
            lost, nonsense = lost + batch.lost, nonsense + batch.nonsense
            if not batch.more or time.monotonic() > deadline:
                break
        if not batch.more:  # old lines that still wait must not find their events closed by the time that has passed since
            _, found = step(self._groups, [Tick(now_ns)])
            events += found
            self._clock.took_all()
        backlog.mark(events, now_ns, _ns(self._settings.first_look_seconds))
        if lost:
            events.append(self._lost(lost, now_ns))
        self._eventful |= bool(events)
        self._position = batch.position
        rejects = {("kernel_lines", reason): count for reason, count in (("overrun", lost), ("nonsense", nonsense)) if count}
        return Reading((), tuple(events), rejects)

    def close(self) -> None:
        """Without a word of the last reading: whether it was told is not known."""
        for source in self._sources:
            source.close()

    def _items(self, batch: Batch, boot_ns: int) -> list[Item]:
        items: list[Item] = []
        for record in batch.records:
            if record.facility != KERNEL and not self._settings.accept_user_lines:
                continue
            at_ns = boot_ns + self._clock.when(record.monotonic_us) * 1000
            for text in record.text.split("\n") if "\n" in record.text else (record.text,):
                item = self._reader.read(at_ns, record.monotonic_us, text) or self._lines.read(at_ns, record.monotonic_us, text)
                if item is not None:
                    items.append(item)
        return items

    def _booted(self, boot_ns: int) -> list[v1.DeviceEvent]:
        if not self._rebooted:
            return []
        self._rebooted = False
        text = "the node was booted: what its kernel said before is over"
        return step(self._groups, [Ended(boot_ns, 0, "", "driver_reloaded", None, text)])[1]

    def _lost(self, count: int, now_ns: int) -> v1.DeviceEvent:
        text = (
            f"{count} lines of the kernel's log were overwritten before they were read; an error among them is not known. "
            "Boot with a larger log_buf_len, or silence what floods the log"
        )
        event = device_event(self._env.node, NAME, "vendor_log", now_ns, text)
        event.mnemonic, event.boot_id = "KERNEL_LOG_OVERRUN", self._env.boot_id
        event.details["lost_lines"] = str(count)
        return event

    def _load(self) -> Kept | None:
        """What the last process left, of this boot; once, for a later probe must not go back."""
        if self._loaded:
            return self._told
        self._loaded = True
        try:
            kept = self._store.load()
            if kept is None or not self._env.boot_id:
                return None
            if kept.boot_id != self._env.boot_id:
                self._rebooted = True
                return None
            keep.restore(self._groups, kept.groups)
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("how far the kernel log was read is not known, it is read from the beginning of this boot: %s", error)
            return None
        if self._reader.driver_branch is None:
            self._reader.driver_branch = kept.driver_branch
        self._clock.off_us, self._boot_ns = kept.clock_off_us, kept.boot_ns
        self._told = kept
        return kept

    def _save(self) -> None:
        """Write down the reading before this one: it has been told by now."""
        now = time.monotonic()
        if self._position is None or not (self._eventful or now - self._saved_at > _SAVE_SECONDS):
            return
        self._eventful, self._saved_at = False, now
        self._told = Kept(
            self._env.boot_id, self._position, self._reader.driver_branch, keep.dump(self._groups), self._clock.off_us, self._boot_ns
        )
        try:
            self._store.save(self._told)
        except OSError as error:
            if not self._complained:
                self._complained = True
                log.warning(
                    "%s cannot be written (%s): after a restart the kernel log is read from its beginning; "
                    "set collectors.plugins.kernel.settings.state_dir",
                    self._store.path,
                    error,
                )


def _sources(settings: Kernel) -> tuple[Source, ...]:
    kmsg, journal = Kmsg(settings.kmsg_path), Journal(settings.journalctl)
    match settings.source:
        case "kmsg":
            return (kmsg,)
        case "journald":
            return (journal,)
        case "auto":
            return (kmsg, journal)


def _driver_branch(file: Path) -> int | None:
    try:
        return branch(file.read_text(errors="replace").strip())
    except OSError:
        return None


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _home() -> Path:
    """Where XPulse keeps its state unless somebody says otherwise."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "xpulse"
