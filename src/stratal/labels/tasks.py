"""Items, the question and answers as annotation tools take and give them, whichever tool it is."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

from stratal.arrays import Record
from stratal.errors import LabelError
from stratal.labels.meanings import Declared, Meaning, class_text, sentences
from stratal.tables.logs import as_written

VERDICT = "verdict"


NOTE = "note"


ITEM_ID = "item_id"
"""What the answer, the note and the item's id are called in tools that need a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """An item as it goes out: nothing of proxy, prediction or stratum.

    Parameters
    ----------
    id : str
    payload : mapping of column to value
        What annotators see, in this order; lists of turns and dicts as JSON has them.

    Examples
    --------
    >>> Task(id="q7", payload={"question": "2 + 2?"}).texts({"question": "q", "answer": "a"})
    {'q': '2 + 2?', 'a': ''}
    """

    id: str
    payload: Mapping[str, Any]

    def texts(self, names: Mapping[str, str]) -> dict[str, str]:
        """Return columns as text, by other names; what the task lacks is empty."""
        return {new: text_of(self.payload.get(name)) for name, new in names.items()}

    def page(self) -> str:
        """Return the payload as one text: the only column's, or each below its name."""
        texts = {name: text_of(value) for name, value in self.payload.items()}
        if len(texts) == 1:
            return next(iter(texts.values()))
        return "\n\n".join(f"{name}:\n{text}" for name, text in texts.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolQuestion:
    """What annotators are asked.

    Parameters
    ----------
    text : str
    choices : tuple of str
    keys : tuple of str
        The key of each choice; "" for none.
    free : bool
        Whether an answer may be in the annotator's own words.
    rubric : str

    Examples
    --------
    >>> ToolQuestion(text="Correct?", choices=("Pass", "Fail")).free
    False
    """

    text: str
    choices: tuple[str, ...]
    keys: tuple[str, ...] = ()
    free: bool = False
    rubric: str = ""

    def keyed(self) -> list[tuple[str, str]]:
        """Return each choice with its key."""
        return list(zip(self.choices, self.keys or ("",) * len(self.choices), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """One answer as a tool gives it back.

    Parameters
    ----------
    id : str
        The item's.
    value : str, optional
        None for a skip.
    annotator : str
        As the tool calls them; "" where it does not say.
    note : str
    at : str
        When, as the tool says it.
    seconds : float, optional
    place : str
        Where it stands in the file, for errors.

    Examples
    --------
    >>> ToolAnswer(id="q7", value="Pass").annotator
    ''
    """

    id: str
    value: str | None
    annotator: str = ""
    note: str = ""
    at: str = ""
    seconds: float | None = None
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answers(Record):
    """All answers of one file.

    Parameters
    ----------
    tool : str
    said : tuple of ToolAnswer
    notes : tuple of str
        What the file does not tell, such as skips.

    Examples
    --------
    >>> Answers(tool="csv", said=()).notes
    ()
    """

    tool: str
    said: tuple[ToolAnswer, ...]
    notes: tuple[str, ...] = ()

    def mapped(self, mapping: Mapping[Any, float | str | None] | None) -> Answers:
        """Return the answers as what they are mapped to; those that are mapped to None are left out.

        Examples
        --------
        >>> said = ToolAnswer(id="a", value="ok"), ToolAnswer(id="b", value="N/A")
        >>> given = Answers(tool="csv", said=said)
        >>> found = given.mapped({"OK": "Pass", "n/a": None})
        >>> [(entry.id, entry.value) for entry in found.said], found.notes
        ([('a', 'Pass')], ('labels: ok 1 → Pass, N/A 1 → no answer',))
        """
        counts = Counter(entry.value for entry in self.said if entry.value is not None)
        declared = Declared.of(counts, None, mapping, partly=True)
        table = [
            Meaning(value=text, count=counts[text], meaning=meaning, usual=False)
            for text, meaning in declared.meanings.items()
        ]
        said = tuple(
            entry if meaning == entry.value else replace(entry, value=class_text(meaning))
            for entry in self.said
            for meaning in [declared.meanings.get(entry.value or "", entry.value)]
            if meaning is not None or entry.value is None
        )
        return replace(self, said=said, notes=(*self.notes, *declared.notes, *sentences(table)))


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file that comes back from a tool: JSON, or JSON Lines, of several records.

    Parameters
    ----------
    marks : set of str
        The keys by which the first record is known.
    record : str
        What a record is called in errors.
    answers : callable
        `answers(record, place)` returns the answers of a record.
    note : str
        What such a file does not tell.

    Examples
    --------
    >>> Format({"id"}, "line", print).note
    ''
    """

    marks: set[str]
    record: str
    answers: Callable[[Any, str], list[ToolAnswer]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """How one tool's files are written and read.

    Parameters
    ----------
    name : str
        As in `--to` and `--from`.
    title : str
    write : callable
        `write(tasks, asked, path)` returns what to do with the files in the tool, in a sentence.
    formats : tuple of Format
        What comes back; none where that is a table.
    folder : bool
        Whether `write` makes a folder of several files.

    Examples
    --------
    >>> Tool("a", "A", print).folder
    False
    """

    name: str
    title: str
    write: Callable[[Sequence[Task], ToolQuestion, Path], str]
    formats: tuple[Format, ...] = ()
    folder: bool = False

    def format_of(self, document: Any) -> Format | None:
        """Return the format of a JSON document, or of the first of JSON Lines; None if it is of another."""
        first = next(iter(document), None) if isinstance(document, list) else document
        keys = set(first) if isinstance(first, Mapping) else set()
        return next((known for known in self.formats if known.marks <= keys), None)

    def answers(self, document: Any, source: str) -> Answers:
        """Return the answers in a document of this tool's, naming a record that it cannot have written."""
        known = self.format_of(document)
        if known is None:
            raise LabelError(f"{source}: is not an export of {self.title}", action="Export it again.")
        said: list[ToolAnswer] = []
        for number, record in enumerate(document if isinstance(document, list) else [document], start=1):
            place = f"{source}, {known.record} {number}"
            with as_written(place, self.title):
                said += known.answers(record, place)
        notes = (f"{source}: {known.note}",) if known.note else ()
        return Answers(tool=self.name, said=newest(said), notes=notes)


def text_of(value: Any) -> str:
    """Return a value as text: a chat turn by turn, what else is nested as JSON.

    Examples
    --------
    >>> text_of(None), text_of(3), text_of(["a"]), text_of([{"role": "user", "content": "Hi"}])
    ('', '3', '["a"]', 'user: Hi')
    """
    if value is None:
        return ""
    if is_chat(value):
        return "\n\n".join(f"{turn['role']}: {text_of(turn['content'])}" for turn in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def slugs(names: Iterable[str]) -> dict[str, str]:
    """Return names by which tools can call columns: letters, digits and _, each once.

    Examples
    --------
    >>> slugs(["answer@strict-match", "id", "Frage?", "frage"])
    {'answer@strict-match': 'answer_strict_match', 'id': 'id_2', 'Frage?': 'frage', 'frage': 'frage_2'}
    """
    found: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "column"
        plain = plain if plain[0].isalpha() else f"c_{plain}"
        spellings = chain([plain], (f"{plain}_{number}" for number in count(2)))
        used = {ITEM_ID, VERDICT, NOTE, "id", *found.values()}
        found[name] = next(slug for slug in spellings if slug not in used)
    return found


def columns_of(tasks: Sequence[Task]) -> list[str]:
    """Return the columns of some tasks, in the order in which they first appear.

    Examples
    --------
    >>> columns_of([Task(id="a", payload={"q": 1}), Task(id="b", payload={"q": 1, "r": 2})])
    ['q', 'r']
    """
    return list(dict.fromkeys(name for task in tasks for name in task.payload))


def is_chat(value: Any) -> bool:
    """Return whether a value is a list of turns, each with a role and a content.

    Examples
    --------
    >>> is_chat([{"role": "user", "content": "hello"}]), is_chat([1, 2])
    (True, False)
    """
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(turn, dict) and isinstance(turn.get("role"), str) for turn in value)
        and all("content" in turn for turn in value)
    )


def newest(said: Iterable[ToolAnswer]) -> tuple[ToolAnswer, ...]:
    """Return one answer per item and annotator: the latest, where times tell which that is.

    Raises
    ------
    LabelError
        For two different answers without times.

    Examples
    --------
    >>> first = ToolAnswer(id="a", value="x", at="2026-01-01")
    >>> second = ToolAnswer(id="a", value="y", at="2026-01-02")
    >>> [entry.value for entry in newest([second, first])]
    ['y']
    """
    found: dict[tuple[str, str], ToolAnswer] = {}
    for entry in said:
        key = (entry.id, entry.annotator)
        other = found.get(key)
        if other is None or (entry.at and other.at and entry.at > other.at):
            found[key] = entry
        elif other.value != entry.value and not (entry.at and other.at and entry.at < other.at):
            by = f" by {entry.annotator!r}" if entry.annotator else ""
            raise LabelError(
                f"{entry.place or 'the file'}: item {entry.id!r} has two answers{by}",
                given=f"{other.value!r} and {entry.value!r}",
                allowed="one per item and annotator",
                action="Remove one of them in the tool.",
            )
    return tuple(found.values())


def required(record: Mapping[str, Any], name: str, place: str) -> str:
    """Return an entry of an object as text, refusing one that is not there.

    Examples
    --------
    >>> required({"id": 1}, "id", "line 1")
    '1'
    """
    if record.get(name) in (None, ""):
        raise LabelError(
            f"{place}: has no {name!r}",
            given=", ".join(list(record)[:8]),
            action="Take the file that `stratal study export` wrote to the tool, so that ids come back.",
        )
    return text_of(record[name])


def write_json(path: Path, document: Any) -> None:
    """Write a JSON file that a person can read."""
    path.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON Lines."""
    with path.open("x", encoding="utf-8") as file:
        file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
