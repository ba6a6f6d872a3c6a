"""All samples of tiny populations: designs whose weights and variances are exact are exactly unbiased."""

from itertools import combinations, product

import numpy as np
import pytest

from stratal.designs import ClusterWeighting, PoissonWeighting

Z = np.array([0.0, 1.0, 1.0, 0.5, 2.0, 0.0])


def moments(outcomes):
    """Return expectation and variance of estimates, and the expectation of their estimated variances."""
    chance, value, variance = (np.array(column) for column in zip(*outcomes, strict=True))
    assert chance.sum() == pytest.approx(1)
    mean = chance @ value
    return mean, chance @ (value - mean) ** 2, chance @ variance


def weighted(weighting, z):
    return float(weighting.mean(z[:, None])[0]), float(weighting.covariance(z[:, None])[0, 0])


@pytest.mark.parametrize("chance", [np.full(6, 0.4), np.array([0.1, 0.9, 0.5, 0.3, 1.0, 0.7])])
def test_poisson_sampling(chance):
    outcomes = []
    for drawn in product([False, True], repeat=6):
        mask = np.array(drawn)
        p = float(np.prod(np.where(mask, chance, 1 - chance)))
        if p == 0:
            continue
        value = (0.0, 0.0)
        if mask.any():
            value = weighted(PoissonWeighting(inclusion_probability=chance[mask], size=6), Z[mask])
        outcomes.append((p, *value))

    mean, variance, estimated = moments(outcomes)

    assert mean == pytest.approx(Z.mean())
    assert estimated == pytest.approx(variance)
    assert variance == pytest.approx(np.sum((1 - chance) / chance * Z**2) / 36)


@pytest.mark.parametrize("m", [2, 3, 4])
def test_samples_of_clusters(m):
    cluster = np.array([0, 0, 0, 1, 2, 3])
    outcomes = []
    for drawn in combinations(range(4), m):
        mask = np.isin(cluster, drawn)
        codes, sizes = np.unique(cluster[mask], return_inverse=True, return_counts=True)[1:]
        weighting = ClusterWeighting(cluster=codes, drawn=sizes, clusters=4, size=6)
        outcomes.append((1 / len(list(combinations(range(4), m))), *weighted(weighting, Z[mask])))

    mean, variance, estimated = moments(outcomes)

    assert mean == pytest.approx(Z.mean())
    assert estimated == pytest.approx(variance, abs=1e-12)


def test_equal_sizes_make_sequential_poisson_a_simple_random_sample():
    from stratal.designs import StratifiedWeighting

    y = np.array([0.0, 1.0, 3.0])
    fixed = PoissonWeighting(inclusion_probability=np.full(3, 0.3), size=10, fixed_size=True)
    random = StratifiedWeighting(stratum=np.zeros(3, int), sizes=np.array([10]))

    assert weighted(fixed, y) == pytest.approx(weighted(random, y))
