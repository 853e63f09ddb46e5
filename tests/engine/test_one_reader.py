"""The data of a contract is read in the same way by a gate, by a command and in Python: as the
contract says, so with the same verdicts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow import Contract, SparkDatabase
from dqx_airflow.cli.arguments import Options
from dqx_airflow.cli.calls import read_call
from dqx_airflow.contracts.enforcement.contract_datasets import dataset_settings
from dqx_airflow.contracts.enforcement.enforced_contract import enforce
from dqx_airflow.datasets.settings import dataset_ref
from dqx_airflow.engine.job import try_gates
from dqx_airflow.values import GateReport, GateRequest, Outcome, SourceFile
from tests.engine.lake import TODAY, request

pytestmark = pytest.mark.spark

HEAD = """\
dataContractSpecification: 1.2.1
id: k
info: {title: K, version: 1.0.0, owner: o}
"""
FIELDS = "models: {t: {fields: {s: {type: string}, i: {type: integer}, d: {type: date}}}}\n"
SEMICOLON = """\
servers:
  landing: {type: local, path: "nowhere/{model}.csv", format: csv, delimiter: ";"}
"""
LATIN = """\
servers:
  landing: {type: local, path: "nowhere/{model}.csv", format: csv, delimiter: ";", \
encoding: ISO-8859-1}
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A contract, the file that it is enforced on, and the outcome for all ways."""

    name: str
    data: bytes
    outcome: Outcome = Outcome.PASSED
    servers: str = ""
    fields: str = FIELDS
    options: dict[str, str] = field(default_factory=dict)


CASES = {
    "numbers as strings": Case("x.csv", b"s,i,d\n123,1,2024-03-02\n", Outcome.PASSED),
    "JSON": Case("x.json", b'{"s":"a","i":1,"d":"2024-03-02"}\n', Outcome.PASSED),
    "the delimiter of the server": Case(
        "x.csv", b"s;i;d\n123;1;2024-03-02\n", Outcome.PASSED, SEMICOLON
    ),
    "a delimiter that is given": Case(
        "x.csv", b"s|i|d\n123|1|2024-03-02\n", Outcome.PASSED, SEMICOLON, options={"sep": "|"}
    ),
    "the encoding of the server": Case(
        "x.csv", "s;i;d\nZ\xfcrich;1;2024-03-02\n".encode("latin-1"), Outcome.PASSED, LATIN
    ),
    "malformed values": Case(
        "x.csv", b"s,i,d\na,1,2024-03-02\nb,x,2024-02-30\nc,1.5\n", Outcome.BLOCKED
    ),
    "malformed JSON": Case(
        "x.json", b'{"s":"a","i":"x","d":"2024-03-02"}\n{"s":"a",\n', Outcome.BLOCKED
    ),
    "nested JSON in another case, and a missing field": Case(
        "x.json",
        b'{"c":{"X":"b"},"l":[{"Y":"b"}]}\n',
        Outcome.BLOCKED,
        fields=(
            "models: {t: {fields: {c: {type: object, fields: {x: {type: string, pattern: ^a$}}}, "
            "l: {type: array, items: {type: object, fields: {x: {type: string}}}}}}}\n"
        ),
    ),
    "a missing column": Case("x.csv", b"s,i\na,1\n", Outcome.BLOCKED),
    "a masked column": Case(
        "x.csv",
        b"s,i,d\na,1,2024-03-02\na,1,x\n",
        Outcome.BLOCKED,
        fields=FIELDS.replace("{type: date}", "{type: date, pii: true}"),
    ),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", CASES)
def test_every_way_to_run_a_contract_has_the_same_verdicts(
    spark: Any, tmp_path: Path, name: str
) -> None:
    case = CASES[name]
    contract = tmp_path / "k.yaml"
    contract.write_text(HEAD + case.servers + case.fields)
    data = tmp_path / case.name
    data.write_bytes(case.data)
    settings = {"path": str(data), "options": case.options}
    in_python = Contract.load(contract).run(SparkDatabase(spark, {"t": settings}), TODAY).report
    by_command = judged(spark, by_command_line(contract, data, case))
    in_gate = judged(spark, by_operator(tmp_path, contract, settings))
    assert facts(in_python) == facts(by_command) == facts(in_gate)
    assert in_python.outcome is by_command.outcome is in_gate.outcome is case.outcome
    assert "t.well_formed" in facts(in_python)


def by_command_line(contract: Path, data: Path, case: Case) -> GateRequest:
    """The request of `dql contract test CONTRACT --dataset DATA`; its options are in dqx.toml."""
    if case.options:
        options = ", ".join(f'{key} = "{text}"' for key, text in case.options.items())
        config = f'[datasets.t]\npath = "{data}"\noptions = {{{options}}}\n'
        (contract.parent / "dqx.toml").write_text(config)
    locations = [] if case.options else [str(data)]
    call = read_call(Options((contract,), datasets=locations), TODAY)
    return call.valid_requests[0]


def by_operator(folder: Path, contract: Path, settings: dict[str, Any]) -> GateRequest:
    """The request of a `ContractGateOperator` with these settings."""
    found = enforce(SourceFile(contract.name, contract.read_text()), on=TODAY)
    assert found.contract is not None
    stated = dataset_settings(found.contract, {"t": settings})
    datasets = [dataset_ref(name, item) for name, item in stated.items()]
    enforced = found.over(datasets)
    asked = request(folder, enforced.suite.text, datasets)
    return replace(asked, suite=enforced.suite, contract=enforced.contract)


def judged(spark: Any, asked: GateRequest) -> GateReport:
    return try_gates([asked], lambda _: spark)[0]


def facts(report: GateReport) -> dict[str, tuple[Any, ...]]:
    """The verdicts by name: status, value and reason."""
    return {item.name: (item.status, item.value, item.reason) for item in report.verdicts}


def test_a_server_is_chosen_in_python_as_on_the_command_line(spark: Any, tmp_path: Path) -> None:
    servers = SEMICOLON + '  archive: {type: local, path: "a/{model}.csv", format: csv}\n'
    contract = Contract.from_string(HEAD + servers + FIELDS)
    data = tmp_path / "x.csv"
    data.write_text("s;i;d\n123;1;2024-03-02\n")
    db = SparkDatabase(spark, {"t": str(data)})
    assert contract.run(db, TODAY, server="landing").outcome is Outcome.PASSED
    assert contract.run(db, TODAY).outcome is not Outcome.PASSED
