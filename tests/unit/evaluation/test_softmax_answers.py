"""Tables with the probabilities of all classes and labels, but without a column of the model's answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stratal
from stratal.errors import InputError, LabelError

CLASSES = np.array(["cat", "dog", "horse"])


def table(classes: Any = CLASSES, labelled: int = 300) -> dict[str, Any]:
    """Return columns of probabilities and labels, of which the first rows have one."""
    rng = np.random.default_rng(2)
    probabilities = rng.dirichlet([1.0] * len(classes), 300)
    labels = np.array([rng.choice(len(classes), p=row) for row in probabilities])
    columns: dict[str, Any] = {"id": np.arange(300)}
    columns |= {f"p_{name}": probabilities[:, k] for k, name in enumerate(classes)}
    label = np.array(classes)[labels].tolist()
    return columns | {"label": label[:labelled] + [None] * (300 - labelled)}


def accuracy(columns: dict[str, Any], classes: Any) -> float:
    """Return how often the most probable class is the label, of the rows with a label."""
    probabilities = np.column_stack([columns[f"p_{name}"] for name in classes])
    answers = np.array(classes)[probabilities.argmax(axis=1)]
    right = [
        answer == label for answer, label in zip(answers, columns["label"], strict=True) if label is not None
    ]
    return float(np.mean(right))


@pytest.mark.parametrize("classes", [CLASSES, CLASSES[:2], np.arange(3)])
def test_the_most_probable_class_is_the_answer(classes):
    columns = table(classes)

    evaluation = stratal.evaluate(columns)

    assert evaluation.estimate.value == pytest.approx(accuracy(columns, classes))
    assert "`predicted_class`" in str(evaluation)
    assert "the most probable class" in str(evaluation)


def test_a_partly_labelled_table_has_the_probability_of_the_answer_as_its_proxy():
    evaluation = stratal.evaluate(table(labelled=60))

    assert "proxy: `confidence`" in str(evaluation)
    assert evaluation.estimate.n == 60


def test_metrics_of_classes_are_of_the_most_probable_class():
    columns = table()
    evaluation = stratal.evaluate(columns, metric="recall")
    probabilities = np.column_stack([columns[f"p_{name}"] for name in CLASSES])
    is_dog = np.array(columns["label"]) == "dog"
    recall = np.mean(CLASSES[probabilities.argmax(axis=1)][is_dog] == "dog")

    assert f"{100 * recall:.1f}%" in str(evaluation)


@pytest.mark.parametrize(
    "options",
    [
        {"positive": "cat"},
        {"estimand": "auc:cat", "proxy": "p_cat"},
        {"value": "label", "predicted": "answer"},
    ],
)
def test_stated_roles_are_kept(options):
    columns = table(labelled=60) | {"answer": CLASSES[np.arange(300) % 3].tolist()}
    if "predicted" not in options:
        del columns["answer"]

    assert "predicted_class" not in str(stratal.evaluate(columns, **options))


def test_a_column_of_answers_is_used_if_the_table_has_one():
    columns = table() | {"prediction": CLASSES[np.arange(300) % 3].tolist()}
    right = np.mean(np.array(columns["prediction"]) == np.array(columns["label"]))

    assert stratal.evaluate(columns).estimate.value == pytest.approx(right)


@pytest.mark.parametrize("answer", ["prediction", "species"])
@pytest.mark.parametrize(("label", "words"), [("correct", [0, 1]), ("label", ["wrong", "right"])])
def test_labels_that_say_whether_an_answer_is_right_are_outcomes(answer, label, words):
    """The only column of classes has the answers, not the labels: these were called unknown classes."""
    rng = np.random.default_rng(3)
    columns = table()
    del columns["label"]
    right = rng.integers(0, 2, 300)
    columns |= {answer: CLASSES[np.arange(300) % 3].tolist(), label: np.array(words)[right].tolist()}

    evaluation = stratal.evaluate(columns)

    assert evaluation.estimate.value == pytest.approx(right.mean())
    assert "predicted_class" not in str(evaluation)


def test_zeros_and_ones_may_be_outcomes():
    columns = table(np.arange(2))

    assert stratal.evaluate(columns).estimate.value == pytest.approx(np.mean(columns["label"]))


def test_waves_of_a_table_have_the_same_answers():
    columns = table()
    weeks = np.repeat([0, 1, 2], 100)
    trend = stratal.trend(columns | {"week": weeks.tolist()}, wave="week")

    for week, wave in enumerate(trend.waves):
        rows = np.flatnonzero(weeks == week)
        part = {name: [entries[row] for row in rows] for name, entries in columns.items()}
        assert wave.rows[()].value == pytest.approx(accuracy(part, CLASSES))


def test_whole_numbers_beside_empty_cells_are_classes(tmp_path):
    """Such labels are floats in pandas: the mean of the labels was 1.13, without a word."""
    pandas = pytest.importorskip("pandas")
    columns = table(np.arange(3), labelled=120)
    frame = pandas.DataFrame(columns)
    frame.to_csv(tmp_path / "answers.csv", index=False)
    assert frame["label"].dtype == float

    for source in (frame, tmp_path / "answers.csv"):
        evaluation = stratal.evaluate(source)

        assert "`predicted_class`" in str(evaluation)
        right = stratal.evaluate(columns).estimate
        assert evaluation.estimate.value == pytest.approx(right.value)
        assert evaluation.estimate.n == 120


def test_probabilities_of_two_models_are_not_answers_of_the_first():
    """Which model came first decided the result, .82 or .50."""
    columns = table(CLASSES[:2])
    other_probabilities = np.random.default_rng(5).dirichlet([1.0, 1.0], 300)
    columns |= {"q_cat": other_probabilities[:, 0], "q_dog": other_probabilities[:, 1]}

    with pytest.raises(stratal.errors.StratalError):
        stratal.evaluate(columns)


def most_probable(columns):
    """Return the most probable class of each row."""
    probabilities = np.column_stack([columns[f"p_{name}"] for name in CLASSES])
    return CLASSES[probabilities.argmax(axis=1)].tolist()


def test_a_second_column_of_the_classes_may_have_the_answers():
    """It was compared with the labels without a word: .33 instead of .62."""
    columns = table()
    answers = most_probable(columns)
    columns["species"] = answers
    assert stratal.evaluate(columns).estimate.value == pytest.approx(accuracy(columns, CLASSES))

    columns["species"] = answers[1:] + answers[:1]
    with pytest.raises(InputError, match=r"State it: predicted='species'.*predicted='predicted_class'"):
        stratal.evaluate(columns)
    stated = stratal.evaluate(columns, predicted="predicted_class")
    assert stated.estimate.value == pytest.approx(accuracy(columns, CLASSES))


def test_stated_labels_are_compared_with_the_most_probable_class_next_to_other_labels():
    columns = table()
    columns["second"] = CLASSES[np.arange(300) % 3].tolist()[:100] + [None] * 200

    evaluation = stratal.evaluate(columns, value="label")

    assert evaluation.estimate.value == pytest.approx(accuracy(columns, CLASSES))


def test_zeros_and_ones_are_classes_if_the_most_probable_one_is_stated():
    columns = table(np.arange(2))

    evaluation = stratal.evaluate(columns, predicted="predicted_class")

    assert evaluation.estimate.value == pytest.approx(
        np.mean((columns["p_1"] > 0.5) == (np.array(columns["label"]) == 1))
    )


def test_why_a_softmax_is_not_used_is_stated():
    columns = table()
    upper_case = columns | {"label": [label.upper() for label in columns["label"]]}
    with pytest.raises(LabelError, match=r"labels contain '[A-Z]+', but the answers contain '[a-z]+'"):
        stratal.evaluate(upper_case)

    columns["p_dog"] = [*columns["p_dog"][:6], None, *columns["p_dog"][7:]]
    with pytest.raises(InputError, match=r"a probability is missing in 1 of 300 rows .*row 7"):
        stratal.evaluate(columns)


def test_mapped_labels_and_percentages_are_classes_and_probabilities():
    columns = table()
    expected = accuracy(columns, CLASSES)
    columns |= {f"p_{name}": [f"{100 * share:.4f}%" for share in columns[f"p_{name}"]] for name in CLASSES}
    columns["label"] = [{"dog": "Hund"}.get(label, label) for label in columns["label"]]

    assert stratal.evaluate(columns, mapping={"Hund": "dog"}).estimate.value == pytest.approx(expected)


@pytest.mark.parametrize("write", [int, bool, str])
def test_true_classes_0_and_1_are_compared_by_their_name(write):
    """The share of ones of `y_true` was reported, next to the probabilities of both classes."""
    columns = table(np.arange(2))
    columns["y_true"] = [write(label) for label in columns.pop("label")]

    evaluation = stratal.evaluate(columns)

    expected = np.mean((columns["p_1"] > 0.5) == np.array([int(label) for label in columns["y_true"]]))
    assert evaluation.estimate.value == pytest.approx(expected)
