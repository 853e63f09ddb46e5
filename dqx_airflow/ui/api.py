"""The pages as JSON: the values of a page, without its template, below `api/v1/`; and their
description in OpenAPI.

The return type of a page defines its values. Everything else is the same for all of them: who
may read it is decided by the route of the page itself, with its dependencies.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from datetime import date, timedelta
from fractions import Fraction
from functools import cache, wraps
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from fastapi import APIRouter, Request, Response
from fastapi.openapi.utils import get_openapi
from pydantic import (
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    create_model,
)
from starlette.routing import BaseRoute

from dqx_airflow import __version__
from dqx_airflow.ui.json_members import members_of
from dqx_airflow.ui.responses import Notice, Page, without_invisible
from dqx_airflow.values.json_form import number_of_json
from dqx_airflow.values.output_form import head_first, output_key

PREFIX = "/api/v1"


def _shown(value: object) -> object:
    return without_invisible(value) if isinstance(value, str) else value


_IN_JSON: dict[Any, Any] = {
    str: Annotated[str, BeforeValidator(_shown)],
    Fraction: Annotated[Fraction, PlainSerializer(number_of_json, float | str)],
}
"""The types that have another form in JSON than Pydantic gives them."""


class Problem(BaseModel):
    """The reason why there is no answer."""

    status: int
    title: str
    detail: str


class PageRouter(APIRouter):
    """The routes of pages, each also as JSON if its return type is a `Page`."""

    def add_api_route(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        """Adds a page, as HTML and as JSON, with the same parameters and permissions."""
        signature = inspect.signature(endpoint, eval_str=True)
        returned = signature.return_annotation
        options["response_model"] = None
        super().add_api_route(path, _answering(endpoint, signature, _html), **options)
        for kind in (returned, *get_args(returned)):
            if get_origin(kind) is Page:
                options["response_model"] = _model_of(get_args(kind)[0])
                options["responses"] = {"4XX": {"model": Problem}}
                as_json = _answering(endpoint, signature, _json)
                super().add_api_route(f"{PREFIX}{path}", as_json, **options)


def _answering(
    endpoint: Callable[..., Any], signature: inspect.Signature, answer: Callable[[Any], Any]
) -> Callable[..., Any]:
    @wraps(endpoint)
    def serve(**given: Any) -> Any:
        return answer(endpoint(**given))

    serve.__signature__ = signature  # type: ignore[attr-defined]
    return serve


def _html(made: Page[Any] | Response) -> Response:
    return made.html() if isinstance(made, Page) else made


def _json(made: Page[Any] | Response) -> Any:
    if isinstance(made, Page):
        return made.values
    if not isinstance(made, Notice):
        return made
    problem = Problem(status=made.status_code, title=made.title, detail=made.text)
    return Response(problem.model_dump_json(), made.status_code, media_type="application/json")


def in_form_of(request: Request, notice: Notice) -> Response:
    """A message in the form that the request expects: JSON, or an HTML page."""
    answer: Response = _json(notice) if f"{PREFIX}/" in request.url.path else notice
    return answer


def description_of(routes: Iterable[BaseRoute]) -> dict[str, Any]:
    """The description of the JSON below `api/v1/` in OpenAPI."""
    return get_openapi(
        title="dqx-airflow: the pages of gates as JSON",
        version=__version__,
        routes=[route for route in routes if getattr(route, "response_model", None)],
        servers=[{"url": "../.."}],  # from the address of the description, whatever is above it
    )


_OF_A_RUN: Mapping[str, type] = {
    "gate": str,
    "date": date,
    "map_index": int,
    "scheduler_run": str,
    "dag_run_id": str,
}
"""The parts of the key of a run, which are members of whatever has a key."""


def _members(kind: Any) -> dict[str, Any]:
    """The members of a model, by their keys in JSON, beginning with the keys of its run."""
    own = members_of(kind)
    members: dict[str, Any] = {}
    if own.pop("run_key", None) is not None:
        members["run_id"] = (own.pop("run_id"), ...)
        for key, of_key in _OF_A_RUN.items():
            members[key] = (of_key, Field(validation_alias=AliasPath("run_key", key)))
    for name, member in own.items():
        is_duration = timedelta in (member, *get_args(member))
        model = _seconds_of(member) if is_duration else _model_of(member)
        key = output_key(kind.__name__, name, is_duration=is_duration)
        members[key] = (model, Field(validation_alias=name))
    return head_first(members)


def _seconds_of(member: Any) -> Any:
    """The type of a duration, which is a number of seconds, also if it may be None."""
    is_optional = member is not timedelta
    return Annotated[float | None if is_optional else float, BeforeValidator(_in_seconds)]


def _in_seconds(value: timedelta | None) -> float | None:
    return None if value is None else value.total_seconds()


@cache
def _model_of(kind: Any) -> Any:
    """The Pydantic type for a type in JSON: an object for each dataclass and named tuple."""
    arguments = get_args(kind)
    if arguments:
        own = tuple(one if one is ... else _model_of(one) for one in arguments)
        is_union = isinstance(kind, UnionType)
        return (Union if is_union else get_origin(kind))[own]
    if not hasattr(kind, "__match_args__"):
        return _IN_JSON.get(kind, kind)
    members = _members(kind)
    about = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0]
    settings = ConfigDict(from_attributes=True)
    model: Any = create_model(kind.__name__, __config__=settings, __doc__=about, **members)
    return model
