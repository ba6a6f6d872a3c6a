"""λ of rare outcomes under simple random sampling: no dearer than the best of λ = 0 and λ = 1 by much."""

import numpy as np
import pytest
from tests.tiers import cells, sized

from stratal.designs import StratifiedWeighting
from stratal.estimation.lam import ProxyMoments, Trust, fit_lam

CELLS = [(0.03, 100), (0.03, 200), (0.01, 100), (0.01, 200)]


@pytest.mark.parametrize(("share", "n"), cells(CELLS, fast=(0.03,)))
def test_separate_scores_are_used_though_few_positives_are_seen(share, n):
    rng, size, runs = np.random.default_rng(1), 20_000, sized(400, 4_000)
    z = (np.arange(size) < size * share).astype(float)
    proxy = np.where(z == 1, rng.beta(6, 2, size), rng.beta(1, 20, size))
    errors = np.zeros((3, runs))
    for run in range(runs):
        unit, one = rng.choice(size, n, replace=False), np.zeros(n, dtype=int)
        moments = ProxyMoments(
            values=proxy[unit][:, None],
            stratum=one,
            sizes=np.array([size]),
            means=np.array([[proxy.mean()]]),
            covariances=np.array([[[proxy.var()]]]),
        )
        weighting = StratifiedWeighting(stratum=one, sizes=np.array([size]))
        fitted = fit_lam(z[unit], moments, weighting, trust=Trust(bounds=(0.0, 1.0))).lam[0, 0]
        off = proxy[unit].mean() - proxy.mean()
        errors[:, run] = z[unit].mean() - np.array([fitted, 0.0, 1.0]) * off - share
    squared = np.mean(errors**2, axis=1)
    # 1.03 at most of 400 draws, 1.68 with the labels' own variance; a ratio's Monte Carlo error is about .05.
    assert squared[0] < 1.2 * min(squared[1:])
