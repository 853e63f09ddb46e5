"""Finds secrets in locations and values, and removes them from texts that are logged or sent.

What a secret looks like is in `secret_forms`. Standard library only: every package may use it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, unquote

from dqx_airflow.values.secret_forms import (
    find_token,
    has_secret_form,
    hide_values,
    is_secret_setting,
    tokens,
)

HIDDEN = "***"

# Up to the last @ before the path, since a password may contain one. AWS keys also contain slashes;
# a port does not begin a password.
_USERINFO = re.compile(
    r"(?P<head>(?:\b[A-Za-z][A-Za-z0-9+.-]*:)?//)"
    r"(?P<user>[^/\s'\"]*|[^/\s:'\"]+:(?!\d+/)[^\s@'\"]+)@"
)
_QUERY = re.compile(r"(?P<head>[?&;#](?P<name>[\w.-]+)=)[^&\s'\";,)]+")
_QUERY_NAMES = frozenset(("sig", "sas", "key", "auth"))
_SHORTEST_CODE = 32
"""Characters of a key of Azure Functions: `?code=CH` is none."""
_CONTAINER = re.compile(r"(?:abfss?|wasbs?)://", re.I)
# Everything in `auth` except its type and addresses is a secret.
_PUBLIC_NAME = re.compile(r"type|.*(?:endpoint|fields?|buffer|type|url)", re.I)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without credentials in URLs, values of secret-like keys, and `secrets`."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return hide_values(redact_urls(text), HIDDEN)


def redact_urls(text: str) -> str:
    """`text` without credentials in URLs, and without tokens of known forms: for texts about data,
    in which `token = 3` is no secret."""
    without_accounts = _USERINFO.sub(_without_user, text)
    return tokens().sub(HIDDEN, _QUERY.sub(_without_parameter, without_accounts))


def holds_credentials(place: str) -> bool:
    """True for a path, a table or a URL that contains a password, a token or a signature.

    >>> holds_credentials("https://account.example/orders.csv?sv=1&sig=abc")
    True
    >>> holds_credentials("abfss://box@account.dfs.core.windows.net/orders")
    False
    """
    if any(_without_parameter(match) != match[0] for match in _QUERY.finditer(place)):
        return True
    if find_token(place) is not None:
        return True
    return any(
        ":" in match["user"] or match["head"].lower().startswith(("http", "ftp"))
        for match in _USERINFO.finditer(place)
        if match["head"] != "//" and _without_user(match) != match[0]
    )


def may_be_secret(value: str) -> bool:
    """True for a value that holds credentials, or has the form of a key or a token.

    >>> may_be_secret("AccountName=lake;AccountKey=c2VjcmV0")
    True
    >>> may_be_secret("token = 3")
    False
    """
    return holds_credentials(value) or has_secret_form(value)


def secrets_of(config: Any) -> frozenset[str]:
    """The secrets in a configuration: under secret-like keys, and inside URLs.

    Their values are needed to redact them where a library quotes them without context.
    """
    return frozenset(secret for secret in _secrets_in(config, hidden=False) if len(secret) >= 4)


class RedactingFilter(logging.Filter):
    """Redacts the records of a logger before any handler sees them, tracebacks included.

    The OpenLineage client logs configuration that it cannot parse, and transport errors,
    unredacted. `errors` counts the records at level ERROR and above.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self.secrets = frozenset(secrets)
        self.errors = 0

    def filter(self, record: logging.LogRecord) -> bool:
        self.errors += record.levelno >= logging.ERROR
        try:
            message = record.getMessage()
        except Exception:  # an invalid logging call in other code
            message = str(record.msg)
        # The traceback of a parser quotes the lines of the file, so only its last line is kept.
        if record.exc_info and record.exc_info[1] is not None:
            message = f"{message} ({type(record.exc_info[1]).__name__})"
        record.msg = redact(message, self.secrets)
        record.args = ()
        record.exc_info = record.exc_text = record.stack_info = None
        return True


def _without_user(match: re.Match[str]) -> str:
    if _CONTAINER.fullmatch(match["head"]) and ":" not in match["user"]:
        return match[0]  # container@account, no secret
    return f"{match['head']}{HIDDEN}@"


def _without_parameter(match: re.Match[str]) -> str:
    name = match["name"]
    is_code = name.lower() == "code" and len(match[0]) - len(match["head"]) >= _SHORTEST_CODE
    if is_code or name.lower() in _QUERY_NAMES or is_secret_setting(name):
        return f"{match['head']}{HIDDEN}"
    return match[0]


def _secrets_in(value: Any, *, hidden: bool) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            name = str(key)
            # Everything in `auth` except its type and addresses, everything in the mapping of a
            # secret.
            may_be = hidden or is_secret_setting(name)
            yield from _secrets_in(item, hidden=may_be and not _PUBLIC_NAME.fullmatch(name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _secrets_in(item, hidden=hidden)
    elif isinstance(value, str):
        if hidden:
            yield value
        for match in _USERINFO.finditer(value):
            yield match["user"]
            password = match["user"].partition(":")[2]
            yield from (password, unquote(password), quote(password, safe=""))
