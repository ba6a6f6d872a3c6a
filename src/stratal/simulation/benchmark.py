"""A fully labelled benchmark, read from a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stratal.arrays import AnyArray
from stratal.errors import InputError
from stratal.estimation.estimand import Estimand
from stratal.estimation.estimands.means import Mean
from stratal.population.population import Population
from stratal.proxy import Proxy
from stratal.proxy.history import history_columns


def read_benchmark(
    file: str | Path,
    outcome: str,
    proxies: Sequence[str] = (),
    *,
    estimand: Estimand | None = None,
    groups: Sequence[str] = (),
    bounds: tuple[float, float] | None = None,
    scaled: bool | None = None,
    predicted: str | None = None,
    **reading: Any,
) -> tuple[Population, AnyArray]:
    """Read a fully labelled file into memory.

    Parameters
    ----------
    file : path
        Parquet, CSV or JSON Lines.
    outcome : str
        Column of the labels, known for every unit: z, or true classes where the estimand compares classes.
    proxies, groups : sequence of str
        Columns, as in `Population.read`.
    estimand : Estimand, optional
        The mean unless given. Its columns are read with the others.
    bounds : (float, float), optional
        Of the outcome and what the proxies predict.
    scaled : bool, optional
        False for proxies that only order.
    predicted : str, optional
        Column of the model's answers.
    **reading
        What else `Population.read` is to know: `id`, `delimiter`, `directory`; `answers` and `history`, of
        which proxies are made.

    Returns
    -------
    (Population, (N,))
        The labels are numbers, or text where they are classes.

    Raises
    ------
    InputError
        If the labels are among the columns that predict them, are missing somewhere, are no numbers where
        they must be, or lie outside the bounds.

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
    quantity = Mean() if estimand is None else estimand
    proxies = tuple(dict.fromkeys((*proxies, *quantity.proxy_names)))
    groups = tuple(name for name in dict.fromkeys((*groups, *quantity.groups, predicted)) if name is not None)
    numbers = tuple(name for name in quantity.numbers if name not in proxies)
    if outcome in (*proxies, *groups, *numbers):
        raise InputError(
            f"the outcome cannot be a column that predicts it: {outcome!r}", action="Name another column."
        )
    # An outcome between bounds is read as proxies are, which checks that it lies between them.
    of_mean = estimand is None
    read = Population.read(
        file,
        proxy=[*proxies, outcome] if of_mean else list(proxies) or None,
        groups=groups + ((outcome,) if quantity.of_classes else ()),
        features=numbers + (() if of_mean or quantity.of_classes else (outcome,)),
        predicted=predicted,
        bounds=bounds,
        **reading,
    )
    numbers += history_columns(read.feature_names)
    agreements = [info for info in read.proxies if info.name not in (*proxies, outcome)]
    proxies = (*(info.name for info in agreements), *proxies)
    names = (*proxies, *groups, *numbers, outcome)
    batches = list(read.batches(names))
    whole = {name: np.concatenate([np.asarray(batch[name]) for batch in batches]) for name in names}
    on_own_scale = {
        one.name: Proxy(values=whole[one.name], scaled=one.scaled, bounds=one.bounds, name=one.name)
        for one in agreements
    }
    population = Population.from_arrays(
        proxy={name: whole[name] for name in proxies} | on_own_scale or None,
        groups={name: whole[name] for name in groups} or None,
        features={name: whole[name] for name in numbers} or None,
        show=None if proxies or groups or numbers else {outcome: whole[outcome]},
        predicted=predicted,
        bounds=bounds if proxies else None,
        scaled=scaled,
    )
    labels = whole[outcome]
    return population, labels.astype(np.float64) if of_mean else labels
