"""The mean of one outcome: choice of the estimator and of λ, the variance, and the `Estimate`.

The number of proxies is k, and H is the number of strata. z is the outcome, and ẑ a proxy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import LARGEST_NUMBER, BoolArray, FloatArray, IntArray, field_values, refuse_extremes
from stratal.designs import Weighting
from stratal.designs.external_weights import SeparateSamples
from stratal.designs.sample import Sample
from stratal.designs.stratum_moments import (
    StratumMoments,
    pooled_stratum_covariances,
    satterthwaite,
    stratum_means,
    stratum_moments,
)
from stratal.errors import InputError, check_choice
from stratal.estimation import lam as tuning
from stratal.estimation.calibrated import (
    CalibrationOptions,
    calibrated_estimator,
    calibrated_proxy,
    sample_folds,
)
from stratal.estimation.cross_fitting import N_FOLDS, cross_fit_lam
from stratal.estimation.default_estimator import (
    ESTIMATORS_WITH_PROXY,
    MINIMUM_FOR_FITTING,
    RANDOM_WITHIN_STRATA,
    default_estimator,
    labels_for_proxies,
)
from stratal.estimation.estimand import Request, as_estimand
from stratal.estimation.estimate import Estimate
from stratal.estimation.labelled_units import LabelledUnits
from stratal.estimation.linearised import Linearised, superpopulation_variance, target_df
from stratal.estimation.plan_check_notes import NoteInputs, PlannedOutcome
from stratal.estimation.respondents import known_outcome, proxy_columns, refuse_outside, worst_bounds
from stratal.estimation.stratum_table import StratumTable
from stratal.intervals.evidence import Evidence
from stratal.intervals.outcomes import OutcomeKind, infer_outcome
from stratal.population.summary import StratumSummary
from stratal.protocols import Keywords
from stratal.proxy.history import HISTORY, history_columns

# Estimators of a mean that users can choose; 'auto' selects one of them by a documented rule. Those that
# require a proxy are also in `ESTIMATORS_WITH_PROXY`.
ESTIMATORS = ("horvitz-thompson", "difference", "ppi++", "stratppi", "hajek", "post-stratified")

# Maximum leverage, as for regressions. Residuals divided by less than 0.25 are mostly noise.
_MAX_LEVERAGE = 0.75


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EstimateOptions(Request):
    """The options of an estimated mean.

    Parameters
    ----------
    estimator : str
        `auto` (see `default_estimator`) or one of `ESTIMATORS`.
    target, outcome, bounds, lam, clip, stratum_weights_known
        As in `stratal.estimate`.
    shrinkage : float
        See `stratal.estimation.lam.fit_stratified`.
    folds : int (n,), optional
        Folds for cross-fitting of λ (`stratal.estimation.cross_fitting`).
    scaled : bool
        Whether the proxy is on the scale of the outcome. Otherwise a stated λ and λ = 1 are errors.
    design : str
        Name of the design in the output.
    proxy_strata : bool
        Whether the strata may have been built from the proxy; see `default_estimator`.
    notes : tuple of str
        Notes of the result.

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
    def of(cls, request: Request, **fields: object) -> EstimateOptions:
        """Return the options of a request; `fields` are added and replace those of the request."""
        return cls(**field_values(request) | fields)

    @property
    def fits_lam(self) -> bool:
        """Whether λ is fitted to the labels: the estimator fits it, and none is stated."""
        return self.lam is None and self.estimator in ("ppi++", "stratppi")

    @property
    def stratum_shrinkage(self) -> float | None:
        """Shrinkage of the λ of a stratum towards the pooled one; None for one λ of all strata."""
        if self.estimator == "stratppi":
            return self.shrinkage
        return None

    @property
    def fit_options(self) -> Keywords:
        """The options for fitting λ; `shrinkage=0` is the method of the papers."""
        prior = tuning.LambdaPrior(bounds=self.bounds, scaled=self.scaled, published=self.shrinkage == 0)
        return {"shrinkage": self.stratum_shrinkage, "prior": prior}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeanEstimate(Linearised):
    """A mean with its variance, and the variable of each unit from which both are computed.

    Parameters
    ----------
    value, design_variance, population_variance
        As in `Linearised`.
    variable : float (n,)
        z − λ_h (ẑ − mean_{U_h} ẑ) (stratified), z − λẑ (other designs), or Hájek's linearised variable.
    degrees_of_freedom : float
        Degrees of freedom of the variance, reduced by those used for fitting λ.
    lam : float (H, k)
    offset : float
        Constant that is added to the weighted mean of the variable.
    notes : tuple of str
    """

    lam: FloatArray
    offset: float = 0.0
    notes: tuple[str, ...] = ()


_WITHOUT_PROXY = EstimateOptions(estimator="horvitz-thompson")


def linearised_mean(
    z: FloatArray,
    proxy: tuning.LabelledProxies | None = None,
    *,
    weighting: Weighting,
    options: EstimateOptions = _WITHOUT_PROXY,
    **changed: Any,
) -> MeanEstimate:
    """Return the population mean of z with its variance and linearised variable.

    Parameters
    ----------
    z : float (n,)
        Outcome of the labelled units.
    proxy : LabelledProxies, optional
        Required by all estimators but `horvitz-thompson`, `hajek` and `post-stratified`.
    weighting : Weighting
        The weighting of the labelled units by the design.
    options : EstimateOptions
        The estimator is `horvitz-thompson` (λ = 0, the default), `difference` (λ = 1 for one proxy), `ppi++`
        (one fitted λ per proxy), `stratppi` (one per stratum), `hajek`, or `post-stratified` (with the
        weighting of strata that were formed after the draw).
    changed
        Fields of the options that differ.

    Raises
    ------
    InputError
        For an unknown estimator or target, and for an estimator without the proxies or strata that it needs.
    """
    if changed:
        options = replace(options, **changed)
    chosen = choose_lam(z, proxy, weighting, options)
    by_unit = None
    if options.folds is not None:
        fold_options = {"clip": options.clip, **options.fit_options}
        chosen, by_unit = cross_fit_lam(chosen, z, proxy, weighting, options.folds, **fold_options)
    residuals, offset = _residuals(z, proxy, weighting, chosen.lam, by_unit)
    # If λ is fitted with unequal weights, the constant of the regression is fitted, too.
    is_fitted_by_weights = chosen.fitted and not weighting.random_within_strata
    df_used = chosen.n_parameters
    if is_fitted_by_weights and weighting.unit_clusters is not None:
        constant = tuning.intercept(residuals, weighting)
        residuals = residuals - constant
        offset = offset + constant
    elif is_fitted_by_weights or options.estimator == "hajek":
        # The linearised variable of Σ w y / Σ w (Hájek 1971; Särndal et al. 1992, eq. 5.7.4).
        total = float(weighting.weights.sum())
        mean = float(weighting.weights @ residuals) / total
        residuals = (residuals - mean) / total
        offset = offset + mean
    corrected_residuals = residuals
    if is_fitted_by_weights or options.estimator == "hajek":
        corrected_residuals = weighting.few_cluster_residuals(residuals)
    # Factors of the residual variances of strata that compensate for the degrees of freedom of λ.
    factors = np.ones(len(df_used))
    if chosen.leverages is not None and by_unit is None:
        corrected_residuals = _leave_one_out_residuals(corrected_residuals, chosen.leverages, weighting)
    elif df_used.any():
        factors = tuning.inflation(_fitted_counts(weighting, len(df_used)), df_used)
    contributions, design_df = weighting.contributions_and_df(residuals)
    if corrected_residuals is not residuals:
        contributions = weighting.contributions(corrected_residuals)
    # Some designs have a contribution of each unit or cluster instead of each stratum.
    if len(contributions) != len(factors):
        factors = np.full(len(contributions), factors.mean())
    design_variance = float((contributions * factors).sum())
    df = max(design_df - float(df_used.sum()), 1.0)
    population_variance = 0.0
    if options.target != "population":
        weights_known = options.stratum_weights_known
        population_variance = superpopulation_variance(
            z, weighting, options.target, stratum_weights_known=weights_known
        )
    return MeanEstimate(
        value=offset + float(weighting.mean(residuals[:, None])[0]),
        design_variance=design_variance,
        population_variance=population_variance,
        degrees_of_freedom=target_df(df, z, weighting, design_variance, population_variance),
        variable=residuals,
        lam=chosen.lam,
        offset=offset,
        notes=chosen.notes,
    )


def choose_lam(
    z: FloatArray, proxy: tuning.LabelledProxies | None, weighting: Weighting, options: EstimateOptions
) -> tuning.ChosenLam:
    """Return the λ that the options fix, or the λ fitted to the labels; (1, 0) without a proxy.

    Raises
    ------
    InputError
        If the estimator requires a proxy, or if a stated λ has the wrong shape.
    """
    estimator = options.estimator
    lam = options.lam
    if proxy is None or (proxy.values.shape[1] == 0 and options.fits_lam):
        if lam is not None or estimator in ESTIMATORS_WITH_PROXY:
            if lam is None:
                problem = f"estimator '{estimator}' requires a proxy"
            else:
                problem = "a given λ requires a proxy"
            raise InputError(
                problem, action="Use estimator='horvitz-thompson', or give the population a proxy."
            )
        return tuning.ChosenLam(lam=np.zeros((1, 0)), n_parameters=np.zeros(1))
    n_strata = proxy.n_strata
    k = proxy.values.shape[1]
    if not options.fits_lam:
        return tuning.ChosenLam(lam=fixed_lam(options, n_strata, k), n_parameters=np.zeros(n_strata))
    fit = tuning.fit_lam(z, proxy, weighting, **options.fit_options)
    # A proxy adds no information to the labels of all units.
    if not np.any(fit.lam) and weighting.census:
        return fit
    if not np.any(fit.lam):
        reason = "λ cannot be fitted with too few labels, a constant proxy, or weights fitted to the proxy"
        return replace(fit, notes=(f"the proxy is not used (λ is 0): {reason}",))
    if options.clip:
        fit = replace(fit, lam=np.clip(fit.lam, 0.0, 1.0), notes=("λ was clipped to [0, 1]",))
        # A λ of 0 uses no degrees of freedom.
        if not np.any(fit.lam):
            fit = replace(fit, n_parameters=0.0 * fit.n_parameters, leverages=None)
    return fit


def fixed_lam(options: EstimateOptions, n_strata: int, k: int) -> FloatArray:
    """Return the λ (H, k) that is stated, or that of an estimator with a fixed λ."""
    requested_lam = options.lam
    if requested_lam is None and options.estimator == "difference":
        return np.full((n_strata, k), 1.0 / max(k, 1))
    if requested_lam is None:
        return np.zeros((n_strata, k))
    try:
        lam = np.asarray(requested_lam, dtype=np.float64)
        # For one proxy, a vector has a λ for each stratum; for several, one for each proxy.
        if lam.shape == (n_strata,) and k == 1 < n_strata:
            lam = lam[:, None]
        if np.all(np.isfinite(lam)):
            return np.array(np.broadcast_to(lam, (n_strata, k)))
    except (TypeError, ValueError):
        # Not numbers: the error below states the allowed shapes.
        pass
    problem = "λ has the wrong shape, or is not finite"
    allowed = f"one finite number, ({k},) or ({n_strata}, {k})"
    raise InputError(
        problem,
        given=repr(requested_lam),
        allowed=allowed,
        action="If lam is left out, it is fitted to the labels.",
    )


def _residuals(
    z: FloatArray,
    proxy: tuning.LabelledProxies | None,
    weighting: Weighting,
    lam: FloatArray,
    by_unit: FloatArray | None = None,
) -> tuple[FloatArray, float]:
    """Return the residual of each unit (n,), and the known constant that is added to its weighted mean.

    With cross-fitting, λ differs between units (n, k) and is multiplied by the difference of the proxy from
    its stratum mean. `lam` is then the mean λ of each stratum.
    """
    if proxy is None or not (np.any(lam) or np.any(by_unit)):
        return z, 0.0
    unit_lam = lam[proxy.stratum] if by_unit is None else by_unit
    stratum_offsets = np.einsum("hk,hk->h", lam, proxy.summary.proxy_means)
    population_offset = float(proxy.summary.sizes / proxy.summary.size @ stratum_offsets)
    unit_offsets = stratum_offsets[proxy.stratum]
    residuals = z - np.einsum("nk,nk->n", unit_lam, proxy.values - proxy.stratum_means)
    if not weighting.random_within_strata:
        return residuals - unit_offsets, population_offset
    # Strata without labels contribute to the population's mean proxy, but not to the weighted mean.
    if np.any(weighting.counts == 0):
        return residuals, population_offset - float(weighting.weights @ unit_offsets)
    return residuals, 0.0


def _leave_one_out_residuals(
    residuals: FloatArray, leverages: FloatArray, weighting: Weighting
) -> FloatArray:
    """Return the residuals (n,) of fits without the unit itself: residual / (1 − leverage) ("HC3").

    Units with large weights have a large influence on the mean and on λ, so that their residuals are too
    small (MacKinnon & White 1985).
    """
    factor = 1.0
    if weighting.unit_clusters is None:
        weights = np.abs(weighting.weights)
        leverages = leverages + weights / weights.sum()
        # For equal weights, the factor compensates for their leverage, because the variance has the divisor
        # n − 1 already.
        factor = 1.0 - 1.0 / len(residuals)
    return np.asarray(residuals * factor / (1.0 - np.minimum(leverages, _MAX_LEVERAGE)))


def _fitted_counts(weighting: Weighting, n_strata: int) -> FloatArray:
    """Return the number of labels per stratum (H,) to which λ was fitted: effective labels without strata."""
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

    The variance is Σ w_h² (λ_h² V_f,h / m_h + V_Δ,h / n_h) (Fisch et al. 2024, Theorem 2). It is smallest at
    λ_h = C_h / ((1 + n_h / m_h) V_h) (eq. 17). V_h is the variance of the proxy over labelled and unlabelled
    units.

    Parameters
    ----------
    z, proxy : float (n,)
    stratum : int (n,)
    design : SeparateSamples
        w_h, and the size and moments of the unlabelled sample.
    options : EstimateOptions
        The estimator is `horvitz-thompson`, `difference`, `ppi++` or `stratppi`. A shrinkage of 0 is the
        StratPPI of the paper.
    divisor : {"n-1", "n"}
        Divisor of the labelled covariances, and of the variances in the standard error. `ppi-python` uses
        "n".

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
    check_choice("estimator", options.estimator, ("horvitz-thompson", *ESTIMATORS_WITH_PROXY))
    if np.any(n == 0) or np.any(m == 0):
        if np.any(n == 0):
            problem = "a stratum has no label"
            counts = n
        else:
            problem = "a stratum has no unlabelled unit"
            counts = m
        action = "Merge this stratum with another one first."
        raise InputError(problem, given=f"stratum {int(np.argmin(counts))}", action=action)
    labelled_factor = np.ones(n_strata)
    unlabelled_factor = np.ones(n_strata)
    if divisor == "n":
        labelled_factor = np.where(n > 1, (n - 1) / n, 1.0)
        unlabelled_factor = np.where(m > 1, (m - 1) / m, 1.0)
    if options.fits_lam:
        cross_covariances = moments.cross_covariances * labelled_factor[:, None]
        lam = _separate_lam(replace(moments, cross_covariances=cross_covariances), design, options)
    else:
        lam = fixed_lam(options, n_strata, 1)
    slope = lam[:, 0]
    residuals = z - slope[stratum] * (proxy - design.means[stratum])
    residual_variances = pooled_stratum_covariances(residuals[:, None], stratum, n, n + m)[:, 0, 0]
    labelled_terms = shares**2 * residual_variances * labelled_factor / n
    unlabelled_terms = shares**2 * slope**2 * design.variances * unlabelled_factor / m
    terms = np.concatenate([labelled_terms, unlabelled_terms])
    return MeanEstimate(
        value=float(shares @ stratum_means(residuals[:, None], stratum, n_strata)[:, 0]),
        design_variance=float(terms.sum()),
        population_variance=0.0,
        degrees_of_freedom=max(float(satterthwaite(terms, np.concatenate([n - 1.0, m - 1.0]))), 1.0),
        variable=residuals,
        lam=lam,
    )


def _separate_lam(moments: StratumMoments, design: SeparateSamples, options: EstimateOptions) -> FloatArray:
    """Return λ (H, 1) fitted to a labelled sample with these moments and a separate unlabelled sample."""
    n = moments.counts
    m = design.counts
    # The variance of the proxy over both samples together, divisor n + m − 1.
    difference = moments.proxy_means[:, 0] - design.means
    within = (n - 1) * moments.proxy_covariances[:, 0, 0] + (m - 1) * design.variances
    joint_variance = (within + n * m / (n + m) * difference**2) / (n + m - 1)
    # λ minimises Σ a_h [(1 + n_h/m_h) λ'V_h λ − 2 λ'C_h] with a_h = w_h²/n_h.
    denominators = (joint_variance * (1.0 + n / m))[:, None, None]
    joint_moments = replace(moments, proxy_covariances=denominators)
    evidence = tuning.LambdaEvidence(moments=joint_moments, published=options.shrinkage == 0)
    fit = tuning.fit_stratified(evidence, denominators, design.shares**2 / n, options.stratum_shrinkage)
    if options.clip:
        return np.clip(fit.lam, 0.0, 1.0)
    return fit.lam


def outcome_mean(sample: Sample, units: LabelledUnits, request: Request) -> Estimate:
    """Return the mean of the outcomes of the labelled units with the options of a request."""
    z = units.z
    labelled = units.labelled
    respondents = units.respondents
    outcome, bounds, remarks = _known_outcome(sample, units, request)
    strata = sample.design.strata
    separate = sample.design.unlabelled
    folds = None
    columns = list[int]()
    if separate is None:
        columns = proxy_columns(sample, request.proxy)
        if request.cross_fit is not None:
            folds = sample_folds(sample, labelled, respondents, request.cross_fit)
    options = EstimateOptions.of(
        request,
        outcome=outcome,
        bounds=bounds,
        design=sample.design.kind,
        # If earlier labels determined the sizes of strata, λ is not fitted within them either.
        proxy_strata=strata is None or strata.from_proxy or respondents.weighting.has_adaptive_allocation,
        scaled=all(sample.proxy_info[column].scaled for column in columns),
        folds=folds,
        notes=(*units.outcomes.notes, *remarks),
    )
    if separate is not None:
        return respondents.complete(_mean_of_separate_samples(sample, separate, labelled, z, options), sample)
    proxies = units.proxies
    summary = respondents.summary
    if columns != list(range(proxies.shape[1])):
        proxies = proxies[:, columns]
        summary = summary.select_proxies(columns)
    method = request.calibration
    if refits_history(sample, z, request):
        method = HISTORY
    if method is not None or request.features is not None:
        calibration = CalibrationOptions(
            proxy_columns=columns,
            method=method,
            features=request.features,
            population=request.population,
            folds=options.folds,
            outcome=outcome,
            bounds=bounds,
        )
        calibrated = calibrated_proxy(sample, labelled, respondents, z, calibration)
        proxies = calibrated.values
        summary = calibrated.summary
        has_lam = options.lam is not None
        options = replace(
            options,
            estimator=calibrated_estimator(options.estimator, has_lam=has_lam, method=method),
            # A calibrated proxy is on the scale of the outcome.
            scaled=True,
            notes=(*options.notes, calibrated.note),
        )
    estimate = estimate_mean(
        z, proxies, respondents.weighting, summary, stratum=respondents.stratum, options=options
    )
    if _ignores_proxies(sample, estimate, len(columns), options):
        note = _NOTE_ON_UNUSED_PROXIES.format(len(columns))
        estimate = replace(estimate, remarks=(*estimate.remarks, note))
    return _completed(estimate, sample, units)


def _known_outcome(
    sample: Sample, units: LabelledUnits, request: Request
) -> tuple[OutcomeKind | None, tuple[float, float] | None, tuple[str, ...]]:
    """Return `known_outcome` of the labels; raise an error for labels outside stated bounds."""
    bounds = request.bounds
    scale = sample.question.outcome.scale
    # Without bounds, a declared scale such as "unbounded" permits any value.
    declared_scale = None
    if bounds is None and scale not in ("binary", "bounded"):
        declared_scale = scale
    refuse_outside(units.z, sample, units.labelled, request.outcome or declared_scale, bounds)
    return known_outcome(sample, units.z, request.outcome, bounds, units.outcomes)


def _completed(estimate: Estimate, sample: Sample, units: LabelledUnits) -> Estimate:
    """Return the estimate with the expectations of the plan, and with the worst case of missing labels."""
    assert estimate.note_inputs is not None
    planned = None
    if as_estimand(sample.question.estimand).of_one_outcome:
        planned = PlannedOutcome.of(sample, units.labelled)
    note_inputs = replace(estimate.note_inputs, planned=planned)
    estimate = units.respondents.complete(estimate, sample, note_inputs=note_inputs)
    if len(units.z) == sample.size:
        return estimate
    values_at_bounds = worst_bounds(sample, units.labelled, units.z, estimate.bounds)
    return replace(estimate, nonresponse=replace(estimate.nonresponse, worst_bounds=values_at_bounds))


_NOTE_ON_UNUSED_PROXIES = (
    "the {} proxies are not used: 'auto' requires 50 labels for each of them; name one with proxy= in "
    "Python, give fewer proxies, or fit all of them with estimator='ppi++' (--estimator ppi++)"
)


def _ignores_proxies(sample: Sample, estimate: Estimate, k: int, options: EstimateOptions) -> bool:
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
    min_labels = labels_for_proxies(
        estimate.design,
        max(len(estimate.strata), 1),
        len(sample.proxy_names),
        proxy_strata=strata is None or strata.from_proxy,
    )
    if min_labels is None:
        return "the strata replace it"
    evidence = estimate.evidence
    count = _effective_label_count(len(evidence.z), evidence.weighting)
    if count < min_labels and sample.question.cluster is not None:
        return f"fewer than {min_labels:,} clusters"
    if count < min_labels and evidence.weighting.random_within_strata:
        return f"fewer than {min_labels:,} labels"
    if count < min_labels:
        return f"with these weights, the labels are worth only {count:,}, fewer than {min_labels:,}"
    if estimate.n == estimate.population_size:
        return "every unit has a label"
    if np.ptp(evidence.z) == 0:
        return "all labels are equal"
    if np.all(np.ptp(sample.proxies, axis=0) == 0):
        return "all its values are equal"
    return "λ is 0: labels or values of the proxy vary too little to fit it"


def refits_history(sample: Sample, z: FloatArray, request: Request) -> bool:
    """Return whether the factors of a history are fitted to the labels by default.

    They are if there is a history, enough labels (m,) between 0 and 1, and no option that excludes it.
    """
    names = () if sample.population is None else sample.population.feature_names
    if not names or not history_columns(names):
        return False
    requested = set(request.changed) - {"population", "predicted", "outcome", "target", "combine"}
    # A history predicts numbers from 0 to 1, and a fold needs two labels to have a variance.
    are_shares = bool(np.all((z >= 0) & (z <= 1)))
    return not requested and are_shares and len(z) >= 2 * N_FOLDS


def _mean_of_separate_samples(
    sample: Sample, design: SeparateSamples, labelled: BoolArray, z: FloatArray, options: EstimateOptions
) -> Estimate:
    """Return the mean if the unlabelled units are a separate sample.

    `labelled` (n,) is whether each drawn unit has a label, and `z` (m,) are the outcomes. `auto` fits one λ
    with 50 or more labels, and does not use the proxy with fewer.
    """
    if options.cross_fit is not None or options.calibration is not None:
        problem = "cross-fitting and calibration are not available with a separate unlabelled sample"
        raise InputError(problem, action="Leave cross_fit and calibration out.")
    notes = options.notes
    estimator = options.estimator
    if options.target != "superpopulation":
        notes = (
            *notes,
            "the target is the superpopulation, because the unlabelled units are a separate sample",
        )
    if estimator == "auto":
        uses_proxy = options.lam is not None or len(z) >= MINIMUM_FOR_FITTING
        estimator = "ppi++" if uses_proxy else "horvitz-thompson"
    weighting = design.weighting(sample, labelled)
    proxies = sample.proxies[labelled]
    changed = replace(options, target="superpopulation", notes=notes)
    options = resolve_options(z, replace(changed, estimator=estimator), weighting, proxies.shape[1])
    result = separate_mean(z, proxies[:, 0], weighting.stratum, design, options)
    return build_estimate(z, weighting, weighting.stratum, result, options)


def mean_without_proxy(z: FloatArray, weighting: Weighting, **options: Any) -> Estimate:
    """Return the weighted mean of z (n,) without a proxy."""
    no_proxies = np.zeros((len(z), 0))
    return estimate_mean(z, no_proxies, weighting, None, stratum=weighting.stratum, **options)


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
        The weighting of the labelled units by the design.
    summary : StratumSummary, optional
        Sizes and proxy moments of the population per stratum; None without a proxy.
    stratum : int (n,)
        Stratum of the labelled units, 0 … H − 1.
    options : EstimateOptions
    changed
        Fields of the options that differ.

    Raises
    ------
    InputError
        For labels that are not finite or outside the bounds, and for estimators without a required proxy.
    """
    z = np.asarray(z, dtype=np.float64)
    if changed:
        options = replace(options, **changed)
    if summary is not None:
        proxies, summary, options = _first_proxies(len(z), proxies, summary, options)
    k = 0 if summary is None else proxies.shape[1]
    options = resolve_options(z, options, weighting, k)
    proxy = None
    if summary is not None and (options.lam is not None or options.estimator in ESTIMATORS_WITH_PROXY):
        # Only large proxies raise an error: tiny ones do no harm.
        if np.max(np.abs(proxies), initial=0.0) > LARGEST_NUMBER:
            refuse_extremes("proxies", proxies)
        proxy = tuning.LabelledProxies(values=proxies, stratum=stratum, summary=summary)
    # Post-strata were formed after the draw, so that the weighting of the design does not have them.
    if summary is not None and options.estimator == "post-stratified":
        weighting = weighting.post_stratified(stratum, summary.sizes)
    result = linearised_mean(z, proxy, weighting=weighting, options=options)
    if proxy is None:
        result = replace(result, lam=np.zeros((1, k)))
    return build_estimate(z, weighting, stratum, result, options, proxies, summary)


_NOTE_ON_FIRST_PROXIES = (
    f"only the first {{}} of {{}} proxies are used: 'auto' requires {MINIMUM_FOR_FITTING} labels for each; "
    "to use all proxies, set estimator='ppi++' (--estimator ppi++)"
)


def _first_proxies(
    n: int, proxies: FloatArray, summary: StratumSummary, options: EstimateOptions
) -> tuple[FloatArray, StratumSummary, EstimateOptions]:
    """Return the first proxies of a simple random sample, as many as `auto` fits to n labels, with a note.

    If there are too few labels for one proxy, all are returned, and `auto` uses none.
    """
    n_used = n // MINIMUM_FOR_FITTING
    k = proxies.shape[1]
    is_auto = options.estimator == "auto" and options.lam is None and options.scaled
    is_random = options.design in RANDOM_WITHIN_STRATA and len(summary.sizes) == 1
    if not is_auto or not is_random or not 0 < n_used < k:
        return proxies, summary, options
    first = list(range(n_used))
    note = _NOTE_ON_FIRST_PROXIES.format(n_used, k)
    return proxies[:, first], summary.select_proxies(first), replace(options, notes=(*options.notes, note))


def build_estimate(
    z: FloatArray,
    weighting: Weighting,
    stratum: IntArray,
    result: MeanEstimate,
    options: EstimateOptions,
    proxies: object = None,
    summary: StratumSummary | None = None,
) -> Estimate:
    """Return the `Estimate` of a mean from its linearised result.

    `z` and `stratum` (n,) are those of the labelled units, and `proxies` is (n, k). The options must be those
    of `resolve_options`.
    """
    assert options.outcome is not None
    value = result.value
    lam = result.lam
    if options.bounds is not None:
        value = min(max(value, options.bounds[0]), options.bounds[1])
    notes = (*options.notes, *result.notes, *_bound_notes(result.value, value))
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
    unit_proxies = np.zeros((len(z), 0))
    if proxies is not None:
        unit_proxies = np.asarray(proxies, dtype=np.float64)
    if weighting.random_within_strata:
        sizes = weighting.sizes
    elif summary is not None:
        sizes = summary.sizes
    else:
        sizes = np.array([weighting.population_size])
    # A λ that differs between strata is in the table of the strata.
    shared_lam: tuple[float, ...] = ()
    if evidence.uses_proxy and np.all(lam == lam[0]):
        shared_lam = tuple(lam[0].tolist())
    estimator = options.estimator
    if options.lam is not None:
        estimator = "difference (given λ)"
    return Estimate.from_evidence(
        evidence,
        standard_error=math.sqrt(evidence.reported_variance),
        design=options.design,
        estimator=estimator,
        lam=shared_lam,
        stratum_table=StratumTable(sizes=sizes, stratum=stratum, lam=lam, z=z),
        remarks=notes,
        note_inputs=NoteInputs(stratum=stratum, proxies=unit_proxies, summary=summary),
    )


# A value outside the bounds by less than this is a rounding error.
_BOUND_TOLERANCE = 1e-9


def _bound_notes(computed: float, limited: float) -> tuple[str, ...]:
    """Return a note if the computed mean is outside the bounds, so that the limit is shown instead."""
    # A mean that is NaN has no note.
    if not abs(computed - limited) >= _BOUND_TOLERANCE:
        return ()
    position = "below the smallest" if computed < limited else "above the largest"
    return (
        f"the labels and the proxy give a mean of {computed:.4g}, {position} possible value, so this limit "
        "is shown instead; the scale of the proxy is wrong; estimator='ppi++' (--estimator ppi++) fits the "
        "weight of the proxy",
    )


def _effective_label_count(n: int, weighting: Weighting) -> int:
    """Return the parameter n of `default_estimator`: the number of labels, effective labels, or clusters."""
    if weighting.random_within_strata:
        return n
    # λ is fitted to the totals of clusters with equal weights, and to units by their weights.
    if weighting.unit_clusters is None:
        return round(weighting.effective_draws)
    return round(weighting.draws)


def resolve_options(z: FloatArray, options: EstimateOptions, weighting: Weighting, k: int) -> EstimateOptions:
    """Return the options with the scale of the outcome, and with the estimator that `auto` selects."""
    outcome, bounds = infer_outcome(z, options.outcome, options.bounds)
    estimator = options.estimator
    if estimator == "auto" and options.lam is not None:
        estimator = "difference"
    elif estimator == "auto":
        estimator = default_estimator(
            options.design,
            _effective_label_count(len(z), weighting),
            len(weighting.sizes),
            k,
            scaled=options.scaled,
            proxy_strata=options.proxy_strata,
        )
    if not options.scaled and (estimator == "difference" or options.lam is not None):
        problem = "the proxy only orders units and has no scale"
        raise InputError(problem, action="Use estimator='ppi++' or 'horvitz-thompson'.")
    return replace(options, outcome=outcome, bounds=bounds, estimator=estimator)
