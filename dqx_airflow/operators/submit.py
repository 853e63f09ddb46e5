"""What all gates share: check here, submit the job, read its report, end the task."""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NoReturn, get_args

from dqx_airflow.limits import DEFAULT_SAMPLE_ROWS, MOST_SAMPLE_ROWS
from dqx_airflow.operators.exceptions import (
    GateInfrastructureError,
    GateMisconfigured,
    GateTimeoutError,
)
from dqx_airflow.operators.links import GateReportLink
from dqx_airflow.operators.spark_job import SparkJobOperator

# Every file with a gate is parsed over and over: what only a worker needs is imported there.
if TYPE_CHECKING:
    import datetime as dt

    from dqx_airflow.datasets import DatasetSetting
    from dqx_airflow.operators.data_date import DataDate
    from dqx_airflow.operators.ending import Ending
    from dqx_airflow.operators.notices import Callback
    from dqx_airflow.operators.outcome import OnViolation
    from dqx_airflow.operators.results_place import ResultsPlace
    from dqx_airflow.values import GateReport, GateRequest, SourceFile

_LEAST_POLL_S = 10
_LONGEST_SOURCE = 300


class GateOperator(SparkJobOperator):
    """Runs a gate as a Spark job and turns its report into the state of the task.

    Subclasses say which source is enforced. All arguments of `SparkSubmitOperator` are passed
    through, save `application_args`, which carry the request, and `durable`.

    Before the task ends, whatever its end, a summary of the report is in XCom under `dqx_report`,
    for notices and for the tasks behind the gate: `gate`, `date` and `date_from` (who says it),
    `outcome`, `headline` (one line for people), `run_id` (for `dql results show`), `suite`,
    `contract`, `fail_on`, `finished_at`, `counts` of the assertions by status, `verdicts` (those
    that failed or could not be evaluated, worst first) and `more_verdicts` (how many were left
    out), `datasets`, and by dataset `versions` (what was read), `quarantined` (rows), `promoted`
    (the new version), `not_promoted` and `validated` (what `read_validated` reads). `gate_notice`
    makes a message of it, for callbacks and notifiers. An asset among the `outlets` is updated on a
    pass alone; the extra of its event says what was validated.

    :param datasets: the datasets by the names that the source uses: a path, a table
        (`schema.table`), a `DatasetRef`, or a mapping with the fields of one. (templated)
    :param date: the date of the data, `YYYY-MM-DD`; by default the logical date of the run, or,
        where the run has none, the date in the asset event of the gate that triggered it. Where
        neither says one date, a gate with a `date_column` is misconfigured. (templated)
    :param results_root: the root of the results store, a path or URI that the worker and the Spark
        driver both reach; by default `results_root` in section `[dqx]` of the Airflow
        configuration. (templated)
    :param results_conn_id: a connection of type `dqx` with the credentials of the storage,
        and with the results root as its host, where `results_root` is not given. The worker uses
        it, and a driver that runs there. By default `results_conn_id` in section `[dqx]` of the
        Airflow configuration. (templated)
    :param gate: the name of the gate in results and lineage; by default `dag_id.task_id`.
    :param fail_on: the mildest severity that blocks: a failure below it is a warning.
    :param on_violation: what a blocked gate does to the task: "fail" (not retried), "skip", or
        "warn" (success, with warnings in the log).
    :param allow_empty: turns off the assertion that every dataset has rows.
    :param require_history: breaks the gate where an assertion of `fail_on` or worse lacks data of
        other dates. Without it the gate is warned, and says so first.
    :param recompute: reads all data again: by default what was computed before is taken from the
        results store, as long as the files are the very same.
    :param trust_log: what the transaction log of a Delta table says of its rows is believed, as
        far as it is exact and its files are there. With False the rows themselves are read; a
        dataset may have the same setting for itself.
    :param sample_rows: how many failing rows of an assertion are kept in the results at most; 0
        keeps none.
    :param quarantine: where the rows go that count against an assertion which failed with a
        severity of `fail_on` or worse: a mapping of dataset names to paths of Delta tables, or a
        folder with one table for each dataset. They go there whole and unmasked. By default
        nowhere. (templated)
    :param promote_to: where the rows go that were validated, on a pass and in the same job: a
        mapping of dataset names to paths of Delta tables, or to tables of the catalog; the place
        itself where there is one dataset. Of a dataset with a date column the date is replaced
        there, else the whole table, in one commit. What another gate, or another map index, has
        promoted for the date is not replaced: that makes the gate broken, and so does a target with
        other columns, or with a constraint that the rows break. Where the commit fails for another
        reason, there is no report, and the task is retried. By default nowhere. (templated)
    :param promote_slice: columns with the one value that all rows of this gate have, such as
        `{"store": "zurich"}`: only the rows with these values are replaced, so that several gates,
        or mapped tasks, share a target. (templated)
    :param timeout: how long the validation may take, a `timedelta` or seconds, counted from the
        start of the job: then the job cancels what it asked of Spark, and ends without a report. A
        shorter `execution_timeout`, which also counts the time before the start, takes its place.
    :param on_warning: what is called, with the context, where the task succeeds and the data did
        not keep all rules: callbacks or notifiers, one or several. One that fails is logged.
    :param deferrable: frees the slot of the worker while Spark runs: a trigger waits for the
        driver. For drivers that a cluster runs and tells of, those of YARN and Kubernetes with
        `deploy_mode="cluster"`.
    """

    template_fields: Sequence[str] = (
        *SparkJobOperator.template_fields,
        "datasets",
        "date",
        "results_root",
        "results_conn_id",
        "quarantine",
        "promote_to",
        "promote_slice",
    )
    operator_extra_links = (GateReportLink(),)
    outlets: list[Any]
    report: GateReport | None = None
    request: GateRequest | None = None
    _date_template: object
    _place: ResultsPlace
    ui_color = "#e3f2e8"

    def __init__(
        self,
        *,
        datasets: Mapping[str, DatasetSetting] | None,
        date: str | None = None,
        results_root: str | None = None,
        results_conn_id: str | None = None,
        gate: str | None = None,
        fail_on: str = "P1",
        on_violation: OnViolation = "fail",
        allow_empty: bool = False,
        require_history: bool = False,
        recompute: bool = False,
        trust_log: bool = True,
        sample_rows: int = DEFAULT_SAMPLE_ROWS,
        quarantine: str | Mapping[str, str] | None = None,
        promote_to: str | os.PathLike[str] | Mapping[str, str] | None = None,
        promote_slice: Mapping[str, Any] | None = None,
        timeout: timedelta | float | None = None,
        on_warning: Callback | Sequence[Callback] | None = None,
        deferrable: bool = False,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        # Airflow stores every templated value that is not None, for each parsed gate.
        super().__init__(name=name, **kwargs)
        self.application = self.application or None
        self.deferrable = deferrable
        # A resumable job survives a clear: the cleared gate would turn green on the old job
        # without validating anything.
        self.durable = False
        self.datasets = datasets
        self.date = date
        self._date_template = date
        self.results_root = results_root
        self.gate = gate
        self.fail_on = fail_on
        self.on_violation = on_violation
        self.allow_empty = allow_empty
        self.require_history = require_history
        self.recompute = recompute
        self.trust_log = trust_log
        self.sample_rows = sample_rows
        self.quarantine = quarantine
        self.promote_to = promote_to
        self.promote_slice = promote_slice
        self.timeout = timeout
        self.on_warning = on_warning
        self.results_conn_id = results_conn_id

    @abstractmethod
    def read_source(self, context: Any, on: dt.date) -> SourceFile:
        """The source that the gate enforces, as text.

        :param on: the date of the data.
        """

    @abstractmethod
    def check_source(self, request: GateRequest) -> GateRequest:
        """Logs what there is to say about the source; the request with all that it imports.

        :raises GateMisconfigured: the source has errors.
        """

    def render_template(
        self, content: Any, context: Any, jinja_env: Any = None, seen_oids: set[int] | None = None
    ) -> Any:
        """Renders as Airflow does, and leaves paths as they are."""
        # Airflow 3.1 takes the method `resolve` of a path for one of its own.
        if isinstance(content, PurePath):
            return content
        return super().render_template(content, context, jinja_env, seen_oids)

    def execute(self, context: Any) -> str:
        """Returns the outcome, "passed" or "warned" (or "blocked", where that is a warning).

        :raises GateBlocked: the data breaks a rule.
        :raises GateBroken: a rule could not be evaluated.
        :raises GateMisconfigured: the gate cannot run as it is written.
        :raises GateInfrastructureError: there is no report; the task is retried as it says.
        """
        from dqx_airflow.operators.spark_connection import require_connection

        started = time.time()
        self._check_settings()
        self.report = None
        request = self.build_request(context)
        self.request = request = self.check_source(request)
        connection = require_connection(self._conn_id)
        report = self._read_report(request)
        if report is None:
            with self._place.told_to_children():
                ending = self.run_job(request, connection, context)
            if ending is None:
                self._defer(request, started)
            report = self._require_report(request, ending)
        return self._end_task(report, context)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> str:
        """What a deferred gate does when its driver has ended: the same as `execute`."""
        from dqx_airflow.operators.ending import ending_of_event
        from dqx_airflow.values import GateRequest, from_json

        self._place = self._find_place()
        self.request = request = from_json(GateRequest, event["request"])
        self.log.info("date %s, %s", request.run_key.date.isoformat(), request.date_from)
        report = self._require_report(request, ending_of_event(event, request.timeout_s))
        return self._end_task(report, context)

    def get_openlineage_facets_on_start(self) -> Any:
        from dqx_airflow.operators.lineage import lineage_before

        return lineage_before(self.datasets)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        from dqx_airflow.operators.lineage import lineage_after, lineage_before

        if self.request is None or self.report is None:
            return lineage_before(self.datasets)
        return lineage_after(self.request, self.report)

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> Any:
        return self.get_openlineage_facets_on_complete(task_instance)

    def _end_task(self, report: GateReport, context: Any) -> str:
        from dqx_airflow.operators.assets import announce
        from dqx_airflow.operators.notices import run_callbacks
        from dqx_airflow.operators.outcome import XCOM_KEY, end_task, summary
        from dqx_airflow.values import Outcome

        self.report = report
        told = {
            **summary(report),
            "date_from": self.request.date_from[:_LONGEST_SOURCE] if self.request else "",
        }
        context["ti"].xcom_push(key=XCOM_KEY, value=told)
        self._log_report(report)
        outcome = end_task(report, self.on_violation)
        self.outlets = announce(report, self.outlets, context)
        if report.outcome is not Outcome.PASSED:
            run_callbacks(self.on_warning, context)
        return outcome

    def _check_settings(self) -> None:
        from dqx_airflow.operators.outcome import OnViolation
        from dqx_airflow.values import Severity

        if self.application_args:
            raise GateMisconfigured(
                "a gate takes no application_args, its request travels in them: remove them"
            )
        if self.fail_on not in tuple(Severity):
            raise GateMisconfigured(f"fail_on={self.fail_on!r}: write P0, P1, P2 or P3")
        if self.on_violation not in get_args(OnViolation):
            raise GateMisconfigured(f"on_violation={self.on_violation!r}: write fail, skip or warn")
        rows = self.sample_rows
        if not isinstance(rows, int) or not 0 <= rows <= MOST_SAMPLE_ROWS:
            raise GateMisconfigured(
                f"sample_rows={rows!r}: write a number from 0 to {MOST_SAMPLE_ROWS}"
            )
        if self.timeout is not None:
            is_time = isinstance(self.timeout, timedelta | int | float)
            if not is_time or isinstance(self.timeout, bool) or _seconds(self.timeout) <= 0:
                raise GateMisconfigured(
                    f"timeout={self.timeout!r}: write a timedelta, or seconds, of more than 0"
                )

    def build_request(self, context: Any) -> GateRequest:
        """The request of this task run, templates rendered and source inlined."""
        from dqx_airflow.datasets import check_places, check_promotion, check_quarantine
        from dqx_airflow.errors import RequestError
        from dqx_airflow.operators import context as of_task
        from dqx_airflow.operators.datasets import (
            dataset_ref,
            promotions,
            quarantine_paths,
            slice_values,
        )
        from dqx_airflow.values import GateRequest, Severity

        told = self._data_date(context)
        source = self.read_source(context, told.on)
        render = partial(self.render_template, context=context)
        settings = self.dataset_settings(render)
        self._place = self._find_place()
        timeouts = [_seconds(one) for one in (self.timeout, self.execution_timeout) if one]
        request = GateRequest(
            run_key=of_task.run_key_of(context, self.gate, told.on),
            attempt=of_task.attempt_of(context),
            suite=source,
            datasets=tuple(
                dataset_ref(str(name), given, trust_log=self.trust_log)
                for name, given in settings.items()
            ),
            results_root=self._place.root,
            fail_on=Severity(self.fail_on),
            allow_empty=self.allow_empty,
            require_history=self.require_history,
            recompute=self.recompute,
            parent=of_task.lineage_parent_of(context),
            timeout_s=min(timeouts, default=None),
            sample_rows=self.sample_rows,
            quarantine=quarantine_paths(self.quarantine, tuple(map(str, settings))),
            promote_to=promotions(self.promote_to, tuple(map(str, settings))),
            date_from=told.source,
            promote_slice=slice_values(self.promote_slice),
        )
        if told.objection and (dated := [ref.name for ref in request.datasets if ref.date_column]):
            raise GateMisconfigured(
                f"it is not certain which date of dataset '{dated[0]}' is meant: {told.objection}"
            )
        try:
            check_places(request)
            check_quarantine(request)
            check_promotion(request)
        except RequestError as error:
            raise GateMisconfigured(str(error)) from None
        return request

    def _data_date(self, context: Any) -> DataDate:
        """The date of the data, which is also the first thing in the log.

        :raises GateMisconfigured: what `date` says is not a date.
        """
        from dqx_airflow.operators.data_date import date_of_run, given_date

        # What was given may render to nothing: that does not mean that nothing was given.
        is_given = self._date_template is not None or self.date is not None
        told = given_date(self.date, self._date_template) if is_given else date_of_run(context)
        log = self.log.info if told.objection is None else self.log.warning
        log("%s", told)
        return told

    def dataset_settings(self, render: Callable[[Any], Any]) -> Mapping[str, DatasetSetting]:
        """What is said about each dataset, by name; called when the source is read.

        :param render: renders what Airflow has not, the values of a `DatasetRef`.

        :raises GateMisconfigured: it makes no sense.
        """
        from dqx_airflow.operators.datasets import rendered

        if not isinstance(self.datasets, Mapping):
            raise GateMisconfigured(
                f"datasets={self.datasets!r}: write a mapping of names to paths or tables"
            )
        return {name: rendered(given, render) for name, given in self.datasets.items()}

    def _find_place(self) -> ResultsPlace:
        from dqx_airflow.operators.results_place import results_place

        place = results_place(self.results_root, self.results_conn_id)
        if place is None:
            raise GateMisconfigured(
                "the gate does not know where its results go: give results_root, or set "
                "results_root in section [dqx] of the Airflow configuration "
                "(AIRFLOW__DQX__RESULTS_ROOT)"
            )
        return place

    def _read_report(self, request: GateRequest) -> GateReport | None:
        """The complete report of this very attempt, if there is one.

        Before the submission it answers a task that was restarted within the same try, and finds
        out about an unreadable store before a JVM is started.
        """
        from dqx_airflow.errors import StoreError
        from dqx_airflow.results.reader import read_report

        try:
            return read_report(
                request.results_root,
                request.run_key,
                request.attempt.id,
                storage_options=self._place.storage_options,
            )
        except StoreError as error:
            raise GateInfrastructureError(f"no report: {error}") from None

    def _require_report(self, request: GateRequest, ending: Ending) -> GateReport:
        report = self._read_report(request)
        if report is not None:
            return report
        key = request.run_key
        kind = GateTimeoutError if ending.is_late else GateInfrastructureError
        raise kind(
            f"no report in {request.results_root}: gate {key.gate}, "
            f"date {key.date.isoformat()}: {ending.how}; {ending.advice}"
        )

    def _defer(self, request: GateRequest, started: float) -> NoReturn:
        from dqx_airflow.operators.trigger import GateTrigger
        from dqx_airflow.values import to_json

        assert self.driver is not None
        # What the triggerer keeps goes into Airflow's database: no sources, which may be long.
        slim = replace(request, suite=replace(request.suite, text=""), imports=(), contract=None)
        limit = self.execution_timeout
        self.log.info("the slot is free until %s has ended", self.driver.id)
        self.defer(
            trigger=GateTrigger(
                kind=self.driver.kind,
                driver_id=self.driver.id,
                conn_id=self._conn_id,
                request=to_json(slim),
                results_conn_id=self.results_conn_id,
                deadline=started + limit.total_seconds() if limit else None,
                longest_wait_s=max(self._status_poll_interval, _LEAST_POLL_S),
            ),
            method_name="execute_complete",
        )
        raise AssertionError("unreachable: defer raises")

    def _log_report(self, report: GateReport) -> None:
        from dqx_airflow.diagnostics.verdicts import draw_verdict, headline
        from dqx_airflow.values import Outcome, Status

        fails = report.outcome is Outcome.BROKEN or (
            report.outcome is Outcome.BLOCKED and self.on_violation == "fail"
        )
        lacking = report.not_evaluated
        for verdict in lacking:
            log = self.log.error if report.outcome is Outcome.BROKEN else self.log.warning
            name, severity = verdict.name, verdict.severity.value
            log("not evaluated: %s (%s): %s", name, severity, verdict.reason)
        for verdict in report.with_status(Status.SKIPPED):
            if verdict not in lacking:
                self.log.info("skipped: %s: %s", verdict.name, verdict.reason)
        for verdict in report.with_status(Status.PASSED):
            if verdict.note:
                self.log.info("passed: %s: %s", verdict.name, verdict.note)
        for status in (Status.ERROR, Status.FAILED):
            for verdict in report.with_status(status):
                blocks = fails and verdict.severity.at_least(report.fail_on)
                log = self.log.error if blocks else self.log.warning
                log("%s", draw_verdict(verdict, report))
        root = self._place.root
        self.log.info("all verdicts: dql results show %s --root %s", report.run_id[:8], root)
        log = self.log.info if report.outcome is Outcome.PASSED else self.log.warning
        if fails:
            log = self.log.error
        log("%s", headline(report))


def _seconds(given: timedelta | float) -> float:
    return given.total_seconds() if isinstance(given, timedelta) else float(given)
