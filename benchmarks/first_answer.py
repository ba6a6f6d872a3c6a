"""The same first answer by six tools: what is typed, and the seconds from pressing Enter to the interval.

    python benchmarks/first_answer.py --peers PYTHON --ssepy PYTHON --glide PYTHON [--runs 5]

`--peers` has ppi-python 0.2.3, truescore 0.7.4 and evalstats 0.3.3 installed, `--ssepy` ssepy 0.1.1 (and
scikit-learn, which it needs and does not install), `--glide` glide-py 0.10.0 (Python 3.12). A file of 5,000
answers has a judge's verdict on each and a person's on 300 drawn at random; wanted is the mean of the
person's verdicts over all answers, with a 95 % interval. ssepy draws its own 300 and reads their labels. A
line is a line that the user types; every run starts a process of its own.

Writes benchmarks/results/first_answer.md.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results" / "first_answer.md"

PPI = """
import numpy as np
from ppi_py import ppi_mean_ci
table = np.genfromtxt("answers.csv", delimiter=",", names=True)
labelled = ~np.isnan(table["label"])
print(ppi_mean_ci(table["label"][labelled], table["judge"][labelled], table["judge"][~labelled], alpha=0.05))
"""

SSEPY = """
import numpy as np
from sklearn.cluster import KMeans
from ssepy import ModelPerformanceEvaluator
table = np.genfromtxt("score.csv", delimiter=",", names=True)
evaluator = ModelPerformanceEvaluator(Yh=table["score"], budget=300)
evaluator.stratify_data(KMeans(n_clusters=10, random_state=0, n_init="auto"), X=table["score"])
evaluator.allocate_budget(allocation_type="neyman")
drawn = evaluator.sample("ssrs")
estimate, variance = evaluator.compute_estimate(table["truth"][drawn], estimator="ht")
print(estimate - 1.96 * variance ** 0.5, estimate + 1.96 * variance ** 0.5)
"""

EVALSTATS = """
import pandas as pd
import evalstats as es
table = pd.read_csv("answers.csv")
print(es.judge_debias_mean_ci(table["judge"], table["label"]))
"""


GLIDE = """
import numpy as np
from glide.estimators import PPIMeanEstimator
table = np.genfromtxt("answers.csv", delimiter=",", names=True)
print(PPIMeanEstimator().estimate(table["label"], table["judge"]))
"""

HEAD = """# The first answer, by six tools

`python benchmarks/first_answer.py --peers PYTHON --ssepy PYTHON --glide PYTHON`, on 2 cores shared with
other work (load {load:.0f}): medians of {runs} runs after one that is not counted, each a process of its own.
5,000 answers, a judge right on 85 %, 300 labels; the truth is {truth:.4f}. The clock depends on the load; the
processor's seconds hardly do.

| tool | lines typed | what | clock, s | processor, s | begins to print |
|---|---|---|---|---|---|
"""


def write_files(folder: Path) -> float:
    """Write the files into a folder, and return the true mean of the population."""
    rng = np.random.default_rng(0)
    score = rng.beta(4, 1.5, 5000)
    truth = (rng.random(5000) < score).astype(int)
    judge = np.where(rng.random(5000) < 0.85, truth, 1 - truth)
    known = np.isin(np.arange(5000), rng.choice(5000, 300, replace=False))
    rows = zip(
        range(5000), judge, ["" if not k else t for k, t in zip(known, truth, strict=True)], strict=True
    )
    with (folder / "answers.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["id", "judge", "label"], *rows])
    with (folder / "score.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["id", "score", "truth"], *zip(range(5000), score, truth, strict=True)])
    return float(truth.mean())


def seconds(command: list[str], folder: Path, runs: int) -> tuple[float, float, str]:
    """Return the medians of a command's seconds on the clock and on the processor, and what it printed."""
    clock, processor = [], []
    for _ in range(runs + 1):
        start, before = time.perf_counter(), used()
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        clock.append(time.perf_counter() - start)
        processor.append(used() - before)
        if not done.stdout:  # truescore's exit status is 1 where it found something
            raise SystemExit(f"{command}: {done.stdout}{done.stderr}")
    return statistics.median(clock[1:]), statistics.median(processor[1:]), done.stdout.strip()


def used() -> float:
    """Return the processor seconds of all processes that were started and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def lines(program: str) -> int:
    """Return the lines of a program that are typed."""
    return len([line for line in program.splitlines() if line.strip()])


def main() -> None:
    """Run them all and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", required=True)
    parser.add_argument("--ssepy", required=True)
    parser.add_argument("--glide", required=True)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    own = "stratal estimate --labelled answers.csv --proxy judge"
    audit = "truescore audit answers.csv --judge judge --gold label"
    stratal = [sys.executable, "-m", *own.split()]
    truescore = [str(Path(given.peers).with_name("truescore")), *audit.split()[1:]]
    jobs = {
        "stratal": (1, own, stratal),
        "truescore 0.7.4": (1, audit, truescore),
        "ppi-python 0.2.3": (lines(PPI), "a program, `ppi_mean_ci`", [given.peers, "-c", PPI]),
        "evalstats 0.3.3": (
            lines(EVALSTATS),
            "a program, `judge_debias_mean_ci`",
            [given.peers, "-c", EVALSTATS],
        ),
        "glide-py 0.10.0": (lines(GLIDE), "a program, `PPIMeanEstimator`", [given.glide, "-c", GLIDE]),
        "ssepy 0.1.1": (lines(SSEPY), "a program; the interval by hand", [given.ssepy, "-c", SSEPY]),
    }
    with tempfile.TemporaryDirectory() as name:
        truth = write_files(Path(name))
        rows = []
        for tool, (typed, what, command) in jobs.items():
            clock, processor, said = seconds(command, Path(name), given.runs)
            shown = " ".join(said.split())[:90].replace("|", "\\|")
            rows.append(f"| {tool} | {typed} | {what} | {clock:.1f} | {processor:.1f} | `{shown} …` |")
            print(rows[-1])
    RESULTS.write_text(
        HEAD.format(load=os.getloadavg()[0], runs=given.runs, truth=truth) + "\n".join(rows) + "\n"
    )


if __name__ == "__main__":
    main()
