"""One cell: all budgets, estimators and intervals of one design, its replicates drawn in batches."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np

from stratal import __version__
from stratal.allocation import allocate
from stratal.arrays import FloatArray, IntArray
from stratal.errors import BudgetError
from stratal.simulation import formulas
from stratal.simulation.adaptive_rounds import adaptive_sums
from stratal.simulation.draws import Draws, OrderedUnits, Urns
from stratal.simulation.ranges import replicate_intervals
from stratal.simulation.replicates import Layout, replicate_means
from stratal.simulation.settings import Settings
from stratal.simulation.simulated_design import SimulatedDesign
from stratal.simulation.summary import Yardstick, summarise, summarise_interval
from stratal.simulation.sums import StratumSums
from stratal.simulation.truth import Truth
from stratal.strata import Strata

_CACHE_NUMBERS = 1 << 17
"""Numbers per array in a batch of ordered units: about a megabyte, to stay in the cache."""

_URN_BATCH = 1 << 13

Collected = dict[tuple[int, str, str], list[FloatArray]]
"""(budget, estimator, what) → batches of replicates."""


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


def run_cell(
    design: SimulatedDesign, strata: Strata, truth: Truth, settings: Settings, key: str
) -> list[dict[str, Any]]:
    """Return the rows of one cell; its random numbers follow from (seed, key) alone.

    Parameters
    ----------
    design : SimulatedDesign
    strata : Strata
    truth : Truth
    settings : Settings
    key : str
        From `cell_key`.
    """
    counts = None if design.adaptive else fixed_counts(design, strata, truth, settings.budgets)
    collected: Collected = {}
    for batch in _batches(design, strata, truth, settings, counts, key):
        for budget, sums in zip(settings.budgets, batch, strict=True):
            layout = Layout.of(
                truth.sizes,
                truth.proxy_variances,
                sums.counts,
                with_replacement=settings.with_replacement,
                looked=design.adaptive,
            )
            _collect(collected, budget, sums, layout, truth, settings)
    return rows_of(design, collected, counts, truth, settings)


def rows_of(
    design: SimulatedDesign,
    collected: Collected,
    counts: list[IntArray] | None,
    truth: Truth,
    settings: Settings,
) -> list[dict[str, Any]]:
    """Return the rows of a cell from what its replicates gave.

    Parameters
    ----------
    design : SimulatedDesign
    collected : dict of (budget, estimator, what) to batches of replicates
    counts : list of int (H,), optional
        n_h at each budget, where they are fixed.
    truth : Truth
    settings : Settings
    """
    rows = []
    for number, budget in enumerate(settings.budgets):
        n_h = None if counts is None else counts[number]
        for estimator in settings.estimators:
            values = np.concatenate(collected[budget, estimator, "values"])
            variances = np.concatenate(collected[budget, estimator, "variances"])
            shared = {
                "design": design.name,
                "estimator": estimator,
                "budget": budget,
                "replicates": settings.replicates,
                "n_strata": len(truth.sizes),
                "truth": truth.value,
                **summarise(values, variances, _yardstick(budget, estimator, n_h, truth, settings)),
            }
            for interval in settings.intervals:
                low = np.concatenate(collected[budget, estimator, f"{interval} low"])
                high = np.concatenate(collected[budget, estimator, f"{interval} high"])
                found = summarise_interval(low, high, truth.value)
                rows.append({**shared, "interval": interval, **found})
            if not settings.intervals:
                rows.append({**shared, "interval": "", **_NO_INTERVAL})
    return rows


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


_NO_INTERVAL = dict.fromkeys(
    ("coverage", "coverage_se", "width", "width_se", "width_16", "width_84"), float("nan")
)


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


def _batches(
    design: SimulatedDesign,
    strata: Strata,
    truth: Truth,
    settings: Settings,
    counts: list[IntArray] | None,
    key: str,
) -> Iterator[list[StratumSums]]:
    """Yield batches of replicates, each as its sums at every budget."""
    rng = np.random.Generator(np.random.SFC64(seeds_of(settings, key)))
    limits = _limits(design, strata, settings, counts)
    urns = truth.binary and settings.counts_suffice and _growing(counts)
    size = _URN_BATCH if urns else max(_CACHE_NUMBERS // max(int(limits.max()), 1), 64)
    for start in range(0, settings.replicates, size):
        rows = min(size, settings.replicates - start)

        def draws(rows: int = rows) -> Draws:
            if urns:
                return Urns(truth, rows, rng, with_replacement=settings.with_replacement)
            return OrderedUnits(
                truth,
                limits,
                rows,
                rng,
                with_replacement=settings.with_replacement,
                thirds=settings.thirds,
                fourths=counts is None and not truth.binary,
            )

        if counts is None:
            once = draws()
            # Units in random order can be looked up again for every budget; urns are filled anew.
            again = draws if urns else lambda once=once: once
            yield list(adaptive_sums(design, strata, truth, settings.budgets, again))
        else:
            nested = draws()
            yield [nested.sums(n_h) for n_h in counts]


def _limits(
    design: SimulatedDesign, strata: Strata, settings: Settings, counts: list[IntArray] | None
) -> IntArray:
    if counts is not None:
        return np.asarray(np.max(counts, axis=0))
    return np.minimum(strata.sizes, max(settings.budgets))


def _growing(counts: list[IntArray] | None) -> bool:
    """Whether no stratum loses a label when the budget grows, so that urns can be emptied in order."""
    return counts is None or all(np.all(b >= a) for a, b in pairwise(counts))


def _collect(
    collected: Collected,
    budget: int,
    sums: StratumSums,
    layout: Layout,
    truth: Truth,
    settings: Settings,
) -> None:
    for estimator in settings.estimators:
        found = replicate_means(
            sums,
            truth,
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
        ranges = replicate_intervals(found, sums, layout, truth, settings)
        for interval, (low, high) in ranges.items():
            parts[f"{interval} low"], parts[f"{interval} high"] = low, high
        for name, part in parts.items():
            collected.setdefault((budget, estimator, name), []).append(part)


def _yardstick(
    budget: int, estimator: str, n_h: IntArray | None, truth: Truth, settings: Settings
) -> Yardstick:
    spread, size = truth.population_variance, truth.size
    replacing = settings.with_replacement
    whole = formulas.stratified(
        np.array([size]), np.array([spread]), np.array([budget]), with_replacement=replacing
    )
    closed = float("nan")
    fixed = {"horvitz-thompson": 0.0, "hajek": 0.0, "difference": 1.0}
    if n_h is not None and estimator in fixed:
        closed = formulas.stratified(
            truth.sizes, truth.residual_variances(fixed[estimator]), n_h, with_replacement=replacing
        )
    return Yardstick(
        truth=truth.value,
        random_variance=whole,
        population_variance=spread,
        size=size,
        closed_form=closed,
        target_variance=spread / budget if settings.target == "superpopulation" else None,
    )
