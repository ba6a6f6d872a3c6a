"""A proxy calibrated on the very sample that it helps to estimate from, by cross-fitting.

Each fold's curve is fitted on the labels of the other folds and applied to all N units, so that its mean over
every stratum is known; a unit enters with the curve that has not seen its label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, Record, code_count
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
from stratal.estimation.respondents import Respondents
from stratal.intervals.evidence import OutcomeKind, infer_outcome
from stratal.population.declaration import match_patterns, name_tuple
from stratal.population.population import Population
from stratal.population.rules import Rule
from stratal.population.summary import StratumSummary
from stratal.protocols import Keywords
from stratal.proxy import calibration
from stratal.proxy.history import HISTORY, history_columns
from stratal.randomness import id_texts, keys_of_ids
from stratal.strata import Everything

# With one fold left out for the estimate, the choice of a fit needs two others: one to fit, one to compare.
MIN_FOLDS = 3

# A single label has a mean, but no relation to the features.
MIN_LABELS_OF_A_FIT = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoldFit(Record):
    """The predictor of one fold.

    Parameters
    ----------
    kind : {"none", "isotonic", "logistic", "learner"}
        A constant, the proxy's calibration, or the learner.
    fitted : Calibration or FittedLearner
    column : int, optional
        The one column that it is fitted to; all unless given.
    """

    kind: str
    fitted: calibration.FittedCurve | calibration.FittedLearner
    column: int | None = None

    def apply(self, matrix: FloatArray) -> FloatArray:
        """Return the predicted mean outcome (N,) of features (N, d)."""
        return self.fitted.apply(matrix if self.column is None else matrix[:, self.column])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CalibrationUnits(Record):
    """Labelled units that fits are learned from.

    Parameters
    ----------
    features : float (m, d)
    z : float (m,)
    weights : float (m,)
        Design weights.
    stratum, folds : int (m,)
    bounds : (float, float)
        Of the outcome; infinite where it has none.
    column : int, optional
        Column of the proxy whose isotonic calibration the learner must beat.
    """

    features: FloatArray
    z: FloatArray
    weights: FloatArray
    stratum: IntArray
    folds: IntArray
    bounds: tuple[float, float]
    column: int | None = None

    def fit(self, kind: str, learner: object, selected: BoolArray) -> FoldFit:
        """Return the fit of a kind to the selected units (m,)."""
        z = self.z[selected]
        weights = self.weights[selected]
        options: Keywords = {"weights": weights, "bounds": self.bounds}
        # Few labels fit any curve; their mean is the safe prediction.
        if kind == "none" or len(z) < MIN_LABELS_OF_A_FIT:
            level = float(np.average(z, weights=weights))
            return FoldFit(kind="none", fitted=calibration.FittedLearner(level=level, bounds=self.bounds))
        if kind == "learner":
            learned = calibration.learn(self.features[selected], z, learner=learner, **options)
            return FoldFit(kind=kind, fitted=learned)
        assert self.column is not None
        curve = calibration.calibrate(self.features[selected, self.column], z, method=kind, **options)
        return FoldFit(kind=kind, fitted=curve, column=self.column)

    def fits_by_fold(self, kind: str, learner: object = None) -> tuple[FoldFit, ...]:
        """Return for each fold the fit to the other folds."""
        return tuple(self.fit(kind, learner, self.folds != k) for k in range(code_count(self.folds)))

    def loss(self, predicted: FloatArray, selected: BoolArray) -> float:
        """Return the variance of a difference estimator, up to a factor, on the selected units (m,)."""
        stratum = self.stratum[selected]
        weights = self.weights[selected]
        residuals = (self.z - predicted)[selected]
        counts = np.bincount(stratum)
        means = np.bincount(stratum, residuals) / np.maximum(counts, 1)
        overall = float(np.average(residuals, weights=weights))
        # A single unit is its stratum's mean: its own deviation would be 0, whatever the fit.
        is_single = counts[stratum] == 1
        centred = residuals - np.where(is_single, overall, means[stratum])
        freedom = np.where(is_single, 1.0, counts[stratum] / np.maximum(counts[stratum] - 1, 1))
        return float(np.sum(weights**2 * centred**2 * freedom))


def chosen_fits(units: CalibrationUnits, learner: object) -> tuple[FoldFit, ...]:
    """Return one fit for each fold, from the other folds: the kind that predicts those best.

    Parameters
    ----------
    units : CalibrationUnits
        In three folds or more.
    learner : str or scikit-learn estimator
    """
    n_folds = code_count(units.folds)
    if n_folds < MIN_FOLDS:
        problem = "there are too few folds to choose and check a learner"
        raise InputError(problem, given=f"{n_folds} folds", allowed=f"{MIN_FOLDS} or more")
    kinds = ("none", "learner") if units.column is None else ("none", "isotonic", "learner")
    # For each fold (K, m) the predictions of the other folds' units, by fits that saw neither.
    predicted = {kind: np.zeros((n_folds, len(units.z))) for kind in kinds}
    # Without both folds, one is predicted to choose the kind for the other: each pair serves twice.
    for j, k in combinations(range(n_folds), 2):
        for kind in kinds:
            fit = units.fit(kind, learner, (units.folds != j) & (units.folds != k))
            for outer, inner in ((k, j), (j, k)):
                rows = units.folds == inner
                predicted[kind][outer, rows] = fit.apply(units.features[rows])
    fits = []
    for k in range(n_folds):
        others = units.folds != k
        # The fold itself has no part in the choice, so that its residuals stay unbiased.
        losses = [units.loss(predicted[kind][k], others) for kind in kinds]
        fits.append(units.fit(kinds[int(np.argmin(losses))], learner, others))
    return tuple(fits)


def learner_note(fits: tuple[FoldFit, ...], learner: object, names: tuple[str, ...]) -> str:
    """Return the note on the learner: its columns, and the folds in which it was chosen."""
    counts = Counter(fit.kind for fit in fits)
    others = {"isotonic": "the proxy's isotonic calibration", "none": "no proxy"}
    rest = ", ".join(f"{words} in {counts[kind]}" for kind, words in others.items() if counts[kind])
    # "And 1 more" would be as long as the name.
    if len(names) > 5:
        remainder = f" and {len(names) - 4} more columns"
    else:
        remainder = ""
    shown = ", ".join(names[:4] if remainder else names) + remainder
    share_kept = f"used in {counts['learner']} of {len(fits)} folds, based on the loss in the other folds"
    return f"{calibration.learner_name(learner)} learned from {shown}: {share_kept}" + (
        f" ({rest})" if rest else ""
    )


def learner_columns(population: Population, requested: Iterable[str] | None) -> tuple[str, ...]:
    """Return the columns to learn from: those named, patterns spelt out, or all proxies and features."""
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
    """Return the columns of the drawn units (n, d): from the sample, or looked up in the population."""
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


# Estimators of a mean that use a proxy; calibration would have no effect on the others.
_USES_PROXY = ("difference", "ppi++", "stratppi")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CalibrationOptions(Record):
    """Options of the calibration of a proxy.

    Parameters
    ----------
    column : list of int
        Position of the proxy; one, which a learner does without.
    method : {"isotonic", "logistic"}, the name of a learner, or a scikit-learn estimator
    features : tuple of str, optional
        What a learner learns from: columns of the population, patterns too; all unless given.
    folds : int (m,), optional
        Five unless given.
    population : Population, optional
        The sample's own unless given.
    outcome, bounds
        Of the outcome, which must have bounds.
    """

    column: list[int]
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
    """The calibrated proxy as an estimator takes it.

    Parameters
    ----------
    values : float (m, 1)
        Of the labelled units, each by the curve that has not seen it, moved to a common mean per stratum.
    summary : StratumSummary
        Its mean and variance over the population, per stratum.
    curves : tuple of Fit (K,)
        What each fold is predicted by.
    note : str
    """

    values: FloatArray
    summary: StratumSummary
    curves: tuple[FoldFit, ...]
    note: str


def sample_folds(sample: Sample, labelled: BoolArray, respondents: Respondents, n_folds: object) -> IntArray:
    """Return the fold of each labelled unit (m,), from its permanent random number; clusters stay whole."""
    count = check_folds(n_folds, respondents.weighting.draws)
    keys = keys_of_ids(id_texts(sample.ids[labelled]), sample.seed, "fold:")
    return assign_folds(keys, respondents.stratum, count, respondents.weighting.groups)


def population_with_features(sample: Sample, path: Path, features: Sequence[str] = ()) -> Population:
    """Return the sample's population in a file, with the columns that its strata and a learner need.

    Raises
    ------
    InputError
        If the sample was not drawn from it.
    """
    others = [name for name in _rule(sample).columns if name not in sample.proxy_names]
    additional = [name for name in features if name not in (*sample.proxy_names, *others)]
    population = Population.read(
        path,
        id=sample.question.id,
        proxy=list(sample.proxy_names),
        groups=[name for name in others if name in sample.groups],
        features=[*(name for name in others if name not in sample.groups), *additional],
    )
    return require_same_population(sample, population)


def calibrated_estimator(estimator: str, *, has_lam: bool, method: object = None) -> str:
    """Return the estimator of a calibrated proxy: `auto` is `difference`, of a history `ppi++`.

    A calibrated proxy needs no λ: fitting one as well gained nothing where it was measured
    (benchmarks/results/cross_fitting.md). What a history predicts of a new model may be off by more than a
    few labels can mend, and λ costs 1% of the error where it is not.

    Raises
    ------
    InputError
        For an estimator that does not use the proxy.
    """
    if has_lam or estimator in _USES_PROXY:
        return estimator
    if estimator == "auto":
        if method == HISTORY:
            return "ppi++"
        return "difference"
    problem = f"estimator '{estimator}' uses no proxy, so there is nothing to calibrate"
    raise InputError(problem, allowed=", ".join(("auto", *_USES_PROXY)))


def calibrated_proxy(
    sample: Sample, labelled: BoolArray, respondents: Respondents, z: FloatArray, options: CalibrationOptions
) -> CalibratedProxy:
    """Calibrate a proxy on the labels, each fold by the others.

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
        Without the population, for several proxies or an outcome without bounds (unless it is a learner), an
        unknown method, too few labels, and a population that the sample was not drawn from.
    """
    population = options.population if options.population is not None else sample.population
    if options.folds is None:
        folds = sample_folds(sample, labelled, respondents, N_FOLDS)
    else:
        folds = options.folds
    limits = infer_outcome(z, options.outcome, options.bounds)[1]
    method = options.method
    is_learner = calibration.is_learner(method)
    is_history = isinstance(method, str) and method == HISTORY
    if not is_learner:
        _refuse_curve(options, limits)
    if population is None:
        raise InputError(
            "calibration requires the population to compute the calibrated proxy's mean over all units",
            action="Give the population from which the sample was drawn: population= (--population FILE).",
        )
    names = tuple(sample.proxy_names[k] for k in options.column)
    # The proxy that is calibrated; None if a learner does not use it.
    proxy_column: int | None = 0
    if is_learner:
        learned_columns = options.features
        if learned_columns is None and is_history:
            learned_columns = history_columns(population.feature_names) or (f"{HISTORY}_*",)
        proxies = names
        names = learner_columns(population, learned_columns)
        proxy_column = next((names.index(name) for name in proxies if name in names), None)
    units = CalibrationUnits(
        features=features_of(sample, population, names)[labelled],
        z=z,
        weights=respondents.weighting.weights,
        stratum=respondents.stratum,
        folds=folds,
        bounds=(-np.inf, np.inf) if limits is None else limits,
        column=proxy_column,
    )
    if is_learner and not is_history:
        curves = chosen_fits(units, method)
        note = learner_note(curves, method, names)
    elif is_history:
        # No comparison with other fits: its prior and λ already limit the harm of a poor fit.
        curves = units.fits_by_fold("learner", HISTORY)
        note = f"the prediction from earlier models' results was fitted to the labels, in {len(curves)} folds"
    else:
        curves = units.fits_by_fold(method)
        note = f"proxy '{names[0]}' was calibrated ({method}), cross-fitted in {len(curves)} folds"
    summary_by_curve = _of_population(population, names, _rule(sample), curves, sample.summary.sizes)
    # Strata without labels were merged with others.
    if respondents.codes is not None:
        summary_by_curve = summary_by_curve.merge_strata(respondents.codes)
    stratum = respondents.stratum
    n_strata = len(summary_by_curve.sizes)
    shares = fold_shares(folds, stratum, n_strata)
    centred = (
        np.column_stack([curve.apply(units.features) for curve in curves])
        - summary_by_curve.proxy_means[stratum]
    )
    calibrated_values = combine_fits(
        centred, folds, stratum, shares, sampled_fractions(respondents.weighting, n_strata)
    )
    means = np.einsum("kh,hk->h", shares, summary_by_curve.proxy_means)
    variances = np.einsum("kh,hkk->h", shares, summary_by_curve.proxy_covariances)
    summary = StratumSummary(
        sizes=summary_by_curve.sizes, proxy_means=means[:, None], proxy_covariances=variances[:, None, None]
    )
    values = (calibrated_values + means[stratum])[:, None]
    return CalibratedProxy(values=values, summary=summary, curves=curves, note=note)


def _refuse_curve(options: CalibrationOptions, limits: tuple[float, float] | None) -> None:
    """Refuse a calibration curve of what has none: it is of one proxy, and of an outcome with bounds."""
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
    if len(options.column) != 1:
        if options.column:
            action = "Name one: proxy=."
        else:
            action = "Give the population a proxy."
        raise InputError("calibration requires one proxy", action=action)
    if limits is None:
        raise InputError(
            "calibration requires an outcome with bounds", action="Give bounds=(lowest, highest)."
        )


def _rule(sample: Sample) -> Rule:
    """Return the rule of the sample's strata."""
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


def _of_population(
    population: Population, names: tuple[str, ...], rule: Rule, curves: tuple[FoldFit, ...], sizes: IntArray
) -> StratumSummary:
    """Return mean and variance of each curve over each stratum of the population; covariances are left 0."""
    n_strata = len(sizes)
    diagonal = np.arange(len(curves))
    counts = np.zeros(n_strata, dtype=np.int64)
    # Of deviations from the first unit: sums of squares of large, similar values would lose their digits.
    sums = np.zeros((n_strata, len(curves)))
    products = np.zeros((n_strata, len(curves), len(curves)))
    centres = np.empty(0)
    for batch in population.batches(tuple(dict.fromkeys((*names, *rule.columns)))):
        matrix = np.column_stack([np.asarray(batch[name], dtype=np.float64) for name in names])
        codes = rule.assign(batch).astype(np.intp)
        values = np.column_stack([curve.apply(matrix) for curve in curves])
        centres = centres if len(centres) else values[0]
        values = values - centres
        counts += np.bincount(codes, minlength=n_strata)
        sums += _totals(values, codes, n_strata)
        products[:, diagonal, diagonal] += _totals(values**2, codes, n_strata)
    if not np.array_equal(counts, sizes):
        counted = counts.tolist()[:5]
        expected = sizes.tolist()[:5]
        raise other_population_error(
            "", f"strata of {counted} units, but the strata of the sample have {expected}"
        )
    return StratumSummary.of_sums(counts, sums, products, centres)


def _totals(values: FloatArray, codes: IntArray, n_strata: int) -> FloatArray:
    """Return the sums (H, k) of values (N, k) in each stratum."""
    return np.stack([np.bincount(codes, column, minlength=n_strata) for column in values.T], axis=1)
