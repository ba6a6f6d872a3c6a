"""What a budget buys: expectations, plans, and rounds that learn from the labels so far.

`next_round` extends a sample where its labels say; `extend` does so without looking at labels; `opt_a1` and
`opt_a2` run all rounds against a callable that labels.
"""

from stratal.designs.extending import extend
from stratal.planning.costs import CheapestSamples, cheapest_samples
from stratal.planning.deviations import estimated_deviations, raw_deviations
from stratal.planning.labels_so_far import next_allocation
from stratal.planning.needs import Narrowing, labels_needed
from stratal.planning.oracle import first_round, opt_a1, opt_a2
from stratal.planning.rounds import next_round

__all__ = [
    "CheapestSamples",
    "Narrowing",
    "cheapest_samples",
    "estimated_deviations",
    "extend",
    "first_round",
    "labels_needed",
    "next_allocation",
    "next_round",
    "opt_a1",
    "opt_a2",
    "raw_deviations",
]
