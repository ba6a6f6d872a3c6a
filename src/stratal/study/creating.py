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

# Folder of images and audio, inside the folder of a study.
MEDIA_FOLDER = "media"

# File with the name of each pseudonym. It is separate from the database, so that it can be deleted.
NAMES_FILE = "annotators.json"

# Largest number of characters of a name, which the page shows in one line.
MAX_NAME_CHARACTERS = 100

# Prefix of pseudonyms, which is followed by a number.
PSEUDONYM_PREFIX = "annotator-"


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


def insert_round(connection: Connection, folder: Path, sample: Sample, number: int) -> int:
    """Write the file of round `number` of a sample, and insert the round and its items; return their number.

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
        "INSERT INTO item (item, id, round, stratum, copies, payload, wanted) VALUES (?, ?, ?, ?, ?, ?, 0)",
        items,
    )
    # All required answers are still wanted. The tuples in `items` have no entry for this.
    connection.execute("UPDATE item SET wanted = copies WHERE round = ?", (number,))
    connection.execute("UPDATE tally SET total = (SELECT sum(copies) FROM item)")
    append_round(connection, number, path.name, digest)
    return len(items)


def item_rows_of_round(
    connection: Connection, sample: Sample, number: int
) -> list[tuple[int, str, int, int, int, str]]:
    """Return number, id, round, stratum, required answers and payload (JSON) of each item of a round."""
    overlap = float(connection.setting("overlap") or 0)
    copies_of_shared_item = int(connection.setting("copies") or 1)
    # In the order in which annotators get the items: random across strata.
    units = [int(unit) for unit in shown_order(sample.ids, sample.seed) if sample.round[unit] == number]
    ids = id_texts(sample.ids)
    payloads = payload_texts(sample, read_form(connection))
    shared_mask = select_shared_items([ids[unit] for unit in units], sample.seed, overlap)
    (first_item,) = connection.one("SELECT coalesce(max(item), 0) + 1 FROM item WHERE round < ?", number)
    items = []
    for item, (unit, is_shared) in enumerate(zip(units, shared_mask, strict=True), start=first_item):
        copies = copies_of_shared_item if is_shared else 1
        items.append((item, ids[unit], number, int(sample.stratum[unit]), copies, payloads[unit]))
    return items


def select_shared_items(ids: list[str], seed: int, overlap: float) -> list[bool]:
    """Return the mask (n,) of the items that several annotators label: a random share `overlap` of them."""
    keys = keys_of_ids(ids, seed, "overlap:")
    shared = set(np.argsort(keys, kind="stable")[: math.ceil(overlap * len(ids))].tolist())
    return [position in shared for position in range(len(ids))]


def payload_texts(sample: Sample, form: Form) -> list[str]:
    """Return the shown columns of each unit (n,) as JSON; refuse columns that would bias annotators."""
    refuse_revealing_columns(sample.shown, sample.proxy_names, sample.question)
    missing = [name for name in form.pair or () if name not in sample.shown]
    if missing:
        raise InputError(
            f"column '{missing[0]}' is not shown", action="Draw the sample with this column (--show)."
        )
    columns = {name: values.tolist() for name, values in sample.shown.items()}
    # Without shown columns, annotators see the id.
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
    annotator_names = [validated_name(name) for name in annotators]
    adjudicator_names = [validated_name(name) for name in adjudicators]
    if not annotator_names:
        raise InputError("a study requires an annotator", action="Give a name (--annotators ann,bob).")
    # An annotator may also be an adjudicator.
    for name in (*annotator_names, *adjudicator_names):
        if annotator_names.count(name) > 1 or adjudicator_names.count(name) > 1:
            raise duplicate_name_error(name)
    if not 0 <= overlap <= 1:
        raise InputError("overlap must be a share of the items", given=overlap, allowed="0 to 1")
    if not (isinstance(copies, int) and copies >= 1):
        raise InputError("copies must be a whole number", given=copies, allowed="1 or more")
    if overlap > 0 and copies > len(annotator_names):
        action = "Name more annotators, or request fewer labels per item: copies= (--overlap SHARE,PEOPLE)."
        names = ", ".join(annotator_names)
        raise InputError(
            f"there are too few annotators for {copies} labels per item", given=names, action=action
        )
    return annotator_names, adjudicator_names


def validated_name(name: str) -> str:
    """Return a person's name without surrounding spaces; refuse an empty, long or unprintable name."""
    name = name.strip()
    if not name or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        allowed = f"1 to {MAX_NAME_CHARACTERS} printable characters"
        raise InputError("the name of an annotator is invalid", given=repr(name[:60]), allowed=allowed)
    return name


def duplicate_name_error(name: str) -> InputError:
    """Return the error for a name that somebody else has."""
    action = "Use different names, such as ann and ann2."
    return InputError("two annotators have the same name", given=repr(name), action=action)


# Setting of a study whose journal has pseudonyms; only the file `NAMES_FILE` has the names.
PSEUDONYMS_SETTING = "pseudonyms"


def add_person(connection: Connection, folder: Path, name: str) -> str:
    """Add an annotator; return the name in the journal, which may be a pseudonym."""
    name = validated_name(name)
    journal_names = people_with_role(connection)
    if name in journal_names:
        raise duplicate_name_error(name)
    if connection.setting(PSEUDONYMS_SETTING) == "yes":
        journal_name = _add_pseudonym(folder, name, journal_names)
    else:
        journal_name = name
    connection.execute("INSERT INTO annotator (name, role) VALUES (?, 'annotator')", (journal_name,))
    append_setting(connection, f"annotator {journal_name}")
    return journal_name


def _add_pseudonym(folder: Path, name: str, pseudonyms: tuple[str, ...]) -> str:
    """Write a name with the next free pseudonym to the file of names; return the pseudonym.

    The file is written before the pseudonym is saved in the database, because a pseudonym without a name
    could never be resolved.
    """
    names = required_names(folder, pseudonyms)
    if name in names.values():
        raise duplicate_name_error(name)
    endings = [pseudonym.removeprefix(PSEUDONYM_PREFIX) for pseudonym in pseudonyms]
    last_number = max((int(ending) for ending in endings if ending.isdecimal()), default=0)
    pseudonym = f"{PSEUDONYM_PREFIX}{last_number + 1}"
    write_names(folder, {**names, pseudonym: name})
    return pseudonym


def people_with_role(connection: Connection, role: str | None = None) -> tuple[str, ...]:
    """Return the sorted names in the journal of all people, or of the annotators or the adjudicators."""
    rows = connection.all("SELECT name FROM annotator WHERE role = coalesce(?, role) ORDER BY name", role)
    return tuple(row["name"] for row in rows)


def require_person(connection: Connection, annotator: str) -> str:
    """Return a person's name unchanged; refuse a name that is not in the journal of the study."""
    names = people_with_role(connection)
    if annotator not in names:
        allowed = suggest_names(str(annotator)[:100], names)
        raise InputError("unknown annotator", given=repr(annotator)[:100], allowed=allowed)
    return annotator


def read_names(folder: Path) -> dict[str, str]:
    """Return the name of each pseudonym; empty if the file of names is missing or damaged."""
    try:
        names = json.loads((folder / NAMES_FILE).read_text(encoding="utf-8"))
        return {str(pseudonym): str(name) for pseudonym, name in names.items()}
    except (OSError, ValueError, AttributeError, RecursionError):
        # Names are only displayed. Without them, pseudonyms are displayed.
        return {}


def required_names(folder: Path, pseudonyms: Iterable[str]) -> dict[str, str]:
    """Return the name of each pseudonym of the study, all of which must have one.

    If the file of names were missing, adding a person would write an incomplete file. A name without a
    pseudonym in the study was written by a killed command, and is left out.

    Raises
    ------
    StudyError
        Of kind `damaged` if the file of names is missing, truncated or incomplete.
    """
    names = read_names(folder)
    unnamed = [pseudonym for pseudonym in pseudonyms if pseudonym not in names]
    if unnamed:
        file = folder / NAMES_FILE
        problem = f"{file}: the file is missing, or does not contain the name of {unnamed[0]!r}"
        action = "Restore the file from a backup (stratal study backup) first."
        raise StudyError(problem, kind="damaged", action=action)
    return {pseudonym: names[pseudonym] for pseudonym in pseudonyms}


def write_names(folder: Path, names: Mapping[str, str]) -> None:
    """Write the name of each pseudonym, completely or not at all, readable only by the owner."""
    with replacing(folder / NAMES_FILE) as partial:
        partial.chmod(PRIVATE_FILE)
        partial.write_text(json.dumps(dict(names), ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
