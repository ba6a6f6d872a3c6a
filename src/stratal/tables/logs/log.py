"""Logs of evaluation tools, as tables with one row per unit.

An answer that failed (the application returned an error or nothing) has no score, and the log counts it
separately. A metric that failed, was skipped or was invalidated is a missing score. A column with a value
that is not a number is not a column of scores: it remains text, and a note names the first such value.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from stratal.arrays import Record
from stratal.errors import InputError
from stratal.protocols import Cell, JsonDict, JsonMapping
from stratal.tables.no_answer import is_no_verdict
from stratal.whole_numbers import MAX_EXACT_INTEGER

# Separates a column from its filter or model, in logs with several: `score@large`.
VARIANT_SEPARATOR = "@"

# Separates the id of a repeated sample or of a conversation from the number of the repeat or turn: `q7#2`.
REPEAT_SEPARATOR = "#"

# Maximum length in characters of an error of a tool or a library inside a message.
MAX_ERROR_CHARACTERS = 200

# Columns that annotators need to judge a unit, in this order.
_SHOWN_COLUMNS = ("input", "turns", "target", "answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """One line of a log: the answer and the scores of one filter or model for one unit.

    Parameters
    ----------
    unit : str
        Id of the unit.
    unit_columns : mapping
        Entries of the unit that do not depend on the filter or model: input, target, epoch.
    variant_columns : mapping
        Entries that depend on the filter or model, except its `scores`.
    scores : mapping of str to value
        Scores as the tool wrote them; None if a metric has no score.
    variant : str
        The filter or model.
    failed : bool
        Whether the application returned an error or nothing, so that there is no answer to score.
    """

    unit: str
    unit_columns: JsonMapping = field(default_factory=dict)
    variant_columns: JsonMapping = field(default_factory=dict)
    scores: JsonMapping = field(default_factory=dict)
    variant: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Log(Record):
    """A log as a table with one row per unit.

    Parameters
    ----------
    tool : str
        Name of the evaluation tool, such as `promptfoo`.
    columns : mapping of str to list (N,)
        `id` among them.
    proxies : tuple of str
        Columns of scores, the most useful proxy first; empty if no metric has a number per unit.
    shown : tuple of str
        Columns that annotators need to judge a unit.
    cluster : str, optional
        Column with the cluster of each row: a sample with epochs, or a conversation with turns.
    notes : tuple of str
        Notes about reading the log.
    failed : mapping of str to tuple of str
        Units whose answer failed, by the column of a metric.
    missing : mapping of str to int
        Units whose answer did not fail and that have no score, by the column of scores.
    """

    tool: str
    columns: Mapping[str, list[Cell]]
    proxies: tuple[str, ...]
    shown: tuple[str, ...] = ()
    cluster: str | None = None
    notes: tuple[str, ...] = ()
    failed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)

    @property
    def failed_by_variant(self) -> dict[str, int]:
        """Number of failed answers of each filter or model; the name is empty if there is only one."""
        return {
            name.partition(VARIANT_SEPARATOR)[2]: len(units) for name, units in self.failed.items() if units
        }

    def columns_to_show(self, proxy: str | None) -> tuple[str, ...]:
        """Return the columns to show with a proxy: those of its filter or model, and those of the unit."""
        variant = (proxy or next(iter(self.failed))).partition(VARIANT_SEPARATOR)[2]
        return tuple(name for name in self.shown if name.partition(VARIANT_SEPARATOR)[2] in ("", variant))


def make_log(
    tool: str,
    rows: Sequence[LogRow],
    *,
    variants: str = "variants",
    cluster: str | None = None,
    notes: Sequence[str] = (),
) -> Log:
    """Return rows as a log with one row per unit, and a column for each of several filters or models.

    Parameters
    ----------
    tool : str
    rows : sequence of LogRow
    variants : str
        Noun for the filters or models in notes.
    cluster : str, optional
        Column of `unit_columns` with the cluster of each unit; ignored if no cluster has two units.
    notes : sequence of str

    Raises an `InputError` for a log without rows or scores, and for two answers of one variant about one
    unit.
    """
    failed: dict[str, list[str]] = {row.variant: [] for row in rows}
    for row in rows:
        if row.failed:
            failed[row.variant].append(row.unit)
    _refuse_duplicate_answers(tool, rows)
    units, variant_of_score = _columns_of_units(rows)
    if not variant_of_score:
        raise _no_score_error(tool, sum(map(len, failed.values())), len(rows))
    columns: dict[str, list[Cell]] = {"id": list(units)}
    for name in dict.fromkeys(name for entries in units.values() for name in entries):
        if name not in variant_of_score and name != "id":
            columns[name] = unify_column([entries.get(name) for entries in units.values()])
    proxies: list[str] = []
    score_notes: list[str] = []
    missing: dict[str, int] = {}
    for name, variant in variant_of_score.items():
        # A metric with this name would replace the ids of the units.
        if name == "id":
            continue
        values = [entries.get(name) for entries in units.values()]
        numbers = score_numbers(values)
        if numbers is None:
            columns[name] = unify_column(values)
            score_notes.append(_not_scores_note(name, values, list(units)))
            continue
        columns[name] = numbers
        missing[name] = numbers.count(None) - len(failed[variant])
        if numbers.count(None) < len(units):
            proxies.append(name)
    if not proxies:
        score_notes.append("no unit has a number as its score")
    # Units that are each alone in their cluster are not clustered.
    has_clusters = cluster is not None and len(set(columns[cluster])) < len(units)
    summary = _log_summary(tool, len(units), variants, list(failed), variant_of_score)
    return Log(
        tool=tool,
        columns=columns,
        proxies=tuple(proxies),
        shown=_columns_to_show(columns),
        cluster=cluster if has_clusters else None,
        notes=(summary, *score_notes, *notes),
        failed={name: tuple(failed[variant]) for name, variant in variant_of_score.items()},
        missing=missing,
    )


def _columns_to_show(names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns that annotators see; those of several filters or models follow one another."""
    base_names = {name: name.partition(VARIANT_SEPARATOR)[0] for name in names}
    return tuple(name for shown in _SHOWN_COLUMNS for name, base in base_names.items() if base == shown)


def _refuse_duplicate_answers(tool: str, rows: Sequence[LogRow]) -> None:
    """Raise an error for two answers of one filter or model for one unit."""
    seen_answers: set[tuple[str, str]] = set()
    for row in rows:
        if (row.unit, row.variant) in seen_answers:
            raise InputError(
                f"{tool}: unit {row.unit!r} has two answers",
                given=row.variant or None,
                allowed="one answer per filter or model",
                action="Read only one run of the evaluation at a time.",
            )
        seen_answers.add((row.unit, row.variant))


def _columns_of_units(rows: Sequence[LogRow]) -> tuple[dict[str, JsonDict], dict[str, str]]:
    """Return the entries of each unit by column, and the variant of each column of scores."""
    has_variants = len({row.variant for row in rows}) > 1
    units: dict[str, JsonDict] = {}
    variant_of_score: dict[str, str] = {}
    for row in rows:
        suffix = ""
        if has_variants:
            # Options separate columns by commas, so that a name must not contain one.
            suffix = f"{VARIANT_SEPARATOR}{row.variant}".replace(",", ";")
        scores = row.scores
        # A failed answer has no score, even if the tool wrote one.
        if row.failed:
            scores = dict.fromkeys(row.scores)
        entries = units.setdefault(row.unit, {})
        entries |= dict(row.unit_columns)
        variant_entries = {**row.variant_columns, **scores}
        entries |= {f"{name}{suffix}": value for name, value in variant_entries.items()}
        variant_of_score |= {f"{name}{suffix}": row.variant for name in row.scores}
    return units, variant_of_score


def _no_score_error(tool: str, failed_count: int, answer_count: int) -> InputError:
    """Return the error of a log without any score."""
    reason = None
    if failed_count:
        reason = f"{failed_count:,} of {answer_count:,} answers failed (an error, or no output)"
    action = "Run the evaluation with a metric, on an application that returns answers."
    return InputError(f"{tool}: no unit has a score", given=reason, action=action)


def _log_summary(
    tool: str, unit_count: int, variants: str, names: Sequence[str], score_columns: Iterable[str]
) -> str:
    """Return the note with the number of units, and with the filters or models if there are several.

    `variants` is the noun for the filters or models, and `names` are their names.
    """
    summary = f"{tool}: {unit_count:,} units"
    if len(names) <= 1:
        return summary
    example = next(iter(score_columns))
    return (
        f"{summary}; {len(names)} {variants} ({', '.join(names)}), with a column for each, such as {example}"
    )


def score_numbers(values: Sequence[object]) -> list[float | None] | None:
    """Return scores as numbers with None for missing ones, or None if any value is not a number.

    NaN, empty texts and words such as `N/A` and `error` are missing. A list with one number counts as this
    number.
    """
    numbers: list[float | None] = []
    for value in values:
        if isinstance(value, list) and len(value) == 1:
            single = value[0]
        else:
            single = value
        number = number_or_none(single)
        if number is None and not is_missing_score(single):
            return None
        numbers.append(number)
    return numbers


def is_missing_score(value: object) -> bool:
    """Return whether a score that is not a number is missing: None, not finite, or a word for no verdict."""
    if isinstance(value, str):
        try:
            return not math.isfinite(float(value))
        except ValueError:
            # A word is a verdict, unless it states that there is none.
            return is_no_verdict(value)
    return value is None or isinstance(value, float)


def _not_scores_note(name: str, values: Sequence[object], units: Sequence[str]) -> str:
    """Return the note why a column of a metric is not a score, with the first value that is not a number."""
    invalid_rows = [row for row, value in enumerate(values) if score_numbers([value]) is None]
    if invalid_rows:
        first_row = invalid_rows[0]
    else:
        # Each value alone could be a number, but not all of them together.
        first_row = next(row for row, value in enumerate(values) if value is not None)
    text = json_text(values[first_row])
    shown = f"{text[:40]!r} for unit {units[first_row]!r}"
    number_count = sum(value is not None for value in values) - len(invalid_rows)
    if isinstance(values[first_row], list | dict):
        return f"{name!r} is not a score: it contains several values per unit (first: {shown})"
    if number_count:
        valid_note = f", although {number_count:,} others are"
    else:
        valid_note = ""
    return (
        f"{name!r} is not a score: {shown} is not a number{valid_note}; to use it as a verdict, name it "
        f"in --groups and --judge"
    )


def unify_column(values: Sequence[Cell]) -> list[Cell]:
    """Return a column as numbers if all values are numbers, else as text; nested values become JSON."""
    present = [value for value in values if value is not None]
    # Beyond 2⁵³, a column of floats would change integers; as text they keep their digits.
    if all(isinstance(value, int) and abs(value) < MAX_EXACT_INTEGER for value in present):
        return [None if value is None else int(value) for value in values]
    if all(isinstance(value, int | float) for value in present):
        return [None if value is None else float(value) for value in values]
    return [None if value is None else json_text(value) for value in values]


def json_text(value: object) -> str:
    """Return a value as text, nested values as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def number_or_none(value: Cell) -> float | None:
    """Return a score as a finite number, None if it is not one."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    if math.isfinite(number):
        return number
    return None


@contextmanager
def translate_tool_errors(source: str, tool: str) -> Iterator[None]:
    """Translate the errors of reading an invalid document of a tool into an `InputError`."""
    try:
        yield
    except InputError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError, RecursionError) as error:
        if isinstance(error, KeyError):
            problem = f"{source} has no {error}"
            given_text = None
        else:
            problem = f"{source} does not have the format that {tool} writes"
            given_text = f"{type(error).__name__}: {error}"[:MAX_ERROR_CHARACTERS]
        raise InputError(
            problem, given=given_text, action=f"Use the file exactly as {tool} wrote it."
        ) from error


def occurrence_numbers(keys: Iterable[Hashable]) -> list[int]:
    """Return the number of occurrences of each key up to its position, from 1."""
    counts: Counter[Hashable] = Counter()
    numbers = []
    for key in keys:
        counts[key] += 1
        numbers.append(counts[key])
    return numbers


# Names of the tools in messages.
LM_EVAL = "lm-evaluation-harness"
PROMPTFOO = "promptfoo"
INSPECT = "Inspect"
DEEPEVAL = "DeepEval"
EVALUATE = "Hugging Face evaluate"
OPENAI = "OpenAI evals"
RAGAS = "ragas"
BRAINTRUST = "Braintrust"
LANGSMITH = "LangSmith"
WEAVE = "W&B Weave"

# Largest file in bytes, and largest number of files in a folder, that are inspected to detect logs.
MAX_LOG_BYTES = 100_000_000
MAX_FILES_INSPECTED = 2000


def read_rows(
    tool: str, records: Cell, source: str, read_record: Callable[[JsonMapping], LogRow]
) -> list[LogRow]:
    """Return the rows of a tool's records; an error names the `source` and the number of the record."""
    rows: list[LogRow] = []
    for number, record in enumerate(records, start=1):
        with translate_tool_errors(f"{source} {number}", tool):
            rows.append(read_record(record))
    return rows


def number_repeats(names: Iterable[str]) -> list[str]:
    """Return names with `#2`, `#3` appended to duplicates."""
    names = list(names)
    numbered_names = []
    for name, repeat in zip(names, occurrence_numbers(names), strict=True):
        if repeat > 1:
            numbered_names.append(f"{name}{REPEAT_SEPARATOR}{repeat}")
        else:
            numbered_names.append(name)
    return numbered_names


def with_prefix(prefix: str, entries: Mapping[str, object] | None) -> JsonDict:
    """Return entries with a prefix and a dot in front of their names."""
    return {f"{prefix}.{name}": value for name, value in (entries or {}).items()}


def is_empty_output(output: object) -> bool:
    """Return whether an application returned nothing: no output, blank text, or an empty list or object."""
    if isinstance(output, str):
        return not output.strip()
    return output is None or (isinstance(output, list | dict) and not output)
