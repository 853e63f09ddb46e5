"""Rule files of other tools, and the suite and report that `dql import` makes of each."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from dqx_airflow.dql.check import check_source
from dqx_airflow.importing import databricks_dqx, dbt_tests
from dqx_airflow.importing.foreign_rule import listed_rules
from dqx_airflow.importing.imported_suite import ImportOutcome, suite_of
from dqx_airflow.importing.tools import read_rules
from dqx_airflow.values import SourceFile
from tests.command_line import dql
from tests.markdown_cases import REWRITE

HERE = Path(__file__).parent
CASES = sorted((HERE / "cases").iterdir())


def run(*arguments: object) -> tuple[int, str, str]:
    result = dql("import", *arguments)
    return result.returncode, result.stdout, result.stderr


@pytest.mark.few(8, apart=True)
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_a_file_becomes_the_suite_and_the_report_of_the_case(path: Path) -> None:
    _, suite, account = run(path, "--sql-dialect", "spark")
    due = HERE / "expected" / f"{path.name}.dql"
    found = suite + "\n# The account:\n" + "".join(f"# {line}\n" for line in account.splitlines())
    if REWRITE:
        due.parent.mkdir(exist_ok=True)
        due.write_text(found, encoding="utf-8")
    assert found == due.read_text(encoding="utf-8")
    assert check_source(SourceFile("suite.dql", suite)).errors == ()


def test_the_json_report_has_every_rule(tmp_path: Path) -> None:
    output = tmp_path / "suite.dql"
    code, printed, account = run(
        HERE / "cases" / "glue.dqdl", "--format", "json", "-o", output, "--dataset", "orders"
    )
    rules = json.loads(printed)
    assert (code, account) == (1, "")
    assert len(rules) == 25
    assert {one["dataset"] for one in rules} == {"orders"}
    translated = [one for one in rules if one["outcome"] != "not translated"]
    assert [one for one in rules if one["assertions"]] == translated
    assert output.read_text().startswith("# Imported from glue.dqdl (AWS Glue DQDL): 23 translated")


@pytest.mark.parametrize(
    ("fail_on", "name", "code"),
    [
        ("never", "glue.dqdl", 0),
        ("not-translated", "glue.dqdl", 1),
        ("not-translated", "deequ_suggestions.json", 0),
        ("different", "soda_contract.yml", 1),
        ("different", "deequ_suggestions.json", 0),
    ],
)
def test_the_exit_code_shows_whether_rules_are_left(fail_on: str, name: str, code: int) -> None:
    assert run(HERE / "cases" / name, "--fail-on", fail_on)[0] == code


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "invalid JSON"),
        ("a.json", f'{{"limit":\n {"9" * 5_000}}}', "line 2: the number is larger than"),
        ("a.json", f'{{"limit":\n {"9" * 320}}}', "line 2: the number is larger than"),
        ("a.json", '{"limit":\n\n 1e400}', "line 3: the number is larger than"),
        ("a.yml", f"checks:\n - row_count > {'9' * 5_000}", "line 2: the number is larger than"),
        ("a.yml", f"models:\n - {'9' * 320}", "line 2: the number is larger than"),
        ("a.yml", "a: [", "invalid YAML"),
        ("a.yml", "models: 3", "not recognized as a file of Great Expectations, Soda, dbt"),
        ("a.dqdl", "Rules = [ IsComplete ]]", "invalid DQDL"),
        ("a.dqdl", "Rules = [\n  RowCount > 0\n", "line 2: invalid DQDL: a bracket is not closed"),
        (
            "a.dqdl",
            'Rules = [ IsComplete "a"\n],\nAnalyzers = [ RowCount ]',
            "line 2: invalid DQDL: remove the comma behind the `]`",
        ),
        ("a.py", "import pydeequ\nCheck(", "line 2: invalid Python"),
    ],
)
def test_an_unreadable_file_is_reported(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    code, suite, account = run(tmp_path / name)
    assert (code, suite) == (2, "")
    assert account.startswith(f"error: {tmp_path / name}: ")
    assert message in account


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yml", "checks for a:\n  - row_count > 0\n  - row_count > {}"),
        ("a.dqdl", 'Rules = [ RowCount > 0, ColumnValues "a" between 0 and {} ]'),
        ("a.py", 'from pydeequ.checks import *\nCheck(s, "E", "x").hasMin("a", lambda x: x >= {})'),
        (
            "a.json",
            '{{"constraint_suggestions": [{{"code_for_constraint":'
            ' ".hasMin(\\"a\\", lambda x: x >= {})"}}]}}',
        ),
    ],
)
def test_a_rule_with_a_number_that_is_too_large_is_not_translated(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text.format("9" * 320))
    _, _, account = run(tmp_path / name)
    assert account.splitlines()[-1].endswith("1 not translated")


def test_a_checkpoint_runs_the_suites_beside_it(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "expectations" / "orders").mkdir(parents=True)
    suite = (HERE / "cases" / "orders_suite.json").read_text()
    (tmp_path / "expectations" / "orders" / "warning.json").write_text(suite)
    checkpoint = {
        "name": "nightly",
        "validations": [
            {
                "batch_request": {"data_asset_name": "silver_orders"},
                "expectation_suite_name": "orders.warning",
            }
        ],
    }
    path = tmp_path / "checkpoints" / "nightly.json"
    path.write_text(json.dumps(checkpoint))
    _, suite, account = run(path)
    assert 'check "silver_orders" on silver_orders {' in suite
    assert account.splitlines()[-1].startswith("18 rules: ")


@pytest.mark.parametrize("name", ["deequ_checks.scala", "deequ_suggestions.json", "glue.dqdl"])
def test_a_file_is_read_alike_if_its_tool_is_named(name: str) -> None:
    tool = "deequ" if "deequ" in name else "dqdl"
    assert run(HERE / "cases" / name, "--tool", tool) == run(HERE / "cases" / name)


def test_an_unknown_tool_is_refused_with_the_known_ones() -> None:
    code, _, account = run(HERE / "cases" / "glue.dqdl", "--tool", "griffin")
    assert code == 2
    assert "great-expectations" in account


_FILES = {
    "soda.yml": """checks for orders:
  - failed rows:
      name: rule
      fail condition: {sql}
""",
    "soda_query.yml": """checks for orders:
  - failed rows:
      name: rule
      fail query: SELECT * FROM orders WHERE {sql}
""",
    "soda_filter.yml": """filter orders [some]:
  where: {sql}
checks for orders [some]:
  - row_count > 0:
      name: rule
""",
    "soda4.yml": """dataset: shop/public/orders
checks:
  - failed_rows:
      name: rule
      expression: {sql}
""",
    "soda3.yml": """dataset: orders
columns:
  - name: amount
    checks:
      - type: metric_expression
        metric: broken
        expression_sql: COUNT(CASE WHEN {sql} THEN 1 END)
        must_be: 0
""",
    "dbt.yml": """models:
  - name: orders
    tests:
      - dbt_utils.expression_is_true:
          expression: {sql}
""",
    "dbt_where.yml": """models:
  - name: orders
    columns:
      - name: id
        tests:
          - not_null: {{config: {{where: "{sql}"}}}}
""",
    "dbt_check.yml": """models:
  - name: orders
    constraints:
      - {{type: check, expression: "{sql}"}}
""",
    "gx.json": """{{"expectation_suite_name": "s", "expectations": [{{
        "expectation_type": "unexpected_rows_expectation",
        "kwargs": {{"unexpected_rows_query": "SELECT * FROM {{batch}} WHERE {sql}"}}}}]}}""",
}


_NUMBERS = "amount < 0 AND tax IS NOT NULL"
_DAYS = "DATEDIFF('day', a, b) > 1"
_SQL: list[tuple[str, tuple[str | None, ...], tuple[str | None, ...]]] = [
    (_NUMBERS, (None, "postgres", "snowflake", "spark"), ("mysql",)),
    (_DAYS, (), (None, "snowflake", "duckdb")),
    ("status = 'open'", ("postgres", "duckdb", "bigquery", "spark"), (None, "mysql", "tsql")),
    ("id / 2 > 1", ("spark",), (None, "postgres", "tsql")),
    ("code ~ '^a'", (), (None, "postgres", "mysql")),
    ("name || 'a' = 'ab'", (), (None, "mysql", "oracle")),
]


@pytest.mark.parametrize(
    ("name", "sql", "dialects", "refusing"),
    [(name, *case) for name in _FILES for case in (_SQL if name == "soda.yml" else _SQL[:2])],
)
def test_sql_is_taken_over_if_its_database_means_the_same(
    name: str, sql: str, dialects: tuple[str | None, ...], refusing: tuple[str | None, ...]
) -> None:
    source = SourceFile(name, _FILES[name].format(sql=sql))
    for dialect in (*dialects, *refusing):
        suite = suite_of("s", "here", read_rules(source, sql_dialect=dialect)[1])
        (rule,) = suite.rules
        is_translated = rule.outcome is not ImportOutcome.NOT_TRANSLATED
        assert is_translated == (dialect in dialects), (dialect, rule)
        assert is_translated or sql[:4] in rule.reason + rule.rule.shown
        assert is_translated or dialect is not None or "add --sql-dialect with" in rule.reason


def test_double_quotes_mean_what_the_database_says(tmp_path: Path) -> None:
    path = tmp_path / "soda.yml"
    path.write_text(_FILES["soda.yml"].format(sql="'\"Amount\" < 0'"), encoding="utf-8")
    for dialect, is_column in (("pg", True), ("snowflake", True), ("bigquery", False)):
        _, suite, _ = run(path, "--sql-dialect", dialect)
        assert ("each row: Amount >= 0" in suite) is is_column, suite
    code, _, message = run(path, "--sql-dialect", "basic")
    assert code == 2
    assert "unknown SQL dialect 'basic'" in " ".join(message.split())


def test_the_table_of_rules_has_the_arguments_of_every_function_and_nothing_else() -> None:
    functions = databricks_dqx.FUNCTIONS
    assert set(functions) == set(listed_rules("databricks-dqx: arguments"))
    tests = {*dbt_tests.GENERIC, *dbt_tests.ELEMENTARY}
    assert set(listed_rules("dbt: arguments")) <= tests
    table = files("dqx_airflow.importing").joinpath("rules.txt").read_text("utf-8")
    headings = [line for line in table.splitlines() if line[:1] not in ("", "#", " ")]
    assert len(set(headings)) == len(headings)
    assert [heading for heading in headings if not listed_rules(heading)] == []


METRICS = (
    "deequ: metrics",
    "deequ: shares",
    "dqdl: metrics",
    "dqdl: shares",
    "dbt: Elementary",
    "databricks-dqx: aggregates",
    "airflow: checks",
)
PREDICATES = ("databricks-dqx: each value", "deequ: each value", "deequ: each value or NULL")


def test_every_metric_and_predicate_of_the_table_is_dql() -> None:
    """A row needs no case of its own: a mistake in it is found here."""
    claims = {}
    for heading in METRICS:
        for name, columns in listed_rules(heading).items():
            claims[f"{heading}: {name}"] = f"{columns[-1].format('a', 'b')} >= 0"
    for heading in PREDICATES:
        for name, columns in listed_rules(heading).items():
            claims[f"{heading}: {name}"] = f"each row: {columns[-1].format('a')}"
    wrong = {}
    for rule, claim in claims.items():
        suite = f'suite "S" {{ check "C" on t {{ assert {claim} name "n" }} }}'
        if errors := check_source(SourceFile("s.dql", suite)).errors:
            wrong[rule] = errors[0].message
    assert wrong == {}
