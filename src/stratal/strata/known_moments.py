"""What must be known of strata to divide labels among them, and to say how an outcome may vary in each."""

from __future__ import annotations

from typing import Protocol

from stratal.arrays import FloatArray, IntArray


class KnownMoments(Protocol):
    """Sizes of strata, and the plug-in moments of the outcome in each."""

    @property
    def sizes(self) -> IntArray:
        """N_h (H,)."""

    @property
    def standard_deviations(self) -> FloatArray:
        """Plug-in S_h (H,)."""

    @property
    def proxy_means(self) -> FloatArray:
        """Mean of E[z | x] (H,)."""

    @property
    def proxy_variances(self) -> FloatArray:
        """Variance of E[z | x] within the stratum (H,), divisor N_h."""

    @property
    def conditional_variances(self) -> FloatArray:
        """Mean of Var(z | x) (H,)."""

    @property
    def scaled(self) -> bool:
        """Whether the proxy is on the outcome's scale; a margin only orders."""

    @property
    def bounds(self) -> tuple[float, float]:
        """The outcome's limits."""
