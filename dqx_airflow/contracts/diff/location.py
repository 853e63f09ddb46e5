"""The location of a change: the path and the spans shared by all changes of one element."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dqx_airflow.contracts.diff.change import Change
from dqx_airflow.contracts.diff.kinds import KINDS
from dqx_airflow.values import Span


@dataclass(frozen=True, slots=True)
class ContractLocation:
    """An element of a contract, in both versions; a span is None if it is missing."""

    path: str
    old_span: Span | None
    new_span: Span | None
    model: str | None = None
    column: str | None = None

    def below(self, name: str, old_span: Span | None, new_span: Span | None) -> ContractLocation:
        """The location of a part of the element."""
        path = f"{self.path}.{name}" if self.path else name
        return replace(self, path=path, old_span=old_span, new_span=new_span)

    def change(
        self, kind: str, message: str, old: str | None = None, new: str | None = None
    ) -> Change:
        change_kind = KINDS[kind]
        return Change(
            change_kind,
            self.path,
            message,
            change_kind.bump,
            old,
            new,
            self.old_span,
            self.new_span,
            self.model,
            self.column,
        )
