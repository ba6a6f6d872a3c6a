"""Fitting λ, how far a proxy is trusted: from stratum moments, for one sample or for thousands at once.

A mean and a regression have one rule (docs/decisions/0008-lambda.md): what z and ẑ are to a mean,
the influences of outcome and proxy on the coefficients that matter are to a regression, their moments summed.

Every array may carry leading replicate axes `(…,)`; H is the number of strata, k the number of proxies. The
numerator of λ is the labelled units' covariance of outcome and proxy. The denominator is the proxy's
covariance among the same units, blended with two labels' worth of the one over all N_h units: their noise
cancels (docs/decisions/0008-lambda.md). In one stratum both are filled up first with
what the labelled units lack of the proxy's spread. Labels that nearly all agree say little about λ, so it is
shrunk towards that of a calibrated proxy. The papers' own λ has the population's covariance alone.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, Record
from stratal.designs import Weighting
from stratal.designs.stratum_moments import (
    LabelledSpread,
    StratumMoments,
    explained_variance,
    lam_of_classes,
    stratum_moments,
    unseen,
)
from stratal.designs.weighting import SAME
from stratal.errors import InputError
from stratal.population.summary import StratumSummary

# Labels beyond two at which a stratum keeps half of what `agreement` leaves its own λ_h.
SHRINKAGE = 3.0

# Strata with fewer labels take the pooled λ: their own would be noise (measured).
FEWEST_LABELS = 6

# Weight, in labels, of all strata's residual variance against a stratum's own.
_STEADY_LABELS = 10.0

# A share of a proxy's mean square below this is rounding: 2⁻⁵² squared, times what a regression adds.
EXPLAINED = 1e-20

_RELATIVE_RANK = 1e-10
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProxyMoments(Record):
    """The proxies of the labelled units, and what is known of them over the whole population.

    Parameters
    ----------
    values : float (n, k)
        Proxies of the labelled units.
    stratum : int (n,)
        Stratum of the labelled units, 0 … H − 1.
    sizes : int (H,)
        N_h.
    means : float (H, k)
        Over all N_h units.
    covariances : float (H, k, k)
        Over all N_h units, divisor N_h.
    """

    values: FloatArray
    stratum: IntArray
    sizes: IntArray
    means: FloatArray
    covariances: FloatArray

    @classmethod
    def of(cls, values: FloatArray, summary: StratumSummary, stratum: IntArray) -> ProxyMoments:
        """Return the proxies (n, k) of labelled units in strata (n,), and what is known of the population."""
        return cls(
            values=values,
            stratum=stratum,
            sizes=summary.sizes,
            means=summary.proxy_means,
            covariances=summary.proxy_covariances,
        )

    @property
    def shares(self) -> FloatArray:
        """W_h (H,)."""
        return np.asarray(self.sizes / np.sum(self.sizes))

    @property
    def unbiased_covariances(self) -> FloatArray:
        """S_h² of the proxies (H, k, k), divisor N_h − 1; rounding dust of a constant proxy becomes 0."""
        factor = np.where(self.sizes > 1, self.sizes / np.maximum(self.sizes - 1, 1), 0.0)
        dust = np.sqrt(np.abs(np.einsum("hii->hi", self.covariances))) <= 1e-12 * np.abs(self.means)
        covariances = self.covariances * factor[:, None, None]
        return np.asarray(np.where(dust[:, :, None] | dust[:, None, :], 0.0, covariances))


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
    cross_covariances: FloatArray,
    labelled: LabelledSpread,
    counts: AnyArray,
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
    cross_covariances, labelled, counts
        See `fit_stratified`.
    """
    free = np.where(counts >= FEWEST_LABELS, counts - 1.0, 0.0)
    explained_by_pooled, explained = (
        np.einsum("...hk,...hkl,...hl->...h", part, labelled.proxies, part)
        for part in (np.broadcast_to(pooled, lam_deviation.shape), lam_deviation)
    )
    residual_variance = np.maximum(
        labelled.outcome - 2.0 * np.sum(pooled * cross_covariances, axis=-1) + explained_by_pooled, 0.0
    )
    all_free = np.maximum(np.sum(free, axis=-1, keepdims=True), 1.0)
    typical = np.sum(free * residual_variance, axis=-1, keepdims=True) / all_free
    smoothed_variance = (free * residual_variance + _STEADY_LABELS * typical) / (free + _STEADY_LABELS)
    rounding = explained <= EXPLAINED * explained_by_pooled
    q = np.sum(np.where(rounding, 0.0, free * explained / np.maximum(smoothed_variance, _TINY)), axis=-1)
    used = (free > 0) & (np.einsum("...hkk->...h", labelled.proxies) > 0)
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
    cross_covariances: FloatArray,
    proxy_covariances: FloatArray,
    factors: FloatArray,
    counts: AnyArray,
    shrinkage: float | None = None,
    labelled: LabelledSpread | None = None,
) -> ChosenLam:
    """Return one λ for all strata, or one for each.

    Parameters
    ----------
    cross_covariances : float (…, H, k)
        Of outcome and proxies among the labelled units.
    proxy_covariances : float (H, k, k)
        Over all N_h units.
    factors : float (…, H)
        W_h² (1 − f_h) / n_h.
    counts : (…, H)
        n_h; strata with fewer than two labels fit nothing.
    shrinkage : float, optional
        For λ per stratum: how far few labels shrink it towards the pooled one, next to `agreement`. 0 is
        StratPPI as published (Fisch et al. 2024, eq. 17).
    labelled : LabelledSpread, optional
        For the denominator's labelled part, and for what few labels cannot say; without it λ is the papers'.
    """
    k = cross_covariances.shape[-1]
    factors = factors * (counts > 1)
    population_covariances = proxy_covariances
    free = np.maximum(counts - 1.0, 0.0)
    labelled_covariances = cross_covariances
    if labelled is not None:
        cross_covariances = cross_covariances + labelled.missed
        population_covariances = labelled.blended(proxy_covariances, free.sum(axis=-1, keepdims=True))
    pooled = pooled_lam(cross_covariances, population_covariances, factors)[..., None, :]
    weight = factors * proxy_covariances.trace(axis1=-2, axis2=-1)
    total = weight.sum(axis=-1, keepdims=True)
    spent = k * weight / np.where(total > 0, total, 1.0)
    of_all: FloatArray = pooled * np.ones_like(cross_covariances)
    lam = of_all
    if shrinkage is not None:
        if labelled is None:
            single = proxy_covariances
        else:
            single = labelled.blended(proxy_covariances, free)
        away = solve_semidefinite(single, cross_covariances) - pooled
        gain = own_share(counts, shrinkage)
        if shrinkage > 0 and labelled is not None:
            gain = gain * (counts >= FEWEST_LABELS)
            gain = gain * agreement(away, pooled, cross_covariances, labelled, counts)
        constant = np.einsum("...ii->...i", single) <= 0
        lam = np.asarray(np.where(constant, 0.0, pooled + gain[..., None] * away))
        # What chose how much of its own λ a stratum keeps were its labels: it is charged for the whole.
        spent = np.where((gain > 0) & (weight > 0), float(k), spent)
    if labelled is not None and k > 0:
        # The strata's deviations from the pooled λ have a test of their own (`agreement`).
        unsupported = 1.0 - labelled.evidence_of_gain(of_all, labelled_covariances, factors)[..., None, None]
        of_all = labelled.shrunk(of_all, proxy_covariances, factors)
        if shrinkage is None:
            lam = of_all
        else:
            lam = labelled.shrunk(lam, proxy_covariances, factors)
        lam = lam - unsupported * of_all
        outcome_variance = np.sum(factors * labelled.outcome, axis=-1)
        used = explained_variance(lam, proxy_covariances, factors) > EXPLAINED * outcome_variance
        lam = np.where(used[..., None, None], lam, 0.0)
        # A proxy that is not used costs no label.
        spent = spent * used[..., None]
    return ChosenLam(lam=lam, spent=spent, fitted=True)


def inflation(counts: AnyArray, spent: FloatArray) -> FloatArray:
    """Return what each stratum's s² (…, H) is multiplied by, for the labels that fitting λ used up."""
    free = np.maximum(counts - 1.0, 0.0)
    remaining = np.maximum(free - spent, free / 3.0)
    return np.asarray(
        np.where((remaining > 0) & (spent > 0), free / np.where(remaining > 0, remaining, 1.0), 1.0)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LambdaPrior:
    """What is known before any label of how far a fitted λ can be trusted.

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

    def labelled(
        self, moments: StratumMoments, means: FloatArray, covariances: FloatArray
    ) -> LabelledSpread | None:
        """Return what the labelled units' moments say of their spread; None for the papers' λ.

        `means` (H, k) and `covariances` (H, k, k) are the proxies' over all N_h units.
        """
        if self.published:
            return None
        spread = LabelledSpread.of(
            moments.proxy_covariances,
            moments.outcome_variances,
            moments.outcome_means,
            moments.counts,
            self.bounds,
        )
        if not self.scaled:
            return replace(spread, information=None)
        if self.bounds is None or means.shape != (1, 1):
            return spread
        low = self.bounds[0]
        width = self.bounds[1] - self.bounds[0]
        population_variance = float(covariances[0, 0, 0])
        labels: dict[str, Any] = {
            "counts": moments.counts[..., 0],
            "means": (moments.outcome_means[..., 0] - low) / width,
            "off": moments.proxy_means[..., 0, 0] / width,
            "cross": moments.cross_covariances[..., 0, 0] / width**2,
            "proxy_variance": population_variance / width**2,
        }
        missed, expected_mean = unseen(**labels, spread=moments.proxy_covariances[..., 0, 0, 0] / width**2)
        return replace(
            spread,
            proxies=np.maximum(spread.proxies, population_variance),
            least=np.maximum(spread.least, expected_mean * (1.0 - expected_mean) * width**2),
            of_classes=lam_of_classes(**labels, proxy_mean=(float(means[0, 0]) - low) / width),
            missed=missed[..., None, None] * width**2,
        )


def fit_lam(
    z: FloatArray,
    proxy: ProxyMoments,
    weighting: Weighting,
    shrinkage: float | None = None,
    used: BoolArray | None = None,
    trust: LambdaPrior | None = None,
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
    trust : LambdaPrior, optional
    """
    if weighting.random_within_strata and len(weighting.sizes) == len(proxy.means):
        stratum = proxy.stratum
        values = proxy.values - proxy.means[proxy.stratum]
        if used is not None:
            z = z[used]
            values = values[used]
            stratum = stratum[used]
        moments = stratum_moments(z, values, stratum, len(proxy.means))
        trust = trust or LambdaPrior()
        population_covariances = proxy.unbiased_covariances
        chosen = fit_stratified(
            moments.cross_covariances,
            population_covariances,
            weighting.variance_factors,
            moments.counts,
            shrinkage,
            trust.labelled(moments, proxy.means, population_covariances),
        )
        if trust.published:
            return replace(chosen, spent=0.0 * chosen.spent)
        return chosen
    return fit_general(z[:, None], proxy.values[:, None], weighting, shrinkage, used, len(proxy.means))


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
        raise InputError("estimator 'stratppi' needs a stratified sample", action="Use estimator='ppi++'.")
    n, q, k = proxies.shape
    design = weighting.weights * (1.0 if used is None else used)
    weights = np.abs(design)
    flat = np.concatenate([outcome[..., None], proxies], axis=2).reshape(n, -1)
    both = weighting.unexplained(flat, weights)
    # A proxy that the weights explain is left with rounding, which is no variance.
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
        if sized and np.ptp(sizes) > SAME:
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
        if joint[1, 1] > SAME:
            return float(joint[0, 1] / joint[1, 1])
    return float(weights @ residuals / weights.sum())


N_FOLDS = 5


def check_folds(n_folds: object, units: int) -> int:
    """Return the number of folds as an int.

    Raises
    ------
    InputError
        Unless it is a whole number from 2 to the number of labelled units (or clusters).
    """
    is_whole_number = isinstance(n_folds, numbers.Integral) and not isinstance(n_folds, bool)
    if is_whole_number and 2 <= int(n_folds) <= units:  # type: ignore[call-overload]
        return int(n_folds)  # type: ignore[call-overload, no-any-return]
    raise InputError(
        "the number of folds does not suit the labels",
        given=f"{n_folds!r} folds, {units} labels",
        allowed=f"2 to {units}" if units >= 2 else "2 folds or more, each with a label",
        action="Take fewer folds." if is_whole_number else None,
    )


def assign_folds(
    keys: AnyArray, stratum: IntArray, n_folds: int, cluster: IntArray | None = None
) -> IntArray:
    """Return each unit's fold (n,), 0 … K − 1: as equal in size as can be, within strata and altogether.

    Parameters
    ----------
    keys : (n,)
        Random numbers; their order decides.
    stratum : int (n,)
    n_folds : int
        K.
    cluster : int (n,), optional
        Units of one cluster share a fold.
    """
    if cluster is not None:
        names, first = np.unique(cluster, return_index=True)
        check_folds(n_folds, len(names))
        of_cluster = assign_folds(keys[first], np.zeros(len(names), np.int64), n_folds)
        return of_cluster[np.searchsorted(names, cluster)]
    check_folds(n_folds, len(keys))
    folds = np.empty(len(keys), np.int64)
    folds[np.lexsort((keys, stratum))] = np.arange(len(keys)) % n_folds
    return folds


def fold_shares(folds: IntArray, stratum: IntArray, n_strata: int) -> FloatArray:
    """Return n_hk / n_h (K, H); in strata without labels the shares of the whole sample."""
    n_folds = int(folds.max()) + 1
    cells = np.bincount(folds * n_strata + stratum, minlength=n_folds * n_strata).reshape(n_folds, n_strata)
    counts = cells.sum(axis=0)
    overall = cells.sum(axis=1) / len(folds)
    return np.asarray(np.where(counts > 0, cells / np.maximum(counts, 1), overall[:, None]))


def blended(
    fitted: FloatArray, folds: IntArray, stratum: IntArray, shares: FloatArray, fractions: FloatArray
) -> FloatArray:
    """Return what each unit is given of the K fits (see the module's text).

    Parameters
    ----------
    fitted : float (n, K, …)
        φ_k of each unit.
    folds, stratum : int (n,)
    shares : float (K, H)
        From `fold_shares`.
    fractions : float (H,)
        f_h, 0 for units drawn with replacement.
    """
    own_fit = fitted[np.arange(len(folds)), folds]
    average = np.einsum("nk,nk...->n...", shares.T[stratum], fitted)
    part = fractions[stratum].reshape(-1, *[1] * (own_fit.ndim - 1))
    return np.asarray((1.0 - part) * own_fit + part * average)


def sampled_fractions(weighting: Weighting, n_strata: int) -> FloatArray:
    """Return f_h (H,), the share of each of the proxy's strata that is labelled."""
    fractions = weighting.sampled_fractions
    if len(fractions) == n_strata:
        return fractions
    return np.full(n_strata, float(fractions.mean()))


def cross_fitted(
    chosen: ChosenLam,
    z: FloatArray,
    proxy: ProxyMoments | None,
    weighting: Weighting,
    folds: IntArray,
    *,
    shrinkage: float | None = None,
    clip: bool = False,
    trust: LambdaPrior | None = None,
) -> tuple[ChosenLam, FloatArray | None]:
    """Return λ fitted without each unit's own fold: its mean per stratum, and each unit's (n, k).

    Where λ was not fitted it stays as it is.

    Parameters
    ----------
    chosen : ChosenLam
    z, proxy, weighting, shrinkage, trust
        See `stratal.estimation.lam.fit_lam`. Strata that keep too few labels take the pooled λ.
    folds : int (n,)
        From `assign_folds`.
    clip : bool
        Whether λ is kept within [0, 1].
    """
    if proxy is None or not chosen.fitted:
        note = "λ was not fitted, so there was nothing to cross-fit"
        return replace(chosen, notes=(*chosen.notes, note)), None
    n_folds = int(folds.max()) + 1
    n_strata = len(proxy.means)
    fits = np.stack([fit_lam(z, proxy, weighting, shrinkage, folds != k, trust).lam for k in range(n_folds)])
    if clip:
        fits = np.clip(fits, 0.0, 1.0)
    shares = fold_shares(folds, proxy.stratum, n_strata)
    of_units = np.moveaxis(fits, 0, 1)[proxy.stratum]
    by_unit = blended(of_units, folds, proxy.stratum, shares, sampled_fractions(weighting, n_strata))
    note = f"λ was cross-fitted in {n_folds} folds"
    lam = np.einsum("kh,khq->hq", shares, fits)
    # Residuals of units that λ has not seen need no correction.
    return replace(chosen, lam=lam, spent=0.0 * chosen.spent, notes=(*chosen.notes, note)), by_unit
