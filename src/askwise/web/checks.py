"""The promise that is checked while cases are served: which cases are checked, what each tells, and what all tell.

Whether a case is checked is drawn by a keyed hash of its id, and written into its first event; what it tells, into the
event that finishes it. What all of them tell follows from these events alone, so that it is the same for every process,
after a restart, and for the command line.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from askwise.errors import InvalidInput, did_you_mean
from askwise.parameters import Number
from askwise.table.rows import EncodedRows
from askwise.web.store import Event, Store

MOST_GROUPS = 20
"""A column of numbers names subgroups if it has so many different values in training, or fewer."""
EARLY = "finished before the advice to stop"
OPEN = "finished before everything was asked"
HOW_TO_PROMISE = (
    "calibrate_stop(..., agreement=...) in Python, or askwise fit --calibrate FILE --agreement SHARE, makes such a stop"
)


class Checks:
    """The checks of a served selector.

    Parameters
    ----------
    selector
        The selector; its calibrated stop is checked, if that promises an agreement.
    model
        Version of the saved selector: only cases that were started and finished with it tell something about its stop.
    store
        The database.
    share
        Share of the cases to check.
    key
        The secret by which they are drawn.
    subgroup
        Column by which subgroups are told apart; None = that of the stop, if it has one.
    """

    def __init__(
        self, selector: Any, model: str, store: Store, share: float = 0.0, key: bytes = b"", subgroup: str | None = None
    ) -> None:
        if not Number(0, 1).allows(share):
            raise InvalidInput(f"--check must be a share of the cases, from 0 to 1; got {share}.")
        stop = getattr(selector, "stop_", None)
        self.stop = stop if stop is not None and stop.goal.agreement is not None else None
        if self.stop is None and (share > 0 or subgroup is not None):
            raise InvalidInput(
                f"--check and --subgroup need a selector whose stop promises an agreement; {HOW_TO_PROMISE}. Without "
                "labels, nothing else can be checked."
            )
        self.share, self.model = share, model
        self._selector, self._store, self._key = selector, store, key
        self.subgroup = subgroup if subgroup is not None else getattr(self.stop, "grouped_by", "") or None
        if subgroup is not None:
            _check_column(selector, subgroup)
        self._lock = threading.Lock()
        self._seen: list[tuple[str, str, int]] = []
        self._unused: Counter[str] = Counter()
        self._paid = np.zeros(2)
        self._monitor: Any = None
        self._forget()

    def draws(self, case_id: str, known: Mapping[str, Any], deadline: float | None, stop: Any) -> bool:
        """Whether to check a case that starts so; only one for which something is promised."""
        if self.stop is None or stop is not self.stop or deadline is not None:
            return False
        schema, costs = self._selector.schema_, self._selector.prices_.costs
        if any(name in schema.features and costs[schema.position(name)] > 0 for name in known):
            return False
        drawn = hmac.new(self._key, case_id.encode(), hashlib.sha256).digest()
        return int.from_bytes(drawn[:8], "big") < self.share * 2**64

    def outcome(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """What a checked case tells when it is finished, ready for JSON."""
        check = report["check"]
        if check is None:
            return {"unused": EARLY}
        if check["unused"] is None and check["full"] is None:
            return {"unused": OPEN}
        told = {name: check[name] for name in ("unused", "stopped", "full", "changed", "novelty")}
        told |= {"stop_price": check["spent"], "price": report["spent"]}
        if self.subgroup is not None:
            told["subgroup"] = {self.subgroup: self._value(report["known"])}
        return told

    def _value(self, known: Mapping[str, Any]) -> Any:
        """The value of the column of subgroups; None where it is not known."""
        schema = self._selector.schema_
        j = [column.name for column in schema.columns].index(self.subgroup)
        value = known.get(schema.features[schema.owner[j]])
        return value.get(self.subgroup) if isinstance(value, Mapping) else value

    def report(self) -> dict[str, Any]:
        """What was promised, what the checked cases tell of it, and what to do; ready for JSON.

        That of `StopMonitor.report`, with the cases that tell nothing (`unused`), the average price until the advice to
        stop, and that of going on.
        """
        if self.stop is None:
            raise InvalidInput(f"Nothing is promised that could be checked: {HOW_TO_PROMISE}.")
        with self._lock:
            events = self._store.checks(self.model)
            places = [(event.at, event.case_id, event.version) for event in events]
            if places[: len(self._seen)] != self._seen:  # reopened, deleted, or written late by another process
                self._forget()
            for event in events[len(self._seen) :]:
                self._tell(event)
            self._seen = places
            n = self._monitor.overall.cases
            return {
                **self._monitor.report(),
                "guarantee": self.stop.promise,
                "model": self.model,
                "share": self.share,
                "subgroup": self.subgroup,
                "checked": n,
                "unused": [{"why": why, "cases": cases} for why, cases in self._unused.most_common()],
                "stop_price": self._paid[0] / n if n else None,
                "check_price": self._paid[1] / n if n else None,
                "promised_price": self.stop.price,
            }

    def _forget(self) -> None:
        """Begin anew, with no case told."""
        self._seen, self._unused, self._paid = [], Counter(), np.zeros(2)
        if self.stop is not None:
            self._monitor = self.stop.monitor()
            if self.subgroup != self.stop.grouped_by:
                self._monitor.subgroups = []  # what is promised is about other groups

    def _tell(self, event: Event) -> None:
        told = event.value
        if told["unused"] is not None:
            self._unused[told["unused"]] += 1
            return
        novelty = told["novelty"]
        self._monitor.update(
            told["changed"],
            decided=[told["full"]],
            subgroup=[told.get("subgroup", {}).get(self.subgroup)],
            novelty=[float("inf") if novelty == "infinite" else novelty],
        )
        self._paid += told["stop_price"], told["price"] - told["stop_price"]

    def rows(self, since: str = "") -> tuple[Any, int]:
        """The rows of the complete checked cases as a table, and how many checked cases were left out."""
        schema, events = self._selector.schema_, self._store.checks(self.model, since)
        used = [event.case_id for event in events if event.value["unused"] is None]
        cells = np.full((len(used), len(schema.columns)), np.nan)
        for row, case_id in zip(cells, used, strict=True):
            for feature, value in answers(self._store.events(case_id)).items():
                if feature in schema.features:  # a pilot item is none
                    i = schema.position(feature)
                    row[schema.feature_columns[i]] = schema.encode_feature(i, value)
        return schema.decode(EncodedRows(cells)), len(events) - len(used)


def answers(events: list[Event]) -> dict[str, Any]:
    """Feature -> value of what is known after the events of a case."""
    steps: list[Event] = []
    for event in events[1:]:
        if event.type == "undo":
            steps.pop()
        elif event.type in ("answer", "order", "unavailable"):
            steps.append(event)
    given = {str(step.feature): step.value for step in steps if step.type == "answer"}
    return {**events[0].value["known"], **given}


def _check_column(selector: Any, name: str) -> None:
    """Refuse a column that does not tell subgroups apart."""
    schema = selector.schema_
    names = [column.name for column in schema.columns]
    if name not in names:
        raise InvalidInput(f"--subgroup: there is no column {name!r}.{did_you_mean(name, names)}")
    training = getattr(selector.predictor_, "training_rows_", None)
    if schema.is_category[names.index(name)] or training is None:
        return
    values = training.values[:, names.index(name)]
    different = len(np.unique(values[~np.isnan(values)]))
    if different > MOST_GROUPS:
        raise InvalidInput(
            f"--subgroup: the column {name!r} has {different} different values; one for subgroups has categories, or "
            f"at most {MOST_GROUPS} numbers."
        )
