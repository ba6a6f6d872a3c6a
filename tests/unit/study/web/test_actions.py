"""What the folder cannot do is said in the page, and what was refused can be sent again."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from stratal.study import check_study, open_study


def test_a_locked_database_is_said_and_the_request_saved_once_when_it_is_free(study, html_page):
    with open_study(study.folder, timeout=0.1) as opened:
        page = html_page(opened)
        item = page.state("ann")["item"]["id"]
        other = sqlite3.connect(study.folder / "study.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        body = {"action": "submit", "request": "once", "item": item, "value": "Pass"}
        busy = page.client.post(page.path("ann", "api/act"), json=body)
        other.execute("ROLLBACK")
        other.close()
        saved = [page.client.post(page.path("ann", "api/act"), json=body).json() for _ in range(2)]

        assert busy.status_code == 503
        assert busy.headers["retry-after"] == "1"
        assert busy.json()["error"]["kind"] == "locked"
        assert [answer["receipt"]["repeated"] for answer in saved] == [False, True]
        assert opened.progress("ann").submitted == 1


def test_a_full_disk_is_said_and_nothing_is_lost(study, html_page):
    with closing(sqlite3.connect(study.folder / "study.sqlite")) as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
    with open_study(study.folder, pragmas=(f"max_page_count={pages + 2}",)) as opened:
        page = html_page(opened)
        saved = []
        item = page.state("ann")["item"]["id"]
        for _ in range(200):
            answer = page.act("ann", "note", item=item, note="n" * 5000)
            if answer.status_code != 200:
                break
            saved.append(answer)

        assert answer.status_code == 507
        assert answer.json()["error"]["kind"] == "disk-full"
        assert "Free some space" in answer.json()["error"]["message"]
        assert str(study.folder) not in answer.text
    assert check_study(study).problems == ()


def test_a_clock_that_went_back_is_said_and_labels_are_kept(study, html_page, clock):
    page = html_page(study)
    item = page.state("ann")["item"]["id"]
    page.act("ann", "submit", item=item, value="Pass")
    clock.now -= 86_400
    state = page.state("ann")
    page.act("ann", "submit", item=state["item"]["id"], value="Fail")

    assert "Set the clock" in state["progress"]["message"]
    assert study.progress("ann").submitted == 2


def test_someone_set_aside_is_told_and_gets_no_items(study, html_page):
    page = html_page(study)
    study.set_aside("ann")
    state = page.state("ann")

    assert state["item"] is None
    assert "set aside" in state["progress"]["message"]
