"""What Spark complains about: caught in one form, told in one line.

A failure that has a condition, Spark's name for what went wrong, is about the query or the data.
One without is about the cluster: it is left as it is, and ends the gate without a report. So does
a job that somebody cancelled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import PySparkException

from dqx_airflow.engine.py4j_errors import Py4JJavaError

_UNREADABLE, _MALFORMED = "FAILED_READ_FILE", "MALFORMED_"
_NOT_ABOUT_DATA = (None, "SPARK_JOB_CANCELLED")
_SOME_RECORD = (
    "a record does not fit the columns; option mode=PERMISSIVE makes NULLs of what does not fit"
)
_JAVA_CLASS = re.compile(r"^(\w+\.)+\w+: ")


@contextmanager
def spark_failures(*, all_of_them: bool = False) -> Iterator[None]:
    """Raises what Spark complains about as a PySparkException, also where PySpark does not know it.

    :param all_of_them: those too that are about neither the query nor the data.
    """
    try:
        yield
    except Py4JJavaError as error:
        failure = _captured(error.java_exception)
        if failure.getCondition() in _NOT_ABOUT_DATA and not all_of_them:
            raise
        raise failure from error


def explain(error: PySparkException) -> str:
    """What Spark complains about, in one line and without the data of a malformed record."""
    lines = [first_line(item) for item in _chain(error)]
    is_malformed = any("[MALFORMED_" in line for line in lines)
    if not (error.getCondition() or "").startswith(_UNREADABLE):
        return _SOME_RECORD if is_malformed else lines[0]
    path = (error.getMessageParameters() or {}).get("path", "a file")
    if is_malformed:
        return f"{path} cannot be read: {_SOME_RECORD}"
    if "FILE_NOT_EXIST" in lines[0]:
        return f"{path} cannot be read: it is not there any more"
    return f"{path} cannot be read: {_JAVA_CLASS.sub('', lines[-1])}"


def is_unreadable(error: PySparkException) -> bool:
    """True where a file could not be read: whatever else is asked of it will fail as well."""
    condition = error.getCondition() or ""
    return condition.startswith((_UNREADABLE, _MALFORMED, "PATH_NOT_FOUND"))


def first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _captured(exception: Any) -> PySparkException:
    """An exception of Java; of one that wraps others, the outermost that has a condition."""
    from pyspark.errors.exceptions.captured import CapturedException

    outermost = CapturedException(origin=exception)
    while exception is not None:
        found = CapturedException(origin=exception)
        if found.getCondition() is not None:
            return found
        exception = exception.getCause()
    return outermost


def _chain(error: PySparkException) -> Iterator[PySparkException]:
    """The failure and its causes, as far as PySpark tells them."""
    found: Any = error
    while found is not None:
        yield found
        found = getattr(found, "_cause", None)
