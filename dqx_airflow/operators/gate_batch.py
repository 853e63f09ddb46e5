"""One Spark for many gates: a task before them submits one job that checks each by itself, and each
gate takes its own report from there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowTaskTimeout

from dqx_airflow.errors import StoreError
from dqx_airflow.operators.batched_reports import batch_reports, clear_number
from dqx_airflow.operators.ending import Ending
from dqx_airflow.operators.exceptions import GateInfrastructureError, GateMisconfiguredError
from dqx_airflow.operators.gate import GateOperator
from dqx_airflow.operators.spark_connection import require_connection
from dqx_airflow.operators.spark_job import SparkJobOperator
from dqx_airflow.operators.templates import given_fields

if TYPE_CHECKING:
    from dqx_airflow.datasets.databases import DatabaseConnection
    from dqx_airflow.operators.results_location import ResultsLocation
    from dqx_airflow.operators.submitters import Submitter
    from dqx_airflow.results.batch_reports import BatchReports
    from dqx_airflow.values import BatchRequest, GateRequest, JobRequest

_MOST_NAMED = 5
_OF_ONE_SPARK = ("conn_id", "conf", "submit", "ansi", "results_root", "results_conn_id")
"""The arguments that all gates of a batch must share."""
_OF_BATCH_TOO = ("conn_id", "conf", "submit")
_RULES_THAT_DO_NOT_WAIT = ("always", "one_done", "one_failed", "one_success")
"""The trigger rules of tasks that may begin before everything that they run after has ended."""
_ALL_ALONE = "each submits a job of its own"
_LATE = "the batch took longer than its execution_timeout"


class GateBatchOperator(SparkJobOperator):
    """Checks many gates in one Spark, before their tasks begin.

        gates = [DqlGateOperator(task_id=name, ...) for name in tables]
        GateBatchOperator(task_id="gate_batch", gates=gates, at_once=2)

    It submits one job, which checks the request of each gate by itself, as the job of that gate
    would: with its own deadline, states, samples, promotion, lineage events and report. Each gate
    then takes its own report, once, and ends by it: outcome, retries, notifications, XCom and
    assets are its own. A gate whose report is not there, whose request differs in any way, or
    which runs again, submits a job of its own, as without a batch. So nothing is green without its
    report.

    The batch runs before all of its gates, and when everything that one of them runs after has
    ended, in whatever state: it checks only the gates whose own upstream tasks have succeeded. All
    arguments of `SparkSubmitOperator` are passed through.

    If its job is lost, the task is retried, and the next attempt checks the gates that the job
    did not come to. After the last attempt it succeeds anyway: the other
    gates submit jobs of their own.

    :param gates: the gates. They do not depend on each other, are not mapped, wait for everything
        that they run after, and share Spark connection, `conf`, `submit`, `ansi` and the location
        of results.
    :param at_once: the number of gates that are checked at the same time, on threads of the driver.
    :param submit: a service that starts Spark by itself, as in the gates.
    """

    template_fields: Sequence[str] = given_fields(*SparkJobOperator.template_fields)
    ui_color = "#e3f2e8"

    def __init__(
        self,
        *,
        gates: Iterable[GateOperator],
        at_once: int = 1,
        submit: Submitter | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **{"trigger_rule": "all_done", **kwargs})
        self.application = self.application or None
        self.durable = False
        self.deferrable = False
        self.submit = submit
        self.at_once = at_once
        members = _members(self.task_id, gates)
        _require_gates(self.task_id, members, at_once)
        self.gate_ids = tuple(gate.task_id for gate in members)
        for gate in members:
            gate.batch = self.task_id
        self.set_downstream(members)

    def prepare_template(self) -> None:
        """Makes the batch run after everything that one of its gates runs after; Airflow calls this
        when the DAG file is parsed.

        :raises GateMisconfiguredError: a gate needs another one, or another Spark.
        """
        gates = [self.dag.get_task(task_id) for task_id in self.gate_ids]
        mistakes = [*_different_settings(self, gates)]
        after_gates = {own for gate in gates for own in gate.get_flat_relative_ids(upstream=False)}
        before = {own for gate in gates for own in gate.upstream_task_ids} - {self.task_id}
        for task_id in sorted(before):
            if task_id in self.gate_ids or task_id in after_gates:
                mistakes.append(
                    f"task '{task_id}' runs between two of its gates: remove the gates that run "
                    "after others from the batch"
                )
        if mistakes:
            raise GateMisconfiguredError(
                "; ".join(f"batch {self.task_id}: {one}" for one in mistakes)
            )
        known = self.get_flat_relative_ids(upstream=True)
        for task_id in sorted(before - known):
            self.set_upstream(self.dag.get_task(task_id))

    def execute(self, context: Any) -> str:
        """Returns how many gates were judged.

        :raises GateInfrastructureError: the job was lost, and the task has another try.
        :raises GateMisconfiguredError: the job cannot be submitted with these settings.
        """
        connection = require_connection(self._conn_id) if self.submit is None else None
        prepared = _prepared(self, context)
        if not prepared.requests:
            self.log.warning("no gate can be checked here: %s", _ALL_ALONE)
            return "0 gates"
        location = prepared.location
        assert location is not None
        self._results_location = location
        reports = batch_reports(location, context, self.task_id)
        if reports is None:
            self.log.warning("Airflow does not say when the DAG run started: %s", _ALL_ALONE)
            return "0 gates"
        self._reports = reports
        ending: Ending | None = None
        try:
            reports.forget_old()
            if _is_first_try(self, context):
                # Airflow 3.1 does not count a clear while the DAG run is running.
                reports.forget()
            waiting = reports.open_requests(prepared.requests)
            if waiting:
                batch = self._batch_request(waiting, reports, context)
                ending = self._judge(batch, prepared, connection, context)
            judged = reports.judged(prepared.requests)
        except StoreError as error:
            raise GateInfrastructureError(
                f"the batch cannot use the results store: {error}"
            ) from None
        return self._end(prepared.requests, judged, ending, context)

    def arguments_of(self, request: JobRequest) -> list[str]:
        """Returns the arguments of the job: the address of its stored request, which may be
        long."""
        from dqx_airflow.results.stored_requests import store_request
        from dqx_airflow.results.tables import locate
        from dqx_airflow.values.json_form import FILE_FLAG

        location = self._results_location
        self._stored = store_request(locate(location.root, location.storage_options), request)
        return [FILE_FLAG, self._stored]

    _stored = ""
    _reports: BatchReports | None = None

    def on_kill(self) -> None:
        """Ends the job, and deletes its reports: Airflow 3.1 does not count a clear of a running
        task, which it ends, and the data may be other data after it."""
        super().on_kill()
        if self._reports is not None:
            with suppress(StoreError):
                self._reports.forget()

    def _batch_request(
        self, requests: Sequence[GateRequest], reports: BatchReports, context: Any
    ) -> BatchRequest:
        from dqx_airflow.operators.gate_request import run_key_of
        from dqx_airflow.values import BatchRequest

        limit = self.execution_timeout
        return BatchRequest(
            run_key=run_key_of(context, None, requests[0].run_key.date),
            results_root=requests[0].results_root,
            batch=reports.batch,
            run=reports.run,
            requests=tuple(requests),
            timeout_s=limit.total_seconds() if limit else None,
            at_once=self.at_once,
        )

    def _judge(
        self, batch: BatchRequest, prepared: Prepared, connection: Any, context: Any
    ) -> Ending | None:
        """Runs the job of a batch, and returns how it ended."""
        from dqx_airflow.datasets.databases import in_environment

        self.log.info("checking %d gates in one Spark", len(batch.requests))
        try:
            if self.submit is not None:
                return self._judge_on_service(self.submit, batch, context)
            with self._results_location.in_environment(), in_environment(prepared.databases):
                return self.run_job(batch, connection, context)
        except AirflowTaskTimeout:
            super().on_kill()
            return Ending(_LATE, "increase it, or make smaller batches", is_late=True)
        finally:
            if self._stored:
                self._discard(self._stored)

    def _judge_on_service(self, submitter: Submitter, batch: BatchRequest, context: Any) -> Ending:
        """Runs the job on a service, and waits for it."""
        from dqx_airflow.operators.ending import ending_of_event
        from dqx_airflow.operators.trigger import trigger_of, wait_here

        values = {
            field.name: self.render_template(getattr(submitter, field.name), context)
            for field in fields(submitter)  # type: ignore[arg-type]
        }
        job = self.start_on_service(replace(submitter, **values), batch, self._results_location)  # type: ignore[type-var]
        # The trigger looks for a report only if the service does not answer, and finds none.
        trigger = trigger_of(
            job,
            batch.requests[0],
            results_conn_id=None,
            deadline=None,
            poll_interval_s=self._status_poll_interval,
        )
        try:
            return ending_of_event(wait_here(trigger), batch.timeout_s)
        except BaseException:
            super().on_kill()
            raise
        finally:
            self._discard(job.request)

    def _end(
        self,
        requests: Sequence[GateRequest],
        judged: Sequence[GateRequest],
        ending: Ending | None,
        context: Any,
    ) -> str:
        """Says how many gates have a report, and why the others have none.

        :raises GateInfrastructureError: the job was lost, and the task has another try.
        """
        done = f"{len(judged)} of {len(requests)} gates were checked in one Spark"
        others = [one.run_key.gate for one in requests if one not in judged]
        if not others:
            self.log.info("%s", done)
            return done
        if ending is None or not ending.has_failed:
            self.log.warning("%s; %s submit jobs of their own", done, _named(others))
            return done
        if ending.last_lines:
            self.log.error("the last lines of Spark:\n%s", "\n".join(ending.last_lines))
        message = f"{done}: {ending.how}; {ending.advice}"
        ti = context["ti"]
        if int(ti.try_number) <= int(getattr(ti, "max_tries", 0)):
            raise GateInfrastructureError(f"{message}; the next attempt checks the others")
        self.log.error("%s; %s submit jobs of their own", message, _named(others))
        return done


def _tries_before_clear(batch: GateBatchOperator, context: Any) -> int:
    """The number of tries of a batch until it was last cleared; 0 if it was not."""
    return max(int(getattr(context["ti"], "max_tries", 0)) - int(batch.retries or 0), 0)


def _is_first_try(batch: GateBatchOperator, context: Any) -> bool:
    """True for the first try of a batch, also after a clear, and false for a retry."""
    return int(context["ti"].try_number) <= _tries_before_clear(batch, context) + 1


def _named(gates: Sequence[str]) -> str:
    shown = ", ".join(gates[:_MOST_NAMED])
    return shown if len(gates) <= _MOST_NAMED else f"{shown} and {len(gates) - _MOST_NAMED} more"


def _members(task_id: str, given: Iterable[GateOperator]) -> list[GateOperator]:
    """The gates of a batch as a list.

    :raises GateMisconfiguredError: they are not a list of gates.
    """
    if isinstance(given, Mapping):
        example = "write its values, such as gates=gates_of(SETTINGS).values()"
        raise GateMisconfiguredError(f"batch {task_id}: gates is a mapping: {example}")
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise GateMisconfiguredError(f"batch {task_id}: gates={given!r}: write a list of gates")
    return [*given]


def _require_gates(task_id: str, gates: Sequence[Any], at_once: object) -> None:
    """:raises GateMisconfiguredError: something else is among the gates of a batch, or there are
    none."""
    mistakes = []
    if not gates:
        mistakes.append("gates is empty: give at least one gate")
    if isinstance(at_once, bool) or not isinstance(at_once, int) or at_once < 1:
        mistakes.append(f"at_once={at_once!r}: write a number of at least 1")
    for gate in gates:
        name = getattr(gate, "task_id", None) or repr(gate)
        if not isinstance(gate, GateOperator):
            kind = type(gate).__name__
            mistakes.append(f"{name} is a {kind}, not a single gate: leave it out of the batch")
        elif gate.is_set_by_function:
            mistakes.append(
                f"{name} calls a function when it runs, which the batch cannot do before: leave it "
                "out of the batch"
            )
        elif gate.batch is not None:
            mistakes.append(
                f"{name} belongs to the batch '{gate.batch}': leave it out of one of them"
            )
        elif gate.get_closest_mapped_task_group() is not None:
            mistakes.append(f"{name} is in a mapped task group: leave it out of the batch")
        elif gate.trigger_rule in _RULES_THAT_DO_NOT_WAIT:
            rule = str(getattr(gate.trigger_rule, "value", gate.trigger_rule))
            mistakes.append(
                f"{name} has the trigger rule '{rule}', by which it may begin before the batch has "
                "ended: change the rule, or leave the gate out of the batch"
            )
    for name, number in Counter(getattr(gate, "task_id", "") for gate in gates).items():
        if name and number > 1:
            mistakes.append(f"{name} is there {number} times: give it once")
    if mistakes:
        raise GateMisconfiguredError("; ".join(f"batch {task_id}: {one}" for one in mistakes))


def _different_settings(batch: GateBatchOperator, gates: Sequence[Any]) -> Iterator[str]:
    """A mistake for each argument of a gate that would give it another Spark or another store."""
    first = gates[0]
    for name in _OF_ONE_SPARK:
        for gate in gates:
            meant, own = _given(first, name), _given(gate, name)
            if own != meant:
                yield (
                    f"the gates {first.task_id} and {gate.task_id} have {name}={meant!r} and "
                    f"{name}={own!r}: give each of them its own batch"
                )
                break
        if name in _OF_BATCH_TOO and _given(batch, name) != _given(first, name):
            yield (
                f"its {name} is {_given(batch, name)!r}, and the value of its gates "
                f"{_given(first, name)!r}: give both the same"
            )


def _given(operator: Any, name: str) -> Any:
    """An argument of an operator, which the provider may keep as a private attribute."""
    own = operator.__dict__
    value = own.get(name, own.get(f"_{name}"))
    return None if value == {} else value


@dataclass
class Prepared:
    """The requests of the gates of a batch, and what they need from Airflow."""

    requests: list[GateRequest]
    location: ResultsLocation | None
    databases: dict[str, DatabaseConnection]


def _prepared(batch: GateBatchOperator, context: Any) -> Prepared:
    """The requests of the gates that can be judged in the batch, as their own tasks will build
    them."""
    prepared = Prepared([], None, {})
    for task_id in _beginning(batch, context):
        try:
            gate = batch.dag.get_task(task_id).prepare_for_execution()
            request, location, databases = _request_of(gate, context, batch)
        except Exception as error:  # of a template of a user, or of the gate
            # Its own task raises the same, and says it.
            reason = f"{type(error).__name__}: {error}"
            batch.log.warning("gate %s submits a job of its own: %s", task_id, reason)
            continue
        if prepared.location is None:
            prepared.location = location
        is_elsewhere = location != prepared.location
        if is_elsewhere or (prepared.requests and request.ansi != prepared.requests[0].ansi):
            what = "its results go elsewhere" if is_elsewhere else "it has another ANSI mode"
            batch.log.warning("gate %s submits a job of its own: %s", task_id, what)
            continue
        prepared.requests.append(request)
        prepared.databases.update(databases)
    return prepared


def _beginning(batch: GateBatchOperator, context: Any) -> Iterator[str]:
    """The gates of a batch that will begin after it: they have not ended, as after a clear of the
    batch alone, or been skipped, and everything that they run after has succeeded. The others may
    never run, and their data may be incomplete."""
    needs = {
        task_id: batch.dag.get_task(task_id).upstream_task_ids - {batch.task_id}
        for task_id in batch.gate_ids
    }
    states = _states({*batch.gate_ids}.union(*needs.values()), context, batch.log)
    for task_id, before in needs.items():
        if states(task_id) not in _NOT_BEGUN:
            batch.log.info("gate %s is not checked: it is %s", task_id, states(task_id))
        elif unfit := sorted(own for own in before if states(own) != "success"):
            batch.log.info("gate %s is not checked: %s has not succeeded", task_id, unfit[0])
        else:
            yield task_id


_NOT_BEGUN = ("", "scheduled", "queued", "up_for_retry")
_MAPPED = re.compile(r"_\d+$")


def _states(task_ids: Collection[str], context: Any, log: Any) -> Callable[[str], str]:
    """Returns the state of a task of this DAG run; of a mapped one, another state than success if
    one of its instances has that; empty for a task without a state."""
    ti = context["ti"]
    by_task: dict[str, list[str]] = {}
    try:
        found = ti.get_task_states(dag_id=ti.dag_id, run_ids=[ti.run_id])
    except Exception as error:  # of the API server, of the network
        log.warning("Airflow does not say which tasks have succeeded: %s", error)
        found = {}
    for key, state in found.get(ti.run_id, {}).items():
        name = key if key in task_ids else _MAPPED.sub("", key)
        by_task.setdefault(name, []).append(str(getattr(state, "value", state) or ""))

    def state_of(task_id: str) -> str:
        states = by_task.get(task_id, [""])
        others = sorted(state for state in states if state != "success")
        return others[0] if others else "success"

    return state_of


def _request_of(
    gate: Any, context: Any, batch: GateBatchOperator
) -> tuple[GateRequest, ResultsLocation, Mapping[str, DatabaseConnection]]:
    """The request of a gate whose task has not begun, with everything that it reads.

    :raises Exception: whatever a template of a user raises, or the gate itself.
    """
    instance = _GateInstance(context, gate, batch)
    own = {**context, "task": gate, "ti": instance, "task_instance": instance}
    gate.render_template_fields(own)
    request = gate.prepared_request(own)
    return request, gate.results_location, gate.databases


class _GateInstance:
    """The task instance of a gate that has not begun, as far as it is known: it runs in the DAG run
    of its batch, and its next attempt is the first since the DAG run was last cleared."""

    map_index = -1
    id = ""

    def __init__(self, context: Any, gate: Any, batch: GateBatchOperator) -> None:
        self._of_batch = context["ti"]
        self.task = gate
        self.task_id = gate.task_id
        before = _tries_before_clear(batch, context)
        self.try_number = before + 1 if clear_number(context) else 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of_batch, name)
