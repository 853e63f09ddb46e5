"""Suites written in Python equal suites written in DQL: see the Markdown files."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow import Results, Suite, Verdict, VerificationSuite, check
from dqx_airflow.errors import ChangeRefusedError, RequestError, SourceError
from dqx_airflow.plan.model import Plan
from tests.api.python_suites import TODAY, memory, python_suite
from tests.markdown_cases import REWRITE, Case, cases

HERE = Path(__file__).parent
SAME = list(cases(HERE / "same_suites.md"))
MISTAKES = list(cases(HERE / "mistakes.md"))
NOON = datetime(2024, 11, 29, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize("case", SAME, ids=str)
def test_a_suite_in_python_has_the_plan_and_the_report_of_its_dql(case: Case) -> None:
    suite = python_suite(case.block("python").text)
    case.expect(suite.to_dql())
    if REWRITE:
        return
    written = Suite.from_string(case.block("dql").text)
    db = suite.db
    assert _placeless(suite.plan(TODAY)) == _placeless(written.plan(db, TODAY))
    assert _essentials(suite.run(TODAY, now=NOON)) == _essentials(written.run(db, TODAY, now=NOON))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python keeps no columns of calls")
@pytest.mark.parametrize("case", MISTAKES, ids=str)
def test_errors_are_drawn_over_the_lines_of_python(case: Case) -> None:
    suite = python_suite(case.block("python").text)
    with pytest.raises(SourceError) as raised:
        suite.run(TODAY)
    case.expect(str(raised.value))
    assert raised.value.diagnostics


def test_an_error_is_located_on_its_line_on_every_python() -> None:
    suite = python_suite("\n\nctx.assert_that(mp.avg('price')).is_gt(0)\n")
    with pytest.raises(SourceError) as raised:
        suite.run(TODAY)
    (found,) = raised.value.diagnostics
    assert (found.code, found.span.file, found.span.line) == ("E001", "checks.py", 7)


def test_a_failure_shows_the_line_of_python() -> None:
    suite = python_suite("ctx.assert_that(mp.num_rows()).where(name='rows').is_gt(9)\n")
    drawn = str(suite.run(TODAY))
    assert " --> checks.py:5:" in drawn
    assert "5 |     ctx.assert_that(mp.num_rows()).where(name='rows').is_gt(9)" in drawn
    assert drawn.splitlines()[-1].startswith("blocked: gate S, dataset orders, date 2024-11-29:")


def test_assertions_may_be_in_functions_of_other_files(tmp_path: Path) -> None:
    shared = tmp_path / "shared_rules.py"
    shared.write_text("def rows(mp, ctx):\n    ctx.assert_that(mp.num_rows()).is_gt(9)\n")
    names: dict[str, Any] = {"__name__": "shared_rules"}
    exec(compile(shared.read_text(), str(shared), "exec"), names)

    @check(name="C", datasets=["orders"])
    def with_shared_rules(mp: Any, ctx: Any) -> None:
        names["rows"](mp, ctx)

    (verdict,) = _own(VerificationSuite([with_shared_rules], memory(), "S").run(TODAY))
    assert verdict.span is not None
    assert (verdict.span.file, verdict.span.line) == (str(shared), 2)
    assert verdict.source_line == "    ctx.assert_that(mp.num_rows()).is_gt(9)"


def test_code_without_a_source_file_runs() -> None:
    names: dict[str, Any] = {}
    exec(
        "from dqx_airflow.api import *\n@check(name='C')\ndef c(mp, ctx):\n"
        "    ctx.assert_that(mp.num_rows(dataset='orders')).where(name='rows').is_gt(9)\n",
        names,
    )
    results = VerificationSuite([names["c"]], memory(), "S").run(TODAY)
    assert "error: assertion failed: rows" in str(results)


@pytest.mark.parametrize("limit", ["LIMIT", "LIMIT.value"])
def test_an_algorithm_makes_no_required_assertion_weaker(limit: str) -> None:
    suite = python_suite(
        "LIMIT = TunableInt('LIMIT', value=3, bounds=(0, 10))\n"
        "@check(name='C', datasets=['orders'])\ndef c(mp, ctx):\n"
        "    ctx.assert_that(mp.num_rows()).where(name='rows', severity='P0')"
        f".is_gt({limit})\n"
        "suite = VerificationSuite([c], db, 'S', tunables=[LIMIT])\n"
    )
    suite.set_param("LIMIT", 4, agent="rl_optimizer", reason="Episode 42")
    suite.set_param("LIMIT", 3)
    with pytest.raises(ChangeRefusedError, match=r"(?s)E602.*'rows' is P0.*checks\.py:"):
        suite.set_param("LIMIT", 2, agent="rl_optimizer")
    assert suite.get_param("LIMIT") == 3
    suite.set_param("LIMIT", 1, agent="human")
    history = [
        (change.old_value, change.new_value, change.agent)
        for change in suite.get_param_history("LIMIT")
    ]
    assert history == [(3, 4, "rl_optimizer"), (4, 3, "python"), (3, 1, "human")]


def test_check_functions_run_again_for_each_run() -> None:
    suite = python_suite(
        "LIMIT = TunableInt('LIMIT', value=3, bounds=(0, 10))\n"
        "@check(name='C', datasets=['orders'])\ndef c(mp, ctx):\n"
        "    ctx.assert_that(mp.num_rows()).where(name='rows').is_gt(LIMIT.value)\n"
        "suite = VerificationSuite([c], db, 'S', tunables=[LIMIT])\n"
    )
    assert [result.status for result in _own(suite.run(TODAY))] == ["passed"]
    suite.set_param("LIMIT", 4)
    assert suite.get_param("LIMIT") == 4
    assert [result.status for result in _own(suite.run(TODAY))] == ["failed"]
    assert [param.name for param in suite.get_tunable_params()] == ["LIMIT"]
    assert not suite.run(TODAY).warnings


def test_warnings_come_with_the_results() -> None:
    results = python_suite("ctx.assert_that(mp.sum('price')).is_gt(0)\n").run(TODAY)
    assert [warning.code for warning in results.warnings] == ["W001"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ctx.assert_that(mp.num_rows()).is_gt([1])", r"\[1\] is not a valid operand"),
        ("ctx.assert_that(mp.num_rows()).is_gt(float('nan'))", "nan is not a finite number"),
        ("ctx.assert_that(mp.num_rows()).where(tags=['a b']).is_gt(0)", "'a b' is not a valid tag"),
        ("ctx.assert_that(mp.sum('a`b')).is_gt(0)", "'a`b' is not a valid name of a column"),
        ("ctx.assert_that(mp.num_rows).is_gt(0)", "is not a valid operand"),
        ("mp.sum('a', where='a >')", "'a >' is not a filter: unexpected end"),
        ("ctx.assert_each_row('a > 1').where(rows='a > 1 name')", "is not a filter"),
        ("ctx.assert_any()", "assert_any needs an assertion"),
        ("ctx.assert_all(mp.num_rows())", "is not an assertion"),
        (
            "ctx.assert_all(ctx.assert_column('id').where(name='a'))",
            "assert_all cannot have a name",
        ),
        ("ctx.assert_any(ctx.assert_column('id').for_each('id'))", "assert_any cannot have groups"),
        (
            "a = ctx.assert_column('id'); ctx.assert_if(a, a)",
            "assert_if already belongs to another",
        ),
    ],
)
def test_values_that_the_language_does_not_have_are_refused(text: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        python_suite(f"{text}\n").run(TODAY)


def test_a_metric_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match=r"`num_rows\(\)` has no value before the suite is run"):
        python_suite("if mp.num_rows():\n    pass\n").run(TODAY)
    with pytest.raises(TypeError, match="'>' not supported"):
        python_suite("mp.num_rows() > 5\n").run(TODAY)
    with pytest.raises(TypeError, match="unsupported operand"):
        python_suite("mp.num_rows() + 'a'\n").run(TODAY)


def test_an_undecorated_function_is_refused() -> None:
    with pytest.raises(RequestError, match="is not a check"):
        VerificationSuite([lambda mp, ctx: None], memory(), "S")  # type: ignore[list-item]


def test_a_check_of_a_database_without_datasets_needs_them() -> None:
    from dqx_airflow import MemoryDatabase

    suite = python_suite("@check(name='C')\ndef c(mp, ctx): pass\n", MemoryDatabase({}))
    with pytest.raises(RequestError, match="check 'C' has no dataset"):
        suite.run(TODAY)


def _placeless(plan: Plan) -> Plan:
    """The plan without the places in its source."""
    bare = (replace(item, span=None, source_line=None) for item in plan.assertions)
    return replace(plan, assertions=tuple(bare))


def _essentials(results: Results) -> tuple[Any, ...]:
    """A report without its run and its spans."""
    report = results.report
    verdicts = [replace(verdict, span=None, source_line=None) for verdict in report.verdicts]
    return report.suite, report.fail_on, report.outcome, verdicts, report.datasets


def _own(verdicts: Iterable[Verdict]) -> list[Any]:
    return [verdict for verdict in verdicts if verdict.check != "implicit"]
