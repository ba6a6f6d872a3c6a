"""What must be known of strata to say how an outcome may vary in them."""

from __future__ import annotations

from typing import Protocol

from stratal.arrays import FloatArray, IntArray


class Divided(Protocol):
    """What the ways in which a proxy may be off need of strata: `stratal.strata.Strata` has it all."""

    @property
    def sizes(self) -> IntArray:
        """N_h (H,)."""

    @property
    def proxy_means(self) -> FloatArray:
        """Mean proxy of each stratum (H,)."""

    @property
    def proxy_variances(self) -> FloatArray:
        """Variance of the proxy within each stratum (H,), divisor N_h."""

    @property
    def conditional_variances(self) -> FloatArray:
        """Mean plug-in Var(z | x) (H,)."""

    @property
    def standard_deviations(self) -> FloatArray:
        """Plug-in S_h (H,)."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Of the outcome."""

    @property
    def scaled(self) -> bool:
        """Whether the proxy is on the outcome's scale."""
