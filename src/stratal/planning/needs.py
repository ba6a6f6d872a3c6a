"""Until it is narrow enough: how many more labels an interval of a wanted half-width needs.

The rounds are Stein's (1945): labels so far say how much the outcome varies and so how many are needed, and
only the last round's number depends on them. The half-width is that of the interval that will be reported,
computed on the labels that are in and on likely ones of the units to come.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from stratal.errors import names_mistyped, not_positive
from stratal.estimation.estimand import Estimand, as_estimand
from stratal.estimation.evaluation import estimate
from stratal.planning.estimand_needs import estimand_needs
from stratal.planning.labels_so_far import LabelsSoFar
from stratal.planning.narrowing import Narrowing, further, half_width_of
from stratal.sampling.extending import population_of, refuse_other_designs
from stratal.sampling.sample import Sample

if TYPE_CHECKING:
    from stratal.population.population import Population


def question_of(sample: Sample) -> Estimand | None:
    """Return what a sample was planned for, if that is another estimand than the mean.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=1).draw(stratal.Population.from_arrays(proxy=[0.5]), seed=7)
    >>> question_of(sample) is None
    True
    """
    asked = as_estimand(sample.estimand)
    return None if asked is None or asked.kind == "mean" else asked


@names_mistyped
def labels_needed(
    sample: Sample,
    labels: Any,
    half_width: Any,
    *,
    confidence_level: float = 0.95,
    predicted: bool | str = False,
    outcome: str | None = None,
    bounds: tuple[float, float] | None = None,
    population: Population | None = None,
) -> Narrowing:
    """Return how many more units to draw, until the interval's half-width is as wanted.

    Parameters
    ----------
    sample : Sample
        Simple random or stratified, of any number of rounds.
    labels : see `stratal.estimate`
        Of the rounds so far.
    half_width : float
        Half the width of the default interval that is wanted at the end. For a sample that was planned for
        several estimands one for all, or a list with one for each.
    confidence_level : float
    predicted, outcome, bounds
        As in `stratal.estimate`.
    population : Population, optional
        The one that the sample was drawn from; needed for an estimand other than the mean if the sample came
        from a file.

    Returns
    -------
    Narrowing
        Of several estimands of the one that is furthest from its half-width.

    Raises
    ------
    InputError
        For a half-width that is no positive number, and designs that have no next round.
    LabelError
        For labels that are not of this sample, and if there is none.

    Notes
    -----
    Stein (1945), in a few stages; docs/methods/adaptive.md has labels and coverage, measured.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 500 + [0.9] * 500)
    >>> pilot = stratal.plan(population, half_width=0.1, pilot=True).draw(seed=7)
    >>> labels = {unit: float(unit >= 500) for unit in pilot.ids.tolist()}
    >>> found = labels_needed(pilot, labels, half_width=0.1)
    >>> found.reached, found.additional
    (True, 0)
    """
    refuse_other_designs(sample)
    question = question_of(sample)
    if question is not None:
        where = population_of(sample, population)
        return estimand_needs(sample, labels, question, where, half_width, confidence_level)[0]
    if not (isinstance(half_width, int | float) and math.isfinite(half_width) and half_width > 0):
        raise not_positive("half_width", half_width)
    found = estimate(sample, labels, predicted=predicted, outcome=outcome, bounds=bounds)
    now = half_width_of(found, confidence_level)
    left = sample.population_size - sample.size
    if now <= half_width or left == 0:
        return Narrowing(wanted=half_width, half_width=now, additional=0, expected_total=sample.size)
    seen = LabelsSoFar.of(sample, labels, found, predicted)
    base = seen.width(sample.size, confidence_level)
    scale = now / base if math.isfinite(now) and base > 0 else 1.0
    extra, total = further(
        lambda size, _: np.array([scale * seen.width(int(size[0]), confidence_level)]),
        np.array([now]),
        half_width,
        np.array([sample.size]),
        sample.population_size,
        looked=seen.looked,
    )
    return Narrowing(
        wanted=half_width, half_width=now, additional=int(extra[0]), expected_total=int(total[0])
    )
