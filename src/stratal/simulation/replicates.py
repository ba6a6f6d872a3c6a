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
from stratal.estimation.lam import SHRINKAGE, Trust, fit_stratified, inflation
from stratal.intervals import proportion
from stratal.intervals.evidence import (
    IntervalEvidence,
    OutcomeKind,
    UnitMoments,
    Variances,
    binary_trials,
    require_target,
    smoothed_moments,
    worth,
)
from stratal.intervals.limits import Limits
from stratal.intervals.methods import TABLE, bounds_function
from stratal.intervals.proportion import mean_skewness
from stratal.planning.widths import stratum_labels
from stratal.simulation.draws import StratumSums, Truth, spread
from stratal.simulation.simulated_design import FIXED_LAM, Settings

ESTIMATORS = (*FIXED_LAM, "ppi++", "stratppi", "published-ppi++", "published-stratppi")
"""`published-…`: λ unshrunk and no degrees of freedom taken off for fitting it, as the papers have it."""


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
    label_driven : bool
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
    label_driven: bool = False

    def __post_init__(self) -> None:
        _ = self.group  # refuses strata without labels before anything is divided by their number

    @cached_property
    def group(self) -> IntArray | None:
        """The neighbours that strata with one label are grouped with."""
        if np.any(self.counts < 1):
            raise InputError("a stratum gets no label", action="Use a larger budget, or fewer strata.")
        if not np.any((self.counts < 2) & (self.truth.sizes > 1)):
            return None
        if len(self.counts) > 1:
            raise InputError("adaptive designs need two labels per stratum", action="Use a larger pilot.")
        return collapse_singletons(self.counts[0].astype(np.int64), self.truth.sizes)

    @property
    def factors(self) -> FloatArray:
        """W_h² (1 − f_h) / n_h."""
        return stratified_factors(self.counts, self.truth.sizes, with_replacement=self.with_replacement)

    def spread(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """s_h² (R, H) of a variable from its sums; a stratum with one label takes that of its group.

        One that is labelled whole gets 0 where nothing can be estimated.
        """
        sizes, own = self.truth.sizes, spread(self.counts, first, second)
        if self.group is not None:
            member = (self.group[:, None] == np.arange(len(sizes))[None, :]).astype(np.float64)
            joint = spread(self.counts @ member, first @ member, second @ member)[:, self.group]
            own = np.where(np.isnan(own), joint, own)
        return np.where(np.isnan(own) & ((self.counts >= sizes) | (sizes == 1)), 0.0, own)


@dataclass(frozen=True, kw_only=True, eq=False)
class Replicates(IntervalEvidence):
    """Estimates of R replicates, and what the interval methods see of them.

    Parameters
    ----------
    value : float (R,)
    estimated_variances : float (R,)
        Of the target.
    population_parts : float (R,) or 0
        The part of it that is due to drawing the N units themselves.
    degrees_of_freedom : float (R,)
    fitted : bool (R,)
        Whether λ is not 0.
    lam : float (H,) or (R, H)
        λ of each stratum.
    sums : StratumSums
        Of outcomes with the truth's centre taken off.
    layout : Layout
    tuned : bool
        Whether λ is taken to differ from 0 in all replicates, or in none.
    outcome, bounds, superpopulation, own, linearised
        As in `Evidence`.
    stratum_weights_known : bool

    Examples
    --------
    >>> truth = Truth.of(np.array([0.0, 1.0, 1.0, 1.0]), None, np.zeros(4, dtype=int), 1)
    >>> layout = Layout(truth=truth, counts=np.array([[2.0]]))
    >>> sums = StratumSums(counts=layout.counts, z=np.array([[-0.5]]), zz=np.array([[0.625]]))
    >>> replicate_means(sums, layout).fitted
    array([False])
    """

    value: FloatArray
    estimated_variances: FloatArray
    population_parts: FloatArray
    degrees_of_freedom: FloatArray
    fitted: BoolArray
    lam: FloatArray
    sums: StratumSums
    layout: Layout
    tuned: bool = True
    outcome: OutcomeKind = "unbounded"
    bounds: tuple[float, float] | None = None
    superpopulation: bool = False
    stratum_weights_known: bool = True
    own: Limits | None = None
    linearised: bool = False

    @property
    def n(self) -> int:
        """Labels of every replicate."""
        return int(self.layout.counts[0].sum())

    @property
    def census(self) -> bool:
        """Whether every unit is labelled."""
        layout = self.layout
        whole = bool(np.all(layout.counts >= layout.truth.sizes))
        return whole and not layout.with_replacement and not self.superpopulation

    @property
    def textbook_variance(self) -> FloatArray:
        """The variances by the formula."""
        return np.maximum(self.estimated_variances, 0.0)

    @property
    def in_strata(self) -> bool:
        """Whether there are several strata."""
        return len(self.layout.truth.sizes) > 1

    @property
    def in_one_stratum(self) -> bool:
        """Whether there is one, whose units are all that counts."""
        return not self.in_strata and not self.superpopulation

    @cached_property
    def _powers(self) -> tuple[FloatArray, FloatArray]:
        """Σ z and Σ z² (R, H) on the 0–1 scale."""
        (low, high), layout, sums = self.limits, self.layout, self.sums
        counts, scale, shift = layout.counts, high - low, layout.truth.centre - low
        second = sums.zz + 2.0 * shift * sums.z + shift**2 * counts
        return (sums.z + shift * counts) / scale, second / scale**2

    @cached_property
    def moments(self) -> UnitMoments:
        """What the labels add up to, on the 0–1 scale."""
        layout, (first, second) = self.layout, self._powers
        return stratum_labels(
            *(layout.truth.sizes, layout.counts, first / layout.counts, second / layout.counts),
            factors=layout.factors,
            label_driven=layout.label_driven,
            binary=layout.truth.binary,
        )

    @cached_property
    def trials(self) -> FloatArray:
        """Independent binary trials that the labels are worth."""
        smooth = smoothed_moments(self.moments)
        return binary_trials(worth(smooth, self.variances(self.moments)), smooth)

    @cached_property
    def skewness(self) -> FloatArray:
        """γ of the estimates, from what their labels (or residuals) show."""
        lam, layout = self.lam, self.layout
        spreads = spread(layout.counts, *self.sums.residual(lam))
        thirds = self.sums.centred_thirds(lam)
        return np.asarray(mean_skewness(layout.counts, layout.factors, spreads, thirds))

    def variances(self, labels: UnitMoments) -> Variances:
        """Return the variances that the guards compare, on the 0–1 scale."""
        (low, high), layout = self.limits, self.layout
        within = layout.spread(*self._powers)
        own, between = population_spread(
            labels.means[..., None], within[..., None, None], labels.counts, layout.truth.sizes
        )
        scale = (high - low) ** 2
        return Variances(
            residual=(self.estimated_variances - self.population_parts) / scale,
            plain=stratum_parts(layout.factors, within).sum(axis=1),
            spread=(own + np.maximum(between, 0.0))[..., 0, 0],
            population_part=self.population_parts / scale,
            tuned=self.tuned,
            drawn_from=float(layout.truth.sizes.sum()) if self.superpopulation else np.inf,
            weights_known=self.stratum_weights_known,
        )


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
    >>> found.value, found.estimated_variances
    (array([0.5]), array([0.125]))
    """
    refuse_unknown("estimator", estimator, ("auto", *ESTIMATORS))
    require_target(target)
    if FIXED_LAM.get(estimator) != 0.0 and sums.p is None:
        raise InputError(f"estimator '{estimator}' needs a proxy", action="Give the population a proxy.")
    lam, spent = _lam(sums, layout, estimator, bounds)
    truth = layout.truth
    first, second = sums.residual(lam)
    values = first / sums.counts @ layout.truth.weights + truth.centre
    parts = stratum_parts(layout.factors, layout.spread(first, second))
    free = free_labels(layout.counts, layout.truth.sizes, with_replacement=layout.with_replacement)
    freedom = satterthwaite(parts, free) - spent.sum(axis=-1)
    variances = np.asarray((parts * inflation(layout.counts, spent)).sum(axis=1))
    extra = np.zeros(1)
    if target == "superpopulation":
        within = layout.spread(sums.z, sums.zz)
        extra = within @ (layout.truth.weights**2 / layout.truth.sizes)
        if not stratum_weights_known:
            means = (sums.z / sums.counts)[..., None]
            parts_of = population_spread(means, within[..., None, None], layout.counts, layout.truth.sizes)
            own, between = (part[..., 0, 0] for part in parts_of)
            extra = (own + np.maximum(between, 0.0)) / truth.size
    return Replicates(
        value=values,
        estimated_variances=variances + extra,
        population_parts=np.broadcast_to(extra, values.shape),
        degrees_of_freedom=np.maximum(freedom, 1.0),
        fitted=np.broadcast_to(np.any(np.atleast_2d(lam) != 0, axis=1), values.shape),
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
    nothing = np.zeros((1, len(layout.truth.sizes)))
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
    """Return (low, high), each (R,), for every method of the settings.

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
        refuse_unknown("kind of interval in a simulation", method, INTERVALS)
    bounds, level = settings.bounds, settings.confidence_level
    whole = replace(
        found,
        value=found.value if bounds is None else np.clip(found.value, *bounds),
        outcome="unbounded" if bounds is None else "binary" if found.layout.truth.binary else "bounded",
        bounds=bounds,
        tuned=bool(found.fitted.all()),
        superpopulation=settings.target == "superpopulation",
        stratum_weights_known=settings.stratum_weights_known,
    )
    # Some methods are others where λ is 0: a published λ is so in samples that show nothing.
    cases = [whole] if whole.tuned or not found.fitted.any() else [replace(whole, tuned=True), whole]

    def limits(method: str) -> tuple[FloatArray, FloatArray]:
        if method == PUBLISHED:
            error = np.sqrt(whole.textbook_variance)
            return proportion.student_t(found.value, error, confidence_level=level)
        ends = [bounds_function(case, method, "two-sided")[1](level) for case in cases]
        low, high = (
            ends[0] if len(ends) == 1 else (np.where(found.fitted, *pair) for pair in zip(*ends, strict=True))
        )
        return np.broadcast_to(low, found.value.shape), np.broadcast_to(high, found.value.shape)

    return {method: limits(method) for method in settings.intervals}
