"""What the plugin does beside reading the cards: hears their events, compares them with the bus, and lists who uses them."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from collectors.contract import Env
from collectors.nvidia.cards import Card
from collectors.nvidia.mig import Instance as MigInstance
from collectors.nvidia.processes.lists import Instance, Target
from collectors.nvidia.processes.reader import Processes
from collectors.nvidia.settings import Nvidia
from collectors.nvidia.source import Source
from collectors.nvidia.watch.budget import Limits
from collectors.nvidia.watch.event import Watched
from collectors.nvidia.watch.said import Said
from collectors.nvidia.watch.watch import Watch
from collectors.procfs.pci import PciBus
from collectors.procfs.process import Proc
from schemas.telemetry import v1

log = logging.getLogger("xpulse.agent")


@dataclass(slots=True)
class Extra:
    """What a tick has beside its samples. `processes` None: not due, or not to be had."""

    processes: tuple[v1.ProcessSample, ...] | None = None
    processes_unknown: tuple[str, ...] = ()
    events: list[v1.DeviceEvent] = field(default_factory=list)
    rejects: Counter[tuple[str, str]] = field(default_factory=Counter)
    look_anew: bool = False
    """The driver has a card that this session does not list: open a new one."""


class Beside:
    """`add` follows each read of the cards; `close` comes before the session ends."""

    def __init__(self, source: Source, settings: Nvidia, env: Env, *, bus: PciBus | None = None) -> None:
        proc_folder = Path(settings.proc_folder)
        self._source = source
        self._session = 0
        self._state: list[tuple[object, ...]] = []
        self._answering: list[Card] = []
        self._watched: list[Watched] = []
        self._simulated = settings.simulated
        self._env = env
        self._said = Said()
        self._memory_bytes: dict[str, int] = {}
        real = not settings.simulated
        left_out = any(key.isdigit() for key in env.avoid)  # a card that hung is on the bus, and not asked for: it is not missing
        pci_check = settings.pci_check and real and not left_out
        events = settings.events and "events" not in env.avoid  # an earlier process hung there
        self._watch = Watch(source, env, events=events, pci_check=pci_check, counters=real, bus=bus, proc_folder=proc_folder)
        self._processes: Processes | None = None
        if settings.processes and "processes" not in env.avoid:  # an earlier process hung there
            limits = Limits(settings.processes_every_seconds, settings.slow_call_seconds, settings.back_off_seconds)
            proc = None if settings.simulated else Proc(proc_folder)  # processes of a demonstration are nobody's
            self._processes = Processes(source, proc, env.node, limits, command_lines=settings.command_lines)

    def add(self, cards: Iterable[Card], samples: Sequence[v1.DeviceSample], *, at: float, slow: bool, deadline: float) -> Extra:
        """`samples` are those just read, `at` is the tick in monotonic seconds, `deadline` of time.monotonic()."""
        extra = Extra()
        now_ns = time.time_ns()
        cards = list(cards)
        state: list[tuple[object, ...]] = [(id(card), card.session, card.lost, card.dead, self._source.is_open) for card in cards]
        if state != self._state:
            self._state = state
            self._answering = [
                card for card in cards if self._source.is_open and card.handle is not None and not card.lost and not card.dead
            ]
            handles = {card.info.uid: card.handle for card in self._answering}
            self._watched = [Watched(card.info.uid, card.info.bdf, card.info.model, handles.get(card.info.uid)) for card in cards]
        self._env.note("events", "")
        with self._harmless("watch", extra):
            seen = self._watch.tick(self._watched, samples, at=at, now_ns=now_ns, slow=slow)
            extra.events += seen.events
            extra.rejects.update(seen.rejects)
            extra.look_anew = seen.look_anew
        if slow:
            self._memory_bytes = {sample.uid: sample.memory_total_bytes for sample in samples if sample.HasField("memory_total_bytes")}
        if self._processes is not None and self._answering:
            self._env.note("processes", "")
            with self._harmless("processes", extra):
                self._list(self._processes, at, now_ns, deadline, extra)
        self._env.note("", "")
        for event in extra.events:
            event.simulated = self._simulated
        return extra

    def _list(self, processes: Processes, at: float, now_ns: int, deadline: float, extra: Extra) -> None:
        if self._session != self._source.sessions:
            self._session = self._source.sessions
            processes.forget()
        taken = processes.read(map(self._target, self._answering), at=at, now_ns=now_ns, deadline=deadline)
        extra.processes, extra.processes_unknown = taken.samples, taken.unknown
        extra.events += taken.events
        extra.rejects.update(taken.rejects)

    @contextmanager
    def _harmless(self, what: str, extra: Extra) -> Iterator[None]:
        """Whatever goes wrong in here costs no sample: it is counted, and each kind of error logged once."""
        try:
            yield
        except Exception as error:
            extra.rejects[what, "error"] += 1
            if self._said.first((what, type(error).__name__)):
                log.exception("nvidia: %s failed", what)

    def close(self) -> None:
        self._watch.close()

    def _target(self, card: Card) -> Target:
        uid = card.info.uid
        instances = tuple(
            Instance(part.info.uid, part.handle, part.gpu_instance_id, part.compute_instance_id)
            for part in card.parts.values()
            if isinstance(part, MigInstance) and not part.gone
        )
        total = None if card.unified else self._memory_bytes.get(uid)
        return Target(uid, f"{card.info.model} {card.info.bdf}", card.handle, total, card.mig, instances)
