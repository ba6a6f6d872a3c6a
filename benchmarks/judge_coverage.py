"""How often the intervals of a judge's estimands hold the truth: kappa, agreement, correlations, calibration.

    python benchmarks/judge_coverage.py [--replicates R] [--only NAME,…] [--designs NAME,…] [--below C]
    python benchmarks/judge_coverage.py --errors [--replicates R]

Populations of 20,000 units. Verdicts: the share of failures is .02 to .5, the judge says what people say with
probability .6 to .99 on either side, or says anything, so that kappa is near 0. Scores: normal pairs, five
levels, and a probability that lies. Samples are simple random, stratified by the verdict with as many of
each, and stratified by a score that knows nothing, with unequal shares; for kappa and Pearson's correlation
also clusters of five similar units, and two rounds by the verdict, the second by Neyman's rule for what the
first showed. Writes results/judge_coverage.md; with --only, --designs or --below (cells that covered less)
other rows stay as they are. The second table (alone with --errors) has correlations from 100 labels that are
the score plus an error, normal or with heavy tails, for several counts of the pseudo-labels.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from stratal.designs import StratifiedWeighting, Weighting
from stratal.designs.clusters import ClusterWeighting
from stratal.estimation import linearised
from stratal.estimation.estimate import Estimate
from stratal.metrics import associations
from stratal.metrics.calibration_error import calibration_error
from stratal.metrics.confusion import Confusion

SIZE = 20_000
OUT = Path(__file__).parent / "results" / "judge_coverage.md"

Estimator = Callable[[np.ndarray, np.ndarray, Weighting], Estimate]

DESIGNS = ("simple", "by judge", "by noise")
MORE_DESIGNS = ("clustered", "two rounds")
"""Of kappa and Pearson's correlation alone."""

CLUSTER = 5

DEGREES_OF_FREEDOM = {"t, 5 df": 5, "t, 3 df": 3}

ERRORS = ("normal", *DEGREES_OF_FREEDOM)

POPULATIONS = 10

CORRELATIONS = (0.6, 0.96)

LABELS_WITH_ERRORS = 100

PSEUDO_LABELS = {
    "full count": (np.inf, 1.0),
    "power 1": (8.0, 1.0),
    "power 1.5": (8.0, 1.5),
    "power 2": (8.0, 2.0),
}
"""Degrees of freedom at which pseudo-labels count half, and the power by which they count less beyond."""


def verdicts(rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield populations of people's verdicts and a judge's."""
    for prevalence in (0.02, 0.1, 0.5):
        truth = (rng.random(SIZE) < prevalence).astype(np.int64)
        for rate in (0.6, 0.9, 0.99):
            judge = np.where(rng.random(SIZE) < rate, truth, 1 - truth)
            yield f"{prevalence:g} failures, right {rate:g}", truth, judge
        judge = (rng.random(SIZE) < prevalence).astype(np.int64)
        yield f"{prevalence:g} failures, anything", truth, judge
    truth = rng.choice(3, SIZE, p=[0.7, 0.2, 0.1])
    for rate in (0.0, 0.7, 0.98):
        other = rng.choice(3, SIZE, p=[0.6, 0.2, 0.2])
        yield f"3 classes, right {rate:g}", truth, np.where(rng.random(SIZE) < rate, truth, other)


def levels(rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield populations of people's scores and a judge's."""
    base = rng.normal(size=SIZE)
    for rho in (0.0, 0.6, 0.95):
        other = rho * base + np.sqrt(1.0 - rho**2) * rng.normal(size=SIZE)
        yield f"normal, {rho:g}", base, other
        cut = [np.digitize(part, [-1.5, -0.5, 0.5, 1.5]) + 1.0 for part in (base, other)]
        yield f"1 to 5, {rho:g}", cut[0], cut[1]
    rare = (rng.random(SIZE) < 0.05).astype(np.float64)
    yield "5% failures, score right", rare, np.clip(0.3 * rare + 0.2 * rng.random(SIZE), 0.0, 1.0)
    yield "5% failures, score lies", rare, rng.random(SIZE)
    same = np.where(rng.random(SIZE) < 0.99, cut[0], cut[0] % 5 + 1)
    yield "1 to 5, 99% equal", cut[0], same


def chances(rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield populations of outcomes and probabilities."""
    chance = rng.beta(4.0, 1.0, SIZE)
    yield "calibrated", (rng.random(SIZE) < chance).astype(np.float64), chance
    yield "too sure", (rng.random(SIZE) < 0.5 + 0.4 * chance).astype(np.float64), chance
    yield "inverted", (rng.random(SIZE) < 1.0 - chance).astype(np.float64), chance


def drawn(
    design: str, truth: np.ndarray, judge: np.ndarray, noise: np.ndarray, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, Weighting]:
    """Return the drawn units and their weighting."""
    if design == "clustered":
        # Units are grouped by the judge within blocks of the noise's order, so that clusters are alike.
        order = np.lexsort((judge, np.argsort(np.argsort(noise)) // 50)).reshape(-1, CLUSTER)
        chosen = rng.choice(len(order), n // CLUSTER, replace=False)
        cluster = np.repeat(np.arange(len(chosen)), CLUSTER)
        same = np.full(len(chosen), CLUSTER)
        return order[chosen].ravel(), ClusterWeighting(
            cluster=cluster, drawn=same, clusters=len(order), size=SIZE, squared_sizes=CLUSTER * SIZE
        )
    if design == "two rounds":
        stratum = (judge > np.median(judge)).astype(np.int64)
        if stratum.sum() == 0 or len(np.unique(judge)) == 2:
            stratum = (judge == judge.max()).astype(np.int64)
        sizes = np.bincount(stratum, minlength=2)
        orders = [rng.permutation(np.flatnonzero(stratum == h)) for h in range(2)]
        pilot = np.minimum(n // 4, sizes)
        wrong = np.array(
            [
                (np.abs(truth - judge)[order[:k]].sum() + 1) / (k + 2)
                for order, k in zip(orders, pilot, strict=True)
            ]
        )
        scale = sizes * np.sqrt(np.clip(wrong * (1 - wrong), 0.01, None))
        n_h = np.clip(np.round(n * scale / scale.sum()).astype(int), pilot, sizes)
        weighting = StratifiedWeighting(
            stratum=np.repeat(np.arange(2), n_h), sizes=sizes, has_adaptive_allocation=True
        )
        return np.concatenate([order[:k] for order, k in zip(orders, n_h, strict=True)]), weighting
    if design == "simple":
        stratum = np.zeros(SIZE, np.int64)
        n_h = np.array([n])
    elif design == "by judge":
        stratum = (judge > np.median(judge)).astype(np.int64)
        if stratum.sum() == 0 or len(np.unique(judge)) == 2:
            stratum = (judge == judge.max()).astype(np.int64)
        n_h = np.minimum([n // 2, n - n // 2], np.bincount(stratum, minlength=2))
    else:
        stratum = np.digitize(noise, [0.5, 0.8, 0.95])
        n_h = np.array([n // 10, n // 5, n // 5, n - n // 10 - 2 * (n // 5)])
    units = [rng.choice(np.flatnonzero(stratum == h), k, replace=False) for h, k in enumerate(n_h.tolist())]
    sizes = np.bincount(stratum, minlength=len(n_h))
    weighting = StratifiedWeighting(stratum=np.repeat(np.arange(len(n_h)), n_h), sizes=sizes)
    return np.concatenate(units), weighting


def of_classes(name: str, which: int | None, classes: int) -> Estimator:
    """Return the estimator of a metric of verdicts."""

    def estimate(truth: np.ndarray, judge: np.ndarray, weighting: Weighting) -> Estimate:
        found = Confusion(true=truth, predicted=judge, n_classes=classes, weighting=weighting)
        return found.metric(name, which)

    return estimate


def of_scores(statistic: associations.AssociationStatistic) -> Estimator:
    """Return the estimator of an association."""
    return lambda truth, judge, weighting: associations.association(statistic, judge, truth, weighting)


def error_of(truth: np.ndarray, judge: np.ndarray, weighting: Weighting) -> Estimate:
    """Return the calibration error."""
    return calibration_error(judge, truth, weighting)


def cells() -> Iterator[tuple[str, str, Estimator, np.ndarray, np.ndarray]]:
    """Yield estimand, population, estimator and columns."""
    rng = np.random.default_rng(20_261_121)
    for name, truth, judge in verdicts(rng):
        classes = int(truth.max()) + 1
        yield "kappa", name, of_classes("kappa", None, classes), truth, judge
        if classes == 2 and "0.9" in name:  # recall and specificity are in metrics_coverage.py
            yield "false_discovery_rate", name, of_classes("false_discovery_rate", 1, 2), truth, judge
    kinds = {
        "pearson": associations.pearson,
        "spearman": associations.spearman,
        "icc": associations.intraclass,
    }
    for name, truth, judge in levels(rng):
        for kind, statistic in kinds.items():
            yield kind, name, of_scores(statistic), truth, judge
    for name, truth, judge in chances(rng):
        yield "calibration_error", name, error_of, truth, judge


@dataclass(frozen=True)
class Draw:
    """Labels and scores of a sample, and its population for the true value."""

    truth: np.ndarray
    judge: np.ndarray
    units: np.ndarray
    weighting: Weighting


def draws_with_errors(
    errors: str, rho: float, design: str, replicates: int, rng: np.random.Generator
) -> Iterator[Draw]:
    """Yield samples of populations whose labels are a normal score plus an error.

    There are several populations, because a few extreme labels determine the correlation of one.
    """
    noise = rng.random(SIZE)
    for _ in range(POPULATIONS):
        judge = rng.normal(size=SIZE)
        error = rng.normal(size=SIZE)
        if errors != "normal":
            error = rng.standard_t(DEGREES_OF_FREEDOM[errors], SIZE)
        truth = rho * judge + np.sqrt(1.0 - rho**2) * error / error.std()
        for _ in range(replicates // POPULATIONS):
            units, weighting = drawn(design, truth, judge, noise, LABELS_WITH_ERRORS, rng)
            yield Draw(truth, judge, units, weighting)


def rows_of_errors(replicates: int) -> Iterator[str]:
    """Yield the rows of the table of normal and heavy-tailed errors; all settings have the same samples."""
    rng = np.random.default_rng(20_261_129)
    used = (linearised._HALF_COUNT_DF, linearised._DF_POWER)
    for errors, rho, design in product(ERRORS, CORRELATIONS, ("simple", "by judge", "two rounds")):
        draws = list(draws_with_errors(errors, rho, design, replicates, rng))
        for count, setting in PSEUDO_LABELS.items():
            linearised._HALF_COUNT_DF, linearised._DF_POWER = setting
            cells = []
            for statistic in (associations.pearson, associations.spearman):
                coverage, width = coverage_and_width(statistic, draws)
                cells += [f"{coverage:.3f}", f"{width:.2f}"]
            yield f"| {errors} | {rho:g} | {design} | {count} | {' | '.join(cells)} | {len(draws)} |"
    linearised._HALF_COUNT_DF, linearised._DF_POWER = used


def coverage_and_width(
    statistic: associations.AssociationStatistic, draws: list[Draw]
) -> tuple[float, float]:
    """Return the coverage, and the mean width over the width that the estimate's error needs."""
    equal = np.full(SIZE, 1.0 / SIZE)
    each = len(draws) // POPULATIONS
    true = np.repeat([statistic(draw.judge, draw.truth, equal)[0] for draw in draws[::each]], each)
    estimates = [
        associations.association(statistic, draw.judge[draw.units], draw.truth[draw.units], draw.weighting)
        for draw in draws
    ]
    limits = np.array([tuple(estimate.confidence_interval()) for estimate in estimates])
    covered = (limits[:, 0] <= true) & (true <= limits[:, 1])
    errors = np.array([estimate.value for estimate in estimates]) - true
    needed = 2.0 * 1.96 * np.sqrt(np.mean(errors**2))
    return float(np.mean(covered)), float(np.mean(limits[:, 1] - limits[:, 0]) / needed)


def lines_of_errors(replicates: int) -> list[str]:
    """Return the section on normal and heavy-tailed errors."""
    lines = [
        "",
        HEADING_OF_ERRORS,
        "",
        f"Intervals from {LABELS_WITH_ERRORS} labels, by `python benchmarks/judge_coverage.py --errors`. A "
        "label is the score plus an error; the samples are those of ten populations. Width is the mean width "
        "over the width that normal errors as large as the estimate's need. Pseudo-labels count less, the "
        "better the labels show the variance; the package uses the power 1.5.",
        "",
        "| errors | correlation | design | pseudo-labels | coverage, Pearson | width, Pearson "
        "| coverage, Spearman | width, Spearman | samples |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows_of_errors(replicates):
        print(row, flush=True)
        lines.append(row)
    return lines


HEADING_OF_ERRORS = "## Close judges and errors with heavy tails"


def stored_lines() -> tuple[list[str], list[str]]:
    """Return the rows of the first table of the page, and the section on errors."""
    if not OUT.exists():
        return [], []
    lines = OUT.read_text(encoding="utf-8").splitlines()
    end = lines.index(HEADING_OF_ERRORS) - 1 if HEADING_OF_ERRORS in lines else len(lines)
    return lines[6:end], lines[end:]


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=1_000)
    parser.add_argument("--only", default="", help="of estimands whose name begins so")
    parser.add_argument("--designs", default="", help="of these designs")
    parser.add_argument("--below", type=float, default=2.0, help="cells that covered less than this")
    parser.add_argument("--errors", action="store_true", help="the second table alone")
    asked = parser.parse_args()
    replicates = asked.replicates
    rows, section = stored_lines()
    if asked.errors:
        head = OUT.read_text(encoding="utf-8").splitlines()[:6]
        OUT.write_text("\n".join([*head, *rows, *lines_of_errors(replicates)]) + "\n", encoding="utf-8")
        return
    lines = [
        "# Coverage of the intervals of a judge's estimands",
        "",
        "95 % intervals, by `python benchmarks/judge_coverage.py`; the standard error of a coverage of .95 "
        "is 0.015 of 200 samples, 0.007 of 1,000. Cells that covered less than .95 in 200 were repeated.",
        "",
        "| estimand | population | truth | design | labels | coverage | mean width | samples |",
        "|---|---|---|---|---|---|---|---|",
    ]
    rng = np.random.default_rng(7)
    noise = rng.random(SIZE)
    known = {}
    for row in rows:
        parts = [part.strip() for part in row.strip("|").split("|")]
        known[parts[0], parts[1], parts[3], parts[4]] = (float(parts[5]), row)
    for kind, name, estimator, truth, judge in cells():
        if not kind.startswith(tuple(asked.only.split(","))):
            continue
        census = StratifiedWeighting(stratum=np.zeros(SIZE, np.int64), sizes=np.array([SIZE]))
        true = true_value(kind, estimator, truth, judge, census)
        for design in (*DESIGNS, *(MORE_DESIGNS if kind in ("kappa", "pearson") else ())):
            for n in (60, 200):
                key = (kind, name, design, str(n))
                before = known.get(key, (0.0, ""))[0]
                if (asked.designs and design not in asked.designs.split(",")) or before >= asked.below:
                    continue
                held, widths = 0, []
                for _ in range(replicates):
                    units, weighting = drawn(design, truth, judge, noise, n, rng)
                    found = estimator(truth[units], judge[units], weighting)
                    low, high = found.confidence_interval()
                    held += low - 1e-9 <= true <= high + 1e-9
                    widths.append(high - low)
                row = (
                    f"| {kind} | {name} | {true:.3f} | {design} | {n} | {held / replicates:.3f} | "
                    f"{np.mean(widths):.3f} | {replicates} |"
                )
                known[key] = (held / replicates, row)
                print(row, flush=True)
                OUT.write_text(
                    "\n".join([*lines, *(row for _, row in known.values()), *section]) + "\n",
                    encoding="utf-8",
                )
    if not (asked.only or asked.designs):
        text = OUT.read_text(encoding="utf-8").splitlines()
        page = [*text[: len(text) - len(section)], *lines_of_errors(replicates)]
        OUT.write_text("\n".join(page) + "\n", encoding="utf-8")


def true_value(
    kind: str, estimator: Estimator, truth: np.ndarray, judge: np.ndarray, census: StratifiedWeighting
) -> float:
    """Return the population's value."""
    statistics = {
        "pearson": associations.pearson,
        "spearman": associations.spearman,
        "icc": associations.intraclass,
    }
    if kind in statistics:
        return statistics[kind](judge, truth, np.full(SIZE, 1.0 / SIZE))[0]
    return estimator(truth, judge, census).value


if __name__ == "__main__":
    main()
