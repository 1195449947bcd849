"""What the parts of the HTTP interface share: the cases, the clients, and the counts."""

from __future__ import annotations

import os
from typing import Any

from askwise.web.cases import Cases
from askwise.web.description import Description
from askwise.web.failures import Refused
from askwise.web.metrics import Metrics
from askwise.web.security import LOCAL, RateLimit, read_tokens
from askwise.web.settings import Settings
from askwise.web.store import Store


class Service:
    """One selector, its database and its clients.

    Parameters
    ----------
    selector
        The selector of `settings.folder`.
    settings
        The options of the server. The database must be migrated.
    """

    def __init__(self, selector: Any, settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.tokens = read_tokens(settings.token_file)
        self.description = Description(selector, settings.folder, settings.key_file)
        self.store = Store(settings.url, settings.database_seconds)
        at_once = max(1, (os.cpu_count() or 1) // settings.workers)
        self.cases = Cases(selector, self.description, self.store, at_once, self.metrics.replayed)
        self._limit = RateLimit(settings.rate)

    def caller(self, token: str | None, address: str) -> str:
        """The name of who asks; refused without a valid token if tokens are set, and if there are too many requests."""
        name = None if token is None else self.tokens.name_of(token)
        if not self.tokens:
            name = LOCAL
        wait = self._limit.wait(f"address {address}" if name is None else f"name {name}")
        if wait:
            raise Refused(429, f"Too many requests. Wait {wait} s.", headers={"Retry-After": str(wait)})
        if name is None:
            message = "A valid token is needed: Authorization: Bearer <token>."
            raise Refused(401, message, "Authorization", headers={"WWW-Authenticate": "Bearer"})
        return name
