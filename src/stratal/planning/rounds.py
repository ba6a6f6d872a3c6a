"""Further rounds: their allocation, the labels that a half-width requires, and the widths with more labels.

The algorithms OPT-A1 and OPT-A2 (Kumar & Raj 2016) label a sample in two or more rounds.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, BoolArray, IntArray
from stratal.designs import Stratified
from stratal.designs.extending import extend_sample, population_of, require_label_based_rounds
from stratal.designs.sample import Design, Sample, require_sample
from stratal.errors import (
    BudgetError,
    InputError,
    StratalWarning,
    check_choice,
    keywords_from,
    warn_caller,
)
from stratal.estimation.calibrated import CalibrationOptions
from stratal.estimation.estimand import Estimand, Several, as_estimand
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates
from stratal.planning.budget_search import check_half_widths, smallest_budget
from stratal.planning.interim_analysis import InterimAnalysis
from stratal.planning.next_allocation import design_with_counts
from stratal.planning.repeated_labels import half_width_of
from stratal.planning.rounds_of_tables import as_pilot, independent_sample, is_labelled_elsewhere
from stratal.population.population import Population, require_population
from stratal.protocols import JsonDict
from stratal.proxy.calibration import LEARNER_NAMES, is_learner
from stratal.question.chosen_rows import UNKNOWN
from stratal.report.text import json_dict
from stratal.strata import Strata, allocate
from stratal.strata.arguments import whole_number

# A round after which there would be more than this multiple of the drawn units is divided in two, because its
# size is based on few labels.
MAX_GROWTH = 1.5

# Share of such a round that is drawn first.
FIRST_SHARE_OF_LARGE_ROUND = 0.75

# If the target cannot be reached because of units without a label, the goal is this multiple of the narrowest
# possible half-width, or halfway between the current and the narrowest one if that is narrower. Beyond this
# goal, labels have almost no effect.
_REACHABLE_FACTOR = 1.1

# Multiples of the drawn units for which a half-width is expected.
_SIZE_MULTIPLES = (1.5, 2.0, 3.0, 4.0)

# Largest ratio of half-widths in the first guess of a total: the approximation is too rough for larger ones.
_MAX_WIDTH_RATIO = 8.0

# Share of the current half-width below which an expected one is 0 up to rounding: every unit is labelled.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredSampleSize:
    """The number of labels with which an interval reaches its target half-width.

    Parameters
    ----------
    target_half_width : float
        Target half-width.
    half_width : float
        Current half-width; infinite if there is no interval yet.
    additional : int
        Number of units in the next round; 0 if the target is reached, or every unit is drawn.
    expected_total : int
        Total number of units that is expected to be sufficient. It exceeds the units after the next round if
        that round is divided.
    estimand : str, optional
        The estimand that is furthest from its target; None for the mean.

    Examples
    --------
    >>> RequiredSampleSize(target_half_width=0.05, half_width=0.04, additional=0, expected_total=100).reached
    True
    """

    target_half_width: float
    half_width: float
    additional: int
    expected_total: int
    estimand: str | None = None

    @property
    def reached(self) -> bool:
        """Whether the interval is narrow enough."""
        return self.half_width <= self.target_half_width

    def to_dict(self) -> JsonDict:
        """Return a JSON-ready dict; an infinite half-width is None."""
        first_fields = {
            "target_half_width": self.target_half_width,
            "half_width": self.half_width,
            "reached": self.reached,
        }
        fields = json_dict(first_fields | asdict(self))
        return {name: value for name, value in fields.items() if name != "estimand" or value is not None}


def next_sample_size(
    width: Callable[[int], float],
    current_half_width: float,
    target_half_width: float,
    drawn: int,
    population_size: int,
    *,
    label_based: bool = False,
) -> tuple[int, int]:
    """Return the number of units in the next round, and the total that is expected to be sufficient.

    A large round is divided, because its size is based on few labels. The total is sufficient *on average*,
    so that half of the studies would need another round of a label or two, again and again. From the second
    such round on, a round of e units is extended by √e, the standard error of a count of e.

    Parameters
    ----------
    width : callable
        Maps a total to the expected half-width.
    current_half_width : float
        Current half-width, above the target.
    target_half_width : float
    drawn : int
        Number of units drawn so far.
    population_size : int
    label_based : bool
        Whether the size of the existing sample already depends on labels.
    """
    start = round(drawn * min(current_half_width / target_half_width, _MAX_WIDTH_RATIO) ** 2)
    total = smallest_budget(width, target_half_width, min(start, population_size), drawn + 1, population_size)
    additional = total - drawn
    if total > MAX_GROWTH * drawn:
        additional = max(math.ceil(FIRST_SHARE_OF_LARGE_ROUND * additional), 1)
    elif label_based:
        additional += math.ceil(math.sqrt(additional))
    additional = min(additional, population_size - drawn)
    return additional, max(total, drawn + additional)


def labels_needed(
    sample: Sample,
    labels: object,
    half_width: object,
    *,
    confidence_level: float = 0.95,
    predicted: bool | str | None = None,
    outcome: str | None = None,
    bounds: tuple[float, float] | None = None,
    population: Population | None = None,
) -> RequiredSampleSize:
    """Return how many more units to draw to reach a target half-width.

    Parameters
    ----------
    sample : Sample
        Simple random or stratified, of any number of rounds.
    labels : see `stratal.estimate`
        Labels of all rounds.
    half_width : float
        Target half-width of the default interval. For a sample that was planned for several estimands, one
        for all, or a list with one for each.
    confidence_level : float
    predicted, outcome, bounds
        As in `stratal.estimate`.
    population : Population, optional
        The population of the sample; required for an estimand other than the mean if the sample was read from
        a file.

    Returns
    -------
    RequiredSampleSize
        For several estimands, the result for the estimand that is furthest from its target.

    Raises
    ------
    InputError
        For a half-width that is not a positive number, and for designs that have no next round.
    LabelError
        For labels of units that are not in this sample, and if there are no labels.

    Notes
    -----
    Stein (1945), in a few stages; docs/methods/adaptive.md contains measured sample sizes and coverage.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 500 + [0.9] * 500)
    >>> pilot = stratal.plan(population, half_width=0.1, pilot=True).draw(seed=7)
    >>> labels = {unit: float(unit >= 500) for unit in pilot.ids.tolist()}
    >>> needed = labels_needed(pilot, labels, half_width=0.1)
    >>> needed.reached, needed.additional
    (True, 0)
    """
    if is_labelled_elsewhere(sample):
        sample = as_pilot(sample)
    require_label_based_rounds(sample)
    requested = as_estimand(sample.question.estimand)
    if population is not None or not requested.of_one_outcome:
        sample = replace(sample, population=population_of(sample, population))
    options = {"predicted": predicted, "outcome": outcome, "bounds": bounds}
    return required_sample_size(InterimAnalysis(sample, labels, confidence_level, options), half_width)[0]


def required_sample_size(
    analysis: InterimAnalysis, half_width: object, *, allocation_of: str = "total"
) -> tuple[RequiredSampleSize, IntArray]:
    """Return how many units to draw to reach the target half-widths, and the n_h (H,) after this round.

    Parameters
    ----------
    analysis : InterimAnalysis
        J estimands in H strata.
    half_width : float or (J,)
        One target for all estimands, or one for each.
    allocation_of : {"total", "remainder"}
        See `next_round`.
    """
    target_half_widths = check_half_widths(half_width, len(analysis.parts))
    drawn = int(analysis.drawn.sum())
    max_units = int(analysis.max_n_h.sum())
    furthest = int(np.argmax(analysis.half_widths / target_half_widths))
    current_ratio = float(analysis.half_widths[furthest] / target_half_widths[furthest])
    additional = 0
    total = drawn

    def n_h_of(total: int) -> IntArray:
        return analysis.allocation(total, target_half_widths, allocation_of=allocation_of, stopping=True)

    def width_ratio(total: int) -> float:
        return float(np.max(analysis.expected(n_h_of(total)) / target_half_widths))

    if current_ratio > 1.0 and drawn < max_units:
        smallest_ratio = width_ratio(max_units)
        goal = max(1.0, min(_REACHABLE_FACTOR * smallest_ratio, (current_ratio + smallest_ratio) / 2.0))
        additional, total = next_sample_size(
            width_ratio, current_ratio, goal, drawn, max_units, label_based=analysis.label_based
        )
    needed = RequiredSampleSize(
        target_half_width=float(target_half_widths[furthest]),
        half_width=float(analysis.half_widths[furthest]),
        additional=additional,
        expected_total=total,
        estimand=analysis.names[furthest] if analysis.mean_widths is None else None,
    )
    return needed, n_h_of(drawn + additional)


def more_labels(
    requested: Estimand,
    sample: Sample,
    labels: object,
    labelled: BoolArray,
    estimates: Estimate | Estimates,
    confidence_level: float = 0.95,
    interval: str = "auto",
) -> list[JsonDict]:
    """Return the current half-width and those expected with more labels; empty if no forecast is possible.

    Each round is allocated as by `next_round`, with the response rate of the existing units. For designs
    without a next round, the width is that of a larger sample of the same kind. Several estimands have no
    rows.

    Parameters
    ----------
    requested : Estimand
    sample, labels
        See `stratal.estimate`.
    labelled : bool (n,)
        Which of the drawn units have a label that counts.
    estimates : Estimate or Estimates
        The estimate of these labels.
    confidence_level : float
    interval : str
        Method of the interval whose width is expected.

    Returns
    -------
    list of dict
        `labels` and `half_width`; the first row has the current ones.
    """
    if isinstance(requested, Several) or not isinstance(estimates, Estimate):
        return []
    if estimates.target == "superpopulation":
        # With labels of all units, the interval would not have the width 0: the units are a random sample.
        return []
    current_half_width = half_width_of(estimates, confidence_level, interval)
    if not math.isfinite(current_half_width):
        return []
    n_labelled = int(labelled.sum())
    analysis = None
    max_units = sample.population_size
    if sample.design.allows_label_based_rounds and n_labelled > 1:
        with warnings.catch_warnings(action="ignore", category=StratalWarning):
            analysis = InterimAnalysis(
                sample,
                labels,
                confidence_level,
                requested=requested,
                estimates=estimates,
                labelled=labelled,
                interval=interval,
            )
        max_units = int(analysis.max_n_h.sum())
    if sample.size >= max_units:
        return []
    forecasts = [{"labels": n_labelled, "half_width": current_half_width}]
    totals = [min(round(multiple * sample.size), max_units) for multiple in _SIZE_MULTIPLES]
    for total in dict.fromkeys(totals):
        if analysis is None:
            n_labels = n_labelled * total / sample.size
            is_finite = estimates.target == "population"
            size = sample.population_size if is_finite else math.inf
            half_width = current_half_width * _error_ratio(n_labelled, n_labels, size)
        else:
            n_h = analysis.allocation(total)
            n_labels = analysis.labels_of(n_h).sum()
            half_width = float(analysis.expected(n_h)[0])
        if half_width < _ROUNDING * current_half_width:
            half_width = 0.0
        forecasts.append({"labels": round(n_labels), "half_width": half_width})
    return forecasts


def _error_ratio(n_labels: int, n_more_labels: float, population_size: float) -> float:
    """Return the standard error of a simple random sample with `n_more_labels` over that with `n_labels`."""
    variance = max(1.0 / n_labels - 1.0 / population_size, 0.0)
    if variance == 0:
        return 0.0
    return math.sqrt(max(1.0 / n_more_labels - 1.0 / population_size, 0.0) / variance)


def next_round(
    sample: Sample,
    labels: Any = None,
    *,
    additional: int | None = None,
    half_width: Any = None,
    design: Design | None = None,
    confidence_level: float = 0.95,
    population: Population | None = None,
    allocation_of: str = "total",
    deviations: str = "recalibrated",
    predicted: bool | str | None = None,
    outcome: str | None = None,
    bounds: tuple[float, float] | None = None,
    learner: Any = None,
    features: Sequence[str] | None = None,
) -> Sample:
    """Extend a sample by one round.

    Based on the current labels, allocate the new units to the strata where they increase the precision most.
    The strata do not change, the sample keeps all its units, and `estimate` uses the labels of all rounds.
    Without labels, only the budget of the design increases, so the estimate remains unbiased.

    The sample of a table that was labelled elsewhere (`stratal.evaluate(table).sample`) is a pilot: its
    labels are used, and the new units are drawn at random from the other rows of the table. If its rows were
    chosen in an unknown way, the result is a new sample, whose allocation the labels inform.

    Parameters
    ----------
    sample : Sample
        A sample of any number of rounds. Only simple random and stratified samples support sizes that depend
        on labels.
    labels : see `stratal.estimate`, optional
        Labels of all rounds; a unit without a label counts as drawn, but contains no information.
    additional : int, optional
        Number of units to draw now.
    half_width : float, optional
        Alternative to `additional`: target half-width of the interval; `labels_needed` computes the number of
        units. For several estimands, one value for all or a list. If the target is reached, the sample itself
        is returned.
    design : Design, optional
        Alternative without labels: a larger design that contains the sample, such as more clusters or another
        allocation in the same strata.
    confidence_level : float
        Confidence level of that interval.
    population : Population, optional
        The population of the sample; required if the sample was read from a file.
    allocation_of : {"total", "remainder"}
        Whether Neyman's rule allocates all units, with the existing units as lower limits, or only the new
        units, as in Kumar & Raj, which ignores the strata of the existing units.
    deviations : {"recalibrated", "raw"}
        See `stratal.planning.estimated_deviations`; raw ones bias the estimate more.
    predicted, outcome, bounds
        As in `stratal.estimate`.
    learner, features : optional
        The learner of `stratal.estimate(…, calibration=learner, features=…)`: the round is then allocated by
        the residuals of the learner, cross-fitted on the current labels.

    Returns
    -------
    Sample
        The existing units in their order, then the new ones; `round` distinguishes them.

    Raises
    ------
    InputError
        For a design that has no next round, a design that does not draw every unit of the sample, a
        population other than that of the sample, and unknown options.
    BudgetError
        If fewer units are left.
    LabelError
        For labels of units that are not in this sample, and if there are no labels.

    Notes
    -----
    Kumar & Raj (2016), algorithms OPT-A1 (one more round) and OPT-A2 (many). Sample sizes that depend on
    labels bias the estimate slightly: docs/methods/adaptive.md contains measurements.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 50 + [0.6] * 50)
    >>> pilot = stratal.plan(population, budget=20).draw(seed=7)
    >>> labels = {unit: float(unit % 2) for unit in pilot.ids.tolist()}
    >>> larger = next_round(pilot, labels, additional=10)
    >>> larger.size, int(larger.round[:20].max()), int(larger.round[20:].min())
    (30, 1, 2)
    >>> next_round(pilot, additional=10).n_h
    array([13, 17])
    """
    require_sample(sample, "next_round")
    from stratal.labels.label_files import read_labels_if_table  # a plan needs no labels

    labels = read_labels_if_table(labels, sample)
    check_choice("allocation", allocation_of, ("total", "remainder"))
    _require_one_size(additional, half_width, design)
    if labels is None or design is not None:
        _refuse_label_options(labels=labels, half_width=half_width, learner=learner, features=features)
        drawn_population = population_of(sample, population)
        larger_design = design or sample.design.larger_design(sample, _check_additional(sample, additional))
        return extend_sample(sample, larger_design, drawn_population)
    drawn_population = population_of(sample, population)
    if is_labelled_elsewhere(sample):
        if sample.question.chosen == UNKNOWN:
            options = {"half_width": half_width, "confidence_level": confidence_level}
            return independent_sample(sample, labels, drawn_population, additional, **options)
        sample = as_pilot(sample)
    require_label_based_rounds(sample)
    existing_sample = sample
    if drawn_population is not sample.population:
        sample = replace(sample, population=drawn_population)  # so that it is compared only once
    requested = as_estimand(sample.question.estimand)
    if not requested.is_estimated and (additional is None or learner is not None):
        raise InputError(
            f"{requested.quoted_name} has neither a half-width nor a learner",
            given=f"{half_width=}, {learner=}",
            action="Give the number of units to add: additional= (--additional N).",
        )
    if additional is not None:
        larger = _round_by_estimand(sample, labels, requested, additional, drawn_population)
        if larger is not None:
            return larger
    _refuse_outcome_options(sample, learner=learner, deviations=deviations, allocation_of=allocation_of)
    calibration_options = None
    if learner is not None or features is not None:
        calibration_options = _calibration_options(sample, learner, features, half_width)
    analysis = InterimAnalysis(
        sample,
        labels,
        confidence_level,
        {"predicted": predicted, "outcome": outcome, "bounds": bounds},
        quiet=half_width is None,
        deviations=deviations,
        learner=calibration_options,
    )
    if additional is not None:
        total = sample.size + _check_additional(sample, additional)
        n_h = analysis.allocation(total, allocation_of=allocation_of)
    else:
        needed, n_h = required_sample_size(analysis, half_width, allocation_of=allocation_of)
        if needed.additional == 0:
            return existing_sample  # the same object, so that a loop over rounds can end
    for note in analysis.refuted:
        warn_caller(note)
    # With a target, the labels determine when labelling ends, which the interval must take into account.
    label_based = half_width is not None or analysis.follows_labels(n_h)
    larger_design = _larger_design(sample, n_h, analysis, allocation_of, label_based=label_based)
    larger = extend_sample(sample, larger_design, drawn_population)
    if half_width is None:
        return larger
    return replace(larger, half_width=float(np.min(half_width)))


def _larger_design(
    sample: Sample, n_h: IntArray, analysis: InterimAnalysis, allocation_of: str, *, label_based: bool
) -> Design:
    """Return the design with n_h (H,) units, and a note on the rule of the allocation."""
    rule_text = "by the plan's rule"
    if label_based:
        rule_text = f"{allocation_of}, {analysis.note}"
    return design_with_counts(sample, n_h, rule_text, label_based=label_based, outcomes=analysis.outcomes)


def _require_one_size(additional: int | None, half_width: Any, design: Design | None) -> None:
    """Raise an error unless one option determines the size of the round, and a design is one."""
    if sum(value is not None for value in (additional, half_width, design)) != 1:
        problem = "exactly one of additional, half_width and design must be given"
        arguments = f"{additional=}, {half_width=}, {design=}"
        raise InputError(problem, given=arguments, allowed="one of the three")
    if design is not None and not isinstance(design, Design):
        raise InputError("design= is not a design", given=repr(design), allowed="Design of stratal.designs")


def _round_by_estimand(
    sample: Sample, labels: Any, requested: Estimand, additional: int, population: Population
) -> Sample | None:
    """Return the larger sample by the rule of the estimand for the next round; None without such a rule."""
    n_added = _check_additional(sample, additional)
    planned_counts = requested.next_counts(sample, labels, sample.size + n_added)
    if planned_counts is not None:
        rule_text = "equal sampling rates in the planned region"
        region_design = design_with_counts(sample, planned_counts, rule_text, label_based=True)
        return extend_sample(sample, region_design, population)
    if not requested.is_estimated:
        return extend_sample(sample, sample.design.larger_design(sample, additional), population)
    return None


def _refuse_label_options(**options: object) -> None:
    """Raise an error for options that a round without labels would ignore."""
    for name, value in options.items():
        if value is not None:
            action = "Give labels= and additional= or half_width=, or leave it out."
            raise InputError(f"{name}= has no effect without labels=", action=action)


def _refuse_outcome_options(sample: Sample, *, learner: object, deviations: str, allocation_of: str) -> None:
    """Raise an error for options that only a round for the mean of one outcome has."""
    requested = as_estimand(sample.question.estimand)
    if requested.of_one_outcome:
        return
    is_joint_remainder = isinstance(requested, Several) and allocation_of != "total"
    if is_joint_remainder or learner is not None or deviations != "recalibrated":
        raise InputError(
            f"a round for {requested.quoted_name} can only be allocated by the variance of its influence",
            given=f"{learner=}, {deviations=}, {allocation_of=}",
            action="Leave these out.",
        )


def units_left(sample: Sample) -> int:
    """Return how many units a next round may add: those that are not drawn and not known by construction."""
    strata = sample.design.strata
    if strata is None:
        return sample.population_size - sample.size
    return int(np.where(strata.is_known, 0, strata.sizes - sample.n_h).sum())


def _check_additional(sample: Sample, additional: object) -> int:
    """Return how many units to add; raise an error if fewer are left."""
    n_added = whole_number("additional", additional)
    available = units_left(sample)
    if 1 <= n_added <= available:
        return n_added
    problem = "this number of units cannot be added"
    if 0 < n_added <= sample.population_size - sample.size:
        problem += ": the other units do not affect the result"
    raise BudgetError(problem, given=n_added, allowed=f"1 to {available}")


def _calibration_options(
    sample: Sample, learner: object, features: Sequence[str] | None, half_width: object
) -> CalibrationOptions:
    """Return the options of a learner, which must improve on the first proxy."""
    if learner is None:
        raise InputError("features= requires a learner", action="Name a learner.")
    if not is_learner(learner):
        raise InputError(
            "unknown learner",
            given=repr(learner),
            allowed=f"{', '.join(LEARNER_NAMES)}, or a scikit-learn estimator",
        )
    if half_width is not None or sample.design.strata is None:
        action = "Omit the learner here, and use it in the estimate: calibration=learner."
        raise InputError("a learner can only be used with strata and additional=", action=action)
    proxy_columns = [0] if sample.proxy_names else []
    return CalibrationOptions(
        proxy_columns=proxy_columns, method=learner, features=features, population=sample.population
    )


# A function of ids (m,) that returns their labels (m,) in the same order.
Oracle = Callable[[AnyArray], Any]


def opt_a2(
    population: Population,
    strata: Strata,
    budget: int,
    oracle: Oracle,
    *,
    seed: int,
    step: int = 20,
    initial: int | None = 5,
    pilot: str = "proportional",
    allocation_of: str = "total",
    deviations: str = "recalibrated",
) -> tuple[Sample, dict[Any, Any]]:
    """Label a small pilot, then further rounds, with S_h estimated again after each.

    Parameters
    ----------
    step : int
        n_step: labels of each round.
    initial : int, optional
        n_ini: mean number of labels per stratum in the pilot; None for half of the budget.
    population, strata, budget, oracle, seed, pilot, allocation_of, deviations
        As in `opt_a1`.

    Notes
    -----
    With `deviations="raw"`, as in Kumar & Raj, the mean squared error can exceed that of one proportional
    round, because the first labels of a stratum may agree by chance: up to 12 times for counts of which 8%
    are not zero, and more labels do not reduce it (benchmarks/results/unbounded_rounds.md). Recalibrated
    deviations exceed it at most 1.07 times there, with an uninformative proxy; two rounds (`opt_a1`) 1.05
    times.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 80 + [0.6] * 20)
    >>> strata = stratal.strata.stratify(population, n_strata=2)
    >>> sample, labels = opt_a2(population, strata, 40, lambda ids: ids % 2, seed=7, step=10)
    >>> int(sample.round.max()), len(labels)
    (4, 40)
    """
    require_population(population, "an adaptive draw")
    total = whole_number("budget", budget)
    pilot_size = max(total // 2, 2 * strata.n_strata)
    if initial is not None:
        pilot_size = min(whole_number("initial", initial) * strata.n_strata, total)
    check_choice("pilot", pilot, ("proportional", "equal"))
    round_size = max(whole_number("step", step), 1)
    sample = Stratified(strata=strata, allocation=allocate(strata, pilot_size, pilot)).draw(population, seed)
    labels = _labels_by_id(oracle, sample.ids)
    while sample.size < total:
        drawn = sample.size
        sample = next_round(
            sample,
            labels,
            additional=min(round_size, total - drawn),
            allocation_of=allocation_of,
            deviations=deviations,
        )
        labels |= _labels_by_id(oracle, sample.ids[drawn:])
    return sample, labels


@keywords_from(opt_a2, without=("step",))
def opt_a1(
    population: Population,
    strata: Strata,
    budget: int,
    oracle: Oracle,
    *,
    seed: int,
    initial: int | None = None,
    **options: str,
) -> tuple[Sample, dict[Any, Any]]:
    """Label a pilot, estimate S_h, and allocate the rest of the budget by Neyman's rule: two rounds.

    Parameters
    ----------
    population : Population
    strata : Strata
    budget : int
        Total number of labels.
    oracle : callable
        Takes the ids (m,) of units and returns their labels (m,).
    seed : int
    initial : int, optional
        n_ini: mean number of labels per stratum in the pilot; half of the budget by default.
    pilot : {"proportional", "equal"}
    allocation_of, deviations
        See `next_round`.

    Returns
    -------
    sample : Sample
    labels : dict of id to label

    Notes
    -----
    The paper's literal rule is `pilot="equal", allocation_of="remainder", deviations="raw"`.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 80 + [0.6] * 20)
    >>> strata = stratal.strata.stratify(population, n_strata=2)
    >>> sample, labels = opt_a1(population, strata, 20, lambda ids: ids % 2, seed=7)
    >>> sample.size, len(labels)
    (20, 20)
    """
    return opt_a2(population, strata, budget, oracle, seed=seed, step=budget, initial=initial, **options)


def _labels_by_id(oracle: Oracle, ids: AnyArray) -> dict[Any, Any]:
    """Return the labels of units as a dict of id to label."""
    return dict(zip(ids.tolist(), oracle(ids), strict=True))
