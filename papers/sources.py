"""Where strata come from: embeddings, a model's own confidence, a surrogate's, a calibrated surrogate's."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from papers import formulas
from papers.classifiers import Task
from papers.loaders import Predictions
from stratal.arrays import AnyArray, FloatArray, IntArray
from stratal.population.population import Population
from stratal.proxy import Proxy, accuracy, calibrate, cross_entropy, squared_error
from stratal.simulation import SimulatedDesign, simulate
from stratal.simulation.draws import Truth
from stratal.strata import neyman, proportional, stratify

EVEN = "SSRS proportional HT"
LABELS = 100
N_STRATA = 10

ARMS = {
    "SRS DF": ("f", "f*", "f*c"),
    "SSRS proportional HT": ("emb", "f", "f*", "f*c"),
    "SSRS proportional DF": ("f*c",),
    "SSRS Neyman HT": ("f", "f*", "f*c"),
}
"""Design and estimator → the sources that Table 1 has of it."""

BETTER = {"gsm8k_models": "agree_strong", "imagenet_golden_crowd": "crowd78", "nq301_llmjudge": "judge_mean"}
"""File → a column that predicts its outcome better, the surrogate."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """A population with its proxies by source.

    Parameters
    ----------
    name : str
    z : float (N,)
    proxies : dict of source to Proxy
        `f`, `f*`, `f*c` as far as there are.
    features : float (N, d), optional
        For the source `emb`.
    bounds : (float, float), optional
        Of the outcome.
    variant : str
        The model and the outcome, where several cases are of one set.

    Examples
    --------
    >>> case = Case(name="a", z=np.array([0.0, 1.0]), proxies={"f": Proxy(values=np.array([0.2, 0.8]))})
    >>> case.best
    'f'
    """

    name: str
    z: FloatArray
    proxies: dict[str, Proxy]
    features: FloatArray | None = None
    bounds: tuple[float, float] | None = (0.0, 1.0)
    variant: str = ""

    @property
    def best(self) -> str:
        """The best source that there is."""
        return next(source for source in ("f*c", "f*", "f") if source in self.proxies)

    def population(self, source: str) -> Population:
        """Return the population with the proxy, or the features, of one source."""
        if source != "emb":
            return Population.from_arrays(proxy={"proxy": self.proxies[source]})
        assert self.features is not None
        columns = {f"x{i}": column for i, column in enumerate(self.features.T)}
        return Population.from_arrays(proxy={"proxy": self.proxies["f"]}, features=columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Relative mean squared errors of one case.

    Parameters
    ----------
    name : str
        With N.
    ratios, errors : dict of (arm, source) to float
        MSE over that of HT under simple random sampling, and its Monte Carlo error.
    closed : dict of (arm, source) to float
        The same ratio by the closed form of the MSE, without noise.
    unrounded : dict of source to float
        The ratio of proportional allocation by eq. 4, n_h not rounded and no label forced on a stratum.
    deviations : tuple of float
        (Simulated − closed form) MSE over the Monte Carlo error, where there is a closed form.
    ordered : bool
        Whether Neyman ≤ proportional ≤ random, with the true S_h, in closed form.
    difference_error : float
        MSE · n/(1 − f) of the difference estimator with f.
    accuracy : float

    Examples
    --------
    >>> Measured(ratios={}, errors={}, accuracy=0.9).ordered
    True
    """

    name: str = ""
    ratios: dict[tuple[str, str], float]
    errors: dict[tuple[str, str], float]
    closed: dict[tuple[str, str], float] = field(default_factory=dict)
    unrounded: dict[str, float] = field(default_factory=dict)
    deviations: tuple[float, ...] = field(default=())
    ordered: bool = True
    difference_error: float = float("nan")
    accuracy: float = float("nan")

    def pair(self, arm: str, source: str) -> tuple[float, float]:
        """Return a ratio and its Monte Carlo error."""
        return self.ratios[arm, source], self.errors[arm, source]


def simulated(
    population: Population,
    z: FloatArray,
    design: SimulatedDesign | str,
    n: int,
    replicates: int,
    seed: int,
    *,
    estimator: str = "horvitz-thompson",
    intervals: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Return the one row of a simulation, with the ratio of mean squared errors and its error.

    Parameters
    ----------
    population : Population
    z : float (N,)
    design : SimulatedDesign or str
    n, replicates, seed : int
    estimator : str
    intervals : tuple of str
    """
    (row,) = simulate(
        population,
        z,
        designs=[design],
        estimators=[estimator],
        intervals=intervals,
        budgets=[n],
        replicates=replicates,
        seed=seed,
        bounds=None,
    ).rows()
    efficiency = row["relative_efficiency"]
    return row | {"ratio": 1 / efficiency, "ratio_se": row["relative_efficiency_se"] / efficiency**2}


def measure(case: Case, replicates: int, seed: int) -> Measured:
    """Simulate every arm of Table 1 on one case.

    Parameters
    ----------
    case : Case
    replicates, seed : int
    """
    n = min(LABELS, len(case.z) // 4)
    ratios, errors, closed, deviations = {}, {}, {}, []
    for arm, sources in ARMS.items():
        for source in sources:
            usable = case.features is not None if source == "emb" else source in case.proxies
            if not usable:
                continue
            estimator = "difference" if arm.endswith("DF") else "horvitz-thompson"
            drawn = case.population(source), case.z, _design(arm, source)
            # Cells of one size and design would otherwise share their random numbers, and so their noise.
            cell = zlib.crc32(f"{case.name}, {case.variant}, {arm}, {source}".encode())
            row = simulated(*drawn, n, replicates, seed + cell, estimator=estimator)
            ratios[arm, source], errors[arm, source] = row["ratio"], row["ratio_se"]
            closed[arm, source] = ratios[arm, source] * row["closed_form_mse"] / row["mse"]
            if row["mse_se"] > 0:
                deviations.append((row["mse"] - row["closed_form_mse"]) / row["mse_se"])
    residual = case.z - case.proxies["f"].values
    return Measured(
        name=f"{case.name}, N = {len(case.z)}",
        ratios=ratios,
        errors=errors,
        closed=closed,
        unrounded={source: _unrounded(case, source, n) for arm, source in ratios if arm == EVEN},
        deviations=tuple(deviations),
        ordered=_ordered(case, n),
        difference_error=float(residual.var(ddof=1)),
        accuracy=float(case.z.mean()),
    )


def _unrounded(case: Case, source: str, n: int) -> float:
    method = _design(EVEN, source).stratification or "none"
    strata = stratify(case.population(source), method, N_STRATA)
    codes: AnyArray = np.zeros(len(case.z), dtype=np.int64) if strata.codes is None else strata.codes
    truth = Truth.of(case.z, None, codes, strata.n_strata, units=False)
    random = formulas.simple_random(truth.population_variance, n, truth.size)
    return formulas.proportional(truth.sizes, truth.variances, n) / random


def _design(arm: str, source: str) -> SimulatedDesign:
    if arm.startswith("SRS"):
        return SimulatedDesign()
    return SimulatedDesign(
        stratification="features" if source == "emb" else "k-means",
        n_strata=N_STRATA,
        allocation="neyman" if "Neyman" in arm else "proportional",
        minimum=1,
    )


def _ordered(case: Case, n: int) -> bool:
    """Return whether [F] Proposition 1 holds with the true S_h."""
    truth, _ = _truth(case, case.best)
    neyman_error = formulas.neyman(truth.sizes, truth.variances, n)
    even = formulas.proportional(truth.sizes, truth.variances, n)
    return neyman_error <= even <= formulas.simple_random(truth.population_variance, n, truth.size) * 1.02


def _truth(case: Case, source: str) -> tuple[Truth, FloatArray]:
    strata = stratify(case.population(source), "k-means", N_STRATA)
    codes: AnyArray = np.zeros(len(case.z), dtype=np.int64) if strata.codes is None else strata.codes
    return Truth.of(case.z, None, codes, strata.n_strata, units=False), strata.standard_deviations


def true_allocation(case: Case) -> dict[str, IntArray]:
    """Return the n_h (H,) of 100 labels: proportional, ideal Neyman, and Neyman by the plug-in of f."""
    truth, plug_in = _truth(case, "f")
    n = min(LABELS, len(case.z) // 4)
    return {
        "proportional": proportional(truth.sizes, n),
        "Neyman, ideal": neyman(truth.sizes, np.sqrt(truth.variances), n),
        "Neyman, plug-in": neyman(truth.sizes, plug_in, n),
    }


OUTCOMES: dict[str, tuple[Callable[[FloatArray, AnyArray], FloatArray], tuple[float, float] | None]] = {
    "accuracy": (lambda f, y: (f.argmax(axis=1) == y).astype(np.float64), (0.0, 1.0)),
    "squared error": (lambda f, y: (1.0 - f[np.arange(len(y)), y]) ** 2, (0.0, 1.0)),
    "cross-entropy": (lambda f, y: -np.log(f[np.arange(len(y)), y]), None),
}
"""Outcome → z from probabilities and labels, and its bounds."""


def _proxy(outcome: str, f: FloatArray, judge: FloatArray) -> Proxy:
    if judge.ndim == 1:
        return Proxy(values=judge)
    if outcome == "accuracy":
        return accuracy(judge, predicted=f.argmax(axis=1))
    if outcome == "squared error":
        return squared_error(f, surrogate=judge)
    return cross_entropy(f, surrogate=judge)


def case_of_task(task: Task, family: str, outcome: str) -> Case:
    """Return the case of one trained family and outcome, its surrogate calibrated on the held-out half."""
    f, judge = task.models[family], task.models[task.judges[family]]
    of_labels, bounds = OUTCOMES[outcome]
    if f.right is None:
        z = of_labels(f.held_out, task.held_out_labels), of_labels(f.population, task.labels)
    else:
        z = f.right
    surrogate = _proxy(outcome, f.population, judge.population)
    curve = calibrate(
        _proxy(outcome, f.held_out, judge.held_out).values,
        z[0],
        method="isotonic",
        bounds=bounds if bounds is not None else (0.0, float(-np.log(f.population.min())) + 1.0),
    )
    return Case(
        name=task.name,
        variant=f"{family}, {outcome}",
        z=z[1],
        proxies={
            "f": _proxy(outcome, f.population, f.population),
            "f*": surrogate,
            "f*c": curve.proxy(surrogate.values),
        },
        features=task.features,
        bounds=bounds,
    )


def case_of_file(found: Predictions, directory: Path | None, *, seed: int) -> Case:
    """Return the case of a file: f its proxy, f* its better column, f*c calibrated on half of the rows."""
    judge = None
    if found.name in BETTER and directory is not None:
        import pyarrow.parquet as pq

        table = pq.read_table(directory / f"{found.name}.parquet", columns=[BETTER[found.name]])
        column = table.column(0).to_numpy().astype(np.float64)
        judge = column if len(column) == len(found.z) and np.all(np.isfinite(column)) else None
    held_out, kept = np.array_split(np.random.default_rng(seed).permutation(len(found.z)), 2)
    score = found.proxy if judge is None else judge
    curve = calibrate(score[held_out], found.z[held_out], method="isotonic")
    values = {"f": found.proxy} if judge is None else {"f": found.proxy, "f*": judge}
    proxies = {source: Proxy(values=column[kept]) for source, column in values.items()}
    return Case(name=found.name, z=found.z[kept], proxies=proxies | {"f*c": curve.proxy(score[kept])})
