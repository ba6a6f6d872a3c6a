"""Scores of `evaluate.save` of Hugging Face (as of 0.4.6), and folders of `Dataset.save_to_disk` (5.2).

`evaluate` stores no inputs: it has a list of scores in the order of the predictions, and the id is the row
number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from stratal.errors import InputError
from stratal.protocols import Foreign
from stratal.tables.logs.log import (
    EVALUATE,
    Log,
    LogRow,
    is_empty_output,
    make_log,
    score_numbers,
)

# File in every folder of `Dataset.save_to_disk`.
DATASET_STATE = "state.json"
# Name of the answers in files of `evaluate`.
_PREDICTIONS = "predictions"
# Entries of a file of `evaluate` that are not lists of scores.
_EVALUATE_METADATA = {
    "_timestamp",
    "_git_commit_hash",
    "_evaluate_version",
    "_python_version",
    "_interpreter_path",
}


def read_evaluate(document: Mapping[str, object], source: str) -> Log:
    """Return the log of scores that `evaluate.save` wrote."""
    lists = {
        name: value
        for name, value in document.items()
        if isinstance(value, list) and name not in _EVALUATE_METADATA
    }
    numbers = {name: score_numbers(value) for name, value in lists.items() if name != _PREDICTIONS}
    score_names = {name for name, value in numbers.items() if value and set(value) != {None}}
    if not score_names:
        raise InputError(
            f"{source} contains no score per unit, only scores for all units together",
            allowed="lists with an entry per prediction",
            action="Save the value of the metric for each prediction: evaluate.save(path, exact_match=[…]).",
        )
    lengths = {name: len(value) for name, value in lists.items()}
    if len(set(lengths.values())) != 1:
        raise InputError(
            f"{source}: lists of different lengths", given=lengths, allowed="lists of the same length"
        )
    entries = (dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True))
    rows = [
        LogRow(
            unit=str(number),
            unit_columns={name: value for name, value in entry.items() if name not in score_names},
            scores={name: value for name, value in entry.items() if name in score_names},
            failed=_PREDICTIONS in entry and is_empty_output(entry[_PREDICTIONS]),
        )
        for number, entry in enumerate(entries, start=1)
    ]
    return make_log(EVALUATE, rows)


def read_saved_dataset(folder: Path) -> Foreign | None:
    """Return a folder of `Dataset.save_to_disk` as an Arrow table, None for other folders.

    Raises
    ------
    InputError
        For a folder with several splits, and if a file is missing or damaged.
    """
    if (folder / "dataset_dict.json").is_file():
        splits = sorted(path.name for path in folder.iterdir() if (path / DATASET_STATE).is_file())
        raise InputError(
            f"{folder} contains several splits",
            given=", ".join(splits),
            action=f"Give one of the splits: {folder / splits[0]}." if splits else None,
        )
    state = folder / DATASET_STATE
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
            f"{folder} is not a complete data set", given=str(error)[:200], action="Save it again."
        ) from None
