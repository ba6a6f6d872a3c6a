"""Estimate the coefficients of a regression from a sample, its labels and its population.

`regress` joins the labels to the sample, and reads the proxy and the features of the population in batches.
`m_estimate` (m_estimation.py) computes the coefficients from these arrays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray, code_count, finite_vector
from stratal.designs.extending import require_same_population
from stratal.designs.sample import Sample, require_sample
from stratal.errors import InputError, LabelError, check_choice, suggest_names
from stratal.estimation.calibrated import features_of
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import with_label_values
from stratal.estimation.resolve import check_label_codes
from stratal.estimation.respondents import Respondents, default_target
from stratal.labels.joined_labels import JoinedLabels, join_labels
from stratal.labels.labels import Labels
from stratal.population.population import Population
from stratal.population.rules import Rule
from stratal.protocols import Keywords
from stratal.regression import losses
from stratal.regression.features import Formula, NumericFeatures, Regressors
from stratal.regression.m_estimation import Coefficients, m_estimate

# Rows of the population in memory at once: 2¹⁸, that is 2 MB per column.
_BATCH_ROWS = 262_144

_NOTE_ON_CENSUS = (
    "every unit has a label, so the coefficients of these units are known; the standard errors therefore "
    "refer to all units from the same source (target superpopulation)"
)

# Arguments of `m_estimate` that the sample and the features determine.
_DETERMINED_ARGUMENTS = ("outcome", "weighting", "unlabelled", "names")


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
    feature_names = (features,) if isinstance(features, str) else tuple(features)
    for name in _DETERMINED_ARGUMENTS:
        if name in options:
            raise InputError(f"regress determines {name}= itself", action="Leave it out.")
    loss = _checked_loss(family, feature_names, formula)
    drawn_columns = _columns_of_drawn_units(sample, population, feature_names, formula)
    regressors: Regressors = NumericFeatures(feature_names, intercept)
    if formula is not None:
        regressors = _formula_of(formula, population, drawn_columns)
    regressor_columns = {
        name: _required_column(drawn_columns, name, is_numeric=name in feature_names)
        for name in regressors.columns
    }
    joined, respondents, fit_arguments = prepare_fit(
        sample,
        labels,
        population,
        proxy,
        estimator=str(options.get("estimator")),
        regressors=regressors,
    )
    # A custom loss may have no features.
    if regressors.names:
        labelled_columns = {name: column[joined.labelled] for name, column in regressor_columns.items()}
        fit_arguments["features"] = regressors.features(labelled_columns)
        fit_arguments["names"] = regressors.names
    notes = respondents.notes
    target = options.pop("target", None) or sample.question.target
    if target is None:
        target = default_target(sample, joined.labelled)
        if target == "superpopulation":
            notes = (*notes, _NOTE_ON_CENSUS)
    outcome = joined.unit_means(joined.numbers())
    fit = m_estimate(loss, outcome, target=target, **fit_arguments, **options)
    estimates = tuple(_with_stratum_table(estimate, respondents, sample, fit.lam) for estimate in fit)
    result = replace(fit, estimates=estimates, remarks=(*notes, *fit.remarks))
    return with_label_values(result, {"": joined})


def _sample_of_data(
    data: str | tuple[Any, ...], table: object, proxy: str | None
) -> tuple[Sample, Labels, dict[str, Any]]:
    """Return a sample, its labels, and the option `features` or `formula` of `regress`.

    `data` is a formula such as "y ~ x" for `table`, or the arrays (X, y) or (X, y, y_proxy).
    """
    # Only these forms of the call need the reader of tables.
    from stratal.regression.from_table import sample_of_arrays, sample_of_formula

    if isinstance(data, str):
        return sample_of_formula(data, table, proxy, Formula.names_in(data))
    return sample_of_arrays(data)


def _with_stratum_table(
    estimate: Estimate, respondents: Respondents, sample: Sample, lam: FloatArray
) -> Estimate:
    """Return the estimate of a coefficient with a table of the strata that includes their λ (H,)."""
    completed = respondents.complete(estimate, sample)
    table = completed.stratum_table
    # With one entry for several strata, λ is common to all of them.
    if table is not None and len(table.sizes) == len(lam):
        table = replace(table, lam=lam[:, None])
    # The notes concern all coefficients, and are stored once.
    return replace(completed, stratum_table=table, remarks=())


def _columns_of_drawn_units(
    sample: Sample, population: Population | None, features: tuple[str, ...], formula: str | None
) -> dict[str, AnyArray]:
    """Return the columns (n,) of the drawn units by name; columns of features come from the population."""
    proxies = dict(zip(sample.proxy_names, sample.proxies.T, strict=True))
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


def prepare_fit(
    sample: Sample,
    labels: object,
    population: Population | None,
    proxy: str | None,
    *,
    estimator: str,
    regressors: Regressors | None = None,
) -> tuple[JoinedLabels, Respondents, dict[str, Any]]:
    """Return the labels, the labelled units, and the arguments of `m_estimate` for the design and the proxy.

    The arguments are `weighting`, and `proxy` and `unlabelled`, unless the estimator is "classical" or the
    sample has no proxy. `regressors` are the features of the unlabelled units; none for a quantile.
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
    proxy_name = sample.proxy_names[0] if proxy is None else proxy
    check_choice("proxy", proxy_name, sample.proxy_names)
    arguments["proxy"] = sample.proxies[joined.labelled, sample.proxy_names.index(proxy_name)]
    arguments["unlabelled"] = unlabelled_of_population(
        population, proxy_name, regressors or NumericFeatures(), sample.design.rule, respondents.codes
    )
    return joined, respondents, arguments


def unlabelled_of_population(
    population: Population,
    proxy: str,
    regressors: Regressors,
    rule: Rule | None = None,
    merged_strata: IntArray | None = None,
) -> losses.Unlabelled:
    """Return all units of a population for `m_estimate`, which reads them in batches, several times.

    Parameters
    ----------
    population : Population
    proxy : str
    regressors : NumericFeatures or Formula
    rule : Rule, optional
        The stratification rule of the design.
    merged_strata : int (H,), optional
        The merged stratum of each stratum of the rule, if strata without labels were merged.
    """
    if merged_strata is None:
        merged_strata = np.arange(1 if rule is None else rule.n_strata)
    batches = partial(_read_blocks, population, proxy, regressors, rule, merged_strata)
    return losses.Unlabelled(batches, n_strata=code_count(merged_strata))


def _read_blocks(
    population: Population, proxy: str, regressors: Regressors, rule: Rule | None, merged_strata: IntArray
) -> Iterator[losses.Block]:
    """Yield the features, proxies and merged strata of each batch of the population."""
    rule_columns = () if rule is None else rule.columns
    column_names = tuple(dict.fromkeys((proxy, *regressors.columns, *rule_columns)))
    for batch in population.batches(column_names, _BATCH_ROWS):
        proxies = np.asarray(batch[proxy], dtype=np.float64)
        stratum = np.zeros(len(proxies), dtype=np.int64)
        if rule is not None:
            stratum = rule.assign(batch)
        features = np.empty((len(proxies), 0))
        if regressors.names:
            features = regressors.features(batch)
        stratum = merged_strata[stratum].astype(np.int64, copy=False)
        yield losses.Block(features=features, proxy=proxies, stratum=stratum)


def _formula_of(text: str, population: Population | None, drawn_columns: Mapping[str, AnyArray]) -> Formula:
    """Return a formula whose categories are those of the population, or else of the drawn units."""
    if population is None:
        return Formula(text, drawn_columns)
    return Formula(text, _first_batch(text, population))


def _first_batch(formula: str, population: Population) -> Any:
    """Return the columns of the first units of the population, which determine the categories of a formula.

    If a category occurs only in later units, reading these raises an error.
    """
    names = (*population.group_names, *population.feature_names)
    requested = tuple(name for name in names if name in Formula.names_in(formula))
    if not requested:
        raise InputError(
            f"the formula {formula!r} names no column of the population", allowed=", ".join(map(repr, names))
        )
    return next(population.batches(requested))


def _required_column(columns: Mapping[str, object], name: str, *, is_numeric: bool) -> AnyArray:
    """Return a column (n,) of the drawn units; raise an `InputError` if it is missing or not numeric."""
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
    """Return the loss; raise an error for an unknown family, or without features."""
    if features and formula is not None:
        raise InputError("features= and formula= are mutually exclusive", action="Leave one of them out.")
    if isinstance(family, losses.Loss):
        return family
    check_choice("family", family, losses.FAMILIES)
    if not features and formula is None:
        raise InputError(
            f"{family} regression requires features",
            action="Give features= or formula= (or estimate the mean).",
        )
    return losses.FAMILIES[family]()
