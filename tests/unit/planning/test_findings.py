"""All that a report says: equal to the estimate, weighted where it must be, silent where nothing is known."""

import inspect
import json

import numpy as np
import pytest

import stratal
from stratal.designs.sample_file import sample_digest


@pytest.fixture
def drawn(population, truth):
    sample = stratal.plan(population, budget=100).draw(seed=7)
    return sample, {unit: truth[unit] for unit in sample.ids.tolist()}


def test_the_estimate_is_that_of_estimate(drawn):
    found = stratal.findings(*drawn).to_dict()

    assert found["estimate"] == stratal.estimate(*drawn).to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_side_by_side(drawn, population):
    sample, labels = drawn
    rows = {row["name"]: row for row in stratal.findings(sample, labels).to_dict()["side_by_side"]}

    values = np.array([labels[unit] for unit in sample.ids.tolist()])
    assert rows["labels, unweighted"]["estimate"] == pytest.approx(values.mean())
    assert rows["proxy alone"]["estimate"] == pytest.approx(np.random.default_rng(0).beta(3, 1, 500).mean())
    assert rows["proxy alone"]["confidence_interval"] is None
    assert [name for name, row in rows.items() if row["reported"]] == ["with the design"]


def test_a_fitted_proxy_is_also_shown_left_out(population, truth):
    sample = stratal.designs.SimpleRandom(budget=100).draw(population, seed=7)
    labels = {unit: truth[unit] for unit in sample.ids.tolist()}
    rows = {row["name"]: row for row in stratal.findings(sample, labels).to_dict()["side_by_side"]}

    plain = stratal.estimate(sample, labels, estimator="horvitz-thompson")
    assert rows["labels alone, weighted"]["estimate"] == plain.value
    assert rows["with the design"]["estimate"] == stratal.estimate(sample, labels).value


def test_calibration_is_weighted_as_drawn():
    """Half of the labels come from a tenth of the units; the bias is that of all units."""
    proxy = np.array([0.2] * 900 + [0.8] * 100)
    population = stratal.Population.from_arrays(proxy=proxy)
    strata = stratal.strata.stratify(population, n_strata=2)
    design = stratal.designs.Stratified(
        strata=strata, allocation=stratal.strata.allocate(strata, 100, method="equal")
    )
    sample = design.draw(population, seed=7)
    labels = {unit: float(unit % 5 == 0) if unit < 900 else 0.0 for unit in sample.ids.tolist()}
    check = stratal.findings(sample, labels).to_dict()["calibration"]

    rate = np.mean([value for unit, value in labels.items() if unit < 900])
    assert check["bias"]["estimate"] == pytest.approx(0.9 * (0.2 - rate) + 0.1 * 0.8)
    assert [row["outcome_mean"] for row in check["bins"]] == pytest.approx([rate, 0.0])
    assert sum(row["n"] for row in check["bins"]) == 100


def test_a_proxy_that_only_orders_is_not_calibrated():
    population = stratal.Population.from_arrays(proxy=np.arange(100.0), scaled=False)
    sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=7)
    found = stratal.findings(sample, [0.0, 1.0] * 10).to_dict()

    assert found["calibration"] is None
    assert [row["name"] for row in found["side_by_side"]] == ["labels, unweighted", "with the design"]


def test_more_labels_are_what_the_next_rounds_expect(drawn):
    sample, labels = drawn
    rows = stratal.findings(sample, labels).to_dict()["more_labels"]
    low, high = stratal.estimate(sample, labels).confidence_interval()

    assert rows[0] == {"labels": 100, "half_width": pytest.approx((high - low) / 2)}
    widths = [row["half_width"] for row in rows]
    assert widths == sorted(widths, reverse=True)
    wanted = stratal.labels_needed(sample, labels, rows[2]["half_width"])
    # Labels that decide when a study ends cost some width, and may be shared out otherwise for that.
    assert wanted.expected_total == pytest.approx(rows[2]["labels"], rel=0.03)


@pytest.mark.parametrize("kind", ["Systematic", "Poisson", "ProportionalToSize"])
def test_other_designs_have_a_report_too(population, truth, kind):
    sample = getattr(stratal.designs, kind)(budget=60).draw(population, seed=7)
    found = stratal.findings(sample, {unit: truth[unit] for unit in sample.ids.tolist()}).to_dict()

    assert found["estimate"]["design"] == sample.design.kind
    rows = found["more_labels"]
    assert rows[-1]["half_width"] < rows[0]["half_width"]


def test_units_without_a_label_are_counted_by_stratum(drawn):
    sample, labels = drawn
    few = dict(list(labels.items())[:90])
    found = stratal.findings(sample, few).to_dict()

    assert sum(row["drawn"] - row["n"] for row in found["strata"]) == 10


def test_labels_that_all_agree(population):
    sample = stratal.plan(population, budget=40).draw(seed=7)
    found = stratal.findings(sample, [1.0] * 40)

    assert str(found).startswith("Share of ones 100.0% (95% interval 9")
    assert "worth" not in str(found)


@pytest.mark.parametrize(("ones", "zeros", "name"), [("Pass", "Fail", "Pass rate"), (1, 0, "Share of ones")])
def test_the_share_is_called_by_the_word_that_counts_as_one(population, ones, zeros, name):
    sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=7)

    assert str(stratal.findings(sample, [ones, zeros] * 10)).startswith(f"{name} 50.0%")


def test_classes_are_compared_and_called_accuracy():
    population = stratal.Population.from_arrays(
        proxy=[0.6] * 40, groups={"answer": ["cat", "dog"] * 20}, predicted="answer"
    )
    sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=7)
    found = stratal.findings(sample, ["cat"] * 20, predicted=True).to_dict()

    assert found["quantity"] == "accuracy"


def test_examples_only_when_asked_and_those_first_that_surprise(truth):
    proxy = np.random.default_rng(0).beta(3, 1, 500)
    population = stratal.Population.from_arrays(
        proxy=proxy, ids=list(truth), show={"text": [f"text {k}" for k in range(500)]}
    )
    sample = stratal.designs.SimpleRandom(budget=50).draw(population, seed=7)
    labels = {unit: truth[unit] for unit in sample.ids.tolist()}

    assert stratal.findings(sample, labels).to_dict()["examples"] == []
    rows = stratal.findings(sample, labels, examples=5).to_dict()["examples"]
    gaps = [abs(row["outcome"] - row["proxy"]) for row in rows]
    assert len(rows) == 5
    assert gaps == sorted(gaps, reverse=True)
    assert rows[0]["text"].startswith("text ")


def test_the_hash_is_the_one_in_the_file(drawn, tmp_path):
    import pyarrow.parquet

    sample, labels = drawn
    path = sample.write(tmp_path / "sample.parquet")
    (described,) = pyarrow.parquet.read_schema(path).metadata.values()

    assert (
        json.loads(described)["digest"] == sample_digest(sample) == sample_digest(stratal.Sample.read(path))
    )
    assert stratal.findings(sample, labels).to_dict()["provenance"]["sample's SHA-256"] == sample_digest(
        sample
    )


def test_agreement_of_several_annotators(drawn):
    sample, labels = drawn
    ids = list(labels)
    given = stratal.Labels(
        ids=(*ids, *ids[:10]),
        values=(*labels.values(), *[labels[unit] for unit in ids[:10]]),
        annotators=("ann",) * 100 + ("bob",) * 10,
    )

    assert stratal.findings(sample, given).to_dict()["agreement"]["alpha"] == 1.0


@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")
@pytest.mark.parametrize(
    "options",
    [
        {"calibration": "isotonic"},
        {"cross_fit": 5, "estimator": "ppi++"},
        {"lam": 0.5},
        {"target": "superpopulation"},
        {"outcome": "unbounded"},
        {"estimator": "stratppi"},
        {"combine": "majority"},
    ],
)
def test_every_way_of_estimating_has_a_report(population, truth, options):
    sample = stratal.designs.SimpleRandom(budget=80).draw(population, seed=7)
    labels = {unit: truth[unit] for unit in sample.ids.tolist()}
    found = stratal.findings(sample, labels, **options).to_dict()

    made = stratal.estimate(sample, labels, **options).to_dict()
    assert found["estimate"] == made
    assert found["side_by_side"][-1]["estimate"] == made["estimate"]
    assert found["side_by_side"][-1]["confidence_interval"] == made["confidence_interval"]


@pytest.mark.parametrize("budget", [1, 2, 500])
def test_one_label_two_labels_and_a_census(population, truth, budget):
    sample = stratal.designs.SimpleRandom(budget=budget).draw(population, seed=7)
    found = stratal.findings(sample, [truth[unit] for unit in sample.ids.tolist()])

    assert found.to_dict()["estimate"]["n"] == budget
    assert (found.to_dict()["more_labels"] == []) == (budget == 500)
    assert found._repr_html_()


def test_samples_from_elsewhere():
    table = {"y": [1, 0, 1, 1] * 20, "w": [5.0] * 80, "p": [0.7, 0.4] * 40}
    moments = {"stratum": ["all"], "mean": [0.5], "variance": [0.04], "count": [5000]}
    for known in ({"weight": "w"}, {"population_size": 400, "proxy": "p", "proxy_moments": moments}):
        sample, labels = stratal.Sample.from_labelled(table, value="y", **known)
        found = stratal.findings(sample, labels).to_dict()
        assert found["estimate"] == stratal.estimate(sample, labels).to_dict()


def test_a_keyword_that_nobody_has_is_refused_in_the_name_of_findings(population, truth):
    sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=7)
    labels = [truth[unit] for unit in sample.ids.tolist()]

    with pytest.raises(
        TypeError, match=r"findings\(\) got an unexpected keyword .*'quality'; it takes 'quantity'"
    ):
        stratal.findings(sample, labels, quality="accuracy")
    assert stratal.findings(sample, labels, estimator="difference").to_dict()["estimate"]["n"] == 20
    assert {"quantity", "estimator", "cross_fit"} <= set(inspect.signature(stratal.findings).parameters)


def test_the_first_of_several_may_have_no_interval(population):
    """All labels of one group agree, and the outcome has no bounds."""
    sample = stratal.designs.SimpleRandom(budget=40).draw(population, seed=7)
    first = sample.groups["language"] == "de"
    found = stratal.findings(sample, np.where(first, 4.0, np.arange(40) * 2.0), estimand="mean@language")

    assert found.to_dict()["estimate"]["confidence_interval"] is None
    assert found._repr_html_()


def test_a_share_of_units_with_several_answers_is_called_by_its_word(population, tmp_path):
    """The mean of Pass and Fail of one unit is .5, which made the pass rate a mean of `label`."""
    sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=7)
    answers = ["Pass", "Fail"] * 10 + ["Pass"] * 20
    annotators = ["ann"] * 20 + ["bob"] * 20
    rows = zip(sample.ids.tolist() * 2, answers, annotators, strict=True)
    file = tmp_path / "labels.csv"
    file.write_text("\n".join(["id,label,annotator", *(",".join(map(str, row)) for row in rows)]) + "\n")

    assert str(stratal.findings(sample, stratal.read_labels(file))).startswith("Pass rate 75.0%")


def test_mean_proxies_of_strata_are_without_rounding_errors():
    """Means of a verdict of 0 and 1 were 1.89e-15 and -3.33e-16, and were then not shown as shares."""
    rng = np.random.default_rng(5)
    score = rng.random(1_485)
    verdict = (score > 0.5).astype(float)
    population = stratal.Population.from_arrays(proxy={"verdict": verdict, "score": score})
    sample = stratal.plan(population, budget=200).draw(seed=7)
    labels = {unit: float(verdict[int(unit)]) for unit in sample.ids.tolist()}
    rows = stratal.findings(sample, labels).to_dict()["strata"]

    computed = sample.summary.proxy_means[:, 0]
    assert np.any((computed != 0) & (np.abs(computed) < 1e-12))
    means = np.array([row["proxy_mean"] for row in rows])
    assert means == pytest.approx(computed, abs=1e-11)
    assert set(means[np.abs(computed) < 1e-12]) == {0.0}
    assert all(0.0 <= mean <= 1.0 for mean in means)
