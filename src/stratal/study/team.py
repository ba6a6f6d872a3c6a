"""Who labels: names or pseudonyms, who decides, whose labels are set aside."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from stratal.errors import InputError, near_names
from stratal.study.journal import Transaction, append_setting, keep_setting, setting

NAMES = "annotators.json"
LONGEST_NAME = 100
PSEUDONYM = "annotator-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """Who labels, and how much of the sample more than one of them.

    Parameters
    ----------
    annotators, adjudicators : tuple of str
        Where no adjudicators are named, every annotator may decide disagreements.
    overlap : float
        Share of the items that `copies` people label, for agreement.
    copies : int
    names : mapping of pseudonym to name
        Empty unless pseudonyms stand in the journal.

    Examples
    --------
    >>> Team.of(["ann", "bob"], overlap=0.2).copies
    2
    """

    annotators: tuple[str, ...]
    adjudicators: tuple[str, ...] = ()
    overlap: float = 0.0
    copies: int = 2
    names: Mapping[str, str] | None = None

    @classmethod
    def of(
        cls,
        annotators: Iterable[str],
        adjudicators: Iterable[str] = (),
        *,
        overlap: float = 0.0,
        copies: int = 2,
        pseudonyms: bool = False,
    ) -> Team:
        """Return a team, checked; with pseudonyms in the place of names if wanted."""
        people, judges = ([name.strip() for name in group] for group in (annotators, adjudicators))
        if not people:
            raise InputError("a study needs an annotator", action="Give a name (--annotators ann,bob).")
        for name in (*people, *judges):
            checked_name(name)
            if people.count(name) > 1 or judges.count(name) > 1:
                raise InputError(
                    "two annotators have the same name",
                    given=repr(name),
                    action="Tell them apart, such as ann and ann2.",
                )
        if not 0 <= overlap <= 1:
            raise InputError("overlap is a share of the items", given=overlap, allowed="0 to 1")
        if not (isinstance(copies, int) and copies >= 1):
            raise InputError("copies must be a whole number", given=copies, allowed="1 or more")
        if overlap > 0 and copies > len(people):
            raise InputError(
                f"{copies} people cannot label one item", given=", ".join(people),
                action="Name more annotators, or ask for fewer copies= (--copies).",
            )  # fmt: skip
        known: dict[str, str] = {}
        if pseudonyms:
            everyone = [*people, *(name for name in judges if name not in people)]
            known = {f"{PSEUDONYM}{number}": name for number, name in enumerate(everyone, start=1)}
            code = {name: pseudonym for pseudonym, name in known.items()}
            people, judges = [code[name] for name in people], [code[name] for name in judges]
        return cls(
            annotators=tuple(people), adjudicators=tuple(judges), overlap=overlap, copies=copies, names=known
        )


def checked_name(name: str) -> str:
    """Return an annotator's name, refusing one that could not be written in a table or a link.

    Examples
    --------
    >>> checked_name("ann")
    'ann'
    """
    if not name or len(name) > LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise InputError(
            "an annotator needs a name", given=repr(name[:60]), allowed=f"1 to {LONGEST_NAME} characters"
        )
    return name


def add_people(transaction: Transaction, team: Team) -> None:
    """Add a team's annotators and adjudicators.

    Examples
    --------
    >>> add_people.__name__
    'add_people'
    """
    for name in team.annotators:
        transaction.run("INSERT INTO annotator (name, role) VALUES (?, 'annotator')", name)
    for name in team.adjudicators:
        transaction.run(
            "INSERT INTO annotator (name, role) VALUES (?, 'adjudicator') ON CONFLICT DO NOTHING", name
        )
    keep_setting(
        transaction.connection, "adjudicators", json.dumps(list(team.adjudicators), ensure_ascii=False)
    )


def add_person(transaction: Transaction, folder: Path, name: str) -> str:
    """Let one more person label; return the name that stands in the journal.

    Examples
    --------
    >>> add_person.__name__
    'add_person'
    """
    known_names = read_names(folder)
    name = checked_name(name.strip())
    if name in known_names.values() or transaction.one("SELECT 1 FROM annotator WHERE name = ?", name):
        raise InputError(
            "two annotators have the same name",
            given=repr(name),
            action="Tell them apart, such as ann and ann2.",
        )
    code = f"{PSEUDONYM}{len(known_names) + 1}" if known_names else name
    transaction.run("INSERT INTO annotator (name, role) VALUES (?, 'annotator')", code)
    append_setting(transaction, f"annotator {code}")
    if known_names:
        write_names(folder, {**known_names, code: name})
    return code


def people(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Return who labels, in the order of their names.

    Examples
    --------
    >>> people.__name__
    'people'
    """
    rows = connection.execute("SELECT name FROM annotator WHERE role = 'annotator' ORDER BY name")
    return tuple(row["name"] for row in rows)


def known(connection: sqlite3.Connection, annotator: str) -> str:
    """Return an annotator's name, refusing one that is not of this study.

    Examples
    --------
    >>> known.__name__
    'known'
    """
    rows = connection.execute("SELECT name FROM annotator ORDER BY name").fetchall()
    names = [row["name"] for row in rows]
    if annotator not in names:
        raise InputError(
            "no such annotator", given=repr(annotator)[:100], allowed=near_names(str(annotator)[:100], names)
        )
    return annotator


def gets_items(connection: sqlite3.Connection, annotator: str) -> bool:
    """Return whether an annotator is given items: not once the interval is narrow enough, nor when set aside.

    Examples
    --------
    >>> gets_items.__name__
    'gets_items'
    """
    row = connection.execute("SELECT role, aside FROM annotator WHERE name = ?", (annotator,)).fetchone()
    return row["role"] == "annotator" and not row["aside"] and setting(connection, "enough") != "yes"


def read_names(folder: Path) -> dict[str, str]:
    """Return pseudonym → name, empty where the file of names is not there.

    Examples
    --------
    >>> read_names(Path("nowhere"))
    {}
    """
    try:
        return dict(json.loads((folder / NAMES).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def write_names(folder: Path, names: Mapping[str, str]) -> None:
    """Write who is behind each pseudonym, readable by the owner alone.

    Examples
    --------
    >>> write_names.__name__
    'write_names'
    """
    path = folder / NAMES
    path.touch(mode=0o600)
    path.write_text(json.dumps(dict(names), ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
