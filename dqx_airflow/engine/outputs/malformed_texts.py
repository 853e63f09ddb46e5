"""Failing rows as their file has them: a string that does not match its type was judged as NULL."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace

from dqx_airflow.values import FailingRow

WHOLE_LINE = "(the whole line)"
"""The column name under which a line is shown that is malformed as a whole."""


def with_malformed_texts(
    failing: FailingRow, columns: Collection[str], texts: Mapping[str, str]
) -> FailingRow:
    """The row with the original strings instead of their NULLs.

    Numbers keep all of their digits, since nothing else in the row is parsed.

    >>> row = FailingRow("orders", "amount is NULL", '{"id":1.10,"amount":null}')
    >>> with_malformed_texts(row, ["amount"], {"amount": "twelve"})
    FailingRow(dataset='orders', reason='amount is malformed: amount is NULL', \
row='{"id":1.10,"amount":"twelve"}')

    :param columns: those at fault: the reason names the malformed ones.
    :param texts: those of the malformed columns; for a malformed line, the line.
    """
    row = failing.row
    for column, text in texts.items():
        cell = f"{json.dumps(column, ensure_ascii=False)}:"
        shown = cell + json.dumps(text, ensure_ascii=False)
        row = f"{row[:-1]},{shown}}}" if column == WHOLE_LINE else row.replace(f"{cell}null", shown)
    if WHOLE_LINE in texts:
        return replace(failing, row=row, reason=f"the line is malformed: {failing.reason}")
    names = ", ".join(column for column in columns if column in texts)
    verb = "are" if "," in names else "is"
    reason = f"{names} {verb} malformed: {failing.reason}" if names else failing.reason
    return replace(failing, row=row, reason=reason)
