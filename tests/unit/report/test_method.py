"""The words of methods: every design, estimator and interval has some."""

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
    for design in Design.registry.values():
        text, *sources = design.words
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


def test_assumptions_follow_the_estimate():
    said = " ".join(method.describe_method(FOUND)["assumptions"])

    assert "without a label" in said
    assert "random sample from the distribution" in said
    assert "fitted to the same labels" in said
    complete = FOUND | {"nonresponse": {"drawn": 20, "labelled": 20, "rate": 0.0}, "outcome": "binary"}
    assert "without a label" not in " ".join(method.describe_method(complete)["assumptions"])


def test_a_design_says_what_was_drawn_and_what_else_could_fail():
    drawn = Design.registry["systematic"]
    found = method.describe_method(FOUND, drawn.words, drawn.assumption)

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
