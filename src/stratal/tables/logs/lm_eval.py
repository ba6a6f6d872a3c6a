"""Logs of lm-evaluation-harness: `samples_<task>_<time>.jsonl`, written with `--log_samples` (as of 0.4.13).

There is one line per document and filter. The id of a document consists of its three hashes (document,
prompt, target), so that it is the same in another run, another order and with a larger `--limit`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from stratal.protocols import Cell, JsonMapping
from stratal.tables.logs.log import (
    LM_EVAL,
    REPEAT_SEPARATOR,
    Log,
    LogRow,
    is_empty_output,
    json_text,
    make_log,
    number_or_none,
    occurrence_numbers,
    read_rows,
    with_prefix,
)

# Items of several tasks and prompts have equal numbers; together these hashes identify one.
_HASHES = ("doc_hash", "prompt_hash", "target_hash")
# Hexadecimal digits of each hash in the id of a unit: three hashes of 48 bits.
_HASH_DIGITS = 12


def read_lm_eval(records: Sequence[Mapping[str, object]], source: str) -> Log:
    """Return the lines of a log of lm-evaluation-harness as a log."""
    rows = read_rows(LM_EVAL, records, f"{source}, line", _lm_eval_row)
    # A document may occur several times.
    repeats = occurrence_numbers((row.unit, row.variant) for row in rows)
    rows = [
        replace(row, unit=f"{row.unit}{REPEAT_SEPARATOR}{n}") if n > 1 else row
        for row, n in zip(rows, repeats, strict=True)
    ]
    return make_log(LM_EVAL, rows, variants="filters")


# Keys of a line that are not metrics. Versions before 0.4.5 have no list of the metrics.
_LINE_KEYS = {
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", *_HASHES),
    *("prompt", "schema", "subtask", "task"),
}


def _lm_eval_row(record: JsonMapping) -> LogRow:
    """Return the row of a line. The text of the best choice is the answer, and its probability is a score."""
    prompt, choices = _prompt_and_choices(record["arguments"])
    names = record.get("metrics")
    if names is None:
        names = [name for name in record if name not in _LINE_KEYS]
    scores = {str(name): record.get(name) for name in names}
    doc = record["doc"]
    if not isinstance(doc, Mapping):
        doc = {"text": doc}
    target = record.get("target")
    if target is not None:
        target = json_text(target)
    # An empty answer can be correct.
    failed = _all_blank(record["resps"]) and target != ""
    # The target of a multiple-choice task is the number of a choice.
    if target is not None and target.isdigit() and int(target) < len(choices):
        target = choices[int(target)].strip()
    answer = record["filtered_resps"]
    log_likelihoods = _log_likelihoods(answer)
    if len(log_likelihoods) > 1 and len(log_likelihoods) == len(choices):
        largest = max(log_likelihoods)
        answer = choices[log_likelihoods.index(largest)].strip()
        # The share of the best choice in all probabilities. The largest exponent is 0: none overflows.
        scores["confidence"] = 1 / math.fsum(math.exp(entry - largest) for entry in log_likelihoods)
    # Filters nest the answers in lists; the first one counts.
    while isinstance(answer, list):
        answer = answer[0] if answer else None
    unit_columns = {"doc_id": record["doc_id"], "input": prompt, "target": target}
    return LogRow(
        unit="-".join(digest[:_HASH_DIGITS] for digest in _unit_hashes(record, prompt)),
        unit_columns=unit_columns | with_prefix("doc", doc),
        variant_columns={"answer": None if answer is None else json_text(answer)},
        scores=scores,
        variant=str(record.get("filter", "none")),
        failed=failed,
    )


def _all_blank(responses: object) -> bool:
    """Return whether the model generated nothing: no response, or only blank texts, at any depth."""
    if isinstance(responses, list):
        return all(map(_all_blank, responses))
    return is_empty_output(responses)


def _unit_hashes(record: Mapping[str, object], prompt: str | None) -> list[str]:
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


def _prompt_and_choices(arguments: Cell) -> tuple[str | None, list[str]]:
    """Return the prompt and the choices; the choices are empty if the model generated text."""
    requests: Iterable[Cell]
    if isinstance(arguments, Mapping):
        requests = arguments.values()
    else:
        requests = arguments or ()
    calls = [list(call.values()) if isinstance(call, Mapping) else list(call) for call in requests]
    choices = [call[1] for call in calls if len(call) > 1 and isinstance(call[1], str)]
    prompt = json_text(calls[0][0]) if calls else None
    if len(choices) < len(calls):
        return prompt, []
    return prompt, choices


def _log_likelihoods(responses: Sequence[object]) -> list[float]:
    """Return the log-likelihood of each choice; empty if the model generated text.

    The response to a choice is a pair: its log-likelihood, and whether it is the most probable text.
    """
    first_entries = [pair[0] for pair in responses if isinstance(pair, list) and len(pair) == 2]
    numbers = map(number_or_none, first_entries)
    log_likelihoods = [number for number in numbers if number is not None]
    if len(log_likelihoods) == len(responses):
        return log_likelihoods
    return []
