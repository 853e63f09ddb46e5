"""Every clause of every example matters: a changed contract differs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.contracts.diff import diff
from dqx_airflow.contracts.document import Path as Keys
from dqx_airflow.contracts.document import leaves, plain_value, show_path
from dqx_airflow.contracts.model import Contract
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.contracts.yaml_reader import read_document
from dqx_airflow.values import SourceFile

EXAMPLES = sorted((Path(__file__).parent / "examples").rglob("*.yaml"))


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


def contract_of(data: Any) -> Contract | None:
    found = read_contract(SourceFile("example.json", json.dumps(data)))
    return None if found.errors else found.contract
