"""All rounds in one call, where labels come from a callable: OPT-A1 and OPT-A2 of Kumar & Raj (2016)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stratal.arrays import AnyArray
from stratal.designs import Stratified
from stratal.designs.sample import Sample
from stratal.errors import BudgetError, InputError, names_mistyped
from stratal.planning.rounds import next_round
from stratal.population.population import require_population
from stratal.strata import Strata, allocate
from stratal.strata.integers import whole_number

if TYPE_CHECKING:
    from stratal.population.population import Population

Oracle = Callable[[AnyArray], Any]
"""Ids (m,) in, their labels (m,) in the same order out."""

PILOTS = ("proportional", "equal")


def first_round(
    population: Population, strata: Strata, size: int, *, seed: int, pilot: str = "proportional"
) -> Sample:
    """Draw the pilot.

    Parameters
    ----------
    population : Population
    strata : Strata
    size : int
        Units; at least two per stratum.
    seed : int
    pilot : {"proportional", "equal"}
        How it is shared; equal is the paper's.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 80 + [0.6] * 20)
    >>> strata = stratal.stratify(population, n_strata=2)
    >>> first_round(population, strata, 10, seed=7).n_h
    array([8, 2])
    """
    require_population(population, "an adaptive draw")
    if pilot not in PILOTS:
        raise InputError("no such pilot", given=repr(pilot), allowed=", ".join(map(repr, PILOTS)))
    return Stratified(strata=strata, allocation=allocate(strata, size, pilot)).draw(population, seed)


@names_mistyped
def opt_a1(
    population: Population,
    strata: Strata,
    budget: int,
    oracle: Oracle,
    *,
    seed: int,
    initial: int | None = None,
    pilot: str = "proportional",
    allocation_of: str = "total",
    deviations: str = "recalibrated",
) -> tuple[Sample, dict[Any, Any]]:
    """Label a pilot, estimate S_h, and spend the rest of the budget by Neyman's rule: two rounds.

    Parameters
    ----------
    population : Population
    strata : Strata
    budget : int
        Labels in all.
    oracle : callable
        Takes the ids (m,) of units and returns their labels (m,).
    seed : int
    initial : int, optional
        n_ini: labels of the pilot per stratum on average; half the budget if left out.
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
    >>> strata = stratal.stratify(population, n_strata=2)
    >>> sample, labels = opt_a1(population, strata, 20, lambda ids: ids % 2, seed=7)
    >>> sample.size, len(labels)
    (20, 20)
    """
    size = _pilot_size(strata, budget, initial)
    sample = first_round(population, strata, size, seed=seed, pilot=pilot)
    return _finish(sample, oracle, budget, budget, allocation_of=allocation_of, deviations=deviations)


@names_mistyped
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
    """Label a small pilot, then step by step, S_h estimated again after each.

    Parameters
    ----------
    step : int
        n_step: labels of each round.
    initial : int, optional
        n_ini: labels of the pilot per stratum on average.
    population, strata, budget, oracle, seed, pilot, allocation_of, deviations
        As in `opt_a1`.

    Notes
    -----
    With `deviations="raw"`, the paper's, it loses to one proportional round wherever a stratum's first labels
    may agree by chance: in mean squared error up to 12 times for counts of which 8 % are not zero, and it
    gains from more labels no more (benchmarks/results/unbounded_rounds.md). Recalibrated ones lose 1.07
    times at most there, where the proxy says nothing; two rounds (`opt_a1`) 1.05.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 80 + [0.6] * 20)
    >>> strata = stratal.stratify(population, n_strata=2)
    >>> sample, labels = opt_a2(population, strata, 40, lambda ids: ids % 2, seed=7, step=10)
    >>> int(sample.round.max()), len(labels)
    (4, 40)
    """
    size = _pilot_size(strata, budget, initial)
    sample = first_round(population, strata, size, seed=seed, pilot=pilot)
    chunk = max(whole_number("step", step), 1)
    return _finish(sample, oracle, budget, chunk, allocation_of=allocation_of, deviations=deviations)


def _pilot_size(strata: Strata, budget: int, initial: int | None) -> int:
    total = whole_number("budget", budget)
    if initial is None:
        return max(total // 2, 2 * strata.n_strata)
    size = whole_number("initial", initial) * strata.n_strata
    if size > total:
        raise BudgetError(
            "the pilot alone exceeds the budget",
            given=f"{size} for {strata.n_strata} strata",
            allowed=f"up to {total}",
        )
    return size


def _finish(
    sample: Sample, oracle: Oracle, budget: int, step: int, **options: str
) -> tuple[Sample, dict[Any, Any]]:
    """Return sample and labels after as many rounds of `step` as the budget allows, the last one smaller."""
    labels = _answers(oracle, sample.ids)
    while sample.size < budget:
        drawn = sample.size
        sample = next_round(sample, labels, additional=min(step, budget - drawn), **options)  # type: ignore[arg-type]
        labels |= _answers(oracle, sample.ids[drawn:])
    return sample, labels


def _answers(oracle: Oracle, ids: AnyArray) -> dict[Any, Any]:
    values = list(oracle(ids))
    if len(values) != len(ids):
        raise InputError(
            "the oracle must return one label per id",
            given=f"{len(values)} for {len(ids)}",
            action="Return an array of the ids' length, in their order.",
        )
    return dict(zip(ids.tolist(), values, strict=True))
