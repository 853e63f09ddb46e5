"""Checks the groups of an assertion: their columns, their list, and claims that have a value in
each group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks import call_arguments
from dqx_airflow.dql.constants import fold
from dqx_airflow.dql.printer import show, show_columns
from dqx_airflow.dql.walk import calls_in
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.metric import Scan
from dqx_airflow.values import MetricValue, Span

_COMPARED = "compare a metric of both: num_rows(dataset a) == num_rows(dataset b) for each ..."


@dataclass(slots=True)
class GroupChecker:
    """Collects the mistakes in the groups of the assertions of one check."""

    arguments: call_arguments.ArgumentChecker

    def check(self, for_each: nodes.ForEach, claim: nodes.Claim) -> None:
        columns: set[str] = set()
        for column in for_each.columns:
            self.arguments.check(call_arguments.COLUMN, column)
            if isinstance(column, nodes.Name):
                if column.text.lower() in columns:
                    message = f"'{column.text}' is listed twice"
                    self._error("E141", message, column.span, "remove one of them")
                columns.add(column.text.lower())
        share = for_each.share
        if share is not None and not 0 < share.value <= 1:
            message = "the share of the groups must be above 0% and at most 100%"
            self._error("E109", message, share)
        if for_each.groups is not None:
            self._listed(for_each.groups, for_each.columns)
        for message, span, help_line in _objections(claim):
            self._error("E140", message, span, help_line)
        if for_each.groups is None:
            self._blind(claim, for_each)

    def _listed(self, groups: nodes.Expression, columns: tuple[nodes.Expression, ...]) -> None:
        if not isinstance(groups, nodes.Listing) or not groups.items:
            message = 'expected a list of groups such as ["CH", "DE"]'
            self._error("E141", message, groups)
            return
        seen: set[tuple[tuple[type, MetricValue], ...]] = set()
        for group in groups.items:
            values = group.items if isinstance(group, nodes.Listing) else (group,)
            if len(values) != len(columns):
                names = ", ".join(map(show, columns))
                message = f"a group has {len(columns)} values here, one of each of: {names}"
                self._error("E141", message, group, "write groups like " + _example(len(columns)))
                continue
            for value in values:
                self._literal(value)
            key = tuple(map(self._key, values))
            if key in seen:
                self._error("E141", "this group is listed twice", group, "remove one of them")
            seen.add(key)

    def _literal(self, value: nodes.Expression) -> None:
        match value:
            case nodes.Name(text=name) if name in self.arguments.constants:
                self.arguments.used.add(name)
            case nodes.Name(text=name):
                help_line = f'write strings in quotes: "{name}"'
                self._error("E003", f"unknown constant '{name}'", value, help_line)
            case nodes.Text() | nodes.Number() | nodes.Truth() | nodes.Day() | nodes.Null():
                pass
            case _:
                self._error("E141", "expected a string, a number, a date or null", value)

    def _key(self, value: nodes.Expression) -> tuple[type, MetricValue]:
        folded = fold(value, self.arguments.constants)
        return type(folded) if isinstance(folded, bool | str) else int, folded

    def _blind(self, claim: nodes.Claim, for_each: nodes.ForEach) -> None:
        """Reports a claim that only groups without rows violate, which do not exist."""
        if _requires_rows_alone(claim, self.arguments.constants):
            columns = show_columns(for_each.columns)
            listed = ", ".join([_example(len(for_each.columns)), "..."])
            self.arguments.error(
                "W060",
                "this can never fail: only groups with rows are checked",
                for_each.span,
                f"list the groups, as in `{columns} in [{listed}]`, or compare with another day",
            )

    def _error(
        self, code: str, message: str, at: nodes.Expression | Span, help_line: str | None = None
    ) -> None:
        span = at if isinstance(at, Span) else at.span
        self.arguments.error(code, message, span, help_line)


def _example(columns: int) -> str:
    values = ", ".join(['"A"', '"B"', '"C"'][:columns])
    return f"({values})" if columns > 1 else values


def _objections(claim: nodes.Claim) -> Iterator[tuple[str, Span, str | None]]:
    """The parts of a claim that have no value in a group, with the reasons."""
    if isinstance(claim, nodes.HasColumn):
        yield "a column is the same in every group", claim.span, "remove `for each ...`"
        return
    if isinstance(claim, nodes.Composite):
        help_line = "write a separate assertion with `for each ...` for each of them"
        yield (
            "several assertions in one are evaluated together, for all rows",
            claim.span,
            help_line,
        )
        return
    if isinstance(claim, nodes.RowsMatch | nodes.ColumnsMatch):
        yield "two datasets are compared as a whole", claim.span, _COMPARED
        return
    for part in calls_in(claim):
        if part.name.text not in METRICS:
            continue
        metric = METRICS[part.name.text]
        name = f"`{metric.name}`"
        match metric.scan:
            case Scan.QUERY:
                help_line = "write GROUP BY in the query itself, or use `sql` or another metric"
                yield f"{name} cannot be computed for each group", part.span, help_line
            case Scan.MATCH:
                yield f"{name} compares two datasets as a whole", part.span, _COMPARED
            case Scan.SCHEMA | Scan.LOG:
                yield f"{name} is the same in every group", part.span, "remove `for each ...`"
            case _ if metric.is_of_texts:
                help_line = "assert it for all rows, without `for each ...`"
                yield f"{name} cannot be computed for each group", part.span, help_line


def _requires_rows_alone(claim: nodes.Claim, constants: nodes.Constants) -> bool:
    """True for `num_rows() > 0` and its equivalents, which hold for every existing group."""
    match claim:
        case nodes.Measure(expression=nodes.Call(name=nodes.Name(text="not_empty"))):
            return True
        case nodes.Measure(
            expression=nodes.Call(name=nodes.Name(text="num_rows"), parameters=()),
            condition=nodes.Comparison(op=op, bound=bound),
        ):
            return (op, fold(bound, constants)) in ((">", 0), (">=", 1), ("!=", 0))
        case _:
            return False
