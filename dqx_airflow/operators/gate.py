"""The common part of all gates: check, submit the job, read its report, end the task."""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial, wraps
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from dqx_airflow.limits import DEFAULT_CLOCK_SKEW_HOURS, DEFAULT_SAMPLE_ROWS
from dqx_airflow.operators.exceptions import (
    GateBlockedError,
    GateBrokenError,
    GateInfrastructureError,
    GateMisconfiguredError,
    as_misconfigured,
)
from dqx_airflow.operators.gate_arguments import (
    DeclaredArguments,
    Setting,
    Templated,
    declared_arguments,
)
from dqx_airflow.operators.links import GateReportLink
from dqx_airflow.operators.spark_connection import require_connection
from dqx_airflow.operators.spark_job import SparkJobOperator, is_deferrable
from dqx_airflow.operators.templates import given_fields

# Every file with a gate is parsed repeatedly: what only a worker needs is imported there.
if TYPE_CHECKING:
    import datetime as dt
    from datetime import timedelta
    from pathlib import Path

    from dqx_airflow.datasets.databases import DatabaseConnection
    from dqx_airflow.datasets.settings import DatasetSetting
    from dqx_airflow.operators.ending import Ending
    from dqx_airflow.operators.notifications import Callback
    from dqx_airflow.operators.outcome import OnViolation
    from dqx_airflow.operators.results_location import ResultsLocation
    from dqx_airflow.operators.submitters import Submitter
    from dqx_airflow.operators.trigger import GateTrigger
    from dqx_airflow.values import DatasetRef, GateReport, GateRequest, Selection, SourceFile
    from dqx_airflow.values.request import Words

_LONGEST_SOURCE = 300
_ELSEWHERE = "accept the data on the tab of the gate, on its incident, or with dql incidents accept"
_MAPPINGS = ("quarantine", "promote_to", "promote_slice", "promote_valid")
_FAILURES = (GateBlockedError, GateBrokenError, GateMisconfiguredError, GateInfrastructureError)


# What the OpenLineage events of a gate's task contain, for Airflow's provider, which is optional.
# The job of a gate sends events of its own, about a run that has the run of the task as its parent.
# They name the datasets, wait in a spool where the server is down, and come from wherever the job
# runs. The task names the datasets only where its job sends no events: a catalog would otherwise
# have two jobs with the same edges.
class _Stated(list[Any]):
    """A list that is truthy even if it is empty.

    Airflow's provider treats an empty list as unknown, and would report the outlets of the task as
    outputs, even for a run that blocked.
    """

    def __bool__(self) -> bool:
        return True


def _refs(settings: Iterable[tuple[str, DatasetSetting]]) -> tuple[DatasetRef, ...]:
    """The datasets in these settings, without each `DatasetRef`, whose templates are rendered when
    the gate begins, and without invalid ones."""
    from dqx_airflow.datasets.settings import dataset_ref
    from dqx_airflow.errors import RequestError
    from dqx_airflow.values import DatasetRef

    refs = []
    for name, setting in settings:
        if not isinstance(setting, DatasetRef):
            try:
                refs.append(dataset_ref(str(name), setting))
            except RequestError:
                continue  # the gate reports it when it runs
    return tuple(refs)


def _without_frames(run: Callable[..., str]) -> Callable[..., str]:
    """Decorates a method that ends a task: removes our frames from its errors, which Airflow would
    print although their message is complete.

    Stores in XCom and in the results store why there is no report.
    """

    @wraps(run)
    def _run_without_frames(gate: GateOperator, context: Any, *given: Any, **named: Any) -> str:
        gate.read_settings()
        try:
            return run(gate, context, *given, **named)
        except _FAILURES as error:
            if isinstance(error, GateMisconfiguredError | GateInfrastructureError):
                from dqx_airflow.operators.no_report import end_without_report

                location = getattr(gate, "_results_location", None)
                end_without_report(gate, context, error, location)
            raise error.with_traceback(None) from error.__cause__

    return _run_without_frames


class GateOperator(SparkJobOperator):
    """Runs a gate as a Spark job and sets the task state from its report.

    Subclasses define which source is enforced. All arguments of `SparkSubmitOperator` are passed
    through, except `application_args`, which carry the request, and `durable`.

    Before the task ends, in any state, a summary of the report is pushed to XCom as `dqx_report`,
    for notifications and downstream tasks: `run_id` (for `dql results show`), `gate`, `date`,
    `map_index` and `scheduler_run`, `date_from` (the origin of the date), `outcome`, `headline`
    (one line for people), `suite`, `contract`, `partial` (what was selected; None if that is
    everything), `fail_on`, `finished_at`, `counts` of the assertions by status, `verdicts` (those
    that failed or could not be evaluated, worst first) and `more_verdicts` (the number of omitted
    ones), `datasets`, and by dataset `locations`, `versions` (that were read), `quarantined`
    (rows), `promoted` (the new version), `not_promoted`, `left_out` (rows that were not promoted
    with the others), `promoted_blocked` (although the gate was blocked) and `validated` (what
    `read_validated` reads). With several dates or suites, `parts` has the `run_id`, `gate`, `date`,
    `suite` and `outcome` of each. Without a report, its `outcome` is "no report", `error` says why,
    and `error_type` is the name of the exception. `gate_notification` turns it into a message for
    callbacks and notifiers. An asset among the `outlets` is only updated on a pass; the extra of
    its event describes what was validated.

    The arguments in groups:

    - What: `datasets`, `date`, `gate`
    - Which assertions: `only`, `tags`, `exclude_tags`, `min_severity`, `dimensions`
    - Where: `results_root`, `results_conn_id`, `sample_rows`
    - When it fails: `fail_on`, `on_violation`, `ask_timeout`, `ask_default`, `accept_required`,
      `allow_empty`, `require_history`, `max_clock_skew_hours`
    - What goes on: `quarantine`, `promote_to`, `promote_slice`, `promote_blocked`, `promote_valid`,
      `promote_partial`, `certify_partitions`
    - How it runs: `ansi`, `recompute`, `trust_log`, `validation_timeout`, `submit`,
      `on_warning_callback`, `deferrable`

    A template for a word, a number or a switch is rendered, and its result read as such: `"False"`
    is False, and what is none of these is an error.

    :param datasets: the datasets, by the names that the source uses: a path, a table
        (`schema.table`), a `DatasetRef`, or a mapping with its fields. (templated)
    :param date: the date of the data, `YYYY-MM-DD`; or `FROM..TO` for all dates of a range in one
        scan, each with a separate report and promotion. By default the logical date of the run or,
        if the run has none, the date in the asset event of the gate that triggered it. If neither
        gives a single date, a gate with a `date_column` is misconfigured. (templated)
    :param gate: the name of the gate in results and lineage; by default `dag_id.task_id`.
        (templated)
    :param only: runs only some of the assertions: the name of an assertion or a check,
        `CHECK::ASSERTION`, the path of a contract clause or the id of a rule. `*` and `?` are
        wildcards. Give one, a list, or several separated by commas. If this argument or one of the
        next four excludes assertions, the run is partial and is marked as such. An assertion must
        match all of these arguments. (templated)
    :param tags: only assertions with one of these tags. (templated)
    :param exclude_tags: no assertions with one of these tags. (templated)
    :param min_severity: only assertions of this severity or a worse one. (templated)
    :param dimensions: only assertions of one of these quality dimensions, such as "completeness".
        (templated)
    :param results_root: the root of the results store, a path or URI that both the worker and the
        Spark driver can reach; by default `results_root` in section `[dqx]` of the Airflow
        configuration. (templated)
    :param results_conn_id: a connection of type `dqx` with the credentials of the storage and, if
        `results_root` is not given, the results root as its host. It is used by the worker and by
        a driver that runs there. By default `results_conn_id` in section `[dqx]` of the Airflow
        configuration. (templated)
    :param sample_rows: the maximum number of failing rows per assertion that are kept in the
        results; 0 keeps none. (templated)
    :param fail_on: the least severe level that still blocks: "P1", the default, blocks on P0 and
        P1, while P2 and P3 only warn. (templated)
    :param on_violation: what a blocked gate does to the task: "fail" (not retried), "skip", "warn"
        (success, with warnings in the log), or "ask". With "ask", the task waits, without a worker
        slot, until someone accepts exactly the data that was checked or keeps it blocked. Whoever
        may answer required actions of the DAG in Airflow may answer. (templated)
    :param ask_timeout: with "ask", the time to wait for an answer, a `timedelta` or seconds; by
        default forever. (templated)
    :param ask_default: what happens without an answer: "block" or "accept". (templated)
    :param accept_required: lets someone accept data that violates an assertion which is P0 or
        `@required`: as the answer of a gate that asks, or by `dql incidents accept`. (templated)
    :param allow_empty: turns off the assertion that every dataset has rows. (templated)
    :param require_history: makes the gate broken if an assertion of `fail_on` or worse lacks data
        of other dates. Without it, the outcome is `warned`, and the headline starts with the
        missing history. (templated)
    :param max_clock_skew_hours: by how many hours a timestamp may be in the future and still make
        data fresh; the verdict notes it. Later timestamps are ignored. (templated)
    :param quarantine: the target for the rows that violate an assertion which failed with a
        severity of `fail_on` or worse. It is a mapping of dataset names to paths of Delta tables,
        or a folder with one table per dataset. The rows are written whole and unmasked. By default
        there is no quarantine. (templated)
    :param promote_to: the target for the validated rows, written in the same job if the gate
        passes. It is a mapping of dataset names to paths of Delta tables or to catalog tables, or
        just the target if there is one dataset. One commit replaces the date if the dataset has a
        date column, else the whole table. Rows that another gate or map index promoted, or this
        gate with another date column or time zone, are not replaced: the gate is then broken. It is
        also broken if the target has other columns, or a constraint that the rows violate. If the
        commit fails for another reason, there is no report, and the task is retried. By default
        nothing is promoted. (templated)
    :param promote_slice: the columns, each with the single value that all rows of this gate have,
        such as `{"store": "zurich"}`. Only rows with these values are replaced, so that several
        gates or mapped tasks can share a target. (templated)
    :param promote_blocked: with True and `on_violation="warn"`, a blocked gate promotes its rows
        and updates assets anyway; the headline, notifications, the commit, the asset and lineage
        say so. Nothing is promoted if an assertion failed that is P0, `@required` or implicit (no
        rows, malformed strings), or if the gate is broken. With False, a blocked gate promotes
        nothing, although downstream tasks may run. `promote_to` requires True or False with
        `on_violation="warn"`, and False with "skip". (templated)
    :param promote_valid: promotes the valid rows of a gate that only single failing rows would
        block. The value is `{"max_bad_rows": "1%"}`, the same share as 0.01, or a whole number of
        rows. All rows but the failing ones are promoted, these are in the quarantine, and the
        outcome is `warned`. Requires `promote_to` and `quarantine`. The gate blocks as usual if
        more rows fail, if an assertion that blocks is not about single rows, or if one does not
        hold for the other rows. (templated)
    :param promote_partial: lets a partial run promote rows and update assets, provided that it
        excludes no assertion that is P0 or `@required`. Without it, `promote_to` is refused, and
        assets among the `outlets` are not updated. Requires a selection, and something to promote
        or update. (templated)
    :param certify_partitions: updates the assets among the `outlets` by partitions (Airflow 3.3):
        each date that passed is one. Its key is `2024-05-17`, or `2024-05-17|zurich` with the
        values of `promote_slice` in the order of its columns' names. DAGs that are scheduled by
        partitions of the asset wait for exactly these dates, while Airflow does not start DAGs with
        `schedule=[asset]` for them. From a range with `on_violation="warn"`, only the dates that
        passed are certified. (templated)
    :param ansi: the mode of Spark in which SQL of the suite, the contract and the datasets is
        evaluated. In ANSI mode an overflow, an invalid cast or a division by zero is an error, and
        without it NULL. The gate opens its session in this mode; in a session with the other one,
        by `conf` or on a server, the SQL could not be evaluated. (templated)
    :param recompute: reads all data again. By default, earlier results in the results store are
        reused as long as the files are unchanged. (templated)
    :param trust_log: uses the statistics in the transaction log of a Delta table if they are exact
        and its files exist. With False, the rows themselves are read. A dataset may override this
        setting. (templated)
    :param validation_timeout: the maximum duration of the validation, a `timedelta` or seconds,
        from the start of the job. The job then cancels its Spark queries and ends without a report.
        A shorter `execution_timeout`, which also counts the time before the start, takes
        precedence. (templated)
    :param submit: a service that starts Spark by itself, such as `LivyBatches(...)` or
        `DatabricksRuns(...)` of `dqx_airflow.operators.submitters`, whose fields are rendered. By
        default the Spark connection, which is not used otherwise.
    :param on_warning_callback: callbacks or notifiers, one or several, invoked with the context
        when the task succeeds although rules were violated, and when a blocked gate asks. A failing
        callback is logged.
    :param deferrable: releases the worker slot while Spark runs: a trigger waits for the driver.
        Works for drivers on YARN and Kubernetes with `deploy_mode="cluster"`, and with `submit`. By
        default `default_deferrable` in section `[operators]` of the Airflow configuration with
        `submit`, else False.
    """

    names_all_datasets: ClassVar[bool] = True
    """Whether `datasets` are complete; a contract may define more."""
    is_set_by_function: ClassVar[bool] = False
    """Whether a function returns the datasets, or the source, when the task runs."""
    operator_extra_links = (GateReportLink(),)
    outlets: list[Any]
    open_settings: tuple[str, ...] = ()
    """The names of the settings that are templates, or outputs of tasks."""
    batch: str | None = None
    """The task that judges this gate together with others, a `GateBatchOperator`."""
    report: GateReport | None = None
    _answer = ""
    _same_cause: dict[str, str] | None = None
    request: GateRequest | None = None
    source_file: Path | None = None
    _results_location: ResultsLocation
    _databases: Mapping[str, DatabaseConnection]
    ui_color = "#e3f2e8"

    def __init__(
        self,
        *,
        datasets: Templated[Mapping[str, DatasetSetting] | None],
        date: Templated[str | None] = None,
        results_root: Templated[str | None] = None,
        results_conn_id: Templated[str | None] = None,
        gate: Setting[str | None] = None,
        fail_on: Setting[str] = "P1",
        on_violation: Setting[OnViolation] = "fail",
        allow_empty: Setting[bool] = False,
        require_history: Setting[bool] = False,
        ansi: Setting[bool] = True,
        max_clock_skew_hours: Setting[float] = DEFAULT_CLOCK_SKEW_HOURS,
        recompute: Setting[bool] = False,
        trust_log: Setting[bool] = True,
        sample_rows: Setting[int] = DEFAULT_SAMPLE_ROWS,
        quarantine: Templated[str | Mapping[str, str] | None] = None,
        promote_to: Templated[str | os.PathLike[str] | Mapping[str, str] | None] = None,
        promote_slice: Templated[Mapping[str, Any] | None] = None,
        only: Templated[Words] = None,
        tags: Templated[Words] = None,
        exclude_tags: Templated[Words] = None,
        min_severity: Templated[str | None] = None,
        dimensions: Templated[Words] = None,
        promote_partial: Setting[bool] = False,
        promote_blocked: Setting[bool | None] = None,
        promote_valid: Templated[Mapping[str, Any] | None] = None,
        certify_partitions: Setting[bool] = False,
        accept_required: Setting[bool] = False,
        ask_timeout: Setting[timedelta | float | None] = None,
        ask_default: Setting[str] = "block",
        validation_timeout: Setting[timedelta | float | None] = None,
        submit: Submitter | None = None,
        on_warning_callback: Callback | Sequence[Callback] | None = None,
        deferrable: bool | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        try:
            super().__init__(name=name, **kwargs)
        except TypeError:
            from dqx_airflow.operators.parse_check import require_known

            require_known(type(self), kwargs)
            raise
        self.application = self.application or None
        # A resumable job survives a clear: the cleared gate would turn green on the old job
        # without validating anything.
        self.durable = False
        self.datasets = datasets
        self.date = date
        self.results_root = results_root
        self.results_conn_id = results_conn_id
        self.gate = gate
        self.fail_on = fail_on
        self.on_violation = on_violation
        self.allow_empty = allow_empty
        self.require_history = require_history
        self.ansi = ansi
        self.max_clock_skew_hours = max_clock_skew_hours
        self.recompute = recompute
        self.trust_log = trust_log
        self.sample_rows = sample_rows
        self.quarantine = quarantine
        self.promote_to = promote_to
        self.promote_slice = promote_slice
        self.only = only
        self.tags = tags
        self.exclude_tags = exclude_tags
        self.min_severity = min_severity
        self.dimensions = dimensions
        self.promote_partial = promote_partial
        self.promote_blocked = promote_blocked
        self.promote_valid = promote_valid
        self.certify_partitions = certify_partitions
        self.accept_required = accept_required
        self.ask_timeout = ask_timeout
        self.ask_default = ask_default
        self.validation_timeout = validation_timeout
        self.submit = submit
        self.on_warning_callback = on_warning_callback
        self.deferrable = is_deferrable(deferrable, submit)
        self._date_template = date
        self.open_settings = GateOperator.common_arguments.open_settings_of(self)
        self._written = GateOperator.common_arguments.written_in(self, self.open_settings)

    common_arguments: ClassVar[DeclaredArguments] = declared_arguments(__init__, inherited=["name"])
    """The arguments of all gates, as the constructor declares them."""
    template_fields: Sequence[str] = given_fields(
        *SparkJobOperator.template_fields,
        *common_arguments.templated,
        settings=common_arguments.settings,
    )
    template_fields_renderers: ClassVar[dict[str, str]] = dict.fromkeys(
        ("conf", "env_vars", "datasets", *_MAPPINGS), "json"
    )
    checked_arguments: ClassVar[tuple[str, ...]] = (*common_arguments.names, "outlets", "conf")
    """The arguments that are checked when the DAG is parsed."""
    settings: ClassVar[tuple[str, ...]] = common_arguments.settings
    """The arguments that are rendered only if they are templates."""
    true_or_false: ClassVar[tuple[str, ...]] = common_arguments.true_or_false

    @property
    def selection(self) -> Selection | None:
        """The selected assertions; None for all.

        :raises GateMisconfiguredError: an argument is invalid.
        """
        from dqx_airflow.values.request import selection_of

        with as_misconfigured():
            return selection_of(
                self.only, self.tags, self.exclude_tags, self.min_severity, self.dimensions
            )

    @abstractmethod
    def read_source(self, context: Any, on: dt.date) -> SourceFile:
        """The source that the gate enforces, as text; its file becomes `source_file`.

        :param on: the date of the data.
        """

    @abstractmethod
    def check_source(self, request: GateRequest) -> GateRequest:
        """Logs the diagnostics of the source; returns the request with all imported files.

        :raises GateMisconfiguredError: the source has errors.
        """

    @abstractmethod
    def source_mistakes(
        self, folder: Path, datasets: Sequence[DatasetRef] | None
    ) -> tuple[list[str], Sequence[Path]]:
        """Mistakes in the source when the DAG is parsed, and the files that were searched.

        :param folder: the folder of the DAG's file.
        :param datasets: the datasets of the gate, as far as they are known; None if they are not.
        """

    def own_mistakes(self) -> Iterator[str]:
        """Mistakes in the arguments that only this kind of gate has."""
        yield from ()

    def read_settings(self) -> None:
        """Gives the settings that were templates values of their types: Airflow renders strings."""
        GateOperator.common_arguments.read_settings(self, self.open_settings)

    def prepare_template(self) -> None:
        """Checks the gate; Airflow calls this for each task of a DAG file that it has parsed.

        :raises GateMisconfiguredError: there is a mistake that no template can correct.
        """
        from dqx_airflow.operators.parse_check import require_sound

        require_sound(self)

    @classmethod
    def partial(cls, **kwargs: Any) -> Any:
        """Like `BaseOperator.partial`; also checks the mapped arguments.

        :raises GateMisconfiguredError: there is a mistake that no template can correct.
        """
        from dqx_airflow.operators.parse_check import checked_partial, require_sound_partial

        require_sound_partial(cls, kwargs)
        return checked_partial(super().partial(**kwargs))

    def render_template(
        self, content: Any, context: Any, jinja_env: Any = None, seen_oids: set[int] | None = None
    ) -> Any:
        """Renders like Airflow, but leaves paths unchanged."""
        # Airflow 3.1 takes the method `resolve` of a path for its own.
        if isinstance(content, PurePath):
            return content
        return super().render_template(content, context, jinja_env, seen_oids)

    @_without_frames
    def execute(self, context: Any) -> str:
        """Returns the outcome, "passed" or "warned" (or "blocked", if that is a warning).

        :raises GateBlockedError: the data breaks a rule.
        :raises GateBrokenError: a rule could not be evaluated.
        :raises GateMisconfiguredError: the gate cannot run as it is written.
        :raises GateInfrastructureError: there is no report; the task is retried as it says.
        """
        self.report = None
        return self._judge(self.prepared_request(context), context)

    def prepared_request(self, context: Any) -> GateRequest:
        """The request of this task run with everything that its job reads, after all checks.

        :raises GateMisconfiguredError: the gate cannot run as it is written.
        """
        self.read_settings()
        self._check_settings()
        self.request = self.build_request(context)
        return self.check_source(self.request)

    @property
    def results_location(self) -> ResultsLocation:
        """The location of the results, once there is a request."""
        return self._results_location

    @property
    def databases(self) -> Mapping[str, DatabaseConnection]:
        """The databases that the request reads, by connection, once there is one."""
        return self._databases

    def _judge(self, request: GateRequest, context: Any) -> str:
        """Runs the job of a request, unless this attempt has its reports, or a batch has judged it,
        and ends the task."""
        from dqx_airflow.operators.ending import require_reports, stored_reports

        started = time.time()
        self.request = request
        connection = require_connection(self._conn_id) if self.submit is None else None
        reports = stored_reports(request, self._results_location)
        if reports is None and self.batch is not None:
            from dqx_airflow.operators.batched_reports import reports_of_batch

            reports = reports_of_batch(self, request, context)
        if reports is None and self.submit is not None:
            ending = self._run_on_service(self.submit, request, context, started)
            reports = require_reports(request, self._results_location, ending, self.log)
        elif reports is None:
            from dqx_airflow.datasets.databases import in_environment

            with self._results_location.in_environment(), in_environment(self._databases):
                ended = self.run_job(request, connection, context)
            ending = ended or self._defer(self._trigger(request, started))
            reports = require_reports(request, self._results_location, ending, self.log)
        return self._end_task(reports, context)

    def _run_on_service(
        self, submitter: Submitter, request: GateRequest, context: Any, started: float
    ) -> Ending:
        """Runs the job on a service and returns how it ended; with `deferrable` defers the task."""
        from dqx_airflow.operators.ending import ending_of_event
        from dqx_airflow.operators.trigger import wait_here

        values = {
            field.name: self.render_template(getattr(submitter, field.name), context)
            for field in fields(submitter)  # type: ignore[arg-type]
        }
        job = self.start_on_service(replace(submitter, **values), request, self._results_location)  # type: ignore[type-var]
        trigger = self._trigger(request, started)
        if self.deferrable:
            self._defer(trigger)
        try:
            event = wait_here(trigger)
        except BaseException:
            self.on_kill()
            raise
        finally:
            self._discard(job.request)
        return ending_of_event(event, request.timeout_s)

    @_without_frames
    def execute_complete(self, context: Any, event: dict[str, Any]) -> str:
        """Continues a deferred gate when its driver has ended; returns and raises as `execute`."""
        from dqx_airflow.operators.ending import ending_of_event, require_reports
        from dqx_airflow.operators.results_location import require_results_location
        from dqx_airflow.values import GateRequest, from_json

        self._results_location = require_results_location(self.results_root, self.results_conn_id)
        self.request = request = from_json(GateRequest, event["request"])
        self.log.info("date %s, %s", request.run_key.date.isoformat(), request.date_from)
        if stored := event.get("stored"):
            self._discard(stored)
        ending = ending_of_event(event, request.timeout_s)
        reports = require_reports(request, self._results_location, ending, self.log)
        return self._end_task(reports, context)

    def get_openlineage_facets_on_start(self) -> Any:
        """The datasets as inputs, for the OpenLineage provider of Airflow; none where the job
        names them itself."""
        from airflow.providers.openlineage.extractors import OperatorLineage

        from dqx_airflow.lineage.events import bare_inputs

        refs = () if self.job_sends_events() else _refs(self.dataset_arguments())
        return OperatorLineage(inputs=_Stated(bare_inputs(refs)), outputs=_Stated())

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """The datasets with their verdicts, those to which rows were promoted, and all tests;
        without a report, as at the start."""
        from airflow.providers.openlineage.extractors import OperatorLineage

        from dqx_airflow.lineage import events

        request = self.request
        report = self.report
        if request is None or report is None or self.job_sends_events():
            return self.get_openlineage_facets_on_start()
        catalog = request.parent.namespace if request.parent else events.DEFAULT_NAMESPACE
        return OperatorLineage(
            inputs=_Stated(events.inputs(request, report, catalog=catalog)),
            outputs=_Stated(events.promoted(report, catalog=catalog)),
            run_facets={"test": events.tests(report)},
        )

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> Any:
        """The same as on success: a gate that blocks has a report."""
        return self.get_openlineage_facets_on_complete(task_instance)

    def dataset_arguments(self) -> list[tuple[str, Any]]:
        """The datasets and their settings in the DAG."""
        return list(self.datasets.items()) if isinstance(self.datasets, Mapping) else []

    def _end_task(self, reports: Sequence[GateReport], context: Any) -> str:
        """Reports the outcome to everyone who waits for it, and ends the task with it."""
        from dqx_airflow.operators.gate_metrics import emit_metrics, emit_open_slices
        from dqx_airflow.operators.notifications import run_callbacks
        from dqx_airflow.operators.outcome import combined_report, end_task
        from dqx_airflow.operators.same_cause import same_cause
        from dqx_airflow.operators.webhooks import send_after, sender
        from dqx_airflow.values import Outcome

        gate = self.gate or f"{context['ti'].dag_id}.{context['ti'].task_id}"
        self.report = report = combined_report(reports, gate)
        self._same_cause = same_cause(context, reports, self._results_location)
        self._push_summary(report, reports, context)
        emit_metrics(gate, context, report)
        run_keys = [one.run_key for one in reports]
        emit_open_slices(gate, context, run_keys, self._results_location)
        send_after(self, sender(reports, self._results_location))
        self._log_report(report, reports)
        if report.outcome is Outcome.BLOCKED and self.on_violation == "ask":
            self._ask(reports, context)
        ending = end_task(report, self.on_violation)
        self._update_assets(report, reports, context)
        if report.outcome is not Outcome.PASSED:
            run_callbacks(self.on_warning_callback, context)
        return ending

    def _push_summary(
        self, report: GateReport, reports: Sequence[GateReport], context: Any, **about: Any
    ) -> None:
        """Pushes the summary of the reports.

        :param about: the `question` for a person, or the `decision` after its answer.
        """
        from dqx_airflow.operators.summary import XCOM_KEY, summaries_of_parts, summary

        content = {
            **summary(report, reports),
            **summaries_of_parts(reports),
            "results_root": self._results_location.root,
            "date_from": self.request.date_from[:_LONGEST_SOURCE] if self.request else "",
            "same_cause": self._same_cause,
            "question": None,
            "decision": None,
            **about,
        }
        context["ti"].xcom_push(key=XCOM_KEY, value=content)

    def _log_report(self, report: GateReport, reports: Sequence[GateReport]) -> None:
        from dqx_airflow.operators.report_log import part_lines, report_entries
        from dqx_airflow.values import Outcome

        for line in part_lines(reports):
            self.log.info("%s", line)
        is_failing = report.outcome is Outcome.BLOCKED and self.on_violation == "fail"
        fails = is_failing or report.outcome is Outcome.BROKEN
        for entry in report_entries(report, self._results_location.root, fails=fails):
            getattr(self.log, entry.level)("%s", entry.text)

    def _update_assets(
        self, report: GateReport, reports: Sequence[GateReport], context: Any
    ) -> None:
        """Leaves only those outlets for which Airflow emits an update."""
        from dqx_airflow.operators.gate_assets import announce, certified_reports
        from dqx_airflow.operators.gate_request import partition_keys
        from dqx_airflow.operators.outcome import combined_report

        is_whole = self.request is None or self.request.selection is None
        keys: list[str] = []
        announced = report
        if self.certify_partitions and self.request is not None:
            certified = certified_reports(reports)
            keys = partition_keys(self.request, [one.run_key.date for one in certified])
            if certified:
                announced = combined_report(certified, report.run_key.gate)
        self.outlets = announce(
            announced,
            self.outlets,
            context,
            is_announced=is_whole or self.promote_partial,
            partitions=keys,
        )

    def _ask(self, reports: Sequence[GateReport], context: Any, *, is_again: bool = False) -> None:
        """Parks the task until someone answers; returns if no one could accept the data.

        :raises GateBlockedError: someone has answered, or Airflow shows, a question about other
            data.
        """
        from dqx_airflow.operators.ask import ask
        from dqx_airflow.operators.notifications import run_callbacks
        from dqx_airflow.operators.webhooks import sender
        from dqx_airflow.results.decisions import why_not_acceptable
        from dqx_airflow.values import Outcome

        blocked = [report for report in reports if report.outcome is Outcome.BLOCKED]
        if any(report.answered for report in blocked):
            by = f" {self._answer}" if self._answer else ""
            reason = f"the answer{by} no longer applies, since data or rules have changed"
            self._refuse(reason, _ELSEWHERE, reports, context)
        objections = [why for why in map(why_not_acceptable, blocked) if why]
        if objections:
            self.log.warning("no one is asked: %s", "; ".join(dict.fromkeys(objections)))
            return
        begins: list[Callable[[Any], Any]] = [partial(self._waits, reports)]
        if not is_again:
            begins += [partial(run_callbacks, self.on_warning_callback)]
            begins += [sender(reports, self._results_location)]
        ask(reports, context, timeout=self._ask_timeout, default=self.ask_default, before=begins)
        shown = "Airflow shows the question that an earlier attempt has asked, about other data"
        self._refuse(shown, _ELSEWHERE, reports, context)

    def _waits(self, reports: Sequence[GateReport], context: Any) -> None:
        """Says in XCom and in the results store that the gate waits for an answer."""
        from dqx_airflow.errors import StoreError
        from dqx_airflow.operators.ask import question_with, write_question
        from dqx_airflow.results.query import StoredResults

        assert self.report is not None
        question = question_with(self._ask_timeout, self.ask_default)
        self._push_summary(self.report, reports, context, question=question.summary)
        location = self._results_location
        results = StoredResults(location.root, location.storage_options)
        try:
            write_question(results, reports, question)
        except StoreError as error:
            self.log.warning("`dql incidents` will not say that the gate waits: %s", error)

    def _refuse(
        self, decision: str, advice: str, reports: Sequence[GateReport], context: Any
    ) -> NoReturn:
        """Ends the task for the decision of a person, which notifications repeat.

        :raises GateBlockedError: always.
        """
        from dqx_airflow.diagnostics.verdicts import headline

        assert self.report is not None
        self._push_summary(self.report, reports, context, decision=decision)
        raise GateBlockedError("; ".join(filter(None, [decision, advice, headline(self.report)])))

    @property
    def _ask_timeout(self) -> timedelta | None:
        from datetime import timedelta

        given = self.ask_timeout
        return timedelta(seconds=given) if isinstance(given, int | float) else given

    @_without_frames
    def answered(self, context: Any, event: dict[str, Any], judged: list[str]) -> str:
        """Continues a gate that asked, with the answer; returns and raises as `execute`.

        :param judged: the run ids of the reports that the answer is about.
        """
        from dqx_airflow.errors import StoreError
        from dqx_airflow.operators.ask import answer_of, record
        from dqx_airflow.operators.ending import stored_reports
        from dqx_airflow.operators.outcome import combined_report
        from dqx_airflow.operators.same_cause import same_cause
        from dqx_airflow.results.query import StoredResults

        answer = answer_of(event, self._ask_timeout)
        self.request = request = self.check_source(self.build_request(context))
        reports = stored_reports(request, self._results_location) or ()
        if [report.run_id for report in reports] != judged:
            raise GateInfrastructureError("the report that the answer is about is gone: run again")
        name = self.gate or f"{context['ti'].dag_id}.{context['ti'].task_id}"
        self.report = combined_report(reports, name)
        self._same_cause = same_cause(context, reports, self._results_location)
        if answer.accepts and not answer.reason:
            self._push_summary(self.report, reports, context)  # as before the question
            self.log.warning("accepting the data needs a reason: the gate asks again")
            self._ask(reports, context, is_again=True)
        options = self._results_location.storage_options
        try:
            record(StoredResults(request.results_root, options), reports, answer)
        except StoreError as error:
            raise GateInfrastructureError(f"the answer cannot be stored: {error}") from None
        self.log.info("%s %s", "accepted" if answer.accepts else "kept blocked", answer)
        if not answer.accepts:
            self._refuse(f"kept blocked {answer}", "", reports, context)
        self._answer = str(answer)
        return self._judge(replace(request, answered=answer.at.isoformat()), context)

    def _check_settings(self) -> None:
        """Repeats the checks of the DAG parser: mapped gates are created here.

        :raises GateMisconfiguredError: an argument is invalid.
        """
        from dqx_airflow.operators.mistakes import lost_mistakes, setting_mistakes, unread_mistakes

        # What a template has lost may look like another mistake: it is the cause.
        mistakes = [*lost_mistakes(self, self._written)] or [
            *setting_mistakes(self),
            *unread_mistakes(self, self.open_settings),
        ]
        if mistakes:
            raise GateMisconfiguredError("; ".join(mistakes))

    def build_request(self, context: Any) -> GateRequest:
        """The request of this task run, templates rendered and source inlined.

        :raises GateMisconfiguredError: the gate cannot run as it is written.
        """
        from dqx_airflow.operators.data_date import data_date
        from dqx_airflow.operators.gate_request import build_request, origin_of

        chosen = data_date(self.date, self._date_template, context, self.log)
        source = self.read_source(context, chosen.on)
        request, self._results_location, self._databases = build_request(
            self,
            context,
            chosen,
            source,
            self.dataset_settings(partial(self.render_template, context=context)),
            origin_of(self, self.source_file),
            self.execution_timeout,
        )
        return request

    def dataset_settings(self, render: Callable[[Any], Any]) -> Mapping[str, DatasetSetting]:
        """The settings of each dataset, by name; called when the source is read.

        :param render: renders what Airflow has not rendered, the values of a `DatasetRef`.

        :raises GateMisconfiguredError: they are invalid.
        """
        from dqx_airflow.operators.gate_request import rendered

        if not isinstance(self.datasets, Mapping):
            raise GateMisconfiguredError(
                f"datasets={self.datasets!r}: write a mapping of names to paths or tables"
            )
        return {
            name: rendered(f"datasets[{name!r}]", given, render)
            for name, given in self.datasets.items()
        }

    def _trigger(self, request: GateRequest, started: float) -> GateTrigger:
        from dqx_airflow.operators.trigger import trigger_of

        assert self.driver is not None
        limit = self.execution_timeout
        return trigger_of(
            self.driver,
            request,
            results_conn_id=self.results_conn_id,
            deadline=started + limit.total_seconds() if limit else None,
            poll_interval_s=self._status_poll_interval,
        )

    def _defer(self, trigger: GateTrigger) -> NoReturn:
        self.log.info("the slot is released until %s has ended", trigger.driver_id)
        self.defer(trigger=trigger, method_name="execute_complete")
        raise AssertionError("unreachable: defer raises")
