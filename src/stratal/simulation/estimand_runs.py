"""What a plan for an estimand would have saved, on a population whose labels are all known."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray
from stratal.errors import InputError, StratalWarning, near_names
from stratal.estimation.estimand import Estimand
from stratal.estimation.estimate import Estimate
from stratal.estimation.evaluation import estimate
from stratal.planning.planner import plan
from stratal.planning.rounds import next_round, units_left
from stratal.population.population import Population
from stratal.sampling import SimpleRandom
from stratal.sampling.sample import Sample
from stratal.simulation.simulation_table import FLOAT_COLUMNS, SimulationTable

Draw = Callable[[int], Sample]


def estimand_table(estimand: Estimand, given: Mapping[str, Any]) -> SimulationTable:
    """Return bias, error and coverage of an estimand's estimate under several designs; see `simulate`.

    Parameters
    ----------
    estimand : Estimand
        A single one.
    given : mapping
        Of what `simulate` was given: `population`, of units numbered by row; `outcome`, the label of every
        unit, its true class or a number; `designs`, of `DESIGNS`; `budgets`, `replicates`, `seed`,
        `confidence_level` and `progress`.

    Raises
    ------
    InputError
        For units with ids, unknown designs, and several estimands at once.

    Examples
    --------
    >>> from stratal.estimation.estimands import F1
    >>> answers = ["match"] * 60 + ["other"] * 540
    >>> population = Population.from_arrays(groups={"answer": answers}, predicted="answer")
    >>> truth = ["match"] * 50 + ["other"] * 520 + ["match"] * 30
    >>> given = {"population": population, "outcome": truth, "designs": ["simple-random", "planned"],
    ...          "budgets": [100], "replicates": 50, "seed": 1, "confidence_level": 0.95, "progress": None}
    >>> table = estimand_table(F1("match"), given)
    >>> round(float(table["truth"][0]), 3), bool(table["relative_efficiency"][1] > 1)
    (0.714, True)
    """
    population, designs, progress = given["population"], given["designs"], given["progress"]
    labels = np.asarray(given["outcome"])
    _refuse_unfit(population, labels, designs)
    census = SimpleRandom(budget=population.size).draw(population, seed=0)
    value = estimate(census, labels[census.ids], estimand=estimand)
    if not isinstance(value, Estimate):
        raise InputError(
            "one estimand is simulated at a time", given=estimand.text, action="Simulate each by itself."
        )
    seeds = np.random.SeedSequence(given["seed"]).generate_state(given["replicates"], np.uint64).tolist()
    rows: list[dict[str, Any]] = []
    sizes = sorted({int(budget) for budget in given["budgets"]})
    for done, budget in enumerate(sizes):
        found: dict[str, FloatArray] = {}
        for name in designs:
            if progress is not None:
                progress(done * len(designs) + len(found), len(sizes) * len(designs))
            draw = DESIGNS[name](population, labels, estimand, budget)
            found[name] = _runs(draw, labels, estimand, seeds, given["confidence_level"])
        random = found.get("simple-random")
        rows += [
            _row(name, budget, estimand, float(value.value), runs, random) for name, runs in found.items()
        ]
    return SimulationTable.from_rows(rows)


def _refuse_unfit(population: Population, labels: AnyArray, designs: Sequence[Any]) -> None:
    """Refuse units with ids, labels that are not theirs, and designs that an estimand has not."""
    if labels.shape != (population.size,) or not population.numbered_by_row:
        raise InputError(
            "an estimand is simulated on units numbered by row, each with its label",
            given=f"{labels.size} labels for {population.size} units",
            action="Give Population.from_arrays no ids.",
        )
    for name in designs:
        if name not in DESIGNS:
            raise InputError(
                "no such design for an estimand", given=repr(name), allowed=near_names(str(name), DESIGNS)
            )


def _simple_random(population: Population, labels: AnyArray, estimand: Estimand, budget: int) -> Draw:
    return lambda seed: SimpleRandom(budget=budget).draw(population, seed)


def _planned(population: Population, labels: AnyArray, estimand: Estimand, budget: int) -> Draw:
    return plan(population, budget, estimand=estimand).draw


def _two_rounds(population: Population, labels: AnyArray, estimand: Estimand, budget: int) -> Draw:
    pilot = plan(population, budget // 2, estimand=estimand)

    def draw(seed: int) -> Sample:
        first = pilot.draw(seed)
        more = min(budget - budget // 2, units_left(first))
        return next_round(first, labels[first.ids], additional=more) if more else first

    return draw


DESIGNS: Mapping[str, Callable[[Population, AnyArray, Estimand, int], Draw]] = {
    "simple-random": _simple_random,
    "planned": _planned,
    "two-round": _two_rounds,
}
"""The designs by name: a simple random sample, a plan for the estimand, half of it as a pilot first."""


def _runs(
    draw: Draw, labels: AnyArray, estimand: Estimand, seeds: list[int], confidence_level: float
) -> FloatArray:
    """Return value, variance, low and high of each run (R, 4); NaN where it is undefined."""
    return np.array(list(_each(draw, labels, estimand, seeds, confidence_level)), dtype=np.float64)


def _each(
    draw: Draw, labels: AnyArray, estimand: Estimand, seeds: list[int], confidence_level: float
) -> Iterator[tuple[float, float, float, float]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StratalWarning)
        for seed in seeds:
            sample = draw(seed)
            found = estimate(sample, labels[sample.ids], estimand=estimand)
            low, high = found.confidence_interval(confidence_level)
            yield found.value, found.standard_error**2, low, high


def _row(
    design: str, budget: int, estimand: Estimand, truth: float, runs: FloatArray, random: FloatArray | None
) -> dict[str, Any]:
    """Return one row of the table; what is not measured of an estimand is NaN."""
    kept = runs[np.isfinite(runs[:, 0])]
    errors = kept[:, 0] - truth
    n, squares = len(kept), errors**2
    root = math.sqrt(max(n, 1))
    low, high = kept[:, 2], kept[:, 3]
    hits = (low <= truth + 1e-12) & (high >= truth - 1e-12)
    width = high - low
    others = None if random is None else (random[np.isfinite(random[:, 0]), 0] - truth) ** 2
    gain = math.nan if others is None or squares.mean() == 0 else float(others.mean() / squares.mean())
    row: dict[str, Any] = dict.fromkeys(FLOAT_COLUMNS, math.nan)
    return row | {
        "design": design,
        "estimator": estimand.text,
        "interval": "auto",
        "budget": budget,
        "replicates": n,
        "n_strata": 0,
        "truth": truth,
        "bias": float(errors.mean()),
        "bias_se": float(errors.std() / root),
        "mse": float(squares.mean()),
        "mse_se": float(squares.std() / root),
        "mae": float(np.abs(errors).mean()),
        "mae_se": float(np.abs(errors).std() / root),
        "relative_efficiency": gain,
        "estimated_variance": float(kept[:, 1].mean()),
        "coverage": float(hits.mean()),
        "coverage_se": float(hits.std() / root),
        "width": float(width.mean()),
        "width_se": float(width.std() / root),
        "width_16": float(np.quantile(width, 0.16)),
        "width_84": float(np.quantile(width, 0.84)),
    }
