"""Exports of LangSmith (runs, results of experiments), Braintrust (rows) and W&B Weave (calls).

JSON records have the form that the APIs return. In tables, a nested record is JSON text, or columns with
dotted names. Each root run, row or call is a unit; the spans below it are left out. A unit has the id of its
example, if it has one, so that the experiments of a data set can be joined.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
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
    number_repeats,
    read_rows,
)

# A run, a row or a call, by field.
TraceRecord = Mapping[str, Any]

# Keys by which the records are recognised.
LANGSMITH_RUN_KEYS = {"id", "run_type", "trace_id", "inputs", "outputs", "feedback_stats"}
LANGSMITH_RESULT_KEYS = {"id", "example_id", "inputs", "outputs", "feedback"}
BRAINTRUST_ROW_KEYS = {"id", "span_id", "root_span_id", "input", "output", "scores"}
WEAVE_CALL_KEYS = {"id", "op_name", "trace_id", "inputs", "output"}

# Fields that the platforms document: of LangSmith (runs, results), Braintrust and Weave.
_FIELD_NAMES = """
    id name start_time run_type end_time extra error serialized events inputs outputs reference_example_id
    parent_run_id tags attachments session_id child_run_ids child_runs feedback_stats app_path manifest_id
    status prompt_tokens completion_tokens total_tokens prompt_token_details completion_token_details
    first_token_time total_cost prompt_cost completion_cost prompt_cost_details completion_cost_details
    parent_run_ids trace_id dotted_order in_dataset

    reference feedback execution_time example_id

    span_id root_span_id is_root span_parents span_attributes _xact_id created project_id experiment_id
    dataset_id dataset_record_id log_id org_id input output expected scores metadata metrics context origin

    op_name display_name parent_id thread_id turn_id started_at ended_at exception attributes summary
    wb_user_id wb_run_id wb_run_step deleted_at
"""
# pandas writes the index as a column without a name.
FIELDS = {*_FIELD_NAMES.split(), "", "Unnamed: 0"}

# Column with the id of the example of a data set that a unit evaluates.
EXAMPLE = "example"


def is_export(names: Iterable[str]) -> bool:
    """Return whether the columns of a table are as a platform exports them.

    A table with a further column, such as labels that a person added in a spreadsheet, is not an export.
    """
    fields = {name.partition(".")[0] for name in names}
    return fields <= FIELDS and any(
        keys <= fields
        for keys in (LANGSMITH_RUN_KEYS, LANGSMITH_RESULT_KEYS, BRAINTRUST_ROW_KEYS, WEAVE_CALL_KEYS)
    )


def read_langsmith(records: Iterable[TraceRecord], source: str) -> Log:
    """Return the log of runs, with the mean feedback of each key as a score."""
    runs = [record for record in map(_nest_columns, records) if record["trace_id"] == record["id"]]
    return _read_records(LANGSMITH, runs, source, _langsmith_scores)


def read_langsmith_results(records: Iterable[TraceRecord], source: str) -> Log:
    """Return the log of `results.to_pandas().to_csv(path)` of an experiment."""
    return _read_records(LANGSMITH, map(_nest_columns, records), source, lambda record: record["feedback"])


def read_braintrust(records: Iterable[TraceRecord], source: str) -> Log:
    """Return the log of the rows of an experiment, or of logs."""
    rows = [record for record in map(_nest_columns, records) if record["span_id"] == record["root_span_id"]]
    return _read_records(BRAINTRUST, rows, source, lambda record: record["scores"] or {})


def read_weave(records: Iterable[TraceRecord], source: str) -> Log:
    """Return the log of the calls of an evaluation, whose outputs contain the scores."""
    calls = []
    for record in map(_nest_columns, records):
        if "predict_and_score" in record["op_name"]:
            output = (record["output"] or {}).get("output")
            calls.append({**record, "output": output, "scores": _weave_scores(record)})
    return _read_records(WEAVE, calls, source, lambda record: record["scores"])


def records_of_table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> list[dict[str, Any]]:
    """Return the rows of a CSV file as records: JSON and Python literals are parsed, empty cells are None."""
    return [dict(zip(names, map(_cell_value, row), strict=False)) for row in rows]


def _nest_columns(record: TraceRecord) -> dict[str, Any]:
    """Return a record in which a column `a.b` is the entry `b` of the record `a`, unless it is empty."""
    nested = dict[str, Any]()
    for name, value in record.items():
        parent, dot, child = name.partition(".")
        if not dot:
            nested[name] = value
        elif isinstance(nested.setdefault(parent, {}), dict) and value is not None:
            nested[parent][child] = value
    return nested


def _cell_value(text: str) -> Any:
    """Return a cell as JSON or, as pandas writes records, as a Python literal; other cells are text."""
    if not text:
        return None
    if text[0] not in "{[" and text not in ("True", "False"):
        return text
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            # Text may start like a literal, such as an answer in braces.
            continue
    return text


def _read_records(
    tool: str, records: Iterable[TraceRecord], source: str, get_scores: Callable[[TraceRecord], TraceRecord]
) -> Log:
    """Return the log of records; the repeats of an example are one cluster."""
    rows = read_rows(tool, records, f"{source}, unit", partial(_log_row, get_scores))
    units = number_repeats(row.unit for row in rows)
    numbered_rows = [replace(row, unit=unit) for row, unit in zip(rows, units, strict=True)]
    has_examples = any(EXAMPLE in row.unit_columns for row in rows)
    return make_log(tool, numbered_rows, cluster=EXAMPLE if has_examples else None)


def _example_id(record: TraceRecord) -> str | None:
    """Return the id of the example of a data set, None for a record without one."""
    inputs = record.get("inputs")
    if isinstance(inputs, Mapping) and isinstance(inputs.get("example"), str):
        reference: str = inputs["example"]  # of Weave, to a row
        return reference
    origin = record.get("origin")
    if isinstance(origin, Mapping):
        return origin.get("id")
    names = ("reference_example_id", "example_id", "dataset_record_id")
    return next((record[name] for name in names if record.get(name)), None)


def _log_row(get_scores: Callable[[TraceRecord], TraceRecord], record: TraceRecord) -> LogRow:
    """Return the row of a record."""
    inputs = record["inputs"] if "inputs" in record else record["input"]
    output = record["outputs"] if "outputs" in record else record["output"]
    example_id = _example_id(record)
    unit_columns = {"input": _record_text(inputs)}
    if example_id is not None:
        unit_columns[EXAMPLE] = example_id
    targets = (record.get(name) for name in ("expected", "reference"))
    target = next((value for value in targets if value is not None), None)
    if target is not None:
        unit_columns["target"] = _record_text(target)
    has_error = bool(record.get("error") or record.get("exception"))
    return LogRow(
        unit=str(example_id or record["id"]),
        unit_columns=unit_columns,
        variant_columns={"answer": None if output is None else _record_text(output)},
        scores=get_scores(record),
        failed=has_error or is_empty_output(output),
    )


def _record_text(record: Any) -> str:
    """Return an input or an output as text: JSON, or the value of its only entry."""
    if isinstance(record, Mapping) and len(record) == 1:
        [record] = record.values()
    return json_text(record)


def _langsmith_scores(record: TraceRecord) -> dict[str, Any]:
    """Return the mean of each key of feedback."""
    return {name: statistics["avg"] for name, statistics in (record["feedback_stats"] or {}).items()}


def _weave_scores(record: TraceRecord) -> dict[str, Any]:
    """Return the scores of a call by name; a scorer with several values has a column of each."""
    scores = dict[str, Any]()
    for name, value in (record["output"] or {}).items():
        if name == "scores":
            scores |= _flatten_scores(value)
        elif name.startswith("scores."):
            scores[name.removeprefix("scores.")] = value
    return scores


def _flatten_scores(scores: TraceRecord) -> dict[str, Any]:
    """Return scores by name; a scorer with several values has a score for each, such as `quality.mean`."""
    flat_scores = dict[str, Any]()
    for name, value in scores.items():
        if isinstance(value, Mapping):
            flat_scores |= {f"{name}.{key}": entry for key, entry in value.items()}
        else:
            flat_scores[name] = value
    return flat_scores
