"""The exit codes of `dql`."""

from __future__ import annotations

from dqx_airflow.errors import DqxError, RequestError, SourceError

EXIT_FAILED = 1
"""The data is blocked, or a check of the command failed. Nothing else ends with it."""
EXIT_WRONG = 2
"""A source has errors, or the command line is wrong."""
EXIT_BROKEN = 3
"""Assertions could not be evaluated."""
EXIT_INFRASTRUCTURE = 4
"""Spark, a service or a store failed."""
EXIT_INTERRUPTED = 130
EXIT_NO_READER = 141


def exit_code_of(error: DqxError) -> int:
    return EXIT_WRONG if isinstance(error, RequestError | SourceError) else EXIT_INFRASTRUCTURE
