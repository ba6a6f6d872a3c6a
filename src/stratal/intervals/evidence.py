"""`Evidence`: the n-sized arrays that an interval is made from, and the kind of outcome that they measure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from stratal.arrays import FloatArray, Record
from stratal.designs import ClusterWeighting, Weighting
from stratal.designs.weighting import SAME
from stratal.errors import InputError, LabelError, not_bounds
from stratal.intervals.guard import (
    ROUNDING,
    UnitMoments,
    Variances,
    agreeing_rates,
    effective_trials,
    one_stratum_rates,
    smoothed_moments,
    stratum_rates,
    variances_of,
)
from stratal.intervals.interval import unseen_share
from stratal.intervals.limits import Limits
from stratal.intervals.skewed import skewness_of
from stratal.intervals.stratified import StratumRates, stratified_clopper_pearson

OutcomeKind = Literal["binary", "bounded", "unbounded"]
OUTCOMES = ("binary", "bounded", "unbounded")
TARGETS = ("population", "superpopulation")


class IntervalEvidence(ABC):
    """What every interval method reads: of one estimate, or of R replicates, each number then an array (R,).

    `varies`: whether the variance is more than rounding; `own`: what `auto` takes instead of a method.

    Examples
    --------
    >>> issubclass(Evidence, IntervalEvidence)
    True
    """

    __slots__ = ()
    value: Any
    degrees_of_freedom: Any
    outcome: OutcomeKind
    bounds: tuple[float, float] | None
    tuned: bool
    superpopulation: bool
    own: Limits | None
    linearised: bool

    @property
    def varies(self) -> bool:
        """Whether the labels do not all agree; replicates among which they may are taken as they are."""
        return True

    @property
    @abstractmethod
    def n(self) -> int:
        """Labels."""

    @property
    def draws(self) -> int:
        """Units or clusters drawn."""
        return self.n

    @property
    @abstractmethod
    def census(self) -> bool:
        """Whether every unit is labelled, so that nothing is left to be estimated of the population."""

    @property
    @abstractmethod
    def textbook_variance(self) -> Any:
        """The variance by the formula."""

    @property
    @abstractmethod
    def moments(self) -> UnitMoments:
        """What the labels add up to, on the 0–1 scale."""

    @abstractmethod
    def variances(self, labels: UnitMoments) -> Variances:
        """Return the variances that the guards compare, on the 0–1 scale; `labels` are the `moments`."""

    @property
    @abstractmethod
    def trials(self) -> Any:
        """Independent binary trials that the labels are worth."""

    @property
    @abstractmethod
    def skewness(self) -> Any:
        """γ of the estimate, from what its labels (or residuals) show."""

    @property
    @abstractmethod
    def in_strata(self) -> bool:
        """Whether there are several strata, and each one's labels are a random sample of it."""

    @property
    @abstractmethod
    def in_one_stratum(self) -> bool:
        """Whether the labels are one random sample of a population whose units are all that counts."""

    @property
    def weights_freedom(self) -> float:
        """Degrees of freedom that unequal weights leave to a variance, at most n − 1."""
        return float(max(self.n - 1, 1))

    @property
    def size_shift(self) -> float:
        """How far the mean moves if the drawn clusters had the population's mean size; 0 for single units."""
        return 0.0

    @property
    def size_reach(self) -> tuple[float, float, float]:
        """How far the mean moves if clusters are as large as all are, its error's factor and freedom."""
        return 0.0, 1.0, 1.0

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds of an outcome that has them."""
        if self.bounds is None:
            raise InputError("this needs an outcome with bounds", action="Give bounds=(lowest, highest).")
        return self.bounds

    @property
    def rates(self) -> StratumRates:
        """What the labels say of each stratum, on the 0–1 scale."""
        low, high = self.limits
        labels = self.moments
        value = (self.value - low) / (high - low)
        if self.in_one_stratum and (self.tuned or not labels.binary):
            return one_stratum_rates(value, labels, self.trials)
        # Without λ the trials follow from the design, and no variance is needed.
        found = self.variances(labels) if self.tuned or self.superpopulation else Variances.of_labels()
        return stratum_rates(value, labels, smoothed_moments(labels), found)

    def unseen(self, error: float) -> Any:
        """Return the share of units that, but for this error, no label was like: if all labels agreed."""
        if error <= 0:
            return 0.0
        agreeing = agreeing_rates(self.moments, drawn=self.superpopulation)
        return 1.0 - stratified_clopper_pearson(agreeing, error, 0.0)[0]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence(IntervalEvidence, Record):
    """What the interval methods see of an estimate.

    Parameters
    ----------
    value : float
        The estimate, within the bounds.
    variance : float
        Of the target; may be NaN (one label) or 0 (all residuals agree).
    population_part : float
        The part of the variance that is due to the population's own draw.
    degrees_of_freedom : float
    outcome : {"binary", "bounded", "unbounded"}
    bounds : (float, float), optional
    z, residuals : float (n,)
        The outcome, and the variable whose weighted mean plus `known` is the estimate.
    known : float
    weighting : Weighting
    tuned : bool
        Whether the residuals differ from z: λ is not 0.
    superpopulation : bool
        Whether the population's own draw counts.
    stratum_weights_known : bool
        Whether the W_h are known then, rather than drawn with the N units.
    given_trials : float, optional
        Effective trials, where whoever made the estimate knows better than `effective_trials` (a ratio, say).
    own : Limits, optional
        Limits that `auto` gives instead of the mean's.
    linearised : bool
        The labels are value + u of a linearised variable u, and no outcomes: only their variance counts.

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> z = np.array([0.0, 1.0])
    >>> weighting = StratifiedWeighting(stratum=np.array([0, 0]), sizes=np.array([10]))
    >>> Evidence(value=0.5, variance=0.2, population_part=0.0, degrees_of_freedom=1.0, outcome="binary",
    ...          bounds=(0.0, 1.0), z=z, residuals=z, known=0.0, weighting=weighting, tuned=False).census
    False
    """

    value: float
    variance: float
    population_part: float
    degrees_of_freedom: float
    outcome: OutcomeKind
    bounds: tuple[float, float] | None
    z: FloatArray
    residuals: FloatArray
    known: float
    weighting: Weighting
    tuned: bool
    superpopulation: bool = False
    stratum_weights_known: bool = False
    given_trials: float | None = None
    own: Limits | None = None
    linearised: bool = False

    @property
    def n(self) -> int:
        """Labels."""
        return len(self.z)

    @property
    def draws(self) -> int:
        """Units or clusters drawn."""
        return int(self.weighting.draws)

    @property
    def census(self) -> bool:
        """Whether every unit is labelled, so that nothing is left to be estimated of the population."""
        return self.weighting.census and not self.superpopulation

    @property
    def varies(self) -> bool:
        """Whether the variance estimate is more than rounding: the labels (or residuals) do not all agree."""
        scale = float(np.max(np.abs(self.z), initial=0.0)) if self.bounds is None else np.ptp(self.bounds)
        return bool(np.isfinite(self.variance) and self.variance > ROUNDING * scale**2)

    @property
    def textbook_variance(self) -> float:
        """The variance by the formula: 0 where the labels agree, the guarded one of a single label."""
        if np.isfinite(self.variance):
            return max(self.variance, 0.0)
        if self.bounds is None:
            raise InputError(
                "the variance cannot be estimated from one label of an unbounded outcome",
                given=f"{self.n} label",
                action="Label at least 2 units, or give the outcome's bounds.",
            )
        return self.guarded_variance

    @property
    def reported_variance(self) -> float:
        """The same, and the guarded one where labels agree: none is 0 while units are unlabelled.

        NaN where an outcome without bounds shows none.
        """
        if self.varies or self.census or not np.isfinite(self.variance):
            return self.textbook_variance
        return float("nan") if self.bounds is None else self.guarded_variance

    @property
    def guarded_variance(self) -> float:
        """The variance, not less than what the effective trials allow; bounded outcomes only."""
        low, high = self.limits
        smooth = float(smoothed_moments(self.moments).mean)
        floor = smooth * (1.0 - smooth) / self.trials * (high - low) ** 2
        return max(self.variance, floor) if np.isfinite(self.variance) else floor

    @property
    def unit(self) -> FloatArray:
        """The outcome on the 0–1 scale (n,)."""
        low, high = self.limits
        return np.asarray((self.z - low) / (high - low))

    @property
    def moments(self) -> UnitMoments:
        """What the labels add up to, on the 0–1 scale."""
        return UnitMoments.of(self.unit, self.weighting, binary=self.outcome == "binary")

    @property
    def trials(self) -> float:
        """Independent binary trials that the labels are worth; infinite for a census."""
        if self.census:
            return float("inf")
        if self.given_trials is not None:
            return self.given_trials
        labels = self.moments
        return effective_trials(labels, self.variances(labels), self.weighting)

    @property
    def weights_freedom(self) -> float:
        """Degrees of freedom that unequal weights leave to a variance, at most n − 1.

        Satterthwaite's of Σ w² e², twice: he takes e² to vary as a normal outcome's, with kurtosis 3, and an
        outcome inside its bounds has less than 2 unless it is rare, which the number of trials sees to.
        """
        weighting, most = self.weighting, float(max(self.n - 1, 1))
        if weighting.groups is not None or weighting.random_within_strata:
            return most
        squares = weighting.weights**2
        return float(np.clip(2.0 * squares.sum() ** 2 / np.sum(squares**2), 1.0, most))

    @property
    def size_shift(self) -> float:
        """How far the mean moves if the drawn clusters had the population's mean size; 0 for single units.

        By the regression of the clusters' residuals on their sizes, whose mean is known. Where the outcome
        goes with the size of its cluster, large clusters are many units that most samples lack.
        """
        weighting = self.weighting
        if weighting.groups is None or weighting.draws < 3:
            return 0.0
        off = self.residuals - weighting.weights @ self.residuals / weighting.total
        joint = weighting.covariance(np.column_stack([off, np.ones(self.n)]))
        # Below this the sum of the weights, which estimates 1, is the same in every draw but for rounding.
        varies = joint[1, 1] > SAME
        return float(joint[0, 1] / joint[1, 1] * (1.0 - weighting.total)) if varies else 0.0

    @property
    def size_reach(self) -> tuple[float, float, float]:
        """How far the mean moves if units are in clusters as large as all units are, and its error's factor.

        A sample of clusters mostly lacks the largest, and with them many units at once. Their known squared
        sizes tell how many; the regression of units on the size of their cluster how unlike they are, with a
        standard error that is larger for reaching beyond what was drawn, and has the third number as degrees
        of freedom. (0, 1, 1) where sizes tell nothing.
        """
        if not isinstance(self.weighting, ClusterWeighting) or not self.varies:
            return 0.0, 1.0, 1.0
        found = self.weighting.at_all_sizes(self.residuals if self.tuned else self.z)
        if found is None:
            return 0.0, 1.0, 1.0
        mean, variance = found[0] + (self.known if self.tuned else 0.0), found[1] + self.population_part
        return mean - self.value, float(np.sqrt(max(variance / self.variance, 1.0))), found[2]

    @property
    def in_strata(self) -> bool:
        """Whether there are several strata, and each one's labels are a random sample of it."""
        return (
            self.given_trials is None
            and self.weighting.random_within_strata
            and int(np.sum(self.weighting.counts > 0)) > 1
        )

    @property
    def in_one_stratum(self) -> bool:
        """Whether the labels are one random sample of a population whose units are all that counts."""
        alone = self.weighting.random_within_strata and len(self.weighting.counts) == 1
        return self.given_trials is None and alone and not self.superpopulation

    @property
    def labelled_share(self) -> float:
        """The share of the units that counts as labelled: none where the population's own draw counts."""
        return 0.0 if self.superpopulation else min(self.n / self.weighting.population_size, 1.0)

    def unseen(self, error: float) -> Any:
        """Return the share of units that, but for this error, no label was like; see `intervals.unseen`."""
        if self.weighting.random_within_strata:
            return super(Evidence, self).unseen(error)
        return unseen_share(self.weighting.effective_draws, self.labelled_share, error)

    def variances(self, labels: UnitMoments) -> Variances:
        """Return the variances that the guards compare, on the 0–1 scale; `labels` are the `moments`."""
        low, high = self.limits
        scale = (high - low) ** 2
        return variances_of(
            self.unit,
            labels,
            self.weighting,
            residual=(self.variance - self.population_part) / scale,
            population_part=self.population_part / scale,
            tuned=self.tuned,
            drawn=self.superpopulation,
            weights_known=self.stratum_weights_known,
        )

    @property
    def skewness(self) -> float:
        """γ of the estimate, from what its labels (or residuals) show."""
        return skewness_of(self.residuals, self.weighting)

    @property
    def population_spread(self) -> float:
        """S², the estimated variance of z over the population; smoothed where all labels agree."""
        weighting = self.weighting
        spread = float(weighting.population_covariance(self.z[:, None])[0, 0]) * weighting.population_size
        if not (np.isfinite(spread) and spread > 0) and self.bounds is not None:
            low, high = self.bounds
            return float(smoothed_moments(self.moments).spread) * (high - low) ** 2
        return spread


def infer_outcome(
    z: FloatArray, outcome: OutcomeKind | None, bounds: tuple[float, float] | None
) -> tuple[OutcomeKind, tuple[float, float] | None]:
    """Return the outcome's kind and bounds: as given, else binary if all labels are 0 or 1, else unbounded.

    Raises
    ------
    LabelError
        For a label outside the bounds.
    InputError
        For an unknown kind, bounds in the wrong order, or a bounded outcome without bounds.

    Examples
    --------
    >>> infer_outcome(np.array([0.0, 1.0]), None, None)
    ('binary', (0.0, 1.0))
    >>> infer_outcome(np.array([3.0, 5.0]), None, (1, 5))
    ('bounded', (1.0, 5.0))
    """
    if outcome is not None and outcome not in OUTCOMES:
        raise InputError("no such kind of outcome", given=repr(outcome), allowed=", ".join(OUTCOMES))
    if bounds is not None:
        bounds = (float(bounds[0]), float(bounds[1]))
        if not (np.all(np.isfinite(bounds)) and bounds[0] < bounds[1]):
            raise not_bounds(bounds)
    binary_labels = bool(np.all((z == 0) | (z == 1)))
    if outcome is None:
        if bounds is None:
            outcome = "binary" if binary_labels else "unbounded"
        else:
            outcome = "binary" if bounds == (0.0, 1.0) and binary_labels else "bounded"
    if outcome == "unbounded":
        return outcome, None
    if outcome == "binary":
        bounds = (0.0, 1.0)
    if bounds is None:
        raise InputError("a bounded outcome needs its bounds", action="Give bounds=(lowest, highest).")
    allowed = binary_labels if outcome == "binary" else bool(np.all((z >= bounds[0]) & (z <= bounds[1])))
    if not allowed:
        bad = z[(z != 0) & (z != 1)] if outcome == "binary" else z[(z < bounds[0]) | (z > bounds[1])]
        raise LabelError(
            f"{len(bad)} labels lie outside the {outcome} outcome's values (first: {bad[0]:g})",
            allowed="0 or 1" if outcome == "binary" else f"{bounds[0]:g} to {bounds[1]:g}",
        )
    return outcome, bounds


def design_effect(
    variance: float, spread: float, n: int, population_size: float, target: str = "population"
) -> tuple[float | None, float | None]:
    """Return the design effect and the effective sample size.

    The effective size m is that of a simple random sample of this population with the same variance:
    (1 − m/N) S²/m = variance, so m = S² / (variance + S²/N). For a superpopulation the S²/N is in the
    variance already.

    Examples
    --------
    >>> effect, size = design_effect(0.0, 0.25, 100, 100)
    >>> size
    100.0
    >>> [round(number, 9) for number in design_effect(0.0025 * 0.9, 0.25, 100, 1000)]
    [1.0, 100.0]
    """
    if not (spread > 0 and np.isfinite(variance)):
        return None, None
    own = spread / population_size if target == "population" else 0.0
    effective = min(spread / (variance + own), population_size) if variance + own > 0 else population_size
    random = spread / n - own
    return (float(variance / random) if random > 0 else 1.0), float(effective)


def require_target(target: str) -> None:
    """Raise an `InputError` for an unknown target.

    Examples
    --------
    >>> require_target("population")
    """
    if target not in TARGETS:
        raise InputError("no such target", given=repr(target), allowed="'population' or 'superpopulation'")
