"""The mean of what sets two models apart, over a population in parts of which they are known to tie."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError
from stratal.estimation.contrasts import contrast_interval, scaled
from stratal.estimation.estimate import Estimate
from stratal.estimation.evaluation import estimate_mean
from stratal.estimation.model_pairs import ModelPair
from stratal.estimation.quantity import Quantity
from stratal.estimation.respondents import Respondents
from stratal.intervals.evidence import design_effect
from stratal.population.summary import StratumSummary
from stratal.sampling.sample import Sample


def refuse_other_target(frame: Respondents, target: str) -> None:
    """Refuse another target than the population where some of its units need no label.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=1).draw(stratal.Population.from_arrays(proxy=[0.5, 0.7]), seed=7)
    >>> refuse_other_target(Respondents.of(sample, np.array([True])), "superpopulation")
    """
    if target != "population" and frame.share < 1:
        raise InputError(
            "strata without labels are known for these units, not for others",
            given=f"target={target!r}",
            allowed="'population'",
        )


def mean_of_pair(
    sample: Sample,
    pair: ModelPair,
    z: FloatArray,
    bounds: tuple[float, float] | None,
    *,
    own: Quantity | None = None,
    proxy: tuple[FloatArray, StratumSummary] | None = None,
) -> Estimate:
    """Return the mean of z over the population; outside the frame z is in the middle of its bounds.

    What is known enters the labelled units' variable, so that its mean over the frame is the population's.
    The interval is `own`'s, as `compare` makes it; with a proxy (m, 1) of z that of what λ leaves.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=5).draw(stratal.Population.from_arrays(proxy=[0.5] * 99), seed=7)
    >>> frame = Respondents.of(sample, np.ones(5, dtype=bool))
    >>> pair = ModelPair(first=[1, 1, 1, 1, 0], second=[1, 1, 1, 0, 0], frame=frame, bounds=(0, 1))
    >>> mean_of_pair(sample, pair, pair.first - pair.second, (-1, 1), own=pair.difference()).value
    0.2
    """
    frame, target = pair.frame, pair.target
    refuse_other_target(frame, target)
    left_out = 0.0 if bounds is None else (bounds[0] + bounds[1]) / 2.0
    known = (1.0 - frame.share) * left_out
    values, summary = (np.zeros((len(z), 0)), None) if proxy is None else scaled(*proxy, frame.share, known)
    found = estimate_mean(
        known + frame.share * z,
        values,
        frame.weighting,
        summary,
        stratum=frame.stratum,
        estimator="auto" if proxy is None else "ppi++",
        target=target,
        bounds=None if bounds is None else (known + frame.share * bounds[0], known + frame.share * bounds[1]),
        outcome="unbounded" if bounds is None else "bounded",
        design=sample.design.kind,
        stratum_names=frame.names,
        drawn=sample.size,
        notes=frame.notes,
    )
    own = contrast_interval(found, frame, target) if own is None else own
    found = replace(found, evidence=replace(found.evidence, own=own))
    if frame.share == 1:
        return found
    square = frame.share * float(frame.weighting.mean(z[:, None] ** 2)[0]) + known * left_out
    spread = max(square - found.value**2, 0.0)
    effect, effective = design_effect(found.standard_error**2, spread, len(z), sample.population_size)
    return replace(
        found,
        population_size=sample.population_size,
        design_effect=effect,
        effective_sample_size=effective,
    )
