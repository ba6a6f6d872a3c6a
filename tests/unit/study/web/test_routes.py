"""The page's addresses: what an annotator can do there, and what nobody can."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient
from tests.tiers import cells
from tests.unit.study.web.conftest import FREE, HOME

from stratal.study import check_study, study_status
from stratal.study.web import server
from stratal.study.web.content import media_address, read_display
from stratal.study.web.server import ServerLimits, application, invalidate_links, owner_token


def test_an_annotator_labels_everything(page):
    seen = []
    state = page.state("ann")
    assert state["form"]["questions"][0]["choices"][0] == {"value": "Pass", "label": "Pass", "key": "1"}
    while (item := state["item"]) is not None:
        seen.append(item["id"])
        state = page.act("ann", "submit", item=item["id"], value="Pass", seconds=1.5, note="fine").json()
        assert state["receipt"]["action"] == "submit"

    assert len(seen) == len(set(seen)) == state["progress"]["submitted"]
    assert set(page.study.labels().values) == {1.0}
    assert check_study(page.study).problems == ()


def test_skip_undo_change_flag_and_note_are_saved_before_the_next_item_comes(page):
    first = page.state("ann")["item"]["id"]
    second = page.act("ann", "skip", item=first).json()["item"]["id"]
    assert page.act("ann", "undo").json()["item"]["id"] == first
    page.act("ann", "submit", item=first, value="Fail")
    assert page.act("ann", "submit", item=first, value="Pass").json()["receipt"]["action"] == "change"
    assert page.act("ann", "flag", item=second).json()["item"]["flagged"] is True
    assert page.act("ann", "note", item=second, note="odd").status_code == 200

    found = page.get("ann", "api/item", params={"id": first}).json()["item"]
    assert found["answer"]["value"] == {"": "Pass"}
    assert [entry["item"] for entry in page.get("ann", "api/trail").json()["answers"]] == [first]


def test_the_same_request_is_saved_once(page):
    item = page.state("ann")["item"]["id"]
    body = {"action": "submit", "request": "once", "item": item, "value": "Pass"}
    answers = [page.client.post(page.path("ann", "api/act"), json=body).json() for _ in range(3)]

    assert [answer["receipt"]["repeated"] for answer in answers] == [False, True, True]
    assert answers[2]["progress"]["submitted"] == 1


def test_disagreements_are_decided(page):
    while (item := page.state("ann")["item"]) is not None and page.study.progress("ann").submitted < 20:
        page.act("ann", "submit", item=item["id"], value="Pass")
    while (item := page.state("bob")["item"]) is not None:
        page.act("bob", "submit", item=item["id"], value="Fail", note="no")
    apart = page.get("ann", "api/disagreements").json()["disagreements"]
    assert apart
    assert sorted(entry["value"][""] for entry in apart[0]["answers"]) == ["Fail", "Pass"]
    assert "bob" not in json.dumps(apart)

    page.act("ann", "adjudicate", item=apart[0]["id"], value="Pass")
    assert len(page.get("ann", "api/disagreements").json()["disagreements"]) == len(apart) - 1
    page.act("ann", "adjudicate", item=apart[0]["id"], value=None)
    assert len(page.get("ann", "api/disagreements").json()["disagreements"]) == len(apart)


def test_only_adjudicators_decide(make_study, html_page):
    page = html_page(make_study(adjudicators=["eve"]))
    item = page.state("ann")["item"]["id"]
    page.act("ann", "submit", item=item, value="Pass")

    assert page.act("ann", "adjudicate", item=item, value="Fail").status_code == 409
    assert page.get("ann", "api/disagreements").json() == {"disagreements": [], "mine": 0}
    assert page.state("eve")["item"] is None


@pytest.mark.parametrize("side", [["A"], {"A": 1}, "gpt", None])
def test_another_side_of_a_pair_is_an_error_of_the_request(pair_study, html_page, side):
    page = html_page(pair_study)
    item = page.state("ann")["item"]["id"]
    response = page.act("ann", "submit", item=item, value={"": side})
    assert response.status_code == 400
    assert "unknown side" in response.json()["error"]["message"]


def test_a_pair_hides_its_columns_and_comes_back_unshuffled(pair_study, html_page):
    page = html_page(pair_study)
    said = {}
    state = page.state("ann")
    assert "gpt" not in json.dumps(state["form"]) + json.dumps([s["name"] for s in state["item"]["sides"]])
    while (item := state["item"]) is not None and len(said) < 12:
        gpt = next(side["name"] for side in item["sides"] if "gpt" in side["html"])
        said[item["id"]] = gpt
        state = page.act("ann", "submit", item=item["id"], value=gpt).json()

    assert set(said.values()) == {"A", "B"}
    assert {value for value in pair_study.labels().values if value is not None} == {1.0}
    item = next(iter(said))
    assert page.get("ann", "api/item", params={"id": item}).json()["item"]["answer"]["value"] == {
        "": said[item]
    }
    refused = page.act("ann", "submit", item=item, value="gpt")
    assert refused.status_code == 400


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1:9", "127.0.0.1:8000.evil.example", "", "localhost"]
)
def test_a_foreign_host_gets_nothing(page, host):
    answer = page.get("ann", "api/state", headers={"host": host})

    assert answer.status_code == 421
    assert page.study.progress("ann").submitted == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:8001"},
        {"origin": "https://127.0.0.1:8000"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_foreign_origin_saves_nothing(page, headers):
    item = page.state("ann")["item"]["id"]
    body = {"action": "submit", "request": "r", "item": item, "value": "Pass"}
    answer = page.client.post(page.path("ann", "api/act"), json=body, headers=headers)

    assert answer.status_code == 403
    assert page.study.progress("ann").submitted == 0


def test_the_own_origin_passes(page):
    item = page.state("ann")["item"]["id"]
    body = {"action": "skip", "request": "r", "item": item}
    headers = {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"}

    assert page.client.post(page.path("ann", "api/act"), json=body, headers=headers).status_code == 200


@pytest.mark.parametrize("token", ["", "x", "ann", "a" * 43, "a" * 5000, "%00", "é", "..", "%2e%2e"])
@pytest.mark.parametrize(
    "rest", cells(["", "api/state", "api/item?id=unit-1", "media/a.png"], fast=["api/state"])
)
def test_a_wrong_token_gets_nothing(page, token, rest):
    answer = page.client.get(f"/a/{token}/{rest}", follow_redirects=False)

    assert answer.status_code in (404, 308)
    assert "unit-" not in answer.text
    assert "Pass" not in answer.text


def test_another_annotators_token_reaches_no_items_of_others(page):
    item = page.state("ann")["item"]["id"]

    assert page.get("bob", "api/item", params={"id": item}).status_code == 404
    refused = page.act("bob", "submit", item=item, value="Pass")
    assert refused.status_code == 404
    assert refused.json()["error"]["kind"] == "missing"


def test_a_name_that_is_no_annotators_has_no_token(page):
    from stratal.study.journal import PAGE_SECRET
    from stratal.study.web.server import link_token

    secret = page.study.setting(PAGE_SECRET)
    for name in ("eve", "ANN", "ann ", ""):
        assert page.client.get(f"/a/{link_token(secret, name)}/api/state").status_code == 404


OUTSIDE = [
    *("../study.db", "..%2fstudy.db", "%2e%2e/study.db", "%2e%2e%2fstudy.db", "....//study.db"),
    *(
        "..%5cstudy.db",
        "%252e%252e%252fstudy.db",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "a.png%00",
        "a.png/../../secret.png",
    ),
    *(
        "link.png",
        "linked/secret.png",
        "notes.txt",
        "",
        ".",
        "folder.png",
        "~/secret.png",
        "a" * 4000 + ".png",
    ),
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_path_outside_the_media_is_reachable(page, path):
    folder = page.study.folder
    (folder / "secret.png").write_bytes(b"secret")
    media = folder / "media"
    (media / "link.png").symlink_to(folder / "secret.png")
    (media / "linked").symlink_to(folder)
    (media / "folder.png").mkdir()
    (media / "notes.txt").write_text("secret")

    for answer in (page.get("ann", f"media/{path}"), page.client.get(f"/static/{path}")):
        assert answer.status_code == 404, answer.text[:100]
        assert "secret" not in answer.text
        assert "SQLite" not in answer.text


def test_media_are_handed_out_with_their_type_and_cannot_run(page):
    (page.study.media / "a b").mkdir()
    (page.study.media / "a b" / "x.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>")
    answer = page.get("ann", f"media/{quote('a b/x.svg')}")

    assert answer.headers["content-type"].startswith("image/svg+xml")
    assert "sandbox" in answer.headers["content-security-policy"]
    assert "script-src" not in answer.headers["content-security-policy"]


@pytest.mark.parametrize("rest", ["", "api/state", "api/nothing", "media/none.png"])
def test_every_answer_is_sealed(page, rest):
    headers = page.get("ann", rest).headers
    policy = headers["content-security-policy"]

    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert "set-cookie" not in headers


HOSTILE = "\"><img src=x onerror=alert(1)><script>alert(2)</script>\n'; DROP TABLE journal; --"


def test_hostile_ids_notes_and_classes_are_kept_as_text(make_study, html_page):
    import stratal
    from stratal.study import StudyQuestion

    population = stratal.Population.from_arrays(
        proxy=[0.1, 0.5, 0.9],
        ids=[f"{HOSTILE}{number}" for number in range(3)],
        show={HOSTILE: [HOSTILE] * 3},
    )
    sample = stratal.designs.SimpleRandom(budget=3).draw(population, seed=7)
    page = html_page(make_study(sample=sample, question=StudyQuestion.of_classes(HOSTILE, ["<i>cat</i>"])))
    item = page.state("ann")["item"]
    assert "<img" not in item["fields"][0]["html"]
    assert "<script" not in item["fields"][0]["html"]
    assert (
        page.act("ann", "submit", item=item["id"], value=HOSTILE[:150].strip(), note=HOSTILE).status_code
        == 200
    )

    found = page.get("ann", "api/item", params={"id": item["id"]}).json()["item"]
    assert found["answer"]["note"] == HOSTILE
    assert found["answer"]["value"] == {"": HOSTILE[:150].strip()}


BAD = [
    *(b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 60_000),
    b'{"action": "submit"}',
    b'{"action": "drop", "request": "r"}',
    b'{"action": "undo", "request": ""}',
    b'{"action": "undo", "request": 5}',
    b'{"action": "undo", "request": "r", "x": 1}',
    b'{"action": "skip", "request": "r", "item": "\\ud800"}',
    b'{"action": "skip", "request": "r", "item": "a\\u0000"}',
    b'{"action": "skip", "request": "r", "item": "a", "seconds": "x"}',
    b'{"action": "skip", "request": "r", "item": ["a"]}',
    b'{"action": ["undo"], "request": "r"}',
    b'{"action": {}, "request": "r"}',
    b'{"action": "note", "request": "r", "item": "a", "note": "' + b"n" * 10_001 + b'"}',
]


@pytest.mark.parametrize("body", BAD, ids=range(len(BAD)))
def test_what_is_not_understood_is_refused_and_saves_nothing(page, body):
    item = page.state("ann")["item"]["id"]
    headers = {"content-type": "application/json"}
    answer = page.client.post(page.path("ann", "api/act"), content=body, headers=headers)

    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["kind"] == "input"
    assert page.state("ann")["item"]["id"] == item
    assert page.study.progress("ann").submitted == 0


@pytest.mark.parametrize("seconds", ["1e999", "NaN", "-5", "1" + "0" * 400])
def test_impossible_times_are_dropped(page, seconds):
    item = page.state("ann")["item"]["id"]
    body = f'{{"action": "submit", "request": "r", "item": "{item}", "value": "Pass", "seconds": {seconds}}}'
    headers = {"content-type": "application/json"}

    assert page.client.post(page.path("ann", "api/act"), content=body, headers=headers).status_code == 200
    assert page.study.history("ann")[0].seconds < 86_400


def test_only_json_is_taken(page):
    answer = page.client.post(page.path("ann", "api/act"), data={"action": "undo", "request": "r"})

    assert answer.status_code == 415


def test_other_methods_do_nothing(page):
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert page.client.request(method, page.path("ann", "api/act")).status_code == 405
    assert page.client.get(page.path("ann", "api/act")).status_code == 405


def test_too_many_requests_are_refused_for_that_client_alone(study, html_page):
    page = html_page(study, ServerLimits(rate=0.001, burst=5))
    said = [page.get("ann", "api/state").status_code for _ in range(8)]
    strangers = [page.client.get(f"/a/{number}/").status_code for number in range(8)]

    assert said == [200] * 5 + [429] * 3
    assert strangers == [404] * 5 + [429] * 3
    assert page.get("bob", "api/state").status_code == 200


def test_someone_who_joins_later_has_a_link_at_once(page):
    from stratal.study.web.server import tokens

    page.study.add_annotator("eve")
    page.tokens = tokens(page.study)

    assert page.state("eve")["annotator"] == "eve"


def test_new_links_end_the_old_ones(page, html_page):
    from stratal.study.web.server import invalidate_links

    old = page.tokens["ann"]
    invalidate_links(page.study)
    later = html_page(page.study)

    assert later.client.get(f"/a/{old}/api/state").status_code == 404
    assert later.get("ann", "api/state").status_code == 200


def test_trouble_with_the_disk_is_said_without_the_folders_place(page, monkeypatch):
    from stratal.study import StudyError

    def fail(*_, **__):
        raise StudyError(
            f"{page.study.folder}: the disk is full", kind="disk-full", action="Free some space."
        )

    item = page.state("ann")["item"]["id"]
    monkeypatch.setattr(type(page.study), "save_action", fail)
    answer = page.act("ann", "submit", item=item, value="Pass")

    assert answer.status_code == 507
    assert answer.json()["error"] == {"kind": "disk-full", "message": "the disk is full. Free some space."}


def test_a_mistake_of_ours_says_nothing_of_the_inside(page, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("secret detail")

    monkeypatch.setattr(type(page.study), "save_action", fail)
    answer = page.act("ann", "undo")

    assert answer.status_code == 500
    assert "secret" not in answer.text


def owner_path(page, rest=""):
    return f"/o/{owner_token(page.study)}/{rest}"


def test_the_owner_sees_the_figures_of_the_status_and_nothing_can_be_changed_there(page):
    item = page.state("ann")["item"]["id"]
    page.act("ann", "submit", item=item, value="Pass")
    found = page.client.get(owner_path(page, "api/status"))
    wanted = study_status(page.study)

    assert found.status_code == 200
    shown = {name: value for name, value in found.json().items() if name in wanted}
    expected = json.loads(json.dumps(wanted))
    del expected["folder"], expected["notes"], shown["notes"]  # of a clock that a test sets, not of this one
    del expected["time"], shown["time"]
    assert shown == expected
    assert str(page.study.folder) not in found.text
    for method in ("post", "put", "delete", "patch"):
        for rest in ("", "api/status", "api/act"):
            assert getattr(page.client, method)(owner_path(page, rest)).status_code in (404, 405)
    assert len(page.study.history("ann")) == 1


def test_tokens_open_the_page_of_their_role_alone(page):
    owner, ann = owner_token(page.study), page.tokens["ann"]

    assert page.client.get(f"/o/{ann}/api/status").status_code == 404
    assert page.client.get(f"/o/{ann}/").status_code == 404
    assert page.client.get(f"/a/{owner}/api/state").status_code == 404
    body = {"action": "submit", "request": "r", "item": page.state("ann")["item"]["id"], "value": "Pass"}
    assert page.client.post(f"/a/{owner}/api/act", json=body).status_code == 404
    assert page.study.history("ann") == ()
    for wrong in (owner[:-1], owner + "A", owner.swapcase(), "", "..", "%00", owner.encode().hex()):
        assert page.client.get(f"/o/{wrong}/api/status").status_code in (404, 405)
    invalidate_links(page.study)
    fresh = page_of_same(page)
    assert fresh.get(f"/o/{owner}/api/status").status_code == 404
    assert fresh.get(owner_path(page, "api/status")).status_code == 200


def page_of_same(page):
    app = application(page.study, read_display(page.study, media_address), [HOME], FREE)
    return TestClient(app, base_url=HOME)


def test_an_annotator_called_as_the_owner_gets_another_token(make_study, html_page):
    page = html_page(make_study(annotators=["owner", ":", "owner:"]))

    assert owner_token(page.study) not in page.tokens.values()
    assert len(set(page.tokens.values())) == 3


def test_annotators_get_neither_proxy_nor_stratum_nor_others_answers(page):
    text = json.dumps([page.state("ann"), page.get("ann", "api/disagreements").json()])

    for word in ("proxy", "stratum", "confidence", "estimate", "interval", "bob"):
        assert word not in text


def test_a_dead_link_is_a_page_for_people_and_json_for_scripts(page):
    for path in ("/a/nobody/", "/o/nobody/", "/nothing", "/a/nobody", "/"):
        shown = page.client.get(path, headers={"accept": "text/html"}, follow_redirects=False)
        assert shown.status_code == 404
        assert "<h1>No such page</h1>" in shown.text
        assert "script" not in shown.text
    assert page.client.get("/a/nobody/api/state").json()["error"]["kind"] == "away"


def test_the_owners_figures_are_counted_once_for_many_requests(page, monkeypatch):
    calls = []

    def counted(folder):
        calls.append(folder)
        return {"rounds": []}

    monkeypatch.setattr(server, "public_status", counted)
    for _ in range(20):
        page.client.get(owner_path(page, "api/status"))

    assert len(calls) == 1


def test_below_a_path_of_a_proxy_every_address_of_the_page_is_relative(page):
    for path in (page.path("ann"), owner_path(page)):
        text = page.client.get(path).text
        assert 'src="../../static/' in text
        assert 'href="/' not in text
        assert 'src="/' not in text
    moved = page.client.get(page.path("ann").rstrip("/"), follow_redirects=False)
    assert not moved.headers["location"].startswith(("/", "http"))
