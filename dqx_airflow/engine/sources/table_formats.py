"""Tables that are more than their files, which may also be those of older versions."""

from __future__ import annotations

from dqx_airflow.engine.sources.listing import GLOB, files_at, for_spark, is_folder, partition_root

_LOGS = {"Delta": "_delta_log", "Hudi": ".hoodie"}
"""The folder in a table with the list of its valid files."""


def table_format(path: str) -> str | None:
    """The format of the table that files at a path belong to; None if they are plain files."""
    root = _named_folder(partition_root(path) or path)
    parent, _, folder = root.rpartition("/")
    # The path may also be a file of the table, or a folder in it.
    for place in filter(None, (root, parent)):
        for name, log in _LOGS.items():
            if is_folder(f"{place}/{log}"):
                return name
    if folder != "data":
        return None
    beside = files_at(f"{parent}/metadata") or ()
    return "Iceberg" if any(file.path.endswith(".metadata.json") for file in beside) else None


def _named_folder(path: str) -> str:
    """The path up to its first glob."""
    wildcard = GLOB.search(path) if for_spark(path) == path else None
    return (path[: wildcard.start()].rpartition("/")[0] if wildcard else path).rstrip("/")
