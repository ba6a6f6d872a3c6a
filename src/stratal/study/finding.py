"""Which study or sample some answers belong to, of those in the folders nearby."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from stratal.designs import Sample
from stratal.designs.handover import SAMPLE_NAME
from stratal.errors import StratalError
from stratal.labels.damaged_ids import matched
from stratal.randomness import id_texts
from stratal.study.database import DATABASE
from stratal.study.opening import open_study
from stratal.study.team import people

_MOST = 200
"""Folders that are looked into."""


def homes_of(ids: Collection[str], places: Iterable[Path]) -> list[Path]:
    """Return the studies and sample files that hold most of some ids, in the places and one folder below.

    Parameters
    ----------
    ids : collection of str
    places : iterable of Path

    Examples
    --------
    >>> homes_of({"q7"}, [Path("nowhere")])
    []
    """
    found: list[Path] = []
    for home, known in _known(places):
        if _most_are(ids, known) and not any(home.resolve() == other.resolve() for other in found):
            found.append(home)
    return found


def homes_by_values(columns: Mapping[str, Collection[str]], places: Iterable[Path]) -> dict[Path, str]:
    """Return the studies and sample files whose ids most entries of a column are, each with that column.

    Of several columns it is the one with most entries.

    Parameters
    ----------
    columns : mapping of column to collection of str
    places : iterable of Path

    Examples
    --------
    >>> homes_by_values({"Ticket Nr.": {"q7"}}, [Path("nowhere")])
    {}
    """
    found: dict[Path, str] = {}
    for home, known in _known(places):
        fitting = [name for name, ids in columns.items() if _most_are(ids, known)]
        name = max(fitting, key=lambda name: len(columns[name]), default=None)
        if name is not None and not any(home.resolve() == other.resolve() for other in found):
            found[home] = name
    return found


def _known(places: Iterable[Path]) -> Iterator[tuple[Path, set[str]]]:
    """Yield the studies and sample files of places and of the folders in them, each with its ids."""
    looked_at: dict[Path, None] = {}
    for place in places:
        with suppress(OSError):
            below = sorted(entry for entry in place.iterdir() if entry.is_dir())[:_MOST]
            looked_at |= dict.fromkeys((place, *below))
    for folder in looked_at:
        if (folder / DATABASE).is_file():
            yield folder, _of_study(folder)
        elif (folder / SAMPLE_NAME).is_file():
            yield folder / SAMPLE_NAME, _of_sample(folder / SAMPLE_NAME)


def _most_are(ids: Collection[str], known: Collection[str]) -> bool:
    """Return whether most of some ids are known, as they are or as a spreadsheet changed them."""
    right, _ = matched(sorted(ids), None, known)
    return 2 * sum(name in known for name in right) > len(ids)


def people_of(folder: Path) -> tuple[str, ...]:
    """Return the annotators of a study.

    Examples
    --------
    >>> people_of(Path("nowhere"))
    Traceback (most recent call last):
    stratal.study.faults.StudyError: nowhere: there is no study here...
    """
    with open_study(folder, reading=True) as study, study.database.read() as rows:
        return people(rows)


def _of_study(folder: Path) -> set[str]:
    with (
        suppress(StratalError, OSError),
        open_study(folder, reading=True) as study,
        study.database.read() as rows,
    ):
        return {row["id"] for row in rows.execute("SELECT id FROM item")}
    return set()


def _of_sample(path: Path) -> set[str]:
    with suppress(StratalError, OSError):
        return set(id_texts(Sample.read(path).ids))
    return set()
