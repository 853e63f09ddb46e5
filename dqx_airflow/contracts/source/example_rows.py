"""The example rows of a model, each with its line."""

from __future__ import annotations

import csv
import io
import json

from dqx_airflow.contracts.model import ExampleRows
from dqx_airflow.contracts.source.yaml_document import Mapping, Node, Scalar, Sequence, plain
from dqx_airflow.values import Span


def example_rows(node: Node) -> ExampleRows:
    """The rows of a mapping, of a list of mappings, or of a string with CSV or JSON.

    A cell is None if it is empty, or if only another row has the column.
    """
    if isinstance(node, Scalar) and isinstance(node.value, str):
        return _of_text(node, node.value)
    rows = node.items if isinstance(node, Sequence) else (node,)
    mappings = [row for row in rows if isinstance(row, Mapping)]
    return _of_mappings(
        [plain(row) for row in mappings], node.span, tuple(row.span for row in mappings)
    )


def _of_text(node: Scalar, text: str) -> ExampleRows:
    if text.lstrip()[:1] in ("[", "{"):
        try:
            parsed = json.loads(text)
        except ValueError:
            try:
                parsed = [json.loads(line) for line in text.splitlines() if line.strip()]
            except ValueError:
                return ExampleRows((), (), node.span)
        rows = parsed if isinstance(parsed, list) else [parsed]
        mappings = [row for row in rows if isinstance(row, dict)]
        return _of_mappings(mappings, node.span, (node.span,) * len(mappings))
    lines = [
        (number, line)
        for number, line in enumerate(csv.reader(io.StringIO(text)))
        if any(cell.strip() for cell in line)
    ]
    if not lines:
        return ExampleRows((), (), node.span)
    names = tuple(name.strip() for name in lines[0][1])
    cells = tuple(tuple(cell if cell else None for cell in line) for _, line in lines[1:])
    return ExampleRows(
        names,
        cells,
        node.span,
        tuple(_line_of(node, number) for number, _ in lines[1:]),
        is_text=True,
    )


def _line_of(node: Scalar, number: int) -> Span:
    """The position of a line of a string, if the document has a line for each."""
    if not node.is_block:
        return node.span
    line = node.span.line + 1 + number
    return Span(node.span.file, line, 1, line, 2)


def _of_mappings(rows: list[dict[str, object]], span: Span, spans: tuple[Span, ...]) -> ExampleRows:
    names = tuple(dict.fromkeys(str(name) for row in rows for name in row))
    return ExampleRows(
        names, tuple(tuple(row.get(name) for name in names) for row in rows), span, spans
    )
