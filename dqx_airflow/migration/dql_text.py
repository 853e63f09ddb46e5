"""Parts of DQL as text: columns and values of other tools in the syntax of the language."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime

from dqx_airflow.dql.printer import show_name, show_text
from dqx_airflow.exact import is_finite_number
from dqx_airflow.migration.foreign_rule import UntranslatableError


def column_text(name: object) -> str:
    """A column; a dot leads into a struct, as in Spark.

    :raises UntranslatableError: it is not a name.
    """
    if not isinstance(name, str) or not name.strip() or "\n" in name:
        raise UntranslatableError("it does not name a column")
    if "{{" in name or "{%" in name:
        raise UntranslatableError(f"the name {name.strip()} is a template: write the column")
    bare = name.strip()
    if bare.startswith("`") and bare.endswith("`") and len(bare) > 2:
        return "`" + bare[1:-1].replace("``", "`").replace("`", "``") + "`"
    return ".".join(map(show_name, bare.split(".")))


def columns_text(names: Sequence[object]) -> str:
    """Columns as arguments: `id, shop`.

    :raises UntranslatableError: there are none, or one is not a name.
    """
    if not names:
        raise UntranslatableError("it does not name columns")
    return ", ".join(map(column_text, names))


def columns_exist(names: Sequence[object]) -> tuple[str, ...]:
    """The claims that columns exist.

    :raises UntranslatableError: one is not a name.
    """
    return tuple(f"column {column_text(name)} exists" for name in names)


def only_columns(names: Sequence[object]) -> tuple[str, ...]:
    """The claims that columns exist, and no others.

    :raises UntranslatableError: there are none, or one is not a name.
    """
    return *columns_exist(names), f"extra_column_count([{columns_text(names)}]) == 0"


def columns_in_order(names: Sequence[object]) -> tuple[str, ...]:
    """The claims that a table has these columns in this order, and no others.

    :raises UntranslatableError: one is not a name.
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

    :raises UntranslatableError: DQL has no literal for it.
    """
    match value:
        case bool():
            return str(value).lower()
        case int() if is_finite_number(value):
            return str(value)
        case float() if is_finite_number(value):
            return format(value, "f") if 0 < abs(value) < 1e-4 else repr(value)
        case datetime():
            return show_text(value.isoformat(sep=" "))
        case date():
            return value.isoformat()
        case str():
            return show_text(value)
        case _:
            raise UntranslatableError(f"{value!r} cannot be compared with")


def list_text(values: Iterable[object]) -> str:
    """A list of literals: `["a", "b"]`.

    :raises UntranslatableError: it is empty, or DQL has no literal for one of them.
    """
    items = [value_text(value) for value in values]
    if not items:
        raise UntranslatableError("its list of values is empty")
    return f"[{', '.join(items)}]"


def percent_text(share: float) -> str:
    """A share as a percentage: 0.95 is `95%`.

    :raises UntranslatableError: it is not a share.
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise UntranslatableError("a share is a number from 0 to 1")
    return f"{round(share * 100, 9):.9f}".rstrip("0").rstrip(".") + "%"


def rows_text(predicate: str, share: float = 1) -> str:
    """`each row: ...`, or `95% of rows: ...`.

    :raises UntranslatableError: `share` is not a share.
    """
    scope = "each row" if share == 1 else f"{percent_text(share)} of rows"
    return f"{scope}: {predicate}"


def number(value: object) -> int | float:
    """:raises UntranslatableError: it is not a finite number."""
    if not is_finite_number(value):
        raise UntranslatableError(f"{value!r:.40} is not a finite number")
    return value
