"""The findings of `dql doctor` and its advice, on real folders that look like installations."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, get_args

import pytest

import dqx_airflow
from dqx_airflow import __version__
from dqx_airflow.cli.doctor import Installation, as_json, checks_of, print_findings
from dqx_airflow.cli.doctor_checks import airflow, finding, packages, services, spark
from dqx_airflow.cli.doctor_checks.finding import (
    Answer,
    Finding,
    FindingLevel,
    examine,
    ok,
    problem,
)
from dqx_airflow.errors import RequestError
from dqx_airflow.results.proofs import write_proof
from dqx_airflow.values import EngineProof
from tests.http_stub import Asked, Reply, http_stub
from tests.processes import ended

PINS = "pip install --force-reinstall --no-deps pyspark=={0} pyspark-client=={0}"


def level(answer: Answer) -> FindingLevel:
    return answer[0]


def skip_without_airflow() -> None:
    """Looks without importing: an import makes Airflow's home folder."""
    if finding.installed_version("apache-airflow") is None:
        pytest.skip("needs Airflow")


# What any check may count on


def raise_error() -> Answer:
    raise KeyError("no such thing\nsecond line")


def test_a_check_that_raises_becomes_a_finding() -> None:
    good, bad = examine({"good": lambda: ok("fine"), "bad": raise_error})
    assert good == Finding("good", FindingLevel.OK, "fine")
    assert bad.level is FindingLevel.PROBLEM
    assert bad.found.startswith("this check itself failed: KeyError: 'no such thing")
    assert bad.remedy


def test_a_hanging_check_becomes_a_finding_and_blocks_no_other() -> None:
    blocked = threading.Event()

    def hang() -> Answer:
        blocked.wait()
        return ok("")

    late, good = examine({"late": hang, "good": lambda: ok("fine")}, timeout_s=0.1)
    blocked.set()
    assert late.level is FindingLevel.WARNING
    assert late.found == "no response within 0.1 s"
    assert good.found == "fine"


def test_credentials_of_a_url_are_not_shown() -> None:
    message = "no route to postgresql://me:secret@host/db"
    (finding,) = examine({"x": lambda: problem(message, "s3://key:secret@bucket")})
    assert finding.found == "no route to postgresql://***@host/db"
    assert "secret" not in finding.remedy


def test_foreign_text_is_printed_without_markup_or_terminal_codes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = Finding(
        "[red]name", FindingLevel.PROBLEM, "[bold]a[/bold] :smile: \x1b[31m\nb", "[/] do it"
    )
    print_findings((found,))
    out = capsys.readouterr().out
    assert "[red]name  [bold]a[/bold] :smile:  [31m b" in out
    assert "-> [/] do it" in out
    assert "\x1b" not in out
    assert out.endswith("1 problem, 0 warnings\n")


def test_the_json_form_has_all_of_a_finding() -> None:
    form = json.loads(as_json((Finding("Java", FindingLevel.WARNING, "found", "remedy"),)))
    expected = {"check": "Java", "level": "warning", "message": "found", "help": "remedy"}
    assert form == {"findings": [expected]}


# Packages


@pytest.mark.parametrize(
    ("versions", "version", "holds"),
    [
        (">=3.1,<3.4", "3.3.2", True),
        ("<3.4,>=3.1", "3.1", True),
        (">=3.1,<3.4", "3.4.0", False),
        (">=3.1,<3.4", "3.0.6", False),
        (">=3.10,<3.14", "3.9.1", False),
        ("==4.2.0", "4.2", True),
        ("!=4.2.0", "4.2.0", False),
        ("", "1", True),
    ],
)
def test_versions_are_compared_as_numbers(versions: str, version: str, holds: bool) -> None:
    assert finding.is_within(versions, version) is holds


def test_the_ranges_come_from_our_own_metadata() -> None:
    assert finding.in_order(finding.wanted_range("apache-airflow")).startswith(">=3.")
    assert finding.wanted_range("apache-airflow-providers-apache-spark")
    assert finding.wanted_range("no-such-package") == ""


def test_this_python_is_supported() -> None:
    assert level(finding.python_version()) is FindingLevel.OK


# pyspark and pyspark-client


def install(
    site: Path,
    *,
    pyspark: str | None = None,
    client: str | None = None,
    source: str | None = None,
    jars: tuple[str, ...] = (),
) -> Path:
    """A site-packages folder as the two packages, in whatever order, would leave it."""
    home = site / "pyspark"
    home.mkdir(parents=True)
    for name, version in (("pyspark", pyspark), ("pyspark-client", client)):
        if version:
            folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
            folder.mkdir()
            (folder / "METADATA").write_text(
                f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            )
    if source:
        (home / "__init__.py").write_text("raise RuntimeError('must not be imported')")
        (home / "version.py").write_text(f"# a comment\n__version__: str = '{source}'\n")
    for version in jars:
        (home / "jars").mkdir(exist_ok=True)
        (home / "jars" / f"spark-core_2.13-{version}.jar").write_text("")
    return site


def coherent(site: Path, **env: str) -> Answer:
    return spark.pyspark_coherent([str(site)], {"PATH": "", **env})


def write_program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def distribution(home: Path, version: str = "4.2.0") -> Path:
    write_program(home / "bin" / "spark-submit")
    (home / "jars").mkdir()
    (home / "jars" / f"spark-core_2.13-{version}.jar").write_text("")
    return home


def test_equal_versions_are_fine(tmp_path: Path) -> None:
    site = install(tmp_path, pyspark="4.2.0", client="4.2.0", source="4.2.0", jars=("4.2.0",))
    assert level(coherent(site)) is FindingLevel.OK


def test_pyspark_without_the_client_is_fine(tmp_path: Path) -> None:
    site = install(tmp_path, pyspark="4.2.0", source="4.2.0", jars=("4.2.0",))
    assert level(coherent(site)) is FindingLevel.OK


def test_a_client_unpacked_over_another_pyspark_gets_equal_pins(tmp_path: Path) -> None:
    site = install(tmp_path, pyspark="4.3.0", client="4.2.0", source="4.2.0", jars=("4.3.0",))
    assert coherent(site) == (
        FindingLevel.PROBLEM,
        "mixed versions: pyspark 4.3.0, pyspark-client 4.2.0, pyspark/version.py 4.2.0, "
        "Spark's jars 4.3.0",
        PINS.format("4.2.0"),  # the client lags behind: of 4.3.0 there may be none
    )


def test_different_packages_are_a_problem_even_where_the_files_agree(tmp_path: Path) -> None:
    site = install(tmp_path, pyspark="4.3.0", client="4.2.0", source="4.3.0", jars=("4.3.0",))
    assert level(coherent(site)) is FindingLevel.PROBLEM


@pytest.mark.parametrize("jars", [(), ("4.1.0",), ("4.1.0", "4.2.0")])
def test_jars_of_another_version_or_none_are_a_problem(
    tmp_path: Path, jars: tuple[str, ...]
) -> None:
    site = install(tmp_path, pyspark="4.2.0", source="4.2.0", jars=jars)
    found = coherent(site)
    assert level(found) is FindingLevel.PROBLEM
    assert found[1].endswith(" and ".join(jars) or "missing")
    assert found[2] == PINS.format("4.2.0")


def test_an_empty_folder_after_uninstalling_the_client_is_a_problem(tmp_path: Path) -> None:
    site = install(tmp_path, pyspark="4.2.0", jars=("4.2.0",))
    found = coherent(site)
    assert level(found) is FindingLevel.PROBLEM
    assert "lost its files" in found[1]
    assert found[2] == PINS.format("4.2.0")


def test_a_missing_pyspark_gets_the_install_command(tmp_path: Path) -> None:
    found = coherent(tmp_path)
    assert level(found) is FindingLevel.PROBLEM
    assert found[2] == "pip install 'dqx-airflow[spark]'"


def test_the_client_alone_is_fine_beside_a_distribution_only(tmp_path: Path) -> None:
    site = install(tmp_path / "site", client="4.2.0", source="4.2.0")
    home = distribution(tmp_path / "spark", "4.1.1")
    assert coherent(site, SPARK_HOME=str(home)) == (
        FindingLevel.OK,
        f"only pyspark-client 4.2.0; jobs run with the Spark in {home}",
        "",
    )
    assert level(coherent(site, PATH=str(home / "bin"))) is FindingLevel.OK
    alone = coherent(site)
    assert level(alone) is FindingLevel.PROBLEM
    assert "SPARK_HOME" in alone[2]


def test_a_mixed_client_is_a_problem_beside_a_distribution_too(tmp_path: Path) -> None:
    site = install(tmp_path / "site", client="4.2.0", source="4.1.0")
    home = distribution(tmp_path / "spark")
    assert level(coherent(site, SPARK_HOME=str(home))) is FindingLevel.PROBLEM


# spark-submit


def test_a_distribution_on_path_is_found_with_its_version(tmp_path: Path) -> None:
    home = distribution(tmp_path / "spark")
    found = spark.spark_submit([str(tmp_path)], {"PATH": str(home / "bin")})
    assert found == (FindingLevel.OK, f"{home}/bin/spark-submit, Spark 4.2.0 in {home}", "")


def test_spark_submit_of_pip_leads_to_the_jars_of_pyspark(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "python3.11" / "site-packages"
    install(site, pyspark="4.2.0", source="4.2.0", jars=("4.2.0",))
    write_program(tmp_path / "bin" / "spark-submit")
    (tmp_path / "bin" / "find_spark_home.py").write_text("")
    found = spark.spark_submit([str(site)], {"PATH": str(tmp_path / "bin")})
    assert level(found) is FindingLevel.OK
    assert found[1].endswith(f"Spark 4.2.0 in {site / 'pyspark'}")


def test_spark_submit_off_path_gets_the_export_command(tmp_path: Path) -> None:
    home = distribution(tmp_path / "spark")
    found = spark.spark_submit([str(tmp_path)], {"PATH": "", "SPARK_HOME": str(home)})
    assert level(found) is FindingLevel.PROBLEM
    assert f'export PATH="{home}/bin:$PATH"' in found[2]


def test_a_linked_spark_submit_that_finds_no_jars_asks_for_spark_home(tmp_path: Path) -> None:
    home = distribution(tmp_path / "spark")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "spark-submit").symlink_to(home / "bin" / "spark-submit")
    env = {"PATH": str(tmp_path / "bin")}
    found = spark.spark_submit([str(tmp_path)], env)
    assert level(found) is FindingLevel.PROBLEM
    assert "set SPARK_HOME" in found[2]
    env["SPARK_HOME"] = str(home)
    assert level(spark.spark_submit([str(tmp_path)], env)) is FindingLevel.OK


def test_another_spark_than_pyspark_is_a_warning(tmp_path: Path) -> None:
    site = install(tmp_path / "site", pyspark="4.2.0", source="4.2.0", jars=("4.2.0",))
    home = distribution(tmp_path / "spark", "4.1.1")
    found = spark.spark_submit([str(site)], {"PATH": str(home / "bin")})
    assert level(found) is FindingLevel.WARNING
    assert "Spark 4.1.1" in found[1]
    assert "pyspark is 4.2.0" in found[1]


# Java


def java_that_is(version: str, home: Path) -> Path:
    text = f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n"
    write_program(home / "bin" / "java", text)
    return home


def test_an_old_java_is_mentioned_beside_the_one_that_is_used(tmp_path: Path) -> None:
    old, new = java_that_is("11.0.2", tmp_path / "11"), java_that_is("17.0.1", tmp_path / "17")
    found = spark.java({"JAVA_HOME": str(old), "PATH": str(new / "bin")})
    assert level(found) is FindingLevel.WARNING
    assert f"Java 17 in {new} (from PATH)" in found[1]
    assert f"{old}/bin/java (from JAVA_HOME): Java 11 is too old" in found[1]
    assert f'JAVA_HOME="{new}"' in found[2]


def test_a_supported_java_is_the_only_finding(tmp_path: Path) -> None:
    home = java_that_is("17.0.1", tmp_path / "17")
    expected = (FindingLevel.OK, f"Java 17 in {home} (from JAVA_HOME)", "")
    assert spark.java({"JAVA_HOME": str(home), "PATH": ""}) == expected


# Airflow


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('{"conn_type": "spark", "host": "local[2]"}', "type spark, host local[2]"),
        ('{"conn_type":"spark","host":"spark://m","port":7077}', "host spark://m:7077"),
        ("spark://local%5B2%5D", "type spark, host local[2]"),
        ("spark://user:secret@master:7077", "host master:7077"),
        ("spark-connect://user:secret@lake:15002", "type spark_connect, host lake:15002"),
        ('{"conn_type": "spark", "host": "u:secret@m", "password": "secret"}', "host m"),
    ],
)
def test_a_connection_in_the_environment_is_shown_without_its_secrets(
    value: str, message: str
) -> None:
    found = airflow.connection("spark_default", {"AIRFLOW_CONN_SPARK_DEFAULT": value})
    assert level(found) is FindingLevel.OK
    assert message in found[1]
    assert "secret" not in " ".join(found[1:])


@pytest.mark.parametrize("value", ["{not json", '"text"', "local[2]"])
def test_a_connection_that_cannot_be_read_is_a_problem(value: str) -> None:
    found = airflow.connection("spark_default", {"AIRFLOW_CONN_SPARK_DEFAULT": value})
    assert level(found) is FindingLevel.PROBLEM
    assert "AIRFLOW_CONN_SPARK_DEFAULT" in found[2]


def test_a_connection_without_host_or_of_another_type_is_a_warning() -> None:
    for value in ('{"conn_type": "spark"}', "http://master"):
        found = airflow.connection("x", {"AIRFLOW_CONN_X": value})
        assert level(found) is FindingLevel.WARNING


def test_the_connection_is_found_among_the_lines_that_airflow_prints() -> None:
    rows = json.dumps([{"conn_id": "s", "conn_type": "spark", "host": "m", "port": "7077"}])
    summary = airflow.listed_connection(f"2026 [info] loading [x]\n{rows}\nbye\n", "s")
    assert summary == airflow.ConnectionSummary("spark", "m:7077")
    assert airflow.listed_connection("[1, 2]\nnothing", "s") is None


def test_airflow_without_a_configuration_is_not_started(tmp_path: Path) -> None:
    skip_without_airflow()
    env = {"AIRFLOW_HOME": str(tmp_path / "home"), "PATH": ""}
    found = airflow.database(env)
    assert level(found) is FindingLevel.PROBLEM
    assert "airflow db migrate" in found[2]
    missing = airflow.connection("spark_default", env)
    assert level(missing) is FindingLevel.PROBLEM
    assert "master yarn" in missing[1]
    # Airflow makes its home when it is asked anything.
    assert not (tmp_path / "home").exists()


def test_a_hanging_command_is_stopped() -> None:
    reply = airflow.ask([sys.executable, "-c", "input(); import time; time.sleep(60)"], {}, 10)
    assert reply.code == 1  # it has no terminal to read from
    slow = airflow.ask([sys.executable, "-c", "import time; time.sleep(60)"], {}, 0.2)
    assert slow.code is None


@pytest.mark.more
def test_our_entry_points_are_registered_and_load(tmp_path: Path) -> None:
    found = airflow.entry_points(dict(os.environ))
    assert level(found) is FindingLevel.OK, found
    assert "dqx_airflow:get_provider_info" in found[1]


def test_a_plugin_that_fails_to_import_has_a_reason() -> None:
    point = EntryPoint("ours", "dqx_airflow.no_such_plugin:Plugin", "airflow.plugins")
    reply = airflow.load_apart([point], dict(os.environ))
    assert reply.code == 1
    assert reply.last_line == "ModuleNotFoundError: No module named 'dqx_airflow.no_such_plugin'"


@pytest.mark.airflow
@pytest.mark.slow
def test_a_plugin_is_loaded_with_airflow_and_leaves_no_home_behind(tmp_path: Path) -> None:
    skip_without_airflow()
    point = EntryPoint("ours", "airflow.plugins_manager:AirflowPlugin", "airflow.plugins")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    reply = airflow.load_apart([point], env)
    assert reply.code == 0, reply.last_line
    assert not list(tmp_path.iterdir())


# Services


def test_a_writable_results_root_is_fine_and_left_as_it_was(tmp_path: Path) -> None:
    root = tmp_path / "results"
    root.mkdir()
    assert airflow.results_store(str(root)) == (FindingLevel.OK, f"{root} is writable", "")
    assert not list(root.iterdir())


def test_an_engine_that_was_proven_for_another_version_of_ours_is_named(tmp_path: Path) -> None:
    engine = {"spark": "4.2.0", "dqx_airflow": "0.2.0", "cases": "1", "settings": {}}
    older = EngineProof(
        key="1",
        engine=json.dumps(engine),
        spark_version="4.2.0",
        at=datetime(2024, 2, 1, tzinfo=timezone.utc),
        agreeing=1,
        differences=(),
        doubts=("sums over decimal",),
    )
    write_proof(str(tmp_path), older)
    assert airflow.results_store(str(tmp_path)) == (
        FindingLevel.WARNING,
        f"{tmp_path} is writable; Spark 4.2.0 was proven for dqx_airflow 0.2.0",
        f"dql doctor --prove --connection ... --results-root {tmp_path}",
    )
    engine["dqx_airflow"] = dqx_airflow.__version__
    again = replace(older, engine=json.dumps(engine), at=datetime(2024, 2, 2, tzinfo=timezone.utc))
    write_proof(str(tmp_path), again)
    assert level(airflow.results_store(str(tmp_path))) is FindingLevel.OK


def test_a_results_root_below_a_file_is_a_problem_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = airflow.results_store(str(tmp_path / "file" / "results"))
    assert level(found) is FindingLevel.PROBLEM
    assert found[2]


@pytest.fixture
def only_lineage(monkeypatch: pytest.MonkeyPatch, here: Path) -> pytest.MonkeyPatch:
    """Nothing of OpenLineage is configured, neither by variables nor by a file."""
    for name in [name for name in os.environ if name.startswith("OPENLINEAGE")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(here))
    return monkeypatch


def test_unconfigured_lineage_is_fine_and_names_the_setting(
    only_lineage: pytest.MonkeyPatch,
) -> None:
    found = airflow.lineage()
    assert level(found) is FindingLevel.OK
    assert "OPENLINEAGE_URL" in found[2]


def test_unreachable_lineage_is_a_warning(only_lineage: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        only_lineage.setenv("OPENLINEAGE_URL", f"http://127.0.0.1:{taken.getsockname()[1]}")
        found = airflow.lineage()
    assert level(found) is FindingLevel.WARNING
    assert "cannot be reached" in found[1]


def test_lineage_into_a_file_is_fine(only_lineage: pytest.MonkeyPatch, tmp_path: Path) -> None:
    transport = {"type": "file", "log_file_path": str(tmp_path / "events"), "append": True}
    for key, value in transport.items():
        only_lineage.setenv(f"OPENLINEAGE__TRANSPORT__{key.upper()}", str(value))
    found = airflow.lineage()
    assert level(found) is FindingLevel.OK
    assert found[2] == ""


def test_a_missing_results_root_of_the_gates_names_the_setting(tmp_path: Path) -> None:
    env = {"AIRFLOW_HOME": str(tmp_path), "DQX_RESULTS_ROOT": "/of/the/command/line"}
    found = airflow.results_store(None, env)
    assert level(found) is FindingLevel.WARNING
    assert "AIRFLOW__DQX__RESULTS_ROOT" in found[2]
    assert "/of/the/command/line" in found[2]


def test_the_results_root_is_that_of_the_gates(tmp_path: Path) -> None:
    env = {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__DQX__RESULTS_ROOT": str(tmp_path / "results")}
    assert airflow.results_store(None, env) == (
        FindingLevel.OK,
        f"{tmp_path}/results is writable",
        "",
    )
    env["AIRFLOW__DQX__RESULTS_CONN_ID"] = "lake"
    env["AIRFLOW_CONN_LAKE"] = '{"conn_type": "dqx", "host": "s3://lake/dqx"}'
    assert "type dqx, host s3://lake/dqx" in airflow.results_store(None, env)[1]
    env["AIRFLOW_CONN_LAKE"] = '{"conn_type": "aws", "host": "s3://lake/dqx"}'
    assert airflow.results_store(None, env)[2] == "its type should be dqx"


def test_a_timeout_is_not_taken_for_a_broken_installation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    skip_without_airflow()
    (tmp_path / "airflow.cfg").write_text("")
    env = {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__DQX__RESULTS_ROOT": "/lake/dqx"}
    monkeypatch.setattr(airflow, "ask", lambda *_: airflow.Reply(None, "", ""))
    assert level(airflow.entry_points(env)) is FindingLevel.WARNING
    assert airflow.gate_settings(env) == {"results_root": "/lake/dqx"}


@pytest.mark.slow
def test_the_results_root_is_read_from_the_configuration_of_airflow(tmp_path: Path) -> None:
    skip_without_airflow()
    (tmp_path / "airflow.cfg").write_text("[dqx]\nresults_root = s3://lake/dqx\n")
    env = {**os.environ, "AIRFLOW_HOME": str(tmp_path)}
    env.pop("AIRFLOW__DQX__RESULTS_ROOT", None)
    assert airflow.gate_settings(env) == {"results_root": "s3://lake/dqx"}


# The command


# The kinds of installations


@pytest.mark.more
def test_the_compiled_packages_load_here() -> None:
    found, message, _ = packages.importable()
    assert found is FindingLevel.OK
    assert "pyarrow" in message


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["numpy", "pyarrow", "deltalake"])
def test_a_package_that_does_not_load_is_a_problem_with_its_reason(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = f"{name} requires another release"
    (tmp_path / f"{name}.py").write_text(f"raise ImportError({reason!r})")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found, message, remedy = packages.importable()
    assert found is FindingLevel.PROBLEM
    assert message.startswith(f"{name} ")
    assert message.endswith(f"ImportError: {reason}")
    assert remedy == f"pip install --force-reinstall {name}"


@pytest.mark.more
def test_packages_that_load_one_by_one_may_fail_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deltalake.py").write_text(
        "import sys\nif 'numpy' in sys.modules: raise ImportError('not with numpy')"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found, message, _ = packages.importable()
    assert found is FindingLevel.PROBLEM
    assert message.endswith("load one by one, but not in one process")


def test_each_installation_is_examined_for_what_it_needs(tmp_path: Path) -> None:
    env = {"PATH": str(tmp_path), "DQX_RESULTS_ROOT": str(tmp_path)}
    names = {
        kind: {*checks_of(kind, "spark_default", None, env)} for kind in get_args(Installation)
    }
    common = {"Python", "packages", "pyspark", "lineage"}
    assert [kind for kind, of_kind in names.items() if not common <= of_kind] == []
    assert {kind for kind, of_kind in names.items() if "Airflow" in of_kind} == {"local", "worker"}
    # A worker has one where it submits, as this environment does.
    with_java = {kind for kind, of_kind in names.items() if "Java" in of_kind}
    assert with_java - {"worker"} == {"local", "driver"}
    assert {kind for kind, of_kind in names.items() if "Sail" in of_kind} == {"sail"}


def test_a_client_of_a_server_is_enough_where_no_spark_starts(tmp_path: Path) -> None:
    client = spark.PysparkInstall(client="4.2.0", source="4.2.0")
    assert level(spark.judge_pyspark(client, None)) is FindingLevel.PROBLEM
    assert level(spark.judge_pyspark(client, None, needs_jars=False)) is FindingLevel.OK
    mixed = replace(client, databricks="16.1.7")
    assert level(spark.judge_pyspark(mixed, None, needs_jars=False)) is FindingLevel.PROBLEM


def test_a_worker_with_spark_submit_needs_java_too(tmp_path: Path) -> None:
    submit = tmp_path / "spark-submit"
    submit.write_text("")
    submit.chmod(0o755)
    checks = checks_of("worker", "spark_default", None, {"PATH": str(tmp_path)})
    assert {"spark-submit", "Java"} <= {*checks}


def test_importing_the_command_imports_nothing_heavy() -> None:
    program = (
        "import sys, typer, enum, dataclasses, contextvars, __future__; before = set(sys.modules); "
        "import dqx_airflow.cli.doctor; "
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    ours = [
        "dqx_airflow",
        "dqx_airflow.cli",
        "dqx_airflow.cli.command",
        "dqx_airflow.cli.doctor",
        "dqx_airflow.cli.stores",
        "dqx_airflow.errors",
    ]
    assert done.stdout.decode().strip() == str(ours)


def run_doctor(env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    program = "import typer; from dqx_airflow.cli.doctor import doctor; typer.run(doctor)"
    return ended([sys.executable, "-c", program, *arguments], env=env, timeout=120)


@pytest.mark.slow
def test_a_machine_without_anything_gets_a_list_and_exit_code_1(tmp_path: Path) -> None:
    env = {"PATH": str(tmp_path), "HOME": str(tmp_path), "AIRFLOW_HOME": str(tmp_path / "none")}
    done = run_doctor(env, "--connection", "[bold]x", "--results-root", str(tmp_path / "r"))
    assert done.returncode == 1, done.stderr
    assert "problem connection [bold]x" in done.stdout
    assert f"{tmp_path}/r is writable" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert not done.stderr


@pytest.mark.nightly
@pytest.mark.airflow
def test_a_real_installation_is_examined(tmp_path: Path) -> None:
    skip_without_airflow()
    command_folder = Path(sys.executable).parent
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")},
        "PATH": f"{command_folder}{os.pathsep}{os.environ['PATH']}",
        "AIRFLOW_HOME": str(tmp_path),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    (tmp_path / "airflow.cfg").write_text("")
    before = json.loads(run_doctor(env, "--format", "json").stdout)["findings"]
    found = {finding["check"]: finding for finding in before}
    assert found["Airflow database"]["help"] == "airflow db migrate"
    assert found["connection spark_default"]["level"] == "problem"

    airflow_command = str(command_folder / "airflow")
    subprocess.run([airflow_command, "db", "migrate"], env=env, capture_output=True, check=True)
    add = ["connections", "add", "lake", "--conn-type", "spark", "--conn-host", "local[2]"]
    add += ["--conn-password", "hush-hush"]
    subprocess.run([airflow_command, *add], env=env, capture_output=True, check=True)
    results = ["--results-root", str(tmp_path / "results")]
    done = run_doctor(env, "--connection", "lake", "--format", "json", *results)
    findings = json.loads(done.stdout)["findings"]
    levels = {finding["check"]: finding["level"] for finding in findings}
    assert levels["Airflow database"] == "ok"
    assert levels["connection lake"] == "ok"
    assert levels["Airflow"] == levels["entry points"] == levels["results store"] == "ok"
    assert "hush-hush" not in done.stdout + done.stderr
    assert done.returncode == ("problem" in levels.values())


# Gates on services


SERVICES = services.services()


@pytest.mark.parametrize("name", SERVICES)
def test_every_submitter_says_what_it_needs(name: str) -> None:
    from importlib.metadata import requires

    from dqx_airflow.operators import submitters

    assert set(SERVICES) == set(submitters.__all__) - {"DriverEnd", "Job", "Submitter"}
    package = f"apache-airflow-providers-{SERVICES[name].provider}"
    required = requires("dqx-airflow") or ()
    assert any(text.startswith(package) for text in required), f"{package} is in no extra"


@pytest.mark.parametrize(
    ("name", "old", "fine"),
    [
        ("DatabricksRuns", "9.1.x-scala2.12 13.3.x-scala2.12", "14.3.x-scala2.12 17.3.x-scala2.13"),
        ("DataprocBatches", "1.1 2.1.40", "1.2 2.3 3.0"),
        ("SparkApplications", "3.4.1", "3.5.6 4.0.1"),
    ],
)
def test_a_runtime_with_an_old_spark_is_a_problem(name: str, old: str, fine: str) -> None:
    found = {
        runtime: services.spark(runtime, SERVICES[name]) for runtime in f"{old} {fine}".split()
    }
    problems = [text for text, answer in found.items() if level(answer) is FindingLevel.PROBLEM]
    assert problems == [text for text, (_, _, remedy) in found.items() if remedy] == old.split()
    assert level(services.spark(None, SERVICES[name])) is FindingLevel.OK
    too_old, oldest = SERVICES[name].too_old, SERVICES[name].oldest
    assert not oldest or not re.match(too_old, oldest)


@pytest.mark.parametrize(
    ("name", "value", "expected", "remedy"),
    [
        ("LivyBatches", '{"conn_type": "livy", "host": "http://lake"}', FindingLevel.OK, ""),
        ("LivyBatches", '{"conn_type": "livy"}', FindingLevel.WARNING, "such as http://LIVY"),
        ("LivyBatches", '{"conn_type": "http"}', FindingLevel.WARNING, "should be livy"),
        ("GlueJobRuns", '{"conn_type": "aws"}', FindingLevel.OK, ""),
        ("DataprocJobs", '{"conn_type": "google_cloud_platform"}', FindingLevel.OK, ""),
    ],
)
def test_the_connection_is_that_of_the_provider(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, expected: FindingLevel, remedy: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE", value)
    found = services.connection("service", SERVICES[name])
    assert level(found) is expected
    assert remedy in found[2]


def test_a_missing_connection_is_a_problem_where_the_provider_needs_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    skip_without_airflow()
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    found = services.connection("lake", SERVICES["DatabricksRuns"])
    assert level(found) is FindingLevel.PROBLEM
    assert "airflow connections add lake --conn-type databricks --conn-host" in found[2]
    found = services.connection("lake", SERVICES["EmrSteps"])
    assert level(found) is FindingLevel.WARNING
    assert "uses the credentials of this machine" in found[1]
    assert found[2].endswith("airflow connections add lake --conn-type aws")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A bucket with one object, /lake/jobs/gate_job.py."""

    def answer(asked: Asked) -> Reply:
        if asked.method != "HEAD":  # a listing
            empty = b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
            return Reply(200, empty)
        found = {"Last-Modified": "Thu, 26 Nov 2026 19:00:00 GMT", "ETag": '"1"'}
        status = 200 if asked.path == "/lake/jobs/gate_job.py" else 404
        return Reply(status, headers={"Content-Length": "12", **found})

    with http_stub(answer) as address:
        options = {"aws_endpoint_url": address, "aws_allow_http": "true", "aws_region": "us-east-1"}
        options |= {"aws_access_key_id": "anybody", "aws_secret_access_key": "anything"}
        monkeypatch.setenv("DQX_RESULTS_STORAGE", json.dumps(options))
        yield


@pytest.mark.parametrize(
    ("address", "expected", "message"),
    [
        ("s3://lake/jobs/gate_job.py", FindingLevel.OK, "s3://lake/jobs/gate_job.py"),
        ("s3://lake/job/gate_job.py", FindingLevel.PROBLEM, "does not exist"),
        ("hdfs:///apps/gate_job.py", FindingLevel.OK, "only the service can read it"),
        ("/Workspace/Shared/gate_job.py", FindingLevel.OK, "only the service can read it"),
        (None, FindingLevel.OK, "a wheel, or the script of a job there"),
    ],
)
@pytest.mark.usefixtures("bucket")
def test_the_program_is_looked_for_where_this_machine_can_see_it(
    address: str | None, expected: FindingLevel, message: str
) -> None:
    found = services.program(address)
    assert level(found) is expected
    assert message in found[1]
    assert ("dql package" in found[2]) is (expected is FindingLevel.PROBLEM)


def test_a_store_that_cannot_be_reached_is_no_missing_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        options = {"aws_endpoint_url": address, "aws_allow_http": "true", "max_retries": "0"}
        login = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "aws_region": "us-east-1"}
        monkeypatch.setenv("DQX_RESULTS_STORAGE", json.dumps({**options, **login}))
        found = services.program("s3://lake/jobs/gate_job.py")
    assert level(found) is FindingLevel.WARNING
    assert "cannot be read from here" in found[1]


def test_a_results_root_of_this_machine_is_a_warning(tmp_path: Path) -> None:
    found = services.results_root(str(tmp_path / "results"))
    assert level(found) is FindingLevel.WARNING
    assert "s3://BUCKET/FOLDER" in found[2]


GATES = """
from airflow.sdk import DAG
from dqx_airflow.operators import DqlGateOperator
from dqx_airflow.operators.submitters import EmrSteps, LivyBatches

SUITE = 'suite "S" { check "C" on orders { assert null_count(id) == 0 } }'
COMMON = {"suite": SUITE, "datasets": {"orders": "/lake"}, "results_root": "ROOT"}
with DAG("lake"):
    DqlGateOperator(task_id="local", **COMMON)
    DqlGateOperator(task_id="livy", submit=LivyBatches({"file": "hdfs:///gate_job.py"}), **COMMON)
    DqlGateOperator.partial(task_id="emr", submit=EmrSteps("j-1", "/gate_job.py"), **COMMON).expand(
        date=["2024-05-17", "2024-05-18"]
    )
"""


@pytest.mark.slow
@pytest.mark.airflow
def test_the_gates_of_a_dag_file_are_examined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without_airflow()
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "home"))
    file = tmp_path / "lake.py"
    file.write_text(GATES.replace("ROOT", str(tmp_path / "results")))
    monkeypatch.setenv("AIRFLOW_CONN_LIVY_DEFAULT", '{"conn_type": "livy", "host": "http://lake"}')
    done = run_doctor(dict(os.environ), "--submit", str(file), "--format", "json")
    found = {each["check"]: each for each in json.loads(done.stdout)["findings"]}
    whats = ("program", "package", "Spark", "results root")
    assert set(found) == {
        *(f"lake.livy: {what}" for what in ("provider", "connection livy_default", *whats)),
        *(f"lake.emr: {what}" for what in ("provider", "connection aws_default", *whats)),
    }
    assert found["lake.livy: connection livy_default"]["level"] == "ok"
    assert found["lake.emr: program"]["message"].startswith("/gate_job.py: only the service")
    assert found["lake.emr: results root"]["level"] == "warning"


@pytest.mark.slow
@pytest.mark.airflow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import airflow\n1 / 0", "cannot read .*: ZeroDivisionError: division by zero"),
        ("import airflow", "no gate in .* has the argument submit"),
    ],
)
def test_a_file_without_such_gates_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    skip_without_airflow()
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "home"))
    (tmp_path / "lake.py").write_text(f"{text}\n# DAG")
    with pytest.raises(RequestError, match=message):
        services.service_checks(tmp_path / "lake.py")


@pytest.mark.parametrize(
    ("kind", "fields", "level_of_it", "words"),
    [
        (
            "DatabricksRuns",
            {
                "task": {
                    "libraries": [{"whl": f"/Volumes/x/dqx_airflow-{__version__}-py3-none-any.whl"}]
                }
            },
            FindingLevel.OK,
            "only the service can read it",
        ),
        (
            "GlueJobRuns",
            {
                "run": {
                    "Arguments": {"--additional-python-modules": f"six,dqx-airflow=={__version__}"}
                }
            },
            FindingLevel.WARNING,
            "from its index",
        ),
        (
            "LivyBatches",
            {"batch": {"pyFiles": ["hdfs:///dqx_airflow-0.1.0-py3-none-any.whl"]}},
            FindingLevel.PROBLEM,
            "0.1.0",
        ),
        ("DatabricksRuns", {"task": {"new_cluster": {}}}, FindingLevel.WARNING, "from its index"),
        ("DatabricksRuns", {"task": {"environment_key": "e"}}, FindingLevel.OK, "already"),
        (
            "DatabricksRuns",
            {"task": {"spark_python_task": {"python_file": "/Workspace/gate_job.py"}}},
            FindingLevel.OK,
            "already",
        ),
        ("EmrSteps", {"program": "s3://lake/jobs/gate_job.py"}, FindingLevel.OK, "already"),
    ],
)
def test_the_package_of_a_service_is_a_wheel_of_this_version_or_what_its_index_has(
    kind: str, fields: dict[str, Any], level_of_it: FindingLevel, words: str
) -> None:
    found = services.package_there(kind, fields)
    assert level(found) is level_of_it
    assert words in found[1]
