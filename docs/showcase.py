"""Runs the complete studies of the showcase: `python docs/showcase.py [classifier] [judge] [leaderboard]`.

Each begins with raw predictions of models that are trained here, on images that scikit-learn bundles, and ends with a
report. What people would answer is filled in from the images' true digits. A study is written as docs/showcase/NAME.md,
with all that was typed and printed, and its report next to it.
"""

from __future__ import annotations

import csv
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from stratal.simulation.demonstration import DATA_SEED, TRAINING_IMAGES, make_data, write_data
from stratal.study import open_study

PLACE = Path(__file__).resolve().parent / "showcase"
SLIPS = 0.03
"""How often each of the two annotators errs."""

Labels = Mapping[str, str]


class Page:
    """A page in the making: words, and lines typed in a folder with what they print."""

    def __init__(self, title: str) -> None:
        self.folder, self.parts = Path(tempfile.mkdtemp()), [f"# {title}"]

    def says(self, text: str) -> None:
        """Add a paragraph."""
        self.parts.append(text)

    def runs(self, line: str, most: int = 16, show: bool = True) -> str:
        """Type a line, and show it with the first lines that it prints."""
        environment = os.environ | {"COLUMNS": "92"}
        words = [sys.executable, "-m", *shlex.split(line)]
        done = subprocess.run(words, cwd=self.folder, env=environment, check=True, capture_output=True, text=True)
        printed = [text.rstrip() for text in done.stdout.rstrip().splitlines()]
        shown = [*printed[:most], *(["…"] if len(printed) > most else [])]
        if show:
            self.parts.append("```console\n" + "\n".join([f"$ {line}", *shown]) + "\n```")
        return done.stdout

    def labels(self, table: str, truth: Labels) -> None:
        """Fill in a table to label as people would."""
        path = self.folder / table
        with path.open(encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        with path.open("w", encoding="utf-8", newline="") as stream:
            filled = csv.DictWriter(stream, list(rows[0]))
            filled.writeheader()
            filled.writerows(row | {"label": truth[row["id"]]} for row in rows)

    def write(self, name: str, report: str | None = "report.html") -> None:
        """Write the page, and copy its report."""
        PLACE.mkdir(exist_ok=True)
        if report is not None:
            (PLACE / f"{name}-report.html").write_text((self.folder / report).read_text())
            self.parts.append(f"[The report]({name}-report.html){{ .md-button }}")
        self.parts.append(f"Written by `python docs/showcase.py {name}`.")
        (PLACE / f"{name}.md").write_text("\n\n".join(self.parts) + "\n")


def first(printed: str) -> str:
    """Return the line of the answer."""
    return printed.splitlines()[0]


def random_labels(page: Page, draw: str, truth: Labels, estimate: str) -> str:
    """Return what the same number of random labels says."""
    page.runs(f"{draw} --design simple-random --seed 7 --output random/", show=False)
    page.labels("random/to_label.csv", truth)
    return first(page.runs(f"stratal estimate random/sample.parquet random/to_label.csv {estimate}", show=False))


def classifier() -> None:
    """A classifier of handwritten digits: how often is it right?"""
    page, data = Page("A classifier, from its predictions to the report"), make_data()
    write_data(data, page.folder / "demo")
    truth = dict(zip(data.ids.tolist(), map(str, data.label.tolist()), strict=True))
    draw = "stratal draw demo/predictions.parquet --proxy confidence --predicted predicted --budget 150"
    page.says(
        f"A logistic regression, trained on {TRAINING_IMAGES} images, has read {len(data.ids):,} more. How often is it right, "
        "when people look at 150 of them? `demo/predictions.parquet` has one row per image: `id`, `confidence`, `predicted`."
    )
    page.says("People see the drawn images, not what the model says about them, and write the digit that they see.")
    page.runs(f"{draw} --show image --seed 7 --output audit/", 8)
    page.labels("audit/to_label.csv", truth)
    found = first(page.runs("stratal estimate audit/sample.parquet audit/to_label.csv"))
    page.runs("stratal report audit/sample.parquet audit/to_label.csv --output report.html")
    other = random_labels(page, draw, truth, "")
    right = float(data.outcomes.mean())
    page.says(f"**150 labels by stratal:** {found}. **150 random labels:** {other}. **All 1,497 labels:** {100 * right:.1f}%.")
    page.write("classifier")


def trained(models: Mapping[str, object]) -> tuple[list[str], np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Return ids, true digits, the order's images and each model's class probabilities (N, 10)."""
    images, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(DATA_SEED).permutation(len(digits))
    training, rest = order[:TRAINING_IMAGES], np.sort(order[TRAINING_IMAGES:])
    found = {name: model.fit(images[training], digits[training]).predict_proba(images[rest]) for name, model in models.items()}
    return [f"digit-{k:04d}" for k in rest], digits[rest], images[rest], found


def judge() -> None:
    """A judge and two annotators: may the judge be believed?"""
    page = Page("A judge and two annotators")
    ids, digits, _, found = trained(
        {"model": DecisionTreeClassifier(random_state=0), "judge": LogisticRegression(max_iter=5000)}
    )
    answers, beliefs = found["model"].argmax(axis=1), found["judge"]
    verdicts = np.where(beliefs.argmax(axis=1) == answers, "Pass", "Fail")
    score = beliefs[np.arange(len(ids)), answers]
    pq.write_table(
        pa.table({"id": ids, "answer": answers, "judge": verdicts, "judge_score": score}), page.folder / "answers.parquet"
    )
    page.says(
        "A decision tree reads digits; a second model, the *judge*, says whether each answer passes, and how sure it is. "
        "Can the judge be trusted, and how often is the tree right? Two annotators, who each err on 3% of the items, label 240 "
        "of 1,497 answers, a third of them both."
    )
    page.runs("stratal draw answers.parquet --proxy judge_score --by judge --show answer --budget 240 --seed 7 --output audit/", 6)
    question = "--question 'Is the digit read correctly?' --choices Pass,Fail --annotators ann,bob --overlap .33"
    page.runs(f"stratal study new audit/ --output study/ {question}", 6)
    right = dict(zip(ids, np.where(answers == digits, "Pass", "Fail").tolist(), strict=True))
    rng, other = np.random.default_rng(1), {"Pass": "Fail", "Fail": "Pass"}
    with open_study(page.folder / "study") as study:
        for name in ("ann", "bob"):
            while (item := study.next_item(name)) is not None:
                answer = right[item.id]
                study.submit(name, item.id, other[answer] if rng.random() < SLIPS else answer, seconds=5)
    page.runs("stratal study status study/", 4)
    page.runs("stratal estimate study/ --judge judge", 20)
    page.runs("stratal report study/ --judge judge --output report.html")
    draw = "stratal draw answers.parquet --proxy judge_score --budget 240"
    with_judge = random_labels(page, draw, right, "")
    averaged = first(
        page.runs("stratal estimate random/sample.parquet random/to_label.csv --estimator horvitz-thompson", show=False)
    )
    share = float(np.mean(answers == digits))
    page.says(
        "For comparison, 240 random labels of the same answers, all without annotator errors.\n\n"
        f"- Averaged: {averaged}\n- With the judge's score in the estimate: {with_judge}\n"
        f"- All 1,497 labels: {100 * share:.1f}%\n\n"
        "The judge's score makes random labels more precise too; the strata decide which answers get the labels."
    )
    page.write("judge")


def leaderboard() -> None:
    """A leaderboard of 20 models, until the winner is known."""
    page, models = Page("A leaderboard of 20 models"), {}
    for k in (1, 3, 5, 9, 15):
        models[f"neighbours_{k}"] = KNeighborsClassifier(k)
    for c in (1e-4, 1e-3, 1e-2, 1.0):
        models[f"logistic_{c:g}".replace("-", "_").replace(".", "_")] = LogisticRegression(C=c, max_iter=5000)
    for depth in (4, 6, 8, 12):
        models[f"tree_{depth}"] = DecisionTreeClassifier(max_depth=depth, random_state=0)
        models[f"forest_{depth}"] = RandomForestClassifier(60, max_depth=depth, random_state=0)
    for depth in (6, 12):
        models[f"extra_trees_{depth}"] = ExtraTreesClassifier(60, max_depth=depth, random_state=0)
    models["bayes"] = GaussianNB()
    assert len(models) == 20
    ids, digits, _, found = trained(models)
    columns = {f"answer_{name}": beliefs.argmax(axis=1) for name, beliefs in found.items()}
    pq.write_table(pa.table({"id": ids, **columns}), page.folder / "answers.parquet")
    truth = dict(zip(ids, map(str, digits.tolist()), strict=True))
    page.says(
        "Twenty classifiers have each read 1,497 digits; the answers of each are in a column `answer_…`. Which one is best? Only images on which models "
        "that may still win disagree are labelled, until one is left or the rest are within one point of the best."
    )
    page.runs("stratal select answers.parquet --answers 'answer_*' --seed 7 --output round1/", 20)
    for number in range(1, 40):
        page.labels(f"round{number}/to_label.csv", truth)
        tables = " ".join(f"--labels round{k}/to_label.csv" for k in range(1, number + 1))
        line = f"stratal select --extend round{number}/ {tables}"
        again = page.runs(f"{line} --output round{number + 1}/", 20, show=number == 1)
        if not (page.folder / f"round{number + 1}" / "to_label.csv").exists():
            page.says(f"After {number} rounds:")
            page.parts.append("```console\n" + f"$ {line}\n" + again.rstrip() + "\n```")
            break
    best = sorted(((float(np.mean(b.argmax(axis=1) == digits)), name) for name, b in found.items()), reverse=True)[:3]
    page.says("**With all 1,497 labels:** " + ", ".join(f"{name} {100 * share:.1f}%" for share, name in best) + ".")
    page.write("leaderboard", report=None)


STUDIES: dict[str, Callable[[], None]] = {"classifier": classifier, "judge": judge, "leaderboard": leaderboard}

if __name__ == "__main__":
    for name in sys.argv[1:] or STUDIES:
        STUDIES[name]()
