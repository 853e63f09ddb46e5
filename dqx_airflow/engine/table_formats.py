"""Tables that are more than their files: these are also those of older versions."""

from __future__ import annotations

from dqx_airflow.engine.files import files_at, is_folder
from dqx_airflow.engine.paths import partition_root

_LOGS = {"Delta": "_delta_log", "Hudi": ".hoodie"}
"""The folder in a table that tells which of its files count."""


def table_format(path: str) -> str | None:
    """Whose table it is that files at a path belong to; None where they are files and no more."""
    root = (partition_root(path) or path).rstrip("/")
    for name, log in _LOGS.items():
        if is_folder(f"{root}/{log}"):
            return name
    parent, _, folder = root.rpartition("/")
    if folder != "data":
        return None
    beside = files_at(f"{parent}/metadata") or ()
    return "Iceberg" if any(file.path.endswith(".metadata.json") for file in beside) else None
