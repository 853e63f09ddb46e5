"""What differs between versions of Spark: in one module, and said where a version cannot."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dqx_airflow
from dqx_airflow.engine.proof.cases import proof_cases
from dqx_airflow.engine.session.spark_versions import (
    arrow_table,
    objection_to_guessed_json,
    objection_to_types,
    package_of,
    release_of,
    require_supported,
)
from dqx_airflow.errors import SparkError

PACKAGE = Path(dqx_airflow.__file__).parent
CHECKS = re.compile(
    r"release_of\(|python_release|__version__.*(split|<|>)|\.version\.(split|startswith)"
    r"|version_info.*pyspark|getErrorClass|inheritable_thread_target|DefaultChannelBuilder"
)
"""How code asks for a version of Spark, or uses what one version has."""
MAY_CHECK = {"engine/session/spark_versions.py", "cli/doctor_checks/spark.py"}


def of(version: str) -> Any:
    return SimpleNamespace(version=version)


def test_versions_are_compared_in_one_module() -> None:
    """`dql doctor` reads the versions of what is installed, and does nothing by them."""
    found = {
        str(path.relative_to(PACKAGE)): line.strip()
        for house in ("engine", "api", "cli/doctor_checks", "cli/run", "operators", "datasets")
        for path in (PACKAGE / house).rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if CHECKS.search(line)
    }
    assert {path: line for path, line in found.items() if path not in MAY_CHECK} == {}
    assert set(found) == MAY_CHECK


@pytest.mark.parametrize(
    ("version", "release"),
    [("3.5.9", (3, 5)), ("3.5.1-amzn-1", (3, 5)), ("4.0.0-SNAPSHOT", (4, 0)), ("4.10.1", (4, 10))],
)
def test_a_release_is_two_numbers(version: str, release: tuple[int, ...]) -> None:
    assert release_of(version) == release


def test_a_spark_that_is_too_old_is_refused_with_the_versions_that_are_not() -> None:
    require_supported("3.5.0")
    require_supported("5.0.1")
    with pytest.raises(SparkError, match=r"version 3\.4\.3, and gates run on Spark 3\.5 to 4\.3"):
        require_supported("3.4.3")


@pytest.mark.parametrize(
    ("schema", "lacks"),
    [
        ("id int, v variant", "type variant"),
        ("v ARRAY<VARIANT>", "type variant"),
        ("name string COLLATE UTF8_LCASE", "collations"),
        ("variant string, id int", None),
        ("id int", None),
    ],
)
def test_types_that_a_version_lacks_are_told_with_the_version_that_has_them(
    schema: str, lacks: str | None
) -> None:
    said = objection_to_types(of("3.5.9"), schema)
    assert said == (lacks and f"Spark 3.5.9 has no {lacks}: that needs Spark 4.0 or newer")
    assert objection_to_types(of("4.0.5"), schema) is None


def test_json_is_guessed_from_spark_4_on() -> None:
    assert "Spark 4.0 or newer" in (objection_to_guessed_json(of("3.5.9")) or "")
    assert objection_to_guessed_json(of("4.0.0")) is None


@pytest.mark.parametrize(
    ("version", "package"),
    [
        ("3.5.9", "io.delta:delta-spark_2.12:3.3.2"),
        ("4.2.0", "io.delta:delta-spark_4.2_2.13:4.4.0"),
    ],
)
def test_the_package_of_a_format_is_that_of_the_version(version: str, package: str) -> None:
    assert package_of("delta", version) == package


@pytest.mark.spark
def test_the_rows_of_a_frame_are_an_arrow_table_also_if_there_are_none(spark: Any) -> None:
    rows = spark.sql("SELECT id, DATE'2024-02-29' AS day FROM range(3)")
    found, none = arrow_table(rows), arrow_table(rows.where("id > 5"))
    assert found.column("day").to_pylist() == [date(2024, 2, 29)] * 3
    assert none.num_rows == 0
    assert none.schema == found.schema


@pytest.mark.spark
def test_equal_maps_are_one_or_the_error_names_the_version_that_can_tell(spark: Any) -> None:
    from dqx_airflow.engine.measure import measure
    from dqx_airflow.engine.proof.cases import frame_of

    case = next(case for case in proof_cases() if case.title == "Distinct maps")
    tables, refs = case.tables()
    frame_of(spark, tables["t"]).createOrReplaceTempView("t")
    plan = case.plan(refs)
    found = case.found(plan, measure(spark, refs, plan)[1])
    if release_of(spark.version) < (4, 0):
        assert all("; Spark 4.0 and newer can tell equal maps" in value for value in found), found
    else:
        assert found == tuple(due for _, due in case.lines)
