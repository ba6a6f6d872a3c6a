"""Words for numbers: what is understood, what is said, and what is refused."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pytest

import stratal
from stratal.cli import parsing
from stratal.errors import LabelError
from stratal.labels.joined_labels import join_labels
from stratal.labels.label_values import label_value_notes
from stratal.labels.labels import Labels
from stratal.question.vocabulary import VOCABULARIES, numbers_by_word


@pytest.fixture
def sample(population):
    return stratal.designs.SimpleRandom(budget=20).draw(population, seed=3)


@pytest.mark.parametrize(
    ("one", "zero"),
    [
        ("Pass", "Fail"),
        ("yes", "no"),
        ("TRUE", "FALSE"),
        ("correct", "incorrect"),
        ("C", "I"),
        ("win", "loss"),
    ],
)
def test_words_give_the_estimate_of_their_numbers_and_are_said(sample, one, zero):
    numbers = {unit: float(row % 3 > 0) for row, unit in enumerate(sample.ids.tolist())}
    words = {unit: one if number else f" {zero} " for unit, number in numbers.items()}

    found, expected = stratal.estimate(sample, words), stratal.estimate(sample, numbers)

    assert found.value == expected.value
    assert found.confidence_interval() == expected.confidence_interval()
    assert f"{one} 13 → 1" in " ".join(found.notes)


def test_inspects_grades_and_preferences_have_halves():
    assert numbers_by_word(["C", "I", "P", "N"]) == {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
    assert numbers_by_word(["A", "B", "tie"]) == {"A": 1.0, "B": 0.0, "tie": 0.5}
    assert numbers_by_word(["model_a", "tie (bothbad)"]) == {"model_a": 1.0, "tie (bothbad)": 0.5}


def test_halves_stay_within_0_and_1(sample):
    words = dict(zip(sample.ids.tolist(), ["win"] * 18 + ["tie", "loss"], strict=True))

    interval = stratal.estimate(sample, words).confidence_interval()

    assert interval.high <= 1.0


@pytest.mark.parametrize("words", [["P"], ["T"]])
def test_a_lone_letter_that_may_mean_two_things_is_asked_for(words):
    with pytest.raises(LabelError, match=r"'[PT]'.*positive="):
        numbers_by_word(words)


@pytest.mark.parametrize("words", [["cat", "dog"], ["A", "B", "C"], ["pass", "no"], []])
def test_classes_and_mixtures_are_no_vocabulary(words):
    assert numbers_by_word(words) is None


def test_numbers_outside_0_and_1_do_not_mix_with_words(sample):
    with pytest.raises(LabelError, match=r"'Pass' of id .* is not a finite number"):
        stratal.estimate(sample, {sample.ids[0]: "Pass", sample.ids[1]: 3})


def test_no_word_is_on_both_sides_of_a_vocabulary():
    assert all(0.0 in known.values() and 1.0 in known.values() for known in VOCABULARIES)


def counted(*values, **declared):
    """Return what labels of three units count as, and the note of them."""
    population = stratal.Population.from_arrays(proxy=[0.5] * len(values), ids=range(len(values)))
    sample = stratal.designs.SimpleRandom(budget=len(values)).draw(population, seed=1)
    joined = join_labels(sample, Labels(ids=range(len(values)), values=values, **declared))
    numbers = np.full(len(values), np.nan)
    numbers[sample.ids[joined.unit]] = joined.numbers()
    return numbers.tolist(), joined


def test_positive_counts_one_label_whatever_its_case():
    numbers, joined = counted("Good", "poor", None, "so-so", "GOOD", positive="good")

    assert numbers[:2] == [1.0, 0.0]
    assert numbers[3:] == [0.0, 1.0]
    assert joined.labelled.sum() == 4
    assert label_value_notes(joined.table()) == ("labels: GOOD 1 → 1, Good 1 → 1, poor 1 → 0, so-so 1 → 0",)


def test_a_positive_that_nobody_gave_is_said():
    numbers, joined = counted("bad", positive="fine")

    assert numbers == [0.0]
    assert "no label is 'fine'" in joined.notes[0]


@pytest.mark.parametrize(
    ("positive", "values"),
    [
        *(("Pass", (0, 1)), ("Pass", (1,)), ("1", ("good", "poor")), ("right", ("Pass", "Fail"))),
        *(("7", (0, 1)), ("7", (1,)), ("7", (-1, 1)), ("7", (True, False))),
    ],
)
def test_a_positive_that_cannot_be_meant_is_refused_with_the_labels_that_are_there(positive, values):
    with pytest.raises(
        LabelError, match=f"no label is '{positive}'.*allowed: a label of the file: '{values[0]}'"
    ):
        counted(*values, positive=positive)


@pytest.mark.parametrize(("positive", "values"), [("5", (1, 4)), ("Pass", ("Fail",)), ("best", ("a", "b"))])
def test_a_positive_that_nobody_happened_to_give_counts_nothing(positive, values):
    assert set(counted(*values, positive=positive)[0]) == {0.0}


def test_a_positive_and_a_mapping_go_together():
    numbers, joined = counted(
        "kitty", "cat", "dog", "n/a", positive="Cat", mapping={"kitty": "cat", "N/A": None}
    )

    assert numbers[:3] == [1, 1, 0]
    assert not np.isfinite(numbers[3])
    assert [row.to_dict() for row in joined.table()][-1] == {"value": "n/a", "count": 1, "meaning": None}


def test_a_mapping_gives_numbers_bounds_and_no_labels():
    numbers, joined = counted(
        "Pass", "Partial", "Unsure", mapping={"pass": 1, "fail": 0, "partial": 0.5, "unsure": None}
    )

    assert numbers[:2] == [1, 0.5]
    assert not joined.labelled.all()
    assert joined.bounds == (0, 1)


def test_a_class_that_is_mapped_to_may_be_a_word_for_a_number():
    assert counted("ja", "nein", "yes", mapping={"ja": "yes", "nein": "no"})[0] == [1, 0, 1]


def test_words_may_be_mapped_to_no_answer_alone():
    numbers, joined = counted("Pass", "Fail", "unsure", mapping={"UNSURE": ""})

    assert numbers[:2] == [1, 0]
    assert joined.bounds == (0, 1)
    assert label_value_notes(joined.table()) == ("labels: Pass 1 → 1, Fail 1 → 0, unsure 1 → no answer",)


def test_a_mapping_to_numbers_must_hold_every_word():
    with pytest.raises(LabelError, match=r"leaves out 'Partial'.*no answer"):
        counted("Partial", mapping={"Pass": 1.0})
    with pytest.raises(LabelError, match=r"leaves out '3'"):
        counted(1, 3, mapping={"1": 0, "2": 1})


def test_numbers_may_be_mapped_as_they_are_written():
    assert counted(1.0, "2", mapping={"1": 0, "2.0": 1})[0] == [0, 1]
    assert counted(1.0, "n/a", mapping={"n/a": 0})[0] == [1, 0]


@pytest.mark.parametrize("mapping", [{"Pass": 1, "pass": 0}, {1: 1, "1.0": 0}, {"a": 1, " a ": 1}])
def test_a_label_that_is_mapped_twice_is_refused(mapping):
    with pytest.raises(LabelError, match="is mapped twice"):
        counted("a", mapping=mapping)


@pytest.mark.parametrize("word", ["n/a", "N/A", "unsure", "None", "?", "#DIV/0!", "#REF!", "#N/A", "nan"])
def test_words_for_no_answer_are_refused_in_every_way_of_counting(sample, word):
    labels = dict.fromkeys(sample.ids.tolist(), "Pass") | {sample.ids[0]: word}

    with pytest.raises(LabelError, match=r"indicates that there is no answer.*mapping="):
        stratal.estimate(sample, labels)
    with pytest.raises(LabelError, match="indicates that there is no answer"):
        counted("good", "poor", word, positive="good")


def test_many_numbers_are_shown_as_a_range():
    joined = counted(*[number / 7 for number in range(14)])[1]

    assert [row.to_dict() for row in joined.table()] == [
        {"value": "0 to 1.85714", "count": 14, "meaning": [0.0, 13 / 7]}
    ]
    assert label_value_notes(joined.table()) == ()


def test_an_answer_without_a_meaning_is_refused_with_the_way_to_leave_it_out(sample):
    with pytest.raises(LabelError, match=r"no answer: mapping=\{'n/a':None\}"):
        stratal.estimate(sample, {sample.ids[0]: 1, sample.ids[1]: "n/a"})


@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")  # of missing labels
@pytest.mark.parametrize(
    "words",
    [("Pass", "Fail", "unsure"), ("1", "0", "unsure", "n/a"), ("Pass", "Fail", "2"), ("yes", "not sure")],
)
def test_every_mapping_that_an_error_prints_is_taken(sample, words):
    units = sample.ids.tolist()
    given = {unit: words[row % len(words)] for row, unit in enumerate(units)}
    with pytest.raises(LabelError) as refused:
        stratal.estimate(sample, given)

    printed = re.findall(r"\(--map ([^)]*)\)", refused.value.args[0])  # as the command reads it
    assert printed
    for option in printed:
        mapping = parsing.parse_mapping("--map", shlex.split(option)[0])
        labels = Labels(ids=tuple(units), values=tuple(given.values()), mapping=mapping)
        assert 0 < stratal.estimate(sample, labels).n <= 20


def test_every_spelling_is_named_at_once(answered):
    labels = dict(zip(answered.ids.tolist(), ["CAT", "DOG", "cat"] * 7, strict=False))
    with pytest.raises(LabelError, match=r"mapping=\{'CAT':'cat','DOG':'dog'\}"):
        stratal.estimate(answered, labels, predicted=True)


def test_a_positive_label_cannot_be_compared_with_answers(answered):
    labels = Labels(ids=tuple(answered.ids.tolist()), values=("cat", "dog") * 10, positive="cat")
    with pytest.raises(LabelError, match=r"Leave out positive= .*--metric precision,recall --class cat"):
        stratal.estimate(answered, labels, predicted=True)
    assert stratal.estimate(answered, labels).value > 0


def test_the_odd_label_is_named_and_not_the_good_ones(sample):
    given = dict(zip(sample.ids.tolist(), ["Pass", "Fail"] * 9 + ["2", "2"], strict=True))
    with pytest.raises(LabelError, match=r"label '2' of id .* among words such as .*\(2 such labels\)"):
        stratal.estimate(sample, given)
    given = dict(zip(sample.ids.tolist(), [1, 2, 3, 4] * 4 + ["Pass"] * 4, strict=True))
    with pytest.raises(LabelError, match="label 'Pass' of id"):
        stratal.estimate(sample, given)


def test_decimal_commas_are_said_to_be_so(sample):
    with pytest.raises(LabelError, match="Use a decimal point"):
        stratal.estimate(sample, dict(zip(sample.ids.tolist(), ["1,0", "0,0"] * 10, strict=True)))


def test_what_is_mapped_and_nobody_gave_is_noted(sample):
    labels = Labels(
        ids=tuple(sample.ids.tolist()), values=("good", "bad") * 10, mapping={"Good": 1, "bad": 0, "foo": 1}
    )
    assert (
        "no label is 'foo', although the mapping contains this value"
        in stratal.estimate(sample, labels).notes
    )


@pytest.fixture
def answered():
    population = stratal.Population.from_arrays(
        proxy=[0.5] * 40, groups={"answer": ["cat", "dog"] * 20}, predicted="answer"
    )
    return stratal.designs.SimpleRandom(budget=20).draw(population, seed=3)


def test_several_columns_have_a_table_each(sample):
    ids = sample.ids.tolist()
    new = dict(zip(ids, ["Pass", "Fail", "Pass", "Pass"] * 5, strict=True))
    old = dict(zip(ids, [1, 0] * 10, strict=True))
    table = [
        {"column": "new", "value": "Pass", "count": 15, "meaning": 1.0},
        {"column": "new", "value": "Fail", "count": 5, "meaning": 0.0},
        {"column": "old", "value": "1", "count": 10, "meaning": 1.0},
        {"column": "old", "value": "0", "count": 10, "meaning": 0.0},
    ]

    for found in (
        stratal.compare(sample, {"new": new, "old": old}),
        stratal.estimate(sample, {"new": new, "old": old}, estimand="means:new,old"),
        stratal.estimate(sample, {"new": new, "old": old}, estimand="difference:new,old"),
    ):
        assert found.to_dict()["label_values"] == table
        assert "labels of 'new': Pass 15 → 1, Fail 5 → 0" in found.notes
        assert not any("'old': 1" in note for note in found.notes)


def test_a_regression_has_the_table_too():
    features = np.arange(60.0)
    population = stratal.Population.from_arrays(proxy=features / 60, features={"x": features})
    sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=3)
    labels = dict(zip(sample.ids.tolist(), ["Pass", "Fail", "Pass", "Pass"] * 5, strict=True))

    found = stratal.regress(sample, labels, features="x")

    assert [row["value"] for row in found.to_dict()["label_values"]] == ["Pass", "Fail"]
    assert "labels: Pass 15 → 1, Fail 5 → 0" in found.notes
