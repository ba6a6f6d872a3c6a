"""Coverage where labels weigh differently; benchmarks/unequal_weights.py has the whole grid.

It was .89 to .94 with log-normal sizes (a printed λ of 2.3), .30 to .85 with a proxy among the margins, and
.89 to .935 of clusters whose outcome goes with their size.
"""

import warnings

import numpy as np
import pytest
from benchmarks.unequal_weights import CELLS, Cell, measure
from tests.tiers import sized

SHORT = [
    Cell("proportional-to-size", 0.3, 200, 1.5, -0.5, "inverted"),
    Cell("poisson", 0.5, 50, 1.5, 0.0, "constant"),
    Cell("margins", 0.1, 60, 1.0, 0.5, "inverted"),
    Cell("clusters", 0.5, 20, 0.7, 1.0, "noise"),
    Cell("clusters", 0.5, 12, 1.0, -1.0, "constant"),
    Cell("clusters", 0.1, 40, 1.0, 1.0, "noise"),
]


def covers(cell, replicates):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = measure(cell, replicates, seed=20, methods=("auto",))
    return found.coverage["auto"] >= 0.94 - 3 * np.sqrt(0.94 * 0.06 / replicates)


@pytest.mark.parametrize("cell", SHORT, ids=str)
def test_intervals_cover(cell):
    assert covers(cell, sized(80, 300))


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_intervals_cover_in_the_whole_grid(cell):
    assert covers(cell, 1000)
