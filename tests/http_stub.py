"""A server of this machine that stands in for another one."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Asked:
    """A request to the server."""

    method: str
    path: str
    headers: Message
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """The response of the server; a body other than bytes is sent as JSON."""

    status: int = 200
    body: object = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def http_stub(answer: Callable[[Asked], Reply | None]) -> Iterator[str]:
    """The address of a server that responds with `answer`; it cuts the connection for None."""

    class Handler(BaseHTTPRequestHandler):
        def reply(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            given = answer(Asked(self.command, self.path, self.headers, body))
            self.close_connection = True
            if given is None:
                return
            is_raw = isinstance(given.body, bytes)
            content = given.body if is_raw else json.dumps(given.body).encode()
            kind = {} if is_raw else {"Content-Type": "application/json"}
            self.send_response(given.status)
            headers = {"Content-Length": str(len(content)), **kind, **given.headers}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = reply  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
