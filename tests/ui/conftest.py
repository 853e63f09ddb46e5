"""Airflow's API server on SQLite with our plugin, two teams and their users.

The tests of `tests/operators` may have made its database, and have left DAGs in it.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from tests.ui.chromium import PROGRAM, Page, chromium
from tests.ui.ui_scene import HAS_TEAMS, Get, Scene, require_teams

if TYPE_CHECKING:
    from httpx import Response

collect_ignore_glob = [] if importlib.util.find_spec("airflow") else ["test_ui_*.py"]


_USERS = {"ada": ("viewer", "red"), "eve": ("user", "red"), "ben": ("user", "blue")}
"""Ada only looks. Eve may edit the DAGs of the red team, and Ben those of the blue one."""


@pytest.fixture(scope="session", autouse=True)
def api_settings(airflow_home: Path) -> Mapping[str, str]:
    """The environment of the API server. Every test needs it: even the module of the charts imports
    Airflow."""
    passwords = airflow_home / "ui_passwords.json"
    passwords.write_text(json.dumps({user: user for user in _USERS}))
    settings = {
        "AIRFLOW_HOME": str(airflow_home),
        "AIRFLOW__API_AUTH__JWT_SECRET": "of the tests of the pages only; " * 3,
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__MULTI_TEAM": str(HAS_TEAMS),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(
            f"{user}:{role}:{team}" if HAS_TEAMS else f"{user}:{role}"
            for user, (role, team) in _USERS.items()
        ),
        "AIRFLOW__OPENLINEAGE__DISABLED": "True",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        import airflow.configuration  # noqa: F401
    return settings


@pytest.fixture(scope="session")
def api_server(api_settings: Mapping[str, str]) -> Any:
    """Airflow's app as `airflow api-server` makes it; it is asked in process."""
    handlers, level = list(logging.root.handlers), logging.root.level
    with pytest.MonkeyPatch.context() as patch:
        for name, value in api_settings.items():
            patch.setenv(name, value)
        from airflow.models.dagbundle import DagBundleModel
        from airflow.models.team import Team
        from airflow.utils.db import initdb
        from airflow.utils.session import create_session

        initdb()
        with create_session() as session:
            for name in ("red", "blue"):
                if session.get(DagBundleModel, f"{name}-dags") is None:
                    bundle = DagBundleModel(name=f"{name}-dags")
                    own = {"id": uuid4()} if hasattr(Team, "id") else {}  # Airflow 3.1
                    bundle.teams.append(Team(name=name, **own))
                    session.add(bundle)
        from airflow.api_fastapi.app import create_app, purge_cached_app

        purge_cached_app()
        app = create_app(apps="core")
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)
    return app


@pytest.fixture
def api_environment(
    api_settings: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in api_settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AIRFLOW__DQX__RESULTS_ROOT", str(tmp_path / "results"))


@pytest.fixture
def scene(api_server: Any, api_environment: None, tmp_path: Path) -> Iterator[Scene]:
    """An empty scene; what a test puts into the database is gone after it, and before it what
    others left there."""
    _forget_teams()
    from airflow.models.asset import AssetModel, DagScheduleAssetReference, TaskOutletAssetReference
    from airflow.models.dag import DagModel
    from airflow.models.dag_version import DagVersion
    from airflow.models.dagrun import DagRun
    from airflow.models.log import Log
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.taskinstancehistory import TaskInstanceHistory
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    def forget() -> None:
        for model in (
            *(TaskOutletAssetReference, DagScheduleAssetReference, AssetModel),
            *(Log, XComModel, TaskInstanceHistory, TaskInstance, DagRun),
            *(SerializedDagModel, DagVersion, DagModel),
        ):
            session.execute(model.__table__.delete())

    with create_session() as session:
        forget()
        session.commit()
        yield Scene(tmp_path / "results", session)
        session.rollback()
        forget()


@pytest.fixture
def get(api_server: Any, scene: Scene) -> Get:
    """Asks for a page: as ada of the red team, as somebody else, or (None) as nobody."""
    from fastapi.testclient import TestClient

    def ask(
        page: str, user: str | None = "ada", *, cookie: bool = False, **query: object
    ) -> Response:
        client = TestClient(api_server)
        headers = {}
        if user is not None:
            token = _signed_in(user)
            if cookie:
                client.cookies.set("_token", token)
            else:
                headers["Authorization"] = f"Bearer {token}"
        return client.get(f"/dqx/{page}", params=query or None, headers=headers)

    return ask


@pytest.fixture
def post(api_server: Any, scene: Scene) -> Get:
    """Sends a form with the cookie of a user, as a browser does from a page of this server."""
    from fastapi.testclient import TestClient

    def send(
        page: str,
        user: str | None = "eve",
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        **fields: str,
    ) -> Response:
        client = TestClient(api_server)
        if user is not None:
            client.cookies.set("_token", _signed_in(user))
        sent = {"Origin": "http://testserver"} if headers is None else dict(headers)
        data = fields if content is None else None
        return client.post(
            f"/dqx/{page}", data=data, content=content, headers=sent, follow_redirects=False
        )

    return send


@pytest.fixture
def tab(get: Get) -> Get:
    """Asks for the tab of the task `gate` of the DAG `lake`."""

    def ask(user: str | None = "ada", **query: object) -> Response:
        where = {
            "dag_id": "lake",
            "run_id": "scheduled__2024-03-20",
            "task_id": "gate",
            "map_index": "{MAP_INDEX}",
        }
        return get("gate", user, **{**where, **query})

    return ask


@pytest.fixture(scope="module")
def address(api_server: Any) -> Iterator[str]:
    """Airflow's API server on a port of its own."""
    import uvicorn

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(api_server, port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(20)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium(PROGRAM, tmp_path_factory.mktemp("chromium")) as page:
        yield page


@pytest.fixture
def look(scene: Scene, browser: Page, address: str) -> Callable[..., Page]:
    """Opens a page as ada, as somebody else, or as nobody (None), in a browser whose settings are
    those of a new one."""

    def at(page: str, user: str | None = "ada", **chosen: str) -> Page:
        browser.call("Network.clearBrowserCookies")
        if user is not None:
            browser.call("Network.setCookie", name="_token", value=_signed_in(user), url=address)
        browser.open(f"{address}/dqx/icon.svg")
        browser.run("localStorage.clear()")
        for key, value in chosen.items():
            browser.run(f"localStorage.setItem({key!r}, {value!r})")
        browser.complaints.clear()
        browser.open(f"{address}/dqx/{page}")
        return browser

    browser.call("Emulation.setTimezoneOverride", timezoneId="Europe/Zurich")
    browser.call(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}]
    )
    return at


def _forget_teams() -> None:
    """Airflow 3.3 remembers the team of a DAG for 30 seconds, also that an unknown DAG has none: to
    the next test, which adds the DAG, it would be open to all teams."""
    from airflow.models import dag

    if hasattr(dag, "clear_team_name_cache"):
        dag.clear_team_name_cache()


def _signed_in(user: str) -> str:
    """The token of a user's session."""
    if _USERS[user][1] != "red":
        require_teams()
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    role, team = _USERS[user]
    teams: dict[str, Any] = {"teams": [team]} if HAS_TEAMS else {}
    return get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=user, role=role, **teams))
