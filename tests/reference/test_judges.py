"""A judge's estimands against R's psych and survey, and scikit-learn, to 1e-9.

R is not needed: each test has the source's own formula. `psych::cohen.kappa` has the variance of Fleiss,
Cohen and Everitt (1969), which divides by n where a survey's divides by n − 1. `survey::svykappa` is the
delta method on the covariance of the cells' means (`svymean` and `svycontrast`), here by complex steps.
"""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, confusion_matrix, precision_score, recall_score

from stratal.designs import StratifiedWeighting
from stratal.metrics.confusion import Confusion


def pairs(classes, n, seed):
    rng = np.random.default_rng(seed)
    true = rng.integers(0, classes, n)
    return true, np.where(rng.random(n) < 0.7, true, rng.integers(0, classes, n))


def psych_variance(table):
    """Return psych's var.kappa (Fleiss, Cohen & Everitt 1969, eq. 13)."""
    n, p = table.sum(), table / table.sum()
    rows, columns, agreed = p.sum(axis=1), p.sum(axis=0), np.trace(p)
    chance = rows @ columns
    weights = np.eye(len(p)) * (1 - chance) - (columns[:, None] + rows[None]) * (1 - agreed)
    square = np.sum(p * weights**2) - (agreed * chance - 2 * chance + agreed) ** 2
    return square / (n * (1 - chance) ** 4)


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_kappa_of_a_random_sample_is_psychs_and_scikit_learns(classes):
    true, judge = pairs(classes, 160, classes)
    weighting = StratifiedWeighting(stratum=np.zeros(160, dtype=int), sizes=np.array([10**15]))
    found = Confusion(true=true, predicted=judge, n_classes=classes, weighting=weighting).metric("kappa")

    assert found.value == pytest.approx(cohen_kappa_score(true, judge), abs=1e-9)
    variance = psych_variance(confusion_matrix(true, judge))
    assert found.standard_error**2 * 159 / 160 == pytest.approx(variance, rel=1e-9)


def kappa_of(cells):
    p = cells.reshape(3, 3)
    agreed, chance = np.trace(p), p.sum(axis=0) @ p.sum(axis=1)
    return (agreed - chance) / (1 - chance)


def test_kappa_of_a_stratified_sample_is_surveys():
    true, judge = pairs(3, 150, 1)
    stratum, sizes = np.repeat([0, 1, 2], [30, 50, 70]), np.array([400, 90, 1_000])
    weighting = StratifiedWeighting(stratum=stratum, sizes=sizes)
    found = Confusion(true=true, predicted=judge, n_classes=3, weighting=weighting).metric("kappa")

    cells, shares = np.eye(9)[3 * true + judge], sizes / sizes.sum()
    means = sum(w * cells[stratum == h].mean(axis=0) for h, w in enumerate(shares))
    covariance = sum(
        w**2 * (1 - n / size) * np.cov(cells[stratum == h].T) / n
        for h, (w, n, size) in enumerate(zip(shares, (30, 50, 70), sizes, strict=True))
    )
    slopes = np.array([kappa_of(means + 1e-30j * row).imag / 1e-30 for row in np.eye(9)])

    assert found.value == pytest.approx(kappa_of(means), abs=1e-9)
    assert found.standard_error == pytest.approx(np.sqrt(slopes @ covariance @ slopes), rel=1e-9)


def test_rates_are_scikit_learns():
    true, judge = pairs(2, 120, 9)
    weighting = StratifiedWeighting(stratum=np.zeros(120, dtype=int), sizes=np.array([10**9]))
    found = Confusion(true=true, predicted=judge, n_classes=2, weighting=weighting)

    assert found.metric("recall", 1).value == pytest.approx(recall_score(true, judge), abs=1e-9)
    assert found.metric("specificity", 1).value == pytest.approx(recall_score(1 - true, 1 - judge), abs=1e-9)
    assert found.metric("false_discovery_rate", 1).value == pytest.approx(
        1 - precision_score(true, judge), abs=1e-9
    )
