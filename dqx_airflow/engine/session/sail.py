"""Sail: a Spark Connect server without a JVM, as a server in this process or elsewhere, and how our
SQL is written for it.

Sail interprets some SQL differently from Spark. Our SQL is written so that both interpret it alike
where that is possible. The differences that are left are bridged here: a lookup is a join,
floating-point numbers and structs are brought into one form, and regular expressions are written as
the sets of characters that they mean. Known differences are in `engine/proof/sail.json`, and not
judged.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from dqx_airflow.datasets.spark_address import Connection, connection_of
from dqx_airflow.engine.session.engines import reported_version
from dqx_airflow.engine.session.spark_versions import context_of, is_version_of_spark
from dqx_airflow.errors import RequestError, SparkError
from dqx_airflow.metrics.patterns.portable import without_java
from dqx_airflow.metrics.patterns.syntax import PatternError
from dqx_airflow.metrics.sql import quote_literal, quote_path
from dqx_airflow.metrics.types import decimal_size
from dqx_airflow.plan.row_types import arithmetic_type
from dqx_airflow.values import DatasetRef

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger("dqx.gate")

INSTALL = "pip install 'dqx-airflow[sail]'"
INSTEAD = "run this gate on Spark"
_FORMATS = ("parquet", "delta", "csv", "json")
"""The formats of files in which Sail has the values that Spark reads: text is sent to it."""
_TEXTS = ("csv", "json")
_KNOWN_OPTIONS = {
    "parquet": ("mergeschema",),
    "csv": ("sep", "delimiter", "header", "nullvalue", "encoding", "charset"),
    "json": ("multiline", "encoding", "charset"),
}
"""The options that need not be left out: Parquet that is merged must have the same columns, and
text is read by this process."""
_UTF_8 = ("utf-8", "utf8")

STATISTICS_SETTING = "SAIL_EXECUTION__COLLECT_STATISTICS"
"""The setting of a server: without it, a column of a Parquet file whose extremes are equal is read
as that value in each row, though NaN is not among the extremes."""

_IDLE_SETTING = "SAIL_SPARK__SESSION_TIMEOUT_SECS"
"""The setting of a server: after so long without a query, it ends a session."""
_LONGEST_IDLE_S = 7 * 24 * 60 * 60
"""A session in a process of ours lives as long as the process, which may wait for people."""


@cache
def own_server() -> Connection:
    """The connection to a Sail server in this process, which is started once and ends with the
    process.

    :raises SparkError: the package pysail is missing.

    """
    try:
        from pysail.spark import SparkConnectServer
    except ImportError as error:
        raise SparkError("the package pysail is not installed", INSTALL) from error
    # Otherwise it reports on stderr what it does.
    os.environ.setdefault("RUST_LOG", "off")
    os.environ[STATISTICS_SETTING] = "false"
    os.environ[_IDLE_SETTING] = str(_LONGEST_IDLE_S)
    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    atexit.register(server.stop)
    host, port = server.listening_address
    return connection_of(f"sc://{host}:{port}")


def is_own_server(spark: SparkSession) -> bool:
    """True for a session on the Sail server in this process."""
    if not own_server.cache_info().currsize:
        return False
    builder = getattr(spark.client, "_builder", None)
    return own_server().address == f"sc://{getattr(builder, 'endpoint', '')}"


_versions: WeakKeyDictionary[Any, str | None] = WeakKeyDictionary()


def sail_version(spark: SparkSession) -> str | None:
    """The version of Sail behind a session; None for a Spark. From then on, SQL in requests of a
    Sail session is translated for Sail."""
    if spark not in _versions:
        _versions[spark] = _asked(spark)
    return _versions[spark]


def _asked(spark: Any) -> str | None:
    if context_of(spark) is not None:
        return None
    version = reported_version(spark)
    if is_version_of_spark(version):
        return None
    _write_in_dialect(spark.client)
    return version


def engine_version(spark: SparkSession) -> str:
    """The version of Spark, and of Sail if that is the engine: `4.2.0`, or `4.2.0 (Sail 0.7.2)`."""
    sail = sail_version(spark)
    return spark.version if sail is None else f"{spark.version} (Sail {sail})"


def objection_to_source(spark: SparkSession, ref: DatasetRef) -> str | None:
    """The reason for not reading a dataset with this engine; None if it is read."""
    if (sail := sail_version(spark)) is None:
        return None
    if ref.conn_id is not None:
        return f"Sail {sail} reads no databases over JDBC"
    if ref.query is not None:
        return f"Sail {sail} may read queries differently from Spark"
    if ref.table is None:
        return _objection_to_files(sail, ref)
    about = spark.sql(f"DESCRIBE TABLE EXTENDED {ref.table}").collect()
    is_view = any(tuple(row[:2]) == ("Type", "TEMPORARY") for row in about)
    return None if is_view else f"Sail {sail} was not tried with tables of a catalog"


def _objection_to_files(sail: str, ref: DatasetRef) -> str | None:
    if ref.format not in _FORMATS:
        return f"Sail {sail} reads no {ref.format}, only Parquet, Delta, CSV and JSON"
    if ref.format in _TEXTS and ref.schema is None:
        name = ref.format.upper()
        return f"Sail {sail} reads {name} with declared columns only: give the dataset a schema"
    if ref.format not in _TEXTS and ref.schema is not None:
        return f"Sail {sail} reads {ref.format} with its own columns only: leave out the schema"
    known = _KNOWN_OPTIONS.get(ref.format, ())
    options = [
        name
        for name, value in ref.options
        if name.casefold() not in known
        or (name.casefold() in ("encoding", "charset") and value.casefold() not in _UTF_8)
    ]
    if not options:
        return None
    return f"Sail {sail} was not tried with options of a dataset: leave out {', '.join(options)}"


def require_spark(spark: SparkSession, what: str) -> None:
    """Rejects Sail for something that it does not do.

    :raises RequestError: the engine is Sail.
    """
    if (sail := sail_version(spark)) is not None:
        raise RequestError(f"Sail {sail} evaluates assertions, and writes no data: {what}", INSTEAD)


def arrow_parts(frame: DataFrame) -> Iterator[Any]:
    """The rows of a frame as tables of Arrow, in the types of the frame; one without rows first."""
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(frame.schema, timezone="UTC")
    yield schema.empty_table()
    client = frame.sparkSession.client
    plan = frame._plan
    for part in client.to_table_as_iterator(plan.to_proto(client), plan.observations):
        if not isinstance(part, StructType):
            yield part.cast(schema)


def union_of(frames: Sequence[DataFrame], columns: Sequence[str]) -> DataFrame:
    """The rows of frames that all have the same columns.

    In pairs: a server of Sail ends at some 300 frames of which each is added to all before it. And
    it cannot plan a union directly below another one.
    """
    level = list(frames)
    names = [quote_path(column) for column in columns]
    while len(level) > 1:
        pairs = [level[start : start + 2] for start in range(0, len(level), 2)]
        level = [
            pair[0].unionAll(pair[1]).select(*names) if len(pair) == 2 else pair[0]
            for pair in pairs
        ]
    return level[0]


_QUOTED_PLAN = re.compile(r"\bPlan: \[.*", re.DOTALL)


_OF_DURATION = re.compile(
    r"Function 'try_(multiply|divide)' user-defined coercion failed.* got .*Duration\("
)


def in_words(reason: str) -> str:
    """The message of an error; a sentence instead if Sail has no such operation on durations, or if
    it quotes a plan of Sail, which goes to the log."""
    if (operation := _OF_DURATION.search(reason)) is not None:
        return f"Sail does not {operation[1]} a duration: compare it without that, or {INSTEAD}"
    if _QUOTED_PLAN.search(reason) is None:
        return reason
    _log.error("%s", reason)
    return f"Sail cannot plan this: its plan is in the log of the job; {INSTEAD}"


_PATTERN = re.compile(
    r"(?P<first>octet_length\((?P<column>[`\w.]+)\) [^'()]+ AND (?P=column) "
    r"RLIKE '(?:\\.|[^'\\])*' OR )(?=(?P=column) RLIKE)"
    r"|\b(?i:RLIKE|REGEXP)\s+'(?P<pattern>(?:\\.|[^'\\])*)'|'(?:\\.|[^'\\])*'|`[^`]*`",
    re.DOTALL,
)
"""A first test, which saves time in Java only; a pattern; what is quoted otherwise."""
_LONGEST = 60
"""How much of a pattern a message shows."""
_SINCE_1970 = "timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', "


def patterns_as_written(sql: str) -> list[str]:
    """The patterns that `in_dialect` finds, with their backslashes doubled, as in a literal."""
    return [found["pattern"] for found in _PATTERN.finditer(sql) if found["pattern"] is not None]


def in_dialect(sql: str) -> str:
    """Translates our SQL for Sail, with regular expressions that mean the same as in Java.

    :raises PySparkException: a regular expression has no equivalent.

    """
    return _with_own_calls(_PATTERN.sub(_in_dialect, sql.replace(_SINCE_1970, "unix_micros(")))


_PART = re.compile(r"'(?:\\.|[^'\\])*'|`[^`]*`|\w*\(|\w+|[^\w'`(),]+|.", re.DOTALL)
_OF_DECIMAL = re.compile(r"CAST\((.*) AS (DECIMAL\(\d+,\d+\))\)", re.DOTALL)
_OF_TIME = re.compile(r"CAST\(.* AS (?:TIMESTAMP(?:_NTZ)?|INTERVAL DAY TO SECOND)\)", re.DOTALL)
_WITHOUT_NULL = (
    *("count(", "sum(", "try_sum(", "min(", "max(", "percentile("),
    *("var_samp(", "covar_pop(", "stddev_pop("),
)
"""The aggregates of our SQL that leave out NULL."""
_OPERATORS = {"try_add(": "+", "try_subtract(": "-", "try_multiply(": "*", "try_divide(": "/"}


def _with_own_calls(sql: str) -> str:
    """Replaces calls of functions that Sail lacks, or has for fewer types, by equivalent SQL."""
    open_calls = [_Open("")]
    for part in _PART.findall(sql):
        inner = open_calls[-1]
        if part.endswith("("):
            open_calls.append(_Open(part))
        elif part == ",":
            inner.arguments.append("")
        elif part == ")" and len(open_calls) > 1:
            open_calls.pop()
            open_calls[-1].add_call(inner)
        else:
            inner.arguments[-1] += part
    return "".join(call.call + ",".join(call.arguments) for call in open_calls)


@dataclass(slots=True)
class _Open:
    """A call that is not closed yet, its arguments so far, and the last call in the last one."""

    call: str
    arguments: list[str] = field(default_factory=lambda: [""])
    closed: _Closed | None = None

    def add_call(self, inner: _Open) -> None:
        """Adds a call that was closed; or, for the parentheses of a FILTER, its condition."""
        text = self.arguments[-1]
        if self.closed is not None and self.closed.is_filtered(text, inner):
            self.arguments[-1] = self.closed.with_condition(inner.arguments[0])
            return
        self.closed = _Closed(text, inner.call, inner.arguments)
        self.arguments[-1] = self.closed.sql


@dataclass(frozen=True, slots=True)
class _Closed:
    """A call, and the text before it."""

    before: str
    call: str
    arguments: list[str]

    @property
    def sql(self) -> str:
        return f"{self.before}{_own_call(self.call, self.arguments)}"

    def is_filtered(self, text: str, inner: _Open) -> bool:
        """True for the parentheses of the FILTER of the call, if its condition has to stand within
        the call: where a filter leaves no row, Sail raises errors of rows that are not there."""
        is_filter = inner.call == "(" and inner.arguments[0].startswith("WHERE ")
        is_of_values = self.call in _WITHOUT_NULL and not self.arguments[0].startswith("DISTINCT ")
        has_error = "raise_error(" in "".join(self.arguments)
        return is_filter and is_of_values and has_error and text == f"{self.sql} FILTER "

    def with_condition(self, where: str) -> str:
        """The call over the rows of its filter."""
        first, *others = self.arguments
        condition = where.removeprefix("WHERE ")
        inside = [f"CASE WHEN {condition} THEN {first} END", *others]
        return f"{self.before}{self.call}{','.join(inside)})"


def _own_call(call: str, arguments: list[str]) -> str:
    operands = [argument.strip() for argument in arguments]
    if call == "split(" and operands[1:] == ["'(?!$)'"]:
        # Sail also returns the empty strings before the first character and after the last.
        return f"array_remove(split({operands[0]}, ''), '')"
    if call in _OPERATORS and all(map(_OF_TIME.fullmatch, operands)):
        # An error where there is no result: Sail has no other answer to that.
        return f"({f' {_OPERATORS[call]} '.join(operands)})"
    if call in _OPERATORS and all(map(_OF_DECIMAL.fullmatch, operands)):
        return _of_decimals(_OPERATORS[call], operands)
    return f"{call}{','.join(arguments)})"


def _of_decimals(op: str, operands: list[str]) -> str:
    """Spark SQL for arithmetic on decimals: computed with twice the digits, for which Sail has
    room, then rounded as Spark does."""
    (first, kind), (second, other_kind) = (_OF_DECIMAL.findall(side)[0] for side in operands)
    result = str(arithmetic_type(op, kind.lower(), other_kind.lower()))
    scale, other_scale, places = (decimal_size(size)[1] for size in (kind, other_kind, result))
    if op == "/":
        # Sail gives a quotient four more places than its dividend, and cuts off the others. One
        # more than the result has decides how it is rounded.
        scale = max(scale, places - 3)
        second = f"nullif({second}, 0)"
    sides = f"CAST({first} AS DECIMAL(76,{scale})) {op} CAST({second} AS DECIMAL(76,{other_scale}))"
    return f"TRY_CAST({sides} AS {result.upper()})"


def _in_dialect(found: re.Match[str]) -> str:
    if found["pattern"] is None:
        return "" if found["first"] else found[0]
    pattern = re.sub(r"\\(.)", r"\1", found["pattern"], flags=re.DOTALL)
    try:
        return f"RLIKE {quote_literal(without_java(pattern))}"
    except PatternError as error:
        shown = pattern if len(pattern) <= _LONGEST else f"{pattern[:_LONGEST]}..."
        message = f"Sail cannot read the pattern '{shown}' as Java does: {error}; {INSTEAD}"
        raise PySparkException(f"[UNSUPPORTED_PATTERN] {message}") from None


def _write_in_dialect(client: Any) -> None:
    """Translates all SQL in the requests of a client of Spark Connect from now on."""
    import grpc
    from pyspark.sql.connect.proto.base_pb2_grpc import SparkConnectServiceStub

    class Translator(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):  # type: ignore[misc]
        def intercept_unary_unary(self, call: Any, details: Any, request: Any) -> Any:
            _translate(request)
            return call(details, request)

        intercept_unary_stream = intercept_unary_unary

    client._stub = SparkConnectServiceStub(grpc.intercept_channel(client._channel, Translator()))


def _translate(message: Any) -> None:
    for part, value in message.ListFields():
        if (message.DESCRIPTOR.name, part.name) in _SQL:
            setattr(message, part.name, in_dialect(value))
        elif part.message_type is not None:
            is_map = part.message_type.GetOptions().map_entry
            values = value.values() if is_map else value if part.is_repeated else [value]
            for inner in values:
                if hasattr(inner, "ListFields"):
                    _translate(inner)


_SQL = {("ExpressionString", "expression"), ("SQL", "query"), ("SqlCommand", "sql")}
"""Where requests hold SQL."""
