"""One more round: S_h estimated again from the labels so far, and the same draw extended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratal.arrays import IntArray
from stratal.designs import SimpleRandom, Stratified
from stratal.designs.asked import require_sample
from stratal.designs.extending import extend, last_round, population_of, refuse_other_designs
from stratal.designs.sample import Sample
from stratal.errors import BudgetError, InputError, names_mistyped, warn_caller
from stratal.estimation.calibrated import Calibrating
from stratal.estimation.estimand import Estimand, Several, as_estimand
from stratal.planning.needs import labels_so_far, narrowing
from stratal.proxy.learners import NAMES, is_learner
from stratal.strata import Allocation
from stratal.strata.integers import check_budget, whole_number

if TYPE_CHECKING:
    from stratal.population.population import Population

ALLOCATIONS = ("total", "remainder")


@names_mistyped
def next_round(
    sample: Sample,
    labels: Any,
    *,
    additional: int | None = None,
    half_width: Any = None,
    confidence_level: float = 0.95,
    population: Population | None = None,
    allocation_of: str = "total",
    deviations: str = "recalibrated",
    predicted: bool | str = False,
    outcome: str | None = None,
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
        Instead: as many as `labels_needed` says, until the interval's half-width is as wanted; for several
        estimands one for all or a list. The sample itself is returned when it is.
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
    given, sample = sample, replace(sample, population=where)  # compared once, for what follows
    how = {"allocation_of": allocation_of, "deviations": deviations, "learner": learner, "features": features}
    _refuse_without_effect(sample, as_estimand(sample.estimand), how, half_width)
    if (additional is None) == (half_width is None):
        raise InputError(
            "give either additional or a half-width",
            given=f"{additional=}, {half_width=}",
            action="Give the number of further labels (additional=), or how narrow the interval "
            "must be (half_width=).",
        )
    extra = 0 if additional is None else _whole_extra(sample, additional)
    seen = labels_so_far(
        sample,
        labels,
        confidence_level,
        {"predicted": predicted, "outcome": outcome, "bounds": bounds},
        quiet=half_width is None,
        deviations=deviations,
        learner=None if learner is None else _learning(sample, learner, features),
    )
    if half_width is None:
        n_h = seen.allocation(sample.size + extra, allocation_of=allocation_of)
    else:
        needed, n_h = narrowing(seen, half_width, allocation_of=allocation_of)
        if needed.additional == 0:
            return given  # itself: whoever asks for rounds in a loop ends it so
    for note in seen.refuted:
        warn_caller(note)
    larger = _drawn(sample, n_h, f"{allocation_of}, {seen.note}")
    return larger if half_width is None else replace(larger, half_width=float(np.min(half_width)))


def units_left(sample: Sample) -> int:
    """Return how many units a next round may add: those not drawn that may matter.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(groups={"new": ["a", "b"] * 50, "old": ["a"] * 100})
    >>> units_left(stratal.plan(population, budget=20, estimand="difference:new,old").draw(seed=1))
    30
    """
    if not isinstance(sample.design, Stratified):
        return sample.population_size - sample.size
    strata = sample.design.strata
    return int(np.where(strata.is_known, 0, strata.sizes - sample.n_h).sum())


def _drawn(sample: Sample, n_h: IntArray, how: str) -> Sample:
    """Return the sample extended to n_h (H,) units of its strata."""
    design, total = sample.design, int(n_h.sum())
    if not isinstance(design, Stratified):
        return extend(sample, SimpleRandom(budget=total))
    allocation = Allocation(
        n_h=n_h,
        method="opt-a1" if last_round(sample) == 1 else "opt-a2",
        budget=total,
        minimum=sample.n_h,
        maximum=design.strata.sizes,
        notes=(f"Round {last_round(sample) + 1}: {how}.",),
    )
    return extend(sample, Stratified(strata=design.strata, allocation=allocation))


def _learning(sample: Sample, learner: Any, features: Sequence[str] | None) -> Calibrating:
    """Return how the learner learns: it must beat the first proxy."""
    first = [0] if sample.proxy_names else []
    return Calibrating(column=first, method=learner, features=features, population=sample.population)


def _refuse_without_effect(sample: Sample, asked: Estimand, how: Mapping[str, Any], half_width: Any) -> None:
    """Refuse what would decide nothing, and what is no learner."""
    learner = how["learner"]
    if not asked.of_one_outcome and (learner is not None or how["deviations"] != "recalibrated"):
        raise InputError(
            f"a round for '{asked.kind}' goes where its influence varies among the labels",
            given=f"learner={learner!r}, deviations={how['deviations']!r}",
            action="Leave learner= and deviations= out: they are options of the mean.",
        )
    if isinstance(asked, Several) and how["allocation_of"] != "total":
        raise InputError(
            "a round for several estimands is shared out with the earlier ones",
            given=f"allocation_of={how['allocation_of']!r}",
            allowed="'total'",
        )
    if learner is None:
        if how["features"] is not None:
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
    """Return the units to add, checked."""
    extra = whole_number("additional", additional)
    left = sample.population_size - sample.size
    if not 1 <= extra <= left:
        raise BudgetError("so many units cannot be added", given=extra, allowed=f"1 to {left}")
    check_budget(sample.size + extra, sample.population_size)
    if extra > units_left(sample):
        raise BudgetError(
            "so many units cannot be added: the others do not matter",
            given=extra,
            allowed=f"up to {units_left(sample)}",
        )
    return extra
