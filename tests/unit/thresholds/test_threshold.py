"""`stratal.threshold`: designs, tables from elsewhere, groups, two scores, files, refusals."""

from __future__ import annotations

import csv
import json
import re
from typing import Any

import numpy as np
import pytest
from tests.e2e.pasted import invoke

import stratal
from stratal.errors import InputError, LabelError
from stratal.intervals.proportion import clopper_pearson

N = 4000


@pytest.fixture(scope="module")
def units():
    rng = np.random.default_rng(2)
    confidence = np.clip(rng.beta(6, 1, N), 0.01, 0.999).round(4)
    right = (rng.random(N) < confidence).astype(float)
    return {"confidence": confidence, "right": right, "site": rng.choice(["north", "south"], N)}


def population_of(units, **columns):
    return stratal.Population.from_arrays(
        proxy={"confidence": units["confidence"]},
        groups={"site": units["site"]},
        ids=[f"u{row}" for row in range(N)],
        **columns,
    )


def labels_of(units, sample):
    return {unit: units["right"][int(unit[1:])] for unit in sample.ids.tolist()}


@pytest.fixture(scope="module")
def drawn(units):
    sample = stratal.plan(population_of(units), 800).draw(seed=3)
    return sample, labels_of(units, sample)


def test_accepted_items_satisfy_the_requirement(units, drawn):
    result = stratal.threshold(drawn[0], drawn[1], require="error<=.1")
    chosen = result.chosen[0]
    accepted = units["confidence"] >= chosen.thresholds[0]

    assert result.verdict == "PASS"
    assert chosen.items == accepted.sum()
    assert chosen.share == pytest.approx(accepted.mean())
    assert chosen.estimate <= chosen.limit <= 0.1
    assert 1 - units["right"][accepted].mean() <= 0.1


def test_a_simple_random_sample_has_exact_limits(units):
    sample = stratal.designs.SimpleRandom(budget=500).draw(population_of(units), seed=5)
    result = stratal.threshold(sample, labels_of(units, sample), "error<=.2", target="superpopulation")
    everything = result.candidates[-1]
    errors = round(500 * everything.estimate)
    assert everything.thresholds == (None,)
    assert everything.estimate == pytest.approx(errors / 500)
    exact = clopper_pearson(errors / 500, 500, confidence_level=0.95, alternative="less")[1]
    assert everything.limit >= exact - 1e-9


def test_the_population_gives_lower_limits_than_future_units(drawn):
    here = stratal.threshold(drawn[0], drawn[1], require="error<=.1").candidates[-1]
    future = stratal.threshold(drawn[0], drawn[1], require="error<=.1", target="superpopulation").candidates[
        -1
    ]

    assert here.limit < future.limit


def test_recall_accepts_the_smallest_set_and_the_curve_has_its_value(drawn):
    result = stratal.threshold(drawn[0], drawn[1], require="recall>=.7")
    smaller = [row for row in result.candidates if row.share < result.chosen[0].share]

    assert result.verdict == "PASS"
    assert not any(row.accepted for row in smaller)
    assert result.chosen[0].limit >= 0.7
    assert result.curve.points[-1].metrics["recall"].estimate == 1.0


def test_bands_contain_the_estimate_and_simultaneous_ones_the_pointwise(drawn):
    curve = stratal.threshold(drawn[0], drawn[1], require="precision>=.9").curve

    assert len(curve.points) == 10
    for point in curve.points:
        for value in point.metrics.values():
            low, high = value.simultaneous
            assert low - 1e-9 <= value.pointwise[0] <= value.estimate + 1e-9
            assert value.estimate - 1e-9 <= value.pointwise[1] <= high + 1e-9


def test_too_few_labels_say_how_many_are_needed(units):
    sample = stratal.designs.SimpleRandom(budget=40).draw(population_of(units), seed=5)
    result = stratal.threshold(sample, labels_of(units, sample), "error<=.05")

    assert result.verdict == "UNDECIDED"
    assert result.chosen == ()
    assert result.labels_needed > 59


def test_a_violated_requirement_fails(units):
    sample = stratal.designs.SimpleRandom(budget=300).draw(population_of(units), seed=5)
    wrong = dict.fromkeys(sample.ids.tolist(), 0.0)

    result = stratal.threshold(sample, wrong, "error<=.05")

    # A set above the highest candidate holds too few labels.
    assert (result.verdict, result.all_violated) == ("UNDECIDED", True)
    assert "sets above the highest" in str(result)


def test_a_requirement_that_no_set_satisfies_fails(units):
    grades = {**units, "confidence": np.round(units["confidence"])}
    sample = stratal.designs.SimpleRandom(budget=400).draw(population_of(grades), seed=5)
    wrong = dict.fromkeys(sample.ids.tolist(), 0.0)

    assert stratal.threshold(sample, wrong, "error<=.05").verdict == "FAIL"
    # All units together have a recall of 1.
    assert stratal.threshold(sample, labels_of(units, sample), "recall>=.99").verdict != "FAIL"


@pytest.mark.parametrize("name", ["trace_id", "id", None])
def test_the_ids_of_a_table_are_recognised(name, tmp_path):
    rng = np.random.default_rng(3)
    score = rng.random(600)
    table: dict[str, Any] = {name or "lang": [f"t{row}" if name else "en" for row in range(600)]}
    table |= {
        "confidence": score,
        "human": [int(value > 0.2) if row % 2 else None for row, value in enumerate(score)],
    }

    result = stratal.threshold(table, require="error<=.1")
    result.write(tmp_path / "out")

    first = (tmp_path / "out" / "review.csv").read_text().splitlines()[1].split(",")[0]
    assert first.startswith("t") == (name is not None)


def test_each_group_has_a_set_and_fewer_items_than_alone(drawn):
    grouped = stratal.threshold(drawn[0], drawn[1], require="error<=.1", by="site")

    assert {row.group for row in grouped.candidates} == {"north", "south"}
    assert sum(row.items for row in grouped.candidates if row.thresholds == (None,)) == N
    assert grouped.curve is None


def test_two_scores_accept_units_that_reach_both(units):
    rng = np.random.default_rng(7)
    population = stratal.Population.from_arrays(
        proxy={"confidence": units["confidence"], "judge": rng.random(N)}, ids=[f"u{row}" for row in range(N)]
    )
    sample = stratal.designs.SimpleRandom(budget=600).draw(population, seed=5)
    result = stratal.threshold(sample, labels_of(units, sample), "error<=.15", score=["confidence", "judge"])

    assert result.scores == ("confidence", "judge")
    assert result.verdict == "PASS"
    assert len(result.candidates) == 36
    with pytest.raises(InputError, match="several columns"):
        stratal.threshold(sample, labels_of(units, sample), "error<=.15")


def test_files_hold_every_unit_on_one_side(units, drawn, tmp_path):
    result = stratal.threshold(drawn[0], drawn[1], require="error<=.1")
    counts = result.write(tmp_path / "sides")
    rows = {}
    for name in counts:
        with open(tmp_path / "sides" / name) as stream:
            rows[name] = list(csv.DictReader(stream))
    cut = result.chosen[0].thresholds[0]

    assert counts["accepted.csv"] == result.chosen[0].items
    assert sum(counts.values()) == N
    assert all(float(row["confidence"]) >= cut for row in rows["accepted.csv"])
    assert all(float(row["confidence"]) < cut for row in rows["review.csv"])
    assert "<svg" in (tmp_path / "sides" / "report.html").read_text()
    with pytest.raises(InputError):
        result.write(tmp_path / "sides")


def test_the_result_is_json_and_says_the_verdict_first(drawn):
    result = stratal.threshold(drawn[0], drawn[1], require="error<=.1")

    assert json.loads(json.dumps(result.to_dict()))["verdict"] == "PASS"
    assert str(result).startswith("error<=0.1: PASS. Accept confidence ≥ ")
    assert "for these items" in str(result)


def test_a_table_from_elsewhere_gives_the_same_set(units, tmp_path):
    sample = stratal.designs.SimpleRandom(budget=500).draw(population_of(units), seed=5)
    labels = labels_of(units, sample)
    own = stratal.threshold(sample, labels, "error<=.15")
    table = {
        "id": [f"u{row}" for row in range(N)],
        "confidence": units["confidence"].tolist(),
        "label": [labels.get(f"u{row}") for row in range(N)],
    }
    path = tmp_path / "all.csv"
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(table)
        writer.writerows(
            zip(*[["" if v is None else v for v in column] for column in table.values()], strict=True)
        )
    other = stratal.threshold(path, proxy="confidence", require="error<=.15")

    assert other.chosen[0].items == own.chosen[0].items
    assert other.chosen[0].limit == pytest.approx(own.chosen[0].limit)


def test_a_table_of_clusters_has_a_wider_limit_than_one_of_single_units(units):
    table = {
        "id": [f"u{row}" for row in range(600)],
        "confidence": units["confidence"][:600].tolist(),
        "label": units["right"][:600].tolist(),
        "talk": [str(row // 10) for row in range(600)],
        "weight": [5.0] * 600,
    }
    asked = {"sample": table, "require": "error<=.3", "score": "confidence", "target": "superpopulation"}
    single = stratal.threshold(**asked, weight="weight")
    clustered = stratal.threshold(**asked, weight="weight", cluster="talk")

    assert clustered.candidates[-1].estimate == pytest.approx(single.candidates[-1].estimate)
    assert clustered.candidates[-1].limit > single.candidates[-1].limit
    assert clustered.chosen[0].items is None
    with pytest.raises(InputError, match="not known"):
        clustered.write("nowhere")


@pytest.mark.parametrize(
    ("require", "what"),
    [
        ("error>=.1", "unsupported requirement of a threshold"),
        ("precision>=1.5", "unsupported requirement of a threshold"),
        ("accuracy>=.9", "no such metric"),
        ("error:yes<=.1", "not accept a class"),
        ("precision:maybe>=.9", "no label is 'maybe'"),
    ],
)
def test_requirements_that_mean_nothing_are_refused(drawn, require, what):
    with pytest.raises(InputError, match=what):
        stratal.threshold(drawn[0], drawn[1], require=require)


def test_a_score_of_a_class_is_no_confidence(units):
    population = population_of(units, predicts="class:spam")
    sample = stratal.designs.SimpleRandom(budget=100).draw(population, seed=5)
    with pytest.raises(InputError, match="probability of class 'spam'"):
        stratal.threshold(sample, labels_of(units, sample), "error<=.1")
    classes = {unit: "spam" if value else "ham" for unit, value in labels_of(units, sample).items()}
    result = stratal.threshold(sample, classes, "precision>=.5")
    assert result.requirement.positive == "spam"


def test_labels_that_are_no_faults_are_refused(units, drawn):
    sample, labels = drawn
    with pytest.raises((InputError, LabelError)):
        stratal.threshold(sample, dict.fromkeys(labels, 7.0), "error<=.1")


@pytest.mark.parametrize(
    "design",
    [
        stratal.designs.ProportionalToSize(budget=200, size="x"),
        stratal.designs.Poisson(budget=200, size="x"),
        stratal.designs.ClusterSample(cluster="talk", n_clusters=80),
    ],
)
def test_faults_in_rarely_drawn_units_or_large_clusters_are_refused(design):
    """Faults lie in units of small probability, or in two large clusters: up to .9 of the sets violated."""
    rng = np.random.default_rng(5)
    talks = np.concatenate([np.repeat(np.arange(380), 5), np.repeat([380, 381], 60)])
    population = stratal.Population.from_arrays(
        proxy={"score": rng.random(len(talks))},
        features={"x": np.where(talks >= 380, 0.03, 1.0)},
        groups={"talk": talks.astype(str)},
    )
    sample = design.draw(population, seed=0)

    with pytest.raises(InputError, match="equal probabilities within strata"):
        stratal.threshold(sample, (talks < 380)[sample.ids] * 1.0, "error<=.05", score="score")


def test_a_precision_of_a_class_needs_a_score_of_that_class(units):
    population = stratal.Population.from_arrays(
        proxy={"confidence": units["confidence"]},
        groups={"answer": np.where(np.arange(N) % 3 == 0, "cat", "dog")},
        predicted="answer",
    )
    sample = stratal.designs.SimpleRandom(budget=100).draw(population, seed=5)
    labels = {unit: "cat" if unit % 2 else "dog" for unit in sample.ids.tolist()}

    with pytest.raises(InputError, match="not a score of the class 'cat'"):
        stratal.threshold(sample, labels, "precision:cat>=.9")


def test_a_score_in_words_is_refused(units):
    table = {"id": ["a", "b", "c"], "label": [1, 0, 1], "site": ["here", "there", "here"]}
    with pytest.raises(InputError, match="'site' contains words"):
        stratal.threshold(table, population_size=3, require="error<=.5", score="site")


def test_a_judge_in_words_names_the_score_that_a_threshold_can_use(run_command, tmp_path):
    file = tmp_path / "judged.csv"
    rows = [
        f"{row},{'pass' if row % 4 else 'fail'},{row / 100},{'pass' if row < 30 else ''}"
        for row in range(100)
    ]
    file.write_text("\n".join(["id,verdict,judge_score,human", *rows]))

    for options in ([], ["--score", "verdict"]):
        refused = run_command("threshold", file, "--require", "precision>=.9", *options)
        assert "Name a score: --score judge_score." in refused.message


def test_messages_name_options_of_the_command(run_command, tmp_path):
    file = tmp_path / "classes.csv"
    rows = [
        f"{row},{'ab'[row % 2]},{row / 200},{'ab'[row % 3 == 0] if row < 90 else ''}" for row in range(200)
    ]
    file.write_text("\n".join(["id,prediction,a_probability,label", *rows]))
    options = set(re.findall(r"--[a-z-]+", invoke("threshold --help-all").output))

    refused = run_command("threshold", file, "--require", "precision:a>=.9")
    advised = re.findall(r"--score \w+", refused.message)

    assert "auc:" not in refused.message
    assert set(re.findall(r"--[a-z-]+", refused.message)) <= options
    assert "--score a_probability" in advised
    assert run_command("threshold", file, "--require", "precision:a>=.9", *advised[-1].split()).status == 5


def test_all_units_are_accepted_for_recall_only_with_a_smaller_set(units):
    sample = stratal.designs.SimpleRandom(budget=40).draw(population_of(units), seed=5)
    undecided = stratal.threshold(sample, labels_of(units, sample), "recall>=.99")
    decided = stratal.threshold(sample, labels_of(units, sample), "recall>=.3")

    assert undecided.verdict == "UNDECIDED"
    assert not any(row.accepted for row in undecided.candidates)
    assert decided.candidates[-1].accepted


def test_a_sample_from_a_file_needs_its_population(units, drawn, tmp_path):
    drawn[0].write(tmp_path / "sample.parquet")
    read = stratal.Sample.read(tmp_path / "sample.parquet")

    with pytest.raises(InputError, match="population from which the sample was drawn is required"):
        stratal.threshold(read, drawn[1], "error<=.1")
    known = stratal.threshold(read, drawn[1], "error<=.1", population=population_of(units))
    assert known.chosen == stratal.threshold(drawn[0], drawn[1], "error<=.1").chosen


def test_a_forecast_for_groups_simulates_few_draws(units, monkeypatch):
    import stratal.thresholds.decision as decision

    draws = []
    step_down = decision.step_down

    def counted(*arguments):
        draws.append(arguments[3])
        return step_down(*arguments)

    monkeypatch.setattr(decision, "step_down", counted)
    sample = stratal.designs.SimpleRandom(budget=300).draw(population_of(units), seed=5)
    stratal.threshold(sample, labels_of(units, sample), "error<=.02", by="site")

    # All sets of a forecast cost less than the test itself.
    assert sum(draws[1:]) < draws[0]


def test_no_id_in_the_files_becomes_a_formula(tmp_path):
    rng = np.random.default_rng(5)
    scores = rng.random(400)
    ids = ["=1+1", *(f"u{row}" for row in range(1, 400))]
    labels = [int(rng.random() < score) if row % 2 else None for row, score in enumerate(scores)]

    result = stratal.threshold({"id": ids, "label": labels, "score": scores}, require="error<=.9")
    counts = result.write(tmp_path / "sides")

    cells = [
        line.split(",")[0] for name in counts for line in (tmp_path / "sides" / name).read_text().split()
    ]
    assert "'=1+1" in cells
    assert "=1+1" not in cells
