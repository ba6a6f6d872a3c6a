"""The server's address, its links, and what it does with slow, huge and many requests."""

from __future__ import annotations

import json
import socket
import time
import urllib.request
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from tests.browser import served

from stratal import InputError
from stratal.study import StudyError
from stratal.study.web.content import media_address, read_display, save_display
from stratal.study.web.server import PageAddress, ServerLimits, serve, tokens


def connected(link):
    parts = urlsplit(link)
    return socket.create_connection((parts.hostname, parts.port), timeout=10)


def head(link, rest, *lines, method="POST"):
    parts = urlsplit(link)
    said = [f"{method} {parts.path}{rest} HTTP/1.1", f"Host: {parts.netloc}", *lines, "", ""]
    return "\r\n".join(said).encode()


def answer_of(connection):
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def state(link):
    return json.loads(urllib.request.urlopen(f"{link}api/state", timeout=10).read())


@pytest.mark.parametrize(
    "given",
    [
        {"host": "0.0.0.0"},
        {"host": "::"},
        {"port": 70_000},
        {"address": "labels.example.org"},
        {"address": "ftp://labels.example.org"},
        {"address": "https://labels.example.org/?query"},
    ],
)
def test_places_that_cannot_be_reached_are_refused(given):
    with pytest.raises(InputError):
        PageAddress(**given)


def test_a_place_behind_a_proxy_is_known_by_both_names():
    assert PageAddress(address="https://example.org/labels/").url(8000) == "https://example.org/labels"
    place = PageAddress(address="https://labels.example.org/")

    assert place.url(8000) == "https://labels.example.org"
    assert place.host_names(8000)[:2] == ["https://labels.example.org", "http://127.0.0.1:8000"]
    assert not place.is_open
    assert PageAddress(host="192.168.1.5").is_open
    assert PageAddress(host="192.168.1.5").host_names(80) == ["http://192.168.1.5:80"]


def test_a_port_that_is_taken_is_said():
    with PageAddress(port=0).listen() as listening, pytest.raises(InputError, match="Choose another port"):
        PageAddress(port=listening.getsockname()[1]).listen()


def test_answers_do_not_wait_for_a_packet_to_fill():
    with (
        PageAddress(port=0).listen() as listening,
        socket.create_connection(listening.getsockname()),
        listening.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_second_server_is_refused_and_told_of_the_first(study):
    with study.serving("http://127.0.0.1:1"), pytest.raises(StudyError, match=r"http://127\.0\.0\.1:1"):
        serve(study, PageAddress(port=0))


def test_links_stay_the_same_when_the_page_is_served_again(study):
    with served(study) as links:
        first = {name: urlsplit(link).path for name, link in links.items()}
    with served(study) as links:
        assert {name: urlsplit(link).path for name, link in links.items()} == first
    assert set(first) == set(tokens(study)) == {"ann", "bob"}


def test_how_columns_are_shown_is_kept(study, tmp_path):
    save_display(study, {"text": "markdown"})
    save_display(study, {"other": "html"}, tmp_path)
    look = read_display(study, media_address)

    assert look.formats == {"text": "markdown", "other": "html"}
    assert look.media == tmp_path
    with pytest.raises(InputError, match="does not exist"):
        save_display(study, media=tmp_path / "none")


def test_a_body_of_a_gigabyte_is_refused_before_it_is_read(study):
    with served(study) as links, connected(links["ann"]) as connection:
        kind = "Content-Type: application/json"
        connection.sendall(head(links["ann"], "api/act", kind, f"Content-Length: {10**9}"))
        began = answer_of(connection)

        assert began.startswith(b"HTTP/1.1 413")
        assert state(links["ann"])["progress"]["submitted"] == 0


def test_a_body_that_does_not_say_its_length_is_cut_off(study):
    with served(study) as links, connected(links["ann"]) as connection:
        lines = ("Content-Type: application/json", "Transfer-Encoding: chunked")
        connection.sendall(head(links["ann"], "api/act", *lines))
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        sent = 0
        try:
            while sent < 1000:
                connection.sendall(chunk)
                sent += 1
        except OSError:
            pass

        assert sent < 1000
        assert state(links["ann"])["progress"]["submitted"] == 0


SLOW = ServerLimits(receive_seconds=0.3, rate=1e6, burst=10**6)


@pytest.mark.parametrize("sent", [b"", b"GET /a", b"POST /a/x/api/act HTTP/1.1\r\nHost: x\r\nX: "])
def test_a_head_that_does_not_come_ends_the_connection(study, sent):
    with served(study, SLOW) as links, connected(links["ann"]) as connection:
        connection.sendall(sent)
        with suppress(ConnectionResetError):
            assert answer_of(connection) == b""
        assert state(links["ann"])["item"]


def test_a_head_that_drips_ends_the_connection(study):
    with served(study, SLOW) as links, connected(links["ann"]) as connection:
        dripped = 0
        try:
            for _ in range(200):
                connection.sendall(b"G" if dripped == 0 else b"E")
                dripped += 1
                time.sleep(0.02)
        except OSError:
            pass

        assert dripped < 200


def test_a_body_that_does_not_come_ends_the_request(study):
    with served(study, SLOW) as links, connected(links["ann"]) as connection:
        lines = ("Content-Type: application/json", "Content-Length: 100")
        connection.sendall(head(links["ann"], "api/act", *lines) + b'{"action"')

        assert answer_of(connection).startswith(b"HTTP/1.1 408")


def one_answer(connection):
    """Return the head of one answer, its body read to the end, so that the next answer can follow."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += connection.recv(65536)
    lines, body = found.split(b"\r\n\r\n", 1)
    length = next(
        int(line[15:]) for line in lines.lower().split(b"\r\n") if line.startswith(b"content-length:")
    )
    while len(body) < length:
        body += connection.recv(65536)
    return lines


def test_two_requests_on_one_connection_are_answered_with_patience_between(study):
    patient = ServerLimits(receive_seconds=2.0, rate=1e6, burst=10**6)
    with served(study, patient) as links, connected(links["ann"]) as connection:
        for _ in range(4):
            connection.sendall(head(links["ann"], "api/state", method="GET"))
            assert one_answer(connection).startswith(b"HTTP/1.1 200")
            time.sleep(0.6)


def test_idle_connections_of_strangers_do_not_keep_annotators_out(study):
    """500 idle connections without a token: annotators got 503."""
    with served(study, ServerLimits(connections=5, receive_seconds=20)) as links:
        held = [connected(links["ann"]) for _ in range(12)]

        for _ in range(3):
            assert state(links["ann"])["item"]
        for connection in held:
            connection.close()


def test_connections_with_a_link_are_kept_and_more_than_allowed_are_refused(study):
    with served(study, ServerLimits(connections=5, receive_seconds=20)) as links:
        held = [connected(links["ann"]) for _ in range(4)]
        for connection in held:
            connection.sendall(head(links["ann"], "api/state", method="GET"))
            assert one_answer(connection).startswith(b"HTTP/1.1 200")
        with connected(links["ann"]) as one_more, suppress(ConnectionResetError):
            one_more.sendall(head(links["ann"], "api/state", method="GET"))
            assert answer_of(one_more).startswith(b"HTTP/1.1 503")
        for connection in held:
            connection.sendall(head(links["ann"], "api/state", method="GET"))
            assert one_answer(connection).startswith(b"HTTP/1.1 200")
            connection.close()


def test_strangers_are_told_to_close_and_are_counted_before_any_work(study, monkeypatch):
    with served(study, ServerLimits(rate=0.001, burst=3)) as links:
        stranger = links["ann"][:-10] + "x" * 9 + "/"
        answers = []
        for _ in range(5):
            with connected(links["ann"]) as connection:
                connection.sendall(head(stranger, "api/state", method="GET"))
                answers.append(answer_of(connection).lower())

        assert [answer[9:12] for answer in answers] == [b"404"] * 3 + [b"429"] * 2
        assert all(b"connection: close" in answer for answer in answers)
        assert state(links["ann"])["item"]


def test_a_study_that_cannot_be_written_to_is_not_served(study):
    """On a read-only file system links were given out that could not store an answer."""
    from stratal.study import open_study

    with open_study(study.folder, pragmas=("query_only=ON",)) as opened, pytest.raises(StudyError) as told:
        serve(opened, PageAddress(port=0), ready=lambda *_: pytest.fail("links were given out"))

    assert told.value.kind == "read-only"


def test_many_connections_that_fail_for_one_reason_are_one_line(caplog):
    """With few file descriptors the log had 589,518 lines."""
    import asyncio
    import errno
    import logging
    import os

    from stratal.study.web.server import LOG_INTERVAL_SECONDS, ShortageLog

    now = [0.0]
    log, loop = ShortageLog(clock=lambda: now[0]), asyncio.new_event_loop()
    context = {"message": "accept", "exception": OSError(errno.EMFILE, os.strerror(errno.EMFILE))}
    with caplog.at_level(logging.ERROR, logger="uvicorn.error"):
        for _ in range(1000):
            log(loop, context)
        assert len(caplog.records) == 1
        now[0] = LOG_INTERVAL_SECONDS + 1
        log(loop, context)
        assert len(caplog.records) == 2
    loop.close()


def test_fewer_connections_where_the_system_has_fewer_files(monkeypatch):
    resource = pytest.importorskip("resource")
    from stratal.study.web import server

    monkeypatch.setattr(resource, "getrlimit", lambda _: (400, 400))
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    assert server.possible_connections(500) == 400 - server.RESERVED_FILES
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    assert server.possible_connections(500) == server.MIN_CONNECTIONS


def test_serving_takes_the_right_to_read_the_secret_from_others(study):
    study.database.path.chmod(0o644)
    with pytest.raises(ZeroDivisionError):
        serve(study, PageAddress(port=0), ready=lambda *_: 1 / 0)
    assert study.database.path.stat().st_mode & 0o777 == 0o640


def test_huge_heads_and_nonsense_are_refused(study):
    with served(study) as links:
        for sent in (
            b"x" * 100_000,
            b"\x16\x03\x01\x02\x00\x01\x00",
            b"GET / HTTP/1.1\r\n" + b"A: " + b"b" * 100_000,
        ):
            with connected(links["ann"]) as connection:
                try:
                    connection.sendall(sent)
                    answer = answer_of(connection)
                except OSError:
                    continue
                assert answer.startswith(b"HTTP/1.1 400")
        assert state(links["ann"])["item"]
