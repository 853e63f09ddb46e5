"""Variables of ODCS 3.2: resolved wherever they are used, or an error; never text."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.api.contract import Contract, ContractValidator
from dqx_airflow.contracts.enforcement.enforced_contract import enforce
from dqx_airflow.contracts.read import ReadContract, read_contract
from dqx_airflow.contracts.references import FolderReader
from dqx_airflow.contracts.variables import given_variables, named_variables
from dqx_airflow.errors import RequestError
from dqx_airflow.values import SourceFile, to_json
from tests.command_line import dql

PEER = """
apiVersion: v3.2.0
kind: DataContract
id: peer
version: 1.0.0
status: active
description: {purpose: "For ${WHO}"}
servers:
  - {server: lake, type: local, path: "${LAKE:-/lake}/orders", format: parquet}
  - server: db
    type: postgresql
    host: "${DB_HOST}"
    port: "${DB_PORT}"
    database: shop
    schema: public
schema:
  - name: orders
    physicalName: ${TABLE:-orders}
    properties:
      - name: country
        logicalType: string
        logicalTypeOptions: {pattern: "^${P:-[A-Z]}{2}$"}
        quality:
          - id: missing
            metric: missingValues
            arguments: {missingValues: ["${NA:-XX}"]}
            mustBe: 0
          - id: valid
            metric: invalidValues
            arguments: {validValues: [CH, "${OTHER:-DE}"]}
            mustBe: 0
    quality:
      - id: forbidden
        type: sql
        query: >-
          SELECT count(*) FROM ${table}
          WHERE country = '${FORBIDDEN:-CH}'
        mustBe: 0
"""
ROWS = [{"country": "CH"}, {"country": "DE"}]


def read(text: str, variables: Any = {}) -> ReadContract:  # noqa: B006
    return read_contract(SourceFile("peer.yaml", text), variables=variables)


def failed(**variables: str) -> set[str]:
    contract = Contract.from_string(PEER, on=date(2026, 1, 1), variables=variables)
    found = ContractValidator(contract).validate(ROWS)["results"].report
    return {
        verdict.name.rpartition(".")[2]
        for verdict in found.verdicts
        if verdict.status.value == "failed"
    }


def test_a_rule_compares_with_the_value_of_a_variable_and_never_with_its_name() -> None:
    assert failed() == {"forbidden"}
    assert failed(FORBIDDEN="AT") == set()
    assert failed(FORBIDDEN="AT", NA="CH") == {"missing"}
    assert failed(FORBIDDEN="AT", OTHER="FR") == {"valid"}
    assert failed(FORBIDDEN="AT", P="[A-C]") == {"pattern"}
    # Unset or empty: the default.
    assert failed(FORBIDDEN="") == {"forbidden"}


def test_the_document_keeps_its_references() -> None:
    enforced = enforce(
        SourceFile("peer.yaml", PEER), on=None, variables={"FORBIDDEN": "XYZZY", "LAKE": "/plugh"}
    )
    assert enforced.contract is not None
    contract = enforced.over(()).contract
    assert [source.text for source in contract.sources] == [PEER]
    texts = [clause.text for _, _, rule in enforced.contract.rules() for clause in rule.clauses]
    texts += [note.clause.text for note in enforced.contract.notes]
    texts += [clause.line for clause in contract.clauses]
    assert [text for text in texts if "XYZZY" in text or "/plugh" in text] == []
    assert [text for text in texts if "'${FORBIDDEN:-CH}'" in text]
    assert enforced.contract.servers[0].location == "/plugh/orders"
    assert enforced.contract.description == "For ${WHO}"


@pytest.mark.parametrize(
    ("written", "variables", "value"),
    [
        ("${A}", {"A": "x"}, "x"),
        ("a${A}b${B:-c}d", {"A": "1"}, "a1bcd"),
        ("${A:-b:-c}", {}, "b:-c"),
        ("${A:-}", {}, ""),
        ("${A:-$x}", {}, "$x"),
        ("$${A}", {"A": "x"}, "$x"),
        ("${A}", {"A": "${B}", "B": "never"}, "${B}"),
        ("${a.b-c}", {"a.b-c": "x"}, "x"),
        ("${A", {"A": "x"}, "${A"),
        ("${A}", {}, "variable 'A'"),
        ("${A}", {"A": ""}, "variable 'A'"),
        ("${}", {}, "${}, which is not a variable"),
        ("${A:?}", {"A": "x"}, "${A:?}, which is not a variable"),
        ("${A:+b}", {"A": "x"}, "${A:+b}, which is not a variable"),
        ("^a${2}", {}, "${2}, which is not a variable"),
        ("${2:-a}", {}, "${2:-a}, which is not a variable"),
        ("${A:-${B:-x}}", {}, "${A:-${B:-x}, which is not a variable"),
        ("${A:-${B:-x}}", {"A": "y", "B": "z"}, "${A:-${B:-x}, which is not a variable"),
    ],
)
def test_a_reference_is_resolved_as_the_standard_says_or_an_error(
    written: str, variables: dict[str, str], value: str
) -> None:
    text = PEER.replace("${TABLE:-orders}", json.dumps(written))
    result = read(text, variables)
    if result.errors:
        (error,) = result.errors
        assert error.code == "E429"
        assert value in error.message
        assert error.message.startswith("schema[0].physicalName has ")
        assert result.sources["peer.yaml"].splitlines()[error.span.line - 1].endswith(written + '"')
    else:
        assert result.contract is not None
        assert (result.contract.models[0].location or "") == value


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("${LAKE:-/lake}", "${X}"),
        ("name: country", "name: ${X}"),
        ("logicalType: string", "logicalType: ${X}"),
        ("${P:-[A-Z]}", "${X}"),
        ("${NA:-XX}", "${X}"),
        ("${OTHER:-DE}", "${X}"),
        ("${FORBIDDEN:-CH}", "${X}"),
        ("id: forbidden", "id: ${X}"),
        ("mustBe: 0", 'mustBe: "${X}"'),
        ("status: active", "status: ${X}"),
    ],
)
def test_an_unknown_variable_is_an_error_wherever_it_is_used(old: str, new: str) -> None:
    errors = read(PEER.replace(old, new, 1)).errors
    assert "E429" in [error.code for error in errors]
    assert "'X'" in "".join(error.message for error in errors)


@pytest.mark.parametrize("key", ["mustBe", "mustNotBe", "mustBeLessThan", "mustBeGreaterOrEqualTo"])
@pytest.mark.parametrize("written", ["${L:-0}", "${M}", "1${L:-0}"])
def test_a_variable_as_a_number_is_an_error_at_its_line(key: str, written: str) -> None:
    """The value of a variable is a string: it would only be compared when the gate runs."""
    text = PEER.replace("mustBe: 0", f"{key}: {written}", 1)
    (error,) = read(text, {"M": "5"}).errors
    assert (error.code, error.message.endswith("', not a number")) == ("E405", True)
    assert text.splitlines()[error.span.line - 1].endswith(f"{key}: {written}")


@pytest.mark.parametrize(
    ("anchor", "use"),
    [("purpose: &it '${X}'", "pattern: *it"), ("purpose: {a: &it {pattern: '${X}'}}", "<<: *it")],
)
def test_an_unknown_variable_is_an_error_where_its_alias_is_used(anchor: str, use: str) -> None:
    text = PEER.replace('purpose: "For ${WHO}"', anchor).replace('pattern: "^${P:-[A-Z]}{2}$"', use)
    where = "schema[0].properties[0].logicalTypeOptions.pattern"
    (error,) = (error for error in read(text).errors if error.code == "E429")
    assert error.message == f"{where} has the unknown variable 'X'"


def test_older_contracts_have_no_variables_which_a_warning_says() -> None:
    result = read(PEER.replace("v3.2.0", "v3.1.0"), {"FORBIDDEN": "AT"})
    warned = [found for found in result.diagnostics if found.code == "W023"]
    assert len(warned) == 6
    assert warned[0].message.startswith("${LAKE:-/lake} is text here")


def test_what_only_stores_a_contract_keeps_its_references() -> None:
    result = read(PEER.replace("${TABLE:-orders}", "${TABLE}"), None)
    assert result.errors == ()
    assert result.contract is not None
    assert result.contract.models[0].location == "${TABLE}"


def test_in_other_dialects_a_reference_is_text_too(tmp_path: Path) -> None:
    text = """
dataContractSpecification: 1.2.1
id: o
info: {title: O, version: 1.0.0}
models: {o: {fields: {a: {$ref: other.yaml}, b: {type: string, enum: ["${B}"]}}}}
"""
    (tmp_path / "other.yaml").write_text("type: string\npattern: ${A}\n", encoding="utf-8")
    result = read_contract(SourceFile("o.yaml", text), FolderReader(tmp_path))
    warned = [found for found in result.diagnostics if found.code == "W023"]
    assert [(found.span.file, found.span.line) for found in warned] == [
        ("o.yaml", 5),
        ("other.yaml", 2),
    ]


def test_only_listed_variables_are_read_from_the_environment_and_no_secrets() -> None:
    environment = {"A": "a", "B": "b"}
    assert given_variables(["A", "C=c=d", "D"], environment) == {"A": "a", "C": "c=d"}
    assert given_variables(["A=file", "A", "D=file", "D"], environment) == {"A": "a", "D": "file"}
    for word in ("1=2", "=x", "A B"):
        with pytest.raises(RequestError, match="is not the name of a variable"):
            given_variables([word], {})
    plain = [
        "s3://lake/orders",
        "token = 3",
        "AccountName=lake",
        "user@corp.example",
        "password IS NULL",
    ]
    plain += ["hdfs://hive@namenode/lake", "abfss://box@account.dfs.core.windows.net/x", "monkey=1"]
    assert (
        list(given_variables([f"A{n}={text}" for n, text in enumerate(plain)], {}).values())
        == plain
    )
    with pytest.raises(RequestError, match="DB_PASSWORD may be a secret"):
        given_variables(["DB_PASSWORD"], {"DB_PASSWORD": "x"})


def test_what_is_not_listed_is_shown_nowhere(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To list a variable is to show it: a contract is trusted with nothing else."""
    for name in ("FORBIDDEN", "TABLE", "P", "NA", "OTHER", "LAKE", "WHO", "DB_HOST", "DB_PORT"):
        monkeypatch.setenv(name, f"CANARY_{name}")
    Path("peer.yaml").write_text(PEER, encoding="utf-8")
    Path("unset.yaml").write_text(PEER.replace("${NA:-XX}", "${NA}"), encoding="utf-8")
    shown = ""
    for words in (["lint"], ["clauses"], ["to-suite"], ["export", "--format", "spark"]):
        for file in ("peer.yaml", "unset.yaml"):
            result = dql("contract", words[0], file, *words[1:])
            assert result.output
            shown += result.output
    enforced = enforce(SourceFile("peer.yaml", PEER), on=None, variables={})
    over = enforced.over(())
    shown += to_json(over.contract) + over.suite.text + read(PEER, None).sources["peer.yaml"]
    assert "CANARY" not in shown
    # What may be a secret cannot be listed, and is not quoted.
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJDQU5BUlkifQ.CANARY"
    for word in (
        *("URL=jdbc:postgresql://u:CANARY@h/d", "API_TOKEN=CANARY", "DB_PASSWORD=CANARY"),
        *("A=AccountName=a;AccountKey=CANARY", "A=jdbc:x://h;user=u;pwd=CANARY", f"A={token}"),
        *("A=[default]\naws_secret_access_key = CANARY/CANARY", "A={'accountKey': 'CANARY12'}"),
        *("A=-----BEGIN RSA PRIVATE KEY-----\nCANARY", "A=AKIACANARYCANARY4711"),
        *("A=https://h/x?sig=CANARY", "A=Endpoint=sb://h/;SharedAccessKey=CANARY"),
        *("DB_PASS=CANARY", "GITHUB_PAT=CANARY", "A=Pwd: CANARY", "A=CANARY:CANARY@host"),
        *("A=ghp_CANARYCANARYCANARYCANARY", "A=Bearer CANARY4711CANARY"),
    ):
        name, _, value = word.partition("=")
        with pytest.raises(RequestError) as refused_in_python:
            Contract.from_string(PEER, on=date(2026, 1, 1), variables={name: value})
        assert "CANARY" not in str(refused_in_python.value)
        with pytest.raises(RequestError) as refused:
            given_variables([word], {})
        assert "CANARY" not in str(refused.value)


def test_the_commands_know_the_variables_of_the_settings_and_of_the_call(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TABLE", "of_the_environment")
    Path("peer.yaml").write_text(PEER.replace("${TABLE:-orders}", "${TABLE}"), encoding="utf-8")

    def run(*words: str) -> tuple[int, str]:
        result = dql("contract", *words)
        return result.returncode, result.output

    for command in ("lint", "clauses", "to-suite"):
        code, output = run(command, "peer.yaml")
        assert code == 2
        assert "E429" in output
    assert run("--variable", "TABLE", "clauses", "peer.yaml")[0] == 0
    assert run("--variable", "TABLE=t", "export", "peer.yaml", "--format", "spark")[0] == 0
    settings = '[contracts]\nenvironment = ["TABLE"]\n[contracts.variables]\nFORBIDDEN = "AT"\n'
    Path("dqx.toml").write_text(settings, encoding="utf-8")
    code, output = run("to-suite", "peer.yaml")
    assert code == 0
    assert 'country != "AT"' in output
    Path("dqx.toml").write_text("[contracts]\nvariables = {A = 1}\n", encoding="utf-8")
    assert "must be a string" in dql("contract", "test", "peer.yaml").output


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("A=B", "x", "variables: 'A=B' is not the name of a variable"),
        ("", "x", "variables: '' is not the name of a variable"),
        (None, "x", "variables: None is not the name of a variable"),
        ("A", 5, "variables: A is 5"),
        ("TOKEN", "x", "variables: TOKEN may be a secret"),
    ],
)
def test_a_variable_needs_a_name_and_a_string(name: Any, value: Any, problem: str) -> None:
    with pytest.raises(RequestError) as raised:
        named_variables({name: value}, {})
    assert raised.value.problem == problem
    with pytest.raises(RequestError):
        Contract.from_string("", variables={name: value})
