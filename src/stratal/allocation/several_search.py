"""Branch and bound over the few labels about which the bound leaves a doubt, by SciPy's linear programmes."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from stratal.allocation.several_dual import Demands
from stratal.arrays import FloatArray, IntArray

_NODES = 60
_WHOLE = 1e-7
_FEW = 1e-9


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

    def counted(self, taken: FloatArray) -> FloatArray:
        """Return n_h (H,) with the labels that were taken."""
        return np.asarray(self.first + np.bincount(self.stratum, taken, minlength=len(self.first)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Minimise constant + objective @ x with rows @ x ≤ limits, choices from 0 to 1, the rest from 0."""

    objective: FloatArray
    rows: FloatArray
    limits: FloatArray
    constant: float

    def relaxed(self, low: FloatArray, high: FloatArray) -> tuple[float, FloatArray] | None:
        """Return the least value and the x (fractions) between `low` and `high`; None if none fits."""
        from scipy.optimize import linprog

        free = len(self.objective) - len(low)
        limits = np.column_stack([np.append(low, np.zeros(free)), np.append(high, np.full(free, np.inf))])
        solved = linprog(self.objective, A_ub=self.rows, b_ub=self.limits, bounds=limits, method="highs-ds")
        return (self.constant + float(solved.fun), solved.x) if solved.status == 0 else None


@dataclass(frozen=True, slots=True)
class Found:
    """The best n_h (H,) found, its value, and what no choice can come below."""

    n_h: FloatArray
    value: float
    bound: float


@dataclass(order=True, slots=True)
class _Node:
    bound: float
    number: int
    x: FloatArray = field(compare=False)
    low: FloatArray = field(compare=False)
    high: FloatArray = field(compare=False)


def branched(
    program: Program,
    choices: Choices,
    n_h: FloatArray,
    rounded: Callable[[FloatArray], FloatArray],
    value: Callable[[FloatArray], float],
    step: float = 0.0,
) -> Found:
    """Return the best whole n_h found, the node with the lowest bound first, a fixed number of nodes at most.

    Parameters
    ----------
    program : Program
        Its first unknowns are the choices.
    choices : Choices
        The labels in doubt.
    n_h : float (H,)
        A solution to improve on.
    rounded : callable
        From fractions of the program to a whole solution.
    value : callable
        Of a whole solution.
    step : float
        The least by which values differ: 1 where costs are whole.
    """
    count = len(choices.stratum)
    best, least = n_h, value(n_h)
    nodes: list[_Node] = []

    def visit(low: FloatArray, high: FloatArray) -> None:
        nonlocal best, least
        solved = program.relaxed(low, high)
        if solved is None or solved[0] > _wanted(least, step):
            return
        trial = rounded(solved[1])
        if value(trial) < least:
            best, least = trial, value(trial)
        heapq.heappush(nodes, _Node(solved[0], len(nodes) + visited, solved[1], low, high))

    visited = 0
    visit(np.zeros(count), np.ones(count))
    for _ in range(_NODES):
        if not nodes or nodes[0].bound > _wanted(least, step):
            return Found(best, least, least)
        node, visited = heapq.heappop(nodes), visited + 2
        fraction = np.abs(node.x[:count] - np.round(node.x[:count]))
        split = int(np.argmax(fraction))
        if fraction[split] <= _WHOLE:
            continue
        same = choices.stratum == choices.stratum[split]
        before, after = same & (np.arange(count) <= split), same & (np.arange(count) >= split)
        visit(node.low, np.where(after, 0.0, node.high))
        visit(np.where(before, 1.0, node.low), node.high)
    return Found(best, least, min(nodes[0].bound, least) if nodes else least)


def _wanted(least: float, step: float) -> float:
    """Return the value that a better solution has at most."""
    return least - step * (1 - 1e-6) if step else least * (1 - _FEW)
