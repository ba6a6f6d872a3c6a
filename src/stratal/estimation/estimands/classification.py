"""Metrics of a classifier as estimands: accuracy, precision, recall, F_β and their relatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, Record
from stratal.designs.sample import Sample
from stratal.errors import InputError, LabelError, near_names
from stratal.estimation.columns import class_column, split_answers
from stratal.estimation.confusion import Confusion
from stratal.estimation.estimand import Estimand, LabelledInfluence
from stratal.estimation.estimate import Estimate
from stratal.estimation.metric_functions import Shares, is_f_measure, metric_function
from stratal.estimation.request import PLAIN, Request
from stratal.estimation.respondents import Respondents
from stratal.estimation.shares import possible_answers
from stratal.intervals.limits import BinomialLimits
from stratal.labels.meanings import class_text
from stratal.population.cells import Cells
from stratal.population.expressions import ByLevel, Constant, Expression, Number
from stratal.population.influence import Influence, averages, stratum_averages
from stratal.population.population import Population
from stratal.strata import Strata
from stratal.strata.rates import smoothed_standard_deviations


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnsweredClasses(Record):
    """True and predicted classes of the labelled units, as numbers.

    Parameters
    ----------
    levels : tuple of str (K,)
        The classes in their order.
    known : tuple of str
        Those that the population's answers are known to have.
    confusion : Confusion
    frame : Respondents
    labelled : bool (n,)
    column : str, optional
        The group column of the answers, where they are one.
    """

    levels: list[str]
    known: list[str]
    confusion: Confusion
    frame: Respondents
    labelled: BoolArray
    column: str | None = None

    def metric(self, sample: Sample, name: str, which: int | str | None, target: str) -> Estimate:
        """Return a metric, with what the user should know of it; `name`, `which` as in `Confusion.metric`."""
        found = self.frame.complete(self.confusion.metric(name, which, target), sample)
        every = self.confusion.n_classes == len(self.levels)
        if name in _SHARES and every and which in ("macro", "micro"):
            return self._of_all(found, len(self.levels))
        if not isinstance(which, int):
            return found
        level = self.levels[which]
        counts = sample.totals.get(self.column or "", {})
        if name == "predicted_prevalence" and counts and self.frame.share == 1.0:
            return self._counted(found, counts.get(level, 0), sum(counts.values()), target)
        unseen = self.confusion.unseen_misses(which) if name in _COUNTS_MISSES or is_f_measure(name) else None
        return found if unseen is None else replace(found, remarks=(*found.remarks, unseen.note(level)))

    @staticmethod
    def _counted(found: Estimate, count: int, size: int, target: str) -> Estimate:
        """Return the predicted prevalence of the whole population, which is counted and not estimated."""
        share, drawn = count / size, target == "superpopulation"
        limits = BinomialLimits(value=share, bounds=(0.0, 1.0), trials=float(size) if drawn else np.inf)
        note = f"counted over the answers of all {size:,} units: no label is needed for it"
        return replace(
            found,
            value=share,
            standard_error=float(np.sqrt(share * (1.0 - share) / size)) if drawn else 0.0,
            evidence=replace(found.evidence, value=share, own=limits),
            remarks=(note,),
        )

    @staticmethod
    def _of_all(found: Estimate, count: int) -> Estimate:
        """Return the mean of shares that add up to 1."""
        limits = BinomialLimits(value=1.0 / count, bounds=(0.0, 1.0), trials=np.inf)
        note = f"1/{count} by definition, as the shares of all {count} classes add up to 1"
        return replace(
            found,
            value=limits.value,
            standard_error=0.0,
            evidence=replace(found.evidence, value=limits.value, own=limits),
            remarks=(note,),
        )

    def influence(self, name: str, which: int | str | None) -> LabelledInfluence:
        """Return the influence of the labelled units on a metric, at the shares that the labels estimate."""
        confusion = self.confusion
        shares = Shares.of(
            confusion.true, confusion.predicted, confusion.weighting.weights, confusion.n_classes
        )
        value, slopes, _ = metric_function(name, which, confusion.n_classes)(shares)
        u = slopes.along(confusion.true, confusion.predicted) if np.isfinite(value) else np.zeros(0)
        return LabelledInfluence(u=u, labelled=self.labelled)


def answered_classes(
    sample: Sample,
    y_true: Any,
    y_pred: Any,
    classes: Sequence[Any] | None = None,
    needless: Expression | None = None,
) -> AnsweredClasses:
    """Return the classes of the labelled units.

    Parameters
    ----------
    sample : Sample
    y_true : labels
        Text or whole numbers. Several answers of one unit give their majority, a tie none.
    y_pred : labels, or name of a group column, optional
        The model's answers, needed where there is a true class; the sample's own column unless given.
    classes : sequence, optional
        Classes that must exist; all that occur unless given.
    needless : Expression, optional
        The units that the metric does not look at; see `Respondents.of`.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=2).draw(stratal.Population.from_arrays(ids=["a", "b"]), seed=7)
    >>> answered_classes(sample, ["cat", "dog"], ["cat", "cat"]).levels
    ['cat', 'dog']
    """
    read = read_classes(sample, y_true, y_pred, classes)
    known, levels, labelled = read.known, read.levels, read.labelled
    true_codes, predicted_codes = read.codes
    frame = Respondents.of(sample, labelled, needless)
    column = (y_pred or sample.predicted) if y_pred is None or isinstance(y_pred, str) else None
    possible = possible_answers(sample, frame, column, levels, predicted_codes)
    if possible is not None and known:
        # No stratum holds what no unit is answered: of two answers, not the one is the other.
        possible &= np.array([level in known for level in levels] + [False])
    whole = Confusion(
        true=true_codes,
        predicted=predicted_codes,
        n_classes=len(levels),
        weighting=frame.weighting,
        possible=possible,
    )
    return AnsweredClasses(
        levels=levels, known=known, confusion=whole, frame=frame, labelled=labelled, column=column
    )


@dataclass(frozen=True, slots=True)
class ReadClasses:
    """The classes, those known of the population, and the labelled units' truth and answer."""

    levels: list[str]
    known: list[str]
    codes: tuple[IntArray, IntArray]
    labelled: BoolArray


def read_classes(sample: Sample, y_true: Any, y_pred: Any, classes: Sequence[Any] | None) -> ReadClasses:
    """Return the classes of labels and answers, as numbers."""
    true, predicted, labelled = _both(sample, y_true, y_pred)
    named = y_pred is None or isinstance(y_pred, str)
    known = list(sample.totals.get((y_pred if named else None) or sample.predicted or "", {}))
    if not named and not {*true.tolist(), *predicted.tolist()} <= set(known):
        known = []  # classes of another task than the sample's own answers
    levels, codes = _codes(true, predicted, known, classes)
    return ReadClasses(levels, known, codes, labelled)


def needless_units(metric: str, level: str | None, column: str | None) -> Expression | None:
    """Return the formula that is 1 for units that a metric of a class does not look at; None where it is all.

    Examples
    --------
    >>> needless_units("recall", "cat", "answer") is None
    True
    >>> needless_units("precision", "cat", "answer").otherwise
    1.0
    """
    if column is None or level is None or metric not in ("precision", "negative_predictive_value"):
        return None
    if metric == "precision":
        return ByLevel(name=column, levels=(level,), values=(0.0,), otherwise=1.0)
    return ByLevel(name=column, levels=(level,), values=(1.0,))


_SHARES = ("prevalence", "predicted_prevalence")
"""Metrics of a class that are shares of all units: over all classes they add up to 1."""

_COUNTS_MISSES = ("recall", "jaccard")
"""Metrics of a class that missed units of it make smaller, and F measures."""


def _both(sample: Sample, y_true: Any, y_pred: Any) -> tuple[AnyArray, AnyArray, BoolArray]:
    """Return true and predicted classes (m,) of the units that have a true one, and which they are (n,)."""
    predicted = class_column(sample, y_pred, "y_pred")
    true = class_column(sample, y_true, "y_true", predicted[predicted != None])  # noqa: E711
    labelled = np.array([entry is not None for entry in true], dtype=bool)
    if not np.any(labelled):
        raise LabelError(
            "no unit is labelled yet",
            allowed="at least one label",
            action="Fill in the label column, then estimate again.",
        )
    lacking = labelled & np.array([entry is None for entry in predicted], dtype=bool)
    if np.any(lacking):
        raise LabelError(
            f"y_pred: {int(lacking.sum())} labelled units have no prediction "
            f"(first: {str(sample.ids[np.argmax(lacking)])!r})",
            allowed="a predicted class for every labelled unit",
        )
    return true[labelled], predicted[labelled], labelled


def _codes(
    true: AnyArray, predicted: AnyArray, known: list[str], classes: Sequence[Any] | None
) -> tuple[list[str], tuple[IntArray, IntArray]]:
    """Return the classes as sorted text, and the class numbers of the units."""
    found = {*true.tolist(), *predicted.tolist(), *known}
    asked = [] if classes is None else [_existing(class_text(entry), found) for entry in classes]
    levels = _sorted({*found, *asked})
    number = {level: k for k, level in enumerate(levels)}
    codes = [np.array([number[entry] for entry in column.tolist()], np.int64) for column in (true, predicted)]
    return levels, (codes[0], codes[1])


def _existing(name: str, found: set[str]) -> str:
    """Return a class that is asked for, refusing a slip of the pen; a rare one need not have been drawn."""
    near = near_names(name, sorted(found))
    if name not in found and len(near.split(", ")) < len(found):
        raise InputError(f"no drawn unit has the class {name!r}", allowed=near)
    return name


def _sorted(levels: set[str]) -> list[str]:
    """Return numbers in their order, before text in its own."""

    def key(level: str) -> tuple[bool, float, str]:
        try:
            return False, float(level), level
        except ValueError:
            return True, 0.0, level

    return sorted(levels, key=key)


CREDIT = 0.99
"""Share of a probability that is believed; the rest is the population's share of the class."""

UNTOLD = 0.8
"""How often answers are taken to be right where no proxy says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beliefs(Record):
    """The probabilities of K classes for each unit, and its answer.

    Parameters
    ----------
    answers : str
        The group column of the model's answers.
    levels : tuple of str (K,)
        The classes.
    right : Expression
        Probability that the answer is the true class.
    shares : tuple of float (K,)
        The classes' expected shares of the population.
    columns : tuple of Expression or None (K,)
        Probability of each class where a column says it, else None.

    Examples
    --------
    >>> population = Population.from_arrays(
    ...     proxy=[0.9, 0.6], groups={"answer": ["cat", "dog"]}, predicted="answer")
    >>> beliefs = Beliefs.of(population, None, ())
    >>> beliefs.levels, beliefs.of_class(np.array([1.0, 0.0])).columns
    (('cat', 'dog'), ('answer', 'proxy'))
    """

    answers: str
    levels: tuple[str, ...]
    right: Expression
    shares: tuple[float, ...]
    columns: tuple[Expression | None, ...]

    @classmethod
    def of(
        cls,
        population: Population,
        answers: str | None,
        needed: tuple[str, ...],
        probability: str | None = None,
        right: str | None = None,
    ) -> Beliefs:
        """Return what a population's columns say.

        Parameters
        ----------
        population : Population
        answers : str, optional
            The group column of the model's answers; the population's own unless given.
        needed : tuple of str
            Classes that must be among the levels, whether or not the model answers them.
        probability : str, optional
            Column of the probability of the (first) needed class.
        right : str, optional
            Column of the probability that the answer is right; the first proxy, if it is one, unless given.
        """
        name = answers or population.predicted
        if name is None:
            raise InputError(
                "the estimand needs the model's answers",
                action="Name their column: predicted= (--predicted COL), or in the estimand itself.",
            )
        counts = population.levels(population.require_group(name))
        levels = tuple(sorted({*counts, *needed}))
        columns: list[Expression | None] = [None] * len(levels)
        is_right: Expression = Constant(value=UNTOLD)
        if right is not None:
            _require_number(population, right)
            is_right = Number(name=right)
        elif probability is not None:
            _require_number(population, probability)
            columns[levels.index(needed[0])] = Number(name=probability)
            is_right = Constant(value=0.0)
        elif population.proxies:
            info = population.proxy_info()
            if info.scaled and info.bounds == (0.0, 1.0):
                is_right = Number(name=info.name)
        told = np.array([counts.get(level, 0) for level in levels], float) / population.size
        return cls._with_shares(name, levels, is_right, tuple(columns), told, population)

    @classmethod
    def _with_shares(
        cls,
        answers: str,
        levels: tuple[str, ...],
        right: Expression,
        columns: tuple[Expression | None, ...],
        told: FloatArray,
        population: Population,
    ) -> Beliefs:
        """Return the beliefs with the classes' shares that they themselves make of the population."""
        plain = cls(answers=answers, levels=levels, right=right, shares=tuple(told), columns=columns)
        each = np.eye(len(levels))
        found = averages(population, [plain._believed(row) for row in each])
        return cls(answers=answers, levels=levels, right=right, shares=tuple(found.tolist()), columns=columns)

    def is_answer(self, level: str) -> Expression:
        """Return the formula that is 1 where the answer is this class, else 0."""
        return ByLevel(name=self.answers, levels=(level,), values=(1.0,))

    def by_answer(self, values: FloatArray) -> Expression:
        """Return the formula of a number (K,) for each answer."""
        return ByLevel(name=self.answers, levels=self.levels, values=tuple(values.tolist()))

    def of_class(self, values: FloatArray) -> Expression:
        """Return the formula Σ_c P(c | x) values[c], with values (K,)."""
        return CREDIT * self._believed(values) + (1.0 - CREDIT) * float(np.dot(self.shares, values))

    def of_answer(self, values: FloatArray) -> Expression:
        """Return the formula P(a | x) values[a] of the answer a."""
        own = self._own(values)
        return CREDIT * own + (1.0 - CREDIT) * self.by_answer(np.asarray(self.shares) * values)

    def _own(self, values: FloatArray) -> Expression:
        told = np.array([column is None for column in self.columns])
        own = self.by_answer(values * told) * self.right
        for k, column in enumerate(self.columns):
            if column is not None and values[k] != 0:
                own = own + float(values[k]) * self.is_answer(self.levels[k]) * column
        return own

    def _believed(self, values: FloatArray) -> Expression:
        if any(column is not None for column in self.columns):
            return self._from_columns(values)
        shares = np.asarray(self.shares)
        rest = shares.sum() - shares
        others = (float(shares @ values) - shares * values) / np.where(rest > 0, rest, 1.0)
        return self.by_answer(others) + self.by_answer(values - others) * self.right

    def _from_columns(self, values: FloatArray) -> Expression:
        """Return Σ_c P(c | x) values[c] where columns say some P; classes without one share the rest."""
        without = np.array([column is None for column in self.columns])
        others = values[without]
        rest = float(others.mean()) if len(others) else 0.0
        found: Expression = Constant(value=rest)
        for k, column in enumerate(self.columns):
            if column is not None and values[k] != rest:
                found = found + float(values[k] - rest) * column
        return found


def _require_number(population: Population, name: str) -> None:
    numbers = (*population.proxy_names, *population.feature_names)
    if name not in numbers:
        raise InputError(
            f"no such column of probabilities: {name!r}",
            allowed=", ".join(map(repr, numbers)) or "a proxy or a feature",
        )


_MOST_CELLS = 12
"""A classifier with more classes is not divided by its answers."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledRates(Record):
    """Which of the labelled units are of a class, and by how much the influence differs if they are.

    Parameters
    ----------
    is_class : float (m,)
    gap : float (m,)
        |u if it is − u if it is not|, the same for all units that are answered alike.
    labelled : bool (n,)
        Which of the drawn units these are.

    Examples
    --------
    >>> LabelledRates(is_class=[1.0], gap=[0.5], labelled=[True]).gap
    array([0.5])
    """

    is_class: FloatArray
    gap: FloatArray
    labelled: BoolArray


class Classification(Estimand):
    """A metric of the confusion of a classifier's answers with the truth.

    Examples
    --------
    >>> issubclass(Classification, Estimand)
    True
    """

    __slots__ = ()
    by_answer = True
    predicted: str | None

    @property
    def name(self) -> str:
        """The metric, as `ClassReport` calls it."""
        return self.kind

    @property
    def of(self) -> str | None:
        """The class that the metric is of, or how it is averaged over classes; None where of all."""
        return None

    @property
    def of_classes(self) -> bool:
        """Whether labels are true classes: always."""
        return True

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of the influence: u is a function of the answer and the true class.

        With slopes H, P, T and e of the metric in the shares of hits, of answers, of truths and of all,
        u = 1(c = a) H_a + T_c + P_a + e for a unit of class c that was answered a.
        """
        averaged = self.of in ("macro", "micro", "weighted", None)
        needed = () if averaged or self.of is None else (self.of,)
        beliefs = self._beliefs(population, needed)
        levels, k = beliefs.levels, len(beliefs.levels)
        which = None if self.of is None else self.of if averaged else levels.index(self.of)
        each = np.eye(k)
        sums = averages(
            population,
            [
                *(beliefs.of_answer(row) for row in each),
                *(beliefs.by_answer(row) for row in each),
                *(beliefs.of_class(row) for row in each),
            ],
        ).reshape(3, k)
        shares = Shares(hits=sums[0], predicted=sums[1], true=sums[2], everything=1.0)
        value, slopes, why = metric_function(self.name, which, k)(shares)
        if not np.isfinite(value):
            raise InputError(
                f"nothing can be expected of {self.text!r}: {why.replace('labelled unit', 'unit')}",
                given="answers are " + near_names("", [name for name in levels if name != self.of]),
                action="Check the class, give its probability (probability=COL), or plan for the accuracy.",
            )
        base = slopes.predicted + slopes.everything
        hits, true = slopes.hits, slopes.true
        mean = beliefs.by_answer(base) + beliefs.of_class(true) + beliefs.of_answer(hits)
        square = (
            beliefs.of_class(true**2)
            + 2.0 * beliefs.by_answer(base) * beliefs.of_class(true)
            + beliefs.by_answer(base**2)
            + beliefs.of_answer(hits**2 + 2.0 * hits * (true + base))
        )
        cells, known = self._cells(beliefs)
        return Influence(value=value, mean=mean, square=square, cells=cells, known=known)

    def _beliefs(self, population: Population, needed: tuple[str, ...]) -> Beliefs:
        told = (getattr(self, "probability", None), getattr(self, "right", None))
        return Beliefs.of(population, self.predicted, needed, *told)

    def _cells(self, beliefs: Beliefs) -> tuple[Cells, tuple[str, ...]]:
        """Return the parts of the population by what the model answered, and which of them need no label."""
        named = [self.of] if self.of in beliefs.levels else list(beliefs.levels)
        if len(named) > _MOST_CELLS:
            return Cells(names=("all",)), ()
        tests = [beliefs.is_answer(level) for level in named]
        if len(named) == len(beliefs.levels):
            tests = tests[:-1]
            return Cells(names=tuple(f"answer {level}" for level in named), tests=tuple(tests)), ()
        inside, outside = f"answer {named[0]}", "other answers"
        test = self._needless(beliefs.answers)
        if test is None:
            return Cells(names=(inside, outside), tests=(tests[0],)), ()
        counted = inside if test == self._not_answered(beliefs.answers) else outside
        left = outside if counted == inside else inside
        return Cells(names=(left, counted), tests=(test,)), (left,)

    def _needless(self, answers: str) -> Expression | None:
        return needless_units(self.name, self.of, answers)

    def _not_answered(self, answers: str) -> Expression | None:
        return needless_units("precision", self.of, answers)

    def estimate(self, sample: Sample, labels: Any, request: Request = PLAIN) -> Estimate:
        """Return the metric, from the true classes."""
        answered = self._answered(sample, labels)
        found = answered.metric(sample, self.name, self._which(answered), request.target)
        return replace(found, label=self.label)

    def labelled_influence(self, sample: Sample, labels: Any) -> LabelledInfluence:
        """Return the influence of the labelled units, at the shares that the labels estimate."""
        answered = self._answered(sample, labels)
        return answered.influence(self.name, self._which(answered))

    def _answered(self, sample: Sample, labels: Any) -> AnsweredClasses:
        averaged = self.of in ("macro", "micro", "weighted", None)
        labels, given = split_answers(labels)
        answers = self.predicted or sample.predicted
        needless = None if answers is None or given is not None else self._needless(answers)
        return answered_classes(
            sample,
            labels,
            self.predicted if given is None else given,
            None if averaged else [self.of],
            needless=needless,
        )

    def _which(self, answered: AnsweredClasses) -> int | str | None:
        return answered.levels.index(self.of) if self.of in answered.levels else self.of

    def labelled_rates(self, sample: Sample, labels: Any) -> LabelledRates | None:
        """Return which labelled units are of the class, and what that changes of u; None of averages."""
        answered = self._answered(sample, labels)
        confusion, k = answered.confusion, self._which(answered)
        if not isinstance(k, int):
            return None
        other, weights = confusion.n_classes, confusion.weighting.weights
        # One label of average weight, half right, keeps what few labels show from one of its ends.
        shares = Shares.of(
            np.append(confusion.true, [k, k, other]),
            np.append(confusion.predicted, [k, other, k]),
            np.append(weights, float(weights.mean()) * np.array([0.5, 0.25, 0.25])),
            confusion.n_classes + 1,
        )
        _, slopes, _ = metric_function(self.name, k, confusion.n_classes + 1)(shares)
        either = [slopes.along(np.full(len(weights), truth), confusion.predicted) for truth in (k, other)]
        return LabelledRates(
            is_class=(confusion.true == k).astype(np.float64),
            gap=np.abs(either[0] - either[1]),
            labelled=answered.labelled,
        )

    def chance(self, population: Population) -> Expression:
        """Return the probability that a unit is of the class, as the columns have it."""
        assert self.of is not None
        beliefs = self._beliefs(population, (self.of,))
        return beliefs.of_class(np.array([float(level == self.of) for level in beliefs.levels]))

    def learned_deviations(
        self, sample: Sample, labels: Any, strata: Strata, planned: FloatArray | None = None
    ) -> FloatArray:
        """Return √E[r (1 − r)] times the gap between the two values that the influence has in a stratum (H,).

        What is unknown is the rate r of the class: its probabilities are recalibrated on the labels, and
        smoothed, as a mean's proxy is. For averages of several classes, and where no population is at hand,
        as of other estimands.
        """
        rates = None if sample.population is None else self.labelled_rates(sample, labels)
        if rates is None or sample.population is None:
            return Estimand.learned_deviations(self, sample, labels, strata, planned)
        stratum, n_strata = sample.stratum[rates.labelled], strata.n_strata
        counts = np.bincount(stratum, minlength=n_strata)
        gap = np.bincount(stratum, rates.gap, minlength=n_strata) / np.maximum(counts, 1)
        gap = np.where(counts > 0, gap, rates.gap.mean())
        chances = stratum_averages(sample.population, strata.rule, [self.chance(sample.population)])[:, 0]
        deviations = smoothed_standard_deviations(
            strata.sizes,
            counts,
            np.bincount(stratum, rates.is_class, minlength=n_strata),
            proxy_means=np.clip(chances, 0.0, 1.0),
        )
        return np.asarray(np.where(strata.is_known, 0.0, deviations * gap))
