"""Results of ragas (0.4) as JSON: `result.to_pandas().to_json(path, orient="records", lines=True)`.

A unit is a sample of the evaluated data set. Ragas has no ids: the id is a digest of the input, the contexts
and the reference, so that it is the same in another run. Columns that are not of the data set are metrics.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import partial

from stratal.arrays import without_none
from stratal.protocols import JsonMapping
from stratal.tables.logs.log import (
    RAGAS,
    Log,
    LogRow,
    is_empty_output,
    make_log,
    number_repeats,
    read_rows,
)

# Columns of ragas' samples with one turn and with several.
DATASET_COLUMNS = (
    *("user_input", "response", "multi_responses", "retrieved_contexts", "retrieved_context_ids"),
    *("reference", "reference_contexts", "reference_context_ids", "reference_tool_calls", "reference_topics"),
    *("rubrics", "persona_name", "query_style", "query_length"),
)
# Keys by which a file of ragas is recognised.
SAMPLE_KEYS = {"user_input", "response", "retrieved_contexts"}
# Columns whose digest is the id of a unit, because ragas writes no ids, and number of its hexadecimal digits.
_ID_COLUMNS = ("user_input", "retrieved_contexts", "reference")
_ID_DIGITS = 16


def read_ragas(records: Iterable[JsonMapping], source: str) -> Log:
    """Return the log of the scored samples."""
    samples = list(records)
    ids = number_repeats(map(_digest, samples))
    columns = dict.fromkeys(name for sample in samples for name in sample)
    metrics = [name for name in columns if name not in DATASET_COLUMNS]
    numbered = [{**sample, "id": unit} for sample, unit in zip(samples, ids, strict=True)]
    return make_log(RAGAS, read_rows(RAGAS, numbered, f"{source}, sample", partial(_sample_row, metrics)))


def _digest(sample: JsonMapping) -> str:
    """Return the id of a sample."""
    text = json.dumps([sample.get(name) for name in _ID_COLUMNS], ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_ID_DIGITS]


def _sample_row(metrics: Iterable[str], sample: JsonMapping) -> LogRow:
    """Return the row of a scored sample."""
    unit_columns = {"input": sample["user_input"], "target": sample.get("reference")}
    unit_columns["contexts"] = sample.get("retrieved_contexts")
    return LogRow(
        unit=sample["id"],
        unit_columns=without_none(unit_columns),
        variant_columns={"answer": sample["response"]},
        scores={name: sample.get(name) for name in metrics},
        failed=is_empty_output(sample["response"]),
    )
