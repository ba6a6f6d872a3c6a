"""Fisch et al. (2024), StratPPI: Figure 1 simulated, Figures 2 and 3 on files of predictions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from papers.claims import Number, joint, near
from papers.files import prediction_files
from papers.gaussian import ARMS, SCENARIOS, run_scenario
from papers.page import Page
from papers.palette import line, panel
from papers.panels import Panel
from papers.stratppi_arms import run_arms
from papers.stratppi_files import add_files
from stratal.arrays import FloatArray

Series = dict[str, FloatArray]
"""Column → one value for each budget."""


def reproduce_stratppi(output: Path, *, data: Path | None = None, quick: bool = False, seed: int = 0) -> Page:
    """Reproduce the figures of StratPPI.

    Parameters
    ----------
    output : path
        Directory for the page and its figures.
    data : path, optional
        Directory of files with columns `z` and `proxy`; `galaxies` is the paper's Galaxy set.
    quick : bool
        Few replicates, to see that it runs.
    seed : int

    Returns
    -------
    Page
    """
    page = Page(
        title="Stratified prediction-powered inference (Fisch et al. 2024)", directory=output, seed=seed
    )
    page.opening.append(
        "arXiv 2406.04291. Intervals are those of the paper: normal quantiles, λ unshrunk, stratum weights "
        "known, and the mean of the distribution as the target. Two further groups of arms are compared "
        "with them: arms on equal terms (W_h known to all or to none, λ shrunk or not), and this package's "
        "default (ten k-means strata, robust allocation, and an interval that reaches its level with few "
        "labels). A file is treated as the distribution, and every replicate draws its own units from it. "
        "The coverage therefore refers to the target of the intervals."
    )
    sets = prediction_files(data)
    _figure_1(page, trials=400 if quick else 5000, seed=seed)
    if not sets:
        page.opening.append("No data directory was specified, so Figures 2 and 3 are omitted.")
    replicates = 100 if quick else 2000
    runs = [run_arms(found, replicates=replicates, seed=seed) for found in sets]
    add_files(page, runs, replicates)
    _not_run(page, {found.name.partition(" ")[0] for found in sets})
    page.write()
    return page


def _figure_1(page: Page, *, trials: int, seed: int) -> None:
    sizes = (50, 100, 200, 400, 800)
    panels: dict[str, list[Panel]] = {"coverage": [], "width": [], "rmse": []}
    at = {}
    for number, (title, scenario) in enumerate(SCENARIOS.items()):
        found = run_scenario(scenario, sizes, trials=trials, seed=seed + number)
        at[title] = {arm: {key: values[-2] for key, values in found[arm].items()} for arm in ARMS}
        for key, row in panels.items():
            row.append(_panel_1(title, key, sizes, found))
    page.draw(
        f"Figure 1: three simulated scenarios, α = 0.1, {trials:,} trials",
        [panel for row in panels.values() for panel in row],
        "figure_1.png",
        words="Two strata of equal mass, Y ~ N(0, 1), f = Y + μ + σε. The paper does not print the values "
        "of μ and σ. The values used here are "
        + "; ".join(f"μ = {s.biases}, σ = {s.noises} ({title})" for title, s in SCENARIOS.items())
        + ". The bands show two Monte Carlo standard errors, and for the width the 16% and 84% quantiles, as "
        "in the paper.",
    )
    keys = ("coverage", "width", "rmse")
    rows = [
        [title, arm, *(f"{at[title][arm][key]:.4f} ± {at[title][arm][f'{key}_se']:.4f}" for key in keys)]
        for title in SCENARIOS
        for arm in ARMS
    ]
    page.add_table(f"Figure 1 at n = {sizes[-2]}", ["scenario", "arm", *keys], rows)
    _claims_1(page, at)


def _panel_1(title: str, key: str, sizes: tuple[int, ...], found: dict[str, Series]) -> Panel:
    lines = []
    for arm in ARMS:
        drawn = line(arm, sizes, found[arm][key].tolist(), found[arm][f"{key}_se"].tolist())
        if key == "width":
            ends = (found[arm][column].tolist() for column in ("width_16", "width_84"))
            drawn = replace(drawn, **dict(zip(("low", "high"), ends, strict=True)))
        lines.append(drawn)
    name, title = {"coverage": key, "width": "mean width", "rmse": "RMSE"}[key], f"{title}, simulated"
    if key == "coverage":
        level: dict[str, Any] = {"level": 0.9, "level_label": "asked for", "limits": (0.82, 0.94)}
        return panel(title, name, lines, logarithmic="x", **level)
    return panel(title, name, lines, level=None, logarithmic="xy")


def _not_run(page: Page, given: set[str]) -> None:
    """Add the paper's experiments whose files were not given, so that no claim is passed over."""
    for where, name, says in (
        ("Fig. 2, Seahorse", "seahorse", "10 → 20 % narrower; 300 labels are worth 600"),
        ("Fig. 2, AttributedQA", "attributed_qa", "20 → 30 % narrower"),
        ("Fig. 3, Chatbot Arena", "chatbot_arena", "win rate: narrower at every n, the heuristic at small n"),
    ):
        if name not in given:
            page.claim(where=where, data=name, says=says, found="its file was not given", numbers=[])


At = dict[str, dict[str, float]]


def _saved(
    case: At, arm: str, other: str, low: float, high: float = np.inf, tolerance: float = 0.0
) -> Number:
    """Return by how many per cent an arm is narrower than another."""
    a, b = case[arm], case[other]
    error = 100 * a["width"] / b["width"] * joint(a["width_se"] / a["width"], b["width_se"] / b["width"])
    value = 100 * (1 - a["width"] / b["width"])
    return Number(value=value, error=error, low=low, high=high, tolerance=tolerance, unit=" %")


def _claims_1(page: Page, at: dict[str, At]) -> None:
    same, bias, noise = (at[title] for title in SCENARIOS)
    classical, pooled, even, best = ARMS
    like = _saved(same, even, pooled, 0.0, 0.0, tolerance=1.0)
    ahead, hardly = (
        _saved(bias, even, pooled, 10.0),
        _saved(bias, pooled, classical, 0.0, 10.0, tolerance=2.0),
    )
    even_more, best_more = _saved(noise, even, pooled, 5.0), _saved(noise, best, even, 5.0)
    cases = [at[title][arm] for title in SCENARIOS for arm in ARMS]
    covered = [case["coverage"] for case in cases]
    normal = [(c["width"] / (2 * 1.6449 * c["rmse"]), c["rmse_se"] / c["rmse"]) for c in cases]
    for where, says, found, numbers in (
        (
            "left",
            "homogeneous strata: StratPPI behaves like PPI++",
            f"StratPPI is {like.value:.1f} % narrower",
            [like],
        ),
        (
            "middle",
            "different biases: StratPPI helps substantially, PPI++ hardly",
            f"StratPPI {ahead.value:.0f} % narrower than PPI++, which is {hardly.value:.0f} % narrower than "
            "classical",
            [ahead, hardly],
        ),
        (
            "right",
            "different noise: StratPPI helps, optimal allocation further",
            f"proportional {even_more.value:.0f} % narrower than PPI++, optimal {best_more.value:.0f} % "
            "narrower than proportional",
            [even_more, best_more],
        ),
        (
            "top",
            "all cover at 90 %",
            f"from {min(covered):.3f} to {max(covered):.3f} at n = 400",
            [near((c["coverage"], c["coverage_se"]), 0.9, 0.01) for c in cases],
        ),
        (
            "bottom",
            "RMSE has the trend of the width: the estimates are unbiased",
            f"width over RMSE lies within {max(abs(v - 1) for v, _ in normal):.1%} of the normal one",
            [near(pair, 1.0, 0.03) for pair in normal],
        ),
    ):
        data = "simulated, as in the paper"
        page.claim(where=f"Fig. 1, {where}", data=data, says=says, found=found, numbers=numbers)
