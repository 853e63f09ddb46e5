"""Takes the pictures of the docs from the demo; it is not a test.

dql demo && . .dqx/demo/environment.sh && airflow api-server --port 8080 &
python tests/ui/screenshots.py http://localhost:8080 dqx_airflow/docs/images
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

from tests.ui.chromium import PROGRAM, Page, chromium

_STORM = "2013-02-08"
_GATE = "dag_id=flights_medallion&task_id=bronze_gate"
_OPEN = """(one => {
  for (let at = one; at; at = at.parentElement.closest("details")) at.open = true;
  one.scrollIntoView();
})([...document.querySelectorAll(".rows details:not(.fold)")].find(
  one => one.querySelector(":scope > summary").textContent.includes("%s")))"""
"""Opens the history of an assertion, also in a list that is folded."""


def main(address: str, folder: Path) -> None:
    with urlopen(f"{address}/auth/token") as answer:  # the demo asks nobody for a password
        token = json.load(answer)["access_token"]
    with TemporaryDirectory() as profile, chromium(PROGRAM, Path(profile)) as page:
        page.call("Network.setCookie", name="_token", value=token, url=address)
        light = [{"name": "prefers-color-scheme", "value": "light"}]
        page.call("Emulation.setEmulatedMedia", features=light)
        open_page(page, f"{address}/dqx/runs?{_GATE}", 1280, 860)
        page.open(_link(page, "td a", _STORM))
        shoot(page, folder / "gate_tab.png")
        _resize(page, 1180, 520)
        page.run("document.querySelector('.source .at.failed').scrollIntoView()")
        page.run("window.scrollBy(0, -90)")
        shoot(page, folder / "gate_source.png")
        open_page(page, f"{address}/dqx/incident?{_GATE}&date={_STORM}", 1400, 900)
        shoot(page, folder / "incident.png")
        open_page(page, f"{address}/dqx/datasets", 1200, 460)
        open_page(page, _link(page, "td a[href^=dataset]", "flights"), 1200, 530)
        page.run("document.querySelectorAll('.rows details').forEach(one => { one.open = false })")
        page.run(_OPEN % "flights.volume.departed")
        shoot(page, folder / "dataset.png")


def open_page(page: Page, address: str, width: int, height: int) -> None:
    _resize(page, width, height)
    page.open(address)


def _resize(page: Page, width: int, height: int) -> None:
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=height,
        deviceScaleFactor=1,
        mobile=False,
    )


def _link(page: Page, selector: str, text: str) -> str:
    found = f"[...document.querySelectorAll('{selector}')].find(a => a.textContent === '{text}')"
    return str(page.run(f"{found}.href"))


def shoot(page: Page, file: Path) -> None:
    page.run("document.documentElement.style.scrollbarWidth = 'none'")
    file.write_bytes(base64.b64decode(page.call("Page.captureScreenshot", format="png")["data"]))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
