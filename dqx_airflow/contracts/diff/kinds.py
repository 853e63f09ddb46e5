"""Changes between two versions of a contract, and their kinds.

The kinds are rows of `kinds.md`, which follow seed 003's table where it has one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.resources import files

from dqx_airflow.contracts import model as elements
from dqx_airflow.contracts.dialects import reader_of
from dqx_airflow.contracts.versions import Bump, bump_between, is_enough, next_version, version_of
from dqx_airflow.values import Span, WordEnum

_CLASSES = {Bump.MAJOR: "breaking", Bump.MINOR: "compatible", Bump.PATCH: "documentation"}
"""The names of the severity of a change for consumers of the contract, by its bump."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change. `path` is `model.column.rule`, as in the names of assertions.

    `old` and `new` are the texts at the path, None if there is none. `bump` is the bump of the
    kind, or an override. `column` is the path of the column, None if it is not about a column.
    """

    kind: ChangeKind
    message: str
    bump: Bump
    old: str | None
    new: str | None
    path: str
    old_span: Span | None = field(default=None, compare=False)
    new_span: Span | None = field(default=None, compare=False)
    model: str | None = None
    column: str | None = None

    @property
    def change_class(self) -> str:
        return _CLASSES[self.bump]

    @property
    def breaks(self) -> tuple[View, ...]:
        return self.kind.breaks if self.bump is Bump.MAJOR else ()


@dataclass(frozen=True, slots=True)
class Diff:
    """All changes between two versions of a contract, breaking ones first."""

    old: elements.Contract
    new: elements.Contract
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
        """The reason why the declared version is too low for the changes; None if it is not."""
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
        """The note about versions that are not numbers; None if the version is sufficient: if
        neither is a number, any other version is."""
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


class View(WordEnum):
    """Whom a change breaks: the readers or the writers of the data."""

    CONSUMER = "consumer"
    PRODUCER = "producer"


@dataclass(frozen=True, slots=True)
class ChangeKind:
    """A kind of change: the bump that it requires, whom it can break, and why."""

    name: str
    what: str
    bump: Bump
    reason: str
    breaks: tuple[View, ...] = ()


def kinds_table() -> str:
    """All kinds as Markdown: a heading and a table for each group."""
    return files(__package__).joinpath("kinds.md").read_text("utf-8").rstrip()


def _kind(row: str) -> ChangeKind:
    """The kind in a row of the table: name, description, bump, whom it breaks, why."""
    name, what, bump, breaks, reason = (cell.strip() for cell in row.strip("|").split("|"))
    views = tuple(view for view in View if f"{view}s" in breaks)
    return ChangeKind(name.strip("`"), what, Bump[bump.upper()], reason, views)


_ROWS = (line for line in kinds_table().splitlines() if line.startswith("| `"))
KINDS = {kind.name: kind for kind in map(_kind, _ROWS)}
"""The kinds by their names, from `kinds.md`. `docs/review-changes.md` has the same table."""
