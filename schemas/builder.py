"""SampleBuilder: the only way to make a DeviceSample, where every value is range-checked once and every absence counted."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final

from schemas.catalogue import BY_NAME, CATALOGUE, Metric
from schemas.telemetry import v1
from schemas.values import NUMBER_OF_REASON, Absent, Reading, Reason

_MOST: Final = {"uint32": 2**32 - 1, "uint64": 2**64 - 1, "float": 3.4028234e38, "double": sys.float_info.max}
"""Largest value by wire type."""


def _rule(metric: Metric) -> tuple[float, float, Callable[[float], float | int | bool]]:
    """Lowest and highest valid value (infinities and NaN never are), and what makes a value the field's type."""
    cast: dict[str, Callable[[float], float | int | bool]] = {"uint32": round, "uint64": round, "bool": bool}
    least = 0.0 if metric.wire.startswith("uint") else -_MOST.get(metric.wire, 0)
    low = least if metric.minimum is None else max(least, metric.minimum)
    most = _MOST.get(metric.wire, 1)
    return low, most if metric.maximum is None else min(most, metric.maximum), cast.get(metric.wire, float)


Scaled = tuple[str, str, float]
"""Field of the catalogue, name of a number, factor that makes it the catalogue's unit."""

_RULES: Final = {metric.name: _rule(metric) for metric in CATALOGUE}
"""Looked up once per value: on the path of every sample of a fleet the attribute look-ups of a Metric cost more than the check."""


class SampleBuilder:
    """Builds one DeviceSample.

    `set` takes a value in the catalogue's unit; one outside the valid range (NaN and negative counters included) becomes
    absent(out_of_range). `absent` takes a reason. Both raise KeyError on a name that is not in the catalogue. A field given
    neither is "not due this tick". `rejects` counts what became absent, by (metric, reason).
    """

    def __init__(self, uid: str, index: int = 0) -> None:
        if not uid:
            raise ValueError("a sample needs a device uid (<vendor>:<uuid|serial|node:bdf>)")
        self._sample = v1.DeviceSample(uid=uid, index=index)
        self._absent: dict[str, Reason] = {}
        self._grouped: dict[str, Reason] | None = None
        self.rejects: Counter[tuple[str, Reason]] = Counter()

    def again(self) -> SampleBuilder:
        """Another one that begins with all that this one has, its count of absences included: for a device of which little changed."""
        fresh = SampleBuilder.__new__(SampleBuilder)
        fresh._sample = v1.DeviceSample()
        fresh._sample.CopyFrom(self._sample)
        fresh._absent, fresh._grouped = self._absent.copy(), self._grouped
        fresh.rejects = self.rejects
        return fresh

    def recount(self, *, odd: bool) -> SampleBuilder:
        """After `again`: count every absence there is, once. `odd` says that one was said since."""
        if odd or self._absent != self._grouped:
            self.rejects = Counter(self._absent.items())
        return self

    @property
    def has_info(self) -> bool:
        """Whether the device's identity is attached."""
        return self._sample.HasField("info")

    def set(self, field: str, value: Reading | None) -> SampleBuilder:
        """Set a field; an `Absent` is passed on to `absent`, None (nothing said) is absent(error)."""
        low, high, cast = _RULES[field]
        if value is None:
            return self.absent(field, "error")
        if isinstance(value, Absent):
            return self.absent(field, value.reason)
        if not low <= value <= high:
            return self.absent(field, "out_of_range")
        setattr(self._sample, field, cast(value))
        if self._absent:
            self._absent.pop(field, None)
        return self

    def scale(self, plan: Sequence[Scaled], numbers: Mapping[str, object], blanks: Container[object]) -> list[Scaled]:
        """Set each field of `plan` from its number times its factor, in one go: most of what a device says each second is just that.

        Gives back what is left to be understood: a number that is none, is among `blanks`, or is out of the field's range.
        """
        sample, rules, gone, get = self._sample, _RULES, self._absent, numbers.get
        left = []
        for entry in plan:
            field, name, factor = entry
            value: Any = get(name)
            if value.__class__ is int or value.__class__ is float:
                low, high, cast = rules[field]
                scaled = value * factor
                if low <= scaled <= high and value not in blanks:
                    setattr(sample, field, cast(scaled))
                    if gone:
                        gone.pop(field, None)
                    continue
            left.append(entry)
        return left

    def absent(self, field: str, reason: Reason) -> SampleBuilder:
        """Say that a field could not be read, and why."""
        if field not in _RULES:
            raise KeyError(field)
        self._sample.ClearField(field)
        self._absent[field] = reason
        self.rejects[(field, reason)] += 1
        return self

    def vendor(self, name: str, value: float) -> SampleBuilder:
        """Set a registered vendor extra."""
        self._sample.vendor_metrics[name] = value
        return self

    def link(self, link: v1.InterconnectLink) -> SampleBuilder:
        """Add one interconnect link; the publisher keeps links in full samples only."""
        self._sample.links.append(link)
        return self

    def info(self, info: v1.DeviceInfo) -> SampleBuilder:
        """Attach the device's identity; the publisher keeps it in full samples only."""
        self._sample.info.CopyFrom(info)
        return self

    def build(self) -> v1.DeviceSample:
        """The finished sample; absences are grouped by reason, so that they cost bytes only where they occur."""
        if self._grouped == self._absent:
            return self._sample
        del self._sample.absences[:]
        by_reason: dict[Reason, list[int]] = {}
        for field, reason in self._absent.items():
            by_reason.setdefault(reason, []).append(BY_NAME[field].number)
        for reason, numbers in sorted(by_reason.items()):
            self._sample.absences.add(reason=NUMBER_OF_REASON[reason], field_number=sorted(numbers))
        self._grouped = self._absent.copy()
        return self._sample
