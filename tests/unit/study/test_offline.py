"""Items that go out to somebody without access to the server, and the labels file that comes back."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.tiers import sized
from tests.unit.study.conftest import answer_all

from stratal.errors import StratalError
from stratal.study import StudyError, check_study


def labels_file(study, /, *actions, **changes):
    """Return what ann's page saves: actions (kind, item, value), numbered."""
    described = {
        "format": "stratal-actions", "version": 1, "study": study.id, "annotator": "ann",
        "key": study.page_key("ann"),
        "actions": [
            {"request": f"page-{number}", "action": kind, "item": item, "value": value, "seconds": 7.5}
            for number, (kind, item, value) in enumerate(actions)
        ],
    }  # fmt: skip
    return json.dumps(described | changes)


@pytest.fixture
def package(make_study):
    study = make_study()
    return study, study.reserve_for_page_file("ann", items=10)


def test_what_goes_out_is_kept_from_others_and_holds_no_proxy(package):
    study, out = package

    assert len(out) == 10
    assert "proxy" not in json.dumps([item.to_dict() for item in out], allow_nan=False)
    assert not {item.id for item in out} & set(answer_all(study, "bob"))
    assert study.reserve_for_page_file("ann", items=10) == out


def test_what_comes_back_is_saved_once(package):
    study, out = package
    first, second, third = (item.id for item in out[:3])
    text = labels_file(
        study, ("submit", first, "Pass"), ("skip", second, None), ("submit", third, "Pass"),
        ("undo", None, None), ("submit", third, "Fail"), ("flag", first, None), ("submit", first, "Fail"),
    )  # fmt: skip

    nothing = {"new_answers": {}, "changed_answers": {}, "withdrawn_answers": {}}
    assert study.import_actions(text) == {"saved": 7, "repeated": 0, **nothing, "new_answers": {"ann": 3}}
    assert study.import_actions(text) == {"saved": 0, "repeated": 7, **nothing}
    assert {answer.item: answer.value for answer in study.history("ann")} == {
        first: "Fail", second: None, third: "Fail",
    }  # fmt: skip
    assert study.history("ann")[-1].seconds == 7.5
    assert check_study(study).sound


def test_what_was_kept_for_somebody_is_not_taken_by_others_however_long_it_takes(package, clock):
    study, out = package
    clock.now += 30 * 86_400

    assert not {item.id for item in out} & set(answer_all(study, "bob"))


def test_a_page_has_all_free_items_or_a_stated_number(make_study):
    assert len(make_study(annotators=["ann"]).reserve_for_page_file("ann")) == 40


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"study": "another"}, "belongs to another study"),
        ({"annotator": "mallory"}, "unknown annotator"),
        ({"format": "csv"}, "not a labels file from the labelling page"),
        ({"version": 2}, r"not a labels file .*`\$.version`"),
        ({"actions": {"a": 1}}, r"not a labels file .*`\$.actions`"),
        ({"actions": [1]}, r"not a labels file .*`\$.actions\[0\]`"),
        ({"actions": [{"action": "delete", "request": "r"}]}, r"'delete' - at `\$.actions\[0\].action`"),
        ({"actions": [{"action": "adjudicate", "request": "r", "item": "unit-1"}]}, "action 1: decisions"),
        ({"actions": [{"action": "submit", "item": "unit-1"}]}, r"`request` - at `\$.actions\[0\]`"),
        ({"actions": [{"action": "submit", "request": "r", "item": "unit-1"}]}, "'submit' lacks value"),
        ({"actions": [{"action": "submit", "request": "r", "item": 3}]}, r"`\$.actions\[0\].item`"),
        (
            {"actions": [{"action": "submit", "request": "r", "item": "nowhere", "value": "Pass"}]},
            "was not assigned",
        ),
        (
            {"actions": [{"action": "skip", "request": "r", "item": "x", "note": 1}]},
            r"`\$.actions\[0\].note`",
        ),
    ],
)
def test_what_cannot_be_taken_in_is_refused_whole(package, changes, problem):
    study, out = package
    good = {"request": "good", "action": "submit", "item": out[0].id, "value": "Pass"}
    if isinstance(changes.get("actions"), list) and isinstance(changes["actions"][0], dict):
        changes = {"actions": [*changes["actions"], good]}

    with pytest.raises(StratalError, match=problem):
        study.import_actions(labels_file(study, **changes), source="ann.json")
    assert study.history("ann") == ()


def test_an_answer_that_the_question_does_not_take_names_the_action(package):
    study, out = package
    ids = [item.id for item in out]

    with pytest.raises(StratalError, match="action 2: this question does not accept"):
        study.import_actions(labels_file(study, ("submit", ids[0], "Pass"), ("submit", ids[1], "Maybe")))
    assert study.history("ann") == ()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", "[" * 100_000, '{"format": "stratal-actions"}', "\0"]
)
def test_what_is_no_labels_file_is_refused(package, text):
    with pytest.raises(StratalError):
        package[0].import_actions(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=8) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ACTION = st.fixed_dictionaries(
    {},
    optional={
        "request": st.text(max_size=3) | JSON,
        "action": st.sampled_from(["submit", "skip", "undo", "flag", "note", "unflag"]) | JSON,
        "item": st.sampled_from(["unit-1", "unit-2", "given"]) | JSON,
        "value": st.sampled_from(["Pass", "Fail"]) | JSON,
        "note": st.text() | JSON,
        "seconds": st.floats() | JSON,
    },
)


@given(st.lists(ACTION, max_size=5))
@settings(max_examples=sized(20, 100), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_comes_in_is_taken_whole_or_refused_in_words(package, actions):
    study, out = package
    for action in actions:
        if action.get("item") == "given":
            action["item"] = out[0].id
    before = check_study(study).lines

    try:
        counts = study.import_actions(labels_file(study, actions=actions))
    except (StratalError, StudyError):
        assert check_study(study).lines == before
    else:
        assert check_study(study).lines == before + counts["saved"]
    assert check_study(study).sound
