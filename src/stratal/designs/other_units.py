"""The units beside labelled ones from elsewhere: how many of each stratum, and what their proxies are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray, Record
from stratal.errors import InputError
from stratal.labels.damaged_ids import bare_form
from stratal.population.declaration import ROW
from stratal.population.population import Population
from stratal.population.rules.rule import Categories, Everything, Rule
from stratal.population.same_value import fewer_digits, same_value
from stratal.population.summary import Drawn, ProxyInfo
from stratal.randomness import id_texts

WHOLE = "all"
"""What the one stratum is called where there are none."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OtherUnits(Record):
    """Units of a population other than the labelled ones, by stratum.

    Parameters
    ----------
    names : tuple of str (H,)
    counts : int (H,)
    means, variances : float (H,), optional
        Of the proxy, divisor count − 1; None without one.
    proxy : ProxyInfo, optional
    notes : tuple of str
        How they were told from the labelled ones.

    Examples
    --------
    >>> population = Population.from_arrays(proxy=[0.2, 0.4, 0.9], ids=["a", "b", "c"])
    >>> others = other_units(population, ["c"], proxy="proxy")
    >>> others.counts, others.means.round(3), others.variances.round(3)
    (array([2]), array([0.3]), array([0.02]))
    """

    names: tuple[str, ...]
    counts: IntArray
    means: FloatArray | None
    variances: FloatArray | None
    proxy: ProxyInfo | None = None
    notes: tuple[str, ...] = field(default=())

    def moments(self) -> dict[str, list[Any]]:
        """Return the table that `proxy_moments` takes."""
        assert self.means is not None
        assert self.variances is not None
        columns = {"mean": self.means, "variance": self.variances, "count": self.counts}
        return {"stratum": list(self.names), **{name: values.tolist() for name, values in columns.items()}}

    def without(self, part: OtherUnits) -> OtherUnits:
        """Return the units without those of a part of them, which must have proxies of the same strata.

        Raises
        ------
        InputError
            For a part with more units than there are in a stratum.

        Examples
        --------
        >>> both = other_units({"proxy": [0.2, 0.4, 0.9]}, None, proxy="proxy")
        >>> both.without(other_units({"proxy": [0.9]}, None, proxy="proxy")).means.round(3)
        array([0.3])
        """
        at = {name: h for h, name in enumerate(part.names)}
        here = [at.get(name) for name in self.names]
        taken = [[0 if h is None else values[h] for h in here] for values in part._sums()]
        n, own, own_squares = (np.array(values) for values in taken)
        if set(at) - set(self.names) or np.any(n > self.counts):
            raise InputError(
                "the labelled units are not among those of the population",
                given=f"{int(part.counts.sum())} of {int(self.counts.sum())}",
                action="Leave includes_labelled out if they are other units.",
            )
        counts, means, squares = _difference(self._sums(), (n.astype(np.int64), own, own_squares))
        left = counts > 0
        return OtherUnits(
            names=tuple(name for name, keep in zip(self.names, left.tolist(), strict=True) if keep),
            counts=counts[left],
            means=means[left],
            variances=squares[left] / np.maximum(counts[left] - 1, 1),
            proxy=self.proxy,
            notes=self.notes,
        )

    def _sums(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return counts, means and sums of squared deviations (H,)."""
        assert self.means is not None
        assert self.variances is not None
        return self.counts, self.means, self.variances * np.maximum(self.counts - 1, 1)


def other_units(
    source: Any,
    labelled: Sequence[str] | None,
    *,
    proxy: str | None = None,
    stratum: str | None = None,
    id_name: str | None = None,
    columns: Mapping[str, AnyArray] | None = None,
) -> OtherUnits:
    """Return what is known of the units of a population that are not the labelled ones.

    Parameters
    ----------
    source : path, dataframe, mapping of columns, or Population
    labelled : sequence of str, optional
        Ids of the labelled units. Those that are in the population are taken out; without ids on either
        side, its rows are taken as other units.
    proxy, stratum, id_name : str, optional
        Its columns.
    columns : mapping of str to (n,) array, optional
        The same columns of the labelled units, which those with their ids must have.

    Raises
    ------
    InputError
        If some ids of the labelled units are in the population and others are not, or only in another
        spelling (007 and 7), and if a unit has another proxy or stratum there.
    """
    population, has_ids = _population(source, proxy, stratum, id_name)
    known = list(labelled) if labelled is not None and has_ids else []
    found = population.find(known) if known else None
    if found is not None:
        _refuse_other_labelled(population, known, found, {} if columns is None else columns)
    rule = _rule(population, stratum)
    names = rule.levels if isinstance(rule, Categories) else (WHOLE,)
    k = None if proxy is None else population.proxy_names.index(population.proxy_info(proxy).name)
    counts, means, squares = _without(population, rule, found, k)
    left = counts > 0
    counts, names = counts[left], tuple(name for name, keep in zip(names, left.tolist(), strict=True) if keep)
    if not len(counts):
        raise InputError("every unit of the population is labelled", action="Leave the population out.")
    variances = None if k is None else squares[left] / np.maximum(counts - 1, 1)
    return OtherUnits(
        names=names,
        counts=counts,
        means=None if k is None else means[left],
        variances=variances,
        proxy=None if k is None else population.proxies[k],
        notes=(
            *population.notes,
            _told(population, labelled, has_ids, 0 if found is None else len(found.ids)),
        ),
    )


def _population(
    source: Any, proxy: str | None, stratum: str | None, id_name: str | None
) -> tuple[Population, bool]:
    """Return the population, and whether its units have ids."""
    if isinstance(source, Population):
        return source, not source.numbered_by_row and source.id_name != ROW
    columns: dict[str, Any] = {"id": id_name, "proxy": proxy, "groups": stratum or ()}
    if isinstance(source, Mapping):
        import pyarrow as pa

        source = pa.table({name: pa.array(np.asarray(values)) for name, values in source.items()})
    read = Population.read if isinstance(source, str | Path) else Population.from_table
    try:
        return read(source, **columns), True
    except InputError as error:
        if id_name is not None or "no column is called 'id'" not in error.what:
            raise
    return read(source, **{**columns, "id": ROW}), False


def _refuse_other_labelled(
    population: Population, labelled: list[str], found: Drawn, columns: Mapping[str, AnyArray]
) -> None:
    """Refuse ids that match only in part, and units that are not as they are among the labelled ones."""
    place = {text: row for row, text in enumerate(id_texts(found.ids))}
    absent = [text for text in labelled if text not in place]
    spelt = {} if not absent else _other_spelling(population, absent[:_TRIED])
    if spelt or (place and absent):
        one = next((text for text in absent if text in spelt), absent[0])
        count = f"{len(labelled) - len(absent):,} of {len(labelled):,} labelled units, but not {one!r}"
        raise InputError(
            "the ids of the labelled units match the population's only in part",
            given=count + (f", which it has as {spelt[one]!r}" if spelt else ""),
            allowed="all labelled units among the population's, or none",
            action="Write ids alike in both files; give the whole population, or one without labelled units.",
        )
    proxies = {name: found.proxies[:, k] for k, name in enumerate(population.proxy_names)}
    known = {name.casefold(): values.tolist() for name, values in columns.items()}  # found so in either file
    for name, values in {**found.groups, **proxies}.items():
        for text, own in zip(labelled, known.get(name.casefold(), ()), strict=False):
            there = values[place[text]].item() if text in place else own
            if not same_value(own, there):
                why = fewer_digits(own, there)
                raise InputError(
                    f"column {name!r} of unit {text!r} is not the same in both files{why}",
                    given=f"{own!r} among the labelled units, {there!r} in the population",
                    action="Give the population that the labelled units are from, unchanged.",
                )


_TRIED = 50
"""Labelled units whose ids are looked for in another spelling: files are spelt alike throughout."""


def _other_spelling(population: Population, ids: Sequence[str]) -> dict[str, str]:
    """Return how the population spells ids that it does not have: with zeros in front, with .0 or without."""
    tried: dict[str, str] = {}
    for text in ids:
        bare = bare_form(text)
        forms = [bare, f"{bare}.0", *("0" * zeros + bare for zeros in range(1, 9))]
        tried |= {form: text for form in forms if form != text}
    return {tried[there]: there for there in id_texts(population.find(list(tried)).ids)}


def _rule(population: Population, stratum: str | None) -> Rule:
    if stratum is None:
        return Everything()
    levels = tuple(sorted(population.levels(stratum)))
    return Categories(column=population.require_group(stratum), levels=levels, codes=np.arange(len(levels)))


def _without(
    population: Population, rule: Rule, found: Drawn | None, k: int | None
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return counts, proxy means and sums of squared deviations (H,) of all units but those found."""
    summary = population.summarise(rule)
    sizes, none = summary.sizes, np.zeros(len(summary.sizes))
    mean = none if k is None else summary.proxy_means[:, k]
    squares = none if k is None else summary.proxy_covariances[:, k, k] * sizes
    if found is None or not len(found.ids):
        return sizes, mean, squares
    codes = rule.assign(found.groups) if isinstance(rule, Categories) else np.zeros(len(found.ids), np.int64)
    n = np.bincount(codes, minlength=len(sizes))
    values = np.zeros(len(codes)) if k is None else found.proxies[:, k]
    own = np.bincount(codes, values, minlength=len(sizes)) / np.maximum(n, 1)
    own_squares = np.bincount(codes, (values - own[codes]) ** 2, minlength=len(sizes)).astype(np.float64)
    return _difference((sizes, mean, squares), (n, own, own_squares))


def _difference(
    whole: tuple[IntArray, FloatArray, FloatArray], part: tuple[IntArray, FloatArray, FloatArray]
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return counts, means and sums of squared deviations (H,) of what is left when a part is taken out."""
    (sizes, mean, squares), (n, own, own_squares) = whole, part
    left = sizes - n
    others = (sizes * mean - n * own) / np.maximum(left, 1)
    between = n * left / np.maximum(sizes, 1) * (own - others) ** 2
    return left, others, np.maximum(squares - own_squares - between, 0.0)


def _told(population: Population, labelled: Sequence[str] | None, has_ids: bool, found: int) -> str:
    size = f"the population has {population.size:,} rows"
    if labelled is None or not has_ids:
        return f"{size}, taken as units other than the labelled ones, since ids do not tell"
    if found == 0:
        return f"{size}, none of which has the id of a labelled unit: the labelled ones come on top"
    return f"{size}, the {found:,} labelled units among them"
