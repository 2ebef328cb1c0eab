"""The messages of one topic between the agent and the broker: what librdkafka has, in order, and whether the disk stands in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError

from xpulse.bus.outgoing import verdict
from xpulse.bus.sending import BACKOFF_SECONDS, Attempt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from confluent_kafka import Message

    from schemas.flow import Out
    from xpulse.bus.sending import Sender


_OVERHEAD_BYTES: Final = 256
"""librdkafka's own record of a queued message, headers included."""

_OURS: Final = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT, KafkaError._FATAL})
"""Failures that come of a producer that we made anew; any other is the broker's word on a topic."""


class Flight(Attempt):
    """One sending. `frames`: how many messages of the spool it stands for. `late`: it was read from there."""

    __slots__ = ("acked", "bytes", "counted", "frames", "late")

    def __init__(self, outs: Sequence[Out], size_bytes: int, *, frames: int = 0, late: bool = False) -> None:
        super().__init__(outs)
        self.acked: set[int] = set()
        self.counted = 0
        self.bytes, self.frames, self.late = size_bytes, frames, late

    def report(self, index: int, error: KafkaError | None, _message: Message | None = None) -> None:
        if error is None:
            self.acked.add(index)
        super().report(index, error, _message)

    def unacked(self) -> list[Out]:
        """What the broker has not acknowledged and not refused for ever, in order."""
        acked = frozenset(self.acked)
        return [out for i, out in enumerate(self.outs) if i not in acked and not self._refused(i)]

    def _refused(self, index: int) -> bool:
        error = self.failed.get(index)
        return error is not None and verdict(error) == "refused"


class Answers:
    """What a line heard since the last time: `acked` messages, `late` of them from the spool, `refused` for ever."""

    __slots__ = ("acked", "late", "refused")

    def __init__(self) -> None:
        self.acked = self.late = self.refused = 0


class Line:
    """`since` is the monotonic second of the last acknowledgement, or from when on one is waited for. While `spooling`, what comes in goes
    to the disk and what goes out comes from there; `flowing` then says that the broker takes it. `why` is the broker's word on a topic
    that it does not take."""

    def __init__(self, topic: str, at: float) -> None:
        self.topic = topic
        self.flights: list[Flight] = []
        self.spooling = False
        self.flowing = True
        self.since = at
        self.why = ""
        self._retry_at = 0.0
        self._tries = 0

    @property
    def memory_bytes(self) -> int:
        """What librdkafka holds of it, and what waits to be given to it again."""
        return sum(flight.bytes for flight in self.flights)

    @property
    def unacked(self) -> int:
        """Messages in memory that are not acknowledged."""
        return sum(len(flight.outs) - len(flight.acked) for flight in self.flights)

    @property
    def answered(self) -> bool:
        """Whether librdkafka owes no report."""
        return all(flight.left == len(flight.outs) - flight.sent for flight in self.flights)

    def add(self, flight: Flight, at: float) -> None:
        """A sending behind the others; `send` begins it."""
        if not self.flights and self.flowing:
            self.since = at
        self.flights.append(flight)

    def send(self, sender: Sender, at: float) -> None:
        """Give librdkafka what it does not have yet, as far as it has room, in order."""
        if at < self._retry_at:
            return
        for flight in self.flights:
            if flight.sent < len(flight.outs) and not sender.start(flight):
                return

    def settle(self, at: float, *, renewed: bool = False) -> tuple[Answers, int]:
        """Take the reports in: what they say, and how many messages of the spool are done with. What failed for now is put in its old
        place, to be sent again after a pause. With a `renewed` producer that is also what the old one had no room for."""
        heard, failed = Answers(), False
        for place, flight in enumerate(self.flights):
            # first: reports come from another thread
            done = flight.left == 0 or (renewed and flight.sent > 0 and flight.left == len(flight.outs) - flight.sent)
            acked = len(flight.acked)
            heard.acked += acked - flight.counted
            heard.late += (acked - flight.counted) * flight.late
            flight.counted = acked
            if not done:
                continue
            left = flight.unacked()
            heard.refused += len(flight.outs) - acked - len(left)
            if left:
                failed = True
                self.why = next((error.str() for error in flight.failed.values() if _from_broker(error)), self.why)
                self.flights[place] = Flight(left, flight.bytes, frames=flight.frames, late=flight.late)
        if heard.acked:
            self.since, self.flowing, self.why, self._tries = at, True, "", 0
        if failed:
            self._retry_at = at + BACKOFF_SECONDS[min(self._tries, len(BACKOFF_SECONDS) - 1)]
            self._tries += 1
        frames = 0
        while self.flights and self.flights[0].left == 0:
            frames += self.flights.pop(0).frames
        return heard, frames

    def drop(self, frames: int) -> bool:
        """The oldest messages of the spool are no longer in it: they are not sent either. Whether librdkafka has any of them."""
        held = False
        while frames > 0 and self.flights:
            flight = self.flights[0]
            if flight.frames > frames:  # the rest of it still is
                flight.frames -= frames
                break
            frames -= flight.frames
            held |= flight.left > 0 and flight.sent > 0
            self.flights.pop(0)
        return held

    def forget(self) -> int:
        """All that is in memory is on disk as well and is sent from there: how many the broker may get twice."""
        twice = sum(flight.sent for flight in self.flights)
        self.flights = []
        self._retry_at = 0.0
        return twice


def _from_broker(error: KafkaError) -> bool:
    return verdict(error) == "retry" and error.code() not in _OURS


def size_bytes(out: Out) -> int:
    """What a message takes in memory until it is acknowledged."""
    return len(out.key) + len(out.value or b"") + _OVERHEAD_BYTES
