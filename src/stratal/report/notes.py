"""`Note`: a remark on a result, with a code by which programs recognise it."""

from __future__ import annotations

from collections.abc import Iterable

# Code of notes that no program needs to recognise.
REMARK = "remark"

# Code of the warning that almost no label is equal to an answer of the model.
NO_MATCH = "answers-match-no-label"

# Codes of the warnings that labelled rows are no random sample of their table: the distribution of a proxy,
# of the answers or of groups of rows differs.
LABELS_BY_PROXY = "labels-by-proxy"
LABELS_BY_ANSWER = "labels-by-answer"
LABELS_BY_GROUP = "labels-by-group"
NOT_AT_RANDOM = frozenset({LABELS_BY_PROXY, LABELS_BY_ANSWER, LABELS_BY_GROUP})

# Code of the warning that rows of a table lack a label, and are assumed to lack it at random.
ROWS_WITHOUT_LABEL = "rows-without-label"

# Codes of all warnings, which are printed among the first lines.
WARNINGS = frozenset({NO_MATCH, ROWS_WITHOUT_LABEL, *NOT_AT_RANDOM})

# Code of the note that an estimate is of the first of several models.
FIRST_MODEL = "first-model"

# Code of the note that compares estimates of the share of a class by a judge and by the labels.
JUDGE_SHARES = "judge-shares"

# Code of the note that the labelled rows of a table are assumed to be a random sample of it.
RANDOM_ROWS = "rows-at-random"

# Code of the note that a column's numbers are written with a decimal comma or a percent sign.
NUMBERS_AS_TEXT = "numbers-as-text"

# Code of the note that the default interval is wider, because other clusters may differ from the drawn ones.
UNLIKE_CLUSTERS = "unlike-clusters"

# Code of the note on drawn units without a label, which a page may replace by a sentence.
UNLABELLED = "units-without-label"


class Note(str):
    """The text of a note, with a code. Logic depends on the code, never on the text.

    Parameters
    ----------
    code : str
        Kind of note, such as `plan-refuted` or `missing-by-proxy`.
    text : str
    """

    __slots__ = ("code",)
    code: str

    def __new__(cls, code: str, text: str) -> Note:
        """Create a note from its code and text."""
        note = super().__new__(cls, text)
        note.code = code
        return note

    def __reduce__(self) -> tuple[type[Note], tuple[str, str]]:
        return Note, (self.code, str(self))


def unlabelled_text(
    drawn: int,
    labelled: int,
    consequence: str = "the labelled units represent them, which is valid only if labels are",
) -> str:
    """Return the sentence on drawn units without a label, without its full stop.

    Notes, warnings and pages use the same text, so that a command prints it once. `consequence` is followed
    by the assumption on the missing labels.
    """
    missing = drawn - labelled
    return (
        f"{missing:,} of {drawn:,} drawn units have no label ({missing / drawn:.1%}); {consequence} missing "
        "at random within strata"
    )


def as_notes(texts: Iterable[str]) -> tuple[Note, ...]:
    """Return each different text once as a note; texts without a code are remarks."""
    notes = (text if isinstance(text, Note) else Note(REMARK, text) for text in texts)
    return tuple(dict.fromkeys(notes))


def has_code(notes: Iterable[str], code: str) -> bool:
    """Return whether a note has this code."""
    return any(isinstance(note, Note) and note.code == code for note in notes)


def without_code(notes: Iterable[str], code: str) -> list[str]:
    """Return the notes that have another code, or none."""
    return [note for note in notes if not (isinstance(note, Note) and note.code == code)]


def warnings_among(notes: Iterable[str]) -> list[str]:
    """Return the notes that are warnings."""
    return [note for note in notes if isinstance(note, Note) and note.code in WARNINGS]
