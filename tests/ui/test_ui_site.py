"""Every page is served, in the menu or linked from another page, and marked in the menu."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import dqx_airflow
from dqx_airflow.values import EnforcedContract
from tests.ui.ui_scene import Get, Html, Scene, report_of

pytestmark = pytest.mark.airflow

FILES = {"rows.csv", "icon.svg", "counts", "api/v1/openapi.json"}
"""The routes without a page."""


class Title(HTMLParser):
    """The title of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = ""
        self._is_in_title = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._is_in_title = tag == "title"

    def handle_endtag(self, tag: str) -> None:
        self._is_in_title = False

    def handle_data(self, data: str) -> None:
        if self._is_in_title:
            self.text += data


@pytest.mark.usefixtures("api_server")  # the app asks the Airflow that is configured by then
def test_the_routes_are_those_of_the_pages() -> None:
    from dqx_airflow.ui.app import app
    from dqx_airflow.ui.site import PAGES

    routes = {route.path.strip("/") for route in app.routes if "GET" in route.methods}
    json_of = {f"api/v1/{page.address}" for page in PAGES}
    assert routes - json_of == {page.address for page in PAGES} | FILES


@pytest.mark.usefixtures("api_server")
def test_every_module_with_a_page_is_on_the_site() -> None:
    from dqx_airflow.ui.site import MODULES

    folder = Path(dqx_airflow.__file__).parent / "ui"
    assert {path.stem for path in folder.glob("*_page.py")} == {*MODULES}


def test_every_page_has_the_menu_with_its_own_entry_marked(get: Get, scene: Scene) -> None:
    from dqx_airflow.ui.site import MENU

    scene.ran(report_of())
    for page in MENU:
        text = get(page.address).text
        assert Title(text).text.rpartition(": ")[2] == page.label
        links = Html(text).links
        assert {entry.label: entry.address for entry in MENU}.items() <= links.items()
        current = [link["href"] for link in Html(text).all("a", **{"aria-current": "page"})]
        assert current == [page.address]


def test_a_page_about_one_thing_marks_the_entry_that_leads_to_it(
    get: Get, tab: Get, scene: Scene
) -> None:
    scene.ran(report_of(contract=EnforcedContract("orders", "2.3.0", "odcs")))
    runs = get("runs?dag_id=lake&task_id=gate")
    incident = get("incident?dag_id=lake&task_id=gate")
    dataset = get("dataset?location=s3://lake/orders")
    contract = get("contract?id=orders")
    marked = [
        [link["href"] for link in Html(page.text).all("a", **{"aria-current": "true"})]
        for page in (tab(), runs, incident, dataset, contract)
    ]
    assert marked == [["board"], ["board"], ["slices"], ["datasets"], ["contracts"]]


def test_every_page_can_be_reached_by_links(get: Get, tab: Get, scene: Scene) -> None:
    from dqx_airflow.ui.site import PAGES

    scene.ran(report_of(contract=EnforcedContract("orders", "2.3.0", "odcs")))
    addresses = {page.address for page in PAGES}
    unread = ["board"]
    reached: dict[str, str] = {}
    while unread:
        href = unread.pop(0)
        address = href.partition("?")[0]
        if address not in addresses or address in reached:
            continue
        page = get(href)
        assert page.status_code == 200, href
        reached[address] = href
        unread += [link["href"] or "" for link in Html(page.text).all("a")]
    assert reached.keys() == addresses
