"""What follows from a plugin's words: events find their card and lose their doubles, messages go to the bus, observers hear all."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from collectors.addresses import Addresses
from collectors.contract import Reading
from collectors.coverage import Coverage
from collectors.doubles import Doubles
from collectors.events import Kind, Severity, device_event
from collectors.observer import Nobody, Observer
from collectors.presence import Presence
from collectors.publisher import Publisher, event_out
from collectors.stats import Tally
from schemas import topics
from schemas.flow import Busy, Out, ReadingEvent, Rejected
from schemas.identity import NodeRef
from schemas.telemetry import v1

log = logging.getLogger("xpulse.agent")

BACKLOG = 1000
"""Events and inventory that wait for room on the bus; the oldest goes first when there is none."""


@dataclass(slots=True)
class Shared:
    """What the outlets of one agent have in common."""

    node: NodeRef
    publish: Callable[[Sequence[Out]], None] | None
    """None: there is no bus, and no message is made for it."""
    clock: Callable[[], int]
    """ns UTC."""
    addresses: Addresses
    doubles: Doubles = field(default_factory=Doubles)
    observer: Observer = field(default_factory=Nobody)
    coverage: Coverage = field(default_factory=Coverage)


class Outlet:
    """Of one plugin. `read` takes its readings in order, `say` makes an event of the agent's own, `send_events` passes on what was held."""

    def __init__(self, tally: Tally, publisher: Publisher, shared: Shared) -> None:
        self._tally, self._publisher, self._shared = tally, publisher, shared
        self._presence = Presence(tally.name)
        self._backlog: list[Out] = []
        self._odd: set[type[Exception]] = set()

    def now_ns(self) -> int:
        return self._shared.clock()

    def read(self, reading: Reading) -> None:
        shared, tally = self._shared, self._tally
        listed = reading.samples
        for part in listed:
            shared.addresses.learn(part)
        now_ns = shared.clock()
        sifted = shared.coverage.sift(tally.name, reading, shared.node, now_ns)
        if sifted.dropped:
            tally.dropped["covered"] += sifted.dropped
        elif sifted.resumed:
            self._publisher.resend()
        reading = replace(sifted.reading, events=self._refined(sifted.reading.events))
        with self._harmless():
            shared.observer.observe(tally.name, reading)
        for event in reading.events:
            if isinstance(event, v1.DeviceEvent):
                self._presence.note(event)
                self._tell(event)
        noticed = []
        for part in listed:  # what another speaks for is present all the same
            uids = (sample.uid for sample in part.samples)
            parents = {sample.uid: sample.info.parent_uid for sample in part.samples if sample.info.parent_uid}
            node = part.node or shared.node
            noticed += self._presence.update(node, uids, part.taken_at_ns, simulated=part.simulated, parents=parents)
        noticed = [one for one in noticed if not shared.coverage.covers(tally.name, one, now_ns)]
        for one in noticed:
            self._tell(one)
        if shared.publish is None:
            return
        outs: list[Out] = []
        try:
            outs = self._publisher.outs(replace(reading, events=()), shared.clock())
        except Rejected as error:
            log.error("plugin %s: samples were not sent: %s", tally.name, error.reason)
            tally.dropped["too_large"] += sum(len(part.samples) for part in reading.samples)
            self._publisher.resend()
        self._send([*outs, *self._messages((*reading.events, *noticed))])

    def say(self, kind: Kind, text: str, severity: Severity = "warning", *, since_ns: int | None = None) -> None:
        """An event of the whole source. `since_ns` repeats one that lasts: same time and text, same id."""
        event = device_event(self._shared.node, self._tally.name, kind, since_ns or self._shared.clock(), text, severity=severity)
        if since_ns is not None:
            event.first_at_ns, event.last_at_ns = since_ns, self._shared.clock()
        self.send_events([event])

    def send_events(self, events: Sequence[v1.DeviceEvent]) -> None:
        for event in events:
            self._tell(event)
        self._send(self._messages(events))

    def look_again(self) -> None:
        """After a maintenance, which ends what was said of lost devices: who is still missing is to be said again."""
        self._presence.say_again()

    def retry(self) -> None:
        """Offer again what found no room: a plugin that is gone says nothing that would take it along."""
        if self._backlog:
            self._send([])

    def end(self) -> None:
        """The agent ends: a last offer, and what finds no room now is counted."""
        self.retry()
        if self._backlog:
            self._tally.dropped["bus_full"] += len(self._backlog)
        self._backlog = []

    def _messages(self, events: Sequence[ReadingEvent]) -> list[Out]:
        """One that is too large takes no other along, and neither do samples that are."""
        if self._shared.publish is None:
            return []
        outs = []
        for event in events:
            try:
                outs.append(event_out(event))
            except Rejected as error:
                log.error("plugin %s: an event was not sent: %s", self._tally.name, error.reason)
                self._tally.dropped["too_large"] += 1
        return outs

    def _tell(self, event: v1.DeviceEvent) -> None:
        with self._harmless():
            self._shared.observer.happened(event)

    @contextmanager
    def _harmless(self) -> Iterator[None]:
        """An observer that raises stops neither the agent nor what the bus gets: counted, and each kind of error logged once."""
        try:
            yield
        except Exception as error:
            self._tally.dropped["observer"] += 1
            if type(error) not in self._odd:
                self._odd.add(type(error))
                log.exception("an observer of what plugin %s says failed", self._tally.name)

    def _refined(self, events: Sequence[ReadingEvent]) -> tuple[ReadingEvent, ...]:
        of_devices = [event for event in events if isinstance(event, v1.DeviceEvent)]
        if not of_devices:
            return tuple(events)
        for event in of_devices:
            self._shared.addresses.resolve(event)
        others = [event for event in events if not isinstance(event, v1.DeviceEvent)]
        return (*others, *self._shared.doubles.sift(self._tally.name, of_devices, self._shared.clock()))

    def _send(self, outs: list[Out]) -> None:
        """Publish; what the bus has no room for is kept where it happens once (events, inventory) and counted where it does not."""
        if self._shared.publish is None:
            return
        try:
            self._shared.publish([*self._backlog, *outs])
            self._backlog = []
        except Busy:
            kept = [out for out in outs if out.topic != topics.SAMPLES]
            self._tally.dropped["bus_full"] += len(outs) - len(kept)
            self._backlog += kept
            over = len(self._backlog) - BACKLOG
            if over > 0:
                self._tally.dropped["bus_full"] += over
                del self._backlog[:over]
            self._publisher.resend()
