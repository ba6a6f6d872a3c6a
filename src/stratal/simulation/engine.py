"""`simulate`: precision and coverage of designs and estimators on a fully labelled population.

A cell is one design with all its budgets, estimators and intervals. Replicates of a mean in strata are drawn
in batches, of which only the sums per stratum are stored. For other estimands, and for designs without
strata, the library draws and estimates one replicate at a time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stratal import __version__
from stratal.arrays import AnyArray, FloatArray, IntArray, are_binary
from stratal.errors import InputError, check_choice
from stratal.estimation.default_estimator import default_estimator
from stratal.estimation.estimand import EstimandLike, as_estimand
from stratal.population.population import require_population
from stratal.randomness import check_seed
from stratal.simulation.adaptive_allocation import adaptive_sums
from stratal.simulation.draws import BinaryDraws, Draws, OrderedUnits, StratumSums, Truth
from stratal.simulation.library_replicates import ReplicateBatches, census_value, library_replicates
from stratal.simulation.replicates import (
    FIXED_LAM,
    SIMULATED_ESTIMATORS,
    Settings,
    replicate_intervals,
    replicate_means,
)
from stratal.simulation.simulated_design import (
    PLANS,
    SimulatedDesign,
    SimulationTask,
    as_tuple,
    check_settings,
)
from stratal.simulation.simulation_table import CellStore, SimulationRow, SimulationTable
from stratal.simulation.summaries import TrueValues, cell_rows, exact_variance, fill_relative_efficiency
from stratal.simulation.workers import check_workers, run_tasks
from stratal.strata import Strata, allocate, stratify

if TYPE_CHECKING:
    from stratal.population.population import Population

ProgressCallback = Callable[[int, int], None]

# Numbers per array in a batch of ordered units: about one megabyte, which fits in the processor cache.
_ORDERED_BATCH_NUMBERS = 1 << 17

# Smallest number of replicates per batch of ordered units: with fewer, the overhead of a batch dominates.
_MIN_ORDERED_BATCH = 64

# Number of replicates per batch of binary draws, which store one number per stratum.
_BINARY_BATCH = 1 << 13


def simulate(
    population: Population,
    outcome: object,
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
    workers: object = 1,
    store: str | Path | None = None,
    progress: ProgressCallback | None = None,
    estimand: EstimandLike = None,
) -> SimulationTable:
    """Measure designs and estimators on thousands of samples from a fully labelled population.

    Parameters
    ----------
    population : Population
        N units in memory, with proxies.
    outcome : array-like (N,)
        The outcome of every unit.
    designs : sequence of str or SimulatedDesign, or one of them
        `simple-random`, or `stratification:n_strata:allocation[:pilot[:step]]`, such as `k-means:10:robust`,
        `neyman:10:oracle`, `k-means:10:two-round` or `equal-size:6:opt-a2:5:10`. The following designs are
        drawn one replicate at a time, which takes a millisecond or more each: `poisson`,
        `proportional-to-size`, `systematic`, `planned` (the library's plan for the estimand) and `two-round`
        (half of the budget as a pilot, then the library's next round).
    estimators : sequence of str, optional
        Estimators of a mean: `horvitz-thompson` (default), `hajek`, `difference`, `ppi++`, `stratppi`, `auto`
        (the choice of `stratal.estimate`), and `published-ppi++` and `published-stratppi` as in the papers.
    intervals : sequence of str
        `auto`, `t`, `normal`, `clopper-pearson`, `stratified-clopper-pearson`, `wilson`, `logit`, `blaker`,
        `skewness-corrected` (without bounds), `published`. An empty sequence computes no intervals.
    budgets : iterable of int
        Total numbers of labels. The samples of the budgets are nested.
    replicates : int
        Number of samples of each design.
    seed : int
        The same seed gives the same table, for any number of workers and any other designs.
    proxy : str, optional
        Proxy of the estimators. Default: the proxy of the design, or the first proxy of the population.
    confidence_level : float
    bounds : (float, float), optional
        Smallest and largest possible outcome. Default: 0 and 1 if all outcomes are 0 or 1.
    target : {"population", "superpopulation"}
        Target of the estimated variance. Errors and coverage refer to the mean of the population.
    stratum_weights_known : bool, optional
        For the superpopulation: whether the W_h are known (default, as in Fisch et al. 2024) or random like
        the N units.
    with_replacement : bool
        Draw with replacement, as Kumar & Raj (2016) assume.
    workers : int, None or pyspark.sql.SparkSession
        Number of processes (joblib). None uses the settings of `joblib.parallel_config`, including its Dask
        and Ray back ends. With a Spark session, each stratification is one Spark task; stratal must be
        installed on the workers.
    store : path, optional
        Parquet file of finished cells. An interrupted run continues from this file.
    progress : callable, optional
        Called with (number of finished cells, number of cells).
    estimand : Estimand or str, optional
        Default: the mean. For another quantity, such as `F1("match")` (see `stratal.estimands`), `outcome`
        contains the labels in the form that annotators give, and the replicates are drawn one at a time.
        Except for metrics of a class in strata of one kind of answers each, they are also estimated one at a
        time, so a few hundred are sufficient. Options of means are not allowed.

    Returns
    -------
    SimulationTable
        One row per design, estimator, interval and budget, each figure with its Monte Carlo standard error.

    Raises
    ------
    InputError
        For unknown designs, estimators or intervals, for options that a design or estimand does not support,
        and if the outcomes do not match the population.
    BudgetError
        If a budget is smaller than a design requires, or larger than N.

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
    requested = as_estimand(estimand)
    # Only a mean has outcomes.
    z = requested.outcome_of(outcome)
    labels = np.asarray(outcome) if z is None else z
    size = population.size
    if labels.shape != (size,):
        raise InputError("there must be one outcome per unit", given=labels.size, allowed=f"{size}")
    parsed_designs = _parse_designs(designs)
    if z is None:
        # The default of `intervals` is allowed for every estimand.
        options_of_means = {
            "estimators": estimators,
            "intervals": None if as_tuple(intervals) in ((), ("auto",)) else intervals,
            "proxy": proxy,
            "bounds": bounds,
            "stratum_weights_known": stratum_weights_known,
            "with_replacement": with_replacement or None,
        }
        requested.refuse_plan_options(options_of_means)
    elif bounds is None and are_binary(z):
        bounds = (0.0, 1.0)
    if estimators is None:
        if z is None:
            estimators = requested.text
        else:
            estimators = "horvitz-thompson"
    settings = Settings(
        estimators=as_tuple(estimators),
        intervals=as_tuple(intervals),
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
    value = float("nan")
    if z is None:
        value = census_value(population, labels, requested)
    elif not proxy:
        proxy = next(iter(requested.proxy_names), None)
    simulation = SimulationTask(
        population=population,
        estimand=requested,
        labels=labels,
        z=z,
        value=value,
        proxy_name=proxy or None,
        designs=parsed_designs,
        settings=settings,
    )
    return _run(simulation, workers, store, progress)


def _parse_designs(
    designs: str | SimulatedDesign | Sequence[str | SimulatedDesign],
) -> tuple[SimulatedDesign, ...]:
    """Return one or more designs with different names."""
    parsed = tuple(
        SimulatedDesign.parse(design) if isinstance(design, str) else design for design in as_tuple(designs)
    )
    names = [design.name for design in parsed]
    if not parsed or len(set(names)) < len(names):
        raise InputError(
            "designs must contain at least one design, and none more than once",
            given=names,
            allowed="one or more different designs",
        )
    return parsed


def _run(
    simulation: SimulationTask, workers: object, store: str | Path | None, progress: ProgressCallback | None
) -> SimulationTable:
    """Run the unfinished cells of a simulation and return the table of all cells."""
    n_cells = len(simulation.designs)
    with CellStore.open(store) as finished:
        tasks, keys = _unfinished_tasks(simulation, finished)
        n_finished = n_cells - sum(len(task.designs) for task in tasks)
        if progress is not None:
            progress(n_finished, n_cells)
        for key, rows in run_tasks(simulate_cells, tasks, workers):
            finished.add(key, rows)
            n_finished += 1
            if progress is not None:
                progress(n_finished, n_cells)
    all_rows = (row for key in keys for row in finished.cells.get(key) or [])
    return SimulationTable.from_rows(fill_relative_efficiency(all_rows))


def _unfinished_tasks(
    simulation: SimulationTask, finished: CellStore
) -> tuple[list[SimulationTask], list[str]]:
    """Return the unfinished cells, as one task per stratification, and the keys of all cells."""
    tasks: dict[Hashable, SimulationTask] = {}
    proxy_values: dict[str | None, FloatArray | None] = {}
    keys: list[str] = []
    for design in simulation.designs:
        name = simulation.proxy_name or design.proxy
        if design.stratification:
            n_strata = design.n_strata
        else:
            n_strata = 1
        # Designs with the same key have the same strata and proxy.
        task_key = (design.stratification, n_strata, design.by, design.proxy, name)
        if name not in proxy_values:
            # Estimands other than means read their proxies from the population.
            if simulation.z is None:
                proxy_values[name] = None
            else:
                proxy_values[name] = _read_proxy(simulation.population, name)
        task = tasks.get(task_key)
        if task is None:
            task = replace(simulation, proxy=proxy_values[name], proxy_name=name, designs=(), keys=())
        key = cell_key(_fingerprint(simulation, task.proxy, design), design, simulation.settings)
        keys.append(key)
        if finished.cells.get(key) is None:
            tasks[task_key] = replace(task, designs=(*task.designs, design), keys=(*task.keys, key))
    return list(tasks.values()), keys


def _read_proxy(population: Population, name: str | None) -> FloatArray | None:
    """Return the values (N,) of the named or the first proxy, or None without proxies."""
    if not population.proxies:
        return None
    column = population.proxy_info(name).name
    return np.concatenate([np.asarray(batch[column]) for batch in population.batches((column,))])


def _fingerprint(task: SimulationTask, proxy: FloatArray | None, design: SimulatedDesign) -> str:
    """Return a digest of the data that the results of a design depend on."""
    population = task.population
    digest = hashlib.sha256()
    if task.z is not None:
        digest.update(task.z.tobytes())
    if proxy is not None:
        digest.update(np.ascontiguousarray(proxy).tobytes())
    columns = [name for name in (design.proxy, design.by) if name]
    if design.stratification == "features":
        columns += population.feature_names
    for column in columns:
        for batch in population.batches((column,)):
            # The unit separator, which text does not contain.
            digest.update("\x1f".join(map(str, batch[column].tolist())).encode())
    if task.z is None or design.mechanism in PLANS:
        identity = [task.estimand.text, population.digest(0).to_dict(), list(map(str, task.labels.tolist()))]
        digest.update(json.dumps(identity, sort_keys=True).encode())
    return digest.hexdigest()


def cell_key(fingerprint: str, design: SimulatedDesign, settings: Settings) -> str:
    """Return a digest (32 hexadecimal digits) of everything that a cell depends on, including the version."""
    parts = json.dumps([__version__, fingerprint, design.to_dict(), asdict(settings)], sort_keys=True)
    return hashlib.sha256(parts.encode()).hexdigest()[:32]


def cell_seeds(size: int, design: SimulatedDesign, settings: Settings) -> np.random.SeedSequence:
    """Return the seeds of a cell's replicates from the number of units, the design and the settings.

    The seeds do not depend on the data: the last digits of a trained model's probabilities differ between
    machines, and such a difference must not change the random numbers.
    """
    key = cell_key(str(size), design, settings)
    # Eight hexadecimal digits are one 32-bit word.
    words = tuple(int(key[start : start + 8], 16) for start in range(0, len(key), 8))
    return np.random.SeedSequence(settings.seed, spawn_key=words)


def simulate_cells(task: SimulationTask) -> Iterator[tuple[str, list[SimulationRow]]]:
    """Yield the key and the rows of each cell of a task.

    Replicates from sums use the random numbers of `cell_seeds`. Replicates of the library share their seeds.
    """
    settings = task.settings
    strata = _stratify(task)
    truth = None
    if task.z is not None:
        truth = _true_moments(task.z, strata, task)
    for design, key in zip(task.designs, task.keys, strict=True):
        counts = None
        if truth is None or design.mechanism is not None:
            replicates = library_replicates(design, strata, task)
        else:
            if not design.adaptive:
                counts = fixed_counts(design, strata, truth, settings.budgets)
            seeds = cell_seeds(truth.size, design, settings)
            replicates = replicates_from_sums(design, strata, truth, task, counts, seeds)
        true_values = partial(_true_values, task, truth, counts)
        # A plan chooses its own strata.
        if design.mechanism in PLANS:
            n_strata = 0
        else:
            n_strata = strata.n_strata
        yield key, cell_rows(design.name, n_strata, replicates, settings, true_values)


def _stratify(task: SimulationTask) -> Strata:
    """Return the strata that the designs of a task share; one stratum for designs without strata."""
    design = task.designs[0]
    method = design.stratification or "none"
    strata = stratify(task.population, method, design.n_strata, by=design.by, proxy=design.proxy)
    if strata.codes is None and strata.n_strata > 1:
        raise InputError("a simulation requires a population in memory", action="Use Population.from_arrays.")
    return strata


def _true_moments(z: FloatArray, strata: Strata, task: SimulationTask) -> Truth:
    """Return the true moments of outcomes z (N,), with the values of the units if sums are not sufficient."""
    codes: AnyArray | None = strata.codes
    if codes is None:
        codes = np.zeros(len(z), dtype=np.int64)
    is_binary = are_binary(z)
    needs_units = not (is_binary and task.settings.counts_suffice)
    return Truth.of(z, task.proxy, codes, strata.n_strata, units=needs_units)


def replicates_from_sums(
    design: SimulatedDesign,
    strata: Strata,
    truth: Truth,
    task: SimulationTask,
    counts: list[IntArray] | None,
    seeds: np.random.SeedSequence,
) -> ReplicateBatches:
    """Draw the replicates of a mean in batches and estimate them from their sums per stratum.

    `counts` are n_h (H,) at each budget, or None for adaptive designs.
    """
    rng = np.random.Generator(np.random.SFC64(seeds))
    settings = task.settings
    if counts is None:
        max_counts = np.minimum(strata.sizes, max(settings.budgets))
    else:
        max_counts = np.max(counts, axis=0)
    # Binary draws can only be extended: no stratum may have fewer labels at a larger budget.
    is_growing = counts is None or all(np.all(later >= earlier) for earlier, later in pairwise(counts))
    uses_binary_draws = truth.binary and settings.counts_suffice and is_growing
    if uses_binary_draws:
        batch_size = _BINARY_BATCH
    else:
        batch_size = max(_ORDERED_BATCH_NUMBERS // max(int(max_counts.max()), 1), _MIN_ORDERED_BATCH)

    def start_draws(n_replicates: int) -> Draws:
        if uses_binary_draws:
            return BinaryDraws(truth, n_replicates, rng, with_replacement=settings.with_replacement)
        return OrderedUnits(
            truth,
            max_counts,
            n_replicates,
            rng,
            with_replacement=settings.with_replacement,
            third_powers=settings.needs_third_powers,
            # Adaptive designs smooth variances; for outcomes that are not binary this requires the kurtosis.
            fourth_powers=counts is None and not truth.binary,
        )

    replicates: ReplicateBatches = {}
    for start in range(0, settings.replicates, batch_size):
        n_replicates = min(batch_size, settings.replicates - start)
        draws = start_draws(n_replicates)
        sums_by_budget: Iterator[StratumSums]
        if counts is not None:
            sums_by_budget = map(draws.sums, counts)
        else:
            # Ordered units can be read again for every budget. Binary draws start again.
            restart: Callable[[], BinaryDraws | OrderedUnits]
            if uses_binary_draws:
                restart = partial(start_draws, n_replicates)
            else:
                restart = draws.branch
            sums_by_budget = adaptive_sums(design, strata, truth, settings.budgets, restart)
        for budget, sums in zip(settings.budgets, sums_by_budget, strict=True):
            for name in settings.estimators:
                estimator = _resolve_estimator(name, budget, strata.n_strata, task)
                quantities = _estimate_batch(sums, truth, settings, estimator, label_based=design.adaptive)
                for quantity, values in quantities.items():
                    replicates.setdefault((budget, name, quantity), []).append(values)
    return replicates


def _estimate_batch(
    sums: StratumSums, truth: Truth, settings: Settings, estimator: str, *, label_based: bool
) -> dict[str, FloatArray]:
    """Return the values, variances and interval limits (R,) of a batch by quantity."""
    estimates = replicate_means(sums, truth, settings, estimator, label_based=label_based)
    values = estimates.value
    if settings.bounds is not None and not estimator.startswith("published-"):
        values = np.clip(values, *settings.bounds)
    quantities = {"values": values, "variances": estimates.estimated_variances}
    for interval, (low, high) in replicate_intervals(estimates).items():
        quantities[f"{interval} low"] = low
        quantities[f"{interval} high"] = high
    return quantities


def fixed_counts(
    design: SimulatedDesign, strata: Strata, truth: Truth, budgets: tuple[int, ...]
) -> list[IntArray]:
    """Return n_h (H,) at each budget for a design that does not depend on labels."""
    n_h_by_budget = []
    method = design.allocation
    standard_deviations = None
    if method == "oracle":
        # The oracle is Neyman's rule with the true S_h.
        method = "neyman"
        standard_deviations = np.sqrt(truth.variances)
    for budget in budgets:
        if strata.n_strata == 1:
            n_h_by_budget.append(np.array([budget]))
            continue
        allocation = allocate(strata, budget, method, design.minimum, standard_deviations=standard_deviations)
        n_h_by_budget.append(np.asarray(allocation.n_h))
    return n_h_by_budget


def _resolve_estimator(estimator: str, budget: int, n_strata: int, task: SimulationTask) -> str:
    """Return the named estimator, or the default of `stratal.estimate` for `auto`."""
    check_choice("estimator", estimator, ("auto", *SIMULATED_ESTIMATORS))
    if estimator != "auto":
        return estimator
    design = "simple-random" if n_strata == 1 else "stratified"
    scaled = task.proxy is not None and task.population.proxy_info(task.proxy_name).scaled
    return default_estimator(design, budget, n_strata, int(task.proxy is not None), scaled=scaled)


def _true_values(
    task: SimulationTask, truth: Truth | None, counts: list[IntArray] | None, budget: int, estimator: str
) -> TrueValues:
    """Return the true values that the replicates of an estimator are compared with at one budget."""
    if truth is None:
        return TrueValues(value=task.value)
    settings = task.settings
    population_variance = truth.population_variance
    exact = partial(exact_variance, with_replacement=settings.with_replacement)
    random_variance = exact(np.array([truth.size]), np.array([population_variance]), np.array([budget]))
    closed_form = float("nan")
    # A formula exists only if neither the allocation nor λ depends on the labels.
    if counts is not None and estimator in FIXED_LAM:
        lam = FIXED_LAM[estimator]
        residual_variances = truth.variances - 2 * lam * truth.covariances + lam**2 * truth.proxy_variances
        budget_counts = counts[settings.budgets.index(budget)]
        closed_form = exact(truth.sizes, np.maximum(residual_variances, 0.0), budget_counts)
    if settings.target == "superpopulation":
        target_variance = population_variance / budget
    else:
        target_variance = random_variance
    return TrueValues(
        value=truth.value,
        random_variance=random_variance,
        population_variance=population_variance,
        size=truth.size,
        closed_form=closed_form,
        target_variance=target_variance,
    )
