"""A mean, its variance and its intervals for thousands of replicates at once, from sums per stratum.

The kernels are those of one sample (λ, inflation, Satterthwaite, the table of intervals); only the sums that
go into them are taken from `StratumSums`. A test holds the two together to the last digits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.designs.stratified import free_labels, stratified_factors, stratum_parts
from stratal.designs.stratum_moments import collapse_singletons, population_spread, satterthwaite
from stratal.errors import InputError, refuse_unknown
from stratal.estimation.lam import SHRINKAGE, LambdaPrior, fit_stratified, inflation
from stratal.intervals import evidence
from stratal.intervals.methods import TABLE, bounds_function
from stratal.intervals.proportion import mean_skewness, student_t
from stratal.planning.plan import stratum_labels
from stratal.simulation.draws import StratumSums, Truth, spread

# Estimators whose λ is not fitted. Hájek's is Horvitz–Thompson's where weights add up to one: in strata.
FIXED_LAM = {"horvitz-thompson": 0.0, "hajek": 0.0, "difference": 1.0}

# `published-…`: λ unshrunk and no degrees of freedom taken off for fitting it, as the papers have it.
ESTIMATORS = (*FIXED_LAM, "ppi++", "stratppi", "published-ppi++", "published-stratppi")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings that all designs share.

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

    Examples
    --------
    >>> Settings(estimators=("horvitz-thompson",), intervals=("auto",), budgets=(50,), replicates=100, seed=7
    ...          ).target
    'population'
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
        """Whether no estimator needs the proxies of the units drawn, and no interval their third powers."""
        plain = all(FIXED_LAM.get(name) == 0.0 for name in self.estimators)
        return plain and not (self.bounds is None and self.thirds)

    @property
    def thirds(self) -> bool:
        """Whether an interval reads the skewness of the labels or residuals."""
        if self.bounds is None:
            auto = "skewness-corrected"
        else:
            auto = "clopper-pearson"
        named = [
            TABLE[name]
            for name in (auto if name == "auto" else name for name in self.intervals)
            if name in TABLE
        ]
        return any(kind.reads_skewness if self.bounds is None else kind.counts_trials for kind in named)


def stratum_spreads(counts: FloatArray, sizes: IntArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Return s_h² (R, H) of a variable from its sums; a stratum with one label takes that of its group.

    One that is labelled whole gets 0 where nothing can be estimated.

    Examples
    --------
    >>> two = np.array([[2.0, 2.0]])
    >>> stratum_spreads(two, np.array([9, 2]), np.array([[1.0, 2.0]]), np.array([[1.0, 2.0]]))
    array([[0.5, 0. ]])
    """
    own = spread(counts, first, second)
    if np.any((counts < 2) & (sizes > 1)):
        if len(counts) > 1:
            raise InputError("adaptive designs need two labels per stratum", action="Use a larger pilot.")
        group = collapse_singletons(counts[0].astype(np.int64), sizes)
        member = (group[:, None] == np.arange(len(sizes))[None, :]).astype(np.float64)
        joint = spread(counts @ member, first @ member, second @ member)[:, group]
        own = np.where(np.isnan(own), joint, own)
    return np.where(np.isnan(own) & ((counts >= sizes) | (sizes == 1)), 0.0, own)


@dataclass(frozen=True, kw_only=True, eq=False)
class Replicates(evidence.IntervalEvidence):
    """Estimates of R replicates, and what the interval methods see of them.

    Parameters
    ----------
    value : float (R,)
    estimated_variances : float (R,)
        Of the target.
    population_parts : float (R,) or 0
        The part of it that is due to drawing the N units themselves.
    degrees_of_freedom : float (R,)
    lam : float (H,) or (R, H)
        λ of each stratum.
    sums : StratumSums
        Of outcomes with the truth's centre taken off.
    truth : Truth
        Only what a study knows of it is used: sizes, proxy moments, and the centre that was taken off.
    settings : Settings
    label_driven : bool
        Whether labels of earlier rounds decided the n_h.
    tuned : bool
        Whether λ is taken to differ from 0 in all replicates, or in none.
    """

    value: FloatArray
    estimated_variances: FloatArray
    population_parts: FloatArray
    degrees_of_freedom: FloatArray
    lam: FloatArray
    sums: StratumSums
    truth: Truth
    settings: Settings
    label_driven: bool = False
    tuned: bool = True

    @property
    def fitted(self) -> BoolArray:
        """Whether λ is not 0 (R,)."""
        return np.broadcast_to(np.any(np.atleast_2d(self.lam) != 0, axis=1), self.value.shape)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """What the outcome cannot leave."""
        return self.settings.bounds

    @property
    def outcome(self) -> evidence.OutcomeKind:
        """What is known of the outcome."""
        if self.bounds is None:
            return "unbounded"
        return "binary" if self.truth.binary else "bounded"

    @property
    def superpopulation(self) -> bool:
        """Whether the population's own draw counts."""
        return self.settings.target == "superpopulation"

    @property
    def n(self) -> int:
        """Labels of every replicate."""
        return int(self.sums.counts[0].sum())

    @property
    def census(self) -> bool:
        """Whether every unit is labelled."""
        whole = bool(np.all(self.sums.counts >= self.truth.sizes))
        return whole and not self.settings.with_replacement and not self.superpopulation

    @property
    def textbook_variance(self) -> FloatArray:
        """The variances by the formula."""
        return np.maximum(self.estimated_variances, 0.0)

    @property
    def in_strata(self) -> bool:
        """Whether there are several strata."""
        return len(self.truth.sizes) > 1

    @property
    def in_one_stratum(self) -> bool:
        """Whether there is one, whose units are all that counts."""
        return not self.in_strata and not self.superpopulation

    @property
    def factors(self) -> FloatArray:
        """W_h² (1 − f_h) / n_h."""
        return stratified_factors(
            self.sums.counts, self.truth.sizes, with_replacement=self.settings.with_replacement
        )

    @cached_property
    def _powers(self) -> tuple[FloatArray, FloatArray]:
        """Σ z and Σ z² (R, H) on the 0–1 scale."""
        (low, high), sums = self.limits, self.sums
        scale = high - low
        shift = self.truth.centre - low
        second = sums.zz + 2.0 * shift * sums.z + shift**2 * sums.counts
        return (sums.z + shift * sums.counts) / scale, second / scale**2

    @cached_property
    def moments(self) -> evidence.UnitMoments:
        """What the labels add up to, on the 0–1 scale."""
        counts, (first, second) = self.sums.counts, self._powers
        return stratum_labels(
            *(self.truth.sizes, counts, first / counts, second / counts),
            factors=self.factors,
            label_driven=self.label_driven,
            binary=self.truth.binary,
        )

    @cached_property
    def trials(self) -> FloatArray:
        """Independent binary trials that the labels are worth."""
        smooth = evidence.smoothed_moments(self.moments)
        return evidence.binary_trials(
            evidence.effective_labels_of(smooth, self.variances(self.moments)), smooth
        )

    @cached_property
    def skewness(self) -> FloatArray:
        """γ of the estimates, from what their labels (or residuals) show."""
        spreads = spread(self.sums.counts, *self.sums.residual(self.lam))
        thirds = self.sums.centred_thirds(self.lam)
        return np.asarray(mean_skewness(self.sums.counts, self.factors, spreads, thirds))

    def variances(self, labels: evidence.UnitMoments) -> evidence.Variances:
        """Return the variances that the guards compare, on the 0–1 scale."""
        (low, high), counts, sizes = self.limits, self.sums.counts, self.truth.sizes
        within = stratum_spreads(counts, sizes, *self._powers)
        scale = (high - low) ** 2
        return evidence.Variances(
            residual=(self.estimated_variances - self.population_parts) / scale,
            plain=stratum_parts(self.factors, within).sum(axis=1),
            spread=_population_spread(labels.means, within, labels.counts, sizes),
            population_part=self.population_parts / scale,
            tuned=self.tuned,
            drawn_from=float(sizes.sum()) if self.superpopulation else np.inf,
            weights_known=self.settings.stratum_weights_known,
        )


def _population_spread(
    means: FloatArray, within: FloatArray, counts: FloatArray, sizes: IntArray
) -> FloatArray:
    """Return S² (R,) over the population, from within and between strata (R, H)."""
    own, between = population_spread(means[..., None], within[..., None, None], counts, sizes)
    return np.asarray((own + np.maximum(between, 0.0))[..., 0, 0])


def _freedom_of_sum(
    design: FloatArray, freedom: FloatArray, population: FloatArray, of_population: FloatArray
) -> FloatArray:
    """Return the degrees of freedom (R,) of the sum of both variances (R,), see `target_freedom`."""
    parts = design / freedom + population / np.maximum(of_population, 1.0)
    both = np.divide(design + population, parts, out=np.array(freedom, dtype=np.float64), where=parts > 0)
    return np.asarray(np.where(population > 0, both, freedom))


def replicate_means(
    sums: StratumSums,
    truth: Truth,
    settings: Settings,
    estimator: str = "horvitz-thompson",
    *,
    label_driven: bool = False,
) -> Replicates:
    """Estimate the mean in every replicate by one of `ESTIMATORS`.

    Raises
    ------
    InputError
        If a stratum has no label, or an adaptive design gives one alone; for an estimator that needs a proxy
        where there is none.

    Examples
    --------
    >>> truth = Truth.of(np.array([0.0, 1.0, 1.0, 1.0]), None, np.zeros(4, dtype=int), 1)
    >>> sums = StratumSums(counts=np.array([[2.0]]), z=np.array([[-0.5]]), zz=np.array([[0.625]]))
    >>> settings = Settings(estimators=("hajek",), intervals=(), budgets=(2,), replicates=1, seed=7)
    >>> found = replicate_means(sums, truth, settings)
    >>> found.value, found.estimated_variances
    (array([0.5]), array([0.125]))
    """
    refuse_unknown("estimator", estimator, ("auto", *ESTIMATORS))
    evidence.require_target(settings.target)
    if FIXED_LAM.get(estimator) != 0.0 and sums.p is None:
        raise InputError(f"estimator '{estimator}' needs a proxy", action="Give the population a proxy.")
    counts = sums.counts
    sizes = truth.sizes
    replacing = settings.with_replacement
    if np.any(counts < 1):
        raise InputError("a stratum gets no label", action="Use a larger budget, or fewer strata.")
    factors = stratified_factors(counts, sizes, with_replacement=replacing)
    lam, spent = _lam(sums, truth, factors, estimator, settings.bounds)
    first, second = sums.residual(lam)
    values = first / counts @ truth.weights + truth.centre
    parts = stratum_parts(factors, stratum_spreads(counts, sizes, first, second))
    freedom = satterthwaite(parts, free_labels(counts, sizes, with_replacement=replacing)) - spent.sum(
        axis=-1
    )
    variances = np.asarray((parts * inflation(counts, spent)).sum(axis=1))
    extra = np.zeros(1)
    if settings.target == "superpopulation":
        within = stratum_spreads(counts, sizes, sums.z, sums.zz)
        extra = within @ (truth.weights**2 / sizes)
        if not settings.stratum_weights_known:
            extra = _population_spread(sums.means, within, counts, sizes) / truth.size
        independent = stratum_parts(stratified_factors(counts, sizes, with_replacement=True), within)
        of_population = satterthwaite(independent, free_labels(counts, sizes, with_replacement=True))
        freedom = _freedom_of_sum(variances, np.maximum(freedom, 1.0), extra, of_population)
    return Replicates(
        value=values,
        estimated_variances=variances + extra,
        population_parts=np.broadcast_to(extra, values.shape),
        degrees_of_freedom=np.maximum(freedom, 1.0),
        lam=np.asarray(lam),
        sums=sums,
        truth=truth,
        settings=settings,
        label_driven=label_driven,
    )


def _lam(
    sums: StratumSums, truth: Truth, factors: FloatArray, estimator: str, bounds: tuple[float, float] | None
) -> tuple[FloatArray, FloatArray]:
    """Return λ, (H,) or (R, H), and the fitted parameters that fall to each stratum."""
    nothing = np.zeros((1, len(truth.sizes)))
    if estimator in FIXED_LAM:
        return nothing[0] + FIXED_LAM[estimator], nothing
    published = estimator.startswith("published-")
    moments = sums.moments(truth.centre)
    whole = truth.proxy_variances[:, None, None]
    found = fit_stratified(
        moments.cross_covariances,
        whole,
        factors,
        sums.counts,
        (0.0 if published else SHRINKAGE) if estimator.endswith("stratppi") else None,
        LambdaPrior(bounds=bounds, published=published).labelled(moments, truth.proxy_means[:, None], whole),
    )
    return found.lam[..., 0], nothing if published else found.spent


PUBLISHED = "published"
# `published`: value ± z · standard error with nothing guarded and nothing cut, as the papers have it.
INTERVALS = ("auto", *(name for name, kind in TABLE.items() if not kind.reads_labels), PUBLISHED)


def replicate_intervals(found: Replicates) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return (low, high), each (R,), for every method of the settings.

    Examples
    --------
    >>> truth = Truth.of(np.r_[np.zeros(100), np.ones(900)], None, np.zeros(1000, dtype=int), 1)
    >>> sums = StratumSums(counts=np.array([[10.0]]), z=np.array([[1.0]]), zz=np.array([[0.1]]))
    >>> settings = Settings(estimators=("hajek",), intervals=("auto",), budgets=(10,), replicates=1, seed=7,
    ...                     bounds=(0.0, 1.0))
    >>> low, high = replicate_intervals(replicate_means(sums, truth, settings))["auto"]
    >>> low.round(2), high
    (array([0.69]), array([1.]))
    """
    settings = found.settings
    fitted = found.fitted
    shape = found.value.shape
    for method in settings.intervals:
        refuse_unknown("kind of interval in a simulation", method, INTERVALS)
    if found.bounds is None:
        value = found.value
    else:
        value = np.clip(found.value, *found.bounds)
    whole = replace(found, value=value, tuned=bool(fitted.all()))
    # Some methods are others where λ is 0: a published λ is so in samples that show nothing.
    if whole.tuned or not fitted.any():
        cases = [whole]
    else:
        cases = [replace(whole, tuned=True), whole]

    def limits(method: str) -> tuple[FloatArray, FloatArray]:
        level = settings.confidence_level
        if method == PUBLISHED:
            return student_t(found.value, np.sqrt(whole.textbook_variance), confidence_level=level)
        ends = [bounds_function(case, method, "two-sided")[1](level) for case in cases]
        low, high = (np.where(fitted, *pair) for pair in zip(ends[0], ends[-1], strict=True))
        return np.broadcast_to(low, shape), np.broadcast_to(high, shape)

    return {method: limits(method) for method in settings.intervals}
