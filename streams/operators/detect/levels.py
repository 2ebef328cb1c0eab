"""The life of findings that are few: sent when they change and every so often while active, until cleared or expired."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from schemas.telemetry import v1

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.operators.detect.samples import Times


class LevelKey(NamedTuple):
    rule: str
    cluster: str
    entity: str


@dataclass(slots=True)
class Level:
    """An active finding as it was last sent. Past `until_ns` nobody vouches for it any more; None: until it is cleared."""

    finding: v1.Finding
    until_ns: int | None = None
    source: str = ""


def key_of(finding: v1.Finding) -> LevelKey:
    return LevelKey(finding.rule, finding.cluster, finding.entity)


@dataclass(slots=True)
class Levels:
    """Active findings by rule, cluster and entity."""

    times: Times
    active: dict[LevelKey, Level] = field(default_factory=dict)

    def __contains__(self, key: LevelKey) -> bool:
        return key in self.active

    def raised(self, finding: v1.Finding, *, until_ns: int | None = None, source: str = "") -> list[v1.Finding]:
        """Take an active finding in; it is sent where it is new or due again. `since_ns` of a level that goes on is kept."""
        key = key_of(finding)
        level = self.active.get(key)
        if level is None:
            self.active[key] = Level(finding, until_ns, source)
            return [finding]
        finding.since_ns = level.finding.since_ns
        last_ns = level.finding.observed_at_ns
        level.finding, level.until_ns = finding, until_ns
        if abs(finding.observed_at_ns - last_ns) >= self.times.repeat_ns:
            return [finding]
        finding.observed_at_ns = last_ns
        return []

    def cleared(self, key: LevelKey, at_ns: int) -> list[v1.Finding]:
        """The level has ended; said once, with the words it had."""
        level = self.active.pop(key, None)
        if level is None:
            return []
        # Ticks and items come from different clocks, and alert counts only what was observed after the last that it counted
        return [self._again(level.finding, max(at_ns, level.finding.observed_at_ns + 1), active=False)]

    def repeated(self, at_ns: int) -> Iterator[v1.Finding]:
        """Levels that are due again at `at_ns`."""
        for level in self.active.values():
            if at_ns - level.finding.observed_at_ns >= self.times.repeat_ns:
                level.finding = self._again(level.finding, at_ns, active=True)
                if level.until_ns is not None:
                    level.finding.valid_until_ns = min(level.finding.valid_until_ns, level.until_ns)
                yield level.finding

    def expired(self, at_ns: int) -> list[LevelKey]:
        """Levels whose `until_ns` has passed."""
        return [key for key, level in self.active.items() if level.until_ns is not None and at_ns >= level.until_ns]

    def forget(self, cluster: str, node: str) -> None:
        """Drop what stands of a node, without a word: another process watches it now."""
        gone = [k for k, level in self.active.items() if k.cluster == cluster and level.finding.node == node]
        for key in gone:
            del self.active[key]

    def _again(self, finding: v1.Finding, at_ns: int, *, active: bool) -> v1.Finding:
        made = v1.Finding()
        made.CopyFrom(finding)
        made.active = active
        made.observed_at_ns = at_ns
        made.valid_until_ns = at_ns + self.times.valid_ns
        return made
