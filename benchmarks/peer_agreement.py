"""Other models' answers as a proxy: what the default plan's labels are worth, and what its interval covers.

    python -m benchmarks.peer_agreement [--pools 3] [--draws 60]

Pools of 25 classifiers of five families, trained on random parts of 15 % of the items with random columns,
every fourth evaluated on disturbed inputs; the same fitted to the items themselves; similar classifiers; and
generated answers with correlated errors. Worth is the variance of a simple random sample over the exact
design variance of the default plan's stratified mean, both with the same number of labels.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import helpers
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import stratal
from stratal.arrays import FloatArray, IntArray
from stratal.errors import InputError

RESULTS = Path(__file__).parent / "results" / "peer_agreement.md"
MODELS = 25
MOST = 50.0
"""The largest worth that is counted: some models that were fitted to the items make next to no errors."""

EVALUATED = range(1, MODELS, 4)
"""The models of each pool that are evaluated, in turn, by the others."""

DATA: dict[str, Callable[[], tuple[FloatArray, IntArray]]] = {
    "digits": lambda: load_digits(return_X_y=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "generated, 4 classes": lambda: make_classification(
        6000, 20, n_informative=8, n_classes=4, class_sep=0.9, random_state=3
    ),
    "generated, noisy labels": lambda: make_classification(
        6000, 30, n_informative=6, n_classes=2, flip_y=0.15, random_state=4
    ),
}
FAMILIES: tuple[Callable[[Any], Any], ...] = (
    lambda rng: LogisticRegression(C=10.0 ** rng.uniform(-5, 1), max_iter=500),
    lambda rng: KNeighborsClassifier(int(rng.integers(1, 30))),
    lambda rng: DecisionTreeClassifier(max_depth=int(rng.integers(2, 12)), random_state=0),
    lambda rng: RandomForestClassifier(int(rng.integers(3, 40)), max_depth=6, random_state=0),
    lambda rng: GaussianNB(var_smoothing=10.0 ** rng.uniform(-9, -1)),
)


FITTED = {"digits, fitted to the items": "digits", "4 classes, fitted to the items": "generated, 4 classes"}
SIMILAR = {"digits, similar models": "digits", "noisy labels, similar models": "generated, noisy labels"}
CORRELATED = {"correlated errors, 5 classes": 5, "correlated errors, 100 classes": 100}
NAMES = (*DATA, *FITTED, *SIMILAR, *CORRELATED)
"""All pools."""


def pool(name: str, seed: int) -> tuple[IntArray, FloatArray, IntArray]:
    """Return the models' answers (N, 25), their confidences (N, 25), and the truth (N,)."""
    if name in CORRELATED:
        return correlated(CORRELATED[name], seed)
    if name in FITTED or name in SIMILAR:
        return fitted_or_similar(name, seed)
    rng = np.random.default_rng([seed, *map(ord, name)])
    x, y = DATA[name]()
    order = rng.permutation(len(y))
    train, test = np.split(order, [int(0.15 * len(y))])
    answers, confidences = [], []
    for model in range(MODELS):
        rows = rng.choice(train, max(30, int(len(train) * rng.uniform(0.3, 1.0))), replace=False)
        columns = rng.permutation(x.shape[1])[: max(3, int(x.shape[1] * rng.uniform(0.5, 1.0)))]
        fitted = FAMILIES[model % len(FAMILIES)](rng).fit(x[np.ix_(rows, columns)], y[rows])
        seen = x[np.ix_(test, columns)]
        noise = rng.uniform(0, 0.5) * (model % 4 == 0)
        probable = fitted.predict_proba(seen + noise * seen.std(axis=0) * rng.normal(size=seen.shape))
        answers.append(fitted.classes_[probable.argmax(axis=1)])
        confidences.append(probable.max(axis=1))
    return np.array(answers).T, np.array(confidences).T, y[test]


def fitted_or_similar(name: str, seed: int) -> tuple[IntArray, FloatArray, IntArray]:
    """Return a pool of classifiers trained on the evaluated items, or of forests of different seeds."""
    rng = np.random.default_rng([seed, *map(ord, name)])
    x, y = DATA[FITTED.get(name) or SIMILAR[name]]()
    order = rng.permutation(len(y))
    train, test = np.split(order, [len(y) // 3])
    test = test[:1500]
    answers, confidences = [], []
    for _ in range(MODELS):
        if name in FITTED:
            rows = rng.choice(test, int(len(test) * rng.uniform(0.5, 1.0)), replace=False)
            columns = rng.permutation(x.shape[1])[: max(3, int(x.shape[1] * rng.uniform(0.3, 1.0)))]
            weak = FAMILIES[rng.integers(len(FAMILIES))](rng)
            exact = ExtraTreesClassifier(30, random_state=int(rng.integers(99)))
            model = weak if rng.random() < 0.5 else exact
        else:
            rows = rng.choice(train, int(len(train) * rng.uniform(0.7, 1.0)), replace=False)
            columns = np.arange(x.shape[1])
            model = RandomForestClassifier(40, random_state=int(rng.integers(99)))
        fitted = model.fit(x[np.ix_(rows, columns)], y[rows])
        probable = fitted.predict_proba(x[np.ix_(test, columns)])
        answers.append(fitted.classes_[probable.argmax(axis=1)])
        confidences.append(probable.max(axis=1))
    return np.array(answers).T, np.array(confidences).T, y[test]


def correlated(classes: int, seed: int, size: int = 3000) -> tuple[IntArray, FloatArray, IntArray]:
    """Return answers of accuracy .5 to .95 that are wrong on the same hard items, 60 % of them alike.

    The confidence is that of a model that knows how hard the items are for it, with noise.
    """
    rng = np.random.default_rng([seed, classes])
    truth = rng.integers(0, classes, size)
    plausible = (truth + rng.integers(1, classes, size)) % classes
    difficulty = 2.0 * rng.normal(size=size)
    answers, confidences = [], []
    for accuracy in rng.uniform(0.5, 0.95, MODELS):
        own_difficulty = difficulty + 0.7 * rng.normal(size=size)
        right = own_difficulty < np.quantile(own_difficulty, accuracy)
        other = (truth + rng.integers(1, classes, size)) % classes
        wrong = np.where(rng.random(size) < 0.6, plausible, other)
        answers.append(np.where(right, truth, wrong))
        confidences.append(1 / (1 + np.exp(own_difficulty + 2.0 * rng.normal(size=size))))
    return np.array(answers).T, np.array(confidences).T, truth


def clones(rng: Any, answers: IntArray, model: int, count: int, changed: float = 0.01) -> IntArray:
    """Return copies of a model (N, count) in which a share of the answers is a guess."""
    copies = np.repeat(answers[:, [model]], count, axis=1)
    return np.where(
        rng.random(copies.shape) < changed, rng.integers(0, answers.max() + 1, copies.shape), copies
    )


def one_class(rng: Any, answers: IntArray, count: int) -> IntArray:
    """Return models (N, count) that always give one class, half of them the most frequent one."""
    frequent = np.bincount(answers.ravel()).argmax()
    classes = np.where(np.arange(count) % 2 == 0, frequent, rng.integers(0, answers.max() + 1, count))
    return np.broadcast_to(classes, (len(answers), count))


def sets(answers: IntArray, truth: IntArray, own: int, seed: int) -> dict[str, IntArray]:
    """Return the other models' answers (N, J) in each of the circumstances."""
    rng = np.random.default_rng([seed, own])
    others = np.delete(answers, own, axis=1)
    order = np.argsort((others == truth[:, None]).mean(axis=0))
    return {
        "as trained": others,
        "40 clones of a middling model": np.hstack([others, clones(rng, others, order[8], 40)]),
        "40 clones of a bad model": np.hstack([others, clones(rng, others, order[2], 40)]),
        "40 clones of a middling model, 4 %": np.hstack([others, clones(rng, others, order[8], 40, 0.04)]),
        "30 clones of the evaluated model": np.hstack([others, clones(rng, answers, own, 30)]),
        "24 models of one class": np.hstack([others, one_class(rng, others, 24)]),
        "8 models": others[:, rng.permutation(others.shape[1])[:8]],
        "3 models": others[:, rng.permutation(others.shape[1])[:3]],
        "2 models": others[:, rng.permutation(others.shape[1])[:2]],
        "20 guessing models alone": rng.integers(0, answers.max() + 1, (len(truth), 20)),
    }


def worth(proxy: Any, right: FloatArray, n: int) -> float:
    """Return the variance of a simple random sample of n over that of the default plan on a proxy."""
    if proxy is None:
        return 1.0
    plan = stratal.plan(stratal.Population.from_arrays(proxy=proxy), n)
    strata = getattr(plan.design, "strata", None)
    if strata is None:
        return 1.0
    variance, size = 0.0, len(right)
    for stratum, drawn in enumerate(plan.allocation.n_h):
        held = right[strata.codes == stratum]
        if len(held) > 1 and drawn < len(held):
            variance += (len(held) / size) ** 2 * held.var(ddof=1) / drawn * (1 - drawn / len(held))
    ratio = right.var(ddof=1) / n * (1 - n / size) / max(variance, 1e-12)
    return float(min(ratio, MOST)) if right.var() > 0 else 1.0


def agreement(own: IntArray, others: IntArray) -> Any:
    try:
        return stratal.proxy.peer_agreement(own, others)
    except InputError:
        return None


def covered(proxy: Any, right: FloatArray, n: int, draws: int) -> list[bool]:
    """Return whether the default interval of each draw holds the truth."""
    found = []
    plan = stratal.plan(stratal.Population.from_arrays(proxy=proxy), n)
    for seed in range(draws):
        sample = plan.draw(seed=seed)
        low, high = stratal.estimate(sample, right[sample.ids]).confidence_interval()
        found.append(bool(low <= right.mean() <= high))
    return found


def report(pools: int, draws: int) -> Iterator[str]:
    """Yield the lines of the page."""
    head = ("pool", "other models", "labels", "ours", "plain share", "ours / share", "least", "confidence")
    yield "| " + " | ".join((*head, "coverage")) + " |"
    yield "|---" * (len(head) + 1) + "|"
    ratios: dict[str, list[float]] = {}
    for name in NAMES:
        cells: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
        hits: dict[tuple[str, str], list[bool]] = {}
        for seed in range(pools):
            answers, confidences, truth = pool(name, seed)
            for own in EVALUATED:
                right = (answers[:, own] == truth).astype(float)
                budgets = {"50": 50, "100": 100, "20 %": int(0.2 * len(truth))}
                sure = {n: worth(confidences[:, own], right, n) for n in budgets.values()}
                for which, others in sets(answers, truth, own, seed).items():
                    ours = agreement(answers[:, own], others)
                    share = (others == answers[:, [own]]).mean(axis=1)
                    for called, n in budgets.items():
                        row = worth(ours, right, n), worth(share, right, n), sure[n]
                        cells.setdefault((which, called), []).append(row)
                        if which == "as trained" and seed == 0:
                            hits.setdefault((which, called), []).extend(covered(ours, right, n, draws))
        for (which, called), rows in cells.items():
            logs = np.log(np.array(rows))
            ours_mean, share_mean, sure_mean = np.exp(logs.mean(axis=0))
            ratios.setdefault(which, []).append(float((logs[:, 0] - logs[:, 1]).mean()))
            hit = hits.get((which, called))
            coverage = "" if hit is None else f"{np.mean(hit):.3f}"
            least = np.exp(logs[:, 0].min())
            figures = (ours_mean, share_mean, ours_mean / share_mean, least, sure_mean)
            shown = " | ".join(f"{figure:.2f}" for figure in figures)
            yield f"| {name} | {which} | {called} | {shown} | {coverage} |"
    yield ""
    yield (
        "Ours over the plain share, geometric mean over all pools and numbers of labels: "
        + ", ".join(f"{which} {np.exp(np.mean(found)):.2f}" for which, found in ratios.items())
        + "."
    )


JUDGES = {
    "nq301_llmjudge": ("bem", "davinci", "lexical", "f1"),
    "pandalm_pairwise": ("gpt35", "pandalm7b"),
}
"""Judges of answers, of which each is evaluated by how the others judge."""


def judges(name: str) -> tuple[IntArray, IntArray]:
    """Return the verdicts (N, J) of a file's judges, 1 at ½ or above, and people's (N,)."""
    import pyarrow.parquet as pq

    table = pq.read_table(helpers.DATA / f"{name}.parquet")
    columns = [np.asarray(table[column].to_numpy()) for column in (*JUDGES[name], "z")]
    verdicts = (np.column_stack(columns) >= 0.5).astype(np.int64)
    return verdicts[:, :-1], verdicts[:, -1]


def report_files() -> Iterator[str]:
    """Yield the lines of the page on files of judges and of models."""
    yield "| file | judge | labels | ours | plain share | agree with people |"
    yield "|---|---|---|---|---|---|"
    for name, names in JUDGES.items():
        verdicts, truth = judges(name)
        for own, judge in enumerate(names):
            right = (verdicts[:, own] == truth).astype(float)
            others = np.delete(verdicts, own, axis=1)
            ours, share = agreement(verdicts[:, own], others), (others == verdicts[:, [own]]).mean(axis=1)
            for called, n in {"50": 50, "100": 100, "20 %": int(0.2 * len(truth))}.items():
                row = f"{worth(ours, right, n):.2f} | {worth(share, right, n):.2f} | {right.mean():.3f}"
                yield f"| {name} | {judge} | {called} | {row} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", action="store_true", help="files of judges instead, from ../shared/data")
    parser.add_argument("--pools", type=int, default=3)
    parser.add_argument("--draws", type=int, default=60)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.files:
        lines = [
            "# Other judges' verdicts as a proxy",
            "",
            "`python -m benchmarks.peer_agreement --files`",
            "",
            "What a label of the default plan is worth in labels of a simple random sample, where the share",
            "of a judge's verdicts that people share is estimated (exact design variances), by how the other",
            "judges' verdicts agree with it; 1 where no other judge agrees more than chance.",
            "",
            *report_files(),
        ]
        text = "\n".join(lines) + "\n"
        RESULTS.with_name("peer_agreement_files.md").write_text(text)
        print(text)
        return
    lines = [
        "# Other models' answers as a proxy",
        "",
        f"`python -m benchmarks.peer_agreement --pools {options.pools} --draws {options.draws}`",
        "",
        f"{options.pools} pools of {MODELS} classifiers each; every fourth model is evaluated by the others.",
        "What a label of the default plan is worth in labels of a simple random sample (exact design",
        "variances; geometric means, and the least of all): by `peer_agreement` (ours), by the plain share",
        "of equal answers, by the model's own confidence. A proxy that cannot be made leaves a simple random",
        f"sample, worth 1. A worth above {MOST:g} counts as {MOST:g}.",
        f"Coverage of the default interval of 95 %: {options.draws} draws for each model of the first pool.",
        "",
        *report(options.pools, options.draws),
    ]
    RESULTS.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
