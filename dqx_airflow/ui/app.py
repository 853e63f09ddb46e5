"""The app that serves the pages, mounted into Airflow's API server under `/dqx`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from importlib import import_module

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException as StarletteHTTPException

from dqx_airflow.ui.airflow_users import SIGNED_IN
from dqx_airflow.ui.api import PREFIX, description_of, in_form_of
from dqx_airflow.ui.responses import HEADERS, ICON, Notice, Refused
from dqx_airflow.ui.site import MODULES

log = logging.getLogger(__name__)


app = FastAPI(
    title="dqx-airflow", dependencies=[SIGNED_IN], docs_url=None, redoc_url=None, openapi_url=None
)

for module in MODULES:
    app.include_router(import_module(f"dqx_airflow.ui.{module}").router)

_Next = Callable[[Request], Awaitable[Response]]


@app.middleware("http")
async def guard(request: Request, call_next: _Next) -> Response:
    """Adds our headers to every response, including errors."""
    try:
        response = await call_next(request)
    except Exception:
        log.exception("the page %s failed", request.url.path)
        response = Notice(
            HTTPStatus.INTERNAL_SERVER_ERROR,
            "This page failed",
            "See the log of the API server for the cause. The report itself is not affected: "
            "`dql results show` prints it.",
        )
        response = in_form_of(request, response)
    response.headers.update(HEADERS)
    return response


@app.exception_handler(StarletteHTTPException)
async def refuse(request: Request, error: StarletteHTTPException) -> Response:
    advice = {
        HTTPStatus.UNAUTHORIZED: "Sign in to Airflow first.",
        HTTPStatus.FORBIDDEN: "You do not have permission to read the XComs of this DAG.",
    }
    status = HTTPStatus(error.status_code)
    text = error.detail if isinstance(error, Refused) else advice.get(status, "")
    return in_form_of(request, Notice(status, status.phrase, text))


@app.get(f"{PREFIX}/openapi.json", response_model=None)
def openapi() -> object:
    """The description of all pages that are also served as JSON."""
    return description_of(app.routes)


@app.get("/icon.svg")
def icon() -> Response:
    """The icon of the pages in Airflow's menus."""
    return Response(ICON, media_type="image/svg+xml")
