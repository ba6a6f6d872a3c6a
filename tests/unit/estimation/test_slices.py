"""Slices with one λ: what stays exact, what proxies that lie may do, and what a good one saves."""

import numpy as np
import pytest
from tests.tiers import cells, sized

import stratal
from stratal.errors import InputError
from stratal.estimation.composite import composite_means

SIZES = np.array([15, 60, 250, 700, 975])
CODE = np.repeat(np.arange(5), SIZES)
GROUPS = {"g": np.array([f"slice {k}" for k in CODE])}


def truth(seed=3):
    rng = np.random.default_rng(seed)
    rate = 1 / (1 + np.exp(-(np.array([2.0, -1, 0.5, 1, 0])[CODE] + rng.normal(0, 1.8, len(CODE)))))
    return rate, (rng.random(len(CODE)) < rate) * 1.0


def drawn(proxy, budget, seed, **plan):
    population = stratal.Population.from_arrays(proxy={"p": proxy}, groups=GROUPS)
    return stratal.plan(population, budget, **plan).draw(seed)


def test_a_census_knows_every_slice():
    rate, z = truth()
    sample = drawn(rate, 2000, 1)
    for row in stratal.estimate(sample, z[sample.ids], estimand="mean", by="g"):
        assert row.value == pytest.approx(z[GROUPS["g"] == row.label["domain"]].mean())


def test_a_proxy_that_is_constant_in_every_slice_changes_nothing():
    _, z = truth()
    sample = drawn(CODE / 5, 200, 1, n_strata=3)
    found, plain = (
        stratal.estimate(sample, z[sample.ids], estimand="mean", by="g", estimator=estimator)
        for estimator in ("auto", "horvitz-thompson")
    )
    assert found.values == pytest.approx(plain.values)
    assert found[2].estimator == "ppi++"


def test_a_sample_from_a_file_knows_the_slices_too(tmp_path):
    rate, z = truth()
    sample = drawn(rate, 200, 1)
    read = stratal.Sample.read(sample.write(tmp_path / "sample.parquet"))
    one, other = (stratal.estimate(each, z[sample.ids], estimand="mean@g") for each in (sample, read))
    assert np.array_equal(one.values, other.values)
    assert one.confidence_interval()[0].tolist() == other.confidence_interval()[0].tolist()


def test_few_labels_and_groups_that_nobody_counted_leave_the_proxy_out():
    rate, z = truth()
    sample = drawn(rate, 40, 1)
    assert stratal.estimate(sample, z[sample.ids], by="g")[0].estimator == "linearised"
    sample = drawn(rate, 200, 1)
    own = GROUPS["g"][sample.ids]
    assert stratal.estimate(sample, z[sample.ids], by=own)[0].estimator == "linearised"
    with pytest.raises(InputError, match="estimator of groups"):
        stratal.estimate(sample, z[sample.ids], by="g", estimator="stratppi")


@pytest.mark.parametrize("kind", cells(["good", "half inverted", "inverted", "useless"], fast=("good",)))
def test_no_proxy_makes_a_slice_wrong_and_a_good_one_helps(kind):
    rate, z = truth()
    proxy = {
        "good": rate,
        "inverted": 1 - rate,
        "useless": np.random.default_rng(1).random(len(rate)),
        "half inverted": np.where(CODE % 2 == 0, rate, 1 - rate),
    }[kind]
    population = stratal.Population.from_arrays(proxy={"p": proxy}, groups=GROUPS)
    plan, runs = stratal.plan(population, 300), sized(12, 400)
    names = [f"slice {k}" for k in range(1, 5)]
    means = np.array([z[GROUPS["g"] == name].mean() for name in names])
    held, errors, widths = np.zeros((3, 2, runs, 4))
    for seed in range(runs):
        sample = plan.draw(seed)
        for way, estimator in enumerate(("auto", "horvitz-thompson")):
            table = stratal.estimate(sample, z[sample.ids], estimand="mean", by="g", estimator=estimator)
            rows = [table.of(domain=name) for name in names]
            low, high = (
                np.array(ends) for ends in zip(*(row.confidence_interval() for row in rows), strict=True)
            )
            held[way, seed] = (low <= means) & (means <= high)
            errors[way, seed] = (np.array([row.value for row in rows]) - means) ** 2
            widths[way, seed] = high - low
    tolerance = 3.5 * np.sqrt(0.95 * 0.05 / runs)
    assert held[0].mean(axis=0).min() > 0.95 - tolerance
    ratio, wider = errors[0].mean(axis=0) / errors[1].mean(axis=0), widths[0].mean() / widths[1].mean()
    if kind in ("good", "inverted"):  # λ is negative where the proxy is inverted
        assert ratio.mean() < 0.9
        assert wider < 0.95
    else:
        assert ratio.mean() < 1.15
        assert wider < 1.03


def test_a_slice_of_rare_mistakes_takes_no_noise_from_a_proxy_that_is_good_elsewhere():
    # With λ as large as everywhere the squared error was nine times that of the labels alone.
    rng = np.random.default_rng(1)
    proxy, common = rng.random(3000), np.arange(3000) % 3 > 0
    z = (rng.random(3000) < np.where(common, proxy, 0.998)) * 1.0
    population = stratal.Population.from_arrays(
        proxy=proxy, groups={"g": np.where(common, "common", "rare").tolist()}
    )
    errors = []
    for seed in range(sized(25, 400)):
        sample = stratal.designs.SimpleRandom(budget=100).draw(population, seed)
        found = [
            stratal.estimate(sample, z[sample.ids], by="g", estimator=e) for e in ("auto", "horvitz-thompson")
        ]
        errors.append([rows.values - [z[common].mean(), z[~common].mean()] for rows in found])
    (helped, rare), (plain, alone) = np.mean(np.square(errors), axis=0)
    assert helped < plain
    assert rare < 1.5 * alone


def test_a_slice_of_which_no_unit_was_drawn_is_named():
    rate, z = truth()
    sample = stratal.designs.SimpleRandom(budget=20).draw(
        stratal.Population.from_arrays(proxy={"p": rate}, groups=GROUPS), seed=2
    )
    estimate = stratal.estimate(sample, z[sample.ids], by="g")
    assert len(estimate) < 5
    assert "no unit was drawn from g 'slice 0'" in str(estimate)


def test_composites_hold_on_average_and_have_less_error():
    rng, runs = np.random.default_rng(1), sized(4_000, 40_000)
    truth = 0.7 + 0.05 * rng.standard_normal((runs, 8))
    variances = np.broadcast_to(np.array([0.01, 0.01, 0.005, 0.005, 0.002, 0.002, 0.001, 0.0005]), (runs, 8))
    found = truth + np.sqrt(variances) * rng.standard_normal((runs, 8))
    values, errors = composite_means(found, variances)
    held = np.abs(values - truth) < 1.96 * np.sqrt(errors)
    assert held.mean() > 0.945
    assert np.mean((values - truth) ** 2) < 0.75 * variances.mean()


def test_a_composite_is_asked_for_and_says_what_it_promises():
    rate, z = truth()
    sample = drawn(rate, 300, 1)
    plain, shrunk = (
        stratal.estimate(sample, z[sample.ids], by="g", estimator=estimator)
        for estimator in ("auto", "composite")
    )
    assert any("on average over slices" in note for note in shrunk.notes)
    assert np.ptp(shrunk.values) < np.ptp(plain.values)
    assert all(0 <= low <= high <= 1 for low, high in (row.confidence_interval() for row in shrunk))


def test_a_composite_of_three_groups_is_refused():
    rate, z = truth()
    population = stratal.Population.from_arrays(proxy=rate, groups={"g": CODE // 2})
    sample = stratal.plan(population, 300).draw(1)
    with pytest.raises(InputError, match="several groups"):
        stratal.estimate(sample, z[sample.ids], by="g", estimator="composite")
