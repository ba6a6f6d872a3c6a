"""λ of influences: closed forms, special cases, what strata keep of their own."""

import numpy as np
import pytest

from stratal.designs.stratum_moments import StratumMoments, stratum_covariances
from stratal.estimation.lam import (
    MIN_LABELS_OF_A_STRATUM,
    SHRINKAGE_LABELS,
    LambdaEvidence,
    fit_stratified,
    stratum_lam_share,
)


def evidence_of(within, counts, *, published=False):
    """Covariances (…, H, 2, 2) of outcome and proxy as evidence for λ."""
    moments = StratumMoments(
        counts=counts,
        outcome_means=np.zeros(within.shape[:-2]),
        proxy_means=np.zeros((*within.shape[:-2], 1)),
        outcome_variances=within[..., 0, 0],
        cross_covariances=within[..., 0, 1:],
        proxy_covariances=within[..., 1:, 1:],
    )
    if published:
        return LambdaEvidence(moments=moments, published=True)
    return LambdaEvidence.of(moments, None)


def fitted(u, v, stratum, *, whole=1.0, published=False, shrinkage=None):
    counts = np.bincount(stratum)
    n_strata = len(counts)
    within = stratum_covariances(np.column_stack([u, v]), stratum, n_strata)
    evidence = evidence_of(within, counts, published=published)
    return fit_stratified(evidence, np.full((n_strata, 1, 1), whole), np.ones(n_strata), shrinkage)


def noisy(n, slopes, seed=0):
    random = np.random.default_rng(seed)
    stratum = np.repeat(np.arange(len(slopes)), n)
    v = random.normal(size=len(stratum))
    return np.asarray(slopes)[stratum] * v + 0.3 * random.normal(size=len(stratum)), v, stratum


def kept(*world):
    """The share of its own λ that the first stratum keeps, without what few labels take off."""
    own, one, shrunk = (
        fitted(*world, shrinkage=shrinkage).lam[0, 0] for shrinkage in (0.0, None, SHRINKAGE_LABELS)
    )
    return (shrunk - one) / (own - one) / stratum_lam_share(np.bincount(world[2]), SHRINKAGE_LABELS)[0]


def test_the_papers_lam_is_covariance_over_known_variance():
    u, v, stratum = noisy(50, [0.7])
    expected = np.cov(u, v)[0, 1] / 2

    assert fitted(u, v, stratum, whole=2.0, published=True).lam[0, 0] == pytest.approx(expected)
    assert fitted(u, v, stratum, whole=2.0, published=True, shrinkage=0).lam[0, 0] == pytest.approx(expected)


def test_the_blend_lies_between_both_denominators():
    u, v, stratum = noisy(5, [0.7])
    ends = np.polyfit(v, u, 1)[0], np.cov(u, v)[0, 1] / 3

    assert min(ends) < fitted(u, v, stratum, whole=3.0).lam[0, 0] < max(ends)


def test_a_constant_proxy_means_no_trust():
    u, _, stratum = noisy(8, [0.7, 0.7])
    for shrinkage in (None, 0.0, SHRINKAGE_LABELS):
        fit = fitted(u, np.zeros(16), stratum, whole=0.0, shrinkage=shrinkage)
        assert np.all(fit.lam == 0)
        assert np.all(fit.n_parameters == 0)


def test_equal_strata_are_pooled_and_different_ones_are_not():
    same = [kept(*noisy(20, [0.5] * 6, seed)) for seed in range(50)]
    different = [kept(*noisy(20, [0, 0, 0, 1, 1, 1], seed)) for seed in range(50)]

    assert np.mean(same) < 0.1
    assert np.mean(different) > 0.85  # chance and one standard deviation of it are taken off: 8.2 of 80


def test_five_labels_are_too_few_for_a_λ_of_one_s_own():
    u, v, stratum = noisy(MIN_LABELS_OF_A_STRATUM - 1, [0, 5, 0, 5])
    assert np.ptp(fitted(u, v, stratum, shrinkage=SHRINKAGE_LABELS).lam) == 0


def test_a_proxy_that_differs_between_strata_by_exact_slopes_is_believed():
    """Residuals of rounding: Q has no bound, and no stratum's share is NaN."""
    _, v, stratum = noisy(10, [1.0, 2.0])
    fit = fitted(np.array([1.0, 2.0])[stratum] * v, v, stratum, shrinkage=SHRINKAGE_LABELS)
    assert np.all(np.isfinite(fit.lam))
    assert fit.lam[0, 0] < fit.lam[1, 0]


def test_one_λ_is_charged_once_and_own_ones_once_each():
    assert fitted(*noisy(20, [0.5, 0.5])).n_parameters.sum() == pytest.approx(1)
    assert fitted(*noisy(20, [-1.0, 1.0]), shrinkage=SHRINKAGE_LABELS).n_parameters == pytest.approx([1, 1])


def test_replicates_are_fitted_at_once():
    worlds = [noisy(12, [0.2, 1.0, 0.5], seed) for seed in range(3)]
    within = np.stack([stratum_covariances(np.column_stack([u, v]), h, 3) for u, v, h in worlds])
    counts = np.full(3, 12)
    together = fit_stratified(evidence_of(within, counts), np.ones((3, 1, 1)), np.ones(3), SHRINKAGE_LABELS)
    for world, lam in zip(worlds, together.lam, strict=True):
        assert fitted(*world, shrinkage=SHRINKAGE_LABELS).lam == pytest.approx(lam)
