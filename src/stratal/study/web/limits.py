"""What one client may ask of the page: how often, how much, how slowly."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stratal.arrays import Record
from stratal.errors import StratalError

if TYPE_CHECKING:
    from starlette.requests import Request

MOST_CLIENTS = 10_000
"""Clients whose rates are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RateLimits(Record):
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
        Connections at a time.
    connections_each : int
        Connections at a time from one address.

    Examples
    --------
    >>> RateLimits().largest
    131072
    """

    rate: float = 50.0
    burst: int = 200
    largest: int = 131_072
    patience: float = 10.0
    connections: int = 500
    connections_each: int = 200


class RefusedError(StratalError):
    """A request that is not answered, with the HTTP status that says why.

    Examples
    --------
    >>> RefusedError("too many requests", status=429).status
    429
    """

    def __init__(self, what: str, *, status: int, action: str | None = None) -> None:
        self.status = status
        super().__init__(what, action=action)


class Rates:
    """A bucket of requests for each client, which fills again at a constant rate.

    Examples
    --------
    >>> rates = Rates(rate=1.0, burst=2, clock=lambda: 0.0)
    >>> [rates.allow("ann") for _ in range(3)]
    [True, True, False]
    """

    def __init__(self, *, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, float(burst), clock
        self._left: dict[str, tuple[float, float]] = {}

    def allow(self, client: str) -> bool:
        """Take one request out of a client's bucket; return whether there was one."""
        now = self._clock()
        left, then = self._left.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        if len(self._left) >= MOST_CLIENTS:
            del self._left[next(iter(self._left))]
        self._left[client] = (left - 1.0 if left >= 1.0 else left, now)
        return left >= 1.0


async def read_body(request: Request, limits: RateLimits) -> bytes:
    """Return a request's body, refusing one that is too large or too slow.

    Examples
    --------
    >>> read_body.__name__
    'read_body'
    """
    refusal = RefusedError(
        f"the request is larger than {limits.largest:,} bytes", status=413, action="Shorten the note."
    )
    if int(request.headers.get("content-length", "0")) > limits.largest:
        raise refusal
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.patience):
            async for part in request.stream():
                size += len(part)
                if size > limits.largest:
                    raise refusal
                parts.append(part)
    except TimeoutError:
        raise RefusedError(
            "the request took too long to arrive",
            status=408,
            action="Check the connection and send it again.",
        ) from None
    return b"".join(parts)
