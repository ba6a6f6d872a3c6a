"""`simulate`: what each design and estimator would give on a population whose outcomes are all known."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stratal.arrays import FloatArray, finite_vector
from stratal.errors import InputError, names_mistyped
from stratal.estimation.estimand import Asked, as_estimand
from stratal.population.population import require_population
from stratal.randomness import check_seed
from stratal.simulation.back_ends import check_workers, completed
from stratal.simulation.cell import cell_key, rows_of, run_cell, seeds_of
from stratal.simulation.cell_store import CellStore
from stratal.simulation.drawn import collect_drawn
from stratal.simulation.estimand_runs import estimand_table
from stratal.simulation.settings import Settings, check_settings, several
from stratal.simulation.simulated_design import SimulatedDesign
from stratal.simulation.simulation_table import SimulationTable
from stratal.simulation.truth import Truth
from stratal.strata import stratify

if TYPE_CHECKING:
    from stratal.population.population import Population

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Task:
    """Designs with the same strata: the unit of work that goes to one process."""

    population: Population
    z: FloatArray
    proxy: FloatArray | None
    proxy_name: str | None
    designs: tuple[SimulatedDesign, ...]
    keys: tuple[str, ...]
    settings: Settings


@names_mistyped
def simulate(
    population: Population,
    outcome: Any,
    *,
    designs: Sequence[str | SimulatedDesign],
    estimators: Sequence[str] = ("horvitz-thompson",),
    intervals: Sequence[str] = ("auto",),
    budgets: Iterable[int],
    replicates: int = 3000,
    seed: int = 0,
    proxy: str | None = None,
    confidence_level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    target: str = "population",
    stratum_weights_known: bool = True,
    with_replacement: bool = False,
    workers: Any = 1,
    store: str | Path | None = None,
    progress: Progress | None = None,
    estimand: Asked = None,
) -> SimulationTable:
    """Draw thousands of samples from a fully labelled population and measure every design and estimator.

    Parameters
    ----------
    population : Population
        N units in memory, with proxies.
    outcome : array-like (N,)
        The outcome of every unit.
    designs : sequence of str or SimulatedDesign, or one of them
        `simple-random`, or `stratification:n_strata:allocation[:pilot[:step]]`: `k-means:10:robust`,
        `neyman:10:oracle`, `k-means:10:two-round`, `equal-size:6:opt-a2:5:10`. Or `poisson`,
        `proportional-to-size`, `systematic`, which are drawn one by one and take a millisecond each.
    estimators : sequence of str
        `horvitz-thompson`, `hajek`, `difference`, `ppi++`, `stratppi`, and the papers' own
        `published-ppi++` and `published-stratppi`.
    intervals : sequence of str
        `auto`, `t`, `normal`, `clopper-pearson`, `wilson`, `logit`, `blaker`, `skewness-corrected` (without
        bounds), `published`; none is allowed.
    budgets : iterable of int
        Labels in all. Draws are nested: one run to the largest serves every budget.
    replicates : int
        Draws of each design.
    seed : int
        The same seed gives the same table, whatever the number of workers and the other designs.
    proxy : str, optional
        The proxy that enters the estimators; a design's own, or the population's first, unless named.
    confidence_level : float
    bounds : (float, float), optional
        What the outcome cannot leave; 0 and 1 if all outcomes are 0 or 1.
    target : {"population", "superpopulation"}
        Which variance is estimated. Errors and coverage are against the population's mean.
    stratum_weights_known : bool
        For the superpopulation: whether the W_h are known, as [S] has it, or drawn with the N units.
    with_replacement : bool
        Draw with replacement, as [K] assumes.
    workers : int, None or pyspark.sql.SparkSession
        Processes (joblib). None leaves it to `joblib.parallel_config`, whose Dask and Ray back ends work
        unchanged. With a Spark session each set of strata is a task of that Spark, on whose workers stratal
        must be installed.
    store : path, optional
        Parquet file of finished cells. A run that was killed goes on from it.
    progress : callable, optional
        Called with (cells finished, cells in all).
    estimand : Estimand or str, optional
        Another quantity than the mean, such as `F1("match")` (see `stratal.estimands`). `outcome` is then
        every unit's label as annotators would give it, and `designs` are `simple-random`, `planned` and
        `two-round`: a simple random sample, a plan for the estimand, half of it as a pilot first. They are
        drawn one by one, so that some hundred replicates will do; estimators, intervals and other options of
        means have no effect.

    Returns
    -------
    SimulationTable
        One row per design, estimator, interval and budget, each figure with its Monte Carlo standard error.

    Raises
    ------
    InputError
        For unknown designs, estimators or intervals, and outcomes that do not fit the population.
    BudgetError
        If a budget is below what a design needs, or above N.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.2] * 500 + [0.9] * 500)
    >>> z = ([0.0] * 4 + [1.0]) * 100 + ([1.0] * 9 + [0.0]) * 50
    >>> table = simulate(
    ...     population, z, designs=["simple-random", "k-means:2:proportional"], budgets=[50], seed=7)
    >>> [round(float(value), 1) for value in table["relative_efficiency"]]
    [1.0, 2.0]
    """
    check_workers(workers)
    require_population(population, "simulate")
    planned = "planned" in several(designs) or "two-round" in several(designs)
    if (asked := as_estimand(estimand)) is not None and (asked.kind != "mean" or planned):
        return estimand_table(asked, locals())
    z = finite_vector("outcome", outcome)
    if len(z) != population.size:
        raise InputError("there must be one outcome per unit", given=len(z), allowed=f"{population.size}")
    chosen = tuple(SimulatedDesign.parse(d) if isinstance(d, str) else d for d in several(designs))
    if not chosen or len({design.name for design in chosen}) < len(chosen):
        raise InputError("designs must be given, each once", allowed="one or more, none of them twice")
    if bounds is None and np.all((z == 0) | (z == 1)):
        bounds = (0.0, 1.0)
    settings = Settings(
        estimators=several(estimators),
        intervals=several(intervals),
        budgets=tuple(sorted({int(budget) for budget in budgets})),
        replicates=int(replicates),
        seed=check_seed(seed),
        confidence_level=confidence_level,
        target=target,
        stratum_weights_known=stratum_weights_known,
        bounds=bounds,
        with_replacement=with_replacement,
    )
    check_settings(settings, population.size)
    with CellStore(store) as finished:
        tasks, keys = _tasks(population, z, chosen, settings, proxy, finished)
        total = len(chosen)
        done = total - sum(len(task.designs) for task in tasks)
        if progress is not None:
            progress(done, total)
        for key, rows in completed(_cells, tasks, workers):
            finished.add(key, rows)
            done += 1
            if progress is not None:
                progress(done, total)
    return SimulationTable.from_rows(row for key in keys for row in finished.get(key) or [])


def _tasks(
    population: Population,
    z: FloatArray,
    designs: tuple[SimulatedDesign, ...],
    settings: Settings,
    proxy: str | None,
    finished: CellStore,
) -> tuple[list[_Task], list[str]]:
    """Return the work that is left, grouped by strata, and the keys of all cells in the designs' order."""
    columns: dict[str | None, FloatArray | None] = {}
    keys: list[str] = []
    groups: dict[Any, list[tuple[SimulatedDesign, str]]] = {}
    for design in designs:
        name = proxy or design.proxy
        if name not in columns:
            columns[name] = _proxy_values(population, name)
        key = cell_key(_fingerprint(z, columns[name], population, design), design, settings)
        keys.append(key)
        if finished.get(key) is None:
            groups.setdefault((design.strata_key, name), []).append((design, key))
    tasks = [
        _Task(
            population=population,
            z=z,
            proxy=columns[name],
            proxy_name=name,
            designs=tuple(design for design, _ in members),
            keys=tuple(key for _, key in members),
            settings=settings,
        )
        for (_, name), members in groups.items()
    ]
    return tasks, keys


def _proxy_values(population: Population, name: str | None) -> FloatArray | None:
    if not population.proxies:
        return None
    column = population.proxy_info(name).name
    return np.concatenate([np.asarray(part[column]) for part in population.batches((column,))])


def _fingerprint(
    z: FloatArray, proxy: FloatArray | None, population: Population, design: SimulatedDesign
) -> str:
    """Return a digest of the data that a design sees."""
    digest = hashlib.sha256(z.tobytes())
    if proxy is not None:
        digest.update(np.ascontiguousarray(proxy).tobytes())
    others = [design.proxy] if design.proxy else []
    others += [design.by] if design.by else []
    others += list(population.feature_names) if design.stratification == "features" else []
    for column in others:
        for part in population.batches((column,)):
            digest.update("\x1f".join(map(str, part[column].tolist())).encode())
    return digest.hexdigest()


def _cells(task: _Task) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    first = task.designs[0]
    strata = stratify(
        task.population,
        first.stratification or "none",
        first.n_strata,
        by=first.by,
        proxy=first.proxy,
    )
    if strata.codes is None and strata.n_strata > 1:
        raise InputError("a simulation needs its population in memory", action="Use Population.from_arrays.")
    codes = np.zeros(len(task.z), dtype=np.int64) if strata.codes is None else strata.codes
    binary = bool(np.all((task.z == 0) | (task.z == 1)))
    needed = not (binary and task.settings.counts_suffice)
    truth = Truth.of(task.z, task.proxy, codes, strata.n_strata, units=needed)
    for design, key in zip(task.designs, task.keys, strict=True):
        if design.mechanism is None:
            yield key, run_cell(design, strata, truth, task.settings, key)
        else:
            seeds = seeds_of(task.settings, key)
            found = collect_drawn(
                design, task.population, task.z, task.settings, seeds, task.proxy_name or first.proxy
            )
            yield key, rows_of(design, found, None, truth, task.settings)
