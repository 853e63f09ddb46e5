"""`dql init` writes files that pass `dql check`, and overwrites nothing."""

from __future__ import annotations

import ast
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dqx_airflow.datasets.dqx_toml import read_settings
from dqx_airflow.datasets.settings import dataset_ref
from dqx_airflow.dql.check import check_source
from dqx_airflow.engine.session import java
from dqx_airflow.plan.dataset_needs import check_datasets
from dqx_airflow.values import SourceFile
from tests.command_line import dql


def init(folder: Path, *arguments: str) -> tuple[int, str]:
    done = dql("init", folder, *arguments)
    return done.returncode, done.output


def assert_sound(folder: Path, name: str) -> None:
    """The suite has no finding, also over the dataset in dqx.toml; the DAG is Python."""
    settings = read_settings(folder / "dqx.toml")
    assert not settings.problems
    checked = check_source(
        SourceFile(f"{name}.dql", (folder / f"{name}.dql").read_text()), needs_suite=True
    )
    assert checked.diagnostics == ()
    assert checked.suite is not None
    refs = [dataset_ref(name, given) for name, given in settings.datasets.items()]
    assert check_datasets(checked.suite, refs) == ()
    ast.parse((folder / f"{name}_gate.py").read_text())


def test_a_first_gate_has_a_table_a_suite_a_dag_and_settings(tmp_path: Path) -> None:
    code, output = init(tmp_path / "new")
    assert code == 0, output
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert names == ["dqx.toml", "orders.csv", "orders.dql", "orders_gate.py"]
    assert_sound(tmp_path / "new", "orders")
    assert "airflow dags test orders_gate" in output


def test_where_there_is_no_java_the_settings_choose_sail_and_the_output_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, output = init(tmp_path / "with")
    assert read_settings(tmp_path / "with" / "dqx.toml").connection.address == "local[*]"
    assert "Sail" not in output
    monkeypatch.setattr(java, "search_java", lambda: java.JavaSearch(None))
    code, output = init(tmp_path / "without")
    assert code == 0, output
    assert_sound(tmp_path / "without", "orders")
    assert read_settings(tmp_path / "without" / "dqx.toml").connection.address == "sail"
    assert "no Java 17 or newer was found: dqx.toml chooses Sail" in output


def test_a_suite_is_drafted_from_a_table(tmp_path: Path) -> None:
    table = pa.table(
        {
            "sale id": list(range(30)),
            "note": [None, *["x"] * 29],
            "sold_at": pa.array([f"2026-11-{day:02}T06:00:00Z" for day in range(1, 31)]).cast(
                pa.timestamp("us", tz="UTC")
            ),
        }
    )
    pq.write_table(table, tmp_path / "Sales 2026.parquet")
    code, output = init(tmp_path / "new", "--dataset", str(tmp_path / "Sales 2026.parquet"))
    assert code == 0, output
    (suite,) = (tmp_path / "new").glob("*.dql")
    assert_sound(tmp_path / "new", suite.stem)
    text = suite.read_text()
    assert "duplicate_count([`sale id`]) == 0" in text
    assert "null_count(note)" not in text
    assert "freshness(sold_at)" in text
    assert "num_rows" not in text  # every dataset must have rows without being asked to
    assert (
        f'"{tmp_path}/Sales 2026.parquet"'
        in (tmp_path / "new" / f"{suite.stem}_gate.py").read_text()
    )


def test_the_first_command_judges_the_newest_date_and_a_near_key_is_named(tmp_path: Path) -> None:
    days = [date(2024, 3, 1 + number // 40) for number in range(400)]
    orders = pa.table({"order_id": [0, *range(399)], "ordered_on": days})
    pq.write_table(orders, tmp_path / "orders.parquet")
    code, output = init(tmp_path / "new", "--dataset", str(tmp_path / "orders.parquet"))
    assert code == 0, output
    assert "dql run orders.dql --date 2024-03-10 " in output
    assert "dags test orders_gate 2024-03-10" in output
    assert_sound(tmp_path / "new", "orders")
    text = (tmp_path / "new" / "orders.dql").read_text()
    assert "# order_id alone identifies no row: 1 of 400 rows repeat a value or have none." in text


def test_a_table_of_which_nothing_holds_has_a_suite_all_the_same(tmp_path: Path) -> None:
    pq.write_table(pa.table({"note": ["x", "x", None]}), tmp_path / "notes.parquet")
    code, output = init(tmp_path / "new", "--dataset", str(tmp_path / "notes.parquet"))
    assert code == 0, output
    assert_sound(tmp_path / "new", "notes")
    assert "num_rows() > 0" in (tmp_path / "new" / "notes.dql").read_text()


def test_quotes_that_are_doubled_have_their_escape_in_the_dag_and_the_settings(
    tmp_path: Path,
) -> None:
    (tmp_path / "notes.csv").write_text('id,note\n1,"say ""hi"""\n2,plain\n')
    code, output = init(tmp_path / "new", "--dataset", str(tmp_path / "notes.csv"))
    assert code == 0, output
    assert_sound(tmp_path / "new", "notes")
    assert read_settings(tmp_path / "new" / "dqx.toml").refs["notes"].options == (("escape", '"'),)
    dag = (tmp_path / "new" / "notes_gate.py").read_text()
    assert r'"options": {"escape": "\""},' in dag


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "dqx.toml").write_text("mine")
    code, output = init(tmp_path)
    assert (code, [path.name for path in tmp_path.iterdir()]) == (2, ["dqx.toml"])
    assert "dqx.toml already exists" in output


def test_a_missing_table_is_an_error_and_leaves_no_files(tmp_path: Path) -> None:
    code, output = init(tmp_path / "new", "--dataset", str(tmp_path / "none.csv"))
    assert code == 4
    assert "nothing found" in output
    assert list((tmp_path / "new").iterdir()) == []
