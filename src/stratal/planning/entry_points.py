"""`plan`: the precision to expect of a labelling budget, or the budget that a precision needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import numpy as np

from stratal.designs import SimpleRandom
from stratal.errors import InputError, check_choice
from stratal.estimation.anticipated import StratificationOptions
from stratal.estimation.estimand import EstimandLike, as_estimand, planned_for
from stratal.intervals.interval import check_confidence_level
from stratal.planning.budget_search import check_half_widths, smallest_budget
from stratal.planning.design_precision import expected_precision, simple_allocation
from stratal.planning.plan import PROXY_ASSUMPTIONS, Plan
from stratal.planning.planner import EVERY_UNIT, PILOT_LABELS, Planner
from stratal.planning.power import check_share
from stratal.population.population import Population, require_population
from stratal.population.predictions import with_predictions
from stratal.strata.arguments import check_budget, whole_number
from stratal.strata.strata import Strata, one_stratum

if TYPE_CHECKING:
    from stratal.intervals.looks import PlannedLooks

# The rate at which a binary outcome has the largest variance.
_WORST_RATE = 0.5

_SMALLER_WITH_A_FILE = (
    "With a file of predictions, fewer labels may suffice: stratal plan FILE --proxy COLUMN."
)


def plan(
    population: Population,
    budget: int | None = None,
    *,
    half_width: float | Sequence[float] | None = None,
    method: str | None = None,
    n_strata: int | None = None,
    by: str | None = None,
    proxy: str | None = None,
    allocation: str | None = None,
    minimum: int = 2,
    confidence_level: float = 0.95,
    assume: str = "conservative",
    pilot: bool = False,
    residual_sd: float | None = None,
    estimand: EstimandLike = None,
    labels: object = None,
    calibrate_by: str | None = None,
    labelled_units: Population | None = None,
    looks: int | str | PlannedLooks | None = None,
    predicts: str | Mapping[str, str] | None = None,
    for_: str | None = None,
    previous: object = None,
) -> Plan:
    """Plan which units to label, and state the precision to expect.

    Give either `budget` or `half_width`.

    Parameters
    ----------
    population : Population
    budget : int, optional
        Labelling budget: number of labels, or money with `allocation="cost-optimal:COLUMN"`.
    half_width : float or sequence of float, optional
        Target half-width of the interval, in the outcome's units. The plan has the smallest budget that is
        expected to reach it. Because this budget depends on the quality of the proxy, a pilot usually
        requires fewer labels.
    method, n_strata, by, proxy
        See `stratal.strata.stratify`. For the mean, the default is `"robust-neyman"`, or `"k-means"` if the
        proxy is not on the scale of an outcome with bounds. There are up to ten strata (in each category,
        with `by`), or up to 15 with robust Neyman cuts and at least 200 labels. For small budgets there are
        fewer, with at least five draws each on average.
    allocation : str, optional
        See `stratal.strata.allocate`; for the mean, the default is `"robust"`. `"cost-optimal:minutes"` names
        the column with the cost of labelling each unit; `budget` is then a cost.
    minimum : int
        Minimum number of units per stratum; 2 by default, so that its variance can be estimated.
    confidence_level : float
        Confidence level of the interval.
    assume : {"conservative", "expected", "optimistic"}
        Assumed quality of the proxy when a budget is computed for `half_width`.
    pilot : bool
        Plan only the first round towards `half_width`. `next_round` then computes from its labels how many
        more are needed.
    residual_sd : float, optional
        Standard deviation of outcome minus proxy, for outcomes without bounds; by default half of the
        proxy's standard deviation.
    estimand : Estimand, str, mapping or list of these, optional
        Quantity to estimate, such as `F1("match")` or `"f1:match"` (see `stratal.estimands`); the mean by
        default. For other estimands, strata minimise the variance of the estimand's influence (Neyman), with
        up to fifteen strata in each of its cells. For a list of estimands, `half_width` may also be a list:
        the plan then has the smallest number of labels that reaches all targets. With a budget, it minimises
        the largest expected standard error.
    labels : Labels, mapping of id to label or Series, optional
        Existing labels of any of the units, from an earlier sample or a pilot. The expected precision is then
        based on the quality of the proxy as estimated from these labels, and its range reflects their
        uncertainty. The labels do not change which units are selected, unless they show that strata do not
        help.
    calibrate_by : str, optional
        With `labels`: column of categories between which the quality of the proxy may differ. The proxy is
        recalibrated within each category, and strata are crossed with the categories.
    labelled_units : Population, optional
        The units of `labels` if these are not in the population, such as last month's audit, with the same
        proxy. A note reports if the distribution of the proxy differs.
    looks : int or str, optional
        Number of interim analyses, such as 4 or "obrien-fleming:4"; "pocock" by default. The intervals of
        `estimate(…, look=1)` to the last look hold simultaneously, so labelling may stop at any look.
    predicts : str or mapping of proxy to str, optional
        The quantity that each proxy predicts, as in `Population.read`. It may replace an inference, but must
        not contradict a declaration.
    for_ : str, optional
        Instead of an estimand, the requirement for `stratal.threshold`: `"threshold:error<=.05"`. In this
        case, and for metrics at a threshold, the plan for a budget is the first of two rounds, with a quarter
        of the labels at random; `next_round` allocates the rest by these labels.
    previous : list, optional
        Earlier waves with other items: pairs (sample, labels), or folders that `draw` wrote, with their
        labels. If all waves have the same groups or further proxies, these labels are used to divide the
        strata of the proxy and to move labels between them. If they mislead, the standard error is at most 5%
        larger.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        If not exactly one of `budget` and `half_width` is given, for unknown methods or columns, for options
        that the estimand does not accept, such as `by`, `proxy`, `allocation` and `labels` for estimands
        other than the mean, and for `labels` with a pilot.
    LabelError
        For labels of ids that are not in the population.
    BudgetError
        If the budget is below the minimum of the design or above N, or if no budget reaches the half-width.

    Notes
    -----
    Expected variances are those of Fogliato et al. (2024), eq. 3-5 and 8, with the S_h of an overconfident
    proxy: the slope of outcomes on the proxy is assumed to be 0.8 (`CALIBRATION_SLOPE`). A judge that returns
    only 0 or 1 is not assumed to be certain.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 500 + [0.9] * 500)
    >>> plan = stratal.plan(population, half_width=0.05)
    >>> plan.assume, round(plan.half_width_range[1], 2)
    ('conservative', 0.05)
    """
    _require_one_goal(budget, half_width)
    check_confidence_level(confidence_level)
    check_choice("assumption about the proxy", assume, PROXY_ASSUMPTIONS)
    if pilot and budget is not None:
        raise InputError("a pilot requires a target half-width", action="Give half_width=.")
    _check_label_options(
        labels, pilot=pilot, previous=previous, calibrate_by=calibrate_by, labelled_units=labelled_units
    )
    requested = as_estimand(planned_for(estimand, for_))
    if budget is None and not requested.is_estimated:
        raise InputError(
            "a threshold has no half-width", given=f"{half_width=}", action="Give budget= (--budget N)."
        )
    population = with_predictions(require_population(population, "plan"), predicts)
    options = StratificationOptions(
        method=method,
        n_strata=n_strata,
        by=by or calibrate_by,
        proxy=proxy,
        allocation=allocation,
        minimum=minimum,
        residual_sd=residual_sd,
    )
    requested.refuse_plan_options({"labels": labels} | asdict(options))
    planned_looks = None
    if looks is not None:
        from stratal.intervals.looks import PlannedLooks

        planned_looks = PlannedLooks.parse(looks)
    planner = Planner(
        population=population,
        estimand=requested,
        options=options,
        confidence_level=confidence_level,
        half_width=half_width,
        looks=planned_looks,
    )
    if previous is not None:
        planner = _with_previous_waves(planner, previous)
    if labels is not None:
        from stratal.planning.previous_labels import PreviousLabels  # it loads the estimates

        previous_labels = PreviousLabels(
            population,
            labels,
            planner.options_with_defaults.proxy,
            calibrate_by=calibrate_by,
            labelled_units=labelled_units,
        )
        planner = replace(planner, labels=previous_labels)
    for part in planner.parts:
        part.refuse_a_misread_proxy(population)
    if budget is not None:
        return planner.plan_rounds(budget)
    if pilot:
        return planner.plan_pilot()
    return planner.plan_half_width(assume)


def _check_label_options(labels: object, *, pilot: bool, previous: object, **required: object) -> None:
    """Raise an error for options that exclude labels, and for those that require labels if there are none."""
    if pilot and labels is not None:
        raise InputError("`pilot` and `labels` are mutually exclusive", action="Leave pilot or labels out.")
    if previous is not None and labels is not None:
        raise InputError("`previous` and `labels` are mutually exclusive", action="Leave one of them out.")
    for name, value in required.items():
        if value is not None and labels is None:
            raise InputError(f"{name} requires labels", action=f"Give labels=, or leave out {name}=.")


def _with_previous_waves(planner: Planner, previous: object) -> Planner:
    """Return the planner with the labels of earlier waves; raise an error if options fix the strata."""
    from stratal.planning.previous_waves import PreviousWaves  # it reads files of labels

    are_strata_open = planner.compares_candidates and planner.options.by is None
    if not are_strata_open or not planner.estimand.of_one_outcome:
        raise InputError(
            "plans with earlier waves are possible only for the mean of one outcome, and the waves "
            "determine the strata and their labels",
            action="Leave out either the options for strata, estimand and labels, or previous= (--previous).",
        )
    waves = PreviousWaves.read(previous, planner.population, planner.options_with_defaults.proxy)
    return replace(planner, previous=waves)


def _require_one_goal(budget: int | None, half_width: object) -> None:
    """Raise an error unless exactly one of budget and half-width is given."""
    if (budget is None) == (half_width is None):
        allowed = "one of budget= (--budget N) and half_width= (--half-width W)"
        raise InputError("either a budget or a half-width must be given", allowed=allowed)


def plan_for_rate(
    population_size: int,
    rate: float = _WORST_RATE,
    *,
    budget: int | None = None,
    half_width: float | None = None,
    confidence_level: float = 0.95,
    sensitivity: float | None = None,
    specificity: float | None = None,
) -> Plan:
    """Plan a sample of binary outcomes from a guess of their rate, before there is any file.

    It is a simple random sample, unless the error rates of a judge that rates all units are guessed as well.

    Parameters
    ----------
    population_size : int
        N.
    rate : float
        Expected share of the outcome 1; ½ is the worst case.
    budget, half_width
        Give one of them, as in `stratal.plan`.
    confidence_level : float
    sensitivity, specificity : float, optional
        Share of the outcomes 1, and share of the outcomes 0, for which the judge's verdict is right.

    Returns
    -------
    Plan
        It has no population, so that nothing can be drawn from it.

    Raises
    ------
    InputError
        For a rate outside (0, 1), such as percent, and if not exactly one of budget and half-width is given.

    Examples
    --------
    >>> plan_for_rate(5000, 0.9, half_width=0.03).budget
    385
    >>> plan_for_rate(5000, 0.9, half_width=0.03, sensitivity=0.95, specificity=0.9).budget < 385
    True
    """
    size = whole_number("population_size", population_size)
    check_share("rate", rate)
    _require_one_goal(budget, half_width)
    if sensitivity is not None or specificity is not None:
        population = _judged_population(size, rate, sensitivity, specificity)
        check_confidence_level(confidence_level)
        # The proxy is the exact probability of the outcome 1, not a score that may be overconfident. So the
        # slope of the outcome on the proxy is 1.
        planner = Planner(
            population=population,
            estimand=as_estimand(None),
            options=StratificationOptions(expected_slope=1.0),
            confidence_level=confidence_level,
            half_width=half_width,
        )
        planned = planner.plan_half_width("expected") if budget is None else planner.plan_rounds(budget)
        text = (
            f"Outcomes are 0 or 1 (a share of {rate:g} is 1), and a judge that rates all units has a "
            f"sensitivity of {sensitivity:g} and a specificity of {specificity:g}."
        )
        return replace(planned, population=None, assumptions=(text, *planned.assumptions))
    stratum = one_stratum(size, rate, rate * (1 - rate))
    if budget is not None:
        return _plan_of_rate(budget, stratum, rate, confidence_level)
    target = float(check_half_widths(half_width, 1, stratum)[0])

    def width(n_labels: int) -> float:
        return _plan_of_rate(n_labels, stratum, rate, confidence_level).expected_half_width or 0.0

    n_labels = smallest_budget(width, target, min(2 * PILOT_LABELS, size), min(2, size), size)
    return _plan_of_rate(n_labels, stratum, rate, confidence_level)


def _judged_population(
    size: int, rate: float, sensitivity: float | None, specificity: float | None
) -> Population:
    """Return a population whose proxy is the probability of the outcome 1 given a judge's verdict."""
    for name, value in (("sensitivity", sensitivity), ("specificity", specificity)):
        if value is None or not 0 < value < 1:
            value_text = "nothing" if value is None else f"{value:g}"
            action = f"Give both error rates of the judge: {name}=.9 (--{name} .9)."
            raise InputError(f"{name}= (--{name}) must lie between 0 and 1", given=value_text, action=action)
    assert sensitivity is not None
    assert specificity is not None
    positive_share = rate * sensitivity + (1 - rate) * (1 - specificity)
    n_positive = min(max(round(size * positive_share), 1), size - 1)
    if_positive = rate * sensitivity / positive_share
    if_negative = rate * (1 - sensitivity) / (1 - positive_share)
    proxy = np.repeat([if_positive, if_negative], [n_positive, size - n_positive])
    return Population.from_arrays(proxy={"judge": proxy})


def _plan_of_rate(budget: int, stratum: Strata, rate: float, confidence_level: float) -> Plan:
    """Return the plan of a budget for a binary outcome with this rate, in a population of one stratum."""
    check_budget(budget, stratum.size)
    allocation = simple_allocation(stratum, budget)
    # Without a proxy there is one estimator.
    (design,) = expected_precision(SimpleRandom.kind, stratum, allocation.n_h, stratum, n_proxies=0)
    return Plan(
        budget=budget,
        population_size=stratum.size,
        strata=stratum,
        allocation=allocation,
        designs=(design,),
        recommended=design,
        assumptions=(f"Outcomes are 0 or 1. A share of {rate:g} is 1, but it is not known for which units.",),
        notes=(EVERY_UNIT if budget == stratum.size else _SMALLER_WITH_A_FILE,),
        confidence_level=confidence_level,
    )
