"""An argument of a gate has a check, and an effect: one that nothing reads would be accepted, and
change nothing."""

from __future__ import annotations

import contextlib
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
