"""Test runs of DeepEval, in `DEEPEVAL_RESULTS_FOLDER` or in `.deepeval/` (as of 4.3).

A unit is a test case. Each of the assistant's turns in a conversation is a unit, all of one cluster, with the
scores of the whole conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stratal.arrays import without_none
from stratal.errors import InputError
from stratal.protocols import Cell, JsonDict, JsonMapping
from stratal.tables.logs.log import (
    DEEPEVAL,
    REPEAT_SEPARATOR,
    Log,
    LogRow,
    is_empty_output,
    is_missing_score,
    make_log,
    number_or_none,
    number_repeats,
    read_rows,
    translate_tool_errors,
    with_prefix,
)


def read_deepeval(document: JsonMapping, source: str) -> Log:
    """Return the log of a test run of DeepEval."""
    run = document.get("testRunData", document)
    cases = run.get("testCases")
    conversations = run.get("conversationalTestCases")
    if bool(cases) == bool(conversations):
        raise InputError(
            f"{source} contains {'test cases and conversations' if cases else 'no test case'}",
            allowed="test cases, or conversations",
            action="Run them separately." if cases else "Run `evaluate` with DEEPEVAL_RESULTS_FOLDER set.",
        )
    records = cases or conversations
    # Test cases without names are called `case`.
    unique_names = number_repeats(str(case.get("name") or "case") for case in records)
    named_records = ({**case, "name": name} for case, name in zip(records, unique_names, strict=True))
    if cases:
        return make_log(DEEPEVAL, read_rows(DEEPEVAL, named_records, f"{source}, test case", _deepeval_row))
    turns = [
        turn
        for conversation in named_records
        for turn in _conversation_cases(conversation, f"{source}, conversation")
    ]
    return make_log(
        DEEPEVAL, read_rows(DEEPEVAL, turns, f"{source}, turn", _deepeval_row), cluster="conversation"
    )


def _conversation_cases(conversation: JsonMapping, source: str) -> Iterator[JsonDict]:
    """Yield the assistant's turns of a conversation as test cases, with the scores of the conversation."""
    with translate_tool_errors(f"{source} {conversation['name']!r}", DEEPEVAL):
        turns = [{"role": turn.get("role"), "content": turn.get("content")} for turn in conversation["turns"]]
        answer_positions = [position for position, turn in enumerate(turns) if turn["role"] == "assistant"]
    for number, position in enumerate(answer_positions, start=1):
        # Annotators see the turns before the answer.
        unit_columns = {"conversation": conversation["name"], "turn": number, "turns": turns[:position]}
        unit = f"{conversation['name']}{REPEAT_SEPARATOR}{number}"
        answer = turns[position]["content"]
        yield {
            **conversation,
            "name": unit,
            "unit_columns": unit_columns,
            "actualOutput": answer,
            # The row of a turn has no columns but `unit_columns`.
            "metadata": None,
        }


def _deepeval_row(case: JsonMapping) -> LogRow:
    """Return the row of a test case; its metrics are the scores."""
    # Before version 1, the metrics have the second name.
    metrics = case.get("metricsData") or case.get("metricsMetadata") or []
    names = number_repeats(
        str(metric["name"] if "name" in metric else metric["metric"]) for metric in metrics
    )
    scores = [_measured_score(metric) for metric in metrics]
    has_failed_metric = any(
        metric.get("success") is False and score is not None
        for metric, score in zip(metrics, scores, strict=True)
    )
    # A case succeeds if all metrics do, so that its success is unknown if one of them has no score.
    is_unknown = not has_failed_metric and (not metrics or None in scores)
    success = None if is_unknown else case.get("success")
    unit_columns = case.get("unit_columns") or {"input": case["input"], "target": case.get("expectedOutput")}
    unit_columns |= with_prefix("metadata", case.get("metadata"))
    answer = case.get("actualOutput")
    return LogRow(
        unit=case["name"],
        unit_columns=without_none(unit_columns),
        # What depends on the model, which `LogRow` calls a variant.
        variant_columns={"answer": answer},
        scores=dict(zip(names, scores, strict=True)) | {"success": success},
        failed=is_empty_output(answer) and not case.get("toolsCalled"),
    )


def _measured_score(entry: Mapping[str, object]) -> Cell:
    """Return the score of a metric, None if it failed, was skipped or is not finite."""
    score = entry.get("score")
    is_unmeasured = entry.get("error") is not None or entry.get("skipped")
    # Words such as a verdict are scores, although they are no numbers.
    if is_unmeasured or (number_or_none(score) is None and is_missing_score(score)):
        return None
    return score
