"""Describe the columns of a file of predictions, and suggest the id and the proxy."""

from __future__ import annotations

import math
import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import numpy as np

from stratal.arrays import number_of_text
from stratal.names import split_names
from stratal.population.column_names import ROW_NUMBER_ID
from stratal.population.declaration import OWN_STRATUM, Declaration
from stratal.population.proxy_info import infer_proxy_info
from stratal.population.softmax import SOFTMAX_TOLERANCE, class_names, is_softmax
from stratal.protocols import JsonDict, JsonMapping
from stratal.question.column_kinds import unreadable_score_note
from stratal.question.column_words import ID_NAMES, MODEL_NAMES
from stratal.question.recognised_roles import StatedRoles
from stratal.question.recognition import recognise
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


# Function that returns rows with at least the named columns.
RowReader: TypeAlias = "Callable[[Sequence[str]], Rows]"


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
    column_by_name = {column["name"].casefold(): column for column in columns}
    model_column = next((column_by_name[name] for name in MODEL_NAMES if name in column_by_name), None)
    if model_column is None or model_column["missing"] or not 1 < model_column["distinct"] <= rows // 2:
        return None
    # A column of ids that are unique shows that each row is an item.
    if any(column["distinct"] == rows and column["kind"] == "text" for column in columns):
        return None
    columns_once_per_model = [
        column
        for column in columns
        if column["distinct"] * model_column["distinct"] == rows and not column["missing"]
    ]
    possible_ids = [
        column["name"]
        for column in columns_once_per_model
        if column is not model_column and (column["kind"] == "text" or "id" in column["name"].lower())
    ]
    usual_ids = [name for name in possible_ids if name.lower() in ID_NAMES]
    return {
        "column": model_column["name"],
        "count": model_column["distinct"],
        "id": next(iter([*usual_ids, *possible_ids]), None),
    }


# First words of the names of columns with answers of models.
ANSWER_COLUMN_NAMES = ("answer", "choice", "model_answer", "model_output", "output", "pred", "response")

# Smallest number of columns with the same first word that are answers of several models. Two may be an answer
# and the correct answer.
_MIN_ANSWER_COLUMNS = 3

# Largest number of columns of one query.
_MAX_QUERY_COLUMNS = 500

# The same for text with up to `_SMALL_TABLE_ROWS` rows: larger, because each query parses the file again.
_MAX_TEXT_COLUMNS = 2_000
_SMALL_TABLE_ROWS = 10_000

# Largest number of values of one query of a JSON file.
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

    Raises an `InputError` for a file that does not exist or cannot be read.
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

    def read_rows(names: Sequence[str]) -> Rows:
        """Return rows with at least these columns."""
        rows: Rows = source
        if has_long_format:
            rows = table.read_columns(Declaration(id=names[0], shown=tuple(names)))
        return rows

    is_in_duckdb = isinstance(source, Rows)
    if is_in_duckdb:
        _describe_percentages(columns, read_rows)
        notes += _number_format_notes(columns, read_rows)
        _describe_softmax(description, names, read_rows)
    answers = answer_columns(columns)
    if answers:
        notes.append(
            f"{len(answers)} columns contain answers ({answers[0]} … {answers[-1]}): the number that agree "
            "with a model's answer predicts whether it is right. Name that model's column in --predicted"
        )
    if is_in_duckdb:
        _describe_models(description, read_rows)
    return description


def _describe_softmax(description: JsonDict, names: Sequence[str], read_rows: RowReader) -> None:
    """Add the columns of a softmax, and a note on them, to a description; `names` are all columns."""

    def row_sum_facts(columns: Sequence[str]) -> JsonMapping:
        return rows_with_shares(read_rows(columns), columns).row_sum_facts(columns)

    softmax = find_softmax_columns(description["columns"], row_sum_facts)
    if softmax is None:
        return
    description["softmax"] = column_pattern(softmax, names)
    description["notes"].append(
        f"{len(softmax)} columns add up to 1 in each row: a softmax ({softmax[0]} … {softmax[-1]})"
    )


def _describe_models(description: JsonDict, read_rows: RowReader) -> None:
    """Add the models of a table with a row for each item and model, and a note on them, to a description."""
    models = judged_models(description["columns"], description["rows"])
    if models is None:
        return
    rows = read_rows([models["column"]])
    models["first"] = str(rows.query_row(f"min({rows.columns[models['column']]})")[0])
    description["models"] = models
    description["notes"].append(
        f"{models['column']!r} names {models['count']:,} models: a plan uses the rows of one model"
    )


def _describe_log(log: Log) -> JsonDict:
    """Return the description of an evaluation tool's log; see `describe_columns`."""
    return {
        "tool": log.tool,
        "proxy": next(iter(log.proxies), None),
        "cluster": log.cluster,
        "failed": log.failed_by_variant,
        "missing": dict(log.missing),
    }


def _describe_percentages(columns: Sequence[JsonDict], read_rows: RowReader) -> None:
    """Describe columns of text in which every entry is a percentage as such, with the range of the shares."""
    described = {column["name"]: column for column in columns}
    names, rows = _text_columns(columns, read_rows)
    if rows is None:
        return
    for name, facts in percentage_columns(rows, names).items():
        if facts.has_only_percentages:
            minimum, maximum, mean = rows.query_row(*share_range_sql(rows.columns[name], facts))
            statistics = {"minimum": minimum, "maximum": maximum, "mean": mean}
            described[name] |= {"kind": PERCENTAGE_KIND, **statistics}


def _text_columns(columns: Sequence[JsonMapping], read_rows: RowReader) -> tuple[list[str], Rows | None]:
    """Return the names of the first columns of text, and rows with them; None if no column is text."""
    names = [column["name"] for column in columns if column["kind"] == "text"][:_MAX_QUERY_COLUMNS]
    if not names:
        return [], None
    rows = read_rows(names)
    types = rows.types()
    return [name for name in names if types[name] == "varchar"], rows


def _number_format_notes(columns: Sequence[JsonMapping], read_rows: RowReader) -> list[Note]:
    """Return notes on columns of text that hold numbers, which cannot be read as such."""
    names, rows = _text_columns(columns, read_rows)
    if rows is None:
        return []
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
        nonempty_entries = [entry for entry in entries if entry]
        numbers = (entry for entry in nonempty_entries if not is_percentage(entry))
        with_points = (entry.replace(",", ".").strip() for entry in numbers)
        if _all_numbers(with_points) and not _all_numbers(nonempty_entries):
            text = f"{name!r} contains numbers with a decimal comma or a percent sign. {DECIMAL_POINT_REMEDY}"
            notes.append(Note(NUMBERS_AS_TEXT, text))
    return notes


def _all_numbers(texts: Iterable[str]) -> bool:
    """Return whether all texts are numbers in the format of Python."""
    return not any(math.isnan(number_of_text(text)) for text in texts)


# Facts of a column in the order in which a query returns them: the number of values that are not null, of
# distinct values, of finite numbers and of NaN, and the range and mean of the finite numbers. Text has only
# the first two.
_RANGE_NAMES = ("minimum", "maximum", "mean")
_FACT_NAMES = ("present", "distinct", "numbers", "nan", *_RANGE_NAMES)


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
        result = rows.connection.execute(f"SELECT {aggregates} FROM ({finite}) GROUP BY c0").fetchall()
    return {position: dict(zip(_FACT_NAMES, facts, strict=True)) for position, *facts in result}


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
    size = row_of_facts["rows"]
    columns = []
    for number, name in enumerate(names):
        facts_of_column = {key: row_of_facts.get(f"{key}{number}") for key in _FACT_NAMES}
        columns.append(_describe_column(name, size, facts_of_column))
    return size, columns


def find_softmax_columns(
    columns: Sequence[JsonDict], row_sum_facts: Callable[[Sequence[str]], JsonMapping]
) -> tuple[str, ...] | None:
    """Return the columns of probabilities that add up to 1 in each row; None if there are none.

    Columns with the same first word are tried first, then all columns of probabilities together. `columns`
    are descriptions of columns, and `row_sum_facts(names)` returns the facts that `is_softmax` needs.
    """
    complete_columns = [column for column in columns if column["kind"] != "text" and not column["missing"]]
    probability_columns = [
        column["name"] for column in complete_columns if column["minimum"] >= 0 and column["maximum"] <= 1
    ]
    means = {column["name"]: column["mean"] for column in columns}
    # Columns by the first word of their names.
    families: dict[str, list[str]] = {}
    for name in probability_columns:
        families.setdefault(re.split(r"[^A-Za-z]", name)[0].casefold(), []).append(name)
    for group in [*families.values(), probability_columns]:
        # The means must add up to 1 as well. This condition saves the query for most groups.
        may_add_up = len(group) > 1 and abs(sum(means[name] for name in group) - 1) <= SOFTMAX_TOLERANCE
        if may_add_up and is_softmax(row_sum_facts(group)):
            return tuple(group)
    return None


def answer_columns(columns: Sequence[JsonMapping]) -> tuple[str, ...]:
    """Return the columns of several models' answers: text or whole numbers with the same first word."""
    families: dict[str, list[str]] = {}
    for column in columns:
        family = re.split(r"[^A-Za-z]", column["name"])[0].casefold()
        if family.startswith(ANSWER_COLUMN_NAMES) and column["distinct"] > 1 and _may_be_classes(column):
            families.setdefault(family, []).append(column["name"])
    largest = max(families.values(), key=len, default=[])
    if len(largest) >= _MIN_ANSWER_COLUMNS:
        return tuple(largest)
    return ()


def _may_be_classes(column: JsonMapping) -> bool:
    """Return whether a column is text, or numbers that could all be whole."""
    return column["kind"] in ("text", PERCENTAGE_KIND) or may_be_whole(column)


def answer_options(description: JsonDict, predicted: str | None = None) -> list[str]:
    """Return the options for a proxy computed from several columns of answers: `--predicted`, `--answers`.

    If `predicted` does not name the answers of the evaluated model, the first column is proposed.
    """
    answers = answer_columns(description["columns"])
    if not answers:
        return []
    pattern = column_pattern(answers, [column["name"] for column in description["columns"]])
    options = ["--answers", pattern]
    if predicted:
        return options
    return ["--predicted", answers[0], *options]


def predicted_option(description: JsonDict, options: Sequence[str]) -> list[str]:
    """Return the option `--predicted` for the only column with few classes that is called like an answer.

    The result is empty if there is no such column or several. Columns in `options` are excluded.
    """
    names = [
        column["name"]
        for column in description["columns"]
        if column["name"] not in options and _may_be_answer(column, description["rows"])
    ]
    if len(names) == 1:
        return ["--predicted", names[0]]
    return []


def _may_be_answer(column: JsonMapping, rows: int) -> bool:
    """Return whether a column is called like an answer, and has one of few classes in each row."""
    is_called_answer = column["name"].casefold().startswith(ANSWER_COLUMN_NAMES)
    has_few_values = not column["missing"] and 1 < column["distinct"] <= rows / 2
    return is_called_answer and has_few_values and _may_be_classes(column)


def likely_group_columns(description: JsonDict, options: Sequence[str]) -> list[str]:
    """Return the columns with few categories, for results by group, without the columns in `options`."""
    recognition = recognise(facts_of_description(description), StatedRoles(others=tuple(options)))
    # The text of a JSON object is no category. Its entries are separate columns, such as `judge.score`.
    objects = {column["name"].rpartition(".")[0] for column in description["columns"]}
    return [name for name in recognition.groups if name not in options and name not in objects]


def column_pattern(names: Sequence[str], existing: Sequence[str]) -> str:
    """Return a pattern that matches only these columns, or all of their names."""
    prefix = names[0][: len(names[0]) - len(class_names(names)[0])]
    if prefix and [name for name in existing if name.startswith(prefix)] == list(names):
        return f"{prefix}*"
    return ",".join(names)


def _describe_column(name: str, rows: int, facts: JsonMapping) -> JsonDict:
    """Return the description of a column, given the number of rows and its facts by name."""
    present, distinct, numbers, nan = (int(facts.get(key) or 0) for key in _FACT_NAMES[:4])
    description = {"name": name, "kind": "text", "missing": rows - present, "distinct": distinct}
    # NaN is a missing value in a column of numbers, and a text in a column of text.
    if numbers and numbers + nan == present:
        description |= {"kind": "number", "missing": rows - numbers, "distinct": distinct - bool(nan)}
        return description | {key: facts[key] for key in _RANGE_NAMES}
    return description | dict.fromkeys(_RANGE_NAMES)


def describe_proxies(population: Population) -> JsonDict:
    """Return the scale, mean and deciles of each proxy of a population.

    Parameters
    ----------
    population : Population

    Returns
    -------
    dict
        `population_size`; `proxies`: name, predicts, declared, meaning, scaled, bounds, mean, bins (number of
        bins of the distribution), quantiles (0, 10, …, 100%), and `groups`: the number of levels of each.
    """
    proxies = []
    for info, score in zip(population.proxies, population.scores, strict=True):
        distribution = population.distribution(info.name)
        n_bins = len(distribution.values)
        deciles = np.searchsorted(distribution.counts.cumsum(), np.linspace(0, 1, 11) * distribution.size)
        scale = {"scaled": info.scaled, "bounds": None if info.bounds is None else list(info.bounds)}
        quantiles = distribution.values[np.minimum(deciles, n_bins - 1)].tolist()
        facts = {"mean": distribution.mean, "bins": n_bins, "quantiles": quantiles}
        proxies.append({**score.to_dict_with_meaning(), **scale, **facts})
    groups = {name: len(population.levels(name)) for name in population.group_names}
    description = {"population_size": population.size, "proxies": proxies, "groups": groups}
    if population.notes:
        description["notes"] = list(population.notes)
    return description


def suggested_score(
    description: JsonMapping, suggested: Sequence[str], answer: str | None = None
) -> JsonDict | None:
    """Return the quantity that the suggested proxy predicts, inferred from its smallest and largest value.

    Parameters
    ----------
    description : mapping
        The result of `describe_columns`.
    suggested : sequence of str
        The result of `suggested_options`.
    answer : str, optional
        The column of the model's answers, if it is suggested.

    Returns
    -------
    dict or None
        `name`, `predicts`, `declared` and `meaning`; None if no proxy is suggested.
    """
    options = dict(zip(suggested[::2], suggested[1::2], strict=False))
    column_by_name = {column["name"]: column for column in description["columns"]}
    proxy = options.get("--proxy", "")
    # The first of several proxies; a name may contain a comma itself.
    column = column_by_name.get(proxy) or column_by_name.get(proxy.partition(",")[0])
    if column is None or column["minimum"] is None:
        return None
    info = infer_proxy_info(column["name"], column["minimum"], column["maximum"], None, None)
    return info.score(answer).to_dict_with_meaning()


def suggested_options(
    description: JsonDict, id_name: str | None, proxy: str | None, softmax: str | None = None
) -> list[str]:
    """Return options for the next command: `--id`, `--proxy` or `--softmax`, and `--missing`.

    If there are several scores from 0 to 1, all are proposed, because a plan stratifies by their mean.
    """
    models = description.get("models") or {}
    proxies = None if proxy is None else split_names(proxy)
    other_columns = answer_columns(description["columns"])
    if models:
        other_columns = (*other_columns, models["column"])
    stated = StatedRoles(id=id_name or models.get("id"), proxies=proxies, others=other_columns)
    recognition = recognise(facts_of_description(description), stated)
    id_options = ["--id", recognition.id or ROW_NUMBER_ID]
    softmax = softmax or description.get("softmax")
    if softmax and proxy is None:
        return [*id_options, "--softmax", softmax]
    if proxy is not None:
        return [*id_options, "--proxy", proxy]
    if "log" in description:
        proxy_column = description["log"]["proxy"]
    else:
        proxy_column = recognition.plan_proxy
    if proxy_column is None:
        return id_options
    missing = next(column["missing"] for column in description["columns"] if column["name"] == proxy_column)
    if missing:
        return [*id_options, "--proxy", proxy_column, "--missing", OWN_STRATUM]
    further_scores: Sequence[str] = ()
    if proxy_column == recognition.plan_proxy:
        # A name with a comma would be split.
        further_scores = [name for name in recognition.further_scores if "," not in name]
    return [*id_options, "--proxy", ",".join((proxy_column, *further_scores))]
