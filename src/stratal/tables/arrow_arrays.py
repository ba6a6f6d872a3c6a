"""Conversions between PyArrow and NumPy for the columns of small files.

With its first conversion, PyArrow imports pandas if it is installed, which takes as long as half of a command
on a small file. These functions convert the usual types by their buffers, and leave other types to PyArrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from stratal.arrays import AnyArray
from stratal.protocols import Foreign


def numpy_array(column: Foreign) -> AnyArray:
    """Return a PyArrow column as a read-only NumPy array, with the values of its method `to_numpy`."""
    import pyarrow as pa

    is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if not is_number or column.null_count:
        return np.asarray(column.to_numpy())
    return np.from_dlpack(column.combine_chunks())


def arrow_array(values: AnyArray) -> Foreign:
    """Return a NumPy array as a PyArrow array, as `pyarrow.array` does."""
    import pyarrow as pa

    if values.dtype.kind == "U":
        return text_array(values.tolist())
    if values.dtype.kind not in "iuf" or not values.dtype.isnative:
        return pa.array(values)
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, data])


def text_array(texts: Sequence[str | None]) -> Foreign:
    """Return texts as a PyArrow array of strings, with null for None.

    Raises
    ------
    UnicodeEncodeError
        For half of a surrogate pair, which UTF-8 cannot represent.
    """
    import pyarrow as pa

    encoded = [(text or "").encode() for text in texts]
    ends = np.fromiter(accumulate(map(len, encoded), initial=0), np.int64, len(encoded) + 1)
    validity = None
    if None in texts:
        validity = pa.py_buffer(np.packbits([text is not None for text in texts], bitorder="little"))
    if ends[-1] > np.iinfo(np.int32).max:
        # Strings have offsets of 32 bits, and PyArrow divides longer columns into chunks.
        return pa.array(texts, pa.string())
    buffers = [validity, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)
