"""The JSON of values that users read: of commands, XCom, webhooks and the API.

It differs from `values.json_form`, which is the form of requests and reports that the package reads
again: here, one thing has one key everywhere, and the key of the run comes first and is flat.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, timedelta
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from typing import Any, TypeVar

from dqx_airflow.values.exact import exact_text
from dqx_airflow.values.json_form import number_of_json
from dqx_airflow.values.report import NOT_SHOWN
from dqx_airflow.values.request import RunKey

_KEYS = {
    "Verdict.name": "assertion",
    "DatasetSnapshot.rows": "row_count",
    "Promotion.rows": "row_count",
    "PromotionView.rows": "row_count",
    "JudgedRows.rows": "row_count",
    "PromotedRows.rows": "row_count",
    "Incident.rows": "slice",
    "Label.name": "assertion",
    "Waiver.name": "assertion",
    "ChangedAssertion.name": "assertion",
    "ChangedSetting.name": "setting",
    "PlannedAssertion.name": "assertion",
    "AssertionCost.name": "assertion",
    "DescribedDataset.name": "dataset",
    "ShadowedAssertion.name": "assertion",
    "Fault.rows": "row_count",
    "Arrival.rows": "row_count",
    "TableRow.name": "dataset",
    "TableRow.place": "location",
    "TableRow.rows": "row_count",
    "TaskRun.is_gate": "gate_task",
    "ContractDataset.name": "dataset",
    "DatasetSnapshot.name": "dataset",
    "EnforcedContract.dialect": "format",
    "ExpectedClaim.table": "dataset",
    "LakeReport.claims": "assertions",
    "LocatedDataset.name": "dataset",
    "Mutation.rows": "row_counts",
    "Proposal.agent": "author",
    "ProposedForm.claim": "after",
    "ProposedValue.param": "tunable",
    "StoredProposal.agent": "author",
}
"""The keys of members, by class and member, whose own names would mislead a reader: the name of an
assertion is its `assertion`, and a number of rows is a `row_count`."""

HEAD = ("run_id", "gate", "date", "map_index", "scheduler_run")
"""The keys with which everything about a run or a slice of a gate begins."""

T = TypeVar("T")

_EXACT = ("value", "scaled_value", "threshold")


def output_key(owner: str, member: str, *, is_duration: bool = False) -> str:
    """The key of a member in JSON: a boolean without `is_`, a duration with its unit.

    :param owner: the name of its class.
    """
    key = _KEYS.get(f"{owner}.{member}", member).removeprefix("is_")
    return f"{key}_seconds" if is_duration else key


def head_first(members: Mapping[str, T]) -> dict[str, T]:
    """The members of an object; about a gate, the keys of `HEAD` come first, in that order."""
    if "gate" not in members:
        return dict(members)
    return {**{key: members[key] for key in HEAD if key in members}, **members}


def run_head(run_id: str | None, key: RunKey | None) -> dict[str, Any]:
    """The values of `HEAD` for a run."""
    return {
        "run_id": run_id,
        "gate": None if key is None else key.gate,
        "date": None if key is None else key.date.isoformat(),
        "map_index": None if key is None else key.map_index,
        "scheduler_run": None if key is None else key.scheduler_run,
    }


def output_form(value: Any) -> Any:
    """A value in the types of JSON."""
    match value:
        case Enum():
            return output_form(value.value)
        case date():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Fraction():
            return number_of_json(value)
        case PurePath():
            return str(value)
        case Mapping():
            return {str(output_form(key)): output_form(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [output_form(item) for item in value]
    if is_dataclass(value):
        return head_first(dict(_members(value)))
    return value


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    """The keys of a dataclass with their values, beginning with the keys of its run."""
    key = getattr(value, "run_key", None)
    if isinstance(key, RunKey):
        yield from run_head(value.run_id, key).items()
    for field in fields(value):
        if isinstance(key, RunKey) and field.name in ("run_id", "run_key"):
            continue
        if field.metadata == NOT_SHOWN:
            continue
        item = getattr(value, field.name)
        is_duration = isinstance(item, timedelta)
        yield (
            output_key(type(value).__name__, field.name, is_duration=is_duration),
            output_form(item),
        )
        if isinstance(item, Fraction) and field.name in _EXACT:
            yield f"{field.name}_exactly", exact_text(item)
