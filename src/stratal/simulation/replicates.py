"""A mean and its variance for thousands of replicates at once, from sums per stratum.

The kernels are those of one sample (λ, inflation, Satterthwaite); only the sums that go into
them are taken from `StratumSums`. A test holds the two together to the last digits.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.errors import InputError, near_names
from stratal.estimation.lam import SHRINKAGE, fit_stratified, inflation
from stratal.intervals.evidence import require_target
from stratal.simulation.sums import StratumSums, covariance, pooled_spread, spread
from stratal.simulation.truth import Truth
from stratal.weighting.class_means import lam_of_classes
from stratal.weighting.stratum_moments import (
    LabelledSpread,
    collapse_singletons,
    population_spread,
    satterthwaite,
)
from stratal.weighting.weighting import free_labels, stratified_factors, stratum_parts

ESTIMATORS = (
    "horvitz-thompson",
    "hajek",
    "difference",
    "ppi++",
    "stratppi",
    "published-ppi++",
    "published-stratppi",
)
"""Hájek's is Horvitz–Thompson's where the weights add up to one, as they do in strata. `published-…`: λ
unshrunk and no degrees of freedom taken off for fitting it, as the papers have it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replicates:
    """Estimates of R replicates.

    Parameters
    ----------
    values : float (R,)
    variances : float (R,)
        Estimated, of the target.
    population_parts : float (R,) or 0
        The part of it that is due to drawing the N units themselves.
    degrees_of_freedom : float (R,)
    tuned : bool (R,)
        Whether λ is not 0.
    lam : float (H,) or (R, H)
        λ of each stratum; 0 unless given.

    Examples
    --------
    >>> Replicates(values=np.zeros(2), variances=np.ones(2), population_parts=np.zeros(2),
    ...            degrees_of_freedom=np.ones(2), tuned=np.zeros(2, bool)).values
    array([0., 0.])
    """

    values: FloatArray
    variances: FloatArray
    population_parts: FloatArray
    degrees_of_freedom: FloatArray
    tuned: BoolArray
    lam: FloatArray = field(default_factory=lambda: np.zeros(1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """Where the replicates' labels lie: what every estimator needs besides their sums.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    proxy_variances : float (H,)
        Of the proxy over the N_h units, divisor N_h − 1.
    counts : float (R, H) or (1, H)
        n_h.
    with_replacement : bool
    group : int (H,), optional
        See `pooled_spread`.
    looked : bool
        Whether labels of earlier rounds decided the n_h.

    Examples
    --------
    >>> layout = Layout.of(np.array([10, 30]), np.zeros(2), np.array([[2.0, 2.0]]))
    >>> layout.factors
    array([[0.025 , 0.2625]])
    """

    sizes: IntArray
    proxy_variances: FloatArray
    counts: FloatArray
    with_replacement: bool = False
    group: IntArray | None = None
    looked: bool = False

    @classmethod
    def of(
        cls,
        sizes: IntArray,
        proxy_variances: FloatArray,
        counts: FloatArray,
        *,
        with_replacement: bool = False,
        looked: bool = False,
    ) -> Layout:
        """Return the layout, single-label strata grouped with a neighbour."""
        group = None
        if np.any(counts < 1):
            raise InputError("a stratum gets no label", action="Use a larger budget, or fewer strata.")
        if np.any((counts < 2) & (sizes > 1)):
            if len(counts) > 1:
                raise InputError("adaptive designs need two labels per stratum", action="Use a larger pilot.")
            group = collapse_singletons(counts[0].astype(np.int64), sizes)
        return cls(
            sizes=sizes,
            proxy_variances=proxy_variances,
            counts=counts,
            with_replacement=with_replacement,
            group=group,
            looked=looked,
        )

    @property
    def weights(self) -> FloatArray:
        """W_h (H,)."""
        return np.asarray(self.sizes / self.sizes.sum())

    @property
    def factors(self) -> FloatArray:
        """W_h² (1 − f_h) / n_h."""
        return stratified_factors(self.counts, self.sizes, with_replacement=self.with_replacement)

    @property
    def draws(self) -> FloatArray:
        """Equally weighted labels that these are worth (Kish)."""
        return np.asarray(1.0 / (self.weights**2 / self.counts).sum(axis=1))

    @property
    def census(self) -> BoolArray:
        """Whether every unit is labelled."""
        return np.asarray(np.all(self.counts >= self.sizes, axis=1) & (not self.with_replacement))

    def spread(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """s_h² of a variable from its sums, (R, H)."""
        return pooled_spread(self.counts, first, second, self.sizes, self.group)

    def parts(self, within: FloatArray) -> FloatArray:
        """Each stratum's part of the variance (R, H), none where it is labelled whole."""
        return stratum_parts(self.factors, within)


def replicate_means(
    sums: StratumSums,
    truth: Truth,
    layout: Layout,
    estimator: str = "horvitz-thompson",
    *,
    target: str = "population",
    stratum_weights_known: bool = True,
    bounds: tuple[float, float] | None = None,
) -> Replicates:
    """Estimate the mean in every replicate.

    Parameters
    ----------
    sums : StratumSums
        (R, H).
    truth : Truth
        Only what a study knows of it is used: sizes, proxy moments, and the centre that was taken off.
    layout : Layout
    estimator : str
        One of `ESTIMATORS`.
    target : {"population", "superpopulation"}
    stratum_weights_known : bool
        For the superpopulation: whether the W_h are known ([S]) rather than drawn with the N units.
    bounds : (float, float), optional
        What the outcome cannot leave.

    Returns
    -------
    Replicates

    Examples
    --------
    >>> truth = Truth.of(np.array([0.0, 1.0, 1.0, 1.0]), None, np.zeros(4, dtype=int), 1)
    >>> layout = Layout.of(truth.sizes, truth.proxy_variances, np.array([[2.0]]))
    >>> sums = StratumSums(counts=layout.counts, z=np.array([[-0.5]]), zz=np.array([[0.625]]))
    >>> found = replicate_means(sums, truth, layout)
    >>> found.values, found.variances
    (array([0.5]), array([0.125]))
    """
    if estimator not in ESTIMATORS:
        raise InputError(
            "no such estimator", given=repr(estimator), allowed=near_names(estimator, ESTIMATORS)
        )
    require_target(target)
    if estimator not in ("horvitz-thompson", "hajek") and sums.p is None:
        raise InputError(f"estimator '{estimator}' needs a proxy", action="Give the population a proxy.")
    lam, spent = _lam(sums, layout, estimator, truth, bounds)
    first, second = sums.residual(lam)
    values = first / sums.counts @ layout.weights + truth.centre
    parts = layout.parts(layout.spread(first, second))
    free = free_labels(layout.counts, layout.sizes, with_replacement=layout.with_replacement)
    freedom = satterthwaite(parts, free) - spent.sum(axis=-1)
    variances = np.asarray((parts * inflation(layout.counts, spent)).sum(axis=1))
    extra = np.zeros(1)
    if target == "superpopulation":
        within = layout.spread(sums.z, sums.zz)
        extra = within @ (layout.weights**2 / layout.sizes)
        if not stratum_weights_known:
            means = (sums.z / sums.counts)[..., None]
            parts_of = population_spread(means, within[..., None, None], layout.counts, layout.sizes)
            own, between = (part[..., 0, 0] for part in parts_of)
            extra = (own + np.maximum(between, 0.0)) / truth.size
    tuned = np.broadcast_to(np.any(np.atleast_2d(lam) != 0, axis=1), values.shape)
    return Replicates(
        values=values,
        variances=variances + extra,
        population_parts=np.broadcast_to(extra, values.shape),
        degrees_of_freedom=np.maximum(freedom, 1.0),
        tuned=tuned,
        lam=np.asarray(lam),
    )


def _lam(
    sums: StratumSums,
    layout: Layout,
    estimator: str,
    truth: Truth,
    bounds: tuple[float, float] | None,
) -> tuple[FloatArray, FloatArray]:
    """Return λ, (H,) or (R, H), and the fitted parameters that fall to each stratum."""
    nothing = np.zeros((1, len(layout.sizes)))
    if estimator in ("horvitz-thompson", "hajek", "difference"):
        return nothing[0] + (estimator == "difference"), nothing
    assert sums.p is not None
    assert sums.pp is not None
    assert sums.zp is not None
    published = estimator.startswith("published-")
    shrinkage = 0.0 if published else SHRINKAGE
    labelled = None
    if not published:
        own = np.nan_to_num(spread(sums.counts, sums.p, sums.pp))[..., None, None]
        outcome = np.nan_to_num(spread(sums.counts, sums.z, sums.zz))
        means = sums.z / sums.counts + truth.centre
        labelled = LabelledSpread.of(own, outcome, means, layout.counts, bounds)
        if bounds is not None and len(layout.sizes) == 1:
            labelled = replace(labelled, of_classes=_of_classes(sums, means, truth, layout, bounds))
    found = fit_stratified(
        covariance(sums.counts, sums.z, sums.p, sums.zp)[..., None],
        layout.proxy_variances[:, None, None],
        layout.factors,
        layout.counts,
        shrinkage if estimator.endswith("stratppi") else None,
        labelled,
    )
    return found.lam[..., 0], nothing if published else found.spent


def _of_classes(
    sums: StratumSums, means: FloatArray, truth: Truth, layout: Layout, bounds: tuple[float, float]
) -> FloatArray:
    """Return the λ (R,) of one stratum that its classes' mean proxies give."""
    assert sums.p is not None
    assert sums.zp is not None
    low, width = bounds[0], bounds[1] - bounds[0]
    return lam_of_classes(
        sums.counts[:, 0],
        (means[:, 0] - low) / width,
        sums.p[:, 0] / sums.counts[:, 0] / width,
        covariance(sums.counts, sums.z, sums.p, sums.zp)[:, 0] / width**2,
        proxy_mean=(float(truth.proxy_means[0]) - low) / width,
        proxy_variance=float(layout.proxy_variances[0]) / width**2,
    )
