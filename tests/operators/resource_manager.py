"""A stand-in for YARN's ResourceManager: its REST interface for one application."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

APPLICATION = "application_1700000000000_0001"
PATH = f"/ws/v1/cluster/apps/{APPLICATION}"


@dataclass
class ResourceManager:
    """Answers with `states`, one for each question; the last one repeats. `None` is no answer."""

    address: str = ""
    states: list[str | None] = field(default_factory=lambda: ["FINISHED"])
    asked: int = 0
    killed: bool = False
    diagnosis: str | None = ""

    def will_say(self, *states: str | None, diagnosis: str | None = "") -> None:
        self.states, self.asked, self.diagnosis = [*states], 0, diagnosis

    def next_state(self) -> str | None:
        if self.killed:
            return "KILLED"
        self.asked += 1
        return self.states[min(self.asked, len(self.states)) - 1]


@contextmanager
def resource_manager() -> Iterator[ResourceManager]:
    """A server on a free port of this machine."""
    manager = ResourceManager()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state = manager.next_state()
            if self.path != PATH or state is None:
                self.answer(503, {})
                return
            final = {"FINISHED": "SUCCEEDED", "RUNNING": "UNDEFINED"}.get(state, state)
            application = {"state": state, "finalStatus": final, "diagnostics": manager.diagnosis}
            self.answer(200, {"app": application})

        def do_PUT(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            manager.killed = (self.path, body) == (f"{PATH}/state", {"state": "KILLED"})
            self.answer(202, body)

        def answer(self, status: int, body: object) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    manager.address = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield manager
    server.shutdown()
    server.server_close()
