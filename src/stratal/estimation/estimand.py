"""`Estimand`: the quantity that is asked for, before labels and after them.

Before labels it gives the conditional moments of its influence, for which strata and allocations are made;
afterwards the estimate. It is written in the sample's file, so that `estimate` knows the question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, reduce
from operator import mul
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import BoolArray, Described, FloatArray, IntArray, Record
from stratal.designs.sample import Sample
from stratal.designs.stratum_moments import stratum_kurtoses
from stratal.errors import InputError, names_mistyped, near_names
from stratal.estimation.anticipated import Anticipated, AnticipatedInfluence, Division
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates
from stratal.estimation.request import PLAIN, Request
from stratal.labels.labels import join
from stratal.population.cells import Cells
from stratal.population.expressions import Constant, Expression, total
from stratal.population.influence import Influence, InfluenceOfLevels, averages
from stratal.population.level_tests import LevelSet, both_tests
from stratal.population.population import Population
from stratal.strata import Strata
from stratal.strata.rates import smoothed_standard_deviations

MOST_CELLS = 64
"""Cells of a list; where there would be more, units are told apart by whether they are known to all."""

KNOWN, OPEN = "nothing open", "something open"


def together(influences: list[Influence], population: Population) -> Influence:
    """Return one influence for several estimands: Neyman's rule on it minimises the sum of their variances.

    Each is divided by the deviation that it is expected to have, so that all count alike. The mean of
    v = Σ u_j orders the units within cells, and Σ E[u_j²], times their number, is no less than E[v²]. The
    cells are those of all; what is known in every one is known.

    Examples
    --------
    >>> from stratal.population.expressions import Number
    >>> p, everything = Number(name="p"), Cells(names=("all",))
    >>> part = Influence(value=0.5, mean=p - 0.5, square=p * 0.0 + 0.25, cells=everything)
    >>> population = Population.from_arrays(proxy={"p": [0.25, 0.75]})
    >>> together([part, part], population).cells.names
    ('all',)
    """
    squares = np.maximum(averages(population, [part.square for part in influences]), 1e-300)
    scales = 1.0 / np.sqrt(squares)
    mean = total([float(c) * part.mean for c, part in zip(scales, influences, strict=True)])
    square = total(
        [float(len(scales) * c**2) * part.square for c, part in zip(scales, influences, strict=True)]
    )
    cells, known = crossed_cells(influences)
    return Influence(value=np.nan, mean=mean, square=square, cells=cells, known=known)


def crossed_cells(influences: list[Influence]) -> tuple[Cells, tuple[str, ...]]:
    """Return the cells of several influences crossed, and those that are known to all.

    Cells that no unit can be in are left out: answers of two classes at once.

    Examples
    --------
    >>> from stratal.population.expressions import Agree
    >>> cells = Cells(names=("same", "differ"), tests=(Agree(names=("a", "b")),))
    >>> zero = Constant(value=0.0)
    >>> part = Influence(value=0.0, mean=zero, square=zero, cells=cells, known=("same",))
    >>> crossed_cells([part, part])[0].names
    ('same', 'differ')
    """
    cells, known = influences[0].cells, influences[0].known
    for part in influences[1:]:
        if part.cells == cells:
            known = tuple(name for name in known if name in part.known)
            continue
        most = max(MOST_CELLS, len(cells.names), len(part.cells.names))
        found = _Crossing(_Side(cells, known), _Side(part.cells, part.known)).cells(most)
        if found is None:
            return _known_or_open(influences)
        cells, known = found
    return cells, known


def _known_or_open(influences: list[Influence]) -> tuple[Cells, tuple[str, ...]]:
    """Return two cells: where all influences are known, and the rest; one where some is known nowhere."""
    if not all(part.known for part in influences):
        return Cells(names=("all",)), ()
    needless = [part.needless for part in influences]
    return Cells(names=(KNOWN, OPEN), tests=(reduce(mul, needless),)), (KNOWN,)


@dataclass(frozen=True)
class _Side:
    """One of the two divisions that are crossed."""

    division: Cells
    known: tuple[str, ...]

    @cached_property
    def tests(self) -> list[Expression | None]:
        """The tests of all cells; the last has none."""
        return [*self.division.tests, None]

    @cached_property
    def levels(self) -> list[LevelSet | None]:
        """The levels of the units in each cell; None where they are no matter of levels."""
        found = [LevelSet.of(test) for test in self.division.tests]
        if not found or None in found or len({entry.name for entry in found if entry}) > 1:
            return [*found, None]
        rest = reduce(LevelSet.both, (entry.rest for entry in found if entry is not None))
        return [*found, rest]


@dataclass(frozen=True)
class _Crossing:
    """Two divisions crossed."""

    first: _Side
    second: _Side

    def cells(self, most: int) -> tuple[Cells, tuple[str, ...]] | None:
        """Return the cells and those that are known to both; None of more than `most`."""
        pairs = list(self._pairs())
        if len(pairs) > most:
            return None
        names = [self._name(i, j) for i, j in pairs]
        tests = [both_tests(self.first.tests[i], self.second.tests[j]) for i, j in pairs]
        known = [
            name
            for name, (i, j) in zip(names, pairs, strict=True)
            if self.first.division.names[i] in self.first.known
            and self.second.division.names[j] in self.second.known
        ]
        asked = (Constant(value=1.0) if test is None else test for test in tests[:-1])
        return Cells(names=tuple(names), tests=tuple(asked)), tuple(known)

    def _pairs(self) -> Iterator[tuple[int, int]]:
        for i, own in enumerate(self.first.levels):
            for j, other in enumerate(self.second.levels):
                if own is None or other is None or not own.excludes(other):
                    yield i, j

    def _name(self, i: int, j: int) -> str:
        """Return the names of two cells, of which the one that says less is left out."""
        own, other = self.first.division.names[i], self.second.division.names[j]
        levels, others = self.first.levels[i], self.second.levels[j]
        if levels is not None and others is not None:
            if levels.excludes(others.rest):
                return own
            if others.excludes(levels.rest):
                return other
        named = dict.fromkeys(name for name in (own, other) if name != "all")
        return " & ".join(named) or "all"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledInfluence(Record):
    """The influence of the labelled units, as their labels have it.

    Parameters
    ----------
    u : float (m,)
    labelled : bool (n,)
        Which of the drawn units these are.

    Examples
    --------
    >>> LabelledInfluence(u=[0.5], labelled=[False, True]).stratum(np.array([0, 1]))
    array([1])
    """

    u: FloatArray
    labelled: BoolArray

    def stratum(self, strata: IntArray) -> IntArray:
        """Return the strata (m,) of the labelled units from those of all drawn units (n,)."""
        return np.asarray(strata[self.labelled])


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

    Examples
    --------
    >>> LabelledOutcomes(z=[1.0], labelled=[False, True], bounds=(0.0, 1.0), binary=True).z
    array([1.])
    """

    z: FloatArray
    labelled: BoolArray
    bounds: tuple[float, float]
    binary: bool


class Estimand(Described):
    """A quantity of the population that labels estimate. Subclasses are registered by `kind`.

    Examples
    --------
    >>> f1 = Estimand.parse_text("f1:match")
    >>> f1.text, Estimand.from_dict(f1.to_dict()) == f1
    ('f1:match', True)
    """

    __slots__ = ()
    noun: ClassVar[str] = "estimand"
    registry: ClassVar[dict[str, Any]] = {}
    door: ClassVar[str] = "stratal.estimands"
    of_one_outcome: ClassVar[bool] = False
    """Whether it is the mean of one outcome: its strata hold what the proxy expects of the outcome itself,
    those of other estimands what it expects of an influence."""
    listed: ClassVar[str] = ""
    """The field that the text form lists without its name: `difference:model_a,model_b`."""
    plan_options: ClassVar[tuple[str, ...]] = ("method", "n_strata", "minimum")
    """Options of `plan` that it takes, of those that say how units are divided and what is known of them."""
    recorded: ClassVar[bool] = True
    """Whether plans and samples name it; they are for the mean unless they do."""
    by_answer: ClassVar[bool] = False
    """Whether it compares a model's answers with labels, so that a plan sees to each answer's strata."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__init__" in vars(cls):
            cls.__init__ = names_mistyped(cls.__init__)  # type: ignore[method-assign]

    @property
    def text(self) -> str:
        """The text form: the kind, then what it is of, then options by name."""
        parts = []
        for entry in fields(self):  # type: ignore[arg-type]
            value = getattr(self, entry.name)
            if value is None or value == entry.default or (value == () and entry.name != self.listed):
                continue
            values = [value] if isinstance(value, str | int | float) else list(value)
            texts = [f"{given:g}" if isinstance(given, float) else str(given) for given in values]
            parts += texts if entry.name == self.listed else [f"{entry.name}={'+'.join(texts)}"]
        return f"{self.kind}:{','.join(parts)}" if parts else self.kind

    @property
    def title(self) -> str:
        """What a sentence calls it: `f1 of match`, `mean by language`.

        Examples
        --------
        >>> Estimand.parse_text("f1:match,probability=score").title
        'f1 of match'
        """
        if "@" in self.kind:
            return f"{self.kind.rstrip('@')} by {getattr(self, 'group', '')}".strip()
        listed = getattr(self, self.listed, None) if self.listed else None
        several = listed if isinstance(listed, tuple) else () if listed is None else (listed,)
        of = ", ".join(map(str, several))
        return self.kind.replace("_", " ") + (f" of {of}" if of else "")

    @staticmethod
    def parse_text(text: str) -> Estimand:
        """Return the estimand that a text names, such as `f1:match` or `difference:model_a,model_b`.

        Raises
        ------
        InputError
            For an unknown kind, and for what it does not take.
        """
        head, _, tail = text.strip().partition(":")
        name, at, group = head.partition("@")
        group, _, rest = group.partition(",")  # a comma that stands for the colon
        tail = ",".join(filter(None, (rest, tail)))
        kind = Estimand.of_kind(f"{name}@" if at else name)
        if kind is None:
            raise InputError("no such estimand", given=repr(text), allowed=near_names(head, _kinds()))
        options: dict[str, Any] = {"group": group} if at else {}
        listed = []
        for part in filter(None, (part.strip() for part in tail.split(","))):
            option, equals, value = part.partition("=")
            if equals:
                options[option] = value
            else:
                listed.append(part)
        found: Estimand = kind._of_text(text, listed, options)
        return found

    @classmethod
    def _of_text(cls, text: str, listed: list[str], options: dict[str, Any]) -> Estimand:
        declared = {entry.name: str(entry.type) for entry in fields(cls)}  # type: ignore[arg-type]
        strange = [name for name in options if name not in declared]
        if strange or (listed and not cls.listed):
            given = strange[0] if strange else listed[0]
            raise InputError(
                f"'{cls.kind}' does not take that",
                given=f"{given!r} in {text!r}",
                allowed=", ".join(f"{name}=" for name in declared) or "nothing",
            )
        if listed:
            options[cls.listed] = listed if _several(declared[cls.listed]) else ",".join(listed)
        try:
            return cls(**{name: _typed(value, declared[name]) for name, value in options.items()})
        except InputError:
            raise
        except (TypeError, ValueError):
            raise InputError(
                f"'{cls.kind}' needs more, or something else, than was given",
                given=repr(text),
                action=f"Write it as {cls.example()!r}.",
            ) from None

    @classmethod
    def example(cls) -> str:
        """Return an example of the text form."""
        return f"{cls.kind}:…" if cls.listed else cls.kind

    @property
    def groups(self) -> tuple[str, ...]:
        """The group columns that are needed: those that fields called so name."""
        found = [getattr(self, name, None) for name in ("predicted", "group")]
        return tuple(name for name in found if name is not None) + tuple(getattr(self, "models", ()))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of probabilities and other numbers that are needed beside proxies."""
        found = [getattr(self, name, None) for name in ("probability", "right")]
        return tuple(str(name) for name in found if isinstance(name, str))

    @property
    def proxy_names(self) -> tuple[str, ...]:
        """The proxies that are named, one for each model or outcome where there are several."""
        one = getattr(self, "proxy", None)
        return ((one,) if isinstance(one, str) else ()) + tuple(getattr(self, "proxies", ()))

    @property
    def of_classes(self) -> bool:
        """Whether labels are true classes, to be compared with a column of answers."""
        return getattr(self, "predicted", None) is not None

    @property
    def compared(self) -> str | bool:
        """The column of answers that labels are compared with; True for the sample's own, False for none."""
        return getattr(self, "predicted", None) or self.of_classes

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
            If the population lacks what it needs, or nothing can be expected.
        """
        raise InputError(
            f"'{self.kind}' cannot be planned for",
            action="Plan for the mean or a metric, and ask for it when there are labels.",
        )

    def estimate(self, sample: Sample, labels: Any, request: Request = PLAIN) -> Estimate | Estimates:
        """Return the estimate from labels.

        Raises
        ------
        LabelError
            For ids that are not in the sample, and labels that do not tell the quantity.
        """
        raise NotImplementedError

    def by(self, sample: Sample, labels: Any, group: Any, request: Request = PLAIN) -> Estimates:
        """Return the estimate of each group: a column of the sample, or one group for each drawn unit.

        Raises
        ------
        InputError
            For estimands that have no groups.
        """
        raise InputError(
            f"'{self.kind}' is not estimated by groups",
            given=f"by={group!r}" if isinstance(group, str) else "by=",
            allowed="by= (--by) with the mean, or mean@COLUMN for a plan",
            action="Leave it out, or ask for the mean.",
        )

    takes: ClassVar[tuple[str, ...]] = ("target", "population")
    """Options of `estimate` that mean something for it."""

    def refuse_options(self, request: Request, sample: Sample) -> None:
        """Refuse options that would have no effect.

        Raises
        ------
        InputError
            Names the first.
        """
        for name, value in request.given.items():
            if name in self.takes:
                continue
            if name == "combine":
                raise InputError(
                    f"'{self.kind}' averages the answers of several annotators",
                    given=f"combine={value!r}",
                    allowed="combine='mean'",
                    action="Take the majority first, and give one label for each unit.",
                )
            if name != "predicted":
                raise InputError(
                    f"'{self.kind}' takes no {name}=",
                    given=repr(value),
                    allowed=", ".join(f"{option}=" for option in self.takes),
                    action="Leave it out.",
                )
            if not self.compares(value, sample.predicted):
                raise InputError(
                    f"'{self.kind}' does not compare labels with predicted={value!r}",
                    allowed=", ".join(self.groups) or None,
                    action="Name the column in the estimand (predicted=COL), or leave it out.",
                )

    def compares(self, predicted: str | bool, kept: str | None) -> bool:
        """Return whether labels are compared with this column of answers; `kept` is the sample's own."""
        if predicted is True:
            return self.of_classes
        own, domain = getattr(self, "predicted", None), getattr(self, "group", None)
        answers = {name for name in self.groups if name != domain}
        return predicted in answers or (self.of_classes and own is None and predicted == kept)

    @property
    def label(self) -> dict[str, str]:
        """What an estimate of it is labelled with."""
        return {"estimand": self.text}

    def labelled_influence(self, sample: Sample, labels: Any) -> LabelledInfluence:
        """Return the influence of the labelled units, for the next round."""
        found = self.estimate(sample, labels)
        assert isinstance(found, Estimate)
        return LabelledInfluence(u=found.evidence.residuals, labelled=join(sample, labels).labelled)

    def parts_with_labels(self, labels: Any, population: Population | None) -> Iterator[tuple[Estimand, Any]]:
        """Yield the single estimands that this one is made of, each with its labels."""
        yield self, labels

    def labelled_outcomes(self, found: Any, labelled: BoolArray) -> LabelledOutcomes | None:
        """Return the outcomes whose mean the estimate `found` is; None where it is no mean of one outcome."""
        return None

    def learned_deviations(
        self, sample: Sample, labels: Any, strata: Strata, planned: FloatArray | None = None
    ) -> FloatArray:
        """Return how much the influence varies in each stratum (H,), as the labels have it.

        The deviations of u among the labelled units, smoothed towards the plan's, which are `planned` where
        the strata were made for several estimands. On a scale of their own.
        """
        found, n_strata = self.labelled_influence(sample, labels), strata.n_strata
        stratum = found.stratum(sample.stratum)
        if len(stratum) == 0:
            return strata.standard_deviations if planned is None else planned
        return smoothed_standard_deviations(
            strata.sizes,
            np.bincount(stratum, minlength=n_strata),
            np.bincount(stratum, found.u, minlength=n_strata),
            np.bincount(stratum, found.u**2, minlength=n_strata),
            proxy_means=strata.proxy_means,
            proxy_variances=strata.proxy_variances if planned is None else np.zeros(n_strata),
            conditional_variances=strata.conditional_variances if planned is None else planned**2,
            kurtoses=stratum_kurtoses(found.u, stratum, n_strata),
            bounds=(-np.inf, np.inf),
        )

    def outcome_of(self, labels: Any) -> FloatArray | None:
        """Return the outcome (N,) that the estimand is the mean of, given every unit's label; None of others.

        Of such an outcome sums per stratum say all that `stratal.simulate` needs.
        """
        return None

    def anticipated(self, population: Population, asked: Division) -> Anticipated:
        """Return what is expected of it before any label, by which `plan` divides the units."""
        influence = self.influence(population)
        return AnticipatedInfluence(population=population, asked=asked, influence=influence, text=self.text)

    def refuse_plan_options(self, given: Mapping[str, Any]) -> None:
        """Raise an `InputError` for the first option of `plan`, of those given, that it does not take.

        Examples
        --------
        >>> Estimand.parse_text("f1:match").refuse_plan_options({"n_strata": 5, "by": None})
        """
        for name, value in given.items():
            if value is None or name in self.plan_options:
                continue
            if name == "labels":
                raise InputError(
                    "a plan learns from earlier labels for the mean alone",
                    given=f"labels with the estimand '{self.text}'",
                    action="Plan without them. If they are of a sample that was drawn for it, draw more "
                    "of that one: next_round(sample, labels, half_width=…) "
                    "(draw --extend SAMPLE --labels FILE --half-width W).",
                )
            raise InputError(
                f"'{self.kind}' takes no {name}=",
                given=repr(value),
                action="It is an option of the mean; leave it out.",
            )


class Several(Estimand):
    """Several estimands on the same labels, planned for together.

    Examples
    --------
    >>> issubclass(Several, Estimand)
    True
    """

    __slots__ = ()

    def parts_in(self, population: Population) -> tuple[Estimand, ...]:
        """Return the estimands."""
        raise NotImplementedError

    def influence(self, population: Population) -> Influence:
        """Return the moments of all influences as one, each counting alike; see `together`."""
        return together([part.influence(population) for part in self.parts_in(population)], population)

    def influences(self, population: Population) -> Iterator[Influence | InfluenceOfLevels]:
        """Yield the influences of the single estimands, in their order."""
        for part in self.parts_in(population):
            yield from influences_of(part, population)

    def labelled_influence(self, sample: Sample, labels: Any) -> LabelledInfluence:
        """Return the root of the sum of squares of the parts' influences, with the sign of their sum."""
        parts = self.parts_of(sample)
        found = [part.labelled_influence(sample, labels) for part in parts]
        u = np.column_stack([entry.u / max(float(np.std(entry.u)), 1e-12) for entry in found])
        sign = np.where(u.sum(axis=1) < 0, -1.0, 1.0)
        return LabelledInfluence(u=sign * np.sqrt((u**2).sum(axis=1)), labelled=found[0].labelled)

    def parts_of(self, sample: Sample) -> tuple[Estimand, ...]:
        """Return the estimands, as the sample has them."""
        raise NotImplementedError

    def estimate(self, sample: Sample, labels: Any, request: Request = PLAIN) -> Estimates:
        """Return an estimate of each part."""
        raise NotImplementedError

    def labels_of_parts(self, labels: Any, count: int) -> list[Any]:
        """Return the labels of each of so many estimands: the same for all."""
        return [labels] * count

    def parts_with_labels(self, labels: Any, population: Population | None) -> Iterator[tuple[Estimand, Any]]:
        """Yield the single estimands, each with its labels."""
        assert population is not None
        parts = self.parts_in(population)
        for part, own in zip(parts, self.labels_of_parts(labels, len(parts)), strict=True):
            yield from part.parts_with_labels(own, population)


def parts_of(estimand: Estimand, population: Population) -> Iterator[Estimand]:
    """Yield the single estimands that an estimand is made of: itself, unless it is several.

    Examples
    --------
    >>> population = Population.from_arrays(groups={"a": ["x"], "b": ["y"], "c": ["x"]})
    >>> [part.text for part in parts_of(as_estimand("differences:a,b,c"), population)]
    ['difference:a,b', 'difference:a,c', 'difference:b,c']
    """
    if not isinstance(estimand, Several):
        yield estimand
        return
    for part in estimand.parts_in(population):
        yield from parts_of(part, population)


def influences_of(estimand: Estimand, population: Population) -> Iterator[Influence | InfluenceOfLevels]:
    """Yield the influences of `parts_of` an estimand; those of all levels of a category as one.

    Examples
    --------
    >>> population = Population.from_arrays(proxy=[0.5, 0.7], groups={"g": ["a", "b"]})
    >>> [len(entry.levels) for entry in influences_of(as_estimand("mean@g"), population)]
    [2]
    """
    if isinstance(estimand, Several):
        yield from estimand.influences(population)
    else:
        yield estimand.influence(population)


Asked = Estimand | str | Mapping[str, Any] | Sequence[Any] | None
"""What may be given for an estimand: itself, its text form, its record, or a list of these."""


def as_estimand(given: Asked) -> Estimand:
    """Return an estimand from itself, its text form, its record or a list of these; the mean of None.

    Examples
    --------
    >>> as_estimand("f1:match") == as_estimand({"kind": "f1", "positive": "match"})
    True
    """
    if isinstance(given, Estimand):
        return given
    if given is None:
        mean: Estimand = Estimand.registry["mean"]()
        return mean
    if isinstance(given, str) and ";" in given:
        return as_estimand(given.split(";"))
    if isinstance(given, str):
        return Estimand.parse_text(given)
    if isinstance(given, Sequence):
        made: Estimand = Estimand.registry["list"](tuple(as_estimand(entry) for entry in given))
        return made
    if isinstance(given, Mapping):
        found: Estimand = Estimand.from_dict(given)
        return found
    raise InputError("that is not an estimand", given=type(given).__name__, allowed=", ".join(_kinds()))


def _kinds() -> list[str]:
    return sorted(Estimand.registry)


def _several(declared: str) -> bool:
    return declared.startswith(("tuple", "Sequence"))


def _typed(value: Any, declared: str) -> Any:
    if "float" in declared:
        return float(value)
    if _several(declared):
        return tuple(value.split("+")) if isinstance(value, str) else tuple(value)
    return value
