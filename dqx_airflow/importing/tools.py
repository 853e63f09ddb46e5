"""The table of tools: how a file of each is recognised, and read. A new tool is one entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    DoubleQuotes,
    ForeignRule,
    ImportRequest,
    UntranslatableError,
    document_of,
    rewritten,
)
from dqx_airflow.values import SourceFile

Recognises = Callable[[Any], bool]
Reader = Callable[[Any, ImportRequest], Iterator[ForeignRule]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its title, and how its documents (JSON, YAML) or other texts are read."""

    title: str
    of_document: tuple[Recognises, Reader] | None = None
    of_text: tuple[Recognises, Reader] | None = None


TOOLS = {
    "great-expectations": Tool(
        "Great Expectations", (great_expectations.recognises, great_expectations.rules_of)
    ),
    "soda": Tool("Soda", (soda.recognises, soda.rules_of)),
    "dbt": Tool("dbt", (dbt.recognises, dbt.rules_of)),
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
    double_quotes: DoubleQuotes | None = None,
) -> tuple[str, tuple[ForeignRule, ...]]:
    """The tool that a file belongs to, and its rules.

    :param tool: a name of `TOOLS`; by default the tool is recognised.
    :param dataset: the dataset of all rules; by default the one that the file names.
    :param double_quotes: their meaning in the SQL of the file. Without it, a rule of Soda or dbt
        whose SQL has some is not translated.
    :raises UntranslatableError: the file cannot be read, or belongs to no known tool.
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
    except UntranslatableError as error:
        if tool is None:
            raise UntranslatableError(f"{error}; no other known format either") from None
        raise
    for name, candidate in candidates.items():
        if candidate.of_document and candidate.of_document[0](document):
            if double_quotes is not None:
                document = rewritten(document, double_quotes)
            return name, tuple(candidate.of_document[1](document, request))
    titles = ", ".join(candidate.title for candidate in candidates.values())
    raise UntranslatableError(f"not recognised as a file of {titles}")


def _beside(file: Path) -> Callable[[str], Any]:
    def read(path: str) -> Any:
        target = file.parent / path
        if not target.is_file():
            return None
        return document_of(SourceFile(str(target), target.read_text(encoding="utf-8")))

    return read
