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
            "a column is added that must not be NULL and has no default; with `datalex` each one",
            Bump.MAJOR,
            "what producers give that do not know the column is no longer valid",
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
            "columns change places",
            Bump.PATCH,
            "columns are known by their names",
        ),
        ChangeKind(
            "type_widened",
            "a type is widened: `int` becomes `bigint`",
            Bump.MINOR,
            "all values of the old type fit into the new one",
        ),
        ChangeKind(
            "type_changed",
            "a type is narrowed, or becomes another one",
            Bump.MAJOR,
            "values that were valid no longer fit, or readers can no longer take what comes",
            _BOTH,
        ),
        ChangeKind(
            "type_respelled",
            "a type is written in another way",
            Bump.PATCH,
            "it is the same type",
        ),
        ChangeKind(
            "default_added",
            "a default is added",
            Bump.MINOR,
            "rows without the column get a value instead of NULL",
        ),
        ChangeKind(
            "default_changed",
            "a default becomes another one",
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
            "the key becomes another one, or is given up",
            Bump.MAJOR,
            "joins on the old key lose or multiply rows",
            _BOTH,
        ),
        ChangeKind(
            "key_added",
            "a key is named where there was none",
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
            "the meaning of a column in words: for `fabric` every other wording, for other "
            "dialects numbers, units, negations and the like",
            Bump.MAJOR,
            "readers compute something else, and nothing fails: the most dangerous change",
            _READERS,
        ),
        ChangeKind(
            "grain_changed",
            "the description of a model in other words, or the granularity that `odcs` names",
            Bump.MAJOR,
            "a row may be something else now, and nothing fails: `--semantic` says that it is not",
            _READERS,
        ),
        ChangeKind(
            "semantic_removed",
            "the `semantic` of a column is removed",
            Bump.MAJOR,
            "readers no longer know what they compute",
            _READERS,
        ),
        ChangeKind(
            "wording_corrected",
            "typos, punctuation, capitals and spaces in a text",
            Bump.PATCH,
            "it says the same",
        ),
        ChangeKind(
            "description_changed",
            "a description in other words, a title, or a text where there was none",
            Bump.PATCH,
            "documentation only",
        ),
        ChangeKind(
            "unit_changed",
            "a unit becomes another one, or is removed",
            Bump.MAJOR,
            "calculations are wrong by the factor between the units",
            _READERS,
        ),
        ChangeKind(
            "unit_added",
            "a unit is named where there was none",
            Bump.MINOR,
            "readers learn what they had to guess",
        ),
        ChangeKind(
            "example_changed",
            "examples",
            Bump.PATCH,
            "documentation only",
        ),
        ChangeKind(
            "tags_changed",
            "tags",
            Bump.PATCH,
            "documentation only",
        ),
        ChangeKind(
            "lineage_changed",
            "the fields that a column is made of",
            Bump.PATCH,
            "documentation only; the descriptions define what the values mean",
        ),
    ),
    "Rules, quality and service levels": (
        ChangeKind(
            "rule_added",
            "a demand is added",
            Bump.MAJOR,
            "data that was valid may violate it",
            _WRITERS,
        ),
        ChangeKind(
            "rule_tightened",
            "a demand is tightened: a higher minimum, a smaller enum, a shorter delay, NOT NULL",
            Bump.MAJOR,
            "data that was valid may violate it",
            _WRITERS,
        ),
        ChangeKind(
            "rule_changed",
            "a demand changes, and neither version admits all that the other one does: a pattern, "
            "SQL, the dataset that is referred to",
            Bump.MAJOR,
            "data that was valid may violate it, and readers may meet what they did not expect",
            _BOTH,
        ),
        ChangeKind(
            "rule_loosened",
            "a demand is loosened: a lower minimum, a larger enum, a longer delay",
            Bump.MINOR,
            "data that was valid remains valid; readers may meet values that are new to them",
        ),
        ChangeKind(
            "rule_removed",
            "a demand is removed: NULL is allowed, a bound or a quality rule goes",
            Bump.MINOR,
            "data that was valid remains valid; readers may meet values that are new to them",
        ),
        ChangeKind(
            "severity_changed",
            "the severity of a rule",
            Bump.MINOR,
            "the same data is valid, but a gate may treat its violation otherwise",
        ),
        ChangeKind(
            "rule_described",
            "the description, the dimension or the tags of a rule",
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
            "model_removed",
            "a model is dropped",
            Bump.MAJOR,
            "readers may depend on it",
            _READERS,
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
            "the table or file of a model",
            Bump.MAJOR,
            "readers go to the old place",
            _BOTH,
        ),
        ChangeKind(
            "partition_changed",
            "the columns by which a table is partitioned",
            Bump.MAJOR,
            "predicates no longer prune, and the table has to be written anew",
            _BOTH,
        ),
    ),
    "The contract": (
        ChangeKind(
            "id_changed",
            "the id",
            Bump.MAJOR,
            "it is another contract for all who pin it or refer to it",
            _BOTH,
        ),
        ChangeKind(
            "dialect_changed",
            "the dialect, or its version",
            Bump.PATCH,
            "the same promises in another format",
        ),
        ChangeKind(
            "about_changed",
            "name, description, owner, contacts, domain, tags",
            Bump.PATCH,
            "documentation only",
        ),
        ChangeKind(
            "consumers_changed",
            "the consumers that are listed",
            Bump.PATCH,
            "documentation only",
        ),
        ChangeKind(
            "server_added",
            "a server is added",
            Bump.MINOR,
            "one more place to read from",
        ),
        ChangeKind(
            "server_changed",
            "a server moves, or is removed",
            Bump.MINOR,
            "who reads by its address has to follow; the data is the same",
        ),
        ChangeKind(
            "format_changed",
            "the format of the files of a table, or at a server",
            Bump.MAJOR,
            "readers of one format cannot read another",
            _BOTH,
        ),
    ),
    "Lifecycle": (
        ChangeKind(
            "status_advanced",
            "the status: a draft comes into force, a contract is deprecated, or no longer so",
            Bump.MINOR,
            "readers may have to plan, nothing changes today",
        ),
        ChangeKind(
            "status_withdrawn",
            "the status: sunset, or back to a draft",
            Bump.MAJOR,
            "consumers may no longer rely on it",
            _READERS,
        ),
        ChangeKind(
            "sunset_advanced",
            "the sunset comes earlier than was announced",
            Bump.MAJOR,
            "readers have less time than they were promised",
            _READERS,
        ),
        ChangeKind(
            "dates_changed",
            "other dates: a sunset is announced or put off, deprecation, the begin",
            Bump.MINOR,
            "readers may have to plan, nothing changes today",
        ),
        ChangeKind(
            "policy_changed",
            "periods of notice and of dual writes, the cadence of breaking changes, the successor",
            Bump.MINOR,
            "readers may have to plan, nothing changes today",
        ),
    ),
    "Other clauses": (
        ChangeKind(
            "input_changed",
            "what a query of `datalex` takes: an input comes, goes, or is another one",
            Bump.MAJOR,
            "who calls the query gives it what it took before",
            _READERS,
        ),
        ChangeKind(
            "documented_clause_changed",
            "a clause that no data can break: terms, links, contacts",
            Bump.PATCH,
            "documentation only",
        ),
        ChangeKind(
            "unsupported_clause_changed",
            "a clause that is not checked here",
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
