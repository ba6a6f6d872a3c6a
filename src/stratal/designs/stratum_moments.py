"""Moments of labelled units per stratum, from which all stratified variances are computed.

Letters are Cochran's: N_h stratum sizes, n_h labels per stratum, W_h = N_h / N, f_h = n_h / N_h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray, Record

# Smallest positive number, to avoid a division by 0.
_TINY = float(np.finfo(np.float64).tiny)


def stratum_counts(stratum: IntArray, n_strata: int) -> IntArray:
    """Return n_h, the number of units in each stratum."""
    return np.bincount(stratum, minlength=n_strata).astype(np.int64, copy=False)


def _stratum_products(variables: FloatArray, stratum: IntArray, n_strata: int) -> FloatArray:
    """Return the sums of products of the variables (n, q) with each other in each stratum (H, q, q)."""
    # One matrix product is many times faster than a sum for each pair of variables.
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
    """Return the unweighted mean of each variable in each stratum (H, q); NaN for an empty stratum."""
    counts = stratum_counts(stratum, n_strata)
    # A single column is not copied.
    columns = np.ascontiguousarray(variables.T)
    sums = np.array([np.bincount(stratum, column, minlength=n_strata) for column in columns]).T
    with np.errstate(invalid="ignore"):
        return np.asarray(sums / counts[:, None])


def centre_within_strata(variables: FloatArray, stratum: IntArray, n_strata: int) -> FloatArray:
    """Return the deviations (n, q) of each variable from its stratum's mean."""
    if n_strata == 1:
        return variables - np.full(len(variables), 1.0 / max(len(variables), 1)) @ variables
    return variables - stratum_means(variables, stratum, n_strata)[stratum]


def stratum_covariances(variables: FloatArray, stratum: IntArray, n_strata: int) -> FloatArray:
    """Return the within-stratum sample covariances s_h² with divisor n_h − 1, shape (H, q, q).

    They are NaN in strata with fewer than two units.
    """
    degrees_of_freedom = stratum_counts(stratum, n_strata) - 1.0
    deviations = centre_within_strata(variables, stratum, n_strata)
    products = _stratum_products(deviations, stratum, n_strata)
    return products / np.where(degrees_of_freedom > 0, degrees_of_freedom, np.nan)[:, None, None]


def stratum_kurtoses(z: FloatArray, stratum: IntArray, n_strata: int) -> FloatArray:
    """Return the kurtosis n_h Σ (z − z̄_h)⁴ / (Σ (z − z̄_h)²)² of each stratum (H,); see `sample_kurtoses`."""
    deviations = z - stratum_means(z[:, None], stratum, n_strata)[:, 0][stratum]
    # Division by the largest deviation avoids overflow of the fourth powers.
    squares = (deviations / max(float(np.abs(deviations).max(initial=0.0)), _TINY)) ** 2
    second = np.bincount(stratum, squares, minlength=n_strata)
    fourth = np.bincount(stratum, squares**2, minlength=n_strata)
    return sample_kurtoses(stratum_counts(stratum, n_strata), second, fourth)


def sample_kurtoses(counts: AnyArray, second: AnyArray, fourth: AnyArray) -> FloatArray:
    """Return the kurtosis n Σ y⁴ / (Σ y²)² of n deviations y; 1 if all are 0.

    The possible values are 1 to n. Rounding errors beyond are clipped. `counts`, `second` and `fourth` are n,
    Σ y² and Σ y⁴, of equal shapes.
    """
    is_positive = second > 0
    kurtoses = counts * fourth / np.where(is_positive, second, 1.0) ** 2
    return np.asarray(np.clip(np.where(is_positive, kurtoses, 1.0), 1.0, np.maximum(counts, 1.0)))


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
        Covariances of outcome and proxies, with the divisor n_h − 1; 0 if n_h < 2.
    proxy_covariances : float (…, H, k, k)
    """

    counts: IntArray
    outcome_means: FloatArray
    proxy_means: FloatArray
    outcome_variances: FloatArray
    cross_covariances: FloatArray
    proxy_covariances: FloatArray


def stratum_moments(z: FloatArray, proxies: FloatArray, stratum: IntArray, n_strata: int) -> StratumMoments:
    """Return the moments of the labelled units per stratum, summed over q outcomes if there are several.

    Parameters
    ----------
    z : float (n,) or (n, q)
    proxies : float (n, k) or (n, q, k)
        Proxies of each outcome.
    stratum : int (n,)
    n_strata : int
        H.
    """
    variables = np.concatenate([z[..., None], proxies], axis=-1)
    counts = stratum_counts(stratum, n_strata)
    n = len(z)
    n_variables = variables.shape[-1]
    summed = variables
    if z.ndim > 1:
        summed = np.einsum("nqk->nk", variables)
    means = stratum_means(summed, stratum, n_strata)
    # Strata without labels have the weight 0 in what follows, and 0 · NaN would be NaN.
    means = np.where(counts[:, None] > 0, means, 0.0)
    deviations = centre_within_strata(variables.reshape(n, -1), stratum, n_strata).reshape(-1, n_variables)
    # A row for each unit and outcome, so that products are summed over the outcomes.
    stratum_of_row = stratum
    if n_strata > 1:
        stratum_of_row = np.repeat(stratum, len(deviations) // max(n, 1))
    products = _stratum_products(deviations, stratum_of_row, n_strata)
    covariances = products / np.maximum(counts - 1.0, 1.0)[:, None, None]
    return StratumMoments(
        counts=counts,
        outcome_means=means[:, 0],
        proxy_means=means[:, 1:],
        outcome_variances=covariances[:, 0, 0],
        cross_covariances=covariances[:, 0, 1:],
        proxy_covariances=covariances[:, 1:, 1:],
    )


def collapse_singletons(counts: IntArray, sizes: IntArray) -> IntArray:
    """Return a group number for each stratum (H,), by n_h and N_h (H,); strata of a group are pooled.

    The variance of a stratum with one label out of several units cannot be estimated. Such a stratum is
    grouped with the nearest stratum that has labels. The variance of the group is at least that of the
    stratum in expectation (Cochran, 5A.12). Strata without labels stay single.
    """
    group = np.arange(len(counts))
    labelled = np.flatnonzero(counts > 0)
    for h in labelled:
        # A complete stratum has no sampling variance, and the only labelled one has no neighbour.
        if counts[h] > 1 or sizes[h] == 1 or len(labelled) == 1:
            continue
        # Another stratum with one label was grouped with this one before.
        if np.sum(counts[group == group[h]]) > 1:
            continue
        others = labelled[labelled != h]
        nearest = others[np.argmin(np.abs(others - h))]
        group[group == group[h]] = group[nearest]
    return group


def pooled_stratum_covariances(
    variables: FloatArray, stratum: IntArray, counts: IntArray, sizes: IntArray
) -> FloatArray:
    """Return s_h² (H, q, q); for a stratum with a single label, that of its collapsed group.

    If a variance cannot be estimated, it is 0 for strata with all or no units labelled. It is NaN if there
    is only one label in total.
    """
    n_strata = len(sizes)
    covariances = stratum_covariances(variables, stratum, n_strata)
    if n_strata > 1 and (counts == 1).any():
        group = collapse_singletons(counts, sizes)
        if not np.array_equal(group, np.arange(n_strata)):
            group_covariances = stratum_covariances(variables, group[stratum], n_strata)[group]
            covariances = np.where(np.isnan(covariances), group_covariances, covariances)
    is_unknown = np.isnan(covariances[:, 0, 0])
    if is_unknown.any():
        # A complete stratum adds no error, and the caller merges or leaves out one without labels.
        covariances[is_unknown & ((counts >= sizes) | (counts == 0))] = 0.0
    return covariances


def population_covariance_parts(
    means: FloatArray, within: FloatArray, counts: AnyArray, sizes: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return the within- and between-strata parts of S², the population's covariance with divisor N − 1.

    Their sum is unbiased. It is the plug-in of (N − 1) S² = Σ (N_h − 1) S_h² + Σ N_h (Ȳ_h − Ȳ)², minus the
    bias of the second term due to the sampling errors of the means, Σ N_h (1 − W_h) (1 − f_h) s_h² / n_h
    (Cochran, 5A.11).

    Parameters
    ----------
    means : float (…, H, q)
    within : float (…, H, q, q)
        s_h².
    counts : (…, H)
        n_h. Strata without labels are excluded.
    sizes : int (H,)
        N_h.
    """
    is_labelled = counts > 0
    labelled_sizes = np.where(is_labelled, sizes, 0).astype(np.float64)
    total = labelled_sizes.sum(axis=-1, keepdims=True)
    shares = labelled_sizes / total
    divisor = np.maximum(total - 1.0, 1.0)
    within_part = _weighted_sum(np.maximum(labelled_sizes - 1.0, 0.0) / divisor, within)
    labelled_means = np.where(is_labelled[..., None], means, 0.0)
    overall_mean = np.sum(shares[..., None] * labelled_means, axis=-2, keepdims=True)
    deviations = labelled_means - overall_mean
    fractions = np.where(is_labelled, np.minimum(counts / sizes, 1.0), 1.0)
    # Sampling errors increase the differences between the means of strata.
    bias_factors = labelled_sizes * (1.0 - shares) * (1.0 - fractions) / np.maximum(counts, 1)
    products = deviations[..., :, None] * deviations[..., None, :]
    between_part = _weighted_sum(labelled_sizes / divisor, products)
    return within_part, between_part - _weighted_sum(bias_factors / divisor, within)


def _weighted_sum(weights: FloatArray, matrices: FloatArray) -> FloatArray:
    """Return Σ a_h M_h (…, q, q) of weights (…, H) and matrices (…, H, q, q)."""
    return np.asarray(np.einsum("...h,...hij->...ij", weights, matrices))


def satterthwaite(contributions: FloatArray, degrees_of_freedom: FloatArray) -> FloatArray:
    """Return Satterthwaite's degrees of freedom (…,) of a sum of independent variance estimates (…, H).

    (Σ a)² / Σ (a² / ν) (Satterthwaite 1946; Cochran, eq. 5.16), with the contributions a and their degrees of
    freedom ν (…, H), over the strata with ν > 0. If all contributions are zero, it is the sum of the ν.
    """
    has_freedom = degrees_of_freedom > 0
    random_contributions = np.where(has_freedom, contributions, 0.0)
    total = random_contributions.sum(axis=-1, keepdims=True)
    is_positive = np.isfinite(total) & (total > 0)
    shares = random_contributions / np.where(is_positive, total, 1.0)
    denominator = (shares**2 / np.where(has_freedom, degrees_of_freedom, 1.0)).sum(axis=-1)
    total_degrees = np.where(has_freedom, degrees_of_freedom, 0.0).sum(axis=-1)
    is_positive = is_positive[..., 0]
    return np.asarray(np.where(is_positive, 1.0 / np.where(is_positive, denominator, 1.0), total_degrees))
