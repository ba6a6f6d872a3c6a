"""The words of methods: every design, estimator and interval has some."""

from stratal.designs import Design
from stratal.estimation import ESTIMATORS
from stratal.intervals.methods import METHODS
from stratal.report import method

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
    assert set(Design.registry) <= set(method.DESIGNS)
    assert set(ESTIMATORS) <= set(method.ESTIMATORS)
    assert set(METHODS) - {"auto"} <= set(method.INTERVALS)
    for words in (method.DESIGNS, method.ESTIMATORS, method.INTERVALS):
        for text, sources in words.values():
            assert text
            assert set(sources) <= set(method.SOURCES)
            assert sources


def test_assumptions_follow_the_estimate():
    said = " ".join(method.described_method(FOUND)["assumptions"])

    assert "without a label" in said
    assert "random draw from the distribution" in said
    assert "fitted on the same labels" in said
    complete = FOUND | {"nonresponse": {"drawn": 20, "labelled": 20, "rate": 0.0}, "outcome": "binary"}
    assert "without a label" not in " ".join(method.described_method(complete)["assumptions"])


def test_neyman_is_cited_where_his_rule_was_used():
    assert any(entry.startswith("Neyman") for entry in method.described_method(FOUND, "robust")["references"])
