"""The papers' closed forms, each as printed, to stand beside the simulated values.

[F] Fogliato et al. (2024), [K] Kumar & Raj (2016), [S] Fisch et al. (2024). S² has divisor N − 1, as in [F]
and [K]. [K] assumes draws with replacement and leaves 1 − f out; its eq. 2, 5, 7, 8 and 10 put the divisor
N_h − 1 where such draws have N_h, and so overstate each S_h² by N_h/(N_h − 1).
"""

from __future__ import annotations

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.estimation.formulas import neyman as neyman
from stratal.estimation.formulas import proportional as proportional
from stratal.estimation.formulas import simple_random as simple_random
from stratal.estimation.formulas import stratified as stratified


def proportional_from_proxy(z: FloatArray, proxy: FloatArray, codes: IntArray, n: int) -> float:
    """Return [F] eq. 7: eq. 4 taken apart into the proxy's sum of squares within strata and the rest.

    It writes S_h² with divisor N_h, so it is eq. 4 with (N_h − 1)/N_h times each S_h². The print has
    + (θ̂_h² − mean_h ẑ²) where its own derivation needs −; the minus is what is returned.

    Parameters
    ----------
    z, proxy : float (N,)
    codes : int (N,)
        Stratum of each unit.
    n : int

    Examples
    --------
    >>> z = np.array([0.0, 1.0, 1.0, 1.0])
    >>> proportional_from_proxy(z, np.array([0.2, 0.4, 0.9, 0.9]), np.array([0, 0, 1, 1]), 2)
    0.03125
    """
    sizes = np.bincount(codes)
    size = len(z)
    proxy_means = np.bincount(codes, proxy) / sizes
    means = np.bincount(codes, z) / sizes
    first = np.sum((proxy - proxy_means[codes]) ** 2 - (means**2 - proxy_means**2)[codes])
    second = np.sum((z - proxy) ** 2 + 2.0 * proxy * (z - proxy))
    return float(round((1.0 - n / size) / (size * n) * (first + second), 15))


def difference(z: FloatArray, proxy: FloatArray, n: int) -> float:
    """Return [F] eq. 8, (1 − f)/n {mean (z − ẑ)² − (z̄ − mean ẑ)²}: the difference estimator, simple random.

    Short of the exact variance by the factor (N − 1)/N.

    Examples
    --------
    >>> round(difference(np.array([0.0, 1.0]), np.array([0.5, 0.7]), 1), 6)
    0.08
    """
    f = n / len(z)
    return float((1.0 - f) / n * (np.mean((z - proxy) ** 2) - (z.mean() - proxy.mean()) ** 2))


def calibrated_ratio(conditional_variances: FloatArray, variance: float) -> float:
    """Return [F] eq. 9, E[Var(z | x)]/Var(z): MSE of the difference over that of HT with ẑ = E[z | x].

    Examples
    --------
    >>> calibrated_ratio(np.array([0.1, 0.2]), 0.25)
    0.6
    """
    return float(round(float(np.mean(conditional_variances)) / variance, 15))


def difference_proportional(z: FloatArray, proxy: FloatArray, codes: IntArray, n: int) -> float:
    """Return [F]'s formula without a number: the difference estimator under proportional allocation.

    (1 − f)/n {mean (z − ẑ)² − Σ W_h (z̄_h − mean_h ẑ)²}, short of the exact variance by about (N − 1)/N.

    Examples
    --------
    >>> z, proxy = np.array([0.0, 1.0, 1.0, 1.0]), np.array([0.2, 0.4, 0.9, 0.9])
    >>> round(difference_proportional(z, proxy, np.array([0, 0, 1, 1]), 2), 6)
    0.02
    """
    sizes = np.bincount(codes)
    residual = z - proxy
    between = (sizes / len(z)) @ (np.bincount(codes, residual) / sizes) ** 2
    return float((1.0 - n / len(z)) / n * (np.mean(residual**2) - between))


def accuracy_random(accuracy: float, size: int, n: int) -> float:
    """Return [K] eq. 2 with Lemma 1, N A (1 − A)/((N − 1) n): simple random sampling with replacement.

    Examples
    --------
    >>> round(accuracy_random(0.5, 100, 10), 6)
    0.025253
    """
    return size * accuracy * (1.0 - accuracy) / ((size - 1) * n)


def accuracy_variances(accuracies: FloatArray, sizes: IntArray) -> FloatArray:
    """Return S_k² = N_k A_k (1 − A_k)/(N_k − 1) of every stratum, 0 for a single unit.

    Examples
    --------
    >>> accuracy_variances(np.array([0.5, 1.0]), np.array([2, 5]))
    array([0.5, 0. ])
    """
    return np.asarray(sizes * accuracies * (1.0 - accuracies) / np.maximum(sizes - 1, 1))


def accuracy_stratified(accuracies: FloatArray, sizes: IntArray, counts: FloatArray) -> float:
    """Return [K] eq. 5, Σ W_k² S_k²/n_k.

    Examples
    --------
    >>> accuracy_stratified(np.array([0.5, 1.0]), np.array([2, 2]), np.array([1.0, 1.0]))
    0.125
    """
    weights = sizes / sizes.sum()
    return float(np.sum(weights**2 * accuracy_variances(accuracies, sizes) / counts))


def accuracy_proportional(accuracies: FloatArray, sizes: IntArray, n: int) -> float:
    """Return [K] eq. 7, Σ W_k S_k²/n.

    Examples
    --------
    >>> accuracy_proportional(np.array([0.5, 1.0]), np.array([2, 2]), 2)
    0.125
    """
    return float(sizes / sizes.sum() @ accuracy_variances(accuracies, sizes) / n)


def accuracy_equal(accuracies: FloatArray, sizes: IntArray, n: int) -> float:
    """Return [K] eq. 8, K Σ W_k² S_k²/n.

    Examples
    --------
    >>> accuracy_equal(np.array([0.5, 1.0]), np.array([2, 2]), 2)
    0.125
    """
    weights = sizes / sizes.sum()
    return float(len(sizes) * np.sum(weights**2 * accuracy_variances(accuracies, sizes)) / n)


def accuracy_optimal(accuracies: FloatArray, sizes: IntArray, n: int) -> float:
    """Return [K] eq. 10, (Σ W_k S_k)²/n, of the allocation of eq. 9.

    Examples
    --------
    >>> round(accuracy_optimal(np.array([0.5, 1.0]), np.array([2, 2]), 2), 6)
    0.0625
    """
    weights = sizes / sizes.sum()
    return float((weights @ np.sqrt(accuracy_variances(accuracies, sizes))) ** 2 / n)


def stratified_ppi(
    weights: FloatArray,
    lam: FloatArray,
    proxy_variances: FloatArray,
    residual_variances: FloatArray,
    labelled: IntArray,
    unlabelled: IntArray,
) -> float:
    """Return [S] Theorem 2 for a mean, Σ w_k² (λ_k² V_f,k/N_k + V_Δ,k/n_k).

    Parameters
    ----------
    weights : float (K,)
        w_k.
    lam : float (K,)
        λ_k on the unlabelled units' mean.
    proxy_variances, residual_variances : float (K,)
        V_f,k = Var f and V_Δ,k = Var(λ_k f − y) in the stratum's distribution.
    labelled, unlabelled : int (K,)
        n_k and N_k, two separate samples.

    Examples
    --------
    >>> round(stratified_ppi(np.array([1.0]), np.array([1.0]), np.array([1.0]), np.array([0.5]),
    ...                      np.array([50]), np.array([100])), 6)
    0.02
    """
    return float(np.sum(weights**2 * (lam**2 * proxy_variances / unlabelled + residual_variances / labelled)))


def best_stratified_lam(
    covariances: FloatArray, proxy_variances: FloatArray, labelled: IntArray, unlabelled: IntArray
) -> FloatArray:
    """Return [S] eq. 17, λ_k = Cov(f, y)/((1 + n_k/N_k) Var f), 0 where f is constant.

    Examples
    --------
    >>> best_stratified_lam(np.array([0.5]), np.array([1.0]), np.array([100]), np.array([100]))
    array([0.25])
    """
    known = proxy_variances > 0
    ratio = covariances / np.where(known, proxy_variances, 1.0)
    return np.asarray(np.where(known, ratio / (1.0 + labelled / unlabelled), 0.0))
