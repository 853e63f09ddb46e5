"""The kinds of changes between two versions of a contract: ONE row each, with its effects.

The rows follow seed 003's table where it has one. The page `docs/contracts/changes.md` is generated
from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dqx_airflow.contracts.versions import Bump


class View(str, Enum):
    """Whom a change breaks: the readers or the writers of the data."""

    CONSUMER = "consumer"
    PRODUCER = "producer"

    __str__ = str.__str__  # prints as its value, on every Python


@dataclass(frozen=True, slots=True)
class ChangeKind:
    """A kind of change: the bump that it requires, whom it can break, and why."""

    name: str
    what: str
    bump: Bump
    reason: str
    breaks: tuple[View, ...] = ()


_READERS = (View.CONSUMER,)
_WRITERS = (View.PRODUCER,)
_BOTH = (View.CONSUMER, View.PRODUCER)

_ROWS: dict[str, tuple[ChangeKind, ...]] = {
    "Columns": (
        ChangeKind(
            "column_added",
            "a column is added that may be NULL, or that has a default",
            Bump.MINOR,
            "readers ignore a column that they do not know, and NULL or the default fills it",
        ),
        ChangeKind(
            "required_column_added",
            "a column is added that must not be NULL and has no default; "
            "with `datalex`, any column",
            Bump.MAJOR,
            "the data of producers that do not know the column is no longer valid",
            _WRITERS,
        ),
        ChangeKind(
            "column_removed",
            "a column is dropped",
            Bump.MAJOR,
            "readers may depend on it",
            _READERS,
        ),
        ChangeKind(
            "column_renamed",
            "a column is renamed: one is dropped, another one like it is added",
            Bump.MAJOR,
            "readers and writers use the old name",
            _BOTH,
        ),
        ChangeKind(
            "columns_reordered",
            "columns are reordered",
            Bump.PATCH,
            "columns are identified by name",
        ),
        ChangeKind(
            "type_widened",
            "a type is widened: `int` becomes `bigint`",
            Bump.MINOR,
            "all values of the old type fit into the new one",
        ),
        ChangeKind(
            "type_changed",
            "a type is narrowed or replaced",
            Bump.MAJOR,
            "valid values no longer fit, or readers cannot handle the new values",
            _BOTH,
        ),
        ChangeKind(
            "type_respelled", "a type is written differently", Bump.PATCH, "it is the same type"
        ),
        ChangeKind(
            "default_added",
            "a default is added",
            Bump.MINOR,
            "rows without the column get a value instead of NULL",
        ),
        ChangeKind(
            "default_changed",
            "a default changes",
            Bump.MINOR,
            "new rows without the column get another value",
        ),
        ChangeKind(
            "default_removed",
            "the default of a column that may be NULL is removed",
            Bump.MINOR,
            "rows without the column get NULL",
        ),
        ChangeKind(
            "needed_default_removed",
            "the default of a column that must not be NULL is removed",
            Bump.MAJOR,
            "rows that rely on the default are no longer valid",
            _WRITERS,
        ),
        ChangeKind(
            "key_changed",
            "the key changes or is removed",
            Bump.MAJOR,
            "joins on the old key lose or multiply rows",
            _BOTH,
        ),
        ChangeKind(
            "key_added",
            "a key is declared for the first time",
            Bump.MINOR,
            "readers may join on it; its requirements for the data are listed separately",
        ),
        ChangeKind(
            "sensitivity_raised",
            "a column becomes sensitive",
            Bump.MINOR,
            "its values are masked from now on; readers may need another permission",
        ),
        ChangeKind(
            "sensitivity_lowered",
            "a column is no longer sensitive",
            Bump.MINOR,
            "its values are no longer masked",
        ),
        ChangeKind(
            "classification_changed",
            "the classification of a column changes",
            Bump.MINOR,
            "readers may need another permission",
        ),
    ),
    "Meaning": (
        ChangeKind(
            "semantic_changed",
            "the described meaning of a column changes: for `fabric` any new wording, "
            "for other dialects numbers, units, negations and the like",
            Bump.MAJOR,
            "results change without any error: the most dangerous change",
            _READERS,
        ),
        ChangeKind(
            "grain_changed",
            "the description of a model is reworded, or its `odcs` granularity changes",
            Bump.MAJOR,
            "a row may represent something else, without any error: if not, use `--semantic`",
            _READERS,
        ),
        ChangeKind(
            "semantic_removed",
            "the `semantic` of a column is removed",
            Bump.MAJOR,
            "readers no longer know what the values mean",
            _READERS,
        ),
        ChangeKind(
            "wording_corrected",
            "typos, punctuation, capitals or spaces in a description are corrected",
            Bump.PATCH,
            "the meaning is the same",
        ),
        ChangeKind(
            "description_changed",
            "a description or a title is reworded or added",
            Bump.PATCH,
            "documentation only",
        ),
        ChangeKind(
            "unit_changed",
            "a unit changes or is removed",
            Bump.MAJOR,
            "calculations are wrong by the factor between the units",
            _READERS,
        ),
        ChangeKind(
            "unit_added",
            "a unit is declared for the first time",
            Bump.MINOR,
            "readers no longer have to guess",
        ),
        ChangeKind("example_changed", "examples", Bump.PATCH, "documentation only"),
        ChangeKind("tags_changed", "tags", Bump.PATCH, "documentation only"),
        ChangeKind(
            "lineage_changed",
            "the source fields of a column change",
            Bump.PATCH,
            "documentation only; the descriptions define what the values mean",
        ),
    ),
    "Rules, quality and service levels": (
        ChangeKind(
            "rule_added", "a rule is added", Bump.MAJOR, "valid data may now violate it", _WRITERS
        ),
        ChangeKind(
            "rule_tightened",
            "a rule is tightened: a higher minimum, a smaller enum, a shorter delay, NOT NULL",
            Bump.MAJOR,
            "valid data may now violate it",
            _WRITERS,
        ),
        ChangeKind(
            "rule_changed",
            "a rule changes, and each version rejects data that the other accepts: "
            "a pattern, SQL, a referenced dataset",
            Bump.MAJOR,
            "valid data may now violate it, and readers may meet what they did not expect",
            _BOTH,
        ),
        ChangeKind(
            "rule_loosened",
            "a rule is loosened: a lower minimum, a larger enum, a longer delay",
            Bump.MINOR,
            "valid data remains valid; readers may get new values",
        ),
        ChangeKind(
            "rule_removed",
            "a rule is removed: NULL is allowed, a limit or a quality rule is dropped",
            Bump.MINOR,
            "valid data remains valid; readers may get new values",
        ),
        ChangeKind(
            "severity_changed",
            "the severity of a rule changes",
            Bump.MINOR,
            "the same data is valid, but a gate may react differently to a violation",
        ),
        ChangeKind(
            "rule_described",
            "the description, dimension or tags of a rule change",
            Bump.PATCH,
            "documentation only",
        ),
    ),
    "Models": (
        ChangeKind(
            "model_added",
            "a model is added",
            Bump.MINOR,
            "readers ignore a table that they do not know",
        ),
        ChangeKind(
            "model_removed", "a model is dropped", Bump.MAJOR, "readers may depend on it", _READERS
        ),
        ChangeKind(
            "model_renamed",
            "a model is renamed: one is dropped, another one with its columns is added",
            Bump.MAJOR,
            "readers and writers use the old name",
            _BOTH,
        ),
        ChangeKind(
            "location_changed",
            "the table or file of a model changes",
            Bump.MAJOR,
            "readers use the old location",
            _BOTH,
        ),
        ChangeKind(
            "partition_changed",
            "the partition columns of a table change",
            Bump.MAJOR,
            "filters no longer prune partitions, and the table has to be rewritten",
            _BOTH,
        ),
    ),
    "The contract": (
        ChangeKind(
            "id_changed",
            "the id",
            Bump.MAJOR,
            "everyone who pins it or refers to it loses it",
            _BOTH,
        ),
        ChangeKind(
            "dialect_changed",
            "the dialect or its version changes",
            Bump.PATCH,
            "the same promises in another format",
        ),
        ChangeKind(
            "about_changed",
            "name, description, owner, contacts, domain or tags change",
            Bump.PATCH,
            "documentation only",
        ),
        ChangeKind(
            "consumers_changed", "the listed consumers change", Bump.PATCH, "documentation only"
        ),
        ChangeKind(
            "server_added",
            "a server is added",
            Bump.MINOR,
            "the data can be read from one more location",
        ),
        ChangeKind(
            "server_changed",
            "a server moves, or is removed",
            Bump.MINOR,
            "readers that use its address must switch; the data is the same",
        ),
        ChangeKind(
            "format_changed",
            "the file format of a table or a server changes",
            Bump.MAJOR,
            "readers of one format cannot read another",
            _BOTH,
        ),
    ),
    "Lifecycle": (
        ChangeKind(
            "status_advanced",
            "the status changes: a draft becomes active, or a deprecation starts or ends",
            Bump.MINOR,
            "readers may have to plan, nothing changes today",
        ),
        ChangeKind(
            "status_withdrawn",
            "the status changes to sunset, or back to draft",
            Bump.MAJOR,
            "consumers may no longer rely on it",
            _READERS,
        ),
        ChangeKind(
            "sunset_advanced",
            "the sunset is moved to an earlier date",
            Bump.MAJOR,
            "readers have less time than promised",
            _READERS,
        ),
        ChangeKind(
            "dates_changed",
            "other dates change: a sunset is announced or postponed, the deprecation, the start",
            Bump.MINOR,
            "readers may have to plan, nothing changes today",
        ),
        ChangeKind(
            "policy_changed",
            "the notice period, the dual-write period, "
            "the cadence of breaking changes or the successor changes",
            Bump.MINOR,
            "readers may have to plan, nothing changes today",
        ),
    ),
    "Other clauses": (
        ChangeKind(
            "input_changed",
            "an input of a `datalex` query is added, removed or changed",
            Bump.MAJOR,
            "callers still pass the old inputs",
            _READERS,
        ),
        ChangeKind(
            "documented_clause_changed",
            "a clause that no data can violate changes: terms, links, contacts",
            Bump.PATCH,
            "documentation only",
        ),
        ChangeKind(
            "unsupported_clause_changed",
            "a clause that is not checked changes",
            Bump.MINOR,
            "the effect is unknown: review it",
        ),
    ),
}

KINDS = {kind.name: kind for kinds in _ROWS.values() for kind in kinds}


def kinds_table() -> str:
    """All kinds as Markdown: a heading and a table for each group."""
    return "\n\n".join(
        f"## {group}\n\n"
        "| kind | change | bump | breaks | why |\n|---|---|---|---|---|\n"
        + "\n".join(_row(kind) for kind in kinds)
        for group, kinds in _ROWS.items()
    )


def _row(kind: ChangeKind) -> str:
    breaks = ", ".join(f"{view}s" for view in kind.breaks) or "no one"
    cells = (f"`{kind.name}`", kind.what, kind.bump.word, breaks, kind.reason)
    return f"| {' | '.join(cells)} |"
