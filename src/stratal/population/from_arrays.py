"""Building a population from arrays: what each keyword becomes, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from stratal.arrays import (
    AnyArray,
    BoolArray,
    FloatArray,
    array_of,
    finite_vector,
    frozen,
    same_length,
    without_mask,
)
from stratal.errors import InputError
from stratal.population.array_units import ArrayUnits
from stratal.population.declaration import (
    OWN_STRATUM,
    OWN_STRATUM_GROUP,
    ArrayRequest,
    label_bounds,
    middle,
    own_stratum_note,
)
from stratal.population.in_memory import ArrayPopulation
from stratal.population.population import Population
from stratal.population.summary import Contents, ProxyInfo, proxy_info_for
from stratal.randomness import id_array


def from_arrays(given: ArrayRequest) -> ArrayPopulation:
    """Build a population from arrays; see `Population.from_arrays`."""
    named, features, predicted = _named_proxies(given.proxy), _named_features(given.features), given.predicted
    absent = _absent(named) if given.missing == OWN_STRATUM else None
    if absent is not None:
        named = {name: _filled(entry, absent, given.bounds) for name, entry in named.items()}
    label = label_bounds(given.label)
    described = [
        describe_proxy(name, entry, given.bounds, given.scaled, label) for name, entry in named.items()
    ]
    groups = dict(given.groups or {})
    if absent is not None:
        groups[OWN_STRATUM_GROUP] = np.where(absent, "missing", "known")
    units = ArrayUnits(
        values={info.name: values for info, values, _ in described},
        second={info.name: moments for info, _, moments in described},
        ids=None if given.ids is None else _ids(given.ids),
        groups={name: _group_column(name, values) for name, values in groups.items()},
        features={name: finite_vector(name, values) for name, values in features.items()},
        shown={name: frozen(object_column(values), object) for name, values in (given.show or {}).items()},
    )
    if given.predicted is not None and given.predicted not in units.groups:
        raise InputError(
            f"predicted names no group column: {given.predicted!r}", action="Give it in groups= too."
        )
    contents = Contents(
        size=_common_size(units),
        proxies=tuple(info for info, _, _ in described),
        groups=tuple(units.groups),
        shown=tuple(units.shown),
        features=tuple(units.features),
        id_name=given.id_name,
        predicted=predicted,
        notes=() if absent is None else (own_stratum_note(int(absent.sum())),),
        own_stratum=None if absent is None else OWN_STRATUM_GROUP,
    )
    return ArrayPopulation(contents, units, given.threads)


Population.makers["arrays"] = from_arrays


def describe_proxy(
    name: str,
    entry: Any,
    bounds: tuple[float, float] | None,
    scaled: bool | None,
    label: tuple[float, float] | None = None,
) -> tuple[ProxyInfo, FloatArray, FloatArray | None]:
    """Return what is known of a proxy, its values and its second moments, from an array or a `Proxy`.

    Values in [0, 1] are taken as probabilities. Values outside, without bounds, only order: their scale is
    unknown.

    Examples
    --------
    >>> describe_proxy("margin", [-3.0, 2.0], None, None)[0].scaled
    False
    """
    if hasattr(entry, "second_moments"):
        info = ProxyInfo(name=name, scaled=entry.scaled, bounds=entry.bounds)
        return info, finite_vector(name, entry.values), entry.second_moments
    values = finite_vector(name, entry)
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    return proxy_info_for(name, low, high, bounds, scaled, label=label), values, None


def _absent(named: Mapping[str, Any]) -> BoolArray | None:
    """Return which units lack a proxy (N,), None where none does."""
    missing = [
        np.isnan(array_of(entry).astype(np.float64))
        for entry in named.values()
        if not hasattr(entry, "second_moments")
    ]
    absent = np.any(missing, axis=0) if missing else np.zeros(0, bool)
    return absent if np.any(absent) else None


def _filled(entry: Any, absent: BoolArray, bounds: tuple[float, float] | None) -> Any:
    """Return a proxy with the middle of what the outcome may be where it is missing."""
    if hasattr(entry, "second_moments"):
        return entry
    values = array_of(entry).astype(np.float64)
    known = values[~absent]
    ends = (float(known.min()), float(known.max())) if len(known) else (None, None)
    return np.where(absent, middle(bounds, *ends), values)


def _named_proxies(proxy: Any) -> dict[str, Any]:
    if proxy is None:
        return {}
    if isinstance(proxy, Mapping):
        return dict(proxy)
    return {str(getattr(proxy, "name", None) or "proxy"): proxy}


def _named_features(features: Any) -> dict[str, Any]:
    """Return feature columns by name; a matrix (N, d), such as embeddings, becomes d columns."""
    if features is None:
        return {}
    if not hasattr(features, "items"):
        features = {"feature": features}
    named: dict[str, Any] = {}
    for name, values in features.items():
        matrix = values if hasattr(values, "ndim") else np.asarray(values)
        if matrix.ndim == 2:
            named.update({f"{name}_{column}": matrix[:, column] for column in range(matrix.shape[1])})
        else:
            named[name] = values
    return named


def _group_column(name: str, values: Any) -> AnyArray:
    listed = isinstance(values, list | tuple)  # taken as objects: an array of text drops a NUL at the end
    array = object_column(values) if listed else array_of(values)
    if array.ndim != 1 or array.dtype.kind in "SVc":
        raise InputError(
            f"group column '{name}' cannot be a group",
            given=f"shape {array.shape}, dtype {array.dtype}",
            allowed="text, numbers or dates, one per unit",
        )
    if array.dtype.kind == "O":
        _refuse_objects(name, array)
    absent = np.ma.getmaskarray(values) if np.ma.is_masked(values) else _missing(array)
    missing = np.flatnonzero(absent).tolist()
    if missing:
        raise InputError(
            f"group column '{name}' holds {len(missing)} missing value{'s' if len(missing) > 1 else ''} "
            f"(first at position {missing[0]})",
            action="Give them a category of their own.",
        )
    if array.dtype.kind == "f":
        array = np.array([str(int(v) if v.is_integer() else v) for v in array.tolist()])
    if array.dtype.kind == "M":
        array = np.array([_moment_text(text) for text in array.astype(np.str_).tolist()])
    return frozen(array.astype(np.str_))


def _moment_text(text: str) -> str:
    """Return a moment as engines write it: a blank for the T, and no zeros at the end of a fraction."""
    whole, point, fraction = text.replace("T", " ").partition(".")
    return f"{whole}{point}{fraction}".rstrip("0").rstrip(".") if point else whole


def _missing(array: AnyArray) -> Any:
    if array.dtype.kind in "mM":
        return np.isnat(array)
    return [_is_missing(entry) for entry in array.tolist()]


def _refuse_objects(name: str, array: AnyArray) -> None:
    """Refuse what is no category: nested values, bytes, and text with a NUL, which NumPy would drop."""
    for position, entry in enumerate(array.tolist()):
        nested = isinstance(entry, list | tuple | set | dict | np.ndarray | bytes)
        if nested or (isinstance(entry, str) and "\0" in entry):
            raise InputError(
                f"group column '{name}' cannot be a group",
                given=f"{entry!r} at position {position}",
                allowed="text without NUL, numbers or dates, one per unit",
            )


def object_column(values: Any) -> AnyArray:
    """Return values as an array of objects (n,), nested ones as they are.

    Examples
    --------
    >>> object_column([[1, 2], [3, 4]]).shape
    (2,)
    """
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return without_mask(values)
    if not hasattr(values, "__iter__"):
        raise InputError(
            "a column must have one entry per unit",
            given=repr(values),
            action="Give a list or an array.",
        )
    entries = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    texts = any(isinstance(entry, str) for entry in entries)
    column = np.empty(len(entries), dtype=object)
    column[:] = [None if _is_gone(entry, texts) else entry for entry in entries]
    return column


def _is_gone(entry: Any, beside_texts: bool) -> bool:
    """Return whether an entry is a dataframe's NA or NaT, or NaN where there should be a text."""
    return type(entry).__name__ in ("NAType", "NaTType") or (
        beside_texts and isinstance(entry, float) and entry != entry
    )


def _is_missing(entry: Any) -> bool:
    """Return whether a category is None, NaN or a dataframe's NA, which is equal to nothing and to itself."""
    return entry is None or type(entry).__name__ in ("NAType", "NaTType") or bool(entry != entry)


def _ids(given: Any) -> AnyArray:
    ids = id_array(given)
    blank = ids.dtype.kind == "U" and np.char.strip(ids) == ""
    if np.any(blank):
        raise InputError(
            f"an id is missing (empty, at position {np.argmax(blank)})", action="Every unit needs an id."
        )
    return ids


def _common_size(units: ArrayUnits) -> int:
    named = {f"column '{name}'": column for kind in units.others for name, column in kind.items()}
    ids = {} if units.ids is None else {"ids": units.ids}
    columns = {**ids, **units.values, **named}
    if not columns:
        raise InputError("the population is empty", action="Give a proxy, ids or groups.")
    size = same_length(**columns)
    if size == 0:
        raise InputError("the population is empty", given="0 units", allowed="at least one")
    return size
