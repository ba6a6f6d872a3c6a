"""Precision, recall and their relatives, from true and predicted classes under any design.

Every metric of a class k is a ratio of two linear forms in four weighted shares: hits (true and predicted
k), predicted k, true k, and everything. Its linearised variable is the ratio's (Stehman 2014, eq. 23–28,
where the strata need not be the predicted classes); averages over classes and Matthews' correlation follow
by the chain rule. Intervals are Clopper–Pearson's on the effective number of trials (Korn & Graubard 1998).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.estimation.linearisation import of_variable
from stratal.estimation.metric_functions import ClassRatio, Metric, Shares, metric_function
from stratal.estimation.quantity import Parts, Quantity
from stratal.estimation.smoothing import smoothed
from stratal.weighting import Weighting


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Confusion:
    """True and predicted classes of the labelled units, with their weights.

    Parameters
    ----------
    true, predicted : int (n,)
        Class numbers, 0 … K − 1.
    n_classes : int
        K.
    weighting : Weighting

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, dtype=int), sizes=np.array([40]))
    >>> confusion = Confusion(true=np.array([1, 1, 0, 0]), predicted=np.array([1, 0, 0, 0]), n_classes=2,
    ...                       weighting=weighting)
    >>> confusion.metric("recall", 1).value
    0.5
    """

    true: IntArray
    predicted: IntArray
    n_classes: int
    weighting: Weighting

    def metric(self, name: str, which: int | str | None = None, target: str = "population") -> Quantity:
        """Return one metric.

        Parameters
        ----------
        name : str
            One of `METRICS`; `accuracy` is the share of hits.
        which : int or str, optional
            A class number, or one of `AVERAGES`; None for `OVERALL_METRICS`.
        target : {"population", "superpopulation"}

        Raises
        ------
        InputError
            For an unknown metric or average.
        """
        function, counted, pseudo = self._parts(name, which)
        shares = Shares.of(self.true, self.predicted, self.weighting.weights, self.n_classes)
        value, slopes, note = function(shares)
        lowest = -1.0 if name == "mcc" else 0.0
        if not np.isfinite(value):
            return Quantity.undefined(int(counted.sum()), (lowest, 1.0), note)
        result = of_variable(value, slopes.along(self.true, self.predicted), self.weighting, target)
        trials, error, freedom = self._trials(
            function, pseudo, lowest, result.design_variance, counted if isinstance(which, int) else None
        )
        averaged = name in ("mcc", "balanced_accuracy") or which in ("macro", "weighted")
        dice = name == "f1" and isinstance(which, int)
        if dice:
            index = self.metric("jaccard", which, target)
            assert index.trials is not None
            trials = index.trials
        own = result.variance if np.isfinite(result.variance) else error**2
        if target == "superpopulation" and not dice:
            trials = _with_population_part(trials, value, lowest, result.population_variance)
        return Quantity(
            value=value,
            standard_error=float(np.sqrt(max(own, 0.0))),
            degrees_of_freedom=result.degrees_of_freedom,
            n=int(counted.sum()),
            bounds=(lowest, 1.0),
            trials=trials,
            trials_freedom=freedom if averaged else np.inf,
            scale="dice" if dice else "identity",
            parts=self._terms(name, target) if which == "macro" or name == "balanced_accuracy" else None,
            notes=(note,) if note else (),
        )

    def _terms(self, name: str, target: str) -> Parts:
        """Return the classes' own metrics, with the correlation of their errors."""
        name = "recall" if name == "balanced_accuracy" else name
        variables, terms = [], []
        true, predicted, shares = self._pseudo(range(self.n_classes))
        both = (np.concatenate([self.true, true]), np.concatenate([self.predicted, predicted]))
        weights = np.concatenate([self.weighting.weights, shares])
        all_shares = Shares.of(*both, weights, self.n_classes + 1)
        for k in range(self.n_classes):
            function, _, _ = self._parts(name, k)
            _, slopes, _ = function(all_shares)
            variables.append(weights * slopes.along(*both))
            terms.append(self.metric(name, k, target))
        cross = np.array(variables) @ np.array(variables).T
        spread = np.sqrt(np.diag(cross))
        scale = np.where(spread > 0, 1.0 / np.where(spread > 0, spread, 1.0), 0.0)
        coefficients = np.full(self.n_classes, 1.0 / self.n_classes)
        return Parts(
            terms=tuple(terms), coefficients=coefficients, correlation=scale[:, None] * cross * scale
        )

    def _parts(self, name: str, which: int | str | None) -> tuple[Metric, FloatArray, _Pseudo]:
        """Return the metric as a function of shares, the units that it counts (n,), and its pseudo-labels."""
        function = metric_function(name, which, self.n_classes)
        if not isinstance(function, ClassRatio):
            return function, np.ones(len(self.true)), self._pseudo(range(self.n_classes))
        alone, which = function, function.which
        slopes = Shares.of_class(which, alone.below, self.n_classes + 1)
        counted = (slopes.along(self.true, self.predicted) > 0).astype(np.float64)
        negative = name in ("specificity", "negative_predictive_value")
        return alone, counted, self._pseudo([which], negative=negative)

    def _pseudo(self, classes: range | list[int], *, negative: bool = False) -> _Pseudo:
        """Return half a label of right answers and half of wrong ones of each class.

        Wrong ones confuse the class with one that does not exist, whose number is K.
        """
        weights, nobody = self.weighting.weights, self.n_classes
        true, predicted, shares = [], [], []
        for k in classes:
            is_true, is_predicted = self.true == k, self.predicted == k
            involved = ~is_true | ~is_predicted if negative else is_true | is_predicted
            if not np.any(involved):
                if len(classes) > 1:
                    continue
                # A class that nobody saw: its share is 0, but units without a label may have it.
                involved = np.ones_like(involved)
            label = float(np.sum(weights[involved] ** 2) / np.sum(weights[involved]))
            true += [nobody if negative else k, k, nobody]
            predicted += [nobody if negative else k, nobody, k]
            shares += [label / 2, label / 4, label / 4]
        return np.array(true, np.int64), np.array(predicted, np.int64), np.array(shares)

    def _trials(
        self, function: Metric, pseudo: _Pseudo, lowest: float, variance: float, counted: FloatArray | None
    ) -> tuple[float, float, float]:
        """Return the effective number of trials, the smoothed standard error, and degrees of freedom."""
        true, predicted, shares = pseudo
        smoothing = smoothed(self.weighting, shares, counted)
        both = (np.concatenate([self.true, true]), np.concatenate([self.predicted, predicted]))
        weights = np.concatenate([smoothing.unit_weights, smoothing.pseudo_weights])
        value, slopes, _ = function(Shares.of(*both, weights, self.n_classes + 1))
        variable = slopes.along(*both)
        n = len(self.true)
        hidden = smoothing.variance(variable[:n], variable[n:])
        if counted is not None:
            # Borrowed labels must not make the denominator look larger than it was found to be.
            seen = float(self.weighting.weights @ counted)
            hidden *= max((float(weights[:n] @ counted) + float(weights[n:].sum())) / seen, 1.0) ** 2
        largest = max(hidden, variance if np.isfinite(variance) else 0.0)
        unit = (value - lowest) / (1.0 - lowest)
        spread = unit * (1.0 - unit) * (1.0 - lowest) ** 2
        trials = spread / largest if largest > 0 else np.inf
        return trials, float(np.sqrt(hidden)), satterthwaite_of_groups(both[0], weights, variable)


_Pseudo = tuple[IntArray, IntArray, FloatArray]


def satterthwaite_of_groups(true: IntArray, weights: FloatArray, variable: FloatArray) -> float:
    """Return Satterthwaite's degrees of freedom over the true classes, each with its effective size."""
    parts = np.bincount(true, (weights * variable) ** 2)
    sums, squares = np.bincount(true, weights), np.bincount(true, weights**2)
    used = parts > 0
    if not np.any(used):
        return np.inf
    sizes = sums[used] ** 2 / squares[used]
    return float(parts.sum() ** 2 / np.sum(parts[used] ** 2 / sizes))


def _with_population_part(trials: float, value: float, lowest: float, extra: float) -> float:
    """Return the trials left when the population's own draw adds a variance."""
    unit = min(max((value - lowest) / (1.0 - lowest), 0.05), 0.95)
    spread = unit * (1.0 - unit) * (1.0 - lowest) ** 2
    return 1.0 / (1.0 / trials + extra / spread) if extra > 0 else trials
