"""The mean of one outcome of each labelled unit, from what is known of the outcome, λ and weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import LARGEST_NUMBER, BoolArray, FloatArray, IntArray, field_values, refuse_extremes
from stratal.designs import Weighting
from stratal.designs.external_weights import SeparateSamples
from stratal.designs.sample import Design, Sample
from stratal.designs.stratum_moments import (
    pooled_stratum_covariances,
    satterthwaite,
    stratum_means,
    stratum_moments,
)
from stratal.errors import InputError, check_choice
from stratal.estimation import lam as tuning
from stratal.estimation import respondents
from stratal.estimation.calibrated import Calibrating, calibrated_estimator, calibrated_proxy, sample_folds
from stratal.estimation.cross_fitting import N_FOLDS, cross_fitted
from stratal.estimation.estimand import Request, as_estimand
from stratal.estimation.estimate import Estimate
from stratal.estimation.labelled_units import LabelledUnits
from stratal.estimation.linearised import Linearised, drawn_variance, target_df
from stratal.estimation.plan_check_notes import NoteInputs, PlannedOutcome
from stratal.estimation.stratum_table import StratumTable
from stratal.intervals.evidence import Evidence, infer_outcome
from stratal.population.summary import StratumSummary
from stratal.protocols import Keywords
from stratal.proxy.history import HISTORY, history_columns

ESTIMATORS = ("horvitz-thompson", "difference", "ppi++", "stratppi", "hajek", "post-stratified")

# Labels for each proxy from which `auto` fits λ: with fewer, λ has too large an error of its own.
MINIMUM_FOR_FITTING = 50
# Labels for each of several proxies from which `auto` fits λ in strata of the first. λ is shrunk by the
# informative labels, so that with fewer labels little is gained and little lost.
_LABELS_PER_PROXY = 15
# With 2 labels in each of 50 strata a fitted λ covers .931, with 3 at least .941 (2,000 draws).
_LABELS_PER_STRATUM = 3
# Where the leverage is cut, as for regressions: beyond it a residual over what is left of it is noise.
_HIGHEST_LEVERAGE = 0.75
_NEEDS_PROXY = ("difference", "ppi++", "stratppi")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EstimateOptions(Request):
    """How an estimate is made, and what it says of itself.

    Parameters
    ----------
    estimator : str
        `auto` (see `default_estimator`) or one of `ESTIMATORS`.
    target, outcome, bounds, lam, clip, stratum_weights_known
        As of `stratal.estimate`. λ is not clipped by default: an interval from a clipped λ and a test from a
        free one contradict each other.
    shrinkage : float
        See `stratal.estimation.lam.fit_stratified`.
    folds : int (n,), optional
        Folds for cross-fitting: each unit's λ is fitted on the other folds (`stratal.estimation.lam`).
    scaled : bool
        Whether the proxy predicts the outcome on its own scale. If not, a given λ and λ = 1 are refused.
    design : str
        Named in the output.
    proxy_strata : bool
        Whether the strata may have been built from the proxy; see `default_estimator`.
    notes : tuple of str
        Carried into the result.

    Raises
    ------
    InputError
        For an unknown estimator or target.
    """

    shrinkage: float = tuning.SHRINKAGE_LABELS
    folds: IntArray | None = None
    scaled: bool = True
    design: str = "stratified"
    proxy_strata: bool = True
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._freeze()
        Request.__post_init__(self)
        check_choice("estimator", self.estimator, ("auto", *ESTIMATORS))

    @classmethod
    def of(cls, request: Request, **more: object) -> EstimateOptions:
        """Return the options of a request, and more."""
        return cls(**field_values(request) | more)

    @property
    def own_shrinkage(self) -> float | None:
        """How far a stratum's own λ is shrunk towards the pooled one; None for one λ."""
        if self.estimator == "stratppi":
            return self.shrinkage
        return None

    @property
    def fitting(self) -> Keywords:
        """How λ is fitted; `shrinkage=0` is the papers' own."""
        prior = tuning.LambdaPrior(bounds=self.bounds, scaled=self.scaled, published=self.shrinkage == 0)
        return {"shrinkage": self.own_shrinkage, "prior": prior}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeanEstimate(Linearised):
    """A mean with its variance, and the per-unit variable that both came from.

    Parameters
    ----------
    value, design_variance, population_variance
        As of `Linearised`.
    variable : float (n,)
        z − λ_h (ẑ − mean_{U_h} ẑ) (stratified), z − λẑ (other designs), or Hájek's linearised variable.
    degrees_of_freedom : float
        Of the design variance, less what fitting λ took.
    lam : float (H, k)
    offset : float
        What is added to the weighted mean of the variable.
    notes : tuple of str
    """

    lam: FloatArray
    offset: float = 0.0
    notes: tuple[str, ...] = ()


_PLAIN = EstimateOptions(estimator="horvitz-thompson")


def default_estimator(
    design: str, n: int, n_strata: int, k: int, *, scaled: bool, proxy_strata: bool = True
) -> str:
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
    proxy_strata : bool
        Whether the strata may have been built from the proxy, which leaves λ little within them.
    """
    least = labels_for_proxies(design, n_strata, k, proxy_strata=proxy_strata)
    if k > 0 and scaled and least is not None and n >= least:
        return "ppi++"
    # λ = 1 is not a choice for few labels: with a score that is inverted it is wrong by the score's spread.
    return "hajek" if _least_for_weights(design) else "horvitz-thompson"


def labels_for_proxies(design: str, n_strata: int, k: int, *, proxy_strata: bool = True) -> int | None:
    """Return the labels from which `auto` uses proxies, k of them or fewer; None if it never does.

    The parameters are those of `default_estimator`.
    """
    least = _least_for_weights(design)
    if least:
        return least * k
    if design in _RANDOM_WITHIN_STRATA and n_strata <= 1:
        return MINIMUM_FOR_FITTING  # for the first proxy; `_first_proxies` drops those with too few labels
    # λ is fitted within strata, whose means take a degree of freedom each (Fisch et al. 2024).
    if design == "stratified" and not proxy_strata:
        return max(_LABELS_PER_STRATUM * n_strata, MINIMUM_FOR_FITTING * k + n_strata)
    if design == "stratified" and k > 1:
        # Strata of one proxy leave the others their information. λ is shrunk while labels are few.
        return max(MINIMUM_FOR_FITTING, _LABELS_PER_PROXY * k)
    return None


# Designs that are simple random samples if there is one stratum.
_RANDOM_WITHIN_STRATA = ("simple-random", "stratified")


def _least_for_weights(design: str) -> int:
    """Return the labels or clusters for each proxy under a design of unequal weights; 0 for others."""
    design_type: type[Design] | None = Design.of_kind(design)
    if design_type is None:
        return 0
    return design_type.hajek_below


def mean_estimate(
    z: FloatArray,
    proxy: tuning.LabelledProxies | None = None,
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
    proxy : LabelledProxies, optional
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
    """
    if changed:
        options = replace(options, **changed)
    chosen = choose_lam(z, proxy, weighting, options)
    by_unit = None
    if options.folds is not None:
        fold_options = {"clip": options.clip, **options.fitting}
        chosen, by_unit = cross_fitted(chosen, z, proxy, weighting, options.folds, **fold_options)
    residuals, offset = _residuals(z, proxy, weighting, chosen.lam, by_unit)
    fitted = chosen.fitted and not weighting.random_within_strata
    lost = chosen.spent
    if fitted and weighting.groups is not None:
        constant = tuning.intercept(residuals, weighting)
        residuals = residuals - constant
        offset = offset + constant
    elif fitted or options.estimator == "hajek":
        # The linearised variable of Σ w y / Σ w (Hájek 1971; Särndal et al. 1992, eq. 5.7.4).
        total = float(weighting.weights.sum())
        mean = float(weighting.weights @ residuals) / total
        residuals = (residuals - mean) / total
        offset = offset + mean
    varying = residuals
    if fitted or options.estimator == "hajek":
        varying = weighting.few_cluster_residuals(residuals)
    # What each stratum's residual variance is multiplied by, for the labels that fitting λ used up.
    widened = np.ones(len(lost))
    if chosen.leverages is not None and by_unit is None:
        varying = _left_out(varying, chosen.leverages, weighting)
    elif lost.any():
        widened = tuning.inflation(_counts(weighting, len(lost)), lost)
    parts, own_df = weighting.parts_and_df(residuals)
    if varying is not residuals:
        parts = weighting.contributions(varying)
    design_variance = float((parts * (widened if len(parts) == len(widened) else widened.mean())).sum())
    freedom = max(own_df - float(lost.sum()), 1.0)
    drawn = 0.0
    if options.target != "population":
        weights_known = options.stratum_weights_known
        drawn = drawn_variance(z, weighting, options.target, stratum_weights_known=weights_known)
    return MeanEstimate(
        value=offset + float(weighting.mean(residuals[:, None])[0]),
        design_variance=design_variance,
        population_variance=drawn,
        degrees_of_freedom=target_df(freedom, z, weighting, design_variance, drawn),
        variable=residuals,
        lam=chosen.lam,
        offset=offset,
        notes=chosen.notes,
    )


def choose_lam(
    z: FloatArray, proxy: tuning.LabelledProxies | None, weighting: Weighting, options: EstimateOptions
) -> tuning.ChosenLam:
    """Return the λ that the options ask for.

    Raises
    ------
    InputError
        Where there is no proxy to multiply, for a given λ of the wrong shape, and where strata are lacking.
    """
    estimator = options.estimator
    lam = options.lam
    if proxy is None or (proxy.values.shape[1] == 0 and lam is None and estimator in ("ppi++", "stratppi")):
        if lam is not None or estimator in _NEEDS_PROXY:
            if lam is None:
                problem = f"estimator '{estimator}' needs a proxy"
            else:
                problem = "a given λ needs a proxy"
            raise InputError(
                problem, action="Use estimator='horvitz-thompson', or give the population a proxy."
            )
        return tuning.ChosenLam(lam=np.zeros((1, 0)), spent=np.zeros(1))
    n_strata = proxy.n_strata
    k = proxy.values.shape[1]
    if lam is not None or estimator not in ("ppi++", "stratppi"):
        return tuning.ChosenLam(lam=fixed_lam(options, n_strata, k), spent=np.zeros(n_strata))
    fit = tuning.fit_lam(z, proxy, weighting, **options.fitting)
    if not np.any(fit.lam):
        why = "too few labels, a constant proxy, or weights that were fitted to it, leave nothing to fit"
        return replace(fit, notes=(f"the proxy is not used (λ is 0): {why}",))
    if options.clip:
        fit = replace(fit, lam=np.clip(fit.lam, 0.0, 1.0), notes=("λ was clipped to [0, 1]",))
        if not np.any(fit.lam):  # nothing of what was fitted is used, so nothing is charged for it
            fit = replace(fit, spent=0.0 * fit.spent, leverages=None)
    return fit


def fixed_lam(options: EstimateOptions, n_strata: int, k: int) -> FloatArray:
    """Return the λ (H, k) that is given, or fixed by the estimator's name."""
    requested_lam = options.lam
    if requested_lam is None:
        return np.full((n_strata, k), 1.0 / max(k, 1) if options.estimator == "difference" else 0.0)
    try:
        lam = np.asarray(requested_lam, dtype=np.float64)
        if lam.shape == (n_strata,) and k == 1 < n_strata:
            lam = lam[:, None]
        if np.all(np.isfinite(lam)):
            return np.array(np.broadcast_to(lam, (n_strata, k)))
    except (TypeError, ValueError):
        pass
    problem = "λ has the wrong shape, or is not finite"
    allowed = f"one finite number, ({k},) or ({n_strata}, {k})"
    raise InputError(
        problem, given=repr(requested_lam), allowed=allowed, action="Leave lam out to have it fitted."
    )


def _residuals(
    z: FloatArray,
    proxy: tuning.LabelledProxies | None,
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
    if by_unit is None:
        of_units = lam[proxy.stratum]
    else:
        of_units = by_unit
    by_stratum = np.einsum("hk,hk->h", lam, proxy.summary.proxy_means)
    everywhere = float(proxy.summary.sizes / proxy.summary.size @ by_stratum)
    unit_offsets = by_stratum[proxy.stratum]
    residuals = z - np.einsum("nk,nk->n", of_units, proxy.values - proxy.stratum_means)
    if not weighting.random_within_strata:
        return residuals - unit_offsets, everywhere
    missing = np.any(weighting.counts == 0)
    return residuals, everywhere - float(weighting.weights @ unit_offsets) if missing else 0.0


def _left_out(residuals: FloatArray, leverages: FloatArray, weighting: Weighting) -> FloatArray:
    """Return the residuals (n,) as if each unit had been left out of the fit: over 1 − leverage ("HC3").

    Mean and λ both follow the units with large weights, whose residuals are too small by their own pull
    (MacKinnon & White 1985). The factor of units that are alike is that of a variance with n − 1.
    """
    pull = leverages
    alike = 1.0
    if weighting.groups is None:
        weights = np.abs(weighting.weights)
        pull = leverages + weights / weights.sum()
        alike = 1.0 - 1.0 / len(residuals)
    return np.asarray(residuals * alike / (1.0 - np.minimum(pull, _HIGHEST_LEVERAGE)))


def _counts(weighting: Weighting, n_strata: int) -> FloatArray:
    """Return the labels that λ was fitted on per stratum (H,): effective ones where strata are not drawn."""
    if weighting.random_within_strata:
        return np.asarray(weighting.counts, dtype=np.float64)
    return np.full(n_strata, weighting.effective_draws / n_strata)


def separate_mean(
    z: FloatArray,
    proxy: FloatArray,
    stratum: IntArray,
    design: SeparateSamples,
    options: EstimateOptions,
    divisor: str = "n-1",
) -> MeanEstimate:
    """Return Σ w_h [λ_h · mean_unlabelled(ẑ) + mean_labelled(z − λ_h ẑ)] and its variance.

    The variance is Σ w_h² (λ_h² V_f,h / m_h + V_Δ,h / n_h) (Fisch et al. 2024, Theorem 2), and the λ that
    minimises it C_h / ((1 + n_h / m_h) V_h) (eq. 17), V_h the proxy's variance over labelled and unlabelled
    units together.

    Parameters
    ----------
    z, proxy : float (n,)
    stratum : int (n,)
    design : SeparateSamples
        w_h, and what is known of the unlabelled sample.
    options : EstimateOptions
        Its estimator is one of `horvitz-thompson`, `difference`, `ppi++` and `stratppi`; a shrinkage of 0 is
        the paper's own StratPPI.
    divisor : {"n-1", "n"}
        Of the labelled covariances and of the variances in the standard error; "n" is `ppi-python`'s
        convention.

    Raises
    ------
    InputError
        For an unknown estimator, and a stratum without a labelled or an unlabelled unit.
    """
    shares = design.shares
    n_strata = len(design.shares)
    moments = stratum_moments(z, proxy[:, None], stratum, n_strata)
    n = moments.counts
    m = design.counts
    check_choice("estimator", options.estimator, ("horvitz-thompson", *_NEEDS_PROXY))
    if np.any(n == 0) or np.any(m == 0):
        if np.any(n == 0):
            kind, empty = ("label", n)
        else:
            kind, empty = ("unlabelled unit", m)
        action = "Merge it with another stratum first."
        raise InputError(f"a stratum has no {kind}", given=f"stratum {int(np.argmin(empty))}", action=action)
    labelled_factor, unlabelled_factor = (
        np.where(k > 1, (k - 1) / k, 1.0) if divisor == "n" else np.ones(n_strata) for k in (n, m)
    )
    fitted = options.lam is None and options.estimator in ("ppi++", "stratppi")
    if fitted:
        lam = np.zeros((n_strata, 1))
    else:
        lam = fixed_lam(options, n_strata, 1)
    if fitted:
        # The proxy's variance over both samples together, divisor n + m − 1.
        gap = moments.proxy_means[:, 0] - design.means
        within = (n - 1) * moments.proxy_covariances[:, 0, 0] + (m - 1) * design.variances
        joint = (within + n * m / (n + m) * gap * gap) / (n + m - 1)
        # The minimiser of Σ a_h [(1 + n_h/m_h) λ'V_h λ − 2 λ'C_h] with a_h = w_h²/n_h.
        spread = (joint * (1.0 + n / m))[:, None, None]
        joint_moments = replace(
            moments,
            cross_covariances=moments.cross_covariances * labelled_factor[:, None],
            proxy_covariances=spread,
        )
        evidence = tuning.LambdaEvidence(moments=joint_moments, published=options.shrinkage == 0)
        lam = tuning.fit_stratified(evidence, spread, shares**2 / n, options.own_shrinkage).lam
        lam = np.clip(lam, 0.0, 1.0) if options.clip else lam
    slope = lam[:, 0]
    residuals = z - slope[stratum] * (proxy - design.means[stratum])
    residual_variances = pooled_stratum_covariances(residuals[:, None], stratum, n, n + m)[:, 0, 0]
    of_labels = shares**2 * residual_variances * labelled_factor / n
    of_others = shares**2 * slope**2 * design.variances * unlabelled_factor / m
    parts = np.concatenate([of_labels, of_others])
    return MeanEstimate(
        value=float(shares @ stratum_means(residuals[:, None], stratum, n_strata)[:, 0]),
        design_variance=float(parts.sum()),
        population_variance=0.0,
        degrees_of_freedom=max(float(satterthwaite(parts, np.concatenate([n - 1.0, m - 1.0]))), 1.0),
        variable=residuals,
        lam=lam,
    )


def outcome_mean(sample: Sample, units: LabelledUnits, request: Request) -> Estimate:
    """Return the mean of the outcomes of the labelled units, with all that `request` asks for."""
    z = units.z
    labelled = units.labelled
    outcome = request.outcome
    bounds = request.bounds
    scale = sample.question.outcome.scale
    if bounds is None and scale not in ("binary", "bounded"):
        declared = scale
    else:
        declared = None
    respondents.refuse_outside(z, sample, labelled, outcome or declared, bounds)
    frame = units.respondents
    outcome, bounds, remarks = respondents.known_outcome(sample, z, outcome, bounds, units.outcomes)
    strata = sample.design.strata
    separate = sample.design.unlabelled
    folds = None
    column = list[int]()
    if separate is None:
        column = respondents.proxy_columns(sample, request.proxy)
        if request.cross_fit is not None:
            folds = sample_folds(sample, labelled, frame, request.cross_fit)
    options = EstimateOptions.of(
        request,
        outcome=outcome,
        bounds=bounds,
        design=sample.design.kind,
        # λ is fitted within strata that were not cut on the proxy, unless earlier labels decided their sizes.
        proxy_strata=strata is None or strata.from_proxy or frame.weighting.has_adaptive_allocation,
        scaled=all(sample.proxy_info[c].scaled for c in column),
        folds=folds,
        notes=(*units.outcomes.notes, *remarks),
    )
    if separate is not None:
        return frame.complete(_of_separate_samples(sample, separate, labelled, z, options), sample)
    proxies = units.proxies
    summary = frame.summary
    if column != list(range(proxies.shape[1])):
        proxies = proxies[:, column]
        summary = summary.of_proxies(column)
    if refits(sample, z, request):
        method = HISTORY
    else:
        method = request.calibration
    if method is not None or request.features is not None:
        calibration = Calibrating(
            column=column,
            method=method,
            features=request.features,
            population=request.population,
            folds=options.folds,
            outcome=outcome,
            bounds=bounds,
        )
        estimator = calibrated_estimator(options.estimator, has_lam=options.lam is not None, method=method)
        calibrated = calibrated_proxy(sample, labelled, frame, z, calibration)
        proxies = calibrated.values
        summary = calibrated.summary
        notes = (*options.notes, calibrated.note)
        options = replace(options, estimator=estimator, scaled=True, notes=notes)
    estimate = estimate_mean(z, proxies, frame.weighting, summary, stratum=frame.stratum, options=options)
    if _leaves_proxies_out(sample, estimate, len(column), options):
        estimate = replace(estimate, remarks=(*estimate.remarks, _PROXIES_LEFT_OUT.format(len(column))))
    assert estimate.note_inputs is not None
    of_mean = as_estimand(sample.question.estimand).of_one_outcome
    if of_mean:
        planned = PlannedOutcome.of(sample, labelled)
    else:
        planned = None
    estimate = frame.complete(estimate, sample, note_inputs=replace(estimate.note_inputs, planned=planned))
    if len(z) == sample.size:
        return estimate
    ends = respondents.worst_bounds(sample, labelled, z, estimate.bounds)
    return replace(estimate, nonresponse=replace(estimate.nonresponse, worst_bounds=ends))


_PROXIES_LEFT_OUT = (
    "the {} proxies are not used: 'auto' needs 50 labels for each of them; name one with proxy= in Python, "
    "give fewer, or fit them with estimator='ppi++' (--estimator ppi++)"
)


def _leaves_proxies_out(sample: Sample, estimate: Estimate, k: int, options: EstimateOptions) -> bool:
    """Return whether `auto` ignored all of several proxies of a simple random sample for lack of labels."""
    is_simple_random = sample.design.kind == "simple-random" and estimate.estimator == "horvitz-thompson"
    return is_simple_random and options.estimator == "auto" and options.scaled and k > 1


def unused_proxy_reason(sample: Sample, estimate: Estimate) -> str | None:
    """Return why `auto` estimated a mean without the sample's proxies; None if they are used."""
    if estimate.lam or estimate.label or not sample.proxy_names:
        return None
    if not all(info.scaled for info in sample.proxy_info):
        return "it only orders the rows"
    strata = sample.design.strata
    least = labels_for_proxies(
        estimate.design,
        max(len(estimate.strata), 1),
        len(sample.proxy_names),
        proxy_strata=strata is None or strata.from_proxy,
    )
    if least is None:
        return "the strata replace it"
    if sample.question.cluster is not None:
        return f"fewer than {least:,} clusters"
    return f"fewer than {least:,} labels"


def refits(sample: Sample, z: FloatArray, request: Request) -> bool:
    """Return whether a history's factors are learned from the labels: where nothing else was asked for."""
    names = () if sample.population is None else sample.population.feature_names
    if not names or not history_columns(names):
        return False
    requested = set(request.changed) - {"population", "predicted", "outcome", "target", "combine"}
    return not requested and bool(np.all((z >= 0) & (z <= 1))) and len(z) >= 2 * N_FOLDS


def _of_separate_samples(
    sample: Sample, design: SeparateSamples, labelled: BoolArray, z: FloatArray, options: EstimateOptions
) -> Estimate:
    """Return the estimate where the unlabelled units are a sample of their own.

    `auto` fits one λ where there are 50 labels or more, and ignores the proxy where there are fewer.
    """
    if options.cross_fit is not None or options.calibration is not None:
        problem = "a separate unlabelled sample has no cross-fitting and no calibration"
        raise InputError(problem, action="Leave cross_fit and calibration out.")
    notes = options.notes
    estimator = options.estimator
    if options.target != "superpopulation":
        notes = (*notes, "the target is the superpopulation: the unlabelled units are a sample of their own")
    if estimator == "auto":
        fitting = options.lam is not None or len(z) >= MINIMUM_FOR_FITTING
        estimator = "ppi++" if fitting else "horvitz-thompson"
    weighting = design.weighting(sample, labelled)
    proxies = sample.proxies[labelled]
    changed = replace(options, target="superpopulation", notes=notes)
    options = resolved(z, replace(changed, estimator=estimator), weighting, proxies.shape[1])
    result = separate_mean(z, proxies[:, 0], weighting.stratum, design, options)
    return assemble(z, weighting, weighting.stratum, result, options)


def plain_mean(z: FloatArray, weighting: Weighting, **options: Any) -> Estimate:
    """Return the mean of z (n,) by weights alone, without a proxy."""
    nothing = np.zeros((len(z), 0))
    return estimate_mean(z, nothing, weighting, None, stratum=weighting.stratum, **options)


def estimate_mean(
    z: object,
    proxies: FloatArray,
    weighting: Weighting,
    summary: StratumSummary | None,
    *,
    stratum: IntArray,
    options: EstimateOptions = EstimateOptions(),
    **changed: Any,
) -> Estimate:
    """Estimate the mean of z over the population from its labelled units.

    Parameters
    ----------
    z : float (n,)
        Outcome of the labelled units.
    proxies : float (n, k)
        Their proxies; k may be 0.
    weighting : Weighting
        The design, realised on the labelled units.
    summary : StratumSummary, optional
        Sizes and proxy moments of the population per stratum; None where there is no proxy.
    stratum : int (n,)
        Stratum of the labelled units, 0 … H − 1.
    options : EstimateOptions
    changed
        Fields of the options that differ.

    Raises
    ------
    InputError
        For labels that are not finite numbers or leave the bounds, and for estimators that lack what they
        need.
    """
    z = np.asarray(z, dtype=np.float64)
    if changed:
        options = replace(options, **changed)
    if summary is not None:
        proxies, summary, options = _first_proxies(len(z), proxies, summary, options)
    k = 0 if summary is None else proxies.shape[1]
    options = resolved(z, options, weighting, k)
    proxy = None
    if summary is not None and (options.lam is not None or options.estimator in _NEEDS_PROXY):
        if np.max(np.abs(proxies), initial=0.0) > LARGEST_NUMBER:  # proxies that are all tiny do no harm
            refuse_extremes("proxies", proxies)
        proxy = tuning.LabelledProxies(values=proxies, stratum=stratum, summary=summary)
    if summary is not None and options.estimator == "post-stratified":
        weighting = weighting.post_stratified(stratum, summary.sizes)
    result = mean_estimate(z, proxy, weighting=weighting, options=options)
    if proxy is None:
        result = replace(result, lam=np.zeros((1, k)))
    return assemble(z, weighting, stratum, result, options, proxies, summary)


_ONLY_THE_FIRST = (
    f"only the first {{}} of {{}} proxies are used: 'auto' needs {MINIMUM_FOR_FITTING} labels for each; "
    "use all with estimator='ppi++' (--estimator ppi++)"
)


def _first_proxies(
    n: int, proxies: FloatArray, summary: StratumSummary, options: EstimateOptions
) -> tuple[FloatArray, StratumSummary, EstimateOptions]:
    """Return as many proxies of a simple random sample as `auto` fits to n labels, if not all, and a note.

    Fewer labels than one proxy needs keep all proxies: `auto` then uses none of them.
    """
    n_used = n // MINIMUM_FOR_FITTING
    k = proxies.shape[1]
    is_auto = options.estimator == "auto" and options.lam is None and options.scaled
    is_random = options.design in _RANDOM_WITHIN_STRATA and len(summary.sizes) == 1
    if not is_auto or not is_random or not 0 < n_used < k:
        return proxies, summary, options
    first = list(range(n_used))
    note = _ONLY_THE_FIRST.format(n_used, k)
    return proxies[:, first], summary.of_proxies(first), replace(options, notes=(*options.notes, note))


def assemble(
    z: FloatArray,
    weighting: Weighting,
    stratum: IntArray,
    result: MeanEstimate,
    options: EstimateOptions,
    proxies: object = None,
    summary: StratumSummary | None = None,
) -> Estimate:
    """Return the estimate that a mean makes; its outcome and estimator must be decided."""
    assert options.outcome is not None
    value = result.value
    lam = result.lam
    notes = (*options.notes, *result.notes)
    if options.bounds is not None:
        value = min(max(value, options.bounds[0]), options.bounds[1])
    if abs(result.value - value) >= _ROUNDED_BOUND:
        if result.value < value:
            end = "below the least"
        else:
            end = "above the largest"
        note = (
            f"the labels and the proxy put the mean at {result.value:.4g}, {end} that it can be, which is "
            "shown: the proxy is far off its scale; estimator='ppi++' (--estimator ppi++) fits how much of "
            "it to use"
        )
        notes = (*notes, note)
    evidence = Evidence(
        value=value,
        variance=result.design_variance + result.population_variance,
        population_part=result.population_variance,
        degrees_of_freedom=result.degrees_of_freedom,
        outcome=options.outcome,
        bounds=options.bounds,
        z=z,
        residuals=result.variable,
        offset=result.offset,
        weighting=weighting,
        uses_proxy=bool(lam.any()),
        superpopulation=options.target == "superpopulation",
        stratum_weights_known=options.stratum_weights_known,
    )
    if proxies is None:
        shown = np.zeros((len(z), 0))
    else:
        shown = np.asarray(proxies, dtype=np.float64)
    sizes = weighting.sizes
    if not weighting.random_within_strata:
        if summary is None:
            sizes = np.array([weighting.population_size])
        else:
            sizes = summary.sizes
    return Estimate.from_evidence(
        evidence,
        standard_error=math.sqrt(evidence.reported_variance),
        design=options.design,
        estimator=options.estimator if options.lam is None else "difference (given λ)",
        lam=tuple(lam[0].tolist()) if evidence.uses_proxy and np.all(lam == lam[0]) else (),
        stratum_table=StratumTable(sizes=sizes, stratum=stratum, lam=lam, z=z),
        remarks=notes,
        note_inputs=NoteInputs(stratum=stratum, proxies=shown, summary=summary),
    )


# A value this near to its bound left it by the rounding of sums alone.
_ROUNDED_BOUND = 1e-9


def resolved(z: FloatArray, options: EstimateOptions, weighting: Weighting, k: int) -> EstimateOptions:
    """Return the options with the kind of outcome and the estimator decided, for k proxies."""
    outcome, bounds = infer_outcome(z, options.outcome, options.bounds)
    estimator = options.estimator
    if estimator == "auto" and options.lam is not None:
        estimator = "difference"
    elif estimator == "auto":
        n = len(z)
        if not weighting.random_within_strata:
            # λ is fitted to clusters' totals, which count alike, and to units by their weights.
            n = round(weighting.effective_draws if weighting.groups is None else weighting.draws)
        estimator = default_estimator(
            options.design,
            n,
            len(weighting.sizes),
            k,
            scaled=options.scaled,
            proxy_strata=options.proxy_strata,
        )
    if not options.scaled and (estimator == "difference" or options.lam is not None):
        problem = "the proxy only orders units and has no scale"
        action = "'ppi++' or 'horvitz-thompson'"
        raise InputError(problem, action=f"Use estimator={action}.")
    return replace(options, outcome=outcome, bounds=bounds, estimator=estimator)
