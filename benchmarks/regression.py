"""Speed of regressions and quantiles against ppi-python, in the same run on the same machine.

    python benchmarks/regression.py --peer /path/to/python-with-ppi-python

The peer runs in its own interpreter (`--peer`, or the variable STRATAL_PPI_PYTHON). Writes
benchmarks/results/regression.md. "First call" is the first interval of a fresh process, imports not counted:
what a script pays (the peer compiles its loops then). "Warm" is the best of several runs after one. Times are
those of the processor, one thread each, so that other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

CASES = [("linear", 10_000, 5), ("linear", 10_000, 20), ("linear", 100_000, 5), ("linear", 100_000, 20)]
CASES += [("logistic", size, d) for _, size, d in CASES]
LABELLED = 1_000
REPEATS = 7
RESULTS = Path(__file__).with_name("results") / "regression.md"


def data(kind: str, size: int, d: int) -> tuple[Any, Any, Any]:
    """Features, outcome and proxy of labelled units, then of the rest."""
    random = np.random.default_rng(d)
    x = np.column_stack([np.ones(LABELLED + size), random.normal(size=(LABELLED + size, d - 1))])
    eta = x @ (random.normal(size=d) / np.sqrt(d))
    if kind == "linear":
        y = eta + random.normal(size=len(eta))
        return x, y, 0.7 * y + 0.5 * random.normal(size=len(eta))
    y = (random.uniform(size=len(eta)) < 1 / (1 + np.exp(-eta))).astype(float)
    return x, y, np.clip(0.2 + 0.6 * y + 0.1 * random.normal(size=len(eta)), 0, 1)


def timed(run: Callable[[], Any]) -> dict[str, Any]:
    """Processor seconds of the first call and of the best later one, with the interval."""
    start = time.process_time()
    result = run()
    first = time.process_time() - start
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        result = run()
        times.append(time.process_time() - start)
    return {"first": first, "warm": min(times), "interval": [np.asarray(side).tolist() for side in result]}


def peer_case(kind: str, size: int, d: int) -> dict[str, Any]:
    import ppi_py

    x, y, f = data(kind, size, d)
    n = LABELLED
    interval = ppi_py.ppi_ols_ci if kind == "linear" else ppi_py.ppi_logistic_ci
    return timed(lambda: interval(x[:n], y[:n], f[:n], x[n:], f[n:], alpha=0.05))


def own_case(kind: str, size: int, d: int) -> dict[str, Any]:
    from stratal.designs import StratifiedWeighting
    from stratal.regression.losses import ArrayUnlabelled
    from stratal.regression.m_estimation import linear_regression, logistic_regression

    n = LABELLED
    weighting = StratifiedWeighting(stratum=np.zeros(n, int), sizes=np.array([1]), with_replacement=True)
    x, y, f = data(kind, size, d)
    model = linear_regression if kind == "linear" else logistic_regression

    def run() -> Any:
        units = ArrayUnlabelled(features=x[n:], proxy=f[n:], separate=True)
        fit = model(
            x[:n], y[:n], proxy=f[:n], unlabelled=units, weighting=weighting, target="superpopulation"
        )
        return fit.confidence_interval(0.95)

    return timed(run)


def fresh(interpreter: str, side: str, case: tuple[str, int, int]) -> dict[str, Any]:
    """Run one case in a process of its own, which does not take files beside this one for modules."""
    command = [interpreter, "-P", __file__, "--side", side, "--case", *map(str, case)]
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    output = subprocess.run(command, capture_output=True, check=True, text=True, env=os.environ | one).stdout
    result: dict[str, Any] = json.loads(output)
    return result


def quantile_row() -> str:
    """Time and memory of a median with its interval, N = 10⁶, in this process."""
    from stratal.designs import StratifiedWeighting
    from stratal.regression.losses import ArrayUnlabelled
    from stratal.regression.quantiles import quantile

    size, n = 1_000_000, LABELLED
    random = np.random.default_rng(1)
    y = random.gamma(2.0, size=size)
    f = 0.8 * y + 0.3 * random.normal(size=size)
    rows = random.permutation(size)[:n]
    weighting = StratifiedWeighting(stratum=np.zeros(n, int), sizes=np.array([size]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    result = quantile(y[rows], 0.5, weighting=weighting, proxy=f[rows], unlabelled=ArrayUnlabelled(proxy=f))
    result.confidence_interval(0.95)
    seconds = time.process_time() - start
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return (
        f"Median with its interval, N = 10⁶, n = {n:,}: **{seconds:.2f} s**, "
        f"peak memory beyond the data {peak:.0f} MB (required: 1 s, 200 MB)."
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", default=os.environ.get("STRATAL_PPI_PYTHON"))
    parser.add_argument("--side", choices=("own", "peer"), help=argparse.SUPPRESS)
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.side:
        kind, size, d = chosen.case
        run = own_case if chosen.side == "own" else peer_case
        print(json.dumps(run(kind, int(size), int(d))))
        return
    quantile_line = quantile_row()
    ours = [fresh(sys.executable, "own", case) for case in CASES]
    theirs = [fresh(chosen.peer, "peer", case) for case in CASES] if chosen.peer else None
    text = report(ours, theirs, quantile_line)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(text)
    sys.stdout.write(text)


def report(ours: list[dict[str, Any]], theirs: list[dict[str, Any]] | None, quantile_line: str) -> str:
    lines = [
        "# Regressions against ppi-python",
        "",
        "`python benchmarks/regression.py --peer <python with ppi-python>`; interval included, λ fitted,",
        f"n = {LABELLED:,} labels, Python {platform.python_version()}, NumPy {np.__version__}.",
        "Processor time, one thread. First call: the first interval of a fresh process, imports not counted",
        "(ppi-python compiles its loops then). Warm: the best of seven later ones.",
        "",
        "| model | N | d | first call: ppi-python | stratal | ratio | warm: ppi-python | stratal | ratio "
        "| widths, stratal / ppi-python |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    peers: list[dict[str, Any] | None] = list(theirs) if theirs else [None] * len(CASES)
    for (kind, size, d), own, peer in zip(CASES, ours, peers, strict=True):
        cells = [kind, f"{size:,}", str(d)]
        for clock in ("first", "warm"):
            before = "not run" if peer is None else f"{1e3 * peer[clock]:.0f} ms"
            ratio = "" if peer is None else f"**{peer[clock] / own[clock]:.0f}×**"
            cells += [before, f"{1e3 * own[clock]:.1f} ms", ratio]
        widths = [np.subtract(*side["interval"][::-1]) for side in (own, peer) if side is not None]
        cells.append(f"{np.mean(widths[0] / widths[1]):.3f}" if len(widths) == 2 else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", quantile_line, ""])


if __name__ == "__main__":
    main()
