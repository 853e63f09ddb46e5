"""What differs between the SDKs of Airflow 3.1, 3.2 and 3.3, and what is no public interface of any
of them: no other module of the operators imports these names.

What all of them have comes from `airflow.sdk`, or from `airflow.providers.common.compat.sdk` if it
has moved. `tests/operators/test_airflow_versions.py` imports each name on each Airflow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

IS_CONSTRUCTED = "_BaseOperator__instantiated"
"""The attribute that Airflow gives an operator when its constructor has ended."""
GIVEN_ARGUMENTS = "_BaseOperator__init_kwargs"
"""The attribute with the arguments of the constructors that have ended, by name."""


def create_question(
    ti_id: Any, options: Sequence[str], subject: str, body: str, params: Any, defaults: Any
) -> str:
    """Stores the question of a task, which Airflow shows below *Required actions*; returns the text
    of the question that it shows: of an earlier try, if that one asked."""
    from airflow.sdk.execution_time.comms import CreateHITLDetailPayload
    from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS

    question = CreateHITLDetailPayload(
        ti_id=ti_id,
        options=[*options],
        subject=subject,
        body=body,
        defaults=defaults,
        multiple=False,
        params=params,
        assigned_users=[],
    )
    shown = SUPERVISOR_COMMS.send(msg=question)
    return str(getattr(shown, "body", body))


def text_param(title: str, description: str) -> Mapping[str, Any]:
    """The field of a question for a text, as Airflow stores it."""
    from airflow.sdk.definitions.param import Param, ParamsDict

    param = Param("", type="string", title=title, description=description)
    fields: Mapping[str, Any] = ParamsDict({"text": param}).get_param("text").serialize()
    return fields


def parked_until_answered(
    ti_id: Any,
    options: Sequence[str],
    params: Any,
    defaults: Any,
    timeout: timedelta | None,
    *,
    method_name: str,
    kwargs: dict[str, Any],
) -> BaseException:
    """The exception with which a task waits for an answer: from Airflow 3.3 on without a worker
    slot and a trigger; before, a trigger asks the database every five seconds.

    :param method_name: the method of the operator that goes on with the answer.
    """
    try:
        from airflow.sdk.exceptions import TaskAwaitingInput
    except ImportError:  # Airflow 3.1 and 3.2
        from airflow.providers.common.compat.sdk import TaskDeferred
        from airflow.providers.standard.triggers.hitl import HITLTrigger

        trigger = HITLTrigger(
            ti_id=ti_id,
            options=[*options],
            params=params,
            defaults=defaults,
            timeout_datetime=datetime.now(timezone.utc) + timeout if timeout else None,
        )
        deferred: BaseException = TaskDeferred(
            trigger=trigger, method_name=method_name, kwargs=kwargs
        )
        return deferred
    awaiting: BaseException = TaskAwaitingInput(
        method_name=method_name, kwargs=kwargs, timeout=timeout
    )
    return awaiting


def can_certify_partitions() -> bool:
    """Whether an asset event can name partitions: from Airflow 3.3 on."""
    from airflow.sdk.execution_time.context import OutletEventAccessor

    return hasattr(OutletEventAccessor, "add_partitions")


def secrets_backends() -> Sequence[Any]:
    """The sources of connections that a task asks before the API server; none where this Airflow
    has them elsewhere."""
    try:
        from airflow.sdk.execution_time.supervisor import ensure_secrets_backend_loaded
    except ImportError:
        return ()
    backends: Sequence[Any] = ensure_secrets_backend_loaded()
    return backends


def api_server_failed(conn_id: str) -> bool:
    """Whether the API server failed to look for a connection; False if it does not know it, and
    outside of a task."""
    try:
        from airflow.sdk.execution_time.comms import ErrorResponse, GetConnection
        from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS
    except ImportError:  # outside of a task there is no one to ask
        return False
    try:
        answer = SUPERVISOR_COMMS.send(GetConnection(conn_id=conn_id))
    except Exception:
        return True
    return isinstance(answer, ErrorResponse) and answer.error.name != "CONNECTION_NOT_FOUND"


def last_failure(ti: Any) -> Any:
    """The last task instance that failed before this one, from Airflow 3.2 on; None without one."""
    previous = getattr(ti, "get_previous_ti", None)
    if previous is None:
        return None
    failed = previous(state="failed", map_index=ti.map_index)
    return failed if failed is not None and failed.end_date is not None else None


def template_macros() -> Any:
    """The module of `macros` in templates."""
    from airflow.sdk.execution_time import macros

    return macros
