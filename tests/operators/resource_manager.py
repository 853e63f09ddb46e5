"""A stand-in for YARN's ResourceManager: its REST interface for one application."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.http_stub import Asked, Reply, http_stub

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

    def answer(asked: Asked) -> Reply:
        if asked.method == "PUT":
            body = asked.json()
            manager.killed = (asked.path, body) == (f"{PATH}/state", {"state": "KILLED"})
            return Reply(202, body)
        state = manager.next_state()
        if asked.path != PATH or state is None:
            return Reply(503, {})
        final = {"FINISHED": "SUCCEEDED", "RUNNING": "UNDEFINED"}.get(state, state)
        application = {"state": state, "finalStatus": final, "diagnostics": manager.diagnosis}
        return Reply(200, {"app": application})

    with http_stub(answer) as manager.address:
        yield manager
