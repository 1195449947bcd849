"""The application: /api, the page, and what an operator asks for."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, FastAPI
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

import askwise
from askwise import __version__
from askwise.web import api, failures, logs
from askwise.web.api import Ask
from askwise.web.guard import Guard, PromptProtocol
from askwise.web.messages import Failure, NextCase
from askwise.web.service import Service
from askwise.web.settings import Settings

PAGE = Path(__file__).parent / "page"


def create_app(selector: Any, settings: Settings) -> FastAPI:
    """The application for a loaded selector; its database must be migrated."""
    service = Service(selector, settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.store.close()

    app = FastAPI(
        title="askwise",
        version=__version__,
        description="Which feature to acquire next for each case, and how far to trust the prediction so far.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # they load scripts from other sites
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.service = service
    failures.install(app)
    app.include_router(api.ROUTER)
    _add_operation(app)
    _add_examples(app, service)
    if PAGE.is_dir():
        app.mount("/", StaticFiles(directory=PAGE, html=True), name="page")
    app.add_middleware(Guard, service=service)
    return app


def create_worker() -> FastAPI:
    """The application of a worker process, as the process that has started it says."""
    settings = Settings.imported()
    logs.configure(settings.log_values)
    PromptProtocol.configure(settings)
    if settings.supervisor:
        threading.Thread(target=_end_with, args=(settings.supervisor,), daemon=True).start()
    return create_app(askwise.load(settings.folder, settings.key_file, settings.trusted), settings)


def _add_operation(app: FastAPI) -> None:
    asking = CapacityLimiter(2)  # threads of its own: those of the endpoints may all wait for the database

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Whether the process answers."""
        return {"status": "ok"}

    @app.get("/ready", responses={503: {"model": Failure, "description": "The database does not answer"}})
    async def ready(service: Ask) -> dict[str, str]:
        """Whether cases can be served: the selector is loaded and the database answers."""
        await to_thread.run_sync(service.store.ping, limiter=asking)
        return {"status": "ok"}

    @app.get("/metrics", dependencies=[Depends(api.needs("admin"))], responses=api.ERRORS)
    def metrics(service: Ask) -> Response:
        """Counts and times for Prometheus."""
        return Response(service.metrics.exposed(service.checks), media_type="text/plain; version=0.0.4; charset=utf-8")


def _add_examples(app: FastAPI, service: Service) -> None:
    """Describe every message with examples that this selector takes, and answers of the stateless call."""
    describe = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = describe()
            for methods in found["paths"].values():
                for operation in methods.values():
                    _exemplify(operation, service)
        return describe()

    app.openapi = described  # type: ignore[method-assign]


def _exemplify(operation: dict[str, Any], service: Service) -> None:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body is None:
        return
    name = body["schema"]["$ref"].rsplit("/", 1)[1]
    public = (
        not service.callers
    )  # everybody may read this description: where names are asked for, it then says nothing of the selector
    examples = service.description.examples(named=public)[name]
    body["examples"] = {title: {"summary": title, "value": value} for title, value in examples.items()}
    if name == "NextCase" and public:
        answered = {
            title: {"summary": title, "value": service.cases.next(NextCase(**value))}
            for title, value in examples.items()
        }
        operation["responses"]["200"]["content"]["application/json"]["examples"] = answered


def _end_with(supervisor: int) -> None:
    """End this worker when the process that has started it is gone, so that it does not hold the port."""
    while os.getppid() == supervisor:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)
