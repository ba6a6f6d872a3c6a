"""A file of predictions whose outcomes are all known: a population in memory, and the outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray
from stratal.errors import InputError
from stratal.population.population import Population


def read_benchmark(
    file: str | Path,
    outcome: str,
    proxies: Sequence[str] = (),
    *,
    groups: Sequence[str] = (),
    bounds: tuple[float, float] | None = None,
    scaled: bool | None = None,
    **reading: Any,
) -> tuple[Population, FloatArray]:
    """Read a fully labelled file into memory.

    Parameters
    ----------
    file : path
        Parquet, CSV or JSON Lines.
    outcome : str
        Column of z, known for every unit.
    proxies, groups : sequence of str
        Columns, as in `Population.read`.
    bounds : (float, float), optional
        Of the outcome and what the proxies predict.
    scaled : bool, optional
        False for proxies that only order.
    **reading
        What else `Population.read` is to know: `id`, `delimiter`, `directory`.

    Returns
    -------
    (Population, float (N,))

    Raises
    ------
    InputError
        If the outcome is one of the proxies, is missing somewhere, or lies outside the bounds.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pilot.csv"
    ...     _ = path.write_text("id,confidence,correct\\na,0.9,1\\nb,0.4,0\\n")
    ...     population, z = read_benchmark(path, "correct", ["confidence"])
    >>> population.size, z
    (2, array([1., 0.]))
    """
    if outcome in proxies:
        raise InputError(f"the outcome cannot be its own proxy: {outcome!r}", action="Name another column.")
    read = Population.read(
        file,
        proxy=[*proxies, outcome],
        groups=tuple(groups),
        bounds=bounds,
        **reading,
    )
    names = (*proxies, outcome, *groups)
    columns: dict[str, list[AnyArray]] = {name: [] for name in names}
    for batch in read.batches(names):
        for name in names:
            columns[name].append(np.asarray(batch[name]))
    whole = {name: np.concatenate(parts) for name, parts in columns.items()}
    population = Population.from_arrays(
        proxy={name: whole[name] for name in proxies} or None,
        show=None if proxies or groups else {outcome: whole[outcome]},
        groups={name: whole[name] for name in groups},
        bounds=bounds if proxies else None,
        scaled=scaled,
    )
    return population, whole[outcome].astype(np.float64)
