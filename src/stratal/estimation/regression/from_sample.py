"""From a sample and its labels to coefficients and quantiles, the population read in batches where it is.

A quantile with a proxy is the least rectified pinball loss, its interval the values that a score test keeps.

F(t) = Σ_h W_h [ λ_h F^f_{U_h}(t) + F^y_{S_h}(t) − λ_h F^f_{S_h}(t) ]

Between two labelled values (of y or f), a gap, only the population's part of F moves, and for λ ≥ 0 it rises.
F is therefore known from one pass that counts the population's values by gap; the values themselves are
fetched, by a second pass, for the few gaps that matter. The population may be larger than memory.

At a candidate t the score is F(t) − q and its variance that of the mean of 1(y ≤ t) − λ 1(f ≤ t) under the
design: no density is estimated (Woodruff 1952; Angelopoulos, Duchi & Zrnic 2023, section 3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, finite_vector
from stratal.designs import Weighting
from stratal.designs.extending import require_same_population
from stratal.designs.sample import Sample, require_sample
from stratal.errors import (
    InputError,
    LabelError,
    MissingExtraError,
    names_mistyped,
    near_names,
    refuse_unknown,
)
from stratal.estimation.calibrated import features_of
from stratal.estimation.columns import named_groups, number_columns, with_label_values
from stratal.estimation.estimand import PLAIN, Estimand, LabelledInfluence, Request
from stratal.estimation.estimands.means import AnticipatedMoments
from stratal.estimation.estimate import Estimate, Estimates, linearised_estimate, undefined_estimate
from stratal.estimation.lam import ChosenLam
from stratal.estimation.linearised import Linearised, ratio_of_means
from stratal.estimation.regression.losses import (
    Block,
    LinearLoss,
    LogisticLoss,
    Loss,
    MeanLoss,
    PoissonLoss,
    Unlabelled,
    feature_matrix,
    with_intercept,
)
from stratal.estimation.regression.m_estimation import (
    Coefficients,
    RectifiedLoss,
    Solution,
    choose_lam,
    common_lam,
    degrees_factor,
    fit_to_proxies,
    m_estimate,
    require_inverse,
)
from stratal.estimation.respondents import Respondents
from stratal.estimation.shares import domain_trials
from stratal.intervals.interval import tail_shares
from stratal.intervals.limits import BinomialLimits, Limits, upper_tail
from stratal.intervals.proportion import student_quantile
from stratal.labels.labels import Joined, join
from stratal.population.expressions import Cells, Constant, Exponential, Expression, Number, logistic, total
from stratal.population.influence import Influence, averages
from stratal.population.population import Population
from stratal.population.rules import Rule


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
            raise InputError("give the right-hand side alone", action="Leave '~' and the outcome out.")
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
        frame = _frame({name: data[name] for name in self.columns})
        for factor, (_, state) in self._spec.encoder_state.items():
            known = {str(value) for value in state.get("categories", ())}
            unknown = sorted({str(value) for value in frame.get(str(factor), ())} - known) if known else []
            if unknown:
                raise InputError(
                    f"{str(factor)!r} holds a category that the formula was not fixed on",
                    given=repr(unknown[0]),
                    action="Fix the formula on the whole population.",
                )
        return feature_matrix("features", np.asarray(self._matrix(self._spec.get_model_matrix, None, frame)))

    def _matrix(self, make: Any, formula: str | None, data: Any) -> Any:
        errors, frame = _formulaic().errors, _frame(data)
        try:
            return make(frame) if formula is None else make(formula, frame, na_action="raise")
        except (errors.FactorEvaluationError, errors.FormulaSyntaxError, ValueError) as error:
            raise InputError(
                f"the formula {self.formula!r} cannot be read: {str(error).splitlines()[0]}",
                allowed=", ".join(map(repr, list(frame.columns)[:20])),
                action="Name columns that there are; drop or fill missing values first.",
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


@dataclass(frozen=True, slots=True)
class Numbers:
    """Columns of numbers, with a column of ones before them or without, as `Formula` has others."""

    columns: tuple[str, ...] = ()
    intercept: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients."""
        return (INTERCEPT, *self.columns) if self.intercept and self.columns else self.columns

    def features(self, data: Mapping[str, Any]) -> FloatArray:
        """Return the feature matrix (n, d) of units."""
        matrix = np.stack([np.asarray(data[name], dtype=np.float64) for name in self.columns], axis=1)
        return with_intercept(matrix) if self.intercept else matrix


Columns = Numbers | Formula

INTERCEPT = "intercept"

FAMILIES: dict[str, type[Loss]] = {loss.name: loss for loss in (LinearLoss, LogisticLoss, PoissonLoss)}
_BATCH = 262_144


@names_mistyped
def regress(
    sample: Sample,
    labels: Any,
    *,
    family: str | Loss = "linear",
    features: str | tuple[str, ...] = (),
    formula: str | None = None,
    population: Population | None = None,
    proxy: str | None = None,
    intercept: bool = True,
    **options: Any,
) -> Coefficients:
    """Estimate how the outcome depends on features, over the population that a sample was drawn from.

    Parameters
    ----------
    sample : Sample
    labels : mapping of id to outcome, Series, array in the order of `sample.ids`, or Labels
        Units without a label are left out, as nonresponse within their stratum; a stratum without any label
        is merged with its neighbour.
    family : str or Loss
        "linear", "logistic", "poisson", or a loss of your own. A mean and a quantile are estimands of
        `stratal.estimate`.
    features : str or tuple of str
        Columns of numbers. Those of the population are found by the sample's ids; proxies, groups and shown
        columns are in the sample.
    formula : str, optional
        Instead of `features`, as in "log(length) * language" (extra "formula").
    population : Population, optional
        Where proxy and features of all units are read; the one that the sample was drawn from, if in memory.
    proxy : str, optional
        Prediction of the outcome; the first proxy if left out.
    intercept : bool
        Whether `features` get a column of ones; a formula says so itself.
    **options
        See `stratal.regression.m_estimate`: `estimator`, `lam`, `target`, `minimise`, ….

    Returns
    -------
    Coefficients
        `Estimates` of the coefficients.

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
    >>> sample = stratal.designs.SimpleRandom(budget=12).draw(population, seed=7)
    >>> outcome = 1 + length[sample.ids] / 20 + 0.1 * (-1.0) ** sample.ids
    >>> regress(sample, outcome, features="length").names
    ('intercept', 'length')
    """
    require_sample(sample, "regress")
    if population is not None:
        require_same_population(sample, population)
    population = population if population is not None else sample.population
    chosen = (features,) if isinstance(features, str) else tuple(features)
    for name in ("outcome", "weighting", "unlabelled", "names"):
        if name in options:
            raise InputError(f"regress finds {name}= itself", action="Leave it out.")
    loss = _checked_loss(family, chosen, formula)
    drawn = _drawn_columns(sample, population, chosen if formula is None else Formula.words(formula))
    columns: Columns = Numbers(chosen, intercept)
    if formula is not None:
        columns = Formula(formula, drawn if population is None else _first_batch(formula, population))
    batch = {name: _column(drawn, name, numbers=name in chosen) for name in columns.columns}
    estimator = str(options.get("estimator"))
    joined, units, known = labelled_units(
        sample, labels, population, proxy, estimator=estimator, columns=columns
    )
    outcome = joined.by_unit(joined.numbers())
    batch = {name: column[joined.labelled] for name, column in batch.items()}
    matrix, names = columns.features(batch) if columns.names else None, columns.names or None
    result = m_estimate(loss, outcome, features=matrix, names=names, **known, **options)
    rows = tuple(_in_strata(units.complete(row, sample), result.lam) for row in result)
    result = replace(result, estimates=rows, remarks=(*units.notes, *result.remarks))
    return with_label_values(result, {"": joined})


def labelled_units(
    sample: Sample,
    labels: Any,
    population: Population | None,
    proxy: str | None,
    *,
    estimator: str,
    columns: Columns | None = None,
) -> tuple[Joined, Respondents, dict[str, Any]]:
    """Return the labels, who answered, and the arguments `weighting`, `proxy` and `unlabelled` of a fit.

    The last two are left out of a classical one, and where the sample has no proxy.
    """
    joined = join(sample, labels)
    if not np.any(joined.labelled):
        raise LabelError("no unit is labelled yet", allowed="at least one label")
    units = Respondents.of(sample, joined.labelled)
    known: dict[str, Any] = {"weighting": units.weighting}
    if estimator == "classical" or not sample.proxy_names:
        return joined, units, known
    if population is None:
        raise InputError(
            "the population is not at hand, so its proxies and features cannot be read",
            action="Give population=, or estimator='classical'.",
        )
    name = proxy if proxy is not None else sample.proxy_names[0]
    refuse_unknown("proxy", name, sample.proxy_names)
    known["proxy"] = sample.proxies[joined.labelled, sample.proxy_names.index(name)]
    rule = sample.design.rule
    known["unlabelled"] = from_population(population, name, columns or Numbers(), rule, units.codes)
    return joined, units, known


def _in_strata(row: Estimate, lam: FloatArray) -> Estimate:
    """Return the estimate with λ in its strata, and without the remarks that concern all coefficients."""
    powers = lam.tolist() if len(row.strata) == len(lam) else []
    strata = tuple(replace(entry, lam=(own,)) for entry, own in zip(row.strata, powers, strict=False))
    return replace(row, strata=strata or row.strata, remarks=())


def from_population(
    population: Population,
    proxy: str,
    columns: Columns,
    rule: Rule | None = None,
    merged: IntArray | None = None,
) -> Unlabelled:
    """Return the units of a population as an estimator reads them: a few passes, in batches.

    Parameters
    ----------
    population : Population
    proxy : str
    columns : Columns
        Of the features.
    rule : Rule, optional
        The stratification rule of the design.
    merged : int (H,), optional
        Where strata were merged, the new code of each of the rule's.

    Examples
    --------
    >>> from stratal.population.population import Population
    >>> population = Population.from_arrays(proxy=[0.1, 0.9, 0.4], features={"length": [1.0, 2.0, 3.0]})
    >>> next(from_population(population, "proxy", Numbers(("length",))).blocks()).features
    array([[1., 1.],
           [1., 2.],
           [1., 3.]])
    """
    codes = np.arange(1 if rule is None else rule.n_strata) if merged is None else merged
    batches = partial(_blocks, population, proxy, columns, rule, codes)
    return Unlabelled(batches, n_strata=int(codes.max()) + 1)


def _blocks(
    population: Population, proxy: str, columns: Columns, rule: Rule | None, codes: IntArray
) -> Iterator[Block]:
    read = tuple(dict.fromkeys((proxy, *columns.columns, *(rule.columns if rule is not None else ()))))
    for batch in population.batches(read, _BATCH):
        values = np.asarray(batch[proxy], dtype=np.float64)
        stratum = np.zeros(len(values), dtype=np.int64) if rule is None else rule.assign(batch)
        features = columns.features(batch) if columns.names else np.empty((len(values), 0))
        yield Block(features=features, proxy=values, stratum=codes[stratum].astype(np.int64, copy=False))


def _first_batch(formula: str, population: Population) -> Any:
    """Return the population's first units, which fix a formula's categories; later ones are errors."""
    names = (*population.group_names, *population.feature_names)
    read = tuple(name for name in names if name in Formula.words(formula))
    if not read:
        raise InputError(
            f"the formula {formula!r} names no column of the population", allowed=", ".join(map(repr, names))
        )
    return next(population.batches(read))


def _drawn_columns(
    sample: Sample, population: Population | None, names: Collection[str]
) -> dict[str, AnyArray]:
    """Return the columns of the drawn units: in the sample, and the population's features by its ids."""
    proxies = {name: sample.proxies[:, k] for k, name in enumerate(sample.proxy_names)}
    known: dict[str, AnyArray] = {**sample.shown, **sample.groups, **proxies}
    read = () if population is None else tuple(n for n in population.feature_names if n in names)
    if population is not None and read:
        known |= dict(zip(read, features_of(sample, population, read).T, strict=True))
    return known


def _column(columns: Mapping[str, Any], name: str, *, numbers: bool) -> AnyArray:
    """Return a column of the drawn units (n,), as `numbers` if it is a feature."""
    if name not in columns:
        raise InputError(
            f"the drawn units have no column {name!r}",
            allowed=near_names(name, columns) if columns else "none is known",
            action="Give the population (population=, --population FILE), or draw with show=.",
        )
    return finite_vector(f"feature {name!r}", columns[name]) if numbers else np.asarray(columns[name])


def _checked_loss(family: str | Loss, features: tuple[str, ...], formula: str | None) -> Loss:
    """Return the loss; refuse an unknown family, and features where it takes none, or needs some."""
    if features and formula is not None:
        raise InputError("give features= or formula=, not both", action="Leave one of them out.")
    if isinstance(family, Loss):
        return family
    refuse_unknown("family", family, FAMILIES)
    if not features and formula is None:
        raise InputError(
            f"{family} regression needs features", action="Give features= or formula= (or take the mean)."
        )
    return FAMILIES[family]()


_ROUNDING = 1e-12
_COARSE = 33
_MARGIN = 1.3
"""Standard errors are taken at 33 gaps, and where F is within 1.3 times the region's reach of q."""


class Pinball(MeanLoss):
    """The score of a quantile, 1(y ≤ θ) − q, in the shape of a loss, so that λ is fitted as for any other.

    Its Hessian is a density that nothing here needs: with Σ w in its place, as of a mean, influence is on the
    scale of the distribution function.

    Examples
    --------
    >>> Pinball(0.5).gradients(np.array([1.0]), np.empty((2, 0)), np.array([0.0, 3.0])).ravel()
    array([ 0.5, -0.5])
    """

    name: ClassVar[str] = "quantile"
    convex_range: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __init__(self, probability: float) -> None:
        self.probability = probability

    def gradients(self, theta: FloatArray, features: FloatArray, outcome: FloatArray) -> FloatArray:
        """Return 1(y ≤ θ) − q."""
        return np.asarray(((outcome <= theta[0]) - self.probability)[:, None])


@dataclass(kw_only=True, eq=False)
class RectifiedPinball(RectifiedLoss):
    """The rectified pinball loss, with the labelled points and the population's counts at them.

    Attributes
    ----------
    points : float (m,)
        Sorted distinct labelled values of y and f.
    below, equal, sums : float (H, m)
        Of each stratum's units the share with f ≤ point and with f = point, and the mean of f · 1(f ≤ point).

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(3, int), sizes=np.array([30]))
    >>> loss = RectifiedPinball(loss=Pinball(0.5), outcome=[1.0, 2.0, 9.0], weighting=weighting)
    >>> loss.solve(np.zeros(1), np.zeros(1)).theta
    array([2.])
    """

    loss: Pinball

    def __post_init__(self) -> None:
        self.outcome = finite_vector("outcome", self.outcome)
        RectifiedLoss.__post_init__(self)
        labels = self.outcome
        self.points = np.unique(labels if self.proxy is None else np.concatenate([labels, self.proxy]))
        self.below, self.equal, self.sums = self._counts()

    def _counts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Count the population's proxies at the points, in one pass."""
        n_strata, m = len(self.shares), len(self.points)
        found = np.zeros((3, n_strata, m + 1))
        if self.unlabelled is not None:
            for block in self.unlabelled.blocks():
                gap, on_point = self._locate(block.proxy)
                weights = np.ones(len(gap)) if block.weights is None else block.weights
                cell = gap + block.stratum * (m + 1)
                parts = weights, weights * on_point, weights * block.proxy
                for total, part in zip(found, parts, strict=True):
                    total += np.bincount(cell, part, minlength=total.size).reshape(total.shape)
            found /= self.unlabelled.totals[:, None]
        counts, equal, sums = found[:, :, :m]
        return np.cumsum(counts, axis=1), equal, np.cumsum(sums, axis=1)

    def _locate(self, values: FloatArray) -> tuple[IntArray, BoolArray]:
        """Return the index of the first point at or above each value, and whether the value is that point."""
        gap = np.searchsorted(self.points, values, side="left")
        return gap, self.points[np.minimum(gap, len(self.points) - 1)] == values

    def ends(self, lam: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return F where each gap starts and where it ends (m + 1,), and ∫ v dF up to its start.

        The last end is F at infinity: 1, but for designs whose weights do not add up to one.
        """
        values, weights = self.outcome, self.weights
        if self.proxy is not None:
            values = np.concatenate([values, self.proxy])
            weights = np.concatenate([weights, -weights * lam[self.stratum]])
        position, m, factors = np.searchsorted(self.points, values), len(self.points), self.shares * lam
        steps = np.bincount(position, weights, minlength=m)
        at = np.cumsum(steps) + factors @ self.below
        before = at - steps - factors @ self.equal
        partial = np.cumsum(np.bincount(position, weights * values, minlength=m)) + factors @ self.sums
        total = float(weights.sum() + (0.0 if self.unlabelled is None else factors.sum()))
        return np.r_[0.0, at], np.r_[before, total], np.r_[0.0, partial]

    def distribution(
        self, lam: FloatArray, gaps: BoolArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
        """Return the rectified F at sorted values in one pass: those labelled, and in some gaps (m + 1,).

        The values (v,) are −∞, the labelled ones, and the population's in the gaps; then F at each, ∫ v dF up
        to and including each, and the gap that each begins or lies in: gap k lies before the labelled value
        k, the last one after all.
        """
        starts, _, partial = self.ends(lam)
        values, gap = np.r_[-np.inf, self.points], np.arange(len(starts))
        if self.unlabelled is None or not np.any(lam):
            return values, starts, partial, gap
        per_unit = self.shares * lam / self.unlabelled.totals
        found: list[FloatArray] = []
        for block in self.unlabelled.blocks():
            where, on_point = self._locate(block.proxy)
            rows = np.flatnonzero(gaps[where] & ~on_point)
            mass = per_unit[block.stratum[rows]]
            mass = mass if block.weights is None else mass * block.weights[rows]
            found.append(np.stack([where[rows], block.proxy[rows], mass]))
        inner = np.concatenate(found, axis=1)
        within, inside, masses = inner[:, np.argsort(inner[1], kind="stable")]
        of = within.astype(np.int64)
        # Masses add up from the start of their own gap.
        first = np.searchsorted(of, of)
        level, product = (
            np.cumsum(part) - np.r_[0.0, np.cumsum(part)][first] for part in (masses, masses * inside)
        )
        order = np.argsort(np.r_[values, inside], kind="stable")
        joined = (values, inside), (starts, starts[of] + level), (partial, partial[of] + product)
        return *(np.r_[one, two][order] for one, two in joined), np.r_[gap, of][order]

    def solve(self, lam: FloatArray, start: FloatArray, tolerance: float = 0.0) -> Solution:
        """Return the smallest minimiser: of the values at which F rises through q the one of least loss."""
        starts, ends, _ = self.ends(lam)
        goal = self.loss.probability * ends[-1] - _ROUNDING
        values, at, partial, gap = self.distribution(lam, (starts < goal) & (ends >= goal))
        left = np.r_[0.0, at[:-1]]
        begins = np.r_[False, np.diff(gap) > 0]
        left[begins] = ends[gap[begins] - 1]
        rises = (left < goal) & (at >= goal) & np.isfinite(values)
        values = values[rises]
        losses = (at[rises] - goal) * values - partial[rises]  # ∫ (F − q) up to each
        best = values[np.lexsort((values, losses))[:1]]
        return Solution(theta=best, hessian=np.eye(1))

    def proxy_covariances(self, theta: FloatArray) -> FloatArray:
        """Return the variances (H, 1, 1) of 1(f ≤ θ) over the unlabelled units, of θ in a gap, by counts."""
        assert self.unlabelled is not None
        gap, counts = int(np.searchsorted(self.points, theta[0], side="right")), self.unlabelled.counts
        below = self.below[:, max(gap - 1, 0)] * (gap > 0)
        spread = below * (1.0 - below) * counts / np.maximum(counts - 1.0, 1.0)
        return np.asarray(spread[:, None, None])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreLimits(Limits):
    """The values that the score test keeps; infinite on a side that the labels cannot bound.

    Parameters
    ----------
    rectified : RectifiedPinball
        It keeps the population side to look values up.
    fit : ChosenLam
    degrees_of_freedom : float
    """

    rectified: RectifiedPinball = field(repr=False)
    fit: ChosenLam = field(repr=False)
    degrees_of_freedom: float

    @property
    def method(self) -> str:
        """The name of the method."""
        return f"score, {'normal' if np.isinf(self.degrees_of_freedom) else 't'}"

    @property
    def lam(self) -> FloatArray:
        """λ per stratum (H,)."""
        return self.fit.lam[:, 0]

    def by(self, method: str) -> Limits | None:
        """Return the limits by Student's t or the normal distribution."""
        known = {"auto": self, "t": self, "normal": replace(self, degrees_of_freedom=np.inf)}
        return known.get(method)

    def with_freedom(self, degrees_of_freedom: float) -> Limits:
        """Return the limits with these degrees of freedom."""
        return replace(self, degrees_of_freedom=degrees_of_freedom)

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        miss = max(tail_shares(confidence_level, alternative))
        critical = float(student_quantile(1.0 - miss, self.degrees_of_freedom))
        starts, ends, _ = self.rectified.ends(self.lam)
        goal = self.rectified.loss.probability * ends[-1]
        reach = critical * self._errors(critical, starts - goal, ends - goal)
        limits = goal - reach, goal + reach
        crossed = [(starts <= limit) & (limit <= ends) for limit in limits]
        values, at, _, gap = self.rectified.distribution(self.lam, crossed[0] | crossed[1])
        values, (lowest, highest) = np.r_[values, np.inf], (limit[gap] for limit in limits)
        low = values[:-1][np.argmax(at >= lowest)] if np.any(at >= lowest) else values[-2]
        high = values[np.flatnonzero(at <= highest)[-1] + 1]
        return (-np.inf if alternative == "less" else low), (np.inf if alternative == "greater" else high)

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return the p-value of the quantile being `null`."""
        loss = self.rectified
        starts, ends, _ = loss.ends(self.lam)
        gap = int(np.searchsorted(loss.points, null, side="right"))
        values, at, _, _ = loss.distribution(self.lam, np.arange(len(starts)) == gap)
        level = at[np.searchsorted(values, null, side="right") - 1]
        statistic = (self.rectified.loss.probability * ends[-1] - level) / self._error(gap)
        sign = {"greater": 1.0, "less": -1.0}.get(alternative, np.sign(statistic) or 1.0)
        tail = float(upper_tail(np.array(sign * statistic), np.array(self.degrees_of_freedom)))
        return min(1.0, 2 * tail) if alternative == "two-sided" else tail

    @property
    def standard_error(self) -> float:
        """Half the 95 % interval over 1.96 (Woodruff 1952); infinite where the interval is."""
        low, high = replace(self, degrees_of_freedom=np.inf).ends(0.95, "two-sided")
        return float((high - low) / (2 * ndtri(0.975)))

    def _error(self, gap: int) -> float:
        """Return the standard error of F in a gap: it changes at labelled values alone."""
        loss, start = self.rectified, max(gap - 1, 0)
        value = np.array([loss.points[start] - (gap == 0)])
        residual = loss.residual_gradients(value, self.lam)
        if loss.correction != "none":
            free = len(residual) - len(loss.shares) + 1
            residual = residual * degrees_factor(free, float(self.fit.spent.sum()) + 1.0)
        total, q = float(loss.meat(value, self.lam, residual)[0, 0]), loss.loss.probability
        if total <= _ROUNDING**2:
            total = q * (1.0 - q) * float(np.sum(loss.weights**2))
        return float(np.sqrt(total))

    def _errors(self, critical: float, starts: FloatArray, ends: FloatArray) -> FloatArray:
        """Return the standard error in each gap: exact near the region's ends, interpolated elsewhere."""
        gaps = np.arange(len(starts))
        coarse = np.unique(np.linspace(0, gaps[-1], min(len(gaps), _COARSE)).round().astype(np.int64))
        errors = np.interp(gaps, coarse, [self._error(int(gap)) for gap in coarse])
        if len(coarse) == len(gaps):
            return errors
        reach, starts, ends = critical * errors, np.abs(starts), np.abs(ends)
        near = (np.maximum(starts, ends) > reach / _MARGIN) & (np.minimum(starts, ends) < reach * _MARGIN)
        errors[near] = [self._error(int(gap)) for gap in np.flatnonzero(near)]
        return errors


def quantile(outcome: Any, probability: float, *, weighting: Weighting, **options: Any) -> Estimate:
    """Estimate a quantile of the outcome over the population.

    The smallest minimiser of the rectified pinball loss, exactly: no grid. With λ = 0 it is the weighted
    sample quantile inf {t : F(t) ≥ q}.

    Parameters
    ----------
    outcome : array-like (n,)
    probability : float
        q, between 0 and 1.
    weighting : Weighting
    **options
        `proxy`, `unlabelled`, `estimator`, `lam` (in [0, 1]), `target`, `stratum_weights_known`, `shrinkage`,
        `correction` of `stratal.regression.m_estimation.m_estimate`.

    Returns
    -------
    Estimate
        Its interval inverts the score test, so that no density is estimated.

    Raises
    ------
    InputError
        For a probability outside (0, 1), λ outside [0, 1], unusable numbers.

    Notes
    -----
    Angelopoulos, Duchi & Zrnic (2023), "PPI++", example 3, with Fisch et al. (2024), eq. 16, for λ.

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> from stratal.estimation.regression.losses import ArrayUnlabelled
    >>> f = np.arange(100.0)
    >>> weighting = StratifiedWeighting(stratum=np.zeros(10, int), sizes=np.array([100]))
    >>> quantile(f[::10] + 1, 0.5, weighting=weighting, proxy=f[::10], lam=1.0,
    ...          unlabelled=ArrayUnlabelled(proxy=f)).value
    51.0
    """
    require_probability(probability)
    for name in ("features", "names", "minimise", "hessian", "form"):
        if name in options:
            raise InputError(f"a quantile has no {name}=", action="Leave it out.")
    loss = Pinball(float(probability))
    rectified = RectifiedPinball.of(loss=loss, outcome=outcome, weighting=weighting, **options)
    fit, solution = choose_lam(rectified)
    if np.any(np.abs(fit.lam - 0.5) > 0.5):
        raise InputError("λ of a quantile is out of range", given=fit.lam[:, 0].tolist(), allowed="0 to 1")
    residual = rectified.residual_gradients(solution.theta, fit.lam[:, 0])[:, 0]
    freedom = max(rectified.weighting.degrees_of_freedom(residual) - float(fit.spent.sum()), 1.0)
    value = float(solution.theta[0])
    limits = ScoreLimits(value=value, rectified=rectified, fit=fit, degrees_of_freedom=freedom)
    error = limits.standard_error
    of_score = float(np.sqrt(rectified.weighting.covariance(residual[:, None])[0, 0]))
    scale = error / of_score if np.isfinite(error) and of_score > 0 else 0.0
    result = Linearised(
        value=value,
        variable=-scale * residual,
        design_variance=error**2,
        degrees_of_freedom=freedom,
    )
    return linearised_estimate(
        result,
        weighting,
        limits=limits,
        target=rectified.target,
        label={"estimand": f"quantile:{probability:g}"},
        estimator=rectified.estimator_name,
        lam=common_lam(limits.lam),
        remarks=fit.notes,
        population_size=round(rectified.population_size),
    )


def require_probability(probability: float) -> None:
    """Raise an `InputError` unless 0 < probability < 1.

    Examples
    --------
    >>> require_probability(0.5)
    """
    if not 0 < probability < 1:
        raise InputError("probability is out of range", given=probability, allowed="between 0 and 1")


def weighted_quantile(values: FloatArray, weights: FloatArray, probability: float) -> float:
    """Return the smallest value with a share of at least `probability` at or below it.

    Examples
    --------
    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 1.0]), 0.5)
    2.0
    """
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order]) / np.sum(weights)
    # Shares that sum to the probability itself may fall short of it by rounding.
    position = int(np.searchsorted(share, probability - 1e-12))
    return float(values[order][min(position, len(values) - 1)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Woodruff(Limits):
    """The quantiles at the limits of the share of units up to the value (Woodruff 1952).

    Parameters
    ----------
    z, weights : float (n,)
    share : Limits
        Of a share of the quantile's probability, on as many trials as the labels around it are worth.
    exact : bool
        Whether every unit is labelled.
    """

    z: FloatArray
    weights: FloatArray
    share: Limits
    exact: bool

    method = "woodruff"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit: the bounds where the labels do not reach far enough."""
        lowest, highest = self.bounds or (-np.inf, np.inf)
        below, above = self.share.ends(confidence_level, alternative)
        smallest = float(np.min(self.weights)) / float(np.sum(self.weights))
        low = weighted_quantile(self.z, self.weights, below) if below > smallest else lowest
        high = weighted_quantile(self.z, self.weights, above) if above < 1.0 - smallest else highest
        if self.exact:
            low = high = self.value
        return (
            min(low, self.value) if alternative != "less" else lowest,
            max(high, self.value) if alternative != "greater" else highest,
        )


def quantile_estimate(
    z: FloatArray,
    probability: float,
    weighting: Weighting,
    *,
    bounds: tuple[float, float] | None = None,
    member: BoolArray | None = None,
) -> Estimate:
    """Return a quantile; ½ is the median. `bounds` are what z (n,) cannot leave, `member` (n,) a domain.

    Raises
    ------
    InputError
        For a probability outside (0, 1).

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> z, h = np.arange(1.0, 100.0), np.zeros(99, dtype=int)
    >>> found = quantile_estimate(z, 0.5, StratifiedWeighting(stratum=h, sizes=np.array([99_000])))
    >>> found.value, *found.confidence_interval()
    (50.0, 40.0, 60.0)
    """
    require_probability(probability)
    inside = np.ones(len(z), dtype=bool) if member is None else member
    if not np.any(inside):
        return undefined_estimate(weighting, 0, bounds, "no labelled unit")
    own, weights = z[inside], weighting.weights[inside]
    value = weighted_quantile(own, weights, probability)
    counted = inside.astype(np.float64)
    reached = counted * (z <= value)
    share = ratio_of_means(reached, counted, weighting)
    trials, _ = domain_trials(reached, counted, weighting, (0.0, 1.0), share.design_variance)
    error = _half_reach(own, weights, probability, share.standard_error)
    scale = error / share.standard_error if share.standard_error > 0 else 1.0
    result = Linearised(
        value=value,
        variable=scale * (probability * counted - reached) / float(weighting.weights @ counted),
        design_variance=error**2,
        degrees_of_freedom=share.degrees_of_freedom,
    )
    limits = Woodruff(
        value=value,
        bounds=bounds,
        z=own,
        weights=weights,
        share=BinomialLimits(value=probability, bounds=(0.0, 1.0), trials=trials),
        exact=bool(np.isinf(trials)),
    )
    return linearised_estimate(result, weighting, limits=limits, bounds=bounds, n=len(own))


def _half_reach(z: FloatArray, weights: FloatArray, probability: float, error: float) -> float:
    """Return half the distance of the quantiles one standard error of the share to either side.

    That is the share's standard error over the density there; 0 where the labels around agree.
    """
    if not np.isfinite(error):
        return float("nan")
    low, high = (
        weighted_quantile(z, weights, min(max(probability + side * error, 1e-9), 1.0)) for side in (-1.0, 1.0)
    )
    return (high - low) / 2.0


FITTED = ("target", "population", "estimator", "lam", "proxy", "stratum_weights_known")
"""Options of `estimate` for what is fitted with a proxy; λ stays where the loss has a minimum."""

_ESTIMATORS = {"auto": "ppi++", "horvitz-thompson": "classical", "difference": "ppi++"}


def options_of(request: Request, sample: Sample) -> dict[str, Any]:
    """Return the options of the fit; `auto` takes the proxy where the population is at hand.

    Examples
    --------
    >>> sample = Sample.from_labelled({"y": [1.0, 2.0]}, value="y", population_size=9)[0]
    >>> options_of(PLAIN, sample)["estimator"]
    'classical'
    """
    reads = sample.population is not None and bool(sample.proxy_names)
    estimator = _ESTIMATORS.get(request.estimator, request.estimator)
    if request.estimator == "auto" and request.lam is None and not reads:
        estimator = "classical"
    one = request.estimator == "difference" and request.lam is None
    return {
        "estimator": estimator,
        "lam": 1.0 if one else request.lam,
        "proxy": None if estimator == "classical" else request.proxy,
        "target": request.target,
        "stratum_weights_known": request.stratum_weights_known,
    }


def scaled_moments(population: Population, proxy: str | None, what: str) -> AnticipatedMoments:
    """Return a proxy's moments of the outcome; refuse one that only orders the units."""
    if not population.proxy_names or not population.proxy_info(proxy).scaled:
        raise InputError(
            f"{what} needs a proxy on the outcome's scale",
            given=", ".join(population.proxy_names) or "no proxy",
            action="Name a column that predicts the outcome (proxy=, --proxy); give the outcome's bounds "
            "(bounds=, --bounds LOW,HIGH), or scaled=True if it has none.",
        )
    return AnticipatedMoments.of(population, proxy)


IN_ORDER = 1e-3
"""Mean of u over its deviation, in a unit of average square: what puts units in order."""


@dataclass(frozen=True, slots=True)
class Coefficient(Estimand):
    """One coefficient of a linear, logistic or Poisson regression of the outcome on columns of numbers.

    Its influence on a unit is w(x) (y − μ(x)), with w(x) the coefficient's row of A⁻¹x: units far out in a
    feature matter most. The fit and A are those of the proxy before labels, as in Fisch et al. (2024),
    eq. 20–21.

    Parameters
    ----------
    of : str
        A feature, or `intercept`.
    features : tuple of str, optional
        All features of the regression, which has an intercept too; `of` alone unless given.
    family : {"linear", "logistic", "poisson"}
    proxy : str, optional
        The proxy to plan with, which predicts the outcome; the population's first unless named.

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
        own = () if self.of == INTERCEPT else (self.of,)
        given = (self.features,) if isinstance(self.features, str) else tuple(self.features)
        self._set(features=() if given == own else given)
        if not self.numbers or self.of not in self.names:
            raise InputError(
                "a coefficient must be one of the regression's",
                given=repr(self.of),
                allowed=near_names(self.of, self.names),
                action="Name all of its features: coefficient:length,features=length+age.",
            )
        refuse_unknown("family", self.family, LINKS)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of the features."""
        return self.features or (() if self.of == INTERCEPT else (self.of,))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all coefficients."""
        return (INTERCEPT, *self.numbers)

    @property
    def reads_population(self) -> bool:
        """Whether the estimate reads columns of the population: the features, and the proxy of all units."""
        return True

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of w(x) (y − μ(x)), the fit being that to the proxies.

        The mean of what the labels leave open is 0, and strata of one mean would hold units near and far out
        alike. The mean given here is a share of E[u² | x] too small to matter, so that strata follow how much
        u varies.
        """
        expected = self._moments(population)
        units = from_population(population, population.proxy_info(self.proxy).name, Numbers(self.numbers))
        fit = fit_to_proxies(FAMILIES[self.family](), units)
        weight = self._linear(require_inverse(fit.hessian)[self.names.index(self.of)])
        gap = expected.mean - LINKS[self.family](self._linear(fit.theta))
        square = weight * weight * (gap * gap + expected.variance)
        whole = max(float(averages(population, [square])[0]), 1e-300)
        return Influence(
            value=float(fit.theta[self.names.index(self.of)]),
            mean=(IN_ORDER / whole**0.5) * square,
            square=square,
            cells=Cells(names=("all",)),
        )

    def _moments(self, population: Population) -> AnticipatedMoments:
        """Return the proxy's moments of the outcome; of a count, that it varies as much as its mean."""
        found = scaled_moments(population, self.proxy, repr(self.text))
        known = (*population.feature_names, *population.proxy_names)
        for name in [number for number in self.numbers if number not in known]:
            raise InputError(
                f"the population has no column of numbers {name!r}",
                allowed=near_names(name, known),
                action="Several features are written coefficient:length,features=length+age.",
            )
        return AnticipatedMoments(mean=found.mean, variance=found.mean) if self.family == "poisson" else found

    def _linear(self, weights: FloatArray) -> Expression:
        """Return the intercept's weight and the features times theirs, in nine digits on every engine."""
        first, *others = (float(f"{weight:.9g}") for weight in weights)
        terms = [weight * Number(name=name) for weight, name in zip(others, self.numbers, strict=True)]
        return total([Constant(value=first), *terms])

    takes: ClassVar[tuple[str, ...]] = FITTED

    def estimate(self, sample: Sample, labels: Any, request: Request = PLAIN) -> Estimate:
        """Return the coefficient: with the proxy where the population is at hand, else by weights alone."""
        options = options_of(replace(request, proxy=request.proxy or self.proxy), sample)
        fitted = regress(sample, labels, family=self.family, features=self.numbers, **options)
        found: Estimate = fitted.of(coefficient=self.of)
        return replace(found, label=self.label, null=None, remarks=fitted.remarks)


LINKS: dict[str, Callable[[Expression], Expression]] = {
    "linear": lambda line: line,
    "logistic": logistic,
    "poisson": lambda line: Exponential(parts=(line,)),
}
"""The mean of the outcome at a linear predictor."""


_LOGISTIC = 1.702
"""The logistic function of 1.702 t is the normal one of t to .01 (Camilli 1994)."""


@dataclass(frozen=True, slots=True)
class Quantile(Estimand):
    """The value with a given share of the outcomes at or below it.

    Parameters
    ----------
    probability : float
        ½ is the median.
    proxy : str, optional
        The proxy to plan with; the population's first unless named. It must be on the outcome's scale.

    Examples
    --------
    >>> Quantile(0.9).text, Estimand.parse_text("quantile:.9").probability
    ('quantile:0.9', 0.9)
    """

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
        """What a sentence calls it: `0.9 quantile`."""
        return f"{self.probability:g} quantile"

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of (β − 1(z ≤ θ)) / density, with z about its proxy as a logistic.

        θ is the quantile of the proxy; the chance that z is at or below it falls with the proxy, and what the
        proxy leaves open says how steeply.
        """
        expected = scaled_moments(population, self.proxy, "a quantile")
        picture = population.distribution(population.proxy_info(self.proxy).name)
        theta = weighted_quantile(picture.values, picture.counts.astype(np.float64), self.probability)
        left = max(float(averages(population, [expected.variance])[0]), 1e-12) ** 0.5
        steep = _LOGISTIC / left
        below = logistic(steep * (theta - expected.mean))
        density, share = averages(population, [steep * below * (1.0 - below), below])
        scale = 1.0 / max(float(density), 1e-12)
        # u is centred where the logistic has its share, which is near β.
        mean = scale * (float(share) - below)
        square = scale**2 * (float(share) ** 2 + (1.0 - 2.0 * float(share)) * below)
        return Influence(value=theta, mean=mean, square=square, cells=Cells(names=("all",)))

    takes: ClassVar[tuple[str, ...]] = (*FITTED, "bounds")

    def estimate(self, sample: Sample, labels: Any, request: Request = PLAIN) -> Estimate:
        """Return the quantile: by weights, with the limits of the share below, unless λ is requested."""
        if request.estimator not in ("auto", "horvitz-thompson") or request.lam is not None:
            options = options_of(replace(request, proxy=request.proxy or self.proxy), sample)
            proxy, estimator = options.pop("proxy"), options["estimator"]
            joined, units, known = labelled_units(
                sample, labels, sample.population, proxy, estimator=estimator
            )
            tuned = quantile(joined.by_unit(joined.numbers()), self.probability, **known, **options)
            return replace(units.complete(tuned, sample), label=self.label)
        if request.target != "population":
            raise InputError(
                "a quantile by weights is that of the population",
                action="Give estimator='ppi++', or leave target= out.",
            )
        columns, labelled = number_columns(sample, {"labels": labels})
        frame = Respondents.of(sample, labelled)
        found = quantile_estimate(columns[:, 0], self.probability, frame.weighting, bounds=request.bounds)
        if not np.isfinite(found.standard_error):
            raise InputError(
                "the standard error of a quantile cannot be estimated",
                action="Label at least 2 units, drawn at random.",
            )
        return replace(frame.complete(found, sample), label=self.label)

    takes_by_group: ClassVar[tuple[str, ...]] = ("population", "bounds")

    def by(self, sample: Sample, labels: Any, group: Any, request: Request = PLAIN) -> Estimates:
        """Return the quantile by weights of each group."""
        columns, labelled = number_columns(sample, {"labels": labels})
        frame = Respondents.of(sample, labelled)
        groups, names = named_groups(sample, group)
        rows = []
        for name in names:
            member = groups[labelled] == name
            found = quantile_estimate(
                columns[:, 0], self.probability, frame.weighting, bounds=request.bounds, member=member
            )
            rows.append(replace(frame.complete(found, sample), label={"domain": name}))
        return Estimates.from_rows(sample, rows, "domains", frame.notes)

    def labelled_influence(self, sample: Sample, labels: Any) -> LabelledInfluence:
        """Return β − 1(z ≤ θ̂) of the labelled units, on no scale but that of strata among each other."""
        columns, labelled = number_columns(sample, {"labels": labels})
        z, weights = columns[:, 0], Respondents.of(sample, labelled).weighting.weights
        value = weighted_quantile(z, weights, self.probability)
        return LabelledInfluence(u=np.asarray(self.probability - (z <= value), np.float64), labelled=labelled)
