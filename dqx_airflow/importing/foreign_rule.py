"""A rule of another tool and its translation to DQL. Shared by the readers of all tools: the import
request, the variables that tools replace at run time (`${start}`, `{{ var("day") }}`), columns and
values as DQL.

Files of other tools are read as dicts, lists and scalars, with the position of each item of YAML;
their SQL is translated to Spark SQL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from functools import cache, partial
from typing import Any, TypeAlias

import yaml

from dqx_airflow.contracts.database_types import physical_type
from dqx_airflow.contracts.dialects.foreign import Translation
from dqx_airflow.contracts.document import plain_value
from dqx_airflow.contracts.mistyped_types import hint_at_type, meant_type
from dqx_airflow.contracts.yaml_reader import read_document
from dqx_airflow.diagnostics.diagnostic import Level, nearest
from dqx_airflow.dql.printer import show_name, show_text
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values import Severity, SourceFile, exact
from dqx_airflow.values.files import table_rows


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a rule, as DQL: each text follows `assert`, and is one assertion.

    `kind` is the name of the assertions if the rule has no name. `others` are the datasets that
    they read besides the dataset of the rule.
    """

    kind: str
    texts: tuple[str, ...]
    column: str | None = None
    others: tuple[str, ...] = ()


Meaning: TypeAlias = Claims | Translation
"""The translation of a rule: claims in DQL, or demands, which are compiled to them."""


MISSHAPEN = (AttributeError, IndexError, KeyError, StopIteration, TypeError, ValueError)
"""Raised by the translation of a rule whose values have other types than its tool writes."""

REFUSALS = (NoCounterpartError, *MISSHAPEN)
"""Raised by the translation of a rule that is not supported."""


def reason_of(refusal: Exception, misshapen: str | None = None) -> str:
    """The reason why a rule has no counterpart; `misshapen` if its values have wrong types."""
    if isinstance(refusal, NoCounterpartError):
        return str(refusal)
    return misshapen or "its arguments are not as the tool writes them"


def meaning_or_reason(translate: Callable[[], Meaning], about: str = "") -> Meaning | str:
    """Translates a rule; returns the reason if it has no counterpart, which `about` begins."""
    try:
        return translate()
    except REFUSALS as refusal:
        reason = reason_of(refusal)
    return f"{about}: {reason}" if about else reason


@cache
def listed_rules(heading: str) -> dict[str, tuple[str, ...]]:
    """The rules below a heading of `rules.txt` by their names, each with its other columns."""
    found: dict[str, tuple[str, ...]] = {}
    for names, *columns in table_rows(__package__, "rules.txt", heading):
        found |= dict.fromkeys(names.split(), tuple(columns))
    return found


def listed_readers(heading: str, reader: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """The reader for each of the rules below a heading, with their other columns."""
    return {name: partial(reader, *columns) for name, columns in listed_rules(heading).items()}


def unknown_key(key: str, owner: str, known: Collection[str]) -> str:
    """The reason for a key that a tool does not have, with the known key that it may be."""
    near = nearest(key, known)
    hint = f": did you mean '{near}'?" if near else ""
    return f"'{key}' is not a key of {owner}{hint}"


def refuse_listed(tool: str, name: str, otherwise: str | None = None) -> None:
    """Refuses a rule that has a reason in `rules.txt`, or any with the reason `otherwise`.

    :raises NoCounterpartError: with the reason.
    """
    (reason,) = listed_rules(f"{tool}: refused").get(name, (otherwise,))
    if reason is not None:
        raise NoCounterpartError(reason)


@dataclass(frozen=True, slots=True)
class ForeignRule:
    """A rule as its tool writes it.

    `place` is its position in the file, and `shown` is the rule on one line. A string as `meaning`
    is the reason why there is no counterpart. `where` is a filter in SQL: the rule is about the
    rows for which it is true. `groups` are columns, as DQL writes them: the rule is about each
    group of rows. `difference` describes when the verdicts of the two tools differ.
    """

    dataset: str
    place: str
    shown: str
    meaning: Meaning | str
    name: str | None = None
    severity: Severity | None = None
    where: str | None = None
    groups: tuple[str, ...] = ()
    difference: str | None = None


def name_in(*owners: Mapping[str, Any]) -> str | None:
    """The name of a rule in the first mapping that has one; None if no mapping has one."""
    return next((str(one["name"]) for one in owners if one.get("name")), None)


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """The request to import a file. `dataset` is None if the file determines it.

    `read_beside` returns the document of another file, by its path relative to the folder of this
    file; None without such a file.
    """

    file: str
    dataset: str | None = None
    read_beside: Callable[[str], Any] = lambda path: None


VARIABLE = re.compile(r"\$\{[^}]*\}|\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)


def column_text(name: object) -> str:
    """The name of a column in DQL; a dot leads into a struct, as in Spark. A path is in one pair of
    backticks if one of its names needs them.

    :raises NoCounterpartError: it is not a name.
    """
    if not isinstance(name, str) or not name.strip() or "\n" in name:
        raise NoCounterpartError("it does not name a column")
    if "{{" in name or "{%" in name:
        raise NoCounterpartError(f"the name {name.strip()} is a template: write the column")
    bare = name.strip()
    if bare.startswith("`") and bare.endswith("`") and len(bare) > 2:
        return "`" + bare[1:-1].replace("``", "`").replace("`", "``") + "`"
    names = bare.split(".")
    is_plain = all(show_name(name) == name for name in names)
    return bare if is_plain else quoted_name(bare)


def quoted_name(name: str) -> str:
    """A name, or a path, in backticks."""
    return "`" + name.replace("`", "``") + "`"


def columns_text(names: Sequence[object]) -> str:
    """Columns as arguments: `id, shop`.

    :raises NoCounterpartError: there are none, or one is not a name.
    """
    if not names:
        raise NoCounterpartError("it does not name columns")
    return ", ".join(map(column_text, names))


_VIOLATED_BY_ROWS = re.compile(
    r"each row\b|[\d.]+% of rows\b|(?:null|repeated|duplicate)_count\(.*\) == 0$"
)


def passes_without_rows(claim: str) -> bool:
    """Whether a claim, as DQL, is about each row, so that it passes if no row meets its filter."""
    return _VIOLATED_BY_ROWS.match(claim) is not None


def columns_exist(names: Sequence[object]) -> tuple[str, ...]:
    """The claims that columns exist.

    :raises NoCounterpartError: one is not a name.
    """
    return tuple(f"column {column_text(name)} exists" for name in names)


def only_columns(names: Sequence[object]) -> tuple[str, ...]:
    """The claims that columns exist, and no others.

    :raises NoCounterpartError: there are none, or one is not a name.
    """
    return *columns_exist(names), f"extra_column_count([{columns_text(names)}]) == 0"


def type_text(written: object) -> str:
    """The type of a `fits` check for a type of a database or of Spark; empty without one. A string
    of any length is `text`, a number without sizes is a `number`.

    :raises NoCounterpartError: Spark has no such type.
    """
    name = str(written or "").strip()
    if not name:
        return ""
    if name.lower() in _DOCUMENTS:
        return "any"
    if name.lower() in _FLOATING:
        return "floating_number"
    found = physical_type(name.lower(), None, is_spark=True)
    if found is None:
        hint = hint_at_type(meant_type(name, _is_type)) or "write a type of Spark"
        raise NoCounterpartError(f"Spark has no type '{name}': {hint}")
    kind = found.spark_type
    if kind == "string":
        return "text"
    return kind if _PLAIN_TYPE.fullmatch(kind) else show_text(kind)


def _is_type(text: str) -> bool:
    return physical_type(text.lower(), None, is_spark=True) is not None


_PLAIN_TYPE = re.compile(r"\w+(\(\d+(,\d+)?\))?")
_DOCUMENTS = ("json", "jsonb", "super", "object")
"""Types of databases that Spark reads as strings, structs or variants."""
_FLOATING = ("float", "real", "float4")
"""Types with four bytes in some databases, and with eight in others."""


def length_claims(types: Iterable[tuple[object, object]]) -> tuple[str, ...]:
    """The claims that no string is longer than its type allows, such as `varchar(10)`: a string of
    Spark has any length.

    :param types: the types of columns, as they are written.
    """
    claims = []
    for name, written in types:
        found = physical_type(str(written or "").strip().lower(), None, is_spark=True)
        if found is not None and found.most_characters is not None:
            claims.append(f"each row: length({column_text(name)}) <= {found.most_characters}")
    return tuple(claims)


def typed_columns(types: Iterable[tuple[object, str]], *, has_others: bool) -> Claims:
    """The claims that columns exist, with their types where known; no others unless `has_others`.

    :raises NoCounterpartError: one is not a name.
    """
    written = [(column_text(name), kind) for name, kind in types]
    claims = [f"column {name} {f'fits {kind}' if kind else 'exists'}" for name, kind in written]
    listed = ", ".join(name for name, _ in written)
    others = () if has_others else (f"extra_column_count([{listed}]) == 0",)
    return Claims("schema", (*claims, *others))


def columns_in_order(names: Sequence[object]) -> tuple[str, ...]:
    """The claims that a table has these columns in this order, and no others.

    :raises NoCounterpartError: one is not a name.
    """
    places = (f"column_position({column_text(name)}) == {n}" for n, name in enumerate(names, 1))
    return *places, f"column_count() == {len(names)}"


def groups_text(columns: Sequence[str]) -> str:
    """The groups of an assertion: ` for each (shop, day)`; empty without columns.

    :param columns: as DQL writes them.
    """
    listed = ", ".join(columns)
    return f" for each {listed if len(columns) == 1 else f'({listed})'}" if columns else ""


def value_text(value: object) -> str:
    """A literal: a number, a string, a boolean or a date.

    :raises NoCounterpartError: DQL has no literal for it.
    """
    match value:
        case bool():
            return str(value).lower()
        case int() if exact.is_finite_number(value):
            return str(value)
        case float() if exact.is_finite_number(value):
            return format(Decimal(repr(value)), "f") if "e" in repr(value) else repr(value)
        case datetime():
            return show_text(value.isoformat(sep=" "))
        case date():
            return value.isoformat()
        case str():
            return show_text(value)
        case _:
            raise NoCounterpartError(f"{value!r} cannot be compared with")


def list_text(values: Iterable[object]) -> str:
    """A list of literals: `["a", "b"]`.

    :raises NoCounterpartError: it is empty, or DQL has no literal for one of them.
    """
    items = [value_text(value) for value in values]
    if not items:
        raise NoCounterpartError("its list of values is empty")
    return f"[{', '.join(items)}]"


def all_hold(*conditions: object) -> str | None:
    """The condition in SQL that all of these hold; None without any."""
    return " AND ".join(f"({condition})" for condition in conditions if condition) or None


def percent_text(share: float) -> str:
    """A share as a percentage: 0.95 is `95%`.

    :raises NoCounterpartError: it is not a share.
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise NoCounterpartError("a share is a number from 0 to 1")
    return f"{round(share * 100, 9):.9f}".rstrip("0").rstrip(".") + "%"


def rows_text(predicate: str, share: float = 1) -> str:
    """`each row: ...`, or `95% of rows: ...`.

    :raises NoCounterpartError: `share` is not a share.
    """
    scope = "each row" if share == 1 else f"{percent_text(share)} of rows"
    return f"{scope}: {predicate}"


def finite(value: object) -> int | float:
    """:raises NoCounterpartError: it is not a finite number."""
    if not exact.is_finite_number(value):
        raise NoCounterpartError(f"{value!r:.40} is not a finite number")
    return value


def document_of(source: SourceFile) -> Any:
    """The contents of a file of JSON or YAML.

    :raises NoCounterpartError: the file is neither.
    """
    return read_foreign(source)[0]


def read_foreign(source: SourceFile) -> tuple[Any, tuple[tuple[int, str], ...]]:
    """The contents of a file of JSON or YAML, and the lines of YAML with a key that is there twice:
    its last value counts.

    :raises NoCounterpartError: the file is neither.
    """
    text = source.text.removeprefix("\ufeff")
    if match := exact.MANY_DIGITS.search(text):
        raise _too_large(text, match.start())
    if text.lstrip().startswith(("{", "[")):
        try:
            return json.loads(text, parse_int=_json_number, parse_float=_json_number), ()
        except _LargeNumberError as error:
            raise _too_large(text, text.index(error.args[0])) from None
        except (ValueError, RecursionError) as error:
            if source.name.endswith(".json"):
                raise NoCounterpartError(f"invalid JSON: {error}") from None
    read = read_document(SourceFile(source.name, text), last_key_counts=True)
    for diagnostic in read.diagnostics:
        if diagnostic.level is Level.ERROR:
            raise NoCounterpartError(f"line {diagnostic.span.line}: {diagnostic.message}")
    if read.root is None:
        raise NoCounterpartError("neither JSON nor YAML")
    repeated = tuple((one.span.line, one.message) for one in read.repeated)
    return plain_value(read.root), repeated


class _LargeNumberError(Exception):
    """A number of JSON has no nearest float."""


def _too_large(text: str, position: int) -> NoCounterpartError:
    line = text[:position].count("\n") + 1
    return NoCounterpartError(f"line {line}: {exact.TOO_LARGE}")


def _json_number(text: str) -> int | float:
    value = exact.finite_number(text)
    if value is None:
        raise _LargeNumberError(text)
    return value


class _OneLineDumper(yaml.SafeDumper):
    """Writes floats as they were written, and no anchors."""

    def ignore_aliases(self, data: object) -> bool:
        return True


_OneLineDumper.add_representer(
    exact.WrittenFloat,
    lambda dumper, value: dumper.represent_scalar("tag:yaml.org,2002:float", value.digits),
)
_OneLineDumper.add_representer(
    exact.WrittenInt,
    lambda dumper, value: dumper.represent_scalar("tag:yaml.org,2002:int", value.digits),
)


def yaml_line(value: object) -> str:
    """A rule in YAML or JSON, on one line."""
    text = yaml.dump(
        value, Dumper=_OneLineDumper, default_flow_style=True, width=10_000, sort_keys=False
    )
    return " ".join(text.replace("\n...\n", "").split())


OF_MANY_DATABASES = re.compile(
    r"where|filter|row_condition|(.*[ _])?(expression|query|condition)(_sql)?"
)
"""The keys of SQL in files of tools for several databases."""


@dataclass
class SqlOfTool:
    """Translates the SQL in a document to Spark SQL; the pattern `keys` matches keys with SQL.

    SQL that may have another value in Spark is replaced by a name in `refused`, which maps it to
    the SQL and the reason. SQL of the dialect `any` is translated if it means the same in all
    databases.
    """

    sql_dialect: str
    keys: re.Pattern[str]
    refused: dict[str, tuple[str, str]] = field(default_factory=dict)

    def rewritten(self, document: Any) -> Any:
        if isinstance(document, list):
            return [self.rewritten(item) for item in document]
        if not isinstance(document, Mapping):
            return document
        made = {key: self.rewritten(item) for key, item in document.items()}
        held = {key for key in made if isinstance(made[key], str) and self.keys.fullmatch(str(key))}
        return made | {key: self._in_spark(made[key]) for key in held}

    def _in_spark(self, sql: str) -> str:
        from dqx_airflow.contracts.compile.sql_rules import value_in_spark  # imports sqlglot

        if VARIABLE.search(sql) or not sql.strip():
            return sql
        start = "sql_value " if _IS_PART.match(sql) else ""
        written = start + re.sub(r"\{(\w+)\}", r"sql_held_\1", sql)
        try:
            text = value_in_spark(written, self.sql_dialect)
            if not text.startswith(start):
                raise NoCounterpartError(f"`{sql}` of a column has no counterpart")
            return re.sub(r"sql_held_(\w+)", r"{\1}", text.removeprefix(start))
        except NoCounterpartError as error:
            name, reason = f"refused_sql_{len(self.refused)}_", str(error)
            if self.sql_dialect == "any" and "--sql-dialect" not in reason:
                reason += ": add --sql-dialect with the name of its database"
            self.refused[name] = (sql, reason)
            return name

    def accounted(self, rule: ForeignRule) -> ForeignRule:
        """The rule, not translated if its SQL is refused."""
        for name, (sql, reason) in self.refused.items():
            if name in f"{rule.shown} {rule.where}":
                shown = rule.shown.replace(name, " ".join(sql.split()))
                rule = replace(rule, shown=shown, meaning=reason, where=None)
        return rule


_IS_PART = re.compile(
    r"\s*([<>=!~%*/|]|(is|in|like|ilike|rlike|regexp|similar|between)\b"
    r"|not\s+(in|like|ilike|rlike|regexp|similar|between)\b)",
    re.IGNORECASE,
)
"""The beginning of a condition whose left side is the column of the rule, as in `not in (1, 2)`;
`not is_deleted` is a condition of its own."""


def sql_text(text: object) -> str:
    """:raises NoCounterpartError: it is not SQL."""
    if not isinstance(text, str) or not text.strip():
        raise NoCounterpartError("it has no SQL")
    return text
