"""`PreviousLabels`: expected moments of the strata of a plan from existing labels, with their uncertainty.

Without labels, the calibration of the proxy is unknown (`stratal.strata.strata`). Existing labels of any
units show it, if outcomes of units with the same proxy have the same distribution.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray, code_count, field_values, means_of_sums
from stratal.designs import SimpleRandom
from stratal.designs.sample import make_sample
from stratal.designs.stratum_moments import stratum_counts, stratum_kurtoses
from stratal.errors import InputError, LabelError, StratalWarning
from stratal.estimation.anticipated import NO_MISSING_LABELS
from stratal.estimation.entry_points import estimate
from stratal.estimation.estimate import Estimate
from stratal.labels.accepted_types import as_labels, is_indexed
from stratal.labels.joined_labels import join_labels
from stratal.labels.labels import Labels
from stratal.planning.interim_widths import implied_means
from stratal.population.distribution import Distribution
from stratal.population.drawn_units import DrawnUnits
from stratal.population.population import Population
from stratal.population.rules import possible_levels
from stratal.protocols import JsonDict, Keywords
from stratal.randomness import id_texts
from stratal.strata import Strata, stratify
from stratal.strata.standard_deviations import posterior_rates, smoothed_standard_deviations
from stratal.strata.strata import Moments, Scenario, expected_variance

# Posterior probability that the standard error lies beyond each end of the range from optimistic to
# conservative.
TAIL_PROBABILITY = 0.05

# Number of strata of the proxy from which the moments of the whole population are computed.
_N_FINE_STRATA = 10

# Number of posterior draws. The Monte Carlo error of a 5% point is then a tenth of its distance to the
# median.
_N_POSTERIOR_DRAWS = 2_000

# The same in every run, so that equal labels give equal plans.
_SEED = 20_261_121


class PreviousLabels:
    """Labels that exist before a plan, of any units of its population. Unknown ids raise an error.

    Parameters
    ----------
    population : Population
    labels : see `stratal.plan`
    proxy : str, optional
        The proxy that is recalibrated.
    calibrate_by : str, optional
        Column of categories, within each of which the proxy is recalibrated. Labels of categories that the
        population does not have are ignored.
    labelled_units : Population, optional
        The units of the labels if they are not in the population.

    Attributes
    ----------
    columns : mapping of name to (m,) array
        Proxies, groups and features of the labelled units.
    z : float (m,)
        Their outcomes.
    binary : bool
        Whether every outcome is one of its two bounds.
    bounds : (float, float)
        Bounds of the outcome; infinite if it has none.
    fine_strata : Strata, optional
        Strata of the proxy, from which the moments of the whole population are computed: the proxy may be
        distributed differently among the labelled units.
    source : str
        Name of the file or the type of the object that contains the labels.
    notes : tuple of str
        Warnings about these labels, such as a proxy with another distribution among their units.
    """

    def __init__(
        self,
        population: Population,
        labels: object,
        proxy: str | None = None,
        *,
        calibrate_by: str | None = None,
        labelled_units: Population | None = None,
    ) -> None:
        existing_labels = _without_missing(_require_ids(labels))
        label_ids = sorted(set(existing_labels.ids))
        if labelled_units is None:
            labelled_population = population
        else:
            labelled_population = labelled_units
        units = labelled_population.units_with_ids(label_ids)
        _refuse_unknown_ids(existing_labels, label_ids, id_texts(units.ids))
        mean, rows = _estimated_mean(existing_labels, labelled_population, units)
        self.z = mean.evidence.z
        self.binary = mean.outcome == "binary"
        self.source = existing_labels.source
        self.notes: tuple[str, ...] = ()
        self.bounds = mean.bounds or (-math.inf, math.inf)
        self.calibrate_by = calibrate_by
        self.has_other_units = labelled_units is not None
        self.fine_strata = None
        self.proxy = None
        names = population.proxy_names
        if names:
            self.proxy = population.proxy_info(proxy).name
            by = calibrate_by or population.missing_proxy_group
            self.fine_strata = stratify(population, n_strata=_N_FINE_STRATA, proxy=proxy, by=by)
            if labelled_units is not None:
                self.notes = distribution_shift_warnings(population, labelled_units, proxy)
        if calibrate_by is not None:
            levels = list(population.levels(population.require_group(calibrate_by)))
            categories = units.groups[labelled_population.require_group(calibrate_by)][rows]
            in_category_mask = np.isin(categories, levels)
            if not in_category_mask.any():
                raise LabelError(
                    f"no label belongs to a category of '{calibrate_by}' here", allowed=", ".join(levels)
                )
            rows = rows[in_category_mask]
            self.z = self.z[in_category_mask]
        proxies = {name: units.proxies[:, k] for k, name in enumerate(names)}
        unit_columns = {**proxies, **units.groups, **units.features}
        self.columns = {name: values[rows] for name, values in unit_columns.items()}

    def opposed_scores(self, names: tuple[str, ...]) -> dict[str, float]:
        """Return the scores with a significantly negative correlation with the outcome, and this correlation.

        It is significant beyond two standard errors of a correlation of 0, 2/√n.
        """
        if self.z.std() == 0:
            return {}
        limit = -2.0 / math.sqrt(len(self.z))
        opposed = {}
        for name in names:
            scores = self.columns[name]
            if scores.std() > 0:
                correlation = float(np.corrcoef(scores, self.z)[0, 1])
                if correlation < limit:
                    opposed[name] = correlation
        return opposed

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of expectations that are based on the labels."""
        if self.proxy:
            similar_units = "units with the same proxy"
        else:
            similar_units = "all units"
        return (
            f"The {len(self.z):,} earlier labels are typical of {similar_units}, in the earlier data and in "
            "this population.",
            f"The range from optimistic to conservative covers {1 - 2 * TAIL_PROBABILITY:.0%} of the "
            "remaining uncertainty.",
            NO_MISSING_LABELS,
        )

    def to_dict(self) -> JsonDict:
        """Return a summary of the labels as a plain dict."""
        if self.proxy is None:
            proxy_mean = None
        else:
            proxy_mean = float(self.columns[self.proxy].mean())
        return {
            "used": len(self.z),
            "source": self.source,
            "mean": float(self.z.mean()),
            "proxy_mean": proxy_mean,
        }

    def scenario(self, strata: Strata, n_h: IntArray) -> Scenario:
        """Return three scenarios of strata for n_h (H,) labels: expected, optimistic and conservative.

        The last two have the 5% and 95% points of the posterior distribution of the standard error. Two parts
        are uncertain: the rates of the strata (`stratal.strata.standard_deviations`), and the sample
        variance, with the relative variance (κ − 1) / m, where κ is the kurtosis of m labels about the means
        of strata.
        """
        if strata.n_strata == 1 and self.fine_strata is not None:
            calibrated_strata = self.fine_strata
        else:
            calibrated_strata = strata
        means, variances = self._possible_moments(calibrated_strata)
        slope = _slopes(calibrated_strata, means)
        if calibrated_strata is not strata:
            # The moments of all units, from those of the fine strata.
            weights = calibrated_strata.weights
            overall_means = means @ weights
            variances = (variances + (means - overall_means[:, None]) ** 2) @ weights
            means = overall_means[:, None]
            variances = variances[:, None]
        scenarios = Scenario(means=means, variances=variances, slope=slope, bounds=self.bounds)
        # The first scenario is the expected one, the others are posterior draws.
        order = 1 + np.argsort(expected_variance(strata.sizes, n_h, variances[1:]), kind="stable")
        last = len(order) - 1
        optimistic = order[round(TAIL_PROBABILITY * last)]
        conservative = order[round((1 - TAIL_PROBABILITY) * last)]
        return scenarios.select(np.array([0, optimistic, conservative]))

    def _possible_moments(self, strata: Strata) -> tuple[FloatArray, FloatArray]:
        """Return means and variances (1 + K, H) of strata: the expected ones, then K posterior draws.

        With `calibrate_by`, the strata of each category are recalibrated with the labels of the category, or
        with all labels if these are few.
        """
        if strata.n_strata > 1:
            codes = strata.rule.assign(self.columns)
        else:
            codes = np.zeros(len(self.z), np.int64)
        means, variances = self._recalibrated(strata, codes, self.z)
        for strata_of_category in self._categories(strata):
            in_category = np.isin(codes, strata_of_category)
            if in_category.sum() >= MIN_LABELS_TO_RECALIBRATE:
                category_codes = np.searchsorted(strata_of_category, codes[in_category])
                recalibrated = self._recalibrated(
                    strata.select(strata_of_category), category_codes, self.z[in_category]
                )
                means[:, strata_of_category], variances[:, strata_of_category] = recalibrated
        return means, variances

    def _categories(self, strata: Strata) -> list[IntArray]:
        """Return the stratum numbers of each category of `calibrate_by`; an empty list without it."""
        if self.calibrate_by is None or strata.n_strata == 1:
            return []
        levels = tuple(np.unique(self.columns[self.calibrate_by]).tolist())
        possible = possible_levels(strata.rule, self.calibrate_by, levels)
        _, group = np.unique(possible, axis=0, return_inverse=True)
        return [np.flatnonzero(group == number) for number in range(code_count(group))]

    def _recalibrated(self, strata: Moments, codes: IntArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and variances (1 + K, H) of strata, given labels z (m,) in the strata `codes` (m,)."""
        counts = stratum_counts(codes, strata.n_strata)
        # The labelled units are not in the population, but sizes must include them.
        if self.has_other_units:
            strata = replace(strata, sizes=strata.sizes + counts)
        sums = np.bincount(codes, z, minlength=strata.n_strata)
        if self.binary:
            squares = None
        else:
            squares = np.bincount(codes, z**2, minlength=strata.n_strata)
        kurtoses = stratum_kurtoses(z, codes, strata.n_strata)
        expected = smoothed_standard_deviations(
            strata, counts, sums, squares, kurtoses=kurtoses, bounds=self.bounds
        )
        label_means = means_of_sums(sums, counts, empty=z.mean())
        factors = self._variance_factors(z - label_means[codes])
        low, high = self.bounds
        if not math.isfinite(high - low):
            means = np.broadcast_to(label_means, (1 + _N_POSTERIOR_DRAWS, strata.n_strata)).copy()
            return means, np.vstack([expected**2, factors * expected**2])
        rates = posterior_rates(strata, counts, sums, bounds=self.bounds, n_draws=_N_POSTERIOR_DRAWS)
        binary_variances = rates * (1 - rates)
        variances = expected**2 * binary_variances / binary_variances.mean(axis=0) * factors
        mean_rates = rates.mean(axis=0)
        if self.binary:  # the variance r (1 − r) of a binary outcome determines its rate r
            one_label_each = np.ones(len(mean_rates))
            mean_rates = implied_means(one_label_each, mean_rates, expected / (high - low))
        return low + (high - low) * np.vstack([mean_rates, rates]), np.vstack([expected**2, variances])

    def _variance_factors(self, residuals: FloatArray) -> FloatArray:
        """Return random factors (K, 1) that represent the uncertainty of variances; 1 for binary outcomes."""
        second_moment = float(np.mean(residuals**2))
        if self.binary or second_moment == 0:
            return np.ones((_N_POSTERIOR_DRAWS, 1))
        kurtosis = float(np.mean(residuals**4)) / second_moment**2
        relative_error = math.sqrt(max(kurtosis - 1.0, 0.0) / len(residuals))
        rng = np.random.Generator(np.random.PCG64(_SEED))
        return np.exp(relative_error * rng.standard_normal((_N_POSTERIOR_DRAWS, 1)))


# Minimum number of labels to recalibrate the proxy within a category. With fewer, the two coefficients depend
# on their priors.
MIN_LABELS_TO_RECALIBRATE = 10

# Largest difference of two distribution functions that needs no warning, however significant it is: it does
# not change a plan.
MAX_IRRELEVANT_SHIFT = 0.05

# 1% quantile of √(m N/(m + N)) times the Kolmogorov–Smirnov distance of two samples of one distribution.
_KOLMOGOROV_SMIRNOV_QUANTILE = 1.63


def distribution_shift_warnings(
    population: Population, other: Population, proxy: str | None
) -> tuple[str, ...]:
    """Return a warning if the distribution of the proxy differs between the two populations.

    The difference is measured by the Kolmogorov–Smirnov distance of the distribution functions.
    """
    name = population.proxy_info(proxy).name
    population_distribution = population.distribution(name)
    reference_distribution = other.distribution(name)
    values = np.union1d(population_distribution.values, reference_distribution.values)
    population_shares = _shares_up_to(population_distribution, values)
    reference_shares = _shares_up_to(reference_distribution, values)
    distance = float(np.abs(population_shares - reference_shares).max())
    variance_factor = 1.0 / population_distribution.size + 1.0 / reference_distribution.size
    by_chance = _KOLMOGOROV_SMIRNOV_QUANTILE * math.sqrt(variance_factor)
    if distance <= max(MAX_IRRELEVANT_SHIFT, by_chance):
        return ()
    population_mean = population_distribution.mean
    reference_mean = reference_distribution.mean
    return (
        f"the distribution of '{name}' differs between the population (mean {population_mean:.3g}) and the "
        f"labelled data (mean {reference_mean:.3g}): the shares of units below a value differ by "
        f"up to {distance:.0%} ({by_chance:.1%} by chance). The calibration may not be valid for this "
        "population: label a pilot of its units, or use proportional allocation, which does not depend on "
        "the calibration.",
    )


def _estimated_mean(labels: Labels, population: Population, units: DrawnUnits) -> tuple[Estimate, IntArray]:
    """Return the mean of the labels of units, and the rows (m,) of the units that have one.

    The estimate determines how a label becomes an outcome, and the bounds of the outcome.
    """
    n = len(units.ids)
    fractions = np.full(n, min(n / population.size, 1.0))
    # The sample is not stored, so that no file needs its digest.
    sample = make_sample(
        SimpleRandom(budget=n), population, seed=0, drawn=units, probabilities=fractions, has_digest=False
    )
    options: Keywords = {"estimator": "horvitz-thompson", "predicted": population.roles.answer}
    with warnings.catch_warnings(action="ignore", category=StratalWarning):
        mean = estimate(sample, labels, **options)
    return mean, np.flatnonzero(join_labels(sample, labels).labelled)


def _shares_up_to(distribution: Distribution, values: FloatArray) -> FloatArray:
    """Return the shares of the units with at most each value (v,): the distribution function."""
    shares = np.concatenate([[0.0], np.cumsum(distribution.counts) / distribution.size])
    return np.asarray(shares[np.searchsorted(distribution.values, values, side="right")])


def _require_ids(labels: object) -> Labels:
    """Convert labels with unit ids to `Labels`."""
    if isinstance(labels, Labels | Mapping) or is_indexed(labels):
        # The units of a sample are only needed for labels without ids.
        no_sample: Any = None
        return as_labels(labels, no_sample)
    problem = "earlier labels must have the ids of their units"
    allowed = "what stratal.read_labels returns, a mapping from ids to labels, or a Series indexed by id"
    raise InputError(problem, given=type(labels).__name__, allowed=allowed)


def _without_missing(labels: Labels) -> Labels:
    """Return the labels without the rows that are not labelled yet."""
    is_labelled = [value is not None for value in labels.values]
    columns = field_values(labels, ("ids", "values", "annotators", "places"))
    selected: Keywords = {
        name: tuple(compress(column, is_labelled)) for name, column in columns.items() if column
    }
    return replace(labels, **selected)


def _refuse_unknown_ids(labels: Labels, label_ids: list[str], population_ids: list[str]) -> None:
    """Raise an error if there is no label, or if ids are not in the population."""
    if not label_ids:
        raise LabelError(f"{labels.source}: no unit is labelled yet", allowed="at least one label")
    unknown = sorted(set(label_ids) - set(population_ids))
    if unknown:
        raise LabelError(
            f"{labels.source}: {len(unknown)} of {len(label_ids)} labelled ids are not in the population "
            f"(first: {unknown[0]!r})",
            allowed="ids of the planned units; or labels of other units, with a column of the proxy",
            action="Add the column of the proxy, or leave out the labels of other units.",
        )


def _slopes(strata: Strata, means: FloatArray) -> FloatArray:
    """Return the slope (K,) of the means (K, H) on the proxy between strata; 0 if it cannot be determined."""
    proxy_means = strata.proxy_means
    if strata.n_strata == 1 or not np.all(np.isfinite(proxy_means)):
        return np.zeros(len(means))
    weighted_deviations = strata.weights * (proxy_means - strata.weights @ proxy_means)
    square_sum = float(weighted_deviations @ proxy_means)
    if square_sum > 0:
        return np.asarray(means @ weighted_deviations / square_sum)
    return np.zeros(len(means))
