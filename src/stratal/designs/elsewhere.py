"""`Sample.from_labelled`: the parts of a sample that was drawn and labelled elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray, Record, number_of_text
from stratal.errors import InputError, LabelError, near_names
from stratal.labels.damaged_ids import bare_form
from stratal.labels.labels import Labels, UnitRows
from stratal.population.declaration import ROW
from stratal.population.population import Population
from stratal.population.rules import Categories, Everything, Rule
from stratal.population.same_value import same_value
from stratal.population.summary import Drawn, ProxyInfo, StratumSummary
from stratal.randomness import id_array, id_texts
from stratal.strata import Allocation
from stratal.strata.strata import Strata
from stratal.tables.logs import ID_NAMES
from stratal.tables.small_table import SmallTable, is_missing, plain_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """What the user says of a table of labelled units, as `Sample.from_labelled` lists it."""

    value: str
    id: str | None = None
    stratum: str | None = None
    sizes: Any = None
    cluster: str | None = None
    weight: str | None = None
    inclusion_probability: str | None = None
    mechanism: str = "with-replacement"
    population_size: int | None = None
    proxy: str | None = None
    proxy_moments: Any = None
    population: Any = None
    scaled: bool = True
    bounds: tuple[float, float] | None = (0.0, 1.0)
    groups: Sequence[str] = ()
    predicted: str | None = None

    def __post_init__(self) -> None:
        sources = ("sizes", "weight", "inclusion_probability")
        given = [name for name in sources if getattr(self, name) is not None]
        size = self.population_size
        if len(given) > 1:
            raise InputError(
                "give one of these: each says what a unit stands for",
                given=" and ".join(given),
                action="Keep the one that the units were drawn with.",
            )
        if self.sizes is not None and size is not None:
            raise InputError("sizes and population_size are mutually exclusive", action="Give one of them.")
        if size is not None and not (isinstance(size, int | np.integer) and size > 0):
            raise InputError(
                "population_size must be a whole number above 0",
                given=repr(size),
                action="Give the number of units that the labelled ones were drawn from.",
            )
        if self.proxy_moments is not None and (self.proxy is None or self.population is not None):
            raise InputError(
                "proxy_moments are those of a proxy, and take the place of a population",
                action="Give proxy= and population=, or proxy= and proxy_moments=.",
            )
        if self.population is not None and size is not None:
            raise InputError("the population has a size of its own", action="Leave population_size out.")
        self._check_survey(given)

    def _check_survey(self, given: list[str]) -> None:
        """Refuse what weights and clusters cannot be combined with."""
        weighted = [name for name in given if name != "sizes"] + ["cluster"] * (self.cluster is not None)
        if self.proxy is not None and weighted:
            raise InputError(
                "a proxy can only be used with strata and their sizes",
                given=weighted[0],
                action="Leave the proxy out, or give stratum= and sizes= instead.",
            )
        if self.mechanism == "poisson" and (self.cluster is not None or (weighted and self.stratum)):
            raise InputError(
                "a Poisson sample has neither strata nor clusters",
                given=f"mechanism='poisson' with {'cluster' if self.cluster else 'stratum'}",
                action="Leave mechanism out, or the column.",
            )
        if self.cluster is not None and self.cluster == self.stratum:
            raise InputError(
                "clusters lie within strata",
                given=f"{self.cluster!r} as both",
                action="Give stratum= the column of strata, and cluster= that of the groups drawn "
                "within them, or one of the two.",
            )


def id_column(columns: SmallTable, name: str | None) -> str | None:
    """Return the column of ids, None where rows are only numbered."""
    if name == ROW and columns.find(ROW) is None:
        return None
    return columns.find(*ID_NAMES) if name is None else name


def ids_of(columns: SmallTable, name: str | None) -> AnyArray:
    """Return the ids (n,) of a table's rows, row numbers where there are none.

    Raises
    ------
    InputError
        For ids that are missing, or occur twice.
    """
    name = id_column(columns, name)
    if name is None:
        return np.arange(len(columns))
    if any(is_missing(entry) for entry in columns.values(name)):
        raise InputError(
            f"{columns.label}: an id is missing in column {name!r}",
            action="Fill it in, or number the rows: id='row', --id row.",
        )
    ids = id_array(np.array(columns.values(name), dtype=object))
    again, times = Counter(id_texts(ids)).most_common(1)[0]
    if times > 1:
        raise LabelError(
            f"{columns.label}: id {again!r} occurs twice",
            allowed="one row per unit",
            action="Average several answers of one unit first, or join them as Labels.",
        )
    return ids


SIZE_NAMES = ("size", "sizes", "N_h", "N", "count", "population_size")
"""Columns that hold the sizes of strata, the first that is there."""


def sizes_of(given: Any, stratum: str | None) -> dict[str, int] | None:
    """Return sizes by stratum from a mapping or a table, in which a stratum may stand in several rows.

    Examples
    --------
    >>> sizes_of({"stratum": ["a", "a", "b"], "size": [30, 30, 5]}, None)
    {'a': 30, 'b': 5}
    """
    if given is None:
        return None
    if isinstance(given, Mapping) and not all(isinstance(v, list | np.ndarray) for v in given.values()):
        given = {"stratum": list(given), "size": list(given.values())}
    columns = SmallTable.of(given, "sizes")
    size = columns.find(*SIZE_NAMES) or SIZE_NAMES[0]
    numbers = columns.numbers(size, positive=True, whole=True)
    names = columns.texts(columns.find("stratum", stratum or "stratum") or "stratum").tolist()
    found = dict(zip(names, numbers.astype(np.int64).tolist(), strict=True))
    wrong = [name for name, number in zip(names, numbers.tolist(), strict=True) if found[name] != number]
    if wrong:
        raise InputError(
            f"{columns.label}: a stratum occurs twice, with different sizes",
            given=repr(wrong[0]),
            action="Keep the row with the size of the whole population.",
        )
    return found


def sized_strata(table: SmallTable) -> tuple[str, str, list[str]] | None:
    """Return the columns of strata, of their sizes and of measurements, None where no such sizes are there.

    Sizes are whole numbers in a column called so, the same in all rows of a stratum, and no fewer
    than these.

    Examples
    --------
    >>> rows = {"region": ["a", "a", "b", "b"], "N_h": [30, 30, 5, 5], "income": [1.5, 2, 3, 4]}
    >>> sized_strata(SmallTable.of(rows, "rows"))
    ('region', 'N_h', ['income'])
    """
    texts = {name: [plain_text(entry) for entry in entries] for name, entries in table.lists.items()}
    levels = {name: set(found) for name, found in texts.items()}
    few = [name for name in texts if None not in levels[name] and 1 < len(levels[name]) <= len(table) / 2]
    size = table.find(*SIZE_NAMES)
    if size not in few:
        return None
    numbers = {name: _all_numbers(entries) for name, entries in table.lists.items()}
    sizes = numbers[size]
    strata = [
        name
        for name in few
        if name != size and len(set(zip(texts[name], texts[size], strict=True))) == len(levels[name])
    ]
    if sizes is None or not strata or np.any(sizes != np.floor(sizes)):
        return None
    rows = Counter(texts[strata[0]])
    if any(rows[name] > number for name, number in zip(texts[strata[0]], sizes.tolist(), strict=True)):
        return None
    ids = table.find(*ID_NAMES)
    others = [
        name for name, found in numbers.items() if found is not None and name not in (size, *strata, ids)
    ]
    measured = [name for name in others if len(levels[name]) < len(table) or not _counts_rows(numbers[name])]
    return (strata[0], size, measured) if measured else None


def _all_numbers(entries: list[Any]) -> FloatArray | None:
    """Return the numbers of a column that holds nothing else."""
    numbers = np.array([number_of_text(entry) if isinstance(entry, str) else entry for entry in entries])
    return numbers if numbers.dtype.kind in "if" and np.all(np.isfinite(numbers)) else None


def _counts_rows(numbers: FloatArray | None) -> bool:
    """Return whether a column only numbers the rows."""
    return numbers is not None and bool(np.all(np.abs(np.diff(numbers)) == 1))


WHOLE = "all"
"""What the one stratum is called where there are none."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OtherUnits(Record):
    """Units of a population other than the labelled ones, by stratum.

    Parameters
    ----------
    names : tuple of str (H,)
    counts : int (H,)
    means, squares : float (H,)
        Means of the proxy, and sums of squared deviations from them; 0 without one.
    proxy : ProxyInfo, optional
    notes : tuple of str
        How they were told from the labelled ones.

    Examples
    --------
    >>> population = Population.from_arrays(proxy=[0.2, 0.4, 0.9], ids=["a", "b", "c"])
    >>> others = other_units(population, ["c"], proxy="proxy")
    >>> others.counts, others.means.round(3), others.variances.round(3)
    (array([2]), array([0.3]), array([0.02]))
    """

    names: tuple[str, ...]
    counts: IntArray
    means: FloatArray
    squares: FloatArray
    proxy: ProxyInfo | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def variances(self) -> FloatArray:
        """Variances of the proxy (H,), divisor count − 1."""
        return np.asarray(self.squares / np.maximum(self.counts - 1, 1))

    def moments(self) -> dict[str, list[Any]]:
        """Return the table that `proxy_moments` takes."""
        columns = {"mean": self.means, "variance": self.variances, "count": self.counts}
        return {"stratum": list(self.names), **{name: values.tolist() for name, values in columns.items()}}

    def without(self, part: OtherUnits) -> OtherUnits:
        """Return the units without those of a part of them, which must have proxies of the same strata.

        Raises
        ------
        InputError
            For a part with more units than there are in a stratum.

        Examples
        --------
        >>> both = other_units({"proxy": [0.2, 0.4, 0.9]}, None, proxy="proxy")
        >>> both.without(other_units({"proxy": [0.9]}, None, proxy="proxy")).means.round(3)
        array([0.3])
        """
        at = {name: h for h, name in enumerate(part.names)}
        here = [at.get(name) for name in self.names]
        n, means, squares = (
            np.array([0 if h is None else values[h] for h in here])
            for values in (part.counts, part.means, part.squares)
        )
        if set(at) - set(self.names) or np.any(n > self.counts):
            raise InputError(
                "the labelled units are not among those of the population",
                given=f"{int(part.counts.sum())} of {int(self.counts.sum())}",
                action="Leave includes_labelled out if they are other units.",
            )
        return self.less(n.astype(np.int64), means, squares)

    def less(self, n: IntArray, means: FloatArray, squares: FloatArray) -> OtherUnits:
        """Return what is left when n units of each stratum (H,) with these moments are taken out."""
        left = self.counts - n
        others = (self.counts * self.means - n * means) / np.maximum(left, 1)
        between = n * left / np.maximum(self.counts, 1) * (means - others) ** 2
        kept = left > 0
        return replace(
            self,
            names=tuple(name for name, keep in zip(self.names, kept.tolist(), strict=True) if keep),
            counts=left[kept],
            means=others[kept],
            squares=np.maximum(self.squares - squares - between, 0.0)[kept],
        )


def other_units(
    source: Any,
    labelled: Sequence[str] | None,
    *,
    proxy: str | None = None,
    stratum: str | None = None,
    id_name: str | None = None,
    columns: Mapping[str, AnyArray] | None = None,
) -> OtherUnits:
    """Return what is known of the units of a population that are not the labelled ones.

    Parameters
    ----------
    source : path, dataframe, mapping of columns, or Population
    labelled : sequence of str, optional
        Ids of the labelled units. Those that are in the population are taken out; without ids on either
        side, its rows are taken as other units.
    proxy, stratum, id_name : str, optional
        Its columns.
    columns : mapping of str to (n,) array, optional
        The same columns of the labelled units, which those with their ids must have.

    Raises
    ------
    InputError
        If some ids of the labelled units are in the population and others are not, or only in another
        spelling (007 and 7), and if a unit has another proxy or stratum there.
    """
    population, has_ids = _population(source, proxy, stratum, id_name)
    known = list(labelled) if labelled is not None and has_ids else []
    found = population.find(known) if known else None
    if found is not None:
        _refuse_other_labelled(population, known, found, {} if columns is None else columns)
    rule = _rule(population, stratum)
    k = None if proxy is None else population.proxy_names.index(population.proxy_info(proxy).name)
    summary = population.summarise(rule)
    sizes, none = summary.sizes, np.zeros(len(summary.sizes))
    whole = OtherUnits(
        names=rule.levels if isinstance(rule, Categories) else (WHOLE,),
        counts=sizes,
        means=none if k is None else summary.proxy_means[:, k],
        squares=none if k is None else summary.proxy_covariances[:, k, k] * sizes,
        proxy=None if k is None else population.proxies[k],
        notes=(
            *population.notes,
            _described(population, labelled, has_ids, 0 if found is None else len(found.ids)),
        ),
    )
    n, own, squares = np.zeros(len(sizes), np.int64), none, none
    if found is not None and len(found.ids):
        codes = (
            rule.assign(found.groups) if isinstance(rule, Categories) else np.zeros(len(found.ids), np.int64)
        )
        n = np.bincount(codes, minlength=len(sizes))
        values = np.zeros(len(codes)) if k is None else found.proxies[:, k]
        own = np.bincount(codes, values, minlength=len(sizes)) / np.maximum(n, 1)
        squares = np.bincount(codes, (values - own[codes]) ** 2, minlength=len(sizes)).astype(np.float64)
    others = whole.less(n, own, squares)
    if not len(others.counts):
        raise InputError("every unit of the population is labelled", action="Leave the population out.")
    return others


def _population(
    source: Any, proxy: str | None, stratum: str | None, id_name: str | None
) -> tuple[Population, bool]:
    """Return the population, and whether its units have ids."""
    if isinstance(source, Population):
        return source, not source.numbered_by_row and source.id_name != ROW
    columns: dict[str, Any] = {"id": id_name, "proxy": proxy, "groups": stratum or ()}
    if isinstance(source, Mapping):
        import pyarrow as pa

        source = pa.table({name: pa.array(np.asarray(values)) for name, values in source.items()})
    read = Population.read if isinstance(source, str | Path) else Population.from_table
    try:
        return read(source, **columns), True
    except InputError as error:
        if id_name is not None or "no column is called 'id'" not in error.what:
            raise
    return read(source, **{**columns, "id": ROW}), False


def _refuse_other_labelled(
    population: Population, labelled: list[str], found: Drawn, columns: Mapping[str, AnyArray]
) -> None:
    """Refuse ids that match only in part, and units that are not as they are among the labelled ones."""
    place = {text: row for row, text in enumerate(id_texts(found.ids))}
    absent = [text for text in labelled if text not in place]
    spelt = {} if not absent else _other_spelling(population, absent[:_TRIED])
    if spelt or (place and absent):
        one = next((text for text in absent if text in spelt), absent[0])
        count = f"{len(labelled) - len(absent):,} of {len(labelled):,} labelled units, but not {one!r}"
        raise InputError(
            "the ids of the labelled units match the population's only in part",
            given=count + (f", which it has as {spelt[one]!r}" if spelt else ""),
            allowed="all labelled units among the population's, or none",
            action="Write ids alike in both files; give the whole population, or one without labelled units.",
        )
    proxies = {name: found.proxies[:, k] for k, name in enumerate(population.proxy_names)}
    known = {name.casefold(): values.tolist() for name, values in columns.items()}  # found so in either file
    for name, values in {**found.groups, **proxies}.items():
        for text, own in zip(labelled, known.get(name.casefold(), ()), strict=False):
            there = values[place[text]].item() if text in place else own
            if not same_value(own, there):
                raise InputError(
                    f"column {name!r} of unit {text!r} is not the same in both files",
                    given=f"{own!r} among the labelled units, {there!r} in the population",
                    action="Give the population that the labelled units are from, unchanged.",
                )


_TRIED = 50
"""Labelled units whose ids are looked for in another spelling: files are spelt alike throughout."""


def _other_spelling(population: Population, ids: Sequence[str]) -> dict[str, str]:
    """Return how the population spells ids that it does not have: with zeros in front, with .0 or without."""
    tried: dict[str, str] = {}
    for text in ids:
        bare = bare_form(text)
        forms = [bare, f"{bare}.0", *("0" * zeros + bare for zeros in range(1, 9))]
        tried |= {form: text for form in forms if form != text}
    return {tried[there]: there for there in id_texts(population.find(list(tried)).ids)}


def _rule(population: Population, stratum: str | None) -> Rule:
    if stratum is None:
        return Everything()
    levels = tuple(sorted(population.levels(stratum)))
    return Categories(column=population.require_group(stratum), levels=levels, codes=np.arange(len(levels)))


def _described(population: Population, labelled: Sequence[str] | None, has_ids: bool, found: int) -> str:
    size = f"the population has {population.size:,} rows"
    if labelled is None or not has_ids:
        return f"{size}, taken as units other than the labelled ones, since ids do not tell"
    if found == 0:
        return f"{size}, none of which has the id of a labelled unit: the labelled ones come on top"
    return f"{size}, the {found:,} labelled units among them"


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
    columns, given, notes = _completed_by_others(columns, given)
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


def _completed_by_others(
    columns: SmallTable, given: Labelled
) -> tuple[SmallTable, Labelled, tuple[str, ...]]:
    """Return the labelled rows, what is known with the population's other units counted, and notes."""
    if given.population is None and (given.proxy is None or given.proxy_moments is not None):
        return columns, given, ()
    answered = [not is_missing(entry) for entry in columns.values(given.value, _NAME_IT)]
    rows = [row for row, there in enumerate(answered) if there]
    others = [row for row, there in enumerate(answered) if not there]
    labelled = columns.only(rows) if rows else columns
    if given.population is None:
        found = _others_in_table(columns, given, others if rows else [])
        return labelled, _completed(labelled, given, found), found.notes
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
    return labelled, _completed(labelled, given, found), (*found.notes, *filter(None, [left_out]))


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


def _completed(columns: SmallTable, given: Labelled, others: OtherUnits) -> Labelled:
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


def _by_stratum(columns: SmallTable, given: Labelled) -> dict[str, Any]:
    """Return strata, design and summary of a sample that was drawn at random within strata, or in one."""
    labelled = columns.texts(given.stratum) if given.stratum else np.full(len(columns), WHOLE)
    whole = given.stratum is None and given.population_size is not None
    sizes = {WHOLE: given.population_size} if whole else sizes_of(given.sizes, given.stratum)
    others = _moments(given)
    names = sorted({*labelled.tolist(), *(sizes or {}), *(others or {})})
    codes = np.searchsorted(np.array(names), labelled)
    counts = np.bincount(codes, minlength=len(names))
    for name in names:
        if others is not None and name not in others:
            raise InputError(
                f"proxy_moments has no row for stratum {name!r}",
                allowed=", ".join(list(others)[:8]),
                action="Give a row with mean, variance and count for each stratum of the labels.",
            )
    moments = None if others is None else np.array([others[name] for name in names])
    n_total = _checked_sizes(names, counts, None if moments is None else moments[:, 2], sizes, columns.label)
    summary = StratumSummary.without_proxies(n_total)
    if moments is not None and given.proxy:
        summary = _with_others(codes, counts, moments, columns.numbers(given.proxy), n_total)
    return {
        "stratum": codes,
        "inclusion_probability": np.minimum(counts / n_total, 1.0)[codes],
        "summary": summary,
        "design": _design(names, counts, moments, summary, given.stratum),
    }


def _checked_sizes(
    names: list[str],
    counts: IntArray,
    unlabelled: FloatArray | None,
    given: Mapping[str, Any] | None,
    label: str,
) -> IntArray:
    """Return N_h (H,), refusing sizes that contradict the labelled units."""
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
        return counts + unlabelled.astype(np.int64)
    sizes = np.array([given[name] for name in names], np.int64)
    for h in np.flatnonzero(counts > sizes)[:1].tolist() if unlabelled is None else ():
        raise InputError(
            f"{label}: stratum {names[h]!r} has more labelled units than units",
            given=f"{counts[h]} of {sizes[h]}",
            action="Sizes count the units of the whole population, labelled ones included.",
        )
    return sizes


def _with_others(
    codes: IntArray, counts: IntArray, moments: FloatArray, proxy: FloatArray, sizes: IntArray
) -> StratumSummary:
    """Return the moments of the proxy (n,) over labelled units and others (H, 3) together."""
    n, (mean, variance, m) = counts, moments.T
    own = np.bincount(codes, proxy, minlength=len(n)) / n
    squares = np.bincount(codes, (proxy - own[codes]) ** 2, minlength=len(n))
    joint = (n * own + m * mean) / (n + m)
    spread = (squares + variance * np.maximum(m - 1, 0) + n * m / (n + m) * (own - mean) ** 2) / (n + m)
    return StratumSummary(sizes=sizes, proxy_means=joint[:, None], proxy_covariances=spread[:, None, None])


def _design(
    names: list[str],
    counts: IntArray,
    moments: FloatArray | None,
    summary: StratumSummary,
    stratum: str | None,
) -> dict[str, Any]:
    """Return the description of the design that strata and counts amount to."""
    sizes = summary.sizes
    if moments is not None and np.any(moments[:, 2] != sizes - counts):
        others = dict(zip(("means", "variances", "counts"), moments.T, strict=True))
        return {"kind": "separate-samples", "names": names, "shares": sizes / sizes.sum(), **others}
    if stratum is None:
        return {"kind": "simple-random", "budget": int(counts[0])}
    nothing = np.full(len(sizes), np.nan)
    with_proxy = summary.proxy_means.shape[1] > 0
    strata = Strata(
        rule=Categories(column=stratum, levels=tuple(names), codes=np.arange(len(sizes))),
        names=tuple(names),
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
    summary = StratumSummary.without_proxies(sizes)
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
