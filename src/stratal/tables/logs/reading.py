"""Detect the evaluation tool that wrote a file or folder, and read its log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

from stratal.errors import InputError
from stratal.protocols import Cell, JsonMapping
from stratal.tables import files
from stratal.tables.logs.deepeval import read_deepeval
from stratal.tables.logs.hugging_face import read_evaluate
from stratal.tables.logs.inspect_ai import read_inspect
from stratal.tables.logs.lm_eval import read_lm_eval
from stratal.tables.logs.log import (
    BRAINTRUST,
    DEEPEVAL,
    EVALUATE,
    INSPECT,
    LANGSMITH,
    LM_EVAL,
    MAX_FILES_INSPECTED,
    MAX_LOG_BYTES,
    OPENAI,
    PROMPTFOO,
    RAGAS,
    WEAVE,
    Log,
    translate_tool_errors,
)
from stratal.tables.logs.openai_evals import ITEM_KEYS, read_openai_items, read_openai_page
from stratal.tables.logs.promptfoo import read_promptfoo
from stratal.tables.logs.ragas import SAMPLE_KEYS, read_ragas
from stratal.tables.logs.trace_exports import (
    BRAINTRUST_ROW_KEYS,
    LANGSMITH_RESULT_KEYS,
    LANGSMITH_RUN_KEYS,
    WEAVE_CALL_KEYS,
    is_export,
    read_braintrust,
    read_langsmith,
    read_langsmith_results,
    read_weave,
    records_of_table,
)

# Column of labels of people, which no tool writes.
_LABEL_COLUMN = "label"

# Names of the array of records in answers of the platforms' APIs.
_RECORD_LISTS = ("runs", "data", "events", "calls")

# Tool, keys and reader of the objects in JSON Lines, or in an array of JSON.
_RECORD_READERS: tuple[tuple[str, set[str], Callable[[list[JsonMapping], str], Log]], ...] = (
    (LM_EVAL, {"doc_id", "doc", "resps"}, read_lm_eval),
    (OPENAI, ITEM_KEYS, read_openai_items),
    (RAGAS, SAMPLE_KEYS, read_ragas),
    (LANGSMITH, LANGSMITH_RUN_KEYS, read_langsmith),
    (LANGSMITH, LANGSMITH_RESULT_KEYS, read_langsmith_results),
    (BRAINTRUST, BRAINTRUST_ROW_KEYS, read_braintrust),
    (WEAVE, WEAVE_CALL_KEYS, read_weave),
)

# Tool, keys and reader of each JSON document.
_DOCUMENT_READERS: tuple[tuple[str, set[str], Callable[[JsonMapping, str], Log]], ...] = (
    (PROMPTFOO, {"evalId", "results"}, read_promptfoo),
    (DEEPEVAL, {"testCases", "metricsScores"}, read_deepeval),
    (DEEPEVAL, {"conversationalTestCases", "metricsScores"}, read_deepeval),
    (DEEPEVAL, {"testRunData"}, read_deepeval),
    (INSPECT, {"eval", "plan", "version"}, read_inspect),
    (EVALUATE, {"_evaluate_version"}, read_evaluate),
    (OPENAI, {"object", "data", "has_more"}, read_openai_page),
)


def _document_reader(document: object) -> tuple[str, Callable[[JsonMapping, str], Log]] | None:
    """Return the tool that wrote a JSON document and its reader, None for other documents."""
    if not isinstance(document, Mapping):
        return None
    for tool, required_keys, read_document in _DOCUMENT_READERS:
        if required_keys <= set(document):
            return tool, read_document
    return None


def _records_of(document: object) -> list[Cell] | None:
    """Return the records of an array or of an answer of an API; None for other documents."""
    if isinstance(document, list):
        return document
    if not isinstance(document, Mapping) or _document_reader(document) is not None:
        return None
    arrays = (document[name] for name in _RECORD_LISTS if isinstance(document.get(name), list))
    return next((array for array in arrays if array and _record_reader(array[0]) is not None), None)


def read_log_document(document: Cell, source: str) -> Log | None:
    """Return a JSON document as a log, None if it is not a log.

    Raises an `InputError` for an invalid log, and for a file with only aggregated results.
    """
    records = _records_of(document)
    if records is not None:
        return read_log_lines(records, source)
    if isinstance(document, Mapping) and {"results", "configs", "versions"} <= set(document):
        raise InputError(
            f"{source} contains only results for all documents together",
            allowed=f"samples_….jsonl of {LM_EVAL}",
            action="Run the evaluation with --log_samples; the samples are then written next to this file.",
        )
    document_reader = _document_reader(document)
    if document_reader is None:
        return None
    tool, read_document = document_reader
    with translate_tool_errors(source, tool):
        return read_document(document, source)


def _record_reader(record: Cell) -> tuple[str, Callable[[list[JsonMapping], str], Log]] | None:
    """Return the tool that wrote a record and the reader of its records, None for other records."""
    keys = set(record) if isinstance(record, Mapping) else set()
    if any("." in name for name in keys):
        # A row of a table, in which nested records are columns with dotted names.
        if not is_export(keys):
            return None
        keys = {name.partition(".")[0] for name in keys}
    for tool, required_keys, read_records in _RECORD_READERS:
        # A tool writes no labels: records with labels of people are a table.
        if required_keys <= keys and _LABEL_COLUMN not in keys:
            return tool, read_records
    return None


def read_log_lines(records: Iterable[JsonMapping], source: str) -> Log | None:
    """Return the objects of JSON Lines as a log, None if the first one is not from a log."""
    remaining = iter(records)
    first = next(remaining, None)
    record_reader = _record_reader(first)
    if first is None or record_reader is None:
        return None
    tool, read_records = record_reader
    with translate_tool_errors(source, tool):
        return read_records([first, *remaining], source)


def read_log_table(path: Path, names: Sequence[str], delimiter: str) -> Log | None:
    """Return a CSV file with the columns of an export as a log, None for another file."""
    if not is_export(names) or path.stat().st_size > MAX_LOG_BYTES:
        return None
    with closing(files.open_text(path)) as text:
        rows = islice(files.csv_records(text, delimiter), 1, None)
        return read_log_lines(records_of_table(names, (fields for _, fields in rows)), str(path))


def find_log_tool(path: Path) -> str | None:
    """Return the evaluation tool that wrote a file, None for other files."""
    if path.suffix == ".eval":
        return INSPECT
    if path.suffix not in (".csv", ".json", ".jsonl") or path.stat().st_size > MAX_LOG_BYTES:
        return None
    try:
        document = _first_document(path)
    except (OSError, ValueError, RecursionError):
        # A file that is no JSON is no log, and is read as a table.
        return None
    reader: tuple[str, object] | None
    if path.suffix != ".json":
        reader = _record_reader(document)
    else:
        records = _records_of(document)
        reader = _record_reader(records[0]) if records else _document_reader(document)
    return None if reader is None else reader[0]


def _first_document(path: Path) -> Cell:
    """Return a JSON document, the first line of JSON Lines, or the columns of a CSV file without values."""
    if path.suffix == ".csv":
        _, _, names = files.csv_header(path)
        return dict.fromkeys(names or ()) if is_export(names or ()) else None
    with path.open(encoding="utf-8") as text:
        return json.loads(text.readline() if path.suffix == ".jsonl" else text.read())


def find_logs(folder: Path) -> dict[Path, str]:
    """Return the logs in a folder and its subfolders by path, with the tool that wrote each."""
    paths = [path for path in islice(folder.rglob("*"), MAX_FILES_INSPECTED) if path.is_file()]
    tools = {path: find_log_tool(path) for path in sorted(paths)}
    return {path: tool for path, tool in tools.items() if tool is not None}
