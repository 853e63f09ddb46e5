"""Classifies errors of Spark by their effect on a run, and gives their text without the values of
rows.

A failure concerns the query or the data, whatever the class of its exception: the other aggregates
are still computed. If Spark itself was lost, or a job was cancelled, it concerns the cluster, and
the gate ends without a report.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from pyspark.errors import PySparkException

from dqx_airflow.engine.session.sail import in_words
from dqx_airflow.engine.session.spark_versions import condition_of, with_newer
from dqx_airflow.engine.sources.csv_headers import header_fault
from dqx_airflow.engine.sources.text_faults import RAISED, SOME_LINE
from dqx_airflow.errors import SparkError, first_line

__all__ = ["Py4JError", "Py4JJavaError"]

try:
    from py4j.protocol import Py4JError, Py4JJavaError
except ModuleNotFoundError:  # pyspark-client comes without py4j, and nothing raises these

    class Py4JError(Exception):  # type: ignore[no-redef]
        pass

    class Py4JJavaError(Py4JError):  # type: ignore[no-redef,misc]
        pass


_OF_A_TASK = "Job aborted due to stage failure"
_UNREADABLE = "FAILED_READ_FILE"
_MALFORMED = "MALFORMED_"
_OTHER_TYPE = "PARQUET_COLUMN_DATA_TYPE_MISMATCH"
_OF_THE_SESSION = ("INVALID_HANDLE.SESSION", "NO_ACTIVE_SESSION", "RESPONSE_ALREADY_RECEIVED")
"""Conditions of a Spark Connect server that was restarted, and of its client from then on."""
_OF_THE_CLUSTER = (
    "SPARK_JOB_CANCELLED",
    "INVALID_HANDLE",
    "CANNOT_INITIALIZE_EXECUTOR",
    *_OF_THE_SESSION,
)
_LOST = re.compile(
    r"SparkContext (was|has been|is) (shut ?down|stopped)|stopped SparkContext|ExecutorLostFailure|"
    r"ExecutorDeadException|Executor heartbeat timed out|No space left on device|"
    r"MetadataFetchFailedException|FetchFailed\(|Job \S+ cancelled|RST_STREAM|Stream removed"
)
"""Messages of a Spark that lost its machines, or whose own process is about to end."""
_REFUSED = ("UNAUTHENTICATED", "PERMISSION_DENIED")
_UNREACHABLE = ("UNAVAILABLE", *_REFUSED, "DEADLINE_EXCEEDED")
"""Responses of a Spark Connect server or its proxy when the session is gone."""
_DETAILS = re.compile(r'^\s*details = "(.+)"$', re.M)
_NOT_CONNECTED = re.compile(
    r"failed to connect to all addresses; last error: (?:[A-Z_]+: )?(?:ipv[46]:)?(.+)"
)
_SOME_RECORD = (
    f'{SOME_LINE}; set multiLine="true" if values have line breaks, or declare the columns with '
    'schema="...", with which such a line is a failing row'
)
_NOT_CONVERTED = re.compile(
    r"Parquet column cannot be converted in file (?P<path>.+?)\. "
    r"Column: \[(?P<column>.+?)\], Expected: (?P<expected>.+?), Found: (?P<actual>\w+)"
)
"""The message of Spark 3.5, where the condition has no parameters."""
_JAVA_CLASS = re.compile(r"^(\w+\.)+\w+: ")


@contextmanager
def spark_failures() -> Iterator[None]:
    """Raises errors of Spark as PySparkException, including those that PySpark does not know.

    An error that reports the loss of Spark is raised unchanged, or as a SparkError.
    """
    try:
        yield
    except Py4JJavaError as error:
        failure = _captured(error.java_exception)
        if _is_about_the_cluster(failure):
            raise
        raise failure from error
    except PySparkException as error:
        if (loss := loss_of_spark(error)) is not None:
            raise loss from error
        raise


def loss_of_spark(error: PySparkException) -> SparkError | None:
    """The error to raise if an error means that Spark was lost; None otherwise."""
    if not _is_about_the_cluster(error):
        return None
    if condition_of(error).startswith(_OF_THE_SESSION):
        why = "the session is no longer on the server, which may have been restarted"
    else:
        why = grpc_details(error) or first_line(error)
    return SparkError(
        f"Spark was lost: {why}",
        "check the log of Spark, start it again if it is down, and rerun the gate",
    )


def grpc_details(error: BaseException) -> str | None:
    """The relevant part of a gRPC error that spans many lines; None for any other error."""
    details = _DETAILS.search(str(error))
    if details is None:
        return None
    not_connected = _NOT_CONNECTED.fullmatch(details[1])
    return details[1] if not_connected is None else unquote(not_connected[1])


def is_refused(error: BaseException) -> bool:
    """True if a server, or its proxy, rejects the token."""
    return _grpc_status(error) in _REFUSED


def _grpc_status(error: BaseException) -> str | None:
    status = getattr(error, "getGrpcStatusCode", lambda: None)()
    return getattr(status, "name", None)


def _is_about_the_cluster(failure: PySparkException) -> bool:
    return (
        condition_of(failure).startswith(_OF_THE_CLUSTER)
        or _LOST.search(str(failure)) is not None
        or _grpc_status(failure) in _UNREACHABLE
    )


def explain(error: PySparkException) -> str:
    """The message of a Spark error, in one line and without the data of a malformed record."""
    return in_words(with_newer(_explained(error)))


def _explained(error: PySparkException) -> str:
    if (details := grpc_details(error)) is not None:
        return details
    line = first_line(error)
    if not condition_of(error) and ("[" not in line or line.startswith(_OF_A_TASK)):
        return _innermost(error)
    if (raised := _raised(error)) is not None:
        return raised
    lines = [first_line(cause) for cause in _chain(error)]
    if (converted := _NOT_CONVERTED.search("\n".join(lines))) is not None:
        return _of_another_type(**converted.groupdict())
    is_malformed = any("[MALFORMED_" in line for line in lines)
    if not condition_of(error).startswith(_UNREADABLE):
        return _SOME_RECORD if is_malformed else lines[0]
    about = error.getMessageParameters() or {}
    path = about.get("path", "a file")
    if is_malformed:
        return f"{path} cannot be read: {_SOME_RECORD}"
    if condition_of(error).endswith(_OTHER_TYPE):
        column = about.get("column", "a column").strip("[]")
        actual = about.get("actualType", "of another file")
        return _of_another_type(path, column, about.get("expectedType", "another type"), actual)
    if "FILE_NOT_EXIST" in lines[0]:
        return f"{path} cannot be read: it no longer exists"
    for cause in _chain(error):
        fault = header_fault(str(cause))
        if fault is not None:
            return f"{path} cannot be read: {fault}"
    return f"{path} cannot be read: {_JAVA_CLASS.sub('', lines[-1])}"


def _of_another_type(path: str, column: str, expected: str, actual: str) -> str:
    return (
        f"{path} cannot be read: column '{column}' is of the Parquet type {actual} there, and read "
        f"as {expected}, as in the first file or in schema; write the files with one type, or "
        "select the files of one type by a glob"
    )


def cause_of(error: PySparkException) -> str:
    """The class and message of the root cause of a failure, in one line, if Spark passes it on."""
    if getattr(error, "_origin", None) is not None:
        return _innermost(error)
    return first_line([*_chain(error)][-1])


def is_out_of_memory(error: PySparkException) -> bool:
    """True if Java had too little memory, in the driver or in a task."""
    return "OutOfMemoryError" in f"{error} {cause_of(error)}"


def is_unreadable(error: PySparkException) -> bool:
    """True if a file could not be read: every other aggregate over it fails as well."""
    condition = condition_of(error)
    return _raised(error) is not None or condition.startswith(
        (_UNREADABLE, _MALFORMED, "PATH_NOT_FOUND")
    )


def _raised(error: PySparkException) -> str | None:
    """The message of an error about a file that our own SQL raised; None otherwise."""
    if condition_of(error) != "USER_RAISED_EXCEPTION":
        return None
    message = (error.getMessageParameters() or {}).get("errorMessage", "")
    return unquote(message.removeprefix(RAISED)) if message.startswith(RAISED) else None


def _captured(exception: Any) -> PySparkException:
    """A Java exception; for nested ones the outermost that has an error condition."""
    from pyspark.errors.exceptions.captured import CapturedException

    outermost = CapturedException(origin=exception)
    while exception is not None:
        captured = CapturedException(origin=exception)
        if condition_of(captured):
            return captured
        exception = exception.getCause()
    return outermost


def _innermost(error: PySparkException) -> str:
    """The message of the root Java exception of an error without an error condition. It may quote
    data, and follows a name in brackets like the messages of Spark."""
    exception: Any = getattr(error, "_origin", None)
    if exception is None:
        return f"[JAVA_EXCEPTION] {first_line(error)}"
    while exception.getCause() is not None:
        exception = exception.getCause()
    message = (exception.getMessage() or "").strip().splitlines()
    described = [f"{exception.getClass().getName()} [JAVA_EXCEPTION]", *message[:1]]
    return " ".join(described)


def _chain(error: PySparkException) -> Iterator[PySparkException]:
    """The failure and its causes, as far as PySpark exposes them."""
    cause: Any = error
    while cause is not None:
        yield cause
        cause = getattr(cause, "_cause", None)
