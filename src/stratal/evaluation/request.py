"""`EvaluationRequest`: the options of one evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stratal.arrays import field_values, number_of_text
from stratal.designs.sample import require_column_name
from stratal.errors import InputError, check_choice
from stratal.evaluation.margins import StatedMargins
from stratal.labels.annotator_columns import join_column_names
from stratal.labels.labels import LABEL_COLUMN
from stratal.names import split_names
from stratal.protocols import JsonDict, JsonMapping, Keywords
from stratal.question.chosen_rows import RowSelection
from stratal.question.code_numbers import is_missing_code
from stratal.question.column_words import NO_COLUMN
from stratal.question.question import NOT_COMPARED
from stratal.question.roles import DeclaredRoles
from stratal.question.vocabulary import metric_name
from stratal.tables.list_columns import ListRule

# What a failed answer counts as: the application of the model returned an error or nothing.
MISSING = "missing"
WRONG = "wrong"

# Metrics of `metric=` that are not metrics of a class.
BRIER = "brier"
CONFUSION = "confusion"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EvaluationRequest(DeclaredRoles):
    """The options of one call of `stratal.evaluate`, which documents them.

    Examples
    --------
    >>> EvaluationRequest(compare=("a", "b")).label_column
    'a'
    """

    # The names of the columns of several annotators are joined to one text.
    value: str | None = None
    id: str | None = None
    positive: str | None = None
    mapping: Mapping[Any, float | str | None] | None = None
    combine: str = "mean"
    predicts: str | Mapping[str, str] | None = None
    estimand: Any = None
    estimator: str = "auto"
    post_stratify: str | None = None
    margins: str | JsonMapping | StatedMargins | None = None
    cross_fit: int | None = None
    calibration: Any = None
    features: tuple[str, ...] = ()
    population: Any = None
    target: str | None = None
    chosen: str | None = None
    proxy: tuple[str, ...] = ()
    sizes: Any = None
    cluster: str | None = None
    weight: str | None = None
    population_size: int | None = None
    tags: str | None = None
    lists: str | None = None
    outcome: str | None = None
    bounds: tuple[float, float] | None = None
    limits: tuple[float, float] | None = None
    confidence_level: float = 0.95
    # "Look" is the standard term for an interim analysis of a group sequential design.
    look: int | None = None
    interval: str = "auto"
    metric: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    compare: tuple[str, ...] = ()
    model: str | None = None
    by: str | None = None
    groups: tuple[str, ...] = ()
    failed_answers: str | None = None
    require: str | Sequence[str] | None = None
    against: Any = None
    answers: str | None = None
    new_labels: Any = None
    same_rows: bool = False

    def __post_init__(self) -> None:
        self._freeze()
        self._set(value=join_column_names(self.value))
        sequence_fields = ("features", "metric", "classes", "compare", "judge", "proxy", "groups")
        for name, names in field_values(self, sequence_fields).items():
            self._set(**{name: (names,) if isinstance(names, str) else tuple(names or ())})
        if self.by is not None:
            require_column_name(self.by, "by")
        # Names of metrics contain no comma, so that one text may list several.
        metrics = (name for text in self.metric for name in split_names(text))
        self._set(metric=tuple(map(metric_name, metrics)))
        if self.margins is not None:
            self._set(margins=StatedMargins.of(self.margins))
            if self.post_stratify is not None:
                raise InputError(
                    "two options state how rows are weighted",
                    given="post_stratify= (--post-stratify) and margins= (--margins)",
                    action="Leave one of them out; margins= accepts several columns.",
                )
        if self.chosen is not None:
            RowSelection.parse(self.chosen)
        if self.lists is not None:
            ListRule.parse(self.lists)
        check_choice("failed answers", self.failed_answers or MISSING, (MISSING, WRONG))
        if self.estimand is not None and self.judge and not self.states_no_judge:
            raise InputError(
                "a judge can be compared with the labels only for a mean",
                given="judge= (--judge) and estimand= (--estimand)",
                action="Leave one of them out.",
            )
        if self.against is None and (self.answers is not None or self.new_labels is not None):
            raise InputError(
                "answers= and new_labels= (--answers, --new-labels) describe the answers of a new version",
                allowed="with against= (--against)",
            )

    @property
    def table_options(self) -> JsonDict:
        """The options that describe a table with labels, as far as they are given."""
        names = (
            "chosen",
            "proxy",
            "groups",
            "sizes",
            "cluster",
            "weight",
            "population_size",
            "tags",
            "lists",
        )
        values = self.keywords(*names)
        return {name: value for name, value in values.items() if value not in (None, ())}

    @property
    def states_no_judge(self) -> bool:
        """Whether it is stated that no column is a judge."""
        return self.judge == (NO_COLUMN,)

    @property
    def states_no_proxy(self) -> bool:
        """Whether it is stated that no column is a proxy."""
        return self.proxy == (NO_COLUMN,)

    @property
    def requirements(self) -> tuple[str, ...]:
        """The requirements as one text each, such as `value>=.9`."""
        if self.require is None:
            return ()
        texts = self.require.split(";") if isinstance(self.require, str) else self.require
        return tuple(texts)

    @property
    def estimand_options(self) -> JsonDict:
        """The keywords of `stratal.estimate` that determine the estimand."""
        return self.keywords("estimand", "combine", "predicted")

    @property
    def estimator_options(self) -> JsonDict:
        """The keywords of `stratal.estimate` that determine the estimator."""
        options = self.keywords("estimator", "outcome", "cross_fit", "calibration")
        return options | self.target_option | {"features": self.features or None}

    @property
    def target_option(self) -> JsonDict:
        """The keyword `target` of `stratal.estimate`, if it is stated."""
        if self.target is None:
            return {}
        return {"target": self.target}

    @property
    def interval_options(self) -> Keywords:
        """Level and method of the interval."""
        return self.keywords("confidence_level", "interval")

    @property
    def answer_column(self) -> str | None:
        """The requested column of answers, with which labels are compared; None without one."""
        if isinstance(self.predicted, str) and self.predicted != NOT_COMPARED:
            return self.predicted
        return None

    @property
    def states_design(self) -> bool:
        """Whether the request describes the population from which the rows of a table were drawn."""
        descriptions = (self.sizes, self.weight, self.population_size, self.population)
        return any(value is not None for value in descriptions)

    @property
    def has_words_as_labels(self) -> bool:
        """Whether it is stated that labels are words: classes, or one that counts as 1 and others as 0."""
        return self.positive is not None or self._compares_answers

    @property
    def counts_as_number(self) -> bool:
        """Whether the request declares the numbers that labels count as.

        A code of missing labels that is mapped to itself is a label, and may be a class.
        """
        numbers = [
            value
            for text, value in (self.mapping or {}).items()
            if isinstance(value, float | int) and not _is_declared_code(str(text), value)
        ]
        return self.positive is not None or bool(numbers)

    @property
    def label_column(self) -> str:
        """The column of the labels; that of the first model if the request only compares models."""
        needs_labels = self.metric or self._compares_answers or self.value not in (None, LABEL_COLUMN)
        if self.compare and self.model is None and not needs_labels:
            return self.compare[0]
        return self.value_or_default

    @property
    def value_or_default(self) -> str:
        """The stated column of labels, or the default."""
        return self.value or LABEL_COLUMN

    @property
    def _compares_answers(self) -> bool:
        """Whether the request states that labels are compared with answers."""
        return self.predicted not in (None, False, NOT_COMPARED)

    def keywords(self, *names: str) -> Keywords:
        """Return some of the fields by name."""
        return field_values(self, names)


def _is_declared_code(text: str, value: float) -> bool:
    """Return whether a text is a code of missing labels and is mapped to its own number."""
    return is_missing_code(text) and number_of_text(text) == value
