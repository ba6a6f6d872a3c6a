"""Labels and a judge's verdicts in different spellings: they agree if they stand for the same number."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score
from tests.e2e.pasted import write

import stratal
from stratal.errors import LabelError

CASE = Path(__file__).parents[4] / "shared" / "cases" / "05-judge-0-1-and-labels-in-words"
TRUTH = np.random.default_rng(3).random(300) < 0.8
VERDICT = np.where(np.random.default_rng(4).random(300) < 0.85, TRUTH, ~TRUTH)


@pytest.fixture
def in_tmp_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def sample_of(verdicts, **columns):
    population = stratal.Population.from_arrays(ids=range(300), groups={"verdict": verdicts, **columns})
    return stratal.designs.SimpleRandom(budget=100).draw(population, seed=1)


def labels_of(sample, words, **meaning):
    ids = [str(unit) for unit in sample.ids.tolist()]
    values = [words[int(TRUTH[int(unit)])] for unit in ids]
    return stratal.Labels(ids=ids, values=values, **meaning)


@pytest.mark.parametrize(
    ("verdicts", "labels", "meaning"),
    [
        ("0 1", "fail pass", {}),
        ("0 1", "fail pass", {"mapping": {"pass": 1, "fail": 0}}),
        ("0 1", "fail pass", {"positive": "pass"}),
        ("no yes", "fail pass", {}),
        ("no yes", "fail pass", {"mapping": {"pass": 1, "fail": 0}}),
        ("False True", "fail pass", {"mapping": {"pass": 1, "fail": 0}}),
        ("fail pass", "fail pass", {"mapping": {"pass": 1, "fail": 0}}),
        ("fail pass", "fail pass", {"positive": "pass"}),
        ("fail pass", "Fail Pass", {}),
        ("fail pass", "0 1", {}),
        ("no yes", "False True", {}),
        ("0 1", "poor great", {"mapping": {"great": 1, "poor": 0}}),
        ("0 1", "poor great", {"positive": "great"}),
        ("fail pass", "minor great", {"mapping": {"great": "pass", "minor": 0}}),
    ],
)
def test_agreement_and_kappa_do_not_depend_on_the_spelling(verdicts, labels, meaning):
    sample = sample_of(np.array(verdicts.split())[VERDICT.astype(int)])
    drawn = sample.ids.astype(int)
    given = labels_of(sample, labels.split(), **meaning)
    report = stratal.estimate(sample, given, judge="verdict")

    agreement = np.mean(TRUTH[drawn] == VERDICT[drawn])
    kappa = cohen_kappa_score(TRUTH[drawn], VERDICT[drawn])
    assert report.of(metric="agreement").value == pytest.approx(agreement)
    assert report.of(metric="kappa").value == pytest.approx(kappa)
    assert {row.label["class"] for row in report} == {None, *verdicts.split()}
    for text, value in (("agreement:verdict", agreement), ("kappa:verdict", kappa)):
        assert stratal.estimate(sample, given, estimand=text).value == pytest.approx(value)


def test_verdicts_may_be_missing_and_groups_are_compared_too():
    verdicts = np.array(["0", "1"])[VERDICT.astype(int)]
    verdicts[::10] = ""
    sample = sample_of(verdicts, site=np.array(["a", "b"] * 150))
    given = labels_of(sample, ["fail", "pass"])
    drawn = sample.ids.astype(int)
    judged = drawn % 10 > 0

    estimate = stratal.estimate(sample, given, judge="verdict")
    assert estimate.of(metric="agreement").value == pytest.approx(np.mean((TRUTH == VERDICT)[drawn[judged]]))
    of_sites = stratal.estimate(sample, given, judge="verdict", by="site")
    inside = drawn[judged & (drawn % 2 == 0)]
    agreement = of_sites.of(domain="a", metric="agreement").value
    assert agreement == pytest.approx(np.mean((TRUTH == VERDICT)[inside]))


def test_a_word_that_is_a_verdict_is_that_verdict_whatever_its_number():
    sample = sample_of(np.where(VERDICT, "pass", "fail"))
    ids = [str(unit) for unit in sample.ids.tolist()]
    words = [
        "minor" if k % 9 == 0 else ("pass" if TRUTH[int(unit)] else "fail") for k, unit in enumerate(ids)
    ]
    mapping = {"pass": 1, "minor": 1, "fail": 0}
    estimate = stratal.estimate(
        sample, stratal.Labels(ids=ids, values=words, mapping=mapping), judge="verdict"
    )

    agrees = [VERDICT[int(unit)] == (word != "fail") for unit, word in zip(ids, words, strict=True)]
    assert estimate.of(metric="agreement").value == pytest.approx(np.mean(agrees))


def test_ratings_of_what_passes_and_fails_are_scores():
    sample = sample_of(np.array([str(1 + k % 5) for k in range(300)]))
    estimate = stratal.estimate(sample, labels_of(sample, ["fail", "pass"]), judge="verdict")
    assert [row.label["metric"] for row in estimate] == ["pearson", "spearman", "auc"]


def test_two_verdicts_of_one_number_are_refused():
    verdicts = np.where(VERDICT, "yes", "no")
    verdicts[:150][VERDICT[:150]] = "y"
    sample = sample_of(verdicts)
    with pytest.raises(LabelError, match="'y', 'yes' and the label 'pass' all count as 1"):
        stratal.estimate(sample, labels_of(sample, ["fail", "pass"]), judge="verdict")


@pytest.mark.usefixtures("in_tmp_path")
@pytest.mark.parametrize("options", [["--map", "pass=1,fail=0"], ["--positive", "pass"], []])
def test_the_command_and_the_report_give_what_python_gives(options, run_command):
    verdicts = [[k, int(value)] for k, value in enumerate(VERDICT)]
    write("v.csv", ["id", "verdict"], verdicts)
    assert run_command("draw", "v.csv", "--groups", "verdict", "--budget", 100, "--output", "a").status == 0
    drawn = stratal.Sample.read("a/sample.parquet")
    units = [int(unit) for unit in drawn.ids]
    write("l.csv", ["id", "label"], [[unit, "pass" if TRUTH[unit] else "fail"] for unit in units])
    words = ["a/sample.parquet", "l.csv", "--judge", "verdict", *options]

    shown = json.loads(run_command("estimate", *words, "--disagreements", "again.csv", "--json").stdout)
    assert run_command("report", *words, "--output", "r.json").status == 0
    python = stratal.estimate(drawn, stratal.read_labels("l.csv"), judge="verdict")
    for rows in (shown["judge"], json.loads(Path("r.json").read_text())["estimate"]["judge"]):
        by_metric = {row["metric"]: row for row in rows if row["class"] is None}
        for metric in ("agreement", "kappa"):
            assert by_metric[metric]["estimate"] == pytest.approx(python.of(metric=metric).value)
    again = Path("again.csv").read_text().splitlines()[1:]
    assert {(row.split(",")[1], row.split(",")[3]) for row in again} <= {("1", "fail"), ("0", "pass")}
    assert len(again) == int(np.sum((TRUTH != VERDICT)[units]))


@pytest.mark.skipif(not CASE.is_dir(), reason="the cases are not there")
@pytest.mark.usefixtures("in_tmp_path")
def test_a_judge_in_digits_and_labels_in_words(run_command):
    drawn = run_command(
        "draw", CASE / "verdicts.csv", "--groups", "verdict", "--budget", 100, "--seed", 1, "--output", "a"
    )
    assert drawn.status == 0
    options = ["--judge", "verdict", "--map", "pass=1,fail=0", "--json"]
    done = run_command("estimate", "a/sample.parquet", CASE / "labels.csv", *options)
    rows = {
        row["metric"]: row["estimate"] for row in json.loads(done.stdout)["judge"] if row["class"] is None
    }
    assert (rows["agreement"], round(rows["kappa"], 4)) == (0.85, 0.5897)


def agreement(labels, verdicts):
    """Return the agreement of labels with a judge's verdicts."""
    columns = {"id": list(range(len(labels))), "human": list(labels), "judge": list(verdicts)}
    rows = stratal.evaluate(columns, value="human", judge="judge").to_dict()["judge"]
    return next(row["estimate"] for row in rows if row["metric"] == "agreement")


def test_words_of_one_vocabulary_are_one_verdict_also_next_to_equal_words():
    """`tie (bothbad)` never agreed with `tie`, nor `pass` with `passed`."""
    labels = ["model_a", "model_b", "tie", "tie (bothbad)"] * 10
    both_ties = ["model_a", "tie", "tie", "tie (bothbad)"] * 10
    one_tie = ["model_a", "tie", "tie", "tie"] * 10

    assert agreement(labels, both_ties) == pytest.approx(0.75)
    assert agreement(labels, one_tie) == pytest.approx(0.75)
    assert agreement(["pass", "fail"] * 10, ["passed", "fail"] * 10) == 1.0


def test_percentages_that_a_sample_stores_as_a_group_are_scores(tmp_path):
    rng = np.random.default_rng(4)
    scores = rng.integers(0, 101, 200)
    labels = dict(enumerate((rng.random(200) < scores / 100).astype(int).tolist()))
    correlations = []
    for verdicts in ([f"{score}%" for score in scores], [f"{score / 100:g}" for score in scores]):
        population = stratal.Population.from_arrays(ids=np.arange(200), groups={"judge": verdicts})
        sample = stratal.designs.SimpleRandom(budget=200).draw(population, seed=1)
        correlations.append(stratal.estimate(sample, labels, judge="judge").of(metric="pearson").value)

    assert correlations[0] == pytest.approx(correlations[1])
    assert correlations[0] == pytest.approx(np.corrcoef(scores, list(labels.values()))[0, 1])


def test_shares_of_votes_never_equal_the_answers_0_and_1():
    """Only unanimous units counted as right: .25 instead of an error."""
    rng = np.random.default_rng(4)
    answers = rng.integers(0, 2, 120)
    votes = rng.integers(0, 4, 120)
    shares = np.round(votes / 3, 2)
    population = stratal.Population.from_arrays(
        ids=np.arange(120), groups={"answer": answers.tolist()}, predicted="answer"
    )
    sample = stratal.designs.SimpleRandom(budget=120).draw(population, seed=1)
    labels = dict(enumerate(shares.tolist()))

    with pytest.raises(LabelError, match="a number between the answers 0 and 1"):
        stratal.estimate(sample, labels)
    mapping = {"0": "0", "0.33": "0", "0.67": "1", "1": "1"}
    majority = stratal.evaluate(sample, labels, mapping=mapping, predicted=True)
    assert majority.estimate.value == pytest.approx(np.mean((votes >= 2) == answers))
    assert stratal.estimate(sample, labels, predicted=False).value == pytest.approx(shares.mean())
    # A judge of 0 and 1 has a correlation with them.
    judged = stratal.Population.from_arrays(ids=np.arange(120), groups={"judge": answers.tolist()})
    judged_sample = stratal.designs.SimpleRandom(budget=120).draw(judged, seed=1)
    report = stratal.estimate(judged_sample, labels, judge="judge")
    assert report.of(metric="pearson").value == pytest.approx(np.corrcoef(shares, answers)[0, 1])


def test_judges_with_different_words_have_a_majority_and_a_consistency():
    """Their verdicts were never equal: consistency 0, and the majority was the first judge's verdict."""
    rng = np.random.default_rng(5)
    truth = rng.random(200) < 0.7
    judges = [np.where(rng.random(200) < share, truth, ~truth) for share in (0.8, 0.7, 0.9)]
    words = [("pass", "fail"), ("1", "0"), ("Yes", "No")]
    table = {"human": np.where(truth, "good", "bad").tolist()}
    for number, (verdicts, (one, zero)) in enumerate(zip(judges, words, strict=True)):
        table[f"judge_{number}"] = np.where(verdicts, one, zero).tolist()

    rows = stratal.evaluate(table).to_dict()["judge"]

    values = {(row["judge"], row["metric"]): row["estimate"] for row in rows}
    majority = np.sum(judges, axis=0) >= 2
    pairs = [(0, 1), (0, 2), (1, 2)]
    assert values["majority of 3", "agreement"] == pytest.approx(np.mean(majority == truth))
    consistency = np.mean([np.mean(judges[a] == judges[b]) for a, b in pairs])
    assert values["3 together", "consistency"] == pytest.approx(consistency)


@pytest.mark.parametrize("write", ["{}/5", "{},0"])
def test_ratings_that_are_not_read_as_numbers_are_no_classes(write):
    """They were compared as classes: an accuracy of .44 for ratings."""
    rng = np.random.default_rng(5)
    ratings = {name: rng.integers(1, 6, 100) for name in ("human_rating", "judge_rating")}
    table = {name: [write.format(rating) for rating in column] for name, column in ratings.items()}

    with pytest.raises(LabelError, match="numbers in a form that is not read"):
        stratal.evaluate(table)
