"""Draws the figures of the documentation from the package's own simulation: `python docs/figures.py [NAME…]`.

Every number in them is computed here with fixed seeds. They are SVG with text as text and the ink of the page
around them; `docs/build_site.py` sets them into the pages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from matplotlib.figure import Figure
from pathlib import Path
from stratal.estimands import ClassReport
from stratal.report.figures import COLOURS
from stratal.simulation.demonstration import make_data
from typing import Any
import json
import matplotlib
import numpy as np
import re
import stratal
import sys


sys.path.insert(0, str(Path(__file__).parent.parent))

from papers.panels import Line, Panel, draw_lines  # noqa: E402

PLACE = Path(__file__).with_name("figures")
INK, PAPER, RANDOM, CHOSEN = "#123456", "#fedcba", COLOURS[1], COLOURS[0]
MISSED = "#e0218a"
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "stratal",
    "font.family": "sans-serif",
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 9,
    "legend.frameon": False,
    "path.simplify_threshold": 0.5,
}
FIGURES: dict[str, Callable[[Path], Any]] = {}


def figure(draw: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """Enter a function as the figure of its name."""
    FIGURES[draw.__name__.replace("_", "-")] = draw
    return draw


@cache
def digits() -> tuple[stratal.Population, np.ndarray]:
    """Return the demonstration's population and whether its classifier is right (N,)."""
    data = make_data()
    return stratal.Population.from_arrays(proxy={"confidence": data.confidence}, ids=data.ids), data.outcomes


@cache
def generated(slope: float = 0.8, size: int = 20_000, seed: int = 0) -> tuple[stratal.Population, np.ndarray]:
    """Return a population whose outcomes follow the log-odds of its confidence with a slope (N,)."""
    rng = np.random.default_rng(seed)
    confidence = rng.beta(4, 1, size).clip(0.01, 0.99)
    odds = np.log(confidence / (1 - confidence))
    outcome = (rng.random(size) < 1 / (1 + np.exp(-slope * odds))).astype(float)
    return stratal.Population.from_arrays(proxy=confidence), outcome


def column(table: Any, name: str, **where: str) -> list[float]:
    """Return a column of a simulation's table in the order of budgets, of the rows that have these entries."""
    kept = np.all([table[entry] == value for entry, value in where.items()] or [table["budget"] > 0], axis=0)
    return table[name][kept][np.argsort(table["budget"][kept], kind="stable")].tolist()


def means(
    draw: Callable[[int], Any], outcome: np.ndarray, draws: int, place: dict[str, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the estimates (draws,) and their 95 % intervals (draws, 2) of draws with seeds 0, 1, …"""
    found = []
    for seed in range(draws):
        sample = draw(seed)
        labels = outcome[[place[name] for name in sample.ids.tolist()]]
        estimate = stratal.estimate(sample, labels, outcome="binary")
        found.append((estimate.value, *estimate.confidence_interval()))
    table = np.array(found)
    return table[:, 0], table[:, 1:]


def shares(axis: Any, values: np.ndarray, right: np.ndarray, bins: np.ndarray) -> None:
    """Draw a histogram of the confidences, wrong answers on top of right ones."""
    labels, colours = ["right", "wrong"], ["#8fb8d8", RANDOM]
    axis.hist([values[right == 1], values[right == 0]], bins, stacked=True, label=labels, color=colours)
    axis.set_xlabel("the model's confidence")
    axis.set_ylabel("answers")


EFFICIENCY = {"y_label": "relative efficiency", "level": 1, "level_label": "a simple random sample"}


def by_labels(title: str, lines: Sequence[Line], y_label: str = "", **more: Any) -> Panel:
    """Return a panel over the number of labels."""
    return Panel(
        title=title, lines=lines, **{"x_label": "labels", "logarithmic": "x", "y_label": y_label} | more
    )


def one_panel(path: Path, **panel: Any) -> None:
    """Draw one panel over something other than labels."""
    draw_lines([Panel(**panel)], path)


def tried(
    data: tuple[stratal.Population, np.ndarray],
    design: str,
    budgets: Sequence[int],
    *,
    what: str = "relative_efficiency",
    replicates: int = 40_000,
    **options: Any,
) -> list[float]:
    """Return what a simulation finds of one design, for each budget."""
    table = stratal.simulate(
        *data, designs=[design], budgets=list(budgets), replicates=replicates, **{"intervals": ()} | options
    )
    return column(table, what)


def rows_of_digits() -> dict[str, int]:
    """Return id → row of the demonstration's population."""
    return {name: row for row, name in enumerate(make_data().ids.tolist())}


@figure
def same_labels(path: Path) -> None:
    """Where 100 labels go, and how far 200 estimates of each kind lie from the truth."""
    population, right = digits()
    plan, place = stratal.plan(population, 100), rows_of_digits()
    drawn = Figure(figsize=(6.6, 4.9), layout="constrained")
    grid = drawn.add_gridspec(2, 2, height_ratios=[1.15, 1])
    left, middle, far = map(drawn.add_subplot, (grid[0, 0], grid[0, 1], grid[1, :]))
    picked = [place[name] for name in plan.draw(seed=7).ids.tolist()]
    groups, places = np.digitize(make_data().confidence, [0.5, 0.7, 0.9, 0.97]), np.arange(5)
    units = np.bincount(groups, minlength=5)
    left.bar(places, 100 * np.bincount(groups, 1 - right, 5) / units, color="#8fb8d8")
    for number, size in enumerate(units):
        height = 100 * (1 - right[groups == number].mean())
        left.text(number, height + 1, f"{size}", ha="center", fontsize=8)
    left.set_title("percent wrong, and how many answers", fontsize=9)
    middle.bar(places - 0.2, 100 * units / units.sum(), 0.4, color=RANDOM, label="at random")
    middle.bar(places + 0.2, np.bincount(groups[picked], minlength=5), 0.4, color=CHOSEN, label="by stratal")
    middle.set_title("where 100 labels go", fontsize=9)
    middle.legend(fontsize=8)
    for axis in (left, middle):
        axis.set_xticks(places, ["below .5", ".5–.7", ".7–.9", ".9–.97", "above"], fontsize=8)
        axis.set_xlabel("the model's confidence")
    draws = {
        "100 at random": lambda seed: stratal.designs.SimpleRandom(budget=100).draw(population, seed),
        "100 by stratal": plan.draw,
    }
    for number, (name, draw) in enumerate(draws.items()):
        found = means(draw, right, 200, place)[0]
        jitter = np.random.default_rng(0).uniform(-0.28, 0.28, len(found))
        far.plot(found, 1 - number + jitter, ".", markersize=2.5, alpha=0.6, color=(RANDOM, CHOSEN)[number])
        spread = np.sqrt(np.mean((found - right.mean()) ** 2))
        far.text(0.85, 1.36 - number, f"{name}: typical error {100 * spread:.1f} points", fontsize=8)
    far.axvline(right.mean(), color=INK, linewidth=0.9, linestyle=":")
    far.set(yticks=[], ylim=(-0.5, 1.65), xlim=(0.85, 1.0), xlabel="estimated accuracy; dotted: the truth")
    far.set_title("200 studies of each kind", fontsize=9)
    far.spines["left"].set_visible(False)
    drawn.savefig(path)


@figure
def strata_of_digits(path: Path) -> None:
    """Cuts of the confidence, and units and labels of each stratum."""
    population, right = digits()
    plan = stratal.plan(population, 100)
    drawn = Figure(figsize=(7.2, 2.9), layout="constrained")
    left, second = drawn.subplots(1, 2)
    shares(left, make_data().confidence, right, np.linspace(0.25, 1, 31))
    for number, cut in enumerate(plan.strata.rule.cuts):
        label = "_nolegend_" if number else "cuts"
        left.axvline(cut, color=INK, linewidth=0.8, linestyle="--", label=label)
    left.set_title("strata: cuts of the confidence", fontsize=9)
    left.legend(fontsize=8, loc="upper left", frameon=True, framealpha=1, facecolor=PAPER, edgecolor="none")
    n_h, sizes = np.asarray(plan.allocation.n_h), np.asarray(plan.strata.sizes)
    places = np.arange(1, len(n_h) + 1)
    second.bar(places - 0.2, 100 * sizes / sizes.sum(), 0.4, color="#8fb8d8", label="of the units")
    second.bar(places + 0.2, 100 * n_h / n_h.sum(), 0.4, color=CHOSEN, label="of the labels")
    second.set(xticks=places, xlabel="stratum, from least to most confident", ylabel="percent")
    second.set_title("doubtful strata get more than their share", fontsize=9)
    second.legend(fontsize=8)
    drawn.savefig(path)


@figure
def forty_intervals(path: Path) -> None:
    """Intervals of forty studies of each kind."""
    population, right = digits()
    kinds = {
        "at random": lambda seed: stratal.designs.SimpleRandom(budget=100).draw(population, seed),
        "in strata": stratal.plan(population, 100).draw,
    }
    drawn = Figure(figsize=(7.2, 2.9), layout="constrained")
    for (name, draw), axis, colour in zip(
        kinds.items(), drawn.subplots(1, 2, sharey=True), (RANDOM, CHOSEN), strict=True
    ):
        values, bounds = means(draw, right, 40, rows_of_digits())
        miss = (bounds[:, 0] > right.mean()) | (bounds[:, 1] < right.mean())
        axis.vlines(
            np.arange(40),
            *bounds.T,
            colors=np.where(miss, MISSED, colour),
            linewidth=np.where(miss, 2.6, 1.6),
        )
        axis.plot(np.flatnonzero(~miss), values[~miss], "o", markersize=2.5, color=INK)
        axis.plot(np.flatnonzero(miss), values[miss], "X", markersize=6, color=INK)
        axis.axhline(right.mean(), color=INK, linewidth=0.9, linestyle=":")
        width = 100 * np.diff(bounds, axis=1).mean()
        axis.set_title(f"{name}: mean width {width:.1f} points, {miss.sum()} of 40 miss", fontsize=9)
        axis.set(xticks=[], xlabel="forty studies of 100 labels; dotted: the truth")
    drawn.axes[0].set_ylabel("accuracy, 95 % interval")
    drawn.savefig(path)


@figure
def proxies(path: Path) -> None:
    """What a proxy is worth, by how well it tells the outcome."""
    slopes = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0]
    ways = {
        "at random, proxy unused": ("simple-random", "horvitz-thompson"),
        "at random, proxy in the estimate (ppi++)": ("simple-random", "ppi++"),
        "in strata made of the proxy": ("k-means:10:robust", "horvitz-thompson"),
    }
    lines = [
        Line(
            x=slopes,
            label=name,
            y=[
                tried(generated(slope), design, [200], what="effective_sample_size", estimators=[estimator])[
                    0
                ]
                for slope in slopes
            ],
        )
        for name, (design, estimator) in ways.items()
    ]
    panel = Panel(
        title="200 labels of 20,000 units",
        x_label="how steeply outcomes follow the proxy (0: useless, 1: as it says)",
        y_label="random labels they are worth",
        lines=lines,
        level=200,
        level_label="200 labels",
    )
    draw_lines([panel], path)


@figure
def strata(path: Path) -> None:
    """Efficiency by method and number of strata."""
    numbers = [2, 3, 5, 8, 10, 15, 20, 30]
    lines = [
        Line(
            x=numbers,
            label=method,
            y=[tried(generated(), f"{method}:{number}:robust", [100])[0] for number in numbers],
        )
        for method in ("k-means", "neyman", "equal-size", "equal-width", "cum-sqrt-f")
    ]
    title = "100 labels of 20,000 units, robust allocation"
    draw_lines([Panel(title=title, x_label="number of strata", lines=lines, **EFFICIENCY)], path)


@figure
def allocation(path: Path) -> None:
    """Efficiency by allocation where the proxy is over- and underconfident."""
    slopes = [0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0]
    lines = [
        Line(
            x=slopes,
            label=rule,
            style={"linestyle": "--"} if rule == "oracle" else {},
            y=[tried(generated(slope), f"k-means:10:{rule}", [200])[0] for slope in slopes],
        )
        for rule in ("proportional", "neyman", "robust", "oracle")
    ]
    x_label = "slope (below 1: the proxy is too sure of itself)"
    draw_lines(
        [Panel(title="200 labels, ten k-means strata", x_label=x_label, lines=lines, **EFFICIENCY)], path
    )


@figure
def designs(path: Path) -> None:
    """Efficiency by design and budget."""
    budgets = [50, 100, 200, 400]
    kinds = {
        "simple-random": "ppi++",
        "k-means:10:robust": "horvitz-thompson",
        "proportional-to-size": "ppi++",
        "poisson": "ppi++",
    }
    quick = ("simple-random", "k-means:10:robust")
    lines = [
        Line(
            x=budgets,
            label=f"{design}, {estimator}",
            y=tried(
                generated(size=5000),
                design,
                budgets,
                estimators=[estimator],
                replicates=20_000 if design in quick else 4000,
            ),
        )
        for design, estimator in kinds.items()
    ]
    draw_lines([by_labels("5,000 units", lines, **EFFICIENCY)], path)


@figure
def means_by_estimator(path: Path) -> None:
    """Efficiency by estimator, in a simple random sample, with a good and a weak proxy."""
    budgets = [30, 50, 100, 200, 400]
    panels = [
        by_labels(
            title,
            [
                Line(
                    x=budgets,
                    label=name,
                    y=tried(generated(slope), "simple-random", budgets, estimators=[name]),
                )
                for name in ("horvitz-thompson", "difference", "ppi++")
            ],
            limits=(0.9, 1.3),
            **EFFICIENCY,
        )
        for title, slope in (("a good proxy (slope 1)", 1.0), ("a weak one (slope 0.25)", 0.25))
    ]
    draw_lines(panels, path, columns=2)


@figure
def intervals(path: Path) -> None:
    """Coverage of intervals where most labels agree."""
    budgets, panels = [20, 30, 50, 100, 200], []
    population = stratal.Population.from_arrays(proxy=np.full(20_000, 0.5))
    for rate in (0.9, 0.97):
        data = population, (np.arange(20_000) < rate * 20_000).astype(float)
        lines = [
            Line(
                x=budgets,
                label=name,
                style={"linestyle": "--"} if name == "normal" else {},
                y=tried(data, "simple-random", budgets, what="coverage", intervals=[name]),
            )
            for name in ("auto", "wilson", "t", "normal")
        ]
        title = f"a simple random sample, {100 * rate:.0f} % right"
        panels.append(
            by_labels(
                title, lines, "coverage of 95 % intervals", level=0.95, level_label="95 %", limits=(0.4, 1.01)
            )
        )
    draw_lines(panels, path, columns=2)


def cells(page: str) -> dict[str, list[float]]:
    """Return heading → coverage of every cell, of a page of the benchmarks."""
    found: dict[str, list[float]] = {}
    text = (PLACE.parents[1] / "benchmarks" / "results" / page).read_text()
    for heading, table in re.findall(r"^### (.*)\n\n((?:\|.*\n)+)", text, re.MULTILINE):
        first, _, *rows = [[part.strip() for part in row.strip("|").split("|")] for row in table.splitlines()]
        if "coverage" in first:
            found[re.sub(r" \([^()]*draws.*\)", "", heading)] = [
                float(row[first.index("coverage")]) for row in rows
            ]
    return found


@figure
def coverage(path: Path) -> None:
    """Every cell of the coverage of `auto`, as it stands on the pages of the benchmarks."""
    groups = cells("interval_cells.md") | cells("coverage.md")
    drawn = Figure(figsize=(6.6, 4.6), layout="constrained")
    axis, rng = drawn.subplots(), np.random.default_rng(0)
    for row, (name, found) in enumerate(groups.items()):
        heights = row + rng.uniform(-0.25, 0.25, len(found))
        axis.plot(found, heights, ".", markersize=4, alpha=0.7, color=COLOURS[5], markeredgewidth=0)
    axis.axvline(0.95, color=INK, linewidth=0.9, linestyle=":")
    axis.set_yticks(range(len(groups)), list(groups), fontsize=7.5)
    axis.invert_yaxis()
    axis.set_xlabel("share of intervals that hold the truth; dotted: 95 %")
    axis.grid(axis="x", alpha=0.25, linewidth=0.5)
    drawn.savefig(path)


@figure
def scale(path: Path) -> None:
    """Time and memory against N, and time after the draw, as they stand among the results of the benchmarks."""
    found = json.loads((PLACE.parents[1] / "benchmarks" / "results" / "growth.json").read_text())
    units = found["units"]
    time = [Line(x=own["N"], y=own["seconds"], label=name) for name, own in units.items()]
    memory = [Line(x=own["N"], y=own["memory"], label=name) for name, own in units.items()]
    last = units["tables, DuckDB"]
    dashed = {"linestyle": ":", "color": INK, "marker": ""}
    for lines, what, ten in ((time, "seconds", 10.0), (memory, "memory", 1.0)):
        ends = [last[what][-1], last[what][-1] * ten]
        lines.append(Line(x=[last["N"][-1], 10 * last["N"][-1]], y=ends, label="extrapolated", style=dashed))
    after = [
        Line(x=own["at"], y=own["milliseconds"], label=name.partition(",")[0])
        for name, own in found["after the draw"].items()
    ]
    draw_lines(
        [
            Panel(title="time: plan and draw", x_label="N", y_label="seconds", lines=time, logarithmic="xy"),
            Panel(title="memory: plan and draw", x_label="N", y_label="GiB", lines=memory, logarithmic="xy"),
            Panel(title="after the draw", x_label="how many", y_label="milliseconds", lines=after, logarithmic="xy"),
        ],
        path,
    )


@figure
def history(path: Path) -> None:
    """What is left of a random sample's variance with earlier models' results, beside two peers."""
    text = (PLACE.parents[1] / "benchmarks" / "results" / "history.md").read_text()
    rows = [[part.strip() for part in line.strip("|").split("|")] for line in re.findall(r"^\|.*", text, re.MULTILINE)]
    first, _, *rows = rows
    # The page has a second table, with other columns.
    rows = [row for row in rows if len(row) == len(first)]
    names = list(dict.fromkeys(row[0] for row in rows))
    drawn = Figure(figsize=(6.6, 4.4), layout="constrained")
    axis = drawn.subplots()
    for at, (column, label) in enumerate({"ours": "stratal", "FAQ": "FAQ's policy", "plain active": "plain active inference"}.items()):
        means = [
            np.exp(np.mean([np.log(float(row[first.index(column)])) for row in rows if row[0] == name])) for name in names
        ]
        axis.plot(means, np.arange(len(names)) + 0.2 * (at - 1), "os^"[at], color=COLOURS[at], label=label, markersize=6)
    axis.axvline(1.0, color=INK, linewidth=0.9, linestyle=":")
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.invert_yaxis()
    axis.set_xlim(0.0, 1.1)
    axis.set_xlabel("variance over that of a random sample of as many labels (dotted: 1)")
    axis.legend(frameon=False, fontsize=8, loc="lower left")
    axis.grid(axis="x", alpha=0.25, linewidth=0.5)
    drawn.savefig(path)


@figure
def plans(path: Path) -> None:
    """What plans promise and what comes out."""
    population, outcome = digits()
    budgets = [50, 100, 200, 400]
    made = [stratal.plan(population, budget) for budget in budgets]
    got = [np.diff(means(plan.draw, outcome, 60, rows_of_digits())[1], axis=1).mean() / 2 for plan in made]
    low, high = zip(*(plan.half_width_range for plan in made), strict=True)
    expected = [plan.expected_half_width for plan in made]
    lines = [
        Line(x=budgets, y=expected, low=low, high=high, label="expected; shaded: optimistic to conservative"),
        Line(x=budgets, y=got, label="mean of 60 studies"),
    ]
    draw_lines([by_labels("the digits of the demonstration", lines, "half-width of the 95 % interval")], path)


@figure
def architecture(path: Path) -> None:
    """The way of a label to an interval, as boxes and arrows."""
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 560" font-family="system-ui, sans-serif" '
        'font-size="14" role="img" aria-label="The way of a label to an interval">',
        '<defs><marker id="a" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0 0 10 5 0 10z" fill="#5b84c4"/></marker></defs>',
    ]
    for x, y, width, height, fill, title, *rows in _BOXES:
        middle = x + width / 2
        parts += [
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{fill}" stroke="#5b84c4"/>',
            f'<text x="{middle:g}" y="{y + 20}" text-anchor="middle" font-weight="600" fill="#111">{title}</text>',
        ]
        parts += [
            f'<text x="{middle:g}" y="{y + 40 + 17 * k}" text-anchor="middle" fill="#333" '
            f'font-size="12.5">{row}</text>'
            for k, row in enumerate(rows)
        ]
    for x, y, to_x, to_y, label in _ARROWS:
        parts.append(
            f'<line x1="{x}" y1="{y}" x2="{to_x}" y2="{to_y}" stroke="#5b84c4" stroke-width="1.5" '
            'marker-end="url(#a)"/>'
        )
        level = y == to_y  # above an arrow to the side, beside one that leads down
        place = f'x="{(x + to_x) / 2 - 24 * (x > to_x and not level):g}" y="{(y + to_y) / 2 - 7:g}"'
        anchor = 'text-anchor="middle"' if level else 'dx="6"'
        parts += [f'<text {place} {anchor} font-size="12" fill="currentColor">{label}</text>'] if label else []
    path.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")


_BLUE, _SAND, _GREEN = "#eef3fb", "#f6f0e4", "#e9f5ec"

_BOXES: list[Any] = [
    (
        20,
        20,
        240,
        92,
        _BLUE,
        "labels/",
        "file, study, dict, array",
        "→ Labels: id, value, annotator, time",
        "joined to the sample by id",
    ),
    (
        320,
        20,
        240,
        92,
        _SAND,
        "designs/  Sample",
        "units drawn, their strata, proxies",
        "summaries, design, digest",
        "the estimand that it is for",
    ),
    (
        620,
        20,
        240,
        92,
        _BLUE,
        "estimation/  estimate()",
        "one verb for every estimand:",
        "Request (options) → Estimand",
        "which refuses what means nothing",
    ),
    (
        20,
        180,
        270,
        110,
        _GREEN,
        "a mean of one outcome",
        "outcome z of each labelled unit",
        "λ fitted to the proxies (lam)",
        "residuals z − λẑ, and what λ·ẑ is known",
        "to be over all units",
    ),
    (
        320,
        180,
        240,
        110,
        _BLUE,
        "Respondents",
        "the labelled units of the sample:",
        "strata without a label merged,",
        "nonresponse noted, weighting made",
    ),
    (
        590,
        180,
        270,
        110,
        _GREEN,
        "a function of means",
        "linearised variable u of each unit",
        "(metric, ratio, quantile, difference,",
        "coefficient, function of the user's)",
        "and, where needed, limits of its own",
    ),
    (320, 350, 240, 76, _SAND, "designs/", "weights of the design →", "mean, variance, degrees of freedom"),
    (
        20,
        350,
        240,
        76,
        _BLUE,
        "Evidence",
        "value, variance, residuals, bounds,",
        "weighting: all that an interval needs",
    ),
    (
        620,
        350,
        240,
        76,
        _BLUE,
        "Interval",
        "binomial on effective labels, sum of",
        "terms, function of shares, Fieller …",
    ),
    (
        170,
        470,
        240,
        76,
        _BLUE,
        "intervals/  methods",
        "level and kind chosen here:",
        "auto, or one of the table",
    ),
    (
        470,
        470,
        240,
        76,
        _BLUE,
        "Estimate, or Estimates",
        "value, error, notes, label;",
        "confidence_interval(), p_value()",
    ),
]

_ARROWS: list[Any] = [
    (260, 66, 318, 66, ""),
    (560, 66, 618, 66, ""),
    (660, 112, 480, 178, ""),
    (720, 112, 740, 178, ""),
    (620, 112, 230, 178, ""),
    (320, 235, 292, 235, ""),
    (560, 235, 588, 235, ""),
    (440, 290, 440, 348, ""),
    (130, 290, 130, 348, "residuals"),
    (740, 290, 740, 348, "limits"),
    (320, 388, 262, 388, "variance"),
    (630, 290, 540, 348, "u"),
    (170, 426, 250, 468, ""),
    (680, 426, 400, 480, ""),
    (410, 508, 468, 508, ""),
]


@figure
def adaptive(path: Path) -> None:
    """Efficiency of one round, of two, and of the printed rule."""
    budgets, panels = [100, 200, 400], []
    rules = {
        "one round, robust": "k-means:10:robust",
        "two rounds": "k-means:10:two-round",
        "OPT-A1 as printed": "k-means:10:opt-a1",
        "oracle Neyman": "k-means:10:oracle",
    }
    for title, slope in (
        ("an overconfident proxy (slope 0.3)", 0.3),
        ("an underconfident one (slope 2)", 2.0),
    ):
        lines = [
            Line(
                x=budgets,
                y=tried(generated(slope), design, budgets, replicates=20_000),
                label=name,
                style={"linestyle": "--"} if name.startswith("oracle") else {},
            )
            for name, design in rules.items()
        ]
        panels.append(by_labels(title, lines, **EFFICIENCY))
    draw_lines(panels, path, columns=2)


@figure
def simulation(path: Path) -> None:
    """Error against labels, from which the saving is read."""
    budgets = [50, 100, 200, 400, 800]
    lines = [
        Line(x=budgets, y=tried(generated(), design, budgets, what="mae"), label=name)
        for name, design in {"simple random": "simple-random", "stratified": "k-means:10:robust"}.items()
    ]
    draw_lines([by_labels("20,000 units", lines, "mean absolute error", logarithmic="xy")], path)


@figure
def selection(path: Path) -> None:
    """Models that can still be the best of 20, by labels, for models that are near each other and far apart."""
    size, lines = 4_000, []
    for step in (0.03, 0.01, 0.005):
        counts: dict[int, list[int]] = {}
        for seed in range(5):
            rng = np.random.default_rng([seed, round(1000 * step)])
            truth, wrong = rng.integers(0, 4, size), rng.integers(1, 4, size)
            hard = rng.normal(0, 0.15, size)
            columns = {
                f"m{j}": np.where(rng.normal(0.9 - step * j + hard, 0.3) > 0.5, truth, (truth + wrong) % 4)
                for j in range(20)
            }
            found = stratal.select(stratal.Population.from_arrays(groups=columns), answers=list(columns))
            while not found.done:
                found = found.update({unit: truth[unit] for unit in found.sample.ids.tolist()})
                counts.setdefault(found.labels, []).append(len(found.survivors))
        labels = sorted(counts)
        label = f"accuracies about {100 * step:g} points apart"
        lines.append(Line(x=[0, *labels], y=[20, *(float(np.mean(counts[n])) for n in labels)], label=label))
    one_panel(
        path,
        title="Labels where 20 models disagree",
        x_label="labels of 4,000 units",
        y_label="models that can still be the best",
        lines=lines,
    )


@figure
def thresholds(path: Path) -> None:
    """Error by accepted share, with the limits of the candidate sets, and the share that is accepted."""
    rng = np.random.default_rng(4)
    confidence = rng.beta(6, 1, 20_000)
    right = (rng.random(20_000) < confidence).astype(float)
    population = stratal.Population.from_arrays(proxy={"confidence": confidence})
    sample = stratal.designs.SimpleRandom(budget=600).draw(population, seed=7)
    result = stratal.threshold(sample, right[sample.ids], "error<=.1")
    shares = [row.share for row in result.candidates]
    order = np.argsort(-confidence)
    true = np.cumsum(1 - right[order]) / np.arange(1, 20_001)
    lines = [
        Line(x=shares, y=[row.estimate for row in result.candidates], label="estimate from 600 labels"),
        Line(x=shares, y=[row.limit for row in result.candidates], label="limit"),
        Line(x=shares, y=[float(true[round(20_000 * share) - 1]) for share in shares], label="truth"),
        Line(x=[result.chosen[0].share] * 2, y=[0.0, 0.1], label="accepted, error at most .1"),
    ]
    one_panel(
        path,
        title="Error among the accepted units",
        x_label="accepted share",
        y_label="error",
        lines=lines,
    )


@figure
def trends(path: Path) -> None:
    """Weekly estimates and the e-values of an alarm, before and after a fall."""
    rng = np.random.default_rng(3)
    rates = [0.93] * 15 + [0.84] * 10
    waves = []
    for week, rate in enumerate(rates):
        population = stratal.Population.from_arrays(ids=[f"{week}-{item}" for item in range(2_000)])
        sample = stratal.designs.SimpleRandom(budget=100).draw(population, seed=7)
        waves.append((sample, (rng.random(100) < rate).astype(float)))
    result = stratal.trend(waves, require=">=.9")
    described = result.to_dict()
    weeks = list(range(1, len(rates) + 1))
    estimates = [wave["estimates"][0] for wave in described["waves"]]
    levels = [
        Line(x=weeks, y=[row["estimate"] for row in estimates], label="estimate from 100 labels"),
        Line(x=weeks, y=[row["confidence_interval"][0] for row in estimates], label="lower end of 95 %"),
        Line(x=weeks, y=rates, label="truth"),
    ]
    values = [Line(x=weeks, y=described["alarms"][0]["e_values"], label="e-value")]
    panels = [
        Panel(title="Level by week", lines=levels, x_label="week", y_label="accuracy"),
        Panel(
            title="Alarm: at least .9 in every week",
            lines=values,
            x_label="week",
            y_label="e-value",
            logarithmic="y",
            level=20,
            level_label="alarm",
        ),
    ]
    draw_lines(panels, path)


@figure
def comparisons(path: Path) -> None:
    """Standard error of a difference, paired and not, by how much the models err together."""
    shares, rng, size = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0], np.random.default_rng(0), 20_000
    population = stratal.Population.from_arrays(proxy=np.full(size, 0.5))
    paired, apart = [], []
    for share in shares:
        common = rng.random(size) < share
        first = rng.random(size)
        second = np.where(common, first, rng.random(size))
        right = {"a": (first < 0.85).astype(float), "b": (second < 0.8).astype(float)}
        errors, alone = [], []
        for seed in range(20):
            sample = stratal.designs.SimpleRandom(budget=300).draw(population, seed=seed)
            drawn = {name: values[sample.ids] for name, values in right.items()}
            errors.append(stratal.compare(sample, drawn)[0].standard_error)
            alone.append(
                np.hypot(*(stratal.estimate(sample, values).standard_error for values in drawn.values()))
            )
        paired.append(np.mean(errors))
        apart.append(np.mean(alone))
    lines = [
        Line(x=shares, y=apart, label="two samples of 300"),
        Line(x=shares, y=paired, label="the same 300, paired"),
    ]
    one_panel(
        path,
        title="85 and 80 % right",
        x_label="share of units on which the two err alike",
        y_label="standard error of the difference",
        lines=lines,
    )


@figure
def judges(path: Path) -> None:
    """The share of failures by labels, by the judge, and by Rogan & Gladen's correction, labels by verdict."""
    rng, words, draws = np.random.default_rng(5), np.array(["pass", "fail"]), 60
    fails = rng.random(4_000) < 0.15
    verdict = np.where(rng.random(4_000) < 0.88, fails, ~fails)
    population = stratal.Population.from_arrays(groups={"judge": words[verdict.astype(int)]})
    names = {
        "prevalence": "by the labels",
        "rogan_gladen": "Rogan & Gladen",
        "predicted_prevalence": "the judge alone",
    }
    found: dict[str, list[float]] = {name: [] for name in names}
    for seed in range(draws):
        sample = stratal.plan(population, 300, by="judge", allocation="equal").draw(seed=seed)
        rows = stratal.estimate(sample, words[fails.astype(int)][sample.ids], judge="judge")
        for name, values in found.items():
            values.append(rows.of(metric=name, **{"class": "fail"}).value)
    lines = [
        Line(x=list(range(draws)), y=sorted(values), label=names[name], style={"linestyle": "none", "markersize": 4.5, "alpha": 0.8})
        for name, values in found.items()
    ]
    one_panel(
        path,
        title="300 labels, as many of each verdict",
        x_label="60 samples, in the order of their values",
        y_label="share of failures",
        lines=lines,
        level=float(fails.mean()),
        level_label="the truth",
    )


@figure
def metrics(path: Path) -> None:
    """Mean half-width of the intervals of four metrics of a class of 5 %."""
    rng, size, budgets = np.random.default_rng(1), 20_000, [100, 200, 400, 800]
    truth = rng.random(size) < 0.05
    score = 1 / (1 + np.exp(-(np.where(truth, 1.5, -3.5) + rng.normal(0, 1.5, size))))
    answers = np.where(score > 0.5, "yes", "no")
    names = np.where(truth, "yes", "no")
    population = stratal.Population.from_arrays(
        proxy=np.maximum(score, 1 - score), groups={"answer": answers}, predicted="answer"
    )
    found: dict[str, list[float]] = {name: [] for name in ("accuracy", "precision", "recall", "f1")}
    for budget in budgets:
        widths: dict[str, list[float]] = {name: [] for name in found}
        for seed in range(30):
            sample = stratal.plan(population, budget).draw(seed=seed)
            labels = dict(zip(sample.ids.tolist(), names[sample.ids].tolist(), strict=True))
            table = stratal.estimate(sample, labels, estimand=ClassReport(list(found)))
            for name in found:
                row = table.of(metric=name, **{"class": None if name == "accuracy" else "yes"})
                widths[name].append(float(np.diff([*row.confidence_interval()])[0]) / 2)
        for name in found:
            found[name].append(float(np.mean(widths[name])))
    lines = [Line(x=budgets, y=values, label=name, style={"linestyle": "--"} if name == "recall" else {}) for name, values in found.items()]
    draw_lines(
        [by_labels("a class of 5 %, plan for the accuracy", lines, "half-width of the interval")], path
    )


@figure
def estimands(path: Path) -> None:
    """Error of F1 of a rare class by what the sample was planned for."""
    rng, size, budgets = np.random.default_rng(2), 20_000, [200, 400, 800]
    score = rng.beta(0.15, 4, size).clip(1e-4, 1 - 1e-4)
    truth = np.where(rng.random(size) < score, "match", "other")
    answers = np.where(score > 0.4, "match", "other")
    population = stratal.Population.from_arrays(
        proxy={"score": score}, groups={"answer": answers}, predicted="answer"
    )
    f1 = stratal.estimands.F1("match", probability="score")
    hits = np.sum((truth == "match") & (answers == "match"))
    goal = 2 * hits / (np.sum(truth == "match") + np.sum(answers == "match"))
    plans = {
        "simple random": None,
        "strata made for F1, robust allocation": stratal.strata.stratify(
            population, "neyman", 10, influence=f1.influence(population)
        ),
    }
    lines = []
    for name, strata in plans.items():
        errors = []
        for budget in budgets:
            design: Any = stratal.designs.SimpleRandom(budget=budget)
            if strata is not None:
                design = stratal.designs.Stratified(
                    strata=strata, allocation=stratal.strata.allocate(strata, budget, "robust")
                )
            found = []
            for seed in range(60):
                sample = design.draw(population, seed=seed)
                labels = dict(zip(sample.ids.tolist(), truth[sample.ids].tolist(), strict=True))
                found.append(stratal.estimate(sample, labels, estimand=f1).value - goal)
            errors.append(float(np.sqrt(np.mean(np.square(found)))))
        lines.append(Line(x=budgets, y=errors, label=name))
    title = f"F1 of a class of {100 * np.mean(truth == 'match'):.1f} %, sixty studies each"
    draw_lines([by_labels(title, lines, "typical error of F1")], path)


@figure
def elsewhere(path: Path) -> None:
    """Half-width with and without predictions, by how often the judge is right."""
    rng, size, rights = np.random.default_rng(3), 10_000, [0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    truth = (rng.random(size) < 0.75).astype(float)
    powered, alone = [], []
    for right in rights:
        widths = []
        for seed in range(20):
            draw = np.random.default_rng(seed)
            judge = np.where(draw.random(size) < right, truth, 1 - truth)
            known = np.isin(np.arange(size), draw.choice(size, 300, replace=False))
            results = [
                stratal.estimate_from(truth[known], judge[known], judge[~known]),
                stratal.estimate_from(
                    truth[known], judge[known], judge[~known], estimator="horvitz-thompson"
                ),
            ]
            ends = [tuple(result.confidence_interval()) for result in results]
            widths.append([(high - low) / 2 for low, high in ends])
        powered.append(np.mean(widths, axis=0)[0])
        alone.append(np.mean(widths, axis=0)[1])
    lines = [
        Line(x=rights, y=alone, label="300 labels alone"),
        Line(x=rights, y=powered, label="and 10,000 judgements"),
    ]
    one_panel(
        path,
        title="prediction-powered inference",
        x_label="how often the judge is right",
        y_label="half-width of the interval",
        lines=lines,
        limits=(0, 0.06),
    )


@figure
def annotators(path: Path) -> None:
    """Where careless annotators move the estimate."""
    rng, slips = np.random.default_rng(4), [0.0, 0.02, 0.05, 0.1, 0.15]
    population = stratal.Population.from_arrays(proxy=np.full(5000, 0.5))
    truth = rng.random(5000) < 0.9
    lines = []
    for people, combine in ((1, "mean"), (3, "majority")):
        found = []
        for slip in slips:
            values = []
            for seed in range(20):
                sample = stratal.designs.SimpleRandom(budget=400).draw(population, seed=seed)
                says = truth[sample.ids] ^ (rng.random((people, 400)) < slip)
                labels = stratal.Labels(
                    ids=tuple(np.tile(sample.ids, people).tolist()),
                    values=tuple(says.astype(int).ravel().tolist()),
                    annotators=tuple(np.repeat([f"p{j}" for j in range(people)], 400).tolist()),
                )
                values.append(stratal.estimate(sample, labels, combine=combine).value)
            found.append(float(np.mean(values)))
        lines.append(Line(x=slips, y=found, label=f"{people} each" if people == 1 else "majority of 3"))
    one_panel(
        path,
        title="90 % are right",
        x_label="share of answers in which an annotator slips",
        y_label="mean of 20 estimates",
        lines=lines,
        level=float(truth.mean()),
        level_label="the truth",
    )


@figure
def regression(path: Path) -> None:
    """Standard error of a slope, by how often the judge is right."""
    from stratal.designs import StratifiedWeighting
    from stratal.regression import ArrayUnlabelled, linear_regression

    rng, size, n, rights = np.random.default_rng(5), 5000, 300, [0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    length = rng.uniform(size=size)
    right = (rng.random(size) < 0.9 - 0.5 * length).astype(float)
    stratum, x = np.zeros(size, dtype=int), np.column_stack([np.ones(size), length])
    found: dict[str, list[float]] = {"classical": [], "ppi++": []}
    for rate in rights:
        errors: dict[str, list[float]] = {name: [] for name in found}
        for _ in range(10):
            judge = np.where(rng.random(size) < rate, right, 1 - right)
            rows = rng.choice(size, n, replace=False)
            for name, kept in errors.items():
                fit = linear_regression(
                    x[rows],
                    right[rows],
                    proxy=judge[rows],
                    unlabelled=ArrayUnlabelled(features=x, proxy=judge),
                    estimator=name,
                    weighting=StratifiedWeighting(stratum=stratum[rows], sizes=np.bincount(stratum)),
                )
                kept.append(float(fit.standard_errors[-1]))
        for name, kept in errors.items():
            found[name].append(float(np.mean(kept)))
    lines = [Line(x=rights, y=values, label=name) for name, values in found.items()]
    one_panel(
        path,
        title="300 labels of 5,000: accuracy by length",
        x_label="how often the judge is right",
        y_label="standard error of the slope",
        lines=lines,
    )


def main(names: Sequence[str]) -> None:
    """Draw the figures of these names, or all."""
    PLACE.mkdir(exist_ok=True)
    for name in names or FIGURES:
        path = PLACE / f"{name}.svg"
        with matplotlib.rc_context(STYLE):
            FIGURES[name](path)
        path.write_text(tidy(path.read_text()))
        print(path, f"{path.stat().st_size / 1024:.0f} KiB")


def tidy(text: str) -> str:
    """Return an SVG without metadata, size and background, in the ink of the page."""
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<!DOCTYPE[^>]*>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg [^>]*?) width="[^"]*"', r"\1", re.sub(r'(<svg [^>]*?) height="[^"]*"', r"\1", text))
    text = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d+\.\d\d)\d+", r"\1", tag[0]), text)
    text = text.replace(INK, "currentColor").replace("#000000", "currentColor")
    text = text.replace(PAPER, "var(--md-default-bg-color, #ffffff)")
    text = re.sub(r"'DejaVu Sans'[^;\"]*", "inherit", text)
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip()) + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])
