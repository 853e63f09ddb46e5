"""From a page and its values to HTML: everything is escaped, nothing may mislead the reader."""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import date, datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from dqx_airflow.diagnostics.verdicts import format_duration, format_value
from dqx_airflow.plugin import addresses
from dqx_airflow.plugin.clause_line import clause_line
from dqx_airflow.plugin.dataset_locations import location_in
from dqx_airflow.plugin.value_format import limit_of, raw_of, value_of

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
    return _environment().get_template(template).render(**values)


def plain(text: str) -> str:
    """The text without invisible characters: direction marks, control characters.

    Lone surrogates are among them, with which no response could be encoded.
    """
    shortened = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    if shortened.isprintable():
        return shortened
    return "".join(
        character if character.isprintable() or character == "\n" else "\N{REPLACEMENT CHARACTER}"
        for character in shortened
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_PAGES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "address": addresses.address,
        "clause_line": clause_line,
        "dag_address": addresses.dag_address,
        "dag_run_address": addresses.dag_run_address,
        "gate_address": addresses.gate_address,
        "incident_address": addresses.incident_address,
        "location_in": location_in,
        "report_address": addresses.report_address,
        "runs_address": addresses.runs_address,
        "task_address": addresses.task_address,
        "style": Markup(STYLE),  # noqa: S704 (our own file)
        "script": Markup(SCRIPT),  # noqa: S704 (our own file)
    }
    environment.tests["web_address"] = _is_web_address
    environment.filters |= {
        "value": format_value,
        "duration": format_duration,
        "shown": value_of,
        "limit": limit_of,
        "raw": raw_of,
        "ago": _ago,
        "moment": _timestamp,
        "iso": _iso,
    }
    return environment


def _shown(value: object) -> object:
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return plain(value)
    return "" if value is None else value


def _is_web_address(text: object) -> bool:
    return isinstance(text, str) and _WEB_ADDRESS.fullmatch(text) is not None


def _timestamp(value: date | datetime | None) -> str:
    if isinstance(value, datetime):
        return f"{_utc(value):%Y-%m-%d %H:%M:%S} UTC"
    return value.isoformat() if value else ""


def _ago(value: datetime) -> str:
    """The elapsed time in its largest unit: `2 hours ago`."""
    past = (datetime.now(timezone.utc) - _utc(value)).total_seconds()
    return f"{' '.join(format_duration(past).split()[:2])} ago" if past >= 60 else "just now"


def _iso(value: datetime) -> str:
    return f"{_utc(value):%Y-%m-%dT%H:%M:%SZ}"


def _utc(value: datetime) -> datetime:
    """The timestamp in UTC, which is also assumed without a time zone."""
    return value.astimezone(timezone.utc) if value.tzinfo else value.replace(tzinfo=timezone.utc)
