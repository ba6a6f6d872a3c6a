"""Validate a table: one pass counts, one finds duplicates, and further passes describe invalid values."""

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
from stratal.population import declaration
from stratal.population.declaration import (
    MISSING_PROXY,
    OWN_STRATUM_GROUP,
    PEER_AGREEMENT,
    PREDICTED,
    Declaration,
)
from stratal.protocols import Foreign
from stratal.proxy.agreement import (
    ARTICLES,
    BLANKS,
    LAST_NUMBER,
    MAX_WEIGHT,
    PUNCTUATION,
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
from stratal.tables.source import Source, translate_engine_errors
from stratal.whole_numbers import MAX_EXACT_INTEGER


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Units:
    """A lazy table with one row per unit and columns of known kinds.

    Parameters
    ----------
    table : Ibis table
        Columns `unit_id` (text), `unit_key` (to find duplicates), then numbers, categories and shown columns.
    numbers, categories, shown : mapping of str to str
        The user's column names to the table's: doubles, text, and unchanged values.
    integer_ids : bool
        Whether ids are integers, and returned as integers.
    backend : Ibis backend
        Runs the queries.
    """

    table: Foreign
    numbers: Mapping[str, str]
    categories: Mapping[str, str]
    shown: Mapping[str, str]
    integer_ids: bool
    backend: Foreign

    def internal(self, name: str, kind: Mapping[str, str]) -> str:
        """Return the table's name of a column, preferably of this kind."""
        for mapping in (kind, self.numbers, self.categories):
            if name in mapping:
                return mapping[name]
        raise InputError(
            f"no such column: {name!r}", allowed=suggest_names(name, (*self.numbers, *self.categories))
        )


def units_of(source: Source, declared: Declaration) -> Units:
    """Return the source's rows as units.

    Raises
    ------
    InputError
        For a column whose type cannot be an id, a number or a category.
    """
    raw_id = source.column(declared.id)
    numbers = {name: f"x{i}" for i, name in enumerate(declared.numbers)}
    categories = {name: f"g{i}" for i, name in enumerate(declared.groups)}
    shown = {name: f"s{i}" for i, name in enumerate(declared.shown)}
    where = f"{source.table_name}: column"
    columns = {"unit_id": id_text_of(raw_id, f"{where} {declared.id!r}")}
    if raw_id.type().is_integer():
        columns["unit_key"] = raw_id
    else:
        columns["unit_key"] = columns["unit_id"]
    columns |= {numbers[name]: number_expression(source, name, f"{where} {name!r}") for name in numbers}
    columns |= {categories[name]: category(source.column(name), f"{where} {name!r}") for name in categories}
    columns |= {shown[name]: source.column(name) for name in shown}
    return Units(
        table=source.table.select(**columns),
        numbers=numbers,
        categories=categories,
        shown=shown,
        integer_ids=_is_integer_type(raw_id.type()) or raw_id.type().is_floating(),
        backend=source.backend,
    )


def _is_integer_type(kind: Foreign) -> bool:
    return bool(kind.is_integer() or (kind.is_decimal() and kind.scale == 0))


def id_text_of(column: Foreign, name: str) -> Foreign:
    """Return the text of ids as an Ibis expression; a float that is no whole number below 2⁵³ is null."""
    kind = column.type()
    if kind.is_string():
        return column
    if kind.is_floating():
        return whole_number_expression(column).cast("string")
    if kind.is_uuid():
        return column.cast("string").lower()
    if _is_integer_type(kind) or kind.is_null():
        return column.cast("string")
    raise InputError(
        f"{name} has an unsupported type for ids",
        given=str(kind),
        allowed="text, integers, whole floats, UUIDs",
        action="Convert the column to text.",
    )


def whole_number_expression(column: Foreign) -> Foreign:
    """Return floating-point values as integers; null if they are not whole numbers below 2⁵³."""
    double = column.cast("float64")
    bounded = ibis.ifelse(double.abs() < MAX_EXACT_INTEGER, double, ibis.null("float64"))
    integer = bounded.cast("int64")
    return ibis.ifelse(integer.cast("float64") == double, integer, ibis.null("int64"))


def number_expression(source: Source, name: str, label: str | None = None) -> Foreign:
    """Return a column as numbers; text that is not a number is null. `label` names it in errors."""
    label = label or f"{source.table_name}: column {name!r}"
    column = source.column(name)
    kind = column.type()
    if source.is_text(name):
        return text_number_expression(column)
    if kind.is_boolean():
        return column.cast("int8").cast("float64")
    if kind.is_numeric() or kind.is_null():
        return column.cast("float64")
    raise InputError(f"{label} is not numeric", given=str(kind), allowed="numbers")


def text_number_expression(column: Foreign) -> Foreign:
    """Return text as numbers, null if it is no number.

    `1_0` is no number here, although engines and Python read it as 10. `true` and `false` are 1 and 0, as
    Boolean columns of Parquet are.
    """
    number = ibis.ifelse(column.contains("_"), ibis.null("float64"), column.try_cast("float64"))
    plain = column.strip().lower()
    truth = ibis.cases((plain == "true", 1.0), (plain == "false", 0.0), else_=ibis.null("float64"))
    # Inside `coalesce`, DuckDB strips all values, which takes six times as long as their conversion.
    return ibis.ifelse(number.notnull(), number, truth)


def with_point(column: Foreign) -> Foreign:
    """Return text as numbers: decimal commas become points, percent signs are removed; else null."""
    return text_number_expression(column.replace(",", ".").replace("%", "").strip())


def category(column: Foreign, label: str) -> Foreign:
    """Return a column as the text of categories, null for missing values; `label` names it in errors."""
    kind = column.type()
    if kind.is_boolean():
        return ibis.cases((column, "True"), (~column, "False"))
    if kind.is_floating():
        double = ibis.ifelse(is_nan(column), ibis.null("float64"), column.cast("float64"))
        return whole_number_expression(double).cast("string").coalesce(double.cast("string"))
    if kind.is_array() and not kind.value_type.is_nested():
        return _json_text(column)
    if kind.is_binary() or kind.is_nested():
        raise InputError(
            f"{label} cannot be used as a group", given=str(kind), allowed="text, numbers, dates"
        )
    if kind.is_timestamp():
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


Predicate = Callable[[Foreign], Foreign]

_FILL = "Drop or fill these units."
_FILL_OR_SEPARATE = (
    "Drop or fill these units, or keep those whose proxy is missing as a stratum of their own: "
    "missing='own-stratum', --missing own-stratum."
)


Extents = dict[str, tuple[float, float]]


def checked(units: Units, source: Source, declared: Declaration) -> tuple[int, Extents]:
    """Return N, and the smallest and largest value of each number, of a valid table.

    Raises
    ------
    InputError
        For an empty table, a missing, duplicate or unusable id, a missing category, and a number that is
        missing, NaN, infinite or not a number. The error states the count and the first case.
    """
    table = units.table
    # `unit_key` is null if the id is, and needs no conversion of integers to text.
    measures = {"size": table.count(), "ids": table.unit_key.count()}
    if not units.integer_ids:
        # Few ids begin with white space, and to strip all takes five times as long.
        may_be_blank = table.unit_id.left(1).isin(("", *string.whitespace))
        is_blank = ibis.ifelse(may_be_blank, table.unit_id.strip() == "", False)
        measures["blank_ids"] = table.count(where=is_blank)
    for column in units.numbers.values():
        values = table[column]
        measures[f"{column}_n"] = values.count()
        measures[f"{column}_nan"] = table.count(where=values.isnan())
        measures[f"{column}_low"], measures[f"{column}_high"] = values.min(), values.max()
    measures |= {f"{column}_n": table[column].count() for column in units.categories.values()}
    row = source.first_row(table.aggregate(**measures))
    size = int(row["size"])
    if size == 0:
        raise InputError(f"{source.table_name} has no rows", allowed="one row per unit")
    if row["ids"] < size or row.get("blank_ids"):
        refuse = _invalid_rows_raiser(source, declared, declared.id)
        refuse("missing id", lambda ids: absent(ids, ("",)), action="Every unit needs an id.")
        if source.column(declared.id).type().is_floating():
            refuse(
                "id that is of an unsupported type",
                lambda ids: whole_number_expression(ids).isnull(),
                allowed="text, integers, whole floats below 2**53, UUIDs",
                action="Convert the column to text.",
            )
    extents = {}
    for name, column in units.numbers.items():
        low, high = extents[name] = row[f"{column}_low"], row[f"{column}_high"]
        is_finite = low is not None and math.isfinite(low) and math.isfinite(high)
        if row[f"{column}_n"] < size or row[f"{column}_nan"] or not is_finite:
            _raise_number_error(source, declared, name)
    for name, column in units.categories.items():
        if row[f"{column}_n"] < size:
            refuse = _invalid_rows_raiser(source, declared, name, f"group column {name!r}")
            refuse("missing value", absent, action="Assign a separate category to them.")
    _require_distinct_ids(units, source, size)
    return size, {name: (float(low), float(high)) for name, (low, high) in extents.items()}


def absent(raw: Foreign, words: tuple[str, ...] = ()) -> Foreign:
    """Return whether there is no value, NaN or one of these words in lower case, as an Ibis expression."""
    kind = raw.type()
    if kind.is_floating():
        return raw.isnull() | is_nan(raw)
    if words and kind.is_string():
        return raw.isnull() | raw.strip().lower().isin(words)
    return raw.isnull()


# Kinds of texts in a column of numbers, with the remedy for each.
_DECIMAL_COMMA_VALUE = "value that is written with a decimal comma or a percent sign"
_TEXT_VALUE = "value that is not a number"
_REMEDIES = {
    _DECIMAL_COMMA_VALUE: declaration.DECIMAL_POINT,
    _TEXT_VALUE: (
        "In a JSON object, name the number: judge.score. Words are not scores: use categories as strata "
        "(by=, --by COL), a model's answer in predicted= (--predicted), and labels with --map and --positive "
        "of estimate; otherwise write 1 and 0. If these are a few missing values: "
    ),
}


def _raise_number_error(source: Source, declared: Declaration, name: str) -> None:
    """Raise the error on the first kind of invalid value: missing, not a number, NaN, infinite."""
    is_text = source.is_text(name)

    def numbers(raw: Foreign) -> Foreign:
        if is_text:
            return text_number_expression(raw)
        return raw

    def missing(raw: Foreign) -> Foreign:
        if is_text:
            return absent(raw, ("",))
        return raw.isnull()

    kinds: dict[str, Predicate] = {"missing value": missing}
    if is_text:
        kinds[_DECIMAL_COMMA_VALUE] = lambda raw: numbers(raw).isnull() & with_point(raw).notnull()
        kinds[_TEXT_VALUE] = lambda raw: ~missing(raw) & numbers(raw).isnull()
    if is_text or source.column(name).type().is_floating():
        kinds["value that is NaN"] = lambda raw: is_nan(numbers(raw))
        kinds["value that is infinite"] = lambda raw: numbers(raw).isinf()
    may_be_separate = declared.missing is None and name in (*declared.proxies, *declared.softmax)
    fill = _FILL_OR_SEPARATE if may_be_separate else _FILL
    remedies = {**_REMEDIES, _TEXT_VALUE: f"{_REMEDIES[_TEXT_VALUE]}{fill[0].lower()}{fill[1:]}"}
    refuse = _invalid_rows_raiser(source, declared, name)
    for kind, predicate in kinds.items():
        refuse(kind, predicate, "; allowed: finite numbers", action=remedies.get(kind, fill))
    problem = f"{source.table_name}: column {name!r} holds a value that cannot be used"
    raise InputError(problem, allowed="finite numbers", action=fill)


# Largest number of keys in one query for distinct keys: DuckDB can do this in its memory limit for two
# threads.
_MAX_KEYS_AT_ONCE = 200_000_000


def _require_distinct_ids(units: Units, source: Source, size: int) -> None:
    """Raise an error if an id occurs twice."""
    key = duplicate_key(source.backend, units.table.unit_key)
    # Distinct keys need less memory than a count for each key, and the keys of one remainder less than all.
    if key.type().is_integer():
        parts = -(-size // _MAX_KEYS_AT_ONCE)
    else:
        parts = 1
    n_distinct = 0
    for part in range(parts):
        keys = units.table.select(key=key)
        if parts > 1:
            # In SQL the remainder of a negative number is negative.
            keys = keys.filter((keys.key % parts + parts) % parts == part)
        distinct = keys.distinct()
        n_distinct += source.first_row(distinct.aggregate(n=distinct.count()))["n"]
    if n_distinct == size:
        return
    repeated = units.table.group_by(key=key).aggregate(n=lambda t: t.count()).filter(lambda t: t.n > 1)
    # Different ids may have the same key: only the ids of repeated keys are compared.
    keys = repeated.select("key")
    units_with_key = units.table.mutate(key=key).semi_join(keys, "key")
    repeated_ids = (
        units_with_key.group_by("unit_id").aggregate(n=lambda t: t.count()).filter(lambda t: t.n > 1)
    )
    row = source.first_row(
        repeated_ids.aggregate(n=(repeated_ids.n - 1).sum(), first=repeated_ids.unit_id.min())
    )
    if row["n"]:
        raise duplicate_ids_error(f"{source.table_name}: ", int(row["n"]), row["first"])


def _invalid_rows_raiser(
    source: Source, declared: Declaration, name: str, column_label: str | None = None
) -> Callable[..., None]:
    """Return a function that raises an `InputError` with the number and the first of the invalid rows."""
    columns = {"id": source.column(declared.id), "value": source.column(name)}
    if source.ordered:
        columns["row"] = ibis.row_number()
        order = "row"
    else:
        order = "id"
    table = source.table.select(**columns)

    def refuse(kind: str, bad: Predicate, suffix: str = "", **details: str) -> None:
        rows = table.filter(lambda t: bad(t.value))
        count = int(source.first_row(rows.aggregate(n=rows.count()))["n"])
        if not count:
            return
        row = source.first_row(rows.order_by(order).limit(1))
        parts = []
        if row["value"] is not None:
            parts.append(repr(row["value"]))
        if name != declared.id:
            parts.append(f"id {row['id']!r}")
        if source.ordered and source.locate:
            parts.append(source.locate(int(row["row"])))
        elif source.ordered:
            parts.append(f"row {row['row'] + 1}")
        first = ", ".join(parts) or "no id"
        problem = f"holds {_count_text(count, kind)} (first: {first}{suffix})"
        label = column_label or f"column {name!r}"
        raise InputError(f"{source.table_name}: {label} {problem}", **details)

    return refuse


def _count_text(count: int, noun_phrase: str) -> str:
    """Return `1 value that is NaN` or `3 values that are NaN`."""
    if count == 1:
        return f"1 {noun_phrase}"
    noun, that, rest = noun_phrase.partition(" that ")
    return f"{count} {noun}s{that}{rest.replace('is ', 'are ', 1).replace('not a number', 'not numbers')}"


# Largest distance from 1 of the sums of columns that the user declares a softmax.
DECLARED_SOFTMAX_TOLERANCE = 0.05


def prepared(source: Source, declared: Declaration) -> tuple[Source, Declaration]:
    """Return the source with the derived columns of the declaration, and the declaration of these columns."""
    if declared.id == declaration.ROW and declaration.ROW not in source.columns:
        if not source.ordered:
            raise InputError(
                f"{source.table_name}: rows read through a database connection have no order, so they "
                "cannot be numbered",
                action="Name a column of unique ids: id=….",
            )
        # The number of each row, stored once.
        source = _with_columns(source, **{declaration.ROW: ibis.row_number() + declaration.ROW_BASE})
        source = _stored(source, tuple(source.columns))
    columns = declared.softmax
    if declared.may_be_softmax and declaration.is_softmax(totals(source, declared.proxies)):
        columns = declared.proxies
    if columns:
        source, declared = _with_softmax(source, declared, columns)
    if declared.answers:
        source, declared = _with_agreements(source, declared)
    if declared.history is not None:
        source, declared = _with_history(source, declared)
    if declared.missing == declaration.OWN_STRATUM:
        source, declared = _with_own_stratum(source, declared)
    return source, declared


def _with_columns(source: Source, notes: Sequence[str] = (), **columns: object) -> Source:
    """Return the source with more columns, under the user's names."""
    internal = {name: f"derived_{name}" for name in columns}
    table = source.table.mutate(**{internal[name]: column for name, column in columns.items()})
    return replace(source, table=table, columns={**source.columns, **internal}, notes=(*source.notes, *notes))


def _stored(source: Source, names: Sequence[str]) -> Source:
    """Return some columns of the source, copied into the engine's storage."""
    columns = {name: source.columns[name] for name in names}
    with translate_engine_errors(source.table_name):
        table = store_table(source.backend, source.table.select(*columns.values()))
    return replace(source, table=table, columns=columns)


# ---- a softmax


def totals(source: Source, columns: Sequence[str]) -> dict[str, Foreign]:
    """Return the number of complete rows, their smallest value, and the largest distance of a sum from 1."""
    values = [number_expression(source, name) for name in columns]
    total = reduce(add, values)
    is_complete = total.notnull() & ~is_nan(total)
    table = source.table.mutate(total=total, least=ibis.least(*values)).filter(is_complete)
    return source.first_row(
        table.aggregate(n=table.count(), least=table.least.min(), off=(table.total - 1.0).abs().max())
    )


def _with_softmax(
    source: Source, declared: Declaration, columns: tuple[str, ...]
) -> tuple[Source, Declaration]:
    """Return the source with the probability of the answer, and the most probable class if none is named."""
    row_sums = totals(source, columns)
    if len(columns) < 2 or not declaration.is_softmax(row_sums, DECLARED_SOFTMAX_TOLERANCE):
        given_text = "no row with all values"
        if row_sums["n"]:
            given_text = f"rows add up to 1 ± {row_sums['off']:.3g}"
        raise InputError(
            f"{source.table_name}: the columns {_columns_text(columns)} are not a softmax",
            given=given_text,
            allowed="two or more columns of probabilities that add up to 1 in each row",
            action="Logits must go through a softmax first.",
        )
    numbers = [number_expression(source, name) for name in columns]
    values = dict(zip(declaration.class_names(columns), numbers, strict=True))
    total = reduce(add, values.values())
    largest = ibis.ifelse(absent(total), total, ibis.greatest(*values.values()))
    columns_made = {declaration.CONFIDENCE: largest}
    name = declared.roles.answer
    answer = name and category(source.column(name), name)
    meaning = f"the most probable class ({name!r} names others)"
    if answer is None:
        columns_made[PREDICTED] = ibis.cases(
            *((v == largest, label) for label, v in values.items()), else_="none"
        )
        meaning = f"the most probable class, kept as {PREDICTED!r}"
        name = PREDICTED
        declared = replace(declared, groups=(*declared.groups, PREDICTED))
    elif _distinct_answers(source, answer, len(values) + 1) <= set(values):
        columns_made[declaration.CONFIDENCE] = ibis.cases(
            *((answer == label, v) for label, v in values.items())
        )
        meaning = f"the answer in {name!r}"
    note = (
        f"{len(columns)} columns that add up to 1 ({_columns_text(columns)}) are a softmax; the proxy is the "
    )
    roles = replace(declared.roles, answer=name)
    declared = replace(declared, proxies=(declaration.CONFIDENCE,), softmax=(), roles=roles)
    return _with_columns(source, (f"{note}probability of {meaning}",), **columns_made), declared


def _distinct_answers(source: Source, answer: object, limit: int) -> set[str]:
    """Return up to `limit` different answers."""
    answers = source.run(source.table.select(answer=answer).distinct().limit(limit))
    return {row["answer"] for row in answers.to_pylist()}


def _columns_text(columns: Sequence[str]) -> str:
    if len(columns) <= 4:
        return ", ".join(columns)
    return f"{columns[0]} … {columns[-1]}"


# ---- other models' answers


def _with_agreements(source: Source, declared: Declaration) -> tuple[Source, Declaration]:
    """Return the source with the weighted shares of other models that agree with a model."""
    # The model's answer may be the most probable class of a softmax, which has its name only now.
    if not declared.agreements:
        model = declared.roles.answer
        if model is None:
            raise InputError(
                "answers are compared with those of the evaluated model, which is not named",
                allowed=f"predicted=COLUMN, --predicted COLUMN, or the proxy {PEER_AGREEMENT}_COLUMN",
                action="Name the column of its answers.",
            )
        declared = replace(declared, agreements={PEER_AGREEMENT: model})
    column_label = f"{source.table_name}: column"
    texts = {
        name: _normalised_answers(
            category(source.column(name), f"{column_label} {name!r}"), declared.normalisation
        )
        for name in declared.answer_columns
    }
    ids = id_text_of(source.column(declared.id), f"{column_label} {declared.id!r}")
    keyed = source.table.select(
        key=md5_digest(source.backend, ibis.literal(f"0:{KEY_PURPOSE}") + ids),
        **{f"a{at}": text for at, text in enumerate(texts.values())},
    )
    # The limit is computed from keys alone, because a sort of rows with a thousand answers needs much memory.
    smallest = keyed.select("key").filter(lambda t: t.key.notnull()).order_by("key").limit(MAX_ITEMS)
    highest = source.first_row(smallest.aggregate(highest=smallest.key.max()))["highest"] or ""
    chosen = source.run(keyed.filter(keyed.key <= highest)).sort_by("key")
    codes = answer_codes([chosen[f"a{at}"].to_pylist() for at in range(len(texts))])
    place = {name: at for at, name in enumerate(texts)}
    weights = {
        name: peer_weights(codes[:, [place[peer] for peer in declared.own_and_peer_columns(model)]])
        for name, model in declared.agreements.items()
        if len(codes)
    }
    notes = [model_weights.note(name, declared.agreements[name]) for name, model_weights in weights.items()]
    new_columns = {}
    for name, model_weights in weights.items():
        if not model_weights.weights.any():
            continue
        model, *peers = (texts[peer] for peer in declared.own_and_peer_columns(declared.agreements[name]))
        pairs = zip(peers, model_weights.weights.tolist(), strict=True)
        weighted_peers = [(text, weight) for text, weight in pairs if weight]
        agreeing_weight = _balanced_sum(
            [ibis.ifelse(text == model, weight, 0) for text, weight in weighted_peers]
        )
        answered_weight = _balanced_sum(
            [ibis.ifelse(text.notnull(), weight, 0) for text, weight in weighted_peers]
        )
        numerator = (MAX_WEIGHT * agreeing_weight + model_weights.prior[0]).cast("float64")
        denominator = (MAX_WEIGHT * answered_weight + model_weights.prior[1]).cast("float64")
        new_columns[name] = ibis.ifelse(model.isnull(), ibis.null("float64"), numerator / denominator)
    source = _with_columns(source, notes, **new_columns)
    agreements = {name: declared.agreements[name] for name in new_columns}
    declared = replace(declared, proxies=(*new_columns, *declared.proxies), answers=(), agreements=agreements)
    if new_columns and source.ordered and source.backend.name == "duckdb":
        # Plans, draws and digests each read the proxy, which may depend on a thousand columns of answers.
        source = _stored(source, declared.select_from(source.columns))
    return source, declared


def _normalised_answers(text: Foreign, kind: str | None) -> Foreign:
    """Return answers without case, punctuation and articles (`text`), or their last numbers (`number`)."""
    if kind == "number":
        number = text.replace(",", "").re_extract(LAST_NUMBER, 1).nullif("").try_cast("float64")
        return category(number, "")
    if kind == "text":
        text = ibis.literal(" ") + text.lower().re_replace(PUNCTUATION, "").re_replace(BLANKS, " ") + " "
        for article in ARTICLES:
            text = text.replace(f" {article} ", " ")
        return text.strip()
    return text


def _balanced_sum(terms: Sequence[Foreign]) -> Foreign:
    """Return a sum of expressions as a balanced tree: engines limit the depth of nested expressions."""
    if len(terms) == 1:
        return terms[0].cast("int64")
    half = len(terms) // 2
    return _balanced_sum(terms[:half]) + _balanced_sum(terms[half:])


# ---- earlier models' results


def _with_history(source: Source, declared: Declaration) -> tuple[Source, Declaration]:
    """Return the source with the columns of a history, joined by id."""
    history = declared.history
    assert history is not None
    columns = {f"history_{at}_": values for at, values in enumerate(history.values.T)}
    history_table = literal_table(
        {"history_key": np.array(history.ids.tolist(), object), **columns}, source.backend
    )
    key = id_text_of(source.column(declared.id), f"{source.table_name}: column {declared.id!r}")
    joined = source.table.mutate(history_own=key)
    joined = joined.left_join(history_table, joined.history_own == history_table.history_key)
    is_known = joined.history_key.notnull()
    new_columns = {
        name: ibis.ifelse(is_known, joined[f"history_{at}_"], double(float(default)))
        for at, (name, default) in enumerate(zip(history.names, history.unknown, strict=True))
    }
    row = source.first_row(joined.aggregate(size=joined.count(), known=is_known.sum()))
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
            "missing='own-stratum' requires a proxy", action="Name one: proxy=…, --proxy COLUMN."
        )
    names = (*declared.proxies, *declared.second_moments.values())
    values = {name: number_expression(source, name) for name in names}
    missing_masks = []
    for name in names:
        if source.is_text(name):
            missing_masks.append(absent(source.column(name), EMPTY_CELL_TEXTS))
        else:
            missing_masks.append(absent(source.column(name)))
    is_missing = reduce(or_, missing_masks)
    measured = source.table.mutate(absent=is_missing, **{f"v{at}": v for at, v in enumerate(values.values())})
    measures = {"n": measured.absent.sum()}
    for at in range(len(names)):
        value_or_null = ibis.ifelse(measured.absent | is_nan(measured[f"v{at}"]), None, measured[f"v{at}"])
        measures |= {f"low{at}": value_or_null.min(), f"high{at}": value_or_null.max()}
    row = source.first_row(measured.aggregate(**measures))
    count = int(row["n"] or 0)
    if not count:
        return source, replace(declared, missing=None)
    new_columns: dict[str, Foreign] = {OWN_STRATUM_GROUP: ibis.ifelse(is_missing, MISSING_PROXY, "known")}
    for at, (name, value) in enumerate(values.items()):
        fill = declaration.outcome_midpoint(declared.bounds, row[f"low{at}"], row[f"high{at}"])
        if source.is_text(name):
            # The column remains text, so that errors quote invalid values as they are in the file.
            new_columns[name] = ibis.ifelse(is_missing, ibis.literal(repr(fill)), source.column(name))
        else:
            new_columns[name] = ibis.ifelse(is_missing, ibis.literal(fill), value)
    note = f"{count:,} units without a proxy form a separate stratum"
    declared = replace(declared, groups=(*declared.groups, OWN_STRATUM_GROUP))
    return _with_columns(source, (note,), **new_columns), declared
