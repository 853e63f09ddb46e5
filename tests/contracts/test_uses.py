"""Who uses which version of a contract, from its list, code, blocks and gates."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from dqx_airflow.contracts.registry import registry_at
from dqx_airflow.contracts.uses import (
    ConsumerUse,
    ContractCall,
    Reliance,
    contract_calls,
    reliances,
    uses_in,
)
from dqx_airflow.values import SourceFile
from dqx_airflow.values.files import shipped
from tests.command_line import Called, dql
from tests.contracts.contract_edits import contract_of
from tests.markdown_cases import Case, cases

CASES = list(cases(Path(__file__).parent / "uses" / "python_code.md"))
ID = "bronze.wagers"
DAY = date(2026, 1, 5)


def wagers(version: str, more: str = "") -> str:
    return f"""\
contract:
  id: {ID}
  version: {version}
{more}  schema:
    columns:
      - {{name: amount_{version[0]}, type: bigint, semantic: The amount.}}
"""


DEPRECATED = "  lifecycle: {status: deprecated}\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a registry of the versions 1.0.0 (deprecated), 2.0.0 and 2.1.0."""
    registry = registry_at(str(tmp_path / "published"))
    team = "  consumers: [{team: bi, use_case: Dashboard}, {team: risk, pin: 1}]\n"
    for text in (wagers("1.0.0", DEPRECATED), wagers("2.0.0"), wagers("2.1.0", team)):
        assert registry.publish(contract_of(text), {"wagers.yaml": text}, DAY).published
    (tmp_path / "dags" / "contracts").mkdir(parents=True)
    (tmp_path / "dags" / "contracts" / "wagers.yaml").write_text(wagers("2.0.0"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def consumers(*options: str) -> Called:
    return dql(
        "contract",
        "registry",
        "consumers",
        ID,
        "--registry",
        "published",
        "--today",
        "2026-01-05",
        *options,
    )


def rows(result: Called) -> list[tuple[str | None, ...]]:
    """The rows of a result in JSON: who, the pin, the version, what is wrong with it."""
    keys = ("consumer", "pin", "version", "concern")
    return [tuple(item[key] for key in keys) for item in json.loads(result.stdout)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_calls_are_read_as_they_are_written(case: Case) -> None:
    calls = contract_calls(SourceFile("dag.py", case.blocks[0].text), Path("/dags/dag.py"))
    assert not isinstance(calls, str), calls
    case.expect("\n".join(map(shown, calls)) or "none")


def shown(call: ContractCall) -> str:
    words = (call.function, call.name or "-", call.contract or "?", call.pin or "-")
    return f"{call.span.line}: {' '.join(words)}"


@pytest.mark.parametrize("text", ["def (", "\0", "x = " + "(" * 5000, "x = " + "-" * 200_000 + "1"])
def test_invalid_python_is_reported(text: str) -> None:
    assert isinstance(contract_calls(SourceFile("dag.py", text), Path("dag.py")), str)


def test_a_file_is_never_run(here: Path) -> None:
    (here / "dags" / "dag.py").write_text("open('ran', 'w')\nimport nothing_of_that_name\n")
    assert consumers("--code", "dags").returncode == 0
    assert not (here / "ran").exists()


def test_consumers_that_a_contract_lists_rely_on_their_pin_else_on_the_newest(here: Path) -> None:
    assert rows(consumers("--format", "json")) == [
        ("bi", None, "2.1.0", None),
        ("risk", "1", "1.0.0", f"{ID} is deprecated"),
    ]


def test_pins_are_found_in_code(here: Path) -> None:
    (here / "dags" / "gates.py").write_text(
        "from pathlib import Path\n"
        "CONTRACT = Path(__file__).parent / 'contracts' / 'wagers.yaml'\n"
        "ContractGateOperator(task_id='old', contract=CONTRACT, expect_version='1')\n"
        "ContractGateOperator(task_id='open', contract='contracts/wagers.yaml')\n"
        "ContractGateOperator(task_id='vague', contract=CONTRACT, expect_version=PIN)\n"
    )
    (here / "dags" / "job.py").write_text(
        "assert_contract(frame, 'dags/contracts/wagers.yaml', version='2')\n"
        "assert_contract(frame, 'dags/contracts/wagers.yaml', version='3')\n"
    )
    found = consumers("--code", "dags", "--format", "json")
    assert rows(found)[2:] == [
        ("old", "1", "1.0.0", f"{ID} is deprecated"),
        ("open", None, "2.0.0", None),
        ("vague", "PIN", None, "'PIN' has no known version before it runs"),
        ("job", "2", "2.1.0", None),
        ("job", "3", None, "no version 3 is published"),
    ]
    places = [(item["file"], item["line"]) for item in json.loads(found.stdout)]
    assert places[2:5] == [("dags/gates.py", 3), ("dags/gates.py", 4), ("dags/gates.py", 5)]
    assert "old (dags/gates.py:3)" in consumers("--code", "dags").stdout


def test_the_pins_of_the_example_are_found() -> None:
    examples = shipped("dags_examples")
    files = [examples / "jobs" / "build_floor.py", examples / "slot_telemetry.py"]
    found = uses_in(files, "bronze.slot_telemetry")
    assert [(use.name, use.how, use.pin) for use in found.uses] == [
        ("build_floor", "assert_contract", "2"),
        ("slot_telemetry", "ContractGateOperator", "2"),
    ]
    assert not found.unknown


def test_a_contract_in_the_code_itself_is_read(here: Path) -> None:
    (here / "dags" / "gate.py").write_text(
        f"ContractGateOperator(task_id='inline', contract='''{wagers('2.1.0')}''')\n"
    )
    assert rows(consumers("--code", "dags", "--format", "json"))[-1] == (
        "inline",
        None,
        "2.1.0",
        None,
    )


def test_undecidable_uses_are_warnings(here: Path) -> None:
    (here / "dags" / "broken.py").write_text("def (")
    (here / "dags" / "gates.py").write_text(
        "ContractGateOperator(contract='gone.yaml')\nContractGateOperator(contract=path)\n"
    )
    (here / "dags" / "empty.yaml").write_text("a: 1\n")
    (here / "dags" / "other.py").write_text("assert_contract(frame, 'empty.yaml')\n")
    result = consumers("--code", "dags")
    assert result.returncode == 0
    assert result.stderr.splitlines() == [
        "warning: dags/broken.py: invalid Python: invalid syntax (<unknown>, line 1)",
        "warning: dags/gates.py:1: ContractGateOperator: there is no gone.yaml",
        "warning: dags/gates.py:2: ContractGateOperator: its contract is not known before it runs",
        "warning: dags/other.py:1: assert_contract: empty.yaml contains no contract",
    ]


def test_hidden_and_installed_code_is_ignored(here: Path) -> None:
    for folder in (".venv/lib", "lib/site-packages", "__pycache__"):
        (here / "dags" / folder).mkdir(parents=True)
        (here / "dags" / folder / "gate.py").write_text("ContractGateOperator(contract=x)\n")
    assert not consumers("--code", "dags").stderr


def test_outdated_lists_the_consumers_of_ending_versions(here: Path) -> None:
    (here / "dags" / "gates.py").write_text(
        "ContractGateOperator(task_id='old', contract='contracts/wagers.yaml', expect_version=1)\n"
        "ContractGateOperator(task_id='new', contract='contracts/wagers.yaml', expect_version=2)\n"
    )
    result = consumers("--code", "dags/gates.py", "--outdated", "--format", "json")
    assert [row[0] for row in rows(result)] == ["risk", "old"]
    assert result.returncode == 1


def test_missing_code_is_reported(here: Path) -> None:
    result = consumers("--code", "nowhere")
    assert result.returncode == 2
    assert "nothing found at nowhere" in result.stderr


def test_a_gate_relies_on_the_version_that_it_enforced(here: Path) -> None:
    published = registry_at("published").versions(ID)
    found = reliances(
        published, DAY, (ConsumerUse("gate", version="2.0.0"), ConsumerUse("gate", version="2.5.0"))
    )
    assert found[2:] == (
        Reliance(ConsumerUse("gate", version="2.0.0"), "2.0.0", None),
        Reliance(ConsumerUse("gate", version="2.5.0"), None, "no version 2.5.0 is published"),
    )
    assert reliances((), DAY) == ()


# DataLex -----------------------------------------------------------------------------------------

CUSTOMERS = "commerce.Customer.active"


@pytest.fixture
def blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a manifest that holds two versions of a contract, and blocks that name it."""
    contracts = [{"id": CUSTOMERS, "name": "active", "version": number} for number in (1, 2)]
    manifest = {
        "manifestSpecVersion": "1.0.0",
        "datalexVersion": "1.8.0",
        "generatedAt": "2026-01-01T00:00:00Z",
        "project": {"name": "shop"},
        "domains": [{"name": "commerce", "entities": [{"name": "C", "contracts": contracts}]}],
    }
    (tmp_path / "datalex-manifest.json").write_text(json.dumps(manifest))
    named = [("old", f"{CUSTOMERS}@1"), ("new", f"{CUSTOMERS}@2"), ("open", CUSTOMERS)]
    named += [("gone", f"{CUSTOMERS}@7"), ("other", "commerce.Customer.lost@1")]
    (tmp_path / "blocks.dql").write_text(
        "\n".join(
            f'block "{name}" {{\n  status = "certified"\n  datalex_contract = "{contract}"\n}}'
            for name, contract in named
        )
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_blocks_are_consumers_of_the_versions_of_a_manifest(blocks: Path) -> None:
    result = dql("contract", "registry", "consumers", CUSTOMERS, "--code", ".", "--format", "json")
    assert rows(result) == [
        ("old", "1", "1", "version 2 is there"),
        ("new", "2", "2", None),
        ("open", None, "2", None),
        ("gone", "7", None, f"{blocks}/datalex-manifest.json has no version 7"),
    ]
    assert json.loads(result.stdout)[0] | {"consumer": ""} == {
        "consumer": "",
        "use_case": "block, certified",
        "pin": "1",
        "version": "1",
        "concern": "version 2 is there",
        "file": "blocks.dql",
        "line": 3,
    }


def test_outdated_blocks_are_listed(blocks: Path) -> None:
    call = ["consumers", CUSTOMERS, "--code", "blocks.dql", "--outdated"]
    result = dql("contract", "registry", *call, "--datalex", "datalex-manifest.json")
    assert result.returncode == 1
    assert "old (blocks.dql:3)" in result.stdout
    assert "new (" not in result.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((ID,), "the location of published contracts is unknown"),
        ((f"{CUSTOMERS}s",), "did you mean 'commerce.Customer.active'?"),
        ((CUSTOMERS, "--datalex", "nowhere.json"), "nowhere.json"),
    ],
)
def test_an_invalid_call_is_reported(blocks: Path, options: tuple[str, ...], message: str) -> None:
    result = dql("contract", "registry", "consumers", *options)
    assert result.returncode == 2
    assert message in result.stderr


def test_blocks_that_name_another_contract_are_no_consumers(blocks: Path) -> None:
    found = uses_in([blocks / "blocks.dql"], "commerce.Customer.lost")
    assert [use.name for use in found.uses] == ["other"]
