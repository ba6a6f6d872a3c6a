"""To which study or sample a file belongs: the ids that lie in the folders nearby, without opening more."""

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

# Maximum number of rows per item, one for each model.
MAX_ROWS_PER_ITEM = 10

# Largest number of folders that are searched, for the time in a folder of thousands.
_MAX_FOLDERS = 200


def folders_with_ids(columns: Mapping[str, Collection[str]], places: Iterable[Path]) -> dict[Path, str]:
    """Return the studies and sample files that contain most ids of a column, each with that column.

    Of several columns, it is the one with the most ids. `places` and the folders in them are searched.
    """
    folders: dict[Path, Path] = {}
    for place in places:
        with suppress(OSError):
            below = sorted(entry for entry in place.iterdir() if entry.is_dir())[:_MAX_FOLDERS]
            for folder in (place, *below):
                folders.setdefault(folder.resolve(), folder)
    column_of_folder: dict[Path, str] = {}
    for path, known_ids in map(_ids_of, folders.values()):
        if not known_ids:
            continue
        # Also in the spelling of a spreadsheet, which may have changed them.
        matches = {
            name: sum(id_ in known_ids for id_ in restore_spreadsheet_ids(sorted(ids), None, known_ids)[0])
            for name, ids in columns.items()
        }
        matching_columns = [name for name, ids in columns.items() if 2 * matches[name] > len(ids)]
        if matching_columns:
            column_of_folder[path] = max(matching_columns, key=lambda name: len(columns[name]))
    return column_of_folder


def _ids_of(folder: Path) -> tuple[Path, set[str]]:
    """Return the study or the sample file of a folder with its ids; no ids if it contains neither."""
    path = folder / SAMPLE_NAME
    with suppress(StratalError, OSError):
        if (folder / DATABASE).is_file():
            # Most folders have no study, which only this import can open.
            from stratal.study.opening import open_study

            with open_study(folder, read_only=True) as study, study.database.read() as rows:
                return folder, {row["id"] for row in rows.all("SELECT id FROM item")}
        if path.is_file():
            return path, set(id_texts(Sample.read(path).ids))
    return folder, set()
