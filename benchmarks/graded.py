"""Graded outcomes with few labels: coverage and width in strata and slices, and exactly near a census.

    OMP_NUM_THREADS=1 python -m benchmarks.graded [--draws 4000] [--slice-draws 1000] [--only SECTION ...]

Wins are 0, ½ or 1 with a share of ties; ratings are 1 to 5, as binomial counts or beta-binomial ones with
correlation .3. Strata have 200 units and mean outcomes that are equal or spread evenly. Slices are parts of
simple random samples of 60 of 2,000 units, and of samples of 60 units of five strata. Near a census every
population of some values is enumerated.
Writes benchmarks/results/graded.md.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from benchmarks.helpers import circumstances
from scipy.special import betaln, comb, gammaln

from stratal.arrays import FloatArray, IntArray
from stratal.designs import StratifiedWeighting
from stratal.estimation.domain_means import domain_mean
from stratal.simulation.draws import StratumSums, Truth
from stratal.simulation.replicates import Replicates, Settings, replicate_intervals, replicate_means

RESULTS = Path(__file__).with_name("results") / "graded.md"
SEED = 20261128
CLOSE = 1e-9
STRATUM = 200
RATES = (0.5, 0.7, 0.9)
WINS, RATINGS = np.array([0.0, 0.5, 1.0]), np.arange(1.0, 6.0)
REQUIRED, WIDEST, MANY = 0.94, 1.25, 5
# Labels of five strata, of which slices have a part, and the units of each stratum.
SLICE_COUNTS = {"equal": (12, 12, 12, 12, 12), "4 to 20": (4, 8, 12, 16, 20)}
SLICE_STRATUM = 6_000
SLICE_LABELS = (1, 2, 4, 10)
VALUES = (
    ((0.0, 0.9, 1.0), (0.0, 1.0)),
    ((0.0, 0.5, 1.0), (0.0, 1.0)),
    ((0.0, 0.1, 1.0), (0.0, 1.0)),
    ((1.0, 4.0, 5.0), (1.0, 5.0)),
    ((0.0, 0.3, 0.35, 1.0), (0.0, 1.0)),
)


def wins(means: FloatArray, ties: float) -> FloatArray:
    """Return the probabilities (H, 3) of 0, ½ and 1, with this share of the ties that the means allow."""
    tied = 2.0 * ties * np.minimum(means, 1.0 - means)
    return np.stack([1.0 - means - tied / 2.0, tied, means - tied / 2.0], axis=-1)


def ratings(means: FloatArray, correlation: float) -> FloatArray:
    """Return the probabilities (H, 5) of ratings with means (H,) on the 0–1 scale."""
    count, mean = np.arange(5), means[:, None]
    if correlation == 0:
        return np.asarray(comb(4, count) * mean**count * (1.0 - mean) ** (4 - count))
    total = 1.0 / correlation - 1.0
    a, b = mean * total, (1.0 - mean) * total
    return np.asarray(comb(4, count) * np.exp(betaln(count + a, 4 - count + b) - betaln(a, b)))


def units_of(probabilities: FloatArray, size: int) -> IntArray:
    """Return how many of `size` units have each value (H, K): largest remainders."""
    exact = probabilities * size
    units = np.floor(exact + CLOSE).astype(np.int64)
    order = np.argsort(-(exact - units), axis=-1, kind="stable")
    missing = size - units.sum(axis=-1, keepdims=True)
    np.put_along_axis(
        units, order, np.take_along_axis(units, order, -1) + (np.arange(units.shape[-1]) < missing), -1
    )
    return units


def replicates_of(
    counts: IntArray, values: FloatArray, truth: Truth, bounds: tuple[float, float]
) -> Replicates:
    """Return the estimates of samples, from how many labels have each value (R, H, K)."""
    away = values - truth.centre
    sums = StratumSums(
        counts=counts[:1].sum(axis=-1).astype(np.float64),
        z=counts @ away,
        zz=counts @ away**2,
        zzz=counts @ away**3,
    )
    settings = Settings(
        estimators=("hajek",),
        intervals=("auto",),
        budgets=(1,),
        replicates=len(counts),
        seed=SEED,
        bounds=bounds,
    )
    return replicate_means(sums, truth, settings)


def intervals(
    counts: IntArray, values: FloatArray, truth: Truth, bounds: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Return `auto` limits (R,) from how many labels have each value (R, H, K)."""
    return replicate_intervals(replicates_of(counts, values, truth, bounds))["auto"]


def strata_coverage(
    probabilities: FloatArray,
    values: FloatArray,
    n_h: int,
    draws: int,
    seed: int,
    limits: Callable[..., tuple[FloatArray, FloatArray]] = intervals,
) -> tuple[float, float]:
    """Return coverage, and mean width over 3.92 true standard errors, with n_h labels in each stratum."""
    units, rng = units_of(probabilities, STRATUM), np.random.default_rng(seed)
    outcome = np.concatenate([np.repeat(values, row) for row in units])
    truth = Truth.of(outcome, None, np.repeat(np.arange(len(units)), STRATUM), len(units))
    drawn = [rng.multivariate_hypergeometric(row, n_h, size=draws, method="marginals") for row in units]
    low, high = limits(np.stack(drawn, axis=1), values, truth, (values[0], values[-1]))
    held = (low <= truth.value + CLOSE) & (truth.value <= high + CLOSE)
    error = np.sqrt(np.sum(truth.weights**2 * (1.0 - n_h / STRATUM) / n_h * truth.variances))
    return float(held.mean()), float((high - low).mean() / (3.92 * error))


def populations(n_strata: int) -> Iterator[tuple[str, FloatArray, FloatArray]]:
    """Yield a name, the probabilities (H, K) and the values (K,)."""
    for rate in RATES:
        for spread in (0.0, min(0.25, 1.0 - rate)):
            means = np.clip(rate + np.linspace(-spread, spread, n_strata), 0.01, 0.99)
            for ties in (0.2, 0.6):
                yield f"wins, rate {rate:g} ± {spread:g}, ties {ties:g}", wins(means, ties), WINS
            for correlation in (0.0, 0.3):
                name = f"ratings, rate {rate:g} ± {spread:g}, correlation {correlation:g}"
                yield name, ratings(means, correlation), RATINGS


def slice_coverage(outcome: FloatArray, labels: int, draws: int, seed: int) -> tuple[float, float]:
    """Return coverage, and mean width over 3.92 true errors, of a slice with so many of 60 labels."""
    size, n, rng = 2_000, 60, np.random.default_rng(seed)
    weighting = StratifiedWeighting(stratum=np.zeros(n, dtype=np.int64), sizes=np.array([size]))
    member, truth = np.arange(n) < labels, outcome.mean()
    limits = np.empty((draws, 2))
    stored: dict[bytes, tuple[float, float]] = {}
    for row in limits:
        # Neither the order of the labels nor the outcomes outside the slice change its interval.
        inside = np.sort(rng.choice(outcome, labels, replace=False))
        key = inside.tobytes()
        if key not in stored:
            z = np.r_[inside, rng.random(n - labels)]
            found = domain_mean(z, member, weighting, bounds=(0.0, 1.0)).confidence_interval()
            stored[key] = (found.low, found.high)
        row[:] = stored[key]
    low, high = limits.T
    held = (low <= truth + CLOSE) & (truth <= high + CLOSE)
    error = outcome.std(ddof=1) * np.sqrt((1.0 - n / size) / labels)
    return float(held.mean()), float((high - low).mean() / (3.92 * error))


def strata_of_slice(counts: IntArray, sizes: IntArray, labels: int, rng: np.random.Generator) -> IntArray:
    """Return how many of a slice's labels are in each stratum (H,), given how many there are in all.

    `sizes` (H,) are the units of the slice in each stratum, of whose units `counts` (H,) are drawn.
    """
    while True:
        drawn = rng.hypergeometric(sizes, SLICE_STRATUM - sizes, counts)
        if drawn.sum() == labels:
            return drawn


def stratified_slice_coverage(
    units: IntArray, values: FloatArray, counts: IntArray, labels: int, draws: int, seed: int
) -> tuple[float, float]:
    """Return coverage, and mean width over 3.92 root mean squared errors, of a slice of several strata.

    Parameters
    ----------
    units : int (H, K)
        Units of the slice in each stratum with each value.
    values : float (K,)
        On the 0–1 scale.
    counts : int (H,)
        Labels of each stratum, of which `labels` are in the slice.
    """
    rng = np.random.default_rng(seed)
    n_strata = len(counts)
    stratum = np.repeat(np.arange(n_strata), counts)
    weighting = StratifiedWeighting(stratum=stratum, sizes=np.full(n_strata, SLICE_STRATUM))
    first = np.cumsum(counts) - counts
    sizes = units.sum(axis=1)
    truth = float(units.sum(axis=0) @ values / sizes.sum())
    found = np.empty((draws, 3))
    stored: dict[bytes, tuple[float, float, float]] = {}
    for row in found:
        inside = strata_of_slice(counts, sizes, labels, rng)
        drawn = np.stack(
            [rng.multivariate_hypergeometric(own, n) for own, n in zip(units, inside, strict=True)]
        )
        key = drawn.tobytes()
        if key not in stored:
            z = np.zeros(len(stratum))
            member = np.zeros(len(stratum), dtype=bool)
            for start, own in zip(first, drawn, strict=True):
                place = slice(start, start + own.sum())
                z[place] = np.repeat(values, own)
                member[place] = True
            estimate = domain_mean(z, member, weighting, bounds=(0.0, 1.0))
            interval = estimate.confidence_interval()
            stored[key] = (estimate.value, interval.low, interval.high)
        row[:] = stored[key]
    value, low, high = found.T
    held = (low <= truth + CLOSE) & (truth <= high + CLOSE)
    error = np.sqrt(np.mean((value - truth) ** 2))
    return float(held.mean()), float((high - low).mean() / (3.92 * error))


def stratified_slices(labels: int) -> Iterator[tuple[str, IntArray, FloatArray]]:
    """Yield a name, the units (H, K) of a slice that is expected to have so many labels, and the values."""
    size = SLICE_STRATUM * labels // sum(SLICE_COUNTS["equal"])
    for rate in RATES:
        spread = min(0.25, 1.0 - rate)
        means = np.clip(rate + np.linspace(-spread, spread, len(SLICE_COUNTS["equal"])), 0.01, 0.99)
        yield f"wins, rate {rate:g} ± {spread:g}", units_of(wins(means, 0.4), size), WINS
        yield f"ratings, rate {rate:g} ± {spread:g}", units_of(ratings(means, 0.3), size), np.arange(5) / 4


def slices() -> Iterator[tuple[str, FloatArray]]:
    """Yield a name and the outcome of the 200 units of a slice, on the 0–1 scale."""
    yield "uniform", (np.arange(STRATUM) + 0.5) / STRATUM
    for rate in RATES:
        mean = np.array([rate])
        yield f"wins, rate {rate:g}", np.repeat(WINS, units_of(wins(mean, 0.4), STRATUM)[0])
        yield f"ratings, rate {rate:g}", np.repeat(np.arange(5) / 4, units_of(ratings(mean, 0.3), STRATUM)[0])


def compositions(total: int, parts: int) -> IntArray:
    """Return all ways (M, parts) in which whole numbers sum to `total`."""
    if parts == 1:
        return np.array([[total]])
    rest = [compositions(total - first, parts - 1) for first in range(total + 1)]
    return np.concatenate([np.insert(some, 0, first, axis=1) for first, some in enumerate(rest)])


def least_coverage(values: FloatArray, size: int, labels: int, bounds: tuple[float, float]) -> float:
    """Return the least coverage over all populations of `size` units with these values, exactly."""
    samples, units = compositions(labels, len(values)), compositions(size, len(values))
    # The kernels take of the truth only its size, and that not every outcome is 0 or 1.
    outcome = np.append(np.full(size - 1, values[0]), values[:2].mean())
    truth = Truth.of(outcome, None, np.zeros(size, dtype=np.int64), 1)
    low, high = intervals(samples[:, None], values, truth, bounds)
    means = (units @ values / size)[:, None]
    held = (low <= means + CLOSE) & (means <= high + CLOSE)
    ways = log_binomial(units[:, None], samples[None]).sum(axis=-1)
    probability = np.exp(ways - log_binomial(np.array(size), np.array(labels)))
    return float((probability * held).sum(axis=1).min())


def log_binomial(whole: IntArray, part: IntArray) -> FloatArray:
    inside = part <= whole
    some = np.where(inside, part, 0)
    found = gammaln(whole + 1.0) - gammaln(some + 1.0) - gammaln(whole - some + 1.0)
    return np.asarray(np.where(inside, found, -np.inf))


def strata_lines(draws: int) -> list[str]:
    lines = ["| strata | n_h | cells | least coverage | below .94 | mean width | largest | above 1.25 |"]
    lines += ["|---" * 8 + "|"]
    wide = []
    for n_strata in (2, 10, 25, 50):
        for n_h in (1, 2, 3, 5):
            found = []
            for number, (name, probabilities, values) in enumerate(populations(n_strata)):
                seed = SEED + 10_000 * n_strata + 100 * n_h + number
                row = strata_coverage(probabilities, values, n_h, draws, seed)
                found.append(row)
                if n_h >= MANY and row[1] > WIDEST:
                    wide.append(f"| {n_strata} strata, {name} | {row[0]:.4f} | {row[1]:.3f} |")
            held, width = np.array(found).T
            lines.append(
                f"| {n_strata} | {n_h} | {len(held)} | {held.min():.4f} | {np.sum(held < REQUIRED)} "
                f"| {width.mean():.3f} | {width.max():.3f} | {np.sum(width > WIDEST)} |"
            )
            print(lines[-1], flush=True)
    lines += ["", f"Cells of {MANY} labels per stratum wider than {WIDEST}:", ""]
    return [*lines, "| cell | coverage | width |", "|---|---|---|", *wide]


def slice_lines(draws: int) -> list[str]:
    lines = [
        "| outcome | labels of the slice | coverage of the slice | width of the slice |",
        "|---|---|---|---|",
    ]
    for name, outcome in slices():
        for labels in SLICE_LABELS:
            held, width = slice_coverage(outcome, labels, draws, SEED)
            lines.append(f"| {name} | {labels} | {held:.4f} | {width:.3f} |")
    return lines


def stratified_slice_lines(draws: int) -> list[str]:
    lines = [
        "| labels per stratum | outcome | labels of the slice | coverage over strata | width over strata |",
        "|---" * 5 + "|",
    ]
    for allocation, counts in SLICE_COUNTS.items():
        for labels in SLICE_LABELS:
            for name, units, values in stratified_slices(labels):
                held, width = stratified_slice_coverage(units, values, np.array(counts), labels, draws, SEED)
                lines.append(f"| {allocation} | {name} | {labels} | {held:.4f} | {width:.3f} |")
                print(lines[-1], flush=True)
    return lines


def census_lines(most: int) -> list[str]:
    lines = ["| values | pairs of N and n | least coverage | below .94 |", "|---|---|---|---|"]
    for values, bounds in VALUES:
        largest = most if len(values) == 3 else min(most, 10)
        found = np.array(
            [
                least_coverage(np.array(values), size, labels, bounds)
                for size in range(4, largest + 1)
                for labels in range(2, size)
            ]
        )
        named = ", ".join(f"{value:g}" for value in values)
        lines.append(f"| {named} | {len(found)} | {found.min():.4f} | {np.sum(found < REQUIRED)} |")
    return lines


HEADINGS = {
    "strata": "## Strata of 200 units, {0, ½, 1} and 1 to 5",
    "slices": "## Slices of a simple random sample",
    "stratified": "## Slices over five strata",
    "census": "## Every population of a few values, one stratum",
}


def section(name: str, options: argparse.Namespace) -> str:
    """Return a section of the page."""
    explanation = ""
    if name == "strata":
        lines = strata_lines(options.draws)
        explanation = f"One standard error of a coverage of .95 is {np.sqrt(0.0475 / options.draws):.4f}."
    elif name == "slices":
        lines = slice_lines(options.slice_draws)
        explanation = (
            f"One standard error of a coverage of .95 is {np.sqrt(0.0475 / options.slice_draws):.4f}."
        )
    elif name == "stratified":
        lines = stratified_slice_lines(options.stratified_draws)
        explanation = (
            "Strata of 6,000 units with 60 labels in all; the slice has units in each. Its labels fall into "
            "the strata by chance, and their number is that of the row. Width is over 3.92 root mean squared "
            "errors. One standard error of a coverage of .95 is "
            f"{np.sqrt(0.0475 / options.stratified_draws):.4f}."
        )
    else:
        lines = census_lines(options.most)
        explanation = "Coverage is exact."
    return "\n".join([HEADINGS[name], "", circumstances(), "", explanation, "", *lines]).strip() + "\n"


def stored_sections(page: Path) -> dict[str, str]:
    """Return the sections of a page by their headings."""
    if not page.exists():
        return {}
    parts = re.split(r"(?m)^(?=## )", page.read_text(encoding="utf-8"))
    return {part.partition("\n")[0]: part.strip() + "\n" for part in parts[1:]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--slice-draws", type=int, default=1000)
    parser.add_argument("--stratified-draws", type=int, default=400)
    parser.add_argument("--most", type=int, default=16)
    parser.add_argument("--only", nargs="*", choices=HEADINGS, help="the rest of the page stays")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    sections = stored_sections(options.output) if options.only else {}
    sections |= {HEADINGS[name]: section(name, options) for name in options.only or HEADINGS}
    lines = [
        "# Graded outcomes with few labels",
        "",
        "`python -m benchmarks.graded`, each section with `--only`",
        "",
        "Coverage of 95 % intervals by `auto`; width is the mean over 2 × 1.96 × the true standard error.",
        "",
        *(sections[heading] for heading in HEADINGS.values() if heading in sections),
    ]
    options.output.write_text("\n".join(lines).strip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
