"""What was measured to go wrong in other packages, each a test that must pass here.

The classes say whose defect it is: ssepy 0.1.1, ppi-python 0.2.3, glide-py 0.10.0, truescore 0.7.4, svy 0.35,
kmeans1d 0.5. Coverage of the same cells: `tests/simulation/test_coverage.py`.
"""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest
from tests.tiers import cells, sized
from tests.work import calls

import stratal
from stratal import strata as allocation
from stratal.designs import inclusion_probabilities
from stratal.errors import InputError

RATES = (0.5, 0.6, 0.75, 0.85, 0.95)


def strata_of(z, proxy, sizes):
    """Return a population that is stratified by category, and its strata."""
    kind = np.repeat([f"kind {h}" for h in range(len(sizes))], sizes)
    population = stratal.Population.from_arrays(proxy=proxy, groups={"kind": kind})
    return population, stratal.strata.stratify(population, "category", by="kind")


def drawn(population, strata, n_h, seed=1):
    allotted = stratal.strata.Allocation(
        n_h=np.array(n_h), method="given", budget=int(np.sum(n_h)), minimum=np.zeros(len(n_h), np.int64),
        maximum=strata.sizes,
    )  # fmt: skip
    return stratal.designs.Stratified(strata=strata, allocation=allotted).draw(population, seed=seed)


def outcome_of(sample, z):
    return z[np.asarray(sample.ids, dtype=np.int64)]


def judged(n=1000, p=0.9, agreement=0.85, seed=3):
    rng = np.random.default_rng(seed)
    z = (rng.random(n) < p).astype(float)
    return z, np.where(rng.random(n) < agreement, z, 1 - z)


class TestSsepy:
    def test_the_reported_variance_is_that_of_the_design_that_was_drawn(self):
        """A simple random sample was given the stratified variance, 11 times too small."""
        z = np.repeat([0.0, 1.0], 500)
        population, strata = strata_of(z, np.where(z == 1, 0.9, 0.1), [500, 500])
        random = stratal.designs.SimpleRandom(budget=50)
        errors, claimed = [], []
        for seed in range(200):
            sample = random.draw(population, seed=seed)
            estimate = stratal.estimate(sample, outcome_of(sample, z), estimator="horvitz-thompson")
            errors.append(estimate.value - 0.5)
            claimed.append(estimate.standard_error**2)
        assert np.mean(claimed) == pytest.approx(np.mean(np.square(errors)), rel=5 * np.sqrt(2 / 200))
        sample = drawn(population, strata, [25, 25])
        found = stratal.estimate(sample, outcome_of(sample, z))
        assert found.evidence.variance == 0
        # What is reported is never 0 while units are unlabelled: strata whose labels agree may hide others.
        assert 0 < found.standard_error < np.sqrt(np.mean(claimed)) / 2

    def test_a_stratum_without_labels_keeps_its_proxy_mean(self):
        """One was dropped with its proxy's mean: .513 for a truth of .9975."""
        z = np.ones(1000)
        population, strata = strata_of(z, np.full(1000, 0.99), [500, 500])
        sample = drawn(population, strata, [20, 20])
        labels = {unit: 1.0 for unit, h in zip(sample.ids.tolist(), sample.stratum, strict=True) if h == 0}
        with pytest.warns(stratal.StratalWarning, match="merged"):
            estimate = stratal.estimate(sample, labels, estimator="difference")
        assert estimate.value == pytest.approx(1.0)

    def test_one_label_in_a_stratum_is_no_zero_variance(self):
        rng = np.random.default_rng(4)
        z = rng.normal(size=400)
        population, strata = strata_of(z, np.full(400, 0.5), [100] * 4)
        sample = drawn(population, strata, [1, 1, 1, 1])
        estimate = stratal.estimate(sample, outcome_of(sample, z), estimator="horvitz-thompson")
        assert estimate.standard_error > 0.1

    @pytest.mark.parametrize("budget", [10, 15, 23, 37])
    def test_the_budget_is_spent_exactly(self, budget):
        """Asked for 15, allocated 20; what was left over went to random strata."""
        found = {tuple(allocation.neyman([400] * 10, [0.3] * 10, budget, minimum=1)) for _ in range(3)}
        assert len(found) == 1
        assert sum(found.pop()) == budget

    def test_poisson_variances_are_unbiased_and_exist_for_differences(self):
        z, judge = judged(400, p=0.5)  # no estimate near 1, where it would be cut
        population = stratal.Population.from_arrays(proxy=np.where(judge == 1, 0.8, 0.3))
        for estimator in ("horvitz-thompson", "difference"):
            errors, claimed = [], []
            for seed in range(400):
                sample = stratal.designs.Poisson(budget=60).draw(population, seed=seed)
                estimate = stratal.estimate(sample, outcome_of(sample, z), estimator=estimator)
                errors.append(estimate.value - z.mean())
                claimed.append(estimate.standard_error**2)
            assert np.mean(claimed) == pytest.approx(np.mean(np.square(errors)), rel=5 * np.sqrt(2 / 400))

    def test_probabilities_above_one_are_made_certain(self):
        """They crashed."""
        population = stratal.Population.from_arrays(proxy=[0.5] * 5 + [0.999] * 95)
        sample = stratal.designs.ProportionalToSize(budget=60).draw(population, seed=1)
        assert sample.size == 60
        assert sample.inclusion_probability.max() <= 1
        assert inclusion_probabilities(np.array([100.0, 1, 1, 1]), 3).tolist()[0] == 1

    def test_missing_labels_do_not_shrink_the_estimate(self):
        """Half of them missing gave .275 for .507."""
        z = np.tile([0.0, 1.0], 1000)
        population = stratal.Population.from_arrays(proxy=np.full(2000, 0.5))
        sample = stratal.designs.SimpleRandom(budget=400).draw(population, seed=2)
        labels = outcome_of(sample, z)
        labels[::2] = np.nan
        with pytest.warns(stratal.StratalWarning, match="no label"):
            estimate = stratal.estimate(sample, labels)
        assert abs(estimate.value - 0.5) < 4 * estimate.standard_error
        assert estimate.value == pytest.approx(float(np.nanmean(labels)))

    def test_a_seed_reproduces_a_draw_whatever_the_global_generators_say(self):
        population = stratal.Population.from_arrays(proxy=np.linspace(0.1, 0.9, 500))
        samples = []
        for state in (1, 2):
            np.random.seed(state)  # noqa: NPY002
            samples.append(stratal.plan(population, budget=50).draw(seed=7))
        assert samples[0] == samples[1]

    def test_neyman_knows_that_squared_errors_are_no_zeros_and_ones(self):
        """p(1 − p) of the proxy stood in for every outcome's variance."""
        probabilities = np.random.default_rng(1).dirichlet([5.0, 1, 1], 3000)
        proxy = stratal.proxy.squared_error(probabilities)
        strata = stratal.strata.stratify(stratal.Population.from_arrays(proxy=proxy), n_strata=5)
        binary = np.sqrt(strata.proxy_means * (1 - strata.proxy_means))
        assert not np.allclose(strata.standard_deviations, binary, rtol=0.05)

    def test_lam_is_fitted_per_stratum_and_not_clipped_unless_asked(self):
        z, judge = judged(1000, p=0.6)
        flipped = np.concatenate([judge[:500], 1 - judge[500:]])
        population, strata = strata_of(z, flipped, [500, 500])
        sample = drawn(population, strata, [100, 100])
        labels = outcome_of(sample, z)
        free = stratal.estimate(sample, labels, estimator="stratppi")
        clipped = stratal.estimate(sample, labels, estimator="stratppi", clip=True)
        first, second = (stratum["lam"][0] for stratum in free.to_dict()["strata"])
        assert first > 0.3
        assert second < -0.3
        assert all(0 <= stratum["lam"][0] <= 1 for stratum in clipped.to_dict()["strata"])
        low, high = free.confidence_interval()
        assert low < free.value < high


class TestPpiPython:
    def test_a_one_sided_request_gets_a_one_sided_interval_with_a_fitted_lam(self):
        z, judge = judged()
        sample = stratal.designs.SimpleRandom(budget=100).draw(
            stratal.Population.from_arrays(proxy=judge), seed=1
        )
        estimate = stratal.estimate(sample, outcome_of(sample, z), estimator="ppi++")
        low, high = estimate.confidence_interval(0.95)
        above, below = (
            tuple(estimate.confidence_interval(0.95, alternative=side)) for side in ("greater", "less")
        )
        assert above[1] == 1
        assert below[0] == 0
        assert low < above[0]
        assert below[1] < high

    @pytest.mark.parametrize(("n", "p"), cells([(20, 0.9), (30, 0.97), (100, 0.97)], fast=(30,)))
    def test_coverage_of_a_judged_simple_random_sample(self, n, p):
        """.857, .585 and .846 at nominal .95."""
        draws = sized(200, 400)
        z, judge = judged(1000, p)
        population = stratal.Population.from_arrays(proxy=judge)
        held = []
        for seed in range(draws):
            sample = stratal.designs.SimpleRandom(budget=n).draw(population, seed=seed)
            estimate = stratal.estimate(sample, outcome_of(sample, z), estimator="ppi++")
            held.append(z.mean() in estimate.confidence_interval())
        assert np.mean(held) >= 0.94 - 3 * np.sqrt(0.94 * 0.06 / draws)

    def test_all_right_is_not_certain(self):
        """It gave [1, 1]."""
        population = stratal.Population.from_arrays(proxy=np.linspace(0.5, 1, 1000))
        sample = stratal.designs.SimpleRandom(budget=30).draw(population, seed=1)
        low, high = stratal.estimate(sample, np.ones(30), estimator="ppi++").confidence_interval()
        assert 0.8 < low < 0.95
        assert high == pytest.approx(1, abs=1e-3)

    def test_interval_and_p_value_agree_under_negative_correlation(self):
        z, judge = judged(p=0.7)
        population = stratal.Population.from_arrays(proxy=1 - judge)
        sample = stratal.designs.SimpleRandom(budget=120).draw(population, seed=1)
        for clip in (False, True):
            estimate = stratal.estimate(sample, outcome_of(sample, z), estimator="ppi++", clip=clip)
            low, high = estimate.confidence_interval(0.95)
            assert estimate.p_value(low - 1e-4) < 0.05 < estimate.p_value(low + 1e-4)
            assert estimate.p_value(high + 1e-4) < 0.05 < estimate.p_value(high - 1e-4)

    def test_importing_silences_no_warning(self):
        code = (
            "import warnings; before = list(warnings.filters)\n"
            "import stratal; [getattr(stratal, name) for name in stratal.__all__]\n"
            "assert all(entry in warnings.filters for entry in before)\n"
            "added = [entry for entry in warnings.filters if entry not in before and entry[0] == 'ignore']\n"
            "assert not [entry for entry in added if entry[2] in (Warning, UserWarning) and not entry[1]]\n"
            "with warnings.catch_warnings(record=True) as seen:\n"
            "    warnings.warn('heard', UserWarning)\n"
            "assert len(seen) == 1"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

    def test_a_quantile_needs_no_matrix_of_the_population(self):
        """An N × 5000 matrix: 8 GB for these."""
        import tracemalloc

        population = stratal.Population.from_arrays(proxy=np.random.default_rng(1).random(200_000))
        sample = stratal.designs.SimpleRandom(budget=500).draw(population, seed=1)
        tracemalloc.start()
        stratal.estimate(sample, np.random.default_rng(2).normal(size=500), estimand="quantile:0.5")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20e6


class TestGlide:
    def test_a_constant_proxy_in_a_stratum_has_lam_zero(self):
        """It raised, so that nobody could stratify by a judge's verdict."""
        z, judge = judged()
        population = stratal.Population.from_arrays(proxy=judge)
        strata = stratal.strata.stratify(population, n_strata=2)
        sample = drawn(population, strata, [30, 30])
        estimate = stratal.estimate(sample, outcome_of(sample, z), estimator="stratppi")
        assert all(stratum["lam"] == [0.0] for stratum in estimate.to_dict()["strata"])

    def test_equal_labels_are_no_exception(self):
        population = stratal.Population.from_arrays(proxy=np.linspace(0.9, 1, 1000))
        sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=1)
        for estimator in ("horvitz-thompson", "difference", "ppi++", "stratppi"):
            low, high = stratal.estimate(sample, np.ones(20), estimator=estimator).confidence_interval()
            assert 0 <= low < high <= 1

    def test_neyman_redistributes_what_a_stratum_cannot_take(self):
        assert allocation.neyman([3, 100, 100], [1.0, 0.1, 0.001], 20).tolist() == [3, 15, 2]

    def test_saturated_inclusion_probabilities_are_fast(self):
        """167 s at N = 1000."""
        sizes = np.exp(np.random.default_rng(1).normal(scale=5, size=1000))
        found, work = calls(inclusion_probabilities, sizes, 900)
        assert work < 200
        assert found.sum() == pytest.approx(900)
        assert found.max() <= 1

    @pytest.mark.parametrize("n_h", cells([5, 10, 20, 50], fast=(5,)))
    def test_coverage_of_five_strata(self, n_h):
        """.762, .810, .855 and .932 at nominal .95."""
        rng = np.random.default_rng(8)
        z = (rng.random(1000) < np.repeat(RATES, 200)).astype(float)
        judge = np.where(rng.random(1000) < 0.85, z, 1 - z)
        population, strata = strata_of(z, judge, [200] * 5)
        held = []
        for seed in range(200):
            sample = drawn(population, strata, [n_h] * 5, seed=seed)
            estimate = stratal.estimate(sample, outcome_of(sample, z), estimator="stratppi")
            held.append(z.mean() in estimate.confidence_interval())
        assert np.mean(held) >= 0.94 - 3 * np.sqrt(0.94 * 0.06 / 200)

    def test_the_finite_population_is_corrected_for(self):
        z, judge = judged()
        sample = stratal.designs.SimpleRandom(budget=1000).draw(
            stratal.Population.from_arrays(proxy=judge), seed=1
        )
        estimate = stratal.estimate(sample, outcome_of(sample, z), estimator="ppi++", target="population")
        assert estimate.standard_error == 0
        assert estimate.value == pytest.approx(z.mean())


class TestTruescore:
    @pytest.mark.parametrize("right", [0.0, 1.0])
    def test_intervals_stay_inside_the_bounds(self, right):
        """All right gave [.919, 1.081]."""
        population = stratal.Population.from_arrays(proxy=np.linspace(0.1, 1, 1000))
        sample = stratal.designs.SimpleRandom(budget=40).draw(population, seed=1)
        estimate = stratal.estimate(sample, np.full(40, right), estimator="difference")
        for method in ("auto", "t", "normal", "wilson", "clopper-pearson", "bootstrap", "betting"):
            low, high = estimate.confidence_interval(method=method)
            assert 0 <= low < high <= 1

    def test_weights_are_not_ignored(self):
        rows = {"right": [1, 1, 1, 0, 0, 0], "w": [10, 10, 10, 1, 1, 1]}
        sample, labels = stratal.Sample.from_labelled(rows, value="right", weight="w")
        assert stratal.estimate(sample, labels).value == pytest.approx(30 / 33)

    def test_coverage_of_a_post_stratified_sample(self):
        """.922 at five labels per stratum."""
        rng = np.random.default_rng(9)
        z = (rng.random(1000) < np.repeat(RATES, 200)).astype(float)
        kind = np.repeat([f"kind {h}" for h in range(5)], 200)
        held = []
        for seed in range(300):
            units = np.random.default_rng(seed).choice(1000, 25, replace=False)
            if len(set(kind[units])) < 5:
                continue
            sample, labels = stratal.Sample.from_labelled(
                {"right": z[units], "kind": kind[units]}, value="right", stratum="kind",
                sizes={f"kind {h}": 200 for h in range(5)},
            )  # fmt: skip
            held.append(z.mean() in stratal.estimate(sample, labels).confidence_interval())
        assert len(held) > 200
        assert np.mean(held) >= 0.94 - 3 * np.sqrt(0.94 * 0.06 / len(held))


class TestSvy:
    def test_no_stratum_is_left_empty_where_a_minimum_of_one_is_feasible(self):
        """(10, 0, 0)."""
        assert allocation.neyman([1000, 10, 10], [1.0, 0.001, 0.001], 10, minimum=1).min() == 1

    @pytest.mark.parametrize("seed", range(25))
    def test_neyman_is_optimal_among_all_integers(self, seed):
        """12 % of random feasible cases were not."""
        rng = np.random.default_rng(seed)
        sizes, deviations = rng.integers(3, 9, 3), rng.random(3)
        budget = int(rng.integers(6, sizes.sum()))
        found = allocation.neyman(sizes.tolist(), deviations.tolist(), budget, minimum=1)

        def variance(n_h):
            return float(np.sum((sizes * deviations) ** 2 * (1 / np.array(n_h) - 1 / sizes)))

        ranges = [range(1, int(size) + 1) for size in sizes]
        best = min(variance(n_h) for n_h in itertools.product(*ranges) if sum(n_h) == budget)
        assert variance(found) == pytest.approx(best, abs=1e-12)

    @pytest.mark.parametrize("right", [0.0, 1.0])
    def test_no_interval_of_zero_width_at_nought_and_all(self, right):
        population, strata = strata_of(np.ones(200), np.full(200, 0.5), [100, 100])
        sample = drawn(population, strata, [10, 10])
        for method in ("auto", "logit", "wilson", "korn-graubard", "bootstrap"):
            low, high = stratal.estimate(sample, np.full(20, right)).confidence_interval(method=method)
            assert high - low > 0.01


class TestKmeans1d:
    def test_an_offset_does_not_spoil_the_strata(self):
        """At an offset of 1e8 the sum of squares was 21 times the optimum."""
        values = np.random.default_rng(2).random(3000)
        sums = []
        for offset in (0.0, 1e8):
            population = stratal.Population.from_arrays(proxy=values + offset, scaled=False)
            strata = stratal.strata.stratify(population, n_strata=10)
            sums.append(float(np.sum(strata.sizes * strata.proxy_variances)))
        assert sums[1] == pytest.approx(sums[0], rel=1e-4)

    @pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
    def test_nan_is_refused_by_name(self, wrong):
        with pytest.raises(InputError, match=r"NaN|infinite"):
            stratal.Population.from_arrays(proxy=[0.1, wrong, 0.5])

    def test_repeated_values_count_as_often_as_they_occur(self):
        values, counts = np.array([0.1, 0.15, 0.8, 0.9]), np.array([1, 50, 3, 7])
        population = stratal.Population.from_arrays(proxy=np.repeat(values, counts))
        assert stratal.strata.stratify(population, n_strata=2).sizes.tolist() == [51, 10]
