"""`dql init` over a folder of tables: a suite for each, one dqx.toml and one DAG."""

from __future__ import annotations

import ast
import json
import random
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from dqx_airflow.datasets.dqx_toml import Settings, read_settings
from dqx_airflow.dql.check import check_source
from dqx_airflow.plan.dataset_needs import check_datasets
from dqx_airflow.values import SourceFile
from tests.command_line import dql
from tests.small_lakes import DAYS, ORDERS_A_DAY, TODAY, orders, write_parquet, write_small_lake


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a lake, and what is drafted for it."""
    home = tmp_path_factory.mktemp("home")
    write_small_lake(home / "lake")
    done = dql("init", home / "gates", "--dataset", home / "lake", "--format", "json")
    assert done.returncode == 0, done.output
    (home / "report.json").write_text(done.stdout)
    return home


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    """A copy of it, with the same paths in its settings, to change."""
    shutil.copytree(made, tmp_path / "home")
    for file in ("gates/dqx.toml", *(f"gates/.dql_init/{name}.json" for name in NAMES)):
        text = (tmp_path / "home" / file).read_text()
        (tmp_path / "home" / file).write_text(text.replace(str(made), str(tmp_path / "home")))
    return tmp_path / "home"


NAMES = ("countries", "customers", "orders", "visits")


def init(home: Path, *more: str) -> str:
    done = dql("init", home / "gates", "--dataset", home / "lake", *more)
    assert done.returncode == 0, done.output
    return done.output


def row_of(rows: list[dict[str, Any]], place: str) -> dict[str, Any]:
    (row,) = [row for row in rows if row["location"] == place]
    return row


def files_in(folder: Path) -> list[str]:
    """The files of a folder, without the drafts that are kept."""
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(str(file) for file in files if file.parts[0] != ".dql_init")


def suites_of(settings: Settings) -> dict[str, str]:
    return {gate.name: Path(settings.suite_of(gate)).read_text() for gate in settings.gates}


def test_each_table_has_a_suite_and_a_gate_and_one_dag_makes_them_all(made: Path) -> None:
    assert files_in(made / "gates") == [
        "dqx.toml",
        "lake_gates.py",
        "suites/ref/countries.dql",
        "suites/sales/customers.dql",
        "suites/sales/orders.dql",
        "suites/web/visits.dql",
    ]
    settings = read_settings(made / "gates" / "dqx.toml")
    assert settings.problems == ()
    assert [gate.name for gate in settings.gates] == [*NAMES]
    assert {gate.name: gate.group for gate in settings.gates}["orders"] == "sales"
    refs = settings.refs
    for gate in settings.gates:
        text = Path(settings.suite_of(gate)).read_text()
        checked = check_source(SourceFile(gate.suite, text), needs_suite=True)
        assert checked.diagnostics == ()
        assert checked.suite is not None
        assert check_datasets(checked.suite, [refs[name] for name in gate.datasets]) == ()
    dag = (made / "gates" / "lake_gates.py").read_text()
    ast.parse(dag)
    assert len(dag.splitlines()) <= 25


def test_keys_sets_and_references_are_claimed_and_the_rest_is_watched(made: Path) -> None:
    suites = suites_of(read_settings(made / "gates" / "dqx.toml"))
    assert "duplicate_count([order_id]) == 0" in suites["orders"]
    assert 'status in ["new", "paid"]' in suites["orders"]
    assert "null_count(customer_id) == 0" in suites["orders"]
    assert (
        "values(customer_id, dataset orders) in values(id, dataset customers)" in suites["orders"]
    )
    assert "watch orders" in suites["orders"]
    # A visit may be of an order of an earlier day.
    assert (
        "values(order_id, dataset visits) in values(order_id, dataset orders_all)"
        in (suites["visits"])
    )
    assert "in values(code, dataset countries)" in suites["customers"]
    # A table without days cannot be watched.
    assert "watch" not in suites["customers"]


def test_nothing_blocks_before_a_person_says_so(made: Path) -> None:
    settings = read_settings(made / "gates" / "dqx.toml")
    for text in suites_of(settings).values():
        assert text.count("@experimental") - 1 == text.count("assert ")  # one in the comment
    assert settings.defaults.allow_empty


def test_a_gate_that_is_added_to_settings_of_yours_does_not_block_on_an_empty_day(
    home: Path,
) -> None:
    shutil.rmtree(home / "gates")
    (home / "gates").mkdir()
    mine = '[defaults]\nfail_on = "P0"\n'
    (home / "gates" / "dqx.toml").write_text(mine)
    init(home, "--only", "orders")
    settings = read_settings(home / "gates" / "dqx.toml")
    assert settings.text.startswith(mine)
    assert [gate.allow_empty for gate in settings.gates] == [True]


def test_values_of_personal_columns_are_masked_and_not_written(made: Path) -> None:
    settings = read_settings(made / "gates" / "dqx.toml")
    assert settings.refs["customers"].masked == ("email",)
    for file in (made / "gates").rglob("*"):
        assert file.is_dir() or "example.org" not in file.read_text()


def test_the_report_has_a_row_for_each_table_also_for_those_that_cannot_be_read(made: Path) -> None:
    rows = json.loads((made / "report.json").read_text())["tables"]
    assert len(rows) == 6
    row = row_of(rows, "sales/orders")
    assert row["row_count"] == len(DAYS) * ORDERS_A_DAY
    assert (row["days"], row["newest"], row["key"]) == (20, str(DAYS[-1]), ["order_id"])
    assert row["references"] == ["customer_id -> customers.id"]
    assert row["wrong"] == []
    assert 0 <= row["warnings_per_month"] <= 30
    (fault,) = row_of(rows, "web/visits")["wrong"]
    assert fault == "2 rows have order_id values that are not in orders"
    assert "cannot be read as parquet" in row_of(rows, "ref/broken.parquet")["problem"]
    assert "do not name their column" in row_of(rows, "old")["problem"]


def test_what_may_block_is_a_file_of_commands_that_someone_runs(home: Path) -> None:
    shutil.rmtree(home / "gates")
    output = init(home, "--calls-per-month", "3")
    script = (home / "gates" / "blocking.sh").read_text()
    calls = [shlex.split(line) for line in script.splitlines() if line.startswith("enforce ")]
    assert f"{len(calls)} of " in output
    assert "about " in output
    suite = home / "gates" / "suites" / "sales" / "orders.dql"
    before = suite.read_text()
    own = [call for call in calls if "orders.key" in call]
    assert len(own) == 1  # nothing was enforced yet
    done = dql("tune", *own[0], "--author", "ana", cwd=home / "gates")
    assert done.returncode == 0, done.output
    assert suite.read_text().count("@experimental") == before.count("@experimental") - 1
    # Once more: the file is of the first call, and says so.
    assert "rm blocking.sh" in init(home, "--calls-per-month", "9")
    (home / "gates" / "blocking.sh").unlink()
    # What blocks already, and what someone deleted, is not in a new one.
    visits = home / "gates" / "suites" / "web" / "visits.dql"
    visits.write_text(visits.read_text().replace('name "visits.', 'name "our.'))
    init(home, "--calls-per-month", "9")
    script = (home / "gates" / "blocking.sh").read_text()
    assert "orders.customer_id.filled" in script
    assert "orders.key" not in script
    assert "visits.key" not in script


@pytest.mark.parametrize("name", ["it's $(touch hacked)", "-x; `touch hacked`", 'a\\b "c"'])
def test_no_name_is_read_by_the_shell(name: str, tmp_path: Path) -> None:
    numbers = list(range(20 * 30))
    on = [day for day in DAYS for _ in range(30)]
    columns: dict[str, object] = {"id": numbers, name: ["v"] * len(on), "ds": on}
    write_parquet(tmp_path / "lake" / name / "t.parquet", columns)
    init(tmp_path, "--calls-per-month", "9")
    # A shell in which dql prints its arguments.
    script = 'dql() { shift 2; printf "%s\\n" "$1" "$3"; }\n'
    script += (tmp_path / "gates" / "blocking.sh").read_text()
    done = subprocess.run(
        ["sh"], check=False, input=script, text=True, capture_output=True, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")
    printed = done.stdout.splitlines()
    assert {*printed[::2]} == {f"suites/{name}/t.dql"}
    assert f"t.{name}.filled" in printed[1::2]
    assert not (tmp_path / "hacked").exists()


def test_a_later_call_adds_a_table_and_keeps_what_a_person_wrote(home: Path) -> None:
    toml, suite = home / "gates" / "dqx.toml", home / "gates" / "suites" / "sales" / "orders.dql"
    toml.write_text(toml.read_text().replace('group = "sales"', 'group = "shop"  # ours'))
    suite.write_text(suite.read_text().replace("watch orders", 'watch orders holidays "US"'))
    before, mine = toml.read_text(), suite.read_text()
    write_parquet(home / "lake" / "hr" / "orders.parquet", {"id": [1, 2], "what": ["a", "b"]})
    shutil.rmtree(home / "lake" / "web")
    output = init(home)
    assert suite.read_text() == mine
    assert toml.read_text().startswith(before)
    settings = read_settings(toml)
    assert [gate.name for gate in settings.gates] == [*NAMES, "hr_orders"]
    assert (home / "gates" / "suites" / "hr" / "hr_orders.dql").exists()
    assert "gone: the table is gone" in output


def test_a_run_that_was_interrupted_continues_and_a_changed_table_is_read_again(home: Path) -> None:
    kept = home / "gates" / ".dql_init"
    times = {file.name: file.stat().st_mtime_ns for file in kept.iterdir()}
    (kept / "visits.json").unlink()
    (kept / "countries.json").write_text("{")
    more = orders(random.Random(2), [TODAY], first=len(DAYS) * ORDERS_A_DAY)
    more = more.append_column("channel", [["web"] * ORDERS_A_DAY])
    write_deltalake(str(home / "lake/sales/orders"), more, mode="append", schema_mode="merge")
    output = init(home)
    changed = {
        file.name for file in kept.iterdir() if times.get(file.name) != file.stat().st_mtime_ns
    }
    assert changed == {"visits.json", "countries.json", "orders.json"}
    assert "sales/orders has new columns, which are watched: channel" in output


def test_only_and_exclude_choose_tables_by_path_or_name(home: Path) -> None:
    shutil.rmtree(home / "gates")
    init(home, "--only", "sales/*, visits", "--exclude", "*/customers,*/countries")
    settings = read_settings(home / "gates" / "dqx.toml")
    assert [gate.name for gate in settings.gates] == ["orders", "visits"]
    shutil.rmtree(home / "gates")
    init(home, "--only", "sales/*", "--only", "visits", "--exclude", "*/customers")
    settings = read_settings(home / "gates" / "dqx.toml")
    assert [gate.name for gate in settings.gates] == ["orders", "visits"]
    done = dql("init", home / "gates", "--dataset", home / "lake", "--only", "orders,")
    assert (done.returncode, "a pattern without characters" in done.output) == (2, True)


def test_patterns_that_match_no_table_are_refused_all_at_once(home: Path) -> None:
    given = "--only", "orders,custmers,saels/*", "--exclude", "*_tmp, web/visit"
    done = dql("init", home / "new", "--dataset", home / "lake", *given)
    assert done.returncode == 2
    assert [line for line in done.output.splitlines() if "matches" in line] == [
        "error: no table matches --only='custmers': did you mean 'customers'?",
        "no table matches --only='saels/*': did you mean 'sales/*'?",
        "no table matches --exclude='web/visit': did you mean 'web/visits'?",
    ]
    assert not (home / "new").exists()


def test_a_location_without_a_table_is_a_row_of_the_report(home: Path) -> None:
    (home / "empty").mkdir()
    given = "--dataset", home / "empty", "--dataset", home / "lake"
    done = dql("init", home / "new", *given, "--format", "json")
    assert done.returncode == 0
    rows = {row["location"]: row for row in json.loads(done.stdout)["tables"]}
    assert rows[str(home / "empty")]["problem"] == "there is no table in it"
    (home / "void").mkdir()
    done = dql("init", home / "new", "--dataset", home / "empty", "--dataset", home / "void")
    assert (done.returncode, "there is no table in" in done.output) == (4, True)


def test_a_table_with_another_one_in_its_folder_is_a_row_with_the_reason(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    orders_rows = {"id": list(range(30)), "kind": ["a", "b"] * 15}
    for place in ("orders/part-0", "orders/archive/part-0", "orders/archive/day=1/part-0"):
        write_parquet(lake / f"{place}.parquet", orders_rows)
    write_deltalake(str(lake / "orders" / "log"), pa.table(orders_rows))
    (lake / "visits" / "old").mkdir(parents=True)
    for place in ("visits/part-0", "visits/part-1", "visits/old/part-0"):
        (lake / f"{place}.csv").write_text(f"id\n{place[-1]}\n")
    rows = report_of(tmp_path)
    refused = "a gate refuses it: its folder {} has files, and is not a partition"
    assert rows["orders"]["problem"] == refused.format("archive")
    assert rows["visits"]["problem"] == refused.format("old")
    assert (rows["orders/log"]["row_count"], rows["orders/log"]["problem"]) == (30, "")


def test_columns_that_differ_only_in_case_are_said(tmp_path: Path) -> None:
    write_parquet(tmp_path / "lake" / "pair.parquet", {"a": [1, 2], "A": [1, 2]})
    write_parquet(tmp_path / "lake" / "other.parquet", {"id": [1]})
    said = report_of(tmp_path)["pair.parquet"]["problem"]
    assert said == "the columns a and A differ only in case: rename one"


def test_rows_without_a_day_are_said(tmp_path: Path) -> None:
    for day in [*map(str, DAYS), "__HIVE_DEFAULT_PARTITION__"]:
        place = tmp_path / "lake" / "visits" / f"ds={day}" / "part-0.parquet"
        write_parquet(place, {"id": [1, 2, 3]})
    write_parquet(tmp_path / "lake" / "other.parquet", {"id": [1]})
    assert (
        "3 rows have no date in ds, so no gate sees them" in report_of(tmp_path)["visits"]["wrong"]
    )


def report_of(home: Path, *more: str) -> dict[str, dict[str, Any]]:
    """The rows of the report, by place."""
    done = dql("init", home / "gates", "--dataset", home / "lake", *more, "--format", "json")
    assert done.returncode == 0, done.output
    return {row["location"]: row for row in json.loads(done.stdout)["tables"]}


def settings_in(home: Path) -> Settings:
    settings = read_settings(home / "gates" / "dqx.toml")
    assert settings.problems == ()
    return settings


def test_a_table_with_the_name_of_a_dataset_of_all_days_has_a_gate_of_its_own(
    tmp_path: Path,
) -> None:
    lake = tmp_path / "lake"
    bills = list(range(60))
    on = [day for day in DAYS[:6] for _ in range(10)]
    write_parquet(lake / "bills.parquet", {"bill_id": bills, "day": on})
    init(tmp_path)
    # The first reference to bills is of a table that comes later.
    write_parquet(lake / "bills_all.parquet", {"number": bills})
    write_parquet(lake / "lines.parquet", {"line_id": bills, "bill_id": bills})
    init(tmp_path)
    settings = settings_in(tmp_path)
    assert {gate.name: gate.datasets for gate in settings.gates} == {
        "bills": ("bills",),
        "bills_all": ("bills_all",),
        "lines": ("lines", "bills_all_2"),
    }
    assert settings.refs["bills_all_2"].path == str(lake / "bills.parquet")
    assert settings.refs["bills_all_2"].date_column is None
    before = settings.text
    init(tmp_path)
    assert settings_in(tmp_path).text == before


@pytest.mark.parametrize(
    "place", ["smile😀", 'it\'s "x"', "back\\slash", 'a"""b', "new\nline", "del\x7f"]
)
def test_a_path_of_any_characters_is_written_as_it_is(place: str, tmp_path: Path) -> None:
    path = tmp_path / "lake" / place / "t.parquet"
    write_parquet(path, {"id": [1, 2, 3]})
    init(tmp_path)
    settings = settings_in(tmp_path)
    assert settings.refs["t"].path == str(path)
    (gate,) = settings.gates
    text = Path(settings.suite_of(gate)).read_text()
    assert check_source(SourceFile(gate.suite, text), needs_suite=True).diagnostics == ()
    ast.parse((tmp_path / "gates" / "lake_gates.py").read_text())


def test_a_table_that_no_suite_can_be_written_about_is_a_row_of_the_report(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write_parquet(lake / "good.parquet", {"id": [1, 2]})
    write_parquet(lake / "line.parquet", {"a\nb": [1, 2]})
    (lake / "unnamed.csv").write_text(",a\n0,1\n")
    (lake / "twice.csv").write_text("a,a\n0,1\n")
    (lake / "semicolon.csv").write_text("a;b\n0;1\n")
    (lake / "old.orc").write_bytes(b"ORC")
    with open(f"{lake}/latin\udcff.csv", "w") as file:
        file.write("a,b\n1,2\n")
    (tmp_path / "elsewhere").mkdir()
    (lake / "link").symlink_to(tmp_path / "elsewhere")
    (lake / "again.parquet").symlink_to(lake / "good.parquet")
    (lake / "loop").symlink_to(lake)
    problems = {place: row["problem"] for place, row in report_of(tmp_path).items()}
    assert problems == {
        "good.parquet": "",
        "line.parquet": "the name of column 1 has a line break",
        "unnamed.csv": "column 1 has no name",
        "twice.csv": f"{lake}/twice.csv has several columns named 'a'",
        "semicolon.csv": 'one column, with ";": write sep = ";" below [reader.csv]',
        "old.orc": f"{lake}/old.orc has the format orc",
        "latin\\udcff.csv": "its path is not UTF-8",
        "link": f"a link to a folder: draft it with --dataset {tmp_path}/elsewhere",
    }
    (tmp_path / "gates" / "dqx.toml").open("a").write('\n[reader.csv]\nsep = ";"\n')
    assert report_of(tmp_path)["semicolon.csv"]["problem"] == ""
    assert settings_in(tmp_path).refs["semicolon"].schema == "a bigint, b bigint"


@pytest.mark.parametrize(
    ("text", "is_doubled"),
    [
        ('id,note\n1,"say ""hi"""\n2,plain\n', True),
        ('id,"the ""note"""\n1,a\n2,b\n', True),
        ('id,note\n1,"a ""b"", c"\n2,"C:\\x"\n', True),
        ('id,note\n1,"say \\"hi\\""\n2,plain\n', False),
        ('id,note\n1,""\n2,"plain"\n', False),
        ("id,note\n1,C:\\x\n2,plain\n", False),
    ],
)
def test_a_gate_reads_doubled_quotes_of_csv_as_its_draft_does(
    text: str, is_doubled: bool, tmp_path: Path
) -> None:
    (tmp_path / "lake").mkdir()
    for name in ("notes", "others"):
        (tmp_path / "lake" / f"{name}.csv").write_text(text)
    init(tmp_path)
    options = settings_in(tmp_path).refs["notes"].options
    assert options == ((("escape", '"'),) if is_doubled else ())


def test_a_column_of_nothing_but_null_is_drafted(tmp_path: Path) -> None:
    days = [day for day in DAYS for _ in range(30)]
    ids = list(range(len(days)))
    write_parquet(
        tmp_path / "lake" / "typed.parquet", {"id": ids, "n": pa.nulls(len(ids)), "ds": days}
    )
    write_parquet(tmp_path / "lake" / "whole.parquet", {"id": ids, "n": pa.nulls(len(ids))})
    lines = "".join(f'{{"id": {number}, "n": null}}\n' for number in range(30))
    (tmp_path / "lake" / "lines.json").write_text(lines)
    assert {row["problem"] for row in report_of(tmp_path).values()} == {""}
    for name, suite in suites_of(settings_in(tmp_path)).items():
        assert f"{name}: n is always NULL" in suite
        assert "null_count(n)" not in suite


def test_a_table_without_rows_has_a_gate_that_warns_until_some_come(tmp_path: Path) -> None:
    write_parquet(tmp_path / "lake" / "orders.parquet", {"id": pa.array([], pa.int64())})
    assert report_of(tmp_path)["orders.parquet"]["wrong"] == ["no rows"]
    (text,) = suites_of(settings_in(tmp_path)).values()
    assert text.count("@experimental") == 2
    assert "assert num_rows() > 0" in text


def test_a_table_with_a_key_of_two_columns_and_many_days_is_drafted(tmp_path: Path) -> None:
    for day in DAYS:
        numbers = {"line_id": list(range(10))}
        write_parquet(tmp_path / "lake" / "lines" / f"day={day}" / "part-0.parquet", numbers)
    row = report_of(tmp_path)["lines"]
    assert (row["key"], row["problem"]) == (["line_id", "day"], "")
    assert row["warnings_per_month"] == 0


def test_what_settings_mask_is_in_no_suite_no_draft_and_no_report(tmp_path: Path) -> None:
    lake, gates = tmp_path / "lake", tmp_path / "gates"
    people = {"id": list(range(40)), "vorname": ["Sabine", "Ursula"] * 20}
    write_parquet(lake / "people.parquet", people)
    write_parquet(lake / "staff.parquet", people)
    gates.mkdir()
    masked = 'masked = ["vorname"]\n'
    mine = (
        f'[datasets.people]\npath = "{lake}/people.parquet"\nformat = "parquet"\n{masked}'
        f'[datasets.s]\npath = "{lake}"\nformat = "parquet"\n{masked}'
    )
    (gates / "dqx.toml").write_text(mine)
    output = init(tmp_path)
    settings = settings_in(tmp_path)
    assert settings.text.startswith(mine)
    assert [(gate.name, gate.datasets) for gate in settings.gates] == [
        ("people", ("people",)),
        ("staff", ("staff",)),
    ]
    assert settings.refs["staff"].masked == ("vorname",)
    written = [file.read_text() for file in gates.rglob("*") if file.is_file()]
    assert "Sabine" not in "".join([output, *written])


def test_a_row_that_cannot_be_parsed_is_not_in_the_report(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    write_parquet(tmp_path / "lake" / "good.parquet", {"id": [1, 2]})
    (tmp_path / "lake" / "people.csv").write_text("id,mail,x\n1,ann@example.org\n")
    problem = report_of(tmp_path)["people.csv"]["problem"]
    assert problem.endswith("Expected 3 columns, got 2")


def test_a_table_that_has_stopped_is_found_although_its_files_are_as_before(home: Path) -> None:
    kept = home / "gates" / ".dql_init" / "orders.json"
    draft = json.loads(kept.read_text())
    assert draft["on"] == str(TODAY)
    kept.write_text(json.dumps({**draft, "on": str(DAYS[-1])}))
    init(home)
    assert json.loads(kept.read_text())["on"] == str(TODAY)


def test_a_gate_that_someone_removed_stays_removed(home: Path) -> None:
    toml = home / "gates" / "dqx.toml"
    text = toml.read_text()
    start, end = text.index("[gates.customers]"), text.index("[datasets.orders]")
    toml.write_bytes((text[:start] + text[end:]).replace("\n", "\r\n").encode())
    before = toml.read_bytes()
    write_parquet(home / "lake" / "new.parquet", {"id": [1, 2]})
    init(home)
    assert toml.read_bytes().startswith(before)
    assert b"\n" not in toml.read_bytes().replace(b"\r\n", b"")
    assert [gate.name for gate in settings_in(home).gates] == [
        *(name for name in NAMES if name != "customers"),
        "new",
    ]


def test_a_suite_that_someone_moved_is_not_drafted_again(home: Path) -> None:
    suites, toml = home / "gates" / "suites", home / "gates" / "dqx.toml"
    (suites / "sales" / "orders.dql").rename(suites / "shop.dql")
    toml.write_text(toml.read_text().replace('"suites/sales/orders.dql"', '"suites/shop.dql"'))
    before = files_in(home / "gates")
    init(home)
    assert files_in(home / "gates") == before


def test_settings_to_which_no_table_can_be_added_are_refused_and_unchanged(tmp_path: Path) -> None:
    write_parquet(tmp_path / "lake" / "t.parquet", {"id": [1, 2]})
    (tmp_path / "gates").mkdir()
    toml = tmp_path / "gates" / "dqx.toml"
    toml.write_text('datasets = {x = "x"}\n')
    done = dql("init", tmp_path / "gates", "--dataset", tmp_path / "lake")
    assert done.returncode == 2
    assert "no table can be added to the end of" in done.output
    assert toml.read_text() == 'datasets = {x = "x"}\n'
    assert files_in(tmp_path / "gates") == ["dqx.toml"]


def test_options_for_a_folder_of_tables_are_refused_for_a_single_table(made: Path) -> None:
    one = made / "lake" / "sales" / "orders"
    done = dql("init", made / "none", "--dataset", one, "--only", "orders")
    assert done.returncode == 2
    assert "is not a folder of tables" in done.output


def test_the_key_that_a_few_rows_break_is_claimed_and_not_a_pair_that_happens_to_fit(
    tmp_path: Path,
) -> None:
    numbers = [*range(1, 200), 199]
    # Together with the number of the line, anything is a key.
    lines = [f"L{number:03}" for number in range(100)] * 2
    columns: dict[str, object] = {"order_id": numbers, "line": lines, "ref_no": numbers[::-1]}
    write_parquet(tmp_path / "lake" / "orders.parquet", columns)
    lost = [None, *range(2, 151)]
    names = [f"page {number}" for number in range(150)]
    write_parquet(tmp_path / "lake" / "pages.parquet", {"page_id": lost, "name": names})
    done = dql("init", tmp_path / "gates", "--dataset", tmp_path / "lake", "--format", "json")
    orders, pages = json.loads(done.stdout)["tables"]
    assert (orders["key"], pages["key"]) == (["order_id"], ["page_id"])
    assert orders["wrong"] == ["order_id is repeated in 1 of 200 rows"]
    assert pages["wrong"] == ["page_id is NULL in 1 of 150 rows"]
    suite = (tmp_path / "gates" / "suites" / "orders.dql").read_text()
    assert "# 1 of 200 rows repeat or lack it" in suite
    assert "duplicate_count([order_id]) == 0" in suite
