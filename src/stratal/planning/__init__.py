"""Plans: the expected precision of a budget, and further rounds that use the current labels.

`next_round` extends a sample, with or without its labels; `opt_a1` and `opt_a2` run all rounds with a
callable that returns labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stratal.names import import_on_use

if TYPE_CHECKING:
    from stratal.planning.power import CheapestSamples as CheapestSamples
    from stratal.planning.power import cheapest_samples as cheapest_samples
    from stratal.planning.power import plan_to_detect as plan_to_detect
    from stratal.planning.rounds import RequiredSampleSize as RequiredSampleSize
    from stratal.planning.rounds import labels_needed as labels_needed
    from stratal.planning.rounds import next_round as next_round
    from stratal.planning.rounds import opt_a1 as opt_a1
    from stratal.planning.rounds import opt_a2 as opt_a2
    from stratal.planning.stratum_deviations import estimated_deviations as estimated_deviations

_NAMES = {
    "stratal.planning.power": "CheapestSamples cheapest_samples plan_to_detect",
    "stratal.planning.rounds": "RequiredSampleSize labels_needed next_round opt_a1 opt_a2",
    "stratal.planning.stratum_deviations": "estimated_deviations",
}
__all__ = sorted(" ".join(_NAMES.values()).split())
__getattr__, __dir__ = import_on_use(__name__, _NAMES)
