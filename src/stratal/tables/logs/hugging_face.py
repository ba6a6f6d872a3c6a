"""Hugging Face: scores that `evaluate.save` wrote (as of 0.4.6), and folders of `Dataset.save_to_disk` (5.2).

`evaluate` keeps no inputs: a score per unit stands in a list, in the order of the predictions, and the id is
the number of the row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stratal.errors import InputError
from stratal.tables.logs.log import Log, Row, make_log, number_or_none

TOOL = "Hugging Face evaluate"
STATE = "state.json"
"""What every folder of `Dataset.save_to_disk` has."""
_OWN = {"_timestamp", "_git_commit_hash", "_evaluate_version", "_python_version", "_interpreter_path"}


def recognises(found: Any) -> bool:
    """Return whether a JSON document is one of `evaluate.save`.

    Examples
    --------
    >>> recognises({"_evaluate_version": "0.4.6", "f1": [1.0]}), recognises([{"id": 0}])
    (True, False)
    """
    return isinstance(found, Mapping) and "_evaluate_version" in found


def read(found: Mapping[str, Any], source: str) -> Log:
    """Return a log of the document.

    Raises
    ------
    InputError
        Where no score, or not every list, has an entry per unit.

    Examples
    --------
    >>> read({"_evaluate_version": "0.4.6", "f1": [1.0, 0.5]}, "result.json").columns["id"]
    ['1', '2']
    """
    lists = {name: value for name, value in found.items() if isinstance(value, list) and name not in _OWN}
    scored = {name for name, value in lists.items() if None not in map(number_or_none, value)}
    if not scored or not any(lists.values()):
        raise InputError(
            f"{source}: holds no score per unit, only of all together",
            given=", ".join(name for name in found if name not in _OWN)[:200],
            allowed="lists with an entry per prediction",
            action="Save what the metric gives for each: evaluate.save(path, exact_match=[…]).",
        )
    lengths = {name: len(value) for name, value in lists.items()}
    if len(set(lengths.values())) != 1:
        raise InputError(
            f"{source}: lists of different lengths",
            given=", ".join(f"{name}: {count}" for name, count in lengths.items()),
            allowed="an entry per prediction in each",
        )
    rows = [
        Row(
            unit=str(place + 1),
            shared={name: value[place] for name, value in lists.items() if name not in scored},
            scores={name: number_or_none(lists[name][place]) for name in lists if name in scored},
        )
        for place in range(next(iter(lengths.values())))
    ]
    return make_log(TOOL, rows)


def saved_table(folder: Path) -> Any | None:
    """Return a folder of `Dataset.save_to_disk` as an Arrow table, None for any other folder.

    Raises
    ------
    InputError
        For several splits together, and where a file is missing or damaged.

    Examples
    --------
    >>> saved_table(Path("nowhere"))
    """
    if (folder / "dataset_dict.json").is_file():
        splits = sorted(path.name for path in folder.iterdir() if (path / "state.json").is_file())
        raise InputError(
            f"{folder}: holds several splits",
            given=", ".join(splits),
            action=f"Give one of them: {folder / splits[0]}." if splits else None,
        )
    state = folder / STATE
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
            f"{folder}: is not a whole data set", given=str(error)[:200], action="Save it again."
        ) from None
