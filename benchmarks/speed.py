"""The table of required speeds, measured: each row in five runs, with minimum, median and maximum.

    python -m benchmarks.speed --ssepy PYTHON --ppi PYTHON [--rows NAME,…] [--repeats 5] [--gather]

A row is measured against its peer in the same run, each side in a process of its own, in turn. `--ssepy` and
`--ppi` are Python interpreters that have ssepy 0.1.1 (and pandas) and ppi-python 0.2.3. Rows that are not
chosen keep the figures of their last run, so that the table can be measured in pieces. `--list` prints the
names of the rows, `--gather` measures nothing. Seconds are those of the clock: run it on an idle machine.
Writes benchmarks/results/speed.json and speed.md.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from benchmarks import limits, main_job, regression, several, simulation, start, tables
from benchmarks.helpers import circumstances

import stratal
from stratal.arrays import AnyArray
from stratal.strata import allocate_several

RESULTS = Path(__file__).parent / "results" / "speed.md"
FIGURES = RESULTS.with_suffix(".json")
STRATAL = [sys.executable, "-m", "stratal"]
NUMPY_AND_SCIPY = [sys.executable, "-c", "import numpy, scipy.special"]
LABELS_OF_COMMAND = 10_000
MODELS, ITEMS = 100, 1_000_000
ROUNDS = 5
REPLICATES = 10_000


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of the table.

    Parameters
    ----------
    what : str
    unit : str
    required : float
        Bound of the median.
    at_least : bool
        Whether figures must not be below the bound; else not above it.
    figures : list of float
        One for each run.
    note : str
    measured : str
        Date and machine.
    """

    what: str
    unit: str
    required: float
    figures: list[float]
    at_least: bool = False
    note: str = ""
    measured: str = ""

    @property
    def is_met(self) -> bool:
        """Whether the median is within the bound."""
        median = statistics.median(self.figures)
        return median >= self.required if self.at_least else median <= self.required

    def line(self) -> str:
        """Return the line of the table."""
        low, median, high = min(self.figures), statistics.median(self.figures), max(self.figures)
        sign = "≥" if self.at_least else "≤"
        shown = " | ".join(
            f"{value:.0f}" if value >= 100 else f"{value:.3g}" for value in (low, median, high)
        )
        verdict = (
            "met"
            if self.is_met
            else f"**{max(median, self.required) / min(median, self.required):.3g} times off**"
        )
        return f"| {self.what} | {self.unit} | {shown} | {sign} {self.required:g} | {verdict} |"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a measurement needs.

    Parameters
    ----------
    repeats : int
    ssepy, ppi : str, optional
        Interpreters of the peers.
    folder : Path
        Where files are written; those of tables are kept.
    """

    repeats: int
    ssepy: str | None
    ppi: str | None
    folder: Path

    def peer(self, name: str) -> str:
        """Return the interpreter of a peer."""
        interpreter = self.ssepy if name == "ssepy" else self.ppi
        if interpreter is None:
            raise SystemExit(f"this row needs --{name} PYTHON")
        return interpreter


def clock(command: list[str], folder: Path | None = None) -> float:
    """Return the seconds of a process by the clock."""
    before = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - before


def peak(command: list[str], folder: Path) -> tuple[float, float]:
    """Return the seconds of a process by the clock, and its peak memory in GiB."""
    before = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return time.perf_counter() - before, usage.ru_maxrss / 2**20


def main_job_rows(setting: Setting, size: int, required: float) -> dict[str, Row]:
    """Measure stratify, allocate, draw and estimate on arrays against ssepy."""
    budget = main_job.budget_of(size)
    ratios = []
    memory = []
    for _ in range(setting.repeats):
        ours = main_job.measure(sys.executable, main_job.OURS, size, budget)
        theirs = main_job.measure(setting.peer("ssepy"), main_job.PEER, size, budget)
        ratios.append(theirs["seconds"] / ours["seconds"])
        memory.append(ours["peak"] / theirs["peak"])
    what = f"main job, N = {size:,}, n = {budget:,}"
    rows = {"time": Row(what=what, unit="× ssepy's speed", required=required, at_least=True, figures=ratios)}
    if size >= 10_000_000:
        rows["memory"] = Row(what=what, unit="peak memory / ssepy's", required=0.25, figures=memory)
    return rows


def table_rows(setting: Setting, engine: str, units: int, most_ratio: float, most: float) -> dict[str, Row]:
    """Measure plan and draw of a Parquet table against the bare queries of the engine."""
    path = tables.table_path(setting.folder, units, text_ids=False)
    pairs = []
    for number in range(setting.repeats):
        sides = ("bare", "stratal") if number % 2 == 0 else ("stratal", "bare")
        pairs.append({side: tables.in_process(f"{side} {engine}", path, setting.folder) for side in sides})
    what = f"Parquet, N = {units:,}, {engine}: plan and draw"
    memory = [pair["stratal"][tables.MEMORY] for pair in pairs]
    return {
        "time": Row(
            what=what, unit="time / bare queries", required=most_ratio, figures=[*map(tables.ratio, pairs)]
        ),
        "memory": Row(what=what, unit="peak memory, GiB", required=most, figures=memory),
    }


def replicate_rows(setting: Setting) -> dict[str, Row]:
    """Measure a replicate of a simulation against ssepy."""
    estimator = ("horvitz-thompson",)
    without = []
    with_interval = []
    for _ in range(setting.repeats):
        theirs = simulation.peer_time(setting.peer("ssepy"))
        without.append(theirs / simulation.replicate_time(estimator, (), 100_000))
        with_interval.append(theirs / simulation.replicate_time(estimator, ("auto",), 30_000))
    what = "Monte Carlo replicate, N = 10,000, n = 100, HT"
    return {
        "estimate": Row(what=what, unit="× ssepy's speed", required=300.0, at_least=True, figures=without),
        "interval": Row(
            what=f"{what}, with interval",
            unit="× ssepy's speed",
            required=100.0,
            at_least=True,
            figures=with_interval,
        ),
    }


def regression_rows(setting: Setting, kind: str) -> dict[str, Row]:
    """Measure a regression with its interval, warm, against ppi-python."""
    case = (kind, 10_000, 5)
    ratios = []
    floors = []
    for _ in range(setting.repeats):
        ours = regression.fresh(sys.executable, "own", case)
        theirs = regression.fresh(setting.peer("ppi"), "peer", case)
        floor = regression.fresh(sys.executable, "floor", case)
        ratios.append(theirs["warm"] / ours["warm"])
        floors.append(theirs["warm"] / floor["warm"])
    most = statistics.median(floors)
    note = (
        f"{kind}: the NumPy operations of the same method for one stratum, without checks, strata, other "
        f"designs and notes, are {most:.3g} times as fast as ppi-python, which is about the most that can be "
        "reached"
    )
    what = f"{kind} regression with interval, N = 10,000, d = 5, n = 1,000, warm, one thread"
    row = Row(what=what, unit="× ppi-python's speed", required=10.0, at_least=True, figures=ratios, note=note)
    return {"time": row}


def start_rows(setting: Setting) -> dict[str, Row]:
    """Measure commands on a small file against the import of NumPy and SciPy, in turn."""
    commands = ("stratal plan", "stratal draw", "stratal estimate")
    ratios: dict[str, list[float]] = {name: [] for name in commands}
    help_seconds = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start.files(folder)
        for _ in range(setting.repeats + 1):
            floor = clock(NUMPY_AND_SCIPY)
            for command in commands:
                seconds, _ = start.run(start.CASES[command][1], folder)
                ratios[command].append(seconds / floor)
            help_seconds.append(start.run(start.CASES["stratal --help"][1], folder)[0])
    rows = {
        command: Row(
            what=f"`{command}` on {start.ROWS:,} rows, start to end",
            unit="time / `import numpy, scipy.special`",
            required=2.2,
            figures=figures[1:],
        )
        for command, figures in ratios.items()
    }
    rows["help"] = Row(what="`stratal --help`", unit="s", required=0.15, figures=help_seconds[1:])
    return rows


def group_rows(setting: Setting, levels: int, most: float) -> dict[str, Row]:
    """Measure `estimate --by` with many levels, half of the units labelled."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sample, labels = labelled_groups(folder, levels)
        command = [*STRATAL, "estimate", str(sample), str(labels), "--by", "kind"]
        runs = [peak(command, folder) for _ in range(setting.repeats)]
    what = f"`estimate --by`, {levels:,} levels, {levels * limits.LABELS_PER_LEVEL:,} labels"
    return {
        "time": Row(what=what, unit="s", required=most, figures=[seconds for seconds, _ in runs]),
        "memory": Row(
            what=what,
            unit="peak memory, GiB",
            required=0.25 + 1e-5 * levels,
            figures=[memory for _, memory in runs],
            note="memory: 0.25 GiB and 10 kB for each level",
        ),
    }


def labelled_groups(folder: Path, levels: int) -> tuple[Path, Path]:
    """Write a sample of units of a fine category and its labels; return both files."""
    file, output = folder / "fine.parquet", folder / "drawn"
    pyarrow.parquet.write_table(limits.fine(levels), file)
    budget = str(levels * limits.LABELS_PER_LEVEL)
    options = ["--id", "id", "--proxy", "score", "--by", "kind", "--budget", budget]
    clock([*STRATAL, "draw", str(file), *options, "--output", str(output)])
    labels = output / "to_label.csv"
    fill_in(labels)
    return output / "sample.parquet", labels


def fill_in(labels: Path) -> None:
    """Write a label to every drawn unit: four of five are 1."""
    ids = [line.partition(",")[0] for line in labels.read_text(encoding="utf-8").splitlines()[1:]]
    answers = "".join(f"{unit},{number % 5 > 0:d}\n" for number, unit in enumerate(ids))
    labels.write_text(f"id,label\n{answers}", encoding="utf-8")


def model_answers(models: int, items: int) -> tuple[dict[str, AnyArray], AnyArray]:
    """Return the answers of models that are right on 70 to 90 % of the items, and the classes."""
    random = np.random.default_rng(0)
    names = np.array(list("abcde"))
    truth = random.integers(0, len(names), items)
    answers = {}
    for model in range(models):
        is_right = random.random(items) < 0.7 + 0.2 * model / models
        answers[f"m{model}"] = names[np.where(is_right, truth, random.integers(0, len(names), items))]
    return answers, names[truth]


def selection_rows(setting: Setting, models: int = MODELS, items: int = ITEMS) -> dict[str, Row]:
    """Measure rounds of a selection: labels of a round in, the next round out."""
    answers, truth = model_answers(models, items)
    population = stratal.Population.from_arrays(groups=answers)
    before = time.perf_counter()
    selection = stratal.select(population, answers=list(answers), indifference=0.0, seed=1)
    first = time.perf_counter() - before
    seconds: list[float] = []
    while len(seconds) < setting.repeats and not selection.done:
        labels = {unit: truth[unit] for unit in selection.sample.ids.tolist()}
        before = time.perf_counter()
        selection = selection.update(labels)
        seconds.append(time.perf_counter() - before)
    row = Row(
        what=f"`stratal.select`, {models} models, {items:,} items: a round",
        unit="s",
        required=2.0,
        figures=seconds,
        note=f"select: the first call, which reads all answers, took {first:.0f} s",
    )
    return {"round": row}


def simulation_file(folder: Path) -> Path:
    """Write 10,000 units with a score, the outcome, an answer of two classes and the class."""
    random = np.random.default_rng(0)
    size = 10_000
    score = random.beta(5, 1.5, size)
    is_right = random.random(size) < score
    answer = np.where(random.random(size) < 0.2, "match", "other")
    label = np.where(is_right, answer, np.where(answer == "match", "other", "match"))
    columns = {"id": np.arange(size), "score": score, "right": is_right.astype(int)}
    file = folder / "simulated.parquet"
    pyarrow.parquet.write_table(pa.table(columns | {"answer": answer, "label": label}), file)
    return file


def simulate_rows(setting: Setting, kind: str, most: float) -> dict[str, Row]:
    """Measure the command `simulate` with 10,000 replicates of the default plan of 100 labels."""
    options = ["--proxy", "score", "--replicates", str(REPLICATES), "--budget", "100"]
    if kind == "F1":
        options += ["--outcome", "label", "--predicted", "answer", "--estimand", "f1:match"]
        options += ["--design", "planned"]
    else:
        options += ["--outcome", "right", "--design", "k-means:10:robust"]
    with tempfile.TemporaryDirectory() as name:
        file = simulation_file(Path(name))
        seconds = [clock([*STRATAL, "simulate", str(file), *options]) for _ in range(setting.repeats)]
    what = f"`simulate`, {REPLICATES:,} replicates with intervals, {kind}"
    return {"time": Row(what=what, unit="s", required=most, figures=seconds)}


# What a user of pandas and ssepy writes; the labels are those of the drawn rows.
PEER_OF_COMMANDS = """
import resource, sys
import numpy as np, pandas as pd
from sklearn.cluster import KMeans
from ssepy import ModelPerformanceEvaluator
proxy = pd.read_csv(sys.argv[1])["score"].to_numpy()
evaluator = ModelPerformanceEvaluator(Yh=proxy, budget=int(sys.argv[2]))
evaluator.stratify_data(KMeans(n_clusters=10, random_state=0), X=proxy)
evaluator.allocate_budget(allocation_type="neyman")
drawn = evaluator.sample(sampling_method="ssrs")
labels = np.full(len(proxy), np.nan)
labels[drawn] = np.arange(len(drawn)) % 5 > 0
evaluator.compute_estimate(Yl=labels, estimator="ht")
"""


def command_rows(setting: Setting, units: int = 10_000_000) -> dict[str, Row]:
    """Measure plan, draw and estimate on a CSV file against pandas and ssepy."""
    file = setting.folder / f"predictions-{units}.csv"
    if not file.exists():
        random = np.random.default_rng(0)
        columns = {"id": np.arange(units), "score": np.round(random.beta(5, 1.5, units), 6)}
        pyarrow.csv.write_csv(pa.table(columns), file)
    planned = [str(file), "--id", "id", "--proxy", "score", "--budget", str(LABELS_OF_COMMAND)]
    output = setting.folder / "drawn"
    labels = output / "to_label.csv"
    ratios, seconds, memory, peers = [], [], [], []
    for _ in range(setting.repeats):
        shutil.rmtree(output, ignore_errors=True)
        runs = [peak([*STRATAL, "plan", *planned], setting.folder)]
        runs.append(peak([*STRATAL, "draw", *planned, "--output", str(output)], setting.folder))
        fill_in(labels)
        runs.append(peak([*STRATAL, "estimate", str(output / "sample.parquet"), str(labels)], setting.folder))
        peer = [setting.peer("ssepy"), "-c", PEER_OF_COMMANDS, str(file), str(LABELS_OF_COMMAND)]
        theirs, _ = peak(peer, setting.folder)
        peers.append(theirs)
        seconds.append(sum(run[0] for run in runs))
        memory.append(max(run[1] for run in runs))
        ratios.append(theirs / seconds[-1])
    what = f"commands plan, draw and estimate on a CSV file, N = {units:,}, n = {LABELS_OF_COMMAND:,}"
    query = f"SELECT count(*), sum(score) FROM read_csv('{file}')"
    parsing = clock([sys.executable, "-c", f"import duckdb; duckdb.sql({query!r}).fetchall()"])
    most = statistics.median(peers) / (2.0 * parsing)
    note = (
        f"commands: {statistics.median(seconds):.1f} s in all. DuckDB alone needs {parsing:.1f} s to read "
        "the file once; plan and draw both read it, and check that ids are unique. To read it twice, and "
        f"nothing else, is {most:.0f} times as fast as the peer"
    )
    return {
        "time": Row(
            what=what,
            unit="× pandas' and ssepy's speed",
            required=20.0,
            at_least=True,
            figures=ratios,
            note=note,
        ),
        "memory": Row(what=what, unit="peak memory, GiB", required=1.0, figures=memory),
    }


def demo_rows(setting: Setting) -> dict[str, Row]:
    """Measure the demonstration, which writes no files unless told to."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seconds = [clock([*STRATAL, "demo"], folder) for _ in range(setting.repeats)]
        written = list(folder.iterdir())
    assert not written
    return {"time": Row(what="`stratal demo`", unit="s", required=3.0, figures=seconds)}


def pickle_rows(setting: Setting, units: int = 1_000_000) -> dict[str, Row]:
    """Measure a pickled estimate of 100 labels."""
    sizes = []
    for seed in range(setting.repeats):
        random = np.random.default_rng(seed)
        population = stratal.Population.from_arrays(proxy=random.beta(5, 1, units))
        sample = stratal.plan(population, 100).draw(seed=seed)
        labels = (random.random(sample.size) < 0.8).astype(float)
        sizes.append(len(pickle.dumps(stratal.estimate(sample, labels))) / 1000)
    row = Row(
        what=f"a pickled estimate of 100 labels, N = {units:,}", unit="kB", required=50.0, figures=sizes
    )
    return {"size": row}


def several_rows(setting: Setting) -> dict[str, Row]:
    """Measure the allocation for 50 estimands in 10,000 strata, and its duality gap."""
    seconds, gaps = [], []
    for seed in range(setting.repeats):
        sizes, deviations, wanted = several.generated(seed, 50, 10_000, "heavy")
        budget = int(np.minimum(sizes, 2).sum() * 1.7)
        before = time.perf_counter()
        allocation = allocate_several(sizes, deviations, budget, standard_errors=wanted)
        seconds.append(time.perf_counter() - before)
        gaps.append(100 * allocation.gap)
    what = "allocation for 50 estimands, 10,000 strata"
    return {
        "time": Row(what=what, unit="s", required=0.5, figures=seconds),
        "gap": Row(what=what, unit="duality gap, %", required=0.5, figures=gaps),
    }


MEASUREMENTS: dict[str, Callable[[Setting], dict[str, Row]]] = {
    "main-1e6": lambda setting: main_job_rows(setting, 1_000_000, 32.0),
    "main-1e7": lambda setting: main_job_rows(setting, 10_000_000, 60.0),
    "tables-duckdb": lambda setting: table_rows(setting, "duckdb", 100_000_000, 1.2, 1.0),
    "tables-spark": lambda setting: table_rows(setting, "spark", 10_000_000, 1.5, 2.0),
    "replicates": replicate_rows,
    "linear": lambda setting: regression_rows(setting, "linear"),
    "logistic": lambda setting: regression_rows(setting, "logistic"),
    "start": start_rows,
    "groups-1e4": lambda setting: group_rows(setting, 10_000, 2.0),
    "groups-1e5": lambda setting: group_rows(setting, 100_000, 10.0),
    "select": selection_rows,
    "simulate-means": lambda setting: simulate_rows(setting, "means", 3.0),
    "simulate-f1": lambda setting: simulate_rows(setting, "F1", 10.0),
    "commands": command_rows,
    "demo": demo_rows,
    "pickle": pickle_rows,
    "several": several_rows,
}
"""The rows of the table by their names, in its order."""


REASONS = {
    "linear": "two fits of λ and the correction of the proxy's bias use arrays of 1,000 labels, where the "
    "calls take longer than the arithmetic",
    "logistic": "six evaluations of the loss over all units, and two fits of λ on arrays of 1,000 labels",
    "start": "`plan` and `draw` compare numbers of strata",
    "select": "a round compares 10⁸ answers for the sizes of the units and for the bets on each difference",
    "simulate-f1": "of 5.7 s of the processor, 3.1 are the draws and 1.8 the plan",
    "commands": "a twentieth of the peer's time is 0.8 s for three commands",
}
"""Why a row may not be met."""


def page(measured: dict[str, dict[str, Row]]) -> str:
    """Return the page."""
    rows = [row for name in MEASUREMENTS for row in measured.get(name, {}).values()]
    met = sum(row.is_met for row in rows)
    reasons = [
        f"- {name}: {reason}."
        for name, reason in REASONS.items()
        if not all(row.is_met for row in measured.get(name, {}).values())
    ]
    return "\n".join(
        [
            "# Speed",
            "",
            "`python -m benchmarks.speed --ssepy PYTHON --ppi PYTHON`, in pieces (`--rows NAME,…`): "
            f"{'; '.join(dict.fromkeys(row.measured for row in rows))}.",
            "",
            f"{met} of {len(rows)} rows are met by the median. Seconds are those of the clock, and speeds",
            "are against the peer in the same run. Tables of 10⁹ rows and of Spark have",
            "[a page of their own](tables.md).",
            "",
            "| what | unit | minimum | median | maximum | required | |",
            "|---|---|---|---|---|---|---|",
            *(row.line() for row in rows),
            "",
            *reasons,
            *(f"- {note}" for note in dict.fromkeys(row.note for row in rows if row.note)),
            "",
        ]
    )


def stored() -> dict[str, dict[str, Row]]:
    """Return the rows that were measured before."""
    if not FIGURES.exists():
        return {}
    entries = json.loads(FIGURES.read_text(encoding="utf-8"))
    return {name: {key: Row(**row) for key, row in rows.items()} for name, rows in entries.items()}


def measure(name: str, setting: Setting) -> dict[str, Row]:
    """Measure a row, and say when."""
    rows = MEASUREMENTS[name](setting)
    return {key: Row(**asdict(row) | {"measured": day_and_machine()}) for key, row in rows.items()}


def day_and_machine() -> str:
    """Return the date and the versions, without what differs between pieces."""
    return circumstances().partition(";")[0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", help="NAME,…; all unless given")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--ssepy")
    parser.add_argument("--ppi")
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()) / "stratal-speed")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--gather", action="store_true")
    options = parser.parse_args()
    if options.list:
        print("\n".join(MEASUREMENTS))
        return
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled once
    options.directory.mkdir(parents=True, exist_ok=True)
    setting = Setting(repeats=options.repeats, ssepy=options.ssepy, ppi=options.ppi, folder=options.directory)
    measured = stored()
    names = options.rows.split(",") if options.rows else [*MEASUREMENTS]
    for name in [] if options.gather else names:
        measured[name] = measure(name, setting)
        for row in measured[name].values():
            print(row.line(), flush=True)
        entries = {key: {part: asdict(row) for part, row in rows.items()} for key, rows in measured.items()}
        FIGURES.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        RESULTS.write_text(page(measured), encoding="utf-8")
    RESULTS.write_text(page(measured), encoding="utf-8")


if __name__ == "__main__":
    main()
