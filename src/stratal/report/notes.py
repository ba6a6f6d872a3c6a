"""`Note`: what a reader should know of a result, with a code by which programs recognise it."""

from __future__ import annotations

from collections.abc import Iterable

# Of notes that no program needs to recognise.
REMARK = "remark"

# Of notes that a reader must not miss; they are printed among the first lines.
NO_MATCH = "answers-match-no-label"
UNREPRESENTATIVE = "labels-by-proxy"
WARNINGS = frozenset({NO_MATCH, UNREPRESENTATIVE})

# Of the note on drawn units without a label, which a page may say in a sentence of its own.
UNLABELLED = "units-without-label"


class Note(str):
    """The text of a note, with a code. Logic depends on the code, never on the text.

    Parameters
    ----------
    code : str
        What kind of note it is, such as `plan-refuted` or `missing-by-proxy`.
    text : str

    Examples
    --------
    >>> note = Note("heavy-tails", "one error holds half of the sum")
    >>> note.code, str(note)
    ('heavy-tails', 'one error holds half of the sum')
    """

    __slots__ = ("code",)
    code: str

    def __new__(cls, code: str, text: str) -> Note:
        """Return a text with its code."""
        note = super().__new__(cls, text)
        note.code = code
        return note

    def __reduce__(self) -> tuple[type[Note], tuple[str, str]]:
        return Note, (self.code, str(self))


def as_notes(texts: Iterable[str]) -> tuple[Note, ...]:
    """Return texts as notes, each once; those without a code are remarks.

    Examples
    --------
    >>> [note.code for note in as_notes(["few labels", Note("census", "all units are labelled")])]
    ['remark', 'census']
    """
    notes = (text if isinstance(text, Note) else Note(REMARK, text) for text in texts)
    return tuple(dict.fromkeys(notes))


def without_code(notes: Iterable[str], code: str) -> list[str]:
    """Return the notes that have another code, or none.

    Examples
    --------
    >>> without_code(["few labels", Note(UNLABELLED, "3 units have no label")], UNLABELLED)
    ['few labels']
    """
    return [note for note in notes if not (isinstance(note, Note) and note.code == code)]


def warnings_among(notes: Iterable[str]) -> list[str]:
    """Return the notes that a reader must not miss.

    Examples
    --------
    >>> warnings_among(["few labels", Note(NO_MATCH, "no answer is a label")])
    ['no answer is a label']
    """
    return [note for note in notes if isinstance(note, Note) and note.code in WARNINGS]
