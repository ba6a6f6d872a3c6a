"""Rounds on one nested sample."""

import numpy as np
import pytest

import stratal
from stratal.designs import Stratified
from stratal.errors import InputError, LabelError
from stratal.planning.next_allocation import next_allocation
from stratal.planning.stratum_deviations import estimated_deviations, raw_deviations

N = 3000
RNG = np.random.default_rng(0)
PROXY = np.round(RNG.beta(4, 1, N), 3)
Z = (RNG.random(N) < PROXY**2).astype(float)
IDS = RNG.permutation(10 * N)[:N]
TRUTH = dict(zip(IDS.tolist(), Z.tolist(), strict=True))


def population(**extra):
    return stratal.Population.from_arrays(
        proxy=PROXY, ids=IDS, groups={"answer": np.where(PROXY > 0.5, "yes", "no")},
        predicted="answer", show={"text": [f"item {i}" for i in IDS]}, **extra,
    )  # fmt: skip


def oracle(ids):
    return [TRUTH[unit] for unit in ids.tolist()]


def labelled(sample):
    return dict(zip(sample.ids.tolist(), oracle(sample.ids), strict=True))


def drawn(units, strata, size, seed):
    allocation = stratal.strata.allocate(strata, size, "proportional")
    return Stratified(strata=strata, allocation=allocation).draw(units, seed)


@pytest.fixture(name="pilot")
def _pilot():
    units = population()
    strata = stratal.strata.stratify(units, n_strata=5)
    return drawn(units, strata, 60, seed=7)


class TestNextRound:
    def test_keeps_every_unit_and_adds_the_rest(self, pilot):
        larger = stratal.next_round(pilot, labelled(pilot), additional=40)

        assert larger.size == 100
        np.testing.assert_array_equal(larger.ids[:60], pilot.ids)
        assert larger.round.tolist() == [1] * 60 + [2] * 40
        assert len(set(larger.ids.tolist())) == 100
        assert np.all(larger.n_h >= pilot.n_h)
        np.testing.assert_allclose(
            larger.inclusion_probability, (larger.n_h / larger.summary.sizes)[larger.stratum]
        )

    def test_design_is_stratified_with_the_total_allocation(self, pilot):
        second = stratal.next_round(pilot, labelled(pilot), additional=40)
        third = stratal.next_round(second, labelled(second), additional=40)

        assert [sample.design.allocation.method for sample in (second, third)] == ["opt-a1", "opt-a2"]
        assert third.design.allocation.budget == 140
        np.testing.assert_array_equal(third.design.allocation.n_h, third.n_h)
        np.testing.assert_array_equal(third.design.allocation.minimum, second.n_h)
        assert np.bincount(third.round).tolist() == [0, 60, 40, 40]

    def test_is_the_draw_that_its_allocation_describes(self, pilot):
        larger = stratal.next_round(pilot, labelled(pilot), additional=40)
        design = Stratified(strata=larger.design.strata, allocation=larger.design.allocation)

        assert set(design.draw(population(), 7).ids.tolist()) == set(larger.ids.tolist())

    def test_estimates_use_all_labels(self, pilot):
        larger = stratal.next_round(pilot, labelled(pilot), additional=40)
        result = stratal.estimate(larger, labelled(larger))

        assert result.n == 100
        assert result.design == "stratified"
        low, high = result.confidence_interval(0.999)
        assert low < Z.mean() < high

    def test_labels_go_where_they_help(self, pilot):
        larger = stratal.next_round(pilot, labelled(pilot), additional=100)
        codes = larger.design.strata.rule.assign({"proxy": PROXY})
        rates = np.bincount(codes, Z) / np.bincount(codes)
        wanted = larger.summary.sizes * np.sqrt(rates * (1 - rates))

        share = larger.n_h / larger.size
        assert np.abs(share - wanted / wanted.sum()).max() < 0.1

    def test_remainder_shares_the_new_units_alone(self, pilot):
        z = labelled(pilot)
        total = stratal.next_round(pilot, z, additional=60)
        rest = stratal.next_round(pilot, z, additional=60, allocation_of="remainder")

        assert total.size == rest.size == 120
        assert not np.array_equal(total.n_h, rest.n_h)

    def test_unanswered_units_stay_drawn(self, pilot):
        z = labelled(pilot)
        for unit in pilot.ids[:20].tolist():
            del z[unit]

        larger = stratal.next_round(pilot, z, additional=10)

        np.testing.assert_array_equal(larger.ids[:60], pilot.ids)

    def test_labels_may_be_classes(self, pilot):
        answers = dict(zip(pilot.ids.tolist(), np.where(oracle(pilot.ids), "yes", "no"), strict=True))
        larger = stratal.next_round(pilot, answers, additional=10, predicted=True)

        assert larger.size == 70

    def test_after_a_trip_through_a_file_the_population_is_given(self, pilot, tmp_path):
        again = stratal.Sample.read(pilot.write(tmp_path / "pilot.parquet"))
        with pytest.raises(InputError, match="does not contain the population") as caught:
            stratal.next_round(again, labelled(again), additional=10)
        assert caught.value.action == "Give the population: population=."

        larger = stratal.next_round(again, labelled(again), additional=10, population=population())

        direct = stratal.next_round(pilot, labelled(pilot), additional=10)
        assert larger == direct
        assert (
            stratal.Sample.read(larger.write(tmp_path / "larger.csv")).round.tolist() == [1] * 60 + [2] * 10
        )

    def test_another_population_is_refused(self, pilot):
        z = labelled(pilot)
        small = stratal.Population.from_arrays(proxy=PROXY[:-1], ids=IDS[:-1])
        other = stratal.Population.from_arrays(proxy=PROXY**2, ids=IDS)
        renamed = stratal.Population.from_arrays(proxy=PROXY, ids=IDS + 100_000)
        for strange in (small, other):
            with pytest.raises(
                InputError, match=r"not the population from which|formed from another population"
            ):
                stratal.next_round(pilot, z, additional=10, population=strange)
        with pytest.raises(InputError, match=r"ids differ .given: no unit"):
            stratal.next_round(pilot, z, additional=10, population=renamed)

    @pytest.mark.parametrize("additional", [0, N, -1, 2.5])
    def test_an_impossible_number_is_refused(self, pilot, additional):
        with pytest.raises(InputError):
            stratal.next_round(pilot, labelled(pilot), additional=additional)

    @pytest.mark.parametrize("option", [{"allocation_of": "rest"}, {"deviations": "smooth"}])
    def test_unknown_options_are_refused(self, pilot, option):
        with pytest.raises(InputError, match="no such"):
            stratal.next_round(pilot, labelled(pilot), additional=5, **option)

    def test_no_label_is_refused(self, pilot):
        with pytest.raises(LabelError, match="no unit is labelled"):
            stratal.next_round(pilot, {}, additional=5)

    def test_simple_random_samples_grow_too(self):
        pilot = stratal.designs.SimpleRandom(budget=30).draw(population(), seed=7)
        larger = stratal.next_round(pilot, labelled(pilot), additional=20)

        assert larger.design == stratal.designs.SimpleRandom(budget=50)
        np.testing.assert_array_equal(larger.ids[:30], pilot.ids)
        whole = stratal.designs.SimpleRandom(budget=50).draw(population(), seed=7)
        assert set(larger.ids.tolist()) == set(whole.ids.tolist())

    def test_up_to_a_census(self, pilot):
        larger = stratal.next_round(pilot, labelled(pilot), additional=N - 60)
        result = stratal.estimate(larger, labelled(larger), target="population")

        assert result.value == pytest.approx(Z.mean())
        assert result.standard_error == 0

    def test_unequal_probabilities_have_no_next_round(self):
        sample = stratal.designs.ProportionalToSize(budget=30).draw(population(), seed=7)
        with pytest.raises(InputError, match="has no next round") as caught:
            stratal.next_round(sample, labelled(sample), additional=5)
        assert "extend it without labels" in str(caught.value)


class TestWithoutLabels:
    @pytest.mark.parametrize(
        ("smaller", "larger"),
        [
            (stratal.designs.SimpleRandom(budget=20), stratal.designs.SimpleRandom(budget=50)),
            (stratal.designs.ProportionalToSize(budget=20), stratal.designs.ProportionalToSize(budget=50)),
            (stratal.designs.Poisson(probability=0.01), stratal.designs.Poisson(probability=0.02)),
            (
                stratal.designs.ClusterSample(cluster="answer", n_clusters=2),
                stratal.designs.ClusterSample(cluster="answer", n_clusters=2),
            ),
        ],
    )
    def test_keeps_the_units_of_nested_designs(self, smaller, larger):
        sample = smaller.draw(population(), seed=7)
        found = stratal.next_round(sample, design=larger)

        np.testing.assert_array_equal(found.ids[: sample.size], sample.ids)
        assert set(found.round[sample.size :].tolist()) <= {2}
        direct = larger.draw(population(), seed=7)
        np.testing.assert_array_equal(np.sort(found.ids), np.sort(direct.ids))
        by_id = dict(zip(direct.ids.tolist(), direct.inclusion_probability.tolist(), strict=True))
        assert [by_id[unit] for unit in found.ids.tolist()] == found.inclusion_probability.tolist()
        assert found.shown["text"].tolist() == [f"item {i}" for i in found.ids]

    def test_refuses_a_draw_that_leaves_units_out(self):
        sample = stratal.designs.Systematic(budget=20).draw(population(), seed=7)

        with pytest.raises(InputError, match="of the sample is not part of the larger sample"):
            stratal.next_round(sample, design=stratal.designs.Systematic(budget=50))


class TestDeviations:
    def test_all_correct_does_not_starve_a_stratum(self, pilot):
        strata, ones = pilot.design.strata, np.ones(pilot.size)

        smooth = estimated_deviations(strata, ones, pilot.stratum)
        raw = estimated_deviations(strata, ones, pilot.stratum, deviations="raw")

        assert np.all(smooth > 0.02)
        assert np.all(raw == 0)

    def test_raw_ones_are_the_sample_s(self):
        z, h = np.array([0, 1, 1, 5.0, 1, 2]), np.array([0, 0, 0, 1, 2, 2])

        found = raw_deviations(z, h, 4)

        pooled = np.sqrt((2 * np.var(z[:3], ddof=1) + np.var(z[4:], ddof=1)) / 3)
        np.testing.assert_allclose(found, [np.std(z[:3], ddof=1), pooled, np.std(z[4:], ddof=1), pooled])

    @pytest.mark.parametrize(
        ("z", "bounds"),
        [(np.r_[0.2, np.ones(59)], None), (np.arange(60.0), None), (np.arange(60.0), (0, 60))],
    )
    def test_other_outcomes_are_smoothed_as_well(self, pilot, z, bounds):
        found = estimated_deviations(pilot.design.strata, z, pilot.stratum, bounds=bounds)

        assert np.all(found > 0)
        assert np.all(np.isfinite(found))

    def test_a_label_outside_the_bounds_is_named(self, pilot):
        z = np.r_[-3.0, np.ones(59)]

        with pytest.raises(InputError, match="given: -3;"):
            estimated_deviations(pilot.design.strata, z, pilot.stratum, bounds=(0, 1))

    def test_a_margin_orders_only(self):
        units = stratal.Population.from_arrays(proxy=PROXY * 10 - 5, ids=IDS)
        pilot = drawn(units, stratal.strata.stratify(units, n_strata=4), 40, seed=1)

        larger = stratal.next_round(pilot, labelled(pilot), additional=40)

        assert larger.size == 80


def test_total_makes_up_for_what_the_pilot_gave_too_much_to():
    sizes, drawn, s = np.array([1000, 1000]), np.array([50, 50]), np.array([0.1, 0.4])

    assert next_allocation(sizes, drawn, s, 100).tolist() == [50, 150]
    assert next_allocation(sizes, drawn, s, 100, allocation_of="remainder").tolist() == [70, 130]


def test_remainder_respects_full_strata():
    sizes, drawn, s = np.array([10, 1000]), np.array([8, 8]), np.array([100.0, 0.1])

    assert next_allocation(sizes, drawn, s, 50, allocation_of="remainder").tolist() == [10, 56]


class TestDrivers:
    def test_opt_a1_spends_the_budget_in_two_rounds(self):
        units = population()
        strata = stratal.strata.stratify(units, n_strata=5)
        sample, labels = stratal.planning.opt_a1(units, strata, 100, oracle, seed=3, initial=6, pilot="equal")

        assert np.bincount(sample.round).tolist() == [0, 30, 70]
        assert np.bincount(sample.stratum[:30]).tolist() == [6] * 5
        assert labels == labelled(sample)

    def test_opt_a1_takes_half_for_the_pilot(self):
        units = population()
        sample, _ = stratal.planning.opt_a1(
            units, stratal.strata.stratify(units, n_strata=5), 100, oracle, seed=3
        )

        assert np.bincount(sample.round).tolist() == [0, 50, 50]

    def test_opt_a2_goes_step_by_step(self):
        units = population()
        strata = stratal.strata.stratify(units, n_strata=5)
        sample, labels = stratal.planning.opt_a2(units, strata, 100, oracle, seed=3, step=30)

        assert np.bincount(sample.round).tolist() == [0, 25, 30, 30, 15]
        assert len(labels) == 100

    def test_the_papers_rules_are_there(self):
        units = population()
        strata = stratal.strata.stratify(units, n_strata=5)
        literal = {"pilot": "equal", "allocation_of": "remainder", "deviations": "raw"}
        sample, labels = stratal.planning.opt_a1(units, strata, 100, oracle, seed=3, initial=10, **literal)

        first = {unit: labels[unit] for unit in sample.ids[:50].tolist()}
        z = np.array(list(first.values()))
        raw = raw_deviations(z, sample.stratum[:50], 5)
        wanted = strata.sizes * raw / (strata.sizes @ raw) * 50
        assert np.abs(np.bincount(sample.stratum[50:], minlength=5) - wanted).max() <= 1.5

    def test_an_unknown_pilot_is_refused(self):
        units = population()
        with pytest.raises(InputError, match="no such pilot"):
            stratal.planning.opt_a2(
                units, stratal.strata.stratify(units, n_strata=2), 40, oracle, seed=3, pilot="random"
            )


def test_without_labels_the_same_rule_shares_a_larger_budget():
    everyone = population()
    sample = stratal.plan(everyone, budget=40).draw(seed=7)
    found = stratal.next_round(sample, additional=20)

    direct = stratal.designs.Stratified(
        strata=sample.design.strata,
        allocation=stratal.strata.allocate(sample.design.strata, 60, minimum=sample.n_h),
    ).draw(everyone, seed=7)
    assert set(found.ids.tolist()) == set(direct.ids.tolist())
    assert found.ids[:40].tolist() == sample.ids.tolist()


@pytest.mark.parametrize(
    "given", [{"labels": {}, "design": stratal.designs.SimpleRandom(budget=50)}, {"half_width": 0.1}]
)
def test_what_only_labels_could_decide_is_refused_without_them(given):
    sample = stratal.designs.SimpleRandom(budget=20).draw(population(), seed=7)

    with pytest.raises(InputError, match="has no effect without labels="):
        stratal.next_round(sample, **given)
    with pytest.raises(InputError, match="cannot be added"):
        stratal.next_round(sample, additional=10**6)


def test_sizes_that_labels_decided_follow_them_in_a_round_without_labels_too():
    sample = stratal.plan(population(), budget=40, method="k-means").draw(seed=9)
    assert not sample.weighting().has_adaptive_allocation
    second = stratal.next_round(sample, labelled(sample), additional=200)
    third = stratal.next_round(second, additional=20)

    assert second.weighting().has_adaptive_allocation
    assert third.weighting().has_adaptive_allocation


def test_a_round_whose_labels_were_forgotten_is_named(pilot):
    later = stratal.next_round(pilot, labelled(pilot), additional=40)
    newest = later.ids[later.round == 2].tolist()

    with pytest.warns(stratal.StratalWarning, match="no unit of round 1 has a label; give the labels of all"):
        stratal.next_round(later, {unit: TRUTH[unit] for unit in newest}, additional=10)


def test_a_round_after_costs_keeps_to_the_sizes_that_followed_them():
    units = population()
    strata = stratal.strata.stratify(units, n_strata=3)
    shared = stratal.strata.allocate(strata, method="cost-optimal", costs=[1.0, 1.0, 9.0], cost_budget=200)
    sample = Stratified(strata=strata, allocation=shared).draw(units, 7)
    for labels in (None, labelled(sample)):
        later = stratal.next_round(sample, labels, additional=sample.size)
        assert later.n_h.sum() == 2 * sample.size
    assert np.abs(stratal.next_round(sample, additional=sample.size).n_h - 2 * sample.n_h).max() <= 1
