"""A fully labelled benchmark: read from a file, and its true moments in each stratum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray
from stratal.errors import InputError
from stratal.estimation.estimand import Estimand
from stratal.estimation.estimands.means import Mean
from stratal.population.population import Population


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
        What else `Population.read` is to know: `id`, `delimiter`, `directory`.

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
    asked = Mean() if estimand is None else estimand
    proxies = tuple(dict.fromkeys((*proxies, *asked.proxy_names)))
    groups = tuple(name for name in dict.fromkeys((*groups, *asked.groups, predicted)) if name is not None)
    numbers = tuple(name for name in asked.numbers if name not in proxies)
    if outcome in (*proxies, *groups, *numbers):
        raise InputError(
            f"the outcome cannot be a column that predicts it: {outcome!r}", action="Name another column."
        )
    # An outcome between bounds is read as proxies are, which checks that it lies between them.
    of_mean = estimand is None
    read = Population.read(
        file,
        proxy=[*proxies, outcome] if of_mean else list(proxies) or None,
        groups=groups + ((outcome,) if asked.of_classes else ()),
        features=numbers + (() if of_mean or asked.of_classes else (outcome,)),
        predicted=predicted,
        bounds=bounds,
        **reading,
    )
    names = (*proxies, *groups, *numbers, outcome)
    parts: dict[str, list[AnyArray]] = {name: [] for name in names}
    for batch in read.batches(names):
        for name in names:
            parts[name].append(np.asarray(batch[name]))
    whole = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    population = Population.from_arrays(
        proxy={name: whole[name] for name in proxies} or None,
        groups={name: whole[name] for name in groups} or None,
        features={name: whole[name] for name in numbers} or None,
        show=None if proxies or groups or numbers else {outcome: whole[outcome]},
        predicted=predicted,
        bounds=bounds if proxies else None,
        scaled=scaled,
    )
    labels = whole[outcome]
    return population, labels.astype(np.float64) if of_mean else labels


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Truth:
    """The true moments of outcome and proxy in each stratum, and the units themselves.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    means : float (H,)
        True mean outcome.
    variances : float (H,)
        True S_h², divisor N_h − 1 (0 for a single unit).
    proxy_means, proxy_variances, covariances : float (H,)
        Of the proxy, and of proxy and outcome; divisor N_h − 1. Zeros where there is no proxy.
    binary : bool
        Whether every outcome is 0 or 1.
    centre : float
        The population mean, taken off every outcome before it is squared.
    outcomes, proxies : tuple of (N_h,) arrays
        z − centre and p − p̄_h of the units, stratum by stratum; empty for a binary outcome that only needs
        counts.

    Examples
    --------
    >>> truth = Truth.of(np.array([0.0, 1.0, 1.0]), None, np.array([0, 1, 1]), 2)
    >>> truth.means, truth.value
    (array([0., 1.]), 0.6666666666666666)
    """

    sizes: IntArray
    means: FloatArray
    variances: FloatArray
    proxy_means: FloatArray
    proxy_variances: FloatArray
    covariances: FloatArray
    binary: bool
    centre: float
    outcomes: tuple[FloatArray, ...] = ()
    proxies: tuple[FloatArray, ...] = ()

    @property
    def value(self) -> float:
        """The population mean."""
        return float(self.sizes @ self.means / self.sizes.sum())

    @property
    def size(self) -> int:
        """N."""
        return int(self.sizes.sum())

    @property
    def weights(self) -> FloatArray:
        """W_h (H,)."""
        return np.asarray(self.sizes / self.sizes.sum())

    @property
    def successes(self) -> IntArray:
        """Units with outcome 1 (H,); binary outcomes only."""
        return np.rint(self.means * self.sizes).astype(np.int64)

    @property
    def population_variance(self) -> float:
        """S², divisor N − 1."""
        within = np.maximum(self.sizes - 1, 0) @ self.variances
        between = self.sizes @ (self.means - self.value) ** 2
        return float((within + between) / max(self.size - 1, 1))

    def residual_variances(self, lam: float | FloatArray) -> FloatArray:
        """True S_h² (H,) of z − λẑ."""
        return np.asarray(
            np.maximum(self.variances - 2 * lam * self.covariances + lam**2 * self.proxy_variances, 0.0)
        )

    @classmethod
    def of(
        cls,
        z: FloatArray,
        proxy: FloatArray | None,
        codes: AnyArray,
        n_strata: int,
        *,
        units: bool = True,
    ) -> Truth:
        """Return the truth of units (N,) in strata `codes` (N,); `units=False` keeps counts only."""
        sizes = np.bincount(codes, minlength=n_strata).astype(np.int64)
        divisor = np.maximum(sizes - 1, 1)
        binary = bool(np.all((z == 0) | (z == 1)))
        centre = float(z.mean())

        def total(values: FloatArray) -> FloatArray:
            return np.asarray(np.bincount(codes, values, minlength=n_strata), dtype=np.float64)

        shifts = total(z - centre) / sizes
        variances = np.maximum(total((z - centre) ** 2) - sizes * shifts**2, 0.0) / divisor
        zeros = np.zeros(n_strata)
        proxy_means, proxy_variances, covariances, centred = zeros, zeros, zeros, None
        if proxy is not None:
            proxy_means = total(proxy) / sizes
            centred = proxy - proxy_means[codes]
            proxy_variances = total(centred**2) / divisor
            covariances = total(centred * (z - centre)) / divisor
        outcomes: tuple[FloatArray, ...] = ()
        proxies: tuple[FloatArray, ...] = ()
        if units:
            order = np.argsort(codes, kind="stable")
            places = np.cumsum(sizes)[:-1]
            outcomes = tuple(np.split((z - centre)[order], places))
            proxies = () if centred is None else tuple(np.split(centred[order], places))
        return cls(
            sizes=sizes,
            means=total(z) / sizes if binary else shifts + centre,
            variances=variances,
            proxy_means=proxy_means,
            proxy_variances=proxy_variances,
            covariances=covariances,
            binary=binary,
            centre=centre,
            outcomes=outcomes,
            proxies=proxies,
        )
