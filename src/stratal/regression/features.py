"""Features of a regression: numeric columns, or the columns of a formula."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError, optional_import
from stratal.regression.losses import feature_matrix, with_intercept

# Name of the coefficient of the constant feature.
INTERCEPT = "intercept"


class Formula:
    """The right-hand side of a formula, with categories and transformations that are learned once from data.

    Learn them from the population, or from units with every category, so that the labelled units and the
    population have the same features.

    Parameters
    ----------
    formula : str
        The right-hand side, without `~`. It has an intercept, except with `0 +` or `- 1`.
    data : mapping of name to array-like (N,), or a dataframe
        Determines the categories and transformations.

    Raises
    ------
    InputError
        For an unknown column, for missing values, and for a category that `data` does not contain.
    MissingExtraError
        If formulaic is not installed.

    Examples
    --------
    >>> population = {"length": [1.0, 2.0, 3.0], "language": ["de", "en", "en"]}
    >>> formula = Formula("length + language", population)
    >>> formula.names
    ('Intercept', 'length', 'language[T.en]')
    >>> formula.features({"length": [5.0], "language": ["de"]})
    array([[1., 5., 0.]])
    """

    def __init__(self, formula: str, data: object) -> None:
        if "~" in formula:
            raise InputError(
                "a formula must contain only its right-hand side", action="Leave '~' and the outcome out."
            )
        self.formula = formula
        make_matrix = partial(_formulaic().model_matrix, formula, na_action="raise")
        # The model specification stores the categories and the state of the transformations.
        self._spec = self._matrix(make_matrix, data).model_spec
        self.names: tuple[str, ...] = tuple(str(name) for name in self._spec.column_names)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns in the formula."""
        return tuple(sorted(str(name) for name in self._spec.required_variables))

    @staticmethod
    def names_in(formula: str) -> frozenset[str]:
        """Return the names of columns and functions in a formula."""
        quoted_names = re.findall(r"`([^`]+)`", formula)
        without_quoted = re.sub(r"`[^`]+`", " ", formula)
        return frozenset([*quoted_names, *re.findall(r"[^\W\d]\w*", without_quoted)])

    def features(self, data: Mapping[str, object]) -> FloatArray:
        """Return the feature matrix (n, d) of other units."""
        units = _frame({name: data[name] for name in self.columns})
        for factor, (_, state) in self._spec.encoder_state.items():
            known_levels = {str(value) for value in state.get("categories", ())}
            # A factor without categories is numeric.
            if not known_levels:
                continue
            unknown = sorted({str(value) for value in units.get(str(factor), ())} - known_levels)
            if unknown:
                raise InputError(
                    f"{str(factor)!r} contains a category that did not occur when the formula was fixed",
                    given=repr(unknown[0]),
                    action="Fix the formula on the whole population.",
                )
        matrix = self._matrix(self._spec.get_model_matrix, units)
        return feature_matrix("features", np.asarray(matrix))

    def _matrix(self, make_matrix: Callable[..., Any], data: object) -> Any:
        """Return the matrix (n, d) that `make_matrix` of formulaic returns; translate its errors."""
        errors = _formulaic().errors
        units = _frame(data)
        try:
            return make_matrix(units)
        except (errors.FactorEvaluationError, errors.FormulaSyntaxError, ValueError) as error:
            raise InputError(
                f"the formula {self.formula!r} cannot be read: {str(error).splitlines()[0]}",
                allowed=", ".join(map(repr, list(units.columns)[:20])),
                action="Name existing columns; drop or fill missing values first.",
            ) from None


def _formulaic() -> Any:
    """Return the module formulaic."""
    with optional_import("formulaic", extra="formula"):
        import formulaic
        import formulaic.errors
    return formulaic


def _frame(data: object) -> Any:
    """Return data as a dataframe of pandas, which formulaic requires."""
    import pandas as pd

    if isinstance(data, Mapping):
        return pd.DataFrame({name: np.asarray(values) for name, values in data.items()})
    if isinstance(data, pd.DataFrame):
        return data
    return pd.DataFrame(data)


@dataclass(frozen=True, slots=True)
class NumericFeatures:
    """Numeric columns as features, with or without an intercept; `Formula` also supports categories.

    Without columns, as for a quantile, there are no `names`, and `features` must not be called.
    """

    columns: tuple[str, ...] = ()
    intercept: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients."""
        if self.intercept and self.columns:
            return (INTERCEPT, *self.columns)
        return self.columns

    def features(self, data: Mapping[str, object]) -> FloatArray:
        """Return the feature matrix (n, d) of units."""
        columns = [np.asarray(data[name], dtype=np.float64) for name in self.columns]
        matrix = np.stack(columns, axis=1)
        if self.intercept:
            return with_intercept(matrix)
        return matrix


# What determines the features of a regression.
Regressors = NumericFeatures | Formula
