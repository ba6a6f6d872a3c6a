"""The same first answer by six tools: what is typed, and the seconds from pressing Enter to the interval.

    python benchmarks/first_answer.py --peers PYTHON --ssepy PYTHON --glide PYTHON [--runs 5]
    python benchmarks/first_answer.py --roles

`--peers` has ppi-python 0.2.3, truescore 0.7.4 and evalstats 0.3.3 installed, `--ssepy` ssepy 0.1.1 (and
scikit-learn, which it needs and does not install), `--glide` glide-py 0.10.0 (Python 3.12). A file of 5,000
answers has a judge's verdict on each and a person's on 300 drawn at random; wanted is the mean of the
person's verdicts over all answers, with a 95 % interval. ssepy draws its own 300 and reads their labels. A
line is a line that the user types; every run starts a process of its own.

`--roles` has ten people arrive with files made anew by a seed: how many commands or lines of Python they
give, of which pasted from a "Next:" line, how much is printed, and whether all of it worked at the first try,
with an interval that holds the true value.

Writes benchmarks/results/first_answer.md, or its last part.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "first_answer.md"

PPI = """
import numpy as np
from ppi_py import ppi_mean_ci
table = np.genfromtxt("answers.csv", delimiter=",", names=True)
labelled = ~np.isnan(table["label"])
print(ppi_mean_ci(table["label"][labelled], table["judge"][labelled], table["judge"][~labelled], alpha=0.05))
"""

SSEPY = """
import numpy as np
from sklearn.cluster import KMeans
from ssepy import ModelPerformanceEvaluator
table = np.genfromtxt("score.csv", delimiter=",", names=True)
evaluator = ModelPerformanceEvaluator(Yh=table["score"], budget=300)
evaluator.stratify_data(KMeans(n_clusters=10, random_state=0, n_init="auto"), X=table["score"])
evaluator.allocate_budget(allocation_type="neyman")
drawn = evaluator.sample("ssrs")
estimate, variance = evaluator.compute_estimate(table["truth"][drawn], estimator="ht")
print(estimate - 1.96 * variance ** 0.5, estimate + 1.96 * variance ** 0.5)
"""

EVALSTATS = """
import pandas as pd
import evalstats as es
table = pd.read_csv("answers.csv")
print(es.judge_debias_mean_ci(table["judge"], table["label"]))
"""


GLIDE = """
import numpy as np
from glide.estimators import PPIMeanEstimator
table = np.genfromtxt("answers.csv", delimiter=",", names=True)
print(PPIMeanEstimator().estimate(table["label"], table["judge"]))
"""

HEAD = """# The first answer, by six tools

`python benchmarks/first_answer.py --peers PYTHON --ssepy PYTHON --glide PYTHON`, on 2 cores shared with
other work (load {load:.0f}): medians of {runs} runs after one that is not counted, each a process of its own.
5,000 answers, a judge right on 85 %, 300 labels; the truth is {truth:.4f}. The clock depends on the load; the
processor's seconds hardly do.

| tool | lines typed | what | clock, s | processor, s | begins to print |
|---|---|---|---|---|---|
"""


def write_files(folder: Path) -> float:
    """Write the files into a folder, and return the true mean of the population."""
    rng = np.random.default_rng(0)
    score = rng.beta(4, 1.5, 5000)
    truth = (rng.random(5000) < score).astype(int)
    judge = np.where(rng.random(5000) < 0.85, truth, 1 - truth)
    known = np.isin(np.arange(5000), rng.choice(5000, 300, replace=False))
    rows = zip(
        range(5000), judge, ["" if not k else t for k, t in zip(known, truth, strict=True)], strict=True
    )
    with (folder / "answers.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["id", "judge", "label"], *rows])
    with (folder / "score.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["id", "score", "truth"], *zip(range(5000), score, truth, strict=True)])
    return float(truth.mean())


def seconds(command: list[str], folder: Path, runs: int) -> tuple[float, float, str]:
    """Return the medians of a command's seconds on the clock and on the processor, and what it printed."""
    clock, processor = [], []
    # Every tool may keep its compiled modules, as on a user's machine.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(runs + 1):
        start, before = time.perf_counter(), used()
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, env=environment
        )
        clock.append(time.perf_counter() - start)
        processor.append(used() - before)
        if not done.stdout:  # truescore's exit status is 1 where it found something
            raise SystemExit(f"{command}: {done.stdout}{done.stderr}")
    return statistics.median(clock[1:]), statistics.median(processor[1:]), done.stdout.strip()


def used() -> float:
    """Return the processor seconds of all processes that were started and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def lines(program: str) -> int:
    """Return the lines of a program that are typed."""
    return len([line for line in program.splitlines() if line.strip()])


# ---- ten people with files of their own


@dataclass
class Visit:
    """What one of them does, in the present folder: how much is given and printed, and what failed."""

    truth: dict[str, Any] = field(default_factory=dict)
    steps: int = 0
    pasted: int = 0
    printed: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def type(self, line: str) -> str:
        """Run a command as it is typed."""
        from click.testing import CliRunner

        from stratal.cli.application import app

        done = CliRunner().invoke(app, shlex.split(line))
        self.steps += 1
        self.printed += done.stdout.splitlines()
        if done.exit_code != 0:
            self.failures.append(f"{line}: {done.exception}")
        self._label()
        return done.stdout

    def paste(self, times: int = 1) -> None:
        """Run the "Next:" lines that are printed, one after the other."""
        for _ in range(times):
            found = [line for line in self.printed if line.startswith("Next: stratal ")]
            self.pasted += 1
            self.type(found[-1].removeprefix("Next: stratal "))

    def run(self, program: str) -> None:
        """Run lines of Python, each a step."""
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said):
                exec(program, {"truth": self.truth})
        except Exception as error:
            self.failures.append(repr(error))
        self.steps += lines(program)
        self.printed += said.getvalue().splitlines()

    def _label(self) -> None:
        """Fill in the answers wherever a file asks for labels, as the annotators would."""
        for path in Path().glob("*/to_label.csv"):
            header, *rows = list(csv.reader(path.open()))
            if rows and header[-1] == "label" and not rows[0][-1]:
                write(str(path), header, [[*row[:-1], self.truth[row[0]]] for row in rows])


def write(path: str, header: list[str], rows: Any) -> None:
    """Write a CSV file."""
    with Path(path).open("w", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])


def scored(visit: Visit, rng: np.random.Generator, size: int, words: Any = ("Fail", "Pass")) -> Any:
    """Return ids and scores whose true answers the visit knows."""
    score = rng.beta(4, 1.5, size).round(4)
    right = rng.random(size) < score
    ids = [f"u{number:07d}" for number in range(size)]
    visit.truth |= dict(zip(ids, (words[int(each)] for each in right), strict=True))
    return ids, score, right


def classifier_in_pandas(visit: Visit, rng: np.random.Generator) -> float:
    ids, score, right = scored(visit, rng, 4000, (0.0, 1.0))
    write("predictions.csv", ["id", "confidence"], zip(ids, score, strict=True))
    visit.run("""
import pandas as pd
import stratal
population = stratal.Population.from_table(pd.read_csv("predictions.csv"), id="id", proxy="confidence")
sample = stratal.plan(population, budget=300).draw(seed=7)
labels = {unit: truth[unit] for unit in sample.ids}
print(stratal.estimate(sample, labels))
""")
    return float(right.mean())


def chatbot_log(visit: Visit, rng: np.random.Generator) -> float:
    ids, score, right = scored(visit, rng, 3000)
    rows = [
        {
            "id": unit,
            "messages": [{"role": "user", "content": "?"}],
            "judges": {"strict": {"score": float(s)}},
        }
        for unit, s in zip(ids, score, strict=True)
    ]
    Path("chat.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    visit.type("doctor chat.jsonl")
    visit.paste(3)
    return float(right.mean())


def evaluation_log(visit: Visit, rng: np.random.Generator) -> float:
    score = rng.beta(4, 1.5, 1500)
    right = rng.random(1500) < score
    judged = np.where(rng.random(1500) < 0.85, right, ~right)
    # The tool names a document by its number and two digests.
    visit.truth = {f"{n}-{n}-t": ("Fail", "Pass")[int(each)] for n, each in enumerate(right)}
    rows = [
        {
            "doc_id": number, "doc": {"question": f"Question {number}?"}, "target": "x", "arguments": {},
            "resps": [["y"]], "filtered_resps": ["y"], "filter": "none", "metrics": ["exact_match"],
            "doc_hash": str(number), "prompt_hash": str(number), "target_hash": "t",
            "exact_match": float(each),
        }
        for number, each in enumerate(judged)
    ]  # fmt: skip
    Path("samples_capitals.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    visit.type("doctor samples_capitals.jsonl")
    visit.paste(3)
    return float(right.mean())


def preferences(visit: Visit, rng: np.random.Generator) -> float:
    judged = rng.beta(2, 2, 1200).round(4)
    z = np.where(rng.random(1200) < 0.1, 0.5, rng.random(1200) < judged)
    ids = [f"q{number:04d}" for number in range(1200)]
    visit.truth = {
        unit: {0.0: "B", 0.5: "tie", 1.0: "A"}[float(each)] for unit, each in zip(ids, z, strict=True)
    }
    write("pairs.csv", ["pair_id", "judge"], zip(ids, judged, strict=True))
    visit.type("doctor pairs.csv")
    visit.paste(3)
    return float(z.mean())


def survey(visit: Visit, rng: np.random.Generator) -> float:
    sizes, rates = {"01": 3000, "02": 6000, "03": 1000}, {"01": 0.5, "02": 0.8, "03": 0.2}
    rows = [(f"{r}-{k}", r, int(rng.random() < rates[r])) for r in sizes for k in range(80)]
    write("sample.csv", ["ID", "REGION", "Y"], rows)
    write("sizes.csv", ["REGION", "N_h"], sizes.items())
    visit.type("estimate sample.csv --value y --chosen random-within:region --sizes sizes.csv")
    return sum(sizes[r] * rates[r] for r in sizes) / 10_000


def weekly_batches(visit: Visit, rng: np.random.Generator) -> float:
    for week in (1, 2):
        ids, score, right = scored(visit, rng, 2000)
        write(f"week{week}.csv", ["id", "score"], zip(ids, score, strict=True))
        visit.type(f"draw week{week}.csv --proxy score --budget 200 --seed {week} --output week{week}")
        visit.paste()
    return float(right.mean())


def rare_class(visit: Visit, rng: np.random.Generator) -> float:
    import pyarrow as pa
    import pyarrow.parquet as pq

    size = 2_000_000
    true = rng.random(size) < 0.002
    risk = np.where(true, rng.beta(5, 2, size), rng.beta(1, 30, size))
    called = risk > 0.4
    table = {"id": np.arange(size), "risk": risk, "answer": np.where(called, "abuse", "fine")}
    pq.write_table(pa.table(table), "messages.parquet")
    options = "--predicted answer --estimand f1:abuse,probability=risk --budget 500"
    visit.truth = _Answers({"abuse": true})
    visit.type(f"plan messages.parquet --proxy risk {options}")
    visit.paste(2)
    return float(2 * np.sum(true & called) / (np.sum(true) + np.sum(called)))


class _Answers(dict[str, Any]):
    """The class of each of two million rows, by its number."""

    def __missing__(self, unit: str) -> str:
        return "abuse" if self["abuse"][int(unit)] else "fine"


def notebook(visit: Visit, rng: np.random.Generator) -> float:
    ids, score, right = scored(visit, rng, 1000)
    write("rows.csv", ["id", "score"], zip(ids, score, strict=True))
    visit.run("""
import stratal
from stratal.study import StudyQuestion, create_study, estimate_study
population = stratal.Population.read("rows.csv", proxy="score")
sample = stratal.plan(population, budget=100).draw(seed=7)
question = StudyQuestion.of_choices("Is it right?", ["Pass", "Fail"])
study = create_study("study", sample, question, annotators=["me"])
while (item := study.next_item("me")) is not None: study.submit("me", item.id, truth[item.id])
print(estimate_study(study))
study.close()
""")
    return float(right.mean())


def planner_without_data(visit: Visit, rng: np.random.Generator) -> float | None:
    visit.type("plan --population-size 5000 --rate .9 --half-width .03")
    visit.type("plan --population-size 5000 --rate .9 --budget 400")
    return None


def pipeline(visit: Visit, rng: np.random.Generator) -> float:
    ids, score, right = scored(visit, rng, 3000)
    write("predictions.csv", ["id", "score"], zip(ids, score, strict=True))
    drawn = visit.type("draw predictions.csv --proxy score --budget 300 --seed 7 --output audit --json")
    found = visit.type("estimate audit/sample.parquet audit/to_label.csv --json")
    json.loads(drawn)
    low, high = json.loads(found)["confidence_interval"]
    visit.printed.append(f"interval {low:.4f} to {high:.4f}")
    return float(right.mean())


ROLES: tuple[Callable[[Visit, np.random.Generator], float | None], ...] = (
    classifier_in_pandas,
    chatbot_log,
    evaluation_log,
    preferences,
    survey,
    weekly_batches,
    rare_class,
    notebook,
    planner_without_data,
    pipeline,
)
ROLES_HEAD = """
## Ten people with files of their own

`python benchmarks/first_answer.py --roles`: files made anew by seed {seed}. A step is a command, or a line of
Python; labels are filled in as annotators would. The interval is that of the last answer.

| who | steps | of them pasted | lines printed | worked at the first try | interval | true value |
|---|---|---|---|---|---|---|
"""


def roles_page(seed: int) -> str:
    """Return the part of the page that tells of the ten."""
    rows, here = [], Path.cwd()
    for number, role in enumerate(ROLES):
        with tempfile.TemporaryDirectory() as name:
            os.chdir(name)
            try:
                visit = Visit()
                truth = role(visit, np.random.default_rng([seed, number]))
            finally:
                os.chdir(here)
        text = " ".join(visit.printed)
        found = [part.split(" to ") for part in text.split("interval ")[1:] if part[:1].isdigit()]
        limits = (
            []
            if truth is None or not found
            else [float(found[-1][0]), float(found[-1][1].split()[0].strip("();,"))]
        )
        held = truth is None or (bool(limits) and limits[0] <= truth <= limits[1])
        worked = (
            "yes"
            if held and not visit.failures
            else f"no: {'; '.join(visit.failures) or 'the interval misses'}"
        )
        who = role.__name__.replace("_", " ")
        shown = "–" if not limits else f"{limits[0]:.3f} to {limits[1]:.3f}"
        of_truth = "–" if truth is None else f"{truth:.3f}"
        counts = f"{visit.steps} | {visit.pasted} | {len(visit.printed)}"
        rows.append(f"| {who} | {counts} | {worked} | {shown} | {of_truth} |")
        print(rows[-1], flush=True)
    return ROLES_HEAD.format(seed=seed) + "\n".join(rows) + "\n"


def main() -> None:
    """Run them all and write the page."""
    parser = argparse.ArgumentParser()
    for peers in ("--peers", "--ssepy", "--glide"):
        parser.add_argument(peers, required="--roles" not in sys.argv)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--roles", action="store_true")
    given = parser.parse_args()
    mark = ROLES_HEAD.splitlines()[1]
    before, _, roles = RESULTS.read_text().partition(f"\n{mark}\n")
    if given.roles:
        RESULTS.write_text(before + roles_page(29))
        return
    own = "stratal estimate answers.csv --proxy judge"
    audit = "truescore audit answers.csv --judge judge --gold label"
    stratal = [sys.executable, "-m", *own.split()]
    truescore = [str(Path(given.peers).with_name("truescore")), *audit.split()[1:]]
    jobs = {
        "stratal": (1, own, stratal),
        "truescore 0.7.4": (1, audit, truescore),
        "ppi-python 0.2.3": (lines(PPI), "a program, `ppi_mean_ci`", [given.peers, "-c", PPI]),
        "evalstats 0.3.3": (
            lines(EVALSTATS),
            "a program, `judge_debias_mean_ci`",
            [given.peers, "-c", EVALSTATS],
        ),
        "glide-py 0.10.0": (lines(GLIDE), "a program, `PPIMeanEstimator`", [given.glide, "-c", GLIDE]),
        "ssepy 0.1.1": (lines(SSEPY), "a program; the interval by hand", [given.ssepy, "-c", SSEPY]),
    }
    with tempfile.TemporaryDirectory() as name:
        truth = write_files(Path(name))
        rows = []
        for tool, (typed, what, command) in jobs.items():
            clock, processor, said = seconds(command, Path(name), given.runs)
            shown = " ".join(said.split())[:90].replace("|", "\\|")
            rows.append(f"| {tool} | {typed} | {what} | {clock:.1f} | {processor:.1f} | `{shown} …` |")
            print(rows[-1])
    RESULTS.write_text(
        HEAD.format(load=os.getloadavg()[0], runs=given.runs, truth=truth)
        + "\n".join(rows)
        + "\n"
        + (f"\n{mark}\n{roles}" if roles else "")
    )


if __name__ == "__main__":
    main()
