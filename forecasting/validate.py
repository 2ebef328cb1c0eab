"""The last look at a prediction before it may leave: finite, ordered, within bounds, not exploded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from forecasting.predict import Job, Prediction

_SLACK: Final = 4.0
"""A line extrapolated over h steps from n points moves h / n times its range; four times that is an explosion, not a trend."""


def flaw(prediction: Prediction, horizon: int, job: Job) -> str | None:
    """Why it may not be published; None where nothing is wrong."""
    bands = np.stack((prediction.p05, prediction.p50, prediction.p95))
    if bands.shape != (3, horizon):
        return f"{bands.shape[1]} steps instead of {horizon}"
    if not np.isfinite(bands).all() or not np.isfinite(prediction.current):
        return "not finite"
    if (np.diff(bands, axis=0) < 0).any():
        return "quantiles out of order"
    if (job.low is not None and bands.min() < job.low) or (job.high is not None and bands.max() > job.high):
        return "outside physical bounds"
    # Of a counter that stood still one more may always come.
    spread = float(np.ptp(job.y)) + (1.0 if job.kind == "counter" else 0.0)
    most = _SLACK * spread * (1 + horizon / job.y.size) + 1e-9 * abs(prediction.current)
    middle = job.y[-1] if job.low is None and job.high is None else np.clip(job.y[-1], job.low, job.high)
    if float(np.abs(prediction.p50 - middle).max()) > most:
        return "exploded"
    return _crossing_flaw(prediction, horizon)


def _crossing_flaw(prediction: Prediction, horizon: int) -> str | None:
    found = prediction.crossing
    if found is None:
        return None
    if not 0 <= found.probability <= 1:
        return f"breach probability {found.probability}"
    said = [eta for eta in (found.p10_steps, found.p50_steps, found.p90_steps) if eta is not None]
    if said != sorted(said) or any(not 0 <= eta <= horizon for eta in said):
        return "ETA out of order or outside the horizon"
    return None
