"""The interval of a function of shares."""

from __future__ import annotations

import numpy as np
import pytest

from stratal.estimation.mover import directions, limits_on_ellipsoid


@pytest.mark.parametrize("d", [1, 2, 3])
def test_ends_over_the_ellipsoid_are_those_of_a_linear_function(d):
    """Of Σ a_j x_j with symmetric limits the end lies √(a'ΔRΔa) from the estimate."""
    rng = np.random.default_rng(d)
    root = rng.standard_normal((d, d + 2))
    cross = root @ root.T
    correlation = cross / np.sqrt(np.outer(np.diag(cross), np.diag(cross)))
    a, reach = rng.standard_normal(d), rng.uniform(0.01, 0.1, d)
    centre = np.full(d, 0.5)

    low, high = limits_on_ellipsoid(
        lambda s: np.tensordot(a, s, axes=1), centre, centre - reach, centre + reach, directions(correlation)
    )

    length = np.sqrt((a * reach) @ correlation @ (a * reach))
    assert float(high) - a @ centre == pytest.approx(length, rel=3e-3)
    assert a @ centre - float(low) == pytest.approx(length, rel=3e-3)
