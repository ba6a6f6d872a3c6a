"""Words for numbers: what is understood, what is said, and what is refused."""

from __future__ import annotations

import pytest

import stratal
from stratal.errors import LabelError
from stratal.labels.labels import Labels
from stratal.labels.vocabulary import VOCABULARIES, meanings, spoken


@pytest.fixture
def sample(population):
    return stratal.SimpleRandom(budget=20).draw(population, seed=3)


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
    assert f"'{one}' counts as 1" in " ".join(found.notes)


def test_inspects_grades_and_preferences_have_halves():
    assert meanings(["C", "I", "P", "N"]) == {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
    assert meanings(["A", "B", "tie"]) == {"A": 1.0, "B": 0.0, "tie": 0.5}
    assert meanings(["model_a", "tie (bothbad)"]) == {"model_a": 1.0, "tie (bothbad)": 0.5}


def test_halves_stay_within_0_and_1(sample):
    words = dict(zip(sample.ids.tolist(), ["win"] * 18 + ["tie", "loss"], strict=True))

    interval = stratal.estimate(sample, words).confidence_interval()

    assert interval.high <= 1.0


@pytest.mark.parametrize("words", [["P"], ["T"]])
def test_a_lone_letter_that_may_mean_two_things_is_asked_for(words):
    with pytest.raises(LabelError, match=r"may stand for several things.*--positive"):
        meanings(words)


@pytest.mark.parametrize("words", [["cat", "dog"], ["A", "B", "C"], ["pass", "no"], []])
def test_classes_and_mixtures_are_no_vocabulary(words):
    assert meanings(words) is None


def test_numbers_outside_0_and_1_do_not_mix_with_words(sample):
    with pytest.raises(LabelError, match=r"'Pass' of id .* is not a finite number"):
        stratal.estimate(sample, {sample.ids[0]: "Pass", sample.ids[1]: 3})


def test_no_word_is_on_both_sides_of_a_vocabulary():
    assert all(0.0 in known.values() and 1.0 in known.values() for known in VOCABULARIES)


def test_positive_counts_one_label_whatever_its_case():
    labels = Labels(ids=("a", "b", "c", "d"), values=("Good", "poor", None, "so-so"))

    counted = labels.counted_as(positive="good")

    assert counted.values == (1.0, 0.0, None, 0.0)
    assert counted.notes == ("'Good' counts as 1, 'poor' and 'so-so' count as 0",)


def test_a_positive_that_nobody_gave_is_said():
    counted = Labels(ids=("a",), values=("bad",)).counted_as(positive="fine")

    assert counted.values == (0.0,)
    assert "no label is 'fine'" in counted.notes[0]


@pytest.mark.parametrize(
    ("positive", "values"),
    [("Pass", (0, 1)), ("Pass", (1,)), ("1", ("good", "poor")), ("right", ("Pass", "Fail"))],
)
def test_a_positive_that_cannot_be_meant_is_refused_with_the_labels_that_are_there(positive, values):
    labels = Labels(ids=tuple("abc"[: len(values)]), values=values)

    with pytest.raises(LabelError, match=f"no label is '{positive}' .given: '{values[0]}'"):
        labels.counted_as(positive=positive)


@pytest.mark.parametrize(("positive", "values"), [("5", (1, 4)), ("Pass", ("Fail",)), ("best", ("a", "b"))])
def test_a_positive_that_nobody_happened_to_give_counts_nothing(positive, values):
    counted = Labels(ids=tuple("ab"[: len(values)]), values=values).counted_as(positive=positive)

    assert set(counted.values) == {0.0}


def test_a_mapping_gives_numbers_bounds_and_no_labels():
    labels = Labels(ids=("a", "b", "c"), values=("Pass", "Partial", "Unsure"))

    counted = labels.counted_as(mapping={"pass": 1, "fail": 0, "partial": 0.5, "unsure": None})

    assert counted.values == (1, 0.5, None)
    assert counted.bounds == (0, 1)


def test_a_mapping_must_hold_every_label():
    with pytest.raises(LabelError, match=r"leaves out 'Partial'.*--map"):
        Labels(ids=("a",), values=("Partial",)).counted_as(mapping={"Pass": 1.0})


def test_numbers_may_be_mapped_as_they_are_written():
    assert Labels(ids=("a", "b"), values=(1.0, "2")).counted_as(mapping={"1": 0, "2": 1}).values == (0, 1)


def test_several_words_of_one_number_are_joined():
    assert spoken({"yes": 1.0, "y": 1.0, "no": 0.0}) == "'yes' and 'y' count as 1, 'no' counts as 0"


def test_an_answer_without_a_meaning_is_refused_with_the_way_to_leave_it_out(sample):
    with pytest.raises(LabelError, match="n/a= without a number: no label"):
        stratal.estimate(sample, {sample.ids[0]: 1, sample.ids[1]: "n/a"})
