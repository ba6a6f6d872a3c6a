"""The range of a plan, made before any label, holds the standard error that the labels would have shown."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

import stratal
from stratal.strata.scenarios import expected_variance

FILES = (
    "birds_resnet50", "cifar10_vgg", "forest", "frank_factuality", "galaxies", "gsm8k_models",
    "imagenet_golden_crowd", "nq301_llmjudge", "pandalm_pairwise",
)  # fmt: skip


@pytest.mark.parametrize("budget", [50, 100, 400])
@pytest.mark.parametrize("name", FILES)
def test_the_range_holds_the_true_standard_error(shared, name, budget):
    table = pq.read_table(shared / "data" / f"{name}.parquet", columns=["z", "proxy"])
    z = table["z"].to_numpy().astype(np.float64)
    plan = stratal.plan(stratal.Population.from_arrays(proxy=table["proxy"].to_numpy()), budget)

    n_h = plan.allocation.n_h
    codes = np.zeros(len(z), np.int64) if plan.strata.n_strata == 1 else plan.strata.codes
    variances = np.array([z[codes == h].var() for h in range(len(n_h))])
    true = expected_variance(plan.strata.sizes, n_h, variances) ** 0.5

    assert plan.recommended.hopeful_standard_error <= true <= plan.recommended.cautious_standard_error
