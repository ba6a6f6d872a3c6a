"""A mean and its confidence interval for thousands of replicates at once, from sums per stratum.

The kernels are those of one sample (λ, inflation, Satterthwaite, guards, bounds); only the sums that go into
them are taken from `StratumSums`. A test holds the two together to the last digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.errors import InputError, near_names
from stratal.estimation.lam import SHRINKAGE, fit_stratified, inflation
from stratal.intervals import guard, proportion, student
from stratal.intervals.evidence import require_target
from stratal.intervals.stratified import StratumRates, stratified_clopper_pearson
from stratal.intervals.unseen import unseen_share
from stratal.simulation.settings import Settings
from stratal.simulation.sums import StratumSums, covariance, pooled_spread, spread
from stratal.simulation.truth import Truth
from stratal.weighting.stratum_moments import (
    LabelledSpread,
    collapse_singletons,
    population_spread,
    satterthwaite,
)
from stratal.weighting.weighting import free_labels, stratified_factors, stratum_parts

ESTIMATORS = (
    "horvitz-thompson",
    "hajek",
    "difference",
    "ppi++",
    "stratppi",
    "published-ppi++",
    "published-stratppi",
)
"""Hájek's is Horvitz–Thompson's where the weights add up to one, as they do in strata. `published-…`: λ
unshrunk and no degrees of freedom taken off for fitting it, as the papers have it."""

INTERVALS = (
    "auto",
    "t",
    "normal",
    "clopper-pearson",
    "stratified-clopper-pearson",
    "wilson",
    "logit",
    "blaker",
    "published",
)
"""`published`: value ± z · standard error with nothing guarded and nothing cut, as the papers have it."""

_WITHOUT_TRIALS = {"auto", "stratified-clopper-pearson", "t", "normal", "published"}
"""What several strata need no common number of trials for."""


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

    Examples
    --------
    >>> Replicates(values=np.zeros(2), variances=np.ones(2), population_parts=np.zeros(2),
    ...            degrees_of_freedom=np.ones(2), tuned=np.zeros(2, bool)).values
    array([0., 0.])
    """

    values: FloatArray
    variances: FloatArray
    population_parts: FloatArray
    degrees_of_freedom: FloatArray
    tuned: BoolArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """Where the replicates' labels lie: what every estimator needs besides their sums.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    proxy_variances : float (H,)
        Of the proxy over the N_h units, divisor N_h − 1.
    counts : float (R, H) or (1, H)
        n_h.
    with_replacement : bool
    group : int (H,), optional
        See `pooled_spread`.

    Examples
    --------
    >>> layout = Layout.of(np.array([10, 30]), np.zeros(2), np.array([[2.0, 2.0]]))
    >>> layout.factors
    array([[0.025 , 0.2625]])
    """

    sizes: IntArray
    proxy_variances: FloatArray
    counts: FloatArray
    with_replacement: bool = False
    group: IntArray | None = None

    @classmethod
    def of(
        cls,
        sizes: IntArray,
        proxy_variances: FloatArray,
        counts: FloatArray,
        *,
        with_replacement: bool = False,
    ) -> Layout:
        """Return the layout, single-label strata grouped with a neighbour."""
        group = None
        if np.any(counts < 1):
            raise InputError("a stratum gets no label", action="Use a larger budget, or fewer strata.")
        if np.any((counts < 2) & (sizes > 1)):
            if len(counts) > 1:
                raise InputError("adaptive designs need two labels per stratum", action="Use a larger pilot.")
            group = collapse_singletons(counts[0].astype(np.int64), sizes)
        return cls(
            sizes=sizes,
            proxy_variances=proxy_variances,
            counts=counts,
            with_replacement=with_replacement,
            group=group,
        )

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
    truth: Truth,
    layout: Layout,
    estimator: str = "horvitz-thompson",
    *,
    target: str = "population",
    bounds: tuple[float, float] | None = None,
) -> Replicates:
    """Estimate the mean in every replicate.

    Parameters
    ----------
    sums : StratumSums
        (R, H).
    truth : Truth
        Only what a study knows of it is used: sizes, proxy moments, and the centre that was taken off.
    layout : Layout
    estimator : str
        One of `ESTIMATORS`.
    target : {"population", "superpopulation"}
        The superpopulation's strata weights are taken as known ([S]).
    bounds : (float, float), optional
        What the outcome cannot leave.

    Returns
    -------
    Replicates

    Examples
    --------
    >>> truth = Truth.of(np.array([0.0, 1.0, 1.0, 1.0]), None, np.zeros(4, dtype=int), 1)
    >>> layout = Layout.of(truth.sizes, truth.proxy_variances, np.array([[2.0]]))
    >>> sums = StratumSums(counts=layout.counts, z=np.array([[-0.5]]), zz=np.array([[0.625]]))
    >>> found = replicate_means(sums, truth, layout)
    >>> found.values, found.variances
    (array([0.5]), array([0.125]))
    """
    if estimator not in ESTIMATORS:
        raise InputError(
            "no such estimator", given=repr(estimator), allowed=near_names(estimator, ESTIMATORS)
        )
    require_target(target)
    if estimator not in ("horvitz-thompson", "hajek") and sums.p is None:
        raise InputError(f"estimator '{estimator}' needs a proxy", action="Give the population a proxy.")
    lam, spent = _lam(sums, layout, estimator, truth, bounds)
    first, second = sums.residual(lam)
    values = first / sums.counts @ layout.weights + truth.centre
    parts = layout.parts(layout.spread(first, second))
    free = free_labels(layout.counts, layout.sizes, with_replacement=layout.with_replacement)
    freedom = satterthwaite(parts, free) - spent.sum(axis=-1)
    variances = np.asarray((parts * inflation(layout.counts, spent)).sum(axis=1))
    extra = np.zeros(1)
    if target == "superpopulation":
        extra = layout.spread(sums.z, sums.zz) @ (layout.weights**2 / layout.sizes)
    tuned = np.broadcast_to(np.any(np.atleast_2d(lam) != 0, axis=1), values.shape)
    return Replicates(
        values=values,
        variances=variances + extra,
        population_parts=np.broadcast_to(extra, values.shape),
        degrees_of_freedom=np.maximum(freedom, 1.0),
        tuned=tuned,
    )


def _lam(
    sums: StratumSums,
    layout: Layout,
    estimator: str,
    truth: Truth,
    bounds: tuple[float, float] | None,
) -> tuple[FloatArray, FloatArray]:
    """Return λ, (H,) or (R, H), and the fitted parameters that fall to each stratum."""
    nothing = np.zeros((1, len(layout.sizes)))
    if estimator in ("horvitz-thompson", "hajek", "difference"):
        return nothing[0] + (estimator == "difference"), nothing
    assert sums.p is not None
    assert sums.pp is not None
    assert sums.zp is not None
    published = estimator.startswith("published-")
    shrinkage = 0.0 if published else SHRINKAGE
    labelled = None
    if not published:
        own = np.nan_to_num(spread(sums.counts, sums.p, sums.pp))[..., None, None]
        outcome = np.nan_to_num(spread(sums.counts, sums.z, sums.zz))
        means = sums.z / sums.counts + truth.centre
        labelled = LabelledSpread.of(own, outcome, means, layout.counts, bounds)
    found = fit_stratified(
        covariance(sums.counts, sums.z, sums.p, sums.zp)[..., None],
        layout.proxy_variances[:, None, None],
        layout.factors,
        layout.counts,
        shrinkage if estimator.endswith("stratppi") else None,
        labelled,
    )
    return found.lam[..., 0], nothing if published else found.spent


def replicate_intervals(
    found: Replicates, sums: StratumSums, layout: Layout, truth: Truth, settings: Settings
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return (low, high), each (R,), for every method asked for.

    Parameters
    ----------
    found : Replicates
    sums : StratumSums
        Of outcomes with the truth's centre taken off.
    layout : Layout
    truth : Truth
        Only the centre, and whether outcomes are 0 or 1.
    settings : Settings
        Methods, bounds of the outcome, confidence level and target.

    Examples
    --------
    >>> truth = Truth.of(np.r_[np.zeros(100), np.ones(900)], None, np.zeros(1000, dtype=int), 1)
    >>> layout = Layout.of(truth.sizes, truth.proxy_variances, np.array([[10.0]]))
    >>> sums = StratumSums(counts=layout.counts, z=np.array([[1.0]]), zz=np.array([[0.1]]))
    >>> settings = Settings(estimators=("hajek",), intervals=("auto",), budgets=(10,), replicates=1, seed=7,
    ...                     bounds=(0.0, 1.0))
    >>> found = replicate_means(sums, truth, layout)
    >>> low, high = replicate_intervals(found, sums, layout, truth, settings)["auto"]
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
    guarded = None
    if settings.bounds is not None and set(settings.intervals) - {"published"}:
        guarded = _guarded(found, sums, layout, truth, settings)
    return {method: _interval(found, guarded, method, settings) for method in settings.intervals}


def _interval(
    found: Replicates, guarded: _Guarded | None, method: str, settings: Settings
) -> tuple[FloatArray, FloatArray]:
    level, freedom = settings.confidence_level, found.degrees_of_freedom
    error = np.sqrt(np.maximum(found.variances, 0.0))
    if method == "published":
        return student.student_t(found.values, error, confidence_level=level)
    if method == "normal":
        freedom = np.full(1, np.inf)
    if guarded is None or settings.bounds is None:
        if method not in ("auto", "t", "normal"):
            raise InputError(f"method '{method}' needs an outcome with bounds", action="Give bounds=.")
        return student.student_t(found.values, error, degrees_of_freedom=freedom, confidence_level=level)
    low, high = settings.bounds
    values = np.clip(found.values, low, high)
    if method in ("t", "normal"):
        return student.student_t(
            values, error, degrees_of_freedom=freedom, bounds=settings.bounds, confidence_level=level
        )
    unit = (values - low) / (high - low)
    formulas: dict[str, Any] = {"wilson": proportion.wilson, "blaker": proportion.blaker}
    if method in ("auto", "stratified-clopper-pearson") and guarded.rates is not None:
        below, above = stratified_clopper_pearson(guarded.rates, (1.0 - level) / 2.0, (1.0 - level) / 2.0)
    elif method == "logit":
        below, above = proportion.logit(
            unit, guarded.trials, degrees_of_freedom=freedom, confidence_level=level
        )
    else:
        formula = formulas.get(method, proportion.clopper_pearson)
        below, above = formula(unit, guarded.trials, confidence_level=level)
    below = np.minimum(below, unit * (1.0 - guarded.unseen))
    above = np.maximum(above, unit + guarded.unseen * (1.0 - unit))
    return (
        np.maximum(np.minimum(low + (high - low) * below, values), low),
        np.minimum(np.maximum(low + (high - low) * above, values), high),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Guarded:
    """Effective trials (R,) where they are used, what is known of several strata, the unseen share."""

    trials: FloatArray
    rates: StratumRates | None
    unseen: FloatArray


def _guarded(
    found: Replicates, sums: StratumSums, layout: Layout, truth: Truth, settings: Settings
) -> _Guarded:
    assert settings.bounds is not None
    low, high = settings.bounds
    counts, scale, shift = layout.counts, high - low, truth.centre - low
    above, size = settings.target == "superpopulation", float(layout.sizes.sum())
    first = (sums.z + shift * counts) / scale
    second = (sums.zz + 2.0 * shift * sums.z + shift**2 * counts) / scale**2
    labels = guard.UnitMoments(
        means=first / counts,
        squares=second / counts,
        counts=counts,
        shares=layout.weights,
        factors=layout.factors,
        draws=layout.draws,
    )
    smooth = guard.smoothed_moments(labels)
    census = layout.census & (not above)
    trials, rates = np.full(1, np.inf), None
    one_number = len(layout.sizes) == 1 or bool(set(settings.intervals) - _WITHOUT_TRIALS)
    # As in `Evidence.rates`: without λ the strata's trials follow from the design, and no variance is needed.
    variances = guard.Variances.of_labels()
    if one_number or above or np.any(found.tuned):
        variances = _variances(found, labels, layout.spread(first, second), layout, scale, above)
    if one_number:
        trials = np.where(census, np.inf, guard.binary_trials(guard.worth(smooth, variances), smooth))
    if len(layout.sizes) > 1:
        rates = guard.stratum_rates(
            (np.clip(found.values, low, high) - low) / scale, labels, smooth, variances
        )
    unseen = np.zeros(1)
    if not truth.binary:
        fraction = np.minimum(counts.sum(axis=1) / size, 1.0)
        unseen = unseen_share(layout.draws, fraction, (1.0 - settings.confidence_level) / 2.0)
    return _Guarded(
        trials=trials,
        rates=rates,
        unseen=np.where(census, 0.0, unseen),
    )


def _variances(
    found: Replicates,
    labels: guard.UnitMoments,
    within: FloatArray,
    layout: Layout,
    scale: float,
    above: bool,
) -> guard.Variances:
    """Return the replicates' variances on the 0–1 scale; `within` are the strata's s_h² (R, H) on it."""
    own, between = population_spread(
        labels.means[..., None], within[..., None, None], labels.counts, layout.sizes
    )
    return guard.Variances(
        residual=(found.variances - found.population_parts) / scale**2,
        plain=layout.parts(within).sum(axis=1),
        spread=(own + np.maximum(between, 0.0))[..., 0, 0],
        population_part=found.population_parts / scale**2,
        tuned=found.tuned,
        drawn_from=float(layout.sizes.sum()) if above else np.inf,
        weights_known=True,
    )
