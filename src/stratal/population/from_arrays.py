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
    checked_threads,
    finite_vector,
    frozen,
    is_null,
    same_length,
    without_mask,
)
from stratal.errors import InputError
from stratal.population.declaration import (
    CONFIDENCE,
    OWN_STRATUM_GROUP,
    PREDICTED,
    checked_missing,
    label_bounds,
    middle,
    own_stratum_note,
)
from stratal.population.in_memory import ArrayPopulation, ArrayUnits
from stratal.population.population import Population
from stratal.population.summary import ProxyInfo, proxy_info_for
from stratal.proxy.losses import accuracy, margin
from stratal.randomness import id_array


def from_arrays(
    *,
    proxy: Any = None,
    ids: Any = None,
    groups: Mapping[str, Any] | None = None,
    features: Any = None,
    show: Mapping[str, Any] | None = None,
    predicted: str | None = None,
    bounds: tuple[float, float] | None = None,
    scaled: bool | None = None,
    id_name: str = "id",
    missing: str | None = None,
    label: str | tuple[float, float] | None = None,
    threads: int | None = None,
) -> ArrayPopulation:
    """Build a population from arrays; see `Population.from_arrays`."""
    named, own = _named_proxies(proxy), None
    notes: tuple[str, ...] = ()
    absent = _absent(named) if checked_missing(missing) else None
    groups = dict(groups or {})
    if absent is not None:
        named = {name: _filled(entry, absent, bounds) for name, entry in named.items()}
        own, notes = OWN_STRATUM_GROUP, (own_stratum_note(int(absent.sum())),)
        groups[own] = np.where(absent, "missing", "known")
    on_scale = bounds, scaled, label_bounds(label)
    described = [describe_proxy(name, entry, *on_scale) for name, entry in named.items()]
    units = ArrayUnits(
        values={info.name: values for info, values, _ in described},
        second={info.name: moments for info, _, moments in described},
        ids=None if ids is None else _ids(ids),
        groups={name: _group_column(name, values) for name, values in groups.items()},
        features={name: finite_vector(name, values) for name, values in _named_features(features).items()},
        shown={name: frozen(object_column(values), object) for name, values in (show or {}).items()},
    )
    if predicted is not None and predicted not in units.groups:
        raise InputError(f"predicted names no group column: {predicted!r}", action="Give it in groups= too.")
    return ArrayPopulation.of(
        units,
        size=_common_size(units),
        proxies=tuple(info for info, _, _ in described),
        id_name=id_name,
        predicted=predicted,
        notes=notes,
        own_stratum=own,
        threads=None if threads is None else checked_threads(threads),
    )


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
    missing = np.flatnonzero(_missing(array, values)).tolist()
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


def _missing(array: AnyArray, values: Any) -> Any:
    """Return which categories (N,) are masked, None, NaN or a dataframe's NA; a text never is."""
    if np.ma.is_masked(values):
        return np.ma.getmaskarray(values)
    if array.dtype.kind in "mM":
        return np.isnat(array)
    entries = array.tolist() if array.dtype.kind in "fO" else []
    return [is_null(entry) or bool(entry != entry) for entry in entries]


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
    column[:] = [
        None if is_null(entry) or (texts and isinstance(entry, float) and entry != entry) else entry
        for entry in entries
    ]
    return column


def _ids(given: Any) -> AnyArray:
    ids = id_array(given)
    blank = ids.dtype.kind == "U" and np.char.strip(ids) == ""
    if np.any(blank):
        raise InputError(
            f"an id is missing (empty, at position {np.argmax(blank)})", action="Every unit needs an id."
        )
    return ids


def _common_size(units: ArrayUnits) -> int:
    kinds = (units.groups, units.features, units.shown)
    named = {f"column '{name}'": column for kind in kinds for name, column in kind.items()}
    columns = {**({} if units.ids is None else {"ids": units.ids}), **units.values, **named}
    if not columns:
        raise InputError("the population is empty", action="Give a proxy, ids or groups.")
    size = same_length(**columns)
    if size == 0:
        raise InputError("the population is empty", given="0 units", allowed="at least one")
    return size


def from_estimator(model: Any, rows: Any, columns: dict[str, Any]) -> Population:
    """Build a population from a classifier's own confidence; see `Population.from_estimator`."""
    classes = getattr(model, "classes_", None)
    if classes is None or any(isinstance(entry, np.ndarray) for entry in classes):
        raise InputError(
            "the model is not a fitted classifier with one answer per unit",
            given=type(model).__name__,
            allowed="a model with classes_, and predict_proba or decision_function",
            action="Give any other model's own prediction of the outcome to Population.from_arrays(proxy=…).",
        )
    proxy, answers = _confidence(model, rows)
    groups = {**(columns.pop("groups", None) or {}), PREDICTED: np.asarray(classes)[answers]}
    return Population.from_arrays(proxy=proxy, groups=groups, predicted=PREDICTED, **columns)


def _confidence(model: Any, rows: Any) -> tuple[Any, AnyArray]:
    """Return the proxy of each row (N,) and the number of its answer's class (N,)."""
    if hasattr(model, "predict_proba"):
        probabilities = np.asarray(model.predict_proba(rows))
        return accuracy(probabilities, name=CONFIDENCE), probabilities.argmax(axis=1)
    if not hasattr(model, "decision_function"):
        raise InputError(
            "the model says nothing of its confidence",
            given=type(model).__name__,
            allowed="predict_proba or decision_function",
            action="Calibrate it: sklearn.calibration.CalibratedClassifierCV.",
        )
    scores = np.asarray(model.decision_function(rows))
    if scores.ndim == 1:
        return margin(scores), (scores > 0).astype(np.int64)
    return margin(scores), scores.argmax(axis=1)


Population.makers |= {"arrays": from_arrays, "estimator": from_estimator}
