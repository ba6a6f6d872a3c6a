"""All that labels say of a judge: how far it agrees with people, and what its own mean would be worth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import BoolArray, FloatArray
from stratal.designs.sample import Sample
from stratal.estimation.columns import number_column
from stratal.estimation.estimand import PLAIN, Estimand, Request
from stratal.estimation.estimands.classification import AnsweredClasses, answered_classes
from stratal.estimation.estimands.scores import (
    Bias,
    CalibrationError,
    IntraclassCorrelation,
    PearsonCorrelation,
    SpearmanCorrelation,
)
from stratal.estimation.estimate import Estimate, Estimates, Linearised, linearised_estimate
from stratal.population.influence import Influence
from stratal.population.population import Population

_MOST_CLASSES = 6
"""A judge with more verdicts is described by its agreement alone: each class has four rows."""


@dataclass(frozen=True, slots=True)
class JudgeReport(Estimand):
    """A judge against people: agreement, kappa, what it finds and what it calls so wrongly; or its scores.

    Parameters
    ----------
    judge : str
        The group column of its verdicts, which are called as the labels are; or the proxy that holds its
        scores.

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
    >>> found = stratal.estimate(sample, labels, estimand=JudgeReport("judge"))
    >>> found.of(metric="agreement").value >= 0.9
    True
    """

    kind: ClassVar[str] = "judge"
    listed: ClassVar[str] = "judge"
    judge: str

    @property
    def of_classes(self) -> bool:
        """Labels are classes, or scores."""
        return True

    def compares(self, predicted: str | bool, kept: str | None) -> bool:
        """Return whether labels are compared with this column of answers."""
        return predicted in (True, self.judge)

    @property
    def groups(self) -> tuple[str, ...]:
        """The column of verdicts."""
        return (self.judge,)

    def influence(self, population: Population) -> Influence:
        """Return that of the agreement, or of the correlation where the judge gives scores."""
        if self.judge in population.proxy_names:
            return PearsonCorrelation(self.judge).influence(population)
        return Estimand.parse_text(f"agreement:{self.judge}").influence(population)

    def labelled_units(self, sample: Sample, labels: Any) -> BoolArray:
        """Return which of the drawn units (n,) have a label."""
        if self.judge in sample.proxy_names:
            return np.isfinite(number_column(sample, labels, "label"))
        return answered_classes(sample, labels, self.judge).labelled

    def estimate(self, sample: Sample, labels: Any, request: Request = PLAIN) -> Estimates:
        """Return a row for each quantity, labelled with `judge`, `metric` and `class`."""
        scores = self.judge in sample.proxy_names and self.judge not in sample.groups
        found = self._of_scores if scores else self._of_verdicts
        rows = [
            replace(row, label={"judge": self.judge, "metric": name, "class": of})
            for name, of, row in found(sample, labels, request.target)
        ]
        return Estimates.from_rows(sample, rows, "judge", about=f", judge {self.judge!r}")

    def _of_scores(self, sample: Sample, labels: Any, target: str) -> list[tuple[str, str | None, Estimate]]:
        info = next(entry for entry in sample.proxy_info if entry.name == self.judge)
        asked: list[Estimand] = [
            kind(self.judge) for kind in (PearsonCorrelation, SpearmanCorrelation, IntraclassCorrelation)
        ]
        if target == "population":
            asked.append(Bias(self.judge))
        numbers = number_column(sample, labels, "label")
        if info.bounds == (0.0, 1.0) and np.nanmin(numbers) >= 0 and np.nanmax(numbers) <= 1:
            asked.append(CalibrationError(self.judge))
        found: list[tuple[str, str | None, Estimate]] = []
        for entry in asked:
            row = entry.estimate(sample, labels, Request(target=target))
            assert isinstance(row, Estimate)
            found.append((entry.kind, None, row))
        return found

    def _of_verdicts(
        self, sample: Sample, labels: Any, target: str
    ) -> list[tuple[str, str | None, Estimate]]:
        answered = answered_classes(sample, labels, self.judge)
        agreement = Estimand.parse_text(f"agreement:{self.judge}")
        first = agreement.estimate(sample, labels, Request(target=target))
        assert isinstance(first, Estimate)
        found: list[tuple[str, str | None, Estimate]] = [
            ("agreement", None, first),
            ("kappa", None, answered.metric(sample, "kappa", None, target)),
        ]
        if len(answered.levels) > _MOST_CLASSES:
            return found
        for name in ("recall", "false_discovery_rate", "prevalence", "predicted_prevalence"):
            for k, level in enumerate(answered.levels):
                found.append((name, level, answered.metric(sample, name, k, target)))
        if len(answered.levels) == 2:
            for k, level in enumerate(answered.levels):
                raw = next(row for name, of, row in found if (name, of) == ("predicted_prevalence", level))
                found.append(("rogan_gladen", level, _rogan_gladen(answered, k, raw, target)))
        return found


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
