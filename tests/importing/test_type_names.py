"""Names of types in databases, Spark, pandas and Python as type checks of DQL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.contracts.demands import OfOneType
from dqx_airflow.contracts.dialects.foreign.great_expectations import translate
from dqx_airflow.dql.check import check_source
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.importing.foreign_rule import type_text
from dqx_airflow.metrics.types import TYPE_WORDS, canonical_type, misfits
from dqx_airflow.values import SourceFile

HERE = Path(__file__).parent
NAMES = [
    (name, wanted.strip())
    for line in (HERE / "type_names.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
    for names, _, wanted in [line.rpartition("=>")]
    for name in map(str.strip, names.split("|"))
]
TRUTH: dict[str, Any] = json.loads((HERE / "truth/types.great_expectations.json").read_text())
TYPES = ("bigint", "int", "double", "float", "boolean", "string", "timestamp_ntz")


@pytest.mark.parametrize(("name", "wanted"), NAMES)
def test_a_name_is_a_type_check(name: str, wanted: str) -> None:
    if wanted == "refused":
        with pytest.raises(NoCounterpartError, match="Spark has no type"):
            type_text(name)
        return
    assert type_text(name) == wanted
    claim = f"column a fits {wanted}"
    suite = f'suite "s" {{ check "c" on t {{ assert {claim} name "n" }} }}'
    assert not check_source(SourceFile("s.dql", suite)).errors


def _passes(check: str, spark_type: str) -> bool:
    """Whether a column of a type passes a type check of DQL."""
    word, _, wanted = check.partition(" ")
    if word == "type":
        return canonical_type(wanted.strip('"')) == spark_type
    return next(misfits(spark_type, canonical_type(wanted, TYPE_WORDS), "a"), None) is None


def _accepted(**kwargs: object) -> set[str]:
    (kind,) = kwargs
    names = {"type_": "of_type", "type_list": "in_type_list"}
    expectation = f"expect_column_values_to_be_{names[kind]}"
    plain = {"type": expectation, "kwargs": {"column": "a", **kwargs}}
    (demand,) = translate(plain, "a").demands
    assert isinstance(demand, OfOneType)
    return {
        spark_type
        for spark_type in TYPES
        if any(_passes(check, spark_type) for check in demand.types)
    }


@pytest.mark.parametrize("name", TRUTH["names"])
def test_what_great_expectations_accepts_is_accepted(name: str) -> None:
    assert set(TRUTH["names"][name]) <= _accepted(type_=name)


@pytest.mark.parametrize(("listed", "held"), TRUTH["lists"])
def test_the_lists_of_its_profilers_accept_what_they_do_there(
    listed: list[str], held: list[str]
) -> None:
    assert set(held) <= _accepted(type_list=listed)


@pytest.mark.parametrize("name", ["int32", "int64", "float32", "float64", "str", "bool"])
def test_a_size_is_that_size(name: str) -> None:
    assert set(TRUTH["names"][name]) == _accepted(type_=name)


@pytest.mark.parametrize(
    ("name", "accepted", "refused"),
    [
        ("DecimalType", ["decimal(18,2)", "decimal(38,0)"], ["double", "string", "bigint"]),
        ("DecimalType(18,2)", ["decimal(18,2)"], ["decimal(18,3)"]),
        ("VARCHAR(20)", ["string", "varchar(10)"], ["bigint", "interval"]),
        ("int", ["bigint", "int", "smallint", "decimal(10,0)"], ["interval", "double"]),
        ("ArrayType", ["array<int>"], ["map<string,int>", "string"]),
        ("StructType", ["struct<a:int>"], ["array<int>"]),
        ("MapType", ["map<string,int>"], ["struct<a:int>"]),
        ("TimestampNTZType", ["timestamp_ntz"], ["timestamp", "date"]),
        ("datetime64[ns]", ["timestamp", "timestamp_ntz"], ["date", "string"]),
        ("IntegerType", ["int"], ["bigint"]),
    ],
)
def test_a_name_means_a_family_or_one_type(
    name: str, accepted: list[str], refused: list[str]
) -> None:
    plain = {"type": "expect_column_values_to_be_of_type", "kwargs": {"column": "a", "type_": name}}
    (demand,) = translate(plain, "a").demands
    assert isinstance(demand, OfOneType)
    (check,) = demand.types
    assert [spark_type for spark_type in accepted if not _passes(check, spark_type)] == []
    assert [spark_type for spark_type in refused if _passes(check, spark_type)] == []


@pytest.mark.parametrize("name", ["object", "TIME", "uint8", "money-ish"])
def test_a_type_that_spark_does_not_have_is_refused_alone(name: str) -> None:
    with pytest.raises(NoCounterpartError, match="Spark has no type"):
        _accepted(type_=name)


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("varchr", "varchar"),
        ("VARCHR(20)", "VARCHAR(20)"),
        ("interger", "integer"),
        ("timestmp with time zone", "timestamp with time zone"),
        ("doubleprecision", "double precision"),
        ("array<strng>", "array<string>"),
        ("decimal(10.2)", "decimal(10,2)"),
        ("LongTyp", "longtype"),
    ],
)
def test_a_mistyped_type_has_a_hint(typo: str, meant: str) -> None:
    with pytest.raises(NoCounterpartError, match="did you mean") as refusal:
        type_text(typo)
    assert str(refusal.value).endswith(f"did you mean '{meant}'?")
    with pytest.raises(NoCounterpartError, match="did you mean"):
        _accepted(type_=typo)
