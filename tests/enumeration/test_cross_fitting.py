"""All samples and all folds of tiny populations: cross-fitted estimates are exactly unbiased."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

import stratal
from stratal.designs import StratifiedWeighting
from stratal.estimation.calibrated import CalibrationOptions, calibrated_proxy
from stratal.estimation.lam import LabelledProxies
from stratal.estimation.outcome_means import linearised_mean
from stratal.estimation.respondents import Respondents
from stratal.population.summary import StratumSummary

Z = np.array([0.0, 1, 1, 0, 1, 1, 0, 1])
PROXY = np.array([0.1, 0.7, 0.9, 0.4, 0.3, 0.8, 0.6, 0.95])
STRATUM = np.array([0, 0, 0, 0, 1, 1, 1, 1])
ONE = np.zeros(8, dtype=np.int64)


def moments(units, stratum):
    sizes = np.bincount(stratum)
    means = np.bincount(stratum, PROXY) / sizes
    spread = np.bincount(stratum, (PROXY - means[stratum]) ** 2) / sizes
    return LabelledProxies(
        values=PROXY[units, None],
        stratum=stratum[units],
        summary=StratumSummary(
            sizes=sizes, proxy_means=means[:, None], proxy_covariances=spread[:, None, None]
        ),
    )


def samples(stratum, n_h):
    parts = [list(itertools.combinations(np.flatnonzero(stratum == h), n)) for h, n in enumerate(n_h)]
    return [np.array([unit for part in chosen for unit in part]) for chosen in itertools.product(*parts)]


def splits(sizes):
    """All assignments of each stratum's units to folds of the given sizes."""
    labels = [np.repeat(np.arange(len(row)), row).tolist() for row in sizes]
    ways = [sorted(set(itertools.permutations(row))) for row in labels]
    return [np.array(sum(chosen, ())) for chosen in itertools.product(*ways)]


@pytest.mark.parametrize("estimator", ["ppi++", "stratppi"])
@pytest.mark.parametrize(
    ("stratum", "fold_sizes"),
    [
        (ONE, [(2, 2)]),
        (ONE, [(2, 1)]),
        (ONE, [(1, 1, 1)]),
        (STRATUM, [(1, 2), (2, 1)]),
        (STRATUM, [(2, 2), (1, 1)]),
    ],
)
def test_a_cross_fitted_lam_is_unbiased(stratum, fold_sizes, estimator):
    values = [
        linearised_mean(
            Z[units], moments(units, stratum), estimator=estimator, shrinkage=1.0, folds=folds,
            weighting=StratifiedWeighting(stratum=stratum[units], sizes=np.bincount(stratum)),
        ).value
        for units in samples(stratum, [sum(row) for row in fold_sizes])
        for folds in splits(fold_sizes)
    ]  # fmt: skip

    assert Z.mean() == pytest.approx(np.mean(values), abs=1e-12)
    assert np.std(values) > 0.01


def test_a_lam_fitted_on_the_same_labels_is_not():
    values = [
        linearised_mean(
            Z[units], moments(units, ONE), estimator="ppi++",
            weighting=StratifiedWeighting(stratum=ONE[units], sizes=np.array([8])),
        ).value
        for units in samples(ONE, [4])
    ]  # fmt: skip

    assert abs(np.mean(values) - Z.mean()) > 1e-3


@pytest.mark.parametrize("method", ["isotonic", "logistic"])
def test_a_cross_fitted_calibration_is_unbiased(method):
    population = stratal.Population.from_arrays(proxy=PROXY)
    drawn = stratal.designs.SimpleRandom(budget=4).draw(population, seed=1)
    everyone = np.ones(4, dtype=bool)
    values = []
    for units in samples(ONE, [4]):
        sample = dataclasses.replace(drawn, ids=units, proxies=PROXY[units, None])
        frame = Respondents.of(sample, everyone)
        for folds in splits([(2, 2)]):
            how = CalibrationOptions(proxy_columns=[0], method=method, folds=folds)
            found = calibrated_proxy(sample, everyone, frame, Z[units], how)
            values.append(float(np.mean(Z[units] - found.values[:, 0]) + found.summary.proxy_means[0, 0]))

    assert Z.mean() == pytest.approx(np.mean(values), abs=1e-12)
    assert np.std(values) > 0.01


@pytest.mark.parametrize(
    "stratum", [pytest.param(ONE, marks=pytest.mark.slow), STRATUM], ids=["simple-random", "stratified"]
)
def test_a_learner_and_the_choice_of_it_are_unbiased(stratum):
    """The learner is kept in some samples and folds and not in others, by labels of other folds alone."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    second = np.array([0.2, 0.9, 0.4, 0.1, 0.8, 0.3, 0.5, 0.6])
    population = stratal.Population.from_arrays(
        proxy={"a": PROXY, "b": second}, groups={"half": stratum.astype(str)}
    )
    made = stratal.strata.stratify(population, "category", by="half")
    budget, folds_of = (4, [(2, 1, 1)]) if stratum is ONE else (4, [(1, 1, 0), (1, 0, 1)])
    n_h = np.array([sum(row) for row in folds_of])
    allocation = stratal.strata.Allocation(n_h=n_h, method="given", budget=budget, minimum=n_h, maximum=n_h)
    drawn = stratal.designs.Stratified(strata=made, allocation=allocation).draw(population, seed=1)
    everyone, values, kinds = np.ones(4, dtype=bool), [], set()
    for units in samples(stratum, n_h):
        proxies = np.column_stack([PROXY, second])[units]
        sample = dataclasses.replace(drawn, ids=units, proxies=proxies, stratum=stratum[units])
        frame = Respondents.of(sample, everyone)
        for folds in splits(folds_of):
            how = CalibrationOptions(
                proxy_columns=[0], method=linear_model.Ridge(0.1), folds=folds, features=("a", "b")
            )
            found = calibrated_proxy(
                sample, everyone, frame, Z[units], dataclasses.replace(how, bounds=(0, 1))
            )
            residuals = Z[units] - found.values[:, 0]
            sizes = np.bincount(stratum)
            means = np.bincount(stratum[units], residuals) / n_h
            values.append(float((sizes / 8) @ (means + found.summary.proxy_means[:, 0])))
            kinds |= {fit.method for fit in found.fits}

    assert Z.mean() == pytest.approx(np.mean(values), abs=1e-12)
    assert np.std(values) > 0.01
    assert len(kinds) > 1
