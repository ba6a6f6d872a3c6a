"""M-estimation with a proxy: λ, the minimum of the rectified loss, and its sandwich covariance.

The rectified loss of the labelled units S_h and the population's units U_h of the strata h is

Σ_h W_h [ λ_h mean_{U_h} ℓ(x, f) + mean_{S_h} (ℓ(x, y) − λ_h ℓ(x, f)) ]   (Fisch et al. 2024, eq. 8–9)

with the features x, the outcome y and its proxy f. The weights of a `Weighting` give the means over S_h, and
its covariance gives the variance of the estimate. In the sandwich A⁻¹ V A⁻¹, the "bread" A⁻¹ is the inverse
Hessian, and V is the covariance of the mean gradient.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray, divide
from stratal.designs import Weighting
from stratal.designs.stratum_moments import centre_within_strata, stratum_moments, stratum_sums
from stratal.errors import InputError
from stratal.estimation.estimate import Estimate, linearised_estimate
from stratal.estimation.estimates import Estimates
from stratal.estimation.lam import ChosenLam, LambdaEvidence, fit_general, fit_stratified
from stratal.estimation.linearised import Linearised, skewed_interval
from stratal.intervals.interval_types import SkewedInterval
from stratal.protocols import JsonDict
from stratal.regression import losses, rectified_loss
from stratal.regression.rectified_loss import RectifiedLoss, Solution
from stratal.report.text import json_dict

# Smallest value of 1 − leverage in the corrections: a division by less would inflate noise.
_MIN_COMPLEMENT = 0.25


def left_out_residuals(
    residuals: FloatArray, leverages: FloatArray, stratum: IntArray, n_strata: int
) -> FloatArray:
    """Return the residual gradients divided by 1 − leverage, as if each unit had been left out of the fits.

    The leverage of a labelled unit is its contribution to the rectified Hessian, w (1 − λ) tr(A⁻¹∇²ℓ), plus
    its influence on the fitted λ. For λ = 0 this is HC3 (MacKinnon & White 1985). For λ = 1 the Hessian is
    that of the population, and the first part is 0. Only deviations from the means of the strata are divided,
    because the variance depends only on them. Residuals are (n, d), leverages and strata (n,).
    """
    deviations = centre_within_strata(residuals, stratum, n_strata)
    increases = 1.0 / _complement(leverages) - 1.0
    return np.asarray(residuals + deviations * increases[:, None])


def _complement(leverages: FloatArray) -> FloatArray:
    """Return 1 − leverage (n,), with leverages limited to the range from 0 to 0.75."""
    return np.asarray(1.0 - np.minimum(np.maximum(leverages, 0.0), 1.0 - _MIN_COMPLEMENT))


def hc1_factor(n: int, n_fitted: float) -> float:
    """Return √((n − 1)/(n − n_fitted)), the factor of residuals for HC1 with a design's divisor n − 1."""
    return float(np.sqrt(max((n - 1) / max(n - n_fitted, 1.0), 1.0)))


def cluster_corrected_residuals(
    residual: FloatArray, cluster: IntArray, cluster_hessians: FloatArray, bread: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return residual gradients (n, d) with the correction CR2, and degrees of freedom (d,).

    The fit depends on each cluster, so that the expected square of its summed residual gradient is only the
    share 1 − H_c A⁻¹ of its variance, where H_c is its contribution to the Hessian A (Bell & McCaffrey 2002).
    Leverages of single units are not sufficient: those of 20 units of a cluster with .02 each sum to .4. The
    gradients are multiplied by S_c = (1 − H_c A⁻¹)^(−1/2). The factor m/(m − 1) of the covariance between m
    clusters, which is the same correction for equal clusters, is removed.

    Parameters
    ----------
    residual : float (n, d)
    cluster : int (n,)
        Cluster of each labelled unit, 0 … m − 1.
    cluster_hessians : float (m, d, d)
        H_c, the Hessians of the labelled units of each cluster, weighted by w (1 − λ).
    bread : float (d, d)
        A⁻¹, positive definite.
    """
    root = np.linalg.cholesky(bread)
    eigenvalues, vectors = np.linalg.eigh(root.T @ cluster_hessians @ root)
    scaled_vectors = vectors / np.sqrt(np.maximum(1.0 - eigenvalues, _MIN_COMPLEMENT))[:, None, :]
    corrections = np.linalg.inv(root).T @ scaled_vectors @ vectors.transpose(0, 2, 1) @ root.T  # S_c
    cluster_factor = np.sqrt(max(1.0 - 1.0 / len(cluster_hessians), 0.0))
    corrected = cluster_factor * np.einsum("nij,nj->ni", corrections[cluster], residual)
    return corrected, _cluster_degrees_of_freedom(corrections, cluster_hessians, bread)


def _cluster_degrees_of_freedom(
    corrections: FloatArray, cluster_hessians: FloatArray, bread: FloatArray
) -> FloatArray:
    """Return (tr Ω)² / tr Ω² of each coefficient (d,), for the corrections S_c (m, d, d).

    Ω (m, m) is the covariance of the corrected gradients of the clusters if units are independent and have
    equal variances (Bell & McCaffrey 2002).
    """
    # With b_k, column k of the bread: S_c' b_k and H_c S_c' b_k.
    directions = np.einsum("cij,jk->cik", corrections.transpose(0, 2, 1), bread)
    hessian_directions = np.einsum("cij,cjk->kci", cluster_hessians, directions)
    # Ω of coefficient k is a diagonal matrix minus a matrix of rank d.
    diagonal = np.einsum("cik,kci->kc", directions, hessian_directions)
    reduction = np.einsum("kci,ij,kcj->kc", hessian_directions, bread, hessian_directions)
    joint = np.einsum("kci,kcj->kij", hessian_directions, hessian_directions) @ bread
    squares = np.sum(diagonal**2 - 2.0 * diagonal * reduction, axis=1)
    squares = squares + np.einsum("kij,kji->k", joint, joint)  # tr Ω²
    trace = np.sum(diagonal - reduction, axis=1)
    return divide(trace**2, squares, where=squares > 0, otherwise=1.0)


# A variance below this share of the mean square is the rounding error of a constant.
_VARIANCE_ROUNDING = 1e-24


# Tolerances of the last Newton step, whose square is about the error of θ: of the classical estimate from
# which the rounds start, of the first round, and of the last one. λ depends little on the exact θ.
_START_TOLERANCE = 1e-4
_FIRST_ROUND_TOLERANCE = 0.05
_LAST_ROUND_TOLERANCE = 1e-7


def fit_lam_and_minimise(rectified: RectifiedLoss) -> tuple[ChosenLam, Solution]:
    """Return λ (H, 1), as specified or fitted, and the minimum of the rectified loss with this λ.

    A fitted λ depends on θ, and θ on λ. There are two rounds, which start from the classical estimate, or
    from the fit to the proxies if the labels have no classical estimate. One round is sufficient
    asymptotically.
    """
    if rectified.lam is not None:
        return _minimise_with_fixed_lam(rectified, rectified.lam)
    low, high = rectified.loss.convex_range
    theta = _initial_theta(rectified)
    for tolerance in (_FIRST_ROUND_TOLERANCE, _LAST_ROUND_TOLERANCE):
        fit = _fit_lam(rectified, theta)
        lam = np.minimum(np.maximum(fit.lam, low), high)
        solution = rectified.require_solution(lam[:, 0], theta, tolerance)
        theta = solution.theta
    if (lam != fit.lam).any():
        note = "λ was clipped to the range in which the rectified loss is convex"
        fit = replace(fit, lam=lam, notes=(note,))
    return fit, solution


def _minimise_with_fixed_lam(rectified: RectifiedLoss, lam: FloatArray) -> tuple[ChosenLam, Solution]:
    """Return λ (H,) as if it had been fitted, and the minimum of the rectified loss with it."""
    low, high = rectified.loss.convex_range
    notes: tuple[str, ...] = ()
    if not np.all((lam >= low) & (lam <= high)):
        notes = (
            f"λ is outside {low:g} to {high:g}: the loss may not be convex, and this may not be its minimum",
        )
    theta = np.zeros(rectified.n_parameters)
    if np.any(lam):
        theta = _initial_theta(rectified)
    chosen = ChosenLam(lam=lam[:, None], n_parameters=np.zeros(len(lam)), notes=notes)
    return chosen, rectified.require_solution(lam, theta)


def _fit_lam(rectified: RectifiedLoss, theta: FloatArray) -> ChosenLam:
    """Return λ (H, 1) fitted to the gradients at θ, before clipping."""
    combinations = rectified_loss.variance_directions(
        rectified.minimise, rectified.n_parameters, rectified.names
    )
    directions = rectified.labelled_inverse(theta) @ combinations
    gradients = rectified.loss.gradients
    # Influences of the labelled units (n, k), with the outcome and with its proxy.
    u = losses.times(gradients(theta, rectified.features, rectified.outcome), directions)
    v = losses.times(gradients(theta, rectified.features, rectified.proxy), directions)
    # Shrinkage of the λ of the strata, which only "stratppi" has.
    shrinkage = None
    if rectified.estimator == "stratppi":
        shrinkage = rectified.shrinkage
    if rectified.weighting.random_within_strata:
        population_variances = _population_variances(rectified, theta, directions)
        return _fit_lam_within_strata(rectified, u, v, population_variances, shrinkage)
    units = rectified.unlabelled
    assert units is not None
    n_strata = len(rectified.counts)
    fit = fit_general(
        u, v[..., None], rectified.weighting, shrinkage, n_strata=n_strata, regress_on_sizes=False
    )
    if not units.separate:
        return fit
    # The proxies of a separate sample add a second term to the variance of λ times the proxy mean.
    labelled_variance = float(np.trace(rectified.weighting.covariance(v)))
    population_variances = _population_variances(rectified, theta, directions)
    unlabelled_variance = float(np.sum(rectified.shares**2 * population_variances / units.counts))
    total_variance = max(labelled_variance + unlabelled_variance, _VARIANCE_ROUNDING)
    return replace(fit, lam=fit.lam * labelled_variance / total_variance)


def _population_variances(rectified: RectifiedLoss, theta: FloatArray, directions: FloatArray) -> FloatArray:
    """Return the variances (H,) of the proxy influences of the unlabelled units, summed over directions."""
    covariances = rectified.proxy_covariances(theta)
    return np.asarray((covariances * (directions @ directions.T)).sum(axis=(1, 2)))


def _fit_lam_within_strata(
    rectified: RectifiedLoss,
    u: FloatArray,
    v: FloatArray,
    population_variances: FloatArray,
    shrinkage: float | None,
) -> ChosenLam:
    """Return λ (H, 1) of units drawn at random within strata, for the influences u and v (n, k).

    `population_variances` (H,) are those of v within the strata of the unlabelled units.
    """
    units = rectified.unlabelled
    assert units is not None
    weighting = rectified.weighting
    stratum = rectified.stratum
    n_strata = len(rectified.counts)
    sums_of_squares = stratum_sums(np.einsum("nk,nk->n", v, v), stratum, n_strata)
    moments = stratum_moments(u, v[..., None], stratum, n_strata)
    degrees_of_freedom = np.maximum(rectified.counts - 1.0, 1.0)
    proxy_variances = moments.proxy_covariances[:, 0, 0]
    # In strata in which the proxy is constant, it gets no weight.
    varies = proxy_variances * degrees_of_freedom > _VARIANCE_ROUNDING * sums_of_squares
    min_variances = _VARIANCE_ROUNDING * sums_of_squares / degrees_of_freedom
    population_variances = np.where(population_variances > min_variances, population_variances, 0.0)
    variance_multiples = np.ones(n_strata)
    if units.separate:
        # The mean of the separate sample adds a second term λ²V_h to the variance.
        factors = weighting.variance_factors
        variance_multiples += rectified.shares**2 / units.counts / np.where(factors > 0, factors, 1.0)
    moments = replace(
        moments,
        cross_covariances=varies[:, None] * moments.cross_covariances,
        proxy_covariances=(variance_multiples * varies * proxy_variances)[:, None, None],
    )
    evidence = LambdaEvidence(moments=moments, published=rectified.shrinkage == 0)
    population_terms = (variance_multiples * population_variances)[:, None, None]
    fit = fit_stratified(evidence, population_terms, weighting.variance_factors, shrinkage)
    # The λ of the papers is treated as known.
    if evidence.published:
        return replace(fit, n_parameters=0.0 * fit.n_parameters)
    # The leverage of a unit in the fit of λ is its share of the sum of squares, times the fitted parameters.
    unit_squares = np.sum(centre_within_strata(v, stratum, n_strata) ** 2, axis=1)
    stratum_squares = proxy_variances * degrees_of_freedom
    parameters_per_square = fit.n_parameters / np.where(stratum_squares > 0, stratum_squares, 1.0)
    return replace(fit, leverages=parameters_per_square[stratum] * unit_squares)


def _initial_theta(rectified: RectifiedLoss) -> FloatArray:
    """Return the classical estimate, or the fit to the proxies if the labels have no classical estimate."""
    assert rectified.unlabelled is not None
    zero_lam = np.zeros(len(rectified.shares))
    theta = np.zeros(rectified.n_parameters)
    try:
        if rectified.loss.quadratic:
            return np.asarray(-rectified.labelled_inverse(theta) @ rectified.label_sums.gradient)
        return rectified.require_solution(zero_lam, theta, _START_TOLERANCE).theta
    except InputError:
        # The classes of few labels may be separated completely; those of the proxies of all units rarely are.
        return fit_to_proxies(rectified.loss, rectified.unlabelled).theta


# The test statistic of the bias, divided by the number of coefficients, up to which the bias is attributed to
# chance.
_MAX_CHANCE_STATISTIC = 2.0


# The proxy is multiplied by the slope of the outcome's residuals on its residuals if the slope is above this.
_MIN_RESCALING = 1.2


# Residuals of a proxy below this share of its values are rounding errors of a linear function of the
# features.
_RESIDUAL_ROUNDING = 1e-9


def correct_proxy_bias(rectified: RectifiedLoss) -> tuple[RectifiedLoss, float, float]:
    """Return the loss with the corrected proxy scale · f + x'shift, the scale, and the share of the bias.

    The bias is the difference between the coefficients of the labels and those of the proxy. The shift
    removes the share of it that exceeds chance. The proxy is not changed if λ is not fitted, or if the loss
    is not least squares.
    """
    x = rectified.features
    y = rectified.outcome
    proxy = rectified.proxy
    units = rectified.unlabelled
    is_fitted = rectified.form == "auto" and rectified.lam is None
    if units is None or not (is_fitted and rectified.loss.quadratic and x.shape[1]):
        return rectified, 1.0, 0.0
    bread = rectified.labelled_inverse(np.zeros(x.shape[1]))
    gradient_at_zero, hessian = rectified.proxy_sums
    label_coefficients = -bread @ rectified.label_sums.gradient
    labelled_proxy_coefficients = bread @ (rectified.lam_slope.gradient - gradient_at_zero)
    population_proxy_coefficients = -rectified_loss.require_inverse(hessian) @ gradient_at_zero
    outcome_residual = y - x @ label_coefficients
    proxy_residual = proxy - x @ population_proxy_coefficients
    scale = _proxy_scale(rectified, bread, outcome_residual, proxy_residual)
    bias = label_coefficients - scale * labelled_proxy_coefficients
    leverages = rectified.weights * np.einsum("ni,ni->n", losses.times(x, bread), x)
    residual = (y - scale * proxy - x @ bias) / _complement(leverages)
    bias_covariance = bread @ rectified.weighting.covariance(x * residual[:, None]) @ bread
    bias_share = _share_beyond_chance(bias, bias_covariance)
    if scale == 1.0 and bias_share == 0.0:
        return rectified, 1.0, 0.0
    corrected = copy.copy(rectified)
    shift = bias_share * bias
    corrected.proxy = scale * proxy + x @ shift
    corrected.unlabelled = units.with_corrected_proxy(scale, shift)
    corrected.proxy_sums = _sums_of_corrected_proxy(rectified.proxy_sums, scale, shift)
    corrected.lam_slope = _sums_of_corrected_proxy(rectified.lam_slope, scale, shift)
    return corrected, scale, bias_share


def _share_beyond_chance(bias: FloatArray, covariance: FloatArray) -> float:
    """Return the share 1 − 2d / statistic of the bias (d,) that exceeds chance, or 0.

    The statistic is that of Wald's test. `covariance` (d, d) is not finite with too few labels.
    """
    if not np.isfinite(covariance).all():
        return 0.0
    statistic = float(bias @ np.linalg.pinv(covariance, hermitian=True) @ bias)
    chance_statistic = _MAX_CHANCE_STATISTIC * len(bias)
    if statistic > chance_statistic:
        return 1.0 - chance_statistic / statistic
    return 0.0


def _sums_of_corrected_proxy(sums: losses.LossSums, scale: float, shift: FloatArray) -> losses.LossSums:
    """Return the sums of a quadratic loss for the proxy `scale * proxy + x @ shift`."""
    gradient_at_zero, hessian = sums
    return losses.LossSums(scale * gradient_at_zero - hessian @ shift, hessian)


def _proxy_scale(
    rectified: RectifiedLoss, bread: FloatArray, outcome_residual: FloatArray, proxy_residual: FloatArray
) -> float:
    """Return the slope of the influences of the outcome's residuals on those of the proxy's residuals (n,).

    It is 1 if the slope is not above `_MIN_RESCALING`.
    """
    if np.abs(proxy_residual).max() <= _RESIDUAL_ROUNDING * np.abs(rectified.proxy).max():
        return 1.0
    x = losses.times(rectified.features, bread)
    outcome_influences = x * outcome_residual[:, None]
    proxy_influences = x * proxy_residual[:, None]
    joint = rectified.weighting.covariance(np.concatenate([outcome_influences, proxy_influences], axis=1))
    d = x.shape[1]
    proxy_variance = float(joint[d:, d:].trace())
    slope = 1.0
    if proxy_variance > 0:
        slope = float(joint[:d, d:].trace()) / proxy_variance
    if np.isfinite(slope) and slope > _MIN_RESCALING:
        return slope
    return 1.0


def m_estimate(
    loss: losses.Loss, outcome: object, *, weighting: Weighting, **options: object
) -> Coefficients:
    """Estimate the minimiser of a convex loss over the population, from labels and a proxy on all units.

    Parameters
    ----------
    loss : Loss
        `MeanLoss`, `LinearLoss`, `LogisticLoss`, `PoissonLoss`, or a custom subclass.
    outcome : array-like (n,) or (n, q)
        Labels.
    weighting : Weighting
        The design of the labelled units.
    features : array-like (n, p), optional
        Features of the labelled units, including a column of ones for an intercept.
    proxy : array-like like `outcome`, optional
        Predictions of the outcome for the labelled units.
    unlabelled : Unlabelled, optional
        Features and proxy of all units of the population, or of a separate sample.
    names : sequence of str, optional
        Names of the coefficients.
    estimator : str
        "ppi++": one fitted λ. "stratppi": one λ per stratum, shrunk to the common one. "classical": λ = 0,
        without a proxy.
    lam : float or (H,), optional
        A fixed λ instead of a fitted one.
    target : str
        "population": the minimiser over these N units, with finite population correction. "superpopulation":
        the minimiser over the distribution of the units.
    stratum_weights_known : bool
        For the superpopulation: whether the W_h are those of the distribution, as Fisch et al. assume.
    minimise : "trace", or name or index of a coefficient
        The variance that λ minimises. The trace depends on the units of the features, as in the papers.
    shrinkage : float
        Strength of the shrinkage of the λ_h of "stratppi" to the common λ, in labels
        (`stratal.estimation.lam`). With 0, the fitted λ is that of the papers: not shrunk, with the
        population variance as denominator, and treated as known.
    hessian : str
        "rectified" (default; exact for linear losses), or "pooled" over labelled and unlabelled units, as in
        `ppi-python`.
    form : str
        "loss" minimises the rectified loss. "auto" also does so, but for least squares with a fitted λ it
        first corrects the bias of the proxy along the features, as far as it exceeds chance. "fits" (only
        linear regression) is the sum of the fit of λf on the population and the fit of y − λf on the labels,
        as in `ppi-python`.
    correction : str
        Small-sample correction of the variance: "leverage" (HC3 at λ = 0), "none".

    Returns
    -------
    Coefficients
        The estimates of the coefficients; level and method of intervals are chosen afterwards.

    Raises
    ------
    InputError
        For collinear features, separated labels, an unbounded rectified loss, too few labels, and numbers
        that are not finite.

    Notes
    -----
    Angelopoulos, Duchi & Zrnic (2023), "PPI++"; Fisch et al. (2024), "Stratified prediction-powered
    inference".

    Examples
    --------
    >>> from stratal.regression.losses import LinearLoss
    >>> from stratal.regression.losses import ArrayUnlabelled
    >>> from stratal.designs import StratifiedWeighting
    >>> x = np.stack([np.ones(8), np.arange(8.0)], axis=1)
    >>> y, f = 1 + 2 * x[:, 1] + np.tile([0.1, -0.1], 4), 1 + 2 * x[:, 1]
    >>> drawn = np.array([0, 2, 3, 5, 7])
    >>> weighting = StratifiedWeighting(stratum=np.zeros(5, int), sizes=np.array([8]))
    >>> result = m_estimate(LinearLoss(), y[drawn], features=x[drawn], proxy=f[drawn],
    ...                     unlabelled=ArrayUnlabelled(features=x, proxy=f), names=["intercept", "slope"],
    ...                     weighting=weighting, lam=1.0)
    >>> result.names, bool(np.all(np.abs(result.values - [1, 2]) < 0.2))
    (('intercept', 'slope'), True)
    """
    rectified = RectifiedLoss.of(loss=loss, outcome=outcome, weighting=weighting, **options)
    if rectified.form == "fits" and not loss.quadratic:
        raise InputError(
            "form='fits' can only be used for linear regression", given=loss.name, allowed="form='loss'"
        )
    rectified, proxy_scale, bias_share = correct_proxy_bias(rectified)
    fit, solution = fit_lam_and_minimise(rectified)
    sandwich = _sandwich(rectified, fit, solution, bias_share)
    size = rectified.population_size
    estimator = rectified.estimator_name
    # λ refers to the proxy before its correction.
    lam = proxy_scale * fit.lam[:, 0]
    common_fields = {
        "target": rectified.target,
        "estimator": estimator,
        "lam": shared_lam(lam),
        "null": 0.0,
        "population_size": round(size),
    }
    if lam.any():
        # The influences are those of residuals, which do not show the variance without the proxy.
        common_fields["reference_population"] = np.nan, size
    variances = sandwich.covariance.diagonal()
    design_variances = None
    # A separate sample changes the weighting.
    if rectified.weighting is weighting:
        design_variances = sandwich.label_variances
    estimates = CoefficientEstimates(
        statistics=np.array([solution.theta, variances, sandwich.degrees_of_freedom]),
        influences=sandwich.influences,
        design_variances=design_variances,
        names=rectified.names,
        weighting=weighting,
        common_fields=common_fields,
    )
    bias_notes: tuple[str, ...] = ()
    if bias_share > 0:
        bias_notes = (f"{bias_share:.0%} of the proxy's bias along the features was removed",)
    title = _title(loss.name, estimator, lam, len(rectified.outcome), size, rectified.target)
    return Coefficients(
        estimates=estimates,
        kind="coefficients",
        title=title,
        remarks=(*fit.notes, *bias_notes, *sandwich.notes),
        joint=sandwich.covariance,
        loss=loss.name,
        lam=lam,
    )


def shared_lam(lam: FloatArray) -> tuple[float, ...]:
    """Return `Estimate.lam` for λ (H,): the common value of all strata, or () if they differ or are 0."""
    if lam.any() and (lam == lam[0]).all():
        return (float(lam[0]),)
    return ()


@dataclass(eq=False)
class CoefficientEstimates(Sequence[Estimate]):
    """The estimates of the coefficients, computed on first access, because intervals do not need them.

    Parameters
    ----------
    statistics : float (3, d)
        Values, variances and degrees of freedom.
    influences : float (n, d)
    design_variances : float (d,), optional
        Variances of the influences under `weighting`; None if the estimate has another weighting.
    names : sequence of str (d,)
    weighting : Weighting
    common_fields : dict
        Fields of `Estimate` that are equal for all coefficients.
    """

    statistics: FloatArray
    influences: FloatArray
    design_variances: FloatArray | None
    names: Sequence[str]
    weighting: Weighting
    common_fields: JsonDict

    @cached_property
    def interval(self) -> SkewedInterval:
        """The joint record of the intervals of all coefficients."""
        return skewed_interval(self.statistics, self.influences, self.weighting, self.design_variances)

    @cached_property
    def _estimates(self) -> tuple[Estimate, ...]:
        return tuple(self._estimate(k) for k in range(len(self.names)))

    def _estimate(self, k: int) -> Estimate:
        """Return the estimate of one coefficient."""
        value, variance, degrees_of_freedom = self.statistics[:, k].tolist()
        result = Linearised(
            value=value,
            variable=self.influences[:, k],
            design_variance=variance,
            degrees_of_freedom=degrees_of_freedom,
        )
        label = {"coefficient": self.names[k]}
        interval = self.interval.of(k)
        return linearised_estimate(
            result, self.weighting, interval=interval, label=label, **self.common_fields
        )

    def __getitem__(self, index: Any) -> Any:
        return self._estimates[index]

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coefficients(Estimates):
    """The coefficients of one fit, each an `Estimate`, with their covariance.

    Parameters
    ----------
    loss : str
        Name of the loss: "linear", "logistic", …
    lam : float (H,)
        λ of each stratum.

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, int), sizes=np.array([100]))
    >>> means = mean_vector([1.0, 2.0, 3.0, 4.0], weighting=weighting)
    >>> low, high = means.confidence_interval(0.9)
    >>> means.values, bool(low[0] < 2.5 < high[0])
    (array([2.5]), True)
    """

    loss: str
    lam: FloatArray

    def __post_init__(self) -> None:
        self.lam.flags.writeable = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients."""
        return tuple(str(row.label["coefficient"]) for row in self)

    def confidence_interval(
        self, confidence_level: float = 0.95, method: str | None = None, alternative: str = "two-sided"
    ) -> tuple[FloatArray, FloatArray]:
        """Return the lower and the upper limits, each (d,). The default method is that of `with_interval`."""
        method = method or self.interval
        interval = None
        if isinstance(self.estimates, CoefficientEstimates):
            interval = self.estimates.interval.with_method(method)
        if interval is None:
            return Estimates.confidence_interval(self, confidence_level, method, alternative)
        low, high = interval.ends(confidence_level, alternative)
        return np.full(len(self), low), np.full(len(self), high)

    def to_dict(self, confidence_level: float = 0.95) -> JsonDict:
        """Return a JSON-ready dict."""
        result = Estimates.to_dict(self, confidence_level)
        for row, estimate in zip(result[self.kind], self, strict=True):
            row["degrees_of_freedom"] = estimate.degrees_of_freedom
        return result | json_dict({"loss": self.loss, "lam": self.lam, "covariance": self.covariance})


# Maximum number of values of λ in a title.
_MAX_TITLE_LAM = 6


def _title(loss: str, estimator: str, lam: FloatArray, n: int, size: float, target: str) -> str:
    """Return the title of the table of coefficients."""
    model = loss
    if loss in losses.FAMILIES:
        model = f"{loss} regression"
    lam_text = ""
    if lam.any():
        distinct_lam = lam if (lam != lam[0]).any() else lam[:1]
        texts = [f"{value:.2f}" for value in distinct_lam[:_MAX_TITLE_LAM]]
        if len(distinct_lam) > _MAX_TITLE_LAM:
            texts.append("…")
        lam_text = f" (λ = {', '.join(texts)})"
    return f"{model}, {estimator}{lam_text}, {n:,} labels of {size:,.0f} units, target: {target}"


# A standard error below this share of the influence of one label is the rounding error of a perfect fit.
_PERFECT_FIT_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sandwich:
    """The covariance of the coefficients, and what their intervals need.

    Parameters
    ----------
    covariance : float (d, d)
    label_variances : float (d,)
        The part of the variances that is due to the draw of the labelled units.
    degrees_of_freedom : float (d,)
    influences : float (n, d)
        Influences of the labels on the coefficients, with the correction for small samples.
    notes : tuple of str
    """

    covariance: FloatArray
    label_variances: FloatArray
    degrees_of_freedom: FloatArray
    influences: FloatArray
    notes: tuple[str, ...]


def _sandwich(rectified: RectifiedLoss, fit: ChosenLam, solution: Solution, bias_share: float) -> _Sandwich:
    """Return the sandwich covariance A⁻¹ V A⁻¹ at a solution; `bias_share` is from `correct_proxy_bias`."""
    theta = solution.theta
    lam = fit.lam[:, 0]
    hessian = rectified.sandwich_hessian(theta, lam, solution.hessian)
    if bias_share > 0:
        # The shift of the proxy depends on the labels with this share.
        hessian = bias_share * rectified.label_sums.hessian + (1.0 - bias_share) * hessian
    bread = rectified_loss.require_inverse(hessian)
    loss = rectified.loss
    x = rectified.features
    # Weights of the labels in the fit of θ: the share λ of the loss depends on the proxies of all units.
    weights = rectified.weights * (1.0 - (1.0 - bias_share) * lam[rectified.stratum])
    unit_leverages = loss.leverages(theta, x, bread)
    if unit_leverages is not None:
        unit_leverages = weights * unit_leverages
    residual = rectified.residual_gradients(theta, lam)
    cluster_dfs = None
    if rectified.correction == "leverage":
        residual, cluster_dfs = _small_sample_correction(
            rectified, theta, residual, weights, bread, unit_leverages, fit.leverages
        )
    influences = losses.times(residual, -bread)
    label_covariance, dfs = rectified.weighting.covariance_and_dfs(influences)
    if cluster_dfs is not None:
        dfs = cluster_dfs
    covariance = label_covariance + bread @ rectified.sampling_covariance_of_units(theta, lam) @ bread
    gradients_at_zero = loss.gradients(np.zeros(len(bread)), x, rectified.outcome)
    rounding_scale = losses.times(np.abs(gradients_at_zero), np.abs(bread)).max(axis=0, initial=0.0)
    varies = covariance.diagonal() > (_PERFECT_FIT_ROUNDING * rounding_scale) ** 2
    # Rounding errors make the product asymmetric.
    covariance = 0.5 * (covariance + covariance.T) * varies * varies[:, None]
    # Degrees of freedom are reduced by the share of the parameters among the labels.
    n_fitted = float(fit.n_parameters.sum()) + max(x.shape[1] - 1, 0)
    remaining_share = max(1.0 - n_fitted / max(len(residual) - len(rectified.shares), 1), 0.0)
    return _Sandwich(
        covariance=covariance,
        label_variances=label_covariance.diagonal(),
        degrees_of_freedom=np.maximum(remaining_share * dfs, 1.0),
        influences=influences,
        notes=leverage_notes(rectified.names, unit_leverages, influences, grows=loss.grows),
    )


def _small_sample_correction(
    rectified: RectifiedLoss,
    theta: FloatArray,
    residual: FloatArray,
    weights: FloatArray,
    bread: FloatArray,
    unit_leverages: FloatArray | None,
    lam_leverages: FloatArray | None,
) -> tuple[FloatArray, FloatArray | None]:
    """Return residual gradients (n, d) corrected for the fits of θ and λ, and degrees of freedom of clusters.

    `weights` (n,) are those of the labels in the fit of θ. The leverages (n,) are those in the fits of θ and
    λ. Without clusters, the degrees of freedom are None.
    """
    loss = rectified.loss
    x = rectified.features
    y = rectified.outcome
    cluster = rectified.weighting.unit_clusters
    cluster_dfs = None
    leverages = np.zeros(len(x))
    if lam_leverages is not None:
        leverages = lam_leverages
    if cluster is not None and np.linalg.eigvalsh(bread)[0] > 0:
        starts = np.cumsum(np.bincount(cluster))[:-1]
        units_of_clusters = np.split(np.argsort(cluster, kind="stable"), starts)
        hessians = [loss.hessian(theta, x[units], y[units], weights[units]) for units in units_of_clusters]
        residual, cluster_dfs = cluster_corrected_residuals(residual, cluster, np.stack(hessians), bread)
    elif unit_leverages is None:
        residual = residual * hc1_factor(*residual.shape)
    else:
        leverages = leverages + unit_leverages
    return left_out_residuals(residual, leverages, rectified.stratum, len(rectified.shares)), cluster_dfs


# Leverage above which the prediction of a unit depends more on its own label than on all others.
_HIGH_LEVERAGE = 0.5


# The same limit if the mean grows exponentially with the features, and the number of equally influential
# labels below which a coefficient has a note. With log-normal features (σ = 1), 2 to 6% of the intervals
# without a note do not contain the true value; with the limits .5 and 5, 3 to 23%.
_HIGH_LEVERAGE_OF_GROWTH = 0.4
_MIN_EFFECTIVE_LABELS = 10.0


def leverage_notes(
    names: Sequence[str], leverages: FloatArray | None, influences: FloatArray, *, grows: bool
) -> tuple[str, ...]:
    """Return a note if a coefficient depends mainly on few labels.

    The prediction of a unit with a leverage above one half depends more on its own label than on all others.
    If the mean grows exponentially with the features (`grows`), unlabelled units with larger features may
    dominate the coefficients of the population: intervals of the slope of a Poisson regression on a
    log-normal feature had a coverage of .43 to .78 (docs/methods/regression.md).
    """
    if leverages is None or not len(leverages):
        return ()
    highest = float(leverages.max())
    if not grows and not highest > _HIGH_LEVERAGE:
        return ()
    squared_influences = influences * influences
    squares = np.sum(squared_influences, axis=0)
    fourth_powers = np.sum(squared_influences * squared_influences, axis=0)
    effective_labels = divide(
        squares**2, fourth_powers, where=fourth_powers > 0, otherwise=float(len(influences))
    )
    k = int(np.argmin(effective_labels))
    is_decided_by_few = highest > _HIGH_LEVERAGE_OF_GROWTH or effective_labels[k] < _MIN_EFFECTIVE_LABELS
    if grows and not is_decided_by_few:
        return ()
    return (
        f"coefficient {names[k]!r} depends on about {effective_labels[k]:.1f} of {len(influences)} labels "
        f"(highest leverage {highest:.2f}); the coverage of its interval is too low if other units have more "
        "extreme values: take the logarithm of features with a long tail, or label such units",
    )


def mean_vector(outcome: object, **arguments: Any) -> Coefficients:
    """Estimate the mean of one or several outcomes together.

    Parameters
    ----------
    outcome : array-like (n,) or (n, q)
        Labels.
    **arguments
        Arguments of `m_estimate`: `weighting`, and optional ones.

    Examples
    --------
    >>> import numpy as np
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.array([0, 0, 1, 1]), sizes=np.array([10, 30]))
    >>> mean_vector([1.0, 3.0, 5.0, 5.0], weighting=weighting).values
    array([4.25])
    """
    return m_estimate(losses.MeanLoss(), outcome, **arguments)


def linear_regression(features: object, outcome: object, **arguments: Any) -> Coefficients:
    """Estimate the least-squares coefficients of the population.

    Parameters
    ----------
    features : array-like (n, p)
        Features of the labelled units. No intercept is added.
    outcome : array-like (n,)
    **arguments
        Arguments of `m_estimate`: `weighting`, and optional ones.

    Examples
    --------
    >>> import numpy as np
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, int), sizes=np.array([40]))
    >>> x, y = [[1.0, 1.0], [1.0, 2.0], [1.0, 3.0], [1.0, 4.0]], [1.0, 3.0, 5.0, 7.0]
    >>> fit = linear_regression(x, y, weighting=weighting)
    >>> fit.values.round(6)
    array([-1.,  2.])
    """
    return m_estimate(losses.LinearLoss(), outcome, features=features, **arguments)


def logistic_regression(features: object, outcome: object, **arguments: Any) -> Coefficients:
    """Estimate the logistic coefficients of the population; outcome and proxy in [0, 1].

    The parameters are those of `linear_regression`.

    Examples
    --------
    >>> import numpy as np
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, int), sizes=np.array([40]))
    >>> fit = logistic_regression(np.ones(4), [0, 1, 1, 1], weighting=weighting, names=["intercept"])
    >>> bool(abs(fit.values[0] - np.log(3)) < 1e-9)
    True
    """
    return m_estimate(losses.LogisticLoss(), outcome, features=features, **arguments)


def poisson_regression(features: object, outcome: object, **arguments: Any) -> Coefficients:
    """Estimate the log-linear coefficients of the population; outcome and proxy are counts.

    The parameters are those of `linear_regression`.

    Examples
    --------
    >>> import numpy as np
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, int), sizes=np.array([40]))
    >>> fit = poisson_regression(np.ones(4), [0, 1, 4, 3], weighting=weighting, names=["intercept"])
    >>> bool(abs(fit.values[0] - np.log(2)) < 1e-9)
    True
    """
    return m_estimate(losses.PoissonLoss(), outcome, features=features, **arguments)


def fit_to_proxies(loss: losses.Loss, unlabelled: losses.Unlabelled) -> Solution:
    """Return the minimiser over all units with the proxies in the place of the outcomes, and its Hessian.

    Raises
    ------
    InputError
        If there is no minimum: for collinear features, and for proxies that the features separate.
    """
    shares = unlabelled.weight_sums / unlabelled.weight_sums.sum()
    block = next(unlabelled.blocks())
    start = np.zeros(loss.n_parameters(block.features, block.proxy))
    evaluate = partial(unlabelled.summed, loss, factors=shares)
    fit = rectified_loss.newton(evaluate, start, quadratic=loss.quadratic)
    gram = fit.hessian
    if block.features.shape[1]:
        # The Hessian of least squares is Σ w x xᵀ.
        gram = unlabelled.summed(losses.LinearLoss(), start, shares).hessian
    try:
        rectified_loss.check_solution(
            fit,
            loss,
            typical_curvature=loss.typical_curvature(block.proxy),
            whitening_matrix=rectified_loss.whitening(gram),
            is_rectified=False,
        )
    except (InputError, np.linalg.LinAlgError):
        action = "Check proxies and features."
        raise InputError("the fit to the proxies has no minimum", action=action) from None
    return fit
