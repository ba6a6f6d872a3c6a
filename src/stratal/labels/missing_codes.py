"""Errors about codes of missing labels: numbers such as -1 and 99 in rows without a label.

A code that counts as a label biases the estimate, and a label that counts as a code is lost. The user must
therefore declare the meaning of a number that is probably a code, by the distribution of the other labels
([suspected_codes.py](suspected_codes.py)), or because it occurs among words. It is declared by bounds of the
labels that contain it, by a mapping, or if it is a class of the model.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

from stratal.arrays import number_of_text
from stratal.errors import LabelError
from stratal.labels.joined_labels import JoinedLabels
from stratal.labels.label_values import (
    are_numeric_labels,
    class_text,
    comparison_key,
    format_mapping,
)
from stratal.labels.labels import Labels
from stratal.labels.suspected_codes import LOSS, suspected_codes
from stratal.question.code_numbers import is_missing_code

# Minimum mean number of labels of a class; words that occur less often are free text.
MIN_LABELS_PER_CLASS = 2


def refuse_missing_code(
    counts: Mapping[str, int],
    source: str,
    column: str,
    *,
    bounds: tuple[float, float] | None = None,
    classes: Collection[str] | None = None,
    right_or_wrong: bool = False,
) -> None:
    """Refuse labels if one is probably a code of missing labels, and its meaning is not declared.

    Parameters
    ----------
    counts : mapping of str to int
        Number of labels by text, without those whose meaning is declared.
    source : str
        File or table with the labels, for the error.
    column : str
    bounds : (float, float), optional
        Declared bounds of the labels: a code within them is a label.
    classes : collection of str, optional
        The classes of a model, if labels are compared with them: a code among them is a class.
    right_or_wrong : bool
        Whether labels state if the model's answer is right. Otherwise, -1 may be a loss next to 0 and 1.

    Raises
    ------
    LabelError
        With the options that declare the meaning of the code.
    """
    if not any(map(is_missing_code, counts)):
        return
    are_words = not are_numeric_labels(counts)
    if are_words:
        code_counts = {text: count for text, count in counts.items() if is_missing_code(text)}
        count_of = _counts_of_numbers(code_counts)
        codes = _codes_among_words(counts, classes or ())
    else:
        count_of = _counts_of_numbers(counts)
        has_losses = classes is None and not right_or_wrong
        codes = _codes_among_numbers(count_of, classes or (), has_losses=has_losses)
    if bounds is not None:
        low, high = bounds
        codes = [code for code in codes if not low <= code <= high]
    if not codes:
        return
    names = _join([class_text(code) for code in codes])
    raise LabelError(
        f"{source}: {names} in {column!r} may mean that a row has no label",
        given=_describe_counts(count_of, codes, sum(counts.values())),
        action=_possible_actions(count_of, codes, is_class=classes is not None or are_words),
    )


AnyLabels = TypeVar("AnyLabels", Labels, JoinedLabels)


def refuse_missing_codes(
    labels: AnyLabels,
    column: str,
    *,
    bounds: tuple[float, float] | None = None,
    classes: Collection[str] | None = None,
    right_or_wrong: bool = False,
) -> AnyLabels:
    """Return labels with `codes_checked`; see `refuse_missing_code` for the check."""
    if not labels.codes_checked:
        refuse_missing_code(
            labels.undeclared_counts(),
            labels.source,
            column,
            bounds=bounds,
            classes=classes,
            right_or_wrong=right_or_wrong,
        )
    return replace(labels, codes_checked=True)


def _counts_of_numbers(counts: Mapping[str, int]) -> dict[float, int]:
    """Return the number of labels by number, from that by text; 99 and 99.0 are one number."""
    count_of: dict[float, int] = {}
    for text, count in counts.items():
        number = number_of_text(text)
        count_of[number] = count_of.get(number, 0) + count
    return count_of


def _codes_among_numbers(
    count_of: Mapping[float, int], classes: Collection[str], *, has_losses: bool
) -> list[float]:
    """Return the probable codes among numbers, without the classes of a model."""
    known_classes = {number_of_text(name) for name in classes}
    # Numbers cannot be compared with classes that are words.
    if np.any(np.isnan([*count_of, *known_classes])):
        return []
    # A class of the model is a possible label, even if no label is this class.
    all_counts = {**dict.fromkeys(known_classes, 1), **count_of}
    return [code for code in suspected_codes(all_counts, has_losses=has_losses) if code not in known_classes]


def _codes_among_words(counts: Mapping[str, int], classes: Collection[str]) -> list[float]:
    """Return the codes among labels that are otherwise words, without the classes of a model.

    In free text, which differs in nearly every row, a number may be an answer.
    """
    known_classes = {comparison_key(name) for name in classes}
    codes = {text for text in counts if is_missing_code(text) and comparison_key(text) not in known_classes}
    words = [text for text in counts if text not in codes]
    if not codes or any(not np.isnan(number_of_text(word)) for word in (*words, *classes)):
        return []
    word_count = sum(counts[word] for word in words)
    code_count = sum(counts[code] for code in codes)
    is_free_text = word_count < MIN_LABELS_PER_CLASS * len(words)
    # If most labels are numbers, these are labels, and the words are exceptions.
    if is_free_text or code_count > word_count:
        return []
    return sorted({number_of_text(code) for code in codes})


def _join(texts: list[str]) -> str:
    """Return a list as text: `97, 98 and 99`."""
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def _describe_counts(count_of: Mapping[float, int], codes: list[float], total: int) -> str:
    """Return the range of the other labels, and how often each code occurs among all labels."""
    code_counts = _join([f"{class_text(code)} ({count_of[code]:,} of {total:,})" for code in codes])
    other_labels = set(count_of).difference(codes)
    if other_labels:
        return f"labels from {min(other_labels):g} to {max(other_labels):g}, and {code_counts}"
    if sum(count_of.values()) < total:
        return f"words, and {code_counts}"
    return f"only {code_counts}"


def _possible_actions(count_of: Mapping[float, int], codes: list[float], *, is_class: bool) -> str:
    """Return the options that declare the meaning of codes."""
    texts = [class_text(code) for code in codes]
    no_label = f"If so, pass {format_mapping(dict.fromkeys(texts))}"
    if len(codes) > 1:
        no_label += ", listing only the codes that mean this"
    no_label += "."
    as_itself = format_mapping(dict(zip(texts, codes, strict=True)))
    is_one = len(codes) == 1
    if is_class:
        condition = "it is a class, map it to itself" if is_one else "they are classes, map each to itself"
        return f"{no_label} If {condition}: {as_itself}."
    condition = "it is a real label" if is_one else "they are real labels"
    other_labels = set(count_of).difference(codes)
    unbounded = f"for an estimand without bounds, {as_itself}"
    # A code that is mapped to itself would lie outside the values of labels that are 0 or 1.
    if other_labels and other_labels <= {0.0, 1.0}:
        unbounded = f"that it has none: outcome='unbounded' (--outcome unbounded) and {as_itself}"
    lowest = min(count_of)
    highest = max(count_of)
    if lowest == highest:  # bounds must differ
        lowest = min(lowest, 0.0)
        highest = max(highest, 1.0)
    low = class_text(lowest)
    high = class_text(highest)
    actions = (
        f"{no_label} If {condition}, state the range of the labels: bounds=({low}, {high}) "
        f"(--bounds={low},{high}), or {unbounded}."
    )
    if codes == [LOSS] and 1.0 in other_labels and other_labels <= {0.0, 1.0}:
        actions += " If it means wrong or a loss, and only 1 counts: positive='1' (--positive 1)."
    return actions
