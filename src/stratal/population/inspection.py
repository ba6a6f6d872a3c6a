"""Describe the columns of a file of predictions, and suggest the id and the proxy."""

from __future__ import annotations

import math
import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from stratal.arrays import number_of_text
from stratal.names import split_names
from stratal.population.column_names import ROW_NUMBER_ID
from stratal.population.declaration import OWN_STRATUM, Declaration
from stratal.population.proxy_info import infer_proxy_info
from stratal.population.softmax import SOFTMAX_TOLERANCE, class_names, is_softmax
from stratal.protocols import JsonDict, JsonMapping
from stratal.question.column_words import ID_NAMES, MODEL_NAMES
from stratal.question.recognition import StatedRoles, recognise, unreadable_score_note
from stratal.report.notes import NUMBERS_AS_TEXT, Note
from stratal.tables.column_facts import (
    PERCENTAGE_KIND,
    facts_of_column,
    facts_of_description,
    may_be_whole,
)
from stratal.tables.frames import register_columns
from stratal.tables.logs.log import Log
from stratal.tables.number_columns import (
    first_differing_entries,
    percentage_columns,
    rows_with_shares,
    share_range_sql,
)
from stratal.tables.number_format import DECIMAL_POINT_REMEDY, HEAD_ROWS, is_percentage
from stratal.tables.readers import open_table
from stratal.tables.source import ReadOptions, Rows, stack_columns, translate_engine_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stratal.population.population import Population
    from stratal.tables.source import Source


def judged_models(columns: Sequence[JsonMapping], rows: int) -> JsonDict | None:
    """Return the models of a table with a row for each item and model; None for a row per item.

    Parameters
    ----------
    columns : sequence of mapping
        `columns` of the result of `describe_columns`.
    rows : int
        Number of rows.

    Returns
    -------
    dict or None
        `column`, the column with the names of the models; `count`, their number; `id`, the column whose
        values occur once for each model, None if there is none.
    """
    named = {row["name"].casefold(): row for row in columns}
    model_column = next((named[name] for name in MODEL_NAMES if name in named), None)
    if model_column is None or model_column["missing"] or not 1 < model_column["distinct"] <= rows // 2:
        return None
    if any(row["distinct"] == rows and row["kind"] == "text" for row in columns):
        return None
    columns_once_per_model = [
        row for row in columns if row["distinct"] * model_column["distinct"] == rows and not row["missing"]
    ]
    ids = (
        row
        for row in columns_once_per_model
        if row is not model_column and (row["kind"] == "text" or "id" in row["name"].lower())
    )
    names = [row["name"] for row in ids]
    return {
        "column": model_column["name"],
        "count": model_column["distinct"],
        "id": next((name for name in names if name.lower() in ID_NAMES), names[0] if names else None),
    }


# First words of the names of columns with answers of models.
ANSWER_COLUMN_NAMES = ("answer", "choice", "model_answer", "model_output", "output", "pred", "response")

# Smallest number of columns with the same first word that are answers of several models. Two may be an answer
# and the correct answer.
_MIN_ANSWER_COLUMNS = 3

# Largest number of columns of one query. For text in a small table it is larger, since each query parses the
# file again. For JSON it is limited by the number of values.
_MAX_QUERY_COLUMNS = 500
_MAX_TEXT_COLUMNS = 2_000
_SMALL_TABLE_ROWS = 10_000
_MAX_JSON_VALUES = 2_000_000


def describe_columns(path: str | os.PathLike[str], **options: Unpack[ReadOptions]) -> JsonDict:
    """Return the number of rows and, per column, kind, missing values, distinct values and range.

    Parameters
    ----------
    path : str or path
        Parquet, CSV or JSON Lines.
    **options
        `delimiter`, `directory`, `remote`, `engine` and others, as in `Population.read`.

    Returns
    -------
    dict
        `rows`; `columns`: name, kind (number, text or percentage), missing, distinct, minimum, maximum, mean;
        `softmax`: the columns that add up to 1, or a pattern of them; `models`, for a table with a row for
        each item and model, as returned by `judged_models`; `notes`; `log`, for the log of an evaluation
        tool: its tool, proxy and cluster, the number of `failed` answers by filter or model, and of `missing`
        scores by column.

    Raises
    ------
    InputError
        For a file that does not exist or cannot be read.
    """
    table = open_table(path, options)
    names = list(dict.fromkeys(table.names))
    has_long_format = table.read_long_format is not None
    # In long format, the values are read group by group.
    initial_columns = () if has_long_format else tuple(names)
    source = table.read_columns(Declaration(id=names[0], shown=initial_columns))
    if isinstance(source, Rows):
        row_count, columns = _describe_rows(source, names, table.read_long_format)
    else:
        row_count, columns = _describe_source(source, names)
    notes = [*source.notes]
    description: JsonDict = {"rows": row_count, "columns": columns, "softmax": None, "models": None}
    description["notes"] = notes
    if table.log is not None:
        proxy = next(iter(table.log.proxies), None)
        if proxy is not None:
            notes.append(f"the scores of the log can also be used as labels: --value {proxy}")
        return description | {"log": _describe_log(table.log)}

    def read_again(names: Sequence[str]) -> Rows:
        """Return rows with at least these columns."""
        rows: Rows = source
        if has_long_format:
            rows = table.read_columns(Declaration(id=names[0], shown=tuple(names)))
        return rows

    softmax = models = None
    if isinstance(source, Rows):
        _describe_percentages(columns, read_again)
        notes += _number_format_notes(columns, read_again)
        softmax = softmax_among(
            columns, lambda names: rows_with_shares(read_again(names), names).row_sum_facts(names)
        )
        models = judged_models(columns, row_count)
    if softmax is not None:
        description["softmax"] = as_pattern(softmax, names)
        notes.append(
            f"{len(softmax)} columns add up to 1 in each row: a softmax ({softmax[0]} … {softmax[-1]})"
        )
    answers = answer_columns(columns)
    if answers:
        notes.append(
            f"{len(answers)} columns contain answers ({answers[0]} … {answers[-1]}): the number that agree "
            "with a model's answer predicts whether it is right. Name that model's column in --predicted"
        )
    if models is not None:
        rows = read_again([models["column"]])
        models["first"] = str(rows.query_row(f"min({rows.columns[models['column']]})")[0])
        description["models"] = models
        notes.append(
            f"{models['column']!r} names {models['count']:,} models: a plan uses the rows of one model"
        )
    return description


def _describe_log(log: Log) -> JsonDict:
    """Return the description of an evaluation tool's log; see `describe_columns`."""
    return {
        "tool": log.tool,
        "proxy": next(iter(log.proxies), None),
        "cluster": log.cluster,
        "failed": log.failed_by_variant,
        "missing": dict(log.missing),
    }


def _describe_percentages(columns: Sequence[JsonDict], read_again: Callable[[Sequence[str]], Rows]) -> None:
    """Describe columns of text in which every entry is a percentage as such, with the range of the shares."""
    text_columns = {row["name"]: row for row in columns if row["kind"] == "text"}
    names = list(text_columns)[:_MAX_QUERY_COLUMNS]
    if not names:
        return
    rows = read_again(names)
    types = rows.types()
    names = [name for name in names if types[name] == "varchar"]
    for name, facts in percentage_columns(rows, names).items():
        if facts.has_only_percentages:
            minimum, maximum, mean = rows.query_row(*share_range_sql(rows.columns[name], facts))
            shares = {"minimum": minimum, "maximum": maximum, "mean": mean}
            text_columns[name] |= {"kind": PERCENTAGE_KIND, **shares}


def _number_format_notes(
    columns: Sequence[JsonMapping], read_again: Callable[[Sequence[str]], Rows]
) -> list[Note]:
    """Return notes on columns of text that hold numbers, which cannot be read as such."""
    names = [row["name"] for row in columns if row["kind"] == "text"][:_MAX_QUERY_COLUMNS]
    if not names:
        return []
    rows = read_again(names)
    types = rows.types()
    names = [name for name in names if types[name] == "varchar"]
    notes = []
    for name, entries in rows.head(names, HEAD_ROWS).items():
        facts = facts_of_column(name, entries)
        if facts.is_number or facts.is_percentage:
            # An entry after the first rows is the reason why the column is text.
            differing_entries = first_differing_entries(rows, name, are_percentages=facts.is_percentage)
            facts = replace(facts, differing_entries=differing_entries)
        unreadable_score = unreadable_score_note(facts)
        if unreadable_score is not None:
            notes.append(Note(NUMBERS_AS_TEXT, unreadable_score))
            continue
        nonempty = [entry for entry in entries if entry]
        with_points = (entry.replace(",", ".").strip() for entry in nonempty if not is_percentage(entry))
        if _all_numbers(with_points) and not _all_numbers(nonempty):
            text = f"{name!r} contains numbers with a decimal comma or a percent sign. {DECIMAL_POINT_REMEDY}"
            notes.append(Note(NUMBERS_AS_TEXT, text))
    return notes


def _all_numbers(texts: Iterable[str]) -> bool:
    return not any(math.isnan(number_of_text(text)) for text in texts)


# Facts of a column in the order in which a query returns them; text has only the first two.
_FACT_NAMES = ("present", "distinct", "numbers", "nan", "minimum", "maximum", "mean")


def _describe_rows(rows: Rows, names: Sequence[str], read_long_format: Any) -> tuple[int, list[JsonDict]]:
    """Return the number of rows and the description of each column, from DuckDB without Ibis or PyArrow.

    `read_long_format` is as in `Table`.
    """
    types = rows.types()
    (size,) = rows.query_row("count(*)")
    descriptions: list[JsonDict] = []
    if rows.all_text and size <= _SMALL_TABLE_ROWS:
        max_columns = _MAX_TEXT_COLUMNS
    else:
        max_columns = _MAX_QUERY_COLUMNS
    if read_long_format is not None:
        max_columns = max(_MAX_QUERY_COLUMNS, min(_MAX_TEXT_COLUMNS, _MAX_JSON_VALUES // max(size, 1)))
    for start in range(0, len(names), max_columns):
        group = names[start : start + max_columns]
        if read_long_format is None:
            long_format = _text_columns_in_long_format(rows, group)
        else:
            long_format = read_long_format(group)
        facts = _query_facts(rows, group, types, long_format)
        descriptions += [
            _describe_column(name, size, facts.get(number, {})) for number, name in enumerate(group)
        ]
    return size, descriptions


def _query_facts(
    rows: Rows, names: Sequence[str], types: Any, long_format: Rows | None
) -> dict[int, JsonDict]:
    """Return the facts of columns by their position, from one group-by of their values in long format."""
    if long_format is None:
        texts = [f"CAST({rows.columns[name]} AS VARCHAR)" for name in names]
        numbers = [rows.as_number(name, types[name]) or "NULL::DOUBLE" for name in names]
        values = stack_columns(rows.from_clause, texts, numbers)
    else:
        number = str(long_format.as_number("text", "varchar"))
        values = long_format.sql(*long_format.columns.values(), number)
    aggregates = (
        "c0, count(c1), count(DISTINCT c1), count(finite), count(c2) - count(finite), "
        "min(finite), max(finite), avg(finite)"
    )
    finite = f"SELECT *, CASE WHEN NOT isnan(c2) THEN c2 END AS finite FROM ({values})"
    with translate_engine_errors(rows.table_name):
        answer = rows.connection.execute(f"SELECT {aggregates} FROM ({finite}) GROUP BY c0").fetchall()
    return {row[0]: dict(zip(_FACT_NAMES, row[1:], strict=True)) for row in answer}


def _text_columns_in_long_format(rows: Rows, names: Sequence[str]) -> Rows | None:
    """Return columns of text in long format; None for few columns, other types and too large tables."""
    if not rows.all_text or len(names) <= _MAX_QUERY_COLUMNS:
        return None
    # Late, because PyArrow takes long to load.
    import pyarrow as pa

    arrays = rows.arrow(*(rows.columns[name] for name in names))
    if arrays is None:
        return None
    columns = np.repeat(np.arange(len(arrays)), [len(column) for column in arrays])
    texts = pa.chunked_array([chunk for column in arrays for chunk in column.chunks], pa.string())
    stacked = register_columns(
        rows.connection, {"column": pa.chunked_array([columns]), "text": texts}, rows.table_name
    )
    return replace(stacked, all_text=True)


def _describe_source(source: Source, names: Sequence[str]) -> tuple[int, list[JsonDict]]:
    """Return the number of rows and the description of each column of a table on another engine."""
    # The queries import Ibis, which takes long, and which files do not need.
    from stratal.population.queries.units import is_nan
    from stratal.population.queries.units import text_number_expression as number_of

    aggregates = {"rows": source.table.count()}
    for number, name in enumerate(names):
        column = source.column(name)
        is_text = source.is_text(name)
        facts = [column.count(), column.nunique()]
        if is_text or column.type().is_numeric() or column.type().is_boolean():
            values = (number_of(column) if is_text else column).cast("float64")
            finite = is_nan(values).ifelse(None, values)
            ranges = finite.min(), finite.max(), finite.mean()
            facts += [finite.count(), is_nan(values).sum(), *ranges]
        aggregates |= {f"{key}{number}": fact for key, fact in zip(_FACT_NAMES, facts, strict=False)}
    row_of_facts = source.first_row(source.table.aggregate(**aggregates))
    columns = [
        _describe_column(
            name, row_of_facts["rows"], {key: row_of_facts.get(f"{key}{number}") for key in _FACT_NAMES}
        )
        for number, name in enumerate(names)
    ]
    return row_of_facts["rows"], columns


def softmax_among(
    columns: Sequence[JsonDict], totals: Callable[[Sequence[str]], JsonMapping]
) -> tuple[str, ...] | None:
    """Return the columns of probabilities that add up to 1 in each row; None if there are none.

    Columns with the same first word are tried first, then all columns of probabilities together.
    """
    probability_columns = [
        row["name"]
        for row in columns
        if row["kind"] != "text" and not row["missing"] and row["minimum"] >= 0 and row["maximum"] <= 1
    ]
    means = {row["name"]: row["mean"] for row in columns}
    families: dict[str, list[str]] = {}
    for name in probability_columns:
        families.setdefault(re.split(r"[^A-Za-z]", name)[0].casefold(), []).append(name)
    for group in [*families.values(), probability_columns]:
        # The means must add up to 1 as well. This condition saves the query for most groups.
        may_add_up = len(group) > 1 and abs(sum(means[name] for name in group) - 1) <= SOFTMAX_TOLERANCE
        if may_add_up and is_softmax(totals(group)):
            return tuple(group)
    return None


def answer_columns(columns: Sequence[JsonMapping]) -> tuple[str, ...]:
    """Return the columns of several models' answers: text or whole numbers with the same first word."""
    families: dict[str, list[str]] = {}
    for row in columns:
        family = re.split(r"[^A-Za-z]", row["name"])[0].casefold()
        if family.startswith(ANSWER_COLUMN_NAMES) and row["distinct"] > 1 and _may_be_classes(row):
            families.setdefault(family, []).append(row["name"])
    largest = max(families.values(), key=len, default=[])
    if len(largest) >= _MIN_ANSWER_COLUMNS:
        return tuple(largest)
    return ()


def _may_be_classes(row: JsonMapping) -> bool:
    """Return whether a column is text, or numbers that could all be whole."""
    return row["kind"] in ("text", PERCENTAGE_KIND) or may_be_whole(row)


def answer_options(columns: JsonDict, predicted: str | None = None) -> list[str]:
    """Return the options for a proxy computed from several columns of answers: `--predicted`, `--answers`.

    If `predicted` does not name the answers of the evaluated model, the first column is proposed.
    """
    answers = answer_columns(columns["columns"])
    if not answers:
        return []
    pattern = as_pattern(answers, [row["name"] for row in columns["columns"]])
    return [*([] if predicted else ["--predicted", answers[0]]), "--answers", pattern]


def model_answer(columns: JsonDict, options: Sequence[str]) -> list[str]:
    """Return the option `--predicted` for the only column with few classes that is called like an answer.

    The result is empty if there is no such column or several. Columns in `options` are excluded.
    """
    rows = columns["rows"]
    names = [
        row["name"]
        for row in columns["columns"]
        if row["name"].casefold().startswith(ANSWER_COLUMN_NAMES)
        and row["name"] not in options
        and not row["missing"]
        and 1 < row["distinct"] <= rows / 2
        and _may_be_classes(row)
    ]
    if len(names) == 1:
        return ["--predicted", names[0]]
    return []


def group_columns(columns: JsonDict, options: Sequence[str]) -> list[str]:
    """Return the columns with few categories, for results by group, without the columns in `options`."""
    recognition = recognise(facts_of_description(columns), StatedRoles(others=tuple(options)))
    # The text of an object is no category; its entries are columns of their own.
    objects = {row["name"].rpartition(".")[0] for row in columns["columns"]}
    return [name for name in recognition.groups if name not in options and name not in objects]


def as_pattern(names: Sequence[str], existing: Sequence[str]) -> str:
    """Return a pattern that matches only these columns, or all of their names."""
    prefix = names[0][: len(names[0]) - len(class_names(names)[0])]
    if prefix and [name for name in existing if name.startswith(prefix)] == list(names):
        return f"{prefix}*"
    return ",".join(names)


def _describe_column(name: str, rows: int, facts: JsonMapping) -> JsonDict:
    """Return the description of a column, given the number of rows and its facts by name."""
    present, distinct, numbers, nan = (int(facts.get(key) or 0) for key in _FACT_NAMES[:4])
    # NaN is a missing value in a column of numbers, and a text in a column of text.
    is_number = bool(numbers and numbers + nan == present)
    return {
        "name": name,
        "kind": "number" if is_number else "text",
        "missing": rows - present + (nan if is_number else 0),
        "distinct": distinct - (1 if is_number and nan else 0),
        **{key: facts[key] if is_number else None for key in _FACT_NAMES[4:]},
    }


def describe_proxies(population: Population) -> JsonDict:
    """Return, per proxy of a checked population, its scale, mean and deciles.

    Parameters
    ----------
    population : Population

    Returns
    -------
    dict
        `population_size`, `proxies`: name, predicts, declared, meaning, scaled, bounds, mean, distinct,
        quantiles (0, 10, …, 100%), and `groups`: the number of levels of each.
    """
    proxies = []
    for info, score in zip(population.proxies, population.scores, strict=True):
        distribution = population.distribution(info.name)
        deciles = np.searchsorted(distribution.counts.cumsum(), np.linspace(0, 1, 11) * distribution.size)
        quantiles = distribution.values[np.minimum(deciles, len(distribution.values) - 1)]
        proxies.append(
            {
                **score.described(),
                "scaled": info.scaled,
                "bounds": None if info.bounds is None else list(info.bounds),
                "mean": distribution.mean,
                "bins": len(distribution.values),
                "quantiles": quantiles.tolist(),
            }
        )
    groups = {name: len(population.levels(name)) for name in population.group_names}
    description = {"population_size": population.size, "proxies": proxies, "groups": groups}
    return description | ({"notes": list(population.notes)} if population.notes else {})


def suggested_score(
    columns: JsonMapping, suggested: Sequence[str], answer: str | None = None
) -> JsonDict | None:
    """Return the quantity that the suggested proxy predicts, inferred from its smallest and largest value.

    Parameters
    ----------
    columns : mapping
        The result of `describe_columns`.
    suggested : sequence of str
        The result of `suggestion`.
    answer : str, optional
        The column of the model's answers, if it is suggested.

    Returns
    -------
    dict or None
        `name`, `predicts`, `declared` and `meaning`; None if no proxy is suggested.
    """
    options = dict(zip(suggested[::2], suggested[1::2], strict=False))
    rows = {row["name"]: row for row in columns["columns"]}
    proxy = options.get("--proxy", "")
    row = rows.get(proxy) or rows.get(proxy.partition(",")[0])
    if row is None or row["minimum"] is None:
        return None
    info = infer_proxy_info(row["name"], row["minimum"], row["maximum"], None, None)
    return info.score(answer).described()


def suggestion(
    columns: JsonDict, id_name: str | None, proxy: str | None, softmax: str | None = None
) -> list[str]:
    """Return options for the next command: `--id`, `--proxy` or `--softmax`, and `--missing`.

    If there are several scores from 0 to 1, all are proposed, because a plan stratifies by their mean.
    """
    models = columns.get("models") or {}
    proxies = None if proxy is None else split_names(proxy)
    stated = StatedRoles(
        id=id_name or models.get("id"),
        proxies=proxies,
        others=(*answer_columns(columns["columns"]), *([models["column"]] if models else [])),
    )
    recognition = recognise(facts_of_description(columns), stated)
    id_options = ["--id", recognition.id or ROW_NUMBER_ID]
    softmax = softmax or columns.get("softmax")
    if softmax and proxy is None:
        return [*id_options, "--softmax", softmax]
    if proxy is not None:
        return [*id_options, "--proxy", proxy]
    if "log" in columns:
        proxy_column = columns["log"]["proxy"]
    else:
        proxy_column = recognition.plan_proxy
    if proxy_column is None:
        return id_options
    missing = next(row["missing"] for row in columns["columns"] if row["name"] == proxy_column)
    if missing:
        return [*id_options, "--proxy", proxy_column, "--missing", OWN_STRATUM]
    if proxy_column == recognition.plan_proxy:
        names = (proxy_column, *recognition.further_scores)
    else:
        names = (proxy_column,)
    # A name with a comma would be split.
    proxy_columns = ",".join((proxy_column, *(name for name in names[1:] if "," not in name)))
    return [*id_options, "--proxy", proxy_columns]
