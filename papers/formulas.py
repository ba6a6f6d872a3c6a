"""The papers' closed forms, each as printed, to compare with simulated values.

[F] Fogliato et al. (2024), [K] Kumar & Raj (2016), [S] Fisch et al. (2024). S² has divisor N − 1, as in [F]
and [K]; N_h, W_h = N_h/N, S_h² and n_h are a stratum's size, share, variance and labels, θ_h its mean,
and f = n/N. [K] assumes draws with replacement and leaves 1 − f out: `correction=False`, or `size=inf`. Its
eq. 2, 5, 7, 8 and 10 then put the divisor N_h − 1 where such draws have N_h, and so overstate each S_h² by
N_h/(N_h − 1). An equation that is another one at special arguments has no function of its own:

=================  ============================================================================
[F] eq. 3          ``simple_random``; of the difference estimator with z − ẑ for z (A.3, exact)
[F] eq. 4, 5       ``proportional``, ``neyman``; with z − ẑ for z too
[F] eq. 7          ``proportional_from_proxy``
[F] eq. 8          ``difference``, and in strata (no number) the same with ``strata``
[F] eq. 9          ``calibrated_ratio``
[F] A.1            ``variance_of_strata``, ``gain_of_proportional``, ``gain_of_neyman``
[F] A.2            ``expected_proportional``
[K] Lemma 1        ``binary_variance``
[K] eq. 2, 5       ``simple_random`` with ``size=inf``, ``stratified``
[K] eq. 7, 10      ``proportional``, ``neyman``
[K] eq. 8          ``stratified`` with n_h = n/K
[K] eq. 9          ``neyman_counts``; [S] eq. 18 with ``n=1``, S_k² its V_Δ,k or V_f,k
[K] eq. 11–13      ``gain_of_proportional`` (11, 12), ``gain_of_neyman`` (13)
[K] eq. 14         ``simple_random`` less ``proportional``
[S] Theorem 2      ``stratified_ppi``
[S] eq. 17         ``best_lam``
[S] eq. 20, 62–63  ``residual_variance``
=================  ============================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, finite_vector, same_length
from stratal.errors import InputError
from stratal.simulation.summaries import exact_variance


def simple_random(variance: float, n: float, size: float) -> float:
    """Return [F] eq. 3, (1 − f)/n S²: the HT mean under simple random sampling (exact).

    Parameters
    ----------
    variance : float
        S², divisor N − 1.
    n : float
        Labels.
    size : float
        N; inf for [K] eq. 2, S²/n.

    Examples
    --------
    >>> simple_random(0.25, 10, 100)
    0.0225
    """
    return (1.0 - n / size) / n * variance


def proportional(sizes: Any, variances: Any, n: float, *, correction: bool = True) -> float:
    """Return [F] eq. 4, (1 − f)/n Σ W_h S_h²: the HT mean under proportional allocation, n_h not rounded.

    Parameters
    ----------
    sizes, variances : (H,)
        N_h and S_h².
    n : float
        Labels.
    correction : bool
        Whether 1 − f is in it; [K] eq. 7 has none.

    Raises
    ------
    InputError
        If lengths differ, a size or n is not positive, or a variance is negative.

    Examples
    --------
    >>> round(proportional([50, 50], [0.25, 0.05], 10), 6)
    0.0135
    """
    sizes, variances = _strata(n, sizes, variances=variances)
    size = float(sizes.sum())
    return simple_random(float(sizes @ variances) / size, n, size if correction else np.inf)


def neyman(sizes: Any, variances: Any, n: float, *, correction: bool = True) -> float:
    """Return [F] eq. 5, (Σ W_h S_h)²/n − Σ W_h S_h²/N: the HT mean under Neyman allocation, n_h not rounded.

    Parameters
    ----------
    sizes, variances, n
        As in `proportional`.
    correction : bool
        Whether the second term is in it; [K] eq. 10 has none.

    Examples
    --------
    >>> round(neyman([50, 50], [0.25, 0.01], 10), 6)
    0.0077
    """
    sizes, variances = _strata(n, sizes, variances=variances)
    weights = sizes / sizes.sum()
    saved = weights @ variances / sizes.sum() if correction else 0.0
    return float((weights @ np.sqrt(variances)) ** 2 / n - saved)


def neyman_counts(sizes: Any, variances: Any, n: float) -> FloatArray:
    """Return [K] eq. 9, n_h = n W_h S_h/Σ W_h S_h (H,), not rounded; with n = 1 [S] eq. 18's shares.

    Examples
    --------
    >>> neyman_counts([50, 50], [0.25, 0.01], 60)
    array([50., 10.])
    """
    sizes, variances = _strata(n, sizes, variances=variances)
    product = sizes * np.sqrt(variances)
    if not product.any():
        raise InputError("no stratum varies", given=variances.tolist(), allowed="a variance above 0")
    return np.asarray(n * product / product.sum())


def stratified(
    sizes: Any,
    variances: Any,
    counts: Any,
    *,
    with_replacement: bool = False,
    correction: bool = True,
) -> float:
    """Return Σ W_h² (1 − f_h) S_h²/n_h, the exact variance for whole n_h (Cochran, eq. 5.6).

    Parameters
    ----------
    sizes, variances, counts : (H,)
        N_h, S_h² and n_h; a stratum without variance needs no labels.
    with_replacement : bool
        1 − f_h becomes 1 − 1/N_h, which makes S_h² the variance with divisor N_h (exact).
    correction : bool
        False for [K] eq. 5, in which neither stands.

    Examples
    --------
    >>> round(stratified([50, 50], [0.25, 0.05], [5, 5]), 6)
    0.0135
    """
    sizes, variances, counts = _strata(1, sizes, variances=variances, counts=counts)
    if correction:
        return exact_variance(sizes, variances, counts, with_replacement=with_replacement)
    parts = (sizes / sizes.sum()) ** 2 * variances
    return float((parts[parts > 0] / counts[parts > 0]).sum())


def proportional_from_proxy(z: Any, proxy: Any, strata: Any, n: float) -> float:
    """Return [F] eq. 7: eq. 4 split into the proxy's sum of squares within strata and the rest.

    It writes S_h² with divisor N_h, so it is eq. 4 with (N_h − 1)/N_h times each S_h². The print has
    + (θ_h² − mean_h(ẑ)²) where its own derivation needs −; the minus is what is returned.

    Parameters
    ----------
    z, proxy : float (N,)
    strata : int (N,)
        Stratum of each unit.
    n : float

    Examples
    --------
    >>> round(proportional_from_proxy([0.0, 1.0, 1.0, 1.0], [0.2, 0.4, 0.9, 0.9], [0, 0, 1, 1], 2), 6)
    0.03125
    """
    z, proxy, sizes, codes = _units(z, proxy, strata)
    means, proxy_means = (np.bincount(codes, column) / sizes for column in (z, proxy))
    within = (proxy - proxy_means[codes]) ** 2 - (means**2 - proxy_means**2)[codes]
    rest = (z - proxy) ** 2 + 2.0 * proxy * (z - proxy)
    return simple_random(float(np.mean(within + rest)), n, len(z))


def difference(z: Any, proxy: Any, n: float, *, strata: Any = None) -> float:
    """Return [F] eq. 8, (1 − f)/n {mean (z − ẑ)² − (z̄ − mean ẑ)²}: the difference estimator.

    Under simple random sampling, or with `strata` under proportional allocation ([F]'s formula without a
    number), where the second term is Σ W_h (θ_h − mean_h ẑ)². N/(N − 1) times the first is exact (A.3).

    Parameters
    ----------
    z, proxy, n
        As in `proportional_from_proxy`.
    strata : int (N,), optional

    Examples
    --------
    >>> round(difference([0.0, 1.0], [0.5, 0.7], 1), 6)
    0.08
    >>> round(difference([0.0, 1.0, 1.0, 1.0], [0.2, 0.4, 0.9, 0.9], 2, strata=[0, 0, 1, 1]), 6)
    0.02
    """
    z, proxy, sizes, codes = _units(z, proxy, np.zeros(len(z), np.int64) if strata is None else strata)
    between = sizes @ (np.bincount(codes, z - proxy) / sizes) ** 2 / len(z)
    return simple_random(float(np.mean((z - proxy) ** 2) - between), n, len(z))


def calibrated_ratio(conditional_variances: Any, variance: float) -> float:
    """Return [F] eq. 9, E[Var(z | x)]/Var(z): MSE of the difference over that of HT with ẑ = E[z | x].

    Examples
    --------
    >>> round(calibrated_ratio([0.1, 0.2], 0.25), 6)
    0.6
    """
    return float(np.mean(finite_vector("conditional_variances", conditional_variances))) / variance


def variance_of_strata(sizes: Any, variances: Any, means: Any) -> float:
    """Return S² from the strata's moments ([F] A.1): (N − 1) S² = Σ (N_h − 1) S_h² + Σ N_h (θ_h − θ)².

    Examples
    --------
    >>> round(variance_of_strata([2, 2], [0.5, 0.0], [0.5, 1.0]), 6)
    0.25
    """
    sizes, variances, means = _strata(1, sizes, variances=variances, means=means)
    between = sizes @ (means - sizes @ means / sizes.sum()) ** 2
    return float(((sizes - 1.0) @ variances + between) / (sizes.sum() - 1.0))


def gain_of_proportional(sizes: Any, means: Any, n: float, *, correction: bool = True) -> float:
    """Return (1 − f)/n Σ W_h (θ_h − θ)²: V(random) − V(proportional) where 1/N_h is small ([F] A.1).

    Parameters
    ----------
    sizes, means : (H,)
        N_h and θ_h; for accuracies [K]'s A_k.
    n : float
    correction : bool
        Whether 1 − f is in it; [K] eq. 11 and 12 have none.

    Examples
    --------
    >>> round(gain_of_proportional([100, 100], [0.5, 0.9], 10, correction=False), 6)
    0.004
    """
    sizes, means = _strata(n, sizes, means=means)
    return proportional(sizes, (means - sizes @ means / sizes.sum()) ** 2, n, correction=correction)


def gain_of_neyman(sizes: Any, variances: Any, n: float) -> float:
    """Return Σ W_h (S_h − Σ W_h S_h)²/n = V(proportional) − V(Neyman) ([F] A.1 and [K] eq. 13, exact).

    Examples
    --------
    >>> round(gain_of_neyman([100, 100], [0.25, 0.09], 10), 6)
    0.001
    """
    sizes, variances = _strata(n, sizes, variances=variances)
    return gain_of_proportional(sizes, np.sqrt(variances), n, correction=False)


def expected_proportional(sizes: Any, proxy_variances: Any, conditional_variances: Any, n: float) -> float:
    """Return [F] A.2's last line, (1 − f)/n {mean Var(z | x) + Σ W_h S_h²(ẑ)}: eq. 4 expected given x.

    Parameters
    ----------
    sizes, proxy_variances : (H,)
        N_h, and S_h² of ẑ = E[z | x], which strata by k-means make least (Proposition 2).
    conditional_variances : (N,)
        Var(z | x) of each unit.
    n : float

    Examples
    --------
    >>> round(expected_proportional([2, 2], [0.02, 0.0], [0.2, 0.2, 0.1, 0.1], 2), 6)
    0.04
    """
    inner = finite_vector("conditional_variances", conditional_variances)
    return proportional(sizes, proxy_variances, n) + simple_random(float(inner.mean()), n, len(inner))


def binary_variance(accuracy: Any, size: Any) -> FloatArray:
    """Return [K] Lemma 1, S² = N A (1 − A)/(N − 1) of outcomes 0 and 1 with mean A; 0 of a single unit.

    Parameters
    ----------
    accuracy, size : float or (K,)

    Examples
    --------
    >>> binary_variance([0.5, 1.0], [2, 5])
    array([0.5, 0. ])
    """
    rate, size = np.asarray(accuracy, np.float64), np.asarray(size, np.float64)
    if not np.all((rate >= 0) & (rate <= 1)) or not np.all(size >= 1):
        raise InputError(
            "accuracies or sizes are out of range",
            given=f"{rate.tolist()} of {size.tolist()}",
            allowed="0 … 1, of at least 1 unit",
        )
    return np.asarray(size * rate * (1.0 - rate) / np.maximum(size - 1.0, 1.0))


def stratified_ppi(
    weights: Any,
    lam: Any,
    proxy_variances: Any,
    residual_variances: Any,
    labelled: Any,
    unlabelled: Any,
) -> float:
    """Return [S] Theorem 2 for a mean, Σ w_k² (λ_k² V_f,k/N_k + V_Δ,k/n_k).

    Parameters
    ----------
    weights, lam : float (K,)
        w_k, and λ_k on the unlabelled units' mean.
    proxy_variances, residual_variances : float (K,)
        V_f,k = Var f without its λ_k², and V_Δ,k = Var(y − λ_k f), in the stratum's distribution.
    labelled, unlabelled : int (K,)
        n_k and N_k, two separate samples.

    Examples
    --------
    >>> round(stratified_ppi([1.0], [1.0], [1.0], [0.5], [50], [100]), 6)
    0.02
    """
    weights, lam, v_f, v_residual, n_k, size_k = _strata(
        1,
        weights,
        lam=lam,
        proxy_variances=proxy_variances,
        residual_variances=residual_variances,
        labelled=labelled,
        unlabelled=unlabelled,
    )
    return float(weights**2 @ (lam**2 * v_f / size_k + v_residual / n_k))


def best_lam(covariances: Any, proxy_variances: Any, labelled: Any, unlabelled: Any) -> FloatArray:
    """Return [S] eq. 17, λ_k = Cov(f, y)/((1 + n_k/N_k) Var f) (K,), 0 where f is constant.

    Examples
    --------
    >>> best_lam([0.5], [1.0], [100], [100])
    array([0.25])
    """
    size_k, cross, v_f, n_k = _strata(
        1, unlabelled, covariances=covariances, proxy_variances=proxy_variances, labelled=labelled
    )
    known = v_f > 0
    return np.asarray(np.where(known, cross / np.where(known, v_f, 1.0) / (1.0 + n_k / size_k), 0.0))


def residual_variance(proxy: Any, conditional_variances: Any, lam: float) -> float:
    """Return [S] eq. 20 of one stratum where f = E[y | x]: mean Var(y | x) + (1 − λ)² Var f, divisor N_k.

    With λ = 0 it is eq. 63, np.mean(f * (1 - f)) + np.var(f) of a binary y, and [F]'s plug-in for Neyman's
    allocation; with λ = 1 Var f drops out. (Eq. 62 prints y − f without its square, which would be 0.)

    Parameters
    ----------
    proxy, conditional_variances : (N_k,)
        f, and Var(y | x), which is f (1 − f) where y is 0 or 1.
    lam : float

    Examples
    --------
    >>> f = np.array([0.2, 0.4])
    >>> round(residual_variance(f, f * (1 - f), 0.0), 6), round(residual_variance(f, f * (1 - f), 1.0), 6)
    (0.21, 0.2)
    """
    f = finite_vector("proxy", proxy)
    inner = finite_vector("conditional_variances", conditional_variances)
    same_length(proxy=f, conditional_variances=inner)
    return float(inner.mean() + (1.0 - lam) ** 2 * f.var())


def _strata(n: float, sizes: Any, **columns: Any) -> list[FloatArray]:
    """Return sizes and columns (H,), checked: sizes and n positive, variances and counts not negative."""
    checked = {"sizes": finite_vector("sizes", sizes)}
    checked |= {name: finite_vector(name, column) for name, column in columns.items()}
    same_length(**checked)
    if not n > 0 or not np.all(checked["sizes"] > 0):
        given = f"sizes {checked['sizes'].tolist()}, n = {n}"
        raise InputError("a size or n is not positive", given=given, allowed="above 0")
    for name, column in checked.items():
        if name not in ("means", "lam", "covariances") and np.any(column < 0):
            raise InputError(f"{name} hold a negative value", given=column.tolist(), allowed="0 or more")
    return list(checked.values())


def _units(z: Any, proxy: Any, strata: Any) -> tuple[FloatArray, FloatArray, AnyArray, AnyArray]:
    """Return z and ẑ (N,), N_h (H,) and each unit's stratum (N,), checked."""
    z, proxy = finite_vector("z", z), finite_vector("proxy", proxy)
    same_length(z=z, proxy=proxy, strata=np.asarray(strata))
    _, codes, sizes = np.unique(strata, return_inverse=True, return_counts=True)
    return z, proxy, sizes, codes
