"""Checks the arguments of calls: their number, names, types and filters; and the Spark SQL of
`sql(...)` and `query(...)`: one read-only expression, nothing else.

sqlglot parses it. It is imported only if a suite contains such SQL.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from typing import TYPE_CHECKING

from dqx_airflow.diagnostics.diagnostic import Diagnostic, did_you_mean, nearest
from dqx_airflow.diagnostics.verdicts import format_value
from dqx_airflow.dql import nodes
from dqx_airflow.dql.moments import is_no_moment
from dqx_airflow.dql.printer import show, show_name
from dqx_airflow.dql.spark_calls import objection_to_calls
from dqx_airflow.dql.walk import fold
from dqx_airflow.errors import RequestError
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.derived import (
    AGES,
    DISTRIBUTION,
    HOLIDAYS,
    MOST_COMMON,
    SHORTCUTS,
    TIMELINESS,
)
from dqx_airflow.metrics.drift import DRIFT, EARLIER_DAYS
from dqx_airflow.metrics.metric import Argument, ArgumentKind, Scan
from dqx_airflow.metrics.row_functions import QUANTIFIERS, ROW_FUNCTIONS
from dqx_airflow.metrics.usual_limits import holidays_of
from dqx_airflow.values import MetricValue, Span
from dqx_airflow.values.exact import NUMBERS

if TYPE_CHECKING:
    from sqlglot import Expr, exp


_OF_ROWS = frozenset((*AGES, *DRIFT, *SHORTCUTS, DISTRIBUTION, MOST_COMMON, TIMELINESS, "values"))
"""Calls other than metrics that select rows."""


def takes_where(name: str) -> bool:
    """True for a call that measures rows, and so can measure some of them."""
    return METRICS[name].takes_where if name in METRICS else name in _OF_ROWS


def hint_without_where(name: str) -> str:
    """The hint for a filter in a call that takes none."""
    if name == "sql":
        return "write it in the SQL, as in sum(amount) FILTER (WHERE status = 'paid')"
    if name == "query":
        return "write it in the SQL, as in SELECT count(*) FROM orders WHERE status = 'paid'"
    if name in METRICS and METRICS[name].scan is Scan.MATCH:
        return "set a filter on each dataset"
    if name in METRICS and METRICS[name].scan is not Scan.FLAT:
        return "remove it: the result does not depend on the rows"
    if name in ROW_FUNCTIONS or name in QUANTIFIERS:
        return "write it after the assertion"
    return f'write it in the metric: {name}(average(price, where status == "paid"))'


def _one_column_each(call: str, columns: Iterable[nodes.Expression]) -> str:
    """The hint for a list where one column is expected: a call for each column."""
    listed = ", ".join(map(show, columns))
    if call == "unique":
        return f"write duplicate_count([{listed}]) == 0"
    if call in SHORTCUTS:
        return f"write {call}({listed}), without brackets"
    return "write an assertion for each column"


def _as_written(call: nodes.Call, form: str | None = None) -> str | None:
    """The hint with the form of a call; None if that is unknown."""
    if (metric := METRICS.get(call.name.text)) is not None:
        form = metric.signature
    return f"write {form}" if form else None


COLUMN = Argument("column", ArgumentKind.COLUMN)
_OF_COLUMNS = (ArgumentKind.COLUMN, ArgumentKind.COLUMNS, ArgumentKind.NAMES)


@dataclass(slots=True)
class ArgumentChecker:
    """Checks calls in one check of a suite. `used` collects the constants it meets."""

    datasets: tuple[nodes.Name, ...]
    constants: nodes.Constants
    report: Callable[[Diagnostic], None]
    used: set[str] = field(default_factory=set)

    def error(
        self, code: str, message: str, span: Span, help_line: str | None = None, *, label: str = ""
    ) -> None:
        self.report(Diagnostic(message, span, code=code, label=label, help=help_line))

    def count(
        self, call: nodes.Call, fewest: int, most: int | None, form: str | None = None
    ) -> bool:
        """False if the call has too few or too many arguments.

        :param form: how to write the call; by default, the form of the metric.
        """
        given = len(call.arguments)
        if given >= fewest and (most is None or given <= most):
            return True
        if self._signed_parameter(call):
            return False
        name = call.name.text
        wanted = str(fewest) if fewest == most else f"{fewest} or more"
        plural = "argument" if wanted == "1" else "arguments"
        message = f"{name} takes {wanted} {plural}, not {given}"
        self.error("E101", message, call.span, _as_written(call, form))
        return False

    def _signed_parameter(self, call: nodes.Call) -> bool:
        """True if an argument is a parameter with a sign, `lag -1`, which reads as a difference."""
        for node in call.arguments:
            match node:
                case nodes.Arithmetic(left=nodes.Name(text="lag" | "n" | "step" as name)):
                    message = f"'{name}' takes a whole number of days"
                    self.error("E101", message, node.span, f"write {name} 1")
                    return True
        return False

    def check(self, argument: Argument, node: nodes.Expression, call: str = "") -> None:
        """Checks that `node` is what the argument of a call requires."""
        match argument.kind, node:
            case ArgumentKind.COLUMN | ArgumentKind.COLUMNS | ArgumentKind.NAMES, nodes.Name():
                pass
            case ArgumentKind.COLUMNS | ArgumentKind.NAMES, nodes.Listing(items=items) if items:
                for item in items:
                    if not isinstance(item, nodes.Name):
                        self.error("E101", "this is not a column", item.span)
            case ArgumentKind.LITERALS, nodes.Text() | nodes.Number() | nodes.Truth():
                pass
            case ArgumentKind.LITERALS, nodes.Name(text=name) if name in self.constants:
                self.used.add(name)
            case ArgumentKind.LITERALS, nodes.Listing():
                self.choices(node)
            case ArgumentKind.COUNT, _:
                self._count(node)
            case ArgumentKind.SHARE, _:
                self._share(node)
            case ArgumentKind.SQL, nodes.Text():
                pass  # its content is checked by `check_sql`
            case _:
                self._wrong_kind(argument, node, call)

    def _share(self, node: nodes.Expression) -> None:
        share = self._folded(node)
        if not isinstance(share, NUMBERS) or not 0 <= share <= 1:
            is_plain = not (isinstance(node, nodes.Number) and node.unit is nodes.Unit.PERCENT)
            is_percent = is_plain and isinstance(share, NUMBERS) and 1 < share <= 100
            help_line = f"write {format_value(share)}%" if is_percent else None
            self.error("E101", f"expected {ArgumentKind.SHARE.value}", node.span, help_line)

    def _count(self, node: nodes.Expression) -> None:
        count = self._folded(node)
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= 1000:
            self.error("E101", f"expected {ArgumentKind.COUNT.value}", node.span)

    def _folded(self, node: nodes.Expression) -> MetricValue:
        """The value of a constant expression; the constant that it may name is used."""
        if isinstance(node, nodes.Name):
            self.used.add(node.text)
        return fold(node, self.constants)

    def _wrong_kind(self, argument: Argument, node: nodes.Expression, call: str) -> None:
        help_line = None
        match argument.kind, node:
            case ArgumentKind.COLUMN, nodes.Listing(items=items) if items:
                help_line = _one_column_each(call, items)
            case ArgumentKind.LITERALS, nodes.Name(text=name):
                help_line = f'write strings in quotes: "{name}"'
            case kind, nodes.Text() if kind in _OF_COLUMNS:
                help_line = "write columns without quotes, or in backticks"
            case kind, nodes.Truth() | nodes.Null() if kind in _OF_COLUMNS:
                help_line = f"for a column of this name, write backticks: `{show(node)}`"
        self.error("E101", f"expected {argument.kind.value}", node.span, help_line)

    # Parameters

    def no_parameters(self, call: nodes.Call) -> None:
        for parameter in call.parameters:
            if parameter.name.text == "where":
                self._no_filter(call, parameter)
                continue
            message = f"{call.name.text} has no parameter '{parameter.name.text}'"
            self.error("E101", message, parameter.span)

    def _no_filter(self, call: nodes.Call, parameter: nodes.Parameter) -> None:
        name = call.name.text
        self.error("E121", f"`{name}` takes no filter", parameter.span, hint_without_where(name))

    def parameters(
        self, call: nodes.Call, allowed: tuple[str, ...], of_metric: tuple[Argument, ...] = ()
    ) -> None:
        """Checks `lag`, `n`, `dataset` and `where` where they are allowed, and the parameters of
        the metric. The predicate of a filter is checked elsewhere."""
        seen: set[str] = set()
        names = (*allowed, *(argument.name for argument in of_metric))
        for parameter in call.parameters:
            name = parameter.name.text
            if name == "where" and name not in names:
                self._no_filter(call, parameter)
            elif name not in names:
                message = f"{call.name.text} has no parameter '{name}'"
                self.error("E101", message, parameter.name.span, did_you_mean(name, names))
            elif name in seen:
                self.error("E101", f"duplicate parameter '{name}'", parameter.span)
            elif name == "dataset" and name in allowed:
                self._dataset(parameter)
            elif name == "where":
                pass
            elif name == HOLIDAYS:
                self._country(parameter)
            elif name in allowed:
                self._days(parameter, fewest=1 if name in ("n", "step", EARLIER_DAYS) else 0)
            else:
                self._own(
                    parameter, next(argument for argument in of_metric if argument.name == name)
                )
            seen.add(name)

    def _own(self, parameter: nodes.Parameter, argument: Argument) -> None:
        match argument.kind:
            case ArgumentKind.DATASET:
                pass  # checked by `other_dataset`
            case ArgumentKind.TOLERANCE | ArgumentKind.STEP as kind:
                is_step, value = kind is ArgumentKind.STEP, self._folded(parameter.value)
                if not isinstance(value, NUMBERS) or value < 0 or (is_step and value == 0):
                    example = "step 10, or step 1 hour" if is_step else "tolerance 0.01"
                    message = f"expected {kind.value}"
                    self.error("E101", message, parameter.value.span, f"write {example}")
            case _:
                self.check(COLUMN, parameter.value)

    def required(self, call: nodes.Call, of_metric: tuple[Argument, ...], form: str = "") -> None:
        """Checks the required parameters of a call; `form` as for `count`."""
        for argument in of_metric:
            if argument.is_required and call.parameter(argument.name) is None:
                message = f"{call.name.text} needs `{argument.name}`"
                self.error("E101", message, call.span, _as_written(call, form))

    def _days(self, parameter: nodes.Parameter, *, fewest: int) -> None:
        days = self._folded(parameter.value)
        if not isinstance(days, int) or not fewest <= days <= 3660:
            message = f"'{parameter.name.text}' takes a whole number of days"
            self.error("E101", message, parameter.value.span, f"from {fewest} to 3660")

    def _country(self, parameter: nodes.Parameter) -> None:
        value = parameter.value
        if not isinstance(value, nodes.Text):
            message = f"'{HOLIDAYS}' takes a country or region"
            self.error("E101", message, value.span, 'write holidays "US", or holidays "DE-BY"')
            return
        try:
            holidays_of(value.value, date(2024, 1, 1), date(2024, 1, 1))
        except RequestError as error:
            self.error("E101", error.problem, value.span, error.hint)

    def _dataset(self, parameter: nodes.Parameter) -> None:
        value = parameter.value
        if not isinstance(value, nodes.Name):
            self.error("E101", "'dataset' takes the name of a dataset", value.span)
        else:
            self.known_dataset(value)

    def known_dataset(self, name: nodes.Name) -> None:
        """Checks that the name is one of the datasets of this check."""
        known = [dataset.text for dataset in self.datasets]
        if name.text in known:
            return
        message = f"dataset '{name.text}' is not one of this check's datasets"
        near = nearest(name.text, known)
        added = f"add it: on {', '.join([*known, name.text])}"
        self.error("E009", message, name.span, f"did you mean '{near}'?" if near else added)

    def other_dataset(self, call: nodes.Call) -> None:
        """Checks a call that compares a dataset of the check with another one."""
        dataset = call.parameter("dataset")
        if dataset is None:
            message = f"{call.name.text} needs a dataset to compare with"
            # Soda and others count NULL with `missing_count`.
            help_line = f"{_as_written(call)}; null_count(column) counts NULL values"
            self.error("E101", message, call.span, help_line)
        elif not isinstance(dataset, nodes.Name):
            self.error("E101", "'dataset' takes the name of a dataset", dataset.span)
        else:
            self._base(dataset)

    def _base(self, other: nodes.Name) -> None:
        """Checks that a single dataset is compared with the other one."""
        rest = [dataset.text for dataset in self.datasets if dataset.text != other.text]
        if not rest:
            help_line = "name another dataset, or move the assertion to a check on another one"
            self.error("E130", f"'{other.text}' is compared with itself", other.span, help_line)
        elif len(rest) > 1:
            message = f"this check has several datasets to compare ({', '.join(rest)})"
            self.error("E009", message, other.span, "move the assertion to a check on one of them")

    def unambiguous(self, span: Span, help_line: str) -> None:
        """Checks that rows without a dataset of their own are in a check with a single dataset."""
        if len(self.datasets) > 1:
            names = ", ".join(dataset.text for dataset in self.datasets)
            self.error("E009", f"ambiguous dataset: this check has {names}", span, help_line)

    def one_dataset(self, call: nodes.Call) -> None:
        """Checks that a call without `dataset` is in a check with a single dataset."""
        if call.parameter("dataset") is not None:
            return
        if len(self.datasets) > 1:
            names = ", ".join(dataset.text for dataset in self.datasets)
            example = f"dataset {self.datasets[0].text}"
            message = f"this check has several datasets ({names}): choose one"
            self.error("E009", message, call.span, f"add `{example}` to the arguments")

    # Lists and values of other datasets

    def choices(self, node: nodes.Expression) -> None:
        """Checks that `node` is a list of literals."""
        if not isinstance(node, nodes.Listing) or not node.items:
            self.error("E101", 'expected a list of values such as ["A", "B"]', node.span)
            return
        for item in node.items:
            if isinstance(item, nodes.Name) and item.text in self.constants:
                self.used.add(item.text)
            elif isinstance(item, nodes.Name):
                help_line = (
                    "a list cannot contain null: in a predicate, add `or x is null`"
                    if is_null_word(item)
                    else f'write strings in quotes: "{item.text}"'
                )
                self.error("E003", f"unknown constant '{item.text}'", item.span, help_line)
            elif not isinstance(item, nodes.Text | nodes.Number | nodes.Day | nodes.Truth):
                self.error("E101", "expected a string, a number or a date", item.span)

    def values_of_other(self, node: nodes.Expression) -> None:
        """Checks `values(column, dataset other)`; the other dataset need not be listed after
        `on`."""
        if not isinstance(node, nodes.Call) or node.name.text != "values":
            message = "expected a list, or the values of a dataset"
            self.error("E101", message, node.span, "write values(column, dataset other)")
            return
        if self.count(node, 1, 1, "values(column, dataset other)"):
            self.check(COLUMN, node.arguments[0])
        match node.parameters:
            case (nodes.Parameter(name=nodes.Name(text="dataset"), value=nodes.Name()),):
                pass
            case _ if (where := node.where) is not None:
                message = "the values of another dataset cannot be filtered"
                other = node.parameter("dataset")
                name = show(other) if other is not None else "it"
                help_line = (
                    f"set the `filter` of dataset {name}: it selects the rows whose values are "
                    "known (a filter after the assertion selects the rows that are checked)"
                )
                self.error("E121", message, where.span, help_line)
            case _:
                message = "missing dataset for `values`"
                self.error("E101", message, node.span, "write values(column, dataset other)")


def is_null_word(node: nodes.Name) -> bool:
    """True for the word `null`; a column of that name needs backticks."""
    span = node.span
    is_bare = span.end_column - span.column == len(node.text)
    return is_bare and node.text.casefold() == "null"


def first_column(call: nodes.Call) -> str:
    """The column of a call, as written; "column" if it has none."""
    match call.arguments:
        case (nodes.Name(text=name), *_):
            return show_name(name)
        case _:
            return "column"


_TABLE_FUNCTIONS = frozenset({"range", "explode", "posexplode", "inline", "stack"})
_FILE_FORMATS = frozenset(
    {"delta", "parquet", "csv", "json", "orc", "avro", "iceberg", "text", "xml", "binaryfile"}
)
_INDIRECT = ("identifier", "table", "input_file", "_metadata", "dqx: ")
"""Beginnings of names in SQL by which columns are read that are not named, as is the value of a
folder."""
_OF_PATHS = frozenset("/.:\\")

_READ_ONLY = {
    "sql": 'write one aggregate expression, such as sql("sum(amount) / count(*)")',
    "query": 'write one query, such as query("SELECT count(*) FROM orders")',
}


class _RefusedSqlError(Exception):
    """SQL is rejected: the reason and, if more specific than the form of all SQL, a hint."""

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.hint = hint


def check_sql(kind: str, text: nodes.Text, arguments: ArgumentChecker) -> None:
    """Reports what is wrong with the SQL of `sql` or `query`."""
    try:
        if kind == "sql":
            _check_aggregate(text.value)
        else:
            for name in _tables(text.value):
                arguments.known_dataset(nodes.Name(name, span=text.span))
    except _RefusedSqlError as refused:
        arguments.error("E115", str(refused), text.span, refused.hint or _READ_ONLY[kind])


def objection_to_select(text: str) -> str | None:
    """The reason why SQL is not a single read-only query over catalog tables; None if it is."""
    try:
        for table in _tables_in(_query(text)):
            parts = [part.name for part in table.parts]
            # `parquet.`/some/path`` reads files outside of the catalog.
            if any(set(part) & _OF_PATHS for part in parts) or (
                len(parts) > 1 and parts[-2].lower() in _FILE_FORMATS
            ):
                place = table.sql(dialect="spark")
                return f"{place} is not a catalog table: give its path as a dataset"
    except _RefusedSqlError as refused:
        return str(refused)
    return None


def tables_of_select(text: str) -> list[str]:
    """The tables that a query reads, by the names that it uses; empty if it is not a query."""
    try:
        parts = (table.parts for table in _tables_of_others(_query(text)))
        return list(dict.fromkeys(".".join(part.sql("spark") for part in path) for path in parts))
    except _RefusedSqlError:
        return []


def objection_to_filter(text: str) -> str | None:
    """The reason why SQL is not a predicate that depends on its rows only; None if it is."""
    try:
        _only(f"SELECT 1 WHERE {text}")
    except _RefusedSqlError as refused:
        return str(refused)
    return None


@cache
def may_read(query: str, columns: frozenset[str]) -> bool:
    """False only if a query certainly reads none of the columns: nothing in it has such a name, or
    stands for all columns, for columns by their position, or for text that becomes a name."""
    from sqlglot import exp

    names = {_folded(part) for column in columns for part in (column, column.split(".")[0])}
    try:
        tree = _only(query)
    except _RefusedSqlError:
        return True
    if not isinstance(tree, exp.Query):
        return True
    for node in tree.walk():
        is_by_position = isinstance(node, exp.TableAlias) and bool(node.args.get("columns"))
        is_everything = isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count)
        # Spark can be set to take strings in double quotes for names.
        may_name = isinstance(node, exp.Identifier | exp.Anonymous | exp.Literal)
        name = _folded(node.name) if may_name else ""
        is_named = name in names or name.startswith(_INDIRECT)
        if is_by_position or is_everything or is_named:
            return True
    return False


def _folded(name: str) -> str:
    """A name as Spark compares it: letter by letter, in upper and in lower case."""
    return name.upper().lower().replace("\N{COMBINING DOT ABOVE}", "")


def _check_aggregate(text: str) -> None:
    from sqlglot import exp

    select = _only(f"SELECT {text}")
    is_select = isinstance(select, exp.Select) and len(select.expressions) == 1
    others = (value for key, value in select.args.items() if key not in ("expressions", "kind"))
    if not is_select or any(others):
        raise _RefusedSqlError("expected a single expression")
    if select.find(exp.Subquery) or len(list(select.find_all(exp.Query))) > 1:
        raise _RefusedSqlError("a subquery in an aggregate expression: use query()")
    if select.find(exp.Window):
        raise _RefusedSqlError("a window function is not an aggregate")
    if not select.find(exp.AggFunc, exp.Anonymous, exp.AnonymousAggFunc):
        raise _RefusedSqlError("missing aggregate function, such as sum or count")


def _tables(text: str) -> Iterator[str]:
    """The datasets that a query for one value reads."""
    from sqlglot import exp

    query = _query(text)
    if isinstance(query, exp.Select) and len(query.expressions) != 1:
        raise _RefusedSqlError("the query must return one column")
    for table in _tables_of_others(query):
        if table.db or table.catalog:
            place = table.sql(dialect="spark")
            message = f"{place} is not a dataset: queries cannot read files or catalogs"
            raise _RefusedSqlError(message)
        yield table.name


def _query(text: str) -> exp.Query:
    from sqlglot import exp

    query = _only(text)
    if not isinstance(query, exp.Query):
        raise _RefusedSqlError("this is not a query")
    return query


def _tables_of_others(query: exp.Query) -> Iterator[exp.Table]:
    """The tables of a query that it does not define itself."""
    from sqlglot import exp

    defined = {cte.alias_or_name.lower() for cte in query.find_all(exp.CTE)}
    for table in _tables_in(query):
        if table.db or table.catalog or table.name.lower() not in defined:
            yield table


def _tables_in(query: exp.Query) -> Iterator[exp.Table]:
    """Everything that a query reads by name, except for table functions, which are checked."""
    from sqlglot import exp

    for table in query.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier):
            yield table
            continue
        name = table.this.name or table.this.sql_name()
        if name.lower() not in _TABLE_FUNCTIONS:
            raise _RefusedSqlError(f"the table function '{name}' is not allowed")


def _moment_in(node: Expr) -> str | None:
    """The text of a literal such as `DATE '2024-02-29'`, with which Spark fails if it is not a
    date; `try_cast` makes it NULL."""
    from sqlglot import exp

    if not isinstance(node, exp.Cast) or node.args.get("safe"):
        return None
    is_moment = node.to.this in exp.DataType.TEMPORAL_TYPES
    is_text = isinstance(node.this, exp.Literal) and node.this.is_string
    return str(node.this.this) if is_moment and is_text else None


def _only(text: str) -> Expr:
    """Parses the single statement of a text, which must neither write nor leave Spark SQL."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import ParseError, SqlglotError

    # Unknown syntax is rejected below: sqlglot's own warning would add nothing.
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    try:
        statements = [
            parsed for parsed in sqlglot.parse(text, dialect="spark") if parsed is not None
        ]
    except SqlglotError as error:
        details = error.errors if isinstance(error, ParseError) else []
        problem = (details[0]["description"] if details else str(error)).splitlines()[0]
        problem = problem.split(" for <class")[0]
        raise _RefusedSqlError(f"invalid Spark SQL: {problem}") from error
    except RecursionError:
        raise _RefusedSqlError("the SQL is nested too deeply") from None
    if len(statements) != 1:
        raise _RefusedSqlError("expected one statement")
    statement = statements[0]
    writing = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Command, exp.Into)
    for node in statement.walk():
        if isinstance(node, (*writing, exp.QueryTransform)):  # TRANSFORM runs a script
            raise _RefusedSqlError("only read-only SQL is allowed")
        if (moment := _moment_in(node)) is not None and is_no_moment(moment):
            hint = "write a day and a time that exist, or try_cast for a value that may be NULL"
            raise _RefusedSqlError(f"{moment!r} is not a date or timestamp", hint)
    objection = objection_to_calls(text)
    if objection is not None:
        raise _RefusedSqlError(objection)
    return statement
