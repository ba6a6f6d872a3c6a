"""The population mean: one formula, θ̂ = Σ_h W_h [λ_h · mean_{U_h}(ẑ) + mean_{S_h}(z − λ_h ẑ)].

An estimator turns outcome and proxies into one per-unit variable (z, or the residual z − λẑ) and a known
total; the `Weighting` supplies weights and the variance of any variable. Which λ is taken gives the estimator
its name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray, Record
from stratal.errors import InputError, near_names
from stratal.estimation.folds import cross_fitted
from stratal.estimation.lam import SHRINKAGE, ChosenLam, ProxyMoments, Trust, fit_lam, inflation, intercept
from stratal.intervals.evidence import OutcomeKind, require_target
from stratal.weighting import Weighting

ESTIMATORS = ("horvitz-thompson", "difference", "ppi++", "stratppi", "hajek", "post-stratified")
MINIMUM_FOR_FITTING = 50
_MINIMUM_CLUSTERS = 20
_MINIMUM_UNEQUAL = 8
"""Clusters, and labels as many as they are worth under unequal weights, at which fitting λ to a proxy that is
noise costs 5 % and 7 % more error than Hájek's mean (docs/decisions/0018)."""
_HIGHEST_LEVERAGE = 0.75
"""Where the leverage is cut, as for regressions: beyond it a residual over what is left of it is noise."""
_NEEDS_PROXY = ("difference", "ppi++", "stratppi")
_UNEQUAL = ("poisson", "proportional-to-size", "given-weights", "margins")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EstimateOptions(Record):
    """How an estimate is made, and what it says of itself.

    Parameters
    ----------
    estimator : str
        `auto` (see `default_estimator`) or one of `ESTIMATORS`.
    target : {"population", "superpopulation"}
    outcome : {"binary", "bounded", "unbounded"}, optional
        Inferred where that is safe: only 0 and 1 is binary, given bounds are bounds, anything else is
        unbounded.
    bounds : (float, float), optional
        What the outcome cannot leave.
    lam : float, (k,) or (H, k), optional
        A given λ instead of the estimator's own.
    clip : bool
        Whether a fitted λ is kept within [0, 1]. Off by default: an interval from a clipped λ and a test from
        a free one contradict each other.
    shrinkage : float
        See `stratal.estimation.lam.fit_stratified`.
    stratum_weights_known : bool
        For the superpopulation: whether the W_h are known rather than drawn with the N units.
    folds : int (n,), optional
        Folds for cross-fitting: each unit's λ is fitted on the other folds (`stratal.estimation.folds`).
    scaled : bool
        Whether the proxy predicts the outcome on its own scale. If not, a given λ and λ = 1 are refused.
    design : str
        Named in the output.
    stratum_names : tuple of str (H,), optional
    drawn : int, optional
        Units drawn, labelled or not.
    notes : tuple of str
        Carried into the result.

    Raises
    ------
    InputError
        For an unknown estimator or target.

    Examples
    --------
    >>> EstimateOptions(estimator="ppi++").shrinkage
    3.0
    """

    estimator: str = "auto"
    target: str = "population"
    outcome: OutcomeKind | None = None
    bounds: tuple[float, float] | None = None
    lam: Any = None
    clip: bool = False
    shrinkage: float = SHRINKAGE
    stratum_weights_known: bool = False
    folds: IntArray | None = None
    scaled: bool = True
    design: str = "stratified"
    stratum_names: tuple[str, ...] | None = None
    drawn: int | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._freeze()
        if self.estimator not in ("auto", *ESTIMATORS):
            raise InputError(
                "no such estimator",
                given=repr(self.estimator),
                allowed=near_names(self.estimator, ESTIMATORS),
            )
        require_target(self.target)

    @property
    def own_shrinkage(self) -> float | None:
        """How far a stratum's own λ is shrunk towards the pooled one; None for one λ."""
        return self.shrinkage if self.estimator == "stratppi" else None

    @property
    def fitting(self) -> dict[str, Any]:
        """How λ is fitted; `shrinkage=0` is the papers' own."""
        return {"shrinkage": self.own_shrinkage, "trust": Trust.of(self)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeanEstimate(Record):
    """A mean with its variance, and the per-unit variable that both came from.

    Parameters
    ----------
    value : float
    design_variance : float
        The part due to drawing n of the N units.
    population_variance : float
        The part due to drawing the N units themselves; 0 for the target `population`.
    degrees_of_freedom : float
        Of the design variance, less what fitting λ took.
    lam : float (H, k)
    fitted : bool
        On the labels.
    residuals : float (n,)
        z − λ_h (ẑ − mean_{U_h} ẑ) (stratified), z − λẑ (other designs), or Hájek's linearised variable.
    known : float
        What is added to the weighted mean of the residuals.
    inflation : float (H,)
        What each stratum's residual variance was multiplied by, for the labels that fitting λ used up.
    notes : tuple of str

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.array([0, 0]), sizes=np.array([10]))
    >>> mean_estimate(np.array([0.0, 1.0]), weighting=weighting).value
    0.5
    """

    value: float
    design_variance: float
    population_variance: float
    degrees_of_freedom: float
    lam: FloatArray
    fitted: bool
    residuals: FloatArray
    known: float
    inflation: FloatArray
    notes: tuple[str, ...] = ()

    @property
    def variance(self) -> float:
        """Of the target asked for."""
        return self.design_variance + self.population_variance


_PLAIN = EstimateOptions(estimator="horvitz-thompson")


def default_estimator(design: str, n: int, n_strata: int, k: int, *, scaled: bool) -> str:
    """Return the estimator that `auto` stands for: fixed by design and sizes, never by results.

    Parameters
    ----------
    design : str
    n : int
        Labels; clusters, where these were drawn; fewer under unequal weights (Kish).
    n_strata : int
        H.
    k : int
        Number of proxies.
    scaled : bool
        Whether the proxy predicts the outcome on its own scale.

    Examples
    --------
    >>> default_estimator("simple-random", 300, 1, 1, scaled=True)
    'ppi++'
    >>> default_estimator("stratified", 300, 10, 1, scaled=True)
    'horvitz-thompson'
    >>> default_estimator("clusters", 19, 1, 1, scaled=True)
    'hajek'
    """
    if design == "clusters" or design in _UNEQUAL:
        # λ = 1 is no choice for few labels: with a score that is inverted it is wrong by the score's spread.
        enough = (_MINIMUM_CLUSTERS if design == "clusters" else _MINIMUM_UNEQUAL) * k
        return "ppi++" if k > 0 and scaled and n >= enough else "hajek"
    if design == "simple-random" and n_strata <= 1 and k > 0 and scaled and n >= MINIMUM_FOR_FITTING * k:
        return "ppi++"
    return "horvitz-thompson"


def mean_estimate(
    z: FloatArray,
    proxy: ProxyMoments | None = None,
    *,
    weighting: Weighting,
    options: EstimateOptions = _PLAIN,
    **changed: Any,
) -> MeanEstimate:
    """Estimate the population mean of z.

    Parameters
    ----------
    z : float (n,)
        Outcome of the labelled units.
    proxy : ProxyMoments, optional
        Needed by every estimator but `horvitz-thompson`, `hajek` and `post-stratified`.
    weighting : Weighting
        The design, realised.
    options : EstimateOptions
        The estimator is `horvitz-thompson` (λ = 0) unless given, `difference` (λ = 1 for one proxy), `ppi++`
        (one fitted λ per proxy), `stratppi` (one per stratum), `hajek`, or `post-stratified` (the weighting
        is that of the strata known afterwards).
    changed
        Fields of the options that differ.

    Raises
    ------
    InputError
        For an unknown estimator or target, and where the estimator needs proxies or strata that are not
        there.

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.array([0, 0]), sizes=np.array([10]))
    >>> proxy = ProxyMoments(values=np.array([[0.2], [0.6]]), stratum=np.array([0, 0]), sizes=np.array([10]),
    ...                      means=np.array([[0.5]]), covariances=np.array([[[0.04]]]))
    >>> z = np.array([0.0, 1.0])
    >>> round(mean_estimate(z, proxy, weighting=weighting, estimator="difference").value, 3)
    0.6
    """
    options = replace(options, **changed)
    chosen, by_unit = choose_lam(z, proxy, weighting, options), None
    if options.folds is not None:
        how = {"clip": options.clip, **options.fitting}
        chosen, by_unit = cross_fitted(chosen, z, proxy, weighting, options.folds, **how)
    residuals, known = _residuals(z, proxy, weighting, chosen.lam, by_unit)
    fitted = chosen.fitted and not weighting.random_within_strata
    if fitted and weighting.groups is not None:
        constant = intercept(residuals, weighting)
        residuals, known = residuals - constant, known + constant
    elif fitted or options.estimator == "hajek":
        residuals, mean = _hajek(residuals, weighting)
        known += mean
    value = known + float(weighting.mean(residuals[:, None])[0])
    lost = chosen.spent
    widened = inflation(_counts(weighting, len(lost)), lost) if np.any(lost) else np.ones(len(lost))
    varying = residuals
    if fitted or options.estimator == "hajek":
        varying = weighting.stretched(residuals)
    if chosen.leverages is not None and by_unit is None:
        varying, widened = _left_out(varying, chosen.leverages, weighting), np.ones(len(lost))
    parts = weighting.contributions(varying)
    design_variance = float(np.sum(parts * (widened if len(parts) == len(widened) else widened.mean())))
    freedom = max(weighting.degrees_of_freedom(residuals) - float(lost.sum()), 1.0)
    population_variance = 0.0
    if options.target == "superpopulation":
        extra = weighting.population_covariance(
            z[:, None], stratum_weights_known=options.stratum_weights_known
        )
        population_variance = float(extra[0, 0])
    return MeanEstimate(
        value=value,
        design_variance=design_variance,
        population_variance=population_variance,
        degrees_of_freedom=freedom,
        lam=chosen.lam,
        fitted=chosen.fitted,
        residuals=residuals,
        known=known,
        inflation=widened,
        notes=chosen.notes,
    )


def choose_lam(
    z: FloatArray, proxy: ProxyMoments | None, weighting: Weighting, options: EstimateOptions
) -> ChosenLam:
    """Return the λ that the options ask for.

    Raises
    ------
    InputError
        Where there is no proxy to multiply, for a given λ of the wrong shape, and where strata are lacking.

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.array([0, 0]), sizes=np.array([10]))
    >>> choose_lam(np.array([0.0, 1.0]), None, weighting, EstimateOptions()).lam.shape
    (1, 0)
    """
    estimator, given = options.estimator, options.lam
    if proxy is None or (proxy.means.shape[1] == 0 and given is None and estimator in ("ppi++", "stratppi")):
        if given is not None or estimator in _NEEDS_PROXY:
            raise InputError(
                f"estimator '{estimator}' needs a proxy" if given is None else "a given λ needs a proxy",
                action="Use estimator='horvitz-thompson', or give the population a proxy.",
            )
        return ChosenLam(lam=np.zeros((1, 0)), spent=np.zeros(1))
    n_strata, k = proxy.means.shape
    if given is not None or estimator not in ("ppi++", "stratppi"):
        return ChosenLam(lam=fixed_lam(options, n_strata, k), spent=np.zeros(n_strata))
    found = fit_lam(z, proxy, weighting, **options.fitting)
    if not np.any(found.lam):
        why = "too few labels, a constant proxy, or weights that were fitted to it, leave nothing to fit"
        return replace(found, notes=(f"λ is 0: {why}",))
    if options.clip:
        lam, notes = np.clip(found.lam, 0.0, 1.0), ("λ was clipped to [0, 1]",)
        if not np.any(lam):  # nothing of what was fitted is used, so nothing is charged for it
            return replace(found, lam=lam, notes=notes, spent=0.0 * found.spent, leverages=None)
        return replace(found, lam=lam, notes=notes)
    return found


def fixed_lam(options: EstimateOptions, n_strata: int, k: int) -> FloatArray:
    """Return the λ (H, k) that is given, or fixed by the estimator's name.

    Examples
    --------
    >>> fixed_lam(EstimateOptions(estimator="difference"), 2, 1)
    array([[1.],
           [1.]])
    """
    given = options.lam
    if given is None:
        return np.full((n_strata, k), 1.0 / max(k, 1) if options.estimator == "difference" else 0.0)
    try:
        lam = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("λ is not a number", given=repr(given), allowed="finite numbers") from None
    if not np.all(np.isfinite(lam)):
        raise InputError("λ must be finite", given=given, action="Leave lam out to have it fitted.")
    if lam.ndim == 1 and k == 1 and lam.shape[0] == n_strata and n_strata > 1:
        lam = lam[:, None]
    try:
        return np.array(np.broadcast_to(lam, (n_strata, k)))
    except ValueError:
        raise InputError(
            "λ has the wrong shape",
            given=f"{lam.shape}",
            allowed=f"one number, ({k},) or ({n_strata}, {k})",
        ) from None


def _residuals(
    z: FloatArray,
    proxy: ProxyMoments | None,
    weighting: Weighting,
    lam: FloatArray,
    by_unit: FloatArray | None = None,
) -> tuple[FloatArray, float]:
    """Return the per-unit residual (n,) and the known total that its weighted mean lacks.

    A λ that differs between units (n, k) multiplies what the proxy departs from its stratum's mean; `lam`
    is then its mean per stratum.
    """
    if proxy is None or not (np.any(lam) or np.any(by_unit)):
        return z, 0.0
    of_units = lam[proxy.stratum] if by_unit is None else by_unit
    by_stratum = np.einsum("hk,hk->h", lam, proxy.means)
    everywhere = float(proxy.shares @ by_stratum)
    centred = proxy.values - proxy.means[proxy.stratum]
    if not weighting.random_within_strata:
        if by_unit is None:
            return z - np.einsum("nk,nk->n", of_units, proxy.values), everywhere
        return z - np.einsum("nk,nk->n", of_units, centred) - by_stratum[proxy.stratum], everywhere
    residuals = z - np.einsum("nk,nk->n", of_units, centred)
    labelled = float(weighting.weights @ by_stratum[proxy.stratum])
    known = everywhere - labelled if np.any(weighting.counts == 0) else 0.0
    return residuals, known


def _hajek(residuals: FloatArray, weighting: Weighting) -> tuple[FloatArray, float]:
    """Return the linearised variable of Σ w y / Σ w (Hájek 1971; Särndal et al. 1992, eq. 5.7.4)."""
    weights = weighting.weights
    total = float(weights.sum())
    mean = float(weights @ residuals) / total
    return (residuals - mean) / total, mean


def _left_out(residuals: FloatArray, leverages: FloatArray, weighting: Weighting) -> FloatArray:
    """Return the residuals (n,) as if each unit had been left out of the fit: over 1 − leverage ("HC3").

    Mean and λ both follow the units with large weights, whose residuals are too small by their own pull
    (MacKinnon & White 1985). The factor of units that are alike is that of a variance with n − 1.
    """
    pull, alike = leverages, 1.0
    if weighting.groups is None:
        weights = np.abs(weighting.weights)
        pull, alike = leverages + weights / weights.sum(), 1.0 - 1.0 / len(residuals)
    return np.asarray(residuals * alike / (1.0 - np.minimum(pull, _HIGHEST_LEVERAGE)))


def _counts(weighting: Weighting, n_strata: int) -> FloatArray:
    """Return the labels that λ was fitted on per stratum (H,): effective ones where strata are not drawn."""
    if weighting.random_within_strata:
        return np.asarray(weighting.counts, dtype=np.float64)
    return np.full(n_strata, weighting.effective_draws / n_strata)
