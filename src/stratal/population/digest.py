"""The digest of a population: sums by which a sample knows again what it was drawn from.

Every unit has the first 32 bits k of its permanent random number, which depend on seed and id. The digest
holds N, Σ k, and for each column Σ k·v with v the unit's value as whole numbers. Sums of integers are the
same in any order and on any engine; a value that moves to another unit changes them, since it meets another
k (two units share theirs with probability 2⁻³²).
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

# Bits of the key that enter the sums: with 31 bits of a value the product is below 2⁶³ on every evaluator.
KEY_BITS = 32

# Sums are kept modulo this: in 64 bits, an overflow is the same on every evaluator.
WORD = 2**64

# A value is cut into two parts of so many bits, whose sums are exact in 64 bits on every evaluator.
_WHOLE_BITS = 30
_FRACTION_BITS = 31

# For smaller exponents, 2³⁰ divided by the largest value of the column would overflow.
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
        """Return the digest as a sample's file stores it."""
        return {"size": self.size, "ids": self.ids, "columns": dict(self.columns)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DigestedColumns:
    """The columns of a population that are digested, as an engine has them.

    Parameters
    ----------
    numbers : mapping of str to (column, int)
        Columns of numbers, and the smallest e with |v| < 2^e for all units.
    groups : mapping of str to column
        Columns of categories.
    """

    numbers: Mapping[str, tuple[Foreign, int]]
    groups: JsonMapping

    def digest(self, size: int, ids: int, sums: Iterable[int]) -> PopulationDigest:
        """Return the digest from Σ k and Σ k·v: of each digit of the numbers, then of the groups."""
        remaining_sums = iter(sums)
        columns = {}
        for name, (_, exponent) in self.numbers.items():
            # A column with huge values counts a second time, limited: see `digits`.
            n_sums = 2 if exponent <= _WHOLE_BITS else 4
            sums_of_column = (f"{next(remaining_sums) % WORD:x}" for _ in range(n_sums))
            columns[name] = f"{exponent}:" + ".".join(sums_of_column)
        columns |= {name: f"{next(remaining_sums) % WORD:x}" for name in self.groups}
        return PopulationDigest(size=size, ids=f"{ids % WORD:x}", columns=columns)


def exponent_of(low: float, high: float) -> int:
    """Return the least e with |v| < 2^e for all values from low to high."""
    return max(math.frexp(max(abs(low), abs(high)))[1], _MIN_EXPONENT)


def digits(values: Foreign, exponent: int, evaluator: ArrayEvaluator) -> Iterator[Foreign]:
    """Yield values as whole numbers from 0 to 2³¹: 30 bits and a sign, then the next 31 bits.

    Scaling by powers of two, rounding down and the difference from it are equal on every evaluator. If some
    value is huge (such as 1e30), the others would vanish: such a column counts again, limited to ± 2³⁰.

    Parameters
    ----------
    values : array, or column of a table
    exponent : int
        As in `exponent_of`.
    """
    scaled = values * evaluator.constant(2.0 ** (_WHOLE_BITS - exponent))
    whole_part = evaluator.apply("floor", scaled)
    yield whole_part + evaluator.constant(2.0**_WHOLE_BITS)
    yield evaluator.apply("floor", (scaled - whole_part) * evaluator.constant(2.0**_FRACTION_BITS))
    if exponent > _WHOLE_BITS:
        limited = -evaluator.at_least(-values, -(2.0**_WHOLE_BITS))
        yield from digits(evaluator.at_least(limited, -(2.0**_WHOLE_BITS)), _WHOLE_BITS, evaluator)


def array_digits(values: FloatArray, exponent: int) -> Iterator[KeyArray]:
    """Yield the whole numbers (n,) of doubles (n,)."""
    return (digit.astype(np.uint64) for digit in digits(values, exponent, ArrayEvaluator({})))


def level_numbers(levels: AnyArray) -> KeyArray:
    """Return the 31 bits (L,) that stand for each level of a category: the first of the MD5 of its text."""
    # A lone surrogate is no text on any evaluator. Writing it to a file raises an error there.
    texts = (str(level).encode(errors="surrogatepass") for level in levels.tolist())
    prefixes = [hashlib.md5(text, usedforsecurity=False).digest()[:4] for text in texts]
    return np.array([int.from_bytes(four) >> 1 for four in prefixes], dtype=np.uint64)


def leading_bits(keys: KeyArray) -> KeyArray:
    """Return the k (n,) of permanent random numbers (n,)."""
    return keys >> np.uint64(4 * KEY_DIGITS - KEY_BITS)
