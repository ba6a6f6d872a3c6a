"""A formula instead of a matrix: names and categories become columns, the same for labels and population.

The formula is read by `formulaic` (extra "formula"), in the notation of Wilkinson & Rogers (1973): `1 +
length + C(language)`, `length:language`, `log(length)`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError, MissingExtraError
from stratal.regression.unlabelled import feature_matrix


class Formula:
    """A right-hand side whose categories and transformations are fixed once, then applied to any units.

    Fix it on the population (or a part of it with every category), so that labels and population get the
    same columns.

    Parameters
    ----------
    formula : str
        The right-hand side, without `~`. An intercept is included unless `0 +` or `- 1` says otherwise.
    data : mapping of name to array-like (N,), or a dataframe
        Fixes categories and transformations.

    Raises
    ------
    InputError
        For a column that does not exist, a category not seen when the formula was fixed, missing values.
    MissingExtraError
        Without formulaic.

    Examples
    --------
    >>> population = {"length": [1.0, 2.0, 3.0], "language": ["de", "en", "en"]}
    >>> formula = Formula("length + language", population)
    >>> formula.names
    ('Intercept', 'length', 'language[T.en]')
    >>> formula.features({"length": [5.0], "language": ["de"]})
    array([[1., 5., 0.]])
    """

    def __init__(self, formula: str, data: Any) -> None:
        if "~" in formula:
            raise InputError(
                "give the right-hand side alone", given=formula, action="Leave '~' and the outcome out."
            )
        self.formula = formula
        self._spec = self._matrix(_formulaic().model_matrix, formula, data).model_spec
        self.names: tuple[str, ...] = tuple(str(name) for name in self._spec.column_names)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that it reads."""
        return tuple(sorted(str(name) for name in self._spec.required_variables))

    @staticmethod
    def words(formula: str) -> frozenset[str]:
        """Return the names in a formula, of columns and functions alike.

        Examples
        --------
        >>> sorted(Formula.words("log(length) + `my column`"))
        ['length', 'log', 'my column']
        """
        quoted = re.findall(r"`([^`]+)`", formula)
        return frozenset([*quoted, *re.findall(r"[^\W\d]\w*", re.sub(r"`[^`]+`", " ", formula))])

    def features(self, data: Any) -> FloatArray:
        """Return the feature matrix (n, d) of other units."""
        frame = _frame(data)
        for name, values in self._levels().items():
            if name in frame:
                unknown = sorted({str(value) for value in frame[name]} - values)
                if unknown:
                    raise InputError(
                        f"{name!r} holds a category that the formula was not fixed on",
                        given=repr(unknown[0]),
                        allowed=", ".join(map(repr, sorted(values)[:10])),
                        action="Fix the formula on the whole population.",
                    )
        return feature_matrix("features", np.asarray(self._matrix(self._spec.get_model_matrix, None, frame)))

    def _levels(self) -> dict[str, set[str]]:
        """Return the categories that were seen, by factor name."""
        levels: dict[str, set[str]] = {}
        for factor, (_, state) in self._spec.encoder_state.items():
            if "categories" in state:
                levels[str(factor)] = {str(value) for value in state["categories"]}
        return levels

    def _matrix(self, make: Any, formula: str | None, data: Any) -> Any:
        errors = _formulaic().errors
        frame = _frame(data)
        try:
            return make(frame) if formula is None else make(formula, frame, na_action="raise")
        except (errors.FactorEvaluationError, errors.FormulaSyntaxError) as error:
            raise InputError(
                f"the formula {self.formula!r} cannot be read: {str(error).splitlines()[0]}",
                allowed=", ".join(map(repr, list(frame.columns)[:20])),
            ) from None
        except ValueError as error:
            raise InputError(
                f"the formula {self.formula!r} cannot be evaluated: {str(error).splitlines()[0]}",
                action="Drop or fill missing values first.",
            ) from None


def _formulaic() -> Any:
    try:
        import formulaic
        import formulaic.errors
    except ImportError:
        raise MissingExtraError("formulaic", extra="formula") from None
    return formulaic


def _frame(data: Any) -> Any:
    import pandas as pd

    if isinstance(data, Mapping):
        return pd.DataFrame({name: np.asarray(values) for name, values in data.items()})
    return data if isinstance(data, pd.DataFrame) else pd.DataFrame(data)
