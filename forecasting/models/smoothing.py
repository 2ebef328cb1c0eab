"""Exponential smoothing with a trend, fitted by statsmodels and simulated here: what Holt and the damped trend share.

Why not statsmodels' own prediction: `get_prediction` fails on arrays (0.15.0), and its paths know neither the error of the
estimated slope nor that errors are not normal.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from forecasting.models.model import Unfit

if TYPE_CHECKING:
    from numpy.typing import NDArray

MINIMUM_POINTS: Final = 6
"""Two smoothing weights, and a start from a straight line, leave something to estimate errors from."""

_MOST_ITERATIONS: Final = 60
"""L-BFGS converges within 10-30 on benign series; the rest is not worth the time."""


@dataclass(frozen=True, slots=True)
class FittedTrend:
    """Level and slope after the last point; l' = l + phi b + alpha e, b' = phi b + beta e."""

    level: float
    slope: float
    alpha: float
    beta: float
    phi: float
    errors: NDArray[np.float64]
    slope_error: float

    def mean(self, horizon: int) -> NDArray[np.float64]:
        gained = np.cumsum(self.phi ** np.arange(1, horizon + 1))
        path: NDArray[np.float64] = self.level + self.slope * gained
        return path

    def simulate(self, horizon: int, paths: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Errors are drawn from those of the fit, the slope from its sampling distribution."""
        errors = rng.choice(self.errors, size=(horizon, paths))
        level = np.full(paths, self.level)
        slope = self.slope + self.slope_error * rng.standard_normal(paths)
        out = np.empty((horizon, paths))
        for step in range(horizon):
            slope = self.phi * slope
            level = level + slope
            out[step] = level + errors[step]
            level = level + self.alpha * errors[step]
            slope = slope + self.beta * errors[step]
        return out.T

    def after(self, y: NDArray[np.float64]) -> FittedTrend:
        """Only `level` and `slope` are of `y`; it starts, as the fit did, from the straight line through it."""
        start, slope = _line(y)
        level = start - slope
        for value in y.tolist():
            ahead = level + self.phi * slope
            error = value - ahead
            level, slope = ahead + self.alpha * error, self.phi * slope + self.beta * error
        return replace(self, level=level, slope=slope)


def fit_trend(y: NDArray[np.float64], *, damped: bool) -> FittedTrend:
    """Fit `y`, shape (n,), n >= MINIMUM_POINTS. Raises Unfit where the series is too short, not finite, or the fit fails."""
    name = "damped" if damped else "holt"
    if y.size < MINIMUM_POINTS:
        raise Unfit(f"{name}: {y.size} points, {MINIMUM_POINTS} are the least")
    if not np.isfinite(y).all():
        raise Unfit(f"{name}: the series has gaps")
    spread = float(np.ptp(y))
    if spread <= 1e-12 * float(np.abs(y).max()):
        return FittedTrend(float(y[-1]), 0.0, 1.0, 0.0, 1.0, np.zeros(1), 0.0)
    z = (y - y[0]) / spread
    at = np.arange(z.size, dtype=np.float64)
    start, slope = _line(z)
    rest = z - (start + slope * at)
    slope_error = float(np.sqrt((rest @ rest) / max(1, z.size - 2) / ((at - at.mean()) ** 2).sum()))
    if float(np.abs(rest).max()) < 1e-9:  # an exact line leaves the optimiser a flat likelihood
        return FittedTrend(float(y[-1]), float(slope * spread), 1.0, 0.0, 0.98 if damped else 1.0, np.zeros(1), 0.0)
    alpha, beta, phi, level, trend, errors = _optimise(z, start - slope, slope, damped=damped)
    found = (alpha, beta, phi, level, trend)
    if not np.isfinite(found).all() or not np.isfinite(errors).all():
        raise Unfit(f"{name}: the fit is not finite")
    return FittedTrend(
        level=float(y[0] + level * spread),
        slope=float(trend * spread),
        alpha=alpha,
        beta=beta,
        phi=phi,
        errors=(errors - errors.mean()) * spread,
        slope_error=slope_error * spread,
    )


def _line(y: NDArray[np.float64]) -> tuple[float, float]:
    """Value at the first point and rise per step of the least-squares line through `y`."""
    at = np.arange(y.size) - (y.size - 1) / 2
    slope = float(at @ y / (at @ at))
    return float(y.mean()) - slope * (y.size - 1) / 2, slope


def _optimise(
    z: NDArray[np.float64], level: float, trend: float, *, damped: bool
) -> tuple[float, float, float, float, float, NDArray[np.float64]]:
    from statsmodels.tsa.exponential_smoothing.ets import ETSModel

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # it warns of convergence on benign data (analytics.md §2.1); the result is checked instead
        model = ETSModel(
            z, error="add", trend="add", damped_trend=damped, initialization_method="known", initial_level=level, initial_trend=trend
        )
        try:
            result = model.fit(disp=False, maxiter=_MOST_ITERATIONS)
        except (ValueError, np.linalg.LinAlgError, FloatingPointError, ZeroDivisionError) as error:
            raise Unfit(f"ets: {error}") from None
    phi = float(result.damping_trend) if damped else 1.0
    return (
        float(result.smoothing_level),
        float(result.smoothing_trend),
        phi,
        float(result.level[-1]),
        float(result.slope[-1]),
        np.asarray(result.resid, dtype=np.float64),
    )
