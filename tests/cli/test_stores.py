"""The results store of a command: each takes its root from the same four places, in one order."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer
from deltalake import write_deltalake

from dqx_airflow.cli.arguments import Options
from dqx_airflow.cli.calls import read_call
from dqx_airflow.cli.main import app
from dqx_airflow.cli.stores import AIRFLOW_VARIABLE, ROOT_VARIABLE
from tests.command_line import dql

SUITE = """suite "Orders" {
    check "Volume" on orders {
        assert num_rows() > 0
            name "some rows"
    }
}
"""
CONTRACT = """\
dataContractSpecification: 1.1.0
id: orders
info: {title: orders, version: 1.0.0}
models: {orders: {fields: {id: {type: integer%s}}}}
"""
CALLS: dict[str, tuple[str, ...]] = {
    "incidents accept": ("gate", "2026-11-01", "--reason", "r"),
    "tune alerts": ("orders.dql",),
    "tune backtest": ("orders.dql", "--set", "x=1"),
    "contract diff": ("old.yaml", "new.yaml", "--backtest"),
    "diff": ("orders.dql", "--backtest"),
    "tune label": ("orders.dql",),
    "lineage flush": (),
    "incidents close": ("1f", "--reason", "r"),
    "incidents list": (),
    "incidents show": ("1f",),
    "quarantine discard": ("held", "--gate", "g", "--reason", "r"),
    "quarantine release": (
        *("held", "orders.dql", "--gate", "g", "--into", "silver", "--reason", "r"),
        *("--dataset", "orders=orders"),
    ),
    "results export": ("--format", "oors"),
    "results list": (),
    "results optimize": (),
    "results prune": ("--older-than", "30d"),
    "results show": ("latest",),
    "results vacuum": (),
    "tune shadow": ("orders.dql",),
    "shrink": ("latest",),
    "tune propose": ("orders.dql",),
    "tables verify": ("held",),
    "waivers add": (
        *("gate", "some rows", "--until", "2026-11-02"),
        *("--reason", "r", "--owner", "o"),
    ),
    "waivers end": ("1f",),
    "waivers list": (),
}
"""A call of each command that ends with the root of the store that it has not found."""
AUTHOR = ("-c", "user.name=eve", "-c", "user.email=eve@example.com")


def _commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "list_commands"):
        yield " ".join(words), command
        return
    context = command.context_class(command)
    for name in command.list_commands(context):
        yield from _commands(command.get_command(context, name), (*words, name))


_COMMANDS = dict(_commands(typer.main.get_command(app)))
_OPTIONAL = {"contract registry consumers", "lineage coverage"}
"""Commands that can do without a store."""
_OF_A_RUN = {"contract test", "mutate", "run"}
"""Commands that read their store with `read_call`."""
_OTHERS = {
    *("doctor", "tables publish"),
    *("tune apply", "tune approve", "tune reject", "tune review"),
}
"""`dql doctor` examines the store of gates, `dql tables publish` needs a catalog, and proposals may
be in the history of a suite."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for variable in (ROOT_VARIABLE, AIRFLOW_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    Path("orders.dql").write_text(SUITE)
    Path("old.yaml").write_text(CONTRACT % "")
    write_deltalake("held", pa.table({"id": [1]}))
    for words in (("init", "-q"), ("add", "-A"), (*AUTHOR, "commit", "-q", "-m", "one")):
        subprocess.run(["git", *words], check=True)
    Path("orders.dql").write_text(SUITE.replace("> 0", "> 1"))
    Path("new.yaml").write_text(CONTRACT % ", required: true")
    return tmp_path


def _sources(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The root that a command has to take, and its words, as one source after another is added:
    each takes precedence over those before."""
    yield "no results root given", ()
    monkeypatch.setenv(AIRFLOW_VARIABLE, "of_airflow")
    yield "of_airflow", ()
    Path("dqx.toml").write_text('[defaults]\nresults_root = "of_toml"\n')
    yield "of_toml", ()
    monkeypatch.setenv(ROOT_VARIABLE, "of_variable")
    yield "of_variable", ()
    yield "of_option", ("--results-root", "of_option")
    yield "of_option", ("-R", "of_option")


def test_all_commands_with_a_store_have_the_same_option() -> None:
    options = {
        name: option
        for name, command in _COMMANDS.items()
        for option in command.params
        if option.name == "results_root"
    }
    assert options.keys() == CALLS.keys() | _OPTIONAL | _OF_A_RUN | _OTHERS
    for name, option in options.items():
        assert option.opts == ["--results-root", "-R"], name
        # `dql doctor` looks at the store of the gates, not at the one of commands.
        assert option.envvar == (None if name == "doctor" else ROOT_VARIABLE), name


@pytest.mark.few(8, apart=True)
@pytest.mark.parametrize("name", CALLS)
def test_a_command_takes_its_store_from_four_places_in_order(
    home: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for expected, words in _sources(monkeypatch):
        called = dql(*name.split(), *CALLS[name], *words)
        assert called.returncode == 2, called.output
        shown = called.output.replace("no spool and no", "no")
        assert expected in shown
        assert "no results root given" in shown or "no results under" in shown


def test_a_run_takes_its_store_from_four_places_in_order(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for expected, words in _sources(monkeypatch):
        options = Options((Path("orders.dql"),), results_root=words[1] if words else None)
        (request,) = read_call(replace(options, datasets=["orders=x"]), date(2026, 11, 1)).requests
        if expected == "no results root given":
            assert request.results_root == ""
        else:
            assert Path(request.results_root).name == expected


@pytest.mark.parametrize("name", sorted(_OPTIONAL))
def test_a_command_that_can_do_without_a_store_says_that_a_typed_one_is_missing(
    home: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = (
        (*name.split(), "orders.dql") if name == "lineage coverage" else (*name.split(), "orders")
    )
    assert "no results under" in dql(*call, "--results-root", "of_option").output
    Path("dqx.toml").write_text('[defaults]\nresults_root = "of_toml"\n')
    assert "no results under" not in dql(*call).output


def test_a_mistake_in_the_settings_is_no_missing_store(home: Path) -> None:
    Path("dqx.toml").write_text('[defaults]\nresults_rot = "store"\n')
    called = dql("incidents")
    assert called.returncode == 2
    assert "did you mean 'results_root'?" in called.output
    assert "no results under" in dql("incidents", "-R", "elsewhere").output


def test_settings_that_cannot_be_read_are_one_error(home: Path) -> None:
    """Not also a missing dataset, a missing date column, or a missing store."""
    Path("dqx.toml").write_text('[defaults]\nresults_root = "store"\n[defaults]\n')
    for call in (("run", "orders.dql"), ("explain", "orders.dql"), ("incidents",)):
        called = dql(*call)
        assert called.returncode == 2
        assert called.output.count("error") == 1, called.output
