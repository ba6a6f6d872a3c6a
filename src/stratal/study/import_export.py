"""Labelling elsewhere: items that go out to an annotation tool or a page in one file, and their answers back.

What comes back from a tool is compared with what the study says now, item by item; then all of it is saved,
or none. A pair's sides go out as `left` and `right`, shuffled for each item, and come back unshuffled.

What comes back from a page in one file: `{"format": "stratal-actions", "version": 1, "study", "annotator",
"actions"}`, each action with `request` (unique), `action` (submit, skip, undo, flag, unflag or note), and
`item`, `value`, `note`, `seconds`, `at` as far as it has them. Taking the same file in again saves nothing
twice.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Unpack

import msgspec

from stratal.errors import InputError, LabelError, suggest_names
from stratal.labels.annotation_tools import Task, ToolAnswer, ToolAnswers, ToolQuestion
from stratal.labels.label_values import format_mapping
from stratal.labels.missing_codes import refuse_missing_code
from stratal.labels.spreadsheet_ids import restore_spreadsheet_ids
from stratal.protocols import JsonDict
from stratal.study import creating
from stratal.study.database import Connection
from stratal.study.items import assign, read_form, reserve_items, save, sides
from stratal.study.journal import LONGEST_TIME, PAGE_FILE_SECRET, Action, ActionDetails, Entry
from stratal.study.question import (
    CLASSES,
    TAGS,
    TIE,
    Form,
    PlainRecord,
    StudyQuestion,
)

# Answers to a pair in other tools, which do not know its columns.
LEFT = "left"
RIGHT = "right"

# Distinguishes answers that a page saved as a file from other JSON files.
ACTIONS_FORMAT = "stratal-actions"

# In a tool, the sides of a pair are shuffled in the same way for everybody: the annotator is not known yet.
NO_ANNOTATOR = ""

# Largest labels file, in bytes: it is read into memory, and may come from anybody.
MAX_LABELS_FILE_BYTES = 200_000_000

# Number of values that a message names.
_MAX_NAMED = 5

# Fields that each action of a page must have in addition to its request.
REQUIRED_FIELDS: dict[str, tuple[str, ...]] = {
    "submit": ("item", "value"), "skip": ("item",), "undo": (), "flag": ("item",), "unflag": ("item",),
    "note": ("item", "note"), "adjudicate": ("item",),
}  # fmt: skip


class PageAction(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An action that a page saves; a page in one file adds the time, by a clock that is not trusted."""

    action: Literal["submit", "skip", "undo", "flag", "unflag", "note", "adjudicate"]
    request: Annotated[str, msgspec.Meta(min_length=1)]
    item: str | None = None
    value: str | int | float | JsonDict | None = None
    note: str | None = None
    seconds: int | float | None = None
    at: Any = None

    def __post_init__(self) -> None:
        lacking = [name for name in REQUIRED_FIELDS[self.action] if getattr(self, name) is None]
        if lacking:
            raise ValueError(f"the action {self.action!r} lacks {' and '.join(lacking)}")

    @property
    def details(self) -> ActionDetails:
        """The details of the action, without an impossible time, for which the study's own clock is used."""
        possible = self.seconds is not None and 0 <= self.seconds <= LONGEST_TIME
        seconds = self.seconds if possible else None
        return {"note": self.note or "", "seconds": seconds, "request": self.request}


class LabelsFile(msgspec.Struct):
    """The actions that a page in one file saves."""

    format: Literal["stratal-actions"]
    version: Literal[1]
    study: str
    annotator: str
    actions: list[PageAction]
    key: str = ""


def page_key(secret: str, study: str, annotator: str) -> str:
    """Return the key that an annotator's page in one file carries, and the file that it saves.

    It cannot be computed from another annotator's, so that nobody can send answers in the name of
    somebody else.
    """
    text = f"page in one file:{study}:{annotator}"
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()


def require_key(
    connection: Connection, file: LabelsFile, source: str, folder: Path, vouched: str | None
) -> None:
    """Refuse a labels file that does not prove whose page saved it, unless somebody vouches for that.

    `vouched` is a name: the person's own or the pseudonym.
    """
    if vouched is not None:
        codes = {name: code for code, name in creating.read_names(folder).items()}
        if creating.require_person(connection, codes.get(vouched, vouched)) != file.annotator:
            problem = f"{source} is marked as saved by the page of another annotator"
            raise LabelError(problem, given=repr(file.annotator)[:100], allowed=repr(vouched))
        return
    secret = connection.setting(PAGE_FILE_SECRET)
    if secret is None:
        expected = None
    else:
        expected = page_key(secret, file.study, file.annotator)
    if expected is None or not hmac.compare_digest(file.key.encode("utf-8", "replace"), expected.encode()):
        problem = f"{source} contains no proof that the page of {file.annotator!r} saved it"
        action = f"If you are sure that it did: --annotator {shlex.quote(file.annotator)}."
        allowed = "a file with the key of a page that was exported from this study"
        raise LabelError(problem, allowed=allowed, action=action)


# Annotator, item → status and value of the answer.
PresentAnswers = dict[tuple[str, int], tuple[str, str | None]]


def present_answers(connection: Connection) -> PresentAnswers:
    """Return everybody's answers and skips as they are now."""
    rows = connection.all("SELECT annotator, item, status, value FROM answer")
    return {(row["annotator"], row["item"]): (row["status"], row["value"]) for row in rows}


def changes_between(before: PresentAnswers, after: PresentAnswers) -> JsonDict:
    """Return the number of new, changed and withdrawn answers, each by annotator."""
    new = Counter(annotator for annotator, item in after if (annotator, item) not in before)
    changed = Counter(key[0] for key, answer in after.items() if before.get(key, answer) != answer)
    withdrawn = Counter(annotator for annotator, item in before if (annotator, item) not in after)
    counts = {"new_answers": new, "changed_answers": changed, "withdrawn_answers": withdrawn}
    return {name: dict(sorted(counter.items())) for name, counter in counts.items()}


def page_action(action: object) -> PageAction:
    """Return an action of a page, refusing one that lacks something or has something else."""
    try:
        return msgspec.convert(action, PageAction)
    except msgspec.ValidationError as error:
        raise InputError(f"the action cannot be read: {error}", allowed=", ".join(REQUIRED_FIELDS)) from None


def journal_entry(
    study: str,
    form: Form,
    annotator: str,
    action: Action,
    item: str | None,
    value: object,
    **details: Unpack[ActionDetails],
) -> Entry:
    """Return the line of an action, refusing an answer that the question does not take."""
    if action == "submit":
        order = sides(form, str(item), annotator, study)
    else:
        order = None
    answered = action == "submit" or (action == "adjudicate" and value is not None)
    return Entry(
        annotator=annotator,
        action=action,
        id=None if action == "undo" else item,
        value=form.answer(value) if answered else None,
        shown=None if order is None else "|".join(order),
        **details,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImportResult(PlainRecord):
    """The effect of an import, done or previewed.

    Parameters
    ----------
    tool : str
    new : int
        Items that get an answer.
    changed : int
        Items whose annotator had given another answer.
    skipped : int
        Items that the annotator skipped, of these.
    same : int
        Answers that the study has already.
    repeated : int
        Answers that were taken in before, and are something else by now: they stay as they are.
    unmatched : int
        Answers of items that are not in the study: left out.
    strangers : tuple of str
        The first of their ids.
    annotators : mapping of str to int
        Answers of the file per annotator.
    new_answers, changed_answers, withdrawn_answers : mapping of str to int
        Per annotator: answers that are new, that replace another one, and that are taken back.
    applied : bool
    notes : tuple of str
    """

    tool: str
    new: int = 0
    changed: int = 0
    skipped: int = 0
    same: int = 0
    repeated: int = 0
    unmatched: int = 0
    strangers: tuple[str, ...] = ()
    annotators: Mapping[str, int] = field(default_factory=dict)
    new_answers: Mapping[str, int] = field(default_factory=dict)
    changed_answers: Mapping[str, int] = field(default_factory=dict)
    withdrawn_answers: Mapping[str, int] = field(default_factory=dict)
    applied: bool = False
    notes: tuple[str, ...] = ()


def tool_question(question: StudyQuestion) -> ToolQuestion:
    """Return a question as tools ask it."""
    names = tuple(choice.name for choice in question.choices)
    return ToolQuestion(
        text=question.text,
        choices=(LEFT, RIGHT, TIE) if _shuffles(question) else names,
        sets=question.kind == TAGS,
        keys=tuple(choice.key for choice in question.choices),
        free=question.kind == CLASSES,
        rubric=question.rubric,
    )


def one_question(connection: Connection) -> StudyQuestion:
    """Return a study's question, as other tools ask one; refuse several, and kinds that they do not know."""
    form = read_form(connection)
    if not form.plain:
        kinds = ", ".join(question.kind for question in form.questions)
        action = (
            "Use the served page, or the page in one file: stratal study export STUDY --output page.html."
        )
        raise InputError("other tools do not support the questions of this study", given=kinds, action=action)
    return form.first


def item_numbers(connection: Connection, annotator: str | None, items: int | None) -> list[int]:
    """Return the numbers of items that still need an answer, or of so many.

    With an annotator they are those that are free for that one, and are kept from others.
    """
    if items is not None and not (isinstance(items, int) and items > 0):
        raise InputError("items must be a whole number", given=items, allowed="1 or more")
    if annotator is not None:
        return reserve_items(connection, creating.require_person(connection, annotator), items)
    free = "SELECT item FROM item WHERE answers < copies AND decision IS NULL ORDER BY item LIMIT ?"
    return [row["item"] for row in connection.all(free, -1 if items is None else items)]


def study_tasks(connection: Connection, annotator: str | None, items: int | None) -> list[Task]:
    """Return a study's items that still need an answer; with an annotator, those kept for that one alone."""
    study = str(connection.setting("id"))
    tasks = []
    question = one_question(connection)
    for number in item_numbers(connection, annotator, items):
        item, text = connection.one("SELECT id, payload FROM item WHERE item = ?", number)
        payload = json.loads(text)
        order = _tool_sides(question, item, study)
        if order is not None:
            shown = {name: value for name, value in payload.items() if name not in order}
            payload = {**shown, LEFT: payload[order[0]], RIGHT: payload[order[1]]}
        tasks.append(Task(id=item, payload=payload))
    return tasks


def import_answers(
    connection: Connection, answers: ToolAnswers, who: Mapping[str, str] | str | None, folder: Path
) -> ImportResult:
    """Save a tool's answers, and return the number of each kind; for a preview, the caller rolls back.

    `who` is the annotator of all answers, or a mapping from the tool's names to those of the study; the names
    behind pseudonyms are in the study's folder. Unknown annotators, answers that the question does not
    accept, and a file without an item of the study are errors.
    """
    question = one_question(connection)
    study = str(connection.setting("id"))
    numbers = {row["id"]: int(row["item"]) for row in connection.all("SELECT id, item FROM item")}
    reserved_for = defaultdict[str, list[str]](list)
    for row in connection.all("SELECT id, annotator FROM given JOIN item USING (item) WHERE held = 1"):
        reserved_for[row["id"]].append(row["annotator"])
    tool_answers = _named(connection, answers, who, folder)
    # A spreadsheet may have changed ids.
    ids, notes = restore_spreadsheet_ids(
        [entry.id for entry in tool_answers], [entry.annotator for entry in tool_answers], numbers
    )
    tool_answers = [replace(entry, id=item) for entry, item in zip(tool_answers, ids, strict=True)]
    inside = [entry for entry in tool_answers if entry.id in numbers]
    strangers = tuple(item for item in ids if item not in numbers)
    if not inside:
        raise LabelError(
            "no item of the file is in this study",
            given=", ".join(map(repr, strangers[:_MAX_NAMED])),
            allowed=", ".join(map(repr, sorted(numbers)[:_MAX_NAMED])),
            action="Import it into the study that its items come from.",
        )
    people = Counter[str]()
    reserved_counts = Counter[str]()
    before = present_answers(connection)
    kinds: JsonDict = Counter[str]()
    values = _values(study, question, inside)
    _refuse_missing_code(question, values, answers)
    for entry, value in zip(inside, values, strict=True):
        if entry.annotator not in reserved_for[entry.id]:
            reserved_counts.update(reserved_for[entry.id])
        kind = _save(connection, study, question, entry, value, numbers[entry.id])
        kinds[kind] += 1
        kinds["skipped"] += int(value is None and kind in ("new", "changed"))
        people[entry.annotator] += 1
    kept_for = [
        f"{count:,} of the items are reserved for {name!r}, who may have filled in the file"
        for name, count in reserved_counts.items()
    ]
    return ImportResult(
        tool=answers.tool,
        **kinds,
        unmatched=len(strangers),
        strangers=tuple(dict.fromkeys(strangers))[:_MAX_NAMED],
        annotators=dict(people),
        **changes_between(before, present_answers(connection)),
        notes=(*answers.notes, *notes, *kept_for),
    )


def _shuffles(question: StudyQuestion) -> bool:
    return question.pair is not None and not {LEFT, RIGHT} & set(question.pair)


def _tool_sides(question: StudyQuestion, item: str, study: str) -> tuple[str, str] | None:
    """Return the columns that a tool shows as left and right; None where it shows none so."""
    if _shuffles(question):
        return sides(Form.of(question), item, NO_ANNOTATOR, study)
    return None


def _named(
    connection: Connection, answers: ToolAnswers, who: Mapping[str, str] | str | None, folder: Path
) -> list[ToolAnswer]:
    """Return the answers with the names that stand in the journal."""
    people = creating.people_of(connection)
    annotators = creating.people_of(connection, "annotator")
    codes = {name: code for code, name in creating.read_names(folder).items()}
    tool_names = list(dict.fromkeys(entry.annotator for entry in answers.answers))
    names = {}
    for tool_name in tool_names:
        if isinstance(who, str):
            name = who
        else:
            name = (who or {}).get(tool_name, tool_name)
        # A file without names can only be of the only annotator.
        if name or len(annotators) != 1:
            names[tool_name] = codes.get(name, name)
        else:
            names[tool_name] = annotators[0]
    unknown = [tool_name for tool_name, name in names.items() if name not in people]
    action = "State whose answers these are: --annotator NAME, or --annotator THEIRS=NAME,…."
    if unknown:
        problem = (
            f"the {'study has no such annotator' if any(unknown) else 'file does not state who answered'}"
        )
        if any(unknown):
            named = ", ".join(map(repr, unknown[:_MAX_NAMED]))
        else:
            named = None
        raise LabelError(problem, given=named, allowed=suggest_names(unknown[0], people), action=action)
    twice = [item for item, count in Counter(entry.id for entry in answers.answers).items() if count > 1]
    if isinstance(who, str) and len(tool_names) > 1 and twice:
        problem = f"item {twice[0]!r} was answered by several people"
        raise LabelError(problem, given=", ".join(map(repr, tool_names[:_MAX_NAMED])), action=action)
    return [replace(entry, annotator=names[entry.annotator]) for entry in answers.answers]


def _values(study: str, question: StudyQuestion, answers: Sequence[ToolAnswer]) -> list[str | None]:
    """Return answers as the study keeps them, refusing those that the question does not take."""
    values: list[str | None] = []
    refused: dict[str, tuple[ToolAnswer, InputError]] = {}
    for entry in answers:
        try:
            values.append(None if entry.value is None else _value(study, question, entry))
        except InputError as error:
            refused.setdefault(str(entry.value).strip(), (entry, error))
    if refused:
        entry, why = next(iter(refused.values()))
        problem = f"{entry.place}: item {entry.id!r}: {why.what}"
        refused_values = ", ".join(map(repr, list(refused)[:_MAX_NAMED]))
        action = (
            f"Leave the cell empty if there is no answer, or use {format_mapping(dict.fromkeys(refused))}."
        )
        raise LabelError(problem, given=refused_values, allowed=why.allowed, action=action)
    return values


def _refuse_missing_code(question: StudyQuestion, values: Sequence[str | None], answers: ToolAnswers) -> None:
    """Refuse usual codes of missing labels among classes, which may be any text.

    Other questions take no number beyond their choices or their scale.
    """
    if question.kind != CLASSES:
        return
    texts = [value for value in values if value is not None and value not in answers.mapped_values]
    classes = [choice.name for choice in question.choices]
    refuse_missing_code(Counter(texts), answers.tool, question.name or "label", classes=classes)


def _value(study: str, question: StudyQuestion, entry: ToolAnswer) -> str:
    """Return an answer as the study keeps it: the sides of a pair unshuffled, the spelling the question's."""
    text = str(entry.value).strip()
    order = _tool_sides(question, entry.id, study)
    if order is not None and text.lower() in (LEFT, RIGHT):
        return order[text.lower() == RIGHT]
    names = [choice.name for choice in question.choices]
    if text not in names:
        matches = [name for name in names if name.casefold() == text.casefold()]
        # Spreadsheets and dataframes write the answer 4 as 4.0.
        whole_number = text.removesuffix(".0")
        if len(matches) == 1:
            text = matches[0]
        elif whole_number in names:
            text = whole_number
    return question.answer(text)


def _save(
    connection: Connection,
    study: str,
    question: StudyQuestion,
    entry: ToolAnswer,
    value: str | None,
    item: int,
) -> str:
    """Save one answer; return what it was: new, changed, same or repeated."""
    of_item = "WHERE item = ? AND annotator = ?"
    current = connection.one(f"SELECT status, value FROM answer {of_item}", item, entry.annotator)
    if current is not None and (current["status"] == "skipped", current["value"]) == (value is None, value):
        return "same"
    text = json.dumps([entry.id, value, entry.note, entry.at], ensure_ascii=False)
    if not connection.one(f"SELECT 1 FROM given {of_item}", item, entry.annotator):
        assign(connection, entry.annotator, item)
    if value is None:
        order = None
    else:
        order = _tool_sides(question, entry.id, study)
    saved = Entry(
        annotator=entry.annotator,
        action="skip" if value is None else "submit",
        id=entry.id,
        value=value,
        note=entry.note,
        # NaN is saved as unknown. None would be replaced by the time since the item was assigned.
        seconds=math.nan if entry.seconds is None else entry.seconds,
        shown=None if order is None else "|".join(order),
        request=f"import {hashlib.sha256(text.encode()).hexdigest()}",
    )
    if save(connection, saved).repeated:
        return "repeated"
    if current is None:
        return "new"
    return "changed"


def import_actions(
    connection: Connection, text: str, source: str, folder: Path, vouched: str | None = None
) -> JsonDict:
    """Save the actions of a labels file, all or none; return how many were new, and whose answers are.

    A file of another kind, another study or without its annotator's key is refused (`require_key`), and an
    action that cannot be taken, by its number.
    """
    try:
        file = msgspec.json.decode(text.encode("utf-8", "surrogatepass"), type=LabelsFile)
    except (msgspec.DecodeError, RecursionError) as error:
        action = "Use the file as it was saved by the labelling page of this version."
        problem = f"{source} is not a labels file from the labelling page ({error})"
        raise LabelError(problem, action=action) from None
    study = str(connection.setting("id"))
    if file.study != study:
        problem = f"{source}: belongs to another study"
        action = "Import it into the study that its page was exported from."
        raise LabelError(problem, given=repr(file.study)[:60], allowed=f"study {study}", action=action)
    annotator = creating.require_person(connection, file.annotator)
    require_key(connection, file, source, folder, vouched)
    counts = {"saved": 0, "repeated": 0}
    form = read_form(connection)
    before = present_answers(connection)
    for number, saved in enumerate(file.actions, start=1):
        try:
            if saved.action == "adjudicate":
                raise InputError(
                    "decisions are made on the served page", action="Remove this action from the file."
                )
            entry = journal_entry(
                study, form, annotator, saved.action, saved.item, saved.value, **saved.details
            )
            receipt = save(connection, entry)
        except InputError as error:
            place = f"{source}, action {number}"
            raise LabelError(f"{place}: {error}") from None
        counts["repeated" if receipt.repeated else "saved"] += 1
    return {**counts, **changes_between(before, present_answers(connection))}
