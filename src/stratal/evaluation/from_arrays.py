"""`estimate_from`: the estimate from a table with labels, or from labels and predictions in arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, finite_vector, same_length, without_none
from stratal.designs.sample import Sample
from stratal.errors import InputError, keywords_from
from stratal.estimation.entry_points import estimate
from stratal.estimation.estimand import EstimandLike, Request
from stratal.evaluation.evaluation import evaluate
from stratal.evaluation.request import EvaluationRequest


@keywords_from(Request, EvaluationRequest)
def estimate_from(
    labels: object,
    proxy_labelled: object = None,
    proxy_unlabelled: object = None,
    *,
    stratum_labelled: object = None,
    stratum_unlabelled: object = None,
    groups_labelled: Mapping[str, Any] | None = None,
    groups_unlabelled: Mapping[str, Any] | None = None,
    by: object = None,
    judge: str | Sequence[str] | None = None,
    estimand: EstimandLike = None,
    predicts: str | None = None,
    **options: Any,
) -> Any:
    """Estimate from a table with labels in some rows, or from labels and predictions in arrays.

    If only a table is given, the result is that of `stratal.evaluate(table)`, which recognises the roles of
    its columns. Labels in arrays must belong to a simple random sample, within each stratum if strata are
    given. For a sample that `stratal.plan` drew, use `stratal.estimate`.

    Parameters
    ----------
    labels : table, path, or array-like (n,)
        A table or its file, without further arrays; or numbers, words such as pass and fail, or classes with
        `predicted=`.
    proxy_labelled : array-like (n,)
        Predictions of the labelled units' outcomes.
    proxy_unlabelled : array-like (m,)
        Predictions of the outcomes of the unlabelled units.
    stratum_labelled, stratum_unlabelled : array-like (n,), (m,), optional
        Strata of the units in both arrays.
    groups_labelled, groups_unlabelled : mapping of name to array-like (n,), (m,), optional
        Further columns for both arrays: groups for `by=`, a judge's verdicts for `judge=`, the model's
        answers for `predicted=`.
    by, judge, estimand, predicts, and all other options
        See `stratal.estimate`. The θ of PPI is the mean of the `superpopulation`; the mean over the given
        units, `population`, has a narrower interval.

    Returns
    -------
    Estimate, or Estimates for several estimands or groups; for a table, an Evaluation

    Raises
    ------
    InputError
        For arrays of different lengths, values that are not numbers, columns for only one of the two sets of
        units, and strata without a labelled unit.

    Notes
    -----
    Angelopoulos, Duchi & Zrnic (2023), PPI++; with strata Fisch et al. (2024).

    Examples
    --------
    >>> result = estimate_from([1, 0, 1, 1], [0.9, 0.4, 0.8, 0.7], [0.9, 0.8, 0.3, 0.6, 0.7, 0.2])
    >>> result.n, result.population_size
    (4, 10)
    """
    array_options = {
        "stratum_labelled": stratum_labelled,
        "stratum_unlabelled": stratum_unlabelled,
        "groups_labelled": groups_labelled,
        "groups_unlabelled": groups_unlabelled,
    }
    stated_options = options | without_none(array_options)
    if proxy_labelled is None and proxy_unlabelled is None:
        _refuse_options(stated_options.keys() - set(EvaluationRequest.__dataclass_fields__), "a table")
        options |= without_none({"by": by, "estimand": estimand, "predicts": predicts})
        return evaluate(labels, judge=judge or (), **options)
    _refuse_options(stated_options.keys() - {*array_options, *Request.__annotations__}, "arrays")
    if (stratum_labelled is None) != (stratum_unlabelled is None):
        raise InputError(
            "strata are given for only one of the two sets of units",
            action="Give stratum_labelled= and stratum_unlabelled=.",
        )
    groups = dict(groups_labelled or {})
    unlabelled_groups = dict(groups_unlabelled or {})
    if set(groups) != set(unlabelled_groups):
        stated_columns = f"{', '.join(groups) or 'none'}; {', '.join(unlabelled_groups) or 'none'}"
        action = "Give each column in groups_labelled= and in groups_unlabelled=."
        raise InputError(
            "groups are given for only one of the two sets of units", given=stated_columns, action=action
        )
    labelled_rows = {"label": np.asarray(labels, dtype=object)}
    labelled_rows |= _columns_of_units("proxy_labelled", proxy_labelled, groups, stratum_labelled)
    unlabelled_rows = _columns_of_units(
        "proxy_unlabelled", proxy_unlabelled, unlabelled_groups, stratum_unlabelled
    )
    same_length(**labelled_rows)
    same_length(**unlabelled_rows)
    # Both are rows of one table, so that a labelled unit with a missing label stays in the population.
    unlabelled_rows["label"] = np.full(len(unlabelled_rows["proxy"]), None, dtype=object)
    table = {name: np.concatenate([rows, unlabelled_rows[name]]) for name, rows in labelled_rows.items()}
    predicted = options.get("predicted")
    if not isinstance(predicted, str) or predicted not in groups:
        predicted = None
    sample, joined = Sample.from_labelled(
        table,
        value="label",
        stratum=None if stratum_labelled is None else "stratum",
        proxy="proxy",
        groups=tuple(groups),
        predicted=predicted,
        predicts=predicts,
    )
    return estimate(sample, joined, estimand=estimand, by=by, judge=judge, **options)


def _columns_of_units(
    proxy_keyword: str, proxy: object, groups: Mapping[str, Any], stratum: object
) -> dict[str, AnyArray]:
    """Return the columns of units by name; `proxy_keyword` names the proxy in errors."""
    columns: dict[str, AnyArray] = {"proxy": finite_vector(proxy_keyword, proxy)}
    columns |= {name: np.asarray(values) for name, values in groups.items()}
    if stratum is not None:
        columns["stratum"] = np.asarray(stratum)
    return columns


def _refuse_options(unused: Iterable[str], form: str) -> None:
    """Raise an error for the first option that has no effect with this form of the data."""
    for name in unused:
        raise InputError(f"{name}= has no effect with {form}", action="Leave it out.")
