"""A plan in words and tables, from the dict that is also printed as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stratal.report.text import MOST_STRATA, Page, Table, first_rows, level_text, noted


def plan_page(plan: Mapping[str, Any]) -> Page:
    """Return what is said of a plan (`Plan.to_dict`): what is recommended and what it is expected to give.

    Examples
    --------
    >>> plan_page({"budget": 20, "population_size": 100, "recommended": {"design": "simple-random",
    ...     "estimator": "horvitz-thompson", "expected_standard_error": None, "relative_efficiency": None},
    ...     "designs": [], "strata": [], "assumptions": [], "notes": []}).lines[0]
    'Plan: label 20 of 100 units by a simple-random sample, estimate by horvitz-thompson'
    """
    notes = [*noted(plan["assumptions"], "Assumed"), *noted(plan["notes"])]
    tables = [_designs_table(plan), _strata_table(plan)]
    if plan.get("estimands"):
        tables[0] = _estimands_table(plan["estimands"], plan["confidence_level"])
    return Page(lines=_sentences(plan), tables=tables, notes=notes)


def _sentences(plan: Mapping[str, Any]) -> list[str]:
    chosen, budget = plan["recommended"], plan["budget"]
    error, gain = chosen["expected_standard_error"], chosen["relative_efficiency"]
    what = "Pilot" if plan.get("pilot") else "Plan"
    lines = [
        f"{what}: label {budget:,} of {plan['population_size']:,} units by a {chosen['design']} sample, "
        f"estimate by {chosen['estimator']}"
    ]
    if plan.get("labels"):
        lines.append(_labels_sentence(plan["labels"]))
    if plan.get("estimands"):
        gain = None
    if error is not None:
        hopeful, cautious = plan["half_width_range"]
        lines.append(
            f"Expected standard error {error:.4f}; {level_text(plan['confidence_level'])} about "
            f"± {plan['expected_half_width']:.4f} (hopeful {hopeful:.4f}, cautious {cautious:.4f})"
        )
    elif plan.get("worst_half_width") is not None:
        lines.append(
            f"{_labels_between(*plan['worst_bounds'])}: standard error at most "
            f"{chosen['worst_standard_error']:.4f}; "
            f"{level_text(plan['confidence_level'])} at worst about ± {plan['worst_half_width']:.4f}"
        )
    if gain is not None and gain > 1:
        lines.append(f"About as precise as {gain * budget:,.0f} labels of a simple random sample.")
    if plan.get("detectable_difference") is not None:
        lines.append(
            f"Two models on these labels: a difference of {plan['detectable_difference']:.4f} or more will "
            "show in four draws of five (a smaller one will if they err on the same units)."
        )
    return lines


def _labels_between(low: float, high: float) -> str:
    """Return what the worst is the worst of."""
    return "With labels of 0 or 1" if (low, high) == (0, 1) else f"With labels of {low:g} to {high:g}"


def _labels_sentence(labels: Mapping[str, Any]) -> str:
    """Return which labels the promise follows from, and what they showed of the proxy."""
    told = labels["proxy_mean"]
    proxy = "" if told is None else f", where the proxy says {told:.3g}"
    return (
        f"Recalibrated on {labels['used']:,} labels of {labels['source']}: their mean is "
        f"{labels['mean']:.3g}{proxy}"
    )


def _designs_table(plan: Mapping[str, Any]) -> Table:
    names = (
        "design",
        "estimator",
        "hopeful_standard_error",
        "expected_standard_error",
        "cautious_standard_error",
        "relative_efficiency",
    )
    return Table(
        title="Designs",
        header=[name.replace("_standard_error", " SE").replace("_", " ") for name in names],
        rows=[
            [_or_worst(row) if name == "expected_standard_error" else row[name] for name in names]
            for row in plan["designs"]
        ],
    )


def _estimands_table(rows: Sequence[Mapping[str, Any]], confidence_level: float) -> Table:
    """Return what is expected of each of several estimands."""
    headers = {
        "estimand": "estimand",
        "labels": "labels",
        "expected_standard_error": "expected SE",
        "expected_half_width": f"{level_text(confidence_level)} ±",
        "wanted_half_width": "wanted ±",
        "relative_efficiency": "relative efficiency",
    }
    names = [name for name in headers if any(row[name] is not None for row in rows)]
    return Table(
        title="Estimands",
        header=[headers[name] for name in names],
        rows=[[row[name] for name in names] for row in rows],
    )


def _or_worst(row: Mapping[str, Any]) -> Any:
    """Return the expected standard error, or what it is at most."""
    expected, worst = row["expected_standard_error"], row.get("worst_standard_error")
    return f"at most {worst:.4f}" if expected is None and worst is not None else expected


def _strata_table(plan: Mapping[str, Any]) -> Table:
    names = ("name", "size", "n", "proxy_mean", "expected_standard_deviation")
    return Table(
        title="Strata",
        header=("stratum", "units", "to label", "mean proxy", "expected sd"),
        rows=first_rows([[row[name] for name in names] for row in plan["strata"]], MOST_STRATA, "strata"),
    )
