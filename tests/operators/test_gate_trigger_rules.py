"""What runs after a gate that did not pass: the table of the page about outcomes, in Airflow."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import dqx_airflow
from tests.operators.gate_stubs import SUITE, Run, SparkSubmit, dag_file

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_database")]

PAGE = Path(dqx_airflow.__file__).parent / "docs" / "outcomes.md"

DAG_FILE = dag_file("""
    gate = DqlGateOperator(
        task_id="gate",
        suite="orders.dql",
        datasets={"orders": "/lake/orders"},
        on_violation="ON_VIOLATION",
    )
    other = EmptyOperator(task_id="other")
    for rule, needs_another in RULES.items():
        after = EmptyOperator(task_id=rule, trigger_rule=rule)
        gate >> after
        if needs_another:
            other >> after
""")


def rows() -> dict[str, tuple[bool, str, str]]:
    """By trigger rule: whether the row speaks of other tasks before, and its two answers."""
    section = PAGE.read_text(encoding="utf-8").split("\n## Trigger rules behind a gate\n")[1]
    cells = re.findall(r"^\| `(\w+)`(.*?) \| (.*?) \| (.*?) \|$", section, re.M)
    return {rule: ("other tasks" in more, *states) for rule, more, *states in cells}


def state_of(cell: str) -> str:
    return "success" if cell.startswith("**runs**") else cell.strip("`")


@pytest.mark.few(1)
@pytest.mark.parametrize(("on_violation", "column"), [("fail", 1), ("skip", 2)])
def test_the_table_of_trigger_rules_is_true(
    run_file: Callable[..., Run], spark_submit: SparkSubmit, on_violation: str, column: int
) -> None:
    table = rows()
    assert len(table) == 5
    spark_submit.will("blocked")
    rules = {rule: row[0] for rule, row in table.items()}
    text = DAG_FILE.replace("RULES", repr(rules)).replace("ON_VIOLATION", on_violation)
    run = run_file(text, {"orders.dql": SUITE})
    assert {rule: run[rule] for rule in table} == {
        rule: state_of(str(row[column])) for rule, row in table.items()
    }


def test_a_cleanup_as_the_only_leaf_makes_the_run_a_success(
    run_file: Callable[..., Run], spark_submit: SparkSubmit
) -> None:
    spark_submit.will("blocked")
    text = DAG_FILE.replace("RULES", "{'all_done': True}").replace("ON_VIOLATION", "fail")
    run = run_file(text, {"orders.dql": SUITE})
    assert (run["gate"], run.state) == ("failed", "success")
