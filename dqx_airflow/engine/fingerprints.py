"""Fingerprints: by them a stored state is known to be that of the very files that are there now.

No fingerprint, no reuse: of catalog tables, and of places whose files cannot be listed, nothing is
taken from the store.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import astuple
from datetime import date
from typing import Any
from urllib.parse import unquote

from pyspark.sql import SparkSession

import dqx_airflow
from dqx_airflow.engine.date_column import DateColumn
from dqx_airflow.engine.files import files_at
from dqx_airflow.engine.sources import OpenDataset

_SETTINGS = (
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.legacy.timeParserPolicy",
)
"""The settings of a session that change what an aggregate yields."""


_CALLS = re.compile(r"\(|current_|localtimestamp", re.IGNORECASE)
"""Whatever may be a call in a filter: `now()`, `rand()`, and `current_date` without brackets."""


def scope_of(dataset: OpenDataset, spark: SparkSession) -> str:
    """What the states of a dataset have in common, whatever its files: where it is, how it is
    read, and by which engine."""
    ref = dataset.ref
    settings = [spark.conf.get(name, None) for name in _SETTINGS]
    read = [dataset.location, ref.format, sorted(ref.options), ref.filter, ref.schema]
    read += [ref.date_column, ref.date_format, ref.time_zone]
    return _digest([read, settings, dqx_airflow.__version__, spark.version])


def fingerprint_of(dataset: OpenDataset, on: date | None) -> str | None:
    """The fingerprint of the rows of a date: of the schema, and of all files that may hold them.

    None where the files cannot be told, and where a filter may let other rows through tomorrow.
    """
    if dataset.ref.filter is not None and _CALLS.search(dataset.ref.filter):
        return None
    files = _files_of(dataset, on)
    if files is None:
        return None
    fields = [(field.name, field.type) for field in dataset.fields]
    return _digest([fields, files])


def _files_of(dataset: OpenDataset, on: date | None) -> Any:
    if dataset.log is not None:
        # Rows deleted in place leave the files as they are, and the log does not list them.
        version = dataset.log.version if dataset.log.features else None
        return [version, dataset.log.files_of(on)]
    files = None if dataset.files is None else files_at(dataset.location)
    if files is None:
        return None
    return [astuple(file) for file in files if _may_hold(file.path, dataset.dates, on)]


def _may_hold(path: str, column: DateColumn | None, on: date | None) -> bool:
    """False for a file in the folder of another date."""
    if column is None or on is None:
        return True
    folder = re.search(rf"/{re.escape(column.name)}=([^/]*)/", path, re.IGNORECASE)
    return folder is None or not column.is_elsewhere(on, unquote(folder[1]))


def _digest(content: Any) -> str:
    text = json.dumps(content, default=str, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
