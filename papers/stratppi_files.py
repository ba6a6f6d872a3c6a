"""Figures 2 and 3 of Fisch et al. (2024) on files of predictions: panels, tables and claims."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from papers import palette
from papers.claims import Pair, at_least, at_most, joint, near
from papers.page import Page
from papers.palette import line, panel
from papers.panels import Line, Panel
from papers.stratppi_arms import Simulated
from stratal.arrays import FloatArray

PRINTED_ARMS = ("classical", "PPI++", "StratPPI proportional", "StratPPI heuristic")

LIKE = {
    "W_h known to every arm": ("classical in strata", "PPI++ in strata", "StratPPI proportional"),
    "W_h known to none": ("PPI++", "StratPPI, W_h estimated", "heuristic, W_h estimated"),
    "λ as fitted, λ shrunk": ("StratPPI proportional", "StratPPI, λ shrunk"),
}
"""Comparisons on equal terms, which the paper's figure does not make."""

DEFAULT = "stratal's default"

PRINTED = {"galaxies": 35.0}
"""Largest printed reduction of the width, in per cent, of the sets that can be had."""


def add_files(page: Page, runs: list[Simulated], replicates: int) -> None:
    """Add figures, tables and claims of every file.

    Parameters
    ----------
    page : Page
    runs : list of Simulated
    replicates : int
    """
    for run in runs:
        which = "Figure 3's setting" if run.found.win_rate else "Figure 2's setting"
        _figure(page, run, which, replicates)
        _tables(page, run)
        if run.found.name == "galaxies":
            _galaxy(page, run)
        if run.found.win_rate:
            _win_rate(page, run)
    if runs:
        _elsewhere(page, [run for run in runs if run.found.name != "galaxies"])
        _equation_63(page, runs)
        _regularised(page, runs)
        _like_for_like(page, runs)
        _coverage(page, runs)


def _figure(page: Page, run: Simulated, which: str, replicates: int) -> None:
    shown = [*(arm for arm in PRINTED_ARMS if arm in run.series), DEFAULT]
    width, low, high = (run.column(name) for name in ("width", "width_16", "width_84"))
    noise = run.column("coverage_se")
    covered = run.column("coverage")
    panels = [
        _panel(run, label, {arm: [part[arm] for part in parts] for arm in shown})
        for label, parts in (
            ("mean width", [width, low, high]),
            ("% narrower than classical", [*map(run.reductions, ("width", "width_84", "width_16"))]),
            ("effective sample size", [*map(run.effective, ("width", "width_84", "width_16"))]),
            ("coverage", [covered, *({a: covered[a] + k * noise[a] for a in shown} for k in (-2, 2))]),
        )
    ]
    page.draw(
        f"{which}: {run.found.name}, α = 0.05, {replicates:,} draws",
        panels,
        f"figure_2_{run.found.name}.png".replace(" ", "_"),
        columns=2,
        words="The bands show the 16% and 84% quantiles over the draws, as in the paper; for the "
        "coverage, they show ± two Monte Carlo standard errors. The range of an axis does not depend on the "
        "worst arm. The table contains all numbers.",
    )


def _panel(run: Simulated, label: str, arms: dict[str, list[FloatArray]]) -> Panel:
    """Return a panel of the arms: each has its values and the ends of its band, over n."""
    lines: list[Line] = []
    values = {arm: parts[0] for arm, parts in arms.items()}
    for arm, (y, low, high) in arms.items():
        drawn = line(arm, run.budgets, y.tolist())
        limits = _limits(values, 0.8 if label == "coverage" else 0.0)
        wide = np.min(low) < limits[0] or np.max(high) > limits[1] + 0.3 * (limits[1] - limits[0])
        if label == "coverage" or not wide:
            drawn = replace(drawn, low=low.tolist(), high=high.tolist())
        lines.append(drawn)
    if label.startswith("%") and run.found.name in PRINTED:
        x = [float(run.budgets[len(run.budgets) // 2])]
        lines.append(Line(x=x, y=[PRINTED[run.found.name]], label="printed, best", style=palette.PRINTED))
    more: dict[str, Any] = {"level": None, "limits": _limits(values, 0.0), "logarithmic": "x"}
    if label == "coverage":
        more |= {"level": 0.95, "level_label": "asked for", "limits": _limits(values, 0.8)}
    if label == "mean width":
        more |= {"limits": None, "logarithmic": "xy"}
    return panel(run.found.name, label, lines, **more)


def _limits(values: dict[str, FloatArray], least: float) -> tuple[float, float]:
    """Return limits of an axis that the worst arm does not stretch."""
    ends = sorted(float(np.min(y)) for y in values.values())
    top = max(float(np.max(y)) for y in values.values())
    low = max(ends[0], min(ends[1], least) - 0.2 * (top - ends[1]))
    room = 0.08 * (top - low) + 1e-3
    return low - room, top + room


def _tables(page: Page, run: Simulated) -> None:
    tables = {
        "% narrower than classical": (run.reductions(), run.reduction_errors(), 1),
        "mean width": (run.column("width"), run.column("width_se"), 4),
        "coverage": (run.column("coverage"), run.column("coverage_se"), 3),
    }
    for title, (values, noise, digits) in tables.items():
        rows = [
            [n, *(f"{values[arm][i]:.{digits}f} ± {noise[arm][i]:.{digits}f}" for arm in values)]
            for i, n in enumerate(run.budgets)
        ]
        page.add_table(f"{run.found.name}: {title}", ["labels", *values], rows)


def _at(run: Simulated, arm: str, other: str) -> tuple[FloatArray, FloatArray]:
    """Return by how many points of the classical width one arm is narrower than another, and the errors."""
    found, errors = run.reductions(), run.reduction_errors()
    return found[arm] - found[other], np.hypot(errors[arm], errors[other])


def _mean(values: FloatArray, noise: FloatArray) -> Pair:
    return float(values.mean()), joint(*noise) / len(noise)


def _gains(runs: list[Simulated], arm: str, other: str) -> tuple[dict[str, Pair], str]:
    """Return how much narrower an arm is than another on each file, and the file where it gains least."""
    gains = {run.found.name: _mean(*_at(run, arm, other)) for run in runs}
    return gains, min(gains, key=lambda name: gains[name][0])


def _shown(run: Simulated) -> str:
    found = run.reductions()
    return "; ".join(
        f"n = {n}: " + ", ".join(f"{arm} {found[arm][i]:.0f} %" for arm in PRINTED_ARMS[1:])
        for i, n in enumerate(run.budgets)
        if n in (100, 300, 1000)
    )


def _galaxy(page: Page, run: Simulated) -> None:
    found, errors = run.reductions(), run.reduction_errors()
    i, n = -1, run.budgets[-1]
    limit = 100 * (1 - np.sqrt(1 - np.corrcoef(run.found.z, run.found.proxy)[0, 1] ** 2))
    for arm, printed, words in (
        ("PPI++", 25.0, "PPI++ is 25 % narrower than classical"),
        ("StratPPI heuristic", 35.0, "StratPPI with the heuristic is up to 35 % narrower"),
    ):
        page.claim(
            where="Fig. 2, Galaxy",
            data=run.found.name,
            says=words,
            found=f"{found[arm][i]:.1f} % at n = {n}, from {found[arm].min():.1f} to "
            f"{found[arm].max():.1f} % over n"
            + (f"; the correlation allows {limit:.0f} % at small n" if arm == "PPI++" else ""),
            numbers=[near((found[arm][i], errors[arm][i]), printed, 2.5, " points")],
        )
    gain, noise = _at(run, "StratPPI heuristic", "PPI++")
    page.claim(
        where="Fig. 2, Galaxy",
        data=run.found.name,
        says="the improvement over PPI++ is as large as 10 points",
        found=f"{gain.min():.1f} to {gain.max():.1f} points; {_shown(run)}",
        numbers=[near((gain.max(), noise[np.argmax(gain)]), 10.0, 2.5, " points")],
    )
    step = _mean(*_at(run, "StratPPI heuristic", "StratPPI proportional"))
    page.claim(
        where="§5.2, Galaxy",
        data=run.found.name,
        says="heuristic allocation accounts for 10 points of it",
        found=f"{step[0]:+.1f} points over proportional on average",
        numbers=[near(step, 10.0, 2.5, " points")],
    )


def _win_rate(page: Page, run: Simulated) -> None:
    page.claim(
        where="Fig. 3",
        data=run.found.name,
        says="win rate: stratification helps here too",
        found=_shown(run),
        numbers=[at_least(_mean(*_at(run, "StratPPI proportional", "PPI++")), 0.0, unit=" points")],
    )
    found, errors = run.reductions()["StratPPI heuristic"], run.reduction_errors()["StratPPI heuristic"]
    small = run.budgets.index(100)
    page.claim(
        where="Fig. 3",
        data=run.found.name,
        says="the heuristic is less effective at larger n, though still effective at small n",
        found=f"{found[small]:.0f} % narrower than classical at n = 100, {found[-1]:.0f} % at n = "
        f"{run.budgets[-1]}; this judge gives few values and no doubt, so strata at the ends get S_h near 0 "
        "and two labels each. Variants: "
        + "; ".join(
            f"{name} {run.reductions()[name][small]:.0f} % and {run.reductions()[name][-1]:.0f} %"
            for name in ("heuristic, 5 each at least", "StratPPI robust")
        ),
        numbers=[
            at_least((found[small], errors[small]), 0.0, unit=" points"),
            at_least((found[small] - found[-1], joint(errors[small], errors[-1])), 0.0, unit=" points"),
        ],
    )


def _elsewhere(page: Page, runs: list[Simulated]) -> None:
    """Rows for the files that the paper does not have."""
    if not runs:
        return
    gains, worst = _gains(runs, "StratPPI proportional", "PPI++")
    page.claim(
        where="Prop. 1, §5.2",
        data=f"{len(runs)} other files",
        says="StratPPI with proportional allocation is not wider than PPI++",
        found=f"narrower by {gains[worst][0]:.1f} points on {worst}, where it gains least",
        numbers=[at_least(gains[worst], 0.0, 0.5, " points")],
    )
    lost, name = _gains(runs, "StratPPI heuristic", "PPI++")
    wider = {key: gain for key, (gain, _) in lost.items() if gain < -0.5}
    page.claim(
        where="App. C",
        data=f"{len(runs)} other files",
        says="proxies that are not calibrated make the heuristic less effective",
        found=f"wider than PPI++ on {len(wider)} of {len(runs)}: "
        + (", ".join(f"{key} {v:.0f} points" for key, v in wider.items()) or "none"),
        numbers=[at_most(lost[name], 0.0, unit=" points")],
    )


def _equation_63(page: Page, runs: list[Simulated]) -> None:
    """Appendix B's heuristic as its last line has it, Var(y) with λ = 0, against Example 2's with λ = 1."""
    gains, worst = _gains(runs, "heuristic, eq. 63", "StratPPI heuristic")
    means = {name: gain for name, (gain, _) in gains.items()}
    page.claim(
        where="App. B, eq. 63",
        data=f"{len(runs)} files",
        says="Var(y − λ f) simplifies to mean f (1 − f) + Var f",
        found=f"as narrow as with λ = 1 or narrower on {sum(gain > -0.5 for gain in means.values())} of "
        f"{len(runs)}; at worst {means[worst]:+.1f} points ({worst}), at best {max(means.values()):+.1f}",
        numbers=[at_least(gains[worst], 0.0, 0.5, " points")],
    )


def _regularised(page: Page, runs: list[Simulated]) -> None:
    """What the paper leaves to future work: a heuristic that does not take the judge at its word."""
    gains, worst = _gains(runs, "StratPPI robust", "PPI++")
    over, _ = _gains(runs, "StratPPI robust", "StratPPI proportional")
    page.claim(
        where="App. C, future work",
        data=f"{len(runs)} files",
        says="regularisation or recalibration would likely help the heuristic",
        found=f"with our robust allocation StratPPI is narrower than PPI++ by {gains[worst][0]:.1f} points "
        f"on {worst}, where it gains least, and than with proportional allocation on "
        f"{sum(gain > 0 for gain, _ in over.values())} of {len(over)}",
        numbers=[at_least(gains[worst], 0.0, unit=" points")],
    )


def _like_for_like(page: Page, runs: list[Simulated]) -> None:
    rows = []
    for run in runs:
        i = run.budgets.index(100) if 100 in run.budgets else 0
        for terms, names in LIKE.items():
            cells = [
                f"{name}: {run.reductions()[name][i]:.1f} ± {run.reduction_errors()[name][i]:.1f} %, covers "
                f"{run.series[name]['coverage'][i]:.3f}"
                for name in names
            ]
            rows.append([run.found.name, run.budgets[i], terms, "; ".join(cells)])
    page.add_table(
        "On equal terms: % narrower than classical, and coverage", ["data", "n", "terms", "arms"], rows
    )
    for terms, one, other in (
        ("W_h known to every arm", "StratPPI proportional", "PPI++ in strata"),
        ("W_h known to none", "StratPPI, W_h estimated", "PPI++"),
    ):
        gains, worst = _gains(runs, one, other)
        page.claim(
            where="§5.2, on equal terms",
            data=f"{len(runs)} files",
            says="all StratPPI methods improve over PPI++",
            found=f"{terms}: {gains[worst][0]:+.1f} ({worst}) to {max(gains.values())[0]:+.1f} points "
            f"narrower than {other}",
            numbers=[at_least(gains[worst], 0.0, unit=" points")],
        )


def _coverage(page: Page, runs: list[Simulated]) -> None:
    for arms, words in (
        (("StratPPI proportional", "StratPPI heuristic"), "StratPPI as published"),
        ((DEFAULT,), DEFAULT),
    ):
        cells = [
            (s["coverage"][i], s["coverage_se"][i], run.found.name, n, arm)
            for run in runs
            for arm in arms
            for i, n in enumerate(run.budgets)
            for s in (run.series[arm],)
        ]
        value, error, name, n, arm = min(cells)
        page.claim(
            where="Cor. 2",
            data=f"{len(runs)} files",
            says="intervals cover at least 1 − α in the limit",
            found=f"{words}: least coverage {value:.3f} ({name}, n = {n}, {arm}) of {len(cells)} cells, "
            f"{sum(c[0] < 0.94 for c in cells)} below .94",
            numbers=[at_least((value, error), 0.95, 0.01)],
        )
