"""A headless Chromium, driven by the part of its DevTools protocol that the tests need."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome") or ""

_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--remote-debugging-port=0",
    "--window-size=1280,900",
)
_PATIENCE_S = 30.0
_KEYS = {"Tab": 9, "Enter": 13, " ": 32}


@contextmanager
def chromium(program: str, profile: Path) -> Iterator[Page]:
    """One page of a browser of its own."""
    process = subprocess.Popen(
        [program, *_OPTIONS, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        port, path = _address(profile / "DevToolsActivePort")
        with connect(f"ws://127.0.0.1:{port}{path}", max_size=None) as socket:
            yield Page(socket)
    finally:
        process.terminate()
        process.wait(_PATIENCE_S)


def _address(file: Path) -> list[str]:
    until = time.monotonic() + _PATIENCE_S
    while not (file.exists() and file.read_text().count("\n")):
        if time.monotonic() > until:
            raise TimeoutError("chromium does not answer")
        time.sleep(0.05)
    return file.read_text().split("\n")[:2]


class Page:
    """A page, and what happened on it. `complaints` are the errors that its console shows."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._number = 0
        self._session = ""
        self.complaints: list[str] = []
        self.dialogs: list[str] = []
        self._loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Log", "Runtime", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer to a call of the protocol."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._socket.send(json.dumps(message))
        while True:
            heard = self._hear()
            if heard.get("id") == message["id"]:
                if "error" in heard:
                    raise RuntimeError(f"{method}: {heard['error']}")
                found: dict[str, Any] = heard["result"]
                return found

    def open(self, url: str) -> None:
        """Goes there, and waits until all of it is loaded."""
        self._loaded = False
        self.call("Page.navigate", url=url)
        self.wait_for_load()

    def wait_for_load(self) -> None:
        while not self._loaded:
            self._hear()

    def click(self, selector: str) -> None:
        """Follows a link."""
        self._loaded = False
        self.run(f"document.querySelector({json.dumps(selector)}).click()")
        self.wait_for_load()

    def press(self, key: str) -> None:
        """Presses a key of the keyboard."""
        text = {"Enter": "\r", " ": " "}.get(key, "")
        code = {"key": key, "code": key, "windowsVirtualKeyCode": _KEYS[key]}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **code)
        self.call("Input.dispatchKeyEvent", type="keyUp", **code)

    def be_wide(self, width: int) -> None:
        """Has a window of this width, in which the page is laid out anew."""
        window = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **window)
        end = time.monotonic() + _PATIENCE_S
        while self.run("innerWidth") != width:
            assert time.monotonic() < end, f"the window is not {width} pixels wide"

    def run(self, script: str) -> Any:
        """The value of an expression of JavaScript, of a promise what it resolves to."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description"))
        return answer["result"].get("value")

    @property
    def text(self) -> str:
        """The visible text of the page."""
        return " ".join(str(self.run("document.body.innerText")).split())

    def _hear(self) -> dict[str, Any]:
        heard: dict[str, Any] = json.loads(self._socket.recv(timeout=_PATIENCE_S))
        method, params = heard.get("method"), heard.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(params["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(params["message"])
            self._socket.send(
                json.dumps(
                    {
                        "id": 0,
                        "method": "Page.handleJavaScriptDialog",
                        "params": {"accept": True},
                        "sessionId": self._session,
                    }
                )
            )
        return heard
