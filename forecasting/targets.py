"""What is forecast: which metric, in which form, towards which limit; and the built-in targets with the source of each limit."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field, field_validator, model_validator

from schemas.catalogue import BY_NAME
from schemas.inference import SERVICE_METRICS, WINDOW_MAX_AGE_NS
from schemas.section import Section

PER_MINUTE: Final = "/min"
"""How the unit of a forecast of a rate ends."""


class Target(Section):
    """One metric that is followed, and the limit beyond which it hurts."""

    metric: str
    """Field of the catalogue, or gauge of an inference service, that is forecast."""

    quantity: Literal["value", "per_minute"] = "value"
    """The value itself, or how much a counter grows per minute."""

    direction: Literal["above", "below"] = "above"
    """On which side of the limit it hurts."""

    limit_metric: str = ""
    """Field of the same device that holds the limit; empty where `limit_value` alone says it."""

    limit_ratio: float = Field(default=1.0, gt=0)
    """The limit is this share of `limit_metric`."""

    limit_value: float | None = None
    """Limit for devices that do not tell their own, in the metric's unit; none means that such a device is forecast without a limit."""

    ceiling_metric: str = ""
    """Field of the same device that the value can never exceed; empty takes the catalogue's maximum."""

    unless_metric: str = ""
    """Not followed on devices that tell this field: another target says the same of them."""

    scale_value: float | None = Field(default=None, gt=0)
    """What the two ratios below are shares of; none takes the limit itself. A limit of zero needs one."""

    guard_ratio: float = Field(default=0.6, ge=0, lt=1)
    """Further from the limit than the rest of this no breach is forecast: far away, most rises end by themselves."""

    resolution_ratio: float = Field(default=0.001, gt=0)
    """Smallest change that means anything: what the device rounds to, or its usual flicker."""

    average_steps: int = Field(default=1, ge=1, le=60)
    """A rate is the mean over this many steps: counts of single minutes are mostly chance."""

    step_seconds: float | None = Field(default=None, gt=0)
    """A step of its own for what moves slowly; none takes the forecaster's."""

    plain: bool = True
    """Whether it is also forecast where nothing threatens; without, only a breach is said."""

    @field_validator("metric")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in BY_NAME and name not in SERVICE_METRICS:
            services = ", ".join(SERVICE_METRICS)
            raise ValueError(f"no metric {name!r} in the catalogue (docs/reference/metrics.md lists them), nor of services ({services})")
        return name

    @field_validator("limit_metric", "ceiling_metric", "unless_metric")
    @classmethod
    def _in_catalogue(cls, name: str) -> str:
        if name and name not in BY_NAME:
            raise ValueError(f"no metric {name!r} in the catalogue (docs/reference/metrics.md lists them)")
        return name

    @model_validator(mode="after")
    def _meant(self) -> Target:
        if self.of_service and (self.limit_metric or self.ceiling_metric or self.unless_metric):
            raise ValueError(f"{self.metric} is of a service: its limit is a number (limit_value), not a field of a device")
        if self.quantity == "per_minute" and (self.of_service or BY_NAME[self.metric].kind != "counter"):
            raise ValueError(f"{self.metric} is no counter: quantity per_minute is for counters")
        if not self.of_service and BY_NAME[self.metric].kind == "set":
            raise ValueError(f"{self.metric} is a set of bits: there is nothing to forecast")
        if self.limit_value == 0 and self.scale_value is None:
            raise ValueError(f"{self.metric}: a limit of 0 needs scale_value, what guard_ratio and resolution_ratio are shares of")
        return self

    @property
    def of_service(self) -> bool:
        """Whether it is read from inference windows and not from samples."""
        return self.metric in SERVICE_METRICS

    @property
    def is_count(self) -> bool:
        """Whether the series is a count that only grows."""
        return not self.of_service and self.quantity == "value" and BY_NAME[self.metric].kind == "counter"

    @property
    def unit(self) -> str:
        """UCUM unit of what is forecast."""
        unit = SERVICE_METRICS[self.metric].unit if self.of_service else BY_NAME[self.metric].unit
        return unit + PER_MINUTE if self.quantity == "per_minute" else unit

    @property
    def range(self) -> tuple[float | None, float | None]:
        """Lowest and highest possible value."""
        if self.of_service:
            return SERVICE_METRICS[self.metric].minimum, SERVICE_METRICS[self.metric].maximum
        if self.quantity == "per_minute":
            return 0.0, None
        return BY_NAME[self.metric].minimum, BY_NAME[self.metric].maximum

    @property
    def max_age_ns(self) -> int:
        """How long one reading is believed."""
        return WINDOW_MAX_AGE_NS if self.of_service else BY_NAME[self.metric].max_age_ns

    @property
    def sign(self) -> int:
        """1 where it hurts above the limit, -1 below."""
        return -1 if self.direction == "below" else 1


MEMORY: Final = Target(
    metric="memory_used_bytes",
    limit_metric="memory_total_bytes",
    limit_ratio=0.95,
    ceiling_metric="memory_total_bytes",
    guard_ratio=0.6,
    resolution_ratio=0.001,
)
CORE_TEMPERATURE: Final = Target(
    metric="temperature_celsius",
    limit_metric="temperature_slowdown_celsius",
    limit_value=87.0,
    guard_ratio=0.85,
    resolution_ratio=0.011,
)
"""87 °C: the slowdown temperature that NVIDIA's data-centre cards report; whole degrees are reported."""

MEMORY_TEMPERATURE: Final = Target(
    metric="memory_temperature_celsius",
    limit_metric="temperature_memory_max_celsius",
    limit_value=95.0,
    guard_ratio=0.9,
    resolution_ratio=0.011,
)
"""95 °C: "Memory Max Operating Temp" in `nvidia-smi -q` of HBM cards, for devices that do not tell theirs. Memory under load is nearer to
its limit than the core is, so only the last tenth counts as near."""

THERMAL_MARGIN: Final = Target(
    metric="temperature_margin_celsius",
    direction="below",
    limit_value=0.0,
    unless_metric="temperature_slowdown_celsius",
    scale_value=50.0,
    guard_ratio=0.8,
    resolution_ratio=0.02,
)
"""Margin 0 is where the device slows down. Newer boards tell the margin only; 50 °C is about what an idle one has, whole degrees are
reported, and within 10 of it is near."""

POWER: Final = Target(
    metric="power_watts",
    limit_metric="power_limit_watts",
    limit_ratio=0.98,
    guard_ratio=0.75,
    resolution_ratio=0.01,
    plain=False,
)
"""A healthy training run sits at 99 % of the limit in force for hours: told, never a reason to wake somebody (the rule is shadow)."""

ECC_CORRECTED: Final = Target(
    metric="ecc_corrected_volatile_errors",
    quantity="per_minute",
    limit_value=25.0,
    guard_ratio=0.1,
    resolution_ratio=0.04,
    average_steps=4,
    step_seconds=60.0,
    plain=False,
)
"""25 a minute over four minutes is the 100 errors in 240 s of the rule ecc_corrected_burst: prediction and fact speak of one line.
Counters are read about once a minute, so that is their step whatever the others' is."""

PCIE_REPLAYS: Final = Target(
    metric="pcie_replays",
    quantity="per_minute",
    limit_value=31.0,
    guard_ratio=0.1,
    resolution_ratio=0.033,
    average_steps=4,
    step_seconds=60.0,
    plain=False,
)
"""31 a minute: DCGM's limit for Gen5 x16 from a bit error rate of 1e-12, as in the rule pcie_replays_many."""

REMAPPED_ROWS: Final = Target(
    metric="remapped_rows_uncorrectable",
    limit_value=512.0,
    guard_ratio=0.1,
    resolution_ratio=0.002,
    step_seconds=3600.0,
    plain=False,
)
"""512: where DCGM's health check warns (DcgmGPUHardwareLimits.h). Rows go in days, not in minutes: hourly steps look 30 h ahead."""

KV_CACHE: Final = Target(metric="kv_cache_used_ratio", limit_value=1.0, guard_ratio=0.6, resolution_ratio=0.01)
"""1.0: no block is free; the next request waits or another one is put out."""

QUEUE: Final = Target(metric="requests_waiting", resolution_ratio=0.03)
"""Without a limit: how long a queue may be depends on the service. Set `limit_value` to have its crossing foretold."""

BUILT_IN: Final = (
    MEMORY,
    CORE_TEMPERATURE,
    MEMORY_TEMPERATURE,
    THERMAL_MARGIN,
    POWER,
    ECC_CORRECTED,
    PCIE_REPLAYS,
    REMAPPED_ROWS,
    KV_CACHE,
    QUEUE,
)
