"""The web server of the labelling page: routes (`/a/TOKEN/` and below), links, limits and checks of requests.

The token in the path determines all rights of an annotator. There are no cookies, so that another page in the
same browser cannot use them. `RequestCheck` accepts only requests from the study's page to its address. Every
response has headers that restrict the browser to the resources that the page needs.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import hashlib
import hmac
import html
import json
import logging
import math
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlsplit

import uvicorn
from msgspec import Struct
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from stratal.errors import InputError, StratalError
from stratal.protocols import JsonDict
from stratal.study.database import StudyError
from stratal.study.journal import PAGE_SECRET
from stratal.study.permissions import Activity, StudyRole, is_possible
from stratal.study.study import Study
from stratal.study.web import content
from stratal.study.web.content import HANDLERS, Display, media_address, read_display

# HTTP status by kind of error. Other kinds have 507: the disk of the study failed.
STATUS_BY_ERROR_KIND = {"input": 400, "locked": 503, "missing": 404, "refused": 409, "served": 409}

# Statuses of requests that will never succeed. Other requests may succeed later or with a new link: the page
# stores and repeats them.
PERMANENT_FAILURE_STATUSES = (400, 413, 415)

# Content security policy of media and reports: they may contain scripts and links, which must not run.
MEDIA_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
# Static files of the server, with their media types.
PAGE_FILES = {
    **dict.fromkeys(("parts.js", "annotate.js", "page.js", "owner.js"), "text/javascript"),
    **{"page.css": "text/css", "icon.svg": "image/svg+xml"},
}

# A browser may run the page's script and show its style and the study's media, but nothing inline.
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    "cache-control": "no-store",
}

# Default ports, which an address may leave out.
DEFAULT_PORTS = {"http": 80, "https": 443}

# Addresses that only this machine can reach.
LOOPBACK = ("127.0.0.1", "localhost", "::1")
# Addresses that other machines can reach, under any name of this one.
ALL_INTERFACES = ("0.0.0.0", "::")

# Largest size of the headers of a request in bytes, far above what browsers send.
MAX_HEAD_BYTES = 16_384

# Time that running requests have to end when the server stops.
SHUTDOWN_SECONDS = 5
# Number of clients whose request rates are stored, which limits the memory; the oldest is removed.
MAX_CLIENTS = 10_000


class ServerLimits(Struct, frozen=True, kw_only=True):
    """Limits on the requests of clients.

    Parameters
    ----------
    rate : float
        Requests per second of one annotator, and of all requests without a valid token from one address.
    burst : int
        Requests that may arrive at once before the rate applies.
    max_body_bytes : int
        Largest body of a request in bytes; the longest content of a request is a note.
    receive_seconds : float
        Seconds in which the head of a request must arrive, and again for its body.
    connections : int
        Simultaneous connections. If there are more, the oldest one without a valid link is closed.
    """

    rate: float = 50.0
    burst: int = 200
    max_body_bytes: int = 131_072
    receive_seconds: float = 10.0
    connections: int = 500


LIMITS = ServerLimits()


class RateLimiter:
    """A token bucket of requests for each client, which is refilled at a constant rate."""

    def __init__(self, *, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._clock = clock
        # Remaining requests and time of the last change, by client.
        self._buckets: dict[str, tuple[float, float]] = {}

    def allow(self, client: str) -> bool:
        """Take one request from a client's bucket; return whether there was one."""
        now = self._clock()
        remaining, updated = self._buckets.pop(client, (self._burst, now))
        remaining = min(self._burst, remaining + (now - updated) * self._rate)
        if len(self._buckets) >= MAX_CLIENTS:
            del self._buckets[next(iter(self._buckets))]
        is_allowed = remaining >= 1.0
        if is_allowed:
            remaining -= 1.0
        self._buckets[client] = (remaining, now)
        return is_allowed


# Role of the person who runs the study.
OWNER = "owner"

# Possible roles of a person by kind of link; the study determines the actual role.
LINK_ROLES: dict[str, frozenset[StudyRole]] = {
    "annotator": frozenset({"annotator", "adjudicator", "set-aside"}),
    OWNER: frozenset({"owner"}),
    # Without a valid link.
    "": frozenset({"stranger"}),
}

# File descriptors for the database, the page's files, and connections above the limit until they are closed.
RESERVED_FILES = 320
# Number of connections that are accepted before their number is checked again.
BACKLOG = 128

# Seconds between two lines of the log about the same shortage.
LOG_INTERVAL_SECONDS = 60.0
# Tells a client whose request was not read completely to open a new connection.
CLOSE_CONNECTION = {"connection": "close"}
# Name, in the state of a request, of the function that marks its connection as one with a valid link.
RECOGNISE_CONNECTION = "recognise_connection"


def link_token(secret: str, name: str, role: str = "annotator") -> str:
    """Return a token of 43 characters that cannot be guessed without the study's secret.

    Tokens of annotators and of the owner are different for any name, because no role contains a colon.
    """
    digest = hmac.new(secret.encode(), f"{role}:{name}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def invalidate_links(study: Study) -> None:
    """Make all earlier links of a study invalid."""
    study.save_settings(**{PAGE_SECRET: secrets.token_hex(32)})


def tokens(study: Study) -> dict[str, str]:
    """Return the tokens of annotators and adjudicators by name, which `invalidate_links` changes."""
    secret = _secret(study)
    return {name: link_token(secret, name) for name in study.people}


def owner_token(study: Study) -> str:
    """Return the token of the owner's page, which stays the same until `invalidate_links`."""
    return link_token(_secret(study), "", OWNER)


def _secret(study: Study) -> str:
    """Return the secret of a study's links, which is generated on first use."""
    return study.setting(PAGE_SECRET) or study.save_new_setting(PAGE_SECRET, secrets.token_hex(32))


def owner_link(study: Study, address: str) -> str:
    """Return the link of the owner's page."""
    return f"{address}/o/{owner_token(study)}/"


class RequestCheck:
    """ASGI application that rejects requests to another host or from another page, and adds headers.

    Parameters
    ----------
    app : ASGI application
    addresses : iterable of str
        Addresses of the page, such as `http://127.0.0.1:8000`.
    https : bool
        Whether images from other hosts are shown.
    """

    def __init__(self, app: ASGIApp, addresses: Iterable[str], https: bool = False) -> None:
        self._app = app
        policy = SECURITY_HEADERS["content-security-policy"]
        if https:
            policy = policy.replace("img-src 'self'", "img-src 'self' https:")
        self._headers = SECURITY_HEADERS | {"content-security-policy": policy}
        self._origins = frozenset(map(browser_origin, addresses))
        # Browsers leave out the default port of a scheme; other clients may include it.
        urls = [urlsplit(address) for address in self._origins]
        self._hosts = {url.netloc for url in urls}
        self._hosts |= {f"{url.hostname}:{DEFAULT_PORTS[url.scheme]}" for url in urls if not url.port}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or reject it."""
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        responder = self._rejection(scope) or self._app
        await responder(scope, receive, send_with_headers)

    def _rejection(self, scope: Scope) -> Response | None:
        """Return the response to a request that is not from the study's page, None for other requests."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        is_from_other_site = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        is_unsafe = is_from_other_site and scope["method"] not in ("GET", "HEAD")
        has_other_origin = any(entry.lower() not in self._origins for entry in headers.getlist("origin"))
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            text = "This is not the address of the page. Use the link that you received."
            # Misdirected request: other names for this address could be used to read the page from another
            # site.
            status = 421
        elif is_unsafe or has_other_origin:
            text = "Requests from another page are not accepted."
            status = 403
        else:
            return None
        return Response(text + "\n", status, {"connection": "close"}, "text/plain")


def browser_origin(address: str) -> str:
    """Return the origin of an address in the form that browsers send."""
    parts = urlsplit(address.lower())
    host = parts.hostname or ""
    # An address of IPv6 needs brackets.
    if ":" in host:
        host = f"[{host}]"
    if parts.port in (None, DEFAULT_PORTS[parts.scheme]):
        port = ""
    else:
        port = f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


class Pages:
    """The endpoints of a study's page.

    Parameters
    ----------
    study : Study
    display : Display
        How items are displayed.
    limits : ServerLimits
    """

    def __init__(self, study: Study, display: Display, limits: ServerLimits) -> None:
        self._study = study
        self._display = display
        self._limits = limits
        # Role and name by the digest of the token.
        self._links: dict[bytes, tuple[str, str]] = {}
        self._rates = RateLimiter(rate=limits.rate, burst=limits.burst)
        # The response with the owner's figures, and the time after which they are computed again.
        self._status: Response | None = None
        self._status_expiry = 0.0
        self._status_lock = threading.Lock()
        # If the study cannot be read yet, the first request loads the links.
        with suppress(StudyError):
            self._load_links()

    def routes(self) -> list[Route]:
        """Return the routes with their endpoints."""
        # The parameter of each resource that the page reads.
        parameters = {"state": "", "item": "id", "trail": "before", "disagreements": ""}
        # Required activity, script and title of each page.
        pages: dict[str, tuple[Activity, str, str]] = {
            "/a/{token}": ("state", "page", "Labelling"),
            "/o/{token}": ("figures", OWNER_PAGE, "Study"),
        }
        return [
            Route("/static/{name}", self._static_response),
            *(
                Route(f"{path}{end}", self._page_endpoint(*page))
                for path, page in pages.items()
                for end in ("", "/")
            ),
            Route("/a/{token}/media/{path:path}", self._media_response),
            Route("/a/{token}/api/act", self._api_endpoint("act", ""), methods=["POST"]),
            *(
                Route(f"/a/{{token}}/api/{resource}", self._api_endpoint(resource, parameter))
                for resource, parameter in parameters.items()
            ),
            Route("/o/{token}/api/status", self._owner_status),
            Route("/o/{token}/report", self._owner_report),
        ]

    def _page_endpoint(self, activity: Activity, script: str, title: str) -> Callable[[Request], Any]:
        """Return the endpoint of an HTML page, which requires a link that allows the activity."""

        async def endpoint(request: Request) -> Response:
            await self._authorised_name(request, activity)
            if not request.url.path.endswith("/"):
                return RedirectResponse(f"{quote(request.path_params['token'], safe='')}/", 308)
            placeholder = ""
            if script == OWNER_PAGE:
                placeholder = await run_in_threadpool(self._placeholder_html)
            return script_page(request, script, title, placeholder=placeholder)

        return endpoint

    async def _authorised_name(self, request: Request, activity: Activity) -> str:
        """Return the name in a request's link; raise an error if the link does not allow the activity.

        Requests without a valid link share the bucket of their address, which is checked first.
        """
        token = _digest(request.path_params["token"])
        address = f"address {request.client.host if request.client else ''}"
        is_unknown_token = token not in self._links
        if is_unknown_token:
            self._consume_request(address, CLOSE_CONNECTION)
            # A person may have been added after the start.
            await run_in_threadpool(self._load_links)
        link_role, name = self._links.get(token, ("", ""))
        if not is_possible(activity, LINK_ROLES[link_role]):
            if not is_unknown_token:
                self._consume_request(address, CLOSE_CONNECTION)
            raise HTTPException(404, _NO_PAGE, CLOSE_CONNECTION)
        self._consume_request(f"{link_role} {name}")
        # Tests call the application without a connection.
        recognise = getattr(request.state, RECOGNISE_CONNECTION, None)
        if recognise is not None:
            recognise()
        return name

    def _consume_request(self, client: str, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        """Take a request from a client's bucket; raise an error if the bucket is empty."""
        if not self._rates.allow(client):
            retry_headers = {"retry-after": "1", **headers}
            raise HTTPException(429, "Too many requests. Wait a moment.", retry_headers)

    def _load_links(self) -> None:
        """Load role and name of each token, including those of people who were added after the start.

        Only digests are compared, so that the duration of a comparison reveals nothing about a token.
        """
        links = {_digest(token): ("annotator", name) for name, token in tokens(self._study).items()}
        self._links = links | {_digest(owner_token(self._study)): (OWNER, "")}

    def _placeholder_html(self) -> str:
        """Return the question and the number of answers as HTML, shown until the figures load."""
        with self._study.verified() as connection:
            total, done = connection.one("SELECT total, done FROM tally")
        question = html.escape(self._study.form.first.text)
        counts = f"<p>{done:,} of {total:,} answers</p>"
        return f"<h1>{question}</h1>{counts}<p class=fresh>Computing the estimate …</p>"

    async def _owner_report(self, request: Request) -> Response:
        await self._authorised_name(request, "figures")
        page = await run_in_threadpool(report_page, self._study.folder)
        return HTMLResponse(page, headers={"content-security-policy": MEDIA_POLICY})

    async def _owner_status(self, request: Request) -> Response:
        await self._authorised_name(request, "figures")
        return await run_in_threadpool(self._status_response)

    def _status_response(self) -> Response:
        """Return the output of `study status --json`, which is recomputed from time to time."""
        if not self._status_lock.acquire(blocking=False):
            message = "The figures are being computed for the first time. They will be available in a moment."
            if self._status is not None:
                return self._status
            return _error_response("locked", message, 503)
        try:
            start = time.monotonic()
            if self._status is None or start >= self._status_expiry:
                self._status = JSONResponse(public_status(self._study.folder))
                now = time.monotonic()
                lifetime = max(STATUS_LIFETIME, STATUS_COST_FACTOR * (now - start))
                self._status_expiry = now + lifetime
            return self._status
        finally:
            self._status_lock.release()

    def _api_endpoint(self, resource: str, parameter: str) -> Callable[[Request], Any]:
        """Return the endpoint of a JSON resource; `parameter` is the name of its query parameter."""
        # Everybody may request disagreements; the list is empty for people who are not adjudicators.
        activity: Any
        if resource == "disagreements":
            activity = "state"
        else:
            activity = resource

        async def endpoint(request: Request) -> Response:
            # The functions that read or write the study check the rights of the person for the item.
            if request.method == "POST":
                name = await self._authorised_name(request, "state")
                argument = await self._body(request)
            else:
                name = await self._authorised_name(request, activity)
                argument = request.query_params.get(parameter)
            handler = HANDLERS[resource]
            return JSONResponse(await run_in_threadpool(handler, self._study, name, self._display, argument))

        return endpoint

    async def _body(self, request: Request) -> Any:
        """Return the JSON value in a request; raise an error if it is too large, too slow or invalid."""
        if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            raise HTTPException(415, "the request is not JSON")
        max_body_bytes = self._limits.max_body_bytes
        body = b""
        message = f"The request is larger than {max_body_bytes:,} bytes. Shorten the note."
        too_large_error = HTTPException(413, message, CLOSE_CONNECTION)
        if int(request.headers.get("content-length", "0")) > max_body_bytes:
            raise too_large_error
        try:
            async with asyncio.timeout(self._limits.receive_seconds):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > max_body_bytes:
                        raise too_large_error
            value = json.loads(body)
            # Raises an error for lone surrogates in any text.
            json.dumps(value, ensure_ascii=False).encode()
            return value
        except TimeoutError:
            message = "The request took too long to arrive. Check the connection and send it again."
            raise HTTPException(408, message, CLOSE_CONNECTION) from None
        except (ValueError, RecursionError):
            raise InputError("the request is not JSON", allowed="one JSON object in UTF-8") from None

    async def _media_response(self, request: Request) -> Response:
        await self._authorised_name(request, "media")
        path = await run_in_threadpool(content.media_file, self._display.media, request.path_params["path"])
        if path is None:
            raise HTTPException(404, _NO_FILE)
        media_type = content.MEDIA_TYPES[path.suffix.lower()]
        headers = {"content-security-policy": MEDIA_POLICY, "cache-control": "private, max-age=3600"}
        return FileResponse(path, media_type=media_type, headers=headers)

    async def _static_response(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in PAGE_FILES:
            raise HTTPException(404, _NO_FILE)
        return Response(
            content.read_page_file(name), media_type=PAGE_FILES[name], headers={"cache-control": "no-cache"}
        )


# Texts for people, who may have copied the link incompletely.
_NO_FILE = "This file does not exist. Open the link that you received."
_NO_PAGE = "This page does not exist. Use the link exactly as you received it, or ask for a new one."
# Name of the script of the owner's page.
OWNER_PAGE = "owner"

# Shortest time in seconds until the owner's figures are recomputed, and the shortest time as a multiple of
# the duration of a computation: computations then use at most a fifth of one core.
STATUS_LIFETIME = 2.0
STATUS_COST_FACTOR = 4.0


def public_status(folder: Path) -> JsonDict:
    """Return the output of `study status --json` without the path of the folder.

    It runs in a separate process, because it takes a minute for a large study, and this process must answer
    annotators.
    """
    status: JsonDict = json.loads(_command_output(folder, "study", "status", str(folder), "--json"))
    del status["folder"]
    return status


def report_page(folder: Path) -> str:
    """Return the report of a study's estimate as an HTML page, written by a separate process."""
    with TemporaryDirectory() as temporary:
        target = Path(temporary) / "report.html"
        _command_output(folder, "report", str(folder), "--output", str(target))
        return target.read_text(encoding="utf-8").replace(str(folder), folder.name)


def _command_output(folder: Path, *words: str) -> str:
    """Run a command on a study at low priority, so that annotators come first, and return its output."""
    # -P: the current folder may contain a file such as `random.py`, which would replace Python's module.
    command = [sys.executable, "-P", "-m", "stratal", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        # Not all systems have priorities.
        with suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, process.pid, 10)
        printed, errors = process.communicate()
    if process.returncode:
        raise StudyError(errors.strip().replace(str(folder), "the study"), kind="damaged")
    return printed


def _digest(token: str) -> bytes:
    """Return the SHA-256 digest of a token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


def application(
    study: Study, display: Display, addresses: list[str], limits: ServerLimits = LIMITS
) -> ASGIApp:
    """Return the page of a study as an ASGI application; only requests to `addresses` are answered."""

    def error_response(request: Request, error: Exception) -> Response:
        """Return the response for an error, without the path of the study's folder."""
        if isinstance(error, HTTPException):
            # Starlette's texts for an address without a route.
            if error.detail in ("Not Found", "Method Not Allowed"):
                error.detail = _NO_PAGE
            # A person followed a link.
            if "text/html" in request.headers.get("accept", ""):
                return script_page(request, "", "No such page", error)
            # The page drops the request (`refused`), or stores it and tries again (`away`).
            kind = "refused" if error.status_code in PERMANENT_FAILURE_STATUSES else "away"
            return _error_response(kind, error.detail, error.status_code, error.headers)
        # The log of the server has the details of other errors.
        if not isinstance(error, StratalError):
            return _error_response("failed", "Something went wrong on the server. Nothing was saved.", 500)
        kind = content.error_kind(error)
        # Other kinds are errors of storage, such as a full disk: insufficient storage.
        status = STATUS_BY_ERROR_KIND.get(kind, 507)
        headers = {"retry-after": "1"} if status == 503 else None
        return _error_response(kind, str(error).removeprefix(f"{study.folder}: "), status, headers)

    handlers = dict.fromkeys((StratalError, HTTPException, Exception), error_response)
    app = Starlette(routes=Pages(study, display, limits).routes(), exception_handlers=handlers)
    app.router.redirect_slashes = False
    return RequestCheck(app, addresses, display.https)


def script_page(
    request: Request, script: str, title: str, error: HTTPException | None = None, *, placeholder: str = ""
) -> Response:
    """Return the HTML page that runs a script, or the page of an error.

    `placeholder` is HTML that is shown until the script replaces it. Addresses are relative, so that a proxy
    may serve the page below any path.
    """
    root = "../" * (request.url.path.count("/") - 1) or "./"
    icon = f'<link rel="icon" href="{root}static/icon.svg">'
    head = f'{icon}\n<link rel="stylesheet" href="{root}static/page.css">'
    if error is not None:
        body = f"<h1>{title}</h1><p>{html.escape(error.detail)}</p>"
        return HTMLResponse(content.html_page(title, head, "text", body), error.status_code, error.headers)
    script_element = f'<script type="module" src="{root}static/{script}.js"></script>'
    return HTMLResponse(content.html_page(title, f"{head}\n{script_element}", script, placeholder))


def _error_response(kind: str, message: str, status: int, headers: Any = None) -> Response:
    """Return the response for a script; its reaction depends on `kind`."""
    return JSONResponse({"error": {"kind": kind, "message": message}}, status, headers)


class PageAddress(Struct, frozen=True, kw_only=True):
    """The address of the page.

    Parameters
    ----------
    host : str
        Address of this computer at which the server listens.
    port : int
        0 selects a free port.
    address : str, optional
        Address for annotators if it is different, such as that of a TLS proxy or of this computer in its
        network.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    address: str | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.port < 65_536:
            raise InputError("invalid port", given=self.port, allowed="0 to 65535")
        parts = urlsplit(self.address or "http://localhost")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            problem = "the address of the page cannot be read"
            allowed = "http://HOST:PORT or https://HOST/PATH"
            raise InputError(problem, given=repr(self.address), allowed=allowed)
        if self.host in ALL_INTERFACES and self.address is None:
            problem = (
                f"{self.host} makes the server listen on all networks, but a browser cannot open this address"
            )
            action = (
                "Give the address at which annotators reach the page (--address http://192.168.1.5:8000)."
            )
            raise InputError(problem, action=action)

    def url(self, port: int) -> str:
        """Return the address with which all links begin."""
        if self.address:
            return self.address.rstrip("/")
        return _url(self.host, port)

    def host_names(self, port: int) -> list[str]:
        """Return all addresses of the page."""
        addresses = [self.url(port)]
        if self.host in (*LOOPBACK, *ALL_INTERFACES):
            addresses += [_url(name, port) for name in LOOPBACK]
        return addresses

    @property
    def is_open(self) -> bool:
        """Whether other computers can reach the page directly."""
        return self.host not in LOOPBACK

    def listen(self) -> socket.socket:
        """Return a socket that listens."""
        if ":" in self.host:
            family = socket.AF_INET6
        else:
            family = socket.AF_INET
        try:
            server_socket = socket.create_server((self.host, self.port), family=family, backlog=256)
        except OSError as error:
            problem = f"cannot listen on {self.host}, port {self.port} ({error.strerror or error})"
            action = (
                "Choose another port (--port 0 selects a free one) or another address (--port HOST:PORT)."
            )
            raise InputError(problem, action=action) from None
        # asyncio does not set this for a socket that it did not create. Without it, each response is delayed
        # by 40 ms (Nagle's algorithm).
        server_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return server_socket


def _url(host: str, port: int) -> str:
    """Return the address of a host and a port."""
    # An address of IPv6 needs brackets.
    if ":" in host:
        host = f"[{host}]"
    return f"http://{host}:{port}"


def serve(
    study: Study,
    page_address: PageAddress,
    *,
    new_links: bool = False,
    limits: ServerLimits = LIMITS,
    ready: Callable[[str, dict[str, str], str], None] = lambda address, links, owner: None,
) -> None:
    """Serve a study's page until the process receives a signal to stop.

    Parameters
    ----------
    study : Study
    page_address : PageAddress
    new_links : bool
        Whether to create new links, so that all earlier ones are invalid.
    limits : ServerLimits, optional
    ready : callable
        Called when the page can be opened, with the address, the links by annotator, and the owner's link.

    Raises
    ------
    InputError
        If the port is taken.
    StudyError
        Kind `served` if another server has the study, `damaged` if a check of it fails.
    """
    with page_address.listen() as server_socket:
        # The system chooses a port instead of 0.
        port = int(server_socket.getsockname()[1])
        address = page_address.url(port)
        with study.serving(address):
            # A damaged study cannot be estimated, so that its items must not be labelled.
            with study.verified():
                pass
            study.restrict_file_permissions()
            if new_links:
                invalidate_links(study)
            app = application(
                study, read_display(study, media_address), page_address.host_names(port), limits
            )
            links = {name: f"{address}/a/{token}/" for name, token in tokens(study).items()}
            ready(address, links, owner_link(study, address))
            PageServer(configuration(app, limits)).run(sockets=[server_socket])


class PageServer(uvicorn.Server):
    """Uvicorn's server, which writes one line to the log if many connections fail for the same reason."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen."""
        asyncio.get_running_loop().set_exception_handler(ShortageLog())
        await super().startup(sockets)


class ShortageLog:
    """Logs a shortage of files or memory at most once per interval, and all other errors immediately.

    asyncio reports every connection that it cannot accept: half a million lines in a minute.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = -math.inf

    def __call__(self, loop: asyncio.AbstractEventLoop, context: JsonDict) -> None:
        """Log an error of an event loop."""
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in SHORTAGES:
            if self._clock() < self._next:
                return
            self._next = self._clock() + LOG_INTERVAL_SECONDS
            logging.getLogger("uvicorn.error").error("connections are waiting: %s", error.strerror)
            return
        loop.default_exception_handler(context)


# Errors of a server with too many open connections, which end when some are closed.
SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def possible_connections(requested: int) -> int:
    """Return the number of connections that leaves enough file descriptors for the study's files."""
    try:
        import resource
    except ImportError:
        # Windows has no such limit.
        return requested
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed_files = requested + RESERVED_FILES
    if soft != resource.RLIM_INFINITY and soft < needed_files:
        # A process may raise its soft limit up to the hard limit.
        new_limit = needed_files if hard == resource.RLIM_INFINITY else min(needed_files, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (new_limit, hard))
            soft = new_limit
        return max(MIN_CONNECTIONS, min(requested, soft - RESERVED_FILES))
    return requested


# Smallest number of connections, even if the system allows only few files.
MIN_CONNECTIONS = 16


def configuration(app: Any, limits: ServerLimits) -> uvicorn.Config:
    """Return uvicorn's settings: limited headers and connections; no log of paths, which contain tokens."""
    connections = possible_connections(limits.connections)
    return uvicorn.Config(
        app,
        http=limited_protocol(limits, connections),
        backlog=BACKLOG,
        ws="none",
        lifespan="off",
        # With a warning for each invalid request, anybody could fill the disk.
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=connections,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )


def limited_protocol(limits: ServerLimits, connections: int) -> type[H11Protocol]:
    """Return a uvicorn protocol that closes slow requests, and the oldest connections without a link."""
    # Connections without a request with a valid link so far, the oldest first.
    unrecognised: dict[H11Protocol, None] = {}

    class LimitedProtocol(H11Protocol):
        # Closes the connection when the time for the head of a request is over.
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.app_state = {**self.app_state, RECOGNISE_CONNECTION: self._recognise}
            unrecognised[self] = None
            self._close_oldest()
            self._update_timer()

        def _recognise(self) -> None:
            """Mark the connection as one with a valid link."""
            unrecognised.pop(self, None)

        def _close_oldest(self) -> None:
            """Close the oldest connections without a link, so that people with a link are answered."""
            while len(self.connections) >= connections and unrecognised:
                oldest = next(iter(unrecognised))
                if oldest is self:
                    return
                del unrecognised[oldest]
                self.connections.discard(oldest)
                oldest.transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            unrecognised.pop(self, None)
            if self._timer is not None:
                self._timer.cancel()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._update_timer()

        def _update_timer(self) -> None:
            """Start the timer for the head of a request; stop it when the head is complete."""
            is_answering = self.cycle is not None and not self.cycle.response_complete
            if is_answering and self._timer is not None:
                self._timer.cancel()
                self._timer = None
            elif not is_answering and self._timer is None:
                self._timer = self.loop.call_later(limits.receive_seconds, self.transport.abort)

    return LimitedProtocol
