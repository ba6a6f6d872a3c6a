"""From a sample and its labels to coefficients, the population read in batches where it is."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray, refuse_nonfinite
from stratal.designs.extending import refuse_other_units, require_same_population
from stratal.designs.sample import Sample, require_sample
from stratal.errors import InputError, LabelError, MissingExtraError, names_mistyped, near_names
from stratal.estimation.calibrated import features_of
from stratal.estimation.columns import with_label_values
from stratal.estimation.estimate import Estimate
from stratal.estimation.evaluation import estimate
from stratal.estimation.regression.losses import LinearLoss, LogisticLoss, Loss, PoissonLoss
from stratal.estimation.regression.m_estimation import Coefficients, m_estimate
from stratal.estimation.regression.quantiles import quantile
from stratal.estimation.regression.rectified_loss import require_one_per
from stratal.estimation.regression.unlabelled import BatchedUnlabelled, Block, feature_matrix, with_intercept
from stratal.estimation.respondents import Respondents
from stratal.labels.labels import join
from stratal.population.population import Population
from stratal.population.rules import Rule
from stratal.randomness import id_texts


class Formula:
    """A right-hand side whose categories and transformations are fixed once, then applied to any units.

    Fix it on the population (or a part of it with every category), so that labels and population get the
    same columns.

    Parameters
    ----------
    formula : str
        The right-hand side, without `~`. An intercept is included unless `0 +` or `- 1` says otherwise.
    data : mapping of name to array-like (N,), or a dataframe
        Fixes categories and transformations.

    Raises
    ------
    InputError
        For a column that does not exist, a category not seen when the formula was fixed, missing values.
    MissingExtraError
        Without formulaic.

    Examples
    --------
    >>> population = {"length": [1.0, 2.0, 3.0], "language": ["de", "en", "en"]}
    >>> formula = Formula("length + language", population)
    >>> formula.names
    ('Intercept', 'length', 'language[T.en]')
    >>> formula.features({"length": [5.0], "language": ["de"]})
    array([[1., 5., 0.]])
    """

    def __init__(self, formula: str, data: Any) -> None:
        if "~" in formula:
            raise InputError(
                "give the right-hand side alone", given=formula, action="Leave '~' and the outcome out."
            )
        self.formula = formula
        self._spec = self._matrix(_formulaic().model_matrix, formula, data).model_spec
        self.names: tuple[str, ...] = tuple(str(name) for name in self._spec.column_names)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that it reads."""
        return tuple(sorted(str(name) for name in self._spec.required_variables))

    @staticmethod
    def words(formula: str) -> frozenset[str]:
        """Return the names in a formula, of columns and functions alike.

        Examples
        --------
        >>> sorted(Formula.words("log(length) + `my column`"))
        ['length', 'log', 'my column']
        """
        quoted = re.findall(r"`([^`]+)`", formula)
        return frozenset([*quoted, *re.findall(r"[^\W\d]\w*", re.sub(r"`[^`]+`", " ", formula))])

    def features(self, data: Any) -> FloatArray:
        """Return the feature matrix (n, d) of other units."""
        frame = _frame(data)
        for name, values in self._levels().items():
            if name in frame:
                unknown = sorted({str(value) for value in frame[name]} - values)
                if unknown:
                    raise InputError(
                        f"{name!r} holds a category that the formula was not fixed on",
                        given=repr(unknown[0]),
                        allowed=", ".join(map(repr, sorted(values)[:10])),
                        action="Fix the formula on the whole population.",
                    )
        return feature_matrix("features", np.asarray(self._matrix(self._spec.get_model_matrix, None, frame)))

    def _levels(self) -> dict[str, set[str]]:
        """Return the categories that were seen, by factor name."""
        levels: dict[str, set[str]] = {}
        for factor, (_, state) in self._spec.encoder_state.items():
            if "categories" in state:
                levels[str(factor)] = {str(value) for value in state["categories"]}
        return levels

    def _matrix(self, make: Any, formula: str | None, data: Any) -> Any:
        errors = _formulaic().errors
        frame = _frame(data)
        try:
            return make(frame) if formula is None else make(formula, frame, na_action="raise")
        except (errors.FactorEvaluationError, errors.FormulaSyntaxError) as error:
            raise InputError(
                f"the formula {self.formula!r} cannot be read: {str(error).splitlines()[0]}",
                allowed=", ".join(map(repr, list(frame.columns)[:20])),
            ) from None
        except ValueError as error:
            raise InputError(
                f"the formula {self.formula!r} cannot be evaluated: {str(error).splitlines()[0]}",
                action="Drop or fill missing values first.",
            ) from None


def _formulaic() -> Any:
    try:
        import formulaic
        import formulaic.errors
    except ImportError:
        raise MissingExtraError("formulaic", extra="formula") from None
    return formulaic


def _frame(data: Any) -> Any:
    import pandas as pd

    if isinstance(data, Mapping):
        return pd.DataFrame({name: np.asarray(values) for name, values in data.items()})
    return data if isinstance(data, pd.DataFrame) else pd.DataFrame(data)


FAMILIES: dict[str, type[Loss]] = {loss.name: loss for loss in (LinearLoss, LogisticLoss, PoissonLoss)}
_WITHOUT_FEATURES = ("mean", "quantile")
_FOUND_HERE = ("outcome", "weighting", "unlabelled", "names")
_BATCH = 262_144


@names_mistyped
def regress(
    sample: Sample,
    labels: Any,
    *,
    family: str | Loss = "linear",
    features: str | tuple[str, ...] = (),
    formula: str | None = None,
    data: Mapping[str, Any] | None = None,
    population: Population | None = None,
    proxy: str | None = None,
    probability: float = 0.5,
    intercept: bool = True,
    **options: Any,
) -> Any:
    """Estimate how the outcome depends on features, over the population that a sample was drawn from.

    Parameters
    ----------
    sample : Sample
    labels : mapping of id to outcome, Series, array in the order of `sample.ids`, or Labels
        Units without a label are left out, as nonresponse within their stratum; a stratum without any label
        is merged with its neighbour.
    family : str or Loss
        "linear", "logistic", "poisson", "quantile", "mean" (which is `stratal.estimate`, with its options),
        or a loss of your own.
    features : str or tuple of str
        Numeric columns.
    formula : str, optional
        Instead of `features`, as in "log(length) * language" (extra "formula").
    data : mapping of name to array (n,), optional
        Columns of the drawn units in the order of `sample.ids`. Those of the population, and those that ride
        along in the sample (groups and shown ones), are found by the sample's ids and need not be given.
    population : Population, optional
        Where proxy and features of all units are read; the one that the sample was drawn from, if in memory.
    proxy : str, optional
        Prediction of the outcome; the first proxy if left out.
    probability : float
        Of a quantile.
    intercept : bool
        Whether `features` get a column of ones; a formula says so itself.
    **options
        See `stratal.regression.m_estimate`: `estimator`, `lam`, `target`, `minimise`, ….

    Returns
    -------
    Estimates of the coefficients; Estimate of a mean or a quantile

    Raises
    ------
    InputError
        For columns that are missing, and as `m_estimate`.
    LabelError
        For ids that are not in the sample, or if there is no label.

    Examples
    --------
    >>> import numpy as np, stratal
    >>> length = np.arange(40.0)
    >>> population = stratal.Population.from_arrays(proxy=length / 40, features={"length": length})
    >>> sample = stratal.SimpleRandom(budget=12).draw(population, seed=7)
    >>> outcome = 1 + length[sample.ids] / 20 + 0.1 * (-1.0) ** sample.ids
    >>> regress(sample, outcome, features="length").names
    ('intercept', 'length')
    """
    joined = join(require_sample(sample, "regress"), labels)
    if not np.any(joined.labelled):
        raise LabelError("no unit is labelled yet", allowed="at least one label")
    if population is not None:
        require_same_population(sample, population)
    population = population if population is not None else sample.population
    taken = [name for name in _FOUND_HERE if name in options]
    if taken:
        raise InputError(f"regress finds {taken[0]}= itself", action="Leave it out, or use m_estimate.")
    chosen = (features,) if isinstance(features, str) else tuple(features)
    _check_family(family, chosen, formula)
    if family == "mean":
        return estimate(sample, joined, proxy=proxy, population=population, **options)
    y = joined.by_unit(joined.numbers())
    columns: Features = chosen
    if formula is not None and population is not None:
        columns = _population_formula(formula, population)
    drawn = _drawn_columns(sample, population, data or {}, _read(columns))
    if formula is not None and population is None:
        columns = Formula(formula, drawn)
    batch = {name: _column(drawn, name) for name in _read(columns)}
    batch |= {name: _numbers(name, batch[name]) for name in chosen}
    labelled = Respondents.of(sample, joined.labelled)
    known: dict[str, Any] = {"weighting": labelled.weighting, **options}
    if options.get("estimator") != "classical" and sample.proxy_names:
        if population is None:
            raise InputError(
                "the population is not at hand, so its proxies and features cannot be read",
                action="Give population=, or estimator='classical'.",
            )
        name = proxy if proxy is not None else sample.proxy_names[0]
        if name not in sample.proxy_names:
            raise InputError(f"no such proxy: {name!r}", allowed=near_names(name, sample.proxy_names))
        known["proxy"] = sample.proxies[joined.labelled, sample.proxy_names.index(name)]
        known["unlabelled"] = from_population(
            population,
            proxy=name,
            features=columns,
            intercept=intercept,
            rule=sample.design.rule,
            merged=labelled.codes,
        )
    if family == "quantile":
        found = labelled.complete(quantile(y, probability, **known), sample)
        return with_label_values(found, {"": joined})
    names: tuple[str, ...] | None = None
    if isinstance(columns, Formula):
        names = columns.names
    elif columns:
        names = ("intercept", *columns) if intercept else columns
    loss = FAMILIES[family]() if isinstance(family, str) else family
    batch = {name: column[joined.labelled] for name, column in batch.items()}
    matrix = _matrix(batch, len(y), columns, intercept)
    result: Coefficients = m_estimate(loss, y, features=matrix, names=names, **known)
    rows = tuple(_in_strata(labelled.complete(row, sample), result.lam) for row in result)
    rows = tuple(dataclasses.replace(row, remarks=()) for row in rows)
    result = dataclasses.replace(result, estimates=rows, remarks=(*labelled.notes, *result.remarks))
    return with_label_values(result, {"": joined})


def _in_strata(row: Estimate, lam: FloatArray) -> Estimate:
    """Return the estimate with λ in its strata."""
    if len(row.strata) != len(lam):
        return row
    pairs = zip(row.strata, lam.tolist(), strict=True)
    return dataclasses.replace(
        row, strata=tuple(dataclasses.replace(entry, lam=(own,)) for entry, own in pairs)
    )


Features = tuple[str, ...] | Formula


def from_population(
    population: Population,
    *,
    proxy: str | tuple[str, ...] | None = None,
    features: tuple[str, ...] | Formula = (),
    intercept: bool = True,
    rule: Rule | None = None,
    merged: IntArray | None = None,
    batch_size: int = _BATCH,
) -> BatchedUnlabelled:
    """Return the units of a population as an estimator reads them: a few passes, in batches.

    Parameters
    ----------
    population : Population
    proxy : str or tuple of str, optional
        The first proxy if left out; several for a mean vector.
    features : tuple of str, or Formula
        Numeric columns, or what a formula makes of any.
    intercept : bool
        Whether to put a column of ones first (a formula brings its own).
    rule : Rule, optional
        The stratification rule of the design.
    merged : int (H,), optional
        Where strata were merged, the new code of each of the rule's.
    batch_size : int

    Returns
    -------
    BatchedUnlabelled

    Examples
    --------
    >>> from stratal.population.population import Population
    >>> population = Population.from_arrays(proxy=[0.1, 0.9, 0.4], features={"length": [1.0, 2.0, 3.0]})
    >>> units = from_population(population, features=("length",))
    >>> next(units.blocks()).features
    array([[1., 1.],
           [1., 2.],
           [1., 3.]])
    """
    proxies = proxy if isinstance(proxy, tuple) else (population.proxy_info(proxy).name,)
    read = tuple(dict.fromkeys((*proxies, *_read(features), *(rule.columns if rule is not None else ()))))

    def blocks() -> Iterator[Block]:
        for batch in population.batches(read, batch_size):
            values = np.stack([np.asarray(batch[name], dtype=np.float64) for name in proxies], axis=1)
            stratum = np.zeros(len(values), dtype=np.int64) if rule is None else rule.assign(batch)
            yield Block(
                features=_matrix(batch, len(values), features, intercept),
                proxy=values[:, 0] if len(proxies) == 1 else values,
                stratum=(stratum if merged is None else merged[stratum]).astype(np.int64, copy=False),
            )

    n_strata = 1 if rule is None else rule.n_strata
    return BatchedUnlabelled(blocks, n_strata=n_strata if merged is None else int(merged.max()) + 1)


def _read(features: Features) -> tuple[str, ...]:
    return features.columns if isinstance(features, Formula) else features


def _matrix(batch: Mapping[str, Any], m: int, features: Features, intercept: bool) -> FloatArray:
    """Return the feature matrix (m, d) of m units."""
    if isinstance(features, Formula):
        return features.features({name: batch[name] for name in features.columns})
    if not features:
        return np.empty((m, 0))
    matrix = np.stack([np.asarray(batch[name], dtype=np.float64) for name in features], axis=1)
    return with_intercept(matrix) if intercept else matrix


def _population_formula(formula: str, population: Population) -> Formula:
    """Return a formula with its categories fixed on the population's first batch.

    A category that comes later is an error that says so.
    """
    names = (*population.group_names, *population.feature_names)
    read = tuple(name for name in names if name in Formula.words(formula))
    if not read:
        raise InputError(
            f"the formula {formula!r} names no column of the population",
            allowed=", ".join(map(repr, names)),
        )
    return Formula(formula, next(population.batches(read)))


def _drawn_columns(
    sample: Sample, population: Population | None, data: Mapping[str, Any], names: tuple[str, ...]
) -> dict[str, AnyArray]:
    """Return the columns of the drawn units: those given, in the sample, or in the population by its ids.

    Columns that are given and known are compared, so that nobody gives those of other units.
    """
    proxies = {name: sample.proxies[:, k] for k, name in enumerate(sample.proxy_names)}
    known: dict[str, AnyArray] = {**sample.shown, **sample.groups, **proxies}
    if population is not None:
        read = tuple(name for name in dict.fromkeys((*names, *data)) if name in population.feature_names)
        found = features_of(sample, population, read) if read else np.empty((sample.size, 0))
        known |= dict(zip(read, found.T, strict=True))
    given = {name: _column(data, name, sample.size) for name in data}
    # What is missing in a column is named by what reads it.
    whole = [name for name in given if not any(value != value for value in given[name].tolist())]
    columns, own = (
        {f"column {name!r}": values[name] for name in whole if name in known} for values in (known, given)
    )
    try:
        refuse_other_units(id_texts(sample.ids), own, columns)
    except InputError as error:
        what = f"data= is not of the drawn units:{error.what.rpartition(':')[2]}"
        raise InputError(what, action="Give columns in the order of sample.ids.") from None
    known |= given
    return known


def _column(columns: Mapping[str, Any], name: str, size: int | None = None) -> AnyArray:
    """Return a column of the drawn units (n,)."""
    if name not in columns:
        raise InputError(
            f"the drawn units have no column {name!r}",
            allowed=near_names(name, columns) if columns else "none is known",
            action="Give the population (population=, --population FILE), or the column in data=, in the "
            "order of sample.ids, or draw with show=.",
        )
    column = np.asarray(columns[name])
    if size is not None:
        require_one_per("drawn unit", f"column {name!r}", column, size)
    return column


def _numbers(name: str, column: AnyArray) -> FloatArray:
    try:
        numbers = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"feature {name!r} is not numeric",
            given=repr(column.tolist()[0]),
            action="Give it in formula=, which takes categories.",
        ) from None
    refuse_nonfinite(f"feature {name!r}", numbers)
    return numbers


def _check_family(family: str | Loss, features: tuple[str, ...], formula: str | None) -> None:
    """Refuse an unknown family, features where it takes none, and none where it needs some."""
    if not isinstance(family, str | Loss):
        raise InputError(
            "family must be a name or a loss", given=repr(family), action="Give an instance, as in MyLoss()."
        )
    known = (*FAMILIES, *_WITHOUT_FEATURES)
    if isinstance(family, str) and family not in known:
        raise InputError(f"no such family: {family!r}", allowed=", ".join(map(repr, known)))
    if features and formula is not None:
        raise InputError(
            "give features= or formula=, not both",
            action="Give features= for plain columns, formula= for what is made of them.",
        )
    given = bool(features) or formula is not None
    if family in _WITHOUT_FEATURES and given:
        raise InputError(f"a {family} has no features", action="Leave them out, or choose another family.")
    if family in FAMILIES and not given:
        raise InputError(
            f"{family} regression needs features", action="Give features= or formula= (or family='mean')."
        )
