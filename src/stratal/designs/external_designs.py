"""The design of an external sample: strata of known size, whole clusters, or weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray
from stratal.designs.external_columns import stratum_sizes
from stratal.designs.external_options import ExternalOptions
from stratal.designs.other_units import SINGLE_STRATUM, OtherUnits
from stratal.errors import InputError, suggest_names
from stratal.population.rules import Categories
from stratal.population.summary import StratumSummary
from stratal.strata import Allocation
from stratal.strata.strata import Strata
from stratal.tables.small_table import SmallTable


def stratified_fields(
    columns: SmallTable, options: ExternalOptions, others: OtherUnits | None
) -> dict[str, Any]:
    """Return the fields of `Sample` for a simple random sample of each stratum, or of all units.

    They are `stratum` and `inclusion_probability` of the labelled rows (n,), `summary`, and `design` as a
    dict. `others` are the units without a label, if they are known.
    """
    if options.stratum:
        stratum_names = columns.texts(options.stratum)
    else:
        stratum_names = np.full(len(columns), SINGLE_STRATUM)
    stated_sizes = _stated_sizes(options)
    moments_by_stratum: Mapping[str, tuple[float, float, int]] = {}
    if others is not None:
        moments_by_stratum = others.strata
    names = sorted({*stratum_names.tolist(), *(stated_sizes or {}), *moments_by_stratum})
    codes = np.searchsorted(np.array(names), stratum_names)
    counts = np.bincount(codes, minlength=len(names))
    for name in names:
        if options.proxy_moments is not None and name not in moments_by_stratum:
            allowed = ", ".join(list(moments_by_stratum)[:8])
            raise InputError(f"proxy_moments has no row for stratum {name!r}", allowed=allowed)
    # Mean and variance of the proxy of the other units, and their number, for each stratum.
    moments = np.array([moments_by_stratum.get(name, (0.0, 0.0, 0)) for name in names])
    other_counts = None if others is None else moments[:, 2]
    sizes = _checked_stratum_sizes(names, counts, other_counts, stated_sizes, columns.table_name)
    summary = StratumSummary.without_proxies(sizes)
    is_separate = False
    if others is not None and options.first_proxy:
        summary = _summary_with_proxy(sizes, codes, columns.numbers(options.first_proxy), moments)
        is_separate = bool(np.any(moments[:, 2] != sizes - counts))
    if is_separate:
        design: dict[str, Any] = {
            "kind": "separate-samples",
            "names": names,
            "shares": sizes / sizes.sum(),
            "means": moments[:, 0],
            "variances": moments[:, 1],
            "counts": moments[:, 2],
        }
    elif options.stratum is None:
        design = {"kind": "simple-random", "budget": int(counts[0])}
    else:
        design = stratified_design(options.stratum, names, counts, summary)
    return {
        "stratum": codes,
        "inclusion_probability": np.minimum(counts / sizes, 1.0)[codes],
        "summary": summary,
        "design": design,
    }


def _stated_sizes(options: ExternalOptions) -> Mapping[str, object] | None:
    """Return the stated size of each stratum, or of the whole population; None without one."""
    if options.stratum is None and options.population_size is not None:
        return {SINGLE_STRATUM: options.population_size}
    return stratum_sizes(options.sizes, options.stratum)


def _summary_with_proxy(
    sizes: IntArray, stratum: IntArray, proxy: FloatArray, moments: FloatArray
) -> StratumSummary:
    """Return the proxy moments over labelled and other units of sizes N_h (Chan, Golub & LeVeque 1983).

    `stratum` and `proxy` (n,) are those of the labelled units. `moments` (H, 3) are mean and variance of the
    proxy of the other units, and their number.
    """
    mean, variance, m = moments.T
    n = np.bincount(stratum, minlength=len(sizes))
    labelled_means = np.bincount(stratum, proxy, minlength=len(n)) / n
    labelled_squares = np.bincount(stratum, (proxy - labelled_means[stratum]) ** 2, minlength=len(n))
    other_squares = variance * np.maximum(m - 1, 0)
    between = n * m / (n + m) * (labelled_means - mean) ** 2
    joint_means = (n * labelled_means + m * mean) / (n + m)
    joint_variances = (labelled_squares + other_squares + between) / (n + m)
    return StratumSummary(
        sizes=sizes,
        proxy_means=joint_means[:, None],
        proxy_covariances=joint_variances[:, None, None],
    )


def _checked_stratum_sizes(
    names: list[str],
    counts: IntArray,
    other_counts: FloatArray | None,
    stated_sizes: Mapping[str, object] | None,
    table_name: str,
) -> IntArray:
    """Return N_h (H,), as stated, or n_h `counts` plus the numbers of other units (H,).

    Raises
    ------
    InputError
        If the sizes are unknown, or contradict the labelled units.
    """
    if stated_sizes is None and other_counts is None:
        raise InputError(
            "the table does not state from which population the labels were drawn",
            allowed="population= (--population FILE), sizes= of the strata (--sizes FILE), weight= "
            "(--weight COL), inclusion_probability= or population_size= (--population-size N)",
            action="Labels chosen by hand or by outcome are not a random sample: nothing can be estimated.",
        )
    for name in names:
        if stated_sizes is not None and name not in stated_sizes:
            raise InputError(
                f"{table_name}: stratum {name!r} has no size", allowed=suggest_names(name, stated_sizes)
            )
    if np.any(counts == 0):
        problem = f"{table_name}: stratum {names[int(np.argmin(counts))]!r} has no labelled unit"
        raise InputError(
            problem, action="Merge this stratum with another one, in the table and in the sizes."
        )
    if stated_sizes is None:
        assert other_counts is not None
        return counts + other_counts.astype(np.int64)
    sizes = np.array([stated_sizes[name] for name in names], np.int64)
    # If other units are a separate sample, the stated sizes may be relative, such as 1 and 3. Then only their
    # proportions are used, and they may be smaller than the numbers of labelled units.
    if other_counts is None and np.any(counts > sizes):
        h = int(np.argmax(counts > sizes))
        problem = f"{table_name}: stratum {names[h]!r} has more labelled units than its size"
        raise InputError(
            problem,
            given=f"{counts[h]} of {sizes[h]}",
            action="A size must count all units, labelled or not.",
        )
    return sizes


def stratified_design(
    stratum: str, names: list[str], counts: IntArray, summary: StratumSummary
) -> dict[str, Any]:
    """Return the stratified design of these strata and counts as a dict."""
    sizes = summary.sizes
    # Values that the table does not contain.
    unknown = np.full(len(sizes), np.nan)
    proxy_means = unknown
    proxy_variances = unknown
    if summary.proxy_means.shape[1] > 0:
        proxy_means = summary.proxy_means[:, 0]
        proxy_variances = summary.proxy_covariances[:, 0, 0]
    strata = Strata(
        rule=Categories.of_levels(stratum, names),
        names=tuple(names),
        sizes=sizes,
        proxy_means=proxy_means,
        proxy_variances=proxy_variances,
        conditional_variances=unknown,
        method="given",
    )
    allocation = Allocation(
        n_h=counts, method="given", budget=int(counts.sum()), minimum=np.zeros_like(counts), maximum=sizes
    )
    return {"kind": "stratified", "strata": strata.to_dict(), "allocation": allocation.to_dict()}


def cluster_design(cluster: str, sizes: Mapping[str, int], drawn: AnyArray) -> dict[str, Any]:
    """Return the design of a simple random sample of whole clusters as a dict.

    `sizes` are the numbers of rows of all clusters by name, and `drawn` (m,) the names of the drawn ones.
    """
    return {
        "kind": "clusters",
        "cluster": cluster,
        "n_clusters": len(drawn),
        "budget": None,
        "clusters": len(sizes),
        "squared_sizes": sum(int(size) ** 2 for size in sizes.values()),
    }


# Weights are relative if their sum is at most the number of units, up to this relative rounding error.
_WEIGHT_TOLERANCE = 1e-9


def weighted_fields(
    columns: SmallTable, options: ExternalOptions, others: OtherUnits | None
) -> dict[str, Any]:
    """Return the fields of `Sample` for a sample with weights, inclusion probabilities or clusters.

    They are those of `stratified_fields`, with a single stratum. The design stores the strata.
    """
    size = options.population_size
    # Product of weight and stored inclusion probability.
    scale = 1.0
    n = len(columns)
    if others is not None:
        size = n + sum(count for _, _, count in others.strata.values())
    weights_from_sizes = options.weight is None and options.inclusion_probability is None
    if options.inclusion_probability is not None:
        probabilities = _stated_probabilities(columns, options.inclusion_probability)
        total = float(np.sum(1.0 / probabilities))
    else:
        if weights_from_sizes:
            # Clusters without weights: all units of a stratum have the weight N_h / n_h.
            weights = 1.0 / stratified_fields(columns, options, others)["inclusion_probability"]
        else:
            weights = columns.numbers(options.weight or "", positive=True)
        total = float(weights.sum())
        # Relative weights may be below 1: the scale keeps the stored probabilities at most 1.
        scale = min(float(weights.min()), 1.0)
        probabilities = scale / weights
        if size is None and total < len(weights) * (1 + _WEIGHT_TOLERANCE):
            problem = f"{columns.table_name}: the weights sum to no more than the number of labelled units"
            raise InputError(problem, action="The weights are relative: also give population_size=.")
        if size is not None:
            scale *= size / total
    # A Poisson sample has each unit at most once. Draws with replacement may repeat units.
    if size is not None and size < n and options.mechanism == "poisson":
        raise InputError(
            "more units were drawn than there are", given=f"{n} of {size}", action="Correct population_size=."
        )
    design = {
        "kind": "given-weights",
        "scale": scale,
        "mechanism": options.mechanism,
        # Whether N of the population is known.
        "known_size": size is not None or weights_from_sizes,
        "stratum": options.stratum,
        "cluster": options.cluster,
        # Whether N_h of each stratum is known, and the weights are N_h / n_h.
        "sizes_known": weights_from_sizes and options.stratum is not None,
    }
    if size is None:
        size = max(round(total), 1)
    return {
        "stratum": np.zeros(n, np.int64),
        "inclusion_probability": probabilities,
        "summary": StratumSummary.without_proxies(np.array([size])),
        "design": design,
    }


def _stated_probabilities(columns: SmallTable, column: str) -> FloatArray:
    """Return a column (n,) of inclusion probabilities; raise an error for numbers above 1."""
    probabilities = columns.numbers(column, positive=True)
    if np.any(probabilities > 1):
        problem = f"{columns.table_name}: column {column!r} contains a probability above 1"
        raise InputError(problem, action="If these are weights, use weight= instead.")
    return probabilities
