"""Opens the registry of contracts at a location: in a folder, or in a Delta table."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dqx_airflow.contracts.registry.folder import FolderHome
from dqx_airflow.contracts.registry.versions import Registry
from dqx_airflow.errors import RegistryError

_TABLE_MARK = "delta:"


def registry_at(place: str) -> Registry:
    """The registry at a location, which need not exist yet.

    A URL such as `s3://lake/contracts` and `delta:PATH` mean a Delta table, and so does the path of
    one; every other path means a folder.

    :raises RegistryError: the location is invalid.
    """
    path = place.removeprefix(_TABLE_MARK)
    if not path.strip():
        raise RegistryError("no registry given", "give a folder, delta:PATH, or a URL")
    if path.startswith("file://"):
        path = unquote(urlsplit(path).path)
    is_url = "://" in path
    path = path if is_url else os.path.abspath(os.path.expanduser(path))
    if is_url or place.startswith(_TABLE_MARK) or Path(path, "_delta_log").is_dir():
        from dqx_airflow.contracts.registry.table import TableHome

        return Registry(TableHome(path))
    return Registry(FolderHome(Path(path)))
