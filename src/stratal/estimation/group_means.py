"""The means of the groups of a category, of which there may be very many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, Record
from stratal.designs.sample import Sample
from stratal.estimation.domain_means import domain_mean
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import ComputedRows
from stratal.estimation.respondents import Respondents
from stratal.population.rules import Categories, Crossed

# Maximum number of groups whose estimates are stored: each has arrays of all labelled units.
MAX_STORED_GROUPS = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupMeans(ComputedRows, Record):
    """The mean outcome of each group, computed when it is read and not stored.

    Parameters
    ----------
    z : float (m,)
        Outcomes of the labelled units.
    codes : int (m,)
        Groups of these units, 0 … G − 1; −1 for units without a group.
    names : tuple of str (G,)
    sample : Sample
    respondents : Respondents
    bounds : (float, float), optional
        Bounds of the outcome.
    target : {"population", "superpopulation"}
    proxy_residuals : (float (m,), float), optional
        Residuals on the proxy, and the factor of their variance; see `domain_mean`.
    lam : mapping of str to tuple of float
        The λ of each proxy in the groups that have residuals.
    whole_strata : frozenset of str
        Names of the groups that are known to be whole strata.
    """

    z: FloatArray
    codes: IntArray
    names: tuple[str, ...]
    sample: Sample
    respondents: Respondents
    bounds: tuple[float, float] | None
    target: str
    proxy_residuals: tuple[FloatArray, float] | None
    lam: Mapping[str, tuple[float, ...]]
    whole_strata: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, index: int) -> Estimate: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Estimate]: ...
    def __getitem__(self, index: int | slice) -> Estimate | Sequence[Estimate]:
        if isinstance(index, slice):
            return [self.estimate(k) for k in range(*index.indices(len(self)))]
        return self.estimate(range(len(self))[index])

    def estimate(self, k: int) -> Estimate:
        """Return the estimate of one group."""
        name = self.names[k]
        estimate = domain_mean(
            self.z,
            self.codes == k,
            self.respondents.weighting,
            bounds=self.bounds,
            target=self.target,
            proxy_residuals=self.proxy_residuals,
            is_whole_strata=name in self.whole_strata,
        )
        estimator = "linearised"
        lam: tuple[float, ...] = ()
        # With one label, `domain_mean` does not use the residuals.
        if self.proxy_residuals is not None and estimate.n > 1:
            estimator = "ppi++"
            lam = self.lam[name]
        return self.respondents.complete(
            estimate, self.sample, label={"domain": name}, estimator=estimator, lam=lam
        )

    def label(self, index: int) -> dict[str, str]:
        """Return the label of an estimate."""
        return {"domain": self.names[index]}

    @property
    def counts(self) -> IntArray:
        """Labelled units of each group (G,)."""
        return np.bincount(self.codes[self._has_group], minlength=len(self))

    @property
    def values(self) -> FloatArray:
        """The weighted means (G,) in one pass; NaN for a group without labels."""
        means = self._weighted_means(self.z)
        if self.proxy_residuals is not None:
            # With one label, `domain_mean` does not use the residuals.
            means = np.where(self.counts > 1, self._weighted_means(self.proxy_residuals[0]), means)
        if self.bounds is None:
            return means
        return np.asarray(np.clip(means, *self.bounds))

    def with_own_notes(self) -> Iterator[Estimate]:
        """Yield the estimates that may have notes of their own: without labels, or with few clusters."""
        if self.respondents.weighting.unit_clusters is not None:
            yield from self
            return
        for k in np.flatnonzero(self.counts == 0).tolist():
            yield self.estimate(k)

    @property
    def _has_group(self) -> BoolArray:
        return self.codes >= 0

    def _weighted_means(self, variable: FloatArray) -> FloatArray:
        """Return Σ w v / Σ w over the labelled units of each group (G,)."""
        codes = self.codes[self._has_group]
        weights = self.respondents.weighting.weights[self._has_group]
        totals = np.bincount(codes, weights, minlength=len(self))
        sums = np.bincount(codes, weights * variable[self._has_group], minlength=len(self))
        # Groups without labels have the mean NaN.
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(sums / totals)


def levels_of_whole_strata(sample: Sample, column: object) -> frozenset[str]:
    """Return the levels of a group column that are known to be whole strata.

    The strata were formed by the column, or all units of a level were drawn.
    """
    if not isinstance(column, str) or column not in sample.groups:
        return frozenset()
    drawn_levels, drawn_counts = np.unique(sample.groups[column].astype(np.str_), return_counts=True)
    totals = sample.totals.get(column, {})
    complete = {
        level
        for level, count in zip(drawn_levels.tolist(), drawn_counts.tolist(), strict=True)
        if totals.get(level) == count
    }
    rule = sample.design.rule
    if isinstance(rule, Crossed):
        rule = rule.categories
    if isinstance(rule, Categories) and rule.column == column:
        levels_by_code = np.bincount(rule.codes)
        complete |= {
            level for level, code in zip(rule.levels, rule.codes, strict=True) if levels_by_code[code] == 1
        }
    return frozenset(complete)


def group_codes(groups: Sequence[object], names: Sequence[str]) -> IntArray:
    """Return the index of each unit's group among the names (n,); −1 for a unit of no group."""
    code_by_name = {name: code for code, name in enumerate(names)}
    codes = (-1 if group is None else code_by_name.get(str(group), -1) for group in groups)
    return np.array(list(codes), dtype=np.int64)
