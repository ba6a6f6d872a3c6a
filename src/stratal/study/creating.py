"""Create a study: its folder, its annotators, and the items of its sample's rounds."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from stratal.designs.files import replacing
from stratal.designs.sample import Sample
from stratal.errors import InputError, suggest_names
from stratal.question.decoding import refuse_ambiguous_choices
from stratal.question.roles import refuse_revealing_columns
from stratal.randomness import id_texts, keys_of_ids, shown_order
from stratal.report.text import json_value
from stratal.study.database import PRIVATE_FILE, Connection, StudyError
from stratal.study.items import read_form
from stratal.study.journal import append_round, append_setting
from stratal.study.question import CHOICES, Form
from stratal.tables.untrusted import file_inside

# Folder of images and audio in the folder of a study.
MEDIA = "media"

# File of the names of pseudonyms, separate from the database, so that it can be deleted.
NAMES = "annotators.json"

# Largest number of characters of a name, which the page shows in one line.
MAX_NAME_CHARACTERS = 100

# Prefix of pseudonyms, which is followed by a number.
PSEUDONYM = "annotator-"


def refuse_ambiguous_form(sample: Sample, form: Form) -> None:
    """Refuse a form with choices that may be both classes of the model and right or wrong."""
    answer = sample.question.answer
    if answer is None or answer not in sample.groups:
        return
    answers = set(sample.groups[answer].tolist())
    for question in form.questions:
        if question.kind == CHOICES and question.is_numeric:
            choices = [choice.name for choice in question.choices if choice.value is not None]
            refuse_ambiguous_choices(sample.question, choices, answers)


def round_name(number: int) -> str:
    """Return the name of the file of a round."""
    return f"sample-{number}.parquet"


def round_file(folder: Path, number: int, name: str) -> Path:
    """Return the path of the file of a round, given its name in the database of the study.

    Raises
    ------
    StudyError
        Kind `damaged`, for another name than that of the round, and for a link to another folder.
    """
    action = "Restore a backup (stratal study backup), and do not trust the source of this study."
    if name != round_name(number):
        problem = f"{folder}: the file of round {number} has an unexpected name"
        stored_name = repr(name)[:100]
        raise StudyError(
            problem, kind="damaged", given=stored_name, allowed=round_name(number), action=action
        )
    try:
        return file_inside(folder, name)
    except InputError as error:
        raise StudyError(error.what, kind="damaged", action=action) from None


def require_next_round(connection: Connection, number: int) -> None:
    """Refuse a round that does not follow the last one, in the transaction that would add it."""
    last = int(connection.one("SELECT coalesce(max(number), 0) FROM round")[0])
    if number == last + 1:
        return
    if number <= last:
        problem = f"another round was drawn meanwhile, so round {number} was not saved"
        action = "Check `stratal study status`, and extend again if more items are needed."
        raise StudyError(problem, kind="refused", action=action)
    raise InputError("rounds must be numbered without gaps", given=f"round {number}", allowed=str(last + 1))


def add_items(connection: Connection, folder: Path, sample: Sample, number: int) -> int:
    """Add round `number` of a sample to a study, with its file; return the number of items.

    The file of an existing round is never overwritten. A file of this name without a round was written by a
    command that did not finish.
    """
    require_next_round(connection, number)
    path = sample.write(folder / round_name(number))
    path.chmod(PRIVATE_FILE)
    digest = digest_of(path)
    items = item_rows_of_round(connection, sample, number)
    connection.execute("INSERT INTO round VALUES (?, ?, ?, ?)", (number, path.name, digest, len(items)))
    connection.executemany(
        "INSERT INTO item (item, id, round, stratum, copies, payload, wanted) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(*item, item[4]) for item in items],
    )
    connection.execute("UPDATE tally SET total = (SELECT sum(copies) FROM item)")
    append_round(connection, number, path.name, digest)
    return len(items)


def item_rows_of_round(
    connection: Connection, sample: Sample, number: int
) -> list[tuple[int, str, int, int, int, str]]:
    """Return the rows of a round's items: number, id, round, stratum, required answers and payload (JSON)."""
    share = float(connection.setting("overlap") or 0)
    copies = int(connection.setting("copies") or 1)
    # In the order in which they are shown: random across strata.
    rows = [int(row) for row in shown_order(sample.ids, sample.seed) if sample.round[row] == number]
    texts = id_texts(sample.ids)
    shown = payloads(sample, read_form(connection))
    shared_mask = select_shared_items([texts[row] for row in rows], sample.seed, share)
    start = connection.one("SELECT coalesce(max(item), 0) + 1 FROM item WHERE round < ?", number)[0]
    return [
        (item, texts[row], number, int(sample.stratum[row]), copies if is_shared else 1, shown[row])
        for item, (row, is_shared) in enumerate(zip(rows, shared_mask, strict=True), start=start)
    ]


def select_shared_items(texts: list[str], seed: int, share: float) -> list[bool]:
    """Return which items several annotators label: a random share of them, determined by the seed."""
    keys = keys_of_ids(texts, seed, "overlap:")
    shared = set(np.argsort(keys, kind="stable")[: math.ceil(share * len(texts))].tolist())
    return [position in shared for position in range(len(texts))]


def payloads(sample: Sample, form: Form) -> list[str]:
    """Return the columns that annotators see of each unit, as JSON; refuse columns that would bias them."""
    refuse_revealing_columns(sample.shown, sample.proxy_names, sample.question)
    missing = [name for name in form.pair or () if name not in sample.shown]
    if missing:
        raise InputError(
            f"column '{missing[0]}' is not shown", action="Draw the sample with this column (--show)."
        )
    columns = {name: values.tolist() for name, values in sample.shown.items()}
    columns = columns or {sample.question.id: id_texts(sample.ids)}
    units = zip(*columns.values(), strict=True)
    # NaN and infinity become null, because they are not valid JSON.
    return [
        json.dumps(json_value(dict(zip(columns, unit, strict=True))), ensure_ascii=False, default=str)
        for unit in units
    ]


def digest_of(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def validated_team(
    annotators: Iterable[str], adjudicators: Iterable[str], overlap: float, copies: int
) -> tuple[list[str], list[str]]:
    """Return the names of annotators and adjudicators, after checks of names, overlap and copies."""
    people = [validated_name(name) for name in annotators]
    deciding_people = [validated_name(name) for name in adjudicators]
    if not people:
        raise InputError("a study requires an annotator", action="Give a name (--annotators ann,bob).")
    for name in (*people, *deciding_people):
        refuse_duplicate_name(name, people.count(name) > 1 or deciding_people.count(name) > 1)
    if not 0 <= overlap <= 1:
        raise InputError("overlap must be a share of the items", given=overlap, allowed="0 to 1")
    if not (isinstance(copies, int) and copies >= 1):
        raise InputError("copies must be a whole number", given=copies, allowed="1 or more")
    if overlap > 0 and copies > len(people):
        action = "Name more annotators, or request fewer labels per item: copies= (--overlap SHARE,PEOPLE)."
        names = ", ".join(people)
        raise InputError(
            f"there are too few annotators for {copies} labels per item", given=names, action=action
        )
    return people, deciding_people


def validated_name(name: str) -> str:
    """Return an annotator's name, refusing one that could not be written in a table or a link."""
    name = name.strip()
    if not name or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        allowed = f"1 to {MAX_NAME_CHARACTERS} printable characters"
        raise InputError("the name of an annotator is invalid", given=repr(name[:60]), allowed=allowed)
    return name


def refuse_duplicate_name(name: str, is_duplicate: bool) -> None:
    """Refuse a name that somebody else has."""
    if is_duplicate:
        action = "Use different names, such as ann and ann2."
        raise InputError("two annotators have the same name", given=repr(name), action=action)


# Setting of a study whose journal has pseudonyms; only the file `NAMES` has the names.
PSEUDONYMS = "pseudonyms"


def add_person(connection: Connection, folder: Path, name: str) -> str:
    """Add an annotator; return the name in the journal, which may be a pseudonym."""
    name = validated_name(name)
    people = annotator_names_in_role(connection)
    if connection.setting(PSEUDONYMS) != "yes":
        refuse_duplicate_name(name, name in people)
        pseudonym = name
    else:
        names = required_names(folder, people)
        refuse_duplicate_name(name, name in names.values() or name in people)
        numbers = [pseudonym.removeprefix(PSEUDONYM) for pseudonym in people]
        pseudonym = f"{PSEUDONYM}{1 + max((int(text) for text in numbers if text.isdecimal()), default=0)}"
        # Before the pseudonym is saved, because a pseudonym without a name could never be resolved.
        write_names(folder, {**names, pseudonym: name})
    connection.execute("INSERT INTO annotator (name, role) VALUES (?, 'annotator')", (pseudonym,))
    append_setting(connection, f"annotator {pseudonym}")
    return pseudonym


def annotator_names_in_role(connection: Connection, role: str | None = None) -> tuple[str, ...]:
    """Return the sorted names of all people, or of those with a role."""
    rows = connection.all("SELECT name FROM annotator WHERE role = coalesce(?, role) ORDER BY name", role)
    return tuple(row["name"] for row in rows)


def require_person(connection: Connection, annotator: str) -> str:
    """Return an annotator's name unchanged, refusing a name that is not in the study."""
    names = annotator_names_in_role(connection)
    if annotator not in names:
        allowed = suggest_names(str(annotator)[:100], names)
        raise InputError("unknown annotator", given=repr(annotator)[:100], allowed=allowed)
    return annotator


def read_names(folder: Path) -> dict[str, str]:
    """Return the name of each pseudonym; empty if the file of names is missing or damaged."""
    try:
        names = json.loads((folder / NAMES).read_text(encoding="utf-8"))
        return {str(pseudonym): str(name) for pseudonym, name in names.items()}
    except (OSError, ValueError, AttributeError, RecursionError):
        # Names are only displayed. Without them, pseudonyms are displayed.
        return {}


def required_names(folder: Path, people: Iterable[str]) -> dict[str, str]:
    """Return the name of each pseudonym, all of which must have one.

    Otherwise the next name would be written to the journal. A name without a pseudonym in the study is left
    over from a killed command, and is dropped.

    Raises
    ------
    StudyError
        Of kind `damaged` if the file of names is missing, cut, or lacks somebody.
    """
    names = read_names(folder)
    lacking = [pseudonym for pseudonym in people if pseudonym not in names]
    if lacking:
        problem = f"{folder / NAMES}: the file is missing, or does not contain the name of {lacking[0]!r}"
        action = "Restore the file from a backup (stratal study backup) first."
        raise StudyError(problem, kind="damaged", action=action)
    return {pseudonym: names[pseudonym] for pseudonym in people}


def write_names(folder: Path, names: Mapping[str, str]) -> None:
    """Write the name of each pseudonym, completely or not at all, readable only by the owner."""
    with replacing(folder / NAMES) as partial:
        partial.chmod(PRIVATE_FILE)
        partial.write_text(json.dumps(dict(names), ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
