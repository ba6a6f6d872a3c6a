"""Adaptive rounds: bias, coverage and efficiency of the default and of the papers' literal rules.

Part 1 draws pilots and second rounds from real predictions with known labels. Bias is in standard errors of
the estimate, coverage that of the default 95 % interval, efficiency Var(oracle Neyman) / Var at the n_h that
came out. Part 2 is Kumar & Raj's comparison of OPT-A1 and OPT-A2 on a simulated population with the size and
accuracy of their epsilon set: the ratio of mean *estimated* variances that they report, and beside it the
ratio of true mean squared errors.

    OMP_NUM_THREADS=1 python -m benchmarks.adaptive [--data DIR] [--replicates 2000] [--output FILE]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.helpers import BINARY, DATA, circumstances, load
from benchmarks.rounds import Pool, rounds

from stratal.arrays import FloatArray, IntArray
from stratal.planning.interim_widths import interval_of_counts
from stratal.population import Population
from stratal.simulation.draws import BinaryDraws, Truth
from stratal.strata import CutPoints, Strata, equal, neyman, proportional, stratify

OUTPUT = Path(__file__).resolve().parent / "results" / "adaptive.md"
BUDGETS = (50, 100, 200, 400)
COMPARED = (150, 300)
STEP = 20
OTHERS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One way to run the rounds."""

    name: str
    pilot: str = "proportional"
    deviations: str = "recalibrated"
    steps: bool = False


RULES = (
    Rule(name="default, two rounds"),
    Rule(name="default, steps of 20", steps=True),
    Rule(name="raw S_h", deviations="raw"),
    Rule(name="raw S_h, equal pilot", deviations="raw", pilot="equal"),
    Rule(name="OPT-A1 as printed", deviations="printed", pilot="equal"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(Pool):
    """A population of outcomes 0 and 1 in strata."""

    name: str

    @property
    def deviations(self) -> FloatArray:
        """The true S_h (H,)."""
        return np.sqrt(self.truth.variances)

    def variance(self, n_h: IntArray) -> FloatArray:
        """Return the variance of the stratified mean at n_h (H,), or at each row (R, H)."""
        weights, truth = self.truth.weights, self.truth
        return np.asarray((weights**2 * (1 - n_h / self.sizes) * truth.variances / n_h).sum(axis=-1))


def cases(directory: Path, method: str) -> Iterator[Case]:
    """Yield each binary data set in ten strata."""
    for name in BINARY:
        z, proxy = load(name, directory)
        strata = stratify(Population.from_arrays(proxy=proxy), method, 10)
        yield Case(
            name=name, strata=strata, truth=Truth.of(z, None, np.asarray(strata.codes), strata.n_strata)
        )


def run(
    case: Case, budget: int, pilot: IntArray, rule: Rule, step: int, replicates: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Return n_h and labels that are 1 (R, H)."""
    draws = BinaryDraws(case.truth, replicates, rng)
    counts = rounds(case, draws, pilot, budget, step, rule.deviations)
    sums = draws.sums(counts)
    right = np.rint(sums.z + case.truth.centre * sums.counts).astype(np.int64)
    return np.broadcast_to(counts, right.shape), right


def pilot_of(case: Case, size: int, kind: str) -> IntArray:
    return (equal if kind == "equal" else proportional)(case.sizes, size)


def covered(case: Case, counts: IntArray, right: IntArray) -> float:
    """Return the share of default intervals that hold the truth."""
    low, high = interval_of_counts(case.sizes, counts, right, 0.95, label_based=True)
    return float(np.mean((low <= case.truth.value) & (case.truth.value <= high)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one rule did on one data set at one budget."""

    case: str
    budget: int
    bias: float
    error: float
    coverage: float
    efficiency: float


def measure(case: Case, budget: int, rule: Rule, replicates: int, intervals: int) -> Result:
    rng = np.random.default_rng([budget, BINARY.index(case.name)])
    size = 5 * len(case.sizes) if rule.steps and budget > 50 else max(budget // 2, 2 * len(case.sizes))
    step = STEP if rule.steps else budget
    counts, right = run(case, budget, pilot_of(case, size, rule.pilot), rule, step, replicates, rng)
    estimates = (right / counts) @ case.truth.weights
    oracle = case.variance(neyman(case.sizes, case.deviations, budget))
    checked = intervals if rule.deviations == "recalibrated" else intervals // OTHERS
    return Result(
        case=case.name,
        budget=budget,
        bias=float((estimates.mean() - case.truth.value) / estimates.std()),
        error=1 / np.sqrt(replicates),
        coverage=covered(case, counts[:checked], right[:checked]),
        efficiency=float(oracle / case.variance(counts).mean()),
    )


# ---- Kumar & Raj's comparison


def like_epsilon() -> Case:
    """Return 450,000 units in six strata of equal size, 88 % of them right, as in the paper's section 4."""
    size, rates = 75_000, np.array([0.65, 0.80, 0.90, 0.95, 0.98, 0.992])
    strata = Strata(
        rule=CutPoints(column="score", cuts=np.arange(1.0, 6.0)),
        names=tuple(f"score {h}" for h in range(6)),
        sizes=np.full(6, size),
        proxy_means=rates,
        proxy_variances=np.zeros(6),
        conditional_variances=rates * (1 - rates),
    )
    z = np.concatenate([np.arange(size) < np.rint(size * rate) for rate in rates]).astype(np.float64)
    return Case(name="like epsilon", strata=strata, truth=Truth.of(z, None, np.repeat(np.arange(6), size), 6))


def ratios(
    case: Case, budget: int, initial: int, rule: Rule, step: int, replicates: int
) -> tuple[float, float]:
    """Return the ratio of mean estimated variances, and that of mean squared errors, to simple random's."""
    rng = np.random.default_rng([budget, initial, step])
    pilot = pilot_of(case, initial * len(case.sizes), rule.pilot)
    counts, right = run(case, budget, pilot, rule, step, replicates, rng)
    truth, weights, rates = case.truth, case.truth.weights, right / counts
    estimated = (weights**2 * rates * (1 - rates) / (counts - 1)).sum(axis=1).mean()
    error = ((rates @ weights - truth.value) ** 2).mean()
    good = int(truth.successes.sum())
    random = rng.hypergeometric(good, truth.size - good, budget, replicates)
    share = random / budget
    estimated_random = (share * (1 - share) / (budget - 1)).mean()
    true_random = truth.value * (1 - truth.value) / budget
    return float(estimated / estimated_random), float(error / true_random)


def comparison(replicates: int) -> Iterator[str]:
    """Yield the table of part 2."""
    case = like_epsilon()
    yield "| rule | n | n_ini | OPT-A1 | OPT-A2, step 10 | OPT-A2, step 20 |"
    yield "|---|---|---|---|---|---|"
    for rule in (RULES[-1], RULES[0]):
        for budget in COMPARED:
            for initial in (5, 10, 20):
                found = [ratios(case, budget, initial, rule, step, replicates) for step in (budget, 10, 20)]
                cells = " | ".join(f"{estimated:.3f}, {true:.3f}" for estimated, true in found)
                name = "as printed" if rule.deviations == "printed" else "default"
                yield f"| {name} | {budget} | {initial} | {cells} |"
    value, s = case.truth.value, case.deviations
    best = (case.truth.weights @ s) ** 2 / (value * (1 - value))
    yield ""
    yield f"Each cell: ratio of mean estimated variances, ratio of true MSE. With known S_h: {best:.3f}."


def report(every: list[Case], replicates: int, intervals: int) -> Iterator[str]:
    """Yield the lines of the result file."""
    found = {
        rule.name: [measure(case, n, rule, replicates, intervals) for case in every for n in BUDGETS]
        for rule in RULES
    }
    yield "| rule | worst bias, standard errors | mean size | coverage, mean | lowest | efficiency, mean |"
    yield "|---|---|---|---|---|---|"
    for name, results in found.items():
        biases = np.array([result.bias for result in results])
        covers = np.array([result.coverage for result in results])
        gains = np.array([result.efficiency for result in results])
        worst = biases[np.abs(biases).argmax()]
        cells = [f"{worst:+.2f}", f"{np.abs(biases).mean():.2f}"]
        cells += [f"{value:.3f}" for value in (covers.mean(), covers.min(), gains.mean())]
        yield f"| {name} | " + " | ".join(cells) + " |"
    yield ""
    of_bias, of_coverage = 1 / np.sqrt(replicates), np.sqrt(0.05 * 0.95 / intervals)
    yield (
        f"Monte Carlo error: {of_bias:.2f} of a bias, {of_coverage:.3f} of a cell's coverage "
        f"({of_coverage * np.sqrt(OTHERS):.3f} for the rules with raw S_h)."
    )
    yield ""
    yield "| data | n | " + " | ".join(f"{name}: bias, coverage" for name in found) + " |"
    yield "|---|---|" + "---|" * len(found)
    for row in zip(*found.values(), strict=True):
        joined = " | ".join(f"{result.bias:+.2f}, {result.coverage:.3f}" for result in row)
        yield f"| {row[0].case} | {row[0].budget} | {joined} |"


def steps(every: list[Case], replicates: int) -> Iterator[str]:
    """Yield the coverage of the default in steps of 20 labels."""
    yield "| data | n | bias, standard errors | coverage |"
    yield "|---|---|---|---|"
    for case in every:
        for budget in BUDGETS[1:]:
            found = measure(case, budget, RULES[1], replicates, replicates)
            yield f"| {case.name} | {budget} | {found.bias:+.2f} | {found.coverage:.3f} |"


def main() -> None:
    """Run both parts and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--intervals", type=int, default=1000)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--steps", metavar="NAME,…", help="steps of 20 labels alone, on these files")
    options = parser.parse_args()
    if options.steps:
        some = [case for case in cases(options.data, "k-means") if case.name in options.steps.split(",")]
        command = f"python -m benchmarks.adaptive --steps {options.steps} --replicates {options.replicates}"
        found = list(steps(some, options.replicates))
        lines = ["# Steps of 20 labels", "", f"`{command}`, {circumstances()}", "", *found]
        options.output.with_name("adaptive_steps.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return
    lines = [
        "## Real predictions, ten exact k-means strata, half the budget in the pilot",
        "",
        *report(list(cases(options.data, "k-means")), options.replicates, options.intervals),
        "",
        "## OPT-A1 and OPT-A2, a population like epsilon, six strata of equal size",
        "",
        *comparison(options.replicates),
    ]
    options.output.parent.mkdir(exist_ok=True)
    told = f"--replicates {options.replicates} --intervals {options.intervals}"
    head = ["# Adaptive rounds", "", f"`python -m benchmarks.adaptive {told}`, {circumstances()}", ""]
    options.output.write_text("\n".join([*head, *lines]) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
