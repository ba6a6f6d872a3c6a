"""A further round after labels of a table, which were not drawn by `stratal`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from stratal.arrays import IntArray
from stratal.designs import Stratified
from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.planning.entry_points import plan
from stratal.population.population import Population
from stratal.strata import Allocation, Strata, stratify
from stratal.strata.number_of_strata import DEFAULT_STRATA

# Labels of a pilot for each stratum on average, and in every stratum at least, so that it shows a variance.
_MEAN_LABELS = 10
_LEAST_LABELS = 2


def is_labelled_elsewhere(sample: Sample) -> bool:
    """Return whether a sample is the labelled rows of a table, without a round that was drawn from it."""
    return sample.question.chosen is not None and int(sample.round.max(initial=1)) == 1


def sample_of_its_own(
    sample: Sample, labels: object, population: Population, size: int | None, **options: Any
) -> Sample:
    """Return a new sample whose allocation is based on labels that were chosen in an unknown way.

    Their units are in it only if they are drawn, like all others.

    Parameters
    ----------
    size : int, optional
        Units to draw; computed for `half_width` if that is among the options of `plan`.
    """
    planned = plan(population, size, labels=labels, **options)
    drawn = planned.draw(seed=sample.seed)
    # Single units are drawn, whatever groups the labels of the table were in.
    question = replace(sample.question, chosen=None, cluster=None, sample_token=drawn.question.sample_token)
    return replace(drawn, question=question)


def as_pilot(sample: Sample) -> Sample:
    """Return the labelled rows of a table as the first round of a stratified sample.

    A simple random sample is divided into strata of its proxy, as post-stratification does: given the number
    of its units in each, it is a simple random sample of each (Holt & Smith 1979). Without a proxy, or with
    few labels, it stays one stratum.

    Raises
    ------
    InputError
        For a sample of another design, such as clusters.
    """
    design = sample.design
    if design.kind not in ("simple-random", "stratified"):
        raise InputError(
            "a next round is not possible for the labels of this table",
            given=f"design {design.kind!r}",
            allowed="labels of rows that were chosen at random, in all or within groups",
            action="Draw a new sample that uses these labels only for the allocation: "
            "chosen='unknown' (--chosen unknown).",
        )
    if design.kind == "stratified" or not sample.proxy_names or sample.population is None:
        return sample
    for count in range(min(DEFAULT_STRATA, sample.size // _MEAN_LABELS), 1, -1):
        strata = stratify(sample.population, n_strata=count)
        codes = _strata_of(sample, strata)
        drawn = np.bincount(codes, minlength=strata.n_strata)
        if strata.n_strata > 1 and np.all(drawn >= np.minimum(_LEAST_LABELS, strata.sizes)):
            return _stratified(sample, strata, codes, drawn)
    return sample


def _strata_of(sample: Sample, strata: Strata) -> IntArray:
    """Return the stratum of each drawn unit (n,)."""
    columns = {name: sample.proxies[:, k] for k, name in enumerate(sample.proxy_names)}
    return np.asarray(strata.rule.assign(columns), dtype=np.int64)


def _stratified(sample: Sample, strata: Strata, codes: IntArray, drawn: IntArray) -> Sample:
    assert sample.population is not None
    allocation = Allocation(
        n_h=drawn,
        method="proportional",
        budget=sample.size,
        minimum=np.zeros_like(drawn),
        maximum=strata.sizes,
        notes=("The first round consists of the labelled rows of a table.",),
    )
    return replace(
        sample,
        stratum=codes,
        inclusion_probability=(drawn / strata.sizes)[codes],
        summary=sample.population.summarise(strata.rule),
        design=Stratified(strata=replace(strata, population=None), allocation=allocation),
    )
