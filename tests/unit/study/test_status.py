"""What is required of a study is held against the interval that holds at every moment."""

import pytest
from tests.unit.study.test_agreement import answer_all

import stratal
from stratal.study import study_status


def test_a_status_says_what_is_decided(make_study, run_command):
    study = make_study(overlap=0.0)
    answer_all(study, "ann")
    answer_all(study, "bob")
    result = study_status(study, require=["value>=.9", "value<=.2", "value>=.999"])
    verdicts = {entry["required"]: entry["verdict"] for entry in result["requirements"]}
    low, _ = result["anytime_interval"]

    assert verdicts["value<=0.2"] == "FAIL"
    assert verdicts["value>=0.9"] == ("PASS" if low >= 0.9 else "UNDECIDED")
    assert result["requirements"][0]["confidence_interval"] == result["anytime_interval"]
    for requirement, status in (("value>=.1", 0), ("value<=.2", 4), ("value>=.999", 5)):
        done = run_command("study", "status", str(study.folder), "--require", requirement)
        assert done.status == status
        assert "Required value" in done.stdout
    with pytest.raises(stratal.InputError, match="only the estimate 'value'"):
        study_status(study, require=["kappa>=.6"])


def test_a_study_without_labels_is_undecided(make_study, run_command):
    study = make_study()
    done = run_command("study", "status", str(study.folder), "--require", "value>=.5")
    assert done.status == 5
    assert "Required value>=0.5: UNDECIDED.\n" in done.stdout
