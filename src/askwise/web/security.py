"""Where the server may listen, headers for browsers, and how often a client may ask."""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable

from askwise.errors import InvalidInput

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


MOST_CLIENTS = 10_000
BURST_SECONDS = 5.0
"""A client that was quiet may ask as much at once as in so many seconds."""


class RateLimit:
    """A token bucket per client, in one process.

    Parameters
    ----------
    rate
        Requests per second and client; 0 = no limit.
    clock
        Seconds that only go forward.

    Examples
    --------
    >>> limit = RateLimit(1, clock=lambda: 0.0)
    >>> [limit.wait("ward 3") for _ in range(6)]
    [0, 0, 0, 0, 0, 1]
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._most = max(1.0, BURST_SECONDS * rate)
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # client: requests left, and when

    def wait(self, client: str) -> int:
        """Count a request; seconds to wait if it is one too many, 0 if not."""
        if self._rate <= 0:
            return 0
        now = self._clock()
        left, then = self._left.pop(client, (self._most, now))
        left = min(self._most, left + (now - then) * self._rate)
        allowed = left >= 1
        self._left[client] = (left - 1 if allowed else left, now)
        while len(self._left) > MOST_CLIENTS:
            self._left.popitem(last=False)
        return 0 if allowed else math.ceil((1 - left) / self._rate)
