"""How long commands take from start to end, and what they import.

    OMP_NUM_THREADS=1 python -m benchmarks.start [--repeats 5]

Commands on a file of 1,500 rows, each in a process of its own, one after the other and all of them again:
minimum, median and maximum of the clock and of the processor. Writes benchmarks/results/start.md.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from benchmarks.helpers import circumstances

RESULTS = Path(__file__).parent / "results" / "start.md"
ROWS = 1_500
COMMAND = "from stratal.cli import main; main()"
ARRAYS = "import numpy, stratal; stratal.Population.from_arrays(proxy=numpy.linspace(0, 1, 1000))"

DRAWN = ["--proxy", "score", "--budget", "100", "--seed", "1"]

CASES: dict[str, tuple[str, list[str]]] = {
    "import stratal": ("0.1", ["-c", "import stratal"]),
    "the first array call": ("0.25", ["-c", ARRAYS]),
    "stratal --help": ("0.15", ["-c", COMMAND, "--help"]),
    "stratal doctor": ("0.7", ["-c", COMMAND, "doctor", "p.csv"]),
    "stratal plan": ("0.7", ["-c", COMMAND, "plan", "p.csv", "--proxy", "score", "--budget", "100"]),
    "stratal draw": ("0.7", ["-c", COMMAND, "draw", "p.csv", *DRAWN, "--output", "drawn"]),
    "stratal estimate": ("0.7", ["-c", COMMAND, "estimate", "sample/sample.parquet", "labels.csv"]),
    "stratal report": (
        "1.2",
        [
            "-c",
            COMMAND,
            "report",
            "sample/sample.parquet",
            "labels.csv",
            "--output",
            "report.html",
        ],
    ),
}
"""What is run, and the seconds that it may take on a quiet machine."""


def files(folder: Path) -> None:
    """Write predictions, a drawn sample and its labels."""
    random = np.random.default_rng(35)
    score = random.beta(5, 1.5, ROWS)
    rows = "".join(f"item-{number},{value:.5f}\n" for number, value in enumerate(score.tolist()))
    (folder / "p.csv").write_text(f"id,score\n{rows}")
    asked = ["draw", "p.csv", *DRAWN, "--output", "sample"]
    subprocess.run([sys.executable, "-c", COMMAND, *asked], cwd=folder, check=True, capture_output=True)
    ids = [line.split(",")[0] for line in (folder / "sample" / "to_label.csv").read_text().splitlines()[1:]]
    answers = "".join(f"{name},{int(number % 5 > 0)}\n" for number, name in enumerate(ids))
    (folder / "labels.csv").write_text(f"id,label\n{answers}")


def run(arguments: list[str], folder: Path) -> tuple[float, float]:
    """Return the seconds of the clock and of the processor of one process."""
    shutil.rmtree(folder / "drawn", ignore_errors=True)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=folder, check=True, capture_output=True)
    clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled once
    found: dict[str, list[tuple[float, float]]] = {what: [] for what in CASES}
    with tempfile.TemporaryDirectory() as name:
        files(Path(name))
        for _ in range(options.repeats + 1):
            for what, (_, arguments) in CASES.items():
                found[what].append(run(arguments, Path(name)))
    rows = []
    for what, pairs in found.items():
        clock, processor = (sorted(side) for side in zip(*pairs[1:], strict=True))
        cells = [
            f"{side[0]:.2f} | {statistics.median(side):.2f} | {side[-1]:.2f}" for side in (clock, processor)
        ]
        rows.append(f"| `{what}` | {' | '.join(cells)} | {CASES[what][0]} |")
    text = "\n".join(
        [
            "# Start",
            "",
            f"`OMP_NUM_THREADS=1 python -m benchmarks.start --repeats {options.repeats}`, {circumstances()}",
            "",
            f"Seconds from start to end of a process, on {ROWS:,} rows. What is required is of the clock, on",
            "a quiet machine; the processor's seconds depend less on what else runs.",
            "",
            "| what | clock: minimum | median | maximum | processor: minimum | median | maximum | required |",
            "|---|---|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )
    RESULTS.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
