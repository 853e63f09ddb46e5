"""The report of a gate as far as the summary of its task in XCom knows it.

Any task can push anything under our key, so nothing in it is trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, TypeVar

from dqx_airflow import values
from dqx_airflow.operators.summary import (
    COUNTED_AS,
    COUNTS_OF_A_CONTRACT,
    TEXTS_OF_A_CONTRACT,
    TEXTS_OF_A_VERDICT,
)
from dqx_airflow.ui.report_view import PartialView, PromotionView, ReportView
from dqx_airflow.values import DatasetSnapshot, MetricValue, Outcome, Status, Verdict
from dqx_airflow.values.output_form import output_key

T = TypeVar("T")


class Summary(dict[str, Any]):
    """The XCom value of a task under our key, as a mapping that is never changed.

    Its outcome, its view, the locations that it may be about, and those that it is about, are
    cached in it.
    """

    __slots__ = ("about", "mentioned", "outcome", "view")
    view: ReportView | None
    outcome: Outcome | None
    mentioned: frozenset[str]
    about: frozenset[str]


def outcome_of_summary(pushed: object) -> Outcome | None:
    """The outcome in the summary of a task; None for anything that is not one."""
    if isinstance(pushed, Summary):
        if not hasattr(pushed, "outcome"):
            pushed.outcome = parsed(Outcome, pushed.get("outcome"))
        return pushed.outcome
    return parsed(Outcome, pushed.get("outcome")) if isinstance(pushed, Mapping) else None


def view_of_summary(pushed: object) -> ReportView | None:
    """The view of a task's summary; None for anything that is not one.

    Any task can push anything under our key, so nothing in it is trusted.
    """
    if not isinstance(pushed, Summary):
        return _view_of(pushed)
    if not hasattr(pushed, "view"):
        pushed.view = _view_of(pushed)
    return pushed.view


def _view_of(pushed: object) -> ReportView | None:
    outcome = outcome_of_summary(pushed)
    if outcome is None or not isinstance(pushed, Mapping):
        return None
    counts = mapping_of(pushed.get("counts"))
    quarantined = mapping_of(pushed.get("quarantined"))
    versions = mapping_of(pushed.get("versions"))
    places = mapping_of(pushed.get("locations"))
    index = _whole(pushed.get("map_index"))
    return ReportView(
        run_id=_string_of(pushed.get("run_id")),
        gate=_string_of(pushed.get("gate")),
        date=parsed(date.fromisoformat, _string_of(pushed.get("date"))),
        map_index=-1 if index is None else index,
        suite=_string_of(pushed.get("suite")),
        outcome=outcome,
        headline=_string_of(pushed.get("headline")),
        counts={status: _count(counts.get(key)) for status, key in COUNTED_AS.items()},
        verdicts=tuple(
            verdict for item in list_of(pushed.get("verdicts")) if (verdict := _verdict(item))
        ),
        datasets=tuple(
            DatasetSnapshot(
                name,
                location=_string_of(places.get(name)),
                format="",
                version=_whole(versions.get(name)),
                quarantined=_whole(quarantined.get(name)),
            )
            for name in map(_string_of, list_of(pushed.get("datasets")))
        ),
        fail_on=parsed(values.Severity, pushed.get("fail_on")),
        finished_at=parsed(datetime.fromisoformat, _string_of(pushed.get("finished_at"))),
        is_whole=False,
        results_root=_string_of(pushed.get("results_root")),
        more_verdicts=_count(pushed.get("more_verdicts")),
        not_evaluated=_count(pushed.get("not_evaluated")),
        contract=_contract(pushed.get("contract")),
        promotions=_promotions(pushed),
        partial=_partial(pushed.get("partial")),
    )


def _partial(value: object) -> PartialView | None:
    fields = mapping_of(value)
    if not fields:
        return None
    selected = _count(fields.get("selected"))
    assertions = _count(fields.get("assertions"))
    return PartialView(_string_of(fields.get("selection")), selected, assertions)


def _promotions(pushed: Mapping[str, Any]) -> tuple[PromotionView, ...]:
    versions = mapping_of(pushed.get("versions"))
    validated = mapping_of(pushed.get("validated"))
    done = {
        _string_of(name): _whole(version)
        for name, version in mapping_of(pushed.get("promoted")).items()
    }
    names = [*done, *map(_string_of, list_of(pushed.get("not_promoted")))]
    places = {name: mapping_of(validated.get(name)) for name in done}
    return tuple(
        PromotionView(
            dataset=name,
            validated=_whole(versions.get(name)),
            location=_string_of(places.get(name, {}).get("location")),
            version=done.get(name),
            rows=None,
        )
        for name in names
    )


def _contract(value: object) -> values.EnforcedContract | None:
    contract = mapping_of(value)
    fields: dict[str, Any] = {
        name: _text(contract.get(output_key("EnforcedContract", name)))
        for name in TEXTS_OF_A_CONTRACT
    }
    if fields["id"] is None:
        return None
    fields |= {name: _count(contract.get(name)) for name in COUNTS_OF_A_CONTRACT}
    dialect = fields.pop("dialect") or ""
    responsible = _responsible(contract.get("responsible"))
    return values.EnforcedContract(dialect=dialect, responsible=responsible, **fields)


def _responsible(value: object) -> values.Responsible | None:
    texts = {_string_of(name): _text(text) for name, text in mapping_of(value).items()}
    responsible = values.Responsible(
        texts.get("owner"),
        tuple(filter(None, [texts.get("contacts")])),
        texts.get("channel"),
        texts.get("runbook"),
        texts.get("incident response"),
        texts.get("business hours"),
    )
    return responsible if responsible.facts else None


def _verdict(value: object) -> Verdict | None:
    row = mapping_of(value)
    status = parsed(Status, row.get("status"))
    severity = parsed(values.Severity, row.get("severity"))
    if status is None or severity is None:
        return None
    multiplier = row.get("multiplier")
    texts: dict[str, Any] = {name: _text(row.get(name)) for name in TEXTS_OF_A_VERDICT}
    texts |= {name: texts[name] or "" for name in ("expression", "expected")}
    return Verdict(
        name=_string_of(row.get("assertion")),
        check="",
        datasets=(),
        severity=severity,
        status=status,
        value=_metric_value_of(row.get("value")),
        scaled_value=_metric_value_of(row.get("scaled_value")),
        multiplier=float(multiplier) if isinstance(multiplier, int | float) else 1.0,
        rows_left_out=row.get("rows_left_out") is True,
        **texts,
    )


def parsed(parse: Callable[[Any], T], value: object) -> T | None:
    """The result of a parser for a value; None if it raises ValueError."""
    try:
        return parse(value)
    except ValueError:
        return None


def _string_of(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _text(value: object) -> str | None:
    return _string_of(value) or None


def _metric_value_of(value: object) -> MetricValue:
    return value if value is None or isinstance(value, int | float | str) else str(value)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _count(value: object) -> int:
    return max(_whole(value) or 0, 0)


def mapping_of(value: object) -> Mapping[str, Any]:
    """The value, if it is a mapping; otherwise an empty one."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: object) -> Sequence[Any]:
    """The value, if it is a list; otherwise an empty one."""
    return value if isinstance(value, list | tuple) else ()
