"""Shared by all pages: query parameters, links, paging, templates, and the guard of requests that
change something. Everything is escaped, nothing may mislead the reader.

Airflow itself may live below a path of its host, so no address begins with a slash.

A browser sends the cookie of a signed-in user with any request to Airflow, including one from a
foreign page. So a request that changes something must come from this origin, with a token that only
our pages contain: it is signed for one user, and expires.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from datetime import date, datetime, timezone
from functools import cache, lru_cache
from http import HTTPStatus
from itertools import groupby, islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeAlias, TypeVar
from urllib.parse import parse_qsl, quote_plus, urlsplit
from uuid import UUID

from fastapi import Depends, Request, Response
from itsdangerous import BadSignature, SignatureExpired, URLSafeTimedSerializer
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.exceptions import HTTPException as StarletteHTTPException

from dqx_airflow.diagnostics.renderers import without_controls
from dqx_airflow.diagnostics.verdicts import format_duration, format_value
from dqx_airflow.ui import airflow, airflow_users, report_view
from dqx_airflow.ui.airflow import TaskRef, TaskRun, part_of_path
from dqx_airflow.ui.airflow_settings import known_results
from dqx_airflow.ui.airflow_users import GetUserDep
from dqx_airflow.ui.failing_rows import samples_of
from dqx_airflow.ui.site import MENU, SECTIONS
from dqx_airflow.ui.store import StoreClient, client_of
from dqx_airflow.ui.verdict_text import (
    clause_line,
    counted_value,
    limit_of,
    limit_words,
    raw_of,
    reading_of,
    sentence_of,
    value_of,
)
from dqx_airflow.values import RunKey
from dqx_airflow.values.blank import is_blank

if TYPE_CHECKING:
    from dqx_airflow.results.query import StoredResults


_NUMBER = re.compile(r"[0-9]{1,9}")


def whole_number(text: str) -> int | None:
    """The number in a parameter; None for anything else."""
    return int(text) if _NUMBER.fullmatch(text) else None


def _page_number(page: str = "") -> int:
    return whole_number(page) or 1


PageNumber: TypeAlias = Annotated[int, Depends(_page_number)]
"""The parameter `page`, counted from 1."""


T = TypeVar("T")
ROWS_OF_A_PAGE = 100


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a list, as in its address; empty strings mean all."""

    @property
    def query(self) -> dict[str, str]:
        """The filters as parameters of an address."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Paging:
    """Page `number` of `pages`, counted from 1, of a list of `total` items."""

    number: int
    pages: int
    total: int
    size: int

    @classmethod
    def of(cls, wanted: int, total: int, size: int = ROWS_OF_A_PAGE) -> Paging:
        """The nearest page to the wanted one."""
        pages = max(math.ceil(total / size), 1)
        return cls(min(max(wanted, 1), pages), pages, total, size)

    @property
    def skipped(self) -> int:
        """The number of items on the pages before."""
        return (self.number - 1) * self.size

    def shown(self, items: Sequence[T]) -> tuple[T, ...]:
        """The items of the page."""
        return tuple(items[self.skipped : self.skipped + self.size])


def address(page: str, /, **query: object) -> str:
    """The address of one of our pages, without empty parameters."""
    given = [f"{name}={_quoted(str(value))}" for name, value in query.items() if _is_given(value)]
    return f"{page}?{'&'.join(given)}" if given else page


def _is_given(value: object) -> bool:
    return value is not None and value != ""


@lru_cache(maxsize=20_000)
def _quoted(text: str) -> str:
    """A text as a value in an address; a page has thousands of links with few different ones."""
    return quote_plus(text, errors="replace")


def gate_address(run: TaskRun | TaskRef, attempt: str = "", status: str = "") -> str:
    """The address of the tab of a task instance as a separate page; optionally for one of its
    attempts, and for its assertions of one status."""
    return address(
        "gate",
        dag_id=run.dag_id,
        run_id=run.run_id,
        task_id=run.task_id,
        map_index=run.map_index,
        attempt=attempt,
        status=status,
    )


def runs_address(dag_id: str, task_id: str, map_index: int = -1) -> str:
    """The address of the list of a gate's runs; optionally of one instance of a mapped gate."""
    instance = map_index if map_index >= 0 else ""
    return address("runs", dag_id=dag_id, task_id=task_id, map_index=instance)


def incident_address(
    dag_id: str, task_id: str, map_index: int = -1, date: object = "", incident: str = ""
) -> str:
    """The address of an incident of a gate: the newest, or the incident on a date of its data; of
    several on a date, the one with this id."""
    return address(
        "incident",
        dag_id=dag_id,
        task_id=task_id,
        map_index=map_index if map_index >= 0 else "",
        date=date,
        incident=incident,
    )


def report_address(dag_id: str, task_id: str, key: RunKey, attempt: str, report: str = "") -> str:
    """The address of an attempt's report; of several reports, the one with this run id."""
    task = TaskRef(dag_id, key.dag_run_id, task_id, key.map_index)
    return gate_address(task, report_name(attempt, report))


def report_name(attempt: str, report: str = "") -> str:
    """The part of an address that identifies a report: its attempt, and its run id if there are
    several."""
    return f"{attempt}/{report}" if report else attempt


def dag_address(dag_id: str) -> str:
    """The address of a DAG in Airflow."""
    return f"../dags/{part_of_path(dag_id)}"


def dag_run_address(dag_id: str, run_id: str) -> str:
    """The address of a DAG run in Airflow."""
    return f"{dag_address(dag_id)}/runs/{part_of_path(run_id)}"


def task_address(run: TaskRun | TaskRef) -> str:
    """The address of a task instance in Airflow, which opens with its log."""
    instance = f"/mapped/{run.map_index}" if run.map_index >= 0 else ""
    return f"{dag_run_address(run.dag_id, run.run_id)}/tasks/{part_of_path(run.task_id)}{instance}"


_PAGES = Path(__file__).parent / "pages"
_LONGEST = 4000
_WEB_ADDRESS = re.compile(r"https?://[!-~]+")

ICON = (_PAGES / "icon.svg").read_text(encoding="utf-8")
STYLE = (_PAGES / "style.css").read_text(encoding="utf-8")
SCRIPT = (_PAGES / "page.js").read_text(encoding="utf-8")


def _source(text: str) -> str:
    """The source expression of our only script or style in a Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src {_source(STYLE)}; script-src {_source(SCRIPT)}; "
        "connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
    ),
    "Cache-Control": "no-store",
    # With "no-referrer", browsers would also hide from us that a form is on one of our pages.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
"""The headers of every response: no scripts or styles but ours, nothing cached."""


def render(template: str, **values: Any) -> str:
    """The HTML of a page, such as `board.html`."""
    return _environment().get_template(template).render(template=template, **values)


_MOST_STRIPS = 2000
_kept_strips: dict[int, tuple[Sequence[object], Markup]] = {}
"""The last strips of runs with the cells that they are made of, by the identity of these."""


def strip_of(cells: Sequence[object]) -> Markup:
    """The bars of the last runs of a gate: the last ones, if none of its runs has changed since. A
    board has thousands of bars, and few are new when it refreshes.

    :param cells: the cells of a row, which are the same object until a run changes.
    """
    known = _kept_strips.get(id(cells))
    if known is not None and known[0] is cells:
        return known[1]
    parts: Any = _environment().get_template("parts.html").module
    drawn = Markup(parts.strip(cells))  # noqa: S704 (escaped by the template)
    _kept_strips[id(cells)] = cells, drawn
    for oldest in [*islice(_kept_strips, max(len(_kept_strips) - _MOST_STRIPS, 0))]:
        _kept_strips.pop(oldest, None)
    return drawn


def without_invisible(text: str) -> str:
    """The text without invisible characters: direction marks, control characters.

    Lone surrogates are among them, with which no response could be encoded.
    """
    shortened = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    if shortened.isprintable():
        return shortened
    return without_controls(shortened, keep="\n")


_DOCS = "https://github.com/dqx-airflow/dqx-airflow/blob/main/dqx_airflow/docs"


def documentation(page: str) -> str:
    """The address of a page of the documentation, such as `contracts.md#contacts-and-runbooks`."""
    return f"{_DOCS}/{page}"


_CALLED_BY_PAGES = (
    address,
    dag_address,
    dag_run_address,
    documentation,
    gate_address,
    incident_address,
    report_address,
    report_name,
    runs_address,
    task_address,
    clause_line,
    report_view.location_in,
    report_view.partial_view,
    report_view.promotion_of,
    reading_of,
)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_PAGES),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        finalize=_printed,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {function.__name__: function for function in _CALLED_BY_PAGES}
    environment.globals["spoken"] = spoken
    environment.globals["strip_of"] = strip_of
    environment.globals["as_of"] = _as_of
    environment.globals["menu"] = MENU
    environment.globals["sections"] = SECTIONS
    environment.globals["style"] = Markup(STYLE)  # noqa: S704 (our own file)
    environment.globals["script"] = Markup(SCRIPT)  # noqa: S704 (our own file)
    environment.tests["web_address"] = _is_web_address
    environment.filters |= {
        "value": format_value,
        "duration": format_duration,
        "shown": value_of,
        "counted": counted_value,
        "sentence": sentence_of,
        "limit_words": limit_words,
        "limit": limit_of,
        "raw": raw_of,
        "samples": samples_of,
        "ago": _ago,
        "moment": _timestamp,
        "short": _short,
        "clock": _clock,
        "iso": _iso,
        "count": _count,
    }
    return environment


def _printed(value: object) -> object:
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return without_invisible(value)
    return "" if value is None else value


def _is_web_address(text: object) -> bool:
    return isinstance(text, str) and _WEB_ADDRESS.fullmatch(text) is not None


@lru_cache(maxsize=20_000)
def _timestamp(value: date | datetime | None) -> str:
    if isinstance(value, datetime):
        return f"{_utc(value):%Y-%m-%d %H:%M:%S} UTC"
    return value.isoformat() if value else ""


def _ago(value: datetime) -> str:
    """The elapsed time in its largest unit, and the time to come in two, since it is a deadline:
    `2 hours ago`, `in 1 h 59 min`."""
    past = (datetime.now(timezone.utc) - _utc(value)).total_seconds()
    if past >= 60:
        return f"{' '.join(format_duration(past).split()[:2])} ago"
    if past >= 0:
        return "just now"
    minutes = int(-past // 60)
    if minutes == 0:
        return "in less than a minute"
    parts = ((minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "min"))
    first = next(place for place, (count, _) in enumerate(parts) if count)
    shown = [f"{count} {unit}" for count, unit in parts[first : first + 2] if count]
    return f"in {' '.join(shown)}"


def _short(value: datetime) -> str:
    """A time in a list, in which the year and the seconds are noise: `11-28 03:12 UTC`."""
    return f"{_utc(value):%m-%d %H:%M} UTC"


def _clock(value: datetime) -> str:
    """The time of a day: `03:12:05 UTC`."""
    return f"{_utc(value):%H:%M:%S} UTC"


def _count(value: int, one: str, several: str = "") -> str:
    """A number with the noun that it counts: `1 row`, `12,480 rows`.

    :param several: the plural; by default the noun with an `s`.
    """
    return f"{value:,} {one if value == 1 else several or f'{one}s'}"


def spoken(states: Iterable[str]) -> str:
    """A strip of states in words: `12 passed, then 2 blocked`."""
    return ", then ".join(f"{len([*own])} {state}" for state, own in groupby(states))


def _as_of() -> datetime:
    return datetime.now(timezone.utc)


@lru_cache(maxsize=20_000)
def _iso(value: datetime) -> str:
    return f"{_utc(value):%Y-%m-%dT%H:%M:%SZ}"


def _utc(value: datetime) -> datetime:
    """The timestamp in UTC, which is also assumed without a time zone."""
    return value.astimezone(timezone.utc) if value.tzinfo else value.replace(tzinfo=timezone.utc)


class Page(Generic[T]):
    """A page, such as `board.html`, that is not written yet, and also served as JSON.

    :param values: a named tuple of the values on the page.
    :param more: values that only the template needs, such as tokens and choices of forms.
    """

    def __init__(self, template: str, values: T, **more: object) -> None:
        self.template = template
        self.values = values
        self.more = more

    def html(self) -> Response:
        """The page as HTML. The template has each value by its name, and all of them as `page`."""
        values: Any = self.values
        named = {"page": values, **values._asdict(), **self.more}
        return Response(render(self.template, **named), media_type="text/html")


_ANSWERED: ContextVar[Mapping[str, str] | None] = ContextVar("answered_form", default=None)
"""The fields of the form that is being answered."""

_TYPED = ("reason", "owner", "until", "below", "above")
"""The fields of forms into which people type."""


class Notice(Response):
    """A page with only a message; in answer to a form also what was typed into it, and the way back
    to its page."""

    def __init__(self, status: int, title: str, text: str) -> None:
        form = _ANSWERED.get() or {}
        typed = [form[field] for field in _TYPED if form.get(field, "").strip()]
        back = _page_of_form(form) if form else ""
        content = render("notice.html", title=title, text=text, typed=typed, back=back)
        super().__init__(content, status, media_type="text/html")
        self.title = title
        self.text = text


def _page_of_form(form: Mapping[str, str]) -> str:
    """The page on which a form is: an address that we construct, whatever the form contains."""
    dag_id, task_id = form.get("dag_id", ""), form.get("task_id", "")
    if dag_id and task_id and "date" in form:
        index = whole_number(form.get("map_index", ""))
        at = -1 if index is None else index
        return incident_address(dag_id, task_id, at, form["date"], form.get("incident", ""))
    if "proposal" in form:
        return address("review")
    return address("alerts" if "ground_truth" in form or "report" in form else "slices")


def back_to(address: str) -> Response:
    """Redirects the browser to the page of a form after it was processed.

    :param address: relative, as from `addresses.address`.
    """
    return Response(status_code=HTTPStatus.SEE_OTHER.value, headers={"Location": address})


def store_client() -> StoreClient:
    """The client of the results store configured for this server."""
    results = known_results()
    return client_of(results.root, results.storage_options) if results else client_of(None)


TOKEN_FIELD = "token"  # noqa: S105 (the name of a field)
_VALID_S = 12 * 3600
_MOST_BYTES = 16_384
_MOST_FIELDS = 20
_MOST_PICKED = 600
_SALT = "dqx-airflow.form"
_FORM = "application/x-www-form-urlencoded"


class Refused(StarletteHTTPException):
    """A request is refused, and changes nothing. `detail` is the reason."""


_DECIDING = Lock()


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Answers one form after the other: the second of two that are sent at once finds what the
    first has done. The server has other processes, whose notes have ids by which they are stored
    once."""
    with _DECIDING:
        yield


def no_longer_open(ends: Sequence[str]) -> Refused:
    """The answer to a form that comes after someone else's.

    :param ends: what is so now: how each date ended, and by whom.
    """
    more = f"; and {len(ends) - _MOST_ENDS} more" if len(ends) > _MOST_ENDS else ""
    return Refused(HTTPStatus.CONFLICT, f"{'; '.join(ends[:_MOST_ENDS])}{more}. {UNCHANGED}")


UNCHANGED = "Nothing has been changed now."
_MOST_ENDS = 5

FOREIGN_FORM = Refused(HTTPStatus.BAD_REQUEST, "The form does not come from one of these pages.")


def note_id(text: str) -> UUID:
    """The id that a page assigned to the note of a form, so that a form that is sent twice is
    stored once.

    :raises Refused: it is not an id.
    """
    try:
        return UUID(text)
    except ValueError as error:
        raise FOREIGN_FORM from error


def form_token(user: Any) -> str:
    """The token of the forms on a page for this user."""
    return _serializer().dumps(str(user.get_id()))


async def _posted(request: Request, user: GetUserDep) -> Mapping[str, str]:
    require_own_origin(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _FORM:
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"Send a form as {_FORM}.")
    fields = _fields(await _body(request))
    _ANSWERED.set(fields)
    _require_token(fields.get(TOKEN_FIELD, ""), user)
    return fields


Form: TypeAlias = Annotated[Mapping[str, str], Depends(_posted)]
"""The fields of a form that this user sent from one of our pages. Any other request is rejected:
403 if it is from elsewhere or its token is invalid, 413 and 415 if it is not a small form."""


def chosen(
    form: Mapping[str, str], choices: Mapping[str, T], field: str, longest: int
) -> tuple[T, str]:
    """The choice in a field of a form, and the reason that the user typed.

    :raises Refused: it is none of the choices, or the reason is too long.
    """
    choice = form.get(field, "")
    reason = form.get("reason", "").strip()
    reason = "" if is_blank(reason) else reason
    if choice not in choices or len(reason) > longest:
        raise Refused(
            HTTPStatus.BAD_REQUEST,
            f"Send {' or '.join(choices)}, with a reason of at most {longest} characters.",
        )
    return choices[choice], reason


def require_editor(
    visitor: airflow_users.Visitor, dag_ids: Collection[str], missing: Refused, forbidden: str
) -> None:
    """Returns if the user may see and edit all of some DAGs.

    :raises Refused: as `missing`, if there are none or the user may not see them; or since
        editing is forbidden.
    """
    if not dag_ids or not all(map(visitor.may_read, dag_ids)):
        raise missing
    if not all(map(visitor.may_edit, dag_ids)):
        raise Refused(HTTPStatus.FORBIDDEN, forbidden)


def recorded_change(
    visitor: airflow_users.Visitor,
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
    return recorded_changes(visitor, event, [(one, facts) for one in about], action, address)


def recorded_changes(
    visitor: airflow_users.Visitor,
    event: str,
    entries: Iterable[tuple[airflow.TaskRef | str, dict[str, Any]]],
    action: Callable[[StoredResults], object],
    address: str,
) -> Response:
    """Records what a user does in Airflow's audit log, each entry for the readers of its own task
    instance or DAG, and then does it; the response to the form."""
    for one, facts in entries:
        visitor.record(event, one, facts)
    visitor.session.close()
    problem = store_client().change(action)
    if problem is not None:
        return Notice(HTTPStatus.SERVICE_UNAVAILABLE, "Not stored", problem)
    return back_to(address)


def require_own_origin(request: Request) -> None:
    """Returns if the browser reports a page of this server as the origin of the request.

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
    origins = [airflow_users.own_origin(), f"//{request.headers.get('host', '')}"]
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
    """The fields of a form; a repeated field makes the form invalid, apart from the checked rows of
    a list, which are one field."""
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=_MOST_PICKED + _MOST_FIELDS,
        )
    except ValueError as error:
        raise Refused(HTTPStatus.BAD_REQUEST, "The form cannot be read.") from error
    picked = [value for name, value in pairs if name == PICKED]
    pairs = [pair for pair in pairs if pair[0] != PICKED]
    if len(pairs) > _MOST_FIELDS:
        raise Refused(HTTPStatus.BAD_REQUEST, "The form has too many fields.")
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise Refused(HTTPStatus.BAD_REQUEST, "A field of the form is repeated.")
    return fields | ({PICKED: " ".join(picked)} if picked else {})


PICKED = "pick"
"""The field of the checked rows of a list: their keys, with spaces between them."""


def key_of_row(*parts: object) -> str:
    """The key of a row of a list, by which a form refers to it."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


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
    return URLSafeTimedSerializer(airflow_users.signing_key(), salt=_SALT)
