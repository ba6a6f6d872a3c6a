"""R survey's Hájek mean and total under unequal probabilities, and the Poisson standard error."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from stratal.designs import PoissonWeighting, WithReplacementWeighting
from stratal.estimation.outcome_means import linearised_mean

VECTORS = Path(__file__).resolve().parents[3] / "shared" / "vectors"
pytestmark = pytest.mark.skipif(not VECTORS.exists(), reason="the published numbers are not here")


def vector() -> tuple[dict, np.ndarray, np.ndarray]:
    numbers = json.loads((VECTORS / "hajek_poisson.json").read_text())
    y, weight = (np.array(numbers["input"][name], dtype=float) for name in ("y", "weight"))
    return numbers, y, weight


def test_hajek_mean():
    numbers, y, weight = vector()
    mean, error = numbers["expected"]["hajek_mean_with_replacement"]
    for size in (weight.sum(), 5000.0):
        result = linearised_mean(
            y, weighting=WithReplacementWeighting(design_weight=weight, size=size), estimator="hajek"
        )
        assert mean == pytest.approx(result.value, abs=numbers["tolerance"]["mean"])
        assert error == pytest.approx(np.sqrt(result.variance), abs=numbers["tolerance"]["mean"])


def test_total():
    numbers, y, weight = vector()
    total, error = numbers["expected"]["total_with_replacement"]
    result = linearised_mean(y, weighting=WithReplacementWeighting(design_weight=weight, size=1.0))

    assert total == pytest.approx(result.value, abs=numbers["tolerance"]["total"])
    assert error == pytest.approx(np.sqrt(result.variance), abs=numbers["tolerance"]["total"])


def test_poisson_total():
    numbers, y, weight = vector()
    result = linearised_mean(y, weighting=PoissonWeighting(inclusion_probability=1 / weight, size=1.0))

    expected = numbers["expected"]["poisson_total_standard_error"]
    assert expected == pytest.approx(np.sqrt(result.variance), abs=numbers["tolerance"]["poisson"])
