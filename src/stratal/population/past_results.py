"""Past results of other models on the same items, from which a proxy (`History`) is fitted.

A table has a column of ids and a column for each model, or a row for each result with a column of models.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from stratal.arrays import AnyArray
from stratal.errors import InputError
from stratal.proxy.history import History, fit_history
from stratal.question.column_words import ID_NAMES
from stratal.question.vocabulary import BINARY_VOCABULARIES
from stratal.tables.engine import arrow_reader
from stratal.tables.frames import frame_table
from stratal.tables.no_answer import EMPTY_CELL_TEXTS
from stratal.tables.readers import open_table
from stratal.tables.row_index import require_unique_index
from stratal.tables.source import EveryColumn, ReadOptions, Rows, Table, translate_engine_errors

# Name of the column of models in a table with a row for each result.
_MODEL_COLUMN = "model"

# Rows per batch: fewer in a wide table, which may have a thousand columns.
_WIDE_BATCH_ROWS = 2_048
_LONG_BATCH_ROWS = 65_536

# Codes of results in addition to right (1) and wrong (0): an empty cell, no row, and any other value.
_MISSING = -1
_NO_ROW = -2
_INVALID = 2

# The code of each text that a cell may contain.
_CODES_BY_WORD = {word: int(number) for words in BINARY_VOCABULARIES for word, number in words.items()}
_CODES_BY_WORD |= {"1": 1, "1.0": 1, "0": 0, "0.0": 0} | dict.fromkeys(EMPTY_CELL_TEXTS, _MISSING)


def as_history(source: object, ids: object = None, read_options: ReadOptions | None = None) -> History:
    """Return a history: read it from its file, or fit it to past results.

    Parameters
    ----------
    source : History, path, dataframe, mapping or array (N, M)
        A file or dataframe has a column of ids (`id`, `item_id`) and a column for each model. With a column
        called `model`, it has a row for each result, in one further column.
    ids : (N,), optional
        Ids of the items of an array.
    read_options : ReadOptions, optional
        How to read a file: format, threads, memory.

    Raises an `InputError` for a table without ids, a duplicated item or result, and a result that is neither
    right nor wrong.
    """
    if isinstance(source, History):
        return source
    if isinstance(source, str | os.PathLike):
        saved = History.read(os.fspath(source))
        if saved is not None:
            return saved
        return _fit_to_table(open_table(source, read_options))
    if isinstance(source, Mapping | np.ndarray | list):
        return fit_history(source, ids=ids)
    return _fit_to_table(frame_table(source))


def _fit_to_table(table: Table) -> History:
    """Return the history that is fitted to a table of past results."""
    id_column = _find_id_column(table)
    other_columns = [name for name in table.names if name != id_column]
    rows = table.read_columns(EveryColumn(table.names))
    # Tables of engines other than DuckDB (through Ibis) cannot be read here.
    if not isinstance(rows, Rows):
        action = (
            "Write the results to a Parquet file, or fit them once: stratal.proxy.fit_history(…).write(…)."
        )
        raise InputError("past results must be a file or a dataframe", given=table.table_name, action=action)
    model_column = next((name for name in reversed(table.names) if name.lower() == _MODEL_COLUMN), None)
    if model_column is None:
        models: list[Any] = other_columns
        result_columns = other_columns
        results, items = _read_wide(rows, id_column, other_columns)
    else:
        result_column = _find_result_column(table, (id_column, model_column))
        results, items, models = _read_long(rows, id_column, model_column, result_column)
        result_columns = [result_column] * len(models)
    invalid = np.flatnonzero(results.max(axis=0, initial=0) == _INVALID)
    if len(invalid):
        column = result_columns[int(invalid[0])]
        problem = f"{rows.table_name}: column {column!r} contains a value that is neither right nor wrong"
        allowed = "1 or 0, true or false, pass or fail; empty if there is no result"
        raise InputError(problem, allowed=allowed, action="Leave out columns that are not models.")
    if None in items or len(set(items)) < len(items):
        allowed = f"one row per item; if each result has its own row, a column {_MODEL_COLUMN!r} is required"
        raise InputError(f"{rows.table_name}: an item has no id, or occurs twice", allowed=allowed)
    return fit_history(results, ids=np.array(items, dtype=np.str_), names=models)


def _find_id_column(table: Table) -> str:
    """Return the column of ids: one with a usual name, or the index of a dataframe."""
    name_by_lowercase = {name.lower(): name for name in table.names}
    id_column = next((name_by_lowercase[name] for name in ID_NAMES if name in name_by_lowercase), None)
    if table.index is not None and id_column is None:
        require_unique_index(table.index, table.table_name)
        # The index of a dataframe is the last column of its table.
        id_column = table.names[-1]
    if id_column is None or sum(name != id_column for name in table.names) < 2:
        problem = f"{table.table_name}: past results contain no column of ids, or no models"
        allowed = (
            f"a column {' or '.join(ID_NAMES[:2])}, and either a column for each model, or a column "
            f"{_MODEL_COLUMN} and a column of results"
        )
        raise InputError(problem, given=", ".join(table.names[:5]), allowed=allowed)
    return id_column


def _find_result_column(table: Table, others: tuple[str, str]) -> str:
    """Return the only column besides those of ids and models."""
    columns = [name for name in table.names if name not in others]
    if len(columns) != 1:
        raise InputError(
            f"{table.table_name}: the column with the results is not recognised",
            given=", ".join(columns[:5]) or "none",
            allowed="one column of results: 1 or 0, true or false, pass or fail",
        )
    return columns[0]


def _read_wide(rows: Rows, id_column: str, names: Sequence[str]) -> tuple[AnyArray, list[Any]]:
    """Return results (N, M), as codes, and the N items of a table with a column for each of M models."""
    types = rows.types()
    items: list[Any] = []
    results = np.empty((rows.query_row("count(*)")[0], len(names)), np.int8)
    expressions = (_result_sql(rows, name, types[name]) for name in names)
    for ids, *columns in _read_batches(rows, _WIDE_BATCH_ROWS, _text_sql(rows, id_column), *expressions):
        for j, column in enumerate(columns):
            results[len(items) : len(items) + len(ids), j] = _result_codes(column)
        items += ids.to_pylist()
    return results, items


def _read_long(
    rows: Rows, id_column: str, model_column: str, result_column: str
) -> tuple[AnyArray, list[Any], list[Any]]:
    """Return results (N, M), as codes, the N items and the M models of a table with a row for each result.

    The file is read twice, so that its rows need not fit into memory.
    """
    # The row of each item, and the column of each model, in the matrix of results.
    row_of_item: dict[Any, int] = {}
    column_of_model: dict[Any, int] = {}
    text_columns = (_text_sql(rows, id_column), _text_sql(rows, model_column))
    n_results = 0
    for items, models in _read_batches(rows, _LONG_BATCH_ROWS, *text_columns):
        n_results += len(items)
        for text in items.unique().to_pylist():
            row_of_item.setdefault(text, len(row_of_item))
        for text in models.unique().to_pylist():
            column_of_model.setdefault(text, len(column_of_model))
    if None in column_of_model:
        raise InputError(
            f"{rows.table_name}: a result has no model", allowed=f"a name in the column {model_column!r}"
        )
    results = np.full((len(row_of_item), len(column_of_model)), _NO_ROW, np.int8)
    result_sql = _result_sql(rows, result_column, rows.types()[result_column])
    for items, models, column in _read_batches(rows, _LONG_BATCH_ROWS, *text_columns, result_sql):
        item_rows = _text_codes(items, row_of_item.__getitem__)
        model_columns = _text_codes(models, column_of_model.__getitem__)
        results[item_rows, model_columns] = _result_codes(column)
    # A second result for the same item and model has overwritten the first.
    if np.count_nonzero(results != _NO_ROW) < n_results:
        raise InputError(f"{rows.table_name}: a model has two results for one item", allowed="one at most")
    # Results without a row become missing results.
    return np.maximum(results, _MISSING, out=results), list(row_of_item), list(column_of_model)


def _text_sql(rows: Rows, name: str) -> str:
    """Return the SQL of a column as text, with NULL for an empty text."""
    return f"NULLIF(CAST({rows.columns[name]} AS VARCHAR), '')"


def _result_sql(rows: Rows, name: str, type_name: str) -> str:
    """Return the SQL of a result: the code of a number, or the text of other results."""
    if type_name == "varchar":
        number = None
    else:
        number = rows.as_number(name, type_name)
    if number is None:
        return f"CAST({rows.columns[name]} AS VARCHAR)"
    # DuckDB skips isnan if the smallest and largest value in a Parquet file's statistics show no NaN.
    absent = f"{number} IS NULL OR CAST({number} AS VARCHAR) = 'nan'"
    other_codes = f"if({absent}, {_MISSING}, {_INVALID})"
    return f"CAST(CASE {number} WHEN 1 THEN 1 WHEN 0 THEN 0 ELSE {other_codes} END AS TINYINT)"


def _result_codes(column: Any) -> AnyArray:
    """Return the codes (n,) of results from an Arrow column."""
    # Texts such as pass and fail get codes here: in the engine, a CASE with all words is slow.
    if column.type == "int8":
        return np.asarray(column.to_numpy())
    return _text_codes(
        column, lambda text: _CODES_BY_WORD.get((text or "").strip(" ").lower(), _INVALID)
    ).astype(np.int8)


def _text_codes(column: Any, code: Callable[[Any], int]) -> AnyArray:
    """Return `code(text)` (n,) for each text of an Arrow column; it is called once per distinct text."""
    encoded = column.dictionary_encode(null_encoding="encode")
    codes = np.array([code(text) for text in encoded.dictionary.to_pylist()], np.int64)
    return np.asarray(codes[encoded.indices.to_numpy()])


def _read_batches(rows: Rows, size: int, *expressions: str) -> Iterator[list[Any]]:
    """Yield the Arrow columns of SQL expressions, in batches of up to `size` rows."""
    with translate_engine_errors(rows.table_name):
        for batch in arrow_reader(rows.connection.sql(rows.sql(*expressions)), size):
            yield batch.columns
