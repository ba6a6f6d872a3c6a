"""Plans: the expected precision of a budget, and further rounds that use the current labels.

`next_round` extends a sample, with or without its labels; `opt_a1` and `opt_a2` run all rounds with a
callable that returns labels.
"""

from stratal.planning.power import CheapestSamples, cheapest_samples, plan_to_detect
from stratal.planning.rounds import RequiredSampleSize, labels_needed, next_round, opt_a1, opt_a2
from stratal.planning.stratum_deviations import estimated_deviations

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
