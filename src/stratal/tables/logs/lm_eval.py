"""lm-evaluation-harness: `samples_<task>_<time>.jsonl`, written with `--log_samples` (as of 0.4.13).

One line per document and filter. A document's id is made of its three hashes (document, prompt, target), so
that it survives another run, another order and a larger `--limit`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from stratal.errors import InputError
from stratal.tables.logs.log import Log, Row, distinguished, make_log, number_or_none, text_of

TOOL = "lm-evaluation-harness"
HASHES = ("doc_hash", "prompt_hash", "target_hash")
_DIGITS = 12
"""Of each hash, in the id: three of 48 bits."""


def recognises(record: Mapping[str, Any]) -> bool:
    """Return whether a line of JSON is one of this tool's.

    Examples
    --------
    >>> recognises({"doc_id": 0, "doc": {}, "filter": "none", "resps": []}), recognises({"id": 0})
    (True, False)
    """
    return {"doc_id", "doc", "resps"} <= set(record)


def read(records: Sequence[Mapping[str, Any]], source: str) -> Log:
    """Return a log of its lines.

    Parameters
    ----------
    records : sequence of mapping
    source : str
        What it is called in errors.

    Raises
    ------
    InputError
        For a line that lacks what every line has.

    Examples
    --------
    >>> line = {"doc_id": 0, "doc": {"q": "2 + 2?"}, "target": "4", "arguments": {}, "resps": [["4"]],
    ...         "filtered_resps": ["4"], "filter": "none", "metrics": ["exact_match"], "exact_match": 1.0,
    ...         "doc_hash": "a" * 64, "prompt_hash": "b" * 64, "target_hash": "c" * 64}
    >>> read([line], "samples.jsonl").columns["id"]
    ['aaaaaaaaaaaa-bbbbbbbbbbbb-cccccccccccc']
    """
    for number, record in enumerate(records, start=1):
        _refuse_incomplete(record, f"{source}, line {number}")
    hashed = all(name in record for record in records for name in HASHES)
    keys = [_key(record, hashed) for record in records]
    filters = [str(record.get("filter", "none")) for record in records]
    units: list[str] = [""] * len(records)
    for chosen in dict.fromkeys(filters):
        places = [place for place, name in enumerate(filters) if name == chosen]
        for place, unit in zip(places, distinguished(keys[place] for place in places), strict=True):
            units[place] = unit
    rows = [_row(record, unit, chosen) for record, unit, chosen in zip(records, units, filters, strict=True)]
    said = [] if hashed else ["without hashes ids are the documents' numbers, which another run may change"]
    return make_log(TOOL, rows, variants="filters", notes=said)


def _refuse_incomplete(record: Mapping[str, Any], place: str) -> None:
    if not recognises(record):
        raise InputError(
            f"{place}: is not a line of {TOOL}",
            given=", ".join(list(record)[:5]),
            allowed="doc_id, doc, resps, …",
        )
    metrics = record.get("metrics")
    if not isinstance(metrics, list) or not metrics:
        raise InputError(f"{place}: lists no metrics", action="Run the task with a metric.")
    for name in metrics:
        if name not in record:
            raise InputError(f"{place}: the metric {name!r} has no value", action="Write the log again.")


def _key(record: Mapping[str, Any], hashed: bool) -> str:
    if not hashed:
        return str(record["doc_id"])
    return "-".join(str(record[name])[:_DIGITS] for name in HASHES)


def _row(record: Mapping[str, Any], unit: str, chosen: str) -> Row:
    prompt, choices = _requested(record.get("arguments"))
    scores = {str(name): number_or_none(record[name]) for name in record["metrics"]}
    doc = record["doc"] if isinstance(record["doc"], Mapping) else {"text": record["doc"]}
    shared = {"doc_id": record["doc_id"], "input": prompt, "target": _target(record.get("target"), choices)}
    shared |= {f"doc.{name}": value for name, value in doc.items()}
    logs = _log_likelihoods(record.get("filtered_resps"))
    own: dict[str, Any]
    if len(logs) > 1 and len(logs) == len(choices):
        best = max(range(len(logs)), key=logs.__getitem__)
        own = {"answer": choices[best].strip()}
        scores["confidence"] = 1 / math.fsum(math.exp(entry - logs[best]) for entry in logs)
    else:
        own = {"answer": _first(record.get("filtered_resps"))}
    return Row(unit=unit, shared=shared, own=own, scores=scores, variant=chosen)


def _requested(arguments: Any) -> tuple[str | None, list[str]]:
    """Return the prompt, and the choices that were weighed; none where the model wrote freely."""
    calls = list(arguments.values()) if isinstance(arguments, Mapping) else arguments
    pairs = [
        list(call.values()) if isinstance(call, Mapping) else call
        for call in (calls if isinstance(calls, list) else [])
        if isinstance(call, Mapping | list) and call
    ]
    if not pairs:
        return None, []
    choices = [pair[1] for pair in pairs if len(pair) > 1 and isinstance(pair[1], str)]
    return text_of(pairs[0][0]), choices if len(choices) == len(pairs) else []


def _target(target: Any, choices: Sequence[str]) -> str | None:
    """Return the right answer as text, that of a number of a choice."""
    text = None if target is None else text_of(target)
    if text is not None and text.isdigit() and int(text) < len(choices):
        return choices[int(text)].strip()
    return text


def _log_likelihoods(answers: Any) -> list[float]:
    """Return the log-likelihood of each choice, empty where answers are text."""
    if not isinstance(answers, list):
        return []
    firsts = [answer[0] for answer in answers if isinstance(answer, list) and len(answer) == 2]
    numbers = [number_or_none(first) for first in firsts]
    found = [number for number in numbers if number is not None]
    return found if len(found) == len(answers) else []


def _first(answers: Any) -> str | None:
    while isinstance(answers, list):
        if not answers:
            return None
        answers = answers[0]
    return None if answers is None else text_of(answers)
