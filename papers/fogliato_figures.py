"""The figures of Fogliato et al. (2024), and the claims that are read off them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from papers.claims import Pair, near, within
from papers.domains import SETS, WHERE
from papers.page import Page
from papers.palette import PLAIN, POINTS, line, panel
from papers.panels import Line, line_style, save_figure
from papers.printed import COLUMNS
from papers.sources import ARMS, Case, Measured, true_allocation
from stratal.report.figures import COLOURS, grid_of_axes, label_axes, logarithmic_scale
from stratal.simulation import simulate

SHOWN = ("digits", "patch: which picture", "cifar10_vgg", "galaxies")
"""Figure 1's panels and Figure 3's allocations, of the cases that exist."""

COLOUR = {"SRS DF": 1, "SSRS proportional HT": 2, "SSRS proportional DF": 5, "SSRS Neyman HT": 3}
"""Arm → its colour's number, as in the figures of lines."""

BANDS = "The bands show two Monte Carlo standard errors, and the bars one Monte Carlo standard error."

Ratios = Mapping[str, Mapping[str, Sequence[float]]]
"""Panel → what is drawn in it → its values."""

_DESIGNS = (
    ("SRS, HT", "simple-random", "horvitz-thompson"),
    ("SRS, DF", "simple-random", "difference"),
    ("SSRS proportional, HT", "k-means:10:proportional", "horvitz-thompson"),
    ("SSRS Neyman, HT", "k-means:10:neyman", "horvitz-thompson"),
)


def figure_1(page: Page, cases: list[Case], replicates: int, seed: int) -> None:
    """Draw MSE against n on each set, and compare the largest saving with the printed ones."""
    panels, savings = [], {}
    for case in cases:
        budgets = [n for n in (25, 50, 100, 200, 400) if n <= len(case.z) // 3]
        lines = []
        for label, design, estimator in _DESIGNS:
            table = simulate(
                case.population(case.best),
                case.z,
                designs=[design],
                estimators=[estimator],
                intervals=(),
                budgets=budgets,
                replicates=replicates,
                seed=seed,
            )
            lines.append(line(label, *(table[name].tolist() for name in ("budget", "mse", "mse_se"))))
            last = table.where(budget=min(100, budgets[-1])).rows()[-1]
            savings[case.name, label] = last["relative_efficiency"], last["relative_efficiency_se"]
        title = f"{case.name} ({case.best})"
        panels.append(panel(title, "MSE", lines, level=None, logarithmic="xy"))
    page.draw("Figure 1: mean squared error against n", panels, "figure_1.png", words=BANDS)
    best = max(savings, key=lambda key: savings[key][0])
    value, error = savings[best]
    page.claim(
        where="Fig. 1",
        says="savings differ between sets: none (DMLab), about 5× (Stanford Cars), about 10× (CIFAR-10)",
        found=f"at n = 100 up to {value:.1f} ± {error:.1f} × ({best[0]}, {best[1]}); "
        + ", ".join(
            f"{n} {savings[n, 'SSRS proportional, HT'][0]:.1f} ×"
            for n in dict.fromkeys(n for n, _ in savings)
        )
        + " under proportional allocation",
        numbers=[within((value, error), 5.0, 10.0, 1.0)],
    )


def violins(page: Page, number: str, title: str, groups: dict[str, dict[str, Measured]]) -> None:
    """Draw the ratios of every arm and source, one panel for each group, with the printed ranges."""
    panels: dict[str, dict[str, list[Pair]]] = {name: {} for name in groups}
    for name, measured in groups.items():
        for arm, source in ((arm, source) for arm, sources in ARMS.items() for source in sources):
            found = [m.pair(arm, source) for m in measured.values() if (arm, source) in m.ratios]
            panels[name] |= {f"{arm} {source}": found} if found else {}
    ranges = {f"{arm} {source}": ends for (arm, source), ends in COLUMNS.items()} if number == "2" else {}
    path = _draw_violins(panels, ranges, page.directory / f"figure_{number}.png")
    words = (
        "On the red dashed line, a method is as good as HT under SRS. Each point is one data set; its error "
        "bar is one Monte Carlo standard error."
    )
    if ranges:
        words += " The brackets show the smallest and the largest of the 34 printed rows."
    page.add_figure(f"Figure {number}: {title}", path, words)


def _draw_violins(panels: dict[str, dict[str, list[Pair]]], ranges: Mapping[str, Pair], path: Path) -> Path:
    """Draw violins with their points and error bars, and brackets of the printed ranges."""
    colours = {f"{arm} {source}": COLOURS[COLOUR[arm]] for arm, sources in ARMS.items() for source in sources}
    figure, axes = grid_of_axes(len(panels), 2, width=4.6)
    rng = np.random.default_rng(0)
    for (title, groups), ax in zip(panels.items(), axes, strict=False):
        for place, (name, group) in enumerate(groups.items(), start=1):
            values, bars = np.array(group).T
            values, bars = values[values > 0], bars[values > 0]
            if len(values) > 1 and np.ptp(values) > 0:
                parts = ax.violinplot([values], positions=[place], showmedians=True, widths=0.8)
                parts["bodies"][0].set(facecolor=colours[name], alpha=0.35)
                for mark in ("cmedians", "cbars", "cmins", "cmaxes"):
                    parts[mark].set(color="#444444", linewidth=0.8)
            places = place + rng.uniform(-0.1, 0.1, len(values))
            ax.errorbar(places, values, bars, fmt=".", color=colours[name], markersize=5, elinewidth=0.6)
            if name in ranges:
                ax.plot([place + 0.42] * 2, ranges[name], color="black", marker="_", linewidth=0.8)
        ax.set_xticks(range(1, len(groups) + 1), list(groups), rotation=35, ha="right", fontsize=7)
        label_axes(ax, title, "", "MSE / MSE(SRS, HT)")
        logarithmic_scale(ax)
        ax.axhline(1.0, color="#b00000", linewidth=1.0, linestyle="--")
    return save_figure(figure, (), path)


def _draw_bars(panels: Ratios, path: Path) -> Path:
    """Draw groups of bars, one group for each stratum, one bar for each allocation."""
    figure, axes = grid_of_axes(len(panels), 3)
    for (title, series), ax in zip(panels.items(), axes, strict=False):
        width = 0.8 / max(len(series), 1)
        for number, (name, values) in enumerate(series.items()):
            places = np.arange(1, len(values) + 1) + (number - (len(series) - 1) / 2) * width
            ax.bar(places, values, width=width, label=name, color=COLOURS[number])
        label_axes(ax, title, "stratum, by f", "labels of 100")
    return save_figure(figure, axes, path)


def figure_3(page: Page, cases: list[Case], measured: dict[str, Measured], shown: list[Case]) -> None:
    """Draw the difference estimator's error against accuracy, and n_h by allocation."""
    accuracy = np.linspace(0.02, 0.99, 60)
    points = [(float(case.z.mean()), measured[case.name].difference_error, case.name) for case in cases]
    x, y, names = (list(column) for column in zip(*points, strict=True))
    lines = [Line(x=x, y=y, label="difference estimator, f", names=names, style=line_style(1) | POINTS)]
    for share, label in ((1.0, "relative MSE 1 (top), ¾ and ½ (bottom)"), (0.75, ""), (0.5, "")):
        curve = share * accuracy * (1 - accuracy)
        lines.append(Line(x=accuracy.tolist(), y=curve.tolist(), label=label, style=PLAIN))
    drawn = panel("closed form, no noise", "MSE · n / (1 − f)", lines, "accuracy", level=None)
    title = "Figure 3, left: the difference estimator's error against accuracy"
    page.draw(title, [drawn], "figure_3_left.png", columns=1)
    bars = {c.name: {name: n_h.tolist() for name, n_h in true_allocation(c).items()} for c in shown}
    path = _draw_bars(bars, page.directory / "figure_3_right.png")
    page.add_figure("Figure 3, right: allocation per stratum, ideal and plug-in", path)
    _gains(page, measured)


def _gains(page: Page, measured: dict[str, Measured]) -> None:
    keys = (("SSRS Neyman HT", "f"), ("SSRS proportional HT", "f"))
    gains = {name: m.ratios[keys[1]] - m.ratios[keys[0]] for name, m in measured.items()}
    better = [name for name, gain in gains.items() if gain > 0]
    of, share, printed = len(gains), len(better) / len(gains), 7 / 34
    found = f"on {len(better)} of {of}: {', '.join(better) or 'none'}"
    error = float(np.sqrt(share * (1 - share) / of))
    page.claim(
        where="Fig. 3, right",
        says="with f, Neyman's plug-in rule gains over proportional on some sets (1 of the 3 shown), not "
        "on all",
        found=found,
        numbers=[within((share, error), 1 / of, 1 - 1 / of)],
        sets=of,
    )
    page.claim(
        where="Table 1",
        says="with f, Neyman's plug-in rule gains over proportional on 7 of 34 sets",
        found=found,
        # The print's share is of 34 sets, and known to no more than its binomial standard error.
        numbers=[near((share, error), printed, float(np.sqrt(printed * (1 - printed) / 34)))],
        sets=of,
    )


def figure_7(page: Page, shifted: dict[str, Measured]) -> None:
    """Draw Neyman's ratio against proportional's, one point for each domain."""
    panels = []
    for chosen in SETS:
        lines = []
        for number, where in enumerate(WHERE):
            found = {n: m for n, m in shifted.items() if n.startswith(f"{chosen}, {where}")}
            x = [m.ratios["SSRS proportional HT", "f*c"] for m in found.values()]
            y = [m.ratios["SSRS Neyman HT", "f*c"] for m in found.values()]
            apart = [abs(np.log(b / a)) > 0.35 for a, b in zip(x, y, strict=True)]
            names = [n.split(", ", 2)[2] if far else "" for n, far in zip(found, apart, strict=True)]
            lines.append(Line(x=x, y=y, label=where, names=names, style=line_style(number) | POINTS))
        if not lines[0].x:
            continue
        same = np.linspace(min(lines[0].x), 1.0, 40).tolist()
        lines.append(Line(x=same, y=same, label="Neyman as good as proportional", style=PLAIN))
        labels = "Neyman: MSE / SRS", lines, "proportional: MSE / SRS"
        panels.append(panel(chosen, *labels, level_label="as good as SRS", logarithmic="y"))
    page.draw(
        "Figure 7: in and out of distribution",
        panels,
        "figure_7.png",
        columns=2,
        words="Strata and S_h are computed from f, calibrated in distribution. The digits, for several "
        "models, are unchanged, noisy, shifted by one pixel, at half brightness, blurred, or with the top "
        "cut off. The photographs are divided into bands: some are from the halves on which a forest was "
        "trained, the others from the other halves. The Monte Carlo standard error of a ratio is about 2% "
        "of the ratio. Domains in which the two allocations differ strongly are named in the figure.",
    )
