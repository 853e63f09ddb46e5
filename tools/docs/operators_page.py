"""The page of the operators as Markdown, generated from their docstrings and signatures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from inspect import Parameter, cleandoc, signature
from typing import Any

from dqx_airflow.operators.contract_gate import ContractGateOperator
from dqx_airflow.operators.dql_gate import DqlGateOperator
from dqx_airflow.operators.gate import GateOperator

OPERATORS: tuple[type[GateOperator], ...] = (DqlGateOperator, ContractGateOperator)

_EXAMPLES: Mapping[type[GateOperator], str] = {
    DqlGateOperator: """\
from airflow.sdk import DAG

from dqx_airflow.operators import DqlGateOperator

with DAG("orders"):
    gate = DqlGateOperator(
        task_id="gate",
        suite="suites/orders.dql",
        datasets={"orders": {"path": "s3://lake/silver/orders", "date_column": "ordered_at"}},
        results_root="s3://lake/dqx",
    )""",
    ContractGateOperator: """\
from airflow.sdk import DAG

from dqx_airflow.operators import ContractGateOperator

with DAG("orders"):
    gate = ContractGateOperator(
        task_id="gate",
        contract="contracts/orders.odcs.yaml",
        expect_version="2",
        data={"path": "s3://lake/staging/orders", "date_column": "ordered_at"},
        results_root="s3://lake/dqx",
    )""",
}

_OPENING = """\
# Operators

A gate is a task that checks data and stops the pipeline if the data violates a rule.
`DqlGateOperator` checks a suite, `ContractGateOperator` a data contract. Most of [their
arguments](#arguments-of-all-gates) are the same. See [outcomes](outcomes.md) for the resulting
task states, and [datasets](datasets.md) for the settings of a dataset."""

_DECORATED = """\
## Gates as decorated functions

`@task.dql_gate` and `@task.contract_gate` are the gates as decorators, which Airflow has once the
package is installed. The function returns what is only known when the task runs. That is the
datasets, as a mapping of names to paths or tables, the suite (one, or a list), or the contract. The
decorator takes the other arguments of `DqlGateOperator` or `ContractGateOperator`.

```python
from airflow.sdk import DAG, task

with DAG("orders"):

    @task
    def land() -> str:
        return "s3://lake/bronze/orders"

    @task.dql_gate(suite="orders.dql", promote_to="s3://lake/silver/orders")
    def gate(path, ds=None):
        return {"orders": {"path": path, "filter": f"ds = '{ds}'"}}

    @task
    def publish(outcome) -> None:
        print(outcome)

    publish(gate(land()))
```

- The function gets its arguments as in other decorators of Airflow: the outputs of tasks, and
  variables of the context by their names (`ds`, `dag_run`, `params`).
- What it returns is used as it is, without rendering templates. The arguments of the decorator
  are rendered.
- The output of the gate for the next task is its outcome: `passed`, `warned` or `accepted`.
- `gate.expand(path=[...])` makes one gate for each value.
- The arguments are checked when the DAG is parsed, the result of the function when the task runs.
  A result other than datasets or a source fails with `GateMisconfiguredError`, without a retry."""

_PASSED_ON = """\
## Arguments of SparkSubmitOperator

The operator is a `SparkSubmitOperator`, which is a `BaseOperator`: it accepts all their arguments,
such as `conn_id`, `conf`, `deploy_mode`, `py_files`, `env_vars`, `retries`, `execution_timeout`,
`outlets` and `trigger_rule`. These differ:

- `application` defaults to the job of this package.
- `application_args` is reserved for the request: setting it is an import error.
- `durable` is always off: otherwise a cleared gate would turn green on the job of the previous
  run, without reading the data.
- `name` defaults to `dqx-gate`.
- `do_xcom_push=False` is an import error: notifications, pages and `read_validated` find a run by
  its [summary](outcomes.md) in XCom.
- `verbose` also writes Spark's output to the log of the task; otherwise it goes to a file.
- `outlets`: an asset among them is only updated if the data passed, with or without warnings.
  Its event carries the run, the date, and the versions and rows of the datasets.
- `execution_timeout` also ends the job itself, whose driver may outlive the task.
- `conn_id` may name a Spark Connect server: then nothing is submitted, and the arguments for the
  submission are not used. See [deploy modes](deploy.md).

Pass all arguments by keyword. `.partial(...).expand(...)` works: every map index is a separate run
in the results.

## Checked when the DAG is parsed

Everything except templates is checked when Airflow parses the DAG file: words, numbers, the
settings of datasets, the suite or contract with its imports, the pinned version. A template in an
argument that Airflow does not render, such as `conn_id`, is an import error. All errors
appear together as one import error of the DAG:

```text
GateMisconfiguredError: 3 errors
gate gate: fail_on='High': write P0, P1, P2 or P3
gate gate: on_violation='skipp': write fail, skip, warn or ask; did you mean 'skip'?
gate gate: dataset 'orders' has unknown settings date_colum (did you mean 'date_column'?): write ...
```

The rest is checked when the task runs: templates, outputs of other tasks, and arguments of
`expand`. If only workers have a file, use a template as its path, such as
`{{ var.value.suites }}/orders.dql`.

A gate that passes these checks is not checked again until it, a source or an import changes. The
results are cached in a folder of the user that parses, below the temporary folder."""


def operators_page(operators: Sequence[type[GateOperator]] = OPERATORS) -> str:
    """The page: each operator with an example and its own arguments, then the arguments of all."""
    shared = _arguments(GateOperator.__doc__)
    sections = [_OPENING]
    for operator in operators:
        own = _arguments(operator.__doc__)
        parameters = _parameters(operator)
        if missing := parameters.keys() - own.keys() - shared.keys() - {"name"}:
            raise ValueError(f"{operator.__name__} does not document {', '.join(sorted(missing))}")
        _require_groups(operator, own)
        sections += [
            f"## {operator.__name__}",
            _opening(operator),
            f"```python\n{_EXAMPLES[operator]}\n```",
            _table(own, parameters),
        ]
    _require_groups(GateOperator, shared)
    sections.append("## Arguments of all gates")
    parameters = _parameters(GateOperator)
    for title, names in _groups(GateOperator).items():
        sections.append(f"### {title}")
        sections.append(_table({name: shared[name] for name in names}, parameters))
    return "\n\n".join([*sections, _DECORATED, _PASSED_ON]) + "\n"


def _require_groups(operator: type[Any], described: Mapping[str, str]) -> None:
    """:raises ValueError: a described argument is in no group of the docstring, or the reverse."""
    grouped = {name for names in _groups(operator).values() for name in names}
    if missing := described.keys() ^ grouped:
        raise ValueError(f"{operator.__name__} has no group for {', '.join(sorted(missing))}")


def _opening(operator: type[GateOperator]) -> str:
    return cleandoc(operator.__doc__ or "").split("\nThe arguments in groups", 1)[0].strip()


def _groups(operator: type[Any]) -> dict[str, list[str]]:
    """The arguments of an operator by the groups in which its docstring lists them."""
    listed = re.findall(
        r"^- ([A-Z][a-z ]+): ((?:`\w+`,?\s*)+)$", cleandoc(operator.__doc__ or ""), re.M
    )
    return {title: re.findall(r"\w+", names) for title, names in listed}


def _arguments(docstring: str | None) -> dict[str, str]:
    """The description of each argument in a docstring, on one line."""
    described = re.findall(r"^:param (\w+): (.*?)(?=^:|\Z)", cleandoc(docstring or ""), re.M | re.S)
    return {name: " ".join(text.split()) for name, text in described}


def _table(arguments: Mapping[str, str], parameters: Mapping[str, Parameter]) -> str:
    rows = (_row(name, text, parameters[name]) for name, text in arguments.items())
    return "\n".join(["| argument | default | what it does |", "|---|---|---|", *rows])


def _row(name: str, text: str, parameter: Parameter) -> str:
    default = parameter.default
    shown = "**required**" if default is Parameter.empty else f"`{_default(default)}`"
    return f"| `{name}` | {shown} | {_sentence(text)} |"


def _default(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}".replace("(templated", "(Templated").replace("|", "\\|")


def _parameters(operator: type[Any]) -> dict[str, Parameter]:
    """The parameters of the operator, and those that it hands on to what all gates share."""
    given = {
        **signature(GateOperator.__init__).parameters,
        **signature(operator.__init__).parameters,
    }
    return {
        name: parameter
        for name, parameter in given.items()
        if parameter.kind is Parameter.KEYWORD_ONLY
    }
