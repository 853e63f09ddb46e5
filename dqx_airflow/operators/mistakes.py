"""Mistakes in the arguments of a gate, as far as they are known before its task runs.

Templates, and outputs of other tasks, are left to the run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

from airflow.sdk.definitions.asset import Asset, AssetRef, BaseAsset

from dqx_airflow.limits import LONGEST_TIME_S, MOST_CLOCK_SKEW_HOURS, MOST_SAMPLE_ROWS
from dqx_airflow.operators.airflow_versions import can_certify_partitions
from dqx_airflow.operators.data_mistakes import data_mistakes
from dqx_airflow.operators.exceptions import GateMisconfiguredError, mistakes_of
from dqx_airflow.operators.gate_arguments import as_written, one_of
from dqx_airflow.operators.gate_request import max_bad_rows
from dqx_airflow.operators.outcome import OnViolation
from dqx_airflow.operators.spark_arguments import callback_mistakes, no_template, spark_mistakes
from dqx_airflow.operators.submitters import submitter_mistake
from dqx_airflow.operators.templates import has_open, is_open, lost_values, template_mistakes
from dqx_airflow.values import Selection, Severity
from dqx_airflow.values.blank import blanks_in, name_errors
from dqx_airflow.values.exact import is_finite_number
from dqx_airflow.values.request import is_clock_skew, require_whole_run

_GOES_ON = {
    "warn": "downstream tasks would run without the rows of a blocked gate; write "
    "promote_blocked=True to promote them, promote_blocked=False to leave them out",
    "skip": "the run would be green without the rows of a blocked gate, and tasks with "
    "trigger_rule='none_failed' would run; write promote_blocked=False if that is meant",
}
_NO_ASSET = (int, float, bytes, Mapping, os.PathLike)


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
    mistakes = (
        *setting_mistakes(gate),
        *_idle_mistakes(gate),
        *_outlet_mistakes(gate),
        *template_mistakes(gate, dag),
    )
    if any(_name_mistakes(gate)):  # which would be second mistakes in the data
        return Examined(mistakes)
    in_data, refs = data_mistakes(gate)
    mistakes = (*mistakes, *in_data)
    if folder is None:
        return Examined(mistakes)

    in_source, files = gate.source_mistakes(folder, refs)
    return Examined((*mistakes, *in_source), tuple(files))


def setting_mistakes(gate: Any) -> Iterator[str]:
    """Mistakes in those arguments of a gate that are seldom templates."""
    if getattr(gate, "application_args", None):
        yield (
            "application_args is not supported, because the gate passes its request in "
            "them: remove it"
        )
    yield from _name_mistakes(gate)
    yield from one_of("fail_on", gate.fail_on, tuple(severity.value for severity in Severity))
    yield from one_of("on_violation", gate.on_violation, get_args(OnViolation))
    yield from _ask_mistakes(gate)
    yield from _promotion_mistakes(gate)
    yield from _partition_mistakes(gate)
    yield from _valid_mistakes(gate)
    yield from _boolean_mistakes(gate)
    if is_open(gate.deferrable):
        yield from no_template("deferrable", gate.deferrable)
    elif not (gate.deferrable is None or isinstance(gate.deferrable, bool)):
        yield f"deferrable={gate.deferrable!r}: write True or False"
    yield from _number_mistakes(gate)
    yield from spark_mistakes(gate)
    if gate.submit is not None and (mistake := submitter_mistake(gate.submit)):
        yield mistake
    yield from _blank_mistakes(gate)
    yield from _string_mistakes(gate)
    yield from callback_mistakes("on_warning_callback", gate.on_warning_callback)
    yield from _selection_mistakes(gate)
    yield from gate.own_mistakes()


def _idle_mistakes(gate: Any) -> Iterator[str]:
    """Mistakes for arguments without an effect in this gate. What a template leaves empty when the
    task runs has none either, and is no mistake."""
    if gate.promote_partial is True:
        if all(getattr(gate, name) is None for name in _SELECTING):
            yield (
                "promote_partial requires a selection, such as tags: without one, no run is "
                "partial: select assertions, or remove it"
            )
        elif not gate.promote_to and not gate.outlets:
            yield (
                "promote_partial requires promote_to, or an asset in outlets: set one, or remove it"
            )
    goes_on_anyway = not gate.promote_to or gate.promote_blocked is True
    if gate.accept_required is True and gate.on_violation == "warn" and goes_on_anyway:
        yield (
            "accept_required is for a gate that stops until someone accepts its data, and "
            "on_violation='warn' lets all data through: write on_violation='ask', or remove it"
        )


def _boolean_mistakes(gate: Any) -> Iterator[str]:
    for name in gate.true_or_false:
        value = getattr(gate, name)
        if not isinstance(value, bool) and not is_open(value):
            yield f"{name}={value!r}: write True or False"


def _number_mistakes(gate: Any) -> Iterator[str]:
    rows = gate.sample_rows
    is_count = isinstance(rows, int) and not isinstance(rows, bool)
    if not is_open(rows) and not (is_count and 0 <= rows <= MOST_SAMPLE_ROWS):
        yield f"sample_rows={rows!r}: write a number from 0 to {MOST_SAMPLE_ROWS}"
    skew = gate.max_clock_skew_hours
    if not is_open(skew) and not is_clock_skew(skew):
        yield (
            f"max_clock_skew_hours={skew!r}: write a number of hours, from 0 to "
            f"{MOST_CLOCK_SKEW_HOURS}"
        )
    if not _is_time_or_open(gate.validation_timeout):
        yield (
            f"validation_timeout={gate.validation_timeout!r}: write a timedelta, or seconds, of "
            "more than 0 and at most a century, such as timedelta(minutes=10)"
        )


def _string_mistakes(gate: Any) -> Iterator[str]:
    for name in ("results_root", "results_conn_id"):
        value = getattr(gate, name)
        if not (value is None or isinstance(value, str | os.PathLike) or is_open(value)):
            yield f"{name}={value!r}: write a string"
    if not (gate.gate is None or isinstance(gate.gate, str) or is_open(gate.gate)):
        yield f"gate={gate.gate!r}: write a name, or leave gate out"


_SELECTING = ("only", "tags", "exclude_tags", "min_severity", "dimensions")
"""The arguments that select assertions; empty ones select all of them."""
_CHECKED_ELSEWHERE = (
    "suite",
    "contract",
    "datasets",
    "date",
    "quarantine",
    "promote_to",
    "promote_slice",
    "promote_valid",
    "outlets",
    "fail_on",
    "on_violation",
    "ask_timeout",
    "ask_default",
    "validation_timeout",
    "unsupported",
    "conf",
    "variables",
)
"""The arguments with a separate check, or in which an empty string has a meaning."""


def _blank_mistakes(gate: Any) -> Iterator[str]:
    """Mistakes for empty strings, mostly templates without a result, which would disable the
    argument."""
    given = {
        name: getattr(gate, name)
        for name in gate.checked_arguments
        if name not in (*_CHECKED_ELSEWHERE, *_SELECTING)
    }
    for name in blanks_in(given):
        yield f"{name}={given[name]!r}: it is empty; write a value, or leave {name} out"


def _name_mistakes(gate: Any) -> Iterator[str]:
    """Mistakes for keys of mappings that are not names."""
    names = (*gate.checked_arguments, "env_vars")
    yield from name_errors({name: getattr(gate, name, None) for name in names})


_TARGETS = ("quarantine", "promote_to")
"""The arguments that are mappings, of which an empty one would write nothing."""


def lost_mistakes(gate: Any, written: Mapping[str, Any]) -> Iterator[str]:
    """Mistakes for arguments that a template or the output of a task has turned into None, and for
    values in them.

    :param written: the templated arguments in the DAG by name.
    """
    may_be_none = (*_SELECTING, "date")
    checked_elsewhere = ("suite", "contract")
    for name, given in written.items():
        if name in may_be_none or name in checked_elsewhere:
            continue
        value = getattr(gate, name)
        yield from lost_values(name, given, value)
        if name in _TARGETS and is_open(given) and isinstance(value, Mapping) and not value:
            yield f"{name} was given, and is empty now: return a value, or leave it out"


def unread_mistakes(gate: Any, settings: Iterable[str]) -> Iterator[str]:
    """Mistakes for settings that are still templates when the task runs.

    :param settings: the names of the settings that are templates in the DAG.
    """
    for name in settings:
        if has_open(getattr(gate, name)):
            yield f"{name}={getattr(gate, name)!r}: a template must not result in a template"


def _promotion_mistakes(gate: Any) -> Iterator[str]:
    """Mistakes in `promote_blocked`, required if a blocked gate lets the next tasks run."""
    choice = gate.promote_blocked
    promotes = bool(gate.promote_to)
    if is_open(choice) or is_open(gate.on_violation):
        return
    if not (choice is None or isinstance(choice, bool)):
        yield f"promote_blocked={choice!r}: write True or False"
    elif is_open(gate.promote_to) and not isinstance(gate.promote_to, str):
        return
    elif choice is None:
        if promotes:
            yield from _missing_choice(gate.on_violation)
    elif not promotes:
        yield "promote_blocked requires promote_to: set promote_to as well, or remove it"
    elif choice and gate.on_violation != "warn":
        yield (
            "promote_blocked=True promotes the rows of a blocked gate for downstream tasks, which "
            f"on_violation={gate.on_violation!r} stops: write on_violation='warn', or remove it"
        )


def _missing_choice(on_violation: Any) -> Iterator[str]:
    """The mistake of a gate that promotes without `promote_blocked`, if it does not fail."""
    # Compared, not looked up: an enumeration with the word as its value may hash differently.
    for word, consequence in _GOES_ON.items():
        if on_violation == word:
            yield (
                f"on_violation={on_violation!r} with promote_to: {consequence}, or "
                "on_violation='fail'"
            )


def _valid_mistakes(gate: Any) -> Iterator[str]:
    """Mistakes in `promote_valid`, which requires a promotion target and a quarantine."""
    if gate.promote_valid is None:
        return
    is_named = not any(name_errors({"promote_valid": gate.promote_valid}))
    if is_named and not has_open(gate.promote_valid):
        yield from mistakes_of(lambda: max_bad_rows(gate.promote_valid))
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
    if not _is_time_or_open(limit):
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
    except GateMisconfiguredError:
        return None


def _selection_before(gate: Any) -> Selection | None:
    """The selection of a gate; None if there is none, or part of it is open until the run.

    :raises GateMisconfiguredError: it is invalid.
    """
    given = tuple(getattr(gate, name) for name in _SELECTING)
    selection: Selection | None = None if any(map(has_open, given)) else gate.selection
    return selection


def _selection_mistakes(gate: Any) -> Iterator[str]:
    targets = (gate.promote_to,) if gate.promote_to else ()
    if is_open(gate.promote_partial):
        return

    def check() -> None:
        require_whole_run(
            _selection_before(gate), targets, promote_partial=gate.promote_partial is True
        )

    yield from mistakes_of(check)


def _outlet_mistakes(gate: Any) -> Iterator[str]:
    """Mistakes in `outlets`, such as one that is not an asset, or that no run would update."""
    outlets = as_written(_each(gate.outlets))
    for outlet in [outlets] if isinstance(outlets, str) else outlets:
        if isinstance(outlet, str):
            yield f"outlets has the string {outlet!r}: write Asset({outlet!r})"
        # An asset is a path to Python.
        elif not isinstance(outlet, BaseAsset) and isinstance(outlet, _NO_ASSET):
            yield f"outlets has {outlet!r}: write an Asset"
    if known_selection(gate) is None or gate.promote_partial is not False:
        return
    if any(isinstance(outlet, BaseAsset) for outlet in _each(gate.outlets)):
        yield (
            "the assets in outlets are updated when all assertions pass, but some are selected: "
            "remove the selection, or set promote_partial=True"
        )


def _partition_mistakes(gate: Any) -> Iterator[str]:
    if gate.certify_partitions is not True:
        return
    if not can_certify_partitions():
        yield "certify_partitions requires Airflow 3.3: remove it, or upgrade Airflow"
    elif not any(isinstance(outlet, Asset | AssetRef) for outlet in _each(gate.outlets)):
        yield (
            "certify_partitions certifies dates of assets: add one to the outlets, such as "
            "outlets=[Asset('orders')], or remove it"
        )


def _is_time_or_open(given: object) -> bool:
    """True for a duration, for None, and for what is only known when the task runs."""
    return given is None or is_open(given) or _is_time(given)


def _is_time(given: object) -> bool:
    if isinstance(given, timedelta):
        return timedelta(0) < given <= timedelta(seconds=LONGEST_TIME_S)
    return is_finite_number(given) and 0 < given <= LONGEST_TIME_S


def _each(given: Any) -> list[Any]:
    """One, several or none, as a list."""
    if given is None:
        return []
    return [*given] if isinstance(given, list | tuple | set | frozenset) else [given]
