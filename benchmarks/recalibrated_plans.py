"""Do labels of an earlier sample mend a plan's promise? Standard errors, promised and true, real files.

    python benchmarks/recalibrated_plans.py [--draws 20]

Each draw labels some units, every other time by the default plan and at random in between, and plans 400 more
with them. Beside it stands what was promised on the proxy's word alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from benchmarks.helpers import BINARY, GRADED, load

import stratal
from stratal.arrays import FloatArray
from stratal.planning.plan import Plan, PlannedDesign
from stratal.strata.strata import expected_variance

RESULTS = Path(__file__).parent / "results" / "recalibrated_plans.md"
FILES = sorted([*BINARY, *GRADED])
LABELS = (100,)
BUDGET = 400


def stratified(plan: Plan) -> PlannedDesign:
    """Return the row of the default design and estimator."""
    rows = [row for row in plan.designs if row.design == "stratified"]
    return next(row for row in rows if row.estimator == "horvitz-thompson")


def errors(plan: Plan) -> tuple[float, float, float]:
    """Return the standard errors of its row: optimistic, expected and conservative."""
    row = stratified(plan)
    found = (row.optimistic_standard_error, row.expected_standard_error, row.conservative_standard_error)
    return tuple(float("nan") if one is None else one for one in found)  # type: ignore[return-value]


def true_error(plan: Plan, z: FloatArray) -> float:
    """Return the standard error that a plan's sample has."""
    strata = plan.strata
    variances = np.array([z[strata.codes == h].var() for h in range(strata.n_strata)])
    return float(np.sqrt(expected_variance(strata.sizes, plan.allocation.n_h, variances)))


def rows(name: str, draws: int) -> Iterator[str]:
    """Yield a row of the table for each number of labels."""
    z, proxy = load(name)
    population = stratal.Population.from_arrays(proxy=proxy)
    before = stratal.plan(population, BUDGET, n_strata=10)
    true, (low, middle, high) = true_error(before, z), errors(before)
    for m in LABELS:
        found = []
        for seed in range(draws):
            plan = stratal.plan(population, m)
            design = plan.design if seed % 2 == 0 else stratal.designs.SimpleRandom(budget=m)
            ids = design.draw(population, seed=seed).ids.tolist()
            labels = {unit: z[unit] for unit in ids}
            found.append(errors(stratal.plan(population, BUDGET, n_strata=10, labels=labels)))
        each = np.array(found)
        optimistic, expected, conservative = each.mean(axis=0)
        inside = np.mean((each[:, 0] <= true) & (true <= each[:, 2]))
        off = np.sqrt(np.mean((each[:, 1] / true - 1) ** 2))
        yield (
            f"| {name} | {m} | {true:.4f} | {middle:.4f} ({low:.4f}–{high:.4f}) | "
            f"{expected:.4f} ({optimistic:.4f}–{conservative:.4f}) | {off:.2f} | {inside:.2f} |"
        )


def main() -> None:
    """Measure all files and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=20)
    draws = parser.parse_args().draws
    lines = [line for name in FILES for line in rows(name, draws)]
    RESULTS.write_text(
        "# Plans with labels of an earlier sample\n\n"
        f"`python benchmarks/recalibrated_plans.py --draws {draws}`: standard error of {BUDGET} labels by "
        "the default design in ten strata, true and as planned (optimistic to conservative); on the proxy's "
        f"word alone, and with so many labels, mean of {draws} draws. `off`: root mean squared relative "
        "error of the expected one. `inside`: how often the range, nine tenths of what labels leave open, "
        "holds the true one.\n\n"
        "| file | labels | true | proxy's word | with labels | off | inside |\n"
        "|---|---|---|---|---|---|---|\n" + "\n".join(lines) + "\n"
    )


if __name__ == "__main__":
    main()
