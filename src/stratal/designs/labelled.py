"""What the user says of units that were drawn and labelled elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Required, TypedDict

import numpy as np

from stratal.arrays import AnyArray
from stratal.errors import InputError, LabelError
from stratal.population.declaration import ROW
from stratal.randomness import id_array, id_texts
from stratal.tables.logs.log import ID_NAMES
from stratal.tables.small_table import SmallTable, is_missing


class LabelledKeywords(TypedDict, total=False):
    """The keywords of `Sample.from_labelled`."""

    value: Required[str]
    id: str | None
    stratum: str | None
    sizes: Any
    cluster: str | None
    weight: str | None
    inclusion_probability: str | None
    mechanism: str
    population_size: int | None
    proxy: str | None
    proxy_moments: Any
    population: Any
    scaled: bool
    bounds: tuple[float, float] | None
    groups: Sequence[str]
    predicted: str | None


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
            raise InputError("sizes and population_size say the same", action="Give one of them.")
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
            raise InputError("the population says its size itself", action="Leave population_size out.")
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
