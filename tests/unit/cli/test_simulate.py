"""`stratal simulate` from file to table and figures, and a run that is killed half-way."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.tiers import cells, sized

import stratal
from stratal.errors import InputError
from stratal.report.figures import write_figures
from stratal.simulation import SimulationTable
from stratal.simulation.demonstration import read_benchmark


@pytest.fixture
def pilot(tmp_path):
    rng = np.random.default_rng(1)
    score = rng.beta(4, 1, 800)
    right = rng.random(800) < score
    path = tmp_path / "pilot.csv"
    rows = [f"u{i:03d},{s:.6f},{int(z)}" for i, (s, z) in enumerate(zip(score, right, strict=True))]
    path.write_text("id,confidence,correct\n" + "\n".join(rows) + "\n")
    return path


def command(*words):
    from click.testing import CliRunner

    from stratal.cli.application import app

    return CliRunner().invoke(app, ["simulate", *map(str, words)], catch_exceptions=False)


USUAL = ("--outcome", "correct", "--proxy", "confidence", "--replicates", 200, "--budget", "50,100")


def test_table_figures_and_json(pilot, tmp_path):
    pytest.importorskip("matplotlib")
    output, figures = tmp_path / "table.parquet", tmp_path / "figures"
    result = command(pilot, *USUAL, "--output", output, "--figures", figures, "--json")
    found = json.loads(result.stdout)
    table = SimulationTable.from_parquet(output)

    assert result.exit_code == 0
    assert len(table) == len(found["rows"]) == 8
    assert {path.name for path in figures.iterdir()} >= {"mse.png", "coverage.png", "width.png"}
    assert len(found["written"]) == 7


def test_readable_output_names_every_design(pilot):
    result = command(pilot, *USUAL, "--design", "simple-random,k-means:5:opt-a2:5:10")

    assert result.exit_code == 0
    assert "k-means:5:opt-a2:5:10" in result.stdout


def test_budgets_that_are_no_numbers_are_refused(pilot):
    with pytest.raises(InputError, match="--budget takes whole numbers"):
        command(pilot, "--outcome", "correct", "--budget", "50,many")


def test_outcome_cannot_be_its_own_proxy(pilot):
    with pytest.raises(InputError, match="cannot be a column that predicts"):
        read_benchmark(pilot, "correct", ["correct"])


def test_a_file_without_a_proxy_can_be_simulated(pilot):
    population, z = read_benchmark(pilot, "correct")

    assert population.proxies == ()
    assert len(z) == population.size == 800


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--output", "missing/table.parquet"), "there is no directory missing"),
        (("--output", "table.csv"), "--output must be a Parquet file"),
        (("--resume", "missing/cells.parquet"), "there is no directory missing"),
        (("--workers", 0), "--workers cannot be read"),
        (("--seed", -4), "the seed must be a whole number"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_simulated(pilot, words, message, monkeypatch):
    monkeypatch.setattr("stratal.simulation.engine.run_tasks", lambda *_: pytest.fail("simulated"))
    with pytest.raises(InputError, match=message):
        command(pilot, *USUAL, *words)


def test_places_that_are_taken_are_refused(pilot, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    csv = pytest.importorskip("pyarrow.csv")
    data = tmp_path / "pilot.parquet"
    pq.write_table(csv.read_csv(pilot), data)
    before = data.read_bytes()
    with pytest.raises(InputError, match="would overwrite the data"):
        command(data, *USUAL, "--output", data)
    with pytest.raises(InputError, match="is a directory"):
        command(data, *USUAL, "--resume", tmp_path)
    with pytest.raises(InputError, match=r"pilot\.csv is not a directory"):
        command(data, *USUAL, "--figures", pilot / "figures")
    assert data.read_bytes() == before


def test_every_interval_has_its_panels(pilot, tmp_path, monkeypatch):
    figures = pytest.importorskip("matplotlib.figure")
    drawn = {}
    monkeypatch.setattr(figures.Figure, "savefig", lambda own, path, **_: drawn.update({path.stem: own.axes}))
    population, z = read_benchmark(pilot, "correct", ["confidence"])
    table = stratal.simulate(
        population, z, designs=["simple-random"], intervals=["t", "wilson"], budgets=[50], replicates=50
    )
    write_figures(table.to_dict()["rows"], tmp_path)

    titles = {name: [ax.get_title() for ax in axes if ax.lines] for name, axes in drawn.items()}
    assert titles["coverage"] == ["horvitz-thompson, t", "horvitz-thompson, wilson"]
    assert titles["mse"] == ["horvitz-thompson"]
    first, second = (ax.lines[0].get_ydata() for ax in drawn["width"])
    assert first[0] != second[0]


SCRIPT = """
import sys
import numpy as np
import stratal
rng = np.random.default_rng(3)
proxy = rng.beta(4, 1, 3000)
z = (rng.random(3000) < proxy).astype(float)
designs = [f"k-means:{k}:{rule}" for k in (3, 5, 7) for rule in ("proportional", "robust", "two-round")]
table = stratal.simulate(
    stratal.Population.from_arrays(proxy=proxy), z, designs=designs, budgets=[50, 200],
    replicates=int(sys.argv[3]), estimators=["horvitz-thompson", "ppi++"], seed=5, store=sys.argv[1],
)
table.to_parquet(sys.argv[2])
"""


def test_a_run_that_is_killed_gives_the_unbroken_table_when_started_again(tmp_path):
    store, broken, whole = (tmp_path / name for name in ("cells.parquet", "broken.parquet", "whole.parquet"))

    def words(store, output):
        return [sys.executable, "-c", SCRIPT, str(store), str(output), str(sized(1000, 4000))]

    run = subprocess.Popen(words(store, broken))
    deadline = time.monotonic() + 60
    while not store.exists() and time.monotonic() < deadline and run.poll() is None:
        time.sleep(0.01)
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert store.exists()
    assert not broken.exists()
    subprocess.run(words(store, broken), check=True)
    subprocess.run(words(tmp_path / "other.parquet", whole), check=True)

    assert SimulationTable.from_parquet(broken) == SimulationTable.from_parquet(whole)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_spark_reads_the_file(spark, pilot, tmp_path):
    tables = [tmp_path / "here.parquet", tmp_path / "spark.parquet"]
    command(pilot, *USUAL, "--output", tables[0])
    command(pilot, *USUAL, "--output", tables[1], "--engine", "spark")

    assert SimulationTable.from_parquet(tables[1]) == SimulationTable.from_parquet(tables[0])


@pytest.fixture
def answered(tmp_path):
    rng = np.random.default_rng(6)
    truth = rng.random(3000) < 0.04
    score = np.where(truth, rng.beta(5, 2, 3000), rng.beta(1, 15, 3000)).round(4)
    older = np.where(score + rng.normal(0, 0.2, 3000) > 0.5, "match", "other")
    file = tmp_path / "answered.csv"
    rows = zip(range(3000), score, np.where(score > 0.5, "match", "other"), older,
               np.where(truth, "match", "other"), (rng.random(3000) < score).astype(int),
               strict=True)  # fmt: skip
    lines = [",".join(map(str, row)) for row in rows]
    file.write_text("\n".join(["id,score,answer,older,truth,right", *lines]) + "\n")
    return file


@pytest.mark.parametrize(
    ("estimand", "truth", "gain"),
    cells(
        [
            # 3.1 in 400 replicates; 40 replicates vary by a third.
            ("f1:match,probability=score", "truth", 2),
            ("difference:answer,older", "truth", 3),
            ("quantile:.9", "right", 0),
            ("recall:match,probability=score", "truth", 1.5),
        ],
        fast=("quantile:.9",),
    ),
)
def test_an_estimand_shows_what_its_plan_would_have_saved(answered, estimand, truth, gain):
    words = [answered, "--outcome", truth, "--estimand", estimand, "--budget", "150", "--replicates", 40]
    words += ["--proxy", "score"] if truth == "right" else ["--predicted", "answer"]
    rows = json.loads(command(*words, "--json").output)["rows"]

    assert [row["design"] for row in rows] == ["simple-random", "planned", "two-round"]
    assert {row["estimator"] for row in rows} == {estimand.replace(":.9", ":0.9")}
    assert rows[1]["relative_efficiency"] > gain
    assert all(row["coverage"] > 0.85 for row in rows)


def test_the_level_of_an_estimands_interval_is_as_asked(answered):
    words = [answered, "--outcome", "truth", "--predicted", "answer", "--design", "planned", "--json"]
    words += ["--estimand", "f1:match,probability=score", "--budget", "150", "--replicates", 20]
    found = [command(*words, *more).output for more in ((), ("--confidence-level", 0.5))]
    usual, narrow = (json.loads(entry)["rows"][0] for entry in found)

    assert narrow["width"] < 0.6 * usual["width"]
    assert narrow["mse"] == usual["mse"]


def test_options_of_means_are_refused_with_an_estimand(answered):
    words = [answered, "--outcome", "truth", "--estimand", "f1:match", "--predicted", "answer"]
    with pytest.raises(InputError, match="--interval would have no effect"):
        command(*words, "--interval", "wilson")
    with pytest.raises(InputError, match="--predicted would have no effect"):
        command(answered, "--outcome", "right", "--predicted", "answer")


def test_labels_that_are_the_answers_themselves_are_refused(answered):
    with pytest.raises(InputError, match="cannot be a column that predicts"):
        command(answered, "--outcome", "answer", "--estimand", "f1:match", "--predicted", "answer")


def test_other_models_answers_are_a_proxy_of_a_benchmark(tmp_path):
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 4, 800)
    answers = np.where(rng.random((5, 800)) < 0.8, truth, rng.integers(0, 4, (5, 800)))
    rows = [
        f"u{i:03d},{int(own[0] == y)}," + ",".join(map(str, own))
        for i, (own, y) in enumerate(zip(answers.T, truth, strict=True))
    ]
    path = tmp_path / "answers.csv"
    path.write_text("id,correct,m_0,m_1,m_2,m_3,m_4\n" + "\n".join(rows) + "\n")
    options = {"predicted": "m_0", "answers": "m_*"}

    population, z = read_benchmark(path, "correct", **options)
    ratings, _ = read_benchmark(path, "correct", bounds=(0, 5), **options)
    words = ("--outcome", "correct", "--predicted", "m_0", "--answers", "m_*", "--budget", 100)
    result = command(path, *words, "--replicates", 300, "--estimator", "horvitz-thompson", "--json")

    assert population.proxy_names == ("peer_agreement",)
    assert np.array_equal(z, (answers[0] == truth).astype(float))
    assert not ratings.proxies[0].scaled
    gains = {row["design"]: row["relative_efficiency"] for row in json.loads(result.stdout)["rows"]}
    # Independent errors: four others of .85 tell nearly all.
    assert gains["k-means:10:robust"] > 2 * gains["simple-random"]


def test_a_simulation_learns_from_earlier_models_results(tmp_path):
    rng = np.random.default_rng(1)
    hard, topic = rng.normal(size=(2, 600))
    chance = 1 / (1 + np.exp(2 * hard[:, None] - rng.normal(size=31) - topic[:, None] * rng.normal(size=31)))
    right = (rng.random((600, 31)) < chance).astype(int)
    ids = [f"u{i}" for i in range(600)]
    items, past = tmp_path / "items.csv", tmp_path / "past.csv"
    items.write_text("id,right\n" + "".join(f"{one},{z}\n" for one, z in zip(ids, right[:, 30], strict=True)))
    heads = ",".join(f"m{at}" for at in range(30))
    lines = (f"{one},{','.join(map(str, row[:30]))}\n" for one, row in zip(ids, right, strict=True))
    past.write_text(f"id,{heads}\n" + "".join(lines))

    population, _ = read_benchmark(items, "right", history=past)
    words = ("--outcome", "right", "--history", past, "--budget", 120, "--replicates", 40, "--json")
    rows = {row["design"]: row for row in json.loads(command(items, *words).stdout)["rows"]}

    assert "history_0" in population.feature_names
    assert list(rows) == ["simple-random", "planned", "two-round"]
    assert {row["estimator"] for row in rows.values()} == {"auto"}
    # Half of what separates the items is known; a standard error of a ratio of 40 draws is .22 of it.
    assert rows["two-round"]["relative_efficiency"] > 1.1
