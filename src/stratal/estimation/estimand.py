"""`Estimand`: the quantity that is asked for, before labels and after them.

Before labels it gives the conditional moments of its influence, for which strata and allocations are made;
afterwards the estimate. It is written in the sample's file, so that `estimate` knows the question.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from itertools import product
from operator import mul
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from stratal.arrays import BoolArray, Described, FloatArray, IntArray, Record, field_names, field_values
from stratal.designs.sample import Sample
from stratal.designs.stratum_moments import stratum_kurtoses
from stratal.errors import InputError, suggest_names
from stratal.estimation.anticipated import Anticipated, AnticipatedInfluence, StratificationOptions
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates
from stratal.estimation.planned_rounds import PlannedRounds
from stratal.intervals.evidence import OutcomeKind, require_target
from stratal.labels.labels import join_labels
from stratal.population.expressions import (
    ByLevel,
    Cells,
    Constant,
    Expression,
    both_tests,
    level_test,
    total,
)
from stratal.population.influence import Influence, averages
from stratal.population.population import Population
from stratal.protocols import Keywords
from stratal.question.vocabulary import average_name, metric_name
from stratal.strata import Strata
from stratal.strata.smoothed_variances import smoothed_standard_deviations
from stratal.strata.strata import Moments


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Request(Record):
    """The keywords of `stratal.estimate`, where they are described. An estimand takes those that it names."""

    target: str = "population"
    estimator: str = "auto"
    outcome: OutcomeKind | None = None
    bounds: tuple[float, float] | None = None
    limits: tuple[float, float] | None = None
    lam: Any = None
    proxy: str | None = None
    predicted: bool | str | None = None
    clip: bool = False
    combine: str = "mean"
    cross_fit: int | None = None
    calibration: Any = None
    features: Sequence[str] | None = None
    population: Population | None = None
    stratum_weights_known: bool = False

    def __post_init__(self) -> None:
        require_target(self.target)

    @property
    def changed(self) -> Keywords:
        """The options that differ from their defaults, by keyword."""
        options = {}
        values = field_values(self)
        for entry in fields(self):
            value = values[entry.name]
            if value is not entry.default and not (isinstance(value, str) and value == entry.default):
                options[entry.name] = value
        return options


# Nothing but the defaults.
PLAIN = Request()
# What a mean of one outcome takes: all of them.
MEAN_OPTIONS = tuple(entry.name for entry in fields(Request))
# What a mean of right answers takes: it says itself which answers.
RIGHT_OPTIONS = tuple(name for name in MEAN_OPTIONS if name != "predicted")


# Cells of a list; where there would be more, units are distinguished by whether they are known to all.
MOST_CELLS = 64

NOTHING_OPEN = "nothing open"
SOMETHING_OPEN = "something open"


def combined_influence(influences: list[Influence], population: Population) -> Influence:
    """Return one influence for several estimands: Neyman's rule on it minimises the sum of their variances.

    Each is divided by the deviation that it is expected to have, so that all count alike. The mean of
    v = Σ u_j orders the units within cells, and Σ E[u_j²], times their number, is no less than E[v²]. The
    cells are those of all; what is known in every one is known.
    """
    squares = np.maximum(averages(population, [part.square for part in influences]), 1e-300)
    scales = 1.0 / np.sqrt(squares)
    mean = total([float(c) * part.mean for c, part in zip(scales, influences, strict=True)])
    square = total(
        [float(len(scales) * c**2) * part.square for c, part in zip(scales, influences, strict=True)]
    )
    cells, known_cells = crossed_cells(influences)
    return Influence(value=np.nan, mean=mean, square=square, cells=cells, known_cells=known_cells)


def crossed_cells(influences: list[Influence]) -> tuple[Cells, tuple[str, ...]]:
    """Return the cells of several influences crossed, and those that are known to all.

    Cells that no unit can be in are left out: answers of two classes at once. Every cell has a name of its
    own: where two columns have cells of one name, the names say which column they are of.
    """
    cells = influences[0].cells
    known_cells = influences[0].known_cells
    crossed = _cells_of(influences[0])
    for part in influences[1:]:
        if part.cells == cells:
            known_cells = tuple(name for name in known_cells if name in part.known_cells)
            crossed = [
                replace(cell, is_known=cell.is_known and cell.name in part.known_cells) for cell in crossed
            ]
            continue
        most = max(MOST_CELLS, len(crossed), len(part.cells.names))
        pairs = (first.crossed(second) for first, second in product(crossed, _cells_of(part)))
        crossed = [cell for cell in pairs if cell is not None]
        if len(crossed) > most:
            return _known_or_open(influences)
        names = _distinct_names(crossed)
        crossed = [replace(cell, name=name) for cell, name in zip(crossed, names, strict=True)]
        tests = (Constant(value=1.0) if cell.test is None else cell.test for cell in crossed[:-1])
        cells = Cells(names=names, tests=tuple(tests))
        known_cells = tuple(cell.name for cell in crossed if cell.is_known)
    return cells, known_cells


def _known_or_open(influences: list[Influence]) -> tuple[Cells, tuple[str, ...]]:
    """Return two cells: where all influences are known, and the rest; one where some is known nowhere."""
    if not all(part.known_cells for part in influences):
        return Cells(names=("all",)), ()
    needless = [part.needless for part in influences]
    return Cells(names=(NOTHING_OPEN, SOMETHING_OPEN), tests=(reduce(mul, needless),)), (NOTHING_OPEN,)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CrossedCell:
    """A cell of several divisions.

    Parameters
    ----------
    name : str
    parts : mapping of str
        The names that it has in the divisions, by the column that these are of; "" for divisions that are not
        by the levels of one column.
    test : Expression, optional
        1 for its units; None for what all cells before it leave.
    levels : mapping of ByLevel
        By column, a test that every unit of the cell passes.
    is_known : bool
        Whether the influence of each division is known in it.
    """

    name: str
    parts: Mapping[str, str]
    test: Expression | None
    levels: Mapping[str, ByLevel]
    is_known: bool

    def crossed(self, other: _CrossedCell) -> _CrossedCell | None:
        """Return the cell of the units that are in both; None where no unit can be."""
        levels = dict(self.levels)
        parts = dict(self.parts)
        for column, test in other.levels.items():
            if column in levels and levels[column].excludes(test):
                return None
            if column in levels:
                levels[column] = levels[column].both(test)
            else:
                levels[column] = test
        for column, name in other.parts.items():
            column_levels = parts.get(column)
            if column_levels is None:
                parts[column] = name
            elif column:
                parts[column] = _narrower_name(column_levels, self.levels[column], name, other.levels[column])
            else:
                parts[column] = _joined_names((column_levels, name))
        return _CrossedCell(
            name=self.name,
            parts=parts,
            test=both_tests(self.test, other.test),
            levels=levels,
            is_known=self.is_known and other.is_known,
        )


def _cells_of(influence: Influence) -> list[_CrossedCell]:
    """Return the cells of one influence, each with the levels of its units where they are of one column."""
    cells = influence.cells
    levels = [level_test(test) for test in cells.tests]
    by_level = [entry for entry in levels if entry is not None]
    of_one = len(by_level) == len(levels) > 0 and len({entry.name for entry in by_level}) == 1
    levels.append(reduce(ByLevel.both, (entry.rest for entry in by_level)) if of_one else None)
    crossed = []
    for name, test, cell_levels in zip(cells.names, (*cells.tests, None), levels, strict=True):
        if cell_levels is not None and of_one:
            column = cell_levels.name
        else:
            column = ""
        crossed.append(
            _CrossedCell(
                name=name,
                parts={column: name},
                test=test,
                levels={column: cell_levels} if cell_levels is not None and of_one else {},
                is_known=name in influence.known_cells,
            )
        )
    return crossed


def _narrower_name(name: str, levels: ByLevel, other: str, others: ByLevel) -> str:
    """Return the name of two cells of one column, of which the one that says less is left out."""
    if levels.excludes(others.rest):
        return name
    if others.excludes(levels.rest):
        return other
    return _joined_names((name, other))


def _joined_names(names: Iterable[str]) -> str:
    return " & ".join(dict.fromkeys(name for name in names if name != "all")) or "all"


def _distinct_names(cells: Sequence[_CrossedCell]) -> tuple[str, ...]:
    """Return a name for each cell: those of its parts, with their columns where two columns share a name."""
    columns: dict[str, set[str]] = {}
    for cell in cells:
        for column, name in cell.parts.items():
            columns.setdefault(name, set()).add(column)
    shared = {name for name, definitions in columns.items() if len(definitions) > 1}
    return tuple(
        _joined_names(
            f"{name} ({column})" if column and name in shared else name for column, name in cell.parts.items()
        )
        for cell in cells
    )


class FunctionOfRates(Protocol):
    """An estimand that in every sample from the same strata is a function of the rates of a class."""

    @property
    def is_class(self) -> BoolArray:
        """Whether the units are of the class (N,)."""

    @property
    def sides(self) -> tuple[BoolArray, ...]:
        """The strata (H,) of each rate."""

    def value_and_slopes(self, rates: FloatArray, sizes: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the estimand (R,) and its slopes (d, R) at rates (d, R), in strata of these sizes (H,)."""

    def ends(
        self, rates: FloatArray, low: FloatArray, high: FloatArray, sizes: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the ends (R,) of its interval, from the rates and their limits (d, R)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledInfluence(Record):
    """The influence of the labelled units, as their labels have it.

    Parameters
    ----------
    u : float (m,)
    labelled : bool (n,)
        Which of the drawn units these are.
    """

    u: FloatArray
    labelled: BoolArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledOutcomes(Record):
    """The outcomes of the labelled units, of an estimand that is their mean.

    Parameters
    ----------
    z : float (m,)
    labelled : bool (n,)
        Which of the drawn units these are.
    bounds : (float, float)
        Infinite where the outcome has none.
    binary : bool
        Whether it takes no value but 0 and 1.
    """

    z: FloatArray
    labelled: BoolArray
    bounds: tuple[float, float]
    binary: bool


class Estimand(Described, noun="estimand", registry={}):
    """A quantity of the population that labels estimate. Subclasses are registered by `kind`.

    Examples
    --------
    >>> f1 = Estimand.parse_text("f1:match")
    >>> f1.text, Estimand.from_dict(f1.to_dict()) == f1
    ('f1:match', True)
    """

    __slots__ = ()
    entry_modules: ClassVar[tuple[str, ...]] = ("stratal.metrics.kinds", "stratal.estimands")
    # Whether it is the mean of one outcome: its strata hold what the proxy expects of the outcome itself,
    # those of other estimands what it expects of an influence.
    of_one_outcome: ClassVar[bool] = False
    # The field that the text form lists without its name: `difference:model_a,model_b`.
    listed: ClassVar[str] = ""
    # What an example of the text form is of.
    shown: ClassVar[str] = "…"
    # Options of `plan` that it takes, of those that say how units are divided and what is known of them.
    plan_options: ClassVar[tuple[str, ...]] = ("method", "n_strata", "minimum")
    # Whether plans and samples name it; they are for the mean unless they do.
    recorded: ClassVar[bool] = True
    # Whether its default estimator has the superpopulation as a target.
    has_superpopulation: ClassVar[bool] = True
    # Whether it is a number with an interval, and not a set that labels guarantee.
    is_estimated: ClassVar[bool] = True
    # Whether it compares a model's answers with labels, so that a plan sees to each answer's strata.
    by_answer: ClassVar[bool] = False

    @property
    def text(self) -> str:
        """The text form: the kind, then what it is of, then options by name."""
        parts = []
        field_of_name = field_values(self)
        for entry in fields(self):  # type: ignore[arg-type]
            value = field_of_name[entry.name]
            if value is None or value == entry.default or (value == () and entry.name != self.listed):
                continue
            if isinstance(value, str | int | float):
                values = [value]
            else:
                values = list(value)
            texts = [
                f"{entry_value:g}" if isinstance(entry_value, float) else str(entry_value)
                for entry_value in values
            ]
            parts += texts if entry.name == self.listed else [f"{entry.name}={'+'.join(texts)}"]
        if parts:
            return f"{self.kind}:{','.join(parts)}"
        return self.kind

    @property
    def title(self) -> str:
        """The name in a sentence: `f1 of match`, `mean by language`.

        Examples
        --------
        >>> Estimand.parse_text("f1:match,probability=score").title
        'f1 of match'
        """
        if "@" in self.kind:
            return f"{self.kind.rstrip('@')} by {', '.join(self._named('group'))}"
        of = ", ".join(map(str, self._named(self.listed)))
        return self.kind.replace("_", " ") + (f" of {of}" if of else "")

    @property
    def quoted_name(self) -> str:
        """The name in messages: the kind, or the whole text of a kind that users do not write."""
        if "@" in self.kind or self.kind == "list":
            return f"'{self.text}'"
        return f"'{self.kind}'"

    @staticmethod
    def parse_text(text: str) -> Estimand:
        """Return the estimand that a text names, such as `f1:match` or `difference:model_a,model_b`.

        Raises
        ------
        InputError
            For an unknown kind, and for what it does not take.
        """
        head, _, tail = metric_name(text).partition(":")
        average = average_name(text)
        if average is not None and Estimand.of_kind(head) is None:
            head, _, tail = average.partition(":")
        name, at, group = head.partition("@")
        group, _, rest = group.partition(",")  # a comma that stands for the colon
        tail = ",".join(filter(None, (rest, tail)))
        kind = Estimand.of_kind(f"{name}@" if at else name)
        if kind is None:
            raise InputError("no such estimand", given=repr(text), allowed=suggest_names(head, _kinds()))
        options: Keywords = {"group": group} if at else {}
        listed = []
        for part in filter(None, (part.strip() for part in tail.split(","))):
            option, equals, value = part.partition("=")
            if equals:
                options[option] = value
            else:
                listed.append(part)
        estimand: Estimand = kind._of_text(text, listed, options)
        return estimand

    @classmethod
    def _of_text(cls, text: str, listed: list[str], options: Keywords) -> Estimand:
        declared = {entry.name: str(entry.type) for entry in fields(cls)}  # type: ignore[arg-type]
        strange = [name for name in options if name not in declared]
        if strange or (listed and not cls.listed):
            unexpected = strange[0] if strange else listed[0]
            raise InputError(
                f"'{cls.kind.rstrip('@')}' does not support this argument",
                given=f"{unexpected!r} in {text!r}",
                allowed=", ".join(f"{name}=" for name in declared) or "nothing",
            )
        if listed:
            if _several(declared[cls.listed]):
                options[cls.listed] = listed
            else:
                options[cls.listed] = ",".join(listed)
        try:
            return cls(**{name: _typed(value, declared[name]) for name, value in options.items()})
        except InputError:
            raise
        except (TypeError, ValueError):
            problem = f"'{cls.kind.rstrip('@')}' needs more, or something else, than was given"
            raise InputError(problem, given=repr(text), action=f"Write it as {cls.example()!r}.") from None

    @classmethod
    def example(cls) -> str:
        """Return an example of the text form."""
        between = "" if "@" in cls.kind else ":"
        if cls.listed:
            return f"{cls.kind}{between}{cls.shown}"
        return cls.kind

    @property
    def groups(self) -> tuple[str, ...]:
        """The group columns that are needed."""
        return self._named("predicted", "group", "models", "judges")

    @property
    def answer_columns(self) -> tuple[str, ...]:
        """The group columns that hold a model's answers."""
        return self._named("predicted", "models")

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of probabilities and other numbers that are needed in addition to proxies."""
        names = self._named("probability", "right", "probabilities")
        return tuple(name for name in names if isinstance(name, str))

    @property
    def proxy_names(self) -> tuple[str, ...]:
        """The proxies that are named, one for each model or outcome where there are several."""
        return self._named("proxy", "proxies", "score")

    @property
    def model_names(self) -> tuple[str, ...]:
        """The models that are compared."""
        return self._named("models")

    def _named(self, *names: str) -> tuple[str, ...]:
        """Return the columns in those of these fields that the estimand has."""
        values = field_values(self, [name for name in field_names(self) if name in names])
        return tuple(
            name
            for value in values.values()
            for name in (value if isinstance(value, tuple) else (value,))
            if name
        )

    @property
    def of_classes(self) -> bool:
        """Whether labels are true classes, to be compared with a column of answers."""
        return bool(self._named("predicted"))

    def reads_classes(self, sample: Sample) -> bool:
        """Return whether labels are true classes; a score of the sample may be declared to predict one."""
        return self.of_classes

    @property
    def compared(self) -> str | bool:
        """The column of answers that labels are compared with; True for the sample's own, False for none."""
        return next(iter(self._named("predicted")), self.of_classes)

    def parts_of(self, sample: Sample) -> tuple[Estimand, ...]:
        """Return the single estimands that it is made of, as the sample has them: itself alone."""
        return (self,)

    def refuse_a_misread_proxy(self, population: Population) -> None:
        """Raise an `InputError` where a proxy is plainly not the probability that an answer is right."""

    def label_columns(self, sample: Sample) -> tuple[str, ...]:
        """Return the columns of labels that it takes together, as a mapping; none where one is enough."""
        return ()

    @property
    def reads_population(self) -> bool:
        """Whether the estimate reads columns of the population that a sample does not hold."""
        return False

    def influence(self, population: Population) -> Influence:
        """Return what a plan expects of the influence of each unit.

        Raises
        ------
        InputError
            If the population lacks what it needs, or no forecast is possible.
        """
        action = "Plan for the mean or a metric, and ask for it when there are labels."
        raise InputError(f"{self.quoted_name} cannot be planned for", action=action)

    def estimate(self, sample: Sample, labels: object, request: Request = PLAIN) -> Estimate | Estimates:
        """Return the estimate from labels.

        Raises
        ------
        LabelError
            For ids that are not in the sample, and labels that do not tell the quantity.
        """
        raise NotImplementedError

    def by(self, sample: Sample, labels: object, group: object, request: Request = PLAIN) -> Estimates:
        """Return the estimate of each group: a column of the sample, or one group for each drawn unit.

        Raises
        ------
        InputError
            For estimands that have no groups.
        """
        raise InputError(
            f"{self.quoted_name} is not estimated by groups",
            given=f"by={group!r}" if isinstance(group, str) else "by=",
            allowed="by= (--by) with means, metrics of a class, kappa, quantiles and judges",
            action="Leave it out, or ask for one of these.",
        )

    # Options of `estimate` that mean something for it.
    takes: ClassVar[tuple[str, ...]] = ("target", "population")
    # Those of groups, where they are fewer.
    takes_by_group: ClassVar[tuple[str, ...] | None] = None

    def refuse_options(self, request: Request, sample: Sample, *, grouped: bool = False) -> None:
        """Refuse options that would have no effect.

        Raises
        ------
        InputError
            Names the first.
        """
        takes = self.takes
        named = self.quoted_name
        if grouped and self.takes_by_group is not None:
            takes = self.takes_by_group
            named = f"{named} by groups"
        for name, value in request.changed.items():
            if name in takes or (name == "predicted" and self.compares(value, sample.question.answer)):
                continue
            allowed = ", ".join(f"{option}=" for option in takes)
            raise InputError(
                f"{named} takes no {name}=", given=repr(value), allowed=allowed, action="Leave it out."
            )

    def compares(self, predicted: str | bool, sample_answer: str | None) -> bool:
        """Return whether labels are compared with this column of answers; `sample_answer` is the sample's."""
        if predicted is True:
            return bool(self.compared)
        return predicted in self.answer_columns or (self.compared is True and predicted == sample_answer)

    @property
    def label(self) -> dict[str, str]:
        """The label of its estimate."""
        return {"estimand": self.text}

    def labelled_influence(self, sample: Sample, labels: object) -> LabelledInfluence:
        """Return the influence of the labelled units, for the next round."""
        estimate = self.estimate(sample, labels)
        assert isinstance(estimate, Estimate)
        u = np.nan_to_num(estimate.evidence.residuals)
        return LabelledInfluence(u=u, labelled=self.labelled_units(sample, labels))

    def rates_in_strata(self, census: Sample, labels: object) -> FunctionOfRates | None:
        """Return this estimand as a function of rates in the strata of a census with labels, if it is one."""
        return None

    def decoded(self, sample: Sample, labels: object) -> Any:
        """Return labels as this estimand reads them: those of a judge have the spelling of its verdicts."""
        return labels

    def labelled_units(self, sample: Sample, labels: object) -> BoolArray:
        """Return which of the drawn units (n,) have all labels that it takes."""
        return join_labels(sample, labels).labelled

    def influences(self, population: Population) -> Iterator[Influence]:
        """Yield the influences of the single estimands that it is made of; those of all levels as one."""
        yield self.influence(population)

    def parts_with_labels(
        self, labels: object, population: Population | None
    ) -> Iterator[tuple[Estimand, Any]]:
        """Yield the single estimands that it is made of, each with its labels."""
        yield self, labels

    def labelled_outcomes(self, estimate: Any, labelled: BoolArray) -> LabelledOutcomes | None:
        """Return the outcomes whose mean `estimate` is; None where it is not a mean of one outcome."""
        return None

    def learned_deviations(
        self, sample: Sample, labels: object, strata: Strata, planned: FloatArray | None = None
    ) -> FloatArray:
        """Return how much the influence varies in each stratum (H,), as the labels have it.

        The deviations of u among the labelled units, smoothed towards the plan's, which are `planned` where
        the strata were made for several estimands. On a scale of their own.
        """
        influence = self.labelled_influence(sample, labels)
        n_strata = strata.n_strata
        stratum = sample.stratum[influence.labelled]
        if len(influence.u) == 0:  # nothing is labelled, or the value is undefined
            if planned is None:
                return strata.standard_deviations
            return planned
        moments = Moments(
            sizes=strata.sizes,
            proxy_means=strata.proxy_means,
            proxy_variances=strata.proxy_variances if planned is None else np.zeros(n_strata),
            conditional_variances=strata.conditional_variances if planned is None else planned**2,
        )
        return smoothed_standard_deviations(
            moments,
            np.bincount(stratum, minlength=n_strata),
            *(np.bincount(stratum, power, minlength=n_strata) for power in (influence.u, influence.u**2)),
            kurtoses=stratum_kurtoses(influence.u, stratum, n_strata),
            bounds=(-np.inf, np.inf),
        )

    def outcome_of(self, labels: object) -> FloatArray | None:
        """Return the outcome (N,) that the estimand is the mean of, given every unit's label; None of others.

        Of such an outcome sums per stratum say all that `stratal.simulate` needs.
        """
        return None

    def anticipated(self, population: Population, options: StratificationOptions) -> Anticipated:
        """Return what is expected of it before any label, from which `plan` makes the strata."""
        influence = self.influence(population)
        return AnticipatedInfluence(
            population=population, options=options, influence=influence, text=self.text
        )

    @property
    def has_two_rounds(self) -> bool:
        """Whether a plan of a budget is a pilot of a part of it, with the rest in a second round."""
        return False

    def planned_rounds(
        self, population: Population, options: StratificationOptions, labels: int
    ) -> PlannedRounds | None:
        """Return what so many labels in one or two rounds are expected to guarantee; None of one round."""
        if self.has_two_rounds:
            return PlannedRounds(total=labels)
        return None

    def next_counts(self, sample: Sample, labels: object, total: int) -> IntArray | None:
        """Return n_h (H,) of the next round; None where it goes by deviations in the strata."""
        return None

    def refuse_plan_options(self, options: Mapping[str, object]) -> None:
        """Raise an `InputError` for the first option of `plan`, of those given, that it does not take."""
        for name, value in options.items():
            if value is None or name in self.plan_options:
                continue
            problem = f"a plan for {self.text!r} takes no {name}="
            action = "It is an option of the mean; leave it out. More labels of a sample: next_round."
            raise InputError(problem, given="labels" if name == "labels" else repr(value), action=action)


def signed_length(u: FloatArray) -> FloatArray:
    """Return the root of the sum of squares of each unit's influences (m, q), with the sign of their sum."""
    return np.asarray(np.where(u.sum(axis=1) < 0, -1.0, 1.0) * np.sqrt((u**2).sum(axis=1)))


class Several(Estimand):
    """Several estimands on the same labels, planned for together."""

    __slots__ = ()

    def parts_in(self, population: Population) -> tuple[Estimand, ...]:
        """Return the estimands."""
        raise NotImplementedError

    def influence(self, population: Population) -> Influence:
        """Return the moments of all influences as one, each counting alike; see `combined_influence`."""
        return combined_influence(
            [part.influence(population) for part in self.parts_in(population)], population
        )

    def influences(self, population: Population) -> Iterator[Influence]:
        """Yield the influences of the single estimands, in their order."""
        for part in self.parts_in(population):
            yield from part.influences(population)

    def labelled_influence(self, sample: Sample, labels: object) -> LabelledInfluence:
        """Return the root of the sum of squares of the parts' influences, with the sign of their sum."""
        parts = self.parts_of(sample)
        influences = [part.labelled_influence(sample, labels) for part in parts]
        # A part that does not vary has no scale, and adds nothing.
        u = np.column_stack([entry.u / max(float(np.std(entry.u)), 1e-12) for entry in influences])
        return LabelledInfluence(u=signed_length(u), labelled=influences[0].labelled)

    def labels_of_parts(self, labels: object, count: int) -> list[Any]:
        """Return the labels of each of so many estimands: the same for all."""
        return [labels] * count

    def parts_with_labels(
        self, labels: object, population: Population | None
    ) -> Iterator[tuple[Estimand, Any]]:
        """Yield the single estimands, each with its labels."""
        assert population is not None
        parts = self.parts_in(population)
        for part, part_labels in zip(parts, self.labels_of_parts(labels, len(parts)), strict=True):
            yield from part.parts_with_labels(part_labels, population)


def parts_of(estimand: Estimand, population: Population) -> Iterator[Estimand]:
    """Yield the single estimands that an estimand is made of: itself, unless it is several."""
    if not isinstance(estimand, Several):
        yield estimand
        return
    for part in estimand.parts_in(population):
        yield from parts_of(part, population)


# What may be given for an estimand: itself, its text form, its record, or a list of these.
EstimandLike = Estimand | str | Mapping[str, Any] | Sequence[Any] | None


def as_estimand(question: EstimandLike) -> Estimand:
    """Return an estimand from itself, its text form, its record or a list of these; the mean of None."""
    if isinstance(question, Estimand):
        return question
    if question is None:
        mean: Estimand = Estimand.of_kind("mean")()
        return mean
    if isinstance(question, str) and ";" in question:
        return as_estimand(question.split(";"))
    if isinstance(question, str):
        return Estimand.parse_text(question)
    if isinstance(question, Sequence):
        estimands: Estimand = Estimand.registry["list"](tuple(as_estimand(entry) for entry in question))
        return estimands
    if isinstance(question, Mapping):
        estimand: Estimand = Estimand.from_dict(question)
        return estimand
    raise InputError("not an estimand", given=type(question).__name__, allowed=", ".join(_kinds()))


def planned_for(estimand: EstimandLike, goal: str | None) -> EstimandLike:
    """Return the estimand or the goal of a plan, refusing both and a goal that is an estimand."""
    if goal is None:
        return estimand
    if estimand is not None:
        raise InputError(
            "for_= and estimand= are mutually exclusive", given=f"{goal}, {estimand}", action="Leave one out."
        )
    if not goal.startswith("threshold:"):
        allowed = "threshold:REQUIREMENT, such as 'threshold:error<=.05'"
        raise InputError("invalid threshold goal", given=repr(goal), allowed=allowed)
    return goal


def _kinds() -> list[str]:
    Estimand.of_kind("")  # by which all of them enter
    return sorted(Estimand.registry)


def _several(declared: str) -> bool:
    return declared.startswith(("tuple", "Sequence"))


def _typed(value: Any, declared: str) -> Any:
    if "float" in declared:
        return float(value)
    if _several(declared):
        if isinstance(value, str):
            return tuple(value.split("+"))
        return tuple(value)
    return value


@dataclass(frozen=True, slots=True)
class Listed(Several, kind="list"):
    """Several estimands of any kinds, planned for and estimated on the same labels.

    Parameters
    ----------
    estimands : tuple of Estimand
        Labels must be what each of them takes, as true classes are for F1 and for recall.

    Examples
    --------
    >>> from stratal.estimation.estimand import as_estimand
    >>> as_estimand(["f1:match", "recall:match"]).text
    'f1:match;recall:match'
    """

    estimands: tuple[Estimand, ...]

    @property
    def has_two_rounds(self) -> bool:
        """Whether all of them have."""
        return all(entry.has_two_rounds for entry in self.estimands)

    def __post_init__(self) -> None:
        self._set(estimands=tuple(self.estimands))
        if not self.estimands or not all(isinstance(entry, Estimand) for entry in self.estimands):
            action = "Give estimands of stratal.estimands, or their texts, such as 'f1:match'."
            raise InputError("every entry of a list of estimands must be an estimand", action=action)

    @property
    def text(self) -> str:
        """The text forms, with semicolons between them."""
        return ";".join(entry.text for entry in self.estimands)

    @classmethod
    def parse(cls, fields: Keywords) -> Self:
        """Return the list from the fields of `to_dict` but `kind`."""
        return cls(tuple(Estimand.from_dict(entry) for entry in fields["estimands"]))

    @property
    def groups(self) -> tuple[str, ...]:
        """The group columns that are needed."""
        return tuple(dict.fromkeys(name for entry in self.estimands for name in entry.groups))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numeric columns that are needed."""
        return tuple(dict.fromkeys(name for entry in self.estimands for name in entry.numbers))

    @property
    def proxy_names(self) -> tuple[str, ...]:
        """The proxies that are named."""
        return tuple(dict.fromkeys(name for entry in self.estimands for name in entry.proxy_names))

    @property
    def reads_population(self) -> bool:
        """Whether one of them reads columns of the population that a sample does not hold."""
        return any(entry.reads_population for entry in self.estimands)

    def parts_in(self, population: Population) -> tuple[Estimand, ...]:
        """Return the estimands."""
        return self.estimands

    def parts_of(self, sample: Sample) -> tuple[Estimand, ...]:
        """Return the estimands."""
        return self.estimands

    def label_columns(self, sample: Sample) -> tuple[str, ...]:
        """Return the columns that all of them take."""
        each = [entry.label_columns(sample) for entry in self.estimands]
        if all(columns == each[0] for columns in each):
            return each[0]
        return ()

    def refuse_options(self, request: Request, sample: Sample, *, grouped: bool = False) -> None:
        """Refuse options that would have no effect on one of them."""
        for entry in self.estimands:
            entry.refuse_options(request, sample, grouped=grouped)

    def estimate(self, sample: Sample, labels: object, request: Request = PLAIN) -> Estimates:
        """Return an estimate of each, labelled by its text and, of several, by the label of each."""
        rows: list[Estimate] = []
        remarks: list[str] = []
        for entry in self.estimands:
            estimate = entry.estimate(sample, labels, request)
            remarks += estimate.remarks if isinstance(estimate, Estimates) else ()
            each = estimate if isinstance(estimate, Estimates) else [estimate]
            rows += [replace(row, label={"estimand": entry.text} | dict(row.label)) for row in each]
        return Estimates.from_rows(sample, rows, "estimands", remarks)

    def by(self, sample: Sample, labels: object, group: object, request: Request = PLAIN) -> Estimates:
        """Return an estimate of each in each group, labelled by its text and the group."""
        tables = [(entry.text, entry.by(sample, labels, group, request)) for entry in self.estimands]
        rows = [
            replace(row, label={"estimand": text} | dict(row.label))
            for text, several in tables
            for row in several
        ]
        remarks = [note for _, several in tables for note in several.remarks]
        return Estimates.from_rows(sample, rows, "estimands", remarks)
