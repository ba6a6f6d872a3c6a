"""Logs of Inspect (as of 0.3.285): `.eval` files by its own reader (extra `inspect`), `.json` files directly.

A unit is one epoch of a sample; the epochs of a sample are one cluster. Scores are numbers as in Inspect: C,
I, P and N are 1, 0, ½ and 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from stratal.errors import InputError, optional_import
from stratal.protocols import Cell, Foreign, JsonDict, JsonMapping
from stratal.tables.logs.log import (
    INSPECT,
    MAX_ERROR_CHARACTERS,
    REPEAT_SEPARATOR,
    Log,
    LogRow,
    is_empty_output,
    is_missing_score,
    json_text,
    make_log,
    number_or_none,
    read_rows,
    translate_tool_errors,
    with_prefix,
)

# Letters of Inspect's scorers: correct, incorrect, partially correct, no answer; and words of its choices.
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
    with optional_import("inspect_ai", extra="inspect"):
        from inspect_ai.log import read_eval_log
    try:
        unused_fields = _UNUSED_FIELDS
        log = read_eval_log(str(path), resolve_attachments="core", exclude_fields=unused_fields)
        if any(sample.error is not None for sample in log.samples or ()):
            # Events distinguish a failed answer from a failed scorer. They are large, so that they are read
            # only in this case.
            unused_fields = _UNUSED_FIELDS - {"events"}
            log = read_eval_log(str(path), resolve_attachments="core", exclude_fields=unused_fields)
        excluded: Foreign = {"plan": True, "stats": True, "samples": {"__all__": unused_fields}}
        document = log.model_dump(mode="json", exclude=excluded)
    except Exception as error:
        raise InputError(
            f"{path}: the reader of Inspect cannot read this log",
            given=f"{type(error).__name__}: {error}"[:MAX_ERROR_CHARACTERS],
            action="Check that the log is complete, or read it where a newer version of Inspect is "
            "installed.",
        ) from None
    with translate_tool_errors(str(path), INSPECT):
        return read_inspect(document, str(path))


def read_inspect(document: JsonMapping, source: str) -> Log:
    """Return the log of an Inspect evaluation; `source` names it in errors."""
    samples = document.get("samples")
    status = document.get("status")
    is_finished = status in (None, "success")
    status_note = f"the evaluation did not finish ({status})"
    has_scores = any(sample.get("scores") or sample.get("score") for sample in samples or ())
    if not is_finished and not has_scores:
        raise InputError(
            f"{source}: {status_note}, and no sample was scored",
            given=_first_error_line(document.get("error")),
            action=f"Fix the cause and run the evaluation again: inspect eval-retry {source}.",
        )
    if not samples:
        raise InputError(
            f"{source} contains no samples",
            action="Run the evaluation with its samples logged (log_samples).",
        )
    rows = _with_grades(read_rows(INSPECT, samples, f"{source}, sample", _inspect_row))
    rows.sort(key=lambda row: row.unit_columns["epoch"])
    # With several epochs, the id of a sample is not unique.
    if len({row.unit for row in rows}) < len(rows):
        rows = [replace(row, unit=f"{row.unit}{REPEAT_SEPARATOR}{row.unit_columns['epoch']}") for row in rows]
    notes = [] if is_finished else [f"{source}: {status_note}"]
    invalid_count = sum(bool(sample.get("invalidation")) for sample in samples)
    if invalid_count:
        notes.append(
            f"{source}: {invalid_count:,} samples were invalidated, and their scores count as missing"
        )
    return make_log(INSPECT, rows, cluster="sample", notes=notes)


def _first_error_line(error: Cell) -> str | None:
    """Return the first line of the error of an evaluation, None without an error."""
    if isinstance(error, Mapping):
        error = error.get("message")
    if error is None:
        return None
    return json_text(error).strip().splitlines()[0][:MAX_ERROR_CHARACTERS]


def _inspect_row(sample: JsonMapping) -> LogRow:
    """Return the row of one epoch of a sample."""
    unit = str(sample["id"])
    target = sample.get("target")
    output = sample.get("output")
    unit_columns = {"sample": unit, "epoch": sample["epoch"], "input": _input_text(sample["input"])}
    if isinstance(target, list) and len(target) == 1:
        unit_columns["target"] = target[0]
    else:
        unit_columns["target"] = target
    score_entries = sample.get("scores")
    # Logs of version 1 have one score.
    if score_entries is None and sample.get("score") is not None:
        score_entries = {"score": sample["score"]}
    scores: JsonDict = {}
    for name, score in (score_entries or {}).items():
        value = None if score is None else score.get("value")
        scores |= with_prefix(name, value) if isinstance(value, Mapping) else {name: value}
    # An invalidated sample has missing scores.
    if sample.get("invalidation"):
        scores = dict.fromkeys(scores)
    variant_columns = {"answer": None if output is None else output.get("completion")}
    unit_columns |= with_prefix("metadata", sample.get("metadata"))
    failed = _sample_failed(sample, output, list((score_entries or {}).values()))
    return LogRow(
        unit=unit, unit_columns=unit_columns, variant_columns=variant_columns, scores=scores, failed=failed
    )


def _sample_failed(sample: JsonMapping, output: Cell, scores: Sequence[Cell]) -> bool:
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


def _begins_scoring(event: Mapping[str, object]) -> bool:
    """Return whether an event is the start of the scorers; older versions call it a step."""
    return event.get("event") in ("span_begin", "step") and event.get("type") in ("scorers", "scorer")


def _with_grades(rows: Sequence[LogRow]) -> list[LogRow]:
    """Return rows with numbers in the columns that contain only grades of Inspect.

    If a column has letters such as A, B, C and D, its C does not mean `correct`.
    """
    texts_of_score: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.scores.items():
            if isinstance(value, str) and not is_missing_score(value):
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
    """Return whether a text is a grade of Inspect or a number."""
    return text in _GRADES or text.lower() in _GRADES or number_or_none(text) is not None


def _grade_number(value: object) -> Cell:
    """Return a score with the grades of Inspect as numbers; other values are unchanged."""
    if isinstance(value, str):
        return _GRADES.get(value, _GRADES.get(value.lower(), value))
    return value


def _input_text(content: object) -> Cell:
    """Return an input as text, or a list of messages as turns with their texts."""
    if not isinstance(content, list):
        return json_text(content)
    turns = []
    for message in content:
        text = message.get("content")
        # A message may consist of blocks, such as texts and images.
        if isinstance(text, list):
            text = "\n".join(block["text"] for block in text if block.get("type") == "text")
        turns.append({"role": message.get("role"), "content": "" if text is None else json_text(text)})
    return turns
