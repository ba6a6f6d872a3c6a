"""A mean, its variance and its intervals for thousands of replicates at once, from sums per stratum.

The kernels are those of one sample (λ, inflation, Satterthwaite, the table of intervals); only the sums that
go into them are taken from `StratumSums`. A test holds the two together to the last digits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.designs.stratum_moments import (
    collapse_singletons,
    population_spread,
    satterthwaite,
)
from stratal.designs.weighting import free_labels, stratified_factors, stratum_parts
from stratal.errors import InputError, near_names
from stratal.estimation.lam import SHRINKAGE, Trust, fit_stratified, inflation
from stratal.intervals import guard, proportion
from stratal.intervals.evidence import IntervalEvidence, OutcomeKind, require_target
from stratal.intervals.limits import Limits
from stratal.intervals.methods import TABLE, bounds_function
from stratal.intervals.skewed import mean_skewness
from stratal.simulation.draws import StratumSums, pooled_spread, spread
from stratal.simulation.simulated_design import FIXED_LAM, Settings
from stratal.simulation.truth import Truth

ESTIMATORS = (*FIXED_LAM, "ppi++", "stratppi", "published-ppi++", "published-stratppi")
"""`published-…`: λ unshrunk and no degrees of freedom taken off for fitting it, as the papers have it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replicates:
    """Estimates of R replicates.

    Parameters
    ----------
    values : float (R,)
    variances : float (R,)
        Estimated, of the target.
    population_parts : float (R,) or 0
        The part of it that is due to drawing the N units themselves.
    degrees_of_freedom : float (R,)
    tuned : bool (R,)
        Whether λ is not 0.
    lam : float (H,) or (R, H)
        λ of each stratum.
    sums : StratumSums
        Of outcomes with the truth's centre taken off.
    layout : Layout

    Examples
    --------
    >>> truth = Truth.of(np.array([0.0, 1.0, 1.0, 1.0]), None, np.zeros(4, dtype=int), 1)
    >>> layout = Layout(truth=truth, counts=np.array([[2.0]]))
    >>> sums = StratumSums(counts=layout.counts, z=np.array([[-0.5]]), zz=np.array([[0.625]]))
    >>> replicate_means(sums, layout).tuned
    array([False])
    """

    values: FloatArray
    variances: FloatArray
    population_parts: FloatArray
    degrees_of_freedom: FloatArray
    tuned: BoolArray
    lam: FloatArray
    sums: StratumSums
    layout: Layout


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """Where the replicates' labels lie: what every estimator needs besides their sums.

    Parameters
    ----------
    truth : Truth
        Only what a study knows of it is used: sizes, proxy moments, and the centre that was taken off.
    counts : float (R, H) or (1, H)
        n_h.
    with_replacement : bool
    looked : bool
        Whether labels of earlier rounds decided the n_h.

    Raises
    ------
    InputError
        If a stratum has no label, or an adaptive design gives one alone.

    Examples
    --------
    >>> truth = Truth.of(np.repeat([0.0, 1.0], 20), None, np.repeat([0, 1], [10, 30]), 2)
    >>> layout = Layout(truth=truth, counts=np.array([[2.0, 2.0]]))
    >>> layout.factors
    array([[0.025 , 0.2625]])
    """

    truth: Truth
    counts: FloatArray
    with_replacement: bool = False
    looked: bool = False

    def __post_init__(self) -> None:
        _ = self.group  # refuses strata without labels before anything is divided by their number

    @property
    def sizes(self) -> IntArray:
        """N_h (H,)."""
        return self.truth.sizes

    @cached_property
    def group(self) -> IntArray | None:
        """The neighbours that strata with one label are grouped with; see `pooled_spread`."""
        if np.any(self.counts < 1):
            raise InputError("a stratum gets no label", action="Use a larger budget, or fewer strata.")
        if not np.any((self.counts < 2) & (self.sizes > 1)):
            return None
        if len(self.counts) > 1:
            raise InputError("adaptive designs need two labels per stratum", action="Use a larger pilot.")
        return collapse_singletons(self.counts[0].astype(np.int64), self.sizes)

    @property
    def weights(self) -> FloatArray:
        """W_h (H,)."""
        return np.asarray(self.sizes / self.sizes.sum())

    @property
    def factors(self) -> FloatArray:
        """W_h² (1 − f_h) / n_h."""
        return stratified_factors(self.counts, self.sizes, with_replacement=self.with_replacement)

    @property
    def draws(self) -> FloatArray:
        """Equally weighted labels that these are worth (Kish)."""
        return np.asarray(1.0 / (self.weights**2 / self.counts).sum(axis=1))

    @property
    def census(self) -> BoolArray:
        """Whether every unit is labelled."""
        return np.asarray(np.all(self.counts >= self.sizes, axis=1) & (not self.with_replacement))

    def spread(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """s_h² of a variable from its sums, (R, H)."""
        return pooled_spread(self.counts, first, second, self.sizes, self.group)

    def parts(self, within: FloatArray) -> FloatArray:
        """Each stratum's part of the variance (R, H), none where it is labelled whole."""
        return stratum_parts(self.factors, within)


def replicate_means(
    sums: StratumSums,
    layout: Layout,
    estimator: str = "horvitz-thompson",
    *,
    target: str = "population",
    stratum_weights_known: bool = True,
    bounds: tuple[float, float] | None = None,
) -> Replicates:
    """Estimate the mean in every replicate.

    Parameters
    ----------
    sums : StratumSums
        (R, H).
    layout : Layout
    estimator : str
        One of `ESTIMATORS`.
    target : {"population", "superpopulation"}
    stratum_weights_known : bool
        For the superpopulation: whether the W_h are known ([S]) rather than drawn with the N units.
    bounds : (float, float), optional
        What the outcome cannot leave.

    Returns
    -------
    Replicates

    Examples
    --------
    >>> truth = Truth.of(np.array([0.0, 1.0, 1.0, 1.0]), None, np.zeros(4, dtype=int), 1)
    >>> layout = Layout(truth=truth, counts=np.array([[2.0]]))
    >>> sums = StratumSums(counts=layout.counts, z=np.array([[-0.5]]), zz=np.array([[0.625]]))
    >>> found = replicate_means(sums, layout)
    >>> found.values, found.variances
    (array([0.5]), array([0.125]))
    """
    if estimator not in ESTIMATORS:
        raise InputError(
            "no such estimator", given=repr(estimator), allowed=near_names(estimator, ("auto", *ESTIMATORS))
        )
    require_target(target)
    if FIXED_LAM.get(estimator) != 0.0 and sums.p is None:
        raise InputError(f"estimator '{estimator}' needs a proxy", action="Give the population a proxy.")
    lam, spent = _lam(sums, layout, estimator, bounds)
    truth = layout.truth
    first, second = sums.residual(lam)
    values = first / sums.counts @ layout.weights + truth.centre
    parts = layout.parts(layout.spread(first, second))
    free = free_labels(layout.counts, layout.sizes, with_replacement=layout.with_replacement)
    freedom = satterthwaite(parts, free) - spent.sum(axis=-1)
    variances = np.asarray((parts * inflation(layout.counts, spent)).sum(axis=1))
    extra = np.zeros(1)
    if target == "superpopulation":
        within = layout.spread(sums.z, sums.zz)
        extra = within @ (layout.weights**2 / layout.sizes)
        if not stratum_weights_known:
            means = (sums.z / sums.counts)[..., None]
            parts_of = population_spread(means, within[..., None, None], layout.counts, layout.sizes)
            own, between = (part[..., 0, 0] for part in parts_of)
            extra = (own + np.maximum(between, 0.0)) / truth.size
    tuned = np.broadcast_to(np.any(np.atleast_2d(lam) != 0, axis=1), values.shape)
    return Replicates(
        values=values,
        variances=variances + extra,
        population_parts=np.broadcast_to(extra, values.shape),
        degrees_of_freedom=np.maximum(freedom, 1.0),
        tuned=tuned,
        lam=np.asarray(lam),
        sums=sums,
        layout=layout,
    )


def _lam(
    sums: StratumSums,
    layout: Layout,
    estimator: str,
    bounds: tuple[float, float] | None,
) -> tuple[FloatArray, FloatArray]:
    """Return λ, (H,) or (R, H), and the fitted parameters that fall to each stratum."""
    nothing = np.zeros((1, len(layout.sizes)))
    if estimator in FIXED_LAM:
        return nothing[0] + FIXED_LAM[estimator], nothing
    published = estimator.startswith("published-")
    truth = layout.truth
    moments, whole = sums.moments(truth.centre), truth.proxy_variances[:, None, None]
    found = fit_stratified(
        moments.cross_covariances,
        whole,
        layout.factors,
        layout.counts,
        (0.0 if published else SHRINKAGE) if estimator.endswith("stratppi") else None,
        Trust(bounds=bounds, published=published).labelled(moments, truth.proxy_means[:, None], whole),
    )
    return found.lam[..., 0], nothing if published else found.spent


PUBLISHED = "published"
INTERVALS = ("auto", *(name for name, kind in TABLE.items() if not kind.reads_labels), PUBLISHED)
"""`published`: value ± z · standard error with nothing guarded and nothing cut, as the papers have it."""


def replicate_intervals(found: Replicates, settings: Settings) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return (low, high), each (R,), for every method asked for.

    Parameters
    ----------
    found : Replicates
    settings : Settings
        Methods, bounds of the outcome, confidence level and target.

    Examples
    --------
    >>> from stratal.simulation.replicates import replicate_means
    >>> truth = Truth.of(np.r_[np.zeros(100), np.ones(900)], None, np.zeros(1000, dtype=int), 1)
    >>> layout = Layout(truth=truth, counts=np.array([[10.0]]))
    >>> sums = StratumSums(counts=layout.counts, z=np.array([[1.0]]), zz=np.array([[0.1]]))
    >>> settings = Settings(estimators=("hajek",), intervals=("auto",), budgets=(10,), replicates=1, seed=7,
    ...                     bounds=(0.0, 1.0))
    >>> found = replicate_means(sums, layout)
    >>> low, high = replicate_intervals(found, settings)["auto"]
    >>> low.round(2), high
    (array([0.69]), array([1.]))
    """
    for method in settings.intervals:
        if method not in INTERVALS:
            raise InputError(
                "no such kind of interval in a simulation",
                given=repr(method),
                allowed=near_names(method, INTERVALS),
            )
    bounds, level = settings.bounds, settings.confidence_level
    whole = ReplicateEvidence(
        value=found.values if bounds is None else np.clip(found.values, *bounds),
        degrees_of_freedom=found.degrees_of_freedom,
        outcome="unbounded" if bounds is None else "binary" if found.layout.truth.binary else "bounded",
        bounds=bounds,
        tuned=bool(found.tuned.all()),
        superpopulation=settings.target == "superpopulation",
        found=found,
        stratum_weights_known=settings.stratum_weights_known,
    )
    # Some methods are others where λ is 0: a published λ is so in samples that show nothing.
    cases = [whole] if whole.tuned or not found.tuned.any() else [replace(whole, tuned=True), whole]

    def limits(method: str) -> tuple[FloatArray, FloatArray]:
        if method == PUBLISHED:
            error = np.sqrt(whole.textbook_variance)
            return proportion.student_t(found.values, error, confidence_level=level)
        ends = [bounds_function(case, method, "two-sided")[1](level) for case in cases]
        low, high = (
            ends[0] if len(ends) == 1 else (np.where(found.tuned, *pair) for pair in zip(*ends, strict=True))
        )
        return np.broadcast_to(low, found.values.shape), np.broadcast_to(high, found.values.shape)

    return {method: limits(method) for method in settings.intervals}


@dataclass(frozen=True, kw_only=True, eq=False)
class ReplicateEvidence(IntervalEvidence):
    """What the interval methods see of R replicates, each number an array (R,).

    Parameters
    ----------
    value, degrees_of_freedom : float (R,)
    outcome, bounds, superpopulation, own
        As in `Evidence`.
    tuned : bool
        Whether λ is taken to differ from 0 in all replicates, or in none.
    found : Replicates
    stratum_weights_known : bool

    Examples
    --------
    >>> issubclass(ReplicateEvidence, IntervalEvidence)
    True
    """

    value: FloatArray
    degrees_of_freedom: FloatArray
    outcome: OutcomeKind
    bounds: tuple[float, float] | None
    tuned: bool
    superpopulation: bool
    found: Replicates
    stratum_weights_known: bool
    own: Limits | None = None
    linearised: bool = False

    @property
    def n(self) -> int:
        """Labels of every replicate."""
        return int(self.found.layout.counts[0].sum())

    @property
    def census(self) -> bool:
        """Whether every unit is labelled."""
        return bool(np.all(self.found.layout.census)) and not self.superpopulation

    @property
    def textbook_variance(self) -> FloatArray:
        """The variances by the formula."""
        return np.maximum(self.found.variances, 0.0)

    @property
    def in_strata(self) -> bool:
        """Whether there are several strata."""
        return len(self.found.layout.sizes) > 1

    @property
    def in_one_stratum(self) -> bool:
        """Whether there is one, whose units are all that counts."""
        return not self.in_strata and not self.superpopulation

    @cached_property
    def _powers(self) -> tuple[FloatArray, FloatArray]:
        """Σ z and Σ z² (R, H) on the 0–1 scale."""
        (low, high), layout, sums = self.limits, self.found.layout, self.found.sums
        counts, scale, shift = layout.counts, high - low, layout.truth.centre - low
        second = sums.zz + 2.0 * shift * sums.z + shift**2 * counts
        return (sums.z + shift * counts) / scale, second / scale**2

    @cached_property
    def moments(self) -> guard.UnitMoments:
        """What the labels add up to, on the 0–1 scale."""
        layout, (first, second) = self.found.layout, self._powers
        return guard.UnitMoments(
            means=first / layout.counts,
            squares=second / layout.counts,
            counts=layout.counts,
            shares=layout.weights,
            factors=layout.factors,
            draws=layout.draws,
            looked=layout.looked,
            units=float(layout.sizes.sum()),
            binary=layout.truth.binary,
        )

    @cached_property
    def trials(self) -> FloatArray:
        """Independent binary trials that the labels are worth."""
        smooth = guard.smoothed_moments(self.moments)
        return guard.binary_trials(guard.worth(smooth, self.variances(self.moments)), smooth)

    @cached_property
    def skewness(self) -> FloatArray:
        """γ of the estimates, from what their labels (or residuals) show."""
        lam, layout = self.found.lam, self.found.layout
        spreads = spread(layout.counts, *self.found.sums.residual(lam))
        thirds = self.found.sums.centred_thirds(lam)
        return np.asarray(mean_skewness(layout.counts, layout.factors, spreads, thirds))

    def variances(self, labels: guard.UnitMoments) -> guard.Variances:
        """Return the variances that the guards compare, on the 0–1 scale."""
        (low, high), layout, size = self.limits, self.found.layout, float(self.found.layout.sizes.sum())
        within = layout.spread(*self._powers)
        own, between = population_spread(
            labels.means[..., None], within[..., None, None], labels.counts, layout.sizes
        )
        part = self.found.population_parts / (high - low) ** 2
        return guard.Variances(
            residual=(self.found.variances - self.found.population_parts) / (high - low) ** 2,
            plain=layout.parts(within).sum(axis=1),
            spread=(own + np.maximum(between, 0.0))[..., 0, 0],
            population_part=part,
            tuned=self.tuned,
            drawn_from=size if self.superpopulation else np.inf,
            weights_known=self.stratum_weights_known,
        )
