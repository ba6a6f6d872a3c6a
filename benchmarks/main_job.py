"""Stratify, allocate, draw and estimate, against ssepy 0.1.1 in its own interpreter, in the same run.

    python benchmarks/main_job.py --peer PATH_TO_PYTHON_WITH_SSEPY [--sizes 1000000,10000000] [--repeats 3]

Each side runs in a fresh process per repeat, in turn, after a small run that loads what it imports; time is
that of the work alone, by the clock and of the processors, memory is the process's peak. Both sides take the
threads that they find: set no OMP_NUM_THREADS. Then one process, one thread, times each step and the floor
beside it. Writes benchmarks/results/main_job.md and the table of steps in docs/scale.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "main_job.md"
SCALE = Path(__file__).parents[1] / "docs" / "scale.md"

COMMON = """
import json, resource, sys, time
import numpy as np
size, budget = int(sys.argv[1]), int(sys.argv[2])
generator = np.random.default_rng(0)
proxy = generator.beta(5, 1, size)
outcome = (generator.random(size) < proxy).astype(float)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
"""

OURS = (
    COMMON
    + """
import stratal
warm = stratal.Population.from_arrays(proxy=proxy[:200_000])
stratal.estimate(stratal.plan(warm, 50).draw(seed=0), np.ones(50)).confidence_interval()
before, start, busy = peak(), time.perf_counter(), time.process_time()
population = stratal.Population.from_arrays(proxy=proxy)
strata = stratal.strata.stratify(population, method="k-means", n_strata=10)
allocation = stratal.strata.allocate(strata, budget=budget, method="neyman")
sample = stratal.designs.Stratified(strata=strata, allocation=allocation).draw(population, seed=1)
estimate = stratal.estimate(sample, outcome[sample.ids], estimator="horvitz-thompson")
seconds, busy = time.perf_counter() - start, time.process_time() - busy
print(json.dumps({"seconds": seconds, "busy": busy, "own": peak() - before, "peak": peak(),
"value": estimate.value}))
"""
)

PEER = (
    COMMON
    + """
from sklearn.cluster import KMeans
from ssepy import ModelPerformanceEvaluator
warm = ModelPerformanceEvaluator(Yh=proxy[:200_000], budget=50)
warm.stratify_data(KMeans(n_clusters=10, random_state=0), X=proxy[:200_000])
before, start, busy = peak(), time.perf_counter(), time.process_time()
evaluator = ModelPerformanceEvaluator(Yh=proxy, budget=budget)
evaluator.stratify_data(KMeans(n_clusters=10, random_state=0), X=proxy)
evaluator.allocate_budget(allocation_type="neyman")
indices = evaluator.sample(sampling_method="ssrs")
labels = np.full(size, np.nan)
labels[indices] = outcome[indices]
value, variance = evaluator.compute_estimate(Yl=labels, estimator="ht")
seconds, busy = time.perf_counter() - start, time.process_time() - busy
print(json.dumps({"seconds": seconds, "busy": busy, "own": peak() - before, "peak": peak(), "value":
float(np.ravel(value)[0])}))
"""
)


STEPS = (
    COMMON
    + """
import stratal
from stratal.designs import Stratified
from stratal.randomness import keys_of_rows
found = {}
def timed(name, work):
    start = time.process_time()
    result = work()
    found[name] = min(found.get(name, 1e9), time.process_time() - start)
    return result
def keys():
    for start in range(0, size, 65536):
        keys_of_rows(slice(start, min(start + 65536, size)), 1)
for _ in range(10):
    units = timed("population", lambda: stratal.Population.from_arrays(proxy=proxy))
    strata = timed("strata", lambda: stratal.strata.stratify(units, method="k-means", n_strata=10))
    shares = timed("allocation", lambda: stratal.strata.allocate(strata, budget=budget, method="neyman"))
    sample = timed("draw", lambda: Stratified(strata=strata, allocation=shares).draw(units, seed=1))
    labels = outcome[sample.ids]
    timed("estimate", lambda: stratal.estimate(sample, labels, estimator="horvitz-thompson"))
    timed("two passes", lambda: (proxy.min(), proxy.max()))
    timed("random numbers", keys)
print(json.dumps(found))
"""
)


def where_time_goes(sizes: list[int]) -> str:
    """Return the table of steps beside the floor, and write it into docs/scale.md."""
    os.environ["OMP_NUM_THREADS"] = "1"
    rows = []
    for size in sizes:
        steps = measure(sys.executable, STEPS, size, budget_of(size))
        cells = [f"{1e3 * seconds:.1f}" for seconds in steps.values()]
        names, whole = list(steps), sum(list(steps.values())[:5])
        rows.append(f"| {size:,} | " + " | ".join([*cells[:5], f"{1e3 * whole:.1f}", *cells[5:]]) + " |")
    head = "| N | " + " | ".join([*names[:5], "all", *(f"floor: {name}" for name in names[5:])]) + " |"
    table = "\n".join([head, "|---" * 9 + "|", *rows])
    text = SCALE.read_text()
    SCALE.write_text(
        re.sub(r"\| N \| population \|.*?\n(?!\|)", lambda _: table + "\n", text, flags=re.DOTALL)
    )
    return table


def budget_of(size: int) -> int:
    """Return the labels of a population of this size."""
    return 10_000 if size >= 10_000_000 else 1_000


def measure(interpreter: str, program: str, size: int, budget: int) -> dict[str, float]:
    done = subprocess.run(
        [interpreter, "-c", program, str(size), str(budget)], capture_output=True, text=True, check=True
    )
    result: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", required=True, help="Python interpreter that has ssepy 0.1.1")
    parser.add_argument("--sizes", default="1000000,10000000")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    lines = [
        "| N | n | stratal (s) | ssepy 0.1.1 (s) | ratio of medians | pairwise ratios | of processor time | "
        "peak memory, stratal (MB) | peak memory, ssepy (MB) |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    sizes = [int(text) for text in options.sizes.split(",")]
    for size in sizes:
        budget = budget_of(size)
        pairs = [
            (measure(sys.executable, OURS, size, budget), measure(options.peer, PEER, size, budget))
            for _ in range(options.repeats)
        ]
        ours, peer = ([pair[side]["seconds"] for pair in pairs] for side in (0, 1))
        ratios, busy = (
            ", ".join(f"{b[clock] / a[clock]:.0f}" for a, b in pairs) for clock in ("seconds", "busy")
        )
        memory = [max(pair[side]["peak"] for pair in pairs) for side in (0, 1)]
        lines.append(
            f"| {size:,} | {budget:,} | {statistics.median(ours):.3f} | {statistics.median(peer):.2f} | "
            f"{statistics.median(peer) / statistics.median(ours):.0f}× | {ratios} | {busy} | "
            f"{memory[0]:.0f} | "
            f"{memory[1]:.0f} |"
        )
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(
        "## Main job: stratify + allocate + draw + estimate, arrays without ids, K = 10\n\n"
        "`python benchmarks/main_job.py --peer …`\n\n" + "\n".join(lines) + "\n\n"
        "Where the time goes: milliseconds of one processor, the least of ten, and the floor, two passes\n"
        "over the data and its random numbers.\n\n" + where_time_goes(sizes) + "\n"
    )
    print(RESULTS.read_text())


if __name__ == "__main__":
    main()
