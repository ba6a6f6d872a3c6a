"""Earlier models' results as they are written: one column for each model, or one row for each result."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, IntArray
from stratal.errors import InputError
from stratal.proxy.history import History, fit_history
from stratal.tables.engine import reader_of
from stratal.tables.frames import frame_table
from stratal.tables.logs.log import ID_NAMES
from stratal.tables.readers import open_table
from stratal.tables.rows import Rows
from stratal.tables.source import EveryColumn, Table, readable

MODEL = "model"
"""The column that makes a table of past results a long one: a row for each result."""

RIGHT = ("1", "1.0", "true", "t", "yes", "pass", "passed", "correct", "right")
WRONG = ("0", "0.0", "false", "f", "no", "fail", "failed", "incorrect", "wrong")
NOTHING = ("", "na", "n/a", "nan", "null", "none")

_ROWS = 8_192
"""Items that are read at once."""


def as_history(given: Any, ids: Any = None) -> History:
    """Return a history from itself, from the file it was written to, or from past results, by fitting it.

    Parameters
    ----------
    given : History, path, dataframe, mapping or array (N, M)
        A file or dataframe has a column of ids (`id`, `item_id`) and a column for each model; or, where one
        is called `model`, a row for each result in one further column.
    ids : (N,), optional
        Of arrays' items.

    Raises
    ------
    InputError
        For a table without ids, a duplicated item or result, and what is neither right nor wrong.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rng = np.random.default_rng(0)
    >>> columns = {name: rng.random(30) < 0.6 for name in "abcde"}
    >>> as_history(pa.table({"id": [f"q{at}" for at in range(30)], **columns})).models
    ('a', 'b', 'c', 'd', 'e')
    """
    if isinstance(given, History):
        return given
    if isinstance(given, str | os.PathLike):
        saved = History.read(os.fspath(given))
        return saved if saved is not None else _of_table(open_table(given))
    if isinstance(given, Mapping | np.ndarray | list):
        return fit_history(given, ids=ids)
    return _of_table(frame_table(given))


def _of_table(table: Table) -> History:
    lowered = {name.lower(): name for name in table.names}
    own = next((lowered[name] for name in ID_NAMES if name in lowered), None)
    others = [name for name in table.names if name != own]
    if own is None or len(others) < 2:
        raise InputError(
            f"{table.label}: past results lack a column of ids, or models",
            given=", ".join(table.names[:5]),
            allowed=f"a column {' or '.join(ID_NAMES[:2])} and one for each model, or {MODEL} and one result",
        )
    rows = table.take(EveryColumn(table.names))
    if not isinstance(rows, Rows):
        raise InputError(
            "past results are read from a file or a dataframe",
            given=table.label,
            action="Write them to a Parquet file, or fit them once: stratal.proxy.fit_history(…).write(…).",
        )
    model = lowered.get(MODEL)
    if model is None:
        return _of_wide(rows, own, others)
    results = [name for name in others if name != model]
    if len(results) != 1:
        given, allowed = ", ".join(results[:5]) or "none", "one: 1 or 0, true or false, pass or fail"
        raise InputError(f"{rows.label}: which column is the result?", given=given, allowed=allowed)
    return _of_long(rows, own, model, results[0])


def _of_wide(rows: Rows, own: str, models: list[str]) -> History:
    expressions = [_text(rows, own), *(_result(rows, name) for name in models)]
    ids: list[AnyArray] = []
    right: list[IntArray] = []
    for batch in _batches(rows, expressions):
        ids.append(np.array(batch.column(0).to_pylist(), dtype=object))
        right.append(np.column_stack([column.to_numpy() for column in batch.columns[1:]]).astype(np.int8))
    found = np.vstack(right) if right else np.empty((0, len(models)), np.int8)
    strange = np.flatnonzero((found == 2).any(axis=0))
    if len(strange):
        raise _neither(rows, models[int(strange[0])])
    items = _checked(rows, np.concatenate(ids) if ids else np.empty(0, object))
    return fit_history(found, ids=items, names=models)


def _of_long(rows: Rows, own: str, model: str, result: str) -> History:
    seen: tuple[dict[Any, int], dict[Any, int]] = ({}, {})
    cells: list[IntArray] = []
    expressions = [_text(rows, own), _text(rows, model), _result(rows, result)]
    for batch in _batches(rows, expressions):
        codes = []
        for known, column in zip(seen, batch.columns[:2], strict=True):
            encoded = column.dictionary_encode(null_encoding="encode")
            names = [known.setdefault(name, len(known)) for name in encoded.dictionary.to_pylist()]
            codes.append(np.array(names, np.int64)[encoded.indices.to_numpy()])
        cells.append(np.column_stack([*codes, batch.column(2).to_numpy()]))
    whole = np.vstack(cells) if cells else np.empty((0, 3), np.int64)
    if np.any(whole[:, 2] == 2):
        raise _neither(rows, result)
    places = whole[:, 0] * max(len(seen[1]), 1) + whole[:, 1]
    if len(np.unique(places)) < len(places):
        raise InputError(f"{rows.label}: a model has two results for one item", allowed="one at most")
    right = np.full((len(seen[0]), len(seen[1])), -1, np.int8)
    right[whole[:, 0], whole[:, 1]] = whole[:, 2]
    if None in seen[1]:
        raise InputError(f"{rows.label}: a result has no model", allowed=f"a name in the column {model!r}")
    items = _checked(rows, np.array(list(seen[0]), dtype=object))
    return fit_history(right, ids=items, names=list(seen[1]))


def _text(rows: Rows, name: str) -> str:
    return f"NULLIF(CAST({rows.columns[name]} AS VARCHAR), '')"


def _result(rows: Rows, name: str) -> str:
    """Return the SQL of a result: 1 right, 0 wrong, −1 where there is none, 2 for anything else."""
    text = f"lower(trim(CAST({rows.columns[name]} AS VARCHAR)))"
    listed = {value: ", ".join(f"'{word}'" for word in words) for value, words in _WORDS.items()}
    cases = " ".join(f"WHEN {text} IN ({words}) THEN {value}" for value, words in listed.items())
    return f"CAST(CASE WHEN {rows.columns[name]} IS NULL THEN -1 {cases} ELSE 2 END AS TINYINT)"


_WORDS = {1: RIGHT, 0: WRONG, -1: NOTHING}


def _batches(rows: Rows, expressions: list[str]) -> Any:
    with readable(rows.label):
        yield from reader_of(rows.connection.sql(rows.sql(*expressions)), _ROWS)


def _checked(rows: Rows, ids: AnyArray) -> AnyArray:
    known = set(ids.tolist())
    if None in known or len(known) < len(ids):
        allowed = f"each item once; results in rows have a column {MODEL!r}"
        raise InputError(f"{rows.label}: an item has no id, or stands twice", allowed=allowed)
    return ids.astype(np.str_)


def _neither(rows: Rows, name: str) -> InputError:
    return InputError(
        f"{rows.label}: column {name!r} holds what is neither right nor wrong",
        allowed="1 or 0, true or false, pass or fail; nothing where there is no result",
        action="Leave other columns than those of models out.",
    )
