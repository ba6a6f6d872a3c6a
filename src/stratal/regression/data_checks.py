"""What can be wrong with a regression's data, each with one clear error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stratal.arrays import FloatArray
from stratal.designs import Weighting
from stratal.errors import InputError
from stratal.regression.losses import Loss
from stratal.regression.solver import Solution

_DEPENDENT = 1e-11
_FLAT = 1e-7


def refuse_collinear(features: FloatArray, weights: FloatArray, names: Sequence[str]) -> None:
    """Raise an `InputError` that names the columns that depend on each other.

    Examples
    --------
    >>> refuse_collinear(np.array([[1.0, 2.0], [1.0, 2.0]]), np.ones(2), ["one", "two"])
    Traceback (most recent call last):
    stratal.errors.InputError: features are collinear among the labelled units (given: one, two)...
    """
    gram = features.T @ (features * weights[:, None])
    size = np.sqrt(np.diag(gram))
    if np.any(size <= 0):
        raise InputError(
            f"feature {names[int(np.argmin(size))]!r} is zero for every labelled unit",
            action="Leave it out, or label units that have it.",
        )
    eigenvalues, vectors = np.linalg.eigh(gram / size[:, None] / size)
    if eigenvalues[0] < _DEPENDENT:
        involved = np.flatnonzero(np.abs(vectors[:, 0]) > 1e-4)
        raise InputError(
            "features are collinear among the labelled units",
            given=", ".join(names[int(j)] for j in involved),
            action="Leave one of them out, or label more units.",
        )


def refuse_few_labels(weighting: Weighting, n: int, n_parameters: int) -> None:
    """Raise an `InputError` where there are too few labels for a variance.

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> refuse_few_labels(StratifiedWeighting(stratum=np.array([0, 0]), sizes=np.array([9, 9])), 2, 1)
    Traceback (most recent call last):
    stratal.errors.InputError: stratum 1 has no label (given: 0 of 9 units; allowed: at least 2 per
    stratum)...
    """
    if n <= n_parameters:
        raise InputError(
            "too few labels for this many coefficients",
            given=f"{n} labels, {n_parameters} coefficients",
            allowed=f"at least {n_parameters + 1} labels",
            action="Label more units, or leave features out.",
        )
    empty = np.flatnonzero(weighting.counts == 0)
    if len(empty):
        raise InputError(
            f"stratum {empty[0]} has no label",
            given=f"0 of {weighting.sizes[empty[0]]} units",
            allowed="at least 2 per stratum",
            action="Merge it with a neighbouring stratum, or label units of it.",
        )


def refuse_wrong_shapes(loss: Loss, features: FloatArray, outcome: FloatArray, n_parameters: int) -> None:
    """Raise an `InputError` where a loss gives gradients or Hessians of another shape than it should.

    Examples
    --------
    >>> from stratal.regression.losses import MeanLoss
    >>> refuse_wrong_shapes(MeanLoss(), np.empty((2, 0)), np.ones(2), 1)
    """
    theta, few = np.zeros(n_parameters), slice(0, 2)
    x, y = features[few], outcome[few]
    with np.errstate(all="ignore"):
        found = {
            "gradients": (np.shape(loss.gradients(theta, x, y)), (len(y), n_parameters)),
            "hessian": (np.shape(loss.hessian(theta, x, y, np.ones(len(y)))), (n_parameters, n_parameters)),
        }
    for method, (given, wanted) in found.items():
        if given != wanted:
            raise InputError(
                f"{method}() of the {loss.name} loss has the wrong shape",
                given=f"{given} for {len(y)} units and {n_parameters} coefficients",
                allowed=str(wanted),
            )


def minimum_failure(
    solution: Solution,
    loss: Loss,
    outcome: FloatArray,
    gram: FloatArray | None,
    *,
    rectified: bool,
) -> InputError | None:
    """Return an `InputError` where the solver found no proper minimum, saying which kind of failure it was.

    Parameters
    ----------
    solution : Solution
    loss : Loss
    outcome : float (n,)
    gram : float (d, d), optional
        Σ w x xᵀ, to see whether the loss is flat in some direction (separation).
    rectified : bool
        Whether λ ≠ 0, so that the loss can be unbounded.
    """
    typical = loss.typical_curvature(outcome)
    flat = False
    if typical is not None and gram is not None:
        size = np.sqrt(np.diag(gram))
        root = np.linalg.cholesky(gram / size[:, None] / size)
        half = np.linalg.solve(root, solution.hessian / size[:, None] / size)
        curvature = np.linalg.eigvalsh(np.linalg.solve(root, half.T))
        flat = bool(curvature[0] < _FLAT * typical)
    if solution.status == "converged" and not flat:
        return None
    if rectified:
        return InputError(
            f"the rectified {loss.name} loss has no minimum: it is unbounded below or flat at this λ",
            allowed=f"λ between {loss.convex_range[0]:g} and {loss.convex_range[1]:g}, and enough labels",
            action="Give a smaller lam=, use estimator='classical', or label more units.",
        )
    if flat:
        return InputError(
            f"the labels are separated by the features: the {loss.name} coefficients grow without bound",
            action="Label more units, or leave out or merge the features that predict perfectly.",
        )
    return InputError(
        f"the {loss.name} loss was not minimised ({solution.status} after {solution.iterations} iterations)",
        action="Scale the features, give start=, or check that the loss is convex and its Hessian right.",
    )
