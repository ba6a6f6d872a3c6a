"""Validate a table: one pass counts, one finds duplicates, more passes only name what is wrong."""

from __future__ import annotations

import math
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
    LARGEST_WEIGHT,
    LAST_NUMBER,
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

# Floating-point ids are taken as integers below this.
WHOLE_LIMIT = 2.0**53


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Units:
    """A lazy table with one row per unit and columns of known kinds.

    Parameters
    ----------
    table : Ibis table
        Columns `unit_id` (text), `unit_key` (to find duplicates by), then numbers, categories, payload.
    numbers, categories, shown : mapping of str to str
        The user's column names to the table's: doubles, text, and values as they are.
    integer_ids : bool
        Whether ids are integers, returned as such.
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
        """Return the table's own name of a column, of this kind or any other."""
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
    where = f"{source.label}: column"
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
        integer_ids=_is_whole(raw_id.type()) or raw_id.type().is_floating(),
        backend=source.backend,
    )


def _is_whole(kind: Foreign) -> bool:
    return bool(kind.is_integer() or (kind.is_decimal() and kind.scale == 0))


def id_text_of(column: Foreign, name: str) -> Foreign:
    """Return the text of ids as an Ibis expression, null where a float is not a whole number below 2⁵³."""
    kind = column.type()
    if kind.is_string():
        return column
    if kind.is_floating():
        return whole_number_expression(column).cast("string")
    if kind.is_uuid():
        return column.cast("string").lower()
    if _is_whole(kind) or kind.is_null():
        return column.cast("string")
    raise InputError(
        f"{name} has an unsupported type for ids",
        given=str(kind),
        allowed="text, integers, whole floats, UUIDs",
        action="Make a text column of it.",
    )


def whole_number_expression(column: Foreign) -> Foreign:
    """Return floating-point values as integers, null where they are not whole or not below 2⁵³."""
    double = column.cast("float64")
    bounded = ibis.ifelse(double.abs() < WHOLE_LIMIT, double, ibis.null("float64"))
    integer = bounded.cast("int64")
    return ibis.ifelse(integer.cast("float64") == double, integer, ibis.null("int64"))


def number_expression(source: Source, name: str, words: str | None = None) -> Foreign:
    """Return a column as numbers, text that is none as null; an error calls it by `words`."""
    words = words or f"{source.label}: column {name!r}"
    column = source.column(name)
    kind = column.type()
    if source.is_text(name):
        return text_number_expression(column)
    if kind.is_boolean():
        return column.cast("int8").cast("float64")
    if kind.is_numeric() or kind.is_null():
        return column.cast("float64")
    raise InputError(f"{words} is not numeric", given=str(kind), allowed="numbers")


def text_number_expression(column: Foreign) -> Foreign:
    """Return text as numbers, null where it is none; `1_0`, which engines and Python read as 10, is none.

    `true` and `false` are 1 and 0, as the truth values of Parquet are.
    """
    number = ibis.ifelse(column.contains("_"), ibis.null("float64"), column.try_cast("float64"))
    plain = column.strip().lower()
    truth = ibis.cases((plain == "true", 1.0), (plain == "false", 0.0), else_=ibis.null("float64"))
    return ibis.coalesce(number, truth)


def with_point(column: Foreign) -> Foreign:
    """Return text as numbers: decimal commas become points, percent signs are removed; else null."""
    return text_number_expression(column.replace(",", ".").replace("%", "").strip())


def category(column: Foreign, words: str) -> Foreign:
    """Return a column as the text of categories, null where there is none; an error calls it by `words`."""
    kind = column.type()
    if kind.is_boolean():
        return ibis.cases((column, "True"), (~column, "False"))
    if kind.is_floating():
        double = ibis.ifelse(is_nan(column), ibis.null("float64"), column.cast("float64"))
        return whole_number_expression(double).cast("string").coalesce(double.cast("string"))
    if kind.is_array() and not kind.value_type.is_nested():
        return _json_text(column)
    if kind.is_binary() or kind.is_nested():
        raise InputError(f"{words} cannot be a group", given=str(kind), allowed="text, numbers, dates")
    if kind.is_timestamp():
        return timestamp_text(column)
    return column.cast("string")


def _json_text(column: Foreign) -> Foreign:
    """Return a column of lists as JSON text, null where there is none."""
    quoted = column.map(
        lambda entry: '"' + entry.cast("string").replace("\\", "\\\\").replace('"', '\\"') + '"'
    )
    return ibis.ifelse(column.isnull(), ibis.null("string"), "[" + quoted.join(",").coalesce("") + "]")


def is_nan(column: Foreign) -> Foreign:
    """Return whether a number is NaN, asked so that DuckDB 2 has to look at it.

    It takes `isnan(x)` and `x != x` to hold nowhere in a Parquet file, whose extents leave NaN out.
    """
    return column.nullif(-sys.float_info.max).isnan()


Predicate = Callable[[Foreign], Foreign]

_FILL = (
    "Drop or fill these units, or keep those whose proxy is missing as a stratum of their own: "
    "missing='own-stratum', --missing own-stratum."
)


Extents = dict[str, tuple[float, float]]


def checked(units: Units, source: Source, declared: Declaration) -> tuple[int, Extents]:
    """Return N, and the smallest and largest value of each number, of a sound table.

    Raises
    ------
    InputError
        For an empty table, a missing, duplicated or unusable id, a missing category, a number that is
        missing, NaN, infinite or not a number; each counted, and the first one named.
    """
    table = units.table  # `unit_key` is null where the id is, and costs no text of an integer
    measures = {"size": table.count(), "ids": table.unit_key.count()}
    if not units.integer_ids:
        measures["blank_ids"] = table.count(where=table.unit_id.strip() == "")
    for column in units.numbers.values():
        values = table[column]
        measures[f"{column}_n"] = values.count()
        measures[f"{column}_nan"] = table.count(where=values.isnan())
        measures[f"{column}_low"], measures[f"{column}_high"] = values.min(), values.max()
    measures |= {f"{column}_n": table[column].count() for column in units.categories.values()}
    row = source.first(table.aggregate(**measures))
    size = int(row["size"])
    if size == 0:
        raise InputError(f"{source.label} has no rows", allowed="one row per unit")
    if row["ids"] < size or row.get("blank_ids"):
        refuse = _refusal(source, declared, declared.id)
        refuse("missing id", lambda ids: absent(ids, ("",)), action="Every unit needs an id.")
        if source.column(declared.id).type().is_floating():
            refuse(
                "id that cannot be an id",
                lambda ids: whole_number_expression(ids).isnull(),
                allowed="text, integers, whole floats below 2**53, UUIDs",
                action="Make a text column of them.",
            )
    extents = {}
    for name, column in units.numbers.items():
        low, high = extents[name] = row[f"{column}_low"], row[f"{column}_high"]
        finite = low is not None and math.isfinite(low) and math.isfinite(high)
        if row[f"{column}_n"] < size or row[f"{column}_nan"] or not finite:
            _refuse_number(source, declared, name)
    for name, column in units.categories.items():
        if row[f"{column}_n"] < size:
            refuse = _refusal(source, declared, name, f"group column {name!r}")
            refuse("missing value", absent, action="Give them a category of their own.")
    _refuse_duplicates(units, source, size)
    return size, {name: (float(low), float(high)) for name, (low, high) in extents.items()}


def absent(raw: Foreign, words: tuple[str, ...] = ()) -> Foreign:
    """Return whether there is no value, NaN or one of these words in lower case, as an Ibis expression."""
    kind = raw.type()
    if kind.is_floating():
        return raw.isnull() | is_nan(raw)
    if words and kind.is_string():
        return raw.isnull() | raw.strip().lower().isin(words)
    return raw.isnull()


_COMMA = "value that is written with a decimal comma or a percent sign"
_WORD = "value that is not a number"
_REMEDIES = {
    _COMMA: declaration.DECIMAL_POINT,
    _WORD: (
        "In an object of JSON name the number: judge.score. Words are not scores: as categories they make "
        "strata, by= (--by COL), the model's answer is kept by predicted= (--predicted), labels are counted "
        "by --map and --positive of estimate; else write 1 and 0. If these are a few that are missing: "
        f"{_FILL[0].lower()}{_FILL[1:]}"
    ),
}


def _refuse_number(source: Source, declared: Declaration, name: str) -> None:
    """Raise the error that fits: missing, not a number, NaN, infinite."""
    text = source.is_text(name)
    numbers: Predicate = text_number_expression if text else lambda raw: raw
    missing: Predicate = (lambda raw: absent(raw, ("",))) if text else lambda raw: raw.isnull()
    kinds = {"missing value": missing}
    if text:
        kinds[_COMMA] = lambda raw: numbers(raw).isnull() & with_point(raw).notnull()
        kinds[_WORD] = lambda raw: ~missing(raw) & numbers(raw).isnull()
    if text or source.column(name).type().is_floating():
        kinds["value that is NaN"] = lambda raw: is_nan(numbers(raw))
        kinds["value that is infinite"] = lambda raw: numbers(raw).isinf()
    refuse = _refusal(source, declared, name)
    for kind, predicate in kinds.items():
        refuse(kind, predicate, "; allowed: finite numbers", action=_REMEDIES.get(kind, _FILL))
    problem = f"{source.label}: column {name!r} holds a value that cannot be used"
    raise InputError(problem, allowed="finite numbers", action=_FILL)


# Keys that are told apart at once: what DuckDB can do in the memory that it is given for two threads.
_KEYS_AT_ONCE = 200_000_000


def _refuse_duplicates(units: Units, source: Source, size: int) -> None:
    key = duplicate_key(source.backend, units.table.unit_key)
    # Distinct keys take less than a count for each, and those of one remainder less than all.
    if key.type().is_integer():
        parts = -(-size // _KEYS_AT_ONCE)
    else:
        parts = 1
    n_distinct = 0
    for part in range(parts):
        keys = units.table.select(key=key)
        if parts > 1:
            keys = keys.filter((keys.key % parts + parts) % parts == part)
        distinct = keys.distinct()
        n_distinct += source.first(distinct.aggregate(n=distinct.count()))["n"]
    if n_distinct == size:
        return
    repeated = units.table.group_by(key=key).aggregate(n=lambda t: t.count()).filter(lambda t: t.n > 1)
    keys = repeated.select("key")
    units_with_key = units.table.mutate(key=key).semi_join(keys, "key")
    repeated_ids = (
        units_with_key.group_by("unit_id").aggregate(n=lambda t: t.count()).filter(lambda t: t.n > 1)
    )
    row = source.first(repeated_ids.aggregate(n=(repeated_ids.n - 1).sum(), first=repeated_ids.unit_id.min()))
    if row["n"]:
        raise duplicate_ids_error(f"{source.label}: ", int(row["n"]), row["first"])


def _refusal(
    source: Source, declared: Declaration, name: str, column_label: str | None = None
) -> Callable[..., None]:
    """Return what raises an `InputError` that counts the bad rows of a column and names the first of them."""
    place = {"row": ibis.row_number()} if source.ordered else {}
    table = source.table.select(id=source.column(declared.id), value=source.column(name), **place)

    def refuse(kind: str, bad: Predicate, suffix: str = "", **details: str) -> None:
        rows = table.filter(lambda t: bad(t.value))
        count = int(source.first(rows.aggregate(n=rows.count()))["n"])
        if not count:
            return
        row = source.first(rows.order_by("row" if source.ordered else "id").limit(1))
        if row["value"] is None:
            first = []
        else:
            first = [repr(row["value"])]
        if name != declared.id:
            first.append(f"id {row['id']!r}")
        if source.ordered:
            first.append(source.locate(int(row["row"])) if source.locate else f"row {row['row'] + 1}")
        problem = f"holds {_counted(count, kind)} (first: {', '.join(first) or 'no id'}{suffix})"
        raise InputError(f"{source.label}: {column_label or f'column {name!r}'} {problem}", **details)

    return refuse


def _counted(count: int, noun_phrase: str) -> str:
    """Return `1 value that is NaN` or `3 values that are NaN`."""
    if count == 1:
        return f"1 {noun_phrase}"
    noun, that, rest = noun_phrase.partition(" that ")
    return f"{count} {noun}s{that}{rest.replace('is ', 'are ', 1).replace('not a number', 'not numbers')}"


# How far rows of columns that are declared a softmax may be from adding up to 1.
DECLARED = 0.05


def prepared(source: Source, declared: Declaration) -> tuple[Source, Declaration]:
    """Return the source with the columns that the declaration asks to be made, and what they are."""
    if declared.id == declaration.ROW and declaration.ROW not in source.columns:
        if not source.ordered:
            raise InputError(
                f"{source.label}: rows on a connection have no order, and so no number",
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
    with translate_engine_errors(source.label):
        table = store_table(source.backend, source.table.select(*columns.values()))
    return replace(source, table=table, columns=columns)


# ---- a softmax


def totals(source: Source, columns: Sequence[str]) -> dict[str, Foreign]:
    """Return how far rows add up from 1, their least value, and the number of rows that have all values."""
    values = [number_expression(source, name) for name in columns]
    total = reduce(add, values)
    is_complete = total.notnull() & ~is_nan(total)
    table = source.table.mutate(total=total, least=ibis.least(*values)).filter(is_complete)
    return source.first(
        table.aggregate(n=table.count(), least=table.least.min(), off=(table.total - 1.0).abs().max())
    )


def _with_softmax(
    source: Source, declared: Declaration, columns: tuple[str, ...]
) -> tuple[Source, Declaration]:
    """Return the source with the probability of the answer, and the most probable class if none is named."""
    row_sums = totals(source, columns)
    if len(columns) < 2 or not declaration.is_softmax(row_sums, DECLARED):
        raise InputError(
            f"{source.label}: the columns {_listed(columns)} are not a softmax",
            given=f"rows add up to 1 ± {row_sums['off']:.3g}" if row_sums["n"] else "no row with all values",
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
    elif _levels(source, answer, len(values) + 1) <= set(values):
        columns_made[declaration.CONFIDENCE] = ibis.cases(
            *((answer == label, v) for label, v in values.items())
        )
        meaning = f"the answer in {name!r}"
    note = f"{len(columns)} columns that add up to 1 ({_listed(columns)}) are a softmax; the proxy is the "
    roles = replace(declared.roles, answer=name)
    declared = replace(declared, proxies=(declaration.CONFIDENCE,), softmax=(), roles=roles)
    return _with_columns(source, (f"{note}probability of {meaning}",), **columns_made), declared


def _levels(source: Source, answer: object, limit: int) -> set[str]:
    """Return up to `most` different answers."""
    answers = source.run(source.table.select(answer=answer).distinct().limit(limit))
    return {row["answer"] for row in answers.to_pylist()}


def _listed(columns: Sequence[str]) -> str:
    if len(columns) <= 4:
        return ", ".join(columns)
    return f"{columns[0]} … {columns[-1]}"


# ---- other models' answers


def _with_agreements(source: Source, declared: Declaration) -> tuple[Source, Declaration]:
    """Return the source with the shares of other models that answer as a model does."""
    if not declared.agreements:  # the answer is a softmax's most probable class
        model = declared.roles.answer
        if model is None:
            raise InputError(
                "answers are compared with those of the evaluated model, which is not named",
                allowed=f"predicted=COLUMN, --predicted COLUMN, or the proxy {PEER_AGREEMENT}_COLUMN",
                action="Name the column of its answers.",
            )
        declared = replace(declared, agreements={PEER_AGREEMENT: model})
    column_label = f"{source.label}: column"
    texts = {
        name: _written_alike(category(source.column(name), f"{column_label} {name!r}"), declared.alike)
        for name in declared.answer_columns
    }
    ids = id_text_of(source.column(declared.id), f"{column_label} {declared.id!r}")
    keyed = source.table.select(
        key=md5_digest(source.backend, ibis.literal(f"0:{KEY_PURPOSE}") + ids),
        **{f"a{at}": text for at, text in enumerate(texts.values())},
    )
    # The limit first, of keys alone: engines that sort rows of a thousand answers hold them all.
    smallest = keyed.select("key").filter(lambda t: t.key.notnull()).order_by("key").limit(MAX_ITEMS)
    highest = source.first(smallest.aggregate(highest=smallest.key.max()))["highest"] or ""
    chosen = source.run(keyed.filter(keyed.key <= highest)).sort_by("key")
    codes = answer_codes([chosen[f"a{at}"].to_pylist() for at in range(len(texts))])
    place = {name: at for at, name in enumerate(texts)}
    weights = {
        name: peer_weights(codes[:, [place[peer] for peer in declared.peers(model)]])
        for name, model in declared.agreements.items()
        if len(codes)
    }
    notes = [model_weights.note(name, declared.agreements[name]) for name, model_weights in weights.items()]
    new_columns = {}
    for name, model_weights in weights.items():
        if not model_weights.weights.any():
            continue
        model, *peers = (texts[peer] for peer in declared.peers(declared.agreements[name]))
        weighted_peers = [pair for pair in zip(peers, model_weights.weights.tolist(), strict=True) if pair[1]]
        agreeing_weight = _added([ibis.ifelse(text == model, weight, 0) for text, weight in weighted_peers])
        answered_weight = _added([ibis.ifelse(text.notnull(), weight, 0) for text, weight in weighted_peers])
        numerator = (LARGEST_WEIGHT * agreeing_weight + model_weights.prior[0]).cast("float64")
        denominator = (LARGEST_WEIGHT * answered_weight + model_weights.prior[1]).cast("float64")
        new_columns[name] = ibis.ifelse(model.isnull(), ibis.null("float64"), numerator / denominator)
    source = _with_columns(source, notes, **new_columns)
    agreements = {name: declared.agreements[name] for name in new_columns}
    declared = replace(declared, proxies=(*new_columns, *declared.proxies), answers=(), agreements=agreements)
    if new_columns and source.ordered and source.backend.name == "duckdb":
        # Plans, draws and digests each read the proxy, and the answers are a thousand columns perhaps.
        source = _stored(source, declared.among(source.columns))
    return source, declared


def _written_alike(text: Foreign, kind: str | None) -> Foreign:
    """Return answers without what does not matter (`text`), or the last number in each (`number`)."""
    if kind == "number":
        number = text.replace(",", "").re_extract(LAST_NUMBER, 1).nullif("").try_cast("float64")
        return category(number, "")
    if kind == "text":
        text = ibis.literal(" ") + text.lower().re_replace(PUNCTUATION, "").re_replace(BLANKS, " ") + " "
        for article in ARTICLES:
            text = text.replace(f" {article} ", " ")
        return text.strip()
    return text


def _added(terms: Sequence[Foreign]) -> Foreign:
    """Return a sum of expressions, by halves: engines limit how deep an expression may be nested."""
    if len(terms) == 1:
        return terms[0].cast("int64")
    half = len(terms) // 2
    return _added(terms[:half]) + _added(terms[half:])


# ---- earlier models' results


def _with_history(source: Source, declared: Declaration) -> tuple[Source, Declaration]:
    """Return the source with the columns of a history, joined by id."""
    history = declared.history
    assert history is not None
    columns = {f"history_{at}_": values for at, values in enumerate(history.values.T)}
    history_table = literal_table(
        {"history_key": np.array(history.ids.tolist(), object), **columns}, source.backend
    )
    key = id_text_of(source.column(declared.id), f"{source.label}: column {declared.id!r}")
    joined = source.table.mutate(history_own=key)
    joined = joined.left_join(history_table, joined.history_own == history_table.history_key)
    is_known = joined.history_key.notnull()
    new_columns = {
        name: ibis.ifelse(is_known, joined[f"history_{at}_"], double(float(default)))
        for at, (name, default) in enumerate(zip(history.names, history.unknown, strict=True))
    }
    row = source.first(joined.aggregate(size=joined.count(), known=is_known.sum()))
    note = history.note(int(row["known"] or 0), int(row["size"]))
    source = _with_columns(replace(source, table=joined), (note,), **new_columns)
    proxy, *features = history.names
    proxies = (proxy, *declared.proxies)
    features = [*declared.features, *features]
    return source, replace(declared, proxies=proxies, features=tuple(features), history=None)


# ---- missing proxies


def _with_own_stratum(source: Source, declared: Declaration) -> tuple[Source, Declaration]:
    """Return the source with missing proxies filled with one number, and a group that tells them."""
    if not declared.proxies:
        raise InputError("missing='own-stratum' needs a proxy", action="Name one: proxy=…, --proxy COLUMN.")
    names = (*declared.proxies, *declared.second_moments.values())
    values = {name: number_expression(source, name) for name in names}
    is_missing = reduce(
        or_, (absent(source.column(name), EMPTY_CELL_TEXTS if source.is_text(name) else ()) for name in names)
    )
    measured = source.table.mutate(absent=is_missing, **{f"v{at}": v for at, v in enumerate(values.values())})
    measures = {"n": measured.absent.sum()}
    for at in range(len(names)):
        value_or_null = ibis.ifelse(measured.absent | is_nan(measured[f"v{at}"]), None, measured[f"v{at}"])
        measures |= {f"low{at}": value_or_null.min(), f"high{at}": value_or_null.max()}
    row = source.first(measured.aggregate(**measures))
    count = int(row["n"] or 0)
    if not count:
        return source, replace(declared, missing=None)
    new_columns: dict[str, Foreign] = {OWN_STRATUM_GROUP: ibis.ifelse(is_missing, MISSING_PROXY, "known")}
    for at, (name, value) in enumerate(values.items()):
        fill = declaration.middle(declared.bounds, row[f"low{at}"], row[f"high{at}"])
        is_text = source.is_text(
            name
        )  # stays text, so that what is not a number is still named as it is written
        new_columns[name] = ibis.ifelse(
            is_missing,
            ibis.literal(repr(fill) if is_text else fill),
            source.column(name) if is_text else value,
        )
    note = f"{count:,} units without a proxy are a stratum of their own"
    declared = replace(declared, groups=(*declared.groups, OWN_STRATUM_GROUP))
    return _with_columns(source, (note,), **new_columns), declared
