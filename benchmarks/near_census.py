"""Coverage where most units are labelled: two strata by enumeration, several by simulation, ratings too.

    OMP_NUM_THREADS=1 python -m benchmarks.near_census [--draws 4000] [--most 12]

Every pair of strata of up to 12 units, every number of labels of each and every number of wrong units; then
two to ten strata of 8 to 500 units of which .5 to .99 are labelled, with one wrong unit, one in each stratum,
a tenth, and rates that differ. Ratings are 1 or 5 where the outcome is wrong or right. Writes
benchmarks/results/near_census.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from benchmarks.helpers import circumstances
from benchmarks.interval_cells import SEED
from scipy.stats import hypergeom

import stratal
from stratal.arrays import FloatArray, IntArray
from stratal.planning.interim_widths import interval_of_counts

RESULTS = Path(__file__).with_name("results") / "near_census.md"
FRACTIONS = (0.5, 0.8, 0.95, 0.99)
CLOSE = 1e-9


@cache
def chances(size: int, drawn: int) -> FloatArray:
    """Return the probability (M + 1, n + 1) of k ones among n drawn of N units, M of them 1."""
    return np.asarray(hypergeom(size, np.arange(size + 1)[:, None], drawn).pmf(np.arange(drawn + 1)[None]))


def one_stratum(size: int, level: float = 0.95) -> FloatArray:
    """Return the least coverage (N,) over all numbers of wrong units, by number of labels."""
    pairs = np.array([(n, k) for n in range(1, size + 1) for k in range(n + 1)])
    low, high = interval_of_counts(np.array([size]), pairs[:, :1], pairs[:, 1:], level)
    truth = np.arange(size + 1) / size
    held = (low <= truth[:, None] + CLOSE) & (truth[:, None] <= high + CLOSE)
    return np.array(
        [np.sum(chances(size, n) * held[:, pairs[:, 0] == n], axis=1).min() for n in range(1, size + 1)]
    )


def two_strata(first: int, second: int, level: float = 0.95) -> FloatArray:
    """Return the least coverage (N_1, N_2) over all numbers of wrong units, by the numbers of labels."""
    sizes = np.array([first, second])
    drawn = list(product(range(1, first + 1), range(1, second + 1)))
    tables = [np.array(list(product(range(n + 1), range(m + 1)))) for n, m in drawn]
    counts = np.repeat(np.array(drawn), [len(table) for table in tables], axis=0)
    low, high = interval_of_counts(sizes, counts, np.concatenate(tables), level)
    truth = (np.arange(first + 1)[:, None] + np.arange(second + 1)) / (first + second)
    found, start = np.zeros((first, second)), 0
    for (n, m), table in zip(drawn, tables, strict=True):
        some = slice(start, start + len(table))
        start = some.stop
        held = (low[some] <= truth[..., None] + CLOSE) & (truth[..., None] <= high[some] + CLOSE)
        shaped = held.reshape(*truth.shape, n + 1, m + 1)
        covered = np.einsum("ax,by,abxy->ab", chances(first, n), chances(second, m), shaped)
        found[n - 1, m - 1] = covered.min()
    return found


def tiny_strata(sizes: tuple[int, ...], drawn: tuple[int, ...], level: float = 0.95) -> float:
    """Return the least coverage over all numbers of wrong units in each of some strata, exactly."""
    ones = np.array(list(product(*(range(n + 1) for n in drawn))))
    low, high = interval_of_counts(np.array(sizes), np.array(drawn), ones, level)
    truths = np.array(list(product(*(range(size + 1) for size in sizes))))
    probability = np.ones((len(truths), len(ones)))
    for h, (size, n) in enumerate(zip(sizes, drawn, strict=True)):
        probability *= chances(size, n)[truths[:, h]][:, ones[:, h]]
    truth = truths.sum(axis=1)[:, None] / sum(sizes)
    held = (low <= truth + CLOSE) & (truth <= high + CLOSE)
    return float((probability * held).sum(axis=1).min())


def random_designs(number: int) -> list[tuple[str, float]]:
    """Return the least coverage of random designs of two to four strata of up to 12 units."""
    rng, found = np.random.default_rng(SEED), []
    for _ in range(number):
        n_strata = int(rng.integers(2, 5))
        sizes = rng.integers(1, (13, 9, 6)[n_strata - 2], n_strata)
        drawn = rng.integers(1, sizes + 1)
        if np.any(drawn < sizes):
            name = f"strata of {sizes.tolist()}, {drawn.tolist()} labelled"
            found.append((name, tiny_strata(tuple(sizes.tolist()), tuple(drawn.tolist()))))
    return found


def cells() -> Iterator[tuple[str, IntArray, IntArray, IntArray]]:
    """Yield a name, N_h, ones and n_h."""
    for n_strata, size, fraction in product((2, 3, 5, 10), (8, 20, 100, 500), FRACTIONS):
        sizes = size * np.array([1, 2, 4]) if n_strata == 3 else np.full(n_strata, size)
        n_h = np.clip(np.round(fraction * sizes), 1, sizes).astype(np.int64)
        n_h[0] -= np.all(n_h == sizes)
        wrong = {
            "one wrong unit": np.r_[np.zeros(n_strata - 1), 1],
            "one wrong in each": np.ones(n_strata),
            "a tenth wrong": 0.1 * sizes,
            "rates from .5 to .99": (1 - np.linspace(0.5, 0.99, n_strata)) * sizes,
        }
        for kind, number in wrong.items():
            name = f"{n_strata} strata of {size}, {fraction:g} labelled, {kind}"
            yield name, sizes, sizes - np.round(number).astype(np.int64), n_h


def simulated(draws: int) -> list[tuple[str, float]]:
    """Return the coverage of each cell of 0 and 1."""
    rng, found = np.random.default_rng(SEED), []
    for name, sizes, ones, n_h in cells():
        drawn = rng.hypergeometric(ones, sizes - ones, n_h, (draws, len(sizes)))
        seen, back = np.unique(drawn, axis=0, return_inverse=True)
        low, high = interval_of_counts(sizes, n_h, seen, 0.95)
        truth = ones.sum() / sizes.sum()
        held = (low <= truth + CLOSE) & (truth <= high + CLOSE)
        found.append((name, float(held[back.ravel()].mean())))
    return found


def ratings(draws: int) -> list[tuple[str, float]]:
    """Return the coverage of the mean of ratings of 1 to 5, one to three of which are not 5."""
    found = []
    for size, fraction, low_ones in product((20, 100, 1000), FRACTIONS[:3], ((1,), (3,), (1, 1, 3))):
        z = np.full(size, 5.0)
        z[: len(low_ones)] = low_ones
        population = stratal.Population.from_arrays(ids=np.arange(size))
        drawn = [
            stratal.designs.SimpleRandom(budget=round(fraction * size)).draw(population, seed=seed)
            for seed in range(draws)
        ]
        limits: dict[bytes, bool] = {}
        held = 0
        for sample in drawn:
            labels = np.sort(z[sample.ids])
            key = labels.tobytes()
            if key not in limits:
                low, high = stratal.estimate(sample, labels, bounds=(1, 5)).confidence_interval()
                limits[key] = low <= z.mean() + CLOSE and z.mean() <= high + CLOSE
            held += limits[key]
        name = f"{size} ratings, {fraction:g} labelled, all 5 but {', '.join(map(str, low_ones))}"
        found.append((name, held / draws))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--most", type=int, default=12)
    options = parser.parse_args()
    alone = np.concatenate([one_stratum(size) for size in range(1, 61)])
    pairs = np.concatenate(
        [two_strata(*pair).ravel() for pair in product(range(1, options.most + 1), repeat=2)]
    )
    several, rated = simulated(options.draws), ratings(options.draws // 4)
    designs = [("strata of [2, 8, 2], [1, 6, 1] labelled", tiny_strata((2, 8, 2), (1, 6, 1)))]
    designs += random_designs(options.draws // 4)
    lines = [
        "# Near a census",
        "",
        f"    python -m benchmarks.near_census --draws {options.draws} --most {options.most}",
        "",
        circumstances(),
        "",
        "| cells | number | least coverage | below .95 |",
        "|---|---|---|---|",
        f"| one stratum of up to 60 units, exactly | {len(alone)} | {alone.min():.4f} "
        f"| {np.sum(alone < 0.95 - CLOSE)} |",
        f"| two strata of up to {options.most} units, exactly | {len(pairs)} | {pairs.min():.4f} "
        f"| {np.sum(pairs < 0.95 - CLOSE)} |",
    ]
    tables = {
        "two to four strata of up to 12 units, random designs, exactly": designs,
        "two to ten strata, simulated": several,
        "ratings, simulated": rated,
    }
    for title, found in tables.items():
        covered = np.array([share for _, share in found])
        lines.append(f"| {title} | {len(covered)} | {covered.min():.4f} | {np.sum(covered < 0.95)} |")
    lines += ["", "The ten simulated cells that cover least:", "", "| cell | coverage |", "|---|---|"]
    least = sorted([*several, *rated], key=lambda entry: entry[1])[:10]
    lines += [f"| {name} | {share:.4f} |" for name, share in least]
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
