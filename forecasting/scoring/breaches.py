"""Breach forecasts against crossings: what was foretold, missed, said in vain, or averted because somebody stepped in."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from forecasting.scoring.said import Said, Who

Verdict = Literal["hit", "false", "averted", "lost", "open"]
_SLACK_STEPS: Final = 2
"""A crossing is seen on a grid: by so many steps it may come after the withdrawal that says "breached"."""

_UNKNOWN: Final = frozenset({"signal_lost", "reshaped"})


@dataclass(slots=True)
class Episode:
    """A breach forecast from when it was first said until it is withdrawn, expires, or comes true."""

    who: Who
    node: str
    model: str
    made_at_ns: int
    step_ns: int
    valid_until_ns: int
    crossed_ns: int | None = None

    def covers(self, at_ns: int) -> bool:
        slack = _SLACK_STEPS * self.step_ns
        return self.made_at_ns - slack <= at_ns <= self.valid_until_ns + slack


@dataclass(frozen=True, slots=True)
class Judged:
    """One episode and what became of it. `lead_ns`: how long before the crossing it was first said, at least 0."""

    episode: Episode
    verdict: Verdict
    lead_ns: int | None = None


@dataclass(slots=True)
class Breaches:
    """Takes forecasts and crossings of one metric in the order of time; `judged` and the counts are the result.

    `stepped_in(episode, until_ns)` says whether an intervention (restart, deploy, maintenance, an ended workload) explains that nothing
    came of it; `standing_from` is the probability from which on a forecast stands (Forecasting.recede_probability_ratio).
    """

    standing_from: float
    stepped_in: Callable[[Episode, int], bool]
    missed: int = 0
    missed_sudden: int = 0
    judged: list[Judged] = field(default_factory=list)
    _open: dict[Who, Episode] = field(default_factory=dict)
    _told: dict[Who, tuple[int, int]] = field(default_factory=dict)

    def take(self, said: Said) -> None:
        """A forecast or a withdrawal."""
        self._expire(said.who, said.made_at_ns)
        episode = self._open.get(said.who)
        if said.withdrawn is not None:
            if episode is not None:
                self._close(episode, said.withdrawn, said.made_at_ns)
        elif said.probability is not None and said.probability >= self.standing_from:
            if episode is None:
                step_ns = max(said.step_ns, 1)
                self._open[said.who] = Episode(said.who, said.node, said.model, said.made_at_ns, step_ns, said.valid_until_ns)
            else:
                episode.valid_until_ns = max(episode.valid_until_ns, said.valid_until_ns)

    def crossed(self, who: Who, at_ns: int, *, sudden: bool) -> None:
        """The limit was crossed."""
        self._expire(who, at_ns)
        episode = self._open.get(who)
        if episode is not None and episode.covers(at_ns):
            if episode.crossed_ns is None:
                episode.crossed_ns = at_ns
            return
        since_ns, until_ns = self._told.get(who, (0, 0))
        if not since_ns <= at_ns <= until_ns:  # else it is the crossing that ended an episode a moment ago
            self.missed += 1
            self.missed_sudden += sudden

    def finish(self, at_ns: int) -> None:
        """Nothing more will come: what still stands is open."""
        for who in list(self._open):
            self._expire(who, at_ns)
        for episode in self._open.values():
            self._judge(episode, "hit" if episode.crossed_ns is not None else "open", at_ns)
        self._open.clear()

    @property
    def verdicts(self) -> Counter[Verdict]:
        return Counter(one.verdict for one in self.judged)

    @property
    def crossings(self) -> int:
        """How often the limit was crossed."""
        return self.verdicts["hit"] + self.missed

    @property
    def recall(self) -> float | None:
        """Share of crossings that were foretold."""
        return self.verdicts["hit"] / self.crossings if self.crossings else None

    @property
    def precision(self) -> float | None:
        """Share of those said, and not averted, that came true."""
        return precision(self.judged)

    @property
    def lead_seconds(self) -> float | None:
        """Median time from the first word to the crossing."""
        return lead_seconds(self.judged)

    def _expire(self, who: Who, at_ns: int) -> None:
        episode = self._open.get(who)
        if episode is not None and at_ns > episode.valid_until_ns + _SLACK_STEPS * episode.step_ns:
            self._close(episode, "expired", episode.valid_until_ns)

    def _close(self, episode: Episode, reason: str, at_ns: int) -> None:
        del self._open[episode.who]
        if episode.crossed_ns is None and reason == "breached":
            episode.crossed_ns = at_ns
        if episode.crossed_ns is not None:
            slack = (_SLACK_STEPS + 1) * episode.step_ns
            self._told[episode.who] = (episode.made_at_ns, at_ns + slack)
            self._judge(episode, "hit", at_ns)
        elif reason in _UNKNOWN:
            self._judge(episode, "lost", at_ns)
        else:
            self._judge(episode, "averted" if self.stepped_in(episode, at_ns + _SLACK_STEPS * episode.step_ns) else "false", at_ns)

    def _judge(self, episode: Episode, verdict: Verdict, at_ns: int) -> None:
        lead = max(0, episode.crossed_ns - episode.made_at_ns) if episode.crossed_ns is not None else None
        self.judged.append(Judged(episode, verdict, lead))


def precision(judged: list[Judged]) -> float | None:
    verdicts = Counter(one.verdict for one in judged)
    decided = verdicts["hit"] + verdicts["false"]
    return verdicts["hit"] / decided if decided else None


def lead_seconds(judged: list[Judged]) -> float | None:
    leads = [one.lead_ns for one in judged if one.lead_ns is not None]
    return median(leads) / 1e9 if leads else None
