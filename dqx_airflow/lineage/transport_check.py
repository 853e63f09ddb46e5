"""Reports which transport is configured and whether it can be reached, for `dql doctor`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit, urlunsplit

from openlineage.client.transport import Transport
from openlineage.client.transport.composite import CompositeTransport
from openlineage.client.transport.file import FileTransport
from openlineage.client.transport.http import HttpTransport
from openlineage.client.transport.transform import TransformTransport

from dqx_airflow.lineage.transport import Watched
from dqx_airflow.redact import redact

_PROBE_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class LineageCheck:
    """`ok` is False if events would not be sent. `line` describes it in one line, without
    secrets."""

    ok: bool
    line: str


def check_transport(transport: Transport) -> LineageCheck:
    """Tries to reach a transport, for two seconds at most. Nothing is sent, nothing is written."""
    if isinstance(transport, Watched):
        transport = transport.inner
    if isinstance(transport, CompositeTransport):
        parts = [check_transport(part) for part in transport.transports]
        return LineageCheck(
            all(part.ok for part in parts), "composite: " + "; ".join(part.line for part in parts)
        )
    if isinstance(transport, HttpTransport):
        return _check_http(transport)
    if isinstance(transport, FileTransport):
        return _check_file(transport)
    if isinstance(transport, TransformTransport):
        inner = check_transport(transport.transport)
        return LineageCheck(inner.ok, f"transform: {inner.line}")
    if transport.kind == "noop":
        return LineageCheck(True, "noop: OpenLineage is switched off, no events are sent")
    if transport.kind == "console":
        return LineageCheck(True, "console: events go to the log of the job")
    return LineageCheck(True, f"{transport.kind or type(transport).__name__}: not tried")


def one_line(error: BaseException, limit: int = 300) -> str:
    """An exception as `Kind: message` in one short line, without credentials."""
    line = " ".join(redact(f"{type(error).__name__}: {error}").split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _check_http(transport: HttpTransport) -> LineageCheck:
    import requests

    address = redact(urljoin(transport.url, transport.endpoint))
    options: dict[str, Any] = {"verify": transport.verify}
    if transport.cert is not None:
        options["cert"] = transport.cert
    try:
        # Any response is enough, even 404. HEAD has no effects.
        answer = requests.head(
            _without_user(transport.url),
            timeout=_PROBE_TIMEOUT_S,
            allow_redirects=False,
            **options,
        )
    except (requests.RequestException, ValueError, OSError) as error:
        return LineageCheck(False, f"http: {address} cannot be reached ({one_line(error)})")
    return LineageCheck(True, f"http: {address} can be reached (HTTP {answer.status_code})")


def _check_file(transport: FileTransport) -> LineageCheck:
    config = transport.config
    where = redact(config.log_file_path)
    if config._needs_fsspec():
        return LineageCheck(True, f"file: {where}, not tried")
    path = Path(urlsplit(config.log_file_path).path if "://" in where else config.log_file_path)
    if config.append and path.exists():
        if path.is_file() and os.access(path, os.W_OK):
            return LineageCheck(True, f"file: {where} can be written")
        return LineageCheck(False, f"file: {where} cannot be written")
    folder = path.parent
    if not folder.is_dir():
        return LineageCheck(
            False, f"file: {where} cannot be written: folder {folder} does not exist"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        return LineageCheck(False, f"file: {where}, the folder {folder} cannot be written")
    return LineageCheck(True, f"file: {where} can be written")


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
