"""Validate the rows of a table and add computed columns, with queries in the engine of the table."""

from __future__ import annotations

import math
import string
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add, or_

import ibis
import numpy as np

from stratal.errors import InputError, duplicate_ids_error, suggest_names
from stratal.population.column_names import (
    KNOWN_PROXY,
    MISSING_PROXY,
    OWN_STRATUM_GROUP,
    PEER_AGREEMENT,
    ROW_BASE,
    ROW_NUMBER_ID,
)
from stratal.population.declaration import OWN_STRATUM, Declaration
from stratal.population.softmax import CONFIDENCE, PREDICTED_CLASS, class_names, is_softmax
from stratal.protocols import Foreign
from stratal.proxy.agreement import (
    ARTICLES,
    BLANKS,
    LAST_NUMBER,
    MAX_WEIGHT,
    PUNCTUATION,
    PeerWeights,
    answer_codes,
    peer_weights,
)
from stratal.proxy.history import KEY_PURPOSE, MAX_ITEMS
from stratal.tables.engine import (
    double,
    duplicate_key,
    literal_table,
    md5_digest,
    store_table,
    timestamp_text,
)
from stratal.tables.no_answer import EMPTY_CELL_TEXTS
from stratal.tables.number_format import DECIMAL_POINT_REMEDY, PERCENTAGE
from stratal.tables.source import Source, translate_engine_errors
from stratal.whole_numbers import MAX_EXACT_INTEGER


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Units:
    """A table with one row per unit, whose columns have been converted to numbers, categories and text.

    Parameters
    ----------
    table : Ibis table
        Columns `unit_id` (text), `unit_key` (to find duplicates), then numbers, categories and shown columns.
    numbers, categories, shown : mapping of str to str
        Column names in `table` by the user's column names. The values are doubles, text, and unchanged
        values.
    integer_ids : bool
        Whether ids are integers and are returned as integers.
    backend : Ibis backend
        Runs the queries.
    """

    table: Foreign
    numbers: Mapping[str, str]
    categories: Mapping[str, str]
    shown: Mapping[str, str]
    integer_ids: bool
    backend: Foreign

    def internal_name(self, name: str, preferred: Mapping[str, str]) -> str:
        """Return the name in `table` of the user's column `name`.

        `preferred` is `numbers` or `categories`: a column may be in both.
        """
        for names in (preferred, self.numbers, self.categories):
            if name in names:
                return names[name]
        raise InputError(
            f"no such column: {name!r}", allowed=suggest_names(name, (*self.numbers, *self.categories))
        )


def units_of_source(source: Source, declared: Declaration) -> Units:
    """Return the rows of a source as units.

    Raises an `InputError` for a column whose type cannot be an id, a number or a category.
    """
    id_column = source.column(declared.id)
    numbers = {name: f"x{number}" for number, name in enumerate(declared.number_columns)}
    categories = {name: f"g{number}" for number, name in enumerate(declared.groups)}
    shown = {name: f"s{number}" for number, name in enumerate(declared.shown)}
    label = f"{source.table_name}: column"
    columns = {"unit_id": id_text_of(id_column, f"{label} {declared.id!r}")}
    if id_column.type().is_integer():
        columns["unit_key"] = id_column
    else:
        columns["unit_key"] = columns["unit_id"]
    for name, column in numbers.items():
        columns[column] = number_expression(source, name, f"{label} {name!r}")
    for name, column in categories.items():
        columns[column] = category_expression(source.column(name), f"{label} {name!r}")
    columns |= {column: source.column(name) for name, column in shown.items()}
    return Units(
        table=source.table.select(**columns),
        numbers=numbers,
        categories=categories,
        shown=shown,
        integer_ids=_is_integer_type(id_column.type()) or id_column.type().is_floating(),
        backend=source.backend,
    )


def _is_integer_type(column_type: Foreign) -> bool:
    """Return whether an Ibis type has only whole numbers."""
    return bool(column_type.is_integer() or (column_type.is_decimal() and column_type.scale == 0))


def id_text_of(column: Foreign, name: str) -> Foreign:
    """Return the text of ids as an Ibis expression; `name` names the column in errors.

    A float that is no whole number below 2⁵³ is null.
    """
    column_type = column.type()
    if column_type.is_string():
        return column
    if column_type.is_floating():
        return whole_number_expression(column).cast("string")
    if column_type.is_uuid():
        return column.cast("string").lower()
    if _is_integer_type(column_type) or column_type.is_null():
        return column.cast("string")
    raise InputError(
        f"{name} has an unsupported type for ids",
        given=str(column_type),
        allowed="text, integers, whole floats, UUIDs",
        action="Convert the column to text.",
    )


def whole_number_expression(column: Foreign) -> Foreign:
    """Return floating-point values as integers; null if they are not whole numbers below 2⁵³."""
    number = column.cast("float64")
    # Engines raise an error for the cast of a larger number.
    bounded_number = ibis.ifelse(number.abs() < MAX_EXACT_INTEGER, number, ibis.null("float64"))
    integer = bounded_number.cast("int64")
    return ibis.ifelse(integer.cast("float64") == number, integer, ibis.null("int64"))


def number_expression(source: Source, name: str, label: str | None = None) -> Foreign:
    """Return a column as numbers; text that is not a number is null. `label` names it in errors."""
    label = label or f"{source.table_name}: column {name!r}"
    column = source.column(name)
    column_type = column.type()
    if source.is_text(name):
        return text_number_expression(column)
    if column_type.is_boolean():
        return column.cast("int8").cast("float64")
    if column_type.is_numeric() or column_type.is_null():
        return column.cast("float64")
    raise InputError(
        f"{label} is not numeric",
        given=str(column_type),
        allowed="numbers",
        action="Store it as numbers; write shares such as 83% as 0.83. Words are not scores: to use "
        "categories as strata, give by= (--by).",
    )


def text_number_expression(column: Foreign) -> Foreign:
    """Return text as numbers, null if it is not a number.

    `1_0` is not a number here, although engines and Python read it as 10. `true` and `false` are 1 and 0,
    like the values of Boolean columns of Parquet.
    """
    number = ibis.ifelse(column.contains("_"), ibis.null("float64"), column.try_cast("float64"))
    word = column.strip().lower()
    truth_value = ibis.cases((word == "true", 1.0), (word == "false", 0.0), else_=ibis.null("float64"))
    # With `coalesce`, DuckDB would strip all values, which takes six times as long as their conversion.
    return ibis.ifelse(number.notnull(), number, truth_value)


def _is_number_of_other_format(column: Foreign) -> Foreign:
    """Return whether text is a number with a decimal comma, or with a percent sign."""
    number = text_number_expression(column.replace(",", ".").strip())
    return number.notnull() | _is_percentage(column)


def _is_percentage(column: Foreign) -> Foreign:
    """Return whether text is a number with a percent sign."""
    return column.strip().re_search(f"^({PERCENTAGE})$")


def category_expression(column: Foreign, label: str) -> Foreign:
    """Return a column as the text of categories, null for missing values; `label` names it in errors."""
    column_type = column.type()
    if column_type.is_boolean():
        return ibis.cases((column, "True"), (~column, "False"))
    if column_type.is_floating():
        number = ibis.ifelse(is_nan(column), ibis.null("float64"), column.cast("float64"))
        # Whole numbers have no point, as in columns of integers.
        return whole_number_expression(number).cast("string").coalesce(number.cast("string"))
    if column_type.is_array() and not column_type.value_type.is_nested():
        return _json_text(column)
    if column_type.is_binary() or column_type.is_nested():
        raise InputError(
            f"{label} cannot be used as a group", given=str(column_type), allowed="text, numbers, dates"
        )
    if column_type.is_timestamp():
        return timestamp_text(column)
    return column.cast("string")


def _json_text(column: Foreign) -> Foreign:
    """Return a column of lists as JSON text, null for missing lists."""
    quoted = column.map(
        lambda entry: '"' + entry.cast("string").replace("\\", "\\\\").replace('"', '\\"') + '"'
    )
    return ibis.ifelse(column.isnull(), ibis.null("string"), "[" + quoted.join(",").coalesce("") + "]")


def is_nan(column: Foreign) -> Foreign:
    """Return whether a number is NaN, in a form that DuckDB 2 does not optimise away.

    DuckDB assumes that `isnan(x)` and `x != x` hold nowhere in a Parquet file, because the statistics of the
    file leave out NaN.
    """
    return column.nullif(-sys.float_info.max).isnan()


# Returns a Boolean Ibis expression of a column.
Predicate = Callable[[Foreign], Foreign]

# Next step in errors on missing values; the second one for proxies.
_FILL_ACTION = "Drop or fill these units."
_FILL_OR_SEPARATE_ACTION = (
    "Drop or fill these units, or keep units without a proxy as a stratum of their own: "
    "missing='own-stratum' (--missing own-stratum)."
)


# Smallest and largest value of each column of numbers.
Extents = dict[str, tuple[float, float]]


def validate_units(units: Units, source: Source, declared: Declaration) -> tuple[int, Extents]:
    """Check the units, and return N and the extents of the columns of numbers by the user's names.

    A valid table needs one query, and one for duplicate ids.

    Raises an `InputError` for an empty table, a missing, duplicate or unusable id, a missing category, and a
    number that is missing, NaN, infinite or not a number. The error states the count and the first case.
    """
    table = units.table
    # `unit_key` is null if the id is, and needs no conversion of integers to text.
    measures = {"size": table.count(), "ids": table.unit_key.count()}
    if not units.integer_ids:
        # Only ids that begin with white space are stripped: stripping all ids takes five times as long.
        may_be_blank = table.unit_id.left(1).isin(("", *string.whitespace))
        is_blank = ibis.ifelse(may_be_blank, table.unit_id.strip() == "", False)
        measures["blank_ids"] = table.count(where=is_blank)
    for column in units.numbers.values():
        values = table[column]
        measures[f"{column}_n"] = values.count()
        measures[f"{column}_nan"] = table.count(where=values.isnan())
        measures[f"{column}_low"] = values.min()
        measures[f"{column}_high"] = values.max()
    measures |= {f"{column}_n": table[column].count() for column in units.categories.values()}
    row = source.first_row(table.aggregate(**measures))
    size = int(row["size"])
    if size == 0:
        raise InputError(f"{source.table_name} has no rows", allowed="one row per unit")
    if row["ids"] < size or row.get("blank_ids"):
        refuse = _invalid_rows_raiser(source, declared, declared.id)
        refuse("missing id", lambda ids: is_absent(ids, ("",)), action="Every unit must have an id.")
        if source.column(declared.id).type().is_floating():
            refuse(
                "id of an unsupported type",
                lambda ids: whole_number_expression(ids).isnull(),
                allowed="text, integers, whole floats below 2**53, UUIDs",
                action="Convert the column to text.",
            )
    extents = {}
    for name, column in units.numbers.items():
        low = row[f"{column}_low"]
        high = row[f"{column}_high"]
        is_finite = low is not None and math.isfinite(low) and math.isfinite(high)
        if row[f"{column}_n"] < size or row[f"{column}_nan"] or not is_finite:
            _raise_number_error(source, declared, name)
        extents[name] = (float(low), float(high))
    for name, column in units.categories.items():
        if row[f"{column}_n"] < size:
            refuse = _invalid_rows_raiser(source, declared, name, f"group column {name!r}")
            refuse("missing value", is_absent, action="Assign a separate category to the missing values.")
    _require_distinct_ids(units, source, size)
    return size, extents


def is_absent(column: Foreign, words: tuple[str, ...] = ()) -> Foreign:
    """Return whether a value is null, NaN or one of the words (in lower case), as an Ibis expression."""
    column_type = column.type()
    if column_type.is_floating():
        return column.isnull() | is_nan(column)
    if words and column_type.is_string():
        return column.isnull() | column.strip().lower().isin(words)
    return column.isnull()


# Noun phrases for invalid values of a column of numbers in error messages, with the next step for each.
_DECIMAL_COMMA_VALUE = "value that is written with a decimal comma or a percent sign"
_TEXT_VALUE = "value that is not a number"
_VALUE_WITHOUT_SIGN = "value without a percent sign, unlike most of its values"
_REMEDIES = {
    _VALUE_WITHOUT_SIGN: "Write all values with a percent sign, or none; shares are numbers between 0 and 1.",
    _DECIMAL_COMMA_VALUE: DECIMAL_POINT_REMEDY,
    _TEXT_VALUE: (
        "In a JSON object, name the number: judge.score. Words are not scores: use categories as strata "
        "(by=, --by COL), a model's answer in predicted= (--predicted), and labels with --map and "
        "--positive of estimate; otherwise write 1 and 0. If only a few values are missing: "
    ),
}


def _raise_number_error(source: Source, declared: Declaration, name: str) -> None:
    """Raise the error on the first kind of invalid value: missing, not a number, NaN, infinite."""
    is_text = source.is_text(name)

    def numbers(column: Foreign) -> Foreign:
        """Return the values as numbers, null for text that is not a number."""
        if is_text:
            return text_number_expression(column)
        return column

    def missing(column: Foreign) -> Foreign:
        """Return whether a value is null, or blank text."""
        if is_text:
            return is_absent(column, ("",))
        return column.isnull()

    problems: dict[str, Predicate] = {"missing value": missing}
    if is_text and _are_mostly_percentages(source, name):
        problems[_VALUE_WITHOUT_SIGN] = lambda column: numbers(column).notnull()
    if is_text:
        problems[_DECIMAL_COMMA_VALUE] = lambda column: (
            numbers(column).isnull() & _is_number_of_other_format(column)
        )
        problems[_TEXT_VALUE] = lambda column: ~missing(column) & numbers(column).isnull()
    if is_text or source.column(name).type().is_floating():
        problems["value that is NaN"] = lambda column: is_nan(numbers(column))
        problems["value that is infinite"] = lambda column: numbers(column).isinf()
    may_be_separate = declared.missing is None and name in (*declared.proxies, *declared.softmax)
    fill_action = _FILL_OR_SEPARATE_ACTION if may_be_separate else _FILL_ACTION
    text_remedy = f"{_REMEDIES[_TEXT_VALUE]}{fill_action[0].lower()}{fill_action[1:]}"
    remedies = {**_REMEDIES, _TEXT_VALUE: text_remedy}
    refuse = _invalid_rows_raiser(source, declared, name)
    for problem, predicate in problems.items():
        refuse(problem, predicate, "; allowed: finite numbers", action=remedies.get(problem, fill_action))
    message = f"{source.table_name}: column {name!r} holds a value that cannot be used"
    raise InputError(message, allowed="finite numbers", action=fill_action)


def _are_mostly_percentages(source: Source, name: str) -> bool:
    """Return whether most values of a column of text are percentages."""
    column = source.column(name)
    counts = source.first_row(
        source.table.aggregate(percentages=_is_percentage(column).sum(), values=column.count())
    )
    return 2 * int(counts["percentages"] or 0) > int(counts["values"])


# Largest number of keys in one query for distinct keys. DuckDB needs the memory limit of two threads for it.
_MAX_KEYS_AT_ONCE = 200_000_000


def _require_distinct_ids(units: Units, source: Source, size: int) -> None:
    """Raise an error if an id occurs twice."""
    key = duplicate_key(source.backend, units.table.unit_key)
    # Distinct keys need less memory than a count for each key. A query for the keys with one remainder needs
    # less memory than a query for all keys.
    if key.type().is_integer():
        n_queries = math.ceil(size / _MAX_KEYS_AT_ONCE)
    else:
        n_queries = 1
    n_distinct = 0
    for remainder in range(n_queries):
        keys = units.table.select(key=key)
        if n_queries > 1:
            # In SQL the remainder of a negative number is negative.
            keys = keys.filter((keys.key % n_queries + n_queries) % n_queries == remainder)
        distinct = keys.distinct()
        n_distinct += source.first_row(distinct.aggregate(n=distinct.count()))["n"]
    if n_distinct == size:
        return
    repeated = units.table.group_by(key=key).aggregate(n=lambda t: t.count()).filter(lambda t: t.n > 1)
    # Different ids may have the same key: only the ids of repeated keys are compared.
    keys = repeated.select("key")
    units_with_key = units.table.mutate(key=key).semi_join(keys, "key")
    units_by_id = units_with_key.group_by("unit_id").aggregate(n=lambda t: t.count())
    repeated_ids = units_by_id.filter(lambda t: t.n > 1)
    measures = {"n": (repeated_ids.n - 1).sum(), "first": repeated_ids.unit_id.min()}
    row = source.first_row(repeated_ids.aggregate(**measures))
    if row["n"]:
        raise duplicate_ids_error(f"{source.table_name}: ", int(row["n"]), row["first"])


def _invalid_rows_raiser(
    source: Source, declared: Declaration, name: str, column_label: str | None = None
) -> Callable[..., None]:
    """Return a function that raises an error if a column has invalid values, with their number and the first.

    `refuse(noun_phrase, is_invalid, suffix, **details)` counts the rows for which `is_invalid` is true.
    `noun_phrase` names such a value in the message, `suffix` follows the first one, and `details` are
    arguments of `InputError`.
    """
    columns = {"id": source.column(declared.id), "value": source.column(name)}
    if source.ordered:
        columns["row"] = ibis.row_number()
        order = "row"
    else:
        order = "id"
    table = source.table.select(**columns)

    def refuse(noun_phrase: str, is_invalid: Predicate, suffix: str = "", **details: str) -> None:
        rows = table.filter(lambda t: is_invalid(t.value))
        count = int(source.first_row(rows.aggregate(n=rows.count()))["n"])
        if not count:
            return
        row = source.first_row(rows.order_by(order).limit(1))
        first_row = []
        if row["value"] is not None:
            first_row.append(repr(row["value"]))
        if name != declared.id:
            first_row.append(f"id {row['id']!r}")
        if source.ordered and source.row_location:
            first_row.append(source.row_location(int(row["row"])))
        elif source.ordered:
            first_row.append(f"row {row['row'] + 1}")
        first_row_text = ", ".join(first_row) or "no id"
        problem = f"holds {_count_text(count, noun_phrase)} (first: {first_row_text}{suffix})"
        label = column_label or f"column {name!r}"
        raise InputError(f"{source.table_name}: {label} {problem}", **details)

    return refuse


def _count_text(count: int, noun_phrase: str) -> str:
    """Return `1 value that is NaN` or `3 values that are NaN`."""
    if count == 1:
        return f"1 {noun_phrase}"
    noun, that, rest = noun_phrase.partition(" that ")
    return f"{count} {noun}s{that}{rest.replace('is ', 'are ', 1).replace('not a number', 'not numbers')}"


# Largest distance from 1 of a row's sum, if the user declares the columns to be a softmax.
DECLARED_SOFTMAX_TOLERANCE = 0.05


def with_derived_columns(source: Source, declared: Declaration) -> tuple[Source, Declaration]:
    """Return the source with all computed columns, and the declaration in which they are ordinary columns."""
    if declared.is_numbered_by_row(source.columns):
        if not source.ordered:
            raise InputError(
                f"{source.table_name}: rows read through a database connection have no order, so they "
                "cannot be numbered",
                action="Name a column of unique ids: id=….",
            )
        # The numbers are computed once and stored.
        source = _with_columns(source, **{ROW_NUMBER_ID: ibis.row_number() + ROW_BASE})
        source = _materialise_columns(source, tuple(source.columns))
    probability_columns = declared.softmax
    if declared.may_be_softmax and is_softmax(row_sum_facts(source, declared.proxies)):
        probability_columns = declared.proxies
    if probability_columns:
        source, declared = _with_softmax(source, declared, probability_columns)
    if declared.answers:
        source, declared = _with_agreements(source, declared)
    if declared.history is not None:
        source, declared = _with_history(source, declared)
    if declared.missing == OWN_STRATUM:
        source, declared = _with_own_stratum(source, declared)
    return source, declared


def _with_columns(source: Source, notes: Sequence[str] = (), **columns: object) -> Source:
    """Return the source with additional columns by the user's names, and additional notes."""
    internal_names = {name: f"derived_{name}" for name in columns}
    table = source.table.mutate(**{internal_names[name]: column for name, column in columns.items()})
    all_columns = {**source.columns, **internal_names}
    return replace(source, table=table, columns=all_columns, notes=(*source.notes, *notes))


def _materialise_columns(source: Source, names: Sequence[str]) -> Source:
    """Return some columns of the source, copied into the engine's storage."""
    columns = {name: source.columns[name] for name in names}
    with translate_engine_errors(source.table_name):
        table = store_table(source.backend, source.table.select(*columns.values()))
    return replace(source, table=table, columns=columns)


# ---- a softmax


def row_sum_facts(source: Source, columns: Sequence[str]) -> dict[str, Foreign]:
    """Return facts by which columns are recognised as a softmax; see `Rows.row_sum_facts`."""
    values = [number_expression(source, name) for name in columns]
    total = reduce(add, values)
    is_complete = total.notnull() & ~is_nan(total)
    table = source.table.mutate(total=total, least=ibis.least(*values)).filter(is_complete)
    deviations = (table.total - 1.0).abs()
    facts = {"n_rows": table.count(), "minimum": table.least.min(), "max_deviation": deviations.max()}
    return source.first_row(table.aggregate(**facts))


def _with_softmax(
    source: Source, declared: Declaration, columns: tuple[str, ...]
) -> tuple[Source, Declaration]:
    """Return the source with the probability of the answer, and the most probable class if none is named."""
    row_sums = row_sum_facts(source, columns)
    if len(columns) < 2 or not is_softmax(row_sums, DECLARED_SOFTMAX_TOLERANCE):
        given_text = "no row with all values"
        if row_sums["n_rows"]:
            given_text = f"rows add up to 1 ± {row_sums['max_deviation']:.3g}"
        raise InputError(
            f"{source.table_name}: the columns {_columns_text(columns)} are not a softmax",
            given=given_text,
            allowed="two or more columns of probabilities that add up to 1 in each row",
            action="If these are logits, apply a softmax first.",
        )
    numbers = [number_expression(source, name) for name in columns]
    values = dict(zip(class_names(columns), numbers, strict=True))
    total = reduce(add, values.values())
    largest = ibis.ifelse(is_absent(total), total, ibis.greatest(*values.values()))
    new_columns = {CONFIDENCE: largest}
    name = declared.roles.answer
    answer = name and category_expression(source.column(name), name)
    meaning = f"the most probable class (some answers in {name!r} are other classes)"
    if answer is None:
        new_columns[PREDICTED_CLASS] = ibis.cases(
            *((value == largest, class_name) for class_name, value in values.items()), else_="none"
        )
        meaning = f"the most probable class, kept as {PREDICTED_CLASS!r}"
        name = PREDICTED_CLASS
        declared = replace(declared, groups=(*declared.groups, PREDICTED_CLASS))
    elif _distinct_answers(source, answer, len(values) + 1) <= set(values):
        new_columns[CONFIDENCE] = ibis.cases(
            *((answer == class_name, value) for class_name, value in values.items())
        )
        meaning = f"the answer in {name!r}"
    note = (
        f"{len(columns)} columns that add up to 1 ({_columns_text(columns)}) are a softmax; the proxy is the "
    )
    roles = replace(declared.roles, answer=name)
    declared = replace(declared, proxies=(CONFIDENCE,), softmax=(), roles=roles)
    return _with_columns(source, (f"{note}probability of {meaning}",), **new_columns), declared


def _distinct_answers(source: Source, answer: object, limit: int) -> set[str]:
    """Return up to `limit` different answers."""
    answers = source.run(source.table.select(answer=answer).distinct().limit(limit))
    return {row["answer"] for row in answers.to_pylist()}


def _columns_text(columns: Sequence[str]) -> str:
    """Return the names of columns for a message, shortened to the first and the last of many."""
    if len(columns) <= 4:
        return ", ".join(columns)
    return f"{columns[0]} … {columns[-1]}"


# ---- other models' answers


def _with_agreements(source: Source, declared: Declaration) -> tuple[Source, Declaration]:
    """Return the source with a proxy for each agreement: the weighted share of other models that agree."""
    # The model's answer may be the most probable class of a softmax, whose column was computed just now.
    if not declared.agreements:
        model = declared.roles.answer
        if model is None:
            raise InputError(
                "answers= are compared with the answers of the evaluated model, but no column contains them",
                allowed=f"predicted=COLUMN (--predicted COLUMN), or the proxy {PEER_AGREEMENT}_COLUMN",
                action="Name the column of the evaluated model's answers.",
            )
        declared = replace(declared, agreements={PEER_AGREEMENT: model})
    column_label = f"{source.table_name}: column"
    texts = {}
    for name in declared.answer_columns:
        answers = category_expression(source.column(name), f"{column_label} {name!r}")
        texts[name] = _normalised_answers(answers, declared.normalisation)
    ids = id_text_of(source.column(declared.id), f"{column_label} {declared.id!r}")
    codes = _codes_of_fitted_rows(source, ids, list(texts.values()))
    position_of = {name: position for position, name in enumerate(texts)}
    notes = []
    new_columns = {}
    # Without rows, there are no weights.
    for name, model in declared.agreements.items() if len(codes) else ():
        columns = declared.model_and_peer_columns(model)
        model_weights = peer_weights(codes[:, [position_of[column] for column in columns]])
        notes.append(model_weights.note(name, model))
        if model_weights.weights.any():
            new_columns[name] = _agreement_expression([texts[column] for column in columns], model_weights)
    source = _with_columns(source, notes, **new_columns)
    agreements = {name: declared.agreements[name] for name in new_columns}
    declared = replace(declared, proxies=(*new_columns, *declared.proxies), answers=(), agreements=agreements)
    if new_columns and source.ordered and source.backend.name == "duckdb":
        # Plans, draws and digests each read the proxy, which may depend on a thousand columns of answers.
        source = _materialise_columns(source, declared.existing_columns(source.columns))
    return source, declared


def _codes_of_fitted_rows(source: Source, ids: Foreign, texts: Sequence[Foreign]) -> Foreign:
    """Return the answer codes (n, M) of the rows to which weights of models are fitted.

    `ids` are the ids and `texts` the answers of M models, as Ibis expressions. The rows are those with the
    smallest keys, in the order of their keys, so that they do not depend on the order of the table.
    """
    keyed = source.table.select(
        key=md5_digest(source.backend, ibis.literal(f"0:{KEY_PURPOSE}") + ids),
        **{f"a{number}": text for number, text in enumerate(texts)},
    )
    # The limit is computed from keys alone, because a sort of rows with a thousand answers needs much memory.
    smallest = keyed.select("key").filter(lambda t: t.key.notnull()).order_by("key").limit(MAX_ITEMS)
    highest = source.first_row(smallest.aggregate(highest=smallest.key.max()))["highest"] or ""
    fitted_rows = source.run(keyed.filter(keyed.key <= highest)).sort_by("key")
    return answer_codes([fitted_rows[f"a{number}"].to_pylist() for number in range(len(texts))])


def _agreement_expression(answers: Sequence[Foreign], model_weights: PeerWeights) -> Foreign:
    """Return the weighted share of other models that agree with a model, null if it has no answer.

    `answers` are the answers of the model, then of the other models, as Ibis expressions.
    """
    answer, *peer_answers = answers
    pairs = zip(peer_answers, model_weights.weights.tolist(), strict=True)
    weighted_peers = [(peer_answer, weight) for peer_answer, weight in pairs if weight]
    agreeing_weight = _sum_as_balanced_tree(
        [ibis.ifelse(peer_answer == answer, weight, 0) for peer_answer, weight in weighted_peers]
    )
    answered_weight = _sum_as_balanced_tree(
        [ibis.ifelse(peer_answer.notnull(), weight, 0) for peer_answer, weight in weighted_peers]
    )
    numerator = (MAX_WEIGHT * agreeing_weight + model_weights.prior[0]).cast("float64")
    denominator = (MAX_WEIGHT * answered_weight + model_weights.prior[1]).cast("float64")
    return ibis.ifelse(answer.isnull(), ibis.null("float64"), numerator / denominator)


def _normalised_answers(text: Foreign, normalisation: str | None) -> Foreign:
    """Return answers without case, punctuation and articles (`text`), or their last numbers (`number`)."""
    if normalisation == "number":
        number = text.replace(",", "").re_extract(LAST_NUMBER, 1).nullif("").try_cast("float64")
        return category_expression(number, "")
    if normalisation == "text":
        text = ibis.literal(" ") + text.lower().re_replace(PUNCTUATION, "").re_replace(BLANKS, " ") + " "
        for article in ARTICLES:
            text = text.replace(f" {article} ", " ")
        return text.strip()
    return text


def _sum_as_balanced_tree(terms: Sequence[Foreign]) -> Foreign:
    """Return a sum of expressions as a balanced tree: engines limit the depth of nested expressions."""
    if len(terms) == 1:
        return terms[0].cast("int64")
    half = len(terms) // 2
    return _sum_as_balanced_tree(terms[:half]) + _sum_as_balanced_tree(terms[half:])


# ---- earlier models' results


def _with_history(source: Source, declared: Declaration) -> tuple[Source, Declaration]:
    """Return the source with the columns of a history, joined by id."""
    history = declared.history
    assert history is not None
    columns = {"history_key": np.array(history.ids.tolist(), object)}
    columns |= {f"history_{number}_": values for number, values in enumerate(history.values.T)}
    history_table = literal_table(columns, source.backend)
    key = id_text_of(source.column(declared.id), f"{source.table_name}: column {declared.id!r}")
    joined = source.table.mutate(item_key=key)
    joined = joined.left_join(history_table, joined.item_key == history_table.history_key)
    has_history = joined.history_key.notnull()
    defaults = map(double, history.values_of_unknown_item.tolist())
    new_columns = {}
    for number, (name, default) in enumerate(zip(history.names, defaults, strict=True)):
        new_columns[name] = ibis.ifelse(has_history, joined[f"history_{number}_"], default)
    row = source.first_row(joined.aggregate(size=joined.count(), known=has_history.sum()))
    note = history.note(int(row["known"] or 0), int(row["size"]))
    source = _with_columns(replace(source, table=joined), (note,), **new_columns)
    proxy, *features = history.names
    proxies = (proxy, *declared.proxies)
    features = [*declared.features, *features]
    return source, replace(declared, proxies=proxies, features=tuple(features), history=None)


# ---- missing proxies


def _with_own_stratum(source: Source, declared: Declaration) -> tuple[Source, Declaration]:
    """Return the source with missing proxies replaced by one number, and a group that marks them."""
    if not declared.proxies:
        raise InputError(
            "missing='own-stratum' requires a proxy", action="Name a proxy: proxy=… (--proxy COLUMN)."
        )
    names = (*declared.proxies, *declared.second_moments.values())
    values = {name: number_expression(source, name) for name in names}
    is_missing = reduce(or_, (is_absent(source.column(name), EMPTY_CELL_TEXTS) for name in names))
    measured = source.table.mutate(
        is_missing=is_missing, **{f"v{number}": value for number, value in enumerate(values.values())}
    )
    measures = {"n": measured.is_missing.sum()}
    for number in range(len(names)):
        measured_value = measured[f"v{number}"]
        value_or_null = ibis.ifelse(measured.is_missing | is_nan(measured_value), None, measured_value)
        measures |= {f"low{number}": value_or_null.min(), f"high{number}": value_or_null.max()}
    row = source.first_row(measured.aggregate(**measures))
    count = int(row["n"] or 0)
    if not count:
        return source, replace(declared, missing=None)
    new_columns: dict[str, Foreign] = {OWN_STRATUM_GROUP: ibis.ifelse(is_missing, MISSING_PROXY, KNOWN_PROXY)}
    for number, (name, value) in enumerate(values.items()):
        fill = _outcome_midpoint(declared.bounds, row[f"low{number}"], row[f"high{number}"])
        if source.is_text(name):
            # The column remains text, so that errors quote invalid values as they are in the file.
            new_columns[name] = ibis.ifelse(is_missing, ibis.literal(repr(fill)), source.column(name))
        else:
            new_columns[name] = ibis.ifelse(is_missing, ibis.literal(fill), value)
    note = f"{count:,} units without a proxy form a separate stratum"
    declared = replace(declared, groups=(*declared.groups, OWN_STRATUM_GROUP))
    return _with_columns(source, (note,), **new_columns), declared


def _outcome_midpoint(bounds: tuple[float, float] | None, low: float | None, high: float | None) -> float:
    """Return the midpoint of the bounds of the outcome, where its variance can be largest.

    If the bounds are unknown, the smallest and the largest proxy replace them.
    """
    if bounds is None:
        if low is None or high is None or (low >= 0 and high <= 1):
            return 0.5
        bounds = (low, high)
    return (bounds[0] + bounds[1]) / 2
