"""Export of items to an annotation tool or to a labelling page in one file, and import of their answers.

Answers from a tool are compared with the current answers of the study; all of them are saved, or none. The
sides of a pair are exported as `left` and `right`, shuffled for each item. The import restores the columns.

A page in one file saves a labels file: `{"format": "stratal-actions", "version": 1, "study", "annotator",
"actions"}`. Each action has `request` (unique), `action` (submit, skip, undo, flag, unflag or note), and
optionally `item`, `value`, `note`, `seconds` and `at`. If a file is imported twice, each action is saved
once.
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

from stratal.errors import InputError, LabelError, list_first, suggest_names
from stratal.labels.annotation_tools import Task, ToolAnswer, ToolAnswers, ToolQuestion
from stratal.labels.label_values import format_mapping
from stratal.labels.missing_codes import refuse_missing_code
from stratal.labels.spreadsheet_ids import restore_spreadsheet_ids
from stratal.protocols import JsonDict
from stratal.study import creating
from stratal.study.database import Connection
from stratal.study.items import assign, read_form, reserve_items, save, sides
from stratal.study.journal import MAX_SECONDS_PER_ITEM, PAGE_FILE_SECRET, Action, ActionDetails, Entry
from stratal.study.question import (
    CLASSES,
    TAGS,
    TIE,
    Form,
    PlainRecord,
    StudyQuestion,
)

# Answers to a pair in annotation tools, which show its columns under these names.
LEFT = "left"
RIGHT = "right"

# Value of `format` in a labels file, which distinguishes it from other JSON files.
ACTIONS_FORMAT = "stratal-actions"

# Annotator for whom the sides of a pair are shuffled in a tool: the real one is unknown before the import.
NO_ANNOTATOR = ""

# Largest labels file in bytes: it is read into memory and comes from an untrusted source.
MAX_LABELS_FILE_BYTES = 200_000_000

# Largest number of values that a message lists.
_MAX_VALUES_LISTED = 5

# Required fields of each action of a page, in addition to `request`.
REQUIRED_FIELDS: dict[str, tuple[str, ...]] = {
    "submit": ("item", "value"), "skip": ("item",), "undo": (), "flag": ("item",), "unflag": ("item",),
    "note": ("item", "note"), "adjudicate": ("item",),
}  # fmt: skip


class PageAction(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An action of an annotator on a page; a page in one file adds its time `at`, by an untrusted clock."""

    action: Literal["submit", "skip", "undo", "flag", "unflag", "note", "adjudicate"]
    request: Annotated[str, msgspec.Meta(min_length=1)]
    item: str | None = None
    value: str | int | float | JsonDict | None = None
    note: str | None = None
    seconds: int | float | None = None
    at: Any = None

    def __post_init__(self) -> None:
        missing_fields = [name for name in REQUIRED_FIELDS[self.action] if getattr(self, name) is None]
        if missing_fields:
            raise ValueError(f"the action {self.action!r} lacks {' and '.join(missing_fields)}")

    @property
    def details(self) -> ActionDetails:
        """Note, working time and request. An impossible time is None; the study's clock then measures it."""
        is_possible = self.seconds is not None and 0 <= self.seconds <= MAX_SECONDS_PER_ITEM
        seconds = self.seconds if is_possible else None
        return {"note": self.note or "", "seconds": seconds, "request": self.request}


class LabelsFile(msgspec.Struct):
    """The actions in a labels file, which a page in one file saves."""

    format: Literal["stratal-actions"]
    version: Literal[1]
    study: str
    annotator: str
    actions: list[PageAction]
    key: str = ""


def page_key(secret: str, study: str, annotator: str) -> str:
    """Return the key in an annotator's page in one file and in its labels files.

    It cannot be computed from the key of another annotator, so that no person can send answers in the name of
    another.
    """
    text = f"page in one file:{study}:{annotator}"
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()


def require_page_key(
    connection: Connection, file: LabelsFile, source: str, folder: Path, confirmed_annotator: str | None
) -> None:
    """Refuse a labels file without the key of its annotator's page, unless the user confirms the annotator.

    `confirmed_annotator` is the annotator's name or pseudonym.
    """
    if confirmed_annotator is not None:
        pseudonyms = {name: pseudonym for pseudonym, name in creating.read_names(folder).items()}
        person = pseudonyms.get(confirmed_annotator, confirmed_annotator)
        if creating.require_person(connection, person) != file.annotator:
            problem = f"{source} is marked as saved by the page of another annotator"
            raise LabelError(problem, given=repr(file.annotator)[:100], allowed=repr(confirmed_annotator))
        return
    secret = connection.setting(PAGE_FILE_SECRET)
    if secret is None:
        expected = None
    else:
        expected = page_key(secret, file.study, file.annotator)
    if expected is None or not hmac.compare_digest(file.key.encode("utf-8", "replace"), expected.encode()):
        problem = f"{source} contains no proof that the page of {file.annotator!r} saved it"
        action = f"If you are sure that it did, add --annotator {shlex.quote(file.annotator)}."
        allowed = "a file with the key of a page that was exported from this study"
        raise LabelError(problem, allowed=allowed, action=action)


# Status and value of each current answer, by annotator and item number.
CurrentAnswers = dict[tuple[str, int], tuple[str, str | None]]


def current_answers(connection: Connection) -> CurrentAnswers:
    """Return the current answers and skips of all annotators."""
    rows = connection.all("SELECT annotator, item, status, value FROM answer")
    return {(row["annotator"], row["item"]): (row["status"], row["value"]) for row in rows}


def count_changes(before: CurrentAnswers, after: CurrentAnswers) -> JsonDict:
    """Return the number of new, changed and withdrawn answers, each by annotator."""
    new = Counter(annotator for annotator, item in after if (annotator, item) not in before)
    changed_keys = [key for key, answer in after.items() if before.get(key, answer) != answer]
    changed = Counter(annotator for annotator, _ in changed_keys)
    withdrawn = Counter(annotator for annotator, item in before if (annotator, item) not in after)
    counters = {"new_answers": new, "changed_answers": changed, "withdrawn_answers": withdrawn}
    return {name: dict(sorted(counter.items())) for name, counter in counters.items()}


def parse_page_action(action: object) -> PageAction:
    """Return an action of a page, refusing one with missing, additional or invalid fields."""
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
    """Return the journal entry of an action, refusing an answer that the question does not accept."""
    if action == "submit":
        displayed_sides = sides(form, str(item), annotator, study)
    else:
        displayed_sides = None
    has_answer = action == "submit" or (action == "adjudicate" and value is not None)
    return Entry(
        annotator=annotator,
        action=action,
        id=None if action == "undo" else item,
        value=form.answer(value) if has_answer else None,
        shown=None if displayed_sides is None else "|".join(displayed_sides),
        **details,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImportResult(PlainRecord):
    """The effect of an import, or of its preview.

    Parameters
    ----------
    tool : str
        Name of the annotation tool.
    new : int
        Number of answers to items that had none from the annotator.
    changed : int
        Number of answers that replace a different answer of the annotator.
    skipped : int
        Number of skips among the new and changed answers.
    same : int
        Number of answers that equal the current one.
    repeated : int
        Number of answers that were imported before and changed in the study since; the current ones are kept.
    unmatched : int
        Number of answers to items that are not in the study, which are ignored.
    strangers : tuple of str
        The first ids of these items.
    annotators : mapping of str to int
        Number of answers of each annotator in the file.
    new_answers, changed_answers, withdrawn_answers : mapping of str to int
        Number of new answers, of answers that replace another, and of removed answers, by annotator.
    applied : bool
        Whether the answers were saved; False for a preview.
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
    """Return a question in the form for annotation tools."""
    choices = tuple(choice.name for choice in question.choices)
    if _is_shuffled_pair(question):
        choices = (LEFT, RIGHT, TIE)
    return ToolQuestion(
        text=question.text,
        choices=choices,
        allows_several_choices=question.kind == TAGS,
        keys=tuple(choice.key for choice in question.choices),
        allows_free_text=question.kind == CLASSES,
        rubric=question.rubric,
    )


def exportable_question(connection: Connection) -> StudyQuestion:
    """Return the only question of a study, refusing questions that annotation tools do not support."""
    form = read_form(connection)
    if not form.is_plain:
        kinds = ", ".join(question.kind for question in form.questions)
        action = (
            "Use the served page, or export it as a single file: "
            "stratal study export STUDY --output page.html."
        )
        raise InputError("other tools do not support the questions of this study", given=kinds, action=action)
    return form.first


def open_item_numbers(connection: Connection, annotator: str | None, items: int | None) -> list[int]:
    """Return the numbers of items that still need an answer, at most `items`.

    With an annotator, they are the free items of this annotator, for whom they are then reserved.
    """
    if items is not None and not (isinstance(items, int) and items > 0):
        raise InputError("items must be a whole number", given=items, allowed="1 or more")
    if annotator is not None:
        return reserve_items(connection, creating.require_person(connection, annotator), items)
    query = "SELECT item FROM item WHERE answers < copies AND decision IS NULL ORDER BY item LIMIT ?"
    # In SQLite, a negative limit means no limit.
    return [row["item"] for row in connection.all(query, -1 if items is None else items)]


def study_tasks(connection: Connection, annotator: str | None, items: int | None) -> list[Task]:
    """Return the items that still need an answer as tasks; see `open_item_numbers`."""
    study = str(connection.setting("id"))
    question = exportable_question(connection)
    tasks = []
    for number in open_item_numbers(connection, annotator, items):
        item_id, payload_text = connection.one("SELECT id, payload FROM item WHERE item = ?", number)
        payload = json.loads(payload_text)
        displayed_sides = _tool_sides(question, item_id, study)
        if displayed_sides is not None:
            left, right = displayed_sides
            other_columns = {name: value for name, value in payload.items() if name not in displayed_sides}
            payload = {**other_columns, LEFT: payload[left], RIGHT: payload[right]}
        tasks.append(Task(id=item_id, payload=payload))
    return tasks


def import_answers(
    connection: Connection,
    answers: ToolAnswers,
    annotator_names: Mapping[str, str] | str | None,
    folder: Path,
) -> ImportResult:
    """Save a tool's answers, and return their numbers by effect; for a preview, the caller rolls back.

    Unknown annotators, answers that the question does not accept, and a file without an item of the study are
    errors.

    Parameters
    ----------
    connection : Connection
    answers : ToolAnswers
    annotator_names : str or mapping of str to str, optional
        The annotator of all answers, or the study's name for each name in the tool.
    folder : Path
        Folder of the study, which has the names of pseudonyms.
    """
    question = exportable_question(connection)
    study = str(connection.setting("id"))
    numbers = {row["id"]: int(row["item"]) for row in connection.all("SELECT id, item FROM item")}
    tool_answers = _with_study_names(connection, answers, annotator_names, folder)
    # A spreadsheet may have changed ids, such as `007` to `7`.
    ids, notes = restore_spreadsheet_ids(
        [answer.id for answer in tool_answers], [answer.annotator for answer in tool_answers], numbers
    )
    tool_answers = [replace(answer, id=item_id) for answer, item_id in zip(tool_answers, ids, strict=True)]
    matched_answers = [answer for answer in tool_answers if answer.id in numbers]
    unmatched_ids = tuple(item_id for item_id in ids if item_id not in numbers)
    if not matched_answers:
        raise LabelError(
            "no item of the file is in this study",
            given=list_first(map(repr, unmatched_ids), _MAX_VALUES_LISTED),
            allowed=list_first(map(repr, sorted(numbers)), _MAX_VALUES_LISTED),
            action="Import the file into the study from which its items come.",
        )
    values = _stored_values(study, question, matched_answers)
    _refuse_missing_code(question, values, answers)
    notes = (*answers.notes, *notes, *_reservation_notes(connection, matched_answers))
    answers_before = current_answers(connection)
    # The keys are fields of `ImportResult`.
    effects: JsonDict = Counter[str]()
    for answer, value in zip(matched_answers, values, strict=True):
        effect = _save_imported_answer(connection, study, question, answer, value, numbers[answer.id])
        effects[effect] += 1
        effects["skipped"] += int(value is None and effect in ("new", "changed"))
    return ImportResult(
        tool=answers.tool,
        **effects,
        unmatched=len(unmatched_ids),
        strangers=tuple(dict.fromkeys(unmatched_ids))[:_MAX_VALUES_LISTED],
        annotators=dict(Counter(answer.annotator for answer in matched_answers)),
        **count_changes(answers_before, current_answers(connection)),
        notes=notes,
    )


def _reservation_notes(connection: Connection, answers: Sequence[ToolAnswer]) -> list[str]:
    """Return a note for each annotator for whom items are reserved that somebody else answered."""
    reserved_for = defaultdict[str, list[str]](list)
    for row in connection.all("SELECT id, annotator FROM given JOIN item USING (item) WHERE held = 1"):
        reserved_for[row["id"]].append(row["annotator"])
    item_counts = Counter[str]()
    for answer in answers:
        if answer.annotator not in reserved_for[answer.id]:
            item_counts.update(reserved_for[answer.id])
    return [
        f"{count:,} of the items are reserved for {name!r}, who may have filled in the file"
        for name, count in item_counts.items()
    ]


def _is_shuffled_pair(question: StudyQuestion) -> bool:
    """Return whether a question compares a pair of columns that do not have the names `left` and `right`."""
    return question.pair is not None and not {LEFT, RIGHT} & set(question.pair)


def _tool_sides(question: StudyQuestion, item: str, study: str) -> tuple[str, str] | None:
    """Return the columns that a tool shows as left and right; None if the question has no shuffled pair."""
    if _is_shuffled_pair(question):
        return sides(Form.of(question), item, NO_ANNOTATOR, study)
    return None


def _with_study_names(
    connection: Connection,
    answers: ToolAnswers,
    annotator_names: Mapping[str, str] | str | None,
    folder: Path,
) -> list[ToolAnswer]:
    """Return the answers with the names of annotators in the journal instead of the tool's names.

    The parameters are those of `import_answers`.
    """
    tool_names = list(dict.fromkeys(answer.annotator for answer in answers.answers))
    journal_names = _journal_names(connection, tool_names, annotator_names, folder)
    people = creating.people_with_role(connection)
    unknown = [tool_name for tool_name, name in journal_names.items() if name not in people]
    action = "State whose answers these are: --annotator NAME, or --annotator THEIRS=NAME,…."
    if unknown:
        problem = "the file does not state who answered"
        unknown_text = None
        if any(unknown):
            problem = "the study has no such annotator"
            unknown_text = list_first(map(repr, unknown), _MAX_VALUES_LISTED)
        allowed = suggest_names(unknown[0], people)
        raise LabelError(problem, given=unknown_text, allowed=allowed, action=action)
    answer_counts = Counter(answer.id for answer in answers.answers)
    repeated_ids = [item_id for item_id, count in answer_counts.items() if count > 1]
    if isinstance(annotator_names, str) and len(tool_names) > 1 and repeated_ids:
        problem = f"item {repeated_ids[0]!r} was answered by several people"
        raise LabelError(problem, given=list_first(map(repr, tool_names), _MAX_VALUES_LISTED), action=action)
    return [replace(answer, annotator=journal_names[answer.annotator]) for answer in answers.answers]


def _journal_names(
    connection: Connection,
    tool_names: Sequence[str],
    annotator_names: Mapping[str, str] | str | None,
    folder: Path,
) -> dict[str, str]:
    """Return the name in the journal for each name in the tool; it may be unknown to the study."""
    pseudonyms = {name: pseudonym for pseudonym, name in creating.read_names(folder).items()}
    annotators = creating.people_with_role(connection, "annotator")
    journal_names = {}
    for tool_name in tool_names:
        if isinstance(annotator_names, str):
            name = annotator_names
        else:
            name = (annotator_names or {}).get(tool_name, tool_name)
        # If a study has only one annotator, the answers in a file without names are from this person.
        if not name and len(annotators) == 1:
            journal_names[tool_name] = annotators[0]
        else:
            journal_names[tool_name] = pseudonyms.get(name, name)
    return journal_names


def _stored_values(study: str, question: StudyQuestion, answers: Sequence[ToolAnswer]) -> list[str | None]:
    """Return answers in their stored form, refusing answers that the question does not accept."""
    values: list[str | None] = []
    # The first answer with each refused value, and its error.
    refused: dict[str, tuple[ToolAnswer, InputError]] = {}
    for answer in answers:
        try:
            values.append(None if answer.value is None else _stored_value(study, question, answer))
        except InputError as error:
            refused.setdefault(str(answer.value).strip(), (answer, error))
    if refused:
        answer, first_error = next(iter(refused.values()))
        problem = f"{answer.place}: item {answer.id!r}: {first_error.what}"
        refused_values = list_first(map(repr, refused), _MAX_VALUES_LISTED)
        action = (
            f"Leave the cell empty if there is no answer, or use {format_mapping(dict.fromkeys(refused))}."
        )
        raise LabelError(problem, given=refused_values, allowed=first_error.allowed, action=action)
    return values


def _refuse_missing_code(question: StudyQuestion, values: Sequence[str | None], answers: ToolAnswers) -> None:
    """Refuse usual codes of missing labels, such as -1, among classes, which may be any text.

    Other questions accept only their choices or the numbers of their scale.
    """
    if question.kind != CLASSES:
        return
    texts = [value for value in values if value is not None and value not in answers.mapped_values]
    classes = [choice.name for choice in question.choices]
    refuse_missing_code(Counter(texts), answers.tool, question.name or "label", classes=classes)


def _stored_value(study: str, question: StudyQuestion, answer: ToolAnswer) -> str:
    """Return an answer in its stored form: the column of a pair, or the choice in the question's spelling."""
    text = str(answer.value).strip()
    displayed_sides = _tool_sides(question, answer.id, study)
    if displayed_sides is not None and text.lower() in (LEFT, RIGHT):
        return displayed_sides[text.lower() == RIGHT]
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


def _save_imported_answer(
    connection: Connection,
    study: str,
    question: StudyQuestion,
    answer: ToolAnswer,
    value: str | None,
    item_number: int,
) -> str:
    """Save an answer; return its effect: `new`, `changed`, `same` or `repeated` (see `ImportResult`)."""
    condition = "WHERE item = ? AND annotator = ?"
    current = connection.one(f"SELECT status, value FROM answer {condition}", item_number, answer.annotator)
    if current is not None and (current["status"] == "skipped", current["value"]) == (value is None, value):
        return "same"
    # The same answer from the same file has the same request, so that it is saved once.
    request_text = json.dumps([answer.id, value, answer.note, answer.timestamp], ensure_ascii=False)
    # A person can save only answers to assigned items.
    if not connection.one(f"SELECT 1 FROM given {condition}", item_number, answer.annotator):
        assign(connection, answer.annotator, item_number)
    if value is None:
        displayed_sides = None
    else:
        displayed_sides = _tool_sides(question, answer.id, study)
    entry = Entry(
        annotator=answer.annotator,
        action="skip" if value is None else "submit",
        id=answer.id,
        value=value,
        note=answer.note,
        # NaN is saved as unknown. None would be replaced by the time since the item was assigned.
        seconds=math.nan if answer.seconds is None else answer.seconds,
        shown=None if displayed_sides is None else "|".join(displayed_sides),
        request=f"import {hashlib.sha256(request_text.encode()).hexdigest()}",
    )
    if save(connection, entry).repeated:
        return "repeated"
    if current is None:
        return "new"
    return "changed"


def import_actions(
    connection: Connection, text: str, source: str, folder: Path, confirmed_annotator: str | None = None
) -> JsonDict:
    """Save all actions of a labels file, or none; return the numbers of actions and of changed answers.

    A file in another format, of another study or without its annotator's key (`require_page_key`) is an
    error, and so is an invalid action.
    """
    try:
        file = msgspec.json.decode(text.encode("utf-8", "surrogatepass"), type=LabelsFile)
    except (msgspec.DecodeError, RecursionError) as error:
        action = "Use the file exactly as the labelling page of this version of stratal saved it."
        problem = f"{source} is not a labels file from the labelling page ({error})"
        raise LabelError(problem, action=action) from None
    study = str(connection.setting("id"))
    if file.study != study:
        problem = f"{source}: the file belongs to another study"
        action = "Import the file into the study from which its page was exported."
        raise LabelError(problem, given=repr(file.study)[:60], allowed=f"study {study}", action=action)
    annotator = creating.require_person(connection, file.annotator)
    require_page_key(connection, file, source, folder, confirmed_annotator)
    saved = 0
    repeated = 0
    form = read_form(connection)
    answers_before = current_answers(connection)
    for number, saved_action in enumerate(file.actions, start=1):
        try:
            if saved_action.action == "adjudicate":
                raise InputError(
                    "decisions are made on the served page", action="Remove this action from the file."
                )
            entry = journal_entry(
                study,
                form,
                annotator,
                saved_action.action,
                saved_action.item,
                saved_action.value,
                **saved_action.details,
            )
            receipt = save(connection, entry)
        except InputError as error:
            place = f"{source}, action {number}"
            raise LabelError(f"{place}: {error}") from None
        if receipt.repeated:
            repeated += 1
        else:
            saved += 1
    changes = count_changes(answers_before, current_answers(connection))
    return {"saved": saved, "repeated": repeated, **changes}
