"""Ranking metrics of a score: area under the ROC curve and average precision.

Both are functions of the weighted distributions of the score among positives and negatives. The linearised
variable of the area is the placement of a unit (DeLong, DeLong & Clarke-Pearson 1988). That of the average
precision is the change of all precisions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import BoolArray, FloatArray, has_entry
from stratal.designs import Weighting
from stratal.designs.sample import Sample
from stratal.errors import InputError, LabelError, suggest_names
from stratal.estimation.estimand import DEFAULT_REQUEST, Estimand, Request
from stratal.estimation.estimate import Estimate, linearised_estimate, undefined_estimate
from stratal.estimation.linearised import Linearised, adaptive_label_share, of_variable, pseudo_label_share
from stratal.estimation.resolve import class_column, no_labels_error, number_column
from stratal.estimation.respondents import Respondents
from stratal.intervals.interval import Interval
from stratal.intervals.interval_types import BinomialInterval, OuterInterval
from stratal.labels.label_values import class_text
from stratal.metrics.pseudo_label_variances import mixed_variance, satterthwaite_of_groups, smoothed_variance
from stratal.metrics.unseen_ranks import Statistic, allow_for_unseen_ranks


def area_under_curve(score: FloatArray, positive: BoolArray, weights: FloatArray) -> tuple[float, FloatArray]:
    """Return P(score of a positive > that of a negative) + ½ P(tie), and the units' influences (n,)."""
    _, group = np.unique(score, return_inverse=True)
    positives = np.bincount(group, weights * positive)
    negatives = np.bincount(group, weights * ~positive, minlength=len(positives))
    total_positive = float(positives.sum())
    total_negative = float(negatives.sum())
    # Shares of the negatives below, and of the positives above, each score.
    below = (np.cumsum(negatives) - negatives / 2.0) / total_negative
    above = (total_positive - np.cumsum(positives) + positives / 2.0) / total_positive
    value = float(positives @ below) / total_positive
    positive_influence = (below[group] - value) / total_positive
    negative_influence = (above[group] - value) / total_negative
    return value, np.where(positive, positive_influence, negative_influence)


def average_precision(
    score: FloatArray, positive: BoolArray, weights: FloatArray
) -> tuple[float, FloatArray]:
    """Return the mean over positives of the precision at their score, and the units' influences (n,).

    Units of one score are ranked together, as in scikit-learn.
    """
    _, group = np.unique(score, return_inverse=True)
    positives = np.bincount(group, weights * positive)
    total = float(positives.sum())
    # Weights of all units with at least each score, and the share of positives among them.
    retrieved = np.cumsum(np.bincount(group, weights)[::-1])[::-1]
    precision = np.cumsum(positives[::-1])[::-1] / retrieved
    value = float(positives @ precision) / total
    # A unit changes the precision at its own score and at all lower scores.
    gain = np.cumsum(positives / retrieved)
    loss = np.cumsum(positives * precision / retrieved)
    influence = np.where(positive, precision[group] - value + gain[group], 0.0)
    return value, np.asarray((influence - loss[group]) / total)


def ranking_metric(
    statistic: Statistic,
    score: FloatArray,
    positive: BoolArray,
    weighting: Weighting,
    target: str = "population",
) -> Estimate:
    """Return one ranking metric of the scores (n,) for the positive units (n,), with its interval."""
    count = int(positive.sum())
    bounds = (0.0, 1.0)
    n = min(count, len(positive) - count)
    if n == 0:
        return undefined_estimate(weighting, n, bounds, "all labels belong to one class", target=target)
    value, influence = statistic(score, positive, weighting.weights)
    result = of_variable(value, influence, weighting, target)
    smoothed, error = _interval_with_pseudo_labels(statistic, score, positive, weighting, result, target)
    interval: Interval = replace(smoothed, value=value)
    if np.sum(weighting.counts > 0) > 1 and np.isfinite(smoothed.trials):
        interval = OuterInterval(value=value, bounds=bounds, first=interval, second=smoothed)
    interval = allow_for_unseen_ranks(interval, statistic, score, positive, weighting, target)
    # A perfect ranking shows no variance, although unlabelled units may be ranked differently.
    if np.isfinite(result.variance) and result.variance > _ROUNDING_VARIANCE:
        error = float(np.sqrt(result.variance))
    return linearised_estimate(
        result,
        weighting,
        interval=interval,
        target=target,
        n=n,
        standard_error=error,
    )


def _interval_with_pseudo_labels(
    statistic: Statistic,
    score: FloatArray,
    positive: BoolArray,
    weighting: Weighting,
    result: Linearised,
    target: str,
) -> tuple[BinomialInterval, float]:
    """Return the interval of the metric with pseudo-labels on its effective trials, and its standard error.

    Every unit has a small weight as a unit of the other class with the same score, because a stratum with
    labels of one class may contain units of the other: without this, intervals covered .82. With few labels
    of the rarer class, this weight is half a label per stratum. With many, it is one label for all strata
    (`pseudo_label_share`).
    """
    n_rarer = min(np.sum(positive), np.sum(~positive)) * weighting.effective_draws / weighting.draws
    stratum_share = (1.0 / (weighting.counts + 1.0))[weighting.stratum]
    stratum_share /= 1.0 + (n_rarer / _HALF_WEIGHT_LABELS) ** 2
    label_share, _ = pseudo_label_share(result, weighting)
    stratum_share = np.maximum(stratum_share, adaptive_label_share(positive, weighting))
    other_share = np.maximum(stratum_share, label_share) / 2.0
    classes = np.concatenate([positive, ~positive])
    shares = np.concatenate([1.0 - other_share, other_share])
    weights = shares * np.tile(weighting.weights, 2)
    value, influence = statistic(np.tile(score, 2), classes, weights)
    design_variance = mixed_variance(weighting, shares, influence)
    variance, error = smoothed_variance(design_variance, influence, weights, result, weighting, target)
    bounds = (0.0, 1.0)
    if variance <= _ROUNDING_VARIANCE:
        # Either every unit is labelled, or all scores are equal, so that labels show nothing.
        trials = np.inf
        if np.any(weighting.variance_factors > 0):
            trials = float(min(positive.sum(), len(positive) - positive.sum()))
        return BinomialInterval(value=value, bounds=bounds, trials=trials), 0.5 / float(np.sqrt(trials))
    df = satterthwaite_of_groups(classes.astype(np.int64), weights, influence)
    trials = value * (1.0 - value) / variance
    interval = BinomialInterval(value=value, bounds=bounds, trials=trials, degrees_of_freedom=df)
    return interval, error


# Number of labels of the rarer class at which the half label per stratum has half its weight. It is needed
# with few labels, for positives among low scores: with 28 labels of the class, one label for all strata
# covered .91, and half a label per stratum .99.
_HALF_WEIGHT_LABELS = 25.0

# A variance of this size is a rounding error.
_ROUNDING_VARIANCE = 1e-24


@dataclass(frozen=True, slots=True)
class Ranking(Estimand, listed_field="positive"):
    """A metric of how well a score ranks units of a class above the others.

    The score is a proxy of the sample, by default the only one. A score that is not in the sample is given
    with the labels: `{"label": labels, "score": scores}`.
    """

    of_classes = True
    compared = False
    statistic: ClassVar[Statistic]
    # Whether a score without information gives one half.
    chance_is_half: ClassVar[bool] = False
    positive: str = "1"
    score: str | None = None

    def __post_init__(self) -> None:
        self._set(positive=class_text(self.positive))

    def _units(self, sample: Sample, labels: Any) -> tuple[FloatArray, BoolArray, BoolArray]:
        """Return scores and positives (m,) of the labelled units, and the mask of these units (n,)."""
        score: Any = self.score
        if isinstance(labels, Mapping) and set(labels) == {"label", "score"}:
            score = labels["score"]
            labels = labels["label"]
        true = class_column(sample, labels, "labels", np.array([], dtype=object))
        if score is None or isinstance(score, str):
            # How to name the score of a class, for an error.
            naming = f"{self.kind}:{{of_class}},score={{column}}"
            scores = scores_of_class(sample, self.positive, score, naming)
        else:
            scores = number_column(sample, score, "score")
        labelled = has_entry(true)
        if not np.any(labelled):
            raise no_labels_error()
        if np.any(np.isnan(scores[labelled])):
            raise LabelError("a labelled unit has no score", allowed="a number for every labelled unit")
        positives = np.array([entry == self.positive for entry in true[labelled]], dtype=bool)
        return scores[labelled], positives, labelled

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimate:
        """Return the metric, from the true classes."""
        scores, positives, labelled = self._units(sample, labels)
        respondents = Respondents.of(sample, labelled)
        estimate = ranking_metric(
            type(self).statistic, scores, positives, respondents.weighting, request.target
        )
        estimate = respondents.complete(estimate, sample, label=self.label)
        return replace(estimate, remarks=(*estimate.remarks, *self._reversed_score_notes(estimate)))

    def _reversed_score_notes(self, estimate: Estimate) -> list[str]:
        """Return a note if units of other classes have larger scores."""
        if not self.chance_is_half or not np.isfinite(estimate.value) or estimate.value >= _CHANCE:
            return []
        interval = estimate.limits(_NOTE_LEVEL, "auto")
        if interval is None or interval[1] is None or interval[1] >= _CHANCE:
            return []
        return [
            f"the area is below one half, so larger scores indicate classes other than {self.positive!r}; "
            "check that the score is for this class"
        ]

    def labelled_units(self, sample: Sample, labels: object) -> BoolArray:
        """Return which of the drawn units (n,) have a label."""
        return self._units(sample, labels)[2]


@dataclass(frozen=True, slots=True)
class AUC(Ranking, kind="auc", statistic=area_under_curve, chance_is_half=True):
    """The area under the ROC curve: the probability that a unit of the class has a higher score than another.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.9, 0.8, 0.3, 0.6, 0.7, 0.2])
    >>> sample = stratal.designs.SimpleRandom(budget=6).draw(population, seed=7)
    >>> labels = dict(zip(range(6), [1, 1, 0, 0, 1, 0]))
    >>> stratal.estimate(sample, labels, estimand=AUC()).value
    1.0
    """


@dataclass(frozen=True, slots=True)
class AveragePrecision(Ranking, kind="average_precision", statistic=average_precision):
    """The mean precision over the ranks of the units of the class (no interpolation).

    Examples
    --------
    >>> AveragePrecision("toxic", score="judge").text
    'average_precision:toxic,score=judge'
    """


# The area under the curve of a score without information, and the level of the interval for a note.
_CHANCE = 0.5
_NOTE_LEVEL = 0.95


def scores_of_class(
    sample: Sample, positive: str, score: str | None, naming: str = "auc:{of_class},score={column}"
) -> FloatArray:
    """Return the score (n,) of a class: the named proxy, or the only one if it may be a score of the class.

    `naming` is the form in which a user states the score of a class, for error messages.

    Raises
    ------
    InputError
        If the score predicts something else: that the model's answer is right, or another class.
    """
    classes = _known_classes(sample)
    is_known = not classes or positive in classes
    if not is_known and positive.casefold() in map(str.casefold, classes):
        raise _unknown_class_error(positive, classes)
    if score is None and not is_known and len(sample.proxy_names) != 1:
        raise _unknown_class_error(positive, classes)
    if score is None:
        name = score_of_class(sample, positive, naming.format(of_class=positive, column="COLUMN"))
    else:
        name = score
    values = number_column(sample, name, "score")
    role = sample.question.score(name)
    if role is None or not role.is_probability or role.of_class == positive:
        return values
    # An estimand that names an undeclared score declares it as the score of its class.
    if score is not None and not role.declared:
        return values
    if not is_known:
        raise _unknown_class_error(positive, classes)
    example = naming.format(of_class=positive, column="COLUMN")
    action = f"Name a proxy that is a score of the class: {example}."
    if not role.declared:
        example = naming.format(of_class=positive, column=name)
        action += (
            f" If {name!r} is nevertheless such a score, declare it: {example}, or "
            f"predicts= (--predicts {name}=class:{positive})."
        )
    raise InputError(
        f"{name!r} is not a score of the class {positive!r}",
        given=f"{role.meaning} ({'declared' if role.declared else 'inferred'})",
        allowed=f"a proxy that is larger for units of class {positive!r}",
        action=action,
    )


def _known_classes(sample: Sample) -> list[str]:
    """Return the classes among the answers and of the scores that the sample stores."""
    question = sample.question
    classes = {score.of_class for score in question.scores if score.of_class is not None}
    classes |= {*question.outcome.classes, *question.outcome.tags}
    if question.answer is not None and not question.outcome.holds_sets:
        classes |= set(sample.groups.get(question.answer, np.empty(0)).tolist())
    return sorted(classes)


def _unknown_class_error(positive: str, classes: Sequence[str]) -> InputError:
    """Return the error about a class that does not occur."""
    return InputError(
        f"no class is called {positive!r}",
        given=repr(positive),
        allowed=suggest_names(positive, classes),
        action="Write the class exactly as in the answers or the declared scores.",
    )


def score_of_class(sample: Sample, positive: str, naming: str) -> str:
    """Return the name of the proxy that predicts the class; the only proxy if none is declared to.

    `naming` is the form in which a user names the score, for error messages.
    """
    names = [score.name for score in sample.question.scores if score.of_class == positive]
    if len(names) == 1:
        return names[0]
    return only_proxy(sample, naming)


def only_proxy(sample: Sample, naming: str) -> str:
    """Return the name of the only proxy; a sample with several is an error.

    `naming` is the form in which a user names the score, for error messages.
    """
    if len(sample.proxy_names) != 1:
        names = ", ".join(map(repr, sample.proxy_names))
        problem = "it is not known which column is the score"
        if names:
            problem = "several columns could be the score"
        raise InputError(problem, given=names or None, action=f"Name one: {naming}.")
    return sample.proxy_names[0]
