"""Diagnostics of contracts, whose texts are in `contracts/diagnostics.txt`."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related
from dqx_airflow.values import Span
from dqx_airflow.values.files import table_rows

_TABLE = "diagnostics.txt"

MistakeName: TypeAlias = Literal[
    "second_document",
    "empty_file",
    "too_deep",
    "too_many_nodes",
    "too_much_included",
    "included_too_deep",
    "number_too_large",
    "alias_within",
    "unknown_alias",
    "duplicate_key",
    "alias_as_key",
    "collection_as_key",
    "merged",
    "tag",
    "syntax",
    "circular_chain",
    "circular",
    "unresolved",
    "no_mapping",
    "not_followed",
    "outside",
    "too_many_files",
    "no_variables_yet",
    "unknown_variable",
    "no_variable",
    "a_suite",
    "product",
    "older_odcs",
    "other_product",
    "not_a_mapping",
    "unknown_dialect",
    "mixed_dialects",
    "unknown_version",
    "repeated_name",
    "unknown_type",
    "blank_type",
    "bound_is_no_time",
    "bound_is_no_number",
    "unknown_accepted",
    "incomplete_acceptance",
    "incomplete_rename",
    "unknown_model",
    "unknown_field",
    "no_duration",
    "no_contract",
    "no_contract_version",
    "number_in_text",
    "no_manifest",
    "misplaced_id",
    "unread_manifest",
    "source_of_manifest",
    "repeated_version",
    "block_status",
    "block_contract",
    "no_manifest_found",
    "broken_manifest",
    "unknown_promise",
    "unknown_pin",
    "no_pin",
    "no_pin_in_2",
    "no_query",
    "no_single_query",
    "extra_columns",
    "unproven_output",
    "missing_output",
    "dates_in_disorder",
    "short_notice",
]
"""The names of the rows of the table, so that a type checker sees a wrong one."""


def mistake(
    name: MistakeName, span: Span, /, *related: Related, hint: Any = None, **named: object
) -> Diagnostic:
    """The diagnostic of a name in `contracts/diagnostics.txt`, with the values that its texts name.

    :param hint: the help, if it is not in the table.
    """
    texts = {row_name: texts for row_name, *texts in table_rows(__package__, _TABLE, "diagnostics")}
    code, message, *helps = (text.format(**named) for text in texts[name])
    return Diagnostic(message, span, code, related=related, help=helps[0] if helps else hint)
