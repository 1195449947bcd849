"""What the parts of the HTTP interface share: the cases, the clients, and the counts."""

from __future__ import annotations

import os
from typing import Any

from askwise.persistence.folder import read_key
from askwise.web.callers import Callers, read_tokens, trusted_proxy
from askwise.web.cases import Cases
from askwise.web.checks import Checks
from askwise.web.description import Description
from askwise.web.metrics import Metrics
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
        self.callers = Callers(read_tokens(settings.token_file), trusted_proxy(settings), settings.rate)
        self.description = Description(selector, settings.folder, settings.key_file)
        self.store = Store(settings.url, settings.database_seconds)
        model = self.description.model
        key = model.encode() if settings.key_file is None else read_key(settings.key_file)
        self.checks = Checks(selector, model, self.store, settings.check, key, settings.subgroup)
        at_once = max(1, (os.cpu_count() or 1) // settings.workers)
        self.cases = Cases(selector, self.description, self.store, at_once, self.metrics.replayed, self.checks)
