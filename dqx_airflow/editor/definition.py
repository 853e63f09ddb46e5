"""The definition of the name at a position."""

from __future__ import annotations

from dqx_airflow.editor.occurrences import occurrence_at
from dqx_airflow.editor.parsed_file import ParsedFile
from dqx_airflow.values import Span


def definitions(reading: ParsedFile, offset: int) -> tuple[Span, ...]:
    """The definitions of the name at an offset: several for a tag, or a name made by a macro."""
    occurrence = occurrence_at(reading, offset)
    return occurrence.definitions if occurrence else ()
