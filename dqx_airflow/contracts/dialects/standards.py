"""Shared by the two standards, DCS and ODCS: servers, the metrics of ODCS 3.1, rules of quality."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from collections.abc import Mapping as MappingType
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from dqx_airflow.contracts import demands as kinds
from dqx_airflow.contracts import document
from dqx_airflow.contracts.dialects import foreign
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.dialects.foreign import great_expectations, soda
from dqx_airflow.contracts.dialects.rule_names import PlacedRule, RuleOfModel, slug
from dqx_airflow.contracts.model import Model, Promise, Server, column_path
from dqx_airflow.contracts.yaml_reader import read_document
from dqx_airflow.diagnostics.diagnostic import did_you_mean, slip_of
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values import FORMATS, SourceFile, Span

DATABASES: dict[str, str] = {
    "bigquery": "bigquery",
    "clickhouse": "clickhouse",
    "databricks": "databricks",
    "dremio": "dremio",
    "duckdb": "duckdb",
    "exasol": "exasol",
    "hive": "hive",
    "presto": "presto",
    "redshift": "redshift",
    "snowflake": "snowflake",
    "athena": "athena",
    "mysql": "mysql",
    "oracle": "oracle",
    "postgres": "postgres",
    "teradata": "teradata",
    "trino": "trino",
    "sqlserver": "tsql",
    "synapse": "tsql",
    "tsql": "tsql",
    "mssql": "tsql",
    "glue": "athena",
    "impala": "hive",
    "mariadb": "mysql",
    "sqlite": "sqlite",
    "postgresql": "postgres",
    "pg": "postgres",
    "pgsql": "postgres",
}
"""The SQL dialects of databases, by their names in sqlglot."""
SQL_DIALECTS: dict[str, str | None] = {
    **DATABASES,
    "spark": None,
    "dataframe": None,
    "kafka": None,
    "iceberg": None,
    "unity": None,
    "table": None,
    # The Data Contract CLI queries files with DuckDB, and rules about them are written for it.
    "azure": "duckdb",
    "gcs": "duckdb",
    "local": "duckdb",
    "s3": "duckdb",
    "sftp": "duckdb",
}
"""The SQL dialects of all servers, by their names in sqlglot; None for Spark's own."""
_TABLE_PARTS = {
    "bigquery": ("project", "dataset"),
    "databricks": ("catalog", "schema"),
    "redshift": ("database", "schema"),
    "snowflake": ("database", "schema"),
    "oracle": ("schema",),
    "postgres": ("schema",),
    "trino": ("catalog", "schema"),
    "sqlserver": ("database", "schema"),
    "glue": ("database",),
}
"""The keys of a server that qualify the names of its tables, by its type."""
_SCHEMES = {
    "s3": ("s3", "s3a", "s3n"),
    "azure": ("abfss", "abfs", "az", "adl", "wasbs", "wasb", "https"),
    "gcs": ("gs", "gcs"),
    "local": ("file",),
}
"""The schemes of locations on file servers, by their type; the first is the one to write."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_STREAMS = ("pubsub", "kinesis", "sqs", "api", "custom", "table", "unity", "fabric")
STORED_FORMATS = (*FORMATS, "text", "xml", "excel", "protobuf", "hudi")
"""The formats of files and messages."""
_PLACES = ("location", "path", "topic", "stream")


def read_servers(reading: ClauseReader, servers: document.Mapping) -> Iterator[Server]:
    """The servers; data cannot violate anything about them."""
    reading.documented(servers, "the location of the data")
    for name, entry in servers.entries.items():
        if not isinstance(entry.node, document.Mapping):
            continue
        server = reading.resolved(entry.node)
        reading.one_of(server, "type", (*SQL_DIALECTS, *_STREAMS), is_open=True)
        yield read_server(reading, server, name, entry.span, _location, _reader_options)


def read_server(
    reading: ClauseReader,
    server: document.Mapping,
    name: str | None,
    span: Span,
    location: Callable[[document.Mapping, str], str | None],
    options: Callable[[document.Mapping], Iterable[tuple[str, str]]],
) -> Server:
    """Reads a server; without a name, its type is its name.

    :param location: returns the location of a server of a type; `options` returns the options for
        reading its files.
    """
    kind = (server.text("type") or "").strip().lower()
    reading.one_of(server, "format", STORED_FORMATS)
    reading.check_address(server, "endpointUrl", "uri")
    _check_location(reading, server, kind)
    return Server(
        name or kind,
        kind,
        span,
        location=location(server, kind),
        format=server.text("format"),
        environment=server.text("environment"),
        options=(*options(server), *_endpoint_options(server)),
        # If the database is unknown, it is what all have in common.
        sql_dialect=SQL_DIALECTS.get(re.sub(r"[\s_-]", "", kind), "ansi") if kind else None,
    )


def _check_location(reading: ClauseReader, server: document.Mapping, kind: str) -> None:
    """Reports the location of a file server that does not fit its type."""
    schemes = _SCHEMES.get(kind)
    if schemes is None:
        return
    for key in ("location", "path"):
        written = server.text(key)
        if written is None or written.lstrip().startswith(("{", "$")):
            continue
        match = _SCHEME.match(written.strip())
        scheme = match[1].lower() if match else None
        if scheme in schemes or (kind == "local" and scheme is None):
            continue
        found = f"begins with {scheme}://" if scheme else "has no scheme"
        wanted = "a path" if kind == "local" else f"{schemes[0]}://..."
        reason = f"the location of a server of type {kind} {found}"
        reading.mistaken(server.get(key), "E426", reason, f"write {wanted}, or another type")


def sql_dialect_of(word: str) -> str | None:
    """The name in sqlglot for a `dialect`, None for Spark's own.

    :raises KeyError: the dialect does not exist.
    """
    return SQL_DIALECTS[word.strip().lower()]


def _location(server: document.Mapping, kind: str) -> str | None:
    for key in _PLACES:
        if (place := server.text(key)) is not None:
            return place
    parts = [server.text(key) for key in _TABLE_PARTS.get(kind, ())]
    return ".".join([*filter(None, parts), "{model}"]) if all(parts) and parts else None


def _reader_options(server: document.Mapping) -> tuple[tuple[str, str], ...]:
    """Reader options for the files: JSON in a single array spans several lines."""
    delimiter = server.text("delimiter")
    if delimiter == "array":
        return (("multiLine", "true"),)
    if delimiter not in (None, "new_line") and server.text("format") == "csv":
        return (("sep", delimiter),)
    return ()


def _endpoint_options(server: document.Mapping) -> Iterator[tuple[str, str]]:
    """Hadoop settings for an S3-compatible store that is not AWS."""
    endpoint = server.text("endpointUrl")
    if endpoint is not None:
        yield "fs.s3a.endpoint", endpoint
        # In MinIO and similar stores a bucket is part of the path, not of the host name.
        yield "fs.s3a.path.style.access", "true"
        if endpoint.lower().startswith("http:"):
            yield "fs.s3a.connection.ssl.enabled", "false"


DQL_METRICS = {
    "null_count": "nullValues",
    "missing_count": "missingValues",
    "invalid_count": "invalidValues",
    "duplicate_count": "duplicateValues",
    "num_rows": "rowCount",
}
"""The metrics of ODCS by their names in DQL."""
_OLDER_NAMES = {
    "nullCheck": "nullValues",
    "nullCount": "nullValues",
    "missingCount": "missingValues",
    "invalidCount": "invalidValues",
    "validValues": "invalidValues",
    "duplicateCount": "duplicateValues",
}
"""The metrics of ODCS by their names in older versions."""
_ARE_PERCENT = {"rows": False, "percent": True}


def translate_metric(rule: MappingType[str, Any], column: str | None) -> foreign.Translation:
    """The demands of a rule with a `metric` on a column, or on the rows of a model.

    :raises NoCounterpartError: there are none.
    """
    written = str(rule.get("metric") or rule.get("rule") or "")
    metric = _OLDER_NAMES.get(written, written)
    if metric not in _METRICS:
        raise NoCounterpartError(f"unknown metric '{written}': there is {', '.join(_METRICS)}")
    compared = foreign.conditions(rule)
    if not compared:
        raise NoCounterpartError(_NO_THRESHOLD)
    unit = str(rule.get("unit") or "rows")
    if unit not in _ARE_PERCENT:
        raise NoCounterpartError(f"unknown unit '{unit}': there is rows and percent")
    arguments = rule.get("arguments") or {}
    if not isinstance(arguments, MappingType):
        raise NoCounterpartError("its arguments are not a mapping")
    checks = (foreign.Check(column, arguments, one, _ARE_PERCENT[unit]) for one in compared)
    demands = tuple(demand for check in checks for demand in _METRICS[metric](check))
    return foreign.Translation(slug(metric), demands)


def _null_values(check: foreign.Check) -> foreign.Demands:
    return check.measured("null_count", check.own_column)


def _missing_values(check: foreign.Check) -> foreign.Demands:
    column, missing = check.own_column, check.keys.get("missingValues", [None, ""])
    if missing == [None]:
        return _null_values(check)
    values = foreign.values_in(missing)
    if values is None:
        raise NoCounterpartError("missingValues takes a list of values")
    return check.measured("missing_count", column, values=values)


def _invalid_values(check: foreign.Check) -> foreign.Demands:
    column, pattern = check.own_column, check.keys.get("pattern")
    values = foreign.values_in(check.keys.get("validValues"))
    demands: list[foreign.ColumnDemand] = [kinds.OneOf(values)] if values else []
    if isinstance(pattern, str):
        demands.append(kinds.Pattern(pattern))
    if not demands:
        raise NoCounterpartError("its arguments have neither validValues nor a pattern")
    return check.invalid(column, tuple(demands))


def _duplicate_values(check: foreign.Check) -> foreign.Demands:
    names = check.keys.get("properties", [])
    if not isinstance(names, list):
        raise NoCounterpartError("properties is not a list")
    columns = tuple(column_path(str(name)) for name in names)
    columns = columns if check.column is None else (check.column,)
    if not columns:
        raise NoCounterpartError("its arguments have no properties: list the fields of the key")
    return check.repeated(columns)


def _row_count(check: foreign.Check) -> foreign.Demands:
    if check.is_percent:
        raise NoCounterpartError("the number of rows is not a percentage")
    return check.measured("num_rows")


_METRICS: dict[str, Callable[[foreign.Check], foreign.Demands]] = {
    "nullValues": _null_values,
    "missingValues": _missing_values,
    "invalidValues": _invalid_values,
    "duplicateValues": _duplicate_values,
    "rowCount": _row_count,
}


_ABOUT = "checks for "
_IN_A_FILE = "checks in another file are not read: move them here"


def read_older_quality(reading: ClauseReader, models: tuple[Model, ...]) -> Iterator[RuleOfModel]:
    """The rules of the checks; the rest is unsupported."""
    quality = reading.root.get("quality")
    if not isinstance(quality, document.Mapping):
        reason = "not a valid quality section: move it to models.<model>.quality, as a list"
        reading.unsupported(quality, reason)
        return
    written = quality.text("type") or ""
    kind = slug(written)
    if kind not in _TRANSLATORS:
        reading.unsupported(quality, f"DQL has no counterpart for quality of type '{written}'")
        return
    reading.documented_keys(quality, "type", "description", reason="the format of the checks")
    specification = quality.get("specification")
    top = _parsed(specification)
    if specification is None or not isinstance(top, document.Mapping) or "$ref" in top.entries:
        reading.unsupported(specification, _IN_A_FILE)
        return
    translations = list(_translations(kind, specification, top, models))
    # A text with several checks is a single clause: it is checked if all of them are.
    refused = {
        id(node): read
        for _, node, read in translations
        if not isinstance(read, foreign.Translation)
    }
    for model, node, translation in translations:
        if id(node) in refused or not isinstance(translation, foreign.Translation):
            with reading.of_model(model):
                reading.unsupported(node, str(refused[id(node)]))
            continue
        name = slug(translation.name or "") or translation.kind
        for demand in translation.demands:
            yield model, translation.column, reading.rule(name, demand, *document.leaves(node))


def _translations(
    kind: str, specification: document.Node, top: document.Mapping, models: tuple[Model, ...]
) -> Iterator[tuple[str, document.Node, foreign.Translation | NoCounterpartError]]:
    """The demands of each check on a model, or why there are none, with its node."""
    for key, entry in top.entries.items():
        name = key.removeprefix(_ABOUT)
        model = next((model for model in models if model.name == name), None)
        places = (node for node in (specification, entry.node) if isinstance(node, document.Scalar))
        carrier, checks = next(places, None), _parsed(entry.node)
        if model is None:
            reason = NoCounterpartError(f"the contract has no model {name}")
            yield name, carrier or entry.node, reason
        elif not isinstance(checks, document.Sequence):
            yield name, carrier or entry.node, NoCounterpartError(_IN_A_FILE)
        else:
            for check in checks.items:
                try:
                    yield name, carrier or check, _translated(kind, check, model)
                except NoCounterpartError as error:
                    yield name, carrier or check, error


def _parsed(node: document.Node | None) -> document.Node | None:
    """A node, or the contents of a YAML or JSON string."""
    if isinstance(node, document.Scalar):
        return read_document(SourceFile("", node.text)).root
    return node


def _translated(kind: str, check: document.Node, model: Model) -> foreign.Translation:
    """:raises NoCounterpartError: there are no demands, or the model has no column for them."""
    translation = _TRANSLATORS[kind](document.plain_value(check))
    paths = tuple(item.path for item in model.fields)
    if not has_place(translation, paths):
        raise NoCounterpartError(f"the model {model.name} has no field {translation.column}")
    return translation


def _expectation(check: object) -> foreign.Translation:
    if not isinstance(check, dict):
        raise NoCounterpartError("not an expectation: write a mapping")
    return great_expectations.translate(check, None)


_TRANSLATORS: dict[str, Callable[[object], foreign.Translation]] = {
    "soda_cl": soda.translate_sodacl,
    "sodacl": soda.translate_sodacl,
    "great_expectations": _expectation,
}


_REMARKS = ("type", "engine", "name", "id", "description", "dimension", "severity", "tags")
_ENGINES = {
    "soda": soda.translate,
    "great_expectations": great_expectations.translate,
    "greatexpectations": great_expectations.translate,
    "gx": great_expectations.translate,
}
_OF_A_FIELD = (kinds.Presence, kinds.Required, kinds.ValueDemand)
"""Demands that do not name their column."""
_IN_ARRAY = re.compile(r"\[\]|\{key\}|\{value\}")
_NoRules: TypeAlias = tuple[PlacedRule, ...]
_NO_THRESHOLD = "it has no threshold: add one, such as mustBe or mustBeLessThan"


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule of `quality` that is being read.

    `column` is the column of its field, `fields` are the fields that the rule may be moved to.
    """

    reading: ClauseReader
    node: document.Mapping
    column: str | None
    fields: tuple[str, ...]

    def text(self, key: str) -> str | None:
        return self.node.text(key)

    @property
    def kind(self) -> str:
        """The type of the rule; if it is left out, the type implied by the other keys."""
        if (written := self.text("type")) is not None:
            return written
        signs = {"metric": "library", "query": "sql", "engine": "custom", "description": "text"}
        return next((kind for key, kind in signs.items() if key in self.node.entries), "")

    def refused(self, reason: str, code: str | None = None, help: str | None = None) -> _NoRules:
        """No rule: every leaf is unsupported, except for the name of the rule."""
        called = slug(self.text("name") or self.text("id") or "") or self.kind or "quality"
        promise = Promise(
            document.show_path(self.node.path),
            ".".join(filter(None, (self.reading.model, self.column, called))),
            self.reading.model,
            foreign.severity_of(self.text("severity")),
            self.text("dimension"),
            self.node.texts("tags"),
            self.text("id"),
        )
        for key, entry in self.node.entries.items():
            if key not in _REMARKS or key in ("type", "engine"):
                self.reading.unsupported(entry.node, reason, code, help, promise=promise)
        return ()


def read_quality(
    reading: ClauseReader, owner: document.Mapping, column: str | None, fields: tuple[str, ...] = ()
) -> Iterator[PlacedRule]:
    """The rules in the `quality` of a model with these fields, or of the field with this column."""
    quality = owner.get("quality")
    if isinstance(quality, document.Mapping):
        reading.unsupported(quality, "quality is a list: put a dash before each rule")
    for node in reading.mappings(owner, "quality"):
        rule = _Rule(reading, node, column, fields)
        reading.documented_keys(node, *_REMARKS, reason="the name and description of a rule")
        if foreign.severity_of(rule.text("severity")) is None:
            hint = "unknown severity: write critical, error, warning or info"
            reading.not_understood(node.get("severity"), hint, "E422")
        readers = {"text": _text, "sql": _sql, "library": _library, "custom": _custom}
        if rule.kind not in readers:
            rule.refused(f"unknown type '{rule.kind}' of quality")
            continue
        try:
            yield from readers[rule.kind](rule)
        except NoCounterpartError as error:
            rule.refused(str(error))


def _text(rule: _Rule) -> Iterable[PlacedRule]:
    reason = "a description in words: no rule can be derived"
    rule.reading.documented(rule.node.get("description"), reason)
    return ()


def _sql(rule: _Rule) -> Iterable[PlacedRule]:
    query, written = rule.text("query"), rule.text("dialect")
    if query is None:
        return rule.refused("it has no query: write `query: SELECT ...`", "E425")
    try:
        dialect = sql_dialect_of(written) if written is not None else rule.reading.sql_dialect
    except KeyError:
        hint = did_you_mean(str(written), SQL_DIALECTS)
        return rule.refused(f"unknown SQL dialect '{written}'", "E422", hint)
    compared = foreign.conditions(document.plain_value(rule.node))
    if not compared:
        return rule.refused(_NO_THRESHOLD, "E425")
    demands = tuple(kinds.QueryGives(query.strip(), condition, dialect) for condition in compared)
    return _rules(rule, foreign.Translation("sql", demands, rule.column), "query", "dialect")


def _library(rule: _Rule) -> Iterable[PlacedRule]:
    translation = translate_metric(document.plain_value(rule.node), rule.column)
    return _rules(rule, translation, "metric", "rule", "arguments", "unit")


def _custom(rule: _Rule) -> Iterable[PlacedRule]:
    engine = rule.text("engine") or ""
    key = "specification" if "specification" in rule.node.entries else "implementation"
    translate = _ENGINES.get(slug(engine))
    if translate is None:
        reason = f"DQL has no counterpart for rules of the engine '{engine}'"
        meant = slip_of(engine, ["soda", "great-expectations"])
        code, hint = ("E422", f"did you mean '{meant}'?") if meant else (None, None)
        return rule.refused(reason, code, hint)
    check = _parsed(rule.node.get(key))
    if not isinstance(check, document.Mapping):
        return rule.refused(f"its {key} is not a mapping of {engine}")
    translation = translate(document.plain_value(check), rule.column, rule.reading.sql_dialect)
    return _rules(rule, translation, key)


def _rules(rule: _Rule, translation: foreign.Translation, *keys: str) -> Iterable[PlacedRule]:
    """The rules for the demands, with the values of the keys and the thresholds as their
    clauses.

    :raises NoCounterpartError: their column is not in the model.
    """
    if not has_place(translation, (*rule.fields, rule.column)):
        raise NoCounterpartError(f"the model has no top-level field {translation.column}")
    of_a_field = [isinstance(demand, _OF_A_FIELD) for demand in translation.demands]
    if _IN_ARRAY.search(translation.column or "") and not all(of_a_field):
        raise NoCounterpartError("the items of an array or a map are not counted over all rows")
    reading, carrying = rule.reading, list[document.Node]()
    for key, entry in rule.node.entries.items():
        if key in keys or (foreign.is_threshold(key) and "engine" not in rule.node.entries):
            parts = [entry.node]
            if isinstance(entry.node, document.Mapping):
                reading.documented_keys(entry.node, *translation.remarks, reason="a remark")
                inner = entry.node.entries.items()
                parts = [part.node for key, part in inner if key not in translation.remarks]
            carrying += (leaf for part in parts for leaf in document.leaves(part))
    name = slug(rule.text("name") or rule.text("id") or translation.name or "") or translation.kind
    return [
        (
            translation.column,
            replace(
                reading.rule(name, demand, *carrying),
                severity=foreign.severity_of(rule.text("severity")) or translation.severity,
                dimension=rule.text("dimension"),
                description=rule.text("description"),
                tags=rule.node.texts("tags"),
                share=translation.share,
                id=rule.text("id"),
            ),
        )
        for demand in translation.demands
    ]


def has_place(translation: foreign.Translation, columns: Collection[str | None]) -> bool:
    """False if demands do not name their column, and there is none to move them to."""
    of_a_field = any(isinstance(demand, _OF_A_FIELD) for demand in translation.demands)
    return translation.column is None or translation.column in columns or not of_a_field
