"""Promotes good rows of a blocked gate: all rows that are not in quarantine, immediately
(`promote_valid`), or quarantined rows when they are released.

Immediately: the rows are judged again before they are promoted, so that every blocking assertion of
any severity holds for the target.

Released: rows move from a quarantine to the target of their gate, once the rules hold for them.
First the rows are marked in the quarantine with the id of the release, then one commit adds them to
the target and records the id there, then they leave the quarantine. The next release resumes one
that was killed in between: marked rows whose id is in the target have been released.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone
from functools import partial

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field, Transaction
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dqx_airflow.datasets.locations import is_table
from dqx_airflow.diagnostics.verdicts import finding
from dqx_airflow.engine.measure import measure_plan
from dqx_airflow.engine.outputs import promotion
from dqx_airflow.engine.outputs.data_files import WrittenFiles, write_files
from dqx_airflow.engine.outputs.fault_conditions import with_conditions
from dqx_airflow.engine.outputs.promoted_slices import Promoter, Slice, gate_of, recorded
from dqx_airflow.engine.outputs.promotion_target import ROWS, PromotionTarget
from dqx_airflow.engine.outputs.quarantine import Judged, blamed_in
from dqx_airflow.engine.scan.frames import ReferenceTables, rows_of
from dqx_airflow.engine.session.concurrency import jobs_called
from dqx_airflow.engine.session.sail import require_spark
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.delta_files import struct_of
from dqx_airflow.engine.sources.delta_table import frame_of_parts, log_for
from dqx_airflow.engine.sources.listing import DataFile, absolute
from dqx_airflow.engine.sources.logged_files import LoggedFiles
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.errors import RequestError, StoreError
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.failing import FailingRows, faults_of
from dqx_airflow.plan.model import MetricRequest, Plan, Scanned
from dqx_airflow.plan.predicates import lookups_of
from dqx_airflow.plan.waivers import noted, with_waivers
from dqx_airflow.results.quarantines import LINE, RELEASE, RUN_KEY, SLICE, next_change
from dqx_airflow.results.receipts import ReceiptWriter
from dqx_airflow.values import GateReport, GateRequest, RunKey, Status, Verdict
from dqx_airflow.values.report import Waiver
from dqx_airflow.values.request import most_bad_rows

_log = logging.getLogger("dqx.gate")


@dataclass(frozen=True, slots=True)
class JudgedSuite:
    """One of the suites that a job judges for a date."""

    plan: Plan
    judged: Judged
    scanned: Scanned
    waivers: tuple[Waiver, ...]
    report: GateReport

    @property
    def blocking(self) -> list[Verdict]:
        failed = self.report.with_status(Status.FAILED)
        return [verdict for verdict in failed if verdict.can_block(self.report.fail_on)]

    def with_blocking(self, change: Callable[[Verdict], Verdict]) -> GateReport:
        """The report with each blocking verdict replaced by `change(verdict)`."""
        blocking = self.blocking
        verdicts = (change(one) if one in blocking else one for one in self.report.verdicts)
        return replace(self.report, verdicts=tuple(verdicts))

    @property
    def undecided(self) -> list[Verdict]:
        """The verdicts that would break the gate if it were not blocked."""
        requires = self.judged.request.require_history or self.plan.require_history
        return [
            verdict
            for verdict in self.report.verdicts
            if verdict.can_block(self.report.fail_on)
            if verdict.status is Status.ERROR or (requires and verdict.is_not_evaluated)
        ]


@dataclass(frozen=True, slots=True)
class GoodRows:
    """The reports of the suites of a date, in the order of the suites. If the good rows are
    promoted, the reports mark the verdicts that blocked, `datasets` are the datasets that had bad
    rows, without these, and `left_out` is the number of bad rows of each. Otherwise a note of the
    blocking verdicts has the reason."""

    reports: tuple[GateReport, ...] = ()
    datasets: Mapping[str, OpenDataset] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)


def good_rows(
    spark: SparkSession, opened: Mapping[str, OpenDataset], suites: Sequence[JudgedSuite]
) -> GoodRows:
    """Decides which rows are promoted for a date on which a suite blocks."""
    references = ReferenceTables(opened, suites[0].plan.date)
    judged = [suite.judged for suite in suites]
    blamed = {name: [fault for *_, fault in blamed_in(judged, name)] for name in opened}
    bad = {
        one.name: one.quarantined or 0
        for suite in suites
        for one in suite.report.datasets
        if blamed.get(one.name)
    }
    objection = _objection(suites, references, bad)
    if objection is None:
        reduced = {name: _without(references, name, blamed[name]) for name in bad}
        with jobs_called(spark, "the rows that are left"):
            for suite in suites:
                objection = _objection_to_rest(spark, opened, reduced, suite)
                if objection is not None:
                    break
    if objection is None:
        change = partial(replace, rows_left_out=True)
        return GoodRows(tuple(suite.with_blocking(change) for suite in suites), reduced, bad)
    _log.warning("the valid rows are not promoted: %s", objection)
    change = partial(noted, note=f"the valid rows are not promoted: {objection}")
    return GoodRows(tuple(suite.with_blocking(change) for suite in suites))


def _objection(
    suites: Sequence[JudgedSuite], references: ReferenceTables, bad: Mapping[str, int]
) -> str | None:
    """The reason for promoting no row that is known without judging the rows again; None without
    one."""
    request = suites[0].judged.request
    places = dict(request.promote_to).keys() & dict(request.quarantine).keys()
    for suite in suites:
        if suite.judged.is_partial:
            return "only some assertions are selected"
        if suite.undecided:
            return f"{suite.undecided[0].name} could not be evaluated"
        of_rows = {
            (verdict.check, verdict.name)
            for verdict, own in zip(suite.judged.verdicts, suite.judged.faults, strict=True)
            if own and all(fault.request.dataset in places for fault in own)
            if not any(fault.is_of_two_datasets for fault in own)
        }
        for verdict in suite.blocking:
            if (verdict.check, verdict.name) not in of_rows:
                return f"{verdict.name} is not about single rows of a promoted dataset"
    limit = request.promote_valid or ""
    rows = {one.name: one.rows for suite in suites for one in suite.report.datasets}
    for name, count in bad.items():
        of_date = rows[name]
        if of_date is None:  # no assertion counts them
            of_date = rows_of(references.opened[name], references.date).count()
        if count > most_bad_rows(limit, of_date):
            return f"{count} of {of_date} rows of {name} are bad, more than {limit}"
    return None


def _without(references: ReferenceTables, name: str, faults: Sequence[FailingRows]) -> OpenDataset:
    """The dataset reduced to the rows of the date that have none of the faults."""
    dataset = references.opened[name]
    frame, conditions = with_conditions(dataset, references, [*dict.fromkeys(faults)])
    is_bad = " OR ".join(f"({condition})" for condition in conditions.values())
    kept = dataset.read({references.date}).columns
    rows = frame.where(f"NOT coalesce({is_bad}, false)").select(*map(quote_name, kept))
    return replace(dataset, read=lambda _: rows)


def _objection_to_rest(
    spark: SparkSession,
    opened: Mapping[str, OpenDataset],
    reduced: Mapping[str, OpenDataset],
    suite: JudgedSuite,
) -> str | None:
    """The first blocking assertion that fails or cannot be evaluated for the good rows, as a
    reason; None if there is none."""
    request = suite.judged.request
    plan = suite.plan
    fail_on = suite.report.fail_on
    started = suite.report.started_at
    asked = {
        one
        for assertion, verdict in zip(plan.assertions, suite.judged.verdicts, strict=True)
        if verdict.can_block(fail_on)
        for one in assertion.requests
        if one.date in (None, plan.date) and _reads(one, reduced)
    }
    known = suite.scanned.of(one for one in plan.requests if one not in asked)
    read = {**opened, **{name: _scanned_whole(one) for name, one in reduced.items()}}
    measured = measure_plan(spark, read, plan, known)
    verdicts = evaluate(plan, measured, request.skip_dates, now=started, sample_rows=0)
    verdicts = with_waivers(verdicts, suite.waivers, started)
    for before, verdict in zip(suite.judged.verdicts, verdicts, strict=True):
        if before.can_block(fail_on) and verdict.can_block(fail_on):
            if verdict.status is Status.ERROR:
                return f"{verdict.name} could not be evaluated for the other rows"
            if verdict.status is Status.FAILED:
                return f"without the bad rows, {verdict.name}: {finding(verdict)}"
    return None


def _reads(request: MetricRequest, datasets: Mapping[str, object]) -> bool:
    """True if the value of a request may change when rows of these datasets are removed."""
    looked_up = (lookup.reference for lookup in lookups_of(request))
    return not datasets.keys().isdisjoint((*request.datasets, *looked_up))


def _scanned_whole(dataset: OpenDataset) -> OpenDataset:
    """The dataset without its log and its list of files, so that a scan reads all of its rows."""
    committed = dataset.log.committed_at if dataset.log is not None else dataset.last_commit
    return replace(dataset, log=None, read_files=None, last_commit=committed)


_ORIGIN = "dqx: quarantined"
_MARK = "dqx: mark"
_KNOWN = "dqx:release:"


class HeldRowsError(RequestError):
    """The rules do not hold for the target with the rows that pass."""


@dataclass(frozen=True)
class Release:
    """A release of the quarantined rows of one run key of a gate into its target.

    :param name: the name of the dataset.
    :param suites: a request and its plan for each suite of the gate.
    :param waivers: the waivers of all gates.
    :param facts: the author and the reason of the release, recorded in the commits.
    :param receipts: writes the receipt of the commit.
    """

    name: str
    suites: Sequence[tuple[GateRequest, Plan]]
    quarantine: str
    target: str
    key: RunKey
    waivers: tuple[Waiver, ...]
    facts: Mapping[str, str]
    receipts: ReceiptWriter

    def run(self, spark: SparkSession) -> int:
        """Releases the rows that pass, and returns their number.

        :raises RequestError: the gate has not promoted the date.
        :raises HeldRowsError: the rules do not hold for the target with these rows.
        :raises PromotionError: the target rejects them.
        """
        require_spark(spark, "no rows are released")
        if is_table(self.target):
            raise RequestError(
                f"rows are not released into {self.target}, a table of a catalog",
                f"give the path of a Delta table; a folder here is ./{self.target}",
            )
        request = self.suites[0][0]
        started = datetime.now(timezone.utc)
        named = str(uuid.uuid4())
        refs = {ref.name: ref for suite, _ in self.suites for ref in suite.datasets}
        there = replace(
            refs[self.name], path=absolute(self.target), table=None, query=None, conn_id=None
        )
        there = replace(there, format="delta", schema=None, filter=None, options=(), version=None)
        refs[self.name] = replace(there, timestamp=None)
        opened = {name: open_dataset(spark, ref) for name, ref in refs.items()}
        dataset = opened[self.name]
        index = self.key.map_index if self.key.map_index >= 0 else None
        to = PromotionTarget(
            spark,
            dataset,
            absolute(self.target),
            Slice(self.key.date if dataset.dates else None, request.promote_slice),
            Promoter(self.key.gate, self.key.dag_run_id, index, ""),
            None,
            named,
            started,
        )
        with promotion.failures(to):
            known = self._promoted(to)
            if known:
                self._rewrite(spark, lambda rows: rows.where(_is_not_of(known)))
            marked = self._rewrite(
                spark,
                lambda rows: self._marked(rows, opened, to),
                f"{RELEASE} LIKE '%{named}'",
                at_least=1,
            ).counted
            if marked:
                self._append(to, named, known, marked)
                self._rewrite(spark, lambda rows: rows.where(_is_not_of([named])))
        return marked

    def _promoted(self, to: PromotionTarget) -> list[str]:
        """The ids of the releases recorded in the target.

        :raises RequestError: the gate has not promoted these rows' date there.
        """
        table = to.table()
        numbers = {} if table is None else to.numbers_of(table)
        notes = recorded(numbers).get(to.replaced.region.name, {})
        if gate_of(notes.get("gate"), numbers) != self.key.gate:
            raise RequestError(
                f"gate {self.key.gate} has not promoted {to.slice} to {self.target}",
                "run the gate first: a release adds to the rows that it has promoted",
            )
        if table is not None and (demands := promotion.demands_of(table)):
            raise RequestError(f"rows are not released into a table with {', '.join(demands)}")
        if notes["promote"] > to.order:
            raise to.late()
        return sorted(name[len(_KNOWN) :] for name in numbers if name.startswith(_KNOWN))

    # The quarantine

    def _held(self, spark: SparkSession) -> tuple[DataFrame, list[DataFile]]:
        """The quarantined rows of the run key, and the files that contain them."""
        table = DeltaTable(self.quarantine)
        if RELEASE not in {column.name for column in table.schema().fields}:
            table.alter.add_columns([Field(RELEASE, "string")])
        log = log_for(spark, table, self.quarantine)
        files = LoggedFiles(pa.table(table.get_add_actions(flatten=True)))
        numbers = files.where(f"partition.{RUN_KEY}", lambda key: key == str(self.key))
        facts = (files.values(name, numbers) for name in ("path", "size_bytes"))
        own = [DataFile(path, size, 0) for path, size in zip(*facts, strict=True)]
        return frame_of_parts(spark, log, log.parts_with(own)), own

    def _rewrite(
        self,
        spark: SparkSession,
        change: Callable[[DataFrame], DataFrame],
        count_if: str = "false",
        at_least: int = 0,
    ) -> WrittenFiles:
        """Replaces the rows of the run key by `change(rows)`, in one commit, if that changes
        them."""
        rows, own = self._held(spark)
        table = DeltaTable(self.quarantine)
        changed = change(rows).drop(RUN_KEY)
        files = write_files(
            spark,
            changed,
            self.quarantine,
            f"release-{uuid.uuid4()}",
            constants={RUN_KEY: str(self.key)},
            extremes_of=(SLICE,),
            count_if=count_if,
        )
        if files.counted < at_least:
            return files
        if at_least and files.rows != rows.count():
            raise StoreError(f"the rows at {self.quarantine} have changed meanwhile", "try again")
        change_of_gate = next_change(table, self.key.gate_instance)
        properties = CommitProperties(
            custom_metadata=dict(self.facts), app_transactions=[change_of_gate]
        )
        promotion.exchange(table, files.adds, [(file.path, file.size) for file in own], properties)
        return files

    def _marked(
        self, rows: DataFrame, opened: Mapping[str, OpenDataset], to: PromotionTarget
    ) -> DataFrame:
        """The quarantined rows, with a mark on those that pass together with the rows of the
        target.

        :raises HeldRowsError: the rules do not hold for the target with them.
        """
        dataset = opened[self.name]
        on = self.key.date
        origin = quote_name(_ORIGIN)
        typed, is_whole = _typed(rows, to)
        there = rows_of(dataset, on).where(to.replaced.condition or "true")
        whole = there.unionByName(typed.where(is_whole), allowMissingColumns=True)
        together = {**opened, self.name: _with_rows(to, whole)}
        parts = self._judged(together, to)
        faults = [*dict.fromkeys(fault for *_, fault in blamed_in(parts, self.name))]
        bad = "false"
        frame = whole
        if faults:
            references = ReferenceTables(together, on)
            frame, conditions = with_conditions(together[self.name], references, faults)
            bad = " OR ".join(f"({condition})" for condition in conditions.values())
            rest = frame.where(f"{origin} IS NULL OR NOT coalesce({bad}, false)")
            rest = rest.select(*map(quote_name, whole.columns))
            parts = self._judged({**opened, self.name: _with_rows(to, rest)}, to)
        for part in parts:
            _require_passed(part)
        mark = f"trim(concat_ws(' ', {origin}.{RELEASE}, {quote_literal(to.run_id)}))"
        mark = f"CASE WHEN NOT coalesce({bad}, false) THEN {mark} ELSE {origin}.{RELEASE} END"
        judged = frame.where(f"{origin} IS NOT NULL").select(
            F.expr(mark).alias(_MARK), f"{origin}.*"
        )
        judged = judged.drop(RELEASE).withColumnRenamed(_MARK, RELEASE)
        return judged.unionByName(typed.where(f"NOT ({is_whole})").select(f"{origin}.*"))

    def _judged(self, opened: Mapping[str, OpenDataset], to: PromotionTarget) -> list[Judged]:
        schemas = {name: dataset.schema for name, dataset in opened.items()}
        now = to.started
        judged = []
        for request, plan in self.suites:
            skipped = request.skip_dates
            scanned = measure_plan(to.spark, opened, plan, Scanned())
            verdicts = evaluate(plan, scanned, skipped, now=now, sample_rows=0)
            own = {self.key.gate, f"{self.key.gate}/{plan.suite}"}
            waivers = [one for one in self.waivers if one.gate in own]
            verdicts = with_waivers(verdicts, waivers, now)
            faults = faults_of(plan, verdicts, scanned, schemas, skip_dates=skipped, now=now)
            judged.append(Judged(request, to.run_id, verdicts, faults, is_partial=False))
        return judged

    # The target

    def _append(self, to: PromotionTarget, named: str, known: Sequence[str], marked: int) -> None:
        """Adds the marked rows to the target, in one commit.

        :raises PromotionError: the target, or the quarantine, has changed meanwhile.
        """
        rows, _ = self._held(to.spark)
        typed, _ = _typed(rows.where(f"{RELEASE} LIKE '%{named}'"), to)
        names = list(map(quote_name, to.dataset.struct.names))
        table = DeltaTable(to.location)
        # Nothing is released unless all verdicts let it.
        receipts = replace(self.receipts, judged=[(request, ()) for request, _ in self.suites])
        to = to.with_statement(receipts, self.facts)
        columns = list(table.metadata().partition_columns)
        released = typed.select(*names)
        to.check_demands(struct_of(table), released)
        files = promotion.write_promoted(to, released, f"released-{named}", columns)
        if files.rows != marked or self._promoted(to) != known:
            raise to.failed("another release, or the gate, has run at the same time", "try again")
        if files.counted:
            raise to.outside(f"{files.counted} of {files.rows}")
        numbers = {f"dqx:promote:{to.replaced.region.name}": to.order, f"{_KNOWN}{named}": 1}
        properties = CommitProperties(
            custom_metadata={**to.facts, **self.facts, ROWS: str(files.rows)},
            app_transactions=[Transaction(name, number) for name, number in numbers.items()],
        )
        promotion.exchange(table, files.adds, (), properties)
        receipts.write(to.statement, DeltaTable(to.location))


def _typed(rows: DataFrame, to: PromotionTarget) -> tuple[DataFrame, str]:
    """Casts quarantined rows to the types of the dataset; values cast from strings were kept as
    strings. Also returns a Spark SQL condition: the row is of the date, and no value was lost in
    the cast."""
    held = {one.name: one.dataType for one in rows.schema}
    origin = quote_name(_ORIGIN)
    broken = [f"NOT coalesce({to.replaced.condition or 'true'}, false)"]
    columns = []
    if LINE in held:
        broken.append(f"{origin}.{LINE} IS NOT NULL")
    for wanted in to.dataset.struct:
        name = quote_name(wanted.name)
        kind = wanted.dataType.simpleString()
        sql = name if held.get(wanted.name) == wanted.dataType else f"try_cast({name} AS {kind})"
        columns.append(F.expr(sql).alias(wanted.name))
        if sql != name:
            broken.append(f"({origin}.{name} IS NOT NULL AND {name} IS NULL)")
    whole = F.struct(*map(quote_name, rows.columns)).alias(_ORIGIN)
    return rows.select(*columns, whole), f"NOT ({' OR '.join(broken)})"


def _is_not_of(releases: Sequence[str]) -> str:
    """Spark SQL that is true for rows that were not released by some releases."""
    ids = ", ".join(map(quote_literal, releases))
    return f"NOT exists(split(coalesce({RELEASE}, ''), ' '), id -> id IN ({ids}))"


def _with_rows(to: PromotionTarget, rows: DataFrame) -> OpenDataset:
    """The target dataset with `rows` as the rows of the date."""
    dataset = to.dataset
    is_other = f"NOT coalesce({to.replaced.of_date or 'true'}, false)"

    def read(dates: Collection[date | None]) -> DataFrame:
        if {*dates} <= {None, to.slice.on}:
            return rows
        return rows.unionByName(dataset.read(dates).where(is_other), allowMissingColumns=True)

    return replace(_scanned_whole(dataset), read=read)


def _require_passed(part: Judged) -> None:
    """Rejects a suite that blocks.

    :raises HeldRowsError: a blocking assertion does not hold, or could not be evaluated.
    """
    for one in part.verdicts:
        if one.can_block(part.request.fail_on) and one.status in (Status.FAILED, Status.ERROR):
            what = one.reason if one.status is Status.ERROR else finding(one)
            raise HeldRowsError(f"nothing is released: with the rows that pass, {one.name}: {what}")
