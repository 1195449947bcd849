"""Who is asking, what they may do, and how often: by a token, or by the name that a reverse proxy has found out."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
import re
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from askwise.errors import InvalidInput, did_you_mean
from askwise.web.failures import Refused
from askwise.web.settings import Settings

SHORTEST_TOKEN = 16
LONGEST_NAME = 200
ROLES = ("reader", "clerk", "admin")
"""Each may do what those before it may: see cases; start and change them; delete them, export all, see counts."""
EVERYBODY = "*"
OWN_HEADERS = ("authorization", "connection", "content-length", "content-type", "cookie", "host", "transfer-encoding")
"""Headers that mean something else, and that clients send."""
MOST_CLIENTS = 10_000
BURST_SECONDS = 5.0
"""A client that was quiet may ask as much at once as in so many seconds."""
_BEARER = re.compile(r"bearer +(\S+) *", re.IGNORECASE)
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]+")

RawHeaders = Sequence[tuple[bytes, bytes]]
"""Headers as they came: names in lower case, a name as often as it was sent."""


class Caller(NamedTuple):
    """Who asks, by the name that the audit trail shows, and the role.

    >>> Caller("ann", "clerk").may("reader"), Caller("ann", "clerk").may("admin")
    (True, False)
    """

    name: str
    role: str

    def may(self, role: str) -> bool:
        """Whether this caller may do what takes that role."""
        return ROLES.index(self.role) >= ROLES.index(role)


LOCAL = Caller("local", "admin")
"""Everybody, on a server that asks nobody who they are."""


class Tokens:
    """Names, and the tokens that stand for them.

    >>> tokens = Tokens({"ward 3": ("a-long-enough-token", "clerk")})
    >>> tokens.caller("a-long-enough-token")
    Caller(name='ward 3', role='clerk')
    >>> tokens.caller("a-long-enough-guess") is None
    True
    """

    def __init__(self, tokens: Mapping[str, tuple[str, str]]) -> None:
        self._digests = {Caller(name, role): _digest(token) for name, (token, role) in tokens.items()}
        self.names = frozenset(tokens)

    def __bool__(self) -> bool:
        return bool(self._digests)

    def caller(self, token: str) -> Caller | None:
        """Whose token it is. All are compared, in constant time, so that nothing is learned from how long it takes."""
        given = _digest(token)
        found = None
        for caller, digest in self._digests.items():
            if hmac.compare_digest(given, digest):
                found = caller
        return found


def read_tokens(path: str | Path | None) -> Tokens:
    """The tokens of a file with lines ``name:token`` or ``name:token role``; empty lines and comments are skipped."""
    if path is None:
        return Tokens({})
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise InvalidInput(f"--token-file {str(path)!r} cannot be read: {reason}.") from None
    tokens: dict[str, tuple[str, str]] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            name, token, role = _parsed(line, f"Line {number} of {path}")
            if name in tokens or token in (other for other, _ in tokens.values()):
                raise InvalidInput(f"Line {number} of {path} repeats a name or a token; each must be unique.")
            tokens[name] = token, role
    if not tokens:
        raise InvalidInput(f"--token-file {str(path)!r} holds no token. Add a line name:token.")
    return Tokens(tokens)


def _parsed(line: str, where: str) -> tuple[str, str, str]:
    name, _, rest = (part.strip() for part in line.partition(":"))
    if not name or not name.isprintable():
        raise InvalidInput(f"{where} must be name:token, with a name that says who it is.")
    token, *roles = rest.split(" ") if rest else [""]
    role = "".join(roles[-1:]) or "admin"
    if len(token) < SHORTEST_TOKEN or not re.fullmatch("[!-~]+", token) or any(roles[:-1]) or role not in ROLES:
        raise InvalidInput(
            f"{where}: a token must have at least {SHORTEST_TOKEN} visible ASCII characters, no spaces, and may be "
            f"followed by a space and one of the roles {', '.join(ROLES)}. Make one with: "
            'python -c "import secrets; print(secrets.token_urlsafe(32))"'
        )
    return name, token, role


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


@dataclass(frozen=True)
class TrustedProxy:
    """A reverse proxy that finds out who asks, and says so in a header.

    Attributes
    ----------
    header, groups_header
        The headers, in lower case, with the name of the person and, separated by commas, the groups; None = no groups.
    networks
        Where the proxy connects from. The headers are refused from everywhere else.
    roles
        Group -> role; ``"*"`` is everybody.

    Examples
    --------
    >>> proxy = trusted_proxy(Settings("selector", trusted_header="X-Forwarded-User", trusted_proxy=("10.0.0.7",)))
    >>> proxy.caller([(b"x-forwarded-user", b"ann")], "10.0.0.7")
    Caller(name='ann', role='clerk')
    """

    header: str
    groups_header: str | None
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]
    roles: Mapping[str, str]

    def caller(self, headers: RawHeaders, peer: str) -> Caller | None:
        """Who asks, if the proxy says so; refused where the headers are not its own, or are not plain.

        `peer` is the address of the connection itself: what ``X-Forwarded-For`` says about it is not read.
        """
        user = _only(headers, self.header)
        groups = None if self.groups_header is None else _only(headers, self.groups_header)
        if user is None and groups is None:
            return None
        if not self.connects_from(peer):
            raise Refused(403, f"{self.header} is taken from the trusted proxy only, not from {peer}.", self.header)
        if user is None:
            raise Refused(401, f"The proxy names no one: {self.header} is missing.", self.header)
        name = _plain_name(user, self.header)
        belongs = {group.strip() for group in _text(groups or b"", str(self.groups_header)).split(",")} - {""}
        held = [role for group, role in self.roles.items() if group == EVERYBODY or group in belongs]
        if not held:
            raise Refused(403, f"{name} is in none of the groups that have a role here.", self.groups_header)
        return Caller(name, max(held, key=ROLES.index))

    def connects_from(self, peer: str) -> bool:
        """Whether an address is one of the proxy's."""
        try:
            address = ipaddress.ip_address(peer.partition("%")[0])
        except ValueError:
            return False
        address = getattr(address, "ipv4_mapped", None) or address  # as sockets for both versions show the older one
        return any(address in network for network in self.networks if network.version == address.version)


def trusted_proxy(settings: Settings) -> TrustedProxy | None:
    """The proxy that the options describe; None without one. Options that would let anybody be anybody are refused."""
    header, groups_header = (_header_name(name) for name in (settings.trusted_header, settings.roles_header))
    if header is None:
        others = {
            "--trusted-proxy": settings.trusted_proxy,
            "--roles-header": groups_header,
            "--role": settings.roles,
        }
        for option in (name for name, given in others.items() if given):
            raise InvalidInput(f"{option} needs --trusted-header, the header in which the proxy says who asks.")
        return None
    if not settings.trusted_proxy:
        raise InvalidInput(
            f"--trusted-header {settings.trusted_header} can be sent by anybody, so it needs --trusted-proxy ADDRESS, "
            "where the proxy connects from, such as 127.0.0.1/32."
        )
    if header == groups_header:
        raise InvalidInput("--roles-header must be another header than --trusted-header.")
    roles = _roles(settings.roles)
    if groups_header is None and set(roles) != {EVERYBODY}:
        raise InvalidInput("--role with a group needs --roles-header, the header in which the proxy names the groups.")
    return TrustedProxy(header, groups_header, tuple(map(_network, settings.trusted_proxy)), roles)


def _header_name(given: str | None) -> str | None:
    if given is None:
        return None
    if not _HEADER_NAME.fullmatch(given) or given.lower() in OWN_HEADERS:
        raise InvalidInput(f"A trusted header must have a name such as X-Forwarded-User; got {given!r}.")
    return given.lower()


def _network(given: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        found = ipaddress.ip_network(given)
    except ValueError as error:
        raise InvalidInput(f"--trusted-proxy must be an address or a network, such as 10.0.0.7/32: {error}.") from None
    if found.prefixlen == 0:
        raise InvalidInput(f"--trusted-proxy {given} would trust everybody; name the address of the proxy.")
    return found


def _roles(given: Sequence[str]) -> dict[str, str]:
    """Group -> role; without any, all whom the proxy lets through are clerks."""
    if not given:
        return {EVERYBODY: "clerk"}
    found: dict[str, str] = {}
    for text in given:
        role, equals, group = (part.strip() for part in text.partition("="))
        if role not in ROLES:
            raise InvalidInput(
                f"--role must be ROLE=GROUP, with a role out of {', '.join(ROLES)}; got {text!r}."
                f"{did_you_mean(role, ROLES)}"
            )
        if not equals or not group or "," in group:
            raise InvalidInput(
                f"--role must be ROLE=GROUP, with a group without commas, or * for everybody; got {text!r}."
            )
        if found.setdefault(group, role) != role:
            raise InvalidInput(f"--role gives {group!r} two roles; give one.")
    return found


def _only(headers: RawHeaders, name: str) -> bytes | None:
    """The value of a header that may be there once: of two, one may be the client's own."""
    found = [value for given, value in headers if given.decode("latin-1").lower() == name]
    if len(found) > 1:
        raise Refused(400, f"{name} was sent more than once.", name)
    return found[0] if found else None


def _text(value: bytes, header: str) -> str:
    try:
        return value.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise Refused(400, f"{header} must be text in UTF-8.", header) from None


def _plain_name(value: bytes, header: str) -> str:
    """A name that reads as it is, and is one: a comma is what proxies put between two headers that they join."""
    name = _text(value, header)
    odd = any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn") for character in name)
    if not name or len(name) > LONGEST_NAME or odd or "," in name or unicodedata.normalize("NFC", name) != name:
        raise Refused(
            400,
            f"{header} must be one name: at most {LONGEST_NAME} visible characters, composed (NFC), without a comma.",
            header,
        )
    return name


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


class Callers:
    """All who may ask: the holders of tokens, and those whom the proxy names.

    Parameters
    ----------
    tokens
        Those of the token file.
    proxy
        The reverse proxy, if there is one.
    rate
        Requests per second and client; 0 = no limit.

    Examples
    --------
    >>> Callers(read_tokens(None), None).caller("GET", [], "127.0.0.1").name
    'local'
    """

    def __init__(self, tokens: Tokens, proxy: TrustedProxy | None, rate: float = 0.0) -> None:
        self.tokens, self.proxy = tokens, proxy
        self._limit = RateLimit(rate)

    def __bool__(self) -> bool:
        """Whether anybody is asked who they are."""
        return bool(self.tokens) or self.proxy is not None

    def caller(self, method: str, headers: RawHeaders, peer: str) -> Caller:
        """Who asks; refused if it is nobody who may, or if there are too many requests."""
        try:
            found = self._named(method, headers, peer) if self else LOCAL
        except Refused:
            self._count(f"address {peer}")
            raise
        self._count(f"address {peer}" if found is None else f"name {found.name}")
        if found is None:
            message = "A valid token is needed: Authorization: Bearer <token>."
            if not self.tokens:
                message = "The proxy in front of this server must say who asks; come through it."
            raise Refused(401, message, "Authorization", headers={"WWW-Authenticate": "Bearer"})
        return found

    def _count(self, client: str) -> None:
        wait = self._limit.wait(client)
        if wait:
            raise Refused(429, f"Too many requests. Wait {wait} s.", headers={"Retry-After": str(wait)})

    def _named(self, method: str, headers: RawHeaders, peer: str) -> Caller | None:
        """Who says so by a token or by the proxy; None = nobody who may. Two names in one request are refused."""
        named = None if self.proxy is None else self.proxy.caller(headers, peer)
        given = [_BEARER.fullmatch(value.decode("latin-1")) for name, value in headers if name == b"authorization"]
        token = given[0] if len(given) == 1 else None
        if named is None:
            return None if token is None else self.tokens.caller(token[1])
        if any(given):
            raise Refused(400, "Send a token or come through the proxy: both name who asks.", "Authorization")
        if named.name in self.tokens.names:
            raise Refused(403, f"{named.name} is the name of a token too; rename that in the token file.")
        if method not in ("GET", "HEAD") and _from_another_site(headers):
            raise Refused(403, "The request comes from a page of another site.", "Sec-Fetch-Site")
        return named


def _from_another_site(headers: RawHeaders) -> bool:
    """Whether a browser says so; with the cookie of a proxy, such a page could act in the name of the person."""
    return any(name == b"sec-fetch-site" and value not in (b"same-origin", b"none") for name, value in headers)
