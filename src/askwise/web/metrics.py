"""What a Prometheus server collects; with several worker processes, summed over all of them."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable with the folder where worker processes leave their counts, read when prometheus_client loads."""

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counters and histograms of one server."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        labels = ["method", "route", "status"]
        self._requests = Counter("askwise_requests", "Requests answered.", labels, registry=registry)
        self._seconds = Histogram(
            "askwise_request_seconds", "Time to answer.", ["route"], buckets=SECONDS, registry=registry
        )
        self._events = Counter("askwise_events", "Events written.", ["type"], registry=registry)
        self._replays = Counter("askwise_replays", "Cases computed from their first event.", registry=registry)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def wrote(self, kind: str) -> None:
        """Count an event."""
        self._events.labels(kind).inc()

    def replayed(self) -> None:
        """Count a case that was not in memory."""
        self._replays.inc()

    def exposed(self) -> bytes:
        """The text that Prometheus reads."""
        if DIRECTORY not in os.environ:
            return generate_latest(self._registry)
        everybody = CollectorRegistry()
        MultiProcessCollector(everybody)  # type: ignore[no-untyped-call]
        return generate_latest(everybody)
