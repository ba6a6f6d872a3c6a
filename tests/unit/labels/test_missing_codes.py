"""Usual codes of missing labels, such as -1 and 99."""

from __future__ import annotations

import pytest

import stratal
from stratal.errors import LabelError
from stratal.labels.missing_codes import refuse_missing_code


@pytest.mark.parametrize(
    ("labels", "code"),
    [
        (["1", "5", "99"], "99"),
        (["0.2", "1", "-9"], "-9"),
        (["0", "1", "-1"], "-1"),
        (["1", "2", "999"], "999"),
    ],
)
def test_codes_far_from_all_labels_are_refused(labels, code):
    with pytest.raises(LabelError, match=f"{code} in 'rating' may mean"):
        refuse_missing_code(labels, "file.csv", "rating")


@pytest.mark.parametrize(
    "labels",
    [
        ["97", "98", "99"],
        ["-3", "-1", "2"],
        ["-1", "5000"],
        ["1", "30", "99"],
        ["-1", "0.5", "-0.5"],
        ["99"],
        ["a"],
    ],
)
def test_other_labels_are_not_refused(labels):
    refuse_missing_code(labels, "file.csv", "rating")


@pytest.fixture
def drawn():
    ids = [f"unit-{number}" for number in range(100)]
    population = stratal.Population.from_arrays(ids=ids, proxy=[number / 100 for number in range(100)])
    sample = stratal.designs.SimpleRandom(budget=40).draw(population, seed=1)
    labels = {unit: "99" if place % 7 == 0 else "3" for place, unit in enumerate(sample.ids.tolist())}
    return sample, labels


def test_labels_of_a_sample_are_checked_too(drawn, tmp_path):
    """A mean of ratings of 3 was 17, with a note on the bounds of the proxy."""
    sample, labels = drawn
    path = tmp_path / "labels.csv"
    path.write_text("id,label\n" + "".join(f"{unit},{label}\n" for unit, label in labels.items()))

    for source in (labels, path):
        with pytest.raises(LabelError, match="99 in 'label' may mean that a row has no label"):
            stratal.evaluate(sample, source)
    with pytest.raises(LabelError, match="99 in 'label' may mean that a row has no label"):
        stratal.estimate(sample, labels)
    assert stratal.estimate(sample, labels, outcome="unbounded").value > 10
    with pytest.warns(stratal.StratalWarning, match="6 of 40 drawn units have no label"):
        without_code = stratal.evaluate(sample, path, mapping={"99": None}).estimate
    assert (without_code.value, without_code.n) == (3.0, 34)
    assert stratal.evaluate(sample, path, bounds=(1, 99)).estimate.value > 10


def test_a_mapping_of_other_labels_leaves_the_question_open():
    """`mapping={"NA": None}` gave a mean of ratings with the code 99."""
    table = {"id": [str(number) for number in range(100)], "rating": ["1", "5", "99", "NA"] * 25}

    with pytest.raises(LabelError, match="99 in 'rating'"):
        stratal.evaluate(table, value="rating", mapping={"NA": None})
    assert stratal.evaluate(table, value="rating", mapping={"NA": None, "99": None}).estimate.value == 3.0
