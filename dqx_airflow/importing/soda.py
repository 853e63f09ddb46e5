"""Soda: SodaCL (`checks for orders:`, with levels, filters, groups, and custom metrics), data
contracts of Soda 4 and older ones.

A check is translated as in contracts; checks of Soda 4 are first converted to checks of 3.x.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

from dqx_airflow.contracts.dialects.foreign import soda, soda_4, sodacl
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.importing import foreign_rule, sql_conditions
from dqx_airflow.importing.foreign_rule import Claims, ForeignRule, Meaning, column_text, yaml_line
from dqx_airflow.values import Severity


def comparison_text(comparison: str, unit: str) -> str:
    """A comparison in DQL: `between 1% and 5%`.

    :param unit: the unit of the bounds: `%` or none.
    :raises NoCounterpartError: it does not compare with a number.
    """
    bare = comparison.strip()
    keys = sodacl.threshold(bare)
    if keys is None:
        raise NoCounterpartError(f"'{bare}' does not compare with a number")
    if len(keys) > 1:
        raise NoCounterpartError(f"write `{bare}` as two checks, one for each end of the range")
    (compared,) = soda.comparisons(keys)
    return re.sub(r"(?<=\d)(?= |$)", unit, compared.text)


_MISMATCHING, _OPTIONAL = "when mismatching columns", "with optional columns"


def schema_claims(levels: Mapping[str, Any]) -> Iterator[tuple[Severity | None, Meaning | str]]:
    """The claims of a schema check at each of its levels, for each kind of mistake."""
    if not levels:
        yield None, "schema: it is empty"
    for level, rules in levels.items():
        if level not in ("fail", "warn") or not isinstance(rules, Mapping):
            yield None, f"schema: '{level}' has no counterpart"
            continue
        severity = Severity.P3 if level == "warn" else None
        optional = rules.get(_OPTIONAL) or ()
        for key, value in rules.items():
            if key == _OPTIONAL and _MISMATCHING in rules:
                continue
            claims = partial(_schema_claims, str(key), value, optional)
            yield severity, foreign_rule.meaning_or_reason(claims, "schema")


def _schema_claims(key: str, value: Any, optional: Collection[str]) -> Claims:
    return Claims("schema", tuple(_claims_of(key, value, optional)))


def _claims_of(key: str, value: Any, optional: Collection[str]) -> list[str]:
    match key.removeprefix("when "):
        case "required column missing" if isinstance(value, list):
            return [*foreign_rule.columns_exist(value)]
        case "wrong column type" if isinstance(value, Mapping):
            lengths = foreign_rule.length_claims(value.items())
            return [*(_fits(name, kind) for name, kind in value.items()), *lengths]
        case "mismatching columns" if isinstance(value, Mapping):
            return _only_these(value, optional)
        case "forbidden column present" if isinstance(value, list):
            names = foreign_rule.list_text(_forbidden_name(str(pattern)) for pattern in value)
            return [f"forbidden_column_count({names}) == 0"]
        case "wrong column index" if isinstance(value, Mapping):
            return [
                f"column_position({column_text(name)}) == {foreign_rule.finite(index) + 1}"
                for name, index in value.items()
            ]
        case "schema changes":
            raise NoCounterpartError(
                "it compares with the last scan: list the columns, or use a contract"
            )
    raise NoCounterpartError(f"'{key}' has no counterpart")


def _fits(name: object, kind: object) -> str:
    """The claim that a column exists, with its type if one is given."""
    if kind is None:
        return f"column {column_text(name)} exists"
    return f"column {column_text(name)} fits {foreign_rule.type_text(kind)}"


def _only_these(types: Mapping[str, Any], optional: Collection[str]) -> list[str]:
    """The claims that these columns exist with their types, and no others.

    :raises NoCounterpartError: an optional column has a type, which is checked only if it exists.
    """
    claims = []
    for name, kind in types.items():
        if name not in optional:
            claims.append(_fits(name, kind))
        elif kind is not None:
            raise NoCounterpartError(
                f"the type of the optional column {name} has no counterpart: leave the type empty"
            )
    listed = ", ".join(map(column_text, types))
    lengths = foreign_rule.length_claims(types.items())
    return [*claims, f"extra_column_count([{listed}]) == 0", *lengths]


_NAME_PATTERN = re.compile(r"[\w%* -]+\$?")


def _forbidden_name(pattern: str) -> str:
    """A pattern of forbidden names in DQL; Soda also forbids names that begin with it.

    :raises NoCounterpartError: it is a regular expression.
    """
    if _NAME_PATTERN.fullmatch(pattern) is None:
        raise NoCounterpartError(
            f"'{pattern}' is a regular expression: write names with `%` or `*` instead"
        )
    if pattern.endswith("$"):
        return pattern.removesuffix("$").replace("%", "*")
    return f"{pattern.replace('%', '*').removesuffix('*')}*"


CHANGE = re.compile(
    r"change\s+(?P<span>avg\s+last\s+(?P<days>\d+)\s+|same\s+day\s+last\s+week\s+)?"
    r"(?P<percent>percent\s+)?for\s+"
    r"(?P<metric>\w+)(\((?P<column>[^()]+)\))?\s*(?P<comparison>[<>=!b].*)"
)
OF_SCANS = "Soda compares with its last scans, DQL with the previous days"
"""The difference in the verdicts of a check on a change."""


def change_claims(match: re.Match[str]) -> Claims:
    """The claims that compare a metric with its value on another day.

    :raises NoCounterpartError: the metric or the comparison has no counterpart.
    """
    (metric,) = foreign_rule.listed_rules("soda: changes").get(match["metric"], (None,))
    if metric is None or (match["metric"] == "row_count") == bool(match["column"]):
        raise NoCounterpartError(f"a change of {match['metric']} has no counterpart")
    column = column_text(match["column"].strip('"')) if match["column"] else ""

    def measured(*more: str) -> str:
        return metric.format(", ".join(filter(None, (column, *more))))

    span = match["span"] or ""
    before = measured("lag 7" if span.startswith("same") else "lag 1")
    if match["days"]:
        before = f"mean({before}, n {match['days']})"
    change = f"{measured()} - {before}"
    unit = "%" if match["percent"] else ""
    subject = f"({change}) / {before}" if unit else change
    return Claims(
        "change", (f"{subject} {comparison_text(match['comparison'], unit)}",), column or None
    )


def rules_of_groups(
    settings: Mapping[str, Any], rule: ForeignRule, tables: Collection[str]
) -> Iterator[ForeignRule]:
    """The checks of `group by`: each on an aggregate of the query for each group.

    :param tables: the names that the query may have for the dataset.
    """
    checks = settings.get("checks")
    try:
        metrics, groups, where = _groups_of(settings, tables)
    except NoCounterpartError as error:
        yield replace(rule, meaning=f"group by: {error}", where=None)
        return
    filters = foreign_rule.all_hold(rule.where, where)
    for check in checks if isinstance(checks, list) else []:
        shown = f"group by {', '.join(groups)}: {yaml_line(check)}"
        try:
            text, settings_of_check = sodacl.parts_of(check or "")
        except NoCounterpartError as error:
            yield replace(rule, shown=shown, meaning=f"group by: {error}", where=None)
            continue
        for severity, compared in sodacl.levels_of(text, settings_of_check):
            alias, _, comparison = (compared or "").strip().partition(" ")
            claimed = partial(_of_group, metrics, alias, comparison)
            meaning = foreign_rule.meaning_or_reason(claimed, "group by")
            name = foreign_rule.name_in(settings_of_check)
            one = replace(rule, shown=shown, meaning=meaning, name=name, severity=severity)
            difference = "a dataset without rows passes in Soda but fails here"
            yield replace(one, where=filters, groups=groups, difference=difference)


def _of_group(metrics: Mapping[str, str], alias: str, comparison: str) -> Claims:
    """:raises NoCounterpartError: the query has no such aggregate, or is compared otherwise."""
    if alias.lower() not in metrics:
        raise NoCounterpartError(f"the query has no '{alias}'")
    return Claims(alias, (f"{metrics[alias.lower()]} {comparison_text(comparison, '')}",))


def _groups_of(
    settings: Mapping[str, Any], tables: Collection[str]
) -> tuple[dict[str, str], tuple[str, ...], str | None]:
    """The aggregates of the query by their names, the columns of the groups, and the filter.

    :raises NoCounterpartError: the query is more than aggregates of groups of one table.
    """
    from sqlglot import exp

    from dqx_airflow.dql.sql_parser import InvalidSqlError, parse_sql

    text = foreign_rule.sql_text(settings.get("query"))
    if (variable := foreign_rule.VARIABLE.search(text)) is not None:
        raise NoCounterpartError(f"write the value of the variable {variable[0]}")
    try:
        (query,) = parse_sql(text, None)
    except (InvalidSqlError, ValueError):
        raise NoCounterpartError("its query is not valid SQL") from None
    _refuse_other_query(query, tables)
    _remove_table_names(query)
    metrics: dict[str, str] = {}
    for column in query.expressions:
        if isinstance(column, exp.Alias):
            metrics[column.alias.lower()] = sql_conditions.metric_text(column.this)
    fields = settings.get("fields")
    if not isinstance(fields, list) or not fields:
        raise NoCounterpartError("it has no fields")
    group = query.args.get("group")
    grouped = {column.name.lower() for column in group.expressions} if group else set()
    if grouped != {str(field).lower() for field in fields}:
        raise NoCounterpartError("its fields are not the columns that the query groups by")
    where = query.args.get("where")
    groups = tuple(column_text(str(field)) for field in fields)
    return metrics, groups, where.this.sql("spark") if where else None


_OF_GROUPS = {"expressions", "from_", "where", "group", "order"}
"""The clauses of a query for aggregates of groups; an order has no effect on verdicts."""


def _refuse_other_query(query: Any, tables: Collection[str]) -> None:
    """:raises NoCounterpartError: it is more than aggregates of the groups of a table, or its table
    has another name."""
    from sqlglot import exp

    clauses = {key for key, value in query.args.items() if value}
    if not isinstance(query, exp.Select) or not clauses <= _OF_GROUPS:
        raise NoCounterpartError("its query is not a grouped aggregation of one table")
    table = query.args["from_"].this if "from_" in clauses else None
    if not isinstance(table, exp.Table):
        raise NoCounterpartError("its query is not a grouped aggregation of one table")
    if table.name.lower() not in {name.split(".")[-1].lower() for name in tables}:
        raise NoCounterpartError(f"its query reads {table.name}: write it below its own dataset")


def _remove_table_names(query: Any) -> None:
    """Removes the name of the table, or its alias, in front of columns: `o.shop` becomes `shop`."""
    from sqlglot import exp

    table = query.args["from_"].this
    for column in query.find_all(exp.Column):
        first, *path = column.parts
        if path and first.name == table.alias_or_name:
            column.set(first.arg_key, None)


FOR_EACH, FILTER, CONFIGURATIONS = "for each ", "filter ", "configurations for "
"""Prefixes of the keys of a file, beside the one for the checks of a dataset."""
_Configured: TypeAlias = "dict[tuple[str, str], dict[str, Any]]"
"""The settings that all checks of a column have, by its table and its name, both as Soda
compares them: as they are written."""


def rules_of_checks(
    document: Mapping[str, Any], request: foreign_rule.ImportRequest
) -> Iterator[ForeignRule]:
    """The checks of a file as rules; unknown entries as rules without a translation."""
    filters = {
        key.removeprefix(FILTER): str(value["where"])
        for key, value in document.items()
        if key.startswith(FILTER) and isinstance(value, Mapping) and "where" in value
    }
    configured: _Configured = {}
    for key, section in document.items():
        if key.startswith(CONFIGURATIONS):
            place = f"{request.file}: {key}"
            table = key.removeprefix(CONFIGURATIONS)
            for shown, reason in _read_configurations(table, section, configured):
                yield ForeignRule(request.dataset or _plain_name(table), place, shown, reason)
    for key, section in document.items():
        if key.startswith((FILTER, CONFIGURATIONS)):
            continue
        place = f"{request.file}: {key}"
        sections = _sections(key, section)
        for name, checks in sections:
            around = (filters, configured)
            yield from _rules_of_section(name, checks, around, place, request.dataset)
        if not sections:
            reason = "only `checks for DATASET` with a list of checks has a counterpart"
            yield ForeignRule(request.dataset or "data", place, yaml_line(section), reason)


def _read_configurations(
    table: str, section: object, configured: _Configured
) -> Iterator[tuple[str, str]]:
    """Adds the settings of a section such as `configurations for orders:` to `configured`, and
    returns what is none, with the reason. Soda reads `missing values for status: [NA]` as a part of
    every check of the column."""
    if not isinstance(section, Mapping):
        yield yaml_line(section), "write settings such as `missing values for status: [NA]`"
        return
    for key, value in section.items():
        kind, *columns = str(key).split(" for ")
        if len(columns) != 1 or kind.strip().replace(" ", "_") not in soda.VALUE_KEYS:
            reason = f"'{key}' is not a setting such as `missing values for status`"
            yield yaml_line({key: value}), reason
            continue
        settings = configured.setdefault((table.strip(), columns[0].strip()), {})
        settings[kind.strip()] = value


_OF_COLUMNS = re.compile(r"(?P<metric>\w+)\s*\((?P<columns>[^()]*)\)")
_OWN_VALUES = ("values in ", "freshness", "failed rows")
"""The beginnings of checks that do not have the settings of their columns."""


def _with_configured(
    text: str, settings: Mapping[str, Any], table: str, configured: _Configured
) -> dict[str, Any]:
    """The settings of a check and of its columns: lists of both, and else those of the check."""
    found = dict(settings)
    match = _OF_COLUMNS.search(text)
    if match is None or text.startswith(_OWN_VALUES):
        return found
    own = {key.replace("_", " "): key for key in settings}
    for column in match["columns"].split(","):
        for key, value in configured.get((table.strip(), column.strip()), {}).items():
            if match["metric"].startswith("missing_") and not key.startswith("missing"):
                continue
            given = found.get(own.get(key, key))
            if isinstance(given, list) and isinstance(value, list):
                found[own.get(key, key)] = [*given, *value]
            elif given is None:
                found[key] = value
    return found


def _rules_of_section(
    name: str,
    checks: list[Any],
    around: tuple[Mapping[str, str], _Configured],
    place: str,
    dataset: str | None,
) -> Iterator[ForeignRule]:
    """The rules of the checks for a dataset, or for a partition of it.

    :param name: as in the key: `orders`, or `orders [daily]`.
    :param around: the SQL of each partition, and the settings of columns.
    :param dataset: the dataset of all rules instead.
    """
    filters, configured = around
    table, _, partition = name.partition(" [")
    dataset = dataset or table.strip()
    where = filters.get(name) if partition else None
    reason = None
    if partition and where is None:
        reason = f"unknown filter '{name}'"
    elif foreign_rule.VARIABLE.search(dataset):
        reason = f"its dataset is the variable {dataset}: add --dataset"
    elif "%" in dataset or "*" in dataset:
        reason = "it selects datasets by a pattern: list each of them"
    for position, check in enumerate(checks):
        place_of_check = f"{place}[{position}]"
        if reason is None:
            rule = ForeignRule(dataset, place_of_check, "", "", where=where)
            yield from _sodacl_rules(check, rule, (dataset, table.strip()), configured)
        else:
            yield ForeignRule(_plain_name(dataset), place_of_check, yaml_line(check), reason)


def _sections(key: str, section: object) -> list[tuple[str, list[Any]]]:
    """The datasets of a section, each with its checks; `for each dataset` has several."""
    if key.startswith(sodacl.CHECKS_FOR) and isinstance(section, list):
        return [(key.removeprefix(sodacl.CHECKS_FOR), section)]
    if not key.startswith(FOR_EACH) or not isinstance(section, Mapping):
        return []
    checks, named = section.get("checks"), section.get("datasets") or section.get("dataset")
    if not isinstance(checks, list) or not isinstance(named, list):
        return []
    names = [str(pattern).removeprefix("include ").strip() for pattern in named]
    return [(name, checks) for name in names if not name.startswith("exclude ")]


def _plain_name(text: str) -> str:
    return re.sub(r"\W+", "_", text).strip("_") or "data"


_NO_CLAIMS = (
    "name",
    "title",
    "owner",
    "attributes",
    "identity",
    "column",
    "samples limit",
    "samples columns",
    "collect failed rows",
    "failed rows query",
)
"""The keys of a check that data cannot violate."""


def _sodacl_rules(
    check: object, rule: ForeignRule, tables: tuple[str, str], configured: _Configured
) -> Iterator[ForeignRule]:
    """The rule of a check; two rules if it warns and fails at different values.

    :param tables: the names that a query may have for the dataset, last its name in the file.
    :param configured: the settings of columns.
    """
    try:
        text, settings = sodacl.parts_of(check)
    except NoCounterpartError as error:
        yield replace(rule, shown=yaml_line(check), meaning=str(error), where=None)
        return
    name, own_filter = foreign_rule.name_in(settings), settings.pop("filter", None)
    for key in _NO_CLAIMS:
        settings.pop(key, None)
    rule = replace(rule, shown=check if isinstance(check, str) else yaml_line(check))
    rule = replace(rule, name=name, where=foreign_rule.all_hold(rule.where, own_filter))
    if text == "group by":
        yield from rules_of_groups(settings, rule, tables)
        return
    of_no_rows = OF_NO_ROWS if rule.where and IS_SHARE.match(text) else None
    if text == "schema":
        for severity, claims in schema_claims(settings):
            yield replace(rule, meaning=claims, severity=severity)
        return
    if text == "group evolution":
        reason = (
            "it compares with the groups of the last scan: list the groups, `for each c in [...]`"
        )
        yield replace(rule, meaning=reason)
        return
    settings = _with_configured(text, settings, tables[-1], configured)
    for severity, compared in sodacl.levels_of(text, settings):
        meaning: Meaning | str = "write a level as `when > 5`"
        difference = None
        if compared is not None:
            try:
                meaning, difference = _sodacl_meaning(compared, settings, rule.dataset)
            except foreign_rule.REFUSALS as refusal:
                meaning = foreign_rule.reason_of(refusal)
        difference = difference or of_no_rows
        yield replace(rule, meaning=meaning, severity=severity, difference=difference)


def _sodacl_meaning(
    text: str, settings: dict[str, Any], dataset: str
) -> tuple[Meaning, str | None]:
    """The translation of a check, and the difference in its verdicts, if any.

    :raises NoCounterpartError: it has no counterpart.
    """
    foreign_rule.refuse_listed("soda", re.split(r"[ (]", text, maxsplit=1)[0])
    for key in ("fail condition", "fail query"):
        if (variable := foreign_rule.VARIABLE.search(str(settings.get(key)))) is not None:
            raise NoCounterpartError(f"failed rows: write the value of the variable {variable[0]}")
    of_two_values = _SAME_AS.fullmatch(text) or CHANGE.fullmatch(text)
    if of_two_values is not None and settings:
        raise NoCounterpartError(f"'{next(iter(settings))}' has no counterpart for {text}")
    if (match := _SAME_AS.fullmatch(text)) is not None:
        return _same_count(match, dataset)
    if text.startswith("row_count same as"):
        raise NoCounterpartError("only `row_count same as DATASET in SOURCE` has a counterpart")
    if (match := CHANGE.fullmatch(text)) is not None:
        return change_claims(match), OF_SCANS
    if text.startswith("change "):
        raise NoCounterpartError(
            "only a change from the last scan, the same day last week, or `avg last 7` has a "
            "counterpart"
        )
    written = str(settings.get("valid format", "")).replace("_", " ").lower()
    difference = "the format is checked as DQL defines it" if written in _OWN_FORMATS else None
    return sodacl.translate_sodacl({text: settings} if settings else text), difference


IS_SHARE = re.compile(r"(missing|invalid|duplicate)_percent\b")
"""The beginning of a check on a share of the rows."""
OF_NO_ROWS = "if no row matches the filter, Soda passes, and this fails"
_OWN_FORMATS = ("email", "ipv4 address", "ipv6 address")
"""Formats of Soda with a counterpart in DQL that some values distinguish."""
_SAME_AS = re.compile(r'row_count\s+same\s+as\s+"?(?P<other>[\w.]+)"?(?P<source>\s+in\s+\S+)?')


def _same_count(match: re.Match[str], dataset: str) -> tuple[Claims, str | None]:
    """The claim that two datasets have the same number of rows. If a dataset of another source has
    the same name, it is renamed, which is returned as the difference."""
    name, source = match["other"].split(".")[-1], match["source"]
    difference = None
    if name == dataset and source is not None:
        name = _plain_name(f"{source.split()[-1]}_{name}")
        difference = f"the dataset of the other source is named {name} here"
    counted, other = column_text(dataset), column_text(name)
    text = f"num_rows(dataset {counted}) == num_rows(dataset {other})"
    return Claims("row_count", (text,), others=(other,)), difference


def recognises(document: Any) -> bool:
    if not isinstance(document, Mapping):
        return False
    if any(
        str(key).startswith((sodacl.CHECKS_FOR, FOR_EACH, FILTER, CONFIGURATIONS))
        for key in document
    ):
        return True
    return isinstance(document.get("dataset"), str) and bool({"columns", "checks"} & set(document))


def rules_of(
    document: Mapping[str, Any], request: foreign_rule.ImportRequest
) -> Iterator[ForeignRule]:
    if isinstance(document.get("dataset"), str):
        yield from _of_contract(document, request)
    else:
        yield from rules_of_checks(document, request)


def _of_contract(
    document: Mapping[str, Any], request: foreign_rule.ImportRequest
) -> Iterator[ForeignRule]:
    dataset = request.dataset or str(document["dataset"]).split("/")[-1].split(".")[-1]
    where = str(document["filter"]) if isinstance(document.get("filter"), str) else None
    columns = document.get("columns")
    for number, column in enumerate(columns if isinstance(columns, list) else []):
        described = column if isinstance(column, Mapping) else {}
        name = str(described.get("name") or "")
        of_column = f"{request.file}: columns.{name or number}"
        yield from _unread_keys(described, dataset, of_column)
        for index, check in enumerate(_checks_in(described)):
            rule = ForeignRule(dataset, f"{of_column}.checks[{index}]", "", "", where=where)
            reason = None if name else "its column has no name"
            if described.get("column_expression"):
                reason = "the column_expression of its column has no counterpart"
            if reason is None:
                yield from _contract_rules(check, name, described, rule)
            else:
                yield replace(rule, shown=yaml_line(check), meaning=reason, where=None)
    for index, check in enumerate(_checks_in(document)):
        place = f"{request.file}: checks[{index}]"
        if check == "schema" or (isinstance(check, Mapping) and "schema" in check):
            yield _columns_rule(columns, check, dataset, place)
        else:
            rule = ForeignRule(dataset, place, "", "", where=where)
            yield from _contract_rules(check, None, {}, rule)


def _unread_keys(column: Mapping[str, Any], dataset: str, place: str) -> Iterator[ForeignRule]:
    """The keys of a column that no rule reads, each as a rule without a counterpart."""
    known = foreign_rule.listed_rules("soda: keys of columns")
    for key, value in column.items():
        name = str(key)
        if value is None or name.startswith(("missing_", "valid_", "invalid_")):
            continue
        if name in known:
            reason = " ".join(known[name])
        else:
            reason = foreign_rule.unknown_key(name, "columns in Soda", known)
        if reason:
            yield ForeignRule(dataset, f"{place}.{name}", f"{name}: {yaml_line(value)}", reason)


def _checks_in(owner: Mapping[str, Any]) -> list[Any]:
    """The checks of a contract, or of a column; a mapping instead of a list is one item, which is
    not a check unless it has one key."""
    checks = owner.get("checks") or []
    return checks if isinstance(checks, list) else [checks]


def _columns_rule(columns: object, check: object, dataset: str, place: str) -> ForeignRule:
    """The rule of the check `schema`: the columns of the contract exist with their types, and no
    others."""
    settings = check.get("schema") if isinstance(check, Mapping) else None
    settings = settings if isinstance(settings, Mapping) else {}
    listed = columns if isinstance(columns, list) else []
    meaning = foreign_rule.meaning_or_reason(partial(_columns_claims, listed, settings))
    shown = yaml_line(check) if isinstance(meaning, str) else "schema"
    optional = [
        str(column.get("name"))
        for column in listed
        if isinstance(column, Mapping) and column.get("optional") is True
    ]
    difference = f"Soda lets {', '.join(optional)} be absent" if optional else None
    name = foreign_rule.name_in(settings)
    return ForeignRule(dataset, place, shown, meaning, name, difference=difference)


def _columns_claims(listed: list[Any], settings: Mapping[str, Any]) -> Claims:
    """:raises NoCounterpartError: one is not a name, or Spark does not have its type."""
    columns = [column for column in listed if isinstance(column, Mapping)]
    types = []
    for column in columns:
        try:
            kind = foreign_rule.type_text(_data_type(column))
        except NoCounterpartError as error:
            raise NoCounterpartError(f"column {column.get('name')}: {error}") from None
        types.append((column.get("name"), kind))
    has_others = bool(settings.get("allow_extra_columns"))
    written = [(column.get("name"), _data_type(column)) for column in columns]
    claims = foreign_rule.typed_columns(types, has_others=has_others)
    claims = replace(claims, texts=(*claims.texts, *foreign_rule.length_claims(written)))
    if settings.get("allow_other_column_order"):
        return claims
    places = [f"column_position({column_text(name)})" for name, _ in types]
    if has_others:
        order = [f"{one} < {other}" for one, other in pairwise(places)]
    else:
        order = [f"{place} == {number}" for number, place in enumerate(places, 1)]
    return replace(claims, texts=(*claims.texts, *order))


def _data_type(column: Mapping[str, Any]) -> str:
    """The type of a column with its length or its digits, as databases write it."""
    name = str(column.get("data_type") or "")
    sizes = [
        column[key]
        for key in ("character_maximum_length", "numeric_precision", "numeric_scale")
        if column.get(key) is not None
    ]
    is_bare = name and "(" not in name
    return f"{name}({','.join(map(str, sizes))})" if sizes and is_bare else name


def _contract_rules(
    check: object, column: str | None, described: Mapping[str, Any], rule: ForeignRule
) -> Iterator[ForeignRule]:
    """The rules of a check of a contract, of Soda 4 (`missing:`), of which one with two levels has
    two, or of 3.x (`type: no_missing_values`)."""
    rule = replace(rule, shown=check if isinstance(check, str) else yaml_line(check))
    if isinstance(check, str):
        check = {check: None}
    if not isinstance(check, Mapping) or not check:
        yield replace(rule, meaning="this is not a check", where=None)
        return
    path = column_text(column) if column else None
    if "type" in check:
        meaning = foreign_rule.meaning_or_reason(lambda: soda.translate(check, path))
        is_share = rule.where and IS_SHARE.match(str(check["type"]))
        yield replace(rule, meaning=meaning, difference=OF_NO_ROWS if is_share else None)
        return
    try:
        kind, settings = sodacl.parts_of(check)
    except NoCounterpartError as error:
        yield replace(rule, meaning=str(error), where=None)
        return
    where, threshold = settings.pop("filter", None), settings.get("threshold")
    name = foreign_rule.name_in(settings)
    rule = replace(rule, name=name, where=foreign_rule.all_hold(rule.where, where))
    if rule.where and isinstance(threshold, Mapping) and threshold.get("metric") == "percent":
        rule = replace(rule, difference=OF_NO_ROWS)
    try:
        for translation in soda_4.translations_of(kind, settings, described, path):
            yield replace(rule, meaning=translation, severity=translation.severity)
    except foreign_rule.REFUSALS as refusal:
        yield replace(rule, meaning=foreign_rule.reason_of(refusal), difference=None)
