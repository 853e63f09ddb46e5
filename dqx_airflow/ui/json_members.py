"""The members of the values of pages that are in their JSON."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from datetime import date, timedelta
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from dqx_airflow.results.incidents import IncidentNote
from dqx_airflow.tuning.proposals import Proposal
from dqx_airflow.values import DatasetSnapshot, EnforcedContract, Verdict

T = TypeVar("T")
NotInJson: TypeAlias = Annotated[T, "not in JSON"]
"""The type of a member that is a drawing, or that the JSON has elsewhere."""

_PLAIN = (str, int, float, NoneType, date, timedelta, Enum)
_NOT_SHOWN: Mapping[type, tuple[str, ...]] = {
    DatasetSnapshot: ("arrivals", "condition", "fields", "fingerprint", "metrics"),
    EnforcedContract: ("clauses", "sources"),
    IncidentNote: ("is_partial",),
    Proposal: ("evidence",),
    Verdict: ("failed_values", "measured"),
}
"""The members of values of the package that pages do not show."""


def members_of(kind: Any) -> dict[str, Any]:
    """The types of the members of a dataclass or a named tuple by name: its fields, and its
    properties that are strings, numbers or times."""
    hints = get_type_hints(kind)
    marked = get_type_hints(kind, include_extras=True)
    fields = getattr(kind, "__dataclass_fields__", kind.__match_args__)
    members = {name: hints[name] for name in fields if not _is_left_out(marked[name])}
    for name, member in inspect.getmembers(kind, lambda one: isinstance(one, property)):
        returned = get_type_hints(member.fget)["return"]
        if _is_plain(returned):
            members[name] = returned
    for name in _NOT_SHOWN.get(kind, ()):
        del members[name]
    return members


def _is_left_out(hint: Any) -> bool:
    return get_origin(hint) is Annotated and "not in JSON" in hint.__metadata__


def _is_plain(hint: Any) -> bool:
    """True for strings, numbers and times, also if they may be None."""
    options = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    return all(get_origin(option) is None and issubclass(option, _PLAIN) for option in options)
