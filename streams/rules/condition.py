"""The ways in which something can be odd: one frozen model per `type`, told apart by it."""

from __future__ import annotations

import difflib
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from schemas.catalogue import BY_NAME, metric
from schemas.section import Section
from schemas.telemetry import v1

SERVICE_METRICS: Final = {"requests_running": "{request}", "requests_waiting": "{request}", "kv_cache_used_ratio": "1"}
"""Gauges of an InferenceWindow that a service rule may look at, and their units."""

EVENT_KINDS: Final = {
    n.removeprefix("DEVICE_EVENT_KIND_").lower(): v
    for n, v in v1.DeviceEventKind.items()
    if v != v1.DeviceEventKind.DEVICE_EVENT_KIND_UNSPECIFIED
}
EVENT_CLASSES: Final = {
    n.removeprefix("EVENT_CLASS_").lower(): v for n, v in v1.EventClass.items() if v != v1.EventClass.EVENT_CLASS_UNSPECIFIED
}
EVENT_SEVERITIES: Final = {n.removeprefix("SEVERITY_").lower(): v for n, v in v1.Severity.items() if v != v1.Severity.SEVERITY_UNSPECIFIED}
THROTTLE_BITS: Final = {n.removeprefix("THROTTLE_REASON_").lower(): v for n, v in v1.ThrottleReason.items()}


def _nearest(name: str, names: Any) -> str:
    near = difflib.get_close_matches(name, names, n=3)
    return f"nearest: {', '.join(near)}" if near else f"one of: {', '.join(sorted(names))}"


def _any_metric(name: str) -> str:
    if name not in SERVICE_METRICS:
        try:
            metric(name)
        except KeyError as error:
            raise ValueError(error.args[0]) from None
    return name


def _metric_of_kind(kind: str) -> AfterValidator:
    def check(name: str) -> str:
        if metric(name).kind != kind:
            fit = ", ".join(m.name for m in BY_NAME.values() if m.kind == kind)
            raise ValueError(f"{name} is a {metric(name).kind}, this condition needs a {kind}: {fit}")
        return name

    return AfterValidator(check)


def _device_metric(name: str) -> str:
    try:
        return metric(name).name
    except KeyError as error:
        raise ValueError(error.args[0]) from None


def _event_kind(name: str) -> str:
    if name not in EVENT_KINDS:
        raise ValueError(f"no device event {name!r}; {_nearest(name, EVENT_KINDS)}")
    return name


def _event_class(name: str) -> str:
    if name not in EVENT_CLASSES:
        raise ValueError(f"no event class {name!r}; {_nearest(name, EVENT_CLASSES)}")
    return name


def _event_severity(name: str) -> str:
    if name not in EVENT_SEVERITIES:
        raise ValueError(f"no severity {name!r}; {_nearest(name, EVENT_SEVERITIES)}")
    return name


def _throttle_bit(name: str) -> str:
    if name not in THROTTLE_BITS:
        raise ValueError(f"no throttle reason {name!r}; {_nearest(name, THROTTLE_BITS)}")
    return name


AnyMetric = Annotated[str, AfterValidator(_any_metric)]
DeviceMetric = Annotated[str, AfterValidator(_device_metric)]
Counter = Annotated[DeviceMetric, _metric_of_kind("counter")]
BitSet = Annotated[DeviceMetric, _metric_of_kind("set")]
EventKind = Annotated[str, AfterValidator(_event_kind)]
EventClass = Annotated[str, AfterValidator(_event_class)]
EventSeverity = Annotated[str, AfterValidator(_event_severity)]
Bit = Annotated[str, AfterValidator(_throttle_bit)]


class Limit(Section):
    """A number, or `times` × another metric of the same device `plus` a number."""

    of: DeviceMetric | None = None
    """The other metric; none makes the limit the number `plus`."""

    times: float = Field(default=1.0, allow_inf_nan=False)
    """What the other metric is multiplied with."""

    plus: float = Field(default=0.0, allow_inf_nan=False)
    """What is added."""


def _limit(value: object) -> object:
    # YAML: `limit: 85` is short for `limit: {plus: 85}`
    return {"plus": value} if isinstance(value, int | float) and not isinstance(value, bool) else value


LimitOrNumber = Annotated[Limit, BeforeValidator(_limit)]


class Guard(Section):
    """A second metric that must be above a number for the rule to fire; it is not asked for the rule to stay or to clear."""

    metric: DeviceMetric
    """The metric that is looked at."""

    above: float = Field(allow_inf_nan=False)
    """The number it must be above."""


class _Beyond(Section):
    metric: AnyMetric
    """What is compared."""

    limit: LimitOrNumber
    """Where it becomes odd."""

    clear_limit: LimitOrNumber | None = None
    """Where it stops being odd; the limit where not given."""

    guard: Guard | None = None
    """What must hold too for it to fire."""

    @property
    def clear(self) -> Limit:
        return self.limit if self.clear_limit is None else self.clear_limit

    def _check_clear(self, sign: int) -> None:
        same = self.limit.of == self.clear.of and self.limit.times == self.clear.times
        plus_beyond = same and sign * (self.clear.plus - self.limit.plus) > 0
        times_beyond = (
            self.limit.of == self.clear.of and self.limit.plus == self.clear.plus and sign * (self.clear.times - self.limit.times) > 0
        )
        if plus_beyond or times_beyond:
            raise ValueError(
                f"clear_limit lies beyond limit, so the rule would clear while it fires; put it {'below' if sign > 0 else 'above'}"
            )


class Above(_Beyond):
    """The metric is above the limit."""

    type: Literal["above"]

    @model_validator(mode="after")
    def _hysteresis(self) -> Above:
        self._check_clear(1)
        return self


class Below(_Beyond):
    """The metric is below the limit."""

    type: Literal["below"]

    @model_validator(mode="after")
    def _hysteresis(self) -> Below:
        self._check_clear(-1)
        return self


class RatioAbove(Section):
    """The metric is above a share of another one."""

    type: Literal["ratio_above"]
    metric: DeviceMetric
    of: DeviceMetric
    limit: float = Field(gt=0, allow_inf_nan=False)
    clear_limit: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    guard: Guard | None = None

    @model_validator(mode="after")
    def _hysteresis(self) -> RatioAbove:
        if self.clear_limit is not None and self.clear_limit > self.limit:
            raise ValueError("clear_limit lies beyond limit, so the rule would clear while it fires; put it below")
        return self


class Equals(Section):
    """The metric is exactly this."""

    type: Literal["equals"]
    metric: DeviceMetric
    value: float = Field(allow_inf_nan=False)


class Increases(Section):
    """A counter grew by more than `more_than` within about `within_seconds` (half of it to all of it)."""

    type: Literal["increases"]
    metric: Counter
    more_than: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    within_seconds: float = Field(gt=0, le=86_400)


class BitsSet(Section):
    """At least one of these bits is set."""

    type: Literal["bit_set"]
    metric: BitSet
    bits: tuple[Bit, ...] = Field(min_length=1)

    @property
    def mask(self) -> int:
        return sum(1 << THROTTLE_BITS[b] for b in set(self.bits))


class Silent(Section):
    """A node sent no samples for this long."""

    type: Literal["silent"]
    after_seconds: float | None = Field(default=None, gt=0)
    """Not given: the setting `streams.detect.silence_seconds`."""


class Happened(Section):
    """A device event; it lasts until a clearing event, a fresh sample, or for a time."""

    type: Literal["event"]
    raised_by: tuple[EventKind, ...] = Field(min_length=1)
    codes: tuple[int, ...] = ()
    """Only these vendor codes (Xid numbers); none given takes all."""

    severities: tuple[EventSeverity, ...] = ()
    """Only events of these severities; none given takes all."""

    classes: tuple[EventClass, ...] = ()
    """Only events of these classes (hardware, driver, application ...); none given takes all."""

    seen_at_least: int = Field(default=1, ge=1)
    """Only once the event stands for so many lines of the log."""

    cleared_by: tuple[EventKind, ...] = ()
    cleared_by_sample: bool = False
    """Whether a later sample with a value of the same device clears it."""

    lasts_seconds: float | None = Field(default=None, gt=0)
    """How long it lasts after the last of it, where nothing clears it before. An event that says a shorter time has its way."""

    @model_validator(mode="after")
    def _ends(self) -> Happened:
        if not (self.cleared_by or self.cleared_by_sample or self.lasts_seconds):
            raise ValueError("this would never clear; give cleared_by, cleared_by_sample: true or lasts_seconds")
        return self


class Forecasted(Section):
    """The newest forecast of this metric crosses its limit soon, and has not done so yet."""

    type: Literal["forecast"]
    metric: DeviceMetric
    within_seconds: float = Field(gt=0)
    """The median time to the crossing must be within this."""

    probability_ratio: float = Field(default=0.5, gt=0, le=1)
    clear_probability_ratio: float = Field(default=0.3, ge=0, le=1)

    @model_validator(mode="after")
    def _hysteresis(self) -> Forecasted:
        if self.clear_probability_ratio > self.probability_ratio:
            raise ValueError("clear_probability_ratio lies above probability_ratio; put it below")
        return self


class Anomalous(Section):
    """At least one of the metrics is far from what it usually is; scores are 0-1 and 0.5 is the boundary."""

    type: Literal["anomaly"]
    metrics: tuple[DeviceMetric, ...] = Field(min_length=1)
    score: float = Field(default=0.5, gt=0, lt=1)
    clear_score: float = Field(default=0.35, ge=0, lt=1)

    @model_validator(mode="after")
    def _hysteresis(self) -> Anomalous:
        if self.clear_score > self.score:
            raise ValueError("clear_score lies above score; put it below")
        return self


Condition = Annotated[
    Above | Below | RatioAbove | Equals | Increases | BitsSet | Silent | Happened | Forecasted | Anomalous, Field(discriminator="type")
]
