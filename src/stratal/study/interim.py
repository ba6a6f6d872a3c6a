"""What the labels so far say: an estimate at any moment, and whether it is narrow enough to stop."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.designs import Sample, SimpleRandom, Stratified
from stratal.errors import InputError, LabelError, not_positive
from stratal.estimation.columns import outcomes
from stratal.estimation.estimate import Estimate
from stratal.estimation.evaluation import estimate
from stratal.intervals.betting import random_order, sequence_interval
from stratal.intervals.interval import ConfidenceInterval, tail_shares
from stratal.labels.labels import Labels
from stratal.study.folder import StudyFolder
from stratal.study.journal import append_setting, keep_setting
from stratal.study.labelling import arrivals, present_labels

LOOKS = 1.02
"""The interval is looked at again after so many times as many answers."""


def estimate_options(study: StudyFolder, sample: Sample) -> dict[str, Any]:
    """Return what the question says of the outcome: its bounds, or that labels are classes.

    Examples
    --------
    >>> estimate_options.__name__
    'estimate_options'
    """
    question = study.question
    if not question.counted:
        return {"predicted": True} if sample.predicted else {}
    return {} if question.bounds == (0.0, 1.0) and len(question.choices) == 2 else {"bounds": question.bounds}


def estimate_study(study: StudyFolder, **options: Any) -> Estimate:
    """Estimate from the present labels of a study.

    Parameters
    ----------
    study : Study
    **options
        As of `stratal.estimate`; bounds and classes are known from the question unless given.

    Raises
    ------
    LabelError
        If there is no label yet, or labels are classes and the sample holds no model's answers.

    Examples
    --------
    >>> estimate_study.__name__
    'estimate_study'
    """
    sample = study.sample()
    known: dict[str, Any] = {**estimate_options(study, sample), **options}
    found: Estimate = estimate(sample, study.labels(), **known)
    return found


def anytime_interval(study: StudyFolder, confidence_level: float = 0.95) -> ConfidenceInterval:
    """Return the interval that holds at every moment at once, so that one may look at any time and stop.

    By betting on the labels in the order in which they came (`stratal.intervals.betting`). Nothing is
    assumed but the random order of the items, and that skips are as frequent in every stratum; proxies are
    not used, so that it is wider than the estimate's own.

    Raises
    ------
    InputError
        For designs with unequal probabilities, and outcomes without bounds.

    Examples
    --------
    >>> anytime_interval.__name__
    'anytime_interval'
    """
    sample = study.sample()
    if not isinstance(sample.design, SimpleRandom | Stratified):
        raise InputError(
            "an interval that holds at every moment needs a simple random or stratified sample",
            given=f"design '{sample.design.kind}'",
            action="Look at the estimate once, when all labels are there: stratal.estimate.",
        )
    with study.verified() as connection:
        rows, answered = arrivals(connection, sample)
        labels = present_labels(connection, study.question, str(study.folder))
    (low, high), unit = _outcomes_in_order(study, sample, labels, rows[answered])
    order = random_order(
        sample.stratum[rows], answered, sample.summary.sizes, _drawn(sample), sample.round[rows] - 1
    )
    below, above = sequence_interval(unit, order, *tail_shares(confidence_level, "two-sided"))
    return ConfidenceInterval(
        low=low + (high - low) * below,
        high=low + (high - low) * above,
        confidence_level=confidence_level,
        method="betting-anytime",
    )


def _outcomes_in_order(
    study: StudyFolder, sample: Sample, labels: Labels, rows: IntArray
) -> tuple[tuple[float, float], FloatArray]:
    """Return the outcome's bounds, and the outcomes of the labelled rows on the 0-1 scale."""
    options = estimate_options(study, sample)
    if not (study.question.counted or options):
        raise InputError(
            "labels are classes, and the sample holds no model's answers to compare them with",
            action="Make the study with --predicted.",
        )
    told, z = outcomes(sample, labels, options.get("predicted", False)), np.full(sample.size, np.nan)
    z[told.labelled] = told.z
    low, high = study.question.bounds or (0.0, 1.0)
    return (low, high), (z[rows] - low) / (high - low)


def _drawn(sample: Sample) -> IntArray:
    """Return the units drawn by round and stratum (R, H)."""
    drawn = np.zeros((int(sample.round.max(initial=1)), len(sample.summary.sizes)), np.int64)
    np.add.at(drawn, (sample.round - 1, sample.stratum), 1)
    return drawn


def look(study: StudyFolder, confidence_level: float = 0.95) -> bool:
    """Look whether the interval is as narrow as was asked for, and keep the answer; True if it is.

    It is looked at now and then, since an interval that holds at every moment holds at those too.

    Examples
    --------
    >>> look.__name__
    'look'
    """
    wanted = study.setting("half_width")
    if not wanted:
        return False
    if study.setting("enough") == "yes":
        return True
    with study.database.read() as connection:
        done = int(connection.execute("SELECT done FROM tally").fetchone()[0])
    if done < max(1, int(study.setting("next_look") or 0)):
        return False
    try:
        enough = anytime_interval(study, confidence_level).width / 2 <= float(wanted)
    except (InputError, LabelError):
        enough = False
    with study.database.write() as connection:
        keep_setting(connection, "enough", "yes" if enough else "no")
        keep_setting(connection, "next_look", str(max(done + 1, math.ceil(done * LOOKS))))
    return enough


def until(study: StudyFolder, half_width: float | None) -> bool:
    """Ask for another half-width at which labelling ends, or for none; return whether it is reached.

    Examples
    --------
    >>> until.__name__
    'until'
    """
    if half_width is not None and not half_width > 0:
        raise not_positive("half_width", half_width)
    with study.saving() as transaction:
        connection = transaction.connection
        kept = "" if half_width is None else repr(float(half_width))
        keep_setting(connection, "half_width", kept)
        keep_setting(connection, "enough", "no")
        keep_setting(connection, "next_look", "0")
        append_setting(transaction, "half_width", kept)
    return look(study)
