"""Imported suites agree with the original tools on the same data.

The verdicts of the tools were recorded: see `record_verdicts.py`. Ours are those of Spark.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.api.database import SparkDatabase
from dqx_airflow.api.suite import Suite
from dqx_airflow.dql.syntax.source_file import read_source
from dqx_airflow.importing.foreign_rule import ForeignRule
from dqx_airflow.importing.imported_suite import ImportedSuite, ImportOutcome, suite_of
from dqx_airflow.importing.tools import read_rules
from dqx_airflow.values import SourceFile, Status
from tests.maven_jars import jars
from tests.other_sparks import environment_with, python_with

TRUTH = Path(__file__).parent / "truth"
TABLES: dict[str, list[dict[str, Any]]] = json.loads((TRUTH / "tables.json").read_text())
COLUMNS = "id bigint, status string, country string, email string, amount double, tax double"
COLUMNS += ", zip string, day string"
DAY = date(2024, 5, 17)
TOOLS = sorted(path.name.split(".")[0] for path in TRUTH.glob("*.verdicts.json"))


@cache
def rules_of(tool: str) -> tuple[ForeignRule, ...]:
    files = (TRUTH / f"{tool}.{end}" for end in ("yml", "json", "txt"))
    (path,) = (file for file in files if file.is_file())
    source = read_source(path, path.name)
    assert isinstance(source, SourceFile)
    return read_rules(source, dataset="orders", sql_dialect="spark")[1]


@pytest.fixture(scope="module")
def imported() -> ImportedSuite:
    """The rules of all tools as one suite, so that Spark reads a table once for them."""
    return suite_of("all", "All tools", [rule for tool in TOOLS for rule in rules_of(tool)])


def test_every_rule_is_translated(imported: ImportedSuite) -> None:
    left = [one for one in imported.rules if one.outcome is ImportOutcome.NOT_TRANSLATED]
    assert [(one.rule.shown, one.reason) for one in left] == []


@pytest.mark.more
@pytest.mark.few(2)
@pytest.mark.spark
@pytest.mark.parametrize("table", TABLES)
def test_translated_rules_have_the_verdicts_of_the_tool(
    spark: Any, imported: ImportedSuite, tmp_path: Path, table: str
) -> None:
    frame = spark.createDataFrame([tuple(row.values()) for row in TABLES[table]], COLUMNS)
    frame.coalesce(1).write.parquet(str(tmp_path / "orders"))
    database = SparkDatabase(
        spark, {"orders": {"path": str(tmp_path / "orders"), "format": "parquet"}}
    )
    result = Suite.from_string(imported.text).run(database, DAY)
    passed = {one.name: one.status is Status.PASSED for one in result.assertions}
    ours = iter(imported.rules)
    differing = []
    for tool in TOOLS:
        theirs = json.loads((TRUTH / f"{tool}.verdicts.json").read_text())["verdicts"][table]
        for number, (rule, one) in enumerate(zip(rules_of(tool), ours, strict=False)):
            due = verdict(theirs, number, rule.shown)
            if due is not None and due != all(passed[name] for name, _ in one.assertions):
                differing.append(f"{tool} says {due}: {rule.shown}")
    assert differing == []


def verdict(theirs: list[bool] | dict[str, bool], number: int, shown: str) -> bool | None:
    """The verdict of the tool; None where it has none, such as for a column that is there."""
    if isinstance(theirs, list):
        return theirs[number]
    column, _, check = shown.partition(": ")
    key = check if check == "nullable: false" else check.split(":")[0]
    return theirs.get(f"{column}: {key}")


DEEQU = ("com.amazon.deequ:deequ:2.1.0-spark-3.5", "software.amazon.glue:dqdl:1.0.0")


@pytest.mark.slow
@pytest.mark.nightly
def test_the_engine_of_deequ_gives_the_verdicts_that_were_recorded(tmp_path: Path) -> None:
    """Deequ's own engine for DQDL, run beside the translation of its rules."""
    variables = {**environment_with("3.5"), "DEEQU_JAR": jars(*DEEQU)}
    script = shutil.copy(TRUTH.parent / "record_verdicts.py", tmp_path)
    shutil.copytree(TRUTH, tmp_path / "truth")
    subprocess.run([python_with("3.5"), script, "dqdl"], env=variables, check=True)
    recorded, found = (
        json.loads((folder / "dqdl.verdicts.json").read_text())["verdicts"]
        for folder in (TRUTH, tmp_path / "truth")
    )
    assert found == recorded
