"""The coverage of a contract: every clause once, in order, with warnings for unchecked ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.contracts.document import Document, leaves, show_path
from dqx_airflow.contracts.enforcement.coverage import ClauseCoverage, counts, coverage
from dqx_airflow.contracts.model import Contract, Treatment
from dqx_airflow.contracts.read import ReadContract, read_contract
from dqx_airflow.contracts.references import FolderReader
from dqx_airflow.dql.check import check_source
from dqx_airflow.values import SourceFile

EXAMPLES = sorted(
    path
    for dialect in ("dcs", "odcs", "fabric", "product")
    for path in (Path(__file__).parent / "examples" / dialect).glob("*.yaml")
)
CUSTOMERS = """\
contract: {name: Customers, version: "1.0.0", owner: us}
schema:
  fields:
    - name: id
      type: string
      nullable: false
      pattern: "\\\\Ax"
    - name: age
      type: integer
      min_valu: 0
      colour: {red: 1}
quality:
  completeness: {age: 0.5}
"""


def read(text: str) -> Contract:
    found = read_contract(SourceFile("contract.yaml", text))
    assert not found.errors
    assert found.contract is not None
    return found.contract


def covered(contract: Contract) -> tuple[ClauseCoverage, ...]:
    return coverage(contract, compile_contract(contract))


@pytest.mark.parametrize("number", [".nan", "-.inf"])
@pytest.mark.parametrize(
    ("example", "key"),
    [
        ("dcs/every_type", "precision"),
        ("odcs/orders_3_1", "exclusiveMaximum"),
        ("odcs/orders_3_1", "multipleOf"),
        ("fabric/slot_telemetry", "max_dup_pct"),
        ("product/customer_master", "customer_id"),
    ],
)
def test_a_bound_that_is_no_number_is_an_error(example: str, key: str, number: str) -> None:
    """Not an extension that nobody checks."""
    text = (Path(__file__).parent / "examples" / f"{example}.yaml").read_text()
    changed = re.sub(rf"\b{key}: [0-9.]+", f"{key}: {number}", text, count=1)
    errors = read_contract(SourceFile("contract.yaml", changed)).errors
    shown = f"{key} is {float(number.replace('.', ''))}, not a number"
    assert [(error.code, shown in error.message) for error in errors] == [("E405", True)]


def test_each_clause_is_listed_with_location_reason_and_assertions() -> None:
    contract = read(CUSTOMERS)
    clauses = [
        (clause.span.line, clause.path, clause.treatment.value, clause.reason or clause.assertions)
        for clause in covered(contract)
    ]
    assert clauses == [
        (1, "contract.name", "documented", ()),
        (1, "contract.version", "documented", ()),
        (1, "contract.owner", "documented", ()),
        (4, "schema.fields[0].name", "checked", ("Customers.id.exists", "Customers.only_columns")),
        (5, "schema.fields[0].type", "checked", ("Customers.id.type",)),
        (6, "schema.fields[0].nullable", "checked", ("Customers.id.required",)),
        (
            7,
            "schema.fields[0].pattern",
            "unsupported",
            "the pattern cannot be translated to Java: \\A means the letter A in ECMA-262: write ^",
        ),
        (8, "schema.fields[1].name", "checked", ("Customers.age.exists", "Customers.only_columns")),
        (9, "schema.fields[1].type", "checked", ("Customers.age.type",)),
        (
            10,
            "schema.fields[1].min_valu",
            "unsupported",
            "the key 'min_valu' is unknown here: did you mean 'min_value'?",
        ),
        (11, "schema.fields[1].colour.red", "unsupported", "the key 'colour' is unknown here"),
        (13, "quality.completeness.age", "checked", ("Customers.age.completeness",)),
    ]
    assert counts(covered(contract)) == {
        Treatment.CHECKED: 6,
        Treatment.DOCUMENTED: 3,
        Treatment.ACCEPTED: 0,
        Treatment.UNSUPPORTED: 3,
    }


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_leaf_of_every_example_is_covered_once(path: Path) -> None:
    found = _read(path)
    assert found.contract is not None
    clauses = covered(found.contract)
    paths = [(clause.span.file, clause.path) for clause in clauses]
    assert len(set(paths)) == len(paths)
    lost = [leaf for leaf in _leaves(found.document) if not _is_in(leaf, {p for _, p in paths})]
    assert not lost
    order = [clause.span.line for clause in clauses if clause.span.file == path.name]
    assert order == sorted(order)


@pytest.mark.few(4, apart=True)
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_a_clause_is_checked_only_by_assertions_of_the_suite(path: Path) -> None:
    contract = _read(path).contract
    assert contract is not None
    suite = check_source(SourceFile("suite.dql", compile_contract(contract).text)).suite
    assert suite is not None
    names = {item.name.value for check in suite.checks for item in check.assertions if item.name}
    for clause in covered(contract):
        assert bool(clause.assertions) == (clause.treatment is Treatment.CHECKED)
        assert set(clause.assertions) <= names
        assert clause.reason or clause.treatment is not Treatment.UNSUPPORTED


def _read(path: Path) -> ReadContract:
    source = SourceFile(path.name, path.read_text(encoding="utf-8"))
    return read_contract(source, FolderReader(path.parent))


def _leaves(document: Document) -> Iterator[str]:
    assert document.root is not None
    for leaf in leaves(document.root):
        yield show_path(leaf.path)


def _is_in(path: str, paths: set[str]) -> bool:
    """Whether a clause tells of a leaf, or of the list or mapping that it is in."""
    while path:
        if path in paths:
            return True
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return False


def test_a_definition_is_checked_only_if_all_its_references_are() -> None:
    contract = read(
        """\
dataContractSpecification: 1.2.1
id: r
info: {title: R, version: 1.0.0}
models:
  m:
    fields:
      a: {$ref: '#/definitions/d'}
      b: {type: array, items: {$ref: '#/definitions/d'}}
definitions:
  d: {type: string, unique: true, pattern: '^x'}
"""
    )
    found = {clause.path: clause for clause in covered(contract)}
    unique = found["definitions.d.unique"]
    assert unique.treatment is Treatment.UNSUPPORTED
    assert unique.reason == "it is nested in an array or a map"
    assert unique.assertions == ("m.a.unique",)
    assert found["definitions.d.pattern"].treatment is Treatment.CHECKED


@pytest.mark.parametrize("is_used", [True, False])
def test_a_key_of_fields_is_known_in_a_definition_that_a_field_uses(is_used: bool) -> None:
    rule = "{type: library, metric: invalidValues, arguments: {validValues: [a]}, mustBe: 0}"
    used = "a: {$ref: '#/definitions/d'}" if is_used else "a: {type: string}"
    contract = read(
        "dataContractSpecification: 1.2.1\nid: r\ninfo: {title: R, version: 1.0.0}\n"
        f"models: {{m: {{fields: {{{used}}}}}}}\n"
        f"definitions: {{d: {{type: string, quality: [{rule}]}}}}\n"
    )
    reasons = [left.reason for left in compile_contract(contract).unenforced]
    assert reasons == ([] if is_used else ["the key 'quality' is unknown here"])
    limit = next(clause for clause in covered(contract) if clause.path.endswith("].mustBe"))
    assert limit.treatment is (Treatment.CHECKED if is_used else Treatment.UNSUPPORTED)


@pytest.mark.parametrize("place", ["#/definitions/d", "defs.yaml#/definitions/d"])
def test_a_misspelled_constraint_of_a_definition_is_not_checked(place: str, tmp_path: Path) -> None:
    definitions = "definitions: {d: {type: string, requried: true}}\n"
    (tmp_path / "defs.yaml").write_text(definitions)
    text = (
        "dataContractSpecification: 1.2.1\nid: r\ninfo: {title: R, version: 1.0.0}\n"
        f"models: {{m: {{fields: {{a: {{$ref: '{place}'}}}}}}}}\n"
    )
    text += definitions if place.startswith("#") else ""
    found = read_contract(SourceFile("contract.yaml", text), FolderReader(tmp_path))
    assert found.contract is not None
    misspelled = {clause.path: clause for clause in covered(found.contract)}[
        "definitions.d.requried"
    ]
    assert misspelled.treatment is Treatment.UNSUPPORTED
    assert misspelled.span.file == ("contract.yaml" if place.startswith("#") else "defs.yaml")
    (left,) = compile_contract(found.contract).unenforced
    assert left.reason == "the key 'requried' is unknown here: did you mean 'required'?"
