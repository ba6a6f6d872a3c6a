"""The simulation engine's speed: a replicate beside the peer's, and a paper's whole grid.

    python -m benchmarks.simulation [--peer PYTHON] [--grid] [--output benchmarks/results/simulation.md]

`--peer` is a Python interpreter that has `ssepy` 0.1.1 (it needs NumPy below 2, hence one of its own). The
grid is Kumar & Raj's: 7 stratifications × 4 allocations × K = 2 … 10 × 10 budgets × 3000 runs, N = 7·10⁵.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from pathlib import Path

if __name__ == "__main__":  # before NumPy is loaded; other programs decide for themselves
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from benchmarks.helpers import circumstances

import stratal
from stratal.arrays import FloatArray

RESULTS = Path(__file__).parent / "results" / "simulation.md"
STRATIFICATIONS = (
    "cum-sqrt-f", "cum-cbrt-f", "weighted-mean", "k-means", "gaussian-mixture", "equal-size", "equal-width",
)  # fmt: skip
GRID_BUDGETS = tuple(range(120, 1021, 100))
PEER = """
import time, warnings
import numpy as np
warnings.simplefilter("ignore")
from sklearn.cluster import KMeans
from ssepy import ModelPerformanceEvaluator
rng = np.random.default_rng(0)
proxy = rng.beta(5, 1, 10_000)
z = (rng.random(10_000) < proxy).astype(float)
evaluator = ModelPerformanceEvaluator(Yh=proxy, budget=100)
evaluator.stratify_data(KMeans(10, n_init=1, random_state=0), X=proxy[:, None])
evaluator.allocate_budget("proportional")
best = float("inf")
for _ in range(5):
    start = time.process_time()
    for _ in range(100):
        drawn = evaluator.sample("ssrs")
        evaluator.compute_estimate(z[drawn], estimator="ht")
    best = min(best, time.process_time() - start)
print(best / 100 * 1e6)
"""


def population(size: int, seed: int = 0) -> tuple[stratal.Population, FloatArray]:
    """Return a population with a confidence score, and its outcomes."""
    rng = np.random.default_rng(seed)
    proxy = rng.beta(5, 1, size)
    z = (rng.random(size) < proxy).astype(np.float64)
    return stratal.Population.from_arrays(proxy=proxy), z


def replicate_time(estimators: tuple[str, ...], intervals: tuple[str, ...], replicates: int) -> float:
    """Return microseconds per replicate: stratified, N = 10⁴, n = 100, H = 10; the best of five runs."""
    units, z = population(10_000)
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        stratal.simulate(
            units, z, designs=["k-means:10:proportional"], estimators=estimators, intervals=intervals,
            budgets=[100], replicates=replicates,
        )  # fmt: skip
        best = min(best, time.process_time() - start)
    return best / replicates * 1e6


def grid_time(workers: int, size: int = 700_000, replicates: int = 3000) -> tuple[float, int]:
    """Return the seconds of the whole grid, and its number of (design, budget) cells."""
    units, z = population(size)
    designs = [
        f"{method}:{number}:{allocation}"
        for method in STRATIFICATIONS
        for number in range(2, 11)
        for allocation in ("proportional", "equal", "opt-a1:10", "opt-a2:5:10")
    ]
    start = time.perf_counter()
    table = stratal.simulate(
        units, z, designs=designs, intervals=(), budgets=GRID_BUDGETS, replicates=replicates,
        with_replacement=True, workers=workers,
    )  # fmt: skip
    return time.perf_counter() - start, len(table)


def peer_time(interpreter: str) -> float:
    """Return the peer's microseconds per replicate."""
    done = subprocess.run([interpreter, "-c", PEER], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return float(done.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="a Python interpreter that has ssepy")
    parser.add_argument("--grid", action="store_true", help="run the whole grid as well (minutes)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    lines = [
        "Microseconds of the processor per replicate, the best of five runs: ten k-means strata, N = 10⁴, "
        "n = 100; drawing, estimate and estimated variance included, and for stratal stratifying.",
        "",
        "| what | µs | × faster than ssepy |",
        "|---|---|---|",
    ]
    peer = peer_time(options.peer) if options.peer else float("nan")
    if options.peer:
        lines.append(f"| ssepy 0.1.1, draw and HT estimate with variance | {peer:,.0f} | 1 |")
    every = ("horvitz-thompson", "difference", "ppi++", "stratppi")
    rows: tuple[tuple[str, tuple[str, ...], tuple[str, ...], int], ...] = (
        ("HT", every[:1], (), 400_000),
        ("HT with its interval", every[:1], ("auto",), 100_000),
        ("HT, difference, PPI++ and StratPPI on units", every, (), 20_000),
    )
    for name, estimators, intervals, replicates in rows:
        found = replicate_time(estimators, intervals, replicates)
        lines.append(f"| stratal, {name} | {found:.2f} | {peer / found:,.0f} |")
        print(lines[-1], flush=True)
    if options.grid:
        seconds, cells = grid_time(options.workers)
        lines += [
            "",
            f"Kumar & Raj's whole grid (7 stratifications × 4 allocations × K = 2 … 10 × {len(GRID_BUDGETS)} "
            f"budgets × 3000 runs = {cells * 3000:,} estimates, N = 7·10⁵): **{seconds:.0f} s** on the clock "
            f"with {options.workers} workers (bound: 300 s).",
        ]
    options.output.parent.mkdir(parents=True, exist_ok=True)
    told = f"{' --peer PYTHON' if options.peer else ''}{' --grid' if options.grid else ''}"
    head = ["# Simulation engine", "", f"`python -m benchmarks.simulation{told}`, {circumstances()}", ""]
    options.output.write_text("\n".join([*head, *lines]) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
