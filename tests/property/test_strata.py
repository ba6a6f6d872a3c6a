from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tiers import sized

from stratal.population import Population
from stratal.population.distribution import Distribution
from stratal.strata import STRATIFICATION_METHODS, stratify
from stratal.strata.optimal_boundaries import PrefixSums, k_means_boundaries, neyman_boundaries
from stratal.strata.proxy_intervals import find_boundaries

ONE_DIMENSIONAL = [name for name in STRATIFICATION_METHODS if name not in ("category", "features", "none")]
SETTINGS = settings(max_examples=sized(8, 200), deadline=None)

probabilities = st.one_of(
    st.floats(0, 1, allow_nan=False, width=32), st.sampled_from([0.0, 1.0, 0.5, 1e-300, 1 - 2**-53])
)
proxies = st.lists(probabilities, min_size=1, max_size=40)


@st.composite
def distributions(draw):
    values = np.array(sorted(draw(st.sets(probabilities, min_size=1, max_size=9))))
    counts = draw(st.lists(st.integers(1, 10**6), min_size=len(values), max_size=len(values)))
    excess = draw(st.sampled_from([0.0, 1.0]))
    second = values**2 + excess * (values - values**2)
    return Distribution(
        values=values, counts=np.array(counts), cuts=values[1:], second_moments=second, bounds=(0, 1)
    )


def costs(distribution, boundaries):
    sums = PrefixSums.of(distribution)
    edges = np.array([0, *boundaries, len(distribution.values)])
    return (
        float(sums.squares_within(edges[:-1], edges[1:]).sum()),
        float(sums.neyman_cost(edges[:-1], edges[1:]).sum()),
    )


@SETTINGS
@given(distributions(), st.integers(1, 5))
def test_no_other_cuts_cost_less(distribution, most):
    n_bins = len(distribution.values)
    whole = costs(distribution, ())
    solved = k_means_boundaries(distribution, most), neyman_boundaries(distribution, most)
    assert [len(found) for found in solved] == [min(most, n_bins)] * 2
    for number in range(min(most, n_bins)):
        every = [costs(distribution, cuts) for cuts in itertools.combinations(range(1, n_bins), number)]
        for which in (0, 1):
            cost = costs(distribution, solved[which][number])[which]
            assert cost <= min(entry[which] for entry in every) + 1e-9 * whole[which]


@SETTINGS
@given(distributions(), st.integers(1, 6), st.sampled_from(ONE_DIMENSIONAL))
def test_no_other_method_costs_less(distribution, n_strata, method):
    other = find_boundaries(distribution, method, n_strata)
    whole = costs(distribution, ())

    assert len(other) < n_strata
    best = k_means_boundaries(distribution, len(other) + 1)[-1]
    assert costs(distribution, best)[0] <= costs(distribution, other)[0] + 1e-9 * whole[0]
    best = neyman_boundaries(distribution, len(other) + 1)[-1]
    assert costs(distribution, best)[1] <= costs(distribution, other)[1] + 1e-9 * whole[1]


@SETTINGS
@given(proxies, st.integers(1, 12), st.sampled_from(ONE_DIMENSIONAL), st.randoms(use_true_random=False))
def test_strata_partition_any_population_in_any_order(proxy, n_strata, method, random):
    strata = stratify(Population.from_arrays(proxy=proxy), method, n_strata)
    order = list(range(len(proxy)))
    random.shuffle(order)
    shuffled = stratify(Population.from_arrays(proxy=[proxy[i] for i in order]), method, n_strata)

    assert strata.n_strata <= min(n_strata, len(set(proxy)))
    assert np.bincount(strata.codes, minlength=strata.n_strata).tolist() == strata.sizes.tolist()
    assert shuffled == strata
    assert shuffled.codes.tolist() == strata.codes[order].tolist()


@SETTINGS
@given(
    st.sets(st.integers(0, 2**12), min_size=1, max_size=60), st.integers(1, 8), st.sampled_from([1e8, -1e8])
)
def test_an_offset_moves_no_unit(steps, n_strata, up):
    values = np.array(sorted(steps)) / 64.0

    def codes(proxy):
        return stratify(Population.from_arrays(proxy=proxy, scaled=False), "k-means", n_strata).codes.tolist()

    assert codes(values + (1e8 if up else -1e8)) == codes(values)


@SETTINGS
@given(
    st.lists(st.tuples(probabilities, st.sampled_from("abcdefgh")), min_size=1, max_size=60),
    st.sampled_from(["category", *ONE_DIMENSIONAL]),
    st.one_of(st.just("auto"), st.integers(1, 5)),
)
def test_crossed_strata_partition_the_units(units, method, n_strata):
    proxy, group = zip(*units, strict=True)
    population = Population.from_arrays(proxy=proxy, groups={"g": group})

    request = {"budget": max(1, len(units) // 2), "minimum": 1}
    strata = stratify(population, method, n_strata, by="g", **request)

    assert np.bincount(strata.codes, minlength=strata.n_strata).tolist() == strata.sizes.tolist()
    assert len(set(strata.names)) == strata.n_strata
