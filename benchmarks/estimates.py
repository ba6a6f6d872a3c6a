"""How long an estimate takes once the labels are there: many strata, and the rescaling bootstrap.

OMP_NUM_THREADS=1 python -m benchmarks.estimates [--repeats 9] [--output FILE]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from benchmarks.helpers import circumstances

import stratal

OUTPUT = Path(__file__).resolve().parent / "results" / "estimates.md"
N_STRATA = 100
SEED = 7


def drawn(units: int, labels: int, n_strata: int) -> tuple[stratal.Sample, np.ndarray]:
    """Return a stratified sample and 0/1 labels in its order."""
    rng = np.random.default_rng(SEED)
    proxy = rng.beta(5.0, 2.0, units)
    kind = np.char.add("kind ", rng.integers(0, n_strata, units).astype(str))
    population = stratal.Population.from_arrays(proxy=proxy, groups={"kind": kind})
    strata = stratal.strata.stratify(population, "category", by="kind")
    allocation = stratal.strata.allocate(strata, labels)
    sample = stratal.designs.Stratified(strata=strata, allocation=allocation).draw(population, seed=SEED)
    return sample, (rng.random(sample.size) < sample.proxies[:, 0]).astype(np.float64)


def seconds(work: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Return the first and the least time of the later runs."""
    taken = []
    for _ in range(repeats + 1):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return taken[0], min(taken[1:])


def rows(repeats: int) -> list[str]:
    """Return one line per task: first run, later runs, and what is required."""
    lines = []
    sample, z = drawn(1_000_000, 100_000, N_STRATA)
    for estimator in ("horvitz-thompson", "ppi++", "stratppi"):

        def estimated(estimator: str = estimator) -> object:
            return stratal.estimate(sample, z, estimator=estimator)

        first, later = seconds(estimated, repeats)
        lines.append(
            f"| `estimate`, `{estimator}` | 100,000 | {N_STRATA} | {1e3 * first:.0f} ms | "
            f"{1e3 * later:.0f} ms | 50 ms |"
        )
    estimate = stratal.estimate(sample, z)
    first, later = seconds(lambda: estimate.confidence_interval(), repeats)
    lines.append(
        f"| `confidence_interval`, `auto` | 100,000 | {N_STRATA} | {1e3 * first:.0f} ms | "
        f"{1e3 * later:.0f} ms | |"
    )
    for n_strata in (1, 10):
        sample, z = drawn(100_000, 1000, n_strata)
        estimate = stratal.estimate(sample, z)

        def resampled(estimate: stratal.Estimate = estimate) -> object:
            return estimate.confidence_interval(method="bootstrap")

        first, later = seconds(resampled, min(repeats, 3))
        lines.append(
            f"| 10,000 replicates, `bootstrap` | 1,000 | {n_strata} | {first:.2f} s | {later:.2f} s | 2 s |"
        )
    return lines


def page(repeats: int) -> str:
    """Return the page."""
    lines = rows(repeats)
    return "\n".join([
        "# Estimates and bootstrap",
        "",
        f"`OMP_NUM_THREADS=1 python -m benchmarks.estimates --repeats {repeats}`, {circumstances()}",
        "",
        "Time of the processor. Labels as an array in the sample's order, joining and checking included; "
        "'later' is the least of the later runs.",
        "",
        "| what | n | strata | first run | later | required |",
        "|---|---|---|---|---|---|",
        *lines,
        "",
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    text = page(options.repeats)
    options.output.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
