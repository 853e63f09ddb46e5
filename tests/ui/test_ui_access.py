"""Who may see what: the pages ask Airflow, and are closed if they cannot."""

from __future__ import annotations

import logging
import re
import sys

import pytest

from dqx_airflow.values import EnforcedContract
from tests.ui.ui_scene import PLACE, Get, Html, Scene, report_of

pytestmark = pytest.mark.airflow


ORDERS = EnforcedContract("orders", "2.3.0", "odcs")
PAGES = (
    "board",
    "datasets",
    "contracts",
    "coverage",
    "dataset?location=s3://lake/orders",
    "contract?id=orders",
    "gate?dag_id=lake",
    "alerts",
    "rows.csv?dag_id=lake",
    "incident?dag_id=lake",
    "slices",
    "review",
    "runs?dag_id=lake",
    "icon.svg",
    "api/v1/board",
    "api/v1/slices",
    "api/v1/incident?dag_id=lake",
    "api/v1/gate?dag_id=lake",
    "api/v1/runs?dag_id=lake",
    "api/v1/datasets",
    "api/v1/contracts",
    "api/v1/coverage",
    "api/v1/contract?id=orders",
    "api/v1/dataset?location=s3://lake/orders",
    "api/v1/alerts",
    "api/v1/review",
    "api/v1/openapi.json",
    "nowhere",
)


@pytest.mark.usefixtures("api_server")  # the app asks the Airflow that is configured by then
def test_every_page_is_in_the_list() -> None:
    from dqx_airflow.ui import site

    addresses = {page.partition("?")[0] for page in PAGES[:-1]}
    files = {"rows.csv", "icon.svg", "api/v1/openapi.json"}
    of_pages = {f"{prefix}{page.address}" for page in site.PAGES for prefix in ("", "api/v1/")}
    assert addresses == of_pages | files


@pytest.mark.parametrize("page", PAGES[:-1])
def test_every_page_requires_signing_in(get: Get, page: str) -> None:
    assert get(page, None).status_code == 401


def test_a_viewer_sees_the_gates_of_their_dags(get: Get, tab: Get, scene: Scene) -> None:
    scene.ran(report_of(contract=ORDERS))
    assert tab().status_code == 200
    assert get("board", cookie=True).status_code == 200
    assert "lake.gate" in Html(get("contract", id="orders").text).text
    assert "lake.gate" in Html(get("board").text).text
    assert "lake.gate" in Html(get("dataset", location=PLACE).text).text


def test_without_read_permission_a_dag_is_hidden(get: Get, tab: Get, scene: Scene) -> None:
    scene.ran(report_of(contract=ORDERS))
    refused = tab("ben")
    assert refused.status_code == 403
    assert "null_share" not in refused.text
    assert "lake" not in get("board", "ben").text
    assert "lake" not in get("datasets", "ben").text
    for page in ("dataset", "api/v1/dataset"):
        assert get(page, "ben", location=PLACE).status_code == 404
    for page in ("alerts", "review"):
        answer = get(f"api/v1/{page}", "ben")
        assert "lake" not in answer.text
        assert answer.status_code == get(page, "ben").status_code
    assert get("contract", "ben", id="orders").status_code == 404


@pytest.mark.parametrize("dag_id", ["~", "", "lake "])
def test_another_spelling_of_a_dag_id_does_not_open_it(tab: Get, scene: Scene, dag_id: str) -> None:
    scene.ran(report_of())
    answer = tab("ben", dag_id=dag_id)
    assert answer.status_code in (403, 404)
    assert "null_share" not in answer.text


def test_of_two_dag_ids_the_displayed_one_is_authorized(get: Get, scene: Scene) -> None:
    scene.dag()
    scene.dag("pond", team="blue")
    scene.ran(report_of())
    task = "run_id=scheduled__2024-03-20&task_id=gate"
    for page in (f"gate?dag_id=pond&dag_id=lake&{task}", f"gate?dag_id=lake&dag_id=pond&{task}"):
        assert "null_share" not in get(page, "ben").text


def test_a_task_cannot_show_the_history_of_a_gate_by_naming_it(
    get: Get, tab: Get, scene: Scene
) -> None:
    scene.dag()
    scene.dag("pond", team="blue")
    hidden = scene.ran(report_of(contract=ORDERS), number=1)
    forged = {
        "outcome": "passed",
        "gate": hidden.run_key.gate,
        "run_id": hidden.run_id,
        "date": "2024-03-20",
        "datasets": ["orders"],
        "locations": {"orders": PLACE},
        "contract": {"id": "orders", "version": "6.6.6"},
    }
    scene.task("pond", pushed=forged, number=2)
    pages = (
        tab("ben", dag_id="pond"),
        get("dataset", "ben", location=PLACE),
        get("contract", "ben", id="orders"),
    )
    for answer in pages:
        assert answer.status_code == 200
        assert "null_share" not in answer.text
        assert "2.3.0" not in answer.text


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("user", ["ada", None])
def test_every_response_forbids_foreign_scripts_frames_and_caches(
    get: Get, page: str, user: str | None
) -> None:
    headers = get(page, user).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert re.search(r"; script-src 'sha256-[^' ]+'; ", policy)
    assert "frame-ancestors 'self'" in policy
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"


def test_a_failing_page_shows_no_details(
    tab: Get, scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from dqx_airflow.ui import airflow

    def fails(*_: object) -> None:
        raise RuntimeError("secret")

    scene.dag()
    monkeypatch.setattr(airflow, "task_runs", fails)
    with caplog.at_level(logging.ERROR):
        answer = tab()
    assert answer.status_code == 500
    assert "This page failed" in answer.text
    assert "secret" not in answer.text
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "missing", ["airflow.models.xcom", "airflow.api_fastapi.core_api.security", "jinja2"]
)
def test_pages_are_closed_if_airflow_lacks_an_api_they_need(
    api_environment: None, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fastapi.testclient import TestClient

    from dqx_airflow import ui

    for name in [name for name in sys.modules if name.startswith("dqx_airflow.ui.")]:
        monkeypatch.delitem(sys.modules, name)
        monkeypatch.delattr(ui, name.rpartition(".")[2])
    monkeypatch.setitem(sys.modules, missing, None)
    (mounted,) = ui.DqxPlugin().fastapi_apps
    answer = TestClient(mounted["app"]).get("/board")
    assert answer.status_code == 403
    assert "Closed" in answer.text


def test_an_unexpected_authorization_result_hides_everything(
    get: Get, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.ui import airflow_users

    scene.ran(report_of())
    # A version to come may make it wait for something: it has refused nobody before that.
    monkeypatch.setattr(airflow_users, "requires_access_dag", lambda *_: lambda *_: "a coroutine")
    assert "lake" not in Html(get("board").text).text
