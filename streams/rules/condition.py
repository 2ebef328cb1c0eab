"""The ways in which something can be odd: one frozen model per `type`, told apart by it."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from schemas.section import Section
from streams.rules.vocabulary import (
    THROTTLE_BITS,
    AnyMetric,
    Bit,
    BitSet,
    Counter,
    DeviceMetric,
    EventClass,
    EventKind,
    EventSeverity,
    Gauge,
    PeerMetric,
)


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
    metric: AnyMetric
    within_seconds: float = Field(gt=0)
    """The median time to the crossing must be within this."""

    direction: Literal["above", "below"] = "above"
    """On which side of the limit it hurts, as for the target in `forecasting.targets`."""

    probability_ratio: float = Field(default=0.5, gt=0, le=1)
    clear_probability_ratio: float = Field(default=0.3, ge=0, le=1)

    @model_validator(mode="after")
    def _hysteresis(self) -> Forecasted:
        if self.clear_probability_ratio > self.probability_ratio:
            raise ValueError("clear_probability_ratio lies above probability_ratio; put it below")
        return self


class _Scored(Section):
    """Judged by a detector. Scores are 0-1, and 0.5 is the boundary of every one of them."""

    score: float = Field(default=0.5, gt=0, lt=1)
    """Where it becomes odd."""

    clear_score: float = Field(default=0.35, ge=0, lt=1)
    """Where it stops being odd."""

    @model_validator(mode="after")
    def _hysteresis(self) -> Self:
        if self.clear_score > self.score:
            raise ValueError("clear_score lies above score; put it below")
        return self


class Anomalous(_Scored):
    """At least one of the metrics is far from what it usually is."""

    type: Literal["anomaly"]
    metrics: tuple[DeviceMetric, ...] = Field(min_length=1)


class Bursting(_Scored):
    """At least one of the counters grows as its own past makes very unlikely."""

    type: Literal["burst"]
    counters: tuple[Counter, ...] = Field(min_length=1)


class Unlike(_Scored):
    """For minutes, at least one of the metrics lies to one side of those of other devices of its kind under like load."""

    type: Literal["peer"]
    metrics: tuple[PeerMetric, ...] = Field(min_length=1)
    side: Literal["below", "above"]
    """On which side of the others it is odd."""

    among: Literal["node", "model"] = "node"
    """The others: of the same node, or of the same model anywhere in the cluster, for what the node itself does not show."""


class Residual(_Scored):
    """The metrics, each of which may look well, do not go together as they do on the other devices of its model in the node."""

    type: Literal["residual"]
    metrics: tuple[Gauge, ...] = Field(min_length=4)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if len(set(self.metrics)) != len(self.metrics):
            raise ValueError("a metric is named twice; name each once")
        return self


class Beyond(_Scored):
    """The metric lies above what the load of the device explains, by its own past."""

    type: Literal["beyond_load"]
    metric: Gauge
    load: Gauge
    """What it follows: power, for a temperature."""

    least: float = Field(default=0.0, ge=0)
    """In the unit of the metric: less than so far above what was to be expected is never odd."""

    @model_validator(mode="after")
    def _two(self) -> Self:
        if self.metric == self.load:
            raise ValueError(f"{self.metric} is its own load; name another one")
        return self


class Ghost(Section):
    """The device says that it is busy, with nothing in its memory, and nobody is known to use it."""

    type: Literal["ghost"]
    busy_above: float = Field(default=0.95, gt=0, lt=1)
    """Utilisation above which it is busy."""

    memory_below_bytes: int = Field(default=1 << 30, gt=0)
    """Used memory below which there is nothing in it but the context of a process that is gone."""

    unknown_memory_below_bytes: int = Field(default=1 << 26, gt=0)
    """The same where nobody could say whether a process uses it: below what any process takes."""

    @model_validator(mode="after")
    def _stricter(self) -> Ghost:
        if self.unknown_memory_below_bytes > self.memory_below_bytes:
            raise ValueError("unknown_memory_below_bytes lies above memory_below_bytes; put it below")
        return self


Condition = Annotated[
    Above
    | Below
    | RatioAbove
    | Equals
    | Increases
    | BitsSet
    | Silent
    | Happened
    | Forecasted
    | Anomalous
    | Bursting
    | Unlike
    | Residual
    | Beyond
    | Ghost,
    Field(discriminator="type"),
]

SCORED: Final = (Anomalous, Bursting, Unlike, Residual, Beyond)
"""Judged by a score."""
