"""One more round: S_h estimated again from the labels so far, and the same draw extended."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratal.allocation import Allocation
from stratal.allocation.integers import check_budget, whole_number
from stratal.arrays import FloatArray
from stratal.errors import BudgetError, InputError, StratalWarning
from stratal.estimation.calibrated import Calibrating
from stratal.estimation.estimand import as_estimand
from stratal.estimation.evaluation import estimate
from stratal.estimation.promise import REFUTED
from stratal.estimation.respondents import known_outcome, outcomes, said
from stratal.labels.labels import join
from stratal.planning.deviations import estimated_deviations
from stratal.planning.estimand_rounds import influence_deviations
from stratal.planning.labels_so_far import next_allocation
from stratal.planning.learned_deviations import learned_deviations
from stratal.planning.narrowing import labels_needed
from stratal.proxy.learners import NAMES, is_learner
from stratal.sampling import SimpleRandom, Stratified
from stratal.sampling.asked import require_sample
from stratal.sampling.extending import extend, last_round, population_of, refuse_other_designs
from stratal.sampling.sample import Sample

if TYPE_CHECKING:
    from stratal.population.population import Population

ALLOCATIONS = ("total", "remainder")

_MEAN = {"kind": "mean", "proxy": None}


def next_round(
    sample: Sample,
    labels: Any,
    *,
    additional: int | None = None,
    half_width: float | None = None,
    confidence_level: float = 0.95,
    population: Population | None = None,
    allocation_of: str = "total",
    deviations: str = "recalibrated",
    predicted: bool | str = False,
    outcome: Any = None,
    bounds: tuple[float, float] | None = None,
    learner: Any = None,
    features: Sequence[str] | None = None,
) -> Sample:
    """Extend a sample by another round, sent to the strata where the labels so far say that it helps most.

    The strata stay as they are, every unit that was drawn stays drawn, and `estimate` afterwards uses all
    labels.

    Parameters
    ----------
    sample : Sample
        Simple random or stratified, of any number of rounds.
    labels : see `stratal.estimate`
        Of the rounds so far; a unit without a label counts as drawn, but says nothing.
    additional : int, optional
        Units to draw now.
    half_width : float, optional
        Instead: as many as `labels_needed` says, until the interval's half-width is as wanted. The sample
        itself is returned when it is.
    confidence_level : float
        Of that interval.
    population : Population, optional
        The one that the sample was drawn from; needed if the sample came from a file.
    allocation_of : {"total", "remainder"}
        Whether Neyman's rule shares out all units, earlier ones being a lower bound, or the new ones alone,
        which is Kumar & Raj's rule and ignores where the earlier ones lie.
    deviations : {"recalibrated", "raw"}
        See `stratal.planning.estimated_deviations`; raw ones bias the estimate more.
    predicted, outcome, bounds
        As in `stratal.estimate`.
    learner, features : optional
        What `stratal.estimate(…, calibration=learner, features=…)` will learn with: the round then goes where
        the learner, cross-fitted on the labels so far, leaves most open.

    Returns
    -------
    Sample
        Earlier units first, in their order, then the new ones; `round` tells them apart.

    Raises
    ------
    InputError
        For a design that has no next round, a population that is not the sample's, unknown options.
    BudgetError
        If fewer units are left.
    LabelError
        For labels that are not of this sample, and if there is none.

    Notes
    -----
    Kumar & Raj (2016), algorithms OPT-A1 (one more round) and OPT-A2 (many). Sizes that depend on labels bias
    the estimate a little: docs/methods/adaptive.md has the measurements.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 50 + [0.6] * 50)
    >>> pilot = stratal.plan(population, budget=20).draw(seed=7)
    >>> labels = {unit: float(unit % 2) for unit in pilot.ids.tolist()}
    >>> larger = next_round(pilot, labels, additional=10)
    >>> larger.size, int(larger.round[:20].max()), int(larger.round[20:].min())
    (30, 1, 2)
    """
    require_sample(sample, "next_round")
    if allocation_of not in ALLOCATIONS:
        raise InputError(
            "no such allocation", given=repr(allocation_of), allowed=", ".join(map(repr, ALLOCATIONS))
        )
    refuse_other_designs(sample)
    where = population_of(sample, population)
    _refuse_without_effect(sample, learner, features, half_width)
    if half_width is not None and sample.estimand not in (None, _MEAN):
        raise InputError(
            "a half-width is found for a mean alone", given=repr(half_width), action="Give additional=."
        )
    if half_width is not None and additional is None:
        how = {"predicted": predicted, "outcome": outcome, "bounds": bounds}
        needed = labels_needed(sample, labels, half_width, confidence_level=confidence_level, **how)
        if needed.additional == 0:
            return sample
        additional = needed.additional
    elif additional is None or half_width is not None:
        raise InputError("give either additional or a half-width", given=f"{additional=}, {half_width=}")
    extra = _whole_extra(sample, additional)
    design = sample.design
    question = None if sample.estimand is None else as_estimand(sample.estimand)
    if question is not None and question.kind != "mean" and isinstance(design, Stratified):
        learned = influence_deviations(question, sample, labels, design.strata, where)
        return _extended(sample, learned, extra, allocation_of, "influence's deviations", where)
    _warn_of_refuted(sample, labels, predicted=predicted, outcome=outcome, bounds=bounds)
    joined = said(join(sample, labels), predicted)
    z = outcomes(sample, joined, predicted)
    if isinstance(design, SimpleRandom):
        larger = SimpleRandom(budget=sample.size + extra)
        return extend(sample, larger, where)
    assert isinstance(design, Stratified)
    known = known_outcome(sample, z, outcome, bounds, joined)[:2]
    if learner is None:
        limits = (-np.inf, np.inf) if known[0] == "unbounded" else known[1]
        stratum = sample.stratum[joined.labelled]
        found = estimated_deviations(design.strata, z, stratum, deviations=deviations, bounds=limits)
        note = f"{deviations} deviations"
    else:
        asked = _learning(sample, where, learner, features)
        asked = replace(asked, outcome=known[0], bounds=None if known[0] == "unbounded" else known[1])
        found, note = learned_deviations(sample, joined.labelled, z, asked)
    return _extended(sample, found, extra, allocation_of, note, where)


def _extended(
    sample: Sample,
    deviations: FloatArray,
    extra: int,
    allocation_of: str,
    note: str,
    where: Population,
) -> Sample:
    """Return the sample with so many units more, sent where the deviations (H,) say."""
    assert isinstance(sample.design, Stratified)
    strata = sample.design.strata
    most = np.where(strata.is_known, sample.n_h, strata.sizes)
    left = int((most - sample.n_h).sum())
    if extra > left:
        raise BudgetError(
            "so many units cannot be added: the others do not matter", given=extra, allowed=f"up to {left}"
        )
    n_h = next_allocation(most, sample.n_h, deviations, extra, allocation_of=allocation_of)
    allocation = Allocation(
        n_h=n_h,
        method="opt-a1" if sample.round is None or sample.round.max() == 1 else "opt-a2",
        budget=int(n_h.sum()),
        minimum=sample.n_h,
        maximum=strata.sizes,
        notes=(f"Round {last_round(sample) + 1}: {allocation_of}, {note}.",),
    )
    return extend(sample, Stratified(strata=strata, allocation=allocation), where)


def _warn_of_refuted(sample: Sample, labels: Any, **options: Any) -> None:
    """Warn of what the plan took for granted and the labels refute."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StratalWarning)
        found = estimate(sample, labels, **options)
    for note in found.notes:
        if note.startswith(REFUTED):
            warnings.warn(note, StratalWarning, stacklevel=3)


def _learning(
    sample: Sample, population: Population, learner: Any, features: Sequence[str] | None
) -> Calibrating:
    """Return how the learner learns: it must beat the first proxy."""
    first = [0] if sample.proxy_names else []
    return Calibrating(column=first, method=learner, features=features, population=population)


def _refuse_without_effect(
    sample: Sample, learner: Any, features: Sequence[str] | None, half_width: float | None
) -> None:
    """Refuse a learner that would decide nothing, and what is no learner."""
    if learner is None:
        if features is not None:
            raise InputError("features are what a learner learns from", action="Name a learner.")
    elif not is_learner(learner):
        raise InputError(
            "no such learner", given=repr(learner), allowed=f"{', '.join(NAMES)}, or a scikit-learn estimator"
        )
    elif half_width is not None:
        raise InputError(
            "a half-width is reached by an estimate without a learner",
            given=f"{half_width=}",
            action="Give additional, or leave the learner out.",
        )
    elif isinstance(sample.design, SimpleRandom):
        raise InputError(
            "a simple random sample has no strata between which a learner could choose",
            action="Leave the learner out here; the estimate may learn nevertheless: calibration=learner.",
        )


def _whole_extra(sample: Sample, additional: int) -> int:
    extra = whole_number("additional", additional)
    left = sample.population_size - sample.size
    if not 1 <= extra <= left:
        raise BudgetError("so many units cannot be added", given=extra, allowed=f"1 to {left}")
    check_budget(sample.size + extra, sample.population_size)
    return extra
