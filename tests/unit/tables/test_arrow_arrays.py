from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from stratal.tables.arrow_arrays import arrow_array, numpy_array, text_array


@pytest.mark.parametrize("texts", [["a", None, "é"], ["x"] * 20, [], [None] * 9, [""]])
def test_texts_are_those_of_pyarrow(texts):
    array = text_array(texts)

    array.validate(full=True)
    assert array.equals(pa.array(texts, pa.string()))
    assert array.null_count == texts.count(None)


@pytest.mark.parametrize(
    "values",
    [
        *(np.arange(4), np.arange(4.0)[::2], np.arange(3, dtype=np.uint8), np.array([], float)),
        *(np.array(["a", "b"]), np.array([True, False])),
    ],
)
def test_arrays_are_those_of_pyarrow(values):
    array = arrow_array(values)

    array.validate(full=True)
    assert array.equals(pa.array(values))


@pytest.mark.parametrize("entries", [[1, 2], [1.5, float("inf")], [1, None], [True, False], []])
def test_columns_have_the_values_of_to_numpy(entries):
    array = pa.array(entries, None if entries else pa.int64())
    column = pa.chunked_array([array, array.slice(1)])

    np.testing.assert_array_equal(numpy_array(column), column.to_numpy())


def test_the_conversions_import_no_pandas():
    pytest.importorskip("pandas")
    code = (
        "import sys, numpy, pyarrow; from stratal.tables.arrow_arrays import *;"
        "table = pyarrow.table({'x': arrow_array(numpy.arange(3)), 't': text_array(['a', None, 'b'])});"
        "numpy_array(table['x']); print('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False"]
