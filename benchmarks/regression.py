"""Speed of regressions and quantiles against ppi-python, in the same run on the same machine.

    python benchmarks/regression.py --peer /path/to/python-with-ppi-python

The peer runs in its own interpreter (`--peer`, or the variable STRATAL_PPI_PYTHON). Writes
benchmarks/results/regression.md. "First call" is the first interval of a fresh process, imports not counted:
what a script pays (the peer compiles its loops then). "Warm" is the best of several runs after one. Times are
those of the processor, one thread each, so that other work on the machine does not count. "Floor" is the
same method as straight NumPy for one stratum of equal weights: no checks, strata, other designs or notes.
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
from scipy import special

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


def floor_case(kind: str, size: int, d: int) -> dict[str, Any]:
    """Time the array operations of the method: two fits of λ at two minima, the sandwich, skewed limits."""
    x, y, f = data(kind, size, d)
    n = LABELLED

    def run() -> Any:
        units = np.asfortranarray(x[n:])
        labelled = np.asfortranarray(x[:n])
        if not np.isfinite(np.dot(units.ravel(order="K"), units.ravel(order="K")) + f[n:] @ f[n:]):
            raise ValueError
        fit = linear_floor if kind == "linear" else logistic_floor
        theta, lam, bread, residuals = fit(labelled, y[:n], f[:n], units, f[n:])
        residual = residuals[0] - lam * residuals[1]
        leverages = np.einsum("nd,nd->n", labelled @ bread, labelled) / n
        influences = (labelled * (residual / (1.0 - leverages))[:, None]) @ bread
        influences -= influences.mean(axis=0)
        squares = influences * influences
        imputed = bread @ proxy_covariance(units, residuals[2]) @ bread
        variances = squares.sum(axis=0) / (n - 1) / n + lam**2 * imputed.diagonal() / size
        skewness = (squares * influences).sum(axis=0) / squares.sum(axis=0) ** 1.5
        t = -special.stdtrit(float(n - d - 1), 0.025)
        shifted = (np.cbrt(1.0 - skewness * (t + skewness / 6.0)) - 1.0) / skewness
        length = np.sqrt(variances) * np.maximum(t, np.abs(3.0 * shifted))
        return theta - length, theta + length

    return timed(run)


def proxy_covariance(features: Any, residual: Any) -> Any:
    """Return the covariance of the gradients of the proxy over the unlabelled units."""
    total = residual @ features
    squares = features.T @ (features * (residual * residual)[:, None])
    return (squares - np.outer(total, total) / len(features)) / (len(features) - 1)


def fitted_lam(x: Any, residuals: tuple[Any, Any], units: Any, unit_residual: Any, bread: Any) -> float:
    """Return λ from the covariance of the gradients of outcome and proxy, as few passes as it takes."""
    u, v = ((x * residual[:, None]) @ bread for residual in residuals)
    v = v - v.mean(axis=0)
    cross = float(np.vdot(u, v)) / (len(x) - 1)
    population = float(np.vdot(proxy_covariance(units, unit_residual), bread @ bread))
    return cross / (population * (1.0 + len(x) / len(units)))


def linear_floor(x: Any, y: Any, f: Any, units: Any, unit_proxy: Any) -> Any:
    """Return θ, λ, the bread and the residuals of least squares, with the bias of the proxy corrected."""
    n = len(x)
    gram, unit_gram = x.T @ x / n, units.T @ units / len(units)
    gradient, proxy_gradient = x.T @ y / n, x.T @ f / n
    unit_gradient = units.T @ unit_proxy / len(units)
    bread = np.linalg.inv(gram)
    theta = bread @ gradient
    stretched = (x @ bread) * (f - x @ np.linalg.solve(unit_gram, unit_gradient))[:, None]
    np.vdot(stretched, stretched)  # the slope of the residuals, which decides whether the proxy is stretched
    shift = bread @ (gradient - proxy_gradient)
    scores = x * (y - f - x @ shift)[:, None]
    spread = bread @ (scores.T @ scores) @ bread / n**2
    shift = shift * max(1.0 - 2.0 * len(shift) / float(shift @ np.linalg.solve(spread, shift)), 0.0)
    f, unit_proxy = f + x @ shift, unit_proxy + units @ shift
    power = unit_gradient + unit_gram @ shift - proxy_gradient - gram @ shift
    for _ in range(2):
        eta = x @ theta
        lam = fitted_lam(x, (eta - y, eta - f), units, units @ theta - unit_proxy, bread)
        hessian = gram + lam * (unit_gram - gram)
        theta = np.linalg.solve(hessian, gradient + lam * power)
    residuals = x @ theta - y, x @ theta - f, units @ theta - unit_proxy
    return theta, lam, np.linalg.inv(hessian), residuals


def logistic_floor(x: Any, y: Any, f: Any, units: Any, unit_proxy: Any) -> Any:
    """Return θ, λ, the bread and the residuals of a logistic regression."""
    n = len(x)
    theta, lam = np.zeros(x.shape[1]), 0.0

    def step(theta: Any, lam: float) -> tuple[Any, Any, tuple[Any, Any]]:
        mean = 1.0 / (1.0 + np.exp(-(x @ theta)))
        gradient = (mean - y - lam * (mean - f)) @ x / n
        hessian = x.T @ (x * ((1.0 - lam) * mean * (1.0 - mean))[:, None]) / n
        unit_mean = mean
        if lam:
            unit_mean = 1.0 / (1.0 + np.exp(-(units @ theta)))
            gradient += lam * ((unit_mean - unit_proxy) @ units) / len(units)
            curvature = lam * unit_mean * (1.0 - unit_mean)
            hessian += units.T @ (units * curvature[:, None]) / len(units)
        return theta - np.linalg.solve(hessian, gradient), hessian, (mean, unit_mean)

    for _ in range(5):
        theta, hessian, means = step(theta, 0.0)
    unit_mean = 1.0 / (1.0 + np.exp(-(units @ theta)))
    for steps in (1, 3):
        curvature = means[0] * (1.0 - means[0])
        bread = np.linalg.inv(x.T @ (x * curvature[:, None]) / n)
        lam = fitted_lam(x, (means[0] - y, means[0] - f), units, unit_mean - unit_proxy, bread)
        for _ in range(steps):
            theta, hessian, means = step(theta, lam)
        unit_mean = means[1]
    return theta, lam, np.linalg.inv(hessian), (means[0] - y, means[0] - f, unit_mean - unit_proxy)


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
    parser.add_argument("--side", choices=("own", "peer", "floor"), help=argparse.SUPPRESS)
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.side:
        kind, size, d = chosen.case
        run = {"own": own_case, "peer": peer_case, "floor": floor_case}[chosen.side]
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
