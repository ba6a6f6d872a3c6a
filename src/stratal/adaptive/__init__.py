"""Adaptive designs: label a pilot, learn which strata vary, and extend the same draw.

`next_round` extends a sample where its labels say; `extend` does so without looking at labels; `opt_a1` and
`opt_a2` run all rounds against a callable that labels.
"""

from stratal.adaptive.deviations import estimated_deviations, raw_deviations
from stratal.adaptive.extending import extend
from stratal.adaptive.oracle import first_round, opt_a1, opt_a2
from stratal.adaptive.rounds import next_allocation, next_round

__all__ = [
    "estimated_deviations",
    "extend",
    "first_round",
    "next_allocation",
    "next_round",
    "opt_a1",
    "opt_a2",
    "raw_deviations",
]
