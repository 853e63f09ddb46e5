"""Contracts as YAML: how a source is read, and the errors in invalid ones."""

from __future__ import annotations

import json
import re
from typing import get_args

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.contracts.document import DEEPEST, Document, find, plain_value
from dqx_airflow.contracts.export.exported import yaml_text
from dqx_airflow.contracts.mistakes import MistakeName
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.contracts.yaml_reader import MOST_NODES, read_document
from dqx_airflow.diagnostics import draw
from dqx_airflow.values import SourceFile
from dqx_airflow.values.files import table_rows
from tests.contracts.contract_parts import CASES, EXAMPLES, read_text
from tests.markdown_cases import Case, cases

ORDERS = (EXAMPLES / "orders_latest.yaml").read_text("utf-8")


def document(text: str) -> Document:
    return read_document(SourceFile("contract.yaml", text))


def drawn(text: str) -> str:
    found = document(text)
    return draw(found.diagnostics, {"contract.yaml": text})


def test_every_row_of_the_table_of_mistakes_has_a_name_that_mypy_knows() -> None:
    rows = table_rows("dqx_airflow.contracts", "diagnostics.txt", "diagnostics")
    assert [name for name, *_ in rows] == list(get_args(MistakeName))


@pytest.mark.parametrize("case", list(cases(CASES / "documents.md")), ids=str)
def test_a_text_means_this_or_is_refused_so(case: Case) -> None:
    text = case.block("yaml").text
    found = document(text)
    meaning = plain_value(found.root)
    entries = meaning.items() if isinstance(meaning, dict) else [("the document", meaning)]
    shown = "\n".join(f"{key}: {json.dumps(value)}" for key, value in entries)
    case.expect(drawn(text) or shown)


@pytest.mark.parametrize(
    "number",
    [
        "9" * 309,
        "-" + "9" * 320,
        "9" * 5_000,
        "1_0" * 200,
        "1e400",
        "0x" + "f" * 300,
        "!!int " + "9" * 320,
    ],
)
def test_a_number_without_a_nearest_float_is_an_error_at_its_line(number: str) -> None:
    (found,) = document(f"id: a\nlimit: [1, {number}]\nx: 9").diagnostics
    assert (found.code, found.span.line) == ("E405", 2)
    assert "larger than every double" in found.message


@pytest.mark.parametrize(
    "number", ["9" * 308, "1e308", "1e-400", ".inf", ".nan", "0xff", "1:20:30"]
)
def test_other_numbers_and_digits_in_quotes_are_read(number: str) -> None:
    assert not document(f"limit: [{number}, '{'9' * 320}', 0b1, 0o7]").diagnostics


NUMBER = re.compile(r"(?<=[:,\[] )\d+(\.\d+)?(?=[,}\]]|$)", re.MULTILINE)
NUMBERED = """\
dataContractSpecification: 1.2.1
id: a
info: {title: A, version: 1.0.0}
models:
  m:
    fields:
      n: {type: decimal, precision: 10, scale: 2, minimum: 1, exclusiveMaximum: 10, enum: [3, 4]}
      s: {type: string, minLength: 1, maxLength: 7}
    quality:
      - {type: sql, query: "SELECT count(*) FROM m", mustBeGreaterThan: 0}
      - {type: library, metric: rowCount, mustBeBetween: [0, 7]}
      - type: custom
        engine: great-expectations
        implementation:
          {expectation_type: expect_table_row_count_to_be_between, kwargs: {min_value: 3}}
---
apiVersion: v3.1.0
kind: DataContract
id: a
version: 1.0.0
status: active
schema:
  - name: m
    properties:
      - {name: n, logicalType: number, logicalTypeOptions: {minimum: 1, multipleOf: 2}}
      - {name: s, logicalType: string, logicalTypeOptions: {maxLength: 3, minLength: 1}}
      - {name: ts, logicalType: timestamp}
    quality: [{metric: rowCount, mustBeGreaterThan: 0}]
slaProperties: [{property: freshness, value: 3, unit: d, element: m.ts}]
---
contract:
  id: a.m
  version: 1.0.0
  schema: {columns: [{name: n, type: int, min: 1, max: 9, enum: [3]}, {name: ts, type: timestamp}]}
  quality:
    freshness: {max_age_minutes: 30, measured_as: max(ts) vs now()}
    completeness: [{column: n, min_pct: 99}]
    uniqueness: [{keys: [n], max_dup_pct: 1}]
  volume: {baseline_rows_per_day: 3, alert_band: [1, 2], peak_rows_per_hour: 3}
  sla: {x-a: {from: ts, to: ts}, a_p99_minutes: 3}
  versioning: {deprecation_notice_days: 30}
  lifecycle: {retention_days: 30}
---
contract: {name: m, version: 1.0.0}
schema:
  fields:
    - {name: n, type: decimal, precision: 18, scale: 2, min_value: 0, max_value: 9, pii: false}
    - {name: s, type: string, min_length: 1, max_length: 3, valid_values: [3]}
    - {name: ts, type: timestamp}
quality:
  {completeness: {n: 1.0}, uniqueness: {n: 1}, validity: 1, freshness: {max_hours: 3, column: ts}}
sla: {changes: {notification_days: 3}}
usage: {retention_days: 30}
"""


@pytest.mark.parametrize("written", ["9" * 320, "1e308", ".inf", ".nan", f"'{'9' * 320}'", "1:20"])
@pytest.mark.parametrize("text", NUMBERED.split("---\n"), ids=["dcs", "odcs", "fabric", "product"])
def test_a_number_that_fits_nowhere_is_an_error_or_an_unsupported_clause(
    text: str, written: str
) -> None:
    assert not read_text(text).errors
    found = read_text(NUMBER.sub(written, text))
    numbered = {text[: match.start()].count("\n") + 1 for match in NUMBER.finditer(text)}
    reported = {item.span.line for item in found.errors}
    assert found.contract is not None
    if written == "9" * 320:
        assert numbered <= reported
    promised = {note.clause.span.line for note in found.contract.notes if note.promise is not None}
    assert reported | promised or written == "1e308"  # a number like others
    compile_contract(found.contract)


def test_a_tab_is_named_in_the_message() -> None:
    assert "tab in the indentation" in drawn("a:\n\tb: 1")


def test_a_suite_is_not_a_contract() -> None:
    for statement in ("assert num_rows() > 0", "assert each row: a > 0"):
        text = f'suite "S" {{\n  check "C" on o {{\n    {statement}\n  }}\n}}\n'
        (found,) = read_contract(SourceFile("suites/o.dql", text)).errors
        assert found.message == "this is a DQL suite, not a contract"
        assert found.help == "check it with `dql check suites/o.dql`"


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing", "---", "null"])
def test_an_empty_file_is_not_a_contract(text: str) -> None:
    assert read_text(text).errors


@pytest.mark.parametrize("text", ["\x00\x01\x02", "\x7fELF\x02\x01", "PK\x03\x04", "\ufffe", "%"])
def test_binary_content_is_refused_with_its_location(text: str) -> None:
    (found,) = document(text).diagnostics
    assert (found.code, found.span.line) == ("E401", 1)


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_deep_nesting_is_refused_before_it_fills_the_stack(opening: str) -> None:
    (found,) = document(opening * 5_000).diagnostics
    assert found.code == "E409"
    assert str(DEEPEST) in (found.help or "")


def test_nesting_up_to_the_limit_is_accepted() -> None:
    text = "[" * DEEPEST + "]" * DEEPEST
    assert document(text).diagnostics == ()


def test_exploding_aliases_are_refused_before_expansion() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    (found,) = document("\n".join(lines)).diagnostics
    assert (found.code, found.span.line) == ("E409", 6)


@pytest.mark.nightly
def test_a_document_of_too_many_nodes_is_refused() -> None:
    found = read_text(f"{ORDERS}x: [{'1, ' * MOST_NODES}]\n")
    assert [(error.code, error.help) for error in found.errors] == [
        ("E409", "split it into several contracts")
    ]


def test_a_number_of_thousands_of_digits_stays_a_string() -> None:
    assert plain_value(document("9" * 5_000).root) == "9" * 5_000


def test_every_node_has_its_span() -> None:
    root = document("models:\n  orders:\n    tags: [a, 'b c']\n").root
    assert root is not None
    node = find(root, ("models", "orders", "tags", 1))
    assert node is not None
    assert (node.span.line, node.span.column, node.span.end_column) == (3, 15, 20)


NUMBER_LIKE = st.text(alphabet="0123456789_.+-eExXoOabfinsn~:T ", min_size=1, max_size=9)
"""Codes with leading zeros, exponents, other bases, versions, times: many are no number in one of
the versions of YAML."""


@given(st.one_of(NUMBER_LIKE, st.text(st.characters(exclude_categories=["Cs"]))))
@settings(max_examples=300, deadline=None)
def test_a_string_that_is_written_is_read_back_in_both_versions_of_yaml(text: str) -> None:
    written = yaml_text({"enum": [text], text: "x"})
    assert plain_value(document(written).root) == {"enum": [text], text: "x"}
    assert yaml.safe_load(written) == {"enum": [text], text: "x"}


@given(st.text())
@settings(max_examples=200, deadline=None)
def test_any_input_is_a_document_or_has_an_error(text: str) -> None:
    found = read_text(text)
    assert found.contract is not None or found.errors


@pytest.mark.slow
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_contract_that_was_cut_and_mixed_is_read_or_refused(data: st.DataObject) -> None:
    lines = ORDERS.splitlines()
    start = data.draw(st.integers(0, len(lines)))
    length = data.draw(st.integers(0, 12))
    target = data.draw(st.integers(0, len(lines)))
    cut, rest = lines[start : start + length], lines[:start] + lines[start + length :]
    found = read_text("\n".join((*rest[:target], *cut, *rest[target:])))
    assert found.contract is not None or found.errors
