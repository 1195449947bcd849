"""The outermost layer: limits connections and requests, asks who it is, adds headers, logs, and hides failures."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import time
from typing import Any

import h11
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from askwise.errors import InvalidInput
from askwise.web.failures import JsonResponse, Refused, failure
from askwise.web.logs import log
from askwise.web.service import Service
from askwise.web.settings import Settings

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
"""What tells browsers to load and show nothing else."""
_PORT = re.compile(r":\d*$")
OPEN = "/api/openapi.json"
"""What of /api is answered to everybody."""
STALLED_SECONDS = 60.0
"""How long a client may read nothing of its response."""
FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
"""What a connection too many is answered."""


def check_bind(host: str, authenticated: bool) -> None:
    """Refuse to listen to other machines where nobody is asked who they are."""
    if not authenticated and not is_loopback(host):
        raise InvalidInput(
            f"--host {host} can be reached from other machines, so it needs --token-file FILE with lines name:token, "
            "or --trusted-header and --trusted-proxy. Without one, askwise serve listens on 127.0.0.1 only."
        )


def is_loopback(host: str) -> bool:
    """Whether a host is this machine only; names other than localhost are not looked up and count as public."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class Guard:
    """ASGI middleware around the application.

    Parameters
    ----------
    app
        The application.
    service
        Who may ask, how large and how slow a request may be, and where it is counted. A server that asks nobody who
        they are answers names of this machine only: a page of another site whose name was made to point here (DNS
        rebinding) is refused.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service
        self._largest_body, self._seconds = service.settings.largest_body, service.settings.request_seconds

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
            await app(scope, _Body(receive, self._largest_body, self._seconds), send_on)
        except Exception as error:
            log("error", logging.ERROR, error, route=_route(scope))
            if not status:
                await failure(500, "The server has failed; its log says where.")(scope, receive, send_on)
        finally:
            self._count(scope, status, time.perf_counter() - start)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        method, route, by = _method(scope), _route(scope), scope.get("state", {}).get("by")
        name = None if by is None else by.name
        self._service.metrics.answered(method, route, status, seconds)
        log("request", method=method, route=route, status=status, by=name, seconds=round(seconds, 4))

    def _refusal(self, scope: Scope) -> JsonResponse | None:
        headers = Headers(scope=scope)
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._largest_body:
            return failure(413, f"A request may have {self._largest_body} bytes.")
        if not self._service.callers and not is_loopback(_PORT.sub("", headers.get("host", ""))):
            return failure(
                421, "The server asks nobody who they are, so it answers as localhost or 127.0.0.1 only.", "Host"
            )
        path = scope["path"]
        if path != OPEN and (path.startswith("/api/") or path == "/metrics"):
            return self._authenticated(scope)
        return None

    def _authenticated(self, scope: Scope) -> JsonResponse | None:
        """Leave who asks to the endpoints before the body is read: nobody waits for a stranger's."""
        address = scope["client"][0] if scope["client"] else ""
        try:
            found = self._service.callers.caller(scope["method"], scope["headers"], address)
            scope.setdefault("state", {})["by"] = found
        except Refused as refused:
            return refused.response()
        return None


class _Body:
    """The body of a request, limited in size, and in time as a whole however it is cut."""

    def __init__(self, receive: Receive, most: int, seconds: float) -> None:
        self._receive, self._left, self._more = receive, most, True
        self._deadline = asyncio.get_running_loop().time() + seconds

    async def __call__(self) -> Message:
        if not self._more:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, "The request took too long to arrive.", {"Connection": "close"}) from None
        self._left -= len(message.get("body", b""))
        self._more = message.get("more_body", False)
        if self._left < 0:
            raise HTTPException(413, "The request is too large.")
        return message


def _add_headers(message: Message, path: str) -> None:
    cached = "no-store" if path.startswith("/api") else "no-cache"
    ours = {name.lower().encode(): value.encode() for name, value in {**HEADERS, "Cache-Control": cached}.items()}
    message["headers"] = [*((name, value) for name, value in message["headers"] if name not in ours), *ours.items()]


def _route(scope: Scope) -> str:
    """The path as it is declared: without identifiers, and one of few."""
    route: Any = scope.get("route")
    return getattr(route, "path", "page") or "page"


def _method(scope: Scope) -> str:
    known = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    return scope["method"] if scope["method"] in known else "other"


class PromptProtocol(H11Protocol):
    """The protocol of uvicorn with limits of time and number, so that slow connections keep nobody else out.

    A request must have arrived `seconds` after its first byte (the first one, after the connection was made), and a
    client must go on reading its response. Of the connections of one address, and of all together, those that have not
    sent a whole request yet make room for new ones when there are too many: the oldest is closed.

    Attributes
    ----------
    seconds
        The time for a request to arrive.
    per_address, most
        The most connections of one address (0 = no limit) and of all, in this process.
    """

    seconds = 10.0
    per_address = 100
    most = 500
    _deadline: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    @classmethod
    def configure(cls, settings: Settings) -> None:
        """Take the limits of `settings`, for all connections of this process."""
        cls.seconds, cls.per_address = settings.request_seconds, settings.per_address

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request, if there is room."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._wait()
        self._make_room()

    def data_received(self, data: bytes) -> None:
        """Wait on, from the first byte, while a request is incomplete."""
        super().data_received(data)
        if not self._incomplete:
            self._stop_waiting()
        elif self._deadline is None:
            self._wait()

    def pause_writing(self) -> None:
        """Give up a client that does not read its response."""
        super().pause_writing()
        self._stalled = self.loop.call_later(STALLED_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()

    def on_response_complete(self) -> None:
        """Close the connection if the request was answered before all of it had arrived: the rest is of no use."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            self._stop_waiting()
            self._wait(min(1.0, self.seconds))  # for the client to read why

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadlines."""
        self._stop_waiting()
        super().connection_lost(exc)
        if self._stalled is not None:
            self._stalled.cancel()

    @property
    def _incomplete(self) -> bool:
        """Whether no request, or only a part of one, has arrived."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def _make_room(self) -> None:
        everybody = [other for other in self.connections if isinstance(other, PromptProtocol)]
        mine = [other for other in everybody if other.client and self.client and other.client[0] == self.client[0]]
        if self.per_address and len(mine) > self.per_address:
            crowd = mine
        elif len(everybody) > self.most:
            crowd = everybody
        else:
            return
        waiting = [other for other in crowd if other is not self and other._incomplete]
        oldest = min(waiting, key=lambda other: other._since, default=self)  # all are being answered: no room
        self.connections.discard(oldest)
        if oldest is self:
            self.transport.write(FULL)
            self.transport.close()
        else:
            oldest.transport.abort()

    def _wait(self, seconds: float | None = None) -> None:
        self._deadline = self.loop.call_later(self.seconds if seconds is None else seconds, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
