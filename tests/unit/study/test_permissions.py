"""Every role tries every action on an item in every state, in Python and through the page."""

from __future__ import annotations

import pytest
from tests.unit.study.conftest import Clock, population_of

import stratal
from stratal.errors import StratalError
from stratal.study import StudyError, StudyQuestion, check_study, create_study, study_status
from stratal.study.items import save
from stratal.study.permissions import (
    ACTIVITIES,
    ITEM_STATES,
    PERMISSIONS,
    STUDY_ROLES,
    is_allowed,
    roles_of,
    states_of,
)

# What is allowed, stated a second time: role → activity → states of the item. Nothing else is.
OWN, DISPUTED, NO_ITEM = {"given", "answered"}, {"disagreement", "decided"}, {"none"}
IN_THE_STUDY = dict.fromkeys(("state", "media", "trail"), NO_ITEM)
LABELLING = dict.fromkeys(("item", "submit", "skip", "flag", "unflag", "note"), OWN)
COMMANDS = ("set-aside", "take-back", "add-annotator", "rubric", "extend", "until", "import", "export")
WORK = {**IN_THE_STUDY, **LABELLING, "undo": NO_ITEM}
ALLOWED = {
    "annotator": WORK,
    "set-aside": WORK,
    "adjudicator": {**IN_THE_STUDY, "disagreements": NO_ITEM, "adjudicate": DISPUTED},
    "owner": {"figures": NO_ITEM},
    "operator": dict.fromkeys(("figures", *COMMANDS), NO_ITEM),
    "stranger": {},
}  # fmt: skip

ACTIONS = ("submit", "skip", "flag", "unflag", "note", "undo", "adjudicate", "set-aside", "take-back")
PEOPLE = {
    "ann": "annotator", "bob": "annotator", "dan": "set-aside", "judge": "adjudicator", "gone": "set-aside",
}  # fmt: skip


def test_the_table_says_what_is_allowed_and_nothing_else():
    assert set(PERMISSIONS) == set(ACTIVITIES)
    assert set(ALLOWED) == set(STUDY_ROLES)
    for activity in ACTIVITIES:
        for role in STUDY_ROLES:
            for state in ITEM_STATES:
                expected = state in ALLOWED[role].get(activity, ())
                assert is_allowed(activity, frozenset({role}), frozenset({state})) == expected


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """A study in which every person has items in every state that is possible for that person."""
    sample = stratal.plan(population_of(100), 14).draw(seed=7)
    study = create_study(
        tmp_path_factory.mktemp("crowd") / "study",
        sample,
        StudyQuestion.of_choices("Is the answer correct?", ["Pass", "Fail"]),
        annotators=["ann", "bob", "dan"],
        adjudicators=["judge", "gone"],
        overlap=1.0,
        clock=Clock(),
    )
    for _ in range(3):
        study.submit("dan", study.next_item("dan").id, "Pass")
    study.next_item("dan")
    for who, value in (("ann", "Pass"), ("bob", "Fail")):
        for _ in range(8):
            study.submit(who, study.next_item(who).id, value)
        study.next_item(who)
    study.adjudicate("judge", study.disagreements()[0].item.id, "Pass")
    for who in ("dan", "gone"):
        study.set_aside(who)
    with study:
        yield study


def items_of(study):
    with study.database.read() as connection:
        return [row["id"] for row in connection.all("SELECT id FROM item ORDER BY item")]


def cells_of(study, person):
    """Return the states that items have for a person, each with an item."""
    with study.database.read() as connection:
        found = {states_of(connection, person, item): item for item in items_of(study)}
    return {frozenset({"none"}): None} | found


def cells_for(study, person, action):
    """Return the cells of an action; one that is about no item is tried without."""
    cells = cells_of(study, person)
    about_no_item = action in ("undo", "set-aside", "take-back")
    return {frozenset({"none"}): None} if about_no_item else cells


def expected_of(role, activity, states):
    return any(state in ALLOWED[role].get(activity, ()) for state in states)


def test_people_have_the_roles_and_their_items_all_states(crowd):
    with crowd.database.read() as connection:
        assert all(roles_of(connection, name) == {role} for name, role in PEOPLE.items())
        assert roles_of(connection, "mallory") == {"stranger"}
    states = frozenset().union(*cells_of(crowd, "ann"), *cells_of(crowd, "judge"))
    assert states == set(ITEM_STATES)


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("person", PEOPLE)
def test_every_cell_in_python(crowd, person, action):
    for states, item in cells_for(crowd, person, action).items():
        expected = expected_of(PEOPLE[person], action, states)
        with crowd.database.write() as connection:
            connection.now = crowd.clock()
            entry = crowd_entry(crowd, person, action, item)
            try:
                save(connection, entry)
                allowed = True
            except StudyError as error:
                allowed = error.kind not in ("refused", "missing") or "no action to undo" in str(error)
            finally:
                connection.rollback()
        assert allowed == expected, (person, action, states)


def crowd_entry(study, person, action, item):
    from stratal.study.import_export import journal_entry

    value = "Pass" if action in ("submit", "adjudicate") else None
    return journal_entry(study.id, study.form, person, action, item, value)


@pytest.mark.parametrize("person", [*PEOPLE, "mallory", "owner"])
def test_every_cell_that_is_refused_is_refused_by_the_page_and_saves_nothing(crowd, person):
    testclient = pytest.importorskip("starlette.testclient")
    from stratal.study.web.content import media_address, read_display
    from stratal.study.web.server import ServerLimits, application, owner_token, tokens

    home = "http://127.0.0.1:8000"
    free = ServerLimits(rate=1e9, burst=10**9)
    page = testclient.TestClient(
        application(crowd, read_display(crowd, media_address), [home], free), base_url=home,
        raise_server_exceptions=False,
    )  # fmt: skip
    token = {**tokens(crowd), "owner": owner_token(crowd), "mallory": "x" * 43}[person]
    lines = check_study(crowd).lines
    role = PEOPLE.get(person, "owner" if person == "owner" else "stranger")
    tried = 0
    for action in ACTIONS:
        for states, item in cells_for(crowd, person, action).items():
            if expected_of(role, action, states):
                continue
            body = {"action": action, "request": f"r{tried}", "item": item, "value": "Pass", "note": "n"}
            answer = page.post(f"/a/{token}/api/act", json=body)
            assert answer.status_code in (400, 404, 409), (action, states, answer.text)
            tried += 1
    assert tried >= 9
    assert check_study(crowd).lines == lines
    figures = page.get(f"/o/{token}/api/status").status_code
    assert (figures == 404) == (role != "owner")
    if role not in ("adjudicator", "owner", "stranger"):
        assert page.get(f"/a/{token}/api/disagreements").json() == {"disagreements": [], "mine": 0}


def test_a_link_cannot_decide_guessed_items(make_study):
    """An annotator, also one who was set aside, decided 60 of 60 items on which nobody disagreed."""
    study = make_study(annotators=["ann", "bob", "eve"])
    for who in ("ann", "bob"):
        for _ in range(10):
            study.submit(who, study.next_item(who).id, "Pass")
    study.set_aside("bob")
    before = study.labels()

    for who in ("eve", "bob"):
        for item in items_of(study):
            with pytest.raises(StratalError):
                study.adjudicate(who, item, "Fail")

    assert study.labels() == before


def test_status_counts_decisions_and_names_those_without_disagreement(make_study):
    study = make_study(overlap=1.0)
    for who, value in (("ann", "Pass"), ("bob", "Fail")):
        for _ in range(4):
            study.submit(who, study.next_item(who).id, value)
    first, second = (entry.item.id for entry in study.disagreements()[:2])
    for item in (first, second):
        study.adjudicate("ann", item, "Pass")
    study.submit("bob", first, "Pass")  # who now agrees
    status = study_status(study)

    assert status["decisions"] == {"decided": 2, "by": {"ann": 2}, "without_disagreement": [first]}
    assert any(first in note and "do not differ" in note for note in status["notes"])
