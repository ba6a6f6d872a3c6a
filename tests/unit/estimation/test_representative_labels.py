"""Labelled rows of a table from elsewhere: are they a random sample of it, as far as proxies tell?"""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from tests.tiers import sized

import stratal
from stratal.designs import post_stratify
from stratal.errors import InputError, StratalWarning
from stratal.estimation.missing_labels import FALSE_ALARM_RATE, unrepresentative_notes
from stratal.report.notes import LABELS_BY_PROXY

SIZE, LABELS = 600, 80


def table_of(draws, chosen=None, size=SIZE, labels=LABELS):
    """A table with a probability and a confidence, and labels in the rows that `chosen` ranks first."""
    p = draws.random(size)
    outcome = draws.random(size) < p
    confidence = np.maximum(p, 1.0 - p)
    right = np.where(p > 0.5, outcome, ~outcome).astype(float)
    rank = draws.random(size) if chosen is None else chosen(p, confidence, draws)
    label = np.full(size, None, dtype=object)
    rows = np.argsort(rank, kind="stable")[:labels]
    label[rows] = right[rows]
    site = np.where(p + 0.3 * draws.random(size) > 0.6, "north", "south")
    return {"label": label, "p": p, "confidence": confidence, "site": site}, right


def quietly(table, **known):
    with warnings.catch_warnings(action="ignore", category=StratalWarning):
        sample, labels = stratal.Sample.from_labelled(table, value="label", **known)
        return sample, labels


def more_often_unsure(p, confidence, draws):
    """Ranks by which rows of low confidence come first more often, and no row never."""
    return draws.random(len(p)) ** np.where(confidence < 0.75, 4.0, 1.0)


CHOICES = {
    "confidence": lambda p, confidence, draws: confidence + 0.3 * draws.random(len(p)),
    "p": lambda p, confidence, draws: confidence + 0.3 * draws.random(len(p)),
}


@pytest.mark.parametrize("proxy", CHOICES)
def test_labels_chosen_where_the_model_was_unsure_are_warned_of(proxy):
    """The confidence is then low, and the probability lies in the middle."""
    where = {"confidence": "low", "p": "in the middle"}[proxy]
    tries = sized(8, 200)
    warned = 0
    for seed in range(tries):
        table, _ = table_of(np.random.default_rng([1, seed]), CHOICES[proxy])
        sample, _ = quietly(table, proxy=proxy)
        notes = unrepresentative_notes(sample)
        warned += any(f"{proxy!r} is {where}" in note for note in notes)
    assert warned == tries


@pytest.mark.parametrize("known", [{}, {"stratum": "site"}, {"proxy": ["p", "confidence"]}])
def test_labels_at_random_are_hardly_ever_warned_of(known):
    tries = sized(60, 2000)
    warned = 0
    for seed in range(tries):
        table, _ = table_of(np.random.default_rng([2, seed]), size=200, labels=60)
        sample, _ = quietly(table, **{"proxy": "confidence"} | known)
        warned += bool(unrepresentative_notes(sample))
    assert warned <= FALSE_ALARM_RATE * tries + 3.5 * np.sqrt(FALSE_ALARM_RATE * tries)


def test_strata_that_are_declared_may_be_labelled_unequally():
    """Within sites the rows are a random sample, over all they are not."""
    draws = np.random.default_rng(3)
    table, _ = table_of(draws)
    rank = np.where(table["site"] == "north", 0.3, 1.0) * draws.random(SIZE)
    rows = np.argsort(rank)[:LABELS]
    table["label"] = np.full(SIZE, None, dtype=object)
    table["label"][rows] = 1.0
    assert unrepresentative_notes(quietly(table, proxy="p")[0])
    assert not unrepresentative_notes(quietly(table, proxy="p", stratum="site")[0])


def test_the_warning_is_in_the_first_lines_and_in_json():
    table, _ = table_of(np.random.default_rng(4), CHOICES["confidence"])
    sample, labels = quietly(table, proxy="confidence")
    estimate = stratal.estimate(sample, labels)
    assert "not a random sample" in str(estimate).splitlines()[1]
    assert [note.code for note in estimate.notes if note in estimate.to_dict()["warnings"]] == [
        LABELS_BY_PROXY
    ]
    assert "--post-stratify confidence" in estimate.to_dict()["warnings"][0]


def test_strata_of_the_proxy_correct_a_choice_by_it():
    """Rows of low confidence are chosen four times as often: without strata the value is far off."""
    tries = sized(15, 400)
    covered = {"as declared": 0, "strata": 0}
    for seed in range(tries):
        draws = np.random.default_rng([5, seed])
        table, right = table_of(draws, more_often_unsure, size=2000, labels=200)
        sample, labels = quietly(table, proxy="confidence")
        with warnings.catch_warnings(action="ignore", category=StratalWarning):
            again = post_stratify(sample, "confidence")
            assert not unrepresentative_notes(again)
            for name, units in (("as declared", sample), ("strata", again)):
                estimate = stratal.estimate(units, labels, estimator="horvitz-thompson")
                covered[name] += right.mean() in estimate.confidence_interval()
    assert covered["as declared"] < 0.3 * tries
    assert covered["strata"] > 0.94 * tries - 3.5 * np.sqrt(0.0564 * tries)


def test_strata_of_a_proxy_need_all_units():
    table, _ = table_of(np.random.default_rng(6))
    with_sizes = {"label": [1.0, 0.0, 1.0], "confidence": [0.6, 0.7, 0.9]}
    sample, _ = stratal.Sample.from_labelled(
        with_sizes, value="label", proxy="confidence", population={"confidence": table["confidence"]}
    )
    with pytest.raises(InputError, match="require its values for all units"):
        post_stratify(sample, "confidence")


def test_samples_that_were_drawn_here_are_not_tested():
    draws = np.random.default_rng(7)
    population = stratal.Population.from_arrays(proxy={"p": draws.random(SIZE)})
    sample = stratal.designs.SimpleRandom(budget=LABELS).draw(population, seed=1)
    assert unrepresentative_notes(sample) == ()


def test_the_command_warns_and_post_stratifies(tmp_path, run_command):
    table, _ = table_of(np.random.default_rng(8), more_often_unsure, size=1000, labels=200)
    rows = zip(*table.values(), strict=True)
    lines = [",".join("" if entry is None else str(entry) for entry in row) for row in rows]
    path = tmp_path / "table.csv"
    path.write_text("\n".join([",".join(table), *lines]) + "\n")
    words = ("estimate", path, "--proxy", "confidence")
    done = run_command(*words)
    assert not done.status, done.message
    assert any("not a random sample of the table" in line for line in done.stdout.splitlines()[:3])
    weighted = run_command(*words, "--post-stratify", "confidence", "--json")
    assert not weighted.status, weighted.message
    result = json.loads(weighted.stdout)
    assert result["design"] == "post-stratified"
    assert "warnings" not in result


def answers_table(draws, *, shares, size=600, labels=120):
    """Return predictions of three classes; `shares` are the relative chances of a label by class."""
    answer = draws.choice(["bird", "cat", "dog"], size, p=[0.2, 0.3, 0.5])
    right = draws.random(size) < np.select([answer == "bird", answer == "cat"], [0.4, 0.7], 0.9)
    truth = np.where(right, answer, "other")
    chance = np.select([answer == "bird", answer == "cat"], shares[:2], shares[2])
    rows = np.argsort(-(draws.random(size) ** (1 / chance)))[:labels]
    label = np.full(size, None, dtype=object)
    label[rows] = truth[rows]
    table = {"id": list(range(size)), "prediction": answer.tolist(), "label": label.tolist()}
    return table, right


def test_labels_chosen_by_the_models_answer_are_warned_of_and_weighted():
    tries = sized(10, 200)
    covered = {"as declared": 0, "weighted": 0}
    for seed in range(tries):
        table, right = answers_table(np.random.default_rng([9, seed]), shares=(5.0, 1.0, 1.0))
        result = stratal.evaluate(table, require=">=.5")
        assert any("'prediction' is 'bird'" in note for note in result.estimate.notes)
        assert result.verdicts[0]["verdict"] != "PASS"
        assert result.to_dict()["post_stratified"]["by"] == "the model's answers"
        covered["as declared"] += right.mean() in result.estimate.confidence_interval()
        covered["weighted"] += right.mean() in result.post_stratified.confidence_interval()
    assert covered["as declared"] < 0.7 * tries
    assert covered["weighted"] > 0.94 * tries - 3.5 * np.sqrt(0.0564 * tries)


def test_labels_at_random_by_answer_are_hardly_ever_warned_of():
    tries = sized(60, 2000)
    warned = 0
    for seed in range(tries):
        table, _ = answers_table(np.random.default_rng([10, seed]), shares=(1.0, 1.0, 1.0))
        sample, _ = quietly(table, predicted="prediction", groups=["prediction"])
        warned += bool(unrepresentative_notes(sample))
    assert warned <= FALSE_ALARM_RATE * tries + 3.5 * np.sqrt(FALSE_ALARM_RATE * tries)


def test_whole_clusters_are_compared_by_their_means():
    """Scores alike within clusters: single rows would be warned of in half of the tables."""
    tries = sized(40, 1000)
    warned = 0
    for seed in range(tries):
        draws = np.random.default_rng([11, seed])
        question = np.repeat(np.arange(200), 5)
        score = np.repeat(draws.random(200), 5).round(3)
        is_drawn = np.isin(question, draws.choice(200, 40, replace=False))
        label = np.where(is_drawn, (draws.random(1000) < score).astype(object), None)
        table = {"question": question.tolist(), "p": score.tolist(), "label": label.tolist()}
        sample, _ = quietly(table, proxy="p", cluster="question")
        warned += bool(unrepresentative_notes(sample))
    assert warned <= FALSE_ALARM_RATE * tries + 3.5 * np.sqrt(FALSE_ALARM_RATE * tries)
