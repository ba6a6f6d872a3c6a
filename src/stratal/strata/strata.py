"""`Strata`: a partition of the population, with the moments of the proxy and the S_h that follow from them.

`expected_deviations` returns the S_h that a plan uses. A miscalibrated proxy cannot make them zero: in a
stratum where a model has a confidence of 99.9% but an accuracy of 98%, the true S_h is four times the plug-in
value, and the plug-in value √(m(1 − m)) of a judge whose scores are 0 and 1 is zero. The variances are
therefore averaged over possible miscalibrations: the mean proxies are shrunk slightly to the overall mean,
and their log-odds around it are multiplied by factors between 1/4 and 2.

`scenarios` lists single miscalibrations, with the stratum variances under each: the log-odds of the outcome
may be those of the proxy plus an offset, times a slope, and the variance of a graded outcome may be smaller
than its bounds allow. The standard errors of a plan are a range over these scenarios, and labels may later
contradict all of them (`stratal.estimation.plan_check_notes`).
"""

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

# Fields of `Moments` with one entry per stratum.
_STRATUM_FIELDS = ("sizes", "proxy_means", "proxy_variances", "conditional_variances")

# Maximum range of a proxy: a larger one raises an error, because its squares could overflow.
MAX_PROXY_RANGE = 1e140

# Weight of the overall mean in the shrunk mean proxy of a stratum.
MEAN_SHRINKAGE = 0.1

# Slopes on the log-odds around the overall mean over which S_h² is averaged. Most are below 1, because models
# are more often overconfident than underconfident.
AVERAGED_SLOPES = np.exp(np.linspace(np.log(0.25), np.log(2.0), 9))

# Weight of the pooled variance ratio in the shrunk ratio of a stratum. The ratio is S_h² over the largest
# variance that the mean and the bounds allow.
VARIANCE_SHRINKAGE = 0.2

# Slope of the outcome on the proxy in the expected scenario. A calibrated proxy has 1; models are more often
# overconfident.
CALIBRATION_SLOPE = 0.8

# Offsets of the log-odds in the scenarios. They cover 7/8 of a standard normal distribution, the prior of
# `stratal.strata.standard_deviations`.
SCENARIO_OFFSETS = (-1.5, 0.0, 1.5)

# Slopes on the log-odds around the overall mean in the scenarios: from an almost uninformative proxy to a
# very underconfident one.
SCENARIO_SLOPES = (0.25, 0.5, 1.0, 2.0)

# Ratios of the variance to the largest possible one, r(1 - r), in the scenarios of a graded outcome.
SCENARIO_VARIANCE_RATIOS = (0.25, 1.0)

# Factors on the conditional standard deviation in the scenarios of an outcome without bounds.
SCENARIO_RESIDUAL_FACTORS = (0.5, 1.0, 2.0)

# Smallest share of the variance of a stratum that a proxy leaves unexplained in a plan.
_MIN_UNEXPLAINED_SHARE = 0.05

# Stratification methods that do not use the proxy.
METHODS_WITHOUT_PROXY = ("given", "category", "features", "none")

# Rates are kept this far from 0 and 1, so that log-odds are finite and variances positive.
_MIN_RATE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moments(Record):
    """Sizes of H strata, and moments of the proxy and of the outcome that it implies.

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
        Whether the proxy is on the scale of the outcome. Otherwise S_h is unknown, and assumed to be equal in
        all strata.
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
        """Mask of the strata whose influence is known by construction, which need no label (H,): none."""
        return np.zeros(self.n_strata, dtype=bool)

    @property
    def has_proxy(self) -> bool:
        """Whether the mean proxy of any stratum is known."""
        return not np.all(np.isnan(self.proxy_means))

    @property
    def plug_in_variances(self) -> FloatArray:
        """Plug-in S_h² (H,): mean Var(z | x) + Var(E[z | x]) within the stratum, from the proxy."""
        return np.asarray(np.maximum(self.conditional_variances + self.proxy_variances, 0.0))

    @property
    def standard_deviations(self) -> FloatArray:
        """Plug-in S_h (H,); ones where the proxy only orders the units."""
        if self.scaled:
            return np.sqrt(self.plug_in_variances)
        return np.ones(self.n_strata)

    def select(self, indices: IntArray) -> Moments:
        """Return the moments of the strata with these indices."""
        arrays = {name: values[indices] for name, values in field_values(self, _STRATUM_FIELDS).items()}
        return Moments(**arrays, scaled=self.scaled, bounds=self.bounds)

    def pool(self, codes: IntArray) -> Moments:
        """Return the moments of coarser strata; `codes` (H,) are the indices of the coarser strata."""
        sizes = np.bincount(codes, self.sizes)
        # Differences from one of the means have smaller rounding errors than the means.
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


def moments_of_bins(bins: Distribution | LevelBins, boundaries: IntArray) -> Moments:
    """Return the moments of the strata that begin at bin 0 and at each of `boundaries` (H − 1,)."""
    check_proxy_range(bins)
    starts = np.concatenate([[0], boundaries]).astype(np.int64)
    counts = bins.counts
    sizes = np.add.reduceat(counts, starts)
    n_bins = np.diff(np.append(starts, len(counts)))
    # Differences from the first value of the stratum have smaller rounding errors than the values.
    first_values = bins.values[starts]
    shifted = bins.values - np.repeat(first_values, n_bins)
    shifted_means = np.add.reduceat(counts * shifted, starts) / sizes
    deviations = shifted - np.repeat(shifted_means, n_bins)
    return Moments(
        sizes=sizes,
        proxy_means=first_values + shifted_means,
        proxy_variances=np.add.reduceat(counts * deviations**2, starts) / sizes,
        conditional_variances=np.add.reduceat(counts * bins.conditional_variances, starts) / sizes,
    )


def moments_of_levels(distributions: LevelDistributions) -> Moments:
    """Return the moments of each level of a category as one stratum."""
    return moments_of_bins(distributions.bins, distributions.starts[1:])


def check_proxy_range(bins: Distribution | LevelBins) -> None:
    """Raise an `InputError` if the range of the proxy is too large for a variance in double precision."""
    low = float(bins.values.min())
    high = float(bins.values.max())
    if 0.5 * high - 0.5 * low > 0.5 * MAX_PROXY_RANGE:
        action = "Look for a placeholder among its values, or rescale it."
        raise InputError("the range of the proxy is too large", given=f"{low:g} to {high:g}", action=action)


def moments_of_sizes(sizes: IntArray) -> Moments:
    """Return the moments of strata of a population without a proxy: the means are NaN, the variances 0."""
    zeros = np.zeros(len(sizes))
    return Moments(
        sizes=sizes,
        proxy_means=np.full(len(sizes), np.nan),
        proxy_variances=zeros,
        conditional_variances=zeros,
    )


def join_moments(moments: Sequence[Moments]) -> Moments:
    """Return the moments of all strata of several populations, one after the other."""
    arrays = [field_values(entry, _STRATUM_FIELDS) for entry in moments]
    joined: Keywords = {name: np.concatenate([entry[name] for entry in arrays]) for name in _STRATUM_FIELDS}
    return replace(moments[0], **joined)


def expected_deviations(strata: Moments) -> FloatArray:
    """Return √(mean of S_h²) (H,) over possible miscalibrations of the proxy, in the outcome's units.

    For an outcome in [0, 1], the variance of a stratum with mean u is at most u(1 − u), and equal to it if
    the outcome is binary. This maximum is averaged over the possible means. The ratio of the plug-in variance
    to the maximum (1 for a binary outcome) is shrunk by 20% to the pooled ratio. Without bounds there is no
    maximum, and the plug-in variances are shrunk by 20% to their mean.
    """
    weights = strata.weights
    means = strata.proxy_means
    variances = strata.plug_in_variances
    low, high = strata.bounds
    if not np.isfinite(high - low):
        return np.asarray(np.sqrt(variances + VARIANCE_SHRINKAGE * (weights @ variances - variances)))
    means = np.clip(unit_scale(means, strata.bounds), 0.0, 1.0)
    variances = variances / (high - low) ** 2
    max_variances = means * (1.0 - means)
    mean_max_variance = float(weights @ max_variances)
    pooled_ratio = 1.0
    if mean_max_variance > _MIN_RATE:
        pooled_ratio = min(1.0, float(weights @ variances) / mean_max_variance)
    ratios = np.full(len(means), pooled_ratio)
    np.divide(variances, max_variances, out=ratios, where=max_variances > _MIN_RATE)
    ratios = np.minimum(ratios, 1.0)
    shrunk_ratios = ratios + VARIANCE_SHRINKAGE * (pooled_ratio - ratios)
    rates = possible_rates(weights, means)
    max_variances_over_slopes = (rates * (1.0 - rates)).mean(axis=0)
    return np.asarray((high - low) * np.sqrt(shrunk_ratios * max_variances_over_slopes))


def possible_rates(weights: FloatArray | IntArray, means: FloatArray) -> FloatArray:
    """Return the mean outcomes (9, H) for each of `AVERAGED_SLOPES` on the log-odds of the mean proxies (H,).

    The weights (H,) are W_h or N_h.
    """
    centre, distances = shrunk_log_odds(weights, means)
    return np.asarray(1.0 / (1.0 + np.exp(-(centre + AVERAGED_SLOPES[:, None] * distances))))


def shrunk_log_odds(weights: FloatArray | IntArray, means: FloatArray) -> tuple[float, FloatArray]:
    """Return the log-odds of the overall mean, and the differences from it of the strata's log-odds (H,).

    The means of the strata are shrunk to the overall mean first. The weights (H,) are W_h or N_h.
    """
    overall_mean = float(np.clip(np.average(means, weights=weights), _MIN_RATE, 1.0 - _MIN_RATE))
    shrunk_means = np.clip(means + MEAN_SHRINKAGE * (overall_mean - means), _MIN_RATE, 1.0 - _MIN_RATE)
    centre = float(np.log(overall_mean / (1.0 - overall_mean)))
    return centre, np.asarray(np.log(shrunk_means / (1.0 - shrunk_means)) - centre)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scenario(Record):
    """Moments of the outcome in each stratum under one miscalibration of the proxy, or several.

    Parameters
    ----------
    means : float (…, H)
        Mean outcome of each stratum; a leading axis has several scenarios.
    variances : float (…, H)
        S_h² of the outcome, divisor N_h.
    slope : float (…,)
        Slope of the outcome on the proxy within strata.
    bounds : (float, float), optional
        Bounds of the outcome, if labels determine them more precisely than the strata.
    """

    means: FloatArray
    variances: FloatArray
    slope: FloatArray
    bounds: tuple[float, float] | None = None

    def select(self, index: int | IntArray) -> Scenario:
        """Return one of several scenarios, or some of them. The expected scenario has index 0."""
        return replace(
            self,
            means=self.means[index],
            variances=self.variances[index],
            slope=self.slope[index],
        )

    def standard_errors(self, strata: Moments, n_h: IntArray, estimator: str) -> FloatArray:
        """Return the standard errors (…,) of an estimator at n_h (H,).

        With the slope b, the variance of the variable that an estimator averages is S_h² for Horvitz-Thompson
        (z), S_h² − (2b − 1) Var_h(ẑ) for the difference estimator (z − ẑ), and S_h² − b² Var_h(ẑ) for PPI++
        with the fitted λ = b (z − bẑ).
        """
        if estimator == "difference":
            explained_factor = 2 * self.slope - 1
        elif estimator == "ppi++":
            explained_factor = self.slope**2
        else:
            explained_factor = np.zeros_like(self.slope)
        residual_variances = self.variances - explained_factor[..., None] * strata.proxy_variances
        residual_variances = np.maximum(residual_variances, _MIN_UNEXPLAINED_SHARE * self.variances)
        return np.asarray(np.sqrt(expected_variance(strata.sizes, n_h, residual_variances)))


def scenarios(strata: Moments, expected_slope: float = CALIBRATION_SLOPE) -> Scenario:
    """Return scenarios of miscalibration of the proxy: the expected one first, then the others.

    In the expected scenario, the difference between the mean outcome of a stratum and the overall mean is
    `expected_slope` times that of the mean proxy, and the plug-in variance changes in proportion to u(1 − u),
    which is exact for a binary outcome. A single stratum keeps its plug-in S, which depends only on the
    overall mean.

    Parameters
    ----------
    strata : Strata
        Strata of a proxy on the outcome's scale.
    expected_slope : float
    """
    low, high = strata.bounds
    width = high - low
    plug_in = strata.standard_deviations**2
    sizes = strata.sizes
    if not math.isfinite(width):
        residual_factors = np.square(SCENARIO_RESIDUAL_FACTORS)[:, None]
        variances = strata.proxy_variances + residual_factors * strata.conditional_variances
        means = np.tile(strata.proxy_means, (len(variances) + 1, 1))
        slopes = np.array([expected_slope, *[1.0] * len(variances)])
        return Scenario(means=means, variances=np.vstack([plug_in, variances]), slope=slopes)
    proxy_rates = np.clip((strata.proxy_means - low) / width, 0.0, 1.0)
    max_variances = proxy_rates * (1 - proxy_rates) * width**2
    overall_rate = np.average(proxy_rates, weights=sizes)
    expected_rates = overall_rate + expected_slope * (proxy_rates - overall_rate)
    overall_mean = np.average(strata.proxy_means, weights=sizes)
    expected_means = overall_mean + expected_slope * (strata.proxy_means - overall_mean)
    expected_variances = plug_in
    if len(proxy_rates) > 1 and strata.scaled:
        ratios = np.divide(plug_in, max_variances, out=np.ones_like(max_variances), where=max_variances > 0)
        expected_variances = np.minimum(ratios, 1.0) * expected_rates * (1 - expected_rates) * width**2
    # The variance of a binary outcome is the largest possible one.
    is_binary = (low, high) == (0.0, 1.0) and np.allclose(plug_in, max_variances, rtol=1e-3, atol=1e-6)
    variance_ratios: tuple[float, ...] = SCENARIO_VARIANCE_RATIOS
    if is_binary:
        variance_ratios = (1.0,)
    centre, distances = shrunk_log_odds(sizes, proxy_rates)
    grid = np.meshgrid(SCENARIO_OFFSETS, SCENARIO_SLOPES, variance_ratios, indexing="ij")
    offset, slope, variance_ratio = (axis.reshape(-1, 1) for axis in grid)
    rates = 1.0 / (1.0 + np.exp(-(centre + offset + slope * distances)))
    return Scenario(
        means=np.vstack([expected_means, low + width * rates]),
        variances=np.vstack([expected_variances, variance_ratio * rates * (1 - rates) * width**2]),
        slope=np.concatenate([[expected_slope], np.minimum(slope, 1.0).ravel()]),
    )


def miscalibrated_rates(strata: Moments) -> FloatArray:
    """Return mean outcomes (12, H) on the scale from 0 to 1, for slopes and offsets of the proxy's log-odds.

    Unlike in `scenarios`, the slopes are relative to log-odds of 0. The overall mean may therefore be far
    from that of the proxy, as for a score that predicts many more positives than there are.
    """
    proxy_rates = np.clip(unit_scale(strata.proxy_means, strata.bounds), _MIN_RATE, 1.0 - _MIN_RATE)
    log_odds = np.log(proxy_rates / (1.0 - proxy_rates))
    grid = np.meshgrid(SCENARIO_SLOPES, SCENARIO_OFFSETS, indexing="ij")
    slopes, offsets = (axis.reshape(-1, 1) for axis in grid)
    return np.asarray(1.0 / (1.0 + np.exp(-offsets - slopes * log_odds)))


def expected_variance(sizes: IntArray, n_h: IntArray, variances: FloatArray) -> Any:
    """Return the variance (…,) of a stratified mean, Σ W_h² (1 − f_h) S_h² / n_h.

    Fogliato et al. (2024), eq. 5 and 8; Cochran, eq. 5.6. The `variances` (…, H) within strata have the
    divisor N_h. The result is infinite if a stratum with a positive variance has n_h = 0.
    """
    s_squared = variances * sizes / np.maximum(sizes - 1, 1)  # S_h², divisor N_h − 1
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = (sizes / sizes.sum()) ** 2 * (1 - n_h / sizes) * s_squared / n_h
    return np.sum(np.where(s_squared > 0, terms, 0.0), axis=-1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Strata(Moments, TableDisplay, PlotDisplay):
    """A partition of the population into H strata.

    Parameters
    ----------
    rule : Rule
        Assigns a unit to its stratum. The sample file stores it, so that later rounds use the same strata.
    names : tuple of str (H,)
        Readable names, such as `proxy in [0.5, 0.9)`.
    sizes, proxy_means, proxy_variances, conditional_variances, scaled, bounds
        As in `stratal.strata.strata.Moments`.
    method : str
        Stratification method.
    notes : tuple of str
        Notes for the user, for example on fewer strata than requested, or merged ones.
    known_influences : tuple of Expression or None (H,)
        For a stratum in which the estimand's influence is known by construction, and which therefore gets no
        label: the formula that is 1 for its units. Empty if there is no such stratum.
    population : Population, optional
        The stratified population. Not part of equality, and not stored with a sample's design.
    expected_slope : float
        Slope of the outcome on the proxy in the expected scenario. Not stored with a sample's design.

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
    def from_moments(
        cls,
        moments: Moments,
        rule: Rule | None = None,
        names: tuple[str, ...] = ("all",),
        **other_fields: object,
    ) -> Strata:
        """Return the strata with these moments. Without a rule, all units are one stratum."""
        moment_fields = field_values(moments, field_names(Moments))
        return cls(
            rule=Everything() if rule is None else rule, names=names, **{**moment_fields, **other_fields}
        )

    @property
    def from_proxy(self) -> bool:
        """Whether the strata are intervals of the proxy, instead of other columns or user-defined strata."""
        return self.method not in METHODS_WITHOUT_PROXY

    @property
    def scenarios(self) -> Scenario:
        """The scenarios of a miscalibrated proxy; cached, because a search for a budget uses them often."""
        if self._scenarios is None:
            self._set(_scenarios=scenarios(self, self.expected_slope))
        assert self._scenarios is not None
        return self._scenarios

    @property
    def codes(self) -> IntArray | None:
        """Stratum of every unit (N,); None without a population in memory."""
        if self.population is None:
            return None
        return self.population.codes(self.rule)

    @property
    def is_known(self) -> BoolArray:
        """Mask of the strata whose influence is known by construction, which need no label (H,)."""
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
        """Plot the share of each stratum of the units, and of Σ N_h S_h."""
        neyman_weights = self.sizes * self.standard_deviations
        shares = self.weights
        if neyman_weights.sum() > 0:
            shares = neyman_weights / neyman_weights.sum()
        return Bars(
            title=f"{self.n_strata} strata of {self.size:,} units ({self.method})",
            x_label="share",
            rows=list(zip(self.names, self.weights.tolist(), shares.tolist(), strict=True)),
            series=["of the units", "of N_h S_h (Neyman)"],
        )

    def to_dict(self) -> JsonDict:
        """Return a JSON-serializable dict (without the population)."""
        contents = field_values(self, [entry.name for entry in fields(self) if entry.compare])
        contents["rule"] = self.rule.to_dict()
        known_influences = contents.pop("known_influences")
        if known_influences:
            # The key differs from the field, because stored files have this key.
            contents["known"] = [entry and entry.to_dict() for entry in known_influences]
        return json_dict(contents)

    @staticmethod
    def from_dict(contents: JsonDict) -> Strata:
        """Return the strata with the contents of `to_dict`."""
        values = dict(contents)
        known_influences = values.pop("known", ())
        low, high = contents["bounds"]
        # JSON has no infinity: bounds that are not finite are stored as null.
        values["bounds"] = (-np.inf if low is None else low, np.inf if high is None else high)
        values["rule"] = Rule.from_dict(contents["rule"])
        values |= {name: tuple(contents[name]) for name in ("names", "notes")}
        return Strata(
            **values,
            known_influences=tuple(entry and Expression.from_dict(entry) for entry in known_influences),
        )


def one_stratum(size: int, mean: float = math.nan, variance: float = 0.0, *, scaled: bool = True) -> Strata:
    """Return N units as one stratum with this mean proxy and conditional variance."""
    moments = replace(
        moments_of_sizes(np.array([size])),
        proxy_means=np.array([mean]),
        conditional_variances=np.array([variance]),
        scaled=scaled,
    )
    return Strata.from_moments(moments, method="none")
