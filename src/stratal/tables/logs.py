"""Logs of evaluation tools: one row per unit, however many answers of it a tool has kept.

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
from stratal.tables.no_answer import is_no_verdict

# Columns that are taken as the id when none is named.
ID_NAMES = ("id", "item_id")

# Stands between a column and the filter or model that it is of, where a log has several: `score@large`.
AT = "@"

# Stands between what repeats (an epoch's sample, a talk) and the number of the time: `q7#2`.
NTH = "#"


# What a person needs to judge a unit, in this order.
_SHOWN = ("input", "turns", "target", "answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """One line of a log: what one filter or model said of one unit.

    Parameters
    ----------
    unit : str
        Id of the unit.
    shared : mapping
        What holds of the unit whoever answers: input, target, epoch.
    own : mapping
        What this filter or model said, `scores` apart.
    scores : mapping of str to value
        As the tool wrote them; None where a metric gave no score.
    variant : str
        The filter or model.
    failed : bool
        Whether the application returned an error or nothing, so that there is no answer to score.

    Examples
    --------
    >>> LogRow(unit="q7", scores={"exact_match": 1.0}).variant
    ''
    """

    unit: str
    shared: Mapping[str, Any] = field(default_factory=dict)
    own: Mapping[str, Any] = field(default_factory=dict)
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
        Columns of scores; the first is the likeliest proxy. None where no metric has a number per unit.
    shown : tuple of str
        What a person needs to judge a unit.
    cluster : str, optional
        Column of what several rows belong to: a sample with epochs, a talk with turns.
    notes : tuple of str
    failed : mapping of str to tuple of str
        Units whose answer failed, by the column of a metric.
    missing : mapping of str to int
        Units whose answer did not fail and that have no score, by the column of scores.

    Examples
    --------
    >>> make_log("a tool", [LogRow(unit="q7", own={"answer": "Lima"}, scores={"exact_match": 1.0})]).proxies
    ('exact_match',)
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
        """How many answers of each filter or model failed, the name being "" where there is but one."""
        return {name.partition(AT)[2]: len(units) for name, units in self.failed.items() if units}

    def columns_to_show(self, proxy: str | None) -> tuple[str, ...]:
        """Return the columns to show beside a proxy: those of no filter or model, and those of its own."""
        variant = (proxy or next(iter(self.failed))).partition(AT)[2]
        return tuple(name for name in self.shown if name.partition(AT)[2] in ("", variant))


def make_log(
    tool: str,
    rows: Sequence[LogRow],
    *,
    variants: str = "variants",
    cluster: str | None = None,
    notes: Sequence[str] = (),
) -> Log:
    """Return rows as a log: one row per unit; with several filters or models, a column of each.

    Parameters
    ----------
    tool : str
    rows : sequence of LogRow
    variants : str
        What the variants are called, in words.
    cluster : str, optional
        Column of `shared` that tells what several units belong to; left out where none has two.
    notes : sequence of str

    Raises
    ------
    InputError
        For a log without rows or scores, and for two answers of one variant about one unit.

    Examples
    --------
    >>> two = [LogRow(unit="q7", scores={"score": s}, variant=v) for v, s in (("large", 1.0), ("small", 0.0))]
    >>> make_log("a tool", two).columns
    {'id': ['q7'], 'score@large': [1.0], 'score@small': [0.0]}
    """
    names = list(dict.fromkeys(row.variant for row in rows))
    several = len(names) > 1
    units: dict[str, dict[str, Any]] = {}
    seen: set[tuple[str, str]] = set()
    scored: dict[str, str] = {}  # the variant of each column of a metric
    failed: dict[str, list[str]] = {name: [] for name in names}
    for row in rows:
        if (row.unit, row.variant) in seen:
            raise InputError(
                f"{tool}: two answers of unit {row.unit!r}",
                given=row.variant or None,
                allowed="one of each filter or model",
                action="Read one run of the evaluation at a time.",
            )
        seen.add((row.unit, row.variant))
        tail = f"{AT}{row.variant}".replace(",", ";") if several else ""  # options list columns by commas
        found = units.setdefault(row.unit, {})
        found |= dict(row.shared)
        scores = dict.fromkeys(row.scores) if row.failed else row.scores
        found |= {f"{name}{tail}": value for name, value in (*row.own.items(), *scores.items())}
        scored |= {f"{name}{tail}": row.variant for name in row.scores}
        if row.failed:
            failed[row.variant].append(row.unit)
    if not scored:
        answers = sum(map(len, failed.values()))
        reason = f"{answers:,} of {len(rows):,} answers failed (an error, or no output)"
        raise InputError(
            f"{tool}: no unit has a score",
            given=reason if answers else None,
            action="Run the evaluation with a metric, on an application that answers.",
        )
    keys = dict.fromkeys(name for found in units.values() for name in found if name not in scored)
    columns: dict[str, list[Any]] = {"id": list(units)}
    proxies: list[str] = []
    remarks: list[str] = []
    missing: dict[str, int] = {}
    for name in (*keys, *scored):
        if name == "id":
            continue
        values = [found.get(name) for found in units.values()]
        numbers = score_numbers(values) if name in scored else None
        columns[name] = one_kind(values) if numbers is None else numbers
        if name not in scored:
            continue
        if numbers is None:
            remarks.append(_not_scores(name, values, list(units)))
            continue
        missing[name] = numbers.count(None) - len(failed[scored[name]])
        if missing[name] + len(failed[scored[name]]) < len(units):
            proxies.append(name)
    if not proxies:
        remarks.append("no unit has a number as score")
    if cluster and len(set(columns[cluster])) < len(units):
        kept = cluster
    else:
        kept = None
    usual = [name for kind in _SHOWN for name in columns if name.partition(AT)[0] == kind]
    said = f"{tool}: {len(units):,} units"
    if several:
        said += (
            f"; {len(names)} {variants} ({', '.join(names)}), a column of each, such as {next(iter(scored))}"
        )
    return Log(
        tool=tool,
        columns=columns,
        proxies=tuple(proxies),
        shown=tuple(usual),
        cluster=kept,
        notes=(said, *remarks, *notes),
        failed={name: tuple(failed[variant]) for name, variant in scored.items()},
        missing=missing,
    )


def score_numbers(values: Sequence[Any]) -> list[float | None] | None:
    """Return scores as numbers, None for each that is missing; None for a column with a value that is none.

    Missing are NaN, an empty text and words such as `N/A` and `error`. A list of one number is that number,
    if every list of the column is such a list.

    Examples
    --------
    >>> score_numbers([True, "0.5", "N/A", None]), score_numbers([1.0, "odd"]), score_numbers([[1, 0], [1]])
    ([1.0, 0.5, None, None], None, None)
    """
    found: list[float | None] = []
    for value in values:
        if isinstance(value, list) and len(value) == 1:
            single = value[0]
        else:
            single = value
        number = number_or_none(single)
        if number is None and not _is_missing_score(single):
            return None
        found.append(number)
    return found


def _is_missing_score(value: Any) -> bool:
    """Return whether a score that is no number is missing: None, not finite, or a word that says so."""
    if isinstance(value, str):
        try:
            return not math.isfinite(float(value))
        except ValueError:
            return is_no_verdict(value)
    return value is None or isinstance(value, float)


def _not_scores(name: str, values: Sequence[Any], units: Sequence[str]) -> str:
    """Return why a metric's column is no column of scores, with the first value that is no number."""
    odd = [at for at, value in enumerate(values) if score_numbers([value]) is None]
    if odd:
        first = odd[0]
    else:
        first = next(at for at, value in enumerate(values) if value is not None)
    text = text_of(values[first])
    shown = f"{text[:40]!r} of unit {units[first]!r}"
    numbers = sum(value is not None for value in values) - len(odd)
    if isinstance(values[first], list | dict):
        return f"{name!r} is no score: it holds several values per unit (first: {shown})"
    among = f", among {numbers:,} that are" if numbers else ""
    return f"{name!r} is no score: {shown} is no number{among}; as a verdict: --groups and --judge"


def one_kind(values: Sequence[Any]) -> list[Any]:
    """Return a column of one kind: numbers where all are, else text, what is nested as JSON.

    Examples
    --------
    >>> one_kind([1, 2.5, None]), one_kind(["a", 1, {"b": 2}])
    ([1.0, 2.5, None], ['a', '1', '{"b": 2}'])
    """
    present = [value for value in values if value is not None]
    if all(isinstance(value, int) and abs(value) < 2**53 for value in present):
        return [None if value is None else int(value) for value in values]
    if all(isinstance(value, int | float) for value in present):
        return [None if value is None else float(value) for value in values]
    return [None if value is None else text_of(value) for value in values]


def text_of(value: Any) -> str:
    """Return a value as text, what is nested as JSON.

    Examples
    --------
    >>> text_of("Lima"), text_of(["a"])
    ('Lima', '["a"]')
    """
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def number_or_none(value: Any) -> float | None:
    """Return a score as a number; None where it is not finite, or no number.

    Examples
    --------
    >>> number_or_none(True), number_or_none("0.5"), number_or_none(float("nan")), number_or_none([1])
    (1.0, 0.5, None, None)
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


@contextmanager
def as_written(source: str, tool: str) -> Iterator[None]:
    """Turn whatever goes wrong in a document that a tool cannot have written into one `InputError`.

    Examples
    --------
    >>> with as_written("log.json", "a tool"):
    ...     {}["scores"]
    Traceback (most recent call last):
    stratal.errors.InputError: log.json: has no 'scores'. Take the file as a tool wrote it.
    """
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


def times(keys: Iterable[Hashable]) -> list[int]:
    """Return for the how-manyth time each key stands there, from 1.

    Examples
    --------
    >>> times(["a", "b", "a"])
    [1, 1, 2]
    """
    seen: Counter[Hashable] = Counter()
    found = []
    for key in keys:
        seen[key] += 1
        found.append(seen[key])
    return found


LM_EVAL = "lm-evaluation-harness"
PROMPTFOO = "promptfoo"
INSPECT = "Inspect"
DEEPEVAL = "DeepEval"
EVALUATE = "Hugging Face evaluate"

# Bytes of a file, and files of a folder, that are looked at to tell what they are.
LARGEST = 100_000_000
MOST = 2000


def _rows(tool: str, records: Any, place: str, row: Callable[[Mapping[str, Any]], LogRow]) -> list[LogRow]:
    """Return the rows of a tool's records; an error numbers the record that it is of."""
    found: list[LogRow] = []
    for number, record in enumerate(records, start=1):
        with as_written(f"{place} {number}", tool):
            found.append(row(record))
    return found


def _numbered(names: Iterable[str]) -> list[str]:
    """Return names with `#2`, `#3` behind those that were there before.

    Examples
    --------
    >>> _numbered(["a", "b", "a"])
    ['a', 'b', 'a#2']
    """
    known = list(names)
    return [f"{name}{NTH}{n}" if n > 1 else name for name, n in zip(known, times(known), strict=True)]


def _with_prefix(prefix: str, entries: Mapping[str, Any] | None) -> dict[str, Any]:
    return {f"{prefix}.{name}": value for name, value in (entries or {}).items()}


def is_empty_output(output: Any) -> bool:
    """Return whether an application returned nothing: no output, blank text, or an empty list or object.

    Examples
    --------
    >>> [is_empty_output(output) for output in (None, "  ", [], {}, 0, "no")]
    [True, True, True, True, False, False]
    """
    if isinstance(output, str):
        return not output.strip()
    return output is None or (isinstance(output, list | dict) and not output)


# ---- lm-evaluation-harness


_HASHES = ("doc_hash", "prompt_hash", "target_hash")
# Of each hash, in the id: three of 48 bits.
_DIGITS = 12


def read_lm_eval(records: Sequence[Mapping[str, Any]], source: str) -> Log:
    """Return the lines of a log.

    Examples
    --------
    >>> line = {"doc_id": 0, "doc": {"q": "2 + 2?"}, "target": "4", "arguments": {}, "resps": [["4"]],
    ...         "filtered_resps": ["4"], "filter": "none", "metrics": ["exact_match"], "exact_match": 1.0,
    ...         "doc_hash": "a" * 64, "prompt_hash": "b" * 64, "target_hash": "c" * 64}
    >>> read_lm_eval([line], "samples.jsonl").columns["id"]
    ['aaaaaaaaaaaa-bbbbbbbbbbbb-cccccccccccc']
    """
    rows = _rows(LM_EVAL, records, f"{source}, line", _of_line)
    again = times((row.unit, row.variant) for row in rows)  # a document may stand there twice
    rows = [
        replace(row, unit=f"{row.unit}{NTH}{n}") if n > 1 else row for row, n in zip(rows, again, strict=True)
    ]
    return make_log(LM_EVAL, rows, variants="filters")


# What a line holds besides its metrics: lines before 0.4.5 have no list of these.
_LINE_KEYS = {
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", *_HASHES),
    *("prompt", "schema", "subtask", "task"),
}


def _of_line(record: Mapping[str, Any]) -> LogRow:
    prompt, choices = _requested(record["arguments"])
    names = record.get("metrics")
    if names is None:
        names = [name for name in record if name not in _LINE_KEYS]
    scores = {str(name): record.get(name) for name in names}
    doc = record["doc"]
    target = record.get("target")
    answers = record["filtered_resps"]
    target = None if target is None else text_of(target)
    failed = _all_blank(record["resps"]) and target != ""
    if target is not None and target.isdigit() and int(target) < len(choices):
        target = choices[int(target)].strip()
    answer = answers
    logs = _log_likelihoods(answers)
    while isinstance(answer, list):
        answer = answer[0] if answer else None
    if len(logs) > 1 and len(logs) == len(choices):
        best = max(range(len(logs)), key=logs.__getitem__)
        answer = choices[best].strip()
        scores["confidence"] = 1 / math.fsum(math.exp(entry - logs[best]) for entry in logs)
    shared = {"doc_id": record["doc_id"], "input": prompt, "target": target}
    return LogRow(
        unit="-".join(digest[:_DIGITS] for digest in _hashes_of(record, prompt)),
        shared=shared | _with_prefix("doc", doc if isinstance(doc, Mapping) else {"text": doc}),
        own={"answer": None if answer is None else text_of(answer)},
        scores=scores,
        variant=str(record.get("filter", "none")),
        failed=failed,
    )


def _all_blank(responses: Any) -> bool:
    """Return whether the model generated nothing: no response, or blank texts alone, however nested."""
    if isinstance(responses, list):
        return all(map(_all_blank, responses))
    return is_empty_output(responses)


def _hashes_of(record: Mapping[str, Any], prompt: str | None) -> list[str]:
    """Return the hashes of document, prompt and target; those that an older version left out are computed.

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


def _requested(arguments: Any) -> tuple[str | None, list[str]]:
    """Return the prompt, and the choices that were weighed; none where the model wrote freely."""
    given = arguments.values() if isinstance(arguments, Mapping) else arguments or ()
    calls = [list(call.values()) if isinstance(call, Mapping) else list(call) for call in given]
    choices = [call[1] for call in calls if len(call) > 1 and isinstance(call[1], str)]
    return text_of(calls[0][0]) if calls else None, choices if len(choices) == len(calls) else []


def _log_likelihoods(answers: Sequence[Any]) -> list[float]:
    """Return the log-likelihood of each choice, empty where answers are text."""
    firsts = [answer[0] for answer in answers if isinstance(answer, list) and len(answer) == 2]
    found = [number for first in firsts if (number := number_or_none(first)) is not None]
    return found if len(found) == len(answers) else []


# ---- promptfoo


def _promptfoo(found: Mapping[str, Any], source: str) -> Log:
    results = found["results"].get("results")
    if not results:
        raise InputError(f"{source}: holds no results", action="Run `promptfoo eval --output out.json`.")
    if any("testIdx" not in result or "promptIdx" not in result for result in results):
        results = _with_places(results)
    tests = {result["testIdx"]: _test_of(result["vars"]) for result in results}
    tests = dict(sorted(tests.items()))
    repeats = dict(zip(tests, times(tests.values()), strict=True))
    names = _variants(results)
    alike = len({_prompt(result) for result in results}) == 1

    def row(result: Mapping[str, Any]) -> LogRow:
        test = tests[result["testIdx"]]
        repeat = repeats[result["testIdx"]]
        prompt = result.get("prompt")
        response = result.get("response")
        shared = {"test": test, "repeat": repeat, **_with_prefix("vars", result["vars"])}
        requested = {"input": prompt.get("raw") if isinstance(prompt, Mapping) else prompt}
        if isinstance(response, Mapping):
            answer = response.get("output")
        else:
            answer = response
        if isinstance(response, Mapping):
            error = response.get("error")
        else:
            error = None
        own = {"answer": None if answer is None else text_of(answer)}
        return LogRow(
            unit=f"{test}{NTH}{repeat}" if max(repeats.values()) > 1 else test,
            shared=shared | requested if alike else shared,
            own=own if alike else requested | own,
            scores=_scores_of_result(result),
            variant=names[result["promptIdx"]],
            failed=bool(error) or is_empty_output(answer),
        )

    rows = _rows(PROMPTFOO, results, f"{source}, result", row)
    places = sorted(range(len(rows)), key=lambda at: (results[at]["testIdx"], results[at]["promptIdx"]))
    rows = [rows[place] for place in places]
    return make_log(PROMPTFOO, rows, variants="prompts and providers", cluster="test")


# `failureReason` of a result that no assertion could score (promptfoo's ResultFailureReason.ERROR).
_NOT_SCORED = 2


def _scores_of_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scores of a result, None for those of an assertion whose grader failed.

    The score and the success of the whole test are then unknown, too, unless another assertion failed it.
    """
    scores = {"score": None} | (result.get("namedScores") or {}) | {"score": result["score"]}
    scores |= {"success": result["success"]} if "success" in result else {}
    if result.get("failureReason") == _NOT_SCORED:
        return dict.fromkeys(scores)
    graded = [
        part for part in (result.get("gradingResult") or {}).get("componentResults") or [] if part is not None
    ]
    broken = [part for part in graded if (part.get("metadata") or {}).get("graderError")]
    if not broken:
        return scores
    metrics = {(part.get("assertion") or {}).get("metric") for part in broken}
    failed_otherwise = any(part.get("pass") is False for part in graded if part not in broken)
    unknown = {"score", *(name for name in metrics if name)} | (set() if failed_otherwise else {"success"})
    return scores | dict.fromkeys(unknown & set(scores))


def _with_places(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return results of version 2, which have no numbers, with those of their test and of their prompt.

    A test that an answer of one prompt and provider is there twice of is a repeat.
    """
    prompts: dict[str, int] = {}
    tests: dict[tuple[str, int], int] = {}
    of_prompt = [json.dumps([result.get("provider"), _prompt(result)], sort_keys=True) for result in results]
    of_test = [json.dumps(result["vars"], sort_keys=True) for result in results]
    repeats = times(zip(of_prompt, of_test, strict=True))
    return [
        {
            **result,
            "promptIdx": prompts.setdefault(prompt, len(prompts)),
            "testIdx": tests.setdefault((test, repeat), len(tests)),
        }
        for result, prompt, test, repeat in zip(results, of_prompt, of_test, repeats, strict=True)
    ]


def _variants(results: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Return the name of each prompt and provider: the provider's, with the prompt's where it has several."""
    prompts = {result["promptIdx"]: _prompt(result) for result in results}
    providers = {}
    for result in results:
        provider = result.get("provider") or {}
        if isinstance(provider, Mapping):
            name = provider.get("label") or provider.get("id")
        else:
            name = provider
        providers[result["promptIdx"]] = str(name or result["promptIdx"])
    order = {text: number for number, text in enumerate(dict.fromkeys(prompts.values()), start=1)}
    named = {index: f"{name}-prompt{order[prompts[index]]}" for index, name in providers.items()}
    numbered = {index: f"{name}-{index}" for index, name in providers.items()}
    return next(each for each in (providers, named, numbered) if len(set(each.values())) == len(each))


def _prompt(result: Mapping[str, Any]) -> str:
    prompt = result.get("prompt")
    if isinstance(prompt, Mapping):
        return str(prompt.get("label") or "")
    return str(prompt or "")


def _test_of(variables: Mapping[str, Any]) -> str:
    for name in ID_NAMES:
        if variables.get(name) not in (None, ""):
            return text_of(variables[name])
    text = json.dumps(variables, sort_keys=True, ensure_ascii=False)
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:16]


# ---- Inspect


_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
# What Inspect's reader leaves out of the samples, since nothing here needs it.
_HEAVY = {"events", "store"}


def read_packed(path: Path) -> Log:
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
        heavy = _HEAVY
        log = read_eval_log(str(path), resolve_attachments="core", exclude_fields=heavy)
        if any(sample.error is not None for sample in log.samples or ()):
            heavy = _HEAVY - {"events"}  # they show whether the answer or a scorer failed
            log = read_eval_log(str(path), resolve_attachments="core", exclude_fields=heavy)
        left_out: Any = {"plan": True, "stats": True, "samples": {"__all__": heavy}}
        found = log.model_dump(mode="json", exclude=left_out)
    except Exception as error:
        raise InputError(
            f"{path}: Inspect's own reader cannot read it",
            given=f"{type(error).__name__}: {error}"[:200],
            action="Check that the log is whole, or read it where a newer version of Inspect is installed.",
        ) from None
    with as_written(str(path), INSPECT):
        return _inspect(found, str(path))


def _inspect(found: Mapping[str, Any], source: str) -> Log:
    samples = found.get("samples")
    status = found.get("status")
    finished = status in (None, "success")
    error = found.get("error")
    if isinstance(error, Mapping):
        reason = error.get("message")
    else:
        reason = error
    ended = f"the evaluation did not finish ({status})"
    scored = any(sample.get("scores") or sample.get("score") for sample in samples or ())
    if not finished and not scored:
        raise InputError(
            f"{source}: {ended}, and no sample was scored",
            given=None if reason is None else text_of(reason).strip().splitlines()[0][:200],
            action=f"Remove the cause and run it again: inspect eval-retry {source}.",
        )
    if not samples:
        raise InputError(
            f"{source}: holds no samples", action="Run the evaluation with its samples logged (log_samples)."
        )
    rows = _with_grades(_rows(INSPECT, samples, f"{source}, sample", _of_sample))
    rows.sort(key=lambda row: row.shared["epoch"])
    if len({row.unit for row in rows}) < len(rows):
        rows = [replace(row, unit=f"{row.unit}{NTH}{row.shared['epoch']}") for row in rows]
    notes = [] if finished else [f"{source}: {ended}"]
    invalid = sum(bool(sample.get("invalidation")) for sample in samples)
    if invalid:
        notes.append(f"{source}: {invalid:,} samples were invalidated, and count as missing scores")
    return make_log(INSPECT, rows, cluster="sample", notes=notes)


def _of_sample(sample: Mapping[str, Any]) -> LogRow:
    unit = str(sample["id"])
    target = sample.get("target")
    output = sample.get("output")
    shared = {"sample": unit, "epoch": sample["epoch"], "input": _words(sample["input"])}
    if isinstance(target, list) and len(target) == 1:
        shared["target"] = target[0]
    else:
        shared["target"] = target
    written = sample.get("scores")
    if written is None and sample.get("score") is not None:  # logs of version 1
        written = {"score": sample["score"]}
    scores: dict[str, Any] = {}
    for name, score in (written or {}).items():
        value = None if score is None else score.get("value")
        scores |= _with_prefix(name, value) if isinstance(value, Mapping) else {name: value}
    if sample.get("invalidation"):
        scores = dict.fromkeys(scores)
    own = {"answer": None if output is None else output.get("completion")}
    shared |= _with_prefix("metadata", sample.get("metadata"))
    failed = _sample_failed(sample, output, list((written or {}).values()))
    return LogRow(unit=unit, shared=shared, own=own, scores=scores, failed=failed)


def _sample_failed(sample: Mapping[str, Any], output: Any, scores: Sequence[Any]) -> bool:
    """Return whether there is no answer: the sample ended in an error, or without any output.

    An error after the scorers began is a metric's, and not the application's. Output is a text, a call of a
    tool, or an answer that a scorer found elsewhere.
    """
    if sample.get("error") is not None:
        return not any(_begins_scoring(event) for event in sample.get("events") or ())
    if output is None:
        completion = None
    else:
        completion = output.get("completion")
    choices = (output or {}).get("choices") or []
    called = any((choice.get("message") or {}).get("tool_calls") for choice in choices)
    found_elsewhere = any(score is not None and score.get("answer") for score in scores)
    return is_empty_output(completion) and not called and not found_elsewhere


def _begins_scoring(event: Mapping[str, Any]) -> bool:
    """Return whether an event of a sample is the beginning of its scorers; older versions call it a step."""
    return event.get("event") in ("span_begin", "step") and event.get("type") in ("scorers", "scorer")


def _with_grades(rows: Sequence[LogRow]) -> list[LogRow]:
    """Return rows in which columns of Inspect's own grades alone are numbers, as Inspect counts them.

    Letters such as A, B, C and D are other grades, of which C is not `correct`.
    """
    texts: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.scores.items():
            if isinstance(value, str) and not _is_missing_score(value):
                texts.setdefault(name, set()).add(value)
    graded = {name for name, values in texts.items() if all(map(_is_grade, values))}

    def counted(row: LogRow) -> LogRow:
        found = {name: _number(value) if name in graded else value for name, value in row.scores.items()}
        return replace(row, scores=found)

    return [counted(row) for row in rows]


def _is_grade(text: str) -> bool:
    return text in _LETTERS or text.lower() in _LETTERS or number_or_none(text) is not None


def _number(value: Any) -> Any:
    """Return a score as Inspect counts it: its grades as numbers, all else as it is."""
    if isinstance(value, str):
        return _LETTERS.get(value, _LETTERS.get(value.lower(), value))
    return value


def _words(content: Any) -> Any:
    """Return an input as text; a list of messages as turns, of which the texts are kept."""
    if not isinstance(content, list):
        return text_of(content)
    turns = []
    for message in content:
        said = message.get("content")
        if isinstance(said, list):
            said = "\n".join(part["text"] for part in said if part.get("type") == "text")
        turns.append({"role": message.get("role"), "content": "" if said is None else text_of(said)})
    return turns


# ---- DeepEval


def _deepeval(found: Mapping[str, Any], source: str) -> Log:
    run = found.get("testRunData", found)
    cases = run.get("testCases")
    talks = run.get("conversationalTestCases")
    if bool(cases) == bool(talks):
        raise InputError(
            f"{source}: holds {'test cases and conversations' if cases else 'no test case'}",
            allowed="test cases, or conversations",
            action="Run them apart." if cases else "Run `evaluate` with DEEPEVAL_RESULTS_FOLDER set.",
        )
    given = cases or talks
    names = _numbered(str(case.get("name") or "case") for case in given)
    named = ({**case, "name": name} for case, name in zip(given, names, strict=True))
    if cases:
        return make_log(DEEPEVAL, _rows(DEEPEVAL, named, f"{source}, test case", _of_case))
    turns = [turn for talk in named for turn in _turns(talk, f"{source}, conversation")]
    return make_log(DEEPEVAL, _rows(DEEPEVAL, turns, f"{source}, turn", _of_case), cluster="conversation")


def _turns(talk: Mapping[str, Any], place: str) -> Iterator[dict[str, Any]]:
    """Yield the assistant's turns of a conversation as test cases, with the scores of the whole."""
    with as_written(f"{place} {talk['name']!r}", DEEPEVAL):
        said = [{"role": turn.get("role"), "content": turn.get("content")} for turn in talk["turns"]]
        places = [place for place, turn in enumerate(said) if turn["role"] == "assistant"]
    for number, at in enumerate(places, start=1):
        shared = {"conversation": talk["name"], "turn": number, "turns": said[:at]}
        unit = f"{talk['name']}{NTH}{number}"
        answer = said[at]["content"]
        yield {**talk, "name": unit, "shared": shared, "actualOutput": answer, "metadata": None}


def _of_case(case: Mapping[str, Any]) -> LogRow:
    entries = case.get("metricsData") or case.get("metricsMetadata") or []  # the latter before version 1
    names = _numbered(str(entry["name"] if "name" in entry else entry["metric"]) for entry in entries)
    measured = [_measured_score(entry) for entry in entries]
    failed_by_metric = any(
        entry.get("success") is False and score is not None
        for entry, score in zip(entries, measured, strict=True)
    )
    # The success of a case is that of all its metrics: unknown where one of them was not measured.
    unknown = not failed_by_metric and (not entries or None in measured)
    success = None if unknown else case.get("success")
    shared = case.get("shared") or {"input": case["input"], "target": case.get("expectedOutput")}
    shared |= _with_prefix("metadata", case.get("metadata"))
    answer = case.get("actualOutput")
    return LogRow(
        unit=case["name"],
        shared={name: value for name, value in shared.items() if value is not None},
        own={"answer": answer},
        scores=dict(zip(names, measured, strict=True)) | {"success": success},
        failed=is_empty_output(answer) and not case.get("toolsCalled"),
    )


def _measured_score(entry: Mapping[str, Any]) -> Any:
    """Return the score of a metric, None if it failed, was skipped or is not finite."""
    score = entry.get("score")
    unmeasured = entry.get("error") is not None or entry.get("skipped")
    if unmeasured or (number_or_none(score) is None and _is_missing_score(score)):
        return None
    return score


# ---- Hugging Face


# What every folder of `Dataset.save_to_disk` has.
STATE = "state.json"
# What `evaluate` calls the answers of the application.
_PREDICTIONS = "predictions"
_ABOUT = {"_timestamp", "_git_commit_hash", "_evaluate_version", "_python_version", "_interpreter_path"}


def _evaluate(found: Mapping[str, Any], source: str) -> Log:
    lists = {name: value for name, value in found.items() if isinstance(value, list) and name not in _ABOUT}
    numbers = {name: score_numbers(value) for name, value in lists.items() if name != _PREDICTIONS}
    scored = {name for name, value in numbers.items() if value and set(value) != {None}}
    if not scored:
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
            shared={name: value for name, value in entry.items() if name not in scored},
            scores={name: value for name, value in entry.items() if name in scored},
            failed=_PREDICTIONS in entry and is_empty_output(entry[_PREDICTIONS]),
        )
        for number, entry in enumerate(entries, start=1)
    ]
    return make_log(EVALUATE, rows)


def saved_table(folder: Path) -> Any | None:
    """Return a folder of `Dataset.save_to_disk` as an Arrow table, None for any other folder.

    Raises
    ------
    InputError
        For several splits together, and where a file is missing or damaged.
    """
    if (folder / "dataset_dict.json").is_file():
        splits = sorted(path.name for path in folder.iterdir() if (path / STATE).is_file())
        raise InputError(
            f"{folder}: holds several splits",
            given=", ".join(splits),
            action=f"Give one of them: {folder / splits[0]}." if splits else None,
        )
    state = folder / STATE
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


# ---- which tool wrote a file


# The keys of every line of lm-evaluation-harness.
_LINE = {"doc_id", "doc", "resps"}

# The keys by which a JSON document is known, and what reads it.
_DOCUMENTS: tuple[tuple[str, set[str], Callable[[Mapping[str, Any], str], Log]], ...] = (
    (PROMPTFOO, {"evalId", "results"}, _promptfoo),
    (DEEPEVAL, {"testCases", "metricsScores"}, _deepeval),
    (DEEPEVAL, {"conversationalTestCases", "metricsScores"}, _deepeval),
    (DEEPEVAL, {"testRunData"}, _deepeval),
    (INSPECT, {"eval", "plan", "version"}, _inspect),
    (EVALUATE, {"_evaluate_version"}, _evaluate),
)


def _known(found: Any) -> tuple[str, Callable[[Mapping[str, Any], str], Log]] | None:
    """Return the tool that wrote a JSON document, and what reads it; None of no tool's."""
    keys = set(found) if isinstance(found, Mapping) else set()
    return next(((tool, read) for tool, known, read in _DOCUMENTS if known <= keys), None)


def log_of_document(found: Any, source: str) -> Log | None:
    """Return a JSON document as a log, None where it is none.

    Raises
    ------
    InputError
        For a log that is not whole, and for one that holds results of all units together.
    """
    if isinstance(found, Mapping) and {"results", "configs", "versions"} <= set(found):
        raise InputError(
            f"{source}: holds results of all documents together",
            allowed=f"samples_….jsonl of {LM_EVAL}",
            action="Run it with --log_samples; the samples are then written next to this file.",
        )
    known = _known(found)
    if known is None:
        return None
    tool, read = known
    with as_written(source, tool):
        return read(found, source)


def log_of_lines(records: Iterable[Mapping[str, Any]], source: str) -> Log | None:
    """Return the objects of JSON Lines as a log, None where the first is of no log."""
    remaining = iter(records)
    first = next(remaining, None)
    if first is None or not set(first) >= _LINE:
        return None
    with as_written(source, LM_EVAL):
        return read_lm_eval([first, *remaining], source)


def tool_that_wrote(path: Path) -> str | None:
    """Return the evaluation tool whose log a file is, None for any other file.

    Examples
    --------
    >>> tool_that_wrote(Path("log.eval"))
    'Inspect'
    """
    if path.suffix == ".eval":
        return INSPECT
    if path.suffix not in (".json", ".jsonl") or path.stat().st_size > LARGEST:
        return None
    try:
        with path.open(encoding="utf-8") as text:
            found = json.loads(text.readline() if path.suffix == ".jsonl" else text.read())
    except (OSError, ValueError, RecursionError):
        return None
    if path.suffix == ".jsonl":
        if isinstance(found, Mapping) and set(found) >= _LINE:
            return LM_EVAL
        return None
    known = _known(found)
    return None if known is None else known[0]


def logs_below(folder: Path) -> dict[Path, str]:
    """Return the logs in a folder and those below it, by path, with the tool that wrote each.

    Examples
    --------
    >>> logs_below(Path("nowhere"))
    {}
    """
    paths = [path for path in islice(folder.rglob("*"), MOST) if path.is_file()]
    tools = {path: tool_that_wrote(path) for path in sorted(paths)}
    return {path: tool for path, tool in tools.items() if tool is not None}
