"""The name of an estimated quantity in the words of its field, and whether it is shown in percent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stratal.labels.label_values import LabelValue

# Also the quantity of labels that are compared with answers, whatever the words of the labels are.
ACCURACY = "accuracy"

# Names of the share of a label, or of ones in a column.
_NAMES_OF_SHARES = {
    **dict.fromkeys(("pass", "passed"), "pass rate"),
    **dict.fromkeys(("correct", "right", "is_correct", "acc", ACCURACY), ACCURACY),
    **dict.fromkeys(("win", "won"), "win rate"),
}

# Metrics that are read as shares of units. Others, such as kappa and AUC, are shown as numbers.
_SHARES = frozenset(
    (
        *(ACCURACY, "agreement", "balanced_accuracy", "precision", "false_discovery_rate", "recall", "f1"),
        *("fbeta", "specificity", "negative_predictive_value", "false_positive_rate"),
        *("false_negative_rate", "prevalence", "predicted_prevalence", "rogan_gladen", "within"),
        *("interval_coverage", "win_rate", "consistency", "no_verdict", "share", "average"),
    )
)

# Estimands that are shares if the labels are 0 and 1, or classes.
_MEANS = frozenset(("mean", "level_mean", "means", "difference", "differences"))

# Names of metrics that are not written in lower case.
_ABBREVIATIONS = {
    **{name: name.upper() for name in ("auc", "f1", "icc", "mae", "mcc", "mse", "rmse")},
    "fbeta": "F-beta",
    "r2": "R²",
}


def is_share(label: Mapping[str, str | None], *, labels_are_shares: bool) -> bool:
    """Return whether an estimate is shown in percent.

    Parameters
    ----------
    label : mapping of str
        What the estimate is of; empty for the mean.
    labels_are_shares : bool
        Whether a mean of the labels is a share.
    """
    name = label.get("metric") or label.get("estimand") or "mean"
    kind = name.partition(":")[0].partition("@")[0].partition(",")[0]
    if kind in _MEANS:
        return labels_are_shares
    return kind in _SHARES


def are_shares(values: Sequence[LabelValue]) -> bool:
    """Return whether all labels that count are 0 or 1, or classes compared with answers."""
    meanings = [row.meaning for row in values if row.meaning is not None]
    return bool(meanings) and all(isinstance(entry, str) or entry in (0.0, 1.0) for entry in meanings)


def mean_name(values: Sequence[LabelValue], column: str = "", *, is_share: bool, is_right: bool) -> str:
    """Return the name of a mean by the meaning of its labels, such as `pass rate` or `share of 'harmful'`.

    Parameters
    ----------
    values : sequence of LabelValue
        The values of the labels.
    column : str
        The labels' column, or empty.
    is_share : bool
        Whether the mean is a share.
    is_right : bool
        Whether a label 1 means that the answer is right, as a proxy was declared to predict.
    """
    words = [row.value for row in values if row.meaning == 1.0 and not row.counts_as_itself]
    # A column of nested JSON is named by its path, such as `human.correct`.
    name_of_column = column.rpartition(".")[2]
    names = {_NAMES_OF_SHARES.get(word.casefold()) for word in words or [name_of_column]}
    if is_share and len(names) == 1 and None not in names:
        return str(names.pop())
    if is_share and words:
        return f"share of {' or '.join(map(repr, words))}"
    if is_share and is_right:
        return ACCURACY
    if is_share:
        if column:
            return f"share of ones in `{column}`"
        return "share of ones"
    if column:
        return f"mean of `{column}`"
    return "mean outcome"


def label_name(label: Mapping[str, str | None], *, is_difference: bool = False) -> str:
    """Return the name of an estimate by its label, such as `F1 of cat` or `accuracy: model_a − model_b`.

    Examples
    --------
    >>> label_name({"estimand": "f1:cat"}), label_name({"estimand": "average:f1,average=micro"})
    ('F1 of cat', 'micro F1')
    >>> label_name({"metric": "recall", "class": "cat"}), label_name({"domain": "de"})
    ('recall of cat', 'de')
    """
    entries = dict(label)
    text = entries.pop("estimand", None)
    names = []
    if text is not None:
        names.append(_estimand_name(text))
    metric = entries.pop("metric", None)
    values = [str(value) for value in entries.values() if value]
    separator = " − " if is_difference else " of "
    if metric is not None:
        names.append(" of ".join([metric_words(metric), *reversed(values)]))
    elif values:
        names.append(separator.join(values if is_difference else reversed(values)))
    return ": ".join(names)


def metric_words(name: str) -> str:
    """Return the name of a metric in words: `F1`, `false positive rate`."""
    return _ABBREVIATIONS.get(name, name.replace("_", " "))


def _estimand_name(text: str) -> str:
    """Return the name of an estimand's text; options such as `probability=COLUMN` are not part of it."""
    kind, _, arguments = text.partition(":")
    parts = [part for part in arguments.split(",") if part]
    listed = [part for part in parts if "=" not in part]
    if kind == "average":
        averages = [part.removeprefix("average=") for part in parts if part.startswith("average=")]
        names = ", ".join(map(metric_words, listed))
        return f"{next(iter(averages), 'macro')} {names}"
    name, at, group = kind.partition("@")
    words = metric_words(name)
    if at and "=" in group:
        words = f"{words} at {group.replace('=', ' ')}"
    elif at:
        words = f"{words} by {group}"
    return words + (f" of {', '.join(listed)}" if listed else "")
