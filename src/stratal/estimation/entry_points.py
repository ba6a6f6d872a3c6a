"""`estimate`: from a sample and its labels to an estimate of any estimand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np

from stratal.designs.extending import require_same_population
from stratal.designs.sample import Sample, require_sample, with_declared_scores
from stratal.errors import InputError, keywords_from
from stratal.estimation.estimand import Estimand, EstimandLike, Request, as_estimand
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates, with_label_values
from stratal.estimation.resolve import (
    check_label_codes,
    compared_column,
    joined_columns,
    refuse_unlabelled_class,
    with_answer_sets,
    with_corrected_scores,
)
from stratal.estimation.respondents import default_target
from stratal.intervals.looks import PlannedLooks
from stratal.labels.joined_labels import JoinedLabels, join_labels
from stratal.protocols import Keywords
from stratal.question.question import SUPERPOPULATION


@overload
def estimate(
    sample: Sample, labels: object, *, estimand: None = None, by: None = None, **options: Any
) -> Estimate:
    """Estimate the mean outcome of the population."""


@overload
def estimate(
    sample: Sample, labels: object, *, estimand: EstimandLike = None, by: object = None, **options: Any
) -> Any:
    """Estimate what the sample was planned for, or the estimands or groups that are named."""


@keywords_from(Request)
def estimate(
    sample: Sample,
    labels: object,
    *,
    estimand: EstimandLike = None,
    by: object = None,
    judge: str | Sequence[str] | None = None,
    # "Look" is the standard term for an interim analysis of a group sequential design.
    look: int | None = None,
    predicts: str | Mapping[str, str] | None = None,
    **options: Any,
) -> Any:
    """Estimate the mean outcome of the population, or another estimand, from the labels of a sample.

    Parameters
    ----------
    sample : Sample
        Drawn units with their design.
    labels : mapping of id to z, Series indexed by id, array in the order of `sample.ids`, table, or Labels
        A table is a dataframe, or a mapping of columns, with ids and a column `label`.
        NaN and None mean that there is no label: nonresponse, handled within strata and reported.
    estimator : str
        `horvitz-thompson` (λ = 0), `difference` (λ = 1), `ppi++` (one fitted λ), `stratppi` (one λ per
        stratum, shrunk to the pooled one), or `auto`, which is fixed by design and sizes and never by
        comparing standard errors.
    estimand : Estimand, str, mapping, or a list of these, optional
        What to estimate, such as `F1("match")` or `"f1:match"` (see `stratal.estimands`). Default: the
        estimand of the plan, or the mean. Options without an effect on it raise an error.
    by : str or sequence, optional
        A column of the sample, or a group for each drawn unit: returns an estimate for each group under the
        whole design. The means of a column's groups share one λ and use the mean proxy of each group.
        `estimator="horvitz-thompson"` does not use the proxy; "composite" shrinks groups towards each other,
        and its intervals are valid only on average over the groups.
    judge : str or sequence of str, optional
        Estimate the agreement of this judge with the labels (`stratal.estimands.JudgeReport`), instead of
        `estimand`.
    target : {"population", "superpopulation"}
        The mean over these N units, or of the distribution from which they came. Default: "population", or
        "superpopulation" if every unit is labelled, because the mean of the units is then known.
    outcome : {"binary", "bounded", "unbounded"}, optional
        Default: the outcome stored in the sample, which was declared, or inferred at the draw from the bounds
        of the proxies or from the model's answers.
    bounds : (float, float), optional
        Bounds of the outcome. Default: those of the sample, or 0 and 1 if it has none and all labels are 0 or
        1.
    limits : (float, float), optional
        Values beyond a limit are replaced by this limit (winsorised), so an outcome without bounds has
        bounds.
    lam : float, (k,) or (H,), optional
        A fixed λ instead of a fitted one.
    proxy : str, optional
        The proxy that the estimator uses. Default: all proxies.
    predicted : bool or str, optional
        True, or the name of a column of answers: labels are classes, and z = 1(label = answer). False: labels
        are numbers, such as 1 (right) and 0 (wrong). Default: as declared by the sample's question, or else
        labels that occur among the model's answers are classes.
    clip : bool
        Whether a fitted λ is limited to [0, 1].
    combine : {"mean", "majority"}
        How several annotators' answers to one unit are combined. Units without a majority count as
        unlabelled.
    cross_fit : int, optional
        Number of folds: each unit's λ is fitted on the labels of the other folds.
    calibration : {"isotonic", "logistic"}, or a learner, optional
        First calibrate the proxy on these labels, cross-fitted in `cross_fit` folds (default: 5). `auto` is
        then `difference`. A learner is a scikit-learn estimator, "gradient-boosting", "logistic-regression"
        or "ridge"; a fold uses it only if the other folds show that it helps.
    features : sequence of str, optional
        Input columns of a learner, such as `judge_*`: proxies and features of the population.
    population : Population, optional
        The population from which the sample was drawn; required for calibration. Default: that of the sample,
        if it is in memory.
    stratum_weights_known : bool
        For the mean of the superpopulation: whether the shares of the strata in it are known. Otherwise, they
        are estimated by those of the N units.
    look : int, optional
        Number of this planned look, from 1 (`stratal.plan(…, looks=4)`). Intervals and p-values are then
        simultaneous for all looks, so that labelling may stop at any of them, for any reason.
    predicts : str or mapping of proxy to str, optional
        The quantity that each proxy predicts, as in `Population.read`. It may replace an inference made at
        the draw, but must not contradict a declaration.

    Returns
    -------
    Estimate, or Estimates for several estimands or groups
        The interval is chosen afterwards: `estimate.confidence_interval(0.95)`.

    Raises
    ------
    LabelError
        For ids that are not in the sample, duplicates, and values outside the outcome's bounds.
    InputError
        For an unknown estimator or target, for an estimator that requires a proxy if there is none, for more
        folds than labels, and for calibration without a population.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.9, 0.8, 0.3, 0.6, 0.7, 0.2])
    >>> sample = stratal.designs.SimpleRandom(budget=4).draw(population, seed=7)
    >>> result = stratal.estimate(sample, [1, 1, 0, 1], estimator="horvitz-thompson")
    >>> result.value, result.n
    (0.75, 4)
    """
    require_sample(sample, "estimate")
    # Imported here, because plans import this module and read no labels.
    from stratal.labels.label_files import read_labels_if_table

    labels = read_labels_if_table(labels, sample)
    sample = with_declared_scores(with_corrected_scores(sample, predicts, labels), predicts)
    target = options.pop("target", None)
    # Raises an error for an option that contradicts the question.
    question = sample.question.refine(predicted=options.get("predicted"), target=target)
    requested = _requested_estimand(sample, estimand, judge)
    # The default target is passed only to estimands that support the option.
    if target is not None or question.target == SUPERPOPULATION or "target" in requested.takes:
        target = question.target
    if target is not None:
        options["target"] = target
    request = Request(**options)
    if request.population is not None:
        sample = replace(sample, population=require_same_population(sample, request.population))
    if options:
        requested.refuse_options(request, sample, grouped=by is not None)
    sample = with_answer_sets(sample, labels)
    labels, columns = _join_labels(requested, sample, labels)
    if "" in columns:
        refuse_unlabelled_class(sample, columns[""])
    parts = requested.parts_of(sample)
    compared = None
    if "" in columns and "predicted" in requested.takes:
        compared = compared_column(sample, columns[""], request.predicted)
    # The labels of several columns are numbers.
    are_classes = "" in columns and (
        compared is not None or any(part.reads_classes(sample) for part in parts)
    )
    answers = None
    if are_classes:
        answers = _answer_values(parts, sample, compared)
    labels, columns = _with_checked_codes(labels, columns, sample, request, answers)
    if target is None and all("target" in part.takes and part.has_superpopulation for part in parts):
        joined = [column.labelled for column in columns.values() if isinstance(column, JoinedLabels)]
        if joined:
            request = replace(request, target=default_target(sample, np.all(joined, axis=0)))
    if by is None:
        result = requested.estimate(sample, labels, request)
    else:
        result = requested.by(sample, labels, by, request)
    for column in columns.values():
        column.cache.clear()
    if look is not None:
        result = at_look(result, sample, look)
    if "" not in columns:
        return with_label_values(result, columns)
    is_right = sample.question.predicts_right
    return with_label_values(result, columns, answers, classes=are_classes, is_right=is_right)


def _requested_estimand(
    sample: Sample, estimand: EstimandLike, judge: str | Sequence[str] | None
) -> Estimand:
    """Return the agreement of a judge, or the named estimand; by default that of the sample."""
    if judge is None:
        return as_estimand(sample.question.estimand if estimand is None else estimand)
    if estimand is not None:
        stated_options = f"judge={judge!r} and estimand="
        raise InputError("a judge is a separate estimand", given=stated_options, action="Leave one out.")
    judge_report: Estimand = Estimand.class_of_kind("judge")(judge)
    return judge_report


def compared_answers(
    requested: Estimand, sample: Sample, labels: object, predicted: bool | str | None
) -> bool | str | None:
    """Return the column of answers that an estimand compares labels with; None if labels are numbers.

    True is the column of the sample's question.
    """
    if requested.compared:
        return requested.compared
    if "predicted" not in requested.takes:
        return None
    return compared_column(sample, labels, predicted)


def _join_labels(requested: Estimand, sample: Sample, labels: object) -> tuple[Any, dict[str, Any]]:
    """Return labels joined to the sample, and their columns by name; a single column has the name ""."""
    if isinstance(labels, Mapping):
        columns = set(requested.label_columns(sample) or requested.model_names)
        if columns and columns <= set(labels):
            joined_by_name = joined_columns(sample, labels)
            return joined_by_name, joined_by_name
        if set(labels) in ({"label", "predicted"}, {"label", "score"}):
            joined = join_labels(sample, labels["label"])
            return {**labels, "label": joined}, {"": joined}
    joined = requested.decoded(sample, join_labels(sample, labels))
    return joined, {"": joined}


def _with_checked_codes(
    labels: Any, columns: dict[str, Any], sample: Sample, request: Request, answers: set[str] | None
) -> tuple[Any, dict[str, Any]]:
    """Return the labels and columns of `_join_labels`, after a check for codes of missing labels.

    `answers` are the classes that labels are compared with.
    """
    options: Keywords = {"outcome": request.outcome, "bounds": request.bounds, "classes": answers}
    checked = dict(columns)
    for name, column in columns.items():
        if isinstance(column, JoinedLabels):
            checked[name] = check_label_codes(sample, column, name or "label", **options)
    if "" not in checked:
        return checked, checked
    if isinstance(labels, Mapping):
        return {**labels, "label": checked[""]}, checked
    return checked[""], checked


def at_look(estimates: Estimate | Estimates, sample: Sample, look_number: int) -> Any:
    """Return estimates with intervals for a planned look.

    The information at a look is proportional to 1 / (1/n − 1/N). The looks were at the ends of the rounds of
    the sample if there are enough rounds, and otherwise evenly spaced.
    """
    if sample.looks is None:
        action = "Plan them before the first label: plan(…, looks=4) (plan --looks 4, draw --looks 4)."
        raise InputError("no looks were planned for these labels", given=f"look={look_number}", action=action)
    rows = estimates if isinstance(estimates, Estimates) else [estimates]
    planned = PlannedLooks.parse(sample.looks)
    size = sample.population_size
    even_shares = planned.at(look_number).information
    drawn_by_round = np.cumsum(np.bincount(sample.round, minlength=2)[1:])
    if len(drawn_by_round) >= look_number:
        shares = drawn_by_round[:look_number] / drawn_by_round[look_number - 1]
    else:
        shares = np.array(even_shares)
    n = max(row.labels for row in rows) * shares
    # The information of a look is the inverse of the variance, with the finite population correction.
    information = n / np.maximum(1.0 - n / size, 1.0 / size)
    planned_look = planned.at(look_number, information)
    rows = [row.at(planned_look) for row in rows]
    if isinstance(estimates, Estimates):
        return replace(estimates, estimates=tuple(rows))
    return rows[0]


def _answer_values(parts: Sequence[Estimand], sample: Sample, compared: str | None) -> set[str] | None:
    """Return the distinct answers that labels are compared with if they are classes; None without answers."""
    stated = next((name for name in (compared, *(part.compared for part in parts)) if name), False)
    answer_column: str | None = None
    if isinstance(stated, str):
        answer_column = stated
    elif stated:
        answer_column = sample.question.answer
    names = (answer_column or "", *(name for part in parts for name in part.answer_columns))
    columns = [sample.groups[name].tolist() for name in names if name in sample.groups]
    return {answer for column in columns for answer in column} | {*sample.question.outcome.classes} or None
