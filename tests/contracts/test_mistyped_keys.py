"""Typing errors in the keys of contracts: every dialect, level and kind of error."""

from __future__ import annotations

import copy
import random
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.contracts.document import Mapping, Node, Sequence, show_path
from dqx_airflow.contracts.enforcement.lint import RULES, lint
from dqx_airflow.contracts.key_words import key_words
from dqx_airflow.contracts.model import UnknownKey
from dqx_airflow.contracts.read import ReadContract, read_contract
from dqx_airflow.contracts.references import FolderReader
from dqx_airflow.contracts.schema import load_schema
from dqx_airflow.diagnostics.diagnostic import folded_word
from dqx_airflow.values import SourceFile

HERE = Path(__file__).parent / "examples"
EXAMPLES = sorted(path for path in HERE.rglob("*.yaml") if path.parent.name != "shared")
ONE_EACH = {path.parent: path for path in reversed(EXAMPLES)}
"""The first example of each standard, which the default lane has."""
_STEP = {"odcs": 3, "standard": 3, "dcs": 2, "fabric": 1, "product": 1}
"""Of the keys of an example every so many are tried: its standard's schema takes its time."""
_NAMED_BY_USERS = re.compile(
    r"^(models|definitions|servers|links)$|\.(fields|config|implementation|specification|arguments|retention"
    r"|authoritativeDefinitions|links|customProperties|completeness|uniqueness|producer)$"
    r"|customProperties|(implementation|specification|examples|lineage)\b|^contract\.sla$"
)
"""The mappings whose keys are names, or keys of other tools."""


def _read(path: Path, text: str) -> ReadContract:
    return read_contract(SourceFile(path.name, text), FolderReader(path.parent))


def _unknown(found: ReadContract) -> tuple[UnknownKey, ...]:
    return found.contract.unknown_keys if found.contract is not None else ()


def _slips(key: str) -> Iterator[str]:
    """Spellings of a key with a letter left out, twice, swapped with its neighbour, and wrong."""
    middle = len(key) // 2
    yield key[:middle] + key[middle + 1 :]
    yield key[:middle] + key[middle] + key[middle:]
    yield key[: middle - 1] + key[middle] + key[middle - 1] + key[middle + 1 :]
    yield key[:middle] + "q" + key[middle + 1 :]


def _keys(node: Node, path: str = "") -> Iterator[tuple[str, int, int]]:
    """The keys with four letters or more that the dialect gives, and where they are written."""
    if isinstance(node, Sequence):
        for item in node.items:
            yield from _keys(item, path)
    elif isinstance(node, Mapping):
        for key, entry in node.entries.items():
            inner = f"{path}.{key}" if path else key
            is_name = _NAMED_BY_USERS.search(path) is not None
            if not is_name and len(key) > 3 and not key.startswith(("x-", "$")):
                yield key, entry.span.line, entry.span.column
            yield from _keys(entry.node, inner)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "path",
    sorted(EXAMPLES, key=lambda path: path not in ONE_EACH.values()),
    ids=lambda path: path.name,
)
def test_a_typo_in_any_key_gets_the_right_key(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    sound = _read(path, text)
    assert sound.document.root is not None
    known = {key.key for key in _unknown(sound)}
    missed = []
    keys = [*_keys(sound.document.root)][:: _STEP[path.parent.name]]
    for place, (key, line, column) in enumerate(keys):
        lines = text.split("\n")
        slip = [*_slips(key)][place % 4]
        row = lines[line - 1]
        if row[column - 1 : column - 1 + len(key)] != key or slip == key or key in known:
            continue
        lines[line - 1] = row[: column - 1] + slip + row[column - 1 + len(key) :]
        found = _read(path, "\n".join(lines))
        named = any(unknown.key == slip and unknown.meant for unknown in _unknown(found))
        refused = any(slip in item.message and item.help for item in found.errors)
        recognised = found.contract is None  # the key by which the dialect is known
        if not (named or refused or recognised):
            missed.append(f"{line}:{column} {key} as {slip}")
    assert not missed


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_correctly_spelled_keys_are_no_findings(path: Path) -> None:
    found = _read(path, path.read_text(encoding="utf-8"))
    others = [rule.name for rule in RULES if rule.name != "spelling"]
    assert found.contract is not None
    unknown = {item.message for item in lint(found.contract, ignored=others)}
    assert unknown <= {"unknown key 'isNullable'"}


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("requried", "required"),
        ("minLenght", "minLength"),
        ("min_length", "minLength"),
        ("nullable", "required"),
        ("isRequired", "required"),
        ("regex", "pattern"),
        ("valid_values", "enum"),
        ("x-team", None),
        ("team", None),
    ],
)
def test_a_key_of_another_dialect_gets_the_key_of_this_one(key: str, meant: str | None) -> None:
    text = (
        "dataContractSpecification: 1.2.1\nid: a\ninfo: {title: A, version: 1.0.0}\n"
        f"models: {{m: {{fields: {{f: {{type: string, {key}: 1}}}}}}}}\n"
    )
    found = _unknown(_read(Path("contract.yaml"), text))
    assert [item.meant for item in found] == ([meant] if meant else [])


FIELDS = {
    "fabric": (
        "contract: {{id: a.m, version: 1.0.0, schema: {{columns: [{{name: n, type: int, {}}}]}}}}"
    ),
    "product": (
        "contract: {{name: m, version: 1.0.0}}\n"
        "schema: {{fields: [{{name: n, type: integer, {}}}]}}"
    ),
    "dcs": (
        "dataContractSpecification: 1.2.1\nid: a\ninfo: {{title: A, version: 1.0.0}}\n"
        "models: {{m: {{fields: {{n: {{type: int}}, "
        "o: {{type: array, items: {{type: int, {}}}}}}}}}}}"
    ),
    "datalex": (
        "manifestSpecVersion: 1.0.0\ndatalexVersion: 2.0.0\ngeneratedAt: '2026-01-01T00:00:00Z'\n"
        "project: {{name: p}}\ndomains: [{{name: d, entities: [{{name: O, binding: {{kind: table,"
        " ref: a.o}}, fields: [{{name: n, type: integer, {}}}]}}]}}]"
    ),
}
CONSTRAINTS = """\
requried: true | uniqe: true | mininum: 0 | sccal: 2 | preccison: 5 | constraints: [not_null]
logicalTypeOptions: {minimum: 0} | positive: true | range: [0, 1] | check: n > 0 | greaterThan: 0
minn: 0 | required: true | nulable2: no | isNullable: false | not_null: true | patern: a | in: [1]
allowed: a | lessThan: 3 | gt: 3 | max_len: 3 | mustBe: 3 | between: 1 and 2 | non_negative: true
tests: [unique] | quality: [] | validators: [] | expect_column_values_to_be_unique: {} | key: true
format: email | multipleOf: 2 | fk: a.b | no_nulls: x | atLeast: 3 | is_required: true
regular_expression: a | nullability: not_null | mode: REQUIRED | presence: mandatory
sign: positive
foo: 3 | foo: [1] | foo: {a: 1} | foo: on | foo: a = 1 | foo: "> 3"
"""
REMARKS = """\
x-range: [0, 1] | tags: [a] | owner: shop | comment: as told | source_system: SAP | example: 3
foo: bar
"""


def _keys_of(text: str) -> list[str]:
    return [key.strip() for line in text.splitlines() for key in line.split(" | ")]


def _codes(dialect: str, key: str) -> set[str]:
    found = _read(Path("contract.yaml"), FIELDS[dialect].format(key))
    assert found.contract is not None
    assert not found.errors, (key, found.errors)
    promised = {note.clause.path for note in found.contract.notes if note.promise is not None}
    codes = {str(item.code) for item in lint(found.contract)} & {"E428", "W021"}
    return codes | ({"broken"} if promised else set())


@pytest.mark.few(1)
@pytest.mark.parametrize("dialect", ["fabric", "product", "datalex"])
def test_a_key_that_may_state_a_constraint_breaks_lint_and_the_gate(dialect: str) -> None:
    codes = {key: _codes(dialect, key) for key in _keys_of(CONSTRAINTS)}
    assert {key: got for key, got in codes.items() if got != {"E428", "broken"}} == {}
    remarks = {key: _codes(dialect, key) for key in _keys_of(REMARKS)}
    assert {key: got for key, got in remarks.items() if got - {"W021"}} == {}


OF_OPEN_DIALECTS = """\
requried: true | uniqe: true | mininum: 0 | sccal: 2 | preccison: 5 | constraints: [not_null]
logicalTypeOptions: {minimum: 0}
positive: true | range: [0, 1] | check: n > 0 | greaterThan: 0 | properties: {a: {type: int}}
dataType: int | physicalType: int | logicalType: integer | Type: int | types: int | guards: [a]
mapping: {a: 1} | meta: {required: true} | metadata: [{metric: rowCount}] | feilds: {a: {type: int}}
"""
OF_OPEN_SCALARS = """\
not_nul: true | nonNull: true | mandatry: true | mandatry: yes | notEmpty: true | allowNull: false
obligatory: true | lower: 5 | upper: 9 | equals: 7 | mustBe: 5 | maxNull: 0 | expression: "id > 5"
condition: "id > 5" | sql: "select * from o where id < 5" | assert: "id > 5" | dq: "id > 5"
not_blank: on | isNotNull: true | must_be: 5 | mustNotBe: 3 | nullsAllowed: no | canBeNullable: no
upperBound: 7 | must: "> 3" | no_duplicates: true | minRows: 3 | maxDuplicates: 0 | expected: 4
threshold: 3 | positive: true | nonNegative: true | range: "0-9" | fromat: email | at_least: 3
patern: "^a$" | lessThen: 3 | allowEmpty: false | isUniqe: true | is_positive: true
condition: id is not null | sql: id between 1 and 5 | expression: "id in (1, 2)" | lower: 2024-01-01
non_nulls: true | greaterThn: 3 | mustBeLessThn: 3
"""
"""Scalars that state a constraint in plain words, in a dialect that allows additional keys."""
SCALAR_REMARKS = """\
x-must: 5 | validFrom: 2024-01-01 | loadedAt: 2024-01-01 | loadedAt: 5 | checksum: a1b2 | cost: 5
condition: new | expression: sum of the parts | equals: the key of the order
sourceSystem: SAP | sql: see the wiki | weight: 3 | rank: 5 | version: 3
mustHave: as the shop wishes | defaultLimit: 5 | label_count: 3 | sampleSize: 3 | region: 5
"""
OPEN_REMARKS = """\
x-range: [0, 1] | tags: [a] | owner: shop | source_system: SAP | example: 3 | foo: bar | foo: 3
meta: {owner: shop, pii: true} | labels: [a] | team: checkout | comment: as told | sourceColumn: a b
"""


def test_a_dialect_that_allows_additional_keys_refuses_those_that_may_hold_checks() -> None:
    codes = {key: _codes("dcs", key) for key in _keys_of(OF_OPEN_DIALECTS)}
    assert {key: got for key, got in codes.items() if got != {"E428", "broken"}} == {}
    remarks = {key: _codes("dcs", key) for key in _keys_of(OPEN_REMARKS)}
    assert {key: got for key, got in remarks.items() if got - {"W021"}} == {}


@pytest.mark.few(1)
@pytest.mark.parametrize("dialect", ["dcs", "odcs 3.0"])
def test_a_scalar_that_states_a_constraint_in_plain_words_breaks_lint_and_the_gate(
    dialect: str,
) -> None:
    template = {**FIELDS, **WITH_METRICS}[dialect]

    def codes(key: str) -> set[str]:
        found = _read(Path("contract.yaml"), template.format(key))
        assert found.contract is not None
        promised = {note.clause.path for note in found.contract.notes if note.promise is not None}
        found_codes = {str(item.code) for item in lint(found.contract)} & {"E428"}
        return found_codes | ({"broken"} if promised else set())

    states = {key: codes(key) for key in _keys_of(OF_OPEN_SCALARS)}
    assert {key: got for key, got in states.items() if got != {"E428", "broken"}} == {}
    remarks = {key: codes(key) for key in _keys_of(SCALAR_REMARKS)}
    assert {key: got for key, got in remarks.items() if got} == {}


OPEN = {
    "odcs": """\
apiVersion: v3.0.2
kind: DataContract
id: o
version: 1.0.0
status: active
schema:
  - name: o
    properties:
      - {name: id, logicalType: integer, physicalType: bigint, required: true}
      - {name: ts, logicalType: timestamp, physicalType: timestamp}
      - {name: part, logicalType: object, properties: [{name: city, required: true}]}
      - {name: list, logicalType: array, items: {logicalType: string, required: true}}
    quality: [{metric: rowCount, mustBeGreaterThan: 10}]
slaProperties: [{property: freshness, value: 1, unit: d, element: o.ts}]
""",
    "dcs": """\
dataContractSpecification: 1.2.1
id: o
info: {title: o, version: 1.0.0}
models:
  o:
    fields:
      id: {type: long, required: true}
      ts: {type: timestamp}
      part: {type: struct, fields: {city: {type: string, required: true}}}
      list: {type: array, items: {type: string, required: true}}
    quality: [{metric: rowCount, mustBeGreaterThan: 10}]
servicelevels: {freshness: {threshold: 3d, timestampField: o.ts}}
""",
}
RENAMED = """\
odcs | slaProperties | sla slas slaProperty slaPropertes slaProps serviceLevels servicelevels
odcs | quality | rules qualities dataQuality validations qualty checks guards metadata
odcs | object, properties | fields columns property propertes children
odcs | items | item Items itmes elements
odcs | integer, physicalType | physcalType
odcs | id, logicalType | logcalType type typ dataType
odcs | metric | ruel metrics
odcs | mustBeGreaterThan | mustBeGreatrThan mustBeGreater
odcs | schema | shcema tables columns
dcs | servicelevels | sla slas slaProperties serviceLevels service_levels
dcs | quality | rules qualities dataQuality validations
dcs | struct, fields | properties columns feilds field
dcs | items | item itmes
dcs | id: {type | tpye Type typ types tyyp dataType logicalType physicalType
dcs | metric | ruel metrics
dcs | models | modles tables model
dcs | threshold | treshold
"""
"""The dialect, a key with what is before it, and other names for it."""


@pytest.mark.parametrize("row", RENAMED.splitlines())
def test_a_part_under_another_name_is_an_error_and_breaks_the_gate(row: str) -> None:
    dialect, written, names = row.split(" | ")
    before = written.removesuffix(re.split(r"[ {]", written)[-1])
    for name in names.split():
        text = OPEN[dialect].replace(f"{written}:", f"{before}{name}:", 1)
        assert text != OPEN[dialect], row
        found = _read(Path("contract.yaml"), text)
        assert found.contract is not None
        assert not found.errors, (name, found.errors)
        assert [note for note in found.contract.notes if note.promise is not None], name
        errors = [item.message for item in lint(found.contract) if item.code == "E428"]
        assert [message.split("'")[1] for message in errors] == [name]


_LABELS = ("#", "suite ", "check ", "name ", "tags ")


def _claims(found: ReadContract) -> list[str]:
    """The assertions of a contract without names and tags. A dataset of another name is missing."""
    assert found.contract is not None
    lines = (line.strip() for line in compile_contract(found.contract).text.splitlines())
    return [line for line in lines if line and not line.startswith(_LABELS)]


def _typos(key: str, draw: random.Random) -> Iterator[str]:
    """Spellings of a key with a letter left out, swapped, twice or wrong, in another case, in the
    other number, and with two of these."""
    at, pair = draw.randrange(len(key)), draw.randrange(max(1, len(key) - 1))
    left_out = key[:at] + key[at + 1 :]
    yield left_out
    yield key[:pair] + key[pair + 1 : pair + 2] + key[pair] + key[pair + 2 :]
    yield key[:at] + key[at] + key[at:]
    yield key[:at] + draw.choice(string.ascii_lowercase) + key[at + 1 :]
    yield key[0].swapcase() + key[1:]
    yield key.removesuffix("s") if key.endswith("s") else f"{key}s"
    if left_out:
        second = draw.randrange(len(left_out))
        yield left_out[:second] + left_out[second] + left_out[second:]


def _losses(path: Path, draw: random.Random, most: int) -> list[str]:
    """The typos in the keys of a contract after which something is not checked, without an error
    that breaks the gate."""
    text = path.read_text(encoding="utf-8")
    right = _read(path, text)
    assert right.contract is not None
    assert right.document.root is not None
    claims = _claims(right)
    promised = {note.promise for note in right.contract.notes}
    typos = []
    for key, line, column in _keys(right.document.root):
        row = text.split("\n")[line - 1]
        start = column - 1 + (row[column - 1] == '"')
        if row.startswith(key, start):
            typos += [
                (key, line, start, typo) for typo in _typos(key, draw) if typo not in ("", key)
            ]
    lost = []
    for key, line, start, typo in draw.sample(typos, min(most, len(typos))):
        rows = text.split("\n")
        row = rows[line - 1]
        rows[line - 1] = row[:start] + typo + row[start + len(key) :]
        found = _read(path, "\n".join(rows))
        if found.contract is None or found.errors:
            continue
        is_broken = {note.promise for note in found.contract.notes} - promised
        if not is_broken and _claims(found) != claims:
            lost.append(f"{line}: {key} as {typo}")
    return lost


WITH_OTHERS = [
    *EXAMPLES,
    *sorted(HERE.rglob("*.json")),
    *sorted((HERE.parents[2] / "dags_examples" / "contracts").glob("*.yaml")),
]


@pytest.mark.few(9, apart=True)
@pytest.mark.parametrize("path", WITH_OTHERS, ids=lambda path: path.name)
def test_no_typo_in_a_key_drops_a_check_silently(path: Path) -> None:
    assert _losses(path, random.Random(1), most=6) == []


@pytest.mark.nightly
@pytest.mark.parametrize("path", WITH_OTHERS, ids=lambda path: path.name)
def test_no_new_typo_in_a_key_drops_a_check_silently(path: Path) -> None:
    seed = random.SystemRandom().randrange(2**32)
    assert _losses(path, random.Random(seed), most=200) == [], f"seed {seed}"


@pytest.mark.parametrize(
    ("dialect", "part"),
    [
        ("fabric", "quality: {completness: [{column: n, min_pct: 99}]}"),
        ("fabric", "quality: {validity: 0.9}"),
        ("fabric", "quality: {freshness: {max_age_minutes: 3, max_age_hours: 1}}"),
        ("fabric", "quality: {completeness: [{column: n, min_pct: 99, max_null_pct: 1}]}"),
        ("fabric", "quality: {accuracy: [{rule: n > 0, mostly: 0.9}]}"),
        ("fabric", "volume: {baseline_rows_per_week: 3}"),
        ("fabric", "lifecycle: {retention_day: 3}"),
        ("fabric", "sla: {landing_p99_minute: 3}"),
        ("fabric", "expectations: [a]"),
        ("product", "quality: {validty: 0.9}"),
        ("product", "quality: {volume: {min_rows: 3}}"),
        ("product", "quality: {freshness: {max_minutes: 3}}"),
        ("product", "usage: {retention_day: 3}"),
        ("product", "qualty: {validity: 0.9}"),
        ("dcs", "servicelevels: {retention: {perod: P1Y}}"),
        ("dcs", "servicelevels: {freshnes: {threshold: 3h}}"),
        ("dcs", "serviceLevels: {freshness: {threshold: 3h}}"),
        ("dcs", "modles: {o: {fields: {n: {type: int}}}}"),
        ("dcs", "servers: {p: {type: local, path: a.csv, format: csv, delimeter: ';'}}"),
        ("fabric", "slas: {landing_p99_minutes: 3}"),
        ("fabric", "lifecyle: {retention_days: 3}"),
        ("product", "slas: {availability: 99%}"),
    ],
)
def test_a_section_with_an_unknown_constraint_breaks_lint_and_the_gate(
    dialect: str, part: str
) -> None:
    text = FIELDS[dialect].format("x-a: 1")
    text = text[:-1] + f", {part}}}" if dialect == "fabric" else f"{text}\n{part}"
    found = _read(Path("contract.yaml"), text)
    assert found.contract is not None
    assert not found.errors, found.errors
    assert [item.code for item in lint(found.contract) if str(item.code) in ("E428", "W021")] == [
        "E428"
    ]
    assert [note for note in found.contract.notes if note.promise is not None]


BESIDE_A_TABLE = """\
contract: {id: a.m, version: 1.0.0, schema: {columns: [{name: n, type: int}]}}
%s
"""
IN_A_MODEL = """\
dataContractSpecification: 1.2.1
id: a
info: {title: A, version: 1.0.0}
models: {m: {%s, fields: {n: {type: int}}}}
"""


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (BESIDE_A_TABLE, "quality: {validity: 1} | qualty: {validity: 1} | volume: {a: 1}"),
        (BESIDE_A_TABLE, "assertions: [n > 5] | qualityRules: [n > 5] | minRows: 9 | dq: [n > 5]"),
        (BESIDE_A_TABLE, "compositeKey: [n] | uniqueConstraints: [[n]] | validations: [n > 5]"),
        (BESIDE_A_TABLE, "additionalProperties: false | strict: true | relations: [{to: a.b}]"),
        (IN_A_MODEL, "qualty: [] | feilds: {o: {type: int}} | primaryKye: [n] | constraints: [a]"),
    ],
)
def test_a_misspelled_part_of_a_table_breaks_lint_and_the_gate(text: str, keys: str) -> None:
    for key in _keys_of(keys):
        found = _read(Path("contract.yaml"), text % key)
        assert found.contract is not None, found.errors
        assert "E428" in {str(item.code) for item in lint(found.contract)}, key
        assert [note for note in found.contract.notes if note.promise is not None], key


@pytest.mark.parametrize("dialect", FIELDS)
def test_a_mistyped_value_of_a_known_constraint_is_an_error(dialect: str) -> None:
    name = "required" if dialect == "dcs" else "nullable"
    for value in ("flase", '"false"', "no way", "0.5", "[false]"):
        assert _read(Path("contract.yaml"), FIELDS[dialect].format(f"{name}: {value}")).errors


@pytest.mark.parametrize("key", ["kkin", "sort", None])
def test_a_binding_without_its_kind_is_one_to_a_table(key: str | None) -> None:
    path = HERE / "datalex" / "minimal.json"
    text = path.read_text(encoding="utf-8")
    kind = '"kind": "dbt_model",'
    assert kind in text
    found = _read(path, text.replace(kind, f'"{key}": "dbt_model",' if key else ""))
    assert _claims(found) == _claims(_read(path, text))


WRONG_ARGUMENTS = """\
duplicateValues, arguments: {properties: [id]}
duplicateValues, arguments: {properties: [s, id]}
duplicateValues, arguments: {propertes: [id]}
duplicateValues, arguments: {foo: 1}
nullValues, arguments: {filter: "s = 'a'"}
nullValues, arguments: {missingValues: [a]}
missingValues, arguments: {missingValues: [null], where: s > 1}
missingValues, arguments: {missingvalues: [a]}
invalidValues, arguments: {validValues: [a], patern: b}
invalidValues, arguments: {validValues: [a], pattern: 3}
invalidValues, arguments: {validValues: a, pattern: a}
invalidValues, arguments: {pattern: a, maxLength: 3}
"""
RIGHT_ARGUMENTS = """\
duplicateValues, arguments: {properties: [s]}
duplicateValues
nullValues, arguments: {}
missingValues, arguments: {missingValues: [null, a]}
invalidValues, arguments: {validValues: [a], pattern: b}
"""
WITH_METRICS = {
    "dcs": FIELDS["dcs"].replace("n: {{type: int}}", "id: {{type: int}}, s: {{type: string, {}}}"),
    "odcs 3.0": (
        "apiVersion: v3.0.2\nkind: DataContract\nid: o\nversion: 1.0.0\nstatus: active\n"
        "schema: [{{name: o, properties: [{{name: id, logicalType: integer}},"
        " {{name: s, logicalType: string, {}}}]}}]"
    ),
}
WITH_METRICS["dcs"] = WITH_METRICS["dcs"].replace(
    "items: {{type: int, {}}}", "items: {{type: int}}"
)
WITH_METRICS["odcs 3.1"] = WITH_METRICS["odcs 3.0"].replace("v3.0.2", "v3.1.0")


@pytest.mark.parametrize("dialect", WITH_METRICS)
def test_an_argument_that_a_metric_does_not_take_breaks_the_gate(dialect: str) -> None:
    def broken(metric: str) -> bool:
        key = "rule" if dialect == "odcs 3.0" else "metric"
        quality = f"quality: [{{type: library, {key}: {metric}, mustBe: 0}}]"
        found = _read(Path("contract.yaml"), WITH_METRICS[dialect].format(quality))
        assert found.contract is not None
        return any(note.promise is not None for note in found.contract.notes)

    assert [row for row in WRONG_ARGUMENTS.splitlines() if not broken(row)] == []
    assert [row for row in RIGHT_ARGUMENTS.splitlines() if broken(row)] == []


RULES_OF_EACH_KIND = [
    {"type": "text", "description": "as told"},
    {"type": "library", "metric": "rowCount", "mustBeGreaterThan": 10},
    {"type": "sql", "query": "SELECT count(*) FROM o", "mustBeGreaterThan": 10},
    {"type": "custom", "engine": "soda", "implementation": "row_count > 0"},
]
VALUES_OF_RULE_WORDS: dict[str, Any] = {
    "metric": "rowCount",
    "rule": "duplicateCount",
    "query": "SELECT count(*) FROM o",
    "implementation": "row_count > 0",
    "validvalues": ["a"],
    "mustbebetween": [0, 1],
    "mustnotbebetween": [0, 1],
    "map": {"key": {"logicalType": "string"}, "value": {"logicalType": "string"}},
    "items": {"type": "string", "required": True},
    "properties": [{"name": "inner", "required": True}],
    "fields": {"inner": {"type": "string", "required": True}},
    "additionalfields": False,
    "logicaltypeoptions": {"minimum": 0},
    "primarykeyposition": 1,
    "threshold": "1d",
    "timestampfield": "o.ts",
    "sourcetimestampfield": "o.ts",
    "processedtimestampfield": "o.ts",
    "logicaltype": "string",
    "required": True,
    "unique": True,
    "primarykey": True,
    "primary": True,
    "enum": ["a"],
    "pattern": "a",
    "format": "email",
    "references": "o.id",
    "quality": [{"metric": "rowCount", "mustBe": 1}],
    "slaproperties": [{"property": "freshness", "value": 1, "unit": "d", "element": "o.ts"}],
    "servicelevels": {"freshness": {"threshold": "1d"}},
}
"""The values of words of rules; others have the number 5."""
FREE_BELOW = key_words("free below")


def _mappings(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of the mappings in a document whose keys its dialect gives."""
    if isinstance(node, dict):
        if path[-1:] not in (("models",), ("fields",), ("servicelevels",)):
            yield path
        for key, inner in node.items():
            if key not in FREE_BELOW:
                yield from _mappings(inner, (*path, key))
    elif isinstance(node, list):
        for place, inner in enumerate(node):
            yield from _mappings(inner, (*path, place))


@pytest.mark.parametrize("dialect", OPEN)
def test_a_word_of_a_rule_where_it_is_not_read_is_no_extension(dialect: str) -> None:
    contract = yaml.safe_load(OPEN[dialect])
    owner = contract["schema"][0] if dialect == "odcs" else contract["models"]["o"]
    owner["quality"] = RULES_OF_EACH_KIND
    words = sorted(key_words("of a rule", "elsewhere", "checks", "more checks"))
    names = [name for name in sorted(_names(load_schema(dialect))) if folded_word(name) in words]
    assert {"metric", "mustBe", "items", "required"} <= {*names}
    extensions = []
    for path in _mappings(contract):
        edited = copy.deepcopy(contract)
        place = edited
        for step in path:
            place = place[step]
        added = [name for name in names if name not in place]
        place |= {name: VALUES_OF_RULE_WORDS.get(folded_word(name), 5) for name in added}
        found = _read(Path("contract.yaml"), yaml.safe_dump(edited))
        assert found.contract is not None
        inserted = tuple(show_path((*path, name)) for name in added)
        extensions += [
            note.clause.path
            for note in found.contract.notes
            if note.clause.path.startswith(inserted) and "extension" in note.reason
        ]
    assert extensions == []


def _names(schema: Any) -> Iterator[str]:
    """The names of all properties in a schema."""
    if isinstance(schema, dict):
        for key, inner in schema.items():
            if key == "properties" and isinstance(inner, dict):
                yield from inner
            yield from _names(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _names(inner)
