"""How a design's draw becomes a `Sample`: what of the population goes along with the units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stratal.arrays import AnyArray, FloatArray
from stratal.designs.sample import Design, Sample
from stratal.population.population import Population
from stratal.population.rules.rule import Everything
from stratal.population.summary import Drawn, StratumSummary


def sample_of(
    design: Design,
    population: Population,
    seed: int,
    drawn: Drawn,
    probabilities: FloatArray,
    summary: StratumSummary | None = None,
    *,
    digested: bool = True,
) -> Sample:
    """Return the sample of units (n,) that were drawn with these inclusion probabilities (n,).

    There is one stratum, everything, unless a summary of several is given.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9, 0.7])
    >>> stratal.Poisson(probability=0.5).draw(population, seed=7).stratum
    array([0, 0, 0])
    """
    return Sample(
        ids=drawn.ids,
        stratum=drawn.stratum,
        inclusion_probability=probabilities,
        proxies=drawn.proxies,
        proxy_info=population.proxies,
        groups=drawn.groups,
        shown=drawn.shown,
        predicted=population.predicted,
        totals=_totals(population, drawn.groups),
        **_outcome(population),
        id_name=population.id_name,
        summary=population.summarise(Everything()) if summary is None else summary,
        design=design,
        seed=seed,
        population=population,
        digest=population.digest_of_draw(seed) if digested else None,
    )


_MOST_LEVELS = 200
"""Groups with more levels are no classes to weigh by; their totals are not kept."""


def _totals(population: Population, groups: Mapping[str, AnyArray]) -> dict[str, dict[str, int]]:
    """Return the units of each level of the groups that the drawn units show few levels of."""
    few = [name for name, column in groups.items() if len(set(column.tolist())) <= _MOST_LEVELS]
    found = {name: population.levels(name) for name in few}
    return {name: levels for name, levels in found.items() if len(levels) <= _MOST_LEVELS}


def _outcome(population: Population) -> dict[str, Any]:
    """Return the outcome's kind and bounds as far as the population tells them."""
    scaled = [info for info in population.proxies if info.scaled]
    if population.predicted is not None and not scaled:
        return {"outcome": "binary"}
    if not scaled:
        return {}
    bounds = next((info.bounds for info in scaled if info.bounds is not None), None)
    return {"outcome": "unbounded"} if bounds is None else {"outcome": "bounded", "bounds": bounds}
