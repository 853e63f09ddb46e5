"""The groups of assertions, and groupings of rows that serve several of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from functools import reduce
from itertools import pairwise

from dqx_airflow.diagnostics.verdicts import format_value
from dqx_airflow.dql import nodes
from dqx_airflow.dql.constants import fold
from dqx_airflow.dql.printer import show_for_each, show_name, show_text
from dqx_airflow.limits import DEFAULT_MOST_GROUPS
from dqx_airflow.metrics.spark_values import is_day
from dqx_airflow.metrics.types import Family, family_of
from dqx_airflow.plan.model import Group, Grouping, JudgedGroups, RowPredicate
from dqx_airflow.plan.predicates import settled
from dqx_airflow.plan.row_types import RowTypes, TypeObjection
from dqx_airflow.values import MetricValue


def columns_of(for_each: nodes.ForEach) -> tuple[str, ...]:
    """The columns that form the groups."""
    return tuple(column.text for column in for_each.columns if isinstance(column, nodes.Name))


def groupings_of(
    suite: nodes.Suite, constants: Mapping[str, nodes.Constant]
) -> dict[tuple[str, ...], Grouping]:
    """The grouping of rows for each set of columns, shared by all assertions that use it.

    If all of them list their groups, other rows are not grouped.

    :param constants: those of the suite, evaluated.
    """
    by_columns: dict[tuple[str, ...], list[nodes.Assertion]] = {}
    for check in suite.checks:
        for assertion in check.assertions:
            if assertion.for_each is not None:
                by_columns.setdefault(columns_of(assertion.for_each), []).append(assertion)
    return {
        columns: Grouping(
            columns,
            _only(
                columns,
                [assertion.for_each for assertion in assertions if assertion.for_each],
                constants,
            ),
            max(map(_most, assertions)),
        )
        for columns, assertions in by_columns.items()
    }


def judged_groups(for_each: nodes.ForEach, constants: Mapping[str, nodes.Constant]) -> JudgedGroups:
    """The groups that an assertion is judged for.

    :param constants: those of the suite, evaluated.
    """
    listed = None
    if for_each.groups is not None:
        listed = tuple(
            tuple(_value(value, constants) for value in group) for group in _listed(for_each)
        )
    share = 1 if for_each.share is None else for_each.share.value
    assert not isinstance(share, float)
    return JudgedGroups(columns_of(for_each), listed, share, show_for_each(for_each))


def too_many_groups(dataset: str, grouping: Grouping, on: date | None) -> str:
    """The message about a dataset with more groups than allowed."""
    columns = show_columns(grouping.columns)
    when = f" on {on}" if on else ""
    return (
        f"dataset '{dataset}' has more than {grouping.most:,} groups by {columns}{when}: list "
        f"those that matter (`for each {columns} in [...]`), or allow more with "
        f"`@max_groups(count={10 * grouping.most})`"
    )


def only_listed(grouping: Grouping, types: RowTypes) -> RowPredicate | None:
    """A predicate for the rows of the listed groups; None if all rows are grouped, also if a listed
    value is impossible in its column: the assertion reports that."""
    if grouping.only is None:
        return None
    try:
        types.check(grouping.only.node)
    except TypeObjection:
        return None
    return grouping.only


def misfit(judged: JudgedGroups, types: Mapping[str, tuple[str, ...]]) -> str | None:
    """Why listed groups, or those of two datasets, can never be equal; None if they can.

    :param types: by dataset, those of the columns; empty if unknown.
    """
    for group in judged.listed or ():
        for dataset, kinds in types.items():
            where = f" in dataset '{dataset}'" if len(types) > 1 else ""
            for column, value, kind in zip(judged.columns, group, kinds, strict=True):
                if value is not None and not _can_hold(kind, value):
                    problem = (
                        f"{_show(value)} is a {_word(value)}, and the values of '{column}'{where}"
                    )
                    return f"{problem} are {_written(kind)}"
    for (first_dataset, kinds), (second_dataset, other_kinds) in pairwise(types.items()):
        for column, kind, different in zip(judged.columns, kinds, other_kinds, strict=True):
            if family_of(kind) is not family_of(different):
                return (
                    f"'{column}' is of type {kind} in dataset '{first_dataset}' and of type "
                    f"{different} in '{second_dataset}': they cannot have groups in common"
                )
    return None


def _can_hold(kind: str, value: MetricValue) -> bool:
    """Whether a column of a type can have a value, as it is spelled."""
    if not isinstance(value, str):
        return family_of(kind) is Family.NUMBER
    match family_of(kind):
        case Family.TIME:
            return is_day(value)
        case Family.BOOLEAN:
            return value in ("true", "false")
        case Family.NUMBER:
            return False
        case _:
            return True


def _word(value: MetricValue) -> str:
    return "string" if isinstance(value, str) else "number"


def _written(kind: str) -> str:
    """The kind of values of a column, and how they are written if that is special."""
    match family_of(kind):
        case Family.TIME:
            return "dates: write 2024-03-02"
        case Family.BOOLEAN:
            return "true and false"
        case Family.NUMBER:
            return "numbers"
        case _:
            return "strings"


def show_columns(columns: tuple[str, ...]) -> str:
    """The columns of groups as written: `country`, `(country, channel)`."""
    names = ", ".join(map(show_name, columns))
    return f"({names})" if len(columns) > 1 else names


def show_group(group: Group) -> str:
    """A group as written in a suite: `"CH"`, `("CH", 2024)`, NULL for a missing value.

    >>> show_group(("CH", None))
    '("CH", NULL)'
    """
    values = ", ".join(map(_show, group))
    return f"({values})" if len(group) > 1 else values


def _show(value: MetricValue) -> str:
    if value is None:
        return "NULL"
    return show_text(value) if isinstance(value, str) else format_value(value)


def _value(node: nodes.Expression, constants: Mapping[str, nodes.Constant]) -> MetricValue:
    folded = fold(node, constants)
    return ("true" if folded else "false") if isinstance(folded, bool) else folded


def _most(assertion: nodes.Assertion) -> int:
    """The maximum number of groups."""
    for annotation in assertion.annotations:
        if annotation.name.text == "max_groups":
            for _, value in annotation.arguments:
                if isinstance(value, nodes.Number):
                    return int(value.value)
    return DEFAULT_MOST_GROUPS


def _listed(for_each: nodes.ForEach) -> list[tuple[nodes.Expression, ...]]:
    assert isinstance(for_each.groups, nodes.Listing)
    return [
        group.items if isinstance(group, nodes.Listing) else (group,)
        for group in for_each.groups.items
    ]


def _only(
    columns: tuple[str, ...],
    clauses: Iterable[nodes.ForEach],
    constants: Mapping[str, nodes.Constant],
) -> RowPredicate | None:
    """A predicate for the rows of all listed groups; None if an assertion does not list its groups.

    Each column is tested separately, so that a few other groups may be included.
    """
    clauses = list(clauses)
    if any(clause.groups is None for clause in clauses):
        return None
    tests = []
    for number in range(len(columns)):
        name = next(clause.columns[number] for clause in clauses)
        values = dict.fromkeys(group[number] for clause in clauses for group in _listed(clause))
        known = tuple(value for value in values if not isinstance(value, nodes.Null))
        test: nodes.Expression = nodes.IsNull(name, name.span)
        if known:
            listing = nodes.Listing(known, name.span)
            member = nodes.Member(name, listing, name.span)
            has_null = len(known) < len(values)
            test = nodes.Junction("or", test, member, name.span) if has_null else member
        tests.append(test)
    node = reduce(lambda left, right: nodes.Junction("and", left, right, left.span), tests)
    return settled(node, constants)
