"""Published partitions of one-dimensional k-means (`../shared/vectors/kmeans_1d.json`)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from stratal.population.distribution import build_distribution
from stratal.population.in_memory import ArrayCounter
from stratal.strata.optimal_boundaries import k_means_boundaries
from stratal.strata.strata import moments_of_bins

VECTORS = Path(__file__).parents[3] / "shared" / "vectors" / "kmeans_1d.json"


def cases():
    if not VECTORS.exists():
        return []
    return [case for case in json.loads(VECTORS.read_text()) if case["kind"] == "published"]


def solve(values, k):
    distribution = build_distribution(ArrayCounter(values), scaled=False)
    boundaries = k_means_boundaries(distribution, k)[-1]
    labels = np.searchsorted(distribution.cuts[boundaries - 1], values, side="right")
    return labels, moments_of_bins(distribution, boundaries).proxy_means


@pytest.mark.skipif(not VECTORS.exists(), reason="the published numbers are not at hand")
@pytest.mark.parametrize("case", cases(), ids=lambda case: case["source"])
@pytest.mark.parametrize("shift", [0.0, 1e8])
def test_published(case, shift):
    values = np.array(case["input"]["x"], float)
    weights = np.array(case["input"].get("weights", np.ones(len(values))), int)

    labels, centres = solve(np.repeat(values, weights) + shift, case["input"]["k"])

    assert centres - shift == pytest.approx(
        case["expected"]["centres"], abs=max(case["tolerance"], 4e-16 * shift)
    )
    if "labels" in case["expected"]:
        assert labels.tolist() == case["expected"]["labels"]
