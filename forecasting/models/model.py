"""What every model of the menu is: it fits a clean series, and the fit gives a mean and simulated futures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Kind = Literal["gauge", "counter"]
"""What a series is: values that go up and down, or a count that only grows (until it starts again from nothing)."""


class Unfit(Exception):
    """This model cannot say anything of this series; the text says why. Another model takes its place."""


class Fitted(Protocol):
    """A model with its parameters and its state after the last point. Values are in the unit of the series, unclamped."""

    def mean(self, horizon: int) -> NDArray[np.float64]:
        """Point forecast of the next `horizon` steps, shape (horizon,)."""
        ...

    def simulate(self, horizon: int, paths: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Futures, shape (paths, horizon)."""
        ...

    def after(self, y: NDArray[np.float64]) -> Fitted:
        """The same parameters with the state they would have after `y`, shape (n,): what a backtest asks at each origin."""
        ...


class Model(Protocol):
    """`minimum_points` is the shortest series `fit` accepts; `cost` multiplies its backtest error, so that a model must earn its place."""

    @property
    def name(self) -> str: ...
    @property
    def minimum_points(self) -> int: ...
    @property
    def cost(self) -> float: ...

    def fit(self, y: NDArray[np.float64]) -> Fitted:
        """Fit `y`, shape (n,), finite, oldest first. Raises Unfit."""
        ...
