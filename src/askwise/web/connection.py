"""Connections must send the head of a request in time; what follows it is limited by `guard`."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from askwise.web.guard import BODY_SECONDS


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
