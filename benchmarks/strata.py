"""Exact one-dimensional k-means against its peers: time and within-strata sum of squares.

    python benchmarks/strata.py --largest 1e7 --ssepy PYTHON

PYTHON is an interpreter that has ssepy, which needs an older NumPy; without it, ssepy is left out. Each
solver gets the same proxies and returns a stratum for every unit; the sum of squares is computed from
these, centred, in double precision.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stratal.population import Population
from stratal.strata import METHODS, stratify

RESULTS = Path(__file__).parent / "results" / "strata.md"
N_STRATA = 10
SEED = 7
OFFSET = 1e8
INTERVALS = [name for name in METHODS if name not in ("category", "features", "none")]

SSEPY = """
import sys, time, json
import numpy as np
from sklearn.cluster import KMeans
from ssepy import ModelPerformanceEvaluator
proxy = np.load(sys.argv[1])
start = time.perf_counter()
evaluator = ModelPerformanceEvaluator(Yh=proxy, budget=1000)
evaluator.stratify_data(KMeans(n_clusters=int(sys.argv[2]), random_state=0, n_init="auto"), X=proxy)
seconds = time.perf_counter() - start
np.save(sys.argv[3], evaluator.strata_labels)
print(seconds)
"""

Solver = Callable[[NDArray[np.float64]], NDArray[Any]]


def own(proxy: NDArray[np.float64]) -> NDArray[Any]:
    codes = stratify(Population.from_arrays(proxy=proxy, scaled=False), "k-means", N_STRATA).codes
    assert codes is not None
    return codes


def scikit_learn(proxy: NDArray[np.float64]) -> NDArray[Any]:
    from sklearn.cluster import KMeans

    return np.asarray(KMeans(N_STRATA, random_state=0, n_init="auto").fit_predict(proxy[:, None]))


def kmeans1d(proxy: NDArray[np.float64]) -> NDArray[Any]:
    import kmeans1d

    return np.asarray(kmeans1d.cluster(proxy, N_STRATA).clusters)


def proxies(units: int) -> NDArray[np.float64]:
    """Confidences as modern classifiers give them: most near one."""
    return np.random.default_rng(SEED).beta(5, 0.8, units)


def sum_of_squares(proxy: NDArray[np.float64], codes: NDArray[Any]) -> float:
    centred = proxy - np.median(proxy)
    sizes = np.maximum(np.bincount(codes), 1)
    means = np.bincount(codes, centred) / sizes
    return float(np.sum((centred - means[codes]) ** 2))


def timed(solver: Solver, proxy: NDArray[np.float64]) -> tuple[float, float]:
    """Return the best of a few runs in seconds, and the sum of squares."""
    best, codes = float("inf"), np.zeros(0)
    for _ in range(3 if len(proxy) <= 1_000_000 else 1):
        start = time.perf_counter()
        codes = solver(proxy)
        best = min(best, time.perf_counter() - start)
    return best, sum_of_squares(proxy, codes)


def timed_ssepy(python: str, proxy: NDArray[np.float64]) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "proxy.npy", Path(folder) / "labels.npy"
        np.save(given, proxy)
        command = [python, "-c", SSEPY, str(given), str(N_STRATA), str(made)]
        seconds = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        return seconds, sum_of_squares(proxy, np.unique(np.load(made), return_inverse=True)[1].ravel())


def compare(proxy: NDArray[np.float64], ssepy: str | None) -> dict[str, tuple[float, float]]:
    own(proxy[:100])  # imports
    found = {"stratal": timed(own, proxy)}
    for solver in (scikit_learn, kmeans1d):
        found[solver.__name__.replace("_", "-")] = timed(solver, proxy)
    if ssepy:
        found["ssepy"] = timed_ssepy(ssepy, proxy)
    return found


def rows(label: str, found: dict[str, tuple[float, float]]) -> list[str]:
    seconds, squares = found["stratal"]
    return [
        f"| {label} | {name} | {time_:.4f} | {time_ / seconds:.1f}× | {total / squares:.6f} |"
        for name, (time_, total) in found.items()
    ]


def method_rows(units: int) -> list[str]:
    """Every interval method: time, and both variances per label relative to simple random sampling."""
    proxy = proxies(units)
    population = Population.from_arrays(proxy=proxy)
    whole = float(np.mean(proxy) * (1 - np.mean(proxy)))
    lines = []
    for method in INTERVALS:
        start = time.perf_counter()
        strata = stratify(population, method, N_STRATA)
        seconds = time.perf_counter() - start
        deviations = strata.standard_deviations
        proportional = float(strata.weights @ deviations**2) / whole
        neyman = float(strata.weights @ deviations) ** 2 / whole
        lines.append(f"| {method} | {seconds:.3f} | {strata.n_strata} | {proportional:.4f} | {neyman:.4f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=float, default=1e7)
    parser.add_argument("--ssepy", help="an interpreter that has ssepy")
    arguments = parser.parse_args()
    lines = [
        "# Strata against peers",
        "",
        "`python benchmarks/strata.py --largest 1e7 --ssepy PYTHON`, "
        f"{os.cpu_count()} cores, Python {platform.python_version()}, NumPy {np.__version__}.",
        "Ten strata. Times are relative to stratal's (above 1×: the peer takes longer), "
        "as are the sums of squares (above 1: the peer's are larger).",
        "",
        "| units | solver | seconds | time | sum of squares |",
        "|---|---|---|---|---|",
    ]
    raw = {}
    for exponent in range(4, 8):
        if 10**exponent > arguments.largest:
            break
        found = compare(proxies(10**exponent), arguments.ssepy)
        lines += rows(f"10^{exponent}", found)
        raw[exponent] = found
        print("\n".join(rows(f"10^{exponent}", found)), flush=True)
    lines += [
        "",
        "10⁸ added to every proxy, 10⁵ units:",
        "",
        "| units | solver | seconds | time | sum of squares |",
    ]
    lines += [
        "|---|---|---|---|---|",
        *rows("10^5 + 10^8", compare(proxies(10**5) + OFFSET, arguments.ssepy)),
    ]
    lines += [
        "",
        "Every interval method of `stratify`, 10⁶ units; variance per label relative to simple random "
        "sampling, plug-in, under proportional and Neyman allocation:",
        "",
        "| method | seconds | strata | proportional | Neyman |",
        "|---|---|---|---|---|",
        *method_rows(10**6),
    ]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join(lines) + "\n")
    print(json.dumps(raw))


if __name__ == "__main__":
    main()
