"""Mean squared error of the default λ over the best of λ = 0, λ = 1 and itself: files, and rare outcomes.

    OMP_NUM_THREADS=1 python -m benchmarks.chosen_lam [--replicates 2000]

Writes benchmarks/results/chosen_lam.md. Simple random samples, whose `auto` is `ppi++` from 30 labels on.
Generated are 1 % and 3 % positives under scores that are calibrated, off in level or in spread, a judge with
scores of its own, a judge who says yes or no, and scores that say nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from benchmarks.helpers import BINARY, load
from scipy.optimize import brentq
from scipy.special import expit, logit

import stratal
from stratal.arrays import FloatArray

RESULTS = Path(__file__).with_name("results") / "chosen_lam.md"
BUDGETS = (50, 100, 200, 400, 1000)
ESTIMATORS = ("horvitz-thompson", "difference", "ppi++")
SIZE = 20_000
SEED = 20_261_122
ASKED = 1.05


def files() -> Iterator[tuple[str, FloatArray, FloatArray]]:
    """Yield name, outcome and proxy of the binary files."""
    for name in BINARY:
        yield name, *load(name)


def generated() -> Iterator[tuple[str, FloatArray, FloatArray]]:
    """Yield the same of rare outcomes."""
    for share in (0.01, 0.03):
        random, rare = np.random.default_rng([SEED, round(1000 * share)]), float(logit(share))
        for name, spread in (("sharp", 2.0), ("blunt", 1.0)):
            x = spread * random.normal(size=SIZE)
            odds = x + brentq(lambda shift, x=x, share=share: expit(shift + x).mean() - share, -20.0, 5.0)
            z = (random.random(SIZE) < expit(odds)).astype(float)
            yield f"{share:.0%}, {name} score", z, expit(odds)
            yield f"{share:.0%}, {name} score, log-odds doubled", z, expit(2.0 * odds)
            yield f"{share:.0%}, {name} score, twice as spread", z, expit(rare + 2.0 * (odds - rare))
            yield f"{share:.0%}, {name} score, half as spread", z, expit(rare + 0.5 * (odds - rare))
            yield f"{share:.0%}, {name} score, too high", z, expit(odds + 1.5)
            yield f"{share:.0%}, {name} score, too low", z, expit(odds - 1.5)
        z = (np.arange(SIZE) < SIZE * share).astype(float)
        beta = np.where(z == 1, random.beta(6, 2, SIZE), random.beta(1, 20, SIZE))
        yield f"{share:.0%}, judge's scores", z, beta
        for alarms in (0.1, 0.01):
            said = random.random(SIZE) < np.where(z == 1, 0.8, alarms)
            yield f"{share:.0%}, yes or no, {alarms:.0%} false alarms", z, said.astype(float)
        yield f"{share:.0%}, nothing said, 0 to 1", z, random.random(SIZE)
        yield f"{share:.0%}, nothing said, near {1 / 31:.0%}", z, random.beta(1, 30, SIZE)


def ratios(z: FloatArray, proxy: FloatArray, replicates: int) -> list[float]:
    """Return the mean squared error of `ppi++` over the least, by budget."""
    table = stratal.simulate(
        stratal.Population.from_arrays(proxy=proxy), z, designs=["simple-random"], estimators=ESTIMATORS,
        intervals=(), budgets=BUDGETS, replicates=replicates, seed=SEED,
    )  # fmt: skip
    errors = {(row["estimator"], row["budget"]): row["mse"] for row in table.rows()}
    return [errors["ppi++", n] / min(errors[name, n] for name in ESTIMATORS) for n in BUDGETS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=2000)
    replicates = parser.parse_args().replicates
    lines = [f"| population | {' | '.join(f'n = {n}' for n in BUDGETS)} |", "|---" * 6 + "|"]
    found = {}
    for kind, populations in (("real", files()), ("generated", generated())):
        for name, z, proxy in populations:
            found[kind, name] = ratios(z, proxy, replicates)
            lines.append(f"| {name} | {' | '.join(f'{ratio:.2f}' for ratio in found[kind, name])} |")
            print(lines[-1], flush=True)
    told = []
    for kind in ("real", "generated"):
        every = np.array([row for (of, _), row in found.items() if of == kind])
        told.append(
            f"of {kind} populations {every.max():.2f} at most, {every.mean():.3f} on average, above {ASKED} "
            f"in {int(np.sum(every > ASKED + 0.005))} of {every.size} cells"
        )
    page = [
        "# The default λ beside the best",
        "",
        f"    OMP_NUM_THREADS=1 python -m benchmarks.chosen_lam --replicates {replicates}",
        "",
        "Simple random samples: mean squared error of `ppi++` over the least of `horvitz-thompson`, "
        f"`difference` and itself. {'; '.join(told).capitalize()}. One standard error of a ratio is "
        f"{np.sqrt(2 / replicates):.3f} at most where two estimators err independently.",
        "",
    ]
    RESULTS.write_text("\n".join([*page, *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
