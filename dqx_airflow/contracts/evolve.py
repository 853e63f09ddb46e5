"""The statements that migrate a Delta table from one version of its contract to the next.

Compatible changes are made at once. Breaking changes are spread over releases, so that readers have
time: the successor is added, then filled while the old column is deprecated, and in the release
with the major bump the old column is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import IntEnum
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from dqx_airflow.contracts.demands import one_line, printable_line
from dqx_airflow.contracts.diff import Change, Diff
from dqx_airflow.contracts.diff.columns import is_delta_widening
from dqx_airflow.contracts.export.schemas import column_comment, column_definition, table_type
from dqx_airflow.contracts.model import Field, Model
from dqx_airflow.contracts.versions import Bump, next_version, version_of
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.metrics.types import Family, family_of


class Phase(IntEnum):
    """The phase of a migration in which a step is due."""

    ADD = 0
    FILL = 1
    DROP = 2


@dataclass(frozen=True, slots=True)
class EvolutionStep:
    """The step for a change, in words and as Spark SQL statements."""

    phase: Phase
    what: str
    statements: tuple[str, ...] = ()


def _step(phase: Phase, what: str, *statements: str) -> EvolutionStep:
    return EvolutionStep(phase, what, statements)


_add = partial(_step, Phase.ADD)
_fill = partial(_step, Phase.FILL)
_drop = partial(_step, Phase.DROP)


@dataclass(frozen=True, slots=True)
class EvolutionRelease:
    """The steps of one release; `condition` must be true before."""

    version: str
    condition: str
    steps: tuple[EvolutionStep, ...]


@dataclass(frozen=True, slots=True)
class Evolution:
    """The migration of a table from one version to another."""

    title: str
    releases: tuple[EvolutionRelease, ...]

    def as_sql(self) -> str:
        """An SQL script, with everything but statements in comments."""
        # No comment can end early.
        return filled(__package__, "evolution.txt", evolution=self, line=printable_line)


SIGNS_OF_NO_FILE = frozenset(" ,;{}()\n\t=")
"""Characters that the name of a column in a file must not contain."""


def steps_of(changes: Iterable[Change], scene: Scene) -> Iterator[EvolutionStep]:
    """The steps for the changes of one model. All changes of a column share one successor."""
    succeeded: set[str | None] = set()
    done: set[tuple[Phase, str]] = set()
    # A column is dropped after the partitions: the partitions of the old table may need it.
    for change in sorted(changes, key=lambda item: item.kind.name != "partition_changed"):
        make = _STEPS.get(change.kind.name, _nothing_to_alter)
        if make not in (_repartitioned, _nothing_to_alter) and _is_undescribed(change, scene):
            make = _kept
        if make in (_renamed, _replaced):
            if change.column in succeeded:
                continue
            succeeded.add(change.column)
        for step in make(change, scene):
            # A property stays set.
            kept = tuple(text for text in step.statements if (step.phase, text) not in done)
            done.update((step.phase, text) for text in kept if "SET TBLPROPERTIES" in text)
            yield replace(step, statements=kept)


class TableColumn(NamedTuple):
    """A column, and the names on its path in Delta."""

    item: Field
    parts: tuple[str, ...]

    @property
    def path(self) -> str:
        return self.item.path

    @property
    def name(self) -> str:
        """Its quoted name."""
        return quote_name(*self.parts)

    @property
    def type(self) -> str:
        return table_type(self.item)


@dataclass(frozen=True, slots=True)
class Scene:
    """The context of the steps of one table.

    `old` and `new` are the columns by their paths. `partitions` are the partition columns of the
    new table, `old_partitions` the current ones. `major` is the number of the breaking version.
    """

    table: str
    name: str
    old: Mapping[str | None, TableColumn]
    new: Mapping[str | None, TableColumn]
    partitions: tuple[str, ...]
    old_partitions: tuple[str, ...]
    major: str

    @classmethod
    def of(cls, old: Model, new: Model, table: str, major: str) -> Scene:
        columns = _by_path(old), _by_path(new)
        return cls(quoted_table(table), table, *columns, new.partition_by, old.partition_by, major)

    def alter(self, change: str) -> str:
        return f"ALTER TABLE {self.table} {change}"

    def alter_column(self, column: TableColumn, change: str) -> str:
        return self.alter(f"ALTER COLUMN {column.name} {change}")

    def set_property(self, key: str, value: str) -> str:
        return self.alter(f"SET TBLPROPERTIES ({quote_literal(key)} = {quote_literal(value)})")

    def add(self, column: TableColumn) -> list[str]:
        text = column_comment(column.item)
        comment = f" COMMENT {quote_literal(text)}" if text else ""
        statement = self.alter(f"ADD COLUMNS ({column.name} {column.type}{comment})")
        is_mapped = SIGNS_OF_NO_FILE & set(column.parts[-1])
        return [self.mapping(), statement] if is_mapped else [statement]

    def mapping(self) -> str:
        """The statement that enables column mapping, which separates the names of columns from
        their names in files: to drop or rename columns, or to allow any characters in a name."""
        return self.set_property("delta.columnMapping.mode", "name")

    def not_null(self, column: TableColumn) -> EvolutionStep:
        # Delta does not allow changing a nullable column to NOT NULL.
        check = f"CHECK ({column.name} IS NOT NULL)"
        statement = self.alter(f"ADD CONSTRAINT {_constraint_of(column)} {check}")
        return _drop(f"{column.path} must not be NULL", statement)

    def nullable(self, column: TableColumn) -> EvolutionStep:
        """The step after which a column may be NULL, whichever of the two forbade it."""
        dropped = self.alter(f"DROP CONSTRAINT IF EXISTS {_constraint_of(column)}")
        statement = self.alter_column(column, "DROP NOT NULL")
        return _add(f"{column.path} may be NULL", dropped, statement)

    def drop(self, message: str, column: TableColumn, *statements: str) -> EvolutionStep:
        dropped = self.alter(f"DROP COLUMN {column.name}")
        return _drop(message, self.mapping(), dropped, *statements)

    def rewrite(self, message: str, columns: str, partitions: Iterable[str]) -> EvolutionStep:
        """The step that rewrites the table with these columns and partitions, under its name.

        Delta does not drop a partition column.
        """
        by = _partitioned_by(partitions)
        staged = quoted_table(f"{self.name}_repartitioned")
        old = quoted_table(f"{self.name}_before")
        # The properties of the old table are not kept, and its columns may have any name.
        kept = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
        source = f"SELECT {columns} FROM {self.table}"  # noqa: S608
        return _drop(
            f"{message}, in a maintenance window",
            f"CREATE TABLE {staged} USING DELTA{by} {kept} AS {source}",
            f"ALTER TABLE {self.table} RENAME TO {old}",
            f"ALTER TABLE {staged} RENAME TO {self.table}",
        )

    def fill(self, column: TableColumn, source: str, message: str) -> EvolutionStep:
        if {"element", "key", "value"} & set(column.parts[:-1]):
            return _fill(f"{message}: the producer rewrites the rows")
        name = column.name
        statement = f"UPDATE {self.table} SET {name} = {source} WHERE {name} IS NULL"  # noqa: S608
        return _fill(f"{message}, and the producer in all writes", statement)

    def deprecate(self, column: TableColumn, advice: str) -> EvolutionStep:
        notice = f"DEPRECATED until version {self.major}: {advice}."
        comment = " ".join(filter(None, (notice, column_comment(column.item))))
        message = f"{column.path} is deprecated; check who still reads it"
        statement = self.alter_column(column, f"COMMENT {quote_literal(comment)}")
        return _fill(message, statement)


def _constraint_of(column: TableColumn) -> str:
    """The name of the constraint by which a column must not be NULL."""
    return quote_name(f"{'_'.join(column.parts)}_not_null")


def _added(change: Change, scene: Scene) -> Iterator[EvolutionStep]:
    column = scene.new[change.column]
    statements = scene.add(column)
    if column.item.has_default and column.item.default is not None:
        statements += _defaults(column, scene)
    yield _add(change.message, *statements)


def _added_required(change: Change, scene: Scene) -> Iterator[EvolutionStep]:
    column = scene.new[change.column]
    yield _add(f"add {column.path}, which may be NULL for now", *scene.add(column))
    yield _fill(f"all producers fill {column.path}; set a value in older rows")
    if not column.item.is_nullable:
        yield scene.not_null(column)


def _removed(change: Change, scene: Scene) -> Iterator[EvolutionStep]:
    column = scene.old[change.column]
    yield scene.deprecate(column, "it will be dropped")
    yield scene.drop(change.message, column)


def _renamed(change: Change, scene: Scene) -> Iterator[EvolutionStep]:
    column = scene.new[change.column]
    before = next(
        old
        for old in scene.old.values()
        if old.item.name == change.old and old.parts[:-1] == column.parts[:-1]
    )
    yield _add(f"add {column.path}, which replaces {before.path}", *scene.add(column))
    yield scene.fill(column, before.name, f"fill {column.path} from the old column")
    yield scene.deprecate(before, f"use {column.path}")
    if before.path in scene.old_partitions and column.path in scene.partitions:
        message = f"rewrite the table without {before.path}"
        yield scene.rewrite(message, f"* EXCEPT ({before.name})", scene.partitions)
    else:
        yield scene.drop(f"drop {before.path}", before)


def _widened(change: Change, scene: Scene) -> Iterator[EvolutionStep]:
    column = scene.new[change.column]
    before, after = scene.old.get(change.column, column).type, column.type
    if before == after:
        yield _add(f"{change.message}: the table has this type already")
    elif (is_delta := is_delta_widening(before, after)) or after.startswith(("varchar", "string")):
        allowed = [scene.set_property("delta.enableTypeWidening", "true")] if is_delta else []
        yield _add(change.message, *allowed, scene.alter_column(column, f"TYPE {after}"))
    else:
        yield from _replaced(change, scene)


def _replaced(change: Change, scene: Scene) -> Iterator[EvolutionStep]:
    """The steps for a column with another meaning or type: a successor replaces it."""
    column = scene.new[change.column]
    if _is_part(column):
        yield from _kept(change, scene)
        return
    before = scene.old.get(change.column, column)  # a renamed one is only found by its new name
    *above, name = column.parts
    successor = TableColumn(column.item, (*above, f"{name}_v{scene.major}"))
    shown = ".".join(successor.parts)
    spark = column.type
    yield _add(f"{change.message}: {shown} takes its place", *scene.add(successor))
    if change.kind.name not in _OTHER_MEANING and _can_be_cast(before.type, spark):
        message = f"fill {shown}; values that do not fit become NULL: count them first"
        yield scene.fill(successor, f"try_cast({column.name} AS {spark})", message)
    else:
        yield _fill(f"the producer fills {shown} with the new meaning")
    yield scene.deprecate(TableColumn(before.item, column.parts), f"use {shown}")
    if column.path in scene.partitions:
        columns = f"* EXCEPT ({column.name}, {successor.name}), {successor.name} AS {column.name}"
        message = f"rewrite the table with {shown} under the name"
        yield scene.rewrite(message, columns, scene.partitions)
    else:
        rename = scene.alter(f"RENAME COLUMN {successor.name} TO {quote_name(name)}")
        yield scene.drop(f"{shown} gets the name", column, rename)


_OTHER_MEANING = ("semantic_changed", "unit_changed")
_OTHER_VALUES = (*_OTHER_MEANING, "type_changed", "type_widened")


def _can_be_cast(old: str, new: str) -> bool:
    """True if Spark converts values of one type to another, if only via strings."""
    families = {family_of(old), family_of(new)}
    return Family.OTHER not in families and (len(families) == 1 or Family.TEXT in families)


def _rule(change: Change, scene: Scene) -> Iterator[EvolutionStep]:
    """The rules that a table enforces itself: NOT NULL, and the digits of its type."""
    match change.path.rpartition(".")[2], change.kind.name:
        case "required", _:
            yield from _required(change, scene)
        case "digits", "rule_loosened":
            yield from _widened(change, scene)
        case "digits", "rule_tightened" | "rule_changed":
            yield from _replaced(change, scene)
        case _:
            yield from _nothing_to_alter(change, scene)


def _required(change: Change, scene: Scene) -> Iterator[EvolutionStep]:
    column = scene.new[change.column]
    if _is_part(column):
        yield from _nothing_to_alter(change, scene)
    elif change.bump is Bump.MAJOR:
        yield _fill(f"set a value in all rows of {column.path}: count NULL first")
        yield scene.not_null(column)
    else:
        yield scene.nullable(column)


def _described(change: Change, scene: Scene) -> Iterator[EvolutionStep]:
    if change.column is not None:
        column = scene.new[change.column]
        comment = quote_literal(column_comment(column.item) or "")
        yield _add(change.message, scene.alter_column(column, f"COMMENT {comment}"))
    elif change.new is not None:
        statement = f"COMMENT ON TABLE {scene.table} IS {quote_literal(one_line(change.new))}"
        yield _add(change.message, statement)


def _default(change: Change, scene: Scene) -> Iterator[EvolutionStep]:
    column = scene.new[change.column]
    if column.item.has_default and column.item.default is not None:
        yield _add(change.message, *_defaults(column, scene))
    else:
        yield _add(change.message, scene.alter_column(column, "DROP DEFAULT"))


def _defaults(column: TableColumn, scene: Scene) -> Iterator[str]:
    """The statements that set the default of a column, as an expression of its type."""
    value = column.item.default
    if isinstance(value, bool) or (isinstance(value, str) and column.item.type == "string"):
        expression = quote_literal(value)
    else:
        text = value if isinstance(value, str) else format(Decimal(str(value)), "f")
        expression = f"CAST({quote_literal(text)} AS {column.type})"
    yield scene.set_property("delta.feature.allowColumnDefaults", "supported")
    yield scene.alter_column(column, f"SET DEFAULT {expression}")


def _repartitioned(change: Change, scene: Scene) -> Iterator[EvolutionStep]:
    columns = [part.strip() for part in (change.new or "").split(",") if part.strip() != "none"]
    yield scene.rewrite(f"{change.message}: rewrite the table", "*", columns)


_PART = re.compile(r"\[\]|\{key\}|\{value\}")
"""The items of an array, or the keys or values of a map, in the path of a column."""


def _is_part(column: TableColumn) -> bool:
    return column.path.endswith(("[]", "{key}", "{value}"))


def _is_undescribed(change: Change, scene: Scene) -> bool:
    """True for a change of items, keys or values that only one of the versions describes, and of
    anything in them."""
    path = change.column or ""
    parts = [path[: found.end()] for found in _PART.finditer(path)]
    return any(part not in scene.old or part not in scene.new for part in parts)


def _kept(change: Change, _scene: Scene) -> Iterator[EvolutionStep]:
    """The steps for items, keys or values, of which a table keeps what it has: it replaces whole
    columns only."""
    if change.kind.name in _OTHER_VALUES:
        advice = "replace the whole column if the table has another type"
        yield _drop(f"{change.message}; no statement: {advice}")


def _nothing_to_alter(change: Change, _scene: Scene) -> Iterator[EvolutionStep]:
    if change.bump is Bump.MAJOR:
        message = f"{change.path}: {change.message}; no statement: the data has to change first"
        yield _drop(message)


_STEPS: dict[str, Callable[[Change, Scene], Iterator[EvolutionStep]]] = {
    "column_added": _added,
    "required_column_added": _added_required,
    "column_removed": _removed,
    "column_renamed": _renamed,
    "type_widened": _widened,
    **dict.fromkeys(("type_changed", "semantic_changed", "unit_changed"), _replaced),
    **dict.fromkeys(("rule_tightened", "rule_changed", "rule_loosened", "rule_removed"), _rule),
    **dict.fromkeys(("wording_corrected", "description_changed", "grain_changed"), _described),
    **dict.fromkeys(("default_added", "default_changed", "default_removed"), _default),
    "needed_default_removed": _default,
    "partition_changed": _repartitioned,
}


def _by_path(model: Model) -> Mapping[str | None, TableColumn]:
    """The columns, and those within them."""
    ways = (way for column in model.fields for way in column.ways())
    return {way[-1].path: TableColumn(way[-1], tuple(_names_on(way))) for way in ways}


def _names_on(way: tuple[Field, ...]) -> Iterator[str]:
    yield way[0].name
    for outer, inner in pairwise(way):
        parts = {id(outer.items): "element", id(outer.keys): "key", id(outer.values): "value"}
        yield parts.get(id(inner), inner.name)


def _partitioned_by(paths: Iterable[str]) -> str:
    columns = ", ".join(quote_name(path.strip("`")) for path in paths)
    return f" PARTITIONED BY ({columns})" if columns else ""


def quoted_table(name: str) -> str:
    """The name of a table in SQL: each of its parts in backticks."""
    return quote_name(*name.split("."))


def evolution(diff: Diff, model: Model, table: str) -> Evolution:
    """The releases of the migration of a table.

    :param model: the new version of a model.
    :param table: the table in the catalog, its parts separated by dots.
    """
    title = f"{diff.new.id} {diff.old.version} → {diff.new.version}, table {table}"
    before = _model_before(diff, model)
    if before is None:
        create = _add(f"{model.name} is new", _create(model, table))
        steps = (create, *_unknown_partitions(model))
        return Evolution(title, (EvolutionRelease(str(diff.new.version), "", steps),))
    last = version_of(_release_names(diff)[2])
    scene = Scene.of(before, model, table, str(last.major) if last is not None else "next")
    changes = [change for change in diff.changes if change.model == model.name]
    return Evolution(title, tuple(_releases(diff, list(steps_of(changes, scene)))))


def _model_before(diff: Diff, model: Model) -> Model | None:
    renamed = (change for change in diff.changes if change.kind.name == "model_renamed")
    old_names = {change.new: change.old for change in renamed}
    return diff.old.model(old_names.get(model.name) or model.name)


def versioned_evolution(diff: Diff, model: Model, table: str) -> Evolution:
    """The migration with a table for each major version, and a view of the current one.

    Compatible changes are made in the table of the version.
    """
    old = version_of(diff.old.version)
    before = f"{table}_v{old.major if old is not None else diff.old.version}"
    if not diff.breaking:
        return evolution(diff, model, before)
    *_, last = _release_names(diff)
    declared = version_of(last)
    major = declared.major if declared is not None else diff.new.version
    after = f"{table}_v{major}"
    # Names are quoted.
    view = f"CREATE OR REPLACE VIEW {quoted_table(table)} AS SELECT * FROM {quoted_table(after)}"  # noqa: S608
    both_written = (
        _add(f"version {major} gets a separate table", _create(model, after)),
        *_unknown_partitions(model),
        _fill(f"the producer writes {before} and {after}"),
    )
    alone = (
        _drop("the alias shows the new version", view),
        _drop(f"when {before} is no longer read", f"DROP TABLE {quoted_table(before)}"),
    )
    title = f"{diff.new.id} {diff.old.version} → {diff.new.version}, tables of {table}"
    first = EvolutionRelease(last, "both tables are written", both_written)
    return Evolution(title, (first, EvolutionRelease(f"after {last}", _waiting(diff), alone)))


def _create(model: Model, table: str) -> str:
    columns = ", ".join(column_definition(item, quote_name(item.name)) for item in model.fields)
    known = {item.path for item in model.fields}
    by = _partitioned_by(path for path in model.partition_by if path in known)
    if any(SIGNS_OF_NO_FILE & set(item.name) for item in model.fields):
        by += " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    return f"CREATE TABLE IF NOT EXISTS {quoted_table(table)} ({columns}) USING DELTA{by}"


def _unknown_partitions(model: Model) -> Iterator[EvolutionStep]:
    known = {item.path for item in model.fields}
    for path in model.partition_by:
        if path not in known:
            message = f"it is to be partitioned by {path}, which the contract does not have: add it"
            yield _add(message)


def _releases(diff: Diff, steps: list[EvolutionStep]) -> Iterator[EvolutionRelease]:
    by_phase = {phase: tuple(step for step in steps if step.phase is phase) for phase in Phase}
    new = str(diff.new.version)
    if not by_phase[Phase.FILL] and not by_phase[Phase.DROP]:
        yield EvolutionRelease(new, "", by_phase[Phase.ADD])
        return
    filling = "fill them, and deprecate what will be removed"
    conditions = ("add the successors", filling, _waiting(diff))
    for phase, name, condition in zip(Phase, _release_names(diff), conditions, strict=True):
        if by_phase[phase] or phase is Phase.DROP:
            yield EvolutionRelease(name, condition, by_phase[phase])


def _release_names(diff: Diff) -> tuple[str, str, str]:
    """The names of two minor releases, then of the major release."""
    first = version_of(diff.old.version)
    if first is None:
        return "1 of 3", "2 of 3", "3 of 3"
    added = next_version(first, Bump.MINOR)
    second = version_of(added) or first
    declared = version_of(diff.new.version)
    is_major = declared is not None and declared.major > first.major
    last = str(diff.new.version) if is_major else next_version(first, Bump.MAJOR)
    return added, next_version(second, Bump.MINOR), last


def _waiting(diff: Diff) -> str:
    life = diff.old.lifecycle
    notice = life.breaking_notice_days or life.notice_days
    periods = [f"{notice} days of notice"] if notice else []
    periods += [f"{life.dual_write_days} days of dual writes"] if life.dual_write_days else []
    after = f"after {' and '.join(periods)}, " if periods else ""
    return f"{after}when the old one is no longer read"
