"""Calibration of a proxy on the labels of the sample from which the estimate is computed, by cross-fitting.

The fit of each fold (a calibration or a learner) uses the labels of the other folds. It is applied to all N
units, so that its mean in every stratum is known. A labelled unit gets the prediction of the fit without its
label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, Record, code_count, sums_by_code
from stratal.designs.extending import other_population_error, require_same_population
from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.estimation.cross_fitting import (
    N_FOLDS,
    assign_folds,
    check_folds,
    combine_fits,
    fold_shares,
    sampled_fractions,
)
from stratal.estimation.default_estimator import ESTIMATORS_WITH_PROXY
from stratal.estimation.respondents import Respondents
from stratal.intervals.outcomes import OutcomeKind, infer_outcome
from stratal.population.column_names import match_patterns, name_tuple
from stratal.population.population import Population
from stratal.population.rules import Rule
from stratal.population.summary import StratumSummary
from stratal.protocols import Keywords
from stratal.proxy import calibration
from stratal.proxy.history import HISTORY, history_columns
from stratal.randomness import id_texts, keys_of_ids
from stratal.strata import Everything

# One fold is excluded for the estimate, and the choice of a method needs two others: to fit and to compare.
MIN_FOLDS = 3

# A relation to the features cannot be fitted to a single label.
MIN_LABELS_OF_A_FIT = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoldFit(Record):
    """The fit of one fold: a constant, a calibration or a learner.

    Parameters
    ----------
    method : {"none", "isotonic", "logistic", "learner"}
        A constant, a calibration of the proxy, or the learner.
    fitted : FittedCurve or FittedLearner
    column : int, optional
        The column that a calibration is fitted to. Default: all columns.
    """

    method: str
    fitted: calibration.FittedCurve | calibration.FittedLearner
    column: int | None = None

    def apply(self, matrix: FloatArray) -> FloatArray:
        """Return the predicted mean outcome (N,) of features (N, d)."""
        return self.fitted.apply(matrix if self.column is None else matrix[:, self.column])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CalibrationUnits(Record):
    """Labelled units to which calibrations and learners are fitted.

    Parameters
    ----------
    features : float (m, d)
    z : float (m,)
    weights : float (m,)
        Design weights.
    stratum, folds : int (m,)
    bounds : (float, float)
        Bounds of the outcome; infinite if it has none.
    column : int, optional
        Column of the proxy that is calibrated, or whose isotonic calibration a learner is compared with.
    """

    features: FloatArray
    z: FloatArray
    weights: FloatArray
    stratum: IntArray
    folds: IntArray
    bounds: tuple[float, float]
    column: int | None = None

    def fit(self, method: str, learner: object, selected: BoolArray) -> FoldFit:
        """Return the fit by a method to the selected units (m,)."""
        z = self.z[selected]
        weights = self.weights[selected]
        options: Keywords = {"weights": weights, "bounds": self.bounds}
        # With too few labels, the prediction is their mean.
        if method == "none" or len(z) < MIN_LABELS_OF_A_FIT:
            level = float(np.average(z, weights=weights))
            return FoldFit(method="none", fitted=calibration.FittedLearner(level=level, bounds=self.bounds))
        if method == "learner":
            learned = calibration.learn(self.features[selected], z, learner=learner, **options)
            return FoldFit(method=method, fitted=learned)
        assert self.column is not None
        curve = calibration.calibrate(self.features[selected, self.column], z, method=method, **options)
        return FoldFit(method=method, fitted=curve, column=self.column)

    def fits_by_fold(self, method: str, learner: object = None) -> tuple[FoldFit, ...]:
        """Return for each fold the fit to the other folds."""
        return tuple(self.fit(method, learner, self.folds != k) for k in range(code_count(self.folds)))

    def loss(self, predicted: FloatArray, selected: BoolArray) -> float:
        """Return the variance of a difference estimator, up to a factor, on the selected units (m,)."""
        stratum = self.stratum[selected]
        weights = self.weights[selected]
        residuals = (self.z - predicted)[selected]
        counts = np.bincount(stratum)
        means = np.bincount(stratum, residuals) / np.maximum(counts, 1)
        overall = float(np.average(residuals, weights=weights))
        # The deviation of a single unit from the mean of its stratum would be 0 for any fit.
        is_single = counts[stratum] == 1
        centred = residuals - np.where(is_single, overall, means[stratum])
        correction = np.where(is_single, 1.0, counts[stratum] / np.maximum(counts[stratum] - 1, 1))
        return float(np.sum(weights**2 * centred**2 * correction))


def select_fits(units: CalibrationUnits, learner: object) -> tuple[FoldFit, ...]:
    """Return one fit for each fold, by the method that predicts the other folds best.

    Parameters
    ----------
    units : CalibrationUnits
        Units in at least three folds.
    learner : str or scikit-learn estimator
    """
    n_folds = code_count(units.folds)
    if n_folds < MIN_FOLDS:
        problem = "there are too few folds to choose and check a learner"
        raise InputError(problem, given=f"{n_folds} folds", allowed=f"{MIN_FOLDS} or more")
    methods = ("none", "learner") if units.column is None else ("none", "isotonic", "learner")
    # For each fold k, predictions (K, m) of the units by fits without their own fold and without fold k.
    predicted = {method: np.zeros((n_folds, len(units.z))) for method in methods}
    # A fit without folds j and k predicts j for the choice in k, and k for the choice in j.
    for j, k in combinations(range(n_folds), 2):
        for method in methods:
            fit = units.fit(method, learner, (units.folds != j) & (units.folds != k))
            for outer, inner in ((k, j), (j, k)):
                rows = units.folds == inner
                predicted[method][outer, rows] = fit.apply(units.features[rows])
    fits = []
    for k in range(n_folds):
        others = units.folds != k
        # The labels of fold k do not affect the choice, so that its residuals are unbiased.
        losses = [units.loss(predicted[method][k], others) for method in methods]
        fits.append(units.fit(methods[int(np.argmin(losses))], learner, others))
    return tuple(fits)


def learner_note(fits: tuple[FoldFit, ...], learner: object, names: tuple[str, ...]) -> str:
    """Return the note on the learner: its columns, and the folds in which it was chosen."""
    counts = Counter(fit.method for fit in fits)
    other_methods = {"isotonic": "the proxy's isotonic calibration", "none": "no proxy"}
    other_counts = [f"{name} in {counts[method]}" for method, name in other_methods.items() if counts[method]]
    # At most five names are listed.
    if len(names) > 5:
        columns = f"{', '.join(names[:4])} and {len(names) - 4} more columns"
    else:
        columns = ", ".join(names)
    use = f"used in {counts['learner']} of {len(fits)} folds, based on the loss in the other folds"
    if other_counts:
        use = f"{use} ({', '.join(other_counts)})"
    return f"{calibration.learner_name(learner)} learned from {columns}: {use}"


def learner_columns(population: Population, requested: Iterable[str] | None) -> tuple[str, ...]:
    """Return the columns of a learner: those that match names or patterns; by default all."""
    existing = (*population.proxy_names, *population.feature_names)
    if requested is None:
        patterns = existing
    elif isinstance(requested, str):
        patterns = (requested,)
    else:
        patterns = tuple(requested)
    columns = match_patterns(patterns, existing)
    unmatched = [pattern for pattern in patterns if not match_patterns([pattern], existing)]
    if unmatched or not columns:
        if unmatched:
            problem = f"no column {unmatched[0]!r} to learn from"
        else:
            problem = "no columns to learn from"
        action = "Name proxies or features of the population: features=, --features."
        raise InputError(problem, allowed=", ".join(existing) or "none", action=action)
    return columns


def features_of(sample: Sample, population: Population, names: tuple[str, ...]) -> FloatArray:
    """Return columns of the drawn units (n, d) from the sample or, if it lacks one, from the population."""
    columns_of_sample = {name: sample.proxies[:, k] for k, name in enumerate(sample.proxy_names)}
    if any(name not in columns_of_sample for name in names):
        texts = id_texts(sample.ids)
        drawn = population.units_with_ids(texts)
        row_by_id = {text: row for row, text in enumerate(id_texts(drawn.ids))}
        if not row_by_id.keys() >= set(texts):
            absent = next(text for text in texts if text not in row_by_id)
            raise other_population_error("", f"no unit {absent!r}")
        rows = np.array([row_by_id[text] for text in texts], dtype=np.int64)
        columns = {**drawn.features, **dict(zip(population.proxy_names, drawn.proxies.T, strict=True))}
        columns_of_sample = {name: values[rows] for name, values in columns.items()} | columns_of_sample
    return np.column_stack([columns_of_sample[name] for name in names])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CalibrationOptions(Record):
    """Options of the calibration of a proxy.

    Parameters
    ----------
    proxy_columns : list of int
        Positions of the proxies. A calibration requires exactly one; a learner requires none.
    method : {"isotonic", "logistic"}, the name of a learner, or a scikit-learn estimator
    features : tuple of str, optional
        Names or patterns of the columns of the population that a learner uses. Default: all.
    folds : int (m,), optional
        Default: five folds.
    population : Population, optional
        Default: the population of the sample.
    outcome, bounds
        Scale and bounds of the outcome. A calibration requires bounds.
    """

    proxy_columns: list[int]
    method: Any
    features: Sequence[str] | None = None
    folds: IntArray | None = None
    population: Population | None = None
    outcome: OutcomeKind | None = None
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        self._freeze()
        if self.features is not None:
            self._set(features=name_tuple("features", self.features))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CalibratedProxy(Record):
    """The calibrated proxy in the form that an estimator requires.

    Parameters
    ----------
    values : float (m, 1)
        Prediction of each labelled unit by the fit without its fold (the share f_h of it: by all fits,
        see `combine_fits`), shifted so that all fits have the same mean in a stratum.
    summary : StratumSummary
        Mean and variance of the proxy in each stratum of the population.
    fits : tuple of FoldFit (K,)
    note : str
    """

    values: FloatArray
    summary: StratumSummary
    fits: tuple[FoldFit, ...]
    note: str


def sample_folds(sample: Sample, labelled: BoolArray, respondents: Respondents, n_folds: object) -> IntArray:
    """Return the fold of each labelled unit (m,) by its permanent random number; a cluster is in one fold."""
    count = check_folds(n_folds, respondents.weighting.draws)
    keys = keys_of_ids(id_texts(sample.ids[labelled]), sample.seed, "fold:")
    return assign_folds(keys, respondents.stratum, count, respondents.weighting.unit_clusters)


def population_with_features(sample: Sample, path: Path, features: Sequence[str] = ()) -> Population:
    """Return the population of the sample from a file, with the columns for its strata and for a learner.

    Raises
    ------
    InputError
        If the sample was not drawn from it.
    """
    others = [name for name in _rule(sample).columns if name not in sample.proxy_names]
    groups = [name for name in others if name in sample.groups]
    numbers = [name for name in others if name not in sample.groups]
    numbers += [name for name in features if name not in (*sample.proxy_names, *others)]
    population = Population.read(
        path, id=sample.question.id, proxy=list(sample.proxy_names), groups=groups, features=numbers
    )
    return require_same_population(sample, population)


def calibrated_estimator(estimator: str, *, has_lam: bool, method: object = None) -> str:
    """Return the estimator with a calibrated proxy: `auto` is `difference`, or `ppi++` for a history.

    With a stated λ (`has_lam`), the estimator is unchanged. Otherwise, a calibrated proxy needs no λ: in
    simulations, fitting λ as well did not reduce the error (benchmarks/results/cross_fitting.md). The
    predictions of a history for a new model may have larger errors than a few labels can correct; λ reduces
    their effect, and otherwise increases the error by 1%.

    Raises
    ------
    InputError
        For an estimator that does not use the proxy.
    """
    if has_lam or estimator in ESTIMATORS_WITH_PROXY:
        return estimator
    if estimator == "auto":
        if method == HISTORY:
            return "ppi++"
        return "difference"
    problem = f"estimator '{estimator}' uses no proxy, so there is nothing to calibrate"
    raise InputError(problem, allowed=", ".join(("auto", *ESTIMATORS_WITH_PROXY)))


def calibrated_proxy(
    sample: Sample, labelled: BoolArray, respondents: Respondents, z: FloatArray, options: CalibrationOptions
) -> CalibratedProxy:
    """Calibrate a proxy on the labels by cross-fitting.

    Parameters
    ----------
    sample : Sample
    labelled : bool (n,)
    respondents : Respondents
    z : float (m,)
        Outcomes of the labelled units.
    options : CalibrationOptions

    Raises
    ------
    InputError
        If the population is not available or not that of the sample, for an unknown method, for too few
        labels, and, for a calibration, for several proxies and an outcome without bounds.
    """
    population = options.population if options.population is not None else sample.population
    if options.folds is None:
        folds = sample_folds(sample, labelled, respondents, N_FOLDS)
    else:
        folds = options.folds
    bounds = infer_outcome(z, options.outcome, options.bounds)[1]
    if not calibration.is_learner(options.method):
        _require_calibration_inputs(options, bounds)
    if population is None:
        raise InputError(
            "calibration requires the population to compute the calibrated proxy's mean over all units",
            action="Give the population from which the sample was drawn: population= (--population FILE).",
        )
    names, proxy_column = _fitted_columns(sample, population, options)
    units = CalibrationUnits(
        features=features_of(sample, population, names)[labelled],
        z=z,
        weights=respondents.weighting.weights,
        stratum=respondents.stratum,
        folds=folds,
        bounds=bounds or (-np.inf, np.inf),
        column=proxy_column,
    )
    fits, note = _fits_with_note(units, options.method, names)
    summary_by_fit = _summarise_fits(population, names, _rule(sample), fits, sample.summary.sizes)
    # Strata without labels were merged with others.
    if respondents.codes is not None:
        summary_by_fit = summary_by_fit.merge_strata(respondents.codes)
    stratum = respondents.stratum
    n_strata = len(summary_by_fit.sizes)
    shares = fold_shares(folds, stratum, n_strata)
    predicted = np.column_stack([fit.apply(units.features) for fit in fits])
    centred = predicted - summary_by_fit.proxy_means[stratum]
    calibrated_values = combine_fits(
        centred, folds, stratum, shares, sampled_fractions(respondents.weighting, n_strata)
    )
    means = np.einsum("kh,hk->h", shares, summary_by_fit.proxy_means)
    variances = np.einsum("kh,hkk->h", shares, summary_by_fit.proxy_covariances)
    summary = StratumSummary(
        sizes=summary_by_fit.sizes, proxy_means=means[:, None], proxy_covariances=variances[:, None, None]
    )
    values = (calibrated_values + means[stratum])[:, None]
    return CalibratedProxy(values=values, summary=summary, fits=fits, note=note)


def _is_history(method: object) -> bool:
    """Return whether the method is the learner of a history, and not a scikit-learn estimator."""
    return isinstance(method, str) and method == HISTORY


def _fitted_columns(
    sample: Sample, population: Population, options: CalibrationOptions
) -> tuple[tuple[str, ...], int | None]:
    """Return the columns to fit, and the position of the proxy among them; None if it is not used."""
    proxies = tuple(sample.proxy_names[k] for k in options.proxy_columns)
    if not calibration.is_learner(options.method):
        return proxies, 0
    requested = options.features
    if requested is None and _is_history(options.method):
        requested = history_columns(population.feature_names) or (f"{HISTORY}_*",)
    names = learner_columns(population, requested)
    return names, next((names.index(name) for name in proxies if name in names), None)


def _fits_with_note(
    units: CalibrationUnits, method: Any, names: tuple[str, ...]
) -> tuple[tuple[FoldFit, ...], str]:
    """Return the fits of all folds by a method, and the note on them."""
    if _is_history(method):
        # A history is not compared with other methods: its prior and λ limit the effect of a poor fit.
        fits = units.fits_by_fold("learner", HISTORY)
        note = f"the prediction from earlier models' results was fitted to the labels, in {len(fits)} folds"
    elif calibration.is_learner(method):
        fits = select_fits(units, method)
        note = learner_note(fits, method, names)
    else:
        fits = units.fits_by_fold(method)
        note = f"proxy '{names[0]}' was calibrated ({method}), cross-fitted in {len(fits)} folds"
    return fits, note


def _require_calibration_inputs(options: CalibrationOptions, bounds: tuple[float, float] | None) -> None:
    """Raise an error unless the calibration is of one proxy and of an outcome with bounds."""
    if not isinstance(options.method, str) or options.method not in calibration.CALIBRATION_METHODS:
        names = ", ".join((*calibration.CALIBRATION_METHODS, *calibration.LEARNER_NAMES))
        allowed = f"{names}, or a scikit-learn estimator"
        raise InputError("unknown calibration", given=repr(options.method), allowed=allowed)
    if options.features is not None:
        problem = f"calibration '{options.method}' uses a single proxy and no features"
        raise InputError(
            problem,
            action=f"Leave out the features, or name a learner: {', '.join(calibration.LEARNER_NAMES)}.",
        )
    if len(options.proxy_columns) != 1:
        if options.proxy_columns:
            action = "Name one: proxy=."
        else:
            action = "Give the population a proxy."
        raise InputError("calibration requires one proxy", action=action)
    if bounds is None:
        raise InputError(
            "calibration requires an outcome with bounds", action="Give bounds=(lowest, highest)."
        )


def _rule(sample: Sample) -> Rule:
    """Return the rule of the sample's strata; raise an error if it is not known."""
    strata = sample.design.strata
    if strata is not None:
        return strata.rule
    if len(sample.summary.sizes) == 1:
        return Everything()
    problem = (
        "it is not known how this sample's strata were formed, so the calibrated proxy's means in them are "
        "unknown"
    )
    raise InputError(problem, allowed="samples that stratal drew")


def _summarise_fits(
    population: Population, names: tuple[str, ...], rule: Rule, fits: tuple[FoldFit, ...], sizes: IntArray
) -> StratumSummary:
    """Return the mean and variance of each fit in each stratum (covariances: 0, not needed)."""
    n_strata = len(sizes)
    diagonal = np.arange(len(fits))
    counts = np.zeros(n_strata, dtype=np.int64)
    # Sums of deviations from the first unit, because squares of large, similar numbers would lose digits.
    sums = np.zeros((n_strata, len(fits)))
    products = np.zeros((n_strata, len(fits), len(fits)))
    centres = np.empty(0)
    for batch in population.batches(tuple(dict.fromkeys((*names, *rule.columns)))):
        matrix = np.column_stack([np.asarray(batch[name], dtype=np.float64) for name in names])
        codes = rule.assign(batch).astype(np.intp)
        values = np.column_stack([fit.apply(matrix) for fit in fits])
        centres = centres if len(centres) else values[0]
        values = values - centres
        counts += np.bincount(codes, minlength=n_strata)
        sums += sums_by_code(values, codes, n_strata)
        products[:, diagonal, diagonal] += sums_by_code(values**2, codes, n_strata)
    if not np.array_equal(counts, sizes):
        counted = counts.tolist()[:5]
        expected = sizes.tolist()[:5]
        raise other_population_error(
            "", f"strata of {counted} units, but the strata of the sample have {expected}"
        )
    return StratumSummary.from_centred_sums(counts, sums, products, centres)
