"""Raking and the regression estimator: weights of a sample of any design, calibrated to known totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, is_number
from stratal.designs.sample import Design, Sample, require_sample
from stratal.designs.stratified import StratifiedWeighting
from stratal.designs.weighting import Weighting
from stratal.errors import InputError, check_choice, suggest_names
from stratal.population.in_memory import ArrayPopulation
from stratal.population.rules import Categories
from stratal.population.summary import StratumSummary
from stratal.protocols import JsonMapping
from stratal.report.notes import LABELS_BY_GROUP, REMARK, Note

# Distances between the old and the new weights (Deville & Särndal 1992).
MARGIN_METHODS = ("raking", "regression")

# Fewer than ten Newton steps are usual.
_MAX_NEWTON_STEPS = 100

# The iteration stops if all means differ from the known ones by less than this share of the population.
_MEAN_TOLERANCE = 1e-10

# If a step does not help after this many halvings, to 1e-9 of its length, the iteration stops.
_MAX_STEP_HALVINGS = 30

# If a random sample would miss some levels with a smaller probability, the labels are probably not a random
# sample, and the note is a warning.
_MIN_CHANCE = 0.01

# Stated sizes may differ from counted ones by this share of the population, for rounding.
_SIZE_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CalibratedWeighting(Weighting):
    """The weights of another design, calibrated so that estimates of known population means are exact.

    The variance is the design's variance of the residuals g·(y − x'B), where B is the weighted regression of
    y on the auxiliary variables x (Särndal, Swensson & Wretman 1992, result 6.6.1). To first order it is the
    same for all distances between old and new weights (Deville & Särndal 1992, result 5), so that raking has
    the variance of the regression estimator.

    Parameters
    ----------
    base : Weighting
        Weights of the design.
    auxiliary : float (n, p)
        x of the labelled units, a column of ones among them.
    ratio : float (n,)
        g, see `fitted_ratios`.
    """

    base: Weighting
    auxiliary: FloatArray
    ratio: FloatArray

    @property
    def weights(self) -> FloatArray:
        """The ratio g times the design's weight (n,)."""
        return np.asarray(self.ratio * self.base.weights)

    @property
    def population_size(self) -> float:
        """N."""
        return self.base.population_size

    @property
    def draws(self) -> int:
        """Number of independent draws of the design."""
        return self.base.draws

    @property
    def unit_clusters(self) -> IntArray | None:
        """The cluster of each unit, if clusters were drawn."""
        return self.base.unit_clusters

    @property
    def primary_strata(self) -> IntArray:
        """The strata from which units or clusters were drawn."""
        return self.base.primary_strata

    @property
    def undrawn_share(self) -> float:
        """Share of the population's clusters that were not drawn."""
        return self.base.undrawn_share

    @property
    def census(self) -> bool:
        """Whether every unit is labelled."""
        return self.base.census

    def covariance(self, variables: FloatArray) -> FloatArray:
        """Return the design's covariance of the residuals, g-weighted."""
        return self.base.covariance(self._residuals(variables))

    def degrees_of_freedom(self, variable: FloatArray) -> float:
        """Return the degrees of freedom of the residuals' variance, minus one for each fitted total."""
        base_degrees = self.base.degrees_of_freedom(self._residuals(variable[:, None])[:, 0])
        return float(max(base_degrees - (self.auxiliary.shape[1] - 1), 1.0))

    def unexplained(self, variables: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the residuals of the regression on the auxiliary variables, whose totals are exact."""
        # Least squares with both sides multiplied by √w. Normal equations would square the rounding error,
        # and residuals of a variable that is itself auxiliary must be 0.
        root = np.sqrt(weights)[:, None]
        slopes = np.linalg.lstsq(root * self.auxiliary, root * variables, rcond=None)[0]
        return np.asarray(variables - self.auxiliary @ slopes)

    def _residuals(self, variables: FloatArray) -> FloatArray:
        """Return the residuals (n, q) times g."""
        return self.unexplained(variables, self.base.weights) * self.ratio[:, None]


def fitted_ratios(
    weights: FloatArray, auxiliary: FloatArray, means: FloatArray, method: str = "raking"
) -> FloatArray:
    """Return the factors g (n,) of positive weights w (n,) for which Σ w g x are the known means (p,).

    x are the auxiliary variables (n, p). With "raking", g = exp(x'λ), which is always positive, by Newton's
    method. With "regression", g = 1 + x'λ, which needs one step and may be negative (Deville & Särndal 1992,
    cases 2 and 1).

    Raises
    ------
    InputError
        If no such weights exist, or Newton's method does not converge.
    """
    is_raking = method == "raking"
    lam = np.zeros(auxiliary.shape[1])
    ratio = np.ones(len(weights))
    # Known means minus those of the current weights.
    shortfall = means - auxiliary.T @ weights
    for _ in range(_MAX_NEWTON_STEPS):
        if np.max(np.abs(shortfall)) < _MEAN_TOLERANCE:
            return ratio
        # The derivative of g with respect to x'λ is g for raking, and 1 for regression.
        slopes = weights * ratio if is_raking else weights
        matrix = (auxiliary * slopes[:, None]).T @ auxiliary
        step = np.asarray(np.linalg.lstsq(matrix, shortfall, rcond=None)[0], dtype=np.float64)
        for _ in range(_MAX_STEP_HALVINGS):
            with np.errstate(over="ignore", invalid="ignore"):
                linear_predictor = auxiliary @ (lam + step)
                if is_raking:
                    trial_ratio = np.exp(linear_predictor)
                else:
                    trial_ratio = 1.0 + linear_predictor
                trial_shortfall = means - auxiliary.T @ (weights * trial_ratio)
            is_finite = np.all(np.isfinite(trial_shortfall))
            if is_finite and np.sum(trial_shortfall**2) < np.sum(shortfall**2):
                break
            step = step / 2.0
        else:
            break
        lam = lam + step
        ratio = trial_ratio
        shortfall = trial_shortfall
    # Rounding may prevent further progress: a difference of 1e-5 of the population is accepted.
    if np.max(np.abs(shortfall)) < np.sqrt(_MEAN_TOLERANCE):
        return ratio
    if is_raking:
        action = "Give fewer or coarser margins, or use method='regression', which allows negative weights."
    else:
        action = "The totals contradict each other among the labelled units: give fewer or coarser margins."
    raise InputError(
        "no weights for these labels reproduce the known totals",
        given=f"off by {np.max(np.abs(shortfall)):.2g} of the population",
        action=action,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Margins(Design):
    """A sample of another design whose weights are fitted to known totals.

    Parameters
    ----------
    base : mapping
        The design of the draw (`Design.to_dict`).
    columns : tuple of str (m,)
        Group columns, proxies, or other columns of numbers.
    levels : tuple of tuple of str (m,)
        Levels of each group column; empty for numbers.
    means : tuple of tuple of float (m,)
        Share of the population in each level; for numbers their mean.
    method : {"raking", "regression"}
    """

    kind = "margins"
    report_description = (
        "a probability sample whose weights were fitted to known totals of the population",
        "deville",
    )
    hajek_below = 8  # as in `stratal.designs.poisson`
    base: JsonMapping
    columns: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    means: tuple[tuple[float, ...], ...]
    method: str = "raking"

    @property
    def drawn_by(self) -> Design:
        """The design of the draw."""
        design: Design = Design.from_dict(self.base)
        return design

    @property
    def stratum_names(self) -> tuple[str, ...]:
        """Names of the strata of the draw (H,)."""
        return self.drawn_by.stratum_names

    def weighting(self, sample: Sample, labelled: BoolArray) -> CalibratedWeighting:
        """Return the design's weights, fitted to the totals among the labelled units."""
        base = self.drawn_by.weighting(sample, labelled)
        auxiliary_blocks = [np.ones((int(labelled.sum()), 1))]
        mean_blocks = [np.ones(1)]
        for column, levels, margin_means in zip(self.columns, self.levels, self.means, strict=True):
            if not levels:
                auxiliary_blocks.append(_numeric_column(sample, column)[labelled, None])
                mean_blocks.append(np.array(margin_means))
                continue
            codes = np.searchsorted(np.array(levels), sample.groups[column][labelled].astype(np.str_))
            shares = _shares_of_labelled_levels(levels, np.array(margin_means), codes)
            # The indicators of all levels sum to 1, which the column of ones has already: one level is left
            # out.
            labelled_levels = np.flatnonzero(shares > 0)[1:]
            auxiliary_blocks.append((codes[:, None] == labelled_levels).astype(np.float64))
            mean_blocks.append(shares[labelled_levels])
        x = np.concatenate(auxiliary_blocks, axis=1)
        ratio = fitted_ratios(base.weights, x, np.concatenate(mean_blocks), self.method)
        return CalibratedWeighting(base=base, auxiliary=x, ratio=ratio)


def fit_margins(
    sample: Sample,
    margins: str | Sequence[str],
    *,
    totals: Mapping[str, object] | None = None,
    method: str = "raking",
) -> Sample:
    """Return a sample of any design, weighted so that estimates of known population totals are exact.

    All estimands can use it: means, metrics, domains, comparisons. One group is post-stratification, several
    groups are raking, and a proxy gives the regression estimator (GREG).

    Parameters
    ----------
    sample : Sample
        Of any design, including strata, clusters and external weights.
    margins : str or sequence of str
        Group columns with known sizes of the levels (with the model's answer, precision and recall use the
        known number of predictions of each class); proxies, whose means are known; or columns of numbers with
        a total.
    totals : mapping of column to totals, optional
        For a group a mapping of level to units; for a column of numbers its sum over the population. By
        default those of the draw (`sample.totals`, the proxies' means).
    method : {"raking", "regression"}
        Raking keeps all weights positive; regression is linear, and its weights may be negative.

    Returns
    -------
    Sample
        If no labelled unit has a level, the other levels represent it, with a warning.

    Raises
    ------
    InputError
        For columns that do not exist or have no known totals, and for totals that do not sum to the
        population. An estimate raises it for totals that no weights can reach.

    Notes
    -----
    Deville & Särndal (1992); Särndal, Swensson & Wretman (1992), chapter 6. Choose margins before looking at
    labels, and few: each costs a degree of freedom.

    Examples
    --------
    >>> import stratal
    >>> kinds, tongues = ["chat", "code"] * 50, ["de"] * 70 + ["en"] * 30
    >>> population = stratal.Population.from_arrays(ids=range(100), groups={"kind": kinds, "tongue": tongues})
    >>> sample = stratal.designs.fit_margins(
    ...     stratal.designs.SimpleRandom(budget=30).draw(population, seed=7), ["kind", "tongue"])
    >>> weights = sample.weighting().weights
    >>> float(weights[sample.groups["tongue"] == "de"].sum().round(9))
    0.7
    """
    require_sample(sample, "fit_margins")
    if isinstance(margins, str):
        names: tuple[str, ...] = (margins,)
    else:
        names = tuple(margins)
    check_choice("method", method, MARGIN_METHODS)
    if not names or len(set(names)) < len(names) or isinstance(sample.design, Margins):
        names_text = ", ".join(names) or "none"
        problem = "margins must be given once, all together, each for a different column"
        raise InputError(problem, given=names_text, allowed="names of columns")
    levels_and_means = [_levels_and_means(sample, name, (totals or {}).get(name)) for name in names]
    design = Margins(
        base=sample.design.to_dict(),
        columns=names,
        levels=tuple(levels for levels, _ in levels_and_means),
        means=tuple(means for _, means in levels_and_means),
        method=method,
    )
    return replace(sample, design=design)


def _levels_and_means(sample: Sample, name: str, total: Any) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Return the levels of a margin and their shares of the population; for numbers no levels and the mean.

    `total` is the stated total of the column, None for that of the draw.
    """
    if name in sample.groups and not is_number(total):
        levels = _group_sizes(sample, name, total)
        population_units = sum(levels.values())
        return tuple(levels), tuple(units / population_units for units in levels.values())
    if total is None and name in sample.proxy_names:
        column = sample.proxy_names.index(name)
        means = sample.summary.proxy_means[:, column]
        sizes = sample.summary.sizes
        return (), (float(sizes @ means / np.sum(sizes)),)
    if is_number(total):
        _numeric_column(sample, name)
        return (), (float(total) / sample.population_size,)
    columns = (*sample.groups, *sample.proxy_names)
    if columns:
        allowed = suggest_names(name, columns)
    else:
        allowed = "the sample contains no groups"
    action = f"Draw with groups= (--groups {name}), or state its total: totals= (--margins FILE)."
    raise InputError(f"the totals of margin {name!r} are unknown", allowed=allowed, action=action)


def _group_sizes(sample: Sample, name: str, stated_sizes: Mapping[Any, Any] | None) -> dict[str, float]:
    """Return the units of the population in each level of a group column, as stated or from the sample."""
    size = sample.population_size
    stored_sizes = sample.totals.get(name)
    if stated_sizes is None:
        totals = stored_sizes
    else:
        totals = stated_sizes
    if totals is None or name not in sample.groups:
        action = "Draw with groups=, or give sizes= or totals=: a mapping from levels to numbers of units."
        raise InputError(f"the number of units in each level of {name!r} is not known", action=action)
    sizes = {str(level): float(units) for level, units in totals.items() if units}
    drawn = Counter(str(value) for value in sample.groups[name].tolist())
    _check_level_sizes(name, sizes, drawn, stored_sizes, _SIZE_TOLERANCE * size)
    if abs(sum(sizes.values()) - size) > _SIZE_TOLERANCE * size:
        problem = f"the sizes of {name!r} do not add up to the population size"
        raise InputError(problem, given=f"{sum(sizes.values()):,.0f} units", allowed=f"{size:,}")
    for level, n_drawn in drawn.items():
        if n_drawn > sizes[level] + _SIZE_TOLERANCE * size:
            raise InputError(
                f"level {level!r} of {name!r} has fewer units than were drawn",
                given=f"{sizes[level]:,.10g} units, {n_drawn:,} drawn",
                allowed="sizes of the population from which the units were drawn",
            )
    return dict(sorted(sizes.items()))


def _check_level_sizes(
    name: str,
    sizes: Mapping[str, float],
    drawn: Mapping[str, int],
    stored_sizes: Mapping[str, int] | None,
    tolerance: float,
) -> None:
    """Raise an error if sizes by level lack a drawn level, or differ from those that the sample stores."""
    if stored_sizes is None:
        levels = {*drawn}
    else:
        levels = {*stored_sizes, *drawn, *sizes}
    for level in sorted(levels):
        units = sizes.get(level, 0.0)
        lacks_drawn_level = level in drawn and level not in sizes
        allowed = "1 or more"
        differs = False
        if stored_sizes is not None:
            stored_units = stored_sizes.get(level, 0)
            allowed = f"{stored_units:,}"
            differs = abs(stored_units - units) > tolerance
        if lacks_drawn_level or differs:
            problem = (
                f"the sizes of {name!r} differ from those of the population from which the sample was drawn"
            )
            raise InputError(problem, given=f"{units:,.10g} units of level {level!r}", allowed=allowed)


def _numeric_column(sample: Sample, name: str) -> FloatArray:
    """Return a column of numbers of the drawn units (n,)."""
    if name in sample.proxy_names:
        return np.asarray(sample.proxies[:, sample.proxy_names.index(name)])
    columns: dict[str, AnyArray] = {**sample.shown, **sample.groups}
    if name not in columns:
        if columns:
            allowed = suggest_names(name, columns)
        else:
            allowed = "the sample contains no groups"
        raise InputError(f"the sample has no column {name!r}", allowed=allowed)
    try:
        return np.asarray(columns[name], dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"margin {name!r} is not numeric", action="Give a total for each level.") from None


def unlabelled_level_notes(sample: Sample, labelled: BoolArray) -> tuple[Note, ...]:
    """Return a note for each margin with a level that no labelled unit has; `labelled` (n,) is a mask."""
    design = sample.design
    if not isinstance(design, Margins):
        return ()
    notes = []
    for column, levels, means in zip(design.columns, design.levels, design.means, strict=True):
        if not levels:
            continue
        labelled_levels = set(sample.groups[column][labelled].astype(np.str_).tolist())
        is_unlabelled = [level not in labelled_levels for level in levels]
        if not any(is_unlabelled):
            continue
        share = float(np.sum(np.array(means)[is_unlabelled]))
        levels_text = ", ".join(level for level in levels if level not in labelled_levels)
        text = (
            f"no unit with {column} = {levels_text} has a label ({share:.1%} of the population): the margin "
            "is fitted to the other levels, and these units are assumed to be like the other units"
        )
        code = REMARK
        if (1.0 - share) ** int(labelled.sum()) < _MIN_CHANCE:
            code = LABELS_BY_GROUP
        notes.append(Note(code, text))
    return tuple(notes)


def _shares_of_labelled_levels(levels: tuple[str, ...], shares: FloatArray, codes: AnyArray) -> FloatArray:
    """Return the shares (H,) of the levels in those with labels; 0 for levels without labels.

    `codes` (m,) are the levels of the labelled units.
    """
    is_unlabelled = np.bincount(codes, minlength=len(levels)) == 0
    if not np.any(is_unlabelled):
        return shares
    labelled_shares = np.where(is_unlabelled, 0.0, shares)
    return np.asarray(labelled_shares / labelled_shares.sum())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PostStratified(Design):
    """A simple random sample, post-stratified by groups of known sizes.

    Parameters
    ----------
    group : str
        The group column.
    levels : tuple of str (H,)
        Its levels.
    """

    kind = "post-stratified"
    report_description = (
        "a simple random sample without replacement, weighted by groups of known sizes",
        "cochran",
    )
    group: str
    levels: tuple[str, ...]

    @property
    def stratum_names(self) -> tuple[str, ...]:
        """Names of the levels (H,)."""
        return self.levels

    @property
    def rule(self) -> Categories:
        """The group's levels, in their order."""
        order = np.argsort(np.array(self.levels))
        return Categories(column=self.group, levels=tuple(self.levels[h] for h in order), codes=order)

    def weighting(self, sample: Sample, labelled: BoolArray) -> StratifiedWeighting:
        """Return the weights N_h / n_h, where n_h is the number of labelled units of each group."""
        return StratifiedWeighting(stratum=sample.stratum[labelled], sizes=sample.summary.sizes)


def post_stratify(sample: Sample, by: str, sizes: Mapping[str, int] | None = None) -> Sample:
    """Return a sample weighted by the groups of a column, whose sizes are known.

    All estimands can use it: means, metrics, domains, comparisons. Given their number, the drawn units of a
    group are a simple random sample of the group, and each group has its share of the population instead of
    its share of the draw. Samples of other designs keep their design, and their weights are fitted to the
    sizes: see `fit_margins`, which accepts several columns.

    Parameters
    ----------
    sample : Sample
        Simple random, or of any other design.
    by : str
        A group column of the sample, such as the language, or the model's answer (precision and recall then
        use the known number of predictions of each class). Or a proxy of a sample whose population is in
        memory: its strata, with cuts at quantiles of all units.
    sizes : mapping of level to N_h, optional
        Units of the population in each level; by default `sample.totals`. Levels of 0 units are ignored.

    Returns
    -------
    Sample
        Levels without a drawn unit are estimated from their neighbours, with a warning. The sample keeps its
        proxies only if the population is in memory, so that their means within groups are known.

    Raises
    ------
    InputError
        For an unknown group, and sizes that contradict the sample.

    Notes
    -----
    Cochran, "Sampling techniques", 5A.9; Holt & Smith (1979). Choose the groups before looking at labels.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(
    ...     ids=range(100), groups={"language": ["de"] * 80 + ["en"] * 20})
    >>> sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=7)
    >>> again = stratal.designs.post_stratify(sample, "language")
    >>> again.summary.sizes, again.n_h
    (array([80, 20]), array([19,  1]))
    """
    require_sample(sample, "post_stratify")
    if sizes is None and by in sample.proxy_names and by not in sample.groups:
        sample, by, sizes = _with_strata_of_proxy(sample, by)
    if by not in sample.groups:
        raise InputError(
            f"post-stratification requires a column that is stored in the sample; {by!r} is not",
            allowed=_post_strata_columns(sample),
            action=f"Draw with groups= (--groups {by}), or state the totals of the population: margins= "
            "(--margins FILE).",
        )
    if not sample.design.is_simple_random_sample:
        totals = None
        if sizes is not None:
            totals = {by: sizes}
        return fit_margins(sample, by, totals=totals, method="regression")
    level_sizes = _group_sizes(sample, by, sizes)
    levels = tuple(level_sizes)
    stratum = np.searchsorted(np.array(levels), sample.groups[by].astype(np.str_)).astype(np.int64)
    stratum_sizes = np.array(list(level_sizes.values())).astype(np.int64)
    population = sample.population
    summary = None
    if population is not None and sample.proxy_info and by in population.group_names:
        summary = population.summarise(Categories.of_levels(by, levels))
    design = PostStratified(group=by, levels=levels)
    # The proxy means of the population are valid only for its own sizes.
    if summary is not None and np.array_equal(summary.sizes, stratum_sizes):
        return replace(sample, stratum=stratum, design=design, summary=summary)
    return replace(
        sample,
        stratum=stratum,
        design=design,
        summary=StratumSummary.without_proxies(stratum_sizes),
        proxies=np.empty((sample.size, 0)),
        proxy_info=(),
    )


def _post_strata_columns(sample: Sample) -> str:
    """Return the columns that post-stratification accepts as text; proxies only if all units are known."""
    proxies = sample.proxy_names if isinstance(sample.population, ArrayPopulation) else ()
    columns = ", ".join(map(repr, dict.fromkeys((*sample.groups, *proxies))))
    return columns or "a column of groups; this sample contains none"


# Largest number of post-strata of a proxy.
_MAX_PROXY_STRATA = 10

# Post-strata need about ten labels each, so that their means are stable (Cochran 1977, section 5A.9: 20).
_LABELS_PER_STRATUM = 10


def _with_strata_of_proxy(sample: Sample, proxy: str) -> tuple[Sample, str, dict[str, int]]:
    """Return the sample with the strata of a proxy as a group, their name, and their sizes in the population.

    Cuts are quantiles of all units. Names of strata begin with their number, so that they sort by the proxy.
    """
    population = sample.population
    if not isinstance(population, ArrayPopulation):
        raise InputError(
            f"strata of the proxy {proxy!r} require its values for all units",
            given="a sample without its population",
            allowed=_post_strata_columns(sample),
            action="Name a group column whose sizes are known, or estimate from a table of all units.",
        )
    values = population.values[proxy]
    sample_values = sample.proxies[:, sample.proxy_names.index(proxy)]
    count = int(np.clip(sample.size // _LABELS_PER_STRATUM, 2, _MAX_PROXY_STRATA))
    cuts = np.unique(np.quantile(values, np.arange(1, count) / count))
    conditions = [f"{proxy} < {cut:.4g}" for cut in cuts.tolist()]
    conditions.append(f"{proxy} >= {cuts[-1]:.4g}")
    names = [f"{k:02d}: {condition}" for k, condition in enumerate(conditions, start=1)]
    sizes = np.bincount(np.searchsorted(cuts, values, side="right"), minlength=len(names))
    group = f"strata of {proxy}"
    column = np.array(names)[np.searchsorted(cuts, sample_values, side="right")]
    nonempty_sizes = {name: int(size) for name, size in zip(names, sizes.tolist(), strict=True) if size}
    return replace(sample, groups={**sample.groups, group: column}), group, nonempty_sizes
