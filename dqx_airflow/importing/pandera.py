"""pandera: schemas of data frames as YAML or JSON, as written by `schema.to_yaml()`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from dqx_airflow.contracts import demands as kinds
from dqx_airflow.contracts.compile.terms import sql_name
from dqx_airflow.contracts.dialects.foreign import Translation, literals, rlike
from dqx_airflow.contracts.mistyped_types import hint_at_type, meant_type
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.importing import foreign_rule
from dqx_airflow.importing.foreign_rule import Claims, ForeignRule, listed_rules, yaml_line
from dqx_airflow.values import Severity

_PASS_NULL = ("notin", "not_equal_to")
_OPTIONS = ("options", "raise_warning", "ignore_na", "n_failure_cases", "groupby", "groups")
_ESCAPED = str.maketrans({sign: f"\\{sign}" for sign in r"\.^$*+?{}[]|()"})
_OPTIONAL = "without the column, the rule passes in pandera but fails here"
_WIDER = "Spark's type may be narrower than the type of pandas"


def recognises(document: Any) -> bool:
    return isinstance(document, Mapping) and (
        document.get("schema_type") == "dataframe"
        or (isinstance(document.get("columns"), Mapping) and "coerce" in document)
    )


def rules_of(
    document: Mapping[str, Any], request: foreign_rule.ImportRequest
) -> Iterator[ForeignRule]:
    dataset = request.dataset or str(document.get("name") or "data")
    columns = document.get("columns")
    names = []
    for name, described in columns.items() if isinstance(columns, Mapping) else ():
        place = f"{request.file}: columns.{name}"
        if not isinstance(described, Mapping) or described.get("regex"):
            reason = "columns selected by a regular expression have no counterpart"
            yield ForeignRule(dataset, place, yaml_line(described), reason)
            continue
        names.append(name)
        is_optional = described.get("required", True) is False
        for rule in _of_column(str(name), described, dataset, place):
            is_translated = not isinstance(rule.meaning, str)
            yield _of_optional(rule) if is_optional and is_translated else rule
    yield from _of_frame(document, names, dataset, request.file)


def _of_optional(rule: ForeignRule) -> ForeignRule:
    """The rule of a column that may be missing, with the difference for data without it."""
    difference = "; ".join(filter(None, (rule.difference, _OPTIONAL)))
    return replace(rule, difference=difference)


def _of_frame(
    document: Mapping[str, Any], names: list[object], dataset: str, file: str
) -> Iterator[ForeignRule]:
    if document.get("strict") is True:
        claim = f"extra_column_count([{foreign_rule.columns_text(names)}]) == 0"
        yield ForeignRule(dataset, f"{file}: strict", "strict", Claims("strict", (claim,)))
    unique = document.get("unique")
    if unique:
        keys = unique if isinstance(unique, list) else [unique]
        claim = f"duplicate_count([{foreign_rule.columns_text(keys)}]) == 0"
        yield ForeignRule(
            dataset, f"{file}: unique", f"unique {yaml_line(keys)}", Claims("unique", (claim,))
        )
    for key, reason in (
        ("checks", "checks of the whole frame have no counterpart"),
        ("index", "a Spark table has no index"),
    ):
        if document.get(key):
            yield ForeignRule(dataset, f"{file}: {key}", yaml_line(document[key]), reason)
    for key, value in document.items():
        if key not in listed_rules("pandera: keys of frames") and value not in (None, False, []):
            unknown = (f"'{key}' has no counterpart",)
            (reason,) = listed_rules("pandera: refused").get(key, unknown)
            yield ForeignRule(dataset, f"{file}: {key}", f"{key}: {yaml_line(value)}", reason)


def _of_column(
    name: str, described: Mapping[str, Any], dataset: str, place: str
) -> Iterator[ForeignRule]:
    path = foreign_rule.column_text(name)

    def rule(key: str, meaning: foreign_rule.Meaning | str, **more: Any) -> ForeignRule:
        return ForeignRule(dataset, f"{place}.{key}", f"{name}: {key}", meaning, **more)

    if described.get("required", True) is not False:
        yield rule("required", Claims("exists", (f"column {path} exists",), path))
    written_type = described.get("dtype") or described.get("pandas_dtype")
    if written_type is not None:
        claim = _type_claim(path, written_type)
        difference = None if isinstance(claim, str) else _WIDER
        yield rule(f"dtype {written_type}", claim, difference=difference)
    if described.get("nullable", False) is False:
        yield rule("nullable: false", Translation("not_null", (kinds.Required(),), path))
    if described.get("unique") or described.get("allow_duplicates") is False:
        # To pandas, NULL equals NULL.
        yield rule("unique", Claims("unique", (f"duplicate_count({path}) == 0",), path))
    # Newer versions write the checks of a column as separate keys.
    separate_checks = {
        key: given
        for key, given in described.items()
        if key not in listed_rules("pandera: keys of columns") and given is not None
    }
    for kind, given, options in (*_checks(described.get("checks")), *_checks(separate_checks)):
        severity = Severity.P3 if options.get("raise_warning") else None
        meaning = _meaning_of_check(path, kind, given, options)
        yield rule(f"{kind}: {yaml_line(given)}", meaning, severity=severity)


def _type_claim(path: str, written: object) -> Claims | str:
    """The claim that a column has a type of pandas, or the reason why it has none."""
    types = listed_rules("pandera: types")
    (kind,) = types.get(str(written).lower().replace(", ", ","), (None,))
    if kind is None:
        hint = hint_at_type(meant_type(str(written), types.__contains__, types))
        return f"Spark has no type '{written}'" + (f": {hint}" if hint else "")
    return Claims("type", (f"column {path} fits {kind}",), path)


def _meaning_of_check(
    path: str, kind: str, given: Any, options: Mapping[str, Any]
) -> Translation | str:
    """The demands of a check, or the reason why it has no counterpart."""
    of_groups = " of groups" if options.get("groupby") else ""
    if kind not in _CHECKS or of_groups:
        return f"the check '{kind}'{of_groups} has no counterpart"
    try:
        demands = _CHECKS[kind](path, given)
    except foreign_rule.REFUSALS as refusal:
        return foreign_rule.reason_of(refusal, f"the check '{kind}' has unsupported arguments")
    if options.get("ignore_na") is False and kind not in _PASS_NULL:
        demands = (*demands, kinds.Required())
    return Translation(kind, demands, path)


def _checks(checks: object) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    """The checks of a column, each with its value or its arguments, and its options."""
    listed = [(None, check) for check in checks] if isinstance(checks, list) else []
    for kind, written in checks.items() if isinstance(checks, Mapping) else listed:
        if not isinstance(written, Mapping):
            yield str(kind or "check"), written, {}
            continue
        # Newer versions write the options beside the arguments.
        nested = written.get("options")
        options = {**written, **nested} if isinstance(nested, Mapping) else written
        given = {key: item for key, item in written.items() if key not in _OPTIONS}
        yield str(kind or options.get("check_name", "check")), given.get("value", given), options


_Demands = tuple[kinds.Demand, ...]


def _bound(op: str, path: str, given: Any) -> _Demands:
    return (kinds.Bound(op, _only(given)),)


def _only(given: Any) -> Any:
    """The value of a check, which some versions write below a key such as `min_value`."""
    if isinstance(given, Mapping) and len(given) == 1:
        (value,) = given.values()
        return value
    return given


def _range(path: str, given: Any) -> _Demands:
    low = ">=" if given.get("include_min", True) else ">"
    high = "<=" if given.get("include_max", True) else "<"
    return kinds.Bound(low, given["min_value"]), kinds.Bound(high, given["max_value"])


def _lengths(path: str, given: Any) -> _Demands:
    bounds = (
        ("min_value", ">="),
        ("max_value", "<="),
        ("exact_value", ">="),
        ("exact_value", "<="),
    )
    return tuple(kinds.Length(op, given[key]) for key, op in bounds if given.get(key) is not None)


def _none_of(path: str, values: Any) -> _Demands:
    items = values["forbidden_values"] if isinstance(values, Mapping) else values
    return (kinds.RowsSatisfy(f"{sql_name(path)} NOT IN ({literals(tuple(items))})"),)


def _one_of(path: str, values: Any) -> _Demands:
    items = values["allowed_values"] if isinstance(values, Mapping) else values
    return (kinds.OneOf(tuple(items)),)


def _matches(before: str, after: str, path: str, given: Any, *, is_literal: bool) -> _Demands:
    text = next(iter(given.values())) if isinstance(given, Mapping) else given
    if not isinstance(text, str):
        raise NoCounterpartError("its pattern is not a string")
    pattern = text.translate(_ESCAPED) if is_literal else f"(?:{text})"
    return (kinds.RowsSatisfy(rlike(sql_name(path), f"{before}{pattern}{after}")),)


def _equal(op: str, path: str, value: Any) -> _Demands:
    return (kinds.RowsSatisfy(f"{sql_name(path)} {op} {literals((_only(value),))}"),)


_CHECKS: dict[str, Callable[[str, Any], _Demands]] = {
    "equal_to": partial(_equal, "="),
    "not_equal_to": partial(_equal, "<>"),
    "greater_than": partial(_bound, ">"),
    "greater_than_or_equal_to": partial(_bound, ">="),
    "less_than": partial(_bound, "<"),
    "less_than_or_equal_to": partial(_bound, "<="),
    "in_range": _range,
    "isin": _one_of,
    "notin": _none_of,
    "str_matches": partial(_matches, "^", "", is_literal=False),
    "str_contains": partial(_matches, "", "", is_literal=False),
    "str_startswith": partial(_matches, "^", "", is_literal=True),
    "str_endswith": partial(_matches, "", "$", is_literal=True),
    "str_length": _lengths,
}
