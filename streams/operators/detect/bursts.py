"""Bursts of error counters: how unlikely the newest growth is for the rate at which this device erred before.

Errors are counted, not measured: a z-score of them means nothing where nearly every reading is zero. The rate of a counter has a Gamma
posterior that forgets, so the growth to come is negative-binomial, and the score is the tail of that above what came. Errors come in
clusters; the spread that the counter itself has shown (Pearson's dispersion) scales both sides. Growth is always judged by the time in
which it came: after an absence that time is long, and nothing is taken for zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from streams.operators.detect.tails import log_tail, most_expected

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streams.operators.detect.table import Table

    Floats = NDArray[np.float64]

PRIOR_COUNT: Final = 0.5
PRIOR_SECONDS: Final = 600.0
"""Jeffreys' half a count, over ten minutes."""

PRIOR_DISPERSION: Final = 8.0
PRIOR_WEIGHT: Final = 2.0
"""Size of a cluster before the counter has shown its own, and the errors that this counts for: one broken cell is read, and corrected,
several times."""

MOST_SHAPE: Final = 20.0
"""However long the history, the rate is never taken to be known better than to 1 / sqrt(20): it moves with load and temperature."""


@dataclass(frozen=True, slots=True)
class Bursts:
    """`point_seconds`: least time a growth is judged over. `half_life_seconds`: age at which history counts half. `warm_up_seconds`: of
    history before there is a score. `window_seconds`: of the longer look, for growth too slow to show in one point. `tail`: probability
    that scores 0.5. `adapt_seconds`: a burst that lasts longer is the rate from then on. `max_age_seconds`: a score is held so long."""

    point_seconds: float = 10.0
    half_life_seconds: float = 6 * 3600.0
    warm_up_seconds: float = 300.0
    window_seconds: float = 600.0
    tail: float = 1e-8
    adapt_seconds: float = 3600.0
    max_age_seconds: float = 180.0


class Burst(NamedTuple):
    """(n, C) each. `score` 0-1, NaN while too little is known or nothing was read for too long; `grown` is what was found in
    `seconds`, `high` the most that was to be expected in that time (NaN where the score is low: it is costly to find)."""

    score: Floats
    grown: Floats
    seconds: Floats
    high: Floats


_LAST, _LAST_NS, _PENDING, _PENDING_S, _COUNT, _SQUARES, _SECONDS, _WINDOW, _WINDOW_SQUARES, _WINDOW_S, _RAW, _SINCE_NS = range(12)
_SCORE, _GROWN, _GROWN_S, _HIGH = range(12, 16)
_WIDTH: Final = 16


def define(table: Table, width: int) -> None:
    """One column of shape (16, width), 128 bytes a counter, and the counters' epochs. Times in it are exact to 256 ns."""
    table.define("burst", np.float64, np.nan, _WIDTH, width)
    table.define("burst_epoch", np.int64, 0, width)


def take(table: Table, rows: NDArray[np.intp], at_ns: NDArray[np.int64], epoch: NDArray[np.int64], values: Floats, options: Bursts) -> None:
    """Takes counters (n, C) of distinct rows in, NaN where nothing new was said.

    A lower value in a new epoch is a reset: what it shows came since the last reading. In the same epoch it is a fault: what came
    since is not known, and that time is not counted either.
    """
    news = ~np.isnan(values).all(axis=1)
    if news.any():
        _take(table, rows[news], at_ns[news], epoch[news], values[news], options)


def score(
    table: Table, rows: NDArray[np.intp], at_ns: NDArray[np.int64], epoch: NDArray[np.int64], values: Floats, options: Bursts
) -> Burst:
    """Takes counters in, and says what is known of them then."""
    take(table, rows, at_ns, epoch, values, options)
    return known(table, rows, at_ns, options)


def known(table: Table, rows: NDArray[np.intp], at_ns: NDArray[np.int64], options: Bursts) -> Burst:
    """What is known of the counters (n, C) of these rows now."""
    held = table["burst"][rows]
    stale = ~(at_ns[:, None] - held[:, _LAST_NS] <= options.max_age_seconds * 1e9)
    return Burst(np.where(stale, np.nan, held[:, _SCORE]), held[:, _GROWN], held[:, _GROWN_S], held[:, _HIGH])


def _take(
    table: Table, rows: NDArray[np.intp], at_ns: NDArray[np.int64], epoch: NDArray[np.int64], values: Floats, options: Bursts
) -> None:
    busy = _busy(table, rows, at_ns, epoch, values, options)
    if not busy.any():
        return
    if not busy.all():
        rows, at_ns, epoch, values = rows[busy], at_ns[busy], epoch[busy], values[busy]
    state = table["burst"][rows]
    news = ~np.isnan(values)
    last, last_ns = state[:, _LAST], state[:, _LAST_NS]
    known = news & ~np.isnan(last)
    delta = np.where(known, values - np.where(known, last, 0.0), 0.0)
    back = delta < 0
    reset = epoch[:, None] != table["burst_epoch"][rows]
    passed = np.where(known, np.maximum(at_ns[:, None] - np.where(known, last_ns, 0.0), 0.0) * 1e-9, 0.0)
    lost = back & ~reset
    delta = np.where(back, np.where(reset, np.where(known, values, 0.0), 0.0), delta)
    passed[lost] = 0.0
    state[:, _PENDING:_SINCE_NS] = np.nan_to_num(state[:, _PENDING:_SINCE_NS])
    state[:, _PENDING] += delta
    state[:, _PENDING_S] += passed
    state[:, _LAST] = np.where(news, values, last)
    state[:, _LAST_NS] = np.where(news, at_ns[:, None], last_ns)
    table["burst_epoch"][rows] = np.where(news, epoch[:, None], table["burst_epoch"][rows])
    i, c = np.nonzero(news & (state[:, _PENDING_S] >= options.point_seconds))
    if len(i):
        state[i, :, c] = _point(state[i, :, c], at_ns[i].astype(np.float64), options)
    table["burst"][rows] = state


def _busy(
    table: Table, rows: NDArray[np.intp], at_ns: NDArray[np.int64], epoch: NDArray[np.int64], values: Floats, options: Bursts
) -> NDArray[np.bool_]:
    """Which rows (n,) bring more than time: a counter that says something else than before, a new epoch, or the end of a point. Of the
    others, which are nearly all, the time is taken in here."""
    state = table["burst"]
    news = values == values
    last_ns, pending = state[rows, _LAST_NS], state[rows, _PENDING_S]
    passed = pending + np.maximum(at_ns[:, None] - last_ns, 0.0) * 1e-9
    # what was not known before is not the same either
    more = (values != state[rows, _LAST]) | (table["burst_epoch"][rows] != epoch[:, None]) | (passed >= options.point_seconds)
    busy: NDArray[np.bool_] = (news & more).any(axis=1)
    calm = ~busy
    if calm.any():
        state[rows[calm], _PENDING_S] = np.where(news, passed, pending)[calm]
        state[rows[calm], _LAST_NS] = np.where(news, at_ns[:, None], last_ns)[calm]
    return busy


def _point(s: Floats, at_ns: Floats, options: Bursts) -> Floats:
    """One point of p counters: state (p, 16) judged, then taught."""
    s = s.copy()
    grown, seconds = s[:, _PENDING].copy(), s[:, _PENDING_S].copy()
    s[:, _PENDING] = s[:, _PENDING_S] = 0.0
    kept = np.exp2(-seconds / options.half_life_seconds)
    s[:, _COUNT] *= kept
    s[:, _SQUARES] *= kept
    history = s[:, _SECONDS] * kept
    rate = (PRIOR_COUNT + s[:, _COUNT]) / (PRIOR_SECONDS + history)
    dispersion = np.maximum(1.0, (s[:, _SQUARES] + PRIOR_WEIGHT * PRIOR_DISPERSION) / (s[:, _COUNT] + PRIOR_WEIGHT))
    shape = np.minimum((PRIOR_COUNT + s[:, _COUNT]) / dispersion, MOST_SHAPE)
    leak = np.exp(-seconds / options.window_seconds)
    window, squares, window_s = (s[:, part] * leak for part in (_WINDOW, _WINDOW_SQUARES, _WINDOW_S))
    s[:, _RAW] = s[:, _RAW] * leak + grown

    boundary = -math.log(options.tail)
    spans = np.stack((grown, window + grown)), np.stack((seconds, window_s + seconds))
    mean = rate * spans[1]
    # what is below the mean surprises nobody, and there the series converges slowly
    surprise = -log_tail(np.where(spans[0] > mean, spans[0], 0.0) / dispersion, mean / dispersion, shape)
    worst = surprise.argmax(axis=0)
    each = np.arange(len(s))
    found, span, most = spans[0][worst, each], spans[1][worst, each], surprise[worst, each]
    warm = history >= options.warm_up_seconds
    # in single precision: the last digits of a logarithm depend on how many are taken together
    s[:, _SCORE] = np.where(warm, most / (most + boundary), np.nan).astype(np.float32)
    s[:, _GROWN], s[:, _GROWN_S] = found, span
    s[:, _HIGH] = np.nan
    if (near := np.flatnonzero(warm & (most > boundary / 4))).size:
        s[near, _HIGH] = dispersion[near] * most_expected((rate * span / dispersion)[near], shape[near], boundary)

    beyond = warm & (most >= boundary)
    expected = rate * seconds
    # a burst teaches little, or the next one would be nothing new; and what is over is not looked at for long
    clip = expected + 3.0 * np.sqrt(dispersion * expected) + dispersion
    learnt = np.where(beyond, np.minimum(grown, clip), grown)
    # history is what has left the window: else a steady flow would soon be taken for the clusters that the counter is known for
    s[:, _COUNT] += s[:, _WINDOW] - window
    s[:, _SQUARES] += s[:, _WINDOW_SQUARES] - squares
    s[:, _SECONDS] = history + s[:, _WINDOW_S] - window_s
    s[:, _WINDOW] = window + learnt
    s[:, _WINDOW_SQUARES] = squares + np.square(learnt - expected)
    s[:, _WINDOW_S] = window_s + seconds
    since = np.where(beyond, np.where(s[:, _SINCE_NS] > 0, s[:, _SINCE_NS], at_ns), 0.0)
    s[:, _SINCE_NS] = since
    usual = beyond & (at_ns - since >= options.adapt_seconds * 1e9)
    s[usual, _COUNT], s[usual, _SECONDS] = s[usual, _RAW], s[usual, _WINDOW_S]
    s[usual, _SQUARES] = s[usual, _RAW] * dispersion[usual]
    s[usual, _SINCE_NS] = 0.0
    return s
