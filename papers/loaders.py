"""The papers' data, where somebody has them: prediction files, archives of arrays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray
from stratal.errors import InputError, MissingExtraError


@contextmanager
def scikit_learn() -> Iterator[None]:
    """Say which extra is missing where an import of scikit-learn fails."""
    try:
        yield
    except ImportError:
        raise MissingExtraError("scikit-learn", extra="learn") from None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Predictions:
    """A set with outcomes, where there are labels, and a proxy of them for every row.

    Parameters
    ----------
    name : str
    z, proxy : float (N,)
        NaN in z where a row has no label.
    scaled : bool
        Whether the proxy is on the outcome's scale; a margin is not.

    Examples
    --------
    >>> Predictions(name="a", z=np.array([1.0, 0.0]), proxy=np.array([0.9, 0.2])).binary
    True
    """

    name: str
    z: FloatArray
    proxy: FloatArray
    scaled: bool = True

    @property
    def labelled(self) -> BoolArray:
        """Whether a row has a label (N,)."""
        return np.isfinite(self.z)

    @property
    def binary(self) -> bool:
        """Whether every outcome is 0 or 1."""
        return bool(np.all(np.isin(self.z[self.labelled], (0.0, 1.0))))

    @property
    def win_rate(self) -> bool:
        """Whether outcomes are wins, ties and losses: 1, ½ and 0."""
        return not self.binary and bool(np.all(np.isin(self.z[self.labelled], (0.0, 0.5, 1.0))))

    @property
    def truth(self) -> float:
        """The mean outcome of the labelled rows."""
        return float(self.z[self.labelled].mean())


def arrays_of(path: Path) -> dict[str, AnyArray]:
    """Return the arrays of a NumPy archive by name.

    Raises
    ------
    InputError
        For a file that is none, or holds Python objects.
    """
    try:
        with np.load(path, allow_pickle=False) as opened:
            return dict(opened)
    except (ValueError, OSError, EOFError, BadZipFile, AttributeError, TypeError) as error:
        raise InputError(f"{path}: cannot be read as NumPy arrays ({error})") from None
