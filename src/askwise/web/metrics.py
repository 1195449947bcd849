"""What a Prometheus server collects; with several worker processes, summed over all of them."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from askwise.web.checks import Checks
from askwise.web.logs import log

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

    def exposed(self, checks: Checks) -> bytes:
        """The text that Prometheus reads: what was counted, and what the checked cases tell about the promise."""
        counted = self._registry
        if DIRECTORY in os.environ:
            counted = CollectorRegistry()
            MultiProcessCollector(counted)  # type: ignore[no-untyped-call]
        found = generate_latest(counted)
        if checks.stop is None:
            return found
        promise = CollectorRegistry(auto_describe=False)
        try:
            promise.register(Promise(checks))
        except SQLAlchemyError as error:
            log("the database does not answer, so the metrics lack the promise", logging.WARNING, error)
            return found
        return found + generate_latest(promise)


SHOWN = {
    "promised": "Share of the decisions that the stop promises to keep; absent where it promises nothing.",
    "cases": "Checked cases that tell something.",
    "lost": "Checked cases that would have been decided otherwise.",
    "kept": "Share of the checked cases whose decision is kept.",
    "low": "Lower end of the interval of that share, which holds at all times at once.",
    "high": "Upper end of it.",
    "highest": "The highest evidence so far.",
    "evidence": "Evidence against the promise: the capital of bets against it.",
    "needed": "Evidence at which an alarm is given.",
    "alarm": "1 once the promise is found to be broken.",
}
"""Of each row of `Checks.report`, what becomes a gauge."""


class Promise(Collector):
    """What the checked cases tell about the promise, the same from every process; read from the database once."""

    def __init__(self, checks: Checks) -> None:
        self._report = checks.report()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauges."""
        report = self._report
        for name, text in SHOWN.items():
            gauge = GaugeMetricFamily(f"askwise_promise_{name}", text, labels=["of", "name"])
            for row in report["rows"]:
                if row[name] is not None:
                    gauge.add_metric([row["of"], str(row["name"])], float(row[name]))
            yield gauge
        unused = sum(one["cases"] for one in report["unused"])
        yield GaugeMetricFamily("askwise_checks_unused", "Checked cases that tell nothing.", value=unused)
        for name in ("evidence", "needed", "alarm"):
            if report["novelty"] is not None:
                text = f"The same for served cases being like those of the calibration: {name}."
                yield GaugeMetricFamily(f"askwise_novelty_{name}", text, value=float(report["novelty"][name]))
