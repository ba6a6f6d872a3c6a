"""Guards of linearised values: how much pseudo-labels count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stratal.designs import StratifiedWeighting
from stratal.estimation.linearised import adaptive_label_share
from stratal.metrics.associations import association, pearson
from stratal.metrics.ranking import area_under_curve, average_precision, ranking_metric


def test_labels_that_chose_the_allocation_widen_the_interval_of_a_ranking_and_a_correlation():
    """Of two rounds with 300 labels, .92 of the intervals of Pearson's correlation held."""
    rng = np.random.default_rng(4)
    stratum = np.repeat([0, 1, 2], 40)
    score = rng.random(120) + stratum
    positive = rng.random(120) < np.array([0.05, 0.3, 0.9])[stratum]
    fixed = StratifiedWeighting(stratum=stratum, sizes=np.array([900, 500, 600]))
    adaptive = replace(fixed, has_adaptive_allocation=True)

    assert not np.any(adaptive_label_share(positive, fixed))
    shares = adaptive_label_share(positive, adaptive)
    assert np.all((shares > 0) & (shares < 1 / 40))
    for statistic in (area_under_curve, average_precision):
        before, after = (ranking_metric(statistic, score, positive, each) for each in (fixed, adaptive))
        assert after.value == before.value
        assert after.confidence_interval().low < before.confidence_interval().low
    before, after = (association(pearson, score, positive * 1.0, each) for each in (fixed, adaptive))
    assert after.value == before.value
    assert np.ptp(after.limits()) > np.ptp(before.limits())
