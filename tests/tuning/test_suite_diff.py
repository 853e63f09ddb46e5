"""`dql diff` and `dql contract diff --backtest`: changed assertions, and past days with them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import dqx_airflow
from dqx_airflow.cli.main import app
from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.values import Severity, SourceFile
from tests.http_stub import Asked, Reply, http_stub
from tests.markdown_cases import cases
from tests.processes import output_of
from tests.tuning.stored_days import FIRST, SUITE, orders, store_days

COUNTS = {0: (20, 0), 1: (20, 2), 2: (9, 0), 3: (4, 0), 4: (6, 0), 5: (4, 0), 7: (20, 0)}
PERIOD = ("--from", "2024-12-01", "--to", "2024-12-10")
NULLS, ROWS = "orders.completeness.email_null", "orders.volume.min_rows"


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = str(tmp_path_factory.mktemp("results"))
    store_days(root, orders(COUNTS), range(6))
    return root


@pytest.fixture
def here(days: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DQX_RESULTS_ROOT", days)
    for name in ("NAME", "EMAIL"):
        monkeypatch.setenv(f"GIT_AUTHOR_{name}", "ada@x.org")
        monkeypatch.setenv(f"GIT_COMMITTER_{name}", "ada@x.org")
    commit({"suites/orders.dql": SUITE, "dqx.toml": ""})
    return here


def git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True, capture_output=True)


def commit(files: dict[str, str]) -> None:
    if not Path(".git").exists():
        git("init", "-q", "-b", "main")
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    git("add", ".")
    git("commit", "-q", "-m", "change")


def dql(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, [*arguments])
    assert done.exit_code == code, done.output
    return done.output if code else done.stdout


def changes(*arguments: str) -> list[dict[str, Any]]:
    found = json.loads(dql("diff", *arguments, "--format", "json"))
    return [change for suite in found["suites"] for change in suite["changes"]]


NEW = 'profile "Holiday"'
TURNS = {
    "a looser limit": ("LEAST = 10", "LEAST = 7", {ROWS: {"blocked -> passed": ["03", "06"]}}),
    "a tighter limit": ("LEAST = 10", "LEAST = 20", {ROWS: {"passed -> blocked": ["05"]}}),
    "a constant of two": ("< MAX_NULLS", "< MAX_NULLS / 50", {NULLS: {}}),
    "a profile": ("by 2.0x", "by 1.0x", {ROWS: {"passed -> blocked": ["05"]}}),
    "a severity": (
        "severity P2",
        "severity P1",
        {"orders.volume.stable": {"warned -> blocked": ["03", "04", "05"]}},
    ),
    "a severity that only warns": (
        'name "orders.volume.min_rows"',
        'name "orders.volume.min_rows" severity P3',
        {ROWS: {"blocked -> warned": ["03", "04", "06"]}},
    ),
    "an experiment": (
        "        @cost(false_positive=5, false_negative=200)",
        "        @experimental @cost(false_positive=5, false_negative=200)",
        {ROWS: {"blocked -> warned": ["03", "04", "06"]}},
    ),
    "a downgrade by a profile": (
        'scale tag "volume" by 2.0x',
        'scale tag "volume" by 2.0x downgrade tag "volume" to P3',
        {ROWS: {"blocked -> warned": ["06"]}},
    ),
    "a check that a profile disables": (
        'scale tag "volume" by 2.0x',
        'disable check "Volume"',
        {
            ROWS: {"blocked -> skipped": ["06"]},
            "orders.volume.stable": {"warned -> skipped": ["05"]},
        },
    ),
    "a removed assertion": (
        'assert num_rows() >= LEAST\n            name "orders.volume.min_rows"\n',
        'assert num_rows() >= 1\n            name "other"\n',
        {"other": {}, ROWS: {"blocked -> absent": ["03", "04", "06"]}},
    ),
    "a new assertion": (
        NEW,
        f'check "New" on orders {{ assert num_rows() >= 20 name "new" }} {NEW}',
        {"new": {"absent -> blocked": ["03", "04", "05", "06"]}},
    ),
    "a filter": ("num_rows() >= LEAST", "num_rows(where email is not null) >= LEAST", {ROWS: {}}),
    "a share instead of a number": (
        "null_count(email) / num_rows() < MAX_NULLS",
        "null_count(email) < 100 * MAX_NULLS",
        {NULLS: {"blocked -> passed": ["02"]}},
    ),
    "a limit in other units": (
        "MAX_NULLS = 5% tunable [0%, 50%]",
        "MAX_NULLS = 5 tunable [0, 50]",
        {NULLS: {"blocked -> passed": ["02"]}, "MAX_NULLS.tunable": {}},
    ),
    "a band of the past instead of a limit": (
        "num_rows() >= LEAST",
        "num_rows() within 3 stddev of 7 days",
        {ROWS: {}},
    ),
    "a default for what fails": (
        "num_rows() >= LEAST",
        "max(num_rows(), LEAST) >= LEAST",
        {ROWS: {"blocked -> passed": ["03", "04", "06"]}},
    ),
    "a removed check": (
        SUITE[SUITE.index('    check "Volume"') : SUITE.index("    profile")],
        "",
        {
            ROWS: {"blocked -> absent": ["03", "04", "06"]},
            "orders.volume.stable": {"warned -> absent": ["03", "04", "05"]},
        },
    ),
    "a comment": ("suite ", "# only a comment\nsuite ", {}),
}


@pytest.mark.few(7)
@pytest.mark.parametrize("case", TURNS)
def test_each_changed_assertion_names_the_days_that_turn(here: Path, case: str) -> None:
    old, new, expected = TURNS[case]
    assert old in SUITE
    Path("suites/orders.dql").write_text(SUITE.replace(old, new))
    found = {
        change["assertion"]: {
            turn: [on[-2:] for on in on_days] for turn, on_days in change["turned"].items()
        }
        for change in changes("--backtest", *PERIOD)
    }
    assert found == expected


@pytest.mark.parametrize(
    ("now", "names"),
    [
        ('watch orders drift holidays "US"', []),
        ('watch orders holidays "US"', ["orders.watch"]),
        ("watch orders drift", ["orders.watch", "orders.watch.rows"]),
        ('assert num_rows() > 0 name "a"', ["a", "orders.watch", "orders.watch.rows"]),
    ],
)
def test_a_changed_watch_is_listed_though_no_run_has_shown_its_columns(
    here: Path, now: str, names: list[str]
) -> None:
    suite = 'suite "Watched" {{ check "C" on orders {{ {} }} }}'
    commit({"suites/orders.dql": suite.format('watch orders drift holidays "US"')})
    Path("suites/orders.dql").write_text(suite.format(now))
    assert sorted(change["assertion"] for change in changes()) == names


@pytest.mark.parametrize(
    ("now", "shown"),
    [
        ("5 tunable [1, 9]", []),
        ("5 tunable [ 1 , 9 ]", []),
        ("5 tunable [1, 90]", [("5 tunable [1, 9]", "5 tunable [1, 90]")]),
        ("5", [("5 tunable [1, 9]", None)]),
    ],
)
def test_changed_bounds_of_a_constant_are_listed(
    here: Path, now: str, shown: list[tuple[str, str | None]]
) -> None:
    suite = 'suite "S" {{ const LEAST = {} check "C" on orders {{ assert num_rows() > LEAST }} }}'
    commit({"suites/orders.dql": suite.format("5 tunable [1, 9]")})
    Path("suites/orders.dql").write_text(suite.format(now))
    found = changes()
    assert [(change["before"], change["after"]) for change in found] == shown
    assert [change["assertion"] for change in found] == ["LEAST.tunable"] * len(shown)


WEAKER = {
    "P3": ("{assert} severity P3", "blocked -> warned on 4 days"),
    "experiment": ("@experimental {assert}", "blocked -> warned on 4 days"),
    "downgrade": ("{assert} tags [mild]", "blocked -> warned on 4 days"),
    "disabled": ("{assert} tags [off]", "blocked -> skipped on 4 days"),
    "removed": ("", "blocked -> absent on 4 days"),
    "looser": ("assert num_rows() >= 5 {name}", "blocked -> passed on 2 days"),
    "other units": ("assert num_rows() >= 0.05 {name}", "blocked -> passed on 4 days"),
    "default": ("assert max(num_rows(), 10) >= 10 {name}", "blocked -> passed on 4 days"),
    "tolerance": ("assert num_rows() == 10 tolerance 5 {name}", "blocked -> passed on 2 days"),
    "filter": ('assert num_rows(where email == "x") >= 10 {name}', "not known on 6 days"),
    "band": ("assert num_rows() within 3 stddev of 7 days {name}", "for other reasons"),
    "groups": ('assert num_rows() >= 10 for each email in ["x"] {name}', "not known on 6 days"),
}


def test_every_output_has_every_weakening_with_the_days(here: Path) -> None:
    lines = {False: list[str](), True: list[str]()}
    for case, (weaker, _) in WEAKER.items():
        name = f'name "{case}"'
        strict = f"assert num_rows() >= 10 {name}"
        lines[False].append(strict)
        lines[True].append(weaker.replace("{assert}", strict).replace("{name}", name))
    profile = 'profile "Year" { from 2024-01-01 to 2024-12-31 %s }'
    suite = 'suite "Weaker" {\ncheck "Volume" on orders {\n%s\n}\n%s\n}\n'
    commit({"suites/weaker.dql": suite % ("\n".join(lines[False]), "")})
    rules = 'downgrade tag "mild" to P3 disable tag "off"'
    Path("suites/weaker.dql").write_text(suite % ("\n".join(lines[True]), profile % rules))
    outputs = {
        form: dql("diff", "suites/weaker.dql", "--backtest", *PERIOD, "--format", form)
        for form in ("text", "markdown", "github", "sarif")
    }
    found = json.loads(outputs["sarif"])["runs"][0]["results"]
    assert {one["ruleId"] for one in found} == {"W051"}
    messages = {
        "text": outputs["text"].split("\n\n"),
        "markdown": outputs["markdown"].replace("\\", "").splitlines(),
        "github": outputs["github"].splitlines(),
        "sarif": [one["message"]["text"] for one in found],
    }
    for form, each in messages.items():
        for case, (_, fact) in WEAKER.items():
            assert any(re.search(rf"\b{case}\b", one) and fact in one for one in each), (form, case)


def test_a_severity_in_a_macro_of_a_library_is_of_the_assertion_that_uses_it(here: Path) -> None:
    library = 'export macro enough(n) { assert num_rows() >= {n} name "rows" severity P1 }'
    suite = 'import "../lib.dql" suite "Orders" { check "Volume" on orders { use enough(10) } }'
    commit({"lib.dql": library, "suites/orders.dql": suite, "dqx.toml": ""})
    Path("lib.dql").write_text(library.replace("P1", "P2"))
    (change,) = changes("--backtest", *PERIOD)
    assert change["turned"] == {
        "blocked -> warned": ["2024-12-03", "2024-12-04", "2024-12-05", "2024-12-06"]
    }


SETTINGS = {
    "fail_on": (
        '[defaults]\nfail_on = "P0"\n',
        "defaults.fail_on",
        "blocked -> warned on 4 days: 2024-12-02, 2024-12-03, 2024-12-04, 2024-12-06",
    ),
    "the fail_on of a gate": (
        '[datasets.orders]\npath = "o"\n[gates.orders]\nsuite = "suites/orders.dql"\n'
        'fail_on = "P0"\n',
        "gates.orders.fail_on",
        "blocked -> warned on 4 days",
    ),
    "on_violation": (
        '[datasets.orders]\npath = "o"\n[gates.orders]\nsuite = "suites/orders.dql"\n'
        'on_violation = "warn"\n',
        "gates.orders.on_violation",
        "blocked (fail) -> blocked (warn) on 4 days",
    ),
    "a filter": (
        '[datasets.orders]\npath = "o"\nfilter = "email is not null"\n',
        "datasets.orders.filter",
        "not known on 6 days: stored values do not contain",
    ),
    "empty dates": ("[defaults]\nallow_empty = true\n", "defaults.allow_empty", "not known on 6"),
    "a variable of contracts": (
        '[contracts.variables]\nfail_on = "0"\n',
        "contracts.variables.fail_on",
        "not known on 6 days: stored values do not contain",
    ),
    "a setting of Spark": (
        "[connection.conf]\n'spark.sql.files.ignoreMissingFiles' = 'true'\n",
        "connection.conf.spark.sql.files.ignoreMissingFiles",
        "not known on 6 days: stored values do not contain",
    ),
    "a gate less": ('[datasets.orders]\npath = "o"\n', "gates.orders.suite", "not known"),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("case", SETTINGS)
def test_every_output_has_a_weaker_setting_with_the_days(here: Path, case: str) -> None:
    text, name, facts = SETTINGS[case]
    before = ""
    if case == "a gate less":
        before = text + '[gates.orders]\nsuite = "suites/orders.dql"\n'
    elif name.startswith("gates."):
        before = text.rpartition("\n")[0].rpartition("\n")[0] + "\n"
    elif name.startswith("datasets."):
        before = text.partition("filter")[0]
    Path("dqx.toml").write_text(before)
    git("commit", "-q", "--allow-empty", "-am", "settings")
    Path("dqx.toml").write_text(text)
    for form in ("text", "markdown", "github", "sarif"):
        shown = dql("diff", "suites", "--backtest", *PERIOD, "--format", form)
        assert name in shown.replace("\\", ""), form
        assert facts in shown.replace("\\", ""), form
        assert "W051" in shown or form in ("text", "markdown")
    assert re.search(f"(changed|new|removed): {name}", dql("diff", "suites"))


WITHOUT_SUITE = {
    "beside contracts alone": ("dqx.toml", ("suites/orders.dql",), ()),
    "below the working directory": ("team/dqx.toml", (), ()),
    "below a folder of the call": ("team/dqx.toml", (), ("suites", "team", ".")),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("case", WITHOUT_SUITE)
def test_settings_that_are_nearest_to_no_suite_are_compared(here: Path, case: str) -> None:
    settings, removed, paths = WITHOUT_SUITE[case]
    for file in removed:
        Path(file).unlink()
    Path("team").mkdir()
    Path("team/other.dql").write_text("export const X = 1\n")
    commit({settings: "[defaults]\n"})
    Path(settings).write_text('[defaults]\nfail_on = "P0"\n')
    (change,) = changes(*paths)
    assert (change["setting"], change["after"]) == ("defaults.fail_on", '"P0"')
    assert "| | setting | was | is |" in dql("diff", *paths, "--format", "markdown")


@pytest.mark.more
def test_a_gate_below_another_folder_has_its_days(here: Path) -> None:
    gate = '[datasets.orders]\npath = "o"\n[gates.orders]\nsuite = "../suites/orders.dql"\n'
    commit({"team/dqx.toml": gate})
    Path("team/dqx.toml").write_text(f'{gate}fail_on = "P0"\n')
    (change,) = changes("--backtest", *PERIOD)
    assert sum(map(len, change["turned"].values())) == 4


@pytest.mark.more
def test_a_default_turns_no_day_of_a_gate_with_its_own_value(here: Path) -> None:
    gate = '[datasets.orders]\npath = "o"\n[gates.orders]\nsuite = "suites/orders.dql"\n'
    commit({"dqx.toml": f'{gate}fail_on = "P1"\n'})
    Path("dqx.toml").write_text(f'{gate}fail_on = "P1"\n[defaults]\nfail_on = "P0"\n')
    (change,) = changes("--backtest", *PERIOD)
    assert change["turned"] == {}
    assert [*change["unknown"]] == ["no suite that it applies to has stored values"]


def test_a_file_that_has_no_suite_any_more_has_lost_its_assertions(here: Path) -> None:
    Path("suites/orders.dql").write_text("export const X = 1\n")
    shown = dql("diff", "--backtest", *PERIOD, "--format", "github")
    assert f"removed assertion '{ROWS}': blocked -> absent on 3 days" in shown
    # It may have moved to another file at the same time.
    Path("suites/moved.dql").write_text(SUITE.replace("LEAST = 10", "LEAST = 7"))
    (change,) = changes("--backtest", *PERIOD)
    assert change["turned"] == {"blocked -> passed": ["2024-12-03", "2024-12-06"]}


def test_a_gate_that_p2_blocks_is_not_opened_by_p2(here: Path, tmp_path: Path) -> None:
    strict = str(tmp_path / "strict")
    store_days(strict, orders(COUNTS), range(6), fail_on=Severity.P2)
    weaker = SUITE.replace('min_rows"', 'min_rows" severity P2')
    Path("suites/orders.dql").write_text(weaker)
    (change,) = changes("--backtest", *PERIOD, "--results-root", strict)
    assert change["turned"] == {}
    assert change["known"] == 6


MOVED = {
    "a new suite in a file of its own": (SUITE, "suites/volume.dql"),
    "a renamed suite in the same file": ("", "suites/orders.dql"),
}


@pytest.mark.parametrize("case", MOVED)
def test_values_of_any_gate_judge_a_suite_that_none_runs_yet(here: Path, case: str) -> None:
    kept, file = MOVED[case]
    Path("suites/orders.dql").write_text(kept)
    Path(file).write_text(
        'suite "Order volume" { check "Volume" on orders { assert num_rows() >= 20 name "v" } }'
    )
    commit({})
    Path(file).write_text(Path(file).read_text().replace("20", "5"))
    output = dql("diff", "--backtest", *PERIOD)
    assert "with values that other suites measured: orders_gate" in output
    (change,) = changes("--backtest", *PERIOD)
    assert change["turned"] == {"blocked -> passed": ["2024-12-03", "2024-12-05"]}


@pytest.mark.more
def test_values_of_another_table_of_that_name_judge_nothing(here: Path, tmp_path: Path) -> None:
    root = str(tmp_path / "both")
    new = 'suite "New" { check "Volume" on orders { assert num_rows() >= 20 name "v" } }'
    for gate, reading in (("a", "in silver"), ("b", "in gold")):
        store_days(root, orders(COUNTS), range(6), gate=gate, reading=reading)
    Path("suites/new.dql").write_text(new)
    output = dql("diff", "--backtest", *PERIOD, "--results-root", root)
    assert "no past day was evaluated" in output
    assert "dataset 'orders' is read differently by the gates a, b: add --gate" in output
    for output_format in ("github", "sarif"):
        machine = dql(
            "diff", "--backtest", *PERIOD, "--results-root", root, "--format", output_format
        )
        assert "new assertion 'v': no past day was evaluated" in machine
    (change,) = changes("--backtest", *PERIOD, "--results-root", root, "--gate", "a")
    assert sum(map(len, change["turned"].values())) == 4


def test_the_page_of_the_code_has_the_finding_of_its_example(here: Path) -> None:
    page = Path(dqx_airflow.__file__).parent / "docs" / "codes" / "W051.md"
    (wrong, shown), (right,) = (
        [block.text for block in case.blocks] for case in cases(page, fewest_blocks=1)
    )
    commit({"suites/orders.dql": right})
    counts = {number: (900 if number in (2, 5) else 1200, 0) for number in range(6)}
    store_days("results", orders(counts), range(6), suite=right)
    Path("suites/orders.dql").write_text(wrong)
    output = dql("diff", "--backtest", *PERIOD, "--results-root", "results", "--format", "sarif")
    (finding,) = json.loads(output)["runs"][0]["results"]
    assert finding["ruleId"] == "W051"
    assert shown.startswith(f"warning[W051]: {finding['message']['text']}")
    assert finding["locations"][0]["physicalLocation"]["region"]["startLine"] == 3


def test_what_stored_values_do_not_decide_is_said_with_the_reason(here: Path) -> None:
    Path("suites/orders.dql").write_text(SUITE.replace("null_count(email)", "unique_count(email)"))
    output = dql("diff", "--backtest", *PERIOD)
    assert "not known on 6 days: no stored value of unique_count(email) of 'orders'" in output
    assert "6 of 10 days until 2024-12-10 have stored values" in output
    later = dql("diff", "--backtest")
    assert "no past day was evaluated: suite 'Orders' has no results from" in later
    assert "no results under" in dql("diff", "--backtest", "--results-root", "empty", code=2)


@pytest.mark.few(2)
@pytest.mark.parametrize("form", ["text", "json", "markdown", "github", "sarif"])
def test_a_path_that_never_was_is_an_error(here: Path, form: str) -> None:
    Path("empty").mkdir()
    for path in ("suites/ordres.dql", "empty", "nope"):
        shown = dql("diff", "suites", path, "--format", form, code=2)
        assert f"no .dql file found at {path}, neither now nor at HEAD" in shown
    assert "did you mean 'orders.dql'?" in dql("diff", "suites/ordres.dql", code=2)


def test_without_backtest_no_store_is_needed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DQX_RESULTS_ROOT")
    assert dql("diff") == "no assertion and no setting differs from HEAD\n"
    assert dql("diff", "--format", "github") == ""
    Path("suites/orders.dql").write_text(SUITE.replace("LEAST = 10", "LEAST = 7"))
    lines = dql("diff").splitlines()
    assert lines[-3:] == [
        f"  changed: {ROWS} (suites/orders.dql:11)",
        "    - num_rows() >= LEAST (10) (P1, tag volume, costs 5 and 200)",
        "    + num_rows() >= LEAST (7) (P1, tag volume, costs 5 and 200)",
    ]
    assert "add --results-root ROOT" in dql("diff", "--backtest", code=2)


def test_libraries_and_moved_files_are_compared_as_they_were(here: Path) -> None:
    library = 'export macro rows(n) {\n    assert num_rows() >= {n} name "rows"\n}\n'
    suite = 'import "lib/rows.dql"\nsuite "A" {{ check "C" on t {{ use rows({n}) }} }}\n'
    commit({"lib/rows.dql": library, "a/a.dql": suite.format(n=3), "dqx.toml": "[defaults]"})
    Path("lib/rows.dql").write_text(library.replace("{n} name", "{n} + 1 name"))
    assert [change["assertion"] for change in changes("a")] == ["rows"]
    git("checkout", "lib")
    Path("b").mkdir()
    git("mv", "a/a.dql", "b/renamed.dql")
    assert changes("b") == []
    Path("b/renamed.dql").write_text(suite.format(n=4))
    assert [(change["before"], change["after"]) for change in changes("b")] == [
        ("num_rows() >= 3 (P1)", "num_rows() >= 4 (P1)")
    ]
    git("rm", "-q", "-f", "suites/orders.dql")
    assert CliRunner().invoke(app, ["diff", "suites"]).stderr == ""
    assert [change["after"] for change in changes("suites", ".")][-3:] == [None] * 3


def test_a_suite_with_errors_is_an_error_now_and_counts_as_new_if_it_was_one(here: Path) -> None:
    commit({"suites/orders.dql": SUITE.replace("num_rows() >=", "num_row() >=")})
    assert "unknown metric 'num_row'" in dql("diff", code=2)
    Path("suites/orders.dql").write_text(SUITE)
    done = CliRunner().invoke(app, ["diff"])
    assert "warning: suites/orders.dql has errors at HEAD: it counts as new" in done.output
    assert done.output.count("\n  new: ") == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--git", "nope"), "error: git failed: fatal: Not a valid object name nope"),
        (("--git", "--all"), "Not a valid object name --all"),
    ],
)
def test_what_cannot_be_compared_is_a_message(
    here: Path, arguments: tuple[str, ...], message: str
) -> None:
    assert message in dql("diff", *arguments, code=2)


def test_a_comment_has_a_row_for_each_change_and_annotations_have_the_days(here: Path) -> None:
    Path("suites/orders.dql").write_text(SUITE.replace("LEAST = 10", "LEAST = 7"))
    comment = dql("diff", "--backtest", *PERIOD, "--format", "markdown")
    assert "| changed | orders.volume.min\\_rows | num\\_rows() \\>= LEAST (10)" in comment
    assert "blocked -\\> passed on 2 days: 2024-12-03, 2024-12-06 |" in comment
    (annotation,) = dql("diff", "--backtest", *PERIOD, "--format", "github").splitlines()
    assert annotation.startswith("::warning file=suites/orders.dql,line=11,")
    sarif = json.loads(dql("diff", "--backtest", *PERIOD, "--format", "sarif"))
    (result,) = sarif["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("W051", "warning")
    assert "2024-12-03, 2024-12-06" in result["message"]["text"]


CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: orders
name: orders
version: 2.3.0
status: active
schema:
  - name: orders
    logicalType: object
    properties:
      - {name: email, logicalType: string}
    quality:
      - {id: enough, metric: rowCount, mustBeGreaterOrEqualTo: 5}
customProperties:
  - {property: consumers, value: [{team: bi, pin: "2"}, {team: crm}, {team: old, pin: "1.0.0"}]}
"""


def test_a_tighter_contract_names_the_days_and_the_consumers_that_it_reaches(
    here: Path, tmp_path: Path
) -> None:
    contract = read_contract(SourceFile("orders.odcs.yaml", CONTRACT)).contract
    assert contract is not None
    store_days("results", orders(COUNTS), range(6), suite=compile_contract(contract).text)
    commit({"orders.odcs.yaml": CONTRACT})
    tighter = CONTRACT.replace("2.3.0", "3.0.0").replace("EqualTo: 5", "EqualTo: 8")
    Path("new.odcs.yaml").write_text(tighter)
    places = (
        "orders.odcs.yaml",
        "new.odcs.yaml",
        "--results-root",
        "results",
        *PERIOD,
        "--backtest",
    )
    output = dql("contract", "diff", *places)
    assert "a major bump is required" in output
    assert "passed -> blocked on 1 day: 2024-12-05" in output
    assert [line.strip() for line in output.splitlines() if line.startswith("  consumer")] == [
        "consumer bi pins 2: reads 2.3.0",
        "consumer crm pins no version: is reached by 3.0.0",
        "consumer old pins 1.0.0: no version 1.0.0 is published",
    ]
    dql("contract", "registry", "publish", "orders.odcs.yaml", "--registry", "published")
    assert "consumer bi pins 2: reads 2.3.0" in dql(
        "contract", "diff", *places, "--registry", "published"
    )
    Path("orders.odcs.yaml").write_text(tighter)
    arguments = ("--git", "HEAD", "orders.odcs.yaml", *places[2:], "--format", "json")
    (suite,) = json.loads(dql("contract", "diff", *arguments, code=1))["suites"]
    assert suite["changes"][0]["turned"] == {"passed -> blocked": ["2024-12-05"]}


def test_a_contract_whose_rule_only_informs_no_longer_blocks(here: Path) -> None:
    contract = read_contract(SourceFile("orders.odcs.yaml", CONTRACT)).contract
    assert contract is not None
    store_days("results", orders(COUNTS), range(6), suite=compile_contract(contract).text)
    commit({"orders.odcs.yaml": CONTRACT})
    weaker = CONTRACT.replace("EqualTo: 5", "EqualTo: 5, severity: info")
    Path("orders.odcs.yaml").write_text(weaker)
    places = ("--git", "HEAD", "orders.odcs.yaml", "--results-root", "results", *PERIOD)
    output = dql("contract", "diff", *places, "--backtest", code=1)
    assert "blocked -> warned on 2 days: 2024-12-04, 2024-12-06" in output
    assert "the severity of `enough` changes: P1 → P3" in output
    assert "documentation only" not in output
    machine = dql("contract", "diff", *places, "--backtest", "--format", "github", code=1)
    assert "::warning file=orders.odcs.yaml,line=13," in machine


@pytest.mark.more
def test_a_renamed_contract_is_judged_by_the_values_of_the_old_one(here: Path) -> None:
    contract = read_contract(SourceFile("orders.odcs.yaml", CONTRACT)).contract
    assert contract is not None
    store_days("results", orders(COUNTS), range(6), suite=compile_contract(contract).text)
    commit({"orders.odcs.yaml": CONTRACT})
    git("mv", "orders.odcs.yaml", "sales.odcs.yaml")
    renamed = CONTRACT.replace("id: orders", "id: sales").replace("EqualTo: 5", "EqualTo: 8")
    Path("sales.odcs.yaml").write_text(renamed)
    places = ("--git", "HEAD", ".", "--results-root", "results", *PERIOD, "--format", "json")
    found = json.loads(dql("contract", "diff", *places, "--backtest", code=1))["suites"]
    turned = [change["turned"] for suite in found for change in suite["changes"]]
    assert {"absent -> blocked": ["2024-12-04", "2024-12-05", "2024-12-06"]} in turned
    assert {"blocked -> absent": ["2024-12-04", "2024-12-06"]} in turned


PAGE_OF_REVIEWS = Path(dqx_airflow.__file__).parent / "docs/review-changes.md"
PIPELINES = dict(re.findall(r"```yml\n# (\S+)\n(.*?)```", PAGE_OF_REVIEWS.read_text(), re.DOTALL))


@pytest.fixture
def merge_request(
    here: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone with a change of a suite, and a store with days before today."""
    root = str(tmp_path_factory.mktemp("recent"))
    begin = (date.today() - FIRST).days - 8
    shifted = {begin + number: count for number, count in COUNTS.items()}
    store_days(root, orders(shifted), range(begin, begin + 6))
    git("clone", "-q", str(here), "clone")
    monkeypatch.chdir("clone")
    git("checkout", "-q", "-b", "change")
    commit({"suites/orders.dql": SUITE.replace("LEAST = 10", "LEAST = 7")})
    monkeypatch.setenv("DQX_RESULTS_ROOT", root)


def run(script: list[str]) -> str:
    """Runs the commands of a job in a shell, as its runner does; without installations."""
    commands = [line for line in script if not line.startswith(("pip ", "gh "))]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return output_of(["bash", "-e", "-c", "\n".join(commands)], env={**os.environ, "PATH": path})


@pytest.mark.more
def test_the_github_workflow_of_the_docs_runs(
    merge_request: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    job = yaml.safe_load(PIPELINES[".github/workflows/backtest.yml"])["jobs"]["backtest"]
    output = run([step["run"] for step in job["steps"] if "run" in step])
    assert output.startswith("::warning file=suites/orders.dql,line=11,")
    assert "blocked -\\> passed on 1 day" in Path("comment.md").read_text()
    assert json.loads(Path("dql.sarif").read_text())["runs"][0]["results"]


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The bodies that a server in the place of GitLab's API gets."""
    bodies: list[str] = []

    def answer(asked: Asked) -> Reply:
        bodies.append(asked.body.decode())
        return Reply(201)

    with http_stub(answer) as address:
        monkeypatch.setenv("CI_API_V4_URL", address)
        yield bodies


@pytest.mark.more
def test_the_gitlab_job_of_the_docs_runs(
    merge_request: None, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main")
    monkeypatch.setenv("DQL_TOKEN", "a token of the project")
    run(yaml.safe_load(PIPELINES[".gitlab-ci.yml"])["backtest"]["script"])
    (body,) = notes
    assert "blocked -\\> passed on 1 day" in body


IN_WORDS = {
    "a constant in a filter": ('WHO = "paid"', 'WHO = "open"'),
    "another dataset": ("on orders", "on customers"),
    "a required assertion": ("assert num_rows", "@required assert num_rows"),
    "the cost of a false alarm": ("assert num_rows", "@cost(false_positive=5) assert num_rows"),
    "a share of known days": ("const", "availability_threshold 50% const"),
}


@pytest.mark.parametrize("case", IN_WORDS)
def test_the_words_of_an_assertion_differ_wherever_it_does(here: Path, case: str) -> None:
    suite = (
        'suite "A" { const WHO = "paid" check "C" on orders { assert num_rows(where status == WHO) '
        '> num_rows(lag 7) name "rows" } }'
    )
    commit({"suites/a.dql": suite})
    Path("suites/a.dql").write_text(suite.replace(*IN_WORDS[case]))
    (change,) = changes("suites/a.dql")
    assert change["assertion"] == "rows"
    assert change["before"] != change["after"]


def test_suites_that_archives_leave_out_are_compared(here: Path) -> None:
    commit({".gitattributes": "suites export-ignore", "suites/größe ü.dql": SUITE})
    Path("suites/größe ü.dql").write_text(SUITE.replace("LEAST = 10", "LEAST = 7"))
    assert [change["assertion"] for change in changes()] == [ROWS]


def test_a_link_out_of_a_repository_or_in_a_circle_is_not_read(here: Path) -> None:
    links = {"elsewhere": "/etc/hostname", "one": "other.dql", "other": "one.dql"}
    for name, target in links.items():
        Path(f"suites/{name}.dql").symlink_to(target)
    Path("suites/beside.dql").symlink_to("orders.dql")
    commit({"note.txt": ""})
    for name in links:
        Path(f"suites/{name}.dql").unlink()
    Path("suites/orders.dql").write_text(SUITE.replace("LEAST = 10", "LEAST = 7"))
    assert [change["before"] is None for change in changes()] == [False, False]
