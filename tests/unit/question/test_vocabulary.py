"""Names of metrics in other fields."""

import pytest

from stratal.estimands import Average
from stratal.estimation.estimand import as_estimand
from stratal.question.vocabulary import average_name, metric_name, success_word


@pytest.mark.parametrize(
    ("text", "metric", "average"),
    [
        ("f1_micro", "f1", "micro"),
        ("macro F1", "f1", "macro"),
        ("weighted-recall", "recall", "weighted"),
        ("micro_ppv", "precision", "micro"),
    ],
)
def test_averages_have_the_names_of_scikit_learn(text, metric, average):
    assert as_estimand(text) == Average(metric, average)


def test_other_names_are_no_averages():
    assert average_name("f1") is None
    assert average_name("f1:micro") is None
    assert as_estimand("weighted_kappa:score").text == "weighted_kappa:score"
    assert metric_name("Sensitivity:spam") == "recall:spam"


@pytest.mark.parametrize(
    ("words", "success"),
    [
        (("incorrect", "correct"), "correct"),
        (("Relevant", "irrelevant"), "Relevant"),
        (("unsafe", "safe"), "safe"),
        (("not ok", "OK"), "OK"),
        (("hallucinated", "grounded"), "grounded"),
        (("negative", "positive"), "positive"),
        (("toxic", "non-toxic"), "toxic"),
        (("ham", "spam"), None),
        (("cat", "dog"), None),
        (("yes", "correct"), None),
        (("yes",), None),
    ],
)
def test_the_word_that_means_success(words, success):
    assert success_word(words) == success
