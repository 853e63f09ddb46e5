"""The metrics that a gate reports to Airflow."""

from __future__ import annotations

import gzip
import json
import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from dqx_airflow.values import Severity, Status
from dqx_airflow.values.files import shipped
from tests.http_stub import Asked, Reply, http_stub
from tests.made_reports import report_at, verdict_of
from tests.operators.gate_stubs import Gates, SparkSubmit, needs_airflow

pytestmark = pytest.mark.airflow

Context = dict[str, Any]


class Backend:
    """A backend of Airflow's metrics that keeps what it is given, below its name and tags."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, ...], Any] = {}

    def _keep(self, stat: str, value: Any, tags: dict[str, str]) -> None:
        own = [value for name, value in tags.items() if name not in ("gate", "dag_id", "task_id")]
        self.kept[(stat, tags["gate"], *own)] = value

    def incr(self, stat: str, count: int = 1, *, tags: dict[str, str]) -> None:
        self._keep(stat, count, tags)

    def gauge(self, stat: str, value: float, *, tags: dict[str, str]) -> None:
        self._keep(stat, value, tags)

    def timing(self, stat: str, dt: Any, *, tags: dict[str, str]) -> None:
        self._keep(stat, dt.total_seconds() >= 0, tags)


@pytest.fixture
def backend(airflow_environment: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Backend]:
    from airflow.providers.common.compat.sdk import Stats

    backend = Backend()
    airflow = tuple(map(int, version("apache-airflow-core").split(".")[:2]))
    if airflow < (3, 3):
        monkeypatch.setattr(Stats, "instance", backend)
        monkeypatch.setattr(Stats, "_instance_pid", os.getpid())
        yield backend
        return
    Stats.initialize(factory=lambda: backend, export_legacy_names=False)
    yield backend
    from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger

    Stats.initialize(factory=NoStatsLogger, export_legacy_names=False)


def test_a_run_is_counted_by_its_outcome_with_its_rows_and_assertions(
    gate: Gates, spark_submit: SparkSubmit, backend: Backend
) -> None:
    spark_submit.will("warned")
    gate.run()
    assert backend.kept == {
        ("dqx.gate.outcome", "lake.gate", "warned"): 1,
        ("dqx.gate.duration", "lake.gate"): True,
        ("dqx.gate.rows", "lake.gate", "orders"): 100,
        ("dqx.gate.assertions", "lake.gate", "passed"): 1,
        ("dqx.gate.assertions", "lake.gate", "failed"): 1,
        ("dqx.gate.assertions", "lake.gate", "skipped"): 0,
        ("dqx.gate.assertions", "lake.gate", "error"): 0,
    }


@pytest.mark.few(1)
@needs_airflow(3, 3)
@pytest.mark.parametrize("service", ["statsd", "otel"])
def test_the_metrics_arrive_with_their_tags(
    gate: Gates, spark_submit: SparkSubmit, monkeypatch: pytest.MonkeyPatch, service: str
) -> None:
    pytest.importorskip({"statsd": "statsd", "otel": "opentelemetry.sdk.metrics"}[service])
    from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger
    from airflow.sdk.observability.metrics.stats_utils import get_stats_factory
    from airflow.sdk.observability.stats import Stats

    spark_submit.will("warned")
    with {"statsd": statsd_server, "otel": otel_collector}[service]() as (port, received):
        monkeypatch.setenv(f"AIRFLOW__METRICS__{service.upper()}_ON", "True")
        monkeypatch.setenv(f"AIRFLOW__METRICS__{service.upper()}_HOST", "127.0.0.1")
        monkeypatch.setenv(f"AIRFLOW__METRICS__{service.upper()}_PORT", str(port))
        monkeypatch.setenv("AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED", "True")
        Stats.initialize(factory=get_stats_factory(), export_legacy_names=False)
        try:
            gate.run()
            arrived = {(name, *sorted(tags.items())): value for name, tags, value in received()}
        finally:
            Stats.initialize(factory=NoStatsLogger, export_legacy_names=False)
    of_gate = (("dag_id", "lake"), ("gate", "lake.gate"))
    task = ("task_id", "gate")
    wanted = {
        ("airflow.dqx.gate.outcome", *of_gate, ("outcome", "warned"), task): 1,
        (
            "airflow.dqx.gate.rows",
            ("dag_id", "lake"),
            ("dataset", "orders"),
            *of_gate[1:],
            task,
        ): 100,
        ("airflow.dqx.gate.assertions", *of_gate, ("status", "failed"), task): 1,
        ("airflow.dqx.gate.open_slices", *of_gate, task): 0,
    }
    assert {key: arrived.get(key) for key in wanted} == wanted
    assert "airflow.dqx.gate.duration" in {name for name, *_ in arrived}


Received = Callable[[], list[tuple[str, dict[str, str], float]]]


@contextmanager
def statsd_server() -> Iterator[tuple[int, Received]]:
    """A port for the lines of StatsD, with tags as InfluxDB has them."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(0.2)

        def received() -> list[tuple[str, dict[str, str], float]]:
            lines = []
            with suppress(TimeoutError):
                while True:
                    lines += server.recv(65536).decode().splitlines()
            found = []
            for line in lines:
                name, _, value = line.rpartition(":")
                name, *tags = name.split(",")
                number = float(value.partition("|")[0])
                found.append((name, dict(tag.split("=") for tag in tags), number))
            return found

        yield server.getsockname()[1], received


@contextmanager
def otel_collector() -> Iterator[tuple[int, Received]]:
    """A port for what OpenTelemetry exports over HTTP."""
    from opentelemetry import metrics
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsServiceRequest,
    )

    bodies = []

    def answer(asked: Asked) -> Reply:
        is_packed = asked.headers.get("Content-Encoding") == "gzip"
        bodies.append(gzip.decompress(asked.body) if is_packed else asked.body)
        return Reply()

    def received() -> list[tuple[str, dict[str, str], float]]:
        provider: Any = metrics.get_meter_provider()
        provider.force_flush()
        provider.shutdown()
        found = []
        for body in bodies:
            request = ExportMetricsServiceRequest.FromString(body)
            scopes = [scope for one in request.resource_metrics for scope in one.scope_metrics]
            for metric in (metric for scope in scopes for metric in scope.metrics):
                for point in getattr(metric, metric.WhichOneof("data")).data_points:
                    tags = {tag.key: tag.value.string_value for tag in point.attributes}
                    value = getattr(point, "as_double", 0) or getattr(point, "as_int", 0)
                    found.append((metric.name, tags, value))
        return found

    with http_stub(answer) as address:
        yield int(address.rpartition(":")[2]), received


def test_a_run_without_a_report_is_counted(
    gate: Gates, spark_submit: SparkSubmit, backend: Backend
) -> None:
    spark_submit.will("exit=1")
    with pytest.raises(Exception, match="the Spark job failed"):
        gate.run()
    assert backend.kept == {("dqx.gate.outcome", "lake.gate", "no_report"): 1}


def test_open_slices_of_all_dates_are_counted_until_each_is_good(
    gate: Gates, spark_submit: SparkSubmit, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_ON", "True")
    counts = []
    runs = [
        ("2024-05-16", "blocked"),
        ("2024-05-17", "broken"),
        ("2024-05-18", "exit=1"),
        ("2024-05-16", "passed"),
        ("2024-05-18", "passed"),
    ]
    for number, (on, outcome) in enumerate(runs):
        gate.context["ti"].try_number, gate.context["ti"].id = number + 1, f"attempt-{number}"
        spark_submit.will(outcome)
        with suppress(Exception):
            gate.run(date=on)
        counts.append(backend.kept[("dqx.gate.open_slices", "lake.gate")])
    assert counts == [1, 2, 3, 2, 1]


@pytest.mark.parametrize(
    ("tries", "ends", "is_stored"),
    [(0, "exit=1", True), (2, "exit=1", False), (2, "no suite", True)],
)
def test_a_date_without_a_report_is_stored_unless_the_task_is_tried_again(
    gate: Gates, spark_submit: SparkSubmit, tmp_path: Path, tries: int, ends: str, is_stored: bool
) -> None:
    from airflow.providers.common.compat.sdk import AirflowException

    from dqx_airflow.results.missing_reports import missing_reports

    spark_submit.will("passed")
    gate.run(date="2024-05-16")
    gate.context["ti"].max_tries = tries
    changes = {}
    if ends == "no suite":
        changes["suite"] = 'suite "s" { check }'
    else:
        spark_submit.will(ends)
    with pytest.raises(AirflowException) as raised:
        gate.run(date="2024-05-17", **changes)
    found = missing_reports(str(tmp_path / "results"))
    assert [(one.gate, str(one.date), one.map_index) for one in found] == (
        [("lake.gate", "2024-05-17", -1)] if is_stored else []
    )
    assert [one for one in found if not str(raised.value).startswith(one.error[:40])] == []


def test_a_store_that_cannot_be_read_costs_a_count_and_not_the_task(
    context: Context,
    backend: Backend,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    from dqx_airflow.operators.gate_metrics import emit_open_slices
    from dqx_airflow.operators.results_location import ResultsLocation

    monkeypatch.setenv("AIRFLOW__METRICS__OTEL_ON", "True")
    (tmp_path / "runs" / "_delta_log").mkdir(parents=True)
    (tmp_path / "runs" / "_delta_log" / f"{0:020}.json").write_text("{")
    report = report_at(datetime(2024, 5, 17, tzinfo=timezone.utc))
    emit_open_slices("lake.gate", context, [report.run_key], ResultsLocation(str(tmp_path)))
    assert backend.kept == {}
    assert "the open slices are not counted" in caplog.text


@pytest.mark.parametrize(
    ("verdicts", "late"),
    [
        ((), None),
        ((("null_count(id)", "failed"),), None),
        ((("freshness(at)", "passed"), ("null_count(id)", "failed")), 0),
        (
            (
                ("freshness(at)", "failed"),
                ("freshness(seen_at)", "failed"),
                ("freshness(at)", "error"),
            ),
            2,
        ),
    ],
)
def test_late_data_is_counted_by_gates_that_look_at_its_age(
    backend: Backend, context: Context, verdicts: tuple[tuple[str, str], ...], late: int | None
) -> None:
    from dqx_airflow.operators.gate_metrics import emit_metrics

    at = datetime(2024, 5, 17, tzinfo=timezone.utc)
    judged = tuple(
        verdict_of("n", expression=expression, severity=Severity.P2, status=Status(status))
        for expression, status in verdicts
    )
    emit_metrics("lake.gate", context, report_at(at, verdicts=judged))
    assert backend.kept.get(("dqx.gate.late", "lake.gate")) == late


PAGE = Path(__file__).parents[2] / "dqx_airflow" / "docs" / "operating.md"


def test_the_examples_for_prometheus_and_grafana_name_metrics_that_exist(
    gate: Gates, spark_submit: SparkSubmit, backend: Backend
) -> None:
    spark_submit.will("warned")
    gate.run()
    # Of data with an age, if metrics are sent, and of a webhook that takes nothing.
    of_some = {"dqx.gate.late", "dqx.gate.open_slices", "dqx.webhook.lost"}
    emitted = {*of_some, *(stat for stat, *_ in backend.kept)}
    assert emitted == set(re.findall(r"^\| `(dqx\.[.\w]+)` \|", PAGE.read_text(), re.M))
    mappings = yaml.safe_load(shipped("dags_examples/prometheus/statsd_mapping.yml").read_text())
    known = set()
    for stat in emitted:
        name = f"airflow.{stat}"
        first = next(one for one in mappings["mappings"] if fnmatch(name, one["match"]))
        known.add(first["name"].replace("$1", stat.rpartition(".")[2]))
    rules = yaml.safe_load(shipped("dags_examples/prometheus/gate_rules.yml").read_text())
    alerts = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    dashboard = json.loads(shipped("dags_examples/grafana/gate_metrics.json").read_text())
    drawn = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    named = {
        name.removesuffix("_bucket")
        for text in (*alerts, *drawn)
        for name in re.findall(r"dqx_\w+", text)
    }
    assert named == known
    outcomes = re.findall(r"outcome=~?\"([\w|]+)\"", " ".join(alerts))
    assert {one for some in outcomes for one in some.split("|")} <= {
        "blocked",
        "broken",
        "no_report",
    }
