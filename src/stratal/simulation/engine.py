"""`simulate`: what each design and estimator would give on a population whose outcomes are all known.

A cell is one design with all its budgets, estimators and intervals. The replicates of a mean are drawn in
batches, and only their sums per stratum are kept; those of other estimands, and of designs without strata,
are drawn by the library one by one.
"""

from __future__ import annotations

import hashlib
import json
import math
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, replace
from functools import partial
from itertools import pairwise, product
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stratal import __version__
from stratal.arrays import FloatArray, IntArray
from stratal.errors import BudgetError, InputError, installed, names_mistyped
from stratal.estimation.estimand import ToolQuestion, as_estimand
from stratal.estimation.outcome_means import default_estimator
from stratal.population.population import require_population
from stratal.randomness import check_seed
from stratal.simulation.library_replicates import ReplicateBatches, census_value, library_replicates
from stratal.simulation.draws import Draws, OrderedUnits, StratumSums, Truth, BinaryDraws, spread
from stratal.simulation.replicates import FIXED_LAM, Settings, replicate_intervals, replicate_means
from stratal.simulation.simulated_design import (
    PLANS,
    SimulatedDesign,
    SimulationTask,
    check_settings,
    several,
)
from stratal.simulation.simulation_table import CellStore, Row, SimulationTable
from stratal.strata import Strata, allocate, proportional, stratify
from stratal.strata.allocation import Bounds, nearest_integers, optimal_integers
from stratal.strata.smoothed_variances import smoothed_standard_deviations

if TYPE_CHECKING:
    from stratal.population.population import Population

Progress = Callable[[int, int], None]


# Numbers per array in a batch of ordered units: about a megabyte, to stay in the cache.
_CACHE_NUMBERS = 1 << 17


_URN_BATCH = 1 << 13


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
    estimand: ToolQuestion = None,
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
    [1.0, 2.1]
    """
    check_workers(workers)
    require_population(population, "simulate")
    quantity = as_estimand(estimand)
    z = quantity.outcome_of(outcome)
    labels = np.asarray(outcome) if z is None else z
    size = population.size
    if labels.shape != (size,):
        raise InputError("there must be one outcome per unit", given=labels.size, allowed=f"{size}")
    chosen = tuple(SimulatedDesign.parse(d) if isinstance(d, str) else d for d in several(designs))
    if not chosen or len({design.name for design in chosen}) < len(chosen):
        raise InputError("designs must be given, each once", allowed="one or more, none of them twice")
    if z is None:
        quantity.refuse_plan_options(
            {
                "estimators": estimators,
                "intervals": None if several(intervals) in ((), ("auto",)) else intervals,
                "proxy": proxy,
                "bounds": bounds,
                "stratum_weights_known": stratum_weights_known,
                "with_replacement": with_replacement or None,
            }
        )
    elif bounds is None and np.all((z == 0) | (z == 1)):
        bounds = (0.0, 1.0)
    named = ("horvitz-thompson" if z is not None else quantity.text) if estimators is None else estimators
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
        estimand=quantity,
        labels=labels,
        z=z,
        value=census_value(population, labels, quantity) if z is None else float("nan"),
        proxy_name=proxy or (None if z is None else next(iter(quantity.proxy_names), None)),
        designs=chosen,
        settings=settings,
    )
    with CellStore.kept(store) as finished:
        tasks, keys = _tasks(whole, finished)
        done = len(chosen) - sum(len(task.designs) for task in tasks)
        report = progress or (lambda done, total: None)
        report(done, len(chosen))
        for key, rows in completed(cells, tasks, workers):
            finished.add(key, rows)
            done += 1
            report(done, len(chosen))
    found = (row for key in keys for row in finished.cells.get(key) or [])
    return SimulationTable.from_rows(relative_to_random(found))


def _tasks(whole: SimulationTask, finished: CellStore) -> tuple[list[SimulationTask], list[str]]:
    """Return the work that is left, grouped by strata, and the keys of all cells in the designs' order."""
    tasks: dict[Any, SimulationTask] = {}
    columns: dict[str | None, FloatArray | None] = {}
    keys: list[str] = []
    for design in whole.designs:
        name = whole.proxy_name or design.proxy
        n_strata = design.n_strata if design.stratification else 1
        group = (design.stratification, n_strata, design.by, design.proxy, name)
        if name not in columns:
            if whole.z is None:
                columns[name] = None
            else:
                columns[name] = _proxy_values(whole.population, name)
        task = tasks.get(group)
        if task is None:
            task = replace(whole, proxy=columns[name], proxy_name=name, designs=(), keys=())
        key = cell_key(_fingerprint(whole, task.proxy, design), design, whole.settings)
        keys.append(key)
        if finished.cells.get(key) is None:
            tasks[group] = replace(task, designs=(*task.designs, design), keys=(*task.keys, key))
    return list(tasks.values()), keys


def _proxy_values(population: Population, name: str | None) -> FloatArray | None:
    if not population.proxies:
        return None
    column = population.proxy_info(name).name
    return np.concatenate([np.asarray(part[column]) for part in population.batches((column,))])


def _fingerprint(task: SimulationTask, proxy: FloatArray | None, design: SimulatedDesign) -> str:
    """Return a digest of the data that a design sees."""
    population = task.population
    digest = hashlib.sha256()
    if task.z is not None:
        digest.update(task.z.tobytes())
    if proxy is not None:
        digest.update(np.ascontiguousarray(proxy).tobytes())
    others = [name for name in (design.proxy, design.by) if name]
    others += list(population.feature_names) if design.stratification == "features" else []
    for column in others:
        for part in population.batches((column,)):
            digest.update("\x1f".join(map(str, part[column].tolist())).encode())
    if task.z is None or design.mechanism in PLANS:
        identity = [task.estimand.text, population.digest(0).to_dict(), list(map(str, task.labels.tolist()))]
        digest.update(json.dumps(identity, sort_keys=True).encode())
    return digest.hexdigest()


def check_workers(workers: Any) -> None:
    """Refuse workers that `completed` cannot use.

    Raises
    ------
    InputError
        For 0, and for what is neither a number, None nor a Spark session.

    Examples
    --------
    >>> check_workers(0)
    Traceback (most recent call last):
    stratal.errors.InputError: workers= cannot be read (given: 0; allowed: 1 or more...
    """
    module = type(workers).__module__
    number = isinstance(workers, int | None) and workers != 0 and not isinstance(workers, bool)
    if not number and (".connect." in module or not module.startswith("pyspark.")):
        raise InputError(
            "workers= cannot be read",
            given=workers,
            allowed="1 or more processes, -1 for all cores, None as joblib is configured, a Spark session of "
            "a master (Spark Connect runs none of our Python)",
        )


def completed(work: Callable[[Any], Iterator[Any]], tasks: Sequence[Any], workers: Any) -> Iterator[Any]:
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
        return
    if workers == 1 or not tasks:
        for task in tasks:
            yield from work(task)
        return
    with installed("joblib", extra="parallel"):
        from joblib import Parallel, delayed
    jobs = [delayed(_listed)(work, task) for task in tasks]
    try:
        results = Parallel(n_jobs=workers, return_as="generator_unordered")(jobs)
    except ValueError:  # a back end that only returns lists
        results = Parallel(n_jobs=workers)(jobs)
    for found in results:
        yield from found


def _listed(work: Callable[[Any], Iterator[Any]], task: Any) -> list[Any]:
    return list(work(task))


def _on_spark(work: Callable[[Any], Iterator[Any]], tasks: Sequence[Any], context: Any) -> Iterator[Any]:
    """Yield what tasks give as they end, each a job; what is left is cancelled if nobody waits."""
    group = f"stratal-{uuid.uuid4().hex}"

    def one(task: Any) -> list[Any]:
        context.setJobGroup(group, "stratal simulate", interruptOnCancel=True)
        return list(context.parallelize([task], 1).flatMap(work).collect())

    pool = ThreadPoolExecutor(max(1, min(len(tasks), int(context.defaultParallelism))))
    try:
        for done in as_completed([pool.submit(one, task) for task in tasks]):
            yield from done.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        context.cancelJobGroup(group)


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


def cell_seeds(size: int, design: SimulatedDesign, settings: Settings) -> np.random.SeedSequence:
    """Return the seeds of a cell's replicates, from the number of units, the design and the settings.

    The data are left out: a trained model's probabilities differ in their last digits from machine to
    machine, and a digit must not exchange all random numbers.
    """
    key = cell_key(str(size), design, settings)
    words = tuple(int(key[i : i + 8], 16) for i in range(0, len(key), 8))
    return np.random.SeedSequence(settings.seed, spawn_key=words)


def cells(task: SimulationTask) -> Iterator[tuple[str, list[Row]]]:
    """Yield the key and the rows of each design's cell.

    Random numbers of sums follow from `cell_seeds`; designs drawn one by one share their seeds.
    """
    first = task.designs[0]
    settings = task.settings
    method = first.stratification or "none"
    strata = stratify(task.population, method, first.n_strata, by=first.by, proxy=first.proxy)
    if strata.codes is None and strata.n_strata > 1:
        raise InputError("a simulation needs its population in memory", action="Use Population.from_arrays.")
    truth = None
    if task.z is not None:
        if strata.codes is None:
            codes = np.zeros(len(task.z), dtype=np.int64)
        else:
            codes = strata.codes
        binary = bool(np.all((task.z == 0) | (task.z == 1)))
        needed = not (binary and settings.counts_suffice)
        truth = Truth.of(task.z, task.proxy, codes, strata.n_strata, units=needed)
    for design, key in zip(task.designs, task.keys, strict=True):
        counts = None
        if truth is None or design.mechanism is not None:
            found = library_replicates(design, strata, task)
        else:
            if not design.adaptive:
                counts = fixed_counts(design, strata, truth, settings.budgets)
            seeds = cell_seeds(truth.size, design, settings)
            found = summed_replicates(design, strata, truth, task, counts, seeds)
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
) -> ReplicateBatches:
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
    rng = np.random.Generator(np.random.SFC64(seeds))
    settings = task.settings
    if counts is None:
        most = np.minimum(strata.sizes, max(settings.budgets))
    else:
        most = np.max(counts, axis=0)
    # BinaryDraws are emptied in order, so that no stratum may lose a label when the budget grows.
    growing = counts is None or all(np.all(b >= a) for a, b in pairwise(counts))
    urns = truth.binary and settings.counts_suffice and growing
    if urns:
        size = _URN_BATCH
    else:
        size = max(_CACHE_NUMBERS // max(int(most.max()), 1), 64)

    def draws(rows: int) -> Draws:
        replacing = settings.with_replacement
        fourths = counts is None and not truth.binary
        if urns:
            return BinaryDraws(truth, rows, rng, with_replacement=replacing)
        powers = {"thirds": settings.thirds, "fourths": fourths}
        return OrderedUnits(truth, most, rows, rng, with_replacement=replacing, **powers)

    collected: ReplicateBatches = {}
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
            for name in settings.estimators:
                estimator = _resolved(name, budget, strata.n_strata, task)
                found = replicate_means(sums, truth, settings, estimator, label_driven=design.adaptive)
                values = found.value
                if settings.bounds is not None and not estimator.startswith("published-"):
                    values = np.clip(values, *settings.bounds)
                parts = {"values": values, "variances": found.estimated_variances}
                for interval, (low, high) in replicate_intervals(found).items():
                    parts |= {f"{interval} low": low, f"{interval} high": high}
                for what, part in parts.items():
                    collected.setdefault((budget, name, what), []).append(part)
    return collected


def fixed_counts(
    design: SimulatedDesign, strata: Strata, truth: Truth, budgets: tuple[int, ...]
) -> list[IntArray]:
    """Return n_h (H,) at each budget of a design that does not look at labels."""
    result = []
    for budget in budgets:
        if strata.n_strata == 1:
            result.append(np.array([budget]))
            continue
        # The oracle is Neyman's rule with the true S_h.
        method = design.allocation
        known = None
        if method == "oracle":
            method = "neyman"
            known = np.sqrt(truth.variances)
        found = allocate(strata, budget, method, design.minimum, standard_deviations=known)
        result.append(np.asarray(found.n_h))
    return result


# Of Σ y²: a variance of labels below it is rounding.
_ROUNDING = 1e-12


def adaptive_sums(
    design: SimulatedDesign,
    strata: Strata,
    truth: Truth,
    budgets: tuple[int, ...],
    start: Callable[[], Draws],
) -> Iterator[StratumSums]:
    """Yield the sums of an adaptive design at each budget, budgets increasing.

    Parameters
    ----------
    design : SimulatedDesign
    strata : Strata
    truth : Truth
    budgets : tuple of int
    start : callable
        Gives fresh draws of the batch of replicates.

    Examples
    --------
    >>> from stratal.population import Population
    >>> from stratal.simulation.draws import BinaryDraws
    >>> from stratal.strata import stratify
    >>> strata = stratify(Population.from_arrays(proxy=[0.6] * 50 + [0.9] * 50), n_strata=2)
    >>> truth = Truth.of(np.array([0.0, 1.0] * 50), None, strata.codes, 2)
    >>> design = SimulatedDesign.parse("k-means:2:opt-a1:5")
    >>> urns = lambda: BinaryDraws(truth, 3, np.random.default_rng(1))
    >>> [sums.counts.sum(axis=1) for sums in adaptive_sums(design, strata, truth, (30,), urns)]
    [array([30., 30., 30.])]
    """
    if design.allocation == "opt-a2":
        yield from _step_by_step(design, strata, budgets, start())
        return
    sizes = strata.sizes
    for budget in budgets:
        pilot = pilot_counts(design, sizes, budget)
        draws = start()
        seen = draws.sums(pilot)
        if design.allocation == "opt-a1":
            n_h = pilot + shares_of_the_remainder(seen, strata, pilot, budget - int(pilot.sum()))
        else:
            limits = _limits(strata, truth)
            found = recalibrated_deviations(seen, truth.centre, strata, binary=truth.binary, bounds=limits)
            n_h = optimal_integers(sizes * found, Bounds(sizes=sizes, lower=pilot, upper=sizes), budget)
        yield draws.sums(n_h)


def _step_by_step(
    design: SimulatedDesign, strata: Strata, budgets: tuple[int, ...], draws: Draws
) -> Iterator[StratumSums]:
    step = design.step or 10
    counts = pilot_counts(design, strata.sizes, min(budgets))
    sums = draws.sums(counts)
    spent = int(counts.sum())
    for budget in budgets:
        while budget - spent >= step:
            counts = counts + shares_of_the_remainder(sums, strata, counts, step)
            spent += step
            sums = draws.sums(counts)
        if spent == budget:
            yield sums
        else:  # the last step is cut short; the next budget goes on from where it was not
            yield draws.branch().sums(counts + shares_of_the_remainder(sums, strata, counts, budget - spent))


def pilot_counts(design: SimulatedDesign, sizes: IntArray, budget: int) -> IntArray:
    """Return the pilot's n_h (H,).

    Examples
    --------
    >>> pilot_counts(SimulatedDesign.parse("k-means:2:two-round"), np.array([60, 40]), 50)
    array([15, 10])
    """
    if design.allocation == "two-round":
        half = max(int(budget * design.pilot_size), int(np.minimum(design.minimum, sizes).sum()))
        if half > budget:
            raise BudgetError("the budget is below the pilot", given=budget, allowed=f"{half} or more")
        return proportional(sizes, half, minimum=design.minimum)
    pilot = np.minimum(int(design.pilot_size), sizes)
    if pilot.sum() > budget:
        what = f"the budget is below the pilot of {design.name}"
        action = "Use a smaller pilot, fewer strata, or a larger budget."
        raise BudgetError(what, given=budget, allowed=f"{int(pilot.sum())} or more", action=action)
    return pilot


def recalibrated_deviations(
    sums: StratumSums,
    centre: float,
    strata: Strata,
    *,
    binary: bool,
    bounds: tuple[float, float] | None = None,
) -> FloatArray:
    """Return S_h (R, H), recalibrated on each replicate's labels and smoothed.

    Parameters
    ----------
    sums : StratumSums
        Of outcomes with `centre` taken off.
    centre : float
    strata : Strata
    binary : bool
        Whether outcomes are 0 or 1.
    bounds : (float, float), optional
        Of other outcomes; the strata's unless given.

    Examples
    --------
    >>> from stratal.population import Population
    >>> from stratal.strata import stratify
    >>> strata = stratify(Population.from_arrays(proxy=[0.6] * 500 + [0.95] * 500), n_strata=2)
    >>> sums = StratumSums(
    ...     counts=np.array([[5.0, 5.0]]), z=np.array([[3.0, 5.0]]), zz=np.array([[3.0, 5.0]]))
    >>> recalibrated_deviations(sums, 0.0, strata, binary=True).round(2)
    array([[0.46, 0.23]])
    """
    first = sums.z + centre * sums.counts
    second = np.maximum(sums.zz + 2.0 * centre * sums.z + centre**2 * sums.counts, 0.0)  # less by rounding
    return smoothed_standard_deviations(
        strata,
        sums.counts,
        np.rint(first) if binary else first,
        None if binary else second,
        kurtoses=sums.kurtoses,
        bounds=(0.0, 1.0) if binary else bounds or strata.bounds,
    )


def raw_deviations(sums: StratumSums) -> FloatArray:
    """Return s_h (R, H) of [K] eq. 3: of the labels alone, 0 where they all agree or there is but one.

    Sums of outcomes with a centre taken off leave rounding where labels agree; it says nothing of S_h.

    Examples
    --------
    >>> labels = np.array([[0.3, 0.3, 0.3], [-0.7, 0.3, 0.3]])
    >>> z, zz = labels.sum(axis=1)[None], (labels**2).sum(axis=1)[None]
    >>> raw_deviations(StratumSums(counts=np.full((1, 2), 3.0), z=z, zz=zz)).round(2)
    array([[0.  , 0.58]])
    """
    variances = np.nan_to_num(spread(sums.counts, sums.z, sums.zz))
    return np.sqrt(np.where(variances > _ROUNDING * sums.zz, variances, 0.0))


def _limits(strata: Strata, truth: Truth) -> tuple[float, float]:
    """Return the strata's bounds of the outcome, none where an outcome lies outside them."""
    low, high = strata.bounds
    inside = all(
        low - 1e-9 <= z.min() + truth.centre and z.max() + truth.centre <= high + 1e-9 for z in truth.outcomes
    )
    return (low, high) if inside else (-np.inf, np.inf)


def shares_of_the_remainder(sums: StratumSums, strata: Strata, taken: IntArray, labels: int) -> IntArray:
    """Return [K] eq. 9 for the next `labels` (R, H), with raw S_h (eq. 3), in whole numbers.

    Parameters
    ----------
    sums : StratumSums
        Of the labels so far.
    strata : Strata
    taken : int (H,) or (R, H)
        How many these are.
    labels : int

    Examples
    --------
    >>> from stratal.population import Population
    >>> from stratal.strata import stratify
    >>> strata = stratify(Population.from_arrays(proxy=[0.6] * 50 + [0.9] * 50), n_strata=2)
    >>> seen = np.array([[2.0, 4.0]])
    >>> sums = StratumSums(counts=np.full((1, 2), 5.0), z=seen, zz=seen)
    >>> shares_of_the_remainder(sums, strata, np.array([5, 5]), 10)
    array([[6, 4]])
    """
    importance: FloatArray = strata.weights * raw_deviations(sums)
    return nearest_integers(importance, np.maximum(strata.sizes - taken, 0), labels)


def _resolved(estimator: str, budget: int, n_strata: int, task: SimulationTask) -> str:
    """Return the estimator that `auto` stands for, as `stratal.estimate` has it, or the one that is named."""
    if estimator != "auto":
        return estimator
    design = "simple-random" if n_strata == 1 else "stratified"
    scaled = task.proxy is not None and task.population.proxy_info(task.proxy_name).scaled
    return default_estimator(design, budget, n_strata, int(task.proxy is not None), scaled=scaled)


def _yardstick(
    task: SimulationTask, truth: Truth | None, counts: list[IntArray] | None, budget: int, estimator: str
) -> Yardstick:
    if truth is None:
        return Yardstick(truth=task.value)
    settings = task.settings
    variance = truth.population_variance
    exact = partial(exact_variance, with_replacement=settings.with_replacement)
    random = exact(np.array([truth.size]), np.array([variance]), np.array([budget]))
    closed = float("nan")
    if counts is not None and estimator in FIXED_LAM:
        lam = FIXED_LAM[estimator]
        left = truth.variances - 2 * lam * truth.covariances + lam**2 * truth.proxy_variances
        closed = exact(truth.sizes, np.maximum(left, 0.0), counts[settings.budgets.index(budget)])
    if settings.target == "superpopulation":
        whole = variance / budget
    else:
        whole = random
    return Yardstick(truth.value, random, variance, truth.size, closed, whole)


def exact_variance(sizes: Any, variances: Any, counts: Any, *, with_replacement: bool) -> float:
    """Return Σ W_h² (1 − f_h) S_h²/n_h (Cochran 1977, eq. 5.6); with replacement 1 − f_h is 1 − 1/N_h.

    Examples
    --------
    >>> columns = np.array([[50, 50], [0.25, 0.05], [5, 5]])
    >>> round(exact_variance(*columns, with_replacement=False), 6)
    0.0135
    """
    left = 1.0 - (1.0 if with_replacement else counts) / sizes
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = (sizes / sizes.sum()) ** 2 * left * variances / counts
    return float(np.where(variances > 0, parts, 0.0).sum())


class Yardstick(NamedTuple):
    """What the replicates are measured against, at one budget.

    Parameters
    ----------
    truth : float
        What is estimated.
    random_variance : float
        Variance of the HT mean of a simple random sample of the same size, exact; NaN where it is no mean.
    population_variance : float
        S²; NaN where it is no mean.
    size : int
        N.
    closed_form : float
        The design's variance by formula; NaN where there is none.
    target_variance : float
        The same as `random_variance` for the target whose variance is estimated.

    Examples
    --------
    >>> yardstick = Yardstick(
    ...     truth=0.5, random_variance=0.02, population_variance=0.25, size=100, closed_form=0.01)
    >>> summarise(np.array([0.4, 0.6]), np.array([0.01, 0.01]), yardstick)["relative_efficiency"]
    2.0
    """

    truth: float
    random_variance: float = float("nan")
    population_variance: float = float("nan")
    size: int = 1
    closed_form: float = float("nan")
    target_variance: float = float("nan")


# A truth that is no farther outside counts as covered: the interval of a census is one rounded number.
_COVERED = 1e-12


def mean_and_error(values: FloatArray) -> tuple[float, float]:
    """Return the mean of replicates and its Monte Carlo standard error.

    Examples
    --------
    >>> mean_and_error(np.array([1.0, 3.0]))
    (2.0, 1.0)
    """
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


def summarise_interval(low: FloatArray, high: FloatArray, truth: float) -> dict[str, float]:
    """Return coverage and width, and the 16 % and 84 % quantiles of the width.

    Examples
    --------
    >>> found = summarise_interval(np.array([0.0, 0.2]), np.array([0.4, 0.8]), 0.1)
    >>> found["coverage"], round(found["width"], 6)
    (0.5, 0.5)
    """
    share = float(np.mean((low <= truth + _COVERED) & (truth <= high + _COVERED)))
    spread = float(np.sqrt(share * (1.0 - share) / len(low)))
    quantiles = np.quantile(high - low, [0.16, 0.84]).tolist()
    return dict(zip(OF_INTERVALS, (share, spread, *mean_and_error(high - low), *quantiles), strict=True))


OF_INTERVALS = ("coverage", "coverage_se", "width", "width_se", "width_16", "width_84")


def summarise(values: FloatArray, variances: FloatArray, yardstick: Yardstick) -> dict[str, Any]:
    """Return bias, MSE, mean absolute error, efficiencies and variance ratio of R replicates.

    Parameters
    ----------
    values, variances : float (R,)
        Estimates and estimated variances.
    yardstick : Yardstick

    Examples
    --------
    >>> yardstick = Yardstick(
    ...     truth=0.5, random_variance=0.02, population_variance=0.25, size=100, target_variance=0.02)
    >>> summarise(np.array([0.4, 0.7]), np.array([0.01, 0.01]), yardstick)["mvr"]
    0.5
    """
    errors = values - yardstick.truth
    found: dict[str, Any] = {"closed_form_mse": yardstick.closed_form}
    for name, each in {"bias": errors, "mse": errors**2, "mae": np.abs(errors)}.items():
        found[name], found[f"{name}_se"] = mean_and_error(each)
    mse = found["mse"]
    mse_se = found["mse_se"]
    estimated, estimated_se = mean_and_error(variances)
    expected = yardstick.target_variance
    efficiency = _ratio(yardstick.random_variance, mse)
    whole = mse + yardstick.population_variance / yardstick.size
    effective = _ratio(yardstick.population_variance, whole)
    return found | {
        "relative_efficiency": _rounded(efficiency),
        "relative_efficiency_se": efficiency * (mse_se / mse if mse > 0 else 0.0),
        "estimated_variance": estimated,
        "mvr": _rounded(_ratio(estimated, expected)),
        "mvr_se": _ratio(estimated_se, expected),
        "effective_sample_size": effective,
        "effective_sample_size_se": effective * _ratio(mse_se, whole),
    }


def _ratio(above: float, below: float) -> float:
    if np.isnan(above) or np.isnan(below):
        return float("nan")
    if below > 0:
        return above / below
    if above > 0:
        return float("inf")
    return 1.0


def _rounded(value: float) -> float:
    """Return the value without a division's rounding error."""
    return float(f"{value:.15g}")


def rows_of(
    design: str,
    n_strata: int,
    collected: ReplicateBatches,
    settings: Settings,
    yardstick: Callable[[int, str], Yardstick],
) -> list[Row]:
    """Return a cell's rows from what its replicates gave; those without a value are left out.

    Parameters
    ----------
    design : str
    n_strata : int
    collected : dict of (budget, estimator, what) to batches of replicates
    settings : Settings
    yardstick : callable
        Budget and estimator to what they are measured against.

    Raises
    ------
    InputError
        Where fewer than two replicates have a value.
    """
    rows = []
    for budget, estimator in product(settings.budgets, settings.estimators):
        parts = {
            what: np.concatenate(batches)
            for (*of, what), batches in collected.items()
            if of == [budget, estimator]
        }
        defined = np.isfinite(parts["values"])
        if defined.sum() < 2:
            raise InputError(
                f"{estimator} has no value in the samples of {design}",
                given=f"{int(defined.sum())} of {len(defined)} with one, of {budget} labels",
                action="Use a larger budget.",
            )
        kept = {what: part[defined] for what, part in parts.items()}
        measured = yardstick(budget, estimator)
        shared = {
            "design": design,
            "estimator": estimator,
            "budget": budget,
            "replicates": int(defined.sum()),
            "n_strata": n_strata,
            "truth": measured.truth,
            **summarise(kept["values"], kept["variances"], measured),
        }
        for interval in settings.intervals or ("",):
            found: dict[str, float] = dict.fromkeys(OF_INTERVALS, float("nan"))
            if interval:
                ends = kept[f"{interval} low"], kept[f"{interval} high"]
                found = summarise_interval(*ends, measured.truth)
            rows.append({**shared, "interval": interval, **found})
    return rows


def relative_to_random(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows, their efficiency by the simulated simple random sample where no formula gives it.

    Examples
    --------
    >>> row = {"estimator": "f1", "interval": "auto", "budget": 50, "mse_se": 0.0,
    ...        "relative_efficiency": float("nan")}
    >>> two = [row | {"design": "simple-random", "mse": 0.5}, row | {"design": "planned", "mse": 0.25}]
    >>> [found["relative_efficiency"] for found in relative_to_random(two)]
    [1.0, 2.0]
    """
    kept = list(rows)
    same = itemgetter("estimator", "interval", "budget")
    random = {same(row): row for row in kept if row["design"] == "simple-random"}
    for row in kept:
        base = random.get(same(row))
        if base is None or not np.isnan(row["relative_efficiency"]) or not row["mse"] > 0:
            yield row
            continue
        gain = base["mse"] / row["mse"]
        errors = [one["mse_se"] / one["mse"] if one["mse"] > 0 else 0.0 for one in (row, base)]
        error = 0.0 if row is base else gain * math.hypot(*errors)
        yield row | {"relative_efficiency": gain, "relative_efficiency_se": error}
