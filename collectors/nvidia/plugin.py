"""The nvidia plugin: one NVML session, each card read by itself, so that a lost one hides no other."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from collectors.contract import API, Env, NodeReading, Reading, Ready, Unavailable
from collectors.events import Kind, Severity, device_event
from collectors.nvidia import parse
from collectors.nvidia.remedy import Missing, bindings_warning
from collectors.nvidia.reply import NOT_SUPPORTED, Failed, Replies
from collectors.nvidia.settings import Nvidia
from collectors.nvidia.source import Handle, Source
from schemas.builder import SampleBuilder
from schemas.catalogue import Cadence
from schemas.telemetry import v1

log = logging.getLogger("xpulse.agent")

_MODULE: Final = Path("/sys/module/nvidia")


@dataclass(slots=True)
class _Card:
    index: int
    info: v1.DeviceInfo
    handle: Handle | None
    profiled: bool = False
    mig: bool = False
    lost: bool = False
    said_lost: bool = False
    skip: frozenset[str] = frozenset()
    read_at: float = 0.0
    memory: parse.Memory = field(default_factory=parse.Memory)


def create(settings: Mapping[str, Any], env: Env) -> Plugin:
    """Entry point nvidia of xpulse.collectors."""
    return Plugin(Nvidia.model_validate(settings), env)


class Plugin:
    """See collectors.contract.Plugin."""

    api = API

    def __init__(self, settings: Nvidia, env: Env, source: Source | None = None) -> None:
        self._settings, self._env = settings, env
        self._source = source or Source()
        self._cards: dict[str, _Card] = {}
        self._driver_version = ""
        self._driver_epoch = 0
        self._silent: set[int] = set()
        if warning := bindings_warning():
            log.warning("%s", warning)

    def probe(self) -> Ready | Unavailable:
        try:
            self._source.open()
            self._enumerate()
        except Missing as error:
            self._source.close()
            return Unavailable(f"nvidia: {error}", self._settings.retry_seconds)
        return Ready(tuple(self._cards))

    def close(self) -> None:
        self._source.close()

    def read(self, due: frozenset[Cadence], deadline: float) -> Reading:
        """Read every card. Raises collectors.nvidia.remedy.Missing where the driver is gone as a whole."""
        events: list[v1.DeviceEvent] = []
        slow = "slow" in due
        if slow:
            self._look_again(events)
        samples = []
        rejects: Counter[tuple[str, str]] = Counter()
        taken_at_ns = time.time_ns()
        for card in self._cards.values():
            builder = self._read_card(card, slow, deadline, events)
            builder.info(card.info)
            rejects.update(builder.rejects)
            samples.append(builder.build())
        reading = NodeReading(
            taken_at_ns, tuple(samples), boot_id=self._env.boot_id, driver_epoch=self._driver_epoch, driver_version=self._driver_version
        )
        return Reading((reading,), tuple(events), rejects)

    def _read_card(self, card: _Card, slow: bool, deadline: float, events: list[v1.DeviceEvent]) -> SampleBuilder:
        uid = card.info.uid
        if time.monotonic() > deadline:
            return parse.all_absent(uid, card.index, "error", slow=False)
        fast: Replies = {}
        if not card.lost and card.handle is not None:
            fast = self._source.fast(card.handle, frozenset() if slow else card.skip)
            card.lost = parse.lost(fast)
        if card.lost or card.handle is None:
            card.lost = True
            if not card.said_lost:
                card.said_lost = True
                self._say(events, "lost", f"{card.info.model} {card.info.bdf} does not answer: the GPU is lost", "critical", uid)
            return parse.lost_sample(uid, card.index)
        if card.said_lost:
            card.said_lost = False
            self._say(events, "returned", f"{card.info.model} {card.info.bdf} answers again", "info", uid)
        now = time.monotonic()
        profile = self._profile(card)
        builder = SampleBuilder(uid, card.index)
        parse.fast_fields(builder, fast, profile, card.memory, mig=card.mig, seconds=now - card.read_at)
        card.read_at = now
        if slow:
            card.skip = frozenset(name for name, reply in fast.items() if isinstance(reply, Failed) and reply.code == NOT_SUPPORTED)
            more = self._source.slow(card.handle, link_errors=self._settings.link_errors)
            parse.slow_fields(builder, more | fast, card.memory, fast.get("temperature_celsius"))
        return builder

    def _profile(self, card: _Card) -> Replies:
        if card.mig or not card.profiled or not self._settings.profiling:
            return dict.fromkeys(("sm_active_percent", "tensor_active_percent", "dram_active_percent"), Failed(NOT_SUPPORTED))
        return self._source.profile(card.handle, card.info.uid)

    def _look_again(self, events: list[v1.DeviceEvent]) -> None:
        """With the slow cadence: what the driver lists now. A lost card is seen again only by a new session."""
        if any(card.lost for card in self._cards.values()):
            self._source.close()
            self._source.open()
        self._enumerate(events)

    def _enumerate(self, events: list[v1.DeviceEvent] | None = None) -> None:
        version = self._source.driver_version()
        self._driver_version = version if isinstance(version, str) else ""
        self._driver_epoch = driver_epoch()
        by_index = {card.index: card for card in self._cards.values()}
        cards: dict[str, _Card] = {}
        for index, handle in enumerate(self._source.handles()):
            known = by_index.get(index)
            replies = {} if isinstance(handle, Failed) else self._source.identity(handle)
            info = None if parse.lost(replies) else parse.info(replies, self._env.node.node, index)
            if info is None:
                if known is not None:
                    known.handle, known.lost = None, True
                    cards[known.info.uid] = known
                elif index not in self._silent and events is not None:
                    self._silent.add(index)
                    code = handle.code if isinstance(handle, Failed) else None
                    self._say(events, "lost", f"the GPU with index {index} does not answer and cannot be named", "critical", code=code)
                continue
            self._silent.discard(index)
            known = self._cards.get(info.uid)
            card = known if known is not None and not known.lost else _Card(index, info, handle)
            card.said_lost = known is not None and known.said_lost
            card.index, card.info, card.handle = index, info, handle
            card.profiled = self._settings.profiling and self._source.profiled(handle)
            card.mig = self._source.mig_enabled(handle)
            cards[info.uid] = card
        self._cards = cards

    def _say(self, events: list[v1.DeviceEvent], kind: Kind, text: str, severity: Severity, uid: str = "", code: int | None = None) -> None:
        events.append(device_event(self._env.node, "nvidia", kind, time.time_ns(), text, severity=severity, uid=uid, code=code))


def driver_epoch(module: Path = _MODULE) -> int:
    """Another number after each load of the kernel module within one boot; 0 where /sys does not show the module.

    The kernel numbers sysfs nodes in rising order and does not use a number again soon (kernfs, idr_alloc_cyclic).
    """
    try:
        return module.stat().st_ino
    except OSError:
        return 0
