"""Labels until the best model is known, against random labels, today's plan and Model Selector's rule.

    python -m benchmarks.selection tied K GAP RUNS [SIZE] [SEED] # rivals GAP below
    python -m benchmarks.selection real POOL K RUNS
    python -m benchmarks.selection metric RUNS  # balanced accuracy
    python -m benchmarks.selection write

Each part adds its rows to results/selection.json, so that parts can run apart; `write` makes a page of them.
Every run has an error if its winner is more than the indifference, .01, below the best model.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.peer_agreement import FAMILIES
from scipy.stats import norm
from sklearn.datasets import load_digits, make_classification

import stratal
from stratal.arrays import FloatArray, IntArray
from stratal.designs.disagreements import CorrectProbabilities, DifferingUnits, Disagreements, SuccessiveDraws
from stratal.planning.model_elimination import SelectionState, labels_to_decide, outcomes_of, update_state
from stratal.planning.selection import FIRST_ROUND, LATER_ROUND_SHARE
from stratal.proxy.agreement import estimate_accuracies

RESULTS = Path(__file__).parent / "results" / "selection.md"
ROWS = RESULTS.with_suffix(".json")
INDIFFERENCE = 0.01
GUESS_AT = 200
GAMMA = 0.54 / 0.46
"""Model Selector's odds of a right answer, (1 − ε) / ε with its usual ε of .46."""


def tied(
    rng: np.random.Generator, size: int, k: int, gap: float, accuracy: float = 0.8, classes: int = 5
) -> tuple[IntArray, IntArray]:
    """Return answers (N, k) and truth (N,): one model at a random place best, all others exactly `gap` below.

    Units differ in difficulty, and each has a plausible wrong answer that 60 % of the mistakes are.
    """
    difficulty = 3.9 * rng.normal(size=size)
    truth = rng.integers(0, classes, size)
    plausible = (truth + rng.integers(1, classes, size)) % classes
    chance = 1 / (1 + np.exp(difficulty - np.quantile(difficulty, accuracy)))
    answers = np.empty((size, k), np.int64)
    best = int(rng.integers(k))  # so that no rule gains by how it breaks ties
    for j in range(k):
        right = rng.random(size) < chance
        excess = int(right.sum()) - round(size * (accuracy - (gap if j != best else 0.0)))
        changed = rng.choice(np.flatnonzero(right == (excess > 0)), abs(excess), replace=False)
        right[changed] = excess < 0
        other = np.where(
            rng.random(size) < 0.6, plausible, (truth + rng.integers(1, classes, size)) % classes
        )
        answers[:, j] = np.where(right, truth, other)
    return answers, truth


def run(
    codes: IntArray,
    truth: IntArray,
    uniform: FloatArray,
    *,
    random: bool = False,
    criterion: str = "accuracy",
    until: int | None = None,
) -> tuple[int, SelectionState, list[tuple[int, int]]]:
    """Return labels, standing, and labels and survivors after each look, as `stratal.select` would.

    With `random` any unit may be next, and the bounds are the same.
    """
    every = tuple(range(codes.shape[1]))
    agreed = estimate_accuracies(codes, 1024)[0]
    chances = CorrectProbabilities(codes) if criterion == "accuracy" else None
    differences_from = partial(DifferingUnits, codes)
    leader = int(np.argmax(agreed))
    standing = SelectionState(leader=leader, survivors=every, rivals=tuple(j for j in every if j != leader))
    design = Disagreements(
        answers=tuple(map(str, every)),
        units=(),
        leaders=(),
        survivors=(),
        rivals=(),
        criterion=criterion,
        indifference=INDIFFERENCE,
    )
    clocks, distinct, history = (
        SuccessiveDraws(uniform),
        len({column.tobytes() for column in codes.T.copy()}),
        [],
    )
    while standing.rivals and (until is None or len(clocks.rows) < until):
        sizes = np.ones(len(codes)) if random else design.sizes(codes, *standing)
        count = max(FIRST_ROUND, int(LATER_ROUND_SHARE * len(clocks.rows)))
        if not clocks.draw(sizes, count if until is None else min(count, until - len(clocks.rows))):
            break
        found = outcomes_of(criterion, None, codes, clocks.rows, truth[clocks.rows], 1 / clocks.probability)
        if found is not None:
            standing = update_state(clocks, differences_from, found, standing, design, distinct, chances)
        history.append((len(clocks.rows), len(standing.survivors)))
    return len(clocks.rows), standing, history


def model_selector(codes: IntArray, truth: IntArray, budget: int) -> int:
    """Return the model that Model Selector (Okanovic et al. 2024, arXiv 2410.13609) names after a budget.

    Posterior ∝ Π γ^[right]; next the unit with the least expected entropy of the posterior, its true class
    taken as uniform; at last the model with most right labels.
    """
    classes = int(codes.max()) + 1
    open_rows = np.flatnonzero((codes != codes[:, :1]).any(axis=1))
    right = np.zeros(codes.shape[1])
    for _ in range(min(budget, len(open_rows))):
        prior = GAMMA**right
        prior /= prior.sum()
        entropy = np.zeros(len(open_rows))
        logs = np.log(prior)
        # Only the models that gave a class change: sums over them give each class's posterior.
        for one in range(classes):
            own = codes[open_rows] == one
            mass, weighted = own @ prior, own @ (prior * logs)
            whole = 1.0 + (GAMMA - 1.0) * mass
            inner = prior @ logs + (GAMMA - 1.0) * weighted + GAMMA * np.log(GAMMA) * mass
            entropy += np.log(whole) - inner / whole
        chosen = open_rows[np.argmin(entropy)]
        right += codes[chosen] == truth[chosen]
        open_rows = open_rows[open_rows != chosen]
    return int(np.argmax(right))


POOLS: dict[str, Any] = {
    "digits": lambda: load_digits(return_X_y=True),
    "4 classes": lambda: make_classification(
        9000, 20, n_informative=8, n_classes=4, class_sep=1.2, random_state=3
    ),
    "noisy labels": lambda: make_classification(9000, 30, n_informative=6, flip_y=0.15, random_state=4),
    "10 classes": lambda: make_classification(
        9000, 30, n_informative=15, n_classes=10, class_sep=2.0, random_state=5
    ),
}


def pool(name: str, k: int, seed: int) -> tuple[IntArray, IntArray]:
    """Return answers (N, k) of real classifiers, the last 70 % of the rows, and the truth (N,).

    Of five families with random settings, each trained on 40 to 100 % of the other rows and 50 to 100 % of
    the columns: 100 of them, of which k are taken at random.
    """
    kept = Path(tempfile.gettempdir(), f"stratal-select-{name.replace(' ', '-')}-{seed % 3}.npz")
    if not kept.exists():
        rng = np.random.default_rng([seed % 3, *map(ord, name)])
        x, y = POOLS[name]()
        train, test = np.split(rng.permutation(len(y)), [int(0.3 * len(y))])
        answers = []
        for j in range(100):
            rows = rng.choice(train, int(rng.uniform(0.4, 1.0) * len(train)), replace=False)
            columns = rng.choice(x.shape[1], int(rng.uniform(0.5, 1.0) * x.shape[1]), replace=False)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = FAMILIES[j % len(FAMILIES)](rng).fit(x[np.ix_(rows, columns)], y[rows])
            answers.append(model.predict(x[np.ix_(test, columns)]))
        np.savez(kept, answers=np.column_stack(answers), truth=y[test])
    found = np.load(kept)
    chosen = np.random.default_rng([seed, k]).permutation(100)[:k]
    return found["answers"][:, chosen].astype(np.int64), found["truth"].astype(np.int64)


def compare(codes: IntArray, truth: IntArray, seed: int, *, peer: bool = True, **how: Any) -> dict[str, Any]:
    """Return what one run needs and errs, by `select`, by random labels, and the guesses at 200 labels."""
    rng = np.random.default_rng(seed)
    uniform = rng.random(len(codes))
    accuracy = (codes == truth[:, None]).mean(axis=0)
    behind = accuracy.max() - accuracy > INDIFFERENCE + 1e-12
    labels, standing, _ = run(codes, truth, uniform, **how)
    found: dict[str, Any] = {"labels": labels, "error": bool(behind[standing.leader])}
    if peer:
        found["random"], chance, _ = run(codes, truth, uniform, random=True, **how)
        found["random_error"] = bool(behind[chance.leader])
        found["guess"] = not behind[run(codes, truth, uniform, until=GUESS_AT)[1].leader]
        found["peer"] = not behind[model_selector(codes, truth, GUESS_AT)]
        agreed = estimate_accuracies(codes, 1024)[0]
        leader = int(np.argmax(agreed))
        ahead = np.maximum(agreed[leader] - agreed, 4 * INDIFFERENCE)
        for what, gaps in (("optimistic", ahead), ("conservative", 0.0 * agreed)):
            hardest_only = what == "optimistic"
            found[what] = labels_to_decide(
                codes, leader, gaps, 0.95, INDIFFERENCE, counts_agreements=False, hardest_only=hardest_only
            )
    return found


def planned(codes: IntArray, gap: float) -> int:
    """Return the labels that `plan` asks for to tell one model from each other by `gap` in one look.

    What has to be refuted is gap + indifference away; the half-width is the part of it that leaves all rivals
    to be told at once with probability .9, the level shared among them.
    """
    names = [f"m{j}" for j in range(codes.shape[1])]
    groups = {name: column.astype(str) for name, column in zip(names, codes.T, strict=True)}
    population = stratal.Population.from_arrays(groups=groups)
    error, missed = (share / (len(names) - 1) for share in (0.05, 0.1))
    level, power = norm.isf(error / 2), norm.isf(missed)
    made = stratal.plan(
        population,
        half_width=(gap + INDIFFERENCE) * level / (level + power),
        estimand="difference:m0,m1",
        confidence_level=1.0 - error,
    )
    return int(made.budget)


def add(row: dict[str, Any], runs: list[dict[str, Any]]) -> None:
    """Keep a row of means, with the number of runs and the standard deviation of the labels."""
    names = sorted({name for one in runs for name in one})
    means = {name: float(np.mean([one[name] for one in runs if name in one])) for name in names}
    spread = float(np.std([one["labels"] for one in runs]))
    rows = json.loads(ROWS.read_text()) if ROWS.exists() else []
    rows.append({**row, "runs": len(runs), **means, "spread": spread})
    ROWS.write_text(json.dumps(rows, indent=1) + "\n")
    print(rows[-1], flush=True)


def balanced(codes: IntArray, truth: IntArray) -> FloatArray:
    """Return the balanced accuracy (k,) of each model."""
    hits = [(codes[truth == one] == one).mean(axis=0) for one in np.unique(truth)]
    return np.asarray(np.mean(hits, axis=0))


def main(part: str, *given: str) -> None:
    """Run one part."""
    if part == "write":
        write()
    if part == "metric":
        several = []
        for seed in range(int(given[0])):
            codes, truth = tied(np.random.default_rng([3, seed]), 2000, 3, 0.02)
            uniform = np.random.default_rng(seed).random(len(codes))
            labels, standing, _ = run(codes, truth, uniform, criterion="balanced_accuracy")
            value = balanced(codes, truth)
            several.append(
                {"labels": labels, "error": bool(value.max() - value[standing.leader] > INDIFFERENCE)}
            )
        add({"part": part, "k": 3, "gap": 0.02, "size": 2000}, several)
    if part == "tied":
        k, gap, runs = int(given[0]), float(given[1]), int(given[2])
        size, first = int(given[3]) if len(given) > 3 else 5000, int(given[4]) if len(given) > 4 else 0
        several = []
        for seed in range(first, first + runs):
            codes, truth = tied(np.random.default_rng([1, seed]), size, k, gap)
            several.append(compare(codes, truth, seed, peer=seed < first + (20 if k < 100 else 5)))
        known = {"planned": planned(codes, gap)} if first == 0 else {}
        add({"part": part, "k": k, "gap": gap, "size": size, "first": first, **known}, several)
    elif part == "real":
        name, k, runs = given[0], int(given[1]), int(given[2])
        several = [compare(*pool(name, k, seed), seed) for seed in range(runs)]
        add({"part": part, "pool": name, "k": k, "size": len(pool(name, k, 0)[1])}, several)


def write() -> None:
    """Write the page of all rows, those of one cell together."""
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in json.loads(ROWS.read_text()):
        cells.setdefault(
            (row["part"], row.get("pool", ""), row["size"], row["k"], row.get("gap")), []
        ).append(row)
    pages: dict[str, list[str]] = {"tied": [], "real": [], "metric": []}
    for (part, name, size, k, gap), rows in sorted(cells.items(), key=lambda cell: str(cell[0][3]).zfill(3)):
        runs = sum(row["runs"] for row in rows)

        def mean(what: str, rows: list[dict[str, Any]] = rows) -> float:
            known = [row for row in rows if what in row]
            return float(np.average([row[what] for row in known], weights=[row["runs"] for row in known]))

        first, labels, error = rows[0], mean("labels"), mean("error")
        shown = f"{error:.4f} ± {np.sqrt(max(error, 1 / runs) * (1 - error) / runs):.4f}"
        cell = [f"{k}", f"{size:,}", f"{runs:,}", f"{labels:,.0f}", shown]
        if part == "metric":
            pages[part].append("| " + " | ".join([f"{gap:g}", *cell]) + " |")
            continue
        # Peers were run on the first seeds of a cell alone.
        cell += [f"{first['random']:,.0f}", f"{labels / first['random']:.2f}"]
        cell += [f"{first['guess']:.2f}", f"{first['peer']:.2f}"]
        cell += [f"{first['optimistic']:,.0f}", f"{first['conservative']:,.0f}"]
        own = [f"{gap:g}"] if part == "tied" else [name]
        more = [f"{first['planned']:,}"] if part == "tied" else []
        pages[part].append("| " + " | ".join([*own, *cell, *more]) + " |")
    head = "k | N | runs | labels | error | random labels | ratio | guess at 200 | Model Selector at 200 |"
    head += " optimistic | conservative |"
    lines = [
        "# Labels until the best model is known",
        "",
        "`python -m benchmarks.selection PART …` for each part, then `python -m benchmarks.selection write`",
        "",
        "Indifference .01, confidence .95, rounds as `select` draws them. *Error*: the winner is more than",
        ".01 below the best, ± its Monte Carlo standard error. *Random labels*: any unit may be next, the",
        "same bounds; they, the guesses and what was expected are of the first 20 runs of a cell (5 for 100",
        "models, all for real classifiers). *Guess*: the leader after 200 labels is within .01 of the best.",
        "*Planned*: labels that `plan` asks for to tell one pair in one look, with power .9 for all rivals.",
        "",
        "## All rivals tied below the best, generated",
        "",
        f"| gap | {head} planned |",
        "|---" * 13 + "|",
        *pages["tied"],
        "",
        "## Real classifiers on scikit-learn's data",
        "",
        "Logistic regression, nearest neighbours, trees, forests and naive Bayes with random settings,",
        "trained on 12 to 30 % of the rows. These pools were chosen after a first set of weaker classifiers",
        "(6 to 15 % of the rows), on which 10 runs each gave ratios of .41 (digits, 8 models), .31 (digits,",
        "30), .57 (4 classes, 30) and .33 (noisy labels, 30): the more models disagree everywhere, the",
        "less is saved. What `plan --select` calls optimistic was set after these cells were seen.",
        "",
        f"| data | {head}",
        "|---" * 12 + "|",
        *pages["real"],
        "",
        "## Balanced accuracy, rivals tied below",
        "",
        "| gap | k | N | runs | labels | error |",
        "|---" * 6 + "|",
        *pages["metric"],
    ]
    RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
