"""Fit λ, the weight of a proxy, from the moments of strata: for one sample or for thousands at once.

A mean and a regression have one rule (docs/decisions/0008-lambda.md). A regression uses the influences of
outcome and proxy on its coefficients in place of z and ẑ, and sums their moments over the coefficients.

Every array may have leading replicate axes `(…,)`; H is the number of strata, k the number of proxies. The
numerator of λ is the covariance of outcome and proxy among the labelled units. The denominator is the
covariance of the proxies among the same units, mixed with that of all N_h units, which counts as two labels:
the sampling errors of numerator and denominator then cancel in part (docs/decisions/0008-lambda.md). In one
stratum, both are first increased by what the labelled units miss of the proxy's variance. Labels that are
nearly all equal provide little information on λ, so it is shrunk towards the λ of a calibrated proxy. The λ
of the papers ("published") has only the population's covariance in the denominator.

Three functions fit λ. The designs have different moments, so that none of the functions replaces another:

- `fit_stratified`, from covariances within strata: random samples within strata, for means, separate
  unlabelled samples, regressions and simulated replicates.
- `fit_general`, by the regression of weighted outcomes (or totals of clusters) on the proxies: all other
  designs, which have no variance of each stratum to minimise.
- `domain_lam`, by the regression within domains whose mean proxies are known: one λ for the means of all
  domains. It is shrunk towards 0, because few labels of a rare outcome would fit the noise of single domains.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, Record, sums_by_code
from stratal.designs import Weighting
from stratal.designs.stratum_moments import StratumMoments, stratum_moments
from stratal.designs.weighting import ROUNDING_VARIANCE
from stratal.errors import InputError
from stratal.population.summary import StratumSummary

# Number of labels above two at which a stratum keeps half of its deviation from the pooled λ, before the
# factor `significant_share`.
SHRINKAGE_LABELS = 3.0

# Strata with fewer labels have the pooled λ: in simulations, λ_h of such strata was noise.
MIN_LABELS_OF_A_STRATUM = 6

# Number of labels as which the residual variance of all strata counts in that of a stratum. The variance of
# few labels may be near 0 by chance, which would make any λ_h appear significant.
_POOLED_VARIANCE_LABELS = 10.0

# A smaller share of a mean square is a rounding error: (2⁻⁵²)², with a margin for the sums of a regression.
_ROUNDING_SHARE = 1e-20

# Number of labels as which the population's proxy variance counts in the denominator of λ.
POPULATION_VARIANCE_LABELS = 2.0

# Number of informative labels at which a fitted λ and that of a calibrated proxy have equal weight.
_LABELS_FOR_A_CALIBRATED_LAM = 20.0

# Informative labels for each of several proxies at which half of a λ that was fitted within strata is used.
# With 20, two good proxies gain less at 50 labels; with 5, useless ones cost more (docs/decisions/0008).
_LABELS_FOR_A_LAM_IN_STRATA = 10.0

# Number of informative labels that the first label of a rare class is: the λ of the classes then has the
# weight one half.
_INFORMATION_OF_ONE = 4.0

# Number of informative labels at which evidence against a proxy has half of its weight. With fewer labels,
# missing evidence for a proxy mostly means that a class has no label yet (docs/decisions/0008).
_LABELS_AGAINST_A_PROXY = 10.0

# Number of labels as which λ = 0 counts in domains: few labels of rare outcomes would fit the noise.
_LABELS_OF_ZERO = 20.0

# Proxies that are a combination of others, apart from rounding errors, get no additional coefficient.
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
    """Moments of the labelled units, and quantities that determine how much a fitted λ is shrunk.

    Parameters
    ----------
    moments : StratumMoments
    published : bool
        The λ of the papers: the denominator is the population's covariance, and λ is not shrunk.
    information : float (…,), optional
        Number of informative labels: 4 Σ n_h p_h (1 − p_h) for an outcome on the 0–1 scale, which is small if
        nearly all labels are equal. Without it, λ is not shrunk.
    min_variance : float (…,)
        Variance of the outcome with half a label more at each bound.
    class_lam : float (…,), optional
        For one stratum: λ from the mean proxies of the classes (`lam_of_classes`).
    unseen_covariance : float (…, 1, 1)
        For one stratum: covariance of outcome and proxy that the labelled units miss (`unseen_moments`).
    labels : float (…,)
        Σ n_h.
    """

    moments: StratumMoments
    published: bool = False
    information: FloatArray | None = None
    min_variance: FloatArray | float = 0.0
    class_lam: FloatArray | None = None
    unseen_covariance: FloatArray | float = 0.0
    labels: FloatArray | float = np.inf

    @classmethod
    def of(cls, moments: StratumMoments, bounds: tuple[float, float] | None = (0.0, 1.0)) -> LambdaEvidence:
        """Return the evidence of labels with these moments; without bounds, every label is informative."""
        counts = moments.counts
        labels = np.sum(counts, axis=-1)
        if bounds is None:
            return cls(moments=moments, information=labels, min_variance=0.0 * labels, labels=labels)
        scale = bounds[1] - bounds[0]
        unit = (moments.outcome_means - bounds[0]) / scale
        share = (np.sum(counts * unit, axis=-1) + 0.5) / (labels + 1.0)
        return cls(
            moments=moments,
            information=4.0 * np.sum(counts * np.maximum(unit * (1.0 - unit), 0.0), axis=-1),
            min_variance=share * (1.0 - share) * scale**2,
            labels=labels,
        )

    def blend_covariances(self, population: FloatArray, labels: FloatArray) -> FloatArray:
        """Return the covariances of the proxies (…, H, k, k); the population's count as two labels."""
        share = (labels / (labels + POPULATION_VARIANCE_LABELS))[..., None, None]
        return np.asarray(population + share * (self.moments.proxy_covariances - population))

    def shrink(self, lam: FloatArray, population: FloatArray, factors: FloatArray) -> FloatArray:
        """Return λ (…, H, k), shrunk towards that of calibrated proxies if there are few informative labels.

        A calibrated proxy has Cov(z, ẑ) = Var ẑ, so that λ = 1. A proxy that varies more than the outcome is
        not calibrated; its λ is then at most Var z / Var ẑ. For several proxies, their mean is assumed to be
        calibrated, and each proxy gets an equal part of its λ; k proxies need k times as many informative
        labels. If λ from the mean proxies of the classes is available (`class_lam`), it replaces that of a
        calibrated proxy as soon as both classes have labels. The variance that shrinkage adds is at most the
        variance that the fitted λ explains.

        With several strata, the λ of several proxies is shrunk towards 0: within strata that were built from
        one of the proxies, the others need not be calibrated.
        """
        varies = np.einsum("...ii->...i", population) > 0
        if self.information is None:
            return np.where(varies, lam, 0.0)
        if lam.shape[-2] > 1 and lam.shape[-1] > 1:
            needed = _LABELS_FOR_A_LAM_IN_STRATA * lam.shape[-1]
            fitted_share = self.information**2 / (self.information**2 + needed**2)
            return np.where(varies, fitted_share[..., None, None] * lam, 0.0)
        outcome_variance = np.sum(factors * self.moments.outcome_variances, axis=-1)
        min_variance = self.min_variance * np.sum(factors, axis=-1)
        # The weights of the mean of the proxies that vary.
        weights = varies / np.maximum(np.sum(varies, axis=-1, keepdims=True), 1)
        proxy_variance = explained_variance(weights, population, factors)
        # The minimum before the division, because a quotient by a tiny variance may overflow.
        explainable = np.minimum(np.maximum(outcome_variance, min_variance), proxy_variance)
        calibrated = np.where(
            proxy_variance > 0, explainable / np.where(proxy_variance > 0, proxy_variance, 1.0), 0.0
        )
        needed = _LABELS_FOR_A_CALIBRATED_LAM * lam.shape[-1]
        calibrated_share = needed**2 / (self.information**2 + needed**2)
        if self.class_lam is not None:
            share = calibrated_share * self.information / (self.information + _INFORMATION_OF_ONE)
            calibrated = calibrated + share * (self.class_lam - calibrated)
        fitted_lam = np.where(varies, lam, 0.0)
        change = calibrated_share[..., None, None] * (calibrated[..., None, None] * weights - fitted_lam)
        # A proxy that explains nothing according to the labels must not widen the interval: the variance that
        # the change adds is at most the variance that the fitted λ removes. One λ is then at most doubled.
        removed = explained_variance(fitted_lam, population, factors)
        added = explained_variance(change, population, factors)
        excess = added > removed
        scale = np.where(excess, np.sqrt(removed / np.where(excess, added, 1.0)), 1.0)
        return np.asarray(np.where(varies, fitted_lam + scale[..., None, None] * change, 0.0))

    def supported_share(self, lam: FloatArray, factors: FloatArray) -> FloatArray:
        """Return the share (…,) of λ (…, H, k) that the labels support; 1 if the gain is certain.

        F = i r² / (1 − r²) has a mean of about k for proxies without information. i is the number of
        informative labels, and r the correlation, within strata, of the outcome with the proxies weighted by
        λ. λ is reduced by the share (k/F)², at most 1, times a weight that increases with i. This is a smooth
        form of removing proxies with F below a threshold; it reduces the λ of strong proxies less than
        1 − k/F would (James & Stein 1961).
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
        # r² as the product of both slopes: a product of the two variances could overflow.
        slope_on_outcome = joint / np.where(varies, outcome_variance, 1.0)
        slope_on_proxy = joint / np.where(varies, proxy_variance, 1.0)
        explained = np.where(varies, np.minimum(slope_on_outcome * slope_on_proxy, 1.0), 0.0)
        # k / F, at most 1.
        by_chance = lam.shape[-1] * (1.0 - explained)
        explained_labels = labels * explained
        inverse_test = np.where(
            explained_labels > by_chance,
            by_chance / np.where(explained_labels > 0, explained_labels, 1.0),
            1.0,
        )
        weight = labels**4 / (labels**4 + _LABELS_AGAINST_A_PROXY**4)
        return np.asarray(np.where(is_counted, 1.0 - weight * inverse_test**2, 1.0))


def explained_variance(lam: FloatArray, covariances: FloatArray, factors: FloatArray) -> FloatArray:
    """Return Σ_h a_h λ_h'V_hλ_h (…,) of λ (…, H, k), V_h (…, H, k, k) and factors a_h (…, H)."""
    return np.asarray(np.sum(factors * _explained_in_strata(lam, covariances), axis=-1))


def _explained_in_strata(lam: FloatArray, covariances: FloatArray) -> FloatArray:
    """Return λ_h'V_hλ_h (…, H) of λ (…, H, k) and V_h (…, H, k, k)."""
    return np.asarray(np.einsum("...hi,...hij,...hj->...h", lam, covariances, lam))


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

    λ = (Σ a_h V_h)⁻¹ Σ a_h C_h: weighted covariances *within* strata. The covariances over all units would
    include what the strata already explain. With one stratum, it is the λ of PPI++ (Angelopoulos, Duchi &
    Zrnic 2023, eq. 6).

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


def stratum_lam_share(counts: AnyArray, shrinkage: float) -> FloatArray:
    """Return the weight (…, H) of the stratum-specific λ_h; that of the pooled λ is one minus this weight.

    It is (n_h − 2) / (n_h − 2 + shrinkage), because λ_h is noisy with few labels; 0 for less than two labels.
    """
    if shrinkage == 0:
        return np.asarray(counts >= 2, dtype=np.float64)
    additional_labels = np.maximum(np.asarray(counts, dtype=np.float64) - 2.0, 0.0)
    return np.asarray(additional_labels / (additional_labels + shrinkage))


def significant_share(
    lam_deviation: FloatArray,
    pooled: FloatArray,
    moments: StratumMoments,
) -> FloatArray:
    """Return the share (…, 1) of the deviations λ_h − λ that chance does not explain.

    Q = Σ (n_h − 1) (λ_h − λ)'V_h(λ_h − λ) / s_h²(z − λẑ) is Cochran's statistic. If all λ_h are equal, its
    mean is f = k (H − 1). The share is the positive part of 1 − (f + √(2f))/Q, as in James & Stein (1961)
    with one standard deviation of Q added: deviations count only if Q exceeds its mean by more than this.

    Parameters
    ----------
    lam_deviation : float (…, H, k)
        λ_h − λ.
    pooled : float (…, 1, k)
        λ.
    moments : StratumMoments
    """
    counts = moments.counts
    df = np.where(counts >= MIN_LABELS_OF_A_STRATUM, counts - 1.0, 0.0)
    explained = _explained_in_strata(lam_deviation, moments.proxy_covariances)
    pooled_of_strata = np.broadcast_to(pooled, lam_deviation.shape)
    explained_by_pooled = _explained_in_strata(pooled_of_strata, moments.proxy_covariances)
    residual_variance = np.maximum(
        moments.outcome_variances
        - 2.0 * np.sum(pooled * moments.cross_covariances, axis=-1)
        + explained_by_pooled,
        0.0,
    )
    total_df = np.maximum(np.sum(df, axis=-1, keepdims=True), 1.0)
    pooled_variance = np.sum(df * residual_variance, axis=-1, keepdims=True) / total_df
    sum_of_squares = df * residual_variance + _POOLED_VARIANCE_LABELS * pooled_variance
    smoothed_variance = sum_of_squares / (df + _POOLED_VARIANCE_LABELS)
    is_rounding = explained <= _ROUNDING_SHARE * explained_by_pooled
    # Labels that the proxy predicts without error have no residual variance.
    q_of_stratum = df * explained / np.maximum(smoothed_variance, _TINY)
    q = np.sum(np.where(is_rounding, 0.0, q_of_stratum), axis=-1)
    is_used = (df > 0) & (np.einsum("...hkk->...h", moments.proxy_covariances) > 0)
    mean_of_q = lam_deviation.shape[-1] * np.maximum(np.sum(is_used, axis=-1) - 1.0, 0.0)
    share = 1.0 - (mean_of_q + np.sqrt(2.0 * mean_of_q)) / np.where(q > 0, q, np.inf)
    return np.asarray(np.maximum(share, 0.0) * ((q > 0) & (mean_of_q > 0)))[..., None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChosenLam:
    """The λ of an estimator, and the cost of fitting it.

    Parameters
    ----------
    lam : float (…, H, k)
    n_parameters : float (…, H)
        Number of fitted parameters, divided among the strata.
    fitted : bool
    notes : tuple of str
    leverages : float (n,), optional
        Leverage of each unit in the regression for λ, for designs other than simple random within strata.
    """

    lam: FloatArray
    n_parameters: FloatArray
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
        Moments of the labelled units; strata with fewer than two labels are not used.
    proxy_covariances : float (H, k, k)
        Covariances over all N_h units.
    factors : float (…, H)
        W_h² (1 − f_h) / n_h.
    shrinkage : float, optional
        For one λ per stratum: the parameter of `stratum_lam_share`, next to `significant_share`. 0 is
        StratPPI as published (Fisch et al. 2024, eq. 17).
    """
    moments = evidence.moments
    counts = moments.counts
    cross_covariances = moments.cross_covariances
    k = cross_covariances.shape[-1]
    factors = factors * (counts > 1)
    df = np.maximum(counts - 1.0, 0.0)
    denominators = proxy_covariances
    if not evidence.published:
        cross_covariances = cross_covariances + evidence.unseen_covariance
        denominators = evidence.blend_covariances(proxy_covariances, df.sum(axis=-1, keepdims=True))
    pooled = pooled_lam(cross_covariances, denominators, factors)[..., None, :]
    weight = factors * proxy_covariances.trace(axis1=-2, axis2=-1)
    total = weight.sum(axis=-1, keepdims=True)
    n_parameters = k * weight / np.where(total > 0, total, 1.0)
    pooled_of_strata: FloatArray = pooled * np.ones_like(cross_covariances)
    lam = pooled_of_strata
    if shrinkage is not None:
        denominators = proxy_covariances
        if not evidence.published:
            denominators = evidence.blend_covariances(proxy_covariances, df)
        deviations = solve_semidefinite(denominators, cross_covariances) - pooled
        share = stratum_lam_share(counts, shrinkage)
        if shrinkage > 0 and not evidence.published:
            has_labels = counts >= MIN_LABELS_OF_A_STRATUM
            share = share * has_labels * significant_share(deviations, pooled, moments)
        is_constant = np.einsum("...ii->...i", denominators) <= 0
        lam = np.asarray(np.where(is_constant, 0.0, pooled + share[..., None] * deviations))
        # The labels also determine the weight of λ_h, so that any weight above 0 costs k parameters.
        n_parameters = np.where((share > 0) & (weight > 0), float(k), n_parameters)
    if evidence.published or k == 0:
        return ChosenLam(lam=lam, n_parameters=n_parameters, fitted=True)
    # The deviations of the strata from the pooled λ were tested separately (`significant_share`).
    unsupported = 1.0 - evidence.supported_share(pooled_of_strata, factors)[..., None, None]
    pooled_of_strata = evidence.shrink(pooled_of_strata, proxy_covariances, factors)
    if shrinkage is None:
        lam = pooled_of_strata
    else:
        lam = evidence.shrink(lam, proxy_covariances, factors)
    lam = lam - unsupported * pooled_of_strata
    outcome_variance = np.sum(factors * moments.outcome_variances, axis=-1)
    is_used = explained_variance(lam, proxy_covariances, factors) > _ROUNDING_SHARE * outcome_variance
    lam = np.where(is_used[..., None, None], lam, 0.0)
    # A proxy that is not used costs no degrees of freedom.
    return ChosenLam(lam=lam, n_parameters=n_parameters * is_used[..., None], fitted=True)


def domain_lam(cross_products: FloatArray, proxy_products: FloatArray, df: int) -> FloatArray:
    """Return the λ (k,) of domains from sums of products within them: of outcome and proxies, and of proxies.

    `df` is the number of labels minus the number of domains.
    """
    return solve_semidefinite(proxy_products, cross_products) * df / (df + _LABELS_OF_ZERO)


def inflation(counts: AnyArray, n_parameters: FloatArray) -> FloatArray:
    """Return the factor of each stratum's s² (…, H) that compensates for the fitted parameters."""
    df = np.maximum(counts - 1.0, 0.0)
    # With hardly more labels than parameters, the factor would be arbitrarily large; it is limited to 3.
    remaining = np.maximum(df - n_parameters, df / 3.0)
    return np.asarray(
        np.where((remaining > 0) & (n_parameters > 0), df / np.where(remaining > 0, remaining, 1.0), 1.0)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LambdaPrior:
    """Knowledge about λ before any label, which determines the value that a fitted λ is shrunk towards.

    Parameters
    ----------
    bounds : (float, float), optional
        Bounds of the outcome. Without bounds, every label is informative.
    scaled : bool
        Whether the proxy is on the scale of the outcome. Otherwise λ = 1 has no special meaning.
    published : bool
        The λ of the papers: it is not shrunk, its denominator is that of the population, and its estimation
        costs no degrees of freedom.
    """

    bounds: tuple[float, float] | None = None
    scaled: bool = True
    published: bool = False

    def evidence(self, moments: StratumMoments, means: FloatArray, covariances: FloatArray) -> LambdaEvidence:
        """Return the evidence for λ from moments of the labelled units.

        `means` (H, k) and `covariances` (H, k, k) are those of the proxies over all N_h units.
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
        # Moments on the 0–1 scale.
        unit_moments: dict[str, Any] = {
            "counts": moments.counts[..., 0],
            "means": (moments.outcome_means[..., 0] - low) / width,
            "proxy_offset": moments.proxy_means[..., 0, 0] / width,
            "covariance": moments.cross_covariances[..., 0, 0] / width**2,
            "proxy_variance": population_variance / width**2,
        }
        sample_variance = moments.proxy_covariances[..., 0, 0, 0] / width**2
        unseen_covariance, expected_mean = unseen_moments(**unit_moments, sample_variance=sample_variance)
        expected_variance = expected_mean * (1.0 - expected_mean) * width**2
        proxy_covariances = np.maximum(moments.proxy_covariances, population_variance)
        return replace(
            evidence,
            moments=replace(moments, proxy_covariances=proxy_covariances),
            min_variance=np.maximum(evidence.min_variance, expected_variance),
            class_lam=lam_of_classes(**unit_moments, proxy_mean=(float(means[0, 0]) - low) / width),
            unseen_covariance=unseen_covariance[..., None, None] * width**2,
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
        See `stratal.estimation.outcome_means.linearised_mean`.
    shrinkage : float, optional
        For one λ per stratum, see `fit_stratified`. Default: one λ for all strata.
    used : bool (n,), optional
        Units whose labels are used. Default: all.
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
        return replace(chosen, n_parameters=0.0 * chosen.n_parameters)
    return chosen


def fit_general(
    outcome: FloatArray,
    proxies: FloatArray,
    weighting: Weighting,
    shrinkage: float | None = None,
    used: BoolArray | None = None,
    n_strata: int = 1,
    *,
    regress_on_sizes: bool = True,
) -> ChosenLam:
    """Return the λ of the regression of outcomes on proxies.

    What the weights determine is removed from both (`Weighting.unexplained`). The regression has the weights
    w. With w², the estimated variance would be smallest, but a few units with large weights would determine
    λ, and their residuals would be much too small (docs/decisions/0010). For clusters, the regression is that
    of their totals, with their sizes as a further regressor, whose population mean is known.

    Parameters
    ----------
    outcome : float (n, q)
        One variable for a mean; the influences of the outcome on q coefficients for a regression.
    proxies : float (n, q, k)
        The k proxies of each variable.
    weighting : Weighting
    shrinkage : float, optional
        Must be None, because there is one λ.
    used : bool (n,), optional
        Units whose labels are used. Default: all.
    n_strata : int
        H, the number of rows of λ.
    regress_on_sizes : bool
        Whether the sizes of clusters are a further regressor: for a mean, but not for a regression.
    """
    if shrinkage is not None:
        raise InputError("estimator 'stratppi' requires a stratified sample", action="Use estimator='ppi++'.")
    n, q, k = proxies.shape
    design_weights = weighting.weights * (1.0 if used is None else used)
    weights = np.abs(design_weights)
    variables = np.concatenate([outcome[..., None], proxies], axis=2).reshape(n, -1)
    deviations = weighting.unexplained(variables, weights)
    # If the weights determine a proxy, only rounding errors remain of it, which are no variance.
    deviations *= weights @ deviations**2 > _ROUNDING_SHARE * (weights @ variables**2)
    size_leverages = np.zeros(n)
    if weighting.unit_clusters is None:
        rows = np.sqrt(weights)[:, None] * deviations
    else:
        totals = np.column_stack([deviations, np.ones(n)]) * design_weights[:, None]
        rows = sums_by_code(totals, weighting.unit_clusters)
        rows -= rows.mean(axis=0)
        sizes = rows[:, -1]
        rows = rows[:, :-1]
        size_leverages = np.zeros(len(rows))
        if regress_on_sizes and np.ptp(sizes) > ROUNDING_VARIANCE:
            size_leverages = sizes**2 / (sizes @ sizes)
            rows = rows - np.outer(sizes, sizes @ rows) / (sizes @ sizes)
    regression_rows = rows.reshape(len(rows), q, k + 1)
    y = regression_rows[..., 0]
    x = regression_rows[..., 1:]
    proxy_products = np.einsum("nqk,nql->kl", x, x)
    if len(rows) < 2 or not np.any(np.diag(proxy_products)):
        return ChosenLam(lam=np.zeros((n_strata, k)), n_parameters=np.zeros(n_strata), fitted=True)
    lam = solve_semidefinite(proxy_products, np.einsum("nqk,nq->k", x, y))
    leverages = np.einsum("nqk,nqk->n", x, solve_semidefinite(proxy_products, x)) + size_leverages
    # The parameters of the common λ are divided equally among the strata.
    n_parameters = np.full(n_strata, leverages.sum() / n_strata)
    if weighting.unit_clusters is not None:
        leverages = leverages[weighting.unit_clusters]
    lam_of_strata = np.broadcast_to(lam, (n_strata, k))
    return ChosenLam(lam=lam_of_strata, n_parameters=n_parameters, fitted=True, leverages=leverages)


def intercept(residuals: FloatArray, weighting: Weighting) -> float:
    """Return the constant whose subtraction minimises the variance of the weighted mean of the residuals.

    For clusters, it is the coefficient of the regression of their totals on their sizes. If Σ w is the same
    in every draw, or if units were drawn independently, it is the weighted mean (Hájek 1971). The estimate
    then does not depend on the zero point of the outcome.
    """
    weights = weighting.weights
    if weighting.unit_clusters is not None:
        joint = weighting.covariance(np.column_stack([residuals, np.ones(len(residuals))]))
        if joint[1, 1] > ROUNDING_VARIANCE:
            return float(joint[0, 1] / joint[1, 1])
    return float(weights @ residuals / weights.sum())


# Pseudo-labels of each class, whose proxies are those of a calibrated proxy: together they are one label.
_PSEUDO_LABELS_OF_CLASS = 0.5

# Weight of the slope 1 of a calibrated proxy, as a sum of products on the 0–1 scale: half a positive.
_CALIBRATED_PRODUCTS = 0.5

# Upper limit of the number of positives according to the proxy: this multiple of the positive labels, plus
# this number.
_MAX_TIMES_POSITIVES = 2.0
_MAX_ADDED_POSITIVES = 1.5

# Iterations of λ and the mean, which depend on each other. Each reduces the change by the share of the labels
# in the variance.
_ITERATIONS = 4

# Smallest distance of the mean proxy from 0 and 1, which are divisors.
_MIN_DISTANCE = 1e-9


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
        Mean outcome of the labels; a graded outcome is a part of a positive.
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
    m = min(max(proxy_mean, _MIN_DISTANCE), 1.0 - _MIN_DISTANCE)
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
    # With half a label more of each class, the rate lies within (0, 1) even if all labels are equal.
    smallest_rate = 0.5 / (counts + 1.0)
    rate = (positives + 0.5) / (counts + 1.0)
    lam = np.zeros(np.shape(means))
    for _ in range(_ITERATIONS):
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
    """Return the covariance that the labelled units miss, and the expected mean of the outcome, (…,) each.

    If the proxies of the labelled units vary less than those of all units, the sample has too few units with
    extreme proxies: for a rare outcome, those with high scores. Their outcomes are assumed to depend on the
    proxy with the slope of the labels, mixed with the slope 1 of a calibrated proxy.

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
    max_positives = _MAX_TIMES_POSITIVES * (counts * means) + _MAX_ADDED_POSITIVES
    max_negatives = _MAX_TIMES_POSITIVES * (counts * (1.0 - means)) + _MAX_ADDED_POSITIVES
    smallest_mean = 1.0 - np.minimum(max_negatives / counts, 1.0)
    largest_mean = np.minimum(max_positives / counts, 1.0)
    expected_mean = np.clip(means - slope * proxy_offset, smallest_mean, largest_mean)
    return np.maximum(proxy_variance - sample_variance, 0.0) * slope, expected_mean
