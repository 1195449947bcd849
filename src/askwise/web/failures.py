"""Errors as ``{"error": {"field": ..., "message": ...}}``, never with a stack trace."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import OperationalError, SQLAlchemyError, TimeoutError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from askwise.errors import AskwiseError
from askwise.web.messages import WITHOUT_CONTROLS


class JsonResponse(Response):
    """JSON in ASCII, so that whatever a client has sent can be quoted to it."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The body."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def failure(status: int, message: str, field: str | None = None, headers: Any = None) -> JsonResponse:
    """The response that tells of an error."""
    return JsonResponse({"error": {"field": field, "message": message}}, status, headers=headers)


def install(app: FastAPI) -> None:
    """Let the application answer errors in this way."""

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> Response:
        return error.response()

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        field = _field(error.errors()[0]["loc"])
        return failure(422, _message([one for one in error.errors() if _field(one["loc"]) == field]), field)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        return failure(error.status_code, str(error.detail), headers=error.headers)

    @app.exception_handler(OperationalError)
    @app.exception_handler(TimeoutError)
    async def database(request: Request, error: SQLAlchemyError) -> Response:
        message = "The database does not answer in time: it is away, busy, or locked by somebody else. Try again."
        return failure(503, message, headers={"Retry-After": "1"})


def _field(where: Sequence[Any]) -> str | None:
    """The name of a field as a client knows it: known.age, not ('body', 'known', 'age', 'int')."""
    kind, *names = where
    if kind == "body":  # what follows names the types that were tried
        names = names[: 2 if names[:1] in (["known"], ["answers"]) else 1]
    if kind == "body" and names and isinstance(names[0], int):  # a position in JSON that cannot be read
        return None
    return ".".join(map(str, names)) or None


def _message(errors: Sequence[Any]) -> str:
    """What is wrong with a field; of one that takes several types, what is wrong with the value of the right type."""
    told = [one for one in errors if not one["type"].endswith("_type") and one["type"] != "int_from_float"]
    if len(errors) > 1 and not told:
        several = any(one["type"] == "bool_type" for one in errors)
        return (
            "must be a number, true, false, text, or an object of them for a group" if several else "must be a number"
        )
    first = (told or errors)[0]
    if first.get("ctx", {}).get("pattern") == WITHOUT_CONTROLS:
        return "must not hold control characters"
    return str(first["msg"]).removeprefix("Value error, ")


class Refused(AskwiseError):  # noqa: N818 - an answer to a request, not a fault
    """A request that is not carried out.

    Parameters
    ----------
    status
        The HTTP status.
    message, field
        What is wrong, and with which field.
    case
        With a conflict, the case as it is now.
    needs
        ``"confirmation"`` if the same request with ``confirmed: true`` is carried out.
    headers
        Further headers of the response.
    """

    def __init__(
        self,
        status: int,
        message: str,
        field: str | None = None,
        case: Any = None,
        needs: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.field, self.case, self.needs, self.headers = status, field, case, needs, headers

    def as_dict(self) -> dict[str, Any]:
        """The body of the response."""
        error = {"field": self.field, "message": str(self)}
        if self.needs is not None:
            error["needs"] = self.needs
        return {"error": error} if self.case is None else {"error": error, "case": self.case}

    def response(self) -> JsonResponse:
        """The response."""
        return JsonResponse(self.as_dict(), self.status, headers=self.headers)


def no_case(case_id: str) -> Refused:
    """There is no such case, or no longer."""
    return Refused(404, f"There is no case {case_id}. It may have been deleted.", "case")
