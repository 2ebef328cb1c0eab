"""From a prediction to the Forecast that goes on the bus, and its withdrawal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from schemas.identity import device_entity
from schemas.telemetry import v1

if TYPE_CHECKING:
    from forecasting.predict import Prediction

_DEVICE: Final = device_entity("")

WithdrawnReason = Literal["receded", "breached", "recovered", "signal_lost", "reshaped"]
"""receded: less likely now; breached: the limit is crossed, it is no prediction any more; recovered: the level itself fell back;
reshaped: the device was cut up or resized, what it says now is another series."""


@dataclass(frozen=True, slots=True)
class SeriesRef:
    """Which series: a device or a service, the node of a cluster in whose name it is followed, and a metric."""

    cluster: str
    node: str
    entity: str
    metric: str

    @property
    def uid(self) -> str:
        """Of a device; empty for a service."""
        return self.entity.removeprefix(_DEVICE) if self.entity.startswith(_DEVICE) else ""


@dataclass(frozen=True, slots=True)
class Context:
    """What surrounds a prediction: when it was made of what, and how long it stands. `unit` is UCUM, a rate's ends in /min."""

    series: SeriesRef
    unit: str
    made_at_ns: int
    history_until_ns: int
    step_ns: int
    valid_until_ns: int
    limit: float | None
    simulated: bool


def forecast(context: Context, prediction: Prediction) -> v1.Forecast:
    """Breach probability and ETA are set only where they were assessed: absent is not zero. ETA counts from history_until_ns."""
    message = _head(context)
    message.model = prediction.model
    message.history_points = prediction.points
    message.current = prediction.current
    message.p05[:] = prediction.p05.tolist()
    message.p50[:] = prediction.p50.tolist()
    message.p95[:] = prediction.p95.tolist()
    if prediction.mase is not None:
        message.backtest_mase = prediction.mase
    if (found := prediction.crossing) is not None:
        step_seconds = context.step_ns / 1e9
        message.breach_probability_ratio = found.probability
        if found.p10_steps is not None:
            message.eta_p10_seconds = found.p10_steps * step_seconds
        if found.p50_steps is not None:
            message.eta_p50_seconds = found.p50_steps * step_seconds
        if found.p90_steps is not None:
            message.eta_p90_seconds = found.p90_steps * step_seconds
    return message


def withdrawal(context: Context, reason: WithdrawnReason, current: float | None) -> v1.Forecast:
    """Takes back what was said of a series; it has no points."""
    message = _head(context)
    message.withdrawn = True
    message.withdrawn_reason = reason
    if current is not None:
        message.current = current
    return message


def _head(context: Context) -> v1.Forecast:
    series = context.series
    message = v1.Forecast(
        cluster=series.cluster,
        node=series.node,
        entity=series.entity,
        uid=series.uid,
        metric=series.metric,
        unit=context.unit,
        made_at_ns=context.made_at_ns,
        history_until_ns=context.history_until_ns,
        step_ns=context.step_ns,
        valid_until_ns=context.valid_until_ns,
        simulated=context.simulated,
    )
    if context.limit is not None:
        message.limit = context.limit
    return message
