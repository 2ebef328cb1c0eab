"""The metric catalogue, read once from the options of DeviceSample's fields: nothing else repeats names, units or ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from google.protobuf.descriptor import FieldDescriptor

from schemas.telemetry import v1

Kind = Literal["gauge", "counter", "set"]
Cadence = Literal["fast", "slow"]
WireType = Literal["float", "double", "uint32", "uint64", "bool"]

_WIRE: Final[dict[int, WireType]] = {
    FieldDescriptor.TYPE_FLOAT: "float",
    FieldDescriptor.TYPE_DOUBLE: "double",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_UINT64: "uint64",
    FieldDescriptor.TYPE_BOOL: "bool",
}


@dataclass(frozen=True, slots=True)
class Metric:
    """One field of DeviceSample. `minimum` and `maximum` are inclusive and in `unit` (UCUM)."""

    name: str
    number: int
    wire: WireType
    unit: str
    kind: Kind
    cadence: Cadence
    max_age_ns: int
    minimum: float | None
    maximum: float | None
    otel_name: str
    prometheus_name: str
    meaning: str
    board_level: bool
    bits: str
    states: str
    """Name of the enum whose values the number stands for; empty for quantities."""
    otel_attributes: tuple[tuple[str, str], ...]
    """What tells it from other metrics of the same OpenTelemetry name."""

    def valid(self, value: float) -> bool:
        """Whether a value lies in the range (NaN and infinities never do)."""
        low = self.minimum if self.minimum is not None else float("-inf")
        high = self.maximum if self.maximum is not None else float("inf")
        return low <= value <= high and value not in (float("inf"), float("-inf"))


def _metrics() -> tuple[Metric, ...]:
    found = []
    for field in v1.DeviceSample.DESCRIPTOR.fields:
        options = field.GetOptions()
        # protoc's stub types an extension as a bare FieldDescriptor
        if not options.HasExtension(v1.metric):  # type: ignore[arg-type]
            continue
        o: v1.MetricOptions = options.Extensions[v1.metric]  # type: ignore[index]
        kind = v1.MetricKind.Name(o.kind).removeprefix("METRIC_KIND_").lower()
        cadence = v1.Cadence.Name(o.cadence).removeprefix("CADENCE_").lower()
        found.append(
            Metric(
                name=field.name,
                number=field.number,
                wire=_WIRE[field.type],
                unit=o.unit,
                kind=kind,  # type: ignore[arg-type]  # the enum's names are the Literal's, held by test_catalogue
                cadence=cadence,  # type: ignore[arg-type]  # as above
                max_age_ns=int(o.max_age_seconds * 1e9),
                minimum=o.min if o.HasField("min") else None,
                maximum=o.max if o.HasField("max") else None,
                otel_name=o.otel_name,
                prometheus_name=o.prometheus_name,
                meaning=o.meaning,
                board_level=o.board_level,
                bits=o.bits,
                states=o.states,
                otel_attributes=tuple((k, v) for pair in o.otel_attributes.split(",") if pair for k, _, v in (pair.partition("="),)),
            )
        )
    return tuple(sorted(found, key=lambda m: m.number))


CATALOGUE: Final = _metrics()
BY_NAME: Final = {m.name: m for m in CATALOGUE}
BY_NUMBER: Final = {m.number: m for m in CATALOGUE}
FAST: Final = tuple(m for m in CATALOGUE if m.cadence == "fast")
SLOW: Final = tuple(m for m in CATALOGUE if m.cadence == "slow")


def metric(name: str) -> Metric:
    """The catalogue's row of that name; KeyError names the nearest ones."""
    try:
        return BY_NAME[name]
    except KeyError:
        import difflib

        near = ", ".join(difflib.get_close_matches(name, BY_NAME, n=3)) or "none is near"
        raise KeyError(f"no metric {name!r} in the catalogue (schemas/telemetry/v1/sample.proto); nearest: {near}") from None


def state_name(metric: Metric, value: float) -> str:
    """What the number of a metric with `states` stands for, in words: reset device; state N where this release has no name for it."""
    known = getattr(v1, metric.states).DESCRIPTOR.values_by_number
    number = round(value)
    if number not in known:
        return f"state {number}"
    prefix = known[min(known)].name
    while not all(one.name.startswith(prefix) for one in known.values()):
        prefix = prefix[:-1]
    return str(known[number].name.removeprefix(prefix[: prefix.rfind("_") + 1])).lower().replace("_", " ")


def throttle_names(bits: int) -> list[str]:
    """Names of the reasons in a `throttle_reasons` bit set, lower case; an unknown bit is `bit_N`."""
    known = v1.ThrottleReason.DESCRIPTOR.values_by_number
    return [
        known[n].name.removeprefix("THROTTLE_REASON_").lower() if n in known else f"bit_{n}"
        for n in range(bits.bit_length())
        if bits >> n & 1
    ]
