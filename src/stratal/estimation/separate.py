"""Means with a separate unlabelled sample: labelled and unlabelled units are two draws from one source.

Sizes, proxy means and proxy covariances of the unlabelled units per stratum are all that is needed of them,
and the strata weights w_h come from elsewhere (Fisch et al. 2024; with one stratum Angelopoulos, Duchi &
Zrnic 2023). The target is the superpopulation. Where the labelled units are themselves drawn from the
unlabelled ones, use `stratal.estimation.mean`, which also knows the finite population correction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from stratal.arrays import FloatArray, IntArray, Record
from stratal.errors import InputError
from stratal.estimation.lam import fit_stratified
from stratal.estimation.mean import MINIMUM_FOR_FITTING, EstimateOptions, MeanEstimate, fixed_lam
from stratal.weighting.stratum_moments import (
    LabelledSpread,
    StratumMoments,
    pooled_stratum_covariances,
    satterthwaite,
    stratum_counts,
    stratum_covariances,
    stratum_means,
    stratum_moments,
)

_STRATPPI = EstimateOptions(estimator="stratppi")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unlabelled(Record):
    """What is known of the unlabelled sample.

    Parameters
    ----------
    counts : int (H,)
        Unlabelled units per stratum, at least 1.
    means : float (H, k)
        Proxy means.
    covariances : float (H, k, k)
        Proxy covariances, divisor counts − 1.

    Examples
    --------
    >>> Unlabelled.of(np.array([[0.2], [0.4]]), np.array([0, 0]), 1).covariances.round(3).ravel()
    array([0.02])
    """

    counts: IntArray
    means: FloatArray
    covariances: FloatArray

    def __post_init__(self) -> None:
        self._freeze()
        n_strata, k = self.means.shape
        if self.counts.shape != (n_strata,) or self.covariances.shape != (n_strata, k, k):
            raise InputError(
                "unlabelled counts, proxy means and covariances do not fit together",
                allowed="counts (H,), means (H, k), covariances (H, k, k)",
            )
        if np.any(self.counts < 1):
            raise InputError(
                "a stratum has no unlabelled unit",
                given=f"stratum {int(np.argmin(self.counts))}",
                action="Merge it with another stratum, or use estimator='horvitz-thompson'.",
            )

    @classmethod
    def of(cls, proxies: FloatArray, stratum: IntArray, n_strata: int) -> Unlabelled:
        """Return the summary of unlabelled proxies (m, k) in strata (m,)."""
        return cls(
            counts=stratum_counts(stratum, n_strata),
            means=np.nan_to_num(stratum_means(proxies, stratum, n_strata)),
            covariances=np.nan_to_num(stratum_covariances(proxies, stratum, n_strata)),
        )


def separate_options(options: EstimateOptions, n: int) -> EstimateOptions:
    """Return the options of an estimate from n labels and a separate unlabelled sample.

    `auto` fits one λ where there are 50 labels or more, and ignores the proxy where there are fewer.

    Examples
    --------
    >>> separate_options(EstimateOptions(), 60).estimator
    'ppi++'
    """
    notes, estimator = options.notes, options.estimator
    if options.target != "superpopulation":
        notes = (*notes, "the target is the superpopulation: the unlabelled units are a sample of their own")
    if estimator == "auto":
        fitting = options.lam is not None or n >= MINIMUM_FOR_FITTING
        estimator = "ppi++" if fitting else "horvitz-thompson"
    return replace(
        options, target="superpopulation", design="separate-samples", estimator=estimator, notes=notes
    )


def refuse_folds(cross_fit: int | None, calibration: str | None) -> None:
    """Raise an `InputError` for what a separate unlabelled sample does not have.

    Examples
    --------
    >>> refuse_folds(None, None)
    """
    if cross_fit is not None or calibration is not None:
        raise InputError(
            "a separate unlabelled sample has no cross-fitting and no calibration",
            action="Leave cross_fit and calibration out.",
        )


def separate_mean(
    z: FloatArray,
    proxies: FloatArray,
    stratum: IntArray,
    *,
    shares: FloatArray,
    unlabelled: Unlabelled,
    options: EstimateOptions = _STRATPPI,
    divisor: str = "n-1",
) -> MeanEstimate:
    """Return Σ w_h [λ_h · mean_unlabelled(ẑ) + mean_labelled(z − λ_h ẑ)] and its variance.

    The variance is Σ w_h² (λ_h² V_f,h / m_h + V_Δ,h / n_h) (Fisch et al. 2024, Theorem 2), and the λ that
    minimises it C_h / ((1 + n_h / m_h) V_h) (eq. 17), V_h the proxy's variance over labelled and unlabelled
    units together.

    Parameters
    ----------
    z : float (n,)
    proxies : float (n, k)
    stratum : int (n,)
    shares : float (H,)
        w_h; they sum to 1.
    unlabelled : Unlabelled
    options : EstimateOptions
        Its estimator is one of `horvitz-thompson`, `difference`, `ppi++` and `stratppi`; a shrinkage of 0 is
        the paper's own StratPPI.
    divisor : {"n-1", "n"}
        Of the labelled covariances and of the variances in the standard error; "n" is `ppi-python`'s
        convention.

    Raises
    ------
    InputError
        For an unknown estimator or divisor, shares that do not sum to 1, and a stratum without labels.

    Examples
    --------
    >>> unlabelled = Unlabelled.of(np.array([[0.2], [0.4], [0.6]]), np.zeros(3, dtype=int), 1)
    >>> z, proxies = np.array([0.0, 1.0]), np.array([[0.2], [0.6]])
    >>> result = separate_mean(z, proxies, np.zeros(2, dtype=int), shares=np.ones(1), unlabelled=unlabelled,
    ...                        options=EstimateOptions(estimator="difference"))
    >>> round(result.value, 3)
    0.5
    """
    n_strata = len(unlabelled.means)
    moments = stratum_moments(z, proxies, stratum, n_strata)
    _check(shares, moments, options.estimator, divisor)
    n, m = moments.counts, unlabelled.counts
    labelled_factor = np.where(n > 1, (n - 1) / n, 1.0) if divisor == "n" else np.ones(n_strata)
    unlabelled_factor = np.where(m > 1, (m - 1) / m, 1.0) if divisor == "n" else np.ones(n_strata)
    fitted = options.lam is None and options.estimator in ("ppi++", "stratppi")
    if fitted:
        # The minimiser of Σ a_h [(1 + n_h/m_h) λ'V_h λ − 2 λ'C_h] with a_h = w_h²/n_h.
        spread = _joint_covariances(moments, unlabelled) * (1.0 + n / m)[:, None, None]
        known = LabelledSpread.of(spread, moments.outcome_variances, moments.outcome_means, n, None)
        lam = fit_stratified(
            moments.cross_covariances * labelled_factor[:, None],
            spread,
            shares**2 / n,
            n,
            options.own_shrinkage,
            None if options.shrinkage == 0 else replace(known, information=np.array(np.inf)),
        ).lam
        lam = np.clip(lam, 0.0, 1.0) if options.clip else lam
    else:
        lam = fixed_lam(options, *unlabelled.means.shape)
    residuals = z - np.einsum("nk,nk->n", lam[stratum], proxies - unlabelled.means[stratum])
    means = stratum_means(residuals[:, None], stratum, n_strata)[:, 0]
    left = pooled_stratum_covariances(residuals[:, None], stratum, n, n + m)[:, 0, 0]
    imputed = np.einsum("hk,hkl,hl->h", lam, unlabelled.covariances, lam)
    labelled_part = shares**2 * left * labelled_factor / n
    parts = np.concatenate([labelled_part, shares**2 * imputed * unlabelled_factor / m])
    return MeanEstimate(
        value=float(shares @ means),
        design_variance=float(parts.sum()),
        population_variance=0.0,
        degrees_of_freedom=max(float(satterthwaite(parts, np.concatenate([n - 1.0, m - 1.0]))), 1.0),
        lam=lam,
        fitted=fitted,
        residuals=residuals,
        known=0.0,
        inflation=np.ones(n_strata),
    )


def _joint_covariances(moments: StratumMoments, unlabelled: Unlabelled) -> FloatArray:
    """Return the proxies' covariance over both samples together (H, k, k), divisor n + m − 1."""
    n = moments.counts[:, None, None].astype(np.float64)
    m = unlabelled.counts[:, None, None].astype(np.float64)
    gap = moments.proxy_means - unlabelled.means
    between = n * m / (n + m) * gap[:, :, None] * gap[:, None, :]
    within = (n - 1) * moments.proxy_covariances + (m - 1) * unlabelled.covariances
    return np.asarray((within + between) / (n + m - 1))


def _check(shares: FloatArray, moments: StratumMoments, estimator: str, divisor: str) -> None:
    allowed = ("horvitz-thompson", "difference", "ppi++", "stratppi")
    if estimator not in allowed:
        raise InputError("no such estimator", given=repr(estimator), allowed=", ".join(allowed))
    if divisor not in ("n-1", "n"):
        raise InputError("no such divisor", given=repr(divisor), allowed="'n-1' or 'n'")
    if shares.shape != moments.counts.shape or abs(float(shares.sum()) - 1.0) > 1e-9:
        raise InputError(
            "strata weights must sum to 1, one per stratum",
            given=f"{shares}",
            action="Divide them by their sum.",
        )
    if np.any(moments.counts == 0):
        raise InputError(
            "a stratum has no label",
            given=f"stratum {int(np.argmin(moments.counts))}",
            action="Merge it with another stratum first.",
        )
