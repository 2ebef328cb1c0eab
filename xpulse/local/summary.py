"""What a run without a screen leaves behind: one JSON object that says what went through, what is missing, and what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xpulse.local.tally import Epoch, Tally

if TYPE_CHECKING:
    from schemas.store import Store
    from xpulse.local.child import Child

_MARGIN_NS = 1_000_000_000


def not_stored(tally: Tally, store: Store) -> dict[Epoch, list[int]]:
    """Sequences whose batch is not whole in the store: for each of its devices a point at the batch's time with its sequence."""
    times = [taken.taken_at_ns for seen in tally.published.values() for taken in seen.values()]
    if not times:
        return {}
    stored: set[tuple[str, str, str, int, int]] = set()
    for series in store.range("device", ["seq"], start_ns=min(times) - _MARGIN_NS, end_ns=max(times) + _MARGIN_NS):
        tags = dict(series.tags)
        for at_ns, sequence in zip(series.times_ns.tolist(), series.values.tolist(), strict=True):
            stored.add((tags["cluster"], tags["node"], tags["uid"], at_ns, int(sequence)))
    missing: dict[Epoch, list[int]] = {}
    for epoch, seen in tally.published.items():
        lost = [
            sequence
            for sequence, taken in seen.items()
            if any((epoch.cluster, epoch.node, uid, taken.taken_at_ns, sequence) not in stored for uid in taken.uids)
        ]
        if lost:
            missing[epoch] = sorted(lost)
    return missing


def unacknowledged_tails(tally: Tally, graceful: bool) -> list[dict[str, Any]]:
    """Epochs that were followed by another of the same source, or ended with the run uncleanly: what they took after their last sequence on
    the bus was never acknowledged, and nobody can say how much it was."""
    newest: dict[tuple[str, str, str], int] = {}
    for epoch in tally.published:
        key = epoch[:3]
        newest[key] = max(newest.get(key, 0), epoch.agent_epoch)
    return [
        {**epoch._asdict(), "last_sequence": max(seen)}
        for epoch, seen in tally.published.items()
        if epoch.agent_epoch != newest[epoch[:3]] or not graceful
    ]


def summarise(
    tally: Tally,
    *,
    missing: Mapping[Epoch, Sequence[int]],
    children: Sequence[Child],
    seconds_to_first_row: float | None,
    seconds: float,
    started_at_ns: int,
    simulated: bool,
    seed: int | None,
    faults: Sequence[str],
    bus_restarts: int = 0,
) -> dict[str, Any]:
    """The summary's JSON. `missing_total` counts batches not in the store plus gaps inside an epoch."""
    gaps = tally.gaps()
    stored = tally.published_total() - sum(len(s) for s in missing.values())
    joined = len(tally.joined & {(e, s) for e, seen in tally.published.items() for s in seen})
    return {
        "seconds": round(seconds, 1),
        "simulated": simulated,
        "seed": seed,
        "faults": list(faults),
        "seconds_to_first_row": None if seconds_to_first_row is None else round(seconds_to_first_row, 2),
        "samples": {
            "published": tally.published_total(),
            "device_samples": tally.device_samples,
            "repeated": tally.repeated,
            "joined": joined,
            "stored": stored,
            "missing": sum(len(s) for s in missing.values()) + sum(len(s) for s in gaps.values()),
            "not_stored": [{**e._asdict(), "sequences": list(s)} for e, s in missing.items()],
            "gaps": [{**e._asdict(), "sequences": s} for e, s in gaps.items()],
            "unacknowledged_tails": unacknowledged_tails(tally, graceful=True),
            "owners": dict(tally.owners),
        },
        "findings": _by_rule(tally.findings),
        "alerts": _by_rule(tally.transitions),
        "alerts_doubled": [list(key) for key in tally.doubled()],
        "alert_timeline": [
            {"at_seconds": round((at - started_at_ns) / 1e9, 1), "rule": rule, "entity": entity, "status": status}
            for at, rule, entity, status in tally.timeline
        ],
        "forecasts": {"breaches": {f"{e} {m}": n for (e, m), n in tally.forecast_breaches.items()}},
        "dlq": [{"group": g, "reason": r, "count": n} for (g, r), n in tally.dead_letters.items()],
        "malformed": dict(tally.malformed),
        "restarts": {c.spec.name: c.restarts for c in children if c.restarts},
        "bus_restarts": bus_restarts,
        "exits": {c.spec.name: c.exits for c in children if c.exits},
        "peak_memory_bytes": {c.spec.name: c.peak_pss_bytes for c in children},
        "peak_memory_total_bytes": sum(c.peak_pss_bytes for c in children),
    }


def _by_rule(counts: Mapping[tuple[str, str, str], int]) -> dict[str, dict[str, dict[str, int]]]:
    found: dict[str, dict[str, dict[str, int]]] = {}
    for (rule, entity, status), count in sorted(counts.items()):
        found.setdefault(rule, {}).setdefault(entity, {})[status] = count
    return found
