"""`simulate`: what each design and estimator would give on a population whose outcomes are all known."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError, MissingExtraError, names_mistyped
from stratal.estimation.estimand import Asked, Estimand, as_estimand
from stratal.population.population import require_population
from stratal.randomness import check_seed
from stratal.simulation.cell import cell_key, cells
from stratal.simulation.draws import census_value
from stratal.simulation.simulated_design import (
    PLANS,
    Settings,
    SimulatedDesign,
    SimulationTask,
    check_settings,
    several,
)
from stratal.simulation.simulation_table import CellStore, SimulationTable, beside_random

if TYPE_CHECKING:
    from stratal.population.population import Population

Task = TypeVar("Task")
Found = TypeVar("Found")


def check_workers(workers: Any) -> None:
    """Refuse what `completed` cannot ask.

    Raises
    ------
    InputError
        For 0, and for what is neither a number, None nor a Spark session.

    Examples
    --------
    >>> check_workers(0)
    Traceback (most recent call last):
    stratal.errors.InputError: workers= is not understood (given: 0; allowed: 1 or more...
    """
    module = type(workers).__module__
    if isinstance(workers, int | None) and workers != 0 and not isinstance(workers, bool):
        return
    if ".connect." in module:
        raise InputError(
            "Spark Connect runs none of our Python on its workers",
            allowed="a session of a master: SparkSession.builder.master('spark://host:7077')",
        )
    if not module.startswith("pyspark."):
        raise InputError(
            "workers= is not understood",
            given=workers,
            allowed="1 or more processes, -1 for all cores, None as joblib is configured, a Spark session",
        )


def completed(
    work: Callable[[Task], Iterator[Found]], tasks: Sequence[Task], workers: Any
) -> Iterator[Found]:
    """Yield what the tasks give: one process does them in order, several as they come.

    Parameters
    ----------
    work : callable
        Yields the results of one task.
    tasks : sequence
    workers : int, None or a Spark session
        As in `simulate`.

    Raises
    ------
    MissingExtraError
        Without joblib, where it is needed.

    Examples
    --------
    >>> list(completed(lambda task: iter([task, task + 1]), [1, 5], 1))
    [1, 2, 5, 6]
    """
    if not isinstance(workers, int | None):
        yield from _on_spark(work, tasks, getattr(workers, "sparkContext", workers))
    elif workers == 1 or not tasks:
        for task in tasks:
            yield from work(task)
    else:
        yield from _by_joblib(work, tasks, workers)


def _by_joblib(
    work: Callable[[Task], Iterator[Found]], tasks: Sequence[Task], workers: int | None
) -> Iterator[Found]:
    try:
        from joblib import Parallel, delayed
    except ImportError:
        raise MissingExtraError("joblib", extra="parallel") from None
    jobs = (delayed(_listed)(work, task) for task in tasks)
    try:
        results = Parallel(n_jobs=workers, return_as="generator_unordered")(jobs)
    except ValueError:  # a back end that only returns lists
        results = Parallel(n_jobs=workers)(delayed(_listed)(work, task) for task in tasks)
    for found in results:
        yield from found


def _listed(work: Callable[[Task], Iterator[Found]], task: Task) -> list[Found]:
    return list(work(task))


# ---- Spark


def _on_spark(
    work: Callable[[Task], Iterator[Found]], tasks: Sequence[Task], context: Any
) -> Iterator[Found]:
    """Yield what tasks give as they end, each a job; what is left is cancelled if nobody waits."""
    group = f"stratal-{uuid.uuid4().hex}"

    def one(task: Task) -> list[Found]:
        context.setJobGroup(group, "stratal simulate", interruptOnCancel=True)
        done: list[Found] = context.parallelize([task], 1).flatMap(work).collect()
        return done

    pool = ThreadPoolExecutor(max(1, min(len(tasks), int(context.defaultParallelism))))
    try:
        for done in as_completed([pool.submit(one, task) for task in tasks]):
            yield from done.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        context.cancelJobGroup(group)


Progress = Callable[[int, int], None]


@names_mistyped
def simulate(
    population: Population,
    outcome: Any,
    *,
    designs: Sequence[str | SimulatedDesign],
    estimators: str | Sequence[str] | None = None,
    intervals: Sequence[str] = ("auto",),
    budgets: Iterable[int],
    replicates: int = 3000,
    seed: int = 0,
    proxy: str | None = None,
    confidence_level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    target: str = "population",
    stratum_weights_known: bool | None = None,
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
        `neyman:10:oracle`, `k-means:10:two-round`, `equal-size:6:opt-a2:5:10`. Or, drawn one by one at a
        millisecond or more each: `poisson`, `proportional-to-size`, `systematic`, and `planned` and
        `two-round`, a plan for the estimand and half of it as a pilot first.
    estimators : sequence of str, optional
        Of a mean: `horvitz-thompson` unless given, `hajek`, `difference`, `ppi++`, `stratppi`, `auto` (that
        of `stratal.estimate`), and the papers' own `published-ppi++` and `published-stratppi`.
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
    stratum_weights_known : bool, optional
        For the superpopulation: whether the W_h are known, as [S] has it and unless given, or drawn with the
        N units.
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
        The mean unless given; another quantity is `F1("match")`, say (see `stratal.estimands`). `outcome` is
        then every unit's label as annotators would give it, and replicates are drawn one by one, so that some
        hundred will do. Options of means are refused.

    Returns
    -------
    SimulationTable
        One row per design, estimator, interval and budget, each figure with its Monte Carlo standard error.

    Raises
    ------
    InputError
        For unknown designs, estimators or intervals, options that a design or estimand has not, and outcomes
        that do not fit the population.
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
    asked = as_estimand(estimand)
    z = asked.outcome_of(outcome)
    labels = np.asarray(outcome) if z is None else z
    size = population.size
    if labels.shape != (size,):
        raise InputError("there must be one outcome per unit", given=labels.size, allowed=f"{size}")
    chosen = tuple(SimulatedDesign.parse(d) if isinstance(d, str) else d for d in several(designs))
    if not chosen or len({design.name for design in chosen}) < len(chosen):
        raise InputError("designs must be given, each once", allowed="one or more, none of them twice")
    if z is None:
        _refuse_options_of_means(
            asked,
            estimators=estimators,
            intervals=None if several(intervals) in ((), ("auto",)) else intervals,
            proxy=proxy,
            bounds=bounds,
            stratum_weights_known=stratum_weights_known,
            with_replacement=with_replacement or None,
        )
    elif bounds is None and np.all((z == 0) | (z == 1)):
        bounds = (0.0, 1.0)
    named = ("horvitz-thompson" if z is not None else asked.text) if estimators is None else estimators
    settings = Settings(
        estimators=several(named),
        intervals=several(intervals),
        budgets=tuple(sorted({int(budget) for budget in budgets})),
        replicates=int(replicates),
        seed=check_seed(seed),
        confidence_level=confidence_level,
        target=target,
        stratum_weights_known=stratum_weights_known is not False,
        bounds=bounds,
        with_replacement=with_replacement,
    )
    check_settings(settings, size)
    whole = SimulationTask(
        population=population,
        estimand=asked,
        labels=labels,
        z=z,
        value=float("nan"),
        proxy=None,
        proxy_name=proxy or (None if z is None else next(iter(asked.proxy_names), None)),
        designs=chosen,
        keys=(),
        settings=settings,
    )
    if z is None:
        whole = replace(whole, value=census_value(whole))
    with CellStore(store) as finished:
        tasks, keys = _tasks(whole, finished)
        total = len(chosen)
        done = total - sum(len(task.designs) for task in tasks)
        if progress is not None:
            progress(done, total)
        for key, rows in completed(cells, tasks, workers):
            finished.add(key, rows)
            done += 1
            if progress is not None:
                progress(done, total)
    found = (row for key in keys for row in finished.get(key) or [])
    return SimulationTable.from_rows(beside_random(found))


def _refuse_options_of_means(estimand: Estimand, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"'{estimand.kind}' takes no {name}=",
                given=repr(value),
                action="It is an option of the mean; leave it out.",
            )


def _tasks(whole: SimulationTask, finished: CellStore) -> tuple[list[SimulationTask], list[str]]:
    """Return the work that is left, grouped by strata, and the keys of all cells in the designs' order."""
    columns: dict[str | None, FloatArray | None] = {}
    keys: list[str] = []
    groups: dict[Any, list[tuple[SimulatedDesign, str]]] = {}
    for design in whole.designs:
        name = whole.proxy_name or design.proxy
        if name not in columns:
            columns[name] = None if whole.z is None else _proxy_values(whole.population, name)
        key = cell_key(_fingerprint(whole, columns[name], design), design, whole.settings)
        keys.append(key)
        if finished.get(key) is None:
            groups.setdefault((design.strata_key, name), []).append((design, key))
    tasks = [
        replace(
            whole,
            proxy=columns[name],
            proxy_name=name,
            designs=tuple(design for design, _ in members),
            keys=tuple(key for _, key in members),
        )
        for (_, name), members in groups.items()
    ]
    return tasks, keys


def _proxy_values(population: Population, name: str | None) -> FloatArray | None:
    if not population.proxies:
        return None
    column = population.proxy_info(name).name
    return np.concatenate([np.asarray(part[column]) for part in population.batches((column,))])


def _fingerprint(task: SimulationTask, proxy: FloatArray | None, design: SimulatedDesign) -> str:
    """Return a digest of the data that a design sees."""
    population, digest = task.population, hashlib.sha256()
    if task.z is not None:
        digest.update(task.z.tobytes())
    if proxy is not None:
        digest.update(np.ascontiguousarray(proxy).tobytes())
    others = [design.proxy] if design.proxy else []
    others += [design.by] if design.by else []
    others += list(population.feature_names) if design.stratification == "features" else []
    for column in others:
        for part in population.batches((column,)):
            digest.update("\x1f".join(map(str, part[column].tolist())).encode())
    if task.z is None or design.mechanism in PLANS:
        told = [task.estimand.text, population.digest(0).to_dict(), list(map(str, task.labels.tolist()))]
        digest.update(json.dumps(told, sort_keys=True).encode())
    return digest.hexdigest()
