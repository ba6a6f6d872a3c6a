"""The rectified loss of an M-estimation: its validated data, its sums at any θ and λ, and its minimum.

The rectified loss is λ times the mean loss of the proxies of all units, plus the mean over the labelled units
of the loss of the label minus λ times the loss of the proxy. θ are the coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from stratal.arrays import FloatArray, field_values
from stratal.designs import Weighting
from stratal.errors import InputError, check_choice, suggest_names
from stratal.estimation.lam import SHRINKAGE_LABELS
from stratal.regression.losses import Loss, LossSums, Unlabelled, feature_matrix, finite_array

# Values of the options that choose a variant of the method.
_OPTION_VALUES = {
    "estimator": ("ppi++", "stratppi", "classical"),
    "target": ("population", "superpopulation"),
    "hessian": ("rectified", "pooled"),
    "correction": ("leverage", "none"),
    "form": ("auto", "loss", "fits"),
}


def require_one_per(unit: str, name: str, values: Sized, count: int) -> None:
    """Raise an `InputError` if `values` do not have `count` entries; `unit` is what an entry belongs to."""
    if len(values) != count:
        raise InputError(f"{name} must have one entry per {unit}", given=len(values), allowed=str(count))


def variance_directions(minimise: object, d: int, names: Sequence[str] = ()) -> FloatArray:
    """Return the linear combinations of d coefficients whose variance is minimised, one per column (d, k).

    `minimise` is "trace" (all coefficients), or the name or the index of a coefficient.
    """
    if isinstance(minimise, str):
        if minimise == "trace":
            return np.eye(d)
        check_choice("coefficient", minimise, ("trace", *names))
        minimise = list(names).index(minimise)
    if not isinstance(minimise, int | np.integer) or not 0 <= minimise < d:
        raise InputError("no such coefficient", given=minimise, allowed=f"0 to {d - 1}")
    return np.eye(d)[:, [int(minimise)]]


# Relative length of a step with which the method has converged if rounding errors prevent a better θ. With a
# requested tolerance above this, the rounding error of the one step of a quadratic loss is not corrected.
_ROUNDING_TOLERANCE = 1e-6


# Maximum number of Newton steps; about ten are usual.
_MAX_NEWTON_STEPS = 100

# Maximum number of halvings: the step is then 2⁻⁴⁰ of its length, below the precision of θ.
_MAX_STEP_HALVINGS = 40


# Smallest share of the predicted decrease of the gradient that a step must reach (Armijo's condition).
_MIN_DECREASE = 1e-4


def whitening(gram: FloatArray) -> FloatArray:
    """Return R (d, d) with R G Rᵀ = 1 for a positive definite G = Σ w x xᵀ."""
    scale = 1.0 / np.sqrt(gram.diagonal())
    root = np.linalg.cholesky(gram * scale[:, None] * scale)
    return np.asarray(np.linalg.inv(root) * scale)


def check_solution(
    solution: Solution,
    loss: Loss,
    *,
    typical_curvature: float | None,
    whitening_matrix: FloatArray,
    is_rectified: bool,
) -> None:
    """Raise an `InputError` with the reason if the solution is no minimum, or if the loss is flat there.

    Parameters
    ----------
    solution : Solution
    loss : Loss
    typical_curvature : float, optional
        `Loss.typical_curvature`. With None, flat losses are not detected.
    whitening_matrix : float (d, d)
        `whitening` of Σ w x xᵀ, to detect directions in which the loss is flat (separation).
    is_rectified : bool
        Whether λ ≠ 0, so that the loss can be unbounded.
    """
    is_flat = False
    if typical_curvature is not None:
        curvatures = np.linalg.eigvalsh(whitening_matrix @ solution.hessian @ whitening_matrix.T)
        is_flat = bool(curvatures[0] < _MIN_CURVATURE_SHARE * typical_curvature)
    if not solution.failed and not is_flat:
        return
    if is_rectified:
        raise InputError(
            f"the rectified {loss.name} loss has no minimum: it is unbounded below or flat at this λ",
            allowed=f"λ between {loss.convex_range[0]:g} and {loss.convex_range[1]:g}, and enough labels",
        )
    if is_flat:
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
    """The result of Newton's method.

    Parameters
    ----------
    theta : float (d,)
        The last θ.
    hessian : float (d, d)
        The Hessian at θ.
    failed : str
        Reason if the method did not converge; otherwise empty.
    """

    theta: FloatArray
    hessian: FloatArray
    failed: str = ""


def newton(
    evaluate: Callable[..., LossSums],
    start: FloatArray,
    *,
    quadratic: bool = False,
    tolerance: float = 1e-9,
) -> Solution:
    """Minimise a convex function by Newton's method, with steps that are halved until the gradient decreases.

    Parameters
    ----------
    evaluate : callable
        Returns the gradient and the Hessian at θ (d,). The keyword `curvature` is False if the Hessian is not
        needed.
    start : float (d,)
    quadratic : bool
        Whether the Hessian is constant. One step and one correction of its rounding error are then
        sufficient.
    tolerance : float
        Maximum length of the last step relative to θ, in units of the Hessian's diagonal. The error after a
        Newton step is about the square of the step, so that after a step of 1e-9 only rounding errors remain.
    """
    theta = np.array(start, dtype=np.float64)
    sums = evaluate(start, curvature=True)
    first_length = 0.0
    for _ in range(_MAX_NEWTON_STEPS):
        inverse = positive_inverse(sums.hessian)
        if inverse is None:
            failed = "the Hessian is not positive definite"
            return Solution(theta=theta, hessian=sums.hessian, failed=failed)
        step = -inverse @ sums.gradient
        if quadratic:
            theta = theta + step
            # A second step removes the rounding error of the first one.
            if tolerance < _ROUNDING_TOLERANCE:
                theta = theta - inverse @ evaluate(theta, curvature=False).gradient
            return Solution(theta=theta, hessian=sums.hessian)
        scale = np.sqrt(sums.hessian.diagonal())
        length = float(np.max(np.abs(step) * scale))
        # If the minimum is near 0, the step is compared with the first one instead of with θ.
        first_length = first_length or length
        accepted = _line_search(evaluate, theta, sums, step)
        step_tolerance = _ROUNDING_TOLERANCE
        if accepted is not None:
            theta, sums = accepted
            step_tolerance = tolerance
        if length <= step_tolerance * max(first_length, float(np.max(np.abs(theta) * scale))):
            return Solution(theta=theta, hessian=sums.hessian)
        if accepted is None:
            break
    return Solution(theta=theta, hessian=sums.hessian, failed="no step reduces the gradient")


def positive_inverse(matrix: FloatArray) -> FloatArray | None:
    """Return the inverse of a positive definite matrix, or `None` if the matrix is not positive definite."""
    # For these matrices, `cholesky` may return numbers or warn instead of raising an error.
    if not np.isfinite(matrix).all() or matrix.diagonal().min() <= 0:
        return None
    try:
        whitening_matrix = whitening(matrix)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(whitening_matrix.T @ whitening_matrix)


def require_inverse(hessian: FloatArray) -> FloatArray:
    """Return the inverse of a Hessian; raise an `InputError` if it is not positive definite."""
    inverse = positive_inverse(hessian)
    if inverse is None:
        raise InputError(
            "the Hessian is not positive definite at the estimate",
            action="Give a smaller lam=, or label more units.",
        )
    return inverse


def _line_search(
    evaluate: Callable[..., LossSums], theta: FloatArray, sums: LossSums, step: FloatArray
) -> tuple[FloatArray, LossSums] | None:
    """Return θ and its sums after a step that is halved until the gradient decreases, or None.

    The norm of the gradient is on the scale of the Hessian's diagonal.
    """
    scale = 1.0 / np.sqrt(sums.hessian.diagonal())
    gradient_norm = np.linalg.norm(sums.gradient * scale)
    for halvings in range(_MAX_STEP_HALVINGS):
        length = 0.5**halvings
        trial = theta + length * step
        trial_sums = evaluate(trial, curvature=True)
        if np.linalg.norm(trial_sums.gradient * scale) <= (1.0 - _MIN_DECREASE * length) * gradient_norm:
            return trial, trial_sums
    return None


# Smallest eigenvalue of the correlation matrix of the features. With a smaller one, the solution would have
# fewer than 5 correct digits.
_MIN_EIGENVALUE = 1e-11


# Smallest curvature at a minimum as a share of the typical one. For separated labels, it tends to 0.
_MIN_CURVATURE_SHARE = 1e-7

# Smallest weight of a feature in the eigenvector of the smallest eigenvalue for which an error names it.
_MIN_EIGENVECTOR_WEIGHT = 1e-4


def require_whitening(gram: FloatArray, names: Sequence[str]) -> FloatArray:
    """Return R (d, d) with R G Rᵀ = 1 for G = Σ w x xᵀ of the features.

    Raises
    ------
    InputError
        If features are collinear; it names them.
    """
    scale = np.sqrt(gram.diagonal())
    # A feature of zeros has no scale; its eigenvalue of 0 is reported below.
    scale = np.where(scale > 0, scale, 1.0)
    eigenvalues, vectors = np.linalg.eigh(gram / scale[:, None] / scale)
    if gram.size and eigenvalues[0] < _MIN_EIGENVALUE:
        # This eigenvector has the coefficients of the linear dependence.
        collinear = np.flatnonzero(np.abs(vectors[:, 0]) > _MIN_EIGENVECTOR_WEIGHT)
        raise InputError(
            "features are collinear, or zero, among the labelled units",
            given=", ".join(names[int(j)] for j in collinear),
            action="Leave one of them out.",
        )
    return np.asarray((vectors / np.sqrt(eigenvalues)).T / scale)


@dataclass(kw_only=True, eq=False)
class RectifiedLoss:
    """The rectified loss of the labelled units, their weights, and the unlabelled units.

    Parameters
    ----------
    loss : Loss
    outcome : array-like (n,) or (n, q)
    weighting : Weighting
        It is changed to independent draws if the unlabelled units are a separate sample.
    features : array-like (n, p), optional
    proxy : array-like like `outcome`, optional
    unlabelled : Unlabelled, optional
        Required with `proxy`, and not allowed without.
    names : sequence of str (d,), optional
    lam : float or (H,), optional
        Stored as float (H,); None if λ is fitted.
    form : {"auto", "loss", "fits"}
        Here, "auto" is the same as "loss"; `m_estimate` also corrects the bias of the proxy for it.
    estimator, target, stratum_weights_known, minimise, shrinkage, hessian, correction
        See `m_estimate`.

    Raises
    ------
    InputError
        For unknown options, arrays that do not match, collinear features, too few labels, and numbers that
        are not finite.
    """

    loss: Loss
    # Arrays after `__post_init__`; before it, anything that converts to one.
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
        """Return the loss with these options; an unknown option raises an error."""
        option_names = [entry.name for entry in fields(cls)]
        for name in options:
            if name not in option_names:
                raise InputError(f"no such option: {name!r}", allowed=suggest_names(name, option_names))
        return cls(**options)

    def __post_init__(self) -> None:
        for name, value in field_values(self, _OPTION_VALUES).items():
            check_choice(name, value, _OPTION_VALUES[name])
        units = self.unlabelled
        self.separate = units is not None and units.separate
        self.outcome = finite_array("outcome", self.outcome)
        features = self.features
        n = len(self.outcome)
        if features is None:
            self.features = np.empty((n, 0))
        else:
            self.features = feature_matrix("features", features)
        # Of each labelled unit: its weight and its stratum (n,).
        self.weights = np.asarray(self.weighting.weights)
        self.stratum = self.weighting.stratum
        # Of each stratum: W_h and its number of labels (H,).
        self.shares = self.weighting.shares
        self.counts = self.weighting.counts
        self.estimator_name = "classical"
        if self.proxy is not None:
            self.proxy = finite_array("proxy", self.proxy)
            self.estimator_name = self.estimator
        for name, values in (("features", self.features), ("proxy", self.proxy), ("weights", self.weights)):
            if values is not None:
                require_one_per("labelled unit", name, values, n)
        self.n_parameters = self.loss.n_parameters(self.features, self.outcome)
        self.names = _coefficient_names(self.names, self.n_parameters, self.features.shape[1])
        self._check_labels()
        gram = self.features.T @ (self.features * self.weights[:, None])
        self.whitening_matrix = require_whitening(gram, self.names)
        self.loss.check(self.outcome, "outcome")
        self.typical_curvature = self.loss.typical_curvature(self.outcome)
        if (self.proxy is None) != (units is None):
            raise InputError(
                "proxy= (labelled units) and unlabelled= (population) must be given together",
                action="Give both, or neither for the classical estimate.",
            )
        if self.lam is not None:
            self.estimator_name = "given λ"
            self.lam = self._lam_by_stratum(self.lam)
        elif units is None or self.estimator == "classical":
            self.lam = np.zeros(len(self.shares))
        if units is not None:
            self._check_unlabelled(units)
        elif np.any(self.lam):
            action = "Give proxy= and unlabelled=, or estimator='classical'."
            raise InputError("λ requires a proxy", given="no proxy", action=action)
        if self.separate:
            self.weighting = self.weighting.as_independent_draws()

    def _lam_by_stratum(self, lam: object) -> FloatArray:
        """Return λ (H,) from one number, or one per stratum."""
        n_strata = len(self.shares)
        array = finite_array("lam", np.atleast_1d(np.asarray(lam)))
        if array.shape not in ((1,), (n_strata,)):
            raise InputError("lam must be one number or one per stratum", allowed=f"({n_strata},)")
        return np.array(np.broadcast_to(array, n_strata))

    def _check_labels(self) -> None:
        """Raise an `InputError` if there are too few labels."""
        d = self.n_parameters
        n = len(self.outcome)
        # A residual variance needs one label more than coefficients; that of a vector of means needs two.
        min_labels = d + 1 if self.features.shape[1] > 0 else 2
        if d == 0 or n < min_labels:
            raise InputError(
                "too few labels for this many coefficients",
                given=f"{n} labels, {d} coefficients",
                allowed=f"at least one coefficient and {min_labels} labels",
            )
        if not self.counts.all():
            raise InputError(
                f"stratum {int(np.argmin(self.counts))} has no label", allowed="at least 2 per stratum"
            )

    def _check_unlabelled(self, units: Unlabelled) -> None:
        """Raise an `InputError` if the unlabelled units do not match the labelled ones or the design."""
        n_features = self.features.shape[1]
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
        if n_features and units.n_features != n_features:
            raise InputError(
                "labelled and unlabelled units have different numbers of features",
                given=f"{n_features} and {units.n_features}",
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

        Those of a quadratic loss are computed from stored sums. The gradient without the Hessian is computed
        from the units, because it corrects the rounding errors of a step.
        """
        loss = self.loss
        x = self.features
        y = self.outcome
        units = self.unlabelled
        if units is None or not lam.any():
            return loss.summed(theta, x, y, self.weights, curvature=curvature)
        if curvature and loss.quadratic and lam.min() == lam.max():
            label_sums = self.label_sums
            lam_slope = self.lam_slope
            hessian = label_sums.hessian + lam[0] * lam_slope.hessian
            return LossSums(label_sums.gradient + lam[0] * lam_slope.gradient + hessian @ theta, hessian)
        weights = self.weights, self.weights * lam[self.stratum]
        labelled_sums = loss.rectified(theta, x, (y, self.proxy), weights, curvature=curvature)
        return labelled_sums.plus(units.summed(loss, theta, self.shares * lam, curvature=curvature))

    @cached_property
    def proxy_sums(self) -> LossSums:
        """Gradient at θ = 0, and Hessian, of the mean loss of the proxies of the unlabelled units."""
        assert self.unlabelled is not None
        return self.unlabelled.summed(self.loss, np.zeros(self.n_parameters), self.shares)

    @cached_property
    def lam_slope(self) -> LossSums:
        """Gradient at θ = 0, and Hessian, of the derivative of a quadratic rectified loss with respect to λ.

        It is the loss of the proxies of the unlabelled units, minus that of the labelled units.
        """
        zero = np.zeros(self.n_parameters)
        return self.proxy_sums.plus(self.loss.summed(zero, self.features, self.proxy, -self.weights))

    @cached_property
    def label_sums(self) -> LossSums:
        """Gradient at θ = 0, and Hessian, of the loss of the labels without a proxy."""
        zero = np.zeros(self.n_parameters)
        return self.loss.summed(zero, self.features, self.outcome, self.weights)

    @cached_property
    def _quadratic_inverse(self) -> FloatArray:
        """Inverse Hessian (d, d) of the loss of the labels if it is quadratic."""
        return require_inverse(self.label_sums.hessian)

    def labelled_inverse(self, theta: FloatArray) -> FloatArray:
        """Return the inverse Hessian (d, d) of the loss of the labels; constant for a quadratic loss."""
        if self.loss.quadratic:
            return self._quadratic_inverse
        return require_inverse(self.loss.hessian(theta, self.features, self.outcome, self.weights))

    def residual_gradients(self, theta: FloatArray, lam: FloatArray) -> FloatArray:
        """Return ∇ℓ(x, y) − λ∇ℓ(x, f) of the labelled units (n, d)."""
        residual = self.loss.gradients(theta, self.features, self.outcome)
        if not lam.any():
            return residual
        proxy_gradients = self.loss.gradients(theta, self.features, self.proxy)
        return residual - lam[self.stratum][:, None] * proxy_gradients

    def solve(self, lam: FloatArray, start: FloatArray, tolerance: float = 1e-9) -> Solution:
        """Minimise the rectified loss for λ (H,)."""
        if self.form == "fits" and lam.any():
            return self._two_fits(lam)
        evaluate = partial(self.evaluate, lam=lam)
        return newton(evaluate, start, quadratic=self.loss.quadratic, tolerance=tolerance)

    def _two_fits(self, lam: FloatArray) -> Solution:
        """Return the sum of the fits of λf on the population and y − λf on the labels (least squares)."""
        zero = np.zeros(self.n_parameters)
        assert self.unlabelled is not None
        proxy_gradient = self.unlabelled.summed(self.loss, zero, self.shares * lam, curvature=False).gradient
        residual_gradient = self.evaluate(zero, lam, curvature=False).gradient - proxy_gradient
        theta = -require_inverse(self.proxy_sums.hessian) @ proxy_gradient
        theta = theta - self.labelled_inverse(zero) @ residual_gradient
        return Solution(theta=theta, hessian=self.label_sums.hessian)

    def require_solution(self, lam: FloatArray, start: FloatArray, tolerance: float = 1e-9) -> Solution:
        """Return the minimum of the rectified loss; raise an `InputError` if there is none."""
        solution = self.solve(lam, start, tolerance)
        check_solution(
            solution,
            self.loss,
            typical_curvature=self.typical_curvature,
            whitening_matrix=self.whitening_matrix,
            is_rectified=bool(lam.any()),
        )
        return solution

    def proxy_covariances(self, theta: FloatArray) -> FloatArray:
        """Return the covariances (H, d, d) of ∇ℓ(x, f) of the unlabelled units within strata."""
        assert self.unlabelled is not None
        return self.unlabelled.covariances(self.loss, theta)

    def sandwich_hessian(self, theta: FloatArray, lam: FloatArray, at_minimum: FloatArray) -> FloatArray:
        """Return the Hessian A (d, d) of the sandwich covariance A⁻¹ V A⁻¹, by the option `hessian`.

        `at_minimum` (d, d) is the Hessian of the rectified loss at its minimum θ.
        """
        loss = self.loss
        units = self.unlabelled
        if self.hessian == "rectified" or units is None or not np.any(lam):
            return at_minimum
        if not units.separate:
            if loss.quadratic:
                return self.proxy_sums.hessian
            return units.summed(loss, theta, self.shares).hessian
        share = self.counts / (self.counts + units.counts)
        labelled_hessian = loss.hessian(
            theta, self.features, self.outcome, self.weights * share[self.stratum]
        )
        return labelled_hessian + units.summed(loss, theta, self.shares * (1.0 - share)).hessian

    def sampling_covariance_of_units(self, theta: FloatArray, lam: FloatArray) -> FloatArray:
        """Return the covariance of the rectified gradient (d, d) due to the sampling of the unlabelled units.

        It is that of a separate sample (Fisch et al. 2024, eq. 10 and 13), or of the population of N units if
        the target is the superpopulation; otherwise 0.
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
    """Return the names of d coefficients: as given, or x0, x1, … of features, y0, y1, … of several means."""
    if names is None:
        prefix = "x" if n_features else "y"
        if d == 1 and not n_features:
            return ("mean",)
        return tuple(f"{prefix}{j}" for j in range(d))
    require_one_per("coefficient", "names", names, d)
    return tuple(str(name) for name in names)
