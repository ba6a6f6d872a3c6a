"""How to estimate: the options that every M-estimate takes, checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, finite_vector
from stratal.errors import InputError, near_names
from stratal.estimation.lam import SHRINKAGE

_ALLOWED = {
    "estimator": ("ppi++", "stratppi", "classical"),
    "target": ("population", "superpopulation"),
    "hessian": ("rectified", "pooled", "labelled"),
    "correction": ("leverage", "degrees", "none"),
    "form": ("auto", "loss", "fits"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to estimate; see `m_estimate`.

    Examples
    --------
    >>> Options().hessian
    'rectified'
    """

    estimator: str = "ppi++"
    lam: Any = None
    target: str = "population"
    stratum_weights_known: bool = False
    minimise: Any = "trace"
    clip: Any = "convex"
    shrinkage: float = SHRINKAGE
    hessian: str = "rectified"
    correction: str = "leverage"
    form: str = "auto"
    start: Any = None
    tolerance: float = 1e-9
    max_iterations: int = 100

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Options:
        """Return the options by name, refusing names that do not exist.

        Examples
        --------
        >>> Options.read({"lam": 0.5}).lam
        0.5
        """
        for name in given:
            if name not in cls.__slots__:
                raise InputError(f"no such option: {name!r}", allowed=near_names(name, cls.__slots__))
        return cls(**given)

    def __post_init__(self) -> None:
        for name, values in _ALLOWED.items():
            require_choice(name, getattr(self, name), values)

    def estimator_name(self, has_proxy: bool) -> str:
        """Return what the estimate says of how λ was found."""
        if self.lam is not None:
            return "given λ"
        return self.estimator if has_proxy else "classical"


def require_choice(what: str, given: Any, allowed: Sequence[Any]) -> None:
    """Raise an `InputError` where something is not one of the names that exist.

    Examples
    --------
    >>> require_choice("side", "left", ("right",))
    Traceback (most recent call last):
    stratal.errors.InputError: unknown side (given: 'left'; allowed: 'right').
    """
    if given not in allowed:
        raise InputError(f"unknown {what}", given=repr(given), allowed=", ".join(map(repr, allowed)))


def require_one_per(what: str, name: str, values: Any, count: int) -> None:
    """Raise an `InputError` where something has not as many entries as there are units or coefficients.

    Examples
    --------
    >>> require_one_per("coefficient", "names", ["a"], 2)
    Traceback (most recent call last):
    stratal.errors.InputError: names must have one entry per coefficient (given: 1; allowed: 2).
    """
    if len(values) != count:
        raise InputError(f"{name} must have one entry per {what}", given=len(values), allowed=str(count))


def contrasts(minimise: Any, d: int, names: Sequence[str] = ()) -> FloatArray:
    """Return the combinations of d coefficients whose variance matters, one per column (d, k).

    Parameters
    ----------
    minimise : "trace", coefficient name or index, or vector (d,)
    d : int
    names : sequence of str (d,)
        Of the coefficients; none where they have none yet.

    Raises
    ------
    InputError
        For a coefficient that does not exist, or a vector of another length.

    Examples
    --------
    >>> contrasts("slope", 2, ["intercept", "slope"]).ravel()
    array([0., 1.])
    """
    if isinstance(minimise, str):
        if minimise == "trace":
            return np.eye(d)
        if not names:
            raise InputError(
                "minimise is not known", given=repr(minimise), allowed="'trace', an index, a vector"
            )
        if minimise not in names:
            raise InputError(
                f"no such coefficient: {minimise!r}", allowed=", ".join(map(repr, ("trace", *names)))
            )
        minimise = list(names).index(minimise)
    if isinstance(minimise, int | np.integer):
        if not 0 <= minimise < d:
            raise InputError("no such coefficient", given=minimise, allowed=f"0 to {d - 1}")
        return np.eye(d)[:, [int(minimise)]]
    vector = finite_vector("minimise", minimise)
    require_one_per("coefficient", "minimise", vector, d)
    return vector[:, None]
