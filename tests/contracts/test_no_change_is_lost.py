"""Every clause of every example matters: a changed contract differs."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.contracts.diff import diff
from dqx_airflow.contracts.diff.kinds import KINDS
from dqx_airflow.contracts.document import Path as Keys
from dqx_airflow.contracts.document import leaves, plain_value, show_path
from dqx_airflow.contracts.model import Contract
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.contracts.versions import Bump
from dqx_airflow.contracts.yaml_reader import read_document
from dqx_airflow.values import SourceFile
from tests.contracts.contract_edits import base_of
from tests.contracts.dialect_parts import contracts_of

EXAMPLES = sorted((Path(__file__).parent / "examples").rglob("*.yaml"))
OF_DOCUMENTATION = {name for name, kind in KINDS.items() if kind.bump is Bump.PATCH}


def contract_of(data: Any) -> Contract | None:
    found = read_contract(SourceFile("example.json", json.dumps(data)))
    return None if found.errors else found.contract


def _texts() -> dict[str, str]:
    """Contracts of all dialects: their parts, and those at the top of the cases of changes."""
    texts = {path.stem: path.read_text("utf-8") for path in EXAMPLES}
    for path in (Path(__file__).parent / "diffs").glob("*_changes.md"):
        texts[path.stem] = base_of(path)
    for dialect in ("odcs", "fabric", "product"):
        texts |= {f"{dialect}: {name}": text for name, text in contracts_of(dialect).items()}
    return texts


TEXTS = _texts()


@cache
def document_of(name: str) -> Any:
    """The keys and items of a document; None if others refer to it, and it is no contract."""
    root = read_document(SourceFile(name, TEXTS[name])).root
    data = plain_value(root) if root is not None else None
    return data if contract_of(data) is not None else None


@pytest.mark.few(8, apart=True)
@pytest.mark.parametrize(
    "step", [13, pytest.param(1, marks=[pytest.mark.slow, pytest.mark.nightly])]
)
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_changed_clause_is_reported(path: Path, step: int) -> None:
    root = read_document(SourceFile(path.name, path.read_text(encoding="utf-8"))).root
    assert root is not None
    data = plain_value(root)
    before = contract_of(data)
    if before is None:
        pytest.skip("what others refer to, and no contract")
    silent = [
        show_path(keys)
        for keys, after in changed(data, step)
        if not diff(before, after).changes and before.version == after.version
    ]
    assert not silent, "\n".join(silent)


@pytest.mark.few(8, apart=True)
@pytest.mark.parametrize("name", [*TEXTS][:21])
def test_what_is_no_longer_checked_is_no_change_of_documentation(name: str) -> None:
    """One key or item in 29 is deleted with all below it."""
    data = document_of(name)
    if data is None:
        pytest.skip("what others refer to, and no contract")
    _require_reported(data, islice(keys_below(data), 0, None, 29))


@pytest.mark.slow
@pytest.mark.nightly
def test_what_is_no_longer_checked_is_reported_whatever_is_deleted() -> None:
    """Each night deletes other keys and items, as many of each format."""
    seed = random.SystemRandom().randrange(10**9)
    print(f"seed {seed}")
    drawn = random.Random(seed)
    of_formats: dict[str, list[tuple[str, Keys]]] = {}
    documents = {name: data for name in TEXTS if (data := document_of(name)) is not None}
    for name, data in documents.items():
        contract = contract_of(data)
        assert contract is not None
        places = of_formats.setdefault(contract.dialect, [])
        places += [(name, keys) for keys in keys_below(data)]
    chosen: dict[str, list[Keys]] = {}
    for places in of_formats.values():
        for name, keys in drawn.sample(places, min(_KEYS_OF_A_FORMAT, len(places))):
            chosen.setdefault(name, []).append(keys)
    for name, some in chosen.items():
        _require_reported(documents[name], some)
    print(f"{sum(map(len, chosen.values()))} keys and items of {len(chosen)} documents")


_KEYS_OF_A_FORMAT = 300
"""How many keys and items of each format are deleted in a night."""


def _require_reported(data: Any, places: Iterable[Keys]) -> None:
    """Fails if an assertion goes with a key or item, and only documentation seems to change."""
    before = contract_of(data)
    assert before is not None
    checked = assertions(before)
    silent = []
    for keys in places:
        after = contract_without(data, keys)
        if after is None or not checked - assertions(after):
            continue
        kinds = {change.kind.name for change in diff(before, after).changes}
        if not kinds - OF_DOCUMENTATION:
            silent.append(f"{show_path(keys)}: {', '.join(sorted(kinds)) or 'nothing'}")
    assert not silent, "\n".join(silent)


def assertions(contract: Contract) -> set[str]:
    """The assertions of a contract, without names and without the order of columns; that a column
    may have any type says no more than that it exists."""
    lines = map(str.strip, compile_contract(contract).text.splitlines())
    kept = (line for line in lines if line and not line.startswith(_NO_CHECK))
    return {
        " ".join(sorted(line.split()))
        for line in map(_without_marks, kept)
        if not line.endswith("fits any")
    }


def _without_marks(line: str) -> str:
    return re.sub(r"[\[\](),]", " ", line)


_NO_CHECK = ("#", "suite", "check", "name ", "tags", "description", "meta")


def contract_without(data: Any, keys: Keys) -> Contract | None:
    """The contract without a key, or an item of a list; None if it is none."""
    other = deepcopy(data)
    parent = other
    for key in keys[:-1]:
        parent = parent[key]
    parent.pop(keys[-1])
    return contract_of(other)


def keys_below(node: Any, above: Keys = ()) -> Iterator[Keys]:
    """The paths of all keys and items below a node."""
    inner = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in inner:
        path = (*above, key)
        yield path
        if isinstance(value, dict | list):
            yield from keys_below(value, path)


def changed(data: Any, step: int) -> Iterator[tuple[Keys, Contract]]:
    """The contract with one clause changed, for each clause that can say something else.

    With a step, for one clause in so many.
    """
    root = read_document(SourceFile("example.json", json.dumps(data))).root
    assert root is not None
    for leaf in islice(leaves(root), 0, None, step):
        other = deepcopy(data)
        parent = other
        for key in leaf.path[:-1]:
            parent = parent[key]
        value = parent[leaf.path[-1]]
        if isinstance(value, bool):
            parent[leaf.path[-1]] = not value
        elif isinstance(value, int | float):
            parent[leaf.path[-1]] = value + 1
        elif isinstance(value, str):
            parent[leaf.path[-1]] = f"{value}x9"
        else:
            continue
        found = contract_of(other)
        if found is not None:
            yield leaf.path, found
