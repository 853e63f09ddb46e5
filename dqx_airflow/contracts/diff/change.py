"""The results of comparing two contracts: changes, and the required bump."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from dqx_airflow.contracts.dialects import reader_of
from dqx_airflow.contracts.diff.kinds import ChangeKind, View
from dqx_airflow.contracts.model import Contract
from dqx_airflow.contracts.versions import (
    Bump,
    bump_between,
    is_enough,
    next_version,
    version_of,
)
from dqx_airflow.values import Span


class ChangeClass(str, Enum):
    """The severity of a change for the consumers of the contract."""

    BREAKING = "breaking"
    COMPATIBLE = "compatible"
    DOCUMENTATION = "documentation"

    __str__ = str.__str__  # prints as its value, on every Python


_CLASSES = {
    Bump.MAJOR: ChangeClass.BREAKING,
    Bump.MINOR: ChangeClass.COMPATIBLE,
    Bump.PATCH: ChangeClass.DOCUMENTATION,
}


@dataclass(frozen=True, slots=True)
class Change:
    """One change. `path` is `model.column.rule`, as in the names of assertions.

    `old` and `new` are the texts there, None if there is none. `bump` is that of the kind, or an
    override. `column` is the path of the column, None if it is about none.
    """

    kind: ChangeKind
    path: str
    message: str
    bump: Bump
    old: str | None = None
    new: str | None = None
    old_span: Span | None = field(default=None, compare=False)
    new_span: Span | None = field(default=None, compare=False)
    model: str | None = None
    column: str | None = None

    @property
    def change_class(self) -> ChangeClass:
        return _CLASSES[self.bump]

    @property
    def breaks(self) -> tuple[View, ...]:
        return self.kind.breaks if self.bump is Bump.MAJOR else ()

    @property
    def reason(self) -> str:
        return self.kind.reason

    def as_plain(self) -> Mapping[str, Any]:
        """The change in machine-readable form."""
        return {
            "kind": self.kind.name,
            "class": self.change_class.value,
            "bump": self.bump.word,
            "breaks": [view.value for view in self.breaks],
            "path": self.path,
            "message": self.message,
            "reason": self.reason,
            "old": self.old,
            "new": self.new,
            "old_span": _plain_span(self.old_span),
            "new_span": _plain_span(self.new_span),
        }


@dataclass(frozen=True, slots=True)
class Diff:
    """All changes between two versions of a contract, breaking ones first."""

    old: Contract
    new: Contract
    changes: tuple[Change, ...]

    @property
    def due(self) -> Bump:
        """The bump that the changes require."""
        return max((change.bump for change in self.changes), default=Bump.NONE)

    @property
    def declared(self) -> Bump | None:
        """The declared bump of the versions; None if one of them is not a valid version."""
        old, new = version_of(self.old.version), version_of(self.new.version)
        return bump_between(old, new) if old is not None and new is not None else None

    @property
    def breaking(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.bump is Bump.MAJOR)

    @property
    def shortfall(self) -> str | None:
        """Why the declared version is too low for the changes; None if it is not."""
        if reader_of(self.new.dialect).versions_models:
            return self._same_signature()
        old, new = version_of(self.old.version), version_of(self.new.version)
        if new is None or old is None:
            return self._unread_version(old is None)
        if new < old:
            return f"the version goes back, from {self.old.version} to {self.new.version}"
        if is_enough(old, new, self.due):
            return None
        moves = (
            f"stays {self.new.version}"
            if new == old
            else f"goes from {self.old.version} to {self.new.version}"
        )
        wanted = next_version(old, self.due)
        return f"the version {moves}, and a {self.due.word} bump is required: {wanted} or higher"

    @property
    def falls_short(self) -> bool:
        return self.shortfall is not None

    def as_plain(self) -> Mapping[str, Any]:
        """The diff in machine-readable form."""
        return {
            "id": self.new.id,
            "old_version": self.old.version,
            "new_version": self.new.version,
            "due": self.due.word,
            "declared": self.declared.word if self.declared is not None else None,
            "falls_short": self.falls_short,
            "shortfall": self.shortfall,
            "changes": [change.as_plain() for change in self.changes],
        }

    def _same_signature(self) -> str | None:
        """The note about a DataLex manifest, whose contracts have versions of their own: a model
        with the same name is a contract of the same version. Entities, which are bound to tables,
        have neither an id as their title nor a version."""
        before, after = (
            {model.name for model in contract.models if model.title is not None}
            for contract in (self.old, self.new)
        )
        kept = before & after
        removed = sorted(before - after)
        broken = dict.fromkeys(
            change.model or change.path.partition(".signature")[0]
            for change in self.breaking
            if change.model in kept or change.kind.name == "input_changed"
        )
        if removed:
            return (
                f"{', '.join(removed)}: removed while consumers may still pin it: "
                "keep it until no consumer does"
            )
        if not broken:
            return None
        return (
            f"{', '.join(broken)}: raise the version of each breaking contract, "
            "and keep the previous one"
        )

    def _unread_version(self, is_old: bool) -> str | None:
        """The note about versions that are not numbers: if neither is, any other version is
        sufficient."""
        before, after = self.old.version, self.new.version
        if self.due is Bump.NONE:
            return None
        if after is None:
            return f"the contract has no version, and a {self.due.word} bump is required"
        if before is None:
            return None
        if before == after:
            return f"the version stays {after}, and a {self.due.word} bump is required"
        if self.due is not Bump.MAJOR:
            return None
        version = before if is_old else after
        return f"a major bump is required, and '{version}' does not show how the version changed"


def _plain_span(span: Span | None) -> Mapping[str, Any] | None:
    return None if span is None else {"file": span.file, "line": span.line, "column": span.column}
