"""A larger draw of the same seed, with the units of an earlier sample in front."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stratal.arrays import IntArray
from stratal.designs.asked import require_design, require_sample
from stratal.designs.same_population import require_same_population
from stratal.designs.sample import Design, Sample
from stratal.errors import InputError, names_mistyped
from stratal.population.population import Population
from stratal.randomness import id_texts


@names_mistyped
def extend(sample: Sample, design: Design, population: Population | None = None) -> Sample:
    """Draw a larger design with the sample's seed, keeping every unit that was drawn.

    No label is looked at, so nothing is biased. `next_round` chooses the larger design by the labels so far.

    Parameters
    ----------
    sample : Sample
    design : Design
        Of any nested kind: a larger budget, more clusters, a larger allocation in the same strata.
    population : Population, optional
        The one that the sample was drawn from; needed if the sample came from a file.

    Returns
    -------
    Sample
        Earlier units first, in their order, then the new ones; `round` tells them apart.

    Raises
    ------
    InputError
        If the design does not draw every unit of the sample: another population, a design that is not
        nested, or a smaller one. Also if no population is at hand.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9, 0.7, 0.6])
    >>> sample = stratal.ProportionalToSize(budget=2).draw(population, seed=7)
    >>> extend(sample, stratal.ProportionalToSize(budget=4)).round
    array([1, 1, 2, 2])
    """
    where = population_of(require_sample(sample, "extend"), population)
    larger = require_design(design, "extend").draw(where, sample.seed)
    order = _earlier_first(sample, larger)
    lost = [name for name in (*sample.groups, *sample.shown) if name not in {*larger.groups, *larger.shown}]
    if lost:
        raise InputError(
            f"the population lacks column {lost[0]!r} of the sample",
            allowed=", ".join((*sample.groups, *sample.shown)),
            action="Name it again in groups= or show=, as when the sample was drawn.",
        )
    rounds = np.full(larger.size, last_round(sample) + 1)
    rounds[: sample.size] = sample.round
    return replace(
        larger,
        ids=larger.ids[order],
        stratum=larger.stratum[order],
        inclusion_probability=larger.inclusion_probability[order],
        proxies=larger.proxies[order],
        groups={name: values[order] for name, values in larger.groups.items()},
        shown={name: values[order] for name, values in larger.shown.items()},
        round=rounds,
        outcome=sample.outcome,
        bounds=sample.bounds,
        estimand=sample.estimand,
        half_width=sample.half_width,
    )


def population_of(sample: Sample, population: Population | None) -> Population:
    """Return where to draw from: the sample's own population, or a given one that is the same.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5])
    >>> population_of(stratal.SimpleRandom(budget=1).draw(population, seed=7), None) is population
    True
    """
    where = sample.population if population is None else population
    if where is None:
        raise InputError(
            "this sample does not hold the population that it was drawn from",
            action="Give population=, the one that it was drawn from.",
        )
    return require_same_population(sample, where)


def refuse_other_designs(sample: Sample) -> None:
    """Refuse a sample of a design that has no next round.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5])
    >>> refuse_other_designs(stratal.SimpleRandom(budget=1).draw(population, seed=7))
    """
    kind = sample.design.kind
    if kind not in _EXTENDED_BY_LABELS:
        raise InputError(
            f"a sample of design '{kind}' has no next round",
            allowed="simple-random, stratified",
            action="A larger systematic sample is another draw."
            if kind == "systematic"
            else "Extend it without looking at labels: extend(sample, the same design with a larger budget).",
        )


_EXTENDED_BY_LABELS = ("simple-random", "stratified")


def last_round(sample: Sample) -> int:
    """Return the number of the sample's last round.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5])
    >>> last_round(stratal.SimpleRandom(budget=1).draw(population, seed=7))
    1
    """
    return 1 if sample.round is None or sample.size == 0 else int(sample.round.max())


def _earlier_first(sample: Sample, larger: Sample) -> IntArray:
    """Return positions (n,) in the larger sample: the earlier units in their order, then the others."""
    position = {text: row for row, text in enumerate(id_texts(larger.ids))}
    earlier = [position.get(text, -1) for text in id_texts(sample.ids)]
    if -1 in earlier:
        missing = id_texts(sample.ids)[earlier.index(-1)]
        raise InputError(
            f"unit '{missing}' of the sample is not drawn again",
            given=f"design '{larger.design.kind}', {larger.size} units, seed {sample.seed}",
            allowed="a larger design of a nested kind, from the same population",
            action="Give the population that the sample was drawn from, unchanged.",
        )
    rest = np.setdiff1d(np.arange(larger.size), earlier)
    return np.concatenate([np.array(earlier, dtype=np.int64), rest])
