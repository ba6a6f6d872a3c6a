"""Sections of a report: what is asked for is there, what is not known is left out."""

import numpy as np
import pytest

import stratal
from stratal.estimands import ClassReport
from stratal.report.estimates import answer_sentences
from stratal.report.sections import report_sections


@pytest.fixture
def audit(population, truth):
    sample = stratal.plan(population, budget=100).draw(seed=7)
    return sample, {unit: truth[unit] for unit in sample.ids.tolist()}


def named(found):
    return {section.name: section for section in report_sections(found.to_dict())}


def test_several_models_are_ranked_in_answer_picture_and_table(audit):
    sample, labels = audit
    rng = np.random.default_rng(1)
    models = {
        name: {unit: z * (rng.random() < share) for unit, z in labels.items()}
        for name, share in (("best", 1.0), ("near", 0.98), ("worst", 0.2))
    }
    found = stratal.findings(sample, labels, tables=[stratal.compare(sample, models)])
    section = named(found)["models"]

    (said,) = answer_sentences(found.to_dict())
    assert said.startswith("Best of 3 models: best ")
    assert said.endswith("not distinguishable from this model: near")
    assert "1 to 2 · best: " in section.drawings[0].description
    assert "3 · worst: " in section.drawings[0].description
    assert section.tables[0].cells()[2][:2] == ["3", "worst"]
    assert not [point for point in named(found)["answer"].notes if "ranks left open" in point]


def test_of_several_models_the_table_comes_first_and_the_rest_says_whose_labels_it_reads(audit):
    sample, labels = audit
    models = {"a": labels, "b": dict.fromkeys(labels, 1.0), "c": dict.fromkeys(labels, 0.0)}
    compared = stratal.compare(sample, models)
    found = stratal.findings(sample, labels, tables=[compared], quantity="accuracy of a")

    sections = report_sections(found.to_dict())

    assert [section.name for section in sections][:3] == ["answer", "models", "more-labels"]
    assert sections[1].tables[1].title == "Differences"
    assert not any("Standard error" in line for line in sections[0].lines)
    of_one = [section.name for section in sections if "For one model only: accuracy of a." in section.lines]
    assert of_one == ["more-labels", "side-by-side", "calibration", "strata"]


def test_the_mean_of_a_model_that_differs_from_its_estimate_is_explained(population, truth):
    """The comparison uses the labels alone, and the estimate of the first model uses the proxy."""
    sample = stratal.designs.SimpleRandom(budget=100).draw(population, seed=7)
    labels = {unit: truth[unit] for unit in sample.ids.tolist()}
    models = {"a": labels, "b": dict.fromkeys(labels, 1.0)}
    compared = stratal.compare(sample, models)
    found = stratal.findings(sample, labels, tables=[compared])
    means = {row["model"]: row["mean"] for row in found.to_dict()["estimate"]["leaderboard"]}
    (line,) = named(found)["side-by-side"].lines[-1:]

    assert means["a"] != stratal.estimate(sample, labels).value
    assert "uses only the labels" in line
    (line,) = named(stratal.findings(sample, labels))["side-by-side"].lines[-1:]
    assert "is the estimate of this report." in line


def test_what_is_not_there_has_no_section(audit):
    sample, labels = audit
    shown = set(named(stratal.findings(sample, labels)))

    assert not shown & {"metrics", "models", "domains", "agreement", "new-version", "examples"}
    assert {"answer", "side-by-side", "strata", "calibration", "nonresponse", "method", "provenance"} <= shown


@pytest.mark.parametrize(
    ("allocation", "said"),
    [("proportional", "the same share of the labels"), ("robust", "the Method section")],
)
def test_how_labels_were_shared_is_said_as_it_was(population, truth, allocation, said):
    plan = stratal.plan(population, budget=100, allocation=allocation, n_strata=5)
    sample = plan.using("stratified").draw(seed=7)
    found = stratal.findings(sample, [truth[unit] for unit in sample.ids.tolist()])

    assert said in " ".join(named(found)["strata"].lines)


def test_one_stratum_has_no_section_of_strata(population, truth):
    sample = stratal.designs.SimpleRandom(budget=60).draw(population, seed=7)

    assert "strata" not in named(stratal.findings(sample, [truth[unit] for unit in sample.ids.tolist()]))


def test_units_without_a_label_are_said_to_be_stood_for(audit):
    sample, labels = audit
    kept = dict(list(labels.items())[:95])
    section = named(stratal.findings(sample, kept))["nonresponse"]

    assert section.lines[0].startswith("5 of 100 drawn units have no label (5.0%);")
    assert sum(int(row[1]) - int(row[2]) for row in section.tables[0].cells()) == 5


def test_the_proxys_error_is_said_with_its_sign(audit):
    sample, _ = audit
    wrong = named(stratal.findings(sample, [0.0, 0.0, 0.0, 1.0] * 25))["calibration"]

    assert "points above that of the labels (95% interval" in wrong.lines[1]


def test_only_tables_of_shares_are_in_percent(audit):
    sample, labels = audit
    classes = {unit: str(z) for unit, z in labels.items()}
    said = {"label": classes, "predicted": dict.fromkeys(labels, "1.0")}
    groups = stratal.estimate(sample, labels, by="language")

    for metric, percent in (("recall", True), ("mcc", False)):
        table = stratal.estimate(sample, said, estimand=ClassReport([metric]))
        shown = named(stratal.findings(sample, labels, tables=[table, groups]))
        assert ("%" in shown["metrics"].drawings[0].description) == percent
        assert "%" in shown["domains"].drawings[0].description


def test_a_new_version_that_is_not_known_shows_its_bounds_alone(audit):
    sample, labels = audit
    answers = {unit: "a" if k % 2 else "b" for k, unit in enumerate(labels)}
    new = stratal.new_version(sample, labels, dict.fromkeys(labels, "a"), old_answers=answers)
    section = named(stratal.findings(sample, labels, new=new))["new-version"]

    assert "; new version: –" not in section.drawings[0].description
    assert section.notes[0].startswith("Need labels: ")


def test_thousands_of_groups_stay_one_small_page():
    """The units of labels are shares of all strata, though not all are drawn."""
    groups = [f"group {k % 1100:05d} with a long name of its own" for k in range(3300)]
    population = stratal.Population.from_arrays(proxy=np.full(3300, 0.5), groups={"group": groups})
    sample = stratal.designs.SimpleRandom(budget=2500).draw(population, seed=7)
    labels = dict.fromkeys(sample.ids.tolist(), 1.0) | {int(sample.ids[0]): 0.0}
    table = stratal.estimate(sample, labels, by="group")
    found = stratal.findings(sample, labels, tables=[table])
    section = named(found)["domains"]

    assert len(table) > 1000
    shown = section.tables[0].printed()
    assert len(shown.rows) == 301
    assert shown.cells()[-1][0] == f"… and {len(table) - 300:,} more: see --json or to_dict()"
    assert section.drawings[0].title == f"Groups: the first 40 of {len(table):,}"
    from stratal.report.document import report_html

    assert len(report_html(found.to_dict()).encode()) < 200_000
