"""A round over all series: screen, predict elsewhere, and turn each result into what is said: a forecast, a withdrawal, or nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from forecasting.message import Context, SeriesRef, forecast, withdrawal
from forecasting.pool import chunks
from forecasting.predict import Job, Prediction
from forecasting.screening import Question, screen
from forecasting.standing import Hysteresis, Look, Standing
from schemas.catalogue import BY_NAME
from schemas.telemetry import v1

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from forecasting.pool import Pool
    from forecasting.series import Device, History
    from forecasting.settings import Forecasting, Target

_FALLEN_RESOLUTIONS: Final = 4.0


@dataclass(frozen=True, slots=True)
class _Asked:
    """A series that was handed to a worker. `candidate`: its breach is assessed; otherwise the plain forecast is all that is wanted."""

    context: Context
    current: float
    fallen: float
    candidate: bool
    plain: bool


class Rounds:
    """Owns the pool and what stands. `advance` is called often and does little; `events` counts what happened, by name."""

    def __init__(self, settings: Forecasting, history: History, pool: Pool, events: Counter[str]) -> None:
        self._s = settings
        self._history = history
        self._pool = pool
        self._events = events
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
        self._grace_ns = 0

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
        series = SeriesRef(found.cluster, found.node, found.uid, found.metric)
        if found.withdrawn:
            self._standing.forget(series)
        elif found.HasField("breach_probability_ratio") and found.breach_probability_ratio >= self._s.recede_probability_ratio:
            self._standing.adopt(series, found.current if found.HasField("current") else None)
            self._adopted = True

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
        self._history.age(at_ns)
        plain = self._round % self._s.plain_every_rounds == 0
        self._round += 1
        if self._adopted:  # of what was adopted nothing may have been heard yet: that is no lost signal
            self._adopted, self._grace_ns = False, at_ns + max(self._fresh_ns(target) for target in self._s.targets)
        devices = list(self._history.devices())
        out: list[v1.Forecast] = []
        jobs: list[tuple[int, Job]] = []
        for index, target in enumerate(self._s.targets):
            out += self._target(at_ns, index, target, devices, plain, jobs)
        followed = {target.metric for target in self._s.targets}
        for series in self._standing.keys():  # noqa: SIM118  # not a dict: `keys` is those that stand
            gone = self._history.device(series.cluster, series.node, series.uid) is None
            if series.metric not in followed or (gone and at_ns >= self._grace_ns):
                out += self._say(self._context(series, at_ns, at_ns, None, False), None, Look(None, None, None, lost=True))
        for chunk in chunks(jobs, self._s.chunk_series, horizon=self._s.horizon_steps, paths=self._s.paths):
            self._pool.submit(chunk)
        return out

    def _target(
        self, at_ns: int, index: int, target: Target, devices: Sequence[Device], plain: bool, jobs: list[tuple[int, Job]]
    ) -> list[v1.Forecast]:
        """Screen one metric; append what is to be predicted to `jobs`; return the withdrawals that need no prediction."""
        shot = self._history.snapshot(devices, index, at_ns)
        fresh = (shot.until_ns > 0) & (shot.until_ns + self._fresh_ns(target) > at_ns)
        limits = np.array([_limit(target, device, at_ns) for device in devices], dtype=np.float64)
        answer = screen(self._question(target, np.where(fresh[:, None], shot.values, np.nan), limits))
        standing = {series for series in self._standing.keys() if series.metric == target.metric}  # noqa: SIM118  # as above
        stands = None
        if standing:
            stands = np.array([SeriesRef(d.cluster, d.node, d.uid, target.metric) in standing for d in devices], dtype=np.bool_)
        matters = answer.candidate | answer.enough if plain else answer.candidate
        if stands is not None:
            matters = matters | stands
        out: list[v1.Forecast] = []
        for row in np.nonzero(matters)[0].tolist():
            device = devices[row]
            series = SeriesRef(device.cluster, device.node, device.uid, target.metric)
            limit = None if np.isnan(limits[row]) else float(limits[row])
            context = self._context(series, at_ns, int(shot.until_ns[row]), limit, device.simulated)
            current, candidate = float(shot.current[row]), bool(answer.candidate[row])
            fallen = _FALLEN_RESOLUTIONS * target.resolution_ratio * (limit if limit is not None else abs(current))
            if stands is not None and stands[row] and not candidate:
                # Where it goes is not worth a model, or (after a change of level) cannot be said; where it is, can.
                probability = 0.0 if answer.enough[row] else None
                if fresh[row]:
                    out += self._say(context, None, Look(current, limit, probability, fallen=fallen))
                elif at_ns >= self._grace_ns:
                    out += self._say(context, None, Look(None, None, None, lost=True))
            if answer.enough[row] and (candidate or plain):
                start = int(answer.trend_start[row])
                low, high = _bounds(target, device, at_ns)
                self._label += 1
                jobs.append((self._label, Job(answer.filled[row, start:].copy(), candidate, self._label, limit, low, high)))
                self._asked[self._label] = _Asked(context, current, fallen, candidate, plain)
        return out

    def _collect(self) -> list[v1.Forecast]:
        out: list[v1.Forecast] = []
        for label, result in self._pool.poll():
            asked = self._asked.pop(label, None)
            if asked is None:
                continue
            if isinstance(result, str):
                self._events["series_failed"] += 1
                continue
            self._events[f"model_{result.model}"] += 1
            self._events["fallbacks"] += len(result.fallbacks)
            if not asked.candidate:
                out.append(forecast(self._long(asked.context), result))
                continue
            probability = result.crossing.probability if result.crossing is not None else 0.0
            look = Look(asked.current, asked.context.limit, probability, fallen=asked.fallen)
            said = self._say(asked.context, result, look)
            # Below the level at which one recedes it is a plain forecast like any other; above, it waits for its next round.
            if not said and asked.plain and probability < self._s.recede_probability_ratio:
                said = [forecast(self._long(asked.context), result)]
            out += said
        return out

    def _say(self, context: Context, result: Prediction | None, look: Look) -> list[v1.Forecast]:
        verdict = self._standing.look(context.series, look)
        if verdict == "none":
            return []
        if verdict == "publish":
            if result is None:
                return []
            self._events["breach_forecasts"] += 1
            return [forecast(context, result)]
        self._events[f"withdrawn_{verdict}"] += 1
        return [withdrawal(context, verdict, look.current)]

    def _fresh_ns(self, target: Target) -> int:
        """How old the newest value may be before the signal is lost."""
        return max(self._s.lost_steps * self._s.step_ns, BY_NAME[target.metric].max_age_ns)

    def _question(self, target: Target, values: NDArray[np.float64], limits: NDArray[np.float64]) -> Question:
        return Question(
            y=values,
            limit=limits,
            resolution=limits * target.resolution_ratio,
            fastest=limits * (self._s.step_seconds / self._s.fastest_fill_seconds),
            guard_ratio=target.guard_ratio,
            horizon=self._s.horizon_steps,
            min_history=self._s.min_history_steps,
            min_trend=self._s.min_trend_steps,
            reach=self._s.reach_ratio,
            max_gap=self._s.max_gap_steps,
        )

    def _context(self, series: SeriesRef, at_ns: int, until_ns: int, limit: float | None, simulated: bool) -> Context:
        return Context(series, at_ns, until_ns, self._s.step_ns, at_ns + self.valid_ns, limit, simulated)

    def _long(self, context: Context) -> Context:
        return replace(context, valid_until_ns=context.made_at_ns + 2 * self._s.plain_every_rounds * self._every_ns)


def _limit(target: Target, device: Device, at_ns: int) -> float:
    if target.limit_metric and (told := device.limit(target.limit_metric, at_ns)) is not None:
        return told * target.limit_ratio
    return target.limit_value if target.limit_value is not None else float("nan")


def _bounds(target: Target, device: Device, at_ns: int) -> tuple[float | None, float | None]:
    row = BY_NAME[target.metric]
    ceiling = device.limit(target.ceiling_metric, at_ns) if target.ceiling_metric else None
    return row.minimum, ceiling if ceiling is not None else row.maximum
