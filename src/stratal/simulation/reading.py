"""A file of predictions whose outcomes are all known: a population in memory, and the outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray
from stratal.errors import InputError
from stratal.estimation.estimand import Estimand
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


def read_answered_benchmark(
    file: str | Path, truth: str, estimand: Estimand, proxies: Sequence[str] = (), **reading: Any
) -> tuple[Population, AnyArray]:
    """Read a fully labelled file into memory for an estimand other than the mean.

    Parameters
    ----------
    file, proxies, **reading
        As for `read_benchmark`, and `predicted`, the column of the model's answers.
    truth : str
        Column of the labels: true classes, or numbers.
    estimand : Estimand
        Its columns are read with the others.

    Returns
    -------
    (Population, (N,))
        Labels are text where they are classes.

    Raises
    ------
    InputError
        If the labels are a proxy, or no numbers where they must be.

    Examples
    --------
    >>> import tempfile
    >>> from stratal.estimation.estimands import F1
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pool.csv"
    ...     _ = path.write_text("id,answer,truth\\na,match,match\\nb,other,match\\n")
    ...     population, labels = read_answered_benchmark(path, "truth", F1("match"), predicted="answer")
    >>> population.group_names, labels.tolist()
    (('answer',), ['match', 'match'])
    """
    predicted = reading.pop("predicted", None)
    proxies = tuple(dict.fromkeys((*proxies, *estimand.proxy_names)))
    if truth in (*proxies, *estimand.groups, *estimand.numbers, predicted):
        raise InputError(
            f"the labels cannot be a column that predicts them: {truth!r}", action="Name another column."
        )
    groups = tuple(dict.fromkeys(name for name in (*estimand.groups, predicted) if name is not None))
    features = tuple(name for name in estimand.numbers if name not in proxies)
    of_classes = estimand.of_classes
    read = Population.read(
        file,
        proxy=list(proxies) or None,
        groups=groups + ((truth,) if of_classes else ()),
        features=features + (() if of_classes else (truth,)),
        predicted=predicted,
        **reading,
    )
    names = (*proxies, *groups, *features, truth)
    parts: dict[str, list[AnyArray]] = {name: [] for name in names}
    for batch in read.batches(names):
        for name in names:
            parts[name].append(np.asarray(batch[name]))
    whole = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    population = Population.from_arrays(
        proxy={name: whole[name] for name in proxies} or None,
        groups={name: whole[name] for name in groups} or None,
        features={name: whole[name] for name in features} or None,
        predicted=predicted,
        show=None if proxies or groups or features else {truth: whole[truth]},
    )
    return population, whole[truth]
