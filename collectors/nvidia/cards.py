"""The cards of one node as the driver lists them: found, named, opened, and found again after a session, a reset or a hot plug."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from collectors.contract import Env
from collectors.events import Kind, Severity
from collectors.nvidia import gpm
from collectors.nvidia.device_info import Versions, device_info, set_peers
from collectors.nvidia.fast import FastCalls
from collectors.nvidia.fast_fields import Last, Memory
from collectors.nvidia.identity import identity, topology
from collectors.nvidia.links import Links
from collectors.nvidia.partitions import Partition
from collectors.nvidia.readings import lost
from collectors.nvidia.reply import Failed, Replies, Reply
from collectors.nvidia.settings import Nvidia
from collectors.nvidia.slow import SlowCalls
from collectors.nvidia.slow_fields import Limits
from collectors.nvidia.source import Handle, Source
from schemas.telemetry import v1


class Say(Protocol):
    """Reports an event of the source, or of a device where a uid is given."""

    def __call__(
        self,
        kind: Kind,
        text: str,
        severity: Severity = ...,
        *,
        uid: str = ...,
        code: int | None = ...,
        details: Mapping[str, str] | None = ...,
    ) -> None: ...


@dataclass(slots=True)
class Card:
    """One GPU. What belongs to a session is None before it is opened in one."""

    index: int
    info: v1.DeviceInfo
    handle: Handle | None = None
    session: int = 0
    fast: FastCalls | None = None
    slow: SlowCalls | None = None
    links: Links | None = None
    profiler: gpm.Profiler | None = None
    has_gpm: bool = False
    mig: bool = False
    virtualization: Reply | None = None
    unified: bool = False
    levels: dict[str, int] = field(default_factory=dict)
    remote_bdfs: tuple[str, ...] = ()
    memory: Memory = field(default_factory=Memory)
    last: Last | None = None
    """The last fast tick, where the next may begin with it."""
    limits: Limits = field(default_factory=Limits)
    lost: bool = False
    said_lost: bool = False
    dead: int = 0
    """The one code that every call of the last read answered with; 0 where something answered."""
    read_at: float = 0.0
    parts: dict[str, Partition] = field(default_factory=dict)
    looked: bool = False
    """Whether its parts were ever looked for."""
    looked_at: float = float("-inf")
    vgpu_time_us: int = 0

    def close(self) -> None:
        """Free what was allocated in the session, which must still be open."""
        if self.profiler is not None:
            self.profiler.close()
            self.profiler = None
        for part in self.parts.values():
            part.close()


class Cards:
    """Every card by uid, in NVML's order; a card that stops answering stays."""

    def __init__(self, source: Source, settings: Nvidia, env: Env, say: Say) -> None:
        self._source, self._settings, self._env, self._node, self._say = source, settings, env, env.node.node, say
        self.by_uid: dict[str, Card] = {}
        self.driver_version = ""
        self._versions = Versions()
        self._silent: set[int] = set()
        self._left_out: set[int] = set()
        self._lost_looks = 0
        self.look_anew = False
        """Set by whoever knows of a card that this session does not list: the next look opens a new one."""
        self.before_end: Callable[[], None] = lambda: None
        """Frees what others hold in the session, before it ends."""

    def __iter__(self) -> Iterator[Card]:
        return iter(self.by_uid.values())

    def reopen(self) -> None:
        """Start a new session: only that shows cards that came, and those that came back. Raises collectors.nvidia.remedy.Missing."""
        self.end_session()
        self._source.open()

    def end_session(self) -> None:
        """Free everything and let the driver go; the cards stay known."""
        if self._source.is_open:
            self.before_end()
        for card in self:
            if card.session == self._source.sessions and self._source.is_open:
                card.close()
            card.session, card.profiler = 0, None
            for part in card.parts.values():
                part.gone = True
        self._source.close()

    def look(self, *, first: bool = False) -> None:
        """What the driver lists now. Raises collectors.nvidia.remedy.Missing where it lists nothing at all."""
        if not first and (self._wants_new_session() or self.look_anew):
            self.reopen()
        self.look_anew = False
        version = self._source.driver_version()
        self.driver_version = version if isinstance(version, str) else ""
        library = self._source.library_version()
        self._versions = Versions(self.driver_version, library if isinstance(library, str) else "", self._source.cuda_version())
        by_index = {card.index: card for card in self}
        found: dict[str, Card] = {}
        for index, handle in self._handles({index: card.info.uid for index, card in by_index.items()}):
            card = self._card(index, handle, by_index.get(index), announce=not first)
            if card is not None:
                found[card.info.uid] = card
        self.by_uid = found
        self._join()

    def _handles(self, uids: Mapping[int, str]) -> Iterator[tuple[int, Handle | Failed]]:
        """Handles one by one, each noted before it is asked for; one that an earlier process hung at is left out, and said to be lost."""
        for index in range(self._source.count()):
            if str(index) in self._env.avoid:
                if index not in self._left_out:
                    self._left_out.add(index)
                    uid = self._env.avoid[str(index)]
                    text = f"the driver hung when it was asked for the GPU with index {index}: it is left out, and tried again later"
                    self._say("lost", text, "critical", uid=uid)
                continue
            self._env.note(str(index), uids.get(index, ""))
            yield index, self._source.handle(index)
        self._env.note("", "")

    def join_links(self) -> None:
        """Count the direct links between the cards, from what each says of the other end of its own."""
        by_bdf = {card.info.bdf: card.info.uid for card in self}
        for card in self:
            links: dict[str, int] = {}
            for bdf in card.remote_bdfs:
                if bdf in by_bdf:
                    links[by_bdf[bdf]] = links.get(by_bdf[bdf], 0) + 1
            set_peers(card.info, card.levels, links)

    def _card(self, index: int, handle: Handle | Failed, known: Card | None, *, announce: bool) -> Card | None:
        if known is not None and known.index != index:
            known = None  # this session numbers the cards anew, as another is gone: it was found at its new number already
        if known is not None and known.session == self._source.sessions and not (known.lost or known.dead or isinstance(handle, Failed)):
            return known
        replies: Replies = {} if isinstance(handle, Failed) else identity(self._source, handle)
        info = None if lost(replies) else device_info(replies, self._node, index, self._versions)
        if info is None:
            if known is not None:
                known.handle, known.lost, known.session = None, True, 0
            elif index not in self._silent and announce:
                self._silent.add(index)
                code = handle.code if isinstance(handle, Failed) else None
                self._say("lost", f"the GPU with index {index} does not answer and cannot be named", "critical", code=code)
            return known
        self._silent.discard(index)
        before = self.by_uid.get(info.uid)
        card = before if before is not None and not before.lost else Card(index, info)
        if before is not None:
            card.said_lost, card.parts, card.looked = before.said_lost, before.parts, before.looked
            info.memory_kind = before.info.memory_kind
        card.index, card.info, card.virtualization = index, info, replies["virtualization"]
        self.open(card, handle)
        return card

    def open(self, card: Card, handle: Handle) -> None:
        """Make the calls of a card ready for this session; also where its MIG mode changed, as links and activity then do."""
        source, settings = self._source, self._settings
        if card.session == source.sessions:
            card.close()
        card.handle, card.session, card.dead, card.lost, card.last = handle, source.sessions, 0, False, None
        card.fast = FastCalls(source, handle)
        card.slow = SlowCalls(source, handle, self.driver_version, pcie_window=settings.pcie_window)
        card.links = Links(source, handle) if settings.link_errors else None
        mode = source.ask(source.nvml.nvmlDeviceGetMigMode, handle)
        card.mig = not isinstance(mode, Failed) and mode[0] == 1
        card.has_gpm = settings.profiling and gpm.supported(source, handle)
        card.profiler = gpm.Profiler(source, handle) if card.has_gpm and not card.mig else None
        card.looked_at = float("-inf")

    def _join(self) -> None:
        if "topology" not in self._env.avoid:  # else an earlier process hung there
            self._env.note("topology", "")
            self._ask_topology()
            self._env.note("", "")
        self.join_links()

    def _ask_topology(self) -> None:
        handles = {card.info.uid: card.handle for card in self if card.handle is not None and not card.lost}
        for card in self:
            if card.handle is None or card.lost or card.levels.keys() == handles.keys() - {card.info.uid}:
                continue
            others = {uid: handle for uid, handle in handles.items() if uid != card.info.uid}
            card.levels = topology(self._source, card.handle, others)

    def _wants_new_session(self) -> bool:
        """A lost card is seen again only by a new session; the wait between two grows, because opening one costs the healthy cards."""
        if not any(card.lost or card.dead for card in self):
            self._lost_looks = 0
            return False
        self._lost_looks += 1
        return self._lost_looks & (self._lost_looks - 1) == 0 or self._lost_looks % 10 == 0
