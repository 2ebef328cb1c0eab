"""Makes few events of many lines: what is the same on one device within a sliding window is one event with a count, and a symptom is
attached to the error that caused it, whichever of the two came first.

An event is sent at first sight (a symptom a little later, its cause may be on the way) and again, with the same id, when its count has
grown or more is known of it. Time is what the lines and Ticks say, so that batches of any size give the same events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from collectors.nvidia.xid.event import Origin, ended_event, event_id, group_event
from collectors.nvidia.xid.verdict import SEVERITIES, Verdict
from schemas.flow import Tick
from schemas.telemetry import v1
from schemas.xid import FITTING, STRENGTH, Action, Severity

MOST_GROUPS: Final = 1024
MOST_OF_DEVICE: Final = 64
"""Events that may be open at once, in all and of one device; beyond that a device's are told apart by their number only."""

_SWEEP_NS: Final = 500_000_000
_STEP_NS: Final = 60_000_000_000
_NEVER: Final = 1 << 63

Key = tuple[str, str, int, str]
"""Kind, PCI address, number, and what else tells two errors of one number apart (instance, link, unit)."""


@dataclass(frozen=True, slots=True)
class Windows:
    """`together`: the longest silence within one event. `longest`: then a new event begins. `cause`: how far apart cause and symptom
    may be. `hold`: how long a symptom waits for its cause before it is sent. `update`: the least time between two versions."""

    together_ns: int = 300_000_000_000
    longest_ns: int = 3_600_000_000_000
    cause_ns: int = 30_000_000_000
    hold_ns: int = 2_000_000_000
    update_ns: int = 10_000_000_000


class Sighting(NamedTuple):
    """One line that means something. `place` is unique to the line within one boot. `judge` is asked when an event begins."""

    at_ns: int
    place: int
    key: Key
    pid: int | None
    process: str
    gpu_instance: int | None
    compute_instance: int | None
    text: str
    judge: Callable[[], Verdict]


class Named(NamedTuple):
    """Which card has this PCI address; `serial` is the board's, empty where no line said it."""

    bdf: str
    uuid: str
    serial: str = ""


class Ended(NamedTuple):
    """What was said of this device (all, where `bdf` is empty) holds no more."""

    at_ns: int
    place: int
    bdf: str
    kind: str
    code: int | None
    text: str


@dataclass(slots=True)
class Group:
    """One event in the making."""

    key: Key
    id: str
    verdict: Verdict
    action: Action
    severity: Severity
    first_at_ns: int
    last_at_ns: int
    text: str
    pid: int | None
    process: str
    gpu_instance: int | None
    compute_instance: int | None
    pids: list[int] = field(default_factory=list)
    count: int = 1
    sent_count: int = 0
    due_ns: int = 0
    caused_by: str = ""
    raised_by: str = ""

    @property
    def symptom(self) -> bool:
        return self.verdict.follows is not None


Item = Sighting | Named | Ended | Tick


@dataclass(slots=True)
class Groups:
    """State of the operator. `folded` counts lines whose device had too many events open to tell them apart."""

    origin: Origin
    windows: Windows = field(default_factory=Windows)
    open: dict[Key, Group] = field(default_factory=dict)
    cards: dict[str, Named] = field(default_factory=dict)
    clock_ns: int = 0
    due_ns: int = _NEVER
    folded: int = 0
    loose: int = 0
    of_device: Counter[str] = field(default_factory=Counter)
    said: list[v1.DeviceEvent] = field(default_factory=list)


def step(state: Groups, items: Sequence[Item]) -> tuple[Groups, list[v1.DeviceEvent]]:
    """New events, and later versions of known ones."""
    for item in items:
        match item:
            case Sighting():
                _pass(state, item.at_ns)
                _seen(state, item)
            case Tick(at_ns):
                if at_ns + _STEP_NS < state.clock_ns:
                    _set_back(state, at_ns)
                _pass(state, at_ns)
            case Named(bdf):
                if len(state.cards) < MOST_GROUPS or bdf in state.cards:
                    state.cards[bdf] = item
            case Ended():
                _pass(state, item.at_ns)
                _end(state, item)
    said, state.said = state.said, []
    return state, said


def _set_back(state: Groups, at_ns: int) -> None:
    """The clock was set back: what is due must not wait until the old time is reached again."""
    state.clock_ns, state.due_ns = at_ns, 0
    for group in state.open.values():
        group.due_ns = min(group.due_ns, at_ns + state.windows.update_ns)


def _pass(state: Groups, at_ns: int) -> None:
    if at_ns > state.clock_ns:
        state.clock_ns = at_ns
    if state.clock_ns < state.due_ns:
        return
    now, due = state.clock_ns, _NEVER
    for group in list(state.open.values()):
        if group.due_ns <= now and group.count > group.sent_count:
            _say(state, group)
        closes = min(group.last_at_ns + state.windows.together_ns, group.first_at_ns + state.windows.longest_ns)
        if now > closes:
            _close(state, group)
            continue
        due = min(due, closes + 1, group.due_ns if group.count > group.sent_count else _NEVER)
    state.due_ns = max(due, now + _SWEEP_NS) if due < _NEVER else _NEVER


def _seen(state: Groups, s: Sighting) -> None:
    key = s.key
    group = state.open.get(key)
    if group is None and key[3] and state.of_device.get(key[1], 0) >= MOST_OF_DEVICE:
        state.folded += 1
        key = (*key[:3], "")
        group = state.open.get(key)
    if group is not None and s.at_ns <= min(group.last_at_ns + state.windows.together_ns, group.first_at_ns + state.windows.longest_ns):
        if group.count == group.sent_count:
            group.due_ns = max(group.due_ns, state.clock_ns)
            state.due_ns = min(state.due_ns, group.due_ns)
        group.count += 1
        if s.at_ns > group.last_at_ns:
            group.last_at_ns = s.at_ns
        if s.pid is not None and len(group.pids) < 8 and s.pid not in group.pids:
            group.pids.append(s.pid)
        if state.loose and not group.symptom:
            _adopt(state, group)
        return
    if group is not None:
        _close(state, group)
    if len(state.open) >= MOST_GROUPS:
        _close(state, next(iter(state.open.values())))  # the one that began first
    _begin(state, key, s)


def _begin(state: Groups, key: Key, s: Sighting) -> None:
    verdict = s.judge()
    group = Group(
        key=key,
        id=event_id(state.origin, key, s.place),
        verdict=verdict,
        action=verdict.action,
        severity=verdict.severity,
        first_at_ns=s.at_ns,
        last_at_ns=s.at_ns,
        text=s.text,
        pid=s.pid,
        process=s.process,
        gpu_instance=s.gpu_instance,
        compute_instance=s.compute_instance,
        pids=[] if s.pid is None else [s.pid],
    )
    state.open[key] = group
    state.of_device[key[1]] += 1
    group.due_ns = state.clock_ns
    if group.symptom:
        state.loose += 1
        group.due_ns = state.clock_ns + state.windows.hold_ns
        cause = _cause(state, group)
        if cause is not None:
            _attach(state, group, cause)
    _together(state, group)
    if group.due_ns <= state.clock_ns:
        _say(state, group)
    else:
        state.due_ns = min(state.due_ns, group.due_ns)
    state.due_ns = min(state.due_ns, s.at_ns + state.windows.together_ns + 1)
    if state.loose:
        _adopt(state, group)


def _fits(state: Groups, symptom: Group, cause: Group) -> bool:
    """Whether `cause` may have caused `symptom`. A symptom that names no device may be of any device that is in a critical state."""
    follows, (kind, bdf, code, _) = symptom.verdict.follows, cause.key
    if follows is None or cause is symptom or kind != "xid" or symptom.key[1] not in (bdf, ""):
        return False
    if max(symptom.first_at_ns, cause.first_at_ns) - min(symptom.last_at_ns, cause.last_at_ns) > state.windows.cause_ns:
        return False
    if follows:
        return code in follows
    return cause.verdict.event_class not in ("follows_another", "informational") and (symptom.key[1] != "" or cause.severity == "critical")


def _cause(state: Groups, symptom: Group) -> Group | None:
    """The likeliest: of the same instance first, then the worst, then the nearest in time."""
    found = [group for group in state.open.values() if _fits(state, symptom, group)]
    return max(
        found,
        key=lambda g: (
            g.gpu_instance == symptom.gpu_instance,
            SEVERITIES.index(g.severity),
            -abs(symptom.last_at_ns - g.last_at_ns),
            g.first_at_ns,
            g.id,
        ),
        default=None,
    )


def _attach(state: Groups, symptom: Group, cause: Group) -> None:
    if not symptom.caused_by:
        state.loose -= 1
    symptom.caused_by = cause.caused_by or cause.id
    symptom.due_ns = state.clock_ns
    root = cause if not cause.caused_by else next((g for g in state.open.values() if g.id == cause.caused_by), cause)
    carried = symptom.verdict.carries or symptom.verdict.action if symptom.key[0] == "xid" else None
    if carried is not None:
        _raise(state, root, carried, symptom.id)
    for group in state.open.values():
        if group.caused_by == symptom.id:
            group.caused_by = symptom.caused_by
            if group.sent_count:
                _say(state, group)


def _adopt(state: Groups, cause: Group) -> None:
    """Symptoms that came before their cause, or before its latest line."""
    for group in list(state.open.values()):
        if group.symptom and not group.caused_by and _fits(state, group, cause) and cause.caused_by != group.id:
            _attach(state, group, cause)
            _say(state, group)


def _together(state: Groups, group: Group) -> None:
    """Two numbers at about the same time may ask for something else than one of them alone."""
    for other in list(state.open.values()):
        if other.key[1] != group.key[1] or abs(other.last_at_ns - group.last_at_ns) > state.windows.cause_ns:
            continue
        for one, two in ((group, other), (other, group)):
            for code, action in one.verdict.together_with:
                if code == two.key[2] and not one.raised_by:
                    one.action, one.raised_by = action, two.id
                    if one.sent_count:
                        _say(state, one)


def _raise(state: Groups, group: Group, action: Action, by: str) -> None:
    """The stronger of two actions, and a severity that fits it; said at once where the event is already out."""
    if STRENGTH[action] <= STRENGTH[group.action]:
        return
    group.action, group.raised_by = action, by
    if group.severity not in FITTING[action]:
        group.severity = min(FITTING[action], key=SEVERITIES.index)
    if group.sent_count:
        _say(state, group)


def _say(state: Groups, group: Group) -> None:
    group.sent_count = group.count
    group.due_ns = state.clock_ns + state.windows.update_ns
    state.said.append(group_event(state.origin, group, state.cards.get(group.key[1])))


def _close(state: Groups, group: Group) -> None:
    if group.count > group.sent_count:
        _say(state, group)
    if group.symptom and not group.caused_by:
        state.loose -= 1
    del state.open[group.key]
    state.of_device[group.key[1]] -= 1
    if not state.of_device[group.key[1]]:
        del state.of_device[group.key[1]]


def _end(state: Groups, ended: Ended) -> None:
    for group in list(state.open.values()):
        if not ended.bdf or group.key[1] in (ended.bdf, ""):
            _close(state, group)
    state.said.append(ended_event(state.origin, ended, state.cards.get(ended.bdf)))
