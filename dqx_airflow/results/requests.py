"""Requests as files beside the results: the arguments of a service have no room for them.

The name of a file is the checksum of its content (SHA-256), so that an address in the arguments of
a job stands for exactly one request. The job deletes the file when it has read it, and the gate
when it has ended: a second job of the same request, or one that a service starts too late, finds
none and does nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileSystem

from dqx_airflow.datasets.delta_log import table_files
from dqx_airflow.errors import RequestError, StoreError
from dqx_airflow.results.tables import ResultsRoot, locate, store_errors
from dqx_airflow.values import GateRequest
from dqx_airflow.values.json_form import FLAG, to_arguments

_FOLDER = "_dqx_requests"


def store_request(location: ResultsRoot, request: GateRequest) -> str:
    """Writes a request; returns its address, which `take_request` reads.

    :raises StoreError: the store cannot be written.
    """
    content = "".join(to_arguments(request)[1:]).encode()
    path = f"{_FOLDER}/{hashlib.sha256(content).hexdigest()}"
    with store_errors(location, "write"):
        if location.is_local:
            Path(location.root).mkdir(parents=True, exist_ok=True)
        output = DeltaStorageHandler(location.root, location.options).open_output_stream(path, {})
        # deltalake's stream only takes bytes, and pyarrow passes its own buffers through.
        with pa.BufferedOutputStream(output, len(content) + 1) as stream:
            stream.write(content)
    return location.table(path)


def take_request(address: str, options: Mapping[str, str] | None) -> list[str]:
    """The arguments of the job that a stored request is for; the file is gone afterwards.

    :raises StoreError: it cannot be read, or is gone.
    :raises RequestError: it is another one than the address says.
    """
    location, path = _place(address, options)
    try:
        with store_errors(location, "read"):
            content = _files(location).open_input_stream(path).read()
    except StoreError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        raise StoreError(
            f"the request {address} is gone: its gate has ended, or another job has read it",
            "a new try of the gate submits a job of its own",
        ) from None
    if hashlib.sha256(content).hexdigest() != path.rpartition("/")[2]:
        raise RequestError(
            f"the request {address} was changed after it was submitted",
            "a new try of the gate writes its request again",
        )
    discard_request(address, options)
    return [FLAG, content.decode()]


def discard_request(address: str, options: Mapping[str, str] | None) -> None:
    """Deletes a stored request, if it still exists and may be deleted."""
    with suppress(Exception):
        location, path = _place(address, options)
        _files(location).delete_file(path)


def checksum_of(address: str) -> str:
    """The checksum in the address of a stored request, 64 characters."""
    return address.rpartition("/")[2]


def _place(address: str, options: Mapping[str, str] | None) -> tuple[ResultsRoot, str]:
    root, folder, name = address.rsplit("/", 2)
    return locate(root, options), f"{folder}/{name}"


def _files(location: ResultsRoot) -> FileSystem:
    return table_files(location.root, location.options)
