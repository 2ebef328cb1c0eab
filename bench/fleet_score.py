"""Compares what was raised with what was wrong: recall, precision, delay, false findings, and how many incidents one fault makes.

A finding counts each time it becomes active. It is put down to a fault that acts on its entity then, or did so at most GRACE_SECONDS ago:
what returns to normal is a change as well. A fault is found by a finding about what it befell; cards that only work together with those
may add to its findings, not to its recall. What nobody is told of (a shadow rule) counts in the figures of the anomaly detectors only.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bench.fleet_plan import Truth
    from bench.fleet_run import Day, Raised

GRACE_SECONDS: Final = 1800.0

Figures = dict[str, float | int | str | None]


@dataclass(slots=True)
class Case:
    """One fault of one day: the delays of the findings about it that people are told of, and of those of anomaly detectors; the rules
    that told; the incidents that it made."""

    truth: Truth
    seed: int
    told: list[tuple[float, str]] = field(default_factory=list)
    anomalies: list[tuple[float, str]] = field(default_factory=list)
    incidents: set[str] = field(default_factory=set)
    raised: int = 0

    @property
    def delay_seconds(self) -> float | None:
        """From the onset to the first finding; None where there was none."""
        return min((delay for delay, _ in self.told), default=None)


@dataclass(slots=True)
class Score:
    """What the days came to. `false` are (seed, clean day or not, finding)."""

    cases: list[Case] = field(default_factory=list)
    false: list[tuple[int, bool, Raised]] = field(default_factory=list)
    matched: int = 0
    explained: int = 0
    clean_device_days: float = 0.0

    def add_clean(self, seed: int, day: Day, device_days: float) -> None:
        """A day on which nothing was wrong."""
        self.false += [(seed, True, r) for r in day.raised]
        self.explained += day.explained
        self.clean_device_days += device_days

    def add_broken(self, seed: int, day: Day, truths: Sequence[Truth]) -> None:
        """A day with faults."""
        cases = [Case(truth, seed) for truth in truths]
        for raised in day.raised:
            case = _case(cases, raised.entity, raised.seconds)
            if case is None:
                self.false.append((seed, False, raised))
                continue
            if not raised.shadow:
                self.matched += 1
                case.raised += 1
            if raised.entity in case.truth.entities:
                found = (raised.seconds - case.truth.start_seconds, raised.rule)
                if not raised.shadow:
                    case.told.append(found)
                if raised.anomaly:
                    case.anomalies.append(found)
        for fired in day.fired:
            if (case := _case(cases, fired.entity, fired.seconds)) is not None:
                case.incidents.add(fired.incident)
        self.cases += cases

    def kinds(self) -> dict[str, list[Case]]:
        """Cases by kind of fault."""
        found: dict[str, list[Case]] = defaultdict(list)
        for case in self.cases:
            found[case.truth.kind].append(case)
        return dict(sorted(found.items()))

    def false_rules(self, *, clean: bool, anomalies: bool = False) -> Counter[str]:
        """False findings by rule; those that people are told of, or those of the anomaly detectors whether told or not."""
        return Counter(
            r.rule + (f" ({r.detector})" if r.detector else "")
            for _, was_clean, r in self.false
            if was_clean == clean and (r.anomaly if anomalies else not r.shadow)
        )

    def figures(self) -> Figures:
        """Every figure under one flat name."""
        broken_false = self.false_rules(clean=False).total()
        told = self.matched + broken_false
        found: Figures = {
            "recall": _share(self.cases),
            "precision": round(self.matched / told, 4) if told else None,
            "median_delay_s": _median(c.delay_seconds for c in self.cases),
            "false_per_100_device_days": self._rate(self.false_rules(clean=True).total()),
            "false_anomalies_per_100_device_days": self._rate(self.false_rules(clean=True, anomalies=True).total()),
            "findings_per_fault": _mean(len(c.incidents) for c in self.cases if c.incidents),
            "findings_per_fault_ungrouped": _mean(c.raised for c in self.cases if c.raised),
            "anomaly_recall": round(sum(bool(c.anomalies) for c in self.cases) / len(self.cases), 4) if self.cases else None,
            "explained": self.explained,
            "faults": len(self.cases),
            "clean_device_days": round(self.clean_device_days, 1),
        }
        for kind, cases in self.kinds().items():
            found[f"{kind}_recall"] = _share(cases)
            found[f"{kind}_median_delay_s"] = _median(c.delay_seconds for c in cases)
            found[f"{kind}_findings_per_fault"] = _mean(len(c.incidents) for c in cases if c.incidents)
        return found

    def _rate(self, count: int) -> float | None:
        return round(100 * count / self.clean_device_days, 3) if self.clean_device_days else None


def _case(cases: Iterable[Case], entity: str, seconds: float) -> Case | None:
    """The fault that a finding is put down to: one that befell the entity before one that it only felt; then the one that began last."""
    fit = [c for c in cases if c.truth.covers(entity, seconds, GRACE_SECONDS)]
    return max(fit, key=lambda c: (entity in c.truth.entities, c.truth.start_seconds), default=None)


def _share(cases: Sequence[Case]) -> float | None:
    return round(sum(c.delay_seconds is not None for c in cases) / len(cases), 4) if cases else None


def _median(numbers: Iterable[float | None]) -> float | None:
    known = [n for n in numbers if n is not None]
    return round(median(known), 1) if known else None


def _mean(numbers: Iterable[int]) -> float | None:
    every = list(numbers)
    return round(sum(every) / len(every), 3) if every else None
