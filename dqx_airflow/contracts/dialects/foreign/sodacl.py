"""SodaCL, Soda's older language, as demands: `row_count > 0`, with settings below a check.

`translations_of` reads it, and the checks of both kinds of contracts, in every form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from dqx_airflow.contracts import demands as kinds
from dqx_airflow.contracts.compile.terms import sql_name
from dqx_airflow.contracts.dialects import foreign
from dqx_airflow.contracts.dialects.durations import seconds_of
from dqx_airflow.contracts.dialects.foreign import soda, soda_4
from dqx_airflow.contracts.dialects.rule_names import slug
from dqx_airflow.contracts.model import dotted_path
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values import Severity
from dqx_airflow.values.exact import finite_number

CHECKS_FOR = "checks for "
"""The beginning of the key with the checks of a dataset."""


def translations_of(
    written: object, column: str | None, datasets: tuple[str, ...], sql_dialect: str | None = None
) -> tuple[foreign.Translation, ...]:
    """The demands of checks in any form: of contracts of Soda 3 (`type: missing_count`) or 4
    (`missing:`), and of SodaCL, one, a list, or below `checks for orders:`.

    :param datasets: the names of the dataset that the checks are about.
    :raises NoCounterpartError: one of them has no counterpart.
    """
    if isinstance(written, list):
        translations: list[foreign.Translation] = []
        for check in written:
            translations += translations_of(check, column, datasets, sql_dialect)
        return tuple(translations)
    if not isinstance(written, Mapping):
        return tuple(leveled(written, sql_dialect))
    for key in written:
        if str(key).startswith(CHECKS_FOR):
            checks = _checks_below(written, str(key), datasets)
            return translations_of(checks, column, datasets, sql_dialect)
    if "type" in written:
        return (soda.translate(written, column, sql_dialect),)
    if [*written] == ["checks"]:
        return translations_of(written["checks"], column, datasets, sql_dialect)
    translations = []
    for kind, settings in written.items():
        if soda_4.is_check(kind, settings):
            translations += soda_4.translations_of(kind, settings, {}, column, sql_dialect)
        else:
            translations += leveled({kind: settings}, sql_dialect)
    return tuple(translations)


def _checks_below(written: Mapping[str, Any], head: str, datasets: tuple[str, ...]) -> object:
    """The checks below a head such as `checks for orders`.

    :raises NoCounterpartError: they are about another dataset, or it is not the only head.
    """
    name = head.removeprefix(CHECKS_FOR).strip().strip('"`')
    if len(written) > 1:
        raise NoCounterpartError(f"write only `{head}:` here, with its checks below")
    if "[" in name:
        raise NoCounterpartError(f"write the filter of {name} as `filter` of each check")
    known = {dataset.lower() for dataset in datasets}
    if not known & {name.lower(), name.split(".")[-1].lower()}:
        raise NoCounterpartError(f"its checks are for {name}: move them to that model")
    return written[head]


_NO_CLAIMS = (
    *("title", "owner", "identity", "samples limit", "samples columns"),
    *("collect failed rows", "failed rows query"),
)
_OF_SUITES = ("schema", "change", "group by", "row_count same as")
"""The beginnings of checks that contracts do not have."""


def leveled(check: object, sql_dialect: str | None = None) -> Iterator[foreign.Translation]:
    """The demands of a check of SodaCL; those of two levels if it warns and fails differently.

    :raises NoCounterpartError: it has no counterpart.
    """
    text, settings = parts_of(check)
    for beginning in _OF_SUITES:
        if re.match(rf"{beginning}\b", text):
            raise NoCounterpartError(
                f"SodaCL's `{beginning}` has no counterpart in a contract: `dql import` makes a "
                "suite of such checks"
            )
    for key in _NO_CLAIMS:
        settings.pop(key, None)
    for severity, compared in levels_of(text, settings):
        if compared is None:
            raise NoCounterpartError("write a level as `when > 5`")
        one = translate_sodacl({compared: settings} if settings else compared, sql_dialect)
        yield replace(one, severity=severity)


def parts_of(check: object) -> tuple[str, dict[str, Any]]:
    """The text of a check, such as `row_count > 0`, and its settings.

    :raises NoCounterpartError: it has several keys, or settings that are not a mapping.
    """
    if not isinstance(check, Mapping) or not check:
        return str(check), {}
    if len(check) > 1:
        raise NoCounterpartError(
            "a check has one key: indent its settings below it, or write each check as an item"
        )
    ((text, settings),) = check.items()
    if settings is not None and not isinstance(settings, Mapping):
        raise NoCounterpartError(f"the settings of `{text}` are not keys with values")
    return str(text), dict(settings or {})


def levels_of(text: str, settings: dict[str, Any]) -> list[tuple[Severity | None, str | None]]:
    """The condition that must hold at each level of a check; None if a level is not a comparison.
    `fail` and `warn` are taken from the settings."""
    levels: list[tuple[Severity | None, str | None]] = []
    for key, severity in (("fail", None), ("warn", Severity.P3)):
        if key not in settings:
            continue
        condition = str(settings.pop(key))
        if condition.startswith("when "):
            levels.append((severity, f"{text} {_negated(condition.removeprefix('when '))}"))
        else:
            levels.append((severity, None))
    return levels or [(None, text)]


_OPPOSITES = {"<=": ">", ">=": "<", "<": ">=", ">": "<=", "!=": "=", "=": "!="}


def _negated(condition: str) -> str:
    """The negation of a condition under which a check fails."""
    bare = condition.strip()
    if bare.startswith("between "):
        return f"not {bare}"
    if bare.startswith("not between "):
        return bare.removeprefix("not ")
    for op, opposite in _OPPOSITES.items():
        if bare.startswith(op):
            return f"{opposite} {bare.removeprefix(op).strip()}"
    return condition


_CHECK = re.compile(
    r"\s*(?P<metric>\w+)\s*(\((?P<arguments>[^()]*)\))?\s*(?P<comparison>.*?)\s*", re.DOTALL
)
_COMPARISON = re.compile(r"(?P<op><=|>=|!=|<>|<|>|=)\s*(?P<bound>\S.*)")
_RANGE = re.compile(
    r"(?P<negation>not\s+)?between\s+(?P<opening>[\[(])?(?P<low>[^\s()\[\]]+)"
    r"\s+and\s+(?P<high>[^\s()\[\]]+)(?P<closing>[\])])?"
)
"""A range: a round bracket leaves out the end next to it."""
_REFERENCE = re.compile(
    r"\s*values\s+in\s+(?P<columns>\([^()]+\)|[^\s()]+)\s+must\s+(?P<negation>not\s+)?exist\s+in\s+"
    r"(?P<dataset>[^\s()]+)\s*(?P<others>\([^()]+\)|\s[^\s()]+)\s*"
)
_THRESHOLDS = {op: slug(foreign.THRESHOLDS[op][0]) for op in ("!=", "<", "<=", ">", ">=")}
_THRESHOLDS |= {"=": "must_be", "<>": "must_not_be"}
_OF_COLUMNS = ("duplicate_count", "duplicate_percent")
_PERCENTILES = ("percentile", "percentile_disc")


def translate_sodacl(check: object, sql_dialect: str | None = None) -> foreign.Translation:
    """The demands of a check: a string, or a mapping from a string to its configuration.

    :raises NoCounterpartError: the check has no counterpart.
    """
    text: object = check
    given: object = {}
    if isinstance(check, dict) and check:
        text, given = next(iter(check.items()))
    if not isinstance(text, str) or not isinstance(given, Mapping):
        raise NoCounterpartError(f"SodaCL's check '{text}' has no counterpart")
    settings = {str(key).replace(" ", "_"): value for key, value in given.items()}
    if text == _FAILED_ROWS or text.startswith(f"{_FAILED_ROWS} "):
        return _failed_rows(text.removeprefix(_FAILED_ROWS).strip(), settings, sql_dialect)
    match = _REFERENCE.fullmatch(text)
    if match is None:
        return _metric(text, settings, sql_dialect)
    if settings:
        raise NoCounterpartError("a reference with further settings")
    return _reference(match)


def _metric(text: str, settings: Mapping[str, Any], sql_dialect: str | None) -> foreign.Translation:
    """The demands of a check such as `avg(price) > 5`, with its settings."""
    parts = _CHECK.fullmatch(text)
    if parts is None:
        raise NoCounterpartError(f"SodaCL's check '{text}' has no counterpart")
    metric = parts["metric"]
    arguments = _names(parts["arguments"] or "")
    if settings and metric in ("freshness", *_PERCENTILES):
        raise NoCounterpartError(f"'{next(iter(settings))}' has no counterpart for {metric}")
    if metric == "freshness":
        return _freshness(arguments, parts["comparison"])
    compared = threshold(parts["comparison"])
    if compared is None:
        raise NoCounterpartError(f"SodaCL's check '{text}' does not compare with a number")
    if metric in _PERCENTILES:
        return _percentile(arguments, compared)
    own_metric = _own_metric(metric, settings)
    if own_metric is not None and not arguments:
        return soda.translate({**own_metric, **compared}, None, sql_dialect)
    rule = {"type": metric, **settings, **compared}
    if metric in _OF_COLUMNS and len(arguments) > 1:
        return soda.translate({**rule, "columns": arguments}, None, sql_dialect)
    if metric == "row_count" and not arguments:
        return soda.translate(rule, None, sql_dialect)
    if metric != "row_count" and len(arguments) == 1:
        return soda.translate(rule, dotted_path(arguments[0]), sql_dialect)
    raise NoCounterpartError(f"SodaCL's check '{text}' has no counterpart")


def _names(text: str) -> list[str]:
    bare = text.strip().removeprefix("(").removesuffix(")")
    return [name.strip().strip('"`') for name in bare.split(",") if name.strip()]


_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE]\d+)?")


def _number(text: str) -> int | float | None:
    """A number; SodaCL writes percentages with or without a percent sign."""
    bare = text.strip().removesuffix("%").strip()
    return finite_number(bare) if _NUMBER.fullmatch(bare) else None


def _own_metric(metric: str, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """The metric that a check defines itself: `avg_span expression: AVG(a - b)`."""
    rest = dict(settings)
    for kind in ("expression", "query"):
        if (sql := rest.pop(f"{metric}_{kind}", None)) is not None:
            return {"type": f"metric_{kind}", f"{kind}_sql": sql, **rest}
    return None


def threshold(comparison: str) -> dict[str, Any] | None:
    """A comparison with numbers as keys of Soda: `> 5` is `must_be_greater_than: 5`; None for any
    other comparison.

    :raises NoCounterpartError: it is a range that has no counterpart.
    """
    if match := _RANGE.fullmatch(comparison):
        return _keys_of_range(match)
    match = _COMPARISON.fullmatch(comparison)
    bound = _number(match["bound"]) if match else None
    return {_THRESHOLDS[match["op"]]: bound} if match and bound is not None else None


def _keys_of_range(match: re.Match[str]) -> dict[str, Any] | None:
    """The keys of Soda for a range; None if its ends are not numbers.

    :raises NoCounterpartError: it is empty, or a forbidden range without one of its ends.
    """
    low, high = _number(match["low"]), _number(match["high"])
    if low is None or high is None:
        return None
    if low > high:
        raise NoCounterpartError(f"`{match[0]}` is empty: write the lower number first")
    without_low, without_high = match["opening"] == "(", match["closing"] == ")"
    if match["negation"]:
        if without_low or without_high:
            raise NoCounterpartError(
                f"`{match[0]}` allows an end of its range, as DQL cannot: write the next number"
            )
        return {"must_not_be_between": [low, high]}
    if not without_low and not without_high:
        return {"must_be_between": [low, high]}
    lower = _THRESHOLDS[">" if without_low else ">="]
    upper = _THRESHOLDS["<" if without_high else "<="]
    return {lower: low, upper: high}


def _reference(match: re.Match[str]) -> foreign.Translation:
    """:raises NoCounterpartError: the columns are not as many, or must not exist there."""
    if match["negation"]:
        raise NoCounterpartError(
            "`must not exist in` has no counterpart: write it as a `failed rows` check with a query"
        )
    columns = _names(match["columns"])
    other_columns = _names(match["others"])
    if len(columns) != len(other_columns):
        raise NoCounterpartError("a reference needs the same number of columns on both sides")
    paths = tuple(map(dotted_path, columns))
    other_paths = tuple(map(dotted_path, other_columns))
    demand = kinds.Refers(paths, match["dataset"], other_paths)
    return foreign.Translation("references", (demand,), paths[0] if len(paths) == 1 else None)


def _freshness(arguments: list[str], comparison: str) -> foreign.Translation:
    match = _COMPARISON.fullmatch(comparison)
    seconds = seconds_of(match["bound"]) if match and match["op"] in ("<", "<=") else None
    if seconds is None or len(arguments) != 1 or "::" in arguments[0]:
        raise NoCounterpartError("freshness needs `<` and a duration: write `freshness(at) < 24h`")
    path = dotted_path(arguments[0])
    return foreign.Translation("freshness", (kinds.Fresh(path, seconds),), path)


def _percentile(arguments: list[str], threshold: dict[str, Any]) -> foreign.Translation:
    share = _number(arguments[1]) if len(arguments) == 2 else None
    if share is None or not 0 <= share <= 1:
        raise NoCounterpartError("a percentile needs a column and a number between 0 and 1")
    path = dotted_path(arguments[0])
    query = _value_at(share, sql_name(path))
    demands = tuple(kinds.QueryGives(query, condition) for condition in soda.comparisons(threshold))
    return foreign.Translation("percentile", demands, path)


def _value_at(share: float, name: str) -> str:
    """The query for a percentile as Soda defines it: the least value that at least this share of
    the values does not exceed. `percentile` of Spark would be a number between two values."""
    counted = f"{name} AS x, count(*) AS n FROM {{model}} WHERE {name} IS NOT NULL"
    grouped = f"(SELECT {counted} GROUP BY {name}) AS counted"
    running = "sum(n) OVER (ORDER BY x) AS reached, sum(n) OVER () AS total"
    ranked = " ".join(("SELECT x,", running, "FROM", grouped))
    return " ".join(
        ("SELECT min(x)", f"FROM ({ranked}) AS ranked WHERE reached >= {share} * total")
    )


_FAILED_ROWS = "failed rows"


def _failed_rows(
    comparison: str, settings: Mapping[str, Any], sql_dialect: str | None
) -> foreign.Translation:
    """The demands of `failed rows`: no row fails, or the number satisfies a comparison.

    :raises NoCounterpartError: it has no counterpart.
    """
    condition, query = settings.get("fail_condition"), settings.get("fail_query")
    extra = [key for key in settings if key not in ("fail_condition", "fail_query", "name")]
    if extra:
        raise NoCounterpartError(f"failed rows: '{extra[0].replace('_', ' ')}' has no counterpart")
    sql = str(condition if condition is not None else query or "")
    if not sql:
        raise NoCounterpartError("failed rows: it has neither a fail condition nor a fail query")
    name = str(settings["name"]) if settings.get("name") else None
    if condition is not None and not comparison:
        demand = kinds.RowsSatisfy(f"NOT ({sql})", sql_dialect)
        return foreign.Translation("failed_rows", (demand,), name=name)
    counted = soda_4.count_of(sql)
    if condition is not None:
        counted = foreign.aggregate_query(f"count_if({sql})")
    compared = soda.comparisons(threshold(comparison or "= 0") or {})
    if not compared:
        raise NoCounterpartError(f"failed rows: '{comparison}' does not compare with a number")
    demands = tuple(kinds.QueryGives(counted, limit, sql_dialect) for limit in compared)
    return foreign.Translation("failed_rows", demands, name=name)
