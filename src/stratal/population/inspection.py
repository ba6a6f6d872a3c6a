"""What is in a file of predictions: its columns, and which of them could serve as id and proxy."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stratal.population.declaration import OWN_STRATUM, ROW, Declaration, Declared
from stratal.population.judged_models import judged_models
from stratal.population.queries.derived import ROUNDED, class_names, is_softmax
from stratal.population.queries.units import POINT, number_of_text, with_point
from stratal.tables.engine import some_columns
from stratal.tables.logs.log import ID_NAMES
from stratal.tables.readers import read_source
from stratal.tables.source import FileReading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from stratal.population.population import Population
    from stratal.tables.source import Source

LIKELY_PROXIES = ("proxy", "confidence", "score", "prob", "probability", "judge", "p")
"""Names by which a proxy is guessed, best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _EveryColumn(Declared):
    """A request for all columns of a file as they are."""

    def among(self, names: Iterable[str], label: str) -> Declaration:
        existing = list(names)
        return Declaration(id=existing[0], shown=tuple(existing))


_FACTS = ("present", "distinct", "numbers", "nan", "minimum", "maximum", "mean")
_COLUMNS_AT_ONCE, _CELLS_AT_ONCE = 100, 20_000_000
_HEAD = 1_000
"""Rows that are looked at for numbers that are written as text."""

_FEW_ROWS, _FEW_CELLS, _MANY_COLUMNS = 10_000, 2_000_000, 2_000
_NARROW = 20
"""Columns up to which one query costs less than pandas, which is loaded to set them below each other."""


def describe_columns(path: str | os.PathLike[str], **reading: Any) -> dict[str, Any]:
    """Return the number of rows and, per column, kind, missing values, distinct values and range.

    Parameters
    ----------
    path : str or path
        Parquet, CSV or JSON Lines.
    **reading
        `delimiter`, `directory`, `remote`, `engine` and others, as in `Population.read`.

    Returns
    -------
    dict
        `rows`; `columns`: name, kind (number or text), missing, distinct, minimum, maximum, mean; `softmax`:
        the columns, or a pattern of them, that add up to 1; `models` of a table with a row for each item and
        model, as `judged_models` tells them; `notes`; `log`, of an evaluation tool's log: its tool, proxy
        and cluster.

    Raises
    ------
    InputError
        For a file that does not exist or cannot be read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "predictions.csv")
    >>> _ = path.write_text("id,proxy\\na,0.5\\nb,0.7\\n")
    >>> describe_columns(path)["rows"]
    2
    """
    source, declared = read_source(path, _EveryColumn(), FileReading(**reading))
    one = _of_columns(source, declared.shown[:1])
    rows = int(source.first(one.aggregate(n=one.count()))["n"])
    described = _every_column(source, declared.shown, rows)
    notes, log = [*source.notes], source.log
    if log is not None:
        notes.append(f"its scores serve as labels too: --value {log.proxies[0]}")
        known = {"tool": log.tool, "proxy": log.proxies[0], "cluster": log.cluster}
        return {
            "rows": rows,
            "columns": described,
            "softmax": None,
            "models": None,
            "notes": notes,
            "log": known,
        }
    notes += _with_commas(source, [row["name"] for row in described if row["kind"] == "text"])
    added = softmax_among(source, described)
    if added is not None:
        notes.append(f"{len(added)} columns add up to 1 in each row: a softmax ({added[0]} … {added[-1]})")
    pattern = None if added is None else as_pattern(added, declared.shown)
    models = judged_models(source, described, rows)
    if models is not None:
        notes.append(f"{models['column']!r} names {models['count']:,} models: a plan takes the rows of one")
    return {"rows": rows, "columns": described, "softmax": pattern, "models": models, "notes": notes}


def column_names(path: str | os.PathLike[str], **reading: Any) -> tuple[str, ...]:
    """Return the names of a file's columns; `reading` as for `describe_columns`."""
    return tuple(read_source(path, _EveryColumn(), FileReading(**reading))[1].shown)


def _with_commas(source: Source, names: Sequence[str]) -> list[str]:
    """Return a note for each column of text whose first rows are numbers with a comma or a percent sign."""
    texts = [name for name in names if source.is_text(name)][:_COLUMNS_AT_ONCE]
    if not texts:
        return []
    found = _of_first_rows(source, texts, there=_itself, read=with_point, plain=number_of_text)
    numbers = [name for name, rows in found.items() if rows["plain"] < rows["there"] == rows["read"]]
    return [f"{name!r} holds numbers with a decimal comma or a percent sign. {POINT}" for name in numbers]


def softmax_among(source: Source, columns: Sequence[dict[str, Any]]) -> tuple[str, ...] | None:
    """Return the columns of probabilities that add up to 1 in each row, where there is one such group.

    All columns of probabilities are tried together, then those whose names begin alike.
    """
    probable = [
        row["name"]
        for row in columns
        if row["kind"] == "number" and not row["missing"] and row["minimum"] >= 0 and row["maximum"] <= 1
    ]
    means = {row["name"]: row["mean"] for row in columns}
    families: dict[str, list[str]] = {}
    for name in probable:
        families.setdefault(re.split(r"[^A-Za-z]", name)[0].casefold(), []).append(name)
    for group in [*families.values(), probable]:
        if (
            len(group) > 1
            and abs(sum(means[name] for name in group) - 1) <= ROUNDED
            and is_softmax(source, group)
        ):
            return tuple(group)
    return None


def as_pattern(names: Sequence[str], existing: Sequence[str]) -> str:
    """Return how to name some columns: a pattern that fits them alone, or all names.

    Examples
    --------
    >>> as_pattern(["p_cat", "p_dog"], ["id", "p_cat", "p_dog"]), as_pattern(["cat", "dog"], ["cat", "dog"])
    ('p_*', 'cat,dog')
    """
    short = names[0][: len(names[0]) - len(class_names(names)[0])]
    if short and [name for name in existing if name.startswith(short)] == list(names):
        return f"{short}*"
    return ",".join(names)


def _every_column(source: Source, names: Sequence[str], rows: int) -> list[dict[str, Any]]:
    """Describe all columns: a query per block; few rows of many columns with those of one kind stacked."""
    found: dict[str, dict[str, Any]] = {}
    if _is_duckdb(source) and len(names) > _NARROW and 0 < rows <= _FEW_ROWS:
        for block in _blocks(names, min(_MANY_COLUMNS, _FEW_CELLS // rows)):
            found |= _few_rows(source, block)
    else:
        for block in _blocks(names, min(_COLUMNS_AT_ONCE, _CELLS_AT_ONCE // max(rows, 1))):
            found |= _side_by_side(source, block)
    return [_described(name, rows, dict.fromkeys(_FACTS) | found[name]) for name in names]


def _blocks(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (names[start : start + max(size, 1)] for start in range(0, len(names), max(size, 1)))


def _by_type(source: Source, names: Sequence[str]) -> list[list[str]]:
    """Return the columns of each type; those that are nested or of an unusual type each alone."""
    schema = source.table.schema()
    types: dict[Any, list[str]] = {}
    for name in names:
        kind = schema[source.columns[name]]
        plain = kind.is_numeric() or kind.is_string() or kind.is_boolean() or kind.is_temporal()
        types.setdefault(kind if plain else name, []).append(name)
    return list(types.values())


def _few_rows(source: Source, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return what is asked of columns of few rows, which are read once."""
    kinds = _by_type(source, names)
    found: dict[str, dict[str, Any]] = {}
    for block in _blocks([kind[0] for kind in kinds if len(kind) == 1], _COLUMNS_AT_ONCE):
        found |= _side_by_side(source, block)
    several = [kind for kind in kinds if len(kind) > 1]
    if not several:
        return found
    read = source.read([name for kind in several for name in kind])
    for kind in several:
        found |= _below_each_other(source, kind, read.select([source.columns[name] for name in kind]))
    return found


def _below_each_other(source: Source, names: Sequence[str], read: Any) -> dict[str, dict[str, Any]]:
    """Return what is asked of columns of one type by one group-by: as many expressions as for one column."""
    import ibis
    import pyarrow as pa

    values = pa.chunked_array([chunk for column in read.columns for chunk in column.chunks])
    which = pa.array(np.repeat(np.arange(len(names)), read.num_rows))
    long = ibis.memtable(pa.table({"which": which, "value": values}))
    facts = _facts(long.value, source.is_text(names[0]))
    rows = source.run(long.group_by("which").aggregate(**facts)).to_pylist()
    return {names[row.pop("which")]: row for row in rows}


def _side_by_side(source: Source, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return what is asked of some columns, by one query."""
    few, words = _of_columns(source, names), _words(source, names)
    facts: dict[str, Any] = {}
    for number, name in enumerate(names):
        asked = _facts(few[source.columns[name]], source.is_text(name), name in words)
        facts |= {f"{key}{number}": fact for key, fact in asked.items()}
    found = source.first(few.aggregate(**facts))
    return {name: {key: found.get(f"{key}{number}") for key in _FACTS} for number, name in enumerate(names)}


def _words(source: Source, names: Sequence[str]) -> set[str]:
    """Return the columns of text whose first rows are not all numbers, which need not be cast."""
    texts = [name for name in names if source.is_text(name)]
    if not texts:
        return set()
    found = _of_first_rows(source, texts, there=_itself, read=number_of_text)
    return {name for name, rows in found.items() if rows["read"] < rows["there"]}


def _itself(column: Any) -> Any:
    return column


def _of_first_rows(
    source: Source, names: Sequence[str], **ways: Callable[[Any], Any]
) -> dict[str, dict[str, int]]:
    """Return how many of a column's first values are there, read in each of several ways."""
    columns = [source.columns[name] for name in names]
    few = _of_columns(source, names)
    head = few.limit(_HEAD).select(**{f"k{k}": few[column] for k, column in enumerate(columns)})
    counts = {
        f"{way}{k}": read(head[f"k{k}"]).count() for k in range(len(names)) for way, read in ways.items()
    }
    found = source.first(head.aggregate(**counts))
    return {name: {way: int(found[f"{way}{k}"]) for way in ways} for k, name in enumerate(names)}


def _of_columns(source: Source, names: Sequence[str]) -> Any:
    """Return the table with some of its columns alone, where each that it has costs each query."""
    columns = [source.columns[name] for name in names]
    return some_columns(source.backend, source.table, columns) if _is_duckdb(source) else source.table


def _is_duckdb(source: Source) -> bool:
    return bool(source.backend.name == "duckdb")


def _facts(column: Any, text: bool, words: bool = False) -> dict[str, Any]:
    """Return what is asked of a column; of `words` nothing that numbers are asked."""
    facts = {"present": column.count(), "distinct": column.nunique()}
    if words:
        return facts
    if text or column.type().is_numeric() or column.type().is_boolean():
        values = (number_of_text(column) if text else column).cast("float64")
        finite = values.isnan().ifelse(None, values)
        ranges = {"minimum": finite.min(), "maximum": finite.max(), "mean": finite.mean()}
        facts |= {"numbers": finite.count(), "nan": values.isnan().sum(), **ranges}
    return facts


def _described(name: str, rows: int, found: dict[str, Any]) -> dict[str, Any]:
    nan = int(found["nan"] or 0)
    is_number = bool(found["numbers"] and found["numbers"] + nan == found["present"])
    ranges = {key: found[key] if is_number else None for key in ("minimum", "maximum", "mean")}
    return {
        "name": name,
        "kind": "number" if is_number else "text",
        "missing": rows - found["present"] + (nan if is_number else 0),
        "distinct": found["distinct"] - (1 if is_number and nan else 0),
        **ranges,
    }


def describe_proxies(population: Population) -> dict[str, Any]:
    """Return, per proxy of a checked population, its scale, mean and deciles.

    Parameters
    ----------
    population : Population

    Returns
    -------
    dict
        `population_size`, `proxies`: name, scaled, bounds, mean, distinct, quantiles (0, 10, …, 100 %), and
        `groups`: the number of levels of each.

    Examples
    --------
    >>> from stratal.population import Population
    >>> describe_proxies(Population.from_arrays(proxy=[0.1, 0.5, 0.9]))["proxies"][0]["mean"]
    0.5
    """
    proxies = []
    for info in population.proxies:
        picture = population.distribution(info.name)
        deciles = np.searchsorted(picture.counts.cumsum(), np.linspace(0, 1, 11) * picture.size)
        quantiles = picture.values[np.minimum(deciles, len(picture.values) - 1)]
        proxies.append(
            {
                "name": info.name,
                "scaled": info.scaled,
                "bounds": None if info.bounds is None else list(info.bounds),
                "mean": picture.mean,
                "bins": len(picture.values),
                "quantiles": quantiles.tolist(),
            }
        )
    groups = {name: len(population.levels(name)) for name in population.group_names}
    found = {"population_size": population.size, "proxies": proxies, "groups": groups}
    return found | ({"notes": list(population.notes)} if population.notes else {})


def suggestion(
    columns: dict[str, Any], id_name: str | None, proxy: str | None, softmax: str | None = None
) -> list[str]:
    """Return the options that a next command could take: `--id`, `--proxy` or `--softmax`, `--missing`.

    Examples
    --------
    >>> found = {"rows": 2, "columns": [
    ...     {"name": "key", "kind": "text", "missing": 0, "distinct": 2, "minimum": None, "maximum": None},
    ...     {"name": "score", "kind": "number", "missing": 0, "distinct": 2, "minimum": 0.1, "maximum": 0.9}]}
    >>> suggestion(found, None, None)
    ['--id', 'key', '--proxy', 'score']
    """
    found, models = columns["columns"], columns.get("models") or {}
    chosen_id = (
        id_name
        or models.get("id")
        or _likeliest(
            [row["name"] for row in found if row["name"] and _may_be_id(row, columns["rows"])], ID_NAMES
        )
    )
    first = ["--id", chosen_id or ROW]
    chosen_softmax = softmax or columns.get("softmax")
    if chosen_softmax and proxy is None:
        return [*first, "--softmax", chosen_softmax]
    if proxy is not None:
        return [*first, "--proxy", proxy]
    numbers = [row for row in found if row["kind"] == "number" and row["name"] != chosen_id]
    scores = [row for row in found if "log" in columns and row["name"] == columns["log"]["proxy"]]
    chosen = scores[0] if scores else _likely_proxy(numbers)
    if chosen is None:
        return first
    kept = ["--missing", OWN_STRATUM] if chosen["missing"] else []
    return [*first, "--proxy", chosen["name"], *kept]


def _likely_proxy(numbers: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the column that is likeliest a proxy: of probabilities, best without gaps, or named like one."""
    probable = [row for row in numbers if row["minimum"] >= 0 and row["maximum"] <= 1]
    groups = ([row for row in probable if not row["missing"]], probable)
    for group in groups:
        name = _likeliest([row["name"] for row in group], LIKELY_PROXIES)
        if name is not None:
            return next(row for row in group if row["name"] == name)
    named = [row for row in numbers if any(word in row["name"].lower() for word in LIKELY_PROXIES[:-1])]
    return named[0] if named else None


def _may_be_id(row: dict[str, Any], rows: int) -> bool:
    """Return whether a column could hold ids: all there, all different, and no measurements."""
    if row["missing"] or row["distinct"] != rows:
        return False
    if row["kind"] == "text" or "id" in row["name"].lower():
        return True
    whole = float(row["minimum"]).is_integer() and float(row["maximum"]).is_integer()
    return whole and row["maximum"] - row["minimum"] >= rows - 1


def _likeliest(names: Sequence[str], likely: Sequence[str]) -> str | None:
    for word in likely:
        for name in names:
            if name.lower() == word:
                return name
    for word in likely[:-1]:
        for name in names:
            if word in name.lower():
                return name
    return names[0] if names else None
