"""An editor for tests: starts `dql lsp` and exchanges its messages."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ANSWER_S = 30


class Editor:
    """One editor with one server. Positions are (line, character) from 0."""

    def __init__(self, folder: Path, **capabilities: Any) -> None:
        self.folder = folder
        command = [str(Path(sys.executable).parent / "dql"), "lsp"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.unread: list[dict[str, Any]] = []
        self._arriving: queue.Queue[dict[str, Any]] = queue.Queue()
        self._number = 0
        threading.Thread(target=self._listen, daemon=True).start()
        parameters = {
            "processId": None,
            "rootUri": folder.as_uri(),
            "workspaceFolders": [{"uri": folder.as_uri(), "name": "suites"}],
            "capabilities": capabilities,
        }
        self.offered = self.ask("initialize", parameters)["capabilities"]
        self.tell("initialized", {})

    def tell(self, method: str, parameters: Any) -> None:
        self._send({"method": method, "params": parameters})

    def ask(self, method: str, parameters: Any = None) -> Any:
        """The result of a request, or its error."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": parameters})
        answer = self._wait(lambda message: message.get("id") == self._number)
        return answer["error"] if "error" in answer else answer["result"]

    def ask_at(self, name: str, question: str, position: tuple[int, int], **more: Any) -> Any:
        where = {"line": position[0], "character": position[1]}
        document = {"uri": self.uri(name)}
        return self.ask(
            f"textDocument/{question}", {"textDocument": document, "position": where, **more}
        )

    def notification(self, method: str) -> Any:
        """The parameters of the next notification of a kind."""
        return self._wait(lambda message: message.get("method") == method)["params"]

    def findings(self, name: str) -> list[dict[str, Any]]:
        """The diagnostics that are published next for a file."""
        found: list[dict[str, Any]] = self.published_next(name)["diagnostics"]
        return found

    def published_next(self, name: str) -> dict[str, Any]:
        """What is published next for a file."""
        found: dict[str, Any] = self._wait(lambda message: self._is_published(message, name))[
            "params"
        ]
        return found

    def published(self, name: str) -> Iterator[dict[str, Any]]:
        """What has arrived for a file and was not read yet."""
        while not self._arriving.empty():
            self.unread.append(self._arriving.get())
        for message in self.unread:
            if self._is_published(message, name):
                yield message["params"]

    def _is_published(self, message: dict[str, Any], name: str) -> bool:
        is_published = message.get("method") == "textDocument/publishDiagnostics"
        return is_published and message["params"]["uri"] == self.uri(name)

    def open(self, name: str, text: str) -> None:
        document = {"uri": self.uri(name), "languageId": "dql", "version": 1, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": document})

    def change(self, name: str, text: str, version: int) -> None:
        document = {"uri": self.uri(name), "version": version}
        changes = [{"text": text}]
        self.tell("textDocument/didChange", {"textDocument": document, "contentChanges": changes})

    def close(self, name: str) -> None:
        self.tell("textDocument/didClose", {"textDocument": {"uri": self.uri(name)}})

    def uri(self, name: str) -> str:
        return name if ":" in name else (self.folder / name).as_uri()

    def leave(self) -> int:
        """The exit code of a server that was asked to end."""
        self.ask("shutdown")
        self.tell("exit", None)
        return self.process.wait(timeout=ANSWER_S)

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def _wait(self, matches: Any) -> dict[str, Any]:
        """The next message that matches; the others stay unread."""
        for message in self.unread:
            if matches(message):
                self.unread.remove(message)
                return message
        while True:
            message = self._arriving.get(timeout=ANSWER_S)
            if matches(message):
                return message
            self.unread.append(message)

    def _listen(self) -> None:
        assert self.process.stdout is not None
        while header := self.process.stdout.readline():
            length = int(header.split(b":")[1])
            while self.process.stdout.readline().strip():
                pass
            self._arriving.put(json.loads(self.process.stdout.read(length)))
