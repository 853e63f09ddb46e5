"""Requests beside the results: a gate stores one for a service, and exactly one job takes it.

The arguments of a service have no room for a request. Its file has the checksum of its content as a
name (SHA-256), so that an address in the arguments of a job stands for exactly one request. A
service may start a job twice, or too late. So a job takes the request before it reads it, by the
first commit of a Delta log beside the file: commits are atomic wherever a results store can be
written, and the first one names its writer for good. A job that comes later finds that name and
does nothing.

For the request of the checksum C, the folder `_dqx_requests` contains:

    C          the request, until a job has taken it
    C.taken    the log whose first commit names the job that has taken it
    C.sign     the last sign of life of that job, and in the end how it ended

The gate deletes all of them when it has ended. A job whose entry is gone ends, too.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
from arro3.core import DataType, Field, Schema
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.fs import DeltaStorageHandler

from dqx_airflow.datasets.delta_log import table_files
from dqx_airflow.errors import DqxError, RequestError, StoreError
from dqx_airflow.results.tables import ResultsRoot, locate, store_errors
from dqx_airflow.values import JobRequest
from dqx_airflow.values.json_form import EXIT_INFRASTRUCTURE, FLAG, to_arguments

_FOLDER = "_dqx_requests"
TAKEN, _SIGN = ".taken", ".sign"
_FIRST_COMMIT = "_delta_log/00000000000000000000.json"
_CLAIM = Schema([Field("taken", DataType.bool())])
"""The schema of the log that names a job: a Delta log needs one."""
SIGN_EVERY_S = 10.0
"""The seconds between two signs of life of a job."""


class RequestTakenError(DqxError):
    """Another job has taken the request, and judges it or has judged it."""


@dataclass(frozen=True, slots=True)
class Taker:
    """The job that has taken a request: its id, its readable name, and the time."""

    id: str
    name: str
    at: str

    def __str__(self) -> str:
        return f"{self.name}, at {self.at}"


@dataclass(frozen=True, slots=True)
class RequestState:
    """The state of a stored request: the job that has taken it, and the state of this job.

    `sign` is the last sign of life of the job, which changes every `every_s` seconds. `code` and
    `reason` are its exit code and message; None while it runs, and if it was killed.
    """

    taker: Taker | None
    sign: str = ""
    every_s: float = SIGN_EVERY_S
    code: int | None = None
    reason: str | None = None


@dataclass(slots=True)
class TakenRequest:
    """A request that this process has taken, with the arguments of its job.

    `warning` reports a step that failed without harm to the job; None if there was none.
    """

    arguments: list[str]
    taker: Taker
    warning: str | None = None
    _place: StoredPlace = field(repr=False, kw_only=True)
    _signs: int = 0

    def sign(self) -> None:
        """Writes a sign of life, for a gate that waits for this job without any other contact.

        :raises StoreError: the store cannot be written.
        """
        self._signs += 1
        self._write({"sign": self._signs, "every_s": SIGN_EVERY_S})

    def end(self, code: int, reason: str) -> None:
        """Records the exit code and message of the job, if the store can be written."""
        with suppress(StoreError):
            self._write({"sign": self._signs + 1, "code": code, "reason": reason})

    def is_dropped(self) -> bool:
        """True if the gate has ended, and waits for this job no longer.

        :raises StoreError: the store cannot be read.
        """
        first = self._place.taker()
        return first is None or first.id != self.taker.id

    def _write(self, sign: Mapping[str, Any]) -> None:
        self._place.write(_SIGN, json.dumps({"taker": self.taker.id, **sign}).encode())


@dataclass(frozen=True, slots=True)
class StoredPlace:
    """The location of something that one process takes, such as a request, and of the files beside
    it."""

    location: ResultsRoot
    path: str

    @property
    def address(self) -> str:
        return self.location.table(self.path)

    @property
    def _handler(self) -> DeltaStorageHandler:
        return DeltaStorageHandler(self.location.root, self.location.options)

    def write(self, suffix: str, content: bytes) -> None:
        """:raises StoreError: it cannot be written."""
        with store_errors(self.location, "write"):
            output = self._handler.open_output_stream(f"{self.path}{suffix}", {})
            # deltalake's stream only takes bytes, and pyarrow passes its own buffers through.
            with pa.BufferedOutputStream(output, len(content) + 1) as stream:
                stream.write(content)

    def read(self, suffix: str = "") -> bytes | None:
        """The content of a file; None if it does not exist.

        :raises StoreError: it cannot be read.
        """
        with store_errors(self.location, "read"):
            files = table_files(self.location.root, self.location.options)
            try:
                content: bytes = files.open_input_stream(f"{self.path}{suffix}").read()
            except FileNotFoundError:
                return None
        return content

    def delete(self, suffix: str = "") -> None:
        """Deletes a file, if it exists.

        :raises StoreError: it cannot be deleted.
        """
        with store_errors(self.location, "delete from"), suppress(FileNotFoundError):
            self._handler.delete_file(f"{self.path}{suffix}")

    def taker(self, suffix: str = TAKEN) -> Taker | None:
        """The job that has taken the request; None if none has.

        :param suffix: of the log that names the job.
        :raises StoreError: that cannot be read.
        """
        text = self.read(f"{suffix}/{_FIRST_COMMIT}")
        if text is None:
            return None
        with store_errors(self.location, "read"):
            actions = [json.loads(line) for line in text.splitlines() if line.strip()]
            (described,) = [one["metaData"]["description"] for one in actions if "metaData" in one]
            return Taker(**json.loads(described))

    def claim(self, taker: Taker, suffix: str = TAKEN) -> Taker:
        """Records that a job takes the request; returns the job that was recorded first.

        Only the first commit counts: deltalake lets another process, which creates the same table
        at the same time, add a second one.

        :param suffix: of the log that names the job.
        :raises StoreError: the store cannot be read or written.
        """
        described = json.dumps({"id": taker.id, "name": taker.name, "at": taker.at})
        refusal: DeltaError | None = None
        with store_errors(self.location, "write"):
            try:
                DeltaTable.create(
                    f"{self.address}{suffix}",
                    schema=_CLAIM,
                    mode="error",
                    description=described,
                    storage_options=self.location.options,
                )
            except DeltaError as error:  # another job was first, unless its name is nowhere
                refusal = error
            first = self.taker(suffix)
            if first is None:
                raise refusal or FileNotFoundError(f"{self.address}{suffix}/{_FIRST_COMMIT}")
        return first

    def delete_claim(self) -> None:
        """:raises StoreError: it cannot be deleted."""
        self.delete_folder(TAKEN)

    def delete_folder(self, suffix: str = "") -> None:
        """Deletes the folder at this path, if it exists, with everything in it.

        :raises StoreError: it cannot be deleted.
        """
        folder = f"{self.path}{suffix}"
        with store_errors(self.location, "delete from"), suppress(FileNotFoundError):
            if self.location.is_local:
                shutil.rmtree(Path(self.location.root) / folder)
            else:
                self._handler.delete_dir(folder)


def require_root(location: ResultsRoot) -> None:
    """Creates the folder of a local store.

    :raises StoreError: that is not possible.
    """
    if location.is_local:
        with store_errors(location, "write"):
            Path(location.root).mkdir(parents=True, exist_ok=True)


def store_request(location: ResultsRoot, request: JobRequest) -> str:
    """Writes a request; returns its address, which `take_request` reads.

    :raises StoreError: the store cannot be written.
    """
    content = "".join(to_arguments(request)[1:]).encode()
    place = StoredPlace(location, f"{_FOLDER}/{hashlib.sha256(content).hexdigest()}")
    require_root(location)
    place.write("", content)
    return place.address


def take_request(
    address: str, options: Mapping[str, str] | None, name: str | None = None
) -> TakenRequest:
    """Takes a stored request for this process: of all jobs that try, one gets it.

    :param name: the readable name of this job.
    :raises RequestTakenError: another job has taken it; the message names the job.
    :raises StoreError: the store cannot be used, or the request is gone.
    :raises RequestError: the content of the request does not match its address.
    """
    place = _place(address, options)
    is_there = place.read() is not None
    if (first := place.taker()) is not None:
        raise _taken(address, first)
    if not is_there:
        raise _gone(address)
    at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    taker = Taker(uuid.uuid4().hex, name or this_process(), at)
    first = place.claim(taker)
    if first.id != taker.id:
        raise _taken(address, first)
    content = place.read()
    if content is None:
        place.delete_claim()
        raise _gone(address)
    taken = TakenRequest([FLAG, content.decode(errors="replace")], taker, _place=place)
    if hashlib.sha256(content).hexdigest() != checksum_of(address):
        changed = RequestError(
            f"the request {address} was changed after it was submitted",
            "a new try of the gate writes its request again",
        )
        taken.end(EXIT_INFRASTRUCTURE, changed.problem)
        raise changed
    taken.sign()
    try:
        place.delete()
    except StoreError as error:
        right = "give this job the right to delete there: the gate and the job leave files behind"
        taken.warning = f"the request {address} stays: {error.problem}; {right}"
    return taken


def discard_request(address: str, options: Mapping[str, str] | None) -> None:
    """Deletes a stored request and the files that jobs have left beside it. Its running job ends.

    If the request cannot be deleted, the record of the job that took it stays, so that no other
    job can take the request.

    :raises StoreError: something cannot be deleted.
    """
    place = _place(address, options)
    place.delete()
    place.delete(_SIGN)
    place.delete_claim()


def request_state(address: str, options: Mapping[str, str] | None) -> RequestState:
    """Reads the state of a stored request and of the job that has taken it.

    :raises StoreError: the store cannot be read.
    """
    place = _place(address, options)
    taker = place.taker()
    if taker is None:
        return RequestState(None)
    text = place.read(_SIGN)
    with store_errors(place.location, "read"):
        sign = {} if text is None else json.loads(text)
    if sign.get("taker") != taker.id:
        return RequestState(taker)
    every_s = sign.get("every_s", SIGN_EVERY_S)
    return RequestState(taker, str(sign["sign"]), every_s, sign.get("code"), sign.get("reason"))


def checksum_of(address: str) -> str:
    """The checksum in the address of a stored request, 64 characters."""
    return address.rpartition("/")[2]


def this_process() -> str:
    """The name of this process for people, on any machine."""
    return f"process {os.getpid()} on {socket.gethostname()}"


def _taken(address: str, first: Taker) -> RequestTakenError:
    return RequestTakenError(
        f"the request {address} was taken by another job: {first}",
        "this one does nothing, and the gate waits for the report of that one",
    )


def _gone(address: str) -> StoreError:
    return StoreError(
        f"the request {address} is gone: its gate has ended",
        "a new try of the gate submits a job of its own",
    )


def _place(address: str, options: Mapping[str, str] | None) -> StoredPlace:
    root, folder, name = address.rsplit("/", 2)
    return StoredPlace(locate(root, options), f"{folder}/{name}")
