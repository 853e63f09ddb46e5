"""An empty text for an argument of a gate, mostly a template without a result, is an error that
names the argument, when the DAG is parsed and when the task runs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.operators.gate_stubs import CONTRACT, SUITE

pytestmark = pytest.mark.airflow

SELECTS = "selects all assertions: more is judged"
OF_SPARK = "how Spark is started, not what is judged"
HARMLESS = {
    **dict.fromkeys(("only", "tags", "exclude_tags", "min_severity", "dimensions"), SELECTS),
    "variables": "the values of a contract, which may be empty texts",
    "conf": OF_SPARK,
    "env_vars": OF_SPARK,
    "name": "the name of the job in Spark, by default that of the task",
}
"""The arguments that take an empty string, with its meaning; without Airflow's own arguments."""
EMPTY = ("", " ", "\t\n")
OF_AIRFLOW = ("conn_id",)
"""The arguments of Airflow's operator that refuse an empty text, too."""


def texts_of(kind: type[Any]) -> Iterator[str]:
    """The arguments of a gate that may be a text."""
    for owner in kind.__mro__:
        if not owner.__module__.startswith("dqx_airflow."):
            continue
        made = vars(owner).get("__init__")
        for parameter in inspect.signature(made).parameters.values() if made else ():
            kinds = str(parameter.annotation)
            if any(word in kinds for word in ("str", "Words", "OnViolation", "DatasetSetting")):
                yield parameter.name


def made(operators: ModuleType, kind: str, **arguments: Any) -> Any:
    own: dict[str, Any] = {"suite": "orders.dql", "datasets": {"orders": "lake/orders"}}
    if kind == "ContractGateOperator":
        own = {"contract": "orders.yaml", "datasets": {"orders": "lake/orders"}}
    given = {"task_id": "gate", "results_root": "results", **own, **arguments}
    return getattr(operators, kind)(**given)


def mistakes(gate: Any, folder: Path) -> str:
    from dqx_airflow.operators.mistakes import examine

    return "; ".join(examine(gate, folder).mistakes)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "orders.dql").write_text(SUITE)
    (tmp_path / "orders.yaml").write_text(CONTRACT)
    return tmp_path


@pytest.mark.parametrize("kind", ["DqlGateOperator", "ContractGateOperator"])
def test_no_argument_of_a_gate_takes_an_empty_text(
    operators: ModuleType, folder: Path, kind: str
) -> None:
    names = {*texts_of(getattr(operators, kind))}
    assert {"results_root", "gate", "fail_on", "promote_to", "date"} <= names
    taken = []
    for name in sorted({*names, *OF_AIRFLOW} - HARMLESS.keys() - {"kwargs"}):
        for text in EMPTY:
            found = mistakes(made(operators, kind, **{name: text}), folder)
            if name not in found and not (name == "data" and "dataset" in found):
                taken.append((name, text, found))
    assert taken == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"expect_version": ""}, "expect_version='': it is empty; write a value, or leave"),
        ({"expect_version": " "}, "expect_version=' ': it is empty"),
        ({"models": [""]}, "models=['']: it is empty"),
        ({"server": ""}, "server='': it is empty"),
        ({"data": ""}, "data=''"),
        ({"datasets": {"orders": {"path": "/lake/orders", "masked": [""]}}}, "masked"),
    ],
)
def test_an_empty_argument_of_a_contract_is_named(
    operators: ModuleType, folder: Path, arguments: dict[str, Any], expected: str
) -> None:
    assert expected in mistakes(made(operators, "ContractGateOperator", **arguments), folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [("expect_version", ""), ("expect_version", None), ("promote_slice", None), ("server", None)],
)
def test_what_a_template_or_a_task_returns_is_checked_when_the_task_runs(
    operators: ModuleType, folder: Path, name: str, value: str | None
) -> None:
    """With native templates, or from the output of a task, it may be None as well."""
    given = {"promote_slice": "{{ params.slice }}"}.get(name, "{{ var.value.get('PIN', '') }}")
    gate = made(operators, "ContractGateOperator", **{name: given, "promote_to": "/silver/orders"})
    setattr(gate, name, value)  # as Airflow renders it
    with pytest.raises(operators.GateMisconfiguredError, match=name):
        gate._check_settings()


def test_an_empty_selection_selects_everything(operators: ModuleType, folder: Path) -> None:
    for name in ("only", "tags", "exclude_tags", "min_severity", "dimensions"):
        gate = made(operators, "DqlGateOperator", **{name: ""})
        assert gate.selection is None
        assert mistakes(gate, folder) == ""


MAPPINGS = {
    "DqlGateOperator": {
        "datasets": lambda key: {key: "lake/x", "orders": "lake/orders"},
        "promote_to": lambda key: {key: "lake/x"},
        "promote_slice": lambda key: {key: "x"},
        "promote_valid": lambda key: {key: "1%"},
        "quarantine": lambda key: {key: "lake/x"},
        "conf": lambda key: {key: "x"},
        "env_vars": lambda key: {key: "x"},
    },
    "ContractGateOperator": {
        "data": lambda key: {"path": "lake/orders", key: "x"},
        "variables": lambda key: {key: "x"},
    },
}
BESIDE = {"promote_valid": {"promote_to": "lake/silver", "quarantine": "lake/rejected"}}
"""What an argument cannot be without."""
NO_NAMES = ("", " ", "\u200b", None, 5, True, ("a", "b"))


@pytest.mark.few(2)
@pytest.mark.parametrize("key", NO_NAMES)
@pytest.mark.parametrize(
    ("kind", "argument"), [(kind, name) for kind, names in MAPPINGS.items() for name in names]
)
def test_a_key_of_a_mapping_that_is_not_a_name_is_one_mistake(
    operators: ModuleType, folder: Path, kind: str, argument: str, key: Any
) -> None:
    given = {argument: MAPPINGS[kind][argument](key), **BESIDE.get(argument, {})}
    gate = made(operators, kind, **given)
    wanted = f"{argument} has {key!r} as a name: write a string with a visible character"
    assert mistakes(gate, folder) == wanted
    with pytest.raises(Exception, match="as a name: write a string with a visible character"):
        gate._check_settings()


def test_a_key_within_a_dataset_is_found_with_its_place(
    operators: ModuleType, folder: Path
) -> None:
    options = {"orders": {"path": "orders.csv", "options": {"": "x"}}}
    gate = made(operators, "DqlGateOperator", datasets=options)
    assert mistakes(gate, folder).startswith("datasets['orders']['options'] has '' as a name")
