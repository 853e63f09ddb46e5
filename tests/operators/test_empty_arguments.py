"""An empty text for an argument of a gate, mostly a template without a result, is an error that
names the argument, when the DAG is parsed and when the task runs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dqx_airflow.values import DatasetRef
from tests.operators.gate_stubs import CONTRACT, SUITE, Gates

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
EMPTY = ("", " ", "\t\n", "\u200b")
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


NO_RESULT = "{{ params.x }}"
OF_SETTINGS = ("filter", "date_column", "time_zone", "path", "schema", "masked", "keys")
WITHOUT_RESULT: dict[str, dict[str, Any]] = {
    "quarantine": {"quarantine": NO_RESULT},
    "quarantine['orders']": {"quarantine": {"orders": NO_RESULT}},
    "promote_to": {"promote_to": NO_RESULT},
    "promote_to['orders']": {"promote_to": {"orders": f"/silver/{NO_RESULT}/orders"}},
    "promote_slice['store']": {"promote_to": "/silver", "promote_slice": {"store": NO_RESULT}},
    "promote_valid['max_bad_rows']": {
        "promote_valid": {"max_bad_rows": NO_RESULT},
        **BESIDE["promote_valid"],
    },
    "results_root": {"results_root": f"s3://lake/results/region={NO_RESULT}"},
    "results_conn_id": {"results_conn_id": NO_RESULT},
    "gate": {"gate": NO_RESULT},
    "fail_on": {"fail_on": NO_RESULT},
    "ask_timeout": {"on_violation": "ask", "ask_timeout": NO_RESULT},
    "shadow": {"shadow": NO_RESULT},
    "datasets['orders']": {"datasets": {"orders": NO_RESULT}},
    **{
        f"datasets['orders'][{key!r}]": {
            "datasets": {"orders": {"path": "/lake/orders", key: NO_RESULT}}
        }
        for key in OF_SETTINGS
    },
    "datasets['orders']['masked'][1]": {
        "datasets": {"orders": {"path": "/lake/orders", "masked": ["id", NO_RESULT]}}
    },
}
"""Where a gate has a template without a result, and its arguments."""


def with_outputs(given: Any, output: Any) -> Any:
    """The arguments with the output of a task in the place of each template that is alone."""
    if isinstance(given, dict):
        return {key: with_outputs(value, output) for key, value in given.items()}
    if isinstance(given, list):
        return [with_outputs(value, output) for value in given]
    return output if given == NO_RESULT else given


@pytest.mark.parametrize("is_output", [False, True])
@pytest.mark.parametrize("place", WITHOUT_RESULT)
def test_a_template_without_a_result_is_one_mistake_that_names_its_place(
    operators: ModuleType, gate: Gates, place: str, is_output: bool
) -> None:
    """It is rendered as the text `None`, and the output of a task as None: without a filter or a
    date all rows would be judged, and rows would be promoted to a folder of this name."""
    from airflow.sdk.definitions._internal.mixins import ResolveMixin

    class NoOutput(ResolveMixin):
        def iter_references(self) -> Iterator[Any]:
            return iter(())

        def resolve(self, context: Any) -> None:
            return None

    arguments = WITHOUT_RESULT[place]
    made = gate(**with_outputs(arguments, NoOutput()) if is_output else arguments)
    context = {**gate.context, "params": {"x": None}}
    made.render_template_fields(context)
    with pytest.raises(operators.GateMisconfiguredError) as raised:
        made.execute(context)
    start, _, end = str(raised.value).partition(" was given, and is ")
    assert start == place
    assert "None" in end
    assert end.endswith(" now: return a value, or leave it out")


@pytest.mark.parametrize("key", OF_SETTINGS)
def test_a_dataset_reference_loses_no_setting(operators: ModuleType, gate: Gates, key: str) -> None:
    columns = key in ("masked", "keys")
    settings = {"path": "/lake/orders", key: (NO_RESULT,) if columns else NO_RESULT}
    made = gate(datasets={"orders": DatasetRef("orders", **settings)})
    context = {**gate.context, "params": {"x": None}}
    made.render_template_fields(context)
    place = f"datasets['orders'][{key!r}]" + ("[0]" if columns else "")
    with pytest.raises(operators.GateMisconfiguredError) as raised:
        made.execute(context)
    assert (
        str(raised.value) == f"{place} was given, and is None now: return a value, or leave it out"
    )


@pytest.mark.parametrize("name", ["promote_to", "quarantine"])
def test_a_task_that_returns_no_targets_is_a_mistake(
    operators: ModuleType, gate: Gates, name: str
) -> None:
    made = gate(**{name: NO_RESULT})
    setattr(made, name, {})  # as Airflow renders the output of a task
    with pytest.raises(operators.GateMisconfiguredError, match=f"{name} was given, and is empty"):
        made.execute(gate.context)


def test_what_is_none_in_the_dag_stays_none(gate: Gates) -> None:
    request = gate.request(
        promote_to={"orders": None},
        quarantine=None,
        datasets={"orders": {"path": "/lake/None", "filter": None}},
        gate="lake.None",
    )
    assert (request.promote_to, request.quarantine) == ((), ())
    assert request.datasets[0].filter is None
    assert request.run_key.gate == "lake.None"
