"""Two models or more on the same units as estimands: difference, ratio and win rate.

From their answers, what is known costs nothing: where two models give the same answer, both are right or
both are wrong, and their difference is exactly 0 whatever the truth. From ratings of each, nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import BoolArray, FloatArray
from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.estimation.calibrated import sample_folds
from stratal.estimation.columns import answers_of, number_columns, shares_equal
from stratal.estimation.comparison import Comparisons, ModelPair, bounds_of_outcomes, comparisons
from stratal.estimation.estimand import PLAIN, Estimand, LabelledInfluence, Request, Several, together
from stratal.estimation.estimands.classification import UNTOLD
from stratal.estimation.estimands.means import within_limits
from stratal.estimation.estimate import Estimate, ratio_of_means
from stratal.estimation.respondents import Respondents
from stratal.intervals.evidence import infer_outcome
from stratal.labels.labels import join
from stratal.population.expressions import Agree, Cells, Expression, Number, Share
from stratal.population.influence import Influence, averages
from stratal.population.population import Population

_TIED = 0.45
"""How often each of two answers that differ is taken to be right where no proxy says."""

SAME, DIFFERENT = "same answer", "different answers"


ON_SCALE = (*Estimand.takes, "bounds", "limits")
"""Options of what is made of each model's outcomes."""


def on_scale(
    sample: Sample, z: FloatArray, request: Request
) -> tuple[FloatArray, tuple[float, float] | None]:
    """Return the models' outcomes (m, k), those beyond asked limits at the limit, and their bounds.

    Examples
    --------
    >>> sample = Sample.from_labelled({"y": [1.0, 2.0]}, value="y", population_size=9)[0]
    >>> on_scale(sample, np.array([[0.0, 9.0]]), Request(limits=(1, 5)))
    (array([[1., 5.]]), (1.0, 5.0))
    """
    if request.limits is not None:
        ends = infer_outcome(np.zeros(0), "bounded", request.limits)[1]
        return within_limits(z, request.limits), ends
    if request.bounds is not None:
        return z, infer_outcome(z.ravel(), "bounded", request.bounds)[1]
    return z, bounds_of_outcomes(sample, z)


class OfModels(Estimand):
    """A quantity of several models on the same units.

    Examples
    --------
    >>> issubclass(OfModels, Estimand)
    True
    """

    __slots__ = ()
    listed: ClassVar[str] = "models"
    takes: ClassVar[tuple[str, ...]] = (*ON_SCALE, "estimator", "lam", "clip", "cross_fit")
    models: tuple[str, ...]
    proxies: tuple[str, ...]

    @classmethod
    def example(cls) -> str:
        """Return an example of the text form."""
        return f"{cls.kind}:model_a,model_b"

    def _check(self, most: int | None = None) -> None:
        """Refuse fewer than two models, more than `most`, and proxies that are not one for each."""
        self._set(models=tuple(self.models), proxies=tuple(self.proxies))
        count = len(set(self.models))
        if count < 2 or count < len(self.models) or (most is not None and count > most):
            raise InputError(
                f"'{self.kind}' needs different models",
                given=", ".join(self.models),
                allowed="two" if most == 2 else "two or more",
            )
        if self.proxies and len(self.proxies) != count:
            raise InputError(
                "each model needs its proxy", given=", ".join(self.proxies), allowed=f"{count} names"
            )

    @property
    def of_classes(self) -> bool:
        """Whether labels are true classes: of one file that holds them and the models' answers."""
        return True

    @property
    def same(self) -> Agree:
        """The formula that is 1 where all models give the same answer."""
        return Agree(names=tuple(sorted(self.models)))

    def by_answers(self, groups: Any) -> bool:
        """Return whether the models are columns of answers."""
        return set(self.models) <= set(groups)

    def chances(self, population: Population) -> tuple[Expression, ...]:
        """Return what is expected of each model's outcome: of a right answer, or of its score."""
        if not self.by_answers(population.group_names):
            names = self.proxies or self.models
            for name in names:
                population.proxy_info(name)
            return tuple(Number(name=name) for name in names)
        if not self.proxies:
            blind = UNTOLD * self.same + _TIED * (1.0 - self.same)
            return (blind,) * len(self.models)
        for name in self.proxies:
            population.proxy_info(name)
        told = [Number(name=name) for name in self.proxies]
        if len(told) > 2:
            return tuple(told)
        # Answers that differ are not both right.
        least = [self.same * 1.0 + (1.0 - self.same) * (told[0] + told[1])]
        return tuple(Share(parts=(own, least[0]), least=1.0) for own in told)

    def label_columns(self, sample: Sample) -> tuple[str, ...]:
        """Return the models, whose outcomes are labels where the sample does not hold their answers."""
        return () if self.by_answers(sample.groups) else self.models

    def slopes(self, sample: Sample) -> FloatArray | None:
        """Return what of the sample's proxies predicts each model's outcome (k, p); None where unknown."""
        if not self.proxies or not set(self.proxies) <= set(sample.proxy_names):
            return None
        return np.array([[float(own == name) for name in sample.proxy_names] for own in self.proxies])

    def fitting(
        self, sample: Sample, labelled: BoolArray, frame: Respondents, request: Request
    ) -> dict[str, Any]:
        """Return how λ is to be found for a contrast, where that is asked for."""
        given = request.given
        found: dict[str, Any] = {name: given[name] for name in ("estimator", "lam", "clip") if name in given}
        if request.cross_fit is not None:
            found["folds"] = sample_folds(sample, labelled, frame, request.cross_fit)
        if found and not self.proxies:
            raise InputError(
                f"{next(iter(found))!r} is of a fit to proxies, and {self.text!r} has none",
                action=f"Name them: {self.kind}:{','.join(self.models)},proxies=COL+COL.",
            )
        return found

    def outcomes(
        self, sample: Sample, labels: Any, needless: Expression | None
    ) -> tuple[FloatArray, BoolArray, Respondents]:
        """Return each model's outcome (m, models) of the labelled units, which those are, and their frame."""
        if isinstance(labels, Mapping) and set(labels) == set(self.models):
            z, labelled = number_columns(
                sample,
                {model: labels[model] for model in self.models},
                "no unit has an outcome of every model",
                "such unit",
            )
        elif self.by_answers(sample.groups):
            joined = join(sample, labels)
            labelled = joined.labelled
            z = np.column_stack([shares_equal(joined, answers_of(sample, model)) for model in self.models])
        else:
            raise InputError(
                "labels must tell the outcome of every model",
                allowed=f"true classes beside the columns of answers {', '.join(self.models)}, or a mapping "
                "of each model to its outcomes",
                action="Draw with the models' answers as groups= (--groups COL,COL).",
            )
        return z, labelled, Respondents.of(sample, labelled, needless)


def agreement_cells(of: OfModels, population: Population) -> tuple[Cells, tuple[str, ...]]:
    """Return the parts of the population by whether the models agree, and those that need no label.

    Examples
    --------
    >>> groups = {"new": ["a", "b"], "old": ["a", "a"]}
    >>> agreement_cells(Difference(("new", "old")), Population.from_arrays(groups=groups))[1]
    ('same answer',)
    """
    if not of.by_answers(population.group_names):
        return Cells(names=("all",)), ()
    return Cells(names=(SAME, DIFFERENT), tests=(of.same,)), (SAME,)


def _spread(of: OfModels, population: Population, chances: tuple[Expression, ...]) -> Expression:
    """Return E[(z_a − z_b)² | x]: answers that differ are not both right, scores are taken as unrelated."""
    first, second = chances
    if of.by_answers(population.group_names):
        return (1.0 - of.same) * (first + second)
    difference = first - second
    return difference * difference + first * (1.0 - first) + second * (1.0 - second)


@dataclass(frozen=True, slots=True)
class TwoModels(OfModels):
    """A quantity of two models: what `Difference`, `WinRate` and `Ratio` share.

    Examples
    --------
    >>> TwoModels(("new", "old")).models
    ('new', 'old')
    """

    models: tuple[str, ...]
    proxies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check(most=2)

    def pair(self, sample: Sample, labels: Any, needless: Expression | None, request: Request) -> ModelPair:
        """Return the outcomes of both models on the labelled units; `needless` ones differ in no label."""
        z, labelled, frame = self.outcomes(sample, labels, needless)
        z, bounds = on_scale(sample, z, request)
        return ModelPair(
            sample=sample,
            frame=frame,
            labelled=labelled,
            first=z[:, 0],
            second=z[:, 1],
            models=(self.models[0], self.models[1]),
            target=request.target,
            bounds=bounds,
            slopes=self.slopes(sample),
            fitting=self.fitting(sample, labelled, frame, request),
        )


@dataclass(frozen=True, slots=True)
class Difference(TwoModels):
    """The difference of two models' mean outcomes: accuracy, from their answers.

    Parameters
    ----------
    models : tuple of str
        Two group columns of answers, which labels of the true class decide between; or two names of which
        the labels give the outcomes.
    proxies : tuple of str, optional
        The proxy of each. From 50 labels on the estimate takes off, with a fitted λ, what they say of the
        two models: their difference, as `compare` does, of a ratio R the first less R times the second.
        Strata that were made of them leave nothing to take.

    Examples
    --------
    >>> Difference(("new", "old")).text
    'difference:new,old'
    """

    kind: ClassVar[str] = "difference"

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of z_a − z_b, less its mean; 0 where the answers are the same."""
        first, second = self.chances(population)
        mean = first - second
        if self.by_answers(population.group_names):
            mean = (1.0 - self.same) * mean
        value = float(averages(population, [mean])[0])
        cells, known = agreement_cells(self, population)
        return Influence(
            value=value,
            mean=mean,
            square=_spread(self, population, (first, second)),
            cells=cells,
            known=known,
        )

    def estimate(self, sample: Sample, labels: Any, request: Request = PLAIN) -> Estimate:
        """Return the mean difference."""
        found = self.pair(sample, labels, self.same, request).difference()
        return replace(found, label=self.label)

    def labelled_influence(self, sample: Sample, labels: Any) -> LabelledInfluence:
        """Return the paired differences of the labelled units."""
        z, labelled, _ = self.outcomes(sample, labels, self.same)
        return LabelledInfluence(u=z[:, 0] - z[:, 1], labelled=labelled)


@dataclass(frozen=True, slots=True)
class WinRate(TwoModels):
    """The share of units on which the first model is better, ties counting one half.

    Parameters
    ----------
    models, proxies
        As for `Difference`.

    Examples
    --------
    >>> WinRate(("new", "old")).text
    'win_rate:new,old'
    """

    kind: ClassVar[str] = "win_rate"

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of win − ½, which is half the difference of two right or wrong."""
        found = Difference(self.models, self.proxies).influence(population)
        return Influence(
            value=0.5 + found.value / 2,
            mean=0.5 * found.mean,
            square=0.25 * found.square,
            cells=found.cells,
            known=found.known,
        )

    def estimate(self, sample: Sample, labels: Any, request: Request = PLAIN) -> Estimate:
        """Return the share of units on which the first model is better."""
        found = self.pair(sample, labels, self.same, request).win_rate()
        return replace(found, label=self.label)

    def labelled_influence(self, sample: Sample, labels: Any) -> LabelledInfluence:
        """Return the wins of the labelled units, less one half."""
        z, labelled, _ = self.outcomes(sample, labels, self.same)
        return LabelledInfluence(u=0.5 * np.sign(z[:, 0] - z[:, 1]), labelled=labelled)


@dataclass(frozen=True, slots=True)
class Ratio(TwoModels):
    """The ratio of two models' mean outcomes.

    Parameters
    ----------
    models, proxies
        As for `Difference`.

    Examples
    --------
    >>> Ratio(("new", "old")).text
    'ratio:new,old'
    """

    kind: ClassVar[str] = "ratio"
    takes: ClassVar[tuple[str, ...]] = ON_SCALE

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of (z_a − R z_b) / mean of z_b; equal answers do matter here."""
        first, second = self.chances(population)
        above, below = (float(mean) for mean in averages(population, [first, second]))
        if below <= 0:
            raise InputError(
                "the ratio's denominator is a model that is expected never to be right",
                action="Plan for the difference of the two models instead, or swap them.",
            )
        value = above / below
        if self.by_answers(population.group_names):
            square = self.same * (1.0 - value) ** 2 * first
            square = square + (1.0 - self.same) * (first + value**2 * second)
        else:
            gap = first - value * second
            square = gap * gap + first * (1.0 - first) + value**2 * second * (1.0 - second)
        cells, _ = agreement_cells(self, population)
        return Influence(
            value=value,
            mean=(1.0 / below) * (first - value * second),
            square=(1.0 / below**2) * square,
            cells=cells,
        )

    def estimate(self, sample: Sample, labels: Any, request: Request = PLAIN) -> Estimate:
        """Return the ratio, with an interval made on its logarithm."""
        pair = self.pair(sample, labels, None, request)
        return replace(pair.frame.complete(pair.ratio(), sample), label=self.label)

    def labelled_influence(self, sample: Sample, labels: Any) -> LabelledInfluence:
        """Return the ratio's linearised variable on the labelled units."""
        z, labelled, frame = self.outcomes(sample, labels, None)
        found = ratio_of_means(z[:, 0], z[:, 1], frame.weighting)
        return LabelledInfluence(u=np.nan_to_num(found.variable), labelled=labelled)


@dataclass(frozen=True, slots=True)
class Differences(OfModels, Several):
    """The differences of all pairs of several models.

    Parameters
    ----------
    models, proxies
        As for `Difference`, of any number of models.

    Examples
    --------
    >>> [part.text for part in Differences(("a", "b", "c")).parts]
    ['difference:a,b', 'difference:a,c', 'difference:b,c']
    """

    kind: ClassVar[str] = "differences"
    models: tuple[str, ...]
    proxies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check()

    def parts_in(self, population: Population) -> tuple[Estimand, ...]:
        """Return the difference of each pair."""
        return self.parts

    def influence(self, population: Population) -> Influence:
        """Return the moments of all differences as one; none matters where all models answer the same."""
        found = together([part.influence(population) for part in self.parts], population)
        cells, known = agreement_cells(self, population)
        return replace(found, cells=cells, known=known)

    def labelled_influence(self, sample: Sample, labels: Any) -> LabelledInfluence:
        """Return how far the models' outcomes lie apart on the labelled units."""
        z, labelled, _ = self.outcomes(sample, labels, self.same)
        apart = np.sqrt(np.sum((z - z.mean(axis=1, keepdims=True)) ** 2, axis=1))
        return LabelledInfluence(u=np.where(z[:, 0] < z[:, -1], -apart, apart), labelled=labelled)

    @property
    def parts(self) -> tuple[Difference, ...]:
        """The difference of each pair."""
        chosen = combinations(range(len(self.models)), 2)
        return tuple(
            Difference(
                (self.models[a], self.models[b]), (self.proxies[a], self.proxies[b]) if self.proxies else ()
            )
            for a, b in chosen
        )

    def estimate(self, sample: Sample, labels: Any, request: Request = PLAIN) -> Comparisons:
        """Return the differences of all pairs, with intervals that hold together."""
        z, labelled, frame = self.outcomes(sample, labels, self.same)
        z, bounds = on_scale(sample, z, request)
        return comparisons(
            sample,
            frame,
            labelled,
            z,
            names=self.models,
            pairs=list(combinations(range(len(self.models)), 2)),
            slopes=self.slopes(sample),
            bounds=bounds,
            target=request.target,
            fitting=self.fitting(sample, labelled, frame, request),
        )
