"""Blocks checked against DataLex manifests: a block file, a manifest, and the messages."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from dqx_airflow.api.contract import Contract
from dqx_airflow.api.database import MemoryDatabase
from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.contracts.datalex_binding import check_blocks, find_manifest, manifest_findings
from dqx_airflow.contracts.dialects.datalex import read_manifest
from dqx_airflow.contracts.enforcement.coverage import coverage
from dqx_airflow.contracts.manifest_impact import impact
from dqx_airflow.contracts.query_outputs import outputs_of
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.diagnostics import draw
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.formatter import format_source
from dqx_airflow.dql.syntax.datalex_blocks import read_blocks
from dqx_airflow.values import SourceFile
from tests.command_line import dql
from tests.markdown_cases import Case, cases

HERE = Path(__file__).parent / "datalex"
CASES = [*cases(*HERE.glob("*.md"))]

MANIFEST = {
    "manifestSpecVersion": "1.0.0",
    "datalexVersion": "1.8.2",
    "generatedAt": "2026-05-01T12:00:00Z",
    "project": {"name": "shop", "dialect": "duckdb"},
    "domains": [
        {
            "name": "commerce",
            "entities": [
                {
                    "name": "Customer",
                    "binding": {"kind": "dbt_model", "ref": "dim_customers"},
                    "fields": [{"name": "customer_id"}, {"name": "country"}],
                    "contracts": [
                        {
                            "id": "commerce.Customer.active",
                            "name": "active",
                            "version": version,
                            "signature": {
                                "inputs": [{"name": "month", "type": "date"}],
                                "outputs": [{"name": name, "type": "integer"} for name in outputs],
                            },
                        }
                        for version, outputs in ((1, ["customers"]), (3, ["customers", "share"]))
                    ]
                    + [{"id": "commerce.Customer.listed", "name": "listed", "version": 1}],
                }
            ],
        }
    ],
}
SOURCE = SourceFile("manifest.json", json.dumps(MANIFEST, indent=1))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_block_gets_the_diagnostics_of_the_case(case: Case) -> None:
    source = SourceFile("blocks.dql", case.block("dql").text)
    manifest = None if case.block("dql").has("alone") else read_manifest(SOURCE)
    checked = check_blocks(source, manifest)
    case.expect(draw(checked.diagnostics, {source.name: source.text}) or "nothing")


QUERIES = [
    ("SELECT a, b AS c, count(*) AS n FROM t", "a c n", None),
    ("SELECT t.a FROM t", "a", None),
    ("WITH x AS (SELECT 1 AS a, 2 AS b) SELECT * FROM x", "a b", None),
    ("WITH x(p) AS (SELECT 1 AS a) SELECT * FROM x", "p", None),
    ("SELECT * FROM (SELECT a FROM t) AS s", "a", None),
    ("SELECT s.*, 1 AS n FROM (SELECT a FROM t) AS s JOIN u ON true", "a n", None),
    ("SELECT a FROM t UNION ALL SELECT b FROM u", "a", None),
    ("(SELECT a FROM t)", "a", None),
    ("SELECT * EXCLUDE (b) FROM (SELECT a, b FROM t)", "a", None),
    ("SELECT * FROM (VALUES (1, 2)) AS v(a, b)", "a b", None),
    ("WITH RECURSIVE r AS (SELECT 1 AS n UNION SELECT n + 1 FROM r) SELECT * FROM r", "n", None),
    ("SELECT a FROM {{ ref('orders') }} WHERE day = {{ day }} AND x = ${y}", "a", None),
    ("SELECT * FROM {{ ref('dim_customers') }}", "customer_id country", "dim_customers"),
    ("SELECT * FROM dim_customers JOIN other USING (id)", "customer_id country", "dim_customers"),
    ("SELECT count(*) FROM t", "?", None),
    ("SELECT * FROM t", "", "columns of t"),
    ("SELECT * FROM read_csv('x')", "", "unknown"),
    ("SELECT * FROM t PIVOT (sum(x) FOR y IN ('a'))", "", "pivot"),
    ("{% if a %}SELECT 1 AS a{% endif %}", "", "template"),
    ("SELECT {{ columns }}, a FROM t", "a", "template"),
    ("SELECT * FROM (SELECT 1 AS a), (SELECT 2 AS b) JOIN (SELECT 3 AS c) ON true", "a b c", None),
    ("SELECT * FROM (SELECT a FROM t) x SEMI JOIN (SELECT b FROM u) y ON true", "a", None),
    ("SELECT * FROM (SELECT a FROM t) x ANTI JOIN (SELECT b FROM u) y ON true", "a", None),
    ("SELECT y.* FROM (SELECT a FROM t) x SEMI JOIN (SELECT b FROM u) y ON true", "", "y.*"),
    ("SELECT COLUMNS('a.*') FROM t", "", "COLUMNS"),
    ("SELECT * LIKE 'a%' FROM (SELECT 1 AS a)", "", "any number"),
    ("SELECT unnest({'a': 1})", "", "any number"),
    ("SELECT (a), t.s.b FROM t", "a b", None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "names", "unknown"), QUERIES, ids=[query for query, *_ in QUERIES]
)
def test_the_columns_of_a_query_are_read_from_its_text(
    query: str, names: str, unknown: str | None
) -> None:
    found = outputs_of(query, "duckdb", {"dim_customers": ("customer_id", "country")})
    assert found.problem is None
    assert [name or "?" for name in found.names] == names.split()
    assert (unknown is None) == (found.unknown is None)
    assert unknown is None or unknown in str(found.unknown)


UNNAMED = [
    ("SELECT CAST(a AS int), a::int FROM t", "duckdb snowflake bigquery mysql tsql trino", "? ?"),
    ("SELECT CAST(a AS int), a::int FROM t", "postgres redshift spark databricks", "a a"),
    ("SELECT s['a'], 'a', coalesce(a), -a FROM t", "duckdb spark snowflake", "? ? ? ?"),
    ("SELECT s:a, a + 0 FROM t", "snowflake databricks", "? ?"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "dialects", "names"), UNNAMED)
def test_only_a_column_names_an_expression_without_an_alias(
    query: str, dialects: str, names: str
) -> None:
    for dialect in dialects.split():
        found = outputs_of(query, dialect)
        assert [name or "?" for name in found.names] == names.split(), dialect


@pytest.mark.parametrize(
    ("query", "dialect"),
    [
        ("SELECT * ILIKE 'a%' FROM (SELECT 1 AS a)", "snowflake"),
        ("SELECT * FROM (SELECT 1 AS a) x RIGHT ANTI JOIN u ON true", "clickhouse"),
        ("SELECT struct(1 AS a).* FROM t", "spark"),
        ("SELECT inline(a) FROM t", "spark"),
        ("SELECT stack(1, 2), json_tuple(a, 'b') FROM t", "databricks"),
    ],
)
def test_columns_that_depend_on_the_data_or_the_database_are_unknown(
    query: str, dialect: str
) -> None:
    found = outputs_of(query, dialect)
    assert (found.names, found.problem) == ((), None)
    assert found.unknown is not None


@pytest.mark.parametrize(
    "query", ["", "DELETE FROM t", "SELECT 1; SELECT 2", "SELEC 1 AS a", "DROP TABLE t", "(" * 9999]
)
def test_an_invalid_query_is_reported(query: str) -> None:
    assert outputs_of(query, "duckdb").problem is not None


def test_a_dialect_that_sqlglot_does_not_know_is_read_as_plain_sql() -> None:
    assert outputs_of("SELECT 1 AS a", "klingon").names == ("a",)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"manifestSpecVersion": "2.0.0"}', "{", "a: [", '{"domains": 1}',
     SOURCE.text.replace('"version": 3', '"version": 1')],
)  # fmt: skip
def test_an_invalid_manifest_is_reported(text: str) -> None:
    manifest = read_manifest(SourceFile("manifest.json", text))
    assert {found.code for found in manifest.errors} == {"E501"}


def test_a_bad_manifest_is_an_error_for_certified_blocks_only() -> None:
    manifest = read_manifest(SourceFile("manifest.json", "{}"))
    block = 'block "A" {{ status = "{}" datalex_contract = "a.B.c@1" query = "SELECT 1" }}'
    relied = check_blocks(SourceFile("a.dql", block.format("certified")), manifest)
    not_yet = check_blocks(SourceFile("b.dql", block.format("draft")), manifest)
    assert not [item for item in manifest_findings(manifest, [not_yet]) if not item.is_mild]
    assert [item for item in manifest_findings(manifest, [not_yet, relied]) if not item.is_mild]


def test_objects_of_a_manifest_are_open() -> None:
    open_one = json.loads(SOURCE.text) | {"nobody_knows": {"this": [1]}}
    assert not read_manifest(SourceFile("m.json", json.dumps(open_one))).diagnostics


def test_the_nearest_manifest_is_used(tmp_path: Path) -> None:
    inner = tmp_path / "blocks" / "customer"
    inner.mkdir(parents=True)
    assert find_manifest(inner) is None
    above = tmp_path / "target" / "datalex-manifest.json"
    above.parent.mkdir()
    above.write_text("{}")
    assert find_manifest(inner) == above
    beside = inner / "datalex-manifest.json"
    beside.write_text("{}")
    assert find_manifest(inner) == beside


# What a new manifest means -----------------------------------------------------------------------

BLOCKS = """
block "Pinned" { status = "certified" datalex_contract = "commerce.Customer.active@1" }
block "Newest" { status = "certified" datalex_contract = "commerce.Customer.active" }
block "Other" { status = "draft" datalex_contract = "commerce.Customer.listed@1" }
block "None" { status = "draft" }
"""


def changed(text: str, by: str) -> str:
    assert text in SOURCE.text
    return SOURCE.text.replace(text, by)


IMPACTS = [
    ("nothing changed", SOURCE.text, {"Pinned": "version 3 is available"}),
    (
        "a version is gone",
        changed('"version": 1,\n       "sig', '"version": 2,\n       "sig'),
        {"Pinned": "version 1 no longer exists; available: 3, 2"},
    ),
    (
        "a column is renamed in the same version",
        changed('"name": "share"', '"name": "ratio"'),
        {
            "Pinned": "version 3 is available",
            "Newest": "the output 'share' no longer exists; the output 'ratio' is new, and the "
            "block must return it; and its version is unchanged",
        },
    ),
    (
        "a contract is gone",
        changed("commerce.Customer.listed", "commerce.Customer.told"),
        {"Pinned": "version 3 is available", "Other": "it no longer exists"},
    ),
]


@pytest.mark.parametrize(("text", "due"), [row[1:] for row in IMPACTS], ids=[i[0] for i in IMPACTS])
def test_a_new_manifest_affects_the_blocks_that_use_what_changed(
    text: str, due: dict[str, str]
) -> None:
    blocks = read_blocks(SourceFile("blocks.dql", BLOCKS)).blocks
    new = read_manifest(SourceFile("new.json", text))
    found = impact(read_manifest(SOURCE), new, blocks)
    assert {item.block: "; ".join(item.reasons) or item.advice for item in found} == due


def test_a_broken_block_fails_the_job_and_emits_lineage(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = here / "events.jsonl"
    transport = {"type": "file", "log_file_path": str(events), "append": True}
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT", json.dumps(transport))
    (here / "old.json").write_text(SOURCE.text)
    (here / "new.json").write_text(changed("commerce.Customer.listed", "commerce.Customer.x"))
    call = ["contract", "impact", "old.json", "new.json", "blocks.dql", "--emit"]
    (here / "blocks.dql").write_text(BLOCKS)
    done = dql(*call)
    assert done.returncode == 0, "a block that is not certified fails nothing"
    assert "'Other' would break, but is not certified: commerce.Customer.listed@1" in done.output
    (here / "blocks.dql").write_text(BLOCKS.replace('"draft" datalex', '"certified" datalex'))
    done = dql(*call)
    assert done.returncode == 1, done.output
    assert (
        "'Other' breaks: commerce.Customer.listed@1: it no longer exists\n1 block broken"
        in done.output
    )
    begun, event = [json.loads(line) for line in events.read_text().splitlines()]
    assert (begun["eventType"], event["eventType"]) == ("START", "FAIL")
    assert event["job"]["name"] == "Other.block"
    assert [item["name"] for item in event["inputs"]] == ["commerce.Customer.listed@1"]
    assert "it no longer exists" in event["run"]["facets"]["errorMessage"]["message"]


def test_unaffected_blocks_exit_with_0(here: Path) -> None:
    (here / "old.json").write_text(SOURCE.text)
    (here / "bad.json").write_text("{}")
    (here / "blocks.dql").write_text(BLOCKS)
    call = ["contract", "impact", "old.json", "old.json", "blocks.dql"]
    assert dql(*call).returncode == 0
    done = dql(*call, "--format", "json")
    assert [item["breaking"] for item in json.loads(done.stdout)] == [False]
    assert dql("contract", "impact", "old.json", "bad.json", ".").returncode == 2


def test_dql_check_checks_blocks_against_the_nearest_manifest(here: Path) -> None:
    (here / "datalex-manifest.json").write_text(SOURCE.text)
    block = 'block "A" {{ status = "{}" datalex_contract = "commerce.Customer.active@1" {} }}'
    kept = 'query = "SELECT 1 AS customers"'
    (here / "a.dql").write_text(block.format("certified", kept))
    assert dql("check", "a.dql").returncode == 0
    (here / "b.dql").write_text(block.format("certified", 'query = "SELECT 1 AS n"'))
    done = dql("check", ".")
    assert done.returncode == 2
    assert "E506" in done.output
    (here / "b.dql").write_text(block.format("review", 'query = "SELECT 1 AS n"'))
    assert dql("check", ".").returncode == 0
    other = here / "other.json"
    other.write_text("{}")
    assert dql("check", "a.dql", "--datalex", "other.json").returncode == 2


def test_a_block_file_is_not_a_suite_and_is_not_formatted() -> None:
    source = SourceFile("blocks.dql", BLOCKS)
    assert not check_source(source).diagnostics
    (found,) = check_source(source, needs_suite=True).diagnostics
    assert (found.code, found.help) == ("E008", "this is a block file; a gate needs a suite")
    assert format_source(source) == BLOCKS


def test_a_misplaced_id_and_an_old_version_are_warnings() -> None:
    text = changed("commerce.Customer.listed", "sales.Client.listed").replace("1.8.2", "1.5.0")
    manifest = read_manifest(SourceFile("manifest.json", text))
    assert not manifest.errors
    assert {item.message for item in manifest.diagnostics} == {
        "DataLex 1.5.0 is not supported: manifests of 1.8 to 2.x are read",
        "the id sales.Client.listed stands where commerce.Customer.listed belongs",
    }
    read = read_contract(SourceFile("manifest.json", text))
    assert [item.message for item in read.diagnostics] == [
        item.message for item in manifest.diagnostics
    ]


def test_dql_check_sends_the_bindings_of_certified_blocks(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "datalex-manifest.json").write_text(SOURCE.text)
    block = 'block "{}" {{ status = "{}" datalex_contract = "commerce.Customer.active@1" {} }}\n'
    kept, broken = 'query = "SELECT 1 AS customers"', 'query = "SELECT 1 AS n"'
    rows = (("A", "certified", kept), ("B", "certified", broken), ("C", "draft", broken))
    (here / "a.dql").write_text("".join(block.format(*row) for row in rows))
    done = dql("check", "a.dql", "--emit")
    assert "no lineage events are sent: no OpenLineage transport is configured" in done.output
    events = here / "events.jsonl"
    transport = {"type": "file", "log_file_path": str(events), "append": True}
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT", json.dumps(transport))
    assert dql("check", "a.dql", "--emit").returncode == 2
    sent = [json.loads(line) for line in events.read_text().splitlines()]
    assert [(it["eventType"], it["job"]["name"]) for it in sent] == [
        ("START", "A.block"),
        ("COMPLETE", "A.block"),
        ("START", "B.block"),
        ("FAIL", "B.block"),
    ]
    assert {it["inputs"][0]["name"] for it in sent} == {"commerce.Customer.active@1"}


@pytest.mark.few(1)
@pytest.mark.parametrize("depth", [100, 101, 20_000])
def test_deeply_nested_values_are_refused(depth: int) -> None:
    text = f'block "A" {{ x = {"[" * depth}{"]" * depth} }}'
    found = [one.message for one in read_blocks(SourceFile("blocks.dql", text)).diagnostics]
    assert found == ([] if depth == 100 else ["the value is nested too deeply"])


def test_a_number_can_have_any_number_of_digits() -> None:
    read = read_blocks(SourceFile("blocks.dql", f'block "A" {{ x = {"9" * 5_000} }}'))
    assert read.diagnostics == ()
    assert read.blocks[0].settings["x"].value == float("inf")


@pytest.mark.parametrize(
    ("marked", "claims"),
    [
        (["order_id"], ["repeated_count(order_id) == 0"]),
        (["order_id", "line"], ["repeated_count([order_id, line]) == 0"]),
    ],
)
def test_the_fields_of_a_primary_key_are_unique_together(
    marked: list[str], claims: list[str]
) -> None:
    fields = [{"name": name, "primary_key": name in marked} for name in ("order_id", "line", "x")]
    entity = {"name": "Line", "binding": {"kind": "table", "ref": "db.lines"}, "fields": fields}
    manifest = {**MANIFEST, "domains": [{"name": "commerce", "entities": [entity]}]}
    contract = Contract.from_string(json.dumps(manifest))
    assert [line for line in contract.suite.splitlines() if "repeated" in line] == [
        f"        assert {claim}" for claim in claims
    ]
    assert contract.suite.count("null_count") == len(marked)


ORDER, CUSTOMER = ("Order", "customer_id"), ("Customer", "id")
RELATED = [
    (ORDER, CUSTOMER, {"cardinality": "many_to_one"}, "found one"),
    (CUSTOMER, ORDER, {"cardinality": "one_to_many"}, "found one"),
    (ORDER, CUSTOMER, {"cardinality": "one_to_one"}, "found one alone"),
    (ORDER, CUSTOMER, {"cardinality": "many_to_one", "optional": False}, "found one there"),
    (ORDER, CUSTOMER, {"cardinality": "many_to_one", "optional": True}, "found one"),
    (ORDER, CUSTOMER, {"type": "reference"}, "found"),
    (ORDER, CUSTOMER, {"type": "subtype", "cardinality": "one_to_one"}, "found one alone"),
    (CUSTOMER, ORDER, {"type": "supertype", "cardinality": "one_to_one"}, "found one alone"),
    (ORDER, CUSTOMER, {"layer": "conceptual", "cardinality": "many_to_one"}, "found one"),
    (ORDER, CUSTOMER, {"cardinality": "many_to_many"}, "no side has one row"),
    (ORDER, CUSTOMER, {}, "no side has one row"),
    (("Order", None), ("Customer", None), {"cardinality": "many_to_one"}, "name two columns"),
    (("Order", "who"), CUSTOMER, {"layer": "logical", "type": "reference"}, "of concepts"),
    (ORDER, ("Idea", "id"), {"cardinality": "many_to_one"}, "not bound to a table"),
    (ORDER, ("Nobody", "id"), {"cardinality": "many_to_one"}, "not bound to a table"),
]
VIOLATIONS = {
    "found": ([1, 3, 2], [1, 2]),
    "one": ([1, 2], [1, 2, 2]),
    "alone": ([1, 2, 2], [1, 2]),
    "there": ([1, None, 2], [1, 2]),
}


@pytest.mark.parametrize(("start", "end", "stated", "required"), RELATED)
def test_a_relationship_of_two_tables_is_checked_in_its_direction(
    start: tuple[str, str | None],
    end: tuple[str, str | None],
    stated: dict[str, object],
    required: str,
) -> None:
    ends = {
        side: {"entity": entity} | ({"column": column} if column else {})
        for side, (entity, column) in {"from": start, "to": end}.items()
    }
    manifest = {
        **MANIFEST,
        "relationships": [{"name": "r", **ends, **stated}],
        "domains": [
            {
                "name": "commerce",
                "entities": [
                    _bound("Order", "table", "customer_id"),
                    _bound("Customer", "table", "id"),
                    _bound("Idea", "external", "id"),
                ],
            }
        ],
    }
    source = SourceFile("manifest.json", json.dumps(manifest))
    contract = Contract.from_string(source.text)
    failed = {
        kind: _violations(contract, orders, customers)
        for kind, (orders, customers) in VIOLATIONS.items()
    }
    kinds = required.split()
    if kinds[0] in VIOLATIONS:
        assert {kind for kind, names in failed.items() if names} == set(kinds)
        assert max(map(len, failed.values())) == 1
    else:
        assert [kind for kind, names in failed.items() if names] == []
        read = read_contract(source).contract
        assert read is not None
        reasons = {
            clause.reason
            for clause in coverage(read, compile_contract(read))
            if "relationships" in clause.path and clause.reason
        }
        (reason,) = reasons
        assert required in reason


def _bound(entity: str, kind: str, column: str) -> dict[str, object]:
    fields = [{"name": column, "type": "integer"}]
    return {"name": entity, "binding": {"kind": kind, "ref": entity.lower()}, "fields": fields}


def _violations(
    contract: Contract, orders: list[int | None], customers: list[int | None]
) -> list[str]:
    tables = {
        "Order": [{"customer_id": key} for key in orders],
        "Customer": [{"id": key} for key in customers],
    }
    results = contract.run(MemoryDatabase(tables), date(2026, 1, 1))
    return [verdict.name for verdict in results.report.verdicts if verdict.status != "passed"]
