"""The columns of N units in memory, and the check that their ids tell them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from stratal.arrays import AnyArray, FloatArray
from stratal.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayUnits:
    """The columns of N units as arrays, each (N,), by name.

    Parameters
    ----------
    values, second : mapping
        Proxies, and the second moments of each or None.
    ids : optional
        int64 or text; row numbers if left out.
    groups, features, shown : mapping
        Text, numbers, payload.
    """

    values: Mapping[str, FloatArray]
    second: Mapping[str, FloatArray | None]
    ids: AnyArray | None
    groups: Mapping[str, AnyArray]
    features: Mapping[str, FloatArray]
    shown: Mapping[str, AnyArray]

    @property
    def others(self) -> tuple[Mapping[str, AnyArray], ...]:
        """All columns but ids and proxies."""
        return self.groups, self.features, self.shown


def refuse_duplicates(texts: list[str]) -> None:
    """Raise an `InputError` that counts the ids that stand more than once and names the first.

    Examples
    --------
    >>> refuse_duplicates(["a", "b"])
    """
    if len(set(texts)) == len(texts):
        return
    repeated = [text for text, count in Counter(texts).items() for _ in range(count - 1)]
    ids = "1 id is" if len(repeated) == 1 else f"{len(repeated)} ids are"
    raise InputError(
        f"{ids} duplicated (first: {repeated[0]!r})",
        allowed="one unit per id",
        action="Remove the duplicates, or make an id that tells the units apart.",
    )
