"""`Sample.from_labelled`: the parts of a sample that was drawn and labelled elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray, Record
from stratal.designs.labelled import Labelled, id_column, ids_of
from stratal.designs.other_units import WHOLE, OtherUnits, other_units
from stratal.designs.strata_sizes import sizes_of
from stratal.errors import InputError, near_names
from stratal.labels.labels import Labels, UnitRows
from stratal.population.rules.rule import Categories
from stratal.population.summary import ProxyInfo, StratumSummary
from stratal.randomness import id_texts
from stratal.strata import Allocation
from stratal.strata.strata import Strata
from stratal.tables.small_table import SmallTable, is_missing

_LABEL = "the table of labels"

_NAME_IT = "Name the column of labels: value= (--value COL)."


def parts_of_labelled(table: Any, given: Labelled) -> tuple[dict[str, Any], Labels]:
    """Return the fields of a sample that was drawn elsewhere, its design as a description, and its labels.

    Examples
    --------
    >>> rows = {"right": [1, 0, 1, 1], "kind": ["a", "a", "b", "b"]}
    >>> parts, labels = parts_of_labelled(
    ...     rows, Labelled(value="right", stratum="kind", sizes={"a": 10, "b": 30}))
    >>> parts["design"]["kind"], parts["summary"].size, labels.answered
    ('stratified', 40, 4)
    """
    columns = SmallTable.of(table, _LABEL, (given.value,))
    columns, given, notes = _with_others(columns, given)
    ids = ids_of(columns, given.id)
    weighted = given.weight is not None or given.inclusion_probability is not None
    surveyed = weighted or given.cluster is not None
    known = _by_weight(columns, given) if surveyed else _by_stratum(columns, given)
    named = (*given.groups, given.stratum, given.cluster, given.predicted)
    kept = dict.fromkeys(name for name in named if name)
    info = ProxyInfo(name=given.proxy or "", scaled=given.scaled, bounds=given.bounds)
    parts = known | {
        "ids": ids,
        "proxies": columns.numbers(given.proxy)[:, None] if given.proxy else np.zeros((len(ids), 0)),
        "proxy_info": (info,) if given.proxy else (),
        "seed": 0,
        "groups": {name: columns.texts(name) for name in kept},
        "predicted": given.predicted,
        "id_name": given.id or "id",
    }
    labels = _labels(ids, columns, given.value)
    return parts, replace(labels, notes=(*labels.notes, *notes))


def labels_of(sample: UnitRows, table: Any, value: str) -> Labels:
    """Return another column of the table that `sample` was made of, as labels.

    Examples
    --------
    >>> from stratal import Sample
    >>> rows = {"right": [1, 0], "other": [1, 1]}
    >>> sample, _ = Sample.from_labelled(rows, value="right", population_size=10)
    >>> labels_of(sample, rows, "other").answered
    2
    """
    columns = SmallTable.of(table, _LABEL, (value,))
    if len(columns) != sample.size:  # rows without a label were taken as the population's
        position = {text: row for row, text in enumerate(id_texts(ids_of(columns, sample.id_name)))}
        columns = columns.only([position[text] for text in id_texts(sample.ids)])
    return _labels(sample.ids, columns, value)


def _labels(ids: AnyArray, columns: SmallTable, value: str) -> Labels:
    entries = columns.values(value, _NAME_IT)
    values = tuple(None if is_missing(entry) else entry for entry in entries)
    return Labels(ids=tuple(id_texts(ids)), values=values, source=columns.label, notes=columns.notes)


def _with_others(columns: SmallTable, given: Labelled) -> tuple[SmallTable, Labelled, tuple[str, ...]]:
    """Return the labelled rows, what is known with the population's other units counted, and notes."""
    if given.population is None and (given.proxy is None or given.proxy_moments is not None):
        return columns, given, ()
    answered = [not is_missing(entry) for entry in columns.values(given.value, _NAME_IT)]
    rows = [row for row, there in enumerate(answered) if there]
    others = [row for row, there in enumerate(answered) if not there]
    labelled = columns.only(rows) if rows else columns
    if given.population is None:
        found = _others_in_table(columns, given, others if rows else [])
        return labelled, _told(labelled, given, found), found.notes
    name = id_column(columns, given.id)
    ids = None if name is None else id_texts(ids_of(labelled, given.id))
    known = {"proxy": given.proxy, "stratum": given.stratum, "id_name": name if given.id else None}
    columns_of_units: dict[str, AnyArray] = {}
    if given.proxy is not None and labelled.find(given.proxy):
        columns_of_units[given.proxy] = labelled.numbers(given.proxy)
    if given.stratum is not None:
        columns_of_units[given.stratum] = labelled.texts(given.stratum)
    found = other_units(given.population, ids, columns=columns_of_units, **known)
    left_out = f"{len(others):,} rows without a label were left out" if others and rows else ""
    return labelled, _told(labelled, given, found), (*found.notes, *filter(None, [left_out]))


def _others_in_table(columns: SmallTable, given: Labelled, rows: list[int]) -> OtherUnits:
    """Return the rows without a label as the other units of the population."""
    if not rows:
        raise InputError(
            f"{columns.label}: a proxy needs the units that have no label",
            allowed="rows with an empty label, population= (--population FILE), or proxy_moments=",
        )
    part = columns.only(rows)
    used = [name for name in (given.proxy, given.stratum) if name]
    others: dict[str, Any] = {columns.find(name) or name: part.texts(name) for name in used}
    if given.proxy:
        others[columns.find(given.proxy) or given.proxy] = part.numbers(given.proxy)
    found = other_units(others, None, proxy=given.proxy, stratum=given.stratum)
    return replace(found, notes=(f"{len(rows):,} rows without a label are the population's other units",))


def _told(columns: SmallTable, given: Labelled, others: OtherUnits) -> Labelled:
    """Return what is said of the labelled rows with the other units' counts or proxy moments."""
    if others.proxy is not None:
        info = others.proxy
        bounds = info.bounds if given.bounds == (0.0, 1.0) else given.bounds
        return replace(given, population=None, proxy_moments=others.moments(), bounds=bounds)
    counts = dict(zip(others.names, others.counts.tolist(), strict=True))
    if given.stratum is None:
        return replace(given, population=None, population_size=len(columns) + counts[WHOLE])
    own = Counter(columns.texts(given.stratum).tolist())
    sizes = {name: own[name] + counts.get(name, 0) for name in {*own, *counts}}
    return replace(given, population=None, sizes=sizes if given.sizes is None else given.sizes)


# ---- strata of known size


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Cells(Record):
    """Strata of labelled units, and what is known of their unlabelled ones.

    Parameters
    ----------
    names : tuple of str (H,)
    codes : int (n,)
        Stratum of each labelled unit.
    counts : int (H,)
        Labelled units of each.
    moments : float (H, 3), optional
        Mean and variance of the proxy over the unlabelled units, and their count.
    """

    names: tuple[str, ...]
    codes: IntArray
    counts: IntArray
    moments: FloatArray | None

    @property
    def unlabelled(self) -> IntArray | None:
        """Unlabelled units of each stratum (H,), where counted."""
        return None if self.moments is None else self.moments[:, 2].astype(np.int64)


def _by_stratum(columns: SmallTable, given: Labelled) -> dict[str, Any]:
    """Return strata, design and summary of a sample that was drawn at random within strata, or in one."""
    labelled = columns.texts(given.stratum) if given.stratum else np.full(len(columns), WHOLE)
    whole = given.stratum is None and given.population_size is not None
    sizes = {WHOLE: given.population_size} if whole else sizes_of(given.sizes, given.stratum)
    moments = _moments(given)
    names = sorted({*labelled.tolist(), *(sizes or {}), *(moments or {})})
    codes = np.searchsorted(np.array(names), labelled)
    cells = _Cells(
        names=tuple(names),
        codes=codes,
        counts=np.bincount(codes, minlength=len(names)),
        moments=None if moments is None else np.array([_of(moments, name) for name in names]),
    )
    n_total = _checked_sizes(cells, sizes, columns.label)
    means, covariances = _population_moments(cells, columns.numbers(given.proxy) if given.proxy else None)
    summary = StratumSummary(sizes=n_total, proxy_means=means, proxy_covariances=covariances)
    return {
        "stratum": codes,
        "inclusion_probability": np.minimum(cells.counts / n_total, 1.0)[codes],
        "summary": summary,
        "design": _design(cells, summary, given.stratum),
    }


def _of(moments: Mapping[str, tuple[float, ...]], name: str) -> tuple[float, ...]:
    if name not in moments:
        raise InputError(
            f"proxy_moments has no row for stratum {name!r}",
            allowed=", ".join(list(moments)[:8]),
            action="Give a row with mean, variance and count for each stratum of the labels.",
        )
    return moments[name]


def _checked_sizes(cells: _Cells, given: Mapping[str, Any] | None, label: str) -> IntArray:
    """Return N_h (H,), refusing sizes that contradict the labelled units."""
    names, counts, unlabelled = cells.names, cells.counts, cells.unlabelled
    if given is None and unlabelled is None:
        raise InputError(
            "the table does not say what the labels are a sample of",
            allowed="population= (--population FILE), sizes= of the strata (--sizes FILE), weight= "
            "(--weight COL), inclusion_probability= or population_size= (--population-size N)",
            action="Labels chosen by hand or by outcome are no sample: nothing can be estimated.",
        )
    for name in names:
        if given is not None and name not in given:
            raise InputError(f"{label}: stratum {name!r} has no size", allowed=near_names(name, given))
    if np.any(counts == 0):
        raise InputError(
            f"{label}: stratum {names[int(np.argmin(counts))]!r} has no labelled unit",
            action="Merge it with another stratum, in the table and in the sizes.",
        )
    if given is None:
        assert unlabelled is not None
        return counts + unlabelled
    sizes = np.array([given[name] for name in names], np.int64)
    for h in np.flatnonzero(counts > sizes)[:1].tolist() if unlabelled is None else ():
        raise InputError(
            f"{label}: stratum {names[h]!r} has more labelled units than units",
            given=f"{counts[h]} of {sizes[h]}",
            action="Sizes count the units of the whole population, labelled ones included.",
        )
    return sizes


def _population_moments(cells: _Cells, proxy: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return proxy means (H, k) and covariances (H, k, k) over labelled and unlabelled units together."""
    n_strata = len(cells.names)
    if cells.moments is None or proxy is None:
        return np.zeros((n_strata, 0)), np.zeros((n_strata, 0, 0))
    mean, variance, m = cells.moments.T
    n = cells.counts
    own = np.bincount(cells.codes, proxy, minlength=n_strata) / n
    squares = np.bincount(cells.codes, (proxy - own[cells.codes]) ** 2, minlength=n_strata)
    joint = (n * own + m * mean) / (n + m)
    spread = (squares + variance * np.maximum(m - 1, 0) + n * m / (n + m) * (own - mean) ** 2) / (n + m)
    return joint[:, None], spread[:, None, None]


def _design(cells: _Cells, summary: StratumSummary, stratum: str | None) -> dict[str, Any]:
    """Return the description of the design that strata and counts amount to."""
    sizes, counts, unlabelled = summary.sizes, cells.counts, cells.unlabelled
    if cells.moments is not None and np.any(unlabelled != sizes - counts):
        names = ("means", "variances", "counts")
        moments = dict(zip(names, cells.moments.T, strict=True))
        return {"kind": "separate-samples", "names": cells.names, "shares": sizes / sizes.sum(), **moments}
    if stratum is None:
        return {"kind": "simple-random", "budget": int(counts[0])}
    nothing = np.full(len(sizes), np.nan)
    with_proxy = summary.proxy_means.shape[1] > 0
    strata = Strata(
        rule=Categories(column=stratum, levels=cells.names, codes=np.arange(len(sizes))),
        names=cells.names,
        sizes=sizes,
        proxy_means=summary.proxy_means[:, 0] if with_proxy else nothing,
        proxy_variances=summary.proxy_covariances[:, 0, 0] if with_proxy else nothing,
        conditional_variances=nothing,
        method="given",
    )
    allocation = Allocation(
        n_h=counts, method="given", budget=int(counts.sum()), minimum=np.zeros_like(counts), maximum=sizes
    )
    return {"kind": "stratified", "strata": strata.to_dict(), "allocation": allocation.to_dict()}


def _moments(given: Labelled) -> dict[str, tuple[float, ...]] | None:
    """Return mean, variance and count of the proxy over the unlabelled units of each stratum."""
    if given.proxy_moments is None:
        return None
    columns = SmallTable.of(given.proxy_moments, "proxy_moments")
    stratified = given.stratum is not None or "stratum" in columns.lists
    names = columns.texts("stratum").tolist() if stratified else [WHOLE]
    variances = columns.numbers("variance")
    counts = columns.numbers("count", positive=True, whole=True)
    if np.any(variances < 0):
        raise InputError(
            f"{columns.label}: a variance is negative", given=float(variances.min()), allowed="0 or more"
        )
    if len(set(names)) < len(names) or len(names) != len(columns):
        raise InputError(
            f"{columns.label}: there must be one row per stratum",
            action="Leave out repeated rows; without strata there is one row in all.",
        )
    rows = zip(columns.numbers("mean").tolist(), variances.tolist(), counts.tolist(), strict=True)
    return dict(zip(names, rows, strict=True))


# ---- weights


def _by_weight(columns: SmallTable, given: Labelled) -> dict[str, Any]:
    """Return design and summary of units that came with weights or inclusion probabilities."""
    size, scale = given.population_size, 1.0
    sized = given.weight is None and given.inclusion_probability is None
    if given.inclusion_probability is not None:
        probabilities = _probabilities(columns, given.inclusion_probability)
        total = float(np.sum(1.0 / probabilities))
    else:
        weights = (
            _weights_of_sizes(columns, given) if sized else columns.numbers(given.weight or "", positive=True)
        )
        total, scale = float(weights.sum()), min(float(weights.min()), 1.0)
        probabilities = scale / weights
        if size is None and total < len(weights) * (1 + 1e-9):
            raise InputError(
                f"{columns.label}: the weights sum to no more than the number of labelled units",
                given=f"{total:g} for {len(weights)}",
                action="They are relative: give population_size= too.",
            )
        scale *= 1.0 if size is None else size / total
    n = len(columns)
    if size is not None and size < n and given.mechanism == "poisson":
        raise InputError(
            "more units were drawn than there are",
            given=f"{n} of {size}",
            action="Correct population_size=, the number of units in the whole population.",
        )
    design = {
        "scale": scale,
        "mechanism": given.mechanism,
        "known_size": size is not None or sized,
        "stratum": given.stratum,
        "cluster": given.cluster,
        "sizes_known": sized and given.stratum is not None,
    }
    sizes = np.array([max(round(total) if size is None else size, 1)])
    summary = StratumSummary(sizes=sizes, proxy_means=np.zeros((1, 0)), proxy_covariances=np.zeros((1, 0, 0)))
    return {
        "stratum": np.zeros(n, np.int64),
        "inclusion_probability": probabilities,
        "summary": summary,
        "design": {"kind": "given-weights", **design},
    }


def _weights_of_sizes(columns: SmallTable, given: Labelled) -> FloatArray:
    """Return N_h / n_h of each labelled unit (n,), for clusters whose units came without weights."""
    known = _by_stratum(columns, replace(given, cluster=None, weight=None))
    return np.asarray(1.0 / known["inclusion_probability"])


def _probabilities(columns: SmallTable, name: str) -> FloatArray:
    probabilities = columns.numbers(name, positive=True)
    if np.any(probabilities > 1):
        raise InputError(
            f"{columns.label}: column {name!r} holds a probability above 1",
            given=float(probabilities.max()),
            allowed="above 0, at most 1",
            action="If these are weights, give weight= instead.",
        )
    return probabilities
