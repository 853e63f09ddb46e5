"""`dql explain`, as text and JSON: a suite at each stage, and the codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from dqx_airflow.diagnostics.diagnostic import codes, page
from tests.command_line import Called, dql

DQL = str(Path(sys.executable).parent / "dql")
SUITE = """
import "lib.dql" as lib
suite "S" {
    const MOST = 5%
    macro nulls(column) { assert null_count({column}) / num_rows() < MOST name "{column} nulls" }
    check "C" on orders {
        use nulls(email)
        assert day_over_day(num_rows()) < lib.CHANGE name "stable" tags [volume]
        assert values(country) in values(code, dataset countries) name "known"
    }
    profile "P" { from 2024-02-28 to 2024-03-01 scale tag "volume" by 0.5x }
}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "lib.dql").write_text("export const CHANGE = 35%\n")
    path = tmp_path / "suite.dql"
    path.write_text(SUITE)
    return path


def explain(path: Path | str, *options: str) -> Called:
    return dql("explain", path, *options)


def test_the_plan_names_passes_dates_and_multipliers(suite: Path) -> None:
    found = explain(suite, "--date", "2024-02-29").stdout
    assert "one pass over orders: 2024-02-28 to 2024-02-29 (2 days)" in found
    assert "one pass over countries: all rows" in found
    assert "with country looked up in countries.code" in found
    assert "times 0.5: profiles P" in found
    assert "< 35%" in found


def test_the_plan_is_that_of_a_run_with_the_settings_beside_the_suite(tmp_path: Path) -> None:
    path = tmp_path / "suite.dql"
    path.write_text('suite "S" { check "C" on orders { assert average(a) < 5 name "a" } }')
    without = explain(path, "--date", "2024-11-29").stdout
    assert without.startswith("without orders: ")
    assert "one pass over orders: 2024-11-29" in without
    assert "orders.not_empty" in without
    (tmp_path / "dqx.toml").write_text(
        "[defaults]\nallow_empty = true\ndate = '2024-12-10'\n"
        "[datasets.orders]\npath = 'o.parquet'\n"
    )
    planned = explain(path).stdout
    assert planned.startswith("suite S\ndate  2024-12-10\n")
    assert "one pass over orders: all rows" in planned
    assert "not_empty" not in planned


def test_the_options_of_a_run_are_those_of_its_plan(suite: Path) -> None:
    data = "orders=o.csv?format=csv&schema=email string,country string,d date&date_column=d"
    call = ["--dataset", data, "--date", "2024-11-28..2024-11-29", "--allow-empty"]
    found = explain(suite, *call).stdout
    assert found.startswith("without countries: ")
    assert "date  2024-11-28 to 2024-11-29 (2 days)\n" in found
    assert "one pass over orders: 2024-11-27 to 2024-11-29 (3 days)" in found
    assert "orders.well_formed" in found
    assert "not_empty" not in found
    assert found.count("assertions of 2024-11-2") == 2
    given = json.loads(explain(suite, *call, "--date", "today", "--format", "json").stdout)
    assert given["date"] == str(date.today())
    # What a run refuses has no plan.
    undated = explain(suite, "--dataset", "orders=o.csv?format=csv")
    assert (undated.returncode, "E111" in undated.stderr) == (2, True)
    assert explain(suite, "--dataset", "orders=o.csv?formt=csv").returncode == 2
    assert explain(suite, "--stage", "tree", "--allow-empty").returncode == 2


def test_the_plan_of_a_contract_is_that_of_its_suite(tmp_path: Path) -> None:
    path = tmp_path / "orders.yaml"
    path.write_text(
        "dataContractSpecification: 1.1.0\nid: orders\ninfo: {title: Orders, version: 1.0.0}\n"
        "models: {orders: {type: table, fields: {id: {type: integer, required: true}}}}\n"
    )
    found = explain(path, "--dataset", "orders=orders.parquet")
    assert found.returncode == 0, found.stderr
    assert "one pass over orders: all rows" in found.stdout
    assert "P1 orders.id.required" in found.stdout


def test_the_plan_shows_what_each_pass_reads_and_why(tmp_path: Path) -> None:
    path = tmp_path / "suite.dql"
    path.write_text("""
        suite "S" { check "C" on orders {
            assert day_over_day(null_count(email)) < 35% name "stable"
            assert unique(id, line) name "key"
            assert unique_count(status) < 5 name "states"
            assert each row: lower(name) matches "^x[a-c]$" and country in values(code, dataset c)
                name "row"
            assert sql("max(price)") > 1 name "own"
            assert query("SELECT count(*) FROM orders") > 1 name "select"
        } }
    """)
    passes = explain(path, "--date", "2024-11-29").stdout.partition("assertions")[0]
    assert (
        passes
        == """\
without orders, c: the datasets of checks are assumed to have dates, all others to have none

suite S
date  2024-11-29

orders: its size is not known, a large dataset is assumed; with up to 250,000 rows, metrics share \
a pass
one query: SELECT count(*) FROM orders
one pass over orders: 2024-11-28 to 2024-11-29 (2 days)
    why: each row is read once, for all metrics of up to 100 columns
    days before 2024-11-29: for stable
    after an append: only the new files, but all files for 1 of these
    columns: country, email, name, those in the Spark SQL
        count(1)
        count(`email`)
        count(CASE WHEN NOT (((lower(`name`) RLIKE '^x[abc]\\\\z') AND (CASE WHEN `country` IS NOT \
NULL THEN `country in c.code` IS NOT NULL END))) THEN 1 END)
        max(price)
    with country looked up in c.code
one pass over orders: 2024-11-29
    why: keys need a shuffle: one pass counts the hashes of all keys, and repeated hashes are \
counted exactly
    after an append: all files
    columns: id, line
        count(DISTINCT struct(`id`, `line`))
one pass over orders: 2024-11-29
    why: distinct values need a shuffle of their own
    after an append: all files
    columns: status
        count(DISTINCT `status`)

c: its size is not known, a large dataset is assumed; with up to 250,000 rows, metrics share a pass
one pass over c: all rows
    why: each row is read once, for all metrics of up to 100 columns
    after an append: only the new files
    columns: none
        count(1)

"""
    )


def test_the_json_of_a_plan_has_the_passes_of_its_text(tmp_path: Path) -> None:
    path = tmp_path / "suite.dql"
    path.write_text("""
        suite "S" { check "C" on orders {
            assert day_over_day(null_count(email)) < 35% name "stable"
            assert each row: price between 1 and 5 and country in values(code, dataset c) name "row"
            assert each row: price between 2 and 5 name "narrow"
            assert each row: price between 3 and 5 name "narrower"
            assert maximum(price) < 100 name "price" for each (store)
            assert query("SELECT count(*) FROM orders") > 1 name "select"
        } }
    """)
    text = explain(path, "--date", "2024-11-29").stdout
    plan = json.loads(explain(path, "--date", "2024-11-29", "--format", "json").stdout)
    orders, countries = plan["datasets"]
    assert (orders["dataset"], orders["size_known"], countries["dataset"]) == ("orders", False, "c")
    passes = [*orders["passes"], *countries["passes"]]
    announced = [line for line in text.splitlines() if line.startswith(("one ", "if needed"))]
    assert [one["title"] for one in passes] == announced
    for one in passes:
        expected = [f"        {sql}" for sql in one["computes"] if one["kind"] != "query"]
        assert "\n".join(expected) in text
    kinds = {one["kind"]: one for one in passes if one["dates"]}
    assert kinds["rows"]["groups"] == ["store"]
    both = next(one for one in passes if len(one["dates"]) == 2)
    assert (both["dates"], both["needed_before"]) == (["2024-11-28", "2024-11-29"], ["stable"])
    assert [one["late"] for one in passes].count(True) == text.count("if needed")
    looked_up = {"dataset": "orders", "column": "country"}
    looked_up |= {"reference": "c", "reference_column": "code"}
    assert looked_up in [lookup for one in passes for lookup in one["lookups"]]


def test_each_json_plan_of_a_range_has_the_passes_of_all_dates(tmp_path: Path) -> None:
    path = tmp_path / "suite.dql"
    path.write_text('suite "S" { check "C" on orders { assert average(a) < 5 name "a" } }')
    both = explain(path, "--date", "2024-11-28..2024-11-29", "--format", "json").stdout
    plans = json.loads(both)
    (first,), (second,) = (plan["datasets"] for plan in plans)
    assert first == second
    assert [one["dates"] for one in first["passes"]] == [["2024-11-28", "2024-11-29"]]
    alone = explain(path, "--date", "2024-11-28..2024-11-28", "--format", "json").stdout
    assert [plan["date"] for plan in json.loads(alone)] == ["2024-11-28"]
    cost = ("--cost", "--date", "2024-11-28..2024-11-29", "--format", "json")
    assert [one["date"] for one in json.loads(explain(path, *cost).stdout)] == [
        "2024-11-28",
        "2024-11-29",
    ]


def test_the_plan_shows_which_passes_are_conditional(tmp_path: Path) -> None:
    path = tmp_path / "ranges.dql"
    rows = "\n".join(f'assert each row: price between {n} and 100 name "a{n}"' for n in range(3))
    path.write_text(f'suite "S" {{ check "C" on orders {{ {rows} }} }}')
    passes = explain(path, "--date", "2024-11-29").stdout.partition("assertions")[0]
    assert "        CAST(min(`price`) AS STRING)\n        CAST(max(`price`) AS STRING)" in passes
    assert passes.count("if needed, one pass over orders: 2024-11-29") == 1
    assert passes.index("if needed") < passes.index("`price` BETWEEN 2 AND 100")


@pytest.mark.more
def test_the_plan_of_a_wide_suite_shows_its_number_of_passes(tmp_path: Path) -> None:
    path = tmp_path / "wide.dql"
    claims = "\n".join(f'assert maximum(c{n}) < 5 name "a{n}"' for n in range(600))
    path.write_text(f'suite "S" {{ check "C" on orders {{ {claims} }} }}')
    assert explain(path).stdout.count("one pass over orders: ") == 6
    claims = "\n".join(f'assert sql("max(c{n})") < 5 name "a{n}"' for n in range(150))
    path.write_text(f'suite "S" {{ check "C" on orders {{ {claims} }} }}')
    assert explain(path).stdout.count("one pass over orders: ") == 2


def test_the_plan_of_a_selection_has_its_passes_alone(suite: Path) -> None:
    whole, some = dql("explain", str(suite)), dql("explain", str(suite), "--tag", "volume")
    assert "countries" in whole.stdout
    assert "countries" not in some.stdout
    assert "email" not in some.stdout
    assert "stable" in some.stdout
    wrong = dql("explain", str(suite), "--only", "stabel")
    assert (wrong.returncode, "did you mean 'stable'?" in wrong.stderr) == (2, True)
    assert dql("explain", str(suite), "--only", "stable", "--stage", "tree").returncode == 2


def test_the_expanded_suite_is_plain_and_sound(suite: Path, tmp_path: Path) -> None:
    printed = explain(suite, "--stage", "suite").stdout
    assert "macro" not in printed
    assert "import" not in printed
    assert "assert null_count(email) / num_rows() < MOST" in printed
    again = tmp_path / "alone.dql"
    again.write_text(printed)
    (tmp_path / "lib.dql").unlink()
    assert explain(again, "--stage", "suite").stdout == printed


@pytest.mark.parametrize("stage", ["tokens", "tree", "suite", "plan"])
def test_every_stage_has_a_json_form(suite: Path, stage: str) -> None:
    found = explain(suite, "--stage", stage, "--format", "json")
    assert json.loads(found.stdout)


def test_tokens_and_tree_are_readable(suite: Path) -> None:
    assert "2:1\tIMPORT\timport" in explain(suite, "--stage", "tokens").stdout
    assert "Macro is_variadic=False" in explain(suite, "--stage", "tree").stdout


def test_a_tree_shows_what_nodes_say_and_in_json_last_where_they_are(tmp_path: Path) -> None:
    path = tmp_path / "costs.dql"
    path.write_text(
        'suite "S" { check "C" on t { @cost(false_positive=1) assert num_rows() > 0 name "n" } }'
    )
    outline = explain(path, "--stage", "tree").stdout
    assert "Name text=false_positive" in outline.replace("'", "")
    assert "Span(" not in outline
    tree = json.loads(explain(path, "--stage", "tree", "--format", "json").stdout)
    first, *_, last = tree["suites"][0]
    assert (first, last) == ("name", "span")


def test_a_suite_with_errors_exits_2_and_shows_them(tmp_path: Path) -> None:
    path = tmp_path / "bad.dql"
    path.write_text('suite "S" { check "C" on t { assert avg(a) > 0 } }')
    found = explain(path)
    assert found.returncode == 2
    assert "did you mean 'average'?" in found.stderr
    assert explain(tmp_path / "nowhere.dql").returncode == 2


@pytest.mark.parametrize("code", ["E001", "w001"])
def test_a_code_prints_its_page(code: str) -> None:
    found = explain(code)
    assert (found.returncode, found.stdout) == (0, page(code.upper()))


def test_a_terminal_gets_the_page_drawn() -> None:
    ours, theirs = os.openpty()
    with subprocess.Popen([DQL, "explain", "E001"], stdout=theirs, env={"TERM": "xterm"}):
        os.close(theirs)
        drawn = b"".join(_until_hung_up(ours)).decode()
    os.close(ours)
    assert "E001: unknown metric" in drawn
    assert "\033[" in drawn
    assert "```" not in drawn


def _until_hung_up(terminal: int) -> Iterator[bytes]:
    """What a terminal shows; at the end Linux raises an error where macOS gives no more bytes."""
    with suppress(OSError):
        yield from iter(lambda: os.read(terminal, 4096), b"")


def test_a_code_has_a_json_form() -> None:
    found = json.loads(explain("E001", "--format", "json").stdout)
    assert found == {"code": "E001", "title": "unknown metric", "page": page("E001")}


def test_an_unknown_code_exits_2_and_names_the_nearest() -> None:
    found = explain("E100")
    assert (found.returncode, found.stdout) == (2, "")
    message = re.fullmatch(
        r"error: unknown code E100\n  help: did you mean '(E\d{3})'\?\n", found.stderr
    )
    assert message
    assert message[1] in codes()


def test_a_suite_may_have_the_name_of_a_code(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(suite.parent)
    suite.rename("E001")
    assert "one pass over orders" in explain("E001").stdout


def test_a_dataset_that_is_there_is_planned_by_its_size(here: Path) -> None:
    write_deltalake("orders", pa.table({"id": [1, 2], "amount": [1.5, 2.5]}))
    rules = "assert unique(id) name 'k'\nassert unique_count(amount) > 0 name 'u'"
    rules += "\nassert average(amount) > 0 name 'a'"
    Path("s.dql").write_text(f'suite "S" {{ check "C" on orders {{ {rules} }} }}'.replace("'", '"'))
    found = explain("s.dql", "--dataset", "orders=orders", "--date", "2024-11-29").stdout
    assert found.count("one pass over") == 1
    assert "few rows: all metrics share a pass" in found
    assert "no pass over orders: its log has count(1)" in found
    assert "size is not known" not in found
