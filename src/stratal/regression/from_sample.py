"""From a sample and its labels to coefficients, the population read in batches where it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, refuse_nonfinite
from stratal.errors import InputError, LabelError, names_mistyped, near_names
from stratal.estimation.learned import features_of
from stratal.estimation.respondents import Respondents
from stratal.labels.labels import join
from stratal.labels.numbers import numeric_values
from stratal.population.population import Population
from stratal.population.rules.rule import Rule
from stratal.randomness import id_texts
from stratal.regression import sample_mean
from stratal.regression.coefficients import MEstimate
from stratal.regression.formula import Formula
from stratal.regression.losses import Linear, Logistic, Loss, Mean, Poisson
from stratal.regression.m_estimation import m_estimate
from stratal.regression.models import with_intercept
from stratal.regression.options import require_one_per
from stratal.regression.quantiles import QuantileEstimate, quantile
from stratal.regression.unlabelled import BatchedUnlabelled, Block
from stratal.sampling.asked import require_sample
from stratal.sampling.same_population import refuse_other_units, require_same_population
from stratal.sampling.sample import Sample

FAMILIES: dict[str, type[Loss]] = {loss.name: loss for loss in (Linear, Logistic, Poisson, Mean)}
_FOUND_HERE = ("outcome", "weighting", "unlabelled", "names")


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
) -> MEstimate | QuantileEstimate:
    """Estimate how the outcome depends on features, over the population that a sample was drawn from.

    Parameters
    ----------
    sample : Sample
    labels : mapping of id to outcome, Series, array in the order of `sample.ids`, or Labels
        Units without a label are left out, as nonresponse within their stratum; a stratum without any label
        is merged with its neighbour.
    family : str or Loss
        "linear", "logistic", "poisson", "mean" (the estimate and the intervals of `stratal.estimate`),
        "quantile", or a loss of your own.
    features : str or tuple of str
        Numeric columns.
    formula : str, optional
        Instead of `features`, as in "log(length) * language" (extra "formula").
    data : mapping of name to array (n,), optional
        Feature columns of the drawn units in the order of `sample.ids`; columns that ride along in the sample
        (groups and shown ones) need not be given.
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
    MEstimate, or QuantileEstimate

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
    >>> result = regress(sample, outcome, features=("length",), data={"length": length[sample.ids]})
    >>> result.names
    ('intercept', 'length')
    """
    joined = join(require_sample(sample, "regress"), labels)
    if not np.any(joined.labelled):
        raise LabelError("no unit is labelled yet", allowed="at least one label")
    y = numeric_values(joined.values[joined.labelled])
    if population is not None:
        require_same_population(sample, population)
    population = population if population is not None else sample.population
    taken = [name for name in _FOUND_HERE if name in options]
    if taken:
        raise InputError(f"regress finds {taken[0]}= itself", action="Leave it out, or use m_estimate.")
    chosen = (features,) if isinstance(features, str) else tuple(features)
    _check_family(family, chosen, formula)
    if family == "mean" and set(options) <= set(sample_mean.OPTIONS):
        return sample_mean.sample_mean(sample, labels, proxy=proxy, **options)
    drawn = _Drawn(sample=sample, labelled=joined.labelled, data=dict(data or {}))
    drawn.refuse_other_data(population)
    columns = _Columns(read=chosen, intercept=intercept)
    if formula is not None:
        columns = drawn.formula_columns(formula, population)
    matrix = drawn.features(columns)
    labelled = _respondents(sample, joined.labelled)
    known: dict[str, Any] = {"weighting": labelled.weighting, **options}
    if options.get("estimator") != "classical" and sample.proxy_names:
        source, name = _require_proxy(sample, population, proxy)
        strata = getattr(sample.design, "strata", None)
        known["proxy"] = sample.proxies[joined.labelled, sample.proxy_names.index(name)]
        rule = None if strata is None else strata.rule
        known["unlabelled"] = _units(source, (name,), columns, rule, labelled.codes)
    if family == "quantile":
        return quantile(y, probability, **known)
    loss = FAMILIES[family]() if isinstance(family, str) else family
    result = m_estimate(loss, y, features=matrix, names=columns.coefficient_names, **known)
    return dataclasses.replace(result, notes=(*labelled.notes, *result.notes))


def from_population(
    population: Population,
    *,
    proxy: str | tuple[str, ...] | None = None,
    features: tuple[str, ...] = (),
    formula: Formula | None = None,
    columns: tuple[str, ...] = (),
    intercept: bool = True,
    rule: Rule | None = None,
    merged: IntArray | None = None,
    batch_size: int = 262_144,
) -> BatchedUnlabelled:
    """Return the units of a population as an estimator reads them: a few passes, in batches.

    Parameters
    ----------
    population : Population
    proxy : str or tuple of str, optional
        The first proxy if left out; several for a mean vector.
    features : tuple of str
        Numeric columns.
    formula : Formula, optional
        Instead of `features`; `columns` are those that it reads.
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
    if formula is not None and features:
        raise InputError(
            "give features= or formula=, not both",
            action="Give features= for plain columns, formula= for what is made of them.",
        )
    proxies = proxy if isinstance(proxy, tuple) else (population.proxy_info(proxy).name,)
    wanted = _Columns(read=features if formula is None else columns, formula=formula, intercept=intercept)
    return _units(population, proxies, wanted, rule, merged, batch_size)


def _units(
    population: Population,
    proxies: tuple[str, ...],
    columns: _Columns,
    rule: Rule | None,
    merged: IntArray | None,
    batch_size: int = 262_144,
) -> BatchedUnlabelled:
    read = tuple(dict.fromkeys((*proxies, *columns.read, *(rule.columns if rule is not None else ()))))

    def blocks() -> Iterator[Block]:
        for batch in population.batches(read, batch_size):
            values = np.stack([np.asarray(batch[name], dtype=np.float64) for name in proxies], axis=1)
            stratum = np.zeros(len(values), dtype=np.int64) if rule is None else rule.assign(batch)
            yield Block(
                features=columns.matrix(batch, len(values)),
                proxy=values[:, 0] if len(proxies) == 1 else values,
                stratum=(stratum if merged is None else merged[stratum]).astype(np.int64, copy=False),
            )

    n_strata = 1 if rule is None else rule.n_strata
    return BatchedUnlabelled(blocks, n_strata=n_strata if merged is None else int(merged.max()) + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """The columns that make the features of any units: numbers as they are, or through a formula."""

    read: tuple[str, ...]
    formula: Formula | None = None
    intercept: bool = True

    @property
    def coefficient_names(self) -> tuple[str, ...] | None:
        """Names of the coefficients; `None` where there are no features."""
        if self.formula is not None:
            return self.formula.names
        if not self.read:
            return None
        return ("intercept", *self.read) if self.intercept else self.read

    def matrix(self, batch: Mapping[str, Any], m: int) -> FloatArray:
        """Return the feature matrix (m, d) of m units."""
        if self.formula is not None:
            return self.formula.features({name: batch[name] for name in self.read})
        if not self.read:
            return np.empty((m, 0))
        matrix = np.stack([np.asarray(batch[name], dtype=np.float64) for name in self.read], axis=1)
        return with_intercept(matrix) if self.intercept else matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """The drawn units and what is known of them besides their proxies."""

    sample: Sample
    labelled: BoolArray
    data: dict[str, Any]

    @property
    def known(self) -> dict[str, Any]:
        """The columns of the drawn units: those given, and those that ride along in the sample."""
        return {**self.sample.shown, **self.sample.groups, **self.data}

    def refuse_other_data(self, population: Population | None) -> None:
        """Refuse columns of data= that are not those of the sample, or of the population."""
        sample = self.sample
        columns = {**sample.shown, **sample.groups}
        columns |= {name: sample.proxies[:, k] for k, name in enumerate(sample.proxy_names)}
        if population is not None:
            read = [name for name in self.data if name in population.feature_names and name not in columns]
            matrix = features_of(sample, population, tuple(read)) if read else None
            columns |= {} if matrix is None else {name: matrix[:, j] for j, name in enumerate(read)}
        given = {}
        for name in self.data:
            values = self.column(name)
            if name in columns and not any(value != value for value in values.tolist()):
                given[name] = values  # what is missing is named by what reads it
        given = {f"column {name!r}": values for name, values in given.items()}
        columns = {f"column {name!r}": values for name, values in columns.items()}
        try:
            refuse_other_units(id_texts(sample.ids), given, columns)
        except InputError as error:
            what = f"data= is not of the drawn units:{error.what.rpartition(':')[2]}"
            raise InputError(what, action="Give columns in the order of sample.ids.") from None

    def column(self, name: str) -> AnyArray:
        """Return a column of the drawn units (n,)."""
        known = self.known
        if name not in known:
            raise InputError(
                f"the drawn units have no column {name!r}",
                allowed=near_names(name, known) if known else "none is known",
                action="Give it in data=, in the order of sample.ids, or draw with show=.",
            )
        column = np.asarray(known[name])
        require_one_per("drawn unit", f"column {name!r}", column, self.sample.size)
        return column

    def features(self, columns: _Columns) -> FloatArray:
        """Return the features of the labelled units; without a formula they must be numbers."""
        batch = {name: self.column(name) for name in columns.read}
        if columns.formula is None:
            batch = {name: _numbers(name, column) for name, column in batch.items()}
        batch = {name: column[self.labelled] for name, column in batch.items()}
        return columns.matrix(batch, int(self.labelled.sum()))

    def formula_columns(self, formula: str, population: Population | None) -> _Columns:
        """Return the columns of a formula, its categories fixed.

        They are fixed on the population's first batch where there is one (a category that comes later is an
        error that says so), else on the drawn units.
        """
        if population is None:
            fixed = Formula(formula, self.known)
            return _Columns(read=fixed.columns, formula=fixed)
        names = (*population.group_names, *population.feature_names)
        read = tuple(name for name in names if name in Formula.words(formula))
        if not read:
            raise InputError(
                f"the formula {formula!r} names no column of the population",
                allowed=", ".join(map(repr, names)),
            )
        return _Columns(read=read, formula=Formula(formula, next(population.batches(read))))


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
    known = (*FAMILIES, "quantile")
    if isinstance(family, str) and family not in known:
        raise InputError(f"no such family: {family!r}", allowed=", ".join(map(repr, known)))
    if features and formula is not None:
        raise InputError(
            "give features= or formula=, not both",
            action="Give features= for plain columns, formula= for what is made of them.",
        )
    given = bool(features) or formula is not None
    if family in ("mean", "quantile") and given:
        raise InputError(f"a {family} has no features", action="Leave them out, or choose another family.")
    if family in ("linear", "logistic", "poisson") and not given:
        raise InputError(
            f"{family} regression needs features", action="Give features= or formula= (or family='mean')."
        )


def _respondents(sample: Sample, labelled: BoolArray) -> Respondents:
    """Return the labelled units, strata without labels merged; a warning then points at the caller's line."""
    return Respondents.of(sample, labelled)


def _require_proxy(
    sample: Sample, population: Population | None, proxy: str | None
) -> tuple[Population, str]:
    """Return the population and the name of its proxy."""
    if population is None:
        raise InputError(
            "the population is not at hand, so its proxies and features cannot be read",
            action="Give population=, or estimator='classical'.",
        )
    name = proxy if proxy is not None else sample.proxy_names[0]
    if name not in sample.proxy_names:
        raise InputError(f"no such proxy: {name!r}", allowed=near_names(name, sample.proxy_names))
    return population, name
