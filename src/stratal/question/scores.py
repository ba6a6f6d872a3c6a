"""`Score`: a numeric column with predictions, and the quantity that it predicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from stratal.arrays import Record, field_values, number_of_text
from stratal.errors import InputError, same_name, suggest_names, type_text
from stratal.protocols import JsonDict

# What a score predicts: that the answer is right, the outcome itself, or only the order of outcomes.
ANSWER_IS_RIGHT = "right"
OUTCOME = "outcome"
ORDER = "order"

# Prefixes of scores of a class, and of ratings with their bounds.
_CLASS = "class:"
_RATING = "rating:"

# Separator of the bounds of a rating: a comma separates entries of a list, and a hyphen may be a minus sign.
_BOUNDS_SEPARATOR = ".."

# Largest value of a probability that is written in percent.
_MAX_PERCENTAGE = 100.0

# The allowed values of `predicts=`, for error messages.
MEANINGS = "right, class:NAME, rating:LOW..HIGH, outcome, order"

# Types of `predicts=`: a meaning of the only proxy, or of each column.
Predictions: TypeAlias = str | Mapping[str, str]


def class_probability(name: str) -> str:
    """Return the meaning of the probability of a class."""
    return f"{_CLASS}{name}"


def rating(low: float, high: float) -> str:
    """Return the meaning of a rating within bounds."""
    return f"{_RATING}{low:g}{_BOUNDS_SEPARATOR}{high:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Score(Record):
    """A numeric column with a prediction for each unit, and the quantity that it predicts.

    Parameters
    ----------
    name : str
        The column.
    predicts : str
        `right` (probability that the model's answer is right), `class:NAME` (probability of a class),
        `rating:LOW..HIGH` (a rating within bounds), `outcome` (the outcome itself) or `order` (larger values
        predict larger outcomes, but have no scale).
    declared : bool
        Whether the user declared the meaning; otherwise it was inferred.

    Raises
    ------
    InputError
        For another value of `predicts`, and bounds of a rating that do not increase.
    """

    name: str
    predicts: str
    declared: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.predicts, str):
            raise self._unknown_meaning_error()
        if self.predicts.startswith(_RATING):
            self._set(predicts=rating(*self._rating_bounds()))
        elif self.predicts not in (ANSWER_IS_RIGHT, OUTCOME, ORDER) and not self.of_class:
            raise self._unknown_meaning_error()

    def _unknown_meaning_error(self) -> InputError:
        what = f"the declared meaning of {self.name!r} is unknown"
        return InputError(what, given=repr(self.predicts), allowed=MEANINGS)

    def _rating_bounds(self) -> tuple[float, float]:
        """Return the bounds in the meaning of a rating."""
        low_text, _, high_text = self.predicts.removeprefix(_RATING).partition(_BOUNDS_SEPARATOR)
        low = number_of_text(low_text)
        high = number_of_text(high_text)
        if not -float("inf") < low < high < float("inf"):
            raise self._unknown_meaning_error()
        return low, high

    @property
    def of_class(self) -> str | None:
        """The class whose probability this is; None for other scores."""
        if self.predicts.startswith(_CLASS):
            return self.predicts.removeprefix(_CLASS) or None
        return None

    @property
    def is_order(self) -> bool:
        """Whether it predicts only the order of outcomes."""
        return self.predicts == ORDER

    @property
    def _as_order(self) -> str:
        """The keyword, and the option, that declare that it predicts only the order of outcomes."""
        return f"predicts={{{self.name!r}: {ORDER!r}}} (--predicts {self.name}={ORDER})"

    @property
    def is_rating(self) -> bool:
        """Whether it is a rating within stated bounds."""
        return self.predicts.startswith(_RATING)

    @property
    def is_probability(self) -> bool:
        """Whether it is the probability of a class or of a right answer."""
        return self.predicts == ANSWER_IS_RIGHT or self.of_class is not None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Bounds of the values of a rating or a probability; None for other scores."""
        if self.is_rating:
            return self._rating_bounds()
        if self.is_probability:
            return (0.0, 1.0)
        return None

    @property
    def meaning(self) -> str:
        """The predicted quantity, in words."""
        if self.is_rating:
            low, high = self._rating_bounds()
            return f"a rating on [{low:g}, {high:g}]"
        if self.of_class is not None:
            return f"the probability of class {self.of_class!r}"
        descriptions = {
            ANSWER_IS_RIGHT: "the probability that the answer is right",
            OUTCOME: "the label itself, as a number on the same scale",
            ORDER: "only an order",
        }
        return descriptions[self.predicts]

    def refuse_values_outside(self, low: float, high: float) -> None:
        """Refuse values from `low` to `high` that contradict the meaning.

        Raises
        ------
        InputError
            For a probability outside [0, 1] and a rating outside its bounds.
        """
        if self.bounds is None or (low >= self.bounds[0] and high <= self.bounds[1]):
            return
        action = (
            f"Correct predicts= (--predicts), or declare that the score only orders units: {self._as_order}."
        )
        if self.is_probability and low >= 0.0 and high <= _MAX_PERCENTAGE:
            action = (
                "If these are percentages, divide them by 100. Otherwise correct predicts= (--predicts), or "
                f"declare that the score only orders units: {self._as_order}."
            )
        raise InputError(
            f"the values of {self.name!r} are not consistent with {self.predicts!r}, {self.meaning}",
            given=f"{low:g} to {high:g}",
            allowed=f"{self.bounds[0]:g} to {self.bounds[1]:g}",
            action=action,
        )

    def refuse_unknown_class(self, classes: Iterable[str], class_source: str) -> None:
        """Refuse the probability of a class that is not one of `classes`.

        Parameters
        ----------
        classes : iterable of str
        class_source : str
            Where the classes occur, such as `the labels`, for the error.
        """
        class_names = set(classes)
        if self.of_class is None or self.of_class in class_names:
            return
        raise InputError(
            f"{self.name!r} predicts class {self.of_class!r}, which does not occur among {class_source}",
            given=f"{self.name}={self.predicts}",
            allowed=suggest_names(self.of_class, sorted(class_names)),
            action="Correct predicts= (--predicts), or declare that the score only orders units: "
            f"{self._as_order}.",
        )

    def to_dict(self) -> JsonDict:
        """Return a JSON-serializable dict."""
        return field_values(self)

    def to_dict_with_meaning(self) -> JsonDict:
        """Return a JSON-serializable dict with the meaning in words."""
        return {**self.to_dict(), "meaning": self.meaning}


def declared_scores(predicts: Predictions | None, names: Iterable[str]) -> dict[str, Score]:
    """Return the scores that `predicts=` declares, by column.

    Parameters
    ----------
    predicts : str or mapping of column to str, optional
        A text is the meaning of the only proxy.
    names : iterable of str
        The proxies.

    Raises
    ------
    InputError
        For a column that is not a proxy, and for a text if there are several proxies.
    """
    if predicts is None:
        return {}
    columns = list(names)
    if isinstance(predicts, str):
        if len(columns) != 1:
            raise InputError(
                "predicts= can be a single string only if there is one proxy",
                given=f"{predicts!r} and {len(columns)} proxies",
                allowed="a mapping from each column to what it predicts",
                action="Name the columns: predicts={'COLUMN': 'right'} (--predicts COLUMN=right).",
            )
        predicts = {columns[0]: predicts}
    if not isinstance(predicts, Mapping):
        allowed = "a string, or a mapping from each column to what it predicts"
        raise InputError("predicts= cannot be read", given=type_text(predicts), allowed=allowed)
    scores = {}
    for name, text in predicts.items():
        column = same_name(name, columns)
        if column is None:
            raise InputError(
                f"predicts= (--predicts) names {name!r}, which is not a proxy",
                given=f"{name}={text}",
                allowed=suggest_names(str(name), columns) if columns else "no column is a proxy",
                action="Also name the column as a proxy: proxy= (--proxy).",
            )
        scores[column] = Score(name=column, predicts=text, declared=True)
    return scores


def require_same_meaning(stored: Score | None, score: Score) -> None:
    """Refuse a score that contradicts the `stored` one, if that was declared."""
    if stored is None or not stored.declared or stored.predicts == score.predicts:
        return
    raise InputError(
        f"predicts= (--predicts) contradicts what was declared about {score.name!r} earlier",
        given=f"{score.name}={score.predicts}, {score.meaning}",
        allowed=f"{stored.name}={stored.predicts}, {stored.meaning}",
        action="Omit the option, or draw again with it.",
    )
