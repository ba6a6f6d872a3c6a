from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.errors import InputError, LabelError
from stratal.planning.previous_labels import PreviousLabels


def units(size=2000, seed=0):
    """Return a proxy that is too sure, and outcomes."""
    random = np.random.default_rng(seed)
    odds = random.normal(0.5, 1.0, size)
    return 1 / (1 + np.exp(-3 * odds)), (random.random(size) < 1 / (1 + np.exp(-odds))).astype(float)


def test_every_unit_labelled_gives_the_true_variances():
    proxy, z = units()
    population = stratal.Population.from_arrays(proxy=proxy)
    strata = stratal.strata.stratify(population, n_strata=4)
    found = PreviousLabels(population, dict(enumerate(z))).scenario(strata, np.full(4, 25))

    true = np.array([z[strata.codes == h].var() for h in range(4)])
    assert found.variances.shape == (3, 4)
    assert found.variances[0] == pytest.approx(true, rel=0.02)
    assert found.select(0).standard_errors(strata, np.full(4, 25), "horvitz-thompson") == pytest.approx(
        found.select(2).standard_errors(strata, np.full(4, 25), "horvitz-thompson"), rel=0.05
    )


def test_labels_that_the_proxy_chose_still_tell_of_all_units():
    proxy, z = units()
    population = stratal.Population.from_arrays(proxy=proxy)
    uncertain = np.flatnonzero((proxy < 0.9) | (np.arange(2000) % 10 == 0))
    whole = stratal.strata.stratify(population, "none")
    found = PreviousLabels(population, {int(i): z[i] for i in uncertain}).scenario(whole, np.array([100]))

    assert z[uncertain].mean() < z.mean() - 0.1
    assert found.variances[0] == pytest.approx(z.var(), rel=0.05)


def test_more_labels_leave_less_open():
    proxy, z = units()
    population = stratal.Population.from_arrays(proxy=proxy)
    plans = [stratal.plan(population, 200, labels=dict(enumerate(z[:m]))) for m in (30, 300)]

    few, many = (
        p.recommended.conservative_standard_error - p.recommended.optimistic_standard_error for p in plans
    )
    assert many < 0.6 * few
    assert [p.to_dict()["labels"]["used"] for p in plans] == [30, 300]


def test_a_proxy_that_only_orders_is_promised_for_by_labels():
    proxy, z = units()
    population = stratal.Population.from_arrays(proxy=np.log(proxy / (1 - proxy)), scaled=False)
    assert stratal.plan(population, 200).expected_half_width is None

    plan = stratal.plan(population, half_width=0.06, labels=dict(enumerate(z[:200])))
    true = np.array([z[plan.strata.codes == h].var() for h in range(plan.strata.n_strata)])
    error = np.sqrt(np.sum(plan.strata.weights**2 * true / plan.allocation.n_h))
    assert plan.half_width_range[1] <= 0.06
    assert plan.recommended.expected_standard_error == pytest.approx(error, rel=0.15)


def test_without_a_proxy_the_labels_give_the_rate():
    population = stratal.Population.from_arrays(ids=[f"u{k}" for k in range(1000)])
    plan = stratal.plan(population, 100, labels={f"u{k}": float(k % 10 == 0) for k in range(200)})

    assert plan.recommended.expected_standard_error == pytest.approx(np.sqrt(0.09 / 100 * 0.9), rel=0.1)


def test_measurements_without_bounds_are_promised_for_by_their_spread():
    random = np.random.default_rng(1)
    proxy = random.normal(0, 3, 2000)
    z = proxy + random.normal(0, 1.5, 2000)
    population = stratal.Population.from_arrays(proxy=proxy, scaled=True)
    plan = stratal.plan(population, 200, labels=dict(enumerate(z[:150])))

    true = np.array([z[plan.strata.codes == h].var() for h in range(plan.strata.n_strata)])
    error = np.sqrt(np.sum(plan.strata.weights**2 * true / plan.allocation.n_h * 0.9))
    assert plan.recommended.expected_standard_error == pytest.approx(error, rel=0.15)
    assert plan.recommended.optimistic_standard_error < error < plan.recommended.conservative_standard_error


def test_ratings_keep_their_bounds():
    random = np.random.default_rng(2)
    proxy = random.uniform(1, 5, 1000)
    z = np.clip(np.round(proxy + random.normal(0, 0.5, 1000)), 1, 5)
    population = stratal.Population.from_arrays(proxy=proxy, bounds=(1, 5))
    plan = stratal.plan(population, 100, n_strata=5, labels=dict(enumerate(z[:150])))

    true = np.array([z[plan.strata.codes == h].var() for h in range(plan.strata.n_strata)])
    error = np.sqrt(np.sum(plan.strata.weights**2 * true / plan.allocation.n_h * 0.9))
    assert plan.recommended.expected_standard_error == pytest.approx(error, rel=0.2)
    # The difference estimator of a simple random sample, of which 150 labels tell the slope.
    row = next(row for row in plan.designs[:3] if row.estimator == "difference")
    assert row.expected_standard_error == pytest.approx(np.std(z - proxy) / 10 * 0.9**0.5, rel=0.15)


def test_classes_are_compared_with_the_models_answers():
    proxy, z = units(400)
    answers = np.where(np.arange(400) % 2 == 0, "cat", "dog")
    population = stratal.Population.from_arrays(proxy=proxy, groups={"answer": answers}, predicted="answer")
    given = {k: answers[k] if z[k] else answers[k + 1] for k in range(100)}

    found = PreviousLabels(population, given)
    own = dict(zip(proxy[:100].tolist(), z[:100].tolist(), strict=True))
    assert dict(zip(found.columns["proxy"].tolist(), found.z.tolist(), strict=True)) == own


def test_rows_that_nobody_filled_in_are_left_out():
    population = stratal.Population.from_arrays(proxy=[0.2, 0.8] * 50)
    found = PreviousLabels(population, {0: 1.0, 1: 0.0, 2: None, 3: 1.0})

    pairs = zip(found.columns["proxy"].tolist(), found.z.tolist(), strict=True)
    assert sorted(pairs) == [(0.2, 1.0), (0.8, 0.0), (0.8, 1.0)]


def test_labels_of_nobody_and_of_strangers_are_refused():
    population = stratal.Population.from_arrays(proxy=[0.2, 0.8] * 50)

    with pytest.raises(
        LabelError, match=r"1 of 2 labelled ids are not in the population.*with a column of the proxy"
    ):
        stratal.plan(population, 20, labels={3: 1.0, 777: 0.0})
    with pytest.raises(LabelError, match="no unit is labelled yet"):
        stratal.plan(population, 20, labels={3: None})
    with pytest.raises(InputError, match="must have the ids"):
        stratal.plan(population, 20, labels=[1.0, 0.0])
    with pytest.raises(InputError, match="mutually exclusive"):
        stratal.plan(population, half_width=0.1, pilot=True, labels={3: 1.0})


@pytest.mark.parametrize("estimand", ["f1:match", "recall:match", "difference:new,old", "mean@answer"])
def test_another_estimand_than_the_mean_learns_nothing_and_says_what_to_do(estimand):
    population = stratal.Population.from_arrays(
        proxy=[0.2, 0.8] * 50, groups={"answer": ["match", "other"] * 50}, predicted="answer"
    )
    with pytest.raises(InputError, match="does not accept labels=") as refused:
        stratal.plan(population, 20, labels={3: 1.0, 4: 0.0}, estimand=estimand)

    assert f"'{estimand}'" in str(refused.value)
    assert "To label more units of a sample, use next_round" in str(refused.value)


def test_the_mean_by_name_learns_as_without():
    population = stratal.Population.from_arrays(proxy=[0.2, 0.8] * 50)
    labels = {unit: float(unit % 2) for unit in range(20)}

    named = stratal.plan(population, 30, labels=labels, estimand="mean")

    assert named.to_dict() == stratal.plan(population, 30, labels=labels).to_dict()


def domains(size, seed, prefix="u", shift=0.0):
    """Return units whose proxy means something else in each domain, and their outcomes."""
    random = np.random.default_rng(seed)
    domain = random.choice(["law", "med", "news"], size, p=[0.2, 0.3, 0.5])
    odds = random.normal(1.0 + shift, 1.2, size)
    slopes, levels = {"law": 0.2, "med": 1.0, "news": 2.0}, {"law": -0.5, "med": 0.0, "news": 0.5}
    true = np.array([slopes[name] * t + levels[name] for name, t in zip(domain, odds, strict=True)])
    z = (random.random(size) < 1 / (1 + np.exp(-true))).astype(float)
    ids = [f"{prefix}{k}" for k in range(size)]
    proxy = 1 / (1 + np.exp(-1.5 * odds))
    return stratal.Population.from_arrays(proxy=proxy, groups={"domain": domain}, ids=ids), z, ids


def test_calibrated_by_domain_the_deviations_are_nearer_the_truth_than_by_one_curve():
    """Labels of other units: root mean squared error of S_h over seeds, each against the next better way."""
    errors = []
    for seed in range(6):
        population, z, _ = domains(4000, seed)
        audit, y, ids = domains(400, 100 + seed, "a")
        labels = dict(zip(ids, y, strict=True))
        row = []
        for how in ({}, {"labels": labels}, {"labels": labels, "calibrate_by": "domain"}):
            units = {"labelled_units": audit} if how else {}
            plan = stratal.plan(population, 200, by="domain", n_strata=10, **how, **units)
            true = np.array([z[plan.strata.codes == h].std() for h in range(plan.strata.n_strata)])
            found = [entry["expected_standard_deviation"] for entry in plan.to_dict()["strata"]]
            row.append(float(np.sqrt(plan.strata.weights @ (np.array(found) - true) ** 2)))
            assert plan.notes == () or "the distribution of" not in " ".join(plan.notes)
        errors.append(row)
    alone, one, each = np.mean(errors, axis=0)

    assert one < 0.7 * alone
    assert each < 0.75 * one


def test_a_proxy_that_is_distributed_otherwise_than_where_labels_are_from_is_warned_of():
    population, _, _ = domains(3000, 1)
    shifted, y, ids = domains(500, 2, "a", shift=0.6)
    labels = dict(zip(ids, y, strict=True))
    plan = stratal.plan(population, 200, labels=labels, labelled_units=shifted, calibrate_by="domain")

    assert "the distribution of 'proxy' differs" in " ".join(plan.notes)
    with pytest.raises(LabelError, match="not in the population"):
        stratal.plan(population, 200, labels=labels)
    with pytest.raises(InputError, match="calibrate_by requires labels"):
        stratal.plan(population, 200, calibrate_by="domain")
    strange = stratal.Population.from_arrays(proxy=[0.5] * 500, groups={"domain": ["sports"] * 500}, ids=ids)
    with pytest.raises(LabelError, match=r"category of 'domain' here.*law, med, news"):
        stratal.plan(population, 200, labels=labels, labelled_units=strange, calibrate_by="domain")
    bare = stratal.Population.from_arrays(proxy=[0.5] * 500, ids=ids)
    with pytest.raises(InputError, match="no such group column: 'domain'"):
        stratal.plan(population, 200, labels=labels, labelled_units=bare, calibrate_by="domain")


def test_a_domain_with_few_labels_is_recalibrated_by_all():
    population, z, ids = domains(3000, 3)
    domain = next(iter(population.batches(("domain",))))["domain"]
    rows = [k for k in range(400) if domain[k] != "law"] + [k for k in range(400) if domain[k] == "law"][:4]
    labels = {ids[k]: z[k] for k in rows}
    plan = stratal.plan(population, 200, labels=labels, calibrate_by="domain")

    assert all(np.isfinite(row["expected_standard_deviation"]) for row in plan.to_dict()["strata"])
