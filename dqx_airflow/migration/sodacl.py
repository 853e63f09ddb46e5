"""SodaCL: `checks for orders:`, with their levels, filters and metrics of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dqx_airflow.contracts.demands import QueryGives, RowsSatisfy
from dqx_airflow.contracts.dialects.foreign import Translation, soda, sodacl
from dqx_airflow.contracts.dialects.foreign.values import aggregate_query
from dqx_airflow.migration.documents import one_line
from dqx_airflow.migration.double_quotes import spark_sql
from dqx_airflow.migration.dql_text import column_text
from dqx_airflow.migration.foreign_rule import Claims, ForeignRule, Meaning, UntranslatableError
from dqx_airflow.migration.request import ImportRequest
from dqx_airflow.migration.sodacl_changes import CHANGE, OF_SCANS, change_claims
from dqx_airflow.migration.sodacl_groups import rules_of_groups
from dqx_airflow.migration.sodacl_levels import levels_of
from dqx_airflow.migration.sodacl_schema import schema_claims
from dqx_airflow.migration.variables import VARIABLE
from dqx_airflow.values import Severity

CHECKS_FOR, FOR_EACH, FILTER = "checks for ", "for each ", "filter "
"""How the keys of a file begin."""


def rules_of(document: Mapping[str, Any], request: ImportRequest) -> Iterator[ForeignRule]:
    """The checks of a file, and its entries that are not known checks."""
    filters = {
        key.removeprefix(FILTER): str(value["where"])
        for key, value in document.items()
        if key.startswith(FILTER) and isinstance(value, Mapping) and "where" in value
    }
    for key, section in document.items():
        if key.startswith(FILTER):
            continue
        for name, checks in _sections(key, section):
            table, _, partition = name.partition(" [")
            where = filters.get(name) if partition else None
            dataset = request.dataset or table.strip()
            for number, check in enumerate(checks):
                place = f"{request.file}: {key}[{number}]"
                if partition and where is None:
                    reason = f"unknown filter '{name}'"
                elif VARIABLE.search(dataset):
                    reason = f"its dataset is the variable {dataset}: add --dataset"
                elif any(sign in dataset for sign in "%*"):
                    reason = "it selects datasets by a pattern: list each of them"
                else:
                    yield from _sodacl_rules(check, _Place(dataset, place, where))
                    continue
                yield ForeignRule(_plain_name(dataset), place, one_line(check), reason)
        if not _sections(key, section):
            reason = "only `checks for DATASET` with a list of checks has a counterpart"
            place = f"{request.file}: {key}"
            yield ForeignRule(request.dataset or "data", place, one_line(section), reason)


def _sections(key: str, section: object) -> list[tuple[str, list[Any]]]:
    """The datasets of a section, each with its checks; `for each dataset` has several."""
    if key.startswith(CHECKS_FOR) and isinstance(section, list):
        return [(key.removeprefix(CHECKS_FOR), section)]
    if not key.startswith(FOR_EACH) or not isinstance(section, Mapping):
        return []
    checks, named = section.get("checks"), section.get("datasets") or section.get("dataset")
    if not isinstance(checks, list) or not isinstance(named, list):
        return []
    names = [str(pattern).removeprefix("include ").strip() for pattern in named]
    return [(name, checks) for name in names if not name.startswith("exclude ")]


def _plain_name(text: str) -> str:
    return re.sub(r"\W+", "_", text).strip("_") or "data"


@dataclass(frozen=True, slots=True)
class _Place:
    """The context of a check: its dataset, its position in the file, and the filter of the
    dataset."""

    dataset: str
    place: str
    where: str | None


_NO_CLAIMS = (
    *("name", "title", "owner", "attributes", "identity", "column"),
    *("samples limit", "samples columns", "collect failed rows", "failed rows query"),
)
"""The keys of a check that data cannot violate."""


def _sodacl_rules(check: object, at: _Place) -> Iterator[ForeignRule]:
    """A check; two rules if it warns and fails at different values."""
    given = next(iter(check.values())) if isinstance(check, Mapping) and check else None
    text = next(iter(check)) if isinstance(check, Mapping) and check else check
    settings = dict(given) if isinstance(given, Mapping) else {}
    name, own_filter = settings.get("name"), settings.pop("filter", None)
    for key in _NO_CLAIMS:
        settings.pop(key, None)
    filters = [f"({condition})" for condition in (at.where, own_filter) if condition]
    shown = check if isinstance(check, str) else one_line(check)
    of_no_rows = OF_NO_ROWS if filters and IS_SHARE.match(str(text)) else None

    def rule(
        meaning: Meaning,
        severity: Severity | None = None,
        difference: str | None = None,
    ) -> ForeignRule:
        return ForeignRule(
            at.dataset,
            at.place,
            shown,
            meaning,
            name=str(name) if name else None,
            severity=severity,
            where=" AND ".join(filters) or None,
            difference=difference or of_no_rows,
        )

    if text == "schema":
        for severity, claims in schema_claims(settings):
            yield rule(claims, severity)
        return
    if text == "group evolution":
        yield rule(
            "it compares with the groups of the last scan: list the groups, `for each c in [...]`"
        )
        return
    if text == "group by":
        yield from rules_of_groups(settings, at.dataset, at.place, at.where, shown)
        return
    try:
        for sql in (*filters, *_sql_in(settings)):
            spark_sql(sql)
    except UntranslatableError as error:
        yield ForeignRule(at.dataset, at.place, shown, str(error))
        return
    for severity, compared in levels_of(str(text), settings):
        if compared is None:
            yield rule("write a level as `when > 5`", severity)
            continue
        meaning, difference = _sodacl_meaning(compared, settings, at.dataset)
        yield rule(meaning, severity, difference)


def _sql_in(settings: Mapping[str, Any]) -> Iterator[str]:
    """The SQL by which a check defines itself."""
    for key, value in settings.items():
        if isinstance(value, str) and key.endswith((" expression", " query", " condition")):
            yield value


def _sodacl_meaning(
    text: str, settings: dict[str, Any], dataset: str
) -> tuple[Meaning, str | None]:
    """The translation of a check, and how its verdicts differ."""
    if text.split(" ", maxsplit=1)[0] in ("anomaly", "distribution_difference"):
        return _REASONS[text.split(" ", maxsplit=1)[0]], None
    if text.startswith("distribution_difference("):
        return _REASONS["distribution_difference"], None
    if text == "failed rows" or text.startswith("failed rows "):
        return _failed_rows(text.removeprefix("failed rows").strip(), settings), None
    try:
        if (match := _SAME_AS.fullmatch(text)) is not None:
            return _same_count(match, dataset)
        if (match := CHANGE.fullmatch(text)) is not None:
            return change_claims(match), OF_SCANS
    except UntranslatableError as error:
        return str(error), None
    written = str(settings.get("valid format", "")).replace("_", " ").lower()
    difference = "the format is checked as DQL defines it" if written in _OWN_FORMATS else None
    return sodacl.translate({text: settings} if settings else text), difference


IS_SHARE = re.compile(r"(missing|invalid|duplicate)_percent\b")
"""How the checks of a share of the rows begin."""
OF_NO_ROWS = "if no row matches the filter, Soda passes, and this fails"
_OWN_FORMATS = ("email", "ipv4 address", "ipv6 address")
"""Formats of Soda with a counterpart in DQL that some values distinguish."""
_REASONS = {
    "anomaly": "Soda Cloud learns its limits from past scans: write a limit, or `within 3 stddev "
    "of 30 days`",
    "distribution_difference": "it compares with a Soda reference file: write the shares, "
    "`distribution(c) matches {...}`",
}
_SAME_AS = re.compile(r'row_count\s+same\s+as\s+"?(?P<other>[\w.]+)"?(?P<source>\s+in\s+\S+)?')


def _same_count(match: re.Match[str], dataset: str) -> tuple[Claims, str | None]:
    """Two datasets have the same number of rows; one elsewhere with the same name is renamed."""
    name, source = match["other"].split(".")[-1], match["source"]
    difference = None
    if name == dataset and source is not None:
        name = _plain_name(f"{source.split()[-1]}_{name}")
        difference = f"the dataset of the other source is named {name} here"
    counted, other = column_text(dataset), column_text(name)
    text = f"num_rows(dataset {counted}) == num_rows(dataset {other})"
    return Claims("row_count", (text,), others=(other,)), difference


def _failed_rows(comparison: str, settings: Mapping[str, Any]) -> Translation | str:
    """No row fails, or fewer than a comparison allows."""
    condition, query = settings.get("fail condition"), settings.get("fail query")
    extra = [key for key in settings if key not in ("fail condition", "fail query")]
    if extra:
        return f"failed rows: '{extra[0]}' has no counterpart"
    sql = str(condition if condition is not None else query or "")
    if not sql:
        return "failed rows: it has neither a fail condition nor a fail query"
    if (variable := VARIABLE.search(sql)) is not None:
        return f"failed rows: write the value of the variable {variable[0]}"
    if condition is not None and not comparison:
        return Translation("failed_rows", (RowsSatisfy(f"NOT ({sql})"),))
    counted = aggregate_query(f"count_if({sql})") if condition is not None else count_of(sql)
    compared = soda.comparisons(sodacl.threshold(comparison or "= 0") or {})
    if isinstance(compared, str) or not compared:
        return f"failed rows: '{comparison}' does not compare with a number"
    return Translation("failed_rows", tuple(QueryGives(counted, limit) for limit in compared))


def count_of(query: str) -> str:
    """The query for the number of rows that another one returns."""
    return " ".join(("SELECT count(*) FROM (", query.strip().rstrip(";"), ") AS failed"))
