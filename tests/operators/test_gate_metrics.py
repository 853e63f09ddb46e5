"""What a gate reports to Airflow's metrics."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timezone
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from gate_stubs import SparkSubmit, report_at

from dqx_airflow.values import Severity, Status, Verdict
from dqx_airflow.values.files import shipped

pytestmark = pytest.mark.airflow

Gate = Callable[..., Any]
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
def backend(airflow_environment: None) -> Iterator[Backend]:
    from airflow.providers.common.compat.sdk import Stats

    backend = Backend()
    Stats.initialize(factory=lambda: backend, export_legacy_names=False)
    yield backend
    from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger

    Stats.initialize(factory=NoStatsLogger, export_legacy_names=False)


def test_a_run_is_counted_by_its_outcome_with_its_rows_and_assertions(
    gate: Gate, context: Context, spark_submit: SparkSubmit, backend: Backend
) -> None:
    spark_submit.will("warned")
    gate().execute(context)
    assert backend.kept == {
        ("dqx.gate.outcome", "lake.gate", "warned"): 1,
        ("dqx.gate.duration", "lake.gate"): True,
        ("dqx.gate.rows", "lake.gate", "orders"): 100,
        ("dqx.gate.assertions", "lake.gate", "passed"): 1,
        ("dqx.gate.assertions", "lake.gate", "failed"): 1,
        ("dqx.gate.assertions", "lake.gate", "skipped"): 0,
        ("dqx.gate.assertions", "lake.gate", "error"): 0,
    }


def test_a_run_without_a_report_is_counted(
    gate: Gate, context: Context, spark_submit: SparkSubmit, backend: Backend
) -> None:
    spark_submit.will("exit=1")
    with pytest.raises(Exception, match="the Spark job failed"):
        gate().execute(context)
    assert backend.kept == {("dqx.gate.outcome", "lake.gate", "no_report"): 1}


def test_open_slices_of_all_dates_are_counted_until_each_is_good(
    gate: Gate,
    context: Context,
    spark_submit: SparkSubmit,
    backend: Backend,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_ON", "True")
    counts = []
    runs = [("2024-05-16", "blocked"), ("2024-05-17", "broken"), ("2024-05-16", "passed")]
    for number, (on, outcome) in enumerate(runs):
        context["ti"].try_number, context["ti"].id = number + 1, f"attempt-{number}"
        spark_submit.will(outcome)
        with suppress(Exception):
            gate(date=on).execute(context)
        counts.append(backend.kept[("dqx.gate.open_slices", "lake.gate")])
    assert counts == [1, 2, 1]


def test_a_store_that_cannot_be_read_costs_a_count_and_not_the_task(
    context: Context,
    backend: Backend,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    from dqx_airflow.operators.outcome import emit_open_slices
    from dqx_airflow.operators.results_location import ResultsLocation

    monkeypatch.setenv("AIRFLOW__METRICS__OTEL_ON", "True")
    (tmp_path / "runs" / "_delta_log").mkdir(parents=True)
    (tmp_path / "runs" / "_delta_log" / f"{0:020}.json").write_text("{")
    report = report_at(datetime(2024, 5, 17, tzinfo=timezone.utc))
    emit_open_slices("lake.gate", context, [report], ResultsLocation(str(tmp_path)))
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
    from dqx_airflow.operators.outcome import emit_metrics

    at = datetime(2024, 5, 17, tzinfo=timezone.utc)
    judged = tuple(
        Verdict("n", "C", ("orders",), expression, "< 1h", Severity.P2, Status(status))
        for expression, status in verdicts
    )
    emit_metrics("lake.gate", context, report_at(at, verdicts=judged))
    assert backend.kept.get(("dqx.gate.late", "lake.gate")) == late


PAGE = Path(__file__).parents[2] / "dqx_airflow" / "docs" / "operating.md"


def test_the_examples_for_prometheus_and_grafana_name_metrics_that_exist(
    gate: Gate, context: Context, spark_submit: SparkSubmit, backend: Backend
) -> None:
    spark_submit.will("warned")
    gate().execute(context)
    of_some = {"dqx.gate.late", "dqx.gate.open_slices"}  # of an age, and if metrics are sent
    emitted = {*of_some, *(stat for stat, *_ in backend.kept)}
    assert emitted == set(re.findall(r"^\| `(dqx\.gate[.\w]+)` \|", PAGE.read_text(), re.M))
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
