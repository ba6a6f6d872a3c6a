"""Judges whose scores are on another scale than the labels: area under the curve and rank correlation."""

from __future__ import annotations

import json

import numpy as np
import pytest

import stratal
from stratal.designs import StratifiedWeighting
from stratal.metrics import associations

SIZE, BUDGET = 400, 120
DRAWS = np.random.default_rng(8)
QUALITY = DRAWS.random(SIZE)
RIGHT = DRAWS.random(SIZE) < QUALITY
STARS = 1.0 + np.minimum(np.floor(5 * QUALITY), 4.0)
CLASSES = DRAWS.choice(["a", "b"], SIZE)
OTHER = np.where(CLASSES == "a", "b", "a")

# Labels of right and wrong, in words and numbers.
LABELS = {
    "pass-fail": lambda rows: np.where(RIGHT[rows], "pass", "fail"),
    "zero-one": lambda rows: RIGHT[rows].astype(float),
    "truth": lambda rows: RIGHT[rows],
}


def drawn(judge, **more):
    population = stratal.Population.from_arrays(**judge, **more)
    return stratal.designs.SimpleRandom(budget=BUDGET).draw(population, seed=2)


def metrics(sample, labels, **options):
    return {row.label["metric"]: row for row in stratal.estimate(sample, labels, judge="judge", **options)}


def area(scores, right):
    """The area under the curve by counting pairs."""
    above = scores[right][:, None] - scores[~right][None, :]
    return np.mean((above > 0) + 0.5 * (above == 0))


def proxies(values, **more):
    return {"proxy": {"judge": values}, **more}


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("kind", ["rating", "order", "column"])
def test_a_rating_is_compared_with_right_and_wrong(labels, kind):
    ways = {
        "rating": proxies(STARS, bounds=(1.0, 5.0)),
        "order": proxies(STARS, scaled=False),
        "column": {"groups": {"judge": [f"{stars:g}" for stars in STARS]}},
    }
    sample = drawn(ways[kind])
    found = metrics(sample, LABELS[labels](sample.ids))
    assert set(found) == {"pearson", "spearman", "auc"}
    assert found["auc"].value == pytest.approx(area(STARS[sample.ids], RIGHT[sample.ids]))
    low, high = found["spearman"].confidence_interval()
    assert 0 < low < found["spearman"].value < high < 1


def test_a_probability_is_calibrated_too():
    sample = drawn(proxies(QUALITY))
    found = metrics(sample, RIGHT[sample.ids].astype(float))
    assert {"auc", "spearman", "icc", "bias", "calibration_error"} <= set(found)


def test_a_score_that_only_orders_has_neither_bias_nor_calibration():
    sample = drawn(proxies(QUALITY, scaled=False))
    assert set(metrics(sample, RIGHT[sample.ids].astype(float))) == {"pearson", "spearman", "auc"}


def test_ratings_by_people_are_on_the_scale_of_ratings_by_a_judge():
    sample = drawn(proxies(STARS, bounds=(1.0, 5.0)))
    people = np.clip(STARS + DRAWS.integers(-1, 2, SIZE), 1, 5)
    found = metrics(sample, people[sample.ids])
    assert set(found) == {"pearson", "spearman", "icc", "bias"}


def test_a_score_of_the_answer_is_compared_with_whether_the_answer_is_right():
    answers = {"answer": CLASSES}
    sample = drawn(proxies(STARS, scaled=False), groups=answers, predicted="answer")
    true = np.where(RIGHT, CLASSES, OTHER)
    found = metrics(sample, true[sample.ids])
    assert found["auc"].value == pytest.approx(area(STARS[sample.ids], RIGHT[sample.ids]))


def test_labels_of_one_class_give_no_area_and_say_why():
    sample = drawn(proxies(STARS, bounds=(1.0, 5.0)))
    table = stratal.estimate(sample, ["pass"] * BUDGET, judge="judge")
    found = {row.label["metric"]: row for row in table}
    assert np.isnan(found["auc"].value)
    assert any("belong to one class" in note for note in table.notes)


@pytest.mark.parametrize("kind", ["proxy", "groups"])
def test_command_and_report_have_the_same_rows(tmp_path, run_command, kind):
    rows = [f"u{row},{STARS[row]:g}" for row in range(SIZE)]
    (tmp_path / "p.csv").write_text("\n".join(["id,judge", *rows]) + "\n")
    options = ["--proxy", "judge", "--bounds", "1,5"] if kind == "proxy" else ["--groups", "judge"]
    folder = tmp_path / "drawn"
    drawn = run_command("draw", tmp_path / "p.csv", *options, "--budget", "60", "--output", folder)
    assert not drawn.status, drawn.message
    units = [line.split(",")[0] for line in (folder / "to_label.csv").read_text().splitlines()[1:]]
    labels = [f"{unit},{'pass' if RIGHT[int(unit[1:])] else 'fail'}" for unit in units]
    (tmp_path / "l.csv").write_text("\n".join(["id,label", *labels]) + "\n")
    words = (folder / "sample.parquet", tmp_path / "l.csv", "--judge", "judge", "--json")
    done = run_command("estimate", *words)
    assert not done.status, done.message
    table = json.loads(done.stdout)["judge"]
    assert {row["metric"] for row in table} == {"pearson", "spearman", "auc"}
    reported = run_command("report", *words, "--output", tmp_path / "report.html")
    assert json.loads(reported.stdout)["estimate"]["judge"] == table
    assert "auc" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(("tails", "warned"), [(2.0, True), (None, False)])
def test_a_correlation_warns_of_labels_with_heavy_tails(tails, warned):
    rng = np.random.default_rng(3)
    scores = rng.normal(size=2_000)
    noise = rng.normal(size=2_000) if tails is None else rng.standard_t(tails, size=2_000)
    population = stratal.Population.from_arrays(ids=np.arange(2_000), proxy={"judge": scores})
    sample = stratal.designs.SimpleRandom(budget=300).draw(population, seed=1)
    labels = (scores + noise)[np.asarray(sample.ids, dtype=int)]

    codes = [note.code for note in stratal.estimate(sample, labels, estimand="pearson:judge").notes]
    ranks = stratal.estimate(sample, labels, estimand="spearman:judge").notes

    assert ("heavy-tails" in codes) == warned
    assert not [note for note in ranks if note.code == "heavy-tails"]


@pytest.mark.parametrize(("n_clusters", "warned"), [(12, True), (25, False)])
def test_a_correlation_warns_of_few_clusters(n_clusters, warned):
    rng = np.random.default_rng(5)
    score = rng.random(600)
    labels = np.clip(score + rng.normal(0.0, 0.2, 600), 0.0, 1.0)
    clusters = [f"c{unit // 6}" for unit in range(600)]
    population = stratal.Population.from_arrays(proxy={"score": score}, groups={"cluster": clusters})
    design = stratal.designs.ClusterSample(cluster="cluster", n_clusters=n_clusters)
    sample = design.draw(population, seed=1)

    notes = stratal.estimate(sample, labels[sample.ids.astype(int)], estimand="pearson").notes

    assert ("few-clusters" in {note.code for note in notes}) == warned


@pytest.mark.parametrize("statistic", [associations.pearson, associations.spearman, associations.intraclass])
def test_the_interval_of_a_correlation_is_the_same_in_any_order_of_the_units(statistic):
    rng = np.random.default_rng(6)
    labels = rng.integers(0, 5, 60) / 4.0
    score = np.where(rng.random(60) < 0.9, labels, rng.random(60))
    order = rng.permutation(60)
    weighting = StratifiedWeighting(stratum=np.zeros(60, dtype=int), sizes=np.array([1000]))

    first = associations.association(statistic, score, labels, weighting)
    second = associations.association(statistic, score[order], labels[order], weighting)

    assert first.limits(0.95) == pytest.approx(second.limits(0.95), rel=1e-9)
