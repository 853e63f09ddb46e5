"""The table of supported tools, which recognises and reads their files: a new tool is one entry."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dqx_airflow.contracts.dialects.servers import sql_dialect_of
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.importing import (
    airflow_rules,
    cuallee,
    databricks_dqx,
    dbt,
    deequ,
    dqdl,
    foreign_rule,
    great_expectations,
    pandera,
    soda,
    spark_expectations,
)
from dqx_airflow.values import SourceFile

Recognises = Callable[[Any], bool]
Reader = Callable[[Any, foreign_rule.ImportRequest], Iterator[foreign_rule.ForeignRule]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its title, and the readers of its documents (JSON, YAML) or other texts.

    `sql` matches the keys of a document whose values are SQL of a database."""

    title: str
    of_document: tuple[Recognises, Reader] | None = None
    of_text: tuple[Recognises, Reader] | None = None
    sql: re.Pattern[str] = re.compile("(?!)")


TOOLS = {
    "great-expectations": Tool(
        "Great Expectations",
        (great_expectations.recognises, great_expectations.rules_of),
        sql=re.compile("unexpected_rows_query"),
    ),
    "soda": Tool("Soda", (soda.recognises, soda.rules_of), sql=foreign_rule.OF_MANY_DATABASES),
    "dbt": Tool("dbt", (dbt.recognises, dbt.rules_of), sql=foreign_rule.OF_MANY_DATABASES),
    "databricks-dqx": Tool("Databricks DQX", (databricks_dqx.recognises, databricks_dqx.rules_of)),
    "spark-expectations": Tool(
        "Spark Expectations",
        (spark_expectations.recognises, spark_expectations.rules_of),
        (spark_expectations.recognises_code, spark_expectations.rules_of_code),
    ),
    "dqdl": Tool("AWS Glue DQDL", of_text=(dqdl.recognises, dqdl.rules_of)),
    "cuallee": Tool("cuallee", of_text=(cuallee.recognises_code, cuallee.rules_of_code)),
    "deequ": Tool(
        "Deequ", (deequ.recognises, deequ.rules_of), (deequ.recognises_code, deequ.rules_of_code)
    ),
    "pandera": Tool("pandera", (pandera.recognises, pandera.rules_of)),
    "airflow": Tool(
        "Airflow's data quality provider",
        (airflow_rules.recognises, airflow_rules.rules_of),
        sql=re.compile("partition_clause|sql"),
    ),
}


def read_rules(
    source: SourceFile,
    *,
    tool: str | None = None,
    dataset: str | None = None,
    sql_dialect: str | None = None,
) -> tuple[str, tuple[foreign_rule.ForeignRule, ...]]:
    """The tool that a file belongs to, and its rules.

    :param tool: a name of `TOOLS`; by default the tool is detected.
    :param dataset: the dataset of all rules; by default the one that the file names.
    :param sql_dialect: the dialect of the SQL in a file of Great Expectations, Soda or dbt. Without
        it, SQL is translated if it means the same in all databases.
    :raises NoCounterpartError: the file cannot be read, or belongs to no known tool.
    """
    request = foreign_rule.ImportRequest(
        Path(source.name).name, dataset, _beside(Path(source.name))
    )
    candidates = {tool: TOOLS[tool]} if tool else TOOLS
    for name, candidate in candidates.items():
        if candidate.of_text:
            recognises, rules_of = candidate.of_text
            if recognises(source.text) or (tool and not candidate.of_document):
                return name, tuple(rules_of(source.text, request))
    try:
        document, repeated = foreign_rule.read_foreign(source)
    except NoCounterpartError as error:
        if tool is None:
            raise NoCounterpartError(f"{error}; no other known format either") from None
        raise
    for name, candidate in candidates.items():
        if candidate.of_document and candidate.of_document[0](document):
            dialect = (sql_dialect_of(sql_dialect) or "spark") if sql_dialect else "any"
            sql = foreign_rule.SqlOfTool(dialect, candidate.sql)
            found = candidate.of_document[1](sql.rewritten(document), request)
            rules = tuple(map(sql.accounted, _well_formed(found, candidate.title)))
            return name, (*rules, *_of_repeated_keys(repeated, rules, request))
    titles = ", ".join(candidate.title for candidate in candidates.values())
    raise NoCounterpartError(f"not recognized as a file of {titles}")


def _of_repeated_keys(
    repeated: Iterable[tuple[int, str]],
    rules: tuple[foreign_rule.ForeignRule, ...],
    request: foreign_rule.ImportRequest,
) -> Iterator[foreign_rule.ForeignRule]:
    """A rule without a translation for each key that is there twice, of which the last counts."""
    dataset = rules[0].dataset if rules else request.dataset or "data"
    for line, message in repeated:
        place = f"{request.file}: line {line}"
        reason = "the last one counts, as for most tools: remove the other one"
        yield foreign_rule.ForeignRule(dataset, place, message, reason)


def _well_formed(
    found: Iterable[foreign_rule.ForeignRule], title: str
) -> Iterator[foreign_rule.ForeignRule]:
    """:raises NoCounterpartError: the file has another structure than its tool writes."""
    place = "at the beginning"
    try:
        for rule in found:
            yield rule
            place = f"behind {rule.place}"
    except foreign_rule.MISSHAPEN:
        raise NoCounterpartError(f"{place}: not as a file of {title} is written") from None


def _beside(file: Path) -> Callable[[str], Any]:
    def read(path: str) -> Any:
        target = file.parent / path
        if not target.is_file():
            return None
        return foreign_rule.document_of(SourceFile(str(target), target.read_text(encoding="utf-8")))

    return read
