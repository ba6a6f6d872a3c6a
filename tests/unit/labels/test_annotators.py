from __future__ import annotations

import sys

import numpy as np
import pytest

import stratal
from stratal.errors import InputError, LabelError, MissingExtraError
from stratal.estimands import ClassReport
from stratal.labels.annotators import measure_agreement, measurement_level

pytest.importorskip("krippendorff")


def labels(rows):
    ids, annotators, values = zip(*rows, strict=True)
    return stratal.Labels(ids=ids, values=values, annotators=annotators)


def test_alpha_of_krippendorffs_example_of_two_observers():
    """Krippendorff, "Computing Krippendorff's alpha-reliability" (2011), binary data: 0.095."""
    first, second = "0100000000", "1110011000"
    rows = [(str(j), who, int(text[j])) for who, text in (("a", first), ("b", second)) for j in range(10)]

    found = stratal.annotator_agreement(labels(rows))

    assert found.alpha == pytest.approx(0.095, abs=0.001)
    assert (found.answers, found.units, found.shared) == (20, 10, 10)


def test_what_is_no_labels_is_told_how_to_become_some():
    with pytest.raises(InputError, match=r"takes Labels \(given: a dict\). Read them with stratal"):
        stratal.annotator_agreement({"a": 1.0})


def test_shared_units_have_several_answers():
    found = stratal.annotator_agreement(
        labels([("u", "a", 1), ("u", "b", 3), ("v", "a", 2), ("v", "b", 2), ("w", "a", 9)]), level="interval"
    )

    assert (found.shared, found.open) == (2, 1)


def test_text_answers_and_undefined_alpha():
    found = stratal.annotator_agreement(labels([("u", "a", "cat"), ("u", "b", "cat")]))

    assert found.alpha is None
    assert "undefined" in str(found)
    with pytest.raises(LabelError, match="requires numbers"):
        stratal.annotator_agreement(labels([("u", "a", "cat"), ("u", "b", "dog")]), level="interval")
    with pytest.raises(InputError, match="unknown level"):
        stratal.annotator_agreement(labels([("u", "a", 1)]), level="interval-ish")
    with pytest.raises(LabelError, match="no annotators are named"):
        stratal.annotator_agreement(stratal.Labels(ids=("u",), values=(1,)))


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "krippendorff", None)
    with pytest.raises(MissingExtraError, match="agreement"):
        stratal.annotator_agreement(labels([("u", "a", 1), ("u", "b", 0)]))


@pytest.fixture
def sample():
    population = stratal.Population.from_arrays(proxy=np.full(50, 0.5), ids=[f"u{j}" for j in range(50)])
    return stratal.designs.SimpleRandom(budget=3).draw(population, seed=1)


def test_answers_are_averaged_or_the_majority_taken(sample):
    one, two, three = sample.ids.tolist()
    rows = [(one, "a", 1), (one, "b", 1), (one, "c", 0), (two, "a", 0), (two, "b", 1), (three, "a", 1)]

    mean = stratal.estimate(sample, labels(rows), bounds=(0, 1))
    majority = stratal.estimate(sample, labels(rows), combine="majority")

    assert mean.value == pytest.approx((2 / 3 + 1 / 2 + 1) / 3)
    assert majority.value == 1.0
    assert majority.n == 2
    assert any("1 without a majority" in note for note in majority.notes)
    assert any("variance" in note for note in mean.notes)
    with pytest.raises(InputError, match="no such combination"):
        stratal.estimate(sample, labels(rows), combine="median")


def test_metrics_take_the_majority(sample):
    one, two, three = sample.ids.tolist()
    rows = [(one, "a", "cat"), (one, "b", "cat"), (one, "c", "dog"), (two, "a", "dog"), (three, "a", "cat")]
    answers = {one: "cat", two: "cat", three: "cat"}

    table = stratal.estimate(
        sample,
        {"label": labels(rows), "predicted": answers},
        estimand=ClassReport("precision", classes=["cat"]),
    )

    assert table[0].value == pytest.approx(2 / 3)


def test_groups_without_any_unit_are_refused(sample):
    with pytest.raises(LabelError, match="no drawn unit has a group"):
        stratal.estimate(sample, dict.fromkeys(sample.ids, 1.0), by={})


def test_alpha_is_undefined_where_shared_units_show_one_answer_though_others_differ():
    """Units with one answer say nothing of agreement."""
    ids, people = ("a", "a", "b", "b", "c"), ("ann", "bob", "ann", "bob", "ann")
    found = stratal.annotator_agreement(stratal.Labels(ids=ids, values=(1, 1, 1, 1, 0), annotators=people))

    assert found.alpha is None
    assert found.agreed == 1.0


@pytest.mark.parametrize(
    ("values", "classes", "level"),
    [
        (["1", "5", "3", None], False, "interval"),
        ([1, 5, 3], True, "nominal"),
        ([0, 1, 1], False, "nominal"),
        (["good", "bad", "ugly"], False, "nominal"),
    ],
)
def test_three_numbers_or_more_that_are_no_classes_are_a_scale(values, classes, level):
    given = stratal.Labels(ids=[f"u{k}" for k in range(len(values))], values=values)

    assert measurement_level(given, classes=classes) == level


def test_skips_that_name_nobody_are_no_second_annotator():
    rows = [("a", "ann", 1), ("b", "ann", 0), ("c", "", None)]

    assert measure_agreement(labels(rows)) is None


@pytest.mark.parametrize("words", [("PASS", "FAIL"), ("pass ", "fail"), (1, 0), ("1.0", "0")])
def test_annotators_agree_in_different_words(words):
    """They agreed less than by chance, although the estimate counted both as 1."""
    pairs = [("pass", words[0]), ("fail", words[1])] * 10 + [("pass", words[1])]
    rows = [(f"u{row}", "ab"[k], pair[k]) for row, pair in enumerate(pairs) for k in (0, 1)]

    found = stratal.annotator_agreement(labels(rows))

    assert found.agreed == pytest.approx(20 / 21)
    assert found.open == 1
