"""The Airflow examples of the README and the docs, run in one separate Airflow.

What is imported in the process of the tests, other tests get: so there is a process, and since
Airflow takes seconds to import, it runs all of the programs. None of them sees what another did.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.processes import output_of
from tests.test_docs import assert_up_to_date, examples
from tests.test_readme import opening_blocks

pytestmark = pytest.mark.airflow

RUN_ALL = """
import contextlib, io, json, sys, traceback
done = {}
for name, code in json.load(sys.stdin).items():
    printed, error = io.StringIO(), ""
    with open(f"{name}.py", "w") as file:
        file.write(code)
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"{name}.py", "exec"), {"__name__": name, "__file__": f"{name}.py"})
    except BaseException:
        error = traceback.format_exc()
    done[name] = (printed.getvalue(), error)
print(json.dumps(done))
"""

OPERATORS_PAGE = """
from operators_page import operators_page
print(operators_page(), end="")
"""

SILENT_OPERATOR = """
from dqx_airflow.operators.dql_gate import DqlGateOperator
from operators_page import operators_page

class Silent(DqlGateOperator):
    'Says nothing.'

    def __init__(self, *, suite, whisper=False, **kwargs):
        super().__init__(suite=suite, **kwargs)

try:
    operators_page([Silent])
except ValueError as error:
    print(error)
"""

FORGOTTEN_ARGUMENTS = """
import inspect, json
from dqx_airflow.operators.gate import GateOperator
from operators_page import OPERATORS

forgotten = []
for operator in OPERATORS:
    source = {"DqlGateOperator": "suite"}.get(operator.__name__, "contract")
    gate = operator(task_id="gate", datasets={}, **{source: "a"})
    for kind in (GateOperator, operator):
        for name, parameter in inspect.signature(kind.__init__).parameters.items():
            if name in ("self", "name", "kwargs"):
                continue
            if not hasattr(gate, name):
                forgotten.append(f"{kind.__name__}.__init__ does not store {name}")
            if name not in operator.checked_arguments:
                forgotten.append(f"{kind.__name__}.checked_arguments lacks {name}")
            if isinstance(parameter.default, bool) and name not in operator.true_or_false:
                forgotten.append(f"{kind.__name__}.true_or_false lacks {name}")
print(json.dumps(forgotten))
"""

CONTRACT = """\
dataContractSpecification: 1.2.1
id: orders
info: {title: Orders, version: 1.0.0}
models:
  orders:
    fields:
      id: {type: long}
"""

FRESH_CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: orders
version: 1.0.0
status: active
schema: [{name: orders, properties: [{name: loaded_at, logicalType: timestamp}]}]
slaProperties: [{property: freshness, value: 30, unit: h, element: orders.loaded_at}]
"""

LAKE = """\
[datasets.flights]
path = "lake/flights"
date_column = "ds"

[gates.flights]
suite = "flights.dql"
group = "sales"
"""

EXAMPLES = {
    f"example_{place.replace('/', '_').replace('.md:', '_')}": code
    for place, code in examples("python")
}
PROGRAMS = {
    "page_of_operators": OPERATORS_PAGE,
    "silent_operator": SILENT_OPERATOR,
    "forgotten_arguments": FORGOTTEN_ARGUMENTS,
    "gate": opening_blocks("python")[0] + "\nassert gate.task_id == 'gate'\n",
    **EXAMPLES,
}


@dataclass(frozen=True)
class Ran:
    printed: str
    error: str


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    home = tmp_path_factory.mktemp("airflow")
    suite = opening_blocks("dql")[0]
    (home / "flights.dql").write_text(suite)
    # A mapped gate looks at its sources at once.
    (home / "orders.dql").write_text(suite.replace("flights", "orders"))
    (home / "dqx.toml").write_text(LAKE)
    (home / "orders.yaml").write_text(CONTRACT)
    (home / "orders.odcs.yaml").write_text(FRESH_CONTRACT)
    tools = Path(__file__).parents[1] / "tools" / "docs"
    printed = output_of(
        [sys.executable, "-c", RUN_ALL],
        input=json.dumps(PROGRAMS),
        cwd=home,
        env={
            "AIRFLOW_HOME": str(home),
            "PATH": os.defpath,
            "HOME": str(home),
            "PYTHONPATH": str(tools),
        },
    )
    return {name: Ran(*result) for name, result in json.loads(printed.splitlines()[-1]).items()}


@pytest.mark.slow
def test_the_page_of_the_operators_is_up_to_date(ran: dict[str, Ran]) -> None:
    assert not ran["page_of_operators"].error, ran["page_of_operators"].error
    _, found, text = ran["page_of_operators"].printed.partition("# Operators\n")
    assert_up_to_date("operators.md", found + text)


@pytest.mark.more
def test_an_argument_that_no_docstring_explains_is_an_error(ran: dict[str, Ran]) -> None:
    assert "Silent does not document suite, whisper" in ran["silent_operator"].printed


def test_every_argument_is_stored_and_checked(ran: dict[str, Ran]) -> None:
    """An argument that only the signature names would be accepted, and have no effect."""
    assert not ran["forgotten_arguments"].error, ran["forgotten_arguments"].error
    assert json.loads(ran["forgotten_arguments"].printed.splitlines()[-1]) == []


def test_the_pages_have_examples() -> None:
    assert len(EXAMPLES) == len(examples("python")) > 5


@pytest.mark.parametrize("name", ["gate", *EXAMPLES])
def test_the_dags_of_the_pages_can_be_built(ran: dict[str, Ran], name: str) -> None:
    assert not ran[name].error, ran[name].error
