"""The page's server: its addresses (`/a/TOKEN/` and what lies below it), its gate, its links, its limits.

All that an annotator may do hangs on the token in the path. There are no cookies, so that another page in the
same browser has nothing to borrow. Only requests of our own page, to our own address, pass the gate, and no
answer leaves without the headers that keep a browser from doing more than the page needs.
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
from stratal.study.web.content import HANDLERS, Display, display_of, media_address

# Kind of an error → HTTP status; any other is 507: the study's disk did not do what it should.
STATUS = {"input": 400, "locked": 503, "missing": 404, "refused": 409, "served": 409}

# Statuses of requests that will never do; others may, later or by a new link: the page keeps those.
FINAL = (400, 413, 415)

MEDIA_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
# Files that the server hands out, and what they are.
PAGE_FILES = {
    **dict.fromkeys(("parts.js", "annotate.js", "page.js", "owner.js"), "text/javascript"),
    **{"page.css": "text/css", "icon.svg": "image/svg+xml"},
}

# What a browser may do on the page: run our script, show our style and the study's media; nothing inline.
HEADERS = {
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

# Ports that an address need not name.
USUAL = {"http": 80, "https": 443}

LOOPBACK = ("127.0.0.1", "localhost", "::1")
EVERYWHERE = ("0.0.0.0", "::")

# Bytes of the headers of a request, far above what browsers send.
LARGEST_HEAD = 16_384

# Requests that run get this long to end.
SHUTDOWN_SECONDS = 5
# Clients whose rates are remembered.
MOST_CLIENTS = 10_000


class RateLimits(Struct, frozen=True, kw_only=True):
    """Bounds on what clients may ask.

    Parameters
    ----------
    rate : float
        Requests a second of one annotator, and of all requests of one address that have no valid token.
    burst : int
        Requests that may come at once before the rate counts.
    largest : int
        Bytes of a request's body; a note is the longest thing that a page sends.
    patience : float
        Seconds for a request to arrive, its head and its body each.
    connections : int
        Connections at a time. Beyond that the oldest one that has shown no valid link is closed.
    """

    rate: float = 50.0
    burst: int = 200
    largest: int = 131_072
    patience: float = 10.0
    connections: int = 500


LIMITS = RateLimits()


class Rates:
    """A bucket of requests for each client, which fills again at a constant rate."""

    def __init__(self, *, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, float(burst), clock
        self._left: dict[str, tuple[float, float]] = {}

    def allow(self, client: str) -> bool:
        """Take one request out of a client's bucket; return whether there was one."""
        now = self._clock()
        tokens, updated = self._left.pop(client, (self._burst, now))
        tokens = min(self._burst, tokens + (now - updated) * self._rate)
        if len(self._left) >= MOST_CLIENTS:
            del self._left[next(iter(self._left))]
        self._left[client] = (tokens - 1.0 if tokens >= 1.0 else tokens, now)
        return tokens >= 1.0


OWNER = "owner"

# Kind of link → the roles that whoever has it may have; which of these a person has is the study's to say.
LINK_ROLES: dict[str, frozenset[StudyRole]] = {
    "annotator": frozenset({"annotator", "adjudicator", "set-aside"}),
    OWNER: frozenset({"owner"}),
    "": frozenset({"stranger"}),
}

# File descriptors for the database, the page's own files and connections that were accepted at once.
RESERVED_FILES = 320
# Connections that are accepted before the next look at their number.
BACKLOG = 128
# Seconds between two lines of the log about the same shortage.
QUIET = 60.0
CLOSE = {"connection": "close"}
# Name, in a request's state, of what is called once the request has shown a valid link.
RECOGNISE = "recognise_connection"


def token_of(secret: str, name: str, role: str = "annotator") -> str:
    """Return a token of 43 characters that cannot be guessed without the study's secret.

    An annotator's and the owner's differ whatever the annotator's name: no role has a colon.
    """
    digest = hmac.new(secret.encode(), f"{role}:{name}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def new_links(study: Study) -> None:
    """Make all earlier links of a study invalid."""
    study.save_settings(**{PAGE_SECRET: secrets.token_hex(32)})


def tokens(study: Study) -> dict[str, str]:
    """Return annotator or adjudicator → token; the same whenever it is asked, until `new_links`."""
    secret = _secret(study)
    return {name: token_of(secret, name) for name in study.people}


def owner_token(study: Study) -> str:
    """Return the token of the page on which the owner watches the study, until `new_links`."""
    return token_of(_secret(study), "", OWNER)


def _secret(study: Study) -> str:
    """Return the secret of a study's links, which is made when it is first needed."""
    return study.setting(PAGE_SECRET) or study.save_new_setting(PAGE_SECRET, secrets.token_hex(32))


def owner_link(study: Study, address: str) -> str:
    """Return the link of the owner's page."""
    return f"{address}/o/{owner_token(study)}/"


class Gate:
    """Refuses requests to another host and from another page.

    Parameters
    ----------
    app : ASGI application
    addresses : iterable of str
        Addresses by which the page is known, such as `http://127.0.0.1:8000`.
    https : bool
        Whether pictures from elsewhere are shown.
    """

    def __init__(self, app: ASGIApp, addresses: Iterable[str], https: bool = False) -> None:
        self._app = app
        policy = HEADERS["content-security-policy"]
        if https:
            images = policy.replace("img-src 'self'", "img-src 'self' https:")
        else:
            images = policy
        self._headers = HEADERS | {"content-security-policy": images}
        self._origins = frozenset(map(browser_origin, addresses))
        # A browser leaves a scheme's own port out; another client may name it.
        parts = [urlsplit(address) for address in self._origins]
        self._hosts = {part.netloc for part in parts}
        self._hosts |= {f"{part.hostname}:{USUAL[part.scheme]}" for part in parts if not part.port}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] != "http":
            return

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        await (self._refusal(scope) or self._app)(scope, receive, sealed)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        foreign = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        unsafe = foreign and scope["method"] not in ("GET", "HEAD")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            text = "This address is not the page's. Use the link as it was given."
            status = 421
        elif unsafe or any(entry.lower() not in self._origins for entry in headers.getlist("origin")):
            text = "Another page may not ask this of the study."
            status = 403
        else:
            return None
        return Response(text + "\n", status, {"connection": "close"}, "text/plain")


def browser_origin(address: str) -> str:
    """Return an address as a browser names its origin."""
    parts = urlsplit(address.lower())
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    if parts.port in (None, USUAL[parts.scheme]):
        port = ""
    else:
        port = f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


class Pages:
    """Answers the requests of a study's page."""

    def __init__(self, study: Study, display: Display, limits: RateLimits) -> None:
        self._study = study
        self._display = display
        self._limits = limits
        self._known: dict[bytes, tuple[str, str]] = {}
        self._rates = Rates(rate=limits.rate, burst=limits.burst)
        self._status: tuple[float, Response] | None = None
        self._counting = threading.Lock()
        with suppress(StudyError):  # later, once the study can be read
            self._learn()

    def routes(self) -> list[Route]:
        """Return the addresses and who answers there."""
        requested = {"state": "", "item": "id", "trail": "before", "disagreements": ""}
        pages: dict[str, tuple[Activity, str, str]] = {
            "/a/{token}": ("state", "page", "Labelling"),
            "/o/{token}": ("figures", OWNER_PAGE, "Study"),
        }
        return [
            Route("/static/{name}", self._file),
            *(Route(f"{path}{end}", self._page(*page)) for path, page in pages.items() for end in ("", "/")),
            Route("/a/{token}/media/{path:path}", self._medium),
            Route("/a/{token}/api/act", self._requested("act", ""), methods=["POST"]),
            *(Route(f"/a/{{token}}/api/{k}", self._requested(k, of)) for k, of in requested.items()),
            Route("/o/{token}/api/status", self._owner_status),
            Route("/o/{token}/report", self._owner_report),
        ]

    def _page(self, activity: Activity, home: str, title: str) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            await self._visitor(request, activity)
            if request.url.path.endswith("/"):
                opening = await run_in_threadpool(self._opening) if home == OWNER_PAGE else ""
                return script_page(request, home, title, opening=opening)
            return RedirectResponse(f"{quote(request.path_params['token'], safe='')}/", 308)

        return endpoint

    async def _visitor(self, request: Request, activity: Activity) -> str:
        """Return whose link a request has, refusing one whose link does not allow the activity.

        Strangers share the bucket of their address, which is looked at before any work is done for them.
        """
        token = _digest(request.path_params["token"])
        address = f"address {request.client.host if request.client else ''}"
        is_counted = token not in self._known
        if is_counted:
            self._count(address, CLOSE)
            await run_in_threadpool(self._learn)
        kind, who = self._known.get(token, ("", ""))
        if not is_possible(activity, LINK_ROLES[kind]):
            if not is_counted:
                self._count(address, CLOSE)
            raise HTTPException(404, _NOTHING, CLOSE)
        self._count(f"{kind} {who}")
        recognise = getattr(request.state, RECOGNISE, None)
        if recognise is not None:
            recognise()
        return who

    def _count(self, client: str, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        """Take a request out of a client's bucket, refusing it where the bucket is empty."""
        if not self._rates.allow(client):
            wait = {"retry-after": "1", **headers}
            raise HTTPException(429, "too many requests. Wait a moment.", wait)

    def _learn(self) -> None:
        """Look up the role and the name that each token stands for, also of those who came after the start.

        Only digests are compared, so that the time taken says nothing of the token.
        """
        people = {_digest(token): ("annotator", name) for name, token in tokens(self._study).items()}
        self._known = people | {_digest(owner_token(self._study)): (OWNER, "")}

    def _opening(self) -> str:
        """Return the question and the number of answers, which the owner sees until the figures are there."""
        with self._study.verified() as connection:
            total, done = connection.one("SELECT total, done FROM tally")
        question = html.escape(self._study.form.first.text)
        counts = f"<p>{done:,} of {total:,} answers</p>"
        return f"<h1>{question}</h1>{counts}<p class=fresh>Computing the estimate …</p>"

    async def _owner_report(self, request: Request) -> Response:
        await self._visitor(request, "figures")
        page = await run_in_threadpool(report_page, self._study.folder)
        return HTMLResponse(page, headers={"content-security-policy": MEDIA_POLICY})

    async def _owner_status(self, request: Request) -> Response:
        await self._visitor(request, "figures")
        return await run_in_threadpool(self._figures)

    def _figures(self) -> Response:
        """Return what `study status --json` prints, counted again now and then."""
        if not self._counting.acquire(blocking=False):
            message = "The figures are being counted for the first time. They are here in a moment."
            if self._status:
                return self._status[1]
            return _refusal("locked", message, 503)
        try:
            start = time.monotonic()
            if self._status is None or start >= self._status[0]:
                shown = JSONResponse(public_status(self._study.folder))
                now = time.monotonic()
                self._status = now + max(STATUS_LIFETIME, DEAR * (now - start)), shown
            return self._status[1]
        finally:
            self._counting.release()

    def _requested(self, resource: str, parameter: str) -> Callable[[Request], Any]:
        # Of disagreements whoever does not decide gets none.
        activity: Any
        if resource == "disagreements":
            activity = "state"
        else:
            activity = resource

        async def endpoint(request: Request) -> Response:
            acts = request.method == "POST"
            # What the person may do with the item is decided where the study is read or written.
            who = await self._visitor(request, "state" if acts else activity)
            if acts:
                sent = await self._body(request)
            else:
                sent = request.query_params.get(parameter)
            return JSONResponse(
                await run_in_threadpool(HANDLERS[resource], self._study, who, self._display, sent)
            )

        return endpoint

    async def _body(self, request: Request) -> Any:
        """Return what a request holds, refusing one that is too large, too slow or no JSON."""
        if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            raise HTTPException(415, "the request is not JSON")
        largest = self._limits.largest
        body = b""
        what = f"the request is larger than {largest:,} bytes. Shorten the note."
        refusal = HTTPException(413, what, {"connection": "close"})
        if int(request.headers.get("content-length", "0")) > largest:
            raise refusal
        try:
            async with asyncio.timeout(self._limits.patience):
                async for part in request.stream():
                    body += part
                    if len(body) > largest:
                        raise refusal
            sent = json.loads(body)
            json.dumps(sent, ensure_ascii=False).encode()  # half a character is not a text, wherever it is
            return sent
        except TimeoutError:
            what = "the request took too long to arrive. Check the connection and send it again."
            raise HTTPException(408, what, {"connection": "close"}) from None
        except (ValueError, RecursionError):
            raise InputError("the request is not JSON", allowed="one JSON object in UTF-8") from None

    async def _medium(self, request: Request) -> Response:
        await self._visitor(request, "media")
        path = await run_in_threadpool(content.media_file, self._display.media, request.path_params["path"])
        if path is None:
            raise HTTPException(404, _NO_FILE)
        kind = content.MEDIA_TYPES[path.suffix.lower()]
        headers = {"content-security-policy": MEDIA_POLICY, "cache-control": "private, max-age=3600"}
        return FileResponse(path, media_type=kind, headers=headers)

    async def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in PAGE_FILES:
            raise HTTPException(404, _NO_FILE)
        return Response(
            content.asset(name), media_type=PAGE_FILES[name], headers={"cache-control": "no-cache"}
        )


_NO_FILE = "There is no such file. Open the link that you were given."
_NOTHING = "There is nothing here. Use the link as it was given to you, or ask for a new one."
# Home of the owner's page.
OWNER_PAGE = "owner"

# Seconds that the owner's figures hold at least, and times as long as counting took: a fifth of one core.
STATUS_LIFETIME = 2.0
DEAR = 4.0


def public_status(folder: Path) -> JsonDict:
    """Return what `study status --json` prints of a study, without the folder's place on the disk.

    In a process of its own: it takes a minute in a large study, while this one shall answer annotators.
    """
    status: JsonDict = json.loads(_printed_by(folder, "study", "status", str(folder), "--json"))
    del status["folder"]
    return status


def report_page(folder: Path) -> str:
    """Return the report of a study's estimate as an HTML page, made in a process of its own."""
    with TemporaryDirectory() as temporary:
        target = Path(temporary) / "report.html"
        _printed_by(folder, "report", str(folder), "--output", str(target))
        return target.read_text(encoding="utf-8").replace(str(folder), folder.name)


def _printed_by(folder: Path, *words: str) -> str:
    """Run a command on a study at low priority, so that annotators come first, and return its output."""
    # -P: the current folder may hold a file `random.py`, which Python would run in place of its own module.
    command = [sys.executable, "-P", "-m", "stratal", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        with suppress(OSError, AttributeError):  # where the system knows priorities
            os.setpriority(os.PRIO_PROCESS, process.pid, 10)
        printed, errors = process.communicate()
    if process.returncode:
        raise StudyError(errors.strip().replace(str(folder), "the study"), kind="damaged")
    return printed


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


def application(study: Study, display: Display, addresses: list[str], limits: RateLimits = LIMITS) -> ASGIApp:
    """Return the page of a study as an ASGI application, known by `addresses`: any other host is refused."""

    def refused(request: Request, error: Exception) -> Response:
        """Return what is wrong as the page shows it, without the folder's place on the disk."""
        if isinstance(error, HTTPException):
            if error.detail in ("Not Found", "Method Not Allowed"):  # Starlette's own: no route
                error.detail = _NOTHING
            if "text/html" in request.headers.get("accept", ""):  # a person followed a link
                return script_page(request, "", "No such page", error)
            if error.status_code in FINAL:
                kind = "refused"
            else:
                kind = "away"
            return _refusal(kind, error.detail, error.status_code, error.headers)
        if not isinstance(error, StratalError):  # the server's own log has the rest
            return _refusal("failed", "Something went wrong on the server; nothing of this was saved.", 500)
        kind = content.error_kind(error)
        status = STATUS.get(kind, 507)
        retry = {"retry-after": "1"} if status == 503 else None
        return _refusal(kind, str(error).removeprefix(f"{study.folder}: "), status, retry)

    handlers = dict.fromkeys((StratalError, HTTPException, Exception), refused)
    app = Starlette(routes=Pages(study, display, limits).routes(), exception_handlers=handlers)
    app.router.redirect_slashes = False
    return Gate(app, addresses, display.https)


def script_page(
    request: Request, home: str, title: str, error: HTTPException | None = None, *, opening: str = ""
) -> Response:
    """Return a page of one of our scripts; without one it says what is wrong, to whoever followed a link.

    `opening` is HTML that is shown until the script has something to show.

    Its addresses are relative, so that a proxy may serve it below any path.
    """
    root = "../" * (request.url.path.count("/") - 1) or "./"
    icon = f'<link rel="icon" href="{root}static/icon.svg">'
    head = f'{icon}\n<link rel="stylesheet" href="{root}static/page.css">'
    if error is not None:
        inside = f"<h1>{title}</h1><p>{html.escape(error.detail)}</p>"
        return HTMLResponse(content.html_page(title, head, "text", inside), error.status_code, error.headers)
    script = f'<script type="module" src="{root}static/{home}.js"></script>'
    return HTMLResponse(content.html_page(title, f"{head}\n{script}", home, opening))


def _refusal(kind: str, message: str, status: int, headers: Any = None) -> Response:
    return JSONResponse({"error": {"kind": kind, "message": message}}, status, headers)


class Place(Struct, frozen=True, kw_only=True):
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
    """

    host: str = "127.0.0.1"
    port: int = 8000
    address: str | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.port < 65_536:
            raise InputError("no such port", given=self.port, allowed="0 to 65535")
        parts = urlsplit(self.address or "http://localhost")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            problem = "the address of the page cannot be read"
            allowed = "http://HOST:PORT or https://HOST/PATH"
            raise InputError(problem, given=repr(self.address), allowed=allowed)
        if self.host in EVERYWHERE and self.address is None:
            problem = f"{self.host} listens on every network of this computer, but is not an address to go to"
            action = "Say where annotators reach it (--address http://192.168.1.5:8000)."
            raise InputError(problem, action=action)

    def url(self, port: int) -> str:
        """Return the address that links start with."""
        if self.address:
            return self.address.rstrip("/")
        return _url(self.host, port)

    def host_names(self, port: int) -> list[str]:
        """Return every address that requests may be made to."""
        loopback_urls = [_url(name, port) for name in LOOPBACK]
        return [self.url(port), *(loopback_urls if self.host in (*LOOPBACK, *EVERYWHERE) else [])]

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
            listening = socket.create_server((self.host, self.port), family=family, backlog=256)
        except OSError as error:
            problem = f"cannot listen at {self.host}, port {self.port} ({error.strerror or error})"
            action = "Choose another port (--port 0 takes a free one) or another address (--port HOST:PORT)."
            raise InputError(problem, action=action) from None
        # asyncio would not see that such a socket speaks TCP, and each answer would wait 40 ms for a packet.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening


def _url(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def serve(
    study: Study,
    place: Place,
    *,
    fresh: bool = False,
    limits: RateLimits = LIMITS,
    ready: Callable[[str, dict[str, str], str], None] = lambda address, links, owner: None,
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
        Called with the address, annotator → link, and the owner's link, once the page can be opened.

    Raises
    ------
    InputError
        If the port is taken.
    StudyError
        Of kind `served` if another server has the study, `damaged` if a check finds a problem in it.

    """
    with place.listen() as listening:
        port = int(listening.getsockname()[1])
        address = place.url(port)
        with study.serving(address):
            with study.verified():  # nobody shall label what no estimate will take
                pass
            study.hide_from_others()
            if fresh:
                new_links(study)
            app = application(study, display_of(study, media_address), place.host_names(port), limits)
            links = {name: f"{address}/a/{token}/" for name, token in tokens(study).items()}
            ready(address, links, owner_link(study, address))
            PageServer(configuration(app, limits)).run(sockets=[listening])


class PageServer(uvicorn.Server):
    """Uvicorn's server, which writes one line of the log where many connections fail for one reason."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen."""
        asyncio.get_running_loop().set_exception_handler(ShortageLog())
        await super().startup(sockets)


class ShortageLog:
    """Logs that the system is out of files or memory now and then, and everything else as it comes.

    asyncio reports every connection that it could not accept: half a million lines in a minute.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._next = clock, -math.inf

    def __call__(self, loop: asyncio.AbstractEventLoop, context: JsonDict) -> None:
        """Log what an event loop says went wrong."""
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in SHORTAGES:
            if self._clock() < self._next:
                return
            self._next = self._clock() + QUIET
            logging.getLogger("uvicorn.error").error("connections wait: %s", error.strerror)
            return
        loop.default_exception_handler(context)


SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def possible_connections(requested: int) -> int:
    """Return how many connections may be open so that the study's own files can always be opened."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return requested
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = requested + RESERVED_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard == resource.RLIM_INFINITY:
            ceiling = needed
        else:
            ceiling = min(needed, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (ceiling, hard))
            soft = ceiling
        return max(FEWEST_CONNECTIONS, min(requested, soft - RESERVED_FILES))
    return requested


# Connections that are open however few files the system allows.
FEWEST_CONNECTIONS = 16


def configuration(app: Any, limits: RateLimits) -> uvicorn.Config:
    """Return uvicorn's settings: no log of addresses, which hold tokens; limited headers and connections."""
    connections = possible_connections(limits.connections)
    return uvicorn.Config(
        app,
        http=patient_protocol(limits, connections),
        backlog=BACKLOG,
        ws="none",
        lifespan="off",
        log_level="error",  # a warning for each bad request would let strangers fill the disk
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=connections,
        h11_max_incomplete_event_size=LARGEST_HEAD,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )


def patient_protocol(limits: RateLimits, connections: int) -> type[H11Protocol]:
    """Return a uvicorn protocol that closes slow requests, and strangers if room is needed."""
    # Connections that have shown no valid link yet, the oldest first.
    strangers: dict[H11Protocol, None] = {}

    class Patient(H11Protocol):
        _waiting: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.app_state = {**self.app_state, RECOGNISE: self._recognise}
            strangers[self] = None
            self._make_room()
            self._watch()

        def _recognise(self) -> None:
            """Note that the connection has shown a valid link."""
            strangers.pop(self, None)

        def _make_room(self) -> None:
            """Close the oldest strangers, so that whoever has a link is answered."""
            while len(self.connections) >= connections and strangers:
                oldest = next(iter(strangers))
                if oldest is self:
                    return
                del strangers[oldest]
                self.connections.discard(oldest)
                oldest.transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            strangers.pop(self, None)
            if self._waiting is not None:
                self._waiting.cancel()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def _watch(self) -> None:
            """Give a head its time, from the connection or its first bytes on, until it is whole."""
            answering = self.cycle is not None and not self.cycle.response_complete
            if answering and self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None
            elif not answering and self._waiting is None:
                self._waiting = self.loop.call_later(limits.patience, self.transport.abort)

    return Patient
