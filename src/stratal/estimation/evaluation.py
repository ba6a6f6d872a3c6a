"""`estimate`: from a sample and its labels to an estimate of any estimand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from stratal.errors import names_mistyped
from stratal.estimation.estimand import Asked, as_estimand
from stratal.estimation.estimate import Estimate
from stratal.estimation.request import Request
from stratal.sampling.asked import require_sample
from stratal.sampling.same_population import require_same_population
from stratal.sampling.sample import Sample

if TYPE_CHECKING:
    from stratal.population.population import Population


@overload
def estimate(
    sample: Sample, labels: Any, *, estimand: None = None, by: None = None, **options: Any
) -> Estimate: ...
@overload
def estimate(
    sample: Sample, labels: Any, *, estimand: Asked = None, by: Any = None, **options: Any
) -> Any: ...
@names_mistyped  # type: ignore[misc]  # the overloads leave the options to this signature
def estimate(
    sample: Sample,
    labels: Any,
    *,
    estimand: Asked = None,
    by: Any = None,
    target: str = "population",
    estimator: str = "auto",
    outcome: str | None = None,
    bounds: tuple[float, float] | None = None,
    limits: tuple[float, float] | None = None,
    lam: Any = None,
    proxy: str | None = None,
    predicted: bool | str = False,
    clip: bool = False,
    combine: str = "mean",
    cross_fit: int | None = None,
    calibration: Any = None,
    features: Sequence[str] | None = None,
    population: Population | None = None,
    stratum_weights_known: bool = False,
) -> Any:
    """Estimate the mean outcome of the population, or another estimand, from the labels of a sample.

    Parameters
    ----------
    sample : Sample
        Drawn units with their design.
    labels : mapping of id to z, Series indexed by id, array in the order of `sample.ids`, or Labels
        NaN and None mean that there is no label: nonresponse, handled within strata and reported.
    estimator : str
        `horvitz-thompson` (λ = 0), `difference` (λ = 1), `ppi++` (one fitted λ), `stratppi` (one λ per
        stratum, shrunk to the pooled one), or `auto`, which is fixed by design and sizes and never by
        comparing standard errors.
    estimand : Estimand, str, mapping, or a list of these, optional
        What to estimate, such as `F1("match")` or `"f1:match"` (see `stratal.estimands`): what the sample was
        planned for, or the mean. It refuses options that mean nothing for it.
    by : str or sequence, optional
        A column of the sample, or a group for each drawn unit: an estimate for each group, from the whole
        design.
    target : {"population", "superpopulation"}
        The mean over these N units, or of the distribution that they came from.
    outcome : {"binary", "bounded", "unbounded"}, optional
        As the sample has it unless given: what the proxies' bounds or the model's answers told at the draw.
    bounds : (float, float), optional
        What the outcome cannot leave; the sample's, or 0 and 1 if nobody said and all labels are 0 or 1.
    limits : (float, float), optional
        Values beyond count as the limit (winsorised): bounds for an outcome that has none of its own.
    lam : float, (k,) or (H,), optional
        λ given instead of fitted.
    proxy : str, optional
        The proxy that enters the estimator; all of them unless named.
    predicted : bool or str
        Labels are classes, to be compared with the sample's column of the model's answers (or with this
        column): z = 1(label = predicted).
    clip : bool
        Whether a fitted λ is kept within [0, 1].
    combine : {"mean", "majority"}
        What several annotators' answers of one unit become; units without a majority count as not labelled.
    cross_fit : int, optional
        Number of folds: each unit's λ is fitted on the labels of the other folds.
    calibration : {"isotonic", "logistic"}, or a learner, optional
        Calibrate the proxy on these labels first, cross-fitted in `cross_fit` folds, or 5. `auto` is then
        `difference`. A learner is a scikit-learn estimator, "gradient-boosting", "logistic-regression" or
        "ridge"; each fold has it only where the other folds show that it helps.
    features : sequence of str, optional
        Columns that a learner learns from, such as `judge_*`: proxies and features of the population.
    population : Population, optional
        Where the sample was drawn from, which calibration needs; the sample's own while in memory.
    stratum_weights_known : bool
        For the superpopulation's mean: whether the strata's shares of it are known, not drawn with the N
        units.

    Returns
    -------
    Estimate, or Estimates of several estimands or groups
        The interval is chosen afterwards: `estimate.confidence_interval(0.95)`.

    Raises
    ------
    LabelError
        For ids that are not in the sample, duplicates, and values outside the outcome's bounds.
    InputError
        For an unknown estimator or target, and for one that needs a proxy where there is none; for folds
        that do not fit the labels, and calibration without what it needs.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.9, 0.8, 0.3, 0.6, 0.7, 0.2])
    >>> sample = stratal.SimpleRandom(budget=4).draw(population, seed=7)
    >>> result = stratal.estimate(sample, [1, 1, 0, 1], estimator="horvitz-thompson")
    >>> result.value, result.n
    (0.75, 4)
    """
    require_sample(sample, "estimate")
    if population is not None:
        sample = replace(sample, population=require_same_population(sample, population))
    asked = as_estimand(sample.estimand if estimand is None else estimand) or as_estimand("mean")
    assert asked is not None
    request = Request(
        target=target,
        estimator=estimator,
        outcome=outcome,
        bounds=bounds,
        limits=limits,
        lam=lam,
        proxy=proxy,
        predicted=predicted,
        clip=clip,
        combine=combine,
        cross_fit=cross_fit,
        calibration=calibration,
        features=features,
        population=population,
        stratum_weights_known=stratum_weights_known,
    )
    asked.refuse_options(request, sample)
    return asked.estimate(sample, labels, request) if by is None else asked.by(sample, labels, by, request)
