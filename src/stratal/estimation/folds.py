"""Cross-fitting: what is fitted on labels is applied only to units that the fit has not seen.

The labelled units are split into K folds. Let φ_k be what the other folds give (λ_k times the proxy, or a
calibrated proxy), less its mean over each stratum of the population. Unit i of fold k is given

    (1 − f_h) φ_k(i) + f_h Σ_j (n_hj / n_h) φ_j(i),    f_h = n_h / N_h.

Given the other folds, fold k is a simple random sample of the units that they left over, and not of all: the
second part makes up for those that they took. With it the estimate is exactly unbiased under simple random
and stratified sampling, and a census is exact, although φ is fitted.
"""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray
from stratal.errors import InputError
from stratal.estimation.lam import ChosenLam, ProxyMoments, Trust, fit_lam
from stratal.weighting import Weighting

N_FOLDS = 5


def check_folds(n_folds: object, units: int) -> int:
    """Return the number of folds as an int.

    Raises
    ------
    InputError
        Unless it is a whole number from 2 to the number of labelled units (or clusters).

    Examples
    --------
    >>> check_folds(5, 100)
    5
    """
    whole = isinstance(n_folds, numbers.Integral) and not isinstance(n_folds, bool)
    if whole and 2 <= int(n_folds) <= units:  # type: ignore[call-overload]
        return int(n_folds)  # type: ignore[call-overload, no-any-return]
    raise InputError(
        "the number of folds does not fit the labels",
        given=f"{n_folds!r} folds, {units} labels",
        allowed=f"2 to {units}" if units >= 2 else "2 folds or more, each with a label",
        action="Take fewer folds." if whole else None,
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

    Examples
    --------
    >>> assign_folds(np.array([0.9, 0.1, 0.5, 0.3]), np.array([0, 0, 1, 1]), 2)
    array([1, 0, 1, 0])
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
    """Return n_hk / n_h (K, H); in strata without labels the shares of the whole sample.

    Examples
    --------
    >>> fold_shares(np.array([0, 1, 1]), np.array([0, 0, 1]), 2)
    array([[0.5, 0. ],
           [0.5, 1. ]])
    """
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

    Examples
    --------
    >>> blended(np.array([[1.0, 3.0], [1.0, 3.0]]), np.array([0, 1]), np.array([0, 0]),
    ...         np.array([[0.5], [0.5]]), np.array([0.5]))
    array([1.5, 2.5])
    """
    own = fitted[np.arange(len(folds)), folds]
    average = np.einsum("nk,nk...->n...", shares.T[stratum], fitted)
    part = fractions[stratum].reshape(-1, *[1] * (own.ndim - 1))
    return np.asarray((1.0 - part) * own + part * average)


def sampled_fractions(weighting: Weighting, n_strata: int) -> FloatArray:
    """Return f_h (H,), the share of each of the proxy's strata that is labelled.

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> sampled_fractions(StratifiedWeighting(stratum=np.array([0, 0]), sizes=np.array([8])), 1)
    array([0.25])
    """
    fractions = weighting.sampled_fractions
    return fractions if len(fractions) == n_strata else np.full(n_strata, float(fractions.mean()))


def cross_fitted(
    chosen: ChosenLam,
    z: FloatArray,
    proxy: ProxyMoments | None,
    weighting: Weighting,
    folds: IntArray,
    **how: Any,
) -> tuple[ChosenLam, FloatArray | None]:
    """Return λ fitted without each unit's own fold: its mean per stratum, and each unit's (n, k).

    Where λ was not fitted it stays as it is; `how` are further arguments of `cross_fitted_lam`.

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> fixed, weighting = ChosenLam(lam=np.ones((1, 1)), spent=np.zeros(1)), StratifiedWeighting(
    ...     stratum=np.zeros(4, int), sizes=np.array([40]))
    >>> cross_fitted(fixed, np.zeros(4), None, weighting, np.array([0, 0, 1, 1]))[0].notes
    ('λ was not fitted, so there was nothing to cross-fit',)
    """
    if proxy is None or not chosen.fitted:
        note = "λ was not fitted, so there was nothing to cross-fit"
        return replace(chosen, notes=(*chosen.notes, note)), None
    by_unit, lam = cross_fitted_lam(z, proxy, weighting, folds, **how)
    note = f"λ was cross-fitted in {folds.max() + 1} folds"
    # Residuals of units that λ has not seen need no correction.
    return replace(chosen, lam=lam, spent=0.0 * chosen.spent, notes=(*chosen.notes, note)), by_unit


def cross_fitted_lam(
    z: FloatArray,
    proxy: ProxyMoments,
    weighting: Weighting,
    folds: IntArray,
    *,
    shrinkage: float | None = None,
    clip: bool = False,
    trust: Trust | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return each unit's λ (n, k), fitted without its own fold, and their mean per stratum (H, k).

    Parameters
    ----------
    z, proxy, weighting, shrinkage, trust
        See `stratal.estimation.lam.fit_lam`. Strata that keep too few labels take the pooled λ.
    folds : int (n,)
        From `assign_folds`.
    clip : bool
        Whether λ is kept within [0, 1].

    Examples
    --------
    >>> z, stratum = np.array([0.0, 1.0, 1.0, 2.0]), np.zeros(4, int)
    >>> proxy = ProxyMoments(values=z[:, None] / 2, stratum=stratum, sizes=np.array([40]),
    ...                      means=np.array([[0.5]]), covariances=np.array([[[0.1]]]))
    >>> from stratal.weighting import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=stratum, sizes=np.array([40]))
    >>> cross_fitted_lam(z, proxy, weighting, np.array([0, 0, 1, 1]))[1].round(3)
    array([[1.013]])
    """
    n_folds, n_strata = int(folds.max()) + 1, len(proxy.means)
    fits = np.stack([fit_lam(z, proxy, weighting, shrinkage, folds != k, trust).lam for k in range(n_folds)])
    if clip:
        fits = np.clip(fits, 0.0, 1.0)
    shares = fold_shares(folds, proxy.stratum, n_strata)
    of_units = np.moveaxis(fits, 0, 1)[proxy.stratum]
    by_unit = blended(of_units, folds, proxy.stratum, shares, sampled_fractions(weighting, n_strata))
    return by_unit, np.einsum("kh,khq->hq", shares, fits)
