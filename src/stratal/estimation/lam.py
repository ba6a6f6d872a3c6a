"""Fit λ, the weight of a proxy, from the moments of strata: for one sample or for thousands at once.

A mean and a regression have one rule (docs/decisions/0008-lambda.md). A regression uses the influences of
outcome and proxy on its coefficients in place of z and ẑ, and sums their moments over the coefficients.

Every array may carry leading replicate axes `(…,)`; H is the number of strata, k the number of proxies. The
numerator of λ is the labelled units' covariance of outcome and proxy. The denominator is the proxy's
covariance among the same units, blended with two labels' worth of the one over all N_h units: their noise
cancels (docs/decisions/0008-lambda.md). In one stratum both are filled up first with
what the labelled units lack of the proxy's spread. Labels that nearly all agree say little about λ, so it is
shrunk towards that of a calibrated proxy. The papers' own λ has the population's covariance alone.

Three functions fit λ. The designs leave different moments, so none replaces another:

- `fit_stratified`, from covariances within strata: random samples within strata, for means, separate
  unlabelled samples, regressions and simulated replicates.
- `fit_general`, by the regression of weighted outcomes (or totals of clusters) on the proxies: all other
  designs, which have no variance of each stratum to minimise.
- `domain_lam`, by the regression within domains whose mean proxies are known: one λ for the means of all
  domains. It is shrunk towards 0, because few labels of a rare outcome would fit the noise of single domains.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, Record
from stratal.designs import Weighting
from stratal.designs.stratum_moments import StratumMoments, stratum_moments
from stratal.designs.weighting import ROUNDING_VARIANCE
from stratal.errors import InputError
from stratal.population.summary import StratumSummary

# Labels beyond two at which a stratum keeps half of its own λ_h, after the factor `agreement`.
SHRINKAGE_LABELS = 3.0

# Strata with fewer labels take the pooled λ: their own would be noise (measured).
MIN_LABELS_OF_A_STRATUM = 6

# Number of labels by which the residual variance of all strata counts in that of a stratum: its own, of few
# labels, may be near 0 by chance, which would make any λ_h appear significant.
_STEADY_LABELS = 10.0

# A share of a proxy's mean square below this is rounding: 2⁻⁵² squared, times what a regression adds.
EXPLAINED = 1e-20

# Labels that the population's proxy variance counts for in the denominator of λ.
POPULATION_VARIANCE_LABELS = 2.0

# Informative labels at which a fitted λ and that of a calibrated proxy have equal weight.
_LABELS_FOR_A_CALIBRATED_LAM = 20.0

# Informative labels for each of several proxies at which half of a λ that was fitted within strata is used.
# With 20, two good proxies gain less at 50 labels; with 5, useless ones cost more (docs/decisions/0008).
_LABELS_FOR_A_LAM_IN_STRATA = 10.0

# Informative labels that a first label of a rare class amounts to: the λ of the classes then counts half.
_INFORMATION_OF_ONE = 4.0

# Informative labels at which half of what the labels say against a proxy counts. With fewer, the labels that
# say nothing of a proxy are mostly those of a class that has no label yet (docs/decisions/0008).
_LABELS_AGAINST_A_PROXY = 10.0

# Labels that λ = 0 counts for in domains: few labels of rare outcomes would fit the noise.
_LABELS_OF_ZERO = 20.0

# Proxies that are a combination of others, up to rounding, get no coefficient of their own.
_RELATIVE_RANK = 1e-10
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledProxies(Record):
    """The proxies of the labelled units, and their moments in the population.

    Parameters
    ----------
    values : float (n, k)
    stratum : int (n,)
        Stratum of the labelled units, 0 … H − 1.
    summary : StratumSummary
    """

    values: FloatArray
    stratum: IntArray
    summary: StratumSummary

    @property
    def n_strata(self) -> int:
        """H."""
        return len(self.summary.sizes)

    @property
    def stratum_means(self) -> FloatArray:
        """Mean proxies (n, k) of each unit's stratum, over all its N_h units."""
        return np.asarray(self.summary.proxy_means[self.stratum])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LambdaEvidence:
    """The labelled units' moments, and how far a λ fitted to them can be trusted.

    Parameters
    ----------
    moments : StratumMoments
    published : bool
        The papers' λ: the population's covariance alone is the denominator, and nothing is shrunk.
    information : float (…,), optional
        4 Σ n_h p_h (1 − p_h) for an outcome on the 0–1 scale: labels, counted less where they (nearly) agree.
        Without it the fitted λ is trusted.
    least : float (…,)
        Variance of an outcome of which half a label more is right and half a label more is wrong.
    of_classes : float (…,), optional
        λ that the classes' mean proxies give, for one stratum (`lam_of_classes`).
    missed : float (…, 1, 1)
        Covariance of outcome and proxy that units unlike the labelled ones are taken to add, for one stratum.
    labels : float (…,)
        Σ n_h.
    """

    moments: StratumMoments
    published: bool = False
    information: FloatArray | None = None
    least: FloatArray | float = 0.0
    of_classes: FloatArray | None = None
    missed: FloatArray | float = 0.0
    labels: FloatArray | float = np.inf

    @classmethod
    def of(cls, moments: StratumMoments, bounds: tuple[float, float] | None = (0.0, 1.0)) -> LambdaEvidence:
        """Return the evidence of labels with these moments; without bounds every label is informative."""
        counts = moments.counts
        labels = np.sum(counts, axis=-1)
        if bounds is None:
            return cls(moments=moments, information=labels, least=0.0 * labels, labels=labels)
        scale = bounds[1] - bounds[0]
        unit = (moments.outcome_means - bounds[0]) / scale
        share = (np.sum(counts * unit, axis=-1) + 0.5) / (labels + 1.0)
        return cls(
            moments=moments,
            information=4.0 * np.sum(counts * np.maximum(unit * (1.0 - unit), 0.0), axis=-1),
            least=share * (1.0 - share) * scale**2,
            labels=labels,
        )

    def blended(self, population: FloatArray, labels: FloatArray) -> FloatArray:
        """Return the proxies' covariances (…, H, k, k), the population's counting for two labels."""
        share = (labels / (labels + POPULATION_VARIANCE_LABELS))[..., None, None]
        return np.asarray(population + share * (self.moments.proxy_covariances - population))

    def shrunk(self, lam: FloatArray, population: FloatArray, factors: FloatArray) -> FloatArray:
        """Return λ (…, H, k), drawn to that of calibrated proxies where labels say little.

        A calibrated proxy has Cov(z, ẑ) = Var ẑ, so λ = 1; no proxy that varies more than the outcome is
        calibrated, and Var z / Var ẑ bounds what it deserves. Of several proxies the plain mean is taken to
        be calibrated, and each has an equal part of its λ. k proxies need k times the informative labels of
        one. Where the classes' mean proxies are known the λ that they give comes in its place as soon as
        there is a label of either class. The pull is limited by what the fitted λ explains.

        In several strata, several proxies are drawn to 0: what the strata leave of them need not be
        calibrated, since the strata may have been built from one.
        """
        varies = np.einsum("...ii->...i", population) > 0
        if self.information is None:
            return np.where(varies, lam, 0.0)
        if lam.shape[-2] > 1 and lam.shape[-1] > 1:
            needed = _LABELS_FOR_A_LAM_IN_STRATA * lam.shape[-1]
            fitted_share = self.information**2 / (self.information**2 + needed**2)
            return np.where(varies, fitted_share[..., None, None] * lam, 0.0)
        outcome_variance = np.sum(factors * self.moments.outcome_variances, axis=-1)
        least = self.least * np.sum(factors, axis=-1)
        parts = varies / np.maximum(np.sum(varies, axis=-1, keepdims=True), 1)
        of_mean = np.einsum("...hi,...hij,...hj->...h", parts, population, parts)
        proxy = np.sum(factors * of_mean, axis=-1)
        # The minimum before the division, because a quotient by a tiny variance may overflow.
        explainable = np.minimum(np.maximum(outcome_variance, least), proxy)
        calibrated = np.where(proxy > 0, explainable / np.where(proxy > 0, proxy, 1.0), 0.0)
        needed = _LABELS_FOR_A_CALIBRATED_LAM * lam.shape[-1]
        calibrated_share = needed**2 / (self.information**2 + needed**2)
        if self.of_classes is not None:
            share = calibrated_share * self.information / (self.information + _INFORMATION_OF_ONE)
            calibrated = calibrated + share * (self.of_classes - calibrated)
        fitted_lam = np.where(varies, lam, 0.0)
        pull = calibrated_share[..., None, None] * (calibrated[..., None, None] * parts - fitted_lam)
        # A proxy that the labels show to explain nothing must not widen the interval: the variance that the
        # pull adds is at most the one that the fitted λ removes. For one proxy λ is then at most doubled.
        removed, added = (explained_variance(part, population, factors) for part in (fitted_lam, pull))
        excess = added > removed
        scale = np.where(excess, np.sqrt(removed / np.where(excess, added, 1.0)), 1.0)
        return np.asarray(np.where(varies, fitted_lam + scale[..., None, None] * pull, 0.0))

    def evidence_of_gain(self, lam: FloatArray, factors: FloatArray) -> FloatArray:
        """Return the share (…,) of λ (…, H, k) that the labels support: 1 where a gain is certain.

        F = i r² / (1 − r²), with i the informative labels and r the correlation, within strata, of the
        outcome and the proxies weighted by λ, is about k for proxies that say nothing. λ loses the share
        (k/F)², at most 1, as far as there are informative labels: a smooth form of dropping proxies
        below a threshold, which costs strong ones less than 1 − k/F would (James & Stein 1961).
        """
        moments = self.moments
        labels = np.asarray(self.labels if self.information is None else self.information)
        is_counted = np.isfinite(labels)
        if not is_counted.any():
            return np.ones(moments.outcome_variances.shape[:-1])
        labels = np.where(is_counted, labels, 0.0)
        outcome_variance = np.sum(factors * moments.outcome_variances, axis=-1)
        proxy_variance = explained_variance(lam, moments.proxy_covariances, factors)
        covariances = np.sum(lam * moments.cross_covariances, axis=-1)
        joint = np.maximum(np.sum(factors * covariances, axis=-1), 0.0)
        varies = (outcome_variance > 0) & (proxy_variance > 0)
        # A product of the two variances could overflow.
        slopes = (joint / np.where(varies, variance, 1.0) for variance in (outcome_variance, proxy_variance))
        explained = np.where(varies, np.minimum(math.prod(slopes), 1.0), 0.0)
        # k / F, at most 1.
        by_chance = lam.shape[-1] * (1.0 - explained)
        explained_labels = labels * explained
        inverse_test = np.where(
            explained_labels > by_chance,
            by_chance / np.where(explained_labels > 0, explained_labels, 1.0),
            1.0,
        )
        counted = labels**4 / (labels**4 + _LABELS_AGAINST_A_PROXY**4)
        return np.asarray(np.where(is_counted, 1.0 - counted * inverse_test**2, 1.0))


def explained_variance(lam: FloatArray, covariances: FloatArray, factors: FloatArray) -> FloatArray:
    """Return Σ_h a_h λ_h'V_hλ_h (…,) of λ (…, H, k), V_h (…, H, k, k) and factors a_h (…, H)."""
    return np.asarray(np.sum(factors * np.einsum("...hi,...hij,...hj->...h", lam, covariances, lam), axis=-1))


def solve_semidefinite(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Return M⁺ v for positive semi-definite M (…, k, k), v (…, k); directions without variance give 0."""
    if matrix.shape[-1] == 0:
        return np.zeros_like(vector)
    diagonal = matrix.diagonal(axis1=-2, axis2=-1)
    usable = diagonal > 0
    if matrix.shape[-1] == 1:
        return np.where(usable, vector / np.where(usable, diagonal, 1.0), 0.0)
    scale = np.where(usable, np.sqrt(np.where(usable, diagonal, 1.0)), 1.0)
    standard = matrix / scale[..., :, None] / scale[..., None, :]
    inverse = np.linalg.pinv(standard, rcond=_RELATIVE_RANK, hermitian=True)
    return np.asarray((inverse @ (vector / scale)[..., None])[..., 0] / scale)


def pooled_lam(
    cross_covariances: FloatArray, proxy_covariances: FloatArray, factors: FloatArray
) -> FloatArray:
    """Return the one λ (…, k) that minimises the stratified variance Σ_h a_h S_h²(z − λẑ).

    λ = (Σ a_h V_h)⁻¹ Σ a_h C_h: weighted *within*-stratum covariances. The total Cov/Var would count what the
    strata have already explained. With one stratum it is PPI++'s λ (Angelopoulos, Duchi & Zrnic 2023, eq. 6).

    Parameters
    ----------
    cross_covariances : float (…, H, k)
        C_h.
    proxy_covariances : float (…, H, k, k)
        V_h.
    factors : float (…, H)
        a_h = W_h² (1 − f_h) / n_h, and 0 for strata without a covariance.
    """
    total = factors.sum(axis=-1, keepdims=True)
    factors = factors / np.where(total > 0, total, 1.0)
    numerator = (factors[..., None] * cross_covariances).sum(axis=-2)
    denominator = (factors[..., None, None] * proxy_covariances).sum(axis=-3)
    return solve_semidefinite(denominator, numerator)


def own_share(counts: AnyArray, shrinkage: float) -> FloatArray:
    """Return the share (…, H) of a stratum's own λ in the shrunk one; 0 without a covariance of its own.

    (n_h − 2) / (n_h − 2 + shrinkage): the fewer labels, the noisier the own λ.
    """
    if shrinkage == 0:
        return np.asarray(counts >= 2, dtype=np.float64)
    free = np.maximum(np.asarray(counts, dtype=np.float64) - 2.0, 0.0)
    return np.asarray(free / (free + shrinkage))


def agreement(
    lam_deviation: FloatArray,
    pooled: FloatArray,
    moments: StratumMoments,
) -> FloatArray:
    """Return the share (…, 1) of their differences that the strata's λ_h keep: what chance does not explain.

    Q = Σ (n_h − 1) (λ_h − λ)'V_h(λ_h − λ) / s_h²(z − λẑ) is Cochran's. Were all λ_h equal its mean would be
    f = k (H − 1); the share is 1 − (f + √(2f))/Q, the positive part of James & Stein (1961) with one standard
    deviation of Q on top of their constant: a stratum's own λ must earn its place.

    Parameters
    ----------
    lam_deviation : float (…, H, k)
        λ_h − λ.
    pooled : float (…, 1, k)
        λ.
    moments : StratumMoments
    """
    counts = moments.counts
    free = np.where(counts >= MIN_LABELS_OF_A_STRATUM, counts - 1.0, 0.0)
    explained_by_pooled, explained = (
        np.einsum("...hk,...hkl,...hl->...h", part, moments.proxy_covariances, part)
        for part in (np.broadcast_to(pooled, lam_deviation.shape), lam_deviation)
    )
    residual_variance = np.maximum(
        moments.outcome_variances
        - 2.0 * np.sum(pooled * moments.cross_covariances, axis=-1)
        + explained_by_pooled,
        0.0,
    )
    all_free = np.maximum(np.sum(free, axis=-1, keepdims=True), 1.0)
    typical = np.sum(free * residual_variance, axis=-1, keepdims=True) / all_free
    smoothed_variance = (free * residual_variance + _STEADY_LABELS * typical) / (free + _STEADY_LABELS)
    rounding = explained <= EXPLAINED * explained_by_pooled
    # Labels that the proxy predicts without error have no residual variance.
    q_of_stratum = free * explained / np.maximum(smoothed_variance, _TINY)
    q = np.sum(np.where(rounding, 0.0, q_of_stratum), axis=-1)
    used = (free > 0) & (np.einsum("...hkk->...h", moments.proxy_covariances) > 0)
    freedom = lam_deviation.shape[-1] * np.maximum(np.sum(used, axis=-1) - 1.0, 0.0)
    retained_share = 1.0 - (freedom + np.sqrt(2.0 * freedom)) / np.where(q > 0, q, np.inf)
    return np.asarray(np.maximum(retained_share, 0.0) * ((q > 0) & (freedom > 0)))[..., None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChosenLam:
    """The λ of an estimator, and what fitting it took.

    Parameters
    ----------
    lam : float (…, H, k)
    spent : float (…, H)
        Fitted parameters that fall to each stratum.
    fitted : bool
    notes : tuple of str
    leverages : float (n,), optional
        Each unit's pull on λ, for designs other than simple random within strata.
    """

    lam: FloatArray
    spent: FloatArray
    fitted: bool = False
    notes: tuple[str, ...] = ()
    leverages: FloatArray | None = None


def fit_stratified(
    evidence: LambdaEvidence,
    proxy_covariances: FloatArray,
    factors: FloatArray,
    shrinkage: float | None = None,
) -> ChosenLam:
    """Return one λ for all strata, or one for each.

    Parameters
    ----------
    evidence : LambdaEvidence
        Moments of the labelled units, with leading replicate axes if any; strata with fewer than two labels
        fit nothing.
    proxy_covariances : float (H, k, k)
        Over all N_h units.
    factors : float (…, H)
        W_h² (1 − f_h) / n_h.
    shrinkage : float, optional
        For λ per stratum: how far few labels shrink it towards the pooled one, next to `agreement`. 0 is
        StratPPI as published (Fisch et al. 2024, eq. 17).
    """
    moments = evidence.moments
    counts = moments.counts
    cross_covariances = moments.cross_covariances
    k = cross_covariances.shape[-1]
    factors = factors * (counts > 1)
    free = np.maximum(counts - 1.0, 0.0)
    denominators = proxy_covariances
    if not evidence.published:
        cross_covariances = cross_covariances + evidence.missed
        denominators = evidence.blended(proxy_covariances, free.sum(axis=-1, keepdims=True))
    pooled = pooled_lam(cross_covariances, denominators, factors)[..., None, :]
    weight = factors * proxy_covariances.trace(axis1=-2, axis2=-1)
    total = weight.sum(axis=-1, keepdims=True)
    spent = k * weight / np.where(total > 0, total, 1.0)
    pooled_of_strata: FloatArray = pooled * np.ones_like(cross_covariances)
    lam = pooled_of_strata
    if shrinkage is not None:
        denominators = proxy_covariances
        if not evidence.published:
            denominators = evidence.blended(proxy_covariances, free)
        deviations = solve_semidefinite(denominators, cross_covariances) - pooled
        gain = own_share(counts, shrinkage)
        if shrinkage > 0 and not evidence.published:
            gain = gain * (counts >= MIN_LABELS_OF_A_STRATUM) * agreement(deviations, pooled, moments)
        constant = np.einsum("...ii->...i", denominators) <= 0
        lam = np.asarray(np.where(constant, 0.0, pooled + gain[..., None] * deviations))
        # The labels also chose the share of its own λ that a stratum keeps, so a share costs as much as all.
        spent = np.where((gain > 0) & (weight > 0), float(k), spent)
    if evidence.published or k == 0:
        return ChosenLam(lam=lam, spent=spent, fitted=True)
    # The strata's deviations from the pooled λ have a test of their own (`agreement`).
    unsupported = 1.0 - evidence.evidence_of_gain(pooled_of_strata, factors)[..., None, None]
    pooled_of_strata = evidence.shrunk(pooled_of_strata, proxy_covariances, factors)
    if shrinkage is None:
        lam = pooled_of_strata
    else:
        lam = evidence.shrunk(lam, proxy_covariances, factors)
    lam = lam - unsupported * pooled_of_strata
    outcome_variance = np.sum(factors * moments.outcome_variances, axis=-1)
    is_used = explained_variance(lam, proxy_covariances, factors) > EXPLAINED * outcome_variance
    lam = np.where(is_used[..., None, None], lam, 0.0)
    # A proxy that is not used costs no label.
    return ChosenLam(lam=lam, spent=spent * is_used[..., None], fitted=True)


def domain_lam(cross_products: FloatArray, proxy_products: FloatArray, free: int) -> FloatArray:
    """Return the λ (k,) of domains from sums of products within them: of outcome and proxies, and of proxies.

    `free` is the number of labels minus the number of domains.
    """
    return solve_semidefinite(proxy_products, cross_products) * free / (free + _LABELS_OF_ZERO)


def inflation(counts: AnyArray, spent: FloatArray) -> FloatArray:
    """Return the factor of each stratum's s² (…, H) that compensates for the fitted parameters."""
    free = np.maximum(counts - 1.0, 0.0)
    # With hardly more labels than parameters, the factor would have no bound: 3 is the largest.
    remaining = np.maximum(free - spent, free / 3.0)
    return np.asarray(
        np.where((remaining > 0) & (spent > 0), free / np.where(remaining > 0, remaining, 1.0), 1.0)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LambdaPrior:
    """The prior uncertainty of a fitted λ, before any label.

    Parameters
    ----------
    bounds : (float, float), optional
        What the outcome cannot leave; without them every label is informative.
    scaled : bool
        Whether the proxy predicts the outcome on its own scale; if not, nothing is known of its λ.
    published : bool
        The papers' λ: the population's denominator, drawn nowhere, used as if it were known.
    """

    bounds: tuple[float, float] | None = None
    scaled: bool = True
    published: bool = False

    def evidence(self, moments: StratumMoments, means: FloatArray, covariances: FloatArray) -> LambdaEvidence:
        """Return the evidence of labelled units' moments for λ.

        `means` (H, k) and `covariances` (H, k, k) are the proxies' over all N_h units.
        """
        if self.published:
            return LambdaEvidence(moments=moments, published=True)
        evidence = LambdaEvidence.of(moments, self.bounds)
        if not self.scaled:
            return replace(evidence, information=None)
        if self.bounds is None or means.shape != (1, 1):
            return evidence
        low = self.bounds[0]
        width = self.bounds[1] - self.bounds[0]
        population_variance = float(covariances[0, 0, 0])
        labels: dict[str, Any] = {
            "counts": moments.counts[..., 0],
            "means": (moments.outcome_means[..., 0] - low) / width,
            "proxy_offset": moments.proxy_means[..., 0, 0] / width,
            "covariance": moments.cross_covariances[..., 0, 0] / width**2,
            "proxy_variance": population_variance / width**2,
        }
        missed, expected_mean = unseen_moments(
            **labels, sample_variance=moments.proxy_covariances[..., 0, 0, 0] / width**2
        )
        return replace(
            evidence,
            moments=replace(
                moments, proxy_covariances=np.maximum(moments.proxy_covariances, population_variance)
            ),
            least=np.maximum(evidence.least, expected_mean * (1.0 - expected_mean) * width**2),
            of_classes=lam_of_classes(**labels, proxy_mean=(float(means[0, 0]) - low) / width),
            missed=missed[..., None, None] * width**2,
        )


def fit_lam(
    z: FloatArray,
    proxy: LabelledProxies,
    weighting: Weighting,
    shrinkage: float | None = None,
    used: BoolArray | None = None,
    prior: LambdaPrior | None = None,
) -> ChosenLam:
    """Return λ (H, k) fitted to the labels.

    Parameters
    ----------
    z : float (n,)
    proxy, weighting
        See `stratal.estimation.outcome_means.mean_estimate`.
    shrinkage : float, optional
        For λ per stratum: how far it is shrunk towards the pooled one; one λ for all unless given.
    used : bool (n,), optional
        Units whose labels are used; all unless given.
    prior : LambdaPrior, optional
    """
    summary = proxy.summary
    if not (weighting.random_within_strata and len(weighting.sizes) == proxy.n_strata):
        return fit_general(z[:, None], proxy.values[:, None], weighting, shrinkage, used, proxy.n_strata)
    stratum = proxy.stratum
    values = proxy.values - proxy.stratum_means
    if used is not None:
        z = z[used]
        values = values[used]
        stratum = stratum[used]
    moments = stratum_moments(z, values, stratum, proxy.n_strata)
    covariances = summary.unbiased_covariances
    evidence = (prior or LambdaPrior()).evidence(moments, summary.proxy_means, covariances)
    chosen = fit_stratified(evidence, covariances, weighting.variance_factors, shrinkage)
    if evidence.published:
        return replace(chosen, spent=0.0 * chosen.spent)
    return chosen


def fit_general(
    outcome: FloatArray,
    proxies: FloatArray,
    weighting: Weighting,
    shrinkage: float | None = None,
    used: BoolArray | None = None,
    n_strata: int = 1,
    *,
    sized: bool = True,
) -> ChosenLam:
    """Return the λ of the regression of outcomes on proxies, over what the weights leave open of both.

    Units count by their weights w. The λ of least estimated variance would count them by w², and so be
    decided by the few with the largest weights, whose residuals then all but vanish (docs/decisions/0010).
    Clusters count by their totals, next to their sizes, whose mean is known.

    Parameters
    ----------
    outcome : float (n, q)
        One variable for a mean; the influences of the outcome on q coefficients for a regression.
    proxies : float (n, q, k)
        Of each of them.
    weighting : Weighting
    shrinkage : float, optional
        None: there is one λ.
    used : bool (n,), optional
        Units whose labels are used; all unless given.
    n_strata : int
        H, that λ is given for.
    sized : bool
        Whether the estimate allows for the sizes of clusters, as a mean does; a regression does not.
    """
    if shrinkage is not None:
        raise InputError("estimator 'stratppi' requires a stratified sample", action="Use estimator='ppi++'.")
    n, q, k = proxies.shape
    design = weighting.weights * (1.0 if used is None else used)
    weights = np.abs(design)
    flat = np.concatenate([outcome[..., None], proxies], axis=2).reshape(n, -1)
    both = weighting.unexplained(flat, weights)
    # A proxy that the weights explain is left with rounding, which is not a variance.
    both *= weights @ both**2 > EXPLAINED * (weights @ flat**2)
    by_size = np.zeros(n)
    if weighting.groups is None:
        rows = np.sqrt(weights)[:, None] * both
    else:
        totals = np.column_stack([both, np.ones(n)]) * design[:, None]
        rows = np.stack([np.bincount(weighting.groups, column) for column in totals.T], axis=1)
        rows -= rows.mean(axis=0)
        rows, sizes = rows[:, :-1], rows[:, -1]
        by_size = np.zeros(len(rows))
        if sized and np.ptp(sizes) > ROUNDING_VARIANCE:
            by_size = sizes**2 / (sizes @ sizes)
            rows = rows - np.outer(sizes, sizes @ rows) / (sizes @ sizes)
    parts = rows.reshape(len(rows), q, k + 1)
    y = parts[..., 0]
    x = parts[..., 1:]
    spread = np.einsum("nqk,nql->kl", x, x)
    if len(rows) < 2 or not np.any(np.diag(spread)):
        return ChosenLam(lam=np.zeros((n_strata, k)), spent=np.zeros(n_strata), fitted=True)
    lam = solve_semidefinite(spread, np.einsum("nqk,nq->k", x, y))
    pulls = np.einsum("nqk,nqk->n", x, solve_semidefinite(spread, x)) + by_size
    return ChosenLam(
        lam=np.broadcast_to(lam, (n_strata, k)),
        # All strata have one λ, which costs each of them an equal part.
        spent=np.full(n_strata, pulls.sum() / n_strata),
        fitted=True,
        leverages=pulls if weighting.groups is None else pulls[weighting.groups],
    )


def intercept(residuals: FloatArray, weighting: Weighting) -> float:
    """Return the number whose removal leaves the least variance of the residuals' mean.

    For clusters, by the regression of their totals on their sizes. Where Σ w is the same in every draw, or
    units were drawn one by one, it is the weighted mean (Hájek 1971): a fitted λ then does not care where the
    outcome's zero lies.
    """
    weights = weighting.weights
    if weighting.groups is not None:
        joint = weighting.covariance(np.column_stack([residuals, np.ones(len(residuals))]))
        if joint[1, 1] > ROUNDING_VARIANCE:
            return float(joint[0, 1] / joint[1, 1])
    return float(weights @ residuals / weights.sum())


# Pseudo-labels of each class, with the proxies of a calibrated one: together they count as one label.
_PSEUDO_LABELS_OF_CLASS = 0.5

# Sum of products, over labels from 0 to 1, by which a calibrated proxy counts in the slope: half a positive.
_CALIBRATED_PRODUCTS = 0.5

# Limit of a mean that the proxy corrects: so many times the positives among the labels, plus so many.
_MAX_TIMES_POSITIVES = 2.0
_MAX_ADDED_POSITIVES = 1.5

# Steps from λ to the mean and back; they shrink by the labels' share of the variance each time.
_STEPS = 4

# A mean proxy at 0 or 1 would cause a division by 0.
_EDGE = 1e-9


def lam_of_classes(
    counts: AnyArray,
    means: FloatArray,
    proxy_offset: FloatArray,
    covariance: FloatArray,
    *,
    proxy_mean: float,
    proxy_variance: float,
) -> FloatArray:
    """Return λ (…,) between −1 and 1 of outcome and proxy on the 0–1 scale.

    Parameters
    ----------
    counts : (…,)
        n.
    means : float (…,)
        Mean outcome of the labels; graded outcomes count as so much of a positive.
    proxy_offset : float (…,)
        Mean proxy of the labelled units minus that of all units.
    covariance : float (…,)
        Covariance of outcome and proxy among the labels, divisor n − 1.
    proxy_mean, proxy_variance : float
        Over all units.

    Notes
    -----
    A calibrated proxy of mean m and variance V has mean m + V/m among positives and m − V/(1 − m) among the
    others.
    """
    if proxy_variance <= 0:
        return np.zeros(np.shape(means))
    m = min(max(proxy_mean, _EDGE), 1.0 - _EDGE)
    positives = counts * means
    negatives = counts - positives
    pseudo_labels = _PSEUDO_LABELS_OF_CLASS
    # Sums of the proxy, minus its overall mean, over the labels of each class.
    sum_of_positives = (counts - 1.0) * covariance + positives * proxy_offset
    sum_of_negatives = counts * proxy_offset - sum_of_positives
    mean_of_positives = (sum_of_positives + pseudo_labels * proxy_variance / m) / (positives + pseudo_labels)
    mean_of_negatives = (sum_of_negatives - pseudo_labels * proxy_variance / (1.0 - m)) / (
        negatives + pseudo_labels
    )
    # Half a label more of either class keeps the rate of labels that all agree within (0, 1).
    smallest_rate = 0.5 / (counts + 1.0)
    rate = (positives + 0.5) / (counts + 1.0)
    lam = np.zeros(np.shape(means))
    for _ in range(_STEPS):
        covariance_of_classes = rate * (1.0 - rate) * (mean_of_positives - mean_of_negatives)
        lam = np.clip(covariance_of_classes / proxy_variance, -1.0, 1.0)
        rate = np.clip(means - lam * proxy_offset, smallest_rate, 1.0 - smallest_rate)
    return np.asarray(lam)


def unseen_moments(
    counts: AnyArray,
    means: FloatArray,
    proxy_offset: FloatArray,
    covariance: FloatArray,
    sample_variance: FloatArray,
    *,
    proxy_variance: float,
) -> tuple[FloatArray, FloatArray]:
    """Return the covariance that the labelled units miss, and the outcome's likely mean, (…,) each.

    If the proxies of the labelled units vary less than those of all units, the sample lacks units of one
    kind: for a rare outcome, those with high scores. These are assumed to follow the proxy, with the slope of
    the labels mixed with 1, the slope of a calibrated proxy.

    Parameters
    ----------
    counts, means, proxy_offset, covariance, proxy_variance
        See `lam_of_classes`.
    sample_variance : float (…,)
        Variance of the proxy among the labels, divisor n − 1.
    """
    cross_products = (counts - 1.0) * covariance + _CALIBRATED_PRODUCTS
    squares = (counts - 1.0) * sample_variance + _CALIBRATED_PRODUCTS
    slope = np.clip(cross_products / squares, 0.0, 1.0)
    largest_mean, largest_complement = (
        np.minimum((_MAX_TIMES_POSITIVES * of_class + _MAX_ADDED_POSITIVES) / counts, 1.0)
        for of_class in (counts * means, counts * (1.0 - means))
    )
    expected_mean = np.clip(means - slope * proxy_offset, 1.0 - largest_complement, largest_mean)
    return np.maximum(proxy_variance - sample_variance, 0.0) * slope, expected_mean
