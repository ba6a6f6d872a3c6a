"""`Estimate`: a value that knows how it came about, and gives any interval afterwards."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray, Record
from stratal.errors import InputError, names_mistyped
from stratal.intervals.evidence import Evidence, OutcomeKind
from stratal.intervals.interval import ConfidenceInterval, p_value
from stratal.intervals.methods import bounds_function, interval_of
from stratal.intervals.proportion import clopper_pearson
from stratal.labels.meanings import Meaning, values_described
from stratal.report import Intervals, Page, Plotted, Printed, estimate_page, plain, plain_dict

REPLICATES = 1_000
BORROWED = 2.0
"""Labels' worth that a stratum takes from all labels."""

_SEED = 20_261_121
_MOST_LABELS = 20_000
"""Beyond this the range is within a few hundredths, and not worth the memory."""


_BISECTIONS = 60


def effective_size_interval(
    size: float | None, evidence: Evidence, confidence_level: float = 0.95
) -> tuple[float, float] | None:
    """Return a range for the effective sample size; None where it is not known or there is none.

    For simple random and stratified samples, and the mean over the population. How often it holds the true
    size was measured: benchmarks/results/effective_size.md.

    Parameters
    ----------
    size : float, optional
        The effective sample size.
    evidence : Evidence
        What it is of.
    confidence_level : float

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 500 + [0.9] * 500)
    >>> sample = stratal.plan(population, 100).draw(seed=7)
    >>> labels = {unit: float((unit >= 500) != (unit % 10 == 0)) for unit in sample.ids.tolist()}
    >>> found = stratal.estimate(sample, labels)
    >>> low, high = effective_size_interval(found.effective_sample_size, found.evidence)
    >>> low < found.effective_sample_size < high
    True
    """
    weighting = evidence.weighting
    stratified = weighting.random_within_strata and not evidence.superpopulation
    if size is None or not evidence.varies or not stratified or evidence.n > _MOST_LABELS:
        return None
    tail = (1.0 - confidence_level) / 2.0
    sizes = _replicated(evidence)
    if not np.all(sizes > 0):  # labels that all agree, about which the proxy varies: worth no random label
        return None
    logs = np.log(sizes)
    ends = np.quantile(logs, [tail, 1.0 - tail])
    around = ends - logs.mean() + math.log(size)
    at = around if evidence.own is not None else ends  # a win rate's own size is not that of its parts
    low, high = math.exp(min(around[0], at[0])), math.exp(max(around[1], at[1]))
    return min(low, size), float(min(max(high, size), weighting.population_size))


def random_labels_of_equal_width(
    size: float | None,
    evidence: Evidence,
    interval: tuple[float, float],
    confidence_level: float,
    range_: tuple[float, float] | None,
) -> float | None:
    """Return how many random labels give as narrow an interval; None where the effective size stands.

    Parameters
    ----------
    size : float, optional
        The effective sample size.
    evidence : Evidence
    interval : (float, float)
        Two-sided.
    confidence_level : float
    range_ : (float, float), optional
        That of the effective size. Without one it does not stand, nor where all of it is more than this.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(ids=range(5000))
    >>> sample = stratal.SimpleRandom(budget=50).draw(population, seed=7)
    >>> found = stratal.estimate(sample, [1.0] * 50)
    >>> ends = tuple(found.confidence_interval())
    >>> round(random_labels_of_equal_width(None, found.evidence, ends, 0.95, None))
    50
    """
    if evidence.bounds is None or evidence.own is not None or evidence.census:
        return None
    lowest, highest = evidence.bounds
    scale = highest - lowest
    value, width = (evidence.value - lowest) / scale, (interval[1] - interval[0]) / scale
    trials = _trials_of(value, width, confidence_level)
    binary = value * (1.0 - value)
    labels = trials * (evidence.population_spread / scale**2 / binary if binary > 0 else 1.0)
    if not evidence.superpopulation:
        labels = labels / (1.0 + labels / evidence.weighting.population_size)
    return float(labels) if size is None or range_ is None or labels < range_[0] else None


def _trials_of(value: float, width: float, confidence_level: float) -> float:
    """Return the binary trials whose interval about a value has this width."""
    few, many = math.log(0.1), math.log(1e15)
    for _ in range(_BISECTIONS):
        middle = (few + many) / 2.0
        low, high = clopper_pearson(value, math.exp(middle), confidence_level=confidence_level)
        few, many = (middle, many) if high - low > width else (few, middle)
    return math.exp(many)


def _replicated(evidence: Evidence) -> FloatArray:
    """Return the effective size of each replicate (B,)."""
    weighting, z, residuals = evidence.weighting, evidence.z, evidence.residuals
    stratum, counts = weighting.stratum, weighting.counts
    shares, factors = weighting.shares, weighting.variance_factors
    chances = (shares / np.maximum(counts, 1))[stratum]
    chances = chances / chances.sum()
    rng = np.random.default_rng(_SEED)
    variance, means, within = np.zeros(REPLICATES), [], []
    for h, count in enumerate(counts):
        own = np.flatnonzero(stratum == h)
        other = rng.choice(len(z), size=REPLICATES, p=chances)
        weights = rng.gamma(np.r_[np.ones(count), BORROWED], size=(REPLICATES, count + 1))
        weights /= weights.sum(axis=1, keepdims=True)
        mean, spread = _moments(z, own, other, weights)
        means.append(mean)
        within.append(spread)
        variance += factors[h] * _moments(residuals, own, other, weights)[1]
    centres = np.column_stack(means)
    between = (centres - (centres @ shares)[:, None]) ** 2
    spread = (np.column_stack(within) + between) @ shares
    return np.asarray(
        spread / np.maximum(variance + spread / weighting.population_size, np.finfo(float).tiny)
    )


def _moments(
    values: FloatArray, own: IntArray, other: IntArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return weighted mean and variance (B,) of a stratum's values and one borrowed value per replicate."""
    known, borrowed, last = values[own], values[other], weights[:, -1]
    mean = weights[:, :-1] @ known + last * borrowed
    square = weights[:, :-1] @ known**2 + last * borrowed**2
    return mean, np.maximum(square - mean**2, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nonresponse:
    """Units drawn, units labelled, and the share that was not labelled.

    `worst_bounds`: what the estimate without a proxy is if every missing label is at the lower bound of the
    outcome, and at the upper; None where none is missing, or there are no bounds.

    Examples
    --------
    >>> Nonresponse(drawn=10, labelled=8).rate
    0.2
    """

    drawn: int
    labelled: int
    worst_bounds: tuple[float, float] | None = None

    @property
    def rate(self) -> float:
        """1 − labelled / drawn."""
        return (self.drawn - self.labelled) / self.drawn if self.drawn else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dict."""
        bounds = None if self.worst_bounds is None else list(self.worst_bounds)
        return {"drawn": self.drawn, "labelled": self.labelled, "rate": self.rate, "worst_bounds": bounds}


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumRow:
    """One line of an estimate's strata table.

    `mean` and `standard_deviation` are None where nothing is known.

    Examples
    --------
    >>> row = StratumRow(name="all", size=10, n=2, mean=0.5, standard_deviation=0.7, weight=1.0, lam=())
    >>> row.to_dict()["n"]
    2
    """

    name: str
    size: int
    n: int
    mean: float | None
    standard_deviation: float | None
    weight: float
    lam: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dict."""
        return {name: getattr(self, name) for name in self.__slots__} | {"lam": list(self.lam)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate(Record, Printed, Plotted):
    """An estimate with all that is needed to judge it. Level and kind of interval are chosen afterwards.

    Parameters
    ----------
    value, standard_error, degrees_of_freedom : float
        In the outcome's units; the value lies within its bounds.
    n : int
        Labels used.
    population_size : int
        N.
    target : {"population", "superpopulation"}
    design, estimator : str
        `auto` resolved.
    outcome : {"binary", "bounded", "unbounded"}
    bounds : (float, float), optional
        None for an unbounded outcome.
    lam : tuple of float
        One per proxy; empty where λ = 0 by definition. Per stratum in `strata`.
    nonresponse : Nonresponse
    strata : tuple of StratumRow
    design_effect : float
        Variance over that of a simple random sample of n; None where the labels show no variance.
    effective_sample_size : float
        Size of the simple random sample of this population with the same variance; a census is worth N.
    relative_efficiency : float
        1 / design_effect; above 1 is better.
    label_values : tuple of Meaning
        What each distinct raw value of the labels counts as, and how many have it.
    label : mapping of str
        What it is of, where that is not the mean: the estimand, or the row's group, class or models.
    null : float, optional
        The value that it is compared with: 0 for a difference.
    notes : tuple of str
        What was said while it was made (`remarks`), and then what `doubts` finds: it is asked when the notes
        are read, so that the number does not wait for it.
    evidence : Evidence
        Labelled units' arrays for the interval methods; not shown, not compared.

    Examples
    --------
    >>> import numpy as np
    >>> from stratal.estimation.outcome_means import estimate_mean
    >>> from stratal.designs import StratifiedWeighting
    >>> z, h = np.array([1.0, 1, 0, 1, 0, 1]), np.zeros(6, dtype=int)
    >>> weighting = StratifiedWeighting(stratum=h, sizes=np.array([100]))
    >>> estimate = estimate_mean(z, np.zeros((6, 0)), weighting, None, stratum=h, design="simple-random")
    >>> low, high = estimate.confidence_interval(0.9)
    >>> round(estimate.value, 3), low > 0, high < 1
    (0.667, True, True)
    """

    value: float
    standard_error: float
    degrees_of_freedom: float
    n: int
    population_size: int
    target: str
    design: str
    estimator: str
    outcome: OutcomeKind
    bounds: tuple[float, float] | None
    lam: tuple[float, ...]
    nonresponse: Nonresponse
    strata: tuple[StratumRow, ...]
    design_effect: float | None
    effective_sample_size: float | None
    label: Mapping[str, str | None] = field(default_factory=dict)
    null: float | None = None
    label_values: tuple[Meaning, ...] = field(default=(), repr=False, compare=False)
    remarks: tuple[str, ...] = ()
    doubts: Callable[[Estimate], tuple[str, ...]] | None = field(default=None, repr=False, compare=False)
    evidence: Evidence = field(repr=False, compare=False)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know: how labels were read, what was assumed, and what they contradict."""
        return (*self.remarks, *self.refuted)

    @property
    def refuted(self) -> tuple[str, ...]:
        """What the plan took for granted and the labels refute; the last of the notes."""
        return self.doubts(self) if self.doubts is not None else ()

    @property
    def labels(self) -> int:
        """Labelled units; `n` of them count, where a metric's denominator holds only some."""
        return self.nonresponse.labelled

    @property
    def outcomes(self) -> FloatArray | None:
        """The outcome of each labelled unit (n,), where the estimate is a mean of such."""
        return None if self.evidence.linearised else self.evidence.z

    @property
    def relative_efficiency(self) -> float | None:
        """Variance of a simple random sample of n over this variance; above 1 is better."""
        if self.design_effect is None:
            return None
        return 1.0 / self.design_effect if self.design_effect > 0 else float("inf")

    @names_mistyped
    def confidence_interval(
        self, confidence_level: float = 0.95, method: str = "auto", alternative: str = "two-sided"
    ) -> ConfidenceInterval:
        """Return a confidence interval of the chosen level and kind.

        Parameters
        ----------
        confidence_level : float
            Between 0 and 1.
        method : str
            `auto`, or one of `stratal.intervals.methods.METHODS`.
        alternative : {"two-sided", "less", "greater"}
            `less` bounds the value from above, `greater` from below.

        Raises
        ------
        InputError
            For an unknown method or level, and where the labels of an unbounded outcome all agree.
        """
        return interval_of(self.evidence, confidence_level, method, alternative)

    @names_mistyped
    def p_value(self, null: float, method: str = "auto", alternative: str = "two-sided") -> float:
        """Return the p-value of the hypothesis that the value is `null`; agrees with `confidence_interval`.

        `alternative` names what is held against the null: `greater` asks whether the value is above it.
        """

        own = self.evidence.own
        if own is not None and method == "auto":
            return own.p_value(null, alternative)
        return p_value(null, bounds_function(self.evidence, method, alternative)[1])

    @names_mistyped
    def to_dict(self, confidence_level: float = 0.95, method: str = "auto") -> dict[str, Any]:
        """Return the JSON twin: plain numbers, text, lists and dicts; what is not finite is None."""
        return self._described(self.confidence_interval(confidence_level, method))

    def effective_sample_size_interval(self, confidence_level: float = 0.95) -> tuple[float, float] | None:
        """Return a range for the effective sample size, which few labels leave open.

        None where it is not known: for designs other than simple random and stratified sampling, for the
        superpopulation, and where labels agree.
        """
        return effective_size_interval(self.effective_sample_size, self.evidence, confidence_level)

    def _worth(self, interval: ConfidenceInterval | None) -> dict[str, Any]:
        """Return how many random labels these are worth: by variances, or by widths where these say less."""
        level = 0.95 if interval is None else interval.confidence_level
        size, range_ = self.effective_sample_size, self.effective_sample_size_interval(level)
        equal = None
        if interval is not None:
            ends = (interval.low, interval.high)
            equal = random_labels_of_equal_width(size, self.evidence, ends, level, range_)
        return {
            "effective_sample_size": size,
            "effective_sample_size_interval": range_,
            "random_labels_of_equal_width": equal,
        }

    def _described(self, interval: ConfidenceInterval | None) -> dict[str, Any]:
        return plain_dict(
            {
                **self.label,
                "estimate": self.value,
                "standard_error": self.standard_error,
                "degrees_of_freedom": self.degrees_of_freedom,
                "confidence_interval": None if interval is None else [*interval],
                "confidence_level": None if interval is None else interval.confidence_level,
                "interval_method": None if interval is None else interval.method,
                "n": self.n,
                **({} if self.labels == self.n else {"labels": self.labels}),
                "population_size": self.population_size,
                "target": self.target,
                "design": self.design,
                "estimator": self.estimator,
                "outcome": self.outcome,
                "bounds": self.bounds,
                "lam": self.lam,
                "design_effect": self.design_effect,
                **self._worth(interval),
                "relative_efficiency": self.relative_efficiency,
                "nonresponse": self.nonresponse.to_dict(),
                **values_described(self.label_values),
                "strata": [row.to_dict() for row in self.strata],
                "notes": self.notes,
            }
        )

    def limits(self, confidence_level: float = 0.95) -> list[float | None] | None:
        """Return the interval's two ends, None for one that is infinite; None where there is no interval."""
        try:
            ends: list[float | None] = plain([*self.confidence_interval(confidence_level)])
        except InputError:  # labels of an outcome without bounds that all agree
            return None
        return None if ends == [None, None] else ends

    def row(self, confidence_level: float = 0.95) -> dict[str, Any]:
        """Return what a table shows of it: label, value, standard error, interval and labels."""
        ends = self.limits(confidence_level)
        known = ends is not None and self.null is not None
        tested = {} if self.null is None else {"p_value": plain(self.p_value(self.null)) if known else None}
        return {
            **self.label,
            "estimate": plain(self.value),
            "standard_error": plain(self.standard_error),
            "confidence_interval": ends,
            **tested,
            "n": self.n,
        }

    def described(self, confidence_level: float = 0.95, method: str = "auto") -> dict[str, Any]:
        """Return the dict, with the reason where there is no interval."""
        try:
            return self.to_dict(confidence_level, method)
        except InputError as error:
            return self._described(None) | {"confidence_level": confidence_level, "no_interval": str(error)}

    def _page(self) -> Page:
        return estimate_page(self.described(), most_rows=12)

    def _plot(self) -> Intervals:
        """Draw the estimate with its interval, and below it the mean label of each stratum."""
        found = self.described()
        strata = found["strata"] if len(found["strata"]) > 1 else []
        return Intervals(
            title=f"{found['n']:,} labels of {found['population_size']:,} units, {found['design']} sample",
            x_label=", ".join(str(name) for name in self.label.values()) or "mean outcome",
            rows=[
                ("estimate", found["estimate"], found["confidence_interval"]),
                *((row["name"], row["mean"], None) for row in strata),
            ],
            confidence_level=found["confidence_level"],
            bare="mean label of a stratum",
        )


def empty_strata_notes(rows: tuple[StratumRow, ...]) -> tuple[str, ...]:
    """Return a note where strata have no labels.

    Examples
    --------
    >>> empty_strata_notes(())
    ()
    """
    empty = [row for row in rows if row.n == 0]
    if not empty:
        return ()
    share = sum(row.weight for row in empty)
    named = ", ".join(repr(row.name) for row in empty[:3])
    return (
        f"{len(empty)} strata without labels ({named}; {share:.1%} of the units) are taken to be like the "
        "others",
    )
