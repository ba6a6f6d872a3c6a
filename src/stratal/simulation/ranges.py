"""The confidence intervals of thousands of replicates at once, from sums per stratum.

The guards and bounds are those of one sample; a test holds the two together to the last digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError, near_names
from stratal.intervals import guard, proportion, student
from stratal.intervals.interval import tail_shares
from stratal.intervals.skewed import mean_skewness, skewness_corrected
from stratal.intervals.stratified import StratumRates, stratified_clopper_pearson
from stratal.simulation.replicates import Layout, Replicates
from stratal.simulation.settings import Settings
from stratal.simulation.sums import StratumSums, spread
from stratal.simulation.truth import Truth
from stratal.weighting.stratum_moments import population_spread

INTERVALS = (
    "auto",
    "t",
    "normal",
    "clopper-pearson",
    "stratified-clopper-pearson",
    "wilson",
    "logit",
    "blaker",
    "skewness-corrected",
    "published",
)
"""`published`: value ± z · standard error with nothing guarded and nothing cut, as the papers have it."""

_WITHOUT_TRIALS = {"auto", "stratified-clopper-pearson", "t", "normal", "published"}
"""What several strata need no common number of trials for."""


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
    >>> from stratal.simulation.replicates import replicate_means
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
    if settings.bounds is None:
        return {method: _unbounded(found, sums, layout, method, settings) for method in settings.intervals}
    guarded = None
    if set(settings.intervals) - {"published"}:
        guarded = _guarded(found, sums, layout, truth, settings)
    return {method: _interval(found, guarded, method, settings) for method in settings.intervals}


def _unbounded(
    found: Replicates, sums: StratumSums, layout: Layout, method: str, settings: Settings
) -> tuple[FloatArray, FloatArray]:
    level, error = settings.confidence_level, np.sqrt(np.maximum(found.variances, 0.0))
    freedom = np.inf if method in ("normal", "published") else found.degrees_of_freedom
    if method in ("auto", "skewness-corrected"):
        spreads = spread(layout.counts, *sums.residual(found.lam))
        thirds = sums.centred_thirds(found.lam)
        skewness = mean_skewness(layout.counts, layout.factors, spreads, thirds)
        return skewness_corrected(
            found.values, error, skewness, degrees_of_freedom=freedom, confidence_level=level
        )
    if method not in ("t", "normal", "published"):
        raise InputError(f"method '{method}' needs an outcome with bounds", action="Give bounds=.")
    return student.student_t(found.values, error, degrees_of_freedom=freedom, confidence_level=level)


def _interval(
    found: Replicates, guarded: _Guarded | None, method: str, settings: Settings
) -> tuple[FloatArray, FloatArray]:
    level, freedom = settings.confidence_level, found.degrees_of_freedom
    error = np.sqrt(np.maximum(found.variances, 0.0))
    if method == "published":
        return student.student_t(found.values, error, confidence_level=level)
    if method == "normal":
        freedom = np.full(1, np.inf)
    assert guarded is not None
    assert settings.bounds is not None
    if method == "skewness-corrected":
        raise InputError(f"method '{method}' is for outcomes without bounds", action="Use 'auto'.")
    low, high = settings.bounds
    values = np.clip(found.values, low, high)
    if method in ("t", "normal"):
        return student.student_t(
            values, error, degrees_of_freedom=freedom, bounds=settings.bounds, confidence_level=level
        )
    unit = (values - low) / (high - low)
    formulas: dict[str, Any] = {"wilson": proportion.wilson, "blaker": proportion.blaker}
    if guarded.rates is not None and method in guarded.by_strata:
        below, above = stratified_clopper_pearson(guarded.rates, *tail_shares(level, "two-sided"))
        if guarded.exact is not None:
            ends = stratified_clopper_pearson(guarded.exact, *tail_shares(level, "two-sided"))
            below, above = (np.where(found.tuned, *pair) for pair in zip((below, above), ends, strict=True))
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
    """Effective trials (R,) where they are used, what is known of the strata, the unseen share.

    `exact`: the same of one stratum of 0 and 1 where λ is 0.
    """

    trials: FloatArray
    rates: StratumRates | None
    unseen: FloatArray
    exact: StratumRates | None = None

    @property
    def by_strata(self) -> tuple[str, ...]:
        """The methods that are the test inverted over strata."""
        named = ("auto", "stratified-clopper-pearson")
        assert self.rates is not None
        return named if self.rates.rates.shape[-1] > 1 else ("clopper-pearson", *named)


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
        looked=layout.looked,
        units=size,
        binary=truth.binary,
    )
    smooth = guard.smoothed_moments(labels)
    census = layout.census & (not above)
    trials, rates, exact = np.full(1, np.inf), None, None
    one_number = len(layout.sizes) == 1 or bool(set(settings.intervals) - _WITHOUT_TRIALS)
    # As in `Evidence.rates`: without λ the strata's trials follow from the design, and no variance is needed.
    variances = guard.Variances.of_labels()
    if one_number or above or np.any(found.tuned):
        variances = _variances(found, labels, layout.spread(first, second), layout, settings)
    if one_number:
        trials = np.where(census, np.inf, guard.binary_trials(guard.worth(smooth, variances), smooth))
    values = (np.clip(found.values, low, high) - low) / scale
    if len(layout.sizes) > 1:
        rates = guard.stratum_rates(values, labels, smooth, variances)
    elif not above:
        rates = guard.one_stratum_rates(values, labels, trials)
        if truth.binary:
            exact = guard.stratum_rates(values, labels, smooth, guard.Variances.of_labels())
    unseen = np.zeros(1)
    if not truth.binary:
        error, _ = tail_shares(settings.confidence_level, "two-sided")
        unseen = 1.0 - stratified_clopper_pearson(guard.agreeing_rates(labels, drawn=above), error, 0.0)[0]
    return _Guarded(
        trials=trials,
        rates=rates,
        exact=exact,
        unseen=np.where(census, 0.0, unseen),
    )


def _variances(
    found: Replicates, labels: guard.UnitMoments, within: FloatArray, layout: Layout, settings: Settings
) -> guard.Variances:
    """Return the replicates' variances on the 0–1 scale; `within` are the strata's s_h² (R, H) on it."""
    assert settings.bounds is not None
    scale = settings.bounds[1] - settings.bounds[0]
    own, between = population_spread(
        labels.means[..., None], within[..., None, None], labels.counts, layout.sizes
    )
    return guard.Variances(
        residual=(found.variances - found.population_parts) / scale**2,
        plain=layout.parts(within).sum(axis=1),
        spread=(own + np.maximum(between, 0.0))[..., 0, 0],
        population_part=found.population_parts / scale**2,
        tuned=found.tuned,
        drawn_from=float(layout.sizes.sum()) if settings.target == "superpopulation" else np.inf,
        weights_known=settings.stratum_weights_known,
    )
