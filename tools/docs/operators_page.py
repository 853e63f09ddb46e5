"""The pages of the operators as Markdown, generated from their docstrings and signatures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from inspect import Parameter, cleandoc, signature

from dqx_airflow.operators.contract_gate import ContractGateOperator
from dqx_airflow.operators.dql_gate import DqlGateOperator
from dqx_airflow.operators.gate import GateOperator

OPERATORS: Mapping[str, type[GateOperator]] = {
    "dql_gate.md": DqlGateOperator,
    "contract_gate.md": ContractGateOperator,
}
"""The operators by the names of their pages."""

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
  its [summary](../outcomes.md) in XCom.
- `verbose` also writes Spark's output to the log of the task; otherwise it goes to a file.
- `outlets`: an asset among them is only updated if the data passed, with or without warnings.
  Its event carries the run, the date, and the versions and rows of the datasets.
- `execution_timeout` also ends the job itself, whose driver may outlive the task.
- `conn_id` may name a Spark Connect server: then nothing is submitted, and the arguments for the
  submission are not used. See [deploy modes](../deploy.md).

Pass all arguments by keyword. `.partial(...).expand(...)` works: every map index is a separate run
in the results.

## Checked when the DAG is parsed

Everything except templates is checked when Airflow parses the DAG file: words, numbers, the
settings of datasets, the suite or contract with its imports, the pinned version. A template in an
argument that Airflow does not render, such as `conn_id`, is an import error. All mistakes
appear together as one import error of the DAG:

```text
GateMisconfiguredError: 3 mistakes
gate gate: fail_on='High': write P0, P1, P2 or P3
gate gate: on_violation='skipp': write fail, skip, warn or ask; did you mean 'skip'?
gate gate: dataset 'orders' has unknown settings date_colum (did you mean 'date_column'?): write ...
```

The rest is checked when the task runs: templates, outputs of other tasks, and arguments of
`expand`. If only workers have a file, use a template as its path, such as
`{{ var.value.suites }}/orders.dql`.

A gate that passes these checks is not checked again until it, a source or an import changes. The
results are cached in a folder of the user that parses, below the temporary folder."""


def operator_page(operator: type[GateOperator]) -> str:
    """The page of an operator: its example, and its own and all common arguments in groups."""
    own = _arguments(operator.__doc__)
    shared = _arguments(GateOperator.__doc__)
    # Its own descriptions win.
    described = shared | own
    parameters = _parameters(operator)
    if missing := parameters.keys() - described.keys() - {"name"}:
        raise ValueError(f"{operator.__name__} does not document {', '.join(sorted(missing))}")
    groups = _groups(operator)
    grouped = [name for names in groups.values() for name in names]
    if missing := described.keys() ^ {*grouped}:
        raise ValueError(f"{operator.__name__} has no group for {', '.join(sorted(missing))}")
    tables = [
        f"### {title}\n\n{_table({name: described[name] for name in names}, parameters)}"
        for title, names in groups.items()
    ]
    sections = [
        f"# {operator.__name__}",
        _opening(operator),
        f"```python\n{_EXAMPLES[operator]}\n```",
        "See [outcomes](../outcomes.md) for the resulting task states, and "
        "[datasets](../datasets.md) for the settings of a dataset.",
        "## Arguments",
        *tables,
        _PASSED_ON,
    ]
    return "\n\n".join(sections) + "\n"


def _opening(operator: type[GateOperator]) -> str:
    return cleandoc(operator.__doc__ or "").split("\nThe arguments in groups", 1)[0].strip()


def _groups(operator: type[GateOperator]) -> dict[str, list[str]]:
    """The arguments of an operator by the groups in which its docstring and the docstring of all
    gates list them, its own first."""
    grouped: dict[str, list[str]] = {}
    for docstring in (GateOperator.__doc__, operator.__doc__):
        listed = re.findall(
            r"^- ([A-Z][a-z ]+): ((?:`\w+`,?\s*)+)$", cleandoc(docstring or ""), re.M
        )
        for title, names in listed:
            grouped[title] = re.findall(r"\w+", names) + grouped.get(title, [])
    return {title: [*dict.fromkeys(names)] for title, names in grouped.items()}


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


def _parameters(operator: type[GateOperator]) -> dict[str, Parameter]:
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
