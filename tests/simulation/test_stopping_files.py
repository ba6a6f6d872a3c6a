"""Studies of real predictions that stop when their interval is narrow enough."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
from benchmarks.promises import stopped
from tests.tiers import cells, sized

import stratal

STUDIES = sized(200, 1_000)


@pytest.mark.parametrize(
    ("name", "half_width"), cells([("forest", 0.01), ("galaxies", 0.02)], fast=["galaxies"])
)
def test_half_widths_are_kept_and_intervals_hold(shared, name, half_width):
    """Without the guard for rounds .918 and .93 of the intervals held."""
    table = pq.read_table(shared / "data" / f"{name}.parquet", columns=["z", "proxy"])
    z = table["z"].to_numpy().astype(np.float64)
    population = stratal.Population.from_arrays(proxy=table["proxy"].to_numpy())
    plan = stratal.plan(population, half_width=half_width, pilot=True)
    found = stopped(plan, z, half_width, studies=STUDIES, seed=4)
    low, high = found.low, found.high

    assert np.mean((high - low) / 2 <= 1.05 * half_width) >= 0.9
    assert np.mean((low <= z.mean()) & (z.mean() <= high)) >= 0.94 - 2 * (0.05 * 0.95 / STUDIES) ** 0.5
