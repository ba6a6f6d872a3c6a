"""A population that stays a table: every question is a query, run where the rows are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray
from stratal.errors import InputError
from stratal.population.declaration import OWN_STRATUM_GROUP, Declaration
from stratal.population.digest import KEY_BITS, Digested, PopulationDigest, exponent_of
from stratal.population.distribution import Extent, LevelBins
from stratal.population.expressions import Expression
from stratal.population.population import Population
from stratal.population.queries import selecting
from stratal.population.queries.counting import TableCounter, columns_of, level_bins
from stratal.population.queries.translate import query_averages, with_codes
from stratal.population.queries.units import checked, units_of
from stratal.population.rules import Rule
from stratal.population.summary import (
    Candidates,
    Contents,
    Drawn,
    ProxyInfo,
    Size,
    SizeProfile,
    StratumSummary,
    proxy_info_for,
    rest_of,
)
from stratal.randomness import KEY_DIGITS, KeyArray, check_seed, shown_order, uniforms
from stratal.tables.engine import in_byte_order
from stratal.tables.source import Source

_FEW = 2**58
"""Keys up to this are those of one unit in 64: as many rows come back beside the sums."""


class TablePopulation(Population):
    """N units as the rows of a table; made by `Population.read` and `Population.from_table`.

    Parameters
    ----------
    source : Source
        Where the rows are.
    declared : Declaration
        What the columns are.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"id": [1, 2, 3], "proxy": [0.9, 0.2, 0.6], "language": ["de", "en", "de"]})
    >>> population = Population.from_table(table, proxy="proxy", groups="language")
    >>> population.levels("language")
    {'de': 2, 'en': 1}
    """

    def __init__(self, *, source: Source, declared: Declaration) -> None:
        source, self._units = source.counted(), units_of(source, declared)
        self._facts = facts = checked(self._units, source, declared)
        self._source = replace(source, rows=facts.size)
        moments, kind = declared.second_moments, (declared.bounds, declared.scaled)
        super().__init__(
            Contents(
                size=facts.size,
                proxies=tuple(
                    proxy_info_for(name, *facts.extents[name], *kind, moments.get(name), declared.label)
                    for name in declared.proxies
                ),
                groups=declared.groups,
                shown=declared.shown,
                features=declared.features,
                id_name=declared.id,
                predicted=declared.predicted,
                notes=source.notes,
                own_stratum=OWN_STRATUM_GROUP if declared.missing else None,
            )
        )
        self._summaries: list[tuple[Rule, StratumSummary]] = []

    # ---- what it answers

    def _counter(self, info: ProxyInfo) -> TableCounter:
        """Return what asks one group-by, or two where it has to look closer."""
        units, extents = self._units, self._facts.extents
        second = info.second_moment
        return TableCounter(
            self._source.run,
            units.table,
            units.numbers[info.name],
            second and units.numbers[second],
            whole=Extent(*extents[info.name], self.size),
            second_extent=extents[second] if second else None,
        )

    def _level_bins(self, by: str, info: ProxyInfo) -> LevelBins:
        """Return what two or three queries count of all levels."""
        units, second = self._units, info.second_moment
        names = units.categories[by], units.numbers[info.name], second and units.numbers[second]
        return level_bins(self._source.run, self._source.backend, units.table, *names)

    def levels(self, group: str) -> dict[str, int]:
        """Return the number of units in each level of a group column."""
        table = self._units.table
        level = table[self._units.categories[self.require_group(group)]]
        answer = self._source.run(table.group_by(level=level).aggregate(n=table.count()))
        _texts(answer.column("level"))
        found = answer.to_pylist()
        return {row["level"]: int(row["n"]) for row in sorted(found, key=lambda row: str(row["level"]))}

    def codes(self, rule: Rule) -> None:
        """Return `None`: the rows are not in memory."""
        return

    def summarise(self, rule: Rule, codes: IntArray | None = None) -> StratumSummary:
        """Return sizes and proxy moments per stratum: one group-by, centred by the engine."""
        for known, summary in self._summaries:
            if known == rule:
                return summary
        coded = with_codes(rule, self._units, self._units.table)
        columns = [coded[self._units.numbers[info.name]] for info in self.proxies]
        measures: dict[str, Any] = {"n": coded.count()}
        for a, left in enumerate(columns):
            measures[f"mean{a}"] = left.mean()
            measures[f"cov{a}_{a}"] = left.var(how="pop")
            measures |= {f"cov{a}_{b}": left.cov(columns[b], how="pop") for b in range(a)}
        found = columns_of(self._source.run(coded.group_by("code").aggregate(**measures)))
        summary = _summary(found, rule, len(columns))
        self._summaries.append((rule, summary))
        return summary

    def _under(
        self, rule: Rule, limits: KeyArray, counts: IntArray, seed: int, codes: IntArray | None
    ) -> tuple[Any, IntArray, KeyArray, AnyArray]:
        found = self._below(rule, limits, counts, seed)
        keys = _keys(found.column("digest").to_pylist())
        return found, found.column("code").to_numpy().astype(np.int64), keys, _texts(found.column("unit_id"))

    def _below(self, rule: Rule, limits: KeyArray, counts: IntArray, seed: int) -> Any:
        """Return the units whose key is at most their stratum's limit (H,); the pass also makes the digest.

        That is one pass where the engine hands on rows beside sums: what is below the highest limit comes
        back and is then put into its stratum.
        """
        units, highest = self._units, int(limits[counts > 0].max(initial=np.uint64(0)))
        if seed in self._digests or highest > _FEW or not selecting.collects_rows(units):
            return self._source.run(selecting.smallest(rule, units, limits, counts, seed))
        bits = highest >> (4 * KEY_DIGITS - KEY_BITS)
        row = self._source.run(selecting.digested(units, self._digested, seed, bits))
        self._digests[seed] = selecting.digest_of(self._digested, row.drop_columns("rows").to_pylist()[0])
        found = selecting.rows_of(row.column("rows"))
        coded = self._source.run(selecting.smallest(rule, selecting.only(units, found), limits, counts, seed))
        place = {text: at for at, text in enumerate(found.column("unit_id").to_pylist())}
        rows = [place[text] for text in coded.column("unit_id").to_pylist()]
        found = found.take(np.array(rows, dtype=np.int64))
        for name in ("digest", "code"):
            found = found.append_column(name, coded.column(name))
        return found

    def digest(self, seed: int) -> PopulationDigest:
        """Return the sums by which samples of this seed know the population again: one query."""
        if seed not in self._digests:
            row = self._source.first(selecting.digested(self._units, self._digested, seed))
            self._digests[seed] = selecting.digest_of(self._digested, row)
        return self._digests[seed]

    @cached_property
    def _digested(self) -> Digested:
        """The columns of the digest, by the names that the units' table has for them."""
        units, extents, infos = self._units, self._facts.extents, {info.name: info for info in self.proxies}

        def number(name: str) -> tuple[str, int]:
            return units.numbers[name], exponent_of(*extents[name])

        def moments(proxy: str) -> tuple[str, int] | None:
            second = infos[proxy].second_moment
            return None if second is None else number(second)

        return Digested.of(self.contents, number, moments, units.categories.__getitem__)

    def means_of(self, formulas: Sequence[Expression]) -> FloatArray:
        """Return the means (q,) of formulas: one query."""
        row = self._source.first(query_averages(list(formulas), self._units))
        return np.array([float(row[f"m{j}"]) for j in range(len(formulas))])

    def batches(self, columns: tuple[str, ...], size: int = 262_144) -> Iterator[dict[str, AnyArray]]:
        """Yield the named columns in the order of the ids' text: the same however the rows are stored."""
        units = self._units
        internal = {name: units.internal(name, units.numbers) for name in columns}
        ordered = units.table.order_by(in_byte_order(units.backend, units.table.unit_id)).select(
            *dict.fromkeys(internal.values())
        )
        for batch in self._source.batches(ordered, size):
            yield {name: _plain(batch.column(column)) for name, column in internal.items()}

    # ---- unequal probabilities, an order, groups

    def has_second_moments(self, proxy: str) -> bool:
        """Return whether E[z² | x] is known beside a proxy."""
        return self.proxy_info(proxy).second_moment is not None

    def size_profile(self, size: Size, count: int) -> SizeProfile:
        """Return the extent, the sum and the `count` largest values of a size measure: three queries."""
        sized = self._sized(size)
        low = float(self._source.first(selecting.extent(sized))["low"])
        top = self._source.run(selecting.largest(sized, min(count, self.size)))
        largest = np.sort(top.column("size_measure").to_numpy())[::-1]
        cap, total = float(largest[-1]), 0
        if low > 0:
            total = int(self._source.first(selecting.total_steps(sized, cap))["total"])
        return SizeProfile(units=self.size, low=low, largest=largest, rest=rest_of(total, cap, len(largest)))

    def below(self, size: Size, limit: float, seed: int) -> Candidates:
        """Return the units whose permanent random number u is below `limit` times their size."""
        seed, sized = check_seed(seed), self._sized(size)
        high = float(self._source.first(selecting.extent(sized))["high"])
        found = self._source.run(selecting.candidates(sized, self._units, high, limit, seed))
        u = uniforms(_keys(found.column("digest").to_pylist()))
        sizes = found.column("size_measure").to_numpy()
        kept = np.flatnonzero(u < limit * sizes)
        drawn, order = self._taken(found.take(kept), seed)
        return Candidates(drawn=drawn, uniform=u[kept][order], size=sizes[kept][order])

    def at_ranks(self, column: str, ranks: IntArray, seed: int) -> Drawn:
        """Return the units at these ranks (n,), from 0, when sorted by a column: one sort by the engine."""
        seed = check_seed(seed)
        found = self._source.run(selecting.ranked(self._units, column, ranks, seed))
        return self._taken(found, seed)[0]

    def members(self, group: str, levels: tuple[str, ...], seed: int) -> Drawn:
        """Return every unit of these levels of a group column."""
        found = self._source.run(selecting.in_levels(self._units, self.require_group(group), levels))
        return self._taken(found, seed)[0]

    def find(self, ids: Sequence[str]) -> Drawn:
        """Return the units that have one of these ids, as text; those of no unit are left out."""
        return self._taken(self._source.run(selecting.with_ids(self._units, ids)), 0)[0]

    def _sized(self, size: Size) -> Any:
        second = self.proxy_info(size.column).second_moment if size.second else None
        return selecting.with_size(size, self._units, second)

    def _taken(self, found: Any, seed: int, stratum: IntArray | None = None) -> tuple[Drawn, IntArray]:
        """Return found units in the order in which they are shown, and that order (n,)."""
        ids, units = _ids(found.column("unit_id"), self._units.integer_ids), self._units
        order = shown_order(ids, seed)
        found = found.take(order)
        proxies = [found.column(units.numbers[name]).to_numpy() for name in self.proxy_names]
        drawn = Drawn(
            ids=ids[order],
            stratum=np.zeros(len(ids), np.int64) if stratum is None else stratum[order],
            proxies=np.stack(proxies, axis=1) if proxies else np.empty((len(ids), 0)),
            groups={name: _texts(found.column(column)) for name, column in units.categories.items()},
            shown={name: _objects(found.column(column)) for name, column in units.shown.items()},
            features={name: found.column(units.numbers[name]).to_numpy() for name in self.feature_names},
        )
        return drawn, order


def _summary(found: dict[str, Any], rule: Rule, k: int) -> StratumSummary:
    """Spread the group-by's rows over all H strata, empty ones included."""
    if np.ma.is_masked(found["code"]) or found["code"].dtype.kind != "i":
        raise InputError(
            "the table has a category that the strata do not know",
            given=f"rule {rule.kind!r}",
            action="Stratify this population, or give the one that the strata came from.",
        )
    codes = found["code"].astype(np.int64)

    def spread(name: str) -> FloatArray:
        full = np.zeros(rule.n_strata)
        full[codes] = found[name]
        return full

    covariances = np.zeros((rule.n_strata, k, k))
    for a in range(k):
        for b in range(a + 1):
            covariances[:, a, b] = covariances[:, b, a] = spread(f"cov{a}_{b}")
    means = [spread(f"mean{a}") for a in range(k)]
    return StratumSummary(
        sizes=spread("n").astype(np.int64),
        proxy_means=np.stack(means, axis=1) if means else np.empty((rule.n_strata, 0)),
        proxy_covariances=covariances,
    )


def _keys(digests: list[str]) -> KeyArray:
    digits = "".join(digest[:KEY_DIGITS] for digest in digests)
    return np.frombuffer(bytes.fromhex(digits), dtype=">u8").astype(np.uint64)


def _texts(column: Any) -> AnyArray:
    for text in column.to_pylist():
        if "\0" in text:
            raise InputError(
                "a text holds the character NUL", given=repr(text), action="Remove it; NumPy would drop it."
            )
    return np.array(column.to_pylist(), dtype=np.str_)


def _ids(column: Any, integers: bool) -> AnyArray:
    """Return ids as integers where they are and fit."""
    try:
        return _texts(column).astype(np.int64) if integers else _texts(column)
    except OverflowError:
        return _texts(column)


def _objects(column: Any) -> AnyArray:
    values = np.empty(len(column), dtype=object)
    values[:] = column.to_pylist()
    return values


def _plain(column: Any) -> AnyArray:
    array: AnyArray = column.to_numpy(zero_copy_only=False)
    return array.astype(np.str_) if array.dtype.kind == "O" else array
