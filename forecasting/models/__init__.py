"""The menu of forecasting models: each fits many clean series at once and simulates their futures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from forecasting.models.autoreg import AutoReg
from forecasting.models.batch import Batch, gather
from forecasting.models.counting import Counting
from forecasting.models.damped import Damped
from forecasting.models.holt import Holt
from forecasting.models.level import Level
from forecasting.models.line import Line
from forecasting.models.model import Fitted, Kind, Linear, Model
from forecasting.models.naive import Naive
from forecasting.models.seasonal import Seasonal
from forecasting.models.theta import Theta
from forecasting.models.trial import Trial, trial

if TYPE_CHECKING:
    from collections.abc import Sequence

NAIVE: Final = Naive()
MENU: Final[Sequence[Model]] = (
    NAIVE,
    Level(),
    Holt(),
    Damped(),
    Theta(),
    Line(),
    AutoReg(),
    AutoReg(name="arima", changes=True, ridge=1e-3),
    Seasonal(),
    Counting(),
    Counting(name="counting_faster", grows=True, cost=1.2),
)
"""What competes in the backtest; the order breaks ties."""

__all__ = [
    "MENU",
    "NAIVE",
    "AutoReg",
    "Batch",
    "Counting",
    "Damped",
    "Fitted",
    "Holt",
    "Kind",
    "Level",
    "Line",
    "Linear",
    "Model",
    "Naive",
    "Seasonal",
    "Theta",
    "Trial",
    "gather",
    "trial",
]
