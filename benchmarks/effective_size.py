"""How often the range around the effective sample size holds the true one, of the default plan on real data.

The true size is that of a simple random sample with the same variance, from the true S_h of the strata.

    python benchmarks/effective_size.py [--data DIR] [--sets NAME,…] [--draws 300]
"""

from __future__ import annotations

import argparse
import warnings
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from benchmarks.helpers import BINARY, DATA, GRADED

import stratal

SETS = sorted({*BINARY, *GRADED} - {"nq301_llmjudge"})
BUDGETS = (100, 400)


HEADING = """# The range of the effective sample size

`python benchmarks/effective_size.py --draws {draws}`, {day}

How often the range that a report prints around "worth so many random ones" holds the true size: the default
plan on real predictions, the size that the true S_h of its strata give, {draws} draws each, level 95 %. Each
stratum borrows two labels from all others, which costs width where outcomes are not rare: there the range
holds more often than it says.
"""


def measured(path: Path, budget: int, draws: int) -> list[object]:
    """Return the data's name, the budget, the true size, and what the draws gave."""
    table = pq.read_table(path, columns=["z", "proxy"])
    z = table["z"].to_numpy().astype(np.float64)
    population = stratal.Population.from_arrays(proxy=table["proxy"].to_numpy())
    plan = stratal.plan(population, budget)
    strata, n_h = plan.strata, plan.allocation.n_h
    codes = np.zeros(len(z), int) if strata.codes is None else strata.codes
    squares = np.array([z[codes == h].var(ddof=1) for h in range(strata.n_strata)])
    variance = np.sum(strata.weights**2 * (1 - n_h / strata.sizes) * squares / n_h)
    true = z.var(ddof=1) / (variance + z.var(ddof=1) / len(z))
    found, sizes, unknown = [], [], 0
    for seed in range(draws):
        sample = plan.draw(seed=seed)
        estimate = stratal.estimate(sample, z[sample.ids])
        interval = estimate.effective_sample_size_interval()
        if interval is None:
            unknown += 1
            continue
        found.append(interval)
        sizes.append(estimate.effective_sample_size or np.nan)
    low, high = np.array(found).T
    held = np.mean((low <= true) & (true <= high))
    return [path.stem, budget, true, np.median(sizes), held, np.median(low), np.median(high), unknown]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--draws", type=int, default=300)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print(HEADING.format(draws=asked.draws, day=date.today().isoformat()))
    print("| data | labels | true size | median estimate | range holds it | median range | no range |")
    print("|---|---|---|---|---|---|---|")
    for name in asked.sets.split(","):
        for budget in BUDGETS:
            row = measured(asked.data / f"{name}.parquet", budget, asked.draws)
            shown = "| {} | {} | {:.0f} | {:.0f} | {:.3f} | {:.0f}–{:.0f} | {} |"
            print(shown.format(*row), flush=True)


if __name__ == "__main__":
    main()
