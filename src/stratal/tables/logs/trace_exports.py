"""Exported records of LangSmith (runs), Braintrust (rows) and W&B Weave (calls), as their APIs return them.

A unit is a root run, row or call: the spans below it are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from stratal.tables.logs.log import (
    BRAINTRUST,
    LANGSMITH,
    WEAVE,
    Log,
    LogRow,
    is_empty_output,
    json_text,
    make_log,
    read_rows,
)

Record = Mapping[str, Any]

RUN_KEYS = {"id", "run_type", "trace_id", "inputs", "outputs", "feedback_stats"}
ROW_KEYS = {"id", "span_id", "root_span_id", "input", "output", "scores"}
CALL_KEYS = {"id", "op_name", "trace_id", "inputs", "output"}


def read_langsmith(records: Iterable[Record], source: str) -> Log:
    """Return the log of runs; the score of a key is the mean of its feedback."""
    runs = [record for record in records if record["trace_id"] == record["id"]]
    return _read(LANGSMITH, runs, source, _langsmith_scores)


def read_braintrust(records: Iterable[Record], source: str) -> Log:
    """Return the log of the rows of an experiment, or of logs."""
    rows = [record for record in records if record["span_id"] == record["root_span_id"]]
    return _read(BRAINTRUST, rows, source, lambda record: record["scores"] or {})


def read_weave(records: Iterable[Record], source: str) -> Log:
    """Return the log of calls; an evaluation stores the scores in the output of its calls."""
    calls = [record for record in records if "predict_and_score" in record["op_name"]]
    return _read(WEAVE, calls, source, lambda record: _flat_scores(record["output"]["scores"]))


def _read(tool: str, records: Iterable[Record], source: str, scores: Callable[[Record], Record]) -> Log:
    return make_log(tool, read_rows(tool, records, f"{source}, unit", partial(_row, scores)))


def _row(scores: Callable[[Record], Record], record: Record) -> LogRow:
    """Return the row of a record."""
    inputs = record["inputs"] if "inputs" in record else record["input"]
    output = record["outputs"] if "outputs" in record else record["output"]
    if isinstance(output, Mapping) and "scores" in output:
        output = output.get("output")
    unit_columns = {"input": json_text(inputs)}
    if record.get("expected") is not None:
        unit_columns["target"] = json_text(record["expected"])
    return LogRow(
        unit=str(record["id"]),
        unit_columns=unit_columns,
        variant_columns={"answer": None if output is None else json_text(output)},
        scores=scores(record),
        failed=bool(record.get("error") or record.get("exception")) or is_empty_output(output),
    )


def _langsmith_scores(record: Record) -> dict[str, Any]:
    """Return the mean of each key of feedback."""
    return {name: statistics["avg"] for name, statistics in (record["feedback_stats"] or {}).items()}


def _flat_scores(scores: Record) -> dict[str, Any]:
    """Return scores by name; a scorer with several values has a column of each."""
    flat = dict[str, Any]()
    for name, value in scores.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{key}": entry for key, entry in value.items()}
        else:
            flat[name] = value
    return flat
