"""Build a population from arrays, a file, a dataframe or a table: in memory if its rows fit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from stratal import arrays
from stratal.arrays import AnyArray, FloatArray, array_of, frozen
from stratal.errors import InputError
from stratal.population import declaration
from stratal.population.column_names import ROW_BASE, id_columns, name_tuple, refuse_existing_names
from stratal.population.in_memory import ArrayPopulation, object_column
from stratal.population.past_results import as_history
from stratal.population.population import Population
from stratal.population.predictions import with_predictions
from stratal.population.proxy_info import ProxyInfo, infer_proxy_info
from stratal.population.softmax import CONFIDENCE, PREDICTED_CLASS, is_softmax
from stratal.protocols import Keywords, WithColumns, WithDimensions, WithItems, WithName, values_of
from stratal.proxy.history import HISTORY, History
from stratal.proxy.proxy import Proxy, accuracy, margin
from stratal.question.roles import ColumnRoles, declared_columns, refuse_revealing_columns
from stratal.question.tags import checked_format, read_set
from stratal.randomness import id_array
from stratal.tables.arrow_arrays import numpy_array
from stratal.tables.frames import frame_table
from stratal.tables.readers import open_table
from stratal.tables.row_index import index_name, refuse_two_ids, shared_index
from stratal.tables.source import (
    INTEGER_TYPES,
    MAX_MEMORY_BYTES,
    ReadOptions,
    Rows,
    Table,
)


def from_arrays(keywords: declaration.ArrayKeywords) -> ArrayPopulation:
    """Build a population from arrays; see `Population.from_arrays`."""
    proxies = _named_proxies(keywords.get("proxy"))
    groups = dict(keywords.get("groups") or {})
    features = _named_features(keywords.get("features"))
    ids, id_name = _ids_of_arrays(keywords)
    notes: list[str] = []
    if keywords.get("history") is not None:
        history = as_history(keywords["history"], ids)
        items = ids
        if items is None:
            items = _row_numbers((*proxies.values(), *groups.values(), *features.values()), history)
        history_proxy, history_features = _history_columns(history, items, keywords.get("bounds"))
        refuse_existing_names((HISTORY, *history_features), (*proxies, *features), "the arrays")
        notes.append(history.note(history.count_items(items), len(items)))
        proxies = {HISTORY: history_proxy, **proxies}
        features |= history_features
    described_proxies, outlier_notes = _describe_proxies(keywords, proxies)
    shown = keywords.get("show") or {}
    proxy_columns = {info.name: values for info, values, _ in described_proxies}
    second_moments = {info.name: moments for info, _, moments in described_proxies}
    group_columns = {name: _group_column(name, values) for name, values in groups.items()}
    feature_columns = {name: arrays.finite_vector(name, values) for name, values in features.items()}
    shown_columns = {name: frozen(object_column(values), object) for name, values in shown.items()}
    if ids is not None:
        ids = _checked_ids(ids)
    roles = _roles_of_arrays(keywords, groups, proxies)
    refuse_revealing_columns(shown, proxies, roles)
    threads = keywords.get("threads")
    if threads is not None:
        arrays.checked_threads(threads)
    population = ArrayPopulation(
        values=proxy_columns,
        groups=group_columns,
        features=feature_columns,
        shown=shown_columns,
        second_moments=second_moments,
        ids=ids,
        size=_common_size(ids, proxy_columns, group_columns | feature_columns | shown_columns),
        proxies=tuple(info for info, _, _ in described_proxies),
        id_name=id_name or "id",
        row_base=ROW_BASE if ids is None else None,
        roles=roles,
        tags=checked_format(keywords.get("tags")),
        label_outcome=declaration.label_outcome(keywords.get("label")),
        notes=(*notes, *outlier_notes),
        threads=threads,
    )
    return with_predictions(population, keywords.get("predicts"), scaled=keywords.get("scaled"))


def _ids_of_arrays(keywords: declaration.ArrayKeywords) -> tuple[Any, str | None]:
    """Return the ids and their name: the declared ids, else the common index of pandas columns."""
    ids = keywords.get("ids")
    id_name = keywords.get("id_name")
    if ids is not None:
        return ids, id_name
    index = shared_index(_columns_of(keywords))
    if index is None:
        return None, id_name
    return index, id_name or index_name(index)


def _describe_proxies(
    keywords: declaration.ArrayKeywords, proxies: Mapping[str, Any]
) -> tuple[list[tuple[ProxyInfo, FloatArray, FloatArray | None]], list[str]]:
    """Return the description, values and second moments of each proxy, and notes on suspicious values.

    Values outside [0, 1] are suspicious only if the scale of the proxy is not declared.
    """
    bounds = keywords.get("bounds")
    scaled = keywords.get("scaled")
    label_bounds = declaration.label_bounds(keywords.get("label"))
    described = [describe_proxy(name, proxy, bounds, scaled, label_bounds) for name, proxy in proxies.items()]
    # A declared scale says what values outside [0, 1] mean.
    is_declared = (bounds, scaled, label_bounds, keywords.get("predicts")) != (None, None, None, None)
    if is_declared:
        return described, []
    outliers = (_note_on_outliers(info, values) for info, values, _ in described)
    return described, [note for note in outliers if note is not None]


def _named_proxies(proxy: object) -> dict[str, Any]:
    """Return the proxies by name; the name of a single proxy is that of its Series, or `proxy`."""
    if proxy is None:
        return {}
    if isinstance(proxy, Mapping):
        return dict(proxy)
    # A Series has the name of its column.
    name = proxy.name if isinstance(proxy, WithName) else None
    return {str(name or "proxy"): proxy}


def _row_numbers(columns: Sequence[Any], history: History) -> AnyArray:
    """Return the row number of each unit (N,), which identifies its item in a history without ids."""
    if not columns:
        return np.arange(len(history.ids))
    return np.arange(len(values_of(columns[0])))


def _history_columns(
    history: History, items: object, bounds: tuple[float, float] | None
) -> tuple[Proxy, dict[str, AnyArray]]:
    """Return the proxy and the features by name that a history predicts for the items."""
    columns = dict(zip(history.names, history.values_of(items).T, strict=True))
    # The outcome of a history is right (1) or wrong (0).
    is_scaled = bounds in (None, (0.0, 1.0))
    proxy_bounds = (0.0, 1.0) if is_scaled else None
    proxy = Proxy(values=columns.pop(HISTORY), scaled=is_scaled, bounds=proxy_bounds, name=HISTORY)
    return proxy, columns


def _checked_ids(ids: object) -> AnyArray:
    """Return ids as an array; raise an error for a blank id."""
    id_column = id_array(ids)
    # Only texts can be blank.
    is_blank = id_column.dtype.kind == "U" and np.char.strip(id_column) == ""
    if np.any(is_blank):
        problem = f"an id is missing (empty, at position {np.argmax(is_blank)})"
        raise InputError(problem, action="Every unit must have an id.")
    return id_column


def _roles_of_arrays(
    keywords: declaration.ArrayKeywords, groups: Mapping[str, object], proxies: Mapping[str, object]
) -> ColumnRoles:
    """Return the roles of arrays: each must be a group; scores of judges may be proxies."""
    columns = declared_columns(keywords, name_tuple)
    roles = ColumnRoles.of(columns)
    for keyword, names in columns.items():
        for name in names:
            if name not in groups and (name not in proxies or name == roles.answer):
                action = "Also name the column in groups=."
                raise InputError(f"{keyword}={name!r} is not a group column", action=action)
    return roles


def _columns_of(keywords: declaration.ArrayKeywords) -> dict[str, Any]:
    """Return every column of a population from arrays, by its name in error messages."""
    columns: dict[str, Any] = {}
    for keyword in ("proxy", "groups", "features", "show"):
        values: Any = keywords.get(keyword)
        if values is None:
            continue
        if isinstance(values, Mapping):
            columns |= {f"{keyword}={name}": column for name, column in values.items()}
        else:
            columns[keyword] = values
    return columns


def describe_proxy(
    name: str,
    entry: object,
    bounds: tuple[float, float] | None,
    scaled: bool | None,
    label_bounds: tuple[float, float] | None = None,
) -> tuple[ProxyInfo, FloatArray, FloatArray | None]:
    """Return the description, the values (N,) and the second moments (N,) of a proxy.

    `entry` is an array-like (N,) or a `Proxy`; other arguments are as in `infer_proxy_info`. Values in
    [0, 1] are assumed to be probabilities. Other values without bounds only order the units, because their
    scale is unknown.
    """
    if isinstance(entry, Proxy):
        info = ProxyInfo(name=name, scaled=entry.scaled, bounds=entry.bounds)
        return info, arrays.finite_vector(name, entry.values), entry.second_moments
    values = arrays.finite_vector(name, entry)
    low, high = 0.0, 1.0
    if len(values):
        low = float(values.min())
        high = float(values.max())
    return infer_proxy_info(name, low, high, bounds, scaled, label_bounds=label_bounds), values, None


# If at least this share of the values lies within [0, 1], the others are probably mistakes.
_MOSTLY_PROBABILITIES = 0.9


def _note_on_outliers(info: ProxyInfo, values: FloatArray) -> str | None:
    """Return a note on a proxy (N,) that only orders units because of a few values outside [0, 1]."""
    outliers = values[(values < 0) | (values > 1)]
    if info.scaled or len(outliers) == 0 or len(outliers) > (1 - _MOSTLY_PROBABILITIES) * len(values):
        return None
    verb = "lies" if len(outliers) == 1 else "lie"
    return (
        f"{len(outliers):,} of {len(values):,} values of {info.name!r} {verb} outside [0, 1] (such as "
        f"{outliers[0]:g}), so the proxy is only used to order units; correct these values, or declare what "
        "the proxy predicts: predicts= (--predicts)"
    )


def _named_features(features: object) -> dict[str, Any]:
    """Return feature columns by name; a matrix (N, d), such as embeddings, becomes d columns."""
    if features is None:
        return {}
    if not isinstance(features, WithItems):
        features = {"feature": features}
    named: dict[str, Any] = {}
    for name, values in features.items():
        matrix: Any = values if isinstance(values, WithDimensions) else np.asarray(values)
        # Embeddings are usually one matrix.
        if matrix.ndim == 2:
            named |= {f"{name}_{number}": matrix[:, number] for number in range(matrix.shape[1])}
        else:
            named[name] = values
    return named


def _group_column(name: str, values: object) -> AnyArray:
    """Return a group column (N,) as text; raise an error for missing values and for other types."""
    # A list becomes an array of objects, because an array of text drops a NUL at the end.
    if isinstance(values, list | tuple):
        array = object_column(values)
    else:
        array = array_of(values)
    problem = f"group column '{name}' cannot be used as a group"
    if array.ndim != 1 or array.dtype.kind in "SVc":
        array_text = f"shape {array.shape}, dtype {array.dtype}"
        raise InputError(problem, given=array_text, allowed="text, numbers or dates, one per unit")
    if array.dtype.kind == "O":
        array = _with_set_texts(array)
    # Other types of arrays cannot contain lists.
    for position, entry in enumerate(array.tolist() if array.dtype.kind == "O" else ()):
        is_nested = isinstance(entry, list | tuple | set | dict | np.ndarray | bytes)
        if is_nested or (isinstance(entry, str) and "\0" in entry):
            allowed = "numbers, dates, or text without NUL characters; one per unit"
            raise InputError(problem, given=f"{entry!r} at position {position}", allowed=allowed)
    missing = np.flatnonzero(_is_missing_category(array, values))
    if len(missing):
        n_missing = f"{len(missing)} missing value{'s' if len(missing) > 1 else ''}"
        problem = f"group column '{name}' holds {n_missing} (first at position {missing[0]})"
        raise InputError(problem, action="Assign a separate category to the missing values.")
    # Engines write whole numbers as 1 and not as 1.0.
    if array.dtype.kind == "f":
        array = np.array([str(int(number) if number.is_integer() else number) for number in array.tolist()])
    if array.dtype.kind == "M":
        array = np.array([_timestamp_text(text) for text in array.astype(np.str_).tolist()])
    return frozen(array.astype(np.str_))


def _with_set_texts(array: AnyArray) -> AnyArray:
    """Return a column of objects (N,) in which lists of tags are replaced by the text of their set."""
    texts = np.empty(len(array), dtype=object)
    for position, entry in enumerate(array.tolist()):
        if isinstance(entry, str):
            text = None
        else:
            text = read_set(entry)
        texts[position] = entry if text is None else text
    return texts


def _timestamp_text(text: str) -> str:
    """Return a timestamp as engines write it: with a blank for the T, and without trailing zeros."""
    text = text.replace("T", " ")
    if "." in text:
        return text.rstrip("0").rstrip(".")
    return text


def _is_missing_category(array: AnyArray, values: Any) -> Any:
    """Return whether each category (N,) is masked, None, NaN or the NA of a dataframe."""
    # The data under a mask may be anything.
    if arrays.is_masked(values):
        return np.ma.getmaskarray(values)
    if array.dtype.kind in "mM":
        return np.isnat(array)
    entries = array.tolist() if array.dtype.kind in "fO" else []
    # NaN of any type is not equal to itself.
    return [arrays.is_null(entry) or bool(entry != entry) for entry in entries]


def _common_size(
    ids: AnyArray | None, proxies: Mapping[str, AnyArray], other_columns: Mapping[str, AnyArray]
) -> int:
    """Return N, the length of all columns; raise an error if they differ or are empty."""
    named = {} if ids is None else {"ids": ids}
    named |= proxies
    named |= {f"column '{name}'": array for name, array in other_columns.items()}
    if not named:
        raise InputError("the population is empty", action="Give a proxy, ids or groups.")
    size = arrays.same_length(**named)
    if size == 0:
        raise InputError("the population is empty", given="0 units", allowed="at least one")
    return size


def from_estimator(model: Any, rows: Any, columns: dict[str, Any]) -> Population:
    """Build a population from the confidence of a classifier; see `Population.from_estimator`."""
    classes = getattr(model, "classes_", None)
    has_probabilities = hasattr(model, "predict_proba")
    has_scores = has_probabilities or hasattr(model, "decision_function")
    if classes is None or any(isinstance(entry, np.ndarray) for entry in classes) or not has_scores:
        raise InputError(
            "the model is not a fitted classifier with one answer per unit",
            given=type(model).__name__,
            allowed="a model with classes_, and predict_proba or decision_function",
            action="For any other model, give its predictions of the outcome to "
            "Population.from_arrays(proxy=…).",
        )
    if has_probabilities:
        scores = np.asarray(model.predict_proba(rows))
        proxy = accuracy(scores, name=CONFIDENCE)
    else:
        scores = np.asarray(model.decision_function(rows))
        proxy = margin(scores)
    # The decision function of two classes is one column, positive for the second class.
    if scores.ndim > 1:
        answers = scores.argmax(axis=1)
    else:
        answers = (scores > 0).astype(np.int64)
    # The index of a dataframe identifies its rows, unless ids are given.
    if columns.get("ids") is None:
        index = shared_index({"X": rows, **_columns_of(cast(declaration.ArrayKeywords, columns))})
        if index is not None:
            column_names = rows.columns if isinstance(rows, WithColumns) else ()
            refuse_two_ids(index_name(index), id_columns(map(str, column_names)), "X", keyword="ids")
            columns["ids"] = index
            columns["id_name"] = columns.get("id_name") or index_name(index)
    groups = {**(columns.pop("groups", None) or {}), PREDICTED_CLASS: np.asarray(classes)[answers]}
    return Population.from_arrays(proxy=proxy, groups=groups, predicted=PREDICTED_CLASS, **columns)


Population.builders |= {"arrays": from_arrays, "estimator": from_estimator}


def read(path: str | os.PathLike[str], keywords: declaration.FileKeywords) -> Population:
    """Build a population from a file; see `Population.read`."""
    if not isinstance(path, str | os.PathLike):
        action = "Read a dataframe with Population.from_table, arrays with Population.from_arrays."
        raise InputError("a file must be given by its path", given=type(path).__name__, action=action)
    columns: Any = dict(keywords)
    options: Any = {name: columns.pop(name) for name in ReadOptions.__annotations__ if name in columns}
    if columns.get("history") is not None:
        limits: Any = {name: options[name] for name in ("threads", "memory") if name in options}
        # A history may be a large file, which is read within the same limits.
        columns["history"] = as_history(columns["history"], read_options=limits)

    def has_columns(names: Sequence[str]) -> bool:
        """Return whether a table with these columns has the declared columns."""
        try:
            declaration.declare_columns(columns, names, str(path))
        except InputError:
            # Another sheet of a workbook may have the columns; if none has, the reader raises the error.
            return False
        return True

    return _population_of_table(open_table(path, options, has_columns), columns, options.get("threads"))


def from_table(table: object, keywords: declaration.TableKeywords) -> Population:
    """Build a population from a dataframe or an Ibis table; see `Population.from_table`."""
    return _population_of_table(frame_table(table), keywords)


Population.builders |= {"file": read, "table": from_table}


def _population_of_table(
    table: Table, keywords: declaration.TableKeywords, threads: int | None = None
) -> Population:
    """Return the population of a table: in memory if it fits, else in the engine of the table."""
    if table.log is not None:
        keywords = declaration.with_log_defaults(keywords, table.log)
    if keywords.get("history") is not None:
        keywords = {**keywords, "history": as_history(keywords["history"])}
    declared = declaration.declare_columns(keywords, table.names, table.table_name, table.index)
    rows_or_source = table.read_columns(declared)
    if isinstance(rows_or_source, Rows):
        population = _population_in_memory(rows_or_source, declared, threads)
        if population is not None:
            return population
        rows_or_source = rows_or_source.to_source()
    # Imported late, because they import Ibis, which takes long.
    from stratal.population.queries.table import table_population
    from stratal.population.queries.units import with_derived_columns

    row_base = ROW_BASE if declared.is_numbered_by_row(table.names) else None
    return table_population(*with_derived_columns(rows_or_source, declared), row_base)


def _population_in_memory(
    rows: Rows, declared: declaration.Declaration, threads: int | None
) -> ArrayPopulation | None:
    """Return a population in memory; None if the queries of an engine must build it.

    They must if the rows do not fit in memory, if columns are computed from others, and if the table is
    invalid.
    """
    types = rows.types()
    is_numbered_by_row = declared.is_numbered_by_row(types)
    columns = _column_expressions(rows, declared, types, is_numbered_by_row)
    needs_queries = declared.softmax or declared.answers or declared.history or declared.second_moments
    if needs_queries or None in columns.values() or not columns:
        return None
    arrow_columns = rows.arrow(*map(str, columns.values()))
    if not arrow_columns or not len(arrow_columns[0]):
        return None
    values = {
        (role, name): object_column(column) if role == "shown" else _numpy_column(column)
        for (role, name), column in zip(columns, arrow_columns, strict=True)
    }
    if any(column is None for column in values.values()):
        return None
    numbers = np.arange(len(arrow_columns[0])) + ROW_BASE
    ids: Any = numbers if is_numbered_by_row else values["id", declared.id]
    # The batches of a table have this order, too. Sums over batches, as in a regression, are rounded in the
    # same way only for units in the same order.
    order = np.argsort(np.asarray(ids).astype(np.str_), kind="stable")
    if declared.may_be_softmax and is_softmax(rows.row_sum_facts(declared.proxies)):
        return None
    sorted_values = {key: np.asarray(column)[order] for key, column in values.items()}
    keywords = _array_keywords(declared, sorted_values) | {"ids": ids[order], "threads": threads}
    try:
        population = from_arrays(cast(declaration.ArrayKeywords, keywords))
    except InputError:
        # The queries of an engine raise the error again, with the row in the file.
        return None
    population.notes = (*rows.notes, *population.notes)
    if is_numbered_by_row:
        population.row_base = ROW_BASE
    return population


def _column_expressions(
    rows: Rows, declared: declaration.Declaration, types: Mapping[str, str], is_numbered_by_row: bool
) -> dict[tuple[str, str], str | None]:
    """Return the SQL of each declared column by role and name; None for a type without a NumPy equivalent.

    The roles are `id`, `number`, `group` and `shown`.
    """
    columns: dict[tuple[str, str], str | None] = {}
    if not is_numbered_by_row:
        columns["id", declared.id] = rows.columns[declared.id]
    for name in declared.number_columns:
        columns["number", name] = rows.as_number(name, types[name])
    for name in declared.groups:
        columns["group", name] = rows.as_category(name, types[name])
    for name in declared.shown:
        is_same_everywhere = types[name] in _SHOWN_TYPES
        columns["shown", name] = rows.columns[name] if is_same_everywhere else None
    return columns


def _array_keywords(
    declared: declaration.Declaration, values: Mapping[tuple[str, str], AnyArray]
) -> Keywords:
    """Return a declaration as keywords of `from_arrays`, given its columns (N,) by role and name."""
    return {
        "bounds": declared.bounds,
        "scaled": declared.scaled,
        "label": declared.label,
        "predicts": declared.predicts,
        "tags": declared.tags,
        "id_name": declared.id,
        **declared.roles.keywords,
        "proxy": {name: values["number", name] for name in declared.proxies},
        "features": {name: values["number", name] for name in declared.features},
        "groups": {name: values["group", name] for name in declared.groups},
        "show": {name: values["shown", name] for name in declared.shown},
    }


def _numpy_column(column: Any) -> AnyArray | None:
    """Return numbers or texts (N,); None if one is missing, or if the texts need too much memory in NumPy."""
    if column.null_count:
        return None
    if str(column.type) != "string":
        return numpy_array(column)
    texts = column.to_pylist()
    # NumPy stores each text with four bytes per character of the longest text.
    if 4 * len(texts) * max(map(len, texts)) > MAX_MEMORY_BYTES:
        return None
    return np.array(texts, object)


# DuckDB types of columns to show whose values are the same in memory and from an engine.
_SHOWN_TYPES = (*INTEGER_TYPES, "varchar", "double", "float", "boolean", "date")
