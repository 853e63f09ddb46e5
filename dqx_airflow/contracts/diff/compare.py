"""Compares two versions of a contract: every change, with the bump that it requires."""

from __future__ import annotations

from dataclasses import replace

from dqx_airflow.contracts.dialects import reader_of
from dqx_airflow.contracts.diff.change import Change, Diff
from dqx_airflow.contracts.diff.clauses import compare_clauses
from dqx_airflow.contracts.diff.columns import Habits
from dqx_airflow.contracts.diff.metadata import (
    compare_identity,
    compare_lifecycles,
    compare_parties,
)
from dqx_airflow.contracts.diff.models import compare_models
from dqx_airflow.contracts.model import Contract
from dqx_airflow.contracts.versions import Bump

_COME_AND_GO = {
    *("column_added", "required_column_added", "column_removed", "column_renamed"),
    *("model_added", "model_removed", "model_renamed", "server_added", "server_changed"),
    "consumers_changed",
}
_SEMANTIC = {"semantic_changed", "semantic_removed", "grain_changed"}


def diff(old: Contract, new: Contract, *, semantic: Bump = Bump.MAJOR) -> Diff:
    """The changes between two versions of a contract, those with the largest bump first.

    :param semantic: the bump for a change of the meaning of a column, if only its wording has
        changed.
    """
    habits = Habits(
        has_semantics=any(reader_of(contract.dialect).weighs_meaning for contract in (old, new)),
        needs_every_column=reader_of(new.dialect).versions_models,
        renames=new.renames,
    )
    changes = [
        *compare_identity(old, new),
        *compare_models(old.models, new.models, habits),
        *compare_parties(old, new),
        *compare_lifecycles(old, new),
    ]
    if old.dialect is new.dialect:
        # In another dialect everything is written elsewhere, even if it means the same.
        changes += compare_clauses(old, new, changes, _come_and_gone(changes))
    weighed = (
        replace(change, bump=semantic) if change.kind.name in _SEMANTIC else change
        for change in changes
    )
    return Diff(old, new, tuple(sorted(weighed, key=lambda change: -change.bump)))


def _come_and_gone(changes: list[Change]) -> frozenset[str]:
    """The names of what is in only one of the versions, or renamed."""
    names = set()
    for change in changes:
        if change.kind.name in _COME_AND_GO:
            names |= {change.old, change.new} - {None}
    return frozenset(name for name in names if name is not None)
