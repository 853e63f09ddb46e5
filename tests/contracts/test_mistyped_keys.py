"""Typing errors in the keys of contracts: every dialect, level and kind of error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from second_lane import few_first

from dqx_airflow.contracts.enforcement.lint import RULES, lint
from dqx_airflow.contracts.model import UnknownKey
from dqx_airflow.contracts.read import ReadContract, read_contract
from dqx_airflow.contracts.source.references import FolderReader
from dqx_airflow.contracts.source.yaml_document import Mapping, Node, Sequence
from dqx_airflow.values import SourceFile

HERE = Path(__file__).parent / "examples"
EXAMPLES = sorted(path for path in HERE.rglob("*.yaml") if path.parent.name != "shared")
ONE_EACH = {path.parent: path for path in reversed(EXAMPLES)}
"""The first example of each standard, which the default lane has."""
_STEP = {"odcs": 3, "dcs": 2, "fabric": 1, "product": 1}
"""Of the keys of an example every so many are tried: its standard's schema takes its time."""
_NAMED_BY_USERS = re.compile(
    r"^(models|definitions|servers|links)$|\.(fields|config|implementation|specification|arguments|retention"
    r"|authoritativeDefinitions|links|customProperties|completeness|uniqueness|producer)$"
    r"|customProperties|(implementation|specification|examples|lineage)\b|^contract\.sla$"
)
"""The mappings whose keys are names, or are those of other tools."""


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


@pytest.mark.parametrize(
    "path",
    few_first(sorted(EXAMPLES, key=lambda path: path not in ONE_EACH.values()), len(ONE_EACH)),
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
