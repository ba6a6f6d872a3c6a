"""Building a population from a file, a dataframe or a table: in memory where it fits, else where it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from stratal import arrays
from stratal.arrays import AnyArray, FloatArray, array_of, frozen
from stratal.errors import InputError
from stratal.population import declaration
from stratal.population.in_memory import ArrayPopulation, object_column
from stratal.population.population import Population
from stratal.population.predictions import with_predictions
from stratal.population.summary import ProxyInfo, proxy_info_for
from stratal.proxy.history import HISTORY, History, fit_history
from stratal.proxy.proxy import Proxy, accuracy, margin
from stratal.question.recognition import ID_NAMES
from stratal.question.roles import ColumnRoles, declared_columns
from stratal.question.tags import checked_format, read_set
from stratal.randomness import id_array
from stratal.tables.engine import arrow_reader
from stratal.tables.frames import frame_table
from stratal.tables.readers import open_table
from stratal.tables.row_index import index_name, refuse_two_ids, require_unique_index, shared_index
from stratal.tables.source import (
    INTEGER_TYPES,
    MAX_MEMORY_BYTES,
    EveryColumn,
    FileReading,
    Rows,
    Table,
    translate_engine_errors,
)


def from_arrays(given: declaration.ArrayKeywords) -> ArrayPopulation:
    """Build a population from arrays; see `Population.from_arrays`."""
    proxy = given.get("proxy")
    bounds = given.get("bounds")
    if proxy is not None and not isinstance(proxy, Mapping):
        proxy = {str(getattr(proxy, "name", None) or "proxy"): proxy}
    named: dict[str, Any] = dict(proxy or {})
    groups = dict(given.get("groups") or {})
    ids = given.get("ids")
    threads = given.get("threads")
    notes: tuple[str, ...] = ()
    on_scale = bounds, given.get("scaled"), declaration.label_bounds(given.get("label"))
    id_name = given.get("id_name")
    if ids is not None:
        index = None
    else:
        index = shared_index(_columns_of(given))
    if index is not None:
        ids = index
        id_name = id_name or index_name(index)
    features = _named_features(given.get("features"))
    if given.get("history") is not None:
        past = as_history(given["history"], ids)
        items = ids
        if items is None:
            others = (*named.values(), *groups.values(), *features.values())
            items = np.arange(len(getattr(others[0], "values", others[0])) if others else len(past.ids))
        columns = dict(zip(past.names, past.of(items).T, strict=True))
        declaration.refuse_taken(columns, (*named, *features), "the arrays")
        notes = (past.note(past.count_items(items), len(items)),)
        own_scale = bounds in (None, (0.0, 1.0))  # that of right and wrong
        limits = (0.0, 1.0) if own_scale else None
        made = Proxy(values=columns.pop(HISTORY), scaled=own_scale, bounds=limits, name=HISTORY)
        named = {HISTORY: made, **named}
        features = {**features, **columns}
    described = [describe_proxy(name, entry, *on_scale) for name, entry in named.items()]
    if on_scale == (None, None, None) and given.get("predicts") is None:
        outliers = (_note_on_outliers(info, values) for info, values, _ in described)
        notes = (*notes, *(note for note in outliers if note is not None))
    held: dict[str, Any] = {
        "values": {info.name: values for info, values, _ in described},
        "groups": {name: _group_column(name, values) for name, values in groups.items()},
        "features": {name: arrays.finite_vector(name, values) for name, values in features.items()},
        "shown": {name: frozen(object_column(v), object) for name, v in (given.get("show") or {}).items()},
    }
    if ids is not None:
        ids = id_array(ids)
        blank = ids.dtype.kind == "U" and np.char.strip(ids) == ""
        if np.any(blank):
            what = f"an id is missing (empty, at position {np.argmax(blank)})"
            raise InputError(what, action="Every unit needs an id.")
    roles = _roles_of_arrays(given, groups, named)
    population = ArrayPopulation(
        **held,
        second={info.name: moments for info, _, moments in described},
        ids=ids,
        size=_common_size(ids, held),
        proxies=tuple(info for info, _, _ in described),
        id_name=id_name or "id",
        row_base=declaration.ROW_BASE if ids is None else None,
        roles=roles,
        tags=checked_format(given.get("tags")),
        label_outcome=declaration.label_outcome(given.get("label")),
        notes=notes,
        threads=None if threads is None else arrays.checked_threads(threads),
    )
    return with_predictions(population, given.get("predicts"), scaled=given.get("scaled"))


def _roles_of_arrays(
    given: declaration.ArrayKeywords, groups: Mapping[str, Any], proxies: Mapping[str, Any]
) -> ColumnRoles:
    """Return the roles of arrays, which are groups; judges may be proxies."""
    columns = declared_columns(given, declaration.listed)
    roles = ColumnRoles.of(columns)
    for keyword, names in columns.items():
        for name in names:
            if name not in groups and (name not in proxies or name == roles.answer):
                action = "Give it in groups= too."
                raise InputError(f"{keyword} is not a group column: {name!r}", action=action)
    return roles


def _columns_of(given: declaration.ArrayKeywords) -> dict[str, Any]:
    """Return every column of a population from arrays by a name for errors."""
    columns: dict[str, Any] = {}
    for keyword in ("proxy", "groups", "features", "show"):
        values: Any = given.get(keyword)
        if values is None:
            continue
        if isinstance(values, Mapping):
            columns |= {f"{keyword}={name}": column for name, column in values.items()}
        else:
            columns[keyword] = values
    return columns


def describe_proxy(
    name: str,
    entry: Any,
    bounds: tuple[float, float] | None,
    scaled: bool | None,
    label: tuple[float, float] | None = None,
) -> tuple[ProxyInfo, FloatArray, FloatArray | None]:
    """Return what is known of a proxy, its values and its second moments, from an array or a `Proxy`.

    Values in [0, 1] are taken as probabilities. Values outside, without bounds, only order: their scale is
    unknown.
    """
    if hasattr(entry, "second_moments"):
        info = ProxyInfo(name=name, scaled=entry.scaled, bounds=entry.bounds)
        return info, arrays.finite_vector(name, entry.values), entry.second_moments
    values = arrays.finite_vector(name, entry)
    if len(values):
        low, high = (float(values.min()), float(values.max()))
    else:
        low, high = (0.0, 1.0)
    return proxy_info_for(name, low, high, bounds, scaled, label=label), values, None


# Share of the values within [0, 1] from which the others are probably mistakes.
_MOSTLY_PROBABILITIES = 0.9


def _note_on_outliers(info: ProxyInfo, values: FloatArray) -> str | None:
    """Return a note on a proxy (N,) that is only an order because of a few values outside [0, 1]."""
    outside = values[(values < 0) | (values > 1)]
    if info.scaled or len(outside) == 0 or len(outside) > (1 - _MOSTLY_PROBABILITIES) * len(values):
        return None
    verb = "lies" if len(outside) == 1 else "lie"
    return (
        f"{len(outside):,} of {len(values):,} values of {info.name!r} {verb} outside [0, 1] (such as "
        f"{outside[0]:g}), so that it is taken as an order only; correct them, or declare what it predicts: "
        "predicts= (--predicts)"
    )


def _named_features(features: Any) -> dict[str, Any]:
    """Return feature columns by name; a matrix (N, d), such as embeddings, becomes d columns."""
    if features is None:
        return {}
    if not hasattr(features, "items"):
        features = {"feature": features}
    named: dict[str, Any] = {}
    for name, values in features.items():
        if hasattr(values, "ndim"):
            matrix = values
        else:
            matrix = np.asarray(values)
        if matrix.ndim == 2:
            parts = {f"{name}_{at}": matrix[:, at] for at in range(matrix.shape[1])}
        else:
            parts = {}
        named |= parts if matrix.ndim == 2 else {name: values}
    return named


def _group_column(name: str, values: Any) -> AnyArray:
    # A list is taken as objects: an array of text drops a NUL at the end.
    if isinstance(values, list | tuple):
        array = object_column(values)
    else:
        array = array_of(values)
    what = f"group column '{name}' cannot be a group"
    if array.ndim != 1 or array.dtype.kind in "SVc":
        given = f"shape {array.shape}, dtype {array.dtype}"
        raise InputError(what, given=given, allowed="text, numbers or dates, one per unit")
    if array.dtype.kind == "O":
        array = _with_set_texts(array)
    for position, entry in enumerate(array.tolist() if array.dtype.kind == "O" else ()):
        nested = isinstance(entry, list | tuple | set | dict | np.ndarray | bytes)
        if nested or (isinstance(entry, str) and "\0" in entry):
            allowed = "text without NUL, numbers or dates, one per unit"
            raise InputError(what, given=f"{entry!r} at position {position}", allowed=allowed)
    missing = np.flatnonzero(_missing(array, values))
    if len(missing):
        held = f"{len(missing)} missing value{'s' if len(missing) > 1 else ''}"
        what = f"group column '{name}' holds {held} (first at position {missing[0]})"
        raise InputError(what, action="Give them a category of their own.")
    if array.dtype.kind == "f":
        array = np.array([str(int(v) if v.is_integer() else v) for v in array.tolist()])
    if array.dtype.kind == "M":
        array = np.array([_moment_text(text) for text in array.astype(np.str_).tolist()])
    return frozen(array.astype(np.str_))


def _with_set_texts(array: AnyArray) -> AnyArray:
    """Return a column of objects (N,) with lists of tags as the text of their set."""
    texts = np.empty(len(array), dtype=object)
    for position, entry in enumerate(array.tolist()):
        text = None if isinstance(entry, str) else read_set(entry)
        texts[position] = entry if text is None else text
    return texts


def _moment_text(text: str) -> str:
    """Return a moment as engines write it: a blank for the T, and no zeros at the end of a fraction."""
    whole, point, fraction = text.replace("T", " ").partition(".")
    if point:
        return f"{whole}{point}{fraction}".rstrip("0").rstrip(".")
    return whole


def _missing(array: AnyArray, values: Any) -> Any:
    """Return which categories (N,) are masked, None, NaN or a dataframe's NA; a text never is."""
    if arrays.is_masked(values):
        return np.ma.getmaskarray(values)
    if array.dtype.kind in "mM":
        return np.isnat(array)
    entries = array.tolist() if array.dtype.kind in "fO" else []
    return [arrays.is_null(entry) or bool(entry != entry) for entry in entries]


def _common_size(ids: AnyArray | None, columns: Mapping[str, Mapping[str, AnyArray]]) -> int:
    named = {} if ids is None else {"ids": ids}
    for kind, entries in columns.items():
        named |= {name if kind == "values" else f"column '{name}'": array for name, array in entries.items()}
    if not named:
        raise InputError("the population is empty", action="Give a proxy, ids or groups.")
    size = arrays.same_length(**named)
    if size == 0:
        raise InputError("the population is empty", given="0 units", allowed="at least one")
    return size


def from_estimator(model: Any, rows: Any, columns: dict[str, Any]) -> Population:
    """Build a population from a classifier's own confidence; see `Population.from_estimator`."""
    classes = getattr(model, "classes_", None)
    sure = hasattr(model, "predict_proba") or hasattr(model, "decision_function")
    if classes is None or any(isinstance(entry, np.ndarray) for entry in classes) or not sure:
        raise InputError(
            "the model is not a fitted classifier with one answer per unit",
            given=type(model).__name__,
            allowed="a model with classes_, and predict_proba or decision_function",
            action="Give any other model's own prediction of the outcome to Population.from_arrays(proxy=…).",
        )
    if hasattr(model, "predict_proba"):
        scores = np.asarray(model.predict_proba(rows))
        proxy = accuracy(scores, name=declaration.CONFIDENCE)
    else:
        scores = np.asarray(model.decision_function(rows))
        proxy = margin(scores)
    if scores.ndim > 1:
        answers = scores.argmax(axis=1)
    else:
        answers = (scores > 0).astype(np.int64)
    if columns.get("ids") is None:
        index = shared_index({"X": rows, **_columns_of(cast(declaration.ArrayKeywords, columns))})
        if index is not None:
            named = declaration.id_columns(map(str, getattr(rows, "columns", ())))
            refuse_two_ids(index_name(index), named, "X", keyword="ids")
            columns["ids"] = index
            columns["id_name"] = columns.get("id_name") or index_name(index)
    groups = {**(columns.pop("groups", None) or {}), declaration.PREDICTED: np.asarray(classes)[answers]}
    return Population.from_arrays(proxy=proxy, groups=groups, predicted=declaration.PREDICTED, **columns)


Population.makers |= {"arrays": from_arrays, "estimator": from_estimator}


def read(path: str | os.PathLike[str], given: declaration.FileKeywords) -> Population:
    """Build a population from a file; see `Population.read`."""
    if not isinstance(path, str | os.PathLike):
        action = "A dataframe is read by Population.from_table, arrays by Population.from_arrays."
        raise InputError("a file is given by its path", given=type(path).__name__, action=action)
    columns: Any = dict(given)
    reading: Any = {name: columns.pop(name) for name in FileReading.__annotations__ if name in columns}
    if columns.get("history") is not None:
        within: Any = {name: reading[name] for name in ("threads", "memory") if name in reading}
        columns["history"] = as_history(columns["history"], within=within)

    def fits(names: Sequence[str]) -> bool:
        try:
            declaration.declaration_of(columns, names, str(path))
        except InputError:
            return False
        return True

    return _of_table(open_table(path, reading, fits), columns, reading.get("threads"))


def from_table(table: Any, given: declaration.TableKeywords) -> Population:
    """Build a population from a dataframe or an Ibis table; see `Population.from_table`."""
    return _of_table(frame_table(table), given)


Population.makers |= {"file": read, "table": from_table}


def _of_table(table: Table, given: declaration.TableKeywords, threads: int | None = None) -> Population:
    if table.log is not None:
        given = declaration.with_log(given, table.log)
    if given.get("history") is not None:
        given = {**given, "history": as_history(given["history"])}
    declared = declaration.declaration_of(given, table.names, table.label, table.index)
    taken = table.take(declared)
    if isinstance(taken, Rows):
        held = _in_memory(taken, declared, threads)
        if held is not None:
            return held
        taken = taken.source()
    from stratal.population.queries.table import table_population
    from stratal.population.queries.units import prepared  # these load Ibis, which takes long

    numbered = declared.id == declaration.ROW and declaration.ROW not in table.names
    return table_population(*prepared(taken, declared), declaration.ROW_BASE if numbered else None)


def _in_memory(rows: Rows, declared: declaration.Declaration, threads: int | None) -> ArrayPopulation | None:
    """Return units as arrays; None of what does not fit, or what queries make or refuse."""
    types = rows.types()
    numbered = declared.id == declaration.ROW and declaration.ROW not in types
    shown = {name: rows.columns[name] if types[name] in _SHOWN else None for name in declared.shown}
    wanted = {
        **({} if numbered else {("id", declared.id): rows.columns[declared.id]}),
        **{("number", name): rows.as_number(name, types[name]) for name in declared.numbers},
        **{("group", name): rows.as_category(name, types[name]) for name in declared.groups},
        **{("shown", name): column for name, column in shown.items()},
    }
    derived = declared.softmax or declared.answers or declared.history or declared.second_moments
    if derived or None in wanted.values() or not wanted:
        return None
    found = rows.arrow(*map(str, wanted.values()))
    if not found or not len(found[0]):
        return None
    held = {
        (kind, name): object_column(column) if kind == "shown" else _held(column)
        for (kind, name), column in zip(wanted, found, strict=True)
    }
    if any(column is None for column in held.values()):
        return None
    numbers = np.arange(len(found[0])) + declaration.ROW_BASE
    ids: Any = numbers if numbered else held["id", declared.id]
    order = np.argsort(np.asarray(ids).astype(np.str_), kind="stable")  # as the batches of a table

    if declared.may_be_softmax and declaration.is_softmax(rows.totals(declared.proxies)):
        return None
    declarations = ("bounds", "scaled", "label", "predicts", "tags")
    given: Any = {name: getattr(declared, name) for name in declarations} | declared.roles.keywords
    given |= {"ids": ids[order], "id_name": declared.id, "threads": threads}
    for keyword, kind, names in (
        ("proxy", "number", declared.proxies),
        ("features", "number", declared.features),
        ("groups", "group", declared.groups),
        ("show", "shown", declared.shown),
    ):
        given[keyword] = {name: np.asarray(held[kind, name])[order] for name in names}
    try:
        population = from_arrays(given)
    except InputError:
        return None
    population.notes = (*rows.notes, *population.notes)
    population.row_base = declaration.ROW_BASE if numbered else None
    return population


def _held(column: Any) -> AnyArray | None:
    """Return numbers or texts; None where one is missing, or NumPy would pad short texts to a long one."""
    if column.null_count:
        return None
    if str(column.type) != "string":
        return np.asarray(column.to_numpy())
    texts = column.to_pylist()
    if 4 * len(texts) * max(map(len, texts)) > MAX_MEMORY_BYTES:
        return None
    return np.array(texts, object)


_SHOWN = (*INTEGER_TYPES, "varchar", "double", "float", "boolean", "date")


# ---- earlier models' results: one column for each model, or one row for each result


# The column that makes a table of past results a long one: a row for each result.
MODEL = "model"

RIGHT = ("1", "1.0", "true", "t", "yes", "pass", "passed", "correct", "right")
WRONG = ("0", "0.0", "false", "f", "no", "fail", "failed", "incorrect", "wrong")
NOTHING = ("", "na", "n/a", "nan", "null", "none")

# Rows that are read at once: of a column for each model, of a row for each result.
_FEW_ROWS = 2_048
_MANY_ROWS = 65_536


def as_history(given: Any, ids: Any = None, within: FileReading | None = None) -> History:
    """Return a history from itself, from the file it was written to, or from past results, by fitting it.

    Parameters
    ----------
    given : History, path, dataframe, mapping or array (N, M)
        A file or dataframe has a column of ids (`id`, `item_id`) and a column for each model; or, where one
        is called `model`, a row for each result in one further column.
    ids : (N,), optional
        Of arrays' items.
    within : mapping, optional
        Threads and memory to read a file with.

    Raises
    ------
    InputError
        For a table without ids, a duplicated item or result, and what is neither right nor wrong.
    """
    if isinstance(given, History):
        return given
    if isinstance(given, str | os.PathLike):
        saved = History.read(os.fspath(given))
        if saved is not None:
            return saved
        return _history_of(open_table(given, within))
    if isinstance(given, Mapping | np.ndarray | list):
        return fit_history(given, ids=ids)
    return _history_of(frame_table(given))


def _history_of(table: Table) -> History:
    lowered = {name.lower(): name for name in table.names}
    own = next((lowered[name] for name in ID_NAMES if name in lowered), None)
    if table.index is not None and own is None:
        require_unique_index(table.index, table.label)
        own = table.names[-1]
    others = [name for name in table.names if name != own]
    if own is None or len(others) < 2:
        what = f"{table.label}: past results lack a column of ids, or models"
        allowed = f"a column {' or '.join(ID_NAMES[:2])} and one for each model, or {MODEL} and one result"
        raise InputError(what, given=", ".join(table.names[:5]), allowed=allowed)
    rows = table.take(EveryColumn(table.names))
    if not isinstance(rows, Rows):
        action = "Write them to a Parquet file, or fit them once: stratal.proxy.fit_history(…).write(…)."
        raise InputError("past results are read from a file or a dataframe", given=table.label, action=action)
    model = lowered.get(MODEL)
    if model is None:
        names: list[Any] = others
        right, items = _of_wide(rows, own, others)
    else:
        results = [name for name in others if name != model]
        if len(results) != 1:
            given = ", ".join(results[:5]) or "none"
            allowed = "one: 1 or 0, true or false, pass or fail"
            raise InputError(f"{rows.label}: which column is the result?", given=given, allowed=allowed)
        right, items, names = _of_long(rows, own, model, results[0])
    strange = np.flatnonzero(right.max(axis=0, initial=0) == _STRANGE)
    if len(strange):
        column = names[int(strange[0])] if model is None else results[0]
        what = f"{rows.label}: column {column!r} holds what is neither right nor wrong"
        allowed = "1 or 0, true or false, pass or fail; nothing where there is no result"
        raise InputError(what, allowed=allowed, action="Leave other columns than those of models out.")
    if None in items or len(set(items)) < len(items):
        allowed = f"each item once; results in rows have a column {MODEL!r}"
        raise InputError(f"{rows.label}: an item has no id, or stands twice", allowed=allowed)
    return fit_history(right, ids=np.array(items, dtype=np.str_), names=names)


def _of_wide(rows: Rows, own: str, names: Sequence[str]) -> tuple[AnyArray, list[Any]]:
    """Return results (N, M) and the items."""
    kinds = rows.types()
    items = list[Any]()
    right = np.empty((rows.query_row("count(*)")[0], len(names)), np.int8)
    expressions = (_result(rows, name, kinds[name]) for name in names)
    for ids, *results in _read(rows, _FEW_ROWS, _text(rows, own), *expressions):
        for at, column in enumerate(results):
            right[len(items) : len(items) + len(ids), at] = _marks(column)
        items += ids.to_pylist()
    return right, items


def _of_long(rows: Rows, own: str, model: str, result: str) -> tuple[AnyArray, list[Any], list[Any]]:
    """Return results (N, M), the items and the models; the file is read twice, as its rows may be many."""
    places: tuple[dict[Any, int], ...] = ({}, {})
    texts = (_text(rows, own), _text(rows, model))
    count = 0
    for named in _read(rows, _MANY_ROWS, *texts):
        count += len(named[0])
        for known, column in zip(places, named, strict=True):
            for text in column.unique().to_pylist():
                known.setdefault(text, len(known))
    items, names = map(list, places)
    if None in names:
        raise InputError(f"{rows.label}: a result has no model", allowed=f"a name in the column {model!r}")
    right = np.full((len(items), len(names)), _NO_ROW, np.int8)
    for *named, results in _read(rows, _MANY_ROWS, *texts, _result(rows, result, rows.types()[result])):
        row, at = (_coded(column, known.__getitem__) for column, known in zip(named, places, strict=True))
        right[row, at] = _marks(results)
    if np.count_nonzero(right != _NO_ROW) < count:
        raise InputError(f"{rows.label}: a model has two results for one item", allowed="one at most")
    return np.maximum(right, -1, out=right), items, names


def _text(rows: Rows, name: str) -> str:
    return f"NULLIF(CAST({rows.columns[name]} AS VARCHAR), '')"


def _result(rows: Rows, name: str, kind: str) -> str:
    """Return the SQL of a result: of numbers 1, 0, −1 where there is none, 2 for others; else its text."""
    if kind == "varchar":
        number = None
    else:
        number = rows.as_number(name, kind)
    if number is None:
        return f"CAST({rows.columns[name]} AS VARCHAR)"
    # Engines find no NaN by isnan where a Parquet file's least and largest values tell of none.
    absent = f"{number} IS NULL OR CAST({number} AS VARCHAR) = 'nan'"
    return f"CAST(CASE {number} WHEN 1 THEN 1 WHEN 0 THEN 0 ELSE if({absent}, -1, 2) END AS TINYINT)"


def _marks(column: Any) -> AnyArray:
    """Return results (n,) as `_result` writes them from an Arrow column; engines are slow with many words."""
    if column.type == "int8":
        return np.asarray(column.to_numpy())
    return _coded(column, lambda text: _WORDS.get((text or "").strip(" ").lower(), _STRANGE)).astype(np.int8)


def _coded(column: Any, code: Callable[[Any], int]) -> AnyArray:
    """Return the integer (n,) of each text of an Arrow column."""
    found = column.dictionary_encode(null_encoding="encode")
    codes = np.array([code(text) for text in found.dictionary.to_pylist()], np.int64)
    return np.asarray(codes[found.indices.to_numpy()])


_NO_ROW = -2
_STRANGE = 2
_WORDS = dict.fromkeys(RIGHT, 1) | dict.fromkeys(WRONG, 0) | dict.fromkeys(NOTHING, -1)


def _read(rows: Rows, size: int, *expressions: str) -> Iterator[list[Any]]:
    """Yield the columns of up to `size` rows."""
    with translate_engine_errors(rows.label):
        for batch in arrow_reader(rows.connection.sql(rows.sql(*expressions)), size):
            yield batch.columns
