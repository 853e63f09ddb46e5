"""Spark's reader options for CSV, in their equivalents for Arrow."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.csv

from dqx_airflow.errors import RequestError

_NAMES = {"delimiter": "sep", "charset": "encoding"}
_TAKEN = ("sep", "encoding", "quote", "escape", "header", "multiline", "nullvalue")
_WITHOUT_EFFECT = ("inferschema", "mode", "enforceschema", "columnpruning", "samplingratio")
"""Reader options that do not affect the contents, or that drafts infer themselves."""


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """The options that a draft supports, in lower case."""

    given: dict[str, str]

    @classmethod
    def of(cls, file_format: str, options: tuple[tuple[str, str], ...]) -> ReaderOptions:
        """:raises RequestError: another option changes what is read."""
        given = {_NAMES.get(name.lower(), name.lower()): value for name, value in options}
        for name in given:
            is_known = name in _TAKEN if file_format == "csv" else name == "header"
            if not is_known and name not in _WITHOUT_EFFECT:
                raise RequestError(
                    f"a draft ignores the option '{name}'",
                    "draft from a Parquet copy, or from a table of the catalog",
                )
        return cls(given)

    @property
    def has_header(self) -> bool:
        return self.given.get("header", "true").lower() == "true"

    @property
    def null_values(self) -> tuple[str, ...]:
        return (self.given["nullvalue"],) if "nullvalue" in self.given else ()

    def reading(self) -> pyarrow.csv.ReadOptions:
        return pyarrow.csv.ReadOptions(
            encoding=self.given.get("encoding", "utf8"),
            autogenerate_column_names=not self.has_header,
        )

    def parsing(self) -> pyarrow.csv.ParseOptions:
        """:raises RequestError: Arrow does not support separators with several characters."""
        separator = self.given.get("sep", ",").replace("\\t", "\t")
        if len(separator) != 1:
            raise RequestError(
                f"a draft ignores the separator '{separator}'",
                "draft from a Parquet copy, or from a table of the catalog",
            )
        return pyarrow.csv.ParseOptions(
            delimiter=separator,
            quote_char=self.given.get("quote", '"') or False,
            escape_char=self.given.get("escape") or False,
            newlines_in_values=self.given.get("multiline", "false").lower() == "true",
        )
