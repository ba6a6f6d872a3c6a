"""Real classifiers on scikit-learn's bundled data, to check a paper on image models with anywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from papers.loaders import scikit_learn
from stratal.arrays import AnyArray, FloatArray

FAMILIES = {
    "logistic": "forest",
    "naive Bayes": "forest",
    "small forest": "forest",
    "neighbours": "support vectors",
}
"""Evaluated model → its surrogate, which is trained on more."""


DIGITS = 5
"""Decimals of a trained model's probabilities. Models are trained until nothing moves, and most of what still
differs between machines and versions of the libraries is rounded away. A few values lie between two decimals:
with another BLAS kernel 50 of 30,000 probabilities of one logistic regression move by 1e-5."""

QUICK = ("digits", "cancer", "patch: its brightness")
"""Tasks of a quick run."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trained:
    """One model's probabilities on the calibration half and on the population.

    Parameters
    ----------
    held_out : float (M, C)
        Or (M,) where only accuracy can be asked for: the probability that the evaluated model is right.
    population : float (N, C) or (N,)
    right : (float (M,), float (N,)), optional
        Then whether the evaluated model is right.

    Examples
    --------
    >>> Trained(held_out=np.eye(2), population=np.eye(3)).population.shape
    (3, 3)
    """

    held_out: FloatArray
    population: FloatArray
    right: tuple[FloatArray, FloatArray] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Task:
    """A classification task with trained models.

    Parameters
    ----------
    name : str
    held_out_labels : int (M,)
        Of the calibration half.
    labels : int (N,)
        Of the population.
    features : float (N, d), optional
        Of the population; the embeddings.
    models : dict of name to Trained
    judges : dict of name to name
        Evaluated model → its surrogate.

    Examples
    --------
    >>> Task(name="a", held_out_labels=np.zeros(1, int), labels=np.zeros(2, int), features=np.zeros((2, 1)),
    ...      models={}).name
    'a'
    """

    name: str
    held_out_labels: AnyArray
    labels: AnyArray
    features: FloatArray | None
    models: dict[str, Trained]
    judges: dict[str, str] = field(default_factory=FAMILIES.copy)

    def has_probabilities(self, family: str) -> bool:
        """Whether a family and its surrogate have a probability of each class, which losses need."""
        return all(self.models[name].population.ndim == 2 for name in (family, self.judges[family]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Data:
    features: FloatArray
    labels: AnyArray
    few: int
    many: int


def trained_tasks(*, quick: bool = False, seed: int = 0) -> list[Task]:
    """Train every family on every bundled task.

    Parameters
    ----------
    quick : bool
        One task of each kind of data only: pictures of digits, measurements, and few patches of photographs.
    seed : int
        Of the splits, the noise and the training.

    Returns
    -------
    list of Task

    Raises
    ------
    MissingExtraError
        Without scikit-learn.
    """
    rng = np.random.default_rng(seed)
    makers: dict[str, Callable[[np.random.Generator], _Data]] = {
        "digits": _digits,
        "cancer": _cancer,
        "digits, noisy": _noisy_digits,
        "digits, left half": _half_digits,
        "digits, odd or even": _odd_digits,
        "patch: which picture": _pictures,
        "patch: its brightness": _few_brightness if quick else _brightness,
    }
    names = QUICK if quick else tuple(makers)
    return [_train(name, makers[name](rng), rng, seed) for name in names]


def model(name: str, seed: int) -> Any:
    """Return an untrained classifier by its family's name."""
    with scikit_learn():
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.naive_bayes import GaussianNB
        from sklearn.neighbors import KNeighborsClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC
    if name == "support vectors":
        from sklearn.calibration import CalibratedClassifierCV

        return make_pipeline(StandardScaler(), CalibratedClassifierCV(SVC(tol=1e-8), ensemble=False))
    return {
        "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=20_000, tol=1e-9)),
        "naive Bayes": lambda: make_pipeline(StandardScaler(), GaussianNB(var_smoothing=1e-2)),
        "small forest": lambda: RandomForestClassifier(12, max_depth=5, random_state=seed),
        "neighbours": lambda: make_pipeline(StandardScaler(), KNeighborsClassifier(9)),
        "forest": lambda: RandomForestClassifier(200, random_state=seed),
    }[name]()


def _train(name: str, data: _Data, rng: np.random.Generator, seed: int) -> Task:
    order = rng.permutation(len(data.labels))
    few, many, rest = order[: data.few], order[: data.many], order[data.many :]
    held_out, population = np.array_split(rest, 2)
    n_classes = int(data.labels.max()) + 1
    models = {}
    for family in dict.fromkeys([*FAMILIES, *FAMILIES.values()]):
        rows = many if family in FAMILIES.values() else few
        fitted = model(family, seed).fit(data.features[rows], data.labels[rows])
        models[family] = Trained(
            held_out=_probabilities(fitted, data.features[held_out], n_classes),
            population=_probabilities(fitted, data.features[population], n_classes),
        )
    return Task(
        name=name,
        held_out_labels=data.labels[held_out],
        labels=data.labels[population],
        features=data.features[population],
        models=models,
    )


def _probabilities(fitted: Any, features: FloatArray, n_classes: int) -> FloatArray:
    """Return probabilities of all classes, none of them 0, so that every loss is finite."""
    found = np.full((len(features), n_classes), 1e-4)
    found[:, np.asarray(fitted.classes_, dtype=np.int64)] += fitted.predict_proba(features)
    return np.asarray(np.round(found / found.sum(axis=1, keepdims=True), DIGITS))


def bundled(name: str) -> Any:
    """Return one of scikit-learn's bundled data sets by the name of its loader."""
    with scikit_learn():
        from sklearn import datasets
    return getattr(datasets, name)()


def _digits(rng: np.random.Generator) -> _Data:
    found = bundled("load_digits")
    return _Data(features=found.data, labels=found.target, few=60, many=400)


def _noisy_digits(rng: np.random.Generator) -> _Data:
    data = _digits(rng)
    noisy = data.features + rng.normal(0, 5, data.features.shape)
    return replace(data, features=noisy, few=150)


def _half_digits(rng: np.random.Generator) -> _Data:
    data = _digits(rng)
    left = data.features.reshape(-1, 8, 8)[:, :, :4].reshape(len(data.labels), -1)
    return replace(data, features=left, few=150)


def _odd_digits(rng: np.random.Generator) -> _Data:
    data = _digits(rng)
    return replace(data, labels=data.labels % 2)


def _cancer(rng: np.random.Generator) -> _Data:
    found = bundled("load_breast_cancer")
    return _Data(features=found.data[:, :10], labels=found.target, few=30, many=120)


def picture_patches(rng: np.random.Generator, count: int) -> tuple[FloatArray, AnyArray, AnyArray]:
    """Return patches (count, 27) of 3 × 3 pixels from two photographs, which picture, and the column."""
    images = np.stack(bundled("load_sample_images").images).astype(np.float64)
    picture = rng.integers(0, 2, count)
    row = rng.integers(1, images.shape[1] - 1, count)
    column = rng.integers(1, images.shape[2] - 1, count)
    parts = [images[picture, row + i, column + j] for i in (-1, 0, 1) for j in (-1, 0, 1)]
    return np.concatenate(parts, axis=1), picture, column


def _pictures(rng: np.random.Generator) -> _Data:
    features, picture, _ = picture_patches(rng, 16_000)
    return _Data(features=features, labels=picture, few=300, many=4000)


def _few_brightness(rng: np.random.Generator) -> _Data:
    return replace(_brightness(rng, 3000), many=1000)


def _brightness(rng: np.random.Generator, count: int = 16_000) -> _Data:
    features, _, _ = picture_patches(rng, count)
    centre = features[:, 12:15].mean(axis=1)
    labels = np.searchsorted(np.quantile(centre, [0.2, 0.4, 0.6, 0.8]), centre)
    corners = np.concatenate([features[:, k : k + 3] for k in (0, 6, 18, 24)], axis=1)
    return _Data(features=corners, labels=labels, few=300, many=4000)
