"""The page's addresses: `/a/TOKEN/` and what lies below it, and the page's own files.

All that an annotator may do hangs on the token in the path. There are no cookies, so that another page in the
same browser has nothing to borrow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from stratal.errors import InputError, StratalError
from stratal.study.faults import LOCKED, MISSING, REFUSED, SERVED, StudyError
from stratal.study.study import Study
from stratal.study.web import actions
from stratal.study.web.assets import SERVED as FILES
from stratal.study.web.assets import asset
from stratal.study.web.content import MEDIA_TYPES, Look, media_file
from stratal.study.web.gate import Gate
from stratal.study.web.limits import RateLimits, Rates, RefusedError, read_body
from stratal.study.web.schema import schema
from stratal.study.web.tokens import Doorman

STATUS = {LOCKED: 503, MISSING: 404, REFUSED: 409, SERVED: 409}
"""Kind of a `StudyError` → HTTP status; any other is 507: the study's disk did not do what it should."""

DISK_TROUBLE = 507
MEDIA_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

Answering = Callable[[str, Request], Any]


class Pages:
    """Answers the requests of a study's page.

    Parameters
    ----------
    study : Study
    look : Look
    limits : RateLimits

    Examples
    --------
    >>> Pages.__name__
    'Pages'
    """

    def __init__(self, study: Study, look: Look, limits: RateLimits) -> None:
        self._study, self._look, self._limits = study, look, limits
        self._doorman = Doorman(study)
        self._rates = Rates(rate=limits.rate, burst=limits.burst)

    def routes(self) -> list[Route]:
        """Return the addresses and who answers there."""
        asked = {
            "state": lambda who, _: actions.state(self._study, who, self._look),
            "item": self._item,
            "trail": self._trail,
            "schema": lambda who, _: schema(self._study.question),
            "disagreements": lambda who, _: actions.open_disagreements(self._study, who, self._look),
        }
        return [
            Route("/static/{name}", self._file, methods=["GET"]),
            Route("/a/{token}", self._whole, methods=["GET"]),
            Route("/a/{token}/", self._page, methods=["GET"]),
            Route("/a/{token}/media/{path:path}", self._medium, methods=["GET"]),
            Route("/a/{token}/api/act", self._act, methods=["POST"]),
            *(Route(f"/a/{{token}}/api/{k}", self._asked(v), methods=["GET"]) for k, v in asked.items()),
        ]

    async def _annotator(self, request: Request) -> str:
        """Return whose token a request has; strangers share the bucket of their address."""
        token = request.path_params["token"]
        who = await run_in_threadpool(self._doorman.annotator, token)
        client = f"token {who}" if who else f"address {request.client.host if request.client else ''}"
        if not self._rates.allow(client):
            raise RefusedError("too many requests", status=429, action="Wait a moment.")
        if who is None:
            raise RefusedError(
                "There is no such page", status=404, action="Use the link as it was given to you."
            )
        return who

    def _asked(self, answer: Answering) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            who = await self._annotator(request)
            return JSONResponse(await run_in_threadpool(answer, who, request))

        return endpoint

    async def _act(self, request: Request) -> Response:
        who = await self._annotator(request)
        if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            raise RefusedError("the request is not JSON", status=415)
        body = actions.read_action(await read_body(request, self._limits))
        return JSONResponse(await run_in_threadpool(actions.perform, self._study, who, self._look, body))

    def _item(self, who: str, request: Request) -> Any:
        return actions.given_item(self._study, who, self._look, request.query_params.get("id", ""))

    def _trail(self, who: str, request: Request) -> Any:
        before = request.query_params.get("before")
        if before is not None and not (before.isascii() and before.isdigit() and len(before) < 18):
            raise InputError("'before' must be a line of the journal", given=repr(before[:60]))
        return actions.trail(self._study, who, None if before is None else int(before))

    async def _page(self, request: Request) -> Response:
        await self._annotator(request)
        return Response(asset("page.html"), media_type="text/html")

    async def _whole(self, request: Request) -> Response:
        await self._annotator(request)
        return RedirectResponse(f"{quote(request.path_params['token'], safe='')}/", 308)

    async def _medium(self, request: Request) -> Response:
        await self._annotator(request)
        path = await run_in_threadpool(media_file, self._look.media, request.path_params["path"])
        if path is None:
            raise RefusedError(
                "There is no such file", status=404, action="Open the link that you were given."
            )
        kind = MEDIA_TYPES[path.suffix.lower()]
        headers = {"content-security-policy": MEDIA_POLICY, "cache-control": "private, max-age=3600"}
        return FileResponse(path, media_type=kind, headers=headers)

    async def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in FILES:
            raise RefusedError(
                "There is no such file", status=404, action="Open the link that you were given."
            )
        return Response(asset(name), media_type=FILES[name], headers={"cache-control": "no-cache"})


def application(study: Study, look: Look, addresses: list[str], limits: RateLimits | None = None) -> ASGIApp:
    """Return the page of a study as an ASGI application.

    Parameters
    ----------
    study : Study
    look : Look
    addresses : list of str
        By which the page is known; requests to any other host are refused.
    limits : RateLimits, optional

    Examples
    --------
    >>> application.__name__
    'application'
    """
    kept = limits or RateLimits()
    app = Starlette(
        routes=list(Pages(study, look, kept).routes()),
        exception_handlers={StratalError: _said, 404: _nothing, 405: _nothing, Exception: _failed},
    )
    app.router.redirect_slashes = False
    app.state.folder = str(study.folder)
    return Gate(app, addresses)


def _said(request: Request, error: Exception) -> Response:
    """Return what is wrong as the page shows it, without the folder's place on the disk."""
    if isinstance(error, RefusedError):
        return _told("refused", str(error), error.status, closing=error.status in (408, 413))
    if isinstance(error, StudyError):
        message = str(error).removeprefix(f"{request.app.state.folder}: ")
        return _told(error.kind, message, STATUS.get(error.kind, DISK_TROUBLE))
    return _told("input", str(error), 400)


def _told(kind: str, message: str, status: int, *, closing: bool = False) -> Response:
    headers = {"connection": "close"} if closing else {}
    if status in (429, 503):
        headers["retry-after"] = "1"
    return JSONResponse({"error": {"kind": kind, "message": message}}, status, headers)


def _nothing(_: Request, error: Exception) -> Response:
    headers = getattr(error, "headers", None)
    return PlainTextResponse(
        "There is nothing here. Use the link as it was given to you.\n",
        getattr(error, "status_code", 404),
        headers,
    )


def _failed(_: Request, error: Exception) -> Response:
    """Return an answer that tells nothing of the inside; the server's own log has the rest."""
    del error
    return _told("failed", "Something went wrong on the server; nothing of this was saved.", 500)
