"""What a session says of its case: the keys of `Session.report` and `Session.why`, and what they mean."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

JsonNumber = float | str | None
"""A number; None where it is unknown, "infinite" where it is infinite."""


class State(TypedDict):
    """What is said of a case from what is known of it."""

    prediction: Any
    """The decision: the most probable class or, where errors have a cost, the one of least expected cost."""
    probabilities: dict[str, float]
    """p(y | x_S) by class."""
    decision_is_final: float
    """The probability that all features lead to the same decision."""
    uncertainty: dict[str, JsonNumber]
    """Total, aleatoric, mutual_information, epistemic and more, in nats."""
    novelty: JsonNumber
    """How much farther the case is from the training rows than these are from each other; 0 = not at all."""
    outside: list[dict[str, Any]]
    """Values outside of everything seen in training: feature, column, value, and what was seen."""
    prediction_set: list[Any] | None
    """Classes that hold the true one with the coverage asked for; None where nothing is promised."""
    rules: NotRequired[dict[str, Any]]
    """The rules that fire, where the model has rules and ``adaptation="rules"``."""
    expected_error_cost: NotRequired[float]
    """What the decision is expected to cost, with `error_costs`."""


class Step(State):
    """One entry of the trace: what happened, and what was said after it."""

    event: Literal["start", "order", "answer", "unavailable"]
    feature: str | None
    value: Any
    cost: float
    amounts: dict[str, float]
    """What the step took of each resource other than money."""


class Purse(TypedDict):
    """What a case has spent of a resource, and what is left; None = unlimited."""

    spent: float
    left: float | None


class Pending(TypedDict):
    """A result that is out: when it was ordered and is expected, in hours since the case was started."""

    feature: str
    ordered: float
    expected: float | None


class Candidate(TypedDict):
    """A feature that could be acquired next."""

    feature: str
    cost: float
    weighed: float
    """What its gain is divided by: the price, plus the weights of other resources times what it takes of them."""
    gain: JsonNumber


class HandoverAdvice(TypedDict):
    """Whether a person should decide, by the rule of `calibrate_handover`."""

    advice: Literal["ask on", "decide", "hand over"]
    reason: str


class Check(TypedDict):
    """What a case tells about the promise that is asked everything after the advice to stop.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.stopping import Confidence
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> session = selector.start(stop=Confidence(0.5), check=True)
    >>> session.answer("x2", 1.4)
    >>> check = session.report()["check"]
    >>> check["stopped"], check["to_ask"], check["changed"]
    (0, ['x0', 'x1', 'x3'], None)
    """

    stopped: Any
    """The decision when the advice was to stop."""
    after: int
    """The number of steps until then."""
    spent: float
    """The price until then."""
    to_ask: list[str]
    """What is still to be asked."""
    full: Any
    """The decision of the full row; None before it is known, and if it never will be."""
    changed: bool | None
    """Whether it is another one."""
    novelty: JsonNumber
    """How novel the full row is (`novelty_of_rows`)."""
    unused: str | None
    """Why the case tells nothing about the promise, if it does not."""


class Now(State):
    """What is said of a case as it stands."""

    known: dict[str, Any]
    unavailable: list[str]
    spent: float
    budget_left: float | None
    """Of money; None = unlimited."""
    resources: dict[str, Purse]
    """Of each resource of the prices, "money" first. Time is spent once a result is back."""
    guarantee: str | None
    """What the rule of `calibrate_stop` promises, or why not for this case; None without one."""
    guaranteed: bool
    """Whether the promise holds for the decision as it stands: the rule has stopped the case, or nothing is left."""
    handover: HandoverAdvice | None
    check: Check | None
    """Of a case that is asked on for a check, after the advice to stop."""
    pending: list[Pending]
    """What was ordered and is not back, in the order in which it was ordered."""
    pilot: dict[str, Any]
    """The answers to pilot items of the rules of the house, which the model does not know."""
    suggestion: str | None
    ranking: list[Candidate]


class Report(Now):
    """Everything about a case; the result of `Session.report`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> report = selector.start({"x2": 4.5}).report()
    >>> report["known"], report["prediction"], report["spent"]
    ({'x2': 4.5}, 1, 0.0)
    """

    trace: list[Step]


class Alternative(TypedDict):
    """Another feature that could come next; its share of the best gain, where the policy compares gains."""

    feature: str
    price: float
    relative_gain: float | None


class Reasons(TypedDict):
    """Why a feature comes next, or why none does; the result of `Session.why`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> why = selector.start().why()
    >>> why["feature"], why["advice"]
    ('x3', 'ask')
    """

    advice: Literal["ask", "wait", "stop", "nothing left", "hand over"]
    decision: Any
    probability: float
    feature: str | None
    price: float | None
    reason: str
    change: float | None
    """The probability that the answer changes the decision."""
    outcomes: list[dict[str, Any]]
    """Likely answers, and where each leads."""
    alternatives: list[Alternative]
    hint: str | None
    """That one could stop, where that is so."""
    text: str
    """All of it in words."""


class Next(Now):
    """What to do next in a case, and why; the result of `DynamicFeatureSelector.next` and `Session.next`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> found = selector.next({"x2": 4.5})
    >>> found["suggestion"], found["prediction"], found["advice"], found["why"]["price"]
    ('x3', 1, 'ask', 1.0)
    """

    why: Reasons
    advice: Literal["ask", "wait", "stop", "nothing left", "hand over"]
