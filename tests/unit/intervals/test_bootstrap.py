"""The rescaling bootstrap: its variance is the design's, its intervals are near the closed ones."""

from __future__ import annotations

import numpy as np
import pytest

from stratal.designs import PoissonWeighting, StratifiedWeighting
from stratal.estimation.outcome_means import estimate_mean
from stratal.intervals.methods import rescaled_deviations


def test_variance_is_the_designs():
    rng = np.random.default_rng(1)
    stratum = np.repeat([0, 1, 2], [2, 10, 30])
    y = rng.normal(size=42) * (1 + stratum)
    weighting = StratifiedWeighting(stratum=stratum, sizes=np.array([20, 20, 40]))
    deviations = rescaled_deviations(y, stratum, weighting.variance_factors, replicates=40_000, rng=rng)
    expected = float(weighting.covariance(y[:, None])[0, 0])

    # A variance from B normal deviations: relative standard error √(2/B) = .7 %; five of them.
    assert expected == pytest.approx(deviations.var(), rel=0.04)


def test_near_student_t_for_many_labels():
    rng = np.random.default_rng(2)
    z, stratum = rng.normal(size=400), np.repeat([0, 1], 200)
    for weighting in (
        StratifiedWeighting(stratum=stratum, sizes=np.array([300, 5000])),
        PoissonWeighting(inclusion_probability=rng.uniform(0.2, 0.9, 400), size=1000.0),
    ):
        estimate = estimate_mean(z, np.zeros((400, 0)), weighting, None, stratum=stratum)
        exact, ours = (estimate.confidence_interval(method=method) for method in ("t", "bootstrap"))
        assert exact.width == pytest.approx(ours.width, rel=0.06)


def test_the_same_every_time():
    z = np.array([0.1, 0.5, 0.4, 0.9, 0.2])
    weighting = StratifiedWeighting(stratum=np.zeros(5, dtype=int), sizes=np.array([50]))
    estimate = estimate_mean(z, np.zeros((5, 0)), weighting, None, stratum=np.zeros(5, dtype=int))

    assert estimate.confidence_interval(method="bootstrap") == estimate.confidence_interval(
        method="bootstrap"
    )
