"""Plans in order: are plans of more labels narrower, and strata no wider than a simple random sample?

    OMP_NUM_THREADS=1 python -m benchmarks.plan_order [--populations 2000] [--layouts 300] [--draws 1000]

Generated populations of 30 to 3,000 units with eight kinds of proxy and four kinds of groups are planned for
five budgets each: the first, one and two labels more, some labels more, and twice as many. Widths are those
that a plan expects; if nothing is expected of the proxy, the worst. The second table compares them with the
mean width of the default interval of drawn labels, in strata of random rates and sizes.
Writes benchmarks/results/plan_order.md.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.helpers import circumstances

import stratal
from stratal.arrays import AnyArray, FloatArray
from stratal.estimation.default_estimator import default_estimator
from stratal.planning.expected_widths import planned_half_width
from stratal.planning.interim_widths import interval_of_counts
from stratal.planning.plan import Plan, PlannedDesign
from stratal.strata.integer_allocation import AllocationBounds, optimal_integers

RESULTS = Path(__file__).with_name("results") / "plan_order.md"
SEED = 20_261_128
PROXIES = ("calibrated", "confident", "two values", "rare", "rating", "order", "f1", "none")
GROUPS = ("none", "equal", "geometric", "tiny")
# Shares by which a plan may be wider than one of fewer labels, and than a simple random sample.
ROUNDING = 0.002
MOST_WIDER = 0.01


STRATA = (1, 2, 3, 5, 10)
LEVEL = 0.95


def proxy_of(kind: str, size: int, random: np.random.Generator) -> FloatArray:
    """Return a proxy (N,) of a kind."""
    if kind in ("calibrated", "f1"):
        first, second = random.uniform(0.5, 6.0, 2).tolist()
        return random.beta(first, second, size)
    if kind == "confident":
        return np.where(random.random(size) < 0.9, 0.999, random.random(size))
    if kind == "two values":
        return random.choice([0.1, 0.9], size)
    if kind == "rare":
        return random.beta(0.2, 8.0, size)
    return random.uniform(1.0, 5.0, size)


def groups_of(kind: str, size: int, random: np.random.Generator) -> AnyArray:
    """Return the group (N,) of every unit: equal groups, ever smaller ones, or many of one to three units."""
    if kind == "equal":
        return np.arange(size) % int(random.integers(2, 40))
    if kind == "geometric":
        return np.minimum(random.geometric(random.uniform(0.1, 0.5), size), 60)
    few = min(int(random.integers(5, 120)), size // 2)
    names = 1000 + random.integers(0, int(random.integers(1, 15)), size)
    names[:few] = np.arange(few) // int(random.integers(1, 4))
    return np.asarray(names)


@dataclass(frozen=True, kw_only=True)
class PlanningTask:
    """A generated population, budgets in ascending order, and other arguments of `stratal.plan`."""

    proxy: str
    population: stratal.Population
    budgets: list[int]
    options: dict[str, Any]


def planning_task(number: int) -> PlanningTask:
    """Return a generated population with what is planned for it."""
    random = np.random.default_rng((SEED, number))
    kind = PROXIES[number % len(PROXIES)]
    group = GROUPS[number // len(PROXIES) % len(GROUPS)]
    size = int(np.exp(random.uniform(np.log(30), np.log(3_000))))
    columns: dict[str, Any] = {"ids": np.arange(size), "groups": {}}
    options: dict[str, Any] = {}
    if kind != "none":
        columns["proxy"] = proxy_of(kind, size, random)
    if kind == "rating":
        columns["bounds"] = (1.0, 5.0)
    if kind == "f1":
        columns["groups"]["answer"] = np.where(columns["proxy"] > random.uniform(0.2, 0.8), "yes", "no")
        columns["groups"]["answer"][:2] = ["yes", "no"]
        columns["predicted"] = "answer"
        options["estimand"] = "f1:yes,probability=proxy"
    elif group != "none":
        columns["groups"]["group"] = groups_of(group, size, random).astype(str)
        options["by"] = "group"
    first = int(np.exp(random.uniform(np.log(6), np.log(min(size / 2, 300)))))
    steps = (0, 1, 2, int(random.integers(3, 30)), first)
    return PlanningTask(
        proxy=kind,
        population=stratal.Population.from_arrays(**columns),
        budgets=sorted({min(first + step, size) for step in steps}),
        options=options,
    )


@dataclass(frozen=True, kw_only=True)
class Order:
    """How a plan compares with those of fewer labels, and with a simple random sample of its own budget.

    The first three are shares by which a width or standard error is larger, 0 or less where it is not. The
    comparisons with a simple random sample are None if no precision is forecast for it. `in_order` tells
    whether the optimistic width is the smallest and the conservative one the largest.
    """

    budget: int
    design: str
    wider_than_fewer: float
    error_above_simple: float | None
    wider_than_simple: float | None
    in_order: bool


def half_width_of(plan: Plan) -> float:
    """Return half the width to expect; the worst where nothing is expected."""
    expected = plan.expected_half_width
    return float((plan.worst_half_width if expected is None else expected) or 0.0)


def standard_error_of(row: PlannedDesign) -> float:
    """Return the standard error to expect; the worst where nothing is expected."""
    expected = row.expected_standard_error
    return float((row.worst_standard_error if expected is None else expected) or 0.0)


def has_forecast(row: PlannedDesign) -> bool:
    """Return whether a precision is forecast, or the worst is known."""
    return row.expected_standard_error is not None or row.worst_standard_error is not None


def simple_row(plan: Plan) -> PlannedDesign:
    """Return the simple random sample in a plan's table, with the estimator that it would have."""
    rows = {row.estimator: row for row in plan.designs if row.design == "simple-random"}
    scores = plan.population.proxies if plan.population is not None else ()
    usual = default_estimator(
        "simple-random", plan.budget, 1, len(scores), scaled=bool(scores) and scores[0].scaled
    )
    return rows.get(usual, plan.designs[0])


def share_above(value: float, other: float) -> float:
    """Return by which share a value is above another; 0 where both are 0."""
    if other > 0:
        return value / other - 1.0
    return 0.0 if value <= 1e-12 else math.inf


def orders_of_plans(task: PlanningTask, **options: Any) -> Iterator[Order]:
    """Yield how the plans of a population compare; further options are those of `stratal.plan`."""
    narrowest = math.inf
    for budget in task.budgets:
        plan = stratal.plan(task.population, budget, **(task.options | options))
        width = half_width_of(plan)
        low, high = plan.half_width_range or (width, width)
        simple = simple_row(plan)
        error_above_simple = None
        wider_than_simple = None
        if has_forecast(simple):
            error_above_simple = share_above(standard_error_of(plan.recommended), standard_error_of(simple))
            wider_than_simple = share_above(width, half_width_of(plan.using("simple-random")))
        yield Order(
            budget=budget,
            design=plan.recommended.design,
            wider_than_fewer=0.0 if math.isinf(narrowest) else share_above(width, narrowest),
            error_above_simple=error_above_simple,
            wider_than_simple=wider_than_simple,
            in_order=low <= width <= high,
        )
        narrowest = min(narrowest, width)


def expected_over_drawn(n_strata: int, random: np.random.Generator, draws: int) -> float:
    """Return the width that a plan of strata expects over the mean width of intervals of drawn labels."""
    total = int(np.exp(random.uniform(np.log(100), np.log(20_000))))
    sizes = np.maximum((total * random.dirichlet(np.full(n_strata, 3.0))).astype(np.int64), 12)
    first, second = random.uniform(0.3, 5.0, 2).tolist()
    ones = np.round(sizes * (0.02 + 0.96 * random.beta(first, second, n_strata)))
    rates = ones / sizes
    most = max(min(0.8 * sizes.sum(), 400), 6 * n_strata)
    labels = int(np.exp(random.uniform(np.log(max(5 * n_strata, 10)), np.log(most))))
    n_h = optimal_integers(sizes * np.sqrt(rates * (1 - rates) + 0.1), AllocationBounds.read(sizes), labels)
    drawn = random.hypergeometric(
        ones.astype(np.int64), sizes - ones.astype(np.int64), n_h, (draws, n_strata)
    )
    low, high = interval_of_counts(sizes, n_h, drawn, LEVEL)
    width = planned_half_width(
        sizes, n_h, rates, rates * (1 - rates), bounds=(0.0, 1.0), confidence_level=LEVEL
    )
    return float(2.0 * width / np.mean(high - low))


COLUMNS = (
    "proxy",
    "plans",
    "simple random",
    "simple random without a forecast",
    "wider than with fewer labels",
    "above .2 %",
    "standard error above simple random",
    "wider than simple random",
    "range out of order",
)


def row_of(proxy: str, orders: list[Order]) -> str:
    """Return the row of a kind of proxy: the largest shares of its plans, and how many exceed the limit."""
    entries = [
        proxy,
        len(orders),
        sum(order.design == "simple-random" for order in orders),
        sum(order.wider_than_simple is None for order in orders),
        f"{max(0.0, *(order.wider_than_fewer for order in orders)):.4f}",
        sum(order.wider_than_fewer > ROUNDING for order in orders),
        f"{max(0.0, *(order.error_above_simple or 0.0 for order in orders)):.4f}",
        f"{max(0.0, *(order.wider_than_simple or 0.0 for order in orders)):.4f}",
        sum(not order.in_order for order in orders),
    ]
    return f"| {' | '.join(map(str, entries))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--populations", type=int, default=2_000)
    parser.add_argument("--layouts", type=int, default=300)
    parser.add_argument("--draws", type=int, default=1_000)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    orders: dict[str, list[Order]] = {kind: [] for kind in PROXIES}
    for number in range(options.populations):
        task = planning_task(number)
        orders[task.proxy] += orders_of_plans(task)
    rows = [row_of(kind, plans) for kind, plans in orders.items()]
    random = np.random.default_rng(SEED)
    layouts = max(options.layouts // len(STRATA), 1)
    for n_strata in STRATA:
        ratios = [expected_over_drawn(n_strata, random, options.draws) for _ in range(layouts)]
        entries = [str(n_strata), str(layouts), *(f"{f(ratios):.3f}" for f in (np.mean, np.min, np.max))]
        rows.append(f"| {' | '.join(entries)} |")
    lines = [
        "# Plans in order",
        "",
        f"`python -m benchmarks.plan_order --populations {options.populations} "
        f"--layouts {options.layouts} --draws {options.draws}`, {circumstances()}",
        "",
        "A plan is expected to be at most .2 % wider than one of fewer labels, and at most 1 % wider than "
        "the simple random sample in its own table. Shares are the largest of all plans. No precision of "
        "F1 is forecast for a simple random sample with fewer than two expected labels of an answer.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|---{'|--:' * (len(COLUMNS) - 1)}|",
        *rows[: len(PROXIES)],
        "",
        "The expected width over the mean width of intervals of drawn labels of 0 and 1:",
        "",
        "| strata | layouts | expected over drawn, mean | least | greatest |",
        "|---|--:|--:|--:|--:|",
        *rows[len(PROXIES) :],
    ]
    options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
