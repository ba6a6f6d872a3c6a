"""Moments of labelled units per stratum, from which every stratified variance is made.

Letters are Cochran's: N_h stratum sizes, n_h labels per stratum, W_h = N_h / N, f_h = n_h / N_h.

`StratumMoments` is the one class of moments of labelled units. Other classes hold other quantities:

| class | quantity | source |
|---|---|---|
| `population.summary.StratumSummary` | moments of proxies over all N_h units | the population |
| `strata.strata.Moments` | moments of the outcome as the proxy predicts them | the proxy |
| `intervals.guards.UnitMoments` | means of z and z² on the 0–1 scale | labels |
| `intervals.guards.SmoothedMoments` | the same, smoothed for few labels | `UnitMoments` |
| `intervals.stratified.StratumRates` | rates and trials that the test of strata reads | `UnitMoments` |
| `estimation.means.AnticipatedMoments` | E[z | x] and Var(z | x) as formulas of columns | the proxy |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray, Record

_TINY = float(np.finfo(np.float64).tiny)


def stratum_counts(stratum: IntArray, n_strata: int) -> IntArray:
    """Return n_h, the number of units in each stratum."""
    return np.bincount(stratum, minlength=n_strata).astype(np.int64, copy=False)


def _stratum_products(variables: FloatArray, stratum: IntArray, n_strata: int) -> FloatArray:
    """Return the sums of products of the variables (n, q) with each other in each stratum (H, q, q)."""
    if n_strata == 1:
        return (variables.T @ variables)[None]
    q = variables.shape[1]
    products = np.empty((n_strata, q, q))
    for a in range(q):
        for b in range(a, q):
            product = variables[:, a] * variables[:, b]
            products[:, a, b] = products[:, b, a] = np.bincount(stratum, product, minlength=n_strata)
    return products


def stratum_sums(variables: FloatArray, stratum: IntArray, n_strata: int) -> FloatArray:
    """Return the sums of variables (n,) or (n, q) over each stratum (H,) or (H, q)."""
    if n_strata == 1:
        return np.asarray(variables.sum(axis=0, keepdims=True))
    columns = np.ascontiguousarray(variables.T).reshape(-1, len(variables))
    sums = np.array([np.bincount(stratum, column, minlength=n_strata) for column in columns])
    return np.asarray(sums[0] if variables.ndim == 1 else sums.T)


def stratum_means(variables: FloatArray, stratum: IntArray, n_strata: int) -> FloatArray:
    """Return the unweighted mean of each variable in each stratum (H, q); NaN where one is empty."""
    counts = stratum_counts(stratum, n_strata)
    if variables.shape[1] == 1:
        sums = np.bincount(stratum, variables[:, 0], minlength=n_strata)[:, None]
    else:
        columns = np.ascontiguousarray(variables.T)
        sums = np.array([np.bincount(stratum, column, minlength=n_strata) for column in columns]).T
    with np.errstate(invalid="ignore"):
        return np.asarray(sums / counts[:, None])


def centred(variables: FloatArray, stratum: IntArray, n_strata: int) -> FloatArray:
    """Return the deviations (n, q) of each variable from its stratum's mean."""
    if n_strata == 1:
        return variables - np.full(len(variables), 1.0 / max(len(variables), 1)) @ variables
    return variables - stratum_means(variables, stratum, n_strata)[stratum]


def stratum_covariances(variables: FloatArray, stratum: IntArray, n_strata: int) -> FloatArray:
    """Return the within-stratum sample covariances s_h² with divisor n_h − 1, shape (H, q, q).

    A stratum with fewer than two units gets NaN: its variance cannot be estimated from itself.
    """
    free = stratum_counts(stratum, n_strata) - 1.0
    products = _stratum_products(centred(variables, stratum, n_strata), stratum, n_strata)
    return products / np.where(free > 0, free, np.nan)[:, None, None]


def stratum_kurtoses(z: FloatArray, stratum: IntArray, n_strata: int) -> FloatArray:
    """Return n_h Σ (z − z̄_h)⁴ / (Σ (z − z̄_h)²)² of each stratum (H,), 1 to n_h; 1 where labels agree."""
    off = z - stratum_means(z[:, None], stratum, n_strata)[:, 0][stratum]
    squares = (off / max(float(np.abs(off).max(initial=0.0)), _TINY)) ** 2
    second, fourth = (np.bincount(stratum, part, minlength=n_strata) for part in (squares, squares**2))
    return kurtoses_of(stratum_counts(stratum, n_strata), second, fourth)


def kurtoses_of(counts: AnyArray, second: AnyArray, fourth: AnyArray) -> FloatArray:
    """Return n Σ y⁴ / (Σ y²)² within what n numbers can have, 1 to n; 1 where they do not vary."""
    varies = second > 0
    kurtoses = counts * fourth / np.where(varies, second, 1.0) ** 2
    return np.asarray(np.clip(np.where(varies, kurtoses, 1.0), 1.0, np.maximum(counts, 1.0)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StratumMoments(Record):
    """First and second moments of outcome and proxies within each stratum's labelled units.

    Parameters
    ----------
    counts : (…, H)
        n_h.
    outcome_means : float (…, H)
    proxy_means : float (…, H, k)
    outcome_variances : float (…, H)
    cross_covariances : float (…, H, k)
        Of outcome and proxies; divisor n_h − 1, 0 where n_h < 2.
    proxy_covariances : float (…, H, k, k)
    """

    counts: IntArray
    outcome_means: FloatArray
    proxy_means: FloatArray
    outcome_variances: FloatArray
    cross_covariances: FloatArray
    proxy_covariances: FloatArray


def stratum_moments(z: FloatArray, proxies: FloatArray, stratum: IntArray, n_strata: int) -> StratumMoments:
    """Return the labelled units' moments per stratum, summed over the outcomes where there are several.

    Parameters
    ----------
    z : float (n,) or (n, q)
    proxies : float (n, k) or (n, q, k)
        Of each outcome.
    stratum : int (n,)
    n_strata : int
        H.
    """
    joint = np.concatenate([z[..., None], proxies], axis=-1)
    counts, (n, k) = stratum_counts(stratum, n_strata), (len(z), joint.shape[-1])
    means = stratum_means(joint if z.ndim == 1 else np.einsum("nqk->nk", joint), stratum, n_strata)
    filled_means = np.where(counts[:, None] > 0, means, 0.0)
    centred_variables = centred(joint.reshape(n, -1), stratum, n_strata).reshape(-1, k)
    if n_strata == 1:
        stratum_of_row = stratum
    else:
        stratum_of_row = np.repeat(stratum, len(centred_variables) // max(n, 1))
    products = (
        _stratum_products(centred_variables, stratum_of_row, n_strata)
        / np.maximum(counts - 1.0, 1.0)[:, None, None]
    )
    return StratumMoments(
        counts=counts,
        outcome_means=filled_means[:, 0],
        proxy_means=filled_means[:, 1:],
        outcome_variances=products[:, 0, 0],
        cross_covariances=products[:, 0, 1:],
        proxy_covariances=products[:, 1:, 1:],
    )


def collapse_singletons(counts: IntArray, sizes: IntArray) -> IntArray:
    """Return, for each stratum, the group that it lends its variance from: itself, or itself and neighbours.

    A stratum with one label out of several units has no variance of its own. It is grouped with the nearest
    stratum that has labels, which can only overstate its variance (Cochran, 5A.12; "collapsed strata").

    Parameters
    ----------
    counts : int (H,)
        n_h, labels per stratum; strata without labels are left out of every group.
    sizes : int (H,)
        N_h.

    Returns
    -------
    int (H,)
        Group numbers; strata with the same number are pooled.
    """
    group = np.arange(len(counts))
    labelled = np.flatnonzero(counts > 0)
    for h in labelled:
        if counts[h] > 1 or sizes[h] == 1 or len(labelled) == 1:
            continue
        if np.sum(counts[group == group[h]]) > 1:
            continue
        others = labelled[labelled != h]
        nearest = others[np.argmin(np.abs(others - h))]
        group[group == group[h]] = group[nearest]
    return group


def pooled_stratum_covariances(
    variables: FloatArray, stratum: IntArray, counts: IntArray, sizes: IntArray
) -> FloatArray:
    """Return s_h² (H, q, q), a single-label stratum taking that of its collapsed group.

    Strata that are labelled whole, or not at all, get 0 where nothing can be estimated. One label in all
    gives NaN.
    """
    n_strata = len(sizes)
    covariances = stratum_covariances(variables, stratum, n_strata)
    if n_strata > 1 and (counts == 1).any():
        group = collapse_singletons(counts, sizes)
        if not np.array_equal(group, np.arange(n_strata)):
            joint = stratum_covariances(variables, group[stratum], n_strata)[group]
            covariances = np.where(np.isnan(covariances), joint, covariances)
    unknown = np.isnan(covariances[:, 0, 0])
    if unknown.any():
        covariances[unknown & ((counts >= sizes) | (counts == 0))] = 0.0
    return covariances


def population_spread(
    means: FloatArray, within: FloatArray, counts: AnyArray, sizes: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return the within- and between-strata parts of S², the population's covariance with divisor N − 1.

    Their sum is exactly unbiased: (N − 1) S² = Σ (N_h − 1) S_h² + Σ N_h (Ȳ_h − Ȳ)², from whose plug-in the
    part that only the sampling of the means adds, Σ N_h (1 − W_h) (1 − f_h) s_h² / n_h, is taken off
    (Cochran, 5A.11).

    Parameters
    ----------
    means : float (…, H, q)
    within : float (…, H, q, q)
        s_h².
    counts : (…, H)
        n_h; strata without labels are left out.
    sizes : int (H,)
        N_h.
    """
    labelled = counts > 0
    size = np.where(labelled, sizes, 0).astype(np.float64)
    total = size.sum(axis=-1, keepdims=True)
    share = size / total
    divisor = np.maximum(total - 1.0, 1.0)
    within_part = _weighted(np.maximum(size - 1.0, 0.0) / divisor, within)
    filled = np.where(labelled[..., None], means, 0.0)
    centred = filled - np.sum(share[..., None] * filled, axis=-2, keepdims=True)
    fractions = np.where(labelled, np.minimum(counts / sizes, 1.0), 1.0)
    noise = size * (1.0 - share) * (1.0 - fractions) / np.maximum(counts, 1)
    products = centred[..., :, None] * centred[..., None, :]
    return within_part, _weighted(size / divisor, products) - _weighted(noise / divisor, within)


def _weighted(weights: FloatArray, matrices: FloatArray) -> FloatArray:
    """Return Σ a_h M_h (…, q, q)."""
    return np.asarray(np.einsum("...h,...hij->...ij", weights, matrices))


def satterthwaite(contributions: FloatArray, degrees_of_freedom: FloatArray) -> FloatArray:
    """Return Satterthwaite's degrees of freedom (…,) of a sum of independent variance estimates (…, H).

    (Σ a)² / Σ a² / ν (Satterthwaite 1946; Cochran, eq. 5.16). Zero contributions do not count; if all are
    zero, the degrees of freedom add up.
    """
    used = degrees_of_freedom > 0
    used_parts = np.where(used, contributions, 0.0)
    total = used_parts.sum(axis=-1, keepdims=True)
    usable = np.isfinite(total) & (total > 0)
    shares = used_parts / np.where(usable, total, 1.0)
    denominator = (shares**2 / np.where(used, degrees_of_freedom, 1.0)).sum(axis=-1)
    total_degrees = np.where(used, degrees_of_freedom, 0.0).sum(axis=-1)
    usable = usable[..., 0]
    return np.asarray(np.where(usable, 1.0 / np.where(usable, denominator, 1.0), total_degrees))
