"""Coverage and width beside ppi-python 0.2.3, on the same draws.

    python -m benchmarks.peers_coverage --peer PYTHON_WITH_PPI [--draws 1000]

Simple random samples of N = 1000 units, binary outcome with rate p, a judge that is right 85 % of the time.
Both sides get the same labelled and unlabelled units; stratal takes λ = 0 and the fitted λ, ppi-python its
power-tuned interval. Writes benchmarks/results/peers_coverage.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from benchmarks.helpers import circumstances

import stratal

RESULTS = Path(__file__).parent / "results" / "peers_coverage.md"
SIZE = 1000
CELLS = ((20, 0.5), (20, 0.9), (30, 0.97), (50, 0.75), (50, 0.9), (100, 0.97), (200, 0.9))

PEER = """
import json, sys
import numpy as np
from ppi_py import ppi_mean_ci
with np.load(sys.argv[1]) as data:
    outcome, judge, drawn = data["outcome"], data["judge"], data["drawn"]
found = []
for z, f, rows in zip(outcome, judge, drawn):
    rest = np.setdiff1d(np.arange(len(z)), rows)
    low, high = ppi_mean_ci(z[rows], f[rows], f[rest], alpha=0.05)
    found.append([float(np.ravel(low)[0]), float(np.ravel(high)[0])])
print(json.dumps(found))
"""


def populations(draws: int, n: int, rate: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return outcomes and judgements (draws, N): the number of ones is fixed, which units they are is not."""
    generator = np.random.default_rng([seed, n])
    ones = round(SIZE * rate)
    outcome = np.zeros((draws, SIZE))
    outcome[:, :ones] = 1.0
    outcome = generator.permuted(outcome, axis=1)
    right = generator.random((draws, SIZE)) < 0.85
    return outcome, np.where(right, outcome, 1.0 - outcome)


def own(outcome: np.ndarray, judge: np.ndarray, n: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the drawn rows (draws, n) and stratal's intervals (draws, 2) by estimator."""
    rows = np.empty((len(outcome), n), dtype=np.int64)
    found: dict[str, list[tuple[float, float]]] = {"horvitz-thompson": [], "ppi++": []}
    for number, (z, proxy) in enumerate(zip(outcome, judge, strict=True)):
        population = stratal.Population.from_arrays(proxy=proxy)
        sample = stratal.designs.SimpleRandom(budget=n).draw(population, seed=number)
        rows[number] = sample.ids
        for estimator, intervals in found.items():
            interval = stratal.estimate(sample, z[sample.ids], estimator=estimator).confidence_interval()
            intervals.append((interval.low, interval.high))
    return rows, {name: np.array(intervals) for name, intervals in found.items()}


def peer(interpreter: str, outcome: np.ndarray, judge: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return ppi-python's intervals (draws, 2) on the same draws."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "draws.npz"
        np.savez(path, outcome=outcome, judge=judge, drawn=rows)
        done = subprocess.run(
            [interpreter, "-c", PEER, str(path)], capture_output=True, text=True, check=True
        )
    return np.array(json.loads(done.stdout.strip().splitlines()[-1]))


def cell(intervals: np.ndarray, truth: float) -> str:
    """Return coverage and mean width of intervals (draws, 2)."""
    covered = np.mean((intervals[:, 0] <= truth) & (truth <= intervals[:, 1]))
    outside = np.mean((intervals[:, 0] < 0) | (intervals[:, 1] > 1))
    width = np.mean(intervals[:, 1] - intervals[:, 0])
    return f"{covered:.3f} ({width:.3f})" + (f", {outside:.0%} leave [0, 1]" if outside else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", required=True, help="Python interpreter that has ppi-python 0.2.3")
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()
    lines = [
        "| n | p | stratal, λ = 0 | stratal, fitted λ | ppi-python, power-tuned |",
        "|---|---|---|---|---|",
    ]
    for n, rate in CELLS:
        outcome, judge = populations(options.draws, n, rate, seed=1)
        rows, ours = own(outcome, judge, n)
        theirs = peer(options.peer, outcome, judge, rows)
        truth = round(SIZE * rate) / SIZE
        cells = [cell(ours["horvitz-thompson"], truth), cell(ours["ppi++"], truth), cell(theirs, truth)]
        lines.append(f"| {n} | {rate} | " + " | ".join(cells) + " |")
    head = (
        "## Coverage beside ppi-python 0.2.3, the same draws\n\n"
        f"`python -m benchmarks.peers_coverage --peer … --draws {options.draws}`, {circumstances()}\n\n"
        f"{options.draws} draws a cell; coverage at 95 % and (mean width); one standard error of a coverage "
        f"of .95 is {np.sqrt(0.95 * 0.05 / options.draws):.4f}.\n\n"
    )
    RESULTS.write_text(head + "\n".join(lines) + "\n")
    print(RESULTS.read_text())


if __name__ == "__main__":
    main()
