"""Raking and the regression estimator: a sample of any design weighted afterwards to known totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray
from stratal.designs.asked import require_sample
from stratal.designs.calibrated_weighting import METHODS, CalibratedWeighting
from stratal.designs.sample import Design, Sample
from stratal.errors import InputError, names_mistyped, near_names, warn_caller
from stratal.population.population import Population

_AS_MANY = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Margins(Design):
    """A sample of another design whose weights are fitted to known totals.

    Parameters
    ----------
    base : mapping
        The design that the units were drawn with, as `Design.to_dict` has it.
    columns : tuple of str (m,)
        Group columns, proxies, or columns of numbers that came along.
    levels : tuple of tuple of str (m,)
        Levels of each group column; none for numbers.
    means : tuple of tuple of float (m,)
        Share of the population in each level; for numbers their mean.
    method : {"raking", "regression"}

    Examples
    --------
    >>> from stratal.designs import SimpleRandom
    >>> design = Margins(base=SimpleRandom(budget=9).to_dict(), columns=("kind",), levels=(("a", "b"),),
    ...                  means=((0.5, 0.5),))
    >>> Design.from_dict(design.to_dict()).drawn_by.kind
    'simple-random'
    """

    kind: ClassVar[str] = "margins"
    base: Mapping[str, Any]
    columns: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    means: tuple[tuple[float, ...], ...]
    method: str = "raking"

    def __post_init__(self) -> None:
        self._set(
            columns=tuple(self.columns),
            levels=tuple(tuple(part) for part in self.levels),
            means=tuple(tuple(float(mean) for mean in part) for part in self.means),
        )

    @property
    def drawn_by(self) -> Design:
        """The design that the units were drawn with."""
        found: Design = Design.from_dict(self.base)
        return found

    @property
    def stratum_names(self) -> tuple[str, ...]:
        """Names of the strata that the units were drawn in (H,)."""
        return self.drawn_by.stratum_names

    def draw(self, population: Population, seed: int) -> Sample:
        """Refuse: the sample is there already."""
        raise InputError(
            "margins are given for a sample that was drawn",
            action="Draw it first: stratal.plan(population, …).draw(seed=…).",
        )

    def weighting(self, sample: Sample, labelled: BoolArray) -> CalibratedWeighting:
        """Return the design's weights, fitted to the totals among the labelled units."""
        base = self.drawn_by.weighting(sample, labelled)
        parts, means = [np.ones((int(labelled.sum()), 1))], [np.ones(1)]
        for column, levels, known in zip(self.columns, self.levels, self.means, strict=True):
            if not levels:
                parts.append(_numbers(sample, column)[labelled, None])
                means.append(np.array(known))
                continue
            codes = np.searchsorted(np.array(levels), sample.groups[column][labelled].astype(np.str_))
            shares = _of_labelled(column, levels, np.array(known), codes)
            there = np.flatnonzero(shares > 0)[1:]
            parts.append((codes[:, None] == there).astype(np.float64))
            means.append(shares[there])
        return CalibratedWeighting.of(base, np.concatenate(parts, axis=1), np.concatenate(means), self.method)


@names_mistyped
def fit_margins(
    sample: Sample,
    margins: str | Sequence[str],
    *,
    totals: Mapping[str, Any] | None = None,
    method: str = "raking",
) -> Sample:
    """Return a sample of any design, weighted so that what is known of the population comes out exactly.

    All that takes a sample takes it: means, metrics, domains, comparisons. One group is post-stratification,
    several are raking, a proxy among them makes the regression estimator (GREG).

    Parameters
    ----------
    sample : Sample
        Of any design, strata, clusters and weights from elsewhere among them.
    margins : str or sequence of str
        Group columns, whose levels' sizes are known (the model's answer: precision and recall then know how
        often each class is predicted); proxies, whose mean is known; or columns of numbers with a total.
    totals : mapping of column to totals, optional
        For a group a mapping of level to units; for a column of numbers its sum over the population. Those of
        the draw (`sample.totals`, the proxies' means) unless given.
    method : {"raking", "regression"}
        Raking keeps all weights positive; regression is linear, and its weights may be negative.

    Returns
    -------
    Sample
        A level that no labelled unit has is left to the others, with a warning.

    Raises
    ------
    InputError
        For columns that are not there or of which nothing is known, totals that do not add up to the
        population, and, when an estimate is made, totals that no weights can reach.

    Notes
    -----
    Deville & Särndal (1992); Särndal, Swensson & Wretman (1992), chapter 6. Choose margins before looking at
    labels, and few: each costs a degree of freedom.

    Examples
    --------
    >>> import stratal
    >>> kinds, tongues = ["chat", "code"] * 50, ["de"] * 70 + ["en"] * 30
    >>> population = stratal.Population.from_arrays(ids=range(100), groups={"kind": kinds, "tongue": tongues})
    >>> sample = stratal.fit_margins(
    ...     stratal.SimpleRandom(budget=30).draw(population, seed=7), ["kind", "tongue"])
    >>> weights = sample.weighting().weights
    >>> float(weights[sample.groups["tongue"] == "de"].sum().round(9))
    0.7
    """
    require_sample(sample, "fit_margins")
    names = (margins,) if isinstance(margins, str) else tuple(margins)
    if method not in METHODS:
        raise InputError("no such method", given=repr(method), allowed=", ".join(METHODS))
    if not names or len(set(names)) < len(names) or isinstance(sample.design, Margins):
        raise InputError(
            "margins are given once, each of a different column",
            given=", ".join(names) or "none",
            action="Give all of them together.",
        )
    found = [_known(sample, name, (totals or {}).get(name)) for name in names]
    design = Margins(
        base=sample.design.to_dict(),
        columns=names,
        levels=tuple(levels for levels, _ in found),
        means=tuple(means for _, means in found),
        method=method,
    )
    return replace(sample, design=design)


def _known(sample: Sample, name: str, given: Any) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Return the levels of a margin and their shares of the population, or no level and a mean."""
    if name in sample.groups and not _is_number(given):
        if isinstance(given, Mapping):
            refuse_other_sizes(sample, name, given)
        return _shares(sample, name, sample.totals.get(name) if given is None else given)
    if given is None and name in sample.proxy_names:
        column = sample.proxy_names.index(name)
        means, sizes = sample.summary.proxy_means[:, column], sample.summary.sizes
        return (), (float(sizes @ means / np.sum(sizes)),)
    if _is_number(given):
        _numbers(sample, name)
        return (), (float(given) / sample.population_size,)
    columns = (*sample.groups, *sample.proxy_names)
    raise InputError(
        f"nothing is known of a margin {name!r}",
        allowed=near_names(name, columns) if columns else "none was drawn along",
        action="Draw with groups= (--groups COL), or give its total in totals=.",
    )


def refuse_other_sizes(sample: Sample, by: str, sizes: Mapping[Any, Any]) -> None:
    """Refuse sizes that are not those that the draw counted.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(groups={"language": ["de"] * 3 + ["en"]})
    >>> refuse_other_sizes(stratal.SimpleRandom(budget=2).draw(population, seed=7), "language", {"de": 4})
    Traceback (most recent call last):
    stratal.errors.InputError: the sizes of 'language' are not those of the population that the sample ...
    """
    known, given = sample.totals.get(by), {str(level): float(count) for level, count in sizes.items()}
    if known is None:
        return
    for level in sorted({*known, *given}):
        if abs(known.get(level, 0) - given.get(level, 0.0)) > _AS_MANY * sample.population_size:
            raise InputError(
                f"the sizes of {by!r} are not those of the population that the sample was drawn from",
                given=f"{given.get(level, 0.0):,.10g} units of level {level!r}",
                allowed=f"{known.get(level, 0):,}",
                action="Leave the sizes out: the sample knows them.",
            )


def _is_number(given: Any) -> bool:
    return isinstance(given, int | float | np.number) and not isinstance(given, bool)


def _shares(
    sample: Sample, name: str, given: Mapping[Any, Any] | None
) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Return the levels of a group column and their shares of the population."""
    if given is None:
        raise InputError(
            f"how many units each level of {name!r} has is not known",
            action=f"Give totals={{{name!r}: {{level: units, …}}}}.",
        )
    sizes = {str(level): float(units) for level, units in given.items() if units}
    levels = tuple(sorted(sizes))
    strange = sorted({str(value) for value in sample.groups[name].tolist()} - set(levels))
    if strange:
        raise InputError(
            f"{len(strange)} levels of {name!r} were drawn and have no total (first: {strange[0]!r})",
            allowed=", ".join(map(repr, levels[:8])),
        )
    whole = sum(sizes.values())
    if abs(whole - sample.population_size) > _AS_MANY * sample.population_size:
        raise InputError(
            f"the totals of {name!r} do not add up to the population",
            given=f"{whole:,.0f} units",
            allowed=f"{sample.population_size:,}",
        )
    return levels, tuple(sizes[level] / whole for level in levels)


def _numbers(sample: Sample, name: str) -> FloatArray:
    """Return a column of numbers of the drawn units (n,)."""
    if name in sample.proxy_names:
        return np.asarray(sample.proxies[:, sample.proxy_names.index(name)])
    columns: dict[str, AnyArray] = {**sample.shown, **sample.groups}
    if name not in columns:
        raise InputError(
            f"the sample has no column {name!r}",
            allowed=near_names(name, columns) if columns else "none was drawn along",
            action="Draw with groups= or show=.",
        )
    try:
        return np.asarray(columns[name], dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"margin {name!r} is not numeric", action="Give a total for each level.") from None


def _of_labelled(column: str, levels: tuple[str, ...], shares: FloatArray, codes: AnyArray) -> FloatArray:
    """Return the shares of the levels (H,), those without a labelled unit left to the others."""
    empty = np.bincount(codes, minlength=len(levels)) == 0
    if not np.any(empty):
        return shares
    named = ", ".join(levels[h] for h in np.flatnonzero(empty)[:3])
    warn_caller(
        f"no unit with {column} = {named} has a label ({shares[empty].sum():.1%} of the population): the "
        "margin is fitted to the other levels, and these units are taken to be like the others"
    )
    left = np.where(empty, 0.0, shares)
    return np.asarray(left / left.sum())
