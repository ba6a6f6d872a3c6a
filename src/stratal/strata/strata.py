"""`Strata`: a partition of the population, with the moments of the proxy and the S_h that follow from them.

`expected_deviations` gives the S_h that a plan uses: a miscalibrated proxy cannot make them zero. A model
that is 99.9% sure of every unit in a stratum where it is right 98% of the time has a true S_h four times
its plug-in, and √(m(1 − m)) of a judge's flat 0 and 1 is zero. So the proxy's means are taken as one of many
possible: shrunk a little to the overall mean, then with log-odds flatter or steeper around it by a factor
between 1/4 and 2.

`scenarios` lists the ways in which a proxy may be off one by one, with the variance of a stratified mean in
each: the outcome's log-odds may be shifted against the proxy's and flatter or steeper, and a graded outcome
may be less spread than its bounds allow. A plan promises a range over them, and labels may later refute them
all (`stratal.estimation.plan_check_notes`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, Record, field_names, field_values, unit_scale
from stratal.errors import InputError
from stratal.population.distribution import Distribution, LevelBins, LevelDistributions
from stratal.population.expressions import Expression
from stratal.population.population import Population
from stratal.population.rules import Everything, Rule
from stratal.protocols import JsonDict, Keywords
from stratal.report.figures import Bars, PlotDisplay
from stratal.report.text import TableDisplay, json_dict

_EACH = ("sizes", "proxy_means", "proxy_variances", "conditional_variances")

# Proxies further apart than this are refused: their squares would overflow.
WIDEST = 1e140

# How far each stratum's mean proxy is moved to the overall mean.
MEAN_SHRINKAGE = 0.1

# Factors on the log-odds about the overall mean: models are more often too sure than too timid.
STEEPNESS = np.exp(np.linspace(np.log(0.25), np.log(2.0), 9))

# How far a variance's share of the largest possible one is moved to the pooled share.
SPREAD_SHRINKAGE = 0.2

# Slope of the outcome on the proxy that expectations assume; a calibrated proxy has 1.
CALIBRATION_SLOPE = 0.8

# Shifts of the log-odds: seven in eight of a standard normal, the prior that rounds with labels have.
OFFSETS = (-1.5, 0.0, 1.5)

# Factors on the log-odds about the overall mean: from nearly useless to much too timid.
SLOPES = (0.25, 0.5, 1.0, 2.0)

# Shares of the largest variance r(1 - r) that a graded outcome outside 0 and 1 may have.
SPREADS = (0.25, 1.0)

# Factors on the standard deviation that is assumed of what a proxy without bounds leaves open.
RESIDUALS = (0.5, 1.0, 2.0)

# A proxy is taken to leave at least this share of a stratum's variance unexplained.
_LEAST_LEFT = 0.05

# Ways of making strata that do not read the proxy.
WITHOUT_PROXY = ("given", "category", "features", "none")

# A mean proxy no nearer to 0 or 1 leaves its stratum a variance.
_EDGE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moments(Record):
    """Sizes of H strata, and what a proxy says of the outcome in each.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    proxy_means : float (H,)
        Mean proxy of each stratum; NaN where the population has no proxy.
    proxy_variances : float (H,)
        Variance of the proxy within each stratum, divisor N_h.
    conditional_variances : float (H,)
        Mean plug-in Var(z | x) of each stratum.
    scaled : bool
        Whether the proxy predicts the outcome on its own scale; if not, S_h is unknown and taken as equal.
    bounds : (float, float)
        Bounds of the outcome; infinite where it has none.
    """

    sizes: IntArray
    proxy_means: FloatArray
    proxy_variances: FloatArray
    conditional_variances: FloatArray
    scaled: bool = True
    bounds: tuple[float, float] = (0.0, 1.0)

    @property
    def n_strata(self) -> int:
        """H."""
        return len(self.sizes)

    @property
    def size(self) -> int:
        """N."""
        return int(self.sizes.sum())

    @property
    def weights(self) -> FloatArray:
        """W_h = N_h / N (H,)."""
        return np.asarray(self.sizes / self.sizes.sum())

    @property
    def is_known(self) -> BoolArray:
        """Which strata need no label, as the influence is known there by construction (H,): none."""
        return np.zeros(self.n_strata, dtype=bool)

    @property
    def has_proxy(self) -> bool:
        """Whether the mean proxy of any stratum is known."""
        return not np.all(np.isnan(self.proxy_means))

    @property
    def plug_in_variances(self) -> FloatArray:
        """Plug-in S_h² (H,): mean Var(z | x) + Var(E[z | x]) within the stratum, as the proxy has it."""
        return np.asarray(np.maximum(self.conditional_variances + self.proxy_variances, 0.0))

    @property
    def standard_deviations(self) -> FloatArray:
        """Plug-in S_h (H,); ones where the proxy only orders the units."""
        if self.scaled:
            return np.sqrt(self.plug_in_variances)
        return np.ones(self.n_strata)

    def part(self, selected: IntArray) -> Moments:
        """Return the moments of some of the strata, by their numbers."""
        parts = {name: values[selected] for name, values in field_values(self, _EACH).items()}
        return Moments(**parts, scaled=self.scaled, bounds=self.bounds)

    def pooled(self, codes: IntArray) -> Moments:
        """Return the moments of coarser strata; `codes` (H,) gives each stratum's new one."""
        sizes = np.bincount(codes, self.sizes)
        centre = float(self.proxy_means[0])
        shifted = np.bincount(codes, self.sizes * (self.proxy_means - centre)) / sizes
        between = (self.proxy_means - centre - shifted[codes]) ** 2
        return replace(
            self,
            sizes=sizes.astype(np.int64),
            proxy_means=shifted + centre,
            proxy_variances=np.bincount(codes, self.sizes * (self.proxy_variances + between)) / sizes,
            conditional_variances=np.bincount(codes, self.sizes * self.conditional_variances) / sizes,
        )


def of_bins(bins: Distribution | LevelBins, boundaries: IntArray) -> Moments:
    """Return the moments of the strata that begin at bin 0 and at each of `boundaries` (H − 1,)."""
    refuse_widest(bins)
    starts = np.concatenate([[0], boundaries]).astype(np.int64)
    counts = bins.counts
    sizes = np.add.reduceat(counts, starts)
    lengths = np.diff(np.append(starts, len(counts)))
    firsts = bins.values[starts]
    shifted = bins.values - np.repeat(firsts, lengths)
    shifted_means = np.add.reduceat(counts * shifted, starts) / sizes
    deviations = shifted - np.repeat(shifted_means, lengths)
    return Moments(
        sizes=sizes,
        proxy_means=firsts + shifted_means,
        proxy_variances=np.add.reduceat(counts * deviations**2, starts) / sizes,
        conditional_variances=np.add.reduceat(counts * bins.conditional_variances, starts) / sizes,
    )


def of_level_distributions(distributions: LevelDistributions) -> Moments:
    """Return the moments of each level of a category as one stratum."""
    return of_bins(distributions.bins, distributions.starts[1:])


def refuse_widest(bins: Distribution | LevelBins) -> None:
    """Raise an `InputError` if the proxies lie too far apart for a variance in double precision."""
    low = float(bins.values.min())
    high = float(bins.values.max())
    if 0.5 * high - 0.5 * low > 0.5 * WIDEST:
        action = "Look for a placeholder among its values, or rescale it."
        raise InputError("the range of the proxy is too large", given=f"{low:g} to {high:g}", action=action)


def of_sizes(sizes: IntArray) -> Moments:
    """Return the moments of strata of a population without a proxy: means unknown, variances zero."""
    zeros = np.zeros(len(sizes))
    return Moments(
        sizes=sizes,
        proxy_means=np.full(len(sizes), np.nan),
        proxy_variances=zeros,
        conditional_variances=zeros,
    )


def join_moments(parts: Sequence[Moments]) -> Moments:
    """Return the moments of all strata of several populations, one after the other."""
    arrays = [field_values(part, _EACH) for part in parts]
    values: Keywords = {name: np.concatenate([part[name] for part in arrays]) for name in _EACH}
    return replace(parts[0], **values)


def expected_deviations(strata: Moments) -> FloatArray:
    """Return √(mean of S_h²) (H,) over the ways in which the proxy may be off, in the outcome's units.

    A stratum with mean u of an outcome in [0, 1] has a variance of at most u(1 − u), which a binary outcome
    reaches. That limit is averaged over the possible means; the plug-in variance's share of it, 1 for binary
    outcomes, is moved a fifth of the way to the pooled share. Without bounds there is no such limit, and the
    plug-in variances themselves are moved a fifth of the way to their mean.
    """
    weights = strata.weights
    means = strata.proxy_means
    variances = strata.plug_in_variances
    low, high = strata.bounds
    if not np.isfinite(high - low):
        return np.asarray(np.sqrt(variances + SPREAD_SHRINKAGE * (weights @ variances - variances)))
    means = np.clip(unit_scale(means, strata.bounds), 0.0, 1.0)
    variances = variances / (high - low) ** 2
    largest = means * (1.0 - means)
    possible = float(weights @ largest)
    if possible > _EDGE:
        pooled = min(1.0, float(weights @ variances) / possible)
    else:
        pooled = 1.0
    share = np.divide(variances, largest, out=np.full(len(means), pooled), where=largest > _EDGE)
    share = np.minimum(share, 1.0)
    spread = share + SPREAD_SHRINKAGE * (pooled - share)
    rates = possible_rates(weights, means)
    return np.asarray((high - low) * np.sqrt(spread * (rates * (1.0 - rates)).mean(axis=0)))


def possible_rates(weights: FloatArray | IntArray, means: FloatArray) -> FloatArray:
    """Return the rates (9, H) for each factor on the log-odds by which the mean proxies (H,) may be off.

    The weights are W_h or N_h.
    """
    centre, distance = shrunk_log_odds(weights, means)
    return np.asarray(1.0 / (1.0 + np.exp(-(centre + STEEPNESS[:, None] * distance))))


def shrunk_log_odds(weights: FloatArray | IntArray, means: FloatArray) -> tuple[float, FloatArray]:
    """Return the log-odds of the overall mean, and how far each stratum's (H,) are from it, means shrunk.

    The weights are W_h or N_h.
    """
    overall = float(np.clip(np.average(means, weights=weights), _EDGE, 1.0 - _EDGE))
    shrunk = np.clip(means + MEAN_SHRINKAGE * (overall - means), _EDGE, 1.0 - _EDGE)
    centre = float(np.log(overall / (1.0 - overall)))
    return centre, np.asarray(np.log(shrunk / (1.0 - shrunk)) - centre)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scenario(Record):
    """Strata as they would be if the proxy were off in one way, or in each of several.

    Parameters
    ----------
    means : float (…, H)
        Mean outcome of each stratum; a leading axis holds several ways.
    variances : float (…, H)
        S_h² of the outcome, divisor N_h.
    slope : float (…,)
        Slope of the outcome on the proxy within strata.
    bounds : (float, float), optional
        Of the outcome, where labels tell more of them than the strata do.
    """

    means: FloatArray
    variances: FloatArray
    slope: FloatArray
    bounds: tuple[float, float] | None = None

    def select(self, number: int | IntArray) -> Scenario:
        """Return one of several scenarios, or some of them; the first is the expected one."""
        return replace(
            self,
            means=self.means[number],
            variances=self.variances[number],
            slope=self.slope[number],
        )

    def standard_errors(self, strata: Moments, n_h: IntArray, estimator: str) -> FloatArray:
        """Return the standard errors (…,) of an estimator at n_h (H,).

        Horvitz-Thompson averages z. For λ = 1 it is z − ẑ, whose variance is S_h² − (2b − 1) Var_h(ẑ), and
        for the fitted λ = b it is z − b ẑ with S_h² − b² Var_h(ẑ), b being the slope.
        """
        sampled = {"difference": 2 * self.slope - 1, "ppi++": self.slope**2}.get(estimator, 0 * self.slope)
        unlabelled_share = self.variances - sampled[..., None] * strata.proxy_variances
        unlabelled_share = np.maximum(unlabelled_share, _LEAST_LEFT * self.variances)
        return np.asarray(np.sqrt(expected_variance(strata.sizes, n_h, unlabelled_share)))


def scenarios(strata: Moments, expected_slope: float = CALIBRATION_SLOPE) -> Scenario:
    """Return the ways in which the proxy of these strata may be off: the expected one, then the others.

    Outcomes are expected to follow the proxy with a slope of 0.8: each stratum's mean outcome lies
    `expected_slope` as far from the overall mean as its mean proxy, and the plug-in variance changes as
    u(1 - u) does, which for a binary outcome is exact. One stratum keeps its plug-in S, which depends on the
    overall mean alone.

    Parameters
    ----------
    strata : Strata
        Of a proxy that is on the outcome's scale.
    expected_slope : float
    """
    low, high = strata.bounds
    width = high - low
    plug_in = strata.standard_deviations**2
    sizes = strata.sizes
    if not math.isfinite(width):
        variances = strata.proxy_variances + np.square(RESIDUALS)[:, None] * strata.conditional_variances
        means = np.tile(strata.proxy_means, (len(variances) + 1, 1))
        slopes = np.array([expected_slope, *[1.0] * len(variances)])
        return Scenario(means=means, variances=np.vstack([plug_in, variances]), slope=slopes)
    centres = np.clip((strata.proxy_means - low) / width, 0.0, 1.0)
    widest = centres * (1 - centres) * width**2
    overall = np.average(centres, weights=sizes)
    followed = overall + expected_slope * (centres - overall)
    middle = np.average(strata.proxy_means, weights=sizes)
    expected = middle + expected_slope * (strata.proxy_means - middle)
    if len(centres) > 1 and strata.scaled:
        share = np.divide(plug_in, widest, out=np.ones_like(widest), where=widest > 0)
        plug_in = np.minimum(share, 1.0) * followed * (1 - followed) * width**2
    binary = (low, high) == (0.0, 1.0) and np.allclose(
        strata.standard_deviations**2, widest, rtol=1e-3, atol=1e-6
    )
    centre, distance = shrunk_log_odds(sizes, centres)
    grid = np.meshgrid(OFFSETS, SLOPES, (1.0,) if binary else SPREADS, indexing="ij")
    offset, slope, spread = (axis.reshape(-1, 1) for axis in grid)
    rates = 1.0 / (1.0 + np.exp(-(centre + offset + slope * distance)))
    return Scenario(
        means=np.vstack([expected, low + width * rates]),
        variances=np.vstack([plug_in, spread * rates * (1 - rates) * width**2]),
        slope=np.concatenate([[expected_slope], np.minimum(slope, 1.0).ravel()]),
    )


def expected_variance(sizes: IntArray, n_h: IntArray, variances: FloatArray) -> Any:
    """Return the variance of a stratified mean, Σ W_h² (1 − f_h) S_h² / n_h.

    Fogliato et al. (2024), eq. 5 and 8; Cochran, eq. 5.6.

    Parameters
    ----------
    sizes, n_h : int (H,)
    variances : float (…, H)
        Within-stratum variances with divisor N_h.

    Returns
    -------
    float (…,)
        Infinite where a stratum that varies gets no draw.
    """
    spread = variances * sizes / np.maximum(sizes - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = (sizes / sizes.sum()) ** 2 * (1 - n_h / sizes) * spread / n_h
    return np.sum(np.where(spread > 0, parts, 0.0), axis=-1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Strata(Moments, TableDisplay, PlotDisplay):
    """A partition of the population into H strata.

    Parameters
    ----------
    rule : Rule
        Puts a unit into its stratum; kept in the sample file, so that a later round finds the same strata.
    names : tuple of str (H,)
        Readable names, such as `proxy in [0.5, 0.9)`.
    sizes, proxy_means, proxy_variances, conditional_variances, scaled, bounds
        As in `stratal.strata.strata.Moments`.
    method : str
        How the strata were made.
    notes : tuple of str
        What the user should know: fewer strata than asked for, merged ones.
    known_influences : tuple of Expression or None (H,)
        For a stratum in which the estimand's influence is known by construction, and which therefore gets no
        label, the formula that is 1 for its units; empty where there is no such stratum.
    population : Population, optional
        What was divided. Not part of equality, and not kept in a sample's design.
    expected_slope : float
        Slope of the outcome on the proxy that expectations assume; not kept in a sample's design either.

    Examples
    --------
    >>> from stratal.population import Population
    >>> from stratal.strata import stratify
    >>> strata = stratify(Population.from_arrays(proxy=[0.1, 0.2, 0.8, 0.9]), n_strata=2)
    >>> strata.sizes, strata.codes
    (array([2, 2]), array([0, 0, 1, 1]))
    """

    rule: Rule
    names: tuple[str, ...]
    method: str = "k-means"
    notes: tuple[str, ...] = ()
    known_influences: tuple[Expression | None, ...] = ()
    population: Population | None = field(default=None, compare=False, repr=False)
    expected_slope: float = field(default=CALIBRATION_SLOPE, compare=False, repr=False)
    _scenarios: Scenario | None = field(init=False, default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._freeze()
        lengths = {len(self.names), len(self.sizes), len(self.proxy_means), self.rule.n_strata}
        lengths.add(len(self.known_influences or self.names))
        if len(lengths) != 1 or np.any(self.sizes <= 0):
            problem = "strata must have one name, size and moment each, and no stratum may be empty"
            raise InputError(problem, action="Create strata with stratal.strata.stratify(population).")

    def __repr__(self) -> str:
        return f"Strata({self.n_strata} of {self.size:,} units, method={self.method!r})"

    @classmethod
    def of(
        cls, moments: Moments, rule: Rule | None = None, names: tuple[str, ...] = ("all",), **more: object
    ) -> Strata:
        """Return the strata with these moments; all units as one unless there is a rule."""
        values = field_values(moments, field_names(Moments))
        return cls(rule=Everything() if rule is None else rule, names=names, **{**values, **more})

    @property
    def from_proxy(self) -> bool:
        """Whether the strata are cut on the proxy, and not on other columns or by the user."""
        return self.method not in WITHOUT_PROXY

    @property
    def scenarios(self) -> Scenario:
        """The scenarios of a miscalibrated proxy, stored because a search for a budget needs them often."""
        if self._scenarios is None:
            self._set(_scenarios=scenarios(self, self.expected_slope))
        assert self._scenarios is not None
        return self._scenarios

    @property
    def codes(self) -> IntArray | None:
        """Stratum of every unit (N,), of a population in memory."""
        if self.population is None:
            return None
        return self.population.codes(self.rule)

    @property
    def is_known(self) -> BoolArray:
        """Which strata need no label, as the influence is known there by construction (H,)."""
        known_influences = self.known_influences or (None,) * self.n_strata
        return np.array([entry is not None for entry in known_influences], dtype=bool)

    def _columns(self) -> JsonDict:
        return {
            "stratum": self.names,
            "units": self.sizes,
            "mean_proxy": self.proxy_means,
            "standard_deviation": self.standard_deviations,
        }

    def _plot(self) -> Bars:
        """Draw each stratum's share of the units, and of what outcomes are expected to vary."""
        spread = self.sizes * self.standard_deviations
        if spread.sum() > 0:
            shares = spread / spread.sum()
        else:
            shares = self.weights
        return Bars(
            title=f"{self.n_strata} strata of {self.size:,} units ({self.method})",
            x_label="share",
            rows=list(zip(self.names, self.weights.tolist(), shares.tolist(), strict=True)),
            series=["of the units", "of N_h S_h (Neyman)"],
        )

    def to_dict(self) -> JsonDict:
        """Return a JSON-ready description (without the population)."""
        described = field_values(self, [entry.name for entry in fields(self) if entry.compare])
        described["rule"] = self.rule.to_dict()
        known_influences = described.pop("known_influences")
        if known_influences:
            # The name of the format of files.
            described["known"] = [entry and entry.to_dict() for entry in known_influences]
        return json_dict(described)

    @staticmethod
    def from_dict(described: JsonDict) -> Strata:
        """Return the strata that `to_dict` described."""
        values = dict(described)
        known_influences = values.pop("known", ())
        low, high = described["bounds"]
        values["bounds"] = (-np.inf if low is None else low, np.inf if high is None else high)
        values["rule"] = Rule.from_dict(described["rule"])
        values |= {name: tuple(described[name]) for name in ("names", "notes")}
        return Strata(
            **values,
            known_influences=tuple(entry and Expression.from_dict(entry) for entry in known_influences),
        )


def one_stratum(size: int, mean: float = math.nan, variance: float = 0.0, *, scaled: bool = True) -> Strata:
    """Return N units as one stratum with this mean proxy and conditional variance."""
    moments = replace(
        of_sizes(np.array([size])),
        proxy_means=np.array([mean]),
        conditional_variances=np.array([variance]),
        scaled=scaled,
    )
    return Strata.of(moments, method="none")
