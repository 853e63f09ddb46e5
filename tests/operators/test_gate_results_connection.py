"""The connection to the results store: its fields, its form, and who gets its secrets."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import pytest

from dqx_airflow import get_provider_info
from dqx_airflow.errors import RequestError
from dqx_airflow.results.runs import list_runs
from dqx_airflow.values.json_form import STORAGE_VARIABLE, storage_options_of
from tests.operators.gate_stubs import SUITE, Gates, Log, Run, SparkSubmit, dag_file
from tests.processes import output_of

pytestmark = pytest.mark.airflow

SECRET = "an-unusual-secret"


def connect(
    monkeypatch: pytest.MonkeyPatch, conn_id: str = "store", **given: object
) -> Mapping[str, object]:
    """Adds a connection to a results store."""
    connection = {"conn_type": "dqx", **given}
    monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(connection))
    return connection


@pytest.mark.parametrize(
    ("given", "root", "options"),
    [
        ({"host": "/results"}, "/results", None),
        (
            {"host": "s3://lake/dqx", "login": "key", "password": SECRET},
            "s3://lake/dqx",
            {"aws_access_key_id": "key", "aws_secret_access_key": SECRET},
        ),
        (
            {"host": "s3://lake/dqx", "extra": {"aws_region": "eu-west-1", "aws_allow_http": True}},
            "s3://lake/dqx",
            {"aws_region": "eu-west-1", "aws_allow_http": "true"},
        ),
        (
            {"host": "abfss://dqx@lake.dfs.core.windows.net/r", "login": "lake", "password": "k"},
            "abfss://dqx@lake.dfs.core.windows.net/r",
            {"azure_storage_account_name": "lake", "azure_storage_account_key": "k"},
        ),
        (
            {"host": "gs://lake/dqx", "login": "nobody", "password": "{}"},
            "gs://lake/dqx",
            {"google_service_account_key": "{}"},
        ),
        (
            {"host": "s3://lake", "login": "a", "extra": {"aws_access_key_id": "b", "empty": ""}},
            "s3://lake",
            {"aws_access_key_id": "b"},
        ),
    ],
    ids=["a folder", "S3", "options", "Azure", "Google", "the extra counts"],
)
def test_the_connection_gives_root_and_storage_options(
    operators: ModuleType,
    given: dict[str, object],
    root: str,
    options: dict[str, str] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dqx_airflow.operators.results_location import ResultsLocation, results_location_of

    connect(monkeypatch, **given)
    place = results_location_of(None, "store")
    assert place == ResultsLocation(root, options)
    assert SECRET not in repr(place)


def test_an_explicit_root_wins_over_the_connection(
    operators: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.operators.results_location import results_location_of

    connect(monkeypatch, host="/results")
    place = results_location_of("/elsewhere", "store")
    assert place is not None
    assert place.root == "/elsewhere"


def test_the_configuration_names_a_connection_for_all_gates(
    gate: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, host="/results/of/all")
    monkeypatch.setenv("AIRFLOW__DQX__RESULTS_CONN_ID", "store")
    assert gate.request().results_root == "/results/of/all"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"conn_type": "aws"}, "of type aws: results need one of type dqx"),
        ({}, "does not say where results go"),
        (None, "the results connection 'store' does not exist"),
    ],
)
def test_a_connection_without_a_root_misconfigures_the_gate(
    gate: Gates, given: dict[str, object] | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.operators import GateMisconfiguredError

    monkeypatch.delenv("AIRFLOW__DQX__RESULTS_ROOT")
    if given is not None:
        connect(monkeypatch, **given)
    with pytest.raises(GateMisconfiguredError, match=message):
        gate.request(results_conn_id="store")


def test_a_gate_writes_to_the_connection_and_hides_its_secret(
    run_file: Callable[..., Run],
    spark_submit: SparkSubmit,
    tmp_path: Path,
    log: Log,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = tmp_path / "elsewhere"
    connect(monkeypatch, host=str(root), extra={"aws_secret_access_key": SECRET})
    text = dag_file("""
    DqlGateOperator(
        task_id="gate",
        suite="orders.dql",
        datasets={"orders": "/lake/orders"},
        results_conn_id="store",
        env_vars={"PYSPARK_PYTHON": "python3"},
    )
""")
    run = run_file(text, {"orders.dql": SUITE})
    assert run["gate"] == "success"
    assert len(list_runs(str(root))) == 1
    assert SECRET not in str(spark_submit.calls)
    assert SECRET not in str(spark_submit.requests)
    assert SECRET not in log.text
    assert STORAGE_VARIABLE not in os.environ


def test_child_processes_get_the_storage_options(operators: ModuleType) -> None:
    from dqx_airflow.operators.results_location import ResultsLocation

    show = [sys.executable, "-c", f"import os; print(os.environ.get({STORAGE_VARIABLE!r}))"]
    with ResultsLocation("s3://lake", {"aws_region": "eu"}).in_environment():
        variable = output_of(show)
    assert storage_options_of({STORAGE_VARIABLE: variable}) == {"aws_region": "eu"}
    after = output_of(show)
    assert after.strip() == "None"


def test_storage_options_of_the_worker_are_restored(
    operators: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.operators.results_location import ResultsLocation

    monkeypatch.setenv(STORAGE_VARIABLE, '{"aws_region": "us"}')
    with ResultsLocation("/results").in_environment():
        assert storage_options_of(os.environ) == {"aws_region": "us"}
    with ResultsLocation("/results", {"aws_region": "eu"}).in_environment():
        assert storage_options_of(os.environ) == {"aws_region": "eu"}
    assert storage_options_of(os.environ) == {"aws_region": "us"}


def test_without_a_connection_the_options_come_from_the_environment(
    operators: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.operators import GateMisconfiguredError
    from dqx_airflow.operators.results_location import ResultsLocation, results_location_of

    monkeypatch.setenv(STORAGE_VARIABLE, '{"aws_region": "eu"}')
    assert results_location_of("s3://lake") == ResultsLocation("s3://lake", {"aws_region": "eu"})
    monkeypatch.setenv(STORAGE_VARIABLE, "eu")
    with pytest.raises(GateMisconfiguredError, match="is not a JSON object"):
        results_location_of("s3://lake")


@pytest.mark.parametrize("text", ["[]", "x", "7", '"a"', "[" * 100_000])
def test_a_job_refuses_storage_options_other_than_an_object(text: str) -> None:
    with pytest.raises(RequestError, match="is not a JSON object"):
        storage_options_of({STORAGE_VARIABLE: text})


def test_the_form_of_the_connection_tests_it(
    operators: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.operators.results_location import ResultsHook

    connect(monkeypatch, host=str(tmp_path / "results"))
    message = f"The results store {tmp_path / 'results'} can be read and written."
    assert ResultsHook("store").test_connection() == (True, message)
    assert not (tmp_path / "results").exists()
    (tmp_path / "file").write_text("")
    connect(monkeypatch, host=str(tmp_path / "file"))
    is_good, problem = ResultsHook("store").test_connection()
    assert not is_good
    assert "is a file" in problem


def test_airflow_knows_the_connection_and_its_form(airflow_environment: None) -> None:
    from airflow.providers_manager import ProvidersManager

    manager = ProvidersManager()
    hook = manager.hooks["dqx"]
    assert hook is not None
    assert hook.hook_name == "DQX results"
    assert hook.connection_testable
    if "dqx" not in manager.field_behaviours:
        pytest.skip("this Airflow knows no forms of connections but those of hooks")
    behaviour = manager.field_behaviours["dqx"]
    assert behaviour["relabeling"]["host"] == "Results root"
    fields = {name for name in manager.connection_form_widgets if "__dqx__" in name}
    assert fields == {"extra__dqx__aws_endpoint_url", "extra__dqx__aws_region"}


def airflow(settings: Mapping[str, str], *words: str) -> str:
    run = [sys.executable, "-m", "airflow", *words]
    return output_of(run, env={**os.environ, **settings})


@pytest.mark.slow
def test_the_command_line_of_airflow_shows_the_provider_and_its_settings(
    airflow_settings: dict[str, str],
) -> None:
    shown = airflow(airflow_settings, "providers", "get", "dqx-airflow", "--full", "-o", "json")
    assert "dqx_airflow.operators.results_location.ResultsHook" in shown
    hooks = airflow(airflow_settings, "providers", "hooks", "-o", "json")
    assert '"dqx"' in hooks
    listed = airflow(
        airflow_settings, "config", "list", "--section", "dqx", "--include-descriptions"
    )
    for option in get_provider_info()["config"]["dqx"]["options"]:
        assert option in listed


def test_every_setting_in_use_is_documented() -> None:
    import re

    import dqx_airflow

    folder = Path(dqx_airflow.__file__).parent
    texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*.py")]
    read = {name for text in texts for name in re.findall(r'conf\.get\w*\("dqx", "(\w+)"', text)}
    assert read == set(get_provider_info()["config"]["dqx"]["options"])
