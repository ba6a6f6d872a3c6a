"""Who labels: names or pseudonyms, who decides, whose labels are set aside."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from stratal.errors import InputError, near_names
from stratal.study.database import Connection
from stratal.study.journal import append_setting

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
    adjudicators: tuple[str, ...]
    overlap: float
    copies: int
    names: Mapping[str, str]

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
        people, judges = ([checked_name(name) for name in group] for group in (annotators, adjudicators))
        if not people:
            raise InputError("a study needs an annotator", action="Give a name (--annotators ann,bob).")
        for name in (*people, *judges):
            refuse_double(name, people.count(name) > 1 or judges.count(name) > 1)
        if not 0 <= overlap <= 1:
            raise InputError("overlap is a share of the items", given=overlap, allowed="0 to 1")
        if not (isinstance(copies, int) and copies >= 1):
            raise InputError("copies must be a whole number", given=copies, allowed="1 or more")
        if overlap > 0 and copies > len(people):
            action = "Name more annotators, or ask for fewer copies= (--overlap SHARE,PEOPLE)."
            given = ", ".join(people)
            raise InputError(f"{copies} people cannot label one item", given=given, action=action)
        everyone = list(dict.fromkeys((*people, *judges)))
        code = {name: f"{PSEUDONYM}{k}" if pseudonyms else name for k, name in enumerate(everyone, start=1)}
        return cls(
            annotators=tuple(code[name] for name in people),
            adjudicators=tuple(code[name] for name in judges),
            overlap=overlap,
            copies=copies,
            names={pseudonym: name for name, pseudonym in code.items()} if pseudonyms else {},
        )


def checked_name(name: str) -> str:
    """Return an annotator's name, refusing one that could not be written in a table or a link."""
    name = name.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        allowed = f"1 to {LONGEST_NAME} characters"
        raise InputError("an annotator needs a name", given=repr(name[:60]), allowed=allowed)
    return name


def refuse_double(name: str, double: bool) -> None:
    """Refuse a name that somebody else has."""
    if double:
        action = "Tell them apart, such as ann and ann2."
        raise InputError("two annotators have the same name", given=repr(name), action=action)


def add_people(connection: Connection, team: Team) -> None:
    """Add a team's annotators and adjudicators."""
    for role, names in (("annotator", team.annotators), ("adjudicator", team.adjudicators)):
        connection.executemany(
            "INSERT INTO annotator (name, role) VALUES (?, ?) ON CONFLICT DO NOTHING",
            ((name, role) for name in names),
        )
    connection.keep(adjudicators=json.dumps(list(team.adjudicators), ensure_ascii=False))


def add_person(connection: Connection, folder: Path, name: str) -> str:
    """Let one more person label; return the name that stands in the journal."""
    known_names, name = read_names(folder), checked_name(name)
    refuse_double(name, name in known_names.values() or name in everybody(connection))
    code = f"{PSEUDONYM}{len(known_names) + 1}" if known_names else name
    connection.execute("INSERT INTO annotator (name, role) VALUES (?, 'annotator')", (code,))
    append_setting(connection, f"annotator {code}")
    if known_names:
        write_names(folder, {**known_names, code: name})
    return code


def everybody(connection: Connection, role: str | None = None) -> tuple[str, ...]:
    """Return the names of a role, or all, in their order."""
    rows = connection.all("SELECT name FROM annotator WHERE role = coalesce(?, role) ORDER BY name", role)
    return tuple(row["name"] for row in rows)


def known(connection: Connection, annotator: str) -> str:
    """Return an annotator's name, refusing one that is not of this study."""
    names = everybody(connection)
    if annotator not in names:
        allowed = near_names(str(annotator)[:100], names)
        raise InputError("no such annotator", given=repr(annotator)[:100], allowed=allowed)
    return annotator


def read_names(folder: Path) -> dict[str, str]:
    """Return pseudonym → name, empty where the file of names is not there."""
    try:
        return dict(json.loads((folder / NAMES).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def write_names(folder: Path, names: Mapping[str, str]) -> None:
    """Write who is behind each pseudonym, readable by the owner alone."""
    path = folder / NAMES
    path.touch(mode=0o600)
    path.write_text(json.dumps(dict(names), ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
