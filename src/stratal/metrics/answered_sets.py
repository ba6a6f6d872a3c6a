"""Labels and answers that are sets of tags, as the tags that each labelled unit has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import AnyArray, BoolArray, Record
from stratal.designs.sample import Sample
from stratal.errors import InputError, LabelError, list_first, suggest_names
from stratal.estimation.resolve import class_column, none_labelled, split_answers
from stratal.estimation.respondents import Respondents
from stratal.labels.joined_labels import join_labels
from stratal.metrics.tag_counts import TagCounts
from stratal.question.tags import is_set, tags_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnsweredSets(Record):
    """The sets of the labelled units.

    Parameters
    ----------
    tags : tuple of str (T,)
        The tags of all answers and labels, sorted.
    counts : TagCounts
    respondents : Respondents
    labelled : bool (n,)
        Which of the drawn units these are.
    remarks : tuple of str
    """

    tags: tuple[str, ...]
    counts: TagCounts
    respondents: Respondents
    labelled: BoolArray
    remarks: tuple[str, ...] = ()

    def index(self, tag: str) -> int:
        """Return the position of a tag in `tags`.

        Raises
        ------
        InputError
            For a tag that no answer and no label has.
        """
        if tag not in self.tags:
            raise unknown_tag(tag, self.tags)
        return self.tags.index(tag)


def unknown_tag(tag: str, tags: tuple[str, ...]) -> InputError:
    """Return the error of a tag that no answer or label has."""
    return InputError(
        f"no answer or label has the tag {tag!r}",
        allowed=suggest_names(tag, tags),
        action="Write the tag as in the answers.",
    )


def compares_sets(sample: Sample, labels: object, answers: str | None) -> bool:
    """Return whether labels are compared with sets of tags.

    Parameters
    ----------
    sample : Sample
    labels : see `stratal.estimate`
    answers : str, optional
        The column of the answers. Default: that of the sample.
    """
    if not sample.question.outcome.holds_sets:
        return False
    if split_answers(labels)[1] is not None:
        return True
    column = sample.groups.get(answers or sample.question.answer or "")
    return column is not None and all(map(is_set, set(column.tolist())))


def answered_sets(sample: Sample, labels: object, answers: str | None = None) -> AnsweredSets:
    """Return the sets of the labelled units; see `compares_sets`.

    The majority of several labels of one unit counts; a tie is no label.

    Raises
    ------
    LabelError
        If labels are not sets of tags.
    """
    labels, new_answers = split_answers(labels)
    predicted = class_column(sample, answers if new_answers is None else new_answers, "y_pred")
    labels = join_labels(sample, labels)
    if not np.any(labels.labelled):
        raise none_labelled()
    # Labels that are not sets are refused first: they cannot be matched with the answers.
    _refuse_non_sets(sample, class_column(sample, labels, "y_true"), labels.labelled, "label")
    true = class_column(sample, labels, "y_true", predicted[predicted != None])  # noqa: E711
    labelled = np.asarray(true != None, dtype=bool)  # noqa: E711
    _refuse_non_sets(sample, predicted, labelled, "answer")
    answered_tags = sample.question.outcome.tags
    labelled_tags = {tag for text in {*true[labelled], *predicted[labelled]} for tag in tags_of(text)}
    tags = tuple(sorted({*answered_tags, *labelled_tags}))
    respondents = Respondents.of(sample, labelled)
    counts = TagCounts(
        true=_indicators(true[labelled], tags),
        predicted=_indicators(predicted[labelled], tags),
        weighting=respondents.weighting,
    )
    return AnsweredSets(
        tags=tags,
        counts=counts,
        respondents=respondents,
        labelled=labelled,
        remarks=_unanswered_note(true[labelled], answered_tags),
    )


def _refuse_non_sets(sample: Sample, texts: AnyArray, labelled: BoolArray, role: str) -> None:
    """Refuse labelled units (n,) whose label or answer is not a set."""
    is_set_or_missing = [text is None or is_set(text) for text in texts.tolist()]  # a tie counts as no label
    other = labelled & ~np.array(is_set_or_missing, dtype=bool)
    if not np.any(other):
        return
    first = int(np.argmax(other))
    raise LabelError(
        f"the {role} of id {str(sample.ids[first])!r} is not a set of tags",
        given=repr(texts[first]),
        allowed='a list such as ["a", "b"], or [] for no tags',
        action="If labels state right or wrong, leave out the estimand to estimate the share of right "
        "answers.",
    )


def _indicators(texts: AnyArray, tags: tuple[str, ...]) -> BoolArray:
    """Return which of the tags (m, T) the sets (m,) have."""
    column = {tag: at for at, tag in enumerate(tags)}
    rows = {text: [column[tag] for tag in tags_of(text)] for text in set(texts.tolist())}
    table = np.zeros((len(texts), len(tags)), dtype=bool)
    for row, text in enumerate(texts.tolist()):
        table[row, rows[text]] = True
    return table


# Maximum number of tags that a note names.
_MAX_TAGS_NAMED = 5


def _unanswered_note(texts: AnyArray, answered_tags: tuple[str, ...]) -> tuple[str, ...]:
    """Return a note on label tags that no answer in the population has."""
    others = sorted({tag for text in set(texts.tolist()) for tag in tags_of(text)} - {*answered_tags})
    if not answered_tags or not others:
        return ()
    noun = "tags" if len(others) > 1 else "a tag"
    return (f"labels have {noun} that no answer has: {list_first(map(repr, others), _MAX_TAGS_NAMED)}",)
