"""One thing has one name in all interfaces: each argument of an operator, and each key of JSON that
users read, is in `operators_and_json.txt`.

A new word is added there on purpose, or an old one is used.
"""

from __future__ import annotations

import ast
import inspect
import re
import typing
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest

from dqx_airflow import values
from dqx_airflow.cli.diff import SuiteDiff
from dqx_airflow.lineage.coverage import TableCoverage
from dqx_airflow.results.report_rows import RunRow
from dqx_airflow.tuning.mutation import Mutation
from dqx_airflow.tuning.shadow_alarms import ShadowedAssertion
from dqx_airflow.values.output_form import HEAD, output_key, run_head
from dqx_airflow.values.report import NOT_SHOWN, Waiver
from dqx_airflow.values.request import RunKey
from tests.json_heads import require_same_head
from tests.made_reports import report_at, verdict_of
from tests.markdown_cases import REWRITE

ROOT = Path(__file__).parents[2]
WORDS = Path(__file__).with_name("operators_and_json.txt")
MEMBERS = ROOT / "tests" / "ui" / "json_members.txt"
FORMER = {
    "place": "location",
    "places": "locations",
    "raw_value": "value",
    "run_key": "its parts, flat",
    "root": "results_root",
    "labelled_by": "author in an object",
    "acknowledged_by": "author in an object",
    "timeout": "validation_timeout",
    "on_warning": "on_warning_callback",
    "seconds_to_detect": "time_to_detect_seconds",
    "ts": "at",
    "param": "tunable",
    "agent": "author",
    "dialect": "format",
    "claim": "after, or expression",
}
"""Words that had another name for the same thing."""


def words() -> dict[str, set[str]]:
    """The words by section: a heading in brackets, and words below it."""
    found: dict[str, set[str]] = {}
    section = ""
    for line in WORDS.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
            found[section] = set()
        elif line and not line.startswith("#"):
            found[section].update(line.split())
    return found


def require_known(section: str, used: set[str]) -> None:
    known = words()
    if REWRITE:
        known[section] = used
        _write(known)
    assert used - known[section] == set(), (
        "add them to operators_and_json.txt, or use a word that is there"
    )
    assert known[section] - used == set(), "no longer used: remove them from operators_and_json.txt"


def _write(known: dict[str, set[str]]) -> None:
    head = [line for line in WORDS.read_text("utf-8").splitlines() if line.startswith("#")]
    lines = [*head]
    for section, used in known.items():
        lines += ["", f"[{section}]", *_wrapped(sorted(used))]
    WORDS.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _wrapped(names: list[str]) -> Iterator[str]:
    line = ""
    for name in names:
        if len(line) + len(name) > 98:
            yield line
            line = ""
        line = f"{line} {name}".strip()
    yield line


def keys_of(kind: Any, seen: set[Any]) -> set[str]:
    """The keys in the JSON of a dataclass, at any depth."""
    if kind in seen:
        return set()
    seen.add(kind)
    if not is_dataclass(kind):
        return {key for part in get_args(kind) for key in keys_of(part, seen)}
    try:
        hints = typing.get_type_hints(kind)
    except NameError:  # a type that is only imported for the type checker
        hints = {}
    found: set[str] = set()
    for field in fields(kind):
        if field.metadata == NOT_SHOWN:
            continue
        hint = hints.get(field.name)
        if hint is RunKey:
            found |= run_head(None, None).keys()
            continue
        is_duration = timedelta in (hint, *get_args(hint))
        found.add(output_key(kind.__name__, field.name, is_duration=is_duration))
        found |= keys_of(hint, seen)
    return found


def keys_in(found: Any) -> set[str]:
    if isinstance(found, list):
        return {key for item in found for key in keys_in(item)}
    if not isinstance(found, dict):
        return set()
    return {*found, *(key for item in found.values() for key in keys_in(item))}


def keys_of_commands() -> set[str]:
    """The keys that the functions of commands write: `_object(key=...)`, and dictionaries."""
    found: set[str] = set()
    for path in (ROOT / "dqx_airflow" / "cli").rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = isinstance(function, ast.FunctionDef) and function.name.endswith(
                ("_object", "_fields", "_facts")
            )
            if not named or "shown" in function.name:  # type: ignore[attr-defined]
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_object":
                    found.update(keyword.arg for keyword in node.keywords if keyword.arg)
                elif isinstance(node, ast.Dict):
                    found.update(
                        str(key.value) for key in node.keys if isinstance(key, ast.Constant)
                    )
    return found


def test_the_keys_of_commands_are_known_words() -> None:
    seen: set[Any] = set()
    kinds = (values.GateReport, RunRow, Waiver, TableCoverage, SuiteDiff, ShadowedAssertion)
    printed = {key for kind in (*kinds, Mutation) for key in keys_of(kind, seen)}
    require_known("keys of commands", printed | keys_of_commands())


def test_the_keys_of_the_api_are_known_words() -> None:
    lines = MEMBERS.read_text(encoding="utf-8").splitlines()
    used = {name for line in lines for name in line.partition(": ")[2].split()}
    require_known("keys of the API", used)


@pytest.mark.airflow
def test_the_parameters_of_pages_are_known_words() -> None:
    """Links in emails, in chats and in webhooks have them, and programs that read `api/v1/`."""
    from fastapi.dependencies.utils import get_flat_dependant
    from fastapi.routing import APIRoute

    from dqx_airflow.ui.app import app

    routes = [route for route in app.routes if isinstance(route, APIRoute)]
    assert len(routes) > 20
    used = {
        parameter.alias
        for route in routes
        for parameter in get_flat_dependant(route.dependant).query_params
    }
    require_known("parameters of pages", used)


def test_the_fields_of_forms_are_known_words() -> None:
    """Scripts post them, and links of filters have them: a field is called as its option."""
    ui = ROOT / "dqx_airflow" / "ui"
    pages = "".join(path.read_text(encoding="utf-8") for path in (ui / "pages").glob("*.html"))
    tags = re.findall(r"<(?:input|select|textarea|button)\b[^>]*?\bname=\"([^\"]+)\"", pages)
    listed = re.findall(r"for field, \w+ in \{(.*?)\}\.items\(\)", pages)
    used = {name for name in tags if not name.startswith("{{")}
    used |= {name for names in listed for name in re.findall(r"\"(\w+)\":", names)}
    for path in ui.glob("*.py"):
        used |= set(re.findall(r"\bform(?:\.get\(|\[)[\"'](\w+)", path.read_text(encoding="utf-8")))
    assert {"pick", "until", "dag_id", "confirmed"} <= used
    require_known("fields of forms", used)


@pytest.mark.airflow
def test_the_keys_of_xcom_and_webhooks_are_known_words() -> None:
    from datetime import datetime, timezone

    from dqx_airflow.operators.notifications import NotificationPayload
    from dqx_airflow.operators.summary import failure_summary, summaries_of_parts, summary

    report = report_at(datetime.now(timezone.utc), verdict_of("a", status=values.Status.FAILED))
    pushed = [summary(report), summaries_of_parts([report, report])]
    used = keys_in([*pushed, failure_summary(ValueError("x"), "gate", None)])
    used |= {field.name for field in fields(NotificationPayload)}
    require_known("keys of XCom and webhooks", used)
    require_same_head(pushed)
    assert [field.name for field in fields(NotificationPayload)][:4] == [*HEAD[:4]]


@pytest.mark.airflow
def test_the_arguments_of_operators_are_known_words() -> None:
    from dqx_airflow.operators.contract_gate import ContractGateOperator
    from dqx_airflow.operators.dql_gate import DqlGateOperator
    from dqx_airflow.operators.gate import GateOperator

    used = {
        parameter.name
        for kind in (GateOperator, DqlGateOperator, ContractGateOperator)
        for parameter in inspect.signature(kind.__init__).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    require_known("arguments of operators", used)


def test_no_word_is_a_former_one_or_has_a_prefix_of_its_type() -> None:
    used = {word for section in words().values() for word in section}
    assert used & FORMER.keys() == set()
    assert {word for word in used if word.startswith("is_")} == set()


@pytest.mark.airflow
def test_exceptions_end_in_error() -> None:
    import dqx_airflow
    from dqx_airflow import api, operators

    names = {name for package in (dqx_airflow, api, operators) for name in _exceptions(package)}
    assert {"GateBlockedError", "ContractViolationError"} <= names
    assert {name for name in names if not name.endswith("Error")} == set()


def _exceptions(package: ModuleType) -> Iterator[str]:
    for name in package.__all__:
        offered = getattr(package, name)
        if inspect.isclass(offered) and issubclass(offered, BaseException):
            yield name
