"""Logs of evaluation tools, as tables with one row per unit.

lm-evaluation-harness: `samples_<task>_<time>.jsonl`, written with `--log_samples` (as of 0.4.13). One line
per document and filter. A document's id is made of its three hashes (document, prompt, target), so that it
survives another run, another order and a larger `--limit`.

promptfoo: what `promptfoo eval --output out.json` writes (as of 0.121, results of version 3). A unit is a
test case; each prompt and provider has columns of its own. A test case is known by its variable `id` or
`item_id` where it has one, and otherwise by a hash of all its variables. With `--repeat` the repeats of a
test case are units of one cluster.

Inspect: `.eval` logs by Inspect's own reader (extra `inspect`), `.json` logs as they are (as of 0.3.285). A
unit is one epoch of a sample; the epochs of a sample are one cluster. Scores are numbers as Inspect itself
makes them: C, I, P and N are 1, 0, ½ and 0.

An answer that failed (the application returned an error or nothing) has no score, and the log counts it
apart. A metric that failed, was skipped or was invalidated is a missing score. A column in which a value is
no number is no column of scores: it stays text, and a note names the first such value and its unit.

DeepEval: the test runs that it keeps in `DEEPEVAL_RESULTS_FOLDER` and in `.deepeval/` (as of 4.3). A unit is
a test case; of a conversation, each of the assistant's turns, all of one cluster, with the scores of the
whole conversation.

Hugging Face: scores that `evaluate.save` wrote (as of 0.4.6), and folders of `Dataset.save_to_disk` (5.2).
`evaluate` keeps no inputs: a score per unit stands in a list, in the order of the predictions, and the id is
the number of the row.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from stratal.arrays import Record
from stratal.errors import InputError, installed
from stratal.question.recognition import ID_NAMES
from stratal.tables.no_answer import is_no_verdict

# Separates a column from its filter or model, in logs with several: `score@large`.
VARIANT_SEPARATOR = "@"

# Separates the id of a repeated sample or of a conversation from the number of the repeat or turn: `q7#2`.
REPEAT_SEPARATOR = "#"


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
        Entries of this filter or model, except its `scores`.
    scores : mapping of str to value
        Scores as the tool wrote them; None if a metric has no score.
    variant : str
        The filter or model.
    failed : bool
        Whether the application returned an error or nothing, so that there is no answer to score.
    """

    unit: str
    unit_columns: Mapping[str, Any] = field(default_factory=dict)
    variant_columns: Mapping[str, Any] = field(default_factory=dict)
    scores: Mapping[str, Any] = field(default_factory=dict)
    variant: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Log(Record):
    """A log as columns.

    Parameters
    ----------
    tool : str
    columns : mapping of str to list (N,)
        `id` among them.
    proxies : tuple of str
        Columns of scores, the most useful proxy first; empty if no metric has a number per unit.
    shown : tuple of str
        Columns that annotators need to judge a unit.
    cluster : str, optional
        Column with the cluster of each row: a sample with epochs, or a conversation with turns.
    notes : tuple of str
    failed : mapping of str to tuple of str
        Units whose answer failed, by the column of a metric.
    missing : mapping of str to int
        Units whose answer did not fail and that have no score, by the column of scores.
    """

    tool: str
    columns: Mapping[str, list[Any]]
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

    Raises
    ------
    InputError
        For a log without rows or scores, and for two answers of one variant about one unit.
    """
    failed: dict[str, list[str]] = {row.variant: [] for row in rows}
    for row in rows:
        if row.failed:
            failed[row.variant].append(row.unit)
    _refuse_duplicate_answers(tool, rows)
    units, variant_of = _columns_of_units(rows)
    if not variant_of:
        raise _no_score_error(tool, sum(map(len, failed.values())), len(rows))
    columns: dict[str, list[Any]] = {"id": list(units)}
    for name in dict.fromkeys(name for entries in units.values() for name in entries):
        if name not in variant_of and name != "id":
            columns[name] = unify_column([entries.get(name) for entries in units.values()])
    proxies: list[str] = []
    score_notes: list[str] = []
    missing: dict[str, int] = {}
    for name, variant in variant_of.items():
        if name == "id":  # the ids of the units have this name
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
        score_notes.append("no unit has a number as score")
    # Units that are each alone in their cluster are not clustered.
    has_clusters = cluster is not None and len(set(columns[cluster])) < len(units)
    base_names = {name: name.partition(VARIANT_SEPARATOR)[0] for name in columns}
    return Log(
        tool=tool,
        columns=columns,
        proxies=tuple(proxies),
        shown=tuple(name for kind in _SHOWN_COLUMNS for name in columns if base_names[name] == kind),
        cluster=cluster if has_clusters else None,
        notes=(_log_summary(tool, len(units), variants, list(failed), variant_of), *score_notes, *notes),
        failed={name: tuple(failed[variant]) for name, variant in variant_of.items()},
        missing=missing,
    )


def _refuse_duplicate_answers(tool: str, rows: Sequence[LogRow]) -> None:
    """Refuse two answers of one filter or model for one unit."""
    seen_answers: set[tuple[str, str]] = set()
    for row in rows:
        if (row.unit, row.variant) in seen_answers:
            raise InputError(
                f"{tool}: two answers of unit {row.unit!r}",
                given=row.variant or None,
                allowed="one of each filter or model",
                action="Read one run of the evaluation at a time.",
            )
        seen_answers.add((row.unit, row.variant))


def _columns_of_units(rows: Sequence[LogRow]) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Return the entries of each unit by column, and the variant of each column of scores."""
    has_variants = len({row.variant for row in rows}) > 1
    units: dict[str, dict[str, Any]] = {}
    variant_of: dict[str, str] = {}
    for row in rows:
        suffix = ""
        if has_variants:
            # Options separate columns by commas, so that a name must not contain one.
            suffix = f"{VARIANT_SEPARATOR}{row.variant}".replace(",", ";")
        scores = row.scores
        if row.failed:
            scores = dict.fromkeys(row.scores)
        entries = units.setdefault(row.unit, {})
        entries |= dict(row.unit_columns)
        entries |= {
            f"{name}{suffix}": value for name, value in (*row.variant_columns.items(), *scores.items())
        }
        variant_of |= {f"{name}{suffix}": row.variant for name in row.scores}
    return units, variant_of


def _no_score_error(tool: str, failed_count: int, answer_count: int) -> InputError:
    """Return the error of a log without any score."""
    reason = None
    if failed_count:
        reason = f"{failed_count:,} of {answer_count:,} answers failed (an error, or no output)"
    action = "Run the evaluation with a metric, on an application that answers."
    return InputError(f"{tool}: no unit has a score", given=reason, action=action)


def _log_summary(
    tool: str, unit_count: int, variants: str, names: Sequence[str], variant_of: Mapping[str, str]
) -> str:
    """Return the note with the number of units, and with the filters or models if there are several."""
    summary = f"{tool}: {unit_count:,} units"
    if len(names) <= 1:
        return summary
    example = next(iter(variant_of))
    return f"{summary}; {len(names)} {variants} ({', '.join(names)}), a column of each, such as {example}"


def score_numbers(values: Sequence[Any]) -> list[float | None] | None:
    """Return scores as numbers with None for missing ones, or None if any value is no number.

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
        if number is None and not _is_missing_score(single):
            return None
        numbers.append(number)
    return numbers


def _is_missing_score(value: Any) -> bool:
    """Return whether a score that is no number is missing: None, not finite, or a word for no verdict."""
    if isinstance(value, str):
        try:
            return not math.isfinite(float(value))
        except ValueError:
            return is_no_verdict(value)
    return value is None or isinstance(value, float)


def _not_scores_note(name: str, values: Sequence[Any], units: Sequence[str]) -> str:
    """Return the note why a column of a metric is no score, with the first value that is no number."""
    invalid_rows = [at for at, value in enumerate(values) if score_numbers([value]) is None]
    if invalid_rows:
        first_row = invalid_rows[0]
    else:
        first_row = next(at for at, value in enumerate(values) if value is not None)
    text = json_text(values[first_row])
    shown = f"{text[:40]!r} of unit {units[first_row]!r}"
    number_count = sum(value is not None for value in values) - len(invalid_rows)
    if isinstance(values[first_row], list | dict):
        return f"{name!r} is no score: it holds several values per unit (first: {shown})"
    if number_count:
        valid_note = f", among {number_count:,} that are"
    else:
        valid_note = ""
    return f"{name!r} is no score: {shown} is no number{valid_note}; as a verdict: --groups and --judge"


def unify_column(values: Sequence[Any]) -> list[Any]:
    """Return a column as numbers if all values are numbers, else as text; nested values become JSON."""
    present = [value for value in values if value is not None]
    if all(isinstance(value, int) and abs(value) < 2**53 for value in present):
        return [None if value is None else int(value) for value in values]
    if all(isinstance(value, int | float) for value in present):
        return [None if value is None else float(value) for value in values]
    return [None if value is None else json_text(value) for value in values]


def json_text(value: Any) -> str:
    """Return a value as text, nested values as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def number_or_none(value: Any) -> float | None:
    """Return a score as a finite number, None if it is not one."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


@contextmanager
def translate_tool_errors(source: str, tool: str) -> Iterator[None]:
    """Translate the errors of reading an invalid document of a tool into an `InputError`."""
    try:
        yield
    except InputError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError, RecursionError) as error:
        lacks = isinstance(error, KeyError)
        raise InputError(
            f"{source}: has no {error}" if lacks else f"{source}: is not as {tool} writes it",
            given=None if lacks else f"{type(error).__name__}: {error}"[:200],
            action=f"Take the file as {tool} wrote it.",
        ) from error


def occurrence_numbers(keys: Iterable[Hashable]) -> list[int]:
    """Return the number of occurrences of each key up to its position, from 1."""
    counts: Counter[Hashable] = Counter()
    numbers = []
    for key in keys:
        counts[key] += 1
        numbers.append(counts[key])
    return numbers


LM_EVAL = "lm-evaluation-harness"
PROMPTFOO = "promptfoo"
INSPECT = "Inspect"
DEEPEVAL = "DeepEval"
EVALUATE = "Hugging Face evaluate"

# Largest file in bytes, and largest number of files in a folder, that are inspected to detect logs.
MAX_LOG_BYTES = 100_000_000
MAX_FILES_INSPECTED = 2000


def _read_rows(
    tool: str, records: Any, place: str, row: Callable[[Mapping[str, Any]], LogRow]
) -> list[LogRow]:
    """Return the rows of a tool's records; an error has the number of the record."""
    rows: list[LogRow] = []
    for number, record in enumerate(records, start=1):
        with translate_tool_errors(f"{place} {number}", tool):
            rows.append(row(record))
    return rows


def _number_repeats(names: Iterable[str]) -> list[str]:
    """Return names with `#2`, `#3` appended to duplicates."""
    name_list = list(names)
    return [
        f"{name}{REPEAT_SEPARATOR}{repeat}" if repeat > 1 else name
        for name, repeat in zip(name_list, occurrence_numbers(name_list), strict=True)
    ]


def _with_prefix(prefix: str, entries: Mapping[str, Any] | None) -> dict[str, Any]:
    return {f"{prefix}.{name}": value for name, value in (entries or {}).items()}


def is_empty_output(output: Any) -> bool:
    """Return whether an application returned nothing: no output, blank text, or an empty list or object."""
    if isinstance(output, str):
        return not output.strip()
    return output is None or (isinstance(output, list | dict) and not output)


# ---- lm-evaluation-harness


_HASHES = ("doc_hash", "prompt_hash", "target_hash")
# Hexadecimal digits of each hash in the id of a unit: three hashes of 48 bits.
_HASH_DIGITS = 12


def read_lm_eval(records: Sequence[Mapping[str, Any]], source: str) -> Log:
    """Return the lines of a log of lm-evaluation-harness as a log."""
    rows = _read_rows(LM_EVAL, records, f"{source}, line", _lm_eval_row)
    repeats = occurrence_numbers((row.unit, row.variant) for row in rows)  # a document may occur twice
    rows = [
        replace(row, unit=f"{row.unit}{REPEAT_SEPARATOR}{n}") if n > 1 else row
        for row, n in zip(rows, repeats, strict=True)
    ]
    return make_log(LM_EVAL, rows, variants="filters")


# Keys of a line that are no metrics. Versions before 0.4.5 have no list of the metrics.
_LINE_KEYS = {
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", *_HASHES),
    *("prompt", "schema", "subtask", "task"),
}


def _lm_eval_row(record: Mapping[str, Any]) -> LogRow:
    prompt, choices = _prompt_and_choices(record["arguments"])
    names = record.get("metrics")
    if names is None:
        names = [name for name in record if name not in _LINE_KEYS]
    scores = {str(name): record.get(name) for name in names}
    doc = record["doc"]
    if not isinstance(doc, Mapping):
        doc = {"text": doc}
    target = record.get("target")
    answers = record["filtered_resps"]
    target = None if target is None else json_text(target)
    failed = _all_blank(record["resps"]) and target != ""
    if target is not None and target.isdigit() and int(target) < len(choices):
        target = choices[int(target)].strip()
    answer = answers
    log_likelihoods = _log_likelihoods(answers)
    while isinstance(answer, list):
        answer = answer[0] if answer else None
    if len(log_likelihoods) > 1 and len(log_likelihoods) == len(choices):
        best_choice = max(range(len(log_likelihoods)), key=log_likelihoods.__getitem__)
        answer = choices[best_choice].strip()
        scores["confidence"] = 1 / math.fsum(
            math.exp(entry - log_likelihoods[best_choice]) for entry in log_likelihoods
        )
    unit_columns = {"doc_id": record["doc_id"], "input": prompt, "target": target}
    return LogRow(
        unit="-".join(digest[:_HASH_DIGITS] for digest in _unit_hashes(record, prompt)),
        unit_columns=unit_columns | _with_prefix("doc", doc),
        variant_columns={"answer": None if answer is None else json_text(answer)},
        scores=scores,
        variant=str(record.get("filter", "none")),
        failed=failed,
    )


def _all_blank(responses: Any) -> bool:
    """Return whether the model generated nothing: no response, or only blank texts, at any depth."""
    if isinstance(responses, list):
        return all(map(_all_blank, responses))
    return is_empty_output(responses)


def _unit_hashes(record: Mapping[str, Any], prompt: str | None) -> list[str]:
    """Return the hashes of document, prompt and target; hashes that older versions leave out are computed.

    As lm-evaluation-harness computes them: SHA-256 of the document as indented JSON, of the prompt, and of
    the target as text.
    """
    texts = (
        json.dumps(record["doc"], indent=2, ensure_ascii=False),
        prompt or "",
        str(record.get("target")),
    )
    return [
        str(record[name]) if name in record else hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        for name, text in zip(_HASHES, texts, strict=True)
    ]


def _prompt_and_choices(arguments: Any) -> tuple[str | None, list[str]]:
    """Return the prompt and the choices; the choices are empty if the model generated text."""
    requests: Iterable[Any]
    if isinstance(arguments, Mapping):
        requests = arguments.values()
    else:
        requests = arguments or ()
    calls = [list(call.values()) if isinstance(call, Mapping) else list(call) for call in requests]
    choices = [call[1] for call in calls if len(call) > 1 and isinstance(call[1], str)]
    return json_text(calls[0][0]) if calls else None, choices if len(choices) == len(calls) else []


def _log_likelihoods(answers: Sequence[Any]) -> list[float]:
    """Return the log-likelihood of each choice, empty if answers are text."""
    first_entries = [answer[0] for answer in answers if isinstance(answer, list) and len(answer) == 2]
    likelihoods = [number for first in first_entries if (number := number_or_none(first)) is not None]
    return likelihoods if len(likelihoods) == len(answers) else []


# ---- promptfoo


def _read_promptfoo(document: Mapping[str, Any], source: str) -> Log:
    results = document["results"].get("results")
    if not results:
        raise InputError(f"{source}: holds no results", action="Run `promptfoo eval --output out.json`.")
    if any("testIdx" not in result or "promptIdx" not in result for result in results):
        results = _number_results(results)
    test_ids = {result["testIdx"]: _test_id(result["vars"]) for result in results}
    test_ids = dict(sorted(test_ids.items()))
    repeats = dict(zip(test_ids, occurrence_numbers(test_ids.values()), strict=True))
    variant_names = _variant_names(results)
    have_one_prompt = len({_prompt_name(result) for result in results}) == 1

    def read_result(result: Mapping[str, Any]) -> LogRow:
        test = test_ids[result["testIdx"]]
        repeat = repeats[result["testIdx"]]
        prompt = result.get("prompt")
        response = result.get("response")
        unit_columns = {"test": test, "repeat": repeat, **_with_prefix("vars", result["vars"])}
        prompt_column = {"input": prompt.get("raw") if isinstance(prompt, Mapping) else prompt}
        if isinstance(response, Mapping):
            answer = response.get("output")
            error = response.get("error")
        else:
            answer = response
            error = None
        variant_columns = {"answer": None if answer is None else json_text(answer)}
        # The prompt describes the unit, unless the variants are prompts.
        if have_one_prompt:
            unit_columns |= prompt_column
        else:
            variant_columns = prompt_column | variant_columns
        return LogRow(
            unit=f"{test}{REPEAT_SEPARATOR}{repeat}" if max(repeats.values()) > 1 else test,
            unit_columns=unit_columns,
            variant_columns=variant_columns,
            scores=_scores_of_result(result),
            variant=variant_names[result["promptIdx"]],
            failed=bool(error) or is_empty_output(answer),
        )

    rows = _read_rows(PROMPTFOO, results, f"{source}, result", read_result)
    row_order = sorted(range(len(rows)), key=lambda at: (results[at]["testIdx"], results[at]["promptIdx"]))
    rows = [rows[place] for place in row_order]
    return make_log(PROMPTFOO, rows, variants="prompts and providers", cluster="test")


# `failureReason` of a result that no assertion could score (promptfoo's ResultFailureReason.ERROR).
_FAILED_WITH_ERROR = 2


def _scores_of_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scores of a result, None for those of an assertion whose grader failed.

    The score and the success of the whole test are then unknown, too, unless another assertion failed it.
    """
    scores = {"score": None} | (result.get("namedScores") or {}) | {"score": result["score"]}
    scores |= {"success": result["success"]} if "success" in result else {}
    if result.get("failureReason") == _FAILED_WITH_ERROR:
        return dict.fromkeys(scores)
    components = [
        part for part in (result.get("gradingResult") or {}).get("componentResults") or [] if part is not None
    ]
    failed_components = [part for part in components if (part.get("metadata") or {}).get("graderError")]
    if not failed_components:
        return scores
    metrics = {(part.get("assertion") or {}).get("metric") for part in failed_components}
    has_other_failure = any(part.get("pass") is False for part in components if part not in failed_components)
    unknown_scores = {"score", *(name for name in metrics if name)} | (
        set() if has_other_failure else {"success"}
    )
    return scores | dict.fromkeys(unknown_scores & set(scores))


def _number_results(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return results of version 2, which have no numbers, with those of their test and of their prompt.

    A second answer of the same prompt and provider to a test is a repeat.
    """
    prompts: dict[str, int] = {}
    tests: dict[tuple[str, int], int] = {}
    prompt_keys = [
        json.dumps([result.get("provider"), _prompt_name(result)], sort_keys=True) for result in results
    ]
    test_keys = [json.dumps(result["vars"], sort_keys=True) for result in results]
    repeats = occurrence_numbers(zip(prompt_keys, test_keys, strict=True))
    return [
        {
            **result,
            "promptIdx": prompts.setdefault(prompt, len(prompts)),
            "testIdx": tests.setdefault((test, repeat), len(tests)),
        }
        for result, prompt, test, repeat in zip(results, prompt_keys, test_keys, repeats, strict=True)
    ]


def _variant_names(results: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Return the name of each prompt and provider: the provider, with the prompt if it has several."""
    prompts = {result["promptIdx"]: _prompt_name(result) for result in results}
    providers = {}
    for result in results:
        provider = result.get("provider") or {}
        if isinstance(provider, Mapping):
            name = provider.get("label") or provider.get("id")
        else:
            name = provider
        providers[result["promptIdx"]] = str(name or result["promptIdx"])
    order = {text: number for number, text in enumerate(dict.fromkeys(prompts.values()), start=1)}
    names_with_prompt = {index: f"{name}-prompt{order[prompts[index]]}" for index, name in providers.items()}
    names_with_number = {index: f"{name}-{index}" for index, name in providers.items()}
    return next(
        names
        for names in (providers, names_with_prompt, names_with_number)
        if len(set(names.values())) == len(names)
    )


def _prompt_name(result: Mapping[str, Any]) -> str:
    prompt = result.get("prompt")
    if isinstance(prompt, Mapping):
        return str(prompt.get("label") or "")
    return str(prompt or "")


def _test_id(variables: Mapping[str, Any]) -> str:
    for name in ID_NAMES:
        if variables.get(name) not in (None, ""):
            return json_text(variables[name])
    text = json.dumps(variables, sort_keys=True, ensure_ascii=False)
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:16]


# ---- Inspect


_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
# Fields of samples that are not read, since they are large and not needed.
_UNUSED_FIELDS = {"events", "store"}


def read_inspect_file(path: Path) -> Log:
    """Return a log of an `.eval` file.

    Raises
    ------
    MissingExtraError
        If Inspect is not installed.
    InputError
        For a file that its reader cannot read.
    """
    with installed("inspect_ai", extra="inspect"):
        from inspect_ai.log import read_eval_log
    try:
        unused_fields = _UNUSED_FIELDS
        log = read_eval_log(str(path), resolve_attachments="core", exclude_fields=unused_fields)
        if any(sample.error is not None for sample in log.samples or ()):
            unused_fields = _UNUSED_FIELDS - {
                "events"
            }  # events distinguish a failed answer from a failed scorer
            log = read_eval_log(str(path), resolve_attachments="core", exclude_fields=unused_fields)
        excluded: Any = {"plan": True, "stats": True, "samples": {"__all__": unused_fields}}
        document = log.model_dump(mode="json", exclude=excluded)
    except Exception as error:
        raise InputError(
            f"{path}: Inspect's own reader cannot read it",
            given=f"{type(error).__name__}: {error}"[:200],
            action="Check that the log is whole, or read it where a newer version of Inspect is installed.",
        ) from None
    with translate_tool_errors(str(path), INSPECT):
        return _read_inspect(document, str(path))


def _read_inspect(document: Mapping[str, Any], source: str) -> Log:
    samples = document.get("samples")
    status = document.get("status")
    is_finished = status in (None, "success")
    error = document.get("error")
    if isinstance(error, Mapping):
        reason = error.get("message")
    else:
        reason = error
    status_note = f"the evaluation did not finish ({status})"
    has_scores = any(sample.get("scores") or sample.get("score") for sample in samples or ())
    if not is_finished and not has_scores:
        raise InputError(
            f"{source}: {status_note}, and no sample was scored",
            given=None if reason is None else json_text(reason).strip().splitlines()[0][:200],
            action=f"Remove the cause and run it again: inspect eval-retry {source}.",
        )
    if not samples:
        raise InputError(
            f"{source}: holds no samples", action="Run the evaluation with its samples logged (log_samples)."
        )
    rows = _with_grades(_read_rows(INSPECT, samples, f"{source}, sample", _inspect_row))
    rows.sort(key=lambda row: row.unit_columns["epoch"])
    if len({row.unit for row in rows}) < len(rows):
        rows = [replace(row, unit=f"{row.unit}{REPEAT_SEPARATOR}{row.unit_columns['epoch']}") for row in rows]
    notes = [] if is_finished else [f"{source}: {status_note}"]
    invalid_count = sum(bool(sample.get("invalidation")) for sample in samples)
    if invalid_count:
        notes.append(f"{source}: {invalid_count:,} samples were invalidated, and count as missing scores")
    return make_log(INSPECT, rows, cluster="sample", notes=notes)


def _inspect_row(sample: Mapping[str, Any]) -> LogRow:
    unit = str(sample["id"])
    target = sample.get("target")
    output = sample.get("output")
    unit_columns = {"sample": unit, "epoch": sample["epoch"], "input": _input_text(sample["input"])}
    if isinstance(target, list) and len(target) == 1:
        unit_columns["target"] = target[0]
    else:
        unit_columns["target"] = target
    score_entries = sample.get("scores")
    if score_entries is None and sample.get("score") is not None:  # logs of version 1
        score_entries = {"score": sample["score"]}
    scores: dict[str, Any] = {}
    for name, score in (score_entries or {}).items():
        value = None if score is None else score.get("value")
        scores |= _with_prefix(name, value) if isinstance(value, Mapping) else {name: value}
    if sample.get("invalidation"):
        scores = dict.fromkeys(scores)
    variant_columns = {"answer": None if output is None else output.get("completion")}
    unit_columns |= _with_prefix("metadata", sample.get("metadata"))
    failed = _sample_failed(sample, output, list((score_entries or {}).values()))
    return LogRow(
        unit=unit, unit_columns=unit_columns, variant_columns=variant_columns, scores=scores, failed=failed
    )


def _sample_failed(sample: Mapping[str, Any], output: Any, scores: Sequence[Any]) -> bool:
    """Return whether the answer failed: the sample ended with an error, or without any output.

    An error after the start of the scorers is an error of a metric. Output is a text, a call of a tool, or an
    answer that a scorer found elsewhere.
    """
    if sample.get("error") is not None:
        return not any(_begins_scoring(event) for event in sample.get("events") or ())
    if output is None:
        completion = None
    else:
        completion = output.get("completion")
    choices = (output or {}).get("choices") or []
    has_tool_call = any((choice.get("message") or {}).get("tool_calls") for choice in choices)
    has_scorer_answer = any(score is not None and score.get("answer") for score in scores)
    return is_empty_output(completion) and not has_tool_call and not has_scorer_answer


def _begins_scoring(event: Mapping[str, Any]) -> bool:
    """Return whether an event is the start of the scorers; older versions call it a step."""
    return event.get("event") in ("span_begin", "step") and event.get("type") in ("scorers", "scorer")


def _with_grades(rows: Sequence[LogRow]) -> list[LogRow]:
    """Return rows with numbers in the columns that contain only grades of Inspect.

    If a column has letters such as A, B, C and D, its C does not mean `correct`.
    """
    texts_of_score: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.scores.items():
            if isinstance(value, str) and not _is_missing_score(value):
                texts_of_score.setdefault(name, set()).add(value)
    graded_scores = {name for name, values in texts_of_score.items() if all(map(_is_grade, values))}

    def convert_grades(row: LogRow) -> LogRow:
        scores = {
            name: _grade_number(value) if name in graded_scores else value
            for name, value in row.scores.items()
        }
        return replace(row, scores=scores)

    return [convert_grades(row) for row in rows]


def _is_grade(text: str) -> bool:
    return text in _GRADES or text.lower() in _GRADES or number_or_none(text) is not None


def _grade_number(value: Any) -> Any:
    """Return a score with the grades of Inspect as numbers; other values are unchanged."""
    if isinstance(value, str):
        return _GRADES.get(value, _GRADES.get(value.lower(), value))
    return value


def _input_text(content: Any) -> Any:
    """Return an input as text, or a list of messages as turns with their texts."""
    if not isinstance(content, list):
        return json_text(content)
    turns = []
    for message in content:
        content_entry = message.get("content")
        if isinstance(content_entry, list):
            content_entry = "\n".join(part["text"] for part in content_entry if part.get("type") == "text")
        turns.append(
            {
                "role": message.get("role"),
                "content": "" if content_entry is None else json_text(content_entry),
            }
        )
    return turns


# ---- DeepEval


def _read_deepeval(document: Mapping[str, Any], source: str) -> Log:
    run = document.get("testRunData", document)
    cases = run.get("testCases")
    conversations = run.get("conversationalTestCases")
    if bool(cases) == bool(conversations):
        raise InputError(
            f"{source}: holds {'test cases and conversations' if cases else 'no test case'}",
            allowed="test cases, or conversations",
            action="Run them apart." if cases else "Run `evaluate` with DEEPEVAL_RESULTS_FOLDER set.",
        )
    records = cases or conversations
    unique_names = _number_repeats(str(case.get("name") or "case") for case in records)
    named_records = ({**case, "name": name} for case, name in zip(records, unique_names, strict=True))
    if cases:
        return make_log(DEEPEVAL, _read_rows(DEEPEVAL, named_records, f"{source}, test case", _deepeval_row))
    turns = [
        turn
        for conversation in named_records
        for turn in _conversation_cases(conversation, f"{source}, conversation")
    ]
    return make_log(
        DEEPEVAL, _read_rows(DEEPEVAL, turns, f"{source}, turn", _deepeval_row), cluster="conversation"
    )


def _conversation_cases(conversation: Mapping[str, Any], place: str) -> Iterator[dict[str, Any]]:
    """Yield the assistant's turns of a conversation as test cases, with the scores of the conversation."""
    with translate_tool_errors(f"{place} {conversation['name']!r}", DEEPEVAL):
        turns = [{"role": turn.get("role"), "content": turn.get("content")} for turn in conversation["turns"]]
        answer_positions = [place for place, turn in enumerate(turns) if turn["role"] == "assistant"]
    for number, position in enumerate(answer_positions, start=1):
        unit_columns = {"conversation": conversation["name"], "turn": number, "turns": turns[:position]}
        unit = f"{conversation['name']}{REPEAT_SEPARATOR}{number}"
        answer = turns[position]["content"]
        yield {
            **conversation,
            "name": unit,
            "unit_columns": unit_columns,
            "actualOutput": answer,
            "metadata": None,
        }


def _deepeval_row(case: Mapping[str, Any]) -> LogRow:
    entries = case.get("metricsData") or case.get("metricsMetadata") or []  # the latter before version 1
    names = _number_repeats(str(entry["name"] if "name" in entry else entry["metric"]) for entry in entries)
    measured = [_measured_score(entry) for entry in entries]
    has_failed_metric = any(
        entry.get("success") is False and score is not None
        for entry, score in zip(entries, measured, strict=True)
    )
    # A case succeeds if all metrics do, so that its success is unknown if one of them has no score.
    is_unknown = not has_failed_metric and (not entries or None in measured)
    success = None if is_unknown else case.get("success")
    unit_columns = case.get("unit_columns") or {"input": case["input"], "target": case.get("expectedOutput")}
    unit_columns |= _with_prefix("metadata", case.get("metadata"))
    answer = case.get("actualOutput")
    return LogRow(
        unit=case["name"],
        unit_columns={name: value for name, value in unit_columns.items() if value is not None},
        variant_columns={"answer": answer},
        scores=dict(zip(names, measured, strict=True)) | {"success": success},
        failed=is_empty_output(answer) and not case.get("toolsCalled"),
    )


def _measured_score(entry: Mapping[str, Any]) -> Any:
    """Return the score of a metric, None if it failed, was skipped or is not finite."""
    score = entry.get("score")
    is_unmeasured = entry.get("error") is not None or entry.get("skipped")
    if is_unmeasured or (number_or_none(score) is None and _is_missing_score(score)):
        return None
    return score


# ---- Hugging Face


# File in every folder of `Dataset.save_to_disk`.
DATASET_STATE = "state.json"
# Name of the answers in files of `evaluate`.
_PREDICTIONS = "predictions"
# Entries of a file of `evaluate` that are no lists of scores.
_EVALUATE_METADATA = {
    "_timestamp",
    "_git_commit_hash",
    "_evaluate_version",
    "_python_version",
    "_interpreter_path",
}


def _read_evaluate(document: Mapping[str, Any], source: str) -> Log:
    lists = {
        name: value
        for name, value in document.items()
        if isinstance(value, list) and name not in _EVALUATE_METADATA
    }
    numbers = {name: score_numbers(value) for name, value in lists.items() if name != _PREDICTIONS}
    score_names = {name for name, value in numbers.items() if value and set(value) != {None}}
    if not score_names:
        raise InputError(
            f"{source}: holds no score per unit, only of all together",
            allowed="lists with an entry per prediction",
            action="Save what the metric gives for each: evaluate.save(path, exact_match=[…]).",
        )
    lengths = {name: len(value) for name, value in lists.items()}
    if len(set(lengths.values())) != 1:
        raise InputError(f"{source}: lists of different lengths", given=lengths, allowed="one length")
    entries = (dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True))
    rows = [
        LogRow(
            unit=str(number),
            unit_columns={name: value for name, value in entry.items() if name not in score_names},
            scores={name: value for name, value in entry.items() if name in score_names},
            failed=_PREDICTIONS in entry and is_empty_output(entry[_PREDICTIONS]),
        )
        for number, entry in enumerate(entries, start=1)
    ]
    return make_log(EVALUATE, rows)


def read_saved_dataset(folder: Path) -> Any | None:
    """Return a folder of `Dataset.save_to_disk` as an Arrow table, None for other folders.

    Raises
    ------
    InputError
        For a folder with several splits, and if a file is missing or damaged.
    """
    if (folder / "dataset_dict.json").is_file():
        splits = sorted(path.name for path in folder.iterdir() if (path / DATASET_STATE).is_file())
        raise InputError(
            f"{folder}: holds several splits",
            given=", ".join(splits),
            action=f"Give one of them: {folder / splits[0]}." if splits else None,
        )
    state = folder / DATASET_STATE
    if not state.is_file():
        return None
    import pyarrow as pa

    try:
        files = [entry["filename"] for entry in json.loads(state.read_text("utf-8"))["_data_files"]]
        tables = []
        for name in files:
            with pa.memory_map(str(folder / Path(name).name)) as stream:
                tables.append(pa.ipc.open_stream(stream).read_all())
        return pa.concat_tables(tables)
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise InputError(
            f"{folder}: is not a whole data set", given=str(error)[:200], action="Save it again."
        ) from None


# ---- detection of the tool that wrote a file


# Keys of every line of lm-evaluation-harness.
_LM_EVAL_KEYS = {"doc_id", "doc", "resps"}

# Tool, keys and reader of each JSON document.
_DOCUMENT_READERS: tuple[tuple[str, set[str], Callable[[Mapping[str, Any], str], Log]], ...] = (
    (PROMPTFOO, {"evalId", "results"}, _read_promptfoo),
    (DEEPEVAL, {"testCases", "metricsScores"}, _read_deepeval),
    (DEEPEVAL, {"conversationalTestCases", "metricsScores"}, _read_deepeval),
    (DEEPEVAL, {"testRunData"}, _read_deepeval),
    (INSPECT, {"eval", "plan", "version"}, _read_inspect),
    (EVALUATE, {"_evaluate_version"}, _read_evaluate),
)


def _document_reader(document: Any) -> tuple[str, Callable[[Mapping[str, Any], str], Log]] | None:
    """Return the tool that wrote a JSON document and its reader, None for other documents."""
    keys = set(document) if isinstance(document, Mapping) else set()
    return next(
        (
            (tool, read_document)
            for tool, required_keys, read_document in _DOCUMENT_READERS
            if required_keys <= keys
        ),
        None,
    )


def read_log_document(document: Any, source: str) -> Log | None:
    """Return a JSON document as a log, None if it is not a log.

    Raises
    ------
    InputError
        For an invalid log, and for a file with only aggregated results.
    """
    if isinstance(document, Mapping) and {"results", "configs", "versions"} <= set(document):
        raise InputError(
            f"{source}: holds results of all documents together",
            allowed=f"samples_….jsonl of {LM_EVAL}",
            action="Run it with --log_samples; the samples are then written next to this file.",
        )
    document_reader = _document_reader(document)
    if document_reader is None:
        return None
    tool, read_document = document_reader
    with translate_tool_errors(source, tool):
        return read_document(document, source)


def read_log_lines(records: Iterable[Mapping[str, Any]], source: str) -> Log | None:
    """Return the objects of JSON Lines as a log, None if the first one is not from a log."""
    remaining = iter(records)
    first = next(remaining, None)
    if first is None or not set(first) >= _LM_EVAL_KEYS:
        return None
    with translate_tool_errors(source, LM_EVAL):
        return read_lm_eval([first, *remaining], source)


def find_log_tool(path: Path) -> str | None:
    """Return the evaluation tool that wrote a file, None for other files."""
    if path.suffix == ".eval":
        return INSPECT
    if path.suffix not in (".json", ".jsonl") or path.stat().st_size > MAX_LOG_BYTES:
        return None
    try:
        with path.open(encoding="utf-8") as text:
            document = json.loads(text.readline() if path.suffix == ".jsonl" else text.read())
    except (OSError, ValueError, RecursionError):
        return None
    if path.suffix == ".jsonl":
        if isinstance(document, Mapping) and set(document) >= _LM_EVAL_KEYS:
            return LM_EVAL
        return None
    document_reader = _document_reader(document)
    return None if document_reader is None else document_reader[0]


def find_logs(folder: Path) -> dict[Path, str]:
    """Return the logs in a folder and its subfolders by path, with the tool that wrote each."""
    paths = [path for path in islice(folder.rglob("*"), MAX_FILES_INSPECTED) if path.is_file()]
    tools = {path: find_log_tool(path) for path in sorted(paths)}
    return {path: tool for path, tool in tools.items() if tool is not None}
