import numpy as np
import pytest

import stratal
from stratal.errors import InputError, MissingExtraError
from stratal.proxy import cross_fit, learn
from stratal.proxy.calibration import LEARNER_NAMES, is_learner, learner_name, new_learner

linear_model = pytest.importorskip("sklearn.linear_model")
RNG = np.random.default_rng(0)
X = RNG.random((300, 3))
CHANCE = 1 / (1 + np.exp(-6 * (X[:, 0] * X[:, 1] - 0.25)))
Z = (RNG.random(300) < CHANCE).astype(float)


@pytest.mark.parametrize("name", sorted({*LEARNER_NAMES} - {"history"}))  # whose features are factors
def test_named_learners_beat_the_mean_and_stay_within_the_bounds(name):
    learned = learn(X[:200], Z[:200], learner=name)

    predicted = learned.apply(X[200:])
    assert np.mean((predicted - CHANCE[200:]) ** 2) < 0.7 * np.var(CHANCE[200:])
    assert predicted.min() >= 0
    assert predicted.max() <= 1


@pytest.mark.parametrize("name", LEARNER_NAMES)
def test_the_same_labels_give_the_same_prediction(name):
    first, second = (learn(X, Z, learner=name).apply(X) for _ in range(2))

    assert np.array_equal(first, second)


def test_a_learner_without_a_seed_gets_one_also_in_a_pipeline():
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    forest = make_pipeline(StandardScaler(), RandomForestRegressor(20))

    assert np.array_equal(learn(X, Z, learner=forest).apply(X), learn(X, Z, learner=forest).apply(X))
    assert new_learner(forest, is_binary=True).get_params()["randomforestregressor__random_state"] == 0
    assert forest.get_params()["randomforestregressor__random_state"] is None
    assert not hasattr(forest.steps[-1][1], "estimators_")


def test_a_classifier_learns_a_share_as_so_many_ones_and_zeros():
    shares = np.round(CHANCE, 1)
    classifier = linear_model.LogisticRegression(C=10.0)

    learned = learn(X, 1 + 4 * shares, learner=classifier, bounds=(1.0, 5.0))

    doubled = linear_model.LogisticRegression(C=10.0).fit(
        np.vstack([X, X]), np.repeat([0, 1], 300), sample_weight=np.concatenate([1 - shares, shares])
    )
    assert learned.apply(X) == pytest.approx(1 + 4 * doubled.predict_proba(X)[:, 1], abs=1e-4)


def test_weights_reach_the_last_step_of_a_pipeline():
    weights = np.where(Z == 1, 5.0, 1.0)

    assert learn(X, Z, learner="ridge", weights=weights).apply(X).mean() > Z.mean() + 0.1


def test_outcomes_without_bounds_are_a_regressors():
    learned = learn(X, 100 * X[:, 0], learner="ridge", bounds=(-np.inf, np.inf))

    assert learned.apply(X) == pytest.approx(100 * X[:, 0], abs=1)
    with pytest.raises(InputError, match="without bounds"):
        learn(X, 100 * X[:, 0], learner=linear_model.LogisticRegression(), bounds=(-np.inf, np.inf))


def test_labels_that_agree_teach_nothing():
    assert learn(X, np.ones(300), learner="gradient-boosting").apply(X[:3]).tolist() == [1, 1, 1]


def test_what_is_no_learner_is_refused():
    with pytest.raises(InputError, match=r"Give an instance, as in Ridge\(\)"):
        learn(X, Z, learner=linear_model.Ridge)
    with pytest.raises(InputError, match="unknown learner"):
        learn(X, Z, learner="forest")
    with pytest.raises(InputError, match="scikit-learn estimator"):
        learn(X, Z, learner=object())
    with pytest.raises(InputError, match="does not predict probabilities"):
        learn(X, Z, learner=linear_model.RidgeClassifier())
    from sklearn.neighbors import KNeighborsClassifier

    with pytest.raises(InputError, match="accepts no weights"):
        learn(X, CHANCE, learner=KNeighborsClassifier())


def test_what_scikit_learn_says_of_a_fit_is_one_sentence():
    from sklearn.neighbors import KNeighborsRegressor

    with pytest.raises(InputError, match="KNeighborsRegressor"):
        learn(X[:4], Z[:4], learner=KNeighborsRegressor(n_neighbors=0))


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn.base", None)

    with pytest.raises(MissingExtraError, match=r"stratal\[learn\]"):
        learn(X, Z, learner="ridge")


def test_names_and_estimators_are_learners_and_calibrations_are_not():
    assert all(is_learner(each) for each in (*LEARNER_NAMES, linear_model.Ridge()))
    assert not any(is_learner(each) for each in ("isotonic", "logistic", None))
    assert learner_name(linear_model.Ridge()) == "Ridge"
    assert learner_name(new_learner("ridge", is_binary=False)) == "RidgeCV"


@pytest.mark.parametrize(
    "scores", [X, X[:, 0], stratal.Proxy(values=X[:, 0])], ids=["several", "one", "proxy"]
)
def test_cross_fit_takes_learners(scores):
    fitted = cross_fit(scores, Z, method=linear_model.Ridge(), n_folds=4)

    assert fitted.apply(scores).shape == (300,)
    for k in range(4):
        kept = fitted.folds != k
        matrix = X if np.ndim(scores) == 2 else X[:, :1]
        alone = linear_model.Ridge().fit(matrix[kept], Z[kept]).predict(matrix[~kept])
        assert fitted.labelled_values[~kept] == pytest.approx(np.clip(alone, 0, 1))
