"""Mistakes in the arguments of a gate, as far as they are known before its task runs.

Templates, and outputs of other tasks, are left to the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from airflow.sdk.definitions.asset import Asset, AssetRef, BaseAsset

from dqx_airflow import values
from dqx_airflow.datasets import settings as of_datasets
from dqx_airflow.errors import RequestError
from dqx_airflow.limits import LONGEST_TIME_S, MOST_CLOCK_SKEW_HOURS, MOST_SAMPLE_ROWS
from dqx_airflow.operators import gate_arguments, gate_request
from dqx_airflow.operators.exceptions import GateMisconfigured
from dqx_airflow.operators.gate_arguments import SELECTING, has_open, is_open, one_of
from dqx_airflow.operators.outcome import OnViolation
from dqx_airflow.operators.submitters import submitter_mistake
from dqx_airflow.values import Attempt, DatasetRef, RunKey, Selection, Severity, SourceFile
from dqx_airflow.values.blank import blanks_in
from dqx_airflow.values.exact import is_finite_number
from dqx_airflow.values.request import is_clock_skew, require_whole_run

if TYPE_CHECKING:
    from dqx_airflow.dql import nodes

_Pairs: TypeAlias = "tuple[tuple[str, str], ...]"

_PLACES = ("path", "table", "query")
_GOES_ON = {
    "warn": "the next tasks would run without the rows of a blocked gate; write "
    "promote_blocked=True to promote them, promote_blocked=False to leave them out",
    "skip": "the run would be green without the rows of a blocked gate, and tasks with "
    "trigger_rule='none_failed' would run; write promote_blocked=False if that is meant",
}
_NO_ASSET = (int, float, bytes, Mapping, os.PathLike)
_OF_A_FORMAT = ("options", "schema", "timestamp", "version")
"""Settings that only some formats have."""


@dataclass(frozen=True, slots=True)
class Examined:
    """The mistakes in a gate as strings, and the files that were searched."""

    mistakes: tuple[str, ...]
    files: tuple[Path, ...] = ()


def examine(gate: Any, folder: Path | None, dag: Any = None) -> Examined:
    """All mistakes in a gate.

    :param folder: the folder of its DAG's file; the source is not read if it is unknown.
    :param dag: its DAG, which may define filters and names for templates.
    """
    mistakes = [
        *setting_mistakes(gate),
        *_outlet_mistakes(gate),
        *gate_arguments.template_mistakes(gate, dag),
    ]
    of_data, refs = data_mistakes(gate)
    mistakes += of_data
    if folder is None:
        return Examined(tuple(mistakes))
    of_source, files = gate.source_mistakes(folder, refs)
    return Examined((*mistakes, *of_source), tuple(files))


def setting_mistakes(gate: Any) -> Iterator[str]:
    """Mistakes in those arguments of a gate that are never templates."""
    if getattr(gate, "application_args", None):
        yield (
            "application_args is not supported, because the gate passes its request in "
            "them: remove it"
        )
    yield from one_of("fail_on", gate.fail_on, tuple(severity.value for severity in Severity))
    yield from one_of("on_violation", gate.on_violation, get_args(OnViolation))
    yield from _ask_mistakes(gate)
    yield from _promotion_mistakes(gate)
    yield from _partition_mistakes(gate)
    yield from _valid_mistakes(gate)
    for name in gate.true_or_false:
        value = getattr(gate, name)
        if not isinstance(value, bool):
            yield f"{name}={value!r}: write True or False"
    rows = gate.sample_rows
    if not isinstance(rows, int) or isinstance(rows, bool) or not 0 <= rows <= MOST_SAMPLE_ROWS:
        yield f"sample_rows={rows!r}: write a number from 0 to {MOST_SAMPLE_ROWS}"
    skew = gate.max_clock_skew_hours
    if not is_clock_skew(skew):
        yield (
            f"max_clock_skew_hours={skew!r}: write a number of hours, from 0 to "
            f"{MOST_CLOCK_SKEW_HOURS}"
        )
    if gate.timeout is not None and not _is_time(gate.timeout):
        yield (
            f"timeout={gate.timeout!r}: write a timedelta, or seconds, of more than 0 and at "
            "most a century, such as timedelta(minutes=10)"
        )
    yield from gate_arguments.spark_mistakes(gate)
    if gate.submit is not None and (mistake := submitter_mistake(gate.submit)):
        yield mistake
    yield from _blank_mistakes(gate)
    for name in ("results_root", "results_conn_id"):
        value = getattr(gate, name)
        if not (value is None or isinstance(value, str | os.PathLike) or is_open(value)):
            yield f"{name}={value!r}: write a string"
    if not (gate.gate is None or isinstance(gate.gate, str)):
        yield f"gate={gate.gate!r}: write a name, or leave gate out"
    yield from gate_arguments.callback_mistakes("on_warning", gate.on_warning)
    yield from _selection_mistakes(gate)
    yield from gate.own_mistakes()


_CHECKED_ELSEWHERE = (
    *("suite", "contract"),
    *("datasets", "date", "quarantine", "promote_to", "promote_slice", "promote_valid", "outlets"),
    *("fail_on", "on_violation", "ask_default", "unsupported", "severity", "conf", "variables"),
)
"""The arguments with a separate check, or in which an empty string has a meaning."""


def _blank_mistakes(gate: Any) -> Iterator[str]:
    """Mistakes for empty strings, mostly templates without a result, which would disable the
    argument."""
    given = {
        name: getattr(gate, name)
        for name in gate.checked_arguments
        if name not in (*_CHECKED_ELSEWHERE, *SELECTING)
    }
    for name in blanks_in(given):
        yield f"{name}={given[name]!r}: it is empty; write a value, or leave {name} out"


def lost_mistakes(gate: Any, given: Iterable[str]) -> Iterator[str]:
    """Mistakes for arguments that a template or the output of a task has turned into None.

    :param given: the names of the templated arguments in the DAG.
    """
    for name in given:
        is_checked = name in SELECTING or name == "date"
        if getattr(gate, name) is None and not is_checked:
            yield f"{name} was given, and is None now: return a value, or leave {name} out"


def _promotion_mistakes(gate: Any) -> Iterator[str]:
    """Mistakes in `promote_blocked`, required if a blocked gate lets the next tasks run."""
    choice, promotes = gate.promote_blocked, bool(gate.promote_to)
    # By value: an enumeration may hold the word.
    goes_on = next((why for word, why in _GOES_ON.items() if gate.on_violation == word), None)
    if not (choice is None or isinstance(choice, bool)):
        yield f"promote_blocked={choice!r}: write True or False"
    elif is_open(gate.promote_to) and not isinstance(gate.promote_to, str):
        return
    elif choice is not None and not promotes:
        yield "promote_blocked requires promote_to: set promote_to as well, or remove it"
    elif choice and gate.on_violation != "warn":
        yield (
            "promote_blocked=True promotes the rows of a blocked gate for the next tasks, which "
            f"on_violation={gate.on_violation!r} stops: write on_violation='warn', or remove it"
        )
    elif promotes and choice is None and goes_on is not None:
        yield (
            f"on_violation={gate.on_violation!r} with promote_to: {goes_on}, or on_violation='fail'"
        )


def _valid_mistakes(gate: Any) -> Iterator[str]:
    """Mistakes in `promote_valid`, which requires a promotion target and a quarantine."""
    if gate.promote_valid is None:
        return
    yield from _tried(lambda: gate_request.max_bad_rows(gate.promote_valid))
    for name in ("promote_to", "quarantine"):
        if not getattr(gate, name):
            yield f"promote_valid requires {name}: set {name} as well, or remove promote_valid"
    if gate.promote_blocked is True:
        yield (
            "promote_valid leaves bad rows out, which promote_blocked=True promotes: remove one of "
            "them"
        )
    if gate.promote_partial is True:
        yield (
            "promote_valid promotes rows that satisfy all assertions: remove promote_partial, or "
            "promote_valid"
        )


def _ask_mistakes(gate: Any) -> Iterator[str]:
    yield from one_of("ask_default", gate.ask_default, ("block", "accept"))
    limit = gate.ask_timeout
    if limit is not None and not is_open(limit) and not _is_time(limit):
        yield (
            f"ask_timeout={limit!r}: write a timedelta, or seconds, of more than 0 and at most "
            "a century"
        )
    if gate.on_violation != "ask" and not is_open(gate.on_violation):
        for name, default in (("ask_timeout", None), ("ask_default", "block")):
            if getattr(gate, name) != default:
                yield f"{name} requires on_violation='ask': set it, or remove {name}"
    elif gate.ask_default == "accept" and limit is None:
        yield "ask_default='accept' requires ask_timeout: without one no one ever waits too long"


def known_selection(gate: Any) -> Selection | None:
    """The valid selection of a gate, as far as it is known before its task runs; None if there is
    none, or it is unknown."""
    try:
        return _selection_before(gate)
    except GateMisconfigured:
        return None


def _selection_before(gate: Any) -> Selection | None:
    """The selection of a gate; None if there is none, or part of it is open until the run.

    :raises GateMisconfigured: it is invalid.
    """
    given = (gate.only, gate.tags, gate.exclude_tags, gate.severity, gate.dimensions)
    selection: Selection | None = None if any(map(has_open, given)) else gate.selection
    return selection


def _selection_mistakes(gate: Any) -> Iterator[str]:
    targets = (gate.promote_to,) if gate.promote_to else ()
    is_allowed = gate.promote_partial is True
    yield from _tried(
        lambda: require_whole_run(_selection_before(gate), targets, promote_partial=is_allowed)
    )


def _outlet_mistakes(gate: Any) -> Iterator[str]:
    """Mistakes in `outlets`, such as one that is not an asset, or that no run would update."""
    outlets = gate_arguments.as_written(_each(gate.outlets))
    for outlet in [outlets] if isinstance(outlets, str) else outlets:
        if isinstance(outlet, str):
            yield f"outlets has the string {outlet!r}: write Asset({outlet!r})"
        # An asset is a path to Python.
        elif not isinstance(outlet, BaseAsset) and isinstance(outlet, _NO_ASSET):
            yield f"outlets has {outlet!r}: write an Asset"
    if known_selection(gate) is None or gate.promote_partial is True:
        return
    if any(isinstance(outlet, BaseAsset) for outlet in _each(gate.outlets)):
        yield (
            "the assets in outlets are updated when all assertions pass, but some are selected: "
            "remove the selection, or set promote_partial=True"
        )


def _partition_mistakes(gate: Any) -> Iterator[str]:
    if gate.certify_partitions is not True:
        return
    from airflow.sdk.execution_time.context import OutletEventAccessor

    if not hasattr(OutletEventAccessor, "add_partitions"):
        yield "certify_partitions requires Airflow 3.3: remove it, or upgrade Airflow"
    elif not any(isinstance(outlet, Asset | AssetRef) for outlet in _each(gate.outlets)):
        yield (
            "certify_partitions certifies dates of assets: add one to the outlets, such as "
            "outlets=[Asset('orders')], or remove it"
        )


def selectable_suites(
    selection: Selection,
    suites: Sequence[tuple[nodes.Suite, SourceFile]],
    datasets: Sequence[DatasetRef],
    contract: values.EnforcedContract | None = None,
) -> tuple[list[nodes.Suite | None], list[str]]:
    """Reduces each suite to its selected assertions, for any date; also returns mistakes.

    With profiles the severity of an assertion depends on the date, so it is not compared then.
    """
    everything: list[nodes.Suite | None] = [suite for suite, _ in suites]
    has_profiles = any(suite.profiles for suite, _ in suites)
    undated = replace(selection, severity=None) if has_profiles else selection
    if undated == Selection():
        return everything, []
    from dqx_airflow.plan.selection import choose, choose_among, selectable_assertions

    today = date.today()
    try:
        selectables = [
            selectable_assertions(suite, source, datasets, today, contract)
            for suite, source in suites
        ]
        return [
            None if own is None else choose(suite, source, datasets, today, own, contract).suite
            for (suite, source), own in zip(suites, choose_among(selectables, undated), strict=True)
        ], []
    except RequestError as error:
        return everything, [error.in_one_line]


def data_mistakes(gate: Any) -> tuple[list[str], tuple[DatasetRef, ...] | None]:
    """Mistakes in the datasets of a gate and the targets of their rows; and the datasets, None if
    they are unknown.

    What is unknown about a dataset is assumed to suit its source.
    """
    mistakes: list[str] = []
    refs: list[DatasetRef] | None = None
    given = gate.datasets
    is_left_to_function = gate.is_set_by_function and not given
    if given is None and gate.names_all_datasets:
        mistakes.append("datasets=None: write a mapping of names to paths or tables")
    if given is not None and not is_open(given) and not is_left_to_function:
        if isinstance(given, Mapping):
            refs = []
            for name, setting in given.items():
                own, ref = _dataset(str(name), setting)
                mistakes += own
                refs.append(ref)
        else:
            mistakes.append(f"datasets={given!r}: write a mapping of names to paths or tables")
    if gate.date is not None and not is_open(gate.date):
        mistakes += _tried(lambda: gate_request.given_date(gate.date, gate.date))
    if refs is not None and gate.names_all_datasets:
        mistakes += location_mistakes(gate, refs)
    return mistakes, None if refs is None else tuple(refs)


def location_mistakes(gate: Any, refs: Sequence[DatasetRef]) -> list[str]:
    """Mistakes in the targets of the rows of all the datasets of a gate.

    Templates with the same text render to the same target, so they are compared unrendered.
    """
    mistakes: list[str] = []
    names = tuple(ref.name for ref in refs)

    def read(make: Callable[[], _Pairs], argument: object) -> _Pairs:
        if is_open(argument) and not isinstance(argument, str):
            return ()
        try:
            return make()
        except GateMisconfigured as error:
            mistakes.append(str(error))
            return ()

    known = {ref.name: ref for ref in refs if any(getattr(ref, place) for place in _PLACES)}
    quarantine = read(
        lambda: gate_request.quarantine_paths(gate.quarantine, names), gate.quarantine
    )
    promoted = read(lambda: gate_request.promotions(gate.promote_to, names), gate.promote_to)
    parts: _Pairs = ()
    if any(map(has_open, _values(gate.promote_slice))):
        parts = (("?", "?"),)
    else:
        parts = read(lambda: gate_request.slice_values(gate.promote_slice), gate.promote_slice)
    root = gate.results_root
    locations = values.GateRequest(
        RunKey("", date.min, ""),
        Attempt(1, ""),
        SourceFile("", ""),
        tuple(known.values()),
        os.fspath(root) if root and isinstance(root, str | os.PathLike) else "?",
        quarantine=tuple(pair for pair in quarantine if pair[0] in known),
        promote_to=tuple(pair for pair in promoted if pair[0] in known),
        promote_slice=parts if gate.promote_to is None or promoted else (),
        promote_valid="?" if gate.promote_valid and quarantine and promoted else None,
    )
    for check in (
        of_datasets.check_locations,
        of_datasets.check_quarantine,
        of_datasets.check_promotion,
    ):
        mistakes += _tried(partial(check, locations))
    return mistakes


def dataset_mistakes(name: str, given: Any) -> list[str]:
    """Mistakes in the settings of a dataset."""
    return _dataset(name, given)[0]


def known_dataset(name: str, given: Any) -> DatasetRef:
    """A dataset, as far as it is known."""
    return _dataset(name, given)[1]


def _dataset(name: str, given: Any) -> tuple[list[str], DatasetRef]:
    """Mistakes in a dataset, and the dataset, as far as it is known."""
    unknown_yet = DatasetRef(name, date_column="?")
    if is_open(given):
        is_path = isinstance(given, str) and "/" in given
        if is_path and (meant := of_datasets.two_slashes(given)) is not None:
            return [f"dataset '{name}' has path={given!r}: write {meant}"], unknown_yet
        return [], replace(unknown_yet, path=given) if is_path else unknown_yet
    if isinstance(given, DatasetRef):
        given = {
            key: value for key, value in of_datasets.settings_of(given).items() if value is not None
        }
    if not isinstance(given, Mapping):
        try:
            return [], of_datasets.dataset_ref(name, given)
        except RequestError as error:
            return [error.in_one_line], unknown_yet
    mistakes = []
    if objection := of_datasets.unknown_settings(name, given):
        mistakes.append(objection)
    settings = {
        str(key): _as_text(value)
        for key, value in given.items()
        if key in of_datasets.SETTINGS and value not in (None, "")
    }
    has_open_format = any(is_open(settings.get(key)) for key in ("format", *_PLACES))
    known = {key: value for key, value in settings.items() if not has_open(value)}
    if has_open_format:
        known = {key: value for key, value in known.items() if key not in _OF_A_FORMAT}
    if "date_column" in settings and has_open(settings["date_column"]):
        known["date_column"] = str(settings["date_column"])
    places = {key: str(settings[key]) for key in _PLACES if key in settings}
    mistakes += [
        f"dataset '{name}' has {key}={given[key]!r}: write a string"
        for key in places
        if not isinstance(settings[key], str) and not is_open(settings[key])
    ]
    if "query" in known or "filter" in known:
        mistakes += _sql_mistakes(name, known)
    mistakes += _schema_mistakes(name, known.get("schema"))
    for mistake in of_datasets.mistakes_in(name, {**known, **places}):
        message = mistake.message
        if f"'{name}'" not in message:
            message = f"dataset '{name}': {message}"
        mistakes.append(f"{message}; {mistake.hint}" if mistake.hint else message)
    if not places and not mistakes and "conn_id" in settings:
        return mistakes, unknown_yet  # a contract may define the table
    if not places and not mistakes:
        mistakes += _tried(lambda: of_datasets.dataset_ref(name, known))
    if mistakes:
        return mistakes, unknown_yet
    return mistakes, of_datasets.dataset_ref(name, {**known, **places})


def _sql_mistakes(name: str, known: Mapping[str, object]) -> Iterator[str]:
    from dqx_airflow.dql.checks.call_arguments import objection_to_filter, objection_to_select

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


def _tried(check: Callable[[], object]) -> list[str]:
    """The mistake that a check raises, as a list; empty if it raises none."""
    try:
        check()
    except RequestError as error:
        return [error.in_one_line]
    except GateMisconfigured as error:
        return [str(error)]
    return []


def _is_time(given: object) -> bool:
    if isinstance(given, timedelta):
        return timedelta(0) < given <= timedelta(seconds=LONGEST_TIME_S)
    return is_finite_number(given) and 0 < given <= LONGEST_TIME_S


def _each(given: Any) -> list[Any]:
    """One, several or none, as a list."""
    if given is None:
        return []
    return [*given] if isinstance(given, list | tuple | set | frozenset) else [given]


def _values(given: Any) -> list[Any]:
    return [*given.values()] if isinstance(given, Mapping) else []


def _as_text(value: object) -> object:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.isoformat() if isinstance(value, date) else value
