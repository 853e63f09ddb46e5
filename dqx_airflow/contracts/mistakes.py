"""Diagnostics of contracts, whose texts are in `contracts/diagnostics.txt`."""

from __future__ import annotations

from typing import Any

from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related
from dqx_airflow.values import Span
from dqx_airflow.values.files import table_rows


def mistake(
    name: str, span: Span, /, *related: Related, hint: Any = None, **named: object
) -> Diagnostic:
    """The diagnostic of a name in `contracts/diagnostics.txt`, with the values that its texts name.

    :param hint: what to write, if that is not in the table.
    """
    code, message, *helps = listed_texts("mistakes", name, **named)
    return Diagnostic(message, span, code, related=related, help=helps[0] if helps else hint)


def listed_texts(heading: str, name: str, /, **named: object) -> list[str]:
    """The texts of a name below a heading of the same table, with the values that they name."""
    rows = table_rows(__package__, "diagnostics.txt", heading)
    texts = next(texts for row_name, *texts in rows if row_name == name)
    return [text.format(**named) for text in texts]
