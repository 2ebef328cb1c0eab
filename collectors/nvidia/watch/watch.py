"""Everything that is watched beside the readings, behind one door for the plugin: events, the bus, counters that stand still."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from collectors.contract import Env
from collectors.nvidia.processes.calls import Session
from collectors.nvidia.watch.bus import BusCheck
from collectors.nvidia.watch.event import Watched, Where, event
from collectors.nvidia.watch.frozen import Frozen
from collectors.nvidia.watch.listen import Listener
from collectors.procfs.pci import PciBus
from schemas.telemetry import v1


@dataclass(slots=True)
class Seen:
    """What a tick gave. `look_anew`: open a new NVML session and enumerate; the driver has a card that this one does not list."""

    events: list[v1.DeviceEvent] = field(default_factory=list)
    rejects: Counter[tuple[str, str]] = field(default_factory=Counter)
    look_anew: bool = False


class Watch:
    """`events` and `pci_check` are the kill switches; `counters` off looks for none that stands still, as a fake's do."""

    def __init__(
        self,
        session: Session,
        env: Env,
        *,
        events: bool = True,
        pci_check: bool = True,
        counters: bool = True,
        bus: PciBus | None = None,
        proc_folder: Path = Path("/proc"),
    ) -> None:
        self._where = Where(env.node, env.boot_id)
        self._listener = Listener(session, self._where) if events else None
        self._bus = BusCheck(bus or PciBus(), self._where, proc_folder) if pci_check else None
        self._frozen = Frozen() if counters else None

    def tick(self, cards: Sequence[Watched], samples: Iterable[v1.DeviceSample], *, at: float, now_ns: int, slow: bool) -> Seen:
        """After each read, with its samples. `slow` compares with the bus too. `at` is in monotonic seconds, `now_ns` ns UTC."""
        seen = Seen()
        if self._listener is not None:
            seen.events += self._listener.hear(cards, at, now_ns, seen.rejects)
        if self._frozen is not None:
            by_uid = {card.uid: card for card in cards}
            for sample in samples:
                if sample.uid in by_uid:
                    self._counter(self._frozen, by_uid[sample.uid], sample, at, now_ns, seen)
            if slow:
                self._frozen.forget(frozenset(by_uid))
        if slow and self._bus is not None:
            news = self._bus.look(cards, now_ns)
            seen.events += news.events
            seen.look_anew = news.look_anew
        return seen

    def close(self) -> None:
        """Before the NVML session ends, at its end or for a new one."""
        if self._listener is not None:
            self._listener.close()

    def _counter(self, frozen: Frozen, card: Watched, sample: v1.DeviceSample, at: float, now_ns: int, seen: Seen) -> None:
        energy = sample.energy_joules if sample.HasField("energy_joules") else None
        power = sample.power_watts if sample.HasField("power_watts") else None
        match frozen.step(card.uid, energy, power, at):
            case "frozen":
                text = f"{card.label}: its energy counter stands still at {energy:.0f} J while it draws {power:.0f} W: do not bill by it"
                seen.events.append(event(self._where, "vendor_log", now_ns, text, "warning", uid=card.uid, bdf=card.bdf))
            case "moves":
                text = f"{card.label}: its energy counter moves again"
                seen.events.append(event(self._where, "vendor_log", now_ns, text, "info", uid=card.uid, bdf=card.bdf))
            case None:
                pass
