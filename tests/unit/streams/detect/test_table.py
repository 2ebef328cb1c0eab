"""The table of series: rows that are used again, columns and planes that grow."""

import numpy as np
import pytest

from streams.operators.detect.table import Table


def filled(rows: int) -> Table:
    table = Table()
    table.define("one", np.float64, -1.0, 3)
    table.define_planes("two", np.float32, np.inf, 2, 3)
    for row in (table.new_row() for _ in range(rows)):
        table["one"][row] = row
        table["two"][:, row] = row
    return table


def test_planes_grow_with_the_rows_and_keep_what_is_in_them() -> None:
    table = filled(200)
    assert table.capacity == len(table["one"]) == table["two"].shape[1] >= 200
    np.testing.assert_array_equal(table["two"][1, :200, 2], np.arange(200))
    assert np.isinf(table["two"][:, 200:]).all()


def test_a_table_whose_first_column_is_planes_knows_its_capacity() -> None:
    table = Table()
    table.define_planes("two", np.float32, 0.0, 5, 1)
    table.define("one", np.float64, 0.0)
    rows = [table.new_row() for _ in range(100)]
    assert rows == list(range(100))
    assert table.capacity == len(table["one"]) == table["two"].shape[1]


def test_a_forgotten_row_is_fresh_in_every_plane() -> None:
    table = filled(4)
    table.forget([2])
    assert table.new_row() == 2
    assert np.isinf(table["two"][:, 2]).all()
    assert (table["two"][:, [0, 1, 3]] == [[0], [1], [3]]).all()


def test_places_are_fresh_again_in_columns_so_named_alone() -> None:
    table = filled(4)
    table.freshen("tw", np.array([1 * 3 + 2, 3 * 3]))
    assert np.isinf(table["two"][:, 1, 2]).all()
    assert np.isinf(table["two"][:, 3, 0]).all()
    assert np.isinf(table["two"][:, :4]).sum() == 4
    assert (table["one"][1] == 1).all()


def test_a_name_is_given_once() -> None:
    with pytest.raises(ValueError, match="'one' is defined twice"):
        filled(1).define_planes("one", np.float32, 0.0, 2, 3)
