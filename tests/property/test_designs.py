"""What holds of every design, whatever the population."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tiers import sized

import stratal
from stratal.designs import inclusion_probabilities

SEEDS = st.integers(0, 2**32)


@st.composite
def populations(draw):
    size = draw(st.integers(6, 60))
    rng = np.random.default_rng(draw(SEEDS))
    proxy = draw(st.sampled_from([rng.random(size), np.round(rng.random(size)), np.full(size, 0.7)]))
    return {
        "proxy": proxy,
        "ids": rng.permutation(10 * size)[:size],
        "features": {"size": rng.lognormal(0, draw(st.sampled_from([0.1, 1.0, 4.0])), size)},
        "groups": {"group": rng.integers(0, 5, size).astype(str)},
    }


def reordered(columns, order):
    return {
        name: {key: values[order] for key, values in part.items()} if isinstance(part, dict) else part[order]
        for name, part in columns.items()
    }


def designs(size):
    n = max(2, size // 3)
    return [
        stratal.designs.SimpleRandom(budget=n),
        stratal.designs.Poisson(probability=0.3),
        stratal.designs.Poisson(budget=n, size="sqrt-variance"),
        stratal.designs.ProportionalToSize(budget=n),
        stratal.designs.ProportionalToSize(budget=n, size="size"),
        stratal.designs.Systematic(budget=n),
        stratal.designs.ClusterSample(cluster="group", n_clusters=2),
    ]


@settings(max_examples=sized(8, 200), deadline=None)
@given(populations(), SEEDS)
def test_the_order_of_rows_is_irrelevant(columns, seed):
    order = np.random.default_rng(seed).permutation(len(columns["ids"]))
    one, other = (stratal.Population.from_arrays(**rows) for rows in (columns, reordered(columns, order)))
    if len(one.levels("group")) < 3:
        return
    for design in designs(one.size):
        left, right = design.draw(one, seed), design.draw(other, seed)
        np.testing.assert_array_equal(left.ids, right.ids)
        np.testing.assert_allclose(left.inclusion_probability, right.inclusion_probability, rtol=1e-12)


@settings(max_examples=sized(8, 200), deadline=None)
@given(populations(), SEEDS, st.data())
def test_fixed_sizes_are_kept_and_certain_units_drawn(columns, seed, data):
    units = stratal.Population.from_arrays(**columns)
    n = data.draw(st.integers(1, units.size))
    for design in (
        stratal.designs.ProportionalToSize(budget=n, size="size"),
        stratal.designs.ProportionalToSize(budget=n),
        stratal.designs.Systematic(budget=n),
    ):
        sample = design.draw(units, seed)
        assert sample.size == n == len(set(sample.ids.tolist()))
        assert np.all((sample.inclusion_probability > 0) & (sample.inclusion_probability <= 1))
    chance = inclusion_probabilities(columns["features"]["size"], n)
    sample = stratal.designs.ProportionalToSize(budget=n, size="size").draw(units, seed)
    assert set(columns["ids"][chance >= 1].tolist()) <= set(sample.ids.tolist())


@settings(max_examples=sized(8, 200), deadline=None)
@given(st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=40), st.data())
def test_probabilities_add_up_to_the_budget(sizes, data):
    n = data.draw(st.integers(1, len(sizes)))

    chance = inclusion_probabilities(sizes, n)

    assert chance.sum() == pytest.approx(n, rel=1e-6)
    assert np.all((chance > 0) & (chance <= 1))
    free = chance < 1
    ratios = chance[free] / np.array(sizes)[free]
    assert free.sum() == 0 or ratios.max() == pytest.approx(ratios.min())


@settings(max_examples=sized(8, 200), deadline=None)
@given(populations(), SEEDS)
def test_larger_budgets_keep_the_units_of_smaller_ones(columns, seed):
    units = stratal.Population.from_arrays(**columns)
    n = units.size // 3
    pairs = [
        (stratal.designs.Poisson(budget=a, size="size"), stratal.designs.Poisson(budget=b, size="size"))
        for a, b in [(n, n + 1), (n, 2 * n)]
    ]
    pairs.append((stratal.designs.SimpleRandom(budget=n), stratal.designs.SimpleRandom(budget=2 * n)))
    if len(np.unique(columns["proxy"])) == 1:
        pairs.append(
            (stratal.designs.ProportionalToSize(budget=n), stratal.designs.ProportionalToSize(budget=2 * n))
        )
    for smaller, larger in pairs:
        inside, outside = smaller.draw(units, seed), larger.draw(units, seed)
        assert set(inside.ids.tolist()) <= set(outside.ids.tolist())


def stratified(units, budget, method="robust"):
    strata = stratal.strata.stratify(units, n_strata=3)
    return stratal.designs.Stratified(
        strata=strata, allocation=stratal.strata.allocate(strata, budget, method, minimum=1)
    )


@settings(max_examples=sized(8, 200), deadline=None)
@given(populations(), SEEDS, st.sampled_from(["robust", "neyman", "proportional", "equal"]), st.data())
def test_stratified_draws_are_nested_and_do_not_depend_on_the_order_of_rows(columns, seed, method, data):
    order = np.random.default_rng(seed).permutation(len(columns["ids"]))
    one, other = (stratal.Population.from_arrays(**rows) for rows in (columns, reordered(columns, order)))
    budget = data.draw(st.integers(3, one.size - 1))

    sample = stratified(one, budget, method).draw(one, seed)
    mirrored = stratified(other, budget, method).draw(other, seed)
    larger = stratified(one, budget + 1, method).draw(one, seed)

    assert sample.size == budget
    np.testing.assert_array_equal(sample.ids, mirrored.ids)
    np.testing.assert_array_equal(sample.inclusion_probability, mirrored.inclusion_probability)
    assert set(sample.ids.tolist()) < set(larger.ids.tolist())


# ---- inclusion frequencies

REPLICATES = sized(600, 4000)


def frequencies(design, units):
    hits = np.zeros(units.size)
    for seed in range(REPLICATES):
        hits[design.draw(units, seed).ids] += 1
    return hits / REPLICATES


def within_chance(found, expected, extra=0.0):
    """Five standard errors of a frequency, and a known error relative to the probability."""
    error = np.sqrt(expected * (1 - expected) / REPLICATES)
    return np.all(np.abs(found - expected) <= 5 * error + extra * expected + 1e-9)


def small():
    rng = np.random.default_rng(3)
    return stratal.Population.from_arrays(
        proxy=rng.random(12),
        features={"size": np.r_[rng.lognormal(0, 1, 11), 50.0]},
        groups={"group": np.array(list("aabbbccddddd"))},
    )


@pytest.mark.parametrize(
    ("design", "expected"),
    [
        (stratal.designs.SimpleRandom(budget=5), np.full(12, 5 / 12)),
        (stratal.designs.Systematic(budget=5), np.full(12, 5 / 12)),
        (stratal.designs.Poisson(probability=0.3), np.full(12, 0.3)),
        (stratal.designs.ClusterSample(cluster="group", n_clusters=2), np.full(12, 0.5)),
        (stratal.designs.Poisson(budget=4, size="size"), None),
    ],
    ids=repr,
)
def test_inclusion_frequencies_are_the_inclusion_probabilities(design, expected):
    units = small()
    if expected is None:
        expected = inclusion_probabilities(next(iter(units.batches(("size",))))["size"], 4)

    assert within_chance(frequencies(design, units), expected)


def test_stratified_inclusion_frequencies_are_the_shares_of_the_strata():
    units = small()
    design = stratified(units, 6)
    strata = design.strata

    expected = (design.allocation.n_h / strata.sizes)[strata.codes]

    assert len(np.unique(expected)) > 1
    assert within_chance(frequencies(design, units), expected)


@pytest.mark.parametrize(("size", "n", "known"), [(10, 3, 0.22), (100, 10, 0.03)])
def test_sequential_poisson_keeps_to_its_known_error(size, n, known):
    sizes = np.linspace(0.5, 2.0, size)
    units = stratal.Population.from_arrays(proxy=np.full(size, 0.5), features={"size": sizes})
    expected = inclusion_probabilities(sizes, n)

    found = frequencies(stratal.designs.ProportionalToSize(budget=n, size="size"), units)

    assert within_chance(found, expected, known)
    assert found.sum() == pytest.approx(n)
