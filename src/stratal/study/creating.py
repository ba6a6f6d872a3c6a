"""What a study is made of: its folder, its annotators, and the items of its sample's rounds."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from stratal.designs.sample import Sample
from stratal.errors import InputError, near_names
from stratal.randomness import id_texts, keys_of_ids, shown_order
from stratal.report.text import plain
from stratal.study.database import Connection
from stratal.study.items import form_of
from stratal.study.journal import append_round, append_setting
from stratal.study.question import Form

MEDIA = "media"
NAMES = "annotators.json"
LONGEST_NAME = 100
PSEUDONYM = "annotator-"


def add_items(connection: Connection, folder: Path, sample: Sample, number: int) -> int:
    """Add the sample's round `number` to a study, its file next to the database; return how many items."""
    path = sample.write(folder / f"sample-{number}.parquet")
    digest, items = digest_of(path), drawn_items(connection, sample, number)
    connection.execute("INSERT INTO round VALUES (?, ?, ?, ?)", (number, path.name, digest, len(items)))
    connection.executemany(
        "INSERT INTO item (item, id, round, stratum, copies, payload, wanted) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(*item, item[4]) for item in items],
    )
    connection.execute("UPDATE tally SET total = (SELECT sum(copies) FROM item)")
    append_round(connection, number, path.name, digest)
    return len(items)


def drawn_items(
    connection: Connection, sample: Sample, number: int
) -> list[tuple[int, str, int, int, int, str]]:
    """Return a round's items: number, id, round, stratum, how many people label it, what they see."""
    share, copies = float(connection.setting("overlap") or 0), int(connection.setting("copies") or 1)
    # In the order in which they are shown: random across strata.
    rows = [int(row) for row in shown_order(sample.ids, sample.seed) if sample.round[row] == number]
    texts, shown = id_texts(sample.ids), payloads(sample, form_of(connection))
    several = overlapping([texts[row] for row in rows], sample.seed, share)
    start = connection.one("SELECT coalesce(max(item), 0) + 1 FROM item WHERE round < ?", number)[0]
    return [
        (place, texts[row], number, int(sample.stratum[row]), copies if many else 1, shown[row])
        for place, (row, many) in enumerate(zip(rows, several, strict=True), start=start)
    ]


def overlapping(texts: list[str], seed: int, share: float) -> list[bool]:
    """Return which items several people label: a share of them, at random, the same whenever it is asked.

    Examples
    --------
    >>> sum(overlapping(["a", "b", "c", "d"], 7, 0.5))
    2
    """
    keys = keys_of_ids(texts, seed, "overlap:")
    chosen = set(np.argsort(keys, kind="stable")[: math.ceil(share * len(texts))].tolist())
    return [place in chosen for place in range(len(texts))]


def payloads(sample: Sample, form: Form) -> list[str]:
    """Return what annotators see of each unit, as JSON; refuses what would lead them."""
    leading = {*sample.proxy_names, *([sample.predicted] if sample.predicted else [])} & set(sample.shown)
    if leading:
        allowed = "shown columns that are neither a proxy nor the model's answer"
        raise InputError(f"column '{min(leading)}' would lead the annotators", allowed=allowed)
    missing = [name for name in form.pair or () if name not in sample.shown]
    if missing:
        raise InputError(f"column '{missing[0]}' is not shown", action="Draw the sample with it (--show).")
    columns = {name: values.tolist() for name, values in sample.shown.items()}
    columns = columns or {sample.id_name: id_texts(sample.ids)}
    units = zip(*columns.values(), strict=True)
    # What is not a number is null, which every page can read.
    return [
        json.dumps(plain(dict(zip(columns, unit, strict=True))), ensure_ascii=False, default=str)
        for unit in units
    ]


def digest_of(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def checked_team(
    annotators: Iterable[str], adjudicators: Iterable[str], overlap: float, copies: int
) -> tuple[list[str], list[str]]:
    """Return the names of annotators and adjudicators, refusing who or what does not fit together.

    Examples
    --------
    >>> checked_team(["ann ", "bob"], [], 0.2, 2)
    (['ann', 'bob'], [])
    """
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
    return people, judges


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
