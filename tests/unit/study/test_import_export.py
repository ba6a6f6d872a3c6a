"""A study's items go out to tools, and answers come back: all or none, nothing twice, nothing lost."""

from __future__ import annotations

import pytest

import stratal
from stratal.errors import LabelError
from stratal.labels.annotation_tools import ToolAnswer, ToolAnswers
from stratal.study import StudyQuestion, create_study, study_status
from stratal.study.import_export import tool_question

IDS = ["007", 'a"b', "two\nlines", "köln", "=1+1", "x"]


def made(folder, question, *, annotators=("ann", "bob"), show=None, **more):
    shown = show or {"text": [f"Is {name} right?" for name in IDS]}
    population = stratal.Population.from_arrays(proxy=[0.1, 0.2, 0.4, 0.5, 0.8, 0.9], ids=IDS, show=shown)
    sample = stratal.designs.SimpleRandom(budget=6).draw(population, seed=7)
    return create_study(folder / "study", sample, question, annotators=annotators, **more)


@pytest.fixture
def study(tmp_path):
    with made(tmp_path, StudyQuestion.of_choices("Is it correct?", ["Pass", "Fail"]), overlap=1.0) as opened:
        yield opened


def answers(*said, tool="csv"):
    return ToolAnswers(tool=tool, answers=tuple(said))


def said(item, value, annotator="ann", **more):
    return ToolAnswer(id=item, value=value, annotator=annotator, place="line 2", **more)


def journal(study):
    with study.database.read() as connection:
        rows = connection.execute("SELECT annotator, action, value, note, shown FROM journal ORDER BY seq")
        return [tuple(row) for row in rows if row["annotator"]]


def test_items_go_out_without_proxy_or_stratum(study):
    tasks = study.tasks()

    assert sorted(task.id for task in tasks) == sorted(IDS)
    assert {tuple(task.payload) for task in tasks} == {("text",)}


def test_items_for_one_annotator_are_kept_for_that_one(study):
    mine = study.tasks(annotator="ann", items=2)

    assert len(mine) == 2
    assert [task.id for task in study.tasks(annotator="ann", items=2)] == [task.id for task in mine]


def test_answered_items_do_not_go_out_again(study):
    study.import_answers(answers(said("007", "Pass"), said("007", "Pass", "bob")))

    assert "007" not in [task.id for task in study.tasks()]


def test_answers_come_in_with_their_notes_and_times(study):
    taken = study.import_answers(answers(said("007", "Pass", note="hm", seconds=9.0), said("x", None)))

    assert (taken.new, taken.skipped, taken.unmatched, taken.applied) == (2, 1, 0, True)
    assert journal(study) == [("ann", "submit", "Pass", "hm", None), ("ann", "skip", None, "", None)]
    assert study_status(study)["time"]["seconds_per_item"] == 9.0


def test_taking_in_twice_changes_nothing(study):
    found = answers(said("007", "Pass"), said("x", None), said("köln", "Fail", "bob"))
    study.import_answers(found)
    before = journal(study)

    taken = study.import_answers(found)

    assert (taken.new, taken.changed, taken.same) == (0, 0, 3)
    assert journal(study) == before


def test_what_was_changed_in_the_study_since_stays(study):
    found = answers(said("007", "Pass"))
    study.import_answers(found)
    study.submit("ann", "007", "Fail")

    taken = study.import_answers(found)

    assert (taken.repeated, taken.changed) == (1, 0)
    assert study.labels().values == (0.0,)


def test_a_later_file_changes_what_it_changes(study):
    study.import_answers(answers(said("007", "Pass"), said("x", "Pass")))

    taken = study.import_answers(answers(said("007", "Fail"), said("x", "Pass"), said("köln", "Pass")))

    assert (taken.new, taken.changed, taken.same) == (1, 1, 1)
    assert journal(study)[2][:3] == ("ann", "change", "Fail")


def test_a_dry_run_says_the_same_and_saves_nothing(study):
    found = answers(said("007", "Pass"), said("nowhere", "Pass"), said("x", None))

    preview = study.import_answers(found, dry_run=True)
    assert journal(study) == []
    done = study.import_answers(found)

    assert not preview.applied
    assert {**preview.to_dict(), "applied": True} == done.to_dict()
    assert done.strangers == ("nowhere",)


def test_one_bad_answer_and_nothing_is_saved(study):
    with pytest.raises(LabelError, match=r"line 2: item 'x': this question does not accept this answer"):
        study.import_answers(answers(said("007", "Pass"), said("x", "Maybe")))

    assert journal(study) == []


def test_every_answer_that_is_not_taken_is_named_with_how_to_map_it(study):
    given = answers(said("007", "n/a"), said("x", "ok"), said('a"b', "Fail"))
    with pytest.raises(LabelError, match=r"line 2: item '007'.*'n/a', 'ok'.*mapping=") as refused:
        study.import_answers(given)
    assert "empty" in str(refused.value)

    done = study.import_answers(given.apply_mapping({"N/A": None, "OK": "Pass"}))

    assert (done.new, done.skipped) == (2, 0)
    assert "labels: n/a 1 → no answer, ok 1 → Pass" in done.notes
    assert [row[2] for row in journal(study)] == ["Pass", "Fail"]


def test_a_file_of_another_study_is_refused(study):
    with pytest.raises(LabelError, match="no item of the file is in this study"):
        study.import_answers(answers(said("nowhere", "Pass")))


def test_ids_that_a_spreadsheet_changed_are_matched(study):
    taken = study.import_answers(answers(said("7", "Pass")))

    assert taken.new == 1
    assert "'7' is '007'" in taken.notes[0]


def test_answers_are_spelled_as_the_question_spells_them(study):
    study.import_answers(answers(said("007", "pass"), said("x", " FAIL ")))

    assert [line[2] for line in journal(study)] == ["Pass", "Fail"]


def test_unknown_annotators_are_named(study):
    found = answers(said("007", "Pass", "1"), said("x", "Fail", "2"))

    with pytest.raises(LabelError, match=r"has no such annotator \(given: '1', '2'"):
        study.import_answers(found)
    taken = study.import_answers(found, annotator={"1": "ann", "2": "bob"})
    assert taken.annotators == {"ann": 1, "bob": 1}


def test_one_name_for_all_is_refused_where_several_people_answered_one_item(study):
    found = answers(said("007", "Pass", "1"), said("007", "Fail", "2"))

    with pytest.raises(LabelError, match="item '007' was answered by several people"):
        study.import_answers(found, annotator="ann")


def test_nobodys_answers_need_a_name_unless_there_is_one_annotator(study, tmp_path):
    found = answers(said("007", "Pass", ""))

    with pytest.raises(LabelError, match=r"does not state who answered.*--annotator NAME"):
        study.import_answers(found)
    with made(tmp_path / "b", StudyQuestion.of_choices("?", ["Pass", "Fail"]), annotators=["eve"]) as alone:
        assert alone.import_answers(found).annotators == {"eve": 1}


def test_pseudonyms_stand_in_the_journal(tmp_path):
    question = StudyQuestion.of_choices("?", ["Pass", "Fail"])
    with made(tmp_path, question, annotators=["ann", "bob"], pseudonyms=True) as opened:
        opened.import_answers(answers(said("007", "Pass", "bob")))

        assert journal(opened)[0][0] == "annotator-2"


def test_the_sides_of_a_pair_go_out_shuffled_and_come_back_unshuffled(tmp_path):
    show = {"old": [f"old {name}" for name in IDS], "new": [f"new {name}" for name in IDS]}
    seen, orders = set(), set()
    for study in range(4):  # six items each: all on one side by chance once in eight million
        with made(tmp_path / str(study), StudyQuestion.of_pair("Which?", "old", "new"), show=show) as opened:
            tasks = opened.tasks()
            sides = {task.id: "left" if task.payload["left"].startswith("new") else "right" for task in tasks}
            opened.import_answers(answers(*(said(item, side.upper()) for item, side in sides.items())))

            assert {line[2] for line in journal(opened)} == {"new"}
            assert all("old" not in task.payload and "new" not in task.payload for task in tasks)
            seen |= set(sides.values())
            orders |= {line[4] for line in journal(opened)}

    assert seen == {"left", "right"}
    assert orders == {"old|new", "new|old"}


def test_a_scale_takes_numbers_as_spreadsheets_write_them(tmp_path):
    with made(tmp_path, StudyQuestion.of_scale("How good?", 1, 5)) as opened:
        opened.import_answers(answers(said("007", "4.0")))

        assert journal(opened)[0][2] == "4"


def test_classes_are_asked_for_in_words():
    asked = tool_question(StudyQuestion.of_classes("What is it?", ["cat"]))

    assert (asked.choices, asked.allows_free_text) == (("cat",), True)


def test_an_answer_that_makes_the_interval_narrow_enough_ends_the_labelling(tmp_path):
    with made(tmp_path, StudyQuestion.of_choices("?", ["Pass", "Fail"]), half_width=0.9) as opened:
        opened.import_answers(answers(*(said(item, "Pass") for item in IDS)))

        assert opened.progress("ann").enough


def test_codes_of_missing_labels_are_refused_unless_they_are_mapped(tmp_path):
    """Classes may be any text, and the code 99 was saved as one."""
    question = StudyQuestion.of_classes("Which digit is it?", ["0", "1"])
    values = ["1", "1", "2", "1", "0", "99"]
    rows = answers(*(said(item, value) for item, value in zip(IDS, values, strict=True)))

    with made(tmp_path, question) as opened:
        with pytest.raises(LabelError, match="99 in 'label' may mean that a row has no label"):
            opened.import_answers(rows)
        assert journal(opened) == []
        result = opened.import_answers(rows.apply_mapping({"99": 99}), dry_run=True)
        assert result.new == 6
        assert opened.import_answers(rows.apply_mapping({"99": None})).new == 5
