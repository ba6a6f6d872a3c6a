"""Regularised λ and allocation for M-estimation: a linear regression in strata of unlike noise, simulated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from papers.claims import Pair
from papers.page import Page
from papers.palette import line, panel
from papers.panels import Panel
from stratal.arrays import FloatArray, IntArray
from stratal.designs import StratifiedWeighting
from stratal.designs.stratum_moments import stratum_covariances, stratum_means
from stratal.regression import linear_regression
from stratal.regression.losses import ArrayUnlabelled
from stratal.simulation.summaries import mean_and_error
from stratal.strata import neyman

ARMS: dict[str, dict[str, Any]] = {
    "classical": {"estimator": "classical"},
    "PPI++": {"estimator": "ppi++"},
    "λ_h as fitted": {"estimator": "stratppi", "shrinkage": 0},
    "λ_h shrunk": {"estimator": "stratppi"},
}
"""All λ are clipped to [0, 1]: unclipped ones of 40 labels leave rectified losses without a minimum."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _World:
    """N units in four strata: features, outcomes, an autorater's predictions."""

    x: FloatArray
    y: FloatArray
    f: FloatArray
    stratum: IntArray

    @classmethod
    def drawn(cls, rng: np.random.Generator, size: int = 4000) -> _World:
        stratum = np.repeat(np.arange(4), size // 4)
        noise, judge = np.array([0.3, 0.6, 1.2, 2.0])[stratum], np.array([0.1, 0.3, 1.5, 4.0])[stratum]
        x = rng.normal(size=(size, 2)) + 0.5 * stratum[:, None]
        y = x @ np.array([1.0, -0.5]) + noise * rng.standard_t(5, size)
        return cls(x=x, y=y, f=y + judge * rng.normal(size=size), stratum=stratum)

    @property
    def sizes(self) -> IntArray:
        return np.bincount(self.stratum).astype(np.int64)

    @property
    def truth(self) -> float:
        """The first slope over all units."""
        design = np.column_stack([np.ones(len(self.y)), self.x])
        return float(np.linalg.lstsq(design, self.y, rcond=None)[0][1])

    def fit(self, rows: IntArray, options: dict[str, Any]) -> Any:
        design = np.column_stack([np.ones(len(self.y)), self.x])
        given: dict[str, Any] = {} if options["estimator"] == "classical" else {"proxy": self.f[rows]}
        if given:
            given["unlabelled"] = ArrayUnlabelled(features=design, proxy=self.f, stratum=self.stratum)
        return linear_regression(
            design[rows],
            self.y[rows],
            weighting=StratifiedWeighting(stratum=self.stratum[rows], sizes=self.sizes),
            minimise=1,
            **given,
            **options,
        )

    def heuristic_spreads(self) -> FloatArray:
        """Return the spread of the slope's influence where labels vary alike ([S] eq. 20–21)."""
        design = np.column_stack([np.ones(len(self.y)), self.x])
        influences = design @ np.linalg.inv(design.T @ design)[:, 1]
        return np.asarray(
            np.sqrt(stratum_means(influences[:, None] ** 2, self.stratum, len(self.sizes))[:, 0])
        )

    def pilot_spreads(self, rows: IntArray, options: dict[str, Any]) -> FloatArray:
        """Return the spread of the slope's influence among the labels of a pilot ([S] eq. 18)."""
        fit = self.fit(rows, options | {"correction": "none"})
        influences = fit[1].evidence.residuals[:, None]
        return np.asarray(
            np.sqrt(stratum_covariances(influences, self.stratum[rows], len(self.sizes))[:, 0, 0])
        )

    def sample(self, n_h: IntArray, rng: np.random.Generator) -> IntArray:
        parts = [rng.choice(np.flatnonzero(self.stratum == h), n, replace=False) for h, n in enumerate(n_h)]
        return np.concatenate(parts)


def regularised(page: Page, replicates: int, seed: int) -> None:
    """Add the figure: error and coverage of a slope by λ's rule, and error by allocation.

    Parameters
    ----------
    page : Page
    replicates, seed : int
    """
    rng = np.random.default_rng(seed)
    world = _World.drawn(rng)
    budgets = (40, 80, 160, 320)
    found = {
        arm: [_arm(world, options, n, replicates, rng) for n in budgets] for arm, options in ARMS.items()
    }
    shared = [_allocations(world, n, max(replicates // 2, 20), rng) for n in budgets]
    allocated = {name: [row[name] for row in shared] for name in shared[0]}
    errors, covered = ({arm: [row[k] for row in rows] for arm, rows in found.items()} for k in (0, 1))
    panels = [
        _panel("RMSE of a slope, proportional allocation", budgets, errors),
        _panel("coverage", budgets, covered),
        _panel("RMSE, λ_h shrunk, by allocation", budgets, allocated),
    ]
    page.draw(
        "Regularised λ and allocation for M-estimation",
        panels,
        "open_regression.png",
        words="A simulated linear regression on two features in four strata. The scale of the noise is 0.3 "
        "to 2, and that of the autorater's error 0.1 to 4. The heuristic assumes that the autorater gives "
        "the conditional mean and that the noise is the same everywhere. The second round estimates S_h "
        "from half of the labels.",
    )
    rows = [
        [n, name, *(f"{v:.4f} ± {e:.4f}" for v, e in pairs), *[""] * (2 - len(pairs))]
        for i, n in enumerate(budgets)
        for name, pairs in [
            *((arm, found[arm][i]) for arm in found),
            *((f"allocation: {a}", (allocated[a][i],)) for a in allocated),
        ]
    ]
    page.add_table("Regularised λ and allocation: numbers", ["n", "arm", "RMSE", "coverage"], rows)


def _arm(
    world: _World, options: dict[str, Any], n: int, replicates: int, rng: np.random.Generator
) -> tuple[Pair, Pair]:
    errors, covered = [], []
    for _ in range(replicates):
        fit = world.fit(world.sample(np.full(4, n // 4), rng), options)
        low, high = fit.confidence_interval(0.95)
        errors.append(float(fit.values[1]) - world.truth)
        covered.append(float(low[1] <= world.truth <= high[1]))
    return _rmse(errors), mean_and_error(np.array(covered))


def _rmse(errors: list[float]) -> Pair:
    square, noise = mean_and_error(np.array(errors) ** 2)
    return float(np.sqrt(square)), noise / (2 * float(np.sqrt(square)))


def _allocations(world: _World, n: int, replicates: int, rng: np.random.Generator) -> dict[str, Pair]:
    """Return the error with λ_h shrunk, by how the labels are shared out."""
    options = ARMS["λ_h shrunk"]
    heuristic = neyman(world.sizes, world.heuristic_spreads(), n, minimum=4)
    errors: dict[str, list[float]] = {
        "proportional": [],
        "StratPPI heuristic": [],
        "stratal's second round": [],
    }
    for _ in range(replicates):
        pilot = world.sample(np.full(4, n // 8), rng)
        second = neyman(world.sizes, world.pilot_spreads(pilot, options), n, minimum=n // 8)
        rest = world.sample(second, rng)
        for name, rows in (
            ("proportional", world.sample(np.full(4, n // 4), rng)),
            ("StratPPI heuristic", world.sample(heuristic, rng)),
            ("stratal's second round", _extended(world, pilot, rest, second)),
        ):
            errors[name].append(float(world.fit(rows, options).values[1]) - world.truth)
    return {name: _rmse(values) for name, values in errors.items()}


def _extended(world: _World, pilot: IntArray, rest: IntArray, n_h: IntArray) -> IntArray:
    """Return the pilot with as many further units of each stratum as it lacks."""
    parts = [pilot]
    for h, n in enumerate(n_h):
        own = pilot[world.stratum[pilot] == h]
        more = rest[world.stratum[rest] == h]
        parts.append(more[~np.isin(more, own)][: n - len(own)])
    return np.concatenate(parts)


def _panel(title: str, budgets: tuple[int, ...], series: dict[str, list[Pair]]) -> Panel:
    coverage = title == "coverage"
    lines = [
        line(name, budgets, [v for v, _ in pairs], [e for _, e in pairs]) for name, pairs in series.items()
    ]
    if coverage:
        return panel(
            f"{title}, simulated", title, lines, level=0.95, level_label="asked for", logarithmic="x"
        )
    return panel(f"{title}, simulated", "RMSE", lines, level=None, logarithmic="xy")
