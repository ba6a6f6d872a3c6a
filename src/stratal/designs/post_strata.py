"""Post-stratification: a simple random sample weighted afterwards by groups of known sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import AnyArray, BoolArray, IntArray
from stratal.designs.asked import require_sample
from stratal.designs.margins import fit_margins, refuse_other_sizes
from stratal.designs.sample import Design, Sample
from stratal.designs.stratified import SimpleRandom
from stratal.designs.weighting import StratifiedWeighting
from stratal.errors import InputError, names_mistyped, near_names
from stratal.population.population import Population
from stratal.population.rules.rule import Categories
from stratal.population.summary import StratumSummary


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PostStratified(Design):
    """A simple random sample seen as a stratified one, by groups whose sizes are known.

    Parameters
    ----------
    group : str
        The group column.
    levels : tuple of str (H,)
        Its levels.

    Examples
    --------
    >>> Design.from_dict(PostStratified(group="language", levels=("de", "en")).to_dict()).stratum_names
    ('de', 'en')
    """

    kind: ClassVar[str] = "post-stratified"
    group: str
    levels: tuple[str, ...]

    def __post_init__(self) -> None:
        self._set(levels=tuple(self.levels))

    @property
    def stratum_names(self) -> tuple[str, ...]:
        """Names of the levels (H,)."""
        return self.levels

    @property
    def rule(self) -> Categories:
        """The group's levels, in their order."""
        order = np.argsort(np.array(self.levels))
        return Categories(column=self.group, levels=tuple(self.levels[h] for h in order), codes=order)

    def draw(self, population: Population, seed: int) -> Sample:
        """Refuse: the sample is there already."""
        raise InputError(
            "post-stratification weighs a sample that was drawn",
            action="Draw a simple random sample, or strata: stratal.plan(population, …).",
        )

    def weighting(self, sample: Sample, labelled: BoolArray) -> StratifiedWeighting:
        """Return N_h / n_h, given how many units of each group are labelled."""
        return StratifiedWeighting(stratum=sample.stratum[labelled], sizes=sample.summary.sizes)


@names_mistyped
def post_stratify(sample: Sample, by: str, sizes: Mapping[str, int] | None = None) -> Sample:
    """Return a sample weighted by the groups of a column, whose sizes are known.

    All that takes a sample takes it: means, metrics, domains, comparisons. Given the number of units that the
    draw found in each group, they are a simple random sample of the group, so that the groups' shares are the
    population's and not the draw's. Other designs keep theirs, their weights fitted to the sizes: see
    `fit_margins`, which takes several columns.

    Parameters
    ----------
    sample : Sample
        Simple random, or of any other design.
    by : str
        A group column of the sample, such as the language, or the model's answer: precision and recall then
        know how often each class is predicted.
    sizes : mapping of level to N_h, optional
        Units of the population in each level. The sample's own (`totals`) unless given; levels of 0 units
        are left out.

    Returns
    -------
    Sample
        Levels without a drawn unit are estimated from their neighbours, with a warning. Proxies are kept
        where the population is in memory, so that their means within groups are known; otherwise they are
        left out.

    Raises
    ------
    InputError
        For an unknown group, and sizes that do not fit the sample.

    Notes
    -----
    Cochran, "Sampling techniques", 5A.9; Holt & Smith (1979). Choose the groups before looking at labels.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(
    ...     ids=range(100), groups={"language": ["de"] * 80 + ["en"] * 20})
    >>> sample = stratal.SimpleRandom(budget=20).draw(population, seed=7)
    >>> again = stratal.post_stratify(sample, "language")
    >>> again.summary.sizes, again.n_h
    (array([80, 20]), array([19,  1]))
    """
    require_sample(sample, "post_stratify")
    if sizes is not None:
        refuse_other_sizes(sample, by, sizes)
    if not isinstance(sample.design, SimpleRandom):
        return fit_margins(sample, by, totals=None if sizes is None else {by: sizes}, method="regression")
    if by not in sample.groups:
        raise InputError(
            f"no such group column: {by!r}",
            allowed=near_names(by, sample.groups) if sample.groups else "none was drawn along",
            action="Draw with groups=.",
        )
    known = _sizes(sample, by, sizes)
    levels = tuple(sorted(known))
    values = sample.groups[by].astype(np.str_)
    stratum = np.searchsorted(np.array(levels), values).astype(np.int64)
    n_h = np.array([known[level] for level in levels], dtype=np.int64)
    drawn = np.bincount(stratum, minlength=len(levels))
    if np.any(drawn > n_h):
        h = int(np.argmax(drawn > n_h))
        given = f"{n_h[h]}, of which {drawn[h]} were drawn"
        raise InputError(
            f"level {levels[h]!r} of {by!r} has fewer units than were drawn",
            given=given,
            action="Correct its size: the units of the whole population, drawn ones included.",
        )
    summary = _summary(sample, by, levels, n_h)
    kept = summary is not None
    return replace(
        sample,
        stratum=stratum,
        design=PostStratified(group=by, levels=levels),
        summary=summary or _without_proxies(n_h),
        proxies=sample.proxies if kept else np.empty((sample.size, 0)),
        proxy_info=sample.proxy_info if kept else (),
    )


def _sizes(sample: Sample, by: str, sizes: Mapping[str, int] | None) -> dict[str, int]:
    """Return the units of the population in each level, those of the sample's levels among them."""
    given: Mapping[Any, Any] | None = sample.totals.get(by) if sizes is None else sizes
    if given is None:
        raise InputError(
            f"how many units each level of {by!r} has is not known",
            action="Give sizes=, a mapping of level to number of units.",
        )
    found = {str(level): int(count) for level, count in given.items() if count}
    strange = sorted(set(_texts(sample.groups[by])) - set(found))
    if strange:
        raise InputError(
            f"{len(strange)} levels of {by!r} were drawn and have no size (first: {strange[0]!r})",
            allowed=", ".join(map(repr, sorted(found)[:8])),
        )
    if sum(found.values()) != sample.population_size:
        raise InputError(
            f"the sizes of {by!r} do not add up to the population",
            given=f"{sum(found.values()):,} units",
            allowed=f"{sample.population_size:,}",
        )
    return found


def _texts(values: AnyArray) -> list[str]:
    return [str(value) for value in values.tolist()]


def _summary(sample: Sample, by: str, levels: tuple[str, ...], sizes: IntArray) -> StratumSummary | None:
    """Return the proxies' moments within the levels, None where they cannot be counted."""
    population = sample.population
    if population is None or not sample.proxy_info or by not in population.group_names:
        return None
    found = population.summarise(Categories(column=by, levels=levels, codes=np.arange(len(levels))))
    return found if np.array_equal(found.sizes, sizes) else None


def _without_proxies(sizes: IntArray) -> StratumSummary:
    n_strata = len(sizes)
    return StratumSummary(
        sizes=sizes, proxy_means=np.empty((n_strata, 0)), proxy_covariances=np.empty((n_strata, 0, 0))
    )
