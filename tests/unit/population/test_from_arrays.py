"""Populations from scikit-learn classifiers."""

from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal import Population
from stratal.errors import InputError

pytest.importorskip("sklearn")


@pytest.fixture
def digits():
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X / 16, y


def test_the_confidence_of_the_answer_is_the_proxy(digits):
    from sklearn.linear_model import LogisticRegression

    X, y = digits
    model = LogisticRegression(max_iter=500).fit(X[:500], y[:500])

    population = Population.from_estimator(model, X[500:], ids=[f"d-{n:04d}" for n in range(len(y) - 500)])

    assert population.distribution().mean == pytest.approx(model.predict_proba(X[500:]).max(axis=1).mean())
    counts = dict(zip(*np.unique(model.predict(X[500:]).astype(str), return_counts=True), strict=True))
    assert population.levels("predicted_class") == counts


def test_labels_that_are_classes_are_compared_with_the_answers(digits):
    from sklearn.naive_bayes import GaussianNB

    X, y = digits
    model = GaussianNB().fit(X[:900], y[:900])
    sample = stratal.plan(Population.from_estimator(model, X[900:]), 400).draw(seed=1)
    labels = {unit: str(y[900 + unit]) for unit in sample.ids.tolist()}

    estimate = stratal.estimate(sample, labels, predicted=True)

    low, high = estimate.confidence_interval()
    assert low <= float((model.predict(X[900:]) == y[900:]).mean()) <= high


@pytest.mark.parametrize("classes", [2, 10])
def test_margins_only_order(digits, classes):
    from sklearn.svm import LinearSVC

    X, y = digits
    model = LinearSVC(dual=False).fit(X[:500], y[:500] % classes)

    population = Population.from_estimator(model, X[500:])

    assert population.proxy_names == ("margin",)
    assert not population.proxy_info().scaled
    counts = dict(zip(*np.unique(model.predict(X[500:]).astype(str), return_counts=True), strict=True))
    assert population.levels("predicted_class") == counts


def test_what_is_no_classifier_is_refused(digits):
    from sklearn.linear_model import LinearRegression
    from sklearn.tree import DecisionTreeClassifier

    X, y = digits
    with pytest.raises(InputError, match="not a fitted classifier"):
        Population.from_estimator(LinearRegression().fit(X, y), X)
    two = DecisionTreeClassifier().fit(X, np.column_stack([y, y % 2]))
    with pytest.raises(InputError, match="not a fitted classifier with one answer"):
        Population.from_estimator(two, X)
    with pytest.raises(TypeError, match="unexpected keyword argument 'predicted'"):
        Population.from_estimator(DecisionTreeClassifier().fit(X, y), X, predicted="x")


def test_a_classifier_without_confidence_is_refused(digits):
    from types import SimpleNamespace

    with pytest.raises(InputError, match="not a fitted classifier"):
        Population.from_estimator(SimpleNamespace(classes_=[0, 1]), digits[0])
