"""Building a population from a file, a dataframe or a table: in memory where it fits, else where it is."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from stratal.arrays import (
    AnyArray,
    BoolArray,
    FloatArray,
    IntArray,
    array_of,
    checked_threads,
    finite_vector,
    frozen,
    is_null,
    same_length,
)
from stratal.errors import InputError
from stratal.population.declaration import (
    CONFIDENCE,
    OWN_STRATUM_GROUP,
    PREDICTED,
    ROW,
    ArrayKeywords,
    Declaration,
    FileKeywords,
    TableKeywords,
    agreement_weights,
    checked_missing,
    declaration_of,
    is_softmax_of,
    label_bounds,
    middle,
    own_stratum_note,
    refuse_taken,
    with_log,
)
from stratal.population.in_memory import ArrayPopulation, ArrayUnits, object_column
from stratal.population.past import as_history
from stratal.population.population import Population
from stratal.population.summary import ProxyInfo, proxy_info_for
from stratal.proxy.history import HISTORY
from stratal.proxy.proxy import Proxy, accuracy, margin
from stratal.randomness import id_array
from stratal.tables.frames import frame_table
from stratal.tables.readers import open_table
from stratal.tables.rows import MOST_BYTES, WHOLE, Rows
from stratal.tables.source import FileReading, Table


def from_arrays(given: ArrayKeywords) -> ArrayPopulation:
    """Build a population from arrays; see `Population.from_arrays`."""
    named, bounds = _named_proxies(given.get("proxy")), given.get("bounds")
    groups, ids, threads = dict(given.get("groups") or {}), given.get("ids"), given.get("threads")
    own, notes = None, list[str]()
    absent = _filled(named, bounds) if checked_missing(given.get("missing")) else None
    if absent is not None:
        own, notes = OWN_STRATUM_GROUP, [own_stratum_note(int(absent.sum()))]
        groups[own] = np.where(absent, "missing", "known")
    on_scale = bounds, given.get("scaled"), label_bounds(given.get("label"))
    features = _named_features(given.get("features"))
    if given.get("history") is not None:
        past, items = as_history(given["history"], ids), ids
        if items is None:
            others = (*named.values(), *groups.values(), *features.values())
            items = np.arange(len(getattr(others[0], "values", others[0])) if others else len(past.ids))
        columns = dict(zip(past.names, past.of(items).T, strict=True))
        refuse_taken(columns, (*named, *features), "the arrays")
        notes.append(past.note(past.known(items), len(items)))
        own_scale = bounds in (None, (0.0, 1.0))  # that of right and wrong
        limits = (0.0, 1.0) if own_scale else None
        made = Proxy(values=columns.pop(HISTORY), scaled=own_scale, bounds=limits, name=HISTORY)
        named, features = {HISTORY: made, **named}, {**features, **columns}
    described = [describe_proxy(name, entry, *on_scale) for name, entry in named.items()]
    units = ArrayUnits(
        values={info.name: values for info, values, _ in described},
        second={info.name: moments for info, _, moments in described},
        ids=None if ids is None else _ids(ids),
        groups={name: _group_column(name, values) for name, values in groups.items()},
        features={name: finite_vector(name, values) for name, values in features.items()},
        shown={name: frozen(object_column(v), object) for name, v in (given.get("show") or {}).items()},
    )
    predicted = given.get("predicted")
    if predicted is not None and predicted not in units.groups:
        raise InputError(f"predicted is not a group column: {predicted!r}", action="Give it in groups= too.")
    return ArrayPopulation.of(
        units,
        size=_common_size(units),
        proxies=tuple(info for info, _, _ in described),
        id_name=given.get("id_name", "id"),
        predicted=predicted,
        notes=tuple(notes),
        own_stratum=own,
        threads=None if threads is None else checked_threads(threads),
    )


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

    Examples
    --------
    >>> describe_proxy("margin", [-3.0, 2.0], None, None)[0].scaled
    False
    """
    if hasattr(entry, "second_moments"):
        info = ProxyInfo(name=name, scaled=entry.scaled, bounds=entry.bounds)
        return info, finite_vector(name, entry.values), entry.second_moments
    values = finite_vector(name, entry)
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    return proxy_info_for(name, low, high, bounds, scaled, label=label), values, None


def _filled(named: dict[str, Any], bounds: tuple[float, float] | None) -> BoolArray | None:
    """Put the middle of what the outcome may be where a proxy is missing; return where (N,), if anywhere."""
    arrays = {n: array_of(entry) for n, entry in named.items() if not hasattr(entry, "second_moments")}
    columns = {name: array.astype(np.float64) for name, array in arrays.items()}
    absent = np.any([np.isnan(values) for values in columns.values()], axis=0)
    if not np.any(absent):
        return None
    for name, values in columns.items():
        known = values[~absent]
        ends = (float(known.min()), float(known.max())) if len(known) else (None, None)
        named[name] = np.where(absent, middle(bounds, *ends), values)
    return np.asarray(absent)


def _named_proxies(proxy: Any) -> dict[str, Any]:
    if proxy is None:
        return {}
    if isinstance(proxy, Mapping):
        return dict(proxy)
    return {str(getattr(proxy, "name", None) or "proxy"): proxy}


def _named_features(features: Any) -> dict[str, Any]:
    """Return feature columns by name; a matrix (N, d), such as embeddings, becomes d columns."""
    if features is None:
        return {}
    if not hasattr(features, "items"):
        features = {"feature": features}
    named: dict[str, Any] = {}
    for name, values in features.items():
        matrix = values if hasattr(values, "ndim") else np.asarray(values)
        parts = {f"{name}_{at}": matrix[:, at] for at in range(matrix.shape[1])} if matrix.ndim == 2 else {}
        named |= parts if matrix.ndim == 2 else {name: values}
    return named


def _group_column(name: str, values: Any) -> AnyArray:
    # A list is taken as objects: an array of text drops a NUL at the end.
    array = object_column(values) if isinstance(values, list | tuple) else array_of(values)
    what = f"group column '{name}' cannot be a group"
    if array.ndim != 1 or array.dtype.kind in "SVc":
        given = f"shape {array.shape}, dtype {array.dtype}"
        raise InputError(what, given=given, allowed="text, numbers or dates, one per unit")
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


def _moment_text(text: str) -> str:
    """Return a moment as engines write it: a blank for the T, and no zeros at the end of a fraction."""
    whole, point, fraction = text.replace("T", " ").partition(".")
    return f"{whole}{point}{fraction}".rstrip("0").rstrip(".") if point else whole


def _missing(array: AnyArray, values: Any) -> Any:
    """Return which categories (N,) are masked, None, NaN or a dataframe's NA; a text never is."""
    if np.ma.is_masked(values):
        return np.ma.getmaskarray(values)
    if array.dtype.kind in "mM":
        return np.isnat(array)
    entries = array.tolist() if array.dtype.kind in "fO" else []
    return [is_null(entry) or bool(entry != entry) for entry in entries]


def _ids(given: Any) -> AnyArray:
    ids = id_array(given)
    blank = ids.dtype.kind == "U" and np.char.strip(ids) == ""
    if np.any(blank):
        raise InputError(
            f"an id is missing (empty, at position {np.argmax(blank)})", action="Every unit needs an id."
        )
    return ids


def _common_size(units: ArrayUnits) -> int:
    columns = {} if units.ids is None else {"ids": units.ids}
    columns |= units.values
    for kind in (units.groups, units.features, units.shown):
        columns |= {f"column '{name}'": column for name, column in kind.items()}
    if not columns:
        raise InputError("the population is empty", action="Give a proxy, ids or groups.")
    size = same_length(**columns)
    if size == 0:
        raise InputError("the population is empty", given="0 units", allowed="at least one")
    return size


def from_estimator(model: Any, rows: Any, columns: dict[str, Any]) -> Population:
    """Build a population from a classifier's own confidence; see `Population.from_estimator`."""
    classes = getattr(model, "classes_", None)
    if classes is None or any(isinstance(entry, np.ndarray) for entry in classes):
        raise InputError(
            "the model is not a fitted classifier with one answer per unit",
            given=type(model).__name__,
            allowed="a model with classes_, and predict_proba or decision_function",
            action="Give any other model's own prediction of the outcome to Population.from_arrays(proxy=…).",
        )
    proxy, answers = _confidence(model, rows)
    groups = {**(columns.pop("groups", None) or {}), PREDICTED: np.asarray(classes)[answers]}
    return Population.from_arrays(proxy=proxy, groups=groups, predicted=PREDICTED, **columns)


def _confidence(model: Any, rows: Any) -> tuple[Any, AnyArray]:
    """Return the proxy of each row (N,) and the number of its answer's class (N,)."""
    if hasattr(model, "predict_proba"):
        probabilities = np.asarray(model.predict_proba(rows))
        return accuracy(probabilities, name=CONFIDENCE), probabilities.argmax(axis=1)
    if not hasattr(model, "decision_function"):
        raise InputError(
            "the model gives no confidence",
            given=type(model).__name__,
            allowed="predict_proba or decision_function",
            action="Calibrate it: sklearn.calibration.CalibratedClassifierCV.",
        )
    scores = np.asarray(model.decision_function(rows))
    if scores.ndim == 1:
        return margin(scores), (scores > 0).astype(np.int64)
    return margin(scores), scores.argmax(axis=1)


Population.makers |= {"arrays": from_arrays, "estimator": from_estimator}


def read(path: str | os.PathLike[str], given: FileKeywords) -> Population:
    """Build a population from a file; see `Population.read`."""
    columns: Any = dict(given)
    names = (entry.name for entry in fields(FileReading))
    reading = FileReading(**{name: columns.pop(name) for name in names if name in columns})

    def fits(names: Sequence[str]) -> bool:
        try:
            declaration_of(columns, names, str(path))
        except InputError:
            return False
        return True

    return _of_table(open_table(path, reading, fits), columns, reading.threads)


def from_table(table: Any, given: TableKeywords) -> Population:
    """Build a population from a dataframe or an Ibis table; see `Population.from_table`."""
    return _of_table(frame_table(table), given)


Population.makers |= {"file": read, "table": from_table}


def _of_table(table: Table, given: TableKeywords, threads: int | None = None) -> Population:
    given = given if table.log is None else with_log(given, table.log)
    if given.get("history") is not None:
        given = {**given, "history": as_history(given["history"])}
    declared = declaration_of(given, table.names, table.label)
    taken = table.take(declared)
    if isinstance(taken, Rows):
        try:
            return _in_memory(taken, declared, threads)
        except _NotInMemoryError:
            taken = taken.source()
    from stratal.population.queries.table import table_population
    from stratal.population.queries.units import prepared  # these load Ibis, which takes long

    return table_population(*prepared(taken, declared))


class _NotInMemoryError(Exception):
    """What does not fit in memory, or is refused or derived by queries, which name the row."""


def _in_memory(rows: Rows, declared: Declaration, threads: int | None) -> ArrayPopulation:
    """Return units as arrays."""
    types = rows.types()
    numbered = declared.id == ROW and ROW not in types
    wanted = [
        *([] if numbered else [rows.columns[declared.id]]),
        *(rows.as_number(name, types[name]) for name in declared.numbers),
        *(rows.as_category(name, types[name]) for name in declared.groups),
        *(rows.columns[name] if types[name] in _SHOWN else None for name in declared.shown),
        *(rows.as_category(name, types[name]) for name in declared.answer_columns),
    ]
    by_query = declared.softmax or declared.alike or (declared.answers and not declared.agreements)
    if by_query or None in wanted or not wanted:
        raise _NotInMemoryError
    found = rows.arrow(*map(str, wanted))
    if not found or not len(found[0]):
        raise _NotInMemoryError
    size, remaining = len(found[0]), iter(found)
    ids = np.arange(1, size + 1) if numbered else _held_ids(next(remaining))
    order = np.argsort(ids.astype(np.str_), kind="stable")  # as the batches of a table
    ids = frozen(ids[order])
    numbers = {name: frozen(_held_numbers(next(remaining))[order]) for name in declared.numbers}
    groups = {name: frozen(_held_texts(next(remaining))[order]) for name in declared.groups}
    shown = {name: frozen(object_column(next(remaining))[order]) for name in declared.shown}
    notes = rows.notes
    if declared.answers:
        declared, made, more = _held_agreements(declared, ids, _held_answers(list(remaining))[order])
        numbers, notes = numbers | made, (*notes, *more)
    if declared.history is not None:
        past, declared = declared.history, declared.with_history()
        numbers |= {name: frozen(column) for name, column in zip(past.names, past.of(ids).T, strict=True)}
        notes = (*notes, past.note(past.known(ids), size))
    values = {name: numbers[name] for name in declared.proxies}
    if declared.may_be_softmax and is_softmax_of(list(values.values())):
        raise _NotInMemoryError
    infos = declared.proxy_infos({name: (float(v.min()), float(v.max())) for name, v in values.items()})
    second = {info.name: numbers[info.second_moment] if info.second_moment else None for info in infos}
    units = ArrayUnits(
        values=values,
        second=second,
        ids=ids,
        groups=groups,
        features={name: numbers[name] for name in declared.features},
        shown=shown,
    )
    return ArrayPopulation.of(
        units,
        size=size,
        proxies=infos,
        id_name=declared.id,
        predicted=declared.predicted,
        notes=notes,
        threads=threads,
    )


def _held_answers(columns: Sequence[Any]) -> IntArray:
    """Return answers (N, J) as numbers that are equal where the texts are, −1 where there is none."""
    import pyarrow as pa

    texts = pa.concat_arrays([chunk for column in columns for chunk in column.chunks])
    codes = texts.dictionary_encode().indices.cast("int64").fill_null(-1).to_numpy()
    return np.asarray(codes.reshape(len(columns), -1).T)


def _held_agreements(
    declared: Declaration, ids: AnyArray, codes: IntArray
) -> tuple[Declaration, dict[str, FloatArray], tuple[str, ...]]:
    """Return what is declared with the proxies made of answers (N, J), their values, and notes."""
    from stratal.proxy.agreement import chosen_items

    weights, notes = agreement_weights(declared, codes[chosen_items(len(codes), ids)])
    place = {name: at for at, name in enumerate(declared.answer_columns)}
    made = {}
    for name, found in weights.items():
        peers = [place[one] for one in declared.peers(declared.agreements[name])]
        if np.any(codes[:, peers[0]] < 0):
            raise _NotInMemoryError
        made[name] = frozen(found.shares(codes[:, peers]))
    return declared.with_agreements(made), made, notes


_SHOWN = (*WHOLE, "varchar", "double", "float", "boolean", "date")


def _held_ids(column: Any) -> AnyArray:
    """Return ids, of which none is missing or stands twice, as integers where they are, else as text."""
    try:
        ids = _ids(_held_texts(column) if str(column.type) == "string" else column)
    except InputError:
        raise _NotInMemoryError from None
    if len(set(ids.tolist())) < len(ids):
        raise _NotInMemoryError
    return ids


def _held_numbers(column: Any) -> FloatArray:
    """Return numbers, of which each is finite."""
    values: FloatArray = column.to_numpy()
    if column.null_count or not np.all(np.isfinite(values)):
        raise _NotInMemoryError
    return values


def _held_texts(column: Any) -> AnyArray:
    """Return texts as NumPy has them: as long as the longest, and without NUL at the end."""
    texts = column.to_pylist()
    if column.null_count or 4 * len(texts) * max(map(len, texts)) > MOST_BYTES:
        raise _NotInMemoryError
    if any("\0" in text for text in set(texts)):
        raise _NotInMemoryError
    return np.array(texts, dtype=np.str_)
