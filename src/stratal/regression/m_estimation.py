"""The flow of an M-estimation: check, find λ, minimise the rectified loss, take the sandwich.

Σ_h W_h [ λ_h mean_{U_h} ℓ(x, f) + mean_{S_h} (ℓ(x, y) − λ_h ℓ(x, f)) ]   (Fisch et al. 2024, eq. 8–9)

The design enters through a `Weighting` alone: its weights form the means over S, its covariance the variance.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray
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

# Least share of its variance that a unit or a cluster is taken to show: a residual over less is noise.
_LEAST_LEFT = 0.25


def left_out_residuals(
    residuals: FloatArray, leverages: FloatArray, stratum: IntArray, n_strata: int
) -> FloatArray:
    """Return the residual gradients as if each unit had been left out of the fits: over 1 − leverage.

    The leverage of a labelled unit is what it adds to the rectified Hessian, w (1 − λ) tr(A⁻¹∇²ℓ), plus its
    pull on the fitted λ. At λ = 0 this is HC3 (MacKinnon & White 1985); as λ goes to 1 the Hessian comes
    from the population and nothing of the first part is left. Deviations from the stratum's mean are
    stretched, since those alone vary.

    Parameters
    ----------
    residuals : float (n, d)
    leverages : float (n,)
        Cut at 0.75.
    stratum : int (n,)
    n_strata : int
    """
    stretch = 1.0 / _kept(leverages) - 1.0
    return np.asarray(residuals + centre_within_strata(residuals, stratum, n_strata) * stretch[:, None])


def _kept(leverages: FloatArray) -> FloatArray:
    """Return 1 − leverage (n,), of a leverage from 0 to .75."""
    return np.asarray(1.0 - np.minimum(np.maximum(leverages, 0.0), 1.0 - _LEAST_LEFT))


def degrees_factor(n: int, used: float) -> float:
    """Return √((n − 1)/(n − used)): residuals times this give HC1 with a design's divisor n − 1."""
    return float(np.sqrt(max((n - 1) / max(n - used, 1.0), 1.0)))


def few_clusters(
    residual: FloatArray, cluster: IntArray, parts: FloatArray, bread: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return residual gradients (n, d) as of fits without their cluster ("CR2"), and the degrees of freedom.

    A cluster pulls the fit towards itself and shows (1 − H_c A⁻¹) of its gradient's variance, with H_c its
    part of the Hessian A (Bell & McCaffrey 2002). Units' own leverages do not tell: twenty of .02 that stand
    together are .4. Gradients are multiplied by S_c = (1 − H_c A⁻¹)^(−1/2); the factor m/(m − 1) of the
    covariance between m clusters, which does the same for clusters that are alike, is taken off. The degrees
    of freedom are (tr Ω)² / tr Ω², Ω the covariance of the clusters' stretched gradients where units vary
    alike and independently.

    Parameters
    ----------
    residual : float (n, d)
    cluster : int (n,)
        Of each labelled unit, 0 … m − 1.
    parts : float (m, d, d)
        H_c, of the labelled units' loss as far as it is not taken from the proxy.
    bread : float (d, d)
        A⁻¹, positive definite.
    """
    root = np.linalg.cholesky(bread)
    values, vectors = np.linalg.eigh(root.T @ parts @ root)
    powers = vectors / np.sqrt(np.maximum(1.0 - values, _LEAST_LEFT))[:, None, :]
    stretches = np.linalg.inv(root).T @ powers @ vectors.transpose(0, 2, 1) @ root.T
    shrink = np.sqrt(max(1.0 - 1.0 / len(parts), 0.0))
    pulls = np.einsum("cij,jk->cik", stretches.transpose(0, 2, 1), bread)  # S_c' b_k
    halves = np.einsum("cij,cjk->kci", parts, pulls)  # H_c S_c' b_k
    diagonal = np.einsum("cik,kci->kc", pulls, halves)
    shared = np.einsum("kci,ij,kcj->kc", halves, bread, halves)
    joint = np.einsum("kci,kcj->kij", halves, halves) @ bread
    squares = np.sum(diagonal**2 - 2.0 * diagonal * shared, axis=1) + np.einsum("kij,kji->k", joint, joint)
    trace = np.sum(diagonal - shared, axis=1)
    freedom = np.where(squares > 0, trace**2 / np.where(squares > 0, squares, 1.0), 1.0)
    return shrink * np.einsum("nij,nj->ni", stretches[cluster], residual), freedom


# A variance below this share of the mean square is that of a constant, in floating point.
_ROUNDING = 1e-24


# Last steps, whose squares are the errors: of the start and of the first round, in which λ needs no exact θ,
# and of the second.
_START_TOLERANCE = 1e-4
_FIRST_TOLERANCE = 0.05
_TOLERANCE = 1e-7


def minimise_with_lam(rectified: RectifiedLoss) -> tuple[ChosenLam, Solution]:
    """Return λ (H, 1), given or fitted, with the minimum of the rectified loss at it.

    A fitted λ depends on θ and the other way round: two rounds are made from the classical estimate (or,
    where the labels alone have none, from the fit to the proxies). One would do in the limit.
    """
    low, high = rectified.loss.convex_range
    if rectified.lam is not None:
        lam = rectified.lam
        convex = bool(np.all((lam >= low) & (lam <= high)))
        outside = (
            f"λ is outside {low:g} to {high:g}: the loss may not be convex, and this may not be its minimum"
        )
        if np.any(lam):
            theta = _start(rectified)
        else:
            theta = np.zeros(rectified.n_parameters)
        chosen = ChosenLam(lam=lam[:, None], spent=np.zeros(len(lam)), notes=() if convex else (outside,))
        return chosen, rectified.require_solution(lam, theta)
    theta = _start(rectified)
    for tolerance in (_FIRST_TOLERANCE, _TOLERANCE):
        fit = lam_at(rectified, theta)
        lam = np.minimum(np.maximum(fit.lam, low), high)
        solution = rectified.require_solution(lam[:, 0], theta, tolerance)
        theta = solution.theta
    clipped = "λ was clipped to the range in which the rectified loss is convex"
    return replace(fit, lam=lam, notes=(clipped,)) if (lam != fit.lam).any() else fit, solution


def lam_at(rectified: RectifiedLoss, theta: FloatArray) -> ChosenLam:
    """Return λ (H, 1) as the gradients at θ give it, before any clipping."""
    units = rectified.unlabelled
    weighting = rectified.weighting
    stratum = rectified.stratum
    assert units is not None
    n_strata = len(rectified.counts)
    counts = rectified.counts
    minimised = rectified_loss.contrasts(rectified.minimise, rectified.n_parameters, rectified.names)
    directions = rectified.labelled_inverse(theta) @ minimised
    u, v = (
        losses.times(rectified.loss.gradients(theta, rectified.features, values), directions)
        for values in (rectified.outcome, rectified.proxy)
    )
    stratified = weighting.random_within_strata
    if rectified.estimator == "stratppi":
        per_stratum = rectified.shrinkage
    else:
        per_stratum = None
    if stratified or units.separate:
        direction_products = directions @ directions.T
        population_variances = (rectified.proxy_covariances(theta) * direction_products).sum(axis=(1, 2))
    if not stratified:
        fit = fit_general(u, v[..., None], weighting, per_stratum, n_strata=n_strata, sized=False)
        if not units.separate:
            return fit
        labelled_variance = float(np.trace(weighting.covariance(v)))
        imputed = float(np.sum(rectified.shares**2 * population_variances / units.counts))
        return replace(fit, lam=fit.lam * labelled_variance / max(labelled_variance + imputed, _ROUNDING))

    size = stratum_sums(np.einsum("nk,nk->n", v, v), stratum, n_strata)
    moments = stratum_moments(u, v[..., None], stratum, n_strata)
    free = np.maximum(counts - 1.0, 1.0)
    proxy_variances = moments.proxy_covariances[:, 0, 0]
    varies = proxy_variances * free > _ROUNDING * size
    population_variances = np.where(population_variances > _ROUNDING * size / free, population_variances, 0.0)
    copies = np.ones(n_strata)
    if units.separate:  # λ²V_h is drawn there too
        factors = weighting.variance_factors
        copies += rectified.shares**2 / units.counts / np.where(factors > 0, factors, 1.0)
    evidence = LambdaEvidence(
        moments=replace(
            moments,
            cross_covariances=varies[:, None] * moments.cross_covariances,
            proxy_covariances=(copies * varies * proxy_variances)[:, None, None],
        ),
        published=rectified.shrinkage == 0,
    )
    fit = fit_stratified(
        evidence, (copies * population_variances)[:, None, None], weighting.variance_factors, per_stratum
    )
    if evidence.published:
        return replace(fit, spent=0.0 * fit.spent)
    squares = np.sum(centre_within_strata(v, stratum, n_strata) ** 2, axis=1)
    shared = proxy_variances * free
    pulls = fit.spent / np.where(shared > 0, shared, 1.0)
    return replace(fit, leverages=pulls[stratum] * squares)


def _start(rectified: RectifiedLoss) -> FloatArray:
    """Return the classical estimate, or the fit to the proxies where the labels alone have none."""
    assert rectified.unlabelled is not None
    nothing = np.zeros(len(rectified.shares))
    theta = np.zeros(rectified.n_parameters)
    try:
        if rectified.loss.quadratic:
            return np.asarray(-rectified.labelled_inverse(theta) @ rectified.labelled.gradient)
        return rectified.require_solution(nothing, theta, _START_TOLERANCE).theta
    except InputError:
        # Few labels may separate the classes completely; the proxies of all units seldom do.
        return fit_to_proxies(rectified.loss, rectified.unlabelled).theta


# How much evidence of a bias, in units of the coefficients that it may have, is taken for chance.
_EVIDENCE = 2.0


# A slope of the outcome's residuals on the proxy's above which its scale is another.
_STRETCH = 1.2


# A proxy whose residuals are below this share of it is a line of the features: what is left is rounding.
_MOVED_ROUNDING = 1e-9


def moved(rectified: RectifiedLoss) -> tuple[RectifiedLoss, float, float]:
    """Return the loss with its proxy f stretched and moved along the features: stretch · f + x'shift.

    With it, the stretch, and κ, the share of the proxy's bias that the labels show. A proxy stays as it is
    where λ is not fitted, or the loss is not least squares.
    """
    x = rectified.features
    y = rectified.outcome
    weights = rectified.weights
    proxy = rectified.proxy
    units = rectified.unlabelled
    is_fitted = rectified.form == "auto" and rectified.lam is None
    if units is None or not (is_fitted and rectified.loss.quadratic and x.shape[1]):
        return rectified, 1.0, 0.0
    bread = rectified.labelled_inverse(np.zeros(x.shape[1]))
    at_zero, hessian = rectified.population_sums
    label_coefficients = -bread @ rectified.labelled.gradient
    by_proxy = bread @ (rectified.power.gradient - at_zero)
    # The proxy's coefficients over the population.
    proxy_coefficients = -rectified_loss.require_inverse(hessian) @ at_zero
    stretch = _stretch(rectified, bread, y - x @ label_coefficients, proxy - x @ proxy_coefficients)
    bias = label_coefficients - stretch * by_proxy
    leverages = weights * np.einsum("ni,ni->n", losses.times(x, bread), x)
    residual = (y - stretch * proxy - x @ bias) / _kept(leverages)
    spread = bread @ rectified.weighting.covariance(x * residual[:, None]) @ bread
    if np.isfinite(spread).all():
        evidence = float(bias @ np.linalg.pinv(spread, hermitian=True) @ bias)
    else:
        evidence = 0.0
    limit = _EVIDENCE * x.shape[1]
    if evidence > limit:
        bias_share = 1.0 - limit / evidence
    else:
        bias_share = 0.0
    if stretch == 1.0 and bias_share == 0.0:
        return rectified, 1.0, 0.0
    adjusted = copy.copy(rectified)
    shift = bias_share * bias
    adjusted.proxy, adjusted.unlabelled = stretch * proxy + x @ shift, units.moved(stretch, shift)
    adjusted.population_sums = _moved_sums(rectified.population_sums, stretch, shift)
    adjusted.power = _moved_sums(rectified.power, stretch, shift)
    return adjusted, stretch, bias_share


def _moved_sums(sums: losses.LossSums, stretch: float, shift: FloatArray) -> losses.LossSums:
    """Return the sums of a quadratic loss for the proxy `stretch * proxy + x @ shift`."""
    at_zero, hessian = sums
    return losses.LossSums(stretch * at_zero - hessian @ shift, hessian)


def _stretch(
    rectified: RectifiedLoss, bread: FloatArray, outcome_residual: FloatArray, proxy_residual: FloatArray
) -> float:
    """Return what the proxy is multiplied by: the slope of the residuals' influences, where it is above 1."""
    if np.abs(proxy_residual).max() <= _MOVED_ROUNDING * np.abs(rectified.proxy).max():
        return 1.0  # the proxy is a line of the features: what is left of it is rounding
    x = losses.times(rectified.features, bread)
    joint = rectified.weighting.covariance(
        np.concatenate([x * outcome_residual[:, None], x * proxy_residual[:, None]], axis=1)
    )
    d = x.shape[1]
    spread = float(joint[d:, d:].trace())
    if spread > 0:
        slope = float(joint[:d, d:].trace()) / spread
    else:
        slope = 1.0
    if np.isfinite(slope) and slope > _STRETCH:
        return slope
    return 1.0


# Leverage beyond which a unit pulls its own prediction more than all others together.
_DECIDES = 0.5


# The same leverage if the mean grows exponentially, where large features decide sooner.
_DECIDES_GROWTH = 0.4


# Where the mean grows exponentially: the leverage, and how many equal labels a slope's influences are worth.
# With log-normal features (σ = 1) 2 to 6% of intervals miss without a note; with .5 and 5, 3 to 23%.
_FEWEST = 10.0


def m_estimate(
    loss: losses.Loss, outcome: object, *, weighting: Weighting, **options: object
) -> Coefficients:
    """Estimate the minimiser of a convex loss over the population, from labels and a proxy on all units.

    Parameters
    ----------
    loss : Loss
        `MeanLoss`, `LinearLoss`, `LogisticLoss`, `PoissonLoss`, or your own.
    outcome : array-like (n,) or (n, q)
        Labels.
    weighting : Weighting
        The design of the labelled units.
    features : array-like (n, p), optional
        Of the labelled units, a column of ones among them for an intercept.
    proxy : array-like like `outcome`, optional
        Predictions of the outcome for the labelled units.
    unlabelled : Unlabelled, optional
        Features and proxy of all units of the population, or of a separate sample.
    names : sequence of str, optional
        Of the coefficients.
    estimator : str
        "ppi++": one fitted λ. "stratppi": one per stratum, shrunk to the common one. "classical": λ = 0, no
        proxy used.
    lam : float or (H,), optional
        A given λ instead of a fitted one.
    target : str
        "population": the minimiser over these N units, with finite population correction. "superpopulation":
        over the distribution that they came from.
    stratum_weights_known : bool
        For the superpopulation: whether the W_h are those of the distribution itself (Fisch et al. take them
        so).
    minimise : "trace", or a coefficient's name or index
        Whose variance λ minimises. The trace depends on the features' units, as in the papers.
    shrinkage : float
        How far few labels shrink the λ_h of "stratppi" to the common λ (`stratal.estimation.lam`). With 0 the
        fitted λ is the papers': its denominator the population's, not shrunk, used as if it were known.
    hessian : str
        "rectified" (the default: exact for linear losses), or "pooled" over labelled and unlabelled units, as
        `ppi-python`.
    form : str
        "loss" minimises the rectified loss. "auto" does too, but for least squares with a fitted λ it first
        moves the proxy by its bias along the features, as far as the labels tell of one. "fits" (linear
        regression alone) adds the fit of λf on the population to the fit of y − λf on the labels, as
        `ppi-python` does.
    correction : str
        Small-sample correction of the variance: "leverage" (HC3 at λ = 0), "none".

    Returns
    -------
    Coefficients
        `Estimates` of each coefficient; level and kind of intervals are chosen afterwards.

    Raises
    ------
    InputError
        For collinear features, separated labels, an unbounded rectified loss, too few labels, unusable
        numbers.

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
    rectified, stretch, bias_share = moved(rectified)
    fit, solution = minimise_with_lam(rectified)
    theta = solution.theta
    lam = fit.lam[:, 0]
    hessian = rectified.bread(theta, lam, solution.hessian)
    if bias_share > 0:  # so far it is the labels' own fit that was taken from the proxy
        hessian = bias_share * rectified.labelled.hessian + (1.0 - bias_share) * hessian
    covariance, labelled_variances, dfs, influences, warnings = _sandwich(
        rectified, theta, fit, hessian, bias_share
    )
    size = rectified.population_size
    estimator = rectified.estimator_name
    lam = stretch * lam
    common_fields = {"target": rectified.target, "estimator": estimator, "lam": common_lam(lam), "null": 0.0}
    if rectified.weighting is weighting:
        labelled = labelled_variances
    else:
        labelled = None
    statistics = np.array([theta, covariance.diagonal(), dfs])
    common_fields["population_size"] = round(size)
    rows = FittedRows(statistics, influences, labelled, rectified.names, weighting, common_fields)
    bias = (
        (f"the proxy was moved by {bias_share:.0%} of its own bias along the features",)
        if bias_share > 0
        else ()
    )
    return Coefficients(
        estimates=rows,
        kind="coefficients",
        title=_title(loss.name, estimator, lam, len(rectified.outcome), size, rectified.target),
        remarks=(*fit.notes, *bias, *warnings),
        joint=covariance,
        loss=loss.name,
        lam=lam,
    )


def common_lam(lam: FloatArray) -> tuple[float, ...]:
    """Return the λ that all strata (H,) share, as `Estimate.lam` has it; none where it differs or is 0."""
    if lam.any() and (lam == lam[0]).all():
        return (float(lam[0]),)
    return ()


@dataclass(eq=False)
class FittedRows(Sequence[Estimate]):
    """The coefficients' estimates, made when one is looked at: an interval does not need them.

    Parameters
    ----------
    moments : float (3, d)
        Values, variances and degrees of freedom.
    influences : float (n, d)
    design_variances : float (d,), optional
        The variances that the labels show, by `weighting`, where they are known.
    names : sequence of str (d,)
    weighting : Weighting
    shown : dict
        Further fields of the `Estimate`.
    """

    moments: FloatArray
    influences: FloatArray
    design_variances: FloatArray | None
    names: Sequence[str]
    weighting: Weighting
    shown: JsonDict

    @cached_property
    def limits(self) -> SkewedInterval:
        """The limits of all."""
        return skewed_interval(self.moments, self.influences, self.weighting, self.design_variances)

    @cached_property
    def _made(self) -> tuple[Estimate, ...]:
        return tuple(
            linearised_estimate(
                Linearised(value=value, variable=u, design_variance=variance, degrees_of_freedom=freedom),
                self.weighting,
                interval=self.limits.of(k),
                label={"coefficient": self.names[k]},
                **self.shown,
            )
            for k, ((value, variance, freedom), u) in enumerate(
                zip(self.moments.T.tolist(), self.influences.T, strict=True)
            )
        )

    def __getitem__(self, place: Any) -> Any:
        return self._made[place]

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coefficients(Estimates):
    """The coefficients of one fit, each an `Estimate`, their covariance, and how they were found.

    Parameters
    ----------
    loss : str
        What was minimised: "linear", "logistic", …
    lam : float (H,)
        λ per stratum.

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, int), sizes=np.array([100]))
    >>> found = mean_vector([1.0, 2.0, 3.0, 4.0], weighting=weighting)
    >>> low, high = found.confidence_interval(0.9)
    >>> found.values, bool(low[0] < 2.5 < high[0])
    (array([2.5]), True)
    """

    loss: str
    lam: FloatArray

    def __post_init__(self) -> None:
        self.lam.flags.writeable = False

    @property
    def names(self) -> tuple[str, ...]:
        """The coefficients' names."""
        return tuple(str(row.label["coefficient"]) for row in self)

    def confidence_interval(
        self, confidence_level: float = 0.95, method: str | None = None, alternative: str = "two-sided"
    ) -> tuple[FloatArray, FloatArray]:
        """Return the lower and the upper limits, (m,) each; by default with the method of `with_interval`."""
        method = method or self.interval
        if isinstance(self.estimates, FittedRows):
            interval = self.estimates.limits.by(method)
        else:
            interval = None
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


def _title(loss: str, estimator: str, lam: FloatArray, n: int, size: float, target: str) -> str:
    if loss in ("linear", "logistic", "poisson"):
        kind = f"{loss} regression"
    else:
        kind = loss
    differ = bool((lam != lam[0]).any())
    shown = [f"{value:.2f}" for value in (lam[:6] if differ else lam[:1])]
    ellipsis = ", …" if differ and len(lam) > 6 else ""
    if lam.any():
        power = f" (λ = {', '.join(shown)}{ellipsis})"
    else:
        power = ""
    return f"{kind}, {estimator}{power}, {n:,} labels of {size:,.0f} units, target: {target}"


# A standard error below this share of what one label can add is rounding: the fit leaves no residual.
_PERFECT = 1e-12


def _sandwich(
    rectified: RectifiedLoss, theta: FloatArray, fit: ChosenLam, hessian: FloatArray, moved: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, tuple[str, ...]]:
    """Return the coefficients' covariance, their variances by the labels, `dfs`, influences and notes."""
    lam = fit.lam[:, 0]
    bread = rectified_loss.require_inverse(hessian)
    residual = rectified.residual_gradients(theta, lam)
    loss = rectified.loss
    x = rectified.features
    y = rectified.outcome
    weights = rectified.weights * (1.0 - (1.0 - moved) * lam[rectified.stratum])  # not taken from the proxy
    pulls = loss.leverages(theta, x, bread)
    few = None
    pulls = None if pulls is None else weights * pulls
    groups = rectified.weighting.groups
    corrected = residual
    if fit.leverages is None:
        leverages = np.zeros(len(x))
    else:
        leverages = fit.leverages
    if rectified.correction == "leverage":  # for what was fitted on the same labels: θ and λ
        if groups is not None and np.linalg.eigvalsh(bread)[0] > 0:
            members = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
            hessians = [loss.hessian(theta, x[rows], y[rows], weights[rows]) for rows in members]
            corrected, few = few_clusters(residual, groups, np.stack(hessians), bread)
        elif pulls is None:
            corrected = residual * degrees_factor(*residual.shape)
        else:
            leverages = leverages + pulls
        corrected = left_out_residuals(corrected, leverages, rectified.stratum, len(rectified.shares))
    influences = losses.times(corrected, -bread)
    label_covariance, freedom = rectified.weighting.covariance_and_dfs(influences)
    spread = label_covariance + bread @ rectified.drawn_units(theta, lam) @ bread
    used = float(fit.spent.sum()) + max(x.shape[1] - 1, 0)
    remaining_share = max(1.0 - used / max(len(residual) - len(rectified.shares), 1), 0.0)
    notes = leverage_notes(rectified.names, pulls, influences, grows=loss.grows)
    at_zero = loss.gradients(np.zeros(len(bread)), x, y)
    rounding_scale = losses.times(np.abs(at_zero), np.abs(bread)).max(axis=0, initial=0.0)
    varies = spread.diagonal() > (_PERFECT * rounding_scale) ** 2  # else it is the rounding of a perfect fit
    spread = 0.5 * (spread + spread.T) * varies * varies[:, None]
    dfs = np.maximum(remaining_share * (freedom if few is None else few), 1.0)
    return spread, label_covariance.diagonal(), dfs, influences, notes


def leverage_notes(
    names: Sequence[str], pulls: FloatArray | None, influences: FloatArray, *, grows: bool
) -> tuple[str, ...]:
    """Return what to say where few labelled units decide the fit, and on how many a coefficient rests.

    A unit with a leverage above one half predicts itself more than all others do together. Where the mean
    grows exponentially (`grows`), units farther out than the labelled ones would decide: the slope of a
    Poisson regression on a log-normal feature covered .43 to .78 (docs/methods/regression.md).
    """
    if pulls is None or not len(pulls):
        return ()
    highest = float(pulls.max())
    if not grows and not highest > _DECIDES:
        return ()
    each = influences * influences
    squares = np.sum(each, axis=0)
    fourth = np.sum(each * each, axis=0)
    effective_labels = np.where(fourth > 0, squares**2 / np.where(fourth > 0, fourth, 1.0), len(influences))
    fewest = int(np.argmin(effective_labels))
    if grows and not (highest > _DECIDES_GROWTH or effective_labels[fewest] < _FEWEST):
        return ()
    return (
        f"coefficient {names[fewest]!r} depends on about {effective_labels[fewest]:.1f} of {len(influences)} "
        f"labels (highest leverage {highest:.2f}); the coverage of its interval is too low if other "
        "units have more extreme values: take the logarithm of a feature with a long tail, or label such "
        "units",
    )


def mean_vector(outcome: object, **arguments: Any) -> Coefficients:
    """Estimate the mean of one or several outcomes together.

    Parameters
    ----------
    outcome : array-like (n,) or (n, q)
        Labels.
    **arguments
        Options of `m_estimate`, among them `weighting`.

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
        Of the labelled units. No intercept is added.
    outcome : array-like (n,)
    **arguments
        Options of `m_estimate`, among them `weighting`.

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
    """Return the minimiser over all units with the proxies in the place of the outcomes, and its hessian.

    Raises
    ------
    InputError
        Where there is no minimum: collinear features, proxies that features separate.
    """
    shares = unlabelled.totals / unlabelled.totals.sum()
    block = next(unlabelled.blocks())
    start = np.zeros(loss.n_parameters(block.features, block.proxy))

    def evaluate(theta: FloatArray, curvature: bool) -> losses.LossSums:
        return unlabelled.summed(loss, theta, shares, curvature=curvature)

    fit = rectified_loss.newton(evaluate, start, quadratic=loss.quadratic)
    gram = fit.hessian
    if block.features.shape[1]:
        gram = unlabelled.summed(losses.LinearLoss(), start, shares).hessian
    try:
        typical = loss.typical_curvature(block.proxy)
        root = rectified_loss.whitening(gram)
        rectified_loss.refuse_failure(fit, loss, typical, root, rectified=False)
    except (InputError, np.linalg.LinAlgError):
        action = "Check proxies and features."
        raise InputError("the fit to the proxies has no minimum", action=action) from None
    return fit
