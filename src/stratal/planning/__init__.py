"""What a budget buys: expectations, plans, and rounds that learn from the labels so far.

`next_round` extends a sample, where its labels say or without looking at them; `opt_a1` and `opt_a2` run all
rounds against a callable that labels.
"""

from stratal.planning.interim_analysis import estimated_deviations
from stratal.planning.power import CheapestSamples, cheapest_samples, plan_to_detect
from stratal.planning.rounds import RequiredSampleSize, labels_needed, next_round, opt_a1, opt_a2

__all__ = [
    "CheapestSamples",
    "RequiredSampleSize",
    "cheapest_samples",
    "estimated_deviations",
    "labels_needed",
    "next_round",
    "opt_a1",
    "opt_a2",
    "plan_to_detect",
]
