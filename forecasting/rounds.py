"""A round over all series: screen, predict elsewhere, and turn each result into what is said: a forecast, a withdrawal, or nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from forecasting.message import Context, SeriesRef, WithdrawnReason, forecast, withdrawal
from forecasting.pool import chunks
from forecasting.predict import Job, Prediction
from forecasting.scoring.live import Live
from forecasting.screening import Question, screen
from forecasting.services import Services
from forecasting.standing import Hysteresis, Look, Standing

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Hashable, Sequence

    from numpy.typing import NDArray

    from forecasting.followed import Followed, Histories
    from forecasting.models.model import Kind
    from forecasting.pool import Pool
    from forecasting.scoring.live import Quality
    from forecasting.settings import Forecasting
    from forecasting.targets import Target
    from schemas.telemetry import v1

_FALLEN_RESOLUTIONS: Final = 4.0
_SCALE_STEPS: Final = 60
"""Of so many steps before a forecast the usual change gives the scale of its errors."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A series that was handed to a worker. `candidate`: its breach is assessed; otherwise the plain forecast is all that is wanted.

    `shape`: that of `one` when it was asked; the answer is for nobody where it has changed since.
    """

    context: Context
    one: Followed
    shape: int
    target: Target
    before: NDArray[np.float64]
    current: float
    fallen: float
    candidate: bool
    plain: bool


class Rounds:
    """Owns the pool and what stands. `advance` is called often and does little; `events` counts what happened, by name.

    The targets are those of `histories`, all of one step: the settings'.
    """

    def __init__(
        self, settings: Forecasting, histories: Sequence[Histories], pool: Pool, events: Counter[str], quality: dict[str, Quality]
    ) -> None:
        self._s = settings
        self._histories = tuple(histories)
        self._by_metric = {target.metric: (history, target) for history in self._histories for target in history.targets}
        self._pool = pool
        self._events = events
        self._live = Live(settings.step_ns, quality)
        self._every_ns = round(settings.every_seconds * 1e9)
        self.valid_ns = settings.valid_rounds * self._every_ns
        self._standing: Standing[SeriesRef] = Standing(
            Hysteresis(settings.raise_probability_ratio, settings.raise_rounds, settings.recede_probability_ratio, settings.recede_rounds)
        )
        self._asked: dict[int, _Asked] = {}
        self._label = 0
        self._round = 0
        self._last_ns: int | None = None
        self._adopted = False
        self._adopted_ns = 0

    @property
    def standing_count(self) -> int:
        return len(self._standing.keys())

    def close(self) -> None:
        self._pool.close()

    def forget(self, keeps: Callable[[str, str], bool]) -> None:
        """Let go, silently, of the nodes that `keeps(cluster, node)` does not name: another worker speaks for them now."""
        for series in self._standing.keys():  # noqa: SIM118  # not a dict: `keys` is those that stand
            if not keeps(series.cluster, series.node):
                self._standing.forget(series)

    def adopt(self, found: v1.Forecast) -> None:
        """A record of the forecasts topic, oldest first: what was said before this worker began stands until it is withdrawn."""
        series = SeriesRef(found.cluster, found.node, found.entity, found.metric)
        if found.withdrawn:
            self._standing.forget(series)
        elif found.HasField("breach_probability_ratio") and found.breach_probability_ratio >= self._s.recede_probability_ratio:
            history, target = self._by_metric.get(found.metric, (None, None))
            sign = target.sign if target is not None else 1
            self._standing.adopt(series, sign * found.current if found.HasField("current") else None)
            self._adopted = True
            if isinstance(history, Services):
                history.expect(found.cluster, found.node, found.entity)

    def follows(self, metric: str) -> bool:
        """Whether it is among the targets."""
        return metric in self._by_metric

    def advance(self, at_ns: int) -> list[v1.Forecast]:
        """What is to be published now: results of the round under way; then a new round begins if one is due."""
        out = self._collect()
        if self._last_ns is not None and at_ns < self._last_ns + self._every_ns:
            return out
        if self._asked:
            self._events["rounds_skipped"] += 1
            self._last_ns = at_ns
            return out
        self._last_ns = at_ns
        out += self._begin(at_ns)
        return out + self._collect()

    def _begin(self, at_ns: int) -> list[v1.Forecast]:
        self._events["rounds"] += 1
        plain = self._round % self._s.plain_every_rounds == 0
        self._round += 1
        if self._adopted:  # of what was adopted nothing may have been heard yet: that is no lost signal
            self._adopted, self._adopted_ns = False, at_ns
        jobs: list[tuple[int, Job]] = []
        out: list[v1.Forecast] = []
        for history in self._histories:
            history.age(at_ns)
            everybody = list(history.everybody())
            for index in range(len(history.targets)):
                out += self._target(at_ns, history, index, everybody, plain, jobs)
            for one in everybody:
                one.shape_seen = one.shape
        for series in self._standing.keys():  # noqa: SIM118  # not a dict: `keys` is those that stand
            followed = self._by_metric.get(series.metric)
            gone = followed is not None and followed[0].find(series.cluster, series.node, series.entity) is None
            if followed is None or (gone and at_ns >= self._grace_ns(followed[1])):
                context = self._context(followed and followed[1], series, at_ns, at_ns, None, False)
                out += self._say(context, 1, None, Look(None, None, None, lost=True))
        for chunk in chunks(jobs, self._s.chunk_series, horizon=self._s.horizon_steps, paths=self._s.paths):
            self._pool.submit(chunk)
        return out

    def _target(
        self, at_ns: int, history: Histories, index: int, everybody: Sequence[Followed], plain: bool, jobs: list[tuple[int, Job]]
    ) -> list[v1.Forecast]:
        """Screen one metric; append what is to be predicted to `jobs`; return the withdrawals that need no prediction."""
        target = history.targets[index]
        plain = plain and target.plain
        if target.unless_metric:
            everybody = [one for one in everybody if one.limit(target.unless_metric, at_ns) is None]
        shot = history.snapshot(everybody, index, at_ns)
        fresh = (shot.until_ns > 0) & (shot.until_ns + self._fresh_ns(target) > at_ns)
        if self._live.due(target.metric, at_ns):
            places: dict[Hashable, int] = {(one.cluster, one.node, one.entity): row for row, one in enumerate(everybody)}
            self._live.judge(target.metric, places, shot.until_ns, shot.values, at_ns)
        standing = {series for series in self._standing.keys() if series.metric == target.metric}  # noqa: SIM118  # as above
        if not fresh.any() and not standing:
            return []
        limits = np.array([_limit(target, one, at_ns) for one in everybody], dtype=np.float64)
        answer = screen(self._question(target, np.where(fresh[:, None], shot.values, np.nan), limits))
        stands = np.zeros(len(everybody), dtype=np.bool_)
        if standing:
            stands[:] = [SeriesRef(one.cluster, one.node, one.entity, target.metric) in standing for one in everybody]
        matters = answer.candidate | stands
        if plain:
            matters |= answer.enough
        out: list[v1.Forecast] = []
        for row in np.nonzero(matters)[0].tolist():
            one = everybody[row]
            series = SeriesRef(one.cluster, one.node, one.entity, target.metric)
            limit = None if np.isnan(limits[row]) else float(limits[row])
            context = self._context(target, series, at_ns, int(shot.until_ns[row]), limit, one.simulated)
            current, candidate = float(shot.current[row]), bool(answer.candidate[row])
            fallen = _FALLEN_RESOLUTIONS * target.resolution_ratio * (target.scale_value or abs(current if limit is None else limit))
            if stands[row] and one.shape != one.shape_seen:
                out += self._say(context, target.sign, None, Look(None, None, None, lost=True), because="reshaped")
            elif stands[row] and not candidate:
                # Where it goes is not worth a model, or (after a change of level) cannot be said; where it is, can.
                probability = 0.0 if answer.enough[row] else None
                if fresh[row]:
                    out += self._say(context, target.sign, None, Look(current, limit, probability, fallen=fallen))
                elif at_ns >= self._grace_ns(target):
                    out += self._say(context, target.sign, None, Look(None, None, None, lost=True))
            if answer.enough[row] and (candidate or plain):
                start = int(answer.trend_start[row])
                low, high = _bounds(target, one, at_ns)
                self._label += 1
                y = answer.filled[row, start:].copy()
                kind: Kind = "counter" if target.is_count else "gauge"
                jobs.append((self._label, Job(y, candidate, self._label, limit, low, high, kind, target.sign)))
                self._asked[self._label] = _Asked(context, one, one.shape, target, y[-_SCALE_STEPS:], current, fallen, candidate, plain)
        return out

    def _collect(self) -> list[v1.Forecast]:
        out: list[v1.Forecast] = []
        for label, result, _ in self._pool.poll():
            asked = self._asked.pop(label, None)
            if asked is None:
                continue
            if asked.shape != asked.one.shape:
                self._events["answers_outdated"] += 1
                continue
            if isinstance(result, str):
                self._events["series_failed"] += 1
                continue
            self._events[f"model_{result.model}"] += 1
            self._events["fallbacks"] += len(result.fallbacks)
            if not asked.candidate:
                out.append(forecast(self._long(asked.context), result))
                self._watch(asked, result)
                continue
            probability = result.crossing.probability if result.crossing is not None else 0.0
            look = Look(asked.current, asked.context.limit, probability, fallen=asked.fallen)
            said = self._say(asked.context, asked.target.sign, result, look)
            # Below the level at which one recedes it is a plain forecast like any other; above, it waits for its next round.
            if not said and asked.plain and probability < self._s.recede_probability_ratio:
                said = [forecast(self._long(asked.context), result)]
            if said and not said[0].withdrawn:
                self._watch(asked, result)
            out += said
        return out

    def _watch(self, asked: _Asked, result: Prediction) -> None:
        """Have it judged when its time has come."""
        series = asked.context.series
        key = (series.cluster, series.node, series.entity)
        self._live.said(series.metric, key, asked.context.history_until_ns, result, asked.before)

    def _say(
        self, context: Context, sign: int, result: Prediction | None, look: Look, *, because: WithdrawnReason | None = None
    ) -> list[v1.Forecast]:
        """What follows from a look at a series. `because` is the reason of a withdrawal where more is known than the look says."""
        verdict = self._standing.look(context.series, _mirrored(look) if sign < 0 else look)
        if verdict == "none":
            return []
        if verdict == "publish":
            if result is None:
                return []
            self._events["breach_forecasts"] += 1
            return [forecast(context, result)]
        reason = because or verdict
        self._events[f"withdrawn_{reason}"] += 1
        return [withdrawal(context, reason, look.current)]

    def _fresh_ns(self, target: Target) -> int:
        """How old the newest value may be before the signal is lost."""
        return max(self._s.lost_steps * self._s.step_ns, target.max_age_ns)

    def _grace_ns(self, target: Target) -> int:
        """Until when the silence of what was adopted proves nothing."""
        return self._adopted_ns + self._fresh_ns(target)

    def _question(self, target: Target, values: NDArray[np.float64], limits: NDArray[np.float64]) -> Question:
        scale = np.full(limits.shape, target.scale_value) if target.scale_value is not None else np.abs(limits)
        return Question(
            y=values,
            limit=limits,
            resolution=scale * target.resolution_ratio,
            fastest=scale * (self._s.step_seconds / self._s.fastest_fill_seconds),
            guard_ratio=target.guard_ratio,
            horizon=self._s.horizon_steps,
            min_history=self._s.min_history_steps,
            min_trend=self._s.min_trend_steps,
            reach=self._s.reach_ratio,
            max_gap=self._s.max_gap_steps,
            kind="counter" if target.is_count else "gauge",
            sign=target.sign,
            scale=scale,
        )

    def _context(
        self, target: Target | None, series: SeriesRef, at_ns: int, until_ns: int, limit: float | None, simulated: bool
    ) -> Context:
        unit = target.unit if target is not None else ""
        return Context(series, unit, at_ns, until_ns, self._s.step_ns, at_ns + self.valid_ns, limit, simulated)

    def _long(self, context: Context) -> Context:
        return replace(context, valid_until_ns=context.made_at_ns + 2 * self._s.plain_every_rounds * self._every_ns)


def _mirrored(look: Look) -> Look:
    """Upside down: what falls towards a limit rises towards it here."""
    current = None if look.current is None else -look.current
    return replace(look, current=current, limit=None if look.limit is None else -look.limit)


def _limit(target: Target, one: Followed, at_ns: int) -> float:
    if target.limit_metric and (told := one.limit(target.limit_metric, at_ns)) is not None:
        return told * target.limit_ratio
    return target.limit_value if target.limit_value is not None else float("nan")


def _bounds(target: Target, one: Followed, at_ns: int) -> tuple[float | None, float | None]:
    low, high = target.range
    ceiling = one.limit(target.ceiling_metric, at_ns) if target.ceiling_metric else None
    return low, ceiling if ceiling is not None else high
