"""Published domain means of a stratified sample, and totals under unequal probabilities from a table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import stratal
from stratal.designs import StratifiedWeighting
from stratal.estimation.domain_means import domain_mean

VECTORS = Path(__file__).resolve().parents[3] / "shared" / "vectors"
pytestmark = pytest.mark.skipif(not VECTORS.exists(), reason="the published numbers are not here")


def test_published_domain_means():
    vector = json.loads((VECTORS / "stratified_mean.json").read_text())
    strata = vector["input"]["strata"]
    x = np.concatenate([entry["x"] for entry in strata])
    stratum = np.repeat([0, 1], [len(entry["x"]) for entry in strata])
    sizes = np.array([entry["N_h"] for entry in strata])
    weighting = StratifiedWeighting(stratum=stratum, sizes=sizes, with_replacement=True)

    for expected, member in zip(vector["expected"]["domain_without_fpc"], (x > 4, x <= 4), strict=True):
        found = domain_mean(x, member, weighting)
        assert expected["mean"] == pytest.approx(found.value, abs=vector["tolerance"])
        assert expected["standard_error"] == pytest.approx(found.standard_error, abs=vector["tolerance"])


def test_published_means_and_totals_of_a_weighted_table():
    vector = json.loads((VECTORS / "hajek_poisson.json").read_text())
    expected, tolerance = vector["expected"], vector["tolerance"]
    size = sum(vector["input"]["weight"])

    sample, labels = stratal.Sample.from_labelled(vector["input"], value="y", weight="weight")
    hajek = stratal.estimate(sample, labels)
    assert expected["hajek_mean_with_replacement"] == pytest.approx(
        [hajek.value, hajek.standard_error], abs=tolerance["mean"]
    )
    plain = stratal.estimate(sample, labels, estimator="horvitz-thompson")
    assert expected["total_with_replacement"] == pytest.approx(
        [size * plain.value, size * plain.standard_error], abs=tolerance["total"]
    )
    sample, labels = stratal.Sample.from_labelled(
        vector["input"], value="y", weight="weight", mechanism="poisson"
    )
    poisson = stratal.estimate(sample, labels, estimator="horvitz-thompson")
    assert expected["poisson_total_standard_error"] == pytest.approx(
        size * poisson.standard_error, abs=tolerance["poisson"]
    )


def test_published_stratified_prediction_powered_mean_of_a_table():
    vector = json.loads((VECTORS / "ppi_stratified.json").read_text())
    y, proxy, group = (np.array(vector["input"][name], dtype=float) for name in ("y", "proxy", "group"))
    labelled = np.isfinite(y)
    moments = {
        "stratum": [0, 1],
        "mean": [proxy[~labelled & (group == g)].mean() for g in (0, 1)],
        "variance": [proxy[~labelled & (group == g)].var(ddof=1) for g in (0, 1)],
        "count": [2, 2],
    }
    table = {"y": y[labelled], "proxy": proxy[labelled], "group": group[labelled]}

    sample, labels = stratal.Sample.from_labelled(
        table, value="y", stratum="group", sizes={0: 50, 1: 50}, proxy="proxy", proxy_moments=moments,
        bounds=None,
    )  # fmt: skip
    result = stratal.estimate(sample, labels, lam=1, target="superpopulation")

    means = [proxy[~labelled & (group == g)].mean() for g in (0, 1)]
    expected = np.mean([m + (y - proxy)[labelled & (group == g)].mean() for g, m in enumerate(means)])
    assert expected == pytest.approx(result.value)
    assert result.target == "superpopulation"
