"""The user of a page: what Airflow permits, and the audit log."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Annotated, Any, TypeAlias

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.auth.tokens import get_signing_key
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep, get_user, requires_access_dag
from airflow.configuration import conf
from airflow.models.log import Log
from fastapi import Depends, HTTPException, Request

from dqx_airflow.ui.airflow import TaskRef

__all__ = ["GetUserDep", "SessionDep"]

SIGNED_IN = Depends(get_user)
"""Requires a signed-in user: 401."""


READS_DAG = Depends(requires_access_dag("GET", DagAccessEntity.XCOM))
"""Requires permission to read the results of tasks of the DAG `dag_id`: 403."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """The user who asks for a page, with the request, and the session of Airflow's database."""

    request: Request
    session: Any
    user: Any

    @property
    def name(self) -> str:
        """The name of the user."""
        return str(self.user.get_name())

    def may_read(self, dag_id: str, entity: DagAccessEntity = DagAccessEntity.XCOM) -> bool:
        """Whether the user may read the results of a DAG's tasks: by the same check as the tab, so
        that both always agree."""
        return self._is_allowed(dag_id, "GET", entity)

    def may_read_code(self, dag_id: str) -> bool:
        """Whether the user may read the code of a DAG, which includes suites and contracts."""
        return self.may_read(dag_id, DagAccessEntity.CODE)

    def may_edit(self, dag_id: str) -> bool:
        """Whether the user may edit a DAG, and see the results of its tasks."""
        return self._is_allowed(dag_id, "PUT", None) and self.may_read(dag_id)

    def may_clear(self, dag_id: str) -> bool:
        """Whether the user may clear tasks of a DAG, and see their results."""
        clears = self._is_allowed(dag_id, "PUT", DagAccessEntity.TASK_INSTANCE)
        return clears and self.may_read(dag_id)

    def _is_allowed(self, dag_id: str, method: Any, entity: Any) -> bool:
        guard: Any = requires_access_dag(method, entity, dag_id)
        try:
            refusal = guard(self.request, self.user)
        except HTTPException:
            return False
        # An unawaited coroutine, in some future version, has allowed nothing yet.
        return refusal is None

    def record(self, event: str, about: TaskRef | str, facts: dict[str, Any]) -> None:
        """Writes an action of the user into Airflow's audit log, before it is done.

        :param about: a task instance, or the id of a DAG: readers of its log see the entry.
        """
        where: dict[str, Any] = {"dag_id": about}
        if isinstance(about, TaskRef):
            where = asdict(about)
            del where["label"]
        names = {"owner": self.name, "owner_display_name": self.name}
        extra = json.dumps(facts, ensure_ascii=False, default=str)
        self.session.add(Log(event=event, extra=extra, **names, **where))
        self.session.commit()


def _visitor(request: Request, session: SessionDep, user: GetUserDep) -> Visitor:
    return Visitor(request, session, user)


VisitorDep: TypeAlias = Annotated[Visitor, Depends(_visitor)]


def signing_key() -> str:
    """The secret that the API servers of a deployment share."""
    return str(get_signing_key("api", "secret_key"))


def own_origin() -> str:
    """The public address of this server; empty if it is not configured."""
    return str(conf.get("api", "base_url", fallback="") or "")
