"""Models on the same labels: differences, ratios, win rates and ranks, and `compare`.

If two models give the same answer to a unit, both are right or both are wrong. Their difference is exactly 0
then, and the unit needs no label. Outcomes such as ratings have no such units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, repeat
from typing import ClassVar

import numpy as np

from stratal.arrays import BoolArray, FloatArray, Record, are_binary
from stratal.designs import Weighting
from stratal.designs.sample import Sample, require_sample
from stratal.designs.stratum_moments import stratum_means
from stratal.errors import InputError, check_choice
from stratal.estimation.crossed_cells import combined_influence
from stratal.estimation.default_estimator import MINIMUM_FOR_FITTING
from stratal.estimation.estimand import DEFAULT_REQUEST, Estimand, LabelledInfluence, Request, Several
from stratal.estimation.estimate import Estimate, correlation_from, linearised_estimate, undefined_estimate
from stratal.estimation.estimates import Estimates, with_label_values
from stratal.estimation.linearised import (
    ratio_of_means,
    superpopulation_variance,
    target_covariance,
    target_df,
)
from stratal.estimation.outcome_means import estimate_mean, mean_without_proxy
from stratal.estimation.resolve import (
    agreement_with_models,
    check_label_codes,
    joined_columns,
    number_columns,
)
from stratal.estimation.respondents import Respondents, default_target
from stratal.intervals.interval import Interval
from stratal.intervals.interval_types import (
    OffsetInterval,
    StudentInterval,
    SumInterval,
    Term,
    no_variation_error,
)
from stratal.intervals.outcomes import OutcomeKind, infer_outcome
from stratal.intervals.proportion import student_quantile
from stratal.labels.joined_labels import JoinedLabels, join_labels
from stratal.metrics.class_answers import DEFAULT_SHARE_RIGHT
from stratal.population.expressions import ALL_UNITS, Agree, Cells, Expression, NumberColumn, Quotient
from stratal.population.influence import Influence, population_means
from stratal.population.population import Population
from stratal.population.rules import Derived
from stratal.population.summary import StratumSummary
from stratal.protocols import JsonDict, WithItems
from stratal.report.estimates import leaderboard_table
from stratal.report.text import Page, format_notes

# Number of standard errors from 0 above which a correlation is significant.
_SIGNIFICANT = 2.0

# Largest limit of a ratio, as a multiple of the ratio; a larger one is reported as infinite.
_MAX_LIMIT_FACTOR = 1e6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelOutcomes(Record):
    """The outcomes of several models on the same labelled units; quantities of two models use the first two.

    Parameters
    ----------
    sample : Sample
    respondents : Respondents
        The labelled units; if strata separate units with equal answers, only those with different answers.
    labelled : bool (n,)
    z : float (m, k)
        Outcomes of the labelled units.
    models : tuple of str (k,)
    target : {"population", "superpopulation"}
    bounds : (float, float), optional
        Bounds of the outcomes.
    slopes : float (k, p), optional
        Coefficients of the sample's proxies in the prediction of each model's outcome; None without proxies.
    """

    sample: Sample
    respondents: Respondents
    labelled: BoolArray
    z: FloatArray
    models: tuple[str, ...]
    target: str = "population"
    bounds: tuple[float, float] | None = None
    slopes: FloatArray | None = None

    @classmethod
    def of(
        cls,
        sample: Sample,
        z: FloatArray,
        labelled: BoolArray,
        models: Sequence[str],
        proxies: Sequence[str | None] = (),
        irrelevant: Expression | None = None,
        *,
        bounds: tuple[float, float] | None = None,
        target: str = "population",
    ) -> ModelOutcomes:
        """Return the outcomes (m, k) of the labelled units, each with the sample's proxy that predicts it."""
        slopes = [[float(proxy == name) for name in sample.proxy_names] for proxy in proxies]
        return cls(
            sample=sample,
            respondents=Respondents.of(sample, labelled, irrelevant),
            labelled=labelled,
            z=z,
            models=tuple(models),
            target=target,
            bounds=bounds_of_outcomes(sample, z, bounds),
            slopes=np.array(slopes) if slopes else None,
        )

    def pair(self, first: int, second: int) -> ModelOutcomes:
        """Return the outcomes of two of the models."""
        indices = [first, second]
        models = tuple(self.models[k] for k in indices)
        slopes = None if self.slopes is None else self.slopes[indices]
        return replace(self, z=self.z[:, indices], models=models, slopes=slopes)

    def comparisons(
        self, pairs: Sequence[tuple[int, int]], *, simultaneous: bool = True, seed: int = 0
    ) -> Comparisons:
        """Return the comparisons of these pairs of models."""
        respondents = self.respondents
        outcome_pairs = [self.pair(*indices) for indices in pairs]
        differences = []
        for pair in outcome_pairs:
            first, second = pair.models
            differences.append(replace(pair.difference(), label={"a": first, "b": second}))
        means: list[Estimate] = []
        ratios: list[Estimate] = []
        # If only units with different answers are labelled, the means of the models are unknown.
        if respondents.share == 1.0:
            for name, column in zip(self.models, self.z.T, strict=True):
                means.append(replace(self.mean(column), label={"model": name}))
            ratios = [pair.ratio() for pair in outcome_pairs]
        remarks = [*respondents.notes]
        if self.bounds is None and any(difference.limits() is None for difference in differences):
            remarks.append(_NO_INTERVAL_NOTE)
        # A proxy predicts outcomes, and not which of two is larger.
        win_rates = [replace(pair, slopes=None).win_rate() for pair in outcome_pairs]
        ties = [float(np.mean(pair.contrast == 0)) for pair in outcome_pairs]
        comparisons = Comparisons.from_rows(
            self.sample,
            differences,
            "comparisons",
            remarks=remarks,
            subject=", paired",
            means=tuple(means),
            ratios=tuple(ratios),
            win_rates=tuple(win_rates),
            ties=tuple(ties),
        )
        if simultaneous:
            return comparisons.simultaneous(seed=seed)
        return comparisons

    @property
    def contrast(self) -> FloatArray:
        """The outcomes (m,) of the first model minus those of the second."""
        return np.asarray(self.z[:, 0] - self.z[:, 1])

    def difference(self) -> Estimate:
        """Return the mean of the first model minus that of the second."""
        max_contrast = None
        if self.bounds is not None:
            max_contrast = float(self.bounds[1] - self.bounds[0])
        is_binary = self.bounds == (0, 1) and are_binary(self.z)
        return replace(self._mean_contrast(self.contrast, max_contrast, tie=0.0, wins=is_binary), null=0.0)

    def win_rate(self) -> Estimate:
        """Return the share of units on which the first is better; a tie counts half."""
        return self._mean_contrast(np.sign(self.contrast), 1.0, tie=0.5, wins=True)

    def ratio(self) -> Estimate:
        """Return the ratio of the means."""
        weighting = self.respondents.weighting
        first, second = self.z[:, :2].T
        result = ratio_of_means(first, second, weighting, self.target)
        if not (np.isfinite(result.value) and result.value > 0):
            reason = "the mean outcome of a model is 0"
            estimate = undefined_estimate(weighting, len(first), (0.0, np.inf), reason, target=self.target)
            return self.respondents.complete(estimate, self.sample)
        mean_denominator = float(weighting.mean(second[:, None])[0])
        added_variance = self._unseen_variance_of_ratio(result.value, mean_denominator)
        df = max(result.degrees_of_freedom, 1.0)
        # The ratio is known exactly.
        if weighting.census and self.target == "population":
            df = np.inf
        means = None
        if self.bounds is not None:
            means = (self.mean(first), self.mean(second))
        interval = _RatioInterval(
            value=result.value,
            bounds=(0.0, np.inf),
            standard_error=float(np.sqrt(max(result.variance, 0.0) + added_variance)),
            degrees_of_freedom=df,
            means=means,
        )
        estimate = linearised_estimate(
            result, weighting, interval=interval, target=self.target, degrees_of_freedom=df
        )
        return self.respondents.complete(estimate, self.sample)

    def _proxy_difference(self, scale: float, tie: float) -> tuple[FloatArray, StratumSummary] | None:
        """Return tie + scale times the difference of the models' proxies, for labelled units and strata.

        None without proxies, if there are too few labels to fit λ, or if the strata leave too little of the
        proxies' variance for a fitted λ to reduce the variance.
        """
        if self.slopes is None or len(self.z) < MINIMUM_FOR_FITTING:
            return None
        slopes = scale * (self.slopes[0] - self.slopes[1])
        used = np.flatnonzero(slopes)
        if len(used) == 0:
            return None
        strata = self.respondents.summary
        weighting = self.respondents.weighting
        stratum = self.respondents.stratum
        sample_proxies = self.sample.proxies[self.labelled]
        n_strata = len(strata.sizes)
        values = tie + (sample_proxies @ slopes)[:, None]
        means = tie + (strata.proxy_means @ slopes)[:, None]
        variances = np.einsum("i,hij,j->h", slopes, strata.proxy_covariances, slopes)
        summary = StratumSummary(
            sizes=strata.sizes, proxy_means=means, proxy_covariances=variances[:, None, None]
        )
        bounds = [self.sample.proxy_info[k].bounds for k in used]
        if n_strata == 1 or None in bounds or not weighting.random_within_strata:
            return values, summary
        low, high = np.array(bounds, dtype=np.float64).T
        # The variance of an outcome that is at one of its bounds, and whose mean is the proxy.
        proxies = sample_proxies[:, used]
        unit_variances = ((proxies - low) * (high - proxies)) @ slopes[used] ** 2
        factors = weighting.variance_factors
        explained = float(factors @ summary.unbiased_covariances[:, 0, 0])
        unexplained = float(factors @ stratum_means(unit_variances[:, None], stratum, n_strata)[:, 0])
        if explained <= 0:
            return None
        # The proxies are used if a calibrated proxy would be significantly correlated with the outcome within
        # strata.
        squared_correlation = explained / (explained + unexplained)
        if squared_correlation * (len(unit_variances) - n_strata - 1) > _SIGNIFICANT**2:
            return values, summary
        return None

    def mean(self, z: FloatArray, **options: object) -> Estimate:
        """Return the mean of a column of the labelled units, without a proxy."""
        mean_options = {
            "target": self.target,
            "bounds": self.bounds,
            "design": self.sample.design.kind,
            **options,
        }
        return mean_without_proxy(z, self.respondents.weighting, **mean_options)

    def _mean_contrast(
        self, contrast: FloatArray, max_contrast: float | None, *, tie: float, wins: bool
    ) -> Estimate:
        """Return the mean of tie + (1 − tie) · contrast over all units.

        Units that need no label are ties. `max_contrast` is the largest absolute contrast; None without
        bounds. If the contrast is 1, 0 or −1 (`wins`), the interval combines those of wins and losses.
        """
        respondents = self.respondents
        sample = self.sample
        if self.target != "population" and respondents.share < 1:
            problem = "the difference on units that require no label is known only for this population"
            raise InputError(problem, given=f"target={self.target!r}", allowed="'population'")
        scale = (1.0 - tie) * respondents.share
        bounds = None
        if max_contrast is not None:
            bounds = (tie - scale * max_contrast, tie + scale * max_contrast)
        proxy_values = np.zeros((len(contrast), 0))
        summary = None
        proxy = self._proxy_difference(scale, tie)
        if proxy is not None:
            proxy_values, summary = proxy
        estimator = "auto" if proxy is None else "ppi++"
        outcome: OutcomeKind = "unbounded" if bounds is None else "bounded"
        estimate = estimate_mean(
            tie + scale * contrast,
            proxy_values,
            respondents.weighting,
            summary,
            stratum=respondents.stratum,
            estimator=estimator,
            target=self.target,
            bounds=bounds,
            outcome=outcome,
            design=sample.design.kind,
        )
        estimate = respondents.complete(estimate, sample)
        interval: Interval = contrast_interval(estimate)
        if wins and proxy is None:
            interval = self._win_interval(estimate, contrast, scale)
        estimate = replace(estimate, evidence=replace(estimate.evidence, interval=interval))
        if respondents.share == 1:
            return estimate
        # A simple random sample would be drawn from all units, most of which are ties.
        mean_square = scale * (1.0 - tie) * float(respondents.weighting.mean(contrast[:, None] ** 2)[0])
        population_variance = max(mean_square - (estimate.value - tie) ** 2, 0.0)
        return replace(estimate, reference_population=(population_variance, sample.population_size))

    def _win_interval(self, estimate: Estimate, contrast: FloatArray, scale: float) -> SumInterval:
        """Return the interval of tie + scale times the share of wins minus that of losses.

        Without a tie among the labels, losses are the complement of wins: the limits are those of
        2 · wins − 1, which are exact in simple random samples. The correlation of two shares cannot be
        estimated if all labels are wins, and MOVER on both covered .89 to .92 with 5 to 100 labels.
        """
        sides = np.column_stack([contrast > 0, contrast < 0]).astype(np.float64)
        coefficients = np.array([scale, -scale])
        if np.all(contrast != 0):
            sides = sides[:, :1]
            coefficients = 2.0 * coefficients[:1]
        shares = [self.mean(side, outcome="binary", bounds=None) for side in sides.T]
        covariance = target_covariance(sides, self.respondents.weighting, self.target)
        return SumInterval(
            value=estimate.value,
            bounds=estimate.bounds,
            terms=tuple(shares),
            coefficients=coefficients,
            correlation=correlation_from(covariance),
        )

    def _unseen_variance_of_ratio(self, value: float, mean_denominator: float) -> float:
        """Return the variance of the ratio `value` due to units that differ from all labelled ones.

        If the strata separate the units with equal answers of both models, only the other units can differ.
        """
        if self.bounds is None:
            return 0.0
        low, high = self.bounds
        weighting = self.respondents.weighting
        contrast = self.contrast
        # Influence of a unit on which one model has the best outcome and the other the worst.
        extremes = np.array([high - value * low, low - value * high]) / mean_denominator
        strata = self.sample.design.strata
        agreement = agreement_of(self.models)
        if strata is not None and isinstance(strata.rule, Derived) and agreement in strata.rule.cells.tests:
            answers = {name: self.sample.groups[name][self.labelled] for name in self.models}
            is_different = np.asarray(agreement.evaluate(answers) == 0)
            weighting_of_different = weighting.complete_strata_weighting(is_different)
            if weighting_of_different is not None:
                extremes = extremes * (weighting_of_different.population_size / weighting.population_size)
                return unseen_variance(contrast[is_different], weighting_of_different, extremes)
        return unseen_variance(contrast, weighting, extremes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _RatioInterval(OffsetInterval):
    """Interval of a ratio of two positive means: Student's t on the logarithm.

    With few labels the exponential of t · SE can be as large as 6e33. A limit is therefore cut at the ratio
    of the limits of the two means, each with half the error (Bonferroni), which is finite for outcomes with
    bounds. Without bounds, a limit above a million times the ratio is infinite.
    """

    standard_error: float
    degrees_of_freedom: float
    # Means of the numerator and of the denominator, if the outcomes have bounds.
    means: tuple[Term, Term] | None

    method = "log-t"

    def offsets(self, error: float, alternative: str) -> tuple[float, float]:
        """Return the distances of the limits below and above the ratio."""
        if self.standard_error == 0:
            if np.isfinite(self.degrees_of_freedom):
                raise no_variation_error()
            return 0.0, 0.0
        quantile = -float(student_quantile(error, self.degrees_of_freedom))
        with np.errstate(over="ignore"):
            factor = float(np.exp(quantile * self.standard_error / self.value))
        if factor >= _MAX_LIMIT_FACTOR:
            factor = np.inf
        low = self.value / factor
        high = self.value * factor
        if self.means is not None:
            first, second = self.means
            min_numerator = _one_sided_limit(first, "greater", error)
            low = max(low, min_numerator / _one_sided_limit(second, "less", error))
            min_denominator = _one_sided_limit(second, "greater", error)
            if min_denominator > 0:
                high = min(high, _one_sided_limit(first, "less", error) / min_denominator)
        return self.value - min(low, self.value), max(high, self.value) - self.value


def _one_sided_limit(mean: Term, alternative: str, error: float) -> float:
    """Return the lower ("greater") or upper ("less") limit of a mean at half the error."""
    interval = mean.confidence_interval(1.0 - error / 2.0, alternative=alternative)
    if alternative == "greater":
        return max(float(interval.low), 0.0)
    return float(interval.high)


def contrast_interval(estimate: Estimate) -> StudentInterval:
    """Return Student's interval of a mean contrast, with a variance for units unlike all labelled ones."""
    evidence = estimate.evidence
    weighting = estimate.evidence.weighting
    design_variance = float(weighting.covariance(evidence.residuals[:, None])[0, 0])
    population_variance = superpopulation_variance(evidence.z, weighting, estimate.target)
    variance = design_variance + population_variance
    df = weighting.degrees_of_freedom(evidence.residuals)
    df = target_df(df, evidence.residuals, weighting, design_variance, population_variance)
    is_known = len(weighting.weights) >= weighting.population_size and variance == 0
    if estimate.bounds is not None and not is_known:
        low, high = estimate.bounds
        half_range = (high - low) / 2.0
        added_variance = unseen_variance(evidence.z, weighting, np.array([half_range, -half_range]))
        # A single label has no variance.
        if not np.isfinite(variance):
            variance = half_range**2
        variance += added_variance
    if is_known:
        df = np.inf
    return StudentInterval(
        value=estimate.value,
        bounds=estimate.bounds,
        standard_error=float(np.sqrt(max(variance, 0.0))),
        degrees_of_freedom=max(df, 1.0),
    )


def unseen_variance(contrast: FloatArray, weighting: Weighting, extremes: FloatArray) -> float:
    """Return the variance that one more win and one more loss add, as in Bonett & Price (2012).

    It is multiplied by the share of the most frequent difference, usually a tie: the more the labels agree,
    the less they show of the variance. `extremes` (2,) are the values of the estimated variable at a win and
    a loss.
    """
    weights = weighting.weights
    label_weight = float(np.sum(weights**2) / np.sum(weights))
    _, group = np.unique(contrast, return_inverse=True)
    largest_share = float(np.max(np.bincount(group, weights)) / np.sum(weights))
    unlabelled_share = max(1.0 - len(weights) / weighting.population_size, 0.0)
    return float(np.sum(extremes**2)) * label_weight**2 * largest_share * unlabelled_share


def bounds_of_outcomes(
    sample: Sample, z: FloatArray, stated: tuple[float, float] | None = None
) -> tuple[float, float] | None:
    """Return the bounds of models' outcomes: stated, the sample's, or 0 to 1 if all are 0, ½ or 1."""
    if stated is not None:
        return infer_outcome(z.ravel(), "bounded", stated)[1]
    sample_bounds = sample.question.outcome.bounds
    if sample_bounds is not None and np.all((z >= sample_bounds[0]) & (z <= sample_bounds[1])):
        return sample_bounds
    are_halves = bool(np.all(np.isin(z, (0.0, 0.5, 1.0))))
    if are_halves and sample.question.outcome.scale != "unbounded":
        return (0.0, 1.0)
    return None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparisons(Estimates):
    """The differences between models, their means, ratios and win rates.

    Parameters
    ----------
    means : tuple of Estimate (k,)
        Means of the models, with the label `model`.
    ratios, win_rates : tuple of Estimate (m,)
        Ratios and win rates of the pairs, in the order of the differences.
    ties : tuple of float (m,)
        Share of the labelled units on which both outcomes are the same.
    """

    means: tuple[Estimate, ...] = ()
    ratios: tuple[Estimate, ...] = ()
    win_rates: tuple[Estimate, ...] = ()
    ties: tuple[float, ...] = ()

    def rows(self, confidence_level: float = 0.95) -> list[JsonDict]:
        """Return a plain dict for each pair, with its ratio and win rate."""
        rows = Estimates.rows(self, confidence_level)
        for row, rate, ties in zip(rows, self.win_rates, self.ties, strict=True):
            row_of_estimate = rate.row(confidence_level)
            row["win_rate"] = {name: row_of_estimate[name] for name in _ROW_FIELDS} | {"ties": ties}
        # There are no ratios without the means of the models.
        for row, ratio in zip(rows, self.ratios, strict=False):
            row_of_estimate = ratio.row(confidence_level)
            has_ratio = np.isfinite(ratio.value) and row_of_estimate["confidence_interval"] is not None
            row["ratio"] = None
            if has_ratio:
                row["ratio"] = {name: row_of_estimate[name] for name in _ROW_FIELDS}
        return rows

    def ranks(self, confidence_level: float = 0.95) -> dict[str, tuple[int, int]]:
        """Return the range of ranks of each model that the intervals of all differences allow.

        Raises
        ------
        InputError
            If not all pairs were compared.
        """
        names = list(dict.fromkeys(str(name) for row in self for name in row.label.values()))
        if len(self) != len(names) * (len(names) - 1) // 2:
            raise InputError("ranks require the differences of all pairs", action="Leave reference= out.")
        better = dict.fromkeys(names, 0)
        worse = dict.fromkeys(names, 0)
        for row in self:
            low, high = row.limits(confidence_level) or (None, None)
            a = str(row.label["a"])
            b = str(row.label["b"])
            if low is not None and low > 0:
                winner = a
                loser = b
            elif high is not None and high < 0:
                winner = b
                loser = a
            else:
                continue
            better[loser] += 1
            worse[winner] += 1
        return {name: (1 + better[name], len(names) - worse[name]) for name in names}

    def leaderboard(self, confidence_level: float = 0.95) -> list[JsonDict]:
        """Return the models from best to worst, with their means, ranks and differences from the best.

        Empty if the means are unknown because only units on which the models' answers differ have labels.
        """
        if not self.means:
            return []
        k = len(self.means)
        ranks = {}
        if len(self) == k * (k - 1) // 2:
            ranks = self.ranks(confidence_level)
        order = sorted(self.means, key=lambda mean: -mean.value)
        best = str(order[0].label["model"])
        leaderboard = []
        for mean in order:
            name = str(mean.label["model"])
            difference, limits = self._difference_between(name, best, confidence_level)
            row: JsonDict = {
                "rank": list(ranks[name]) if ranks else None,
                "model": name,
                "mean": mean.value,
                "confidence_interval": mean.limits(confidence_level),
                "to_best": difference,
                "to_best_interval": limits,
            }
            leaderboard.append(row)
        return leaderboard

    def _difference_between(
        self, a: str, b: str, level: float
    ) -> tuple[float | None, list[float | None] | None]:
        """Return the difference of two models and its limits, in either order of the pair."""
        for row in self:
            ends = row.limits(level)
            if [*row.label.values()] == [a, b]:
                return row.value, ends
            if [*row.label.values()] == [b, a]:
                if ends is not None:
                    ends = [None if end is None else -end for end in reversed(ends)]
                # 0.0 − 0.0 is 0.0, whereas −(0.0) is −0.0.
                return 0.0 - row.value, ends
        return None, None

    def to_dict(self, confidence_level: float = 0.95) -> JsonDict:
        """Return a JSON-ready dict."""
        described = Estimates.to_dict(self, confidence_level)
        leaderboard = self.leaderboard(confidence_level)
        if leaderboard:
            described["leaderboard"] = leaderboard
        return described

    def page(self, confidence_level: float = 0.95) -> Page:
        """Return the page to print: the leaderboard, if the means are known, and the comparisons."""
        tables = [self.table(confidence_level)]
        leaderboard = self.leaderboard(confidence_level)
        if leaderboard:
            are_shares = all(row["share"] for row in self.rows(confidence_level))
            tables.insert(0, leaderboard_table(leaderboard, confidence_level, is_share=are_shares))
        return Page(tables=tables, notes=format_notes(self.notes))


def compare(
    sample: Sample,
    outcomes: Mapping[str, object],
    *,
    reference: str | None = None,
    proxies: Mapping[str, str] | None = None,
    simultaneous: bool = True,
    bounds: tuple[float, float] | None = None,
    target: str | None = None,
    seed: int = 0,
) -> Comparisons:
    """Compare models by their outcomes on the same labelled units.

    Parameters
    ----------
    sample : Sample
    outcomes : mapping of str
        Outcomes by name of the model: labels by id, an array in the order of `sample.ids`, or a dataframe
        with a column for each model, and the ids as its index or in a column. Units without the outcome of
        some model are not used.
    reference : str, optional
        Compare each model with this model. Default: all pairs.
    proxies : mapping of str, optional
        The sample's proxy of each model's outcome, by name of the model. With 50 labels or more, the
        difference is corrected by that of the proxies with a fitted λ (PPI++).
    simultaneous : bool
        Whether intervals and p-values hold for all pairs together (max-t).
    bounds : (float, float), optional
        Bounds of the outcomes.
    target : {"population", "superpopulation"}, optional
        Default: the population; the superpopulation if every unit is labelled.
    seed : int
        Seed of the simulated distribution of the largest statistic.

    Returns
    -------
    Comparisons
        An `Estimate` for each pair, with the labels `a` and `b`. Level and alternative of intervals and
        p-values are chosen afterwards. It also has `ranks()`, `leaderboard()`, `means`, `ratios` and
        `win_rates`.

    Raises
    ------
    InputError
        For fewer than two models, an unknown reference, model or proxy.
    LabelError
        If no unit has an outcome of every model.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 50)
    >>> sample = stratal.designs.SimpleRandom(budget=5).draw(population, seed=7)
    >>> comparisons = stratal.compare(sample, {"new": [1, 1, 0, 1, 1], "old": [1, 0, 0, 1, 0]})
    >>> comparisons[0].value, comparisons.ranks()
    (0.4, {'new': (1, 2), 'old': (1, 2)})
    """
    # A plan needs no labels, and imports this module.
    from stratal.labels.label_files import read_outcomes_of_models

    require_sample(sample, "compare")
    outcomes_by_model: JsonDict = {}
    table = read_outcomes_of_models(outcomes, sample, (*sample.groups, *sample.shown))
    if table is not None:
        outcomes_by_model = table
    elif isinstance(outcomes, WithItems):
        outcomes_by_model = dict(outcomes.items())
    if len(outcomes_by_model) < 2:
        raise InputError(
            "a comparison requires two models",
            given=len(outcomes_by_model) or type(outcomes).__name__,
            allowed="2 or more",
            action="Name the columns of two models or more: compare= (--compare A,B); in `stratal.compare`, "
            "give a mapping: {'model_a': labels_a, 'model_b': labels_b}.",
        )
    names = list(outcomes_by_model)
    pairs = list(combinations(range(len(names)), 2))
    if reference is not None:
        check_choice("model", reference, names)
        reference_index = names.index(reference)
        pairs = [(j, reference_index) for j in range(len(names)) if j != reference_index]
    for model, proxy in (proxies or {}).items():
        check_choice("model", model, names)
        check_choice("proxy", proxy, sample.proxy_names)
    columns = joined_columns(sample, outcomes_by_model)
    for name, column in columns.items():
        if isinstance(column, JoinedLabels):
            columns[name] = check_label_codes(sample, column, name, bounds=bounds)
    z, labelled = number_columns(sample, columns)
    model_proxies: Sequence[str | None] = ()
    if proxies:
        model_proxies = [proxies.get(name) for name in names]
    target = sample.question.refine(target=target).target or default_target(sample, labelled)
    models = ModelOutcomes.of(sample, z, labelled, names, model_proxies, bounds=bounds, target=target)
    comparisons = models.comparisons(pairs, simultaneous=simultaneous, seed=seed)
    comparisons = with_label_values(comparisons, columns)
    n_missing = sample.size - len(z)
    if n_missing == 0:
        return comparisons
    note = f"{n_missing:,} of {sample.size:,} drawn units lack the outcome of at least one model"
    return replace(comparisons, remarks=(*comparisons.remarks, note))


# Fields of the ratio and the win rate in the row of a pair.
_ROW_FIELDS = ("estimate", "standard_error", "confidence_interval")

_NO_INTERVAL_NOTE = "without bounds, outcomes whose differences are all equal have no interval: state bounds="


# Expected share of units on which each of two different answers is right, without a proxy. It is below one
# half, because different answers are not both right, and may both be wrong.
_RIGHT_IF_DIFFERENT = 0.45

# Names of the cells of a population by whether the models agree.
SAME_ANSWER = "same answer"
DIFFERENT_ANSWERS = "different answers"


@dataclass(frozen=True, slots=True)
class ModelEstimand(Estimand, listed_field="models", listed_example="model_a,model_b"):
    """A quantity of several models on the same units."""

    of_classes = True
    takes: ClassVar[tuple[str, ...]] = (*Estimand.takes, "bounds")
    max_models: ClassVar[int | None] = None
    models: tuple[str, ...]
    proxies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._set(models=tuple(self.models), proxies=tuple(self.proxies))
        count = len(set(self.models))
        may_be_many = self.max_models != 2
        if count < 2 or count < len(self.models) or (count > 2 and not may_be_many):
            allowed = "two or more" if may_be_many else "two"
            names = ", ".join(self.models)
            raise InputError(f"'{self.kind}' requires different models", given=names, allowed=allowed)
        if self.proxies and len(self.proxies) != count:
            names = ", ".join(self.proxies)
            raise InputError("each model must have its own proxy", given=names, allowed=f"{count} names")

    @property
    def agreement(self) -> Agree:
        """The formula that is 1 where all models give the same answer."""
        return agreement_of(self.models)

    def cells(self, population: Population) -> tuple[Cells, tuple[str, ...]]:
        """Return the cells of the population by whether the models agree, and those that need no label."""
        if not self.compares_answers(population.group_names):
            return ALL_UNITS, ()
        return Cells(names=(SAME_ANSWER, DIFFERENT_ANSWERS), tests=(self.agreement,)), (SAME_ANSWER,)

    def compares_answers(self, groups: Iterable[str]) -> bool:
        """Return whether the models are columns of answers."""
        return set(self.models) <= set(groups)

    def expected_outcomes(self, population: Population) -> tuple[Expression, ...]:
        """Return the expectation of each model's outcome: the probability of a right answer, or the score."""
        compares_answers = self.compares_answers(population.group_names)
        names = self.proxies
        if not names and not compares_answers:
            names = self.models
        for name in names:
            population.proxy_info(name)
        probabilities = tuple(NumberColumn(name=name) for name in names)
        if compares_answers and not names:
            if_same = DEFAULT_SHARE_RIGHT * self.agreement
            return (if_same + _RIGHT_IF_DIFFERENT * (1.0 - self.agreement),) * len(self.models)
        if not compares_answers or len(probabilities) > 2:
            return probabilities
        # Different answers are not both right: the probabilities are divided by their sum if it is above 1.
        first, second = probabilities
        sum_if_different = self.agreement * 1.0 + (1.0 - self.agreement) * (first + second)
        return tuple(Quotient(parts=(entry, sum_if_different), least=1.0) for entry in probabilities)

    def label_columns(self, sample: Sample) -> tuple[str, ...]:
        """Return the models, whose outcomes are labels unless the sample has their answers."""
        if self.compares_answers(sample.groups):
            return ()
        return self.models

    def outcomes(
        self,
        sample: Sample,
        labels: object,
        irrelevant: Expression | None,
        request: Request = DEFAULT_REQUEST,
    ) -> ModelOutcomes:
        """Return each model's outcome on the labelled units; `irrelevant` is 1 where no label is needed."""
        if isinstance(labels, Mapping) and set(labels) == set(self.models):
            z, labelled = number_columns(sample, {model: labels[model] for model in self.models})
        elif self.compares_answers(sample.groups):
            joined = join_labels(sample, labels)
            labelled = joined.labelled
            z = agreement_with_models(sample, joined, self.models)
        else:
            raise InputError(
                "labels must give the outcome of every model",
                allowed=f"true classes together with the columns of answers {', '.join(self.models)}, or a "
                "mapping from each model to its outcomes",
                action="Draw with the models' answers as groups= (--groups COL,COL).",
            )
        # A plan may name proxies that the sample does not keep.
        proxies = self.proxies if set(self.proxies) <= set(sample.proxy_names) else ()
        return ModelOutcomes.of(
            sample,
            z,
            labelled,
            self.models,
            proxies,
            irrelevant,
            bounds=request.bounds,
            target=request.target,
        )


def agreement_of(models: Sequence[str]) -> Agree:
    """Return the formula that is 1 where all these models give the same answer."""
    return Agree(names=tuple(sorted(models)))


@dataclass(frozen=True, slots=True)
class TwoModels(ModelEstimand, max_models=2):
    """Base class of `Difference`, `WinRate` and `Ratio`."""

    # Whether units with equal answers of both models affect the quantity.
    counts_equal_answers: ClassVar[bool] = False
    # Function that estimates the quantity from the outcomes.
    estimate_of: ClassVar[Callable[[ModelOutcomes], Estimate]]

    def _pair(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> ModelOutcomes:
        """Return the outcomes of both models; units that do not affect the quantity need no label."""
        irrelevant = None if self.counts_equal_answers else self.agreement
        return self.outcomes(sample, labels, irrelevant, request)

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimate:
        """Return the quantity of the two models' outcomes."""
        return replace(type(self).estimate_of(self._pair(sample, labels, request)), label=self.label)

    def labelled_influence(self, sample: Sample, labels: object) -> LabelledInfluence:
        """Return the influence of the labelled units."""
        pair = self._pair(sample, labels)
        return LabelledInfluence(u=self.variable(pair), labelled=pair.labelled)

    def square(self, population: Population, ratio: float) -> Expression:
        """Return E[(z_a − ratio z_b)² | x] of 0/1 outcomes.

        Answers that differ are not both right. Outcomes that scores predict are assumed to be independent.
        """
        first, second = self.expected_outcomes(population)
        if self.compares_answers(population.group_names):
            if_same = self.agreement * (1.0 - ratio) ** 2 * first
            if_different = (1.0 - self.agreement) * (first + ratio**2 * second)
            return if_same + if_different
        mean = first - ratio * second
        return mean * mean + first * (1.0 - first) + ratio**2 * second * (1.0 - second)

    def variable(self, pair: ModelOutcomes) -> FloatArray:
        """Return the labelled units' influence (m,), up to a constant."""
        return pair.contrast


@dataclass(frozen=True, slots=True)
class Difference(TwoModels, kind="difference", estimate_of=ModelOutcomes.difference):
    """The difference between two models' mean outcomes, or accuracies if their answers are given.

    Parameters
    ----------
    models : tuple of str
        Two group columns of answers, which are compared with labels of the true class; or two columns of
        labels that contain the outcomes of the models.
    proxies : tuple of str, optional
        The proxy of each model. With 50 labels or more, the difference between the proxies, if it varies
        within strata, corrects the estimate with a fitted λ, as in `compare`. Plans for a ratio also use
        them.

    Examples
    --------
    >>> Difference(("new", "old")).text
    'difference:new,old'
    """

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of z_a − z_b minus its mean; 0 if the answers are the same."""
        first, second = self.expected_outcomes(population)
        mean = first - second
        if self.compares_answers(population.group_names):
            mean = (1.0 - self.agreement) * mean
        value = float(population_means(population, [mean])[0])
        cells, equal_answers = self.cells(population)
        square = self.square(population, 1.0)
        return Influence(value=value, mean=mean, square=square, cells=cells, known_cells=equal_answers)


@dataclass(frozen=True, slots=True)
class WinRate(TwoModels, kind="win_rate", estimate_of=ModelOutcomes.win_rate):
    """The share of units on which the first model is better; ties count one half.

    Parameters
    ----------
    models, proxies
        As for `Difference`.

    Examples
    --------
    >>> WinRate(("new", "old")).text
    'win_rate:new,old'
    """

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of win − ½: half the difference of two binary outcomes."""
        difference = Difference(self.models, self.proxies).influence(population)
        return replace(
            difference,
            value=0.5 + difference.value / 2,
            mean=0.5 * difference.mean,
            square=0.25 * difference.square,
        )

    def variable(self, pair: ModelOutcomes) -> FloatArray:
        """Return the wins minus one half."""
        return np.asarray(0.5 * np.sign(pair.contrast))


@dataclass(frozen=True, slots=True)
class Ratio(TwoModels, kind="ratio", estimate_of=ModelOutcomes.ratio, counts_equal_answers=True):
    """The ratio of two models' mean outcomes.

    Parameters
    ----------
    models, proxies
        As for `Difference`.

    Examples
    --------
    >>> Ratio(("new", "old")).text
    'ratio:new,old'
    """

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of (z_a − R z_b) / mean of z_b, which is not 0 for equal answers."""
        first, second = self.expected_outcomes(population)
        numerator, denominator = (float(mean) for mean in population_means(population, [first, second]))
        if denominator <= 0:
            problem = "the model in the denominator of the ratio is expected to be wrong on every unit"
            raise InputError(
                problem, action="Plan for the difference of the two models instead, or swap them."
            )
        value = numerator / denominator
        mean = (1.0 / denominator) * (first - value * second)
        square = (1.0 / denominator**2) * self.square(population, value)
        return Influence(value=value, mean=mean, square=square, cells=self.cells(population)[0])

    def variable(self, pair: ModelOutcomes) -> FloatArray:
        """Return the ratio's linearised variable."""
        first, second = pair.z[:, :2].T
        return np.nan_to_num(ratio_of_means(first, second, pair.respondents.weighting).variable)


@dataclass(frozen=True, slots=True)
class Differences(ModelEstimand, Several, kind="differences"):
    """The differences between all pairs of several models.

    Parameters
    ----------
    models, proxies
        As for `Difference`, but for any number of models.

    Examples
    --------
    >>> [part.text for part in Differences(("a", "b", "c")).parts]
    ['difference:a,b', 'difference:a,c', 'difference:b,c']
    """

    def parts_in(self, population: Population) -> tuple[Estimand, ...]:
        """Return the difference of each pair."""
        return self.parts

    def influence(self, population: Population) -> Influence:
        """Return the combined moments of all differences; units on which all models agree need no label."""
        joint = combined_influence([part.influence(population) for part in self.parts], population)
        cells, equal_answers = self.cells(population)
        return replace(joint, cells=cells, known_cells=equal_answers)

    def labelled_influence(self, sample: Sample, labels: object) -> LabelledInfluence:
        """Return the distance between the models' outcomes for each labelled unit."""
        models = self.outcomes(sample, labels, self.agreement)
        z = models.z
        distance = np.sqrt(np.sum((z - z.mean(axis=1, keepdims=True)) ** 2, axis=1))
        # With two models, this is their difference up to a constant factor.
        signed_distance = np.where(z[:, 0] < z[:, -1], -distance, distance)
        return LabelledInfluence(u=signed_distance, labelled=models.labelled)

    @property
    def parts(self) -> tuple[Difference, ...]:
        """The difference of each pair."""
        pairs = combinations(self.models, 2)
        proxies = combinations(self.proxies, 2) if self.proxies else repeat(())
        return tuple(
            Difference(pair, pair_proxies) for pair, pair_proxies in zip(pairs, proxies, strict=False)
        )

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Comparisons:
        """Return the differences of all pairs, with simultaneous intervals."""
        models = self.outcomes(sample, labels, self.agreement, request)
        return models.comparisons(list(combinations(range(len(self.models)), 2)))
