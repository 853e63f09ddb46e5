"""The displayed form of failing rows, as Spark SQL: masked, and truncated where it may be long."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.declared_texts import TextColumns
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.metrics.types import ColumnPath, Family, family_of
from dqx_airflow.plan.failing import FailingRows
from dqx_airflow.plan.masks import is_masked
from dqx_airflow.plan.schema_check import texts_of
from dqx_airflow.values import MASK, FailingRow

_MOST_COLUMNS = 50
NO_TEXT = "CAST(NULL AS STRING)"
_LONGEST_TEXT = 200
_LONGEST_BINARY = 32


def shown_cell(value: str, spark_type: str, *, is_hidden: bool) -> str:
    """A Spark SQL expression for the displayed form of a value."""
    if is_hidden:
        return f"CASE WHEN {value} IS NOT NULL THEN {quote_literal(MASK)} END"
    match family_of(spark_type):
        case Family.TEXT:
            return cut(value)
        case Family.OTHER if spark_type == "binary":
            return f"hex(substring({value}, 1, {_LONGEST_BINARY}))"
        case Family.ARRAY | Family.MAP:
            return cut(f"to_json({value})")
        case Family.OTHER if spark_type.startswith("struct"):
            return cut(f"to_json({value})")
        case Family.OTHER:
            return cut(f"CAST({value} AS STRING)")
        case _:
            return value


def cut(text: str) -> str:
    """A Spark SQL expression that truncates a long string."""
    beginning = f"concat(left({text}, {_LONGEST_TEXT - 1}), '\N{HORIZONTAL ELLIPSIS}')"
    return f"CASE WHEN char_length({text}) > {_LONGEST_TEXT} THEN {beginning} ELSE {text} END"


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

    :param columns: the columns at fault: the reason contains the malformed ones.
    :param texts: the original strings by malformed column; for a malformed line, the line.
    """
    row = failing.row
    for column, text in texts.items():
        cell = f"{json.dumps(column, ensure_ascii=False)}:"
        shown = cell + json.dumps(text, ensure_ascii=False)
        if column == WHOLE_LINE:
            row = f"{row[:-1]},{shown}}}"
            continue
        row = row.replace(f"{cell}null", shown)
    if WHOLE_LINE in texts:
        return replace(failing, row=row, reason=f"the line is malformed: {failing.reason}")
    names = ", ".join(column for column in columns if column in texts)
    if not names:
        return replace(failing, row=row)
    verb = "are" if "," in names else "is"
    return replace(failing, row=row, reason=f"{names} {verb} malformed: {failing.reason}")


@dataclass(frozen=True, slots=True)
class RowDisplay:
    """The displayed form of the rows of a dataset. All texts are Spark SQL."""

    dataset: OpenDataset

    def row(self, fault: FailingRows) -> str:
        """A failing row as JSON: its keys and the columns at fault, or all columns if it has no
        keys."""
        if fault.request.definition.is_of_texts and self.dataset.texts is not None:
            return self._texts_as_json(fault, self.dataset.texts)
        return self.values(self.columns(fault))

    def columns(self, fault: FailingRows) -> tuple[str, ...]:
        """The displayed columns of the failing rows of a fault."""
        rest = () if self.dataset.ref.keys else self.dataset.struct.names
        columns = dict.fromkeys((*self.dataset.ref.keys, *fault.columns, *rest))
        return tuple(columns)[:_MOST_COLUMNS]

    def values(self, columns: Sequence[str]) -> str:
        """The values of columns as JSON."""
        pairs = ", ".join(f"{quote_literal(column)}, {self._cell(column)}" for column in columns)
        return f"to_json(named_struct({pairs}), map('ignoreNullFields', 'false'))"

    def _texts_as_json(self, fault: FailingRows, text_columns: TextColumns) -> str:
        """The keys and the malformed strings, or all strings, or the line if it is malformed."""
        ref = self.dataset.ref
        checked = texts_of(fault.request, self.dataset.schema, text_columns.columns).columns
        cells = {key: self._text_cell(key, text_columns) for key in ref.keys}
        columns = dict.fromkeys(checked)
        if not ref.keys:
            columns.update(dict.fromkeys(text_columns.columns))
        for column in columns:
            if column in cells:
                continue
            is_shown = text_columns.is_misfit(column) if ref.keys else "true"
            cell = self._text_cell(column, text_columns)
            cells[column] = f"CASE WHEN {text_columns.line} IS NULL AND {is_shown} THEN {cell} END"
        whole = f"{quote_literal(WHOLE_LINE)}, {self._line(text_columns)}"
        shown = list(cells.items())[:_MOST_COLUMNS]
        pairs = [f"{quote_literal(column)}, {cell}" for column, cell in shown]
        return f"to_json(named_struct({', '.join([*pairs, whole])}))"

    def _line(self, text_columns: TextColumns) -> str:
        """The displayed form of a malformed line, which may contain masked values."""
        line = quote_literal(MASK) if self.dataset.ref.masked else cut(text_columns.line)
        return f"CASE WHEN {text_columns.line} IS NOT NULL THEN {line} END"

    def malformed_texts(self, faults: Sequence[FailingRows], number_column: str) -> str:
        """The malformed strings of the displayed columns, as JSON: their values are NULL.

        For a malformed line, the line. NULL if nothing is malformed, and for faults that display
        strings anyway.

        :param number_column: the quoted name of the column with the number of a row's fault.
        """
        texts = self.dataset.texts
        if texts is None:
            return NO_TEXT
        cases = []
        for number, fault in enumerate(faults):
            if fault.request.definition.is_of_texts:
                continue
            cells = self._malformed_cells(fault, texts)
            if cells:
                pairs = ", ".join(f"{quote_literal(name)}, {cell}" for name, cell in cells.items())
                cases.append(f"WHEN {number} THEN to_json(named_struct({pairs}))")
        if not cases:
            return NO_TEXT
        return f"nullif(CASE {number_column} {' '.join(cases)} END, '{{}}')"

    def _malformed_cells(self, fault: FailingRows, texts: TextColumns) -> dict[str, str]:
        """The strings of the displayed columns, each NULL if its value can be read."""
        cells = {}
        for column in self.columns(fault):
            if column in texts.cast:
                cell = self._text_cell(column, texts)
                cells[column] = f"CASE WHEN {texts.is_misfit(column)} THEN {cell} END"
        if texts.has_lines:
            cells[WHOLE_LINE] = self._line(texts)
        return cells

    def _text_cell(self, column: str, text_columns: TextColumns) -> str:
        """The display of the string of a column."""
        if column not in text_columns.cast or is_masked(column, self.dataset.ref.masked):
            return self._cell_of(column, text_columns.text(column))
        return cut(text_columns.text(column))

    def _cell(self, column: str) -> str:
        """The display of a column: masked, and truncated if it may be long."""
        return self._cell_of(column, quote_name(column))

    def _cell_of(self, column: str, name: str) -> str:
        """The display of a column, given as Spark SQL."""
        spark_type = place_of(self.dataset, column).type
        is_hidden = is_masked(column, self.dataset.ref.masked)
        return shown_cell(name, spark_type, is_hidden=is_hidden)


def place_of(dataset: OpenDataset, column: str) -> ColumnPath:
    """The position and the type of a column that the dataset has."""
    place = dataset.schema.find(column)
    assert place is not None
    return place
