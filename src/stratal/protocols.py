"""Types of JSON, and of objects of other packages, which are recognised by the attributes that stratal uses.

The packages are not imported: `isinstance` checks the attributes. Models of scikit-learn are recognised by
`hasattr` instead, because a declared method may be unavailable (`SVC().predict_proba` without
`probability=True`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

# An object or a method of another package. Its type is that of the package, which is not imported.
Foreign: TypeAlias = Any

# JSON objects: results of `to_dict` and contents of files. The code that reads an entry checks its type.
JsonDict: TypeAlias = dict[str, Any]
JsonMapping: TypeAlias = Mapping[str, Any]
JsonRows: TypeAlias = Sequence[JsonMapping]

# An entry of a table or of a JSON document: text, a number, a list …. The code that reads it checks its type.
Cell: TypeAlias = Any

# Keywords of a call, collected before it. The function that is called declares their types.
Keywords: TypeAlias = dict[str, Any]


@runtime_checkable
class ArrowStream(Protocol):
    """A dataframe with the Arrow interface."""

    __arrow_c_stream__: Foreign


@runtime_checkable
class HuggingFaceDataset(Protocol):
    """A data set of Hugging Face, or one for each split."""

    column_names: list[str] | dict[str, list[str]]

    with_format: Foreign


@runtime_checkable
class PandasObject(Protocol):
    """A DataFrame or Series of pandas."""

    iloc: Foreign
    index: Foreign


@runtime_checkable
class PandasFrame(PandasObject, Protocol):
    """A DataFrame of pandas."""

    columns: Foreign


@runtime_checkable
class SparkFrame(Protocol):
    """A DataFrame of Spark."""

    createOrReplaceTempView: Foreign  # noqa: N815


@runtime_checkable
class SparkSession(Protocol):
    """A session of a Spark master."""

    sparkContext: Foreign  # noqa: N815


@runtime_checkable
class IbisTable(Protocol):
    """A table of an Ibis connection."""

    get_backend: Foreign


@runtime_checkable
class LazyFrame(Protocol):
    """A query that is run by `collect`."""

    collect: Foreign


@runtime_checkable
class WithSchema(Protocol):
    """A dataframe with the types of its columns."""

    schema: Foreign


@runtime_checkable
class WithColumns(Protocol):
    """A dataframe."""

    columns: Foreign


@runtime_checkable
class WithColumnNames(Protocol):
    """A table of PyArrow or a data set."""

    column_names: Foreign


@runtime_checkable
class WithIndex(Protocol):
    """A column with an index, such as a Series; the `index` of a list is a method."""

    index: Foreign

    to_numpy: Foreign


@runtime_checkable
class WithItems(Protocol):
    """A mapping or a dataframe, as pairs of a name and a column."""

    items: Foreign


@runtime_checkable
class WithName(Protocol):
    """A Series or a proxy."""

    name: object


@runtime_checkable
class WithValues(Protocol):
    """A Series or a proxy, with its numbers."""

    values: Foreign


@runtime_checkable
class WithDimensions(Protocol):
    """An array of any package."""

    ndim: int

    tolist: Foreign


@runtime_checkable
class WithPylist(Protocol):
    """A column of PyArrow."""

    to_pylist: Foreign


@runtime_checkable
class WithDict(Protocol):
    """A record that describes itself as a JSON-ready dict."""

    to_dict: Foreign


@runtime_checkable
class WithDraw(Protocol):
    """A plan or a design."""

    draw: Foreign


def values_of(column: Foreign) -> Foreign:
    """Return the array of a Series or a proxy; return any other column unchanged."""
    if isinstance(column, WithValues):
        return column.values
    return column
