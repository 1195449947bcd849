"""The endpoints under /api: the selector, its cases, and the audit trail.

Functions without ``async`` run in a pool of threads: computing and waiting for the database do not stop others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Coroutine, Iterator
from itertools import islice
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi import Path as InPath
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from askwise.web import trail
from askwise.web.callers import Caller
from askwise.web.failures import JsonResponse, Refused, no_case
from askwise.web.messages import (
    CaseList,
    CaseView,
    Failure,
    MonitorView,
    NewCase,
    NewEvent,
    NextCase,
    NextView,
    SelectorView,
    Text,
    Trail,
    WhyView,
)
from askwise.web.service import Service
from askwise.web.store import Event, Key

BEARER = HTTPBearer(auto_error=False, description="A token of the token file, if the server has one.")


class StrictRequest(Request):
    """A request in whose JSON every name is given once: of two values, nobody knows which one was meant."""

    async def json(self) -> Any:
        return json.loads(await self.body(), object_pairs_hook=_each_once)


class StrictRoute(APIRoute):
    """An endpoint that takes such requests."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strictly


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise HTTPException(400, f"The body holds {twice!r} more than once. Send each name once.")
    return found


async def the_service(request: Request) -> Service:
    """The service of the application."""
    service: Service = request.app.state.service
    return service


async def the_caller(request: Request, bearer: Annotated[Any, Depends(BEARER)]) -> Caller:
    """Who asks; `Guard` has found it out before the body was read."""
    caller: Caller = request.state.by
    return caller


def needs(role: str) -> Callable[..., Coroutine[Any, Any, str]]:
    """What an endpoint depends on that takes a role; it gives the name of who asks."""

    async def the_name(caller: Annotated[Caller, Depends(the_caller)]) -> str:
        if not caller.may(role):
            raise Refused(403, f"This takes the role {role}; yours is {caller.role}.")
        return caller.name

    return the_name


Ask = Annotated[Service, Depends(the_service)]
Asking = Annotated[Caller, Depends(the_caller)]
Clerk = Annotated[str, Depends(needs("clerk"))]
Admin = Annotated[str, Depends(needs("admin"))]
CaseId = Annotated[str, InPath(pattern="^[0-9a-f]{32}$", description="Identifier of the case.")]
IdempotencyKey = Annotated[
    str | None,
    Header(
        pattern="^[!-~]{1,200}$",
        description="Chosen by the client. The same request with the same key is carried out once.",
    ),
]
Format = Literal["json", "csv"]
LINES = 500
"""Lines of the trail that are sent at once."""
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Failure, "description": text}
    for status, text in {
        400: "The body cannot be read",
        401: "No valid token",
        403: "The role does not allow it",
        413: "The body is too large",
        422: "A field is wrong",
        429: "Too many requests",
        503: "The database does not answer",
    }.items()
}
MISSING: dict[int | str, dict[str, Any]] = {404: {"model": Failure, "description": "There is no such case"}}
UNPROMISED: dict[int | str, dict[str, Any]] = {404: {"model": Failure, "description": "Nothing is promised"}}
UNUSUAL: dict[int | str, dict[str, Any]] = {428: {"model": Failure, "description": "A value must be confirmed"}}
CHANGED: dict[int | str, dict[str, Any]] = {409: {"model": Failure, "description": "The case has another version"}}
TRAIL: dict[int | str, dict[str, Any]] = {
    200: {"model": Trail, "content": {"text/csv": {"schema": {"type": "string"}}}}
}
ROUTER = APIRouter(prefix="/api", route_class=StrictRoute, dependencies=[Depends(the_caller)], responses=ERRORS)


@ROUTER.get("/selector", response_model=SelectorView)
def selector(service: Ask, caller: Asking) -> Response:
    """What can be asked, at which price, what is predicted, and who asks."""
    check = service.settings.check or None
    return JsonResponse({**service.description.as_dict(), "you": caller._asdict(), "check": check})


@ROUTER.get("/monitor", response_model=MonitorView, responses=UNPROMISED)
def monitor(service: Ask) -> Response:
    """What the stop promises, and what the checked cases tell about it (`askwise monitor`)."""
    if service.checks.stop is None:
        raise Refused(404, "The selector promises nothing that could be checked while cases are served.")
    return JsonResponse(service.checks.report())


@ROUTER.post("/next", response_model=NextView, responses=UNUSUAL)
def what_next(service: Ask, given: NextCase) -> Response:
    """What to do next in a case that is kept elsewhere, and why; nothing is stored."""
    return JsonResponse(service.cases.next(given))


@ROUTER.get("/cases", response_model=CaseList)
def cases(
    service: Ask,
    search: Annotated[Text, Query(max_length=200, description="Part of a label, or the beginning of an id.")] = "",
    state: Literal["open", "finished", "all"] = "all",
    offset: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Response:
    """The cases, the ones changed last first."""
    total, found = service.store.cases(search, state, offset, limit)
    names = ("id", "label", "created", "updated", "state", "prediction", "probability", "spent")
    return JsonResponse({"total": total, "cases": [{name: getattr(row, name) for name in names} for row in found]})


@ROUTER.post("/cases", status_code=201, response_model=CaseView, responses={**CHANGED, **UNUSUAL})
def start(
    service: Ask, caller: Clerk, request: Request, new: NewCase, idempotency_key: IdempotencyKey = None
) -> Response:
    """Start a case with what is known."""
    key = _key(idempotency_key, caller, request, new)
    view, again = service.cases.once(key, lambda: service.cases.start(new, caller, key))
    return _answered(service, _with_namesakes(service, view), 201, "start", again)


@ROUTER.get("/cases/{case}", response_model=CaseView, responses={**MISSING, **CHANGED})
def case(service: Ask, case: CaseId) -> Response:
    """A case as it is now."""
    return JsonResponse(_with_namesakes(service, service.cases.view(case)))


@ROUTER.get("/cases/{case}/why", response_model=WhyView, responses={**MISSING, **CHANGED})
def why(service: Ask, case: CaseId) -> Response:
    """Why the next feature comes next, with its likely answers and where each leads (`Session.why()`)."""
    return JsonResponse(service.cases.why(case))


@ROUTER.post("/cases/{case}/events", response_model=CaseView, responses={**MISSING, **CHANGED, **UNUSUAL})
def add(
    service: Ask, caller: Clerk, request: Request, case: CaseId, new: NewEvent, idempotency_key: IdempotencyKey = None
) -> Response:
    """Enter a value, mark a feature as unavailable, undo, finish or reopen."""
    key = _key(idempotency_key, caller, request, new)
    view, again = service.cases.once(key, lambda: service.cases.add(case, new, caller, key))
    return _answered(service, view, 200, new.type, again)


@ROUTER.delete("/cases/{case}", status_code=204, responses=MISSING)
def delete(service: Ask, caller: Admin, case: CaseId) -> Response:
    """Delete a case for good; the trail keeps that it was, when and by whom."""
    service.cases.delete(case, caller)
    service.metrics.wrote("deleted")
    return Response(status_code=204)


@ROUTER.get("/cases/{case}/trail", responses={**MISSING, **TRAIL})
def case_trail(service: Ask, case: CaseId, format: Format = "json") -> Response:
    """The audit trail of a case, also of a deleted one."""
    found = list(service.store.trail(case))
    if not found:
        raise no_case(case)
    return _exported(iter(found), format, f"trail-{case}")


@ROUTER.get("/trail", responses=TRAIL)
def whole_trail(service: Ask, caller: Admin, format: Format = "json") -> Response:
    """The audit trail of all cases."""
    return _exported(service.store.trail(), format, "trail")


def _key(key: str | None, caller: str, request: Request, new: NewCase | NewEvent) -> Key | None:
    """The idempotency key with a digest of the request, which is told from others by it."""
    if key is None:
        return None
    asked = f"{request.method} {request.url.path} {new.model_dump_json()}"
    return Key(caller, key, hashlib.sha256(asked.encode()).hexdigest(), "", 0)


def _with_namesakes(service: Service, view: dict[str, Any]) -> dict[str, Any]:
    """The case with the others of its name: two people may have meant the same one."""
    return {**view, "same_name": service.store.same_name(view["id"], view["label"])}


def _answered(service: Service, view: dict[str, Any], status: int, kind: str, again: bool) -> Response:
    if not again:
        service.metrics.wrote(kind)
    return JsonResponse(view, status, headers={"Idempotency-Replayed": "true"} if again else None)


def _exported(found: Iterator[tuple[str, Event]], format: Format, name: str) -> Response:
    export = trail.as_csv if format == "csv" else trail.as_json
    media_type = "text/csv; charset=utf-8" if format == "csv" else "application/json"
    headers = {"Content-Disposition": f'attachment; filename="{name}.{format}"'}
    lines = export(found)
    parts = iter(lambda: "".join(islice(lines, LINES)), "")  # each is handed from thread to thread
    return StreamingResponse(parts, media_type=media_type, headers=headers)
