"""Requests and responses of the HTTP interface; unknown fields and values of another type are refused."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr
from pydantic.types import StringConstraints

LARGEST = 2**53 - 1
"""The largest whole number that means the same in JSON everywhere; no measurement is larger."""
WITHOUT_CONTROLS = r"^[^\x00-\x1f\x7f-\x9f]*$"
"""Text that every database and log takes; halves of surrogate pairs are no text for pydantic."""


def _visible(text: str) -> str:
    """Text that reads as it is."""
    for character in text:
        if unicodedata.category(character) in ("Cf", "Zl", "Zp"):
            raise ValueError(
                f"must not hold characters that cannot be seen or turn the text around; U+{ord(character):04X} is one"
            )
    return text


Text = Annotated[str, StringConstraints(strict=True, max_length=1000, pattern=WITHOUT_CONTROLS)]
Label = Annotated[
    str,
    StringConstraints(strict=True, max_length=200, strip_whitespace=True, pattern=WITHOUT_CONTROLS),
    AfterValidator(_visible),
]
Number = Annotated[StrictInt | Annotated[StrictFloat, Field(allow_inf_nan=False)], Field(ge=-LARGEST, le=LARGEST)]
Scalar = StrictBool | Number | Text
Value = Scalar | dict[Text, Scalar | None]
Amount = Annotated[Number, Field(ge=0)]
Budget = Amount | Annotated[dict[Text, Amount], Field(max_length=100)]
EventType = Literal["answer", "order", "unavailable", "undo", "finish", "reopen"]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NewCase(_Request):
    """A case to start."""

    label: Label = Field(default="", description="What the case is called in the list, such as a number of the clinic.")
    known: dict[Text, Value] = Field(
        default_factory=dict, max_length=10_000, description="Feature -> value of what is known and costs nothing."
    )
    budget: Budget | None = Field(
        default=None,
        description='The most that the case may cost, or {resource: most}, such as {"money": 200, "time": 24}; '
        "null = the selector's own limit.",
    )
    deadline: Annotated[Number, Field(ge=0)] | None = Field(
        default=None, description="Hours after which the case is decided: what takes longer is not suggested."
    )
    confirmed: StrictBool = Field(default=False, description="Whether unusual values were confirmed.")


class NextCase(_Request):
    """All that is known of a case that is kept elsewhere."""

    known: dict[Text, Value] = Field(
        default_factory=dict, max_length=10_000, description="Feature -> value of what costs nothing."
    )
    answers: dict[Text, Value] = Field(
        default_factory=dict, max_length=10_000, description="Feature -> value of what was acquired, in that order."
    )
    unavailable: list[Text] = Field(default_factory=list, max_length=10_000, description="Features that cannot be had.")
    budget: Budget | None = Field(
        default=None,
        description='The most that the case may cost, or {resource: most}, such as {"money": 200, "time": 24}; '
        "null = the selector's own limit.",
    )
    deadline: Annotated[Number, Field(ge=0)] | None = Field(
        default=None, description="Hours after which the case is decided: what takes longer is not suggested."
    )
    pending: list[Text] = Field(
        default_factory=list, max_length=10_000, description="Features that are ordered and not back; charged."
    )
    outcomes: StrictBool = Field(
        default=True, description="Whether to compute the likely answers, which takes longest."
    )
    confirmed: StrictBool = Field(default=False, description="Whether unusual values were confirmed.")


class NewEvent(_Request):
    """A step of a case."""

    type: EventType
    version: Annotated[StrictInt, Field(ge=1, le=2**31 - 2)] = Field(description="The version that was seen.")
    feature: Text | None = Field(default=None, description="For answer, order and unavailable.")
    value: Value | None = Field(
        default=None,
        description="For answer; a group of columns takes an object. For order: hours until the result is back; null = "
        "as in the prices.",
    )
    confirmed: StrictBool = Field(default=False, description="Whether an unusual value was confirmed.")


class Problem(BaseModel):
    """What is wrong with a request."""

    field: StrictStr | None = None
    message: StrictStr
    needs: Literal["confirmation"] | None = None


class Failure(BaseModel):
    """The body of every error; with a conflict, `case` is the case as it is now."""

    error: Problem
    case: dict[str, Any] | None = None


class CaseView(BaseModel):
    """A case: what is known, what to ask next, and how far to trust the prediction."""

    id: str
    label: str
    version: int
    state: Literal["open", "finished"]
    created: str
    updated: str
    by: str
    model: str
    report: dict[str, Any] = Field(description="`Session.report()`: prediction, probabilities, ranking, trace, ...")
    prices: dict[str, float] = Field(description="Current price of what is neither known nor unavailable.")
    amounts: dict[str, dict[str, float]] = Field(description="What the same takes now, by feature and resource.")
    why: dict[str, Any] = Field(description="`Session.why()` without the likely answers, which /why has.")
    advice: Literal["ask", "wait", "stop", "nothing left", "hand over"]
    same_name: list[str] | None = Field(
        default=None,
        description="When a case is started or read: other cases of that label, at most 100, newest first.",
    )


class WhyView(BaseModel):
    """Why the next feature comes next."""

    model_config = ConfigDict(extra="allow")

    version: int
    text: str
    change: float | None
    outcomes: list[dict[str, Any]]


class NextView(BaseModel):
    """What to do next: `DynamicFeatureSelector.next`, with the version of the model."""

    model_config = ConfigDict(extra="allow")

    advice: Literal["ask", "wait", "stop", "nothing left", "hand over"]
    suggestion: str | None
    ranking: list[dict[str, Any]]
    prediction: Any
    probabilities: dict[str, float]
    decision_is_final: float
    uncertainty: dict[str, float | str | None]
    why: dict[str, Any]
    known: dict[str, Any]
    unavailable: list[str]
    pending: list[dict[str, Any]]
    spent: float
    budget_left: float | None
    resources: dict[str, dict[str, float | None]] = Field(description="Spent and left by resource; null = no limit.")
    model: str


class CaseSummary(BaseModel):
    """A case in the list."""

    id: str
    label: str
    created: str
    updated: str
    state: Literal["open", "finished"]
    prediction: Any
    probability: float
    spent: float


class CaseList(BaseModel):
    """Some of the cases, the ones changed last first."""

    total: int
    cases: list[CaseSummary]


class SelectorView(BaseModel):
    """What can be asked, at which price, what is predicted, and who asks."""

    features: list[dict[str, Any]]
    classes: list[Any]
    currency: str | None
    budget: float | dict[str, float] | None
    resources: list[str] = Field(description="What tests take, and budgets limit: money first.")
    guarantee: dict[str, str | float | None] | None
    handover: str | None = Field(default=None, description="What is promised of the cases not handed to a person.")
    check: float | None = Field(
        default=None, description="The share of the cases that are asked on to check what is promised."
    )
    versions: dict[str, str]
    texts: dict[str, str]
    you: dict[str, str] = Field(description="The name and the role of who asks.")


class MonitorView(BaseModel):
    """What is promised, and what the checked cases tell of it; `StopMonitor.report` with what the server knows."""

    model_config = ConfigDict(extra="allow")

    promised: float
    alpha: float = Field(description="The probability of ever giving a false alarm.")
    state: Literal["nothing known", "kept", "strange", "broken"]
    rows: list[dict[str, Any]] = Field(description="All cases, each class and each subgroup.")
    novelty: dict[str, Any] | None = Field(description="Whether served cases are like those of the calibration.")
    alarms: list[str]
    advice: str
    guarantee: str
    model: str
    share: float
    subgroup: str | None
    checked: int = Field(description="Checked cases that tell something.")
    unused: list[dict[str, Any]] = Field(description="Why other checked cases tell nothing, and how many.")
    stop_price: float | None = Field(description="The average price of checked cases until the advice to stop.")
    check_price: float | None = Field(description="The average price of going on after it.")
    promised_price: float = Field(description="The average price until the advice at the calibration.")


class Trail(BaseModel):
    """The audit trail, one row per event."""

    trail: list[dict[str, Any]]
