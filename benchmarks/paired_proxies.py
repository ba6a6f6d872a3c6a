"""Win rates of two models with their proxies: coverage, and width over that without them.

Simple random samples of real pairs of models and of generated ones. In strata that were made of the proxies,
as a plan's are, no λ is fitted, and nothing differs.

    OMP_NUM_THREADS=1 python -m benchmarks.paired_proxies [--replicates 600] [--sizes 50,100,300]

Writes benchmarks/results/paired_proxies.md, of the sizes that were asked for; others are kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from benchmarks.helpers import DATA, circumstances
from scipy.optimize import brentq
from scipy.special import expit

import stratal
from stratal.arrays import FloatArray
from stratal.estimands import WinRate

RESULTS = Path(__file__).with_name("results") / "paired_proxies.md"
SIZE = 4_000
MODELS = (
    ("gpt-4o-mini-2024-07-18", "reka-flash-20240226", "proxy"),
    ("gpt-4o-mini-2024-07-18", "Qwen2-72B-Instruct", "proxy"),
    ("Mistral-Nemo-Instruct-2407", "Qwen2-7B-Instruct", "agree_strong"),
)
"""Pairs of gsm8k_models: right or wrong, with the share of weak or strong models that agree."""

SYSTEMS = (("bart", "pgn", "factcc"), ("bart", "s2s", "proxy"), ("BERTS2S", "TConvS2S", "proxy"))
"""Pairs of frank_factuality: grades of 250 articles, with an automatic score."""

RATES = (
    (0.9, 0.85, 3.0),
    (0.97, 0.95, 3.0),
    (0.6, 0.5, 1.0),
    (0.9, 0.85, 0.0),
    (0.05, 0.03, 4.0),
    (0.2, 0.1, 2.0),
)
"""How often either generated model is right, and how sharp the scores are: 0 says nothing."""

Pair = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Outcomes of both models, then the proxies of both (N,)."""


def pairs() -> Iterator[tuple[str, Pair]]:
    """Yield what each pair is called, and the pair."""
    for first, second, score in MODELS:
        name = f"gsm8k: {first.split('-2')[0]} and {second.split('-2')[0]}, {score}"
        yield name, real("gsm8k_models", "group", (first, second), score)
    for first, second, score in SYSTEMS:
        yield (
            f"frank: {first} and {second}, {score}",
            real("frank_factuality", "system", (first, second), score),
        )
    for better, worse, sharp in RATES:
        what = f"sharpness {sharp:g}" if sharp else "scores that say nothing"
        yield f"right {better:g} and {worse:g}, {what}", generated(better, worse, sharp)
    a, b, p, q = generated(0.6, 0.5, 2.0)
    noise = np.random.default_rng(1).normal(0.0, 0.15, (2, SIZE))
    graded = (
        np.clip(np.round(4 * (0.5 * z + 0.5 * x + e)) / 4, 0, 1)
        for z, x, e in ((a, p, noise[0]), (b, q, noise[1]))
    )
    yield "grades of .6 and .5, sharpness 2", (*graded, p, q)


def real(file: str, column: str, names: tuple[str, str], score: str) -> Pair:
    """Return the items of a file that both models answered."""
    table = pq.read_table(DATA / f"{file}.parquet", columns=["id", column, "z", score])
    rows = zip(*(table[name].to_pylist() for name in ("id", column, "z", score)), strict=True)
    of: dict[str, dict[str, tuple[float, float]]] = {name: {} for name in names}
    for unit, model, z, value in rows:
        if model in of:
            of[model][unit.split("|")[0]] = z, value
    both = sorted(set(of[names[0]]) & set(of[names[1]]))
    first, second = (np.array([of[name][item] for item in both]) for name in names)
    return first[:, 0], second[:, 0], first[:, 1], second[:, 1]


def generated(first: float, second: float, sharp: float) -> Pair:
    """Return two models whose chances share half of their spread."""
    random = np.random.default_rng([round(1000 * first), round(1000 * second), round(sharp)])
    base, found = random.normal(size=SIZE), []
    for rate in (first, second):
        latent = np.sqrt(0.5) * (base + random.normal(size=SIZE))
        shift = brentq(lambda c, x=latent, rate=rate: expit(c + sharp * x).mean() - rate, -30.0, 30.0)
        chance = expit(shift + sharp * latent)
        found.append(((random.random(SIZE) < chance) * 1.0, chance if sharp else random.random(SIZE)))
    (a, p), (b, q) = found
    return a, b, p, q


def measured(pair: Pair, n: int, replicates: int) -> tuple[float, ...]:
    """Return coverage with and without proxies, the ratio of mean widths and that of mean squared errors."""
    a, b, p, q = pair
    population = stratal.Population.from_arrays(proxy={"p": p, "q": q})
    ways = WinRate(("a", "b"), ("p", "q")), WinRate(("a", "b"))
    value = np.mean(0.5 + 0.5 * np.sign(a - b))
    rows = []
    for seed in range(replicates):
        sample = stratal.designs.SimpleRandom(budget=n).draw(population, seed)
        labels = {"a": a[sample.ids], "b": b[sample.ids]}
        row: list[float] = []
        for found in (stratal.estimate(sample, labels, estimand=way) for way in ways):
            low, high = found.confidence_interval()
            row += [low <= value <= high, high - low, (found.value - value) ** 2]
        rows.append(row)
    held, width, error, held_without, width_without, error_without = np.mean(rows, axis=0)
    return held, held_without, width / width_without, error / error_without


def section(n: int, replicates: int) -> str:
    """Return the part of the page for n labels."""
    lines, lowest, widest = [], 1.0, 0.0
    for name, pair in pairs():
        if n > 0.8 * len(pair[0]):
            continue
        covers, without, width, error = measured(pair, n, replicates)
        lowest, widest = min(lowest, covers), max(widest, width)
        lines.append(f"| {name} | {covers:.3f} ({without:.3f}) | {width:.3f} | {error:.2f} |")
        print(lines[-1], flush=True)
    command = f"OMP_NUM_THREADS=1 python -m benchmarks.paired_proxies --replicates {replicates} --sizes {n}"
    return "\n".join([
        f"{n} labels", "", f"`{command}`, {circumstances()}", "",
        f"Lowest coverage {lowest:.3f}, widest {widest:.3f} of the width without proxies.", "",
        "| models | win rate: covers | width | error |",
        "|---" * 4 + "|", *lines,
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=600)
    parser.add_argument("--sizes", default="50,100,300")
    options = parser.parse_args()
    kept = RESULTS.read_text(encoding="utf-8").split("\n\n## ")[1:] if RESULTS.exists() else []
    parts = {int(part.split()[0]): part.strip() for part in kept}
    parts |= {n: section(n, options.replicates) for n in map(int, options.sizes.split(","))}
    head = (
        "# Two models with their proxies: the win rate\n\n"
        "Coverage of 95 % intervals with the proxies of both models (without them in brackets), mean width\n"
        "and mean squared error over those without. Samples are simple random. One standard error of a\n"
        "coverage of .95 is 0.22 over the root of the replicates."
    )
    RESULTS.write_text("\n\n## ".join([head, *(parts[n] for n in sorted(parts))]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
