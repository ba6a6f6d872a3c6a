"""The few labels about which the bound leaves a doubt: a programme in whole numbers, by SciPy (HiGHS)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.strata.several_dual import Demands

_NODES = 200
"""Nodes that are looked at: a number and not a time, so that every machine finds the same."""

_FEW = 1e-9
_INFEASIBLE = 2

_SMALL = 64
"""Where more choices than these each matter to several estimands, whole numbers would take seconds for
thousandths: the real numbers' bound, and what they are rounded to, are enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The m labels that a better solution may or may not have, one unknown each.

    Parameters
    ----------
    first : float (H,)
        The labels that every better solution has.
    stratum : int (m,)
        Where each further label is.
    gains : float (J, m)
        What it takes off each estimand's Σ A_jh / n_h.
    """

    first: FloatArray
    stratum: IntArray
    gains: FloatArray

    @classmethod
    def between(cls, demands: Demands, first: FloatArray, final: FloatArray) -> Choices:
        """Return the labels from `first` to `final` (H,)."""
        counts = (final - first).astype(np.int64)
        stratum = np.repeat(np.arange(len(first)), counts)
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        n = first[stratum] + offsets
        gains = demands.spread[:, stratum] / np.maximum(n * (n + 1.0), 1.0)
        return cls(first=first, stratum=stratum, gains=gains)

    @property
    def whole(self) -> int:
        """How many of them are decided as whole numbers: all, or none where that would take long."""
        shared = np.count_nonzero(self.gains) > 1.5 * len(self.stratum)
        return 0 if shared and len(self.stratum) > _SMALL else len(self.stratum)

    def counted(self, taken: FloatArray) -> FloatArray:
        """Return n_h (H,) with the labels that were taken."""
        return np.asarray(self.first + np.bincount(self.stratum, taken, minlength=len(self.first)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Minimise constant + objective @ x with rows @ x ≤ limits, choices 0 or 1, the rest from 0."""

    objective: FloatArray
    rows: FloatArray
    limits: FloatArray
    constant: float

    def solved(self, choices: Choices, most: float) -> tuple[FloatArray | None, float]:
        """Return the best x found of those with a value of `most` or less, and what no x comes below.

        There may be no such x: what none comes below is then `most`.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp

        places = np.arange(len(self.objective))
        found = milp(
            self.objective,
            integrality=(places < choices.whole).astype(np.int64),
            bounds=Bounds(0.0, np.where(places < len(choices.stratum), 1.0, np.inf)),
            constraints=LinearConstraint(
                np.vstack([self.rows, self.objective]), -np.inf, np.append(self.limits, most - self.constant)
            ),
            options={"node_limit": _NODES, "mip_rel_gap": _FEW},
        )
        if found.status == _INFEASIBLE:
            return None, most
        bound = found.mip_dual_bound if choices.whole else found.fun
        return found.x, -np.inf if bound is None else self.constant + float(bound)


@dataclass(frozen=True, slots=True)
class Found:
    """The best n_h (H,) found, its value, and what no choice can come below."""

    n_h: FloatArray
    value: float
    bound: float


def searched(
    program: Program,
    choices: Choices,
    n_h: FloatArray,
    rounded: Callable[[FloatArray], FloatArray],
    value: Callable[[FloatArray], float],
    step: float = 0.0,
) -> Found:
    """Return the best whole n_h found.

    Parameters
    ----------
    program : Program
        Its first unknowns are the choices.
    choices : Choices
        The labels in doubt.
    n_h : float (H,)
        A solution to improve on: the programme is asked for better ones alone, which is what makes it quick.
    rounded : callable
        From a solution of the program to a whole n_h that keeps every constraint.
    value : callable
        Of a whole n_h.
    step : float
        The least by which values differ: 1 where costs are whole.
    """
    least = value(n_h)
    wanted = min(least - step * (1 - 1e-6), least * (1 - _FEW))
    x, bound = program.solved(choices, wanted)
    trial = n_h if x is None else rounded(x)
    best = trial if value(trial) < least else n_h
    proved = bound >= wanted * (1 - 1e-12)  # nothing is better than what was there
    return Found(best, value(best), value(best) if proved else min(bound, value(best)))
