"""`compare`: which of several models is better, on one labelled sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray
from stratal.errors import InputError, names_mistyped, near_names
from stratal.estimation.columns import number_columns
from stratal.estimation.contrasts import contrast_moments, left_by_strata, ratio_of_pair
from stratal.estimation.estimate_table import EstimateTable, title_of
from stratal.estimation.leaderboard import leaderboard
from stratal.estimation.mean import EstimateOptions, default_estimator, mean_estimate
from stratal.estimation.model_pairs import ModelPair, bounds_of_outcomes, differences_in_family, never_between
from stratal.estimation.paired import (
    Differences,
    check_models,
    paired_differences,
    rank_sets,
)
from stratal.estimation.respondents import Respondents
from stratal.intervals.interval import tail_shares
from stratal.report import plain
from stratal.sampling.asked import require_sample
from stratal.sampling.sample import Sample

Pair = tuple[int, int]


@names_mistyped
def compare(
    sample: Sample,
    outcomes: Mapping[str, Any],
    *,
    reference: str | None = None,
    proxies: Mapping[str, str] | None = None,
    alternative: str = "two-sided",
    simultaneous: bool = True,
    bounds: tuple[float, float] | None = None,
    target: str = "population",
    confidence_level: float = 0.95,
    seed: int = 0,
) -> EstimateTable:
    """Compare models by paired differences of their outcomes on the same labelled units.

    Parameters
    ----------
    sample : Sample
    outcomes : mapping of model name to outcomes
        Each a mapping of id to z, an array in the order of `sample.ids`, a Series or Labels. Units that lack
        an outcome of some model are left out, as nonresponse.
    reference : str, optional
        Compare every other model with this one; all pairs if not given. Rank sets need all pairs.
    proxies : mapping of model name to proxy name, optional
        Proxies of the models' outcomes; the difference of two proxies then reduces the variance of the
        difference of their models, by a fitted λ, where the sample's strata leave enough of it.
    alternative : {"two-sided", "less", "greater"}
        `greater` asks whether a is better than b, and bounds the difference from below.
    simultaneous : bool
        Whether intervals and p-values of more than two models are adjusted, so that all hold together.
    bounds : (float, float), optional
        What the outcomes cannot leave; the sample's, or 0 and 1 if nobody said and all are 0, ½ or 1.
    target : {"population", "superpopulation"}
    confidence_level : float
    seed : int
        Of the simulation behind simultaneous intervals.

    Returns
    -------
    EstimateTable
        Rows with `a`, `b`, `difference`, `standard_error`, `confidence_interval`, `p_value` (of no
        difference; agrees with the interval), `n`, `ratio` (a dict with estimate, standard error and
        interval; None where a mean is 0) and `win_rate` (of a over b, ties counting one half). With all
        pairs the table's notes give each model's mean and the ranks that are left open.

    Raises
    ------
    InputError
        For fewer than two models and unknown names.
    LabelError
        If no unit has outcomes of all models.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.9, 0.8, 0.3, 0.6, 0.7, 0.2])
    >>> sample = stratal.SimpleRandom(budget=5).draw(population, seed=7)
    >>> row = stratal.compare(sample, {"new": [1, 1, 0, 1, 1], "old": [1, 0, 0, 1, 0]}).rows[0]
    >>> row["a"], row["b"], round(row["difference"], 3), round(row["win_rate"]["estimate"], 3)
    ('new', 'old', 0.4, 0.7)
    """
    require_sample(sample, "compare")
    tail_shares(confidence_level, alternative)
    outcomes = _by_model(outcomes)
    names = list(outcomes)
    pairs = _pairs(names, reference)
    z, labelled = number_columns(sample, outcomes, "no unit has an outcome of every model", "such unit")
    frame = Respondents.of(sample, labelled)
    bounds = bounds_of_outcomes(sample, z) if bounds is None else bounds
    first, second = np.array(pairs).T
    contrasts, slopes = z[:, first] - z[:, second], _proxies(sample, names, proxies)
    taken = _taken(sample, frame, labelled, slopes[first] - slopes[second])
    differences = _differences(sample, frame, labelled, contrasts, taken, bounds, target)
    family = differences.family(alternative, simultaneous=simultaneous, seed=seed)
    low, high = differences.intervals(family.critical(confidence_level), alternative)
    p_values = family.p_values(differences.statistics())
    asked = _Asked(sample, frame, labelled, names, z, bounds, target, confidence_level, alternative)
    if never_between(z, bounds) and not np.any(taken):
        both = [asked.pair(a, b) for a, b in pairs]
        low, high, p_values = differences_in_family(both, family, confidence_level)
    notes = list(frame.notes)
    stated, nothing = _stated(differences, (low, high), p_values)
    if nothing:
        notes.append("outcomes without bounds that always differ alike give no interval: give bounds=")
    rows = [
        {"a": names[a], "b": names[b], **row, "n": len(z), **asked.of_pair(a, b)}
        for (a, b), row in zip(pairs, stated, strict=True)
    ]
    if reference is None and alternative == "two-sided" and len(names) > 2:
        notes += _ranking(names, frame.weighting.mean(z), rank_sets(low, high, pairs, len(names)))
    missing = sample.size - len(z)
    if missing:
        notes.append(f"{missing:,} of {sample.size:,} drawn units lack the outcome of some model")
    together = ", simultaneous" if simultaneous and len(pairs) > 1 else ""
    board: tuple[dict[str, Any], ...] = ()
    if alternative == "two-sided":
        options = EstimateOptions(target=target, bounds=bounds)
        board = leaderboard(
            sample, frame, z, rows, names=names, options=options, confidence_level=confidence_level
        )
    return EstimateTable(
        kind="comparisons",
        title=title_of(sample, len(z), target, ", paired", together),
        rows=tuple(rows),
        confidence_level=confidence_level,
        notes=tuple(notes),
        leaderboard=board,
    )


def ranks(table: EstimateTable) -> dict[str, list[int]]:
    """Return for each model of a comparison the first and last rank that its intervals leave open.

    Raises
    ------
    InputError
        If the table does not compare all pairs.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 100)
    >>> sample = stratal.SimpleRandom(budget=5).draw(population, seed=7)
    >>> ranks(stratal.compare(sample, {"new": [1, 1, 0, 1, 1], "old": [1, 0, 0, 1, 0]}))
    {'new': [1, 2], 'old': [1, 2]}
    """
    names = list(dict.fromkeys([row["a"] for row in table] + [row["b"] for row in table]))
    if len(table) != len(names) * (len(names) - 1) // 2:
        raise InputError("ranks need a comparison of all pairs", action="Leave reference= out.")
    ends = [row["confidence_interval"] or [None, None] for row in table]
    low = np.array([-np.inf if end[0] is None else end[0] for end in ends])
    high = np.array([np.inf if end[1] is None else end[1] for end in ends])
    pairs = [(names.index(row["a"]), names.index(row["b"])) for row in table]
    return dict(zip(names, rank_sets(low, high, pairs, len(names)), strict=True))


def _by_model(outcomes: Any) -> dict[str, Any]:
    """Return the outcomes of each model by name, at least two of them."""
    if not (isinstance(outcomes, Mapping) or (hasattr(outcomes, "columns") and hasattr(outcomes, "items"))):
        raise InputError(
            "outcomes must be a mapping of model name to outcomes",
            given=type(outcomes).__name__,
            action="Give {'model_a': labels_a, 'model_b': labels_b}.",
        )
    found = dict(outcomes.items())
    check_models(len(found))
    return found


def _pairs(names: list[str], reference: str | None) -> list[Pair]:
    if reference is None:
        return list(combinations(range(len(names)), 2))
    if reference not in names:
        raise InputError(f"no such model: {reference!r}", allowed=near_names(reference, names))
    base = names.index(reference)
    return [(j, base) for j in range(len(names)) if j != base]


def _proxies(sample: Sample, names: list[str], proxies: Mapping[str, str] | None) -> FloatArray:
    """Return which proxy (k,) each model has, as 1 among zeros (models, k)."""
    given = proxies or {}
    for model, proxy in given.items():
        if model not in names:
            raise InputError(f"no such model: {model!r}", allowed=near_names(model, names))
        if proxy not in sample.proxy_names:
            raise InputError(f"no such proxy: {proxy!r}", allowed=near_names(proxy, sample.proxy_names))
    return np.array([[float(given.get(name) == proxy) for proxy in sample.proxy_names] for name in names])


def _taken(sample: Sample, frame: Respondents, labelled: BoolArray, slopes: FloatArray) -> FloatArray:
    """Return what each pair takes of every proxy (m, k): nothing where the strata have used it already."""
    return np.array([slope * left_by_strata(sample, frame, labelled, slope) for slope in slopes])


def _differences(
    sample: Sample,
    frame: Respondents,
    labelled: BoolArray,
    contrasts: FloatArray,
    slopes: FloatArray,
    bounds: tuple[float, float] | None,
    target: str,
) -> Differences:
    """Return the differences (m,) from contrasts (n, m) and what each takes of every proxy (m, k)."""
    residuals, known = contrasts.copy(), np.zeros(len(slopes))
    plain = default_estimator(sample.design.kind, len(contrasts), len(frame.names), 0, scaled=False)
    for i, slope in enumerate(slopes):
        proxy = None
        if np.any(slope):
            proxy = contrast_moments(sample, frame, labelled, slope)
        estimator = plain if proxy is None else "ppi++"
        result = mean_estimate(contrasts[:, i], proxy, weighting=frame.weighting, estimator=estimator)
        residuals[:, i], known[i] = result.residuals, result.known
    return paired_differences(
        contrasts,
        frame.weighting,
        residuals=residuals,
        known=known,
        target=target,
        bound=None if bounds is None else float(bounds[1] - bounds[0]),
    )


def _stated(
    differences: Differences, ends: tuple[FloatArray, FloatArray], p_values: FloatArray
) -> tuple[list[dict[str, Any]], bool]:
    """Return what is said of each difference, and whether some can have no interval."""
    nothing = (differences.interval_errors == 0) & ~np.array(differences.census)
    certain = (np.isfinite(ends[0]) | np.isfinite(ends[1])) & ~nothing
    rows = [
        {
            "difference": float(value),
            "standard_error": plain(error),
            "confidence_interval": plain([low, high]) if known else None,
            "p_value": plain(p) if known else None,
        }
        for value, error, low, high, p, known in zip(
            differences.values, differences.standard_errors, *ends, p_values, certain, strict=True
        )
    ]
    return rows, bool(np.any(nothing))


@dataclass(frozen=True, slots=True)
class _Asked:
    """The outcomes z (n, k) of the models, and how they are to be compared."""

    sample: Sample
    frame: Respondents
    labelled: BoolArray
    names: list[str]
    z: FloatArray
    bounds: tuple[float, float] | None
    target: str
    confidence_level: float
    alternative: str

    def pair(self, a: int, b: int) -> ModelPair:
        """Return the outcomes of two of the models."""
        return ModelPair(
            first=self.z[:, a],
            second=self.z[:, b],
            frame=self.frame,
            design=self.sample.design.kind,
            target=self.target,
            bounds=self.bounds,
        )

    def of_pair(self, a: int, b: int) -> dict[str, Any]:
        """Return what is said of two models besides their difference."""
        pair = self.pair(a, b)
        return {"ratio": self.ratio(pair, (self.names[a], self.names[b])), "win_rate": self.win_rate(pair)}

    def ratio(self, pair: ModelPair, models: tuple[str, str]) -> dict[str, Any] | None:
        """Return the ratio of two models' means; None where one is 0, or nothing is known of its error."""
        found = ratio_of_pair(self.sample, pair, models, self.labelled)
        if not found.defined:
            return None
        row = found.row(self.confidence_level, self.alternative)
        if row["confidence_interval"] is None:
            return None
        return {name: row[name] for name in ("estimate", "standard_error", "confidence_interval")}

    def win_rate(self, pair: ModelPair) -> dict[str, Any]:
        """Return the share of units where the first is better, ties counting one half."""
        row = pair.win_rate().row(self.confidence_level, self.alternative)
        shown = {name: row[name] for name in ("estimate", "standard_error", "confidence_interval")}
        return {**shown, "ties": float(np.mean(pair.first == pair.second))}


def _ranking(names: list[str], means: FloatArray, sets: list[list[int]]) -> list[str]:
    order = np.argsort(-means, kind="stable")
    shown = (
        f"{names[j]} {means[j]:.4f} (rank {sets[j][0]}"
        + (f" to {sets[j][1]})" if sets[j][1] > sets[j][0] else ")")
        for j in order
    )
    return ["means and the ranks left open: " + ", ".join(shown)]
