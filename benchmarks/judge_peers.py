"""Kappa and the share of failures on labels that a judge's verdict chose, beside cje-eval and judgegate.

    python benchmarks/judge_peers.py --peers SITE-PACKAGES [--replicates R]

On four files of real judgements (`shared/data`): FRANK (QAGS against people), NQ301 (GPT-4), PandaLM
(GPT-3.5, three classes) and GSM8K (agreement with weak models as the judge of an answer). Half of 200 labels
are of units that the judge calls failures. The peers are given the same labels: judgegate 0.1.0
(`kappa_interval`, BCa bootstrap) and cje-eval 0.9.3 (`calibrated_mean_ci`; PandaLM has no share of failures).
Then the labels for kappa ± .1, planned for kappa and at random. Writes results/judge_peers.md.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import stratal
from stratal.designs import SimpleRandom, StratifiedWeighting
from stratal.metrics.confusion import Confusion

DATA = Path(__file__).parents[2] / "shared" / "data"
OUT = Path(__file__).parent / "results" / "judge_peers.md"
LABELS = 200

File = tuple[str, np.ndarray, np.ndarray, np.ndarray]


def files() -> Iterator[File]:
    """Yield name, people's classes, the judge's, and the chance that it is right, as scores say."""
    frank = pd.read_parquet(DATA / "frank_factuality.parquet")
    qags = frank["proxy"].to_numpy(float)
    yield "FRANK", _words(frank["z"].to_numpy(float)), _words(qags), 0.5 + np.abs(qags - 0.5)
    nq = pd.read_parquet(DATA / "nq301_llmjudge.parquet")
    bem, verdict = nq["bem"].to_numpy(float), _words(nq["proxy"].to_numpy(float))
    yield "NQ301", _words(nq["z"].to_numpy(float)), verdict, np.where(verdict == "pass", bem, 1.0 - bem)
    panda = pd.read_parquet(DATA / "pandalm_pairwise.parquet")
    names = np.array(["loss", "tie", "win"])
    people, gpt, other = (
        names[np.round(2 * panda[column].to_numpy(float)).astype(int)]
        for column in ("z", "gpt35", "pandalm7b")
    )
    yield "PandaLM", people, gpt, np.where(gpt == other, 0.8, 0.5)
    gsm = pd.read_parquet(DATA / "gsm8k_models.parquet")
    share = gsm["proxy"].to_numpy(float)
    yield "GSM8K", _words(gsm["z"].to_numpy(float)), _words(share), 0.5 + np.abs(share - 0.5)


def _words(numbers: np.ndarray) -> np.ndarray:
    return np.where(numbers >= 0.5, "pass", "fail")


def population_of(judge: np.ndarray, right: np.ndarray) -> Any:
    """Return the population of a file."""
    return stratal.Population.from_arrays(proxy={"right": right}, groups={"judge": judge}, predicted="judge")


def census_kappa(people: np.ndarray, judge: np.ndarray) -> float:
    """Return kappa of all units."""
    names = np.unique(np.concatenate([people, judge]))
    weighting = StratifiedWeighting(stratum=np.zeros(len(people), int), sizes=np.array([len(people)]))
    codes = (np.searchsorted(names, column) for column in (people, judge))
    true, predicted = codes
    whole = Confusion(true=true, predicted=predicted, n_classes=len(names), weighting=weighting)
    return whole.metric("kappa").value


class Tally:
    """How often intervals hold the truth, how wide they are, and the mean value."""

    def __init__(self, truth: float) -> None:
        self.truth, self.held = truth, 0
        self.widths: list[float] = []
        self.values: list[float] = []

    def add(self, value: float, low: float, high: float) -> None:
        """Count one interval."""
        self.held += low - 1e-9 <= self.truth <= high + 1e-9
        self.widths.append(high - low)
        self.values.append(value)

    def row(self, *names: str) -> str:
        """Return a row of the table."""
        n = len(self.values)
        return (
            f"| {' | '.join(names)} | {self.truth:.3f} | {np.mean(self.values):.3f} | {self.held / n:.3f} | "
            f"{np.mean(self.widths):.3f} | {n} |"
        )


def compare(
    entry: File, replicates: int, kappa_interval: Callable[..., Any], mean_ci: Callable[..., Any]
) -> list[str]:
    """Return the rows of one file."""
    name, people, judge, _ = entry
    population = stratal.Population.from_arrays(groups={"judge": judge}, predicted="judge")
    classes = np.unique(np.concatenate([people, judge]))
    two = len(classes) == 2
    true_kappa, true_share = census_kappa(people, judge), float(np.mean(people == "fail"))
    tallies = {("kappa", "stratal"): Tally(true_kappa), ("kappa", "judgegate"): Tally(true_kappa)}
    if two:
        tallies |= {("failures", who): Tally(true_share) for who in ("stratal", "cje-eval")}
    for seed in range(replicates):
        sample = stratal.plan(population, LABELS, by="judge", allocation="equal").draw(seed=seed)
        labels, verdicts = people[sample.ids], judge[sample.ids]
        kappa = stratal.estimate(sample, labels, estimand="kappa:judge")
        tallies["kappa", "stratal"].add(kappa.value, *kappa.confidence_interval())
        matrix = (
            pd.crosstab(labels, verdicts).reindex(index=classes, columns=classes, fill_value=0).to_numpy()
        )
        peer = kappa_interval(matrix, seed=seed, resamples=2_000)
        share = matrix / matrix.sum()
        chance = float(share.sum(0) @ share.sum(1))
        value = (float(np.trace(share)) - chance) / (1.0 - chance)
        tallies["kappa", "judgegate"].add(value, peer.low, peer.high)
        if two:
            failing = stratal.estimate(sample, (labels == "fail").astype(float))
            tallies["failures", "stratal"].add(failing.value, *failing.confidence_interval())
            known = np.full(len(people), np.nan)
            known[sample.ids] = labels == "fail"
            found = mean_ci((judge == "fail").astype(float), known, seed=seed)
            tallies["failures", "cje-eval"].add(found.estimate, *found.ci)
    return [tally.row(name, *key) for key, tally in tallies.items()]


def labels_for(entry: File, wanted: float, draws: int) -> str:
    """Return the row of the labels for a half-width of kappa, planned for it and at random."""
    name, people, judge, right = entry
    population, budgets = population_of(judge, right), np.array([100, 200, 400, 800])
    needed = {}
    for how in ("random", "planned"):
        widths = []
        for budget in budgets.tolist():
            plan = SimpleRandom(budget=budget)
            design = (
                plan if how == "random" else stratal.plan(population, budget, estimand="kappa:judge").design
            )
            each = []
            for seed in range(draws):
                sample = design.draw(population, seed=seed)
                found = stratal.estimate(sample, people[sample.ids], estimand="kappa:judge")
                low, high = found.confidence_interval()
                each.append((high - low) / 2.0)
            widths.append(np.mean(each))
        # Half-widths fall with the root of the labels, so that both are straight on logarithmic scales.
        needed[how] = float(np.exp(np.interp(-np.log(wanted), -np.log(widths), np.log(budgets))))
    saved = 1.0 - needed["planned"] / needed["random"]
    return f"| {name} | {needed['random']:.0f} | {needed['planned']:.0f} | {saved:.0%} |"


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path, required=True, help="site-packages with cje-eval and judgegate")
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument(
        "--part", choices=["compare", "labels"], help="this part alone; rows of the other stay"
    )
    parser.add_argument("--only", default="", help="files whose name begins so; rows of others stay")
    asked = parser.parse_args()
    sys.path.append(str(asked.peers))
    kappa_interval = import_module("judgegate.stats.bootstrap").kappa_interval
    calibrated_mean_ci = import_module("cje.array_api").calibrated_mean_ci

    warnings.simplefilter("ignore")
    before = OUT.read_text(encoding="utf-8").splitlines() if OUT.exists() else []
    rows = [row for row in before if row.startswith("| ") and not row.startswith("| file")]
    for entry in files():
        if not entry[0].startswith(tuple(asked.only.split(","))):
            continue
        if asked.part != "labels":
            rows = [row for row in rows if not _is(row, entry[0], 8)]
            rows += compare(entry, asked.replicates, kappa_interval, calibrated_mean_ci)
        if asked.part != "compare":
            rows = [row for row in rows if not _is(row, entry[0], 4)]
            rows.append(labels_for(entry, 0.1, asked.draws))
        write(rows)


def _is(row: str, name: str, columns: int) -> bool:
    """Return whether a row is a file's, in the table of so many columns."""
    return row.startswith(f"| {name} |") and row.count("|") == columns + 1


def write(rows: list[str]) -> None:
    """Write the page with these rows."""
    lines = [
        "# Labels that were chosen by the judge's verdict, beside cje-eval and judgegate",
        "",
        f"95 % intervals from {LABELS} labels, half of them of units that the judge calls failures (of "
        "PandaLM a third of each verdict), by `python benchmarks/judge_peers.py --peers SITE-PACKAGES`. The "
        "peers take the labels for a random sample, and say so.",
        "",
        "| file | quantity | package | truth | mean value | coverage | mean width | samples |",
        "|---|---|---|---|---|---|---|---|",
        *(row for row in rows if row.count("|") == 9),
        "",
        "## Labels for kappa ± .1",
        "",
        "Mean half-widths at 100 to 800 labels, interpolated.",
        "",
        "| file | random | planned for kappa | saved |",
        "|---|---|---|---|",
        *(row for row in rows if row.count("|") == 5),
    ]
    print("\n".join(rows[-4:]), flush=True)
    OUT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
