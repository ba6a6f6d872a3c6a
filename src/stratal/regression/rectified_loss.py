"""The rectified loss of one estimation: its data, checked once, its value at any θ and λ, and its minimum."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np

from stratal.arrays import FloatArray, field_values
from stratal.designs import Weighting
from stratal.errors import InputError, check_choice, suggest_names
from stratal.estimation.lam import SHRINKAGE_LABELS
from stratal.regression.losses import Loss, LossSums, Unlabelled, feature_matrix, finite_array

# Values of the options that choose a variant of the method.
_ALLOWED = {
    "estimator": ("ppi++", "stratppi", "classical"),
    "target": ("population", "superpopulation"),
    "hessian": ("rectified", "pooled"),
    "correction": ("leverage", "none"),
    "form": ("auto", "loss", "fits"),
}


def require_one_per(unit: str, name: str, values: Sized, count: int) -> None:
    """Raise an `InputError` where something has not as many entries as there are units or coefficients."""
    if len(values) != count:
        raise InputError(f"{name} must have one entry per {unit}", given=len(values), allowed=str(count))


def contrasts(minimise: object, d: int, names: Sequence[str] = ()) -> FloatArray:
    """Return the combinations of d coefficients whose variance matters, one per column (d, k).

    Parameters
    ----------
    minimise : "trace", or a coefficient's name or index
    d : int
    names : sequence of str (d,)
        Of the coefficients; none where they have none yet.

    Raises
    ------
    InputError
        For a coefficient that does not exist.
    """
    if isinstance(minimise, str):
        if minimise == "trace":
            return np.eye(d)
        check_choice("coefficient", minimise, ("trace", *names))
        minimise = list(names).index(minimise)
    if not isinstance(minimise, int | np.integer) or not 0 <= minimise < d:
        raise InputError("no such coefficient", given=minimise, allowed=f"0 to {d - 1}")
    return np.eye(d)[:, [int(minimise)]]


# With a tolerance above this the rounding of one exact step needs no correction.
_ROUGH = 1e-6


# Newton's method needs some ten steps; a step halved 40 times no longer changes θ, which has 52 bits.
_MOST_STEPS = 100

# A step is then 2^-40 of its length, and no step of any size lowers the loss.
_MOST_HALVINGS = 40


# Share of what a step promises that it must keep.
_ENOUGH = 1e-4


def whitening(gram: FloatArray) -> FloatArray:
    """Return R (d, d) with R G R' = 1 of a positive definite G = Σ w x xᵀ."""
    scale = 1.0 / np.sqrt(gram.diagonal())
    return np.asarray(np.linalg.inv(np.linalg.cholesky(gram * scale[:, None] * scale)) * scale)


def refuse_failure(
    solution: Solution, loss: Loss, typical: float | None, root: FloatArray, *, rectified: bool
) -> None:
    """Raise an `InputError` where the solver found no proper minimum, saying which kind of failure it was.

    Parameters
    ----------
    solution : Solution
    loss : Loss
    typical : float, optional
        Its `typical_curvature`.
    root : float (d, d)
        `whitening` of Σ w x xᵀ, to see whether the loss is flat in some direction (separation).
    rectified : bool
        Whether λ ≠ 0, so that the loss can be unbounded.
    """
    flat = False
    if typical is not None:
        flat = bool(np.linalg.eigvalsh(root @ solution.hessian @ root.T)[0] < _FLAT * typical)
    if not solution.failed and not flat:
        return
    if rectified:
        raise InputError(
            f"the rectified {loss.name} loss has no minimum: it is unbounded below or flat at this λ",
            allowed=f"λ between {loss.convex_range[0]:g} and {loss.convex_range[1]:g}, and enough labels",
        )
    if flat:
        raise InputError(
            f"the labels are separated by the features: the {loss.name} coefficients grow without bound",
            action="Label more units, or leave out or merge the features that predict perfectly.",
        )
    raise InputError(
        f"the {loss.name} loss was not minimised ({solution.failed})",
        action="Scale the features, or check that the loss is convex and its Hessian correct.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """The result of Newton's method: θ (d,), the Hessian (d, d) at θ, and the reason of a failure.

    `failed` is empty where it converged.
    """

    theta: FloatArray
    hessian: FloatArray
    failed: str = ""


def newton(
    evaluate: Callable[[FloatArray, bool], LossSums],
    start: FloatArray,
    *,
    quadratic: bool = False,
    tolerance: float = 1e-9,
) -> Solution:
    """Minimise a convex function: steps are halved until the gradient is shorter, which needs no values.

    Parameters
    ----------
    evaluate : callable
        θ (d,) and whether the Hessian is wanted → gradient, Hessian.
    start : float (d,)
    quadratic : bool
        Whether the Hessian is constant: one step and one correction of rounding then suffice.
    tolerance : float
        The last step, in units of the Hessian's diagonal, relative to θ. Newton's steps square their error,
        so that 1e-9 leaves rounding alone.
    """
    theta = np.array(start, dtype=np.float64)
    sums = evaluate(start, True)
    first = 0.0
    for _ in range(_MOST_STEPS):
        inverse = positive_inverse(sums.hessian)
        if inverse is None:
            failed = "the Hessian is not positive definite"
            return Solution(theta=theta, hessian=sums.hessian, failed=failed)
        step = -inverse @ sums.gradient
        if quadratic:
            theta = theta + step
            # A second step removes the rounding of the first, which a rough start does not need.
            if tolerance < _ROUGH:
                theta = theta - inverse @ evaluate(theta, False).gradient
            return Solution(theta=theta, hessian=sums.hessian)
        scale = np.sqrt(sums.hessian.diagonal())
        length = float(np.max(np.abs(step) * scale))
        # A minimum near 0 has no scale of its own: the first step stands in for it.
        first = first or length
        accepted = _line_search(evaluate, theta, sums, step)
        theta, sums = accepted or (theta, sums)
        # Near the minimum, rounding may prevent a shorter gradient: the point is then accepted.
        close = _ROUGH if accepted is None else tolerance
        if length <= close * max(first, float(np.max(np.abs(theta) * scale))):
            return Solution(theta=theta, hessian=sums.hessian)
        if accepted is None:
            break
    return Solution(theta=theta, hessian=sums.hessian, failed="no step helped")


def positive_inverse(matrix: FloatArray) -> FloatArray | None:
    """Return the inverse of a positive definite matrix, or `None` if it is not one."""
    # The factorisation would warn of these, or not notice them.
    if not np.isfinite(matrix).all() or matrix.diagonal().min() <= 0:
        return None
    try:
        half = whitening(matrix)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(half.T @ half)


def require_inverse(hessian: FloatArray) -> FloatArray:
    """Return the inverse of a Hessian, or raise an `InputError` that says what to do."""
    inverse = positive_inverse(hessian)
    if inverse is None:
        raise InputError(
            "the Hessian is not positive definite at the estimate",
            action="Give a smaller lam=, or label more units.",
        )
    return inverse


def _line_search(
    evaluate: Callable[[FloatArray, bool], LossSums], theta: FloatArray, sums: LossSums, step: FloatArray
) -> tuple[FloatArray, LossSums] | None:
    """Halve the step until the gradient, on the scale of the Hessian's diagonal, is shorter."""
    scale = 1.0 / np.sqrt(sums.hessian.diagonal())
    steepness = np.linalg.norm(sums.gradient * scale)
    for halvings in range(_MOST_HALVINGS):
        length = 0.5**halvings
        trial = evaluate(theta + length * step, True)
        if np.linalg.norm(trial.gradient * scale) <= (1.0 - _ENOUGH * length) * steepness:
            return theta + length * step, trial
    return None


# Least eigenvalue of the features' correlations: below it the solution keeps fewer than 5 of 16 digits.
_DEPENDENT = 1e-11


# Least curvature of a proper minimum, as a share of the loss's typical one: separated labels tend to 0.
_FLAT = 1e-7


def require_whitening(gram: FloatArray, names: Sequence[str]) -> FloatArray:
    """Return R (d, d) with R G R' = 1 of the features' G = Σ w x xᵀ.

    Raises
    ------
    InputError
        That names the features that depend on each other.
    """
    size = np.sqrt(gram.diagonal())
    # A feature of zeros has no size; its eigenvalue of 0 is reported below.
    size = np.where(size > 0, size, 1.0)
    eigenvalues, vectors = np.linalg.eigh(gram / size[:, None] / size)
    if gram.size and eigenvalues[0] < _DEPENDENT:
        # The eigenvector of the smallest eigenvalue has the weights of the dependence; others are rounding.
        involved = np.flatnonzero(np.abs(vectors[:, 0]) > 1e-4)
        raise InputError(
            "features are collinear, or zero, among the labelled units",
            given=", ".join(names[int(j)] for j in involved),
            action="Leave one of them out.",
        )
    return np.asarray((vectors / np.sqrt(eigenvalues)).T / size)


@dataclass(kw_only=True, eq=False)
class RectifiedLoss:
    """Labelled units, weights and population side of one estimation, and the loss that they form together.

    Parameters
    ----------
    loss : Loss
    outcome : array-like (n,) or (n, q)
    weighting : Weighting
        Without finite population correction where the unlabelled units are a sample of their own.
    features : array-like (n, p), optional
    proxy : array-like like `outcome`, optional
    unlabelled : Unlabelled, optional
        Given together with `proxy`, or neither is.
    names : sequence of str (d,), optional
    lam : float or (H,), optional
        Then float (H,); None where it is to be fitted.
    estimator, target, stratum_weights_known, minimise, shrinkage, hessian, correction, form
        See `m_estimate`.

    Raises
    ------
    InputError
        For options that do not exist, data that do not fit together, collinear features, too few labels,
        unusable numbers.
    """

    loss: Loss
    outcome: Any
    weighting: Weighting
    features: Any = None
    proxy: Any = None
    unlabelled: Unlabelled | None = None
    names: Any = None
    estimator: str = "ppi++"
    lam: Any = None
    target: str = "population"
    stratum_weights_known: bool = False
    minimise: Any = "trace"
    shrinkage: float = SHRINKAGE_LABELS
    hessian: str = "rectified"
    correction: str = "leverage"
    form: str = "auto"

    @classmethod
    def of(cls, **options: Any) -> Self:
        """Return the loss by name, refusing names that do not exist."""
        option_names = [entry.name for entry in fields(cls)]
        for name in options:
            if name not in option_names:
                raise InputError(f"no such option: {name!r}", allowed=suggest_names(name, option_names))
        return cls(**options)

    def __post_init__(self) -> None:
        for name, value in field_values(self, _ALLOWED).items():
            check_choice(name, value, _ALLOWED[name])
        units = self.unlabelled
        self.separate = units is not None and units.separate
        self.outcome = finite_array("outcome", self.outcome)
        features = self.features
        n = len(self.outcome)
        if features is None:
            self.features = np.empty((n, 0))
        else:
            self.features = feature_matrix("features", features)
        self.weights, self.stratum = np.asarray(self.weighting.weights), self.weighting.stratum
        self.shares, self.counts = self.weighting.shares, self.weighting.counts
        self.estimator_name = "classical"
        if self.proxy is not None:
            self.proxy = finite_array("proxy", self.proxy)
            self.estimator_name = self.estimator
        for name, values in (("features", self.features), ("proxy", self.proxy), ("weights", self.weights)):
            if values is not None:
                require_one_per("labelled unit", name, values, n)
        self.n_parameters = self.loss.n_parameters(self.features, self.outcome)
        self.names = _coefficient_names(self.names, self.n_parameters, self.features.shape[1])
        self._require_labels()
        if (self.proxy is None) != (units is None):
            raise InputError(
                "proxy= (labelled units) and unlabelled= (population) must be given together",
                action="Give both, or neither for the classical estimate.",
            )
        n_strata = len(self.shares)
        if self.lam is not None:
            self.estimator_name, self.lam = "given λ", finite_array("lam", np.atleast_1d(self.lam))
            if self.lam.shape not in ((1,), (n_strata,)):
                raise InputError("lam must be one number or one per stratum", allowed=f"({n_strata},)")
            self.lam = np.array(np.broadcast_to(self.lam, n_strata))
        elif units is None or self.estimator == "classical":
            self.lam = np.zeros(n_strata)
        if units is not None:
            self._require_fit(units)
        elif np.any(self.lam):
            action = "Give proxy= and unlabelled=, or estimator='classical'."
            raise InputError("λ requires a proxy", given="no proxy", action=action)
        if self.separate:
            self.weighting = self.weighting.as_independent_draws()

    def _require_labels(self) -> None:
        """Refuse labels from which nothing can be estimated."""
        d = self.n_parameters
        width = self.features.shape[1]
        n = len(self.outcome)
        fewest = d if width else 1
        if d == 0 or n <= fewest:
            raise InputError(
                "too few labels for this many coefficients",
                given=f"{n} labels, {d} coefficients",
                allowed=f"at least one coefficient and {fewest + 1} labels",
            )
        if not self.counts.all():
            raise InputError(
                f"stratum {int(np.argmin(self.counts))} has no label", allowed="at least 2 per stratum"
            )
        gram = self.features.T @ (self.features * self.weights[:, None])
        self.root = require_whitening(gram, self.names)
        self.loss.check(self.outcome, "outcome")
        self.typical = self.loss.typical_curvature(self.outcome)

    def _require_fit(self, units: Unlabelled) -> None:
        """Refuse unlabelled units that are not of the labelled ones' population, or lack what these have."""
        width = self.features.shape[1]
        self.loss.check(self.proxy, "proxy")
        if self.separate and self.target == "population":
            raise InputError(
                "a separate unlabelled sample cannot be used for a finite population",
                allowed="target='superpopulation'",
            )
        if self.proxy.shape[1:] != self.outcome.shape[1:]:
            raise InputError(
                "proxy and outcome must have the same shape",
                given=f"{self.proxy.shape} and {self.outcome.shape}",
                allowed="one value of each for a unit",
            )
        if width and units.width != width:
            raise InputError(
                "labelled and unlabelled units have different numbers of features",
                given=f"{width} and {units.width}",
                allowed="the same features for both",
            )
        is_population = self.weighting.random_within_strata and not units.separate
        if is_population:
            design_sizes = np.asarray(self.weighting.sizes)
        else:
            design_sizes = np.zeros(len(self.shares))
        if len(design_sizes) != units.n_strata or (
            is_population and not np.array_equal(units.counts, design_sizes)
        ):
            raise InputError(
                "the unlabelled units are not the population of the design",
                given=f"{units.counts.tolist()[:5]} units per stratum",
                allowed=f"{design_sizes.tolist()[:5]}" if is_population else f"{len(design_sizes)} strata",
                action="Give all N units with the design's stratum codes, or set separate=True.",
            )

    @property
    def population_size(self) -> float:
        """N, or the size of the separate unlabelled sample."""
        return float(self.weighting.population_size if self.unlabelled is None else self.unlabelled.size)

    def evaluate(self, theta: FloatArray, lam: FloatArray, *, curvature: bool = True) -> LossSums:
        """Return the gradient and the Hessian of the rectified loss at θ.

        Those of a quadratic loss follow from one pass over the units, but for the gradient alone: it corrects
        what rounding left of the others.
        """
        loss = self.loss
        x = self.features
        y = self.outcome
        units = self.unlabelled
        if units is None or not lam.any():
            return loss.summed(theta, x, y, self.weights, curvature=curvature)
        if curvature and loss.quadratic and lam.min() == lam.max():
            labelled_sums = self.labelled
            power = self.power
            hessian = labelled_sums.hessian + lam[0] * power.hessian
            return LossSums(labelled_sums.gradient + lam[0] * power.gradient + hessian @ theta, hessian)
        weights = self.weights, self.weights * lam[self.stratum]
        labelled_sums = loss.rectified(theta, x, (y, self.proxy), weights, curvature=curvature)
        return labelled_sums.plus(units.summed(loss, theta, self.shares * lam, curvature=curvature))

    @cached_property
    def population_sums(self) -> LossSums:
        """Gradient at θ = 0 and Hessian of the mean loss over the unlabelled units at the proxy."""
        assert self.unlabelled is not None
        return self.unlabelled.summed(self.loss, np.zeros(self.n_parameters), self.shares)

    @cached_property
    def power(self) -> LossSums:
        """The part of a quadratic loss at θ = 0 that λ multiplies: sums at the proxy, less the labelled."""
        zero = np.zeros(self.n_parameters)
        return self.population_sums.plus(self.loss.summed(zero, self.features, self.proxy, -self.weights))

    @cached_property
    def labelled(self) -> LossSums:
        """Gradient at θ = 0 and Hessian of the labelled units' own loss."""
        zero = np.zeros(self.n_parameters)
        return self.loss.summed(zero, self.features, self.outcome, self.weights)

    @cached_property
    def _inverse(self) -> FloatArray:
        return require_inverse(self.labelled.hessian)

    def labelled_inverse(self, theta: FloatArray) -> FloatArray:
        """Return the inverse of the labelled units' own Hessian (d, d); of a quadratic loss, at every θ."""
        if self.loss.quadratic:
            return self._inverse
        return require_inverse(self.loss.hessian(theta, self.features, self.outcome, self.weights))

    def residual_gradients(self, theta: FloatArray, lam: FloatArray) -> FloatArray:
        """Return ∇ℓ(x, y) − λ∇ℓ(x, f) of the labelled units (n, d)."""
        residual = self.loss.gradients(theta, self.features, self.outcome)
        if not lam.any():
            return residual
        return residual - lam[self.stratum][:, None] * self.loss.gradients(theta, self.features, self.proxy)

    def solve(self, lam: FloatArray, start: FloatArray, tolerance: float = 1e-9) -> Solution:
        """Minimise the rectified loss at a given λ."""
        if self.form == "fits" and lam.any():
            return self._two_fits(lam)

        def evaluate(theta: FloatArray, curvature: bool) -> LossSums:
            return self.evaluate(theta, lam, curvature=curvature)

        return newton(evaluate, start, quadratic=self.loss.quadratic, tolerance=tolerance)

    def _two_fits(self, lam: FloatArray) -> Solution:
        """Return the fit of λf on the population plus the fit of y − λf on the labels (quadratic losses)."""
        zero = np.zeros(self.n_parameters)
        assert self.unlabelled is not None
        predicted = self.unlabelled.summed(self.loss, zero, self.shares * lam, curvature=False)
        rectifier = self.evaluate(zero, lam, curvature=False).gradient - predicted.gradient
        theta = -require_inverse(self.population_sums.hessian) @ predicted.gradient
        theta = theta - self.labelled_inverse(zero) @ rectifier
        return Solution(theta=theta, hessian=self.labelled.hessian)

    def require_solution(self, lam: FloatArray, start: FloatArray, tolerance: float = 1e-9) -> Solution:
        """Return the minimum of the rectified loss, or raise where there is none."""
        solution = self.solve(lam, start, tolerance)
        refuse_failure(solution, self.loss, self.typical, self.root, rectified=bool(lam.any()))
        return solution

    def proxy_covariances(self, theta: FloatArray) -> FloatArray:
        """Return the covariances (H, d, d) of ∇ℓ(x, f) over the unlabelled units, within strata."""
        assert self.unlabelled is not None
        return self.unlabelled.covariances(self.loss, theta)

    def bread(self, theta: FloatArray, lam: FloatArray, at_minimum: FloatArray) -> FloatArray:
        """Return A (d, d) as `hessian` says; `at_minimum` is the rectified loss's own."""
        loss = self.loss
        units = self.unlabelled
        if self.hessian == "rectified" or units is None or not np.any(lam):
            return at_minimum
        if not units.separate:
            if loss.quadratic:
                return self.population_sums.hessian
            return units.summed(loss, theta, self.shares).hessian
        share = self.counts / (self.counts + units.counts)
        labelled_hessian = loss.hessian(
            theta, self.features, self.outcome, self.weights * share[self.stratum]
        )
        return labelled_hessian + units.summed(loss, theta, self.shares * (1.0 - share)).hessian

    def drawn_units(self, theta: FloatArray, lam: FloatArray) -> FloatArray:
        """Return what the draw of other units than the labelled adds to the rectified gradient's covariance.

        A separate sample adds its own variance (eq. 10, 13), else the population's draw may.
        """
        if self.separate and self.unlabelled is not None:
            factors = self.shares**2 * lam**2 / self.unlabelled.counts
            return np.asarray((factors[:, None, None] * self.proxy_covariances(theta)).sum(axis=0))
        if self.target == "superpopulation":
            gradients = self.loss.gradients(theta, self.features, self.outcome)
            weights_known = self.stratum_weights_known
            return self.weighting.superpopulation_covariance(gradients, stratum_weights_known=weights_known)
        return np.zeros((len(theta), len(theta)))


def _coefficient_names(names: Sequence[object] | None, d: int, n_features: int) -> tuple[str, ...]:
    if names is None:
        prefix = "x" if n_features else "y"
        if d == 1 and not n_features:
            return ("mean",)
        return tuple(f"{prefix}{j}" for j in range(d))
    require_one_per("coefficient", "names", names, d)
    return tuple(str(name) for name in names)
