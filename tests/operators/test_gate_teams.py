"""Two teams of one Airflow, each with a bundle of DAGs and its users, under a real scheduler."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from datetime import date

import pytest

from dqx_airflow.results.incidents import notes_from
from dqx_airflow.results.runs import list_runs
from tests.operators.airflow_services import Airflow, airflow_services
from tests.operators.gate_stubs import SUITE, SparkSubmit, install_stub, needs_airflow

pytestmark = [pytest.mark.airflow, pytest.mark.nightly, needs_airflow(3, 3)]

DAG_FILE = """
from datetime import datetime

from airflow.sdk import DAG

from dqx_airflow.operators import DqlGateOperator

with DAG({dag_id!r}, start_date=datetime(2024, 1, 1), schedule=None):
    DqlGateOperator(
        task_id="gate",
        suite="orders.dql",
        datasets={{"orders": {{"path": "/{dag_id}/orders", "date_column": "ds"}}}},
        date="2024-03-20",
        spark_binary={binary!r},
    )
"""
DAY = date(2024, 3, 20)
USERS = {"harbour": ("red", "eve"), "pond": ("blue", "ben")}
"""The team of each DAG, and a user of it who may edit its DAGs."""


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """The gate of each team has run and is blocked; both have the results root of the server."""
    home = tmp_path_factory.mktemp("teams")
    bundles, users, commands = [], [], []
    for dag_id, (team, user) in USERS.items():
        folder, binary = home / f"{team}-dags", home / team / "bin" / "spark-submit"
        folder.mkdir()
        (folder / "dag.py").write_text(DAG_FILE.format(dag_id=dag_id, binary=str(binary)))
        (folder / "orders.dql").write_text(SUITE)
        install_stub(binary, home / team / "spark", home / "results").will("blocked")
        bundles.append(
            {
                "name": f"{team}-dags",
                "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
                "kwargs": {"path": str(folder)},
                "team_name": team,
            }
        )
        users.append(f"{user}:user:{team}")
        commands.append(["teams", "create", team])
    passwords = home / "passwords.json"
    passwords.write_text(json.dumps({user: user for _, user in USERS.values()}))
    settings = {
        **{
            f"AIRFLOW_CONN__{team.upper()}___SPARK_DEFAULT": json.dumps(
                {"conn_type": "spark", "host": f"local[{number}]"}
            )
            for number, (team, _) in enumerate(USERS.values(), start=1)
        },
        "AIRFLOW__CORE__MULTI_TEAM": "True",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(users),
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(bundles),
        "AIRFLOW__DQX__RESULTS_ROOT": str(home / "results"),
        "AIRFLOW__OPENLINEAGE__DISABLED": "True",
    }
    with airflow_services(home, settings, user="eve", before=commands) as services:
        runs = {}
        for dag_id, (_, user) in USERS.items():
            services.user = user
            runs[dag_id] = services.run(dag_id)
        for dag_id, (_, user) in USERS.items():
            services.user = user
            assert services.wait_for_end(dag_id, runs[dag_id]) == "failed"
        yield services


def page(airflow: Airflow, path: str, form: dict[str, str] | None = None) -> tuple[int, str]:
    """The status and the text of a page of ours, or of the answer to a form."""
    request = urllib.request.Request(
        f"{airflow.address}/dqx/{path}",
        headers={"Authorization": f"Bearer {airflow.token}", "Origin": airflow.address},
        data=None if form is None else urllib.parse.urlencode(form).encode(),
    )
    try:
        with urllib.request.urlopen(request, timeout=90) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def of(dag_id: str) -> str:
    return f"incident?dag_id={dag_id}&task_id=gate"


def form_of(text: str) -> dict[str, str]:
    """The hidden fields of the first form of a page."""
    form = text.partition("<form")[2].partition("</form>")[0]
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))


def test_each_team_uses_its_own_connection_and_the_store_that_all_share(airflow: Airflow) -> None:
    runs = list_runs(str(airflow.home / "results"))
    assert {run.run_key.gate for run in runs} == {"harbour.gate", "pond.gate"}
    for number, (team, _) in enumerate(USERS.values(), start=1):
        (call,) = SparkSubmit(airflow.home / team / "spark").calls
        assert call[call.index("--master") + 1] == f"local[{number}]"


@pytest.mark.parametrize(("own", "other"), [("harbour", "pond"), ("pond", "harbour")])
def test_a_user_sees_and_decides_only_what_the_gates_of_the_own_team_found(
    airflow: Airflow, own: str, other: str
) -> None:
    airflow.user = USERS[other][1]
    form = form_of(page(airflow, of(other))[1])
    assert form["dag_id"] == other
    airflow.user = USERS[own][1]
    for listing in ("board", "alerts", "slices", "datasets", "api/v1/board", "api/v1/slices"):
        status, text = page(airflow, listing)
        assert status == 200
        assert own in text, listing
        assert other not in text, listing
    assert [page(airflow, of(dag_id))[0] for dag_id in (own, other)] == [200, 403]
    assert page(airflow, f"api/v1/{of(other)}")[0] == 403
    decision = {"kind": "closed", "reason": "not mine"}
    own_form = form_of(page(airflow, of(own))[1])
    stolen = {**form, "token": own_form["token"], **decision}
    assert page(airflow, "incident", stolen)[0] == 404
    status, _ = page(airflow, "incident", {**own_form, **decision, "reason": f"by {own}"})
    assert status == 200
    gates = [f"{dag_id}.gate" for dag_id in USERS]
    texts = [note.text for note in notes_from(str(airflow.home / "results"), gates, DAY, DAY)]
    assert f"by {own}" in texts
    assert "not mine" not in texts
