"""The forms of output for CI systems: GitHub annotations, SARIF and JUnit, from one place each."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from dqx_airflow.cli.reports import write_reports
from dqx_airflow.datasets.dqx_toml import RunFormat
from dqx_airflow.diagnostics.verdicts import findings_of
from dqx_airflow.values import GateReport, Outcome, Severity, Span, Status
from tests.cli.test_output import COMMANDS
from tests.command_line import dql
from tests.results.samples import ERROR, FAILED, PASSED, SKIPPED, sample_report

BLOCKED = sample_report(1, verdicts=(PASSED, FAILED, SKIPPED, ERROR))


def written(report: GateReport, format: RunFormat, **options: Any) -> str:
    with StringIO() as text:
        write_reports([report, report], format, text, "", **options)
        return text.getvalue()


def test_github_gets_an_annotation_at_each_assertion_that_did_not_pass() -> None:
    lines = written(BLOCKED, RunFormat.GITHUB).splitlines()
    assert len(lines) == 6, "two reports"
    failed, lacks_data, could_not = lines[:3]
    assert failed == (
        "::error file=orders.dql,line=3,endLine=3,col=5,endColumn=20,"
        "title=amounts%3A%3Ano_negative_amounts::P0 amounts::no_negative_amounts, 2024-02-29: "
        "minimum(amount) is -1.65 (-1.5 x 1.1), expected >= 0"
    )
    assert lacks_data.startswith("::warning ")
    assert lacks_data.endswith("not evaluated: too few days")
    assert could_not.startswith("::warning file=orders.dql,line=1,"), "below fail_on, no position"
    assert could_not.endswith("not evaluated: no column amuont")


def test_sarif_is_one_log_with_a_rule_for_each_assertion() -> None:
    (run,) = json.loads(written(BLOCKED, RunFormat.SARIF))["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [
        "amounts::no_negative_amounts",
        "amounts::typo",
        "implicit::trend",
    ]
    assert [result["level"] for result in run["results"]] == ["error", "warning", "warning"] * 2
    assert run["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] == 3


@pytest.mark.parametrize("format", [RunFormat.GITHUB, RunFormat.SARIF, RunFormat.JUNIT])
def test_positions_in_a_contract_are_relative_to_the_working_directory(format: RunFormat) -> None:
    folders = {BLOCKED.run_key.gate: Path("contracts")}
    assert "contracts/orders.dql" in written(BLOCKED, format, folders=folders)


@pytest.mark.parametrize("outcome", list(Outcome))
@pytest.mark.parametrize("severity", list(Severity))
@pytest.mark.parametrize("status", list(Status))
def test_a_report_has_an_error_exactly_if_a_run_fails(
    outcome: Outcome, severity: Severity, status: Status
) -> None:
    verdict = replace(FAILED, severity=severity, status=status)
    report = replace(BLOCKED, outcome=outcome, verdicts=(verdict,))
    found = list(findings_of(report))
    is_stopped = outcome in (Outcome.BLOCKED, Outcome.BROKEN)
    assert any(one.level.value == "error" for one in found) is is_stopped


def test_a_broken_report_without_verdicts_is_an_error_at_its_suite() -> None:
    (found,) = findings_of(replace(BLOCKED, outcome=Outcome.BROKEN, verdicts=()))
    assert found.span == Span(BLOCKED.suite, 1, 1, 1, 2)


FORMS = {
    "check": {"text", "json", "junit", "github", "sarif"},
    "contract lint": {"text", "json", "junit", "github", "sarif"},
    "run": {"text", "json", "summary", "junit", "github", "sarif"},
    "contract test": {"text", "json", "summary", "junit", "github", "sarif"},
    "diff": {"text", "json", "markdown", "github", "sarif"},
    "contract diff": {"text", "json", "markdown", "github", "sarif"},
    "mutate": {"text", "json", "summary", "junit"},
}


@pytest.mark.parametrize("name", FORMS)
def test_each_form_exists_where_a_build_wants_it(name: str) -> None:
    (option,) = (each for each in COMMANDS[name].params if "--format" in each.opts)
    assert set(option.type.choices) == FORMS[name]


def test_junit_of_a_check_fails_for_errors_and_lists_files_that_are_fine(here: Path) -> None:
    Path("bad.dql").write_text(
        'suite "S" { check "C" on o { assert nonsense(a) > 0 assert num_rows() > 0 } }'
    )
    Path("good.dql").write_text('suite "T" { check "C" on o { assert num_rows() > 0 name "r" } }')
    done = dql("check", ".", "--format", "junit")
    assert done.returncode == 2
    root = ET.fromstring(done.stdout)
    bad, good = root
    assert (root.get("name"), root.get("failures"), root.get("tests")) == ("dql check", "1", "4")
    failed = [case.get("name") for case in bad if case.find("failure") is not None]
    assert failed == ["E001 at line 1, column 37"]
    assert {case.get("file") for case in bad} == {"bad.dql"}
    assert [(case.get("name"), list(case)) for case in good] == [("good.dql", [])]
