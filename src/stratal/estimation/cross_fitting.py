"""Cross-fitting: each labelled unit gets a λ (or a calibrated proxy) that is fitted on the other folds.

If units are drawn without replacement, this value is mixed with the mean of the fits (`combine_fits`).
"""

from __future__ import annotations

import numbers
from dataclasses import replace

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray, code_count, means_of_sums
from stratal.designs import Weighting
from stratal.errors import InputError
from stratal.estimation.lam import ChosenLam, LabelledProxies, LambdaPrior, fit_lam

# Default number of folds: each fit uses four fifths of the labels. More folds take longer for little gain.
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
    if units < 2:
        action = "Leave out cross_fit= (--cross-fit) until there are more labels."
    elif is_whole_number and int(n_folds) > units:  # type: ignore[call-overload]
        action = "Use fewer folds."
    else:
        action = f"Use 2 or more folds, such as {min(N_FOLDS, units)}."
    raise InputError(
        "this number of folds is not possible with these labels",
        given=f"{n_folds!r} folds, {units} labels",
        allowed=f"2 to {units}" if units >= 2 else "2 folds or more, each with a label",
        action=action,
    )


def assign_folds(
    keys: AnyArray, stratum: IntArray, n_folds: int, cluster: IntArray | None = None
) -> IntArray:
    """Return each unit's fold (n,), 0 … K − 1. Folds have about equal sizes, within strata and overall.

    Parameters
    ----------
    keys : (n,)
        Random numbers; their order determines the folds.
    stratum : int (n,)
    n_folds : int
        K.
    cluster : int (n,), optional
        Units of one cluster share a fold.
    """
    if cluster is not None:
        # A cluster has the smallest random number of its units, so that the order of the units does not
        # matter.
        ascending = np.argsort(keys, kind="stable")
        names, first = np.unique(cluster[ascending], return_index=True)
        check_folds(n_folds, len(names))
        cluster_keys = keys[ascending][first]
        cluster_folds = assign_folds(cluster_keys, np.zeros(len(names), np.int64), n_folds)
        return cluster_folds[np.searchsorted(names, cluster)]
    check_folds(n_folds, len(keys))
    # Consecutive units of a stratum get consecutive folds, and the next stratum continues the count.
    folds = np.empty(len(keys), np.int64)
    folds[np.lexsort((keys, stratum))] = np.arange(len(keys)) % n_folds
    return folds


def fold_shares(folds: IntArray, stratum: IntArray, n_strata: int) -> FloatArray:
    """Return the share n_hk / n_h of each fold k in the labels of each stratum h (K, H).

    Strata without labels have the shares of the whole sample.
    """
    n_folds = code_count(folds)
    codes = folds * n_strata + stratum
    fold_counts = np.bincount(codes, minlength=n_folds * n_strata).reshape(n_folds, n_strata)
    counts = fold_counts.sum(axis=0)
    overall_shares = fold_counts.sum(axis=1) / len(folds)
    return means_of_sums(fold_counts, counts, empty=overall_shares[:, None])


def combine_fits(
    fitted: FloatArray, folds: IntArray, stratum: IntArray, shares: FloatArray, fractions: FloatArray
) -> FloatArray:
    """Return the value of each unit (n, …), (1 − f_h) φ_own + f_h Σ_k (n_hk / n_h) φ_k.

    φ_k is the value by the fit without fold k, and φ_own that by the fit without the unit's own fold. φ_own
    alone is biased for draws without replacement: given the other folds, fold k is a random sample of the
    units that are not in them, and their mean differs from that of the stratum. With the second term, the
    coefficient of φ_k is proportional to the mean of fold k minus that of these units, which is 0 on average.

    Parameters
    ----------
    fitted : float (n, K, …)
        φ_k of each unit: λ, or the calibrated proxy minus its stratum mean.
    folds, stratum : int (n,)
    shares : float (K, H)
        From `fold_shares`.
    fractions : float (H,)
        f_h; 0 for draws with replacement.
    """
    own_fit = fitted[np.arange(len(folds)), folds]
    average = np.einsum("nk,nk...->n...", shares.T[stratum], fitted)
    unit_fractions = fractions[stratum].reshape(-1, *[1] * (own_fit.ndim - 1))
    return np.asarray((1.0 - unit_fractions) * own_fit + unit_fractions * average)


def sampled_fractions(weighting: Weighting, n_strata: int) -> FloatArray:
    """Return f_h (H,), the share of each of the proxy's strata that is labelled."""
    fractions = weighting.sampled_fractions
    if len(fractions) == n_strata:
        return fractions
    # The design has other strata than the proxy.
    return np.full(n_strata, float(fractions.mean()))


def cross_fit_lam(
    chosen: ChosenLam,
    z: FloatArray,
    proxy: LabelledProxies | None,
    weighting: Weighting,
    folds: IntArray,
    *,
    shrinkage: float | None = None,
    clip: bool = False,
    prior: LambdaPrior | None = None,
) -> tuple[ChosenLam, FloatArray | None]:
    """Return the mean λ of each stratum (H, q), and that of each unit (n, q) by `combine_fits`; q proxies.

    A λ that was not fitted is unchanged; that of the units is then None.

    Parameters
    ----------
    chosen : ChosenLam
    z : float (n,)
        Outcome of the labelled units.
    proxy, weighting, shrinkage, prior
        See `fit_lam`. Strata with too few remaining labels have the pooled λ.
    folds : int (n,)
        From `assign_folds`.
    clip : bool
        Whether λ is limited to [0, 1].
    """
    # A λ that was stated, or that the estimator fixes, does not depend on labels.
    if proxy is None or not chosen.fitted:
        note = "λ was not fitted, so there was nothing to cross-fit"
        return replace(chosen, notes=(*chosen.notes, note)), None
    n_folds = code_count(folds)
    n_strata = proxy.n_strata
    fits = np.stack([fit_lam(z, proxy, weighting, shrinkage, folds != k, prior).lam for k in range(n_folds)])
    if clip:
        fits = np.clip(fits, 0.0, 1.0)
    shares = fold_shares(folds, proxy.stratum, n_strata)
    unit_fits = np.moveaxis(fits, 0, 1)[proxy.stratum]
    by_unit = combine_fits(unit_fits, folds, proxy.stratum, shares, sampled_fractions(weighting, n_strata))
    note = f"λ was cross-fitted in {n_folds} folds"
    lam = np.einsum("kh,khq->hq", shares, fits)
    # The degrees of freedom are not corrected for a fit to the unit's own label: only the part f_h of its λ
    # depends on it. The estimated variance was 0.93 to 1.04 times the true one (docs/decisions/0008).
    return replace(
        chosen, lam=lam, n_parameters=0.0 * chosen.n_parameters, notes=(*chosen.notes, note)
    ), by_unit
