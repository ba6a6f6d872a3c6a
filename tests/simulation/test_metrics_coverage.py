"""Coverage of metrics, comparisons and domains under a stratified design that hides what matters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stratal.designs import StratifiedWeighting
from stratal.estimation.domain_means import domain_mean
from stratal.estimation.outcome_means import estimate_mean
from stratal.metrics.comparison import contrast_interval
from stratal.metrics.confusion import Confusion

SIZES, COUNTS = np.array([6000, 3000, 1000]), np.array([20, 25, 35])


def population():
    """Rare positives, missed mostly in the large stratum; a second model that rarely differs."""
    rng = np.random.default_rng(1)
    stratum = np.repeat([0, 1, 2], SIZES)
    true = (rng.random(10_000) < np.array([0.02, 0.2, 0.7])[stratum]).astype(np.int64)
    found = np.array([0.3, 0.6, 0.95])[stratum]
    predicted = np.where(true == 1, rng.random(10_000) < found, rng.random(10_000) < 0.03).astype(np.int64)
    other = np.where(rng.random(10_000) < 0.03, 1 - predicted, predicted)
    return stratum, true, predicted, other


def intervals(rows, weighting, true, predicted, other, group):
    confusion = Confusion(true=true[rows], predicted=predicted[rows], n_classes=2, weighting=weighting)
    for name, which in (("precision", 1), ("recall", 1), ("f1", 1), ("mcc", None), ("f1", "macro"),
                        ("balanced_accuracy", None)):  # fmt: skip
        yield f"{name} {which}", confusion.metric(name, which)
    right = (true == predicted)[rows].astype(float)
    yield "domain", domain_mean(right, group[rows], weighting, bounds=(0.0, 1.0))


def coverage(draws):
    stratum, true, predicted, other = population()
    group = np.random.default_rng(2).random(10_000) < 0.15
    whole = StratifiedWeighting(stratum=stratum, sizes=SIZES)
    rows = np.arange(10_000)
    truth = {name: q.value for name, q in intervals(rows, whole, true, predicted, other, group)}
    contrast = (true == predicted).astype(float) - (true == other).astype(float)
    truth["difference"] = float(contrast.mean())
    weighting = StratifiedWeighting(stratum=np.repeat([0, 1, 2], COUNTS), sizes=SIZES)
    members = [np.flatnonzero(stratum == h) for h in range(3)]
    inside = dict.fromkeys(truth, 0)
    rng = np.random.default_rng(3)
    for _ in range(draws):
        rows = np.concatenate([rng.choice(m, n, replace=False) for m, n in zip(members, COUNTS, strict=True)])
        for name, estimate in intervals(rows, weighting, true, predicted, other, group):
            low, high = estimate.confidence_interval()
            inside[name] += low <= truth[name] <= high
        found = estimate_mean(
            contrast[rows],
            np.zeros((len(rows), 0)),
            weighting,
            None,
            stratum=weighting.stratum,
            bounds=(-1, 1),
            outcome="bounded",
        )
        low, high = contrast_interval(found).ends(0.95, "two-sided")
        inside["difference"] += bool(low <= truth["difference"] <= high)
    return {name: count / draws for name, count in inside.items()}


@pytest.mark.parametrize("draws", [60, pytest.param(4000, marks=pytest.mark.slow)])
def test_every_interval_covers_what_it_claims(draws):
    error = np.sqrt(0.94 * 0.06 / draws)

    for name, share in coverage(draws).items():
        assert share > 0.94 - 3.5 * error, f"{name} covers {share:.3f}"


@pytest.mark.parametrize("draws", [60, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("counts", "metrics"), [((100, 100), ("specificity",)), ((150, 50), ("f1", "f2"))])
def test_a_large_stratum_that_may_show_no_error(counts, metrics, draws):
    """By effective trials alone, .64 (specificity), .86 (F1) and .82 (F2) of the intervals held."""
    rng = np.random.default_rng(5)
    stratum = (rng.random(4000) >= 0.1).astype(int)
    true = (rng.random(4000) < np.array([0.5, 0.02])[stratum]).astype(int)
    found = rng.random(4000) < np.array([0.95, 0.1])[stratum]
    false_alarm = rng.random(4000) < np.array([0.1, 0.01])[stratum]
    predicted = np.where(true == 1, found, false_alarm).astype(int)
    sizes = np.bincount(stratum)
    members = [np.flatnonzero(stratum == h) for h in (0, 1)]
    weighting = StratifiedWeighting(stratum=stratum, sizes=sizes)
    whole = Confusion(true=true, predicted=predicted, n_classes=2, weighting=weighting)
    truth = {name: whole.metric(name, 1).value for name in metrics}
    inside = dict.fromkeys(metrics, 0)
    for _ in range(draws):
        rows = np.concatenate([rng.choice(m, n, replace=False) for m, n in zip(members, counts, strict=True)])
        weighting = StratifiedWeighting(stratum=stratum[rows], sizes=sizes)
        sample = replace(
            whole,
            true=true[rows],
            predicted=predicted[rows],
            weighting=weighting,
            has_strata_of_groups=True,
        )
        for name in metrics:
            low, high = sample.metric(name, 1).confidence_interval()
            inside[name] += low <= truth[name] <= high

    for name, count in inside.items():
        assert count / draws > 0.94 - 3.5 * np.sqrt(0.94 * 0.06 / draws), f"{name} covers {count / draws:.3f}"
