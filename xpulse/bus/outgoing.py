"""What is to be sent, as plain messages: dead letters written out, oversize outputs turned into dead letters, barriers kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from confluent_kafka import KafkaError

from schemas.flow import Barrier, DeadLetter, Emitted, Out
from schemas.topics import DLQ, MAX_VALUE_BYTES
from xpulse.bus.dlq import letter_of_out, letter_of_record

if TYPE_CHECKING:
    from collections.abc import Sequence

Verdict = Literal["retry", "refused", "recreate"]

_REFUSED = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
    }
)
"""What a broker says of a message that it will not take however often it is sent."""


@dataclass(slots=True)
class Plan:
    """Messages in the order of sending; all of one segment are acknowledged before the next begins."""

    segments: list[list[Out]] = field(default_factory=list)
    published: int = 0
    dead_letters: int = 0


def plan(emitted: Sequence[Emitted], group: str) -> Plan:
    """Turn what a processor emitted into messages. Nothing is left out: what is too large becomes a dead letter with its reason."""
    found = Plan()
    segment: list[Out] = []
    for item in emitted:
        if isinstance(item, Out):
            if item.value is not None and len(item.value) > MAX_VALUE_BYTES and item.topic != DLQ:
                segment.append(letter_of_out(item, group, f"{len(item.value)} bytes to send, {MAX_VALUE_BYTES} is the most"))
                found.dead_letters += 1
            else:
                segment.append(item)
                found.published += 1
        elif isinstance(item, DeadLetter):
            segment.append(letter_of_record(item.record, group, item.reason))
            found.dead_letters += 1
        elif isinstance(item, Barrier) and segment:
            found.segments.append(segment)
            segment = []
    if segment:
        found.segments.append(segment)
    return found


def verdict(error: KafkaError) -> Verdict:
    """What to do about a message that was not delivered."""
    if error.fatal() or error.code() == KafkaError._FATAL:
        return "recreate"
    return "refused" if error.code() in _REFUSED else "retry"


def again(outs: Sequence[Out], failed: dict[int, KafkaError], group: str) -> tuple[list[Out], bool]:
    """After an attempt: the messages still to send, in order, and whether a new producer is needed first.

    A refused message becomes a dead letter; a refused dead letter is sent on with its headers only, so that its reason is not lost.
    """
    left: list[Out] = []
    recreate = False
    for index in sorted(failed):
        out, error = outs[index], failed[index]
        match verdict(error):
            case "refused" if out.topic == DLQ:
                left.append(Out(DLQ, out.key[:1024], b"", out.headers))
            case "refused":
                left.append(letter_of_out(out, group, f"the broker refused it: {error.str()}"))
            case "recreate":
                recreate = True
                left.append(out)
            case "retry":
                left.append(out)
    return left, recreate
