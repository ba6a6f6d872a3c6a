"""Cells: all budgets, estimators and intervals of one design, the replicates of a mean drawn in batches."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from itertools import pairwise

import numpy as np

from stratal import __version__
from stratal.arrays import IntArray
from stratal.errors import BudgetError, InputError
from stratal.estimation.mean import default_estimator
from stratal.simulation import formulas
from stratal.simulation.adaptive_rounds import adaptive_sums
from stratal.simulation.drawn import drawn_replicates
from stratal.simulation.draws import Draws, OrderedUnits, StratumSums, Urns
from stratal.simulation.replicates import Layout, replicate_intervals, replicate_means
from stratal.simulation.simulated_design import FIXED_LAM, PLANS, Settings, SimulatedDesign, SimulationTask
from stratal.simulation.summary import Collected, Row, Yardstick, rows_of
from stratal.simulation.truth import Truth
from stratal.strata import Strata, allocate, stratify

_CACHE_NUMBERS = 1 << 17
"""Numbers per array in a batch of ordered units: about a megabyte, to stay in the cache."""

_URN_BATCH = 1 << 13


def cell_key(fingerprint: str, design: SimulatedDesign, settings: Settings) -> str:
    """Return the key of a cell: a digest of all that its rows depend on, this version included.

    Examples
    --------
    >>> settings = Settings(estimators=("difference",), intervals=(), budgets=(50,), replicates=9, seed=7)
    >>> len(cell_key("data", SimulatedDesign(), settings))
    32
    """
    parts = json.dumps([__version__, fingerprint, design.to_dict(), asdict(settings)], sort_keys=True)
    return hashlib.sha256(parts.encode()).hexdigest()[:32]


def cells(task: SimulationTask) -> Iterator[tuple[str, list[Row]]]:
    """Yield the key and the rows of each design's cell.

    Random numbers of sums follow from (seed, key) alone; designs drawn one by one share their seeds.
    """
    first, settings = task.designs[0], task.settings
    strata = stratify(
        task.population,
        first.stratification or "none",
        first.n_strata,
        by=first.by,
        proxy=first.proxy,
    )
    if strata.codes is None and strata.n_strata > 1:
        raise InputError("a simulation needs its population in memory", action="Use Population.from_arrays.")
    truth = None
    if task.z is not None:
        codes = np.zeros(len(task.z), dtype=np.int64) if strata.codes is None else strata.codes
        binary = bool(np.all((task.z == 0) | (task.z == 1)))
        needed = not (binary and settings.counts_suffice)
        truth = Truth.of(task.z, task.proxy, codes, strata.n_strata, units=needed)
    for design, key in zip(task.designs, task.keys, strict=True):
        counts = None
        if truth is None or design.mechanism is not None:
            found = drawn_replicates(design, strata, task)
        else:
            if not design.adaptive:
                counts = fixed_counts(design, strata, truth, settings.budgets)
            found = summed_replicates(design, strata, truth, task, counts, seeds_of(settings, key))
        measured = partial(_yardstick, task, truth, counts)
        n_strata = 0 if design.mechanism in PLANS else strata.n_strata
        yield key, rows_of(design.name, n_strata, found, settings, measured)


def summed_replicates(
    design: SimulatedDesign,
    strata: Strata,
    truth: Truth,
    task: SimulationTask,
    counts: list[IntArray] | None,
    seeds: np.random.SeedSequence,
) -> Collected:
    """Return what the replicates of a mean give, from sums per stratum, thousands at once.

    Parameters
    ----------
    design : SimulatedDesign
    strata : Strata
    truth : Truth
    task : SimulationTask
    counts : list of int (H,), optional
        n_h at each budget, where they are fixed.
    seeds : numpy.random.SeedSequence
    """
    rng, settings = np.random.Generator(np.random.SFC64(seeds)), task.settings
    most = np.minimum(strata.sizes, max(settings.budgets)) if counts is None else np.max(counts, axis=0)
    # Urns are emptied in order, so that no stratum may lose a label when the budget grows.
    growing = counts is None or all(np.all(b >= a) for a, b in pairwise(counts))
    urns = truth.binary and settings.counts_suffice and growing
    size = _URN_BATCH if urns else max(_CACHE_NUMBERS // max(int(most.max()), 1), 64)

    def draws(rows: int) -> Draws:
        if urns:
            return Urns(truth, rows, rng, with_replacement=settings.with_replacement)
        return OrderedUnits(
            truth,
            most,
            rows,
            rng,
            with_replacement=settings.with_replacement,
            thirds=settings.thirds,
            fourths=counts is None and not truth.binary,
        )

    collected: Collected = {}
    for start in range(0, settings.replicates, size):
        rows = min(size, settings.replicates - start)
        once = draws(rows)
        if counts is None:
            # Units in random order can be looked up again for every budget; urns are filled anew.
            again = partial(draws, rows) if urns else once.branch
            batch = adaptive_sums(design, strata, truth, settings.budgets, again)
        else:
            batch = map(once.sums, counts)
        for budget, sums in zip(settings.budgets, batch, strict=True):
            layout = Layout(
                truth=truth,
                counts=sums.counts,
                with_replacement=settings.with_replacement,
                looked=design.adaptive,
            )
            named = {name: _resolved(name, budget, strata.n_strata, task) for name in settings.estimators}
            _collect(collected, budget, sums, layout, settings, named)
    return collected


def seeds_of(settings: Settings, key: str) -> np.random.SeedSequence:
    """Return where a cell's random numbers come from: the seed and the cell's key.

    Examples
    --------
    >>> settings = Settings(estimators=("difference",), intervals=(), budgets=(50,), replicates=9, seed=7)
    >>> seeds_of(settings, "0" * 32).entropy
    7
    """
    words = tuple(int(key[i : i + 8], 16) for i in range(0, len(key), 8))
    return np.random.SeedSequence(settings.seed, spawn_key=words)


def fixed_counts(
    design: SimulatedDesign, strata: Strata, truth: Truth, budgets: tuple[int, ...]
) -> list[IntArray]:
    """Return n_h (H,) at each budget of a design that does not look at labels."""
    result = []
    for budget in budgets:
        if budget > strata.size:
            raise BudgetError("the budget is above the population", given=budget, allowed=f"to {strata.size}")
        if strata.n_strata == 1:
            result.append(np.array([budget]))
        elif design.allocation == "oracle":
            found = allocate(
                strata, budget, "neyman", design.minimum, standard_deviations=np.sqrt(truth.variances)
            )
            result.append(np.asarray(found.n_h))
        else:
            result.append(np.asarray(allocate(strata, budget, design.allocation, design.minimum).n_h))
    return result


def _resolved(estimator: str, budget: int, n_strata: int, task: SimulationTask) -> str:
    """Return the estimator that `auto` stands for, as `stratal.estimate` has it, or the one that is named."""
    if estimator != "auto":
        return estimator
    design = "simple-random" if n_strata == 1 else "stratified"
    scaled = task.proxy is not None and task.population.proxy_info(task.proxy_name).scaled
    return default_estimator(design, budget, n_strata, int(task.proxy is not None), scaled=scaled)


def _collect(
    collected: Collected,
    budget: int,
    sums: StratumSums,
    layout: Layout,
    settings: Settings,
    named: Mapping[str, str],
) -> None:
    for given, estimator in named.items():
        found = replicate_means(
            sums,
            layout,
            estimator,
            target=settings.target,
            stratum_weights_known=settings.stratum_weights_known,
            bounds=settings.bounds,
        )
        values = found.values
        if settings.bounds is not None and not estimator.startswith("published-"):
            values = np.clip(values, *settings.bounds)
        parts = {"values": values, "variances": found.variances}
        ranges = replicate_intervals(found, settings)
        for interval, (low, high) in ranges.items():
            parts[f"{interval} low"], parts[f"{interval} high"] = low, high
        for name, part in parts.items():
            collected.setdefault((budget, given, name), []).append(part)


def _yardstick(
    task: SimulationTask, truth: Truth | None, counts: list[IntArray] | None, budget: int, estimator: str
) -> Yardstick:
    if truth is None:
        return Yardstick(truth=task.value)
    settings, spread, size = task.settings, truth.population_variance, truth.size
    replacing = settings.with_replacement
    whole = formulas.stratified(
        np.array([size]), np.array([spread]), np.array([budget]), with_replacement=replacing
    )
    closed = float("nan")
    if counts is not None and estimator in FIXED_LAM:
        n_h, left = counts[settings.budgets.index(budget)], truth.residual_variances(FIXED_LAM[estimator])
        closed = formulas.stratified(truth.sizes, left, n_h, with_replacement=replacing)
    return Yardstick(
        truth=truth.value,
        random_variance=whole,
        population_variance=spread,
        size=size,
        closed_form=closed,
        target_variance=spread / budget if settings.target == "superpopulation" else None,
    )
