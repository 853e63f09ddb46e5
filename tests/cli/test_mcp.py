"""`dql mcp`, asked by the client of the official package over standard input and output."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dqx_airflow.results.store import ResultsStore
from dqx_airflow.tuning.proposals import ProposalStage, read_proposals
from dqx_airflow.values import DatasetSnapshot, Outcome, RunKey, Status
from tests.made_reports import report_at, verdict_of

SUITE = """\
suite "Orders" {
    const MAX_NULLS = 5% tunable [1%, 20%]
    check "Completeness" on orders {
        assert null_count(email) / num_rows() < MAX_NULLS name "email" severity P2
        @auto_approve
        assert unique(id) name "id"
    }
}
"""
SETTINGS = """\
[defaults]
results_root = "store"
[datasets.orders]
path = "lake/orders.parquet"
masked = ["email"]
"""
PROGRAM = "from dqx_airflow.cli.main import main; main()"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "dqx.toml").write_text(SETTINGS)
    (tmp_path / "orders.dql").write_text(SUITE)
    (tmp_path / "lake").mkdir()
    rows = {"id": [1, 2, 2], "email": ["eve@example.com", None, None]}
    pq.write_table(pa.table(rows), tmp_path / "lake" / "orders.parquet")
    report = report_at(
        datetime(2024, 3, 3, tzinfo=timezone.utc),
        verdict_of(
            "email",
            check="Completeness",
            expression="null_count(email) / num_rows()",
            expected="< MAX_NULLS",
            status=Status.FAILED,
            value=0.5,
            reason="half of the addresses are missing",
        ),
        run_id="00000001-0000-4000-8000-000000000000",
        run_key=RunKey("shop.orders", date(2024, 3, 2), "manual"),
        suite="Orders",
        outcome=Outcome.BLOCKED,
        datasets=(DatasetSnapshot("orders", "/lake/orders", "parquet", rows=3),),
    )
    ResultsStore(str(tmp_path / "store")).write(report)
    return tmp_path


Ask = Callable[..., Awaitable[tuple[bool, str]]]


def talk(project: Path, questions: Callable[[Any, Ask], Awaitable[None]]) -> None:
    """Starts the server as a program with agents does, and asks it."""
    mcp = pytest.importorskip("mcp")

    async def conversation() -> None:
        program = mcp.StdioServerParameters(
            command=sys.executable, args=["-c", PROGRAM, "mcp"], cwd=str(project)
        )
        async with mcp.Client(program) as client:

            async def ask(tool: str, **arguments: Any) -> tuple[bool, str]:
                answer = await client.call_tool(tool, arguments)
                return bool(answer.is_error), "\n".join(part.text for part in answer.content)

            await questions(client, ask)

    asyncio.run(conversation())


def files_of(project: Path) -> dict[str, bytes]:
    return {
        path.relative_to(project).as_posix(): path.read_bytes()
        for path in project.rglob("*")
        if path.is_file()
    }


@pytest.mark.more
def test_an_agent_checks_explains_and_judges_and_nothing_is_written(project: Path) -> None:
    before = files_of(project)

    async def questions(client: Any, ask: Ask) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {
            "check", "explain", "sample_run", "backtest", "mutate", "why_blocked", "propose",
        }  # fmt: skip
        reading = {name for name, tool in tools.items() if tool.annotations.read_only_hint}
        assert reading == set(tools) - {"propose"}
        assert {name for name, tool in tools.items() if not tool.description} == set()

        assert await ask("check", suite="orders.dql") == (False, "no errors")
        draft = SUITE.replace("null_count", "nul_count")
        failed, found = await ask("check", suite="orders.dql", text=draft)
        assert not failed
        assert "did you mean 'null_count'?" in found
        assert found.endswith("1 error")

        assert "# E001: unknown metric" in (await ask("explain", what="e001"))[1]
        assert "population stability index" in (await ask("explain", what="psi"))[1]
        assert (await ask("explain", what="null_count"))[1].startswith("## null_count(column)")
        assert "one pass over orders" in (await ask("explain", what="orders.dql"))[1]

        failed, judged = await ask(
            "sample_run", suite="orders.dql", datasets=["orders=lake/orders.parquet"]
        )
        assert not failed
        assert "assertion failed: id" in judged
        assert "masked columns that were not read: email" in judged
        assert "eve@example.com" not in judged

        assert "the newest are of 2024-03-02" in (await ask("backtest", suite="orders.dql"))[1]
        assert "good day" in (await ask("mutate", suite="orders.dql"))[1]
        failed, why = await ask("why_blocked", gate="shop.orders", date="2024-03-02")
        assert not failed
        assert "half of the addresses are missing" in why

        (skill,) = (await client.read_resource("dql://skill")).contents
        assert skill.text.startswith("---\nname: dql\n")

    talk(project, questions)
    assert files_of(project) == before


def test_a_proposal_waits_for_a_person_and_the_suite_stays(project: Path) -> None:
    async def questions(_: Any, ask: Ask) -> None:
        change = {"suite": "orders.dql", "name": "MAX_NULLS", "reason": "40 good days"}
        failed, answer = await ask("propose", value=0.04, **change)
        assert not failed
        assert answer.startswith("MAX_NULLS: 5% -> 4%, proposal ")
        failed, answer = await ask("propose", value=0.5, **change)
        assert failed
        assert "outside its bounds" in answer
        failed, answer = await ask("propose", value=0.5, **{**change, "name": "MAX_NULL"})
        assert failed
        assert "did you mean 'MAX_NULLS'?" in answer

    talk(project, questions)
    assert (project / "orders.dql").read_text() == SUITE
    (stored,) = read_proposals(str(project / "store"))
    assert (stored.stage, stored.agent) == (ProposalStage.PENDING, "mcp")
    assert stored.proposal.values == {"MAX_NULLS": 0.04}
    assert stored.proposal.reason == "40 good days"


@pytest.mark.more
def test_a_masked_column_is_not_read_however_a_dataset_is_called(project: Path) -> None:
    (project / "other.dql").write_text(SUITE.replace("on orders", "on other"))
    rows = {"id": [1], "Email": ["eve@example.com"], "who": [{"email": "eve@example.com"}]}
    pq.write_table(pa.table(rows), project / "lake" / "other.parquet")

    async def questions(_: Any, ask: Ask) -> None:
        for location in (
            "lake/orders.parquet",
            "lake/../lake/orders.parquet",
            "lake/other.parquet?masked=email,who.email",
        ):
            dataset = f"other={location}"
            _, judged = await ask("sample_run", suite="other.dql", datasets=[dataset])
            assert "column 'email'" in judged
            assert "eve@example.com" not in judged

    talk(project, questions)


@pytest.mark.more
def test_what_cannot_be_judged_or_proposed_is_an_answer(project: Path) -> None:
    async def questions(_: Any, ask: Ask) -> None:
        filtered = "orders=lake/orders.parquet?filter=id > 1"
        for tool, arguments, answer in (
            ("sample_run", {"suite": "orders.dql", "datasets": [filtered]}, "lack its filter"),
            ("sample_run", {"suite": "orders.dql", "datasets": [], "rows": -5}, "at least one row"),
            ("explain", {"what": " "}, "give a code, a metric or the path of a suite"),
            ("why_blocked", {"gate": "orders", "date": "yesterdayish"}, "is not a date"),
            ("mutate", {"suite": "orders.dql", "date": "2024-13-01"}, "is not a date"),
            (
                "propose",
                {"suite": "orders.dql", "name": "MAX_NULLS", "value": 0.1, "reason": " "},
                "without a reason",
            ),
            ("check", {"suite": "a\0b"}, "is not a path"),
            ("check", {"suite": "a\0b", "text": SUITE}, "is not a path"),
        ):
            failed, said = await ask(tool, **arguments)
            assert failed
            assert answer in said

    talk(project, questions)


@pytest.mark.more
def test_a_whole_number_is_proposed_as_one(project: Path) -> None:
    text = SUITE.replace("const MAX", "const LEAST = 1 tunable [1, 20]\nconst MAX")
    text = text.replace("assert null", 'assert num_rows() > LEAST name "rows"\nassert null')
    (project / "orders.dql").write_text(text)

    async def questions(_: Any, ask: Ask) -> None:
        given = {"suite": "orders.dql", "name": "LEAST", "value": 2, "reason": "two a day"}
        failed, said = await ask("propose", **given)
        assert not failed, said
        assert "2.0" not in said

    talk(project, questions)


@pytest.mark.more
def test_what_is_outside_of_the_folder_or_looks_like_an_option_is_refused(project: Path) -> None:
    (project.parent / "secret.dql").write_text("password = hunter2")

    async def questions(_: Any, ask: Ask) -> None:
        outside = "../secret.dql"
        for call in (
            ("check", {"suite": outside}),
            ("check", {"suite": str(project.parent / "secret.dql")}),
            ("explain", {"what": outside}),
            ("backtest", {"suite": "orders.dql", "proposal": outside}),
            ("sample_run", {"suite": "orders.dql", "datasets": [f"orders={outside}"]}),
            ("propose", {"suite": outside, "name": "x", "value": 1, "reason": "r"}),
        ):
            failed, answer = await ask(call[0], **call[1])
            assert failed, call
            assert "outside of" in answer, call
            assert "hunter2" not in answer
        for tool, arguments in (
            ("why_blocked", {"gate": "--help"}),
            ("explain", {"what": "--help"}),
        ):
            failed, answer = await ask(tool, **arguments)
            assert failed
            assert "Usage" not in answer

    talk(project, questions)
