"""The digest of a population: sums that a sample stores, and by which its population is recognised later.

Let k be the first 32 bits of a unit's permanent random number, which depend on seed and id. The digest
contains N, Σ k, and Σ k·v for each column, with v the unit's value as whole numbers. Sums of integers are the
same in any order and on any engine. They change if two units exchange their values, unless both have the same
k (with probability 2⁻³²).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from stratal.arrays import AnyArray, FloatArray
from stratal.population.expressions import ArrayEvaluator
from stratal.protocols import Foreign, JsonDict, JsonMapping
from stratal.randomness import KEY_DIGITS, KeyArray

# Number of bits in k. Its product with the 31 bits of a value is below 2⁶³, so that it fits in 64 bits.
KEY_BITS = 32

# Sums are stored modulo 2⁶⁴, because 64-bit integers overflow in the same way on every engine.
_SUM_MODULUS = 2**64

# A value is divided into two whole numbers of 30 bits (and a sign) and of 31 bits.
_WHOLE_BITS = 30
_FRACTION_BITS = 31

# With smaller exponents, the factor by which values are scaled to whole numbers would overflow.
_MIN_EXPONENT = -900


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationDigest:
    """N and the sums of a population, as integers modulo 2⁶⁴.

    Parameters
    ----------
    size : int
        N.
    ids : str
        Σ k in hexadecimal.
    columns : mapping of str to str
        Σ k·v of each column, such as `number:confidence`, `second:confidence` (its second moments) and
        `group:language`. Two digests are compared by the columns that both have.
    """

    size: int
    ids: str
    columns: Mapping[str, str] = field(default_factory=dict)

    def different_columns(self, other: PopulationDigest) -> list[str]:
        """Return the keys of the columns that both digests have and that differ."""
        return [
            name
            for name, digest_of_column in self.columns.items()
            if other.columns.get(name, digest_of_column) != digest_of_column
        ]

    def to_dict(self) -> JsonDict:
        """Return the dict that the file of a sample stores."""
        return {"size": self.size, "ids": self.ids, "columns": dict(self.columns)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DigestedColumns:
    """The columns of a population that enter the digest.

    Parameters
    ----------
    numbers : mapping of str to (column, int)
        Columns of numbers in the engine, and the smallest e with |v| < 2^e for all units.
    groups : mapping of str to column
        Columns of categories in the engine.
    """

    numbers: Mapping[str, tuple[Foreign, int]]
    groups: JsonMapping

    def digest(self, size: int, ids: int, sums: Iterable[int]) -> PopulationDigest:
        """Return the digest.

        Parameters
        ----------
        size : int
            N.
        ids : int
            Σ k.
        sums : iterable of int
            Σ k·v of the `digits` of each column of numbers, then of each column of groups.
        """
        texts = (f"{column_sum % _SUM_MODULUS:x}" for column_sum in sums)
        columns = {}
        for name, (_, exponent) in self.numbers.items():
            # `digits` yields two more numbers for a column with huge values.
            n_digits = 2 if exponent <= _WHOLE_BITS else 4
            columns[name] = f"{exponent}:" + ".".join(next(texts) for _ in range(n_digits))
        columns |= {name: next(texts) for name in self.groups}
        return PopulationDigest(size=size, ids=f"{ids % _SUM_MODULUS:x}", columns=columns)


def exponent_of(low: float, high: float) -> int:
    """Return the smallest e with |v| < 2^e for all values from low to high, at least `_MIN_EXPONENT`."""
    return max(math.frexp(max(abs(low), abs(high)))[1], _MIN_EXPONENT)


def digits(values: Foreign, exponent: int, evaluator: ArrayEvaluator) -> Iterator[Foreign]:
    """Yield two whole numbers from 0 to 2³¹ for each value: its sign and first 30 bits, then 31 more bits.

    Every engine gives the same numbers, because scaling by powers of two and rounding down are exact. If a
    column has huge values (such as 1e30), small values would all have the same digits. Therefore the digits
    of the values limited to ± 2³⁰ are yielded, too.

    Parameters
    ----------
    values : float (n,), or Ibis column
    exponent : int
        The result of `exponent_of` for these values.
    evaluator : ArrayEvaluator
        The operations on arrays, or on Ibis columns.
    """
    scaled = values * evaluator.constant(2.0 ** (_WHOLE_BITS - exponent))
    whole_part = evaluator.apply("floor", scaled)
    yield whole_part + evaluator.constant(2.0**_WHOLE_BITS)
    yield evaluator.apply("floor", (scaled - whole_part) * evaluator.constant(2.0**_FRACTION_BITS))
    if exponent > _WHOLE_BITS:
        limited = -evaluator.at_least(-values, -(2.0**_WHOLE_BITS))
        yield from digits(evaluator.at_least(limited, -(2.0**_WHOLE_BITS)), _WHOLE_BITS, evaluator)


def array_digits(values: FloatArray, exponent: int) -> Iterator[KeyArray]:
    """Yield the `digits` (n,) of values (n,) in memory."""
    return (digit.astype(np.uint64) for digit in digits(values, exponent, ArrayEvaluator({})))


def level_numbers(levels: AnyArray) -> KeyArray:
    """Return the number v (L,) of each level of a category: the first 31 bits of the MD5 hash of its text."""
    # A lone surrogate is encoded here. Writing it to a file raises an error.
    texts = (str(level).encode(errors="surrogatepass") for level in levels.tolist())
    first_bytes = [hashlib.md5(text, usedforsecurity=False).digest()[:4] for text in texts]
    return np.array([int.from_bytes(prefix) >> 1 for prefix in first_bytes], dtype=np.uint64)


def leading_bits(keys: KeyArray) -> KeyArray:
    """Return k (n,), the first `KEY_BITS` bits of permanent random numbers (n,)."""
    return keys >> np.uint64(4 * KEY_DIGITS - KEY_BITS)
