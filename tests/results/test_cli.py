"""`dql results`: its output and exit codes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner, Result

from dqx_airflow.cli.main import app
from dqx_airflow.results import oors_receiver
from dqx_airflow.results.oors import oors_message
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import DatasetSnapshot, Outcome, Severity
from dqx_airflow.values.output_form import output_form
from tests.hostile_endpoints import KINDS, endpoint
from tests.http_stub import Asked, Reply, http_stub
from tests.made_reports import verdict_of
from tests.processes import output_of
from tests.results.samples import FAILED, PASSED, RUN_KEY, sample_report


def dql(*arguments: str, **environment: str) -> Result:
    variables = {"DQX_RESULTS_ROOT": None, "FORCE_COLOR": None, "NO_COLOR": None, **environment}
    return CliRunner().invoke(app, ["results", *arguments], env=variables)


@pytest.fixture
def root(tmp_path: Path) -> str:
    green = sample_report(
        3,
        run_key=replace(RUN_KEY, gate="customers_to_gold"),
        outcome=Outcome.PASSED,
        verdicts=(PASSED,),
        minutes=-60,
    )
    for report in (green, sample_report(1, minutes=-5), sample_report(2, attempt=2)):
        ResultsStore(str(tmp_path / "store")).write(report)
    return str(tmp_path / "store")


def test_list_shows_the_last_attempts_newest_first(root: str) -> None:
    result = dql("list", "--results-root", root)
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["run", "outcome", "gate", "date", "attempt", "failed", "worst", "finished"],
        ["00000002", "blocked", "orders_to_silver", "2024-02-29", "2", "1/4", "+1", "error",
         "no_negative_amounts", "(P0)", "2024-03-01", "06:00:30Z"],
        ["00000003", "passed", "customers_to_gold", "2024-02-29", "1", "0/1",
         "2024-03-01", "05:00:30Z"],
    ]  # fmt: skip


def test_export_writes_a_message_of_the_open_standard(root: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    done = dql(
        "export", "00000001", "--format", "oors", "--results-root", root, "--output", str(path)
    )
    assert (done.exit_code, done.stdout) == (0, "")
    message = json.loads(path.read_text())
    assert (message["apiVersion"], message["kind"]) == ("v0.8.1", "ObservabilityResults")
    assert message["id"] == "00000001-0000-4000-8000-000000000000"
    assert message["source"]["process"] == "orders_to_silver"
    assert message["contract"] == {"contractId": "urn:orders", "version": "1.2.0"}
    # Required by the standard: id, type, name, status; what they are is fixed.
    results = {result["name"]: result for result in message["results"]}
    statuses = {name: result["status"] for name, result in results.items()}
    assert statuses == {
        "orders.not_empty": "pass",
        "no_negative_amounts": "fail",
        "trend": "skip",
        "typo": "error",
    }
    failed = results["no_negative_amounts"]
    assert {"id", "type", "message"} <= failed.keys()
    assert failed["relatesTo"] == "models.orders.fields.amount.minimum"
    assert failed["target"] == {"resourceType": "column", "resourceIdentifier": "orders.amount"}
    assert isinstance(failed["measure"]["value"], float)
    assert "threshold" not in failed["measure"], "its value is compared after it is scaled"
    assert message["status"] == "error"
    assert "failing_rows" not in path.read_text()
    warns = sample_report(9, fail_on=Severity.P0, verdicts=(replace(FAILED, severity=Severity.P2),))
    assert [one["status"] for one in oors_message(warns)["results"]] == ["warn"]
    assert oors_message(warns)["status"] == "warn"
    unknown = dql("export", "ffff", "--format", "oors", "--results-root", root)
    assert (unknown.exit_code, "no run ffff under" in unknown.output) == (2, True)
    assert (
        json.loads(dql("export", "--format", "oors", "--results-root", root).stdout)["id"][:8]
        == "00000002"
    )
    assert dql("export", "--format", "csv", "--results-root", root).exit_code == 2


def test_the_rows_of_one_group_are_not_those_of_the_dataset() -> None:
    verdict = verdict_of("v", value=3, threshold=0, groups=2, worst_group="basel")
    report = replace(
        sample_report(1, verdicts=(verdict,)),
        datasets=(DatasetSnapshot("orders", "/lake/orders", "parquet", rows=1200),),
    )
    (result,) = oors_message(report)["results"]
    assert "rowCount" not in result["measure"]


@pytest.mark.parametrize(
    ("expected", "threshold", "measure"),
    [
        ("== 0 violating rows", 0, {"threshold": {"mustBe": 0}, "failedRowCount": 3}),
        ("<= MOST (2.5)", Fraction(5, 2), {"threshold": {"mustBeLessOrEqualTo": 2.5}}),
        ("in [1, 2]", None, {}),
    ],
)
def test_a_measure_has_the_limit_and_the_rows_of_the_standard(
    expected: str, threshold: Any, measure: dict[str, Any]
) -> None:
    verdict = verdict_of(
        "v", expected=expected, threshold=threshold, value=3, expression="total(a)"
    )
    report = replace(
        sample_report(1, verdicts=(verdict,)),
        datasets=(DatasetSnapshot("orders", "/lake/orders", "parquet", rows=1200),),
    )
    (result,) = oors_message(report)["results"]
    due = {"metric": "total(a)", "value": 3, "rowCount": 1200, **measure}
    assert result["measure"] == due


@dataclass
class Receiver:
    """Answers as it is told, one status for each request, and keeps what it got."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    got: list[tuple[str, str | None, Any]] = field(default_factory=list)

    def answer(self, asked: Asked) -> Reply:
        self.got.append((asked.path, asked.headers.get("Authorization"), asked.json()))
        return Reply(self.statuses.pop(0), headers={"Location": "/elsewhere"})


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A server on this machine; there is no time between attempts."""
    for name in ("DQX_RESULTS_TOKEN", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(oors_receiver, "_WAITS_S", (0.0, 0.0, 0.0))
    found = Receiver()
    with http_stub(found.answer) as address:
        found.url = f"{address}/hook-of-ada?key=k3y"
        yield found


def export_to(url: str, root: str, code: int) -> str:
    done = dql("export", "00000001", "--format", "oors", "--results-root", root, "--url", url)
    assert done.exit_code == code, done.output
    for secret in ("hook-of-ada", "k3y", "t0ken", "Traceback"):
        assert secret not in done.output
    return " ".join(done.output.split())


@pytest.mark.few(1)
@pytest.mark.parametrize("before", [[], [503], [429, 500]])
def test_export_posts_the_message_again_until_it_is_taken(
    root: str, receiver: Receiver, before: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DQX_RESULTS_TOKEN", "t0ken")
    receiver.statuses[:] = [*before, 202]
    expected = dql("export", "00000001", "--format", "oors", "--results-root", root).stdout
    assert "sent run 00000001" in export_to(receiver.url, root, 0)
    assert receiver.got == [
        ("/hook-of-ada?key=k3y", "Bearer t0ken", json.loads(expected))
    ] * (len(before) + 1)  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("statuses", "code", "expected"),
    [
        ([401], 2, "it answered 401 help: see the address and DQX_RESULTS_TOKEN"),
        ([404], 2, "127.0.0.1:{port} did not take the message: it answered 404"),
        ([422], 2, "it answered 422"),
        ([302], 2, "it answered 302 help: give the address that it redirects to"),
        ([307], 2, "it answered 307 help: give"),
        ([503, 503, 503], 4, "in 3 attempts: it answered 503"),
        ([503, 400], 2, "it answered 400"),
    ],
)
def test_a_message_that_is_not_taken_is_an_error_that_says_why(
    root: str, receiver: Receiver, statuses: list[int], code: int, expected: str
) -> None:
    receiver.statuses[:] = statuses
    port = urlsplit(receiver.url).port
    assert expected.format(port=port) in export_to(receiver.url, root, code)
    assert receiver.statuses == []
    assert {authorization for _, authorization, _ in receiver.got} == {None}


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("url", "code", "expected"),
    [
        ("http://127.0.0.1:1/hook-of-ada?key=k3y", 4, "in 3 attempts: no connection"),
        ("file:///hook-of-ada", 2, "the address or the token is invalid"),
        ("https:///hook-of-ada", 2, "the address or the token is invalid"),
        ("http://[broken/hook-of-ada", 2, "the address or the token is invalid"),
        ("hook-of-ada", 2, "give --url https://HOST/PATH"),
        ("http://ada:k3y@127.0.0.1:99999/", 2, "the address or the token is invalid"),
    ],
)
@pytest.mark.usefixtures("receiver")
def test_an_address_that_leads_nowhere_is_an_error(
    root: str, url: str, code: int, expected: str
) -> None:
    assert expected in export_to(url, root, code)


def test_a_token_that_is_no_header_is_an_error(
    root: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DQX_RESULTS_TOKEN", "t0ken\nX-Other: 1")
    assert "the address or the token is invalid" in export_to(receiver.url, root, 2)
    assert receiver.got == []


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["talks garbage", "resets"])
@pytest.mark.usefixtures("receiver")
def test_a_server_that_talks_no_http_is_no_connection(root: str, kind: str) -> None:
    with endpoint(KINDS[kind]) as port:
        found = export_to(f"http://127.0.0.1:{port}/hook-of-ada", root, 4)
    assert "no connection" in found


def test_list_filters(root: str) -> None:
    assert (
        dql("list", "--results-root", root, "--gate", "customers_to_gold").stdout.count("\n") == 2
    )
    assert dql("list", "--results-root", root, "--date", "2024-02-29").stdout.count("\n") == 3
    assert dql("list", "--results-root", root, "--limit", "1").stdout.count("\n") == 2
    assert dql("list", "--results-root", root, "--all-attempts").stdout.count("\n") == 4


def test_list_prints_json(root: str) -> None:
    runs = json.loads(dql("list", "--results-root", root, "--format", "json").stdout)
    assert [run["run_id"][:8] for run in runs] == ["00000002", "00000003"]
    assert [*runs[0]][:5] == ["run_id", "gate", "date", "map_index", "scheduler_run"]
    assert runs[0]["gate"] == "orders_to_silver"
    assert runs[0]["outcome"] == "blocked"


def test_the_root_may_come_from_the_environment(root: str) -> None:
    assert dql("list", DQX_RESULTS_ROOT=root).exit_code == 0


def test_show_prints_every_assertion_and_draws_failures(root: str) -> None:
    result = dql("show", "latest", "--results-root", root)
    assert result.exit_code == 0
    assert result.stdout.startswith("blocked: gate orders_to_silver, dataset orders")
    for text in (
        sample_report(2).run_id,
        "s3://lake/orders, version 12, 5 rows, 5 in quarantine",
        "-1.65 (-1.5 x 1.1)",
        "not evaluated: too few days",
        "error: assertion failed: no_negative_amounts",
        "3 |     assert minimum(amount) >= 0 # \N{SNOWMAN}",
        "warning: assertion could not be evaluated: typo",
    ):
        assert text in result.stdout
    assert "\x1b" not in result.stdout


def test_show_prints_three_failing_rows_or_the_whole_sample(root: str) -> None:
    few = dql("show", "latest", "--results-root", root).stdout
    assert few.count("= failing row: id=") == 3
    assert "= failing row: id=0, amount=-1.50, name=NULL (amount < 0)\n" in few
    assert "= failing row: 2 more in the sample: dql results show 00000002 --rows" in few
    assert "= note: those of customers are not shown" in few
    every = dql("show", "latest", "--results-root", root, "--rows").stdout
    assert every.count("= failing row: id=") == 5
    assert "more in the sample" not in every


def test_show_as_json_is_the_report(root: str) -> None:
    result = dql("show", "00000001", "--results-root", root, "--format", "json")
    assert json.loads(result.stdout) == output_form(sample_report(1, minutes=-5))


def test_a_missing_root_names_the_option() -> None:
    for verb in (["list"], ["show", "latest"]):
        result = dql(*verb)
        assert result.exit_code == 2
        assert "--results-root" in result.stderr
        assert "DQX_RESULTS_ROOT" in result.stderr


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "--gate", "nobody"],
        ["list", "--date", "29.2.2024"],
        ["list", "--limit", "0"],
        ["list", "--format", "xml"],
        ["show", "ffff"],
        ["show", "0000"],
        ["show", ""],
    ],
)
def test_an_invalid_call_and_no_match_end_with_2(root: str, arguments: list[str]) -> None:
    result = dql(*arguments, "--results-root", root)
    assert result.exit_code == 2
    assert result.stderr
    assert "Traceback" not in result.output


def test_no_match_as_json_is_an_empty_list(root: str) -> None:
    result = dql("list", "--results-root", root, "--gate", "nobody", "--format", "json")
    assert (result.exit_code, result.stdout) == (2, "[]\n")


def test_a_missing_store_ends_with_2_and_an_unreadable_one_with_4(
    root: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "store" / "runs" / "_delta_log").glob("*.json"):
        path.write_text("{garbage")
    for bad, code in ((str(tmp_path / "file"), 4), (str(tmp_path / "none"), 2), (root, 4)):
        for verb in (["list"], ["show", "latest"], ["show", "1"]):
            result = dql(*verb, "--results-root", bad)
            assert result.exit_code == code
            assert result.stderr.startswith("error: ")
            assert bad in result.stderr
            assert result.stdout == ""


def test_strings_of_the_store_are_printed_without_markup_or_terminal_codes(tmp_path: Path) -> None:
    nasty = "[red]x[/red] [/] \x1b[31m\x07\nnext :smile:"
    verdicts = tuple(
        replace(verdict, name=nasty, expected=nasty, reason=nasty, check=nasty, value=nasty)
        for verdict in (FAILED, PASSED)
    )
    key = replace(RUN_KEY, gate=nasty, scheduler_run=nasty)
    ResultsStore(str(tmp_path)).write(sample_report(verdicts=verdicts, run_key=key, suite=nasty))
    for verb in (["list"], ["show", "latest"]):
        result = dql(*verb, "--results-root", str(tmp_path))
        assert result.exit_code == 0
        assert r"[red]x[/red] [/] \x1b[31m\x07\nnext :smile:" in result.stdout
        assert "\x1b" not in result.stdout
        assert "\x07" not in result.stdout


def test_in_a_pipe_nothing_is_cut_whatever_the_width(tmp_path: Path) -> None:
    name = "a_very_long_assertion_name_" * 8
    key = replace(RUN_KEY, gate="g" * 150)
    report = sample_report(verdicts=(replace(FAILED, name=name),), run_key=key)
    ResultsStore(str(tmp_path)).write(report)
    for force in ({}, {"FORCE_COLOR": "1"}):
        for verb in (["list"], ["show", "latest"]):
            result = dql(*verb, "--results-root", str(tmp_path), COLUMNS="40", **force)
            assert name in result.stdout
            assert "g" * 150 in result.stdout
            assert ("\x1b[" in result.stdout) == bool(force)


def on_a_terminal(columns: int, *arguments: str) -> str:
    ours, theirs = pty.openpty()
    code = "from dqx_airflow.cli.results import app; app()"
    variables = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "FORCE_COLOR"}}
    subprocess.run(
        [sys.executable, "-c", code, *arguments],
        stdout=theirs,
        env={**variables, "TERM": "xterm-256color", "COLUMNS": str(columns)},
        check=True,
    )
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    return shown


def test_on_a_terminal_outcomes_are_coloured(root: str) -> None:
    shown = on_a_terminal(160, "list", "--results-root", root)
    assert "\x1b[31mblocked" in shown
    assert "no_negative_amounts (P0)" in shown


def test_on_a_narrow_terminal_names_are_folded_and_ids_are_whole(root: str) -> None:
    shown = on_a_terminal(40, "list", "--results-root", root)
    assert "00000002" in shown
    assert "2024-03-01 06:00:30Z" in shown
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown


def test_importing_the_verbs_imports_nothing_heavy() -> None:
    code = (
        "import sys, dqx_airflow.cli.results\n"
        "print({'deltalake', 'pyarrow', 'cattrs', 'numpy', 'dqx_airflow.values'}"
        " & set(sys.modules))"
    )
    printed = output_of([sys.executable, "-c", code])
    assert printed == "set()\n"


def test_upkeep_reports_its_changes_to_each_table(root: str) -> None:
    assert dql("optimize", "--results-root", root).exit_code == 2
    rehearsal = dql("optimize", "--results-root", root, "--dry-run")
    assert "would merge the small files" in rehearsal.stderr
    assert ["runs", "3", "1", "0", "0"] in [line.split() for line in rehearsal.stdout.splitlines()]
    result = dql("optimize", "--results-root", root, "--yes")
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["runs", "3", "1", "0", "0"] in lines
    call = ("prune", "--older-than", "30d", "--results-root", root, "--format", "json")
    unasked = dql(*call)
    assert unasked.exit_code == 2
    assert "add --yes to do it, or --dry-run" in unasked.stderr
    rehearsed = dql(*call, "--dry-run")
    assert "would delete the runs" in rehearsed.stderr
    pruned = dql(*call, "--yes")
    counted, deleted = (
        {one["table"]: one["deleted_rows"] for one in json.loads(done.stdout)}
        for done in (rehearsed, pruned)
    )
    assert counted == deleted
    assert json.loads(pruned.stdout)[0] == {
        "table": "runs",
        "files_before": 1,
        "files_after": 0,
        "deleted_rows": 3,
        "deleted_files": 0,
    }
    assert dql("vacuum", "--dry-run", "--results-root", root).exit_code == 0
    assert dql("list", "--results-root", root).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("prune",), "--older-than"),
        (("prune", "--older-than", "soon"), "such as 2h, 7d or 1w"),
        (("prune", "--older-than", "0d"), "such as 2h, 7d or 1w"),
        (("vacuum", "--keep", "-1d"), "such as 2h, 7d or 1w"),
    ],
)
def test_upkeep_refuses_an_invalid_age(root: str, arguments: tuple[str, ...], message: str) -> None:
    result = dql(*arguments, "--results-root", root)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize(
    "verb", [("optimize",), ("vacuum", "--yes"), ("prune", "--older-than", "9d")]
)
def test_upkeep_without_a_store_is_an_error(tmp_path: Path, verb: tuple[str, ...]) -> None:
    result = dql(*verb, "--results-root", str(tmp_path / "nothing"))
    assert result.exit_code == 2
    assert "no results under" in result.output
