"""The statements that migrate a Delta table from one version of its contract to the next.

Compatible changes are made at once. Breaking changes are spread over releases, so that readers have
time: the successor is added, then filled while the old column is deprecated, and in the release
with the major bump the old column is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import IntEnum

from dqx_airflow.contracts.demands import one_line, printable_line
from dqx_airflow.contracts.diff import Change, Diff
from dqx_airflow.contracts.diff.columns import is_delta_widening
from dqx_airflow.contracts.export.schemas import column_comment, table_type
from dqx_airflow.contracts.model import Bump, Field, Model, next_version, version_of
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


def _add(what: str, *statements: str) -> EvolutionStep:
    return EvolutionStep(Phase.ADD, what, statements)


def _fill(what: str, *statements: str) -> EvolutionStep:
    return EvolutionStep(Phase.FILL, what, statements)


def _drop(what: str, *statements: str) -> EvolutionStep:
    return EvolutionStep(Phase.DROP, what, statements)


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
        blocks = [_comment(self.title)]
        for release in self.releases:
            head = f"Release {release.version}"
            if release.condition:
                head += f": {release.condition}"
            blocks.append(_comment(head))
            for step in release.steps:
                statements = [f"{statement};" for statement in step.statements]
                blocks.append("\n".join([_comment(step.what), *statements]))
        return "\n\n".join(blocks) + "\n"


def _comment(text: str) -> str:
    """An SQL comment that cannot end early."""
    return f"-- {printable_line(text)}"


SIGNS_OF_NO_FILE = frozenset(" ,;{}()\n\t=")
"""Characters that the name of a column in a file must not contain."""


def steps_of(changes: Iterable[Change], scene: Scene) -> Iterator[EvolutionStep]:
    """The steps for the changes of one model. All changes of a column share one successor."""
    succeeded: set[str | None] = set()
    done: set[tuple[Phase, str]] = set()
    # A column is dropped after the partitions: those of the old table may need it.
    for change in sorted(changes, key=lambda item: item.kind.name != "partition_changed"):
        make = _STEPS.get(change.kind.name, _nothing_to_alter)
        if make in (_renamed, _replaced):
            if change.column in succeeded:
                continue
            succeeded.add(change.column)
        for step in make(change, scene):
            # A property stays set.
            statements = tuple(
                statement for statement in step.statements if (step.phase, statement) not in done
            )
            done.update(
                (step.phase, statement)
                for statement in statements
                if "SET TBLPROPERTIES" in statement
            )
            yield replace(step, statements=statements)


@dataclass(frozen=True, slots=True)
class Scene:
    """The context of the steps of one table.

    `old` and `new` are the columns by their paths, the parts are their names in Delta. `partitions`
    are those of the new table, `old_partitions` the current ones. `major` is the number of the
    breaking version.
    """

    table: str
    name: str
    old: Mapping[str, Field]
    new: Mapping[str, Field]
    old_parts: Mapping[str, tuple[str, ...]]
    new_parts: Mapping[str, tuple[str, ...]]
    partitions: tuple[str, ...]
    old_partitions: tuple[str, ...]
    major: str

    @classmethod
    def of(cls, old: Model, new: Model, table: str, major: str) -> Scene:
        return cls(
            quoted_table(table),
            table,
            {item.path: item for item in old.walk()},
            {item.path: item for item in new.walk()},
            dict(_parts_of(old.fields, ())),
            dict(_parts_of(new.fields, ())),
            new.partition_by,
            old.partition_by,
            major,
        )

    def alter(self, change: str) -> str:
        return f"ALTER TABLE {self.table} {change}"

    def set_property(self, key: str, value: str) -> str:
        return self.alter(f"SET TBLPROPERTIES ({quote_literal(key)} = {quote_literal(value)})")

    def comment(self, parts: tuple[str, ...], text: str) -> str:
        return self.alter(f"ALTER COLUMN {quote_name(*parts)} COMMENT {quote_literal(text)}")

    def add(self, parts: tuple[str, ...], spark: str, text: str | None) -> tuple[str, ...]:
        comment = f" COMMENT {quote_literal(text)}" if text else ""
        statement = self.alter(f"ADD COLUMNS ({quote_name(*parts)} {spark}{comment})")
        return (*self.mapping(), statement) if SIGNS_OF_NO_FILE & set(parts[-1]) else (statement,)

    def mapping(self) -> tuple[str, ...]:
        """Column mapping, which separates names from those in the files: to drop or rename columns,
        or for any characters in a name."""
        return (self.set_property("delta.columnMapping.mode", "name"),)

    def not_null(self, parts: tuple[str, ...]) -> str:
        # Delta does not allow changing a nullable column to NOT NULL.
        constraint = quote_name(f"{'_'.join(parts)}_not_null")
        return self.alter(f"ADD CONSTRAINT {constraint} CHECK ({quote_name(*parts)} IS NOT NULL)")

    def drop(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        return (*self.mapping(), self.alter(f"DROP COLUMN {quote_name(*parts)}"))

    def written_anew(self, columns: str, partitions: Iterable[str]) -> tuple[str, ...]:
        """The table rewritten with these columns and partitions, under its current name.

        Delta does not drop a partition column.
        """
        by = ", ".join(map(quoted_column, partitions))
        by = f" PARTITIONED BY ({by})" if by else ""
        staged, old = (quoted_table(f"{self.name}_{word}") for word in ("repartitioned", "before"))
        # The properties of the old table are not kept, and its columns may have any name.
        kept = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
        source = f"SELECT {columns} FROM {self.table}"  # noqa: S608
        return (
            f"CREATE TABLE {staged} USING DELTA{by} {kept} AS {source}",
            f"ALTER TABLE {self.table} RENAME TO {old}",
            f"ALTER TABLE {staged} RENAME TO {self.table}",
        )


def _added(change: Change, scene: Scene) -> Iterator[EvolutionStep]:
    item, parts = _new(change, scene)
    yield _add(change.message, *_additions(item, parts, scene))


def _additions(item: Field, parts: tuple[str, ...], scene: Scene) -> Iterator[str]:
    yield from scene.add(parts, table_type(item), column_comment(item))
    if item.has_default and item.default is not None:
        yield scene.set_property("delta.feature.allowColumnDefaults", "supported")
        yield scene.alter(f"ALTER COLUMN {quote_name(*parts)} SET DEFAULT {_default_value(item)}")


def _added_required(change: Change, scene: Scene) -> Iterator[EvolutionStep]:
    item, parts = _new(change, scene)
    added = scene.add(parts, table_type(item), column_comment(item))
    yield _add(f"add {item.path}, which may be NULL for now", *added)
    yield _fill(f"all producers fill {item.path}; set a value in older rows")
    if not item.is_nullable:
        yield _drop(f"{item.path} must not be NULL", scene.not_null(parts))


def _removed(change: Change, scene: Scene) -> Iterator[EvolutionStep]:
    item, parts = _old(change, scene)
    yield _deprecation(item, parts, "it will be dropped", scene)
    yield _drop(change.message, *scene.drop(parts))


def _renamed(change: Change, scene: Scene) -> Iterator[EvolutionStep]:
    item, parts = _new(change, scene)
    before = next(
        old
        for path, old in scene.old.items()
        if old.name == change.old and scene.old_parts[path][:-1] == parts[:-1]
    )
    old_parts = scene.old_parts[before.path]
    added = scene.add(parts, table_type(item), column_comment(item))
    yield _add(f"add {item.path}, which replaces {before.path}", *added)
    yield _filling(parts, quote_name(*old_parts), f"fill {item.path} from the old column", scene)
    yield _deprecation(before, old_parts, f"use {item.path}", scene)
    if before.path in scene.old_partitions and item.path in scene.partitions:
        message = f"rewrite the table without {before.path}, in a maintenance window"
        columns = f"* EXCEPT ({quote_name(*old_parts)})"
        yield _drop(message, *scene.written_anew(columns, scene.partitions))
        return
    yield _drop(f"drop {before.path}", *scene.drop(old_parts))


def _widened(change: Change, scene: Scene) -> Iterator[EvolutionStep]:
    item, parts = _new(change, scene)
    before, after = table_type(_before(change, scene)), table_type(item)
    if before == after:
        yield _add(f"{change.message}: the table has this type already")
    elif (is_delta := is_delta_widening(before, after)) or after.startswith(("varchar", "string")):
        allowed = [scene.set_property("delta.enableTypeWidening", "true")] if is_delta else []
        statement = scene.alter(f"ALTER COLUMN {quote_name(*parts)} TYPE {after}")
        yield _add(change.message, *allowed, statement)
    else:
        yield from _replaced(change, scene)


def _replaced(change: Change, scene: Scene) -> Iterator[EvolutionStep]:
    """A column with another meaning or type: a successor replaces it."""
    item, parts = _new(change, scene)
    before = _before(change, scene)
    successor = (*parts[:-1], f"{parts[-1]}_v{scene.major}")
    shown, spark = ".".join(successor), table_type(item)
    added = scene.add(successor, spark, column_comment(item))
    yield _add(f"{change.message}: {shown} takes its place", *added)
    if change.kind.name not in _OTHER_MEANING and _can_be_cast(table_type(before), spark):
        source = f"try_cast({quote_name(*parts)} AS {spark})"
        message = f"fill {shown}; values that do not fit become NULL: count them first"
        yield _filling(successor, source, message, scene)
    else:
        yield _fill(f"the producer fills {shown} with the new meaning")
    yield _deprecation(before, parts, f"use {shown}", scene)
    if item.path in scene.partitions:
        was, name = quote_name(*parts), quote_name(*successor)
        columns = f"* EXCEPT ({was}, {name}), {name} AS {was}"
        message = f"rewrite the table with {shown} under the name, in a maintenance window"
        yield _drop(message, *scene.written_anew(columns, scene.partitions))
        return
    rename = scene.alter(f"RENAME COLUMN {quote_name(*successor)} TO {quote_name(parts[-1])}")
    yield _drop(f"{shown} gets the name", *scene.drop(parts), rename)


_OTHER_MEANING = ("semantic_changed", "unit_changed")


def _can_be_cast(old: str, new: str) -> bool:
    """True if Spark converts values of one type to another, if only via strings."""
    families = {family_of(old), family_of(new)}
    return Family.OTHER not in families and (len(families) == 1 or Family.TEXT in families)


def _filling(parts: tuple[str, ...], source: str, message: str, scene: Scene) -> EvolutionStep:
    if {"element", "key", "value"} & set(parts[:-1]):
        return _fill(f"{message}: the producer rewrites the rows")
    name = quote_name(*parts)
    statement = f"UPDATE {scene.table} SET {name} = {source} WHERE {name} IS NULL"  # noqa: S608
    return _fill(f"{message}, also by the producer in all writes", statement)


def _deprecation(item: Field, parts: tuple[str, ...], advice: str, scene: Scene) -> EvolutionStep:
    notice = f"DEPRECATED until version {scene.major}: {advice}."
    comment = " ".join(filter(None, (notice, column_comment(item))))
    message = f"{item.path} is deprecated; check who still reads it"
    return _fill(message, scene.comment(parts, comment))


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
    item, parts = _new(change, scene)
    name = quote_name(*parts)
    if change.bump is Bump.MAJOR:
        yield _fill(f"set a value in all rows of {item.path}: count NULL first")
        yield _drop(f"{item.path} must not be NULL", scene.not_null(parts))
    else:
        statement = scene.alter(f"ALTER COLUMN {name} DROP NOT NULL")
        yield _add(f"{item.path} may be NULL", statement)


def _described(change: Change, scene: Scene) -> Iterator[EvolutionStep]:
    if change.column is None:
        if change.new is not None:
            statement = f"COMMENT ON TABLE {scene.table} IS {quote_literal(one_line(change.new))}"
            yield _add(change.message, statement)
        return
    item, parts = _new(change, scene)
    yield _add(change.message, scene.comment(parts, column_comment(item) or ""))


def _default(change: Change, scene: Scene) -> Iterator[EvolutionStep]:
    item, parts = _new(change, scene)
    name = quote_name(*parts)
    if not item.has_default or item.default is None:
        yield _add(change.message, scene.alter(f"ALTER COLUMN {name} DROP DEFAULT"))
        return
    statement = scene.alter(f"ALTER COLUMN {name} SET DEFAULT {_default_value(item)}")
    allowed = scene.set_property("delta.feature.allowColumnDefaults", "supported")
    yield _add(change.message, allowed, statement)


def _repartitioned(change: Change, scene: Scene) -> Iterator[EvolutionStep]:
    columns = [part.strip() for part in (change.new or "").split(",") if part.strip() != "none"]
    message = f"{change.message}: rewrite the table, in a maintenance window"
    yield _drop(message, *scene.written_anew("*", columns))


def _default_value(item: Field) -> str:
    """The default as an expression of the column's type."""
    value = item.default
    if isinstance(value, bool) or (isinstance(value, str) and item.type == "string"):
        return quote_literal(value)
    text = value if isinstance(value, str) else format(Decimal(str(value)), "f")
    return f"CAST({quote_literal(text)} AS {table_type(item)})"


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
    "type_changed": _replaced,
    "semantic_changed": _replaced,
    "unit_changed": _replaced,
    "rule_tightened": _rule,
    "rule_changed": _rule,
    "rule_loosened": _rule,
    "rule_removed": _rule,
    "wording_corrected": _described,
    "description_changed": _described,
    "grain_changed": _described,
    "default_added": _default,
    "default_changed": _default,
    "default_removed": _default,
    "needed_default_removed": _default,
    "partition_changed": _repartitioned,
}


def _new(change: Change, scene: Scene) -> tuple[Field, tuple[str, ...]]:
    assert change.column is not None
    return scene.new[change.column], scene.new_parts[change.column]


def _old(change: Change, scene: Scene) -> tuple[Field, tuple[str, ...]]:
    assert change.column is not None
    return scene.old[change.column], scene.old_parts[change.column]


def _before(change: Change, scene: Scene) -> Field:
    """The previous version of the column; a renamed one is only found by its new name."""
    assert change.column is not None
    return scene.old.get(change.column, scene.new[change.column])


def _parts_of(
    fields: tuple[Field, ...], above: tuple[str, ...]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The names that lead to each field in Delta, by its path."""
    for item in fields:
        yield from _parts_below(item, (*above, item.name))


def _parts_below(item: Field, parts: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield item.path, parts
    yield from _parts_of(item.fields, parts)
    for inner, name in ((item.items, "element"), (item.keys, "key"), (item.values, "value")):
        if inner is not None:
            yield from _parts_below(inner, (*parts, name))


def quoted_table(name: str) -> str:
    """A table as SQL writes it: each part of its name in backticks."""
    return quote_name(*name.split("."))


def quoted_column(path: str) -> str:
    """A column of a table by its path."""
    return quote_name(path.strip("`"))


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
    renamed = (
        change.old
        for change in diff.changes
        if change.kind.name == "model_renamed" and change.new == model.name
    )
    return diff.old.model(next(renamed, None) or model.name)


def versioned_evolution(diff: Diff, model: Model, table: str) -> Evolution:
    """The migration with a table for each major version, and a view of the current one.

    Compatible changes are made in the table of the version.
    """
    old = version_of(diff.old.version)
    before = f"{table}_v{old.major if old is not None else diff.old.version}"
    if not diff.breaking:
        return evolution(diff, model, before)
    declared = version_of(_release_names(diff)[2])
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
    releases = (
        EvolutionRelease(_release_names(diff)[2], "both tables are written", both_written),
        EvolutionRelease(f"after {_release_names(diff)[2]}", _waiting(diff), alone),
    )
    title = f"{diff.new.id} {diff.old.version} → {diff.new.version}, tables of {table}"
    return Evolution(title, releases)


def _create(model: Model, table: str) -> str:
    columns = ", ".join(_definition(item) for item in model.fields)
    known = {item.path for item in model.fields}
    partitions = ", ".join(quoted_column(path) for path in model.partition_by if path in known)
    by = f" PARTITIONED BY ({partitions})" if partitions else ""
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
    names = _release_names(diff)
    if by_phase[Phase.ADD]:
        yield EvolutionRelease(names[0], "add the successors", by_phase[Phase.ADD])
    if by_phase[Phase.FILL]:
        yield EvolutionRelease(
            names[1], "fill them, and deprecate what will be removed", by_phase[Phase.FILL]
        )
    yield EvolutionRelease(names[2], _waiting(diff), by_phase[Phase.DROP])


def _release_names(diff: Diff) -> tuple[str, str, str]:
    """Two minor releases, then the major one."""
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


def _definition(item: Field) -> str:
    comment = column_comment(item)
    return " ".join(
        (
            quote_name(item.name),
            table_type(item),
            *(() if item.is_nullable else ("NOT NULL",)),
            *((f"COMMENT {quote_literal(comment)}",) if comment else ()),
        )
    )
