"""One more round: S_h estimated again from the labels so far, and the same draw extended."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratal.allocation import Allocation
from stratal.allocation.integers import check_budget, whole_number
from stratal.arrays import FloatArray, IntArray
from stratal.errors import BudgetError, InputError, StratalWarning, names_mistyped, warn_caller
from stratal.estimation.calibrated import Calibrating
from stratal.estimation.estimand import Estimand, Several
from stratal.estimation.evaluation import estimate
from stratal.estimation.promise import REFUTED
from stratal.estimation.respondents import known_outcome, outcomes, said
from stratal.labels.labels import join
from stratal.planning.deviations import estimated_deviations
from stratal.planning.estimand_needs import InfluencesSoFar, estimand_needs
from stratal.planning.estimand_rounds import influence_deviations
from stratal.planning.labels_so_far import next_allocation
from stratal.planning.learned_deviations import learned_deviations
from stratal.planning.needs import labels_needed, question_of
from stratal.planning.within_answers import with_floor
from stratal.proxy.learners import NAMES, is_learner
from stratal.sampling import SimpleRandom, Stratified
from stratal.sampling.asked import require_sample
from stratal.sampling.extending import extend, last_round, population_of, refuse_other_designs
from stratal.sampling.sample import Sample

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
    _refuse_without_effect(sample, learner, features, half_width)
    if (additional is None) == (half_width is None):
        raise InputError(
            "give either additional or a half-width",
            given=f"{additional=}, {half_width=}",
            action="Give the number of further labels (additional=), or how narrow the interval "
            "must be (half_width=).",
        )
    question = question_of(sample)
    if question is not None:
        goes = _EstimandRound(question, where, confidence_level, allocation_of)
        larger = goes.of(sample, labels, additional, half_width)
        return given if larger is sample else _until(larger, half_width)
    if half_width is not None:
        how: dict[str, Any] = {"predicted": predicted, "outcome": outcome, "bounds": bounds}
        needed = labels_needed(sample, labels, half_width, confidence_level=confidence_level, **how)
        if needed.additional == 0:
            return given  # itself: whoever asks for rounds in a loop ends it so
        additional = needed.additional
    extra, design = _whole_extra(sample, additional), sample.design
    _warn_of_refuted(sample, labels, predicted=predicted, outcome=outcome, bounds=bounds)
    joined = said(join(sample, labels), predicted)
    z = outcomes(sample, joined, predicted)
    if isinstance(design, SimpleRandom):
        larger = extend(sample, SimpleRandom(budget=sample.size + extra), where)
        return _until(larger, half_width)
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
    return _until(_extended(sample, found, extra, allocation_of, note, where), half_width)


def _until(larger: Sample, half_width: Any) -> Sample:
    """Return the larger sample with the half-width that decided its size, the narrowest of several."""
    if half_width is None:
        return larger
    return replace(larger, half_width=float(np.min(half_width)))


@dataclass(frozen=True, slots=True)
class _EstimandRound:
    """Another round for an estimand other than the mean, or for several."""

    estimand: Estimand
    population: Population
    confidence_level: float
    allocation_of: str

    def of(self, sample: Sample, labels: Any, additional: int | None, half_width: Any) -> Sample:
        """Return the sample with so many units more, or as many as half-widths need."""
        where, level = self.population, self.confidence_level
        design = sample.design
        if half_width is not None:
            _, n_h = estimand_needs(sample, labels, self.estimand, where, half_width, level)
            return sample if int(n_h.sum()) == sample.size else self._with(sample, n_h)
        extra = _whole_extra(sample, additional)
        if not isinstance(design, Stratified):
            return self._with(sample, sample.n_h + extra)
        if isinstance(self.estimand, Several):
            seen = InfluencesSoFar.of(sample, labels, self.estimand, where, level)
            _refuse_needless(extra, units_left(sample))
            return self._with(sample, seen.shared(sample.size + extra, np.ones(len(seen.names))))
        learned = influence_deviations(self.estimand, sample, labels, design.strata, where)
        return _extended(
            sample, learned, extra, self.allocation_of, _BY_INFLUENCE, where, floor_for=(self.estimand,)
        )

    def _with(self, sample: Sample, n_h: IntArray) -> Sample:
        if isinstance(sample.design, SimpleRandom):
            return extend(sample, SimpleRandom(budget=int(n_h.sum())), self.population)
        return _drawn(sample, n_h, f"{self.allocation_of}, {_BY_INFLUENCE}", self.population)


_BY_INFLUENCE = "influence's deviations"


def _extended(
    sample: Sample,
    deviations: FloatArray,
    extra: int,
    allocation_of: str,
    note: str,
    where: Population,
    floor_for: tuple[Estimand, ...] = (),
) -> Sample:
    """Return the sample with so many units more, sent where the deviations (H,) say."""
    assert isinstance(sample.design, Stratified)
    strata = sample.design.strata
    most = np.where(strata.is_known, sample.n_h, strata.sizes)
    _refuse_needless(extra, units_left(sample))

    def allocated(least: IntArray) -> IntArray:
        return next_allocation(
            most, sample.n_h, deviations, extra, allocation_of=allocation_of, least=np.minimum(least, most)
        )

    n_h = with_floor(strata, floor_for, allocated(sample.n_h), sample.n_h, allocated)
    return _drawn(sample, n_h, f"{allocation_of}, {note}", where)


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


def _refuse_needless(extra: int, left: int) -> None:
    if extra > left:
        raise BudgetError(
            "so many units cannot be added: the others do not matter", given=extra, allowed=f"up to {left}"
        )


def _drawn(sample: Sample, n_h: IntArray, how: str, where: Population) -> Sample:
    """Return the sample extended to n_h (H,) units of its strata."""
    assert isinstance(sample.design, Stratified)
    strata = sample.design.strata
    allocation = Allocation(
        n_h=n_h,
        method="opt-a1" if sample.round is None or sample.round.max() == 1 else "opt-a2",
        budget=int(n_h.sum()),
        minimum=sample.n_h,
        maximum=strata.sizes,
        notes=(f"Round {last_round(sample) + 1}: {how}.",),
    )
    return extend(sample, Stratified(strata=strata, allocation=allocation), where)


def _warn_of_refuted(sample: Sample, labels: Any, **options: Any) -> None:
    """Warn of what the plan took for granted and the labels refute."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StratalWarning)
        found = estimate(sample, labels, **options)
    for note in found.notes:
        if note.startswith(REFUTED):
            warn_caller(note)


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


def _whole_extra(sample: Sample, additional: int | None) -> int:
    assert additional is not None
    extra = whole_number("additional", additional)
    left = sample.population_size - sample.size
    if not 1 <= extra <= left:
        raise BudgetError("so many units cannot be added", given=extra, allowed=f"1 to {left}")
    check_budget(sample.size + extra, sample.population_size)
    return extra
