"""Few clusters of very unequal size: the default interval of the mean of their units."""

import numpy as np
import pytest

import stratal

DRAWS = 300


def clustered(kind):
    """Return clusters and outcomes: 300 clusters with sizes from a lognormal, alike within by .4."""
    random = np.random.default_rng(5)
    sizes = np.maximum(2, np.rint(random.lognormal(2.3, 1.2, 300)).astype(int))
    cluster = np.repeat(np.arange(300), sizes)
    if kind == "right or wrong":
        rates = random.beta(0.75, 0.75, 300)
        return cluster, (random.random(len(cluster)) < rates[cluster]).astype(float)
    z = np.sqrt(0.4) * random.normal(size=300)[cluster] + np.sqrt(0.6) * random.normal(size=len(cluster))
    return cluster, np.exp(z) if kind == "skewed" else z


@pytest.mark.parametrize("kind", ["right or wrong", "normal", "skewed"])
@pytest.mark.parametrize("n_clusters", [6, 15])
def test_intervals_hold(kind, n_clusters):
    cluster, z = clustered(kind)
    binary = kind == "right or wrong"
    units = stratal.Population.from_arrays(
        proxy=np.zeros(len(z)),
        groups={"document": cluster.astype(str)},
        bounds=(0, 1) if binary else None,
        scaled=binary,
    )
    design = stratal.ClusterSample(cluster="document", n_clusters=n_clusters)
    held = 0
    for seed in range(DRAWS):
        sample = design.draw(units, seed=seed)
        low, high = stratal.estimate(sample, z[sample.ids], estimator="hajek").confidence_interval()
        held += low <= z.mean() <= high

    # With a degree of freedom per cluster and residuals as they are, .83 to .90 of these held.
    assert held / DRAWS >= 0.94 - 2 * np.sqrt(0.94 * 0.06 / DRAWS)
