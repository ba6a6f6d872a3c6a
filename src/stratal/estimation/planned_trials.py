"""The interval of a metric on a sample that was planned for it: what labels that all agree may hide.

In strata made for a rare class most labels agree, and say less of the variance than the plan does. The
variance of each stratum is therefore drawn to the plan's, at the level that the labels show over all strata,
as strongly as `PLAN_LABELS` labels would; never below the labels' own in sum. The interval is
Clopper–Pearson's on as many trials as that variance leaves (Korn & Graubard 1998). Precision, of which the
units with other answers need no label, is a plain proportion of the others and has a proportion's interval.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stratal.arrays import FloatArray
from stratal.estimation.estimand import LabelledInfluence, as_estimand
from stratal.estimation.quantity import Quantity
from stratal.sampling.sample import Sample
from stratal.sampling.stratified import Stratified

PLAN_LABELS = 24.0
"""Labels that the plan's variance of a stratum counts as."""

LEAST_LEVEL = 0.5
"""The plan's variances are at most so much too large: labels that all agree would show none at all."""


PLANNED = "planned"
"""Where a sample's record of several estimands has how much each was expected to vary in the strata."""


def planned_deviations(sample: Sample, name: str, of: str, answers: str | None) -> FloatArray | None:
    """Return what the plan took for the deviations (H,) of a metric of one class; None if it was not asked.

    Parameters
    ----------
    sample : Sample
    name, of : str
        The metric and the class.
    answers : str, optional
        The column of the model's answers.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=1).draw(stratal.Population.from_arrays(proxy=[0.5, 0.7]), seed=7)
    >>> planned_deviations(sample, "f1", "match", None) is None
    True
    """
    strata, record = getattr(sample.design, "strata", None), sample.estimand
    asked = as_estimand(record)
    if strata is None or record is None or asked is None:
        return None
    told = record.get(PLANNED, {})
    for entry in getattr(asked, "estimands", (asked,)):
        column = getattr(entry, "predicted", None) or sample.predicted
        if (getattr(entry, "name", None), getattr(entry, "of", None), column) != (name, of, answers):
            continue
        if entry is asked:
            return np.asarray(strata.standard_deviations)
        if len(told.get(entry.text, ())) == strata.n_strata:
            return np.asarray(told[entry.text], dtype=np.float64)
    return None


def with_planned_trials(
    found: Quantity, sample: Sample, influence: LabelledInfluence, deviations: FloatArray
) -> Quantity:
    """Return a metric with the trials that the labels and the plan together leave.

    Parameters
    ----------
    found : Quantity
        A metric between 0 and 1.
    sample : Sample
        Stratified by the metric's influence, for it to be changed.
    influence : LabelledInfluence
    deviations : float (H,)
        See `planned_deviations`.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=1).draw(stratal.Population.from_arrays(proxy=[0.5, 0.7]), seed=7)
    >>> quantity = Quantity(value=0.5, standard_error=0.1, degrees_of_freedom=3, n=4, trials=4)
    >>> influence = LabelledInfluence(u=[0.0], labelled=[True])
    >>> with_planned_trials(quantity, sample, influence, np.ones(1)) is quantity
    True
    """
    variance = _variance(sample, influence, deviations)
    if variance is None:
        return found
    if variance <= 0:
        return replace(found, trials=np.inf, parts=None)
    value, slope = found.value, 1.0
    if found.scale == "dice":
        value, slope = value / (2.0 - value), 2.0 / (2.0 - value) ** 2
    edge = 0.5 / max(found.n, 1)
    unit = min(max(value, edge), 1.0 - edge)
    return replace(found, trials=unit * (1.0 - unit) / (variance * slope**2), parts=None)


def _variance(sample: Sample, influence: LabelledInfluence, deviations: FloatArray) -> float | None:
    """Return the variance of the influence's mean, drawn to the plan's; None where no plan says."""
    design = sample.design
    if not isinstance(design, Stratified) or design.strata.n_strata == 1 or len(influence.u) == 0:
        return None
    strata, n_strata = design.strata, design.strata.n_strata
    stratum = influence.stratum(sample.stratum)
    counts = np.bincount(stratum, minlength=n_strata).astype(np.float64)
    if np.any(strata.is_known) or np.any(counts == 0):
        return None
    means = np.bincount(stratum, influence.u, minlength=n_strata) / np.maximum(counts, 1.0)
    squares = np.bincount(stratum, (influence.u - means[stratum]) ** 2, minlength=n_strata)
    sizes = strata.sizes.astype(np.float64)
    free, planned = np.maximum(counts - 1.0, 0.0), deviations**2
    expected = float(free @ planned)
    level = max(float(squares.sum()) / expected, LEAST_LEVEL) if expected > 0 else 1.0
    drawn = (squares + PLAN_LABELS * level * planned) / (free + PLAN_LABELS)
    factors = (sizes / sizes.sum()) ** 2 * (1.0 - counts / sizes) / counts
    own = float(factors @ np.where(free > 0, squares / np.maximum(free, 1.0), drawn))
    return max(own, float(factors @ drawn))
