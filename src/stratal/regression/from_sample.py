"""Estimate the coefficients of a regression, or a quantile, from a sample and its labels.

`regress` joins the labels to the sample, and reads the proxy and the features of the population in batches.
`Coefficient` and `Quantile` are the same estimates as estimands, with the influence that a plan needs. The
kernels are in `m_estimation` and `quantiles`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import NO_DIVISOR, AnyArray, BoolArray, FloatArray, IntArray, code_count, finite_vector
from stratal.designs.extending import require_same_population
from stratal.designs.sample import Sample, require_sample
from stratal.errors import (
    InputError,
    LabelError,
    check_choice,
    optional_import,
    suggest_names,
)
from stratal.estimation.calibrated import features_of
from stratal.estimation.estimand import PLAIN, Estimand, LabelledInfluence, Request
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates, with_label_values
from stratal.estimation.means import AnticipatedMoments
from stratal.estimation.resolve import check_label_codes, named_groups, number_columns
from stratal.estimation.respondents import Respondents, known_outcome, refuse_outside, unstated_target
from stratal.labels.joined_labels import JoinedLabels, join_labels
from stratal.labels.labels import Labels
from stratal.population.expressions import (
    Cells,
    Constant,
    Exponential,
    Expression,
    NumberColumn,
    logistic,
    total,
)
from stratal.population.influence import Influence, averages
from stratal.population.population import Population
from stratal.population.rules import Rule
from stratal.protocols import Keywords
from stratal.regression import losses
from stratal.regression.m_estimation import Coefficients, fit_to_proxies, m_estimate
from stratal.regression.quantiles import (
    quantile,
    quantile_estimate,
    require_probability,
    weighted_quantile,
)
from stratal.regression.rectified_loss import require_inverse


class Formula:
    """The right-hand side of a formula, with categories and transformations that are learned once from data.

    Learn them from the population, or from a subset with every category, so that the labelled units and the
    population get the same columns.

    Parameters
    ----------
    formula : str
        The right-hand side, without `~`. It has an intercept, except with `0 +` or `- 1`.
    data : mapping of name to array-like (N,), or a dataframe
        Determines the categories and transformations.

    Raises
    ------
    InputError
        For an unknown column, for missing values, and for a category that `data` does not contain.
    MissingExtraError
        If formulaic is not installed.

    Examples
    --------
    >>> population = {"length": [1.0, 2.0, 3.0], "language": ["de", "en", "en"]}
    >>> formula = Formula("length + language", population)
    >>> formula.names
    ('Intercept', 'length', 'language[T.en]')
    >>> formula.features({"length": [5.0], "language": ["de"]})
    array([[1., 5., 0.]])
    """

    def __init__(self, formula: str, data: object) -> None:
        if "~" in formula:
            raise InputError(
                "a formula must contain only its right-hand side", action="Leave '~' and the outcome out."
            )
        self.formula = formula
        make_matrix = partial(_formulaic().model_matrix, formula, na_action="raise")
        self._spec = self._matrix(make_matrix, data).model_spec
        self.names: tuple[str, ...] = tuple(str(name) for name in self._spec.column_names)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns in the formula."""
        return tuple(sorted(str(name) for name in self._spec.required_variables))

    @staticmethod
    def names_in(formula: str) -> frozenset[str]:
        """Return the names of columns and functions in a formula.

        Examples
        --------
        >>> sorted(Formula.names_in("log(length) + `my column`"))
        ['length', 'log', 'my column']
        """
        quoted = re.findall(r"`([^`]+)`", formula)
        return frozenset([*quoted, *re.findall(r"[^\W\d]\w*", re.sub(r"`[^`]+`", " ", formula))])

    def features(self, data: Mapping[str, object]) -> FloatArray:
        """Return the feature matrix (n, d) of other units."""
        units = _frame({name: data[name] for name in self.columns})
        for factor, (_, state) in self._spec.encoder_state.items():
            known_levels = {str(value) for value in state.get("categories", ())}
            # A factor without categories is numeric.
            if not known_levels:
                continue
            unknown = sorted({str(value) for value in units.get(str(factor), ())} - known_levels)
            if unknown:
                raise InputError(
                    f"{str(factor)!r} contains a category that did not occur when the formula was fixed",
                    given=repr(unknown[0]),
                    action="Fix the formula on the whole population.",
                )
        matrix = self._matrix(self._spec.get_model_matrix, units)
        return losses.feature_matrix("features", np.asarray(matrix))

    def _matrix(self, make_matrix: Callable[..., Any], data: object) -> Any:
        """Return the matrix of a function of formulaic; translate its errors into `InputError`."""
        errors = _formulaic().errors
        units = _frame(data)
        try:
            return make_matrix(units)
        except (errors.FactorEvaluationError, errors.FormulaSyntaxError, ValueError) as error:
            raise InputError(
                f"the formula {self.formula!r} cannot be read: {str(error).splitlines()[0]}",
                allowed=", ".join(map(repr, list(units.columns)[:20])),
                action="Name existing columns; drop or fill missing values first.",
            ) from None


def _formulaic() -> Any:
    """Return the module formulaic."""
    with optional_import("formulaic", extra="formula"):
        import formulaic
        import formulaic.errors
    return formulaic


def _frame(data: object) -> Any:
    """Return data as a dataframe of pandas, which formulaic requires."""
    import pandas as pd

    if isinstance(data, Mapping):
        return pd.DataFrame({name: np.asarray(values) for name, values in data.items()})
    if isinstance(data, pd.DataFrame):
        return data
    return pd.DataFrame(data)


@dataclass(frozen=True, slots=True)
class NumericFeatures:
    """Numeric columns as features, with or without an intercept; `Formula` also supports categories."""

    columns: tuple[str, ...] = ()
    intercept: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients."""
        if self.intercept and self.columns:
            return (INTERCEPT, *self.columns)
        return self.columns

    def features(self, data: Mapping[str, object]) -> FloatArray:
        """Return the feature matrix (n, d) of units."""
        matrix = np.stack([np.asarray(data[name], dtype=np.float64) for name in self.columns], axis=1)
        if self.intercept:
            return losses.with_intercept(matrix)
        return matrix


Regressors = NumericFeatures | Formula


# Name of the coefficient of the constant feature.
INTERCEPT = "intercept"

# The losses that have a name.
FAMILIES: dict[str, type[losses.Loss]] = {
    loss.name: loss for loss in (losses.LinearLoss, losses.LogisticLoss, losses.PoissonLoss)
}

# Rows of the population in memory at once: 2¹⁸, that is 2 MB per column.
_BATCH_ROWS = 262_144

_NOTE_ON_CENSUS = (
    "every unit has a label, so the coefficients of these units are known; the standard errors therefore "
    "refer to all units from the same source (target superpopulation)"
)


def regress(
    sample: Sample | str | tuple[Any, ...],
    labels: object = None,
    *,
    family: str | losses.Loss = "linear",
    features: str | tuple[str, ...] = (),
    formula: str | None = None,
    population: Population | None = None,
    proxy: str | None = None,
    intercept: bool = True,
    **options: Any,
) -> Coefficients:
    """Estimate how the outcome depends on features in the population from which a sample was drawn.

    Parameters
    ----------
    sample : Sample, str or tuple of arrays
        A formula such as "y ~ x1 + x2" if `labels` is a table with the outcome in some rows, or the arrays
        (X, y, y_proxy) or (X, y) with NaN where y is unlabelled. The labelled rows are then assumed to be a
        simple random sample of all rows.
    labels : mapping of id to outcome, Series, array in the order of `sample.ids`, Labels, or a table
        Units without a label are treated as nonresponse within their stratum. A stratum without any label is
        merged with its neighbour.
    family : str or Loss
        "linear", "logistic", "poisson", or a loss of your own. Means and quantiles are estimands of
        `stratal.estimate`.
    features : str or tuple of str
        Numeric columns of the population, or proxies, groups and shown columns of the sample.
    formula : str, optional
        A formula instead of `features`, such as "log(length) * language" (extra "formula").
    population : Population, optional
        Source of the proxy and features of all units. Default: the population that the sample was drawn from,
        if it is in memory.
    proxy : str, optional
        Prediction of the outcome. Default: the first proxy.
    intercept : bool
        Whether a column of ones is added to `features`. A formula determines this itself.
    **options
        See `stratal.regression.m_estimate`: `estimator`, `lam`, `target`, `minimise`, …. If every unit is
        labelled, the default target is the superpopulation.

    Returns
    -------
    Coefficients
        `Estimates` of the coefficients.

    Raises
    ------
    InputError
        For missing columns, and as `m_estimate`.
    LabelError
        For ids that are not in the sample, and if there is no label.

    Examples
    --------
    >>> import numpy as np, stratal
    >>> length = np.arange(40.0)
    >>> population = stratal.Population.from_arrays(proxy=length / 40, features={"length": length})
    >>> sample = stratal.designs.SimpleRandom(budget=12).draw(population, seed=7)
    >>> outcome = 1 + length[sample.ids] / 20 + 0.1 * (-1.0) ** sample.ids
    >>> regress(sample, outcome, features="length").names
    ('intercept', 'length')
    >>> table = {"y": [1.0, 2.0, 3.5, 4.0] + [None] * 4, "x": range(8), "judge_score": np.arange(8) / 8}
    >>> regress("y ~ x", table).names
    ('intercept', 'x')
    """
    if isinstance(sample, str | tuple):
        if features or formula is not None or population is not None:
            raise InputError(
                "features=, formula= and population= can only be used with a sample",
                action="Write the features in the formula, or give only the arrays.",
            )
        sample, labels, regressor_options = _sample_of_data(sample, labels, proxy)
        features = regressor_options.get("features", ())
        formula = regressor_options.get("formula")
        # The sample now has only the proxy that was stated or recognised.
        proxy = None
    sample = require_sample(sample, "regress")
    if population is not None:
        population = require_same_population(sample, population)
    if population is None:
        population = sample.population
    feature_columns: tuple[str, ...]
    if isinstance(features, str):
        feature_columns = (features,)
    else:
        feature_columns = tuple(features)
    # Arguments of `m_estimate` that the sample and the features determine.
    for name in ("outcome", "weighting", "unlabelled", "names"):
        if name in options:
            raise InputError(f"regress determines {name}= itself", action="Leave it out.")
    loss = _checked_loss(family, feature_columns, formula)
    sample_columns = _columns_of_drawn_units(sample, population, feature_columns, formula)
    regressors: Regressors = NumericFeatures(feature_columns, intercept)
    if formula is not None:
        data = sample_columns if population is None else _first_batch(formula, population)
        regressors = Formula(formula, data)
    columns = {
        name: _column(sample_columns, name, is_numeric=name in feature_columns) for name in regressors.columns
    }
    estimator = str(options.get("estimator"))
    joined, respondents, fit_arguments = labelled_units(
        sample, labels, population, proxy, estimator=estimator, regressors=regressors
    )
    outcome = joined.by_unit(joined.numbers())
    matrix = None
    names = None
    # A loss of one's own may have no features.
    if regressors.names:
        names = regressors.names
        matrix = regressors.features({name: column[joined.labelled] for name, column in columns.items()})
    target = options.pop("target", None) or sample.question.target
    notes = respondents.notes
    if target is None:
        target = unstated_target(sample, joined.labelled)
        if target == "superpopulation":
            notes = (*notes, _NOTE_ON_CENSUS)
    result = m_estimate(
        loss, outcome, features=matrix, names=names, target=target, **fit_arguments, **options
    )
    estimates = tuple(_completed_estimate(row, respondents, sample, result.lam) for row in result)
    result = replace(result, estimates=estimates, remarks=(*notes, *result.remarks))
    return with_label_values(result, {"": joined})


def _sample_of_data(
    data: str | tuple[Any, ...], table: object, proxy: str | None
) -> tuple[Sample, Labels, dict[str, Any]]:
    """Return a sample, labels, and `features` or `formula`, of a formula and its table, or of arrays."""
    # Only these forms of the call need the reader of tables.
    from stratal.regression.from_table import sample_of_arrays, sample_of_formula

    if isinstance(data, str):
        return sample_of_formula(data, table, proxy, Formula.names_in(data))
    return sample_of_arrays(data)


def _completed_estimate(
    estimate: Estimate, respondents: Respondents, sample: Sample, lam: FloatArray
) -> Estimate:
    """Return the estimate of a coefficient with its table of strata, which includes λ if λ is by stratum."""
    completed = respondents.complete(estimate, sample)
    table = completed.stratum_table
    if table is not None and len(table.sizes) == len(lam):
        table = replace(table, lam=lam[:, None])
    # The notes concern all coefficients, and are stored once.
    return replace(completed, stratum_table=table, remarks=())


def _columns_of_drawn_units(
    sample: Sample, population: Population | None, features: tuple[str, ...], formula: str | None
) -> dict[str, AnyArray]:
    """Return the columns (n,) of the drawn units by name; features are read from the population."""
    proxies = {name: sample.proxies[:, k] for k, name in enumerate(sample.proxy_names)}
    columns: dict[str, AnyArray] = {**sample.shown, **sample.groups, **proxies}
    if population is None:
        return columns
    requested: Collection[str] = features
    if formula is not None:
        requested = Formula.names_in(formula)
    names = tuple(name for name in population.feature_names if name in requested)
    if names:
        columns |= dict(zip(names, features_of(sample, population, names).T, strict=True))
    return columns


def labelled_units(
    sample: Sample,
    labels: object,
    population: Population | None,
    proxy: str | None,
    *,
    estimator: str,
    regressors: Regressors | None = None,
) -> tuple[JoinedLabels, Respondents, dict[str, Any]]:
    """Return the labels, the respondents, and the arguments `weighting`, `proxy` and `unlabelled` of a fit.

    `proxy` and `unlabelled` are missing if the estimator is "classical", or if the sample has no proxy.
    """
    # A plan for a coefficient reads no labels.
    from stratal.labels.label_files import read_labels_if_table

    joined = join_labels(sample, read_labels_if_table(labels, sample))
    joined = check_label_codes(sample, joined, "label")
    if not np.any(joined.labelled):
        raise LabelError("no unit is labelled yet", allowed="at least one label")
    respondents = Respondents.of(sample, joined.labelled)
    arguments: Keywords = {"weighting": respondents.weighting}
    if estimator == "classical" or not sample.proxy_names:
        return joined, respondents, arguments
    if population is None:
        raise InputError(
            "the population is not available, so its proxies and features cannot be read",
            action="Give population=, or estimator='classical'.",
        )
    name = proxy if proxy is not None else sample.proxy_names[0]
    check_choice("proxy", name, sample.proxy_names)
    arguments["proxy"] = sample.proxies[joined.labelled, sample.proxy_names.index(name)]
    rule = sample.design.rule
    arguments["unlabelled"] = from_population(
        population, name, regressors or NumericFeatures(), rule, respondents.codes
    )
    return joined, respondents, arguments


def from_population(
    population: Population,
    proxy: str,
    regressors: Regressors,
    rule: Rule | None = None,
    codes: IntArray | None = None,
) -> losses.Unlabelled:
    """Return the units of a population, which an estimator reads several times, in batches.

    Parameters
    ----------
    population : Population
    proxy : str
    regressors : NumericFeatures or Formula
    rule : Rule, optional
        The stratification rule of the design.
    codes : int (H,), optional
        The merged stratum of each stratum of the rule, if strata were merged.
    """
    if codes is None:
        codes = np.arange(1 if rule is None else rule.n_strata)
    batches = partial(_blocks, population, proxy, regressors, rule, codes)
    return losses.Unlabelled(batches, n_strata=code_count(codes))


def _blocks(
    population: Population, proxy: str, regressors: Regressors, rule: Rule | None, codes: IntArray
) -> Iterator[losses.Block]:
    """Yield the features, proxies and strata of each batch of the population."""
    names = dict.fromkeys((proxy, *regressors.columns, *(rule.columns if rule is not None else ())))
    for batch in population.batches(tuple(names), _BATCH_ROWS):
        values = np.asarray(batch[proxy], dtype=np.float64)
        if rule is None:
            stratum = np.zeros(len(values), dtype=np.int64)
        else:
            stratum = rule.assign(batch)
        if regressors.names:
            features = regressors.features(batch)
        else:
            features = np.empty((len(values), 0))
        stratum = codes[stratum].astype(np.int64, copy=False)
        yield losses.Block(features=features, proxy=values, stratum=stratum)


def _first_batch(formula: str, population: Population) -> Any:
    """Return the first units of the population, which determine the categories of a formula.

    A category that occurs only in later units raises an error.
    """
    names = (*population.group_names, *population.feature_names)
    requested = tuple(name for name in names if name in Formula.names_in(formula))
    if not requested:
        raise InputError(
            f"the formula {formula!r} names no column of the population", allowed=", ".join(map(repr, names))
        )
    return next(population.batches(requested))


def _column(columns: Mapping[str, object], name: str, *, is_numeric: bool) -> AnyArray:
    """Return a column of the drawn units (n,); numeric columns are checked and converted to numbers."""
    if name not in columns:
        raise InputError(
            f"the drawn units have no column {name!r}",
            allowed=suggest_names(name, columns) if columns else "none is known",
            action="Give the population (population=, --population FILE), or draw with show=.",
        )
    if is_numeric:
        return finite_vector(f"feature {name!r}", columns[name])
    return np.asarray(columns[name])


def _checked_loss(family: str | losses.Loss, features: tuple[str, ...], formula: str | None) -> losses.Loss:
    """Return the loss; raise an error for an unknown family, and for two or no specifications of features."""
    if features and formula is not None:
        raise InputError("features= and formula= are mutually exclusive", action="Leave one of them out.")
    if isinstance(family, losses.Loss):
        return family
    check_choice("family", family, FAMILIES)
    if not features and formula is None:
        raise InputError(
            f"{family} regression requires features",
            action="Give features= or formula= (or estimate the mean).",
        )
    return FAMILIES[family]()


# Options of `estimate` for estimands that are fitted with a proxy.
FIT_OPTIONS = ("target", "population", "estimator", "lam", "proxy", "stratum_weights_known")

# Estimator of `m_estimate` by estimator of a mean. The difference estimator is `ppi++` with λ = 1.
_LOSS_ESTIMATORS = {"auto": "ppi++", "horvitz-thompson": "classical", "difference": "ppi++"}


def fit_options(request: Request, sample: Sample) -> Keywords:
    """Return the options of a fit; `auto` uses the proxy if the population is available."""
    has_proxy = sample.population is not None and bool(sample.proxy_names)
    estimator = _LOSS_ESTIMATORS.get(request.estimator, request.estimator)
    if request.estimator == "auto" and request.lam is None and not has_proxy:
        estimator = "classical"
    is_plain_difference = request.estimator == "difference" and request.lam is None
    return {
        "estimator": estimator,
        "lam": 1.0 if is_plain_difference else request.lam,
        "proxy": None if estimator == "classical" else request.proxy,
        "target": request.target,
        "stratum_weights_known": request.stratum_weights_known,
    }


def scaled_moments(population: Population, proxy: str | None, subject: str) -> AnticipatedMoments:
    """Return the anticipated moments of the outcome; raise an error for a proxy that only ranks the units."""
    if not population.proxy_names or not population.proxy_info(proxy).scaled:
        raise InputError(
            f"{subject} requires a proxy on the outcome's scale",
            given=", ".join(population.proxy_names) or "no proxy",
            action="Name a column that predicts the outcome (proxy=, --proxy); give the outcome's bounds "
            "(bounds=, --bounds LOW,HIGH), or scaled=True if the outcome has no bounds.",
        )
    return AnticipatedMoments.of(population, proxy)


# Mean influence that `Coefficient.influence` returns for a unit with the average E[u² | x], divided by
# √E[u²]. It is small enough not to change the anticipated variance, and large enough to order the units.
_ORDERING_MEAN = 1e-3


@dataclass(frozen=True, slots=True)
class Coefficient(Estimand):
    """One coefficient of a linear, logistic or Poisson regression of the outcome on numeric columns.

    The influence of a unit is w(x) (y − μ(x)), where w(x) is the coefficient's row of A⁻¹x: units with
    extreme values of a feature matter most. Before there are labels, the fit and A are those of the proxy, as
    in Fisch et al. (2024), eq. 20–21.

    Parameters
    ----------
    of : str
        A feature, or `intercept`.
    features : tuple of str, optional
        All features of the regression, which also has an intercept. Default: only `of`.
    family : {"linear", "logistic", "poisson"}
    proxy : str, optional
        The proxy for the plan, which predicts the outcome. Default: the first proxy of the population.

    Examples
    --------
    >>> Coefficient("length", ("length", "age")).text
    'coefficient:length,features=length+age'
    """

    kind: ClassVar[str] = "coefficient"
    listed: ClassVar[str] = "of"
    shown: ClassVar[str] = "length,features=length+age"
    of: str
    features: tuple[str, ...] = ()
    family: str = "linear"
    proxy: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.features, str):
            features = (self.features,)
        else:
            features = tuple(self.features)
        # Equal estimands have equal fields and texts.
        self._set(features=() if features == self._default_features else features)
        if not self.numbers or self.of not in self.names:
            raise InputError(
                "the regression has no such coefficient",
                given=repr(self.of),
                allowed=suggest_names(self.of, self.names),
                action="Name all features of the regression: coefficient:length,features=length+age.",
            )
        check_choice("family", self.family, INVERSE_LINKS)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numeric columns that are features."""
        return self.features or self._default_features

    @property
    def _default_features(self) -> tuple[str, ...]:
        """The features if none are named."""
        if self.of == INTERCEPT:
            return ()
        return (self.of,)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all coefficients."""
        return (INTERCEPT, *self.numbers)

    # The features, and the proxy of all units.
    reads_population = True

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of w(x) (y − μ(x)) for the fit to the proxies.

        The expected influence is 0 for all units, but strata are intervals of the expected influence. The
        returned mean is therefore proportional to E[u² | x] and very small (`_ORDERING_MEAN`), so that units
        with a similar variance of u are in the same stratum.
        """
        expected = self._moments(population)
        units = from_population(
            population, population.proxy_info(self.proxy).name, NumericFeatures(self.numbers)
        )
        fit = fit_to_proxies(FAMILIES[self.family](), units)
        index = self.names.index(self.of)
        weight = self._linear_predictor(require_inverse(fit.hessian)[index])
        residual = expected.mean - INVERSE_LINKS[self.family](self._linear_predictor(fit.theta))
        square = weight * weight * (residual * residual + expected.variance)
        mean_square = max(float(averages(population, [square])[0]), NO_DIVISOR)
        return Influence(
            value=float(fit.theta[index]),
            mean=(_ORDERING_MEAN / mean_square**0.5) * square,
            square=square,
            cells=Cells(names=("all",)),
        )

    def _moments(self, population: Population) -> AnticipatedMoments:
        """Return the anticipated moments of the outcome; the variance of a count is its mean (Poisson)."""
        moments = scaled_moments(population, self.proxy, repr(self.text))
        number_names = (*population.feature_names, *population.proxy_names)
        for name in self.numbers:
            if name in number_names:
                continue
            raise InputError(
                f"the population has no column of numbers {name!r}",
                allowed=suggest_names(name, number_names),
                action="Write several features as coefficient:length,features=length+age.",
            )
        if self.family == "poisson":
            return AnticipatedMoments(mean=moments.mean, variance=moments.mean)
        return moments

    def _linear_predictor(self, coefficients: FloatArray) -> Expression:
        """Return the linear predictor with coefficients (intercept first) of nine digits.

        Further digits may differ between engines, because they add in different orders.
        """
        intercept, *slopes = (float(f"{coefficient:.9g}") for coefficient in coefficients)
        terms = [slope * NumberColumn(name=name) for slope, name in zip(slopes, self.numbers, strict=True)]
        return total([Constant(value=intercept), *terms])

    takes: ClassVar[tuple[str, ...]] = FIT_OPTIONS

    def estimate(self, sample: Sample, labels: object, request: Request = PLAIN) -> Estimate:
        """Return the coefficient; it uses the proxy if the population is available."""
        options = fit_options(replace(request, proxy=request.proxy or self.proxy), sample)
        fitted = regress(sample, labels, family=self.family, features=self.numbers, **options)
        estimate: Estimate = fitted.of(coefficient=self.of)
        return replace(estimate, label=self.label, null=None, remarks=fitted.remarks)


# The mean of the outcome as a function of the linear predictor, by family.
INVERSE_LINKS: dict[str, Callable[[Expression], Expression]] = {
    "linear": lambda predictor: predictor,
    "logistic": logistic,
    "poisson": lambda predictor: Exponential(parts=(predictor,)),
}


# The logistic function of 1.702 t differs from the normal distribution function of t by at most .01 (Camilli
# 1994).
_LOGISTIC_SCALE = 1.702
# Lower limit of the residual standard deviation and of the density at the quantile, which are divisors.
_MIN_DIVISOR = 1e-12


@dataclass(frozen=True, slots=True)
class Quantile(Estimand):
    """The smallest value such that a given share of the outcomes is at or below it.

    Parameters
    ----------
    probability : float
        The share; ½ gives the median.
    proxy : str, optional
        The proxy for the plan, on the scale of the outcome. Default: the first proxy of the population.

    Examples
    --------
    >>> Quantile(0.9).text, Estimand.parse_text("quantile:.9").probability
    ('quantile:0.9', 0.9)
    """

    has_superpopulation: ClassVar[bool] = False
    kind: ClassVar[str] = "quantile"
    listed: ClassVar[str] = "probability"
    shown: ClassVar[str] = ".9"
    probability: float
    proxy: str | None = None

    def __post_init__(self) -> None:
        self._set(probability=float(self.probability))
        require_probability(self.probability)

    @property
    def title(self) -> str:
        """The name in a sentence: `0.9 quantile`."""
        return f"{self.probability:g} quantile"

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of (β − 1(z ≤ θ)) / density, where β is `probability`.

        θ is the quantile of the proxy. Given the proxy, z has a logistic distribution around it, with the
        mean residual standard deviation.
        """
        expected = scaled_moments(population, self.proxy, "a quantile")
        distribution = population.distribution(population.proxy_info(self.proxy).name)
        theta = weighted_quantile(
            distribution.values, distribution.counts.astype(np.float64), self.probability
        )
        # The logistic distribution needs a variance, even if the proxy determines the outcome.
        residual_sd = max(float(averages(population, [expected.variance])[0]), _MIN_DIVISOR) ** 0.5
        slope = _LOGISTIC_SCALE / residual_sd
        share_below = logistic(slope * (theta - expected.mean))
        density, mean_share = averages(population, [slope * share_below * (1.0 - share_below), share_below])
        # The density is 0 if no unit has an expected value near the quantile.
        scale = 1.0 / max(float(density), _MIN_DIVISOR)
        # The expected share, which is near β, replaces β, so that the mean influence is 0.
        beta = float(mean_share)
        mean = scale * (beta - share_below)
        square = scale**2 * (beta**2 + (1.0 - 2.0 * beta) * share_below)
        return Influence(value=theta, mean=mean, square=square, cells=Cells(names=("all",)))

    takes: ClassVar[tuple[str, ...]] = (*FIT_OPTIONS, "bounds")

    def estimate(self, sample: Sample, labels: object, request: Request = PLAIN) -> Estimate:
        """Return the weighted quantile with Woodruff's interval; with a proxy if the request requires it."""
        if request.estimator not in ("auto", "horvitz-thompson") or request.lam is not None:
            options = fit_options(replace(request, proxy=request.proxy or self.proxy), sample)
            proxy = options.pop("proxy")
            estimator = options["estimator"]
            joined, respondents, arguments = labelled_units(
                sample, labels, sample.population, proxy, estimator=estimator
            )
            outcomes = joined.by_unit(joined.numbers())
            bounds = _bounds_of(sample, outcomes, joined.labelled, request)
            rectified = quantile(outcomes, self.probability, bounds=bounds, **arguments, **options)
            return respondents.complete(rectified, sample, label=self.label)
        if request.target != "population":
            raise InputError(
                "a weighted quantile always refers to the population",
                action="Give estimator='ppi++', or leave target= out.",
            )
        columns, labelled = number_columns(sample, {"labels": labels})
        respondents = Respondents.of(sample, labelled)
        bounds = _bounds_of(sample, columns[:, 0], labelled, request)
        estimate = quantile_estimate(columns[:, 0], self.probability, respondents.weighting, bounds=bounds)
        if len(columns) < 2 and not np.isfinite(estimate.standard_error):
            raise InputError(
                "the standard error of a quantile cannot be estimated",
                action="Label at least 2 units, drawn at random.",
            )
        return respondents.complete(estimate, sample, label=self.label)

    takes_by_group: ClassVar[tuple[str, ...]] = ("population", "bounds")

    def by(self, sample: Sample, labels: object, group: object, request: Request = PLAIN) -> Estimates:
        """Return the weighted quantile of each group."""
        columns, labelled = number_columns(sample, {"labels": labels})
        respondents = Respondents.of(sample, labelled)
        groups, names = named_groups(sample, group)
        bounds = _bounds_of(sample, columns[:, 0], labelled, request)
        rows = []
        for name in names:
            member = groups[labelled] == name
            estimate = quantile_estimate(
                columns[:, 0], self.probability, respondents.weighting, bounds=bounds, member=member
            )
            rows.append(respondents.complete(estimate, sample, label={"domain": name}))
        return Estimates.from_rows(sample, rows, "domains", respondents.notes)

    def labelled_influence(self, sample: Sample, labels: object) -> LabelledInfluence:
        """Return β − 1(z ≤ θ̂) of the labelled units: the influence up to a factor common to all strata."""
        columns, labelled = number_columns(sample, {"labels": labels})
        z = columns[:, 0]
        weights = Respondents.of(sample, labelled).weighting.weights
        value = weighted_quantile(z, weights, self.probability)
        return LabelledInfluence(u=np.asarray(self.probability - (z <= value), np.float64), labelled=labelled)


def _bounds_of(
    sample: Sample, outcomes: FloatArray, labelled: BoolArray, request: Request
) -> tuple[float, float] | None:
    """Return the requested bounds of the outcomes (m,) of the labelled units (n,), or those of the sample."""
    refuse_outside(outcomes, sample, labelled, "bounded", request.bounds)
    return known_outcome(sample, outcomes, None, request.bounds, labelled=labelled)[1]
