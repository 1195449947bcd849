"""Who may ask, and how often: tokens, where the server may listen, headers for browsers, requests per second."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from askwise.errors import InvalidInput

SHORTEST_TOKEN = 16
LOCAL = "local"
"""The name of everybody on a server without tokens."""

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


class Tokens:
    """Names and the tokens that stand for them.

    >>> tokens = Tokens({"ward 3": "a-long-enough-token"})
    >>> tokens.name_of("a-long-enough-token")
    'ward 3'
    >>> tokens.name_of("a-long-enough-guess") is None
    True
    """

    def __init__(self, tokens: dict[str, str]) -> None:
        self._digests = {name: _digest(token) for name, token in tokens.items()}

    def __bool__(self) -> bool:
        return bool(self._digests)

    def name_of(self, token: str) -> str | None:
        """Whose token it is. All are compared, in constant time, so that nothing is learned from how long it takes."""
        given = _digest(token)
        found = None
        for name, digest in self._digests.items():
            if hmac.compare_digest(given, digest):
                found = name
        return found


def read_tokens(path: str | Path | None) -> Tokens:
    """The tokens of a file with lines ``name:token``; empty lines and lines that begin with # are skipped."""
    if path is None:
        return Tokens({})
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise InvalidInput(f"--token-file {str(path)!r} cannot be read: {reason}.") from None
    tokens: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            name, token = _parsed(line, f"Line {number} of {path}")
            if name in tokens or token in tokens.values():
                raise InvalidInput(f"Line {number} of {path} repeats a name or a token; each must be unique.")
            tokens[name] = token
    if not tokens:
        raise InvalidInput(f"--token-file {str(path)!r} holds no token. Add a line name:token.")
    return Tokens(tokens)


def check_bind(host: str, tokens: Tokens) -> None:
    """Refuse to listen to other machines without tokens."""
    if not tokens and not is_loopback(host):
        raise InvalidInput(
            f"--host {host} can be reached from other machines, so it needs --token-file FILE with lines name:token. "
            "Without one, askwise serve listens on 127.0.0.1 only."
        )


def is_loopback(host: str) -> bool:
    """Whether a host is this machine only; names other than localhost are not looked up and count as public."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _parsed(line: str, where: str) -> tuple[str, str]:
    name, _, token = (part.strip() for part in line.partition(":"))
    if not name or not name.isprintable():
        raise InvalidInput(f"{where} must be name:token, with a name that says who it is.")
    if len(token) < SHORTEST_TOKEN or not re.fullmatch("[!-~]+", token):
        raise InvalidInput(
            f"{where}: a token must have at least {SHORTEST_TOKEN} visible ASCII characters, no spaces. Make one with: "
            'python -c "import secrets; print(secrets.token_urlsafe(32))"'
        )
    return name, token


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


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
