"""The exceptions with which the task of a gate fails, for the rules of a `retry_policy`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

# They moved between Airflow 3.1 and 3.3; the Spark provider brings this for all of them.
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException


class GateBlockedError(AirflowFailException):
    """The data breaks a rule at or above `fail_on`. Not retried: the data would be the same."""


class GateBrokenError(AirflowFailException):
    """The gate could not judge the data, or not promote it.

    An assertion at or above `fail_on` could not be evaluated, nothing was checked, or the target of
    a promotion does not take the rows. Not retried.
    """


class GateMisconfiguredError(AirflowFailException):
    """The gate cannot run as it is written: an error in the suite, an unknown connection."""


class GateInfrastructureError(AirflowException):
    """There is no report: Spark, the network or the results store failed. Retried as set."""


class GateTimeoutError(GateInfrastructureError):
    """There is no report: the gate took longer than its `validation_timeout`. Retried as set."""


@contextmanager
def as_misconfigured() -> Iterator[None]:
    """Turns a mistake in a request into one of the gate.

    :raises GateMisconfiguredError: there is one.
    """
    from dqx_airflow.errors import RequestError

    try:
        yield
    except RequestError as error:
        raise GateMisconfiguredError(error.in_one_line) from None


def mistakes_of(check: Callable[[], object]) -> list[str]:
    """The mistake that a check raises, as a list; empty if it raises none."""
    try:
        with as_misconfigured():
            check()
    except GateMisconfiguredError as error:
        return [str(error)]
    return []
