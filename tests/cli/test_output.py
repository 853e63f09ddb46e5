"""The form and the file of the output: one option each, in all commands, and no file is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from dqx_airflow.cli.main import app
from tests.command_line import dql

SUITE = 'suite "Orders" { check "Volume" on orders { assert num_rows() > 0 name "some rows" } }\n'
CONTRACT = """\
dataContractSpecification: 1.1.0
id: orders
info: {title: orders, version: 1.0.0}
models: {orders: {fields: {id: {type: integer}}}}
"""


def commands_below(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "list_commands"):
        yield " ".join(words), command
        return
    context = command.context_class(command)
    for name in command.list_commands(context):
        yield from commands_below(command.get_command(context, name), (*words, name))


COMMANDS = dict(commands_below(typer.main.get_command(app)))


def _options(name: str) -> dict[str, Any]:
    return {option: each for each in COMMANDS[name].params for option in each.opts}


def test_the_form_and_the_file_of_the_output_have_one_name_each() -> None:
    for name in COMMANDS:
        options = _options(name)
        assert not options.keys() & {"--json", "--output-file", "--output-format"}, name
        if "--format" in options:
            assert options["--format"].opts == ["--format", "-f"], name
            assert "table" not in getattr(options["--format"].type, "choices", ()), name
        if "--output" in options:
            assert options["--output"].opts == ["--output", "-o"], name
            assert "--force" in options, name


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("orders.dql").write_text(SUITE)
    Path("orders.yaml").write_text(CONTRACT)
    Path("orders.csv").write_text("id\n1\n")
    return tmp_path


FILES = {
    "contract to-suite": ("orders.yaml",),
    "contract export": ("orders.yaml", "--format", "odcs"),
    "contract init": ("--dataset", "orders.csv"),
    "suggest": ("--dataset", "orders=orders.csv"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_never_replaced_without_force(home: Path, name: str) -> None:
    call = (*name.split(), *FILES[name])
    Path("kept").write_text("mine")
    refused = dql(*call, "--output", "kept")
    assert refused.returncode == 2, refused.output
    assert "kept already exists" in refused.output
    assert Path("kept").read_text() == "mine"
    assert dql(*call, "-o", "kept", "--force").returncode == 0
    assert Path("kept").read_text() != "mine"
    printed = dql(*call, "--output", "-")
    assert printed.stdout == dql(*call).stdout
    assert not Path("-").exists()


@pytest.mark.more
def test_a_bundle_replaces_an_earlier_one_and_no_other_file(home: Path) -> None:
    for name in ("kept.zip", "gate_job.py"):
        Path(name).write_text("mine")
        refused = dql("package", "--output", "kept.zip")
        assert refused.returncode == 2
        assert f"{name} already exists" in refused.output
        assert Path(name).read_text() == "mine"
        Path(name).unlink()
    for _ in range(2):
        assert dql("package", "--output", "kept.zip").returncode == 0
    Path("gate_job.py").write_text("mine")
    assert dql("package", "--output", "kept.zip", "--force").returncode == 0
    Path("archive.jsa").write_text("mine")
    assert dql("package", "--jvm-archive", "archive.jsa").returncode == 2


@pytest.mark.parametrize("folder", [".", "bundles", "bundles/"])
def test_a_bundle_is_written_into_no_folder_of_its_name(home: Path, folder: str) -> None:
    Path("bundles").mkdir()
    for option in ("--output", "--jvm-archive"):
        refused = dql("package", option, folder)
        assert (refused.returncode, "is a folder" in refused.output) == (2, True)


@pytest.mark.parametrize("command", ["run", "diff", "mutate", "tune backtest", "contract test"])
def test_a_form_is_no_file(home: Path, command: str) -> None:
    path = "orders.yaml" if command == "contract test" else "orders.dql"
    refused = dql(*command.split(), path, "--output", "json")
    assert refused.returncode == 2
    assert "write --format json" in refused.output
    assert not Path("json").exists()


def test_a_run_keeps_the_file_of_another(home: Path) -> None:
    Path("report.json").write_text("mine")
    for path in ("orders.dql", "orders.yaml"):
        command = ("run",) if path.endswith("dql") else ("contract", "test")
        dataset = ("--dataset", "orders=orders.csv")
        refused = dql(*command, path, *dataset, "--output", "report.json")
        assert (refused.returncode, Path("report.json").read_text()) == (2, "mine")
        assert "add --force" in refused.output


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (("incidents", "--root", "s"), "it is now --results-root"),
        (("tune", "alerts", "orders.dql", "--results", "s"), "it is now --results-root"),
        (("run", "orders.dql", "--output-file", "s"), "it is now --output"),
        (("contract", "registry", "list", "--registry", "r", "--json"), "it is now --format json"),
        (("init", "--from", "orders.csv"), "it is now --dataset"),
        (("contract", "init", "--from", "orders.csv"), "it is now --dataset"),
        (("import", "x.yaml", "--from", "soda"), "it is now --tool"),
        (("contract", "export", "orders.yaml", "--to", "odcs"), "it is now --format"),
        (("tune", "alerts", "orders.dql", "--format", "table"), "the table is now the format text"),
        (("run", "orders.dql", "--outptu", "s"), "did you mean --output?"),
        (("--verson",), "did you mean --version?"),
        (("rnu",), "no such command 'rnu'"),
        (("run",), "missing argument 'PATH...'"),
    ],
    ids=lambda part: part if isinstance(part, str) else " ".join(part),
)
def test_a_wrong_call_is_an_error_in_the_form_of_all_errors(
    home: Path, call: tuple[str, ...], hint: str
) -> None:
    called = dql(*call)
    assert called.returncode == 2
    assert called.stdout == ""
    first, second = called.stderr.splitlines()
    assert first.startswith("error: ")
    assert second.startswith("  help: ")
    assert hint in called.stderr


def test_a_former_key_of_the_settings_says_its_name_now(home: Path) -> None:
    Path("dqx.toml").write_text('[defaults]\noutput = "table"\nresults = "s"\n')
    shown = dql("run", "orders.dql", "--dataset", "orders=orders.csv").output
    assert "renamed to 'format'" in shown
    assert "renamed to 'results_root'" in shown
