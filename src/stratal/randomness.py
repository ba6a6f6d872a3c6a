"""Permanent random numbers of units, which depend only on the seed and the id of the unit.

They do not depend on the order of rows, the engine or the budget. The number of a unit with an id is the
first 64 bits of the MD5 digest of `'{seed}:{id}'` in UTF-8, which all SQL engines compute identically. The
number of a unit without an id is the raw output of a seeded Philox generator for its row. The sample of a
stratum has the n_h units with the smallest numbers. This is simple random sampling without replacement, and a
larger n_h contains the units of a smaller one (Ohlsson 1995).
"""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from stratal.arrays import AnyArray, FloatArray, IntArray, array_of, is_masked
from stratal.errors import InputError, lone_surrogate_error
from stratal.whole_numbers import MAX_EXACT_INTEGER

# CPython's implementation takes half of the time of OpenSSL's for a short text. It is also available if a
# security policy disables that of OpenSSL.
try:
    from _md5 import md5  # type: ignore[import-not-found]
except ImportError:
    md5 = partial(hashlib.md5, usedforsecurity=False)

KeyArray = NDArray[np.uint64]

# Number of hexadecimal digits of the digest in a random number (64 bits).
KEY_DIGITS = 16

# Types of ids whose text is the same on every machine, so that random numbers are reproducible.
_ALLOWED_TYPES = "text, integers, whole floats, UUIDs"

# Number of random numbers that Philox generates per value of its counter.
_NUMBERS_PER_COUNT = 4


def check_seed(seed: object) -> int:
    """Return `seed` as an int; raise an error unless it is an integer from 0 to 2⁶⁴ − 1."""
    if isinstance(seed, numbers.Integral) and not isinstance(seed, bool) and 0 <= int(seed) < 2**64:
        return int(seed)
    raise InputError("the seed must be a whole number", given=repr(seed), allowed="0 to 2**64 - 1")


def id_text(value: object) -> str:
    """Return the text of an id, which is hashed and compared.

    Texts do not change. Integers are decimal numbers. Whole floats below 2⁵³ are texts of integers, because
    dataframes convert integers to floats. UUIDs are in lower case. The number 7 of a CSV file, a Parquet
    BIGINT and a dataframe is therefore the same id.

    Raises
    ------
    InputError
        For a missing id, another float, bytes, or any other type.
    """
    # Most ids have these types, and checks of abstract types are slow.
    if type(value) is int or (type(value) is str and "\0" not in value):
        return str(value)
    if isinstance(value, str) and "\0" in value:
        action = "Remove the character, because NumPy would drop it."
        raise InputError("an id contains the character NUL", given=repr(value), action=action)
    if isinstance(value, str | UUID):
        return str(value)
    if isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_):
        if isinstance(value, numbers.Integral):
            return str(int(value))
        number = float(value)
        if number.is_integer() and abs(number) < MAX_EXACT_INTEGER:
            return str(int(number))
        if np.isnan(number):
            raise InputError("an id is missing (NaN)", action="Every unit must have an id.")
    if value is None:
        raise InputError("an id is missing (null)", action="Every unit must have an id.")
    value_text = f"{value!r} ({type(value).__name__})"
    raise InputError("an id has an unsupported type", given=value_text, allowed=_ALLOWED_TYPES)


def id_array(values: object) -> AnyArray:
    """Return ids as an int64 array if all are integers that fit, otherwise as texts."""
    if isinstance(values, list | tuple):
        array = np.asarray(values, dtype=object)
    else:
        array = array_of(values)
    if is_masked(values):
        raise InputError("an id is missing (masked)", action="Every unit must have an id.")
    if array.ndim != 1:
        array_text = f"shape {array.shape}"
        action = "Give one id per unit."
        raise InputError("ids must be one-dimensional", given=array_text, allowed="(N,)", action=action)
    if array.dtype.kind in "mMcV":
        array_text = f"dtype {array.dtype}"
        raise InputError("ids have an unsupported type", given=array_text, allowed=_ALLOWED_TYPES)
    if array.dtype.kind in "iu" and (array.size == 0 or array.max() < 2**63):
        return array.astype(np.int64)
    texts = [id_text(value) for value in array.tolist()]
    if array.dtype.kind in "fO" and all(not isinstance(value, str) for value in array.tolist()):
        with suppress(ValueError, OverflowError):
            return np.array([int(text) for text in texts], dtype=np.int64)
    return np.array(texts, dtype=np.str_)


def id_texts(ids: AnyArray) -> list[str]:
    """Return the text of each id (n,)."""
    return list(map(str if ids.dtype.kind in "iuU" else id_text, ids.tolist()))


def keys_of_ids(texts: Iterable[str], seed: int, purpose: str = "") -> KeyArray:
    """Return the permanent random number (n,) of each id, as an unsigned 64-bit integer.

    Parameters
    ----------
    texts : iterable of str (n,)
        Ids as text.
    seed : int
    purpose : str
        Text between seed and id, for numbers that must be independent of those of the draw, such as the order
        in which units are shown.
    """
    prefix = f"{seed}:{purpose}"
    digests = bytearray()
    try:
        for text in texts:
            digests += md5((prefix + text).encode()).digest()[:8]
    except UnicodeEncodeError as error:
        raise lone_surrogate_error("an id", error.object.removeprefix(prefix)) from None
    return np.frombuffer(digests, dtype=">u8").astype(np.uint64)


def keys_of_rows(rows: slice, seed: int) -> KeyArray:
    """Return the permanent random numbers (n,) of some rows, for units without ids.

    Parameters
    ----------
    rows : slice
        Has a start and a stop.
    seed : int
    """
    n_skipped = rows.start % _NUMBERS_PER_COUNT
    generator = np.random.Philox(key=seed).advance(rows.start // _NUMBERS_PER_COUNT)
    numbers = generator.random_raw(rows.stop - rows.start + n_skipped)
    return np.asarray(numbers[n_skipped:], dtype=np.uint64)


def uniforms(keys: KeyArray) -> FloatArray:
    """Return keys as numbers in [0, 1) with 53 bits."""
    # A float has 53 bits: with all 64, rounding could give 1.
    return np.asarray((keys >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def shown_order(ids: AnyArray, seed: int) -> IntArray:
    """Return the rows (n,) of drawn units in display order: random across strata, equal on every machine."""
    texts = id_texts(ids)
    keys = keys_of_ids(texts, seed, "order:")
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    has_equal_keys = (sorted_keys[1:] == sorted_keys[:-1]).any()
    # The order of the texts does not depend on that of the rows.
    if has_equal_keys:
        order = np.lexsort((np.array(texts), keys))
    return order.astype(np.int64)


def thresholds(counts: IntArray, sizes: IntArray, widening: int = 0) -> KeyArray:
    """Return a key for each stratum (H,) below which there are at least n_h units with high probability.

    `counts` are the n_h (H,), and `sizes` the N_h (H,). The expected number of units below it is n_h plus six
    standard deviations plus 10. Units with a key of at most the threshold are candidates for the sample. If
    there are fewer than n_h candidates, the caller repeats the query with `widening` increased by 1, which
    doubles the margin.
    """
    margin = (6.0 * np.sqrt(counts) + 10.0) * 2.0**widening
    shares = np.where(counts == 0, 0.0, (counts + margin) / sizes)
    limited_shares = np.minimum(shares, 1.0)
    return np.array([min(int(share * 2.0**64), 2**64 - 1) for share in limited_shares], dtype=np.uint64)


def rank_smallest(stratum: IntArray, keys: KeyArray, ties: AnyArray, counts: IntArray) -> IntArray:
    """Return the positions (n,) of the n_h smallest keys of each stratum among candidates (m,).

    `stratum`, `keys` and `ties` have the shape (m,); `ties` determine the order of equal keys. `counts` are
    the n_h (H,).
    """
    order = np.lexsort((ties, keys, stratum))
    sorted_stratum = stratum[order]
    starts = np.searchsorted(sorted_stratum, np.arange(len(counts)))
    rank = np.arange(len(order)) - starts[sorted_stratum]
    return np.asarray(order[rank < counts[sorted_stratum]])
