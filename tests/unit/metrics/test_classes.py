"""Classes are compared with the model's answers; what can never be equal is refused."""

from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.errors import LabelError
from stratal.estimands import ClassReport
from stratal.estimation.resolve import refuse_incomparable_classes


@pytest.fixture(scope="module")
def digits():
    """A sample that carries the model's answers, and the true classes by id."""
    generator = np.random.default_rng(0)
    answers = generator.integers(0, 10, 2000).astype(str)
    population = stratal.Population.from_arrays(
        proxy=generator.beta(3, 1, 2000), groups={"digit": answers}, predicted="digit"
    )
    sample = stratal.plan(population, 200).draw(seed=1)
    own = sample.groups["digit"]
    true = np.where(generator.random(200) < 0.85, own, generator.integers(0, 10, 200).astype(str))
    return sample, dict(zip(sample.ids.tolist(), true.tolist(), strict=True))


def test_classes_are_compared_with_the_answers_that_the_sample_holds(digits):
    sample, true = digits
    numbers = np.array([float(true[unit]) for unit in sample.ids.tolist()])
    compared = stratal.estimate(sample, true, predicted=True)
    for labels in (true, numbers):
        assert stratal.estimate(sample, labels).value == compared.value

    right = {unit: float(label == answer) for (unit, label), answer in
             zip(true.items(), sample.groups["digit"], strict=True)}  # fmt: skip
    assert compared == stratal.estimate(sample, right, predicted=False)


def test_labels_that_may_be_classes_or_right_and_wrong_need_a_declaration(digits):
    sample, true = digits
    labels = {unit: float(label == "3") for unit, label in true.items()}

    with pytest.raises(stratal.LabelError) as refused:
        stratal.estimate(sample, labels)
    assert "predicted='digit'" in refused.value.action
    assert "predicted=False" in refused.value.action
    assert 0 < stratal.estimate(sample, labels, predicted=False).value < 1


@pytest.mark.parametrize(
    "spelling", [(1, 0), (True, False), ("1", "0"), ("true", "false"), ("TRUE", "FALSE")]
)
@pytest.mark.parametrize("answers", [("1", "0"), ("True", "False"), ("true", "false"), ("TRUE", "FALSE")])
def test_classes_0_and_1_or_true_and_false_are_compared_however_they_are_spelt(spelling, answers):
    truth = np.arange(200) % 3 == 0
    wrong = np.arange(200) % 10 == 0
    given = [answers[0] if label else answers[1] for label in truth ^ wrong]
    population = stratal.Population.from_arrays(
        proxy=np.full(200, 0.9), groups={"answer": given}, predicted="answer"
    )
    sample = stratal.designs.SimpleRandom(budget=200).draw(population, seed=3)
    labels = {unit: spelling[0] if truth[unit] else spelling[1] for unit in range(200)}

    estimate = stratal.estimate(sample, labels)

    assert estimate.value == pytest.approx(1 - wrong.mean())
    assert any("were compared with the answers" in note for note in estimate.notes)
    assert str(stratal.findings(sample, labels)).startswith("Accuracy 90.0%")


@pytest.mark.parametrize("change", [str.upper, str.title, lambda text: " " + text.title()])
def test_another_spelling_of_an_answer_is_refused(change):
    population = stratal.Population.from_arrays(
        proxy=[0.5] * 60, groups={"animal": ["cat", "dog", "cow"] * 20}, predicted="animal"
    )
    sample = stratal.designs.SimpleRandom(budget=30).draw(population, seed=7)
    own = dict(zip(sample.ids.tolist(), sample.groups["animal"].tolist(), strict=True))
    wrong = {unit: change(label) if label == "cat" else label for unit, label in own.items()}

    for options in ({"predicted": True}, {"estimand": ClassReport()}):
        with pytest.raises(stratal.LabelError, match="Spell the labels as in the answers"):
            stratal.estimate(sample, wrong, **options)
    assert stratal.estimate(sample, own, predicted=True).value == 1.0


@pytest.mark.parametrize("answers", [("yes", "no"), ("cat", "dog")])
def test_labels_that_are_all_in_another_spelling_than_the_answers_are_refused(answers):
    population = stratal.Population.from_arrays(
        proxy=[0.5] * 60, groups={"answer": [*answers] * 30}, predicted="answer"
    )
    sample = stratal.designs.SimpleRandom(budget=30).draw(population, seed=7)
    labels = {
        unit: answer.title()
        for unit, answer in zip(sample.ids.tolist(), sample.groups["answer"].tolist(), strict=True)
    }

    with pytest.raises(stratal.LabelError, match="Spell the labels as in the answers"):
        stratal.estimate(sample, labels)

    mapping = {answer.title(): answer for answer in answers}
    assert stratal.evaluate(sample, labels, mapping=mapping).estimate.value == 1.0


@pytest.mark.parametrize("names", [("ham", "spam"), ("cat", "cow", "dog")])
def test_codes_of_the_answers_are_not_silently_averaged(names):
    codes = {name: code for code, name in enumerate(names)}
    answers = [names[unit % len(names)] for unit in range(60)]
    population = stratal.Population.from_arrays(
        proxy=[0.5] * 60, groups={"answer": answers}, predicted="answer"
    )
    sample = stratal.designs.SimpleRandom(budget=30).draw(population, seed=7)
    labels = {unit: codes[answers[unit]] for unit in sample.ids.tolist()}

    (note,) = [note for note in stratal.estimate(sample, labels).notes if "codes" in note]
    with pytest.raises(stratal.LabelError) as refused:
        stratal.estimate(sample, labels, predicted=True)

    declared = "mapping={" + ",".join(f"'{code}':'{name}'" for name, code in codes.items()) + "}"
    assert declared in note
    assert declared in refused.value.action
    mapping = {str(code): name for name, code in codes.items()}
    assert stratal.evaluate(sample, labels, mapping=mapping).estimate.value == 1.0
    assert not any("codes" in note for note in stratal.estimate(sample, labels, predicted=False).notes)


def test_right_and_wrong_of_several_classes_have_no_note_on_codes():
    population = stratal.Population.from_arrays(
        proxy=[0.5] * 60, groups={"answer": ["cat", "cow", "dog"] * 20}, predicted="answer"
    )
    sample = stratal.designs.SimpleRandom(budget=30).draw(population, seed=7)

    estimate = stratal.estimate(sample, {unit: unit % 2 for unit in sample.ids.tolist()})

    assert not any("codes" in note for note in estimate.notes)


def test_right_and_wrong_are_not_compared_with_classes(digits):
    sample, true = digits

    with pytest.raises(stratal.LabelError, match=r"leave out predicted="):
        stratal.estimate(sample, dict.fromkeys(true, "Pass"), predicted=True)


def test_measurements_are_not_compared_for_equality():
    values = np.linspace(0, 3, 60).round(4)
    population = stratal.Population.from_arrays(
        proxy=[0.5] * 60, groups={"price": values.astype(str)}, predicted="price"
    )
    sample = stratal.designs.SimpleRandom(budget=30).draw(population, seed=7)

    with pytest.raises(stratal.LabelError, match="almost never equal"):
        stratal.estimate(sample, {unit: values[unit] + 1e-4 for unit in sample.ids.tolist()}, predicted=True)


@pytest.mark.parametrize("wanted", [["3", "8"], ["8", "3", "1"], [str(digit) for digit in range(10)]])
def test_averages_over_some_classes_are_those_of_their_own_metrics(digits, wanted):
    sample, true = digits
    table = stratal.estimate(sample, true, estimand=ClassReport("precision,recall,f1", wanted))

    for metric in ("precision", "recall", "f1"):
        own = [table.of(metric=metric, **{"class": name}).value for name in wanted]
        macro = table.of(metric=metric, **{"class": "macro"})
        low, high = macro.confidence_interval()
        assert macro.value == pytest.approx(np.mean(own), abs=1e-12)
        assert low < macro.value < high


def test_a_class_with_a_slip_of_the_pen_is_refused(digits):
    sample, true = digits

    with pytest.raises(stratal.InputError, match="no drawn unit has the class '3 '"):
        stratal.estimate(sample, true, estimand=ClassReport(classes=["3 "]))
    assert len(stratal.estimate(sample, true, estimand=ClassReport("f1", ["3"]))) == 1


@pytest.fixture
def sample():
    """40 of 300 units, a tenth of them predicted 'cat'; the seed draws some of these."""
    answers = np.where(np.arange(300) % 10 == 0, "cat", "dog")
    population = stratal.Population.from_arrays(groups={"answer": answers}, predicted="answer")
    return stratal.designs.SimpleRandom(budget=40).draw(population, seed=3)


@pytest.mark.parametrize(
    ("label", "message"), [("CAT", "contain 'cat'"), ("d og", "contain 'dog'"), (1, "leave out predicted=")]
)
def test_labels_that_match_no_class_are_refused(sample, label, message):
    labels = dict.fromkeys(sample.ids.tolist(), label)
    with pytest.raises(stratal.LabelError, match=message):
        stratal.estimate(sample, labels, predicted=True)
    with pytest.raises(stratal.LabelError, match=message):
        stratal.estimate(sample, labels, estimand=ClassReport())


def test_free_text_that_is_never_right_is_an_estimate():
    texts = [f"answer {number}" for number in range(50)]
    population = stratal.Population.from_arrays(groups={"text": texts}, predicted="text")
    sample = stratal.designs.SimpleRandom(budget=10).draw(population, seed=1)
    labels = {unit: f"truth {unit}" for unit in sample.ids.tolist()}

    assert stratal.estimate(sample, labels, predicted=True).value == 0


def test_a_class_that_no_label_shows_makes_balanced_accuracy_unknown(sample):
    """The sample knows how many units the model calls a cat; none of the labels is one."""
    labels = dict.fromkeys(sample.ids.tolist(), "dog")
    table = stratal.estimate(sample, labels, estimand=ClassReport("balanced_accuracy"))

    assert sample.totals == {"answer": {"cat": 30, "dog": 270}}
    assert np.isnan(table[0].value)
    assert any("1 of 2 classes" in note for note in table.notes)


def test_where_the_classes_are_not_known_it_is_said():
    sample = stratal.designs.SimpleRandom(budget=30).draw(
        stratal.Population.from_arrays(ids=range(300)), seed=3
    )
    true = {unit: str(unit % 2) for unit in sample.ids.tolist()}
    labels = {"label": true, "predicted": true}
    table, named = (
        stratal.estimate(sample, labels, estimand=ClassReport("balanced_accuracy", classes))
        for classes in ((), ("0", "1", "2"))
    )

    assert table[0].value == 1
    assert any("Name all classes" in note for note in table.notes)
    assert np.isnan(named[0].value)


@pytest.mark.parametrize(
    "words", [["A", "B", "tie"], ["model_a", "model_b", "tie"], ["win", "loss", "tie"], ["0", "1"]]
)
@pytest.mark.parametrize("answers", ["free text", "classes"])
@pytest.mark.parametrize("kind", ["difference", "win_rate", "ratio"])
def test_preferences_are_no_classes_that_two_models_may_hit(words, answers, kind):
    """A model is never equal to a preference, so that the difference would be 0, from −.013 to .013."""
    made = [[f"text {k} of {name}" for k in range(60)] for name in "xy"]
    columns = made if answers == "free text" else [["cat", "dog"] * 30, ["dog"] * 60]
    population = stratal.Population.from_arrays(groups=dict(zip(("new", "old"), columns, strict=True)))
    sample = stratal.designs.SimpleRandom(budget=30).draw(population, seed=7)
    labels = [words[k % len(words)] for k in range(30)]

    with pytest.raises(LabelError, match="match almost none of 30 labels"):
        stratal.estimate(sample, labels, estimand=f"{kind}:new,old")


def test_few_preferences_are_refused_too_and_answers_in_the_same_words_are_not():
    refused = [["A", "B", "tie"], ["Pass"], ["yes", "no"]]
    for labels in refused:
        with pytest.raises(LabelError, match="which of two models is better"):
            refuse_incomparable_classes(labels, ["cat", "dog"])
    refuse_incomparable_classes(["no", "no"], ["yes", "yes"])
    refuse_incomparable_classes(["tie", "A"], ["A", "B"])
    refuse_incomparable_classes(["eel"], ["cat", "dog"])
    refuse_incomparable_classes([f"answer {k}" for k in range(30)], [f"text {k}" for k in range(30)])
