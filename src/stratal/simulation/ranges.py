"""The confidence intervals of thousands of replicates at once, from sums per stratum.

They are those of one sample, by the same table; a test holds the two together to the last digits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError, near_names
from stratal.intervals import guard, student
from stratal.intervals.evidence import IntervalEvidence, OutcomeKind, OwnInterval
from stratal.intervals.methods import TABLE, bounds_function
from stratal.intervals.skewed import mean_skewness
from stratal.simulation.replicates import Layout, Replicates
from stratal.simulation.simulated_design import Settings
from stratal.simulation.sums import StratumSums, spread
from stratal.simulation.truth import Truth
from stratal.weighting.stratum_moments import population_spread

PUBLISHED = "published"
INTERVALS = ("auto", *(name for name, kind in TABLE.items() if not kind.reads_labels), PUBLISHED)
"""`published`: value ± z · standard error with nothing guarded and nothing cut, as the papers have it."""


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
    bounds, level = settings.bounds, settings.confidence_level
    whole = ReplicateEvidence(
        value=found.values if bounds is None else np.clip(found.values, *bounds),
        degrees_of_freedom=found.degrees_of_freedom,
        outcome="unbounded" if bounds is None else "binary" if truth.binary else "bounded",
        bounds=bounds,
        tuned=bool(found.tuned.all()),
        superpopulation=settings.target == "superpopulation",
        found=found,
        sums=sums,
        layout=layout,
        truth=truth,
        settings=settings,
    )
    # Some methods are others where λ is 0: a published λ is so in samples that show nothing.
    cases = [whole] if whole.tuned or not found.tuned.any() else [replace(whole, tuned=True), whole]

    def limits(method: str) -> tuple[FloatArray, FloatArray]:
        if method == PUBLISHED:
            error = np.sqrt(whole.textbook_variance)
            return student.student_t(found.values, error, confidence_level=level)
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
    found, sums, layout, truth, settings
        Where the rest comes from; see `replicate_intervals`.

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
    sums: StratumSums
    layout: Layout
    truth: Truth
    settings: Settings
    own: OwnInterval | None = None

    @property
    def n(self) -> int:
        """Labels of every replicate."""
        return int(self.layout.counts[0].sum())

    @property
    def census(self) -> bool:
        """Whether every unit is labelled."""
        return bool(np.all(self.layout.census)) and not self.superpopulation

    @property
    def textbook_variance(self) -> FloatArray:
        """The variances by the formula."""
        return np.maximum(self.found.variances, 0.0)

    @property
    def in_strata(self) -> bool:
        """Whether there are several strata."""
        return len(self.layout.sizes) > 1

    @property
    def in_one_stratum(self) -> bool:
        """Whether there is one, whose units are all that counts."""
        return not self.in_strata and not self.superpopulation

    @cached_property
    def _powers(self) -> tuple[FloatArray, FloatArray]:
        """Σ z and Σ z² (R, H) on the 0–1 scale."""
        (low, high), counts, sums = self.limits, self.layout.counts, self.sums
        scale, shift = high - low, self.truth.centre - low
        second = sums.zz + 2.0 * shift * sums.z + shift**2 * counts
        return (sums.z + shift * counts) / scale, second / scale**2

    @cached_property
    def moments(self) -> guard.UnitMoments:
        """What the labels add up to, on the 0–1 scale."""
        layout, (first, second) = self.layout, self._powers
        return guard.UnitMoments(
            means=first / layout.counts,
            squares=second / layout.counts,
            counts=layout.counts,
            shares=layout.weights,
            factors=layout.factors,
            draws=layout.draws,
            looked=layout.looked,
            units=float(layout.sizes.sum()),
            binary=self.truth.binary,
        )

    @cached_property
    def trials(self) -> FloatArray:
        """Independent binary trials that the labels are worth."""
        smooth = guard.smoothed_moments(self.moments)
        return guard.binary_trials(guard.worth(smooth, self.variances(self.moments)), smooth)

    @cached_property
    def skewness(self) -> FloatArray:
        """γ of the estimates, from what their labels (or residuals) show."""
        lam, layout = self.found.lam, self.layout
        spreads = spread(layout.counts, *self.sums.residual(lam))
        thirds = self.sums.centred_thirds(lam)
        return np.asarray(mean_skewness(layout.counts, layout.factors, spreads, thirds))

    def variances(self, labels: guard.UnitMoments) -> guard.Variances:
        """Return the variances that the guards compare, on the 0–1 scale."""
        (low, high), layout, size = self.limits, self.layout, float(self.layout.sizes.sum())
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
            weights_known=self.settings.stratum_weights_known,
        )
