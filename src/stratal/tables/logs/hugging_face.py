"""Scores of `evaluate.save` of Hugging Face (as of 0.4.6), and folders of `Dataset.save_to_disk` (5.2).

`evaluate` stores no inputs and no ids, only lists of scores in the order of the predictions. The id of a unit
is therefore its row number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from stratal.errors import InputError
from stratal.protocols import Foreign
from stratal.tables.logs.log import (
    EVALUATE,
    MAX_ERROR_CHARACTERS,
    Log,
    LogRow,
    is_empty_output,
    make_log,
    score_numbers,
)

# File in every folder of `Dataset.save_to_disk`, which names the data files.
DATASET_STATE = "state.json"
# Name of the answers in files of `evaluate`.
_PREDICTIONS = "predictions"
# Keys of a file of `evaluate` with metadata.
_EVALUATE_METADATA = {
    "_timestamp",
    "_git_commit_hash",
    "_evaluate_version",
    "_python_version",
    "_interpreter_path",
}


def read_evaluate(document: Mapping[str, object], source: str) -> Log:
    """Return the log of scores that `evaluate.save` wrote."""
    columns = {
        name: value
        for name, value in document.items()
        if isinstance(value, list) and name not in _EVALUATE_METADATA
    }
    scores = {name: score_numbers(values) for name, values in columns.items() if name != _PREDICTIONS}
    score_names = {name for name, values in scores.items() if values and set(values) != {None}}
    if not score_names:
        raise InputError(
            f"{source} contains no score per unit, only scores for all units together",
            allowed="lists with an entry per prediction",
            action="Save the value of the metric for each prediction: evaluate.save(path, exact_match=[…]).",
        )
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) != 1:
        raise InputError(
            f"{source}: lists of different lengths", given=lengths, allowed="lists of the same length"
        )
    entries = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    rows = []
    for row_number, entry in enumerate(entries, start=1):
        row = LogRow(
            unit=str(row_number),
            unit_columns={name: value for name, value in entry.items() if name not in score_names},
            scores={name: value for name, value in entry.items() if name in score_names},
            failed=_PREDICTIONS in entry and is_empty_output(entry[_PREDICTIONS]),
        )
        rows.append(row)
    return make_log(EVALUATE, rows)


def read_saved_dataset(folder: Path) -> Foreign | None:
    """Return a folder of `Dataset.save_to_disk` as an Arrow table, None for other folders.

    Raises an `InputError` for a folder with several splits, and if a file is missing or damaged.
    """
    if (folder / "dataset_dict.json").is_file():
        splits = sorted(path.name for path in folder.iterdir() if (path / DATASET_STATE).is_file())
        raise InputError(
            f"{folder} contains several splits",
            given=", ".join(splits),
            action=f"Give one of the splits: {folder / splits[0]}." if splits else None,
        )
    state_path = folder / DATASET_STATE
    if not state_path.is_file():
        return None
    import pyarrow as pa

    try:
        state = json.loads(state_path.read_text("utf-8"))
        tables = []
        for data_file in state["_data_files"]:
            # Without its directory, an untrusted name cannot point outside the folder.
            file_name = Path(data_file["filename"]).name
            with pa.memory_map(str(folder / file_name)) as stream:
                tables.append(pa.ipc.open_stream(stream).read_all())
        return pa.concat_tables(tables)
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise InputError(
            f"{folder} is not a complete data set",
            given=str(error)[:MAX_ERROR_CHARACTERS],
            action="Save it again.",
        ) from None
