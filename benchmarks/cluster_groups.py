"""Coverage and width for groups, metrics and means of few clusters.

    OMP_NUM_THREADS=1 python -m benchmarks.cluster_groups [--draws 400] [--more 4000] [--store FILE]

A group occurs in k = 2, 4, 10 or 30 of m = 40 or 80 drawn clusters (conversations, talks), in which every
unit is labelled. Clusters have 6 units each, or log-normal numbers of units (median 4, a few above 30). A
quarter of the variance of a right or wrong answer lies between clusters, three tenths of that of a number.
The design is a sample of whole clusters, or a table from elsewhere with weights and clusters. A row is one of

- "mean of the group": as `estimate(by=...)` gives it
- "difference": that mean minus the mean of all other units
- "recall of the group", "F1 of a class of the group" (a class that only the group has)
- "ratio of two means": of two numbers, both 0 outside of the group
- "mean": the mean of all units where only k clusters were drawn

Every estimate and interval is that of `stratal.estimate` with its defaults, at 95 %. Cells have a quarter of
the `--draws`, all of them if their coverage is below .985, and `--more` if it is below .955 then. "Width" is
the mean width over 3.92 root mean squared errors. The table shows the lowest coverage over designs and sizes.
A run that was stopped goes on from the finished settings in `--store`.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

import stratal
from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.designs.clusters import ClusterSample
from stratal.designs.external_weights import ExternalWeights
from stratal.designs.sample import Design, Sample
from stratal.estimands import F1, RatioOfMeans, Recall
from stratal.estimation.estimate import Estimate
from stratal.population.summary import StratumSummary
from stratal.question import Question

RESULTS = Path(__file__).resolve().parent / "results" / "cluster_groups.md"

GROUP_CLUSTERS = (2, 4, 10, 30)
DRAWN_CLUSTERS = (40, 80)
OUTCOMES = ("number", "right or wrong, .7", "right or wrong, .93")
DESIGNS = ("whole clusters", "weights")
SIZES = ("equal", "unequal")
MEAN = "mean"
GROUP_MEAN = "mean of the group"
DIFFERENCE = "difference"
RECALL = "recall of the group"
F1_SCORE = "F1 of a class of the group"
RATIO = "ratio of two means"
OF_BINARY = (GROUP_MEAN, DIFFERENCE, RECALL, F1_SCORE)
OF_NUMBERS = (GROUP_MEAN, DIFFERENCE, RATIO)
# Share of the variance that lies between clusters.
BETWEEN = {"right or wrong, .7": 0.25, "right or wrong, .93": 0.25, "number": 0.3}
RATES = {"right or wrong, .7": 0.7, "right or wrong, .93": 0.93}
# Mean of a number, whose variance is 1, and how fast the logarithm of its denominator grows with it.
NUMBER_MEAN = 10.0
DENOMINATOR_SLOPE = 0.3
# Rate of the class that metrics are of.
CLASS_RATE = 0.5
REQUIRED = 0.94
# Coverages after a quarter of the first draws, and after all of them, below which a cell has further draws.
NEARLY_ALL = 0.985
CERTAIN = 0.955
# Clusters of the population: many more than the drawn ones.
POPULATION_CLUSTERS = 1_000_000
# What each unit of a table with weights represents.
WEIGHT = 50.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What units are drawn from: k clusters of the group, among m drawn ones."""

    outcome: str
    group_clusters: int
    drawn_clusters: int
    design: str
    sizes: str

    @property
    def quantities(self) -> tuple[str, ...]:
        """What is estimated: the mean alone where every drawn cluster is of the group."""
        if self.group_clusters == self.drawn_clusters:
            return (MEAN,)
        return OF_NUMBERS if self.outcome == "number" else OF_BINARY


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draw:
    """Labelled units (n,) of m clusters; the first k clusters are the group."""

    cluster: IntArray
    member: BoolArray
    outcome: FloatArray
    true: IntArray
    predicted: IntArray
    denominator: FloatArray


def cluster_sizes(rng: np.random.Generator, sizes: str, clusters: int) -> IntArray:
    """Return the numbers of units of clusters (m,)."""
    if sizes == "equal":
        return np.full(clusters, 6)
    return np.ceil(rng.lognormal(1.4, 0.8, clusters)).astype(np.int64)


def draw(rng: np.random.Generator, setting: Setting) -> Draw:
    """Draw the units of m clusters, all from one distribution."""
    m = setting.drawn_clusters
    cluster = np.repeat(np.arange(m), cluster_sizes(rng, setting.sizes, m))
    n = len(cluster)
    between = BETWEEN[setting.outcome]
    numeric = setting.outcome == "number"
    if numeric:
        level = rng.normal(0.0, np.sqrt(between), m)[cluster]
        values = NUMBER_MEAN + level + rng.normal(0.0, np.sqrt(1.0 - between), n)
        denominator = np.exp(DENOMINATOR_SLOPE * values + 0.5 * rng.normal(size=n))
    else:
        level = rates(rng, RATES[setting.outcome], between, m)[cluster]
        values = (rng.random(n) < level).astype(np.float64)
        denominator = np.ones(n)
    true = (rng.random(n) < rates(rng, CLASS_RATE, 0.25, m)[cluster]).astype(np.int64)
    return Draw(
        cluster=cluster,
        member=cluster < setting.group_clusters,
        outcome=values,
        true=true,
        predicted=true if numeric else np.where(values > 0.5, true, 1 - true),
        denominator=denominator,
    )


def rates(rng: np.random.Generator, rate: float, between: float, m: int) -> FloatArray:
    """Return beta-distributed rates of clusters (m,) whose units have the correlation `between`."""
    scale = 1.0 / between - 1.0
    return rng.beta(rate * scale, (1.0 - rate) * scale, m)


@cache
def size_moments(sizes: str) -> tuple[float, float]:
    """Return the mean number of units of a cluster and its mean square."""
    counts = cluster_sizes(np.random.default_rng(1), sizes, POPULATION_CLUSTERS).astype(np.float64)
    return float(counts.mean()), float(np.mean(counts**2))


def sample_of(drawn: Draw, setting: Setting) -> Sample:
    """Return the drawn units as a sample of the setting's design."""
    n = len(drawn.cluster)
    m = setting.drawn_clusters
    if setting.design == "weights":
        design: Design = ExternalWeights(cluster="cluster")
        probability = 1.0 / WEIGHT
        size = round(WEIGHT * n)
    else:
        mean_size, mean_square = size_moments(setting.sizes)
        size = round(mean_size * POPULATION_CLUSTERS)
        design = ClusterSample(
            cluster="cluster",
            n_clusters=m,
            clusters=POPULATION_CLUSTERS,
            squared_sizes=round(mean_square * POPULATION_CLUSTERS),
        )
        probability = m / POPULATION_CLUSTERS
    class_names = np.array(["0", "1"])
    return Sample(
        ids=np.arange(n),
        stratum=np.zeros(n, dtype=np.int64),
        inclusion_probability=np.full(n, probability),
        proxies=np.zeros((n, 0)),
        proxy_info=(),
        summary=StratumSummary.without_proxies(np.array([size])),
        design=design,
        seed=0,
        groups={
            "cluster": np.char.mod("%d", np.arange(m))[drawn.cluster],
            "group": np.where(drawn.member, "group", "other"),
            "answer": class_names[drawn.predicted],
            "answer of the group": class_names[np.where(drawn.member, drawn.predicted, 0)],
        },
        question=Question(answer="answer"),
    )


def estimates(drawn: Draw, sample: Sample, quantities: set[str]) -> Iterator[tuple[str, Estimate]]:
    """Yield the estimates of these quantities, each with its name."""
    class_names = np.array(["0", "1"])
    if MEAN in quantities:
        yield MEAN, stratal.estimate(sample, drawn.outcome, predicted=False)
    if {GROUP_MEAN, DIFFERENCE} & quantities:
        groups = stratal.estimate(sample, drawn.outcome, by="group", predicted=False)
        if GROUP_MEAN in quantities:
            yield GROUP_MEAN, groups.of(domain="group")
        if DIFFERENCE in quantities:
            yield DIFFERENCE, groups.differences()[0]
    if RECALL in quantities:
        recalls = stratal.estimate(sample, class_names[drawn.true], estimand=Recall("1"), by="group")
        yield RECALL, recalls.of(domain="group")
    if F1_SCORE in quantities:
        labels = class_names[np.where(drawn.member, drawn.true, 0)]
        yield F1_SCORE, stratal.estimate(sample, labels, estimand=F1("1", predicted="answer of the group"))
    if RATIO in quantities:
        columns = {
            "numerator": drawn.outcome * drawn.denominator * drawn.member,
            "denominator": drawn.denominator * drawn.member,
        }
        yield RATIO, stratal.estimate(sample, columns, estimand=RatioOfMeans(["numerator", "denominator"]))


def true_value(outcome: str, quantity: str) -> float:
    """Return the value over all clusters."""
    if quantity == DIFFERENCE:
        return 0.0
    if outcome != "number":
        # The class makes up half of the truths and of the answers, so that its recall and F1 are the rate.
        return RATES[outcome]
    # Weights exp(b z) move the mean of a normal z of variance 1 by b.
    return NUMBER_MEAN + (DENOMINATOR_SLOPE if quantity == RATIO else 0.0)


@dataclass(slots=True)
class Tally:
    """Intervals of one quantity: how many there are, how many cover, their widths and squared errors."""

    intervals: int = 0
    covered: int = 0
    missing: int = 0
    width: float = 0.0
    square: float = 0.0

    @property
    def draws(self) -> int:
        """Draws, with an interval or without one."""
        return self.intervals + self.missing

    @property
    def coverage(self) -> float:
        """Share of intervals that hold the true value."""
        return self.covered / self.intervals if self.intervals else float("nan")

    @property
    def relative_width(self) -> float:
        """Mean width over 3.92 root mean squared errors."""
        if not self.intervals or self.square <= 0:
            return float("nan")
        return float(self.width / self.intervals / (3.92 * np.sqrt(self.square / self.intervals)))

    def add(self, estimate: Estimate, truth: float) -> None:
        """Count the interval of an estimate."""
        ends = estimate.limits()
        if ends is None or None in ends or not np.isfinite(estimate.value):
            self.missing += 1
            return
        low, high = (float(end) for end in ends if end is not None)
        self.intervals += 1
        self.covered += low - 1e-9 <= truth <= high + 1e-9
        self.width += high - low
        self.square += (estimate.value - truth) ** 2


def settings() -> Iterator[Setting]:
    """Yield all settings: groups of k among m clusters, and k clusters alone."""
    for outcome, k, design, sizes in product(OUTCOMES, GROUP_CLUSTERS, DESIGNS, SIZES):
        for m in (*DRAWN_CLUSTERS, k):
            yield Setting(outcome=outcome, group_clusters=k, drawn_clusters=m, design=design, sizes=sizes)


def measure(setting: Setting, draws: int, more: int) -> dict[str, Tally]:
    """Return the tally of every quantity of a setting."""
    parts = (setting.group_clusters, setting.drawn_clusters, setting.design, setting.sizes)
    text = f"{setting.outcome} {' '.join(map(str, parts))}"
    rng = np.random.default_rng([*map(ord, text)])
    tallies = {name: Tally() for name in setting.quantities}
    open_quantities = set(tallies)
    # Two clusters have no required coverage.
    required = setting.group_clusters > 2
    limits = {draws // 4: NEARLY_ALL, draws: CERTAIN} if required else {draws // 4: 0.0}
    for number in range(max(draws, more)):
        if number in limits and number > 0:
            open_quantities = {name for name in open_quantities if tallies[name].coverage < limits[number]}
        if not open_quantities:
            break
        drawn = draw(rng, setting)
        for name, estimate in estimates(drawn, sample_of(drawn, setting), open_quantities):
            tallies[name].add(estimate, true_value(setting.outcome, name))
    return tallies


Results = dict[tuple[Setting, str], Tally]


def stored_tallies(store: Path | None) -> dict[Setting, tuple[dict[str, Tally], float]]:
    """Return the tallies of the settings in a file of JSON lines, and the processor's seconds for them."""
    if store is None or not store.exists():
        return {}
    rows = [json.loads(line) for line in store.read_text().splitlines()]
    return {
        Setting(**row["setting"]): (
            {name: Tally(**tally) for name, tally in row["tallies"].items()},
            float(row["seconds"]),
        )
        for row in rows
    }


def page(results: Results, more: int, command: str, seconds: float) -> str:
    """Return the page of results."""
    text = [
        "# Groups in few clusters: coverage and width",
        "",
        f"`{command}` ({seconds:.0f} s of the processor)",
        "",
        "Intervals of `stratal.estimate` with its defaults at 95 %. The lowest coverage over 40 and 80 drawn "
        "clusters, both designs, and equal and unequal sizes of clusters (with the draws of that cell); the "
        "mean width of these cells over 3.92 root mean squared errors; the share of draws without an "
        f"interval. Cells of at least 4 clusters have further draws if their coverage is below {NEARLY_ALL} "
        f"after a quarter of the first draws, and {more} if it is below {CERTAIN} after all of them.",
        "",
        "| outcome | quantity | clusters | lowest coverage | cell | width | no interval |",
        "|---|---|---|---|---|---|---|",
    ]
    rows: dict[tuple[str, str, int], list[tuple[Setting, Tally]]] = {}
    for (setting, name), tally in results.items():
        rows.setdefault((setting.outcome, name, setting.group_clusters), []).append((setting, tally))
    for (outcome, name, k), entries in rows.items():
        setting, lowest = min(entries, key=lambda entry: entry[1].coverage)
        width = float(np.mean([tally.relative_width for _, tally in entries]))
        missing = sum(tally.missing for _, tally in entries) / sum(tally.draws for _, tally in entries)
        text.append(
            f"| {outcome} | {name} | {k} | {lowest.coverage:.4f} ({lowest.draws}) "
            f"| {setting.drawn_clusters}, {setting.design}, {setting.sizes} | {width:.2f} | {missing:.1%} |"
        )
    required = [tally.coverage for (setting, _), tally in results.items() if setting.group_clusters >= 4]
    below = sum(coverage < REQUIRED for coverage in required)
    measured = len({setting for setting, _ in results})
    missing_settings = len(list(settings())) - measured
    if missing_settings:
        text += ["", f"{missing_settings} of {missing_settings + measured} settings are not measured yet."]
    text += [
        "",
        f"Lowest coverage with at least 4 clusters: {min(required, default=float('nan')):.4f}; "
        f"cells below {REQUIRED}: {below} of {len(required)}. The standard error of a coverage of .95 is "
        f"{np.sqrt(0.95 * 0.05 / max(more, 1)):.4f} with {more} draws.",
        "",
        "With 2 clusters there is one degree of freedom. For tables with weights the interval is then R's, "
        "whose variance is too small by almost half: it covers .93 for equal clusters, less for others.",
    ]
    return "\n".join(text) + "\n"


def main() -> None:
    """Run the benchmark and write its page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--more", type=int, default=4000)
    parser.add_argument("--store", type=Path, help="file of finished settings")
    parser.add_argument("--stored-only", action="store_true", help="measure no further settings")
    parser.add_argument("--output", type=Path, default=RESULTS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    command = f"python -m benchmarks.cluster_groups --draws {args.draws} --more {args.more}"
    command += " --store FILE" if args.store else ""
    results: Results = {}
    total = 0.0
    stored = stored_tallies(args.store)
    for setting in settings():
        start = time.process_time()
        if setting in stored:
            tallies, seconds = stored[setting]
        elif args.stored_only:
            continue
        else:
            tallies = measure(setting, args.draws, args.more)
            seconds = time.process_time() - start
        total += seconds
        results |= {(setting, name): tally for name, tally in tallies.items()}
        coverages = ", ".join(
            f"{name} {tally.coverage:.4f} ({tally.draws}) {tally.relative_width:.2f}"
            for name, tally in tallies.items()
        )
        print(f"{setting}: {coverages}", flush=True)
        if args.store is not None and setting not in stored:
            row = {
                "setting": asdict(setting),
                "tallies": {name: asdict(tally) for name, tally in tallies.items()},
                "seconds": seconds,
            }
            with args.store.open("a") as file:
                file.write(json.dumps(row) + "\n")
        args.output.write_text(page(results, args.more, command, total))


if __name__ == "__main__":
    main()
