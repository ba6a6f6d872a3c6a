"""Means: the special cases that must collapse, how λ is fitted, and the peers' defects."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import stratal
from stratal.designs import PoissonWeighting, StratifiedWeighting
from stratal.errors import InputError
from stratal.estimation.default_estimator import default_estimator
from stratal.estimation.estimate import Estimate, Nonresponse
from stratal.estimation.lam import LabelledProxies
from stratal.estimation.outcome_means import ESTIMATORS, MeanEstimate, estimate_mean, linearised_mean
from stratal.population.summary import StratumSummary

FITTED = ["ppi++", "stratppi"]


class Problem:
    """A population with strata, outcomes and proxies, and a sample of it."""

    def __init__(self, sizes, n_h, *, seed=0, k=1, proxy=None, noise=0.5):
        rng = np.random.default_rng(seed)
        self.sizes = np.array(sizes)
        self.stratum = np.repeat(np.arange(len(sizes)), sizes)
        score = rng.normal(size=len(self.stratum)) + self.stratum
        self.z = score + noise * rng.normal(size=len(score))
        columns = [score, rng.normal(size=len(score)), score**2][:k]
        self.proxy = np.column_stack(columns) if proxy is None else proxy(self)
        self.units = np.concatenate(
            [rng.permutation(np.flatnonzero(self.stratum == h))[:n] for h, n in enumerate(n_h)]
        )

    @property
    def moments(self) -> LabelledProxies:
        summary = self.summary
        return LabelledProxies(
            values=self.proxy[self.units],
            stratum=self.stratum[self.units],
            summary=StratumSummary(
                sizes=self.sizes, proxy_means=summary.proxy_means, proxy_covariances=summary.proxy_covariances
            ),
        )

    @property
    def summary(self) -> StratumSummary:
        parts = [self.proxy[self.stratum == h] for h in range(len(self.sizes))]
        return StratumSummary(
            sizes=self.sizes,
            proxy_means=np.stack([part.mean(axis=0) for part in parts]),
            proxy_covariances=np.stack([np.atleast_2d(np.cov(part.T, ddof=0)) for part in parts]),
        )

    @property
    def weighting(self) -> StratifiedWeighting:
        return StratifiedWeighting(stratum=self.stratum[self.units], sizes=self.sizes)

    def mean(self, **options) -> MeanEstimate:
        return linearised_mean(self.z[self.units], self.moments, weighting=self.weighting, **options)

    def estimate(self, **options) -> Estimate:
        return estimate_mean(
            self.z[self.units], self.proxy[self.units], self.weighting, self.summary,
            stratum=self.stratum[self.units], **options,
        )  # fmt: skip


@pytest.mark.parametrize("estimator", [e for e in ESTIMATORS if e != "hajek"])
def test_a_census_is_the_truth_without_error(estimator):
    problem = Problem([10, 20], [10, 20])
    result = problem.mean(estimator=estimator)

    assert problem.z.mean() == pytest.approx(result.value, abs=1e-12)
    assert result.variance == 0


def test_a_proxy_equal_to_the_outcome_leaves_no_error():
    problem = Problem([50, 60], [10, 12], proxy=lambda p: p.z[:, None])
    result = problem.mean(lam=1.0)

    assert problem.z.mean() == pytest.approx(result.value, abs=1e-12)
    assert result.variance == pytest.approx(0, abs=1e-24)


@pytest.mark.parametrize("estimator", FITTED)
@pytest.mark.parametrize("value", [0.0, 0.3, 1e8])
def test_a_constant_proxy_has_no_weight(estimator, value):
    """Peers: a constant proxy in a stratum raises."""
    problem = Problem([50, 60], [10, 12], proxy=lambda p: np.full((len(p.z), 1), value))
    result, plain = problem.mean(estimator=estimator), problem.mean()

    assert not np.any(result.lam)
    assert plain.value == pytest.approx(result.value)
    assert plain.variance == pytest.approx(result.variance)


def test_a_proxy_constant_within_one_stratum():
    problem = Problem([50, 60], [10, 12], proxy=lambda p: np.where(p.stratum == 0, 0.7, p.z)[:, None])
    lam = problem.mean(estimator="stratppi").lam

    assert lam[0, 0] == 0
    assert lam[1, 0] > 0.5


def test_lam_0_is_horvitz_thompson():
    problem = Problem([50, 60], [10, 12])
    given, plain = problem.mean(lam=0.0), problem.mean(estimator="horvitz-thompson")

    assert plain.value == pytest.approx(given.value, abs=1e-12)
    assert plain.variance == pytest.approx(given.variance, rel=1e-12)


def test_one_stratum_per_stratum_lam_is_the_pooled_one():
    problem = Problem([200], [30])

    assert problem.mean(estimator="ppi++").value == problem.mean(estimator="stratppi").value


def test_pooled_lam_minimises_the_stratified_variance():
    """With the population's own proxy variance in the sample, no other λ has a smaller variance estimate."""
    problem = Problem([40, 40], [40, 40])
    z, h = problem.z, problem.stratum
    lam = []
    # Far from a census the factors of both strata are equal; use the moments of the whole population.
    for slope in np.linspace(-1, 3, 4001):
        residual = z - slope * problem.proxy[:, 0]
        lam.append(sum(residual[h == g].var(ddof=1) for g in (0, 1)))
    best = np.linspace(-1, 3, 4001)[np.argmin(lam)]
    within_z, within_x = (
        v - np.array([v[h == g].mean() for g in (0, 1)])[h] for v in (z, problem.proxy[:, 0])
    )
    total = np.cov(z, problem.proxy[:, 0])

    from stratal.designs.stratum_moments import stratum_moments
    from stratal.estimation.lam import pooled_lam

    moments = stratum_moments(z, problem.proxy, h, 2)
    pooled = pooled_lam(moments.cross_covariances, moments.proxy_covariances, np.ones(2))
    assert best == pytest.approx(pooled[0], abs=1e-3)
    assert pooled[0] == pytest.approx((within_z @ within_x) / (within_x @ within_x))
    assert abs(pooled[0] - total[0, 1] / total[1, 1]) > 1e-3


def test_several_proxies_explain_more():
    one, two = (Problem([300], [60], k=k, seed=3).mean(estimator="ppi++") for k in (1, 2))

    assert two.lam.shape == (1, 2)
    assert two.degrees_of_freedom == one.degrees_of_freedom - 1


def test_collinear_proxies_are_one():
    problem = Problem([300], [60], seed=3)
    twice = Problem([300], [60], seed=3, proxy=lambda p: np.column_stack([problem.proxy, 2 * problem.proxy]))

    one, two = (p.mean(estimator="ppi++", shrinkage=0.0).value for p in (problem, twice))
    assert one == pytest.approx(two)


def test_fitting_lam_costs_degrees_of_freedom():
    problem = Problem([100, 100], [3, 3], seed=5)
    fitted = problem.mean(estimator="ppi++")
    given = problem.mean(lam=fitted.lam)

    assert given.value == pytest.approx(fitted.value)
    assert given.variance < fitted.variance
    assert fitted.degrees_of_freedom == pytest.approx(max(given.degrees_of_freedom - 1, 1))


def test_shrinkage_and_clipping():
    problem = Problem([200, 200], [8, 8], seed=6)
    pooled = problem.mean(estimator="ppi++").lam
    own = problem.mean(estimator="stratppi", shrinkage=0.0).lam
    between = problem.mean(estimator="stratppi").lam

    assert np.all(np.abs(between - pooled) < np.abs(own - pooled))
    opposite = Problem([200], [50], proxy=lambda p: -p.z[:, None])
    assert opposite.mean(estimator="ppi++").lam[0, 0] == pytest.approx(-1, abs=0.35)
    clipped = opposite.mean(estimator="ppi++", clip=True)
    assert clipped.lam[0, 0] == 0
    assert any("clipped" in note for note in clipped.notes)


def test_unlabelled_strata_do_not_bias():
    """Peers: a stratum with n_h = 0 was dropped with its proxy mean: truth 0.9975, estimate 0.513."""
    proxy = np.r_[np.full(100, 0.02), np.full(100, 0.995)]
    z = np.r_[np.zeros(100), np.ones(100)]
    z[0] = 1
    stratum = np.repeat([0, 1], 100)
    units = np.arange(100, 110)
    moments = LabelledProxies(
        values=proxy[units, None],
        stratum=stratum[units],
        summary=StratumSummary(
            sizes=np.array([100, 100]),
            proxy_means=np.array([[0.02], [0.995]]),
            proxy_covariances=np.zeros((2, 1, 1)),
        ),
    )
    weighting = StratifiedWeighting(stratum=stratum[units], sizes=np.array([100, 100]))
    result = linearised_mean(z[units], moments, weighting=weighting, estimator="difference")

    assert z.mean() == pytest.approx(result.value, abs=0.02)


def test_one_label_in_a_stratum_is_no_zero_variance():
    """Peers: n_h = 1 counted as zero variance."""
    problem = Problem([50, 50], [1, 10])

    assert problem.mean().variance > 0.25 * problem.z[problem.units[1:]].var(ddof=1) * 0.9


def test_poisson_difference_has_a_variance():
    """Peers: the difference variance under Poisson sampling was missing."""
    problem = Problem([60], [20])
    weighting = PoissonWeighting(inclusion_probability=np.full(20, 1 / 3), size=60)
    for estimator in ("difference", "ppi++", "hajek"):
        result = linearised_mean(
            problem.z[problem.units], problem.moments, weighting=weighting, estimator=estimator
        )
        assert result.variance > 0
    with pytest.raises(InputError, match="stratified sample"):
        linearised_mean(problem.z[problem.units], problem.moments, weighting=weighting, estimator="stratppi")


@pytest.mark.parametrize("lam", [0.5, [0.5], [0.5, 0.5], [[0.5], [0.5]]])
def test_shapes_of_a_stated_lam(lam):
    assert np.all(Problem([50, 60], [10, 12]).mean(lam=lam).lam == 0.5)


@pytest.mark.parametrize("lam", [[1, 2, 3], np.nan, [[1, 2]]])
def test_bad_lam(lam):
    with pytest.raises(InputError, match="λ"):
        Problem([50, 60], [10, 12]).mean(lam=lam)


def test_bad_names():
    problem = Problem([50, 60], [10, 12])
    with pytest.raises(InputError, match=r"no such estimator.*'ppi\+\+'"):
        problem.mean(estimator="ppi+")
    with pytest.raises(InputError, match="no such target"):
        problem.mean(target="sample")
    with pytest.raises(InputError, match="requires a proxy"):
        linearised_mean(problem.z[problem.units], weighting=problem.weighting, estimator="difference")


def test_a_proxy_on_no_scale_enters_only_through_a_fitted_lam():
    problem = Problem([50, 60], [10, 12])
    with pytest.raises(InputError, match="only orders"):
        problem.estimate(estimator="difference", scaled=False)
    with pytest.raises(InputError, match="only orders"):
        problem.estimate(lam=0.5, scaled=False)
    assert problem.estimate(estimator="ppi++", scaled=False).lam


def test_auto_depends_on_design_and_sizes_alone():
    assert default_estimator("simple-random", 50, 1, 1, scaled=True) == "ppi++"
    assert default_estimator("simple-random", 49, 1, 1, scaled=True) == "horvitz-thompson"
    assert default_estimator("simple-random", 50, 1, 1, scaled=False) == "horvitz-thompson"
    assert default_estimator("simple-random", 50, 1, 0, scaled=True) == "horvitz-thompson"
    assert default_estimator("stratified", 500, 10, 1, scaled=True) == "horvitz-thompson"


def test_superpopulation_is_wider_and_known_weights_less_so():
    problem = Problem([50, 60], [10, 12])
    here, known, drawn = (
        problem.mean(**options).variance
        for options in (
            {},
            {"target": "superpopulation", "stratum_weights_known": True},
            {"target": "superpopulation"},
        )
    )

    assert here < known < drawn


def test_the_twin_and_the_text():
    problem = Problem([50, 60], [10, 12])

    def of_sample() -> Estimate:
        made = problem.estimate(estimator="ppi++", notes=("a note",))
        table = replace(made.stratum_table, names=("low", "high"))
        return replace(made, stratum_table=table, nonresponse=Nonresponse(drawn=25, labelled=22))

    estimate = of_sample()
    twin = estimate.to_dict()

    assert twin["nonresponse"] == {
        "drawn": 25,
        "labelled": 22,
        "rate": pytest.approx(0.12),
        "worst_bounds": None,
    }
    assert [row["name"] for row in twin["strata"]] == ["low", "high"]
    assert twin["confidence_interval"] == list(estimate.confidence_interval())
    assert twin["interval_method"] == "skewness-corrected"
    assert "a note" in twin["notes"]
    text = str(estimate)
    assert "random labels" in text
    assert "3 of 25 drawn units have no label" in text
    assert "<table>" in estimate._repr_html_()
    assert estimate == of_sample()
    assert estimate != problem.estimate()
    with pytest.raises(TypeError):
        hash(estimate)


def test_effective_sample_size_of_a_simple_random_sample_is_its_size():
    estimate = Problem([500], [40]).estimate(design="simple-random", estimator="horvitz-thompson")

    assert estimate.effective_sample_size == pytest.approx(40)
    assert estimate.design_effect == pytest.approx(1)
    assert estimate.relative_efficiency == pytest.approx(1)


def test_values_stay_within_the_bounds():
    """A difference estimate can leave [0, 1]; what is reported cannot."""
    z, proxy = np.ones(10), np.full((10, 1), 0.2)
    stratum = np.zeros(10, dtype=np.int64)
    summary = StratumSummary(
        sizes=np.array([100]), proxy_means=np.array([[0.6]]), proxy_covariances=np.array([[[0.1]]])
    )
    weighting = StratifiedWeighting(stratum=stratum, sizes=np.array([100]))
    estimate = estimate_mean(z, proxy, weighting, summary, stratum=stratum, estimator="difference")

    assert estimate.value == 1.0
    assert estimate.confidence_interval().low < 1.0


def test_a_difference_estimate_beyond_the_bounds_says_what_it_was():
    """The value would be z̄ plus what the sample's mean proxy falls short of the population's."""
    population = stratal.Population.from_arrays(proxy=np.r_[np.zeros(250), np.full(250, 0.2)])
    sample = stratal.designs.SimpleRandom(budget=31).draw(population, seed=1)
    short = 0.1 - float(sample.proxies.mean())
    beyond, inside = (1.0, 0.0) if short > 0 else (0.0, 1.0)
    estimate = stratal.estimate(sample, np.full(31, beyond), estimator="difference")
    notes = [note for note in estimate.notes if "possible value, so this limit is shown instead" in note]

    assert abs(short) > 0.001
    assert estimate.value == beyond
    assert len(notes) == 1
    assert f"{beyond + short:.4g}" in notes[0]
    other = stratal.estimate(sample, np.full(31, inside), estimator="difference")
    assert other.value == pytest.approx(inside + short)
    assert not [note for note in other.notes if "possible value, so this limit is shown instead" in note]
