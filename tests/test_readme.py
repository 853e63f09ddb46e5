"""The README is short and correct: its suite is valid, its DAG imports, its output is real."""

from __future__ import annotations

import re
import sys
from datetime import date, datetime, timezone
from importlib.metadata import distributions
from pathlib import Path
from types import SimpleNamespace

import pytest

from dqx_airflow.diagnostics import draw
from dqx_airflow.diagnostics.verdicts import draw_verdict
from dqx_airflow.dql.check import check_source
from dqx_airflow.lineage.events import PRODUCER
from dqx_airflow.plan.evaluate import decide, evaluate
from dqx_airflow.plan.model import MetricRequest, Scanned
from dqx_airflow.plan.resolve import resolve
from dqx_airflow.values import DatasetRef, Severity, SourceFile
from tests.made_reports import report_at
from tests.processes import output_of

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = ROOT / "dqx_airflow" / "docs"
_PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
REPOSITORY = re.findall(r'^Repository = "(.+)"$', _PROJECT, re.M)[0]
STORM = date(2013, 2, 8)


def opening_blocks(kind: str) -> list[str]:
    """The code blocks of a kind on the README's first screen."""
    return _blocks(kind, README.split("\n## ")[0])


def blocks_of_page(kind: str, page: str) -> list[str]:
    return _blocks(kind, (DOCS / page).read_text(encoding="utf-8"))


def _blocks(kind: str, text: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.M | re.S)


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 150


def test_the_first_screen_says_for_whom_how_to_get_it_and_what_a_failure_looks_like() -> None:
    opening = README.split("\n## ")[0]
    parts = ("For data engineers", "git clone", "```dql", "```python", "error: assertion failed")
    places = [opening.index(part) for part in parts]
    assert places == sorted(places)


def test_links_work_on_an_index_too() -> None:
    """An index shows the README without the files of the repository."""
    targets = re.findall(r"\]\(([^)\s]+)\)", README)
    assert len(targets) > 15
    for target in targets:
        if target.startswith("#"):
            heading = target[1:].replace("-", " ")
            assert re.search(rf"^## {heading}$", README, re.M | re.I), target
            continue
        path = re.fullmatch(rf"{REPOSITORY}/(?:blob|raw)/main/([^#]+)(?:#.*)?", target)
        assert path is not None, target
        assert (ROOT / path[1]).is_file(), target


def test_the_address_of_the_repository_is_in_one_place() -> None:
    assert f"git clone {REPOSITORY} " in README
    assert PRODUCER.startswith(f"{REPOSITORY}/")


def test_the_suite_is_sound_and_prints_the_shown_failure() -> None:
    source = SourceFile("flights.dql", opening_blocks("dql")[0])
    checked = check_source(source)
    assert not checked.diagnostics, draw(checked.diagnostics, checked.sources)
    assert checked.suite is not None
    flights = DatasetRef("flights", path="there", date_column="flight_date")
    plan = resolve(checked.suite, source, [flights], STORM)
    values = {
        MetricRequest("flights", "num_rows", (), STORM): 930,
        MetricRequest("flights", "null_count", ("dep_time",), STORM): 472,
    }
    verdicts = evaluate(plan, Scanned(values))
    at = datetime(2013, 2, 8, tzinfo=timezone.utc)
    report = report_at(at, *verdicts, suite=plan.suite, outcome=decide(verdicts, Severity.P1))
    assert draw_verdict(verdicts[-1], report) + "\n" == opening_blocks("text")[0]


def test_the_error_through_a_macro_is_drawn_as_shown() -> None:
    library = (
        'export macro positive(column) {\n    assert avg({column}) > 0 name "{column} average"\n}\n'
    )
    suite = (
        'import "common/nulls.dql"\nsuite "Orders" {\n  check "Prices" on orders {\n'
        "    use positive(price)\n  }\n}\n"
    )
    checked = check_source(
        SourceFile("orders.dql", suite), lambda _, path: SourceFile(path, library)
    )
    assert draw(checked.diagnostics, checked.sources) + "\n" == blocks_of_page("text", "cli.md")[0]


@pytest.mark.more
def test_the_suites_run_in_python_and_print_the_shown_output(tmp_path: Path) -> None:
    printed = ""
    for number, code in enumerate(blocks_of_page("python", "python.md")):
        (tmp_path / f"run_{number}.py").write_text(code)
        run = [sys.executable, f"run_{number}.py"]
        printed += output_of(run, cwd=tmp_path)
    assert printed == blocks_of_page("text", "python.md")[0]


def test_the_commands_of_the_table_exist() -> None:
    from typer.main import get_command

    from dqx_airflow.cli.main import app

    known = set(get_command(app).commands)  # type: ignore[attr-defined]
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `dql (\w+)", page, re.M))
    assert named == known


def test_the_first_contract_is_what_the_commands_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from dqx_airflow.cli.main import app

    monkeypatch.chdir(tmp_path)
    drafting, failure = blocks_of_page("text", "first-contract.md")
    (contract,) = blocks_of_page("yaml", "first-contract.md")
    command, _, printed = drafting.partition("\n")
    assert CliRunner().invoke(app, ["init"]).exit_code == 0
    drafted = CliRunner().invoke(app, command.removeprefix("$ dql ").split())
    assert drafted.output == printed
    assert (tmp_path / "orders.contract.yaml").read_text() == contract
    line = re.search(r"^(\d+) \| (.*)$", failure, re.M)
    assert line is not None
    assert contract.splitlines()[int(line[1]) - 1] == line[2]
    linted = CliRunner().invoke(app, ["contract", "lint", "orders.contract.yaml"])
    assert "1 contract checked, no errors" in linted.output


def test_the_defensive_read_runs(here: Path) -> None:
    (read,) = (block for block in blocks_of_page("text", "python.md") if "assert_con" in block)
    frame = SimpleNamespace(dtypes=[("id", "bigint")])
    spark = SimpleNamespace(read=SimpleNamespace(table={"silver.events": frame}.__getitem__))
    (here / "events.yaml").write_text(
        "contract: {id: events, version: 2.1.0, schema: {columns: [{name: id, type: bigint}]}}"
    )
    names: dict[str, object] = {"spark": spark}
    exec(read, names)
    assert names["events"] is frame


def test_every_verb_of_dql_contract_is_in_its_table() -> None:
    from dqx_airflow.cli.contract import PANELS

    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`dql contract ([a-z-]+)", page))
    assert named == {name for panel in PANELS.values() for name in panel}


def test_ci_runs_the_test_command_of_the_readme() -> None:
    commands = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```$", README, re.M | re.S)
        for line in block.splitlines()
    ]
    assert sum(line.endswith("/pytest") for line in commands) == 1
    assert "grep '/pytest$' README.md" in (ROOT / ".ci" / "run").read_text()


def test_the_named_extras_exist() -> None:
    (ours,) = (item for item in distributions() if item.metadata["Name"] == "dqx-airflow")
    extras = set(ours.metadata.get_all("Provides-Extra") or ())
    table = (DOCS / "install.md").read_text(encoding="utf-8")
    named = " ".join(re.findall(r"^\| ((?:`\w+`,? ?)+)\| ", table, re.M))
    assert set(re.findall(r"\w+", named)) == extras - {"dev"}


def test_the_map_of_the_packages_names_each_of_them() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    drawn = page[page.index("\n## Package layout\n") :].split("\n## ")[1]
    packages = {at.parent.name for at in (ROOT / "dqx_airflow").glob("*/__init__.py")}
    assert sorted(name for name in packages if not re.search(rf"\b{name}\b", drawn)) == []
    assert len(packages) <= 17
