"""Pictures of the forecasting guide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PICTURES: Final[dict[str, Callable[[], Path]]] = {}
