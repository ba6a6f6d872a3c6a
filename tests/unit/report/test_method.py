"""The words of methods: every design, estimator and interval has some."""

import numpy as np
import pytest

import stratal
from stratal.designs import Design
from stratal.estimation.outcome_means import ESTIMATORS
from stratal.intervals.methods import INTERVAL_METHOD_NAMES
from stratal.report import document as method

FOUND = {
    "design": "stratified",
    "estimator": "ppi++",
    "outcome": "unbounded",
    "interval_method": "t",
    "confidence_level": 0.9,
    "n": 20,
    "population_size": 1000,
    "target": "superpopulation",
    "nonresponse": {"drawn": 25, "labelled": 20, "rate": 0.2},
}


def test_every_design_estimator_and_interval_has_words_and_sources():
    known = method.methods()
    assert Design.class_of_kind("no-such") is None  # imports all designs
    assert {"simple-random", "stratified", "systematic", "clusters"} <= set(Design.registry)
    for design in Design.registry.values():
        text, *sources = design.report_description
        assert text
        assert sources
        assert set(sources) <= set(known["sources"])
    assert set(ESTIMATORS) <= set(known["estimators"])
    assert set(INTERVAL_METHOD_NAMES) - {"auto"} <= set(known["intervals"])
    for kind in ("estimators", "intervals"):
        for entry in known[kind].values():
            assert entry["words"]
            assert set(entry["sources"]) <= set(known["sources"])
            assert entry["sources"]


def test_methods_whose_limits_are_combined_are_all_described():
    (_, _, sentence) = method.describe_method(FOUND | {"interval_method": "fisher and mover"})["sentences"]

    assert "Fisher's z" in sentence
    assert "extended to the limits of another interval, combined from" in sentence
    references = " ".join(
        method.describe_method(FOUND | {"interval_method": "fisher and mover"})["references"]
    )
    assert "Fisher (1921)" in references
    assert "Zou & Donner (2008)" in references


def test_assumptions_follow_the_estimate():
    said = " ".join(method.describe_method(FOUND)["assumptions"])

    assert "without a label" in said
    assert "random sample from the distribution" in said
    assert "fitted to the same labels" in said
    complete = FOUND | {"nonresponse": {"drawn": 20, "labelled": 20, "rate": 0.0}, "outcome": "binary"}
    assert "without a label" not in " ".join(method.describe_method(complete)["assumptions"])


def test_a_design_says_what_was_drawn_and_what_else_could_fail():
    drawn = Design.class_of_kind("systematic")
    found = method.describe_method(FOUND, drawn.report_description, drawn.assumption)

    assert "a systematic sample along the proxy" in found["sentences"][0]
    assert drawn.assumption in found["assumptions"]
    assert "Cochran" in found["references"][0]
    assert (
        method.describe_method(FOUND, ("drawn by lot", "Lotte (2026), Lots."))["references"][0][:5] == "Lotte"
    )


def test_neyman_is_cited_where_his_rule_was_used():
    assert any(
        entry.startswith("Neyman")
        for entry in method.describe_method(FOUND, allocation="robust")["references"]
    )


def rows_of(labelled, size=200, **options):
    """Return an evaluated table of which the first rows have a label."""
    random = np.random.default_rng(8)
    score = random.random(size).round(3)
    label = [float(random.random() < value) for value in score]
    table = {"id": [str(number) for number in range(size)], "score": score.tolist()}
    table["label"] = [*label[:labelled], *[None] * (size - labelled)]
    return stratal.evaluate(table, value="label", proxy=["score"], **options)


def page_of(result):
    return " ".join(method.report_markdown(result.report().to_dict()).split())


@pytest.fixture
def drawn():
    population = stratal.Population.from_arrays(proxy=np.linspace(0, 1, 200))
    return stratal.designs.SimpleRandom(budget=40).draw(population, seed=5)


def test_only_the_population_has_a_finite_population_correction(drawn):
    for target, is_corrected in (("population", True), ("superpopulation", False)):
        found = stratal.findings(drawn, [1.0, 0.0] * 20, target=target).to_dict()
        sentences = " ".join(found["method"]["sentences"])
        assert ("finite population correction" in sentences) == is_corrected
        assert "Clopper–Pearson interval for the effective number of trials" in sentences


def test_a_drawn_sample_has_a_seed_and_was_drawn(drawn):
    found = stratal.findings(drawn, [1.0, 0.0] * 20).to_dict()

    assert (found["provenance"]["seed"], found["provenance"]["design"]) == (5, "simple-random")
    assert "drawn as a simple random sample" in found["method"]["sentences"][0]
    assert "no unit was replaced by hand" in " ".join(found["method"]["assumptions"])


@pytest.mark.parametrize(
    ("labelled", "chosen", "texts"),
    [
        (60, "random", ["taken as a simple random sample", "140 of 200 units have no label"]),
        (190, "all", ["missing at random", "10 of 200 units have no label"]),
        (200, "all", ["200 of 200 units were labelled. The", "All 200 units have a label"]),
        (60, None, ["taken as a simple random sample"]),
    ],
)
def test_rows_that_nobody_drew_are_not_called_drawn(labelled, chosen, texts):
    """The report stated a draw with seed 0, and that no drawn unit lacked a label."""
    page = page_of(rows_of(labelled, chosen=chosen))

    for text in texts:
        assert text in page
    for text in ("drawn", "seed", "replaced by hand"):
        assert text not in page


def test_a_declared_sample_was_drawn_elsewhere():
    table = {"id": [str(number) for number in range(50)], "label": [0.0, 1.0] * 25}
    sample, labels = stratal.Sample.from_labelled(table, value="label", population_size=500)
    found = stratal.findings(sample, labels).to_dict()

    assert "declared to be a simple random sample" in found["method"]["sentences"][0]
    assert found["provenance"]["drawn"] == "elsewhere"
    assert "seed" not in found["provenance"]


def test_readings_of_a_census_have_intervals_for_the_same_target():
    """The interval of unweighted labels had no width beside that of the superpopulation."""
    rows = rows_of(200).report().to_dict()["side_by_side"]
    naive, reported = (row for row in rows if row["name"] != "proxy alone")

    assert naive["confidence_interval"] == pytest.approx(reported["confidence_interval"])
    assert "simple-random sample" not in page_of(rows_of(200))
