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
from stratal.study.web.content import keep_look, look_of, media_address
from stratal.study.web.server import Place, RateLimits, serve, tokens


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
        Place(**given)


def test_a_place_behind_a_proxy_is_known_by_both_names():
    assert Place(address="https://example.org/labels/").url(8000) == "https://example.org/labels"
    place = Place(address="https://labels.example.org/")

    assert place.url(8000) == "https://labels.example.org"
    assert place.known_as(8000)[:2] == ["https://labels.example.org", "http://127.0.0.1:8000"]
    assert not place.is_open
    assert Place(host="192.168.1.5").is_open
    assert Place(host="192.168.1.5").known_as(80) == ["http://192.168.1.5:80"]


def test_a_port_that_is_taken_is_said():
    with Place(port=0).listen() as listening, pytest.raises(InputError, match="Choose another port"):
        Place(port=listening.getsockname()[1]).listen()


def test_answers_do_not_wait_for_a_packet_to_fill():
    with (
        Place(port=0).listen() as listening,
        socket.create_connection(listening.getsockname()),
        listening.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_second_server_is_refused_and_told_of_the_first(study):
    with study.serving("http://127.0.0.1:1"), pytest.raises(StudyError, match=r"http://127\.0\.0\.1:1"):
        serve(study, Place(port=0))


def test_links_stay_the_same_when_the_page_is_served_again(study):
    with served(study) as links:
        first = {name: urlsplit(link).path for name, link in links.items()}
    with served(study) as links:
        assert {name: urlsplit(link).path for name, link in links.items()} == first
    assert set(first) == set(tokens(study)) == {"ann", "bob"}


def test_how_columns_are_shown_is_kept(study, tmp_path):
    keep_look(study, {"text": "markdown"})
    keep_look(study, {"other": "html"}, tmp_path)
    look = look_of(study, media_address)

    assert look.formats == {"text": "markdown", "other": "html"}
    assert look.media == tmp_path
    with pytest.raises(InputError, match="no such folder"):
        keep_look(study, media=tmp_path / "none")


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


SLOW = RateLimits(patience=0.3, rate=1e6, burst=10**6)


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
    patient = RateLimits(patience=2.0, rate=1e6, burst=10**6)
    with served(study, patient) as links, connected(links["ann"]) as connection:
        for _ in range(4):
            connection.sendall(head(links["ann"], "api/state", method="GET"))
            assert one_answer(connection).startswith(b"HTTP/1.1 200")
            time.sleep(0.6)


def test_more_connections_than_allowed_are_refused_and_nothing_is_lost(study):
    with served(study, RateLimits(connections=5, patience=20)) as links:
        held = [connected(links["ann"]) for _ in range(5)]
        with connected(links["ann"]) as one_more, suppress(ConnectionResetError):
            one_more.sendall(head(links["ann"], "api/state", method="GET"))
            assert answer_of(one_more).startswith(b"HTTP/1.1 503")
        for connection in held:
            connection.close()
        time.sleep(0.2)

        assert state(links["ann"])["item"]


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
