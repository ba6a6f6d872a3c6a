"""Earlier models' results as a proxy: error and coverage beside FAQ's policy and plain active inference.

    python -m benchmarks.history [--draws 100] [--pools NAME ...]
    python -m benchmarks.history --large

Generated results (200 earlier models; new ones better than all of them) and pools of 25 classifiers
(`benchmarks.peer_agreement`), in which each evaluated model has the others' results as its history. All three
methods get the same factors and the same prior. The peers' error is their exact variance given what was drawn
before, averaged over runs, as it has far less noise than squared errors; ours are squared errors.

With --large instead: the processor time and the memory of the commands on a file of a million items and a
thousand earlier models, a section of the same page.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from benchmarks.helpers import DATA
from benchmarks.peer_agreement import EVALUATED, pool

import stratal
from stratal.arrays import FloatArray, IntArray
from stratal.designs.extending import extend_sample
from stratal.proxy.history import History, fit_history, sigmoid

RESULTS = Path(__file__).parent / "results" / "history.md"
SHARES = (0.05, 0.1, 0.2)
LABELS_PER_ROUND, MOST_ROUNDS = 25, 8
PEER_RUNS = 3
"""Of each peer for each model: their variance given the past has little noise."""

FAQ_SETTINGS = [
    (beta, early, early, tau) for beta in (0.5, 1.0) for early in (0.0, 0.1) for tau in (0.05, 0.15)
]
PLAIN_SETTINGS = [(1.0, 0.0, 0.0, tau) for tau in (0.02, 0.05, 0.1, 0.2, 0.35)]
"""β₀, ρ, γ and τ of FAQ's policy; plain active inference has τ alone."""


def generated(items: int, rank: int, seed: int) -> tuple[IntArray, FloatArray]:
    """Return results of 200 earlier models (N, 200), and of four new ones that are better (N, 4)."""
    rng = np.random.default_rng([seed, rank, items])
    factors = rng.normal(size=(items, rank)) * 1.5 / np.sqrt(rank)
    ability = rng.normal(0, 0.8, 204)
    ability[200:] = ability[:200].max() + rng.uniform(0, 0.5, 4)
    log_odds = rng.normal(0.3, 1.2, (items, 1)) + ability + factors @ rng.normal(size=(rank, 204))
    right = rng.random(log_odds.shape) < sigmoid(log_odds)
    return right[:, :200].astype(np.int8), right[:, 200:].astype(float)


def of_classifiers(name: str) -> Iterator[tuple[History, FloatArray]]:
    """Yield each evaluated model's history, the other models of its pool, and what it gets right (N,)."""
    answers, _, truth = pool(name, 0)
    rows = np.random.default_rng(0).permutation(len(truth))[:2000]
    right = (answers == truth[:, None])[rows]
    for own in EVALUATED:
        yield fit_history(np.delete(right, own, axis=1)), right[:, own].astype(float)


def of_generated(items: int, rank: int, seed: int = 0) -> Iterator[tuple[History, FloatArray]]:
    """Yield the same history with each of the new models."""
    past, new = generated(items, rank, seed)
    found = fit_history(past)
    for z in new.T:
        yield found, z


def of_files(name: str, item: str, model: str) -> Iterator[tuple[History, FloatArray]]:
    """Yield, for every second model of a file of ../shared/data, the others' results and its own (N,)."""
    import pyarrow.parquet as pq

    table = pq.read_table(DATA / f"{name}.parquet", columns=[item, model, "z"])
    items, rows = np.unique(np.array(table[item].to_pylist()), return_inverse=True)
    models, columns = np.unique(np.array(table[model].to_pylist()), return_inverse=True)
    right = np.full((len(items), len(models)), -1, np.int8)
    right[rows, columns] = table["z"].to_numpy()
    for own in range(0, len(models), 2):
        known = right[:, own] >= 0
        past = np.delete(right[known], own, axis=1)
        yield fit_history(past), right[known, own].astype(float)


POOLS: dict[str, Callable[[], Iterator[tuple[History, FloatArray]]]] = {
    "rank 2, 2,000 items": lambda: of_generated(2000, 2),
    "rank 8, 2,000 items": lambda: of_generated(2000, 8),
    "rank 24, 2,000 items": lambda: of_generated(2000, 24),
    "digits": lambda: of_classifiers("digits"),
    "breast cancer": lambda: of_classifiers("breast cancer"),
    "generated, 4 classes": lambda: of_classifiers("generated, 4 classes"),
    "generated, noisy labels": lambda: of_classifiers("generated, noisy labels"),
    "GSM8K, 9 earlier models": lambda: of_files("gsm8k_models", "item", "group"),
    "rank 2, 12,000 items": lambda: of_generated(12_000, 2),
}


def peer_variance(
    history: History, z: FloatArray, n: int, setting: tuple[float, ...], *, plain: bool, seed: int
) -> float:
    """Return the variance of FAQ's estimate, or plain active inference's, given what each step had drawn."""
    beta, rho, gamma, tau = setting
    rng, size = np.random.default_rng(seed), len(z)
    offset, factors = history.values[:, 1], history.values[:, 2:]
    mean, spread = np.zeros(factors.shape[1]), np.eye(factors.shape[1])
    seen, total = np.zeros(size, bool), 0.0
    for step in range(n):
        p = sigmoid(offset + factors @ mean)
        w = np.maximum(p * (1.0 - p), 1e-12)
        h = np.sqrt(w) / np.sqrt(w).sum()
        if not plain:
            early = max(0.0, 1.0 - step / (rho * n)) if rho else 0.0
            if early:
                moved = factors @ spread
                gain = np.log(w) + 2.0 * np.log(np.abs(moved @ (w @ factors / size)) + 1e-300)
                gain -= np.log1p(w * np.einsum("ij,ij->i", moved, factors))
                gain = np.exp(gain - gain.max())
                h = (1.0 - early) * h + early * gain / gain.sum()
            h = h ** (beta * min(1.0, step / (gamma * n)) if gamma else beta)
        q = (1.0 - tau) * h / h.sum() + tau / size
        left = z - p
        total += (float(np.sum(left**2 / q)) - left.sum() ** 2) / size**2
        drawn = min(int(np.searchsorted(np.cumsum(q), rng.random() * q.sum())), size - 1)
        if not seen[drawn]:
            seen[drawn] = True
            column = spread @ factors[drawn]
            spread = spread - w[drawn] * np.outer(column, column) / (1.0 + w[drawn] * factors[drawn] @ column)
            mean = mean + spread @ factors[drawn] * left[drawn]
    return total / n**2


def ours(population: Any, z: FloatArray, n: int, seed: int) -> tuple[float, bool, float]:
    """Return the squared error, whether the interval covers, and its width."""
    rounds = max(2, min(MOST_ROUNDS, n // LABELS_PER_ROUND))
    sizes = np.diff(np.round(np.linspace(0, n, rounds + 1)).astype(int))
    sample = stratal.plan(population, int(sizes[0])).draw(seed=seed)
    for additional in sizes[1:]:
        # What `next_round` does, without the estimate by which it judges how wide the interval is.
        known = SimpleNamespace(z=z[sample.ids], labelled=np.ones(sample.size, bool))
        sample = extend_sample(
            sample, sample.design.next_round_design(sample, int(additional), known), population
        )
    found = stratal.estimate(sample, z[sample.ids])
    interval, truth = found.confidence_interval(), z.mean()
    return (found.value - truth) ** 2, bool(interval.low <= truth <= interval.high), interval.width


def tuned() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the peers' best settings on a pool of their own (rank 4, 1,000 items, 5 and 20 %)."""
    cases = list(of_generated(1000, 4, seed=9))[:2] + list(of_classifiers("digits"))[:2]

    def loss(setting: tuple[float, ...], *, plain: bool) -> float:
        logs = []
        for at, (history, z) in enumerate(cases):
            for share in (0.05, 0.2):
                n = int(share * len(z))
                logs.append(np.log(peer_variance(history, z, n, setting, plain=plain, seed=at)))
        return float(np.mean(logs))

    faq = min(FAQ_SETTINGS, key=lambda setting: loss(setting, plain=False))
    return faq, min(PLAIN_SETTINGS, key=lambda setting: loss(setting, plain=True))


def rows_of(name: str, draws: int, faq: tuple[float, ...], plain: tuple[float, ...]) -> Iterator[list[Any]]:
    """Yield a row for each share of items labelled: variances over a simple random sample's."""
    cases = list(POOLS[name]())
    populations = [stratal.Population.from_arrays(history=history) for history, _ in cases]
    shares = SHARES if len(cases[0][1]) <= 4000 else SHARES[:1]
    for share in shares:
        errors: list[list[float]] = [[], [], []]
        covered, widths = [], []
        for at, ((history, z), population) in enumerate(zip(cases, populations, strict=True)):
            n = int(share * len(z))
            random = z.var(ddof=1) / n * (1.0 - n / len(z))
            runs = [
                ours(population, z, n, seed=1000 * at + draw) for draw in range(max(draws // len(cases), 5))
            ]
            errors[0].append(float(np.mean([run[0] for run in runs])) / random)
            covered += [run[1] for run in runs]
            widths += [run[2] / np.sqrt(random) / 3.92 for run in runs]
            for which, setting in ((1, faq), (2, plain)):
                found = [
                    peer_variance(history, z, n, setting, plain=which == 2, seed=run)
                    for run in range(PEER_RUNS)
                ]
                errors[which].append(float(np.mean(found)) / random)
        yield [
            name,
            share,
            cases[0][0].rank,
            n,
            *(float(np.mean(one)) for one in errors),
            float(np.mean(covered)),
            len(covered),
            float(np.mean(widths)),
        ]


def page(rows: list[list[Any]], command: str, faq: tuple[float, ...], plain: tuple[float, ...]) -> str:
    """Return the page of the results."""
    table = [
        f"| {name} | {share:.0%} | {n} | {rank} | {own:.3f} | {a:.3f} | {b:.3f} | {own / a:.2f} "
        f"| {own / b:.2f} | {hit:.3f} ({count}) | {width:.2f} |"
        for name, share, rank, n, own, a, b, hit, count, width in rows
    ]
    logs = np.log(np.array([row[4:7] for row in rows]))
    ratios = np.exp((logs[:, :1] - logs[:, 1:]).mean(axis=0))
    by_pool = {
        name: np.exp(np.mean([np.log(row[4] / row[6]) for row in rows if row[0] == name]))
        for name in dict.fromkeys(row[0] for row in rows)
    }
    worst = max(by_pool, key=lambda name: by_pool[name])
    return "\n".join(
        [
            "# Earlier models' results as a proxy",
            "",
            f"`{command}`",
            "",
            "Errors are variances over that of a simple random sample of as many labels, with its finite",
            f"population correction. FAQ's policy with β₀, ρ, γ, τ = {faq}, plain active inference",
            f"with τ = {plain[3]}, each the best of its grid on pools of their own. Width is the mean over",
            "2 · 1.96 standard errors of a simple random sample.",
            "",
            "| pool | labelled | n | factors | ours | FAQ | plain active | ours / FAQ | ours / plain "
            "| coverage (draws) | width |",
            "|---" * 11 + "|",
            *table,
            "",
            f"Geometric means: ours over FAQ's {ratios[0]:.2f}, over plain active inference's "
            f"{ratios[1]:.2f}; the worst pool, {worst}, {by_pool[worst]:.2f} of the latter.",
            "",
        ]
    )


LARGE = "\n## A million items, a thousand earlier models\n"
"""The heading of the section that `--large` writes, and the other runs keep."""


def write_large(folder: Path, items: int, models: int, rank: int = 4) -> FloatArray:
    """Write `past.parquet` and `items.csv`; return what a new model gets right (N,)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, new, size = np.random.default_rng(0), [], min(items, 100_000)
    ability = np.append(rng.normal(0, 0.8, models), 2.5)
    weights = rng.normal(size=(rank, models + 1)) * 1.5 / np.sqrt(rank)
    names = ["id", *(f"m{at}" for at in range(models))]
    schema = pa.schema([(name, pa.int8() if at else pa.string()) for at, name in enumerate(names)])
    with pq.ParquetWriter(folder / "past.parquet", schema) as past, (folder / "items.csv").open("w") as text:
        text.write("id\n")
        for start in range(0, items, size):
            rows = range(start, min(start + size, items))
            log_odds = rng.normal(0.3, 1.2, (len(rows), 1)) + ability
            log_odds += rng.normal(size=(len(rows), rank)) @ weights
            right = (rng.random(log_odds.shape) < sigmoid(log_odds)).astype(np.int8)
            ids = [f"item-{row}" for row in rows]
            past.write_table(pa.table([pa.array(ids), *right[:, :models].T], schema=schema))
            text.write("\n".join([*ids, ""]))
            new.append(right[:, models])
    return np.concatenate(new).astype(np.float64)


def measured(folder: Path, name: str, arguments: Sequence[str]) -> str:
    """Run Python with arguments; return a row: the step, the seconds of processors, the peak in GiB."""
    with (folder / "said.txt").open("w+") as said:
        one = {**os.environ, "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=folder, env=one, stdout=said, stderr=said
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise RuntimeError(said.read())
    row = f"| {name} | {used.ru_utime + used.ru_stime:.0f} | {used.ru_maxrss / 2**20:.2f} |"
    print(row, flush=True)
    return row


def large(items: int = 1_000_000, models: int = 1_000) -> str:
    """Return the section of a large history: what each command takes."""
    fit = (
        "from stratal.population.past_results import as_history; "
        "as_history('past.parquet').write('kept.parquet')"
    )
    stratal_, kept = ["-m", "stratal"], ["items.csv", "--history", "kept.parquet", "--budget", "150"]
    with tempfile.TemporaryDirectory() as held:
        folder = Path(held)
        with ProcessPoolExecutor(1) as pool:  # as a process reports its parent's peak where that is higher
            z = pool.submit(write_large, folder, items, models).result()

        def labelled(name: str) -> None:
            with (folder / name / "to_label.csv").open() as text:
                ids = [row["id"] for row in csv.DictReader(text)]
            rows = [f"{one},{z[int(one.removeprefix('item-'))]:.0f}" for one in ids]
            (folder / f"{name}.csv").write_text("\n".join(["id,label", *rows]))

        size = (folder / "past.parquet").stat().st_size / 1e6
        rows = [measured(folder, "fitted and kept (`fit_history`, `write`)", ["-c", fit])]
        rows += [measured(folder, "`plan --history kept.parquet`", [*stratal_, "plan", *kept])]
        draw = [*stratal_, "draw", *kept, "--seed", "7", "--output", "audit"]
        rows += [measured(folder, "`draw --history kept.parquet`", draw)]
        labelled("audit")
        extend = ["draw", "--extend", "audit/sample.parquet", "--labels", "audit.csv", "--additional", "150"]
        rows += [measured(folder, "`draw --extend`", [*stratal_, *extend, "--output", "more"])]
        labelled("more")
        estimate = [*stratal_, "estimate", "more/sample.parquet", "audit.csv", "more.csv"]
        rows += [measured(folder, "`estimate`", estimate)]
        whole = [*stratal_, "plan", "items.csv", "--history", "past.parquet", "--budget", "150"]
        rows += [measured(folder, "`plan --history past.parquet`, fitted on the way", whole)]
    return "\n".join(
        [
            LARGE,
            "`python -m benchmarks.history --large`",
            "",
            f"{items:,} items and {models:,} models (rank 4) in a Parquet file of {size:.0f} MB; one thread.",
            "",
            "| step | processor time (s) | peak memory (GiB) |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--pools", nargs="*", default=list(POOLS), choices=list(POOLS))
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    kept, mark, section = RESULTS.read_text().partition(LARGE)
    if options.large:
        RESULTS.write_text(kept + large())
        return
    warnings.simplefilter("ignore")
    faq, plain = tuned()
    print("tuned", faq, plain, flush=True)
    rows = []
    for name in options.pools:
        for row in rows_of(name, options.draws, faq, plain):
            print(row, flush=True)
            rows.append(row)
    command = f"python -m benchmarks.history --draws {options.draws}"
    if options.pools != list(POOLS):
        command += " --pools " + " ".join(map(repr, options.pools))
    else:
        RESULTS.write_text(page(rows, command, faq, plain) + mark + section)
    print(page(rows, command, faq, plain))


if __name__ == "__main__":
    main()
