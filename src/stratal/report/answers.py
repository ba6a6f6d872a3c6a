"""The answer of a report in one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stratal.report.text import level_text, number


def answer_sentence(findings: Mapping[str, Any]) -> str:
    """Return the answer: the quantity, its interval, and what the labels are worth.

    Parameters
    ----------
    findings : dict
        `quantity`, `share`, and `estimate` (`Estimate.to_dict`).

    Examples
    --------
    >>> estimate = {"estimate": 0.931, "confidence_interval": [0.916, 0.944], "confidence_level": 0.95,
    ...     "n": 500, "effective_sample_size": 1130.0, "effective_sample_size_interval": [950, 1300]}
    >>> answer_sentence({"quantity": "accuracy", "share": True, "estimate": estimate})
    'Accuracy 93.1%, 95% interval 91.6–94.4%, from 500 labels worth 1,130 random ones (950–1,300).'
    """
    estimate, board = findings["estimate"], findings["estimate"].get("leaderboard")
    if board:
        return _best(board, findings)
    named = findings["quantity"][:1].upper() + findings["quantity"][1:]
    found = _with_interval(named, estimate["estimate"], estimate["confidence_interval"], findings)
    worth = worth_text(estimate)
    return f"{found}, from {_labelled(estimate):,} labels{f' {worth}' if worth else ''}."


def _labelled(estimate: Mapping[str, Any]) -> int:
    """Return the labelled units; those in the denominator of a ratio may be fewer."""
    return int((estimate.get("nonresponse") or {"labelled": estimate["n"]})["labelled"])


def _with_interval(name: str, value: Any, interval: Any, findings: Mapping[str, Any]) -> str:
    found = f"{name} {value_text(value, findings)}"
    if interval is None:
        return found
    level = level_text(findings["estimate"]["confidence_level"])
    return f"{found}, {level} {ends_text(interval, share=findings['share'])}"


def _best(board: Sequence[Mapping[str, Any]], findings: Mapping[str, Any]) -> str:
    """Return the answer of several models: the best, and which are not told apart from it."""
    first, labels = board[0], _labelled(findings["estimate"])
    found = _with_interval(first["model"], first["mean"], first["confidence_interval"], findings)
    others = [row["model"] for row in board[1:] if row["rank"] is None or row["rank"][0] == 1]
    told = f"; not told apart from it: {', '.join(others)}" if others else ""
    return f"Best of {len(board)} models: {found}, from {labels:,} labels{told}."


def worth_text(estimate: Mapping[str, Any]) -> str | None:
    """Return how many random labels these are worth, with the range, or how many give as narrow an interval.

    None where neither is known.

    Examples
    --------
    >>> worth_text({"effective_sample_size": 1130.0, "effective_sample_size_interval": [950, 1300]})
    'worth 1,130 random ones (950–1,300)'
    >>> worth_text({"effective_sample_size": 1130.0, "random_labels_of_equal_width": 610.0})
    'with an interval as narrow as that of 610 random ones'
    """
    equal, size = estimate.get("random_labels_of_equal_width"), estimate.get("effective_sample_size")
    if equal is not None:
        return f"with an interval as narrow as that of {equal:,.0f} random ones"
    if size is None:
        return None
    ends = [f"{end:,.0f}" for end in estimate.get("effective_sample_size_interval") or ()]
    return f"worth {size:,.0f} random ones" + (f" ({'–'.join(ends)})" if len(set(ends)) == 2 else "")


def value_text(value: float | None, findings: Mapping[str, Any]) -> str:
    """Return a value as people say it: a share in percent, anything else as a number.

    Examples
    --------
    >>> value_text(0.9312, {"share": True}), value_text(3.51234, {"share": False})
    ('93.1%', '3.512')
    """
    if value is None:
        return "–"
    return f"{_percent(value)}%" if findings["share"] else number(value)


def ends_text(interval: Sequence[float | None], *, share: bool) -> str:
    """Return the ends of an interval as people say them.

    Examples
    --------
    >>> ends_text([0.916, 0.944], share=True), ends_text([None, 1.5], share=False)
    ('91.6–94.4%', '−∞ to 1.5')
    """
    low, high = interval
    if share and low is not None and high is not None:
        return f"{_percent(low)}–{_percent(high)}%"
    return f"{'−∞' if low is None else number(low)} to {'∞' if high is None else number(high)}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}" if abs(value) >= 0.0005 or value == 0 else f"{100 * value:.2g}"
