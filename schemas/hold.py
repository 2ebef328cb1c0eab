"""Holds the last value of each field until its max_age, then calls it absent(stale): the one place that decides what "now" is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from schemas.catalogue import BY_NAME, BY_NUMBER, CATALOGUE
from schemas.values import REASON_OF_NUMBER, Absent, Reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from schemas.telemetry import v1

_ABSENT: Final = {number: Absent(reason) for number, reason in REASON_OF_NUMBER.items()}
_ERROR: Final = Absent("error")


class Held:
    """Last known readings of one device. Older samples than the newest seen never overwrite."""

    __slots__ = ("_at", "_value", "info", "newest_ns")

    def __init__(self) -> None:
        self._value: dict[str, Reading] = {}
        self._at: dict[str, int] = {}
        self.newest_ns = 0
        self.info: v1.DeviceInfo | None = None

    def update(self, sample: v1.DeviceSample, taken_at_ns: int) -> None:
        """Take a sample in; fields that were not due keep what they had."""
        said: dict[str, Reading] = {field.name: value for field, value in sample.ListFields() if field.number in BY_NUMBER}
        for absence in sample.absences:
            reason = _ABSENT.get(absence.reason, _ERROR)
            for number in absence.field_number:
                if metric := BY_NUMBER.get(number):
                    said[metric.name] = reason
        at = self._at
        if taken_at_ns < self.newest_ns:
            said = {name: value for name, value in said.items() if taken_at_ns >= at.get(name, 0)}
        self.newest_ns = max(self.newest_ns, taken_at_ns)
        self._value.update(said)
        at.update(dict.fromkeys(said, taken_at_ns))
        if sample.HasField("info"):
            self.info = sample.info

    def get(self, name: str, at_ns: int) -> Reading | None:
        """The reading as of `at_ns`; None where the field was never said, Absent("stale") past its max_age."""
        value = self._value.get(name)
        if value is None:
            return None
        # Thin samples leave out an absence that has not changed: it stands as long as the device is heard of.
        said_ns = self.newest_ns if isinstance(value, Absent) else self._at[name]
        if at_ns - said_ns > BY_NAME[name].max_age_ns:
            return Absent("stale")
        return value

    def age_ns(self, name: str, at_ns: int) -> int | None:
        """How old the reading is at `at_ns`; None where there is none."""
        at = self._at.get(name)
        return None if at is None else at_ns - at

    def items(self, at_ns: int) -> Iterator[tuple[str, Reading]]:
        """Every field ever said, in the catalogue's order."""
        for metric in CATALOGUE:
            value = self.get(metric.name, at_ns)
            if value is not None:
                yield metric.name, value
