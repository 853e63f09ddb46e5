"""The anomaly tests of Elementary: metrics of a day beside those of the days before."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dqx_airflow.migration.dbt_arguments import Arguments
from dqx_airflow.migration.dql_text import groups_text, number, value_text
from dqx_airflow.migration.foreign_rule import Claims, UntranslatableError

ANOMALIES = "a run judges one day against the days before, and is skipped without enough of them"
"""When the verdicts of the two tools differ."""

_METRICS = {
    "null_count": "null_count({})",
    "null_percent": "null_count({}) / num_rows()",
    "not_null_percent": "count({}) / num_rows()",
    "missing_count": 'num_rows(where {0} is null or trim({0}) == "")',
    "missing_percent": 'num_rows(where {0} is null or trim({0}) == "") / num_rows()',
    "min": "minimum({})",
    "max": "maximum({})",
    "min_length": "min_length({})",
    "max_length": "max_length({})",
    "average": "average({})",
    "sum": "sum({})",
    "standard_deviation": "sqrt(variance({}))",
    "variance": "variance({})",
    "zero_count": "count_values({}, 0)",
    "zero_percent": "count_values({}, 0) / num_rows()",
    "count_true": "count_values({}, true)",
    "count_false": "count_values({}, false)",
}
_DAYS = {"day": 1, "week": 7}
_OF_ANOMALIES = (
    *("timestamp_column", "time_bucket", "training_period", "anomaly_sensitivity", "sensitivity"),
    *("anomaly_direction", "fail_on_zero"),
    # They choose the days that are judged, which is the date of a run here.
    *("detection_period", "backfill_days", "days_back", "min_training_set_size"),
)


def _usual(metric: str, arguments: Arguments) -> str:
    """The claim that a metric is near its mean of the days before.

    :raises UntranslatableError: its buckets are no days, or the test depends on the season.
    """
    if arguments.get("seasonality"):
        example = "num_rows() >= 0.7 * usual(num_rows(), n 4, step 7)"
        raise UntranslatableError(f"its seasonality has no counterpart: write `{example}`")
    bucket = arguments.get("time_bucket")
    if bucket and bucket != {"period": "day", "count": 1}:
        raise UntranslatableError("its time_bucket must be one day: a run judges a day")
    limit = arguments.get("anomaly_sensitivity", arguments.get("sensitivity", 3))
    far, days = value_text(number(limit)), _training_days(arguments)
    direction = arguments.get("anomaly_direction", "both")
    if direction == "both":
        return f"{metric} within {far} stddev of {days} days"
    if direction not in ("spike", "drop"):
        raise UntranslatableError(f"the anomaly_direction '{direction}' is unknown")
    op, sign = ("<=", "+") if direction == "spike" else (">=", "-")
    before = _of_the_day_before(metric)
    mean, deviation = (f"{kind}({before}, n {days})" for kind in ("mean", "stddev"))
    return f"{metric} {op} {mean} {sign} {far} * {deviation}"


def _of_the_day_before(metric: str) -> str:
    """A metric one day earlier: `mean` and `stddev` end with the date itself.

    :raises UntranslatableError: it is an expression over metrics.
    """
    if " / " in metric or metric.startswith("sqrt("):
        raise UntranslatableError("the anomaly_direction of a share has no counterpart")
    inside = metric[metric.index("(") + 1 : -1]
    return f"{metric[:-1]}{', ' if inside else ''}lag 1)"


def _training_days(arguments: Arguments) -> int:
    match arguments.get("training_period"):
        case None:
            return int(number(arguments.get("days_back", 14)))
        case {"period": str(period), "count": int(count)} if period in _DAYS:
            return count * _DAYS[period]
    raise UntranslatableError("its training_period must be a number of days or weeks")


def _rows(arguments: Arguments) -> tuple[str, ...]:
    more = ("num_rows() > 0",) if arguments.get("fail_on_zero") else ()
    return (*more, _usual("num_rows()", arguments))


def _volume(arguments: Arguments) -> Claims:
    arguments.only(*_OF_ANOMALIES, "seasonality")
    return Claims("volume_anomalies", _rows(arguments))


def _dimensions(arguments: Arguments) -> Claims:
    arguments.only(*_OF_ANOMALIES, "seasonality", "dimensions")
    columns = [Arguments({}, column, "data").path for column in arguments.list_of("dimensions")]
    texts = (f"{text}{groups_text(columns)}" for text in _rows(arguments))
    return Claims("dimension_anomalies", tuple(texts))


def _column(arguments: Arguments) -> Claims:
    arguments.only(*_OF_ANOMALIES, "seasonality", "column_anomalies", "dimensions")
    column = arguments.path
    if "column_anomalies" not in arguments:
        raise UntranslatableError("name its monitors in column_anomalies: they depend on the type")
    by = arguments.get("dimensions") or []
    groups = groups_text([Arguments({}, column, "data").path for column in by])
    texts = []
    for name in arguments.list_of("column_anomalies"):
        if name not in _METRICS:
            raise UntranslatableError(f"the monitor '{name}' has no counterpart")
        texts.append(_usual(_METRICS[name].format(column), arguments) + groups)
    return Claims("column_anomalies", tuple(texts), column)


def _refused(reason: str) -> Callable[[Arguments], Claims]:
    def refuse(arguments: Arguments) -> Claims:
        raise UntranslatableError(reason)

    return refuse


_LIMIT = "it learns how late data is: write a limit, `freshness(updated_at) < 1 day`"
_SCHEMA = (
    "it compares with the columns of an earlier run: write `column id type bigint` for each one, "
    "and `extra_column_count([id, price]) == 0`"
)
_TESTS: Mapping[str, Callable[[Arguments], Claims]] = {
    "volume_anomalies": _volume,
    "dimension_anomalies": _dimensions,
    "column_anomalies": _column,
    "all_columns_anomalies": _refused("its columns are not in the file: write column_anomalies"),
    "freshness_anomalies": _refused(_LIMIT),
    "event_freshness_anomalies": _refused(_LIMIT),
    "schema_changes": _refused(_SCHEMA),
    "schema_changes_from_baseline": _refused(_SCHEMA),
}


def elementary_claims(kind: str, arguments: Arguments) -> Claims | None:
    """The claims of a test of Elementary; None for any other test.

    :raises UntranslatableError: it has no counterpart.
    """
    package, _, bare = kind.rpartition(".")
    return _TESTS[bare](arguments) if package == "elementary" and bare in _TESTS else None


def is_anomaly_test(kind: str) -> bool:
    """True for a test that compares with earlier days."""
    return kind.startswith("elementary.") and kind.endswith("_anomalies")
