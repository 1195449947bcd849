"""A promise that is watched while cases are served: bets against it, which are valid at any time.

Of cases that were asked everything after the advice to stop it is known whether the decision would have been another. A
bet against "at most the share r is lost" wins p / r for each loss and (1 - p) / (1 - r) for each case without one, for
some p > r. As long as the promise is kept, the expected capital does not grow, so that it ever reaches 1 / alpha with a
probability of at most alpha (Ville), however often one looks. The capital is spread over several p, and over the
cases at which betting begins, so that what is lost before a change does not delay its discovery.

The same bets, on conformal p values of how novel a case is, test whether served cases are exchangeable with those of
the calibration (Vovk, Gammerman, Shafer 2005). Confidence sequences of a share invert bets by a Beta mixture.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import betaln, xlogy

from askwise.errors import InvalidInput
from askwise.parameters import Number
from askwise.table.columns import plain

WORSE = (1.5, 2.5, 5.0)
"""How many times the promised share of losses is betted on."""
POWERS = (0.2, 0.4, 0.6, 0.8)
"""Exponents of the bets on small p values."""
EVERY = 50
"""A new bet begins after so many cases."""
PARTS_OF_ERROR = {"promise": 0.6, "parts": 0.2, "novelty": 0.2}
"""How the probability of a false alarm is divided: all cases, classes and subgroups together, and novelty."""
ADVICE = {
    "nothing known": "No case was checked yet.",
    "kept": "Nothing speaks against the promise.",
    "strange": "Look at what has changed in the cases, and check more of them; the promise is not known to be broken.",
    "broken": "Recalibrate: make a new stop from the checked cases (calibrate_stop on them), and until then do not "
    "stop early.",
}
"""What to do, by the state of a monitor."""
NO_SHARE = 1e-300
"""A share that is as good as 0."""


class Wealth:
    """The capital of bets that begin after 0, `EVERY`, 2 `EVERY`, ... cases, on several alternatives each.

    The k-th beginning has the share 1 / (k + 1)(k + 2) of the capital, which waits until then.
    """

    def __init__(self, n_alternatives: int) -> None:
        self.n_cases = 0
        self.logs = np.empty((0, n_alternatives))
        self.log_shares = np.empty((0, 1))
        self.highest = 0.0

    def bet(self, log_gains: np.ndarray) -> None:
        """Multiply by the gains (A,) of one case."""
        if self.n_cases % EVERY == 0:
            alternatives, k = self.logs.shape[1], np.arange(len(self.logs) + 1.0)[:, None]
            self.logs = np.concatenate([self.logs, np.zeros((1, alternatives))])
            self.log_shares = -np.log((k + 1) * (k + 2) * alternatives)
        self.logs = self.logs + log_gains
        self.n_cases += 1
        self.highest = max(self.highest, self.log)

    @property
    def log(self) -> float:
        """The logarithm of the capital, which began as 1."""
        at_work = self.logs + self.log_shares
        most = max(float(at_work.max(initial=-np.inf)), 0.0)
        waiting = np.exp(-most) / (len(at_work) + 1)
        return most + float(np.log(np.exp(at_work - most).sum() + waiting))


def confidence_sequence(losses: int, cases: int, confidence: float) -> tuple[float, float]:
    """The interval of a share that holds at all times at once, by a Beta(1/2, 1/2) mixture (Robbins 1970).

    >>> [round(end, 2) for end in confidence_sequence(5, 100, 0.9)]
    [0.01, 0.15]
    """
    if not cases:
        return 0.0, 1.0
    return _low_end(losses, cases, confidence), 1 - _low_end(cases - losses, cases, confidence)


def _low_end(losses: int, cases: int, confidence: float) -> float:
    """The smallest share that the bets do not refute."""
    if not losses:
        return 0.0
    mixture = betaln(losses + 0.5, cases - losses + 0.5) - betaln(0.5, 0.5)

    def excess(share: float) -> float:
        """The logarithm of the capital of bets against this share, above that which refutes it."""
        said = xlogy(losses, share) + xlogy(cases - losses, 1 - share)
        return float(mixture - said + np.log(1 - confidence))

    # What was seen is never refuted: no mixture is more likely.
    return float(brentq(excess, NO_SHARE, losses / cases, xtol=NO_SHARE))


@dataclass(eq=False)
class Watched:
    """One share of losses that is watched.

    Attributes
    ----------
    subject
        Whom it is about: a kind ("all", "class" or "subgroup") and a name.
    promised
        Whether a promise is made; if not, the share is observed and never gives an alarm.
    alpha
        Probability of a false alarm.
    """

    subject: tuple[str, Any]
    risk: float
    promised: bool
    alpha: float
    cases: int = 0
    losses: int = 0
    alarmed_at: int | None = None
    wealth: Wealth = field(default_factory=lambda: Wealth(len(WORSE)))

    def update(self, lost: bool) -> None:
        """One more case."""
        self.cases += 1
        self.losses += bool(lost)
        if not self.promised:
            return
        worse = np.minimum(self.risk * np.array(WORSE), (1 + self.risk) / 2)
        self.wealth.bet(np.log(worse / self.risk) if lost else np.log((1 - worse) / (1 - self.risk)))
        if self.alarmed_at is None and self.wealth.highest >= -np.log(self.alpha):
            self.alarmed_at = self.cases

    def row(self, confidence: float) -> dict[str, Any]:
        """What is known of it, ready for JSON."""
        low, high = confidence_sequence(self.losses, self.cases, confidence)
        return {
            "of": self.subject[0],
            "name": plain(self.subject[1]),
            "promised": 1 - self.risk if self.promised else None,
            "cases": self.cases,
            "lost": self.losses,
            "kept": 1 - self.losses / self.cases if self.cases else None,
            "low": 1 - high,
            "high": 1 - low,
            "evidence": float(np.exp(min(self.wealth.log, 700.0))) if self.promised and self.cases else None,
            "highest": float(np.exp(min(self.wealth.highest, 700.0))) if self.promised and self.cases else None,
            "needed": 1 / self.alpha if self.promised else None,
            "alarm": self.alarmed_at is not None,
            "alarmed_at": self.alarmed_at,
        }


def _as_column(given: Any) -> Any:
    """One value per case, each as it was given."""
    if isinstance(given, str) or not np.iterable(given):
        return [given]
    return np.asarray(given) if hasattr(given, "dtype") else list(given)


class StopMonitor:
    """Watches the promise of a calibrated stop while cases are served; made by `CalibratedStop.monitor`.

    Parameters
    ----------
    risk
        The share of losses that the promise allows.
    alpha
        Probability of ever giving a false alarm, all alarms together.
    classes, subgroups
        Labels of the classes, and names of the subgroups, that the promise covers one by one.
    usual_novelty
        (N,) novelty of the calibration rows; None = served cases are not compared with them.

    Examples
    --------
    >>> import numpy as np
    >>> from askwise.stopping import StopMonitor
    >>> monitor = StopMonitor(risk=0.05, alpha=0.1)
    >>> monitor.update(np.arange(200) % 25 == 0)
    >>> monitor.alarms
    []
    >>> monitor.update(np.arange(200) % 5 == 0)
    >>> monitor.report()["advice"][:11]
    'Recalibrate'
    """

    def __init__(
        self,
        risk: float,
        alpha: float = 0.1,
        *,
        classes: Any = (),
        subgroups: Any = (),
        usual_novelty: np.ndarray | None = None,
    ) -> None:
        for name, value in {"risk": risk, "alpha": alpha}.items():
            if not Number(0, 1, above=True, below=True).allows(value):
                raise InvalidInput(f"StopMonitor: {name} must be between 0 and 1, both excluded; got {value!r}.")
        for name, value in {"classes": classes, "subgroups": subgroups}.items():
            if isinstance(value, str) or not np.iterable(value):
                raise InvalidInput(
                    f"StopMonitor: {name} must be a list of labels, empty if there are none; got {value!r}."
                )
        self.risk = float(risk)
        self.alpha = float(alpha)
        self.classes = [plain(one) for one in classes]
        self.subgroups = [plain(one) for one in subgroups]
        self.overall = Watched(("all", "all cases"), self.risk, True, self.alpha * PARTS_OF_ERROR["promise"])
        self.parts: dict[tuple[str, Any], Watched] = {}
        self.seen_novelty = np.empty(0) if usual_novelty is None else np.sort(np.asarray(usual_novelty, dtype=float))
        self.n_usual = len(self.seen_novelty)
        self.strangeness = Wealth(len(POWERS))
        self.strange_at: int | None = None

    def update(self, lost: Any, decided: Any = None, subgroup: Any = None, novelty: Any = None) -> None:
        """Further cases that were asked everything, in the order in which they were served.

        Parameters
        ----------
        lost
            Whether the decision at the stop was a loss: of an `agreement`, whether the full row is decided for another
            class. One value, or one per case.
        decided
            The class of each case: the decision of the full row or, of an `accuracy_gap`, the true one.
        subgroup
            The subgroup of each case.
        novelty
            How novel the full row of each case is (`novelty_of_rows` of the selector).
        """
        losses = np.atleast_1d(lost)
        if losses.ndim > 1 or losses.dtype.kind not in "bui" or not np.isin(losses, [0, 1]).all():
            raise InvalidInput(f"StopMonitor.update: lost must be True or False for each case; got {lost!r}.")
        given = {"decided": decided, "subgroup": subgroup, "novelty": novelty}
        columns: dict[str, Any] = {
            name: [None] * len(losses) if one is None else _as_column(one) for name, one in given.items()
        }
        for name, column in columns.items():
            if len(column) != len(losses):
                raise InvalidInput(
                    f"StopMonitor.update: {name} must hold one value per case, {len(losses)}; got {len(column)}."
                )
        for name in ("decided", "subgroup"):
            for one in columns[name]:
                if not isinstance(one, str | bool | int | float | np.generic | None) or one != one:
                    raise InvalidInput(
                        f"StopMonitor.update: {name} must be text, a number or a boolean for each case, None where it "
                        f"is not known; got {one!r}."
                    )
        for one in columns["novelty"]:
            if one is not None and (
                isinstance(one, bool | np.bool_) or not isinstance(one, Real) or not float(one) >= 0
            ):
                raise InvalidInput(
                    "StopMonitor.update: novelty must be a number >= 0 for each case, None where it is not known; "
                    f"got {one!r}."
                )
        for at, one in enumerate(losses):
            self.overall.update(bool(one))
            for kind, name in (("class", columns["decided"][at]), ("subgroup", columns["subgroup"][at])):
                if name is not None:
                    self._part(kind, plain(name)).update(bool(one))
            if columns["novelty"][at] is not None and self.n_usual:
                self._compare(float(columns["novelty"][at]))

    def _part(self, kind: str, name: Any) -> Watched:
        """The share of a class or subgroup; those that are promised have equal parts of the error."""
        if (kind, name) not in self.parts:
            promised = name in (self.classes if kind == "class" else self.subgroups)
            alpha = self.alpha * PARTS_OF_ERROR["parts"] / max(1, len(self.classes) + len(self.subgroups))
            self.parts[kind, name] = Watched((kind, name), self.risk, promised, alpha)
        return self.parts[kind, name]

    def _compare(self, novelty: float) -> None:
        """A bet that the case is more novel than those before it; ties are broken evenly, by its place in the order."""
        above = len(self.seen_novelty) - np.searchsorted(self.seen_novelty, novelty, side="right")
        alike = len(self.seen_novelty) - above - np.searchsorted(self.seen_novelty, novelty, side="left") + 1
        share = np.random.default_rng(self.strangeness.n_cases).random()
        p = (above + share * alike) / (len(self.seen_novelty) + 1)
        powers = np.array(POWERS)
        self.strangeness.bet(np.log(powers) + (powers - 1) * np.log(max(p, 1e-12)))
        self.seen_novelty = np.insert(self.seen_novelty, np.searchsorted(self.seen_novelty, novelty), novelty)
        if self.strange_at is None and self.strangeness.highest >= -np.log(self.alpha * PARTS_OF_ERROR["novelty"]):
            self.strange_at = self.strangeness.n_cases

    @property
    def alarms(self) -> list[str]:
        """What is no longer as promised, in words; empty as long as nothing speaks against it."""
        found = []
        for one in (self.overall, *self.parts.values()):
            if one.alarmed_at is not None:
                who = one.subject[1] if one.subject[0] == "all" else f"{one.subject[0]} {one.subject[1]!r}"
                found.append(
                    f"The promise is broken for {who}: {one.losses} of {one.cases} checked cases would have been "
                    f"decided otherwise; at most {100 * one.risk:.3g}% of them were promised (noticed after "
                    f"{one.alarmed_at})."
                )
        if self.strange_at is not None:
            found.append(
                "Served cases are not like those of the calibration: they are more novel (noticed at checked case "
                f"{self.strange_at})."
            )
        return found

    def report(self) -> dict[str, Any]:
        """What was promised, what was observed, how sure that is, and what to do; ready for JSON."""
        confidence = 1 - self.alpha
        parts = sorted(self.parts.values(), key=lambda one: (one.subject[0], str(one.subject[1])))
        strange = None
        if self.n_usual:
            strange = {
                "cases": self.strangeness.n_cases,
                "evidence": float(np.exp(min(self.strangeness.log, 700.0))),
                "highest": float(np.exp(min(self.strangeness.highest, 700.0))),
                "needed": 1 / (self.alpha * PARTS_OF_ERROR["novelty"]),
                "alarm": self.strange_at is not None,
                "alarmed_at": self.strange_at,
            }
        return {
            "promised": 1 - self.risk,
            "alpha": self.alpha,
            "state": self.state,
            "rows": [one.row(confidence) for one in (self.overall, *parts)],
            "novelty": strange,
            "alarms": self.alarms,
            "advice": self.advice,
        }

    @property
    def state(self) -> Literal["nothing known", "kept", "strange", "broken"]:
        """What is known of the promise; "strange": it may be kept, but served cases are not like those before."""
        if self.overall.alarmed_at is not None or any(one.alarmed_at is not None for one in self.parts.values()):
            return "broken"
        if self.strange_at is not None:
            return "strange"
        return "kept" if self.overall.cases else "nothing known"

    @property
    def advice(self) -> str:
        """What to do."""
        return ADVICE[self.state]

    def to_frame(self) -> pd.DataFrame:
        """One row for all cases, and for each class and subgroup seen; the columns are those of `report`."""
        return pd.DataFrame(self.report()["rows"])

    def __repr__(self) -> str:
        one = self.overall
        return f"<StopMonitor: {one.losses} of {one.cases} checked cases lost, {self.risk:.3g} promised. {self.advice}>"
