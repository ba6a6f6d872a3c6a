"""Lists in the cells of a table, as rows or as numbers."""

import json

import numpy as np
import pytest

import stratal
from stratal.errors import InputError, LabelError
from stratal.tables.list_columns import ListRule


def retrieval(*, questions=200, labelled=40, as_text=False):
    """Return questions with five passages, their scores, and the labels of the first questions."""
    rng = np.random.default_rng(4)
    relevant = rng.random((questions, 5)) < rng.random((questions, 1))
    scores = rng.random((questions, 5)).round(3)

    def cell(values):
        return json.dumps(values) if as_text else values

    labels = [cell(row.astype(int).tolist()) if k < labelled else None for k, row in enumerate(relevant)]
    table = {
        "question_id": [f"q{question}" for question in range(questions)],
        "scores": [cell(row.tolist()) for row in scores],
        "relevant": labels,
    }
    return table, relevant[:labelled]


@pytest.mark.parametrize("as_text", [False, True])
def test_rows_of_lists_have_their_units_as_clusters(as_text):
    table, relevant = retrieval(as_text=as_text)
    result = stratal.evaluate(table, lists="rows", proxy="none")

    long_table = {
        "question": np.repeat([f"q{question}" for question in range(200)], 5).tolist(),
        "label": [*relevant.astype(int).ravel().tolist(), *[None] * 800],
    }
    expected = stratal.evaluate(long_table, cluster="question", value="label", id="row").estimate
    assert result.estimate.value == pytest.approx(relevant.mean())
    assert result.estimate.limits(0.95) == pytest.approx(expected.limits(0.95))
    assert result.sample.design.kind == "clusters"


@pytest.mark.parametrize(
    ("lists", "number"),
    [
        ("mean", lambda row: row.mean()),
        ("precision@3", lambda row: row[:3].mean()),
        ("precision@8", lambda row: row.sum() / 8),
        ("hit@2", lambda row: row[:2].any()),
    ],
)
def test_a_list_is_one_number(lists, number):
    table, relevant = retrieval(labelled=200)
    result = stratal.evaluate(table, lists=lists, target="population")

    assert result.estimate.value == pytest.approx(np.mean([number(row) for row in relevant]))
    assert result.estimate.labels == 200


def test_scores_of_lists_are_the_proxy():
    table, _ = retrieval()
    result = stratal.evaluate(table, lists="precision@2")

    assert result.sample.proxy_names == ("scores",)
    first = json.loads(json.dumps(table["scores"][0]))
    assert result.sample.population.values["scores"][0] == pytest.approx(np.mean(first[:2]))


def test_lists_of_objects_have_a_column_for_each_name():
    table, _ = retrieval()
    objects = [
        [
            {"score": score, "relevant": label}
            for score, label in zip(scores, labels or [None] * 5, strict=True)
        ]
        for scores, labels in zip(table["scores"], table["relevant"], strict=True)
    ]
    result = stratal.evaluate({"question_id": table["question_id"], "retrieved": objects}, lists="mean")

    assert result.table.recognition.value == "retrieved.relevant"
    assert result.estimate.labels == 40
    assert stratal.evaluate(table, lists="mean").estimate.value == pytest.approx(result.estimate.value)


def test_lists_of_labels_need_a_statement():
    table, _ = retrieval()

    with pytest.raises(InputError, match="precision@5"):
        stratal.evaluate(table)
    with pytest.raises(InputError, match="allowed: rows, mean, precision@K, hit@K"):
        stratal.evaluate(table, lists="precision")
    with pytest.raises(InputError, match="no column contains lists"):
        stratal.evaluate({"id": [1, 2], "label": [1, None]}, lists="rows")


def test_lists_beside_labels_of_rows_need_none():
    rng = np.random.default_rng(1)
    messages = [[{"role": "user", "hidden": 0}, {"role": "assistant", "hidden": 1}]] * 100
    labels = [int(rng.random() < 0.8) if row < 30 else None for row in range(100)]
    table = {"id": list(range(100)), "messages": messages, "label": labels}

    assert stratal.evaluate(table).estimate.labels == 30


def test_lists_of_different_lengths_and_labels_in_part_are_refused():
    table, _ = retrieval()
    table["scores"][3] = table["scores"][3][:4]
    with pytest.raises(InputError, match="row 4: lists of different lengths"):
        stratal.evaluate(table, lists="rows")

    table, _ = retrieval()
    table["relevant"][5] = [1, None, 0, 0, 1]
    with pytest.raises(
        LabelError, match="row 6: the list in 'relevant' has labels for only some of its entries"
    ):
        stratal.evaluate(table, lists="precision@3")
    assert stratal.evaluate(table, lists="precision@1").estimate.labels == 40


def test_an_empty_list_hits_nothing_and_has_no_mean():
    assert ListRule.parse("hit@3").reduce([]) == 0
    assert ListRule.parse("precision@3").reduce([]) == 0
    assert ListRule.parse("mean").reduce([]) is None


def test_units_without_any_list_have_no_rows():
    table, _ = retrieval()
    del table["scores"]

    with pytest.raises(InputError, match="the number of entries of this unit is unknown"):
        stratal.evaluate(table, lists="rows")
    assert stratal.evaluate(table, lists="hit@1").estimate.labels == 40


@pytest.mark.parametrize(
    "convert",
    [np.array, lambda row: [str(entry) for entry in row], list, str, lambda row: str(np.array(row))],
)
def test_entries_may_be_of_numpy_or_text(convert):
    table, relevant = retrieval()
    table["relevant"] = [None if labels is None else convert(labels) for labels in table["relevant"]]
    result = stratal.evaluate(table, lists="precision@3", proxy="none")

    assert result.estimate.value == pytest.approx(relevant[:, :3].mean())


def test_entries_may_be_verdicts_in_words():
    table, relevant = retrieval()
    words = {0: "no", 1: "yes"}
    table["relevant"] = [
        None if labels is None else [words[label] for label in labels] for labels in table["relevant"]
    ]
    result = stratal.evaluate(table, lists="mean", proxy="none")

    assert result.estimate.value == pytest.approx(relevant.mean())


@pytest.mark.parametrize("lists", ["hit@2", "precision@3"])
def test_ratings_are_not_hits(lists):
    table, _ = retrieval()
    table["relevant"] = [
        None if labels is None else [3 * label for label in labels] for labels in table["relevant"]
    ]
    with pytest.raises(LabelError, match="requires labels of 0 and 1"):
        stratal.evaluate(table, value="relevant", lists=lists)
    assert stratal.evaluate(table, value="relevant", lists="mean").estimate.labels == 40


def test_shares_of_ones_are_bounded_by_0_and_1():
    table, _ = retrieval()
    del table["scores"]
    estimate = stratal.evaluate(table, lists="mean").estimate

    assert estimate.bounds == (0.0, 1.0)


def test_a_damaged_list_is_refused():
    table, _ = retrieval(as_text=True)
    table["scores"][7] = "[0.1, 0.2"

    with pytest.raises(InputError, match="row 8: the entry of 'scores' is not a list"):
        stratal.evaluate(table, lists="rows")


def test_names_with_points_are_columns_of_their_own():
    table, relevant = retrieval()
    table = {
        "id": table["question_id"],
        "run": ["a", "b"] * 100,
        "run.scores": table["scores"],
        "run.relevant": table["relevant"],
    }
    result = stratal.evaluate(table, lists="precision@3", value="run.relevant", by="run")

    assert {row["domain"] for row in result.to_dict()["domains"]} == {"a", "b"}
    assert stratal.evaluate(table, lists="mean", value="run.relevant").estimate.labels == len(relevant)
