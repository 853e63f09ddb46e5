"""The conformance cases: tables, claims about them, and the values that every engine must find.

A case has tables (the first is the dataset of the check, `t` if it has no name; `dates=ds` names
its date column) or csv files, with the declared columns before the lines of the file. Then come
lines `expression => value`: `none` for no value, a text in quotes, whole numbers without a point
and all others with one, or `error: why`. The value of `each row: ...` is the number of rows that
violate it, the value of `90% of rows: ...` is the share of rows that do not. The option `since=4.0`
names the first Spark that has the types of the case.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from dqx_airflow.diagnostics import draw
from dqx_airflow.dql.check import check_source
from dqx_airflow.metrics.types import fields_of, parts_of
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.in_memory.table import Table
from dqx_airflow.plan.model import Plan, Scanned
from dqx_airflow.plan.resolve import QUIET, resolve
from dqx_airflow.values import DatasetRef, MetricValue, SourceFile, Status
from dqx_airflow.values.exact import exact_text
from dqx_airflow.values.json_form import iso_timestamp

_FENCE = re.compile(r"^```(?P<kind>\w+)(?P<options>[^\n]*)\n(?P<text>.*?)^```$", re.M | re.S)
_OWN_CONDITION = re.compile(
    r"each row:|[0-9.]+% of rows:|column |columns of|rows of|distribution\("
    r"|values\(|most_common\(|is_sorted\("
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of Markdown. The words after its kind are options."""

    kind: str
    options: tuple[str, ...]
    text: str

    def has(self, option: str) -> bool:
        return option in self.options

    def option(self, name: str, otherwise: str = "") -> str:
        """The value of an option: `2024-11-29` for `date=2024-11-29`."""
        found = (item.split("=", 1)[1] for item in self.options if item.startswith(f"{name}="))
        return next(found, otherwise)


def sections(text: str) -> Iterator[tuple[str, tuple[Block, ...]]]:
    """The title and the blocks of each section of a Markdown file."""
    parts = re.split(r"^## (.+)$", text, flags=re.M)
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        found = _FENCE.finditer(body)
        yield title, tuple(Block(m["kind"], tuple(m["options"].split()), m["text"]) for m in found)


@dataclass(frozen=True)
class ProofCase:
    """A conformance case: tables, claims about them, and the expected value of each claim."""

    file: str
    title: str
    blocks: tuple[Block, ...]

    def __str__(self) -> str:
        return f"{self.file.removesuffix('.md')}: {self.title}"

    @cached_property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """The claims with their expected values."""
        values = next(block for block in self.blocks if block.kind == "values")
        split = (line.rpartition(" => ") for line in values.text.splitlines())
        return tuple((claim, due) for claim, _, due in split)

    @property
    def since(self) -> str | None:
        """The first version of Spark that has the types of the case; None for all versions."""
        return next((since for block in self.blocks if (since := block.option("since"))), None)

    def tables(self, folder: Path | None = None) -> tuple[dict[str, Table], tuple[DatasetRef, ...]]:
        """The tables, and the datasets that hold them; files are written into the folder."""
        tables = {}
        refs = []
        for block in self.blocks:
            name = next((option for option in block.options if "=" not in option), "t")
            ref = DatasetRef(name, table=name, date_column=block.option("dates") or None)
            if block.kind == "table":
                tables[name] = read_table(block.text)
                refs.append(ref)
            elif block.kind == "csv":
                declared, text = block.text.split("\n", 1)
                types = read_types(declared)
                tables[name] = _cast(types, text)
                path = Path(folder or "nowhere") / f"{name}.csv"
                if folder is not None:
                    path.write_text(text, encoding="utf-8")
                schema = ", ".join(f"`{column}` {kind}" for column, kind in types.items())
                refs.append(replace(ref, table=None, path=str(path), format="csv", schema=schema))
        return tables, tuple(refs)

    def plan(self, refs: tuple[DatasetRef, ...]) -> Plan:
        """The plan of a suite with an assertion for each line, named by its number."""
        values = next(block for block in self.blocks if block.kind == "values")
        claims = (_asserted(claim) for claim, _ in self.lines)
        body = "\n".join(f'assert {claim} name "{n}"' for n, claim in enumerate(claims))
        check = f'check "C" on {refs[0].name} {{\n{body}\n}}'
        source = SourceFile("suite.dql", f'suite "S" {{ availability_threshold 0% {check} }}')
        checked = check_source(source)
        if checked.suite is None or checked.errors:
            raise ValueError(f"{self}: {draw(checked.errors, {source.name: source.text})}")
        on = date.fromisoformat(values.option("date", "2024-11-29"))
        return resolve(checked.suite, source, refs, on, QUIET)

    def found(self, plan: Plan, scanned: Scanned) -> tuple[str, ...]:
        """The value that an engine found for each line; the expected value itself if they are
        equal."""
        now = datetime.combine(plan.date + timedelta(days=1), time(), timezone.utc)
        verdicts = {verdict.name: verdict for verdict in evaluate(plan, scanned, now=now)}
        values = []
        for number, (_, due) in enumerate(self.lines):
            verdict = verdicts[str(number)]
            is_error = verdict.status is Status.ERROR
            actual = f"error: {verdict.reason}" if is_error else _shown(verdict.value)
            values.append(due if _is_same(actual, due) else actual)
        return tuple(values)


@cache
def proof_cases() -> tuple[ProofCase, ...]:
    """All cases, in order."""
    folder = files(__package__).joinpath("cases")
    return tuple(
        ProofCase(file.name, title, blocks)
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        for title, blocks in sections(file.read_text(encoding="utf-8"))
    )


def _cast(types: dict[str, str], text: str) -> Table:
    """The table in the text of a CSV file, cast to the declared types."""
    header, *rows = csv.reader(io.StringIO(text))
    columns = {column: types.get(column, "string") for column in header}
    return Table.cast(columns, [[cell or None for cell in row] for row in rows if row])


def _asserted(claim: str) -> str:
    """Adds `is not None` to a claim without a condition, before its filter."""
    if _OWN_CONDITION.match(claim):
        return claim
    metric, where, predicate = claim.rpartition(") where ")
    return f"{metric}) is not None where {predicate}" if where else f"{claim} is not None"


def _shown(value: MetricValue) -> str:
    """A value in the notation of the cases: `exactly` before an exact fraction, JSON for the
    rest."""
    if isinstance(value, Fraction):
        return f"exactly {exact_text(value)}"
    return "none" if value is None else json.dumps(value, ensure_ascii=False)


def _is_same(actual: str, due: str) -> bool:
    """True if two values are equal; floats may differ by rounding, since Spark adds in another
    order."""
    try:
        one = json.loads(actual)
        other = json.loads(due)
    except ValueError:
        return actual == due
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12)
    return type(one) is type(other) and bool(one == other)


_COLUMN = re.compile(r"\s*(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<name>[^\s:|`]+))\s*:(?P<type>[^|]+)\|?")
_CELL = re.compile(r'(?:"(?:\\.|[^"\\])*"|[^|"])+')


def read_table(text: str) -> Table:
    header, *lines = text.splitlines()
    types = read_types(header)
    return Table.typed(types, [_row(line, list(types.values())) for line in lines])


def read_types(header: str) -> dict[str, str]:
    """The types by column in a header."""
    columns = list(_COLUMN.finditer(header))
    assert "".join(found[0] for found in columns) == header, f"not a header: {header}"
    return {
        found["name"] or found["quoted"].replace("``", "`"): found["type"].strip()
        for found in columns
    }


def _row(line: str, types: list[str]) -> list[Any]:
    cells = [cell.strip() for cell in _CELL.findall(line)]
    assert len(cells) == len(types), f"{len(cells)} cells for {len(types)} columns: {line}"
    return [_value(cell, type_) for cell, type_ in zip(cells, types, strict=True)]


def _value(text: str, spark_type: str) -> Any:
    if text == "NULL":
        return None
    if text.startswith(('"', "[", "{")):
        return _converted(json.loads(text), spark_type)
    return _converted(text, spark_type)


def _converted(value: Any, spark_type: str) -> Any:
    if value is None:
        return None
    match re.split(r"[(<]", spark_type, maxsplit=1)[0]:
        case "tinyint" | "smallint" | "int" | "bigint":
            return int(value)
        case "float" | "double":
            return float(value)
        case "decimal":
            return Decimal(str(value))
        case "boolean":
            return {"true": True, "false": False}[str(value).lower()]
        case "date":
            return date.fromisoformat(value)
        case "timestamp" | "timestamp_ntz":
            return iso_timestamp(value)
        case "binary":
            return bytes.fromhex(value)
        case "array":
            return [_converted(item, *parts_of(spark_type)) for item in value]
        case "map":
            key, inner = parts_of(spark_type)
            return {_converted(k, key): _converted(item, inner) for k, item in value.items()}
        case "struct":
            inner_types = fields_of(spark_type)
            return {name: _converted(value[name], inner_types[name]) for name in value}
        case _:
            return value


def frame_of(spark: Any, table: Table) -> Any:
    """The table as a view of a session would hold it.

    Spark keeps what comes from Arrow as rows of its own; rows of Python take a quarter more time.
    Arrow's way in has no columns of type void.
    """
    from dqx_airflow.engine.session.spark_versions import takes_arrow

    types = [field.type for field in table.fields]
    if takes_arrow() and not any("void" in type_ for type_ in types):
        return spark.createDataFrame(arrow_of(table), schema_of(table))
    rows = [tuple(map(_in_spark, row, types)) for row in table.rows]
    return spark.createDataFrame(rows, schema_of(table))


def schema_of(table: Table) -> Any:
    from pyspark.sql.types import StructField, StructType

    from dqx_airflow.engine.session.spark_versions import type_named

    types = ((field.name, type_named(field.type)) for field in table.fields)
    return StructType([StructField(name, type_) for name, type_ in types])


def _in_spark(value: Any, spark_type: str) -> Any:
    """The value with all maps in it as Spark takes them."""
    match value:
        case dict():
            types = fields_of(spark_type)
            return {name: _in_spark(inner, types[name]) for name, inner in value.items()}
        case tuple() if spark_type.startswith("map<"):
            inner_type = parts_of(spark_type)[1]
            return {key: _in_spark(inner, inner_type) for key, inner in value}
        case tuple():
            return [_in_spark(item, *parts_of(spark_type)) for item in value]
        case _:
            return value


def arrow_of(table: Table) -> Any:
    import pyarrow

    from dqx_airflow.engine.session.spark_versions import arrow_schema

    schema = arrow_schema(schema_of(table))
    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.fields)
    arrays = [pyarrow.array(c, item.type) for c, item in zip(columns, schema, strict=True)]
    return pyarrow.Table.from_arrays(arrays, schema=schema)
