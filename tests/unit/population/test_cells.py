"""Cells: the first test that a unit passes names its part."""

from __future__ import annotations

import numpy as np

from stratal.population.expressions import Agree, ByLevel, Cells

COLUMNS = {"a": np.array(["x", "y", "x"]), "b": np.array(["x", "x", "y"])}
CELLS = Cells(
    names=("same", "a is x", "rest"),
    tests=(Agree(names=("a", "b")), ByLevel(name="a", levels=("x",), values=(1.0,))),
)


def test_a_unit_is_in_the_first_cell_whose_test_it_passes():
    assert CELLS.assign(COLUMNS).tolist() == ["same", "rest", "a is x"]
    assert CELLS.test_of("rest") is None


def test_cells_come_back_from_their_record():
    assert Cells.from_dict(CELLS.to_dict()) == CELLS
