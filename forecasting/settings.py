"""Settings of the forecaster: the grid, which series are followed towards which limits, and when a forecast is worth a word."""

from __future__ import annotations

from collections import Counter

from pydantic import Field, model_validator

from forecasting.targets import BUILT_IN, Target
from schemas.section import Section


class Forecasting(Section):
    """The forecaster: damped trends are blind beyond about 50 steps, so the step is chosen such that the horizon is 30."""

    step_seconds: float = Field(default=60.0, gt=0)
    """Distance between two points of a series; the newest value within a step stands for it."""

    horizon_steps: int = Field(default=30, ge=1, le=500)
    """How many steps are forecast."""

    history_steps: int = Field(default=240, ge=16, le=10_000)
    """How many steps are kept per series, in memory."""

    min_history_steps: int = Field(default=20, ge=8)
    """A series with fewer steps since its start or its last change of level is not forecast."""

    min_trend_steps: int = Field(default=8, ge=6)
    """A rise must have lasted this long before it is taken for a trend."""

    reach_ratio: float = Field(default=3.0, gt=0)
    """A trend is believed for at most this many times as long as it has been seen."""

    fastest_fill_seconds: float = Field(default=600.0, gt=0)
    """A rise that would go from nothing to the limit in less than this is an allocation (a model being loaded), not a leak."""

    max_gap_steps: int = Field(default=5, ge=0)
    """Gaps up to this are bridged; what lies before a longer one is left out."""

    lost_steps: int = Field(default=3, ge=1)
    """After this many steps without a value (and past the metric's max_age) the signal is lost: nothing is forecast from it."""

    every_seconds: float = Field(default=60.0, gt=0)
    """How often a round is made, in event time."""

    plain_every_rounds: int = Field(default=5, ge=1)
    """Each how manieth round the forecasts of series that threaten nothing are published too."""

    workers: int = Field(default=1, ge=0, le=64)
    """Processes that fit models; 0 fits inside the forecaster and blocks it meanwhile."""

    chunk_series: int = Field(default=64, ge=1)
    """Most series handed to a worker at once."""

    worker_timeout_seconds: float = Field(default=120.0, gt=0)
    """A worker that takes longer over one chunk is replaced."""

    paths: int = Field(default=400, ge=100, le=10_000)
    """Simulated futures per series: intervals, breach probability and ETA are read from them."""

    raise_probability_ratio: float = Field(default=0.5, gt=0, le=1)
    """A breach at least this likely within the horizon is said."""

    raise_rounds: int = Field(default=2, ge=1)
    """For how many rounds in a row it must be that likely before it is said."""

    recede_probability_ratio: float = Field(default=0.3, ge=0, lt=1)
    """A breach less likely than this has receded."""

    recede_rounds: int = Field(default=2, ge=1)
    """For how many rounds in a row it must have receded before it is withdrawn."""

    valid_rounds: int = Field(default=4, ge=2)
    """For how many rounds a forecast stands without being repeated."""

    max_series: int = Field(default=200_000, ge=1)
    """Most series in one process; those of further devices are counted and left out."""

    targets: tuple[Target, ...] = BUILT_IN
    """What is forecast."""

    @model_validator(mode="after")
    def _fits(self) -> Forecasting:
        if self.min_history_steps > self.history_steps:
            raise ValueError(f"min_history_steps ({self.min_history_steps}) is more than history_steps ({self.history_steps})")
        if self.min_trend_steps > self.min_history_steps:
            raise ValueError(f"min_trend_steps ({self.min_trend_steps}) is more than min_history_steps ({self.min_history_steps})")
        if self.recede_probability_ratio >= self.raise_probability_ratio:
            raise ValueError("recede_probability_ratio must be less than raise_probability_ratio, or forecasts flap")
        if not self.targets:
            raise ValueError("targets is empty: name at least one metric, or do not start the forecaster")
        twice = [name for name, times in Counter(target.metric for target in self.targets).items() if times > 1]
        if twice:
            raise ValueError(f"targets names {', '.join(twice)} more than once: a metric has one limit")
        return self

    @property
    def step_ns(self) -> int:
        return round(self.step_seconds * 1e9)

    def of_steps(self) -> list[Forecasting]:
        """These settings once for each length of step, with its targets; what has a longer step is looked at less often."""
        steps = sorted({target.step_seconds or self.step_seconds for target in self.targets})
        return [self._of_step(step) for step in steps]

    def _of_step(self, step_seconds: float) -> Forecasting:
        targets = tuple(t for t in self.targets if (t.step_seconds or self.step_seconds) == step_seconds)
        changed = {
            "targets": targets,
            "step_seconds": step_seconds,
            "every_seconds": max(self.every_seconds, step_seconds * self.every_seconds / self.step_seconds),
            "max_series": max(len(targets), self.max_series * len(targets) // len(self.targets)),
        }
        return self.model_copy(update=changed)


def demo_profile() -> Forecasting:
    """Settings for runs of a minute or two on simulated devices: a step and a round per second instead of per minute.

    Inference servers are read each ten seconds, so that is the step of services.
    """
    return Forecasting(
        step_seconds=1.0,
        horizon_steps=30,
        history_steps=240,
        min_history_steps=12,
        fastest_fill_seconds=75.0,
        max_gap_steps=5,
        every_seconds=1.0,
        plain_every_rounds=30,
        worker_timeout_seconds=20.0,
        valid_rounds=10,
        targets=tuple(target.model_copy(update={"step_seconds": 10.0}) if target.of_service else target for target in BUILT_IN),
    )
