"""What the live screen shows, as plain values: taken from the store, the tally and the supervisor, with nothing of Rich in it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from schemas.telemetry import v1
from schemas.values import name_of

if TYPE_CHECKING:
    from schemas.store import Latest, Store
    from xpulse.local.child import Child
    from xpulse.local.status import RoleStatus
    from xpulse.local.tally import Tally

STALE_NS = 15_000_000_000
LOOK_BACK_NS = 180_000_000_000


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """One device. None is "not known", shown as such and never as 0."""

    cluster: str
    node: str
    index: int | None
    uid: str
    model: str
    owner: str
    utilization_ratio: float | None
    memory_used_bytes: float | None
    memory_total_bytes: float | None
    temperature_celsius: float | None
    power_watts: float | None
    age_seconds: float


Devices = Mapping[tuple[str, str], DeviceRow]
"""By (cluster, uid): two clusters may have equal node names, and with them equal uids."""


@dataclass(frozen=True, slots=True)
class AlertRow:
    """The gravest open alert of an incident, and how many others of it are open."""

    severity: str
    rule: str
    where: str
    owner: str
    summary: str
    age_seconds: float
    others: int = 0
    incident: str = ""


@dataclass(frozen=True, slots=True)
class ForecastRow:
    where: str
    metric: str
    eta: str
    """As shown."""
    eta_seconds: float
    """Infinite where it is not known."""
    probability_ratio: float
    model: str


@dataclass(frozen=True, slots=True)
class StageRow:
    """One role: rate is records taken in per second over the last interval; None while it says nothing."""

    role: str
    state: str
    per_second: float | None
    lag: int | None
    restarts: int
    dead_letters: int


@dataclass(frozen=True, slots=True)
class Screen:
    cluster: str
    simulated: bool
    seconds: float
    devices: Sequence[DeviceRow]
    alerts: Sequence[AlertRow]
    forecasts: Sequence[ForecastRow]
    stages: Sequence[StageRow]
    resolved_total: int
    notes: Sequence[str]
    memory_bytes: int


def device_rows(store: Store, now_ns: int) -> list[DeviceRow]:
    """The devices the store heard of lately, in the order people count them."""
    owners: dict[tuple[str, str], str] = {}
    for row in sorted(store.latest("usage", since_ns=now_ns - LOOK_BACK_NS), key=lambda r: r.at_ns):
        tags = dict(row.tags)
        owners[(tags.get("cluster", ""), tags.get("uid", ""))] = (
            "/".join(p for p in (tags.get("namespace", ""), tags.get("workload", "")) if p) or "idle"
        )
    rows = [_device(row, owners, now_ns) for row in store.latest("device", since_ns=now_ns - LOOK_BACK_NS)]
    return sorted(rows, key=lambda r: (r.cluster, r.node, -1 if r.index is None else r.index, r.uid))


def _device(row: Latest, owners: Mapping[tuple[str, str], str], now_ns: int) -> DeviceRow:
    tags = dict(row.tags)

    def number(name: str) -> float | None:
        found = row.values.get(name)
        if found is None or isinstance(found[0], str):
            return None
        slow = name == "memory_total_bytes"
        return None if now_ns - found[1] > (LOOK_BACK_NS if slow else STALE_NS) else float(found[0])

    return DeviceRow(
        cluster=tags.get("cluster", ""),
        node=tags.get("node", ""),
        index=int(row.values["index"][0]) if "index" in row.values else None,
        uid=tags.get("uid", ""),
        model=tags.get("model", ""),
        owner=owners.get((tags.get("cluster", ""), tags.get("uid", "")), ""),
        utilization_ratio=number("utilization_ratio"),
        memory_used_bytes=number("memory_used_bytes"),
        memory_total_bytes=number("memory_total_bytes"),
        temperature_celsius=number("temperature_celsius"),
        power_watts=number("power_watts"),
        age_seconds=(now_ns - row.at_ns) / 1e9,
    )


def alert_rows(tally: Tally, now_ns: int, devices: Devices) -> list[AlertRow]:
    """A row per incident, the gravest and then the newest first. Of its alerts the gravest stands for it, and of those the leader."""
    incidents: dict[str, list[v1.Alert]] = {}
    for alert in tally.alerts.values():
        incidents.setdefault(alert.incident or alert.episode, []).append(alert)
    shown = [
        (min(alerts, key=lambda a: (-a.severity, a.episode != name, a.at_ns)), len(alerts) - 1, name) for name, alerts in incidents.items()
    ]
    rows = []
    for alert, others, name in sorted(shown, key=lambda row: (-row[0].severity, -row[0].at_ns)):
        owner = alert.owner
        rows.append(
            AlertRow(
                severity=name_of(v1.Severity.DESCRIPTOR, alert.severity),
                rule=alert.rule,
                where=place(alert.cluster, alert.entity, alert.node, devices),
                owner="/".join(p for p in (owner.namespace, owner.workload or owner.pod) if p),
                summary=alert.summary,
                age_seconds=max(0.0, (now_ns - alert.started_at_ns) / 1e9),
                others=others,
                incident=name,
            )
        )
    return rows


def forecast_rows(tally: Tally, devices: Devices, now_ns: int) -> list[ForecastRow]:
    """Standing forecasts that cross a limit, the nearest first."""
    rows = []
    for forecast in tally.forecasts.values():
        if not forecast.HasField("limit") or forecast.breach_probability_ratio < 0.5 or forecast.valid_until_ns < now_ns:
            continue
        passed = (now_ns - forecast.history_until_ns) / 1e9
        seconds = max(0.0, forecast.eta_p50_seconds - passed) if forecast.HasField("eta_p50_seconds") else math.inf
        eta = f"{seconds:.0f} s" if seconds < math.inf else "unknown"
        rows.append(
            ForecastRow(
                where=place(forecast.cluster, forecast.entity, forecast.node, devices),
                metric=forecast.metric,
                eta=eta,
                eta_seconds=seconds,
                probability_ratio=forecast.breach_probability_ratio,
                model=forecast.model,
            )
        )
    return sorted(rows, key=lambda r: r.eta_seconds)


def place(cluster: str, entity: str, node: str, devices: Devices) -> str:
    """`node #3` where the device is known, else the entity as written."""
    found = devices.get((cluster, entity.removeprefix("device/")))
    return f"{found.node} #{'?' if found.index is None else found.index}" if found else (node if entity.startswith("node/") else entity)


def stage_rows(
    children: Sequence[Child],
    statuses: Mapping[str, RoleStatus | None],
    before: Mapping[str, tuple[float, int]],
    now: float,
) -> list[StageRow]:
    """`before[role]` is (monotonic seconds, processed_total) of the earlier look that the rate is taken against."""
    rows = []
    for child in children:
        status = statuses.get(child.spec.name)
        rate = None
        if status and child.spec.name in before:
            then, count = before[child.spec.name]
            rate = max(0.0, (status.processed_total - count) / (now - then)) if now > then else None
        ready = child.spec.name == "bus" or (
            status is not None and status.ready
        )  # the bus has no endpoint: it serves once it has said where
        state = child.state if child.state != "running" else ("ready" if ready else "starting")
        rows.append(
            StageRow(
                role=child.spec.name,
                state=state,
                per_second=rate,
                lag=status.lag if status else None,
                restarts=child.restarts,
                dead_letters=status.dead_letters_total if status else 0,
            )
        )
    return rows
