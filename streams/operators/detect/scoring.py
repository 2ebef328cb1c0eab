"""Runs the detectors that a plan asks on one round of values and puts their scores side by side, one column per channel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from streams.operators.detect import bursts, peers, residual
from streams.operators.detect.anomaly import ensemble
from streams.operators.detect.bursts import Bursts
from streams.operators.detect.peers import Peers
from streams.operators.detect.residual import Residuals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.held import Round
    from streams.operators.detect.plan import Plan
    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]

DETECTORS: Final = (*ensemble.DETECTORS, "burst", "peers", "residual")
"""Names of all detectors, as findings give them."""
BURST: Final = len(ensemble.DETECTORS)
PEERS: Final = BURST + 1
RESIDUAL: Final = BURST + 2


@dataclass(frozen=True, slots=True)
class Detectors:
    """How each detector is set; the defaults are what is shipped."""

    usual: ensemble.Options = field(default_factory=ensemble.Options)
    bursts: Bursts = field(default_factory=Bursts)
    peers: Peers = field(default_factory=Peers)
    residual: Residuals = field(default_factory=Residuals)

    @classmethod
    def every(cls, point_seconds: float, *, seasonal: bool) -> Detectors:
        """The shipped ones, with points of this length."""
        return cls(
            ensemble.Options(point_seconds=point_seconds, seasonal=seasonal),
            Bursts(point_seconds=point_seconds),
            Peers(point_seconds=point_seconds),
            Residuals(point_seconds=point_seconds),
        )


class Scores(NamedTuple):
    """(n, C) each: score, the value it is about, what was expected of that, and which of DETECTORS it was. NaN: not known."""

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
    if len(scored.anomalies):
        ensemble.define(table, len(scored.anomalies), detectors.usual)
    if len(scored.bursts):
        bursts.define(table, len(scored.bursts))
    if len(scored.peers):
        peers.define(table)
    if len(scored.residuals):
        residual.define(table, len(scored.residuals))


def score(table: Table, plan: Plan, given: Round, now: Floats, detectors: Detectors) -> Scores:
    """Takes a round in; `now` (n, M + 1) are the values that hold. Channels lie in the order of `channels.KINDS`."""
    scored, rows, at = plan.scored, given.rows, given.at_ns
    shape = (len(rows), len(scored.channels))
    unknown = np.full((4, *shape), np.nan)
    found = Scores(unknown[0], now[:, scored.metric], unknown[1], unknown[2], np.full(shape, -1, np.int8), unknown[3])
    first = 0
    if width := len(scored.anomalies):
        usual = ensemble.score(table, rows, at, given.values[:, scored.anomalies], detectors.usual)
        _put(found, first, width, usual.lasting, usual.low, usual.high, usual.detector)
        first += width
    if width := len(scored.bursts):
        burst = bursts.score(table, rows, at, given.epoch, given.values[:, scored.bursts], detectors.bursts)
        _put(found, first, width, burst.score, 0.0, burst.high, BURST)
        found.value[:, first : first + width] = burst.grown
        found.seconds[:, first : first + width] = burst.seconds
        first += width
    if len(scored.peers):
        first = _compare(table, plan, given, now, detectors.peers, found, first)
    if len(scored.residuals):
        odd = residual.score(table, rows, at, given.values[:, scored.residuals], detectors.residual)
        _put(found, first, 1, odd.score[:, None], 0.0, odd.high[:, None], RESIDUAL)
        found.value[:, first] = odd.energy
    return found


def _compare(table: Table, plan: Plan, given: Round, now: Floats, options: Peers, found: Scores, first: int) -> int:
    """Adds the round to the sums; compares the devices whose nodes end a point; and puts the scores of both sides, where asked."""
    rows, at = given.rows, given.at_ns
    peers.take(table, rows, given.values[:, plan.scored.peers])
    if given.ended is not None:
        i = given.ended.i
        means = peers.close(table, rows[i], now[i][:, plan.scored.peers[-1]])
        peers.compare(table, rows[i], at[i], means, given.ended.places, options)
    width = len(peers.NAMES)
    if first == len(plan.scored.channels) or plan.scored.channels[first].kind != "below":
        return first
    below, above = peers.score(table, rows, at, options)
    low, high, mean = (table[name][rows] for name in ("peer_low", "peer_high", "peer_mean"))
    for side, scores in enumerate((below, above)):
        at_side = first + side * width
        _put(found, at_side, width, scores, low, high, PEERS)
        found.value[:, at_side : at_side + width] = mean[:, :width]
    return first + 2 * width


def _put(found: Scores, first: int, width: int, score: Floats, low: Floats | float, high: Floats, detector: NDArray[np.int8] | int) -> None:
    those = slice(first, first + width)
    found.score[:, those], found.low[:, those], found.high[:, those], found.detector[:, those] = score, low, high, detector
