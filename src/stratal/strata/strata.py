"""`Strata`: a partition of the population, with the moments of the proxy in each part."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, BoolArray
from stratal.errors import InputError
from stratal.population.expressions import Expression
from stratal.population.rules import Everything, Rule
from stratal.report.figures import Bars, Plotted
from stratal.report.text import Tabular, plain_dict
from stratal.strata.moments import Moments


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Strata(Moments, Tabular, Plotted):
    """A partition of the population into H strata.

    Parameters
    ----------
    rule : Rule
        Puts a unit into its stratum; kept in the sample file, so that a later round finds the same strata.
    names : tuple of str (H,)
        Readable names, such as `proxy in [0.5, 0.9)`.
    sizes, proxy_means, proxy_variances, conditional_variances, scaled, bounds
        As in `stratal.strata.moments.Moments`.
    method : str
        How the strata were made.
    notes : tuple of str
        What the user should know: fewer strata than asked for, merged ones.
    known : tuple of Expression or None (H,)
        For a stratum in which the estimand's influence is known by construction, and which therefore gets no
        label, the formula that is 1 for its units; empty where there is no such stratum.
    codes : int (N,), optional
        Stratum of every unit, for populations in memory. Not part of equality, and not kept in a sample.

    Examples
    --------
    >>> from stratal.population import Population
    >>> from stratal.strata import stratify
    >>> strata = stratify(Population.from_arrays(proxy=[0.1, 0.2, 0.8, 0.9]), n_strata=2)
    >>> strata.sizes, strata.codes
    (array([2, 2]), array([0, 0, 1, 1]))
    """

    rule: Rule
    names: tuple[str, ...]
    method: str = "k-means"
    notes: tuple[str, ...] = ()
    known: tuple[Expression | None, ...] = ()
    codes: AnyArray | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        self._freeze()
        if self.known and len(self.known) != len(self.sizes):
            raise InputError("known must have one entry per stratum", given=len(self.known))
        lengths = {len(self.names), len(self.sizes), len(self.proxy_means), self.rule.n_strata}
        if len(lengths) != 1 or np.any(self.sizes <= 0):
            raise InputError(
                "strata must have one name, size and moment each, and no stratum may be empty",
                action="Make strata by stratal.strata.stratify(population).",
            )

    @classmethod
    def of(
        cls, moments: Moments, rule: Rule | None = None, names: tuple[str, ...] = ("all",), **more: Any
    ) -> Strata:
        """Return the strata with these moments; all units as one unless there is a rule."""
        values = {entry.name: getattr(moments, entry.name) for entry in fields(Moments)}
        return cls(rule=Everything() if rule is None else rule, names=names, **{**values, **more})

    @property
    def is_known(self) -> BoolArray:
        """Which strata need no label, as the influence is known there by construction (H,)."""
        known = self.known or (None,) * self.n_strata
        return np.array([entry is not None for entry in known], dtype=bool)

    def _columns(self) -> dict[str, Any]:
        return {
            "stratum": self.names,
            "units": self.sizes,
            "mean_proxy": self.proxy_means,
            "standard_deviation": self.standard_deviations,
        }

    def _plot(self) -> Bars:
        """Draw each stratum's share of the units, and of what outcomes are expected to vary."""
        spread = self.sizes * self.standard_deviations
        shares = spread / spread.sum() if spread.sum() > 0 else self.weights
        return Bars(
            title=f"{self.n_strata} strata of {self.size:,} units ({self.method})",
            x_label="share",
            rows=list(zip(self.names, self.weights.tolist(), shares.tolist(), strict=True)),
            series=["of the units", "of N_h S_h (Neyman)"],
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready description (without codes)."""
        described = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "codes"}
        known = [entry and entry.to_dict() for entry in self.known]
        described |= {"rule": self.rule.to_dict(), "known": known}
        return plain_dict({name: value for name, value in described.items() if name != "known" or known})

    @staticmethod
    def from_dict(described: dict[str, Any]) -> Strata:
        """Return the strata that `to_dict` described."""
        low, high = described["bounds"]
        known = tuple(entry and Expression.from_dict(entry) for entry in described.get("known", ()))
        bounds = (-np.inf if low is None else low, np.inf if high is None else high)
        texts = {name: tuple(described[name]) for name in ("names", "notes")}
        rule = Rule.from_dict(described["rule"])
        return Strata(**{**described, **texts, "rule": rule, "bounds": bounds, "known": known})
