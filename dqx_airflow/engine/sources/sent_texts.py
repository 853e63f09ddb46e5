"""Text files that this process reads for Sail, and sends to it: what it may hold.

The readers of Sail differ from those of Spark. Only files are sent that all readers take alike,
with strings that both cast alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dqx_airflow.engine.session.sail import INSTEAD
from dqx_airflow.engine.sources.listing import DataFile, ListedFiles, partitions_of
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.types import spelled_like
from dqx_airflow.values import DatasetRef

MOST_SENT_BYTES = 50_000_000
"""The maximum size of the text files of a dataset that are sent to an engine."""

_CAST_OTHERWISE = {
    "boolean": r"(?i)^\s*(tr|tru|ye|on|fa|fal|fals|off?)\s*$",
    "decimal": "[0-9.][eE]",
    "date": r"^\s*[0-9]+-[0-9]+-[0-9]+[T\s]|\t",
    # All zones but Z and +01:00.
    "timestamp": r"-.*:.*([^0-9:.Z+-]|[+-](.{0,4}|.{6,}|..[^:]..)$)|^\s*0001-01-01.*[+]",
}
"""By type, the strings that may be cast otherwise."""


def refused(ref: DatasetRef, other: str) -> DatasetError:
    """The error for a dataset of which Sail may read something differently."""
    message = f"dataset '{ref.name}': Sail may read {other} differently from Spark"
    return DatasetError(message, f"write the data as Parquet, or {INSTEAD}")


def require_sendable(ref: DatasetRef, location: str, files: Sequence[DataFile]) -> None:
    """Rejects files in folders of partitions, and more than are sent.

    :raises DatasetError: there are such files.
    """
    folders = partitions_of(ref, location, ListedFiles(files)).names
    if folders:
        raise refused(ref, f"the values of {folders[0]} in the names of folders")
    if sum(file.size for file in files) > MOST_SENT_BYTES:
        raise refused(ref, f"more than {MOST_SENT_BYTES // 1_000_000} MB of {ref.format.upper()}")


def require_alike_casts(ref: DatasetRef, table: pa.Table, types: Mapping[str, str]) -> None:
    """Rejects strings that Sail may cast otherwise, and types that Spark does not read from files.

    :param types: the types of the declared columns.
    :raises DatasetError: a column has such a string, or such a type.
    """
    for name, kind in types.items():
        if kind.startswith(("char", "varchar")):
            raise refused(ref, f"column '{name}' of type {kind}")
        others = _CAST_OTHERWISE.get(kind.split("(")[0])
        column = spelled_like(name, table.schema.names)
        if others is None or column is None:
            continue
        if pc.any(pc.match_substring_regex(table[column], others)).as_py():
            raise refused(ref, f"the form of some {kind} values of column '{column}'")
