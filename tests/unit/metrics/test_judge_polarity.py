"""A judge with other words than the labels, if the positive label is the one that means failure."""

from __future__ import annotations

import numpy as np
import pytest

import stratal

UNITS = 400


@pytest.fixture
def table():
    rng = np.random.default_rng(4)
    is_bad = rng.random(UNITS) < 0.3
    rejects = np.where(rng.random(UNITS) < 0.85, is_bad, ~is_bad)
    is_labelled = np.arange(UNITS) % 4 == 0
    return {
        "id": [f"u{row}" for row in range(UNITS)],
        "judge": np.where(rejects, "reject", "accept").tolist(),
        "label": [
            ("bad" if bad else "good") if here else None
            for bad, here in zip(is_bad, is_labelled, strict=True)
        ],
    }


def observed_agreement(table):
    """Return the share of labelled units on which both sides are the same."""
    pairs = [pair for pair in zip(table["judge"], table["label"], strict=True) if pair[1] is not None]
    return np.mean([(judge == "reject") == (label == "bad") for judge, label in pairs])


def agreement(evaluation):
    """Return the estimated share of units on which the judge agrees with the labels."""
    rows = evaluation.to_dict()["judge"]
    return next(row["estimate"] for row in rows if row["metric"] == "agreement")


DECLARATIONS = [{"positive": "bad"}, {"positive": "good"}, {"mapping": {"bad": 1, "good": 0}}, {}]


@pytest.mark.parametrize("declaration", DECLARATIONS, ids=str)
def test_a_table(table, declaration):
    """With `positive="bad"`, the agreement was 17% instead of 83%."""
    evaluation = stratal.evaluate(table, judge="judge", **declaration)
    assert agreement(evaluation) == pytest.approx(observed_agreement(table), abs=0.03)


@pytest.mark.parametrize("declaration", DECLARATIONS, ids=str)
def test_a_sample(table, declaration):
    labelled = {unit: label for unit, label in zip(table["id"], table["label"], strict=True) if label}
    rows = [row for row, label in enumerate(table["label"]) if label]
    population = stratal.Population.from_arrays(
        ids=[table["id"][row] for row in rows], groups={"judge": [table["judge"][row] for row in rows]}
    )
    sample = stratal.designs.SimpleRandom(budget=len(rows)).draw(population, seed=1)
    evaluation = stratal.evaluate(sample, labelled, judge="judge", **declaration)
    assert agreement(evaluation) == pytest.approx(observed_agreement(table))


def test_yes_and_no_mean_no_success(table):
    """Whether `no` is a failure depends on the question, so a judge's words count as usual."""
    disagreement = 1 - observed_agreement(table)
    table["label"] = [label and {"bad": "yes", "good": "no"}[label] for label in table["label"]]
    evaluation = stratal.evaluate(table, judge="judge", positive="yes")
    assert agreement(evaluation) == pytest.approx(disagreement, abs=0.03)


def notes_on_mapping(evaluation):
    return [note for note in evaluation.estimate.notes if "although the mapping" in note]


def test_words_of_verdicts_in_a_mapping_are_used(table):
    """A note said that no label has these words, although the judge's column has them."""
    mapping = {"good": 1, "bad": 0, "accept": 1, "reject": 0}
    table["second"] = [{"accept": "yes", "reject": "no"}[verdict] for verdict in table["judge"]]
    with_second = {**mapping, "yes": 1, "no": 0}

    assert notes_on_mapping(stratal.evaluate(table, proxy="judge", mapping=mapping)) == []
    assert notes_on_mapping(stratal.evaluate(table, judge=["judge", "second"], mapping=with_second)) == []
    for role in ({"proxy": "judge"}, {"judge": "judge"}):
        (note,) = notes_on_mapping(stratal.evaluate(table, mapping={**mapping, "unsure": 0.5}, **role))
        assert note.startswith("no label is 'unsure', ")


def test_a_word_that_only_a_later_annotator_uses_keeps_its_meaning(table):
    table["other"] = ["reject" if label == "bad" else label for label in table["label"]]
    mapping = {"good": 1, "bad": 0, "accept": 1, "reject": 0}

    evaluation = stratal.evaluate(table, value="label,other", proxy="judge", mapping=mapping)

    assert evaluation.estimate.value == pytest.approx(
        stratal.evaluate(table, value="label", proxy="judge", mapping=mapping).estimate.value
    )
