"""The range of a plan, made before any label, holds the standard error that the labels would have shown."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

import stratal
from stratal.strata.strata import expected_variance

FILES = (
    "birds_resnet50", "cifar10_vgg", "forest", "frank_factuality", "galaxies", "gsm8k_models",
    "imagenet_golden_crowd", "nq301_llmjudge", "pandalm_pairwise",
)  # fmt: skip


@pytest.mark.parametrize("budget", [50, 100, 400])
@pytest.mark.parametrize("name", FILES)
def test_the_range_holds_the_true_standard_error(shared, name, budget):
    table = pq.read_table(shared / "data" / f"{name}.parquet", columns=["z", "proxy"])
    z = table["z"].to_numpy().astype(np.float64)
    proxy = table["proxy"].to_numpy()
    plan = stratal.plan(stratal.Population.from_arrays(proxy=proxy), budget)

    n_h = plan.allocation.n_h
    codes = np.zeros(len(z), np.int64) if plan.strata.n_strata == 1 else plan.strata.codes
    variances = np.array([z[codes == h].var() for h in range(len(n_h))])
    if plan.recommended.estimator == "ppi++":
        # With the best λ, a simple random sample has the variance of the residuals on the proxy.
        assert plan.strata.n_strata == 1
        variances = variances * (1.0 - np.corrcoef(z, proxy)[0, 1] ** 2)
    true = expected_variance(plan.strata.sizes, n_h, variances) ** 0.5

    assert plan.recommended.optimistic_standard_error <= true <= plan.recommended.conservative_standard_error


def test_labels_of_a_pilot_mend_the_promise_of_a_proxy_that_is_too_sure(shared):
    table = pq.read_table(shared / "data" / "cifar10_vgg.parquet", columns=["z", "proxy"])
    z = table["z"].to_numpy().astype(np.float64)
    population = stratal.Population.from_arrays(proxy=table["proxy"].to_numpy())
    before = stratal.plan(population, 400, method="k-means")
    variances = np.array([z[before.strata.codes == h].var() for h in range(before.strata.n_strata)])
    true = expected_variance(before.strata.sizes, before.allocation.n_h, variances) ** 0.5

    pilots = [stratal.plan(population, 100).draw(seed=seed) for seed in range(20)]
    after = [stratal.plan(population, 400, labels=dict(zip(p.ids, z[p.ids], strict=True))) for p in pilots]

    assert before.recommended.expected_standard_error < 0.6 * true
    assert 0.85 * true < np.mean([p.recommended.expected_standard_error for p in after]) < 1.15 * true
    ends = [
        (p.recommended.optimistic_standard_error, p.recommended.conservative_standard_error) for p in after
    ]
    assert sum(low <= true <= high for low, high in ends) >= 14  # nine in ten; fourteen of twenty by chance
    # The range of the proxy's own word is wider in every one.
    first = before.recommended
    assert all(
        high - low < first.conservative_standard_error - first.optimistic_standard_error for low, high in ends
    )
