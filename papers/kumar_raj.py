"""Kumar & Raj (2016): Figures 2–9, on LIBSVM's files or on simulated populations of their shape."""

from __future__ import annotations

from pathlib import Path

from papers import palette
from papers.kumar_raj_claims import add_claims
from papers.kumar_raj_optimal import add_optimal
from papers.kumar_raj_runs import METHODS, NUMBERS, SHOWN, Run, accuracies, run_set
from papers.page import Page
from papers.palette import line, panel
from papers.panels import Line
from papers.scored import ACCURACIES, SHAPES
from stratal.simulation import SimulationTable

PRINTED = {("proportional", "rcv1"): (284, 218), ("equal", "rcv1"): (284, 118)}
"""Labels for 1 % error, random and stratified, where the text prints both."""

UNPLOTTED = {
    "opt-a1:5": "A1, 5 first",
    "opt-a1:10": "A1, 10 first",
    "opt-a2:5:10": "A2, 5 first, step 10",
    "opt-a2:10:10": "A2, 10 first, step 10",
    "proportional": "proportional",
    "two-round": "stratal's second round",
    "oracle": "Neyman, true S_h",
}
"""Designs whose true errors are drawn beside Figures 7 and 8, and their names there."""


def reproduce_kumar_raj(
    output: Path, *, data: Path | None = None, quick: bool = False, seed: int = 0
) -> Page:
    """Reproduce the figures of Kumar & Raj.

    Parameters
    ----------
    output : path
    data : path, optional
        Directory with LIBSVM's rcv1, epsilon and news20 files, of which any may be missing.
    quick : bool
        Smaller populations and few replicates, to see that it runs.
    seed : int

    Returns
    -------
    Page
    """
    page = Page(title="Classifier risk estimation (Kumar & Raj 2016)", directory=output, seed=seed)
    replicates = 300 if quick else 3000
    runs = {name: run_set(name, data, replicates, seed, quick=quick) for name in SHAPES}
    _opening(page, runs, replicates)
    accuracy = accuracies(replicates, seed, quick=quick)
    add_claims(page, runs, accuracy)
    add_optimal(page, runs, replicates, seed)
    _figures_2_to_6(page, runs)
    _true_errors(page, runs)
    _figure_9(page, accuracy)
    page.write()
    return page


def _opening(page: Page, runs: dict[str, Run], replicates: int) -> None:
    made = [name for name, run in runs.items() if run.simulated]
    page.opening.append(
        f"arXiv 1607.02665. {replicates:,} draws with replacement of every design. MVR, the paper's "
        "measure, is the ratio of mean *estimated* variances. The tables also contain the ratio of *true* "
        "mean squared errors, which can be very different for designs that use labels."
    )
    if made:
        page.opening.append(
            f"**Simulated populations:** {', '.join(made)}. Their files were not provided (--data), so "
            "these are simulated populations of the size in the paper. Their accuracy and the shape of "
            "their scores were chosen to resemble the printed results. Results on them show that the "
            "methods behave as described, not that the paper's figures are reproduced exactly."
        )
    rows = [
        [name, f"{len(run.found.z):,}", f"{run.found.truth:.4f}", "simulated" if run.simulated else "file"]
        for name, run in runs.items()
    ]
    page.add_table("Populations", ["set", "N", "accuracy", "source"], rows)


def _line(table: SimulationTable, design: str, column: str, label: str) -> Line:
    rows = table.where(design=design).rows()
    x = [row["budget"] for row in rows]
    if column == "true":
        y = [1 / row["relative_efficiency"] for row in rows]
        error = [row["relative_efficiency_se"] / row["relative_efficiency"] ** 2 for row in rows]
    else:
        scale = 100 if column == "mae" else 1
        y = [scale * row[column] for row in rows]
        error = [scale * row[f"{column}_se"] for row in rows]
    return line(label, x, y, error)


def _lines(table: SimulationTable, column: str, designs: dict[str, str]) -> list[Line]:
    return [_line(table, design, column, label) for design, label in designs.items()]


def _figures_2_to_6(page: Page, runs: dict[str, Run]) -> None:
    for figure, rule, k, title in (
        ("2", "proportional", 10, "proportional allocation"),
        ("4", "equal", 10, "equal allocation"),
        ("6", "opt-a1", 6, "OPT-A1, 10 per stratum first"),
    ):
        panels = []
        ending = ":10" if rule == "opt-a1" else ""
        for name, run in runs.items():
            method = SHOWN[rule][name]
            lines = [
                _line(run.table, "simple-random", "mae", "random"),
                _line(run.table, f"{method}:{k}:{rule}{ending}", "mae", "stratified"),
            ]
            if (rule, name) in PRINTED:
                marks = [float(n) for n in PRINTED[rule, name]]
                lines.append(Line(x=marks, y=[1.0, 1.0], label="printed", style=palette.PRINTED))
            title_of_set = f"{run.data}, {METHODS[method]}, K = {k}"
            panels.append(panel(title_of_set, "mean absolute error, %", lines, level_label="1 % error"))
        for run in runs.values():
            designs = {f"{method}:{k}:{rule}{ending}": short for method, short in METHODS.items()}
            panels.append(panel(f"{run.data}, K = {k}", "MVR", _lines(run.table, "mvr", designs)))
        words = "The bands show two Monte Carlo standard errors."
        words += " OPT-A1 follows the paper to the letter." if rule == "opt-a1" else ""
        page.draw(f"Figure {figure}: {title}", panels, f"figure_{figure}.png", words=words)
    _figures_3_and_5(page, runs)


def _figures_3_and_5(page: Page, runs: dict[str, Run]) -> None:
    panels = []
    for rule, figure in (("proportional", "3"), ("equal", "5")):
        for name in ("rcv1", "news20"):
            table = runs[name].table
            lines = []
            for method, short in METHODS.items():
                kept = {k: table.where(design=f"{method}:{k}:{rule}", budget=300).rows() for k in NUMBERS}
                rows = {k: found[0] for k, found in kept.items() if found}
                mvr = [row["mvr"] for row in rows.values()]
                lines.append(line(short, list(rows), mvr, [row["mvr_se"] for row in rows.values()]))
            title = f"Figure {figure}: {runs[name].data}, {rule}, n = 300"
            panels.append(panel(title, "MVR", lines, x_label="K"))
    page.draw("Figures 3 and 5: the number of strata", panels, "figure_3_5.png", columns=2)


def _true_errors(page: Page, runs: dict[str, Run]) -> None:
    panels = []
    for name in ("epsilon", "news20"):
        designs = {f"{SHOWN['opt-a1'][name]}:6:{rule}": label for rule, label in UNPLOTTED.items()}
        true = _lines(runs[name].table, "true", designs)
        panels.append(panel(runs[name].data, "true MSE / random's", true, logarithmic="xy"))
    page.draw(
        "What the paper does not plot: true errors to the letter",
        panels,
        "true_errors.png",
        columns=2,
        words="A stratum whose first labels all agree gets S_h = 0, no further labels, and an estimated "
        "variance of 0. The estimated ratio then decreases, but the error does not.",
    )


def _figure_9(page: Page, tables: dict[str, SimulationTable]) -> None:
    panels = []
    for column, label, design in (
        ("mvr", "MVR", "equal-size:6:opt-a2:5:10"),
        ("true", "true MSE / random's, Neyman with true S_h", "equal-size:6:oracle"),
    ):
        lines = [
            _line(table, design, column, f"accuracy {ACCURACIES[name]:.0%} ({name})")
            for name, table in tables.items()
        ]
        panels.append(panel("epsilon, simulated, EQSZ, K = 6", label, lines))
    page.draw("Figure 9: true accuracy (simulated populations)", panels, "figure_9.png", columns=2)
