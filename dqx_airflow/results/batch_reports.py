"""Reports that a batch has made for its gates, until each gate takes its own.

A job that judges many gates cannot write their reports into the tables of the store: a report
belongs to an attempt of a task, and the attempts of the gates have not begun. So it leaves each
report in a file, and the gate that takes it writes it as if its own job had made it.

The files of one run of a batch are in a folder of `_dqx_batches`, which depends on the DAG run, on
when that started, and on how often it was cleared. For a request with the digest D, that folder
contains:

    D.begun    the log whose first commit names the job that judges the request
    D.report   the reports, one for each date and suite of the gate
    D.taken    the log whose first commit names the attempt that has looked for them

The digest covers everything in a request except for its attempt, and its parent run in lineage,
which depends on the number of the attempt. So a gate whose templates rendered otherwise, or whose
suite has changed, finds nothing, and neither does a later attempt.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from pyarrow.fs import FileSelector, FileType

from dqx_airflow.datasets.delta_log import table_files
from dqx_airflow.errors import StoreError
from dqx_airflow.results.stored_requests import StoredPlace, Taker, require_root, this_process
from dqx_airflow.results.tables import ResultsRoot, store_errors
from dqx_airflow.values import Attempt, GateReport, GateRequest, from_json, to_json

FOLDER = "_dqx_batches"
_BEGUN, _REPORT = ".begun", ".report"
_NO_ATTEMPT = Attempt(0, "")
_KEPT = timedelta(days=7)
_DEPTH_OF_RUN = 3
"""The number of segments in the path of a run: the folder, the batch, and the run."""


def digest_of(request: GateRequest) -> str:
    """The digest of a request without its attempt and its parent run, 64 characters."""
    text = to_json(replace(request, attempt=_NO_ATTEMPT, parent=None))
    return hashlib.sha256(text.encode()).hexdigest()


def batch_name(dag_id: str, task_id: str) -> str:
    """The name of the folder of a batch: its task."""
    return _digest(dag_id, task_id)


def run_name(run_id: str, started: datetime, clear_number: int) -> str:
    """The name of the folder of one run of a batch.

    :param started: when the DAG run started: one that was deleted and created again has the same
        id.
    :param clear_number: how often tasks of the DAG run were cleared: what was judged before that is
        not taken after it.
    """
    return _digest(run_id, started.astimezone(timezone.utc).isoformat(), clear_number)


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Found:
    """The reports of a gate in a batch; None, with the reason, if it has none there."""

    reports: tuple[GateReport, ...] | None
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class BatchReports:
    """The reports of one run of a batch, in the results store.

    :param batch: the name of the batch, from `batch_name`.
    :param run: the name of its run, from `run_name`.
    """

    location: ResultsRoot
    batch: str
    run: str

    def begin(self, request: GateRequest) -> bool:
        """Records that this job judges a request, of all jobs the first.

        Returns False if it may not: another job judges or has judged it, or was lost while it did,
        or the gate has looked for its report already.

        :raises StoreError: the store cannot be used.
        """
        place = self._place(request)
        own = Taker(uuid.uuid4().hex, this_process(), _now())
        return place.claim(own, _BEGUN).id == own.id and place.taker() is None

    def leave(self, request: GateRequest, reports: Sequence[GateReport]) -> None:
        """Leaves the reports of a request for its gate.

        :raises StoreError: the store cannot be written.
        """
        text = json.dumps([to_json(report) for report in reports])
        self._place(request).write(_REPORT, text.encode())

    def judged(self, requests: Iterable[GateRequest]) -> list[GateRequest]:
        """The requests whose reports are here.

        :raises StoreError: the store cannot be read.
        """
        found = self._names()
        return [one for one in requests if f"{digest_of(one)}{_REPORT}" in found]

    def open_requests(self, requests: Iterable[GateRequest]) -> list[GateRequest]:
        """The requests that no job has begun to judge.

        :raises StoreError: the store cannot be read.
        """
        found = self._names()
        return [one for one in requests if f"{digest_of(one)}{_BEGUN}" not in found]

    def take(self, request: GateRequest) -> Found:
        """Takes the reports of a request for its attempt, of all attempts the first.

        They become reports of this attempt. An attempt that finds none has looked, too: it judges
        for itself, and what a job leaves here later is taken by no one.

        :raises StoreError: the store cannot be used.
        """
        place = self._place(request)
        own = Taker(request.attempt.id, f"attempt {request.attempt.number}", _now())
        first = place.claim(own)
        if first.id != own.id:
            return Found(None, f"{first} has looked for its report before")
        content = place.read(_REPORT)
        if content is None:
            began = place.taker(_BEGUN) is not None
            return Found(
                None, "it ended while it checked this gate" if began else "not checked there"
            )
        try:
            reports = [from_json(GateReport, text) for text in json.loads(content)]
        except ValueError as error:
            return Found(None, f"its report cannot be read: {error}")
        if [report.run_key for report in reports] != list(request.run_keys):
            return Found(None, "its report is about another gate")
        return Found(tuple(replace(report, attempt=request.attempt) for report in reports))

    def discard(self, request: GateRequest) -> None:
        """Deletes reports that were taken and are in the tables of the store."""
        with suppress(StoreError):  # they are taken, and deleted with the others of this run
            self._place(request).delete(_REPORT)

    def forget(self) -> None:
        """Deletes everything about this run.

        :raises StoreError: that is not possible.
        """
        if self._names():
            StoredPlace(self.location, f"{FOLDER}/{self.batch}/{self.run}").delete_folder()

    def forget_old(self) -> None:
        """Deletes the runs of this batch that ended more than a week ago, if the store allows."""
        with suppress(StoreError):
            delete_runs(self.location, _KEPT, of_batch=self.batch, but=self.run)

    def _names(self) -> set[str]:
        require_root(self.location)
        folder = f"{FOLDER}/{self.batch}/{self.run}"
        with store_errors(self.location, "read"):
            files = table_files(self.location.root, self.location.options)
            found = files.get_file_info(_below(folder, recursive=False))
            return {info.base_name for info in found}

    def _place(self, request: GateRequest) -> StoredPlace:
        require_root(self.location)
        path = f"{FOLDER}/{self.batch}/{self.run}/{digest_of(request)}"
        return StoredPlace(self.location, path)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _below(folder: str, *, recursive: bool = True) -> FileSelector:
    return FileSelector(folder, allow_not_found=True, recursive=recursive)


def delete_runs(
    location: ResultsRoot,
    older_than: timedelta,
    *,
    of_batch: str | None = None,
    but: str | None = None,
    dry_run: bool = False,
) -> int:
    """Deletes the files of the runs of batches whose newest file is older; returns their number.

    :param of_batch: the name of a batch; by default the runs of all batches.
    :param but: the name of a run to keep.
    :param dry_run: only counts the files.
    :raises StoreError: the store cannot be read, or something cannot be deleted.
    """
    folder = FOLDER if of_batch is None else f"{FOLDER}/{of_batch}"
    times: dict[str, list[datetime]] = {}
    with store_errors(location, "read"):
        files = table_files(location.root, location.options)
        for info in files.get_file_info(_below(folder)):
            if info.type is FileType.File and info.mtime is not None:
                run = "/".join(info.path.split("/")[:_DEPTH_OF_RUN])
                times.setdefault(run, []).append(info.mtime)
    before = datetime.now(timezone.utc) - older_than
    old = [run for run, changed in times.items() if max(changed) < before]
    old = [run for run in old if run.rpartition("/")[2] != but]
    for run in old:
        if not dry_run:
            StoredPlace(location, run).delete_folder()
    return sum(len(times[run]) for run in old)
