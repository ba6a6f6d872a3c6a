"""Run the benchmarks, each against its peer in the same run, and write the index benchmarks/RESULTS.md.

    python -m benchmarks.run [--only NAME,…] [--gather] [--ssepy PYTHON] [--ppi PYTHON]

Peers are installed into environments of their own under benchmarks/.peers unless interpreters are given.
With --gather nothing is run: the index of the pages under benchmarks/results is written anew.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.gathering import index

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE / "RESULTS.md"


def interpreter(name: str, given: str | None, *requirements: str) -> str:
    """Return a Python that has a peer, making an environment for it if need be."""
    if given:
        return given
    folder = HERE / ".peers" / name
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *requirements], check=True)
    return str(python)


def peers(options: argparse.Namespace) -> tuple[Callable[[], str], Callable[[], str]]:
    """Return what gives a Python that has ssepy, and one that has ppi-python."""
    return (
        lambda: interpreter("ssepy", options.ssepy, "ssepy==0.1.1", "numpy<2", "scikit-learn", "pandas"),
        lambda: interpreter("ppi", options.ppi, "ppi-python==0.2.3"),
    )


def programs(options: argparse.Namespace) -> dict[str, Callable[[], list[str]]]:
    """Return what each benchmark is run with."""
    ssepy, ppi = peers(options)
    scratch = tempfile.gettempdir()
    return {
        "start": list,
        "after_draw": list,
        "main_job": lambda: ["--peer", ssepy()],
        "demonstration": list,
        "tables": lambda: ["--directory", scratch],
        "growth": list,
        "partitions": list,
        "speed": lambda: ["--ssepy", ssepy(), "--ppi", ppi(), "--directory", scratch],
        "strata": lambda: ["--ssepy", ssepy()],
        "default_cuts": list,
        "robust_allocation": lambda: ["--replicates", "2000"],
        "several": list,
        "slices": list,
        "looks": list,
        "learners": list,
        "peer_agreement": list,
        "history": list,
        "selection": lambda: ["write"],
        "estimates": list,
        "adaptive": list,
        "promises": lambda: ["--runs", "300"],
        "recalibrated_plans": list,
        "coverage": list,
        "interval_cells": list,
        "plan_order": list,
        "near_census": list,
        "exact_cells": lambda: ["--step", "5", "--sizes", "5,10,20,50"],
        "graded": list,
        "graded_widths": list,
        "family_wise": list,
        "narrowest": list,
        "mean_wrong_scores": lambda: ["--draws", "10000"],
        "heavy_tails": list,
        "metrics_coverage": list,
        "known_answers": list,
        "judge_coverage": list,
        "rarer_values": list,
        "wrong_scores": list,
        "widths": list,
        "cross_fitting": list,
        "effective_size": list,
        "refuted_plans": list,
        "designs": list,
        "unequal_weights": list,
        "chosen_lam": list,
        "weak_proxies": list,
        "cluster_groups": list,
        "thresholds": list,
        "over_time": list,
        "earlier_waves": list,
        "several_proxies": list,
        "coefficient_intervals": list,
        "least_squares": list,
        "limits": list,
        "small_comparisons": list,
        "paired_proxies": list,
        "stratified_intervals": list,
        "unbounded_rounds": list,
        "peers_coverage": lambda: ["--peer", ppi()],
        "regression": lambda: ["--peer", ppi()],
        "regression_coverage": list,
        "simulation": lambda: ["--peer", ssepy(), "--grid"],
        "study": list,
        "page": list,
        "sequence": list,
    }


def run(name: str, arguments: list[str]) -> None:
    """Run one benchmark; what it prints becomes its page if it writes none of its own."""
    page = RESULTS / f"{name}.md"
    before = page.stat().st_mtime_ns if page.exists() else 0
    print(f"{name} …", flush=True)
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ}, cwd=HERE.parent
    )
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        raise SystemExit(f"{name} failed")
    if not page.exists() or page.stat().st_mtime_ns == before:
        page.write_text(done.stdout)


def gather() -> None:
    """Write the index of the pages."""
    import numpy
    import scipy

    import stratal

    heading = (
        "# Measured\n\nRatios are against the peer in the same run on the same machine: "
        f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, NumPy "
        f"{numpy.__version__}, SciPy {scipy.__version__}, stratal {stratal.__version__}. Timings are not "
        "tests. Each page names its command and has all rows; this index is written by `make bench`, or by "
        "`python -m benchmarks.run --gather` after one of them has changed.\n\n"
    )
    PAGE.write_text(f"{heading}{index(RESULTS)}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="NAME,… of benchmarks; all unless given")
    parser.add_argument("--gather", action="store_true")
    parser.add_argument("--ssepy")
    parser.add_argument("--ppi")
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    if not options.gather:
        known = programs(options)
        for name in options.only.split(",") if options.only else known:
            run(name, known[name]())
    gather()


if __name__ == "__main__":
    main()
