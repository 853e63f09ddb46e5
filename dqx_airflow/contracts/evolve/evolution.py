"""The migration of a Delta table from one version of its contract to the next."""

from __future__ import annotations

from collections.abc import Iterator

from dqx_airflow.contracts.diff import Diff
from dqx_airflow.contracts.enforcement.dataset_locations import table_type
from dqx_airflow.contracts.evolve.plan import Evolution, EvolutionRelease, EvolutionStep, Phase
from dqx_airflow.contracts.evolve.steps import (
    SIGNS_OF_NO_FILE,
    Scene,
    quoted_column,
    quoted_table,
    steps_of,
)
from dqx_airflow.contracts.export.table_comments import column_comment
from dqx_airflow.contracts.model import Field, Model
from dqx_airflow.contracts.versions import Bump, next_version, version_of
from dqx_airflow.metrics.sql import quote_literal, quote_name


def evolution(diff: Diff, model: Model, table: str) -> Evolution:
    """The releases of the migration of a table.

    :param model: the new version of a model.
    :param table: the table in the catalog, its parts separated by dots.
    """
    title = f"{diff.new.id} {diff.old.version} → {diff.new.version}, table {table}"
    before = _model_before(diff, model)
    if before is None:
        create = EvolutionStep(Phase.ADD, f"{model.name} is new", (_create(model, table),))
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
        EvolutionStep(
            Phase.ADD, f"version {major} gets a separate table", (_create(model, after),)
        ),
        *_unknown_partitions(model),
        EvolutionStep(Phase.FILL, f"the producer writes {before} and {after}"),
    )
    alone = (
        EvolutionStep(Phase.DROP, "the alias shows the new version", (view,)),
        EvolutionStep(
            Phase.DROP, f"when {before} is no longer read", (f"DROP TABLE {quoted_table(before)}",)
        ),
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
            yield EvolutionStep(Phase.ADD, message)


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
