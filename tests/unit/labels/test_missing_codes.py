"""Usual codes of missing labels, such as -1 and 99."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import stratal
from stratal.errors import LabelError
from stratal.labels.labels import Labels
from stratal.labels.missing_codes import refuse_missing_code

RATINGS = [1, 2, 3, 4, 5] * 20
BINARY = [0, 1] * 50
PERCENTAGES = list(range(24)) * 4
COUNTS = [38 + number % 60 for number in range(0, 300, 3)]
HEAVY_TAIL = [1, 1, 1, 2, 2, 3, 4, 5, 6, 7, 9, 11, 14, 18, 25, 37, 80]
SCORES = [number / 99 for number in range(100)]


def check(labels, **options):
    refuse_missing_code(Counter(map(str, labels)), "file.csv", "rating", **options)


@pytest.mark.parametrize(
    ("labels", "code"),
    [
        ([1, 5, 99], "99"),
        ([0.2, 1, -9], "-9"),
        ([0, 1, -1], "-1"),
        ([1, 2, 999], "999"),
        ([*RATINGS, 99], "99"),
        ([*RATINGS, "99.0"], "99"),
        ([*RATINGS, *[99] * 60], "99"),
        ([*RATINGS, -1], "-1"),
        ([*range(11), *range(11), -1], "-1"),
        ([*BINARY, *[-1] * 11], "-1"),
        ([*BINARY, *[9] * 3], "9"),
        ([*[1] * 97, *[-1] * 3], "-1"),
        ([*BINARY, *[-1] * 50, 99], ": 99"),
        ([*SCORES, -1], "-1"),
        ([*SCORES, 99], "99"),
        ([*COUNTS, 999], "999"),
        ([*COUNTS, -99], "-99"),
        ([-1, 99] * 50, "-1 and 99"),
        (["1", "2", *RATINGS, "97", "98.0", "99"], "97, 98 and 99"),
        (["cat", "dog"] * 40 + ["-1"] * 3, "-1"),
        (["yes", "no"] * 40 + ["-1", "99"], "-1 and 99"),
        ([-1] * 50, "-1"),
    ],
)
def test_codes_beyond_the_scale_of_the_labels_are_refused(labels, code):
    with pytest.raises(LabelError, match=f"{code} in 'rating' may mean"):
        check(labels)


@pytest.mark.parametrize(
    "labels",
    [
        [97, 98, 99],
        [-3, -1, 2],
        [-1, 5000],
        [1, 30, 99],
        [-1, 0.5, -0.5],
        [99],
        [98, 99],
        ["a"],
        # Preferences and comparisons in pairs
        [-1, 1] * 50,
        [-1.0, 1.0] * 50,
        ["-1", "+1"] * 50,
        [-1, 0, 1] * 30,
        [*BINARY, *[-1] * 12],
        # Measurements
        [*PERCENTAGES, 98],
        [*HEAVY_TAIL, 999],
        list(range(-1, 31)),
        [*range(101), -1],
        # A few ratings on a scale to 10
        [1, 2, 9],
        [*RATINGS, 9],
        # Words: classes with numbers, and free text
        ["A1", "B2", "12", "99"] * 20,
        [*(f"answer {number}" for number in range(80)), "99"],
        ["cat"] * 3 + ["-1"] * 20,
        ["cat", "dog"] * 40,
    ],
)
def test_labels_of_the_same_scale_are_not_refused(labels):
    check(labels)


def test_stated_bounds_and_classes_say_what_a_code_is():
    check([*RATINGS, 99], bounds=(1, 99))
    check([*RATINGS, 99], classes=["1", "2", "3", "99"])
    with pytest.raises(LabelError, match="99 in 'rating'"):
        check([*RATINGS, 99], bounds=(1, 5))
    with pytest.raises(LabelError, match="If it is a class, map it to itself"):
        check([*RATINGS, 99], classes=["1", "2", "3"])


def test_the_error_states_counts_and_each_way_to_answer():
    with pytest.raises(LabelError) as caught:
        check([*BINARY, *[-1] * 3])
    message = str(caught.value)
    for part in ("-1 (3 of 103)", "mapping={'-1':None}", "bounds=(-1, 1)", "positive='1'"):
        assert part in message
    with pytest.raises(LabelError) as caught:
        check([*RATINGS, 99])
    assert "positive" not in str(caught.value)


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
    # That any number may be a label does not mean that 99 is one.
    for outcome in (None, "unbounded"):
        with pytest.raises(LabelError, match="99 in 'label' may mean that a row has no label"):
            stratal.estimate(sample, labels, outcome=outcome)
    as_itself = stratal.Labels(ids=tuple(labels), values=tuple(labels.values()), mapping={"99": 99})
    assert stratal.estimate(sample, as_itself, outcome="unbounded").value > 10
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
    assert stratal.evaluate(table, value="rating", mapping={"NA": None, "99": 99}).estimate.value == 35.0


def test_preferences_are_a_scale():
    """Labels -1, 0 and 1 were a question, although a third of them were -1."""
    table = {"id": [str(number) for number in range(90)], "preference": [-1, 0, 1] * 30}

    assert stratal.evaluate(table, value="preference").estimate.value == 0.0


@pytest.fixture
def rated():
    """A sample of 40 units, their ratings, and the same ratings with one code."""
    population = stratal.Population.from_arrays(
        ids=[f"unit-{number}" for number in range(200)], proxy=np.linspace(0.05, 0.95, 200)
    )
    sample = stratal.plan(population, 40).draw(seed=1)
    units = sample.ids.tolist()
    ratings = {unit: number % 5 + 1 for number, unit in enumerate(units)}
    return population, sample, ratings, {**ratings, units[3]: 99}


@pytest.mark.parametrize(
    "enter",
    [
        lambda population, sample, ratings, coded: stratal.next_round(sample, coded, additional=10),
        lambda population, sample, ratings, coded: stratal.plan(population, 40, labels=coded),
        lambda population, sample, ratings, coded: stratal.compare(sample, {"a": coded, "b": ratings}),
        lambda population, sample, ratings, coded: stratal.estimate(
            sample, {"a": coded, "b": ratings}, estimand="difference:a,b"
        ),
        lambda population, sample, ratings, coded: stratal.estimate(sample, coded, estimand="quantile:.5"),
        lambda population, sample, ratings, coded: stratal.estimate(sample, coded, by=["a", "b"] * 20),
        lambda population, sample, ratings, coded: stratal.new_version(
            sample,
            {unit: rating % 2 for unit, rating in ratings.items()},
            dict.fromkeys(ratings, "new"),
            old_answers=dict.fromkeys(ratings, "old"),
            new_labels={unit: rating if rating == 99 else rating % 2 for unit, rating in coded.items()},
        ),
        lambda population, sample, ratings, coded: stratal.evaluate(sample, coded),
    ],
    ids=["next_round", "plan", "compare", "difference", "quantile", "by", "new_version", "evaluate"],
)
def test_codes_are_refused_wherever_labels_enter(rated, enter):
    with pytest.raises(LabelError, match=r"99 in '.*' may mean that a row has no label"):
        enter(*rated)


def test_a_code_that_is_mapped_to_itself_is_a_label(rated):
    """Estimands without bounds had no way to state it."""
    _, sample, ratings, coded = rated
    declared = stratal.Labels(ids=tuple(coded), values=tuple(coded.values()), mapping={99: 99})

    assert stratal.estimate(sample, declared, outcome="unbounded").value > np.mean(list(ratings.values()))
    assert stratal.estimate(sample, declared, estimand="quantile:.99").value == 99


def test_a_code_among_classes_that_the_model_never_answers_is_refused():
    """It counted as a wrong answer."""
    table = {"id": [str(number) for number in range(100)], "answer": ["0", "1"] * 50}
    table["label"] = ["0", "1"] * 48 + ["9"] * 4

    with pytest.raises(LabelError, match="9 in 'label' may mean"):
        stratal.evaluate(table, value="label", predicted="answer")
    assert stratal.evaluate(table, value="label", predicted="answer", mapping={"9": None}).estimate.value == 1
    as_class = stratal.evaluate(table, value="label", predicted="answer", mapping={"9": "9"})
    assert as_class.estimate.value == 0.96
    assert stratal.evaluate(table, value="label", predicted="answer", mapping={"9": 9}).estimate.value == 0.96


def test_codes_among_words_are_refused_unless_the_model_answers_them():
    """Labels "-1" and "99" among "cat" and "dog" counted as wrong answers."""
    table = {"id": [str(number) for number in range(100)], "answer": ["cat", "dog"] * 50}
    table["label"] = ["dog", "dog", *["cat", "dog"] * 46, *["-1"] * 4, *["99"] * 2]

    with pytest.raises(LabelError, match=r"-1 and 99 in 'label' may mean.*given: words, and -1 \(4 of 100\)"):
        stratal.evaluate(table)
    with pytest.raises(LabelError, match=r": -1 in 'label' may mean.*If it is a class, map it to itself"):
        stratal.evaluate(table, mapping={"99": None})
    assert stratal.evaluate(table, mapping={"99": None, "-1": None}).estimate.value == 93 / 94
    assert stratal.evaluate(table, mapping={"99": 99, "-1": -1}).estimate.value == 0.93
    answers = [*table["answer"][:94], *table["label"][94:]]
    assert stratal.evaluate({**table, "answer": answers}).estimate.value == 0.99


def test_codes_are_refused_before_the_question_whether_labels_are_classes():
    """Ratings from 0 to 10 with one code are twelve numbers, which may be classes."""
    table = {"id": [str(number) for number in range(115)], "label": [*[*range(11)] * 10, *[99] * 5]}

    with pytest.raises(LabelError, match="99 in 'label' may mean that a row has no label"):
        stratal.evaluate(table)
    assert stratal.evaluate(table, mapping={"99": None}).estimate.value == pytest.approx(5.0)
    assert stratal.evaluate(table, bounds=(0, 99), predicted=False).estimate.value > 5


def test_only_the_codes_apart_from_preferences_are_left_out():
    """The advice left out the losses, too, if there was another code."""
    with pytest.raises(LabelError) as caught:
        check([*[-1, 0, 1] * 30, *[99] * 5])

    assert "mapping={'99':None}" in str(caught.value)
    with pytest.raises(LabelError, match="only the codes that mean this"):
        check([*[0, 1] * 45, -1, *[99] * 5])


def test_long_codes_are_written_with_all_digits():
    """99999999 was written as 1e+08 in the advice."""
    with pytest.raises(LabelError) as caught:
        check([*RATINGS, *[99999999] * 3])

    bounded = "bounds=(1, 99999999)"
    unbounded = "for an estimand without bounds, mapping={'99999999':99999999}"
    for part in ("mapping={'99999999':None}", bounded, unbounded):
        assert part in str(caught.value)


def test_codes_of_a_table_are_no_labels_in_the_file_of_new_labels(tmp_path):
    """`--map -1=` was used for the table alone, and -1 counted as a number among the new labels."""
    units = [f"q{number}" for number in range(60)]
    table = {"id": units, "answer": ["old"] * 60, "label": [*[0, 1] * 29, -1, -1]}
    answers = tmp_path / "new.csv"
    answers.write_text("id,answer\n" + "".join(f"{unit},new\n" for unit in units))
    new_labels = tmp_path / "labels.csv"
    rows = [f"{unit},{-1 if number < 3 else 1}\n" for number, unit in enumerate(units[:58])]
    new_labels.write_text("id,label\n" + "".join(rows))
    options = {"value": "label", "predicted": False, "against": answers, "new_labels": [new_labels]}
    options |= {"answers": "answer=answer", "by": "answer"}

    described = stratal.evaluate(table, mapping={"-1": None}, **options).to_dict()["new_version"]
    assert described["known"] == 55
    assert described["new"]["highest"] <= 1.0


@pytest.mark.parametrize("declared", [{"predicts": "right"}, {"predicted": "answer"}])
@pytest.mark.parametrize("answers", [["cat", "dog"], ["0", "1"]])
def test_minus_one_is_asked_about_if_labels_are_right_or_wrong(declared, answers):
    """Labels 1 and -1 of a classifier gave a mean of 0.29, or an accuracy in which -1 equals no answer."""
    ids = [f"unit-{number}" for number in range(100)]
    proxy = {"score": [number / 100 for number in range(100)]}
    groups = {"answer": answers * 50}
    population = stratal.Population.from_arrays(ids=ids, proxy=proxy, groups=groups, **declared)
    sample = stratal.designs.SimpleRandom(budget=40).draw(population, seed=1)
    labels = {unit: (-1, 1)[place % 2] for place, unit in enumerate(sample.ids.tolist())}
    read_labels = Labels(ids=tuple(labels), values=tuple(labels.values()))

    for estimate in (stratal.estimate, lambda *evidence: stratal.evaluate(*evidence).estimate):
        with pytest.raises(LabelError, match="-1 in 'label' may mean that a row has no label"):
            estimate(sample, labels)
        assert estimate(sample, replace(read_labels, positive="1")).value == pytest.approx(0.5)


def test_the_advised_bounds_of_a_single_code_are_accepted(drawn):
    sample, labels = drawn
    codes = dict.fromkeys(labels, "-1")
    with pytest.raises(LabelError, match=r"bounds=\(-1, 1\)"):
        stratal.estimate(sample, codes)

    assert stratal.estimate(sample, codes, bounds=(-1, 1)).value == -1
