"""What all gates share: check here, submit the job, read its report, end the task."""

from __future__ import annotations

import os
import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, get_args

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowNotFoundException,
    BaseHook,
)
from airflow.providers.common.compat.sdk import conf as airflow_conf

from dqx_airflow.datasets import DatasetSetting, check_promotion, check_quarantine
from dqx_airflow.errors import RequestError
from dqx_airflow.operators.assets import announce
from dqx_airflow.operators.context import attempt_of, date_of, lineage_parent_of, run_key_of
from dqx_airflow.operators.datasets import dataset_ref, promotions, quarantine_paths, rendered
from dqx_airflow.operators.lineage import lineage_after, lineage_before
from dqx_airflow.operators.links import GateReportLink
from dqx_airflow.operators.outcome import (
    XCOM_KEY,
    GateInfrastructureError,
    GateMisconfigured,
    OnViolation,
    end_task,
    summary,
)
from dqx_airflow.values import (
    DEFAULT_SAMPLE_ROWS,
    MOST_SAMPLE_ROWS,
    GateReport,
    GateRequest,
    Outcome,
    Severity,
    SourceFile,
    Status,
)

_LONGEST_CAUSE = 300


class GateOperator(SparkSubmitOperator):
    """Runs a gate as a Spark job and turns its report into the state of the task.

    Subclasses say which source is enforced. All arguments of `SparkSubmitOperator` are passed
    through, save `application_args`, which carry the request, and `durable`.

    Before the task ends, whatever its end, a summary of the report is in XCom under `dqx_report`,
    for notifiers and for the tasks behind the gate: `gate`, `date`, `outcome`, `headline` (one
    line for people), `run_id` (for `dql results show`), `suite`, `contract`, `fail_on`,
    `finished_at`, `counts` of the assertions by status, `verdicts` (those that failed or could not
    be evaluated, worst first) and `more_verdicts` (how many were left out), `datasets`, and by
    dataset `versions` (what was read), `quarantined` (rows), `promoted` (the new version) and
    `validated` (what `read_validated` reads). A notifier says, as `on_failure_callback`,
    `{{ ti.xcom_pull(task_ids=ti.task_id, key="dqx_report")["headline"] }}`. An asset among the
    `outlets` is updated on a pass alone; the extra of its event says what was validated.

    :param datasets: the datasets by the names that the source uses: a path, a table
        (`schema.table`), a `DatasetRef`, or a mapping with the fields of one. (templated)
    :param date: the date of the data, `YYYY-MM-DD`; by default the logical date of the run.
        (templated)
    :param results_root: the root of the results store, a path or URI that the worker and the Spark
        driver both reach; by default `results_root` in section `[dqx]` of the Airflow
        configuration. (templated)
    :param gate: the name of the gate in results and lineage; by default `dag_id.task_id`.
    :param fail_on: the mildest severity that blocks: a failure below it is a warning.
    :param on_violation: what a blocked gate does to the task: "fail" (not retried), "skip", or
        "warn" (success, with warnings in the log).
    :param allow_empty: turns off the assertion that every dataset has rows.
    :param recompute: reads all data again: by default what was computed before is taken from the
        results store, as long as the files are the very same.
    :param sample_rows: how many failing rows of an assertion are kept in the results at most; 0
        keeps none.
    :param quarantine: where the rows go that count against an assertion which failed with a
        severity of `fail_on` or worse: a mapping of dataset names to paths of Delta tables, or a
        folder with one table for each dataset. They go there whole and unmasked. By default
        nowhere. (templated)
    :param promote_to: where the rows go that were validated, on a pass and in the same job: a
        mapping of dataset names to paths of Delta tables, or to tables of the catalog; the place
        itself where there is one dataset. Of a dataset with a date column the date is replaced
        there, else the whole table, in one commit. Where that fails, there is no report, and the
        task is retried. By default nowhere. (templated)
    """

    template_fields: Sequence[str] = (
        *SparkSubmitOperator.template_fields,
        "datasets",
        "date",
        "results_root",
        "quarantine",
        "promote_to",
    )
    operator_extra_links = (GateReportLink(),)
    outlets: list[Any]
    ui_color = "#e3f2e8"

    def __init__(
        self,
        *,
        datasets: Mapping[str, DatasetSetting],
        date: str | None = None,
        results_root: str | None = None,
        gate: str | None = None,
        fail_on: str = "P1",
        on_violation: OnViolation = "fail",
        allow_empty: bool = False,
        recompute: bool = False,
        sample_rows: int = DEFAULT_SAMPLE_ROWS,
        quarantine: str | Mapping[str, str] | None = None,
        promote_to: str | os.PathLike[str] | Mapping[str, str] | None = None,
        name: str = "dqx-gate",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.datasets = datasets
        self.date = date
        self.results_root = results_root
        self.gate = gate
        self.fail_on = fail_on
        self.on_violation = on_violation
        self.allow_empty = allow_empty
        self.recompute = recompute
        self.sample_rows = sample_rows
        self.quarantine = quarantine
        self.promote_to = promote_to
        # A resumable job survives a clear: the cleared gate would turn green on the old job
        # without validating anything.
        self.durable = False
        self.report: GateReport | None = None
        self.request: GateRequest | None = None

    @abstractmethod
    def read_source(self, context: Any) -> SourceFile:
        """The source that the gate enforces, as text."""

    @abstractmethod
    def check_source(self, request: GateRequest) -> GateRequest:
        """Logs what there is to say about the source; the request with all that it imports.

        :raises GateMisconfigured: the source has errors.
        """

    def execute(self, context: Any) -> str:
        """Returns the outcome, "passed" or "warned" (or "blocked", where that is a warning).

        :raises GateBlocked: the data breaks a rule.
        :raises GateBroken: a rule could not be evaluated.
        :raises GateMisconfigured: the gate cannot run as it is written.
        :raises GateInfrastructureError: there is no report; the task is retried as it says.
        """
        self._check_settings()
        self.report = None
        request = self.build_request(context)
        self.request = request = self.check_source(request)
        connection = self._require_connection()
        report = self._read_report(request)
        if report is None:
            how, advice = self._submit(request, connection, context)
            report = self._read_report(request)
            if report is None:
                key = request.run_key
                raise GateInfrastructureError(
                    f"no report in {request.results_root}: gate {key.gate}, "
                    f"date {key.date.isoformat()}: {how}; {advice}"
                )
        self.report = report
        context["ti"].xcom_push(key=XCOM_KEY, value=summary(report))
        self._log_report(report)
        outcome = end_task(report, self.on_violation)
        self.outlets = announce(report, self.outlets, context)
        return outcome

    def get_openlineage_facets_on_start(self) -> Any:
        return lineage_before(self.datasets)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        if self.request is None or self.report is None:
            return lineage_before(self.datasets)
        return lineage_after(self.request, self.report)

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> Any:
        return self.get_openlineage_facets_on_complete(task_instance)

    def _check_settings(self) -> None:
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

    def build_request(self, context: Any) -> GateRequest:
        """The request of this task run, templates rendered and source inlined."""
        try:
            on = date_of(context, self.date)
        except ValueError:
            raise GateMisconfigured(f"date={self.date!r} is not a date: write YYYY-MM-DD") from None
        source = self.read_source(context)
        render = partial(self.render_template, context=context)
        settings = self.dataset_settings(render)
        timeout = self.execution_timeout
        request = GateRequest(
            run_key=run_key_of(context, self.gate, on),
            attempt=attempt_of(context),
            suite=source,
            datasets=tuple(dataset_ref(str(name), given) for name, given in settings.items()),
            results_root=self._results_root(),
            fail_on=Severity(self.fail_on),
            allow_empty=self.allow_empty,
            recompute=self.recompute,
            parent=lineage_parent_of(context),
            timeout_s=timeout.total_seconds() if timeout else None,
            sample_rows=self.sample_rows,
            quarantine=quarantine_paths(self.quarantine, tuple(map(str, settings))),
            promote_to=promotions(self.promote_to, tuple(map(str, settings))),
        )
        try:
            check_quarantine(request)
            check_promotion(request)
        except RequestError as error:
            raise GateMisconfigured(str(error)) from None
        return request

    def dataset_settings(self, render: Callable[[Any], Any]) -> Mapping[str, DatasetSetting]:
        """What is said about each dataset, by name; called when the source is read.

        :param render: renders what Airflow has not, the values of a `DatasetRef`.

        :raises GateMisconfigured: it makes no sense.
        """
        if not isinstance(self.datasets, Mapping):
            raise GateMisconfigured(
                f"datasets={self.datasets!r}: write a mapping of names to paths or tables"
            )
        return {name: rendered(given, render) for name, given in self.datasets.items()}

    def _results_root(self) -> str:
        root = self.results_root or airflow_conf.get("dqx", "results_root", fallback=None)
        if not root:
            raise GateMisconfigured(
                "the gate does not know where its results go: give results_root, or set "
                "results_root in section [dqx] of the Airflow configuration "
                "(AIRFLOW__DQX__RESULTS_ROOT)"
            )
        return str(root)

    def _require_connection(self) -> Any:
        # SparkSubmitHook silently takes an unknown connection for the master `yarn`.
        conn_id = self._conn_id
        try:
            return BaseHook.get_connection(conn_id)
        except AirflowNotFoundException:
            raise GateMisconfigured(
                f"there is no Spark connection '{conn_id}': create it with "
                f"`airflow connections add {conn_id} --conn-type spark --conn-host 'local[*]'` "
                f"(or the master of your cluster), or set AIRFLOW_CONN_{conn_id.upper()}"
            ) from None

    def _read_report(self, request: GateRequest) -> GateReport | None:
        """The complete report of this very attempt, if there is one.

        Before the submission it answers a task that was restarted within the same try, and finds
        out about an unreadable store before a JVM is started.
        """
        from dqx_airflow.errors import StoreError
        from dqx_airflow.results.reader import read_report

        try:
            return read_report(request.results_root, request.run_key, request.attempt.id)
        except StoreError as error:
            raise GateInfrastructureError(f"no report: {error}") from None

    def _submit(self, request: GateRequest, connection: Any, context: Any) -> tuple[str, str]:
        """Runs the job; returns how it ended, and what to do should there be no report."""
        from dqx_airflow.arguments import to_arguments
        from dqx_airflow.shipped import shipped

        if not self.application:
            self.application: str = str(shipped("spark_jobs/gate_job.py"))
        self.application_args = to_arguments(request)
        self.conf: dict[str, str] = {**(self.conf or {})}
        if self._is_driver_here(connection):
            self.conf = {**self._driver_python(), **self.conf, **self._driver_jvm()}
        # `dag.test()` runs all tries on one operator, and a hook keeps the arguments it was given.
        self._hook: Any = None
        error: Exception | None = None
        try:
            super().execute(context)
        except (AirflowException, RuntimeError, OSError) as caught:
            error = caught
        except ValueError as unfit:
            # What the hook says to settings that it cannot use, those of the connection among them.
            raise GateMisconfigured(f"the Spark job cannot be submitted: {unfit}") from None
        finally:
            self.application_args = []  # they are of this try, not of the gate
        how, advice = self._how_it_ended(error)
        if error is not None:
            self.log.warning("%s; looking for the report of the gate", how)
        return how, advice

    def _get_hook(self) -> Any:
        hook = super()._get_hook()
        # One byte of output that is not UTF-8 would end the task while its job runs on.
        hook.submit = partial(hook.submit, encoding="utf-8", errors="replace")
        return hook

    def _is_driver_here(self, connection: Any) -> bool:
        """In client mode the driver runs on this worker."""
        modes = (
            self._deploy_mode,
            connection.extra_dejson.get("deploy-mode"),
            self.conf.get("spark.submit.deployMode"),
        )
        return next(filter(None, modes), "client") != "cluster"

    def _driver_python(self) -> dict[str, str]:
        """The Python of this worker, unless told otherwise."""
        told = {**os.environ, **(self.env_vars or {})}
        if told.keys() & {"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"}:
            return {}
        if "spark.pyspark.python" in self.conf:
            return {}
        return {"spark.pyspark.driver.python": sys.executable}

    def _driver_jvm(self) -> dict[str, str]:
        """The archive with which the JVM of a driver starts faster, where one was made."""
        from dqx_airflow.config.jvm_options import DRIVER_OPTIONS, with_archive

        archive = airflow_conf.get("dqx", "jvm_archive", fallback=None)
        if not archive:
            return {}
        if not os.path.isfile(archive):
            self.log.warning(
                "there is no file %s, which jvm_archive in section [dqx] names: make it with "
                "`dql package --jvm-archive`; the gate runs without it",
                archive,
            )
            return {}
        return {DRIVER_OPTIONS: with_archive(self.conf.get(DRIVER_OPTIONS, ""), archive)}

    def _how_it_ended(self, error: Exception | None) -> tuple[str, str]:
        if isinstance(error, FileNotFoundError):
            return (
                f"there is no program {error.filename!r} on the PATH of this worker",
                "install pyspark or a Spark distribution there, or set spark_binary",
            )
        code = getattr(getattr(self._hook, "_submit_sp", None), "returncode", None)
        if error is None:
            return (
                f"the Spark job ended well (exit code {code})",
                "its driver has to see the same storage there as this worker",
            )
        output = "its output above says why"
        if code:
            how = f"was killed by signal {-code}" if code < 0 else f"failed (exit code {code})"
            return f"the Spark job {how}", output
        # This message of the hook holds the whole command, which is long, and may hold secrets.
        if str(error).startswith("Cannot execute"):
            return "the Spark job failed", output
        return f"the Spark job failed: {str(error)[:_LONGEST_CAUSE]}", output

    def _log_report(self, report: GateReport) -> None:
        from dqx_airflow.diagnostics.verdicts import draw_verdict, headline

        fails = report.outcome is Outcome.BROKEN or (
            report.outcome is Outcome.BLOCKED and self.on_violation == "fail"
        )
        for status in (Status.SKIPPED, Status.ERROR, Status.FAILED):
            for verdict in report.with_status(status):
                if status is Status.SKIPPED:
                    self.log.info("skipped: %s: %s", verdict.name, verdict.reason)
                    continue
                blocks = fails and verdict.severity.at_least(report.fail_on)
                log = self.log.error if blocks else self.log.warning
                log("%s", draw_verdict(verdict, report))
        root = self._results_root()
        self.log.info("all verdicts: dql results show %s --root %s", report.run_id[:8], root)
        log = self.log.info if report.outcome is Outcome.PASSED else self.log.warning
        if fails:
            log = self.log.error
        log("%s", headline(report))
