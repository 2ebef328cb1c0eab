"""NVML's replies as readings: return codes become reasons, blanks and impossible words absences; what is common to all kinds of devices."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from collectors.nvidia.reply import UNSUPPORTED, Count32, Failed, Replies, Reply
from schemas.builder import SampleBuilder
from schemas.catalogue import CATALOGUE, FAST
from schemas.values import Absent, Reading, Reason

_REASON: Final[dict[int, Reason]] = {
    **dict.fromkeys(UNSUPPORTED, "not_supported"),
    4: "no_permission",
    15: "lost",
    16: "lost",  # the device does not work before a reset
    28: "lost",
}
LOST: Final = frozenset(code for code, reason in _REASON.items() if reason == "lost")

ABSENT: Final[Mapping[Reason, Absent]] = {
    reason: Absent(reason) for reason in ("not_supported", "no_permission", "lost", "stale", "error", "out_of_range")
}

_EVERY: Final = tuple(metric.name for metric in CATALOGUE)
_FAST: Final = tuple(metric.name for metric in FAST)

Scale = tuple[str, str, float]
"""Field of the catalogue, name of the reply, factor."""

BLANKS: Final = frozenset((0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF))
"""NVML_VALUE_NOT_AVAILABLE in 32 and 64 bits, where a call succeeds without a value."""

_IMPOSSIBLE: Final = float("inf")
"""In place of a number that cannot be true: out of the range of every field."""

ROUNDING: Final = 1.02
"""A ratio so little above 1 is 1: SM activity is averaged over clocks that are not sampled at one instant."""


def reason(code: int) -> Reason:
    """Why there is no value, from an NVML return code."""
    return _REASON.get(code, "error")


def reading(reply: Reply | None, factor: float) -> Reading:
    """A reply in the catalogue's unit; a blank all-ones value or a text is absent(error), a missing reply absent(not_supported)."""
    match reply:
        case None:
            return ABSENT["not_supported"]
        case Failed(code):
            return ABSENT[reason(code)]
        case Count32(value):
            return value * factor
        case str():
            return ABSENT["error"]
        case _:
            if reply in BLANKS:
                return ABSENT["error"]
            return reply if factor == 1 else reply * factor


def refuse_impossible_memory(replies: Replies) -> None:
    """More memory in use than there is becomes absent(out_of_range); tools that showed it: 47.98 of 23.99 GiB (gpustack#4703)."""
    used, total = replies.get("memory_used_bytes"), replies.get("memory_total_bytes")
    if isinstance(used, int) and isinstance(total, int) and used > total and used not in BLANKS:
        replies["memory_used_bytes"] = _IMPOSSIBLE


def percent(reply: Reply | None, factor: float = 1e-2) -> Reading:
    """A reply in percent as a ratio; 4294967295 and 200000 % are nothing a card can do: absent(out_of_range) (DCGM issue 199)."""
    if isinstance(reply, int) and reply in BLANKS:
        return ABSENT["out_of_range"]
    return reading(reply, factor)


def active(reply: Reply | None) -> Reading:
    """An activity in percent as a ratio, a little above 1 taken as 1."""
    value = percent(reply)
    return 1.0 if isinstance(value, float) and 1.0 < value <= ROUNDING else value


def lost(replies: Mapping[str, Reply]) -> bool:
    """Whether any reply says that the device is gone or does not work before a reset."""
    return any(reply.code in LOST for reply in replies.values() if reply.__class__ is Failed)


def dead(replies: Replies) -> int | None:
    """The one code that every reply has; None where something answered or the codes differ."""
    code: int | None = None
    for reply in replies.values():
        if not isinstance(reply, Failed) or reply.code != (code or reply.code):
            return None
        code = reply.code
    return code


def all_absent(uid: str, index: int, why: Reason, *, slow: bool = True, but: Collection[str] = ()) -> SampleBuilder:
    """Every field, or every fast one, absent for one reason; those of `but` are not said."""
    builder = SampleBuilder(uid, index)
    for name in _EVERY if slow else _FAST:
        if name not in but:
            builder.absent(name, why)
    return builder


def first(sources: tuple[tuple[str, float], ...], replies: Replies) -> Reading:
    """The first of several replies that is a value; else the reason that says most."""
    answers = [reading(replies.get(reply), factor) for reply, factor in sources]
    for answer in answers:
        if not isinstance(answer, Absent):
            return answer
    return next((a for a in answers if isinstance(a, Absent) and a.reason != "not_supported"), answers[0])
