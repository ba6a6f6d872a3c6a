"""Labels and answers that are sets of tags, as the tags that each labelled unit has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import AnyArray, BoolArray, Record, has_entry
from stratal.designs.sample import Sample
from stratal.errors import InputError, LabelError, list_first, suggest_names
from stratal.estimation.resolve import class_column, no_labels_error, split_answers
from stratal.estimation.respondents import Respondents
from stratal.labels.joined_labels import join_labels
from stratal.metrics.tag_counts import TagCounts
from stratal.question.tags import is_set, tags_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledTagSets(Record):
    """The tags in the label and in the answer of each labelled unit.

    Parameters
    ----------
    tags : tuple of str (T,)
        The tags of all answers and labels, sorted.
    counts : TagCounts
    respondents : Respondents
    labelled : bool (n,)
        Whether each drawn unit has a label.
    remarks : tuple of str
        Notes for the estimates.
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
    """Return whether both the labels and the answers are sets of tags.

    Parameters
    ----------
    sample : Sample
    labels : see `stratal.estimate`
    answers : str, optional
        Column of the model's answers. Default: the answer column of the sample.
    """
    if not sample.question.outcome.holds_sets:
        return False
    # `labelled_tag_sets` raises an error if answers that come with the labels are not sets.
    if split_answers(labels)[1] is not None:
        return True
    column = sample.groups.get(answers or sample.question.answer or "")
    return column is not None and all(map(is_set, set(column.tolist())))


def labelled_tag_sets(sample: Sample, labels: object, answers: str | None = None) -> LabelledTagSets:
    """Return the tags of the labelled units.

    Of several labels of a unit, the majority counts; a tie is no label. The parameters are those of
    `compares_sets`.

    Raises
    ------
    LabelError
        If labels are not sets of tags.
    """
    true_labels, new_answers = split_answers(labels)
    predicted = class_column(sample, answers if new_answers is None else new_answers, "y_pred")
    joined_labels = join_labels(sample, true_labels)
    if not np.any(joined_labels.labelled):
        raise no_labels_error()
    # Labels that are not sets raise this error first, because the comparison with the answers below would
    # raise a less specific one.
    _refuse_non_sets(sample, class_column(sample, joined_labels, "y_true"), joined_labels.labelled, "label")
    true = class_column(sample, joined_labels, "y_true", predicted[has_entry(predicted)])
    labelled = has_entry(true)
    _refuse_non_sets(sample, predicted, labelled, "answer")
    population_tags = sample.question.outcome.tags
    sample_tags = {tag for text in {*true[labelled], *predicted[labelled]} for tag in tags_of(text)}
    tags = tuple(sorted({*population_tags, *sample_tags}))
    respondents = Respondents.of(sample, labelled)
    counts = TagCounts(
        true=_indicators(true[labelled], tags),
        predicted=_indicators(predicted[labelled], tags),
        weighting=respondents.weighting,
    )
    return LabelledTagSets(
        tags=tags,
        counts=counts,
        respondents=respondents,
        labelled=labelled,
        remarks=_unpredicted_tags_note(true[labelled], population_tags),
    )


def _refuse_non_sets(sample: Sample, texts: AnyArray, labelled: BoolArray, role: str) -> None:
    """Raise an error if the label or the answer of a labelled unit (n,) is not a set."""
    # The text of a labelled unit is None if its labels are tied.
    is_set_or_missing = [text is None or is_set(text) for text in texts.tolist()]
    is_invalid = labelled & ~np.array(is_set_or_missing, dtype=bool)
    if not np.any(is_invalid):
        return
    first = int(np.argmax(is_invalid))
    raise LabelError(
        f"the {role} of id {str(sample.ids[first])!r} is not a set of tags",
        given=repr(texts[first]),
        allowed='a list such as ["a", "b"], or [] for no tags',
        action="If labels state right or wrong, leave out the estimand to estimate the share of right "
        "answers.",
    )


def _indicators(texts: AnyArray, tags: tuple[str, ...]) -> BoolArray:
    """Return whether each of the sets (m,) contains each of the tags, as an array (m, T)."""
    tag_index = {tag: index for index, tag in enumerate(tags)}
    indices_by_text = {text: [tag_index[tag] for tag in tags_of(text)] for text in set(texts.tolist())}
    indicators = np.zeros((len(texts), len(tags)), dtype=bool)
    for row, text in enumerate(texts.tolist()):
        indicators[row, indices_by_text[text]] = True
    return indicators


# Maximum number of tags that a note names.
_MAX_TAGS_NAMED = 5


def _unpredicted_tags_note(labels: AnyArray, population_tags: tuple[str, ...]) -> tuple[str, ...]:
    """Return a note on tags of the labels that no answer in the population has."""
    label_tags = {tag for text in set(labels.tolist()) for tag in tags_of(text)}
    unpredicted_tags = sorted(label_tags - {*population_tags})
    if not population_tags or not unpredicted_tags:
        return ()
    noun = "tags" if len(unpredicted_tags) > 1 else "a tag"
    names = list_first(map(repr, unpredicted_tags), _MAX_TAGS_NAMED)
    return (f"labels have {noun} that no answer has: {names}",)
