"""Mistakes in the datasets of a gate and in the targets of their rows, as far as they are known
when the DAG is parsed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from dqx_airflow import values
from dqx_airflow.datasets import settings as of_datasets
from dqx_airflow.datasets.locations import two_slashes
from dqx_airflow.datasets.write_locations import check_locations, check_promotion, check_quarantine
from dqx_airflow.errors import RequestError
from dqx_airflow.operators import gate_request
from dqx_airflow.operators.data_date import given_date
from dqx_airflow.operators.exceptions import GateMisconfiguredError, mistakes_of
from dqx_airflow.operators.templates import has_open, is_open
from dqx_airflow.values import Attempt, DatasetRef, RunKey, SourceFile

if TYPE_CHECKING:
    from dqx_airflow.dql.nodes import Suite

_Pairs: TypeAlias = "tuple[tuple[str, str], ...]"

_LOCATIONS = ("path", "table", "query")
"""The settings for the location of a dataset."""
_OF_A_FORMAT = ("options", "schema", "timestamp", "version")
"""The settings that only some formats have."""


@dataclass(frozen=True, slots=True)
class ExaminedDataset:
    """A dataset as far as it is known, and its mistakes."""

    ref: DatasetRef
    mistakes: tuple[str, ...] = ()


def data_mistakes(gate: Any) -> tuple[list[str], tuple[DatasetRef, ...] | None]:
    """Mistakes in the datasets of a gate, its date, and the targets of its rows; and the datasets,
    None if they are unknown.

    What is unknown about a dataset is assumed to suit its source.
    """
    mistakes, refs = _datasets(gate)
    if gate.date is not None and not is_open(gate.date):
        mistakes += mistakes_of(lambda: given_date(gate.date, gate.date))
    if refs is not None and gate.names_all_datasets:
        mistakes += location_mistakes(gate, refs)
    return mistakes, refs


def _datasets(gate: Any) -> tuple[list[str], tuple[DatasetRef, ...] | None]:
    given = gate.datasets
    no_mapping = f"datasets={given!r}: write a mapping of names to paths or tables"
    if given is None:
        return [no_mapping] if gate.names_all_datasets else [], None
    is_left_to_function = gate.is_set_by_function and not given
    if is_open(given) or is_left_to_function:
        return [], None
    if not isinstance(given, Mapping):
        return [no_mapping], None
    examined = [examine_dataset(str(name), setting) for name, setting in given.items()]
    mistakes = [mistake for dataset in examined for mistake in dataset.mistakes]
    return mistakes, tuple(dataset.ref for dataset in examined)


def location_mistakes(gate: Any, refs: Sequence[DatasetRef]) -> list[str]:
    """Mistakes in the targets of the rows of all the datasets of a gate.

    Templates with the same text render to the same target, so they are compared unrendered.
    """
    mistakes: list[str] = []
    request = _request_of_locations(gate, refs, mistakes)
    for check in (check_locations, check_quarantine, check_promotion):
        mistakes += mistakes_of(partial(check, request))
    return mistakes


def unchecked_promotions(
    gate: Any, suites: Sequence[Suite], refs: Sequence[DatasetRef]
) -> list[str]:
    """Datasets that a gate promotes although its suites cannot be about them."""
    from dqx_airflow.dql.checks.assertions import datasets_judged
    from dqx_airflow.plan.dataset_needs import unchecked_promotion

    judged = datasets_judged([check for suite in suites for check in suite.checks])
    names = tuple(ref.name for ref in refs)
    # A mistake in the argument itself is reported with the locations.
    promoted = _pairs(gate.promote_to, lambda: gate_request.promotions(gate.promote_to, names), [])
    return [unchecked_promotion(*pair).in_one_line for pair in promoted if pair[0] not in judged]


def _request_of_locations(
    gate: Any, refs: Sequence[DatasetRef], mistakes: list[str]
) -> values.GateRequest:
    """A request with the locations that are known, and "?" for those that are not.

    :param mistakes: collects the mistakes in single arguments.
    """
    names = tuple(ref.name for ref in refs)
    known = {ref.name: ref for ref in refs if any(getattr(ref, key) for key in _LOCATIONS)}
    quarantine = _pairs(
        gate.quarantine, lambda: gate_request.quarantine_paths(gate.quarantine, names), mistakes
    )
    promoted = _pairs(
        gate.promote_to, lambda: gate_request.promotions(gate.promote_to, names), mistakes
    )
    promote_slice = _slice(gate.promote_slice, mistakes)
    has_slice = gate.promote_to is None or bool(promoted)
    leaves_rows_out = bool(gate.promote_valid and quarantine and promoted)
    root = gate.results_root
    return values.GateRequest(
        RunKey("", date.min, ""),
        Attempt(1, ""),
        SourceFile("", ""),
        tuple(known.values()),
        os.fspath(root) if root and isinstance(root, str | os.PathLike) else "?",
        quarantine=tuple(pair for pair in quarantine if pair[0] in known),
        promote_to=tuple(pair for pair in promoted if pair[0] in known),
        promote_slice=promote_slice if has_slice else (),
        promote_valid="?" if leaves_rows_out else None,
    )


def _pairs(given: object, read: Callable[[], _Pairs], mistakes: list[str]) -> _Pairs:
    """The names with their locations in an argument; empty if it is unknown or wrong."""
    if is_open(given) and not isinstance(given, str):
        return ()
    try:
        return read()
    except GateMisconfiguredError as error:
        mistakes.append(str(error))
        return ()


def _slice(given: Any, mistakes: list[str]) -> _Pairs:
    """The slice that a gate promotes; "?" if it is only known when the task runs."""
    if isinstance(given, Mapping) and any(map(has_open, given.values())):
        return (("?", "?"),)
    return _pairs(given, lambda: gate_request.slice_values(given), mistakes)


def examine_dataset(name: str, given: Any) -> ExaminedDataset:
    """Examines a dataset: a path or a table, or its settings."""
    if is_open(given):
        return _examine_template(name, given)
    if isinstance(given, DatasetRef):
        settings = of_datasets.settings_of(given)
        given = {key: value for key, value in settings.items() if value is not None}
    if isinstance(given, Mapping):
        return _examine_settings(name, given)
    return _as_dataset(name, given)


def _as_dataset(name: str, given: Any) -> ExaminedDataset:
    try:
        return ExaminedDataset(of_datasets.dataset_ref(name, given))
    except RequestError as error:
        return ExaminedDataset(_unknown(name), (error.in_one_line,))


def _unknown(name: str) -> DatasetRef:
    """A dataset of which only the name is known; it may have dates."""
    return DatasetRef(name, date_column="?")


def _examine_template(name: str, given: Any) -> ExaminedDataset:
    if not isinstance(given, str) or "/" not in given:
        return ExaminedDataset(_unknown(name))
    meant = two_slashes(given)
    if meant is not None:
        mistake = f"dataset '{name}' has path={given!r}: write {meant}"
        return ExaminedDataset(_unknown(name), (mistake,))
    return ExaminedDataset(DatasetRef(name, path=given, date_column="?"))


def _examine_settings(name: str, given: Mapping[Any, Any]) -> ExaminedDataset:
    settings = {
        str(key): _as_text(value)
        for key, value in given.items()
        if key in of_datasets.SETTINGS and value not in (None, "")
    }
    known = _known_settings(settings)
    locations = {key: str(settings[key]) for key in _LOCATIONS if key in settings}
    mistakes = [
        *filter(None, [of_datasets.unknown_settings(name, given)]),
        *_location_type_mistakes(name, given, settings),
        *_sql_mistakes(name, known),
        *_schema_mistakes(name, known.get("schema")),
        *_value_mistakes(name, {**known, **locations}),
    ]
    if mistakes:
        return ExaminedDataset(_unknown(name), tuple(mistakes))
    if not locations and "conn_id" in settings:
        return ExaminedDataset(_unknown(name))  # a contract may define the table
    return _as_dataset(name, {**known, **locations})


def _known_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are known before the run; a date column that is a template is known to
    exist."""
    known = {key: value for key, value in settings.items() if not has_open(value)}
    if any(is_open(settings.get(key)) for key in ("format", *_LOCATIONS)):
        known = {key: value for key, value in known.items() if key not in _OF_A_FORMAT}
    if has_open(settings.get("date_column")):
        known["date_column"] = str(settings["date_column"])
    return known


def _location_type_mistakes(
    name: str, given: Mapping[Any, Any], settings: Mapping[str, Any]
) -> Iterator[str]:
    for key in _LOCATIONS:
        value = settings.get(key, "")
        if not isinstance(value, str) and not is_open(value):
            yield f"dataset '{name}' has {key}={given[key]!r}: write a string"


def _value_mistakes(name: str, settings: Mapping[str, Any]) -> Iterator[str]:
    for mistake in of_datasets.mistakes_in(name, settings):
        message = mistake.message
        if f"'{name}'" not in message:
            message = f"dataset '{name}': {message}"
        yield f"{message}; {mistake.hint}" if mistake.hint else message


def _sql_mistakes(name: str, known: Mapping[str, object]) -> Iterator[str]:
    if "query" not in known and "filter" not in known:
        return  # most gates have no SQL, and what reads it costs time to import
    from dqx_airflow.dql.checks.read_only_sql import objection_to_filter, objection_to_select

    for key, objection_to, advice in (
        ("query", objection_to_select, "one SELECT"),
        ("filter", objection_to_filter, "one predicate over its columns"),
    ):
        sql = known.get(key)
        if isinstance(sql, str) and (objection := objection_to(sql)) is not None:
            yield f"the {key} of dataset '{name}': {objection}; write {advice}"


def _schema_mistakes(name: str, schema: object) -> Iterator[str]:
    from dqx_airflow.metrics.types import slip_in_schema

    if isinstance(schema, str) and (slip := slip_in_schema(schema)) is not None:
        written, meant = slip
        yield (
            f"dataset '{name}' has a schema with the unknown type '{written}': did you mean "
            f"'{meant}'?"
        )


def _as_text(value: object) -> object:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.isoformat() if isinstance(value, date) else value
