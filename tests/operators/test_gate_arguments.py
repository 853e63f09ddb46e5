"""An argument of a gate has a check, and an effect: one that nothing reads would be accepted, and
change nothing."""

from __future__ import annotations

import contextlib
import inspect
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.operators.gate_stubs import CONTRACT, Gates, SparkSubmit

pytestmark = pytest.mark.airflow

KINDS = ["DqlGateOperator", "ContractGateOperator"]
UNCHECKED = {"shadow": "an error in a shadow is logged, and the gate runs without it"}


class Foreign:
    """A value of no type that an argument takes."""

    def __repr__(self) -> str:
        return "foreign"


@pytest.fixture
def gates(
    operators: ModuleType, context: dict[str, Any], dag_folder: Path, request: pytest.FixtureRequest
) -> Gates:
    """Gates of the kind that the test names, over `orders`."""
    (dag_folder / "orders.yaml").write_text(CONTRACT)
    kind = request.getfixturevalue("kind")
    source = {"suite": "orders.dql"} if kind == "DqlGateOperator" else {"contract": "orders.yaml"}
    return Gates(operators, context, kind, {**source, "datasets": {"orders": "/lake/orders"}})


def declared(kind: type[Any]) -> set[str]:
    return {*kind.common_arguments.names, *kind.own_arguments.names}


def recording(kind: type[Any], read: set[str]) -> type[Any]:
    """A kind of gate that notes which of its attributes are read, but by its checks."""

    class Recording(kind):  # type: ignore[misc]
        def __getattribute__(self, name: str) -> Any:
            read.add(name)
            return super().__getattribute__(name)

        def _check_settings(self) -> None:
            before = set(read)
            super()._check_settings()
            read.intersection_update(before)

    return Recording


@pytest.mark.parametrize("kind", KINDS)
def test_every_argument_is_read_by_a_gate_that_blocks(
    gates: Gates,
    kind: str,
    operators: ModuleType,
    spark_submit: SparkSubmit,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spark_submit.will("blocked")
    monkeypatch.setattr("dqx_airflow.results.decisions.why_not_acceptable", lambda report: "")
    read: set[str] = set()
    known = getattr(operators, kind)
    recorded = replace(gates, operators=SimpleNamespace(**{kind: recording(known, read)}))
    gate = recorded.rendered(on_violation="ask")
    read.clear()
    with contextlib.suppress(Exception):  # no one can be asked here
        gate.execute(gates.context)
    assert gate.report is not None, "the gate did not run to its report"
    assert declared(known) - read == set()


@pytest.mark.parametrize("kind", KINDS)
def test_every_argument_has_a_check(
    gates: Gates, kind: str, operators: ModuleType, dag_folder: Path
) -> None:
    from dqx_airflow.operators.mistakes import examine

    unchecked = []
    for name in sorted(declared(getattr(operators, kind)) - UNCHECKED.keys()):
        mistakes = examine(gates(**{name: Foreign()}), dag_folder).mistakes
        if not any(name in mistake and "foreign" in mistake for mistake in mistakes):
            unchecked.append((name, mistakes))
    assert unchecked == []


def test_a_request_takes_over_arguments_of_its_name_and_type(operators: ModuleType) -> None:
    from dqx_airflow.operators.gate_request import taken_over

    gate = operators.DqlGateOperator(task_id="gate", suite="orders.dql", datasets={})
    assert taken_over(gate) == {
        "allow_empty": False,
        "require_history": False,
        "ansi": True,
        "max_clock_skew_hours": gate.max_clock_skew_hours,
        "recompute": False,
        "sample_rows": gate.sample_rows,
        "promote_partial": False,
        "accept_required": False,
    }


WRITTEN = "{{ 'written' }}"
OF_THE_TASK = {"application_args", "durable", "reconnect_on_retry", "kwargs"}
"""Arguments of `SparkSubmitOperator` that a gate does not pass on."""


def arguments_of_spark() -> set[str]:
    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

    return {*inspect.signature(SparkSubmitOperator.__init__).parameters} - {"self"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_template_in_any_argument_is_rendered_or_refused(
    gates: Gates, kind: str, operators: ModuleType, dag_folder: Path
) -> None:
    from dqx_airflow.operators.mistakes import examine

    names = {*declared(getattr(operators, kind)), *arguments_of_spark()} - OF_THE_TASK
    assert {"gate", "fail_on", "on_violation", "recompute", "conn_id", "submit"} <= names
    literal = []
    for name in sorted(names):
        gate = gates(**{name: WRITTEN})
        if any(mistake.startswith(name) for mistake in examine(gate, dag_folder).mistakes):
            continue
        gate.render_template_fields(gates.context)
        if WRITTEN in repr((getattr(gate, name, None), getattr(gate, f"_{name}", None))):
            literal.append(name)
    assert literal == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_template_of_a_setting_is_a_mistake_before_the_task_runs(
    gates: Gates, kind: str, operators: ModuleType, dag_folder: Path
) -> None:
    from dqx_airflow.operators.mistakes import examine

    given = dict.fromkeys(getattr(operators, kind).settings, "{{ params.later }}")
    gate = gates(**given)
    assert examine(gate, dag_folder).mistakes == ()
    assert {*given} <= {*gate.template_fields}
    assert not {*given} & {*gates().template_fields}


@pytest.mark.parametrize("kind", ["DqlGateOperator"])
def test_the_result_of_a_template_is_read_as_the_type_of_the_argument(
    gates: Gates, kind: str, spark_submit: SparkSubmit
) -> None:
    given = {
        "gate": "{{ 'lake' }}.gate",
        "fail_on": "{{ 'P0' }}",
        "on_violation": "{{ 'warn' }}",
        "allow_empty": "{{ 1 == 1 }}",
        "recompute": "{{ 'false' }}",
        "sample_rows": "{{ 2 + 1 }}",
        "max_clock_skew_hours": "{{ 1.5 }}",
        "validation_timeout": "{{ 90 }}",
        "promote_valid": {"max_bad_rows": "{{ 0.01 }}"},
        "promote_to": "/lake/silver",
        "promote_blocked": "{{ false }}",
        "quarantine": "/lake/bad",
    }
    gate = gates.rendered(**given)
    spark_submit.will("passed")
    assert gate.execute(gates.context) == "passed"
    request = gate.request
    assert (request.run_key.gate, request.fail_on.value) == ("lake.gate", "P0")
    assert (request.allow_empty, request.recompute) == (True, False)
    assert (request.sample_rows, request.max_clock_skew_hours) == (3, 1.5)
    assert (request.timeout_s, request.promote_valid) == (90, "1%")
    assert (gate.on_violation, gate.promote_blocked) == ("warn", False)


@pytest.mark.parametrize("kind", ["DqlGateOperator"])
@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("allow_empty", "perhaps", "allow_empty='perhaps': write True or False"),
        ("fail_on", "P7", "fail_on='P7': write P0, P1, P2 or P3"),
        ("on_violation", "pass", "on_violation='pass': write fail, skip, warn or ask"),
        ("sample_rows", "1e3", "sample_rows='1e3': write a number from 0"),
        ("validation_timeout", "10m", "validation_timeout='10m': write a timedelta"),
        ("promote_blocked", "yes", "promote_blocked='yes': write True or False"),
        ("promote_blocked", "None", "promote_blocked was given, and is None now"),
        ("gate", "", "gate='': it is empty"),
    ],
)
def test_a_template_whose_result_is_no_value_stops_the_gate(
    gates: Gates, kind: str, spark_submit: SparkSubmit, name: str, text: str, problem: str
) -> None:
    gates.fails("GateMisconfiguredError", re.escape(problem), **{name: f"{{{{ '{text}' }}}}"})
    assert spark_submit.calls == []


@pytest.mark.parametrize("kind", ["DqlGateOperator"])
@pytest.mark.parametrize("default", ["True", "False"])
def test_a_gate_on_a_service_is_deferrable_by_the_setting_of_airflow(
    gates: Gates, kind: str, default: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.operators.submitters import LivyBatches

    monkeypatch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", default)
    assert gates(submit=LivyBatches({})).deferrable is (default == "True")
    assert gates(submit=LivyBatches({}), deferrable=False).deferrable is False
    assert gates().deferrable is False  # a client driver has nothing to wait for


@pytest.mark.parametrize("kind", KINDS)
def test_renderers_are_for_template_fields(operators: ModuleType, kind: str, gates: Gates) -> None:
    operator = getattr(operators, kind)
    assert {*operator.template_fields_renderers} <= {*operator.template_fields}
    assert operator.template_fields_renderers["datasets"] == "json"


def test_a_gate_is_constructed_with_the_attributes_that_airflow_gives_it(
    operators: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk import DAG, BaseOperator, task

    from dqx_airflow.operators.spark_job import SparkJobOperator

    @task
    def path() -> str:
        return "/lake/orders"

    def attributes() -> dict[str, object]:
        with DAG("lake", schedule=None, default_args={"retries": "3", "fail_on": "P0"}):
            output = path()
            gate = operators.DqlGateOperator(
                task_id="gate",
                suite="orders.dql",
                datasets={"orders": output},
                trigger_rule="all_done",
                conf={"spark.executor.cores": output},
                max_retry_delay=60,
            )
        assert gate.upstream_task_ids == {"path"}
        gate.files = path.override(task_id="other")()
        assert gate.upstream_task_ids == {"path", "other"}
        return {
            name: re.sub(" at 0x[0-9a-f]+", "", repr(value)) for name, value in vars(gate).items()
        }

    quick = attributes()
    monkeypatch.setattr(SparkJobOperator, "__setattr__", BaseOperator.__setattr__)
    assert quick == attributes()
