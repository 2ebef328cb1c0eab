"""Publishes each transition exactly once without transactions: it is first written down as owed, then sent, then crossed off.

A crash leaves the state marked as owing a transition. Whoever restores it looks whether the alert is there already, sends it if
not, and crosses it off. In between stand barriers: nothing is sent before what precedes it is acknowledged.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from schemas import topics
from schemas.codec import encode, tombstone
from schemas.flow import BARRIER, Emitted, Headers, Out
from schemas.telemetry import v1
from streams.operators.alert.episode import RESOLVED

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Save:
    """Write an open episode down."""

    state: v1.AlertState

    @property
    def fingerprint(self) -> str:
        return self.state.alert.fingerprint


@dataclass(frozen=True, slots=True)
class Drop:
    """Forget a pending episode that never fired."""

    fingerprint: str


@dataclass(frozen=True, slots=True)
class Transition:
    """Publish `state.alert`; `state.unpublished` names the transition."""

    state: v1.AlertState

    @property
    def fingerprint(self) -> str:
        return self.state.alert.fingerprint


Effect = Save | Drop | Transition


def lay_out(effects: Iterable[Effect]) -> list[Emitted]:
    """The messages of effects, with barriers.

    Transitions of different alerts share their barriers, so that a storm of them costs two waits and not two each; a second effect
    on one alert starts anew.
    """
    found: list[Emitted] = []
    round_: dict[str, Effect] = {}
    for effect in effects:
        if effect.fingerprint in round_:
            found += _round(round_.values())
            round_ = {}
        round_[effect.fingerprint] = effect
    return found + _round(round_.values())


def complete(states: Iterable[v1.AlertState]) -> list[Emitted]:
    """The messages that finish transitions whose alert was published already."""
    return [_crossed_off(state) for state in states]


def _round(effects: Iterable[Effect]) -> list[Emitted]:
    first: list[Emitted] = []
    owed: list[v1.AlertState] = []
    for effect in effects:
        if isinstance(effect, Drop):
            first.append(tombstone(topics.ALERT_STATE, effect.fingerprint.encode()))
        else:
            first.append(_state(effect.state))
            if isinstance(effect, Transition):
                owed.append(effect.state)
    if not owed:
        return first
    return [*first, BARRIER, *(_alert(s.alert) for s in owed), BARRIER, *(_crossed_off(s) for s in owed)]


def _state(state: v1.AlertState) -> Out:
    return encode(topics.ALERT_STATE, state.alert.fingerprint.encode(), state)


def _crossed_off(state: v1.AlertState) -> Out:
    if state.unpublished == RESOLVED:
        return tombstone(topics.ALERT_STATE, state.alert.fingerprint.encode())
    done = v1.AlertState()
    done.CopyFrom(state)
    done.ClearField("unpublished")
    return _state(done)


def _alert(alert: v1.Alert) -> Out:
    return encode(topics.ALERTS, alert.fingerprint.encode(), alert, headers=_cloud_event(alert))


def _cloud_event(alert: v1.Alert) -> Headers:
    """CloudEvents attributes in Kafka's binary mode; `ce_id` is the same whenever the transition is sent again."""
    status = v1.AlertStatus.Name(alert.status).removeprefix("ALERT_STATUS_").lower()
    at = datetime.fromtimestamp(alert.at_ns // 1_000_000_000, UTC)
    return (
        ("ce_specversion", b"1.0"),
        ("ce_id", f"{alert.episode}-{status}".encode()),
        ("ce_source", f"/xpulse/{alert.cluster}".encode()),
        ("ce_type", f"xpulse.alert.{status}".encode()),
        ("ce_subject", alert.entity.encode()),
        ("ce_time", f"{at:%Y-%m-%dT%H:%M:%S}.{alert.at_ns % 1_000_000_000:09d}Z".encode()),
    )
