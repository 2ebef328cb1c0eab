"""Reads and writes the state of series fast: of neighbours by a view, of others by index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from streams.operators.detect.table import Table

    Where = slice | NDArray[np.intp]


def where(cells: NDArray[np.intp]) -> Where:
    """A slice if the places `cells` (m,) are neighbours in ascending order, else `cells` itself."""
    m = len(cells)
    if m and cells[-1] - cells[0] == m - 1 and (m == 1 or bool((cells[1:] > cells[:-1]).all())):
        return slice(int(cells[0]), int(cells[0]) + m)
    return cells


def rows(column: NDArray[Any], at: Where) -> NDArray[Any]:
    """The rows of `column` at `at`: to be read only, as it may be a view."""
    return column[at] if isinstance(at, slice) else column.take(at, axis=0)


def planes(table: Table, name: str, at: Where) -> NDArray[Any]:
    """The planes (K, m) of `name` at `at`. What is changed in them is the state only after `keep`, and may be so before."""
    column = table[name]
    flat = column.reshape(len(column), -1)
    return flat[:, at] if isinstance(at, slice) else flat.take(at, axis=1)


def keep(table: Table, name: str, at: Where, changed: NDArray[Any]) -> None:
    """Makes `changed` (K, m), which `planes` gave, the state."""
    if not isinstance(at, slice):
        column = table[name]
        column.reshape(len(column), -1)[:, at] = changed
