"""The table of tools: how a file of each is recognised, and read. A new tool is one entry."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dqx_airflow.contracts.dialects.standards import sql_dialect_of
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.importing import (
    databricks_dqx,
    dbt,
    deequ,
    dqdl,
    great_expectations,
    pandera,
    soda,
)
from dqx_airflow.importing.foreign_rule import (
    OF_MANY_DATABASES,
    ForeignRule,
    ImportRequest,
    SqlOfTool,
    document_of,
)
from dqx_airflow.values import SourceFile

Recognises = Callable[[Any], bool]
Reader = Callable[[Any, ImportRequest], Iterator[ForeignRule]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its title, and how its documents (JSON, YAML) or other texts are read. `sql` are the
    keys of the SQL of a database in a document."""

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
    "soda": Tool("Soda", (soda.recognises, soda.rules_of), sql=OF_MANY_DATABASES),
    "dbt": Tool("dbt", (dbt.recognises, dbt.rules_of), sql=OF_MANY_DATABASES),
    "databricks-dqx": Tool("Databricks DQX", (databricks_dqx.recognises, databricks_dqx.rules_of)),
    "dqdl": Tool("AWS Glue DQDL", of_text=(dqdl.recognises, dqdl.rules_of)),
    "deequ": Tool(
        "Deequ", (deequ.recognises, deequ.rules_of), (deequ.recognises_code, deequ.rules_of_code)
    ),
    "pandera": Tool("pandera", (pandera.recognises, pandera.rules_of)),
}


def read_rules(
    source: SourceFile,
    *,
    tool: str | None = None,
    dataset: str | None = None,
    sql_dialect: str | None = None,
) -> tuple[str, tuple[ForeignRule, ...]]:
    """The tool that a file belongs to, and its rules.

    :param tool: a name of `TOOLS`; by default the tool is recognised.
    :param dataset: the dataset of all rules; by default the one that the file names.
    :param sql_dialect: that of the SQL in a file of Great Expectations, Soda or dbt. Without it,
        SQL is translated if all databases read it in the same way.
    :raises NoCounterpartError: the file cannot be read, or belongs to no known tool.
    """
    request = ImportRequest(
        Path(source.name).name, source.text, dataset, _beside(Path(source.name))
    )
    candidates = {tool: TOOLS[tool]} if tool else TOOLS
    for name, candidate in candidates.items():
        if (
            candidate.of_text
            and (tool is None or not candidate.of_document)
            and (candidate.of_text[0](source.text) or (tool and not candidate.of_document))
        ):
            return name, tuple(candidate.of_text[1](source.text, request))
    try:
        document = document_of(source)
    except NoCounterpartError as error:
        if tool is None:
            raise NoCounterpartError(f"{error}; no other known format either") from None
        raise
    for name, candidate in candidates.items():
        if candidate.of_document and candidate.of_document[0](document):
            dialect = (sql_dialect_of(sql_dialect) or "spark") if sql_dialect else "any"
            sql = SqlOfTool(dialect, candidate.sql)
            found = candidate.of_document[1](sql.rewritten(document), request)
            return name, tuple(map(sql.accounted, found))
    titles = ", ".join(candidate.title for candidate in candidates.values())
    raise NoCounterpartError(f"not recognised as a file of {titles}")


def _beside(file: Path) -> Callable[[str], Any]:
    def read(path: str) -> Any:
        target = file.parent / path
        if not target.is_file():
            return None
        return document_of(SourceFile(str(target), target.read_text(encoding="utf-8")))

    return read
