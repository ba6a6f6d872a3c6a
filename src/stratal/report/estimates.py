"""An estimate in words, and tables of several: from the dict that is also printed as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stratal.report.text import MOST_STRATA, Page, Table, first_rows, interval_text, level_text, noted, number


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
    """Return the answer of several models: the best, and which cannot be distinguished from it."""
    first, labels = board[0], _labelled(findings["estimate"])
    found = _with_interval(first["model"], first["mean"], first["confidence_interval"], findings)
    others = [row["model"] for row in board[1:] if row["rank"] is None or row["rank"][0] == 1]
    others_text = f"; not told apart from it: {', '.join(others)}" if others else ""
    return f"Best of {len(board)} models: {found}, from {labels:,} labels{others_text}."


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
    return interval_text(interval)


def _percent(value: float) -> str:
    return f"{100 * value:.1f}" if abs(value) >= 0.0005 or value == 0 else f"{100 * value:.2g}"


WIDTH = 24
"""Characters of a bar."""


def leaderboard_table(rows: Sequence[Mapping[str, Any]], confidence_level: float) -> Table:
    """Return the table of a leaderboard.

    Parameters
    ----------
    rows : sequence of dict
        `rank` (first and last that are left open, or None), `model`, `mean`, `confidence_interval`, and
        `to_best`: difference to the best model and its interval, None for the best itself.
    confidence_level : float

    Examples
    --------
    >>> rows = [{"rank": [1, 1], "model": "new", "mean": 0.8, "confidence_interval": [0.7, 0.9],
    ...          "to_best": None, "to_best_interval": None}]
    >>> leaderboard_table(rows, 0.95).cells()[0][:3]
    ['1', 'new', '0.8000']
    """
    known = [row["confidence_interval"] for row in rows if None not in (row["confidence_interval"] or [None])]
    ends = [end for interval in known for end in interval] or [0.0, 1.0]
    level = level_text(confidence_level)
    return Table(
        title="Leaderboard",
        header=("rank", "model", "mean", level, "", "to the best", level),
        rows=[
            [
                rank_text(row["rank"]),
                row["model"],
                row["mean"],
                row["confidence_interval"],
                bar(row["confidence_interval"], row["mean"], min(ends), max(ends)),
                row["to_best"],
                row["to_best_interval"],
            ]
            for row in rows
        ],
    )


def rank_text(rank: Sequence[int] | None) -> str:
    """Return a rank, or the band of ranks that is left open.

    Examples
    --------
    >>> rank_text([1, 1]), rank_text([1, 3]), rank_text(None)
    ('1', '1 to 3', '–')
    """
    if rank is None:
        return "–"
    first, last = rank
    return str(first) if first == last else f"{first} to {last}"


def bar(interval: Sequence[float | None] | None, value: float, low: float, high: float) -> str:
    """Return an interval and its value as a line of characters from `low` to `high`.

    Examples
    --------
    >>> bar([0.25, 0.75], 0.5, 0.0, 1.0)
    '      ├─────●────┤      '
    """
    if interval is None or None in interval or not high > low:
        return ""
    place = [round((float(x or 0.0) - low) / (high - low) * (WIDTH - 1)) for x in (*interval, value)]
    left, right, middle = place
    line = [" "] * WIDTH
    line[left : right + 1] = "─" * (right - left + 1)
    line[left], line[right], line[middle] = "├", "┤", "●"
    return "".join(line)


TABLES = {
    "estimands": "Quantities",
    "outcomes": "Quantities",
    "metrics": "Metrics",
    "comparisons": "Differences",
    "domains": "Groups",
}
"""Tables that an estimate's dict may carry besides its strata, and their titles in a report."""

_KINDS = (
    ("design", "sample"),
    ("estimator", "estimator"),
    ("interval_method", "interval"),
    ("outcome", "outcome"),
)
_HEADERS = {"standard_error": "standard error", "p_value": "p"}


MOST_ESTIMATES = 1_000
"""Estimates that a table shows: of groups, classes, models."""


def estimate_page(estimate: Mapping[str, Any], most_rows: int | None = MOST_STRATA) -> Page:
    """Return the page of an estimate (`Estimate.to_dict`), or of another quantity with such a dict.

    Parameters
    ----------
    estimate : dict
        `estimate`, `standard_error`, `confidence_interval`, `confidence_level`, `n`; the rest where known.
        Without an interval, `no_interval` says why.
    most_rows : int, optional
        Strata shown, with a line that says how many more there are; all for None.

    Examples
    --------
    >>> found = {"estimate": 0.5, "standard_error": 0.1, "confidence_interval": [0.3, 0.7],
    ...          "confidence_level": 0.9, "n": 20, "interval_method": "t", "notes": []}
    >>> estimate_page(found).lines
    ['Estimate 0.5, 90% interval 0.3 to 0.7', 'Standard error 0.1; 20 labels; t interval']
    """
    strata = estimate.get("strata", ())
    varied = len(strata) > 1 and any(row["mean"] is not None for row in strata)
    tables = [_strata_table(strata, most_rows)] if varied else []
    if "leaderboard" in estimate:
        tables.append(leaderboard_table(estimate["leaderboard"], estimate["confidence_level"]))
    tables += [
        estimates_table(kind.capitalize(), estimate[kind], estimate["confidence_level"])
        for kind in TABLES
        if kind in estimate
    ]
    return Page(lines=_sentences(estimate), tables=tables, notes=noted(estimate.get("notes", ())))


def estimates_table(
    title: str,
    rows: Sequence[Mapping[str, Any]],
    confidence_level: float,
    most_rows: int | None = MOST_ESTIMATES,
) -> Table:
    """Return a table of several estimates: metrics, comparisons, domains; rows' own dicts are left out.

    Of more than `most_rows` the first are shown, and a line says how many more there are; all for None.

    Examples
    --------
    >>> estimates_table("Metrics", [{"metric": "recall", "confidence_interval": [0.2, 0.7]}], 0.95).header
    ['metric', '95% interval']
    """
    names = list(
        dict.fromkeys(name for row in rows for name in row if not isinstance(row[name], tuple | dict))
    )
    headers = _HEADERS | {"confidence_interval": level_text(confidence_level)}
    return Table(
        title=title,
        header=[headers.get(name, name.replace("_", " ")) for name in names],
        rows=first_rows([[row.get(name) for name in names] for row in rows], title.lower(), most=most_rows),
    )


def _sentences(estimate: Mapping[str, Any]) -> list[str]:
    if estimate["estimate"] is None:
        ends = estimate.get("confidence_interval")
        if ends is None:
            return ["Estimate undefined"]
        return [f"Estimate undefined, {level_text(estimate['confidence_level'])} {interval_text(ends)}"]
    name = ",".join(part for part in estimate.get("estimand", "Estimate").split(",") if "=" not in part)
    if "probability" in estimate:
        name = f"{estimate['probability']:g} quantile:"
    lines = [f"{name} {value_with_interval(estimate)}", _facts(estimate)]
    worth, labels = worth_text(estimate), f"{estimate['n']:,} label" + ("s" if estimate["n"] != 1 else "")
    if worth is not None:
        be = "are" if estimate["n"] != 1 else "is"
        lines.append(f"Your {labels} {be if worth.startswith('worth') else 'came'} {worth}.")
    counts, wanted = estimate.get("nonresponse"), estimate.get("requirement")
    if counts is not None and counts["drawn"] > counts["labelled"]:
        lines.append(
            f"{counts['drawn'] - counts['labelled']:,} of {counts['drawn']:,} drawn units have no label "
            f"({counts['rate']:.1%}); the labels of their stratum stand for them, as if labels were missing "
            f"at random.{worst_text(counts)}"
        )
    if wanted is not None:
        ends = {"lower end at least": wanted["lower"], "upper end at most": wanted["upper"]}
        limits = ", ".join(f"{what} {end:g}" for what, end in ends.items() if end is not None)
        lines.append(f"Required: {limits}: {'met' if wanted['met'] else 'NOT met'}.")
    if estimate.get("lam"):
        lines.append("λ = " + ", ".join(map(number, estimate["lam"])))
    return lines


def value_with_interval(estimate: Mapping[str, Any]) -> str:
    """Return an estimate's value and its interval, or why there is none.

    Examples
    --------
    >>> value_with_interval({"estimate": 0.5, "confidence_interval": [0.3, 0.7], "confidence_level": 0.9})
    '0.5, 90% interval 0.3 to 0.7'
    """
    found = number(estimate["estimate"])
    if estimate["confidence_interval"] is None:
        return f"{found}; no interval: {estimate.get('no_interval', 'it is undefined')}"
    level = level_text(estimate["confidence_level"])
    return f"{found}, {level} {interval_text(estimate['confidence_interval'])}"


def _facts(estimate: Mapping[str, Any]) -> str:
    counted, given = estimate["n"], estimate.get("labels", estimate["n"])
    labels = f"{given:,} labels"
    if estimate.get("population_size") is not None:
        labels += f" of {estimate['population_size']:,.0f} units"
    if counted < given:
        labels += f", {counted:,} of them in its denominator"
    kinds = [f"{estimate[name]} {word}" for name, word in _KINDS if estimate.get(name)]
    kinds += [f"target: {estimate['target']}"] if "target" in estimate else []
    error = f"Standard error {number(estimate['standard_error'])}; " if "standard_error" in estimate else ""
    return f"{error}{labels}; {', '.join(kinds)}"


def worst_text(counts: Mapping[str, Any]) -> str:
    """Return a sentence with what the estimate is at worst where labels are missing; empty if not known.

    Examples
    --------
    >>> worst_text({"worst_bounds": [0.62, 0.82]})
    ' If all missing labels were at a bound, the estimate would be 0.62 or 0.82 (without a proxy).'
    """
    ends = counts.get("worst_bounds")
    if ends is None:
        return ""
    low, high = map(number, ends)
    return f" If all missing labels were at a bound, the estimate would be {low} or {high} (without a proxy)."


def _strata_table(strata: Sequence[Mapping[str, Any]], most_rows: int | None) -> Table:
    names = ("name", "size", "n", "mean", "standard_deviation")
    rows = first_rows([[row[name] for name in names] for row in strata], "strata", most=most_rows)
    return Table(title="Strata", header=("stratum", "units", "labels", "mean", "sd"), rows=rows)
