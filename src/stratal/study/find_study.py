"""Find the study or the sample of a file by comparing its ids with those in nearby folders."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from stratal.designs.labelling_files import SAMPLE_NAME
from stratal.designs.sample import Sample
from stratal.errors import StratalError
from stratal.labels.spreadsheet_ids import restore_spreadsheet_ids
from stratal.randomness import id_texts
from stratal.study.database import DATABASE

# Callers of `folders_with_ids` leave out columns with this mean number of rows per value or more. A file with
# the answers of several models has a row per model and item, but a column with many rows per value, such as a
# class, has no ids.
MAX_ROWS_PER_ITEM = 10

# Largest number of subfolders that are searched, which limits the time in a folder with thousands of them.
_MAX_SUBFOLDERS = 200


def folders_with_ids(
    columns: Mapping[str, Collection[str]], search_folders: Iterable[Path]
) -> dict[Path, str]:
    """Return the studies and sample files whose ids include most values of a column, each with the column.

    If several columns match, it is the one with the most values. The search folders and their subfolders are
    searched. `columns` has the distinct values of each column with fewer than `MAX_ROWS_PER_ITEM` rows per
    value on average (`SmallTable.distinct_texts`).
    """
    # By absolute path, because search folders may overlap.
    folders: dict[Path, Path] = {}
    for search_folder in search_folders:
        with suppress(OSError):
            subfolders = sorted(entry for entry in search_folder.iterdir() if entry.is_dir())
            for folder in (search_folder, *subfolders[:_MAX_SUBFOLDERS]):
                folders.setdefault(folder.resolve(), folder)
    column_by_path: dict[Path, str] = {}
    for folder in folders.values():
        path, study_ids = _read_ids(folder)
        matching_columns = [name for name, values in columns.items() if _are_ids(values, study_ids)]
        if matching_columns:
            column_by_path[path] = max(matching_columns, key=lambda name: len(columns[name]))
    return column_by_path


def _are_ids(values: Collection[str], study_ids: set[str]) -> bool:
    """Return whether most values are ids, if necessary after undoing the changes of a spreadsheet program."""
    if not study_ids:
        return False
    restored_values, _ = restore_spreadsheet_ids(sorted(values), annotators=None, sample_ids=study_ids)
    return 2 * sum(value in study_ids for value in restored_values) > len(values)


def _read_ids(folder: Path) -> tuple[Path, set[str]]:
    """Return the path of the study or the sample file in a folder, and its ids; no ids if it has neither."""
    sample_path = folder / SAMPLE_NAME
    with suppress(StratalError, OSError):
        if (folder / DATABASE).is_file():
            # Imported here, because most folders contain no study.
            from stratal.study.opening import open_study

            with open_study(folder, read_only=True) as study, study.database.read() as connection:
                return folder, {row["id"] for row in connection.all("SELECT id FROM item")}
        if sample_path.is_file():
            return sample_path, set(id_texts(Sample.read(sample_path).ids))
    return folder, set()
