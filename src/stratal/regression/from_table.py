"""Samples for a regression from a table, or from arrays, with an outcome in some of the rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stratal.arrays import same_length
from stratal.designs.external_columns import ids_of
from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.labels.labels import Labels
from stratal.population.population import Population
from stratal.protocols import Keywords
from stratal.question.recognised_roles import StatedRoles
from stratal.question.recognition import recognise
from stratal.regression.losses import feature_matrix
from stratal.tables.column_facts import facts_of_table
from stratal.tables.row_groups import candidate_groups, detect_clusters, with_missing_groups
from stratal.tables.small_table import SmallTable, is_missing
from stratal.tables.verdict_columns import usable_proxies, with_verdict_numbers

# A sum of columns needs no formula parser (extra "formula").
_SUM_OF_COLUMNS = re.compile(r"\s*[^\W\d]\w*(\s*\+\s*[^\W\d]\w*)*\s*")


def sample_of_formula(
    formula: str, table: Any, proxy: str | None, names: frozenset[str]
) -> tuple[Sample, Labels, dict[str, Any]]:
    """Return sample, labels and the options `features` or `formula` of a formula such as `y ~ x1 + x2`.

    Rows with an outcome are assumed to be a simple random sample of all rows; or a sample of clusters, if all
    rows of some groups have an outcome. `names` are the names in the formula.
    """
    outcome, tilde, right_side = formula.partition("~")
    if not tilde or not outcome.strip() or not right_side.strip():
        raise InputError("this is not a formula", given=repr(formula), allowed="such as 'y ~ x1 + x2'")
    rows = SmallTable.of(table, "the table")
    outcome = rows.find(outcome.strip().strip("`")) or outcome.strip()
    # Raises an error for an unknown column.
    rows.values(outcome)
    features = [name for name in rows.columns if name in names and name != outcome]
    rows = rows.with_shares(features)
    rows, proxy, notes = _with_numeric_proxy(rows, outcome, proxy, features)
    options: Keywords = {"formula": right_side.strip()}
    if _SUM_OF_COLUMNS.fullmatch(right_side):
        terms = tuple(term.strip() for term in right_side.split("+"))
        for name in terms:
            # Raises an error for an unknown column.
            rows.values(name)
        if all(rows.is_numeric(name) for name in terms):
            options = {"features": terms}
    is_labelled = np.array([not is_missing(entry) for entry in rows.values(outcome)])
    # Groups whose rows all have an outcome, or none, may have been drawn as clusters.
    groups = candidate_groups(rows, facts_of_table(rows), is_labelled, {outcome, proxy, *features})
    row_groups = detect_clusters(rows, groups)
    cluster = None
    if row_groups.clusters is not None:
        cluster = row_groups.clusters.column
        rows = with_missing_groups(rows, cluster)
    sample, labels = _sample_of_rows(rows, outcome, proxy, features, cluster)
    return sample, replace(labels, notes=(*row_groups.warnings, *labels.notes, *notes)), options


def _with_numeric_proxy(
    rows: SmallTable, outcome: str, stated_proxy: str | None, features: Sequence[str]
) -> tuple[SmallTable, str | None, tuple[str, ...]]:
    """Return the table with a numeric proxy, the name of this proxy, and notes on columns that are not used.

    The proxy is the stated or a recognised column. If it contains verdicts, such as yes and no, the returned
    table has a column with their numbers.
    """
    # Facts of each column: its type, range and distinct entries.
    facts = facts_of_table(rows)
    proxy = stated_proxy
    if proxy is None:
        roles = StatedRoles(value=outcome, is_compared=False, others=tuple(features))
        proxy = recognise(facts, roles).proxy
    if proxy is None:
        unused_verdicts = [
            column.name
            for column in facts
            if column.verdicts is not None
            and not column.is_number
            and column.name not in (outcome, *features)
        ]
        note = "{0!r} is not used; if it predicts the outcome: proxy={0!r}"
        return rows, None, tuple(note.format(name) for name in unused_verdicts)
    is_labelled = np.array([not is_missing(entry) for entry in rows.values(outcome)])
    named_by_user = () if stated_proxy is None else (stated_proxy,)
    usable, notes = usable_proxies(rows, is_labelled, (proxy,), named_by_user=named_by_user)
    if not usable:
        return rows, None, notes
    rows, numeric_names = with_verdict_numbers(rows, usable)
    return rows, numeric_names.get(proxy, proxy), notes


def sample_of_arrays(arrays: Sequence[Any]) -> tuple[Sample, Labels, dict[str, Any]]:
    """Return sample, labels and the option `features` of arrays (X, y, y_proxy) or (X, y).

    X is (n, d), y (n,) is NaN for unlabelled rows, and y_proxy is (n,).
    """
    if len(arrays) not in (2, 3):
        raise InputError("wrong number of arrays", given=len(arrays), allowed="(X, y) or (X, y, y_proxy)")
    matrix = feature_matrix("X", arrays[0])
    default_names = [f"x{k + 1}" for k in range(matrix.shape[1])]
    # Those of a dataframe.
    names = tuple(map(str, getattr(arrays[0], "columns", default_names)))
    outcome = _free_name("outcome", names)
    columns = {outcome: np.asarray(arrays[1], dtype=object)}
    columns |= dict(zip(names, matrix.T, strict=True))
    proxy = None
    if len(arrays) == 3:
        proxy = _free_name("proxy", names)
        columns[proxy] = np.asarray(arrays[2])
    same_length(**columns)
    rows = SmallTable.of(columns, "the arrays")
    sample, labels = _sample_of_rows(rows, outcome, proxy, names, None)
    return sample, labels, {"features": names}


def _free_name(name: str, names: Sequence[str]) -> str:
    """Return the name, with underscores appended until it is not in `names`."""
    while name in names:
        name = f"{name}_"
    return name


def _sample_of_rows(
    rows: SmallTable, outcome: str, proxy: str | None, features: Sequence[str], cluster: str | None
) -> tuple[Sample, Labels]:
    """Return the rows (or clusters) with an outcome as a sample, whose population are all rows."""
    is_partial = any(map(is_missing, rows.values(outcome)))
    has_proxy = proxy is not None and is_partial
    categories = {name: rows.texts(name) for name in features if not rows.is_numeric(name)}
    sample, labels = Sample.from_labelled(
        rows,
        value=outcome,
        proxy=proxy if has_proxy else None,
        groups=tuple(categories),
        cluster=cluster,
        # The table is the population, also if every row has an outcome.
        has_all_units=True,
    )
    numeric_features: Mapping[str, Any] = {
        name: rows.numbers(name) for name in features if rows.is_numeric(name) and name != proxy
    }
    proxies = None
    if has_proxy and proxy is not None:
        proxies = {proxy: rows.numbers(proxy)}
    groups = categories
    if cluster is not None:
        groups = categories | {cluster: rows.texts(cluster)}
    population = Population.from_arrays(
        proxy=proxies, features=numeric_features, groups=groups, ids=ids_of(rows, None)
    )
    return replace(sample, population=population), labels
