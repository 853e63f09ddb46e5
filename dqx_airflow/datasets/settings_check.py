"""Checks the settings of a dataset, as far as possible before anything is read."""

from __future__ import annotations

import re
from datetime import date, datetime, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dqx_airflow.datasets.date_pattern import DatePatternError, date_text
from dqx_airflow.datasets.locations import two_slashes
from dqx_airflow.datasets.reader_options import wrong_option
from dqx_airflow.errors import RequestError
from dqx_airflow.values import FORMATS, JDBC, DatasetRef
from dqx_airflow.values.json_form import iso_timestamp
from dqx_airflow.values.redact import holds_credentials, may_be_secret, redact_urls
from dqx_airflow.values.secret_forms import is_secret_setting

CREDENTIALS_HINT = (
    "credentials belong in the configuration of Spark, in the connection of the results, or in the "
    "environment of the driver"
)
_CONNECTION_ID = re.compile(r"[\w.#/-]{1,200}")


def check_ref(ref: DatasetRef) -> None:
    """Checks a dataset as far as possible before anything is read.

    :raises RequestError: its settings contradict each other, or one is invalid.
    """
    objection = _objection(ref)
    if objection is not None:
        raise RequestError(f"dataset '{ref.name}'{objection}")
    wrong = wrong_option(ref)
    if wrong is not None:
        raise RequestError(f"dataset '{ref.name}' {wrong.problem}", wrong.hint)


def _objection(ref: DatasetRef) -> str | None:
    """The first mistake in the settings of a dataset, as the end of a message; None if there is
    none."""
    return (
        _objection_to_secrets(ref)
        or _objection_to_source(ref)
        or _objection_to_versions(ref)
        or _objection_to_schema(ref)
        or _objection_to_dates(ref)
        or _objection_to_values(ref)
    )


def _objection_to_secrets(ref: DatasetRef) -> str | None:
    for key in ("path", "table", "lineage_name"):
        place = getattr(ref, key)
        if place is not None and holds_credentials(place):
            return f" has credentials in its {key}, {redact_urls(place)}: {CREDENTIALS_HINT}"
    if ref.path is not None and (meant := two_slashes(ref.path)) is not None:
        return f" has path={ref.path!r}: write {meant}"
    for name, value in ref.options:
        if is_secret_setting(name) or may_be_secret(value):
            return f" has a secret in its option {name}; {CREDENTIALS_HINT}"
    return None


def _objection_to_source(ref: DatasetRef) -> str | None:
    if (ref.path, ref.table, ref.query).count(None) != 2:
        return ": give it exactly one of path, table and query"
    if ref.conn_id is not None or ref.format == JDBC:
        return _objection_to_database(ref)
    if ref.path is not None and ref.format not in FORMATS:
        return f" has format={ref.format!r}: write one of {', '.join(FORMATS)}"
    return None


def _objection_to_versions(ref: DatasetRef) -> str | None:
    travels = [key for key in ("version", "timestamp") if getattr(ref, key) is not None]
    if travels and not _may_have_versions(ref):
        return f" has a {travels[0]}: only Delta tables have versions"
    if len(travels) > 1:
        return ": give it either a version or a timestamp"
    return None


def _may_have_versions(ref: DatasetRef) -> bool:
    if ref.format == JDBC:
        return False
    return ref.table is not None or (ref.path is not None and ref.format == "delta")


def _objection_to_schema(ref: DatasetRef) -> str | None:
    if ref.schema is not None and (ref.path is None or ref.format in ("delta", "iceberg")):
        return " has a schema: only files can have one"
    return None


def _objection_to_dates(ref: DatasetRef) -> str | None:
    for key in ("date_format", "time_zone"):
        if getattr(ref, key) is not None and ref.date_column is None:
            return f" has a {key} but no date_column: give it both, or neither"
    if ref.date_format is not None and ref.time_zone is not None:
        return ": date_format is for strings, time_zone for timestamps; give it only one of them"
    return None


def _objection_to_database(ref: DatasetRef) -> str | None:
    if ref.conn_id is None:
        return (
            ' has format="jdbc" and no conn_id: give it the id of a connection, which holds the '
            "credentials"
        )
    if ref.format != JDBC:
        return f' has a conn_id and format={ref.format!r}: a table of a database has format="jdbc"'
    if not _CONNECTION_ID.fullmatch(ref.conn_id):
        return " has a conn_id that is not the id of a connection: credentials belong into one"
    if ref.table is None:
        return " has a conn_id and no table: write table=SCHEMA.TABLE, the name in the database"
    return None


def _objection_to_values(ref: DatasetRef) -> str | None:
    if ref.version is not None and ref.version < 0:
        return f" has version={ref.version}: Delta versions start at 0"
    if ref.timestamp is not None:
        try:
            timestamp_of(ref.timestamp)
        except ValueError:
            return f" has timestamp={ref.timestamp!r}: write 2024-03-02T06:00:00+00:00"
    if ref.date_format is not None:
        try:
            date_text(ref.date_format, date.min)
        except DatePatternError as error:
            return f" has date_format={ref.date_format!r}: {error}, as yyyyMMdd or dd.MM.yyyy do"
    if ref.time_zone is not None:
        try:
            ZoneInfo(ref.time_zone)
        except (ValueError, OSError, ZoneInfoNotFoundError):
            return f" has time_zone={ref.time_zone!r}: write a name such as Europe/Zurich"
    return None


def timestamp_of(text: str) -> datetime:
    """The timestamp that an ISO string denotes, in UTC without a zone.

    :raises ValueError: it is not one.
    """
    timestamp = iso_timestamp(text.strip())
    return timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=timezone.utc)
