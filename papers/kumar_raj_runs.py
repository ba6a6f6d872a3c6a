"""What Kumar & Raj's (2016) figures are drawn from: their designs, simulated on each set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from papers.claims import Number, near
from papers.files import read_scores
from papers.libsvm import libsvm_predictions
from papers.loaders import Predictions
from papers.scored import ACCURACIES, SHAPES, ScoreShape, of_accuracy
from stratal.arrays import IntArray
from stratal.population.population import Population
from stratal.simulation import SimulationTable, simulate
from stratal.strata import stratify

METHODS = {
    "cum-sqrt-f": "SQRT",
    "cum-cbrt-f": "CBRT",
    "weighted-mean": "WTMN",
    "k-means": "KM",
    "gaussian-mixture": "GMM",
    "equal-size": "EQSZ",
    "equal-width": "EQWD",
}
"""Methods and the paper's names for them."""

BUDGETS = (60, 80, 100, 120, 150, 200, 300, 400, 600, 800)
QUICK_BUDGETS = (60, 120, 150, 300, 800)
NUMBERS = range(2, 11)
SHOWN = {
    "proportional": {"rcv1": "equal-width", "epsilon": "equal-size", "news20": "k-means"},
    "equal": {"rcv1": "k-means", "epsilon": "equal-size", "news20": "cum-sqrt-f"},
    "opt-a1": {"rcv1": "k-means", "epsilon": "equal-size", "news20": "cum-sqrt-f"},
}
"""The stratification in the paper's plots of absolute error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What was simulated on one set.

    Parameters
    ----------
    found : Predictions
    table : SimulationTable
    simulated : bool
        Whether the set itself is simulated.

    Examples
    --------
    >>> Run.__slots__
    ('found', 'table', 'simulated')
    """

    found: Predictions
    table: SimulationTable
    simulated: bool

    @property
    def data(self) -> str:
        """The set's name, with the word simulated where it is."""
        return f"{self.found.name}, simulated" if self.simulated else self.found.name

    def labels(self, design: str, error: float = 0.01) -> tuple[float, float]:
        """Return the labels for a mean absolute error of 1 %, and their Monte Carlo error."""
        rows = self.table.where(design=design).labels_to_reach(error)
        return (rows[0]["labels"], rows[0]["labels_se"]) if rows else (float("nan"), float("nan"))

    def ratio(self, design: str, column: str = "mvr", budget: int = 300) -> tuple[float, float]:
        """Return a ratio of the set's table, and its Monte Carlo error."""
        return ratio(self.table, design, column, budget)

    def strata(self, method: str, n_strata: int) -> tuple[IntArray, IntArray]:
        """Return the correct units and the units (K,) of each stratum."""
        codes = stratify(_population(self.found), method, n_strata).codes
        codes = np.zeros(len(self.found.z), dtype=np.int64) if codes is None else codes
        sizes = np.bincount(codes)
        return np.rint(np.bincount(codes, self.found.z)).astype(np.int64), sizes.astype(np.int64)


def ratio(table: SimulationTable, design: str, column: str = "mvr", budget: int = 300) -> tuple[float, float]:
    """Return MVR, or with `column="true"` the ratio of true mean squared errors, and its error."""
    (row,) = table.where(design=design, budget=budget).rows()
    if column == "true":
        efficiency = row["relative_efficiency"]
        return 1 / efficiency, row["relative_efficiency_se"] / efficiency**2
    return row["mvr"], row["mvr_se"]


def saving(
    before: tuple[float, float], after: tuple[float, float], printed: float, tolerance: float
) -> Number:
    """Return a change in per cent, from (value, error) to (value, error), beside the printed one.

    Examples
    --------
    >>> saving((400.0, 4.0), (300.0, 3.0), -22.0, 5.0).value
    -25.0
    """
    (a, e), (b, f) = before, after
    error = 100 * b / a * float(np.hypot(e / a, f / b)) if a and b else 0.0
    return near((100 * (b / a - 1), error), printed, tolerance, " points")


def _population(found: Predictions) -> Population:
    return Population.from_arrays(proxy=found.proxy, scaled=None if found.scaled else False)


def run_set(name: str, data: Path | None, replicates: int, seed: int, *, quick: bool) -> Run:
    """Simulate the paper's designs on one set: its file, or else a population of its shape."""
    scored = None if data is None or not (data / f"{name}.parquet").is_file() else data / f"{name}.parquet"
    given = libsvm_predictions(data, name, seed=seed) if scored is None else read_scores(scored)
    if given is not None:
        given = replace(given, scaled=name != "epsilon")  # whose score is a distance
    found = given or _shape(SHAPES[name], quick).draw(name, seed)
    table = _grid(found, name, replicates, seed, quick=quick)
    return Run(found=found, table=table, simulated=given is None)


def _shape(shape: ScoreShape, quick: bool) -> ScoreShape:
    return replace(shape, size=min(shape.size, 20_000)) if quick else shape


def _grid(found: Predictions, name: str, replicates: int, seed: int, *, quick: bool) -> SimulationTable:
    numbers = NUMBERS if name != "epsilon" and not quick else (10,)
    designs = ["simple-random"]
    for method in METHODS:
        designs += [f"{method}:{k}:{rule}" for k in numbers for rule in ("proportional", "equal")]
        designs += [f"{method}:6:opt-a1:10"]
    if name == "rcv1":
        designs += ["k-means:10:oracle"]
    shown = SHOWN["opt-a1"][name]
    designs += [f"{shown}:6:{rule}" for rule in ("proportional", "equal", "oracle", "two-round")]
    designs += [f"{shown}:6:opt-a1:5"]
    designs += [f"{shown}:6:opt-a2:{pilot}:{step}" for pilot in (5, 10) for step in (10, 20)]
    population = _population(found)
    usual = QUICK_BUDGETS if quick else BUDGETS
    tables = [
        simulate(
            population,
            found.z,
            designs=list(dict.fromkeys(chosen)),
            intervals=(),
            budgets=budgets,
            replicates=replicates,
            seed=seed,
            with_replacement=True,
        )
        for chosen, budgets in (
            (designs, usual),
            ([f"{shown}:6:opt-a1:20"], [n for n in usual if n >= 120]),  # six pilots of 20
        )
    ]
    return SimulationTable.from_rows(row for table in tables for row in table.rows())


def accuracies(replicates: int, seed: int, *, quick: bool) -> dict[str, SimulationTable]:
    """Return Figure 9's table of each accuracy."""
    result = {}
    for name, accuracy in ACCURACIES.items():
        found = _shape(of_accuracy(accuracy), quick).draw(name, seed)
        result[name] = simulate(
            Population.from_arrays(proxy=found.proxy, scaled=False),
            found.z,
            designs=["equal-size:6:opt-a2:5:10", "equal-size:6:proportional", "equal-size:6:oracle"],
            intervals=(),
            budgets=QUICK_BUDGETS if quick else BUDGETS,
            replicates=replicates,
            seed=seed,
            with_replacement=True,
        )
    return result
