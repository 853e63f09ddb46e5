"""The objects that commands print as JSON, one function each: their keys in order, and the values
in the types of JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from dqx_airflow.values import NO_REPORT
from dqx_airflow.values.output_form import head_first, output_form, run_head

if TYPE_CHECKING:
    from dqx_airflow.cli.contract.clauses import Covered
    from dqx_airflow.cli.doctor_checks.finding import Finding
    from dqx_airflow.contracts.diff.kinds import Change, Diff
    from dqx_airflow.contracts.enforcement.coverage import ClauseCoverage
    from dqx_airflow.contracts.manifest_impact import Impact
    from dqx_airflow.contracts.publishing import PublishedVersion
    from dqx_airflow.contracts.releases import ReleaseRemark
    from dqx_airflow.contracts.uses import Reliance
    from dqx_airflow.importing.imported_suite import ImportedRule
    from dqx_airflow.results.alerts import Alert, LabelKind
    from dqx_airflow.results.incidents import Incident, IncidentNote, JudgedRows
    from dqx_airflow.results.missing_reports import MissingReport
    from dqx_airflow.results.stored_labels import Label
    from dqx_airflow.results.what_changed import Changes
    from dqx_airflow.tuning.comparison import ComparedAssertion, ComparedDay
    from dqx_airflow.tuning.tuner import Tuned
    from dqx_airflow.values import Span

JsonObject: TypeAlias = "dict[str, Any]"


def alert_object(alert: Alert) -> JsonObject:
    """A failure of a past day, with its label."""
    verdict = alert.verdict
    label = alert.label
    return _object(
        run_id=alert.run_id,
        gate=alert.gate,
        date=alert.date,
        map_index=alert.map_index,
        scheduler_run=alert.scheduler_run,
        check=verdict.check,
        assertion=verdict.name,
        severity=verdict.severity,
        value=verdict.value,
        scaled_value=verdict.scaled_value,
        expected=verdict.expected,
        status=verdict.status,
        reason=verdict.reason,
        label=None if label is None else _label_object(alert.label_kind, label),
        cause=alert.cause or None,
        since=alert.since,
    )


def _label_object(kind: LabelKind | None, label: Label) -> JsonObject:
    return _object(kind=kind, author=label.author, at=label.at, reason=label.reason)


def impact_object(impact: Impact) -> JsonObject:
    """A block of DataLex that a change of its contract affects."""
    return _object(
        block=impact.block,
        contract=impact.contract,
        breaking=impact.is_breaking,
        certified=impact.is_certified,
        reasons=impact.reasons,
        advice=impact.advice,
        file=impact.span.file,
        line=impact.span.line,
    )


def compared_assertion_object(compared: ComparedAssertion) -> JsonObject:
    """An assertion of a backtest, with its days."""
    return _object(
        check=compared.check,
        assertion=compared.name,
        severity=compared.severity,
        days=[_compared_day_object(day) for day in compared.days],
    )


def _compared_day_object(day: ComparedDay) -> JsonObject:
    return _object(
        date=day.date,
        map_index=day.map_index,
        today="unknown" if day.before is None else day.before,
        proposed="unknown" if day.after is None else day.after,
        label=day.label,
        value=day.value,
        scaled_value=day.scaled_value,
        unknown=day.unknown,
    )


def contract_diff_object(diff: Diff) -> JsonObject:
    """The changes between two versions of a contract, and the bump that they require."""
    return _object(
        id=diff.new.id,
        old_version=diff.old.version,
        new_version=diff.new.version,
        due=diff.due.word,
        declared=None if diff.declared is None else diff.declared.word,
        falls_short=diff.falls_short,
        shortfall=diff.shortfall,
        changes=[_change_object(change) for change in diff.changes],
    )


def release_remark_object(remark: ReleaseRemark) -> JsonObject:
    """A contract that is new or deleted, or whose consumer pins a version that does not exist."""
    from dqx_airflow.contracts.releases import RemarkKind

    remarked: JsonObject = {"id": remark.contract.id}
    version = "old_version" if remark.kind is RemarkKind.DELETED else "new_version"
    remarked[version] = remark.contract.version
    remarked["status"] = remark.kind.value
    if remark.consumer is not None:
        remarked["team"] = remark.consumer.team
        remarked["pin"] = remark.consumer.pin
    if remark.kind is not RemarkKind.NEW:
        remarked["falls_short"] = remark.falls_short
    return remarked


def _change_object(change: Change) -> JsonObject:
    return {
        "kind": change.kind.name,
        "class": change.change_class,
        **_object(
            bump=change.bump.word,
            breaks=change.breaks,
            path=change.path,
            message=change.message,
            reason=change.kind.reason,
            old=change.old,
            new=change.new,
            old_span=_span_object(change.old_span),
            new_span=_span_object(change.new_span),
        ),
    }


def _span_object(span: Span | None) -> JsonObject | None:
    if span is None:
        return None
    return _object(file=span.file, line=span.line, column=span.column)


def covered_contract_object(covered: Covered) -> JsonObject:
    """A contract with the treatment of its clauses."""
    clauses = [_clause_object(clause) for clause in covered.clauses]
    return _object(contract=covered.id, counts=covered.counts, clauses=clauses)


def _clause_object(clause: ClauseCoverage) -> JsonObject:
    return _object(
        path=clause.path,
        file=clause.span.file,
        line=clause.span.line,
        treatment=clause.treatment,
        reason=clause.reason,
        assertions=clause.assertions,
    )


def consumer_object(reliance: Reliance) -> JsonObject:
    """A consumer of a contract, and the version that it relies on."""
    use = reliance.use
    return _object(
        consumer=use.name,
        use_case=use.how,
        pin=use.pin,
        version=reliance.version,
        concern=reliance.concern,
        file=None if use.span is None else use.span.file,
        line=None if use.span is None else use.span.line,
    )


def published_version_object(published: PublishedVersion) -> JsonObject:
    """A published version of a contract."""
    return _object(
        id=published.contract.id,
        version=published.contract.version,
        published_on=published.on,
        digest=published.digest,
        owner=published.contract.owner,
    )


def imported_rule_object(imported: ImportedRule) -> JsonObject:
    """A rule of another tool, and how it was translated."""
    return _object(
        dataset=imported.rule.dataset,
        location=imported.rule.place,
        rule=imported.rule.shown,
        outcome=imported.outcome,
        assertions=imported.names,
        reason=imported.reason or None,
    )


def incident_object(
    incident: Incident, judged: Sequence[JudgedRows], first: Incident | None = None
) -> JsonObject:
    """An incident, with the rows that it is about: those held back, and those promoted since.

    :param first: that of an earlier gate with the same cause, if there is one.
    """
    question = incident.question
    acknowledgement = incident.acknowledgement
    return _object(
        **run_head(incident.last.run_id, incident.last.run_key),
        id=incident.id,
        cause=(first or incident).id,
        slice=incident.rows,
        status=incident.status,
        outcome=incident.last.outcome,
        worst=incident.last.worst,
        error=None,
        detected_at=incident.detected_at,
        ended_at=incident.ended_at,
        time_to_detect_seconds=incident.time_to_detect,
        time_to_acknowledge_seconds=incident.time_to_acknowledge,
        time_to_end_seconds=incident.time_to_end,
        acknowledgement=None if acknowledgement is None else _note_object(acknowledgement),
        asked_at=None if question is None else question.at,
        asked_until=None if question is None else question.until,
        without_an_answer=question.text if question is not None and question.until else None,
        not_promoted=[_judged_object(rows) for rows in judged if rows.promoted is None],
        promoted=[_judged_object(rows) for rows in judged if rows.promoted is not None],
        notes=[_note_object(note) for note in incident.notes],
    )


def missing_report_object(missing: MissingReport) -> JsonObject:
    """A date without a report, with the keys of an incident."""
    acknowledgement = missing.acknowledgement
    return _object(
        run_id=None,
        gate=missing.gate,
        date=missing.date,
        map_index=missing.map_index,
        scheduler_run=None,
        id=missing.id,
        cause=missing.id,
        slice=missing.rows,
        status=NO_REPORT,
        outcome=NO_REPORT,
        worst=None,
        error=missing.error,
        detected_at=missing.at,
        ended_at=None,
        time_to_detect_seconds=None,
        time_to_acknowledge_seconds=missing.time_to_acknowledge,
        time_to_end_seconds=None,
        acknowledgement=None if acknowledgement is None else _note_object(acknowledgement),
        asked_at=None,
        asked_until=None,
        without_an_answer=None,
        not_promoted=[],
        promoted=[],
        notes=[] if acknowledgement is None else [_note_object(acknowledgement)],
    )


def changes_object(changes: Iterable[tuple[str, Changes]]) -> list[JsonObject]:
    """The changes before an incident: a title with its lines, for each gate."""
    return [
        _object(gate=gate, title=title, lines=lines)
        for gate, found in changes
        for title, lines in found.items()
    ]


def _judged_object(judged: JudgedRows) -> JsonObject:
    return {**output_form(judged), "target": judged.target or None}


def _note_object(note: IncidentNote) -> JsonObject:
    return _object(kind=note.kind, author=note.author, at=note.at, reason=note.text)


def finding_object(finding: Finding) -> JsonObject:
    """A finding of `dql doctor`, in the words of diagnostics."""
    return _object(
        check=finding.name, level=finding.level, message=finding.found, help=finding.remedy or None
    )


def tuned_object(tuned: Tuned) -> JsonObject:
    """The result of tuning for some tunables, without its proposal."""
    return _object(
        about=tuned.about, reason=tuned.reason, labels=tuned.labels, lacking=tuned.lacking
    )


def _object(**values: Any) -> JsonObject:
    return head_first({key: output_form(value) for key, value in values.items()})
