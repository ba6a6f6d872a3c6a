"""Queries for designs with unequal probabilities, an order or groups, over the units of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stratal.arrays import IntArray
from stratal.errors import InputError
from stratal.population.digest import Digested, PopulationDigest, digits
from stratal.population.queries.translate import with_codes
from stratal.population.queries.units import Units
from stratal.population.rules.rule import CutPoints, Rule
from stratal.population.size_measures import STEPS, Size
from stratal.randomness import KEY_DIGITS, KeyArray
from stratal.tables.engine import collects, digest, double, key_bits, small_table

_OCTAVES = 24
_HIGHEST_KEY = 2**64 - 1
_HALF = 32
_REST_OF_DIGEST = "f" * (32 - KEY_DIGITS)


def with_size(size: Size, units: Units, second: str | None) -> Any:
    """Return the units' table with a column `size_measure` of doubles.

    Parameters
    ----------
    size : Size
    units : Units
    second : str, optional
        The user's name of the column of second moments, where the size measure needs it.
    """
    import ibis

    table = units.table
    if size.column is None:
        return table.mutate(size_measure=double(1.0))
    values = numeric(units, size.column)
    moments = None if second is None else units.number(second)
    found = size.express(values, moments, double, lambda v: v.sqrt(), lambda v: ibis.greatest(v, double(0.0)))
    return table.mutate(size_measure=found)


def numeric(units: Units, name: str) -> Any:
    """Return the Ibis column of a proxy or a feature, refusing categories."""
    if name in units.categories and name not in units.numbers:
        raise InputError(f"column {name!r} holds categories", allowed="a proxy or a feature")
    return units.number(name)


def extent(sized: Any) -> Any:
    """Return the query for the smallest and largest size."""
    return sized.aggregate(low=sized.size_measure.min(), high=sized.size_measure.max())


def total_steps(sized: Any, cap: float) -> Any:
    """Return the query for the sum of capped sizes in steps; see `size_measures.in_steps`."""
    import ibis

    capped = ibis.least(sized.size_measure, double(cap))
    steps = (capped * double(STEPS / cap) + double(0.5)).floor().cast("int64")
    return sized.aggregate(total=steps.sum())


def largest(sized: Any, count: int) -> Any:
    """Return the query for the `count` largest sizes."""
    import ibis

    return sized.order_by(ibis.desc("size_measure")).limit(count).select("size_measure")


def smallest(rule: Rule, units: Units, limits: KeyArray, counts: IntArray, seed: int) -> Any:
    """Return the query for the units whose key is at most their stratum's limit (H,); none where no count."""
    wanted = np.flatnonzero(counts)
    table = units.table.mutate(digest=_digest(units, seed))
    highest = max((int(limits[h]) for h in wanted), default=0)
    if highest < _HIGHEST_KEY:
        table = table.filter(table.digest <= _digest_limit(highest))
    by_code = {int(h): _digest_limit(int(limits[h])) for h in wanted}
    return _under_limits(with_codes(rule, units, table), units, by_code, "code")


def candidates(sized: Any, units: Units, high: float, limit: float, seed: int) -> Any:
    """Return the query for units whose key is below `limit` times their size, and for as many again.

    Sizes fall into octaves below the largest; each has one threshold on the digest's text, joined as a small
    table, so that about twice as many units as needed leave the engine. Python then compares exactly.
    """
    cuts = high * 2.0 ** -np.arange(_OCTAVES, 0, -1.0)
    by_octave = {octave: _limit_of_share(limit * cut) for octave, cut in enumerate([*cuts.tolist(), high])}
    as_number = replace(units, numbers={**units.numbers, "size_measure": "size_measure"})
    rule = CutPoints(column="size_measure", cuts=cuts)
    coded = with_codes(rule, as_number, sized.mutate(digest=_digest(units, seed)))
    return _under_limits(coded, units, by_octave, "size_measure")


def _under_limits(coded: Any, units: Units, limits: dict[int, str], *kept: str) -> Any:
    """Return the query for the rows whose digest is at most the limit of their code."""
    names = np.array(list(limits), np.int64), np.array(list(limits.values()), object)
    of_code = small_table({"limited": names[0], "highest": names[1]}, units.backend)
    joined = coded.join(of_code, coded.code == of_code.limited)
    under = joined.filter(joined.digest <= joined.highest)
    return under.select("unit_id", "digest", *kept, *_payload(units))


def ranked(units: Units, column: str, ranks: IntArray, seed: int) -> Any:
    """Return the query for the units at these ranks by a column, ties by their digest."""
    import ibis

    table = units.table.select(
        drawn_id="unit_id", order_value=numeric(units, column), digest=_digest(units, seed)
    )
    window = ibis.window(order_by=[table.order_value, table.digest, table.drawn_id])
    numbered = table.select("drawn_id", position=ibis.row_number().over(window).cast("int64"))
    wanted = small_table({"rank": ranks}, units.backend)
    drawn = numbered.join(wanted, numbered.position == wanted.rank).select("drawn_id")
    joined = units.table.join(drawn, units.table.unit_id == drawn.drawn_id)
    return joined.select("unit_id", *_payload(units))


def in_levels(units: Units, group: str, levels: tuple[str, ...]) -> Any:
    """Return the query for every unit of these levels of a group column."""
    wanted = small_table({"level": np.array(levels, object)}, units.backend)
    table = units.table
    joined = table.join(wanted, table[units.categories[group]] == wanted.level)
    return joined.select("unit_id", *_payload(units))


def with_ids(units: Units, ids: Sequence[str]) -> Any:
    """Return the query for the units that have one of these ids, as text."""
    wanted = small_table({"wanted": np.array(list(dict.fromkeys(ids)), object)}, units.backend)
    joined = units.table.join(wanted, units.table.unit_id == wanted.wanted)
    return joined.select("unit_id", *_payload(units))


def digested(units: Units, told: Digested, seed: int, limit: int = -1) -> Any:
    """Return the query for the sums of the population's digest, and for the units whose k is at most `limit`.

    Each sum comes in two halves, which fit 64 bits for up to 2³¹ units. A negative limit is of no unit.
    """
    import ibis

    text = ibis.literal(f"{seed}:") + units.table.unit_id
    table = units.table.mutate(key=key_bits(units.backend, text))
    measures = {"size": table.count(), "ids": table.key.sum().cast("int64")}
    for at, whole in enumerate(_whole_numbers(units, table, told)):
        product = table.key * whole
        measures[f"high{at}"] = (product >> _HALF).sum().cast("int64")
        measures[f"low{at}"] = (product & (2**_HALF - 1)).sum().cast("int64")
    if limit >= 0:
        rows = ibis.struct({name: table[name] for name in ("unit_id", *_payload(units))})
        measures["rows"] = rows.collect(where=table.key <= limit)
    return table.aggregate(**measures)


def digest_of(told: Digested, found: Mapping[str, Any]) -> PopulationDigest:
    """Return the digest from the row of sums."""
    halves = len([name for name in found if name.startswith("high")])
    sums = [(int(found[f"high{at}"]) << _HALF) + int(found[f"low{at}"]) for at in range(halves)]
    return told.digest(int(found["size"]), int(found["ids"]), sums)


def collects_rows(units: Units) -> bool:
    """Return whether the engine hands on rows beside sums: structs of types that come through Arrow."""
    kinds = [units.table[name].type() for name in units.shown.values()]
    plain = (
        kind.is_string() or kind.is_numeric() or kind.is_boolean() or kind.is_temporal() for kind in kinds
    )
    return collects(units.backend) and all(plain)


def rows_of(collected: Any) -> Any:
    """Return rows that came as one list of structs as a PyArrow table."""
    import pyarrow as pa

    structs = collected.combine_chunks().flatten()
    return pa.Table.from_arrays(structs.flatten(), names=[field.name for field in structs.type])


def only(units: Units, found: Any) -> Units:
    """Return units of which the engine has only the rows of a PyArrow table, without the payload."""
    import ibis

    names = ["unit_id", *units.numbers.values(), *units.categories.values()]
    return replace(units, table=ibis.memtable(found.select(names)), shown={})


def _whole_numbers(units: Units, table: Any, told: Digested) -> Iterator[Any]:
    """Yield what the keys are multiplied by: digits of numbers, then the numbers of levels."""
    import ibis

    def within(values: Any, most: float) -> Any:
        return ibis.greatest(ibis.least(values, double(most)), double(-most))

    for column, exponent in told.numbers.values():
        for digit in digits(table[column], exponent, double, lambda v: v.floor(), within):
            yield digit.cast("int64")
    for column in told.groups.values():
        yield key_bits(units.backend, table[column]) >> 1


def _payload(units: Units) -> list[str]:
    return [*units.numbers.values(), *units.categories.values(), *units.shown.values()]


def _digest(units: Units, seed: int) -> Any:
    import ibis

    return digest(units.backend, ibis.literal(f"{seed}:") + units.table.unit_id)


def _limit_of_share(share: float) -> str:
    """Return a digest not below that of any unit whose u is below `share`."""
    return _digest_limit(_HIGHEST_KEY if share >= 1 else min(int(share * 2.0**64) + (1 << 11), _HIGHEST_KEY))


def _digest_limit(key: int) -> str:
    """Return the largest digest whose first digits are those of `key`."""
    return f"{key:0{KEY_DIGITS}x}{_REST_OF_DIGEST}"
