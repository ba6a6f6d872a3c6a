"""All that labels say of judges: how far each agrees with people, and what its own mean would be worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray
from stratal.designs.sample import Sample
from stratal.estimation.columns import class_column, number_column, with_group
from stratal.estimation.estimand import PLAIN, Estimand, Request
from stratal.estimation.estimands.answered import AnsweredClasses, answered_classes
from stratal.estimation.estimands.scores import (
    Bias,
    CalibrationError,
    OfScores,
    PearsonCorrelation,
    association,
    intraclass,
    pearson,
    spearman,
)
from stratal.estimation.estimate import Estimate, Estimates, linearised_estimate
from stratal.estimation.linearised import Linearised
from stratal.estimation.shares import mean_of
from stratal.population.influence import Influence
from stratal.population.population import Population

_MOST_CLASSES = 6
"""A judge with more verdicts is described by its agreement alone: each class has four rows."""

Row = tuple[Mapping[str, str | None], Estimate]
"""What a row is of, `metric`, `class` and where it is a cell `judged`, and its estimate."""


@dataclass(frozen=True, slots=True)
class JudgeReport(Estimand):
    """Judges against people: agreement, kappa, what each finds and what it calls so wrongly; or its scores.

    Parameters
    ----------
    judges : sequence of str
        Group columns of verdicts, which are called as the labels are; or proxies that hold scores. Several,
        or repeated calls of one, have rows each, and also how far they agree with each other, and their mean
        or, of three and more, their majority (a tie is the verdict of the one that is named first).

    Notes
    -----
    Of two classes there are three readings of each class's share: the labels', as the sample was drawn; the
    judge's own, which no label corrects; and Rogan & Gladen's (1978), which corrects the judge's by the rates
    at which the labels find it right, taken for labels of a random sample.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(groups={"judge": ["pass", "fail"] * 50})
    >>> sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=7)
    >>> labels = sample.groups["judge"].copy()
    >>> labels[:2] = "pass"
    >>> found = stratal.estimate(sample, labels, judge="judge")
    >>> found.of(metric="agreement").value >= 0.9
    True
    """

    kind: ClassVar[str] = "judge"
    listed: ClassVar[str] = "judges"
    shown: ClassVar[str] = "verdict"
    of_classes = True
    judges: tuple[str, ...]

    def __post_init__(self) -> None:
        given = self.judges.split(",") if isinstance(self.judges, str) else self.judges
        self._set(judges=tuple(dict.fromkeys(name.strip() for name in given)))

    def compares(self, predicted: str | bool, kept: str | None) -> bool:
        """Return whether labels are compared with this column of answers."""
        return predicted is True or predicted in self.judges

    def influence(self, population: Population) -> Influence:
        """Return that of the first one's agreement, or of its correlation where it gives scores."""
        first = self.judges[0]
        if first in population.proxy_names:
            return PearsonCorrelation(first).influence(population)
        return Estimand.parse_text(f"agreement:{first}").influence(population)

    def _scores(self, sample: Sample) -> bool:
        """Return whether the judges give scores; refuse some that do and some that do not."""
        return all(name in sample.proxy_names and name not in sample.groups for name in self.judges)

    def labelled_units(self, sample: Sample, labels: Any) -> BoolArray:
        """Return which of the drawn units (n,) have a label."""
        if self._scores(sample):
            return np.isfinite(number_column(sample, labels, "label"))
        return answered_classes(sample, labels, self.judges[0]).labelled

    def estimate(self, sample: Sample, labels: Any, request: Request = PLAIN) -> Estimates:
        """Return a row for each quantity, labelled with `judge`, `metric` and `class`."""
        target, judges, together = request.target, self.judges, len(self.judges) > 1
        found: list[tuple[str, Row]] = []
        if self._scores(sample):
            found += [(name, row) for name in judges for row in _of_scores(sample, labels, name, target)]
            if together:
                mean = np.mean([number_column(sample, name, name) for name in judges], axis=0)
                name = f"mean of {len(judges)}"
                found += [(name, row) for row in _associations(sample, labels, mean, target)]
        else:
            if len(judges) > 2:  # of two, that of the first
                sample, judges = with_majority(sample, judges)
            found += [(name, row) for name in judges for row in _of_verdicts(sample, labels, name, target)]
            if together:
                all_units = sample.weighting(np.ones(sample.size, dtype=bool))
                equal = [sample.groups[a] == sample.groups[b] for a, b in combinations(self.judges, 2)]
                same = mean_of(np.mean(equal, axis=0), all_units, target)
                found.append((f"{len(self.judges)} together", ({"metric": "consistency"}, same)))
        keys = ("metric", "class", *(["judged"] if any("judged" in of for _, (of, _) in found) else []))
        rows = [
            replace(row, label={"judge": name} | {key: of.get(key) for key in keys})
            for name, (of, row) in found
        ]
        remarks = [
            f"{missing:,} of {sample.size:,} drawn units have no verdict of {name!r}: they count as ones on "
            "which it differs from people"
            for name in self.judges
            if (missing := int(np.sum(sample.groups.get(name, np.array([])) == "")))
        ]
        about = f", judge {', '.join(self.judges)}"
        return Estimates.from_rows(sample, rows, "judge", remarks, about)

    def by(self, sample: Sample, labels: Any, group: Any, request: Request = PLAIN) -> Estimates:
        """Return agreement, kappa and what is found of each class in each group, for verdicts.

        A remark names each group in which a judge is worse than over all units: the group's interval, at a
        level that holds for all groups and quantities of a judge together (Bonferroni), lies below.
        """
        if self._scores(sample):
            return Estimand.by(self, sample, labels, group, request)
        rows, remarks = [], []
        for judge in self.judges:
            answered = answered_classes(sample, labels, judge)
            requested: list[tuple[str, int | None]] = [("accuracy", None), ("kappa", None)]
            if len(answered.levels) <= _MOST_CLASSES:
                requested += [("recall", k) for k in range(len(answered.levels))]
            everyone = np.ones(len(answered.confusion.true), dtype=bool)
            each = [answered.within(sample, group, name, k, request.target) for name, k in requested]
            level = 1.0 - _ERROR / max(sum(map(len, each)), 1)
            for (name, k), found in zip(requested, each, strict=True):
                overall = answered.confusion.within(everyone, name, k, request.target)
                metric = "agreement" if name == "accuracy" else name
                of = {"judge": judge, "metric": metric, "class": None if k is None else answered.levels[k]}
                rows += [replace(row, label={"domain": part} | of) for part, row in found.items()]
                remarks += [
                    f"in {part!r} {metric}{'' if k is None else f' of {answered.levels[k]!r}'} of {judge!r} "
                    f"is lower than elsewhere: {row.value:.3f}, {overall.value:.3f} over all units"
                    for part, row in found.items()
                    if row.confidence_interval(level).high < overall.value
                ]
        judges = ", ".join(self.judges)
        return Estimates.from_rows(sample, rows, "judge_groups", remarks, f", judge {judges} by group")


_ERROR = 0.05
"""Chance that a judge who is as good in every group is called worse in one."""


def with_majority(sample: Sample, judges: tuple[str, ...]) -> tuple[Sample, tuple[str, ...]]:
    """Return the sample with the judges' majority as a group column, and all their names.

    A tie is the verdict of the one that is named first among those tied.
    """
    name = f"majority of {len(judges)}"
    columns: AnyArray = np.stack([class_column(sample, judge, judge) for judge in judges])
    votes = np.sum(columns[:, None] == columns[None], axis=0)
    chosen = columns[np.argmax(votes, axis=0), np.arange(sample.size)]
    return with_group(sample, name, dict(zip(sample.ids.tolist(), chosen, strict=True))), (*judges, name)


def _associations(sample: Sample, labels: Any, scores: Any, target: str) -> Iterator[Row]:
    """Yield the correlations of scores: a proxy's name, or one for each drawn unit (n,)."""
    x, y, frame, _ = OfScores.units(sample, labels, scores)
    for name, statistic in (("pearson", pearson), ("spearman", spearman), ("icc", intraclass)):
        found = association(statistic, x, y, frame.weighting, target)
        yield {"metric": name}, frame.complete(found, sample)


def _of_scores(sample: Sample, labels: Any, judge: str, target: str) -> Iterator[Row]:
    yield from _associations(sample, labels, judge, target)
    info = next(entry for entry in sample.proxy_info if entry.name == judge)
    numbers = number_column(sample, labels, "label")
    if target == "population":
        yield {"metric": "bias"}, Bias(judge).estimate(sample, labels)
    if info.bounds == (0.0, 1.0) and np.nanmin(numbers) >= 0 and np.nanmax(numbers) <= 1:
        yield (
            {"metric": "calibration_error"},
            CalibrationError(judge).estimate(sample, labels, Request(target=target)),
        )


def _of_verdicts(sample: Sample, labels: Any, judge: str, target: str) -> Iterator[Row]:
    answered = answered_classes(sample, labels, judge)
    agreement = Estimand.parse_text(f"agreement:{judge}")
    first = agreement.estimate(sample, labels, Request(target=target))
    assert isinstance(first, Estimate)
    yield {"metric": "agreement"}, first
    for name in ("kappa", "mcc"):
        yield {"metric": name}, answered.metric(sample, name, None, target)
    levels, confusion = answered.levels, answered.confusion
    if len(levels) > _MOST_CLASSES:
        return
    for name in ("recall", "false_discovery_rate", "prevalence"):
        for k, level in enumerate(levels):
            yield {"metric": name, "class": level}, answered.metric(sample, name, k, target)
    raw = [answered.metric(sample, "predicted_prevalence", k, target) for k in range(len(levels))]
    for level, row in zip(levels, raw, strict=True):
        yield {"metric": "predicted_prevalence", "class": level}, replace(row, remarks=())
    for k, level in enumerate(levels if len(levels) == 2 else ()):
        yield {"metric": "rogan_gladen", "class": level}, _rogan_gladen(answered, k, raw[k], target)
    for k, level in enumerate(levels):
        for j, other in enumerate(levels):
            cell = (confusion.true == k) & (confusion.predicted == j)
            found = mean_of(cell.astype(np.float64), confusion.weighting, target)
            of = {"metric": "share", "class": level, "judged": other}
            yield of, answered.frame.complete(found, sample)


def _rogan_gladen(answered: AnsweredClasses, which: int, raw: Estimate, target: str) -> Estimate:
    """Return the judge's share corrected by its rates among the labels, as if these were a random sample.

    (p + specificity − 1) / (recall + specificity − 1), cut at 0 and 1, with the delta method's variance.
    """
    confusion = answered.confusion
    value, variance = rogan_gladen(confusion.true == which, confusion.predicted == which, raw.value)
    result = Linearised(
        value=value,
        variable=np.zeros(len(confusion.true)),
        design_variance=variance,
        population_variance=0.0,
        degrees_of_freedom=np.inf,
    )
    return linearised_estimate(result, confusion.weighting, bounds=(0.0, 1.0), target=target)


def rogan_gladen(true: BoolArray, judged: BoolArray, share: float) -> tuple[float, float]:
    """Return Rogan & Gladen's estimate from labels (n,) and the judge's share, with its variance.

    NaN where the labels do not tell both rates, or the judge is no better than chance on them.

    Examples
    --------
    >>> true, judged = np.repeat([True, False], 50), np.r_[np.arange(50) < 40, np.arange(50) < 10]
    >>> [round(number, 4) for number in rogan_gladen(true, judged, 0.32)]
    [0.2, 0.006]
    """
    counts = np.array([true.sum(), (~true).sum()], float)
    if counts.min() == 0:
        return np.nan, np.nan
    recall, wrongly = float(judged[true].mean()), float(judged[~true].mean())
    better = recall - wrongly
    if better <= 0:
        return np.nan, np.nan
    value = min(max((share - wrongly) / better, 0.0), 1.0)
    spread: FloatArray = np.array([recall * (1.0 - recall), wrongly * (1.0 - wrongly)]) / counts
    return value, float(np.array([value**2, (1.0 - value) ** 2]) @ spread) / better**2
