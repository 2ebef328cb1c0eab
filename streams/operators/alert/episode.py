"""One episode of an alert: how a finding begins it, goes into it, and what the passing of time makes of it.

The state is the AlertState message itself, so that what is kept on the bus and what is in memory cannot differ.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from schemas.identity import fingerprint
from schemas.telemetry import v1

NEVER_NS: Final = 2**63
_SINCE_NS: Final = 600 * 1_000_000_000
"""How far before its first observation an episode may have begun. Less than the hour of alerts that a restart reads back, so that an
episode's name (fingerprint and start) can never be given a second time."""

PENDING: Final = v1.AlertStatus.ALERT_STATUS_PENDING
FIRING: Final = v1.AlertStatus.ALERT_STATUS_FIRING
RESOLVED: Final = v1.AlertStatus.ALERT_STATUS_RESOLVED


class Due(NamedTuple):
    """What happens next if no finding comes, and at which event time."""

    at_ns: int
    what: Literal["fire", "recover", "lose", "nothing"]


NOTHING: Final = Due(NEVER_NS, "nothing")


def begin(finding: v1.Finding, offset: int, *, closed_at_ns: int) -> v1.AlertState:
    """A pending episode. It starts when the finding says that it did, unless an earlier episode was still on then."""
    observed_at_ns, since_ns = finding.observed_at_ns, finding.since_ns
    plausible = max(closed_at_ns, observed_at_ns - _SINCE_NS) < since_ns <= observed_at_ns
    started_at_ns = since_ns if plausible else observed_at_ns
    name = fingerprint(finding.rule, finding.cluster, finding.entity)
    state = v1.AlertState(
        alert=v1.Alert(
            fingerprint=name,
            episode=f"{name}-{started_at_ns}",
            status=PENDING,
            rule=finding.rule,
            cluster=finding.cluster,
            entity=finding.entity,
            started_at_ns=started_at_ns,
            at_ns=started_at_ns,
        )
    )
    take(state, finding, offset)
    return state


def take(state: v1.AlertState, finding: v1.Finding, offset: int) -> None:
    """Bring an episode up to date with a finding.

    What people did to the alert (acknowledgement, verdict, links) stays, and the places by which its incident was found. A finding that
    is no longer active changes the value only: severity, summary and evidence keep telling what was wrong.
    """
    alert = state.alert
    state.last_finding.CopyFrom(finding)
    state.findings_offset = offset
    if finding.HasField("value"):
        alert.value = finding.value
    if not finding.active:
        if not state.HasField("clear_since_ns"):
            state.clear_since_ns = finding.observed_at_ns
        return
    state.ClearField("clear_since_ns")
    state.hold_ns, state.clear_ns = finding.hold_ns, finding.clear_ns
    alert.node, alert.kind, alert.severity = finding.node, finding.kind, finding.severity
    alert.metric, alert.unit, alert.summary, alert.runbook = finding.metric, finding.unit, finding.summary, finding.runbook
    alert.simulated = finding.simulated
    alert.mode = finding.mode or v1.AlertMode.ALERT_MODE_NOTIFY
    if finding.HasField("limit"):
        alert.limit = finding.limit
    places = {name: alert.evidence[name] for name in ("parent", "rack") if name in alert.evidence}
    alert.evidence.clear()
    alert.evidence.update({**places, **finding.evidence})
    # A service that is being restarted holds nothing for a moment: whose trouble it was stays known.
    if finding.HasField("owner"):
        alert.owner.CopyFrom(finding.owner)


def terms(state: v1.AlertState) -> tuple[bool, int, int, int, int]:
    """What decides how an episode goes on and whom it concerns: a change of it is written down at once."""
    return state.HasField("clear_since_ns"), state.hold_ns, state.clear_ns, state.alert.severity, state.alert.mode


def due(state: v1.AlertState, *, keep_firing_ns: int, grace_ns: int, not_lost_before_ns: int) -> Due:
    """What time alone will do to this episode.

    A pending episode fires by itself only as long as its last finding vouches for it: one that expired before the hold was over says
    nothing of that moment. `not_lost_before_ns` spares restored episodes: while nobody watched no signal could come.
    """
    last = state.last_finding
    if state.HasField("clear_since_ns"):
        return Due(state.clear_since_ns + state.clear_ns + keep_firing_ns, "recover")
    lost_at_ns = max(last.valid_until_ns + grace_ns, last.observed_at_ns + 1, not_lost_before_ns)
    lose = Due(lost_at_ns, "lose") if last.valid_until_ns else NOTHING
    fire_at_ns = max(state.alert.started_at_ns + state.hold_ns, last.observed_at_ns if state.hold_ns == 0 else 0)
    if state.alert.status == PENDING and fire_at_ns <= (last.valid_until_ns or NEVER_NS):
        return Due(fire_at_ns, "fire")
    return lose


def fire(state: v1.AlertState, at_ns: int) -> None:
    state.alert.status = state.unpublished = FIRING
    state.alert.fired_at_ns = state.alert.at_ns = at_ns


def resolve(state: v1.AlertState, at_ns: int, reason: v1.ResolveReason) -> None:
    state.alert.status = state.unpublished = RESOLVED
    state.alert.resolved_at_ns = state.alert.at_ns = at_ns
    state.alert.resolve_reason = reason
