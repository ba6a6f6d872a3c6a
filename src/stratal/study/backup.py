"""A copy of a study as it is at one moment, while people go on labelling."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from stratal.study.checking import Check, check_study
from stratal.study.creating import MEDIA, new_folder
from stratal.study.database import DATABASE
from stratal.study.faults import plainly
from stratal.study.journal import HEAD, PAGE_SECRET
from stratal.study.opening import open_study
from stratal.study.study import Study
from stratal.study.team import NAMES


def backup_study(study: Study, folder: str | Path) -> Check:
    """Copy a study into a new folder, whole or not at all, and check the copy.

    The copy has no links: whoever reads a backup cannot label as somebody else. Serving it makes new ones.

    Parameters
    ----------
    study : Study
        A server may go on writing to it.
    folder : str or Path
        New or empty; a study that `open_study` opens.

    Returns
    -------
    Check
        Of the copy.

    Examples
    --------
    >>> backup_study.__name__
    'backup_study'
    """
    with new_folder(Path(folder)) as partial:
        _copy(study, partial)
        with open_study(partial, clock=study.clock) as copied:
            return check_study(copied)


def _copy(study: Study, partial: Path) -> None:
    """Copy the database as it is at one moment, then the files that it names, which never change."""
    # First: the lines that it tells of are saved, and the check of the copy misses them where they are lost.
    if (study.folder / HEAD).is_file():
        shutil.copy2(study.folder / HEAD, partial / HEAD)
    with plainly(partial):
        target = sqlite3.connect(partial / DATABASE)
        try:
            with study.database.read() as source:
                source.backup(target)
            target.row_factory = sqlite3.Row
            # secure_delete overwrites the secret, which would stay in the file's free space otherwise.
            target.execute("PRAGMA secure_delete = ON")
            target.execute("DELETE FROM setting WHERE name = ?", (PAGE_SECRET,))
            target.commit()
            files = [row["file"] for row in target.execute("SELECT file FROM round")]
        finally:
            target.close()
    for name in (*files, NAMES):
        if (study.folder / name).is_file():
            shutil.copy2(study.folder / name, partial / name)
    if study.media.is_dir():
        shutil.copytree(study.media, partial / MEDIA)
