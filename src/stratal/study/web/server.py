"""The server: its address, its links, and how long it waits for slow clients."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from stratal.arrays import Record
from stratal.errors import InputError
from stratal.study.study import Study
from stratal.study.web.limits import RateLimits
from stratal.study.web.looks import look_of, media_address
from stratal.study.web.routes import application
from stratal.study.web.tokens import new_links, tokens

LOOPBACK = ("127.0.0.1", "localhost", "::1")
EVERYWHERE = ("0.0.0.0", "::")
LARGEST_HEAD = 16_384
GRACE = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Place(Record):
    """Where the page is served.

    Parameters
    ----------
    host : str
        Address of this computer to listen at.
    port : int
        0 for any free one.
    address : str, optional
        Under which annotators reach the page, where that is another: of a proxy with TLS before it, or of
        this computer in its network.

    Examples
    --------
    >>> Place().url(8000)
    'http://127.0.0.1:8000'
    """

    host: str = "127.0.0.1"
    port: int = 8000
    address: str | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.port < 65_536:
            raise InputError("no such port", given=self.port, allowed="0 to 65535")
        parts = urlsplit(self.address or "http://localhost")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
            raise InputError(
                "the address of the page is not understood", given=repr(self.address),
                allowed="http://HOST:PORT or https://HOST",
            )  # fmt: skip
        if self.host in EVERYWHERE and self.address is None:
            raise InputError(
                f"{self.host} listens on every network of this computer, but is no address to go to",
                action="Say where annotators reach it (--address http://192.168.1.5:8000).",
            )

    def url(self, port: int) -> str:
        """Return the address that links start with."""
        if self.address:
            return self.address.rstrip("/")
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{port}"

    def known_as(self, port: int) -> list[str]:
        """Return every address that requests may be made to."""
        own = [f"http://{f'[{name}]' if ':' in name else name}:{port}" for name in LOOPBACK]
        return [self.url(port), *(own if self.host in (*LOOPBACK, *EVERYWHERE) else [])]

    @property
    def is_open(self) -> bool:
        """Whether other computers can reach the page directly."""
        return self.host not in LOOPBACK

    def listen(self) -> socket.socket:
        """Return a socket that listens."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            listening = socket.create_server((self.host, self.port), family=family, backlog=256)
        except OSError as error:
            raise InputError(
                f"cannot listen at {self.host}, port {self.port} ({error.strerror or error})",
                action="Choose another port (--port 0 takes a free one) or another --host.",
            ) from None
        # asyncio would not see that such a socket speaks TCP, and each answer would wait 40 ms for a packet.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening


def serve(
    study: Study,
    place: Place,
    *,
    fresh: bool = False,
    limits: RateLimits | None = None,
    ready: Callable[[str, dict[str, str]], None] = lambda address, links: None,
) -> None:
    """Serve a study's page until the process is told to stop.

    Parameters
    ----------
    study : Study
    place : Place
    fresh : bool
        Whether earlier links shall no longer work.
    limits : RateLimits, optional
    ready : callable
        Called with the address and annotator → link, once the page can be opened.

    Raises
    ------
    InputError
        If the port is taken.
    StudyError
        Of kind `served` if another server has the study, `damaged` if a check finds a problem in it.

    Examples
    --------
    >>> serve.__name__
    'serve'
    """
    kept = limits or RateLimits()
    listening = place.listen()
    with listening:
        port = int(listening.getsockname()[1])
        address = place.url(port)
        with study.serving(address):
            with study.verified():  # nobody shall label what no estimate will take
                pass
            if fresh:
                new_links(study)
            links = {name: f"{address}/a/{token}/" for name, token in tokens(study).items()}
            app = application(study, look_of(study, media_address), place.known_as(port), kept)
            ready(address, links)
            uvicorn.Server(configuration(app, kept)).run(sockets=[listening])


def configuration(app: Any, limits: RateLimits) -> uvicorn.Config:
    """Return how uvicorn is to serve: no log of addresses, which hold tokens; bounded heads and connections.

    Examples
    --------
    >>> configuration(None, RateLimits()).access_log
    False
    """
    return uvicorn.Config(
        app,
        http=patient_protocol(limits),
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=limits.connections,
        h11_max_incomplete_event_size=LARGEST_HEAD,
        timeout_graceful_shutdown=GRACE,
    )


def patient_protocol(limits: RateLimits) -> type[H11Protocol]:
    """Return uvicorn's protocol, which gives up slow heads and refuses too many connections of one address.

    Examples
    --------
    >>> patient_protocol(RateLimits()).__name__
    'Patient'
    """
    held: Counter[str] = Counter()

    class Patient(H11Protocol):
        _waiting: asyncio.TimerHandle | None = None
        _from = ""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._from = str((transport.get_extra_info("peername") or ("",))[0])
            held[self._from] += 1
            if held[self._from] > limits.connections_each:
                transport.abort()
            else:
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            held[self._from] -= 1
            if held[self._from] <= 0:
                del held[self._from]
            self._stop_waiting()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop_waiting()
            elif self._waiting is None:
                self._wait()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self.cycle is None or self.cycle.response_complete:
                self._wait()

        def _wait(self) -> None:
            self._stop_waiting()
            self._waiting = self.loop.call_later(limits.patience, self._give_up)

        def _stop_waiting(self) -> None:
            if self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None

        def _give_up(self) -> None:
            self._waiting = None
            if self.transport is not None and not self.transport.is_closing():
                self.transport.abort()

    return Patient
