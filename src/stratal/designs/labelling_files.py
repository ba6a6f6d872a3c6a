"""The folder that goes to the annotators: the sample file, and the table that they fill in."""

from __future__ import annotations

import csv
import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stratal.designs.files import clear_leftovers, flush_to_disk, partial_folder
from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.labels.labels import (
    ANNOTATOR_COLUMN,
    LABEL_COLUMN,
    SAMPLE_TOKEN,
    TO_LABEL_NAME,
    WORKBOOK_NAME,
    Labels,
)
from stratal.labels.workbooks import write_workbook
from stratal.randomness import id_texts
from stratal.tables.files import csv_line
from stratal.tables.spilling import lock_file

# Name of the sample file in a labelling folder.
SAMPLE_NAME = "sample.parquet"
# Labels of earlier rounds, if a table contained them before further rows of it were drawn.
LABELS_NAME = "labels.csv"
# Arguments of the draw, for further rounds.
PLAN_NAME = "plan.json"

# Column names with a meaning in a file of labels, which shown columns cannot have.
RESERVED = (LABEL_COLUMN, ANNOTATOR_COLUMN, "status", SAMPLE_TOKEN)


@dataclass(frozen=True, slots=True)
class LabellingFolder:
    """The paths of the sample and of the table to label, and the number of units to label."""

    sample: Path
    to_label: Path
    n_to_label: int


def require_empty_folder(folder: Path) -> None:
    """Raise an error for a folder that is not empty, so that labels are never overwritten.

    Files of a killed draw are removed first.
    """
    try:
        if folder.is_dir():
            _remove_killed_draw(folder)
        is_file = not folder.is_dir() and (folder.exists() or folder.is_symlink())
        has_entries = folder.is_dir() and any(folder.iterdir())
    except OSError as error:
        raise InputError(
            f"{folder} cannot be read ({error.strerror})", action="Choose another directory."
        ) from None
    if is_file:
        raise InputError(f"{folder} is not a directory", allowed="a new or an empty directory")
    if has_entries:
        raise _not_empty_error(folder)


def _not_empty_error(folder: Path) -> InputError:
    """Return the error for a folder that is not empty."""
    return InputError(
        f"{folder} is not empty",
        allowed="a new or an empty directory",
        action="Choose another directory; labels already there are not overwritten.",
    )


def write_labelling_folder(
    sample: Sample,
    folder: Path,
    plan_json: str | None = None,
    choices: Sequence[str] | None = None,
    labels: Labels | None = None,
) -> LabellingFolder:
    """Write the sample and the table to label to a new or empty folder. After an error, no file is written.

    `plan_json` are the contents of `plan.json`, and `labels` those of earlier rounds for `labels.csv`. With
    `choices`, the table is a workbook that accepts only these labels, or any text if `choices` is empty.
    """
    for name in RESERVED:
        if name in sample.shown or sample.question.id == name:
            action = "Rename the column: this name is reserved for the annotators' answers."
            raise InputError(f"a column cannot be called '{name}'", action=action)
    with create_folder(folder, SAMPLE_NAME) as partial:
        sample.write(partial / SAMPLE_NAME)
        if choices is None:
            table_name = TO_LABEL_NAME
            n_units = write_table_to_label(sample, partial / table_name)
        else:
            table_name = WORKBOOK_NAME
            n_units = write_workbook_to_label(sample, partial / table_name, choices)
        if labels is not None:
            _write_labels(sample, labels, partial / LABELS_NAME)
        if plan_json is not None:
            (partial / PLAN_NAME).write_text(plan_json, encoding="utf-8")
    return LabellingFolder(folder / SAMPLE_NAME, folder / table_name, n_units)


@contextmanager
def create_folder(folder: Path, last_file: str) -> Iterator[Path]:
    """Yield a temporary folder that becomes `folder` (new or empty) at the end of the block without an error.

    If `folder` exists, `last_file` is moved last, so that its presence shows that all files are complete.
    """
    require_empty_folder(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with partial_folder(folder) as partial:
            yield partial
            _move_to_folder(partial, folder, last_file)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
            raise _not_empty_error(folder) from None
        raise InputError(
            f"{folder}: cannot write here ({error.strerror or error})", action="Choose another directory."
        ) from None


def _move_to_folder(partial: Path, folder: Path, last_file: str) -> None:
    """Rename a complete temporary folder to `folder`, or move its files if `folder` exists.

    A folder that exists, such as the current directory, cannot be replaced. `last_file` is moved last.
    """
    flush_to_disk(partial)
    if not folder.is_dir():
        # The system refuses to replace a folder that is not empty, if another command was faster.
        partial.rename(folder)
        flush_to_disk(folder.parent)
        return
    # Windows cannot lock a folder.
    release = None if os.name == "nt" else lock_file(folder)
    if os.name != "nt" and release is None:
        raise InputError(f"{folder}: another command is writing here", action="Choose another --output.")
    moved = []
    try:
        if any(not _is_partial(entry) for entry in folder.iterdir()):
            raise _not_empty_error(folder)
        for name in sorted((entry.name for entry in partial.iterdir()), key=lambda name: name == last_file):
            (partial / name).rename(folder / name)
            moved.append(folder / name)
        flush_to_disk(folder)
    except BaseException:
        # Even if the command is interrupted, no part of the files remains.
        for path in moved:
            path.unlink(missing_ok=True)
        raise
    finally:
        if release is not None:
            release()


def _is_partial(entry: Path) -> bool:
    """Return whether a path is the temporary folder or file of a draw."""
    return entry.name.startswith(".") and entry.name.endswith(".partial")


def _remove_killed_draw(folder: Path) -> None:
    """Remove the files of a killed draw: its partial folder, and files that it had moved out of it."""
    # The sample is moved last. If it is still in a partial folder, other files may have been moved already.
    partial_draws = [
        entry for entry in folder.iterdir() if _is_partial(entry) and (entry / SAMPLE_NAME).exists()
    ]
    # The temporary folder inside an existing folder has the name of this folder (`partial_folder`).
    clear_leftovers(folder / folder.resolve().name)
    # A partial folder that still exists belongs to a running draw.
    if not partial_draws or any(entry.exists() for entry in partial_draws):
        return
    entries = list(folder.iterdir())
    if all(_is_without_labels(entry) for entry in entries):
        for entry in entries:
            entry.unlink()


def _is_without_labels(entry: Path) -> bool:
    """Return whether a file is a plan, or a table to label without any label.

    Other files may contain labels (`labels.csv`, a workbook): they are kept, and the draw is refused.
    """
    return entry.name == PLAN_NAME or (entry.name == TO_LABEL_NAME and _has_no_label(entry))


def _has_no_label(path: Path) -> bool:
    """Return whether a table to label has no label, as `draw` writes it."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            header, *rows = csv.reader(stream)
    except (ValueError, OSError, csv.Error):
        # A file that cannot be read may contain answers, and is therefore not replaced.
        return False
    return bool(header) and header[-1] == LABEL_COLUMN and all(len(row) > 1 and row[-1] == "" for row in rows)


def token_column(sample: Sample) -> dict[str, str]:
    """Return the name and the value of the column that identifies the sample; empty for samples with ids."""
    token = sample.question.sample_token
    if token is None:
        return {}
    return {SAMPLE_TOKEN: token}


def columns_to_fill(sample: Sample) -> tuple[str, ...]:
    """Return the columns that annotators fill in: `label`, or the outcome of each compared model."""
    models = sample.question.models
    if models and not set(models) & {sample.question.id, *sample.shown}:
        return models
    return (LABEL_COLUMN,)


def write_table_to_label(sample: Sample, path: Path) -> int:
    """Write the table that the annotators fill in; return the number of units to label.

    If ids are row numbers, the column `sample_token` identifies the rows. The table has the units of the
    latest round in the order of the sample, which is random across strata. A text that a spreadsheet would
    interpret as a formula gets a leading apostrophe, which is removed when labels are read.
    """
    table = labelling_rows(sample)
    _write_csv(table, path)
    return len(table) - 1


def _write_csv(rows: list[list[Any]], path: Path) -> None:
    """Write rows, of which the first is the header, and flush the file to the disk."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        stream.writelines(map(csv_line, rows))
    flush_to_disk(path)


def _write_labels(sample: Sample, labels: Labels, path: Path) -> None:
    """Write existing labels of units of a sample in the format of a table to label."""
    token = token_column(sample)
    # Different labels of one unit are only valid if they are from different annotators.
    annotators = [] if labels.annotators is None else [labels.annotators]
    columns = zip(labels.ids, *annotators, labels.values, strict=True)
    rows = [[unit, *token.values(), *entries] for unit, *entries in columns]
    header = [sample.question.id, *token, *([ANNOTATOR_COLUMN] if annotators else []), LABEL_COLUMN]
    _write_csv([header, *rows], path)


def write_workbook_to_label(sample: Sample, path: Path, choices: Sequence[str]) -> int:
    """Write the table that the annotators fill in as a workbook; return the number of units to label."""
    table = labelling_rows(sample)
    cells = [["" if entry is None else str(entry) for entry in row] for row in table]
    n_columns = len(table[0])
    n_to_fill = len(columns_to_fill(sample))
    write_workbook(path, cells, choices, columns=range(n_columns - n_to_fill, n_columns))
    flush_to_disk(path)
    return len(table) - 1


def labelling_rows(sample: Sample) -> list[list[Any]]:
    """Return the header and the rows of the latest round: id, shown columns, and the columns to fill in."""
    shown = {name: values for name, values in sample.shown.items() if name != sample.question.id}
    token = token_column(sample)
    to_fill = columns_to_fill(sample)
    empty = [""] * len(to_fill)
    columns = [values.tolist() for values in shown.values()]
    if sample.ids.dtype.kind in "iu":
        ids = sample.ids.tolist()
    else:
        ids = id_texts(sample.ids)
    rows_of_round = np.flatnonzero(sample.round == sample.round.max()).tolist()
    rows = [
        [ids[row], *(column[row] for column in columns), *token.values(), *empty] for row in rows_of_round
    ]
    return [[sample.question.id, *shown, *token, *to_fill], *rows]


def sample_file(path: Path) -> Path:
    """Return the sample file in a folder that `draw` wrote, or the path itself."""
    if (path / SAMPLE_NAME).is_file():
        return path / SAMPLE_NAME
    return path


def find_table_to_label(folder: Path) -> Path | None:
    """Return the table that the annotators fill in, in a folder that `draw` wrote; None without one."""
    paths = (folder / name for name in (TO_LABEL_NAME, WORKBOOK_NAME))
    return next((path for path in paths if path.is_file()), None)
