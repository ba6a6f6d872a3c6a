"""What is in a file, and what was drawn from it, in words and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stratal.report.text import MOST_STRATA, Page, Table, first_rows, noted, number


def inspection_page(found: Mapping[str, Any]) -> Page:
    """Return what is said of a file: `describe_columns`, with `describe_proxies` where it was checked.

    Examples
    --------
    >>> inspection_page({"file": "p.csv", "rows": 1200, "columns": []}).lines
    ['p.csv: 1,200 rows']
    """
    tables = [_columns_table(found), *([_proxies_table(found)] if "proxies" in found else [])]
    return Page(
        lines=[f"{found['file']}: {found['rows']:,} rows"], tables=tables, notes=noted(found.get("notes", ()))
    )


def _columns_table(found: Mapping[str, Any]) -> Table:
    return Table(
        title="Columns",
        header=("column", "kind", "missing", "distinct", "least", "mean", "most"),
        rows=[
            [
                row["name"] or "(no name)",
                *(row[name] for name in ("kind", "missing", "distinct")),
                *(number(row[name]) for name in ("minimum", "mean", "maximum")),
            ]
            for row in found["columns"]
        ],
    )


def _proxies_table(found: Mapping[str, Any]) -> Table:
    return Table(
        title="Proxies",
        header=("proxy", "scale", "mean", "10 %", "50 %", "90 %"),
        rows=[
            [
                row["name"],
                "the outcome's" if row["scaled"] else "only orders",
                number(row["mean"]),
                *(number(row["quantiles"][decile]) for decile in (1, 5, 9)),
            ]
            for row in found["proxies"]
        ],
    )


_IDS_ALONE = "Whoever labels sees ids alone; --show COL,… puts columns beside them, such as the text."


def handover_page(found: Mapping[str, Any], strata: Sequence[Sequence[Any]], *, shown: bool = True) -> Page:
    """Return what is said of a draw, and where its files are.

    Parameters
    ----------
    found : dict
        `n`, `population_size`, `design`, `seed`, `round`, `new`, and the paths `sample` and `to_label`.
    strata : sequence of (name, units, drawn units)
    shown : bool
        Whether the table for the annotators has more than ids.

    Examples
    --------
    >>> found = {"n": 3, "population_size": 9, "design": "poisson", "seed": 7, "round": 1, "new": 3,
    ...          "sample": "a/sample.parquet", "to_label": "a/to_label.csv"}
    >>> handover_page(found, []).lines
    ['Drew 3 of 9 units (poisson, seed 7).']
    """
    added = f", {found['new']:,} of them new in round {found['round']}" if found["round"] > 1 else ""
    drew = f"Drew {found['n']:,} of {found['population_size']:,} units"
    notes = [
        f"To label: {found['to_label']}  (fill in the column `label`)",
        f"Sample:   {found['sample']}  (keep it: the estimate needs it)",
        *([] if shown else [_IDS_ALONE]),
    ]
    rows = first_rows(strata, MOST_STRATA, "strata", "stratal plan --json")
    table = Table(title="Strata", header=("stratum", "units", "to label"), rows=rows)
    return Page(
        lines=[f"{drew} ({found['design']}, seed {found['seed']}){added}."],
        tables=[table] if strata else [],
        notes=notes,
    )
