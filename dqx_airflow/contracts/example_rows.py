"""Example rows in a contract: mappings, or a string with CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable

from dqx_airflow.contracts.document import Mapping, Node, Scalar, Sequence, plain_value
from dqx_airflow.contracts.model import ExampleRows
from dqx_airflow.values import Span


def example_rows(node: Node) -> ExampleRows:
    """The rows of a mapping, of a list of mappings, or of a string with CSV or JSON.

    A cell is None if it is empty, or if only another row has the column.
    """
    if isinstance(node, Scalar) and isinstance(node.value, str):
        return _of_text(node, node.value)
    rows = node.items if isinstance(node, Sequence) else (node,)
    mappings = [row for row in rows if isinstance(row, Mapping)]
    return _of_mappings(map(plain_value, mappings), node.span, [row.span for row in mappings])


def _of_text(node: Scalar, text: str) -> ExampleRows:
    if text.lstrip()[:1] in ("[", "{"):
        try:
            parsed = json.loads(text)
        except ValueError:
            try:
                parsed = [json.loads(line) for line in text.splitlines() if line.strip()]
            except ValueError:
                parsed = []
        rows = parsed if isinstance(parsed, list) else [parsed]
        mappings = [row for row in rows if isinstance(row, dict)]
        return _of_mappings(mappings, node.span, [node.span] * len(mappings))
    lines = [
        (number, line)
        for number, line in enumerate(csv.reader(io.StringIO(text)))
        if any(cell.strip() for cell in line)
    ]
    if not lines:
        return ExampleRows((), (), node.span)
    names = tuple(name.strip() for name in lines[0][1])
    cells = tuple(tuple(cell if cell else None for cell in line) for _, line in lines[1:])
    places = tuple(_line_of(node, number) for number, _ in lines[1:])
    return ExampleRows(names, cells, node.span, places, is_text=True)


def _line_of(node: Scalar, number: int) -> Span:
    """The position of a line of a string, if the document has a line for each."""
    if not node.is_block:
        return node.span
    line = node.span.line + 1 + number
    return Span(node.span.file, line, 1, line, 2)


def _of_mappings(
    mappings: Iterable[dict[str, object]], span: Span, spans: Iterable[Span]
) -> ExampleRows:
    rows = list(mappings)
    names = tuple(dict.fromkeys(str(name) for row in rows for name in row))
    cells = tuple(tuple(row.get(name) for name in names) for row in rows)
    return ExampleRows(names, cells, span, tuple(spans))
