"""The arms of Fisch et al.'s (2024) Figures 2 and 3, each replicate a new draw of all units.

The file is the distribution P. In every replicate N_h units are drawn from each stratum's P_h, of which n_h
are labelled; the unlabelled ones enter by the mean of their proxies alone, which is drawn from its normal
limit. So coverage is that of P's mean, the target that the intervals are for. Where many rows have no label,
P is not known: then labels are drawn without replacement from those that there are, the proxies of all rows
stay as they are, and coverage is that of the labels' mean, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from papers.loaders import Predictions
from stratal.arrays import FloatArray, IntArray
from stratal.population.population import Population
from stratal.simulation import SimulatedDesign
from stratal.simulation.draws import OrderedUnits, StratumSums, Truth
from stratal.simulation.engine import fixed_counts
from stratal.simulation.replicates import Replicates, Settings, replicate_intervals, replicate_means
from stratal.simulation.summaries import summarise_interval
from stratal.strata import Strata, stratify


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One line of Figure 2: a design, an estimator and its interval.

    Parameters
    ----------
    design : SimulatedDesign
    estimator, interval : str
    weights_known : bool
        Whether W_h is P's own, or the share that happens to be among the N units.

    Examples
    --------
    >>> arms(10)["classical"].estimator
    'horvitz-thompson'
    """

    design: SimulatedDesign
    estimator: str
    interval: str = "published"
    weights_known: bool = True


def arms(n_strata: int, stratification: str = "equal-size") -> dict[str, Arm]:
    """Return the paper's arms, the same with W_h estimated, λ shrunk or W_h known to all, and our default."""

    def strata(allocation: str, method: str = stratification) -> SimulatedDesign:
        return SimulatedDesign(stratification=method, n_strata=n_strata, allocation=allocation)

    even, heuristic = strata("proportional"), strata("stratppi")
    return {
        "classical": Arm(design=SimulatedDesign(), estimator="horvitz-thompson"),
        "PPI++": Arm(design=SimulatedDesign(), estimator="published-ppi++"),
        "StratPPI proportional": Arm(design=even, estimator="published-stratppi"),
        "StratPPI heuristic": Arm(design=heuristic, estimator="published-stratppi"),
        "classical in strata": Arm(design=even, estimator="horvitz-thompson"),
        "PPI++ in strata": Arm(design=even, estimator="published-ppi++"),
        "StratPPI, λ shrunk": Arm(design=even, estimator="stratppi"),
        "StratPPI, W_h estimated": Arm(design=even, estimator="published-stratppi", weights_known=False),
        "heuristic, W_h estimated": Arm(
            design=heuristic, estimator="published-stratppi", weights_known=False
        ),
        "heuristic, 5 each at least": Arm(
            design=replace(heuristic, minimum=5), estimator="published-stratppi"
        ),
        "heuristic, eq. 63": Arm(design=strata("neyman"), estimator="published-stratppi"),
        "StratPPI robust": Arm(design=strata("robust"), estimator="published-stratppi"),
        "stratal's default": Arm(
            design=strata("robust", "k-means"), estimator="horvitz-thompson", interval="auto"
        ),
    }


COLUMNS = ("coverage", "coverage_se", "width", "width_se", "width_16", "width_84", "rmse", "rmse_se")


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What the arms gave on one file.

    Parameters
    ----------
    found : Predictions
    budgets : tuple of int
    series : dict of arm's name to dict of column to (B,) array
        `COLUMNS`, one value for each budget.

    Examples
    --------
    >>> found = Predictions(name="a", z=np.ones(2), proxy=np.ones(2))
    >>> Simulated(found=found, budgets=(50,), series={}).budgets
    (50,)
    """

    found: Predictions
    budgets: tuple[int, ...]
    series: dict[str, dict[str, FloatArray]]

    def column(self, name: str) -> dict[str, FloatArray]:
        """Return one column of every arm."""
        return {arm: rows[name] for arm, rows in self.series.items()}

    def reductions(self, column: str = "width") -> dict[str, FloatArray]:
        """Return by how many per cent a width lies below the classical mean width, for every arm."""
        classical = self.series["classical"]["width"]
        return {name: 100 * (1 - rows[column] / classical) for name, rows in self.series.items()}

    def reduction_errors(self) -> dict[str, FloatArray]:
        """Return the Monte Carlo standard errors of `reductions()`."""
        base = self.series["classical"]
        return {
            name: 100
            * rows["width"]
            / base["width"]
            * np.hypot(rows["width_se"] / rows["width"], base["width_se"] / base["width"])
            for name, rows in self.series.items()
        }

    def effective(self, column: str = "width") -> dict[str, FloatArray]:
        """Return the labels with which the classical interval would be as wide."""
        classical = self.series["classical"]["width"]
        n = np.array(self.budgets)
        return {name: n * (classical / rows[column]) ** 2 for name, rows in self.series.items()}


def run_arms(found: Predictions, *, replicates: int, seed: int, chosen: tuple[str, ...] = ()) -> Simulated:
    """Draw every arm on one file.

    Parameters
    ----------
    found : Predictions
    replicates, seed : int
    chosen : tuple of str
        Arms; all if left out.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> proxy = rng.random(600)
    >>> file = Predictions(name="a", z=(rng.random(600) < proxy) * 1.0, proxy=proxy)
    >>> rows = run_arms(file, replicates=200, seed=1, chosen=("classical", "PPI++")).series
    >>> bool(rows["PPI++"]["width"][0] < rows["classical"]["width"][0])
    True
    """
    distinct = len(np.unique(found.proxy))
    known = int(found.labelled.sum())
    budgets = tuple(n for n in (50, 100, 200, 300, 500, 700, 1000, 2000) if n <= max(known // 3, 50))
    every = arms(min(10, distinct), "k-means" if distinct <= 10 else "equal-size")
    series = {
        name: _run(found, arm, budgets, replicates, np.random.default_rng([seed, number]))
        for number, (name, arm) in enumerate(every.items())
        if name in chosen or not chosen
    }
    return Simulated(found=found, budgets=budgets, series=series)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _World:
    """P in strata: labelled units to draw from, N_h, and the proxies' moments over all N_h."""

    truth: Truth
    sizes: IntArray
    proxy_variances: FloatArray
    redrawn: bool


def _world(found: Predictions, strata: Strata) -> _World:
    codes = np.zeros(len(found.z), dtype=np.int64) if strata.codes is None else strata.codes
    sizes = np.bincount(codes, minlength=strata.n_strata).astype(np.int64)
    labelled = found.labelled
    known = Truth.of(found.z[labelled], found.proxy[labelled], codes[labelled], strata.n_strata)
    means = np.bincount(codes, found.proxy, minlength=strata.n_strata) / sizes
    squares = np.bincount(codes, (found.proxy - means[codes]) ** 2, minlength=strata.n_strata)
    shifted = tuple(p + known.proxy_means[h] - means[h] for h, p in enumerate(known.proxies))
    return _World(
        truth=replace(known, proxies=shifted, proxy_means=means),
        sizes=sizes,
        proxy_variances=squares / np.maximum(sizes - 1, 1),
        redrawn=bool(labelled.all()),
    )


def _run(
    found: Predictions, arm: Arm, budgets: tuple[int, ...], replicates: int, rng: np.random.Generator
) -> dict[str, FloatArray]:
    population = Population.from_arrays(proxy=found.proxy)
    design = arm.design
    strata = stratify(population, design.stratification or "none", design.n_strata)
    world = _world(found, strata)
    counts = fixed_counts(design, strata, replace(world.truth, sizes=world.sizes), budgets)
    counts = [np.minimum(n_h, world.truth.sizes) for n_h in counts]
    limits = np.max(counts, axis=0)
    # The package's own interval reads how labels lean; its arm has λ = 0, so shifted proxies do not matter.
    how = {"with_replacement": world.redrawn, "third_powers": arm.interval == "auto"}
    draws = OrderedUnits(world.truth, limits, replicates, rng, **how)
    rows = [_row(arm, world, draws.sums(n_h), rng) for n_h in counts]
    return {name: np.array([row[name] for row in rows]) for name in COLUMNS}


def _row(arm: Arm, world: _World, sums: StratumSums, rng: np.random.Generator) -> dict[str, float]:
    whole = replace(world.truth, sizes=world.sizes, proxy_variances=world.proxy_variances)
    settings = Settings(
        estimators=(arm.estimator,),
        intervals=(arm.interval,),
        budgets=(),
        replicates=len(sums.z),
        seed=0,
        target="superpopulation",
        bounds=(0.0, 1.0),
    )
    if world.redrawn:
        sums = _with_new_proxies(world, sums, rng)
    found = replicate_means(sums, whole, replace(settings, bounds=None), arm.estimator)
    found = replace(found, settings=settings)
    if not arm.weights_known:
        found = _with_new_weights(found, world, sums, rng)
    low, high = replicate_intervals(found)[arm.interval]
    known = world.truth
    target = float(world.sizes @ known.means / world.sizes.sum()) if world.redrawn else known.value
    error = (found.value - target) ** 2
    rmse = float(np.sqrt(error.mean()))
    rmse_se = float(error.std(ddof=1) / np.sqrt(len(error)) / (2 * rmse)) if rmse else 0.0
    return {**summarise_interval(low, high, target), "rmse": rmse, "rmse_se": rmse_se}


def _with_new_proxies(world: _World, sums: StratumSums, rng: np.random.Generator) -> StratumSums:
    """Return sums whose proxies are centred at the mean of the replicate's own N_h units."""
    assert sums.p is not None
    assert sums.pp is not None
    assert sums.zp is not None
    rest = np.maximum(world.sizes - sums.counts, 0.0)
    noise = np.sqrt(world.proxy_variances * rest) * rng.standard_normal(sums.p.shape)
    shift = (sums.p + noise) / world.sizes
    return replace(
        sums,
        p=sums.p - sums.counts * shift,
        pp=sums.pp - 2 * shift * sums.p + sums.counts * shift**2,
        zp=sums.zp - shift * sums.z,
    )


def _with_new_weights(
    found: Replicates, world: _World, sums: StratumSums, rng: np.random.Generator
) -> Replicates:
    """Return estimates with the W_h of the replicate's own N units, and the variance that this adds."""
    size = int(world.sizes.sum())
    weights = world.sizes / size
    drawn = rng.multinomial(size, weights, size=len(found.value)) / size
    means = sums.means
    centre = means @ weights
    between = (means - centre[:, None]) ** 2 @ weights
    return replace(
        found,
        value=found.value + ((drawn - weights) * means).sum(axis=1),
        estimated_variances=found.estimated_variances + between / size,
    )
