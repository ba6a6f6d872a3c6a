"""R survey's stratified mean, with and without the finite population correction."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from stratal.designs import StratifiedWeighting
from stratal.estimation.outcome_means import linearised_mean

VECTORS = Path(__file__).resolve().parents[3] / "shared" / "vectors"
pytestmark = pytest.mark.skipif(not VECTORS.exists(), reason="the published numbers are not here")


def vector() -> tuple[dict, np.ndarray, np.ndarray, np.ndarray]:
    numbers = json.loads((VECTORS / "stratified_mean.json").read_text())
    strata = numbers["input"]["strata"]
    x = np.concatenate([row["x"] for row in strata])
    stratum = np.repeat(np.arange(len(strata)), [len(row["x"]) for row in strata])
    return numbers, x, stratum, np.array([row["N_h"] for row in strata])


def test_mean_and_standard_errors():
    numbers, x, stratum, sizes = vector()
    expected = numbers["expected"]
    with_fpc = linearised_mean(x, weighting=StratifiedWeighting(stratum=stratum, sizes=sizes))
    without = linearised_mean(
        x, weighting=StratifiedWeighting(stratum=stratum, sizes=sizes, with_replacement=True)
    )

    tolerance = numbers["tolerance"]
    assert expected["mean"] == pytest.approx(with_fpc.value, abs=tolerance)
    assert expected["standard_error"] == pytest.approx(np.sqrt(with_fpc.variance), abs=tolerance)
    assert expected["standard_error_without_fpc"] == pytest.approx(np.sqrt(without.variance), abs=tolerance)


def test_domains_keep_the_whole_design():
    """A domain's mean is a ratio whose linearised variable is zero outside the domain."""
    numbers, x, stratum, sizes = vector()
    weighting = StratifiedWeighting(stratum=stratum, sizes=sizes, with_replacement=True)
    for expected, inside in zip(numbers["expected"]["domain_without_fpc"], (x > 4, x <= 4), strict=True):
        size, total = weighting.mean(np.column_stack([inside, inside * x]).astype(float))
        linearised = inside * (x - total / size) / size

        assert expected["mean"] == pytest.approx(total / size, abs=1e-5)
        error = np.sqrt(weighting.covariance(linearised[:, None])[0, 0])
        assert expected["standard_error"] == pytest.approx(error, abs=1e-6)
