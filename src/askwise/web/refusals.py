"""Requests that are not carried out, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from askwise.errors import AskwiseError


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


def no_case(case_id: str) -> Refused:
    """There is no such case, or no longer."""
    return Refused(404, f"There is no case {case_id}. It may have been deleted.", "case")
