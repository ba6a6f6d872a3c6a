"""An estimate in words, and tables of several: from the dict that is also printed as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stratal.report.answers import worth_text
from stratal.report.leaderboard import leaderboard_table
from stratal.report.text import (
    MOST_STRATA,
    Page,
    Table,
    first_rows,
    interval_text,
    level_text,
    noted,
    number,
)

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
    """Return what is said of an estimate (`Estimate.to_dict`), or of another quantity with such a dict.

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
    told = len(strata) > 1 and any(row["mean"] is not None for row in strata)
    tables = [_strata_table(strata, most_rows)] if told else []
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
        rows=first_rows([[row.get(name) for name in names] for row in rows], most_rows, title.lower()),
    )


def _sentences(estimate: Mapping[str, Any]) -> list[str]:
    if estimate["estimate"] is None:
        ends = estimate.get("confidence_interval")
        if ends is None:
            return ["Estimate undefined"]
        return [f"Estimate undefined, {level_text(estimate['confidence_level'])} {interval_text(ends)}"]
    lines = [_headline(estimate), _facts(estimate), *_worth(estimate), *_nonresponse(estimate)]
    lines += _required(estimate)
    if estimate.get("lam"):
        lines.append("λ = " + ", ".join(map(number, estimate["lam"])))
    return lines


def _headline(estimate: Mapping[str, Any]) -> str:
    parts = estimate.get("estimand", "Estimate").split(",")
    name = ",".join(part for part in parts if "=" not in part)
    if "probability" in estimate:
        name = f"{estimate['probability']:g} quantile:"
    return f"{name} {value_with_interval(estimate)}"


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


def _worth(estimate: Mapping[str, Any]) -> list[str]:
    """Return the sentence that says how many random labels these are worth."""
    worth = worth_text(estimate)
    if worth is None:
        return []
    labels = f"{estimate['n']:,} label" + ("s" if estimate["n"] != 1 else "")
    if worth.startswith("worth"):
        return [f"Your {labels} {'are' if estimate['n'] != 1 else 'is'} {worth}."]
    return [f"Your {labels} came {worth}."]


def _nonresponse(estimate: Mapping[str, Any]) -> list[str]:
    counts = estimate.get("nonresponse")
    if counts is None or counts["drawn"] <= counts["labelled"]:
        return []
    return [
        f"{counts['drawn'] - counts['labelled']:,} of {counts['drawn']:,} drawn units have no label "
        f"({counts['rate']:.1%}); the labels of their stratum stand for them, as if labels were missing at "
        f"random.{worst_text(counts)}"
    ]


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


def _required(estimate: Mapping[str, Any]) -> list[str]:
    wanted = estimate.get("requirement")
    if wanted is None:
        return []
    limits = [
        *([f"lower end at least {wanted['lower']:g}"] if wanted["lower"] is not None else []),
        *([f"upper end at most {wanted['upper']:g}"] if wanted["upper"] is not None else []),
    ]
    return [f"Required: {', '.join(limits)}: {'met' if wanted['met'] else 'NOT met'}."]


def _strata_table(strata: Sequence[Mapping[str, Any]], most_rows: int | None) -> Table:
    names = ("name", "size", "n", "mean", "standard_deviation")
    rows = first_rows([[row[name] for name in names] for row in strata], most_rows, "strata")
    return Table(title="Strata", header=("stratum", "units", "labels", "mean", "sd"), rows=rows)
