"""Calls made up from the OpenAPI description, right and wrong ones, steered to cases that exist."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.result import Ok

LOCAL = {"Host": "localhost"}
SHARES = {"POST /api/cases/{case}/events": 0.5, "POST /api/cases": 0.2, "GET /api/cases": 0.1}
"""Share of the calls; the other operations share the rest."""


@dataclass
class Fuzzer:
    """Calls an application and counts what it answers.

    Half of the calls about a case are about one that exists, mostly at its present version, and name an existing
    feature: otherwise they would hardly get beyond the first check.
    """

    app: Any
    features: list[str]
    number: int = 0  # the seed
    statuses: Counter[int] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    live: dict[str, int] = field(default_factory=dict)

    def run(self, n_calls: int) -> None:
        """Make at least so many calls."""
        schema = schemathesis.openapi.from_asgi("/api/openapi.json", self.app, headers=LOCAL)
        operations: list[Any] = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
        rest = (1 - sum(SHARES.values())) / (len(operations) - len(SHARES))
        self._random = random.Random(self.number)
        rounds = 0
        while self.statuses.total() < n_calls:  # in rounds, so that cases are started, used and deleted in turn
            rounds += 1
            for operation in operations:
                share = SHARES.get(f"{operation.method.upper()} {operation.path}", rest)
                for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                    self._call(operation, mode, max(1, round(share * 50)), rounds)

    def _call(self, operation: Any, mode: Any, n_calls: int, rounds: int) -> None:
        @seed(1000 * self.number + rounds)
        @settings(
            max_examples=n_calls,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def call(case: Any) -> None:
            self._steer(case)
            self._note(case, case.call(headers=LOCAL))

        with contextlib.suppress(Unsatisfiable):  # an operation without parameters cannot be called wrongly
            call()

    def _steer(self, case: Any) -> None:
        if not self.live or self._random.random() < 0.5:
            return
        name, version = self._random.choice(list(self.live.items()))
        if isinstance(case.path_parameters, dict) and "case" in case.path_parameters:
            case.path_parameters["case"] = name
        if isinstance(case.body, dict):
            if "version" in case.body:
                case.body["version"] = max(1, version - self._random.choice((0, 0, 0, 1)))
            if "feature" in case.body:
                case.body["feature"] = self._random.choice(self.features)
            for field in ("known", "answers"):
                if isinstance(case.body.get(field), dict):
                    case.body[field] = {self._random.choice(self.features): v for v in case.body[field].values()}
            for field in ("unavailable", "pending"):
                if isinstance(case.body.get(field), list) and case.body[field]:
                    case.body[field] = [self._random.choice(self.features)]

    def _note(self, case: Any, response: Any) -> None:
        self.statuses[response.status_code] += 1
        if response.status_code >= 500:
            self.failures.append(f"{response.status_code}: {case.as_curl_command()}")
        if response.status_code in (200, 201) and case.operation.method.upper() == "POST":
            view = response.json()
            if "id" in view:  # the stateless call has none
                self.live[view["id"]] = view["version"]
        if response.status_code == 204:
            self.live.pop(case.path_parameters["case"], None)
