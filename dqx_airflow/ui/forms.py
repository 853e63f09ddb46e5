"""Guards the requests that change something: each must come from a form on our own pages.

A browser sends the cookie of a signed-in user with any request to Airflow, including one from a
foreign page. So a request must come from this origin, with a token that only our pages contain: it
is signed for one user, and expires.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar
from urllib.parse import parse_qsl, urlsplit

from fastapi import Depends, Request, Response
from itsdangerous import BadSignature, SignatureExpired, URLSafeTimedSerializer
from starlette.exceptions import HTTPException as StarletteHTTPException

from dqx_airflow.ui import airflow
from dqx_airflow.ui.airflow import GetUserDep
from dqx_airflow.ui.responses import back_to, notice, store_client

if TYPE_CHECKING:
    from dqx_airflow.results.query import StoredResults

T = TypeVar("T")

TOKEN_FIELD = "token"  # noqa: S105 (the name of a field)
_VALID_S = 12 * 3600
_MOST_BYTES, _MOST_FIELDS = 16_384, 20
_SALT = "dqx-airflow.form"
_FORM = "application/x-www-form-urlencoded"


class Refused(StarletteHTTPException):
    """A request that must not change anything. `detail` says why."""


def form_token(user: Any) -> str:
    """The token of the forms on a page for this user."""
    return _serializer().dumps(str(user.get_id()))


async def _posted(request: Request, user: GetUserDep) -> Mapping[str, str]:
    require_own_origin(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _FORM:
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"Send a form as {_FORM}.")
    fields = _fields(await _body(request))
    _require_token(fields.get(TOKEN_FIELD, ""), user)
    return fields


Form: TypeAlias = Annotated[Mapping[str, str], Depends(_posted)]
"""The fields of a form that this user sent from one of our pages. Any other request is rejected:
403 if it is from elsewhere or its token is invalid, 413 and 415 if it is not a small form."""


def chosen(
    form: Mapping[str, str], choices: Mapping[str, T], field: str, text: str, longest: int
) -> tuple[T, str]:
    """The choice in a field of a form, and a text of the user about it.

    :raises Refused: it is none of the choices, or the text is too long.
    """
    choice, words = form.get(field, ""), form.get(text, "").strip()
    if choice not in choices or len(words) > longest:
        noun = "comment" if text == "text" else text
        raise Refused(
            HTTPStatus.BAD_REQUEST,
            f"Send {' or '.join(choices)}, with a {noun} of at most {longest} characters.",
        )
    return choices[choice], words


def require_editor(
    request: Request, user: Any, dag_ids: Collection[str], missing: Refused, forbidden: str
) -> None:
    """Returns if the user may see and edit all of some DAGs.

    :raises Refused: as `missing`, if there are none or the user must not know of them; or since
        editing is forbidden.
    """
    if not dag_ids or not all(airflow.may_read(request, user, dag_id) for dag_id in dag_ids):
        raise missing
    if not all(airflow.may_edit(request, user, dag_id) for dag_id in dag_ids):
        raise Refused(HTTPStatus.FORBIDDEN, forbidden)


def recorded_change(
    session: Any,
    user: Any,
    event: str,
    about: Collection[airflow.TaskRef | str],
    facts: dict[str, Any],
    action: Callable[[StoredResults], object],
    address: str,
) -> Response:
    """Records what a user does in Airflow's audit log, and then does it; the response to the form.

    The entries of the log are committed first, and stay if the store refuses.

    :param about: the task instances or DAGs whose readers see the entries.
    :param address: the page of the form, to which the browser is redirected.
    """
    for one in about:
        airflow.record(session, user, event, one, facts)
    session.close()
    problem = store_client().change(action)
    if problem is not None:
        return notice(HTTPStatus.SERVICE_UNAVAILABLE, "Not stored", problem)
    return back_to(address)


def require_own_origin(request: Request) -> None:
    """Returns if the browser says that a page of this server made the request.

    :raises Refused: a page of another origin did, or the origin is missing.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    from_here = [site == "same-origin"] if site is not None else []
    if origin is not None:
        from_here.append(_host(origin) in _own_hosts(request))
    if not from_here or not all(from_here):
        raise Refused(
            HTTPStatus.FORBIDDEN,
            "The request does not come from a page of this Airflow. If a proxy changes the Host "
            "header, set base_url in section [api] of the configuration.",
        )


def _own_hosts(request: Request) -> set[str]:
    """The hosts of this server: a foreign page cannot set either header."""
    origins = [airflow.own_origin(), f"//{request.headers.get('host', '')}"]
    origins.append(f"//{request.headers.get('x-forwarded-host', '').partition(',')[0].strip()}")
    return {_host(origin) for origin in origins} - {""}


def _host(address: str) -> str:
    """Host and port of an address, without a default port."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return ""
    if not parts.hostname:
        return ""
    return parts.hostname if port in (None, 80, 443) else f"{parts.hostname}:{port}"


async def _body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BYTES:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The form is too large.")
    return body


def _fields(body: bytes) -> dict[str, str]:
    """The fields of a form; a repeated field makes the form invalid."""
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=_MOST_FIELDS,
        )
    except ValueError as error:
        raise Refused(HTTPStatus.BAD_REQUEST, "The form cannot be read.") from error
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise Refused(HTTPStatus.BAD_REQUEST, "A field of the form is repeated.")
    return fields


def _require_token(token: str, user: Any) -> None:
    try:
        signed_for = _serializer().loads(token, max_age=_VALID_S)
    except SignatureExpired as error:
        raise Refused(
            HTTPStatus.FORBIDDEN, "The page was open for too long. Reload it, and try again."
        ) from error
    except BadSignature as error:
        raise Refused(HTTPStatus.FORBIDDEN, "The token of the form is not valid.") from error
    if signed_for != str(user.get_id()):
        raise Refused(HTTPStatus.FORBIDDEN, "The token of the form belongs to another user.")


def _serializer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(airflow.signing_key(), salt=_SALT)
