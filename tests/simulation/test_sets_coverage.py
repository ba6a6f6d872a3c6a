"""Intervals of micro F1 and of the mean Jaccard index cover the population's value."""

import numpy as np
import pytest
from tests.tiers import sized

from stratal.designs import StratifiedWeighting
from stratal.estimation.outcome_means import mean_without_proxy
from stratal.metrics.tag_counts import TagCounts, jaccard_indices

N = 4000
DRAWS = sized(60, 2000)
# The share that DRAWS intervals of .95 fall below with a chance of .1 %.
LEAST = 0.95 - 3.1 * np.sqrt(0.95 * 0.05 / DRAWS)


def population(shares, right, seed=1):
    """Return the sets (N, T) of labels and answers; units differ in how hard they are."""
    draws = np.random.default_rng(seed)
    hard = draws.normal(size=(N, 1))
    true = draws.random((N, len(shares))) < 1.0 / (1.0 + np.exp(-np.log(shares / (1 - shares)) - hard))
    chance = 1.0 / (1.0 + np.exp(-np.log(right / (1 - right)) - hard))
    return true, np.where(draws.random(true.shape) < chance, true, ~true)


@pytest.mark.parametrize(("budget", "right"), [(60, 0.9), (200, 0.98)])
def test_intervals_of_sets_cover(budget, right):
    true, predicted = population(np.array([0.3, 0.2, 0.1, 0.05]), right)
    hits, jaccard = (true & predicted).sum(), jaccard_indices(true, predicted)
    values = {"f1": 2 * hits / (true.sum() + predicted.sum()), "jaccard": jaccard.mean()}
    # Half of the units by their number of answered tags, which half of the labels are from.
    order = np.argsort(predicted.sum(axis=1), kind="stable")
    halves = order[: N // 2], order[N // 2 :]
    draws = np.random.default_rng(7)
    covered = dict.fromkeys(values, 0)
    for _ in range(DRAWS):
        rows = np.concatenate([draws.choice(half, budget // 2, replace=False) for half in halves])
        stratum = np.repeat([0, 1], budget // 2)
        weighting = StratifiedWeighting(stratum=stratum, sizes=np.array([N // 2, N // 2]))
        counts = TagCounts(true=true[rows], predicted=predicted[rows], weighting=weighting)
        estimates = {
            "f1": counts.metric("f1", "micro"),
            "jaccard": mean_without_proxy(jaccard[rows], weighting, outcome="bounded", bounds=(0.0, 1.0)),
        }
        for name, estimate in estimates.items():
            interval = estimate.confidence_interval()
            covered[name] += interval.low <= values[name] <= interval.high

    assert min(covered.values()) / DRAWS >= LEAST, covered
