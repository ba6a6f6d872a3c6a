"""`Estimand`: the quantity to be estimated.

Before labels are collected, it returns the conditional moments of each unit's influence, which determine
strata and allocation. From labels, it returns the estimate. It is stored in the file of the sample.

A plan has no labels. Modules that only estimates need are imported by the functions that use them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from shlex import quote
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from stratal.arrays import BoolArray, Described, FloatArray, IntArray, Record, field_names, field_values
from stratal.designs.sample import Sample
from stratal.designs.stratum_moments import stratum_kurtoses
from stratal.errors import InputError, suggest_names
from stratal.estimation.anticipated import Anticipated, AnticipatedInfluence, StratificationOptions
from stratal.estimation.planned_rounds import PlannedRounds
from stratal.intervals.outcomes import OutcomeKind, check_target
from stratal.population.expressions import Expression
from stratal.population.influence import Influence
from stratal.population.population import Population
from stratal.protocols import Keywords
from stratal.question.vocabulary import average_name, metric_name
from stratal.strata import Strata
from stratal.strata.strata import Moments

if TYPE_CHECKING:
    from stratal.estimation.estimate import Estimate
    from stratal.estimation.estimates import Estimates


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Request(Record):
    """The keywords of `stratal.estimate`, which documents them. An estimand supports those in `takes`."""

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
        check_target(self.target)

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


# All options at their defaults.
DEFAULT_REQUEST = Request()
# Options of the mean of one outcome: all.
MEAN_OPTIONS = tuple(entry.name for entry in fields(Request))
# Options of the accuracy, whose field `predicted` names the column of answers.
ACCURACY_OPTIONS = tuple(name for name in MEAN_OPTIONS if name != "predicted")


class FunctionOfRates(Protocol):
    """An estimand that is a function of rates of a class, the same in every sample from the same strata.

    d is the number of rates, and R that of simulated samples.
    """

    @property
    def is_class(self) -> BoolArray:
        """Whether each unit (N,) is of the class."""

    @property
    def sides(self) -> tuple[BoolArray, ...]:
        """For each rate, the strata (H,) whose units it is a rate of."""

    def value_and_slopes(self, rates: FloatArray, sizes: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the estimand (R,) and its slopes (d, R) at rates (d, R), in strata of these sizes (H,)."""

    def ends(
        self, rates: FloatArray, low: FloatArray, high: FloatArray, sizes: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the ends (R,) of its interval, from the rates and their limits (d, R)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledInfluence(Record):
    """The influence of the labelled units, estimated from their labels.

    Parameters
    ----------
    u : float (m,)
    labelled : bool (n,)
        Whether each drawn unit is labelled.
    """

    u: FloatArray
    labelled: BoolArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledOutcomes(Record):
    """The outcomes of the labelled units, whose mean is the estimand.

    Parameters
    ----------
    z : float (m,)
    labelled : bool (n,)
        Whether each drawn unit is labelled.
    bounds : (float, float)
        Infinite if the outcome has no bounds.
    binary : bool
        Whether all possible outcomes are 0 and 1.
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
    # Whether it is the mean of one outcome. Strata of a plan then have the expected moments of the outcome,
    # otherwise those of the influence.
    of_one_outcome: ClassVar[bool] = False
    # The field that the text form lists without its name: `difference:model_a,model_b`.
    listed_field: ClassVar[str] = ""
    # Value of this field in an example of the text form.
    listed_example: ClassVar[str] = "…"
    # Options of `plan` that it supports.
    plan_options: ClassVar[tuple[str, ...]] = ("method", "n_strata", "minimum")
    # Whether plans and samples store it. The mean is the default and is not stored.
    is_stored: ClassVar[bool] = True
    # Whether its default estimator supports the superpopulation as the target.
    has_superpopulation: ClassVar[bool] = True
    # Whether the result is a number with an interval. Otherwise, it is an accepted set with a guarantee.
    is_estimated: ClassVar[bool] = True
    # Whether it compares the answers of a model with labels. A plan then has strata of the answers.
    by_answer: ClassVar[bool] = False

    @property
    def text(self) -> str:
        """The text form: the kind, the listed field, and the other fields by name."""
        parts = []
        value_of = field_values(self)
        for entry in fields(self):  # type: ignore[arg-type]
            value = value_of[entry.name]
            is_listed = entry.name == self.listed_field
            if value is None or value == entry.default or (value == () and not is_listed):
                continue
            values = [value] if isinstance(value, str | int | float) else list(value)
            texts = [f"{item:g}" if isinstance(item, float) else str(item) for item in values]
            if is_listed:
                parts += texts
            else:
                parts.append(f"{entry.name}={'+'.join(texts)}")
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
        kind = self.kind.replace("_", " ")
        listed = ", ".join(map(str, self._named(self.listed_field)))
        if listed:
            return f"{kind} of {listed}"
        return kind

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
            For an unknown kind, and for arguments that it does not support.
        """
        head, _, tail = metric_name(text).partition(":")
        # `f1-macro:match` names an average of a kind, unless the whole name is a kind of its own.
        average = average_name(text)
        if average is not None and Estimand.class_of_kind(head) is None:
            head, _, tail = average.partition(":")
        name, at, group = head.partition("@")
        # `mean@language,de` is the same as `mean@language:de`.
        group, _, rest = group.partition(",")
        tail = ",".join(filter(None, (rest, tail)))
        kind = Estimand.class_of_kind(f"{name}@" if at else name)
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
        """Return the estimand of this kind with the arguments of a text form."""
        declared = {entry.name: str(entry.type) for entry in fields(cls)}  # type: ignore[arg-type]
        unexpected = next((name for name in options if name not in declared), None)
        if unexpected is None and listed and not cls.listed_field:
            unexpected = listed[0]
        if unexpected is not None:
            raise InputError(
                f"'{cls.kind.rstrip('@')}' does not support this argument",
                given=f"{unexpected!r} in {text!r}",
                allowed=", ".join(f"{name}=" for name in declared) or "nothing",
            )
        if listed:
            if _is_sequence(declared[cls.listed_field]):
                options[cls.listed_field] = listed
            else:
                options[cls.listed_field] = ",".join(listed)
        try:
            return cls(**{name: _typed(value, declared[name]) for name, value in options.items()})
        except InputError:
            raise
        except (TypeError, ValueError):
            problem = f"missing or invalid arguments of '{cls.kind.rstrip('@')}'"
            raise InputError(problem, given=repr(text), action=f"Write it as {cls.example()!r}.") from None

    @classmethod
    def example(cls) -> str:
        """Return an example of the text form."""
        between = "" if "@" in cls.kind else ":"
        if cls.listed_field:
            return f"{cls.kind}{between}{cls.listed_example}"
        return cls.kind

    @property
    def groups(self) -> tuple[str, ...]:
        """The group columns that are needed."""
        return self._named("predicted", "group", "models", "judges")

    @property
    def answer_columns(self) -> tuple[str, ...]:
        """The group columns with a model's answers."""
        return self._named("predicted", "models")

    @property
    def numeric_columns(self) -> tuple[str, ...]:
        """The columns of probabilities and other numbers that are needed in addition to proxies."""
        names = self._named("probability", "right", "probabilities")
        return tuple(name for name in names if isinstance(name, str))

    @property
    def proxy_names(self) -> tuple[str, ...]:
        """The named proxies, one for each of several models or outcomes."""
        return self._named("proxy", "proxies", "score")

    @property
    def model_names(self) -> tuple[str, ...]:
        """The models that are compared."""
        return self._named("models")

    def _named(self, *names: str) -> tuple[str, ...]:
        """Return the column names in these fields, if the estimand has them."""
        columns: list[str] = []
        for value in field_values(self, [name for name in field_names(self) if name in names]).values():
            columns += value if isinstance(value, tuple) else [value]
        return tuple(filter(None, columns))

    @property
    def of_classes(self) -> bool:
        """Whether labels are true classes that are compared with a column of answers."""
        return bool(self._named("predicted"))

    def reads_classes(self, sample: Sample) -> bool:
        """Return whether labels are true classes; for some estimands, the scores of the sample decide."""
        return self.of_classes

    @property
    def compared(self) -> str | bool:
        """The column of answers that labels are compared with; True is the sample's column, False is none."""
        return next(iter(self._named("predicted")), self.of_classes)

    def parts_of(self, sample: Sample) -> tuple[Estimand, ...]:
        """Return the single estimands of a list, for a sample; only itself if it is not a list."""
        return (self,)

    def refuse_a_misread_proxy(self, population: Population) -> None:
        """Raise an `InputError` if a proxy is clearly not the probability that an answer is right."""

    def misread_score_notes(self, population: Population) -> tuple[str, ...]:
        """Return a warning if a score is clearly not the probability that the estimand assumes."""
        return ()

    def class_formula(self, population: Population) -> Expression | None:
        """Return P(a unit is of the class | x), if the estimand is undefined without labels of this class."""
        return None

    def label_columns(self, sample: Sample) -> tuple[str, ...]:
        """Return the columns of labels that it requires as a mapping; none if it requires one column."""
        return ()

    @property
    def reads_population(self) -> bool:
        """Whether the estimate reads columns of the population that a sample does not have."""
        return False

    def influence(self, population: Population) -> Influence:
        """Return the expected moments of the influence of each unit, for a plan.

        Raises
        ------
        InputError
            If the population lacks a required column, or no forecast is possible.
        """
        action = "Plan for the mean or a metric, and request this estimand once there are labels."
        raise InputError(f"{self.quoted_name} cannot be planned for", action=action)

    def estimate(
        self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST
    ) -> Estimate | Estimates:
        """Return the estimate from labels.

        Raises
        ------
        LabelError
            For ids that are not in the sample, and labels that do not determine the quantity.
        """
        raise NotImplementedError

    def by(
        self, sample: Sample, labels: object, group: object, request: Request = DEFAULT_REQUEST
    ) -> Estimates:
        """Return the estimate of each group. `group` is a column, or the group of each drawn unit.

        Raises
        ------
        InputError
            For estimands that have no groups.
        """
        raise InputError(
            f"{self.quoted_name} cannot be estimated by group",
            given=f"by={group!r}" if isinstance(group, str) else "by=",
            allowed="by= (--by) with means, metrics of a class, kappa, quantiles or judges",
            action="Leave out by= (--by), or choose one of these estimands.",
        )

    # Options of `estimate` that it supports.
    takes: ClassVar[tuple[str, ...]] = ("target", "population")
    # Options that its estimates by group support, if they are fewer.
    takes_by_group: ClassVar[tuple[str, ...] | None] = None

    def refuse_options(self, request: Request, sample: Sample, *, grouped: bool = False) -> None:
        """Raise an error for options that would have no effect.

        Raises
        ------
        InputError
            For the first such option.
        """
        takes = self.takes
        named = self.quoted_name
        if grouped and self.takes_by_group is not None:
            takes = self.takes_by_group
            named = f"{named} by group"
        for name, value in request.changed.items():
            if name in takes or (name == "predicted" and self.compares(value, sample.question.answer)):
                continue
            allowed = ", ".join(f"{option}=" for option in takes)
            action = "Leave it out."
            if name == "predicted" and name in field_names(self) and isinstance(value, str):
                text = type(self)(**field_values(self) | {"predicted": value}).text
                action = f"Name the column in the estimand: estimand={text!r} (--estimand {quote(text)})."
            raise InputError(f"{named} takes no {name}=", given=repr(value), allowed=allowed, action=action)

    def compares(self, predicted: str | bool, sample_answer: str | None) -> bool:
        """Return whether labels are compared with a column of answers; `sample_answer` is the sample's."""
        if predicted is True:
            return bool(self.compared)
        return predicted in self.answer_columns or (self.compared is True and predicted == sample_answer)

    @property
    def label(self) -> dict[str, str]:
        """The label of its estimate."""
        return {"estimand": self.text}

    def labelled_influence(self, sample: Sample, labels: object) -> LabelledInfluence:
        """Return the influence of the labelled units, for the next round."""
        from stratal.estimation.estimate import Estimate

        estimate = self.estimate(sample, labels)
        assert isinstance(estimate, Estimate)
        u = np.nan_to_num(estimate.evidence.residuals)
        return LabelledInfluence(u=u, labelled=self.labelled_units(sample, labels))

    def rates_in_strata(self, census: Sample, labels: object) -> FunctionOfRates | None:
        """Return this estimand as a function of rates in strata, from a census with labels, or None."""
        return None

    def decoded(self, sample: Sample, labels: object) -> Any:
        """Return labels converted to the words that the estimand requires: for a judge, its verdicts."""
        return labels

    def labelled_units(self, sample: Sample, labels: object) -> BoolArray:
        """Return which of the drawn units (n,) have all labels that the estimand requires."""
        from stratal.labels.joined_labels import join_labels

        return join_labels(sample, labels).labelled

    def influences(self, population: Population) -> Iterator[Influence]:
        """Yield the influence of each single estimand of a list; the means of all levels share one."""
        yield self.influence(population)

    def parts_with_labels(
        self, labels: object, population: Population | None
    ) -> Iterator[tuple[Estimand, Any]]:
        """Yield each single estimand of a list with its labels; only itself if it is not a list."""
        yield self, labels

    def labelled_outcomes(self, estimate: Any, labelled: BoolArray) -> LabelledOutcomes | None:
        """Return the outcomes whose mean is `estimate`; None if it is not the mean of one outcome."""
        return None

    def learned_deviations(
        self, sample: Sample, labels: object, strata: Strata, planned: FloatArray | None = None
    ) -> FloatArray:
        """Return the standard deviation of the influence in each stratum (H,), from the labels.

        The standard deviations of the labelled units are smoothed towards those of the plan, or towards
        `planned` if the strata are for several estimands. Only their ratios are meaningful.
        """
        from stratal.strata.standard_deviations import smoothed_standard_deviations

        influence = self.labelled_influence(sample, labels)
        n_strata = strata.n_strata
        stratum = sample.stratum[influence.labelled]
        # There are no labels, or the estimand is undefined for these labels.
        if len(influence.u) == 0:
            if planned is None:
                return strata.standard_deviations
            return planned
        proxy_variances = strata.proxy_variances
        conditional_variances = strata.conditional_variances
        if planned is not None:
            proxy_variances = np.zeros(n_strata)
            conditional_variances = planned**2
        moments = Moments(
            sizes=strata.sizes,
            proxy_means=strata.proxy_means,
            proxy_variances=proxy_variances,
            conditional_variances=conditional_variances,
        )
        return smoothed_standard_deviations(
            moments,
            np.bincount(stratum, minlength=n_strata),
            np.bincount(stratum, influence.u, minlength=n_strata),
            np.bincount(stratum, influence.u**2, minlength=n_strata),
            kurtoses=stratum_kurtoses(influence.u, stratum, n_strata),
            bounds=(-np.inf, np.inf),
        )

    def outcome_of(self, labels: object) -> FloatArray | None:
        """Return the outcome (N,) whose mean is the estimand, from the labels of all units; None for others.

        `stratal.simulate` then needs only sums per stratum.
        """
        return None

    def anticipated(self, population: Population, options: StratificationOptions) -> Anticipated:
        """Return the expectations before any label, from which `plan` creates strata."""
        influence = self.influence(population)
        return AnticipatedInfluence(
            population=population, options=options, influence=influence, text=self.text
        )

    @property
    def has_two_rounds(self) -> bool:
        """Whether a plan uses a part of the budget for a pilot, and the rest for a second round."""
        return False

    def planned_rounds(
        self, population: Population, options: StratificationOptions, labels: int
    ) -> PlannedRounds | None:
        """Return the expected result of two rounds with this number of labels; None for a single round."""
        if self.has_two_rounds:
            return PlannedRounds(total=labels)
        return None

    def next_counts(self, sample: Sample, labels: object, total: int) -> IntArray | None:
        """Return n_h (H,) of the next round; None if it is allocated by the deviations in the strata."""
        return None

    def refuse_plan_options(self, options: Mapping[str, object]) -> None:
        """Raise an `InputError` for the first stated option of `plan` that it does not support."""
        for name, value in options.items():
            if value is None or name in self.plan_options:
                continue
            problem = f"a plan for {self.text!r} does not accept {name}="
            action = (
                "The option applies only to the mean, so leave it out. To label more units of a sample, use "
                "next_round."
            )
            raise InputError(problem, given="labels" if name == "labels" else repr(value), action=action)


def signed_norm(u: FloatArray) -> FloatArray:
    """Return the norm (m,) of each unit's influences (m, q), with the sign of their sum."""
    return np.asarray(np.where(u.sum(axis=1) < 0, -1.0, 1.0) * np.sqrt((u**2).sum(axis=1)))


class Several(Estimand):
    """Several estimands on the same labels, planned for together."""

    __slots__ = ()

    def parts_in(self, population: Population) -> tuple[Estimand, ...]:
        """Return the estimands."""
        raise NotImplementedError

    def influence(self, population: Population) -> Influence:
        """Return one influence for all estimands, with equal weights; see `combined_influence`."""
        from stratal.estimation.crossed_cells import combined_influence

        return combined_influence(
            [part.influence(population) for part in self.parts_in(population)], population
        )

    def influences(self, population: Population) -> Iterator[Influence]:
        """Yield the influences of the single estimands, in their order."""
        for part in self.parts_in(population):
            yield from part.influences(population)

    def labelled_influence(self, sample: Sample, labels: object) -> LabelledInfluence:
        """Return the `signed_norm` of the influences of all estimands, each divided by its deviation."""
        parts = self.parts_of(sample)
        influences = [part.labelled_influence(sample, labels) for part in parts]
        # The influence of a part that does not vary is 0 in all units; the divisor then only avoids 0 / 0.
        u = np.column_stack([entry.u / max(float(np.std(entry.u)), 1e-12) for entry in influences])
        return LabelledInfluence(u=signed_norm(u), labelled=influences[0].labelled)

    def labels_of_parts(self, labels: object, count: int) -> list[Any]:
        """Return the labels of each of `count` estimands: the same for all."""
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
    """Yield the single estimands of an estimand: itself, unless it is a list."""
    if not isinstance(estimand, Several):
        yield estimand
        return
    for part in estimand.parts_in(population):
        yield from parts_of(part, population)


# Accepted forms of an estimand: an object, its text form, its record, or a list of these.
EstimandLike = Estimand | str | Mapping[str, Any] | Sequence[Any] | None


def as_estimand(question: EstimandLike) -> Estimand:
    """Return an estimand from any accepted form; None is the mean."""
    if isinstance(question, Estimand):
        return question
    if question is None:
        mean: Estimand = Estimand.class_of_kind("mean")()
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
    """Return the estimand or the goal of a plan. Both together, or an estimand as the goal, are errors."""
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
    """Return the kinds of all estimands."""
    # Imports the modules that register them.
    Estimand.class_of_kind("")
    return sorted(Estimand.registry)


def _is_sequence(declared: str) -> bool:
    """Return whether the declared type of a field is a sequence."""
    return declared.startswith(("tuple", "Sequence"))


def _typed(value: Any, declared: str) -> Any:
    """Return a text as a value of the declared type of a field."""
    if "float" in declared:
        return float(value)
    if _is_sequence(declared):
        if isinstance(value, str):
            return tuple(value.split("+"))
        return tuple(value)
    return value


@dataclass(frozen=True, slots=True)
class Listed(Several, kind="list"):
    """Several estimands of any kinds, which are planned and estimated with the same labels.

    Parameters
    ----------
    estimands : tuple of Estimand
        All must support the same labels, such as true classes for F1 and recall.

    Examples
    --------
    >>> from stratal.estimation.estimand import as_estimand
    >>> as_estimand(["f1:match", "recall:match"]).text
    'f1:match;recall:match'
    """

    estimands: tuple[Estimand, ...]

    @property
    def has_two_rounds(self) -> bool:
        """Whether plans of all estimands have two rounds."""
        return all(entry.has_two_rounds for entry in self.estimands)

    def __post_init__(self) -> None:
        self._set(estimands=tuple(self.estimands))
        if not self.estimands or not all(isinstance(entry, Estimand) for entry in self.estimands):
            action = "Give estimands from stratal.estimands, or strings such as 'f1:match'."
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
    def numeric_columns(self) -> tuple[str, ...]:
        """The numeric columns that are needed."""
        return tuple(dict.fromkeys(name for entry in self.estimands for name in entry.numeric_columns))

    @property
    def proxy_names(self) -> tuple[str, ...]:
        """The proxies that are named."""
        return tuple(dict.fromkeys(name for entry in self.estimands for name in entry.proxy_names))

    @property
    def reads_population(self) -> bool:
        """Whether one of them reads columns of the population that a sample does not have."""
        return any(entry.reads_population for entry in self.estimands)

    def parts_in(self, population: Population) -> tuple[Estimand, ...]:
        """Return the estimands."""
        return self.estimands

    def parts_of(self, sample: Sample) -> tuple[Estimand, ...]:
        """Return the estimands."""
        return self.estimands

    def label_columns(self, sample: Sample) -> tuple[str, ...]:
        """Return the columns of labels, if they are the same for all estimands."""
        first, *others = [entry.label_columns(sample) for entry in self.estimands]
        if all(columns == first for columns in others):
            return first
        return ()

    def refuse_options(self, request: Request, sample: Sample, *, grouped: bool = False) -> None:
        """Raise an error for options that would have no effect on one of them."""
        for entry in self.estimands:
            entry.refuse_options(request, sample, grouped=grouped)

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimates:
        """Return the estimates of all estimands; their labels contain the text of the estimand."""
        from stratal.estimation.estimates import Estimates

        rows: list[Estimate] = []
        remarks: list[str] = []
        for entry in self.estimands:
            estimate = entry.estimate(sample, labels, request)
            estimates: Sequence[Estimate]
            if isinstance(estimate, Estimates):
                remarks += estimate.remarks
                estimates = estimate
            else:
                estimates = [estimate]
            rows += [replace(row, label={"estimand": entry.text} | dict(row.label)) for row in estimates]
        return Estimates.from_rows(sample, rows, "estimands", remarks)

    def by(
        self, sample: Sample, labels: object, group: object, request: Request = DEFAULT_REQUEST
    ) -> Estimates:
        """Return the estimates of all estimands in each group."""
        from stratal.estimation.estimates import Estimates

        rows = []
        remarks: list[str] = []
        for entry in self.estimands:
            table = entry.by(sample, labels, group, request)
            rows += [replace(row, label={"estimand": entry.text} | dict(row.label)) for row in table]
            remarks += table.remarks
        return Estimates.from_rows(sample, rows, "estimands", remarks)
