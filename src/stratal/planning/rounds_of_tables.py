"""A further round for a table with labels of some rows, which were not drawn by stratal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from stratal.arrays import IntArray
from stratal.designs import Stratified
from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.estimation.default_estimator import RANDOM_WITHIN_STRATA
from stratal.planning.entry_points import plan
from stratal.population.population import Population
from stratal.strata import Allocation, Strata, stratify
from stratal.strata.number_of_strata import DEFAULT_STRATA

# Smallest average number of labels per stratum in a pilot.
_MIN_MEAN_LABELS = 10

# Smallest number of labels in each stratum, from which its variance can be estimated.
_MIN_LABELS = 2


def is_labelled_elsewhere(sample: Sample) -> bool:
    """Return whether a sample consists only of the labelled rows of a table, without a drawn round."""
    return sample.question.chosen is not None and int(sample.round.max(initial=1)) == 1


def independent_sample(
    sample: Sample, labels: object, population: Population, size: int | None, **options: Any
) -> Sample:
    """Return a new sample, independent of labelled rows that were chosen in an unknown way.

    The labels only inform its allocation. Their units are drawn with the same probabilities as others.

    Parameters
    ----------
    size : int, optional
        Number of units to draw; computed for `half_width` if that is among the options of `plan`.
    """
    planned = plan(population, size, labels=labels, **options)
    drawn = planned.draw(seed=sample.seed)
    # Single units are drawn, even if the rows of the table were drawn in clusters. The token identifies the
    # new sample in files of labels.
    question = replace(sample.question, chosen=None, cluster=None, sample_token=drawn.question.sample_token)
    return replace(drawn, question=question)


def as_pilot(sample: Sample) -> Sample:
    """Return the labelled rows of a table as the first round of a stratified sample.

    A simple random sample is post-stratified by its proxy: given the number of its units in each stratum, it
    is a simple random sample of each (Holt & Smith 1979). Without a proxy or with few labels it has one
    stratum.

    Raises
    ------
    InputError
        For a sample of another design, such as clusters.
    """
    design = sample.design
    if design.kind not in RANDOM_WITHIN_STRATA:
        raise InputError(
            "a next round is not possible for the labels of this table",
            given=f"design {design.kind!r}",
            allowed="labels of rows that were chosen at random, in all or within groups",
            action="Draw a new sample that uses these labels only for the allocation: "
            "chosen='unknown' (--chosen unknown).",
        )
    if design.kind == "stratified" or not sample.proxy_names or sample.population is None:
        return sample
    max_strata = min(DEFAULT_STRATA, sample.size // _MIN_MEAN_LABELS)
    for n_strata in range(max_strata, 1, -1):
        strata = stratify(sample.population, n_strata=n_strata)
        stratum = _stratum_of_units(sample, strata)
        n_h = np.bincount(stratum, minlength=strata.n_strata)
        if strata.n_strata > 1 and np.all(n_h >= np.minimum(_MIN_LABELS, strata.sizes)):
            return _post_stratified(sample, strata, stratum, n_h)
    return sample


def _stratum_of_units(sample: Sample, strata: Strata) -> IntArray:
    """Return the stratum of each drawn unit (n,)."""
    columns = {name: sample.proxies[:, k] for k, name in enumerate(sample.proxy_names)}
    return np.asarray(strata.rule.assign(columns), dtype=np.int64)


def _post_stratified(sample: Sample, strata: Strata, stratum: IntArray, n_h: IntArray) -> Sample:
    """Return the sample with the `stratum` of each unit (n,) and the design of n_h (H,) units."""
    assert sample.population is not None
    # A stored design has no population; the sample has it.
    strata_of_design = replace(strata, population=None)
    allocation = Allocation(
        n_h=n_h,
        method="proportional",
        budget=sample.size,
        minimum=np.zeros_like(n_h),
        maximum=strata.sizes,
        notes=("The first round consists of the labelled rows of a table.",),
    )
    return replace(
        sample,
        stratum=stratum,
        inclusion_probability=(n_h / strata.sizes)[stratum],
        summary=sample.population.summarise(strata.rule),
        design=Stratified(strata=strata_of_design, allocation=allocation),
    )
