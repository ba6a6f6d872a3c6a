"""What annotators do: they are given items, answer, skip, undo, change, flag and decide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.study.conftest import answer_all

import stratal
from stratal.errors import InputError
from stratal.randomness import id_texts, shown_order
from stratal.study import StudyError, StudyQuestion, open_study
from stratal.study.opening import check_study


def said(study, annotator):
    return {answer.item: answer.value for answer in study.history(annotator, limit=1000)}


def test_people_get_different_items_except_those_that_two_label(study, drawn):
    ann, bob = [], []
    for _ in range(100):
        for who, seen in (("ann", ann), ("bob", bob)):
            item = study.next_item(who)
            if item is not None:
                study.submit(who, item.id, "Pass")
                seen.append(item.id)

    assert sorted({*ann, *bob}) == sorted(id_texts(drawn.ids))
    assert len({*ann} & {*bob}) == 10
    assert len(ann) == len({*ann})
    assert study.progress("ann").done == study.progress("ann").total == 50
    assert check_study(study).sound


def test_items_come_in_an_order_that_is_random_across_strata(make_study, drawn):
    study = make_study(annotators=["ann"])

    order = answer_all(study, "ann")

    texts = id_texts(drawn.ids)
    assert order == [texts[row] for row in shown_order(drawn.ids, drawn.seed)]
    strata = dict(zip(texts, drawn.stratum.tolist(), strict=True))
    assert [strata[text] for text in order] != sorted(strata[text] for text in order)


def test_an_item_shows_neither_proxy_nor_prediction_nor_stratum(make_study):
    population = stratal.Population.from_arrays(
        proxy=[0.125, 0.875] * 10,
        ids=[f"u{number}" for number in range(20)],
        groups={"answer": ["yes", "no"] * 10},
        predicted="answer",
    )
    sample = stratal.designs.SimpleRandom(budget=5).draw(population, seed=1)
    study = make_study(sample=sample)

    item = study.next_item("ann")

    text = str(item.to_dict())
    assert item.payload == {"id": item.id}
    assert not any(word in text for word in ("0.125", "0.875", "yes", "'no'", "stratum"))


def test_the_same_item_comes_until_it_is_answered(study):
    first = study.next_item("ann")

    assert study.next_item("ann").id == first.id
    study.submit("ann", first.id, "Pass")
    assert study.next_item("ann").id != first.id


def test_an_answer_is_there_after_the_study_was_closed(study, clock):
    item = study.next_item("ann")
    study.submit("ann", item.id, "Fail", note="see line 3")
    held = study.next_item("ann")
    study.close()

    with open_study(study.folder, clock=clock) as again:
        (answer,) = again.history("ann")
        assert (answer.item, answer.value, answer.note) == (item.id, "Fail", "see line 3")
        assert again.next_item("ann").id == held.id


def test_a_change_replaces_the_answer_and_the_journal_keeps_both(study):
    item = study.next_item("ann")
    study.submit("ann", item.id, "Pass")

    receipt = study.submit("ann", item.id, "Fail")

    assert receipt.action == "change"
    assert said(study, "ann") == {item.id: "Fail"}
    with study.database.read() as connection:
        values = connection.execute("SELECT value FROM journal WHERE item IS NOT NULL").fetchall()
    assert [row["value"] for row in values] == ["Pass", "Fail"]


def test_undo_goes_back_one_action_each_time(study):
    first, second = study.next_item("ann").id, None
    study.submit("ann", first, "Pass")
    second = study.next_item("ann").id
    study.skip("ann", second)
    study.submit("ann", first, "Fail")

    assert study.undo("ann").item == first
    assert said(study, "ann") == {first: "Pass", second: None}
    assert study.undo("ann").item == second
    assert study.next_item("ann").id == second
    assert study.undo("ann").item == first
    assert said(study, "ann") == {}
    assert study.next_item("ann").id == first
    with pytest.raises(StudyError, match="no action to undo"):
        study.undo("ann")
    assert check_study(study).sound


def test_nobody_undoes_what_another_said(study):
    item = study.next_item("ann")
    study.submit("ann", item.id, "Pass")

    with pytest.raises(StudyError, match="no action to undo"):
        study.undo("bob")


def test_what_one_skipped_another_gets(make_study):
    study = make_study()
    item = study.next_item("ann")
    study.skip("ann", item.id, note="no idea")

    given = answer_all(study, "bob")

    assert item.id in given
    assert item.id not in answer_all(study, "ann")
    assert (study.progress("ann").skipped, study.progress("bob").skipped) == (1, 0)


def test_an_overlapping_item_that_one_skipped_is_offered_once_more_and_can_be_completed(make_study):
    study = make_study(overlap=1.0)
    item = study.next_item("ann")
    study.skip("ann", item.id)
    answer_all(study, "bob")
    mine = answer_all(study, "ann")

    assert mine[-1] == item.id
    progress = study.progress("ann")
    assert (progress.done, progress.skipped) == (progress.total, 0)


def test_an_overlapping_item_that_one_skips_again_is_not_offered_for_ever(make_study):
    study = make_study(overlap=1.0)
    item = study.next_item("ann")
    study.skip("ann", item.id)
    answer_all(study, "bob")
    while (again := study.next_item("ann")) is not None:
        if again.id == item.id:
            study.skip("ann", item.id)
        else:
            study.submit("ann", again.id, "Pass")

    assert study.progress("ann").skipped == 1


def test_an_overlapping_item_is_offered_to_others_first(make_study):
    study = make_study(overlap=1.0, annotators=["ann", "bob", "carol"])
    item = study.next_item("ann")
    study.skip("ann", item.id)

    assert item.id not in answer_all(study, "ann")
    assert item.id in answer_all(study, "bob")
    assert item.id in answer_all(study, "carol")
    assert study.next_item("ann") is None


def test_what_was_left_lying_goes_to_another_at_the_end_and_a_late_answer_is_kept(make_study, clock):
    study = make_study()
    left = study.next_item("ann")
    assert left.id not in answer_all(study, "bob")

    clock.now += 3600
    given = study.next_item("bob")
    study.submit("bob", given.id, "Pass")
    study.submit("ann", left.id, "Fail")

    assert given.id == left.id
    assert [answer.value for answer in study.disagreements()[0].answers] == ["Pass", "Fail"]
    assert study.progress("ann").done == study.progress("ann").total
    assert check_study(study).sound


def test_the_same_request_is_saved_once(study):
    item = study.next_item("ann")
    first = study.submit("ann", item.id, "Pass", request="r1")

    again = study.submit("ann", item.id, "Pass", request="r1")

    assert (again.seq, again.repeated) == (first.seq, True)
    assert study.undo("ann", request="r2").seq == study.undo("ann", request="r2").seq
    with pytest.raises(StudyError, match="already used for another action"):
        study.submit("ann", item.id, "Fail", request="r1")


def test_two_annotators_may_use_the_same_request(study):
    for who in ("ann", "bob"):
        assert not study.submit(who, study.next_item(who).id, "Pass", request="1").repeated


def test_only_assigned_items_can_be_answered(make_study):
    study = make_study()
    study.next_item("ann")
    other = study.next_item("bob").id

    for act in (study.submit, study.flag):
        with pytest.raises(StudyError, match="was not assigned to") as caught:
            act("ann", other, **({"value": "Pass"} if act == study.submit else {}))
        assert caught.value.kind == "missing"
    with pytest.raises(StudyError, match="was not assigned"):
        study.item("ann", "nowhere")


def test_unknown_annotators_and_answers_are_refused(study):
    item = study.next_item("ann")

    with pytest.raises(InputError, match=r"unknown annotator.*'ann'"):
        study.next_item("anne")
    with pytest.raises(InputError, match="does not accept this answer"):
        study.submit("ann", item.id, "Perhaps")
    with pytest.raises(InputError, match="too long"):
        study.submit("ann", item.id, "Pass", note="x" * 10_001)
    with pytest.raises(InputError, match="invalid character"):
        study.submit("ann", item.id, "Pass", note="\ud800")
    assert study.history("ann") == ()


def test_flags_and_notes_are_kept_beside_the_answer(study):
    item = study.next_item("ann")
    study.flag("ann", item.id, note="image is missing")
    study.save_action("ann", "note", item.id, note="ask carol")

    assert study.item("ann", item.id).flagged
    study.flag("ann", item.id, on=False)
    assert not study.item("ann", item.id).flagged
    assert study.history("ann") == ()


def test_a_decision_stands_for_the_answers_of_its_item(make_study, drawn):
    study = make_study(overlap=1.0)
    answer_all(study, "ann", lambda item: "Pass")
    answer_all(study, "bob", lambda item: "Fail" if item.position <= 2 else "Pass")
    first, second = (entry.item.id for entry in study.disagreements())

    study.adjudicate("ann", first, "Fail", note="line 3 is wrong")

    assert [entry.item.id for entry in study.disagreements()] == [second]
    labels = study.labels()
    rows = [
        (who, value)
        for name, who, value in zip(labels.ids, labels.annotators, labels.values, strict=True)
        if name == first
    ]
    assert rows == [("adjudicated", 0.0)]
    study.adjudicate("bob", first, None)
    assert len(study.disagreements()) == 2
    assert check_study(study).sound


def test_only_those_named_decide(make_study):
    study = make_study(overlap=1.0, adjudicators=["carol"])
    answer_all(study, "ann")
    answer_all(study, "bob", lambda item: "Fail")

    with pytest.raises(StudyError, match="may not decide"):
        study.adjudicate("ann", study.disagreements()[0].item.id, "Pass")
    assert study.adjudicate("carol", study.disagreements()[0].item.id, "Pass").action == "adjudicate"
    assert study.next_item("carol") is None
    with pytest.raises(StudyError, match="no item"):
        study.adjudicate("carol", "nowhere", "Pass")


def test_labels_are_set_aside_and_taken_back_without_deleting_any(make_study):
    study = make_study(annotators=["ann", "bob", "carol"])
    for _ in range(10):
        study.submit("ann", study.next_item("ann").id, "Pass")
    before = study.labels()
    assert study.next_item("ann") is not None  # which ann now holds

    study.set_aside("ann", reason="clicked through")

    assert study.labels().answered == 0
    assert study.next_item("ann") is None
    assert "set aside" in study.progress("ann").message
    assert {answer.item for answer in study.history("ann")} == set(before.ids)
    assert {study.next_item("bob").id} <= set(before.ids)
    assert check_study(study).sound
    study.take_back("ann")
    assert study.labels() == before
    assert study.next_item("ann") is not None
    assert check_study(study).sound


def test_the_estimate_uses_the_current_labels(make_study, drawn):
    study = make_study(overlap=0.5)
    answer_all(study, "ann", lambda item: "Pass" if int(item.id.split("-")[1]) % 3 else "Fail")
    answer_all(study, "bob", lambda item: "Pass" if int(item.id.split("-")[1]) % 3 else "Fail")

    estimate = stratal.estimate(study.sample(), study.labels())

    truth = {text: float(int(text.split("-")[1]) % 3 > 0) for text in id_texts(drawn.ids)}
    expected = stratal.estimate(drawn, truth)
    assert estimate.value == expected.value
    assert estimate.standard_error == expected.standard_error


def test_sides_of_a_pair_are_shuffled_and_unshuffled_in_the_labels(make_study):
    size = 200
    population = stratal.Population.from_arrays(proxy=[0.5] * size, ids=[f"u{n}" for n in range(size)])
    sample = stratal.designs.SimpleRandom(budget=100).draw(population, seed=1)
    texts = {name: np.array([f"text {name}{n}" for n in range(100)]) for name in ("a", "b")}
    study = make_study(
        sample=replace(sample, shown=texts),
        question=StudyQuestion.of_pair("Which is better?", "a", "b"),
        annotators=["ann"],
    )
    firsts = []
    while (item := study.next_item("ann")) is not None:
        assert study.item("ann", item.id).sides == item.sides
        firsts.append(item.sides[0])
        study.submit("ann", item.id, "a")

    assert 30 < firsts.count("a") < 70
    assert set(study.labels().values) == {1.0}
    with study.database.read() as connection:
        shown = [row[0] for row in connection.execute("SELECT shown FROM journal WHERE action = 'submit'")]
    assert [entry.split("|")[0] for entry in shown] == firsts


def test_what_would_lead_annotators_is_refused(make_study):
    population = stratal.Population.from_arrays(
        proxy=[0.1, 0.9], groups={"answer": ["x", "y"]}, predicted="answer"
    )
    sample = stratal.designs.SimpleRandom(budget=2).draw(population, seed=1)
    with pytest.raises(InputError, match="'answer' would influence"):
        make_study(sample=replace(sample, shown={"answer": np.array(["x", "y"])}))


def test_pseudonyms_stand_in_the_journal_and_names_in_one_private_file(make_study):
    study = make_study(annotators=["Ann Lee", "Bob"], pseudonyms=True)
    code = next(pseudonym for pseudonym, name in study.names.items() if name == "Ann Lee")
    study.submit(code, study.next_item(code).id, "Pass")
    study.add_annotator("Carol")

    assert study.annotators == ("annotator-1", "annotator-2", "annotator-3")
    assert study.names["annotator-3"] == "Carol"
    private = study.folder / "annotators.json"
    assert private.stat().st_mode & 0o077 == 0
    for path in study.folder.glob("study.sqlite*"):
        assert b"Ann Lee" not in path.read_bytes()


def test_a_rubric_has_versions_and_answers_name_theirs(study):
    study.submit("ann", study.next_item("ann").id, "Pass")
    assert study.set_rubric("Judge *meaning*, not spelling.") == 2
    study.submit("ann", study.next_item("ann").id, "Pass")

    with study.database.read() as connection:
        rows = connection.execute(
            "SELECT rubric FROM journal WHERE action = 'submit' ORDER BY seq"
        ).fetchall()
    assert [row[0] for row in rows] == [1, 2]
    assert study.question.rubric == "Judge *meaning*, not spelling."


def test_progress_says_how_long_it_will_take(study):
    for _ in range(5):
        study.submit("ann", study.next_item("ann").id, "Pass", seconds=20)

    found = study.progress("ann")

    assert (found.submitted, found.done, found.total) == (5, 5, 50)
    assert found.seconds_left == 20 * 45
    study.submit("bob", study.next_item("bob").id, "Pass", seconds=20)
    assert study.progress("ann").seconds_left == 20 * 44 / 2


def test_an_id_with_quotes_and_newlines_is_an_id_like_any_other(make_study):
    ids = ["a'; DROP TABLE journal; --", "line\nbreak", '"quoted"', "../../etc/passwd", "<script>"]
    population = stratal.Population.from_arrays(proxy=[0.5] * 5, ids=ids)
    study = make_study(
        sample=stratal.designs.SimpleRandom(budget=5).draw(population, seed=1), annotators=["ann"]
    )

    assert sorted(answer_all(study, "ann")) == sorted(ids)
    assert study.labels().answered == 5


def test_an_answer_that_was_held_up_does_not_replace_the_one_that_was_edited_after_it(study):
    item = study.next_item("ann").id
    edited = study.submit("ann", item, "Fail", note="second", request="page-2")
    late = study.submit("ann", item, "Pass", note="first", request="page-1")
    again = study.submit("ann", item, "Fail", note="second", request="page-2")
    of_another_page = study.submit("ann", item, "Pass", request="other-1")

    assert (late.seq, late.repeated) == (again.seq, again.repeated) == (edited.seq, True)
    assert (of_another_page.action, of_another_page.repeated) == ("change", False)
    assert study.item("ann", item).answer.value == "Pass"


def test_a_decision_that_was_held_up_does_not_replace_the_later_one(study):
    answer_all(study, "ann")
    answer_all(study, "bob", lambda item: "Fail")
    first = study.disagreements()[0].item.id
    study.adjudicate("ann", first, "Fail", request="page-12")
    study.adjudicate("ann", first, "Pass", request="page-9")

    with study.verified() as connection:
        rows = connection.execute("SELECT value FROM journal WHERE action = 'adjudicate'").fetchall()
    assert [row["value"] for row in rows] == ["Fail"]


def test_a_request_with_another_note_is_another_act(study):
    item = study.next_item("ann").id
    study.submit("ann", item, "Pass", note="first", request="r1")
    with pytest.raises(StudyError, match="already used for another action"):
        study.submit("ann", item, "Pass", note="second", request="r1")
