"""Means, variances and intervals of R replicates at once, from sums per stratum (`StratumSums`).

The numerical functions (λ, inflation, Satterthwaite, intervals) are those of a single sample. A test compares
the results with `stratal.estimate` to the last digits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.designs.stratified import stratified_factors, stratum_degrees_of_freedom, variance_contributions
from stratal.designs.stratum_moments import collapse_singletons, population_covariance_parts, satterthwaite
from stratal.errors import InputError, check_choice
from stratal.estimation.lam import SHRINKAGE_LABELS, LambdaPrior, fit_stratified, inflation
from stratal.intervals import evidence, outcomes
from stratal.intervals.guards import (
    UnitMoments,
    Variances,
    binary_trials,
    effective_labels_of,
    smoothed_moments,
)
from stratal.intervals.methods import INTERVAL_METHODS, find_interval
from stratal.intervals.proportion import mean_skewness, student_t
from stratal.planning.interim_widths import label_moments
from stratal.simulation.draws import StratumSums, Truth, sample_variance

# λ of the estimators that do not estimate it. In strata, the weights add up to one, so that Hájek's estimator
# equals the Horvitz–Thompson estimator.
FIXED_LAM = {"horvitz-thompson": 0.0, "hajek": 0.0, "difference": 1.0}

# `published-…`: as in the papers, λ is not shrunk, and degrees of freedom are not reduced for its estimation.
SIMULATED_ESTIMATORS = (*FIXED_LAM, "ppi++", "stratppi", "published-ppi++", "published-stratppi")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings that all designs of a simulation share.

    Parameters
    ----------
    estimators, intervals : tuple of str
    budgets : tuple of int
        Increasing.
    replicates : int
    seed : int
    confidence_level : float
    target : str
    stratum_weights_known : bool
        For the superpopulation: whether the W_h are known rather than drawn with the N units.
    bounds : (float, float), optional
    with_replacement : bool
    """

    estimators: tuple[str, ...]
    intervals: tuple[str, ...]
    budgets: tuple[int, ...]
    replicates: int
    seed: int
    confidence_level: float = 0.95
    target: str = "population"
    stratum_weights_known: bool = True
    bounds: tuple[float, float] | None = None
    with_replacement: bool = False

    @property
    def counts_suffice(self) -> bool:
        """Whether binary outcomes need only the number of labels and ones per stratum, no single units."""
        without_proxy = all(FIXED_LAM.get(name) == 0.0 for name in self.estimators)
        return without_proxy and not (self.bounds is None and self.needs_third_powers)

    @property
    def needs_third_powers(self) -> bool:
        """Whether an interval uses the skewness of labels that are not binary, or of residuals."""
        # `auto` chooses one of these methods, depending on the bounds.
        if self.bounds is None:
            auto = "skewness-corrected"
        else:
            auto = "clopper-pearson"
        names = [auto if name == "auto" else name for name in self.intervals]
        methods = [INTERVAL_METHODS[name] for name in names if name in INTERVAL_METHODS]
        if self.bounds is None:
            return any(method.reads_skewness for method in methods)
        # Within bounds, these methods widen their limits for a few large residuals, by the skewness.
        return any(method.counts_trials for method in methods)


def stratum_variances(
    counts: FloatArray, sizes: IntArray, sums: FloatArray, square_sums: FloatArray
) -> FloatArray:
    """Return s_h² (R, H) from n_h, N_h, Σ y and Σ y² (R, H).

    A stratum with one label gets the variance of the group with which it is collapsed, or 0 if it is
    completely labelled.
    """
    variances = sample_variance(counts, sums, square_sums)
    if np.any((counts < 2) & (sizes > 1)):
        # Groups are formed once for all replicates.
        if len(counts) > 1:
            raise InputError("adaptive designs require two labels per stratum", action="Use a larger pilot.")
        group = collapse_singletons(counts[0].astype(np.int64), sizes)
        is_member = (group[:, None] == np.arange(len(sizes))[None, :]).astype(np.float64)
        group_variances = sample_variance(counts @ is_member, sums @ is_member, square_sums @ is_member)
        variances = np.where(np.isnan(variances), group_variances[:, group], variances)
    is_census = (counts >= sizes) | (sizes == 1)
    return np.where(np.isnan(variances) & is_census, 0.0, variances)


@dataclass(frozen=True, kw_only=True, eq=False)
class Replicates(evidence.DerivedEvidence):
    """Estimates of R replicates, with the inputs of the interval methods.

    Parameters
    ----------
    value : float (R,)
    estimated_variances : float (R,)
        Estimated variances for the target.
    population_parts : float (R,)
        The part of these variances that is due to the random population of N units.
    degrees_of_freedom : float (R,)
    lam : float (H,) or (R, H)
        λ of each stratum.
    sums : StratumSums
        Sums of outcomes from which the centre of `truth` was subtracted.
    truth : Truth
        Only what is known before the draw is used (sizes, moments of the proxy), and the centre of the sums.
    settings : Settings
    label_based : bool
        Whether n_h depends on labels of earlier rounds.
    uses_proxy : bool
        Whether the intervals treat λ as different from 0; the same for all replicates.
    """

    value: FloatArray
    estimated_variances: FloatArray
    population_parts: FloatArray
    degrees_of_freedom: FloatArray
    lam: FloatArray
    sums: StratumSums
    truth: Truth
    settings: Settings
    label_based: bool = False
    uses_proxy: bool = True

    @property
    def fitted(self) -> BoolArray:
        """Whether λ is not 0 (R,)."""
        return np.broadcast_to(np.any(np.atleast_2d(self.lam) != 0, axis=1), self.value.shape)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Smallest and largest possible outcome."""
        return self.settings.bounds

    @property
    def outcome(self) -> outcomes.OutcomeKind:
        """Kind of outcome: unbounded, binary or bounded."""
        if self.bounds is None:
            return "unbounded"
        if self.truth.binary:
            return "binary"
        return "bounded"

    @property
    def superpopulation(self) -> bool:
        """Whether the variance includes that of the random population."""
        return self.settings.target == "superpopulation"

    @property
    def n(self) -> int:
        """Number of labels of each replicate."""
        return int(self.sums.counts[0].sum())

    @property
    def census(self) -> bool:
        """Whether every unit is labelled."""
        is_complete = bool(np.all(self.sums.counts >= self.truth.sizes))
        return is_complete and not self.settings.with_replacement and not self.superpopulation

    @property
    def textbook_variance(self) -> FloatArray:
        """Variances (R,) without the corrections of the intervals; negative values are rounding errors."""
        return np.maximum(self.estimated_variances, 0.0)

    @property
    def in_strata(self) -> bool:
        """Whether there are several strata."""
        return len(self.truth.sizes) > 1

    @property
    def in_one_stratum(self) -> bool:
        """Whether there is one stratum, and the target is the population."""
        return not self.in_strata and not self.superpopulation

    @property
    def factors(self) -> FloatArray:
        """W_h² (1 − f_h) / n_h, (R, H) or (1, H)."""
        return stratified_factors(
            self.sums.counts, self.truth.sizes, with_replacement=self.settings.with_replacement
        )

    @cached_property
    def _unit_scale_sums(self) -> tuple[FloatArray, FloatArray]:
        """Σ z and Σ z² (R, H) on the 0–1 scale."""
        low, high = self.outcome_bounds
        sums = self.sums
        scale = high - low
        shift = self.truth.centre - low
        square_sums = sums.zz + 2.0 * shift * sums.z + shift**2 * sums.counts
        return (sums.z + shift * sums.counts) / scale, square_sums / scale**2

    @cached_property
    def moments(self) -> UnitMoments:
        """Moments of the labels on the 0–1 scale, for the guards against labels that agree by chance."""
        counts = self.sums.counts
        sums, square_sums = self._unit_scale_sums
        return label_moments(
            self.truth.sizes,
            counts,
            sums / counts,
            square_sums / counts,
            factors=self.factors,
            label_based=self.label_based,
            binary=self.truth.binary,
        )

    @cached_property
    def trials(self) -> FloatArray:
        """Number of independent binary trials with the same precision as the labels (R,)."""
        moments = smoothed_moments(self.moments)
        return binary_trials(effective_labels_of(moments, self.variances(self.moments)), moments)

    @cached_property
    def skewness(self) -> FloatArray:
        """Skewness γ of the estimates (R,), from the labels or residuals."""
        variances = sample_variance(self.sums.counts, *self.sums.residual(self.lam))
        third_powers = self.sums.centred_thirds(self.lam)
        return np.asarray(mean_skewness(self.sums.counts, self.factors, variances, third_powers))

    def variances(self, labels: UnitMoments) -> Variances:
        """Return the variances that the guards of the intervals compare, on the 0–1 scale."""
        low, high = self.outcome_bounds
        counts = self.sums.counts
        sizes = self.truth.sizes
        within = stratum_variances(counts, sizes, *self._unit_scale_sums)
        scale = (high - low) ** 2
        return Variances(
            with_lam=(self.estimated_variances - self.population_parts) / scale,
            without_lam=variance_contributions(self.factors, within).sum(axis=1),
            spread=_population_variance(labels.means, within, labels.counts, sizes),
            population_part=self.population_parts / scale,
            uses_proxy=self.uses_proxy,
            superpopulation_draws=float(sizes.sum()) if self.superpopulation else np.inf,
            stratum_weights_known=self.settings.stratum_weights_known,
        )


def _population_variance(
    means: FloatArray, within: FloatArray, counts: FloatArray, sizes: IntArray
) -> FloatArray:
    """Return S² (R,) of the population from the means and variances of the strata (R, H)."""
    within_part, between_part = population_covariance_parts(
        means[..., None], within[..., None, None], counts, sizes
    )
    # The estimate between strata is a difference, which can be negative.
    return np.asarray((within_part + np.maximum(between_part, 0.0))[..., 0, 0])


def _degrees_of_freedom_of_sum(
    design_variances: FloatArray,
    design_df: FloatArray,
    population_variances: FloatArray,
    population_df: FloatArray,
) -> FloatArray:
    """Return the degrees of freedom (R,) of the sum of two variances (R,), as `linearised.target_df`."""
    ratios = design_variances / design_df
    ratios = ratios + population_variances / np.maximum(population_df, 1.0)
    unchanged = np.array(design_df, dtype=np.float64)
    combined_df = np.divide(design_variances + population_variances, ratios, out=unchanged, where=ratios > 0)
    return np.asarray(np.where(population_variances > 0, combined_df, design_df))


def replicate_means(
    sums: StratumSums,
    truth: Truth,
    settings: Settings,
    estimator: str = "horvitz-thompson",
    *,
    label_based: bool = False,
) -> Replicates:
    """Estimate the mean in every replicate by one of `SIMULATED_ESTIMATORS`.

    Raises
    ------
    InputError
        If a stratum has no label, if an adaptive design gives a stratum one label, and if the estimator needs
        a proxy that does not exist.
    """
    check_choice("estimator", estimator, SIMULATED_ESTIMATORS)
    outcomes.check_target(settings.target)
    if FIXED_LAM.get(estimator) != 0.0 and sums.p is None:
        raise InputError(f"estimator '{estimator}' requires a proxy", action="Give the population a proxy.")
    counts = sums.counts
    sizes = truth.sizes
    with_replacement = settings.with_replacement
    if np.any(counts < 1):
        raise InputError("a stratum has no label", action="Use a larger budget, or fewer strata.")
    factors = stratified_factors(counts, sizes, with_replacement=with_replacement)
    lam, fitted_parameters = _fit_lam(sums, truth, factors, estimator, settings.bounds)
    residual_sums, residual_square_sums = sums.residual(lam)
    values = residual_sums / counts @ truth.weights + truth.centre
    residual_variances = stratum_variances(counts, sizes, residual_sums, residual_square_sums)
    contributions = variance_contributions(factors, residual_variances)
    stratum_df = stratum_degrees_of_freedom(counts, sizes, with_replacement=with_replacement)
    df = satterthwaite(contributions, stratum_df) - fitted_parameters.sum(axis=-1)
    variances = np.asarray((contributions * inflation(counts, fitted_parameters)).sum(axis=1))
    population_parts = np.zeros(1)
    if settings.target == "superpopulation":
        within = stratum_variances(counts, sizes, sums.z, sums.zz)
        if settings.stratum_weights_known:
            population_parts = within @ (truth.weights**2 / sizes)
        else:
            population_parts = _population_variance(sums.means, within, counts, sizes) / truth.size
        # Independent draws have no finite population correction.
        independent_factors = stratified_factors(counts, sizes, with_replacement=True)
        population_df = satterthwaite(
            variance_contributions(independent_factors, within),
            stratum_degrees_of_freedom(counts, sizes, with_replacement=True),
        )
        df = _degrees_of_freedom_of_sum(variances, np.maximum(df, 1.0), population_parts, population_df)
    return Replicates(
        value=values,
        estimated_variances=variances + population_parts,
        population_parts=np.broadcast_to(population_parts, values.shape),
        # The quantiles of Student's t need at least one degree of freedom.
        degrees_of_freedom=np.maximum(df, 1.0),
        lam=np.asarray(lam),
        sums=sums,
        truth=truth,
        settings=settings,
        label_based=label_based,
    )


def _fit_lam(
    sums: StratumSums, truth: Truth, factors: FloatArray, estimator: str, bounds: tuple[float, float] | None
) -> tuple[FloatArray, FloatArray]:
    """Return λ, (H,) or (R, H), and the number of fitted parameters of each stratum."""
    no_parameters = np.zeros((1, len(truth.sizes)))
    if estimator in FIXED_LAM:
        return no_parameters[0] + FIXED_LAM[estimator], no_parameters
    is_published = estimator.startswith("published-")
    # None: one λ for all strata (PPI++).
    shrinkage = None
    if estimator.endswith("stratppi"):
        # 0: the λ of each stratum is not shrunk towards the common one.
        shrinkage = 0.0 if is_published else SHRINKAGE_LABELS
    moments = sums.moments(truth.centre)
    proxy_variances = truth.proxy_variances[:, None, None]
    prior = LambdaPrior(bounds=bounds, published=is_published)
    lam_evidence = prior.evidence(moments, truth.proxy_means[:, None], proxy_variances)
    fit = fit_stratified(lam_evidence, proxy_variances, factors, shrinkage)
    if is_published:
        return fit.lam[..., 0], no_parameters
    return fit.lam[..., 0], fit.n_parameters


PUBLISHED = "published"
# `published`: value ± z · standard error as in the papers, without guards or truncation at the bounds.
INTERVALS = (
    "auto",
    *(name for name, method in INTERVAL_METHODS.items() if not method.reads_labels),
    PUBLISHED,
)


def replicate_intervals(replicates: Replicates) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return (low, high), each (R,), for every interval method of the settings."""
    settings = replicates.settings
    confidence_level = settings.confidence_level
    for method in settings.intervals:
        check_choice("kind of interval in a simulation", method, INTERVALS)
    is_fitted = replicates.fitted
    value = replicates.value
    if replicates.bounds is not None:
        value = np.clip(value, *replicates.bounds)
    # Some methods differ for λ = 0, and a fitted λ may be 0 in some samples only. In this case both intervals
    # are computed, and each replicate uses one of them.
    cases = [
        replace(replicates, value=value, uses_proxy=uses_proxy)
        for uses_proxy in (True, False)
        if np.any(is_fitted == uses_proxy)
    ]

    def interval_limits(method: str) -> tuple[FloatArray, FloatArray]:
        if method == PUBLISHED:
            standard_errors = np.sqrt(replicates.textbook_variance)
            return student_t(replicates.value, standard_errors, confidence_level=confidence_level)
        limits = [find_interval(case, method).ends(confidence_level, "two-sided") for case in cases]
        low = np.where(is_fitted, limits[0][0], limits[-1][0])
        high = np.where(is_fitted, limits[0][1], limits[-1][1])
        return np.broadcast_to(low, value.shape), np.broadcast_to(high, value.shape)

    return {method: interval_limits(method) for method in settings.intervals}
