"""The nvidia plugin: one NVML session, each card read by itself, so that a lost one hides no other, and a session that is made anew."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from collectors.contract import API, Env, NodeReading, Reading, Ready, Unavailable
from collectors.contract import Plugin as Contract
from collectors.events import Kind, Severity, device_event
from collectors.nvidia import partitions
from collectors.nvidia.borrowed import Borrowed, borrow
from collectors.nvidia.cards import Card, Cards
from collectors.nvidia.driver import MODULE, Retry, driver_epoch
from collectors.nvidia.mig import Instance
from collectors.nvidia.reader import SESSION_CODES, read_card
from collectors.nvidia.readings import all_absent
from collectors.nvidia.remedy import Missing, bindings_warning, why
from collectors.nvidia.reply import VERSION_MISMATCH
from collectors.nvidia.settings import Nvidia
from collectors.nvidia.source import Source
from collectors.nvidia.turns import SLOW_SECONDS, Turns
from collectors.nvidia.unified import MEMINFO, Readable
from collectors.nvidia.watch.beside import Beside
from collectors.nvidia.watch.slow_reads import SlowReads
from collectors.procfs.pci import PciBus
from schemas.builder import SampleBuilder
from schemas.catalogue import Cadence
from schemas.telemetry import v1

log = logging.getLogger("xpulse.agent")

_MOST_RETRY_SECONDS: Final = 60.0
_MOST_ODD: Final = 100
"""Different errors of code that are logged; their texts may hold addresses and never be equal."""


def create(settings: Mapping[str, Any], env: Env) -> Contract:
    """Entry point nvidia of xpulse.collectors."""
    model = Nvidia.model_validate(settings)
    if model.replay is not None:
        from collectors.nvidia.tape.plugin import Replay  # a node that has a driver never needs it

        return Replay(model, env)
    return Plugin(model, env)


class Plugin:
    """See collectors.contract.Plugin. The paths are the kernel's; tests give others."""

    api = API

    def __init__(
        self,
        settings: Nvidia,
        env: Env,
        source: Source | None = None,
        *,
        module: Path = MODULE,
        meminfo: Readable = MEMINFO,
        bus: PciBus | None = None,
        borrowed: Borrowed | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._env, self._module, self._monotonic = settings, env, module, monotonic
        self._meminfo: Callable[[], str] = meminfo.read_text
        self.source = source or Source()
        self.cards = Cards(self.source, settings, env, self._say)
        self._slow_reads = SlowReads(settings.slow_read_seconds)
        self._turns = Turns()
        self._beside = Beside(self.source, settings, env, bus=bus)
        self.cards.before_end = self._beside.close
        self._borrowed = borrowed or borrow(settings.dcgm_endpoint)
        self._events: list[v1.DeviceEvent] = []
        self._driver_epoch = 0
        self._broken = ""
        """Why there is no session; empty where there is one."""
        self._told_trouble = False
        self._retry = Retry(_MOST_RETRY_SECONDS)
        self._odd: set[str] = set()
        if warning := bindings_warning():
            log.warning("%s", warning)

    def probe(self) -> Ready | Unavailable:
        try:
            self.source.open()
            self.cards.look(first=not self.cards.by_uid)
        except Missing as error:
            self.cards.end_session()
            return Unavailable(f"nvidia: {error}", self._settings.retry_seconds)
        self._note_driver()
        return Ready(tuple(self.cards.by_uid))

    def close(self) -> None:
        self.cards.end_session()
        if self._borrowed is not None:
            self._borrowed.close()

    def read(self, due: frozenset[Cadence], deadline: float) -> Reading:
        """Read every card and its parts.

        Where the driver is gone as a whole everything is absent(error), the session is tried again with growing waits, and both are
        told once. Raises collectors.nvidia.remedy.Missing only where no new session of this process can help: where the library does
        not fit the driver any more, which a new process loads anew.
        """
        slow = "slow" in due and self._slow_reads.wanted()
        taken_at_ns, at = time.time_ns(), self._monotonic()
        renewed = False
        if self._broken:
            renewed = self._retry.due(at) and self._reopen()
        elif slow:
            renewed = self._look()
        started = time.monotonic()
        builders = self._read_all(slow or renewed, deadline, at)
        if slow and not renewed:
            self._note_pace(time.monotonic() - started)
        code = self._common_failure()
        if code and not renewed and self._retry.due(at) and self._reopen(code):
            builders = self._read_all(True, deadline, at)
            code = self._common_failure()
        self._judge(self._broken or (why(code, "every call") if code else ""), at)
        rejects: Counter[tuple[str, str]] = Counter()
        for builder in builders:
            rejects.update(builder.rejects)
        samples = tuple(builder.build() for builder in builders)
        extra = self._beside.add(self.cards, samples, at=at, slow=slow or renewed, deadline=deadline)
        self.cards.look_anew |= extra.look_anew
        rejects.update(extra.rejects)
        events, self._events = (*self._events, *extra.events), []
        reading = NodeReading(
            taken_at_ns,
            samples,
            boot_id=self._env.boot_id,
            driver_epoch=self._driver_epoch,
            driver_version=self.cards.driver_version,
            simulated=self._settings.simulated,
            processes=extra.processes,
            processes_unknown=extra.processes_unknown,
        )
        return Reading((reading,), events, rejects)

    def _read_all(self, slow: bool, deadline: float, at: float) -> list[SampleBuilder]:
        done: dict[str, list[tuple[SampleBuilder, v1.DeviceInfo]]] = {}
        for uid in self._turns.order((card.info.uid for card in self.cards), at):
            started = time.monotonic()
            done[uid] = self._read_one(self.cards.by_uid[uid], slow, deadline, at)
            if started <= deadline and not self._broken:
                self._note_turn(self.cards.by_uid[uid], at, time.monotonic() - started, slow=slow)
        self._env.note("", "")
        read = []
        for card in self.cards:
            read += done.get(card.info.uid) or self._read_one(card, slow, float("-inf"), at)  # it rests: absent, but listed
        if slow:
            self.cards.join_links()  # what each card said of its links is part of the others' identity
        for builder, info in read:
            if not builder.has_info:
                builder.info(info)
        return [builder for builder, _ in read]

    def _read_one(self, card: Card, slow: bool, deadline: float, at: float) -> list[tuple[SampleBuilder, v1.DeviceInfo]]:
        """The card's sample and those of its parts; whatever goes wrong in here is this card's."""
        done: list[tuple[SampleBuilder, v1.DeviceInfo]] = []
        self._env.note(str(card.index), card.info.uid)
        try:
            if self._broken or time.monotonic() > deadline:
                done.append((all_absent(card.info.uid, card.index, "error", slow=slow and bool(self._broken)), card.info))
            else:
                done.append((read_card(self.source, card, slow=slow, at=at, meminfo=self._meminfo), card.info))
                self._tell_presence(card)
            done += self._read_parts(card, slow, deadline, at)
            if self._borrowed is not None:
                self._borrow(card, done, self._borrowed)
        except Exception as error:
            # A driver that answers nonsense about one card must not hide the others.
            said = f"{card.info.uid}: {type(error).__name__}: {error}"
            if said not in self._odd and len(self._odd) < _MOST_ODD:
                self._odd.add(said)
                log.exception("reading %s failed", card.info.uid)
            read = {info.uid for _, info in done}
            left = [card.info, *(part.info for part in card.parts.values())]
            done += [(all_absent(i.uid, i.index, "error", slow=slow), i) for i in left if i.uid not in read]
        return done

    def _read_parts(self, card: Card, slow: bool, deadline: float, at: float) -> list[tuple[SampleBuilder, v1.DeviceInfo]]:
        if not self._settings.partitions:
            return []
        if self._broken or card.lost or card.dead or time.monotonic() > deadline:
            why_not = "lost" if card.lost else "error"
            return [
                (all_absent(part.info.uid, part.info.index, why_not, slow=card.lost or bool(self._broken)), part.info)  # type: ignore[arg-type]  # one of two literals
                for part in card.parts.values()
            ]
        if not slow and not card.parts and not partitions.due(card, at):
            return []
        if slow or partitions.due(card, at):
            partitions.look(self.source, card, lambda: self.cards.open(card, card.handle), self._say, at)
        partitions.update_utilization(self.source, card)
        done = [(part.read(slow=slow), part) for part in card.parts.values()]
        if any(part.gone for part in card.parts.values()):
            partitions.look(self.source, card, lambda: self.cards.open(card, card.handle), self._say, at)
            read = {part.info.uid: builder for builder, part in done if not part.gone}
            return [(read.get(part.info.uid) or part.read(slow=True), part.info) for part in card.parts.values()]
        return [(builder, part.info) for builder, part in done]

    def _borrow(self, card: Card, done: list[tuple[SampleBuilder, v1.DeviceInfo]], borrowed: Borrowed) -> None:
        """Fill in the activity of a card without GPM, and of its instances, from another's profiling."""
        if card.has_gpm or card.lost or card.dead or self._broken:
            return
        unique = card.info.uid.partition(":")[2]
        for builder, info in done:
            part = card.parts.get(info.uid)
            if part is None and not card.mig:
                borrowed.fill(builder, unique)
            elif isinstance(part, Instance) and part.borrows and not part.gone:
                borrowed.fill(builder, f"{unique}/gi{part.gpu_instance_id}")

    def _tell_presence(self, card: Card) -> None:
        if card.lost == card.said_lost:
            return
        name = f"{card.info.model} {card.info.bdf}"
        if card.lost and not card.said_lost:
            card.said_lost = True
            self._say("lost", f"{name} does not answer: the GPU is lost or needs a reset", "critical", uid=card.info.uid)
        elif card.said_lost and not card.lost and not card.dead:
            card.said_lost = False
            self._say("returned", f"{name} answers again", "info", uid=card.info.uid)

    def _look(self) -> bool:
        """What the driver lists now; True where that needed a new session, so that everything is to be read."""
        before = self.source.sessions
        try:
            self.cards.look()
        except Missing as error:
            return self._reopen(error.code)
        self._note_driver()
        return self.source.sessions != before

    def _common_failure(self) -> int:
        """The code that every card but lost ones answers everything with, where that is the session's fault; 0 else."""
        codes = {card.dead for card in self.cards if not card.lost}
        return codes.pop() if not self._broken and len(codes) == 1 and codes <= SESSION_CODES else 0

    def _reopen(self, code: int = 0) -> bool:
        """Make the session anew; False where that fails, with the reason in `_broken`. Raises Missing where only a new process can."""
        try:
            if code == VERSION_MISMATCH:
                raise Missing(why(code, "every call"), code)
            self.cards.reopen()
            self.cards.look(first=not self.cards.by_uid)
        except Missing as error:
            self.cards.end_session()
            if error.code == VERSION_MISMATCH:
                raise
            self._broken = str(error)
            return False
        self._broken = ""
        self._note_driver()
        return True

    def _judge(self, trouble: str, at: float) -> None:
        """Tell trouble with the driver as a whole once, and its end once; let the waits between new sessions grow in between."""
        if not trouble:
            if self._told_trouble:
                self._say("recovered", "the source answers again", "info")
            self._told_trouble = False
            self._retry.succeeded()
            return
        if self._retry.due(at):
            self._retry.failed(at)
        if not self._told_trouble:
            self._told_trouble = True
            self._say("source_unavailable", f"nvidia: {trouble}")

    def _note_pace(self, seconds: float) -> None:
        match self._slow_reads.done(seconds):
            case "backed_off":
                limit = self._slow_reads.limit_seconds
                text = (
                    f"the driver took {seconds:.1f} s for the slow fields (limit {limit:g} s): they are read less often until it is quicker"
                )
                self._say("vendor_log", text, "info")
            case "recovered":
                self._say("vendor_log", "the slow fields are read as often as wanted again", "info")
            case None:
                pass

    def _note_turn(self, card: Card, at: float, seconds: float, *, slow: bool) -> None:
        limit = max(self._settings.slow_read_seconds, SLOW_SECONDS) if slow or card.parts else SLOW_SECONDS
        name = f"{card.info.model} {card.info.bdf}"
        match self._turns.done(card.info.uid, at, seconds, limit_seconds=limit):
            case "slow":
                text = (
                    f"{name} took {seconds:.1f} s to answer (limit {limit:g} s): it is read less often, after the others, until it is quick"
                )
                self._say("vendor_log", text, "warning", uid=card.info.uid)
            case "quick":
                self._say("vendor_log", f"{name} answers quickly again, and is read at each tick", "info", uid=card.info.uid)
            case None:
                pass

    def _note_driver(self) -> None:
        epoch, before = driver_epoch(self._module), self._driver_epoch
        self._driver_epoch = epoch
        if before and epoch and before != epoch:
            text = f"the NVIDIA driver was loaded again (now {self.cards.driver_version}); its counters began anew"
            self._say("driver_reloaded", text, "info")

    def _say(
        self,
        kind: Kind,
        text: str,
        severity: Severity = "warning",
        *,
        uid: str = "",
        code: int | None = None,
        details: Mapping[str, str] | None = None,
    ) -> None:
        simulated = self._settings.simulated
        event = device_event(
            self._env.node, "nvidia", kind, time.time_ns(), text, severity=severity, uid=uid, code=code, simulated=simulated
        )
        event.boot_id = self._env.boot_id
        for name, value in (details or {}).items():
            event.details[name] = value
        self._events.append(event)
