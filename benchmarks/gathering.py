"""The index of what was measured: a line a page of benchmarks/results, with figures taken from its tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """A column of a page's tables, all rows or those that hold a text; shown are its least and greatest."""

    column: str
    rows: str = ""
    called: str = ""


MAIN = {
    "demonstration": (Figure("as precise as", "chosen", "random labels that 100 labels are worth"),),
    "main_job": (Figure("ratio of medians", called="times as fast as ssepy"),),
    "speed": (
        Figure("median", "× ssepy", "× ssepy's speed"),
        Figure("median", "× ppi-python", "× ppi-python's speed"),
    ),
    "partitions": (Figure("minutes on 16 machines of 8 cores", "| all |", "minutes for 10¹⁰ rows"),),
    "tables": (
        Figure("ratio", called="time over the bare queries'"),
        Figure("peak, GiB", called="peak memory, GiB"),
    ),
    "strata": (
        Figure("time", "scikit-learn", "time of scikit-learn over ours"),
        Figure("time", "ssepy", "of ssepy"),
    ),
    "estimates": (Figure("later", "`estimate`", "ms for 100,000 labels"),),
    "robust_allocation": (
        Figure("robust / prop.", called="variance over proportional's"),
        Figure("eff. robust"),
    ),
    "several": (Figure("fewest labels: ms"), Figure("with a budget: ms")),
    "learners": (Figure("mean squared error / best judge's", "ridge", "error over the best judge's, ridge"),),
    "peer_agreement": (
        Figure("ours", called="labels that a label is worth"),
        Figure("ours / share", called="over the plain share's"),
        Figure("coverage"),
    ),
    "history": (
        Figure("ours / FAQ", called="error over FAQ's policy's"),
        Figure("ours / plain", called="over plain active inference's"),
    ),
    "selection": (
        Figure("labels"),
        Figure("error"),
        Figure("ratio", called="over random labels'"),
    ),
    "unequal_weights": (
        Figure("coverage", "proportional-to-size", "coverage, proportional to size"),
        Figure("coverage", "poisson", "Poisson"),
        Figure("coverage", "margins", "margins"),
        Figure("coverage", "clusters", "clusters"),
    ),
    "designs": (Figure("efficiency", "stratified", "efficiency, stratified"), Figure("coverage")),
    "adaptive": (
        Figure("worst bias, standard errors", "default, two rounds"),
        Figure("lowest", "default, two rounds", "lowest coverage"),
        Figure("efficiency, mean", "default, two rounds"),
    ),
    "adaptive_steps": (Figure("bias, standard errors"), Figure("coverage")),
    "promises": (Figure("ratio", called="labels over a planner's that knows"), Figure("coverage")),
    "recalibrated_plans": (Figure("inside", called="the promised range holds"),),
    "refuted_plans": (Figure("any", "**", "share of draws in which a wrong plan is noted"),),
    "coverage": (Figure("coverage"),),
    "interval_cells": (Figure("lowest coverage"), Figure("mean sharpness")),
    "plan_order": (
        Figure("wider than with fewer labels"),
        Figure("expected over drawn, mean"),
    ),
    "near_census": (Figure("least coverage"),),
    "exact_cells": (Figure("least coverage"),),
    "graded": (
        Figure("least coverage"),
        Figure("coverage of the slice", called="of slices"),
        Figure("coverage over strata", called="of slices over strata"),
        Figure("mean width", called="width in strata over 3.92 standard errors"),
    ),
    "graded_widths": (
        Figure("coverage of `auto`", called="coverage of auto"),
        Figure("width of `auto`", called="its width"),
        Figure("coverage of t", called="coverage of Student's t"),
        Figure(
            "least coverage", "× that of the side", "exact coverage with a guard at 1 to 2 times its error"
        ),
    ),
    "default_cuts": (Figure("mean"), Figure("largest", called="largest variance over that of k-means")),
    "default_plans": (
        Figure("n = 100", "largest", "largest variance over that of k-means strata, 100 labels"),
        Figure("n = 1,000", "geometric mean", "mean, 1,000 labels"),
    ),
    "given_strata": (
        Figure("width over the peer's", "auto", "width over glide's"),
        Figure("least coverage of `auto`", called="coverage of auto"),
        Figure("of t", called="of Student's t"),
    ),
    "family_wise": (Figure("family-wise error"), Figure("coverage of a pair")),
    "cluster_groups": (
        Figure("lowest coverage", "| 4 |", "lowest coverage, 4 clusters"),
        Figure("lowest coverage", "| 10 |", "10"),
        Figure("lowest coverage", "| 30 |", "30"),
    ),
    "thresholds": (
        Figure("violations", called="violations of an error of at most .05"),
        Figure("n = 400", "two rounds", "accepted over the largest valid share, two rounds of 400 labels"),
        Figure("precision", called="coverage of simultaneous bands of precision"),
    ),
    "over_time": (
        Figure("together", called="coverage of level and changes together"),
        Figure("e-process", "stratified", "false alarms in 200 waves"),
    ),
    "earlier_waves": (
        Figure("error", "stable", "error with earlier labels over that without"),
        Figure("largest error", called="in all cases"),
        Figure("limited", called="error of the pooled level over the wave's own"),
    ),
    "weak_proxies": (Figure("coverage"),),
    "several_proxies": (Figure("coverage"), Figure("error", called="error over that of the labels alone")),
    "heavy_tails": (Figure("`auto`", called="coverage of auto"), Figure("`t`", called="of Student's t")),
    "peers_coverage": (
        Figure("stratal, fitted λ", called="coverage"),
        Figure("ppi-python, power-tuned", called="of ppi-python"),
    ),
    "cross_fitting": (Figure("efficiency"), Figure("coverage")),
    "effective_size": (Figure("range holds it"),),
    "metrics_coverage": (Figure("coverage"),),
    "judge_coverage": (
        Figure("coverage"),
        Figure("coverage, Pearson", "power 1.5", "Pearson's correlation, 100 labels"),
    ),
    "rarer_values": (Figure("coverage"), Figure("coverage before", called="before")),
    "widths": (
        Figure("coverage", "simple random", "coverage, simple random"),
        Figure("coverage", "default plan", "default plan"),
        Figure("mean relative", "default plan", "width over random labels' at equal error, default plan"),
    ),
    "judge_peers": (Figure("coverage"),),
    "known_answers": (Figure("covered", called="coverage of precision"),),
    "wrong_scores": (Figure("lowest coverage"), Figure("width over knowing, median")),
    "estimands": (
        Figure("root mean squared error", "one round", "error of F1, one round"),
        Figure("coverage"),
    ),
    "small_comparisons": (
        Figure("ratio", called="coverage of a ratio"),
        Figure("win rate"),
        Figure("difference"),
    ),
    "paired_proxies": (Figure("win rate: covers", called="coverage of a win rate"),),
    "regression": (Figure("ratio", called="first call, times as fast as ppi-python"),),
    "regression_coverage": (Figure("95 %", called="coverage of 95 %"),),
    "coefficient_intervals": (Figure("coverage", "skewness-corrected", "coverage of the first coefficient"),),
    "least_squares": (Figure("auto", called="error over the best form's"),),
    "simulation": (Figure("× faster than ssepy", "stratal"),),
    "sequence": (Figure("one bet for all", called="mean width"),),
    "study": (Figure("median, ms", "submit", "ms to save, median"),),
    "page": (Figure("median, ms", "submit", "ms to save, median"), Figure("99th percentile, ms", "submit")),
    "first_answer": (Figure("processor, s", "| stratal", "seconds of the processor"),),
    "limits": (Figure("Parquet, s", called="seconds of the processor to inspect up to 4,000 columns"),),
    "attack": (Figure("tries"), Figure("silently wrong"), Figure("tracebacks")),
}
"""Pages in their order, and the figures that the index shows of each."""

_NUMBER = re.compile(r"[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?<=\d)")


def index(results: Path) -> str:
    """Return the index of the pages in a folder, those that `MAIN` does not know at the end."""
    pages = {page.stem: page.read_text() for page in sorted(results.glob("*.md"))}
    names = [*(name for name in MAIN if name in pages), *(name for name in pages if name not in MAIN)]
    return "\n".join(
        [
            "| measured | least to greatest over the page's rows |",
            "|---|---|",
            *(
                f"| [{_title(pages[name])}](results/{name}.md) | {_told(name, pages[name])} |"
                for name in names
            ),
        ]
    )


def _title(text: str) -> str:
    heading = re.search(r"^#+ (.+)$", text, re.MULTILINE)
    return heading[1].split(":")[0] if heading else text.strip().split(",")[0]


def _told(name: str, text: str) -> str:
    told = [
        f"{figure.called or figure.column.strip('`')}: {_range(figure, text)}"
        for figure in MAIN.get(name, ())
    ]
    return "; ".join(told) + (" (older than the present code)" if "to be measured again" in text else "")


def _range(figure: Figure, text: str) -> str:
    """Return a figure's least and greatest entry, as the page writes them."""
    numbers = sorted(entries(figure, text), key=_value)
    return " to ".join(dict.fromkeys([numbers[0], numbers[-1]])) if numbers else "–"


def entries(figure: Figure, text: str) -> Iterator[str]:
    """Yield the first number of each entry of a column (of `0.9 → 0.95` the later), in all tables."""
    header: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            header = []
        elif not header:
            header = _cells(line)
        elif figure.column in header and figure.rows in line:
            found = _NUMBER.search(_cells(line)[header.index(figure.column)].split("→")[-1])
            if found:
                yield found[0]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _value(number: str) -> float:
    return float(number.replace(",", "").replace("−", "-"))
