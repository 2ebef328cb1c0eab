"""The menu of forecasting models: each fits one clean series and simulates its futures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from forecasting.models.damped import Damped
from forecasting.models.holt import Holt
from forecasting.models.model import Fitted, Model, Unfit
from forecasting.models.naive import Naive

if TYPE_CHECKING:
    from collections.abc import Sequence

NAIVE: Final = Naive()
MENU: Final[Sequence[Model]] = (NAIVE, Holt(), Damped())
"""What competes in the backtest; the order breaks ties."""

__all__ = ["MENU", "NAIVE", "Damped", "Fitted", "Holt", "Model", "Naive", "Unfit"]
