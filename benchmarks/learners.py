"""Two rounds with a learner against the best single judge: mean squared error and coverage.

    python -m benchmarks.learners [--data DIR] [--replicates 100] [--boosted 0]

Half the budget in a pilot of the default plan on the first judge, the other half by `next_round`, then
`estimate`. The best single judge is the one with the smallest mean squared error of all, chosen afterwards,
which no user could: the learners are measured against what only an oracle knows. Columns with gaps are filled
with their median.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from benchmarks.helpers import DATA

import stratal
from stratal.arrays import FloatArray

RESULTS = Path(__file__).parent / "results" / "learners.md"
FIRST_SEED = 10_000
HEAD = (
    *("judge or learner", "runs", "root mean squared error", "mean squared error / best judge's"),
    *("bias in standard errors", "estimated / true variance", "coverage", "width"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A file: the judges, the first of which the strata are cut on, and how outcomes are bounded."""

    name: str
    judges: tuple[str, ...]
    outcome: str


CASES = (
    Case(
        name="frank_factuality",
        judges=("proxy", "factcc", "feqa", "dae", "bertscore_p_art", "rouge1"),
        outcome="bounded",
    ),
    Case(name="nq301_llmjudge", judges=("proxy", "bem", "davinci", "lexical", "f1"), outcome="binary"),
)
BUDGETS = (200, 400)
LEARNERS = ("ridge", "logistic-regression", "gradient-boosting")


@cache
def columns(directory: Path, case: Case) -> tuple[dict[str, FloatArray], FloatArray]:
    """Return the judges and the outcome."""
    table = pq.read_table(directory / f"{case.name}.parquet", columns=[*case.judges, "z"])
    found = {name: table[name].to_numpy().astype(np.float64) for name in case.judges}
    filled = {name: np.where(np.isnan(v), np.nanmedian(v), v) for name, v in found.items()}
    return filled, table["z"].to_numpy().astype(np.float64)


def populations(directory: Path, case: Case) -> tuple[dict[str, Any], FloatArray]:
    """Return one population for each judge alone and one for all, the first in front, and the outcome."""
    judges, z = columns(directory, case)
    alone: dict[str, Any] = {
        name: stratal.Population.from_arrays(proxy=values) for name, values in judges.items()
    }
    first = case.judges[0]
    others = {name: values for name, values in judges.items() if name != first}
    alone["all"] = stratal.Population.from_arrays(proxy={first: judges[first]}, features=others)
    return alone, z


def methods(case: Case) -> dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """Return what is tried: population, and the options of the second round and of the estimate."""
    found: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {}
    for judge in case.judges:
        found[f"{judge}, auto"] = (judge, "judge", {}, {})
        if judge == case.judges[0]:
            found[f"{judge}, isotonic"] = (judge, "judge", {}, {"calibration": "isotonic"})
    for learner in LEARNERS:
        found[f"{learner}, in the estimate alone"] = ("all", learner, {}, {"calibration": learner})
        found[f"{learner}, in the second round too"] = (
            "all",
            learner,
            {"learner": learner},
            {"calibration": learner},
        )
    return found


def measured(job: tuple[Path, Case, int, Any, tuple[str, ...]]) -> FloatArray:
    """Return error, variance, whether covered and width of each method (replicates, methods, 4)."""
    directory, case, budget, seeds, names = job
    units, z = populations(directory, case)
    tried = methods(case)
    plans = {name: stratal.plan(population, budget=budget // 2) for name, population in units.items()}
    rows = np.full((len(seeds), len(names), 4), np.nan)
    warnings.simplefilter("ignore")
    for number, seed in enumerate(seeds):
        for m, name in enumerate(names):
            which, _, second, options = tried[name]
            pilot = plans[which].draw(seed=seed)
            pilot = pilot.with_outcome(case.outcome, (0.0, 1.0) if case.outcome == "bounded" else None)
            more = budget - pilot.size
            sample = stratal.next_round(pilot, z[pilot.ids], additional=more, **second)
            found = stratal.estimate(sample, z[sample.ids], **options)
            low, high = found.confidence_interval()
            truth = z.mean()
            rows[number, m] = found.value - truth, found.standard_error**2, low <= truth <= high, high - low
    return rows


def table(rows: FloatArray, names: tuple[str, ...], best: float) -> Iterator[str]:
    """Yield one line per method; `best` is the oracle judge's mean squared error."""
    for m, name in enumerate(names):
        errors = rows[:, m, 0]
        mse = float(np.mean(errors**2))
        noise = float(np.std(errors**2) / mse / np.sqrt(len(errors)))
        cells = (
            f"{len(errors):,}",
            f"{np.sqrt(mse):.5f}",
            f"{mse / best:.3f} ± {noise * mse / best:.3f}",
            f"{errors.mean() / errors.std():+.2f}",
            f"{rows[:, m, 1].mean() / errors.var():.2f}",
            f"{rows[:, m, 2].mean():.3f}",
            f"{rows[:, m, 3].mean():.4f}",
        )
        yield f"| {name} | " + " | ".join(cells) + " |"


def report(options: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of the page."""
    with multiprocessing.Pool(options.processes) as pool:
        for case in CASES:
            names = tuple(methods(case))
            quick = tuple(name for name in names if not name.startswith("gradient"))
            slow = tuple(name for name in names if name.startswith("gradient"))
            for budget in BUDGETS:
                found = {}
                for chosen, count in ((quick, options.replicates), (slow, options.boosted)):
                    parts = np.array_split(np.arange(FIRST_SEED, FIRST_SEED + count), max(count // 10, 1))
                    jobs: list[Any] = [(options.data, case, budget, part, chosen) for part in parts]
                    kept = options.rows / f"{case.name}-{budget}-{len(chosen)}-{count}.npy"
                    if count and not kept.exists():
                        np.save(kept, np.concatenate(pool.map(measured, jobs, chunksize=1)))
                    if count:
                        found[chosen] = np.load(kept)
                judges = [m for m, name in enumerate(quick) if name.split(", ")[0] in case.judges]
                best = float(np.min(np.mean(found[quick][:, judges, 0] ** 2, axis=0)))
                yield f"## {case.name}, {budget} labels"
                yield ""
                yield "| " + " | ".join(HEAD) + " |"
                yield "|" + "---|" * len(HEAD)
                for chosen, rows in found.items():
                    yield from table(rows, chosen, best)
                yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--boosted", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rows", type=Path, help="Folder of finished cells, which are not measured again.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        options.rows = options.rows or Path(scratch)
        sections = list(report(options))
    lines = [
        "# Learning from several judges",
        "",
        f"`python -m benchmarks.learners --replicates {options.replicates} --boosted {options.boosted}`",
        "",
        "Two rounds, half the labels each, of the default plan; intervals of 95 %. The best judge is the",
        "single judge with the smallest mean squared error of all, found out afterwards.",
        "",
        *sections,
    ]
    RESULTS.write_text("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
