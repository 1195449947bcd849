"""The outermost layer: limits the size and time of requests, adds headers, logs, counts, and hides failures."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from typing import Any

import h11
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from askwise.web.failures import JsonResponse, failure
from askwise.web.logs import log
from askwise.web.metrics import Metrics
from askwise.web.security import HEADERS, is_loopback

_PORT = re.compile(r":\d*$")
BODY_SECONDS = 10.0
"""How long a client may take to send its request."""


class Guard:
    """ASGI middleware around the application.

    Parameters
    ----------
    app
        The application.
    metrics
        Where requests are counted.
    largest_body
        The most bytes that a request may have.
    local_only
        Whether only names of this machine are answered: a page of another site whose name was made to point here
        (DNS rebinding) is refused.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, largest_body: int, local_only: bool) -> None:
        self._app, self._metrics = app, metrics
        self._largest_body, self._local_only = largest_body, local_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _add_headers(message, scope["path"])
            await send(message)

        try:
            refusal = self._refusal(scope)
            app = self._app if refusal is None else refusal
            await app(scope, _Body(receive, self._largest_body), send_on)
        except Exception as error:
            log("error", logging.ERROR, error, route=_route(scope))
            if not status:
                await failure(500, "The server has failed; its log says where.")(scope, receive, send_on)
        finally:
            self._count(scope, status, time.perf_counter() - start)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        method, route, by = _method(scope), _route(scope), scope.get("state", {}).get("by")
        self._metrics.answered(method, route, status, seconds)
        log("request", method=method, route=route, status=status, by=by, seconds=round(seconds, 4))

    def _refusal(self, scope: Scope) -> JsonResponse | None:
        headers = Headers(scope=scope)
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._largest_body:
            return failure(413, f"A request may have {self._largest_body} bytes.")
        if self._local_only and not is_loopback(_PORT.sub("", headers.get("host", ""))):
            return failure(421, "Without tokens, the server answers as localhost or 127.0.0.1 only.", "Host")
        return None


class _Body:
    """The body of a request, limited in size and time."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive, self._left, self._more = receive, most, True

    async def __call__(self) -> Message:
        if not self._more:
            return await self._receive()
        try:
            message = await asyncio.wait_for(self._receive(), BODY_SECONDS)
        except TimeoutError:
            raise HTTPException(408, "The request took too long to arrive.") from None
        self._left -= len(message.get("body", b""))
        self._more = message.get("more_body", False)
        if self._left < 0:
            raise HTTPException(413, "The request is too large.")
        return message


def _add_headers(message: Message, path: str) -> None:
    headers = MutableHeaders(scope=message)
    for name, value in HEADERS.items():
        headers[name] = value
    headers["Cache-Control"] = "no-store" if path.startswith("/api") else "no-cache"


def _route(scope: Scope) -> str:
    """The path as it is declared: without identifiers, and one of few."""
    route: Any = scope.get("route")
    return getattr(route, "path", "page") or "page"


def _method(scope: Scope) -> str:
    known = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    return scope["method"] if scope["method"] in known else "other"


class PromptProtocol(H11Protocol):
    """The protocol of uvicorn, which closes a connection whose request line and headers take too long.

    Without it, as many silent connections as uvicorn allows would keep everybody else out.
    """

    seconds = BODY_SECONDS
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(self.seconds, transport.close)

    def data_received(self, data: bytes) -> None:
        """Wait on, from the first byte, while the head of a request is incomplete."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.seconds, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
