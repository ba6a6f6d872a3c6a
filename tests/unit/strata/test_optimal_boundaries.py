from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.work import calls

import stratal
from stratal.population.distribution import Distribution
from stratal.strata import optimal_boundaries as kernels
from stratal.strata.optimal_boundaries import (
    PrefixSums,
    k_means_boundaries,
    k_means_boundaries_for_number,
    neyman_boundaries,
    neyman_boundaries_for_number,
    robust_neyman_boundaries,
    run_edges,
)


def picture(values, counts=None, second_moments=None, bounds=(0.0, 1.0)):
    values = np.asarray(values, float)
    counts = np.ones(len(values), int) if counts is None else np.asarray(counts)
    return Distribution(
        values=values, counts=counts, cuts=values[1:], second_moments=second_moments, bounds=bounds
    )


def edges_of(boundaries, n_bins):
    return np.array([0, *boundaries, n_bins])


def squares(distribution, boundaries):
    """Within-strata sum of squares, straight from the definition."""
    total = 0.0
    for start, end in itertools.pairwise(edges_of(boundaries, len(distribution.values))):
        values = np.repeat(distribution.values[start:end], distribution.counts[start:end])
        total += float(np.sum((values - values.mean()) ** 2))
    return total


def spread(distribution, boundaries):
    """Σ N_h S_h, straight from the definition."""
    total = 0.0
    for start, end in itertools.pairwise(edges_of(boundaries, len(distribution.values))):
        weights = distribution.counts[start:end] / distribution.counts[start:end].sum()
        mean = weights @ distribution.values[start:end]
        variance = weights @ distribution.second_moments[start:end] - mean**2
        total += distribution.counts[start:end].sum() * np.sqrt(max(variance, 0.0))
    return total


def robust_spread(distribution, boundaries):
    """Σ N_h S_h with S_h² = mean of r(1 − r) over nine slopes, straight from the definition."""
    low, high = distribution.bounds
    proxy = (distribution.values - low) / (high - low)
    mean = distribution.counts @ proxy / distribution.counts.sum()
    logit = np.log(proxy + 0.1 * (mean - proxy)) - np.log1p(-proxy - 0.1 * (mean - proxy))
    total = 0.0
    for start, end in itertools.pairwise(edges_of(boundaries, len(proxy))):
        counts = distribution.counts[start:end]
        variances = []
        for slope in 2.0 ** np.linspace(-2.0, 1.0, 9):
            centre = np.log(mean / (1.0 - mean))
            rates = 1.0 / (1.0 + np.exp(-centre - slope * (logit[start:end] - centre)))
            rate = counts @ rates / counts.sum()
            variances.append(rate * (1.0 - rate))
        total += counts.sum() * np.sqrt(np.mean(variances))
    return total


def best_of_all(distribution, n_strata, cost):
    inner = range(1, len(distribution.values))
    return min(cost(distribution, cut) for cut in itertools.combinations(inner, n_strata - 1))


class TestKMeans:
    def test_two_clear_groups(self):
        found = k_means_boundaries(picture([0.0, 0.1, 0.9, 1.0]), 2)

        assert [entry.tolist() for entry in found] == [[], [2]]

    def test_weights_move_the_cut(self):
        assert k_means_boundaries(picture([0.0, 0.4, 1.0], [1, 1, 100]), 2)[1].tolist() == [2]
        assert k_means_boundaries(picture([0.0, 0.6, 1.0], [100, 1, 1]), 2)[1].tolist() == [1]

    def test_one_bin_has_one_stratum(self):
        assert [entry.tolist() for entry in k_means_boundaries(picture([0.3], [7]), 10)] == [[]]

    def test_as_many_strata_as_bins_leave_no_spread(self):
        values = np.array([1.0, 2.0, 4.0, 8.0])

        assert k_means_boundaries(picture(values), 9)[-1].tolist() == [1, 2, 3]

    @pytest.mark.parametrize("shift", [0.0, 1e8, -1e8])
    def test_an_offset_changes_nothing(self, shift):
        values = np.arange(200) / 128.0
        counts = np.random.default_rng(5).integers(1, 50, 200)

        shifted = k_means_boundaries(picture(values + shift, counts), 8)

        expected = k_means_boundaries(picture(values, counts), 8)
        assert [entry.tolist() for entry in shifted] == [entry.tolist() for entry in expected]

    @pytest.mark.parametrize("far", [-1e12, 1e12, 1e100, -1e139])
    def test_one_unit_far_away_is_cut_off(self, far):
        bulk = np.arange(1, 65) / 64.0
        values = np.sort(np.append(bulk, far))

        found = k_means_boundaries(picture(values), 3)

        assert found[1].tolist() == ([1] if far < 0 else [64])
        inner = k_means_boundaries(picture(bulk), 2)[1] + (far < 0)
        assert set(inner.tolist()) < set(found[2].tolist())

    def test_every_layer_is_best_of_all_cuts(self):
        rng = np.random.default_rng(11)
        for _ in range(40):
            distribution = picture(np.unique(rng.normal(size=10)), None)
            distribution = picture(distribution.values, rng.integers(1, 30, len(distribution.values)))
            for boundaries in k_means_boundaries(distribution, 6):
                best = best_of_all(distribution, len(boundaries) + 1, squares)
                assert squares(distribution, boundaries) <= best * (1 + 1e-12) + 1e-12

    def test_halving_agrees_with_the_full_recursion(self):
        rng = np.random.default_rng(2)
        values = np.unique(np.concatenate([rng.beta(9, 1, 400), rng.normal(size=100)]))
        distribution = picture(values, rng.integers(1, 1000, len(values)))
        sums, n_bins = PrefixSums.of(distribution), len(values)
        best = np.full(n_bins + 1, np.inf)
        best[0] = 0.0
        for boundaries in k_means_boundaries(distribution, 7):
            full = np.full(n_bins + 1, np.inf)
            for end in range(1, n_bins + 1):
                starts = np.arange(end)
                full[end] = np.min(best[:end] + sums.squares_within(starts, np.full(end, end)))
            best = full
            assert squares(distribution, boundaries) == pytest.approx(best[n_bins], rel=1e-9)


SHAPES = {
    "even": lambda generator: generator.random(500),
    "at both ends": lambda generator: generator.beta(0.3, 0.3, 500),
    "heavy tails": lambda generator: generator.standard_t(1.5, 500),
    "log-normal": lambda generator: np.exp(generator.normal(0, 3, 500)),
    "one far away": lambda generator: np.append(generator.random(499), 1e100),
    "on a lattice": lambda generator: np.unique(generator.integers(0, 500, 900)) / 7,
}


class TestOneNumberOfStrata:
    """`k_means_boundaries_for_number` leaves out where a boundary cannot lie, and finds the same."""

    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("largest", [2, 50, 10**6])
    def test_the_cuts_are_those_of_the_whole_recursion(self, monkeypatch, shape, largest):
        for name, few in {
            "INITIAL_RUNS": 20,
            "MIN_BINS_FOR_WINDOWS": 80,
            "WINDOW_SIZE": 8,
            "MAX_DENSE_EDGES": 6,
        }.items():
            monkeypatch.setattr(kernels, name, few)
        generator = np.random.default_rng([largest, *map(ord, shape)])
        values = np.unique(SHAPES[shape](generator))
        distribution = picture(values, generator.integers(1, largest, len(values)))

        found = [k_means_boundaries_for_number(distribution, count).tolist() for count in (2, 3, 5)]

        boundaries = k_means_boundaries(distribution, 5)
        assert found == [boundaries[count - 1].tolist() for count in (2, 3, 5)]

    @pytest.mark.parametrize("shape", SHAPES)
    def test_every_boundary_lies_within_its_window(self, monkeypatch, shape):
        monkeypatch.setattr(kernels, "WINDOW_SIZE", 16)
        generator = np.random.default_rng([5, *map(ord, shape)])
        values = np.unique(np.concatenate([SHAPES[shape](generator) for _ in range(8)]))
        distribution = picture(values, generator.integers(1, 9, len(values)))
        best = k_means_boundaries(distribution, 9)[8]

        lowest, highest = kernels._boundary_windows(distribution, PrefixSums.of(distribution), 9)

        assert np.all(np.diff(lowest) > 0)
        assert np.all(np.diff(highest) > 0)
        assert np.all((lowest <= best) & (best <= highest))

    def test_windows_get_narrow_on_many_bins(self):
        distribution = picture(np.arange(20_000) / 128.0, np.random.default_rng(4).integers(1, 99, 20_000))

        lowest, highest = kernels._boundary_windows(distribution, PrefixSums.of(distribution), 10)

        assert np.max(highest - lowest) <= kernels.WINDOW_SIZE

    def test_few_bins_and_many_strata_are_found_too(self):
        distribution = picture(np.arange(60.0), np.random.default_rng(2).integers(1, 9, 60))

        assert k_means_boundaries_for_number(distribution, 1).tolist() == []
        assert len(k_means_boundaries_for_number(distribution, 59)) == 58
        assert len(k_means_boundaries_for_number(distribution, 99)) == 59

    @pytest.mark.parametrize("shape", SHAPES)
    def test_few_bins_are_cut_as_many_are(self, monkeypatch, shape):
        values = np.unique(SHAPES[shape](np.random.default_rng(6)))[-100:]
        distribution = picture(values, np.random.default_rng(7).integers(1, 40, len(values)))
        dense = k_means_boundaries(distribution, 8)
        monkeypatch.setattr(kernels, "MAX_DENSE_EDGES", 0)

        halved = k_means_boundaries(distribution, 8)

        assert [entry.tolist() for entry in dense] == [entry.tolist() for entry in halved]

    def test_many_small_categories_take_few_calls_each(self):
        def divided(levels):
            generator = np.random.default_rng(1)
            population = stratal.Population.from_arrays(
                proxy=generator.random(12 * levels), groups={"user": np.arange(12 * levels) % levels}
            )
            return stratal.strata.stratify(population, "k-means", 4, by="user")

        few, many = (calls(divided, levels)[1] for levels in (100, 200))

        assert (many - few) / 100 < 600

    def test_most_last_cuts_are_never_tried(self, monkeypatch):
        tried = []
        best_starts = kernels._best_starts

        def counted(sums, base, ends, lowest, highest):
            tried.append(int((highest - lowest + 1).sum()))
            return best_starts(sums, base, ends, lowest, highest)

        monkeypatch.setattr(kernels, "_best_starts", counted)
        distribution = picture(np.arange(10_000) / 10_000, np.random.default_rng(3).integers(1, 99, 10_000))
        k_means_boundaries(distribution, 10)
        whole = sum(tried)
        tried.clear()

        k_means_boundaries_for_number(distribution, 10)

        assert sum(tried) < 0.3 * whole


class TestNeyman:
    def test_every_layer_is_best_of_all_cuts(self):
        rng = np.random.default_rng(12)
        for _ in range(40):
            values = np.unique(rng.random(9))
            distribution = picture(values, rng.integers(1, 40, len(values)), values)
            for boundaries in neyman_boundaries(distribution, 6):
                best = best_of_all(distribution, len(boundaries) + 1, spread)
                assert spread(distribution, boundaries) <= best + 1e-7

    def test_continuous_outcomes_too(self):
        rng = np.random.default_rng(13)
        values = np.unique(rng.normal(size=9))
        distribution = picture(values, rng.integers(1, 40, 9), values**2 + rng.random(9))

        for boundaries in neyman_boundaries(distribution, 5):
            best = best_of_all(distribution, len(boundaries) + 1, spread)
            assert spread(distribution, boundaries) == pytest.approx(best, abs=1e-7)

    def test_never_above_k_means_in_its_own_cost(self):
        rng = np.random.default_rng(3)
        values = np.unique(rng.beta(4, 1, 3000))
        distribution = picture(values, rng.integers(1, 9, len(values)), values)

        pairs = zip(neyman_boundaries(distribution, 10), k_means_boundaries(distribution, 10), strict=True)

        assert all(spread(distribution, n) <= spread(distribution, k) + 1e-9 for n, k in pairs)

    def test_merged_bins_lose_next_to_nothing(self, monkeypatch):
        rng = np.random.default_rng(4)
        values = np.unique(rng.beta(5, 1, 1400))
        distribution = picture(values, rng.integers(1, 9, len(values)), values)
        exact = neyman_boundaries(distribution, 8)

        monkeypatch.setattr(kernels, "MAX_NEYMAN_BINS", 200)

        for full, merged in zip(exact, neyman_boundaries(distribution, 8), strict=True):
            assert spread(distribution, merged) <= spread(distribution, full) * (1 + 1e-6)

    @pytest.mark.parametrize("n_bins", [4, 40, 5_000])
    def test_the_boundaries_of_one_number_are_those_of_the_run_for_all_numbers(self, n_bins):
        """One recursion serves several numbers, and 5,000 bins are merged and refined."""
        rng = np.random.default_rng(n_bins)
        values = np.unique(rng.beta(2, 1, n_bins))
        distribution = picture(values, rng.integers(1, 9, len(values)), values)
        boundaries_by_number = neyman_boundaries(distribution, 20)

        assert len(boundaries_by_number) == min(20, n_bins)
        for boundaries in boundaries_by_number:
            alone = neyman_boundaries_for_number(distribution, len(boundaries) + 1)
            assert alone.tolist() == boundaries.tolist()
            assert len(alone) == 0 or 0 < alone[0] <= alone[-1] < n_bins

    def test_a_certain_proxy_costs_nothing(self):
        distribution = picture([0.0, 1.0], [10, 10], np.array([0.0, 1.0]))

        assert neyman_boundaries(distribution, 2)[1].tolist() == [1]


class TestRobustNeyman:
    @pytest.mark.parametrize("bounds", [(0.0, 1.0), (1.0, 5.0)])
    def test_every_layer_is_best_of_all_cuts(self, bounds):
        rng = np.random.default_rng(14)
        for _ in range(5):
            values = bounds[0] + np.unique(rng.beta(3, 1, 8)) * (bounds[1] - bounds[0])
            distribution = picture(values, rng.integers(1, 40, len(values)), bounds=bounds)
            for boundaries in robust_neyman_boundaries(distribution, 5):
                best = best_of_all(distribution, len(boundaries) + 1, robust_spread)
                assert robust_spread(distribution, boundaries) == pytest.approx(best, rel=1e-9)

    def test_certain_units_are_divided_as_they_may_be_wrong(self):
        values = np.append(np.linspace(0.2, 0.9, 8), np.linspace(0.99, 1.0, 50))
        counts = np.append(np.ones(8, int), np.full(50, 40))

        boundaries = robust_neyman_boundaries(picture(values, counts), 4)[-1]

        assert boundaries[-1] > 8  # plug-in S_h and k-means leave all of these units together
        assert k_means_boundaries(picture(values, counts), 4)[-1][-1] <= 8

    def test_merged_bins_lose_next_to_nothing(self, monkeypatch):
        values = np.unique(np.random.default_rng(4).beta(5, 1, 1200))
        distribution = picture(values, np.random.default_rng(5).integers(1, 9, len(values)))
        merged = robust_neyman_boundaries(distribution, 10)

        monkeypatch.setattr(kernels, "MAX_ROBUST_BINS", len(values))

        for full, fewer in zip(robust_neyman_boundaries(distribution, 10), merged, strict=True):
            assert robust_spread(distribution, fewer) <= robust_spread(distribution, full) * (1 + 1e-5)


class TestCoarseEdges:
    def test_few_bins_stay(self):
        assert run_edges(picture([0.0, 1.0, 2.0]), 5).tolist() == [0, 1, 2, 3]

    @pytest.mark.parametrize("most", [10, 333])
    def test_many_bins_are_merged_to_at_most_so_many(self, most):
        values = np.unique(np.random.default_rng(0).exponential(size=5000))

        edges = run_edges(picture(values), most)

        assert len(edges) - 1 <= most
        assert edges[0] == 0
        assert edges[-1] == len(values)
        assert np.all(np.diff(edges) > 0)
