"""The groups of rows that assertions are judged for, and how they are written."""

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
from dqx_airflow.metrics import spark_values
from dqx_airflow.metrics.types import Family, family_of
from dqx_airflow.plan import model, row_types
from dqx_airflow.plan.predicates import settled
from dqx_airflow.values import MetricValue


def columns_of(for_each: nodes.ForEach) -> tuple[str, ...]:
    """The columns that form the groups."""
    return tuple(column.text for column in for_each.columns if isinstance(column, nodes.Name))


def groupings_of(
    suite: nodes.Suite, constants: nodes.Constants
) -> dict[tuple[str, ...], model.Grouping]:
    """The grouping of rows for each set of columns, shared by all assertions that use it.

    If all of them list their groups, other rows are not grouped.

    :param constants: the constants of the suite, evaluated.
    """
    by_columns: dict[tuple[str, ...], list[tuple[nodes.ForEach, int]]] = {}
    for check in suite.checks:
        for assertion in check.assertions:
            if (groups := assertion.for_each) is not None:
                by_columns.setdefault(columns_of(groups), []).append((groups, _most(assertion)))
    return {
        columns: model.Grouping(
            columns,
            _only(columns, [groups for groups, _ in clauses], constants),
            max(most for _, most in clauses),
        )
        for columns, clauses in by_columns.items()
    }


def judged_groups(for_each: nodes.ForEach, constants: nodes.Constants) -> model.JudgedGroups:
    """The groups that an assertion is judged for.

    :param constants: the constants of the suite, evaluated.
    """
    listed = None
    if for_each.groups is not None:
        groups = _listed(for_each)
        listed = tuple(tuple(_value(value, constants) for value in group) for group in groups)
    share = 1 if for_each.share is None else for_each.share.value
    assert not isinstance(share, float)
    return model.JudgedGroups(columns_of(for_each), listed, share, show_for_each(for_each))


def too_many_groups(dataset: str, grouping: model.Grouping, on: date | None) -> str:
    """The message about a dataset with more groups than allowed."""
    columns = show_columns(grouping.columns)
    when = f" on {on}" if on else ""
    return (
        f"dataset '{dataset}' has more than {grouping.most:,} groups by {columns}{when}: list "
        f"those that matter (`for each {columns} in [...]`), or allow more with "
        f"`@max_groups(count={10 * grouping.most})`"
    )


def only_listed(grouping: model.Grouping, types: row_types.RowTypes) -> model.RowPredicate | None:
    """A predicate for the rows of the listed groups; None if all rows are grouped, also if a listed
    value is impossible in its column: the assertion reports that."""
    if grouping.only is None:
        return None
    try:
        types.check(grouping.only.node)
    except row_types.TypeObjection:
        return None
    return grouping.only


def misfit(judged: model.JudgedGroups, types: Mapping[str, tuple[str, ...]]) -> str | None:
    """The reason why listed groups, or the groups of two datasets, can never be equal; None if they
    can.

    :param types: the types of the grouping columns by dataset; empty if unknown.
    """
    for group in judged.listed or ():
        for dataset, kinds in types.items():
            where = f" in dataset '{dataset}'" if len(types) > 1 else ""
            for column, value, kind in zip(judged.columns, group, kinds, strict=True):
                if value is not None and not _can_hold(kind, value):
                    word = "string" if isinstance(value, str) else "number"
                    problem = f"{_show(value)} is a {word}, and the values of '{column}'{where}"
                    return f"{problem} are {_WRITTEN.get(family_of(kind), 'strings')}"
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
    family = family_of(kind)
    if not isinstance(value, str) or family is Family.NUMBER:
        return not isinstance(value, str) and family is Family.NUMBER
    if family is Family.TIME:
        return spark_values.is_day(value)
    return family is not Family.BOOLEAN or value in ("true", "false")


_WRITTEN = {
    Family.TIME: "dates: write 2024-03-02",
    Family.BOOLEAN: "true and false",
    Family.NUMBER: "numbers",
}
"""The values of a column, by their kind, and how they are written if that is special."""


def show_columns(columns: tuple[str, ...]) -> str:
    """The columns of groups as written: `country`, `(country, channel)`."""
    names = ", ".join(map(show_name, columns))
    return f"({names})" if len(columns) > 1 else names


def show_group(group: model.Group) -> str:
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


def _value(node: nodes.Expression, constants: nodes.Constants) -> MetricValue:
    folded = fold(node, constants)
    return ("true" if folded else "false") if isinstance(folded, bool) else folded


def _most(assertion: nodes.Assertion) -> int:
    """The maximum number of groups."""
    given = (
        int(value.value)
        for annotation in assertion.annotations
        if annotation.name.text == "max_groups"
        for _, value in annotation.arguments
        if isinstance(value, nodes.Number)
    )
    return next(given, DEFAULT_MOST_GROUPS)


def _listed(for_each: nodes.ForEach) -> list[tuple[nodes.Expression, ...]]:
    assert isinstance(for_each.groups, nodes.Listing)
    return [
        group.items if isinstance(group, nodes.Listing) else (group,)
        for group in for_each.groups.items
    ]


def _only(
    columns: tuple[str, ...], clauses: Iterable[nodes.ForEach], constants: nodes.Constants
) -> model.RowPredicate | None:
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
        test: nodes.Expression = nodes.IsNull(name, span=name.span)
        if known:
            listing = nodes.Listing(known, span=name.span)
            member = nodes.Member(name, listing, span=name.span)
            has_null = len(known) < len(values)
            test = nodes.Junction("or", test, member, span=name.span) if has_null else member
        tests.append(test)
    node = reduce(lambda left, right: nodes.Junction("and", left, right, span=left.span), tests)
    return settled(node, constants)
