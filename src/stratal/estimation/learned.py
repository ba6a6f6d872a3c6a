"""What a fold is given of a learner: the learner where the other folds say that it helps, else less.

For each fold the choice is made among the other folds alone: each of them is predicted by what the rest of
them fitted. So a unit's prediction depends on its own label in no way, the choice included, and the estimate
is as unbiased as with any function that was fixed beforehand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, Record
from stratal.errors import InputError
from stratal.population.tables.declaration import fitting
from stratal.proxy.calibration import Calibration, calibrate
from stratal.proxy.learners import Learned, described, learn
from stratal.randomness import id_texts

if TYPE_CHECKING:
    from stratal.population.population import Population
    from stratal.sampling.sample import Sample

FEWEST_FOLDS = 3
"""Two to choose by, and one that the choice does not see."""

FEWEST_LABELS = 2
"""Fewer have a mean and nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit(Record):
    """What one fold is predicted by.

    Parameters
    ----------
    kind : {"none", "isotonic", "learner"}
        A constant, the proxy's isotonic calibration, or the learner.
    fitted : Calibration or Learned
    column : int, optional
        The one column that it is fitted to; all unless given.

    Examples
    --------
    >>> Fit(kind="none", fitted=Learned(level=0.5)).apply(np.zeros((2, 3)))
    array([0.5, 0.5])
    """

    kind: str
    fitted: Calibration | Learned
    column: int | None = None

    def apply(self, matrix: FloatArray) -> FloatArray:
        """Return the predicted mean outcome (N,) of features (N, d)."""
        return self.fitted.apply(matrix if self.column is None else matrix[:, self.column])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labelled(Record):
    """Labelled units to learn from.

    Parameters
    ----------
    features : float (m, d)
    z : float (m,)
    weights : float (m,)
        Design weights.
    stratum, folds : int (m,)
    bounds : (float, float)
        Of the outcome; infinite where it has none.
    column : int, optional
        Column of the proxy whose isotonic calibration the learner must beat.

    Examples
    --------
    >>> units = Labelled(features=[[0.1]], z=[1.0], weights=[1.0], stratum=[0], folds=[0], bounds=(0.0, 1.0))
    >>> units.features.shape
    (1, 1)
    """

    features: FloatArray
    z: FloatArray
    weights: FloatArray
    stratum: IntArray
    folds: IntArray
    bounds: tuple[float, float]
    column: int | None = None

    def fit(self, kind: str, learner: Any, kept: BoolArray) -> Fit:
        """Return what is fitted to the kept units (m,)."""
        z, w = self.z[kept], self.weights[kept]
        if kind == "none" or len(z) < FEWEST_LABELS:
            return Fit(kind="none", fitted=Learned(level=float(np.average(z, weights=w)), bounds=self.bounds))
        if kind == "isotonic":
            assert self.column is not None
            scores = self.features[kept, self.column]
            curve = calibrate(scores, z, method="isotonic", weights=w, bounds=self.bounds)
            return Fit(kind=kind, fitted=curve, column=self.column)
        fitted = learn(self.features[kept], z, learner=learner, weights=w, bounds=self.bounds)
        return Fit(kind=kind, fitted=fitted)

    def loss(self, predicted: FloatArray, kept: BoolArray) -> float:
        """Return what the variance of a difference estimator is proportional to, on the kept units (m,)."""
        stratum, weights = self.stratum[kept], self.weights[kept]
        residuals = (self.z - predicted)[kept]
        counts = np.bincount(stratum)
        means = np.bincount(stratum, residuals) / np.maximum(counts, 1)
        overall = float(np.average(residuals, weights=weights))
        alone = counts[stratum] == 1
        centred = residuals - np.where(alone, overall, means[stratum])
        freedom = np.where(alone, 1.0, counts[stratum] / np.maximum(counts[stratum] - 1, 1))
        return float(np.sum(weights**2 * centred**2 * freedom))


def chosen_fits(units: Labelled, learner: Any) -> tuple[Fit, ...]:
    """Return one fit for each fold, from the other folds: the kind that predicts those best.

    Parameters
    ----------
    units : Labelled
        In three folds or more.
    learner : str or scikit-learn estimator

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.random((100, 2))
    >>> units = Labelled(features=x, z=x.mean(axis=1), weights=np.ones(100), stratum=np.zeros(100, int),
    ...                  folds=np.arange(100) % 5, bounds=(0.0, 1.0), column=0)
    >>> [fit.kind for fit in chosen_fits(units, "ridge")]
    ['learner', 'learner', 'learner', 'learner', 'learner']
    """
    n_folds = int(units.folds.max()) + 1
    if n_folds < FEWEST_FOLDS:
        raise InputError(
            "a learner is chosen and checked by folds",
            given=f"{n_folds} folds",
            allowed=f"{FEWEST_FOLDS} or more",
        )
    kinds = ("none", "learner") if units.column is None else ("none", "isotonic", "learner")
    predicted = {kind: _inner(units, n_folds, partial(units.fit, kind, learner)) for kind in kinds}
    fits = []
    for k in range(n_folds):
        others = units.folds != k
        best = min(kinds, key=lambda kind: units.loss(predicted[kind][k], others))
        fits.append(units.fit(best, learner, others))
    return tuple(fits)


def _inner(units: Labelled, n_folds: int, fit: Callable[[BoolArray], Fit]) -> FloatArray:
    """Return, for each fold (K, m), the predictions of the other folds' units that saw neither."""
    predicted = np.zeros((n_folds, len(units.z)))
    for j, k in combinations(range(n_folds), 2):
        found = fit((units.folds != j) & (units.folds != k))
        for outer, inner in ((k, j), (j, k)):
            rows = units.folds == inner
            predicted[outer, rows] = found.apply(units.features[rows])
    return predicted


def kept_note(fits: tuple[Fit, ...], learner: Any, names: tuple[str, ...]) -> str:
    """Return in which folds the learner was kept.

    Examples
    --------
    >>> fits = (Fit(kind="none", fitted=Learned(level=0.5)), Fit(kind="learner", fitted=Learned(level=0.5)))
    >>> kept_note(fits, "ridge", ("judge_a", "judge_b"))
    'ridge learned from judge_a, judge_b: kept in 1 of 2 folds, as the other folds decided (no proxy in 1)'
    """
    counts = Counter(fit.kind for fit in fits)
    others = {"isotonic": "the proxy's isotonic calibration", "none": "no proxy"}
    rest = ", ".join(f"{words} in {counts[kind]}" for kind, words in others.items() if counts[kind])
    shown = (
        ", ".join(names) if len(names) <= 5 else f"{', '.join(names[:4])} and {len(names) - 4} more columns"
    )
    kept = f"kept in {counts['learner']} of {len(fits)} folds, as the other folds decided"
    return f"{described(learner)} learned from {shown}: {kept}" + (f" ({rest})" if rest else "")


def feature_columns(population: Population, wanted: Iterable[str] | None) -> tuple[str, ...]:
    """Return the columns to learn from: those named, patterns spelt out, or all proxies and features.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy={"judge_a": [0.1, 0.2], "judge_b": [0.3, 0.1]})
    >>> feature_columns(population, ["judge_*"])
    ('judge_a', 'judge_b')
    """
    existing = (*population.proxy_names, *population.feature_names)
    patterns = existing if wanted is None else (wanted,) if isinstance(wanted, str) else tuple(wanted)
    found = fitting(patterns, existing)
    strange = [pattern for pattern in patterns if not fitting([pattern], existing)]
    if strange or not found:
        raise InputError(
            "the learner has no column to learn from"
            if not strange
            else f"no column {strange[0]!r} to learn from",
            allowed=", ".join(existing) or "none",
            action="Name proxies or features of the population: features=, --features.",
        )
    return found


def features_of(sample: Sample, population: Population, names: tuple[str, ...]) -> FloatArray:
    """Return the columns of the drawn units (n, d): from the sample, or looked up in the population.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5], features={"f1": [3.0, 4.0]})
    >>> sample = stratal.SimpleRandom(budget=2).draw(population, seed=7)
    >>> sorted(features_of(sample, population, ("proxy", "f1")).tolist())
    [[0.1, 3.0], [0.5, 4.0]]
    """
    known = {name: sample.proxies[:, k] for k, name in enumerate(sample.proxy_names)}
    if any(name not in known for name in names):
        texts = id_texts(sample.ids)
        found = population.find(texts)
        place = {text: row for row, text in enumerate(id_texts(found.ids))}
        if any(text not in place for text in texts):
            raise InputError(
                "this is not the population that the sample was drawn from",
                given=f"no unit {next(text for text in texts if text not in place)!r}",
                action="Give the population that the sample was drawn from, unchanged.",
            )
        rows = np.array([place[text] for text in texts], dtype=np.int64)
        known = {name: values[rows] for name, values in found.features.items()} | known
        known |= {
            name: found.proxies[rows, k] for k, name in enumerate(population.proxy_names) if name not in known
        }
    return np.column_stack([known[name] for name in names])
