"""Coverage by enumeration: quantiles of simple random samples, and differences of two models without a proxy.

    OMP_NUM_THREADS=1 python -m benchmarks.exact_cells [--step 1] [--sizes 5,10,20,50,100]

Quantiles of .01 to .99 with 20 to 400 labels: 1 in 2,000, half or four fifths of the units. Differences of
right and wrong answers for every number of wins and losses: of all units, and labelled only where two models
differ, of which a tenth of 20,000 answers are. Writes benchmarks/results/exact_cells.md.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np
from scipy.stats import hypergeom, multinomial

import stratal
from stratal.arrays import FloatArray
from stratal.estimation.respondents import Respondents
from stratal.intervals.hypergeometric import quantile_ranks
from stratal.metrics.comparison import ModelOutcomes

RESULTS = Path(__file__).with_name("results") / "exact_cells.md"
FRACTIONS = (0.0005, 0.5, 0.8)
PROBABILITIES = np.arange(1, 100) / 100
RATES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
DIFFERING = 0.1
CLOSE = 1e-9


def quantile_coverage(n: int, size: int, probabilities: FloatArray) -> FloatArray:
    """Return the coverage of 95 % intervals of quantiles (q,) of N different values, n of them labelled."""
    ranks = [quantile_ranks(n, size, probability, 0.025, 0.025) for probability in probabilities.tolist()]
    low, high = np.array(ranks).T
    at_or_below = np.ceil(probabilities * size - 1e-6).astype(np.int64)
    missed_below = hypergeom(size, at_or_below, n).cdf(low - 1)
    missed_above = hypergeom(size, at_or_below - 1, n).sf(high - 1)
    return np.asarray(1.0 - missed_below - missed_above)


def two_models(differing: float) -> stratal.Population:
    """Return 20,000 units on which two models answer differently in this share, and alike elsewhere."""
    first = np.zeros(20_000, dtype=np.int64)
    second = first.copy()
    second[: round(differing * len(first))] = 1
    names = np.array(["cat", "dog"])
    groups = {"first": names[first], "second": names[second]}
    return stratal.Population.from_arrays(ids=np.arange(len(first)), groups=groups)


def difference_limits(sample: stratal.Sample, *, known: bool) -> tuple[FloatArray, FloatArray]:
    """Return wins and losses (c, 2), and the limits (c, 2) of the difference, for every sample of n units."""
    n, everyone = sample.size, np.ones(sample.size, dtype=bool)
    estimand = stratal.estimands.Difference(("first", "second"))
    respondents = Respondents.of(sample, everyone, estimand.agreement if known else None)
    counts = np.array([(k, j) for k, j in product(range(n + 1), repeat=2) if k + j <= n])
    limits = []
    for wins, losses in counts.tolist():
        first = np.repeat([1.0, 0.0, 0.0], [wins, losses, n - wins - losses])
        second = np.repeat([0.0, 1.0, 0.0], [wins, losses, n - wins - losses])
        pair = ModelOutcomes(
            sample=sample,
            respondents=respondents,
            labelled=everyone,
            z=np.column_stack([first, second]),
            models=("first", "second"),
            bounds=(0.0, 1.0),
        )
        limits.append([*pair.difference().confidence_interval()])
    return counts, np.array(limits)


def difference_coverage(n: int, *, known: bool) -> dict[tuple[float, float], float]:
    """Return the coverage at each pair of rates of wins and losses among the units that are labelled."""
    population = two_models(DIFFERING)
    if known:
        sample = stratal.plan(population, n, estimand="difference:first,second").draw(seed=1)
    else:
        sample = stratal.designs.SimpleRandom(budget=n).draw(population, seed=1)
    counts, limits = difference_limits(sample, known=known)
    outcomes = np.column_stack([counts, n - counts.sum(axis=1)])
    covered = {}
    complements = [(1.0 - rate, rate) for rate in RATES]
    for wins, losses in (*product(RATES, RATES), *complements):
        if losses <= wins and wins + losses <= 1.0 + CLOSE:
            chances = np.array([wins, losses, max(1.0 - wins - losses, 0.0)])
            probability = multinomial(n, chances / chances.sum()).pmf(outcomes)
            truth = (wins - losses) * (DIFFERING if known else 1.0)
            held = (limits[:, 0] <= truth + CLOSE) & (truth <= limits[:, 1] + CLOSE)
            covered[wins, losses] = float(probability @ held)
    return covered


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--sizes", default="5,10,20,50")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    sizes = range(20, 401, options.step)
    lines = [
        "# Quantiles and differences, by enumeration",
        "",
        f"    python -m benchmarks.exact_cells --step {options.step} --sizes {options.sizes}",
        "",
        "Quantiles of .01 to .99, simple random samples of 20 to 400 labels:",
        "",
        "| share of units labelled | cells | least coverage | mean coverage |",
        "|---|---|---|---|",
    ]
    for fraction in FRACTIONS:
        found = np.array([quantile_coverage(n, round(n / fraction), PROBABILITIES) for n in sizes])
        lines.append(f"| {fraction:g} | {found.size} | {found.min():.4f} | {found.mean():.4f} |")
    lines += [
        "",
        "Differences of right and wrong, wins and losses of 0 to .99 of the units that are labelled:",
        "",
        "| labelled | labels | cells | least coverage | at wins, losses | without ties |",
        "|---|---|---|---|---|---|",
    ]
    for known, n in product((False, True), map(int, options.sizes.split(","))):
        cells = difference_coverage(n, known=known)
        worst = min(cells, key=lambda rates: cells[rates])
        alone = min(share for rates, share in cells.items() if abs(sum(rates) - 1.0) < CLOSE)
        name = "where models differ" if known else "simple random"
        lines.append(
            f"| {name} | {n} | {len(cells)} | {cells[worst]:.4f} | {worst[0]:g}, {worst[1]:g} | {alone:.4f} |"
        )
    options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
