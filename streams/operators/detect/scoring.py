"""Runs the detectors that a plan asks on the points that end in a round, and puts their scores side by side, one column per channel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from streams.operators.detect import beyond, bursts, peers, points, residual
from streams.operators.detect.anomaly import ensemble
from streams.operators.detect.beyond import Loads
from streams.operators.detect.bursts import Bursts
from streams.operators.detect.channels import SIDES
from streams.operators.detect.peers import Peers
from streams.operators.detect.residual import Residuals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.held import Round
    from streams.operators.detect.plan import Plan
    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]

DETECTORS: Final = (*ensemble.DETECTORS, "burst", "peers", "residual", "load")
"""Names of all detectors, as findings give them."""
BURST: Final = len(ensemble.DETECTORS)
PEERS: Final = BURST + 1
RESIDUAL: Final = BURST + 2
LOAD: Final = BURST + 3

POINT_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Detectors:
    """How each detector is set; the defaults are what is shipped."""

    usual: ensemble.Options = field(default_factory=lambda: ensemble.Options(point_seconds=POINT_SECONDS / 2))
    bursts: Bursts = field(default_factory=Bursts)
    peers: Peers = field(default_factory=Peers)
    residual: Residuals = field(default_factory=Residuals)
    loads: Loads = field(default_factory=Loads)

    @classmethod
    def every(cls, point_seconds: float, *, seasonal: bool) -> Detectors:
        """The shipped ones, with points of this length."""
        return cls(
            # it is given points: half of their distance, so that none is put together with the next where samples jitter
            ensemble.Options(point_seconds=point_seconds / 2, seasonal=seasonal),
            Bursts(point_seconds=point_seconds),
            Peers(point_seconds=point_seconds),
            Residuals(),
        )

    @property
    def point_ns(self) -> int:
        return round(self.peers.point_seconds * 1e9)


class Scores(NamedTuple):
    """(k, C) each: score, the value it is about, what was expected of that, and which of DETECTORS it was. NaN: not known."""

    score: Floats
    value: Floats
    low: Floats
    high: Floats
    detector: NDArray[np.int8]
    seconds: Floats
    """Of a burst: the time in which `value` came; NaN for others."""


def define(table: Table, plan: Plan, detectors: Detectors) -> None:
    """The columns of the detectors that are asked."""
    scored = plan.scored
    points.define(table, len(scored.averaged))
    if len(scored.anomalies):
        ensemble.define(table, len(scored.anomalies), detectors.usual)
    if len(scored.bursts):
        bursts.define(table, len(scored.bursts))
    if len(scored.peers):
        peers.define(table)
    if len(scored.residuals):
        residual.define(table, len(scored.residuals))
    if scored.loads.size:
        beyond.define(table, scored.loads.shape[1])


def take(table: Table, plan: Plan, given: Round, detectors: Detectors) -> NDArray[np.intp]:
    """Takes a round in; positions of the rows whose point ends with it: only they are judged."""
    scored = plan.scored
    if len(scored.averaged):
        points.add(table, given.rows, given.values[:, scored.averaged])
    if len(scored.bursts):
        bursts.take(table, given.rows, given.at_ns, given.epoch, given.values[:, scored.bursts], detectors.bursts)
    return points.due(table, given.rows, given.at_ns, detectors.point_ns)


def score(table: Table, plan: Plan, given: Round, due: NDArray[np.intp], now: Floats, detectors: Detectors) -> Scores:
    """Judges the k rows at `due`, whose points end; `now` (k, M + 1) are the values that hold. All are (k, C), channels in the order of
    `channels.KINDS`."""
    scored, rows, at = plan.scored, given.rows[due], given.at_ns[due]
    means, samples = points.end(table, rows, at)
    shape = (len(rows), len(scored.channels))
    unknown = np.full((4, *shape), np.nan)
    found = Scores(unknown[0], now[:, scored.metric], unknown[1], unknown[2], np.full(shape, -1, np.int8), unknown[3])
    first = 0
    if width := len(scored.anomalies):
        usual = ensemble.score(table, rows, at, means[:, scored.anomalies], detectors.usual)
        # what is read less often than points end stands for as long as its reading holds
        held = np.isnan(means[:, scored.anomalies]) & ~np.isnan(found.value[:, first : first + width])
        lasting = np.where(held, table["anomaly_lasting"][rows], usual.lasting)
        _put(found, first, width, lasting, usual.low, usual.high, usual.detector)
        found.value[:, first : first + width] = np.where(held, found.value[:, first : first + width], means[:, scored.anomalies])
        first += width
    if width := len(scored.bursts):
        burst = bursts.known(table, rows, at, detectors.bursts)
        _put(found, first, width, burst.score, 0.0, burst.high, BURST)
        found.value[:, first : first + width] = burst.grown
        found.seconds[:, first : first + width] = burst.seconds
        first += width
    if len(scored.peers) and given.places is not None:
        values = peers.point(means[:, scored.peers], now[:, scored.power_limit], now[:, scored.reasons])
        table["peer_samples"][rows] = samples.max(axis=1)
        peers.compare(table, rows, at, values, given.places(due), detectors.peers)
        first = _beside(table, plan, rows, at, detectors.peers, found, first)
    if len(scored.residuals):
        odd = residual.score(table, rows, at, means[:, scored.residuals], detectors.residual)
        _put(found, first, 1, odd.score[:, None], 0.0, odd.high[:, None], RESIDUAL)
        found.value[:, first] = odd.energy
        first += 1
    if width := scored.loads.shape[1]:
        above = beyond.score(table, rows, at, means[:, scored.loads[0]], means[:, scored.loads[1]], scored.least, detectors.loads)
        _put(found, first, width, above.score, np.nan, above.high, LOAD)
        found.value[:, first : first + width] = above.value
    return found


def _beside(table: Table, plan: Plan, rows: NDArray[np.intp], at_ns: NDArray[np.int64], options: Peers, found: Scores, first: int) -> int:
    """Puts in the scores of both sides, where a rule asks for them."""
    if first == len(plan.scored.channels) or plan.scored.channels[first].kind != SIDES[0]:
        return first
    width = len(peers.NAMES)
    low, high, mean = (table[name][rows] for name in ("peer_low", "peer_high", "peer_mean"))
    for scores in peers.score(table, rows, at_ns, options):
        _put(found, first, width, scores, low, high, PEERS)
        found.value[:, first : first + width] = mean[:, :width]
        first += width
    return first


def _put(found: Scores, first: int, width: int, score: Floats, low: Floats | float, high: Floats, detector: NDArray[np.int8] | int) -> None:
    those = slice(first, first + width)
    found.score[:, those], found.low[:, those], found.high[:, those], found.detector[:, those] = score, low, high, detector
