"""`estimate`: from a sample and its labels to an estimate. Only `planning` knows as much of the flow."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray
from stratal.design.given import SeparateSamples
from stratal.errors import InputError, LabelError, StratalWarning
from stratal.estimators.estimate import Estimate, estimate_mean
from stratal.estimators.separate import Unlabelled
from stratal.estimators.separate_estimate import separate_estimate
from stratal.labels import Joined, join, numeric_values
from stratal.population.summary import StratumSummary
from stratal.sample import Sample
from stratal.variance import stratum_counts
from stratal.weighting import StratifiedWeighting, Weighting


def estimate(
    sample: Sample,
    labels: Any,
    *,
    estimator: str = "auto",
    target: str = "population",
    outcome: Any = None,
    bounds: tuple[float, float] | None = None,
    lam: Any = None,
    proxy: str | None = None,
    predicted: bool | str = False,
    clip: bool = False,
) -> Estimate:
    """Estimate the mean outcome of the population from the labels of a sample.

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
    target : {"population", "superpopulation"}
        The mean over these N units, or of the distribution that they came from.
    outcome : {"binary", "bounded", "unbounded"}, optional
        Inferred where that is safe.
    bounds : (float, float), optional
        What the outcome cannot leave; 0 and 1 if all labels are 0 or 1.
    lam : float, (k,) or (H,), optional
        λ given instead of fitted.
    proxy : str, optional
        The proxy that enters the estimator; all of them unless named.
    predicted : bool or str
        Labels are classes, to be compared with the sample's column of the model's answers (or with this
        column): z = 1(label = predicted).
    clip : bool
        Whether a fitted λ is kept within [0, 1].

    Returns
    -------
    Estimate
        Its interval is chosen afterwards: `estimate.confidence_interval(0.95)`.

    Raises
    ------
    LabelError
        For ids that are not in the sample, duplicates, and values outside the outcome's bounds.
    InputError
        For an unknown estimator or target, and for one that needs a proxy where there is none.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.9, 0.8, 0.3, 0.6, 0.7, 0.2])
    >>> sample = stratal.SimpleRandom(budget=4).draw(population, seed=7)
    >>> result = stratal.estimate(sample, [1, 1, 0, 1], estimator="horvitz-thompson")
    >>> result.value, result.n
    (0.75, 4)
    """
    joined = join(sample, labels)
    z = outcomes(sample, joined, predicted)
    frame = Respondents.of(sample, joined.labelled)
    column = _proxy_columns(sample, proxy)
    scaled = all(sample.proxy_info[c].scaled for c in column)
    if bounds is None and outcome != "unbounded":
        bounds = proxy_bounds(sample, z)
    if outcome == "binary":
        bounds = None
    if isinstance(sample.design, SeparateSamples):
        return _of_separate_samples(
            sample, sample.design, joined.labelled, z, estimator=estimator, lam=lam, target=target,
            outcome=outcome, bounds=bounds, clip=clip,
        )  # fmt: skip
    return estimate_mean(
        z,
        sample.proxies[joined.labelled][:, column],
        frame.weighting,
        frame.summary_of(column),
        stratum=frame.stratum,
        estimator=estimator,
        lam=lam,
        target=target,
        outcome=outcome,
        bounds=bounds,
        design=sample.design.kind,
        scaled=scaled,
        stratum_names=frame.names,
        drawn=sample.size,
        clip=clip,
        notes=frame.notes,
    )


def _of_separate_samples(
    sample: Sample,
    design: SeparateSamples,
    labelled: BoolArray,
    z: FloatArray,
    *,
    target: str,
    **options: Any,
) -> Estimate:
    """Return the estimate where the unlabelled units are a sample of their own."""
    stratum = sample.stratum[labelled]
    return separate_estimate(
        z,
        sample.proxies[labelled],
        stratum,
        design.weighting(sample, labelled),
        shares=design.shares,
        unlabelled=Unlabelled(
            counts=design.counts,
            means=design.means[:, None],
            covariances=design.variances[:, None, None],
        ),
        names=design.names,
        target=target,
        drawn=sample.size,
        **options,
    )


def outcomes(sample: Sample, joined: Joined, predicted: bool | str = False) -> FloatArray:
    """Return z of the labelled units (m,): the labels themselves, or whether they equal the model's answers.

    Several answers of one unit are averaged.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(
    ...     proxy=[0.1, 0.5], groups={"answer": ["cat", "dog"]}, predicted="answer")
    >>> sample = stratal.SimpleRandom(budget=2).draw(population, seed=7)
    >>> float(outcomes(sample, join(sample, {0: "cat", 1: "cat"}), predicted=True).sum())
    1.0
    """
    values = joined.values[joined.labelled]
    if len(values) == 0:
        raise LabelError(
            "no unit is labelled yet",
            allowed="at least one label",
            action="Fill in the label column, then estimate again.",
        )
    if predicted is False:
        return _averaged(values)
    answers = answers_of(sample, predicted)[joined.labelled]
    return np.array([_share_equal(value, answer) for value, answer in zip(values, answers, strict=True)])


def answers_of(sample: Sample, predicted: bool | str) -> AnyArray:
    """Return the model's answer for each drawn unit (n,), as text.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1], groups={"answer": ["cat"]})
    >>> answers_of(stratal.SimpleRandom(budget=1).draw(population, seed=7), "answer").tolist()
    ['cat']
    """
    name = predicted if isinstance(predicted, str) else sample.predicted
    if name is None or name not in sample.groups:
        raise InputError(
            "this sample does not hold the model's answers",
            given=repr(name),
            allowed=", ".join(map(repr, sample.groups)) or "none was kept",
            action="Draw with predicted= (--predicted COL), so that the column is kept.",
        )
    return np.asarray(sample.groups[name])


class Respondents:
    """The labelled units of a sample as estimators see them: no stratum without a label.

    A stratum in which nobody answered is merged with its neighbour, and said so.

    Parameters
    ----------
    stratum : int (m,)
    weighting : Weighting
    summary : StratumSummary
    names : tuple of str (H,)
    notes : tuple of str

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5])
    >>> sample = stratal.SimpleRandom(budget=2).draw(population, seed=7)
    >>> Respondents.of(sample, np.array([True, False])).notes
    ()
    """

    def __init__(
        self,
        stratum: IntArray,
        weighting: Weighting,
        summary: StratumSummary,
        names: tuple[str, ...],
        notes: tuple[str, ...] = (),
    ) -> None:
        self.stratum, self.weighting, self.summary = stratum, weighting, summary
        self.names, self.notes = names, notes

    @classmethod
    def of(cls, sample: Sample, labelled: BoolArray) -> Respondents:
        """Return the labelled units, strata without labels merged into a neighbour."""
        stratum, names = sample.stratum[labelled], sample.design.stratum_names
        weighting = sample.weighting(labelled)
        counts = stratum_counts(stratum, len(sample.summary.sizes))
        if not isinstance(weighting, StratifiedWeighting) or np.all(counts > 0) or len(stratum) == 0:
            return cls(stratum, weighting, sample.summary, names)
        codes = _merge_empty(counts)
        note = f"{int(np.sum(counts == 0))} strata without labels were merged with their neighbours"
        warnings.warn(note, StratalWarning, stacklevel=4)
        merged = sample.summary.merged(codes)
        weighting = StratifiedWeighting(
            stratum=codes[stratum], sizes=merged.sizes, with_replacement=weighting.with_replacement
        )
        joint = tuple(
            " + ".join(names[h] for h in np.flatnonzero(codes == c)) for c in range(codes.max() + 1)
        )
        return cls(codes[stratum], weighting, merged, joint, (note,))

    def summary_of(self, column: list[int]) -> StratumSummary:
        """Return the population summary of the chosen proxies."""
        return StratumSummary(
            sizes=self.summary.sizes,
            proxy_means=self.summary.proxy_means[:, column],
            proxy_covariances=self.summary.proxy_covariances[:, column][:, :, column],
        )


def _merge_empty(counts: IntArray) -> IntArray:
    """Return new codes (H,): each stratum without labels takes that of the nearest one with labels."""
    filled = np.flatnonzero(counts > 0)
    nearest = [int(filled[np.argmin(np.abs(filled - h))]) for h in range(len(counts))]
    return np.unique(nearest, return_inverse=True)[1].astype(np.int64)


def _proxy_columns(sample: Sample, proxy: str | None) -> list[int]:
    if proxy is None:
        scaled = [number for number, info in enumerate(sample.proxy_info) if info.scaled]
        return scaled or list(range(len(sample.proxy_info)))
    if proxy not in sample.proxy_names:
        raise InputError(f"no such proxy: {proxy!r}", allowed=", ".join(map(repr, sample.proxy_names)))
    return [sample.proxy_names.index(proxy)]


def proxy_bounds(sample: Sample, z: FloatArray) -> tuple[float, float] | None:
    """Return the bounds that the proxy was said to predict within, if every label lies in them."""
    for info in sample.proxy_info:
        if info.scaled and info.bounds is not None:
            low, high = info.bounds
            return info.bounds if np.all((z >= low) & (z <= high)) else None
    return None


def _averaged(values: AnyArray) -> FloatArray:
    """Return one number per unit (m,), several answers of a unit averaged."""
    if not any(isinstance(value, tuple) for value in values.tolist()):
        return numeric_values(values)
    given = [value if isinstance(value, tuple) else (value,) for value in values.tolist()]
    return np.array([numeric_values(np.array(several, dtype=object)).mean() for several in given])


def _share_equal(value: Any, answer: str) -> float:
    given = value if isinstance(value, tuple) else (value,)
    return float(np.mean([class_text(entry) == answer for entry in given]))


def class_text(value: Any) -> str:
    """Return a class label as text: 1, 1.0 and '1' are one class.

    Examples
    --------
    >>> class_text(1.0), class_text("cat")
    ('1', 'cat')
    """
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
