"""Names of types of databases, and what a person meant by a name that no database has."""

from __future__ import annotations

from pathlib import Path
from random import Random
from string import ascii_lowercase

import pytest

from dqx_airflow.contracts.database_types import physical_type, why_unread
from dqx_airflow.contracts.dialects.odcs.physical_types import meant_physical_type
from dqx_airflow.contracts.mistyped_types import meant_type
from dqx_airflow.contracts.model import Contract
from dqx_airflow.diagnostics.diagnostic import edits
from dqx_airflow.metrics.types import TYPE_WORDS, canonical_type
from tests.contracts.dialect_parts import read_text
from tests.markdown_cases import cases

NAMES = [
    (case.title, name.strip(), wanted.strip())
    for case in cases(Path(__file__).parent / "physical_types.md", fewest_blocks=1)
    for line in case.blocks[0].text.splitlines()
    for names, _, wanted in [line.rpartition("=>")]
    for name in names.split(" | ")
]
READ = [(database, name) for database, name, wanted in NAMES if wanted != "-"]


def _is_spark(database: str) -> bool:
    return database == "databricks"


@pytest.mark.few(100, apart=True)
@pytest.mark.parametrize(("database", "name", "wanted"), NAMES)
def test_a_name_is_a_type_of_spark(database: str, name: str, wanted: str) -> None:
    for spelled in (name, f" {name} ", name.upper() if name.islower() else name):
        read = physical_type(spelled, database, is_spark=_is_spark(database))
        if read is None:
            assert wanted == "-"
            continue
        length = f"({read.most_characters})" if read.most_characters is not None else ""
        assert read.spark_type + length == wanted
        if " " not in wanted:  # a name with a space is in backticks there
            canonical_type(read.spark_type, TYPE_WORDS)


@pytest.mark.parametrize(("database", "name"), [row[:2] for row in NAMES if row[2] == "-"])
def test_a_type_that_spark_does_not_have_is_no_typo(database: str, name: str) -> None:
    meant = meant_physical_type(name, None, database, is_spark=_is_spark(database))
    is_mistyped = name in ("double precison", "decimal(10.2)")
    assert (meant is not None) == is_mistyped


@pytest.mark.parametrize(
    "foreign",
    [
        *("objectId", "decimal128", "binData", "keyword", "half_float", "scaled_float", "ip"),
        *("geo_point", "picklist", "lookup", "DATS", "UNIT", "LANG", "CLNT", "STRG", "DBCLOB"),
        *("PERIOD(DATE)", "fixed64", "sint32", "INT96", "BYTE_ARRAY", "xs:anyURI", "NMTOKEN"),
        *("mixed", "guid", "order_status", "public.status", "ratio", "code", "file", "table"),
    ],
)
def test_a_type_of_another_system_is_no_typo(foreign: str) -> None:
    for database in ("postgres", "snowflake", "tsql", None):
        assert physical_type(foreign, database, is_spark=False) is None
        assert meant_physical_type(foreign, None, database, is_spark=False) is None


def _mistyped(name: str, random: Random, count: int) -> str:
    """A name with some letters omitted, added, replaced or swapped with their neighbor."""
    for _ in range(count):
        places = [at for at, letter in enumerate(name) if letter.isalpha()]
        at = random.choice(places)
        letter = random.choice(ascii_lowercase)
        match random.randrange(4):
            case 0:
                name = name[:at] + name[at + 1 :]
            case 1:
                name = name[:at] + letter + name[at:]
            case 2:
                name = name[:at] + letter + name[at + 1 :]
            case _:
                name = name[:at] + name[at : at + 2][::-1] + name[at + 2 :]
    return name


@pytest.mark.parametrize("letters", [1, 2])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, 12))]
)
def test_a_mistyped_name_has_a_hint_that_exists(seed: int, letters: int) -> None:
    """The type that the hint names is read, and is as near as the type that was mistyped."""
    random = Random(f"{seed} {letters}")
    sample = random.sample(READ, 60)
    for database, name in sample:
        longest = max(name.lower().replace("(", " ").replace("<", " ").split(), key=len)
        if len(longest) < (4 if letters == 1 else 7) or not longest.isalpha():
            continue
        word = _mistyped(longest, random, letters)
        if edits(word, longest, most=3) > (2 if len(word) > 5 else 1):
            continue  # too far from any name
        typo = name.lower().replace(longest, word, 1)
        is_spark = _is_spark(database)
        if physical_type(typo, database, is_spark=is_spark) is not None:
            continue  # a type, too
        meant = meant_physical_type(typo, None, database, is_spark=is_spark)
        if meant is None:
            # It is a word of another type, such as `image` or `times`.
            assert _is_a_word(typo, longest), (database, name, typo)
            continue
        assert physical_type(meant, database, is_spark=is_spark) is not None
        folded = (text.lower().replace(" ", "").replace("_", "") for text in (typo, meant))
        assert edits(*folded, most=4) <= letters + 1, (database, name, typo, meant)


def _is_a_word(typo: str, longest: str) -> bool:
    from dqx_airflow.contracts.mistyped_types import _OF_OTHERS, _vocabulary

    words = typo.replace("(", " ").replace("<", " ").replace("[", " ").split()
    return any(word in _vocabulary() or word in _OF_OTHERS for word in words if word != longest)


def _contract(physical: str, logical: str | None = None, **more: str) -> Contract:
    lines = [
        "apiVersion: v3.1.0",
        "kind: DataContract",
        "id: orders",
        "version: 1.0.0",
        "status: active",
        "servers: [{server: s, type: mysql, host: h, port: 3306, database: d}]",
        "schema:",
        "  - name: orders",
        "    properties:",
        "      - name: a",
        f"        physicalType: {physical!r}",
    ]
    if logical is not None:
        lines.append(f"        logicalType: {logical}")
    lines += (f"        {key}: {value}" for key, value in more.items())
    read = read_text("\n".join(lines) + "\n")
    assert read.contract is not None
    assert not read.errors
    return read.contract


def _type_of(contract: Contract) -> str | None:
    (model,) = contract.models
    return model.fields[0].type


@pytest.mark.parametrize(
    ("logical", "wanted"),
    [(None, "boolean"), ("boolean", "boolean"), ("integer", "tinyint"), ("number", "tinyint")],
)
def test_a_tinyint_of_one_digit_is_a_boolean_unless_it_is_said_to_be_a_number(
    logical: str | None, wanted: str
) -> None:
    contract = _contract("tinyint(1)", logical)
    assert _type_of(contract) == wanted
    assert not [note for note in contract.notes if note.promise is not None]


@pytest.mark.parametrize("logical", [None, "string"])
def test_a_mistyped_type_is_not_checked_and_has_a_hint(logical: str | None) -> None:
    """With a logical type too, which says nothing of the length: the gate is broken."""
    contract = _contract("varchr(20)", logical)
    (note,) = [note for note in contract.notes if note.promise is not None]
    assert note.reason.endswith("did you mean 'varchar(20)'?")


def test_not_null_is_no_part_of_a_type() -> None:
    contract = _contract("varchar(20) NOT NULL")
    (note,) = [note for note in contract.notes if note.promise is not None]
    assert note.reason == why_unread("int not null") != why_unread("geography")


def test_a_property_names_its_type_in_spark() -> None:
    stated = "[{property: sparkType, value: bigint}]"
    assert _type_of(_contract("int", customProperties=stated)) == "bigint"
    contract = _contract("int", customProperties=stated.replace("bigint", "bigitn"))
    (note,) = [note for note in contract.notes if note.promise is not None]
    assert note.reason == "not a Spark type: did you mean 'bigint'?"


def test_many_unknown_words_take_a_few_attempts() -> None:
    attempts: list[str] = []

    def is_type(text: str) -> bool:
        attempts.append(text)
        return False

    fields = ",".join(f"c{number}:strng" for number in range(300))
    assert meant_type(f"struct<{fields}>", is_type) is None
    assert meant_type("varchr " * 200, is_type) is None
    assert len(attempts) < 20
