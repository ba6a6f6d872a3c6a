"""Exact one-dimensional k-means against its peers: time and within-strata sum of squares.

    python -m benchmarks.strata --largest 1e7 --ssepy PYTHON

PYTHON is an interpreter that has ssepy, which needs an older NumPy; without it, ssepy is left out. Each
solver gets the same proxies and returns a stratum for every unit; the sum of squares is computed from
these, centred, in double precision.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.helpers import BINARY, DATA, circumstances, load
from numpy.typing import NDArray

from stratal.population import Population
from stratal.strata import STRATIFICATION_METHODS, Strata, allocate, stratify

RESULTS = Path(__file__).parent / "results" / "strata.md"
BUDGETS = (50, 100, 200, 400)
N_STRATA = 10
SEED = 7
OFFSET = 1e8
RUNS, PATIENCE = 5, 30.0
"""How often a solver runs, and the seconds after which it is not run again."""

INTERVALS = [name for name in STRATIFICATION_METHODS if name not in ("category", "features", "none")]

SSEPY = """
import sys, time, json
import numpy as np
from sklearn.cluster import KMeans
from ssepy import ModelPerformanceEvaluator
proxy = np.load(sys.argv[1])
best, spent = float("inf"), 0.0
for _ in range(int(sys.argv[4])):
    start = time.process_time()
    evaluator = ModelPerformanceEvaluator(Yh=proxy, budget=1000)
    evaluator.stratify_data(KMeans(n_clusters=int(sys.argv[2]), random_state=0, n_init="auto"), X=proxy)
    taken = time.process_time() - start
    best, spent = min(best, taken), spent + taken
    if spent > float(sys.argv[5]):
        break
np.save(sys.argv[3], evaluator.strata_labels)
print(best)
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
    """Return the least time of a few runs in seconds, and the sum of squares."""
    best, codes = float("inf"), np.zeros(0)
    spent = 0.0
    for _ in range(RUNS):
        start = time.process_time()
        codes = solver(proxy)
        taken = time.process_time() - start
        best, spent = min(best, taken), spent + taken
        if spent > PATIENCE:
            break
    return best, sum_of_squares(proxy, codes)


def timed_ssepy(python: str, proxy: NDArray[np.float64]) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "proxy.npy", Path(folder) / "labels.npy"
        np.save(given, proxy)
        command = [python, "-c", SSEPY, str(given), str(N_STRATA), str(made), str(RUNS), str(PATIENCE)]
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
    whole = float(np.mean(proxy) * (1 - np.mean(proxy)))
    lines = []
    for method in INTERVALS:
        seconds = float("inf")
        for _ in range(3):
            population = Population.from_arrays(proxy=proxy)  # a new one, which has not been binned yet
            start = time.process_time()
            strata = stratify(population, method, N_STRATA)
            seconds = min(seconds, time.process_time() - start)
        deviations = strata.standard_deviations
        proportional = float(strata.weights @ deviations**2) / whole
        neyman = float(strata.weights @ deviations) ** 2 / whole
        lines.append(f"| {method} | {seconds:.3f} | {strata.n_strata} | {proportional:.4f} | {neyman:.4f} |")
    return lines


def true_variance(strata: Strata, z: NDArray[np.float64], n_h: NDArray[np.int64]) -> float:
    """Variance of the stratified mean of a binary outcome, from the true rates."""
    sizes, codes = strata.sizes, np.asarray(strata.codes)
    rates = np.bincount(codes, z, minlength=strata.n_strata) / sizes
    spread = rates * (1 - rates) * sizes / np.maximum(sizes - 1, 1)
    return float(np.sum(strata.weights**2 * (1 / n_h - 1 / sizes) * spread))


def real_rows(directory: Path) -> list[str]:
    """Each method with ten strata and "auto": true variance beside simple random sampling's."""
    ratios: dict[tuple[str, str], list[tuple[float, float, int]]] = {}
    for name in BINARY:
        z, proxy = load(name, directory)
        population = Population.from_arrays(proxy=proxy)
        for budget, method in itertools.product(BUDGETS, INTERVALS):
            simple = z.mean() * (1 - z.mean()) * len(z) / (len(z) - 1) * (1 / budget - 1 / len(z))
            for label in ("10", "auto"):
                number: Any = "auto" if label == "auto" else N_STRATA
                strata = stratify(population, method, number, budget=budget)
                robust, even = (
                    true_variance(strata, z, allocate(strata, budget, rule).n_h) / simple
                    for rule in ("robust", "proportional")
                )
                ratios.setdefault((method, label), []).append((robust, even, strata.n_strata))
    lines = []
    for (method, label), entries in ratios.items():
        robust_mean, even_mean = np.exp(np.log(np.array(entries)[:, :2]).mean(axis=0))
        number_mean = np.mean([entry[2] for entry in entries])
        lines.append(f"| {method} | {label} | {number_mean:.1f} | {robust_mean:.3f} | {even_mean:.3f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=float, default=1e7)
    parser.add_argument("--ssepy", help="an interpreter that has ssepy")
    parser.add_argument("--data", type=Path, default=DATA)
    arguments = parser.parse_args()
    lines = [
        f"Ten strata. Seconds of the processor, the least of {RUNS} runs (of fewer once {PATIENCE:.0f} s are "
        "spent). Times are relative to stratal's (above 1×: the peer takes longer), as are sums of squares "
        "(above 1: the peer's are larger).",
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
        "Every interval method of `stratify`, 10⁶ units, the least of three runs; variance per label "
        "relative to simple random sampling, plug-in, under proportional and Neyman allocation:",
        "",
        "| method | seconds | strata | proportional | Neyman |",
        "|---|---|---|---|---|",
        *method_rows(10**6),
    ]
    if arguments.data.exists():
        lines += [
            "",
            "True variance over simple random sampling's, geometric mean over "
            f"{len(BINARY)} binary data sets and budgets of {', '.join(map(str, BUDGETS))}, "
            "under robust and proportional allocation:",
            "",
            "| method | n_strata | strata made | robust | proportional |",
            "|---|---|---|---|---|",
            *real_rows(arguments.data),
        ]
    RESULTS.parent.mkdir(exist_ok=True)
    command = f"`python -m benchmarks.strata --largest {arguments.largest:.0e} --ssepy PYTHON`"
    head = ["# Strata against peers", "", f"{command}, {circumstances()}", ""]
    RESULTS.write_text("\n".join([*head, *lines]) + "\n")
    print(json.dumps(raw))


if __name__ == "__main__":
    main()
