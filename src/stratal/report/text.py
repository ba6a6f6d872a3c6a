"""Plain text of results, for terminals and logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stratal.planning import Plan


def text_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return an aligned table: the first column to the left, the others to the right.

    Examples
    --------
    >>> print(text_table(["stratum", "units"], [["low", 12], ["high", 7]]))
    stratum  units
    low         12
    high         7
    """
    cells = [[_cell(entry) for entry in row] for row in [header, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = []
    for row in cells:
        rest = (entry.rjust(width) for entry, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join([row[0].ljust(widths[0]), *rest]).rstrip())
    return "\n".join(lines)


def plan_text(plan: Plan) -> str:
    """Return a plan as readable text.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 50 + [0.9] * 50)
    >>> plan_text(stratal.plan(population, budget=20)).splitlines()[0]
    'Plan: label 20 of 100 units by a stratified sample, estimate by horvitz-thompson'
    """
    lines = plan_headline(plan)
    described = plan.to_dict()
    lines += ["", text_table(DESIGN_HEADER, design_rows(described))]
    lines += ["", text_table(STRATUM_HEADER, stratum_rows(described))]
    lines += [""] + [f"Assumed: {line}" for line in plan.assumptions]
    lines += [f"Note: {line}" for line in plan.notes]
    return "\n".join(lines)


def plan_headline(plan: Plan) -> list[str]:
    """Return the first lines of a plan: what is recommended, and what it is expected to give.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 100)
    >>> plan_headline(stratal.plan(population, budget=20))[0]
    'Plan: label 20 of 100 units by a simple-random sample, estimate by horvitz-thompson'
    """
    chosen = plan.recommended
    lines = [
        f"Plan: label {plan.budget:,} of {plan.population_size:,} units by a {chosen.design} sample, "
        f"estimate by {chosen.estimator}"
    ]
    if chosen.expected_standard_error is not None and plan.expected_half_width is not None:
        lines.append(
            f"Expected standard error {chosen.expected_standard_error:.4f}; "
            f"{plan.confidence_level:.0%} interval about ± {plan.expected_half_width:.4f}"
        )
    if chosen.relative_efficiency is not None and chosen.relative_efficiency > 1:
        worth = round(chosen.relative_efficiency * plan.budget)
        lines.append(f"About as precise as {worth:,} labels of a simple random sample.")
    return lines


DESIGN_HEADER = ("design", "estimator", "expected standard error", "relative efficiency")
STRATUM_HEADER = ("stratum", "units", "to label", "mean proxy", "expected sd")


def design_rows(plan: dict[str, Any]) -> list[list[Any]]:
    """Return the rows of a plan's table of designs, from `Plan.to_dict`.

    Examples
    --------
    >>> design_rows({"designs": []})
    []
    """
    return [
        [row["design"], row["estimator"], _fixed(row["expected_standard_error"], 4),
         _fixed(row["relative_efficiency"], 2)]
        for row in plan["designs"]
    ]  # fmt: skip


def stratum_rows(plan: dict[str, Any]) -> list[list[Any]]:
    """Return the rows of a plan's table of strata, from `Plan.to_dict`.

    Examples
    --------
    >>> stratum_rows({"strata": []})
    []
    """
    return [
        [row["name"], row["size"], row["n"], _fixed(row["proxy_mean"], 4),
         _fixed(row["expected_standard_deviation"], 4)]
        for row in plan["strata"]
    ]  # fmt: skip


COLUMN_HEADER = ("column", "kind", "missing", "distinct", "least", "mean", "most")
PROXY_HEADER = ("proxy", "scale", "mean", "10 %", "50 %", "90 %")


def column_rows(found: dict[str, Any]) -> list[list[Any]]:
    """Return the rows of a table of columns, from `describe_columns`.

    Examples
    --------
    >>> column_rows({"columns": []})
    []
    """
    return [
        [row["name"], row["kind"], row["missing"], row["distinct"],
         *(_short(row[key]) for key in ("minimum", "mean", "maximum"))]
        for row in found["columns"]
    ]  # fmt: skip


def proxy_rows(found: dict[str, Any]) -> list[list[Any]]:
    """Return the rows of a table of proxies, from `describe_proxies`.

    Examples
    --------
    >>> proxy_rows({"proxies": []})
    []
    """
    return [
        [row["name"], "the outcome's" if row["scaled"] else "only orders", _short(row["mean"]),
         *(_short(row["quantiles"][decile]) for decile in (1, 5, 9))]
        for row in found["proxies"]
    ]  # fmt: skip


ESTIMATE_HEADER = ("stratum", "units", "labels", "mean", "sd")


def estimate_headline(estimate: dict[str, Any]) -> list[str]:
    """Return the first lines of an estimate, from `Estimate.to_dict`.

    Examples
    --------
    >>> estimate_headline.__name__
    'estimate_headline'
    """
    low, high = estimate["confidence_interval"]
    lines = [
        f"Estimate {_short(estimate['estimate'])}, "
        f"{estimate['confidence_level']:.4g} interval {_short(low)} to {_short(high)}",
        f"Standard error {_short(estimate['standard_error'])}; {estimate['n']:,} labels of "
        f"{estimate['population_size']:,} units; {estimate['design']} sample, {estimate['estimator']} "
        f"estimator, {estimate['interval_method']} interval, {estimate['outcome']} outcome, target: "
        f"{estimate['target']}",
    ]
    if estimate["effective_sample_size"] is not None:
        worth = f"{estimate['effective_sample_size']:,.0f}"
        lines.append(f"Your {estimate['n']:,} labels are worth {worth} random ones.")
    missing = estimate["nonresponse"]
    if missing["drawn"] > missing["labelled"]:
        lines.append(
            f"{missing['drawn'] - missing['labelled']:,} of {missing['drawn']:,} drawn units have no label "
            f"({missing['rate']:.1%}); the labels of their stratum stand for them."
        )
    if estimate["lam"]:
        lines.append("λ = " + ", ".join(_short(value) for value in estimate["lam"]))
    return lines


def estimate_rows(estimate: dict[str, Any]) -> list[list[Any]]:
    """Return the rows of an estimate's table of strata, from `Estimate.to_dict`.

    Examples
    --------
    >>> estimate_rows({"strata": []})
    []
    """
    return [
        [row["name"], row["size"], row["n"], _short(row["mean"]), _short(row["standard_deviation"])]
        for row in estimate["strata"]
    ]


def target_rows(rows: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    """Return header and rows of a table of metrics, comparisons or domains, from its dict.

    Examples
    --------
    >>> target_rows([{"metric": "recall", "estimate": 0.5, "confidence_interval": [0.25, 0.75]}])
    (['metric', 'estimate', 'interval'], [['recall', '0.5', '0.25 to 0.75']])
    """
    names = [name for name in rows[0] if not isinstance(rows[0][name], dict)] if rows else []
    header = [name.replace("confidence_interval", "interval").replace("_", " ") for name in names]
    return header, [[_target_cell(row[name]) for name in names] for row in rows]


def _target_cell(entry: Any) -> Any:
    if isinstance(entry, list):
        return " to ".join(_short(end) for end in entry)
    return _short(entry) if isinstance(entry, float) or entry is None else entry


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _fixed(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _cell(entry: Any) -> str:
    return f"{entry:,}" if isinstance(entry, int) else str(entry)
