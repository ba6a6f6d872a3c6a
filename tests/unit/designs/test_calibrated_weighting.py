from __future__ import annotations

import numpy as np
import pytest

from stratal.designs import StratifiedWeighting
from stratal.designs.margins import CalibratedWeighting, fitted_ratios
from stratal.errors import InputError


def test_raking_is_iterative_proportional_fitting():
    """Deming & Stephan's own algorithm: rows, columns, and again until nothing moves."""
    rows, columns = np.array([0, 0, 0, 1, 1, 1, 1]), np.array([0, 1, 1, 0, 0, 1, 1])
    weights = np.array([0.1, 0.1, 0.2, 0.15, 0.15, 0.2, 0.1])
    wanted = np.array([0.55, 0.45]), np.array([0.3, 0.7])
    fitted = weights.copy()
    for _ in range(500):
        fitted *= (wanted[0] / np.bincount(rows, fitted))[rows]
        fitted *= (wanted[1] / np.bincount(columns, fitted))[columns]
    x = np.column_stack([np.ones(7), rows, columns]).astype(float)
    assert weights * fitted_ratios(weights, x, np.array([1, 0.45, 0.7])) == pytest.approx(fitted, abs=1e-9)


def test_margins_out_of_reach_are_refused():
    x = np.array([[1.0, 0], [1, 0], [1, 0]])
    for method in ("raking", "regression"):
        with pytest.raises(InputError, match="no weights for these labels reproduce"):
            fitted_ratios(np.full(3, 1 / 3), x, np.array([1.0, 0.5]), method)
    ordered = np.column_stack([np.ones(3), [1.0, 2, 3]])
    with pytest.raises(InputError, match="method='regression'"):
        fitted_ratios(np.full(3, 1 / 3), ordered, np.array([1.0, 5.0]))
    assert np.any(fitted_ratios(np.full(3, 1 / 3), ordered, np.array([1.0, 5.0]), "regression") < 0)


def test_each_total_costs_a_degree_of_freedom():
    base = StratifiedWeighting(stratum=np.zeros(10, dtype=int), sizes=np.array([100]))
    rng = np.random.default_rng(1)
    x = np.column_stack([np.ones(10), rng.normal(size=(10, 2))])
    ratio = fitted_ratios(base.weights, x, np.array([1.0, 0.1, -0.1]), "regression")
    found = CalibratedWeighting(base=base, auxiliary=x, ratio=ratio)
    assert found.degrees_of_freedom(rng.normal(size=10)) == pytest.approx(7)
    assert (found.draws, found.population_size, found.unit_clusters, found.census) == (10, 100, None, False)
