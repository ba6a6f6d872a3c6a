from dataclasses import replace

import numpy as np
import pytest

from stratal.designs.stratum_moments import StratumMoments
from stratal.estimation.lam import LambdaEvidence, lam_of_classes, unseen_moments


def given(z, proxy, mean, variance):
    cross = np.cov(z, proxy)[0, 1]
    told = {"proxy_mean": mean, "proxy_variance": variance}
    return lam_of_classes(np.array(len(z)), np.mean(z), np.mean(proxy) - mean, cross, **told)


def test_many_labels_give_the_covariance_over_the_variance():
    rng = np.random.default_rng(1)
    proxy = rng.beta(2, 5, 200_000)
    z = (rng.random(200_000) < 0.1 + 0.5 * proxy).astype(float)

    assert given(z, proxy, proxy.mean(), proxy.var()) == pytest.approx(0.5, abs=0.02)


def test_positives_among_the_others_say_that_the_proxy_tells_nothing():
    proxy = np.linspace(0.0, 1.0, 100)
    z = np.zeros(100)
    z[[20, 80]] = 1.0

    assert abs(given(z, proxy, 0.5, proxy.var())) < 0.02


def test_a_sample_with_too_many_positives_does_not_overstate_it():
    """Twice as many positives as there are, which the proxies show: λ is that of the sample with as many."""
    rng = np.random.default_rng(2)

    def sample(positives: int) -> tuple[np.ndarray, np.ndarray]:
        z = np.r_[np.ones(positives), np.zeros(200 - positives)]
        return z, np.where(z == 1, 0.6, 0.02 + 0.02 * rng.random(200))

    mean, variance = 0.05 * 0.6 + 0.95 * 0.03, 0.05 * 0.95 * 0.57**2 * 2.0
    usual, many = (float(given(z, proxy, mean, variance)) for z, proxy in (sample(10), sample(20)))

    assert many < 1.45 * usual  # their covariances differ 1.9 times


def test_flipping_outcome_and_proxy_changes_nothing():
    rng = np.random.default_rng(3)
    proxy = rng.random(60)
    z = (rng.random(60) < proxy**3).astype(float)

    assert given(1 - z, 1 - proxy, 0.5, 1 / 12) == pytest.approx(float(given(z, proxy, 0.5, 1 / 12)))


def test_a_constant_proxy_gets_none_and_no_label_of_a_class_is_no_error():
    assert lam_of_classes(np.array(9), np.array(0.5), np.array(0.0), np.array(0.0), proxy_mean=0.5,
                          proxy_variance=0.0) == 0  # fmt: skip
    assert 0 < given(np.zeros(50), np.full(50, 0.02), 0.03, 0.01) < 1


def test_the_share_of_the_classes_is_none_without_information():
    moments = StratumMoments(
        counts=np.array([10]),
        outcome_means=np.zeros(1),
        proxy_means=np.zeros((1, 1)),
        outcome_variances=np.zeros(1),
        cross_covariances=np.zeros((1, 1)),
        proxy_covariances=np.array([[[0.1]]]),
    )
    spread = LambdaEvidence.of(moments)
    with_classes = replace(spread, class_lam=np.array(-1.0))
    shrunk = [one.shrink(np.ones((1, 1)), np.array([[[0.1]]]), np.ones(1)) for one in (spread, with_classes)]
    assert shrunk[0] == shrunk[1]


def missing(z, proxy, mean, variance):
    told = {"sample_variance": np.var(proxy, ddof=1), "proxy_variance": variance}
    return unseen_moments(np.array(len(z)), np.mean(z), np.mean(proxy) - mean, np.cov(z, proxy)[0, 1], **told)


def test_high_scores_that_were_not_drawn_are_taken_at_their_word_and_false_alarms_are_not():
    quiet, alarms = np.full(100, 0.02), np.r_[np.full(95, 0.02), np.full(5, 0.9)]
    mean, variance = 0.12, 0.1 * 0.9 * 0.88**2

    unlike, mean_of_unlike = missing(np.zeros(100), quiet, mean, variance)
    refuted, _ = missing(np.zeros(100), alarms, mean, variance)
    assert unlike == pytest.approx(variance)
    assert refuted < 0.1 * variance
    assert mean_of_unlike == pytest.approx(0.015)  # no more than a label and a half: none was positive


def test_what_is_missing_is_the_same_for_the_complement_and_nothing_in_a_census():
    rng = np.random.default_rng(4)
    proxy = rng.random(60)
    z = (rng.random(60) < proxy**3).astype(float)

    own, other = missing(z, proxy, 0.55, 0.11), missing(1 - z, 1 - proxy, 0.45, 0.11)
    assert own[0] == pytest.approx(other[0])
    assert own[1] == pytest.approx(1 - other[1])
    covariance, mean = missing(z, proxy, proxy.mean(), np.var(proxy, ddof=1))
    assert (covariance, mean) == (pytest.approx(0.0), pytest.approx(z.mean()))
