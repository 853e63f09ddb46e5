"""The address and the secret of a webhook, in its connection in Airflow."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

_PREFIX = "whsec_"
_LEAST = 24
_MOST = 64
_FORM = (
    "write whsec_ and the base64 of 24 to 64 random bytes, such as "
    "whsec_$(openssl rand -base64 32), or leave the password out to send events unsigned"
)
_OTHER_KEY = re.compile(r"(?!whsec_)(?i:wh(?:sec|sk|pk)[_-])")
"""The beginning of a key for other signatures, or of a misspelled secret. It is base64 for URLs,
too: events would be signed with a key that no receiver has."""
_BASE64 = re.compile(r"([A-Za-z0-9+/]*|[A-Za-z0-9_-]*)={0,2}")
_SCHEMES = ("http", "https")


class WebhookMistake(Exception):  # noqa: N818 - a mistake of a user, in one line
    """An event cannot be delivered over a connection; the message contains no secrets."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """The address for events, and the form in which they are sent.

    `key` signs them; None if they are not signed. `template` is sent instead of an event, with its
    fields, and `password`, filled in.
    """

    address: str = field(repr=False)  # may be a secret
    key: bytes | None = field(default=None, repr=False)
    template: Any = None
    password: str = field(default="", repr=False)


def webhook_of(connection: Any) -> Webhook:
    """The webhook that a connection of Airflow describes.

    Without a host, the password is the address, and events are not signed. A body from the
    connection is not signed either.

    :raises WebhookMistake: the connection cannot be used.
    """
    template = _body_of(connection)
    password = connection.password
    if not connection.host:
        if not (password or "").strip():
            raise WebhookMistake(
                "it has no host: write the address there, such as https://HOST/PATH"
            )
        _require_address(password, "its password, which is the address since it has no host,")
        return Webhook(password, template=template)
    address = address_of(connection)
    if template is not None:
        return Webhook(address, template=template, password=password or "")
    key = None if password is None else key_of(password)
    return Webhook(address, key)


def address_of(connection: Any) -> str:
    """The address that Airflow's `HttpHook` builds from the host, the schema and the port.

    :raises WebhookMistake: events cannot be posted to this address.
    """
    host = str(connection.host)
    schema = str(connection.schema or "")
    port = connection.port
    if "://" in host:
        address = host
    elif schema and schema.lower() not in _SCHEMES:
        raise WebhookMistake(
            "its schema is neither http nor https, but perhaps the path of a URI: write the whole "
            "address into the host, such as https://HOST/PATH, in a URI of Airflow percent-encoded"
        )
    elif not schema and (connection.conn_type or "").lower() == "https":
        address = f"https://{host}"  # where `HttpHook` would send in clear text
    else:
        address = f"{schema or 'http'}://{host}"
    _require_address(address, "its host")
    if port:
        part = _part_behind_host(address)
        if part is not None:
            raise WebhookMistake(
                f"it has a port behind the {part} in its host: write the port into the host, such "
                "as https://HOST:8443/PATH"
            )
        address = f"{address.rstrip('/')}:{port}"
        _require_address(address, "its host with its port")
    return address


def _part_behind_host(address: str) -> str | None:
    """The first part of an address behind its host: a path, a query or a fragment."""
    parts = urlsplit(address)
    if parts.path.strip("/"):
        return "path"
    if parts.query:
        return "query"
    return "fragment" if parts.fragment else None


def key_of(secret: str) -> bytes:
    """Decodes a secret of Standard Webhooks, base64 or URL-safe base64; padding may be missing.

    https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md

    :raises WebhookMistake: it is another form, or has too few or too many bytes.
    """
    text = secret.strip().removeprefix(_PREFIX)
    other = _OTHER_KEY.match(text)
    if other is not None:
        raise WebhookMistake(
            f"its password begins with {other[0]}, and is not a shared secret: {_FORM}"
        )
    if not text:
        raise WebhookMistake(f"its password is an empty secret: {_FORM}")
    digits = text.rstrip("=")
    if not _BASE64.fullmatch(text) or len(digits) % 4 == 1:
        raise WebhookMistake(f"its password is not base64: {_FORM}")
    key = base64.urlsafe_b64decode(digits + "=" * (-len(digits) % 4))
    if not _LEAST <= len(key) <= _MOST:
        raise WebhookMistake(f"its password is a secret of {len(key)} bytes: {_FORM}")
    return key


def _body_of(connection: Any) -> Any:
    """The body in the connection that replaces the event; None without one."""
    extra = connection.extra_dejson
    if not isinstance(extra, Mapping) or "body" not in extra:
        return None
    if not extra["body"]:
        raise WebhookMistake("the body in its extra is empty: leave it out, or write a JSON object")
    return extra["body"]


def _require_address(address: str, what: str) -> None:
    try:
        parts = urlsplit(address.strip())
        is_sound = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:  # such as a port that is not a number
        is_sound = False
    if not is_sound:
        raise WebhookMistake(f"{what} is not an address: write it as https://HOST/PATH")
